"""The methods of five papers in plain NumPy, each short enough to check by eye.

They keep the papers' scale and notation, take the order of the rows as an argument, and
make no certificate: give their w to :func:`dualgap.certify`. The tests compare every
step of the compiled solvers with them.
"""

from __future__ import annotations

from .core_vector import CoreVectorTwin
from .frank_wolfe import FrankWolfeTwin
from .kernel_pegasos import KernelPegasosTwin
from .losses import Phi
from .pegasos import BatchBias, NORMATwin, PegasosTwin, SubgradientBias
from .sdca import SDCATwin
from .sgd import SGDTwin

__all__ = [
    "BatchBias", "CoreVectorTwin", "FrankWolfeTwin", "KernelPegasosTwin", "NORMATwin",
    "PegasosTwin", "Phi", "SDCATwin", "SGDTwin", "SubgradientBias",
]  # fmt: skip

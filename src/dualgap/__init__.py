"""Support vector machines with a certificate of optimality.

Every fitted model comes with the primal and the dual value of its training problem,
computed over all training rows. Their difference, the duality gap, bounds how far the
model is from the optimum.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .names import Guesses, instead

if TYPE_CHECKING:
    __version__: str
    from ._show_versions import show_versions as show_versions
    from .estimators import SVC as SVC
    from .estimators import SVCCV as SVCCV
    from .estimators import SVR as SVR
    from .estimators import SVRCV as SVRCV
    from .estimators import CalibratedClassifier as CalibratedClassifier
    from .estimators import LinearOneClassSVM as LinearOneClassSVM
    from .estimators import LinearSVC as LinearSVC
    from .estimators import LinearSVCCV as LinearSVCCV
    from .estimators import LinearSVR as LinearSVR
    from .estimators import LogisticRegression as LogisticRegression
    from .estimators import NuSVC as NuSVC
    from .estimators import NuSVR as NuSVR
    from .estimators import OneClassSVM as OneClassSVM
    from .estimators import calibrated as calibrated
    from .html_report import report as report
    from .models import certify as certify
    from .models import compress as compress
    from .models import load_model as load_model
    from .models import save_model as save_model
    from .models import to_onnx as to_onnx
    from .patch import patch_sklearn as patch_sklearn
    from .patch import unpatch_sklearn as unpatch_sklearn
    from .problems.constant import DegenerateWarning as DegenerateWarning


# Public names by the modules that define them. A module is imported when one of its
# names is first used, which keeps `import dualgap` fast.
_HOME = {
    name: module
    for module, names in {
        ".estimators": (
            *("SVC", "SVCCV", "SVR", "SVRCV", "CalibratedClassifier", "calibrated"),
            *("LinearOneClassSVM", "LinearSVC", "LinearSVCCV", "LinearSVR"),
            *("LogisticRegression", "NuSVC", "NuSVR", "OneClassSVM"),
        ),
        ".models": ("certify", "compress", "load_model", "save_model", "to_onnx"),
        ".patch": ("patch_sklearn", "unpatch_sklearn"),
        ".html_report": ("report",),
        ".problems.constant": ("DegenerateWarning",),
        "._show_versions": ("show_versions",),
    }.items()
    for name in names
}
__all__ = ["__version__", *_HOME]

#: Submodules that are available after `import dualgap`. Each is imported on first use.
_MODULES = {
    "answers",
    "certificate",
    "data",
    "distributed",
    "kernel",
    "losses",
    "model_selection",
    "models",
    "plot",
    "problems",
    "solvers",
    "training",
}

sys.meta_path.insert(0, Guesses)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from .names import own_version

        globals()[name] = value = own_version()
        return value
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}{instead(name)}"
        )
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, *_MODULES})

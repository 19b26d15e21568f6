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
    from ._show_versions import show_versions
    from .estimators import (
        SVC,
        SVCCV,
        SVR,
        SVRCV,
        CalibratedClassifier,
        LinearOneClassSVM,
        LinearSVC,
        LinearSVCCV,
        LinearSVR,
        LogisticRegression,
        NuSVC,
        NuSVR,
        OneClassSVM,
        calibrated,
    )
    from .html_report import report
    from .models import certify, compress, load_model, save_model, to_onnx
    from .patch import patch_sklearn, unpatch_sklearn
    from .problems.degenerate import DegenerateWarning

# Public names and the modules that define them. A module is imported when one of its
# names is first used, which keeps `import dualgap` fast.
_HOME = {
    "SVC": ".estimators",
    "SVCCV": ".estimators",
    "SVRCV": ".estimators",
    "CalibratedClassifier": ".estimators",
    "DegenerateWarning": ".problems.degenerate",
    "LinearOneClassSVM": ".estimators",
    "LinearSVC": ".estimators",
    "LinearSVCCV": ".estimators",
    "LinearSVR": ".estimators",
    "LogisticRegression": ".estimators",
    "NuSVC": ".estimators",
    "NuSVR": ".estimators",
    "OneClassSVM": ".estimators",
    "SVR": ".estimators",
    "calibrated": ".estimators",
    "certify": ".models",
    "compress": ".models",
    "load_model": ".models",
    "patch_sklearn": ".patch",
    "report": ".html_report",
    "save_model": ".models",
    "show_versions": "._show_versions",
    "to_onnx": ".models",
    "unpatch_sklearn": ".patch",
}

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "CalibratedClassifier",
    "DegenerateWarning",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LogisticRegression",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "__version__",
    "calibrated",
    "certify",
    "compress",
    "load_model",
    "patch_sklearn",
    "report",
    "save_model",
    "show_versions",
    "to_onnx",
    "unpatch_sklearn",
]


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

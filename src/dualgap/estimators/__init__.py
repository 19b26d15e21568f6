"""Estimators with scikit-learn's interface.

A module is imported when one of its names is first used: modules that need no
scikit-learn, such as ``plain.py``, do not pay for its import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .kernel_cv import SVCCV, SVRCV
    from .kernel_path import SVCPath, svc_path
    from .kernel_regression import SVR, OneClassSVM
    from .linear_regression import LinearOneClassSVM, LinearSVR
    from .linear_svc import LinearSVC
    from .linear_svc_cv import LinearSVCCV
    from .meta import unwrap
    from .path import SVMPath, svm_path
    from .svc import SVC

_HOME = {
    "SVC": ".svc",
    "SVCCV": ".kernel_cv",
    "SVRCV": ".kernel_cv",
    "SVR": ".kernel_regression",
    "LinearOneClassSVM": ".linear_regression",
    "LinearSVC": ".linear_svc",
    "LinearSVCCV": ".linear_svc_cv",
    "LinearSVR": ".linear_regression",
    "OneClassSVM": ".kernel_regression",
    "SVCPath": ".kernel_path",
    "SVMPath": ".path",
    "svc_path": ".kernel_path",
    "svm_path": ".path",
    "unwrap": ".meta",
}

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "OneClassSVM",
    "SVCPath",
    "SVMPath",
    "svc_path",
    "svm_path",
    "unwrap",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOME[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

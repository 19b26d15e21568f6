"""Estimators with scikit-learn's interface, and functions on fitted models.

A module is imported when one of its names is first used: modules that need no
scikit-learn, such as ``plain.py``, do not pay for its import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._meta import unwrap
    from .compression import compress
    from .export import register_skl2onnx, to_onnx
    from .foreign import certify
    from .kernel_cv import SVCCV, SVRCV
    from .kernel_regression import SVR, OneClassSVM
    from .linear_regression import LinearOneClassSVM, LinearSVR
    from .linear_svc import LinearSVC
    from .linear_svc_cv import LinearSVCCV
    from .model_file import load_model, save_model
    from .path import SVMPath, svm_path
    from .peers import read_liblinear, read_libsvm, write_liblinear, write_libsvm
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
    "SVMPath": ".path",
    "certify": ".foreign",
    "compress": ".compression",
    "load_model": ".model_file",
    "read_liblinear": ".peers",
    "read_libsvm": ".peers",
    "register_skl2onnx": ".export",
    "save_model": ".model_file",
    "svm_path": ".path",
    "to_onnx": ".export",
    "unwrap": "._meta",
    "write_liblinear": ".peers",
    "write_libsvm": ".peers",
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
    "SVMPath",
    "certify",
    "compress",
    "load_model",
    "read_liblinear",
    "read_libsvm",
    "register_skl2onnx",
    "save_model",
    "svm_path",
    "to_onnx",
    "unwrap",
    "write_liblinear",
    "write_libsvm",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOME[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

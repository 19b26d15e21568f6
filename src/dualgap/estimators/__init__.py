"""Estimators with scikit-learn's interface, and functions on fitted models."""

from __future__ import annotations

from ._meta import unwrap
from .compression import compress
from .export import register_skl2onnx, to_onnx
from .foreign import certify
from .kernel_regression import SVR, OneClassSVM
from .linear_regression import LinearOneClassSVM, LinearSVR
from .linear_svc import LinearSVC
from .linear_svc_cv import LinearSVCCV
from .model_file import load_model, save_model
from .path import SVMPath, svm_path
from .peers import read_liblinear, read_libsvm, write_liblinear, write_libsvm
from .svc import SVC

__all__ = [
    "SVC",
    "SVR",
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

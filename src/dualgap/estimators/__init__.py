"""The faces that scikit-learn users know, over the one loop."""

from __future__ import annotations

from .foreign import certify
from .linear_svc import LinearSVC
from .model_file import load_model, save_model
from .peers import read_liblinear, read_libsvm, write_liblinear, write_libsvm
from .svc import SVC

__all__ = [
    "SVC",
    "LinearSVC",
    "certify",
    "load_model",
    "read_liblinear",
    "read_libsvm",
    "save_model",
    "write_liblinear",
    "write_libsvm",
]

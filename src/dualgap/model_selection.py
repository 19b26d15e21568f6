"""Searches of parameters: scikit-learn's, with shared work, and paths of C."""

from __future__ import annotations

from .estimators.grid_search import GridSearchCV
from .estimators.kernel_path import SVCPath, svc_path
from .estimators.path import L1Path, SVMPath, l1_path, svm_path

__all__ = [
    "GridSearchCV",
    "L1Path",
    "SVCPath",
    "SVMPath",
    "l1_path",
    "svc_path",
    "svm_path",
]

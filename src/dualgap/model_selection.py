"""Searches of parameters: scikit-learn's, with shared work, and paths of C."""

from __future__ import annotations

from .estimators.grid_search import GridSearchCV
from .estimators.kernel_path import SVCPath, svc_path
from .estimators.path import SVMPath, svm_path

__all__ = ["GridSearchCV", "SVCPath", "SVMPath", "svc_path", "svm_path"]

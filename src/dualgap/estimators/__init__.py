"""Estimators with scikit-learn's interface."""

from __future__ import annotations

from .calibration import CalibratedClassifier, calibrated
from .kernel_cv import SVCCV, SVRCV
from .kernel_path import SVCPath, svc_path
from .linear_svc import LinearSVC
from .linear_svc_cv import LinearSVCCV
from .logistic import LogisticRegression
from .meta import unwrap
from .novelty import LinearOneClassSVM, OneClassSVM
from .nu import NuSVC, NuSVR
from .path import SVMPath, svm_path
from .regression import SVR, LinearSVR
from .svc import SVC

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "CalibratedClassifier",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "LogisticRegression",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "SVCPath",
    "SVMPath",
    "calibrated",
    "svc_path",
    "svm_path",
    "unwrap",
]

"""Estimators with scikit-learn's interface."""

from __future__ import annotations

from .base import unwrap
from .calibration import CalibratedClassifier, calibrated
from .cross_validation import SVCCV, SVRCV, LinearSVCCV
from .kernel_path import SVCPath, svc_path
from .linear_svc import LinearSVC
from .logistic import LogisticRegression
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

"""The faces that scikit-learn users know, over the one loop."""

from __future__ import annotations

from .foreign import certify
from .linear_svc import LinearSVC
from .model_file import load_model, save_model
from .svc import SVC

__all__ = ["SVC", "LinearSVC", "certify", "load_model", "save_model"]

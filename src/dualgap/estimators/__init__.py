"""The faces that scikit-learn users know, over the one loop."""

from __future__ import annotations

from .linear_svc import LinearSVC

__all__ = ["LinearSVC"]

"""Searches of parameters: scikit-learn's, with shared work for dualgap's estimators."""

from __future__ import annotations

from .estimators.grid_search import GridSearchCV

__all__ = ["GridSearchCV"]

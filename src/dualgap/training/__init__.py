"""Training: the loop, its checkpoints, paths of C, and streams of batches."""

from __future__ import annotations

from .fit import ctrl_c, solve
from .progress import EpochInfo, Forecast, remaining, told
from .solution import Solution

__all__ = [
    "EpochInfo",
    "Forecast",
    "Solution",
    "ctrl_c",
    "remaining",
    "solve",
    "told",
]

"""Plots that follow scikit-learn's Display convention.

They need matplotlib: ``pip install 'dualgap[plot]'``. People with any kind of colour
vision can tell the colours apart.
"""

from .axes import COLORS as COLORS
from .axes import pyplot as pyplot
from .axes import svg as svg
from .explanations import ShapleyDisplay
from .models import BoundaryDisplay, MarginDisplay
from .training import ConvergenceDisplay, ErrorBoundsDisplay, PathDisplay

__all__ = [
    "BoundaryDisplay",
    "ConvergenceDisplay",
    "ErrorBoundsDisplay",
    "MarginDisplay",
    "PathDisplay",
    "ShapleyDisplay",
]

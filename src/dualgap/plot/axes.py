"""Colours, axes and checks that all pictures share."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..docstrings import complete_methods, inherit_entries

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure
    from sklearn.base import BaseEstimator

#: Colours of Okabe and Ito (Color Universal Design, 2008), the yellow left out.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``.

    Raises ImportError if matplotlib is missing, with the remedy.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib; install it with: pip install 'dualgap[plot]'"
        ) from error
    return plt


def svg(draw: Callable[[Axes], object]) -> bytes:
    """Return what `draw` draws on given axes as SVG, the same bytes every time."""
    plt = pyplot()
    figure = plt.Figure(figsize=(7.0, 3.8), layout="constrained")
    draw(figure.subplots())
    file = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "dualgap"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


#: Documentation of methods that draw.
_DRAWING = """
Parameters
----------
ax : matplotlib Axes, optional
    Axes to draw on; by default the axes of a new figure.
name : str, optional
    Label in the legend; by default the name of the class, or none.
x : {"seconds", "epoch"}, default="seconds"
    Horizontal axis.
bins : int, default=50
    Number of bins.

Returns
-------
display
    The display, with its axes in `ax_`.

Raises
------
ImportError
    If matplotlib is missing.
"""


class Display:
    """Base of the pictures.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    """

    ax_: Axes

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        inherit_entries(cls)
        complete_methods(cls, _DRAWING)

    @property
    def figure_(self) -> Figure | SubFigure:
        """Figure that contains the axes."""
        return self.ax_.figure


inherit_entries(Display)


def axes_of(ax: Axes | None) -> Axes:
    """Return the given axes, or the axes of a new figure."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.set_prop_cycle(color=COLORS)
    return ax


def refuse_unknown(name: str, value: str, known: Mapping[str, object]) -> None:
    """Raise an error if the value of an argument is not a known word."""
    if value not in known:
        words = ", ".join(map(repr, known))
        raise ValueError(f"{name}={value!r} is unknown; use one of {words}")


def support_of(model: BaseEstimator, n: int) -> Any:
    """Return the numbers of the support vectors among n rows; None if unknown.

    Raises ValueError if the model was trained with more rows.
    """
    rows = getattr(model, "support_", None)
    if rows is not None and len(rows) and rows.max() >= n:
        raise ValueError(
            f"X has {n} rows, fewer than the model was trained with; give the training "
            "rows, or support=False"
        )
    return rows

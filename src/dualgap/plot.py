"""Pictures. Needs matplotlib: ``pip install 'dualgap[plot]'``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .certificate import Certificate

_AXES = {"seconds": "seconds", "epoch": "epochs"}


class ConvergenceDisplay:
    """Relative gap against seconds or epochs, one curve per solver.

    Dots are full passes, which prove; the line between them is the solver's own
    running estimate.

    Parameters
    ----------
    histories : mapping of str to structured ndarray
        ``Solution.history`` or ``LinearSVC.history_`` (of one class), by label.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    """

    ax_: Any
    figure_: Any

    def __init__(self, histories: Mapping[str, NDArray[np.void]]) -> None:
        self.histories = dict(histories)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, x: str = "seconds",
        ax: Any = None,
    ) -> ConvergenceDisplay:  # fmt: skip
        """Draw the history of a fitted estimator, one curve per class.

        Parameters
        ----------
        estimator : LinearSVC
            Fitted.
        name : str, optional
            Label of the curve.
        x : {"seconds", "epoch"}, default="seconds"
        ax : matplotlib Axes, optional
        """
        label = name or type(estimator).__name__
        history = estimator.history_
        if isinstance(history, list):
            curves = {
                f"{label}, class {c}": h
                for c, h in zip(estimator.classes_, history, strict=True)
            }
        else:
            curves = {label: history}
        return cls(curves).plot(x=x, ax=ax)

    def plot(self, *, x: str = "seconds", ax: Any = None) -> ConvergenceDisplay:
        """Draw on ax, or on a new figure.

        Raises
        ------
        ValueError
            If x is not "seconds" or "epoch".
        ImportError
            If matplotlib is missing.
        """
        if x not in _AXES:
            raise ValueError(f"x={x!r}: use 'seconds' or 'epoch'")
        try:
            from matplotlib import pyplot as plt
        except ImportError as error:
            raise ImportError(
                "pictures need matplotlib: pip install 'dualgap[plot]'"
            ) from error
        if ax is None:
            _, ax = plt.subplots(layout="constrained")
        for label, history in self.histories.items():
            gap = np.array(
                [
                    Certificate(primal=row["primal"], dual=row["dual"]).relative_gap
                    for row in history
                ]
            )
            shown = np.isfinite(gap) & (gap > 0)
            (line,) = ax.plot(history[x][shown], gap[shown], label=label, alpha=0.7)
            proved = shown & history["exact"]
            ax.plot(history[x][proved], gap[proved], "o", color=line.get_color(), ms=4)
        ax.set(xlabel=_AXES[x], ylabel="relative gap (P − D)/D", yscale="log")
        ax.grid(True, which="major", alpha=0.3)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

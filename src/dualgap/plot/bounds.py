"""Plot of proved bounds along C."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .axes import COLORS, Display, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


class ErrorBoundsDisplay(Display):
    """Plot of the proved bounds on the cross-validation error along C.

    Parameters
    ----------
    edges : array-like of shape (n_pieces + 1,)
        Increasing values of C.
    lower, upper : array-like of shape (n_pieces,)
        Bounds for all C in each piece.
    Cs, errors : array-like of shape (n_Cs,)
        Fitted values of C, and the errors of the models there.
    accuracy : float
        Proved accuracy, drawn as a band below the least of `errors`.
    """

    def __init__(
        self,
        edges: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        *,
        Cs: ArrayLike,
        errors: ArrayLike,
        accuracy: float,
    ) -> None:
        self.edges = np.asarray(edges, dtype=np.float64)
        self.lower = np.asarray(lower, dtype=np.float64)
        self.upper = np.asarray(upper, dtype=np.float64)
        self.Cs = np.asarray(Cs, dtype=np.float64)
        self.errors = np.asarray(errors, dtype=np.float64)
        self.accuracy = accuracy

    @classmethod
    def from_estimator(
        cls, estimator: BaseEstimator, *, ax: Axes | None = None
    ) -> ErrorBoundsDisplay:
        """Draw a search with `certify_C`.

        Parameters
        ----------
        estimator : LinearSVCCV or SVCCV
            A fitted estimator. Of an SVCCV the values of C with `gamma_` are drawn.

        Raises
        ------
        ValueError
            If the estimator was fitted without `certify_C`.
        """
        if not hasattr(estimator, "error_bounds_"):
            raise ValueError(
                "estimator has no error_bounds_; fit LinearSVCCV or SVCCV with "
                "certify_C=True"
            )
        table, gamma = estimator.cv_results_, getattr(estimator, "gamma_", None)
        own = [params.get("gamma") == gamma for params in table["params"]]
        Cs, scores = table["param_C"][own], table["mean_test_score"][own]
        display = cls(
            *estimator.error_bounds_,
            Cs=Cs,
            errors=1.0 - scores,
            accuracy=estimator.error_tolerance_,
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> ErrorBoundsDisplay:
        """Draw the bounds, the errors of the fitted models, and the accuracy."""
        ax = axes_of(ax)
        for bound, color, name in (
            (self.upper, COLORS[1], "upper bound"),
            (self.lower, COLORS[0], "lower bound"),
        ):
            ax.stairs(bound, self.edges, color=color, label=name, baseline=None)
        ax.plot(self.Cs, self.errors, ".", color=COLORS[-1], label="fitted models")
        best = float(self.errors.min())
        ax.axhspan(
            best - self.accuracy, best, color="0.5", alpha=0.25, label="proved accuracy"
        )
        ax.set(xscale="log", xlabel="C", ylabel="cross-validation error")
        ax.legend(loc="upper right")
        self.ax_ = ax
        return self

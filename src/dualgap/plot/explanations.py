"""Pictures of explanations: what the features add to decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ..data.types import MatrixLike
from .axes import COLORS, Display, axes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

    from ..models.explanations import ShapleyValues


class ShapleyDisplay(Display):
    """Bars of Shapley values: of one row, or the mean of their sizes over rows.

    Black lines, where the certificate of the fit gives them, enclose the bars of the
    exact optimum. The last bar sums up the features that have none of their own.

    Parameters
    ----------
    found : ShapleyValues
        What :func:`dualgap.models.shapley_values` returned.
    column : int, optional
        Column of the decisions to draw; required if there are several, such as one per
        class or per pair of classes.
    names : sequence of str, optional
        Names of the features; by default "feature 0", "feature 1", ...
    """

    def __init__(
        self,
        found: ShapleyValues,
        *,
        column: int | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        values, off = found.values, found.optimum_error
        base = np.ravel(found.base)
        if column is None and len(base) == 1:
            column = 0
        if not isinstance(column, (int, np.integer)) or not 0 <= column < len(base):
            raise ValueError(
                f"column={column!r} does not choose one of {len(base)} columns of the "
                f"decisions; give a number from 0 to {len(base) - 1}"
            )
        if values.ndim == 3:
            values, off = values[:, column], None if off is None else off[:, column]
        if names is None:
            names = [f"feature {j}" for j in range(values.shape[1])]
        if len(names) != values.shape[1]:
            raise ValueError(
                f"names has {len(names)} names, but there are {values.shape[1]} "
                "features; give one for each"
            )
        self.values, self.optimum_error = values, off
        self.base, self.names = float(base[column]), [str(name) for name in names]

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        background: MatrixLike,
        *,
        column: int | None = None,
        max_features: int = 10,
        n_jobs: int | None = None,
        ax: Axes | None = None,
    ) -> ShapleyDisplay:
        """Draw the Shapley values of a fitted model.

        Parameters
        ----------
        estimator : estimator
            A fitted model that :func:`dualgap.models.shapley_values` takes.
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows to explain. A data frame names the features.
        background : {array-like, sparse matrix} of shape (n_background, n_features)
            Rows that stand for an unknown feature, such as some training rows.
        column : int, optional
            As for the class.
        max_features : int, default=10
            Largest number of bars.
        n_jobs : int, optional
            Threads over the rows.

        Raises
        ------
        TypeError, ValueError
            As :func:`dualgap.models.shapley_values`; also if `column` is missing or out
            of range, or `max_features` is not positive.
        """
        from ..models.explanations import shapley_values

        _refuse_no_bars(max_features)
        names = getattr(X, "columns", None)
        found = shapley_values(estimator, X, background, n_jobs=n_jobs)
        display = cls(found, column=column, names=names)
        return display.plot(max_features=max_features, ax=ax)

    def plot(self, *, max_features: int = 10, ax: Axes | None = None) -> ShapleyDisplay:
        """Draw the bars, the largest one on top.

        Parameters
        ----------
        max_features : int, default=10
            Largest number of bars.
        """
        _refuse_no_bars(max_features)
        ax = axes_of(ax)
        one = len(self.values) == 1
        values = self.values[0] if one else np.abs(self.values).mean(axis=0)
        order = np.argsort(-np.abs(values), kind="stable")
        own = len(order) if len(order) <= max_features else max_features - 1
        groups = [*order[:own, None]] + ([order[own:]] if own < len(order) else [])
        labels = [self.names[j] for j in order[:own]]
        if own < len(order):
            labels.append(f"{len(order) - own} other features")
        bars = np.array([values[group].sum() for group in groups])
        at = np.arange(len(bars))[::-1]
        colors = [COLORS[3] if one and bar < 0.0 else COLORS[0] for bar in bars]
        ax.barh(at, bars, color=colors)
        if self.optimum_error is not None:
            off = self.optimum_error.mean(axis=0)
            far = np.array([off[group].sum() for group in groups])
            ax.errorbar(bars, at, xerr=far, fmt="none", ecolor="black", capsize=3)
        ax.axvline(0.0, color="gray", lw=0.8)
        ax.set_yticks(at, labels)
        told = "mean size of what a feature adds to the decision"
        if one:
            sign = "+" if values.sum() >= 0.0 else "-"
            told = (
                f"what a feature adds to the decision: {self.base:.3g} {sign} "
                f"{abs(values.sum()):.3g} = {self.base + values.sum():.3g}"
            )
        ax.set(xlabel=told)
        self.ax_ = ax
        return self


def _refuse_no_bars(max_features: int) -> None:
    """Raise an error if the largest number of bars is not a positive integer."""
    kind = type(max_features)
    whole = issubclass(kind, (int, np.integer)) and kind is not bool
    if not whole or max_features < 1:
        raise ValueError(
            f"max_features={max_features!r} is not a positive integer; give the number "
            "of bars, such as 10"
        )

"""Pictures of fitted models: margins and decision boundaries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..data.types import MatrixLike
from ..problems.duals import dense_table
from .axes import COLORS, Display, axes_of, support_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


class MarginDisplay(Display):
    """Histogram of the margins ``y_i f(x_i)``, with the support vectors marked.

    A row with a margin below 1 has a positive loss; one below 0 is misclassified.

    Parameters
    ----------
    margins : array-like of shape (n,)
        Margins of the rows.
    support : array-like of int, optional
        Indices of the rows that are support vectors.
    name : str, optional
        Label of the histogram.
    """

    def __init__(
        self,
        margins: ArrayLike,
        *,
        support: ArrayLike | None = None,
        name: str | None = None,
    ) -> None:
        self.margins = np.asarray(margins, dtype=np.float64)
        self.name = name
        self.support = None
        if support is not None:
            self.support = np.zeros(len(self.margins), dtype=bool)
            self.support[np.asarray(support)] = True

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: ArrayLike,
        *,
        positive: Any = None,
        support: bool = True,
        bins: int = 50,
        name: str | None = None,
        ax: Axes | None = None,
    ) -> MarginDisplay:
        """Draw the margins of a fitted classifier on X.

        Parameters
        ----------
        estimator : classifier
            A fitted classifier. With more than two classes, it must be trained one
            versus the rest.
        X : {array-like, sparse matrix} of shape (n, n_features)
            Rows.
        y : array-like of shape (n,)
            Classes of the rows.
        positive : label, optional
            The positive class; by default the second of two classes. Required with
            more than two.
        support : bool, default=True
            Mark the support vectors; X must then be the training rows. Use False for
            other rows, such as test data.

        Raises
        ------
        TypeError
            If the estimator is not a classifier.
        ValueError
            If `positive` is missing or not a class, or X has too few rows to be the
            training rows and `support` is true.
        """
        from sklearn.base import is_classifier

        from ..estimators import unwrap

        estimator, X = unwrap(estimator, X)
        if not is_classifier(estimator):
            raise TypeError(
                f"estimator is of type {type(estimator).__name__}, which has no "
                "margins; give a fitted classifier"
            )
        scores, y = estimator.decision_function(X), np.asarray(y)
        classes = list(estimator.classes_)
        several = scores.ndim == 2
        pairs = hasattr(estimator, "kernel") or (
            getattr(estimator, "multi_class", "ovr") == "ovo"
        )
        if several and (positive is None or pairs):
            raise ValueError(
                f"positive={positive!r} does not choose one of {len(classes)} classes; "
                "give the positive class, of a model trained one versus the rest"
            )
        positive = classes[1] if positive is None else positive
        if positive not in classes:
            raise ValueError(
                f"positive={positive!r} is not a class; use one of {classes}"
            )
        at = classes.index(positive)
        score = scores[:, at] if several else scores if at == 1 else -scores
        rows = support_of(estimator, len(score)) if support else None
        if rows is not None and several:
            rows = rows[dense_table(estimator.dual_coef_[[at]])[0] != 0.0]
        display = cls(np.where(y == positive, score, -score), support=rows, name=name)
        return display.plot(bins=bins, ax=ax)

    def plot(self, *, bins: int = 50, ax: Axes | None = None) -> MarginDisplay:
        """Draw the histogram."""
        ax = axes_of(ax)
        edges = np.histogram_bin_edges(self.margins, bins).tolist()
        ax.hist(self.margins, edges, alpha=0.4, label=self.name or "all rows")
        if self.support is not None:
            ax.hist(
                self.margins[self.support], edges, histtype="step", lw=1.5,
                label=f"{int(self.support.sum())} support vectors",
            )  # fmt: skip
        for at, style in ((0.0, ":"), (1.0, "--")):
            ax.axvline(at, color="gray", ls=style)
        ax.set(xlabel="margin y f(x)", ylabel="rows")
        ax.legend(loc="upper left")
        self.ax_ = ax
        return self


class BoundaryDisplay(Display):
    """Plot of the decision boundary of a model of two features.

    With two classes, the solid line is the boundary, ``f(x) = 0``, and the dashed lines
    are the margins, ``f(x) = -1`` and ``f(x) = 1``. Rows inside a ring are support
    vectors.

    Parameters
    ----------
    grid : ndarray of shape (2, m, m)
        Values of the two features at the points of a grid.
    values : ndarray of shape (m, m)
        Decision values at these points or, with several classes, indices of classes.
    X : ndarray of shape (n, 2)
        Rows.
    classes : ndarray of shape (K,), optional
        The classes; None for an outlier detector.
    y : ndarray of shape (n,), optional
        Classes of the rows.
    support : ndarray of int, optional
        Indices of the rows that are support vectors.
    names : tuple of str, optional
        Names of the two features.
    """

    def __init__(
        self,
        grid: NDArray[np.float64],
        values: NDArray[np.float64] | NDArray[np.intp],
        X: NDArray[np.float64],
        *,
        classes: NDArray[np.generic] | None = None,
        y: NDArray[np.generic] | None = None,
        support: NDArray[np.intp] | None = None,
        names: tuple[str, str] = ("feature 0", "feature 1"),
    ) -> None:
        self.grid, self.values, self.X = grid, values, X
        self.classes, self.y, self.support = classes, y, support
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        X: MatrixLike,
        y: ArrayLike | None = None,
        *,
        support: bool = True,
        resolution: int = 200,
        ax: Axes | None = None,
    ) -> BoundaryDisplay:
        """Draw the boundary of a fitted model, and the rows of X.

        Parameters
        ----------
        estimator : classifier or outlier detector
            Fitted model of two features, alone or in a pipeline or search.
        X : array-like or data frame of shape (n, 2)
            Rows.
        y : array-like of shape (n,), optional
            Classes of the rows, which give them their colours.
        support : bool, default=True
            Mark the support vectors; X must then be the training rows.
        resolution : int, default=200
            Points of the grid along each axis.

        Raises
        ------
        ValueError
            If X has not two features, the model predicts numbers, or X has too few rows
            to be the training rows and `support` is true.
        """
        from sklearn.base import is_regressor

        from ..estimators import unwrap

        points = np.asarray(X, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != 2:
            raise ValueError(
                f"X has shape {points.shape}; the boundary is drawn for models of two "
                "features"
            )
        if is_regressor(estimator):
            raise ValueError(
                f"{type(estimator).__name__} predicts numbers and has no boundary; "
                "give a classifier or an outlier detector"
            )
        rows = support_of(unwrap(estimator)[0], len(points)) if support else None
        low, high = points.min(axis=0), points.max(axis=0)
        room = 0.08 * np.where(high > low, high - low, 1.0)
        sides = np.linspace(low - room, high + room, resolution).T
        grid = np.stack(np.meshgrid(*sides))
        queries: Any = grid.reshape(2, -1).T
        names = ("feature 0", "feature 1")
        if hasattr(X, "columns"):
            names = tuple(X.columns)
            queries = type(X)(dict(zip(names, queries.T, strict=True)))
        classes = getattr(estimator, "classes_", None)
        if classes is None or len(classes) == 2:
            values = estimator.decision_function(queries)
        else:
            values = np.searchsorted(classes, estimator.predict(queries))
        display = cls(
            grid,
            values.reshape(grid.shape[1:]),
            points,
            classes=classes,
            y=None if y is None else np.asarray(y),
            support=rows,
            names=(str(names[0]), str(names[1])),
        )
        return display.plot(ax=ax)

    def plot(self, *, ax: Axes | None = None) -> BoundaryDisplay:
        """Draw the regions, the boundary, the margins and the rows."""
        ax = axes_of(ax)
        several = self.classes is not None and len(self.classes) > 2
        count = 2 if self.classes is None else len(self.classes)
        colors = [COLORS[k % len(COLORS)] for k in range(count)]
        regions = self.values if several else (self.values > 0.0).astype(int)
        levels = np.arange(count + 1) - 0.5
        ax.contourf(*self.grid, regions, levels, colors=colors, alpha=0.15)
        if several:
            ax.contour(
                *self.grid, regions, levels[1:-1], colors="black", linewidths=0.8
            )
        else:
            at = [0.0] if self.classes is None else [-1.0, 0.0, 1.0]
            styles = ["-"] if self.classes is None else ["--", "-", "--"]
            ax.contour(*self.grid, self.values, at, colors="black", linestyles=styles)
        if self.y is None or self.classes is None:
            ax.scatter(
                self.X[:, 0],
                self.X[:, 1],
                s=18,
                color="black",
                edgecolor="white",
                lw=0.5,
            )
        else:
            for k, label in enumerate(self.classes):
                of = self.X[self.y == label]
                ax.scatter(
                    of[:, 0],
                    of[:, 1],
                    s=22,
                    color=colors[k],
                    edgecolor="white",
                    lw=0.5,
                    label=label,
                )
        if self.support is not None:
            ax.scatter(
                self.X[self.support, 0],
                self.X[self.support, 1],
                s=60,
                facecolor="none",
                edgecolor="black",
                lw=0.8,
                label=f"{len(self.support)} support vectors",
            )
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        if ax.get_legend_handles_labels()[0]:
            ax.legend(loc="upper right")
        self.ax_ = ax
        return self

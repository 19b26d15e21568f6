"""Plots that follow scikit-learn's Display convention.

They need matplotlib: ``pip install 'dualgap[plot]'``. People with any kind of colour
vision can tell the colours apart.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .certificate import relative_gap
from .losses import Vector

__all__ = ["BoundaryDisplay", "ConvergenceDisplay", "MarginDisplay", "PathDisplay"]

#: Colours of Okabe and Ito (Color Universal Design, 2008), the yellow left out.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")

_AXES = {"seconds": "seconds", "epoch": "epochs"}

# More curves than this are drawn in grey, and the worst of them in colour.
_MOST_CURVES = len(COLORS)


def pyplot() -> Any:
    """Return ``matplotlib.pyplot``.

    Raises
    ------
    ImportError
        If matplotlib is missing, with the remedy.
    """
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib; install it with: pip install 'dualgap[plot]'"
        ) from error
    return plt


def svg(draw: Callable[[Any], object]) -> bytes:
    """Return what `draw` draws on given axes as SVG, the same bytes every time."""
    plt = pyplot()
    figure = plt.Figure(figsize=(7.0, 3.8), layout="constrained")
    draw(figure.subplots())
    file = io.BytesIO()
    with plt.rc_context({"svg.hashsalt": "dualgap"}), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph")  # a letter that the font lacks
        figure.savefig(file, format="svg", metadata={"Date": None})
    return file.getvalue()


def _axes(ax: Any) -> Any:
    """Return the given axes, or the axes of a new figure."""
    plt = pyplot()
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    ax.set_prop_cycle(color=COLORS)
    return ax


def _one_of(name: str, value: str, known: Mapping[str, Any]) -> None:
    if value not in known:
        words = ", ".join(map(repr, known))
        raise ValueError(f"{name}={value!r} is unknown; use one of {words}")


def _support(model: Any, n: int) -> Any:
    """Return the numbers of the support vectors among n rows; None if unknown.

    Raises
    ------
    ValueError
        If the model was trained with more rows.
    """
    rows = getattr(model, "support_", None)
    if rows is not None and len(rows) and rows.max() >= n:
        raise ValueError(
            f"X has {n} rows, fewer than the model was trained with; give the training "
            "rows, or support=False"
        )
    return rows


class ConvergenceDisplay:
    """Plot of the best proved bound, or of P and D, during training.

    The horizontal axis shows seconds or epochs, with one curve per solver, class or
    pair. Dots are proofs, which take a full pass over the data. With more than seven
    curves only the one that was proved last, or least, is in colour.

    Parameters
    ----------
    histories : mapping of str to structured ndarray
        ``Solution.history`` or ``LinearSVC.history_`` (of one class), by label.
    tol : float, optional
        Relative gap to draw as a dashed line.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that contains the axes.

    Examples
    --------
    Several solvers on one axis::

        models = {s: LinearSVC(solver=s).fit(X, y) for s in ("dcd", "sdca", "sgd-s")}
        ConvergenceDisplay.from_estimators(models, x="epoch")
    """

    ax_: Any
    figure_: Any

    def __init__(
        self, histories: Mapping[str, NDArray[np.void]], *, tol: float | None = None
    ) -> None:
        self.histories = dict(histories)
        self.tol = tol

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        *,
        name: str | None = None,
        x: str = "seconds",
        y: str = "gap",
        ax: Any = None,
    ) -> ConvergenceDisplay:
        """Draw the history of a fitted estimator, one curve per class or pair.

        Parameters
        ----------
        estimator : estimator
            Fitted model of dualgap, alone or in a pipeline or search.
        name : str, optional
            Label of the curve; by default the name of the class.
        x : {"seconds", "epoch"}, default="seconds"
            Horizontal axis.
        y : {"gap", "objective"}, default="gap"
            Vertical axis; see :meth:`plot`.
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            If the estimator has no history, or x or y is unknown.
        ImportError
            If matplotlib is missing.
        """
        from .estimators import unwrap

        label = name or type(unwrap(estimator)[0]).__name__
        return cls.from_estimators({label: estimator}, x=x, y=y, ax=ax)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, Any],
        *,
        x: str = "seconds",
        y: str = "gap",
        ax: Any = None,
    ) -> ConvergenceDisplay:
        """Draw several fitted estimators on one axis.

        Parameters
        ----------
        estimators : mapping of str to estimator
            Fitted estimators by label.
        x : {"seconds", "epoch"}, default="seconds"
            Horizontal axis.
        y : {"gap", "objective"}, default="gap"
            Vertical axis; see :meth:`plot`.
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        ConvergenceDisplay

        Raises
        ------
        ValueError
            If an estimator has no history, or x or y is unknown.
        ImportError
            If matplotlib is missing.
        """
        from .estimators import unwrap
        from .problems.multiclass import problem_labels, problem_name

        curves, tols = {}, set()
        for label, estimator in estimators.items():
            estimator, _ = unwrap(estimator)
            history = getattr(estimator, "history_", None)
            if history is None:
                raise ValueError(
                    f"{label} has no history_; fit it first (a model loaded from a "
                    "file has none)"
                )
            tols.add(getattr(estimator, "tol", None))
            if not isinstance(history, list):
                curves[label] = history
                continue
            names = map(problem_name, problem_labels(estimator))
            for problem, of_problem in zip(names, history, strict=True):
                curves[f"{label}, {problem}"] = of_problem
        tol = tols.pop() if len(tols) == 1 else None
        return cls(curves, tol=tol).plot(x=x, y=y, ax=ax)

    def plot(
        self, *, x: str = "seconds", y: str = "gap", ax: Any = None
    ) -> ConvergenceDisplay:
        """Draw the curves.

        Parameters
        ----------
        x : {"seconds", "epoch"}, default="seconds"
            Horizontal axis.
        y : {"gap", "objective"}, default="gap"
            The best proved relative gap ``(P - D)/D`` so far, over the solver's own
            estimates (thin line). Or P (solid) and D (dashed): the optimum lies between
            them at every dot.
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        ConvergenceDisplay
            This display.

        Raises
        ------
        ValueError
            If x or y is unknown.
        ImportError
            If matplotlib is missing.
        """
        _one_of("x", x, _AXES)
        _one_of("y", y, {"gap": 0, "objective": 0})
        ax = _axes(ax)
        if y == "gap":
            self._bounds(ax, x)
        else:
            for label, history in self.histories.items():
                values = history["primal"], history["dual"]
                color = self._curve(ax, history, x, values[0], f"{label}, P", None, "-")
                self._curve(ax, history, x, values[1], f"{label}, D", color, "--")
        name = {"gap": "proved relative gap (P − D)/D", "objective": "objective"}[y]
        ax.set(xlabel=_AXES[x], ylabel=name, yscale="log")
        ax.grid(True, which="major", alpha=0.3)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _bounds(self, ax: Any, x: str) -> None:
        """Draw the best proved gaps, and the estimates below them as thin lines."""
        last = {label: _proved(h)[-1] for label, h in self.histories.items() if len(h)}
        many = len(last) > _MOST_CURVES
        worst = max(last, key=lambda label: last[label], default=None)
        for label, history in self.histories.items():
            if not len(history):
                continue
            best, at = _proved(history), history[x]
            shown = np.isfinite(best)
            grey = many and label != worst
            style: dict[str, Any] = {"lw": 2.0, "zorder": 3, "label": label}
            if grey:  # a label that begins with "_" has no place in the legend
                style = {"lw": 0.8, "color": "#BBBBBB", "label": "_"}
            elif many:
                style["label"] = f"{label} (worst of {len(last)})"
            (line,) = ax.plot(at[shown], best[shown], drawstyle="steps-post", **style)
            if grey:
                continue
            proofs = shown & (best < np.append(np.inf, best[:-1]))
            color = line.get_color()
            ax.plot(at[proofs], best[proofs], "o", color=color, ms=5, zorder=3)
            if not many:
                estimates = np.minimum.accumulate(np.fmin(_gaps(history), best))
                seen = np.isfinite(estimates) & (estimates > 0)
                ax.plot(at[seen], estimates[seen], color=color, lw=1.2, alpha=0.6)
        if self.tol is not None:
            ax.axhline(
                self.tol, color="black", ls="--", lw=1.0, label=f"tol = {self.tol:g}"
            )

    @staticmethod
    def _curve(
        ax: Any,
        history: NDArray[np.void],
        x: str,
        values: Vector,
        label: str,
        color: str | None,
        ls: str,
    ) -> Any:
        """Draw P or D with dots where they were proved, and return the colour."""
        shown = np.isfinite(values) & (values > 0)
        (line,) = ax.plot(
            history[x][shown], values[shown], label=label, color=color, ls=ls
        )
        proved = shown & history["exact"]
        ax.plot(history[x][proved], values[proved], "o", color=line.get_color(), ms=4)
        return line.get_color()


def _gaps(history: NDArray[np.void]) -> Vector:
    """Return the relative gap of every record; infinite where there is none."""
    gaps = [relative_gap(row["primal"], row["dual"]) for row in history]
    return np.nan_to_num(np.array(gaps), nan=np.inf, posinf=np.inf)


def _proved(history: NDArray[np.void]) -> Vector:
    """Return the best relative gap proved up to every record."""
    gaps = np.where(history["exact"], _gaps(history), np.inf)
    return np.minimum.accumulate(gaps)


class PathDisplay:
    """Plot of a regularisation path: coefficients, gaps or cross-validation scores.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,)
        Values of C.
    coefs : array-like of shape (n_Cs, n_features), optional
        Coefficients for each C.
    relative_gaps : array-like of shape (n_Cs,) or (n_Cs, n_curves), optional
        Proven relative gaps for each C.
    scores : array-like of shape (n_folds, n_Cs), optional
        Scores of a cross-validation.
    best : float, optional
        Value of C to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the curves.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        Cs: ArrayLike,
        *,
        coefs: ArrayLike | None = None,
        relative_gaps: ArrayLike | None = None,
        scores: ArrayLike | None = None,
        best: float | None = None,
    ) -> None:
        self.Cs = np.asarray(Cs, dtype=np.float64)
        self.best = best
        self.curves = {
            name: np.asarray(values, dtype=np.float64)
            for name, values in (
                ("coefs", coefs),
                ("gaps", relative_gaps),
                ("scores", None if scores is None else np.transpose(scores)),
            )
            if values is not None
        }

    @classmethod
    def from_path(
        cls, path: Any, *, y: str = "coefs", positive: int = 0, ax: Any = None
    ) -> PathDisplay:
        """Draw a regularisation path.

        Parameters
        ----------
        path : SVMPath
            Result of :func:`svm_path`.
        y : {"coefs", "norm", "gaps"}, default="coefs"
            Vertical axis; see :meth:`plot`.
        positive : int, default=0
            With more than two classes, the index of the class whose coefficients are
            shown.
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        PathDisplay
        """
        coefs = path.coefs if path.coefs.ndim == 2 else path.coefs[:, positive]
        display = cls(path.Cs, coefs=coefs, relative_gaps=path.relative_gaps)
        return display.plot(y=y, ax=ax)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, y: str = "scores", ax: Any = None
    ) -> PathDisplay:
        """Draw the search of a fitted :class:`LinearSVCCV`.

        Parameters
        ----------
        estimator : LinearSVCCV
            A fitted estimator.
        y : {"scores", "gaps"}, default="scores"
            Vertical axis; see :meth:`plot`.
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        PathDisplay
        """
        display = cls(
            estimator.Cs_,
            relative_gaps=estimator.relative_gaps_.T,
            scores=estimator.scores_,
            best=estimator.C_,
        )
        return display.plot(y=y, ax=ax)

    def plot(self, *, y: str = "coefs", ax: Any = None) -> PathDisplay:
        """Draw the curves.

        Parameters
        ----------
        y : {"coefs", "norm", "gaps", "scores"}, default="coefs"
            Every coefficient; the norm of the coefficients; the proven relative gaps;
            or mean and standard deviation of the scores over the folds.
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        PathDisplay
            This display.

        Raises
        ------
        ValueError
            If y is unknown, or the display has no such values.
        ImportError
            If matplotlib is missing.
        """
        known = dict(self.curves)
        if "coefs" in known:
            known["norm"] = np.linalg.norm(known["coefs"], axis=1)
        _one_of("y", y, known)
        ax = _axes(ax)
        order = np.argsort(self.Cs)
        Cs, values = self.Cs[order], known[y][order]
        if y == "scores":
            mean, spread = values.mean(axis=1), values.std(axis=1)
            ax.plot(Cs, mean, "o-")
            ax.fill_between(Cs, mean - spread, mean + spread, alpha=0.2)
        else:
            ax.plot(Cs, values, "o-" if y in ("gaps", "norm") else "-")
        if self.best is not None:
            ax.axvline(self.best, ls="--", color="gray", label=f"C = {self.best:.3g}")
            ax.legend()
        names = {
            "coefs": "coefficients",
            "norm": "‖w‖",
            "gaps": "relative gap (P − D)/D",
            "scores": "score",
        }
        ax.set(xlabel="C", ylabel=names[y], xscale="log")
        if y == "gaps" and (values > 0).any():
            ax.set_yscale("log")
        ax.grid(True, which="major", alpha=0.3)
        self.ax_, self.figure_ = ax, ax.figure
        return self


class MarginDisplay:
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

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the histogram.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    """

    ax_: Any
    figure_: Any

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
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        positive: Any = None,
        support: bool = True,
        bins: int = 50,
        name: str | None = None,
        ax: Any = None,
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
        bins : int, default=50
            Number of bins.
        name : str, optional
            Label of the histogram.
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        MarginDisplay

        Raises
        ------
        ValueError
            If `positive` is missing or not a class, or X has too few rows to be the
            training rows and `support` is true.
        ImportError
            If matplotlib is missing.
        """
        from .estimators import unwrap

        estimator, X = unwrap(estimator, X)
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
        rows = _support(estimator, len(score)) if support else None
        if rows is not None and several:
            rows = rows[estimator.dual_coef_[at] != 0.0]
        display = cls(np.where(y == positive, score, -score), support=rows, name=name)
        return display.plot(bins=bins, ax=ax)

    def plot(self, *, bins: int = 50, ax: Any = None) -> MarginDisplay:
        """Draw the histogram.

        Parameters
        ----------
        bins : int, default=50
            Number of bins.
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        MarginDisplay
            This display.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        ax = _axes(ax)
        edges = np.histogram_bin_edges(self.margins, bins)
        ax.hist(self.margins, edges, alpha=0.4, label=self.name or "all rows")
        if self.support is not None:
            ax.hist(
                self.margins[self.support], edges, histtype="step", lw=1.5,
                label=f"{int(self.support.sum())} support vectors",
            )  # fmt: skip
        for at, style in ((0.0, ":"), (1.0, "--")):
            ax.axvline(at, color="gray", ls=style)
        ax.set(xlabel="margin y f(x)", ylabel="rows")
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self


class BoundaryDisplay:
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

    Attributes
    ----------
    ax_ : matplotlib Axes
        Axes with the picture.
    figure_ : matplotlib Figure
        Figure that contains the axes.
    """

    ax_: Any
    figure_: Any

    def __init__(
        self,
        grid: NDArray[np.float64],
        values: NDArray[Any],
        X: NDArray[np.float64],
        *,
        classes: NDArray[Any] | None = None,
        y: NDArray[Any] | None = None,
        support: NDArray[np.intp] | None = None,
        names: tuple[str, str] = ("feature 0", "feature 1"),
    ) -> None:
        self.grid, self.values, self.X = grid, values, X
        self.classes, self.y, self.support = classes, y, support
        self.names = names

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        support: bool = True,
        resolution: int = 200,
        ax: Any = None,
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
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        BoundaryDisplay

        Raises
        ------
        ValueError
            If X has not two features, the model predicts numbers, or X has too few rows
            to be the training rows and `support` is true.
        ImportError
            If matplotlib is missing.
        """
        from sklearn.base import is_regressor

        from .estimators import unwrap

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
        rows = _support(unwrap(estimator)[0], len(points)) if support else None
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

    def plot(self, *, ax: Any = None) -> BoundaryDisplay:
        """Draw the regions, the boundary, the margins and the rows.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; by default the axes of a new figure.

        Returns
        -------
        BoundaryDisplay
            This display.

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        ax = _axes(ax)
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
            ax.scatter(*self.X.T, s=18, color="black", edgecolor="white", lw=0.5)
        else:
            for k, label in enumerate(self.classes):
                of = self.X[self.y == label]
                ax.scatter(
                    *of.T, s=22, color=colors[k], edgecolor="white", lw=0.5, label=label
                )
        if self.support is not None:
            ax.scatter(
                *self.X[self.support].T, s=60, facecolor="none", edgecolor="black",
                lw=0.8, label=f"{len(self.support)} support vectors",
            )  # fmt: skip
        ax.set(xlabel=self.names[0], ylabel=self.names[1])
        if ax.get_legend_handles_labels()[0]:
            ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

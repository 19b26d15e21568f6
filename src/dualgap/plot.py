"""Plots that follow scikit-learn's Display convention.

They need matplotlib: ``pip install 'dualgap[plot]'``. To draw the decision boundary of
a model of two features, use ``sklearn.inspection.DecisionBoundaryDisplay``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .certificate import relative_gap
from .losses import Vector

__all__ = ["ConvergenceDisplay", "MarginDisplay", "PathDisplay"]

_AXES = {"seconds": "seconds", "epoch": "epochs"}


def _axes(ax: Any) -> Any:
    """Return the given axes, or the axes of a new figure."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            "plots need matplotlib; install it with: pip install 'dualgap[plot]'"
        ) from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    return ax


def _one_of(name: str, value: str, known: Mapping[str, Any]) -> None:
    if value not in known:
        words = ", ".join(map(repr, known))
        raise ValueError(f"{name}={value!r} is unknown; use one of {words}")


class ConvergenceDisplay:
    """Plot of the relative gap, or the primal and dual value, during training.

    The horizontal axis shows seconds or epochs, with one curve per solver. Dots are
    values verified by a full pass over the data; the line is the solver's own running
    estimate in between.

    Parameters
    ----------
    histories : mapping of str to structured ndarray
        ``Solution.history`` or ``LinearSVC.history_`` (of one class), by label.

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

    def __init__(self, histories: Mapping[str, NDArray[np.void]]) -> None:
        self.histories = dict(histories)

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
        from .estimators._meta import unwrap

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
        from .estimators._binary import problem_labels, problem_name
        from .estimators._meta import unwrap

        curves = {}
        for label, estimator in estimators.items():
            estimator, _ = unwrap(estimator)
            history = getattr(estimator, "history_", None)
            if history is None:
                raise ValueError(
                    f"{label} has no history_; fit it first (a model loaded from a "
                    "file has none)"
                )
            if not isinstance(history, list):
                curves[label] = history
                continue
            names = map(problem_name, problem_labels(estimator))
            for problem, of_problem in zip(names, history, strict=True):
                curves[f"{label}, {problem}"] = of_problem
        return cls(curves).plot(x=x, y=y, ax=ax)

    def plot(
        self, *, x: str = "seconds", y: str = "gap", ax: Any = None
    ) -> ConvergenceDisplay:
        """Draw the curves.

        Parameters
        ----------
        x : {"seconds", "epoch"}, default="seconds"
            Horizontal axis.
        y : {"gap", "objective"}, default="gap"
            The relative gap ``(P - D)/D``, or P (solid) and D (dashed). At every dot
            the optimum lies between P and D.
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
        for label, history in self.histories.items():
            if y == "gap":
                self._curve(ax, history, x, _relative_gaps(history), label)
                continue
            primal, dual = history["primal"], history["dual"]
            line = self._curve(ax, history, x, primal, f"{label}, P")
            color = line.get_color()
            self._curve(ax, history, x, dual, f"{label}, D", color=color, ls="--")
        name = {"gap": "relative gap (P − D)/D", "objective": "objective"}[y]
        ax.set(xlabel=_AXES[x], ylabel=name, yscale="log")
        ax.grid(True, which="major", alpha=0.3)
        ax.legend()
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _curve(
        ax: Any,
        history: NDArray[np.void],
        x: str,
        values: Vector,
        label: str,
        **style: Any,
    ) -> Any:
        shown = np.isfinite(values) & (values > 0)
        (line,) = ax.plot(
            history[x][shown], values[shown], label=label, alpha=0.7, **style
        )
        proved = shown & history["exact"]
        ax.plot(history[x][proved], values[proved], "o", color=line.get_color(), ms=4)
        return line


def _relative_gaps(history: NDArray[np.void]) -> Vector:
    return np.array([relative_gap(row["primal"], row["dual"]) for row in history])


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
        from .estimators._meta import unwrap

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
        rows = getattr(estimator, "support_", None) if support else None
        if rows is not None and several:
            rows = rows[estimator.dual_coef_[at] != 0.0]
        if rows is not None and len(rows) and rows.max() >= len(score):
            raise ValueError(
                f"X has {len(score)} rows, fewer than the model was trained with; give "
                "the training rows, or support=False"
            )
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

"""Pictures, after scikit-learn's Display convention.

Needs matplotlib: ``pip install 'dualgap[plot]'``. Decision boundaries of models of two
features are drawn by ``sklearn.inspection.DecisionBoundaryDisplay``.
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
    """Those given, or of a new figure."""
    try:
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib: pip install 'dualgap[plot]'"
        ) from error
    if ax is None:
        _, ax = plt.subplots(layout="constrained")
    return ax


def _one_of(name: str, value: str, known: Mapping[str, Any]) -> None:
    if value not in known:
        words = ", ".join(map(repr, known))
        raise ValueError(f"{name}={value!r}: use one of {words}")


class ConvergenceDisplay:
    """Relative gap, or primal and dual value, against seconds or epochs.

    One curve per solver. Dots are full passes, which prove; the line between them is
    the solver's own running estimate.

    Parameters
    ----------
    histories : mapping of str to structured ndarray
        ``Solution.history`` or ``LinearSVC.history_`` (of one class), by label.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

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
        estimator : LinearSVC
            Fitted.
        name : str, optional
            Label of the curve.
        x : {"seconds", "epoch"}, default="seconds"
        y : {"gap", "objective"}, default="gap"
        ax : matplotlib Axes, optional
        """
        label = name or type(estimator).__name__
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
            By label.
        x : {"seconds", "epoch"}, default="seconds"
        y : {"gap", "objective"}, default="gap"
        ax : matplotlib Axes, optional
        """
        from .estimators._binary import problem_labels, problem_name

        curves = {}
        for label, estimator in estimators.items():
            history = getattr(estimator, "history_", None)
            if history is None:
                raise ValueError(
                    f"{label} has no history_: fit it; a model from a file has none"
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
        """Draw on ax, or on a new figure.

        Parameters
        ----------
        x : {"seconds", "epoch"}, default="seconds"
        y : {"gap", "objective"}, default="gap"
            The relative gap ``(P - D)/D``, or P (solid) and D (dashed), between which
            the optimum lies wherever there are dots.
        ax : matplotlib Axes, optional

        Raises
        ------
        ValueError
            If x or y is not one of these.
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
    """A path of C: coefficients, gaps, or the scores of a cross-validation.

    Parameters
    ----------
    Cs : array-like of shape (n_Cs,)
    coefs : array-like of shape (n_Cs, n_features), optional
    relative_gaps : array-like of shape (n_Cs,) or (n_Cs, n_curves), optional
    scores : array-like of shape (n_folds, n_Cs), optional
    best : float, optional
        A C to mark.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
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
        """Draw what :func:`svm_path` returned.

        Parameters
        ----------
        path : SVMPath
        y : {"coefs", "norm", "gaps"}, default="coefs"
        positive : int, default=0
            With more than two classes, the class whose coefficients are shown.
        ax : matplotlib Axes, optional
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
        y : {"scores", "gaps"}, default="scores"
        ax : matplotlib Axes, optional
        """
        display = cls(
            estimator.Cs_,
            relative_gaps=estimator.relative_gaps_.T,
            scores=estimator.scores_,
            best=estimator.C_,
        )
        return display.plot(y=y, ax=ax)

    def plot(self, *, y: str = "coefs", ax: Any = None) -> PathDisplay:
        """Draw on ax, or on a new figure.

        Parameters
        ----------
        y : {"coefs", "norm", "gaps", "scores"}, default="coefs"
            Each coefficient; the norm of them; what is proved of every model; mean and
            standard deviation over the folds.
        ax : matplotlib Axes, optional

        Raises
        ------
        ValueError
            If y is none of these, or there are no such values.
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
    """How the margins ``y_i f(x_i)`` are spread, and where the support vectors are.

    Below 1 a row costs something, below 0 it is on the wrong side.

    Parameters
    ----------
    margins : array-like of shape (n,)
    support : array-like of int, optional
        Rows that are support vectors.
    name : str, optional

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
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
            Fitted. Of more than two classes, one that is trained one versus the rest.
        X : {array-like, sparse matrix} of shape (n, n_features)
        y : array-like of shape (n,)
            Its classes.
        positive : label, optional
            The positive class: the second of two, and to be given of more.
        support : bool, default=True
            Mark the support vectors: X are the rows that it was trained with. False
            for others, such as test data.
        bins : int, default=50
        name : str, optional
        ax : matplotlib Axes, optional

        Raises
        ------
        ValueError
            If `positive` is missing or no class, or support vectors are wanted of other
            rows.
        """
        scores, y = estimator.decision_function(X), np.asarray(y)
        classes = list(estimator.classes_)
        several = scores.ndim == 2
        pairs = hasattr(estimator, "kernel") or (
            getattr(estimator, "multi_class", "ovr") == "ovo"
        )
        if several and (positive is None or pairs):
            raise ValueError(
                f"positive={positive!r}: of {len(classes)} classes give the positive "
                "one, of a model that is trained one versus the rest"
            )
        positive = classes[1] if positive is None else positive
        if positive not in classes:
            raise ValueError(f"positive={positive!r} is none of {classes}")
        at = classes.index(positive)
        score = scores[:, at] if several else scores if at == 1 else -scores
        rows = getattr(estimator, "support_", None) if support else None
        if rows is not None and several:
            rows = rows[estimator.dual_coef_[at] != 0.0]
        if rows is not None and len(rows) and rows.max() >= len(score):
            raise ValueError(
                f"X has {len(score)} rows, fewer than the model was trained with; give "
                "those, or support=False"
            )
        display = cls(np.where(y == positive, score, -score), support=rows, name=name)
        return display.plot(bins=bins, ax=ax)

    def plot(self, *, bins: int = 50, ax: Any = None) -> MarginDisplay:
        """Draw on ax, or on a new figure.

        Parameters
        ----------
        bins : int, default=50
        ax : matplotlib Axes, optional

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

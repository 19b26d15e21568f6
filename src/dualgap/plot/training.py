"""Pictures of the training: bounds over time, paths of C, and bounds along C."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..certificate import relative_gap
from ..checks import only_a_model
from ..losses import Vector
from .axes import COLORS, Display, axes_of, refuse_unknown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator


_AXES = {"seconds": "seconds", "epoch": "epochs"}

# More curves than this are drawn in grey, and the worst of them in colour.
_MOST_CURVES = len(COLORS)


class ConvergenceDisplay(Display):
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

    Examples
    --------
    Several solvers on one axis::

        models = {s: LinearSVC(solver=s).fit(X, y) for s in ("dcd", "sdca", "sgd-s")}
        ConvergenceDisplay.from_estimators(models, x="epoch")
    """

    def __init__(
        self, histories: Mapping[str, NDArray[np.void]], *, tol: float | None = None
    ) -> None:
        self.histories = dict(histories)
        self.tol = tol

    @classmethod
    @only_a_model
    def from_estimator(
        cls,
        estimator: BaseEstimator,
        *,
        name: str | None = None,
        x: str = "seconds",
        y: str = "gap",
        ax: Axes | None = None,
    ) -> ConvergenceDisplay:
        """Draw the history of a fitted estimator, one curve per class or pair.

        Parameters
        ----------
        estimator : estimator
            Fitted model of dualgap, alone or in a pipeline or search.
        y : {"gap", "objective"}, default="gap"
            Vertical axis; see :meth:`plot`.

        Raises
        ------
        ValueError
            If the estimator has no history, or x or y is unknown.
        """
        from ..estimators import unwrap

        label = name or type(unwrap(estimator)[0]).__name__
        return cls.from_estimators({label: estimator}, x=x, y=y, ax=ax)

    @classmethod
    def from_estimators(
        cls,
        estimators: Mapping[str, BaseEstimator],
        *,
        x: str = "seconds",
        y: str = "gap",
        ax: Axes | None = None,
    ) -> ConvergenceDisplay:
        """Draw several fitted estimators on one axis.

        Parameters
        ----------
        estimators : mapping of str to estimator
            Fitted estimators by label.
        y : {"gap", "objective"}, default="gap"
            Vertical axis; see :meth:`plot`.

        Raises
        ------
        TypeError
            If the estimators are not a mapping.
        ValueError
            If an estimator has no history, or x or y is unknown.
        """
        from ..estimators import unwrap
        from ..problems.reductions import reduction_in

        if not isinstance(estimators, Mapping):
            raise TypeError(
                f"estimators is of type {type(estimators).__name__}; give a dict of "
                "fitted models by label, such as {'dcd': model}"
            )
        curves, tols = {}, set()
        for label, estimator in estimators.items():
            estimator, _ = unwrap(estimator)
            history = getattr(estimator, "history_", None)
            if history is None:
                raise ValueError(
                    f"{label} has no history_; fit a model of dualgap (a model loaded "
                    "from a file, or of another package, has none)"
                )
            tols.add(getattr(estimator, "tol", None))
            if not isinstance(history, list):
                curves[label] = history
                continue
            names = reduction_in(estimator).names(estimator.classes_)
            for problem, of_problem in zip(names, history, strict=True):
                curves[f"{label}, {problem}"] = of_problem
        tol = tols.pop() if len(tols) == 1 else None
        return cls(curves, tol=tol).plot(x=x, y=y, ax=ax)

    def plot(
        self, *, x: str = "seconds", y: str = "gap", ax: Axes | None = None
    ) -> ConvergenceDisplay:
        """Draw the curves.

        Parameters
        ----------
        y : {"gap", "objective"}, default="gap"
            The best proved relative gap ``(P - D)/D`` so far, over the solver's own
            estimates (thin line). Or P (solid) and D (dashed): the optimum lies between
            them at every dot.

        Raises
        ------
        ValueError
            If x or y is unknown.
        """
        refuse_unknown("x", x, _AXES)
        refuse_unknown("y", y, {"gap": 0, "objective": 0})
        ax = axes_of(ax)
        if y == "gap":
            self._bounds(ax, x)
        else:
            for label, history in self.histories.items():
                values = history["primal"], history["dual"]
                color = self._curve(ax, history, x, values[0], f"{label}, P", None, "-")
                self._curve(ax, history, x, values[1], f"{label}, D", color, "--")
        name = {"gap": "relative gap (bold: proved)", "objective": "objective"}[y]
        ax.set(xlabel=_AXES[x], ylabel=name, yscale="log")
        ax.grid(True, which="major", alpha=0.3)
        ax.legend(loc="upper right")
        self.ax_ = ax
        return self

    def _bounds(self, ax: Axes, x: str) -> None:
        """Draw the best proved gaps, and the estimates below them as thin lines."""
        last = {
            label: proved_gaps(h)[-1] for label, h in self.histories.items() if len(h)
        }
        many = len(last) > _MOST_CURVES
        worst = max(last, key=lambda label: last[label], default=None)
        for label, history in self.histories.items():
            if not len(history):
                continue
            best, at = proved_gaps(history), history[x]
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
        ax: Axes,
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


def proved_gaps(history: NDArray[np.void]) -> Vector:
    """Return the best relative gap proved up to every record."""
    gaps = np.where(history["exact"], _gaps(history), np.inf)
    return np.minimum.accumulate(gaps)


class PathDisplay(Display):
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
    """

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
        cls, path: Any, *, y: str = "coefs", positive: int = 0, ax: Axes | None = None
    ) -> PathDisplay:
        """Draw a regularisation path.

        Parameters
        ----------
        path : SVMPath or L1Path
            Result of :func:`svm_path` or :func:`l1_path`.
        y : {"coefs", "norm", "gaps"}, default="coefs"
            Vertical axis; see :meth:`plot`.
        positive : int, default=0
            With more than two classes, the index of the class whose coefficients are
            shown.

        Raises
        ------
        TypeError
            If the path has no coefficients.
        """
        if not hasattr(path, "coefs"):
            raise TypeError(
                f"path is of type {type(path).__name__}, which has no coefs to draw; "
                "give a result of svm_path or l1_path"
            )
        coefs = path.coefs if path.coefs.ndim == 2 else path.coefs[:, positive]
        display = cls(path.Cs, coefs=coefs, relative_gaps=path.relative_gaps)
        return display.plot(y=y, ax=ax)

    @classmethod
    @only_a_model
    def from_estimator(
        cls, estimator: BaseEstimator, *, y: str = "scores", ax: Axes | None = None
    ) -> PathDisplay:
        """Draw the search of a fitted :class:`LinearSVCCV`.

        Parameters
        ----------
        estimator : LinearSVCCV
            A fitted estimator.
        y : {"scores", "gaps"}, default="scores"
            Vertical axis; see :meth:`plot`.

        Raises
        ------
        TypeError
            If the estimator has no path of C.
        """
        if not hasattr(estimator, "Cs_"):
            raise TypeError(
                f"estimator is of type {type(estimator).__name__} and has no path Cs_ "
                "to draw; give a fitted LinearSVCCV"
            )
        display = cls(
            estimator.Cs_,
            relative_gaps=estimator.relative_gaps_.T,
            scores=estimator.scores_,
            best=estimator.C_,
        )
        return display.plot(y=y, ax=ax)

    def plot(self, *, y: str = "coefs", ax: Axes | None = None) -> PathDisplay:
        """Draw the curves.

        Parameters
        ----------
        y : {"coefs", "norm", "gaps", "scores"}, default="coefs"
            Every coefficient; the norm of the coefficients; the proven relative gaps;
            or mean and standard deviation of the scores over the folds.

        Raises
        ------
        ValueError
            If y is unknown, or the display has no such values.
        """
        known = dict(self.curves)
        if "coefs" in known:
            known["norm"] = np.linalg.norm(known["coefs"], axis=1)
        refuse_unknown("y", y, known)
        ax = axes_of(ax)
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
            ax.legend(loc="lower right")
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
        self.ax_ = ax
        return self


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
    @only_a_model
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

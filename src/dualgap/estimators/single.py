"""Code that regressors and novelty detectors share: fits of a single problem."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import OutlierMixin

from .. import core
from ..data.types import MatrixLike
from ..losses import Vector
from ..problems.base import Problem
from ..solvers import Solver
from ..solvers.together import SolvedProblems
from ..training import Solution, ctrl_c
from ._callbacks import Attributes, CallbackSupportMixin
from ._together import SolutionsTogether
from .arguments import check_sample_weight
from .fitting import (
    OnEpoch,
    VersionedPickle,
    refuse_masks,
    refuse_store,
    warn_of_chance,
)
from .hints import ParameterHints
from .training import Start, Training, fit_all

__all__ = [
    "ZERO",
    "Novelty",
    "SingleFit",
    "checked_weights",
    "on_the_plane",
]


#: A decision below this fraction of the offset counts as 0: it is within rounding.
ZERO = 1e-9


def on_the_plane(decisions: Vector, least: float) -> Vector:
    """Return one-class decisions, with those below `least` in size set to 0.

    At the optimum many rows lie on the plane itself. Without this, rounding would
    decide the signs of their decisions, and so their labels.
    """
    return np.where(np.abs(decisions) <= least, 0.0, decisions)


def checked_weights(sample_weight: ArrayLike | None, X: MatrixLike) -> Vector | None:
    """Return sample weights as float64, shape (n,); None stays None.

    Raises
    ------
    ValueError
        If a weight is negative or not finite.
    TypeError
        If `sample_weight` is a masked array.
    """
    if sample_weight is None:
        return None
    refuse_masks(sample_weight=sample_weight)
    weight: Vector = check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    return weight


class Novelty(OutlierMixin):
    """Mixin for one-class SVMs: scores and labels from their decisions."""

    def _tell_of_chance(
        self, solution: Solution, decisions: Callable[[], Vector]
    ) -> None:
        """Warn if rounding decides the predictions.

        `decisions` returns the decisions of the rows of positive weight.
        """
        certificate = solution.certificate
        if not certificate.certified:
            return
        # The optimum is -||w||^2 / 2. With P >= 0 it may be 0, and w too.
        if certificate.primal >= 0.0:
            cause = (
                "no plane separates enough rows from the origin, so that w = 0 is "
                "optimal within the proved gap. Use the rbf kernel (OneClassSVM), a "
                "larger nu, or columns that are not centred"
            )
        elif (
            # Rows on the plane have no loss, and so nu sum_i c_i rho = ||w||^2 = -2 P*.
            -float(self.dual_coef_.sum() * self.intercept_[0])
            <= -2.0 * certificate.dual * (1.0 + 1e-6)
            and np.abs(decisions()).max() <= self._least
        ):
            cause = (
                "all training rows lie on the boundary, and so count as inliers. They "
                "are equal, or too few, or the kernel is too narrow: lower gamma"
            )
        else:
            return
        warn_of_chance(type(self).__name__, "the predictions", cause, 5)

    def score_samples(self, X: MatrixLike) -> Vector:
        """Return the scores of rows; lower is more unusual.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; see :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Scores.
        """
        return self.decision_function(X) + self.offset_[0]

    def predict(self, X: MatrixLike) -> NDArray[np.intp]:
        """Predict which rows are inliers (1) and which are outliers (-1).

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows; see :meth:`decision_function`.

        Returns
        -------
        ndarray of shape (n_samples,), intp
            1 or -1.
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)


class SingleFit(
    VersionedPickle,
    ParameterHints,
    CallbackSupportMixin,
):
    """Mixin that trains a single problem and sets the common fitted attributes."""

    tol: float
    atol: float
    max_epochs: int
    verbose: int
    #: Frames from a warning up to the caller of fit.
    _depth: ClassVar[int] = 5
    random_state: int | np.random.RandomState | None = 0
    #: Called with a name and an EpochInfo after every epoch, for the command line.
    _tell: OnEpoch | None = None

    def _refuse_store(self, X: MatrixLike) -> None:
        name = type(self).__name__
        refuse_store(X, name, "read the text with dualgap.data.load_svmlight")

    def _train(
        self,
        problem: Problem,
        solver: Solver,
        data: dict[str, Any],
        keep: Callable[[Solution], None],
        stop: core.Stop,
        *,
        warm: Vector | None = None,
        attributes: Attributes | None = None,
        together: Callable[..., SolvedProblems | None] | None = None,
    ) -> Solution:
        """Fit the problem; `keep` sets the attributes of the model.

        `data` contains X, y and sample_weight as callbacks receive them. `together`
        takes the options of a fit, and solves the problem in one call if it is small.
        Callbacks want to see its epochs, so with them the loop trains.
        """
        name = type(self).__name__
        training = Training(
            self,
            data["X"],
            data["y"],
            data["sample_weight"],
            names=[name],
            labels=[name],
            stop=stop,
            on_epoch=self._tell,
        )

        train = training.trainer(lambda _: Start(problem, solver, attributes, warm))
        found, done = None, False
        if together is not None and warm is None and not training.tasks.heard:
            with ctrl_c(stop):
                found = together(**training.options(0))
        if found is not None:
            solved = SolutionsTogether(training, found, solver.name)
            train, done = solved.trainer(train), solved.done
        if done:
            solution = train(0)
        else:
            (solution,) = fit_all(
                train, 1, n_jobs=None, stop=stop, verbose=self.verbose
            )
        keep(solution)
        self.n_iter_ = solution.certificate.epochs
        self.certificate_ = solution.certificate
        self.history_ = solution.history
        training.end(self.certificate_, name=name, depth=self._depth)
        return solution

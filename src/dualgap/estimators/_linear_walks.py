"""Linear models of all folds of a search for C, each fold along a path."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.extmath import safe_sparse_dot

from .. import core
from ..certificate import Certificate
from ..data.types import MatrixLike
from ..losses import Vector
from ..problems.multiclass import BinaryProblems
from ..solvers import get_solver
from ..training import Solution
from ..training.path import solutions
from ._search import CUT_SHORT, scorer_of
from .fitting import class_scores, warn_of_models
from .linear_svc import LinearSVC
from .training import fit_options

if TYPE_CHECKING:
    from .linear_svc_cv import LinearSVCCV

__all__ = ["FoldPath", "LinearWalks", "warn_of_folds"]


class FoldPath(NamedTuple):
    """Results of the path over one training part, in the order of increasing C.

    The lists are shorter than the grid if the search was cut short.
    """

    scores: list[float]
    certificates: list[list[Certificate]]
    #: Support and y_i alpha_i; for the first fold only.
    duals: list[tuple[NDArray[np.intp], Vector]]


class FoldModel(LinearSVC):
    """Model of a fold, for held-out rows, whose indices were checked before."""

    def decision_function(self, X: MatrixLike) -> Vector:
        return self._scores(self._values(X))


class LinearWalks:
    """Paths of C over the training parts of all folds.

    Parameters
    ----------
    search : LinearSVCCV
        The estimator.
    X, y, classes, codes
        All rows, their labels, the classes, and the index of every row's class.
    binary : BinaryProblems
        The problems over all rows.
    owns : list of BinaryProblems
        The problems of every fold. Rows of its test part have weight 0.
    tests : list
        Rows of the test parts.
    seed : int
    stop : core.Stop

    Attributes
    ----------
    found : list of FoldPath
        Results, which grow as folds are walked.
    """

    def __init__(
        self,
        search: LinearSVCCV,
        X: MatrixLike,
        y: NDArray[np.generic],
        classes: NDArray[np.generic],
        codes: NDArray[np.intp],
        binary: BinaryProblems,
        *,
        owns: list[BinaryProblems],
        tests: list[NDArray[np.generic]],
        seed: int,
        stop: core.Stop,
    ) -> None:
        self.search, self.X, self.y = search, X, y
        self.classes, self.codes = classes, codes
        self.binary, self.owns, self.stop = binary, owns, stop
        self.tests = [np.arange(len(y))[test] for test in tests]
        self.solver = get_solver(search.solver)
        self.scorer = scorer_of(search._model(1.0), search.scoring)
        self.options = fit_options(search, seed, stop)
        self.found = [FoldPath([], [], []) for _ in owns]

    def score(self, fold: int, C: float, now: list[Solution]) -> float:
        """Return the score of the models of a fold on its test part."""
        rows, test = self.binary.rows, self.tests[fold]
        X_test = self.X[test]
        coef, intercept = zip(*[rows.coef(s.w) for s in now], strict=True)
        if self.search.scoring in (None, "accuracy"):
            # scikit-learn's scorer checks rows and labels that were checked before,
            # which can take as long as the fits.
            values = safe_sparse_dot(X_test, np.stack(coef).T, dense_output=True)
            values += np.array(intercept)
            scores = class_scores(
                values.ravel() if len(now) == 1 else values,
                self.search.multi_class,
                len(self.classes),
            )
            found = scores > 0.0 if scores.ndim == 1 else scores.argmax(axis=1)
            return float(np.mean(found == self.codes[test]))
        model = FoldModel(**self.search._model(C).get_params(deep=False))
        model.classes_, model.n_features_in_ = self.classes, rows.d
        model.coef_, model.intercept_ = np.stack(coef), np.array(intercept)
        return float(self.scorer(model, X_test, self.y[test]))

    def walk(self, fold: int, grid: Vector) -> Iterator[None]:
        """Train and score a fold for rising values of C; yield after each."""
        own, part = self.owns[fold], self.found[fold]
        paths = [
            solutions(
                self.binary.rows,
                grid,
                self.solver,
                y=own.signs(k),
                sample_weight=own.weights(k),
                **self.options,
            )
            for k in range(len(own.labels))
        ]
        for C in grid:
            if self.stop.requested or self.stop.expired:
                return
            now = [next(path) for path in paths]
            if any(s.certificate.status in CUT_SHORT for s in now):
                return
            part.certificates.append([s.certificate for s in now])
            if fold == 0 and self.search.refit:
                table = own.pack([s.alpha for s in now])
                support = np.flatnonzero(table.any(axis=0))
                part.duals.append((support, table[:, support]))
            part.scores.append(self.score(fold, float(C), now))
            yield


def warn_of_folds(found: list[FoldPath], grid: Vector, problems: list[str]) -> None:
    """Warn once about the scored models that did not converge."""
    models = []
    for fold, part in enumerate(found):
        for C, now in zip(grid, part.certificates, strict=False):
            for problem, certificate in zip(problems, now, strict=True):
                several = f", {problem}" if len(problems) > 1 else ""
                models.append((f"fold {fold}, C={C:g}{several}", certificate))
    warn_of_models("LinearSVCCV", models, stacklevel=6)

"""Regularisation path: linear models for many values of C."""

from __future__ import annotations

from numbers import Integral
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions

from ..certificate import Certificate
from ..data.types import Label, MatrixLike
from ..losses import LOSSES, Loss, Vector
from ..problems.multiclass import BinaryProblems, binary_problems, number_of_problems
from ..ranges import refuse_huge
from ..solvers import SOLVERS, Solver, get_solver
from ..training.path import solutions
from ._columns import StoredColumns
from .arguments import check_rows_and_labels
from .fitting import (
    ROWS,
    checking,
    encode,
    refuse_masks,
    refuse_store,
    warn_of_failures,
    weights,
)
from .parameters import OF_LINEAR_SEARCHES, constraints
from .seeds import seeds_of
from .training import begin, fit_all

__all__ = ["SVMPath", "svm_path"]


class SVMPath(NamedTuple):
    """Result of :func:`svm_path`: one model per C, each with its certificate."""

    #: Values of C, shape (n_Cs,), in the given order.
    Cs: Vector
    #: Coefficients, shape (n_Cs, n_features). With more than two classes, shape
    #: (n_Cs, m, n_features) for m classes or pairs of classes.
    coefs: Vector
    #: Intercepts, shape (n_Cs,); with m classes or pairs, (n_Cs, m).
    intercepts: Vector
    #: One per C, with m parts where there are m problems.
    certificates: list[Certificate]

    @property
    def relative_gaps(self) -> Vector:
        """``(P - D)/D`` of every model, shape (n_Cs,) or (n_Cs, m)."""
        gaps = [[part.relative_gap for part in c.parts] for c in self.certificates]
        return np.array(gaps).reshape(self.intercepts.shape)


# Advice in the error message for row stores.
PATH_ON_STORE = "fit LinearSVC(warm_start=True) on the store, C by C"


def grid_of(Cs: int | ArrayLike) -> Vector:
    """Return the values of C, float64: the given ones, or a grid from 1e-4 to 1e4.

    Raises
    ------
    ValueError
        If there is no value, or one is not positive and finite.
    """
    refuse_huge("Cs", Cs, whole=isinstance(Cs, Integral))
    if isinstance(Cs, (int, Integral)):
        if Cs < 1:
            raise ValueError(
                f"Cs={Cs!r} is not positive; give the number of values, or the values"
            )
        return np.logspace(-4, 4, int(Cs))
    grid = np.asarray(Cs, dtype=np.float64)
    if grid.ndim != 1 or grid.size == 0 or not (np.isfinite(grid) & (grid > 0)).all():
        raise ValueError(
            f"Cs={Cs!r} is invalid; give positive, finite numbers, or how many to try"
        )
    return grid


@checking(
    {
        **constraints(*OF_LINEAR_SEARCHES),
        "Cs": [Integral, "array-like"],
        "loss": [StrOptions(set(LOSSES)), Loss],
        "solver": [StrOptions(set(SOLVERS)), Solver],
        "penalize_intercept": ["boolean"],
        "multi_class": [StrOptions({"ovr", "ovo"})],
    }
)
def svm_path(
    X: MatrixLike,
    y: ArrayLike,
    Cs: int | ArrayLike = 10,
    *,
    loss: str | Loss = "squared_hinge",
    solver: str | Solver = "auto",
    tol: float = 1e-3,
    atol: float = 0.0,
    max_epochs: int = 10_000,
    time_limit: float | None = None,
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
    penalize_intercept: bool = True,
    class_weight: dict[Label, float] | str | None = None,
    multi_class: str = "ovr",
    sample_weight: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> SVMPath:
    """Train linear SVMs for many values of C, each with a certificate.

    The values are trained in increasing order. Each fit starts from the dual variables
    of the previous one, scaled to the new box, which saves most of the work.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows. They are not copied, as in :class:`LinearSVC`.
    y : array-like of shape (n_samples,)
        Class labels.
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C in any order; an int means that many values, evenly spaced in their
        logarithm from 1e-4 to 1e4.
    loss, tol, atol, max_epochs, fit_intercept, intercept_scaling, penalize_intercept, \
class_weight, random_state
        As in :class:`LinearSVC`, for every C.
    solver : str or Solver, default="auto"
        Solver that keeps dual variables: "auto", "dcd" or "sdca".
    multi_class : {"ovr", "ovo"}, default="ovr"
        More than two classes are trained one versus the rest or one versus one.
    time_limit : float, optional
        Seconds for the whole path. Models that were not trained in time keep their
        starting point; their certificates have the status "time_limit".
    sample_weight : array-like of shape (n_samples,), optional
        Factors of C.
    n_jobs : int, optional
        Number of threads. They share the classes or pairs; additional threads share the
        rows. None means 1 unless :func:`joblib.parallel_config` sets another number; -1
        uses all processors.
    verbose : int, default=0
        1 logs each C, 2 also each epoch.

    Returns
    -------
    SVMPath
        Named tuple ``(Cs, coefs, intercepts, certificates)``.

    Raises
    ------
    ValueError
        If an argument is invalid, or the solver keeps no dual variables.

    Warns
    -----
    ConvergenceWarning
        If a model did not reach `tol`.

    See Also
    --------
    LinearSVCCV : Linear classifier that chooses C by cross-validation along such paths.

    References
    ----------
    B.-Y. Chu, C.-H. Ho, C.-H. Tsai, C.-Y. Lin, C.-J. Lin, "Warm start for parameter
    selection of linear classifiers", KDD 2015.

    Examples
    --------
    >>> from dualgap import svm_path
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = svm_path(scale(X), y, [0.01, 0.1, 1.0], random_state=0)
    >>> path.coefs.shape
    (3, 30)
    >>> bool((path.relative_gaps <= 1e-3).all())
    True
    """
    grid = grid_of(Cs)
    refuse_store(X, "svm_path", PATH_ON_STORE)
    refuse_masks(X=X, y=y, sample_weight=sample_weight)
    stop = begin(time_limit)
    X, y = check_rows_and_labels(X, y, **ROWS)
    classes, codes = encode(np.asarray(y))
    weight, factor = weights(class_weight, X, classes, codes, sample_weight)
    problems = number_of_problems(multi_class, len(classes))
    seeds = seeds_of(random_state, problems)
    method = get_solver(solver)
    columns = StoredColumns(X)
    binary = binary_problems(
        multi_class,
        columns.X,
        classes,
        codes,
        weight,
        factor,
        loss=loss,
        fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling,
        penalize_intercept=penalize_intercept,
        n_jobs=max(1, effective_n_jobs(n_jobs) // problems),
    )
    order = np.argsort(grid, kind="stable")

    def train(k: int) -> list[tuple[Vector, Certificate]]:
        problem = binary.problem(k)  # at C = 1
        found = solutions(
            problem,
            grid[order],
            method,
            y=problem.y,
            sample_weight=problem.cost,
            tol=tol,
            atol=atol,
            max_epochs=max_epochs,
            random_state=seeds[k],
            stop=stop,
        )
        return [(solution.w, solution.certificate) for solution in found]

    by_problem = fit_all(train, problems, n_jobs=n_jobs, stop=stop, verbose=verbose)
    found = _of_problems(grid, order, by_problem, binary)
    whole = [part for certificate in found.certificates for part in certificate.parts]
    names = [
        f"C={C:g}" + (f", {name}" if problems > 1 else "")
        for C in grid
        for name in binary.names
    ]
    warn_of_failures("svm_path", Certificate.total(whole, names), "models")
    return found._replace(coefs=columns.spread(found.coefs))


def _of_problems(
    grid: Vector,
    order: NDArray[np.intp],
    by_problem: list[list[tuple[Vector, Certificate]]],
    binary: BinaryProblems,
) -> SVMPath:
    """Return the path from the models of each problem, which rise in C."""
    problems, rows = len(by_problem), binary.rows
    shape = (len(grid), problems)
    coefs, intercepts = np.empty((*shape, rows.d)), np.empty(shape)
    certificates: NDArray[np.object_] = np.empty(shape, dtype=object)
    for k, found in enumerate(by_problem):
        for at, (w, certificate) in zip(order, found, strict=True):
            coefs[at, k], intercepts[at, k] = rows.coef(w)
            certificates[at, k] = certificate
    if problems == 1:
        coefs, intercepts = coefs[:, 0], intercepts[:, 0]
    totals = [Certificate.total(parts, binary.names) for parts in certificates.tolist()]
    return SVMPath(grid, coefs, intercepts, totals)

"""Paths of linear SVMs: models for many values of C, each with a certificate."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..certificate import Certificate
from ..data.types import MatrixLike
from ..losses import Vector
from ..solvers import Solver
from ..training.batch import begin, solve_path
from ..training.interrupt import ctrl_c
from .arguments import check_rows_and_labels
from .base import warn_of_models
from .input import ROWS, labelled, refuse_masks, refuse_store
from .linear_svc import LinearSVC
from .parameters import ClassWeight, LossLike
from .search import grid_of


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


def svm_path(
    X: MatrixLike,
    y: ArrayLike,
    Cs: int | ArrayLike = 10,
    *,
    loss: LossLike = "squared_hinge",
    solver: str | Solver = "auto",
    tol: float = 1e-3,
    atol: float = 0.0,
    max_iter: int = 10_000,
    time_limit: float | None = None,
    fit_intercept: bool = True,
    intercept_scaling: float = 1.0,
    penalize_intercept: bool = True,
    class_weight: ClassWeight = None,
    multi_class: Literal["ovr", "ovo"] = "ovr",
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
    loss, tol, atol, max_iter, fit_intercept, intercept_scaling, penalize_intercept, \
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
    >>> from dualgap.model_selection import svm_path
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
    refuse_store(X, "svm_path", "fit LinearSVC(warm_start=True) on the store, C by C")
    model = LinearSVC(
        loss=loss,
        solver=solver,
        tol=tol,
        atol=atol,
        max_iter=max_iter,
        time_limit=time_limit,
        fit_intercept=fit_intercept,
        intercept_scaling=intercept_scaling,
        penalize_intercept=penalize_intercept,
        class_weight=class_weight,
        multi_class=multi_class,
        random_state=random_state,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    model._validate_params()
    refuse_masks(X=X, y=y, sample_weight=sample_weight)
    stop = begin(time_limit)
    X, y = check_rows_and_labels(X, y, **ROWS)
    job = model._job(stop)
    batch, of_all = model._problems(labelled(class_weight, X, y, sample_weight), job)
    order = np.argsort(grid, kind="stable")
    coefs = np.empty((len(grid), len(batch), X.shape[1]))
    intercepts = np.empty((len(grid), len(batch)))
    certificates: dict[int, Certificate] = {}
    path = solve_path(batch, grid[order], of_all, job)
    with ctrl_c(stop):  # also between two fits
        for at, found in zip(order, path, strict=True):
            coefs[at], intercepts[at] = batch.coef(found.w)
            certificates[at] = found.certificate
    if len(batch) == 1:
        coefs, intercepts = coefs[:, 0], intercepts[:, 0]
    ordered = [certificates[k] for k in range(len(grid))]
    warn_of_path("svm_path", grid, ordered, batch.names)
    return SVMPath(grid, coefs, intercepts, ordered)


def warn_of_path(
    name: str,
    Cs: Iterable[float],
    certificates: list[Certificate],
    names: Sequence[str],
) -> None:
    """Warn of models that did not converge."""
    found = [
        (f"C={C:g}" + (f", {of}" if len(names) > 1 else ""), part)
        for C, whole in zip(Cs, certificates, strict=True)
        for of, part in zip(names, whole.parts, strict=True)
    ]
    warn_of_models(name, found)

"""Paths of linear classifiers, also with an L1 norm: models for many values of C."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Integral
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..certificate import Certificate
from ..data.types import MatrixLike, Parameters
from ..losses import LOSSES, Vector
from ..problems.batch import Batch
from ..problems.elastic_net import least_C
from ..solvers import Solver
from ..training.batch import Job, Start, begin, solve_batch, solve_path
from ..training.fit import ctrl_c
from ..training.solution import Solutions
from .base import Estimator, warn_of_models
from .input import (
    ROWS,
    TrainingData,
    check_rows_and_labels,
    labelled,
    refuse_masks,
    refuse_store,
)
from .linear_svc import LinearSVC
from .logistic import LogisticRegression
from .parameters import ClassWeight, LossLike
from .search import grid_of

B = TypeVar("B", bound=Batch)

#: Largest C of a path with an L1 norm, as a multiple of the least one.
_REACH = 1000.0


def gaps_of(certificates: Sequence[Certificate]) -> Vector:
    """Return the relative gaps of all problems, (n_Cs, m), of one without its axis."""
    gaps = np.array([[part.relative_gap for part in c.parts] for c in certificates])
    return gaps[:, 0] if gaps.shape[1] == 1 else gaps


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
        """``(P - D)/D`` of every problem, shape (n_Cs,) or (n_Cs, m)."""
        return gaps_of(self.certificates)


def svm_path(
    X: MatrixLike,
    y: ArrayLike,
    Cs: int | ArrayLike = 10,
    *,
    loss: LossLike | Literal["logistic"] = "squared_hinge",
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
    of the previous one, scaled to the new box, which saves most of the work. With the
    logistic loss the models are :class:`LogisticRegression`, and each fit starts from
    the previous model.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows. They are not copied, as in :class:`LinearSVC`.
    y : array-like of shape (n_samples,)
        Class labels.
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C in any order; an int means that many values, evenly spaced in their
        logarithm from 1e-4 to 1e4.
    loss : {"squared_hinge", "hinge", "smoothed_hinge", "logistic"} or Loss, \
default="squared_hinge"
        Loss of :class:`LinearSVC` or :class:`LogisticRegression`.
    tol, atol, max_iter, fit_intercept, intercept_scaling, penalize_intercept, \
class_weight, random_state
        As in :class:`LinearSVC`, for every C. The logistic loss never penalises the
        intercept: it takes no `intercept_scaling`, and ignores `penalize_intercept`.
    solver : str or Solver, default="auto"
        Solver that keeps dual variables: "auto", "dcd" or "sdca". For the logistic
        loss a solver of :class:`LogisticRegression`.
    multi_class : {"ovr", "ovo"}, default="ovr"
        More than two classes are trained one versus the rest or one versus one. The
        logistic loss trains them together (softmax), as one problem.
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
    l1_path : The same with an L1 norm.

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
    if isinstance(loss, str) and loss not in (*LOSSES, "logistic"):
        *others, last = map(repr, (*LOSSES, "logistic"))
        raise ValueError(f"loss={loss!r} is unknown; use {', '.join(others)} or {last}")
    one = "LogisticRegression" if loss == "logistic" else "LinearSVC"
    refuse_store(X, "svm_path", f"fit {one}(warm_start=True) on the store, C by C")
    options: Parameters = {
        "solver": solver,
        "tol": tol,
        "atol": atol,
        "max_iter": max_iter,
        "time_limit": time_limit,
        "fit_intercept": fit_intercept,
        "class_weight": class_weight,
        "random_state": random_state,
        "n_jobs": n_jobs,
        "verbose": verbose,
    }
    model: LinearSVC | LogisticRegression
    if loss == "logistic":
        if multi_class != "ovr":
            raise ValueError(
                f"multi_class={multi_class!r} does not go with loss='logistic', which "
                "trains all classes together; leave it out"
            )
        if intercept_scaling != 1.0:
            raise ValueError(
                f"intercept_scaling={intercept_scaling!r} does not go with "
                "loss='logistic', which never penalises the intercept; leave it out"
            )
        model = LogisticRegression(**options)
    else:
        model = LinearSVC(
            loss=loss,
            intercept_scaling=intercept_scaling,
            penalize_intercept=penalize_intercept,
            multi_class=multi_class,
            **options,
        )
    model._validate_params()
    refuse_masks(X=X, y=y, sample_weight=sample_weight)
    stop = begin(time_limit)
    X, y = check_rows_and_labels(X, y, **ROWS)
    job = model._job(stop)
    data = labelled(class_weight, X, y, sample_weight)
    order = np.argsort(grid, kind="stable")
    with ctrl_c(stop):  # also between two fits
        found = list(_trained(model, data, grid[order], job))
    ordered = [found[k] for k in np.argsort(order)]
    coefs, intercepts = (np.array([one[k] for one in ordered]) for k in range(2))
    if intercepts.shape[1] == 1:
        coefs, intercepts = coefs[:, 0], intercepts[:, 0]
    certificates = [one[2] for one in ordered]
    warn_of_path("svm_path", grid, certificates)
    return SVMPath(grid, coefs, intercepts, certificates)


def _trained(
    model: LinearSVC | LogisticRegression, data: TrainingData, Cs: Vector, job: Job
) -> Iterator[tuple[ArrayLike, ArrayLike, Certificate]]:
    """Yield coefficients, intercepts and certificates for rising values of C."""
    if isinstance(model, LinearSVC):
        batch, solver = model._problems(data, job)
        for one in solve_path(batch, Cs, solver, job):
            yield *batch.coef(one.w), one.certificate
        return
    several, _ = model._problems(data, job)
    for now, one in along_models(model, several, Cs, job):
        kept = model._attributes(data, now, one.w)
        yield kept["coef_"], kept["intercept_"], one.certificate


def along_models(
    model: Estimator[B], batch: B, Cs: Vector, job: Job
) -> Iterator[tuple[B, Solutions]]:
    """Yield the problems of each C and their solutions, from the models of the last C.

    The solver is chosen for each C.
    """
    warm: Start | None = None
    for C in map(float, Cs):
        now = cast(B, batch.at(C))
        found = solve_batch(now, model._solver(now, job), job, warm, at_once=False)
        warm = _start_from(found.w)
        yield now, found


def _start_from(models: Sequence[Vector]) -> Start:
    """Return what starts each problem from the model of the last C."""
    return lambda k, _: models[k]


def warn_of_path(
    name: str, Cs: Iterable[float], certificates: list[Certificate]
) -> None:
    """Warn of models that did not converge."""
    if all(whole.certified for whole in certificates):
        return
    models = zip(Cs, certificates, strict=True)
    parts = [part for C, whole in models for part in whole.named(f"C={C:g}")]
    warn_of_models(name, [(part.name, part) for part in parts])


class L1Path(NamedTuple):
    """Result of :func:`l1_path`: one model per C, each with its certificate."""

    #: Values of C, shape (n_Cs,), in the given order.
    Cs: Vector
    #: Coefficients, shape (n_Cs, n_features); with m models (one per class or label),
    #: shape (n_Cs, m, n_features).
    coefs: Vector
    #: Intercepts, shape (n_Cs,); with m models, (n_Cs, m).
    intercepts: Vector
    #: One per C, with m parts where there are m problems.
    certificates: list[Certificate]
    #: Whether a weight is proved to be 0 in every exact optimum, in the shape of
    #: `coefs`. The other features are the certified active set.
    zeros: NDArray[np.bool_]
    #: Largest C, up to rounding, at which all weights are 0.
    least: float

    @property
    def relative_gaps(self) -> Vector:
        """``(P - D)/D`` of every problem, shape (n_Cs,) or (n_Cs, m)."""
        return gaps_of(self.certificates)


def l1_path(
    X: MatrixLike,
    y: ArrayLike,
    Cs: int | ArrayLike = 10,
    *,
    loss: Literal["squared_hinge", "logistic"] = "squared_hinge",
    l1_ratio: float = 1.0,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    time_limit: float | None = None,
    fit_intercept: bool = True,
    class_weight: ClassWeight = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> L1Path:
    """Train linear classifiers with an L1 norm for many values of C.

    The values are trained in increasing order, each from the last model. The gap of a
    model proves which weights are 0 at the exact optimum.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows.
    y : array-like of shape (n_samples,) or (n_samples, n_labels)
        Classes, or a table of 0 and 1 with a column per label.
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C in any order; an int means that many values, evenly spaced in their
        logarithm from the least one with a nonzero weight to 1,000 times as much.
    loss : {"squared_hinge", "logistic"}, default="squared_hinge"
        Loss of ``LinearSVC(penalty="l1")``, or of ``LogisticRegression``.
    l1_ratio : float, default=1.0
        Share of the L1 norm in the penalty, above 0; other values than 1 need the
        logistic loss.
    tol, max_iter, fit_intercept, class_weight, n_jobs, verbose
        As in :class:`LinearSVC`, for every C.
    time_limit : float, optional
        Seconds for the whole path.
    sample_weight : array-like of shape (n_samples,), optional
        Factors of C.

    Returns
    -------
    L1Path
        Named tuple ``(Cs, coefs, intercepts, certificates, zeros, least)``.

    Raises
    ------
    ValueError
        If an argument is invalid, or no feature has to do with y.

    Warns
    -----
    ConvergenceWarning
        If a model did not reach `tol`.

    See Also
    --------
    svm_path : The same for the squared norm.
    sklearn.svm.l1_min_c : The least C of two classes, without weights.

    Notes
    -----
    The squared hinge penalises the intercept, the logistic loss does not, as in the
    two estimators. For the squared hinge `least` counts the intercept as a weight.

    References
    ----------
    E. Ndiaye, O. Fercoq, A. Gramfort, J. Salmon, "Gap safe screening rules for sparsity
    enforcing penalties", JMLR 18, 2017.

    Examples
    --------
    >>> from dualgap.model_selection import l1_path
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = l1_path(scale(X), y, Cs=3, tol=1e-6)
    >>> (path.coefs != 0).sum(axis=1), path.zeros.sum(axis=1)
    (array([ 0, 10, 19]), array([29, 20, 11]))
    """
    if loss not in ("squared_hinge", "logistic"):
        raise ValueError(f"loss={loss!r} is unknown; use 'squared_hinge' or 'logistic'")
    number = isinstance(l1_ratio, (int, float, np.floating)) and 0.0 < l1_ratio <= 1.0
    if not number or (loss == "squared_hinge" and l1_ratio != 1.0):
        remedy = "1" if loss == "squared_hinge" else "a number above 0, up to 1"
        raise ValueError(f"l1_ratio={l1_ratio!r} does not go with {loss}; use {remedy}")
    model: Any = LinearSVC(penalty="l1")
    if loss == "logistic":
        model = LogisticRegression(l1_ratio=l1_ratio)
    model.set_params(
        tol=tol,
        max_iter=max_iter,
        time_limit=time_limit,
        fit_intercept=fit_intercept,
        class_weight=class_weight,
        n_jobs=n_jobs,
        verbose=verbose,
    )
    model._validate_params()
    grid = grid_of(Cs)
    stop = begin(time_limit)
    data = model._read(X, y, sample_weight)
    job = model._job(stop)
    batch, _ = model._problems(data, job)
    least = min(least_C(batch.problem(k)) for k in range(len(batch)))
    if isinstance(Cs, (int, Integral)):
        grid = least * np.geomspace(1.0, _REACH, len(grid))
    order = np.argsort(grid, kind="stable")
    coefs, intercepts, certificates, zeros = [], [], [], []
    with ctrl_c(stop):  # also between two fits
        for now, found in along_models(model, batch, grid[order], job):
            certificates.append(found.certificate)
            kept = model._attributes(data, now, found.w)
            coefs.append(kept["coef_"])
            intercepts.append(kept["intercept_"])
            own = [now.problem(k).zeros(w) for k, w in enumerate(found.w)]
            left = ~np.concatenate(own)[:, : now.problem(0).d]
            zeros.append(batch.columns.spread(left.astype(float)) == 0.0)
    given = np.argsort(order)
    tables = [np.array(each)[given] for each in (coefs, intercepts, zeros)]
    if tables[1].shape[1] == 1:
        tables = [table[:, 0] for table in tables]
    ordered = [certificates[k] for k in given]
    warn_of_path("l1_path", grid, ordered)
    return L1Path(grid, tables[0], tables[1], ordered, tables[2], least)

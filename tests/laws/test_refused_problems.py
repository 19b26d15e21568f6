"""One table of refusals below the estimators: of problems, solvers, kernels, losses."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap.certificate import Certificate
from dualgap.kernel import (
    KERNEL_SOLVERS,
    RBF,
    SWAP,
    BlockSolver,
    Gram,
    KernelOneClass,
    KernelPegasos,
    KernelProblem,
    KernelRegression,
    KernelSimplex,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    get_kernel_solver,
)
from dualgap.kernels.gram import Pairs
from dualgap.losses import Hinge, SquaredEpsilonInsensitive, get_loss
from dualgap.problems import BinaryProblem, OneClassProblem, RegressionProblem
from dualgap.problems.crammer_singer import CrammerSingerProblem
from dualgap.problems.kernel_nu import NuClassification
from dualgap.problems.logistic import LogisticProblem
from dualgap.solvers import (
    DCD,
    SOLVERS,
    InteriorPoint,
    LogisticDCD,
    Pegasos,
    SequentialDual,
    SmoothingNewton,
    get_solver,
)
from dualgap.solvers.newton import ResidualNewton
from dualgap.solvers.regression import PairDescent, RegressionDCD
from dualgap.solvers.regression_interior import RegressionInterior
from dualgap.solvers.smoothing_regression import SmoothingRegression
from dualgap.training import solve

from .subjects import NAMES, X

INF, NAN = math.inf, math.nan
SIGNS, TARGET = np.where(NAMES == "ant", 1, -1), X[:, 0] + np.sin(X[:, 1])
CODES = np.unique(NAMES, return_inverse=True)[1]
KERNEL = RBF(0.5)
FREE = {"fit_intercept": True, "penalize_intercept": False}
INDEFINITE = np.diag([1.0, -1.0])


def binary(**options: Any) -> BinaryProblem:
    return BinaryProblem(X, SIGNS, **options)


def regression(**options: Any) -> RegressionProblem:
    return RegressionProblem(X, TARGET, **options)


def wide(columns: int, **options: Any) -> RegressionProblem:
    return RegressionProblem(sparse.csr_matrix((3, columns)), TARGET[:3], **options)


def joint() -> CrammerSingerProblem:
    return CrammerSingerProblem(BinaryProblem(X, np.ones(90)), CODES, 3)


def kernel(y: Any = SIGNS, **options: Any) -> KernelProblem:
    return KernelProblem(X, y, **({"kernel": KERNEL} | options))


def tubes(**options: Any) -> KernelRegression:
    return KernelRegression(X, TARGET, **({"kernel": KERNEL} | options))


#: Problems, solvers that cannot train them, and words of the answer.
PAIRS: list[tuple[Callable[..., Any], Any, str]] = [
    (regression, PairDescent(), r"is for [\w-]+ problems, got a"),
    (partial(OneClassProblem, X), RegressionDCD(), r"is for [\w-]+ problems, got a"),
    (binary, RegressionDCD(), r"is for [\w-]+ problems, got a"),
    (regression, DCD(),
     "for regression use 'dcd', 'interior-point', 'newton', 'smoothing-newton'$"),
    (partial(OneClassProblem, X), DCD(),
     "for one-class use 'interior-point', 'pairs'$"),
    (partial(OneClassProblem, X), ResidualNewton(), "is for regression problems"),
    (partial(wide, 10_001, loss=SquaredEpsilonInsensitive()), ResidualNewton("factor"),
     "10001 features"),
    (partial(regression, loss=SquaredEpsilonInsensitive()), RegressionInterior(),
     "use solver='dcd' or 'newton' for it"),
    (partial(wide, 3000), RegressionInterior(), "3000 features, more than 2000; use"),
    (partial(wide, 3000), SmoothingRegression(), "3000 features, more than 2500; use"),
    (partial(BinaryProblem, sparse.csr_matrix((2, 3000)), [1, -1]), InteriorPoint(),
     r"max_features=2500.*solver='dcd'"),
    (binary, SmoothingNewton(max_features=5), "max_features=5; use solver='dcd'"),
    (partial(binary, **FREE), DCD(acceleration="conjugate"), "penalize_intercept=True"),
    (binary, Pegasos(batch_size=91), "batch_size=91.*90"),
    (binary, Pegasos(bias="search"), "is for penalize_intercept=False"),
    (partial(binary, fit_intercept=True), Pegasos(bias="search"),
     "is for penalize_intercept=False"),
    (partial(binary, **FREE), Pegasos(), r"Pegasos\(bias='search'\)"),
    (partial(LogisticProblem, X, CODES), LogisticDCD(),
     "there are 3 classes; use solver='newton'"),
    (partial(binary, loss="squared_hinge"), SWAP(), "is for kernel and kernel-simplex"),
    (partial(kernel, loss="hinge"), SWAP(), "'hinge': solver='swap' .*squared_hinge"),
    (partial(kernel, penalize_intercept=False), SWAP(),
     "penalize_intercept=False: solver='swap'"),
    (partial(kernel, loss="hinge"), BlockSolver(),
     "penalize_intercept=True: solver='block'"),
    (partial(kernel, loss="smoothed_hinge"), BlockSolver(), "smoothed_hinge"),
    (kernel, KernelPegasos(batch_size=91), "batch_size=91 is more than the 90 rows"),
    (tubes, SWAP(), "for kernel-regression use 'auto', 'block'"),
    *((partial(kernel, fit_intercept=False), get_kernel_solver(name),
       "fit_intercept=False: solver='.*' needs a bias; use solver='kernel-pegasos'")
      for name in sorted(KERNEL_SOLVERS.keys() - {"kernel-pegasos"})),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(("make", "solver", "words"), PAIRS)
def test_solvers_that_do_not_fit(make: Any, solver: Any, words: str) -> None:
    problem = make()
    with pytest.raises(ValueError, match=words):
        solve(problem, solver)


#: Options of `solve` that are refused before any work, and how the answer begins.
OPTIONS: list[tuple[str, list[Any], str]] = [
    (
        "tol",
        [0.0, -1e-3, NAN, INF],
        "is out of range; give a positive relative gap",
    ),
    ("atol", [-1e-3, NAN, INF], "is out of range; give a positive gap P - D"),
    ("max_iter", [0, -5], "is too small; give 1 or more"),
    ("check_every", [0], "is too small; give 1 or more, or None"),
    ("max_iter", [NAN], "is not a whole number"),
    ("check_every", [NAN], "is not a whole number"),
    ("time_limit", [0.0, -1, NAN], "is not positive; give seconds, or None"),
    (
        "random_state",
        [-1, 2**64, 0.5, None],
        "is not a seed; give an integer from 0 to",
    ),
]


@pytest.mark.cases(None)
@pytest.mark.parametrize(("name", "values", "words"), OPTIONS)
def test_limits(
    name: str, values: list[Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(DCD, "start", None)
    for value in values:
        with pytest.raises(ValueError, match=f"^{name}={value} {words}"):
            solve(binary(), DCD(), **{name: value})


#: Calls, and words of the answer.
CALLS: dict[type[Exception], list[tuple[Callable[[], object], str]]] = {
    ValueError: [
        # -------------------------------------------------------------- solve
        (lambda: solve(regression(), RegressionDCD(), checkpoint="nowhere"),
         "checkpoint"),
        (lambda: solve(LogisticProblem(X, SIGNS > 0), LogisticDCD(), warm=np.zeros(5)),
         "start cold"),
        (lambda: solve(LogisticProblem(X, SIGNS > 0), get_solver("newton", "logistic"),
                       warm=np.zeros(5)), "start cold"),
        (lambda: solve(joint(), SequentialDual(), warm=np.zeros(3)), "shape"),
        (lambda: solve(joint(), SequentialDual(), warm=np.full(270, NAN)),
         "not finite"),
        *((lambda wrong=wrong: get_solver(wrong), "solver=" + re.escape(repr(wrong)))
          for wrong in ("nwton", "DCD", "", None, 3, ["dcd"], DCD)),
        *((lambda name=name: get_solver("nwton"), repr(name)) for name in SOLVERS),
        # -------------------------------------------------------------- problems
        *((lambda nu=nu: OneClassProblem(X, nu), "nu=")
          for nu in (0.0, 1.5, -1.0, NAN, "half")),
        (lambda: regression(loss="hinge"), "unknown"),
        (lambda: RegressionProblem(X, np.where(TARGET == TARGET[3], INF, TARGET)),
         "finite"),
        (lambda: binary(penalize_intercept=False), "needs fit_intercept=True"),
        (lambda: binary(intercept_scaling=2.0, **FREE),
         r"intercept_scaling=2\.0 has no effect"),
        (lambda: LogisticProblem(X, np.ones(90, int), 3.0, fit_intercept=True),
         "class 0 has no row with a positive weight"),
        (lambda: LogisticProblem(np.eye(2), [0, 2], classes=2),
         "number the 2 classes from 0"),
        (lambda: LogisticProblem(np.eye(2), [0, 1, 1]), "give one class per row"),
        (lambda: NuClassification(X, SIGNS, 0.99, kernel=Linear()),
         "infeasible: twice"),
        (lambda: kernel(fit_intercept=False).certify_model(np.ones(90), 0.5),
         r"bias=0.5, but the problem has no bias"),
        (lambda: kernel(fit_intercept=False, penalize_intercept=False),
         "penalize_intercept=False needs an intercept"),
        (lambda: kernel(kernel=None), "give a kernel"),
        (lambda: KernelProblem(Gram(X, Linear()), SIGNS, kernel=Linear()),
         "has its kernel already"),
        (lambda: kernel().certify(-np.ones(90)), r"alpha\[0\]=-1.0"),
        (lambda: kernel(sample_weight=np.arange(90.0)).certify(np.eye(90)[0]),
         r"alpha\[0\]=1.0"),
        (lambda: kernel().certify([0.0, 1.0]), "shape"),
        (lambda: KernelProblem(np.eye(4) + np.eye(4, k=1), [1, -1, 1, -1],
                               kernel=Precomputed()), "not symmetric"),
        (lambda: tubes(kernel=None), "give a kernel"),
        (lambda: tubes(epsilon=-1.0), "epsilon="),
        *((lambda make=make: make().certify(alpha=np.full(90, 2.0)), "outside its box")
          for make in (tubes, regression)),
        (lambda: KernelOneClass(tubes().gram, kernel=KERNEL), "has its kernel already"),
        (lambda: KernelOneClass(X, 0.0, kernel=KERNEL), "nu="),
        (lambda: KernelOneClass(INDEFINITE, kernel=Precomputed()), "indefinite"),
        (lambda: KernelSimplex(INDEFINITE, kernel=Precomputed()), "indefinite"),
        (lambda: KernelSimplex(np.identity(4), np.ones(3), kernel=Precomputed()),
         r"linear: .*\(4,\)|shape"),
        # -------------------------------------------------------------- kernels
        (lambda: RBF(0.0), "gamma=0.0"),
        (lambda: RBF("wide"), "gamma='wide'"),
        (lambda: Laplacian(INF), "gamma=inf"),
        (lambda: Polynomial(0), "degree=0"),
        (lambda: Polynomial(2.5), "degree=2.5"),
        (lambda: Polynomial(coef0=NAN), "coef0=nan"),
        (lambda: Sigmoid(coef0="1"), "coef0='1'"),
        (lambda: Linear().block(np.ones((2, 2)), [0], dtype=int), "dtype"),
        (lambda: Gram(X, Linear(), cache_size=1e-4),
         "cache_size=0.0001 does not hold two rows"),
        *((lambda size=size: Gram(X, Linear(), cache_size=size), "cache_size")
          for size in (0, -1, "much")),
        (lambda: Pairs(np.ones((1000, 2)), Linear(), [0, 400, 1000], cache_size=0.02,
                       threads=3),
         "two rows of 1000 values for each of 3 threads; give 1 or more"),
        *((lambda rows=rows: Gram(X, Linear()).subset(rows), "indices")
          for rows in ([], [1000], [-1], [0.5], [[1]])),
        (lambda: Gram(np.array([[NAN]]), Linear()), "NaN"),
        (lambda: Gram(np.array([[1e25], [-1e25]]), Linear()), "range of float32"),
        (lambda: Gram(np.zeros((0, 2)), Linear()), "0 rows"),
        # -------------------------------------------------------------- losses
        *((lambda name=name: get_loss(name), "^loss=.*is unknown; use one of 'hinge'")
          for name in ("log", "Hinge", "", None, 3, ["hinge"], Hinge)),
    ],
    TypeError: [
        (lambda: solve(binary(), "dcd"),
         r"solver='dcd' is not .*dualgap\.solvers\.SOLVERS\['dcd'\]"),
        (lambda: solve(binary(), SIGNS), "^solver of type ndarray is not a "),
        (lambda: solve(np.ones((3, 2)), DCD()),
         "problem of type ndarray is not a problem; make"),
        (lambda: solve("iris", DCD()), "problem='iris' is not a problem; make"),
        (lambda: DCD(max_steps=5), "max_steps"),
        (lambda: Gram([[1.0]], Linear()), "list"),
        *((make, r"made by a proof, .*problem\.certify\(\.\.\.\)") for make in (
            lambda: Certificate(primal=1.0, dual=1.0), lambda: Certificate(1.0, 1.0),
            lambda: Certificate((1.0, 1.0, 0.0)),
            lambda: Certificate(bounds=1.0, epochs=3))),
    ],
}  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("error", "call", "words"),
    [(error, *row) for error, rows in CALLS.items() for row in rows],
)
def test_calls(error: Any, call: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        call()

"""Small problems in every layout, and the arrays that their twins see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.losses import Hinge, Loss, SmoothedHinge, SquaredHinge
from dualgap.problems import BinaryProblem as Problem
from dualgap.training.batch import Job

from ..twins.objectives import Phi, dual, primal

LOSSES: dict[str, tuple[Loss, Phi]] = {
    "hinge": (Hinge(), Phi("hinge")),
    "squared_hinge": (SquaredHinge(), Phi("squared_hinge")),
    "smoothed_hinge": (SmoothedHinge(0.4), Phi("smoothed_hinge", 0.4)),
}


def job(**limits: Any) -> Job:
    """Limits of a fit."""
    usual = {"tol": 1e-3, "atol": 0.0, "max_iter": 1000, "seeds": [0]}
    return Job(**({"stop": core.Stop()} | usual | limits))


def draws(solver: Any, problem: Problem) -> bool:
    """Whether a fit of this solver begins with random numbers."""
    rng = core.Random(0)
    before = rng.state
    solver.step(solver.start(problem, rng, None), core.Stop())
    return rng.state != before


def _csr(value, index, pointer):
    def build(X):
        X = sparse.csr_matrix(X.astype(value))
        X.indices = X.indices.astype(index)
        X.indptr = X.indptr.astype(pointer)
        return X

    return build


LAYOUTS = {
    "dense-f8": lambda X: X,
    "dense-f4": lambda X: X.astype(np.float32),
    **{
        f"csr-{value}-{index}-{pointer}": _csr(value, index, pointer)
        for value in ("f8", "f4")
        for index in ("i4", "i8")
        for pointer in ("i4", "i8")
    },
}

# Constant feature, sample weights (some zero), rows without entries.
CASES = {
    "plain": (False, False, False),
    "intercept": (True, False, False),
    "weights": (False, True, False),
    "zero rows": (False, False, True),
    "everything": (True, True, True),
    "weights and zero rows": (False, True, True),
}
# Every case in the plainest layout, and every layout in the fullest case.
any_bench = pytest.mark.parametrize(
    ("case", "layout"),
    [(case, "dense-f8") for case in CASES]
    + [("everything", layout) for layout in LAYOUTS if layout != "dense-f8"],
)


@dataclass
class Bench:
    """A Problem, and the same thing in plain NumPy (constant feature in X)."""

    problem: Problem
    phi: Phi
    X: Any
    y: Any
    c: Any

    @property
    def n(self):
        return len(self.X)

    @property
    def lam(self):
        return 1.0 / self.c.sum()

    @property
    def omega(self):
        return self.c * self.n / self.c.sum()

    @property
    def mean_cost(self):
        return self.c.sum() / self.n


def make(
    case="plain", layout="dense-f8", loss="hinge", *, n=40, d=9, C=0.3, seed=0
) -> Bench:
    """n noisy rows of a planted separator; two thirds of the entries are zero."""
    intercept, weighted, hollow = CASES[case]
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    X[0] = 1.0  # a full row
    if hollow:
        X[rng.choice(np.arange(1, n), n // 10, replace=False)] = 0.0
    y = np.where(X @ rng.normal(size=d) + rng.normal(size=n) > 0.1, 1, -1)
    y[0] = -1
    weight = None
    if weighted:
        weight = rng.uniform(0.2, 3.0, size=n)
        weight[rng.choice(n, n // 8, replace=False)] = 0.0
    stored = LAYOUTS[layout](X)
    record, phi = LOSSES[loss]
    problem = Problem(
        stored, y, C, loss=record, sample_weight=weight, fit_intercept=intercept,
        intercept_scaling=0.7,
    )  # fmt: skip
    seen = stored.toarray() if sparse.issparse(stored) else stored
    seen = seen.astype(np.float64)
    if intercept:
        seen = np.column_stack([seen, np.full(n, 0.7)])
    return Bench(problem, phi, seen, y, C * (np.ones(n) if weight is None else weight))


def exact(layout, loss) -> Bench:
    """Two powers of two in every row.

    Products with them are exact, and a sum of two numbers has one order: programs that
    differ in the layout alone get the same bits, whatever instructions they are of.
    """
    rng = np.random.default_rng(4)
    X = np.zeros((40, 9))
    for row in X:
        row[rng.choice(9, 2, replace=False)] = rng.choice([-2, -1, -0.5, 0.5, 1, 2], 2)
    y = np.where(X.sum(axis=1) + rng.normal(size=40) > 0, 1, -1)
    record, phi = LOSSES[loss]
    problem = Problem(LAYOUTS[layout](X), y, 0.25, loss=record)
    return Bench(problem, phi, X, y, np.full(40, 0.25))


def with_bias(case, layout, loss, free_bias, C=0.7):
    """(bench, X, problem), with a bias that is not penalised if `free_bias`."""
    bench = make(case, layout, loss, C=C)
    if not free_bias:
        return bench, bench.X, bench.problem
    problem = Problem(
        LAYOUTS[layout](bench.X), bench.y, loss=LOSSES[loss][0],
        sample_weight=bench.c, fit_intercept=True, penalize_intercept=False,
    )  # fmt: skip
    X = np.column_stack([bench.X, np.ones(bench.n)]).astype(np.float64)
    return bench, X, problem


def some_rows(problem, chosen, fixed=None, constant=0.0, rows=None, offset=None):
    """Return rows of a problem for a solver of the core, as they are or in blocks."""
    if rows is None:
        order = np.asarray(chosen, dtype=np.uint32)
        rows = [core.chosen_rows(problem.rows, order, problem.intercept_scaling)]
    fixed = np.zeros(problem.width) if fixed is None else fixed
    y, cost = problem.y[chosen], problem.cost[chosen]
    return core.SomeRows(rows, y, cost, fixed, constant, offset)


def close(ours, theirs, rtol=1e-10):
    """The largest difference is within rtol of the largest entry."""
    ours, theirs = np.asarray(ours, float), np.asarray(theirs, float)
    assert ours.shape == theirs.shape
    error = np.max(np.abs(ours - theirs), initial=0.0)
    size = np.max(np.abs(theirs), initial=0.0)
    assert error <= rtol * size, f"differ by {error:.3g}, largest entry {size:.3g}"


def gaussians(n, d, classes, noise, dtype=np.float64, seed=0):
    """Rows of classes that overlap, and their classes."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.normal(size=(classes, d))[y] + noise * rng.normal(size=(n, d))
    return X.astype(dtype), y


def outliers(rng, n, d=6, hollow=False):
    """Return rows with zeros, targets with outliers, and weights, some of them 0."""
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.6)
    if hollow:
        X[::7] = 0.0
    y = X @ rng.normal(size=d) + 0.4 * rng.standard_t(3, size=n)
    weight = rng.uniform(0.2, 3.0, n)
    weight[rng.choice(n, max(n // 8, 1), replace=False)] = 0.0
    return X, y, weight


def odd_rows(rng, n, d, spread, odd):
    """Return rows of unlike scales, and weights, odd in the way that `odd` says."""
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-spread, spread, d)
    weight = np.ones(n)
    if odd == "zero rows":
        X[rng.random(n) < 0.5] = 0.0
    elif odd == "equal rows":
        X = X[rng.integers(0, max(n // 3, 1), n)]
    elif odd == "outlier":
        X[0] *= 1e4
    elif odd == "weights":
        weight = np.where(rng.random(n) < 0.3, 0.0, rng.uniform(0.1, 3.0, n))
    return X, weight


def bench_dual(bench, alpha):
    return dual(bench.X, bench.y, bench.c, bench.phi, alpha)


def bench_primal(bench, w):
    return primal(bench.X, bench.y, bench.c, bench.phi, w)

"""Random problems made to be nasty, and what the verifier says of every certificate."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from dualgap.certificate import Certificate
from dualgap.crammer_singer import CrammerSingerProblem
from dualgap.kernel import (
    KERNEL_SOLVERS,
    BlockSolver,
    KernelOneClass,
    KernelProblem,
    KernelRegression,
    Linear,
    Polynomial,
    Precomputed,
    get_kernel_solver,
)
from dualgap.loop import Solution, solve
from dualgap.losses import (
    EpsilonInsensitive,
    SmoothedHinge,
    SquaredEpsilonInsensitive,
)
from dualgap.problem import Problem
from dualgap.regression import OneClassProblem, RegressionProblem
from dualgap.solvers import SOLVERS, SequentialDual, get_solver
from dualgap.solvers.regression import PairDescent, RegressionDCD

from .verifier import Exact, ExactBox, ExactClasses, exact, kernel_matrix

LOSSES = ("hinge", "squared_hinge", "smoothed_hinge")
INTERCEPTS = ("none", "penalised", "free")


@dataclass
class Tally:
    """What a run has seen."""

    problems: int = 0
    refused: int = 0
    fits: Counter[str] = field(default_factory=Counter)  # by solver
    statuses: Counter[str] = field(default_factory=Counter)
    #: Sentences about certificates that are not true: there must be none.
    false: list[str] = field(default_factory=list)
    #: Gaps between the bounds and the exact values, over the room left for rounding.
    used: list[float] = field(default_factory=list)
    #: Room for rounding over P, of certificates that bound anything.
    room: list[float] = field(default_factory=list)


def rows(rng: np.random.Generator, n: int, d: int) -> Any:
    X = rng.standard_normal((n, d))
    kind = rng.integers(9)
    if kind == 0:
        X[rng.random(n) < 0.5] = 0.0
    elif kind == 1:
        X[:] = 0.0
    elif kind == 2:
        X = X[rng.integers(0, n, n)]
    elif kind == 3:
        X = X[rng.integers(0, n, n)] * rng.choice([-1.0, 1.0], (n, 1))
    elif kind == 4:
        X = X[:, :1] * X[:1]
    elif kind == 5:
        X = np.round(X)
    elif kind == 6:
        X *= 10.0 ** rng.integers(-8, 9, (n, 1))
    elif kind == 7:
        X *= 10.0 ** rng.integers(-8, 9, (1, d))
    return X


def problem(rng: np.random.Generator) -> tuple[Problem, Exact] | None:
    """A linear problem; None if it is refused, which must be with a ValueError."""
    n, d = int(rng.choice([1, 2, 3, 5, 8])), int(rng.choice([1, 2, 3, 5]))
    dtype = rng.choice([np.float32, np.float64])
    reach = 150 if dtype == np.float64 else 30
    scale = 1.0
    if rng.random() < 0.5:
        scale = 10.0 ** float(rng.uniform(-reach, reach))
    X = rows(rng, n, d)
    with np.errstate(over="ignore", under="ignore"):
        X = (X * scale).astype(dtype)
    y = rng.choice([-1, 1], n)
    if rng.random() < 0.15:
        y[:] = y[0]
    weight = None
    if rng.random() < 0.4:
        weight = rng.choice([0.0, 1.0, 0.3, 1e-8, 1e8], n)
        weight[rng.integers(n)] = 1.0
    C = 10.0 ** float(rng.uniform(-8, 8))
    loss, gamma = str(rng.choice(LOSSES)), float(rng.choice([1e-3, 0.1, 1.0, 10.0]))
    intercept = str(rng.choice(INTERCEPTS))
    constant = 0.0 if intercept == "none" else 1.0
    if intercept == "penalised":
        constant = float(rng.choice([1.0, 1e-2, 1e2, 1e-100, 1e100]))
    try:
        made = Problem(
            sparse.csr_matrix(X) if rng.random() < 0.5 else X, y, C,
            loss=SmoothedHinge(gamma) if loss == "smoothed_hinge" else loss,
            sample_weight=weight,
            fit_intercept=intercept != "none", intercept_scaling=constant or 1.0,
            penalize_intercept=intercept != "free",
        )  # fmt: skip
    except ValueError:
        return None
    free = intercept == "free"
    cost = made.cost
    for c, v in zip(cost, np.ones(n) if weight is None else weight, strict=True):
        product = Fraction(C) * Fraction(float(v))
        assert abs(Fraction(float(c)) - product) <= product / 2**53
    own = 0.0 if free else constant
    return made, Exact.linear(X, y, cost, loss, Fraction(gamma), own, free)


def given_matrix(rng: np.random.Generator) -> Any:
    """A kernel matrix that may be next to indefinite."""
    n = int(rng.choice([1, 2, 3, 5, 8]))
    X = rows(rng, n, int(rng.choice([1, 2, 3])))
    kind = rng.integers(3)
    with np.errstate(under="ignore"):
        if kind == 0:
            K = X @ X.T
        elif kind == 1:
            distances = ((X[:, None] - X[None]) ** 2).sum(axis=2)
            K = np.exp(-float(10.0 ** rng.uniform(-6, 1)) * distances)
        else:
            K = (1.0 + X @ X.T / (1.0 + np.abs(X).max() ** 2)) ** 3
    K = (K + K.T) / 2.0
    if rng.random() < 0.4:  # an eigenvalue a little below 0
        v = rng.standard_normal(n)
        size = 10.0 ** float(rng.uniform(-16, -6.5))
        K -= size * float(np.abs(K).max()) * np.outer(v, v) / float(v @ v)
        K = (K + K.T) / 2.0
    if rng.random() < 0.3:
        K = K * 10.0 ** float(rng.uniform(-100, 100))
    return K


def kernel_problem(rng: np.random.Generator) -> tuple[KernelProblem, Exact] | None:
    """Over a matrix that is given, and may be next to indefinite."""
    K = given_matrix(rng)
    n = len(K)
    y = rng.choice([-1, 1], n)
    weight = None
    if rng.random() < 0.3:
        weight = rng.choice([0.0, 1.0, 0.3, 1e-8, 1e8], n)
        weight[rng.integers(n)] = 1.0
    free = bool(rng.random() < 0.4)
    loss = "hinge" if free else str(rng.choice(["hinge", "squared_hinge"]))
    C = 10.0 ** float(rng.uniform(-8, 8))
    try:
        made = KernelProblem(
            K, y, C, kernel=Precomputed(), loss=loss, sample_weight=weight,
            penalize_intercept=not free,
        )  # fmt: skip
    except ValueError:
        return None
    return made, Exact.kernel(K, y, made.cost, loss, free, made.shift)


def computed_kernel(rng: np.random.Generator) -> tuple[Any, Any, Any]:
    """Rows, a kernel of them, and its matrix in rational numbers."""
    n, d = int(rng.choice([1, 2, 3, 5, 8])), int(rng.choice([1, 2, 3]))
    X = rows(rng, n, d)
    X = X / max(float(np.abs(X).max()), 1.0)
    kind = rng.integers(5)
    if kind == 0:  # far from the origin, and near each other
        X = 10.0 ** float(rng.uniform(0, 5)) + 10.0 ** float(rng.uniform(-8, 0)) * X
    elif kind == 1:
        X = X * 10.0 ** float(rng.uniform(-6, 6))
    gamma = float(10.0 ** rng.uniform(-4, 2))
    coef0, degree = float(rng.choice([0.0, 1.0, 30.0])), int(rng.choice([1, 2, 3]))
    name = str(rng.choice(["linear", "poly"]))
    kernel = Linear() if name == "linear" else Polynomial(degree, gamma, coef0)
    return (
        sparse.csr_matrix(X) if rng.random() < 0.3 else X,
        kernel,
        kernel_matrix(X, name, gamma, coef0, degree),
    )


def other_problem(rng: np.random.Generator) -> tuple[Any, Any, list[Any]]:
    """Regression, one class, all classes together, and kernels of rows.

    Returns
    -------
    tuple
        The problem, the exact one, and what solves it.

    Raises
    ------
    ValueError
        If the problem is refused.
    """
    kind = str(rng.choice(["svr", "plane", "classes", "kernel svr", "kernel plane",
                           "kernel"]))  # fmt: skip
    C = 10.0 ** float(rng.uniform(-6, 6))
    nu = float(rng.choice([1e-3, 0.2, 0.5, 1.0]))
    epsilon = float(rng.choice([0.0, 0.1, 3.0]))
    K: Any = None
    if kind.startswith("kernel") and (kind == "kernel" or rng.random() < 0.5):
        X, kernel, K = computed_kernel(rng)
    elif kind.startswith("kernel"):
        X, kernel = given_matrix(rng), Precomputed()
    else:
        n, d = int(rng.choice([1, 2, 3, 5, 8])), int(rng.choice([1, 2, 3, 5]))
        X = rows(rng, n, d) * 10.0 ** float(rng.uniform(-30, 30) * (rng.random() < 0.5))
        X = X.astype(rng.choice([np.float32, np.float64]))
    n = X.shape[0]
    y = rng.standard_normal(n) * 10.0 ** float(rng.uniform(-6, 6))
    if rng.random() < 0.3:
        y = np.round(y) + float(rng.choice([0.0, 1e8]))
    weight = None
    if rng.random() < 0.3:
        weight = rng.choice([0.0, 1.0, 0.3, 1e-8, 1e8], n)
        weight[rng.integers(n)] = 1.0
    held = sparse.csr_matrix(X) if rng.random() < 0.5 else X
    constant = float(rng.choice([0.0, 0.0, 1.0, 1e-2, 1e50]))
    made: Any
    if kind == "svr":
        squared = bool(rng.random() < 0.4)
        loss = (SquaredEpsilonInsensitive if squared else EpsilonInsensitive)(epsilon)
        made = RegressionProblem(
            held, y, C, loss=loss, sample_weight=weight,
            fit_intercept=constant > 0.0, intercept_scaling=constant or 1.0,
        )  # fmt: skip
        plain = Exact.linear(X, np.ones(n), made.cost, "", Fraction(1), constant, False)
        box = ExactBox(
            plain.rows, plain.gram, exact(y), plain.cost, Fraction(epsilon),
            squared=squared,
        )  # fmt: skip
        return made, box, [RegressionDCD()]
    if kind == "plane":
        made = OneClassProblem(held, nu, sample_weight=weight)
        plain = Exact.linear(X, np.ones(n), made.cost, "", Fraction(1), 0.0, False)
        box = ExactBox(
            plain.rows, plain.gram, [Fraction(0)] * n, plain.cost,
            total=Fraction(made.total), floor=Fraction(made.floor), free_bias=True,
            one_class=True,
        )  # fmt: skip
        return made, box, [PairDescent()]
    if kind == "classes":
        codes, classes = rng.integers(0, 4, n), 4
        data = Problem(
            held, np.ones(n), C, sample_weight=weight,
            fit_intercept=constant > 0.0, intercept_scaling=constant or 1.0,
        )  # fmt: skip
        made = CrammerSingerProblem(data, codes, classes)
        plain = Exact.linear(X, np.ones(n), made.cost, "", Fraction(1), constant, False)
        assert plain.rows is not None
        return (
            made,
            ExactClasses(plain.rows, codes.tolist(), plain.cost, classes),
            [SequentialDual()],
        )
    if kind == "kernel":
        free = bool(rng.random() < 0.5)
        loss = "hinge" if free else "squared_hinge"
        signs = rng.choice([-1, 1], n)
        made = KernelProblem(
            X, signs, C, kernel=kernel, loss=loss, sample_weight=weight,
            penalize_intercept=not free,
        )  # fmt: skip
        exactly = Exact.kernel(K, signs, made.cost, loss, free, made.shift)
        solvers = [get_kernel_solver(name) for name in sorted(KERNEL_SOLVERS)]
        return made, exactly, solvers
    if kind == "kernel svr":
        made = KernelRegression(
            X, y, C, kernel=kernel, epsilon=epsilon, sample_weight=weight
        )
        target = exact(y)
    else:
        made = KernelOneClass(X, nu, kernel=kernel, sample_weight=weight)
        target = [Fraction(0)] * n
    gram = [exact(row) for row in X] if K is None else K
    for i in range(n):
        gram[i][i] += Fraction(made.shift)
    box = ExactBox(
        None, gram, target, exact(made.cost), Fraction(made.epsilon),
        Fraction(made.total), Fraction(made.floor), free_bias=True,
        one_class=kind == "kernel plane",
    )  # fmt: skip
    return made, box, [BlockSolver()]


def values_of(plain: Any, found: Any) -> tuple[Fraction, Fraction | None]:
    """Exact P of a solution's model, and D of its dual point or of one like it."""
    alpha = exact(found.alpha)
    bias = Fraction(0) if found.bias is None else Fraction(found.bias)
    if isinstance(plain, ExactClasses):
        stride = -(-plain.classes // 8) * 8
        table = np.reshape(found.w, (-1, stride))
        primal = plain.primal([exact(w) for w in table.T[: plain.classes]])
        return primal, plain.dual(alpha)
    if isinstance(plain, Exact):
        if not plain.free_bias:
            bias = Fraction(0)
        return plain.primal_of_duals(alpha, bias), plain.dual(plain.balanced(alpha))
    feasible = plain.feasible(alpha)
    dual = None if feasible is None else plain.dual(feasible)
    if plain.rows is None:
        return plain.primal_of_duals(alpha, bias), dual
    return plain.primal_of(exact(found.w), bias), dual


def fit(
    made: Any, solver: Any, name: str, tol: float, epochs: int, seed: int, tally: Tally
) -> tuple[Solution | None, str]:
    """What the solver returns, None if nothing to check, and what to call it."""
    about = f"seed {seed}, {name}, tol {tol:.1e}, {epochs} epochs"
    try:
        with np.errstate(all="ignore"):
            found = solve(made, solver, tol=tol, max_epochs=epochs, random_state=seed)
    except ValueError as error:
        # Some solvers find out on the way what beyond 1000 rows is not checked.
        if "indefinite" not in str(error):
            raise
        tally.statuses["refused as indefinite"] += 1
        return None, about
    assert found.certificate.status is not None
    tally.fits[name] += 1
    tally.statuses[found.certificate.status.label] += 1
    if not (np.isfinite(found.alpha).all() and np.isfinite(found.w).all()):
        tally.false.append(f"{about}: points that are not finite")
        return None, about
    return found, about


def verify_others(seed: int, tally: Tally) -> None:
    """As `verify`, of regression, one class, many classes and kernels of rows."""
    rng = np.random.default_rng([seed, 1])
    tally.problems += 1
    try:
        with np.errstate(all="ignore"):
            made, plain, solvers = other_problem(rng)
    except ValueError:
        tally.refused += 1
        return
    claims = []
    lower, upper = None, None
    # The second time to find P* as well as may be.
    runs = [(float(10.0 ** rng.uniform(-10, -1)), int(rng.choice([1, 3, 30]))),
            (1e-13, 200)]  # fmt: skip
    for solver in solvers:
        try:
            solver.check(made)
        except ValueError:
            continue
        for tol, epochs in runs:
            name = f"{type(made).__name__} {solver.name}"
            found, about = fit(made, solver, name, tol, epochs, seed, tally)
            if found is None:
                continue
            certificate = found.certificate
            primal, dual = values_of(plain, found)
            upper = primal if upper is None else min(upper, primal)
            if dual is not None:
                lower = dual if lower is None else max(lower, dual)
            claims.append((about, certificate, primal, exact(found.alpha)))
    for about, certificate, primal, alpha in claims:
        assert upper is not None
        below = min(upper, Fraction(0)) if lower is None else lower
        for fault in faults(plain, certificate, primal, alpha, below, upper):
            tally.false.append(f"{about}: {fault}")
        if 0.0 < certificate.primal < math.inf and certificate.rounding < math.inf:
            tally.room.append(certificate.rounding / certificate.primal)


def verify(seed: int, tally: Tally) -> None:
    """Draw a problem, have every solver fit it, and check all that is claimed."""
    rng = np.random.default_rng(seed)
    kernel = rng.random() < 0.25
    drawn = kernel_problem(rng) if kernel else problem(rng)
    tally.problems += 1
    if drawn is None:
        tally.refused += 1
        return
    made, plain = drawn
    claims, points = [], []
    for name in sorted(KERNEL_SOLVERS if kernel else SOLVERS):
        solver: Any = get_kernel_solver(name) if kernel else get_solver(name)
        tol = float(10.0 ** rng.uniform(-10, -1))
        epochs = int(rng.choice([1, 3, 30]))
        try:
            solver.check(made)
        except ValueError:
            continue
        found, about = fit(made, solver, name, tol, epochs, seed, tally)
        if found is None:
            continue
        certificate = found.certificate
        alpha = exact(found.alpha)
        if kernel:
            bias = Fraction(found.bias) if plain.free_bias else Fraction(0)
            primal = plain.primal_of_duals(alpha, bias)
            points.append((None, None, alpha))
        else:
            w = exact(found.w)
            bias = w.pop() if plain.free_bias else Fraction(0)
            primal = plain.primal(w, bias)
            points.append((w, bias, alpha))
        claims.append((about, certificate, primal, alpha))
    lower, upper = plain.bracket(points)
    if claims:
        upper = min(upper, min(primal for _, _, primal, _ in claims))
    for about, certificate, primal, alpha in claims:
        for fault in faults(plain, certificate, primal, alpha, lower, upper):
            tally.false.append(f"{about}: {fault}")
        _measure(tally, plain, certificate, primal, alpha)


def faults(
    plain: Any,
    certificate: Certificate,
    primal: Fraction,
    alpha: list[Fraction],
    lower: Fraction,
    upper: Fraction,
) -> list[str]:
    """What a certificate claims and is not so; primal is the exact P of its model."""
    found = []
    above, below = certificate.primal, certificate.dual
    if math.isnan(above) or math.isnan(below):
        found.append("a bound is NaN")
        return found
    if above < math.inf and primal > Fraction(above):
        found.append(f"P is {float(primal - Fraction(above)):.2e} above {above!r}")
    if not plain.in_box(alpha):
        found.append("alpha is outside of its box")
    if below > -math.inf:
        if Fraction(below) > upper:
            found.append(f"{below!r} is above P*, by {float(Fraction(below) - upper)}")
        if not plain.free_bias and Fraction(below) > plain.dual(alpha):
            off = float(Fraction(below) - plain.dual(alpha))
            found.append(f"D is {off:.2e} below {below!r}")
    if above < math.inf and Fraction(above) < lower:
        found.append(f"{above!r} is below P*")
    if certificate.certified:
        tol = Fraction(certificate.tol)
        # P* = 0: rows of one class, and a free bias.
        known = lower > 0 or upper <= 0 or plain.floor > 0
        size = max(upper, -lower, plain.floor)
        if not (certificate.relative_gap <= certificate.tol and known):
            found.append("certified without a gap to show for it")
        # What `certified` means to who reads it, rounding of the quotient aside.
        elif primal - upper > tol * (1 + Fraction(1, 2**50)) * size:
            found.append("certified, and further from the optimum than tol")
    return found


def _measure(
    tally: Tally,
    plain: Exact,
    certificate: Certificate,
    primal: Fraction,
    alpha: list[Fraction],
) -> None:
    if plain.free_bias or not certificate.relative_gap < math.inf:
        return
    room = Fraction(certificate.rounding)
    claimed = Fraction(certificate.primal) - Fraction(certificate.dual)
    if room > 0:
        spent = claimed - (primal - plain.dual(alpha))  # what the bounds are apart
        tally.used.append(float(spent / room))
    tally.room.append(float(room / Fraction(certificate.primal)))

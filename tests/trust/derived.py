"""Random models that no solver has just returned, and what is claimed of them.

They were compressed, spanned by landmarks, learned batch by batch, or are given to
`certify`. Each function draws one problem and yields what is claimed of it, beside
exact values of P and D; `check` says what of that is false.
"""

from __future__ import annotations

import contextlib
import math
import warnings
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import sklearn.svm
from scipy import sparse

from dualgap import SVC, Certificate, LinearSVC, OneClassSVM, certify, compress
from dualgap.kernel import KernelProblem, Linear, Nystroem, Polynomial, Precomputed
from dualgap.loop import solve
from dualgap.solvers import Auto

from .verifier import Exact, ExactBox, ExactClasses, exact, kernel_matrix

ZERO = Fraction(0)


def quiet(function: Any, *args: Any, **options: Any) -> Any:
    """Without the warnings of fits that end early, and of overflow."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return function(*args, **options)


class Claim(NamedTuple):
    """A certificate, with exact values of P of its model and of D, None if unknown."""

    about: str
    certificate: Certificate
    primal: Fraction | None
    dual: Fraction | None


def check(claim: Claim) -> list[str]:
    """Say what a certificate claims and is not so."""
    about, found, primal, dual = claim
    false = []
    if math.isnan(found.primal) or math.isnan(found.dual):
        return [f"{about}: a bound is NaN"]
    if primal is not None and found.primal < math.inf and primal > found.primal:
        off = float(
            (primal - Fraction(found.primal)) / max(abs(primal), Fraction(1e-300))
        )
        false.append(f"{about}: P is above {found.primal!r}, by {off:.1e}")
    if dual is not None and found.dual > -math.inf and dual < found.dual:
        off = float((Fraction(found.dual) - dual) / max(abs(dual), Fraction(1e-300)))
        false.append(f"{about}: D is below {found.dual!r}, by {off:.1e}")
    if found.certified and not found.relative_gap <= found.tol:
        false.append(f"{about}: certified with a gap of {found.relative_gap!r}")
    return false


def linear_rows(rng: np.random.Generator) -> tuple[Any, float]:
    """Rows far from the origin, and a C."""
    if rng.random() < 0.5:
        X = 5e6 * rng.standard_normal((4, 2))
        return X, 1.0
    n, d = int(rng.integers(4, 12)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) + 10.0 ** float(rng.uniform(-1, 8))
    return X, 10.0 ** float(rng.uniform(-3, 6))


def two_classes(rng: np.random.Generator, n: int, classes: int = 2) -> Any:
    return np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])


def compressed_linear(seed: int) -> Iterator[Claim]:
    rng = np.random.default_rng(seed)
    X, C = linear_rows(rng)
    n = len(X)
    y = two_classes(rng, n)
    loss = str(rng.choice(["hinge", "squared_hinge"]))
    bias = bool(rng.random() < 0.5)
    penalised = not bias or bool(rng.random() < 0.7)
    model = LinearSVC(
        C, loss=loss, fit_intercept=bias, penalize_intercept=penalised, random_state=0,
        tol=float(10.0 ** rng.uniform(-9, -1)), max_epochs=int(rng.choice([3, 300])),
    )  # fmt: skip
    quiet(model.fit, X, y)
    gap = model.certificate_.relative_gap
    if not gap < 1e3:
        return
    tol = float(gap * rng.choice([1.0, 1.01, 2.0, 100.0]) + 1e-13)
    try:
        smaller = quiet(compress, model, X, y, tol=tol)
    except ValueError:  # the proof that it begins with may be a little looser
        return
    signs = np.where(y == 1, 1, -1)
    constant = float(bias and penalised)
    plain = Exact.linear(
        X, signs, np.full(n, C), loss, Fraction(1), constant, not penalised
    )
    w, b = exact(smaller.coef_[0]), Fraction(float(smaller.intercept_[0]))
    primal = plain.primal([*w, b]) if constant else plain.primal(w, b)
    alpha = np.zeros(n)
    alpha[smaller.support_] = np.abs(smaller.dual_coef_[0])
    dual = plain.dual(exact(alpha)) if penalised else None
    yield Claim(f"seed {seed}, {loss}", smaller.certificate_, primal, dual)


def together(seed: int) -> Iterator[Claim]:
    """Crammer and Singer's problem: `certify` of models after an epoch."""
    rng = np.random.default_rng(seed)
    n, d, classes = int(rng.integers(6, 20)), int(rng.integers(1, 5)), 3
    X = rng.standard_normal((n, d)) * 10.0 ** float(rng.uniform(-2, 2))
    y = two_classes(rng, n, classes)
    C = 10.0 ** float(rng.uniform(-2, 2))
    bias = bool(rng.random() < 0.5)
    options = {"multi_class": "crammer_singer", "fit_intercept": bias}
    if rng.random() < 0.5:
        model = LinearSVC(C, loss="hinge", max_epochs=1, random_state=0, **options)
    else:
        model = sklearn.svm.LinearSVC(C=C, max_iter=1, random_state=0, **options)
    quiet(model.fit, X, y)
    found = quiet(certify, model, X, y, tol=0.1)
    plain = Exact.linear(X, y, np.full(n, C), "", Fraction(1), float(bias), False)
    assert plain.rows is not None
    W = [exact(w) for w in model.coef_]
    if bias:
        W = [[*w, b] for w, b in zip(W, exact(model.intercept_), strict=True)]
    primal = ExactClasses(plain.rows, y.tolist(), plain.cost, classes).primal(W)
    yield Claim(f"seed {seed}", found, primal, None)


def model_value(plain: Exact, coef: Any, bias: float, penalised: bool) -> Fraction:
    """P of a kernel model with coefficients of any sign; `plain` has no bias."""
    signed = [c * y for c, y in zip(exact(coef), plain.y, strict=True)]
    b = Fraction(float(bias))
    return plain.primal_of_duals(signed, b) + (b * b / 2 if penalised else 0)


def spanned(seed: int) -> Iterator[Claim]:
    """A bound of Nystroem on the kernel problem, and `certify` of the estimator."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(6, 31)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) + float(rng.uniform(0, 1e3))
    y = two_classes(rng, n)
    C = 10.0 ** float(rng.uniform(-2, 5))
    loss = str(rng.choice(["hinge", "squared_hinge"]))
    penalised, signs = loss != "hinge", np.where(y == 1, 1, -1)
    plain = Exact.kernel(
        kernel_matrix(X, "linear", 1.0, 0.0, 1), signs, np.full(n, C), loss, True, 0.0
    )
    problem = KernelProblem(
        X, signs, C, kernel=Linear(), loss=loss, penalize_intercept=penalised
    )
    features = Nystroem(n // 2).approximate(problem)
    solution = quiet(solve, features, Auto(), tol=1e-3, max_epochs=100)
    found = features.bound(solution.w, solution.alpha)
    primal = model_value(plain, *features.expand(solution.w), penalised)
    best = primal
    for solver in ("nystroem", "auto"):
        model = SVC(
            C, kernel="linear", loss=loss, random_state=0, max_epochs=200,
            solver=Nystroem(n // 2) if solver == "nystroem" else solver,
        )  # fmt: skip
        quiet(model.fit, X, y)
        coef = np.zeros(n)
        coef[model.support_] = model.dual_coef_[0]
        value = model_value(plain, coef, model.intercept_[0], penalised)
        best = min(best, value)
        proof = quiet(certify, model, X, y, time_limit=1e-9)
        yield Claim(f"seed {seed}, certify {solver}", proof, value, None)
    yield Claim(f"seed {seed}, {loss}", found, primal, best)


def compressed_kernel(seed: int) -> Iterator[Claim]:
    """Over a given matrix whose least eigenvalue is a little below 0."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(5, 16))
    A = rng.standard_normal((n, int(rng.integers(1, n))))
    K = A @ A.T
    v = rng.standard_normal(n)
    K -= (
        float(rng.choice([4e-7, 1e-8]))
        * np.linalg.norm(K, 2)
        * np.outer(v, v)
        / (v @ v)
    )
    K = (K + K.T) / 2.0
    y = two_classes(rng, n)
    C = 10.0 ** float(rng.uniform(-2, 6))
    loss = str(rng.choice(["hinge", "squared_hinge"]))
    model = SVC(
        C, kernel="precomputed", loss=loss, tol=1e-6, random_state=0, max_epochs=500
    )
    try:
        quiet(model.fit, K, y)
        gap = model.certificate_.relative_gap
        if not gap < 1e3:
            return
        tol = float(max(2.0 * gap, rng.choice([1e-3, 0.1, 0.5])))
        smaller = quiet(compress, model, K, y, tol=tol)
    except ValueError as error:
        if "indefinite" not in str(error) and "as it is" not in str(error):
            raise
        return
    signs, penalised = np.where(y == 1, 1, -1), loss != "hinge"
    problem = KernelProblem(K, signs, C, kernel=Precomputed(), loss=loss)
    plain = Exact.kernel(K, signs, problem.cost, loss, True, problem.shift)
    coef = np.zeros(n)
    coef[smaller.support_] = smaller.dual_coef_[0]
    primal = model_value(plain, coef, smaller.intercept_[0], penalised)
    alpha = np.zeros(n)
    alpha[model.support_] = np.abs(model.dual_coef_[0])
    whole = Exact.kernel(K, signs, problem.cost, loss, not penalised, problem.shift)
    dual = whole.dual(exact(alpha)) if penalised else None
    yield Claim(f"seed {seed}, {loss}", smaller.certificate_, primal, dual)


def one_class(seed: int) -> Iterator[Claim]:
    """Kernel values that underflow, in full or in part."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) * 10.0 ** float(rng.uniform(-172, -150))
    if rng.random() < 0.3:
        X[rng.random(n) < 0.5] *= 1e6
    name, gamma, coef0, degree = "linear", 1.0, 0.0, 1
    if rng.random() < 0.5:
        name, degree = "poly", int(rng.choice([1, 2, 3]))
        gamma = 10.0 ** float(rng.uniform(-3, 120))
    kernel = Linear() if name == "linear" else Polynomial(degree, gamma, coef0)
    nu = float(rng.choice([0.1, 0.5, 0.9, 1.0]))
    theirs = sklearn.svm.OneClassSVM(
        kernel=name, nu=nu, gamma=gamma, degree=degree, coef0=coef0
    )
    total = Fraction(nu * n)  # the float64 number, as documented
    K = kernel_matrix(X, name, gamma, coef0, degree)
    plain = ExactBox(
        None, K, [ZERO] * n, [Fraction(1)] * n, total=total, free_bias=True,
        one_class=True,
    )  # fmt: skip
    held = sparse.csr_matrix(X) if rng.random() < 0.3 else X
    own = OneClassSVM(kernel=kernel, nu=nu, tol=1e-6, random_state=0)
    models: list[Any] = [quiet(own.fit, held)]
    with contextlib.suppress(ValueError):  # LIBSVM ends in NaN on some of these
        models.append(quiet(theirs.fit, X))
    for model in models:
        coef = np.zeros(n)
        coef[model.support_] = np.ravel(model.dual_coef_)
        alpha, bias = exact(coef), Fraction(float(model.intercept_[0]))
        primal = plain.primal_of_duals(alpha, bias)
        # P of the zero model is 0, and no lower bound is above that.
        feasible = sum(alpha) == total and plain.in_box(alpha)
        dual = plain.dual(alpha) if feasible else min(primal, ZERO)
        proof = quiet(certify, model, X)
        yield Claim(f"seed {seed}, certify {name}", proof, primal, None)
        if model is own:
            yield Claim(f"seed {seed}, {name}", own.certificate_, primal, dual)


def streamed(seed: int) -> Iterator[Claim]:
    """The dual value after every call of partial_fit."""
    rng = np.random.default_rng(seed)
    loss = str(rng.choice(["hinge", "squared_hinge"]))
    C, d = 10.0 ** float(rng.uniform(-3, 3)), int(rng.integers(1, 5))
    offset = float(rng.choice([0.0, 10.0, 1e4]))
    bias = bool(rng.random() < 0.5)
    parts = []
    for _ in range(int(rng.integers(2, 5))):
        n = int(rng.integers(1, 12))
        parts.append((rng.standard_normal((n, d)) + offset, rng.integers(0, 2, n)))
    order = [*range(len(parts)), *rng.integers(0, len(parts), 4)]
    model = LinearSVC(C, loss=loss, fit_intercept=bias, random_state=0)
    seen: list[int] = []
    for k in order:
        quiet(model.partial_fit, *parts[k], classes=[0, 1])
        if k not in seen:
            seen.append(k)
        alphas = [batch.alpha[0] for batch in model._stream.batches.values()]
        X = np.vstack([parts[j][0] for j in seen])
        y = np.where(np.concatenate([parts[j][1] for j in seen]) == 1, 1, -1)
        alpha = np.concatenate(alphas)
        plain = Exact.linear(
            X, y, np.full(len(y), C), loss, Fraction(1), float(bias), False
        )
        assert plain.in_box(exact(alpha))
        dual = plain.dual(exact(alpha))
        yield Claim(f"seed {seed}, {loss}", model.certificate_, None, dual)


def regression(seed: int) -> Iterator[Claim]:
    """Coefficients with a bias that is not penalised."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    size = float(rng.choice([1.0, 1e3, 1e100, 1e147]))
    X = rng.standard_normal((n, d)) * size
    y = rng.standard_normal(n) + float(rng.choice([0.0, 1e8]))
    C = 10.0 ** float(rng.uniform(-6, 6))
    w = rng.standard_normal(d) * float(rng.choice([0.0, 1.0, 1e-3])) / size
    bias = float(rng.standard_normal() * rng.choice([0.0, 1.0, 1e8, 1e15]))
    epsilon = float(rng.choice([0.0, 0.1]))
    squared = size > 1e18 or bool(rng.random() < 0.5)  # else float32 refuses the rows
    name = "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
    found = quiet(
        certify, w, X, y, C, loss=name, epsilon=epsilon, intercept=bias,
        penalize_intercept=False, time_limit=0.02, random_state=0,
    )  # fmt: skip
    rows = [exact(x) for x in X]
    plain = ExactBox(
        rows, [], exact(y), [Fraction(C)] * n, Fraction(epsilon), squared=squared
    )
    primal = plain.primal_of(exact(w), Fraction(bias))
    # Of the zero model, with the median for its bias: it bounds D.
    best = plain.primal_of([ZERO] * d, Fraction(float(np.median(y))))
    yield Claim(f"seed {seed}, {name}", found, primal, min(primal, best))


def plane(seed: int) -> Iterator[Claim]:
    """Any coefficients and any rho of a linear one-class problem."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(1, 9)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) * 10.0 ** float(rng.uniform(-150, 100))
    X += float(rng.choice([0.0, 1.0])) * np.abs(X).max()
    nu = float(rng.choice([0.1, 0.5, 1.0]))
    rows, total = [exact(x) for x in X], Fraction(nu * n)
    plain = ExactBox(
        rows, [], [ZERO] * n, [Fraction(1)] * n, total=total, free_bias=True,
        one_class=True,
    )  # fmt: skip
    w = X[0] * float(rng.choice([1.0, 0.3, 1e-3])) * rng.random()
    rho = float(X[0] @ w) * float(rng.choice([0.0, 1.0, -1.0, 3.0, 1e15]))
    found = quiet(certify, w, X, nu=nu, intercept=-rho, time_limit=0.02)
    primal = plain.primal_of(exact(w), Fraction(-rho))
    # P of the zero model is 0.
    yield Claim(f"seed {seed}", found, primal, min(primal, ZERO))


KINDS = {
    "compress, linear": compressed_linear,
    "compress, kernel": compressed_kernel,
    "certify, Crammer and Singer": together,
    "landmarks": spanned,
    "one class, underflow": one_class,
    "batches": streamed,
    "certify, regression with a free bias": regression,
    "certify, linear one class": plane,
}

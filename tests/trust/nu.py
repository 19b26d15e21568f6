"""NuSVC and NuSVR on nasty problems, in exact numbers."""

from __future__ import annotations

import functools
import math
from fractions import Fraction
from typing import Any

import numpy as np
import sklearn.svm

import dualgap
from dualgap import certify

from .attacks import (
    PATIENCE,
    Group,
    KernelRun,
    RefusedError,
    attack,
    dense,
    first,
    rational_kernel,
    spread,
)
from .nasty import Rng, draw
from .verifier import Claim, Exact, Kernel


class NuSVM:
    """P and D of one problem; the optimum is known by the best points alone.

    Attributes
    ----------
    points : Kernel
    signs : array of shape (n,) or None
        Labels -1 and +1, or None for a regression.
    target, cost : array of shape (n,)
    half : float
        What the positive and the negative dual variables add up to.
    """

    bias, small = "free", False

    def __init__(
        self, points: Kernel, signs: Any, target: Any, cost: Any, half: float
    ) -> None:
        self.points, self.signs = points, signs
        self.target, self.cost = Exact.of(target), Exact.of(cost)
        self.costs, self.half = self.cost.fractions(), Fraction(half)

    def primal(self, model: Any, bias: Any) -> Fraction:
        """Return the least P of the multiples of a classifier, or of all epsilon."""
        norm, scores = self.points.model(Exact.of(model))
        if self.signs is None:
            off = abs(self.target - scores - bias).fractions()
            return norm / 2 + min(self._tube(off, e) for e in [Fraction(0), *off])
        margins = (Exact.of(self.signs) * (scores + bias)).fractions()
        gain = max(self._gain(margins, rho) for rho in margins)
        if gain <= 0:
            return Fraction(0)
        assert norm > 0, "P has no lower bound"
        return -gain * gain / (2 * norm)

    def _tube(self, off: list[Fraction], epsilon: Fraction) -> Fraction:
        lost = (c * max(v - epsilon, 0) for c, v in zip(self.costs, off, strict=True))
        return 2 * self.half * epsilon + sum(lost, Fraction(0))

    def _gain(self, margins: list[Fraction], rho: Fraction) -> Fraction:
        lost = (c * max(rho - m, 0) for c, m in zip(self.costs, margins, strict=True))
        return 2 * self.half * rho - sum(lost, Fraction(0))

    def unknown(self, *model: Any) -> Fraction:
        return Fraction(0)

    unknown_dual = unknown

    def dual(self, duals: Any) -> Fraction:
        a = Exact.of(duals)
        return (self.target @ a).fraction() - self.points.norm(a) / 2

    def in_box(self, duals: Any) -> bool:
        a = Exact.of(duals)
        if self.signs is not None:  # divided by rho
            return not ((Exact.of(self.signs) * a).digits < 0).any()
        return not abs(a).above(self.cost).any()

    def feasible(self, duals: Any) -> Exact | None:
        """Return duals whose two sums are right, or None if the box has none."""
        a = Exact.of(duals).fractions()
        total = sum(map(abs, a), Fraction(0))
        if self.signs is not None and total:
            a = [2 * self.half / total * v for v in a]
            a = [max(min(v, c), -c) for v, c in zip(a, self.costs, strict=True)]
        room = [c if s > 0 else Fraction(0) for c, s in self._of(1)]
        below = [c if s < 0 else Fraction(0) for c, s in self._of(-1)]
        up = [max(v, Fraction(0)) for v in a]
        down = [max(-v, Fraction(0)) for v in a]
        wanted = self.half
        if self.signs is None:  # rows with both variables make up for the rest
            wanted = min(sum(up), sum(down), self.half)
        for part, most in ((up, room), (down, below)):
            off = sum(part, Fraction(0)) - wanted
            for i in sorted(range(len(part)), key=lambda i: -part[i]):
                end = Fraction(0) if off > 0 else most[i]
                move = max(end - part[i], -off) if off > 0 else min(end - part[i], -off)
                part[i] += move
                off += move
            if off:
                return None
        return Exact.vector([u - d for u, d in zip(up, down, strict=True)])

    def _of(self, side: int) -> list[tuple[Fraction, int]]:
        signs = self.signs
        every = (
            [side] * len(self.costs) if signs is None else np.asarray(signs).tolist()
        )
        return list(zip(self.costs, every, strict=True))


def half_of(nu: float, costs: list[Any], halves: list[Any]) -> float:
    """Return half of nu times the costs, at most what each of `halves` adds up to."""
    half = 0.5 * nu * math.fsum(costs)
    while any(math.fsum([*one, -half]) < 0.0 for one in halves):
        half = math.nextafter(half, 0.0)
    return half


def told(n: int, what: str, model: Any, certificate: Any = None) -> Claim:
    """Claim of an estimator of one problem; a classifier was divided by rho."""
    coef = np.ravel(spread(n, model.support_, dense(model.dual_coef_)))
    said = coef, float(model.intercept_[0])
    if certificate is not None:
        return Claim(what, certificate, said)
    return Claim(what, model.certificate_, said, coef)


def problem(rng: Rng, classes: bool) -> list[Group]:
    X, kernel, K = rational_kernel(rng)
    drawn = draw(rng, X=X, reach=6.0, classes=2 if classes else 1)
    n, nu = len(drawn.X), float(rng.choice([1e-3, 0.2, 0.5, 1.0]))
    factors = np.ones(n) if drawn.weight is None else np.asarray(drawn.weight, float)
    signs = drawn.signs if classes else None
    if classes:
        cost, target, y = factors, np.zeros(n), drawn.codes
        halves = [cost[signs == s].tolist() for s in (1, -1)]
        make = functools.partial(dualgap.NuSVC, nu)
        theirs = functools.partial(sklearn.svm.NuSVC, nu=nu)
    else:
        cost, target, y = drawn.cost, drawn.targets, drawn.targets
        halves = [(0.5 * cost).tolist()]
        make = functools.partial(dualgap.NuSVR, nu=nu, C=drawn.C)
        theirs = functools.partial(sklearn.svm.NuSVR, nu=nu, C=drawn.C)

    def posed(points: Kernel) -> NuSVM:
        half = half_of(nu, cost.tolist(), halves)
        return NuSVM(points, signs, target, cost, half)

    def fit(**options: Any) -> Any:
        model = make(kernel=kernel, random_state=drawn.seed, **options)
        return model.fit(drawn.held, y, drawn.weight)

    run, tell = KernelRun(drawn, kernel, K, posed), functools.partial(told, n)
    first(lambda: run.add("reference", lambda: fit(tol=1e-13, max_iter=300), tell))
    solver = str(rng.choice(["auto", "block"]))
    limits = {"max_iter": drawn.epochs, "tol": drawn.tol}
    models = {solver: run.add(solver, lambda: fit(solver=solver, **limits), tell)}
    name = getattr(kernel, "name", kernel)
    if drawn.weight is None and name != "laplacian":
        options = {k: getattr(kernel, k) for k in ("gamma", "coef0", "degree")
                   if hasattr(kernel, k)}  # fmt: skip
        try:
            given = drawn.X if kernel == "precomputed" else drawn.held
            other = theirs(kernel=name, max_iter=1000, **options).fit(given, y)
        except ValueError as error:
            raise RefusedError from error  # by scikit-learn
        if np.isfinite(dense(other.dual_coef_)).all():
            models["scikit-learn's"] = other
    for what, model in models.items():
        run.add(
            f"certify {what}",
            lambda m=model: certify(
                m, drawn.held, y, sample_weight=drawn.weight,
                random_state=drawn.seed, time_limit=PATIENCE,
            ),
            lambda what, found, m=model: told(n, what, m, found),
        )  # fmt: skip
    return run.groups()


@attack("nu-svc", "`NuSVC`, and `certify`", 500)
def nu_svc(rng: Rng) -> list[Group]:
    return problem(rng, classes=True)


@attack("nu-svr", "`NuSVR`, and `certify`", 500)
def nu_svr(rng: Rng) -> list[Group]:
    return problem(rng, classes=False)

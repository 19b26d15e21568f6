"""Logistic regression on nasty problems, against values to 100 digits."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from dualgap.problems.base import Claim as Point
from dualgap.problems.logistic import LogisticProblem
from dualgap.solvers import LogisticDCD, LogisticNewton
from dualgap.training import solve

from .attacks import Group, attack, first
from .nasty import Rng, draw
from .verifier import Claim

#: Digits of exp and ln, which Python rounds correctly. Less than 1e-3000 becomes 0.
DIGITS = Context(prec=100, Emax=10**6, Emin=-3000)
#: More than the relative error of a loss: scores are exact before they are rounded.
ERROR = Fraction(1, 10**90)


class Logistic:
    """P of logistic regression, whose D is known by the best P alone.

    P(W, b) = 1/2 sum_k ||w_k||^2 + sum_i c_i (log sum_k exp(s_ik) - s_{i,y_i})
    """

    bias, small = "free", False

    def __init__(self, X: Any, codes: Any, cost: Any) -> None:
        self.rows = [[Fraction(v) for v in row] for row in np.asarray(X, float)]
        self.codes, self.cost = [int(k) for k in codes], [Fraction(c) for c in cost]

    def primal(self, W: Any, biases: Any) -> Fraction:
        table = [[Fraction(v) for v in w] for w in np.asarray(W)]
        bias = [Fraction(b) for b in np.asarray(biases)]
        value = sum((v * v for w in table for v in w), Fraction(0)) / 2
        for x, y, c in zip(self.rows, self.codes, self.cost, strict=True):
            scores = [
                sum((p * q for p, q in zip(w, x, strict=True)), b)
                for w, b in zip(table, bias, strict=True)
            ]
            if len(scores) == 1:  # two classes
                scores.insert(0, Fraction(0))
            value += c * loss([s - scores[y] for s in scores], y)
        return value

    def unknown(self, *model: Any) -> Fraction:
        return ERROR * self.primal(*model)


def loss(lead: Sequence[Fraction], own: int) -> Fraction:
    """Return ``log(1 + sum of exp(lead))`` over the other classes."""
    most = max(lead)
    with localcontext(DIGITS):
        # Without the largest term, so that a tiny loss keeps its digits.
        parts = sorted(decimal(s - most).exp() for s in lead)[:-1]
        rest = sum(parts, Decimal(0))
        tiny = rest < Decimal(10) ** -45  # 1 + rest would lose digits
        log = rest - rest * rest / 2 if tiny else (1 + rest).ln()
        return most + Fraction(log)


def decimal(value: Fraction) -> Decimal:
    return Decimal(value.numerator) / Decimal(value.denominator)


@attack("logistic", "`LogisticRegression` of two or more classes", 1000)
def logistic(rng: Rng) -> list[Group]:
    K = int(rng.choice([2, 2, 3, 4]))
    drawn, free = draw(rng, classes=K, most=10), bool(rng.random() < 0.7)
    options = {
        "classes": K, "sample_weight": drawn.weight, "fit_intercept": free
    }  # fmt: skip

    def posed() -> LogisticProblem:
        return LogisticProblem(drawn.held, drawn.codes, drawn.C, **options)

    def told(what: str, w: Any, certificate: Any) -> Claim:
        return Claim(what, certificate, problem.coef(w))

    problem = first(posed)
    limits = {**drawn.limits, "max_iter": min(drawn.epochs, 40)}
    said = []
    for what, given in (
        ("fit", limits),
        ("reference", {"tol": 1e-13, "max_iter": 60}),
    ):
        found = solve(posed(), LogisticNewton(), **given)
        said.append(told(what, found.w, found.certificate))
    if K == 2:
        descent = solve(posed(), LogisticDCD(), **limits)
        said.append(told("descent", descent.w, descent.certificate))
        scale = 10.0 ** rng.uniform(-300, 1, problem.n) * rng.random(problem.n)
        alpha = rng.choice([0.0, 0.5, 1.0, 2.0], problem.n) * scale * problem.cost
        proof = problem.prove(Point(found.w, alpha)).certificate
        said.append(told("alpha", found.w, proof))
    w = found.w * rng.choice([1.0, 1.0 + 1e-9, 0.5, -1.0, 1e3], len(found.w))
    if rng.random() < 0.3:
        w = rng.standard_normal(len(w)) * 10.0 ** rng.uniform(-8, 8)
    if np.isfinite(w).all():
        said.append(told("point", w, problem.prove(Point(w)).certificate))
    return [(Logistic(drawn.X, drawn.codes, drawn.cost), said)]

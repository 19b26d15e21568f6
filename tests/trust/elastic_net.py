"""Linear classifiers with an L1 norm on nasty problems, in exact numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from dualgap.problems.base import Claim as Point
from dualgap.problems.elastic_net import ElasticNetProblem
from dualgap.solvers import ProximalNewton
from dualgap.training import solve

from .attacks import Group, attack, first
from .logistic import Logistic
from .nasty import Rng, draw
from .verifier import Claim


class ElasticNet(Logistic):
    """P of a linear classifier with an L1 norm; D is known by the best P alone.

    P(W, b) = sum_k r ||w_k||_1 + (1 - r)/2 ||w_k||^2 + sum_i c_i l_i, with the weight
    of a constant feature among the w_k if there is one
    """

    def __init__(
        self, X: Any, codes: Any, cost: Any, ratio: float, hinge: bool, constant: float
    ) -> None:
        super().__init__(X, codes, cost)
        self.ratio, self.hinge = Fraction(ratio), hinge
        self.constant = Fraction(constant)

    def primal(self, W: Any, biases: Any) -> Fraction:
        table = [[Fraction(v) for v in w] for w in np.asarray(W)]
        bias = [Fraction(b) for b in np.asarray(biases)]
        if self.constant:  # the last weights are of the constant feature
            bias = [self.constant * w[-1] for w in table]
        plain = [w[: len(self.rows[0])] for w in table]
        own = sum((v * v for w in plain for v in w), Fraction(0)) / 2
        penalty = sum(
            self.ratio * abs(v) + (1 - self.ratio) / 2 * v * v for w in table for v in w
        )
        if not self.hinge:
            return super().primal(plain, bias) - own + penalty
        (w,), (b,) = plain, bias
        for x, y, c in zip(self.rows, self.codes, self.cost, strict=True):
            score = sum((p * q for p, q in zip(w, x, strict=True)), b)
            short = max(1 - (score if y == 1 else -score), Fraction(0))
            penalty += c * short * short
        return penalty

    def unknown(self, *model: Any) -> Fraction:
        return Fraction(0) if self.hinge else super().unknown(*model)


@attack("elastic-net", "`LinearSVC` and `LogisticRegression` with an L1 norm", 1000)
def elastic_net(rng: Rng) -> list[Group]:
    hinge = bool(rng.random() < 0.5)
    K = 2 if hinge else int(rng.choice([2, 2, 3, 4]))
    drawn = draw(rng, classes=K, most=10)
    scaling = [None, 1.0, float(10.0 ** rng.uniform(-6, 6))][rng.integers(3)]
    bias = bool(rng.random() < 0.7)
    ratio = float(rng.choice([1.0, 1.0, 0.5, rng.random() or 0.5, 1e-6]))
    options = {
        "loss": "squared_hinge" if hinge else "logistic",
        "l1_ratio": ratio,
        "classes": K,
        "sample_weight": drawn.weight,
        "fit_intercept": bias,
        "intercept_scaling": scaling,
    }

    def posed() -> ElasticNetProblem:
        return ElasticNetProblem(drawn.held, drawn.codes, drawn.C, **options)

    problem = first(posed)
    constant = problem.passes.constant if problem.scaling else 0.0

    def told(what: str, w: Any, certificate: Any) -> Claim:
        W = problem.table(w)
        model = W if constant else W[:, : problem.d]
        return Claim(what, certificate, (model, problem.coef(w)[1]))

    limits = {**drawn.limits, "max_iter": min(drawn.epochs, 40)}
    said = []
    for what, given in (
        ("fit", limits),
        ("reference", {"tol": 1e-13, "max_iter": 60}),
    ):
        found = solve(posed(), ProximalNewton(), **given)
        said.append(told(what, found.w, found.certificate))
    w = found.w * rng.choice([1.0, 1.0 + 1e-9, 0.5, -1.0, 1e3], len(found.w))
    if rng.random() < 0.3:
        w = rng.standard_normal(len(w)) * 10.0 ** rng.uniform(-8, 8)
    if np.isfinite(w).all():
        said.append(told("point", w, problem.prove(Point(w)).certificate))
    return [
        (ElasticNet(drawn.X, drawn.codes, drawn.cost, ratio, hinge, constant), said)
    ]

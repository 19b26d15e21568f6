"""Ridge and Huber regression of scikit-learn on nasty problems, in exact numbers."""

from __future__ import annotations

from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.linear_model import HuberRegressor, Ridge, RidgeClassifier

from dualgap import certify

from .attacks import PATIENCE, Group, attack, first
from .nasty import Drawn, Rng, draw
from .verifier import SVM, Claim, Rows


class Huber:
    """P of Huber regression with its scale, whose D is known by the best P alone.

    P(w, b, s) = 1/2 ||w||^2 + sum_i c_i (s + s h(r_i / s)), h(z) = z^2 up to epsilon
    """

    bias, small = "free", False

    def __init__(self, X: Any, y: Any, cost: Any, epsilon: float) -> None:
        self.rows = [[Fraction(v) for v in row] for row in np.asarray(X, float)]
        self.targets = [Fraction(v) for v in y]
        self.cost, self.epsilon = [Fraction(c) for c in cost], Fraction(epsilon)

    def primal(self, w: Any, point: Any) -> Fraction:
        coef, (bias, scale) = [Fraction(v) for v in w], map(Fraction, point)
        value = sum((v * v for v in coef), Fraction(0)) / 2
        for x, y, c in zip(self.rows, self.targets, self.cost, strict=True):
            off = abs(y - bias - sum(p * q for p, q in zip(coef, x, strict=True)))
            inner = off <= self.epsilon * scale
            lost = self.epsilon * (2 * off - self.epsilon * scale)
            value += c * (scale + (off * off / scale if inner else lost))
        return value

    def unknown(self, *model: Any) -> Fraction:
        return Fraction(0)


def nasty(rng: Rng) -> tuple[Drawn, Any, float, dict[str, Any]]:
    """Return a problem, its targets, alpha, and the options of `certify`."""
    drawn = draw(rng, classes=2)
    if rng.random() < 0.1:
        drawn.X = drawn.X * drawn.X.dtype.type(1e22)
        drawn.held = sparse.csr_matrix(drawn.X) if rng.random() < 0.4 else drawn.X
    alpha = float(10.0 ** rng.uniform(-12, 12))
    if rng.random() < 0.2:
        alpha = float(10.0 ** rng.uniform(-120, 120))
    drawn.C = 0.5 / alpha
    y = drawn.targets.copy()
    if rng.random() < 0.3:
        y[rng.integers(len(y))] *= 10.0 ** rng.uniform(0, 12)
    limit = PATIENCE if rng.random() < 0.5 else 1e-9
    told = {
        "sample_weight": drawn.weight, "tol": drawn.tol, "time_limit": limit
    }  # fmt: skip
    return drawn, y, alpha, told


def moved(rng: Rng, model: Any, d: int) -> None:
    """Move a model, which need not be fitted, from where it is."""
    if rng.random() < 0.4:
        model.coef_ = rng.standard_normal(d) * 10.0 ** rng.uniform(-8, 8)
        model.intercept_ = float(rng.standard_normal() * 10.0 ** rng.uniform(-8, 15))
    model.coef_ = model.coef_ * rng.choice([1.0, 1.0 + 1e-9, 0.5, -1.0], d)
    if not model.fit_intercept:
        model.intercept_ = 0.0


def finite(model: Any) -> bool:
    parts = model.coef_, model.intercept_, getattr(model, "scale_", 1.0)
    return all(np.isfinite(part).all() for part in parts)


@attack("ridge", "`certify` of `Ridge` and `RidgeClassifier`", 800)
def ridge(rng: Rng) -> list[Group]:
    drawn, y, alpha, told = nasty(rng)
    free, classes = bool(rng.random() < 0.7), bool(rng.random() < 0.6)
    kind = RidgeClassifier if classes else Ridge
    given = drawn.codes if classes else y
    said = []
    for solver in ("svd", "lsqr"):
        if drawn.held is not drawn.X and solver == "svd":
            solver = "sparse_cg"
        model = kind(alpha, fit_intercept=free, solver=solver)
        try:
            model.fit(drawn.held, given, drawn.weight)
        except (ValueError, np.linalg.LinAlgError):
            continue
        model.coef_ = model.coef_.ravel()
        if said:
            moved(rng, model, len(model.coef_))
        if finite(model):
            found = first(partial(certify, model, drawn.held, given, **told))
            bias = float(np.ravel(model.intercept_)[0])
            said.append(Claim(solver, found, (model.coef_, bias)))
    target = drawn.signs.astype(float) if classes else y
    bias = "free" if free else "none"
    loss = "squared_epsilon_insensitive"
    return [(SVM(Rows(drawn.X), loss, target, drawn.cost, 0.0, bias=bias), said)]


@attack("huber", "`certify` of `HuberRegressor`", 800)
def huber(rng: Rng) -> list[Group]:
    drawn, y, alpha, told = nasty(rng)
    epsilon = float(rng.choice([1.0, 1.35, 1.35, 3.0, 1e3]))
    free, said = bool(rng.random() < 0.7), []
    weight = drawn.weight
    for what in ("fit", "other", "point"):
        model = HuberRegressor(
            epsilon=epsilon, alpha=alpha, fit_intercept=free,
            max_iter=3 if what == "other" else 1000, tol=1e-9,
        )  # fmt: skip
        try:
            model.fit(drawn.held, y, weight)
        except ValueError:
            model.scale_ = 1.0
            model.coef_, model.intercept_ = np.zeros(drawn.X.shape[1]), 0.0
        if what == "point":
            moved(rng, model, drawn.X.shape[1])
            model.scale_ *= 10.0 ** rng.uniform(-12, 12)
        if finite(model):
            found = first(partial(certify, model, drawn.held, y, **told))
            point = (float(model.intercept_), float(model.scale_))
            said.append(Claim(what, found, (model.coef_, point)))
    return [(Huber(drawn.X, y, drawn.cost, epsilon), said)]

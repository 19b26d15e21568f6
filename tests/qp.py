"""Optimum of the linear SVM by a generic interior-point solver, with its own bracket.

The quadratic programme is the primal one, every loss written as an infimum:

    min  1/2 ||w||^2 + sum_i c_i (slope b_i + a_i^2 / (2 curvature))
    s.t. y_i w.x_i + a_i + b_i >= 1,  b_i >= 0

with only b (`linear`) for the hinge, only a for the squared hinge (curvature 1/2), and
both for the smoothed hinge (curvature gamma). Nothing here comes from the package
under test.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import clarabel
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Vector = NDArray[np.float64]

TIGHT = 1e-11  # of the bracket, relative
MOST_SOLVES = 4
MOST_STEPS = 30


class Optimum(NamedTuple):
    """A bracket of the optimal value, and the two points that prove it."""

    lower: float
    upper: float
    w: Vector
    alpha: Vector


def optimum(Z: Vector, cost: Vector, curvature: float, linear: bool) -> Optimum:
    """Bracket ``min over w of 1/2 ||w||^2 + sum_i cost_i l(z_i.w)``, z_i = y_i x_i.

    A constant feature is a column of Z here. Both ends of the bracket are values of
    the objective and of the dual objective in extended precision, at the solver's
    point and at its multipliers, so the bracket holds even if the solver was poor.
    """
    used = cost > 0
    box = np.where(used, 1.0 if linear else np.inf, 0.0) * np.where(used, cost, 1.0)
    best = Optimum(-np.inf, np.inf, np.zeros(Z.shape[1]), np.zeros(len(cost)))
    # The solver's tolerances are partly absolute: solve again in the units of the
    # first answer until the bracket is tight.
    length, value = 1.0, float(cost.sum())
    for _ in range(MOST_SOLVES):
        w, multipliers = _interior_point(
            Z[used], cost[used], curvature, linear, length, value
        )
        alpha = np.zeros(len(cost))
        alpha[used] = np.clip(multipliers, 0.0, box[used])
        best = _better(best, Z, cost, curvature, linear, w, alpha)
        alpha = _polished(Z, cost, box, curvature, alpha)
        best = _better(best, Z, cost, curvature, linear, Z.T @ alpha, alpha)
        if best.upper - best.lower <= TIGHT * best.upper:
            break
        length, value = float(np.linalg.norm(best.w)) or 1.0, best.upper
    return best


def _better(
    best: Optimum,
    Z: Vector,
    cost: Vector,
    curvature: float,
    linear: bool,
    w: Vector,
    alpha: Vector,
) -> Optimum:
    # A margin a hair short of 1 costs c times that, so try the lengths of w at which a
    # margin gets there, and one rounding beyond.
    margins = Z[cost > 0] @ w
    lengths = np.concatenate([[1.0], 1.0 / margins[margins > 0]])
    for length in np.concatenate([lengths, lengths * (1 + 4e-16 * (len(w) + 2))]):
        upper = float(primal(Z, cost, curvature, linear, length * w))
        if upper < best.upper:
            best = best._replace(upper=upper, w=length * w)
    lower = float(dual(Z, cost, curvature, alpha))
    if lower > best.lower:
        best = best._replace(lower=lower, alpha=alpha)
    return best


def primal(
    Z: Vector, cost: Vector, curvature: float, linear: bool, w: Vector
) -> np.longdouble:
    """Objective at w; the rows of Z are ``y_i x_i``."""
    w = w.astype(np.longdouble)
    u = np.maximum(0, 1 - Z.astype(np.longdouble) @ w)
    if curvature == 0.0:
        loss = u
    else:
        loss = u * u / (2 * curvature)
        if linear:
            loss = np.where(u < curvature, loss, u - np.longdouble(curvature) / 2)
    return w @ w / 2 + cost.astype(np.longdouble) @ loss


def dual(Z: Vector, cost: Vector, curvature: float, alpha: Vector) -> np.longdouble:
    """Dual objective at alpha, which must be in the box."""
    a = alpha.astype(np.longdouble)
    v = a @ Z.astype(np.longdouble)
    used = cost > 0
    diagonal = curvature * (a[used] / cost[used]) @ a[used]
    return a.sum() - v @ v / 2 - diagonal / 2


def conic(P: Any, q: Any, A: Any, b: Any, cones: list[Any]) -> Any:
    """Minimise ``x'Px/2 + q'x`` with ``b - Ax`` in the cones, by Clarabel."""
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 200
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-13
    return clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()


def _interior_point(
    Z: Vector, cost: Vector, curvature: float, linear: bool, length: float, value: float
) -> tuple[Vector, Vector]:
    """w and the multipliers of the margin constraints.

    The solver sees w in units of `length` and the objective in units of `value`.
    """
    n, d = Z.shape
    blocks = [sparse.csc_matrix(Z * length)]
    quadratic = [np.full(d, length * length / value)]
    linear_term = [np.zeros(d)]
    if curvature > 0.0:
        blocks.append(sparse.identity(n))
        quadratic.append(cost / value / curvature)
        linear_term.append(np.zeros(n))
    if linear:
        blocks.append(sparse.identity(n))
        quadratic.append(np.zeros(n))
        linear_term.append(cost / value)
    A = sparse.hstack(blocks, format="csc")
    b = -np.ones(n)
    if linear:
        positive = sparse.hstack(
            [sparse.csc_matrix((n, A.shape[1] - n)), sparse.identity(n)]
        )
        A = sparse.vstack([A, positive], format="csc")
        b = np.concatenate([b, np.zeros(n)])
    P = sparse.diags(np.concatenate(quadratic), format="csc")
    cones = [clarabel.NonnegativeConeT(len(b))]
    solution = conic(P, np.concatenate(linear_term), -A, b, cones)
    return np.array(solution.x[:d]) * length, np.array(solution.z[:n]) * value


def _polished(
    Z: Vector, cost: Vector, box: Vector, curvature: float, alpha: Vector
) -> Vector:
    """The dual point to the last digit.

    A sweep of coordinate ascent, which frees what belongs inside the box, and an
    active set method on the face that it leaves, in turn.
    """
    diagonal = np.where(cost > 0, curvature / np.where(cost > 0, cost, 1.0), 0.0)
    long = Z.astype(np.longdouble)
    Q = long @ long.T + np.diag(diagonal)
    value = dual(Z, cost, curvature, alpha)
    for _ in range(MOST_STEPS):
        swept = _swept(Q, box, alpha)
        trials = [swept, _best_on_face(Q, box, swept)]
        values = [dual(Z, cost, curvature, trial) for trial in trials]
        best = int(np.argmax(values))
        if not values[best] > value:
            break
        alpha, value = trials[best], values[best]
    return alpha


def _swept(Q: Vector, box: Vector, alpha: Vector) -> Vector:
    alpha = alpha.copy()
    for i in range(len(alpha)):
        gradient = 1.0 - Q[i] @ alpha
        if Q[i, i] > 0.0:
            alpha[i] = np.clip(alpha[i] + gradient / Q[i, i], 0.0, box[i])
        else:
            alpha[i] = box[i]
    return alpha


def _best_on_face(Q: Vector, box: Vector, alpha: Vector) -> Vector:
    """Newton steps on the entries inside the box; one that meets a bound stays."""
    alpha = alpha.copy()
    free = (alpha > 0.0) & (alpha < box)
    while free.any():
        H = Q[np.ix_(free, free)].astype(np.float64)
        # Rows that depend on each other make H singular.
        H += 1e-15 * H.diagonal().max() * np.identity(len(H))
        gradient = (1.0 - Q[free] @ alpha).astype(np.float64)
        step = np.zeros(len(alpha))
        step[free] = np.linalg.solve(H, gradient)
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(step > 0.0, box - alpha, -alpha) / step
        room[step == 0.0] = np.inf
        first = int(np.argmin(room))
        if room[first] >= 1.0:
            return np.clip(alpha + step, 0.0, box)
        alpha = np.clip(alpha + room[first] * step, 0.0, box)
        alpha[first] = box[first] if step[first] > 0.0 else 0.0
        free[first] = False
    return alpha


class Box(NamedTuple):
    """A dual of regression or of one class, with a kernel matrix K; and its primal.

    max p'a - epsilon |a|_1 - 1/2 a'Ka - 1/2 sum delta a^2,  lo <= a <= hi,
    and sum a = total unless that is None (no free bias).
    """

    K: Vector
    p: Vector
    lo: Vector
    hi: Vector
    epsilon: float = 0.0
    delta: Vector | float = 0.0  # an array where a bound is infinite
    total: float | None = None

    def dual(self, a: Vector) -> float:
        """D of a feasible a."""
        quadratic = a @ self.K @ a + (self.delta * a) @ a
        return float(self.p @ a - self.epsilon * np.abs(a).sum() - quadratic / 2)

    def loss(self, r: Vector) -> float:
        """Loss of residuals: the conjugate of the box and delta."""
        up, down = np.maximum(r - self.epsilon, 0), np.maximum(-r - self.epsilon, 0)
        if np.isinf(self.hi).any():
            used = self.hi > 0
            return ((up**2 + down**2)[used] / (2 * self.delta[used])).sum()
        return self.hi @ up - self.lo @ down

    def primal(self, a: Vector, b: float) -> float:
        """P of ``f = Ka + b``."""
        loss = self.loss(self.p - self.K @ a - b)
        return float(a @ self.K @ a / 2 + loss + b * (self.total or 0.0))

    def best_bias(self, a: Vector) -> float:
        """The best of all breakpoints: P is piecewise linear in a free bias."""
        if self.total is None:
            return 0.0
        r = self.p - self.K @ a
        points = np.concatenate([r - self.epsilon, r + self.epsilon])
        return min(points, key=lambda b: self.primal(a, b))

    def optimum(self) -> tuple[float, float]:
        """A bracket of the optimum: D and P of a generic solver's point."""
        n = len(self.p)
        signs = [1.0, -1.0] if (self.lo < 0).any() else [1.0]
        parts = len(signs)
        E = sparse.hstack([s * sparse.identity(n) for s in signs], format="csc")
        bounds = np.concatenate([self.hi, -self.lo][:parts])
        E, bounds = E[:, bounds != 0.0], bounds[bounds != 0.0]
        H = self.K + np.diag(np.broadcast_to(self.delta, n))
        size = float(bounds.max()) if np.isfinite(bounds).all() else 1.0
        P = sparse.triu(sparse.csc_matrix(E.T @ (H * size) @ E.toarray()), format="csc")
        q = np.full(len(bounds), self.epsilon) - E.T @ self.p
        blocks, right, cones = [], [], []
        if self.total is not None:
            blocks.append(sparse.csc_matrix(E.sum(axis=0)))
            right.append([self.total / size])
            cones.append(clarabel.ZeroConeT(1))
        rows = len(bounds)
        blocks.append(-sparse.identity(rows))
        right.append(np.zeros(rows))
        kept = np.flatnonzero(np.isfinite(bounds))
        blocks.append(sparse.identity(rows, format="csr")[kept])
        right.append(bounds[kept] / size)
        rows += len(kept)
        cones.append(clarabel.NonnegativeConeT(rows))
        A = sparse.vstack(blocks, format="csc")
        solution = conic(P, q, A, np.concatenate(right), cones)
        a = np.clip(E @ np.array(solution.x) * size, self.lo, self.hi)
        if self.total is not None:
            off = a.sum() - self.total
            end = self.lo if off > 0 else self.hi
            if self.total == 0.0:
                end = np.where(a * off > 0, 0.0, a)
            if off != 0.0:
                a = a - (a - end) * off / (a - end).sum()
        return self.dual(a), self.primal(a, self.best_bias(a))


def check(
    problem: Any, solution: Any, form: Box, scores: Any, norm: float, tol: float
) -> float:
    """Check the box, P and D of the points from outside, and the optimum between.

    It returns how much P may be off by rounding.
    """
    certificate, alpha, b = solution.certificate, solution.alpha, solution.bias or 0.0
    assert certificate.certified
    assert (alpha >= form.lo).all()
    assert (alpha <= form.hi).all()
    if form.total is not None:
        most = max(form.total, problem.cost.max())
        assert abs(math.fsum(alpha) - form.total) <= 1e-13 * most
    P = 0.5 * norm + form.loss(form.p - scores - b) + b * (form.total or 0.0)
    D = form.dual(alpha)
    terms = np.abs(form.p).max() + (np.abs(form.K) @ np.abs(alpha)).max()
    rounding = 1e-13 * (np.abs(alpha).sum() * terms + abs(P)) + 1e-300
    assert -rounding <= certificate.primal - P <= rounding + certificate.rounding
    assert -rounding <= D - certificate.dual <= rounding + certificate.rounding
    if problem.cost.max() > 1e5:  # more than the generic solver can do
        return rounding
    lower, upper = form.optimum()
    slack = 1e-8 * abs(upper) + rounding + 1e-9 * (form.total is None)
    if problem.kind in ("regression", "one-class") and problem.cost.max() < 10.0:
        assert upper - lower <= 1e-6 * abs(upper) + 1e-9
    assert certificate.primal >= lower - slack
    assert certificate.dual <= upper + slack
    size = max(abs(upper), getattr(problem, "floor", 0.0))
    assert certificate.primal - upper <= tol * size + slack
    return rounding

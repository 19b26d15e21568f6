"""Interior-point method for small kernel problems.

Problem    min 1/2 z'Kz + sum_j q_j a_j over 0 <= a_j <= u_j, with sum_i z_i = total if
           the bias is unpenalised; z_i is the sum of sigma_j a_j over the variables of
           row i. Two classes have one variable a row, sigma = y and q = -1; one class
           has one, sigma = 1 and q = 0. Regression has a pair, z = a+ - a-, with
           q = epsilon - p and epsilon + p. K is in float64, with delta_i added to its
           diagonal, and 1 to all of it if the bias is penalised.
Update     s_j a_j = t_j (u_j - a_j) = mu,  g_j = q_j + sigma_j (Kz + b)_i = s_j - t_j.
           With r = mu/a - mu/(u - a) - g, D = s/a + t/(u - a), W_i the sum of 1/D_j
           over the variables of row i, and w_j = 1/(D_j W_i), their shares:
           (K + diag(1/W)) dz + db = sum_j sigma_j w_j r_j,  sum_i dz_i = total - sum z,
           da_j = sigma_j w_j dz_i, and for a pair (r+ + r-)/(D+ + D-) more for each;
           predictor and corrector share one Cholesky factor
Guarantee  the gap s'a + t'(u - a) falls to `tol` of the objective in some 20 to 40
           steps, whatever C is. If rounding stops the steps, the result is the best
           point so far.
Cost       n^3/3 operations a step, n rows also for regression; 16 n^2 bytes
Source     Mehrotra, SIAM J. Optim. 2, 1992; for SVMs: Fine and Scheinberg, JMLR 2,
           2001, and Ferris and Munson, SIAM J. Optim. 13, 2002

`block` changes to this method when steps on pairs of variables make slow progress:
thousands of steps per variable, for example with C = 1e6 and overlapping classes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import linalg

from ... import core
from ...losses import Vector
from .base import BoxedProblem


@dataclass(frozen=True)
class KernelInteriorSettings:
    """Tuning constants of :func:`interior_point`."""

    #: Most steps.
    most_steps: int = 80
    #: Attempts to factor: without a ridge, then with 1e-15 to 1e-9 of K's diagonal.
    ridges: int = 5
    #: The method goes on to this fraction of the target gap.
    beyond: float = 1e-4
    #: Fraction of the way to the boundary that a step goes.
    damping: float = 0.99
    #: A variable is set to a bound if it is closer than this, relative to the largest
    #: variable (lower bound) or to the upper bound, unless this costs accuracy.
    snap: float = 1e-12
    #: Length below which a step is rounding.
    shortest_step: float = 1e-8


SETTINGS = KernelInteriorSettings()

#: Factor of a matrix, and whether it is the lower one, as SciPy has them.
Cholesky = tuple[Vector, bool]


class _Dual(NamedTuple):
    """The dual problem; its variables have shape (1, n), or (2, n) for pairs."""

    #: Shape (n, n).
    K: Vector
    #: Shape (n,).
    delta: Vector
    #: ``sigma``, ``q`` and ``u``, shape (1, n).
    sign: Vector
    linear: Vector
    upper: Vector
    #: None if the bias is penalised.
    total: float | None

    def signed(self, a: Vector) -> Vector:
        """Return z, shape (n,)."""
        return (self.sign * a).sum(axis=0)

    def gradient(self, a: Vector) -> Vector:
        """Return ``g``, of the shape of a."""
        return self.linear + self.sign * (self.K @ self.signed(a))

    def off(self, a: Vector) -> float:
        """Return how far the sum of z is from `total`."""
        return 0.0 if self.total is None else float(self.signed(a).sum()) - self.total

    def gap(self, a: Vector, slope: Vector, b: float) -> float:
        """Return P - D, of the linear losses or of the squared hinge.

        `slope` is the gradient at a plus `b sign`.
        """
        u, delta = self.upper, self.delta
        if np.isfinite(u).all():
            found = float(np.vdot(slope, a) + np.vdot(u, np.maximum(0.0, -slope)))
        else:
            part, lost = 0.5 * delta * a, slope < delta * a
            loss = np.divide(0.5 * slope**2, delta, out=np.zeros_like(a), where=lost)
            found = float(loss.sum() + ((slope - part) * a)[~lost].sum())
        return found + abs(b * self.off(a))


class _Point(NamedTuple):
    """Variables and multipliers; without an upper bound room is 1, and t is 0."""

    a: Vector
    room: Vector
    b: float
    s: Vector
    t: Vector

    @property
    def gap(self) -> float:
        return float(np.vdot(self.s, self.a) + np.vdot(self.t, self.room))


def interior_point(problem: BoxedProblem, tol: float, stop: core.Stop) -> Vector | None:
    """Return dual variables at a relative gap of about `tol`.

    `tol`: target of the relative gap. `stop`: a request that ends the method early.
    The result has shape (n,). It is None if `stop` ends the method, or rounding does
    before the first step.
    """
    used = np.flatnonzero(problem.cost > 0.0)
    y = problem.y[used].astype(np.float64)
    K = problem.gram.block(used, used).astype(np.float64, copy=False)
    if not problem.free_bias:
        K += 1.0
    delta = problem.loss.diagonal(problem.cost[used])
    K[np.diag_indices_from(K)] += delta
    sign = np.stack([y, -y] if problem.two_sided else [y])
    dual = _Dual(
        K,
        delta,
        sign,
        problem.epsilon - sign * problem.linear[used],
        np.stack([problem.upper, -problem.lower][: len(sign)])[:, used],
        problem.total if problem.free_bias else None,
    )
    a = _solve(dual, tol, stop)
    if a is None:
        return None
    out, z = np.zeros(problem.n), dual.signed(a)
    out[used] = y * (
        _balanced(z, dual.upper, np.diagonal(K)) if dual.total == 0.0 else z
    )
    return out


def _balanced(z: Vector, upper: Vector, diagonal: Vector) -> Vector:
    """Round z so that its entries, which add up to about 0, do so exactly."""
    unit = math.ldexp(1.0, math.frexp(float(np.abs(z).max()))[1] - 53)
    if unit == 0.0:
        return z
    z, exact = np.rint(z / unit) * unit, z
    most = np.where(z > 0.0, upper[0], upper[-1])
    z = np.where(np.abs(z) > most, np.trunc(exact / unit) * unit, z)
    off = math.fsum(z.tolist())
    # The row whose score changes least takes the rest.
    able = z * math.copysign(1.0, off) >= abs(off)
    if able.any():
        z[np.argmin(np.where(able, diagonal, np.inf))] -= off
    return z


def _solve(dual: _Dual, tol: float, stop: core.Stop) -> Vector | None:
    """Return the variables of the best point, or None."""
    # The room u - a is updated step by step, because near the bound the computed
    # difference would be 0. Variables without an upper bound have t = 0, and their room
    # is not used.
    K, _, sign, q, u, _ = dual
    boxed = np.isfinite(u)
    # Start in the middle of the box, whatever its size. From a start near 0 the first
    # step of a box of 1e8 makes no progress. Without a box, where delta makes the
    # diagonal positive, all a_i sqrt(k_ii) are equal: rows may differ much in length.
    diagonal = np.diagonal(K)
    a = 0.5 * u if boxed.all() else (diagonal * diagonal.min())[None] ** -0.5
    g = dual.gradient(a)
    unit = float(np.abs(q).mean()) or float(np.abs(g).mean()) or 1.0
    s, t = np.maximum(g, 0.0) + unit, np.where(boxed, np.maximum(-g, 0.0) + unit, 0.0)
    point = _Point(a, np.where(boxed, u - a, 1.0), 0.0, s, t)
    best, least, b = None, np.inf, 0.0
    for _ in range(SETTINGS.most_steps):
        if stop.requested or stop.expired:
            return None
        a, gap = point.a, point.gap
        objective = -0.5 * float(np.vdot(a, q + g))
        slope = g + point.b * sign
        found = dual.gap(a, slope, point.b)
        if found <= 2.0 * least:
            best, least, b = np.minimum(a, u), min(least, found), point.b
        # Go somewhat beyond the target, so that variables near a bound reach it. Stop
        # for certain when the rest is rounding.
        near = tol * abs(objective)
        beyond = SETTINGS.beyond
        if gap <= beyond * near and (found <= near or gap <= beyond**2 * near):
            break
        moved = _step(dual, point, boxed, slope)
        if moved is None:
            break
        point = moved
        g = dual.gradient(point.a)
    if best is None:
        return None
    tidy = np.where(best < SETTINGS.snap * best.max(), 0.0, best)
    tidy = np.where(boxed & (tidy > (1.0 - SETTINGS.snap) * u), u, tidy)
    # A small variable of a long row may matter.
    found = dual.gap(tidy, dual.gradient(tidy) + b * sign, b)
    return np.asarray(tidy if found <= max(near, least) else best)


def _factor(K: Vector, diagonal: Vector) -> Cholesky | None:
    """Return the Cholesky factor of K + diag, or None if there is none.

    If K has low rank and the diagonal is tiny, rounding may make the matrix indefinite.
    A small ridge is then added, which makes the step shorter.
    """
    more = 0.0
    for _ in range(SETTINGS.ridges):
        M = K.copy()
        M[np.diag_indices_from(M)] += diagonal + more
        try:
            return linalg.cho_factor(M, lower=True, overwrite_a=True)
        except linalg.LinAlgError:
            more = 100.0 * more or 1e-15 * float(np.diagonal(K).max())
        except ValueError:  # not finite
            return None
    return None


def _step(dual: _Dual, point: _Point, boxed: Vector, slope: Vector) -> _Point | None:
    """Make one predictor-corrector step; return None if rounding leaves no step."""
    (a, room, b, s, t), gap, sign = point, point.gap, dual.sign
    D = s / a + t / room
    W = (1.0 / D).sum(axis=0)
    share = sign / (D * W)
    factor = _factor(dual.K, 1.0 / W)
    if factor is None:
        return None
    balanced = dual.total is not None
    along = linalg.cho_solve(factor, np.ones_like(W)) if balanced else W

    def toward(low: Vector, high: Vector) -> tuple[Vector, float, Vector, Vector]:
        """Return the direction to s a = low and t (u - a) = high."""
        r = low / a - high / room - slope
        dz, db = linalg.cho_solve(factor, (share * r).sum(axis=0)), 0.0
        if balanced:
            db = (float(dz.sum()) + dual.off(a)) / float(along.sum())
            dz = dz - db * along
        da = share * dz
        if len(a) > 1:
            da = da + r.sum(axis=0) / D.sum(axis=0)
        return da, db, low / a - s - s / a * da, high / room - t + t / room * da

    def longest(da: Vector, ds: Vector, dt: Vector) -> float:
        h = 1.0
        for x, d in ((a, da), (s, ds), (room[boxed], -da[boxed]), (t, dt)):
            h = min(h, float((x[d < 0.0] / -d[d < 0.0]).min(initial=1.0)))
        return h

    zero = np.zeros_like(a)
    da, _, ds, dt = toward(zero, zero)
    h = longest(da, ds, dt)
    left = float(np.vdot(s + h * ds, a + h * da) + np.vdot(t + h * dt, room - h * da))
    mu = gap / (a.size + np.count_nonzero(boxed)) * (left / gap) ** 3
    da, db, ds, dt = toward(mu - da * ds, np.where(boxed, mu + da * dt, 0.0))
    h = min(1.0, SETTINGS.damping * longest(da, ds, dt))
    if not (np.isfinite(da).all() and h > SETTINGS.shortest_step):
        return None
    lower = np.where(boxed, h * da, 0.0)
    return _Point(a + h * da, room - lower, b + h * db, s + h * ds, t + h * dt)

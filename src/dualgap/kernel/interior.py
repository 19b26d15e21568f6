"""Interior points on a small kernel problem, all of it at once.

Problem    min 1/2 a'Qa - sum_i a_i over 0 <= a_i <= u_i, with y'a = 0 where the bias is
           free; Q_ij = y_i y_j k_ij + delta_ij, in float64, and y_i y_j more where the
           bias is penalised (problem.py)
Update     s_i a_i = t_i (u_i - a_i) = mu,  g = Qa - 1 + b y = s - t:
           (Q + diag(s/a + t/(u - a))) da + y db = mu/a - mu/(u - a) - g - b y,
           y'da = -y'a; predictor and corrector over one Cholesky factor
Guarantee  The gap s'a + t'(u - a) falls to `tol` of the objective in some 20 to 40
           steps, whatever C is; where rounding ends it, the best point so far.
Cost       n^3/3 operations a step; 16 n^2 bytes.
Source     Mehrotra, SIAM J. Optim. 2, 1992; for SVMs: Fine and Scheinberg, JMLR 2,
           2001, and Ferris and Munson, SIAM J. Optim. 13, 2002

What `block` turns to when pairs of variables take a problem to its optimum only at a
crawl: thousands of steps a variable, as with C = 1e6 where the classes overlap.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from ..losses import Vector

_STEPS = 80
# Attempts at a factor: none, then 1e-15 to 1e-9 of the diagonal of Q are added.
_RIDGES = 5
_BEYOND = 1e-4
# How far towards the boundary a step goes.
_SHORT = 0.99
# Of the largest variable, or of the bound: what is nearer to one is on it.
_ON_BOUND = 1e-12


def interior_point(problem: Any, tol: float, stop: Any) -> Vector | None:
    """Dual variables of a KernelProblem at a relative gap of about `tol`, shape (n,).

    None where `stop` (a core.Stop) ends it, or rounding before the first step.
    """
    used = np.flatnonzero(problem.cost > 0.0)
    y = problem.y[used].astype(np.float64)
    Q = problem.gram.block(used, used)
    if not problem.free_bias:
        Q += 1.0
    Q *= np.outer(y, y)
    Q[np.diag_indices_from(Q)] += problem.delta[used]
    a = _solve(Q, y, problem.upper[used], problem.free_bias, tol, stop)
    if a is None:
        return None
    out = np.zeros(problem.n)
    out[used] = a
    return out


def _solve(
    Q: Vector, y: Vector, u: Vector, balanced: bool, tol: float, stop: Any
) -> Vector | None:
    # The room u - a is carried along, for near the bound the difference would be 0;
    # without a bound t is 0 and the room counts for nothing.
    boxed = np.isfinite(u)
    # From the middle of the box, whatever its size: from near 0 a box of 1e8 is so far
    # that the first step leads nowhere.
    bend = float(np.diagonal(Q).mean())  # 0 where all rows are, and then all are boxed
    a = np.where(boxed, 0.5 * u, 1.0 / bend if bend > 0.0 else 0.0)
    g = Q @ a - 1.0
    s, t = np.maximum(g, 0.0) + 1.0, np.where(boxed, np.maximum(-g, 0.0) + 1.0, 0.0)
    b, room = 0.0, np.where(boxed, u - a, 1.0)
    best, least = None, np.inf
    for _ in range(_STEPS):
        if stop.requested or stop.expired:
            return None
        off = float(y @ a) if balanced else 0.0
        gap = float(s @ a + t @ room)
        objective = float(a.sum()) - 0.5 * float(a @ (g + 1.0))
        # P - D of the hinge at this b, and what bounds that of the squared hinge.
        slope = g + b * y
        if boxed.all():
            found = float(slope @ a + u @ np.maximum(0.0, -slope))
        else:
            found = gap + float(np.abs(slope - s) @ a)
        found += abs(b * off)
        if found <= 2.0 * least:
            best, least = np.minimum(a, u), min(least, found)
        # Somewhat further: what is near a bound is then on it, or what is left is
        # rounding.
        near = tol * abs(objective)
        if gap <= _BEYOND * near and (found <= near or gap <= _BEYOND**2 * near):
            break
        factor = _factor(Q, s / a + t / room)
        if factor is None:
            break
        moved = _step(factor, y, (a, room, b, s, t), boxed, g, off, balanced, gap)
        if moved is None:
            break
        a, room, b, s, t = moved
        g = Q @ a - 1.0
    if best is None:
        return None
    best = np.where(best < _ON_BOUND * best.max(), 0.0, best)
    return np.asarray(np.where(boxed & (best > (1.0 - _ON_BOUND) * u), u, best))


def _factor(Q: Vector, diagonal: Vector) -> Any:
    """Cholesky's factor of Q + diag; None if there is none.

    Where Q has a low rank and the diagonal has all but vanished, rounding leaves a
    matrix that is not definite: as little more as it takes is then added, which makes
    the step a shorter one.
    """
    more = 0.0
    for _ in range(_RIDGES):
        M = Q.copy()
        M[np.diag_indices_from(M)] += diagonal + more
        try:
            return linalg.cho_factor(M, lower=True, overwrite_a=True)
        except linalg.LinAlgError:
            more = 100.0 * more or 1e-15 * float(np.diagonal(Q).max())
        except ValueError:  # not finite
            return None
    return None


def _step(
    factor: Any,
    y: Vector,
    point: tuple[Vector, Vector, float, Vector, Vector],
    boxed: Vector,
    g: Vector,
    off: float,
    balanced: bool,
    gap: float,
) -> tuple[Vector, Vector, float, Vector, Vector] | None:
    """Predictor and corrector; None where rounding leaves no step to take."""
    a, room, b, s, t = point
    along = linalg.cho_solve(factor, y) if balanced else y

    def toward(low: Vector, high: Vector) -> tuple[Vector, float, Vector, Vector]:
        """The direction to s a = low and t (u - a) = high."""
        da = linalg.cho_solve(factor, low / a - high / room - g - b * y)
        db = 0.0
        if balanced:
            db = (float(y @ da) + off) / float(y @ along)
            da = da - db * along
        return da, db, low / a - s - s / a * da, high / room - t + t / room * da

    def longest(da: Vector, ds: Vector, dt: Vector) -> float:
        h = 1.0
        for x, d in ((a, da), (s, ds), (room[boxed], -da[boxed]), (t, dt)):
            h = min(h, float((x[d < 0.0] / -d[d < 0.0]).min(initial=1.0)))
        return h

    zero = np.zeros_like(a)
    da, _, ds, dt = toward(zero, zero)
    h = longest(da, ds, dt)
    left = float((s + h * ds) @ (a + h * da) + (t + h * dt) @ (room - h * da))
    mu = gap / (len(a) + np.count_nonzero(boxed)) * (left / gap) ** 3
    da, db, ds, dt = toward(mu - da * ds, np.where(boxed, mu + da * dt, 0.0))
    h = min(1.0, _SHORT * longest(da, ds, dt))
    if not (np.isfinite(da).all() and h > 1e-8):
        return None
    lower = np.where(boxed, h * da, 0.0)
    return a + h * da, room - lower, b + h * db, s + h * ds, t + h * dt

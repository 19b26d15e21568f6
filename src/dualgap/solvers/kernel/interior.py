"""Interior-point method for small kernel problems.

Problem    min 1/2 a'Qa - sum_i a_i over 0 <= a_i <= u_i, with y'a = 0 if the bias is
           unpenalised. Q_ij = y_i y_j k_ij + delta_ij in float64, plus y_i y_j if the
           bias is penalised (problem.py).
Update     s_i a_i = t_i (u_i - a_i) = mu,  g = Qa - 1 + b y = s - t:
           (Q + diag(s/a + t/(u - a))) da + y db = mu/a - mu/(u - a) - g - b y,
           y'da = -y'a; predictor and corrector share one Cholesky factor
Guarantee  the gap s'a + t'(u - a) falls to `tol` of the objective in some 20 to 40
           steps, whatever C is. If rounding stops the steps, the result is the best
           point so far.
Cost       n^3/3 operations a step; 16 n^2 bytes
Source     Mehrotra, SIAM J. Optim. 2, 1992; for SVMs: Fine and Scheinberg, JMLR 2,
           2001, and Ferris and Munson, SIAM J. Optim. 13, 2002

`block` changes to this method when steps on pairs of variables make slow progress:
thousands of steps per variable, for example with C = 1e6 and overlapping classes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import linalg

from ... import core
from ...losses import Vector
from ...problems.kernel import KernelProblem


@dataclass(frozen=True)
class KernelInteriorSettings:
    """Tuning constants of :func:`interior_point`."""

    #: Most steps.
    most_steps: int = 80
    #: Attempts to factor: without a ridge, then with 1e-15 to 1e-9 of Q's diagonal.
    ridges: int = 5
    #: The method goes on to this fraction of the target gap.
    beyond: float = 1e-4
    #: Fraction of the way to the boundary that a step goes.
    damping: float = 0.99
    #: A variable is set to a bound if it is closer than this, relative to the largest
    #: variable (lower bound) or to the upper bound.
    snap: float = 1e-12
    #: Length below which a step is rounding.
    shortest_step: float = 1e-8


SETTINGS = KernelInteriorSettings()

#: Factor of a matrix, and whether it is the lower one, as SciPy has them.
Cholesky = tuple[Vector, bool]


def interior_point(
    problem: KernelProblem, tol: float, stop: core.Stop
) -> Vector | None:
    """Return dual variables of a KernelProblem at a relative gap of about `tol`.

    Parameters
    ----------
    problem : KernelProblem
    tol : float
        Target of the relative gap.
    stop : core.Stop
        A request that ends the method early.

    Returns
    -------
    ndarray of shape (n,) or None
        None if `stop` ends the method, or rounding does before the first step.
    """
    used = np.flatnonzero(problem.cost > 0.0)
    y = problem.y[used].astype(np.float64)
    Q = problem.gram.block(used, used).astype(np.float64, copy=False)
    if not problem.free_bias:
        Q += 1.0
    Q *= np.outer(y, y)
    delta = problem.delta[used]
    Q[np.diag_indices_from(Q)] += delta
    a = _solve(Q, y, problem.upper[used], delta, problem.free_bias, tol, stop)
    if a is None:
        return None
    out = np.zeros(problem.n)
    out[used] = a
    return out


def _solve(
    Q: Vector,
    y: Vector,
    u: Vector,
    delta: Vector,
    balanced: bool,
    tol: float,
    stop: core.Stop,
) -> Vector | None:
    # The room u - a is updated step by step, because near the bound the computed
    # difference would be 0. Variables without an upper bound have t = 0, and their room
    # is not used.
    boxed = np.isfinite(u)
    # Start in the middle of the box, whatever its size. From a start near 0 the first
    # step of a box of 1e8 makes no progress.
    bend = float(np.diagonal(Q).mean())  # 0 only if all rows are 0; then all are boxed
    a = np.where(boxed, 0.5 * u, 1.0 / bend if bend > 0.0 else 0.0)
    g = Q @ a - 1.0
    s, t = np.maximum(g, 0.0) + 1.0, np.where(boxed, np.maximum(-g, 0.0) + 1.0, 0.0)
    b, room = 0.0, np.where(boxed, u - a, 1.0)
    best, least = None, np.inf
    for _ in range(SETTINGS.most_steps):
        if stop.requested or stop.expired:
            return None
        off = float(y @ a) if balanced else 0.0
        gap = float(s @ a + t @ room)
        objective = float(a.sum()) - 0.5 * float(a @ (g + 1.0))
        # P - D of the hinge, or of the squared hinge, at this b.
        slope = g + b * y
        if boxed.all():
            found = float(slope @ a + u @ np.maximum(0.0, -slope))
        else:
            part, lost = 0.5 * delta * a, slope < delta * a
            loss = np.divide(0.5 * slope**2, delta, out=np.zeros_like(a), where=lost)
            found = float(loss.sum() + ((slope - part) * a)[~lost].sum())
        found += abs(b * off)
        if found <= 2.0 * least:
            best, least = np.minimum(a, u), min(least, found)
        # Go somewhat beyond the target, so that variables near a bound reach it. Stop
        # for certain when the rest is rounding.
        near = tol * abs(objective)
        beyond = SETTINGS.beyond
        if gap <= beyond * near and (found <= near or gap <= beyond**2 * near):
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
    best = np.where(best < SETTINGS.snap * best.max(), 0.0, best)
    return np.asarray(np.where(boxed & (best > (1.0 - SETTINGS.snap) * u), u, best))


def _factor(Q: Vector, diagonal: Vector) -> Cholesky | None:
    """Return the Cholesky factor of Q + diag, or None if there is none.

    If Q has low rank and the diagonal is tiny, rounding may make the matrix indefinite.
    A small ridge is then added, which makes the step shorter.
    """
    more = 0.0
    for _ in range(SETTINGS.ridges):
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
    factor: Cholesky,
    y: Vector,
    point: tuple[Vector, Vector, float, Vector, Vector],
    boxed: Vector,
    g: Vector,
    off: float,
    balanced: bool,
    gap: float,
) -> tuple[Vector, Vector, float, Vector, Vector] | None:
    """Make one predictor-corrector step; return None if rounding leaves no step."""
    a, room, b, s, t = point
    along = linalg.cho_solve(factor, y) if balanced else y

    def toward(low: Vector, high: Vector) -> tuple[Vector, float, Vector, Vector]:
        """Return the direction to s a = low and t (u - a) = high."""
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
    h = min(1.0, SETTINGS.damping * longest(da, ds, dt))
    if not (np.isfinite(da).all() and h > SETTINGS.shortest_step):
        return None
    lower = np.where(boxed, h * da, 0.0)
    return a + h * da, room - lower, b + h * db, s + h * ds, t + h * dt

"""Ball of the optimum for every C between two values of C, from the fits at these.

Problem    P_C(w) = 1/2 ||w||^2 + C S(w), S(w) = sum_i s_i l(y_i w.x_i), C_0 <= C <= C_1
Bound      C = (1-t) C_0 + t C_1. The points w_t and alpha_t between (w_0, alpha_0) and
           (w_1, alpha_1) are feasible for C, S is convex, and A is jointly concave in
           alpha and C. So inequality (T) of :mod:`dualgap.answers.ball` gives, with
           c_t = (w_t + v_t)/2,

           ||w*_C - c_t||^2 <= r_t^2 := ||c_t||^2 + C ((1-t) S_0 + t S_1)
                                        - (1-t) A_0 - t A_1

           a quadratic in t: all C between at once, without a pass over the data.
Source     Shibagaki, Suzuki, Karasuyama and Takeuchi, "Regularization path of
           cross-validation error lower bounds", NIPS 2015, have the ball of one fit
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .. import core
from ..certificate import Certificate
from ..losses import Vector
from ..problems.binary import BinaryProblem
from ..problems.rounding import Rounding

__all__ = ["Anchor", "largest_radii"]

_UNIT = Rounding.unit


@dataclass(frozen=True)
class Anchor:
    """Fit at one C, as far as the bounds between two values of C need it.

    Attributes
    ----------
    C : float
    centre : ndarray of shape (width,)
        ``(w + v)/2``.
    loss : float
        Upper bound on S(w).
    gain : float
        Lower bound on A(alpha).
    off : float
        Upper bound on the distance of `centre` from the exact ``(w + v)/2``.
    """

    C: float
    centre: Vector
    loss: float
    gain: float
    off: float

    @classmethod
    def of(
        cls, problem: BinaryProblem, w: Vector, alpha: Vector, proof: Certificate
    ) -> Anchor:
        """Return the anchor of a fit, from one product with the data.

        Parameters
        ----------
        problem : BinaryProblem
            Without an unpenalised bias.
        w : ndarray of shape (width,)
        alpha : ndarray of shape (n,)
        proof : Certificate
            Bounds on P at w and on D at alpha.
        """
        v = problem.weighted_sum(alpha)
        reach = float(alpha @ np.sqrt(problem.q)) * Rounding.slack
        used = float(np.count_nonzero(alpha))
        # A proof may be about a multiple of a dual point, which alpha rounds.
        drift = problem.rounding.of_sum(used, reach) + 8 * _UNIT * reach
        norm, length = core.squared_norm(w), math.sqrt(core.squared_norm(v))
        loss = proof.primal - 0.5 * norm * (1.0 - 64 * _UNIT)
        shortest = max(length * (1.0 - 64 * _UNIT) - drift, 0.0)
        gain = proof.dual + 0.5 * shortest * shortest
        sizes = abs(proof.primal) + abs(proof.dual) + norm + length * length
        centre = 0.5 * (w + v)
        off = 0.5 * drift + 4 * _UNIT * math.sqrt(core.squared_norm(centre))
        return cls(
            C=problem.C,
            centre=centre,
            loss=(max(loss, 0.0) + 16 * _UNIT * sizes) / problem.C * (1.0 + 4 * _UNIT),
            gain=gain - 16 * _UNIT * sizes,
            off=Rounding.slack * off,
        )


def largest_radii(first: Anchor, last: Anchor, ends: Vector) -> Vector:
    """Bound the distance of w*_C from the point between two centres, cell by cell.

    Parameters
    ----------
    first, last : Anchor
        Fits at C_0 and C_1 of one problem.
    ends : ndarray of shape (m + 1,)
        Increasing values of t from 0 to 1; cell k has t from ``ends[k]`` to
        ``ends[k + 1]``.

    Returns
    -------
    ndarray of shape (m,)
        Upper bounds on ``||w*_C - ((1-t) c_0 + t c_1)||`` for all t in the cell and the
        `centre` of each anchor as c_0 and c_1; inf without finite bounds.
    """
    c, d = first.centre, last.centre
    cc, dd, apart = map(core.squared_norm, (c, d, c - d))
    more, rise = last.C - first.C, last.loss - first.loss
    constant = cc + first.C * first.loss - first.gain
    slope = dd - cc - apart + first.C * rise + more * first.loss
    slope -= last.gain - first.gain
    curve = apart + more * rise
    at = constant + ends * (slope + ends * curve)
    largest = np.maximum(at[:-1], at[1:])
    if curve < 0.0:  # concave: the top may be inside a cell
        top = -0.5 * slope / curve
        inside = (ends[:-1] < top) & (top < ends[1:])
        largest = np.where(inside, constant + 0.5 * slope * top, largest)
    size = 2.0 * (cc + dd) + last.C * (first.loss + last.loss)
    size += abs(first.gain) + abs(last.gain)
    off = max(first.off, last.off)
    lost = 64 * _UNIT * size + off * (2.0 * math.sqrt(max(cc, dd)) + off)
    radii = np.sqrt(np.maximum(largest + Rounding.slack * lost, 0.0))
    radii = radii * (1.0 + 4 * _UNIT) + off
    return np.where(np.isfinite(radii), radii, np.inf)

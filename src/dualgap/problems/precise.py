"""Proofs with compensated products, where rounding hides most of a large gap.

The products of columns that are large and nearly constant cancel: their rounding may
exceed P, although P itself is harmless.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .base import Claim, Proof

if TYPE_CHECKING:
    from .binary import BinaryProblem

#: Relative gap up to which rounding may hide it.
ROUNDED = 1e-9


def sharper(problem: BinaryProblem, proof: Proof, fixed: bool = False) -> Proof:
    """Return the proof, or a better one from one or two more passes.

    The primal point is the one of the proof or, if it is better and not `fixed`,
    ``w(alpha)``.
    """
    before = proof.certificate
    hidden = before.gap <= 2.0 * before.rounding < math.inf
    if not hidden or before.relative_gap <= ROUNDED or problem.streamed:
        return proof
    w, alpha, v = proof.w, proof.alpha, np.empty(problem.width)
    for _ in range(1 if problem.free_bias or fixed else 2):
        w = w if fixed else problem.settled(w)
        values = problem._evaluate(w, "precise", alpha, v)
        norm = problem.squared_norm(v)
        bounds = problem.precise_bounds(w, alpha, values, norm)
        if bounds.primal - bounds.dual < proof.certificate.gap:
            proof = Proof(w, alpha, bounds.certificate)
        w = v.copy()
    return proof


def as_given(problem: BinaryProblem, claim: Claim) -> Proof:
    """Return a proof about the w of the claim and no better one."""
    return sharper(problem, problem._prove(claim), fixed=True)

"""Fits of hard margins: a path of growing C, up to one that no dual variable reaches.

The optimum is then the one of C = inf; see :mod:`dualgap.problems.hard_margin`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from ..certificate import Status
from ..problems.base import Problem
from ..problems.batch import Batch
from ..problems.binary import BinaryProblem
from ..problems.hard_margin import hard_margin
from ..problems.kernel import KernelProblem
from ..solvers.base import Solver
from .batch import Job, Start, Tasks, solve_path
from .solution import Solution, Solutions


@dataclass(frozen=True)
class HardMarginSettings:
    """Tuning constants of hard margins, for rows of mean square 1."""

    #: Factor from one C to the next.
    growth: float = 10.0
    #: Last C, and the optimum from which on rows count as inseparable.
    limit: float = 1e16


SETTINGS = HardMarginSettings()
#: Most times that a model is scaled until rounding leaves no margin below 1.
_ROUNDS = 3


class InseparableError(ValueError):
    """A hard margin of rows that no model was found to separate."""

    def __init__(self, name: str) -> None:
        of = f" of {name}" if name else ""
        super().__init__(
            f"C=inf: no model was found that separates the rows{of}; use a finite C, "
            "such as 1e3, or raise max_iter"
        )


def solve_hard_margin(
    batch: Batch, solver: Solver, job: Job, start: Start | None = None
) -> Solutions:
    """Train the problems of a batch as for C = inf, and prove each of them.

    The models have margins of at least 1. Raises InseparableError if no model was found
    that separates the rows of a problem.
    """
    if not solver.dual:
        raise ValueError(
            f"solver={solver.name!r} cannot train C=inf, because it keeps no dual "
            "variables from one C to the next; use solver='auto', or a finite C"
        )
    limit = SETTINGS.limit / (_mean_square(batch.problem(0)) or 1.0)
    steps = round(math.log(SETTINGS.limit) / math.log(SETTINGS.growth))
    Cs = [limit / SETTINGS.growth**step for step in range(steps, -1, -1)]
    # If the gap of a soft margin is half of the target, its losses shorten the margins
    # by less than the other half, once C is above eight times P.
    # Tasks of callbacks have one fit of each problem.
    half = replace(job, tol=0.5 * job.tol, atol=0.5 * job.atol, tasks=Tasks())
    best: list[Solution] = []
    batch.prepare()
    for C, found in zip(Cs, solve_path(batch, Cs, solver, half, start), strict=True):
        now = batch.at(C)
        new = [_hardened(now.problem(k), one) for k, one in enumerate(found)]
        best = [_better(*pair) for pair in zip(best, new, strict=True)] if best else new
        left = [k for k, one in enumerate(best) if not _met(one, job)]
        if job.stopped or not left:
            break
        over = False
        for k in left:
            primal, status = best[k].certificate.primal, found[k].certificate.status
            ended = C == limit or status is not Status.CERTIFIED
            if primal == math.inf and (ended or _beyond(found[k], limit)):
                raise InseparableError(batch.names[k] if len(batch) > 1 else "")
            # A smaller gap than float64 can prove may still be closer at the next C.
            stalled = status is Status.STALLED and C < limit
            over = over or (ended and not stalled) or C > 8.0 * primal
        if over:
            break
    return Solutions([_told(one, job) for one in best], batch.names)


def _mean_square(problem: Problem) -> float:
    """Return the mean of ``||x_i||^2``, or of ``k(x_i, x_i)``."""
    if isinstance(problem, KernelProblem):
        return float((problem.lengths**2).mean())
    return float(cast(BinaryProblem, problem).q.mean())


def _hardened(problem: Problem, found: Solution) -> Solution:
    """Return a solution of a finite C as one of C = inf, with margins of at least 1."""
    own = cast(BinaryProblem | KernelProblem, problem)
    sign = own.y if isinstance(own, KernelProblem) else 1.0
    w, bias, decisions = found.coefficients, found.bias, found.decisions
    least, bounds = hard_margin(own, sign * w, bias or 0.0)
    for _ in range(_ROUNDS):
        if not 0.0 < least < 1.0:
            break
        scale = (1.0 + 2.0**-40) / least
        w, bias = scale * w, None if bias is None else scale * bias
        decisions = None if decisions is None else scale * decisions
        least, bounds = hard_margin(own, sign * w, bias or 0.0)
    proof = replace(found.certificate, bounds=bounds).with_dual_of(found.certificate)
    return replace(found, w=w, bias=bias, decisions=decisions, certificate=proof)


def _better(old: Solution, new: Solution) -> Solution:
    """Return the model with the lower P, the larger D, and the epochs of both."""
    before, after = old.certificate, new.certificate
    history = new.history.copy()
    history["epoch"] += before.epochs
    history["seconds"] += before.seconds
    best, other = (old, new) if before.primal < after.primal else (new, old)
    proof = replace(
        after,
        bounds=best.certificate.with_dual_of(other.certificate).bounds,
        epochs=before.epochs + after.epochs,
        updates=before.updates + after.updates,
        seconds=before.seconds + after.seconds,
    )
    joined = np.concatenate([old.history, history])
    alpha = old.alpha if before.dual > after.dual else new.alpha
    return replace(best, alpha=alpha, certificate=proof, history=joined)


def _met(one: Solution, job: Job) -> bool:
    """Whether the bounds of C = inf prove the accuracy of a fit."""
    return one.certificate.meets(job.tol, job.atol)


def _told(one: Solution, job: Job) -> Solution:
    """Return a solution with the target of the fit, and why it ended."""
    status = one.certificate.status
    if _met(one, job):
        status = Status.CERTIFIED
    elif job.stopped:
        status = Status.INTERRUPTED if job.stop.requested else Status.TIME_LIMIT
    elif status is Status.CERTIFIED:  # of a soft margin
        status = Status.STALLED
    proof = replace(one.certificate, status=status, tol=job.tol, atol=job.atol)
    return replace(one, certificate=proof)


def _beyond(found: Solution, limit: float) -> bool:
    """Whether the best multiple of the dual variables shows an optimum above a limit.

    D(s alpha) = s sum alpha - s^2 (sum alpha - D(alpha)).
    """
    total = float(np.sum(found.alpha))
    rest = max(total - found.certificate.dual, 0.0)
    return 0.0 < 4.0 * limit * rest < total * total or rest == 0.0 < total

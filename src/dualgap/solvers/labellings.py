"""Small problems with the same rows and different labels, solved in one call.

The core solves each of them by steps of `newton` over all rows, and evaluates the
points of its proof (src/core/labellings.hpp). The ordinary solver trains problems
whose accuracy is not proved.
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass

import numpy as np

from .. import core
from ..blas import algebra, one_thread
from ..losses import Loss
from ..problems.batch import LinearBatch
from ..problems.duals import StoredDuals
from ..problems.rounding import Values
from .auto import Auto
from .base import Limits
from .smoothing_newton import SmoothingNewton
from .some_rows import SETTINGS as ROWS
from .whole import Whole


@dataclass(frozen=True)
class SmallLabellingsSettings:
    """Tuning constants of :func:`solve_labellings`."""

    #: Features of the largest problem with few rows that is small, for the squared
    #: hinge: `dcd` takes hundreds of epochs to its optimum, `newton` a few steps.
    most_separable_features: int = 128
    #: Rows times features of a problem that is always small.
    most_entries: int = 20_000
    #: Rows times features of the largest problem, which has to be steep.
    most_steep_entries: int = 150_000
    #: Features of the largest steep problem.
    most_steep_features: int = 128
    #: Rows for one of a class from which classes are rare, as in the core.
    rare: int = 16
    #: Rows times features of the largest problem of many classes that are rare: few
    #: rows of the others matter, most often.
    most_rare_entries: int = 8_000_000
    #: Features of such a problem.
    most_rare_features: int = 128
    #: Such problems that tell whether few rows matter in most of them.
    tried: int = 8
    #: Least mean of c_i q_i of a steep problem: below, `dcd` takes few epochs.
    steep: float = 5.0
    #: Problems of some ten rows are solved to rounding level: `tol` ends only a fit
    #: that has read this many entries.
    free_entries: float = 12_000.0
    #: Steps after which the ordinary solver takes over.
    most_steps: int = 300
    #: Dual variables that one call of the core finds; of many classes it takes several.
    most_duals: int = 2**22


SETTINGS = SmallLabellingsSettings()


def few_enough(n: int, width: int, loss: Loss, steepness: float = 0.0) -> bool:
    """Whether the core solves problems of n rows, whose w has `width` entries.

    Fewer rows are for `dcd`, as :class:`Auto` says, with few exceptions; `steepness` is
    the mean of c_i q_i.
    """
    if n <= Auto.settings.separable_rows * width:
        squared = math.isinf(loss.slope)
        if not squared or width > SETTINGS.most_separable_features:
            return False
    steep = steepness >= SETTINGS.steep and width <= SETTINGS.most_steep_features
    most = SETTINGS.most_steep_entries if steep else SETTINGS.most_entries
    return n * width <= most


def are_small(solver: object, batch: LinearBatch) -> bool:
    """Whether the core solves the problems of a batch, if they have the same rows."""
    rows = batch.rows
    if type(solver) is not Auto or batch.joint or rows.streamed or rows.free_bias:
        return False
    return _few_enough(batch) or are_rare(batch)


def _few_enough(batch: LinearBatch) -> bool:
    rows = batch.rows
    steepness = batch.C / rows.C * rows.steepness
    return few_enough(rows.n, rows.width, rows.loss, steepness)


def are_rare(batch: LinearBatch) -> bool:
    """Whether the core tries the problems because their positive rows are rare."""
    rows = batch.rows
    if (
        not batch.many
        or rows.n <= Auto.settings.separable_rows * rows.width
        or rows.width > SETTINGS.most_rare_features
        or rows.n * rows.width > SETTINGS.most_rare_entries
    ):
        return False
    counts = batch.reduction.counts(batch.codes, np.arange(rows.n))
    return SETTINGS.rare * float(np.median(counts)) < rows.n


def solve_labellings(solver: object, batch: LinearBatch, job: Limits) -> Whole | None:
    """Solve all problems of a batch, whose rows may have the cost 0 in some of them.

    Returns None if the solver is not `Auto`, the rows are many or on disk, the bias is
    unpenalised, the classes have one joint problem, pairs have copies of their rows, or
    the job was stopped in the first problem. Neither does it solve large problems if
    most rows matter in most of the first ones.
    """
    rows = batch.rows
    if batch.points is not None or not are_small(solver, batch):
        return None
    assert isinstance(solver, Auto)
    begun = time.perf_counter()
    # With the squared hinge all rows of overlapping classes may matter, which are too
    # many here.
    bounded = not math.isinf(rows.loss.slope)
    sure = not batch.many or bounded or _few_enough(batch)
    newton = SmoothingNewton.settings
    settings = core.LabellingSettings(
        newton.first_tau,
        job.tol,
        job.atol,
        min(job.tol, solver.free_goal),
        SETTINGS.free_entries,
        min(SETTINGS.most_steps, ROWS.together * job.max_iter),
        ROWS.together,
        newton.rules,
    )
    settings.whole = sure
    whole = range(len(batch))
    w, stored = np.empty((len(whole), rows.width)), list[StoredDuals]()
    proofs, ends, last = [], [], 0
    each = max(1, SETTINGS.most_duals // rows.n)
    first = each if sure else min(each, SETTINGS.tried)
    with contextlib.ExitStack() as limit:
        one_thread(rows.threads.size, limit)
        for begin in [0, *whole[first::each]]:
            problems = whole[begin : begin + (each if begin else first)]
            signs, cost = batch.signs(problems), batch.costs(problems)
            alpha = np.empty(signs.shape)
            found = core.solve_labellings(
                rows.rows,
                rows.q,
                core.Labellings(signs, cost, w[begin : problems.stop], alpha),
                rows.core_loss,
                settings,
                algebra()[0],
                rows.threads,
                job.stop,
            )
            if begin == 0 and 2 * found.left > len(problems):
                return None
            own = alpha[: len(found.ends)]
            stored += map(batch.stored, own) if batch.many else list(own)
            ends.append(np.array(found.ends, np.intp) + last)
            last += len(found.epochs)
            proofs.append(found)
            if len(found.ends) < len(problems):
                break
    if not stored:
        return None
    rounding = rows.rounding
    bounds = [
        rounding.bounds(Values(*sums), norm, dual_norm, scale=scale)
        for found in proofs
        for *sums, norm, dual_norm, scale in found.sums.tolist()
    ]
    return Whole(
        w,
        stored,
        bounds,
        np.concatenate([found.epochs for found in proofs]),
        np.concatenate(ends),
        time.perf_counter() - begun,
        SmoothingNewton.name,
    )

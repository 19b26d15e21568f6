"""Small problems with the same rows and different labels, solved in one call.

The core solves each of them by steps of `newton` over all rows
(src/core/labellings.hpp) or, of many classes over sparse rows, by sweeps of `dcd`
(src/core/sweeps.hpp). It evaluates the points of their proofs. The ordinary solver
trains problems whose accuracy is not proved.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

import numpy as np

from .. import core
from ..blas import algebra, one_thread
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.duals import StoredDuals
from ..problems.rounding import Values
from .auto import Auto, begins_with_duals
from .base import Limits, Solver, Whole, targets
from .conjugate import Accelerator
from .dcd import DCD, rows_per_chunk
from .smoothing_newton import SmoothingNewton
from .some_rows import SETTINGS as ROWS


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
    #: Stored entries and rows of the largest problem of many classes whose sweeps take
    #: about as long as the calls around them.
    most_swept_entries: int = 500_000
    #: Sweeps after which the ordinary solver takes over, which accelerates them.
    most_sweeps: int = 200
    #: Dual variables that one call of the core finds; of many classes it takes several.
    most_duals: int = 2**21


SETTINGS = SmallLabellingsSettings()


def few_enough(batch: LinearBatch) -> bool:
    """Whether the core solves the problems of a batch because they are small.

    Fewer rows are for `dcd`, as :class:`Auto` says, with few exceptions.
    """
    rows, width = batch.rows, batch.rows.width
    if rows.n <= Auto.settings.separable_rows * width:
        squared = math.isinf(rows.loss.slope)
        if not squared or width > SETTINGS.most_separable_features:
            return False
    steep = batch.C / rows.C * rows.steepness >= SETTINGS.steep
    steep = steep and width <= SETTINGS.most_steep_features
    most = SETTINGS.most_steep_entries if steep else SETTINGS.most_entries
    return rows.n * width <= most


def are_small(solver: object, batch: LinearBatch) -> bool:
    """Whether the core solves the problems of a batch, if they have the same rows."""
    rows = batch.rows
    if type(solver) is not Auto or batch.joint or rows.streamed or rows.free_bias:
        return False
    return few_enough(batch) or are_rare(batch)


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


def are_swept(batch: LinearBatch, job: Limits) -> bool:
    """Whether the core makes the sweeps of `dcd` for each of many classes.

    Not from models of another C: the ordinary solver starts from those.
    """
    rows = batch.rows
    if not batch.many or rows.streamed or rows.free_bias or len(job.models) > 0:
        return False
    if rows.rows.dense or int(rows.rows.stored) + rows.n > SETTINGS.most_swept_entries:
        return False
    return begins_with_duals(cast(BinaryProblem, batch.problem(0)), job.tol)


#: Solves some problems, whose points it writes, and returns their proofs.
Call = Callable[[core.Labellings, range], core.LabellingProofs]


def by_newton(solver: Auto, batch: LinearBatch, job: Limits, sure: bool) -> Call:
    """Return a function that solves problems by steps of `newton`.

    `sure`: also those in which most rows matter.
    """
    rows, newton = batch.rows, SmoothingNewton.settings
    settings = core.LabellingSettings(
        targets(job, solver.free_goal, SETTINGS.free_entries),
        newton.first_tau,
        min(SETTINGS.most_steps, ROWS.together * job.max_iter),
        ROWS.together,
        newton.rules,
    )
    settings.whole = sure
    # A smoothed loss begins far from the optimum in any case.
    settings.near = len(job.models) > 0 and math.isinf(rows.loss.slope)

    def call(labellings: core.Labellings, problems: range) -> core.LabellingProofs:
        return core.solve_labellings(
            rows.rows, rows.q, labellings, rows.core_loss, settings, algebra()[0],
            rows.threads, job.stop,
        )  # fmt: skip

    return call


def by_sweeps(solver: Auto, batch: LinearBatch, job: Limits) -> Call:
    """Return a function that solves problems by sweeps of `dcd`, shared by threads."""
    rows, dcd = batch.rows, DCD()
    problem = cast(BinaryProblem, batch.problem(0))
    entries = rows.rows.stored / rows.n + 1.0
    # As `goal` of `Auto`.
    epoch = rows.rows.stored + rows.n + rows.width
    free = solver.free_work - solver.settings.free_epochs * epoch
    # These are the sweeps before an acceleration.
    accelerates, plain = dcd.accelerates(problem), Accelerator.settings
    easy = problem.steepness <= dcd.settings.modified_sgd_limit
    rules = core.SweepRules(
        targets(job, solver.free_goal, free),
        entries,
        rows.width + solver.epoch_work,
        min(SETTINGS.most_sweeps, job.max_iter),
        core.SweepSettings(
            plain.omega if accelerates else 1.0,
            rows_per_chunk(problem),
            modified_sgd=accelerates and easy,
        ),
        dcd.settings.longest_skip,
        solver.check_factor,
    )
    rules.lag, rules.least = plain.lag if accelerates else 0.0, plain.least_share
    threads = core.Team(job.threads)

    def call(labellings: core.Labellings, problems: range) -> core.LabellingProofs:
        seeds = [job.seeds[k % len(job.seeds)] for k in problems]
        return core.sweep_labellings(
            rows.rows, rows.q, labellings, rows.core_loss, rules, seeds, threads,
            job.stop,
        )  # fmt: skip

    return call


def solve_labellings(solver: object, batch: LinearBatch, job: Limits) -> Whole | None:
    """Solve all problems of a batch, whose rows may have the cost 0 in some of them.

    Returns None if the solver is not `Auto`, the rows are many or on disk, the bias is
    unpenalised, the classes have one joint problem, pairs have copies of their rows, or
    the job was stopped in the first problem. Neither does it solve large problems if
    most rows matter in most of the first ones, or if these take many sweeps.
    """
    rows = batch.rows
    if batch.points is not None or type(solver) is not Auto:
        return None
    # With the squared hinge all rows of overlapping classes may matter, which are too
    # many here.
    bounded = not math.isinf(rows.loss.slope)
    method: type[Solver] = SmoothingNewton
    if are_small(solver, batch):
        sure = not batch.many or bounded or few_enough(batch)
        call = by_newton(solver, batch, job, sure)
    elif are_swept(batch, job):
        sure, method = False, DCD
        call = by_sweeps(solver, batch, job)
    else:
        return None
    begun = time.perf_counter()
    whole = range(len(batch))
    w, stored = np.empty((len(whole), rows.width)), list[StoredDuals]()
    if len(job.models) > 0:
        w[:] = job.models
    proofs, ends, last = [], [], 0
    each = max(1, SETTINGS.most_duals // rows.n)
    first = each if sure else min(each, SETTINGS.tried)
    with contextlib.ExitStack() as limit:
        one_thread(rows.threads.size, limit)
        for begin in [0, *whole[first::each]]:
            problems = whole[begin : begin + (each if begin else first)]
            signs, cost = batch.signs(problems), batch.costs(problems)
            alpha = np.empty(signs.shape)
            here = w[begin : problems.stop]
            found = call(core.Labellings(signs, cost, here, alpha), problems)
            if begin == 0 and 2 * found.left > len(problems):
                return None
            own = alpha[: len(found.ends)]
            stored += batch.stored_rows(own) if batch.many else list(own)
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
        method.name,
    )

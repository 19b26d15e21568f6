"""Fits of many problems over the same dense rows, which share passes.

Chunks of problems make the steps of :mod:`.shared_steps` together. One pass in float64
proves all that seem accurate enough. `auto` and `newton` choose this way by its
counted cost.
"""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..blas import one_thread
from ..certificate import Bounds, Status
from ..losses import Vector
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.dense import SETTINGS as BLOCKS
from ..problems.dense import DenseRows, prove_together, unchecked
from ..problems.duals import StoredDuals
from ..problems.reductions import OneVsRest
from .auto import Auto, expected_cost, remaining
from .base import TINY, Limits, Solver, Whole
from .dcd import DCD, cost
from .few_rows import FewRows, are_few
from .near_folds import NearFolds, near_models, plain_rows, steps
from .shared_steps import SETTINGS as STEPS
from .shared_steps import Numbers, SharedPoint, SharedRows
from .smoothing_newton import SmoothingNewton, needed_to_share, squared_hinge_work

logger = logging.getLogger("dualgap")


@dataclass(frozen=True)
class SharedSettings:
    """Tuning constants of :func:`solve_shared`."""

    #: Most problems of a chunk: enough for products at full speed.
    chunk: int = 128
    #: Most bytes of a chunk, as part of the bytes of the rows.
    chunk_share: float = 0.6
    #: Fewest problems of a chunk whatever its bytes.
    least_chunk: int = 16
    #: A problem is proved once its estimated gap is below this share of the goal.
    proved_below: float = 0.9
    #: A problem is given up after this many steps in a row that do not halve its gap.
    most_idle: int = 6
    #: A problem is given up after this many proofs that did not find its gap.
    most_rejected: int = 3
    #: Steps with a sample of the rows, before those with all of them.
    rough_steps: int = 1
    #: Predicted matrix products with all rows.
    products: float = 14.0
    #: Predicted products of each problem with its active rows alone.
    active_products: float = 60.0
    #: Share of the active rows beyond the rows of a class.
    more_active: float = 0.03
    #: Mean of c_i q_i that these numbers are for.
    steep: float = 30.0
    #: They grow with this power of that mean.
    growth: float = 0.27
    #: They fall no further below this share of that mean.
    easiest: float = 0.002
    #: Speed of X'X as a matrix product, relative to a plain product.
    gram_speed: float = 36.0
    #: Multiply-adds that the calls for a problem cost, which grow like passes.
    calls: float = 1.3e7
    #: Multiply-adds that the calls for a block of rows cost in all passes.
    block_calls: float = 2e6
    #: `dcd` tries one of the problems while it is predicted to end within this many
    #: times the passes that sharing takes for one.
    doubtful: float = 3.0
    #: Multiply-adds that the calls for a problem of few rows cost,
    few_calls: float = 1e6
    #: passes over their triangular factor for one,
    few_own_passes: float = 4.0
    #: and passes that other methods make over the rows at least, proofs included.
    few_passes: float = 2.5
    #: Speed of a proof over few rows, relative to a plain product.
    few_speed: float = 9.0
    #: Share of the cost of the factor that a second value of C has to pay.
    few_again: float = 0.33
    #: `auto` shares passes if other methods are predicted to cost this many times more.
    margin: float = 1.4


SETTINGS = SharedSettings()
#: What a batch keeps for other values of C.
EIGENVALUES = "eigenvalues"


class SharedFit:
    """Fit of the problems of a batch, chunk by chunk.

    - `W`: models over the rows that steps are made with, shape (problems, width).
    - `found`: the proved models, over the rows of the batch.
    - `proofs`, `duals`: by number, of the problems of all chunks that were begun: the
      first ones.
    - `statuses`: limits that ended the fits of these problems; None: none did.
    - `epochs`: estimates of each problem after each of its epochs.
    - `inverses`: factors of the problems of folds near models of all rows, which take
      the place of conjugate gradients; None without such models.
    """

    def __init__(
        self,
        rows: SharedRows,
        batch: LinearBatch,
        job: Limits,
        few: FewRows | None = None,
        inverses: Sequence[Vector] | None = None,
    ) -> None:
        self.rows, self.batch, self.job, self.few = rows, batch, job, few
        self.inverses = inverses
        count = len(batch)
        self.W = self.found = np.empty((count, rows.dense.width))
        self.dense = rows.dense
        if few is not None:
            self.dense, self.found = few.dense, np.empty((count, few.dense.width))
        self.proofs: dict[int, Bounds] = {}
        self.duals: dict[int, StoredDuals] = {}
        self.statuses: list[Status | None] = []
        self.epochs: list[list[tuple[float, float, int]]] = [[] for _ in range(count)]
        self.best = np.full(count, math.inf)
        self.idle, self.rejected = np.zeros((2, count), np.intp)

    def run(self) -> None:
        """Train the chunks one after the other, until a stop."""
        size = chunk_size(self.batch)
        for first in range(0, len(self.batch), size):
            if self.stopped():
                break
            self._chunk(np.arange(first, min(first + size, len(self.batch))))

    @property
    def most_idle(self) -> int:
        # Other solvers begin near, too, where these steps do not lead to the optimum.
        return SETTINGS.most_idle if self.inverses is None else 1

    def stopped(self) -> bool:
        return bool(self.job.stop.requested or self.job.stop.expired)

    def _chunk(self, problems: Numbers) -> None:
        """Train and prove the problems of a chunk."""
        count = len(problems)
        self.statuses += [None] * count
        near = self.job.models
        W = np.array([near[k] for k in problems]) if near else self._rough(problems)
        if self.few is not None:
            W = self.few.begun(self.batch, problems, self.job)
        point = SharedPoint.start(self.rows, self.batch, problems, W)
        self._note(point)
        unproved = problems
        while True:
            left = self._leave(point)
            ended = self._limit(point)
            if ended is None and left.all():
                again = self._prove(unproved)
                if again is None:
                    return
                point, unproved = again, again.problems
            elif ended is None:
                if left.any():
                    point.keep(~left)
                if self.inverses is not None:
                    own = [self.inverses[k] for k in point.problems]
                    point.exact = np.ones(len(own), bool)
                    point.steps = steps(own, point.steps)
                else:
                    point.aim(self.stopped, self.idle[point.problems] > 0)
                point.move()
                self._note(point)
            if ended is not None:
                self._prove(unproved)
                for k in problems:
                    self.statuses[k] = ended
                return

    def _rough(self, problems: Numbers) -> Vector | None:
        """Return the models of a few steps with a sample, None without one."""
        rows = self.rows.small
        if rows is None or not self.batch.same_costs:
            return None
        point = SharedPoint.start(
            rows, self.batch, problems, None, sample=self.rows.sample
        )
        exact = np.ones(len(problems), bool)
        for _ in range(SETTINGS.rough_steps):
            point.look()
            point.aim(self.stopped, exact)
            point.move()
        return point.W

    def _note(self, point: SharedPoint) -> None:
        """Look at the models of an epoch, keep them, and tell of them."""
        self.W[point.problems] = point.W
        point.look()
        values = zip(point.problems, point.primal, point.dual, strict=True)
        gap, models = point.primal - point.dual, point.W
        if self.few is not None and self.job.told:
            models = self.few.models(models)
        for (k, primal, dual), w in zip(values, models, strict=True):
            own = self.epochs[k]
            own.append((primal, dual, len(own) + 1))
            self.job.tell(self.batch, int(k), own, w)
        halved = gap <= 0.5 * self.best[point.problems]
        self.idle[point.problems] += 1
        self.idle[point.problems[halved]] = 0
        self.best[point.problems[halved]] = gap[halved]
        logger.debug(
            "shared passes: %d problems, largest relative gap %.2e",
            len(gap),
            float((gap / np.maximum(point.dual, TINY)).max()),
        )

    def _leave(self, point: SharedPoint) -> NDArray[np.bool_]:
        """Whether each problem is near enough to be proved, or will not come nearer."""
        goal = np.maximum(self.job.tol * point.dual, self.job.atol)
        near = point.primal - point.dual <= SETTINGS.proved_below * goal
        return near | (self.idle[point.problems] >= self.most_idle)

    def _limit(self, point: SharedPoint) -> Status | None:
        if self.job.stop.requested:
            return Status.INTERRUPTED
        if self.job.stop.expired:
            return Status.TIME_LIMIT
        most = max(len(self.epochs[k]) for k in point.problems)
        more = most >= self.job.max_iter and not self._leave(point).all()
        return Status.EPOCH_LIMIT if more else None

    def _prove(self, problems: Numbers) -> SharedPoint | None:
        """Prove some problems; return those that another step may bring nearer."""
        W, batch = self.W[problems], self.batch
        if self.few is not None:
            self.found[problems] = self.few.models(W)
        models = self.found[problems]
        found = prove_together(batch, problems.tolist(), models, self.dense)
        for k, bounds, alpha in zip(
            problems.tolist(), found.bounds, found.alpha, strict=True
        ):
            if math.isinf(bounds.primal):  # w overflowed; the zero model does not
                self.found[k] = alpha[:] = 0.0
                bounds = batch.unreached(k).certificate.bounds
            self.proofs[k] = bounds
            self.duals[k] = batch.stored(alpha) if batch.many else alpha
        met = [bounds.meets(self.job.tol, self.job.atol) for bounds in found.bounds]
        self.rejected[problems] += 1
        able = (self.idle[problems] < self.most_idle) & (
            self.rejected[problems] <= SETTINGS.most_rejected
        )
        again = np.flatnonzero(~np.array(met) & able)
        if not len(again) or self.stopped():
            return None
        residual = found.residual[again]
        point = SharedPoint.at(
            self.rows, self.batch, problems[again], W[again], residual
        )
        point.look()
        point.primal = np.array([found.bounds[j].primal for j in again])
        point.dual = np.array([found.bounds[j].dual for j in again])
        return point


def chunk_size(batch: LinearBatch) -> int:
    """Return the number of problems whose arrays are in memory at a time."""
    rows = batch.rows
    each = 9 * rows.n if _kind(batch) == np.float32 else 17 * rows.n
    most = int(SETTINGS.chunk_share * rows.rows.bytes / each)
    return max(SETTINGS.least_chunk, min(SETTINGS.chunk, most))


def _kind(batch: LinearBatch) -> np.dtype[np.generic]:
    return batch.rows.rows.arrays[0].dtype


def shared_work(batch: LinearBatch) -> float:
    """Predict the cost of a whole fit of all problems, as `predicted_work` of `newton`.

    It counts matrix products, whose speed grows with the number of problems, products
    with the active rows of each problem, X'X, and calls.
    """
    rows, count = batch.rows, len(batch)
    product = float(rows.rows.stored + rows.n)
    steepness = batch.C / rows.C * rows.steepness
    hard = max(steepness / SETTINGS.steep, SETTINGS.easiest) ** SETTINGS.growth
    active = min(1.0 / batch.reduction.classes + SETTINGS.more_active, 0.5)
    own = SETTINGS.active_products * active + SETTINGS.products * STEPS.wide
    passes = hard * (SETTINGS.products * STEPS.narrow + count * own)
    gram = min(rows.n, STEPS.gram_rows * rows.width) * float(rows.width) ** 2
    if EIGENVALUES in batch.kept:
        gram = 0.0
    blocks = math.ceil(rows.n / BLOCKS.block)
    calls = hard * (SETTINGS.calls * count + SETTINGS.block_calls * blocks)
    return product * passes + gram / SETTINGS.gram_speed + calls


def chosen(solver: Solver, batch: LinearBatch, job: Limits) -> bool:
    """Whether the problems of a batch share passes with this solver."""
    rows = batch.rows
    passes = solver.passes if isinstance(solver, SmoothingNewton) else "auto"
    if type(solver) not in (Auto, SmoothingNewton) or passes == "own" or batch.joint:
        return False
    if isinstance(solver, SmoothingNewton):
        solver.check(rows)
    if not isinstance(batch.reduction, OneVsRest):
        if passes == "shared":
            raise ValueError(
                "passes='shared' of solver='newton' needs multi_class='ovr'; use "
                "passes='auto'"
            )
        return False
    if passes == "shared" or needed_to_share(rows):
        return passes == "shared"
    if len(batch) > 1 and are_few(rows.n, rows.width):
        return few_pay(batch, job)
    if len(batch) < 2 or rows.n <= Auto.settings.separable_rows * rows.width:
        return False
    product = float(rows.rows.stored + rows.n)
    problem = cast(BinaryProblem, batch.problem(0))
    alone = squared_hinge_work(problem)
    if isinstance(solver, Auto):
        dcd = expected_cost(problem, job.tol) * product
        alone = min(alone, dcd) / SETTINGS.margin
    together, alone = shared_work(batch), alone * len(batch)
    if isinstance(solver, Auto) and together <= alone:
        limit = SETTINGS.margin * together / len(batch)
        dcd = tried_alone(problem, limit, job) * len(batch)
        alone = min(alone, dcd / SETTINGS.margin)
    logger.info(
        "%s: %d problems over shared passes would cost about %.0f passes, one by one "
        "about %.0f",
        solver.name, len(batch), together / product, alone / product,
    )  # fmt: skip
    return together <= alone


def few_pay(batch: LinearBatch, job: Limits) -> bool:
    """Predict whether few wide rows are worth their triangular factor.

    A path has made it once for all its values of C.
    """
    rows, count, settings = batch.rows, len(batch), SETTINGS
    n, product = float(rows.n), float(rows.rows.stored + rows.n)
    first = 0.0 if batch.kept else (n * product + n**3) / settings.gram_speed
    if job.models:  # this is not the only C
        first *= settings.few_again
    steps = count * (settings.few_calls + settings.few_own_passes * n**2)
    proofs = 3.0 * count * product / settings.few_speed
    alone = settings.few_passes * product * count
    return settings.margin * (first + steps + proofs) <= alone


def tried_alone(problem: BinaryProblem, limit: float, job: Limits) -> float:
    """Return the multiply-adds of `dcd` for a problem; infinite beyond a limit.

    No count tells easy classes from others before training. Few epochs tell, because
    the gap of easy ones falls fast.
    """
    dcd, seen, least = DCD(), [], Auto.settings.least_epochs
    state = dcd.start(problem, core.Random(0), None)
    state.stop, state.tol = job.stop, job.tol
    product, most = float(problem.rows.stored + problem.n), SETTINGS.doubtful * limit
    while True:
        dcd.step(state, job.stop)
        spent = cost(state)
        primal, dual = dcd.estimate(state)
        if primal - dual <= job.tol * dual:
            return spent
        if dual > 0.0:
            seen.append((spent / product, math.log10((primal - dual) / dual)))
        more = remaining(seen, job.tol) * product if state.epochs >= least else 0.0
        ended = job.stop.requested or job.stop.expired
        if spent > limit or spent + more > most or ended:
            return math.inf


def rows_of(dense: DenseRows, batch: LinearBatch) -> SharedRows | None:
    """Return the rows with their eigenvalues, which all values of C share."""
    known = batch.kept.get(EIGENVALUES)
    if isinstance(known, SharedRows):
        return replace(known, dense=dense)
    found = batch.kept[EIGENVALUES] = SharedRows.of(dense)
    return found


def solve_shared(solver: Solver, batch: LinearBatch, job: Limits) -> Whole | None:
    """Solve and prove the problems of a batch together.

    Returns None if the solver has passes of its own for each problem. Raises ValueError
    if `SmoothingNewton(passes="shared")` cannot train this batch.
    """
    near = near_models(solver, batch, job)
    if not near and not chosen(solver, batch, job):
        return None
    begun = time.perf_counter()
    with contextlib.ExitStack() as stack:
        one_thread(job.threads, stack)
        pool = None
        if job.threads > 1:
            pool = stack.enter_context(ThreadPoolExecutor(job.threads))
        X = batch.rows.rows.arrays[0]
        dense, few = DenseRows(X, batch.rows.intercept_scaling, pool), None
        with unchecked():
            inverses, rows = None, None
            if near:
                folds = NearFolds(dense, batch)
                inverses = folds.inverses()
                if inverses is None and (folds.few or not chosen(solver, batch, job)):
                    return None
            if inverses is not None:
                rows = plain_rows(dense)
            elif are_few(dense.n, dense.width):
                few = FewRows.of(dense, batch, lambda: job.stop.requested)
                rows = None if few is None else few.rows
            if rows is None:
                rows = rows_of(dense, batch)
            if rows is None:
                return None
            fit = SharedFit(rows, batch, job, few, inverses)
            fit.run()
    reached = len(fit.proofs)
    if not reached:
        return None
    epochs = fit.epochs[:reached]
    return Whole(
        fit.found[:reached],
        [fit.duals[k] for k in range(reached)],
        [fit.proofs[k] for k in range(reached)],
        np.array([row for own in epochs for row in own]),
        np.cumsum([len(own) for own in epochs]),
        time.perf_counter() - begun,
        SmoothingNewton.name,
        statuses=fit.statuses,
    )

"""Block solver: working sets of many rows, and the gradient at all rows.

Problem    hinge with an unpenalised bias (the C-SVC of LIBSVM), or squared hinge with a
           penalised bias, regression or one class, or nu (problems/kernel.py,
           kernel_boxes.py, kernel_nu.py); solved through the dual
Update     the rows that violate the optimality conditions most join the newest rows of
           the last working set. The problem of the working set is solved in cache, by
           pairs (hinge) or coordinates (squared hinge), to a tenth of the violation.
           Then F = K c is updated at all rows, c_i = y_i alpha_i.
Guarantee  D never falls, and converges to the optimum.
Cost       2 n d operations for a kernel row that is not cached, 2 n q for F. Memory:
           4 n d bytes of packed rows (sparse rows take none, or 8 to 20 bytes an entry
           if there are very many features), and the cache. The matrix of the working
           set, 4 q^2 bytes, takes at most an eighth of the cache.
Source     Decomposition: Joachims 1999; second-order pairs: Fan, Chen and Lin, JMLR 6,
           2005; large working sets: Wen et al., JMLR 19, 2018. For the squared hinge
           max sum_i a_i - 1/2 a'(Q + diag delta)a over a >= 0 is the problem of
           Nanculef et al. 2014 without the constraint of the simplex: their point is
           a/sum_i a_i.

Shrinking (Joachims 1999): rows firmly at a bound, by more than the largest violation,
leave the active set together with their columns of K. They return when a certificate
fails.

Kernel rows are float32. The cache holds them in 16 bits a value if the values are in
[0, 1] and the cache has no room for two thirds of the float32 rows. When the estimated
gap meets tol, F is recomputed in float64 for the certificate. Rows keep their
approximate F if they have no dual variable and, by a bound on the error of F, no loss.
If the certificate fails, the fit goes on from the recomputed F; after repeated failures
the cache holds float32 rows. It also changes to float32 rows when the violation is so
small that the rounding to 16 bits may have caused it. Kernel rows are computed in
float64 and then rounded for rows far from the centre on the scale of the kernel, for
data that are all very near the centre, and when plain float32 rows cannot reach tol.
"""

from __future__ import annotations

import bisect
import math
import time
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from ... import core
from ...blas import limited
from ...checks import Count
from ...core import StoppedError
from ...kernels.functions import Rows
from ...kernels.gram import Subset, row_source
from ...losses import Vector
from ...problems.base import ApproximateScores, Claim, KernelHint, Proof
from ...problems.kernel_matrix import IndefiniteKernelError, MatrixProblem
from ...problems.kernel_nu import NuProblem
from ..base import register
from .base import (
    ActiveSet,
    BoxedProblem,
    KernelSolver,
    KernelState,
    RowErrors,
    movable,
)
from .interior import interior_point

# Root mean square of the rounding to 16 bits.
_ROUNDED = 2.0**-17 / math.sqrt(3.0)
# Factor for the rounding of the error bounds themselves.
_SLACK = 1.0 + 1e-6


@dataclass(frozen=True)
class BlockSettings:
    """Tuning constants of `BlockSolver`."""

    #: First sizes of a working set below each of these limits, and above.
    first_sizes: tuple[int, ...] = (256, 512, 1024, 2048)
    #: Rows from which on a working set begins larger.
    row_limits: tuple[int, ...] = (3000, 8000, 50_000)
    #: Rows of the largest working set, whose matrix takes 64 MB.
    largest_size: int = 4096
    #: The problem of a working set is solved to this fraction of the largest violation.
    inner_accuracy: float = 0.1
    #: If half the squared norms of the scaled rows (kernel_rows.hpp) are below this,
    #: all kernel values are near 1, and K - 1 is computed to tell them apart.
    close_rows: float = 0.1
    #: A cache for less than this share of the float32 rows holds 16 bits a value,
    #: which is slower. A larger one rarely drops a row that is needed again.
    fixed_share: float = 2.0 / 3.0
    #: Shrinking begins above this number of active rows.
    shrinking_rows: int = 4000
    #: An active set replaces another only if it has at most this share of its rows.
    shrinking_share: float = 0.7
    #: Least distance from the bound of an inactive row, in units of the range of the
    #: linear term: F still moves after the largest violation has become small.
    shrinking_distance: float = 0.15
    #: The same with many rows, in units of the largest violation, which few rows reach.
    shrinking_violation: float = 0.25
    #: Certificates that fail before the cache holds float32 rows, and then before rows
    #: are computed in float64.
    patience: int = 2
    #: The error of the violation may be this many times the root mean square of the
    #: rounding to 16 bits, times the norm of the change of alpha.
    doubt: float = 8.0
    #: If more than this share of rows is in doubt, the others are not looked for.
    vague_share: float = 0.9
    #: The interior-point method may take over problems of at most this many rows.
    interior_rows: int = 2000
    #: It takes over after this many times n^2 inner steps, and costs about as much.
    interior_after: float = 2.5
    #: Largest target of the relative gap for the interior-point method.
    interior_tol: float = 1e-8
    #: After it, epochs that raise D by less than this fraction of the gap have stalled.
    #: Rounding alone may raise D by a ten-thousandth of the gap.
    least_rise: float = 1e-3

    def many(self, n: int) -> bool:
        """Return whether n rows begin with the largest working sets."""
        return n >= self.row_limits[-1]

    def drops(self, n: int, cache_size: float) -> bool:
        """Whether a cache of float32 rows would drop rows that are needed again."""
        return 4.0 * self.fixed_share * n * n > 1e6 * cache_size


@dataclass(kw_only=True)
class BlockState(KernelState):
    """State of the block solver.

    The core keeps alpha, F, the working set, and the cache of rows.
    """

    source: core.RowSource
    block: core.BlockSolver
    #: Kernel rows that `block` works on: the source, or some of its rows.
    held: core.RowSource
    settings: BlockSettings
    #: Whether the cache holds 16 bits a value.
    fixed: bool
    rejected: int = 0
    #: Whether the interior-point method has been tried.
    tried: bool = False
    #: Its point, until the next epoch. The core rounds alpha to the digits of C, which
    #: are too few if C is very large.
    leapt: Vector | None = None
    whole: bool = True  # F is K c
    #: The active rows, if shrinking has left rows out; None if all rows are active.
    part: ActiveSet | None = None
    due: int = 0  # number of computed kernel rows at which shrinking is tried again
    spent: dict[str, float] = field(default_factory=dict)
    computed_before: int = 0
    #: Norm of the changes of alpha since F was exact, before the present active set.
    drifted: float = 0.0
    #: Bounds on the error of F at all rows when the core received it.
    given_error: Vector = field(init=False)
    #: Bounds on the errors of rows of `held` and of `source`; None if they have not
    #: been computed.
    held_errors: RowErrors | None = None
    source_errors: RowErrors | None = None
    #: Work until the estimated gap first met tol.
    reached: float = math.nan
    witness: ClassVar[str] = "dual"

    def __post_init__(self) -> None:
        self.given_error = np.zeros(self.problem.n)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds of the steps so far, by kind of work."""
        now = {"refresh": 0.0, **self.block.seconds}
        return {k: v + self.spent.get(k, 0.0) for k, v in now.items()}

    @property
    def computed(self) -> int:
        """Kernel rows computed so far; rows of an active set are shorter."""
        return self.computed_before + int(self.block.computed)

    def alpha(self) -> Vector:
        """Return the dual variables, shape (n,)."""
        alpha = self.block.alpha
        return alpha if self.part is None else self.part.whole(alpha)

    def gradient(self) -> Vector:
        """Return F, shape (n,), with NaN at inactive rows."""
        F = self.block.gradient
        if self.part is None:
            return F
        out = np.full(self.problem.n, math.nan)
        out[self.part.rows] = F
        return out

    @property
    def here(self) -> ApproximateScores:
        """F at the active rows, with bounds on its errors."""
        rows = slice(None) if self.part is None else self.part.rows
        error = np.full(self.problem.n, math.inf)
        error[rows] = self.given_error[rows]
        if self.block.moved > 0.0:
            error[rows] += _SLACK * self._error_of_moves()
        return ApproximateScores(self.gradient(), error, self.bias)

    def _error_of_moves(self) -> Vector:
        """Return bounds on what the steps since `set_gradient` added to errors of F."""
        block = self.block
        if self.held_errors is None:
            cache_size = self.problem.gram.cache_size
            fixed = self.fixed and self.settings.drops(self.held.n, cache_size)
            self.held_errors = RowErrors.of(self.held, fixed)
        errors, cached = self.held_errors, block.moved_by_cached
        if cached >= block.moved:
            return block.moved * errors.values
        more = errors.of_sums(block.sizes, block.moved - cached)
        return cached * errors.values + more

    @property
    def bias(self) -> float:
        """Bias of the iterate.

        An unpenalised bias is half way between the bounds that the rows put on it.
        """
        if self.problem.free_bias:
            return float(self.block.threshold) + self.problem.centre
        return float(core.signed_sum(self.problem.y, self.alpha()))

    def near(self, stop: core.Stop | None = None) -> ApproximateScores | None:
        """Return F at all rows with bounds on its errors, or None if they are too weak.

        At inactive rows F is brought up to date with float32 kernel values.

        Raises StoppedError if `stop` ends the computation early.
        """
        here = self.here
        if not self.whole or not np.isfinite(here.error).any():
            return None
        if self.part is None:
            return here
        rest = np.ones(self.problem.n, bool)
        rest[self.part.rows] = False
        alpha, (scores, error, _) = self.part.begun
        here.error[rest], here.scores[rest] = error[rest], scores[rest]
        doubt = (self.alpha() != 0.0) | self.problem.in_doubt(here)
        if doubt.mean() > self.settings.vague_share:
            return None
        moved = self.problem.y * (self.alpha() - alpha)
        if self.source_errors is None:
            self.source_errors = RowErrors.of(self.source)
        at, stop = np.flatnonzero(rest), core.Stop() if stop is None else stop
        more, off = self.source_errors.times(moved, at, stop)
        here.scores[rest] += more
        here.error[rest] += _SLACK * off
        return here

    def set_gradient(self, near: ApproximateScores) -> None:
        """Give F to the core, and note the bounds on its errors."""
        rows = slice(None) if self.part is None else self.part.rows
        self.block.set_gradient(near.scores[rows])
        self.given_error = near.error
        self.measure()

    def refresh(
        self, stop: core.Stop | None = None, near: ApproximateScores | None = None
    ) -> None:
        """Recompute F of the iterate, in float64 where the certificate needs it."""
        begun = time.perf_counter()
        problem, alpha = self.problem, self.alpha()
        self.set_gradient(problem.known(alpha, stop, near))
        self.drifted = 0.0
        self.spent["refresh"] = self.seconds["refresh"] + time.perf_counter() - begun

    @property
    def rough(self) -> bool:
        """Whether the core could compute kernel rows more accurately."""
        return isinstance(self.source, core.KernelRows) and not self.source.precise

    @property
    def blurred(self) -> bool:
        """Whether the violation may come mostly from rounding rows to 16 bits."""
        if not self.fixed:
            return False
        drift = math.hypot(self.drifted, self.block.drift)
        return bool(self.block.violation < self.settings.doubt * _ROUNDED * drift)

    def measure(self) -> None:
        """Take over P and D from the core's last scan."""
        self.primal, self.dual = self.block.primal, self.block.dual
        if self.part is not None:
            gap = self.primal - self.dual
            self.dual = self.part.dual(self.alpha(), self.gradient())
            self.primal = self.dual + gap


@register(
    *("kernel", "kernel-regression", "kernel-one-class", "kernel-simplex"),
    *("kernel-nu", "kernel-nu-regression"),
)
@dataclass(frozen=True)
class BlockSolver(KernelSolver):
    """Block solver of the kernel SVM.

    Parameters
    ----------
    q : int, optional
        Rows of a working set. By default 256 below 3,000 rows, 512 below 8,000, 1,024
        below 50,000 and 2,048 above. After 64 working sets the default doubles, up to
        4,096, if inner steps are cheap compared with kernel rows. The matrix of a
        working set never takes more than an eighth of the cache.
    threads : int, default=1
        Threads that share kernel rows and updates. The result does not depend on it.
    """

    q: Count | None = None
    threads: Count = 1

    name: ClassVar[str] = "block"
    settings: ClassVar[BlockSettings] = BlockSettings()
    losses: ClassVar[tuple[str, ...]] = (
        *("hinge", "squared_hinge"),
        *("epsilon_insensitive", "quantile", "one_class"),
    )
    # A proof may cost as much as all steps. The estimated gap is nearly exact, so it
    # need be only a little below tol before a proof.
    check_factor = 0.95
    mends_estimate: ClassVar[bool] = True
    monotone = True
    free_bias = True

    def rows_held(self, n: int) -> int:
        return min(n, 2 * self._sizes(n)[0])

    def one_of(self, problems: int, threads: int) -> BlockSolver:
        return replace(self, threads=threads)

    def check(self, problem: MatrixProblem) -> None:
        super().check(problem)
        if problem.free_bias == (problem.loss.name == "squared_hinge"):
            raise ValueError(
                f"penalize_intercept={not problem.free_bias}: solver={self.name!r} "
                f"does not support it with loss={problem.loss.name!r}; use "
                "penalize_intercept=False with loss='hinge', True with 'squared_hinge',"
                " or solver='kernel-pegasos'"
            )

    def start(
        self, problem: BoxedProblem, rng: core.Random, warm: Vector | None
    ) -> BlockState:
        gram = problem.gram
        source = row_source(gram, self.threads)
        if isinstance(source, core.KernelRows):
            near = source.largest_half_self < self.settings.close_rows
            near = source.bounded and near
            source.shifted = source.precise = problem.free_bias and near
            gram.fast = source
        fixed = source.fixed and self.settings.drops(problem.n, gram.cache_size)
        block = self._block(problem, source, fixed, rng)
        state = BlockState(
            problem,
            rng,
            source=source,
            block=block,
            held=source,
            settings=self.settings,
            fixed=fixed,
        )
        begin = problem.start() if warm is None else warm
        if begin is None:
            state.measure()
        else:
            block.set_alpha(begin)
            state.dual, state.whole = problem.lowest, False
        return state

    def _block(
        self,
        problem: BoxedProblem,
        source: core.RowSource,
        fixed: bool,
        rng: core.Random,
        part: ActiveSet | None = None,
    ) -> core.BlockSolver:
        """Return the core's solver of all rows, or of an active set.

        The dual variables of inactive rows enter it as constants.
        """
        rows: Rows = slice(None) if part is None else part.rows
        linear, total = problem.linear[rows], problem.total
        if part is not None:
            rest = problem.y * part.alpha
            rest[rows] = 0.0
            if problem.free_bias:
                total = math.fsum([total, *(-rest[rest != 0.0]).tolist()])
            else:
                linear = linear - float(rest.sum())
        form = core.Loss(problem.loss.slope, problem.loss.curvature)
        y, cost = problem.y[rows].astype(np.float64), problem.cost[rows]
        diagonal = problem.gram.diagonal()[rows]
        if isinstance(problem, NuProblem):
            total = problem.half
            if problem.two_sided:  # each row has two variables
                y = np.concatenate([y, -y])
                cost, diagonal, linear = (
                    np.tile(a, 2) for a in (cost, diagonal, linear)
                )
        box = core.BlockProblem(
            y,
            cost,
            diagonal,
            core.ResidualLoss(form, problem.epsilon, *problem.sides),
            linear,
            total,
            problem.two_sided,
            problem.two_sums,
        )
        cache_bytes = int(problem.gram.cache_size * 1e6)
        # Few active rows of many still need large working sets.
        n = problem.n if self.settings.many(problem.n) else source.n
        return core.BlockSolver(source, box, *self._sizes(n), cache_bytes, fixed, rng)

    def _shrink(self, state: BlockState) -> None:
        """Shrink the active set if many rows can leave it."""
        problem, part, settings = state.problem, state.part, self.settings
        alpha, F = state.alpha(), state.gradient()
        least = settings.shrinking_distance * float(np.ptp(problem.linear))
        share = settings.shrinking_violation if settings.many(problem.n) else 1.0
        slack = max(share * state.block.violation, least)
        busy = movable(problem, alpha, F, state.block.threshold, slack)
        rows = np.arange(problem.n) if part is None else part.rows
        rows, among = rows[busy[rows]].astype(np.uint32), len(rows)
        state.due = state.block.computed + state.block.q
        if 1 < len(rows) <= settings.shrinking_share * among:
            here = state.here
            begun = (alpha, here) if part is None else part.begun
            self._open(
                state, ActiveSet(problem, rows, alpha, F[rows], state.dual, begun)
            )
            state.block.set_alpha(alpha[rows])
            state.set_gradient(here)

    def _activate_all(
        self,
        state: BlockState,
        alpha: Vector | None = None,
        stop: core.Stop | None = None,
        near: ApproximateScores | None = None,
    ) -> None:
        """Activate all rows, and go on from the iterate or from another alpha."""
        if state.part is not None and alpha is None:
            alpha = state.alpha()
        if state.part is not None:
            self._open(state, None)
        if alpha is not None:
            state.block.set_alpha(alpha)
        try:
            state.refresh(stop, near)
        except StoppedError:
            state.whole = False

    def _open(self, state: BlockState, part: ActiveSet | None) -> None:
        """Replace the core's solver by a solver of an active set, or of all rows."""
        problem, source = state.problem, state.source
        state.spent, state.computed_before = state.seconds, state.computed
        state.drifted = math.hypot(state.drifted, state.block.drift)
        state.part = part
        del state.block  # frees the memory for the next solver
        state.held_errors = None
        if part is not None:
            source = row_source(Subset(problem.gram, part.rows), self.threads)
            whole = state.source
            if isinstance(source, core.KernelRows):
                assert isinstance(whole, core.KernelRows)
                source.shifted, source.precise = whole.shifted, whole.precise
        fixed = state.fixed and self.settings.drops(source.n, problem.gram.cache_size)
        state.held = source
        state.block = self._block(problem, source, fixed, state.rng, part)
        state.due = state.block.q

    def _sizes(self, n: int) -> tuple[int, int]:
        """Return the first and the largest size of a working set."""
        if self.q is not None:
            return self.q, self.q
        settings = self.settings
        size = settings.first_sizes[bisect.bisect(settings.row_limits, n)]
        return size, settings.largest_size

    def step(self, state: BlockState, stop: core.Stop) -> None:
        if not state.whole:
            try:
                state.refresh(stop)
            except StoppedError:
                return
            state.whole = True
        state.epochs += 1
        state.leapt = None
        try:
            steps = state.block.step(self.settings.inner_accuracy, stop)
        except ValueError as error:  # the step met negative curvature
            raise IndefiniteKernelError(str(error)) from None
        state.updates += steps
        moved, before = state.moved, (state.primal, state.dual)
        state.measure()
        # With a large C the gap may be large while D rises well by its own measure, but
        # the interior-point method would have solved such a problem. Before it, only
        # steps too short to change a value have stalled.
        stalled = (state.primal, state.dual) == before
        if state.tried:
            least = self.settings.least_rise * (state.primal - state.dual)
            stalled = state.dual - before[1] < least
        state.moved = steps > 0 and not stalled
        idle = not (moved or state.moved)
        slow = state.updates > self.settings.interior_after * state.problem.n**2
        # A proof has failed where no step is left.
        if slow or (idle and not (state.met or state.rough)):
            self._leap(state, stop)
        # Shrinking discards the cache, so it waits until the cache is full.
        block = state.block
        many = block.n > self.settings.shrinking_rows and not state.problem.two_sums
        if state.blurred:
            self._look_again(state, finer=True, stop=stop)
        elif block.full and many and block.computed >= state.due:
            self._shrink(state)

    def _leap(self, state: BlockState, stop: core.Stop) -> None:
        """Solve a small problem by the interior-point method if progress is slow."""
        n = state.problem.n
        room = 16.0 * n * n <= 1e6 * state.problem.gram.cache_size
        if state.tried or n > self.settings.interior_rows or not room:
            return
        if state.problem.two_sums:  # the method has one sum
            return
        state.tried = True
        tol = 0.1 * min(state.tol, self.settings.interior_tol)
        # With more threads than the fit has, BLAS waits for busy processors.
        with limited(self.threads):
            alpha = interior_point(state.problem, tol, stop)
        if alpha is None:
            return
        state.leapt = alpha
        self._activate_all(state, alpha)
        # Cancellation may hide from the estimate that this point is optimal. A gap of 0
        # makes the loop ask for a proof.
        state.moved, state.primal = True, state.dual

    def iterate(self, state: BlockState) -> tuple[None, Vector]:
        return None, state.alpha()

    def claim(self, state: BlockState) -> Claim:
        if state.leapt is not None:
            return Claim(alpha=state.leapt, hint=KernelHint(stop=state.stop))
        alpha, near = state.alpha(), state.near(state.stop)
        if state.part is not None and near is not None:
            # After a failed proof F is brought up to date from here.
            state.part = replace(state.part, begun=(alpha, near))
        return Claim(alpha=alpha, hint=KernelHint(near, state.stop))

    def unproved(self, state: BlockState) -> Proof | None:
        proof = super().unproved(state)
        if proof is None:
            return None
        decisions = state.gradient() + state.bias
        return proof._replace(decisions=decisions, bias=state.bias)

    def reject(self, state: BlockState) -> None:
        state.rejected += 1
        finer = state.rejected >= self.settings.patience or not state.moved
        self._look_again(state, finer, stop=None)

    def _look_again(
        self, state: BlockState, finer: bool, stop: core.Stop | None
    ) -> None:
        """Go on from an exact F with all rows active.

        With `finer`, kernel rows are also held or computed more accurately.
        """
        try:
            near = state.near(stop)
        except StoppedError:
            near = None
        resting = state.part is not None
        if finer:
            source, rough = state.source, state.rough
            if isinstance(source, core.KernelRows) and not (
                state.fixed and state.moved
            ):
                source.precise = True
            if rough or state.fixed:
                state.block.forget_rows()
            state.fixed, state.rejected = False, 0
            state.held_errors = state.source_errors = None
        self._activate_all(state, stop=stop, near=near)
        if resting and state.whole:  # few of the inactive rows had to return
            self._shrink(state)

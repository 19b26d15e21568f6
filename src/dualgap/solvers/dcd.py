"""DCD: dual coordinate descent with shrinking.

Problem    min 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i), through its dual (losses.py)
Update     G = y_i w.x_i - 1 + delta_i a_i; where the projected gradient is not 0,
           a_i <- min(max(a_i - G/(q_i + delta_i), 0), U_i), w <- w + (change) y_i x_i
           The first pass over text from a = 0, at small costs, is Modified-SGD
           (Shalev-Shwartz and Zhang, JMLR 14, 2013): row t sees w n/t, as if the rows
           before it were all rows. It does not go to its bound merely because w is
           still incomplete.
Shrinking  "sleep": a row at a bound whose G points outward by more than g, the mean
           projected gradient of the previous epoch, is skipped for 1 epoch, then 3, 7,
           ..., 127, or for G/2g if that is more (src/core/epochs/sleeping_rows.hpp).
           There is no global reactivation: a proof reactivates the rows that it finds
           on the wrong side of their margin.
           "hsieh": rows at a bound whose G points outward beyond the previous epoch's
           extremes M, m of the projected gradient are removed until a full check.
Streams    Rows of a store come in blocks of random pages, newly drawn in every epoch.
           A block is swept `block_sweeps` times while it is in memory (the blocks of
           Yu, Hsieh, Chang and Lin, KDD 2010, are fixed; see data/blocks.py).
Guarantee  linear rate (Theorem 1); D never falls after that first pass.
Cost       one product with the active rows per epoch; 14 bytes per row ("hsieh": 12).
Source     Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008; "hsieh" is its
           Algorithm 3. The paper stops at M - m < eps over all rows, and reactivates
           all rows when only the active ones meet it. Here the certified gap decides
           when to stop; eps only decides when to reactivate, and shrinks tenfold each
           time all rows meet it.

A bias that is not penalised adds the constraint sum_i a_i y_i = 0 to the dual, which no
step on one coordinate keeps. The method of multipliers (Rockafellar, Math. Oper. Res.
1, 1976) penalises only the distance of the bias from its last value b_k,

    min 1/2 ||w||^2 + (b - b_k)^2/(2 s^2) + sum_i c_i l(y_i (w.x_i + b)).

In the dual this is a constant feature of value s whose weight starts at b_k/s. Exact
minimisers b_{k+1} converge to the best bias for every s. Here b_k moves after every
epoch, so that both converge together. The certificate, about a point with
sum_i a_i y_i = 0, decides when they have.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..checks import Count
from ..data.blocks import Block
from ..losses import Vector
from ..problems.base import BinaryHint, Claim
from ..problems.binary import BinaryProblem
from .base import Solver, State, new_order, page_order, random_blocks, register
from .conjugate import Accelerator, Mode

Counters = NDArray[np.uint8]


@dataclass(frozen=True)
class DCDSettings:
    """Tuning constants of `DCD`."""

    #: Bytes of consecutive rows visited together where rows share few features.
    chunk_bytes: int = 8192
    #: Most epochs for which shrinking skips a row.
    longest_skip: int = 127
    #: Most epochs for which it skips a row while sweeps are accelerated. 30 such
    #: sweeps gain two digits.
    longest_skip_accelerated: int = 31
    #: Modified-SGD is the better first pass over text up to this mean of c_i q_i.
    modified_sgd_limit: float = 0.15
    #: Epochs after which w is recomputed from alpha: rounding of updates adds up.
    repair_every: int = 64


SETTINGS = DCDSettings()


def coherent(problem: BinaryProblem) -> bool:
    """Whether rows share too many features to shuffle them in chunks.

    On a9a chunks of 2 KB double the epochs; on text 64 KB cost none.
    """
    return share_features(problem.n, problem.width, problem.rows.stored)


def share_features(n: int, d: int, stored: int) -> bool:
    """Whether n rows of d columns with `stored` stored entries share many features."""
    return d < 2000 or stored > 0.02 * n * d


def rows_per_chunk(problem: BinaryProblem, settings: DCDSettings = SETTINGS) -> int:
    """Return how many consecutive rows are visited together."""
    if coherent(problem):
        return 1
    return max(1, settings.chunk_bytes * problem.n // max(problem.rows.bytes, 1))


def cost(state: DCDState) -> float:
    """Return the work so far, in multiply-adds of a plain product with the data.

    That product has ``rows.stored + n`` of them. Work is counted, never timed, so that
    choices based on it are reproducible. The factors were fitted to epochs over ten
    data sets on one machine. In a small, coherent problem a visit in random order waits
    for the previous update before its dot product; over text it waits for memory.
    """
    problem = state.problem
    row = problem.rows.stored / problem.n
    if coherent(problem):
        visit, update = 1.2 * row + 55.0, 0.6 * row + 15.0
    else:
        visit, update = 1.1 * row + 20.0, 0.6 * row
    between = state.epochs * (problem.n + problem.width + 15_000.0)  # and the call
    return state.visited * visit + state.updates * update + between


@dataclass(kw_only=True)
class DualState(State):
    """Dual point and the w that it defines."""

    alpha: Vector
    w: Vector
    witness: ClassVar[str] = "dual"

    @property
    def point(self) -> core.DualState:
        """The core's record of alpha and w."""
        return core.DualState(self.alpha, self.w)

    def repair(self) -> None:
        """Recompute w from alpha: after millions of updates it is 1e-12 off."""
        self.problem.combine(self.alpha, self.w)

    def dual_value(self, norm: float) -> float:
        """Return D at alpha, given the squared norm of its w."""
        return self.problem.dual_value(self.alpha, norm)

    def after_pass(
        self, visited: int, updates: int, gap: float, norm: float | None = None
    ) -> None:
        """Count a pass: D is exact for (alpha, w), and P adds the gap of the visits."""
        self.epochs += 1
        self.visited += visited
        self.updates += updates
        self.dual = self.dual_value(core.squared_norm(self.w) if norm is None else norm)
        self.primal = self.dual + gap


@dataclass
class Sweep:
    """Progress of a pass over blocks, and the sums over their rows so far."""

    order: NDArray[np.uint32]  # of the pages
    done: int = 0
    visited: int = 0
    updates: int = 0
    gap: float = 0.0
    moving: float = 0.0  # sum of |projected gradient|
    norm: float = 0.0


@dataclass(kw_only=True)
class DCDState(DualState):
    """Dual point, and the rows that shrinking skips."""

    q: Vector
    #: Value of the constant feature, where it is not the problem's own.
    constant: float | None = None
    sweep: Sweep | None = None  # in progress
    # "hsieh": the active rows are order[:active].
    active: int
    upper: float = math.inf  # M-bar
    lower: float = -math.inf  # m-bar
    eps: float = 0.1  # LIBLINEAR's default
    # "sleep": for how many more epochs a row is skipped, and for how many in a row.
    wake: Counters = field(default_factory=lambda: np.empty(0, np.uint8))
    length: Counters = field(default_factory=lambda: np.empty(0, np.uint8))
    threshold: float = math.nan  # not known yet
    linear: float = 0.0  # sum a_i - 1/2 sum delta_i a_i^2
    chunk: int = 1
    last_visited: int = 0
    accelerator: Accelerator | None = None
    modified_sgd: bool = False  # in the first pass
    data: core.Examples | None = None  # the core's record of all rows, made once

    parts: ClassVar[tuple[type, ...]] = (Sweep, Accelerator, Mode)

    def examples(self, block: Block | None = None) -> core.Examples:
        """Return the core's record of the rows, with the feature of this state."""
        if block is None and self.data is not None:
            return self.data
        found = self.problem.examples(block, q=self.q, constant=self.constant)
        if block is None:
            self.data = found
        return found

    def skipped(self, threshold: float, longest: int) -> core.Sleep:
        """Return the core's record of shrinking."""
        return core.Sleep(self.wake, self.length, threshold, longest)

    def restore(self) -> None:
        """Make all rows active, and shrink nothing in the next pass."""
        self.active = self.problem.n
        self.upper, self.lower = math.inf, -math.inf
        self.wake[:] = 0  # rows still firmly at a bound are skipped as long as before

    def start_shrinking(self, settings: DCDSettings = SETTINGS) -> None:
        """Prepare the counters of skipped epochs."""
        self.wake = np.zeros(self.problem.n, np.uint8)
        self.length = np.zeros(self.problem.n, np.uint8)
        self.chunk = rows_per_chunk(self.problem, settings)
        self.linear = self.problem.dual_value(self.alpha, 0.0)

    def repair(self) -> None:
        super().repair()
        self.linear = self.problem.dual_value(self.alpha, 0.0)

    def dual_value(self, norm: float) -> float:
        if not self.wake.size:
            return super().dual_value(norm)
        return self.linear - 0.5 * norm


def constant_feature(q: Vector, cost: Vector) -> float:
    """Return the value s of the constant feature of an unpenalised bias.

    It is a tenth of a typical row, so that it does not slow the rows down, but large
    enough for all rows together to move the bias by 1 in a pass.
    """
    return max(math.sqrt(0.01 * q.mean()), 1.0 / math.sqrt(cost.sum()))


@dataclass(kw_only=True)
class FreeBiasState(DCDState):
    """Rows with the constant feature s, whose weight in w stands for the bias b/s."""

    s: float
    centre: float  # b_k

    @classmethod
    def begin(
        cls, problem: BinaryProblem, rng: core.Random, alpha: Vector, w: Vector
    ) -> FreeBiasState:
        q = problem.norms(0.0)
        s = constant_feature(q, problem.cost)
        state = cls(
            problem,
            rng,
            new_order(0 if problem.streamed else problem.n),
            alpha=alpha,
            w=w,
            constant=s,
            q=q + s * s,
            active=problem.n,
            s=s,
            centre=float(w[-1]),
        )
        state.w[-1] = state.weight()
        return state

    def weight(self) -> float:
        """Return the last entry of w = sum_i a_i y_i (x_i, s), from the centre b_k."""
        off = core.signed_sum(self.problem.y, self.alpha)
        return self.centre / self.s + self.s * off

    def repair(self) -> None:
        problem = self.problem
        problem.weighted_sum(self.alpha, self.w, self.s)
        self.w[-1] = self.weight()
        self.linear = self.problem.dual_value(self.alpha, 0.0)

    def after_pass(
        self, visited: int, updates: int, gap: float, norm: float | None = None
    ) -> None:
        super().after_pass(visited, updates, gap, norm)
        problem, total = self.problem, float(self.alpha.sum())
        # The exact sum costs more than a pass over a few active rows.
        off = (float(self.w[-1]) - self.centre / self.s) / self.s
        dual = self.dual_value(problem.squared_norm(self.w))
        bias = self.s * float(self.w[-1])
        # Exact for this bias. Balancing alpha moves D by its derivatives times alpha,
        # which sum up to 2 D - sum a_i, times the share of the heavier half.
        self.primal = dual - bias * off + gap
        self.dual = dual - bias * off
        if total > 0.0:
            self.dual -= 2.0 * abs(off) / total * max(2.0 * dual - total, 0.0)
        if bias != self.centre:
            self.updates += 1
        self.centre = bias
        self.w[-1] = bias / self.s + self.s * off


@register("binary")
@dataclass(frozen=True)
class DCD(Solver):
    """Dual coordinate descent of Hsieh et al. 2008.

    Parameters
    ----------
    shrinking : {"sleep", "hsieh", "none"}, default="sleep"
        When rows that are firmly at a bound are skipped: for ever more epochs, by the
        heuristic of Hsieh et al. (section 3.2), or never.
    acceleration : {"auto", "conjugate", "none"}, default="auto"
        Momentum, and then conjugate directions, between the sweeps. "auto" uses them
        if rows share few features (text), shrinking is "sleep", and the bias is not
        free. The model is then the best multiple of ``sum alpha_i y_i x_i``; with
        "none" it is the sum itself.
    block_sweeps : int or "auto", default="auto"
        Sweeps over a block of a store before the next block is read. "auto": 2 if rows
        share few features, else 5. More sweeps save few passes.
    """

    shrinking: Literal["sleep", "hsieh", "none"] = "sleep"
    acceleration: Literal["auto", "conjugate", "none"] = "auto"
    block_sweeps: Count | Literal["auto"] = "auto"

    name: ClassVar[str] = "dcd"
    settings: ClassVar[DCDSettings] = SETTINGS
    resumes: ClassVar[bool] = True
    dual: ClassVar[bool] = True
    monotone = True
    free_bias = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.acceleration == "conjugate" and self.shrinking != "sleep":
            raise ValueError(
                f"acceleration='conjugate' needs shrinking='sleep', got "
                f"shrinking={self.shrinking!r}; leave acceleration at 'auto'"
            )

    @property
    def streams(self) -> bool:
        return self.shrinking != "hsieh" and self.acceleration != "conjugate"

    def check(self, problem: BinaryProblem) -> None:
        super().check(problem)
        if problem.free_bias and self.acceleration == "conjugate":
            raise ValueError(
                "acceleration='conjugate' cannot leave the bias unpenalised; use "
                "acceleration='auto', or penalize_intercept=True"
            )

    def accelerates(self, problem: BinaryProblem) -> bool:
        """Whether sweeps over this problem are accelerated."""
        if self.acceleration == "auto":
            possible = self.shrinking == "sleep" and not problem.streamed
            return possible and not problem.free_bias and not coherent(problem)
        return self.acceleration == "conjugate"

    def sweeps(self, problem: BinaryProblem) -> int:
        """Return the sweeps over a block of a store before the next block is read."""
        if isinstance(self.block_sweeps, int):
            return self.block_sweeps
        return 5 if coherent(problem) else 2

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> DCDState:
        alpha = np.zeros(problem.n) if warm is None else warm
        state: DCDState
        if problem.free_bias:
            state = FreeBiasState.begin(problem, rng, alpha, problem.combine(alpha))
        else:
            w = np.zeros(problem.width) if warm is None else problem.combine(alpha)
            state = DCDState(
                problem,
                rng,
                new_order(0 if problem.streamed else problem.n),
                alpha=alpha,
                w=w,
                q=problem.q_read,
                active=problem.n,
            )
        if self.shrinking == "sleep" or problem.streamed:
            state.start_shrinking(self.settings)
        if self.accelerates(problem):
            state.accelerator = Accelerator.begin(state)
            easy = problem.steepness <= self.settings.modified_sgd_limit
            state.modified_sgd = warm is None and easy
        return state

    def step(self, state: DCDState, stop: core.Stop) -> None:
        if state.problem.streamed:
            self._streamed_pass(state, stop)
        elif self.shrinking == "sleep":
            self._skipping_pass(state, stop)
        else:
            self._hsieh_pass(state, stop)

    def _repair_is_due(self, state: DCDState) -> bool:
        return (state.epochs + 1) % self.settings.repair_every == 0

    def _skipping_pass(self, state: DCDState, stop: core.Stop) -> None:
        accelerator = state.accelerator
        longest, omega, moving = self.settings.longest_skip, 1.0, False
        modified_sgd = state.modified_sgd and state.epochs == 0
        repair = self._repair_is_due(state)
        if accelerator is not None:
            if not repair:
                repair = not accelerator.advance(state, stop)
            omega = 1.0 if modified_sgd else accelerator.omega
            moving = accelerator.moving
            if moving:
                longest = self.settings.longest_skip_accelerated
        if repair:
            state.repair()
            if accelerator is not None:
                accelerator.forget(state)
        found = core.sleeping_epoch(
            state.examples(),
            state.point,
            state.skipped(state.threshold, longest),
            core.SweepSettings(omega, state.chunk, moving, modified_sgd),
            state.order,
            state.rng,
            stop,
        )
        state.threshold = found.threshold
        state.linear += found.linear
        state.last_visited = found.visited
        gap = found.gap
        if accelerator is not None:
            after_sgd = state.modified_sgd and state.epochs == 1
            gap = accelerator.estimate(gap, found.saved, after_sgd)
        state.after_pass(found.visited, found.updates, gap, found.norm)

    def _streamed_pass(self, state: DCDState, stop: core.Stop) -> None:
        problem, sweep = state.problem, state.sweep
        if sweep is None:
            if self._repair_is_due(state):
                state.repair()
            sweep = state.sweep = Sweep(page_order(problem))
            state.rng.shuffle(sweep.order)
        blocks = random_blocks(problem, sweep.order)
        for block in problem.blocks(blocks[sweep.done :]):
            self._sweep_block(state, sweep, block, stop)
            if stop.requested or stop.expired:
                break
            sweep.done += 1
            if state.pause is not None and sweep.done < len(blocks):
                state.pause()
        state.sweep = None
        if sweep.visited:
            state.threshold = sweep.moving / sweep.visited
        state.last_visited = sweep.visited
        state.after_pass(sweep.visited, sweep.updates, sweep.gap, sweep.norm)

    def _sweep_block(
        self, state: DCDState, sweep: Sweep, block: Block, stop: core.Stop
    ) -> None:
        examples, order = state.examples(block), np.empty(block.size, np.uint32)
        alpha = block.take(state.alpha)
        wake, length = block.take(state.wake), block.take(state.length)
        # In the first pass w is still being built: gradients say little about later.
        skips = self.shrinking == "sleep" and not math.isnan(state.threshold)
        threshold = state.threshold if skips else math.inf
        point = core.DualState(alpha, state.w)
        sleep = core.Sleep(wake, length, threshold, self.settings.longest_skip)
        settings = core.SweepSettings(chunk=state.chunk)
        for k in range(self.sweeps(state.problem)):
            found = core.sleeping_epoch(
                examples, point, sleep, settings, order, state.rng, stop
            )
            sweep.norm = found.norm
            state.linear += found.linear
            sweep.visited += found.visited
            sweep.updates += found.updates
            sweep.moving += found.visited * found.threshold if found.visited else 0.0
            if k == 0:  # later sweeps see a w that is fitted to this block
                sweep.gap += found.gap
        block.put(state.alpha, alpha)
        block.put(state.wake, wake)
        block.put(state.length, length)

    def _hsieh_pass(self, state: DCDState, stop: core.Stop) -> None:
        if self.shrinking == "none":
            state.restore()
        state.rng.shuffle(state.order[: state.active])
        found = core.dcd_epoch(
            state.examples(),
            state.order,
            state.active,
            state.point,
            state.upper,
            state.lower,
            stop,
        )
        state.after_pass(found.visited, found.updates, found.gap)
        everything = state.active == state.problem.n
        state.active = found.active
        largest, smallest = found.max_gradient, found.min_gradient
        state.upper = largest if largest > 0.0 else math.inf
        state.lower = smallest if smallest < 0.0 else -math.inf
        if found.active == 0 or largest - smallest <= state.eps:
            if everything:
                state.eps *= 0.1
            state.restore()

    def iterate(self, state: DCDState) -> tuple[None, Vector]:
        return None, state.alpha

    def claim(self, state: DCDState) -> Claim:
        return Claim(alpha=state.alpha, hint=self._hint(state))

    def _hint(self, state: DCDState) -> BinaryHint:
        # With a free bias the last entry of w is not the bias itself.
        if state.problem.free_bias:
            return BinaryHint()
        if state.problem.streamed:
            return BinaryHint(near=state.w)  # a pass over the store is expensive
        skipped = state.wake if state.wake.size else None
        accelerated, first = state.accelerator, state.epochs == 0
        # Directions are differences of w, so w must not jump.
        if accelerated is not None and accelerated.moving:
            return BinaryHint(rescale=True, skipped=skipped)
        # At a start from another C a multiple of w may be the better model.
        rescale = first and accelerated is not None
        return BinaryHint(state.w, rescale, combined=first, skipped=skipped)

    def reject(self, state: DCDState) -> None:
        if state.problem.free_bias:
            state.repair()
        if self._hint(state).skipped is None:  # the proof reactivated no row
            state.restore()

"""SDCA: stochastic dual coordinate ascent.

Problem    P(w) = (1/n) sum phi_i(w.x_i) + lambda/2 ||w||^2, lambda = 1/(nC); here
           times 1/lambda, with a_i = c_i b_i where the paper has y_i b_i in alpha_i
Update     a_i <- argmax of D over a_i alone, w <- w + (change) y_i x_i, for one i
Guarantee  E[gap] <= eps after n + O(1/(lambda eps)) steps for the hinge (Theorem 1),
           (n + 1/(lambda gamma)) log(1/eps) for smooth losses (Theorem 2), for the
           average or a random one of the iterates after T0 = T/2; one pass of
           Modified-SGD first removes the log n of a cold start (Theorem 3)
Cost       one product with X per epoch; 8 bytes per row, or 24 for an average
Source     Shalev-Shwartz and Zhang, JMLR 14 (2013), procedures SDCA, SDCA-Perm and
           SDCA with SGD Initialization.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from ... import core
from ...data.blocks import Block
from ...losses import Vector
from ...problems.binary import BinaryProblem
from ..base import RowOrder, SteppedSolver, new_order, register, row_visits
from ..dcd import DualState


@dataclass(kw_only=True)
class SDCAState(DualState):
    """Dual point and, for the other outputs, their sums."""

    # Window (T0, T] of the averaged or random output.
    window_start: int = 0  # T0 in epochs
    steps: int = 0  # steps inside the window
    average_sum: Vector | None = None
    average_since: Vector | None = None
    random_alpha: Vector | None = None


@register("binary")
@dataclass(frozen=True)
class SDCA(SteppedSolver):
    """Stochastic dual coordinate ascent of Shalev-Shwartz and Zhang 2013.

    Parameters
    ----------
    order : {"permutation", "random", "cyclic"}, default="permutation"
        "permutation" is SDCA-Perm, "random" the variant of the analysis.
    init : {"zero", "sgd"}, default="zero"
        Start from 0, or from one pass of Modified-SGD.
    output : {"last", "average", "random"}, default="last"
        Last iterate, or the average or a random one of the iterates in the window
        (T0, T]. T is not known in advance, so T0 is the last power of two, in epochs,
        below T.
    """

    order: Literal["permutation", "random", "cyclic"] = "permutation"
    init: Literal["zero", "sgd"] = "zero"
    output: Literal["last", "average", "random"] = "last"

    name: ClassVar[str] = "sdca"
    resumes: ClassVar[bool] = True
    dual: ClassVar[bool] = True
    streams = True

    @property
    def monotone(self) -> bool:
        # Independent draws can miss the rows that still move.
        return self.order != "random" and self.output == "last"

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> SDCAState:
        alpha = np.zeros(problem.n) if warm is None else warm
        w = np.zeros(problem.width) if warm is None else problem.combine(alpha)
        order = new_order(0 if problem.streamed else problem.n)
        state = SDCAState(problem, rng, order, alpha=alpha, w=w)
        if self.output == "average":
            state.average_sum = np.zeros(problem.n)
            state.average_since = np.zeros(problem.n)
        return state

    def step(self, state: SDCAState, stop: core.Stop) -> None:
        self._move_window(state)
        sgd = self.init == "sgd" and state.epochs == 0 and not state.alpha.any()
        # Modified-SGD takes every row once: a row drawn twice would count twice in w.
        kind: RowOrder = "permutation" if sgd and self.order == "random" else self.order
        cut = 0 if sgd else self._draw_cut(state)
        before, passes = 0, []
        for block, order in row_visits(kind, state, stop):
            if sgd:
                passes.append(self._sgd_pass(state, block, order, before, stop))
            else:
                here = min(max(cut - before, 0), len(order))
                if here > 0:
                    passes.append(self._pass(state, block, order[:here], stop))
                    if before + here == cut:
                        state.random_alpha = state.alpha.copy()
                passes.append(self._pass(state, block, order[here:], stop))
            before += block.size
        visited, updates, gap = (sum(part) for part in zip(*passes, strict=True))
        gap *= state.problem.n / max(int(visited), 1)
        state.after_pass(int(visited), int(updates), gap)

    def _draw_cut(self, state: SDCAState) -> int:
        """Draw the step of this pass whose point is kept; 0 for none.

        Every point of the window is equally likely to be the last one kept (reservoir
        sampling).
        """
        if self.output != "random":
            return 0
        epochs_before = state.epochs - state.window_start
        left = state.steps_left
        if left is not None and left < state.problem.n:  # the pass ends early
            steps = epochs_before * state.problem.n + left
            kept = int(state.rng.below(min(steps, 2**32 - 1))) < left
            return int(state.rng.below(left)) + 1 if kept else 0
        keep = state.rng.below(epochs_before + 1) == 0
        return int(state.rng.below(state.problem.n)) + 1 if keep else 0

    def _sgd_pass(
        self,
        state: SDCAState,
        block: Block,
        order: np.ndarray,
        before: int,
        stop: core.Stop,
    ) -> tuple[int, int, float]:
        problem, alpha = state.problem, block.take(state.alpha)
        point = core.DualState(alpha, state.w)
        found = core.modified_sgd_epoch(
            problem.examples(block), order, point, before, problem.n, stop
        )
        block.put(state.alpha, alpha)
        return found.visited, found.updates, found.gap

    def _pass(
        self, state: SDCAState, block: Block, order: np.ndarray, stop: core.Stop
    ) -> tuple[int, int, float]:
        alpha, average = block.take(state.alpha), None
        total, since = block.take(state.average_sum), block.take(state.average_since)
        if total is not None and since is not None:
            average = core.Average(total, since, state.steps)
        point = core.DualState(alpha, state.w)
        found = core.sdca_epoch(
            state.problem.examples(block), order, point, average, stop
        )
        block.put(state.alpha, alpha)
        block.put(state.average_sum, total)
        block.put(state.average_since, since)
        state.steps += found.visited
        return found.visited, found.updates, found.gap

    def _move_window(self, state: SDCAState) -> None:
        """Start a new window when the epochs so far are a power of two."""
        if state.epochs & (state.epochs - 1) == 0:
            state.window_start = state.epochs
            state.steps = 0
            if state.average_sum is not None and state.average_since is not None:
                state.average_sum[:] = 0.0
                state.average_since[:] = 0.0

    def iterate(self, state: SDCAState) -> tuple[None, Vector]:
        if self.output == "random" and state.random_alpha is not None:
            return None, state.random_alpha
        if (
            state.average_sum is not None
            and state.average_since is not None
            and state.steps > 0
        ):
            elapsed = state.steps - state.average_since
            mean = (state.average_sum + state.alpha * elapsed) / state.steps
            return None, np.minimum(mean, state.problem.upper)
        return None, state.alpha

    def reject(self, state: SDCAState) -> None:
        state.repair()

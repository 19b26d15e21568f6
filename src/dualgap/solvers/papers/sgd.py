"""SGD-r, SGD-s and SGD-m: stochastic gradient descent revisited.

Problem    min 1/2 ||w||^2 + sum_i c_i max(0, 1 - y_i w.x_i),  lambda = 1/sum_i c_i
Update     in a_t = lambda t w_t: a <- a + y_k x_k if y_k a.x_k <= lambda t; t <- t + 1
           SGD-r draws k at random; SGD-s goes through a new permutation every epoch, or
           through one order again and again;
           SGD-m also presents each row 5 times in a row in the T-th epoch if
           0 < T mod 9 < 5, in one O(1) decision (Proposition 3)
Guarantee  after T whole epochs L_T = C M/T - 1/2 ||w_T||^2 <= P* (Proposition 2)
Cost       one product with X per epoch, whatever the multiplicity; 8 bytes per row
           for the margin-error counts I_k. The paper does not keep them: they make
           a_k = C I_k/T a dual point that an independent pass can check.
Source     Panagiotakopoulos and Tsampouka 2013, arXiv 1304.6383, section 3.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...checks import Count, Step
from ...data.blocks import Block
from ...losses import Vector
from ...problems.binary import BinaryProblem
from ..base import OrderedSolver, State, SteppedSolver, new_order, register, row_visits

Visits = Iterator[tuple[Block, NDArray[np.uint32]]]


@dataclass(kw_only=True)
class SGDState(State):
    """Point a, time t and the counters of the paper."""

    a: Vector
    errors: NDArray[np.int64]  # I_k
    omega: Vector
    lambda_: float
    t: float = 0.0  # presentations
    norm: float = 0.0  # r = ||a||^2
    total_errors: float = 0.0  # M, weighted by omega
    witness: ClassVar[str] = "norm"


@dataclass(frozen=True)
class _CountingSGD(SteppedSolver):
    """Base of the three variants.

    Parameters
    ----------
    check_factor : float, default=1.2
        f of the paper: J is measured by an independent pass once the estimated gap is
        below `check_factor` times the target. While the estimate proves too low, the
        fit lowers the factor by itself.
    """

    check_factor: Step = field(default=1.2, kw_only=True)

    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    resumes: ClassVar[bool] = True

    @abstractmethod
    def visits(self, state: SGDState, stop: core.Stop) -> Visits:
        """Return the blocks of the next epoch, each with the order of its rows."""

    def multiplicity(self, epoch: int) -> int:
        """Return how often a visit presents its row; epochs count from 1."""
        return 1

    @property
    def streams(self) -> bool:
        return True

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> SGDState:
        return SGDState(
            problem,
            rng,
            new_order(0 if problem.streamed else problem.n),
            a=np.zeros(problem.width),
            errors=np.zeros(problem.n, dtype=np.int64),
            omega=problem.omega,
            lambda_=problem.lambda_,
        )

    def step(self, state: SGDState, stop: core.Stop) -> None:
        problem = state.problem
        before = state.visited
        loss, times = 0.0, self.multiplicity(state.epochs + 1)
        for block, order in self.visits(state, stop):
            errors = block.take(state.errors)
            point = core.CountingState(state.a, errors, state.t, state.norm)
            examples = problem.examples(block, cost=state.omega)
            found = core.counting_sgd_epoch(
                examples, state.lambda_, times, order, point, stop
            )
            state.t, state.norm = point.t, point.norm
            block.put(state.errors, errors)
            loss += found.loss
            state.visited += found.visited
            state.updates += found.updates
            state.total_errors += found.weighted
        state.epochs += 1
        # J and L_T of the paper's pseudocode; C = mean cost, T = t/n.
        mean_cost = 1.0 / (state.lambda_ * problem.n)
        half_norm = 0.5 * state.norm / (state.lambda_ * state.t) ** 2
        seen = max(state.visited - before, 1)
        state.primal = half_norm + mean_cost * loss * (problem.n / seen)
        state.dual = mean_cost * state.total_errors * problem.n / state.t - half_norm

    def iterate(self, state: SGDState) -> tuple[Vector, Vector]:
        problem = state.problem
        if state.t == 0.0:
            return state.a.copy(), np.zeros(problem.n)
        w = state.a / (state.lambda_ * state.t)
        # Within an epoch, and for SGD-r always, duals may leave the box.
        alpha = problem.cost * (state.errors * (problem.n / state.t))
        return w, np.minimum(alpha, problem.upper)


@register("binary")
@dataclass(frozen=True)
class SGDr(_CountingSGD):
    """SGD-r: rows are drawn at random; duals that leave the box are clipped to it."""

    name: ClassVar[str] = "sgd-r"

    def visits(self, state: SGDState, stop: core.Stop) -> Visits:
        return row_visits("random", state, stop)


@dataclass(frozen=True)
class _EpochSGD(OrderedSolver, _CountingSGD):
    """Base of the variants that visit every row once an epoch."""

    def visits(self, state: SGDState, stop: core.Stop) -> Visits:
        return row_visits(self.order, state, stop)


@register("binary")
@dataclass(frozen=True)
class SGDs(_EpochSGD):
    """SGD-s: every row once an epoch, stopped by the dual lower bound."""

    name: ClassVar[str] = "sgd-s"


@register("binary")
@dataclass(frozen=True)
class SGDm(_EpochSGD):
    """SGD-m: SGD-s with multiple updates in some epochs.

    Parameters
    ----------
    repeats : int, default=5
        Presentations l of a row per visit in the multiple epochs.
    period, run : int, default=9 and 5
        Epoch T is multiple if ``0 < T mod period < run``.
    """

    repeats: Count = 5
    period: Count = 9
    run: Count = 5

    name: ClassVar[str] = "sgd-m"

    def multiplicity(self, epoch: int) -> int:
        return self.repeats if 0 < epoch % self.period < self.run else 1

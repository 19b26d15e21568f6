"""Base of Pegasos, NORMA and SvmSGD: a primal sub-gradient method on w = a v.

The model is kept as ``w = scale * v`` with its norm, so that a step costs O(nnz of the
rows). The coefficients of ``v = sum_i beta_i y_i x_i`` are kept too: clipped to the box
they are the dual point of the certificate. (The papers give no dual point.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...data.blocks import Block
from ...losses import Vector
from ...problems.binary import BinaryProblem
from ..base import RowOrder, State, SteppedSolver, new_order, row_visits


@dataclass(kw_only=True)
class GradientState(State):
    """Point ``w = scale * v``, ``v = sum_i beta_i y_i x_i``, and a separate bias."""

    q: Vector
    v: Vector
    beta: Vector
    omega: Vector
    lambda_: float
    scale: float = 1.0
    norm: float = 0.0  # ||w||^2
    t: float = 0.0  # steps
    eta0: float = 0.0
    # Sum of w_1 ... w_t as sigma v + r, and of its coefficients likewise.
    r: Vector | None = None
    r_beta: Vector | None = None
    sigma: float = 0.0
    bias: Vector | None = None  # of shape (1,), where it is not penalised
    witness: ClassVar[str] = "norm"


class StochasticGradient(SteppedSolver):
    """Base of the three methods; each one sets its step size and its options."""

    schedule: ClassVar[core.Schedule]
    resumes: ClassVar[bool] = True
    losses: ClassVar[tuple[str, ...]] = ("hinge", "smoothed_hinge")

    @property
    def bias_rule(self) -> core.BiasRule:
        """Rule by which a pass moves a bias that is not penalised."""
        return core.BiasRule.fixed

    @property
    def streams(self) -> bool:
        return True

    def options(self) -> tuple[RowOrder, int, bool, bool]:
        """Return (order of the rows, batch size, project or not, average or not)."""
        return "permutation", 1, False, False

    def eta0(self, problem: BinaryProblem, rng: core.Random) -> float:
        """Return the constant of the step size; 0 for a method without one."""
        return 0.0

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> GradientState:
        order = new_order(0 if problem.streamed else problem.n)
        state = fresh_state(problem, rng, order)
        state.eta0 = self.eta0(problem, rng)
        if self.options()[3]:
            state.r = np.zeros(problem.width)
            state.r_beta = np.zeros(problem.n)
        return state

    def step(self, state: GradientState, stop: core.Stop) -> None:
        problem = state.problem
        kind, batch, project, _ = self.options()
        loss, before = 0.0, state.visited
        for block, order in row_visits(kind, state, stop, batch):
            loss += gradient_pass(self, state, block, order, stop, batch, project)
        state.epochs += 1
        rows = max(state.visited - before, 1)
        state.primal = 0.5 * state.norm + loss / (state.lambda_ * rows)
        # ||w||^2 stands for ||w(alpha)||^2: exact while nothing is clipped.
        state.dual = problem.dual_value(state.beta, state.norm, state.scale)
        if state.bias is not None:  # exact for a fixed bias
            off = state.scale * core.signed_sum(problem.y, state.beta)
            state.dual -= float(state.bias[0]) * off

    def iterate(self, state: GradientState) -> tuple[Vector, Vector]:
        if state.r is not None and state.r_beta is not None and state.t > 0:
            w = (state.sigma * state.v + state.r) / state.t
            beta = (state.sigma * state.beta + state.r_beta) / state.t
        else:
            w, beta = state.scale * state.v, state.scale * state.beta
        if state.bias is not None:
            w = np.append(w, state.bias)
        return w, np.clip(beta, 0.0, state.problem.upper)


def fresh_state(
    problem: BinaryProblem, rng: core.Random, order: NDArray[np.uint32]
) -> GradientState:
    """Return the state before the first step, at w = 0."""
    width, q, bias = problem.width, problem.q_read, None
    if problem.free_bias:
        width, q, bias = problem.d, problem.norms(0.0), np.zeros(1)
    v, beta = np.zeros(width), np.zeros(problem.n)
    return GradientState(
        problem,
        rng,
        order,
        q=q,
        v=v,
        beta=beta,
        omega=problem.omega,
        lambda_=problem.lambda_,
        bias=bias,
    )


def gradient_pass(
    solver: StochasticGradient,
    state: GradientState,
    block: Block,
    order: NDArray[np.uint32],
    stop: core.Stop,
    batch: int = 1,
    project: bool = False,
) -> float:
    """Make a pass over a block; return sum_i omega_i l_i as seen at the visits."""
    problem, total = state.problem, None
    beta, r_beta = block.take(state.beta), block.take(state.r_beta)
    if state.r is not None and r_beta is not None:
        total = core.SumOfSteps(state.r, r_beta, state.sigma)
    settings = core.GradientSettings(
        state.lambda_, solver.schedule, state.eta0, batch, project, solver.bias_rule
    )
    point = core.GradientState(
        state.v, beta, state.scale, state.norm, state.t, total, state.bias
    )
    constant = 0.0 if problem.free_bias else None
    examples = problem.examples(block, cost=state.omega, q=state.q, constant=constant)
    found = core.stochastic_gradient_epoch(examples, settings, order, point, stop)
    state.scale, state.norm, state.t = point.scale, point.norm, point.t
    if total is not None:
        state.sigma = total.sigma
    block.put(state.beta, beta)
    block.put(state.r_beta, r_beta)
    state.visited += found.visited
    state.updates += found.updates
    return float(found.loss)

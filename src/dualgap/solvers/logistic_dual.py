"""Dual coordinate descent for logistic regression of two classes, and the choice.

Problem    max over 0 <= a_i <= c_i of sum_i c_i H(a_i/c_i) - 1/2 ||w||^2, with the
           entropy H and w = sum_i a_i y_i x_i (problems/logistic.py)
Update     a_i <- the maximiser of D over a_i alone, for all i in random order
           (src/core/epochs/dual_coordinate.hpp). The bias is pulled as in dcd.py.
Guarantee  D never falls between two moves of the bias; linear rate
Cost       one product with the rows per epoch; 12 bytes per row
Source     H.-F. Yu, F.-L. Huang, C.-J. Lin, Machine Learning 85, 2011
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

from .. import core
from ..losses import Vector
from ..problems.logistic import LogisticProblem
from .base import TINY, new_order, register, register_choice
from .dcd import constant_feature
from .logistic import LogisticNewton, LogisticSolver, WeightsState


@dataclass(frozen=True)
class LogisticDCDSettings:
    """Tuning constants of `LogisticDCD`."""

    #: Epochs after which w is recomputed from alpha: rounding of updates adds up.
    repair_every: int = 64


@dataclass(kw_only=True)
class LogisticDCDState(WeightsState):
    """Dual point, its w, and the bias."""

    problem: LogisticProblem = field(kw_only=False)  # type: ignore[assignment]
    alpha: Vector  # (n,), from 0 to the costs
    w: Vector  # (length,); the last one is the weight of the constant feature s
    bias: float
    s: float  # 0 without a bias
    signs: NDArray[np.int8]
    examples: core.LogisticExamples
    witness: ClassVar[str] = "dual"
    most_rejected: ClassVar[int] = 12  # its estimates are low

    @property
    def off(self) -> float:
        """Return sum_i y_i alpha_i, which is 0 at the optimum."""
        return float(self.signs @ self.alpha)

    def repair(self) -> None:
        """Recompute w from alpha."""
        residual = self.signs * self.alpha
        self.w[:] = self.problem.sums(residual[None])[0]
        self._centre()

    def _centre(self) -> None:
        """Let the constant feature be pulled to the bias."""
        if self.s:
            self.w[-1] = self.bias / self.s + self.s * self.off

    def after_pass(self, visited: int, updates: int, gap: float) -> None:
        """Count a pass: D is exact for alpha, and P adds the gap of the visits."""
        problem = self.problem
        self.epochs += 1
        self.visited += visited
        self.updates += updates
        used = problem.cost > 0.0
        wrong = self.alpha[used] / problem.cost[used]
        total = float(problem.cost[used] @ (entr(wrong) + entr(1.0 - wrong)))
        self.dual = total - 0.5 * core.squared_norm(self.w[: problem.d])
        if self.s:
            self.bias = self.s * float(self.w[-1])
            self.dual -= self.bias * self.off  # nearly D once alpha is balanced
            self._centre()
        self.primal = self.dual + gap


@register("logistic")
@dataclass(frozen=True)
class LogisticDCD(LogisticSolver):
    """Dual coordinate descent for logistic regression of two classes."""

    name: ClassVar[str] = "dcd"
    settings: ClassVar[LogisticDCDSettings] = LogisticDCDSettings()

    def check(self, problem: LogisticProblem) -> None:
        if problem.outputs > 1:
            raise ValueError(
                f"solver='dcd' trains two classes, or several labels, but there are "
                f"{problem.classes} classes; use solver='newton', or 'auto'"
            )
        if problem.streamed:
            least = problem.rows.bytes + 8 * problem.n + 8
            raise ValueError(
                "solver='dcd' needs its rows in memory; use solver='newton' or 'auto', "
                f"or open the store with buffer={least} or more"
            )

    def start(
        self, problem: LogisticProblem, rng: core.Random, warm: Vector | None
    ) -> LogisticDCDState:
        point = problem.table(problem.zero() if warm is None else warm)
        scores = problem.scores(point)
        _, now = problem.balance(scores, problem.outcome(scores), 1e-6)
        v = problem.sums(now.residual * problem.cost)[0]
        total, length = problem.cost @ now.entropy, core.squared_norm(v[: problem.d])
        scale = min(1.0, float(total) / max(length, TINY))
        rows, q, s = problem.rows, problem.q, 0.0
        if problem.free_bias:
            s = constant_feature(q, problem.cost)
            rows, q = rows.with_constant(s), q + s * s
        signs = np.where(problem.codes == 1, 1, -1).astype(np.int8)
        state = LogisticDCDState(
            problem,
            rng,
            new_order(problem.n),
            alpha=scale * problem.cost * now.wrong,
            w=v,
            bias=float(point[0, -1]) if problem.free_bias else 0.0,
            s=s,
            signs=signs,
            examples=core.LogisticExamples(rows, signs, problem.cost, q),
        )
        state.repair()
        return state

    def step(self, state: LogisticDCDState, stop: core.Stop) -> None:
        if (state.epochs + 1) % self.settings.repair_every == 0:
            state.repair()
        state.rng.shuffle(state.order)
        point = core.DualState(state.alpha, state.w)
        found = core.sdca_epoch(state.examples, state.order, point, None, stop)
        state.after_pass(found.visited, found.updates, found.gap)

    def iterate(self, state: LogisticDCDState) -> tuple[Vector, Vector]:
        w = state.w.copy()
        if state.s:
            w[-1] = state.bias
        return w, state.alpha


@dataclass(frozen=True)
class LogisticChoiceSettings:
    """Costs of the two methods, in multiply-adds, fitted to fits of ten data sets."""

    #: Of a visit of `dcd`,
    visit: float = 100.0
    #: and of each entry of its row: sparse,
    sparse_entry: float = 1.7
    #: and dense.
    dense_entry: float = 0.35
    #: Least number of epochs for three digits,
    epochs: float = 3.0
    #: and how many more there are for a mean of c_i q_i of 1,
    steep: float = 1.0
    #: also where some plane separates any labels, as in text.
    separable: float = 0.1
    #: Steps of `newton` where the mean of c_i q_i is 1,
    steps: float = 3.0
    #: and more for each digit of it.
    more_steps: float = 1.0
    #: Of a step for each row,
    row: float = 150.0
    #: for each entry of an exact matrix and row,
    product: float = 1.0 / 32.0
    #: and else for each stored entry: sparse,
    sparse_products: float = 25.0
    #: and dense.
    dense_products: float = 5.0


CHOICE = LogisticChoiceSettings()


@register_choice("logistic")
def choose(problem: LogisticProblem, tol: float = 1e-3) -> LogisticSolver:
    """Return the solver with the smaller predicted cost."""
    if problem.outputs > 1 or problem.streamed:
        return LogisticNewton()
    n, stored, length = problem.n, problem.rows.stored, problem.length
    sparse, steep = not problem.rows.dense, problem.steepness
    entry = CHOICE.sparse_entry if sparse else CHOICE.dense_entry
    separable = n <= 2 * problem.d  # Cover 1965, as in `Auto`
    epochs = CHOICE.epochs + steep * (CHOICE.separable if separable else CHOICE.steep)
    epochs *= max(-math.log10(max(tol, TINY)), 1.0) / 3.0
    descent = epochs * (CHOICE.visit * n + entry * stored)
    steps = CHOICE.steps + CHOICE.more_steps * math.log10(max(steep, 1e-3))
    products = CHOICE.sparse_products if sparse else CHOICE.dense_products
    step = products * stored
    if LogisticNewton.settings.holds(problem):
        step = CHOICE.product * n * length**2
    newton = max(steps, 1.0) * (CHOICE.row * n + step)
    return LogisticDCD() if descent <= newton else LogisticNewton()

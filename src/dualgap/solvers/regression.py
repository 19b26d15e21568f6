"""Dual coordinate methods for linear regression and the linear one-class SVM.

RegressionDCD
Problem    P(w) = 1/2 ||w||^2 + sum_i c_i l(|y_i - w.x_i| - epsilon), through its dual
           (problems/regression.py, one_class.py)
Update     one dual variable at a time, to its optimum: a soft threshold
           (src/core/epochs/regression.hpp)
Shrinking  skips rows as `DCD` does, at -U_i, 0 or U_i, where they firmly stay
Guarantee  linear rate; D never falls.
Cost       one product with the active rows per epoch; 14 bytes per row.
Source     Ho and Lin, JMLR 13, 2012, Algorithm 4. The paper shrinks and stops by the
           violation; here the certified gap decides.

PairDescent
Problem    min 1/2 ||sum_i a_i x_i||^2 over 0 <= a_i <= c_i, sum_i a_i = total
Update     A pass computes all scores w.x_i. Rows whose dual variable may rise, from
           the lowest score upwards, are paired with rows whose dual variable may fall,
           from the highest score downwards, while the second score of a pair is the
           higher one. Each pair then moves to its optimum, by its scores at that time.
Guarantee  D never falls; the pair that violates most is always among them.
Cost       one product per epoch, a sort, and three dot products per pair; 8 bytes per
           row.
Source     Chou, Lin and Lin, SDM 2020, "Dual coordinate-descent methods for linear
           one-class SVM and SVDD" (LIBLINEAR's -s 21).

The core solves and proves small regression problems in one call, by the epochs of `dcd`
(src/core/small_regression.hpp). The ordinary solver trains a problem whose accuracy is
not proved.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..losses import Vector
from ..problems.base import Claim, LinearHint
from ..problems.batch import SingleBatch
from ..problems.binary import BinaryProblem
from ..problems.one_class import OneClassProblem
from ..problems.regression import RegressionProblem
from ..problems.rounding import Values
from .base import (
    Limits,
    Solver,
    State,
    Whole,
    new_order,
    register,
    solvers_of,
    targets,
)
from .dcd import DCDState, DualState


@dataclass(frozen=True)
class RegressionSettings:
    """Tuning constants of the solvers in this file."""

    #: Rows times features up to which work is free: problems of some ten rows.
    free_entries: int = 1000
    #: No work is free after this many epochs.
    free_epochs: int = 2000
    #: Gap to aim at while work is free, if the loss is squared: it is of second order
    #: in the error of w.
    squared_goal: float = 1e-15
    #: Epochs after which w is recomputed from alpha: rounding of updates adds up.
    repair_every: int = 64
    #: Most epochs for which shrinking skips a row.
    longest_skip: int = 127
    #: Most epochs that undo the rounding of duals from another method.
    most_ascents: int = 50
    #: An epoch of `pairs` moves at most one pair per this many rows.
    rows_per_pair: int = 10


class RegressionSolver(Solver):
    """Base of the solvers of regression and of the one-class SVM.

    Fits of some ten rows go on to rounding level until `free_work` is spent. These
    models then do not depend on the order of their rows, and the weight k is worth k
    equal rows.
    """

    settings: ClassVar[RegressionSettings] = RegressionSettings()
    dual: ClassVar[bool] = True
    free_work: ClassVar[float] = 5e5
    #: Solver for more than `settings.most_features`; "" without such a limit.
    wider: ClassVar[str] = ""
    monotone = True

    def check(self, problem: BinaryProblem) -> None:
        name, loss = self.name, problem.loss.name
        if problem.streamed:
            raise ValueError(
                f"solver={name!r} needs its rows in memory; open the store with a "
                "larger buffer"
            )
        if loss not in self.losses:
            known, others = map(repr, self.losses), solvers_of(problem.kind).values()
            able = sorted(repr(one.name) for one in others if loss in one.losses)
            raise ValueError(
                f"solver={name!r} needs loss={' or '.join(known)}, got loss={loss!r}; "
                f"use solver={' or '.join(able)} for it"
            )
        most: int = getattr(self.settings, "most_features", 0)
        if self.wider and problem.width > most:
            raise ValueError(
                f"solver={name!r}: {problem.width} features, more than {most}; use "
                f"solver={self.wider!r}"
            )

    def goal(self, state: Any) -> float:
        settings, problem = self.settings, state.problem
        spent = state.work >= self.free_work or state.epochs >= settings.free_epochs
        if spent or problem.n * problem.width > settings.free_entries:
            return float(state.tol)
        return self.tight_goal(problem, state.tol)

    def iterate(self, state: Any) -> tuple[Vector | None, Vector | None]:
        return None, state.alpha

    def claim(self, state: Any) -> Claim:
        return Claim(alpha=state.alpha, hint=LinearHint(out=state.w))

    def tight_goal(self, problem: BinaryProblem, tol: float) -> float:
        """Return the relative gap to aim at while work is free."""
        squared = problem.loss.curvature > 0.0
        return min(tol, self.settings.squared_goal if squared else self.free_goal)


@dataclass(kw_only=True)
class RegressionState(DCDState):
    """Dual point of a regression problem."""

    problem: RegressionProblem = field(kw_only=False)
    targets: core.RegressionExamples | None = None  # made once


@register("regression")
@dataclass(frozen=True)
class RegressionDCD(RegressionSolver):
    """Dual coordinate descent for linear regression, of Ho and Lin 2012."""

    name: ClassVar[str] = "dcd"
    losses: ClassVar[tuple[str, ...]] = (
        "epsilon_insensitive",
        "squared_epsilon_insensitive",
        "quantile",
    )

    def start(
        self, problem: RegressionProblem, rng: core.Random, warm: Vector | None
    ) -> RegressionState:
        alpha = np.zeros(problem.n) if warm is None else warm
        w = np.zeros(problem.width) if warm is None else problem.combine(alpha)
        state = RegressionState(
            problem,
            rng,
            new_order(problem.n),
            alpha=alpha,
            w=w,
            q=problem.q,
            active=problem.n,
        )
        state.start_shrinking()
        return state

    def step(self, state: RegressionState, stop: core.Stop) -> None:
        if (state.epochs + 1) % self.settings.repair_every == 0:
            state.repair()
        if state.targets is None:
            state.targets = state.problem.with_targets
        found = core.regression_epoch(
            state.targets,
            state.point,
            state.skipped(state.threshold, self.settings.longest_skip),
            state.chunk,
            state.order,
            state.rng,
            stop,
        )
        state.threshold = found.threshold
        state.linear += found.linear
        state.last_visited = found.visited
        state.after_pass(found.visited, found.updates, found.gap, found.norm)

    def reject(self, state: DCDState) -> None:
        state.restore()


def two_sides(
    problem: RegressionProblem, used: NDArray[np.uint32], cost: Vector
) -> core.SomeRows:
    """Return some rows twice, with a hinge for either side of the tube."""
    loss, target, rows = problem.loss, problem.target[used], problem.rows
    if used.size < problem.n:
        rows = core.chosen_rows(rows, used, problem.intercept_scaling)
    return core.SomeRows(
        [rows, rows],
        np.repeat(np.array([1, -1], np.int8), used.size),
        np.concatenate([loss.above * cost, loss.below * cost]),
        np.zeros(problem.width),
        0.0,
        np.concatenate([target, -target]) - (loss.epsilon + 1.0),
    )


def ascended(state: State, alpha: Vector, solver: RegressionSolver) -> Vector:
    """Return a dual point after some epochs of a dual solver from alpha.

    Rounding of the duals costs D much where columns are large. An epoch regains it,
    because each of its steps takes account of what the steps before have rounded.
    """
    problem, before = state.problem, -math.inf
    inner = solver.start(problem, state.rng, alpha.copy())
    assert isinstance(inner, DualState)
    for _ in range(solver.settings.most_ascents):
        solver.step(inner, state.stop)
        state.visited += problem.n
        if not inner.dual - before > 0.1 * state.tol * abs(inner.dual):
            break
        before = inner.dual
    return inner.alpha


@dataclass(kw_only=True)
class PairState(DualState):
    """Dual point of sum `total`, its w, and scratch space of zeros for a row."""

    problem: OneClassProblem = field(kw_only=False)
    room: Vector


@register("one-class")
@dataclass(frozen=True)
class PairDescent(RegressionSolver):
    """Dual coordinate descent on pairs for the linear one-class SVM."""

    name: ClassVar[str] = "pairs"
    losses: ClassVar[tuple[str, ...]] = ("one_class",)

    def start(
        self, problem: OneClassProblem, rng: core.Random, warm: Vector | None
    ) -> PairState:
        alpha = problem.start() if warm is None else problem.feasible(warm)
        return PairState(
            problem,
            rng,
            alpha=alpha,
            w=problem.combine(alpha),
            room=np.zeros(problem.width),
        )

    def step(self, state: PairState, stop: core.Stop) -> None:
        problem = state.problem
        state.epochs += 1
        if state.epochs % self.settings.repair_every == 0:
            state.repair()
        scores = problem.outcomes(state.w)
        norm = core.squared_norm(state.w)
        state.primal, _ = problem.values(scores, norm)
        state.dual = -0.5 * norm
        state.visited += problem.n
        rise, fall = self.pairs(problem, state.alpha, scores)
        found = core.pair_epoch(
            problem.rows,
            problem.cost,
            problem.q,
            rise,
            fall,
            state.point,
            state.room,
            stop,
        )
        state.visited += found.visited
        state.updates += found.updates
        if found.updates:
            # P belongs to the scores before the pass, so the estimate is too large.
            state.dual = -0.5 * core.squared_norm(state.w)

    def pairs(
        self, problem: OneClassProblem, alpha: Vector, scores: Vector
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """Return rows that may rise and rows that may fall, worst violations first."""
        used = np.flatnonzero(problem.cost > 0.0)
        order = used[np.argsort(scores[used], kind="stable")]
        rise = order[alpha[order] < problem.cost[order]]
        fall = order[alpha[order] > 0.0][::-1]
        most = max(problem.n // self.settings.rows_per_pair, 1)
        many = min(len(rise), len(fall), most)
        rise, fall = rise[:many], fall[:many]
        wrong = scores[rise] < scores[fall]
        return rise[wrong].astype(np.uint32), fall[wrong].astype(np.uint32)


@dataclass(frozen=True)
class SmallRegressionSettings:
    """Tuning constants of :func:`solve_regression`."""

    #: Rows times features of the largest problem.
    most_entries: int = 20_000
    #: Entries to read after which the ordinary solver takes over.
    most_work: float = 4e6


SETTINGS = SmallRegressionSettings()


def solve_regression(solver: object, batch: SingleBatch, job: Limits) -> Whole | None:
    """Solve a small regression problem from a = 0.

    Returns None if the solver is not `RegressionDCD`, the rows are many or on disk,
    there are several problems, or `stop` ended the work.
    """
    problem = cast(RegressionProblem, batch.only)
    if len(batch) > 1:
        return None
    entries = problem.n * problem.width
    small = entries <= SETTINGS.most_entries and not problem.streamed
    if type(solver) is not RegressionDCD or not small:
        return None
    begun = time.perf_counter()
    limits, tol = solver.settings, job.tol
    tiny = entries <= limits.free_entries
    w, alpha = np.zeros((1, problem.width)), np.zeros((1, problem.n))
    found = core.solve_regression(
        problem.with_targets,
        core.DualState(alpha[0], w[0]),
        core.RegressionTargets(
            targets(
                job,
                solver.tight_goal(problem, tol) if tiny else tol,
                min(solver.free_work, limits.free_epochs * (entries + problem.width)),
            ),
            SETTINGS.most_work,
            job.max_iter,
        ),
        core.Random(int(job.seeds[0])),
        problem.threads,
        job.stop,
    )
    epochs = found.epochs
    if not len(epochs):
        return None
    bounds = problem.bounds(alpha[0], Values.of(found.values), found.norm)
    return Whole(
        w,
        alpha,
        [bounds],
        epochs,
        np.array([len(epochs)]),
        time.perf_counter() - begun,
        solver.name,
    )

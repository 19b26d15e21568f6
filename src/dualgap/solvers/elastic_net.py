"""Newton steps over working sets, for linear classifiers with an L1 norm.

Problem    min over W, b of
           P(W, b) = sum_kj r |w_kj| + (1 - r)/2 w_kj^2 + sum_i c_i l_i
           with the logistic loss of two or more classes, or the squared hinge
Update     W_k <- W_k + t S_k on a working set, for one class after another: S_k nearly
           minimises the second-order model of the loss plus the penalty, by coordinate
           descent over columns, or over their products where the set is small, which
           Newton steps on the nonzero weights end; t lowers P as Armijo's rule asks.
           Where descents or steps do not end, as with many dependent columns or a large
           C, an interior point (elastic_net_interior.py) takes their place. Then nearly
           the best bias. A working set has the nonzero weights and those that violate
           the optimality conditions most.
           Columns that a dual point proves to be 0 at the optimum leave the problem.
Guarantee  P never rises but for rounding, and W -> W*. The dual point has the
           derivatives of the loss, times a factor that makes it feasible.
Cost       a step: two products with all columns left, and some with the working set
Source     Yuan, Ho, Lin, JMLR 13, 2012 (the steps; LIBLINEAR's -s 6); Massias,
           Gramfort, Salmon, ICML 2018 (working sets); Ndiaye, Fercoq, Gramfort, Salmon,
           JMLR 18, 2017 (gap-safe screening)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .. import core
from ..blas import one_thread
from ..losses import Vector
from ..problems.dense import unchecked
from ..problems.elastic_net import ElasticNetProblem, Mask
from .base import TINY, register
from .elastic_net_interior import Interior, few_equations
from .logistic import LogisticSolver, LogisticState, WeightsState

Set = NDArray[np.uint32]


@dataclass(frozen=True)
class ProximalNewtonSettings:
    """Tuning constants of `ProximalNewton`."""

    #: Least size of a working set.
    least: int = 100
    #: Factor by which it exceeds the number of nonzero weights.
    growth: float = 2.0
    #: Violation that a working set is left with, as part of the first one.
    left: float = 0.1
    #: The same, as part of tol.
    left_of_tol: float = 0.3
    #: The same for the second-order model of a step.
    inner: float = 0.2
    #: Most steps over a working set.
    rounds: int = 20
    #: Most sweeps of one of them.
    sweeps: int = 200
    #: Descents of a step that do not end, after which an interior point begins.
    failures: int = 2
    #: Weights of its iterates below such parts of the largest one are set to 0: the
    #: first part that raises P by at most `snapped` of the goal.
    snaps: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 0.0)
    #: See above.
    snapped: float = 0.1
    #: Largest working set whose products are made.
    products: int = 2000
    #: They are made where that takes no longer than this many sweeps,
    fewest_sweeps: float = 30.0
    #: or this many times the sweeps of the last step.
    saved: float = 2.0
    #: Sweeps by products before a Newton step on nonzero weights.
    sweeps_by_products: int = 300
    #: Most such steps.
    newton: int = 20
    #: Share of the expected decrease that a step must reach.
    enough: float = 0.01
    #: Most halvings of a step.
    halvings: int = 40
    #: Least second derivative of a loss, as part of its weight.
    flat: float = 1e-8
    #: Room for rounding where a weight is taken for 0.
    rounded: float = 1e-7
    #: Relative change of P that is rounding.
    gain: float = 2e-15
    #: Sum of the residuals that a best bias leaves, as part of their sizes.
    balance: float = 1e-12


@dataclass(kw_only=True)
class ProximalNewtonState(LogisticState):
    """Model, its scores, and which weights may be nonzero at the optimum."""

    problem: ElasticNetProblem = field(kw_only=False)
    off: Vector = field(init=False)  # violations, (outputs, length)
    left: Mask = field(init=False)  # entries not proved to be 0
    norms: Vector = field(init=False)  # sqrt(sum_i c_i x_ij^2)
    sweeps: int = 0  # of the last descent over columns
    failures: int = 0  # descents of a step that did not end
    alpha: Vector | None = None  # the best dual point; None if W gives it
    proved: float = 0.0  # D there
    #: Rows that have a loss where the last step would have led, if that was too far.
    reached: Mask = field(init=False)


@register("elastic-net")
@dataclass(frozen=True)
class ProximalNewton(LogisticSolver):
    """Newton steps over working sets, for linear classifiers with an L1 norm."""

    name: ClassVar[str] = "proximal-newton"
    settings: ClassVar[ProximalNewtonSettings] = ProximalNewtonSettings()
    monotone = True
    check_factor = 1.0  # a proof differs from its estimate by rounding

    def start(
        self, problem: ElasticNetProblem, rng: core.Random, warm: Vector | None
    ) -> ProximalNewtonState:
        W = problem.table(problem.zero() if warm is None else warm.copy())
        state = ProximalNewtonState(
            problem, rng, W=W, scores=np.zeros((len(W), problem.n))
        )
        one_thread(problem.threads, state.resources)
        with unchecked():
            state.left = np.ones(W.shape, bool)
            state.reached = np.zeros(problem.n, bool)
            state.norms = np.sqrt(problem.weighted_squares(problem.cost))
            self._look(state, core.Stop())
        return state

    def step(self, state: ProximalNewtonState, stop: core.Stop) -> None:
        settings, problem = self.settings, state.problem
        with unchecked():
            before = state.primal, state.dual
            worst = float(state.off.max(initial=0.0))
            share = settings.left_of_tol * min(1.0, problem.l1_ratio) * state.tol
            target = max(settings.left * worst, share * 0.5)
            sets = [self._working_set(state, k) for k in range(problem.outputs)]
            state.failures = 0
            for left in reversed(range(settings.rounds)):
                worst = 0.0
                for k, chosen in enumerate(sets):
                    if stop.requested or stop.expired:
                        break
                    worst = max(worst, self._newton(state, k, chosen, target, stop))
                if worst <= target or stop.requested or stop.expired:
                    break
                hard = not left or state.failures >= settings.failures
                if hard and few_equations(problem, sets[0]):
                    self._interior(state, sets[0], stop)
                    break
            self._look(state, stop)
        state.epochs += 1
        state.updates += 1
        gain = settings.gain * abs(before[0])
        state.moved = before[0] - state.primal > gain or state.dual - before[1] > gain

    def reject(self, state: WeightsState) -> None:
        """Let all columns back in: rounding may have taken out the wrong ones."""
        super().reject(state)
        assert isinstance(state, ProximalNewtonState)
        if not state.left.all():
            state.left[:] = True
            with unchecked():
                self._look(state, state.stop)  # a working set needs violations

    def _working_set(self, state: ProximalNewtonState, k: int) -> Set:
        """Return the nonzero weights of a class and its largest violations."""
        settings, off, w = self.settings, state.off[k], state.W[k]
        left = state.left[k]
        if np.count_nonzero(left) <= settings.least:
            return np.flatnonzero(left).astype(np.uint32)
        first = (w != 0.0) & left
        first[state.problem.penalised :] = True
        nonzero = np.count_nonzero(first)
        others = np.flatnonzero(left & ~first & (off > 0.0))
        more = int(max(settings.least, settings.growth * nonzero)) - nonzero
        if len(others) > more:
            others = others[np.argpartition(-off[others], more)[:more]]
        first[others] = True
        return np.flatnonzero(first).astype(np.uint32)

    # -------------------------------------------------------------------- one step

    def _newton(
        self,
        state: ProximalNewtonState,
        k: int,
        chosen: Set,
        target: float,
        stop: core.Stop,
    ) -> float:
        """Make a step on a working set; return the violation before it."""
        problem, settings, columns = state.problem, self.settings, state.problem.columns
        now, w = state.now, state.W[k]
        r = -(problem.cost * now.residual[k])
        h = np.maximum(problem.bent(now, k), 0.0)
        if problem.hinge:  # the last step made these rows have a loss
            h = np.where(state.reached, 2.0 * problem.cost, h)
        else:  # of rows far on the wrong side it is near 0
            np.maximum(h, settings.flat * problem.cost, out=h)
        slope = np.zeros(problem.length)
        core.column_products(columns.of, chosen, r, slope, False, stop)
        worst = float(violations(problem, slope, w)[chosen].max(initial=0.0))
        if worst <= target or stop.requested or stop.expired:
            return worst
        goal = max(settings.inner * worst, settings.inner * target)
        new = w.copy()
        sweeps = max(settings.fewest_sweeps, settings.saved * state.sweeps)
        if len(chosen) <= settings.products and columns.few_products(chosen, sweeps):
            left = self._by_products(problem, h, slope, chosen, new, goal, stop)
        else:
            squares = np.zeros(problem.length)
            core.column_products(columns.of, chosen, h, squares, True, stop)
            free = problem.d if problem.free_bias else -1
            penalty = _penalty(problem, free, goal, settings.sweeps)
            done = core.descend_by_columns(
                columns.of, chosen, penalty, h, squares, r, new, stop
            )
            state.sweeps, left = done.sweeps, done.violation
        state.failures += left > goal
        step = new - w
        image = np.zeros(problem.n)
        core.add_columns(columns.of, chosen, step, image)
        self._search(state, k, step, image, float(slope @ step))
        return worst

    def _by_products(
        self,
        problem: ElasticNetProblem,
        h: Vector,
        slope: Vector,
        chosen: Set,
        new: Vector,
        goal: float,
        stop: core.Stop,
    ) -> float:
        """Minimise the second-order model by the products of its columns.

        Returns the violation that is left.
        """
        settings, H = self.settings, problem.columns.products(chosen, h, stop)
        inner, diagonal = new[chosen], H.diagonal().copy()
        own = chosen < problem.penalised
        l1 = np.where(own, problem.l1_ratio, 0.0)
        l2 = np.where(own, 1.0 - problem.l1_ratio, 0.0)
        free = len(chosen) - 1 if problem.free_bias else -1
        penalty = _penalty(problem, free, goal, settings.sweeps_by_products)
        u = slope[chosen].copy()
        for _ in range(settings.newton):
            done = core.descend_by_products(H, penalty, diagonal, u, inner, stop)
            if done.violation <= goal or stop.requested or stop.expired:
                break
            _polish(H, u, inner, l1, l2)
        new[chosen] = inner
        return done.violation

    def _interior(
        self, state: ProximalNewtonState, chosen: Set, stop: core.Stop
    ) -> None:
        """Minimise P over a working set, or all columns left, by an interior point."""
        problem, settings = state.problem, self.settings
        goal = settings.left_of_tol * state.tol
        left = np.flatnonzero(state.left[0]).astype(np.uint32)
        whole = few_equations(problem, left)
        chosen = left if whole else chosen
        inner = Interior(problem, chosen, state.W[0, chosen], state.primal)
        for w in inner.steps(stop):
            if inner.gap > goal * state.primal:
                continue
            W = np.zeros_like(state.W)
            W[0, chosen] = w
            most = self._primal(state, W)
            most += settings.snapped * goal * most
            size = np.where(inner.own, np.abs(w), math.inf)
            for share in settings.snaps:
                W[0, chosen] = np.where(size < share * np.abs(w).max(), 0.0, w)
                primal = self._primal(state, W)
                if primal <= most:
                    break
            if primal <= state.primal:
                state.W = W
                self._look(state, stop)
            alpha = np.zeros(problem.n)
            alpha[inner.rows] = inner.a
            now = problem.outcome(problem.dual_scores(alpha))
            V = problem.sums(now.residual, problem.cost)[:, : problem.penalised]
            dual = problem.scaled_dual(now, np.abs(V))[1]
            if dual > state.dual:
                state.alpha, state.proved, state.dual = alpha, dual, dual
            if not whole or state.primal - state.dual <= goal * state.dual:
                return

    def _primal(self, state: ProximalNewtonState, W: Vector) -> float:
        """Return P of a model."""
        problem, scores = state.problem, np.zeros_like(state.scores)
        support = np.flatnonzero(W[0]).astype(np.uint32)
        core.add_columns(problem.columns.of, support, W[0], scores[0])
        now = problem.outcome(scores)
        return problem.penalty(W) + float(problem.cost @ now.loss)

    def _search(
        self,
        state: ProximalNewtonState,
        k: int,
        step: Vector,
        image: Vector,
        slope: float,
    ) -> None:
        """Move along a step as far as Armijo's rule allows."""
        problem, settings = state.problem, self.settings
        W, before = state.W, problem.penalty(state.W)
        expected = slope + problem.penalty(_moved(W, k, step)) - before
        rounded = settings.gain * abs(state.primal)
        if not expected < rounded:
            return
        t, scores = 1.0, state.scores
        for _ in range(settings.halvings):
            new = _moved(W, k, t * step)
            moved = scores.copy()
            moved[k] += t * image
            now = problem.outcome(moved)
            more = problem.penalty(new) - before
            more += float(problem.cost @ (now.loss - state.now.loss))
            if more <= settings.enough * t * min(expected, 0.0) + rounded:
                state.W, state.scores, state.now = new, moved, now
                if t == 1.0:
                    state.reached[:] = False
                return
            if t == 1.0:
                state.reached = now.wrong > 0.0
            t *= 0.5

    # ------------------------------------------------------------ all columns

    def _look(self, state: ProximalNewtonState, stop: core.Stop) -> None:
        """Compute P, D, the violations, and which weights are surely 0.

        A stop leaves all but P as they were: sums over some columns prove nothing.
        """
        problem, W, columns = state.problem, state.W, state.problem.columns
        state.scores = np.zeros_like(state.scores)
        for w, scores in zip(W, state.scores, strict=True):
            support = np.flatnonzero(w).astype(np.uint32)
            core.add_columns(columns.of, support, w, scores)
        now = problem.outcome(state.scores)
        if problem.free_bias:
            change, now = problem.balance(state.scores, now, self.settings.balance)
            W[:, problem.d] += change
            if problem.outputs > 1:  # the same shift of all changes no probability
                mean = W[:, problem.d].mean()
                W[:, problem.d] -= mean
                state.scores -= mean
        state.now = now
        state.primal = problem.penalty(W) + float(problem.cost @ now.loss)
        V = np.zeros(W.shape)
        for v, a, left in zip(V, now.residual, state.left, strict=True):
            some, r = np.flatnonzero(left).astype(np.uint32), a * problem.cost
            if not core.column_products(columns.of, some, r, v, False, stop):
                return
        scale, dual, _ = problem.scaled_dual(now, np.abs(V[:, : problem.penalised]))
        state.dual = max(dual, state.proved)
        state.visited += problem.n * problem.outputs
        state.off = violations(problem, -V, W) * state.left
        gap = state.primal - dual
        if gap >= 0.0:
            radius = math.sqrt(2.0 * problem.smoothness * gap)
            most = problem.l1_ratio * (1.0 - self.settings.rounded)
            sure = scale * np.abs(V) + radius * state.norms < most
            sure[:, problem.penalised :] = False
            if (sure & state.left & (W != 0.0)).any():
                W[sure] = 0.0
                state.left &= ~sure
                self._look(state, stop)
            state.left &= ~sure

    def iterate(self, state: ProximalNewtonState) -> tuple[Vector, Vector | None]:
        own = state.dual == state.proved and state.alpha is not None
        return state.W.ravel(), state.alpha if own else None


def violations(problem: ElasticNetProblem, slope: Vector, W: Vector) -> Vector:
    """Return the distances of 0 from the subdifferentials of P by each weight.

    `slope`: derivatives of the loss.
    """
    r, penalised = problem.l1_ratio, problem.penalised
    full = slope + (1.0 - r) * W
    off = np.where(
        W == 0.0, np.maximum(np.abs(full) - r, 0.0), np.abs(full + r * np.sign(W))
    )
    off[..., penalised:] = np.abs(slope[..., penalised:])
    return off


def _penalty(
    problem: ElasticNetProblem, free: int, target: float, most: int
) -> core.ElasticNetPenalty:
    """Return the penalty of a problem, and what ends a descent."""
    r = problem.l1_ratio
    return core.ElasticNetPenalty(r, 1.0 - r, free, target, most)


def _moved(W: Vector, k: int, step: Vector) -> Vector:
    """Return a model whose class k has moved."""
    W = W.copy()
    W[k] += step
    return W


def _polish(H: Vector, u: Vector, w: Vector, l1: Vector, l2: Vector) -> None:
    """Make a Newton step on the nonzero weights, where weights that pass 0 stay there.

    `u`: slopes without the penalty, which change with w.
    """
    some = np.flatnonzero((w != 0.0) | (l1 == 0.0))
    if not len(some):
        return
    own = H[np.ix_(some, some)]
    own[np.diag_indices(len(some))] += l2[some]
    scale = 1.0 / np.sqrt(np.maximum(own.diagonal(), TINY))
    factor = own * scale * scale[:, None]
    factor[np.diag_indices(len(some))] += 1e-13
    before, sign = w[some], np.sign(w[some])
    slope = u[some] + l2[some] * before
    try:
        right = scale * (slope + l1[some] * sign)
        step = -scale * linalg.cho_solve(
            linalg.cho_factor(factor, check_finite=False), right, check_finite=False
        )
    except linalg.LinAlgError:
        return
    with np.errstate(divide="ignore", invalid="ignore"):
        room = np.where(before * step < 0.0, -before / step, math.inf)
    room[l1[some] == 0.0] = math.inf
    # Where columns are dependent, steps are long, and end where a weight becomes 0.
    for t in (1.0, 0.5, 0.1, min(1.0, float(room.min(initial=1.0)))):
        new = before + t * step
        new[room <= t] = 0.0
        change = new - before
        more = slope @ change + 0.5 * (change @ (own @ change))
        more += l1[some] @ (np.abs(new) - np.abs(before))
        if more < 0.0:
            w[some] = new
            u += H[:, some] @ change
            return

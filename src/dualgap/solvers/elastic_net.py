"""Newton steps over working sets, for linear classifiers with an L1 norm.

Problem    min over W, b of
           P(W, b) = sum_kj r |w_kj| + (1 - r)/2 w_kj^2 + sum_i c_i l_i
           with the logistic loss of two or more classes, or the squared hinge
Update     W_k <- W_k + t S_k on a working set, for one class after another: S_k nearly
           minimises the second-order model of the loss plus the penalty, by coordinate
           descent over columns at the rows with a second derivative, or over products
           of columns where sweeps are shorter so, and by Newton steps on the nonzero
           weights where descents do not end; t lowers P as Armijo's rule asks. Products
           follow second derivatives that changed by more than a fifth.
           Where steps do not end, as with a large C, and the working set no longer
           grows, an interior point (elastic_net_interior.py) takes their place. Then
           nearly the best bias. A working set has the nonzero weights and those that
           violate the optimality conditions most.
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
from ..problems.columns import Part
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
    #: Most columns left that are a working set together.
    whole: int = 200
    #: Violation that a working set is left with, as part of the first one.
    left: float = 0.1
    #: The same for the logistic loss, whose second derivatives are continuous.
    left_of_logistic: float = 0.03
    #: The same, as part of tol.
    left_of_tol: float = 0.3
    #: The same for the second-order model of a step.
    inner: float = 0.1
    #: Most steps over a working set.
    rounds: int = 20
    #: Most sweeps of a descent before a Newton step on nonzero weights.
    sweeps: int = 100
    #: Descents of a step that do not end, after which an interior point begins.
    failures: int = 2
    #: It does not where the working set has this many times the columns of the last
    #: one: the next one may be easier.
    grown: float = 1.2
    #: Weights of its iterates below such parts of the largest one are set to 0: the
    #: first part that raises P by at most `snapped` of the goal.
    snaps: tuple[float, ...] = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 0.0)
    #: See above.
    snapped: float = 0.1
    #: Largest working set whose products are made.
    products: int = 2000
    #: They are made where that takes no longer than this many sweeps,
    fewest_sweeps: float = 10.0
    #: or this many times the sweeps of the last step.
    saved: float = 2.0
    #: Largest relative change of a second derivative that products do not follow.
    stale: float = 0.2
    #: Most descents for a step, with Newton steps on nonzero weights between them.
    newton: int = 5
    #: Most of these in a row that end where a weight becomes 0,
    hits: int = 30
    #: for at most this many columns.
    few: int = 500
    #: Addition to the diagonal of their matrix, as a part of it: above the rounding of
    #: sums over many rows, so that dependent columns have a factor.
    ridge: float = 1e-10
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
    working: dict[int, Part] = field(default_factory=dict)  # the last ones, by class


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
            state.norms = np.sqrt(problem.weighted_squares)
            self._look(state, core.Stop())
        return state

    def step(self, state: ProximalNewtonState, stop: core.Stop) -> None:
        settings, problem = self.settings, state.problem
        with unchecked():
            before, state.W = (state.primal, state.dual), state.W.copy()
            worst = float(state.off.max(initial=0.0))
            share = settings.left_of_tol * min(1.0, problem.l1_ratio) * state.tol
            left = settings.left if problem.hinge else settings.left_of_logistic
            target = max(left * worst, share * 0.5)
            size = len(state.working[0].chosen) if state.working else 0
            sets = [self._part(state, k) for k in range(problem.outputs)]
            grown = len(sets[0].chosen) > settings.grown * size
            state.failures = 0
            for rounds in reversed(range(settings.rounds)):
                worst = 0.0
                for k, part in enumerate(sets):
                    if stop.requested or stop.expired:
                        break
                    worst = max(worst, self._newton(state, k, part, target, stop))
                if worst <= target or stop.requested or stop.expired:
                    break
                hard = not rounds or state.failures >= settings.failures
                if hard and grown:
                    break
                if hard and few_equations(problem, sets[0].chosen):
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

    def _part(self, state: ProximalNewtonState, k: int) -> Part:
        """Return the columns of a working set, which may be the last one."""
        chosen, part = self._working_set(state, k), state.working.get(k)
        if part is None or not np.array_equal(part.chosen, chosen):
            part = state.working[k] = Part(state.problem.columns, chosen)
        return part

    def _working_set(self, state: ProximalNewtonState, k: int) -> Set:
        """Return the nonzero weights of a class and its largest violations."""
        settings, off, w = self.settings, state.off[k], state.W[k]
        left = state.left[k]
        if np.count_nonzero(left) <= settings.whole:
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
        part: Part,
        target: float,
        stop: core.Stop,
    ) -> float:
        """Make a step on a working set; return the violation before it."""
        problem, settings = state.problem, self.settings
        now, w = state.now, state.W[k, part.chosen]
        r = -(problem.cost * now.residual[k])
        h = np.maximum(problem.bent(now, k), 0.0)
        if problem.hinge:  # the last step made these rows have a loss
            h = np.where(state.reached, 2.0 * problem.cost, h)
        else:  # of rows far on the wrong side it is near 0
            np.maximum(h, settings.flat * problem.cost, out=h)
        slope = part.sums(r, stop)
        worst = float(violations(problem, slope, w).max(initial=0.0))
        if worst <= target or stop.requested or stop.expired:
            return worst
        goal = max(settings.inner * worst, settings.inner * target)
        new = w.copy()
        sweeps = max(settings.fewest_sweeps, settings.saved * state.sweeps)
        if part.few_products(h, sweeps, settings.products) and not part.slow_products(
            h
        ):
            left = self._by_products(state, part, h, slope, new, goal, stop)
        else:
            left = self._by_columns(state, part, h, r, new, goal, stop)
        state.failures += left > goal
        step = new - w
        self._search(state, k, part, step, float(slope @ step))
        return worst

    def _by_columns(
        self,
        state: ProximalNewtonState,
        part: Part,
        h: Vector,
        r: Vector,
        w: Vector,
        goal: float,
        stop: core.Stop,
    ) -> float:
        """Minimise the second-order model by the columns of a working set.

        Rows whose second derivative is 0 take no part. Returns the violation left.
        """
        settings, problem = self.settings, state.problem
        penalty, l1, l2 = self._penalty(problem, part.chosen, goal)
        of, some = part.among(h)
        u, own_h = r[some], h[some]
        for turn in range(settings.newton):
            if turn > 0:
                if not part.few_products(h, settings.sweeps, settings.products):
                    break
                slope, before = np.zeros(len(w)), w.copy()
                core.column_products(of, part.every, u, slope, stop)
                H = part.products(h, stop, settings.stale)
                _polish(H, slope, w, l1, l2, settings.ridge)
                image = np.zeros(len(some))
                core.add_columns(of, part.every, w - before, image)
                u += own_h * image
            done = core.descend_by_columns(of, penalty, own_h, u, w, stop)
            state.sweeps = done.sweeps
            if done.violation <= goal or stop.requested or stop.expired:
                break
        return done.violation

    def _by_products(
        self,
        state: ProximalNewtonState,
        part: Part,
        h: Vector,
        slope: Vector,
        w: Vector,
        goal: float,
        stop: core.Stop,
    ) -> float:
        """Do the same by the products of the columns."""
        settings = self.settings
        penalty, l1, l2 = self._penalty(state.problem, part.chosen, goal)
        H, u = part.products(h, stop, settings.stale), slope.copy()
        diagonal = H.diagonal().copy()
        for turn in range(settings.newton):
            for _ in range(settings.hits if turn > 0 else 0):
                hit = _polish(H, u, w, l1, l2, settings.ridge)
                if not hit or len(w) > settings.few:
                    break
            done = core.descend_by_products(H, penalty, diagonal, u, w, stop)
            if done.violation <= goal or stop.requested or stop.expired:
                break
        return done.violation

    def _penalty(
        self, problem: ElasticNetProblem, chosen: Set, goal: float
    ) -> tuple[core.ElasticNetPenalty, Vector, Vector]:
        """Return the penalty of a working set, and what ends a descent."""
        r, own = problem.l1_ratio, chosen < problem.penalised
        free = len(own) - 1 if problem.free_bias else -1
        penalty = core.ElasticNetPenalty(r, 1.0 - r, free, goal, self.settings.sweeps)
        return penalty, np.where(own, r, 0.0), np.where(own, 1.0 - r, 0.0)

    def _interior(
        self, state: ProximalNewtonState, part: Part, stop: core.Stop
    ) -> None:
        """Minimise P over a working set, or all columns left, by an interior point."""
        problem, settings = state.problem, self.settings
        goal = settings.left_of_tol * state.tol
        left = np.flatnonzero(state.left[0]).astype(np.uint32)
        whole = few_equations(problem, left)
        if whole and len(left) > len(part.chosen):
            part = Part(problem.columns, left)
        chosen = part.chosen
        inner = Interior(problem, part, state.W[0, chosen], state.primal)
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
        part: Part,
        step: Vector,
        slope: float,
    ) -> None:
        """Move along a step as far as Armijo's rule allows."""
        problem, settings, w = state.problem, self.settings, state.W[k, part.chosen]
        before = problem.penalty(w[None])
        expected = slope + problem.penalty((w + step)[None]) - before
        rounded = settings.gain * abs(state.primal)
        if not expected < rounded:
            return
        t, image = 1.0, part.image(step)
        for _ in range(settings.halvings):
            new, moved = w + t * step, state.scores.copy()
            moved[k] += t * image
            now = problem.outcome(moved)
            more = problem.penalty(new[None]) - before
            more += float(problem.cost @ (now.loss - state.now.loss))
            if more <= settings.enough * t * min(expected, 0.0) + rounded:
                state.W[k, part.chosen] = new
                state.scores, state.now = moved, now
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
            r = a * problem.cost
            some, rows = (np.flatnonzero(x).astype(np.uint32) for x in (left, r))
            if len(rows) * len(v) < len(some) * len(r):
                core.add_columns(columns.rows, rows, r, v)
            elif not core.column_products(columns.of, some, r, v, stop):
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

    `slope`: derivatives of the loss. W may have some columns and the bias only.
    """
    r, penalised = problem.l1_ratio, W.shape[-1] - problem.free_bias
    full = slope + (1.0 - r) * W
    off = np.where(
        W == 0.0, np.maximum(np.abs(full) - r, 0.0), np.abs(full + r * np.sign(W))
    )
    off[..., penalised:] = np.abs(slope[..., penalised:])
    return off


def _polish(
    H: Vector, u: Vector, w: Vector, l1: Vector, l2: Vector, ridge: float
) -> bool:
    """Make a Newton step on the nonzero weights, where weights that pass 0 stay there.

    `u`: slopes without the penalty, which change with w. Returns whether the step ended
    where the first weight became 0.
    """
    some = np.flatnonzero((w != 0.0) | (l1 == 0.0))
    if not len(some):
        return False
    own = H[np.ix_(some, some)]
    own[np.diag_indices(len(some))] += l2[some]
    scale = 1.0 / np.sqrt(np.maximum(own.diagonal(), TINY))
    factor = own * scale * scale[:, None]
    factor[np.diag_indices(len(some))] += ridge
    before, sign = w[some], np.sign(w[some])
    slope = u[some] + l2[some] * before
    try:
        right = scale * (slope + l1[some] * sign)
        step = -scale * linalg.cho_solve(
            linalg.cho_factor(factor, check_finite=False), right, check_finite=False
        )
    except linalg.LinAlgError:
        return False
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
            return t < 0.1
    return False

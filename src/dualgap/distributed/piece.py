"""Piece: one worker's partition of the rows, with its duals, in a round of CoCoA+.

Problem    with A b = sum_i b_i y_i x_i over the rows of a piece, the piece solves
             max over 0 <= a + b <= U of  sum_i (a_i + b_i) - 1/2 sum_i delta_i (a_i +
             b_i)^2 - w.A b - sigma/2 ||A b||^2
Update     coordinate steps on b, at the point u = w + sigma A b:
             G = y_i u.x_i - 1 + delta_i a_i
             a_i <- min(max(a_i - G/(sigma q_i + delta_i), 0), U_i)
             u <- u + sigma (change of a_i) y_i x_i
           In s_i = sigma a_i, with costs sigma c_i (box sigma U_i, diagonal
           delta_i/sigma), this becomes
             s_i <- min(max(s_i - G/(q_i + delta_i/sigma), 0), sigma U_i)
             u <- u + (change of s_i) y_i x_i,
           an epoch of `DCD` on a problem whose costs are sigma times as large.
           With beta > 0 the epochs begin beyond the last step, at
             a + beta (a - a') clipped to the box,   u = w + beta (w - w') + sigma A c,
           where c is the change by the clipping. A piece does not know the clipping of
           other pieces, and assumes that it equals its own.
Guarantee  the subproblems add up to a lower bound on D if sigma is at least
           ||sum_k A b_k||^2 / sum_k ||A b_k||^2. This ratio is at most the number K of
           pieces, so sigma = K is safe.
Cost       epochs of `DCD`, and one product for the losses at w; 80 bytes per row and
           binary problem
Source     Ma, Smith, Jaggi, Jordan, Richtarik and Takac, ICML 2015 (constants taken
           from secondary sources). The extrapolation beyond the last step is Nesterov's
           (Soviet Math. Doklady 27, 1983); this form of it is specific to dualgap.
"""

from __future__ import annotations

import copy
import sys
import threading
import time
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .. import core
from ..checks import check_costs, check_vector
from ..data.types import MatrixLike
from ..losses import Loss, Vector
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.reductions import Reduction, reduction_of
from ..problems.rounding import Values
from ..solvers.base import new_order
from ..solvers.dcd import DCD, DCDState
from .messages import Order, PartialSums, Reply, Task, Update
from .stores import StorePart, named

if TYPE_CHECKING:
    from .engine import State

#: Local epochs run without acceleration: a worker cannot choose a direction across
#: pieces.
LOCAL = DCD(acceleration="none")


@dataclass(frozen=True)
class Setup:
    """Maker of problems of labelled rows, the same for every piece.

    `factors` are the class weights; the rest is as for :class:`dualgap.LinearSVC`.
    """

    classes: NDArray[np.generic]
    factors: Vector
    C: float
    loss: Loss
    fit_intercept: bool
    intercept_scaling: float
    random_state: int
    multi_class: str = "ovr"

    @cached_property
    def reduction(self) -> Reduction:
        """The binary problems that the classes make."""
        return reduction_of(self.multi_class, len(self.classes))

    def batch(
        self, X: MatrixLike, y: NDArray[np.generic], weight: Vector
    ) -> LinearBatch:
        """Return the problems of a part of the rows."""
        return LinearBatch(
            X, self.classes, np.searchsorted(self.classes, y), self.reduction, weight,
            self.factors, self.C, copies=False, part=True, loss=self.loss,
            fit_intercept=self.fit_intercept, intercept_scaling=self.intercept_scaling,
        )  # fmt: skip


@dataclass(kw_only=True)
class LocalState(DCDState):
    """State of the local epochs: duals times sigma, and the point u of this round."""

    def repair(self) -> None:
        # u is not the w of these duals alone, so it cannot be recomputed from them. A
        # round is too short for u to drift.
        self.linear = self.problem.dual_value(self.alpha, 0.0)


@dataclass
class Step:
    """Last step that all pieces agreed on."""

    alpha: Vector  # duals before the step
    w: Vector  # w before the step
    move: Vector  # change of this piece's share of w


class Binary:
    """Problem on the rows of a piece, with its duals.

    All pieces agreed on `alpha`; the last advance proposes `trial`. The duals and costs
    of `state` are times sigma.
    """

    def __init__(self, problem: BinaryProblem, key: np.random.SeedSequence) -> None:
        n, seed = problem.n, int(key.generate_state(1, np.uint64)[0])
        self.problem = problem
        self.alpha, self.trial = np.zeros(n), np.zeros(n)
        self.state = LocalState(
            copy.copy(problem), core.Random(seed), new_order(n), alpha=np.zeros(n),
            w=np.zeros(problem.width), q=problem.q, active=n,
        )  # fmt: skip
        self.state.start_shrinking()
        self.step: Step | None = None
        self.rescale(1.0)

    def rescale(self, sigma: float) -> None:
        self.sigma = sigma
        self.state.problem.cost = sigma * self.problem.cost
        self.state.data = None
        self.scaled_upper = self.state.problem.upper

    def commit(self, gamma: float) -> None:
        """Take the step gamma (in [0, 1]) toward the trial point, for good."""
        if gamma == 1.0:
            self.alpha[:] = self.trial
        elif gamma != 0.0:
            self.alpha += gamma * (self.trial - self.alpha)
            np.clip(self.alpha, 0.0, self.problem.upper, out=self.alpha)
        if self.step is not None:
            self.step.move *= gamma
        self.settle()

    def settle(self) -> None:
        """Discard the trial point."""
        self.trial[:] = self.alpha

    def do(self, task: Task, w: Vector, stop: core.Stop) -> PartialSums:
        """Do the task of a round at w."""
        if task.kind == "advance":
            return self.advance(w, task, stop)
        if task.kind == "combine":
            w = self.problem.combine(self.alpha)
            return PartialSums(update=Update(len(w), w))
        return self.evaluate(w)

    def advance(self, w: Vector, task: Task, stop: core.Stop) -> PartialSums:
        """Run epochs over the rows of the piece, and propose a step."""
        sigma, state = task.sigma, self.state
        # Other pieces have changed w, so skipped rows may have to return.
        part = self.evaluate(w, state.wake)
        if sigma != self.sigma:
            self.rescale(sigma)
        start = self.take_off(w, task.beta)
        state.repair()
        u, updates, visited = state.w.copy(), state.updates, state.visited
        for _ in range(task.epochs):
            before = state.updates
            LOCAL.step(state, stop)
            part.epochs += 1
            if state.updates == before or stop.requested or stop.expired:
                break
        part.updates, part.visited = state.updates - updates, state.visited - visited
        # A variable at its scaled bound goes to the bound exactly, without rounding.
        upper = self.problem.upper
        inside = np.minimum(state.alpha / sigma, upper)
        self.trial = np.where(state.alpha >= self.scaled_upper, upper, inside)
        move = (state.w - u) / sigma
        if start is not None:
            move += start
        self.step = Step(self.alpha.copy(), w.copy(), move)
        part.add_step(self.problem, self.alpha, self.trial, move)
        return part

    def take_off(self, w: Vector, beta: float) -> Vector | None:
        """Set the duals and u before the first epoch.

        Returns the change of this piece's share of w by the extrapolation, (width,);
        None without one.
        """
        state, step, sigma = self.state, self.step, self.sigma
        state.w[:] = w
        if beta == 0.0 or step is None:
            np.multiply(self.alpha, sigma, out=state.alpha)
            return None
        change = self.alpha - step.alpha
        state.wake[change != 0.0] = 0
        beyond = self.alpha + beta * change
        inside = np.clip(beyond, 0.0, self.problem.upper)
        clipped = self.problem.combine(inside - beyond)
        state.w += beta * (w - step.w)
        state.w += sigma * clipped
        at_upper = inside == self.problem.upper
        state.alpha[:] = np.where(at_upper, self.scaled_upper, sigma * inside)
        clipped += beta * step.move
        return clipped

    def evaluate(self, w: Vector, wake: NDArray[np.uint8] | None = None) -> PartialSums:
        problem = self.problem
        found = core.evaluate(
            problem.examples(), w, "of w", self.alpha, None, threads=problem.threads,
            wake=wake,
        )  # fmt: skip
        return PartialSums(values=Values.of(found), rows=problem.n)

    def restore(self, alpha: Vector | None) -> None:
        """Restart from these duals, or from 0."""
        self.alpha[:] = 0.0 if alpha is None else alpha
        self.state.restore()


@dataclass(frozen=True)
class Census:
    """Counts of the data in a piece, taken before training."""

    rows: int
    width: int
    stored: int
    labels: NDArray[np.generic]
    weights: Vector  # sum of the weights of each label
    name: str = ""  # path, for a store
    zero_based: bool = True  # whether column numbers of a store begin at 0


class Piece:
    """Rows on one worker, in memory or mapped into it, with the duals of each problem.

    The number `index` of a piece enters the seed of the order of its rows. A copy of a
    piece on another worker opens the store `source`, so that no rows are sent.
    """

    def __init__(
        self,
        X: MatrixLike,
        y: ArrayLike,
        weight: ArrayLike | None = None,
        *,
        index: int = 0,
        source: StorePart | None = None,
    ) -> None:
        y = np.asarray(y)
        if y.ndim != 1 or len(y) != X.shape[0]:
            raise ValueError(
                f"piece {index}: X has shape {X.shape} and y has shape {y.shape}; "
                "give one label per row"
            )
        if weight is not None:
            with named(f"piece {index}"):
                weight = check_vector("sample_weight", weight, len(y))
                if weight.any():
                    check_costs(1.0, weight, len(y))
        self.X, self.y, self.index, self.source = X, y, index, source
        self.weight: Vector | None = weight
        self.round = 0  # last round of this piece
        self.reply: Reply | None = None
        self.binaries: list[Binary | None] | None = None
        self.stop = core.Stop()
        self.lock = threading.Lock()  # a worker may have several threads

    @classmethod
    def of(cls, source: StorePart, index: int) -> Piece:
        """Return a piece of the rows of a store, mapped into memory."""
        return cls(*source.open(), index=index, source=source)

    def __sizeof__(self) -> int:
        parts = [self.X]
        if sparse.issparse(self.X):
            parts = [self.X.data, self.X.indices, self.X.indptr]
        if self.source is not None:  # Dask cannot free mapped rows by spilling them
            parts = [self.y]
        # Duals, trial points, costs and orders of each Binary.
        rows = 80 * len(self.binaries or ()) * len(self.y)
        return sum(sys.getsizeof(part) for part in parts) + rows

    def __getstate__(self) -> dict[str, object]:
        """Return the rows and labels. A copy of a piece has no duals."""
        stored = self.source is not None
        keep = ["source", "index"] if stored else ["X", "y", "weight", "index"]
        return {name: getattr(self, name) for name in keep}

    def __setstate__(self, state: dict[str, Any]) -> None:
        source = state.get("source")
        if source is not None:
            state = dict(zip(("X", "y", "weight"), source.open(), strict=True)) | state
        Piece.__init__(self, **state)

    def census(self) -> Census:
        labels, codes = np.unique(self.y, return_inverse=True)
        weights = np.bincount(codes, self.weight, minlength=len(labels)).astype(float)
        X, (n, d) = self.X, self.X.shape
        stored = int(X.nnz if sparse.issparse(X) else X.size)
        found = Census(n, d, stored, labels, weights)
        if self.source is None:
            return found
        of = self.source.store()
        return replace(found, name=of.path, zero_based=of.zero_based)

    def open(self, setup: Setup) -> list[Binary | None]:
        """Return the problems, and make them on first use.

        An entry is None if no row of the piece has a positive cost in the problem.
        """
        if self.binaries is not None:
            return self.binaries
        weight = np.ones(len(self.y)) if self.weight is None else self.weight
        binaries: list[Binary | None] = [None] * len(setup.reduction)
        if weight.any():
            with named(f"piece {self.index}"):
                batch = self.batch = setup.batch(self.X, self.y, weight)
                for k in range(len(batch)):
                    if np.any(batch.weights(k)):
                        key = [setup.random_state, k, self.index]
                        problem = cast(BinaryProblem, batch.problem(k))
                        binaries[k] = Binary(problem, np.random.SeedSequence(key))
        self.binaries = binaries
        return binaries

    def take_part(self, setup: Setup, order: Order, state: State) -> Reply:
        """Do one round: commit the last step, then do the task of each problem.

        A piece that did not do the round that `order` builds on does nothing and
        replies that it is lost. A piece that has already done this round repeats its
        reply.
        """
        with self.lock:
            if order.round == self.round and self.reply is not None:
                return self.reply
            return self._take_part(setup, order, state[0])

    def _take_part(
        self, setup: Setup, order: Order, points: dict[int, Vector]
    ) -> Reply:
        begun = time.perf_counter()
        if self.round != order.after:
            return Reply(lost=[self.index])
        binaries, reply = self.open(setup), Reply()
        self.stop = core.Stop()
        if order.seconds is not None:
            self.stop.set_deadline(max(order.seconds, 0.0))
        for k, gamma in order.gammas.items():
            binary = binaries[k]
            if binary is not None:
                binary.commit(gamma)
        for k, task in order.tasks.items():
            binary = binaries[k]
            reply.parts[k] = PartialSums()
            if binary is not None:
                reply.parts[k] = binary.do(task, points[k], self.stop)
        reply.seconds = time.perf_counter() - begun
        self.round, self.reply = order.round, reply
        return reply

    def moments(self, setup: Setup, k: int, w: Vector) -> Vector:
        """Return the moments of the decision values of problem k over the rows."""
        return np.zeros(3) if self.open(setup)[k] is None else self.batch.moments(k, w)

    def duals(self) -> list[Vector | None]:
        """Return copies of the duals that all pieces agreed on, per problem."""
        with self.lock:
            binaries = self.binaries or []
            return [None if b is None else b.alpha.copy() for b in binaries]

    def signed_duals(self, setup: Setup) -> Vector:
        """Return ``y_i alpha_i`` of all problems and rows, (problems, n)."""
        zero = np.zeros(len(self.y))
        return np.stack(
            [zero if b is None else b.alpha * b.problem.y for b in self.open(setup)]
        )

    def recover(
        self, setup: Setup, order: Order, duals: list[Vector | None] | None
    ) -> bool:
        """Discard trial points after a loss, and return whether this piece was lost.

        A piece that had lost its duals gets the last checkpoint's; None stands
        for zeros.
        """
        with self.lock:
            if self.round == order.round:
                return False
            lost = self.round not in (order.after, *order.broken)
            for k, binary in enumerate(self.open(setup)):
                if binary is None:
                    continue
                if lost:
                    binary.restore(duals[k] if duals else None)
                elif self.round == order.after and k in order.gammas:
                    binary.commit(order.gammas[k])
                binary.settle()  # a round that some pieces could not do does not count
                binary.step = None
            self.round, self.reply = order.round, None
            return lost

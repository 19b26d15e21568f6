"""Rounds over all pieces, wherever they run, and the recovery of lost pieces."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from .. import core
from ..certificate import Bounds
from ..losses import Vector
from ..problems.rounding import Rounding, Values
from ..solvers.dcd import share_features
from .messages import Order, Reply, Task
from .piece import Census, Setup

T = TypeVar("T")

#: Number of replies that one node of the reduction tree adds up.
ARITY = 4


@dataclass
class Summary:
    """Result of one round for one problem."""

    primal: float  # at the point before an advance, or at the evaluated point
    dual: float
    reached: float  # D after the advance
    gamma: float = 1.0  # step size
    best: float = 1.0  # the step size that maximises D on the whole line
    ratio: float = 1.0  # ||sum_k A b_k||^2/sum_k ||A b_k||^2
    updates: int = 0
    visited: int = 0
    epochs: int = 0  # largest number of epochs of a piece
    w: Vector | None = None  # the evaluated point
    bounds: Bounds | None = None  # on P and D there


@dataclass
class RoundOutcome:
    """Result of one round for all problems."""

    summaries: dict[int, Summary] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    seconds: float = 0.0
    nbytes: int = 0
    late: int = 0


#: The w of all problems, and the result of the round that led to them.
State = tuple[dict[int, Vector], RoundOutcome]


def aggregate(
    state: State, replies: Sequence[Reply], tasks: Mapping[int, Task]
) -> State:
    """Return the points after a round, and the result of the round.

    An advance takes the step size gamma in [0, 1] that maximises D. The duals then stay
    in their box, and D never falls, whatever sigma is.
    """
    points, reply = state[0], Reply.merge(replies)
    after = dict(points)
    outcome = RoundOutcome({}, reply.lost, reply.seconds, reply.sent)
    if reply.lost:
        return points, outcome
    for k, task in tasks.items():
        part, w = reply.parts[k], points[k]
        norm = core.squared_norm(w)
        values = part.values or Values(*[0.0] * len(Values._fields))
        primal = 0.5 * norm + values.loss
        dual = values.sum - 0.5 * (norm + values.diagonal)
        summary = Summary(
            primal, dual, dual, updates=part.updates, visited=part.visited,
            epochs=part.epochs,
        )  # fmt: skip
        outcome.summaries[k] = summary
        if task.kind == "combine":
            after[k] = np.zeros_like(w) if part.update is None else part.update.whole()
        elif task.kind == "evaluate":
            rounding = Rounding(part.rows, len(w), 2 * part.pieces)
            summary.bounds = rounding.bounds(values, norm, norm, off=0.0)
            summary.w = w
        elif part.update is not None:
            length = core.squared_norm(part.update.values)
            slope = part.slope - part.update.dot(w)
            curvature = part.curvature + length
            if curvature > 0.0:
                summary.best = slope / curvature
                summary.gamma = min(max(summary.best, 0.0), 1.0)
            summary.reached += summary.gamma * (slope - 0.5 * summary.gamma * curvature)
            summary.ratio = length / part.squares if part.squares > 0.0 else 1.0
            moved = w.copy()
            part.update.add_to(moved, summary.gamma)
            after[k] = moved
    return after, outcome


def zero(problems: int, width: int) -> State:
    """Return the point 0 of every problem."""
    return {k: np.zeros(width) for k in range(problems)}, RoundOutcome()


def branches(items: Sequence[T]) -> list[Sequence[T]]:
    """Return groups of neighbours, one for each node of the reduction tree."""
    return [items[i : i + ARITY] for i in range(0, len(items), ARITY)]


class Engine(ABC):
    """Base of the drivers that run rounds over pieces."""

    deadline = math.inf  # of the local epochs, by the monotonic clock

    def __init__(self, census: Sequence[Census], setup: Setup) -> None:
        self.count, self.setup = len(census), setup
        self.problems = len(setup.reduction)
        self.width = census[0].width + setup.fit_intercept
        #: Stored entries of the largest piece.
        self.stored = max(found.stored for found in census)
        rows = sum(found.rows for found in census)
        stored = sum(found.stored for found in census)
        #: More epochs would hardly save rounds (docs/scaling-out.md).
        self.most_passes = 8 if share_features(rows, self.width, stored) else 1
        self.rounds = 0
        self.recoveries = 0
        self.after = [0] * self.count  # last round of each piece that counts
        self.gammas: list[dict[int, float]] = [{} for _ in range(self.count)]
        # Rounds of late pieces, whose replies do not count yet.
        self.late: dict[int, int] = {}

    def order(self, index: int, tasks: dict[int, Task]) -> Order:
        """Return the order to piece `index` for the present round."""
        left = self.deadline - time.monotonic()
        advances = any(task.kind == "advance" for task in tasks.values())
        seconds = left if advances and left < math.inf else None
        gammas = self.gammas[index]
        return Order(self.rounds, self.after[index], gammas, tasks, seconds)

    def run(self, tasks: dict[int, Task], lost: Sequence[int] = ()) -> RoundOutcome:
        """Run rounds that do the tasks of the problems until no piece is lost.

        `lost`: pieces that were lost before, in a recovery that these tasks end.
        """
        while True:
            self.rounds += 1
            members, outcome = self.play(tasks)
            if not outcome.lost:
                gammas = {k: summary.gamma for k, summary in outcome.summaries.items()}
                for index, done in members.items():
                    self.after[index], self.gammas[index] = done, gammas
                outcome.lost = list(lost)
                return outcome
            lost = [*lost, *outcome.lost]
            if len(lost) > 2 * self.count + 3:
                raise RuntimeError(
                    f"pieces {sorted(set(lost))} of the data were lost {len(lost)} "
                    "times in one round; check the logs of the workers, which may lack "
                    "memory"
                )
            lost = self.recover(lost)

    def recover(self, lost: Sequence[int]) -> list[int]:
        """Restore the duals of lost pieces, and sum up a matching w.

        Lost pieces get their duals from the last checkpoint, or 0. Returns the pieces
        and those that were lost during the recovery.
        """
        self.recoveries += 1
        broken, self.rounds = self.rounds, self.rounds + 1
        orders = [
            Order(
                self.rounds,
                self.after[i],
                self.gammas[i],
                broken=(broken, self.late.get(i, broken)),
            )
            for i in range(self.count)
        ]
        self.restore(orders)
        self.late.clear()
        self.after = [self.rounds] * self.count
        self.gammas = [{} for _ in range(self.count)]
        tasks = {k: Task("combine") for k in range(self.problems)}
        return self.run(tasks, lost).lost

    @abstractmethod
    def play(self, tasks: dict[int, Task]) -> tuple[Mapping[int, int], RoundOutcome]:
        """Run one round, add up the replies, and move the points.

        Returns the pieces whose replies count, with the rounds of the replies, and the
        result.
        """

    @abstractmethod
    def restore(self, orders: Sequence[Order]) -> None:
        """Make every piece recover, with the duals of its last checkpoint."""

    @abstractmethod
    def moments(self, k: int, w: Vector) -> Vector:
        """Return the moments of the decision values of problem k over all rows."""

"""A round over all pieces, whoever runs them; and what becomes of a lost piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from .. import core
from ..certificate import Bounds
from ..losses import Vector
from ..problem import Rounding, Values
from ..solvers.dcd import share_features
from .messages import Order, Reply, Task
from .piece import Census, Piece, Setup

Points = dict[int, Vector]
T = TypeVar("T")

#: Replies that one node of the reduction adds up.
ARITY = 4


@dataclass
class Summary:
    """What came of one round for one binary problem.

    ``primal`` and ``dual`` are those of the point before an advance, or of the point
    evaluated; ``reached`` is D after the advance; ``gamma`` the part of the step that
    was taken, ``best`` the one that maximises D on the whole line; ``ratio`` is
    ``||sum_k A b_k||^2 / sum_k ||A b_k||^2``.
    """

    primal: float
    dual: float
    reached: float
    gamma: float = 1.0
    best: float = 1.0
    ratio: float = 1.0
    updates: int = 0
    visited: int = 0
    epochs: int = 0
    # Of the point evaluated.
    w: Vector | None = None
    bounds: Bounds | None = None


@dataclass
class Outcome:
    """What came of one round."""

    summaries: dict[int, Summary] = field(default_factory=dict)
    lost: list[int] = field(default_factory=list)
    seconds: float = 0.0
    nbytes: int = 0
    late: int = 0


def aggregate(
    points: Points, reply: Reply, tasks: dict[int, Task]
) -> tuple[Points, Outcome]:
    """The points after a round.

    An advance goes ``gamma`` of the way, where D is largest: with gamma in [0, 1] the
    duals stay in their box, and D never falls whatever sigma was.
    """
    after, outcome = dict(points), Outcome({}, reply.lost, reply.seconds, reply.sent)
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
            more = rounding.of_primal(values, norm)
            less = rounding.of_dual(values, norm, rounding.drift(values), 0.0)
            summary.bounds = Bounds.proved(primal, more, dual, less)
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


def zero_points(problems: Iterable[int], width: int) -> Points:
    """The point 0 of every binary problem."""
    return {k: np.zeros(width) for k in problems}


def branches(items: Sequence[T]) -> list[Sequence[T]]:
    """Neighbours that one node of the reduction adds up."""
    return [items[i : i + ARITY] for i in range(0, len(items), ARITY)]


class Engine(ABC):
    """Pieces, the points that they work on, and the count of their rounds.

    Parameters
    ----------
    census : sequence of Census
        Of every piece.
    setup : Setup
    """

    def __init__(self, census: Sequence[Census], setup: Setup) -> None:
        self.count, self.setup = len(census), setup
        self.width = census[0].width + setup.fit_intercept
        #: Stored entries of the largest piece.
        self.stored = max(found.stored for found in census)
        rows = sum(found.rows for found in census)
        stored = sum(found.stored for found in census)
        #: More passes in a round hardly save a round (docs/scaling-out.md).
        self.most_passes = 8 if share_features(rows, self.width, stored) else 1
        self.problems = range(setup.problems)
        self.rounds = 0
        self.recoveries = 0
        self.after = [0] * self.count  # the last round of each piece that counted
        self.gammas: list[dict[int, float]] = [{} for _ in range(self.count)]
        # Rounds that pieces did, or are at, whose replies do not count yet.
        self.late: dict[int, int] = {}
        #: Tells rounds of passes to end early.
        self.stop: Any = core.Stop()

    def order(
        self, index: int, tasks: dict[int, Task], seconds: float | None = None
    ) -> Order:
        """What piece `index` is asked for in the present round."""
        gammas = self.gammas[index]
        return Order(self.rounds, self.after[index], gammas, tasks, seconds)

    def run(self, tasks: dict[int, Task], seconds: float | None = None) -> Outcome:
        """One round in which every binary problem in `tasks` has its task done.

        Parameters
        ----------
        tasks : dict of int to Task
        seconds : float, optional
            Time left to the fit.

        Raises
        ------
        RuntimeError
            If pieces are lost again and again.
        """
        self.rounds += 1
        members, outcome = self.play(tasks, seconds)
        lost = outcome.lost
        while outcome.lost:
            lost = lost + self.recover(outcome.lost)
            self.rounds += 1
            members, outcome = self.play(tasks, seconds)
            lost = lost + outcome.lost
            self._give_up_after(lost)
        self.settle(members, outcome)
        outcome.lost = lost
        return outcome

    def settle(self, members: Mapping[int, int], outcome: Outcome) -> None:
        gammas = {k: summary.gamma for k, summary in outcome.summaries.items()}
        for index, done in members.items():
            self.after[index] = done
            self.gammas[index] = gammas

    def recover(self, lost: list[int]) -> list[int]:
        """Give lost pieces what is known of their duals, and all a w that fits.

        Returns the pieces that are lost on the way.
        """
        more: list[int] = []
        while True:
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
            self.rounds += 1
            tasks = {k: Task("combine") for k in self.problems}
            members, outcome = self.play(tasks, None)
            if not outcome.lost:
                self.settle(members, outcome)
                return more
            more += outcome.lost
            self._give_up_after(lost + more)

    def _give_up_after(self, lost: list[int]) -> None:
        if len(lost) > 2 * self.count + 3:
            raise RuntimeError(
                f"pieces {sorted(set(lost))} of the data were lost {len(lost)} times "
                "in one round; look at the logs of the workers: they may lack memory"
            )

    @abstractmethod
    def play(
        self, tasks: dict[int, Task], seconds: float | None
    ) -> tuple[Mapping[int, int], Outcome]:
        """Ask the pieces, add up, move the points; say whose round that was."""

    @abstractmethod
    def restore(self, orders: Sequence[Order]) -> None:
        """Have every piece recover, with the duals of its last safe point."""


class Simulation(Engine):
    """All pieces in this process, one after the other.

    Gives the same bits as a cluster that has the same pieces.

    Parameters
    ----------
    pieces : sequence of Piece
    setup : Setup
    """

    def __init__(self, pieces: Sequence[Piece], setup: Setup) -> None:
        super().__init__([piece.census() for piece in pieces], setup)
        self.pieces = list(pieces)
        self.points = zero_points(self.problems, self.width)

    def play(
        self, tasks: dict[int, Task], seconds: float | None
    ) -> tuple[Mapping[int, int], Outcome]:
        replies = [
            piece.take_part(self.setup, self.order(i, tasks, seconds), self.points)
            for i, piece in enumerate(self.pieces)
        ]
        while len(replies) > 1:
            replies = [Reply.merge(group) for group in branches(replies)]
        self.points, outcome = aggregate(self.points, replies[0], tasks)
        return dict.fromkeys(range(self.count), self.rounds), outcome

    def restore(self, orders: Sequence[Order]) -> None:
        for piece, order in zip(self.pieces, orders, strict=True):
            piece.recover(self.setup, order, None)

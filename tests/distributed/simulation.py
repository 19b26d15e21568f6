"""A cluster whose pieces run in this process, one after the other."""

from __future__ import annotations

import numpy as np

from dualgap.distributed.engine import ARITY, Engine, aggregate, branches, zero
from dualgap.distributed.messages import Reply


class Simulation(Engine):
    """Engine with the bits of a cluster that has the same pieces."""

    def __init__(self, pieces, setup):
        super().__init__([piece.census() for piece in pieces], setup)
        self.pieces = list(pieces)
        self.state = zero(self.problems, self.width)

    def play(self, tasks):
        replies = [
            piece.take_part(self.setup, self.order(i, tasks), self.state)
            for i, piece in enumerate(self.pieces)
        ]
        while len(replies) > ARITY:
            replies = [Reply.merge(group) for group in branches(replies)]
        self.state = aggregate(self.state, replies, tasks)
        return dict.fromkeys(range(self.count), self.rounds), self.state[1]

    def restore(self, orders):
        for piece, order in zip(self.pieces, orders, strict=True):
            piece.recover(self.setup, order, None)

    def moments(self, k, w):
        return np.sum([p.moments(self.setup, k, w) for p in self.pieces], axis=0)

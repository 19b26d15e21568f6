"""A problem whose certificate takes a moment and whose epochs take seconds."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from dualgap.problem import Problem
from dualgap.solvers import SDCA


@dataclass(frozen=True)
class LongEpochs(SDCA):
    """SDCA whose epoch is many passes, in one call of a kernel."""

    order: Any = "cyclic"
    visits: Any = None

    def start(self, problem, rng, warm):
        state = super().start(problem, rng, warm)
        state.order = self.visits
        return state


def make(n: int = 10**5, d: int = 300, passes: int = 300) -> tuple[Problem, LongEpochs]:
    """120 MB of rows, and the solver whose epochs are that many passes over them."""
    rng = np.random.default_rng(0)
    X = rng.random((n, d), dtype=np.float32)
    X -= 0.5
    noise = rng.standard_normal(n, dtype=np.float32)
    problem = Problem(X, np.where(X[:, 0] + X[:, 1] + noise > 0, 1, -1))
    visits = np.resize(np.arange(n, dtype=np.uint32), passes * n)
    return problem, LongEpochs(visits=visits)


def longest_pass(problem: Problem) -> float:
    """Processor seconds of a certificate."""
    took = []
    for _ in range(4):
        begun = time.process_time()
        problem.certify(alpha=np.zeros(problem.n))
        took.append(time.process_time() - begun)
    return max(took)

"""A problem whose epochs take many seconds, to be left in the middle."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import SDCA


@dataclass(frozen=True)
class LongEpochs(SDCA):
    """SDCA whose epoch is many passes, in one call of a kernel."""

    order: Any = "cyclic"
    visits: Any = None
    begun: list[Any] = field(default_factory=list, compare=False)  # states

    def start(self, problem, rng, warm):
        state = super().start(problem, rng, warm)
        state.order = self.visits
        self.begun.append(state)
        return state

    def under_way(self) -> bool:
        """Whether the last fit has changed its model."""
        return bool(self.begun) and bool(self.begun[-1].w.any())

    def once_under_way(self, act: Callable[[], object]) -> threading.Thread:
        """Begin to wait for the next fit's first epoch, and act in the midst of it."""
        fits = len(self.begun)

        def wait() -> None:
            while len(self.begun) == fits or not self.under_way():
                time.sleep(0.001)
            act()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        return thread

    @property
    def left_early(self) -> bool:
        """Whether the last fit ended within its first epoch."""
        state = self.begun[-1]
        return state.epochs == 1 and 0 < state.visited < len(self.visits)


def make(n: int = 1000, d: int = 3000) -> tuple[Problem, LongEpochs]:
    """12 MB of rows, and the solver whose epochs are 10,000 passes over them."""
    rng = np.random.default_rng(0)
    X = rng.random((n, d), dtype=np.float32)
    X -= 0.5
    noise = rng.standard_normal(n, dtype=np.float32)
    problem = Problem(X, np.where(X[:, 0] + X[:, 1] + noise > 0, 1, -1))
    visits = np.resize(np.arange(n, dtype=np.uint32), 10**7)
    return problem, LongEpochs(visits=visits)

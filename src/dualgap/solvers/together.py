"""Certificates of problems that the core solved in one call."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ..certificate import Bounds, Certificate, Status
from ..losses import Vector


class Solved(Protocol):
    """Proofs that the core found, and the epochs of one problem after another."""

    @property
    def bounds(self) -> list[Bounds]: ...
    @property
    def epochs(self) -> Vector: ...
    @property
    def ends(self) -> NDArray[np.intp]: ...
    @property
    def seconds(self) -> float: ...


class Parts:
    """Certificates of the problems, one by one.

    Parameters
    ----------
    solved : Solved
    solver : str
        Name of the solver.
    tol, atol : float
        Relative and absolute gap to prove.
    floor : float, default=0.0
        Smallest size of the optimum in relative gaps.

    Attributes
    ----------
    proved : list of bool
        Whether the accuracy of each problem is proved. The others need another solver.
    epochs : int
        The largest number of epochs of a problem.
    """

    def __init__(
        self, solved: Solved, solver: str, tol: float, atol: float, floor: float = 0.0
    ) -> None:
        self.solved = solved
        self.proved = [bounds.meets(tol, atol, floor) for bounds in solved.bounds]
        ends = solved.ends.tolist()
        self.starts = [0, *ends[:-1]]
        self.lengths = [end - start for start, end in pairwise([0, *ends])]
        self.updates = list(map(int, solved.epochs[solved.ends - 1, 2].tolist()))
        self.epochs = max(self.lengths)
        self.common = replace(
            solved.bounds[0].certificate,
            status=Status.CERTIFIED,
            solver=solver,
            tol=tol,
            atol=atol,
            floor=floor,
            seconds=solved.seconds / len(solved.bounds),
        )

    def part(self, p: int) -> Certificate:
        """Return the certificate of problem p, without a name."""
        return replace(
            self.common,
            bounds=self.solved.bounds[p],
            epochs=self.lengths[p],
            updates=self.updates[p],
        )

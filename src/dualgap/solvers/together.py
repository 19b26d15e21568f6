"""Certificates of problems that the core solved in one call."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple, Protocol

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
    @property
    def method(self) -> str: ...
    @property
    def floor(self) -> float: ...


class SolvedProblems(NamedTuple):
    """Solutions of several problems, with their proofs.

    Attributes
    ----------
    w : ndarray of shape (n_problems, width)
        Empty for a kernel problem.
    alpha : ndarray of shape (n_problems, n)
    bounds : list of Bounds
    epochs : ndarray of shape (n_epochs, 3)
        Estimates of P and D, and the steps so far, after each epoch of each problem.
    ends : ndarray of shape (n_problems,)
        Where the epochs of each problem end.
    seconds : float
        Time of all problems.
    method : str
        Name of the method that made the epochs.
    bias, decisions : optional
        As for :class:`dualgap.training.Solution`, of a single problem.
    floor : float, default=0.0
        Smallest size of the optimum in relative gaps.
    """

    w: Vector
    alpha: Vector
    bounds: list[Bounds]
    epochs: Vector
    ends: NDArray[np.intp]
    seconds: float
    method: str
    bias: float | None = None
    decisions: Vector | None = None
    floor: float = 0.0


class Parts:
    """Certificates of the problems, one by one.

    Parameters
    ----------
    solved : Solved
    solver : str
        Name of the solver.
    tol, atol : float
        Relative and absolute gap to prove.

    Attributes
    ----------
    proved : list of bool
        Whether the accuracy of each problem is proved. The others need another solver.
    epochs : int
        The largest number of epochs of a problem.
    """

    def __init__(self, solved: Solved, solver: str, tol: float, atol: float) -> None:
        self.solved, floor = solved, solved.floor
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

"""What the kernel solvers share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ..solvers.base import Solver, State
from .problem import KernelProblem


@dataclass
class KernelState(State):
    """State of a kernel solver; an epoch is as many steps as one call makes."""

    problem: Any

    @property
    def work(self) -> float:
        """Steps so far."""
        return float(self.updates)


class KernelSolver(Solver):
    """Base of the kernel solver records; see :mod:`dualgap.solvers.base`."""

    losses: ClassVar[tuple[str, ...]] = ("squared_hinge",)
    dual: ClassVar[bool] = True

    def check(self, problem: Any) -> None:
        if not isinstance(problem, KernelProblem):
            raise ValueError(
                f"solver={self.name!r} solves kernel problems; use "
                "KernelProblem(X, y, kernel=Linear()) or a linear solver"
            )
        if problem.loss.name not in self.losses:
            raise ValueError(
                f"loss={problem.loss.name!r}: solver={self.name!r} takes the squared "
                "hinge; the hinge comes with the block solver. Use "
                "loss='squared_hinge', or solver='kernel-pegasos'"
            )
        if problem.free_bias and not self.free_bias:
            raise ValueError(
                f"penalize_intercept=False: solver={self.name!r} penalises the bias; "
                "use solver='block', or penalize_intercept=True"
            )

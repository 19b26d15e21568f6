"""What the kernel solvers share."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from .. import core
from ..certificate import Bounds
from ..problem import Proof
from ..solvers.base import Solver, State
from .problem import KernelProblem
from .regression import BoxProblem


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

    def rows_held(self, n: int) -> int:
        """Rows of a kernel matrix of n that the cache must hold to change nothing."""
        return min(n, 2)

    def one_of(self, problems: int, threads: int) -> KernelSolver:
        """The same for one of so many problems, on so many threads if it has any."""
        return self

    def check(self, problem: Any) -> None:
        if isinstance(problem, BoxProblem):
            if problem.loss.name not in self.losses:
                raise ValueError(
                    f"solver={self.name!r} cannot train loss={problem.loss.name!r}; "
                    "use solver='auto' or 'block'"
                )
            return
        if not isinstance(problem, KernelProblem):
            raise ValueError(
                f"solver={self.name!r} solves kernel problems; use "
                "KernelProblem(X, y, kernel=Linear()) or a linear solver"
            )
        loss = problem.loss.name
        if problem.free_bias and loss == "hinge" and not self.free_bias:
            raise ValueError(
                f"loss='hinge': solver={self.name!r} cannot leave the bias free; use "
                "loss='squared_hinge', or solver='auto' or 'block'"
            )
        if loss not in self.losses:
            raise ValueError(
                f"loss={loss!r}: solver={self.name!r} cannot train it; use "
                "loss='squared_hinge', or solver='kernel-pegasos'"
            )
        if problem.free_bias and not self.free_bias:
            raise ValueError(
                f"penalize_intercept=False: solver={self.name!r} penalises the bias; "
                "use penalize_intercept=True, or loss='hinge' and solver='block'"
            )

    def proof_options(self, state: Any) -> dict[str, Any]:
        return {"stop": state.stop}

    def unproved(self, state: Any) -> Proof | None:
        # The decisions are not known, but the bias is.
        problem, (_, alpha) = state.problem, self.iterate(state)
        if alpha is None or not np.isfinite(alpha).all():
            return None
        bounds = Bounds.proved(dual=problem.lowest)
        return Proof(
            np.full(problem.n, math.nan),
            alpha,
            replace(bounds.certificate, floor=problem.floor),
            float(core.signed_sum(problem.y, alpha)),
        )

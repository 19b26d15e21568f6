"""Base classes of the kernel solvers and their states."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeAlias

import numpy as np

from ... import core
from ...certificate import Bounds
from ...problems.base import EMPTY, Claim, KernelHint, Proof
from ...problems.kernel import KernelProblem
from ...problems.kernel_boxes import BoxProblem
from ..base import Solver, State

#: Problems of the block solver.
BoxedProblem: TypeAlias = KernelProblem | BoxProblem


@dataclass
class KernelState(State):
    """State of a kernel solver. One epoch is one call of the solver's ``step``."""

    problem: Any  # not a BinaryProblem, as in other states

    @property
    def work(self) -> float:
        """Number of steps so far."""
        return float(self.updates)


class KernelSolver(Solver):
    """Base of the kernel solver records; see :mod:`dualgap.solvers.base`."""

    losses: ClassVar[tuple[str, ...]] = ("squared_hinge",)
    dual: ClassVar[bool] = True
    #: Whether the solver can train a problem without a bias.
    without_bias: ClassVar[bool] = False

    def rows_held(self, n: int) -> int:
        """Return how many of n kernel rows the cache must hold.

        With this many rows no bit of the result depends on the size of the cache.
        """
        return min(n, 2)

    def one_of(self, problems: int, threads: int) -> KernelSolver:
        """Return a copy tuned for one of `problems` simultaneous fits.

        The copy uses `threads` threads if the solver has threads.
        """
        return self

    def check(self, problem: Any) -> None:
        if problem.kind != "kernel":
            return  # other kinds have one loss, which all their solvers can train
        loss = problem.loss.name
        able = loss in self.losses
        if problem.free_bias and loss == "hinge" and not (self.free_bias or able):
            raise ValueError(
                f"loss='hinge': solver={self.name!r} cannot leave the bias free; use "
                "loss='squared_hinge', or solver='auto' or 'block'"
            )
        if not able:
            others = "'auto', 'block' or " if loss == "hinge" else ""
            raise ValueError(
                f"loss={loss!r}: solver={self.name!r} cannot train it; use "
                f"loss='squared_hinge', or solver={others}'kernel-pegasos'"
            )
        if problem.free_bias and not self.free_bias:
            raise ValueError(
                f"penalize_intercept=False: solver={self.name!r} penalises the bias; "
                "use penalize_intercept=True, or loss='hinge' and solver='block'"
            )
        if not (problem.free_bias or problem.constant or self.without_bias):
            raise ValueError(
                f"fit_intercept=False: solver={self.name!r} needs a bias; use "
                "solver='kernel-pegasos' or 'nystroem', or fit_intercept=True"
            )

    def claim(self, state: Any) -> Claim:
        return Claim(*self.iterate(state), hint=KernelHint(stop=state.stop))

    def unproved(self, state: Any) -> Proof | None:
        # Without a pass only the bias of the model is known, not the decisions.
        problem, (w, alpha) = state.problem, self.iterate(state)
        model = alpha if w is None else w
        if alpha is None or model is None or not np.isfinite(model).all():
            return None
        bounds = Bounds.proved(dual=problem.lowest)
        return Proof(
            w=EMPTY if w is None else w,
            alpha=alpha,
            certificate=replace(bounds.certificate, floor=problem.floor),
            bias=float(core.signed_sum(problem.y, model)) if problem.constant else 0.0,
            decisions=np.full(problem.n, math.nan),
        )

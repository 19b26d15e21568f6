"""Base classes of the kernel solvers and their states, and the set of active rows."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...certificate import Bounds
from ...kernels.functions import Rows
from ...losses import Vector
from ...problems.base import EMPTY, ApproximateScores, Claim, KernelHint, Proof
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


class RowErrors(NamedTuple):
    """Bounds on the errors of float32 kernel rows, and of sums over them."""

    #: The source of the rows.
    source: core.RowSource
    #: Bounds on the errors of the values of each row; infinite if none is known.
    values: Vector
    #: Sums are off by at most ``relative`` times the sum of the sizes of terms, plus
    #: ``rest`` times the sum of the sizes of the coefficients.
    relative: Vector
    rest: float

    @classmethod
    def of(cls, source: core.RowSource, fixed: bool = False) -> RowErrors:
        """Return the bounds of a source. `fixed`: values are rounded to 16 bits."""
        values, relative = np.full((2, source.n), math.inf)
        rest = 0.0
        if isinstance(source, core.KernelRows):
            source.errors(fixed, values)
            rest = source.sum_errors(relative)
        return cls(source, values, relative, rest)

    def of_sums(self, sizes: Vector, reach: float, at: Rows = slice(None)) -> Vector:
        """Return bounds for some rows: the smaller of the two."""
        with np.errstate(invalid="ignore"):  # no bound times nothing
            off = self.relative[at] * sizes + self.rest * reach
        return np.fmin(off, self.values[at] * reach)

    def times(
        self, c: Vector, at: NDArray[np.intp], stop: core.Stop
    ) -> tuple[Vector, Vector]:
        """Return ``sum_j c_j k(x_j, x_i)`` at some rows, and bounds on the errors.

        Kernel values are float32. Raises StoppedError if `stop` ends the computation.
        """
        assert isinstance(self.source, core.KernelRows)
        targets, sums = at.astype(np.uint32), np.zeros((2, len(at)))
        for out, used in zip(sums, (c > 0.0, c < 0.0), strict=True):
            rows = np.flatnonzero(used).astype(np.uint32)
            if not self.source.add_rows(rows, c[used], targets, out, stop):
                raise core.StoppedError
        off = self.of_sums(np.abs(sums).sum(axis=0), float(np.abs(c).sum()), at)
        return sums.sum(axis=0), off


@dataclass(frozen=True)
class ActiveSet:
    """Active set of shrinking, and the point at which it was chosen.

    The gap is a sum over the rows. Inactive rows add nothing to it as long as they
    rightly stay at their bounds. D follows from the change t of c:
    ``D(c + t) = D(c) + t'p - epsilon (|c + t| - |c|) - t'(F(c) + F(c + t))/2``.
    """

    problem: BoxedProblem
    rows: NDArray[np.uint32]
    alpha: Vector  # of all rows at that point; inactive rows keep their values
    F: Vector  # F of the active rows at that point
    value: float  # D at that point
    #: Alpha, and F at all rows, when the first inactive rows left the active set.
    begun: tuple[Vector, ApproximateScores]

    def whole(self, part: Vector) -> Vector:
        """Return alpha of all rows, given alpha of the active rows."""
        out = self.alpha.copy()
        out[self.rows] = part
        return out

    def dual(self, alpha: Vector, F: Vector) -> float:
        """Return D, given alpha and F of all rows."""
        problem, rows = self.problem, self.rows
        y = problem.y[rows]
        old, new = y * self.alpha[rows], y * alpha[rows]
        t = new - old
        value = self.value + float(
            t @ problem.linear[rows] - 0.5 * t @ (self.F + F[rows])
        )
        value -= problem.epsilon * float((np.abs(new) - np.abs(old)).sum())
        if isinstance(problem, KernelProblem) and not problem.free_bias:
            begun = float(problem.y @ self.alpha)
            value -= float(t.sum()) * (begun + 0.5 * float(t.sum()))
            value -= 0.5 * float(problem.delta[rows] @ (new * new - old * old))
        return value


def movable(
    problem: BoxedProblem, alpha: Vector, F: Vector, threshold: float, slack: float
) -> NDArray[np.bool_]:
    """Return a mask of the rows that may still move if v is wrong by `slack`.

    src/core/gram/block.hpp defines v.
    """
    c, cost, (over, under) = problem.y * alpha, problem.cost, problem.sides
    v = problem.linear - F - threshold
    below = np.where(c < 0.0, problem.epsilon, -problem.epsilon)
    above = np.where(c > 0.0, -problem.epsilon, problem.epsilon)
    if isinstance(problem, KernelProblem) and problem.loss.name == "squared_hinge":
        v -= float(c.sum()) + problem.delta * c
        cost = np.where(cost > 0.0, math.inf, 0.0)
    high = np.where(problem.two_sided | (problem.y > 0), over * cost, 0.0)
    low = np.where(problem.two_sided | (problem.y < 0), -under * cost, 0.0)
    least = 1e-15 * float(problem.cost.max())  # the core rounds bounds to a grid
    rises = (c < high - least) & (v + below > -slack)
    falls = (c > low + least) & (v + above < slack)
    return (rises | falls) & (problem.cost > 0.0)

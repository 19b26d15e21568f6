"""Cutting planes: SVMperf's one-slack rule, and OCAS.

Problem    min 1/2 ||w||^2 + R(w),  R(w) = sum_i c_i max(0, 1 - y_i w.x_i)
Update     the set I = {i: y_i w.x_i <= 1} gives the plane R(w) >= b - w.a with
           a = sum_{i in I} c_i y_i x_i, b = sum_{i in I} c_i. The master problem,
           min 1/2 ||w||^2 + max(0, max_t b_t - w.a_t), is solved for w.
           `cutting-plane`: the next plane is taken at the master's w.
           `ocas`: the best w moves to the exact minimum w* of P on the line to the
           master's w; the next plane is taken at w* + mu (master's w - w*).
Guarantee  O(C R^2/eps) planes; the dual of the master (weights beta on the simplex) is
           D at alpha_i = c_i sum_t beta_t [i in I_t], a lower bound that never falls.
Cost       per plane one product with X, one with X^T over the rows in which I differs
           from the last one, O(n) for the line search, and a product of the planes
           with the new one; a plane holds 8 width + n/8 bytes.
Source     Joachims, KDD 2006; Franc and Sonnenburg, ICML 2008 and JMLR 10 (2009).
           These stop at a gap of their own; here an iteration counts as an epoch, and
           the certified gap decides. They keep all planes (SVMperf drops idle ones);
           here `max_planes` is a limit. Beyond it an idle plane is dropped, or two in
           use are merged into one, which does not change D.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...checks import Count, Fraction
from ...losses import Vector
from ...problems.binary import BinaryProblem
from ..base import Solver, State, register

Set = NDArray[np.uint8]  # a set of rows, one bit each


@dataclass(frozen=True)
class CuttingPlaneSettings:
    """Tuning constants of the cutting planes."""

    #: Most threads that the core starts.
    largest_threads: int = 256
    #: Entries of the planes from which threads save more time than they take to start.
    entries_for_threads: int = 1_000_000
    #: A plane is updated from the last one, and recomputed after this many epochs,
    #: because the rounding errors of updates add up.
    renew_every: int = 64


class Planes:
    """Planes of the master problem, its Gram matrix and its dual point.

    Plane 0 belongs to the empty set: a = 0, b = 0. It is never dropped, and with it
    beta sums to 1.

    `n`, `width`: rows, and length of w.

    - `size`: planes, including the plane of the empty set.
    - `a`: shape (capacity, width).
    - `gram`: ``a_s . a_t``, shape (capacity, capacity).
    - `b`, `beta`: shape (capacity,).
    - `idle`: iterations in a row with ``beta = 0``, shape (capacity,).
    - `sets`: the sets of rows, as bits, shape (capacity, ceil(n/8)).
    - `merged`: plane that is a mean of several sets, with the share of every row in
      `share`; 0 if there is none.
    """

    def __init__(self, n: int, width: int) -> None:
        self.n, self.size, self.merged = n, 1, 0
        self.share: Vector | None = None
        self.a = np.zeros((1, width))
        self.gram = np.zeros((1, 1))
        self.b, self.beta = np.zeros(1), np.ones(1)
        self.idle = np.zeros(1, dtype=np.int64)
        self.sets = np.zeros((1, -(-n // 8)), dtype=np.uint8)

    def add(self, a: Vector, b: float, members: Set, threads: int) -> None:
        """Add a plane with beta = 0."""
        if self.size == len(self.b):
            self._grow()
        t = self.size
        self.size += 1
        self.a[t], self.b[t], self.sets[t] = a, b, members
        self.beta[t], self.idle[t] = 0.0, 0
        row = np.empty(self.size)
        labels = np.ones(self.size, np.int8)
        core.outputs(self._rows(), labels, a, row, threads, core.Stop())
        self.gram[t, : self.size] = self.gram[: self.size, t] = row

    def solve(self, tol: float, stop: core.Stop) -> None:
        """Raise the dual of the master until its gap is at most tol."""
        size = self.size
        core.solve_master(self.gram, self.b[:size], self.beta[:size], tol, stop)
        idle = self.beta[:size] == 0.0
        self.idle[:size] = np.where(idle, self.idle[:size] + 1, 0)

    def w(self) -> Vector:
        """Return the w of the dual point, ``sum_t beta_t a_t``, shape (width,)."""
        w = np.empty(self.a.shape[1])
        labels = np.ones(self.size, np.int8)
        core.combine(self._rows(), labels, self.beta[: self.size], w)
        return w

    def height(self) -> float:
        """Return ``sum_t beta_t b_t``."""
        return float((self.beta[: self.size] * self.b[: self.size]).sum())

    def alpha(self, cost: Vector) -> Vector:
        """Return the dual point, ``c_i sum_t beta_t [i in I_t]``, shape (n,)."""
        share = np.zeros(self.n)
        for t in range(1, self.size):
            beta = float(self.beta[t])
            if t == self.merged and self.share is not None:
                share += beta * self.share
            elif beta > 0.0:
                core.add_rows(self.sets[t], beta, share)
        return cost * np.minimum(share, 1.0)

    def drop_idle(self, patience: int) -> None:
        """Drop planes that had beta = 0 for more than `patience` iterations."""
        for t in range(self.size - 1, 0, -1):
            if self.idle[t] > patience:
                self._drop(t)

    def make_room(self, most: int) -> None:
        """Make room for one plane, so that at most `most` are held with it."""
        if self.size <= most:
            return
        idle = self.idle[1 : self.size]
        if idle.any():
            self._drop(1 + int(np.argmax(idle)))
            return
        # All are in use: merging the two lightest into their mean keeps D.
        lightest = 1 + np.argsort(self.beta[1 : self.size], kind="stable")
        if self.merged == 0:
            self.merged, self.share = int(lightest[0]), np.zeros(self.n)
            core.add_rows(self.sets[self.merged], 1.0, self.share)
        self._merge(int(next(t for t in lightest if t != self.merged)))

    def _merge(self, t: int) -> None:
        m, size = self.merged, self.size
        assert self.share is not None
        total = float(self.beta[m] + self.beta[t])
        old, new = float(self.beta[m]) / total, float(self.beta[t]) / total
        self.share *= old
        core.add_rows(self.sets[t], new, self.share)
        self.a[m] = old * self.a[m] + new * self.a[t]
        self.b[m] = old * self.b[m] + new * self.b[t]
        row = old * self.gram[m, :size] + new * self.gram[t, :size]
        row[m] = old * row[m] + new * row[t]
        self.gram[m, :size] = self.gram[:size, m] = row
        self.beta[m] = total
        self._drop(t)

    def _drop(self, t: int) -> None:
        """Replace plane t by the last one."""
        if t == self.merged:
            self.merged, self.share = 0, None
        self.size -= 1
        last = self.size
        if last == self.merged:
            self.merged = t
        for array in (self.a, self.b, self.beta, self.idle, self.sets):
            array[t] = array[last]
        self.gram[t, : last + 1] = self.gram[last, : last + 1]
        self.gram[: last + 1, t] = self.gram[: last + 1, last]

    def _rows(self) -> core.Rows:
        return core.dense_rows(self.a[: self.size], 0.0)

    def _grow(self) -> None:
        more = max(8, 2 * self.size)
        for name in ("a", "b", "beta", "idle", "sets"):
            old = getattr(self, name)
            new = np.zeros((more, *old.shape[1:]), dtype=old.dtype)
            new[: self.size] = old
            setattr(self, name, new)
        gram = np.zeros((more, more))
        gram[: self.size, : self.size] = self.gram
        self.gram = gram


@dataclass(kw_only=True)
class PlaneState(State):
    """Primal point, its margins, the planes, and the rows of the next plane."""

    w: Vector
    outputs: Vector
    master_outputs: Vector  # margins at the master's w
    next_set: Set
    planes: Planes
    # Last plane and its rows; the next plane is updated from it.
    a: Vector
    b: float
    rows: Set

    def finite(self) -> bool:
        return math.isfinite(self.primal) and math.isfinite(self.dual)

    def forget_plane(self) -> None:
        """Make the next plane from the plane of the empty set."""
        self.a[:] = 0.0
        self.b = 0.0
        self.rows[:] = 0


@register("binary")
@dataclass(frozen=True)
class CuttingPlane(Solver):
    """Cutting planes of SVMperf with one slack: the next plane is at the master's w.

    Parameters
    ----------
    max_planes : int, default=2000
        Most planes held, 2 or more.
    patience : int, default=50
        Drop a plane once it has had no weight for more iterations than this.
    inner_tol : float, default=0.01
        Solve the master problem to this share of the gap so far, at most 1.
    threads : int, default=1
        Threads over the rows, at most 256. The result depends on it by rounding.
    """

    max_planes: Count = 2000
    patience: Count = 50
    inner_tol: Fraction = 0.01
    threads: Count = 1

    name: ClassVar[str] = "cutting-plane"
    settings: ClassVar[CuttingPlaneSettings] = CuttingPlaneSettings()
    losses: ClassVar[tuple[str, ...]] = ("hinge",)
    streams = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.max_planes < 2:
            raise ValueError(f"max_planes={self.max_planes!r}: give 2 or more")
        most = self.settings.largest_threads
        if self.threads > most:
            raise ValueError(f"threads={self.threads!r}: give {most} or less")

    def start(
        self, problem: BinaryProblem, rng: core.Random, warm: Vector | None
    ) -> PlaneState:
        planes = Planes(problem.n, problem.width)
        everything = np.full(planes.sets.shape[1], 255, dtype=np.uint8)
        return PlaneState(
            problem,
            rng,
            w=np.zeros(problem.width),
            outputs=np.zeros(problem.n),
            master_outputs=np.zeros(problem.n),
            next_set=everything,
            planes=planes,
            a=np.zeros(problem.width),
            b=0.0,
            rows=np.zeros_like(everything),
            primal=float(problem.cost.sum()),
            dual=0.0,
        )

    def step(self, state: PlaneState, stop: core.Stop) -> None:
        problem, planes = state.problem, state.planes
        state.epochs += 1
        if not self._make_plane(state, stop):
            return
        planes.make_room(self.max_planes)
        entries = (planes.size + 1) * problem.width
        worth_threads = entries >= self.settings.entries_for_threads
        threads = self.threads if worth_threads else 1
        planes.add(state.a, state.b, state.rows, threads)
        state.updates += 1
        if not math.isfinite(planes.gram[planes.size - 1, planes.size - 1]):
            state.dual = math.nan
            return
        planes.solve(self.inner_tol * max(state.primal - state.dual, 0.0), stop)
        planes.drop_idle(self.patience)
        w = planes.w()
        state.dual = planes.height() - 0.5 * core.squared_norm(w)
        done = 0
        for block in problem.blocks():
            rows, span = block.rows, block.span
            done += core.outputs(
                rows, problem.y[span], w, state.master_outputs[span], self.threads, stop
            )
            if stop.requested or stop.expired:
                break
        if done < problem.n or not state.finite():
            return
        state.visited += problem.n
        t, cut = self._lengths(state, w)
        state.w = w if t == 1.0 else (1.0 - t) * state.w + t * w
        loss = core.move_outputs(
            problem.cost, state.outputs, state.master_outputs, t, cut, state.next_set
        )
        state.primal = 0.5 * core.squared_norm(state.w) + loss

    def _make_plane(self, state: PlaneState, stop: core.Stop) -> bool:
        """Update the plane to the next set; return False on a stop request."""
        problem = state.problem
        if state.epochs % self.settings.renew_every == 0:
            state.forget_plane()
        done = 0
        for block in problem.blocks():
            span = block.span
            bits = slice(span.start // 8, -(-span.stop // 8))
            part, state.b = core.change_plane(
                problem.examples(block),
                state.rows[bits],
                state.next_set[bits],
                state.a,
                state.b,
                self.threads,
                stop,
            )
            done += part
            if stop.requested or stop.expired:
                break
        if done < problem.n:
            state.forget_plane()
            return False
        state.rows[:] = state.next_set
        return True

    def _lengths(self, state: PlaneState, w: Vector) -> tuple[float, float]:
        """Return the steps of the point and of the next plane to the master's w."""
        return 1.0, 1.0

    def iterate(self, state: PlaneState) -> tuple[Vector, Vector]:
        return state.w, state.planes.alpha(state.problem.cost)


@register("binary")
@dataclass(frozen=True)
class OCAS(CuttingPlane):
    """OCAS: cutting planes with an exact line search on the objective.

    Parameters
    ----------
    mu : float, default=0.1
        Make the next plane this far on the way from the best point to the master's
        w, at most 1.
    """

    mu: Fraction = 0.1

    name: ClassVar[str] = "ocas"

    def _lengths(self, state: PlaneState, w: Vector) -> tuple[float, float]:
        way = w - state.w
        t = core.line_search(
            state.problem.cost,
            state.outputs,
            state.master_outputs,
            float((state.w * way).sum()),
            core.squared_norm(way),
        )
        return t, t + self.mu * (1.0 - t)

    def reject(self, state: PlaneState) -> None:
        # Margins are updated from point to point, so their rounding adds up.
        problem = state.problem
        state.outputs = problem.outcomes(state.w)

"""Frank-Wolfe methods: plain (FW), away steps (MFW), and swaps (SWAP, SWAP-2o, MDM).

Problem    the dual of the squared-hinge SVM (problems/kernel.py) as a quadratic
           programme on the simplex: min 1/2 a'Ka, a >= 0, sum a = 1, with
           K_ij = y_i y_j (k_ij + 1) + [i = j] delta_i. With p = a'Ka the dual variables
           are alpha = a/p, and D(alpha) = 1/(2p). Also any max q'a - 1/2 a'Ka over the
           simplex (KernelSimplex): with h = max q - q, K_ij + h_i + h_j has the same
           solutions and no linear term.
Update     a step moves one or two vertices of the simplex (src/papers/frank_wolfe.hpp)
Guarantee  D rises in every step. With g = Ka and r = (p - min g)/p, the relative gap
           (P - D)/D is at most 1/(1 - r)^2 - 1. FW converges at the rate O(1/steps),
           the other methods linearly.
Cost       per step one pass over the rows and one or two kernel rows; with samples 62
           kernel values per support vector
Source     Nanculef, Frandi, Sartori and Allende, Information Sciences 2014 (arXiv
           1304.1014). They stop when 2(p - min g) <= eps for the min over one sample:
           stop="sampled". By default a sample only schedules the full scan that
           decides: samples of 60 rows have reported a gap of 1e-3 where it was 0.68. A
           failed scan gives the next vertex. If the true gap does not halve between
           scans, the method goes on with the full gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...checks import Count, check_step, refuse_huge
from ...losses import Vector
from ...problems.kernel import KernelProblem
from ...problems.kernel_boxes import KernelSimplex
from ...problems.kernel_matrix import scaled_values
from ..base import new_order, register
from ..kernel.base import KernelSolver, KernelState

Ranking = Literal["clipped", "paper"]
Stopping = Literal["certified", "sampled"]
Point = Literal["balanced", "random", "equal"]


@dataclass(frozen=True)
class SimplexSettings:
    """Tuning constants of all methods on the simplex."""

    #: Accuracy of the first point, the solution of the problem on a few rows.
    initial_tol: float = 1e-6
    #: Full scans that find a larger gap than tol, after which a method stops sampling.
    most_scans: int = 10
    #: It also stops if the true gap does not fall by this factor between two of them.
    scan_progress: float = 0.5


@dataclass(frozen=True)
class FrankWolfeSettings(SimplexSettings):
    """Tuning constants of the Frank-Wolfe methods."""

    #: Fewest steps of an epoch, which has one step per row within the limits.
    fewest_steps: int = 100
    #: Most steps of an epoch.
    most_steps: int = 1000
    #: Steps of an epoch with samples.
    sampled_steps: int = 200
    #: Rows of a sample with ``stop="sampled"``, by default; the size is the paper's.
    sample: int = 60
    #: Gap at which ``stop="sampled"`` stops, by default.
    eps: float = 1e-4


@dataclass(kw_only=True)
class SimplexState(KernelState):
    """Point a of the simplex over the m rows with a positive cost, and g = Ka.

    ``g`` is valid at all rows; while samples are drawn, only at rows with a > 0.
    ``active[:size]`` are the rows with a > 0. ``columns`` are the m rows in the Gram
    matrix, or None for all its rows. ``linear`` is the h of the module docstring, or
    None for an SVM. ``constant`` is a part of every entry of K that keeps p positive.
    """

    used: NDArray[np.intp]
    columns: NDArray[np.uint32] | None
    y: Vector
    delta: Vector
    diagonal: Vector
    a: Vector
    g: Vector
    active: NDArray[np.uint32]
    constant: float
    linear: Vector | None
    size: int = 0
    p: float = math.nan
    swaps: int = 0
    drops: int = 0
    aways: int = 0

    @classmethod
    def begin(
        cls, problem: KernelProblem | KernelSimplex, rng: core.Random
    ) -> SimplexState:
        """Return a state whose point is not set yet."""
        used = np.flatnonzero(problem.cost > 0.0)
        m, columns = len(used), problem.gram.columns
        if columns is not None or m < problem.n:
            every = (
                np.arange(problem.n, dtype=np.uint32) if columns is None else columns
            )
            columns = every[used]
        diagonal, linear = problem.gram.diagonal()[used], None
        if isinstance(problem, KernelSimplex):
            delta, linear = np.zeros(m), problem.linear.max() - problem.linear
            diagonal = diagonal + 2.0 * linear
            constant = float(diagonal.mean()) or 1.0
        else:
            delta, constant = problem.delta[used], problem.constant
        return cls(
            problem,
            rng,
            used=used,
            columns=columns,
            y=problem.y[used].astype(np.float64),
            delta=delta,
            diagonal=diagonal + constant + delta,
            a=np.zeros(m),
            g=np.zeros(m),
            active=new_order(m),
            constant=constant,
            linear=linear,
        )

    @property
    def simplex(self) -> core.Simplex:
        """The core's record of the problem over the m rows."""
        return core.Simplex(
            self.problem.gram.core,
            self.columns,
            self.y,
            self.delta,
            self.diagonal,
            self.constant,
            self.linear,
        )

    @property
    def point(self) -> core.SimplexState:
        """The core's record of a, g and the rows with a > 0."""
        return core.SimplexState(self.a, self.g, self.active, self.size)

    def add_gradient(
        self, rows: NDArray[np.uint32], change: Vector, stop: core.Stop
    ) -> None:
        """Add ``K change`` to g, for a change of a at some rows."""
        core.add_gradient(self.simplex, rows, change, self.g, stop)

    def finite(self) -> bool:
        return 0.0 < self.p < math.inf

    def place(self, rows: NDArray[np.generic], a: Vector) -> None:
        """Set the point to a, scaled to sum 1, at some rows and to 0 elsewhere."""
        self.a[:] = 0.0
        self.a[rows] = a / a.sum()
        positive = np.flatnonzero(self.a > 0.0)
        self.size = len(positive)
        self.active[: self.size] = positive

    def matrix(self, rows: NDArray[np.generic], columns: NDArray[np.generic]) -> Vector:
        """Return entries of K, shape (len(rows), len(columns))."""
        k = self.problem.gram.block(self.used[rows], self.used[columns])
        k += self.constant
        k *= self.y[rows, None] * self.y[columns]
        if self.linear is not None:
            k += self.linear[rows, None] + self.linear[columns]
        k[rows[:, None] == columns] += self.delta[rows[np.isin(rows, columns)]]
        return k

    def alpha(self) -> Vector:
        """Return the dual variables ``a/p``, or a for no SVM, shape (n,)."""
        out = np.zeros(self.problem.n)
        out[self.used] = self.a / (self.p if self.linear is None else 1.0)
        return out

    def refresh(self) -> None:
        """Recompute p and g, at all rows, in float64."""
        if not math.isfinite(self.p):
            self.p = 1.0
        if self.linear is None:
            f = self.problem.combine(self.alpha())[self.used] * self.p
            self.g = self.y * f + self.delta * self.a
        else:
            common = self.constant + float((self.linear * self.a).sum())
            self.g = self.problem.scores(self.alpha()) + self.linear + common
        self.p = float((self.a * self.g).sum())

    def measure(self) -> None:
        """Set P and D from the gradient at all rows."""
        if not self.finite():
            return
        if self.linear is not None:
            self._set_values(self.p - float(self.g.min()))
            return
        cost, alpha = self.problem.cost[self.used], self.a / self.p
        margins = self.g / self.p - self.delta * alpha
        _, self.primal, self.dual = scaled_values(cost, self.delta, alpha, margins)

    def _set_values(self, gap: float) -> None:
        """Set P and D of a problem that is no SVM."""
        highest = float(self.problem.linear.max())
        self.dual = highest + 0.5 * (self.constant - self.p)
        self.primal = self.dual + gap

    def guess(self, loss: float, gap: float = math.inf) -> None:
        """Estimate P and D from the rows with a > 0 and from the last samples.

        They gave the mean loss of the other rows, and the gap p - g_i.
        """
        if not self.finite():
            return
        if self.linear is not None:
            self._set_values(gap)
            return
        some = self.active[: self.size]
        cost, delta = self.problem.cost[self.used[some]], self.delta[some]
        alpha, g = self.a[some] / self.p, self.g[some] / self.p
        _, primal, self.dual = scaled_values(cost, delta, alpha, g - delta * alpha)
        self.primal = primal + (len(self.a) - self.size) * loss


@dataclass(kw_only=True)
class SampledState(SimplexState):
    """Point of the simplex, and what full scans have shown about the samples."""

    sampling: bool
    scans: int = 0
    true_gap: float = math.inf

    def after_scan(self, settings: SimplexSettings) -> None:
        """Stop sampling if full scans keep finding large gaps."""
        gap = 1.0 - float(self.g.min()) / self.p
        self.scans += 1
        falls = gap <= settings.scan_progress * self.true_gap
        self.sampling = self.sampling and falls and self.scans < settings.most_scans
        self.true_gap = gap


@dataclass(kw_only=True)
class WalkState(SampledState):
    """Point of the simplex, and the state of the search for the next vertex."""

    order: NDArray[np.uint32]
    split: int = 0
    vertex: int = -1
    quiet: int = 0  # samples in a row with a gap of at most eps

    def count(self, walk: core.SimplexWalk) -> None:
        """Add the steps of a walk."""
        self.updates += walk.steps
        self.visited += walk.steps
        self.swaps += walk.swaps
        self.drops += walk.drops
        self.aways += walk.aways


@dataclass(frozen=True)
class SimplexSolver(KernelSolver):
    """Base of the methods on the simplex.

    Parameters
    ----------
    sample : int, optional
        Look for the best vertex among this many random rows (60 in the paper). By
        default all rows are searched, or 60 of them with ``stop="sampled"``.
    balanced : bool, default=False
        Draw half of the sample from each class.
    initial : int, default=20
        Number of random rows in the first point.
    initial_point : {"balanced", "random", "equal"}, default="balanced"
        First point: the solution of the problem on these rows, half of them from each
        class or, as in the paper, from all rows; or equal weights on rows from all.
    stop : {"certified", "sampled"}, default="certified"
        When to stop: once the relative gap `tol` is proved, or at the first sample that
        meets the rule of the method with `eps`, as in the paper. A sample proves
        nothing. The certificate is then made once, after the last step, and `tol` ends
        no fit.
    quiet_samples : int, default=1
        Number of such samples in a row, before ``stop="sampled"`` stops.
    """

    sample: Count | None = None
    balanced: bool = False
    initial: Count = 20
    initial_point: Point = "balanced"
    stop: Stopping = "certified"
    quiet_samples: Count = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.quiet_samples > 1 and not self.ends_itself:
            raise ValueError(
                f"quiet_samples={self.quiet_samples} is for stop='sampled' only; leave "
                "it out"
            )

    @property
    def ends_itself(self) -> bool:
        return self.stop == "sampled"

    def begin_anywhere(
        self, state: SimplexState, rng: core.Random, warm: Vector | None, tol: float
    ) -> None:
        """Start at warm dual variables, or at a solution on a few random rows."""
        if warm is not None and warm[state.used].sum() > 0.0:
            rows = np.flatnonzero(warm[state.used])
            state.place(rows, warm[state.used][rows])
            state.refresh()
            return
        chosen: list[NDArray[np.uint32]] = []
        classes = [new_order(len(state.y))]
        if self.initial_point == "balanced":
            classes = [members for members in split_classes(state.y) if len(members)]
        for members in classes:
            rng.shuffle(members)
            chosen.append(members[: max(1, self.initial // len(classes))])
        rows = np.sort(np.concatenate(chosen))
        a = np.ones(len(rows))
        if self.initial_point != "equal":
            H = state.matrix(rows, rows)
            a, _ = solve_whole(H.astype(np.float32), tol)
        state.place(rows, a)
        state.g[:] = 0.0
        some = state.active[: state.size].copy()
        state.add_gradient(some, state.a[some], core.Stop())
        state.p = float((state.a * state.g).sum())


@dataclass(frozen=True)
class FrankWolfe(SimplexSolver):
    """Base of the methods that move one or two vertices of the simplex per step.

    Parameters
    ----------
    eps : float, optional
        Largest sampled gap ``2(p - min g)`` at which ``stop="sampled"`` stops; 1e-4 by
        default. It is absolute: with the min over all rows, the relative gap would be
        about ``2 eps D``. Below about 1e-8 rounding may keep a fit from stopping.
    """

    eps: float | None = None

    settings: ClassVar[FrankWolfeSettings] = FrankWolfeSettings()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stop == "sampled":
            # The record is frozen: only its own constructor may fill in defaults.
            if self.sample is None:
                object.__setattr__(self, "sample", self.settings.sample)
            if self.eps is None:
                object.__setattr__(self, "eps", self.settings.eps)
            check_step("eps", self.eps)
        elif self.eps is not None:
            refuse_huge("eps", self.eps)
            raise ValueError(
                f"eps={self.eps!r} is for stop='sampled' only; give tol to the fit"
            )

    @property
    def monotone(self) -> bool:
        return self.sample is None

    @property
    def method(self) -> str:
        """Name of the method in the core."""
        return self.name

    @property
    def clipped(self) -> bool:
        """Whether vertices to leave are ranked by the gain of a clipped step."""
        return True

    def start(
        self,
        problem: KernelProblem | KernelSimplex,
        rng: core.Random,
        warm: Vector | None,
    ) -> WalkState:
        state = WalkState(
            **vars(SimplexState.begin(problem, rng))
            | {"sampling": self.sample is not None}
        )
        if self.balanced:
            positive, negative = split_classes(state.y)
            state.order = np.concatenate([positive, negative])
            state.split = len(positive)
        tol = self.settings.initial_tol
        self.begin_anywhere(state, rng, warm, tol)
        if not state.sampling:
            state.measure()
        return state

    def step(self, state: WalkState, stop: core.Stop) -> None:
        state.epochs += 1
        problem, point = state.simplex, state.point
        if state.sampling and self.sample is not None:
            eps = -math.inf if self.eps is None else self.eps
            steps = self.settings.sampled_steps
            while True:
                how = core.WalkSettings(self.method, self.clipped, steps)
                sample = core.Sample(
                    self.sample, state.order, state.split, state.vertex, eps
                )
                walk = core.frank_wolfe_sampled(
                    problem, point, how, sample, state.rng, stop
                )
                if walk.gap > eps:
                    state.quiet = 0
                    break
                state.quiet = 1 if walk.steps else state.quiet + 1
                state.ended = state.quiet >= self.quiet_samples
                if state.ended:
                    break
                state.count(walk)
                steps -= walk.steps
        else:
            steps = max(self.settings.fewest_steps, len(state.a))
            steps = min(steps, self.settings.most_steps)
            how = core.WalkSettings(self.method, self.clipped, steps)
            walk = core.frank_wolfe(problem, point, how, stop)
        state.size, state.p = point.size, walk.p
        state.count(walk)
        if state.sampling:
            state.vertex = -1 if walk.steps else state.vertex
            state.guess(walk.loss, 0.5 * walk.gap)
        else:
            state.measure()

    def iterate(self, state: WalkState) -> tuple[None, Vector]:
        return None, state.alpha()

    def reject(self, state: WalkState) -> None:
        state.refresh()
        if not state.sampling:
            return
        state.vertex = int(np.argmin(state.g))
        state.after_scan(self.settings)


def split_classes(y: Vector) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the rows of the positive class and of the negative class."""
    positive = np.flatnonzero(y > 0.0).astype(np.uint32)
    return positive, np.flatnonzero(y < 0.0).astype(np.uint32)


def solve_whole(H: NDArray[np.float32], tol: float) -> tuple[Vector, Vector]:
    """Return the a that minimises ``1/2 a'Ha`` over the simplex, and Ha.

    H is a small matrix, of shape (q, q).
    """
    q = len(H)
    a = np.full(q, 1.0 / q)
    g = (H.astype(np.float64) * a).sum(axis=1)
    core.solve_small(H, a, g, tol, 1000 * q, core.Stop())
    return a, g


@register("kernel", "kernel-simplex")
@dataclass(frozen=True)
class FW(FrankWolfe):
    """Frank-Wolfe with exact line search."""

    name: ClassVar[str] = "fw"


@register("kernel", "kernel-simplex")
@dataclass(frozen=True)
class MFW(FrankWolfe):
    """Frank-Wolfe with away steps (Guelat and Marcotte 1986)."""

    name: ClassVar[str] = "mfw"


@register("kernel", "kernel-simplex")
@dataclass(frozen=True)
class MDM(FrankWolfe):
    """Method of Mitchell, Demyanov and Malozemov: swaps only."""

    name: ClassVar[str] = "mdm"


@register("kernel", "kernel-simplex")
@dataclass(frozen=True)
class SWAP(FrankWolfe):
    """Frank-Wolfe with steps that swap the worst vertex for the best one."""

    name: ClassVar[str] = "swap"


@register("kernel", "kernel-simplex")
@dataclass(frozen=True)
class SWAP2o(FrankWolfe):
    """SWAP that chooses the leaving vertex by its second-order gain.

    Parameters
    ----------
    ranking : {"clipped", "paper"}, default="clipped"
        Gain by which leaving vertices are ranked: of the step clipped to the simplex,
        or of the unclipped step as in the paper.
    """

    ranking: Ranking = "clipped"

    name: ClassVar[str] = "swap-2o"

    @property
    def clipped(self) -> bool:
        return self.ranking == "clipped"

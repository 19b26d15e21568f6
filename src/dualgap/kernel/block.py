"""Block: working sets of many rows, solved exactly, with the whole gradient.

Problem    hinge with a bias that is not penalised (the C-SVC of LIBSVM), or squared
           hinge with a penalised one (problem.py), regression or one class
           (regression.py), through the dual
Update     the rows that violate most join the newest ones of the last working set;
           their problem is solved in cache, by pairs (hinge) or by coordinates (squared
           hinge) to a tenth of the violation; then F = K c is updated at all rows,
           c_i = y_i alpha_i
Guarantee  D never falls, and converges to the optimum.
Cost       n d flops twice for a kernel row that is not cached, 2 n q for F. 4 n d bytes
           of packed rows (if few entries are stored none, or with very many features
           8 to 20 bytes an entry), and the cache, of which the small matrix, 4 q^2,
           takes at most an eighth.
Source     Decomposition: Joachims 1999; second-order pairs: Fan, Chen and Lin, JMLR 6,
           2005; large working sets: Wen et al., JMLR 19, 2018. For the squared hinge
           max sum_i a_i - 1/2 a'(Q + diag delta)a over a >= 0 is the problem of
           Nanculef et al. 2014 on the simplex without its constraint: their point is
           a/sum_i a_i.

Rows that are firmly at a bound, farther beyond the others than the largest violation,
rest: they leave the problem, and with them their columns of K, until a certificate
fails ("shrinking", Joachims 1999).

Kernel rows are float32, and held in 16 bits where their values are from 0 to 1 and the
cache has no room for two thirds of them. When what they say meets the accuracy asked, F
is recomputed in float64 for the certificate, but for rows that have no dual variable
and, by a bound on what float32 has done to F, no loss; if that one does not meet it,
the fit goes on from there, before long with rows held as float32; so it does where the
violation is so small that 16 bits may have made it. Rows far from the centre on the
scale of the kernel, or all very near to it, and what float32 rows cannot finish, are
computed in float64 before they are rounded.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..losses import Vector
from ..problem import Proof, StoppedError
from ..solvers.base import check_count, new_order
from .base import KernelSolver, KernelState
from .gram import Subset
from .interior import interior_point
from .problem import Near
from .rows import row_source

# Inner problems are solved to this part of the violation.
_INNER = 0.1
# Half self products of scaled rows (kernel_rows.hpp) below which all kernel values are
# near 1: K - 1 is what tells them apart.
_NEAR = 0.1
# Rows of the largest working set: a matrix of 64 MB.
_LARGEST = 4096
# Rows up to which interior points take over from steps that crawl, and inner steps per
# squared row before they do: they then cost about as much as what was spent.
_SMALL, _CRAWL = 2000, 2.5
# The relative gap that they go to at least.
_LEAP = 1e-8
# Rows rest where these are more, and the others at most this part of them.
_MANY, _PART = 4000, 0.7
# How far beyond the others they are at least, in units of what v ranges over at first:
# F still moves after the largest violation has become small.
_LEAST = 0.15
# Certificates that fail before rows are held as float32, and then computed in float64.
_PATIENCE = 2
# What 16 bits leave of a value in root mean square, and how many times that, times the
# norm of what alpha moved by, the violation is off.
_ROUNDED, _DOUBT = 2.0**-17 / math.sqrt(3.0), 8.0
# Of bounds of errors, themselves sums.
_SLACK = 1.0 + 1e-6
# Share of rows in doubt beyond which it is not worth while to find the others.
_VAGUE = 0.6


@dataclass(kw_only=True)
class BlockState(KernelState):
    """What the core keeps: alpha, F, the working set, and the cache of rows."""

    source: Any
    block: Any
    #: The rows of `block`: the source, or some of its rows.
    held: Any
    #: Whether the cache holds 16 bits a value.
    fixed: bool
    rejected: int = 0
    moved: bool = True
    #: Whether interior points have been tried.
    tried: bool = False
    whole: bool = True  # F is K c
    #: The rows that take part, while others rest; None: all.
    part: Part | None = None
    due: int = 0  # kernel rows computed before it is asked again which ones may rest
    spent: dict[str, float] = field(default_factory=dict)
    computed_before: int = 0
    #: Norm of what alpha moved by, before the present part, since F was exact.
    drifted: float = 0.0
    #: How far F was off at most when the core was given it, at all rows.
    given_error: Vector = field(init=False)
    #: How far kernel rows may be off, those of `held` and of `source`; None: not asked.
    row_error: Vector | None = None
    source_error: Vector | None = None
    #: Work until the estimates first met tol.
    reached: float = math.nan

    def __post_init__(self) -> None:
        self.given_error = np.zeros(self.problem.n)

    def finite(self) -> bool:
        return math.isfinite(self.dual)

    @property
    def seconds(self) -> dict[str, float]:
        """Processor seconds of the steps so far, by what they were spent on."""
        now = {"refresh": 0.0, **self.block.seconds}
        return {k: v + self.spent.get(k, 0.0) for k, v in now.items()}

    @property
    def computed(self) -> int:
        """Kernel rows computed so far, those of a part being shorter."""
        return self.computed_before + int(self.block.computed)

    def alpha(self) -> Vector:
        """Dual variables, shape (n,)."""
        out = np.empty(self.block.n)
        self.block.alpha(out)
        return out if self.part is None else self.part.whole(out)

    def gradient(self) -> Vector:
        """F, shape (n,); NaN at rows that rest."""
        F = np.empty(self.block.n)
        self.block.gradient(F)
        if self.part is None:
            return F
        out = np.full(self.problem.n, math.nan)
        out[self.part.rows] = F
        return out

    @property
    def here(self) -> Near:
        """F and how far it is off at most at the rows that take part."""
        rows = slice(None) if self.part is None else self.part.rows
        if self.row_error is None:
            self.row_error = self._row_error(self.held, self.fixed)
        error = np.full(self.problem.n, math.inf)
        error[rows] = self.given_error[rows]
        if self.block.moved > 0.0:
            error[rows] += _SLACK * self.block.moved * self.row_error
        return Near(self.gradient(), error, self.bias)

    @property
    def bias(self) -> float:
        """Half way between the rows that hold it, if it is free."""
        if self.problem.free_bias:
            return float(self.block.threshold) + self.problem.centre
        return float(core.signed_sum(self.problem.y, self.alpha()))

    def near(self, stop: Any = None) -> Near | None:
        """F at all rows and how far it is off; None where nothing bounds that enough.

        To rows that rest what has moved since is added in float32.

        Raises
        ------
        StoppedError
            If `stop` says so before that is known.
        """
        here = self.here
        if not self.whole or not np.isfinite(here.error).any():
            return None
        if self.part is None:
            return here
        rest = np.ones(self.problem.n, bool)
        rest[self.part.rows] = False
        if self.source_error is None:
            self.source_error = self._row_error(self.source, False)
        alpha, (scores, error, _) = self.part.begun
        moved = self.problem.y * (self.alpha() - alpha)
        here.error[rest] = error[rest]
        if moved.any():
            more = _SLACK * float(np.abs(moved).sum()) * self.source_error
            here.error[rest] += more[rest]
        here.scores[rest] = scores[rest]
        doubt = (self.alpha() != 0.0) | self.problem.in_doubt(here)
        if doubt.mean() > _VAGUE:
            return None
        here.scores[rest] += self._times(moved, np.flatnonzero(rest), stop)
        return here

    def _row_error(self, source: Any, fixed: bool) -> Vector:
        """How far kernel rows may be off, shape (source.n,)."""
        out = np.full(source.n, math.inf)
        if isinstance(source, core.KernelRows):
            source.errors(fixed and _worth_fixed(self.problem, source.n), out)
        return out

    def _times(self, c: Vector, at: NDArray[np.intp], stop: Any) -> Vector:
        """``sum_j c_j k(x_j, x_i)`` at some rows, of values as those of kernel rows."""
        used, out = np.flatnonzero(c), np.zeros(len(at))
        rows, targets = used.astype(np.uint32), at.astype(np.uint32)
        stop = core.Stop() if stop is None else stop
        if not self.source.add_rows(rows, c[used], targets, out, stop):
            raise StoppedError
        return out

    def set_gradient(self, near: Near) -> None:
        """Give F to the core, and remember how far it is off."""
        rows = slice(None) if self.part is None else self.part.rows
        self.block.set_gradient(near.scores[rows])
        self.given_error = near.error
        self.measure()

    def refresh(self, stop: Any = None, near: Near | None = None) -> None:
        """F of the alpha reached, in float64 where the certificate computes it."""
        begun = time.process_time()
        problem, alpha = self.problem, self.alpha()
        self.set_gradient(problem.known(alpha, stop, near))
        self.drifted = 0.0
        self.spent["refresh"] = self.seconds["refresh"] + time.process_time() - begun

    @property
    def blurred(self) -> bool:
        """Whether the violation may be little but what 16 bits leave of kernel rows."""
        if not self.fixed:
            return False
        drift = math.hypot(self.drifted, self.block.drift)
        return bool(self.block.violation < _DOUBT * _ROUNDED * drift)

    def measure(self) -> None:
        """Take over what the last scan found."""
        self.primal, self.dual = self.block.primal, self.block.dual
        if self.part is not None:
            gap = self.primal - self.dual
            self.dual = self.part.dual(self.alpha(), self.gradient())
            self.primal = self.dual + gap


@dataclass(frozen=True)
class Part:
    """Rows that take part, while the others rest, and where all began.

    The gap adds up over the rows, and those that rest have none as long as they are
    right to. D is known by what has changed:
    ``D(c + t) = D(c) + t'p - epsilon (|c + t| - |c|) - t'(F(c) + F(c + t))/2``.
    """

    problem: Any
    rows: NDArray[np.uint32]
    alpha: Vector  # of all rows, as the others keep it
    F: Vector  # at these rows
    value: float  # D
    #: Alpha, and F at all rows, when the first of those that rest began to.
    begun: tuple[Vector, Near]

    def whole(self, part: Vector) -> Vector:
        """Alpha of all rows, given that of these."""
        out = self.alpha.copy()
        out[self.rows] = part
        return out

    def dual(self, alpha: Vector, F: Vector) -> float:
        """D of an alpha of all rows."""
        problem, rows = self.problem, self.rows
        y = problem.y[rows]
        old, new = y * self.alpha[rows], y * alpha[rows]
        t = new - old
        value = self.value + float(
            t @ problem.linear[rows] - 0.5 * t @ (self.F + F[rows])
        )
        value -= problem.epsilon * float((np.abs(new) - np.abs(old)).sum())
        if not problem.free_bias:
            begun = float(problem.y @ self.alpha)
            value -= float(t.sum()) * (begun + 0.5 * float(t.sum()))
            value -= 0.5 * float(problem.delta[rows] @ (new * new - old * old))
        return value


@dataclass(frozen=True)
class BlockSolver(KernelSolver):
    """Block solver of the kernel SVM.

    Parameters
    ----------
    q : int, optional
        Rows of a working set. None: 256 below 3,000 rows, 512 below 8,000, 1024 above,
        and after 64 sets twice as many, up to 4,096, where their steps cost little
        beside the kernel rows. Never more than fit an eighth of the cache as a
        matrix.
    threads : int, default=1
        Threads that share kernel rows and updates; the result does not depend on it.
    """

    q: int | None = None
    threads: int = 1

    name: ClassVar[str] = "block"
    losses: ClassVar[tuple[str, ...]] = (
        *("hinge", "squared_hinge"),
        *("epsilon_insensitive", "one_class"),
    )
    # The estimate is nearly exact, and a proof may cost as much as the steps.
    check_factor: ClassVar[float] = 0.95
    mends_estimate: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.q is not None:
            check_count("q", self.q)
        check_count("threads", self.threads)

    @property
    def monotone(self) -> bool:
        return True

    @property
    def free_bias(self) -> bool:
        return True

    def rows_held(self, n: int) -> int:
        return min(n, 2 * self._sizes(n)[0])

    def one_of(self, problems: int, threads: int) -> BlockSolver:
        return replace(self, threads=threads)

    def check(self, problem: Any) -> None:
        super().check(problem)
        if problem.free_bias == (problem.loss.name == "squared_hinge"):
            raise ValueError(
                f"penalize_intercept={not problem.free_bias}: solver={self.name!r} "
                "leaves the bias free with the hinge and penalises it with the squared "
                "hinge; use penalize_intercept=False with loss='hinge' only"
            )

    def start(self, problem: Any, rng: Any, warm: Vector | None) -> BlockState:
        gram = problem.gram
        source = row_source(gram, self.threads)
        if isinstance(source, core.KernelRows):
            near = source.bounded and source.largest_half_self < _NEAR
            source.shifted = source.precise = problem.free_bias and near
            gram.fast = source
        fixed = source.fixed and _worth_fixed(problem, problem.n)
        block = self._block(problem, source, fixed, rng)
        state = BlockState(
            problem, rng, new_order(0), source=source, block=block, held=source,
            fixed=fixed,
        )  # fmt: skip
        begin = problem.start() if warm is None else warm
        if begin is None:
            state.measure()
        else:
            block.set_alpha(begin)
            state.dual, state.whole = problem.lowest, False
        return state

    def _block(
        self, problem: Any, source: Any, fixed: bool, rng: Any, part: Part | None = None
    ) -> Any:
        """The core's solver of all rows, or of some; the others are constants in it."""
        rows: Any = slice(None) if part is None else part.rows
        linear, total = problem.linear[rows], problem.total
        if part is not None:
            rest = problem.y * part.alpha
            rest[rows] = 0.0
            if problem.free_bias:
                total = math.fsum([total, *(-rest[rest != 0.0]).tolist()])
            else:
                linear = linear - float(rest.sum())
        return core.BlockSolver(
            source, problem.y[rows].astype(np.float64), problem.cost[rows],
            problem.gram.diagonal()[rows], problem.loss.name == "squared_hinge", linear,
            problem.epsilon, total, problem.two_sided, *self._sizes(source.n),
            int(problem.gram.cache_size * 1e6), fixed, rng,
        )  # fmt: skip

    def _rest(self, state: BlockState) -> None:
        """Let rows rest, if they are many."""
        problem, part = state.problem, state.part
        alpha, F = state.alpha(), state.gradient()
        slack = max(state.block.violation, _LEAST * float(np.ptp(problem.linear)))
        busy = movable(problem, alpha, F, state.block.threshold, slack)
        rows = np.arange(problem.n) if part is None else part.rows
        rows, among = rows[busy[rows]].astype(np.uint32), len(rows)
        state.due = state.block.computed + state.block.q
        if 1 < len(rows) <= _PART * among:
            here = state.here
            begun = (alpha, here) if part is None else part.begun
            self._open(state, Part(problem, rows, alpha, F[rows], state.dual, begun))
            state.block.set_alpha(alpha[rows])
            state.set_gradient(here)

    def _wake(
        self,
        state: BlockState,
        alpha: Vector | None = None,
        stop: Any = None,
        near: Near | None = None,
    ) -> None:
        """All rows take part again, from the alpha reached or from another one."""
        if state.part is not None and alpha is None:
            alpha = state.alpha()
        if state.part is not None:
            self._open(state, None)
        if alpha is not None:
            state.block.set_alpha(alpha)
        try:
            state.refresh(stop, near)
        except StoppedError:
            state.whole = False

    def _open(self, state: BlockState, part: Part | None) -> None:
        """The core's solver of a part, or of all rows, in the place of the last one."""
        problem, source = state.problem, state.source
        state.spent, state.computed_before = state.seconds, state.computed
        state.drifted = math.hypot(state.drifted, state.block.drift)
        state.part = part
        state.block = state.row_error = None  # before another takes room for its rows
        if part is not None:
            some = row_source(Subset(problem.gram, part.rows), self.threads)
            if isinstance(some, core.KernelRows):
                some.shifted, some.precise = source.shifted, source.precise
            source = some
        fixed = state.fixed and _worth_fixed(problem, source.n)
        state.held = source
        state.block = self._block(problem, source, fixed, state.rng, part)
        state.due = state.block.q

    def _sizes(self, n: int) -> tuple[int, int]:
        """Rows of a working set at first, and at most."""
        if self.q is not None:
            return self.q, self.q
        return 256 if n < 3000 else 512 if n < 8000 else 1024, _LARGEST

    def step(self, state: BlockState, stop: Any) -> None:
        if not state.whole:
            try:
                state.refresh(stop)
            except StoppedError:
                return
            state.whole = True
        state.epochs += 1
        steps = state.block.step(_INNER, stop)
        state.updates += steps
        state.moved = steps > 0
        state.measure()
        if state.updates > _CRAWL * state.problem.n**2:
            self._leap(state, stop)
        # What resting costs is the cache, so that it waits until that loses rows.
        block = state.block
        full = block.held == block.capacity
        if state.blurred:
            self._look_again(state, finer=True, stop=stop)
        elif full and block.n > _MANY and block.computed >= state.due:
            self._rest(state)

    def _leap(self, state: BlockState, stop: Any) -> None:
        """All of a small problem at once, where steps get nowhere."""
        n = state.problem.n
        room = 16.0 * n * n <= 1e6 * state.problem.gram.cache_size
        # Regression and one class have other terms than interior_point knows.
        known = state.problem.loss.name in ("hinge", "squared_hinge")
        if state.tried or n > _SMALL or not (room and known):
            return
        state.tried = True
        alpha = interior_point(state.problem, 0.1 * min(state.tol, _LEAP), stop)
        if alpha is not None:
            self._wake(state, alpha)
            # Scores that cancel may hide from an estimate that this is the optimum.
            state.primal = math.nan

    def iterate(self, state: BlockState) -> tuple[None, Vector]:
        return None, state.alpha()

    def proof_options(self, state: BlockState) -> dict[str, Any]:
        return {**super().proof_options(state), "near": state.near(state.stop)}

    def unproved(self, state: BlockState) -> Proof | None:
        proof = super().unproved(state)
        if proof is None:
            return None
        return proof._replace(w=state.gradient() + state.bias, bias=state.bias)

    def reject(self, state: BlockState) -> None:
        state.rejected += 1
        if not state.moved:
            self._leap(state, state.stop)
        finer = state.rejected >= _PATIENCE or not state.moved
        self._look_again(state, finer, stop=None)

    def _look_again(self, state: BlockState, finer: bool, stop: Any) -> None:
        """Go on from an exact F with all rows, perhaps finer ones than before."""
        try:
            near = state.near(stop)
        except StoppedError:
            near = None
        resting = state.part is not None
        if finer:
            precise = getattr(state.source, "precise", True)
            if not precise and not (state.fixed and state.moved):
                state.source.precise = True
            if not precise or state.fixed:
                state.block.forget_rows()
            state.fixed, state.rejected = False, 0
            state.row_error = state.source_error = None
        self._wake(state, stop=stop, near=near)
        if resting and state.whole:  # some were wrong to; most may again
            self._rest(state)


def movable(
    problem: Any, alpha: Vector, F: Vector, threshold: float, slack: float
) -> NDArray[np.bool_]:
    """Rows that may still move where v is off by so much; see block.hpp."""
    c, cost = problem.y * alpha, problem.cost
    v = problem.linear - F - threshold
    below = np.where(c < 0.0, problem.epsilon, -problem.epsilon)
    above = np.where(c > 0.0, -problem.epsilon, problem.epsilon)
    if problem.loss.name == "squared_hinge":
        v -= float(c.sum()) + problem.delta * c
        cost = np.where(cost > 0.0, math.inf, 0.0)
    high = np.where(problem.two_sided | (problem.y > 0), cost, 0.0)
    low = np.where(problem.two_sided | (problem.y < 0), -cost, 0.0)
    least = 1e-15 * float(problem.cost.max())  # bounds are on a grid
    rises = (c < high - least) & (v + below > -slack)
    falls = (c > low + least) & (v + above < slack)
    return (rises | falls) & (problem.cost > 0.0)


def _worth_fixed(problem: Any, n: int) -> bool:
    """Whether 16 bits a value are faster: in float32 the cache would lose rows.

    Where it holds two thirds of all rows it seldom does: few others are asked for.
    """
    return bool(8.0 / 3.0 * n * n > 1e6 * problem.gram.cache_size)

"""Newton's method for logistic regression of two or more classes.

Problem    min over W, b of  P(W, b) = 1/2 ||W||^2 + sum_i c_i l_i,
           l_i = log sum_k exp(s_ik) - s_{i,y_i},  s_ik = w_k.x_i + b_k
           (one w and b for two classes: l_i = log(1 + exp(-y_i (w.x_i + b))))
Update     (W, b) <- (W, b) + t S, where H S = -grad P by preconditioned conjugate
           gradients, and t minimises P along S; then nearly the b that minimises P.
           The preconditioner is H itself for few entries of the model; else the largest
           eigenvalues of X'X, which all classes share, or its diagonal, until steps
           become long: then it has the exact block of H of every class.
Guarantee  P never rises but for rounding, and W -> W*. The dual point has the
           probabilities p_ik of the model, and P - D = 1/2 ||grad P||^2.
Cost       a step: two products of all rows with all classes, two for each conjugate
           gradient (one for two classes with an exact block), and n d^2 for the block
           of a class. 32 bytes for each row and class, more with exact blocks, and a
           copy of few rows in float32, for the conjugate gradients.
Source     Lin, Weng and Keerthi, JMLR 9, 2008, for the truncated steps; the
           certificate and the shared preconditioner are this package's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar, cast

import numpy as np
from numpy.typing import DTypeLike
from scipy.linalg import lapack

from .. import core
from ..blas import one_thread
from ..losses import Vector
from ..problems.base import Claim
from ..problems.dense import DenseRows, Floats, blocks_of, unchecked
from ..problems.logistic import LogisticProblem, RowOutcome, SparseRows
from .base import TINY, Solver, State, register
from .shared_steps import SharedRows

#: Returns nearly H^-1 R for R of shape (outputs, length).
Preconditioner = Callable[[Vector], Vector]


@dataclass(frozen=True)
class LogisticNewtonSettings:
    """Tuning constants of `LogisticNewton`."""

    #: Most columns for exact blocks of several classes,
    blocks: int = 256
    #: once a step took more conjugate gradients per column.
    gradients_per_column: float = 0.15
    #: Most entries of the model for the exact matrix of several classes.
    whole: int = 200
    #: The same for two classes.
    whole_of_two: int = 400
    #: Most columns for eigenvalues of X'X.
    shared: int = 2500
    #: Fewest rows per column for them.
    rows_per_column: float = 1.0
    #: Conjugate gradients stop at this share of the first squared residual, later less.
    residual: float = 0.1
    #: The same for a last step, as part of the accuracy that it needs.
    enough: float = 1.0
    #: Most conjugate gradients of a step.
    most_gradients: int = 300
    #: Most evaluations of the search along a step.
    search_steps: int = 30
    #: Slope at the end of the search, as part of the first.
    search_slope: float = 0.1
    #: Sum of the residuals of a class that a best bias leaves, as part of their sizes:
    balance: float = 1e-11
    #: at least, and as part of the relative gap after a whole step.
    rough_balance: float = 1.0
    #: Smallest relative gain of a step: less is rounding.
    gain: float = 1e-14
    #: Least second derivative by a bias, as part of the cost of the wrong classes.
    least: float = 1e-9
    #: A step that raises P by more than this part is undone.
    rounded: float = 1e-9
    #: Most entries of float64 rows that are copied to float32, for conjugate gradients,
    #: and of exact blocks where they have more than the rows.
    copied: int = 1 << 20
    #: Most entries of a row of the exact matrix for each stored entry of sparse rows.
    #: More of them take longer than the products of conjugate gradients.
    sparse_squares: float = 800.0

    def holds(self, problem: LogisticProblem) -> bool:
        """Whether the exact matrix of a model is made."""
        outputs = problem.outputs
        size = outputs * problem.length
        if isinstance(problem.passes, SparseRows):
            row = problem.rows.stored / problem.n
            if size**2 > self.sparse_squares * max(row, 1.0) * outputs:
                return False
        return size <= (self.whole_of_two if outputs == 1 else self.whole)


@dataclass(kw_only=True)
class WeightsState(State):
    """State whose weights are proved as float32 where the rows are, if they can be."""

    #: Proofs that did not find the accuracy. After some, weights are float64.
    rejected: int = 0
    most_rejected: ClassVar[int] = 0

    def rounded(self, w: Vector) -> Vector:
        """Return a model with the weights to prove, of a size that their type holds."""
        problem = cast(LogisticProblem, self.problem)
        single = problem.passes.kind == np.float32 and not problem.streamed
        # LinearSVC has weights in float64, as in scikit-learn.
        if not single or problem.hinge or self.rejected > self.most_rejected:
            return w
        W = problem.table(w).copy()
        with np.errstate(over="ignore"):
            W[:, : problem.d] = W[:, : problem.d].astype(np.float32)
        return W.ravel() if np.isfinite(W).all() else w


@dataclass(kw_only=True)
class LogisticState(WeightsState):
    """Model, and its scores at all rows."""

    problem: LogisticProblem = field(kw_only=False)  # type: ignore[assignment]
    W: Vector  # (outputs, length)
    scores: Vector  # (outputs, n)
    now: RowOutcome = field(init=False)
    witness: ClassVar[str] = "primal"


@dataclass(kw_only=True)
class LogisticNewtonState(LogisticState):
    """Model, its scores, and the gradient."""

    gradient: Vector = field(init=False)
    shared: SharedRows | None = None
    squares: Vector | None = None  # mean squares of the columns
    hard: bool = False  # whether conjugate gradients are to have exact blocks
    precise: bool = False  # whether they have float64 rows
    rough: DenseRows | None = None  # the rows that they have else

    @property
    def penalised(self) -> Vector:
        """The model without the biases."""
        W = self.W.copy()
        W[:, self.problem.d :] = 0.0
        return W

    def look(self) -> None:
        """Compute the gradient, P and D at the model."""
        problem, plain = self.problem, self.penalised
        now = self.now
        V = problem.sums(now.residual, problem.cost)
        self.gradient = plain - V
        v, total = V[:, : problem.d], float(problem.cost @ now.entropy)
        length = float((v * v).sum())
        self.primal = 0.5 * float((plain * plain).sum())
        self.primal += float(problem.cost @ now.loss)
        # D of the best p between the model's p and the classes themselves.
        scale = min(1.0, total / max(length, TINY))
        self.dual = scale * (total - 0.5 * scale * length)
        # The proof moves the bias to where the residuals of every class sum to 0.
        self.dual -= abs(float((self.W[:, problem.d :] * V[:, problem.d :]).sum()))
        self.visited += problem.n * problem.outputs


class LogisticSolver(Solver):
    """Base of the solvers of logistic regression, which start from models."""

    losses: ClassVar[tuple[str, ...]] = ("logistic",)
    free_bias = True

    def check(self, problem: LogisticProblem) -> None:
        """Accept every problem of its kind."""

    def check_warm(self, problem: LogisticProblem, warm: Vector) -> Vector:
        warm = np.array(warm, np.float64).ravel()
        if warm.shape != problem.zero().shape or not np.isfinite(warm).all():
            raise ValueError(
                f"warm start: a model of {warm.size} finite numbers is needed with "
                f"{problem.zero().size} entries; start cold"
            )
        return warm

    def claim(self, state: WeightsState) -> Claim:
        w, alpha = self.iterate(state)
        assert w is not None
        return Claim(state.rounded(w), alpha)

    def reject(self, state: WeightsState) -> None:
        state.rejected += 1


@register("logistic")
@dataclass(frozen=True)
class LogisticNewton(LogisticSolver):
    """Newton's method with conjugate gradients, for logistic regression."""

    name: ClassVar[str] = "newton"
    settings: ClassVar[LogisticNewtonSettings] = LogisticNewtonSettings()
    monotone = True
    check_factor = 1.0  # a proof differs from its estimate by rounding

    def start(
        self, problem: LogisticProblem, rng: core.Random, warm: Vector | None
    ) -> LogisticNewtonState:
        W = problem.table(problem.zero() if warm is None else warm.copy())
        state = LogisticNewtonState(
            problem, rng, W=W, scores=np.zeros((len(W), problem.n))
        )
        one_thread(problem.threads, state.resources)
        with unchecked():
            if warm is None:
                state.scores += W[:, problem.d :] if problem.free_bias else 0.0
            else:
                state.scores = problem.scores(W)
            state.now = problem.outcome(state.scores)
            state.look()
        return state

    def step(self, state: LogisticNewtonState, stop: core.Stop) -> None:
        problem, settings = state.problem, self.settings
        with unchecked():
            step = self._direction(state, stop)
            if stop.requested or stop.expired:
                return
            state.epochs += 1
            W, scores, primal, dual = state.W, state.scores, state.primal, state.dual
            t = self._search(state, step)
            if t > 0.0:
                state.W = state.W + t * step
                share = (state.primal - state.dual) / max(state.primal, TINY)
                rough = settings.rough_balance * share if t == 1.0 else 0.0
                accuracy = max(rough, settings.balance)
                change, state.now = problem.balance(state.scores, state.now, accuracy)
                if problem.free_bias:
                    state.W[:, problem.d] += change
                state.look()
            lower = primal - state.primal > settings.gain * abs(primal)
            nearer = state.dual - dual > settings.gain * abs(dual)
            if not state.primal <= primal * (1.0 + settings.rounded):
                state.W, state.scores = W, scores
                state.now = problem.outcome(scores, state.now)
                state.look()
                lower = nearer = False
        state.updates += 1
        state.moved = lower or nearer
        if not (state.moved or state.precise):
            state.moved = state.precise = True

    def _direction(self, state: LogisticNewtonState, stop: core.Stop) -> Vector:
        """Return nearly ``-H^-1 gradient``, by conjugate gradients."""
        problem, settings = state.problem, self.settings
        solve, exact = self._preconditioner(state)
        R = -state.gradient
        S, Y = np.zeros_like(R), solve(R)
        if exact:
            return Y
        precise = state.precise or settings.holds(problem)
        passes = problem.passes if precise else self._rough(state)
        kind = np.float64 if precise else passes.kind
        D, left = Y.copy(), float((R * Y).sum())
        share = state.primal - state.dual
        share /= max(state.primal, TINY)
        share = min(1.0, max(share, 1e-6))
        # Residuals that are less than tol needs do not pay.
        goal = (
            max(share, settings.enough * state.tol / share) * settings.residual * left
        )
        made = 0
        while left > goal and made < settings.most_gradients:
            if stop.requested or stop.expired:
                break
            made += 1
            H = self._product(state, passes, D, kind)
            bent = float((D * H).sum())
            if not bent > 0.0:
                break
            length = left / bent
            S += length * D
            R -= length * H
            Y = solve(R)
            before, left = left, float((R * Y).sum())
            D = Y + (left / before) * D
            state.visited += problem.n * problem.outputs
        entries = problem.outputs * problem.length**2
        few = entries <= max(settings.copied, problem.n * problem.d)
        if few and problem.length <= settings.blocks:
            state.hard |= made > settings.gradients_per_column * problem.length
        return S

    def _rough(self, state: LogisticNewtonState) -> DenseRows:
        """Return the rows for conjugate gradients, as float32 if they are few."""
        passes = state.problem.passes
        if state.rough is None:
            few = passes.n * passes.d <= self.settings.copied
            few = few and passes.kind == np.float64
            most = 0.1 * float(np.finfo(np.float32).max)
            held = not isinstance(passes, SparseRows)  # dense rows in memory
            if few and held and np.abs(passes.X).max() < most:
                own = passes.X.astype(np.float32)
                passes = DenseRows(own, passes.constant, passes.pool)
            state.rough = passes
        return state.rough

    def _product(
        self, state: LogisticState, passes: DenseRows, D: Vector, kind: DTypeLike
    ) -> Vector:
        """Return ``H D``, by products in this type."""
        problem = state.problem
        size = max(float(np.abs(D).max()), TINY)
        direction, largest = (D / size).astype(kind), float(problem.cost.max())
        cost = (problem.cost / largest).astype(kind)
        uneven = bool((cost != 1.0).any())

        def add(block: slice, X: Floats, total: Vector) -> None:
            p = problem.probabilities(state.now, block).astype(kind, copy=False)
            Z = passes.images(X, direction)
            Z *= p
            Z -= p * Z.sum(axis=0)
            if uneven:
                Z *= cost[block]
            passes.add_sums(X, Z.T, total)

        H = passes.total(D.shape, add, kind) * (size * largest)
        H[:, : problem.d] += D[:, : problem.d]
        return H

    def _preconditioner(
        self, state: LogisticNewtonState
    ) -> tuple[Preconditioner, bool]:
        """Return nearly ``H^-1``, and whether it is exact."""
        problem, settings, passes = state.problem, self.settings, state.problem.passes
        least = settings.least * float(problem.cost @ state.now.wrong)
        holds = settings.holds(problem)
        if holds or state.hard:
            P = problem.probabilities(state.now)
            bent = problem.cost * P * (1.0 - P)
            if holds:
                return _inverse(_matrix(problem, P, bent, least))
            passes = passes if state.precise else self._rough(state)
            return _inverse(_grams(problem, passes, bent, least))[0], False
        weight = np.zeros(problem.outputs)
        for some in blocks_of(problem.n, kind=np.float32):
            P = problem.probabilities(state.now, some)
            weight += (problem.cost[some] * P * (1.0 - P)).sum(axis=1)
        narrow = problem.length <= settings.shared
        many = problem.n >= settings.rows_per_column * problem.length
        if narrow and many and not isinstance(passes, SparseRows):
            if state.shared is None:
                state.shared = SharedRows.of(passes)
            if state.shared is not None:
                shared = state.shared
                return lambda R: shared.solve(R, weight), False
        if state.squares is None:
            state.squares = _mean_squares(problem)
        diagonal = 1.0 + weight[:, None] * state.squares
        return lambda R: R / diagonal, False

    def _search(self, state: LogisticNewtonState, step: Vector) -> float:
        """Move the scores to the t that nearly minimises P along a step; return t."""
        problem, settings = state.problem, self.settings
        image, plain = problem.scores(step), step[:, : problem.d]
        first = float((state.W[:, : problem.d] * plain).sum())
        square = float((plain * plain).sum())
        now, t, most = state.now, 0.0, math.nan
        loss, moved = now.loss, np.empty_like(image)
        if not np.isfinite(image).all():
            return 0.0
        low, high = 0.0, math.inf
        slope = float((state.gradient * step).sum())
        if not slope < 0.0:
            return 0.0
        most = settings.search_slope * -slope
        for _ in range(settings.search_steps):
            if t == 0.0:
                t = 1.0
            else:
                slope = first + t * square
                for residual, own in zip(now.residual, image, strict=True):
                    slope -= float((problem.cost * residual * own).sum())
                more = t * first + 0.5 * t * t * square
                more += float((problem.cost * (now.loss - loss)).sum())
                if abs(slope) <= most and (slope <= 0.0 or more <= 0.0):
                    break
                low, high = (t, high) if slope < 0.0 else (low, t)
                new = t - slope / max(square + self._bent(problem, now, image), TINY)
                if not low < new < high:
                    new = 2.0 * t if math.isinf(high) else 0.5 * (low + high)
                t = new
            np.multiply(image, t, out=moved)
            moved += state.scores
            now = problem.outcome(moved, now)
        if not t < math.inf:
            state.now = problem.outcome(state.scores, now)
            return 0.0
        state.scores, state.now = moved, now
        return t

    @staticmethod
    def _bent(problem: LogisticProblem, now: RowOutcome, image: Vector) -> float:
        """Return the second derivative of the loss along a step."""
        if problem.outputs == 1:
            P = problem.probabilities(now)[0]
            return float((problem.cost * (P * image[0]) * (1.0 - P) * image[0]).sum())
        bent = np.empty(problem.n)
        for some in blocks_of(problem.n, kind=np.float32):
            P, own = problem.probabilities(now, some), image[:, some]
            mean = (P * own).sum(axis=0)
            bent[some] = (P * (own - mean) ** 2).sum(axis=0)
        return float((problem.cost * bent).sum())

    def iterate(self, state: LogisticNewtonState) -> tuple[Vector, None]:
        return state.W.ravel(), None


def _pieces(
    problem: LogisticProblem, block: slice, X: Floats
) -> Iterator[tuple[slice, Floats]]:
    """Yield the rows of a block, dense, with their constant feature."""
    for start in range(block.start, block.stop, 1024):
        piece = slice(start, min(start + 1024, block.stop))
        own = X[piece.start - block.start : piece.stop - block.start]
        full = np.ones((own.shape[0], problem.length), own.dtype)
        full[:, : problem.d] = own.toarray() if hasattr(own, "toarray") else own
        yield piece, full


def _grams(
    problem: LogisticProblem, passes: DenseRows, bent: Vector, least: float
) -> Vector:
    """Return the block of H of every class, with at least `least` for its bias.

    Its products have the type of the rows of these passes.
    """
    roots = np.sqrt(bent).astype(passes.kind, copy=False)

    def add(block: slice, X: Floats, total: Vector) -> None:
        for piece, full in _pieces(problem, block, X):
            for H, h in zip(total, roots[:, piece], strict=True):
                root = full * h[:, None]
                H += root.T @ root

    shape = problem.outputs, problem.length, problem.length
    H = passes.total(shape, add, passes.kind)
    H[:, range(problem.d), range(problem.d)] += 1.0
    if problem.free_bias:  # near 0 where all rows are right or wrong for sure
        H[:, problem.d, problem.d] += least
    return H


def _matrix(problem: LogisticProblem, P: Vector, bent: Vector, least: float) -> Vector:
    """Return H, as one block."""
    if problem.outputs == 1:
        return _grams(problem, problem.passes, bent, least)
    outputs, length = problem.outputs, problem.length
    size = outputs * length
    grams = _grams(problem, problem.passes, problem.cost * P, least)

    def add(block: slice, X: Floats, total: Vector) -> None:
        for piece, full in _pieces(problem, block, X):
            root = P[:, piece].T * np.sqrt(problem.cost[piece])[:, None]
            wide = (root[:, :, None] * full[:, None, :]).reshape(len(full), size)
            total -= wide.T @ wide

    H = problem.passes.total((size, size), add)
    for k in range(outputs):
        own = slice(k * length, (k + 1) * length)
        H[own, own] += grams[k]
    if problem.free_bias:  # equal changes of all biases change nothing
        H[length - 1 :: length, length - 1 :: length] += bent.sum() / outputs**2
    return H[None]


def _inverse(H: Vector) -> tuple[Preconditioner, bool]:
    """Return the inverse of some blocks, (blocks, size, size), by Cholesky factors.

    Return also whether it is exact but for rounding.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.einsum("kii->ki", H), TINY))
    found = [_factor(one) for one in H * scale[:, :, None] * scale[:, None, :]]
    factors, exact = [L for L, _ in found], all(exact for _, exact in found)

    def solve(R: Vector) -> Vector:
        rows = R.reshape(scale.shape) * scale
        for L, row in zip(factors, rows, strict=True):
            row[:] = lapack.dpotrs(L, row, lower=1)[0]
        return (scale * rows).reshape(R.shape)

    return solve, exact


def _factor(H: Vector) -> tuple[Vector, bool]:
    """Return the Cholesky factor of a matrix whose diagonal is 1, or of a near one.

    Return also whether it is of the matrix itself, which rounding may make indefinite.
    """
    one = np.eye(len(H))
    for more in (0.0, 1e-14, 1e-12, 1e-10, 1e-6, 1e-4):
        L, failed = lapack.dpotrf(H + more * one, lower=1)
        if not failed:
            return L, more == 0.0
    return one, False  # numbers that overflow


def _mean_squares(problem: LogisticProblem) -> Vector:
    """Return the mean squares of the columns, and 1 for the bias."""

    def add(block: slice, X: Floats, total: Vector) -> None:
        square = X.multiply(X) if hasattr(X, "multiply") else X * X
        total[: problem.d] += np.asarray(square.sum(axis=0)).ravel()

    mean = problem.passes.total((problem.length,), add) / problem.n
    mean[problem.d :] = 1.0
    return mean

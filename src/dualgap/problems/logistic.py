"""Logistic regression of two or more classes, and its certificate.

P(W, b) = 1/2 ||W||^2 + sum_i c_i l_i,   l_i = log sum_k exp(s_ik) - s_{i,y_i},
          s_ik = w_k.x_i + b_k
D(p) = sum_i c_i H(p_i) - 1/2 ||V||^2,   v_k = sum_i c_i ([y_i = k] - p_ik) x_i,
       H the entropy of the probabilities p_i of row i,
       sum_i c_i ([y_i = k] - p_ik) = 0 for every class k with an unpenalised bias b_k

With two classes w_0 = b_0 = 0. The p of the model W gives P - D = 1/2 ||W - V||^2
(docs/certificate-proof.md).
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from .. import core
from ..blas import one_thread
from ..certificate import Bounds
from ..checks import check_costs, check_vector
from ..data.columns import StoredColumns
from ..data.types import MatrixLike
from ..losses import Vector
from ..memory import make_room_for
from .base import EMPTY, Claim, Proof, RowsProblem
from .batch import Batch
from .dense import DenseRows, Floats, T, blocks_of, unchecked
from .reductions import MultiLabel
from .rounding import Rounding, Values

#: Bound on the relative error of exp and log1p, in units of rounding. NumPy promises 4.
FUNCTIONS = 8.0
#: exp(-t) is 0 in float64 from this t on, so an error of u t of the argument is at most
#: this many roundings of the value.
LARGEST = 746.0
#: Scores up to which threads would not save time.
FEW_SCORES = 50_000
#: Far larger than what underflows in a probability.
_SMALL = 2.0**-960


class SparseRows(DenseRows):
    """CSR rows with a constant feature, in the place of dense ones."""

    def __init__(
        self,
        X: sparse.csr_matrix,
        constant: float,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        super().__init__(X, constant, pool)
        ends, X = X.indptr, self.X
        self.parts = {
            s.start: sparse.csr_matrix(
                (
                    X.data[ends[s.start] : ends[s.stop]],
                    X.indices[ends[s.start] : ends[s.stop]],
                    ends[s.start : s.stop + 1] - ends[s.start],
                ),
                shape=(s.stop - s.start, self.d),
            )
            for s in self.strips
        }

    def blocks(self, strip: slice, kind: DTypeLike = np.float64) -> Iterator[slice]:
        yield strip

    def take(self, block: slice, kind: DTypeLike) -> sparse.csr_matrix:
        return self.parts[block.start].astype(kind, copy=False)

    def images(self, X: sparse.csr_matrix, W: Floats) -> Floats:
        return np.ascontiguousarray(self.scores(X, W).T)

    @property
    def chain(self) -> int:
        return self.strips[0].stop + len(self.strips) + 12

    def add_sums(self, X: sparse.csr_matrix, weights: Floats, out: Floats) -> None:
        out[:, : self.d] += (X.T @ weights).T
        if self.constant:
            out[:, self.d] += self.constant * weights.sum(axis=0)


class StoredRows(SparseRows):
    """Rows of a store, dense or sparse: a pass reads them block by block."""

    def __init__(self, problem: RowsProblem, constant: float) -> None:
        assert problem.source is not None
        self.problem, self.constant, self.pool = problem, constant, None
        self.n, self.d, self.whole = problem.n, problem.d, False
        self.width = self.d + (constant != 0.0)
        self.kind = problem.source.dtype
        self.strips = [slice(0, self.n)]  # until the first pass

    def over_strips(self, work: Callable[[slice], T]) -> Iterator[T]:
        strips = []
        for block in self.problem.blocks():
            arrays, strip = block.rows.arrays, block.span
            strips.append(strip)
            if len(arrays) > 1:
                shape = block.size, self.d
                self.held = sparse.csr_matrix(tuple(arrays), shape=shape, copy=False)
            else:
                self.held = arrays[0]
            self.begin = strip.start
            yield work(strip)
        self.strips = strips

    def blocks(self, strip: slice, kind: DTypeLike = np.float64) -> Iterator[slice]:
        sparse_rows = sparse.issparse(self.held)
        yield from [strip] if sparse_rows else blocks_of(strip.stop, strip.start, kind)

    def take(self, block: slice, kind: DTypeLike) -> Floats:
        rows = self.held[block.start - self.begin : block.stop - self.begin]
        return rows.astype(kind, copy=False)

    @property
    def chain(self) -> int:
        longest = max(strip.stop - strip.start for strip in self.strips)
        return longest + len(self.strips) + 12


class RowOutcome(NamedTuple):
    """Loss and probabilities of some rows, from their scores.

    Attributes
    ----------
    loss, entropy : ndarray of shape (n,)
    wrong : ndarray of shape (n,)
        Probability of all classes but the own one, without cancellation.
    residual : ndarray of shape (outputs, n)
        ``[y_i = k] - p_ik``; of the second class alone where there are two.
    """

    loss: Vector
    entropy: Vector
    wrong: Vector
    residual: Vector

    @classmethod
    def of(cls, S: Vector, codes: NDArray[np.intp]) -> RowOutcome:
        """Compute them from scores of shape (outputs, n), to a few roundings each."""
        sums, residual = np.empty((4, S.shape[1])), np.empty_like(S)
        core.class_probabilities(S, codes, 0, len(codes), sums, residual)
        return cls._of_sums(sums, residual)

    @classmethod
    def _of_sums(cls, sums: Vector, residual: Vector) -> RowOutcome:
        """Return them from the results of `core.class_probabilities`."""
        rest, behind, mean, wrong = sums
        log = np.log1p(rest)
        return cls(behind + log, mean + log, wrong, residual)


class _RowSums(NamedTuple):
    """Sums over all rows."""

    loss: float
    entropy: float
    wrong: float  # sum c_i (1 - p_{i,y_i})
    moved: float  # bound on what the errors of the scores change in the loss
    reach: float  # bound on sum c_i ||x_i|| |residuals of row i|
    bent: float  # the same with entropies in the place of residuals
    used: float
    slope: float  # size of sum c_i residual_i


class LogisticProblem(RowsProblem):
    """Logistic regression: rows, classes and costs. The bias is not penalised.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStore of shape (n, d), float32 or float64
        As for :class:`dualgap.problems.BinaryProblem`.
    codes : array-like of shape (n,)
        Class of every row, 0 to K - 1.
    C : float, default=1.0
        Weight of the loss, which is a sum over the examples.
    classes : int, optional
        Number of classes K, 2 or more. Defaults to the largest code and 1.
    sample_weight : array-like of shape (n,), optional
        Factors of C, zero or positive.
    fit_intercept : bool, default=False
        Whether there is a bias, which is not part of the norm.
    n_jobs : int, default=1
        Number of threads that share the rows.

    Attributes
    ----------
    outputs : int
        Rows of the model: 1 for two classes, else K.
    length : int
        Entries of a row of the model: d, and the bias. A primal point has
        ``outputs * length`` entries.

    Raises
    ------
    ValueError
        If X or a code is invalid, or a class has no row with a positive cost.
    """

    kind: ClassVar[str] = "logistic"
    intercept_scaling, hinge = 0.0, False

    def __init__(
        self,
        X: MatrixLike,
        codes: ArrayLike,
        C: float = 1.0,
        *,
        classes: int | None = None,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        n_jobs: int = 1,
    ) -> None:
        self._set_rows(X)
        self.free_bias = fit_intercept
        self._set_examples(codes, C, classes, sample_weight)
        self.threads = n_jobs
        pool, constant = None, float(fit_intercept)
        if self.streamed:
            self.passes: DenseRows = StoredRows(self, constant)
            return
        if n_jobs > 1:
            make_room_for(n_jobs)
            pool = ThreadPoolExecutor(n_jobs)
        arrays = self.rows.arrays
        if len(arrays) == 1:
            self.passes = DenseRows(arrays[0], constant, pool)
        else:
            own = sparse.csr_matrix(tuple(arrays), shape=(self.n, self.d), copy=False)
            self.passes = SparseRows(own, constant, pool)

    def _set_examples(
        self,
        codes: ArrayLike,
        C: float,
        classes: int | None,
        sample_weight: ArrayLike | None,
    ) -> None:
        self.codes = np.ascontiguousarray(codes, np.intp)
        self.C, self.cost = float(C), check_costs(C, sample_weight, self.n)
        if self.codes.shape != (self.n,):
            raise ValueError(
                f"codes has shape {self.codes.shape}, but X has {self.n} rows; give "
                "one class per row"
            )
        least, most = int(self.codes.min()), int(self.codes.max())
        self.classes = max(most + 1 if classes is None else classes, 2)
        if least < 0 or most >= self.classes:
            raise ValueError(
                f"codes go from {least} to {most}; number the {self.classes} classes "
                "from 0"
            )
        self.totals = np.bincount(self.codes, self.cost, self.classes)
        if self.free_bias and not self.totals.all():
            empty = int(np.flatnonzero(self.totals == 0.0)[0])
            raise ValueError(
                f"class {empty} has no row with a positive weight, so its intercept "
                "has no optimum; leave the class out, or set fit_intercept=False"
            )
        self.outputs = 1 if self.classes == 2 else self.classes
        self.length = self.d + self.free_bias

    def with_codes(
        self, codes: ArrayLike, C: float, sample_weight: ArrayLike | None
    ) -> LogisticProblem:
        """Return the problem of two other classes of the same rows."""
        other = copy.copy(self)
        other._set_examples(codes, C, 2, sample_weight)
        return other

    @property
    def n_duals(self) -> int:
        return 0

    def table(self, w: Vector) -> Vector:
        """Return a point as an array of shape (outputs, length)."""
        return w.reshape(self.outputs, self.length)

    def coef(self, w: Vector) -> tuple[Vector, Vector]:
        """Return coefficients (outputs, d) and intercepts (outputs,) of a point."""
        W = self.table(w)
        bias = W[:, self.d] if self.free_bias else np.zeros(self.outputs)
        return W[:, : self.d].copy(), bias.copy()

    def point(self, coef: Vector, intercept: ArrayLike = 0.0) -> Vector:
        """Return the point of coefficients and intercepts; inverts :meth:`coef`."""
        W = np.zeros((self.outputs, self.length))
        W[:, : self.d] = coef
        if self.free_bias:
            W[:, self.d] = intercept
        return W.ravel()

    def zero(self) -> Vector:
        """Return the model that has only a bias, the best one."""
        W = np.zeros((self.outputs, self.length))
        if self.free_bias:
            bias = np.log(self.totals)
            W[:, self.d] = (
                bias[1] - bias[0] if self.outputs == 1 else bias - bias.mean()
            )
        return W.ravel()

    def combine(self, alpha: Vector) -> Vector:
        return self.zero()

    def scores(self, W: Vector) -> Vector:
        """Return the scores of all rows, (outputs, n)."""
        S = np.empty((self.outputs, self.n))

        def of_strip(strip: slice) -> None:
            for block in self.passes.blocks(strip):
                X = self.passes.take(block, np.float64)
                S[:, block] = self.passes.images(X, W)

        for _ in self.passes.over_strips(of_strip):
            pass
        return S

    def sums(self, weights: Vector, cost: Vector | None = None) -> Vector:
        """Return the sums of the rows with weights (outputs, n), times costs (n,)."""

        def add(block: slice, X: Floats, total: Vector) -> None:
            own = weights[:, block]
            own = own if cost is None else own * cost[block]
            self.passes.add_sums(X, own.T, total)

        return self.passes.total((self.outputs, self.length), add)

    def outcome(self, S: Vector, room: RowOutcome | None = None) -> RowOutcome:
        """Return the outcomes of all rows at given scores.

        `room`: outcomes that are no longer needed; their residuals are overwritten.
        """
        if S.size <= FEW_SCORES:
            return RowOutcome.of(S, self.codes)
        sums = np.empty((4, self.n))
        residual = np.empty_like(S) if room is None else room.residual

        def of_strip(strip: slice) -> None:
            rows = strip.start, strip.stop
            core.class_probabilities(S, self.codes, *rows, sums, residual)

        for _ in self.passes.over_strips(of_strip):
            pass
        return RowOutcome._of_sums(sums, residual)

    def balance(
        self, S: Vector, now: RowOutcome, accuracy: float
    ) -> tuple[Vector, RowOutcome]:
        """Move the scores to the best bias, by Newton's method.

        Return the change of the bias, and the outcomes there; those given may be
        overwritten. It ends once the sum of the residuals is this accurate, relative to
        their size.
        """
        change = np.zeros(self.outputs)
        off_before = math.inf
        for _ in range(50 if self.free_bias else 0):
            slope = now.residual @ self.cost
            off = float(np.abs(slope).sum())
            if off <= accuracy * float(now.wrong @ self.cost) or not off < off_before:
                break
            step = self._bias_step(now, slope)
            size = float(np.abs(step).max() if self.outputs == 1 else np.ptp(step))
            if not 0.0 < size < math.inf:
                break
            if size > 0.1:  # the longest step that surely lowers the loss
                step *= math.log1p(size) / size
            else:  # converges quadratically, until rounding hides the rest
                off_before = off
            S += step[:, None]
            change += step
            now = self.outcome(S, now)
        return change, now

    def _bias_step(self, now: RowOutcome, slope: Vector) -> Vector:
        if self.outputs == 1:
            P = self.probabilities(now)
            bent = P * (self.cost * (1.0 - P))
            return slope / max(float(bent.sum()), 2.0**-1022)
        H, diagonal = np.zeros((self.outputs, self.outputs)), np.zeros(self.outputs)
        for some in blocks_of(self.n, kind=np.float32):
            P, cost = self.probabilities(now, some), self.cost[some]
            H -= (P * cost) @ P.T
            diagonal += (P * (cost * (1.0 - P))).sum(axis=1)
        np.fill_diagonal(H, diagonal)
        scale = 1.0 / np.sqrt(np.maximum(H.diagonal(), 2.0**-1022))
        H *= scale[:, None] * scale
        null = 1.0 / scale  # equal changes of all biases change nothing
        null /= np.sqrt(null @ null)
        H += np.outer(null, null) + 1e-14 * np.eye(len(H))
        step: Vector = scale * np.linalg.solve(H, scale * slope)
        return step - step.mean()

    def probabilities(self, now: RowOutcome, some: slice = slice(None)) -> Vector:
        """Return the probabilities of the outputs' classes at some rows."""
        codes, wrong = self.codes[some], now.wrong[some]
        if self.outputs == 1:
            return np.where(codes == 1, 1.0 - wrong, wrong)[None]
        P = -now.residual[:, some]
        P[codes, np.arange(len(codes))] = 1.0 - wrong
        return P

    def prove(self, claim: Claim) -> Proof:
        """Return a primal point with proved bounds on P there and on D.

        D is of the probabilities of this model with the best bias, or for two classes
        of alpha. The default is the model that has only a bias.
        """
        w, scores = self._given(claim)
        with contextlib.ExitStack() as stack, unchecked():
            one_thread(self.threads, stack)
            return Proof(w, EMPTY, self._bounds(self.table(w), scores).certificate)

    def _given(self, claim: Claim) -> tuple[Vector, Vector | None]:
        """Return the model of a claim, and the scores that belong to its alpha."""
        w, alpha = self.zero(), claim.alpha
        if claim.w is not None:
            w = check_vector("w", claim.w, w.size)
        # The proofs of some problems have an empty alpha.
        if alpha is None or not alpha.size or self.outputs > 1:
            return w, None
        return w, self.dual_scores(check_vector("alpha", alpha, self.n))

    def dual_scores(self, alpha: Vector) -> Vector:
        """Return the scores at which the costs times `wrong` are alpha, (1, n).

        `alpha`: costs times the probability of the other one of two classes.
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            wrong = np.clip(alpha / self.cost, 0.0, 1.0)
            odds = np.log(wrong) - np.log1p(-wrong)
        odds = np.clip(np.nan_to_num(odds, nan=0.0), -LARGEST, LARGEST)
        return np.where(self.codes == 1, -odds, odds)[None]

    @property
    def rounding(self) -> Rounding:
        passes, size = self.passes, self.length * self.outputs
        return Rounding(self.n, size, len(passes.strips), passes.chain)

    def _bounds(self, W: Vector, scores: Vector | None = None) -> Bounds:
        """Bound P at W, and D at the probabilities of W or of other scores."""
        S, rounding = self.scores(W), self.rounding
        coef, bias = np.ascontiguousarray(W[:, : self.d]), W[:, self.d :]
        squares = (coef * coef).sum(axis=1) * (1.0 + Rounding.summed)
        lengths = np.sqrt(squares + 2.0**-1000)
        longest, last = float(lengths.max()), float(np.abs(bias).max(initial=0.0))
        now = self.outcome(S)
        there = self._sums(now, longest, last)
        norm = float(core.squared_norm(coef.ravel()))
        # An error u t of an argument of exp changes it by u t at most; t <= LARGEST.
        each = (2.0 * self.classes + 4.0 * FUNCTIONS) * Rounding.unit
        relative = each + LARGEST * Rounding.unit
        values = Values(
            there.loss, 0.0, 0.0, relative * there.loss + there.moved, 0.0, 0.0,
            there.reach, there.used, self.d + 4.0, longest, last,
        )  # fmt: skip
        primal = 0.5 * norm + there.loss
        error = rounding.of_primal(values, norm)
        if not math.isfinite(primal + error):
            return Bounds.proved(math.inf, 0.0, 0.0)
        if scores is not None:
            S, now = scores, self.outcome(scores)
        change, now = self.balance(S, now, 32.0 * Rounding.unit)
        if change.any() or scores is not None:
            there = self._sums(now, 0.0, 0.0)
        V = self.sums(now.residual, self.cost)[:, : self.d]
        length = float(core.squared_norm(np.ascontiguousarray(V).ravel()))
        # The exact dual point has the probabilities that belong to the scores S.
        drift = rounding.of_sum(there.used, there.reach)
        drift += Rounding.slack * (each * there.reach + Rounding.unit * there.bent)
        most = math.sqrt(length * (1.0 + rounding.norm) + 2.0**-1000) + drift
        relative += rounding.term + rounding.closing
        lost = Rounding.slack * relative * there.entropy + rounding.underflow
        lost += self.classes * _SMALL * float(self.totals.sum())
        off, dual, less = 0.0, 0.0, 0.0
        if self.free_bias:
            off = (each + Rounding.summed) * there.wrong
            off = 2.0 * (off + 2.0 * Rounding.unit * there.entropy) + there.slope
            off *= Rounding.slack * (1.0 if self.outputs == 1 else 0.5)
        for _ in range(3 if off else 1):  # D bounds ||W*||, and so its own error
            gap = primal + error - (dual - less)
            most_W = math.sqrt(norm) * (1.0 + rounding.norm) + math.sqrt(2.0 * gap)
            sure = there.entropy - lost
            if off:
                sure -= off * self._spread(primal + error, most_W)
            scale = min(1.0, max(sure, 0.0) / (most * most))
            dual = scale * (there.entropy - 0.5 * scale * length)
            less = dual - scale * (sure - 0.5 * scale * most * most)
            less += 8.0 * Rounding.unit * scale * (there.entropy + most * most)
            less = max(less, 0.0)
        return Bounds.proved(primal, error, dual, less)

    def _sums(self, now: RowOutcome, longest: float, last: float) -> _RowSums:
        """Return the sums of a proof, for rows of W up to this length."""
        cost, wrong = self.cost, now.wrong + self.classes * _SMALL
        q = self.q * (1.0 + 2.0 * (self.d + 2) * Rounding.unit)
        size = np.sqrt(q + 2.0**-1000)
        off = (self.d + 4.0) * longest * size + 4.0 * last
        off *= 2.0 * Rounding.slack * Rounding.unit
        moved = self._moved(now, off, wrong)
        sides = 1.0 if self.outputs == 1 else 2.0
        reach = sides * cost * size
        return _RowSums(
            float((cost * now.loss).sum()),
            float((cost * now.entropy).sum()),
            float((cost * wrong).sum()),
            Rounding.slack * float((cost * moved).sum()),
            Rounding.slack * float((reach * wrong).sum()),
            Rounding.slack * float((reach * now.entropy).sum()),
            float(np.count_nonzero(cost)),
            float(sum(abs((own * cost).sum()) for own in now.residual)),
        )

    def _moved(self, now: RowOutcome, off: Vector, wrong: Vector) -> Vector:
        """Bound what errors of the scores change in the losses."""
        # `wrong` is not 0: an error of the scores may hide how likely the others are.
        return off * np.minimum(1.0, wrong * np.exp(np.minimum(off, 700.0)))

    def _spread(self, primal: float, longest: float) -> float:
        """Bound the distance of two best biases, from bounds on P and on ||W*||.

        Row i of class y has a loss of at most P/c_i, and at least b_k - b_y - ||w_k -
        w_y|| ||x_i||, for every k.
        """
        used = self.cost > 0.0
        q = self.q[used] * (1.0 + 2.0 * (self.d + 2) * Rounding.unit)
        most = primal / self.cost[used] + 1.5 * longest * np.sqrt(q + 2.0**-1000)
        least = np.full(self.classes, math.inf)
        np.minimum.at(least, self.codes[used], most)
        return Rounding.slack * float(least.max())


class LabelsBatch(Batch):
    """Problems of logistic regression, one per label, which rows have or not.

    - `columns`: the columns of the rows, shape (n, d).
    - `table`: 1 where a row has a label, shape (n, labels).
    - `weight`: sample weights, shape (n,). None if all sample and class weights are 1.
    - `factor`: factors of rows without and with each label, shape (labels, 2).
    - `make`: makes the problem that lends its rows.
    """

    several, at_a_time = MultiLabel.several, 1  # threads share the rows

    def __init__(
        self,
        columns: StoredColumns,
        table: sparse.csc_matrix,
        weight: Vector | None,
        factor: Vector,
        C: float,
        make: Callable[..., LogisticProblem] = LogisticProblem,
        *,
        fit_intercept: bool,
        n_jobs: int,
    ) -> None:
        n, labels = table.shape
        self.columns, self.C = columns, C
        self.reduction = reduction = MultiLabel(labels, table)
        self.weight, self.factor = weight, factor
        self.names = reduction.names(np.arange(labels))
        sides = zip(*reduction.sides(weight, factor, C), strict=True)
        for name, (having, lacking) in zip(self.names, sides, strict=True):
            if fit_intercept and not (having and lacking):
                raise ValueError(
                    f"{'all rows' if having else 'no row'} of positive weight have "
                    f"{name}, so its intercept has no optimum; leave out its column of "
                    "y, or set fit_intercept=False"
                )
        codes = np.arange(n) % 2  # any, for problems share the rows alone
        self.rows = make(
            columns.X, codes, C, classes=2, fit_intercept=fit_intercept, n_jobs=n_jobs
        )
        self.kind = self.rows.kind

    def problem(self, k: int) -> LogisticProblem:
        every = np.arange(self.rows.n)
        codes, weight = self.reduction.signs(every, k) > 0, self.weight
        if weight is not None:
            weight = self.reduction.weights(every, k, weight, self.factor)
        return self.rows.with_codes(codes, self.C, weight)

    def at(self, C: float) -> LabelsBatch:
        other = copy.copy(self)
        other.C = C
        return other

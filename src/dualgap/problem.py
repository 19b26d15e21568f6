"""The problem that every linear solver works on, and the one way to certify it.

P(w) = 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i),      c_i = C sample_weight_i

An unpenalised bias b makes it P(w, b), with w.x_i + b in the place of w.x_i, and adds
sum_i alpha_i y_i = 0 to the constraints of the dual.
"""

from __future__ import annotations

import copy
import logging
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from . import core
from .bias import best_bias
from .blocks import Block, RowSource, StreamedRows
from .certificate import Bounds, Certificate
from .losses import Loss, Vector, get_loss

logger = logging.getLogger("dualgap")

# Beyond these, squares of costs leave the range of float64.
_SMALLEST_COST, _LARGEST_COST = 1e-150, 1e150

# What is wrong with a row besides where it points.
_OF_VALUES = ("value is NaN or infinite", "squared norm overflows")

_REBUILD = "rebuild the matrix with scipy.sparse.csr_matrix"


class Proof(NamedTuple):
    """A primal point, a dual point, and what they prove together."""

    w: Vector
    alpha: Vector
    certificate: Certificate
    #: Where w does not hold it: the bias of a kernel model.
    bias: float | None = None


class Values(NamedTuple):
    """What a pass over some rows has summed up, and bounds on its rounding.

    The exact losses are at most ``loss + loss_error``; ``w.v`` is within `along_error`
    of `along`, with ``v = sum alpha_i y_i x_i``.
    """

    loss: float  # sum c_i l_i
    sum: float  # sum alpha_i
    diagonal: float  # sum delta_i alpha_i^2
    loss_error: float
    along: float  # sum alpha_i m_i
    along_error: float
    reach: float  # at least sum alpha_i ||x_i||, constant feature included
    used: float  # rows with alpha_i > 0
    roundings: float  # the most in a product x_i.w
    length: float  # of w, without the constant feature
    last: float  # size of the constant feature's share of x_i.w

    @classmethod
    def merge(cls, parts: Sequence[Values]) -> Values:
        """Of several pieces of the rows, at the same w."""
        if len(parts) == 1:
            return parts[0]
        columns = list(zip(*parts, strict=True))
        return cls(*map(math.fsum, columns[:8]), *map(max, columns[8:]))


@dataclass(frozen=True)
class Rounding:
    """Bounds on what rounding may have done to P and D: docs/certificate.md.

    To first order in u = 2^-53; the factor `slack` stands for the higher ones.

    Attributes
    ----------
    n, width : int
        Rows, and entries of w.
    parts : int
        Vectors whose sum v is, besides the rows: threads, blocks, pieces.
    """

    n: int
    width: int
    parts: int

    slack: ClassVar[float] = 1.01
    unit: ClassVar[float] = 2.0**-53
    least: ClassVar[float] = 2.0**-1074
    # Of ||w||^2, of a term with its part in a compensated sum, of closing formulas.
    norm: ClassVar[float] = 40 * unit
    closing: ClassVar[float] = 4 * unit
    # Of NumPy's sums, which are pairwise over blocks of 128 in 8 lanes: at most
    # 16 + 3 + 32 roundings, and the terms' own.
    summed: ClassVar[float] = 64 * unit

    @property
    def term(self) -> float:
        return 12 * self.unit + (self.n * self.unit) ** 2

    @property
    def underflow(self) -> float:
        """Of sums of squares, and of a few products."""
        return (self.n + self.width + 4) * self.least

    def of_scores(self, values: Values, q: Vector) -> Vector:
        """How far each ``x_i.w`` may be off, given the ``||x_i||^2``, shape (n,).

        For rows without a constant feature.
        """
        if values.length == 0.0:
            return np.zeros(self.n)
        small = 2.0**-1000  # beside which underflow is nothing
        rows = np.sqrt(q * (1.0 + 2 * (self.width + 2) * self.unit) + small)
        most = self.slack * self.unit * values.roundings * values.length
        return np.asarray(most * rows + small)

    def of_primal(self, values: Values, norm: float) -> float:
        """Of ``norm/2 + loss``."""
        loss, more = values.loss, values.loss_error
        if loss == more == values.length == norm == 0.0:
            return 0.0  # w is 0, and no row has a loss: as with rows of one class
        relative = (self.term + self.closing) * loss + (self.norm + self.closing) * norm
        return self.slack * (more + relative) + self.underflow

    def drift(self, values: Values) -> float:
        """How far v may be from ``sum_i alpha_i y_i x_i``, in length."""
        return self.of_sum(values.used, values.reach)

    def of_sum(self, used: float, reach: float) -> float:
        """Return how far a sum of rows may be from the exact one, in length.

        Parameters
        ----------
        used : float
            How many rows are added.
        reach : float
            At least ``sum_i |alpha_i| ||x_i||``.
        """
        if used == 0.0:
            return 0.0
        added = (used + self.parts + 2) * self.unit * reach
        lost = used * math.sqrt(self.width) * self.least
        return self.slack * added + lost

    def of_dual(
        self,
        values: Values,
        norm: float,
        drift: float,
        off: float = math.inf,
        near: tuple[float, float] | None = None,
    ) -> float:
        """Of ``sum - (norm + diagonal)/2``, norm that of v as stored.

        All of `drift` counts in the direction of v. If v is the w of the margins, or
        near it, then ``v.w = sum_i alpha_i m_i`` says more, to within `off`, for
        ``||v||^2 = 2 v.w - ||w||^2 + ||v - w||^2``.

        Parameters
        ----------
        near : tuple of float, optional
            ``||w||^2`` and ``||v - w||`` where w is not v itself.
        """
        if values.used == 0.0:
            return 0.0
        other, apart = (norm, 0.0) if near is None else near
        length = math.sqrt(norm + self.width * self.least)
        straight = self.slack * (length * drift + 0.5 * drift * drift)
        apart += drift
        seen = abs(0.5 * (norm + other) - values.along) + values.along_error + off
        seen += self.norm * max(norm, other) + 0.5 * apart * apart
        relative = self.term * (values.sum + values.diagonal) + self.norm * norm
        closing = self.closing * (values.sum + norm + values.diagonal)
        first = min(straight, self.slack * seen)
        return first + self.slack * (relative + closing) + self.underflow


class StoppedError(Exception):
    """A scan of the whole data was told to leave: it proves nothing."""


class Problem:
    """A binary linear SVM: rows, labels, costs and loss. Nothing is copied.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStore of shape (n, d), float32 or float64
        C-contiguous rows, or CSR without duplicates, are used in place, read-only
        memory included. Anything else is copied once and a log line says so. A
        :class:`dualgap.io.RowStore` larger than its buffer is read block by block in
        every pass, by the solvers that can.
    y : array-like of shape (n,), optional
        Labels, -1 or +1 (any two values: use :class:`dualgap.LinearSVC`). None: those
        of the store, and its weights if `sample_weight` is None too.
    C : float, default=1.0
        Weight of the loss, in the convention of LIBLINEAR and scikit-learn: the sum
        over examples, not the mean.
    loss : str or Loss, default="hinge"
        "hinge", "squared_hinge", "smoothed_hinge" or a record of
        :mod:`dualgap.losses`.
    sample_weight : array-like of shape (n,), optional
        Factors of C, zero or positive.
    fit_intercept : bool, default=False
        Add the constant feature of the papers: a penalised bias, as LIBLINEAR and
        scikit-learn's LinearSVC have it.
    intercept_scaling : float, default=1.0
        Value of the constant feature.
    penalize_intercept : bool, default=True
        False: the textbook SVM, whose norm leaves the bias out. The bias is then the
        last entry of w, and the dual carries ``sum_i alpha_i y_i = 0``.
    n_jobs : int, default=1
        Threads of one pass over the rows. Sums are added thread by thread: results
        depend on their number in the last digits, and on nothing else.
    lambda_ : float, optional
        The papers' parameter instead of C, not beside it: ``C = 1/(lambda n)``.

    Attributes
    ----------
    rows : core.Rows
        The one row accessor over the data; of a store that is streamed only its sizes.
    y : ndarray of shape (n,), int8
    cost : ndarray of shape (n,), float64
        ``c_i``.
    q : ndarray of shape (n,), float64
        ``||x_i||^2``, the constant feature included; a pass over rows that are
        streamed and were not all read yet.
    q_read : ndarray of shape (n,), float64
        The same of rows that are in memory, or that :meth:`blocks` has yielded.
    n, d, width : int
        Rows, columns, and length of w (``d + 1`` with the constant feature).
    free_bias : bool
        Whether there is a bias that is not penalised.
    threads : core.Team
        Share the passes over all rows.

    Raises
    ------
    ValueError
        If an argument has the wrong shape, a value that is not finite, a label other
        than -1 and +1, a negative weight, or indices out of range, or
        `penalize_intercept` is False without an intercept or with a scaling of it.
    TypeError
        If X is neither an array nor a sparse matrix.
    """

    rows: Any
    y: NDArray[np.int8]
    cost: Vector
    _loss_of = staticmethod(get_loss)
    #: See :class:`Certificate`.
    floor = 0.0

    def __init__(
        self,
        X: Any,
        y: ArrayLike | None = None,
        C: float | None = None,
        *,
        loss: str | Loss = "hinge",
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        intercept_scaling: float = 1.0,
        penalize_intercept: bool = True,
        n_jobs: int = 1,
        lambda_: float | None = None,
    ) -> None:
        self.loss = self._loss_of(loss)
        self.threads = core.Team(_threads(n_jobs))
        self.intercept_scaling = _constant(fit_intercept, intercept_scaling)
        self.free_bias = _free_bias(penalize_intercept, self.intercept_scaling)
        self.source = X if isinstance(X, RowSource) else None
        self.rows, self._norms, self.d = _rows(X, self.intercept_scaling)
        self.n = self.rows.n
        self.width = self.rows.width
        if self.n == 0:
            raise ValueError("X has 0 rows; at least one example is needed")
        if self.n >= 2**32:
            raise ValueError(f"X has {self.n} rows; at most 2**32 - 1 are supported")
        self.C = _C(C, lambda_, self.n)
        if y is None and self.source is not None:
            y = self.source.y
            if sample_weight is None:
                sample_weight = self.source.sample_weight
        self._set_examples(y, sample_weight)  # type: ignore[arg-type]

    def __copy__(self) -> Problem:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Arrays and numbers in the place of the core's objects.

        Of a store the path, also where its rows are held in memory.
        """
        state = dict(vars(self), threads=self.threads.size)
        del state["core_loss"]
        if isinstance(self.rows, core.Rows):
            arrays = [np.asarray(array) for array in self.rows.arrays]
            state["rows"] = arrays if self.source is None else None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.threads = core.Team(state["threads"])
        self.core_loss = core.Loss(self.loss.slope, self.loss.curvature)
        arrays, constant = state["rows"], self.intercept_scaling
        if arrays is None and self.source is not None:
            self.rows = self.source.hold(constant)
        elif isinstance(arrays, list) and len(arrays) == 1:
            self.rows = core.dense_rows(*arrays, constant)
        elif isinstance(arrays, list):
            self.rows = core.csr_rows(*arrays, self.d, constant)

    def with_labels(
        self,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        C: float | None = None,
    ) -> Problem:
        """The same rows with other labels, weights and C; shares the data."""
        other = copy.copy(self)
        other.C = self.C if C is None else _positive("C", C)
        other._set_examples(y, sample_weight)
        return other

    def _set_examples(self, y: ArrayLike, sample_weight: ArrayLike | None) -> None:
        self.y = _labels(y, self.n)
        self.cost = _costs(self.C, sample_weight, self.n)
        self.core_loss = core.Loss(self.loss.slope, self.loss.curvature)

    @property
    def q(self) -> Vector:
        if not self.all_read:
            for _ in self.blocks():
                pass
        return self._norms.q

    @q.setter
    def q(self, q: Vector) -> None:
        self._norms = _Norms(q)

    @property
    def q_read(self) -> Vector:
        return self._norms.q

    @property
    def all_read(self) -> bool:
        """Whether every row was seen: in memory, or in a block."""
        return not self.streamed or bool(self._norms.seen.all())

    @property
    def streamed(self) -> bool:
        """Whether the rows are read block by block."""
        return isinstance(self.rows, StreamedRows)

    def blocks(self, blocks: Sequence[Any] | None = None) -> Iterator[Block]:
        """Yield the rows block by block; those in memory are one block.

        Rows that are streamed are checked, and their norms noted, when they come first:
        a pass for that alone would cost as much as a pass of a solver.

        Parameters
        ----------
        blocks : sequence of sequences of int, optional
            Of rows that are streamed, the pages of each block; None for all rows as
            they lie. A block is good until the next one.

        Raises
        ------
        ValueError
            If a row that is streamed is damaged.
        """
        if self.source is None or not self.streamed:
            yield Block(self.rows, (slice(0, self.n),))
            return
        for block in self.source.read(self.rows.constant, blocks):
            self._norms.look(block, self.source.name)
            yield block

    def norms(self, constant: float) -> Vector:
        """``||x_i||^2`` with another constant feature, shape (n,); one pass."""
        q = np.empty(self.n)
        for block in self.blocks():
            block.rows.with_constant(constant).inspect(q[block.span])
        return q

    @property
    def lambda_(self) -> float:
        """``1/sum_i c_i``: the papers' lambda, ``1/(nC)`` without weights."""
        return 1.0 / float(self.cost.sum())

    @property
    def omega(self) -> Vector:
        """``c_i/mean(c)``: relative weights, all 1 without sample weights."""
        return self.cost / self.cost.mean()

    @property
    def lower(self) -> Vector | float:
        """The other end of the box."""
        return 0.0

    @property
    def upper(self) -> Vector:
        """Box ``U_i``, shape (n,)."""
        return self.loss.upper(self.cost)

    @property
    def delta(self) -> Vector:
        """Diagonal ``delta_i``, shape (n,)."""
        return self.loss.diagonal(self.cost)

    def coef(self, w: Vector) -> tuple[Vector, float]:
        """Coefficients of shape (d,) and intercept of a point w."""
        if self.width == self.d:
            return w, 0.0
        return w[: self.d], self.intercept_scaling * float(w[self.d])

    def primal(self, w: ArrayLike) -> float:
        """``P(w)``, one pass in float64. w has shape (width,)."""
        w = _vector("w", w, self.width)
        return 0.5 * self.squared_norm(w) + self._evaluate(w, "of w", None, None).loss

    def squared_norm(self, w: Vector) -> float:
        """``||w||^2`` of the objective: without a bias that is not penalised."""
        return core.squared_norm(w[: self.d] if self.free_bias else w)

    def dual(self, alpha: ArrayLike) -> float:
        """``D(alpha)``, one pass in float64. alpha has shape (n,) and is feasible.

        Raises
        ------
        ValueError
            If an alpha is outside its box, or an unpenalised bias wants
            ``sum_i alpha_i y_i = 0`` and it is more than rounding away.
        """
        alpha = self._feasible(alpha)
        if self.free_bias:
            off, size = core.signed_sum(self.y, alpha), float(alpha.sum())
            if abs(off) > self.n * np.finfo(np.float64).eps * size:
                raise ValueError(
                    f"sum_i alpha_i y_i = {off!r} is not 0, as an unpenalised bias "
                    "needs; use problem.balance(alpha)"
                )
        v = self.weighted_sum(alpha)
        dual = self.dual_value(alpha, self.squared_norm(v))
        return dual - self._imbalance(alpha, math.inf)

    def dual_value(self, b: Vector, norm: float, scale: float = 1.0) -> float:
        """D of ``min(scale b, upper)`` whose w has this squared norm; O(n)."""
        return core.dual_value(b, self.cost, self.core_loss, scale, norm)

    def margins(self, w: ArrayLike) -> Vector:
        """``y_i w.x_i``, shape (n,)."""
        out = np.empty(self.n)
        self._evaluate(_vector("w", w, self.width), "of w", None, None, out)
        return out

    def combine(self, alpha: Vector, out: Vector | None = None) -> Vector:
        """``w(alpha) = sum_i alpha_i y_i x_i``, shape (width,); in `out` if given.

        A bias that is not penalised does not follow from alpha: the last entry is
        the best one for this w, at the cost of a second pass.
        """
        v = self.weighted_sum(alpha, out)
        if self.free_bias:
            v[self.d] = 0.0
            scores = self.y * self.margins(v)
            v[self.d] = best_bias(scores, self.y, self.cost, self.loss)
        return v

    def weighted_sum(
        self, alpha: Vector, out: Vector | None = None, constant: float | None = None
    ) -> Vector:
        """``sum_i alpha_i y_i x_i``, shape (width,), with another constant if given."""
        v = np.empty(self.width) if out is None else out
        # The core writes over its argument: one block of several gets its own.
        part = np.empty(self.width) if self.streamed else v
        if self.streamed:
            v[:] = 0.0
        for block in self.blocks():
            rows, span = block.rows, block.span
            if constant is not None:
                rows = rows.with_constant(constant)
            core.combine(rows, self.y[span], alpha[span], part, self.threads)
            if self.streamed:
                v += part
        return v

    def balance(self, alpha: Vector) -> Vector:
        """A point of the box with ``sum_i alpha_i y_i = 0``, near one without.

        The class with the larger sum is scaled down, and one entry takes up what
        rounding leaves. The sum is then 0 up to one rounding of that entry.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
            In the box.

        Returns
        -------
        ndarray of shape (n,)
            A new array; all zeros if float64 cannot hold the sums.
        """
        return balanced(self.y, alpha)

    def certify(
        self, w: ArrayLike | None = None, alpha: ArrayLike | None = None
    ) -> Certificate:
        """The certificate of a primal point, a dual point, or both.

        Parameters
        ----------
        w : array-like of shape (width,), optional
            Primal point. Left out: ``w(alpha)``.
        alpha : array-like of shape (n,), optional
            Dual point in the box. Left out: the point that w itself suggests,
            ``alpha_i = c_i l'(m_i)``, best scaled.

        Returns
        -------
        Certificate
            With ``dual <= P* <= primal``.

        Raises
        ------
        ValueError
            If both are missing, a shape is wrong, or alpha leaves the box.
        """
        if w is None and alpha is None:
            raise ValueError("certify needs w, alpha, or both")
        return self.prove(
            None if w is None else _vector("w", w, self.width),
            None if alpha is None else self._feasible(alpha),
        ).certificate

    def prove(
        self,
        w: Vector | None,
        alpha: Vector | None,
        *,
        out: Vector | None = None,
        multiple: bool = False,
        near: Vector | None = None,
        wake: NDArray[np.uint8] | None = None,
    ) -> Proof:
        """As :meth:`certify`, and the two points that the certificate is about.

        Nothing of size n is copied for a dual point in its box that defines w: the
        proof then holds `alpha` itself, and ``w(alpha)`` in `out` if that is given.
        With `multiple` the primal point is the best ``b w(alpha)``, b in [1/2, 2],
        where that is better: P is of first order in what alpha lacks, D of second.
        With `near`, a w(alpha) but for rounding, that is the primal point, and one pass
        over the rows does for both values. `wake`, of shape (n,), are passes that rows
        sleep: 0 after this for those that are not at a bound on their side of it.

        When alpha does not define w it is scaled by the best s >= 0 that the box
        allows: ``D(s a) = s sum a - s^2/2 (||v||^2 + sum delta a^2)``
        (Panagiotakopoulos and Tsampouka 2013 use s = C/T).

        With an unpenalised bias alpha is balanced first. A sum r of the
        ``alpha_i y_i`` that rounding leaves costs at most ``|r| |b*|``, for
        ``P(w, b) >= D(alpha) - b r`` for all w and b; there is an optimal b* between
        the breakpoints ``y_i - w*.x_i``, so ``|b*| <= 1 + max ||x_i|| sqrt(2 P)`` for
        every primal value P. The dual value is lowered by that.
        """
        if alpha is not None:
            # Outside the box D bounds nothing, whatever a solver thinks.
            if not core.in_box(alpha, self.cost, self.core_loss):
                alpha = np.clip(alpha, 0.0, self.upper)
            if self.free_bias:
                alpha = self.balance(alpha)
        if w is None and near is not None and alpha is not None:
            v = np.empty(self.width)
            values = self._evaluate(near, "given", alpha, v)
            norm = self.squared_norm(near)
            apart = math.sqrt(self.squared_norm(v - near)) * Rounding.slack
            off = self._bias_off(near, alpha)
            dual = self._dual(values, v, off=off, near=(norm, apart))
            return self._proof(near, alpha, values, norm, *dual)
        if w is None:
            assert alpha is not None
            w = self.combine(alpha, out)
            margins = np.empty(self.n) if multiple else None
            values = self._evaluate(w, "of w", alpha, None, margins, wake)
            norm = self.squared_norm(w)
            dual = self._dual(values, w, off=self._bias_off(w, alpha))
            if margins is not None:
                w, values, norm = self._best_multiple(w, values, norm, margins)
            return self._proof(w, alpha, values, norm, *dual)

        kind = "built" if alpha is None else "given"
        alpha = np.empty(self.n) if alpha is None else alpha.copy()
        v = np.empty(self.width)
        values = self._evaluate(w, kind, alpha, v)
        if self.free_bias and kind == "built":
            alpha = self.balance(alpha)
            values = self._evaluate(w, "given", alpha, v)
        curvature = self.squared_norm(v) + values.diagonal
        scale = self.best_scale(alpha, values.sum, curvature)
        if scale > 0.0:
            core.scale_into_box(alpha, self.cost, self.core_loss, scale)
            dual = self._dual(values, v, scale)
        else:
            alpha[:] = 0.0
            dual = (0.0, 0.0)
        return self._proof(w, alpha, values, self.squared_norm(w), *dual)

    @property
    def rounding(self) -> Rounding:
        """What is known of the rounding of a pass over the rows."""
        pages = len(self.source.pages) if self.source and self.streamed else 0
        return Rounding(self.n, self.width, self.threads.size + pages)

    def _bias_off(self, w: Vector, alpha: Vector) -> float:
        """What a bias that is not penalised adds to the margins, and not to v."""
        return abs(float(w[self.d])) * self._off(alpha) if self.free_bias else 0.0

    def _dual(
        self,
        values: Values,
        v: Vector,
        scale: float = 1.0,
        off: float = math.inf,
        near: tuple[float, float] | None = None,
    ) -> tuple[float, float]:
        """D of ``scale * alpha``, and what rounding may have added to it."""
        rounding, norm = self.rounding, self.squared_norm(v)
        curvature = norm + values.diagonal
        drift = rounding.drift(values)
        if scale == 1.0:
            dual = values.sum - 0.5 * curvature
            return dual, rounding.of_dual(values, norm, drift, off, near)
        # The entries of scale alpha are rounded as well, and put back into the box.
        own = 4 * rounding.unit
        drift += own * values.reach
        dual = scale * (values.sum - 0.5 * scale * curvature)
        bent = values._replace(sum=0.0)
        error = scale * (scale * rounding.of_dual(bent, norm, drift))
        straight = (rounding.term + rounding.closing + own) * values.sum
        return dual, error + rounding.slack * scale * straight + rounding.underflow

    def _best_multiple(
        self, w: Vector, values: Values, norm: float, margins: Vector
    ) -> tuple[Vector, Values, float]:
        """The best ``b w``, its losses, and its squared norm."""
        b, loss, error = core.best_multiple(
            margins, self.cost, self.core_loss, norm, self.q, self.width,
            self.intercept_scaling, values.length, values.last, values.roundings,
        )  # fmt: skip
        before = 0.5 * norm + values.loss + values.loss_error
        if 0.5 * b * b * norm + loss + error < before:
            return b * w, values._replace(loss=loss, loss_error=error), b * b * norm
        return w, values, norm

    def best_scale(self, alpha: Vector, total: float, curvature: float) -> float:
        """The s >= 0 that maximises ``D(s alpha)`` in the box; O(n).

        Parameters
        ----------
        alpha : ndarray of shape (n,)
        total : float
            ``sum_i alpha_i``.
        curvature : float
            ``||sum_i alpha_i y_i x_i||^2 + sum_i delta_i alpha_i^2``.

        Returns
        -------
        float
            0 where float64 cannot hold it.
        """
        if not 0.0 < total < math.inf or not math.isfinite(curvature):
            return 0.0
        fullest = core.fullest(alpha, self.cost, self.core_loss)
        inverse = max(fullest, curvature / total)
        # Below, 1/inverse is infinite.
        return 1.0 / inverse if 1e-307 < inverse < math.inf else 0.0

    def _proof(
        self,
        w: Vector,
        alpha: Vector,
        values: Values,
        norm: float,
        dual: float,
        dual_error: float,
    ) -> Proof:
        primal = 0.5 * norm + values.loss
        error = self.rounding.of_primal(values, norm)
        dual -= self._imbalance(alpha, primal + error)
        bounds = Bounds.proved(primal, error, dual, dual_error)
        return Proof(w, alpha, bounds.certificate)

    def _off(self, alpha: Vector) -> float:
        """At least ``|sum_i alpha_i y_i|``."""
        lost = (self.n * Rounding.unit) ** 2 * float(alpha.sum())
        return Rounding.slack * (abs(core.signed_sum(self.y, alpha)) + lost)

    def _imbalance(self, alpha: Vector, primal: float) -> float:
        """What the rounding of ``sum_i alpha_i y_i = 0`` may add to D; see `prove`."""
        off = self._off(alpha) if self.free_bias else 0.0
        if off == 0.0:
            return 0.0
        primal = min(primal, self.core_loss.value(1.0) * float(self.cost.sum()))
        longest = math.sqrt(2.0 * primal * float(self.q.max()))
        return Rounding.slack * off * (1.0 + longest)

    def _evaluate(
        self,
        w: Vector,
        kind: str,
        alpha: Vector | None,
        v: Vector | None,
        margins: Vector | None = None,
        wake: NDArray[np.uint8] | None = None,
    ) -> Values:
        if not self.streamed:
            return Values(
                *core.evaluate(
                    self.rows, self.y, self.cost, self.core_loss, self.q_read, w, kind,
                    alpha, v, margins, self.threads, wake,
                )
            )  # fmt: skip
        assert wake is None
        parts = []
        part = None if v is None else np.empty(self.width)
        if v is not None:
            v[:] = 0.0
        for block in self.blocks():
            rows, span = block.rows, block.span
            sums = core.evaluate(
                rows, self.y[span], self.cost[span], self.core_loss,
                self.q_read[span], w, kind,
                None if alpha is None else alpha[span], part,
                None if margins is None else margins[span], self.threads,
            )  # fmt: skip
            parts.append(Values(*sums))
            if v is not None and part is not None:
                v += part
        return Values.merge(parts)

    def _feasible(self, alpha: ArrayLike) -> Vector:
        alpha = _vector("alpha", alpha, self.n)
        lower, upper = np.broadcast_to(self.lower, self.n), self.upper
        outside = (alpha < lower) | (alpha > upper)
        if outside.any():
            i = int(np.argmax(outside))
            raise ValueError(
                f"alpha[{i}]={float(alpha[i])!r} is outside its box "
                f"[{float(lower[i]):g}, {float(upper[i])!r}]; clip it with "
                "numpy.clip(alpha, problem.lower, problem.upper)"
            )
        return alpha


def balanced(y: NDArray[np.int8], alpha: Vector) -> Vector:
    """As :meth:`Problem.balance`, for labels y."""
    positive = y > 0
    with np.errstate(over="ignore"):
        sums = [float(alpha[positive].sum()), float(alpha[~positive].sum())]
    smaller, larger = sorted(sums)
    if not 0.0 < smaller <= larger < math.inf:
        return np.zeros(len(y))
    heavier = positive if sums[0] == larger else ~positive
    alpha = np.where(heavier, alpha * (smaller / larger), alpha)
    off = core.signed_sum(y, alpha)
    i = int(np.argmax(np.where(y == np.sign(off), alpha, 0.0)))
    alpha[i] = max(alpha[i] - abs(off), 0.0)
    return alpha


class _Norms:
    """Squared norms of the rows, of those that are streamed as they come."""

    def __init__(self, q: Vector, pages: Sequence[slice] = ()) -> None:
        self.q = q
        self.starts = np.array([page.start for page in pages])
        self.seen = np.zeros(len(pages), bool)

    def look(self, block: Block, name: str) -> None:
        """Check the rows of a block, unless all of them were."""
        pages = [
            slice(*np.searchsorted(self.starts, (span.start, span.stop)))
            for span in block.spans
        ]
        if all(self.seen[part].all() for part in pages):
            return
        q = np.empty(block.size)
        fault, where, unique = block.rows.inspect(q)
        if fault is None and not unique:
            fault = "a row names a column twice"
        if fault is not None:
            row = np.concatenate([np.r_[span] for span in block.spans])[where]
            raise ValueError(
                f"{name}, row {row}: {fault}; make the store again with dualgap convert"
            )
        if len(block.spans) == 1:
            self.q[block.span] = q
        else:
            block.put(self.q, q)
        for part in pages:
            self.seen[part] = True


def _rows(X: Any, constant: float) -> tuple[Any, _Norms, int]:
    """The accessor over X, the squared norms, and the number of columns."""
    if isinstance(X, RowSource):
        return _stored_rows(X, constant)
    is_sparse = sparse.issparse(X)
    if not is_sparse:
        # A mask would be lost.
        if not hasattr(X, "__array__") or isinstance(X, np.ma.MaskedArray):
            raise TypeError(
                f"X is a {type(X).__name__}; give a NumPy array or a SciPy CSR matrix"
            )
        X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimension(s); reshape it to (n, d)")
    if X.dtype.kind not in "biuf":
        raise TypeError(f"X has dtype {X.dtype}; convert it to float32 or float64")
    return _csr_rows(X, constant) if is_sparse else _dense_rows(X, constant)


def _stored_rows(source: RowSource, constant: float) -> tuple[Any, _Norms, int]:
    rows: Any = StreamedRows(source, constant)
    norms = _Norms(np.zeros(rows.n), source.pages)
    if len(source.pages) == 1:
        rows = source.hold(constant)
        norms.look(Block(rows, (slice(0, rows.n),)), source.name)
    return rows, norms, source.n_features


def _dense_rows(X: Any, constant: float) -> tuple[Any, _Norms, int]:
    if X.dtype not in (np.float32, np.float64):
        logger.info("X is converted from %s to float64: one copy", X.dtype)
        X = X.astype(np.float64, order="C")
    if not X.flags.c_contiguous or not X.flags.aligned or not X.dtype.isnative:
        logger.info("X is not a C-contiguous native array: one copy is made")
        X = np.array(X, dtype=X.dtype.newbyteorder("="), order="C")
    rows = core.dense_rows(X, constant)
    q = np.empty(rows.n)
    fault, where, _ = rows.inspect(q)
    _refuse(fault, where)
    return rows, _Norms(q), X.shape[1]


def _csr_rows(X: Any, constant: float) -> tuple[Any, _Norms, int]:
    if X.format != "csr":
        logger.info("X is converted from %s to CSR: one copy", X.format.upper())
        check_indices(X)
        X = X.tocsr()
    if X.dtype not in (np.float32, np.float64):
        logger.info("X is converted from %s to float64: one copy", X.dtype)
        X = X.astype(np.float64)
    rows, q, fault, where, unique = _inspect_csr(X, constant)
    _refuse(fault, where)
    if not unique:
        logger.info("X has rows that name a column twice: one copy is made")
        X = X.copy()
        X.has_canonical_format = False
        X.sum_duplicates()
        rows, q, fault, where, _ = _inspect_csr(X, constant)
        _refuse(fault, where)
    return rows, _Norms(q), X.shape[1]


def check_indices(X: Any) -> None:
    """Refuse indices of a sparse matrix that are out of range: SciPy trusts them.

    Raises
    ------
    ValueError
        Naming what is wrong, and where.
    """
    if X.format == "csr" and X.dtype in (np.float32, np.float64):
        _, _, fault, where, _ = _inspect_csr(X, 0.0)
        if fault is None:
            return
        if fault not in _OF_VALUES:  # else what follows was not looked at
            _refuse(fault, where)
    if X.format == "coo":
        for name, size in (("row", X.shape[0]), ("col", X.shape[1])):
            index = getattr(X, name)
            if index.size and (index.min() < 0 or index.max() >= size):
                raise ValueError(f"X.{name} holds indices out of range; {_REBUILD}")
    elif hasattr(X, "check_format"):
        try:
            copy.copy(X).check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"X: {error}; {_REBUILD}") from None


def _inspect_csr(X: Any, constant: float) -> tuple[Any, Vector, str | None, int, bool]:
    arrays = []
    for name in ("data", "indices", "indptr"):
        array = getattr(X, name)
        if name != "data" and array.dtype not in (np.int32, np.int64):
            raise TypeError(f"X.{name} has dtype {array.dtype}; {_REBUILD}")
        if not array.flags.c_contiguous or not array.flags.aligned:
            logger.info("X.%s is not contiguous: one copy is made", name)
            array = np.require(array, requirements=["C", "A"])
        arrays.append(array)
    lengths = tuple(array.shape for array in arrays)
    if lengths[0] != lengths[1] or lengths[2] != (X.shape[0] + 1,):
        raise ValueError(
            f"X has shape {X.shape} but data, indices and indptr of shapes "
            f"{lengths[0]}, {lengths[1]} and {lengths[2]}; {_REBUILD}"
        )
    rows = core.csr_rows(*arrays, X.shape[1], constant)
    q = np.empty(rows.n)
    fault, where, unique = rows.inspect(q)
    return rows, q, fault, where, unique


def _refuse(fault: str | None, where: int) -> None:
    if fault is None:
        return
    remedy = {
        "value is NaN or infinite": "impute or drop such rows",
        "squared norm overflows": "rescale the features",
    }.get(fault, _REBUILD)
    raise ValueError(f"X, row {where}: {fault}; {remedy}")


def _C(C: float | None, lambda_: float | None, n: int) -> float:
    if lambda_ is None:
        return _positive("C", 1.0 if C is None else C)
    if C is not None:
        raise ValueError(f"C={C!r} and lambda_={lambda_!r} are one number; give one")
    C = 1.0 / (_positive("lambda_", lambda_) * n)
    if math.isinf(C):
        raise ValueError(
            f"lambda_={lambda_!r} is too small, 1/(lambda n) overflows; give more"
        )
    return C


def _threads(n_jobs: object) -> int:
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs < 1:
        raise ValueError(f"n_jobs={n_jobs!r}: give a number of threads, 1 or more")
    return int(n_jobs)


def _constant(fit_intercept: bool, intercept_scaling: float) -> float:
    scaling = _positive("intercept_scaling", intercept_scaling)
    return scaling if fit_intercept else 0.0


def _free_bias(penalize_intercept: bool, constant: float) -> bool:
    if penalize_intercept:
        return False
    if constant == 0.0:
        raise ValueError(
            "penalize_intercept=False needs fit_intercept=True: there is no intercept "
            "to penalise or not"
        )
    if constant != 1.0:
        raise ValueError(
            f"intercept_scaling={constant!r} has no effect with "
            "penalize_intercept=False; leave it at 1"
        )
    return True


def _positive(name: str, value: Any) -> float:
    numbers = (int, float, np.integer, np.floating)
    if isinstance(value, np.floating):
        value = float(value)  # float32 would be compared as such
    if not (isinstance(value, numbers) and 0 < value <= sys.float_info.max):
        raise ValueError(f"{name}={value!r}: give a positive, finite number")
    return float(value)


def _labels(y: ArrayLike, n: int) -> NDArray[np.int8]:
    y = np.asarray(y)
    if y.shape != (n,):
        raise ValueError(f"y has shape {y.shape}; expected ({n},), one label per row")
    known = (y == 1) | (y == -1)
    if not np.all(known):
        i = int(np.argmin(known))
        value = y[i : i + 1].tolist()[0]
        raise ValueError(f"y[{i}]={value!r}: labels are -1 and +1 here; map them first")
    return np.ascontiguousarray(y, dtype=np.int8)


def _costs(C: float, sample_weight: ArrayLike | None, n: int) -> Vector:
    if sample_weight is None:
        weight = np.ones(1)  # stands for all rows
    else:
        weight = _vector("sample_weight", sample_weight, n)
    if (weight < 0.0).any():
        i = int(np.argmax(weight < 0.0))
        raise ValueError(
            f"sample_weight[{i}]={float(weight[i])!r}: weights must be zero or positive"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere; one must be positive")
    with np.errstate(over="ignore"):
        cost = C * weight
    used = cost[weight > 0.0]
    if used.min() < _SMALLEST_COST or used.max() > _LARGEST_COST:
        raise ValueError(
            f"C times sample_weight spans [{used.min():.3g}, {used.max():.3g}]; keep "
            f"it within [{_SMALLEST_COST:g}, {_LARGEST_COST:g}]"
        )
    return np.full(n, cost[0]) if sample_weight is None else cost


def _vector(name: str, value: ArrayLike, size: int) -> Vector:
    try:
        value = np.require(value, np.float64, ["C", "A", "W"])
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of numbers: {error}") from None
    if value.shape != (size,):
        raise ValueError(f"{name} has shape {value.shape}; expected ({size},)")
    finite = np.isfinite(value)
    if not finite.all():
        i = int(np.argmin(finite))
        raise ValueError(f"{name}[{i}]={float(value[i])!r}: give finite numbers")
    return value

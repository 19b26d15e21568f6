"""Binary linear SVM and its certificate.

P(w) = 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i),      c_i = C sample_weight_i

With an unpenalised bias b the objective is P(w, b), with w.x_i + b instead of w.x_i,
and the dual has the additional constraint sum_i alpha_i y_i = 0.
"""

from __future__ import annotations

import copy
import hashlib
import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import core
from ..certificate import Bounds, Certificate
from ..checks import (
    check_C,
    check_constant,
    check_costs,
    check_duals,
    check_free_bias,
    check_labels,
    check_positive,
    check_threads,
    check_vector,
)
from ..data.blocks import Block
from ..data.types import MatrixLike
from ..losses import Loss, Vector, get_loss
from .base import BinaryHint, Claim, Proof, VectorProblem, hint_of
from .bias import balanced, best_bias
from .rounding import ROUNDED, Rounding, Values, as_given, sharper


class BinaryProblem(VectorProblem):
    """Binary linear SVM: rows, labels, costs and loss. The rows are not copied.

    Parameters
    ----------
    X : ndarray, CSR matrix or RowStore of shape (n, d), float32 or float64
        C-contiguous arrays, and CSR matrices without duplicates, are used in place,
        also from read-only memory. Anything else is copied once, with a log line. A
        :class:`dualgap.data.RowStore` larger than its buffer is read block by block in
        every pass, by solvers that support this.
    y : array-like of shape (n,), optional
        Labels, -1 or +1; :class:`dualgap.LinearSVC` accepts any labels. If None, a
        store gives its labels, and its weights unless `sample_weight` is given.
    C : float, default=1.0
        Weight of the loss. As in LIBLINEAR and scikit-learn, the loss is a sum over the
        examples, not a mean.
    loss : str or Loss, default="hinge"
        As for :class:`dualgap.LinearSVC`.
    sample_weight : array-like of shape (n,), optional
        Factors of C, zero or positive.
    fit_intercept : bool, default=False
        Add a constant feature, that is, a penalised bias as in LIBLINEAR and
        scikit-learn's LinearSVC.
    intercept_scaling : float, default=1.0
        Value of the constant feature.
    penalize_intercept : bool, default=True
        If False, the bias is not penalised, as in the textbook SVM. It is then the last
        entry of w, and the dual has the constraint ``sum_i alpha_i y_i = 0``.
    n_jobs : int, default=1
        Threads of a pass over the rows. Sums are added thread by thread, so the last
        digits of results depend on the number of threads, but not on their timing.
    lambda_ : float, optional
        The papers' parameter, instead of C: ``C = 1/(lambda n)``.

    Attributes
    ----------
    rows : core.Rows
        Row accessor over the data. For a streamed store it holds the sizes only.
    y : ndarray of shape (n,), int8
    cost : ndarray of shape (n,), float64
        ``c_i``.
    q : ndarray of shape (n,), float64
        ``||x_i||^2``, the constant feature included. If streamed rows have not all been
        read, this makes a pass over them.
    q_read : ndarray of shape (n,), float64
        ``||x_i||^2`` of rows that are in memory, or that :meth:`blocks` has yielded.
    n, d, width : int
        Rows, columns, and length of w (``d + 1`` with the constant feature).
    free_bias : bool
        Whether there is an unpenalised bias.
    threads : core.Team
        Threads that share the passes over all rows.

    Raises
    ------
    ValueError
        If an argument has the wrong shape, a value that is not finite, a label other
        than -1 and +1, a negative weight, or indices out of range. Also if
        `penalize_intercept` is False without an intercept or with a scaled one.
    TypeError
        If X is neither an array nor a sparse matrix.
    """

    kind: ClassVar[str] = "binary"
    loss: Loss
    y: NDArray[np.int8]
    cost: Vector
    #: A model near the solution, such as a model of more rows; None if none is known.
    near: Vector | None = None
    _prove_as_given = as_given
    _loss_of = staticmethod(get_loss)

    def __init__(
        self,
        X: MatrixLike,
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
        self.threads = core.Team(check_threads(n_jobs))
        self.intercept_scaling = check_constant(fit_intercept, intercept_scaling)
        self.free_bias = check_free_bias(penalize_intercept, self.intercept_scaling)
        self._set_rows(X)
        self.C = check_C(C, lambda_, self.n)
        if y is None and self.source is not None:
            y = self.source.y
            if sample_weight is None:
                sample_weight = self.source.sample_weight
        self._set_examples(y, sample_weight)

    def __copy__(self) -> BinaryProblem:
        other = object.__new__(type(self))
        vars(other).update(vars(self))
        return other

    def __getstate__(self) -> dict[str, Any]:
        """Replace the core's objects by arrays and numbers.

        A store is pickled as its path, even if its rows are in memory.
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
            self.rows = core.dense_rows(arrays[0], constant)
        elif isinstance(arrays, list):
            self.rows = core.csr_rows(arrays[0], arrays[1], arrays[2], self.d, constant)

    def with_labels(
        self,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        C: float | None = None,
    ) -> BinaryProblem:
        """Return a problem over the same rows with other labels, weights and C.

        The data are shared, not copied. C defaults to the present one.
        """
        other = copy.copy(self)
        other.C = self.C if C is None else check_positive("C", C)
        other._set_examples(y, sample_weight)
        return other

    def _set_examples(self, y: ArrayLike | None, weight: ArrayLike | None) -> None:
        self.y = check_labels(y, self.n)
        self.cost = check_costs(self.C, weight, self.n)
        self.core_loss = core.Loss(self.loss.slope, self.loss.curvature)

    def examples(
        self,
        block: Block | None = None,
        *,
        cost: Vector | None = None,
        q: Vector | None = None,
        constant: float | None = None,
    ) -> core.Examples:
        """Return the core's record of the rows of a block, or of all rows in memory.

        Costs, squared norms and the constant feature default to the problem's own.
        """
        rows = self.rows if block is None else block.rows
        y, cost = self.y, self.cost if cost is None else cost
        q = self.q_read if q is None else q
        if block is not None:
            y, cost, q = block.take(y), block.take(cost), block.take(q)
        if constant is not None:
            rows = rows.with_constant(constant)
        return core.Examples(rows, y, cost, q, self.core_loss)

    @property
    def lambda_(self) -> float:
        """The papers' lambda, ``1/sum_i c_i``; without weights it is ``1/(nC)``."""
        return 1.0 / float(self.cost.sum())

    @property
    def omega(self) -> Vector:
        """Relative weights ``c_i/mean(c)``, shape (n,); 1 without sample weights."""
        return self.cost / self.cost.mean()

    @property
    def lower(self) -> Vector | float:
        """Lower bounds of the dual variables: 0."""
        return 0.0

    @property
    def upper(self) -> Vector:
        """Upper bounds ``U_i`` of the dual variables, shape (n,)."""
        return self.loss.upper(self.cost)

    @property
    def delta(self) -> Vector:
        """Diagonal ``delta_i``, shape (n,)."""
        return self.loss.diagonal(self.cost)

    def primal(self, w: ArrayLike) -> float:
        """Return ``P(w)`` of a w of shape (width,), from one pass in float64."""
        return self.value(check_vector("w", w, self.width))

    def value(self, w: Vector) -> float:
        """Return ``P(w)`` of an iterate, whose numbers need not be finite."""
        return 0.5 * self.squared_norm(w) + self._evaluate(w, "of w", None, None).loss

    def dual(self, alpha: ArrayLike) -> float:
        """Return ``D(alpha)`` of a feasible alpha, from one pass in float64.

        Parameters
        ----------
        alpha : array-like of shape (n,)

        Returns
        -------
        float

        Raises
        ------
        ValueError
            If an entry is outside its box, or if the bias is unpenalised and
            ``sum_i alpha_i y_i`` differs from 0 by more than rounding.
        """
        alpha = check_duals(alpha, self.lower, self.upper)
        if self.free_bias:
            off, size = core.signed_sum(self.y, alpha), float(alpha.sum())
            if abs(off) > self.n * np.finfo(np.float64).eps * size:
                raise ValueError(
                    f"sum_i alpha_i y_i = {off!r} must be 0 for an unpenalised bias; "
                    "use problem.balance(alpha)"
                )
        v = self.weighted_sum(alpha)
        dual = self.dual_value(alpha, self.squared_norm(v))
        return dual - self._imbalance(alpha, math.inf)

    def dual_value(self, b: Vector, norm: float, scale: float = 1.0) -> float:
        """Return D of ``min(scale b, upper)``, given its squared norm; O(n)."""
        return core.dual_value(b, self.cost, self.core_loss, scale, norm)

    def margins(self, w: ArrayLike) -> Vector:
        """Return the margins ``y_i w.x_i``, shape (n,)."""
        return self.outcomes(check_vector("w", w, self.width))

    def outcomes(self, w: Vector) -> Vector:
        """Return the margins of an iterate, whose numbers need not be finite."""
        out = np.empty(self.n)
        self._evaluate(w, "of w", None, None, out)
        return out

    def scores(self, w: ArrayLike) -> tuple[Vector, Vector]:
        """Return ``w.x_i`` at all rows and bounds on the errors, both of shape (n,).

        A constant feature is part of the rows, also of an unpenalised bias.
        """
        w, out = check_vector("w", w, self.width), np.empty(self.n)
        # Not `_evaluate`, which regression replaces by residuals.
        values = BinaryProblem._evaluate(self, w, "of w", None, None, out)
        error = self.rounding.of_scores(values, self.q)
        last = Rounding.slack * Rounding.unit * (values.roundings + 2) * values.last
        return self.y * out, error + last

    def combine(self, alpha: Vector, out: Vector | None = None) -> Vector:
        """Return ``w(alpha) = sum_i alpha_i y_i x_i``, shape (width,).

        The result is in `out` if it is given. An unpenalised bias does not follow from
        alpha: the last entry is then the best bias for this w, and costs a second pass.
        """
        v = self.weighted_sum(alpha, out)
        if self.free_bias:
            v[self.d] = 0.0
            scores = self.y * self.outcomes(v)
            v[self.d] = best_bias(scores, self.y, self.cost, self.loss)
        return v

    def weighted_sum(
        self, alpha: Vector, out: Vector | None = None, constant: float | None = None
    ) -> Vector:
        """Return ``sum_i alpha_i y_i x_i``, shape (width,).

        `constant` replaces the value of the constant feature.
        """
        v = np.empty(self.width) if out is None else out
        # The core overwrites its argument, so each of several blocks needs a buffer.
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
        """Return a point of the box near alpha with ``sum_i alpha_i y_i = 0``.

        The class with the larger sum is scaled down, and one entry absorbs the
        remainder of rounding. The sum is then 0 up to one rounding of that entry. The
        result is all zeros if a class has sum 0 or a sum overflows.
        """
        return balanced(self.y, alpha)

    def certify(
        self, w: ArrayLike | None = None, alpha: ArrayLike | None = None
    ) -> Certificate:
        """Return the certificate of a primal point, a dual point, or both.

        Parameters
        ----------
        w : array-like of shape (width,), optional
            Primal point. Defaults to ``w(alpha)``.
        alpha : array-like of shape (n,), optional
            Dual point in the box. Defaults to the best multiple of the point that w
            suggests, ``alpha_i = c_i l'(m_i)``.

        Returns
        -------
        Certificate
            It proves ``dual <= P* <= primal``.

        Raises
        ------
        ValueError
            If both are missing, a shape is wrong, or alpha leaves the box.
        """
        if w is None and alpha is None:
            raise ValueError("w=None and alpha=None: give w, alpha, or both")
        claim = Claim(
            None if w is None else check_vector("w", w, self.width),
            None if alpha is None else check_duals(alpha, self.lower, self.upper),
        )
        return (self.prove if w is None else self._prove_as_given)(claim).certificate

    def prove(self, claim: Claim) -> Proof:
        """Return a primal and a dual point, with proved bounds on P and D there.

        The hint is a :class:`~dualgap.problems.base.BinaryHint`. If the claim holds
        only a dual point in its box, no array of size n is copied. The proof then holds
        `alpha` itself, and ``w(alpha)`` in `out` of the hint.

        If the claim also holds w, alpha is scaled by the best s >= 0 that the box
        allows: ``D(s a) = s sum a - s^2/2 (||v||^2 + sum delta a^2)``
        (Panagiotakopoulos and Tsampouka 2013 use s = C/T).

        With an unpenalised bias alpha is balanced first. Rounding may leave a remainder
        ``r = sum_i alpha_i y_i``, and ``P(w, b) >= D(alpha) - b r`` for all w and b, so
        it costs at most ``|r| |b*|``. Some optimal b* lies between the breakpoints
        ``y_i - w*.x_i``, so ``|b*| <= 1 + max ||x_i|| sqrt(2 P)`` for every primal
        value P. The dual value is lowered by this bound.

        Where rounding hides most of the gap, a second pass has compensated products.
        """
        return sharper(self, self._prove(claim))

    def _prove(self, claim: Claim) -> Proof:
        w, alpha, hint = claim.w, claim.alpha, hint_of(claim, BinaryHint)
        if alpha is not None:
            # D of a point outside the box would bound nothing.
            if not core.in_box(alpha, self.cost, self.core_loss):
                alpha = np.clip(alpha, 0.0, self.upper)
            if self.free_bias:
                alpha = self.balance(alpha)
        near = hint.near
        if w is None and near is not None and alpha is not None:
            v = np.empty(self.width)
            values = self._evaluate(near, "given", alpha, v)
            norm = self.squared_norm(near)
            apart = math.sqrt(self.squared_norm(v - near)) * Rounding.slack
            off = self._bias_off(near, alpha)
            dual = self.rounding.dual(
                values, self.squared_norm(v), off=off, near=(norm, apart)
            )
            bounds = self._bounds(alpha, values, norm, *dual)
            return Proof(near, alpha, bounds.certificate)
        if w is None:
            assert alpha is not None
            w = hint.out if hint.combined and alpha is claim.alpha else None
            w = self.combine(alpha, hint.out) if w is None else w
            margins = np.empty(self.n) if hint.rescale else None
            values = self._evaluate(w, "of w", alpha, None, margins, hint.skipped)
            norm = self.squared_norm(w)
            dual = self.rounding.dual(values, norm, off=self._bias_off(w, alpha))
            if margins is not None:
                w, values, norm = self._best_multiple(w, values, norm, margins)
            bounds = self._bounds(alpha, values, norm, *dual)
            return Proof(w, alpha, bounds.certificate)
        kind = "built" if alpha is None else "given"
        alpha = np.empty(self.n) if alpha is None else alpha.copy()
        v = np.empty(self.width)
        values = self._evaluate(w, kind, alpha, v)
        if self.free_bias and kind == "built":
            alpha = self.balance(alpha)
            values = self._evaluate(w, "given", alpha, v)
        norm = self.squared_norm(v)
        scale = self.best_scale(alpha, values.sum, norm + values.diagonal)
        core.scale_into_box(alpha, self.cost, self.core_loss, scale)
        dual = self.rounding.dual(values, norm, scale)
        bounds = self._bounds(alpha, values, self.squared_norm(w), *dual)
        return Proof(w, alpha, bounds.certificate)

    def settled(self, w: Vector) -> Vector:
        """Return w, longer by some roundings if all margins are next to 1 or beyond.

        Margins of 1 less a rounding have a loss that may exceed the rest of P.
        """
        margins, v = np.empty(self.n), np.empty(self.width)
        self._evaluate(w, "precise", np.zeros(self.n), v, margins)
        short = 1.0 - float(margins[self.cost > 0.0].min())
        near = 0.0 < short + 8 * Rounding.unit <= ROUNDED
        return w * (1.0 + short + 16 * Rounding.unit) if near else w

    def precise_bounds(
        self, w: Vector, alpha: Vector, values: Values, norm: float
    ) -> Bounds:
        """Return bounds from a pass with compensated products, given ``||v||^2``."""
        rounding = self.rounding
        error = rounding.of_dual(values, norm, rounding.precise_drift(values, norm))
        dual = values.sum - 0.5 * (norm + values.diagonal)
        return self._bounds(alpha, values, self.squared_norm(w), dual, error)

    def fingerprint(self) -> dict[str, Any]:
        """Return everything in the problem that determines a fit bit for bit.

        The data are identified by their labels and costs, and by the checksum of the
        store. Data in memory are identified by the squared norms of the rows and
        ``sum_i c_i y_i x_i``, which takes one pass.
        """
        data = hashlib.sha256()
        for array in (self.y, self.cost):
            data.update(array.tobytes())
        if self.source is not None:
            data.update(self.source.fingerprint.encode())
        else:
            data.update(self.q.tobytes())
            data.update(self.weighted_sum(self.cost).tobytes())
        return {
            "data": data.hexdigest(),
            "rows": [self.n, self.d, self.rows.stored],
            "loss": repr(self.loss),
            "intercept_scaling": self.intercept_scaling,
            "penalize_intercept": not self.free_bias,
            "threads": self.threads.size,
            "buffer": self.source.buffer if self.source and self.streamed else None,
        }

    @property
    def rounding(self) -> Rounding:
        """Bounds on the rounding errors of a pass over the rows."""
        pages = len(self.source.pages) if self.source and self.streamed else 0
        return Rounding(self.n, self.width, self.threads.size + pages)

    def _bias_off(self, w: Vector, alpha: Vector) -> float:
        """Bound the share of an unpenalised bias in ``sum_i alpha_i m_i``."""
        return abs(float(w[self.d])) * self._off(alpha) if self.free_bias else 0.0

    def _best_multiple(
        self, w: Vector, values: Values, norm: float, margins: Vector
    ) -> tuple[Vector, Values, float]:
        """Return the best ``b w``, its losses, and its squared norm."""
        best = core.best_multiple(
            self.examples(), margins, norm, values.length, values.last, values.roundings
        )
        b, loss, error = best.scale, best.loss, best.loss_error
        before = 0.5 * norm + values.loss + values.loss_error
        if 0.5 * b * b * norm + loss + error < before:
            return b * w, values._replace(loss=loss, loss_error=error), b * b * norm
        return w, values, norm

    def best_scale(self, alpha: Vector, total: float, curvature: float) -> float:
        """Return the s >= 0 that maximises ``D(s alpha)`` in the box; O(n).

        It is 0 if the sums or the result overflow, or if there is no positive s.

        - `total`: ``sum_i alpha_i``.
        - `curvature`: ``||sum_i alpha_i y_i x_i||^2 + sum_i delta_i alpha_i^2``.
        """
        return core.best_scale(alpha, self.cost, self.core_loss, total, curvature)

    def _bounds(
        self,
        alpha: Vector,
        values: Values,
        norm: float,
        dual: float,
        dual_error: float,
    ) -> Bounds:
        primal = 0.5 * norm + values.loss
        error = self.rounding.of_primal(values, norm)
        dual -= self._imbalance(alpha, primal + error)
        return Bounds.proved(primal, error, dual, dual_error)

    def _off(self, alpha: Vector) -> float:
        """Return an upper bound on ``|sum_i alpha_i y_i|``."""
        lost = (self.n * Rounding.unit) ** 2 * float(alpha.sum())
        return Rounding.slack * (abs(core.signed_sum(self.y, alpha)) + lost)

    def _imbalance(self, alpha: Vector, primal: float) -> float:
        """Bound the effect on D of a remainder ``sum_i alpha_i y_i``; see `prove`."""
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
        skipped: NDArray[np.uint8] | None = None,
    ) -> Values:
        if not self.streamed:
            found = core.evaluate(
                self.examples(), w, kind, alpha, v, margins, self.threads, skipped
            )
            return Values.of(found)
        assert skipped is None
        parts, part = [], None if v is None else np.empty(self.width)
        if v is not None:
            v[:] = 0.0
        for block in self.blocks():
            found = core.evaluate(
                self.examples(block),
                w,
                kind,
                block.take(alpha),
                part,
                block.take(margins),
                self.threads,
            )
            parts.append(Values.of(found))
            if v is not None and part is not None:
                v += part
        return Values.merge(parts)

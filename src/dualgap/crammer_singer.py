"""The multiclass SVM of Crammer and Singer, and the one way to certify it.

P(W) = 1/2 sum_m ||w_m||^2 + sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + [m != y_i])
D(a) = sum_i a_{i,y_i} - 1/2 sum_m ||w_m||^2,   w_m = sum_i a_im x_i,
       a_im <= c_i [m = y_i],  sum_m a_im = 0

K. Crammer and Y. Singer, JMLR 2, 2001; the scale is that of LIBLINEAR's ``-s 4``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import core
from .certificate import Bounds
from .losses import Hinge, Vector
from .problem import Problem, Proof, Rounding, Values

__all__ = ["CrammerSingerProblem"]


class CrammerSingerProblem:
    """All classes in one problem. The data are those of a binary one, shared.

    Parameters
    ----------
    data : Problem
        Whose rows and costs these are; its labels do not count.
    codes : ndarray of shape (n,)
        Class of every row, 0 to K - 1.
    classes : int
        K, 2 or more.

    Attributes
    ----------
    n, d, width : int
        Rows, columns, and columns with the constant feature.
    n_duals : int
        ``n K``: a dual point is an array of that length, row after row.
    stride : int
        A primal point is an array of ``width * stride`` entries, feature after feature:
        K weights, and zeros.

    Raises
    ------
    ValueError
        If the bias of the data is not penalised, or its rows are read block by block.
    """

    free_bias = False
    streamed = False
    floor = 0.0  # as Problem.floor

    def __init__(self, data: Problem, codes: NDArray[Any], classes: int) -> None:
        if data.free_bias:
            raise ValueError(
                "penalize_intercept=False: the problem of Crammer and Singer has "
                "penalised biases; use multi_class='ovr' for free ones"
            )
        if data.streamed:
            raise ValueError(
                "X: the problem of Crammer and Singer needs its rows in memory; open "
                "the store with a larger buffer, or use multi_class='ovr'"
            )
        self.data, self.classes = data, classes
        self.loss = Hinge()
        self.rows, self.q, self.cost, self.threads = (
            data.rows, data.q, data.cost, data.threads,
        )  # fmt: skip
        self.n, self.d, self.width, self.C = data.n, data.d, data.width, data.C
        self.n_duals = data.n * classes
        self.stride = -(-classes // 8) * 8  # of w: the core pads the K of a feature
        self.y = np.ascontiguousarray(codes, dtype=np.int32)

    @property
    def _labelled(self) -> tuple[Any, ...]:
        """The first arguments of the core's passes."""
        return self.rows, self.y, self.cost, self.q, self.classes

    def coef(self, w: Vector) -> tuple[Vector, Vector]:
        """Coefficients, shape (K, d), and intercepts, shape (K,), of a point."""
        table = w.reshape(self.width, self.stride)[:, : self.classes]
        if self.width == self.d:
            return np.ascontiguousarray(table.T), np.zeros(self.classes)
        intercept = self.data.intercept_scaling * table[self.d]
        return np.ascontiguousarray(table[: self.d].T), intercept

    def point(self, coef: Vector, intercept: ArrayLike = 0.0) -> Vector:
        """The inverse of :meth:`coef`."""
        table = np.zeros((self.width, self.stride))
        table[: self.d, : self.classes] = coef.T
        if self.width > self.d:
            bias = np.asarray(intercept, np.float64) / self.data.intercept_scaling
            table[self.d, : self.classes] = bias
        return table.ravel()

    def combine(self, alpha: Vector, out: Vector | None = None) -> Vector:
        """``w_m = sum_i a_im x_i``, shape (width stride,); in `out` if given."""
        w = np.empty(self.width * self.stride) if out is None else out
        core.multiclass_combine(self.rows, alpha, self.classes, w, self.threads)
        return w

    def primal(self, w: Vector) -> float:
        """``P(W)``, one pass in float64."""
        return 0.5 * float(core.squared_norm(w)) + self._evaluate(w, None).loss

    def _evaluate(self, w: Vector, alpha: Vector | None) -> Values:
        return Values(*core.multiclass_values(*self._labelled, w, alpha, self.threads))

    def own_duals(self, alpha: Vector) -> Vector:
        """``a_{i,y_i}`` of every row, shape (n,)."""
        own: Vector = alpha.reshape(self.n, self.classes)[np.arange(self.n), self.y]
        return own

    def feasible(self, alpha: Vector) -> None:
        """Move a dual point, in place, to where the constraints hold."""
        core.multiclass_feasible(*self._labelled, alpha)

    def prove(
        self, w: Vector | None, alpha: Vector | None, *, out: Vector | None = None
    ) -> Proof:
        """What a dual point, or a primal and a dual one, prove.

        Parameters
        ----------
        w : ndarray of shape (width stride,), optional
            Left out: that of `alpha`.
        alpha : ndarray of shape (n K,), optional
            Moved, in place, to where the constraints hold. Left out: zeros.
        out : ndarray of shape (width stride,), optional
            For the w of `alpha`.
        """
        if alpha is None:
            alpha = np.zeros(self.n_duals)
        self.feasible(alpha)
        rounding = Rounding(
            self.n * self.classes, self.width * self.stride, self.threads.size
        )
        v = self.combine(alpha, out)
        dual_norm = float(core.squared_norm(v))
        # Only the w of alpha says more of D than the sizes of its terms do.
        off = 0.0 if w is None else math.inf
        w = v if w is None else w
        values = self._evaluate(w, alpha)
        norm = float(core.squared_norm(w))
        # D is that of the others' a_im, and of a_{i,y_i} that make the sums exactly 0,
        # scaled down where these are above c_i: the a_{i,y_i} are rounded.
        own = 3 * self.classes * Rounding.unit
        drift = rounding.drift(values) + own * values.reach
        dual = values.sum - 0.5 * dual_norm
        less = rounding.of_dual(values, dual_norm, drift, off)
        less += Rounding.slack * own * values.sum
        more = rounding.of_primal(values, norm)
        primal = 0.5 * norm + values.loss
        bounds = Bounds.proved(primal, more, dual, less)
        return Proof(w, alpha, bounds.certificate)

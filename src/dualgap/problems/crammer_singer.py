"""Multiclass SVM of Crammer and Singer, and its certificate.

P(W) = 1/2 sum_m ||w_m||^2 + sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + [m != y_i])
D(a) = sum_i a_{i,y_i} - 1/2 sum_m ||w_m||^2,   w_m = sum_i a_im x_i,
       a_im <= c_i [m = y_i],  sum_m a_im = 0

Source: K. Crammer and Y. Singer, JMLR 2, 2001, on the scale of LIBLINEAR's ``-s 4``.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import core
from ..losses import Hinge, Vector
from .base import Claim, LinearHint, Problem, Proof, hint_of
from .binary import BinaryProblem
from .rounding import Rounding, Values


class CrammerSingerProblem(Problem):
    """Multiclass problem of Crammer and Singer. It shares the data of a binary problem.

    - `data`: gives the rows and costs. Its labels are not used.
    - `codes`: class of every row, 0 to K - 1, shape (n,).
    - `classes`: number of classes K, 2 or more.
    - `n`, `d`, `width`: rows, columns, and columns with the constant feature.
    - `n_duals`: length ``n K`` of a dual point, which holds K entries for each row in
      turn.
    - `stride`: a primal point has ``width * stride`` entries. Each feature in turn has
      K weights, padded with zeros to `stride` entries.
    """

    kind: ClassVar[str] = "crammer-singer"

    def __init__(
        self, data: BinaryProblem, codes: NDArray[np.generic], classes: int
    ) -> None:
        if data.free_bias:
            raise ValueError(
                "penalize_intercept=False: the problem of Crammer and Singer has "
                "penalised biases only; use multi_class='ovr' for unpenalised ones"
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
        self.stride = -(-classes // 8) * 8  # the core pads the K weights of a feature
        self.y = np.ascontiguousarray(codes, dtype=np.int32)

    @property
    def n_duals(self) -> int:
        return self.n * self.classes

    @property
    def examples(self) -> core.MulticlassExamples:
        """The core's record of the rows and their classes."""
        return core.MulticlassExamples(
            self.rows, self.y, self.cost, self.q, self.classes
        )

    def coef(self, w: Vector) -> tuple[Vector, Vector]:
        """Return the coefficients (K, d) and intercepts (K,) of a point w."""
        table = w.reshape(self.width, self.stride)[:, : self.classes]
        if self.width == self.d:
            return np.ascontiguousarray(table.T), np.zeros(self.classes)
        intercept = self.data.intercept_scaling * table[self.d]
        return np.ascontiguousarray(table[: self.d].T), intercept

    def point(self, coef: Vector, intercept: ArrayLike = 0.0) -> Vector:
        """Return the point w of coefficients and intercepts; inverts :meth:`coef`."""
        table = np.zeros((self.width, self.stride))
        table[: self.d, : self.classes] = coef.T
        if self.width > self.d:
            bias = np.asarray(intercept, np.float64) / self.data.intercept_scaling
            table[self.d, : self.classes] = bias
        return table.ravel()

    def combine(self, alpha: Vector, out: Vector | None = None) -> Vector:
        """Return all ``w_m = sum_i a_im x_i``, shape (width stride,).

        The result is in `out` if it is given.
        """
        w = np.empty(self.width * self.stride) if out is None else out
        core.multiclass_combine(self.rows, alpha, self.classes, w, self.threads)
        return w

    def primal(self, w: Vector) -> float:
        """Return ``P(W)``, from one pass in float64."""
        return 0.5 * float(core.squared_norm(w)) + self._evaluate(w, None).loss

    def _evaluate(self, w: Vector, alpha: Vector | None) -> Values:
        found = core.multiclass_values(self.examples, w, alpha, self.threads)
        return Values.of(found)

    def feasible(self, alpha: Vector) -> None:
        """Make a dual point feasible, in place."""
        core.multiclass_feasible(self.examples, alpha)

    def prove(self, claim: Claim) -> Proof:
        """Return a primal and a dual point, with proved bounds on P and D there.

        alpha of shape (n K,) is made feasible in place; it defaults to zeros. w of
        shape (width stride,) defaults to the w of alpha. The hint is a
        :class:`~dualgap.problems.base.LinearHint`.
        """
        hint, w = hint_of(claim, LinearHint), claim.w
        alpha = np.zeros(self.n_duals) if claim.alpha is None else claim.alpha
        self.feasible(alpha)
        rounding = Rounding(
            self.n * self.classes, self.width * self.stride, self.threads.size
        )
        v = self.combine(alpha, hint.out)
        dual_norm = float(core.squared_norm(v))
        # Only the w of alpha gives a better bound on the error of D than its terms.
        off = 0.0 if w is None else math.inf
        w = v if w is None else w
        values = self._evaluate(w, alpha)
        norm = float(core.squared_norm(w))
        # The stored a_{i,y_i} are rounded. The exact dual point has the a_{i,y_i} that
        # make the sums over m exactly 0, scaled down if these exceed c_i.
        own = 3 * self.classes * Rounding.unit
        bounds = rounding.bounds(values, norm, dual_norm, off, own)
        return Proof(w, alpha, bounds.certificate)

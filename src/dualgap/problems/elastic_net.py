"""Linear classifiers whose penalty has an L1 norm, and their certificate.

P(W, b) = sum_k r ||w_k||_1 + (1 - r)/2 ||w_k||^2 + sum_i c_i l_i
D(a)    = -sum_i c_i l_i*(-a_i / c_i) - sum_kj max(|v_kj| - r, 0)^2 / (2 (1 - r)),
          v_k = sum_i a_ik x_i; for r = 1 instead of the second sum: |v_kj| <= 1
          sum_i a_ik = 0 for every class k with an unpenalised bias

The loss is logistic, of two or more classes, or the squared hinge of two. The dual
point of a model has a_i = -c_i l_i', times a factor that makes it feasible
(docs/certificate-proof.md).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import core
from ..certificate import Bounds
from ..data.types import MatrixLike
from ..losses import Vector
from .base import EMPTY, Claim, Proof
from .batch import LinearBatch
from .columns import Columns
from .constant import names_of
from .dense import unchecked
from .logistic import FUNCTIONS, LARGEST, LogisticProblem, RowOutcome
from .rounding import Rounding

ElasticNetLoss: TypeAlias = Literal["logistic", "squared_hinge"]
Mask = NDArray[np.bool_]

#: Absolute error of an entropy of a scaled row, in roundings of a wrong probability:
#: the logarithms in it are at most LARGEST.
_ROUNDED = 1024.0


class _Evaluated(NamedTuple):
    """A proof of a model, and its dual point."""

    bounds: Bounds
    #: ``a_i``, shape (outputs, n).
    alpha: Vector
    #: ``v``, and bounds on its errors, shape (outputs, length).
    v: Vector
    error: Vector


class ElasticNetProblem(LogisticProblem):
    """A linear classifier with an L1 norm in its penalty.

    Parameters
    ----------
    loss : {"logistic", "squared_hinge"}, default="logistic"
        Loss; the squared hinge is for two classes.
    l1_ratio : float, default=1.0
        Share r of the L1 norm in the penalty, above 0 and up to 1.
    fit_intercept : bool, default=False
        Whether there is a bias.
    intercept_scaling : float, optional
        Value of a constant feature, whose weight is penalised like others. None for a
        bias that is not penalised.
    """

    kind: ClassVar[str] = "elastic-net"

    def __init__(
        self,
        X: MatrixLike,
        codes: ArrayLike,
        C: float = 1.0,
        *,
        loss: ElasticNetLoss = "logistic",
        l1_ratio: float = 1.0,
        classes: int | None = None,
        sample_weight: ArrayLike | None = None,
        fit_intercept: bool = False,
        intercept_scaling: float | None = None,
        n_jobs: int = 1,
    ) -> None:
        self._shared = _SharedColumns()
        self.hinge, self.l1_ratio = loss == "squared_hinge", float(l1_ratio)
        scaled = fit_intercept and intercept_scaling is not None
        #: Value of a penalised constant feature; 0 without one.
        self.scaling = float(intercept_scaling or 0.0) if scaled else 0.0
        super().__init__(
            X,
            codes,
            C,
            classes=classes,
            sample_weight=sample_weight,
            fit_intercept=fit_intercept and not scaled,
            n_jobs=n_jobs,
        )
        if self.streamed:
            raise ValueError(
                "X: a problem with an L1 norm needs its rows in memory; open the store "
                "with a larger buffer, or give the rows as an array"
            )
        if scaled:
            self.passes.constant = self.scaling
            self.passes.width += 1

    def _set_examples(
        self,
        codes: ArrayLike,
        C: float,
        classes: int | None,
        sample_weight: ArrayLike | None,
    ) -> None:
        super()._set_examples(codes, C, classes, sample_weight)
        self._weight = sample_weight
        self.length += self.scaling != 0.0

    def at(self, C: float) -> ElasticNetProblem:
        """Return the problem with another C."""
        other = copy.copy(self)
        other._set_examples(self.codes, C, self.classes, self._weight)
        return other

    @property
    def n_duals(self) -> int:
        return self.n if self.hinge else 0

    @property
    def penalised(self) -> int:
        """Entries of a row of the model that have a penalty: the first ones."""
        return self.length - self.free_bias

    @property
    def smoothness(self) -> float:
        """Largest second derivative of the loss by the scores."""
        return 2.0 if self.hinge else 0.25 if self.outputs == 1 else 0.5

    @property
    def columns(self) -> Columns:
        """The columns, with the constant feature as the last one."""
        return self._shared.columns(self)

    # ------------------------------------------------------------------ the model

    def coef(self, w: Vector) -> tuple[Vector, Vector]:
        coef, bias = super().coef(w)
        if self.scaling:
            bias = self.scaling * self.table(w)[:, self.d]
        return coef, bias

    def point(self, coef: Vector, intercept: ArrayLike = 0.0) -> Vector:
        w = super().point(coef, intercept)
        if self.scaling:
            self.table(w)[:, self.d] = np.asarray(intercept) / self.scaling
        return w

    def zero(self) -> Vector:
        if self.hinge and self.free_bias:
            w = np.zeros(self.length)
            w[self.d] = (self.totals[1] - self.totals[0]) / self.totals.sum()
            return w
        return super().zero()

    def outcome(self, S: Vector, room: RowOutcome | None = None) -> RowOutcome:
        """Return the outcomes of all rows at given scores.

        Of the squared hinge `entropy` has ``-l*(-a)``, and `wrong` has ``|a|``, for the
        derivative a.
        """
        if not self.hinge:
            return super().outcome(S, room)
        sign = np.where(self.codes == 1, 1.0, -1.0)
        short = np.maximum(1.0 - sign * S[0], 0.0)
        loss, slope = short * short, 2.0 * short
        return RowOutcome(loss, slope - loss, slope, (sign * slope)[None])

    def bent(self, now: RowOutcome, k: int) -> Vector:
        """Return the second derivatives of the losses by the scores of output k."""
        if self.hinge:
            return np.where(now.wrong > 0.0, 2.0 * self.cost, 0.0)
        p = self.probabilities(now)[k]
        return self.cost * p * (1.0 - p)

    def balance(
        self, S: Vector, now: RowOutcome, accuracy: float
    ) -> tuple[Vector, RowOutcome]:
        if not (self.hinge and self.free_bias):
            return super().balance(S, now, accuracy)
        # The slope is piecewise linear: Newton's method, or halves of what is left.
        moved, low, high = 0.0, -math.inf, math.inf
        for _ in range(100):
            slope = float(now.residual[0] @ self.cost)
            if abs(slope) <= accuracy * float(now.wrong @ self.cost):
                break
            low, high = (moved, high) if slope > 0.0 else (low, moved)
            new = moved + slope / float(self.bent(now, 0).sum())
            if not low < new < high:
                new = 0.5 * (low + high)
            if not (math.isfinite(new) and new != moved):
                break
            S += new - moved
            moved, now = new, self.outcome(S)
        return np.array([moved]), now

    def penalty(self, W: Vector) -> float:
        """Return the penalty of a model, or of some columns and its biases."""
        own = W[:, : W.shape[1] - self.free_bias]
        norm = self.l1_ratio * float(np.abs(own).sum())
        if self.l1_ratio < 1.0:
            norm += 0.5 * (1.0 - self.l1_ratio) * float((own * own).sum())
        return norm

    # ------------------------------------------------------------------- the proof

    def scaled_dual(self, now: RowOutcome, most: Vector) -> tuple[float, float, float]:
        """Return D at the best multiple of the dual point, without its bias.

        - `now`: outcomes, whose derivatives are the dual point.
        - `most`: bounds on ``|v|`` of the penalised entries.

        Returns the factor, D there, and a bound on its rounding error.
        """
        largest = float(most.max(initial=0.0))
        limit = math.inf if largest == 0.0 else (1.0 - 8.0 * Rounding.unit) / largest
        first, second = self._sums_of_dual(now)
        scale = 1.0
        if self.hinge:
            scale = first / (2.0 * second) if second > 0.0 else 0.0
        if self.l1_ratio == 1.0:
            scale = min(scale, limit)
        # At the optimum the factor is 1.
        starts = {scale, min(scale, 1.0), min(scale, self.l1_ratio * limit)}
        best = max((self._dual(now, most, s) for s in starts), key=_sure)
        for _ in range(60):  # D is concave in the factor
            other = self._dual(now, most, 0.5 * best[0])
            if not _sure(other) > _sure(best):
                break
            best = other
        return best

    def _sums_of_dual(self, now: RowOutcome) -> tuple[float, float]:
        """Return A and B of the squared hinge, whose D at a factor t is A t - B t^2."""
        if not self.hinge:
            return 0.0, 0.0
        return float(self.cost @ now.wrong), float(self.cost @ now.loss)

    def _dual(
        self, now: RowOutcome, most: Vector, scale: float
    ) -> tuple[float, float, float]:
        """Return a factor, D of this multiple, and a bound on its rounding error."""
        rounding = self.rounding
        relative = rounding.term + rounding.closing + 16.0 * Rounding.unit
        if not 0.0 < scale < math.inf:
            return 0.0, 0.0, 0.0
        if self.hinge:
            first, second = self._sums_of_dual(now)
            dual = scale * (first - scale * second)
            size = scale * (first + scale * second)
        else:
            wrong = np.minimum(scale * now.wrong, 1.0 - Rounding.unit)
            rest = np.maximum(now.entropy - (1.0 - now.wrong) * now.loss, 0.0)
            own = scale * rest - wrong * math.log(scale)
            own -= (1.0 - wrong) * np.log1p(-wrong)
            dual = float(self.cost @ own)
            relative += (2.0 * self.classes + 4.0 * FUNCTIONS + LARGEST) * Rounding.unit
            size = dual + float(self.cost @ (now.entropy + now.loss * (1 - now.wrong)))
            size += _ROUNDED * Rounding.unit / relative * float(self.cost @ now.wrong)
        error = Rounding.slack * relative * size + rounding.underflow
        error += self.classes * 2.0**-960 * float(self.totals.sum())
        if self.l1_ratio < 1.0:
            over = np.maximum(scale * most - self.l1_ratio, 0.0)
            taken = float((over * over).sum()) / (2.0 * (1.0 - self.l1_ratio))
            # `over` is a difference: its error is relative to the larger part.
            lost = float((over * (scale * most + self.l1_ratio)).sum())
            lost *= 8.0 * Rounding.unit / (1.0 - self.l1_ratio)
            dual -= taken
            error += Rounding.slack * ((Rounding.summed + relative) * taken + lost)
        return scale, dual, error

    @property
    def squares(self) -> Vector:
        """``sum_i x_ij^2``, rounded up, shape (length,)."""
        return self._shared.squares(self)

    @property
    def weighted_squares(self) -> Vector:
        """``sum_i c_i x_ij^2``, rounded up, shape (length,)."""
        largest = float(self.cost.max())
        if self.cost.min() == largest:
            return self.squares * (largest * (1.0 + 4.0 * Rounding.unit)) + 2.0**-1000
        return self._squares(self.cost)

    def _squares(self, weight: Vector) -> Vector:
        total, constant = np.zeros(self.length), self.passes.constant
        core.add_squares(self.rows.with_constant(constant), weight, total)
        more = 1.0 + (2.0 * self.n + 64.0) * Rounding.unit
        return total * more + 2.0**-1000

    def dual_scores(self, alpha: Vector) -> Vector:
        if not self.hinge:
            return super().dual_scores(alpha)
        sign = np.where(self.codes == 1, 1.0, -1.0)
        share = np.clip(alpha / np.where(self.cost > 0.0, self.cost, 1.0), 0.0, None)
        return (sign * (1.0 - 0.5 * share))[None]

    def _evaluate(self, W: Vector, given: Vector | None = None) -> _Evaluated:
        """Prove bounds on P at W, and on D at the dual point of W or other scores."""
        S, rounding = self.scores(W), self.rounding
        bias = self.passes.constant * W[:, self.d :]
        lengths = np.sqrt((W[:, : self.d] ** 2).sum(axis=1) * 1.0001 + 2.0**-1000)
        now = self.outcome(S)
        there = self._sums(
            now, float(lengths.max()), float(np.abs(bias).max(initial=0.0))
        )
        norm = self.penalty(W)
        primal = norm + there.loss
        each = 8.0 if self.hinge else 2.0 * self.classes + 4.0 * FUNCTIONS
        each *= Rounding.unit
        relative = rounding.term + rounding.closing + each
        relative += 0.0 if self.hinge else LARGEST * Rounding.unit
        error = there.moved + relative * there.loss
        error += (2.0 * Rounding.summed + rounding.closing) * norm
        error = Rounding.slack * error + rounding.underflow
        if not math.isfinite(primal + error):
            bounds = Bounds.proved(math.inf, 0.0, 0.0)
            return _Evaluated(bounds, np.zeros(S.shape), *np.zeros((2, *W.shape)))
        if given is not None:
            S, now = given, self.outcome(given)
        now = self.balance(S, now, 32.0 * Rounding.unit)[1]
        alpha = now.residual * self.cost
        V = self.sums(alpha)
        # The exact dual point has the exact derivatives at the scores S.
        size = math.sqrt(float((alpha * alpha).sum()) * 1.0001 + 2.0**-1000)
        added = (rounding.chain + rounding.parts + 2) * Rounding.unit + each
        # An error u t of an argument t of exp changes a probability by u times entropy.
        own = self.cost * (0.0 if self.hinge else now.entropy)
        off = added * size
        off += Rounding.unit * math.sqrt(float(own @ own) * 1.0001 + 2.0**-1000)
        drift = Rounding.slack * off * np.sqrt(self.squares) + 2.0**-1000
        drift = np.broadcast_to(drift, V.shape)
        most = (np.abs(V) + drift)[:, : self.penalised] * (1.0 + 2.0 * Rounding.unit)
        scale, dual, less = self.scaled_dual(now, most)
        if self.free_bias:
            wrong = float(self.cost @ now.wrong)
            slope = float(np.abs((now.residual * self.cost).sum(axis=1)).sum())
            off = (each + Rounding.summed) * wrong
            off = 2.0 * (off + 2.0 * Rounding.unit * float(own.sum()))
            off = scale * Rounding.slack * (off + slope)
            less += off * self._spread(primal + error, self._longest(primal + error))
        if not dual - less > 0.0:  # 0 is a lower bound
            scale = dual = less = 0.0
        bounds = Bounds.proved(primal, error, dual, less)
        return _Evaluated(bounds, scale * alpha, scale * V, scale * drift)

    def _longest(self, primal: float) -> float:
        """Bound ``||W*||`` from a bound on P."""
        longest = primal / self.l1_ratio
        if self.l1_ratio < 1.0:
            longest = min(longest, math.sqrt(2.0 * primal / (1.0 - self.l1_ratio)))
        return longest * (1.0 + 8.0 * Rounding.unit)

    def _moved(self, now: RowOutcome, off: Vector, wrong: Vector) -> Vector:
        if not self.hinge:
            return super()._moved(now, off, wrong)
        # The subtraction from 1 rounds as well.
        off = off + 2.0 * Rounding.unit * (1.0 + now.wrong)
        return off * (now.wrong + off)

    def prove(self, claim: Claim) -> Proof:
        """Return a primal point with proved bounds on P there and on D.

        The dual point is a multiple of the given one (of two classes), or belongs to
        the model with its best bias. The default is the model that has only a bias.
        """
        with unchecked():
            w, given = self._given(claim)
            found = self._evaluate(self.table(w), given)
        alpha = np.abs(found.alpha[0]) if self.hinge else EMPTY
        return Proof(w, alpha, found.bounds.certificate)

    def zeros(self, w: Vector) -> Mask:
        """Return which entries are proved to be 0 in every optimum, (outputs, length).

        The exact dual optimum is in a ball around the dual point of the model, and a
        weight is 0 where ``|v_kj| < r`` in all of the ball (gap-safe screening).
        """
        with unchecked():
            found = self._evaluate(self.table(w))
            mask = np.zeros(found.v.shape, bool)
            gap = found.bounds.certificate.gap
            radius = math.sqrt(2.0 * self.smoothness * gap) * (1.0 + 1e-14)
            reach = radius * np.sqrt(self.weighted_squares)
            most = (np.abs(found.v) + found.error + reach) * (1.0 + 1e-14)
        own = slice(0, self.penalised)
        mask[:, own] = most[:, own] < self.l1_ratio
        return mask


def _sure(found: tuple[float, float, float]) -> float:
    """Return the bound that a factor proves: D less its error."""
    return found[1] - found[2]


class _SharedColumns:
    """Columns and their squares, which problems over the same rows share."""

    def __init__(self) -> None:
        self._columns: Columns | None = None
        self._squares: Vector | None = None

    def columns(self, problem: ElasticNetProblem) -> Columns:
        if self._columns is None:
            X, constant = problem.passes.X, problem.passes.constant
            self._columns = Columns(X, constant, problem.rows.with_constant(constant))
        return self._columns

    def squares(self, problem: ElasticNetProblem) -> Vector:
        if self._squares is None:
            self._squares = problem._squares(np.ones(problem.n))
        return self._squares


class ElasticNetBatch(LinearBatch):
    """Problems of a linear classifier with an L1 norm, one per class or label.

    `batch`: the same problems with the squared norm. `l1_ratio`: share of the L1 norm.
    """

    def __init__(self, batch: LinearBatch, l1_ratio: float) -> None:
        self.__dict__.update(vars(batch))
        self.kind, self.l1_ratio, self.points = ElasticNetProblem.kind, l1_ratio, None
        free, constant = self.rows.free_bias, self.rows.intercept_scaling
        self.whole = ElasticNetProblem(
            self.columns.X,
            np.arange(self.rows.n) % 2,  # any: problems share the rows alone
            self.C,
            loss="squared_hinge",
            l1_ratio=l1_ratio,
            classes=2,
            fit_intercept=bool(free or constant),
            intercept_scaling=None if free else constant,
            n_jobs=self.options.get("n_jobs", 1),
        )

    def problem(self, k: int) -> ElasticNetProblem:  # type: ignore[override]
        made = self.whole.with_codes(self._signs(k) > 0, self.C, self.weights(k))
        assert isinstance(made, ElasticNetProblem)
        return made

    def at(self, C: float) -> ElasticNetBatch:
        other = copy.copy(self)
        other.C, other.zeros = C, None
        return other

    def empty_sentence(self, models: Sequence[Vector]) -> str:
        """Return a sentence about models without a nonzero weight, with a remedy."""
        d = self.whole.d
        empty = [k for k, w in enumerate(models) if not w[:d].any()]
        if not empty:
            return ""
        who = names_of(empty, self.names, self.several)
        return f"all features of {who} have the weight 0; train with a larger C"


def least_C(problem: ElasticNetProblem) -> float:
    """Return the largest C, up to rounding, at which all penalised weights are 0.

    Raises ValueError if they are for every C.
    """
    W = problem.table(problem.zero())
    now = problem.outcome(problem.scores(W))
    V = problem.sums(now.residual * problem.cost)[:, : problem.penalised]
    largest = float(np.abs(V).max(initial=0.0))
    if largest == 0.0:
        raise ValueError(
            "no column of X has to do with y, so all weights are 0 for every C; use "
            "other features"
        )
    return problem.C * problem.l1_ratio / largest


def l1_ratio_of(model: object) -> float:
    """Return the share of the L1 norm in the penalty of a fitted linear model.

    Raises ValueError if the penalty is of another kind.
    """
    penalty = getattr(model, "penalty", "l2")
    ratio = getattr(model, "l1_ratio", None) or 0.0
    known = {"l1": 1.0, "l2": 0.0, "elasticnet": ratio, "deprecated": ratio}
    if penalty not in known:
        raise ValueError(
            f"{type(model).__name__}(penalty={penalty!r}) cannot be certified; train "
            "with penalty='l2', 'l1' or 'elasticnet'"
        )
    return float(known[penalty])


def with_l1(batch: LinearBatch, l1_ratio: float) -> ElasticNetBatch:
    """Return the problems of a batch with an L1 norm in their penalty.

    Raises ValueError if their loss is not the squared hinge.
    """
    if batch.rows.loss.name != "squared_hinge":
        raise ValueError(
            f"loss={batch.rows.loss.name!r} with an L1 norm has no certificate here; "
            "train with loss='squared_hinge', or with penalty='l2'"
        )
    return ElasticNetBatch(batch, l1_ratio)

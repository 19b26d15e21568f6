"""Problems over the same rows: the classes of a classifier, the folds of a search."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..certificate import Bounds
from ..checks import check_constant, check_costs
from ..data.blocks import RowSource
from ..data.columns import StoredColumns
from ..data.rows import Points
from ..data.types import MatrixLike, ProblemLabel
from ..losses import Vector
from ..memory import make_room
from .base import EMPTY, Problem, Proof
from .binary import BinaryProblem
from .crammer_singer import CrammerSingerProblem
from .duals import Pages, SparseDuals, StoredDuals, Table, along, carried, narrowed
from .reductions import (
    Joint,
    MultiLabel,
    OneVsOne,
    OneVsRest,
    Reduction,
    quantile_names,
    refuse_missing,
    weights_of_rows,
)
from .regression import RegressionProblem
from .rounding import Rounding

S = TypeVar("S")
#: More problems than these would take long to start after a deadline, and more memory
#: for the dual variables of all rows than for the nonzero ones.
MANY = 20


class Batch(ABC):
    """Problems over the same rows."""

    kind: str
    names: Sequence[str]
    #: Plural noun for the problems.
    several: str = "problems"
    #: Whether dual variables are stored by their nonzero entries.
    many = False
    #: Weight of the loss; NaN without one.
    C: float = math.nan
    #: Model of a problem that is not solved yet; empty if callbacks get no models.
    zero: Vector = EMPTY

    def __len__(self) -> int:
        return len(self.names)

    def label(self, k: int) -> ProblemLabel:
        """Return the name of problem k for callbacks: its class, or its pair."""
        return self.names[k]

    @abstractmethod
    def problem(self, k: int) -> Problem:
        """Return problem k."""

    @abstractmethod
    def at(self, C: float) -> Batch:
        """Return the problems with another C."""

    @property
    def at_a_time(self) -> int:
        """Number of problems that may be trained at the same time."""
        return len(self)

    def prepare(self) -> None:  # noqa: B027
        """Make what the problems share, before threads train them."""

    def begin(self, k: int, problem: Problem, C: float, alpha: Vector) -> Vector | None:
        """Return dual variables to start problem k from, given duals of another C."""
        return self.along(k, problem, [(C, alpha)])

    def along(
        self, k: int, problem: Problem, past: list[tuple[float, Vector]]
    ) -> Vector | None:
        """Return dual variables to start from, given duals of two other C, or None."""
        return along(self.C, past, problem.loss.curvature > 0.0)

    def for_path(self) -> Batch:
        """Return a batch that keeps what its problems share for other values of C."""
        return self

    def duals(self, table: Table, k: int) -> Vector:
        """Return ``alpha`` of problem k from a table of the duals of all rows."""
        return table[k]

    def finish(self, k: int, problem: Problem, solution: S) -> S:
        """Return the solution of problem k in the terms of the batch."""
        return solution

    def leave(self, k: int) -> None:  # noqa: B027  (a hook, not a duty)
        """Note that problem k needs no more work, solved or not."""

    def stored(self, alpha: Vector) -> SparseDuals:
        """Return the duals of one of many problems as the batch keeps them.

        Raises MemoryError if the machine has too little memory for the duals of all
        problems.
        """
        return SparseDuals.of(alpha)

    def takes_long(self, warm: bool) -> bool:
        """Return whether a stop comes before the start of a problem, cold or warm."""
        return False

    def unreached(self, k: int) -> Proof:
        """Return a proof of the zero model without making problem k."""
        raise NotImplementedError


class SingleBatch(Batch):
    """One problem, of a regressor or a novelty detector, or one for each quantile.

    - `problem`: the problem, or several over the same rows.
    - `name`: of the estimator.
    - `make`: returns what `problem` is, with another C.
    - `zero`: as for :class:`Batch`.
    - `columns`: the columns of a linear problem.
    """

    def __init__(
        self,
        problem: Problem | Sequence[Problem],
        name: str,
        make: Callable[[float], Problem | Sequence[Problem]] | None = None,
        zero: Vector = EMPTY,
        columns: StoredColumns | None = None,
    ) -> None:
        self.problems = problem if isinstance(problem, Sequence) else [problem]
        #: The problem, the first of several.
        self.only: Any = self.problems[0]
        self._columns = columns
        self.kind, self.make, self.zero = self.only.kind, make, zero
        self.names = [name]
        if len(self.problems) > 1:
            quantiles = [cast(RegressionProblem, p).loss.above for p in self.problems]
            self.names = quantile_names(quantiles)
        self.several = "quantiles"
        self.C = getattr(self.only, "C", math.nan)

    @property
    def at_a_time(self) -> int:
        return 1  # each has all threads

    @property
    def columns(self) -> StoredColumns:
        """Columns of a linear problem."""
        assert self._columns is not None
        return self._columns

    def problem(self, k: int = 0) -> Problem:
        return self.problems[k]

    def at(self, C: float) -> SingleBatch:
        if C == self.C:
            return self
        assert self.make is not None
        made, other = self.make(C), copy.copy(self)
        other.problems, other.C = made if isinstance(made, Sequence) else [made], C
        other.only = other.problems[0]
        return other

    def begin(self, k: int, problem: Problem, C: float, alpha: Vector) -> Vector:
        if C == self.C:
            return alpha
        box = cast(RegressionProblem, problem)
        return np.clip(alpha * (self.C / C), box.lower, box.upper)


class LinearBatch(Batch):
    """Problems of a linear classifier.

    - `X`: rows, shape (n, d).
    - `classes`: labels of the classes, shape (K,).
    - `codes`: class of every row, 0 to K - 1, shape (n,).
    - `weight`: sample weights, shape (n,). None if all sample and class weights are 1.
    - `factor`: class weights, shape (K,).
    - `C`: weight of the loss.
    - `copies`: whether a pair of classes gets a temporary copy of its rows, because
      epochs over all rows, most of them with weight 0, would take longer. Otherwise,
      and for a store, the rows of other classes have weight 0.
    - `narrow`: whether very wide sparse rows lose their empty columns.
    - `part`: whether X is a part of all rows, such as those on a worker: it may lack
      classes.
    - `**options`: as in :class:`dualgap.problems.BinaryProblem`.
    - `rows`: a problem over all rows.
    - `parts`: weights of the rows and of the classes, a pair for each fold.
    """

    rows: BinaryProblem

    def __init__(
        self,
        X: MatrixLike,
        classes: NDArray[np.generic],
        codes: NDArray[np.intp],
        reduction: Reduction,
        weight: Vector | None,
        factor: Vector,
        C: float | None = 1.0,
        *,
        copies: bool = True,
        narrow: bool = True,
        part: bool = False,
        **options: Any,
    ) -> None:
        self.columns = StoredColumns(X, narrow)
        X = self.columns.X
        self.classes, self.codes, self.reduction = classes, codes, reduction
        kind = type(reduction)
        self.several, self.joint = reduction.several, kind is Joint
        self.count, self.names = len(reduction), reduction.names(classes)
        self.many = self.count > MANY and kind in (OneVsRest, MultiLabel)
        #: Whether all problems have the same costs of the rows.
        self.same_costs = kind is not OneVsOne and bool((factor == 1.0).all())
        #: What `_proofs_of_zero` returns, once `unreached` needs it.
        self.zeros: tuple[list[float], float, Vector] | None = None
        #: What a solver keeps for other values of C and other folds of the rows.
        self.kept: dict[str, object] = {}
        self._taken = [0, 0]  # problems whose dual variables are known, and their bytes
        self._pages: Pages | None = None
        self.kind = "crammer-singer" if self.joint else "binary"
        self.options, self.parts = options, [(weight, factor)]
        self.near: Sequence[Vector] = ()
        self.points: Points | None = None
        pairs = kind is OneVsOne
        if pairs and not part:
            own = weights_of_rows(codes, weight, factor)
            refuse_missing(classes, np.bincount(codes, own))
        if pairs and copies and not isinstance(X, RowSource):
            # Inspects every row once, so that an error names the row by its number.
            scaling = options.get("intercept_scaling", 1.0)
            constant = check_constant(options.get("fit_intercept", False), scaling)
            X = self.points = Points.of(X, constant)
        # A single fit has its first problem here, and later ones share its rows.
        whole = not (pairs or self.joint or part)
        self.rows = BinaryProblem(
            X,
            self._signs(0) if whole else np.ones(len(codes)),
            C,
            sample_weight=self.weights(0) if whole or self.joint else None,
            **options,
        )
        self.C, self.zero = self.rows.C, np.zeros(self.rows.width)
        self.first: BinaryProblem | CrammerSingerProblem | None = (
            self.rows if whole else None
        )
        if self.joint:
            self.first = CrammerSingerProblem(self.rows, codes, len(classes))

    def __len__(self) -> int:
        return len(self.parts) * self.count

    def label(self, k: int) -> ProblemLabel:
        return self.reduction.labels(self.classes)[k % self.count]

    def at(self, C: float) -> LinearBatch:
        other = copy.copy(self)
        other.C, other.first, other.zeros = C, None, None
        return other

    def without_copies(self) -> LinearBatch:
        """Return the same problems, where pairs of classes have all rows."""
        other = copy.copy(self)
        other.points = None
        return other

    def begin(self, k: int, problem: Problem, C: float, alpha: Vector) -> Vector:
        if self.joint:  # keeps the sums of the dual variables
            return alpha if C == self.C else alpha * (self.C / C)
        # Dual variables of the same C may be optimal.
        return alpha if C == self.C else carried(cast(BinaryProblem, problem), alpha)

    def along(
        self, k: int, problem: Problem, past: list[tuple[float, Vector]]
    ) -> Vector | None:
        if self.joint:
            return self.begin(k, problem, *past[-1])
        return super().along(k, problem, past)

    def weighted(
        self,
        parts: Sequence[tuple[Vector | None, Vector]],
        near: Sequence[Vector] = (),
    ) -> LinearBatch:
        """Return the problems of every fold: one part after another.

        `parts`: weights of the rows in training, 0 for held-out rows, and of the
        classes. `near`: a model of all rows for each problem of a fold, or none.
        """
        other = copy.copy(self)
        other.near = near
        other.parts, other.first, other.zeros = list(parts), None, None
        other.same_costs = False
        other.names = [
            f"fold {f}" + (f", {name}" if len(self) > 1 else "")
            for f in range(len(parts))
            for name in self.names
        ]
        return other

    def _signs(self, k: int) -> NDArray[np.int8]:
        return self.reduction.signs(self.codes, k % self.count)

    def weights(self, k: int) -> Vector | None:
        """Return the weights of all rows in problem k, (n,); None if all are 1."""
        fold, k = divmod(k, self.count)
        weight, factor = self.parts[fold]
        if weight is None and type(self.reduction) is OneVsOne:
            weight = np.ones(len(self.codes))
        if weight is None:
            return None
        return self.reduction.weights(self.codes, k, weight, factor)

    def problem(self, k: int) -> BinaryProblem | CrammerSingerProblem:
        if k == 0 and self.first is not None:
            return self.first
        if self.joint:
            rows = self.rows.with_labels(self.rows.y, self.weights(k), self.C)
            return CrammerSingerProblem(rows, self.codes, len(self.classes))
        if self.points is None:
            found = self.rows.with_labels(self._signs(k), self.weights(k), self.C)
        else:
            place, weights = self.place(k), self.weights(k)
            assert weights is not None
            found = BinaryProblem(
                self.points[place],
                self._signs(k)[place],
                self.C,
                sample_weight=weights[place],
                **self.options,
            )
        found.near = self.near[k % self.count] if self.near else None
        return found

    def begin_near(self, models: Sequence[Vector]) -> None:
        """Give the problems models near their solutions, one each."""
        self.near = models
        if isinstance(self.first, BinaryProblem):
            self.first.near = models[0]

    def place(self, k: int) -> NDArray[np.intp]:
        """Return the rows of problem k, as indices into all rows."""
        weights = self.weights(k)
        if self.points is None or weights is None:
            return np.arange(len(self.codes))
        return np.flatnonzero(weights > 0.0)

    def takes_long(self, warm: bool) -> bool:
        # Warm models are better than zero, but folds are of no use without each other.
        return len(self.parts) > 1 or (len(self) > MANY and not (warm or self.joint))

    def unreached(self, k: int) -> Proof:
        if self.many and len(self.parts) == 1:  # arrays of rows for each take long
            self.zeros = self.zeros or self._proofs_of_zero()
            losses, off, alpha = self.zeros
            bounds = Bounds.proved(losses[k], off, 0.0)
            if math.isfinite(bounds.primal):
                return Proof(self.zero, alpha, bounds.certificate)
        place, weights = self.place(k), self.weights(k)
        own = None if weights is None else weights[place]
        total = float(check_costs(self.C, own, len(place)).sum())
        # The loss of w = 0 is l(0) for each row.
        loss = float(self.rows.loss.value(0.0)) * total
        bounds = Bounds.proved(loss, Rounding.summed * loss, 0.0)
        return Proof(self.zero, np.zeros(len(place)), bounds.certificate)

    def _proofs_of_zero(self) -> tuple[list[float], float, Vector]:
        """Return P of w = 0 in each problem, a bound on its errors, and alpha = 0."""
        (weight, factor), n = self.parts[0], len(self.codes)
        positive, negative = self.class_costs()
        whole = self.C * (n if weight is None else float(weight.sum()))
        # A side is up to a product with a factor the difference of two sums of rows.
        passed = 4.0 * n + 64.0
        loss = float(self.rows.loss.value(0.0))
        off = loss * passed * Rounding.unit * whole * max(1.0, float(factor.max()))
        losses = [loss * (p + q) for p, q in zip(positive, negative, strict=True)]
        return losses, off, np.broadcast_to(0.0, n)

    def signs(self, problems: Sequence[int]) -> NDArray[np.int8]:
        """Return the labels of all rows in some problems, (problems, n)."""
        if len(problems) == self.count and len(self.parts) == 1:
            return self.reduction.all_signs(self.codes)
        return np.stack([self._signs(k) for k in problems])

    def costs(self, problems: Sequence[int]) -> Vector:
        """Return the costs of all rows in some problems, or in any of them, (1, n)."""
        n, some = len(self.codes), problems[:1] if self.same_costs else problems
        return np.stack([check_costs(self.C, self.weights(k), n) for k in some])

    def class_costs(self) -> tuple[list[float], list[float]]:
        """Return the summed costs of both sides of each problem."""
        weight, factor = self.parts[0]
        if type(self.reduction) is MultiLabel:
            return self.reduction.sides(weight, factor, self.C)
        total = np.bincount(self.codes, weight, len(factor)) * self.C
        return self.reduction.costs(total.tolist(), factor.tolist())

    def moments(self, k: int, w: Vector) -> Vector:
        """Return ``sum_i c_i f_i^p`` of the decision values f_i, for p = 0, 1 and 2."""
        problem = cast(BinaryProblem, self.problem(k))
        values, cost = problem.margins(w) * problem.y, problem.cost
        first = cost * values
        return np.array([cost.sum(), first.sum(), (first * values).sum()])

    def fold(self, k: int) -> slice:
        """Return the problems of fold k."""
        return slice(k * self.count, (k + 1) * self.count)

    def coef(self, w: Sequence[Vector]) -> tuple[Vector, Vector]:
        """Return the coefficients and intercepts of the problems of one fold."""
        if self.joint:
            joint = cast(CrammerSingerProblem, self.problem(0))
            coef, intercept = joint.coef(w[0])
            if len(coef) == 2:
                coef, intercept = coef[1:] - coef[:1], intercept[1:] - intercept[:1]
            return self.columns.spread(coef), intercept
        found = [self.rows.coef(one) for one in w]
        coef = np.stack([row for row, _ in found])
        return self.columns.spread(coef), np.array([bias for _, bias in found])

    def packed(
        self, duals: list[StoredDuals]
    ) -> tuple[NDArray[np.intp], NDArray[np.int32], Table]:
        """Return the support vectors of the problems of one fold.

        These are their rows, sorted, their number in each class, shape (K,), and ``y_i
        alpha_i``, shape (tables, n_support). The list of `duals` of many problems is
        emptied.
        """
        if self.many:
            support, coef = narrowed(duals, self.reduction.signs, self.codes)
        else:
            places = None
            if self.points is not None:
                places = [self.place(k) for k in range(self.count)]
            alpha = cast("Sequence[Vector]", duals)
            table = self.reduction.pack(alpha, self.codes, places)
            support = np.flatnonzero(table.any(axis=0))
            coef = np.ascontiguousarray(table[:, support])
        counts = self.reduction.counts(self.codes, support)
        return support, counts.astype(np.int32), coef

    def stored(self, alpha: Vector) -> SparseDuals:
        # Small arrays leave holes beside the packed ones.
        return self._taking([super().stored(alpha)], 2)[0]

    def stored_rows(self, table: Vector) -> list[SparseDuals]:
        """Return the duals of some of many problems as the batch keeps them.

        `table`: shape (problems, n). Raises MemoryError as `stored` does.
        """
        if self._pages is None:
            self._pages = Pages(len(self))
        return self._taking(self._pages.put(table), 1)

    def _taking(self, found: list[SparseDuals], times: int) -> list[SparseDuals]:
        """Check that there is memory for the duals of all problems, `times` over."""
        before = self._taken[0]
        self._taken[0] += len(found)
        self._taken[1] += sum(one.nbytes for one in found)
        known, taken = self._taken
        if known // MANY > before // MANY:
            make_room(
                times * len(self) * taken // known - taken,
                f"the dual variables of {len(self)} problems, if all have as many as "
                f"the first {known}",
                "train on fewer classes or rows",
            )
        return found

    def duals(self, table: Table, k: int) -> Vector:
        """Return ``alpha`` of problem k from a table of all rows."""
        k %= self.count
        found = self.reduction.unpack(table, self.codes, k)
        return found if self.points is None else found[self.place(k)]

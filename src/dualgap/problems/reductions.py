"""Several classes as binary problems: one versus the rest, one versus one, or joint.

Several labels per row are as many independent problems.

The classes of a reduction are numbers, 0 to K - 1. A decision is positive for the
positive class of its problem: the class itself, one versus the rest, and the second
class of a pair. :class:`SVC` counts as LIBSVM does: with three classes or more the
first class of its pairs is positive, and of several classes with most votes the first
one wins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import combinations
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..certificate import Certificate
from ..data.types import ProblemLabel
from ..losses import Vector
from .duals import Table, dense_table

Codes = NDArray[np.intp]
Signs = NDArray[np.int8]
Mask = NDArray[np.bool_]
#: Scores or votes.
Numbers = Vector | NDArray[np.intp]


class Classifier(Protocol):
    """A fitted classifier."""

    classes_: NDArray[np.generic]


class Reduction(ABC):
    """Binary problems that K classes make, and the class that their decisions mean.

    - `classes`: their number K.
    - `subjects`: the positive class of each problem, or its pair of classes.
    - `tables`: rows of the table of dual variables that :meth:`pack` makes.
    - `several`: plural noun for the problems.
    """

    several: ClassVar[str]
    subjects: Sequence[int] | Sequence[tuple[int, int]]

    def __init__(self, classes: int) -> None:
        self.classes = classes

    def __len__(self) -> int:
        return len(self.subjects)

    @property
    @abstractmethod
    def tables(self) -> int: ...

    @abstractmethod
    def labels(self, classes: NDArray[np.generic]) -> list[ProblemLabel]:
        """Return the label of each problem: its class, or its pair of classes."""

    def names(self, classes: NDArray[np.generic]) -> list[str]:
        """Return the name of each problem."""
        return [problem_name(label) for label in self.labels(classes)]

    @abstractmethod
    def signs(self, codes: Codes, k: int) -> Signs:
        """Return the labels of all rows in problem k, -1 or +1, shape (n,)."""

    def all_signs(self, codes: Codes) -> Signs:
        """Return the labels of all rows in all problems, (problems, n)."""
        return np.stack([self.signs(codes, k) for k in range(len(self))])

    @abstractmethod
    def weights(self, codes: Codes, k: int, weight: Vector, factor: Vector) -> Vector:
        """Return the weights of all rows in problem k, class weights included, (n,)."""

    def costs(
        self, total: Sequence[float], factor: Sequence[float]
    ) -> tuple[list[float], list[float]]:
        """Return the summed weights of the positive rows and of the others.

        `total` has the summed sample weights of every class, and `factor` its weight.
        A joint problem has no such sums.
        """
        return [], []

    def counts(self, codes: Codes, rows: Codes) -> Codes:
        """Return how many of some rows each class has, (K,)."""
        return np.bincount(codes[rows], minlength=self.classes)

    @abstractmethod
    def pack(
        self, duals: Sequence[Vector], codes: Codes, places: Sequence[Codes] | None
    ) -> Vector:
        """Return ``y_i alpha_i`` of all problems as one table, (tables, n).

        `places` are the rows of each problem; None stands for all rows.
        """

    @abstractmethod
    def unpack(self, table: Table, codes: Codes, k: int) -> Vector:
        """Return ``alpha`` of problem k at all rows, (n,), from a table."""

    @abstractmethod
    def scores(self, values: Vector) -> Vector:
        """Return a score for each class, (n, K), from decisions, (n, problems).

        Two classes have one score, (n,), which is positive for the second class.
        """

    def decide(self, values: Vector) -> Codes:
        """Return the class of each row, (n,), from decisions, (n, problems)."""
        scores = self.scores(values)
        if scores.ndim == 1:
            return (scores > 0.0).astype(np.intp)
        return scores.argmax(axis=1)

    @abstractmethod
    def score_bounds(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        """Return bounds on :meth:`scores` from bounds on decisions, (n, problems)."""

    def rank_bounds(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        """Return bounds on scores of which the largest is predicted, (n, K) each."""
        return self.score_bounds(lower, upper)

    def margin_bounds(
        self, lower: Vector, upper: Vector, codes: Codes
    ) -> tuple[Vector, Vector]:
        """Return bounds on the margins of rows of these classes, (n,) each.

        With two classes the margin is the decision in the direction of the row's class,
        with more the score of its class minus the largest other.
        """
        if self.classes == 2:
            positive, low, high = codes == 1, lower[:, 0], upper[:, 0]
            return np.where(positive, low, -high), np.where(positive, high, -low)
        least, most = map(np.array, self.rank_bounds(lower, upper))
        n = np.arange(len(codes))
        own = least[n, codes], most[n, codes]
        least[n, codes] = most[n, codes] = -np.inf
        return own[0] - most.max(axis=1), own[1] - least.max(axis=1)

    def proved(self, lower: Vector, upper: Vector, codes: Codes) -> tuple[Mask, Mask]:
        """Return masks of the rows that certainly have other classes, and these.

        With two classes a decision of 0 predicts the first class.
        """
        least, most = self.margin_bounds(lower, upper, codes)
        if self.classes > 2:
            return most < 0.0, least > 0.0
        positive = codes == 1
        wrong = np.where(positive, most <= 0.0, most < 0.0)
        return wrong, np.where(positive, least > 0.0, least >= 0.0)

    def decided(self, lower: Vector, upper: Vector) -> Codes:
        """Return the class that bounds on decisions prove, (n,); -1 if undecided."""
        if self.classes == 2:
            low, high = lower.ravel(), upper.ravel()
            return np.where(low > 0.0, 1, np.where(high <= 0.0, 0, -1))
        return largest(*self._ranks(lower, upper))

    def _ranks(self, lower: Vector, upper: Vector) -> tuple[Numbers, Numbers]:
        return self.score_bounds(lower, upper)


class OneVsRest(Reduction):
    """Problems of each class against all others; one problem for two classes."""

    several = "classes"

    def __init__(self, classes: int) -> None:
        super().__init__(classes)
        self.subjects = range(1, 2) if classes == 2 else range(classes)

    @property
    def tables(self) -> int:
        return len(self.subjects)

    def labels(self, classes: NDArray[np.generic]) -> list[ProblemLabel]:
        known = classes.tolist()
        return [known[k] for k in self.subjects]

    def signs(self, codes: Codes, k: int) -> Signs:
        return np.where(codes == self.subjects[k], np.int8(1), np.int8(-1))

    def all_signs(self, codes: Codes) -> Signs:
        return np.where(
            codes == np.array(self.subjects)[:, None], np.int8(1), np.int8(-1)
        )

    def weights(self, codes: Codes, k: int, weight: Vector, factor: Vector) -> Vector:
        # With more classes the rest has factor 1, as in LIBLINEAR and scikit-learn.
        if self.classes == 2:
            return weight * factor[codes]
        return np.where(codes == self.subjects[k], weight * factor[k], weight)

    def costs(
        self, total: Sequence[float], factor: Sequence[float]
    ) -> tuple[list[float], list[float]]:
        own = [part * each for part, each in zip(total, factor, strict=True)]
        if self.classes == 2:
            return own[1:], own[:1]
        whole = sum(total)
        return own, [whole - part for part in total]

    def pack(
        self,
        duals: Sequence[Vector],
        codes: Codes,
        places: Sequence[Codes] | None = None,
    ) -> Vector:
        table = np.stack(duals)
        table *= self.all_signs(codes)
        return table

    def unpack(self, table: Table, codes: Codes, k: int) -> Vector:
        return np.abs(dense_table(table[[k]])[0])

    def scores(self, values: Vector) -> Vector:
        return values[:, 0] if self.classes == 2 else values

    def score_bounds(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        return self.scores(lower), self.scores(upper)


class MultiLabel(OneVsRest):
    """Independent problems of each label: the rows that have it against the others.

    The codes are the numbers of the rows. A class weight is a pair of factors, for the
    rows without the label and for the rows with it.

    `table`: 1 where a row has a label, shape (n, labels). Predictions do not need it.
    """

    several = "labels"

    def __init__(self, labels: int, table: sparse.csc_matrix | None = None) -> None:
        super().__init__(labels)
        self.subjects, self.table = range(labels), table

    def names(self, classes: NDArray[np.generic]) -> list[str]:
        return [f"label {label!s}" for label in classes.tolist()]

    def rows(self, k: int) -> Codes:
        """Return the rows that have label k."""
        assert self.table is not None
        indices, ends = self.table.indices, self.table.indptr
        return indices[ends[k] : ends[k + 1]]

    def signs(self, codes: Codes, k: int) -> Signs:
        assert self.table is not None
        signs = np.full(self.table.shape[0], -1, np.int8)
        signs[self.rows(k)] = 1
        return signs[codes]

    all_signs = Reduction.all_signs

    def weights(self, codes: Codes, k: int, weight: Vector, factor: Vector) -> Vector:
        without, having = factor[k]
        return weight * np.where(self.signs(codes, k) > 0, having, without)

    def sides(
        self, weight: Vector | None, factor: Vector, C: float
    ) -> tuple[list[float], list[float]]:
        """Return the summed costs of the rows with each label, and of the others."""
        assert self.table is not None
        weight = np.ones(self.table.shape[0]) if weight is None else weight
        positive = np.array([weight[self.rows(k)].sum() for k in range(self.classes)])
        negative = np.maximum(weight.sum() - positive, 0.0)
        own = C * positive * factor[:, 1], C * negative * factor[:, 0]
        return own[0].tolist(), own[1].tolist()

    def counts(self, codes: Codes, rows: Codes) -> Codes:
        assert self.table is not None
        used = np.zeros(self.table.shape[0])
        used[codes[rows]] = 1.0
        return (self.table.T @ used).astype(np.intp)

    def decide(self, values: Vector) -> Codes:
        """Return 1 where a row has a label and 0 elsewhere, (n, labels)."""
        return (values > 0.0).astype(np.intp)

    def decided(self, lower: Vector, upper: Vector) -> Codes:
        """Return the labels that bounds prove, (n, labels); -1 where undecided."""
        return np.where(lower > 0.0, 1, np.where(upper <= 0.0, 0, -1))

    def scores(self, values: Vector) -> Vector:
        return values


class Joint(OneVsRest):
    """Crammer and Singer's problem; its decisions are used as one versus the rest.

    Its dual variables have one entry per row and class, also for two classes.
    """

    several = "problems"

    def __len__(self) -> int:
        return 1

    @property
    def tables(self) -> int:
        return self.classes

    def labels(self, classes: NDArray[np.generic]) -> list[ProblemLabel]:
        return [classes.tolist()[-1]]

    def names(self, classes: NDArray[np.generic]) -> list[str]:
        return ["all classes"]

    costs = Reduction.costs

    def weights(self, codes: Codes, k: int, weight: Vector, factor: Vector) -> Vector:
        return weights_of_rows(codes, weight, factor)

    def pack(
        self,
        duals: Sequence[Vector],
        codes: Codes,
        places: Sequence[Codes] | None = None,
    ) -> Vector:
        return duals[0].reshape(-1, self.classes).T

    def unpack(self, table: Table, codes: Codes, k: int) -> Vector:
        return np.ascontiguousarray(table.T).ravel()


class OneVsOne(Reduction):
    """Problems of the pairs of classes (0, 1), (0, 2), ..., (K - 2, K - 1).

    The dual variables of all pairs share one table in LIBSVM's layout: a row of class i
    has its coefficient against class j in row j - 1 of the table if i < j, in row j if
    j < i.

    `libsvm`: whether the first class of a pair is positive and the first class with
    most votes wins, as in LIBSVM, for three classes or more. `break_ties`: whether with
    `libsvm` the most confident class with most votes wins.
    """

    several = "pairs"
    subjects: Sequence[tuple[int, int]]

    def __init__(
        self, classes: int, *, libsvm: bool = False, break_ties: bool = False
    ) -> None:
        super().__init__(classes)
        self.subjects = list(combinations(range(classes), 2))
        self.confident = break_ties or not libsvm
        #: Sign of a decision for the second class.
        self.second = -1 if libsvm and classes > 2 else 1

    @property
    def tables(self) -> int:
        return self.classes - 1

    def labels(self, classes: NDArray[np.generic]) -> list[ProblemLabel]:
        known = classes.tolist()
        if self.classes == 2:
            return [known[1]]
        return [(known[i], known[j]) for i, j in self.subjects]

    def signs(self, codes: Codes, k: int) -> Signs:
        second = np.int8(self.second)
        return np.where(codes == self.subjects[k][1], second, -second)

    def weights(self, codes: Codes, k: int, weight: Vector, factor: Vector) -> Vector:
        every = weights_of_rows(codes, weight, factor)
        return np.where(np.isin(codes, self.subjects[k]), every, 0.0)

    def costs(
        self, total: Sequence[float], factor: Sequence[float]
    ) -> tuple[list[float], list[float]]:
        own = [part * each for part, each in zip(total, factor, strict=True)]
        first = [own[i] for i, _ in self.subjects]
        second = [own[j] for _, j in self.subjects]
        return (second, first) if self.second > 0 else (first, second)

    def pack(
        self, duals: Sequence[Vector], codes: Codes, places: Sequence[Codes] | None
    ) -> Vector:
        n = len(codes)
        table = np.zeros((self.tables, n))
        for k, (i, j) in enumerate(self.subjects):
            place = np.arange(n) if places is None else places[k]
            alpha = duals[k]
            first, second = codes[place] == i, codes[place] == j
            if self.second > 0:
                table[i, place[second]] = alpha[second]
                table[j - 1, place[first]] = 0.0 - alpha[first]
            else:
                table[i, place[second]] = 0.0 - alpha[second]
                table[j - 1, place[first]] = alpha[first]
        return table

    def unpack(self, table: Table, codes: Codes, k: int) -> Vector:
        return np.abs(self.entries(table, codes, k))

    def place(self, codes: Codes, k: int) -> Codes:
        """Return the row of the table for rows of problem k with these classes."""
        i, j = self.subjects[k]
        return np.where(codes == i, j - 1, i)

    def entries(self, table: Table, codes: Codes, k: int) -> Vector:
        """Return ``y_i alpha_i`` of problem k at all rows, (n,), from a table."""
        i, j = self.subjects[k]
        first = np.where(codes == i, table[j - 1], 0.0)
        return np.where(codes == j, table[i], first)

    def scores(self, values: Vector) -> Vector:
        """Return votes, plus confidences squeezed into a third of a vote either way.

        scikit-learn's ``OneVsOneClassifier`` has the same.
        """
        if self.classes == 2:
            return values[:, 0]
        values = self.second * values
        votes, total = np.zeros((2, len(values), self.classes))
        for k, (i, j) in enumerate(self.subjects):
            value = values[:, k]
            total[:, i] -= value
            total[:, j] += value
            votes[:, i] += value <= 0.0
            votes[:, j] += value > 0.0
        return votes + total / (3.0 * (np.abs(total) + 1.0))

    def decide(self, values: Vector) -> Codes:
        if self.classes == 2 or self.confident:
            return super().decide(values)
        if len(values) == 1:  # as below, without a call for each class
            pairs = np.array(self.subjects)
            ahead = values[0] <= 0.0 if self.second > 0 else values[0] > 0.0
            winners = np.where(ahead, pairs[:, 0], pairs[:, 1])
            return np.array([np.bincount(winners, minlength=self.classes).argmax()])
        # Positive for the first class: a value of 0 is a vote for the second one.
        first, won = values.T > 0.0, np.zeros((self.classes, len(values)), np.int32)
        if self.second > 0:
            first = values.T <= 0.0
        end = 0
        for i in range(self.classes - 1):  # the pairs (i, i + 1), ..., (i, K - 1)
            begin, end = end, end + self.classes - 1 - i
            won[i] += first[begin:end].sum(axis=0, dtype=np.int32)
            won[i + 1 :] += ~first[begin:end]
        return won.argmax(axis=0)

    def wins(self, lower: Vector, upper: Vector) -> tuple[Codes, Codes]:
        """Return the certain and the possible votes of each class, (n, K) each."""
        if self.second < 0:
            lower, upper = -upper, -lower
        certain = np.zeros((len(lower), self.classes), np.intp)
        possible = np.zeros_like(certain)
        for k, (i, j) in enumerate(self.subjects):
            certain[:, i] += upper[:, k] <= 0.0
            certain[:, j] += lower[:, k] > 0.0
            possible[:, i] += lower[:, k] <= 0.0
            possible[:, j] += upper[:, k] > 0.0
        return certain, possible

    def score_bounds(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        if self.classes == 2:
            return lower.ravel(), upper.ravel()
        certain, possible = self.wins(lower, upper)
        if self.second < 0:
            lower, upper = -upper, -lower
        least, most = np.zeros((2, len(lower), self.classes))
        for k, (i, j) in enumerate(self.subjects):
            least[:, i] -= upper[:, k]
            most[:, i] -= lower[:, k]
            least[:, j] += lower[:, k]
            most[:, j] += upper[:, k]

        def squeezed(total: Vector) -> Vector:
            with np.errstate(invalid="ignore"):
                inside = total / (3.0 * (np.abs(total) + 1.0))
            return np.where(np.isinf(total), np.sign(total) / 3.0, inside)

        few = 1e-13  # rounding of the sums, whose squeezed values are below 1/3
        return certain + squeezed(least) - few, possible + squeezed(most) + few

    def _ranks(self, lower: Vector, upper: Vector) -> tuple[Numbers, Numbers]:
        # Votes alone decide: a confidence never makes up for a whole vote.
        return self.wins(lower, upper)

    def rank_bounds(self, lower: Vector, upper: Vector) -> tuple[Vector, Vector]:
        if self.classes == 2 or self.confident:
            return self.score_bounds(lower, upper)
        certain, possible = self.wins(lower, upper)
        first = 0.5 / self.classes * np.arange(self.classes)
        return certain - first, possible - first


#: Reductions by their words: the `multi_class` of an estimator, or "labels".
REDUCTIONS: dict[str, type[Reduction]] = {
    "ovr": OneVsRest, "ovo": OneVsOne, "crammer_singer": Joint, "labels": MultiLabel
}  # fmt: skip


def reduction_of(
    multi_class: str, classes: int, table: sparse.csc_matrix | None = None
) -> Reduction:
    """Return the reduction of K classes by its word, or of K labels."""
    if table is not None:
        return MultiLabel(classes, table)
    if multi_class == "ovo" and classes <= 2:  # a single pair
        return OneVsRest(classes)
    return REDUCTIONS[multi_class](classes)


def largest(lower: Numbers, upper: Numbers) -> Codes:
    """Return the class whose score is surely the largest, -1 where there is none."""
    rows = np.arange(len(lower))
    best = lower.argmax(axis=1)
    others = upper.astype(np.float64)
    others[rows, best] = -np.inf
    return np.where(lower[rows, best] > others.max(axis=1), best, -1)


def problem_name(label: ProblemLabel | None) -> str:
    """Return the name of a binary problem: its class, or its two classes."""
    if isinstance(label, tuple):
        return f"{label[0]!s} against {label[1]!s}"
    return f"class {label!s}"


def weights_of_rows(codes: Codes, weight: Vector | None, factor: Vector) -> Vector:
    """Return the weights of all rows, class weights included, (n,)."""
    return factor[codes] if weight is None else weight * factor[codes]


def refuse_missing(classes: NDArray[np.generic], total: ArrayLike) -> None:
    """Raise an error if all rows of a class have weight 0."""
    for label, weight in zip(classes, np.asarray(total), strict=True):
        if not weight > 0.0:
            raise ValueError(
                f"class {label!s} has no row with a positive weight; drop its rows, or "
                "change sample_weight or class_weight"
            )


def has_labels(model: object) -> bool:
    """Whether a fitted classifier gives each row any number of labels."""
    return hasattr(model, "_labels")


def refuse_labels(model: object, who: str) -> None:
    """Raise an error if a classifier gives each row any number of labels."""
    if has_labels(model):
        raise ValueError(
            f"model was fitted with a column of y per label, which {who} does not "
            "support; fit a model on one column, y[:, k]"
        )


def refuse_others(model: object, who: str, *known: type[Reduction]) -> None:
    """Raise an error for a classifier whose reduction is of none of the known types.

    A subclass of one decides in a way of its own, which its user cannot know.
    """
    refuse_labels(model, who)
    if hasattr(model, "classes_") and type(reduction_in(model)) not in known:
        word = getattr(model, "multi_class", "")
        raise ValueError(
            f"{type(model).__name__} with multi_class={word!r} is not supported by "
            f"{who}; use LinearSVC(multi_class='ovr')"
        )


def reduction_in(model: Classifier) -> Reduction:
    """Return the reduction of a fitted classifier of dualgap or scikit-learn."""
    model = getattr(model, "_as_fitted", model)
    classes = len(model.classes_)
    if has_labels(model):
        return MultiLabel(classes)
    if hasattr(model, "kernel"):
        ties = getattr(model, "break_ties", False)
        return OneVsOne(classes, libsvm=True, break_ties=ties)
    return reduction_of(getattr(model, "multi_class", "ovr"), classes)


def quantile_names(quantiles: Sequence[float]) -> list[str]:
    """Return the names of the problems of a quantile regression."""
    return [f"quantile {q:g}" for q in quantiles]


def certificate_of(model: Classifier, parts: Sequence[Certificate]) -> Certificate:
    """Join the certificates of the problems of a fitted model."""
    if len(parts) == 1:
        return parts[0]
    if hasattr(model, "quantile"):
        return Certificate.total(parts, quantile_names(list(model.quantile)))
    return Certificate.total(parts, reduction_in(model).names(model.classes_))

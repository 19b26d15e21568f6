"""Binary problems of a multi-class problem: one versus the rest, or one versus one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..certificate import Certificate
from ..checks import check_constant
from ..data.blocks import RowSource
from ..data.rows import Points
from ..data.types import MatrixLike, ProblemLabel
from ..losses import Vector
from . import one_vs_one, one_vs_rest
from .binary import BinaryProblem

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


__all__ = [
    "BinaryProblems",
    "binary_problems",
    "certificate_of",
    "number_of_problems",
    "problem_labels",
    "problem_name",
    "problem_names",
    "refuse_missing",
]


class OneVsRest:
    """Binary problems of each class against all others; one problem for two classes.

    Parameters
    ----------
    X : {ndarray, sparse matrix, RowStore} of shape (n, d)
        Rows.
    classes : ndarray of shape (K,)
        Labels of the classes.
    codes : ndarray of shape (n,)
        Class of every row, 0 to K - 1.
    weight : ndarray of shape (n,), optional
        Sample weights. None if all sample and class weights are 1.
    factor : ndarray of shape (K,)
        Class weights.
    C : float
        Weight of the loss.
    **options
        As in :class:`dualgap.BinaryProblem`.

    Attributes
    ----------
    rows : BinaryProblem
        The problem over all rows, with the labels of the first problem.
    labels : list
        The positive class of each problem, or its pair of classes.
    names : list of str
        The labels in words; see :func:`problem_name`.
    several : str
        Plural noun for the problems: "classes" or "pairs".
    tables : int
        Number of rows of the table that :meth:`pack` makes.
    """

    several = "classes"

    def __init__(
        self,
        X: MatrixLike,
        classes: NDArray[np.generic],
        codes: NDArray[np.intp],
        weight: Vector | None,
        factor: Vector,
        C: float | None = 1.0,
        **options: Any,
    ) -> None:
        self.codes, self.weight, self.factor = codes, weight, factor
        self.changed = False  # whether weights differ from the weights of `rows`
        self.positive = one_vs_rest.positives(len(classes))
        self.tables = len(self.positive)
        self.labels = [classes[k] for k in self.positive]
        self.names = [problem_name(label) for label in self.labels]
        self.rows = BinaryProblem(
            X, self.signs(0), C, sample_weight=self.weights(0), **options
        )

    def reweighted(self, weight: Vector, factor: Vector) -> OneVsRest:
        """Return the problems of the same rows and classes with other weights."""
        other = copy.copy(self)
        other.weight, other.factor, other.changed = weight, factor, True
        return other

    def signs(self, k: int) -> NDArray[np.int8]:
        """Return the labels of all rows in problem k, -1 or +1, shape (n,)."""
        return one_vs_rest.signs(self.codes, self.positive[k])

    def weights(self, k: int) -> Vector | None:
        """Return the weights of all rows in problem k, shape (n,); None for all 1."""
        if self.weight is None:
            return None
        return one_vs_rest.weights(
            self.codes, self.positive[k], self.weight, self.factor
        )

    def all_signs(self) -> NDArray[np.int8]:
        """Return the labels of all rows in all problems, shape (problems, n)."""
        positive = np.array(self.positive)[:, None]
        return one_vs_rest.signs(self.codes, positive)

    def all_costs(self) -> NDArray[np.float64]:
        """Return the costs of all rows in all problems, or in any: (1, n)."""
        if self.weight is None:
            return self.rows.cost[None]
        return np.stack([self.problem(k).cost for k in range(self.tables)])

    def class_costs(self) -> tuple[list[float], list[float]]:
        """Return the summed costs of the positive rows, and of the others."""
        count = np.bincount(self.codes, self.weight, len(self.factor)).tolist()
        total = [self.rows.C * each for each in count]
        return one_vs_rest.costs(total, self.factor.tolist())

    def problem(self, k: int) -> BinaryProblem:
        """Return problem k."""
        if k == 0 and not self.changed:
            return self.rows
        return self.rows.with_labels(self.signs(k), self.weights(k))

    def pack(self, duals: Sequence[Vector]) -> NDArray[np.float64]:
        """Return ``y_i alpha_i`` of all problems as one table, shape (tables, n)."""
        table = np.stack(duals)
        table *= self.all_signs()
        return table

    def unpack(self, table: NDArray[np.float64], k: int) -> Vector:
        """Return the ``alpha`` of problem k from a table of :meth:`pack`."""
        found: Vector = np.abs(table[k])
        return found


class OneVsOne:
    """Binary problems of each pair of classes, for three classes or more.

    It has the interface of :class:`OneVsRest`. Each problem gets a temporary copy of
    the rows of its two classes, because epochs over all rows, most of them with weight
    0, would take longer. For a store, or if `copies` is False, every problem covers all
    rows, and rows of other classes have weight 0.
    """

    several = "pairs"

    def __init__(
        self,
        X: MatrixLike,
        classes: NDArray[np.generic],
        codes: NDArray[np.intp],
        weight: Vector | None,
        factor: Vector,
        C: float | None = 1.0,
        *,
        copies: bool = True,
        **options: Any,
    ) -> None:
        self.classes, self.codes, self.options = classes, codes, options
        self.tables = len(classes) - 1
        self.pairs = one_vs_one.pairs(len(classes))
        self.labels = [(classes[i], classes[j]) for i, j in self.pairs]
        self.names = [problem_name(label) for label in self.labels]
        self._set_weights(np.ones(len(codes)) if weight is None else weight, factor)
        self.points: Points | None = None
        if copies and not isinstance(X, RowSource):
            # Inspects every row once, so that an error names the row by its number.
            fit_intercept = options.get("fit_intercept", False)
            scaling = options.get("intercept_scaling", 1.0)
            X = self.points = Points.of(X, check_constant(fit_intercept, scaling))
        self.rows = BinaryProblem(X, np.ones(len(codes)), C, **options)

    def _set_weights(self, weight: Vector, factor: Vector) -> None:
        self.weight = weight * factor[self.codes]
        refuse_missing(self.classes, np.bincount(self.codes, self.weight))

    def reweighted(self, weight: Vector, factor: Vector) -> OneVsOne:
        """Return the problems of the same rows and classes with other weights."""
        other = copy.copy(self)
        other._set_weights(weight, factor)
        return other

    def signs(self, k: int) -> NDArray[np.int8]:
        """Return the labels of all rows in problem k, -1 or +1, shape (n,)."""
        return one_vs_one.signs(self.codes, self.pairs[k])

    def weights(self, k: int) -> Vector:
        """Return the weights of all rows in problem k; 0 for rows of other classes."""
        return one_vs_one.weights(self.codes, self.pairs[k], self.weight)

    def class_costs(self) -> tuple[list[float], list[float]]:
        """Return the summed costs of the positive rows, and of the others."""
        count = np.bincount(self.codes, self.weight, len(self.classes)).tolist()
        return one_vs_one.costs([self.rows.C * each for each in count])

    def place(self, k: int) -> NDArray[np.intp]:
        """Return the indices of the rows of problem k."""
        if self.points is None:
            return np.arange(len(self.codes))
        return one_vs_one.rows(self.codes, self.pairs[k], self.weight)

    def problem(self, k: int) -> BinaryProblem:
        """Return problem k."""
        if self.points is None:
            return self.rows.with_labels(self.signs(k), self.weights(k))
        place = self.place(k)
        signs = one_vs_one.signs(self.codes[place], self.pairs[k])
        return BinaryProblem(
            self.points[place], signs, self.rows.C, sample_weight=self.weight[place],
            **self.options,
        )  # fmt: skip

    def pack(self, duals: Sequence[Vector]) -> NDArray[np.float64]:
        """Return ``y_i alpha_i`` as one table, shape (tables, n), as LIBSVM does."""
        places = [self.place(k) for k in range(len(self.pairs))]
        return one_vs_one.pack(duals, places, self.codes, len(self.classes))

    def unpack(self, table: NDArray[np.float64], k: int) -> Vector:
        """Return the ``alpha`` of problem k from a table of :meth:`pack`."""
        return one_vs_one.unpack(table, self.codes, self.pairs[k])[self.place(k)]


BinaryProblems = OneVsRest | OneVsOne


def binary_problems(
    multi_class: str,
    X: MatrixLike,
    classes: NDArray[np.generic],
    *args: Any,
    copies: bool = True,
    **options: Any,
) -> BinaryProblems:
    """Return the binary problems of "ovr" or "ovo"; two classes make one problem."""
    if multi_class == "ovo" and len(classes) > 2:
        return OneVsOne(X, classes, *args, copies=copies, **options)
    return OneVsRest(X, classes, *args, **options)


def number_of_problems(multi_class: str, classes: int) -> int:
    """Return the number of binary problems, each with its own coefficients."""
    if classes == 2:
        return 1
    return classes * (classes - 1) // 2 if multi_class == "ovo" else classes


def refuse_missing(classes: NDArray[np.generic], total: ArrayLike) -> None:
    """Raise an error if all rows of a class have weight 0.

    Raises
    ------
    ValueError
        Naming the first such class.
    """
    for label, weight in zip(classes, np.asarray(total), strict=True):
        if not weight > 0.0:
            raise ValueError(
                f"class {label!s} has no row with a positive weight; drop its rows, or "
                "change sample_weight or class_weight"
            )


def problem_name(label: ProblemLabel | None) -> str:
    """Return the name of a binary problem: its class, or its two classes."""
    if isinstance(label, tuple):
        return f"{label[0]!s} against {label[1]!s}"
    return f"class {label!s}"


def certificate_of(model: BaseEstimator, parts: Sequence[Certificate]) -> Certificate:
    """Join the certificates of the binary problems of a fitted classifier."""
    if len(parts) == 1:
        return parts[0]
    return Certificate.total(parts, problem_names(model))


def problem_names(model: BaseEstimator) -> list[str]:
    """Return the name of each certificate of a classifier."""
    return [problem_name(of) for of in problem_labels(model)]


def problem_labels(model: BaseEstimator) -> list[ProblemLabel]:
    """Return the label of each certificate of a classifier: a class or a pair.

    With two classes, and with a joint problem of all classes, it is the last class.
    """
    classes = model.classes_.tolist()
    kind = getattr(model, "multi_class", "ovr")
    if len(classes) == 2 or kind == "crammer_singer":
        return [classes[-1]]
    if hasattr(model, "kernel") or kind == "ovo":
        return [(classes[i], classes[j]) for i, j in one_vs_one.pairs(len(classes))]
    return list(classes)

"""The binary problems that the rows of several classes make."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import one_vs_one, one_vs_rest
from ..blocks import RowSource
from ..losses import Vector
from ..problem import Problem

__all__ = [
    "BinaryProblems",
    "binary_problems",
    "number_of_problems",
    "problem_labels",
    "problem_name",
    "refuse_missing",
]


class OneVsRest:
    """Each class against all others; two classes make one problem.

    Parameters
    ----------
    X : {ndarray, sparse matrix, RowStore} of shape (n, d)
    classes : ndarray of shape (K,)
    codes : ndarray of shape (n,)
        Class of every row, 0 to K - 1.
    weight : ndarray of shape (n,), optional
        Sample weights. None: all 1, with factors of 1.
    factor : ndarray of shape (K,)
        Class weights.
    C : float
    **options
        As of :class:`Problem`.

    Attributes
    ----------
    rows : Problem
        All rows.
    labels : list
        What each problem is about: its positive class, or a pair.
    names : list of str
        The same in words.
    several : str
        Plural of that.
    tables : int
        Rows of the table that :meth:`pack` makes.
    """

    several = "classes"

    def __init__(
        self,
        X: Any,
        classes: NDArray[Any],
        codes: NDArray[np.intp],
        weight: Vector | None,
        factor: Vector,
        C: float | None = 1.0,
        **options: Any,
    ) -> None:
        self.codes, self.weight, self.factor = codes, weight, factor
        self.changed = False  # since the rows were given weights
        self.positive = one_vs_rest.positives(len(classes))
        self.tables = len(self.positive)
        self.labels = [classes[k] for k in self.positive]
        self.names = [problem_name(label) for label in self.labels]
        self.rows = Problem(
            X, self.signs(0), C, sample_weight=self.weights(0), **options
        )

    def reweighted(self, weight: Vector, factor: Vector) -> OneVsRest:
        """The same rows and classes with other weights."""
        other = copy.copy(self)
        other.weight, other.factor, other.changed = weight, factor, True
        return other

    def signs(self, k: int) -> NDArray[np.int8]:
        """Labels of all rows in one of the problems."""
        return one_vs_rest.signs(self.codes, self.positive[k])

    def weights(self, k: int) -> Vector | None:
        """Weights of all rows in one of the problems; None for 1."""
        if self.weight is None:
            return None
        return one_vs_rest.weights(
            self.codes, self.positive[k], self.weight, self.factor
        )

    def problem(self, k: int) -> Problem:
        """One of the problems."""
        if k == 0 and not self.changed:
            return self.rows
        return self.rows.with_labels(self.signs(k), self.weights(k))

    def pack(self, duals: Sequence[Vector]) -> NDArray[np.float64]:
        """``y_i alpha_i`` of all problems in one table, shape (tables, n)."""
        table = np.stack(duals)
        for k, row in enumerate(table):
            row *= self.signs(k)
        return table

    def unpack(self, table: NDArray[np.float64], k: int) -> Vector:
        """``alpha`` of the rows of one problem, from such a table."""
        found: Vector = np.abs(table[k])
        return found


class OneVsOne:
    """Each class against each other one: as :class:`OneVsRest`, for 3 classes or more.

    A problem has the rows of its two classes alone, which are copied for it and
    forgotten after it: passes over all rows, most of them of weight 0, take longer.
    Those of a store have weight 0 all the same, and all if `copies` is False.
    """

    several = "pairs"

    def __init__(
        self,
        X: Any,
        classes: NDArray[Any],
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
        # Looks at every row once, and names a bad one by its number.
        self.rows = Problem(X, np.ones(len(codes)), C, **options)
        self.X: Any = None
        if copies and not isinstance(X, RowSource):
            self.X = X.tocsr() if hasattr(X, "tocsr") else X

    def _set_weights(self, weight: Vector, factor: Vector) -> None:
        self.weight = weight * factor[self.codes]
        refuse_missing(self.classes, np.bincount(self.codes, self.weight))

    def reweighted(self, weight: Vector, factor: Vector) -> OneVsOne:
        """As of :class:`OneVsRest`."""
        other = copy.copy(self)
        other._set_weights(weight, factor)
        return other

    def signs(self, k: int) -> NDArray[np.int8]:
        """As of :class:`OneVsRest`."""
        return one_vs_one.signs(self.codes, self.pairs[k])

    def weights(self, k: int) -> Vector:
        """As of :class:`OneVsRest`: 0 for the rows of other classes."""
        return one_vs_one.weights(self.codes, self.pairs[k], self.weight)

    def place(self, k: int) -> NDArray[np.intp]:
        """The rows of a problem."""
        if self.X is None:
            return np.arange(len(self.codes))
        return one_vs_one.rows(self.codes, self.pairs[k], self.weight)

    def problem(self, k: int) -> Problem:
        """One of the problems."""
        if self.X is None:
            return self.rows.with_labels(self.signs(k), self.weights(k))
        place = self.place(k)
        signs = one_vs_one.signs(self.codes[place], self.pairs[k])
        return Problem(
            self.X[place], signs, self.rows.C, sample_weight=self.weight[place],
            **self.options,
        )  # fmt: skip

    def pack(self, duals: Sequence[Vector]) -> NDArray[np.float64]:
        """As of :class:`OneVsRest`; the layout is that of LIBSVM."""
        places = [self.place(k) for k in range(len(self.pairs))]
        return one_vs_one.pack(duals, places, self.codes, len(self.classes))

    def unpack(self, table: NDArray[np.float64], k: int) -> Vector:
        """As of :class:`OneVsRest`."""
        return one_vs_one.unpack(table, self.codes, self.pairs[k])[self.place(k)]


BinaryProblems = OneVsRest | OneVsOne


def binary_problems(
    multi_class: str,
    X: Any,
    classes: NDArray[Any],
    *args: Any,
    copies: bool = True,
    **options: Any,
) -> BinaryProblems:
    """The problems of "ovr" or "ovo"; two classes make one either way."""
    if multi_class == "ovo" and len(classes) > 2:
        return OneVsOne(X, classes, *args, copies=copies, **options)
    return OneVsRest(X, classes, *args, **options)


def number_of_problems(multi_class: str, classes: int) -> int:
    """How many problems, each with coefficients of its own, some classes make."""
    if classes == 2:
        return 1
    return classes * (classes - 1) // 2 if multi_class == "ovo" else classes


def refuse_missing(classes: NDArray[Any], total: ArrayLike) -> None:
    """Refuse classes whose rows all have no weight.

    Raises
    ------
    ValueError
    """
    for label, weight in zip(classes, np.asarray(total), strict=True):
        if not weight > 0.0:
            raise ValueError(
                f"sample_weight and class_weight leave class {label!s} no row with a "
                "positive weight; drop its rows"
            )


def problem_name(label: Any) -> str:
    """What a binary problem is about, in words: a class, or two."""
    if isinstance(label, tuple):
        return f"{label[0]!s} against {label[1]!s}"
    return f"class {label!s}"


def problem_labels(model: Any) -> list[Any]:
    """What each certificate of a classifier is about: a class, or two of them.

    Of two classes, and of a problem of all of them, the last class.
    """
    classes = model.classes_.tolist()
    kind = getattr(model, "multi_class", "ovr")
    if len(classes) == 2 or kind == "crammer_singer":
        return [classes[-1]]
    if hasattr(model, "kernel") or kind == "ovo":
        return [(classes[i], classes[j]) for i, j in one_vs_one.pairs(len(classes))]
    return list(classes)

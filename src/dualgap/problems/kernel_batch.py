"""Kernel problems over the same rows."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ..certificate import Bounds
from ..checks import check_costs
from ..data.rows import Points
from ..data.types import ProblemLabel
from ..kernels.functions import Kernel, Precomputed
from ..kernels.gram import Gram, Matrix, Pairs
from ..losses import Vector
from .base import Problem, Proof
from .batch import Batch, S, SingleBatch
from .kernel import KernelProblem
from .kernel_nu import InfeasibleNuError, NuClassification, largest_nu
from .reductions import OneVsOne, refuse_missing
from .rounding import Rounding
from .starts import extrapolated

Signs = NDArray[np.int8]


class SingleKernelBatch(SingleBatch):
    """One kernel problem, or one for each quantile.

    - `problem`, `name`, `make`: as for :class:`SingleBatch`.
    - `points`: all rows.
    - `place`: those in use.
    """

    def __init__(
        self,
        problem: Problem | Sequence[Problem],
        name: str,
        make: Callable[[float], Problem | Sequence[Problem]],
        *,
        points: Points,
        place: NDArray[np.intp],
        kernel: Kernel,
    ) -> None:
        super().__init__(problem, name, make)
        self.points, self.place, self.kernel = points, place, kernel

    def expansion(
        self, k: int, coefficients: Vector
    ) -> tuple[NDArray[np.intp], Vector]:
        """Return the rows of the problem, and the factors of their kernel rows."""
        return self.place, coefficients

    def begin(self, k: int, problem: Problem, C: float, alpha: Vector) -> Vector:
        return alpha if C == self.C else self.along(k, problem, [(C, alpha)])

    def along(
        self, k: int, problem: Problem, past: list[tuple[float, Vector]]
    ) -> Vector:
        return extrapolated(cast(KernelProblem, problem), self.C, past)


class KernelBatch(Batch):
    """Problems of the pairs of classes of a kernel classifier.

    - `points`: all rows; for a precomputed kernel, the whole matrix.
    - `kernel`: its gamma is resolved.
    - `classes`: shape (K,).
    - `codes`: class of every row, shape (n,).
    - `weight`: weights of the rows, class weights included, shape (n,). Rows of weight
      0 are left out.
    - `cache_size`: megabytes for kernel values of all problems.
    - `room`: returns how many problems of at most a number of rows may be in use at a
      time.
    - `**options`: as in :class:`dualgap.kernel.KernelProblem`: the loss and the kind of
      bias.
    - `order`: the rows in use, sorted by class, as indices into all rows, shape (m,).
    - `points`, once built: these rows. For a precomputed kernel, the whole matrix in
      its original order, because reordering would copy it.
    - `bounds`: class c has the rows bounds[c] to bounds[c + 1] - 1 of `order`.
    - `weight`: weights of these rows, shape (m,).
    """

    kind = "kernel"

    def __init__(
        self,
        points: Points,
        kernel: Kernel,
        classes: NDArray[np.generic],
        codes: NDArray[np.intp],
        weight: Vector,
        C: float,
        reduction: OneVsOne,
        *,
        cache_size: float,
        room: Callable[[int], int],
        **options: Any,
    ) -> None:
        self.kernel, self.classes, self.reduction = kernel, classes, reduction
        self.names = reduction.names(classes)
        self.several, self.cache_size = reduction.several, cache_size
        self.room, self.options = room, options
        kept = np.flatnonzero(weight > 0.0)
        self.order = kept[np.argsort(codes[kept], kind="stable")]
        ordered = codes[self.order]
        self.bounds = np.searchsorted(ordered, np.arange(len(classes) + 1)).tolist()
        refuse_missing(classes, np.diff(self.bounds))
        self.weight, self.C = weight[self.order], C
        self.precomputed = isinstance(kernel, Precomputed)
        whole = len(self.order) == len(codes) and bool((codes[:-1] <= codes[1:]).all())
        self.points = points if whole or self.precomputed else points[self.order]
        self.matrices: Callable[[int, int], Matrix] | None = None
        #: Matrices and landmarks of the problems, kept for other values of C.
        self.kept: dict[int, Any] | None = None

    def label(self, k: int) -> ProblemLabel:
        return self.reduction.labels(self.classes)[k]

    def at(self, C: float) -> KernelBatch:
        other = copy.copy(self)
        other.C = C
        return other

    def for_path(self) -> KernelBatch:
        other = copy.copy(self)
        sizes = np.diff(self.bounds).astype(np.float64)
        # Float32 values of all pairs, as if their caches held whole matrices.
        whole = sum(
            4e-6 * (sizes[i] + sizes[j]) ** 2 for i, j in self.reduction.subjects
        )
        if len(self) == 1 or whole <= self.cache_size:
            other.kept = {}
        return other

    def takes_long(self, warm: bool) -> bool:
        return True  # copies rows, computes norms and the kernel rows of a warm start

    def unreached(self, k: int) -> Proof:
        """Return a proof of the zero model, whose P is the sum of the costs."""
        cost = self.C * self.weights_of(k)
        total, zero = float(cost.sum()), np.zeros(len(cost))
        bounds = Bounds.proved(total, Rounding.summed * total, 0.0)
        return Proof(zero, zero, bounds.certificate, 0.0)

    @property
    def cost(self) -> Vector:
        """Costs of the rows in `order`, (m,)."""
        return check_costs(self.C, self.weight, len(self.weight))

    def coef(self, k: int, coefficients: Vector) -> Vector:
        """Return the factors of the kernel rows in the decisions of problem k."""
        return coefficients * self.signs(k)

    def expansion(
        self, k: int, coefficients: Vector
    ) -> tuple[NDArray[np.intp], Vector]:
        """Return the rows of problem k, and the factors of their kernel rows."""
        return self.order[self.place(k)], self.coef(k, coefficients)

    @property
    def at_a_time(self) -> int:
        # Each pair must have enough cache that sharing does not change its result.
        sizes = sorted(end - begin for begin, end in pairwise(self.bounds))
        return max(1, min(len(self), self.room(sum(sizes[-2:]))))

    def prepare(self) -> None:
        if self.matrices is not None:
            return
        if len(self.classes) == 2 and not self.precomputed:
            # A function that knew this batch would keep it alive.
            given = self.points, self.kernel, self.cache_size
            self.matrices = lambda i, j: Gram(*given)
            return
        order = self.order if self.precomputed else None
        self.matrices = Pairs(
            self.points,
            self.kernel,
            self.bounds,
            self.cache_size,
            self.at_a_time,
            order,
        ).pair

    def share(self, whole: Matrix) -> None:
        """Take kernel values from the matrix of all rows."""
        classes = [self.order[self.rows_of(c)] for c in range(len(self.classes))]
        self.matrices = lambda i, j: whole.subset(
            np.concatenate([classes[i], classes[j]])
        )

    def rows_of(self, c: int) -> slice:
        """Return the rows of class c, in `order`."""
        return slice(self.bounds[c], self.bounds[c + 1])

    def place(self, k: int) -> NDArray[np.intp]:
        """Return the rows of problem k, as indices into `order`."""
        i, j = self.reduction.subjects[k]
        m = np.arange(len(self.order))
        return np.concatenate([m[self.rows_of(i)], m[self.rows_of(j)]])

    def signs(self, k: int) -> NDArray[np.int8]:
        """Return the labels of the rows of problem k, -1 or +1."""
        sizes = [
            self.bounds[c + 1] - self.bounds[c] for c in self.reduction.subjects[k]
        ]
        second = self.reduction.second
        return np.repeat(np.array([-second, second], np.int8), sizes)

    def weights_of(self, k: int) -> Vector:
        """Return the weights of the rows of problem k."""
        i, j = self.reduction.subjects[k]
        return np.concatenate(
            [self.weight[self.rows_of(i)], self.weight[self.rows_of(j)]]
        )

    def problem(self, k: int) -> KernelProblem:
        self.prepare()
        assert self.matrices is not None
        matrix = None if self.kept is None else self.kept.get(k)
        if matrix is None:
            matrix = self.matrices(*self.reduction.subjects[k])
            if self.kept is not None:
                self.kept[k] = matrix
        return self._problem(matrix, self.signs(k), self.weights_of(k))

    def _problem(self, matrix: Matrix, signs: Signs, weight: Vector) -> KernelProblem:
        return KernelProblem(
            matrix, signs, self.C, sample_weight=weight, **self.options
        )

    def entries(self, table: Vector, k: int) -> Vector:
        """Return the entries of problem k in a table of :meth:`table`."""
        i, j = self.reduction.subjects[k]
        return np.concatenate(
            [table[j - 1, self.rows_of(i)], table[i, self.rows_of(j)]]
        )

    def table(self, coef: Sequence[Vector]) -> Vector:
        """Return ``y_i alpha_i`` of all problems in LIBSVM's layout, (K - 1, m)."""
        table = np.zeros((self.reduction.tables, len(self.order)))
        for (i, j), own in zip(self.reduction.subjects, coef, strict=True):
            first, second = self.rows_of(i), self.rows_of(j)
            split = first.stop - first.start
            table[j - 1, first], table[i, second] = own[:split], own[split:]
        return table

    def along(
        self, k: int, problem: Problem, past: list[tuple[float, Vector]]
    ) -> Vector:
        return extrapolated(cast(KernelProblem, problem), self.C, past)

    def begin(self, k: int, problem: Problem, C: float, alpha: Vector) -> Vector:
        return extrapolated(cast(KernelProblem, problem), self.C, [(C, alpha)])


class NuBatch(KernelBatch):
    """Problems of the pairs of classes of a nu-SVC.

    Their solutions are LIBSVM's models: all is divided by rho.
    """

    kind = "kernel-nu"

    def refuse_infeasible(self) -> None:
        """Raise an error if the classes of a pair do not allow the nu."""
        weights = [self.weight[self.rows_of(c)] for c in range(len(self.classes))]
        most = [largest_nu(weights[i], weights[j]) for i, j in self.reduction.subjects]
        k, nu = int(np.argmin(most)), self.options["nu"]
        if nu > most[k] * (1.0 + 1e-9):
            raise InfeasibleNuError(nu, most[k], self.names[k])

    def _problem(self, matrix: Matrix, signs: Signs, weight: Vector) -> KernelProblem:
        found = NuClassification(
            matrix, signs, self.options["nu"], sample_weight=weight
        )
        return cast(KernelProblem, found)

    def unreached(self, k: int) -> Proof:
        """Return a proof of the zero model, whose P is 0."""
        problem = self.problem(k)
        zero = np.zeros(problem.n)
        bounds = Bounds.proved(0.0, 0.0, problem.lowest)
        certificate = replace(bounds.certificate, floor=problem.floor)
        return Proof(zero, zero, certificate, 0.0)

    def finish(self, k: int, problem: Problem, solution: S) -> S:
        found = vars(solution)
        if not np.isfinite(found["decisions"]).all():  # stopped before any proof
            return solution
        nu_problem = cast(NuClassification, problem)
        rho = nu_problem.scale(found["decisions"] - found["bias"])
        scaled = {name: found[name] / rho for name in ("alpha", "bias", "decisions")}
        return replace(solution, **scaled)  # type: ignore[type-var]

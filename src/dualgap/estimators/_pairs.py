"""Training of a kernel SVM's pairs of classes, over rows that are sorted by class."""

from __future__ import annotations

from collections.abc import Callable as Function
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple, Protocol

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from ..certificate import Bounds, Certificate, Status
from ..checks import check_costs
from ..data.rows import Points
from ..data.types import MatrixLike
from ..kernel import BlockSolver, Gram, KernelProblem, Nystroem, Precomputed
from ..kernels.functions import Kernel
from ..kernels.gram import Matrix, Pairs, rows_in
from ..losses import Hinge, Loss, SquaredHinge, Vector, get_loss
from ..problems.base import EMPTY
from ..problems.kernel import Bias
from ..problems.kernel_matrix import IndefiniteKernelError
from ..problems.rounding import Rounding
from ..solvers import Auto
from ..solvers.kernel.base import KernelSolver
from ..solvers.kernel.pairs import SolvedPairs, solve_pairs
from ..training import HISTORY_DTYPE, Solution, ctrl_c, solve
from ._libsvm import CAN_BE_INDEFINITE, trained_by_libsvm
from ._together import SolvedTogether
from .training import Callback, Trainable, Training, fit_all

__all__ = ["PairModels", "PairRows", "PairTraining", "TrainedPair"]


class PairParameters(Trainable, Protocol):
    """Parameters of an estimator that the training of its pairs reads."""

    C: float
    loss: str | Hinge | SquaredHinge
    solver: str | KernelSolver
    cache_size: float
    n_jobs: int | None
    _may_be_unproved: bool


class TrainedPair(NamedTuple):
    """Model of a pair of classes: ``y_i alpha_i`` of its rows, bias, and solution."""

    coef: Vector
    intercept: float
    solution: Solution


class PairModels(NamedTuple):
    """Models of all pairs of classes.

    Attributes
    ----------
    coef : ndarray of shape (n_classes - 1, m)
        ``y_i alpha_i`` of the rows of :class:`PairRows`. In the pair (i, j) the rows of
        class i have their entries in row j - 1, the rows of class j in row i.
    intercept : ndarray of shape (n_pairs,)
    certificate : Certificate
        With a part per pair, if there are several.
    epochs : int
        The largest number of epochs of a pair.
    histories : list of structured ndarray
        One for each pair.
    """

    coef: Vector
    intercept: Vector
    certificate: Certificate
    epochs: int
    histories: list[NDArray[np.void]]

    @classmethod
    def of(
        cls, rows: PairRows, trained: Sequence[TrainedPair], names: Sequence[str]
    ) -> PairModels:
        """Join the models of pairs that were trained one by one."""
        classes = len(rows.bounds) - 1
        coef = np.zeros((classes - 1, len(rows.order)))
        for (i, j), pair in zip(combinations(range(classes), 2), trained, strict=True):
            first, second = rows.of(i), rows.of(j)
            split = first.stop - first.start
            coef[j - 1, first], coef[i, second] = pair.coef[:split], pair.coef[split:]
        parts = [pair.solution.certificate for pair in trained]
        return cls(
            coef,
            np.array([pair.intercept for pair in trained]),
            Certificate.total(parts, names),
            max(part.epochs for part in parts),
            [pair.solution.history for pair in trained],
        )


class PairRows:
    """Training rows of positive weight, sorted by class.

    Attributes
    ----------
    points : Points
        These rows in sorted order. For a precomputed kernel, the whole matrix in its
        original order, because reordering would copy it.
    order : ndarray of shape (m,)
        Indices of the rows in the training data, class by class.
    """

    def __init__(
        self, points: Points, kernel: Kernel, codes: NDArray[np.intp], weight: Vector
    ) -> None:
        self.kernel = kernel
        kept = np.flatnonzero(weight > 0.0)
        self.order = kept[np.argsort(codes[kept], kind="stable")]
        self.weight = weight[self.order]
        self.bounds = np.searchsorted(
            codes[self.order], np.arange(codes.max() + 2)
        ).tolist()
        self.precomputed = isinstance(kernel, Precomputed)
        if not self.precomputed and not np.array_equal(
            self.order, np.arange(len(codes))
        ):
            points = points[self.order]
        self.points = points

    def of(self, k: int) -> slice:
        """Return the slice of the rows of class k."""
        return slice(self.bounds[k], self.bounds[k + 1])

    def X_of(self, i: int, j: int) -> MatrixLike:
        """Return the rows of two classes."""
        of = [np.arange(self.bounds[k], self.bounds[k + 1]) for k in (i, j)]
        return self.points.X[np.concatenate(of)]

    def signs_of(self, i: int, j: int) -> NDArray[np.int8]:
        """Return the labels of the rows of two classes, -1 or +1.

        Class i is positive, except with two classes, where class j is.
        """
        sizes = [self.bounds[k + 1] - self.bounds[k] for k in (i, j)]
        signs = [-1, 1] if len(self.bounds) == 3 else [1, -1]
        return np.repeat(np.array(signs, np.int8), sizes)

    def weights_of(self, i: int, j: int) -> Vector:
        """Return the weights of the rows of two classes."""
        return np.concatenate([self.weight[self.of(i)], self.weight[self.of(j)]])

    def entries(self, table: Vector, i: int, j: int) -> Vector:
        """Return the entries of the pair (i, j) in a table of :class:`PairModels`."""
        return np.concatenate([table[j - 1, self.of(i)], table[i, self.of(j)]])

    def pairs_at_a_time(
        self, solver: KernelSolver | Nystroem, cache_size: float, threads: int
    ) -> int:
        """Return the number of pairs to train at the same time, limited by the cache.

        Each pair must have enough cache that sharing does not change its result.
        """
        if threads == 1:
            return 1
        sizes = np.sort(np.diff(self.bounds))
        largest, pairs = int(sizes[-2:].sum()), len(sizes) * (len(sizes) - 1) // 2
        room = rows_in(cache_size, largest) // solver.rows_held(largest)
        return max(1, min(threads, pairs, room))

    def matrices(self, cache_size: float, threads: int) -> Function[[int, int], Matrix]:
        """Return a function that gives the kernel matrix of a pair of classes."""
        if len(self.bounds) == 3 and not self.precomputed:
            return lambda i, j: Gram(self.points, self.kernel, cache_size)
        order = self.order if self.precomputed else None
        return Pairs(
            self.points, self.kernel, self.bounds, cache_size, threads, order
        ).pair

    def problem(
        self,
        matrix: Function[[int, int], Matrix],
        i: int,
        j: int,
        C: float,
        loss: str | Loss,
        bias: Bias,
    ) -> KernelProblem:
        """Return the problem of classes i and j."""
        return KernelProblem(
            matrix(i, j),
            self.signs_of(i, j),
            C,
            loss=loss,
            sample_weight=self.weights_of(i, j),
            **bias,
        )


class PairTraining:
    """One fit of all pairs of classes.

    Parameters
    ----------
    model : PairParameters
        The estimator.
    training : Training
        Its fit, with one problem per pair.
    rows : PairRows
    pairs : list of tuple of int
        Numbers of the classes of each pair.
    solver : KernelSolver or Nystroem
    bias : dict
        Arguments of KernelProblem that set the bias.
    """

    def __init__(
        self,
        model: PairParameters,
        training: Training,
        rows: PairRows,
        pairs: list[tuple[int, int]],
        solver: KernelSolver | Nystroem,
        bias: Bias,
    ) -> None:
        self.model, self.training, self.rows = model, training, rows
        self.pairs, self.bias = pairs, bias
        self.cost = check_costs(model.C, rows.weight, len(rows.weight))
        threads = effective_n_jobs(model.n_jobs)
        self.together = rows.pairs_at_a_time(solver, model.cache_size, threads)
        if isinstance(model.solver, str):
            solver = solver.one_of(len(pairs), max(1, threads // self.together))
        self.solver: Any = solver
        hinge = get_loss(model.loss).name == "hinge"
        self.free_hinge = hinge and not bias["penalize_intercept"]

    def run(self) -> PairModels:
        """Train every pair."""
        solved = self._solve_together()
        if solved is not None:
            return self._joint(solved)
        trained = self._train_all(self._train)
        return PairModels.of(self.rows, trained, self.training.names)

    def _train_all(self, train: Function[[int], TrainedPair]) -> list[TrainedPair]:
        # Made before the threads that share it.
        self.matrix = self.rows.matrices(self.model.cache_size, self.together)
        return fit_all(
            train,
            len(self.pairs),
            n_jobs=self.together,
            stop=self.training.stop,
            verbose=self.model.verbose,
        )

    def _solve_together(self) -> SolvedPairs | None:
        """Solve and prove small problems in one call; None if they are not small.

        Callbacks of scikit-learn want to see the epochs, so with them the loop trains.
        """
        if not self.free_hinge or self.training.tasks.heard:
            return None
        model, rows, stop = self.model, self.rows, self.training.stop
        with ctrl_c(stop):
            return solve_pairs(
                self.solver,
                rows.points,
                rows.kernel,
                rows.bounds,
                self.cost,
                cache_size=model.cache_size,
                tol=model.tol,
                atol=model.atol,
                max_epochs=model.max_epochs,
                stop=stop,
            )

    def _joint(self, solved: SolvedPairs) -> PairModels:
        """Join pairs that were solved together; train those without a proof."""
        training = self.training
        together = SolvedTogether(training, solved, self.solver.name)

        def trained(p: int) -> TrainedPair:
            coef, scores = (
                self.rows.entries(table, *self.pairs[p])
                for table in (solved.coef, solved.scores)
            )
            bias = float(solved.intercept[p])
            history = together.histories[p]
            solution = Solution(EMPTY, np.abs(coef), together.part(p), history, bias)
            together.tell(p, solution, lambda: scores + bias)
            return TrainedPair(coef, bias, solution)

        proved = together.proved
        if not together.done:
            pairs = self._train_all(
                lambda p: (trained if proved[p] else self._train)(p)
            )
            if not all(proved):
                return PairModels.of(self.rows, pairs, training.names)
        return PairModels(
            solved.coef,
            solved.intercept,
            together.certificate(),
            together.epochs,
            together.histories,
        )

    def _train(self, p: int) -> TrainedPair:
        """Train pair p with a proof or, where there can be none, by LIBSVM."""
        try:
            return self._proved(p)
        except IndefiniteKernelError:
            if not self._trains_unproved():
                raise
        model, rows, (i, j) = self.model, self.rows, self.pairs[p]
        return TrainedPair(
            *trained_by_libsvm(
                rows.X_of(i, j),
                rows.signs_of(i, j),
                rows.kernel,
                model.C,
                rows.weights_of(i, j),
                model.cache_size,
                model.tol,
                model.atol,
            )
        )

    def _trains_unproved(self) -> bool:
        """Whether LIBSVM may train these problems, without a proof."""
        return (
            self.model._may_be_unproved
            and self.rows.kernel.name in CAN_BE_INDEFINITE
            and isinstance(self.solver, BlockSolver)
            and self.free_hinge
        )

    def _proved(self, p: int) -> TrainedPair:
        """Train pair p, and prove its accuracy."""
        training, (i, j) = self.training, self.pairs[p]
        with training.problem(p, None) as callback:
            if not training.stopped:
                problem = self.rows.problem(
                    self.matrix, i, j, self.model.C, self.model.loss, self.bias
                )
                problem.title = training.title(p)
                if isinstance(self.solver, Nystroem):
                    return self._approximated(p, problem, callback)
            if training.stopped:  # preparing a problem takes time too
                return self._unreached(self.model.C * self.rows.weights_of(i, j))
            solution = solve(problem, self.solver, **training.limits(p, callback))
            return self._of_duals(problem, solution)

    def _approximated(
        self, p: int, problem: KernelProblem, callback: Callback | None
    ) -> TrainedPair:
        """Train pair p over landmark rows."""
        training = self.training
        seed = int(training.seeds[0])  # pairs of a class share its landmarks
        features = self.solver.approximate(problem, seed, stop=training.stop)
        if training.stopped:
            return self._unreached(self.model.C * self.rows.weights_of(*self.pairs[p]))
        solution = solve(features, Auto(), **training.limits(p, callback))
        coef, intercept = features.expand(solution.w)
        return TrainedPair(coef, intercept, solution)

    @staticmethod
    def _of_duals(problem: KernelProblem, solution: Solution) -> TrainedPair:
        assert solution.bias is not None
        return TrainedPair(solution.coefficients * problem.y, solution.bias, solution)

    def _unreached(self, cost: Vector) -> TrainedPair:
        """Return the zero model of a pair that was not trained; P is the sum of costs.

        Preparing a fit (copying the rows, computing norms) would exceed the time limit.
        """
        interrupted = self.training.stop.requested
        zero, total = np.zeros(len(cost)), float(cost.sum())
        bounds = Bounds.proved(total, Rounding.summed * total, 0.0)
        certificate = replace(
            bounds.certificate,
            status=Status.INTERRUPTED if interrupted else Status.TIME_LIMIT,
            solver=self.solver.name,
            tol=self.model.tol,
            atol=self.model.atol,
        )
        history = np.empty(0, HISTORY_DTYPE)
        return TrainedPair(zero, 0.0, Solution(zero, zero, certificate, history, 0.0))

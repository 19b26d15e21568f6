"""Code that SVR and OneClassSVM share."""

from __future__ import annotations

from collections.abc import Callable as Function
from dataclasses import replace
from functools import partial

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import check_is_fitted

from ..data.types import Matrix, MatrixLike
from ..kernel import BlockSolver, Gram
from ..kernels.functions import Kernel, Precomputed
from ..kernels.gram import points_of
from ..kernels.predict import single_values
from ..losses import Vector
from ..problems.kernel_boxes import BoxProblem
from ..solvers import get_solver, solvers_of
from ..solvers.kernel.small_one_class import solve_one_class
from ..training import Solution
from ._kernels import KERNEL_CONSTRAINTS, KernelParameters
from .arguments import validate_data
from .fitting import refuse_masks, validated
from .parameters import Constraints, constraints
from .single import ZERO, SingleFit, checked_weights
from .training import begin

#: Solvers of these problems, by name.
BOX_SOLVERS = solvers_of("kernel-regression")

CONSTRAINTS: Constraints = {
    **constraints(
        "tol",
        "atol",
        "max_epochs",
        "time_limit",
        "cache_size",
        "random_state",
        "n_jobs",
        "verbose",
    ),
    **KERNEL_CONSTRAINTS,
    "solver": [StrOptions(set(BOX_SOLVERS)), BlockSolver],
}


class KernelFit(KernelParameters, SingleFit):
    """Base of kernel estimators that solve a single problem."""

    _depth = 6  # through _fit_problem
    solver: str | BlockSolver
    time_limit: float | None
    cache_size: float
    n_jobs: int | None
    support_: NDArray[np.intp]
    dual_coef_: Vector
    intercept_: Vector

    def _fit_problem(
        self,
        X: MatrixLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        problem_of: Function[..., BoxProblem],
    ) -> None:
        """Train on rows of positive weight; `problem_of` makes their problem.

        It is called with the kernel matrix, the targets and the weights of these rows.
        """
        self._refuse_store(X)
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        stop = begin(self.time_limit)
        kernel = self._kernel_record()
        supervised = {} if y is None else {"y_numeric": True}
        found = validated(self, X, "no_validation" if y is None else y, **supervised)
        X, y = (found, None) if y is None else found
        weight = checked_weights(sample_weight, X)
        data = {"X": X, "y": y, "sample_weight": sample_weight}
        used = points_of(X, kernel)
        X = used.X
        kernel = kernel.resolve(X, weight)
        kept = slice(None) if weight is None else np.flatnonzero(weight > 0.0)
        numbers = np.arange(X.shape[0])[kept]
        if not numbers.size:
            raise ValueError("sample_weight is zero everywhere; give a positive weight")
        if isinstance(kernel, Precomputed):
            matrix: Matrix = Gram(used, kernel, self.cache_size)
            if numbers.size < X.shape[0]:
                matrix = matrix.subset(numbers)
        else:
            used = used if numbers.size == X.shape[0] else used[numbers]
            matrix = Gram(used, kernel, self.cache_size)
        problem = problem_of(
            matrix,
            None if y is None else y[kept],
            None if weight is None else weight[kept],
        )

        def keep(solution: Solution) -> None:
            assert solution.bias is not None
            support = np.flatnonzero(solution.alpha)
            self.support_ = numbers[support]
            self.n_support_ = np.array([support.size], np.int32)
            self.dual_coef_ = solution.alpha[None, support]
            self.intercept_ = np.array([solution.bias])
            self.support_vectors_ = (
                np.empty((0, 0)) if self._precomputed else used.X[support]
            )
            self._fitted_kernel = kernel
            self.shape_fit_ = X.shape
            self.fit_status_ = int(not solution.certificate.certified)

        solver = get_solver(self.solver, problem.kind)
        if isinstance(self.solver, str) and isinstance(solver, BlockSolver):
            threads = max(1, int(effective_n_jobs(self.n_jobs)))
            solver = replace(solver, threads=threads)
        together = partial(solve_one_class, solver, problem)
        self._train(problem, solver, data, keep, stop, together=together)

    @property
    def coef_(self) -> Vector:
        """Weights of the features, shape (1, n_features); linear kernel only.

        The array is read-only, because predictions use `dual_coef_`.
        """
        self._refuse_coef()
        check_is_fitted(self)
        coef: Vector = self.dual_coef_ @ self.support_vectors_
        coef.flags.writeable = False
        return coef

    def _values(self, X: MatrixLike) -> Vector:
        """Return ``sum_i a_i k(x_i, x) + intercept``, shape (n_samples,)."""
        check_is_fitted(self)
        X = validate_data(
            self, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
        kernel: Kernel = self._fitted_kernel
        return single_values(
            kernel,
            X,
            self.support_vectors_,
            self.dual_coef_,
            float(self.intercept_[0]),
            support=self.support_,
            n_jobs=self.n_jobs,
        )


def least_decision(
    kernel: Kernel, vectors: Matrix, coef: Vector, offset: float
) -> float:
    """Return the largest decision of a one-class SVM that counts as 0.

    Parameters
    ----------
    kernel : Kernel
    vectors : {ndarray, CSR matrix} of shape (n_SV, n_features)
        Support vectors; not looked at with a precomputed kernel.
    coef : ndarray of shape (1, n_SV)
    offset : float
    """
    least = ZERO * abs(offset)
    if isinstance(kernel, Precomputed):
        return least
    return max(
        least, 1e-13 * float(np.abs(coef).sum() * kernel.diagonal(vectors).max())
    )

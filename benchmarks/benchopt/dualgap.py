"""dualgap for benchopt's benchmark of linear SVMs without intercept.

Copy this file into the folder ``solvers`` of
https://github.com/benchopt/benchmark_linear_svm_binary_classif_no_intercept
(it is of benchopt 1.4 and its interface). The harness computes the objective itself.
"""

import warnings
from typing import ClassVar

from benchopt import BaseSolver, safe_import_context
from benchopt.stopping_criterion import SufficientProgressCriterion

with safe_import_context() as import_ctx:
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning

    from dualgap import LinearSVC


class Solver(BaseSolver):
    """Fits of 1, 2, ... passes, each from the start, as the benchmark wants them."""

    name = "dualgap"

    install_cmd = "conda"
    requirements: ClassVar = ["pip:dualgap"]
    stop_strategy = "iteration"
    support_sparse = True
    parameters: ClassVar = {"solver": ["auto", "dcd"]}
    # That of the benchmark's own dual methods: P of a dual method may rise.
    stopping_criterion = SufficientProgressCriterion(eps=1e-4, patience=10)

    def set_objective(self, X, y, C):
        self.X, self.y = X, y
        self.beta = np.zeros(X.shape[1])
        self.model = LinearSVC(
            C=C, solver=self.solver, fit_intercept=False, tol=1e-12, random_state=0
        )

    def run(self, n_iter):
        if n_iter == 0:
            self.beta = np.zeros(self.X.shape[1])
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.set_params(max_epochs=n_iter).fit(self.X, self.y)
        self.beta = self.model.coef_.ravel()

    def get_result(self):
        return self.beta

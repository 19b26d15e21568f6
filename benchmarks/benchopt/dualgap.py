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
    from sklearn.exceptions import ConvergenceWarning

    from dualgap import LinearSVC


class Solver(BaseSolver):
    """Fits to ever smaller relative gaps, each from the start.

    A fit keeps the best of its models, so that its objective stay the same for many
    passes. A fit cut off there would look as if it had converged.
    """

    name = "dualgap"

    install_cmd = "conda"
    requirements: ClassVar = ["pip:dualgap"]

    stop_strategy = "tolerance"
    support_sparse = True
    parameters: ClassVar = {"solver": ["auto", "dcd"]}
    # The same as for the benchmark's own dual methods.
    stopping_criterion = SufficientProgressCriterion(eps=1e-4, patience=10)

    def set_objective(self, X, y, C):
        self.X, self.y = X, y
        self.model = LinearSVC(
            C=C, loss="hinge", solver=self.solver, fit_intercept=False
        )

    def run(self, tol):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.set_params(tol=min(tol, 1.0)).fit(self.X, self.y)

    def get_result(self):
        return self.model.coef_.ravel()

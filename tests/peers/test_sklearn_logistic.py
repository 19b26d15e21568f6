"""scikit-learn's sklearn/linear_model/tests/test_logistic.py against ours."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import sklearn.linear_model
from sklearn.utils._param_validation import validate_parameter_constraints
from sklearn.utils.fixes import parse_version

import dualgap

from .sklearn_tests import MARKS, VERSION, Difference, check_listed, load

if VERSION < parse_version("1.9"):
    pytest.skip("the list is of scikit-learn 1.9's tests", allow_module_level=True)

ROOT = Path(__file__).parents[2]

pytestmark = MARKS


class LogisticRegression(dualgap.LogisticRegression):
    """scikit-learn's constructor over ours, whose solver is `auto`.

    scikit-learn's `tol` is about the gradient, and the gap is half of its square.
    """

    time_limit = None
    atol = 0.0

    def __init__(
        self,
        penalty="deprecated",
        *,
        C=1.0,
        l1_ratio=0.0,
        dual=False,
        tol=1e-4,
        fit_intercept=True,
        intercept_scaling=1,
        class_weight=None,
        random_state=None,
        solver="lbfgs",
        max_iter=100,
        verbose=0,
        warm_start=False,
        n_jobs=None,
    ):
        self.penalty, self.C, self.l1_ratio, self.dual = penalty, C, l1_ratio, dual
        self.tol, self.fit_intercept, self.max_iter = tol, fit_intercept, max_iter
        self.intercept_scaling, self.class_weight = intercept_scaling, class_weight
        self.random_state, self.solver, self.verbose = random_state, solver, verbose
        self.warm_start, self.n_jobs = warm_start, n_jobs

    def _validate_params(self):
        given = self.get_params(deep=False) | {"solver": "lbfgs"}
        validate_parameter_constraints(
            sklearn.linear_model.LogisticRegression._parameter_constraints,
            given,
            caller_name="LogisticRegression",
        )

    def fit(self, X, y, sample_weight=None):
        given = self.tol, self.solver
        least = 1e-11 if self.l1_ratio else 1e-12  # what float64 can prove
        self.tol, self.solver = max(self.tol**2, least), "auto"
        try:
            super().fit(X, y, sample_weight)
        finally:
            self.tol, self.solver = given
        return self


globals().update(load("test_logistic", (LogisticRegression,), "linear_model"))

PENALTY = Difference("DID NOT WARN", "penalty and l1_ratio have other warnings")
NO_NORM = Difference("cannot train C=inf", "there may be no optimum without a penalty")
ONE_SOLVER = Difference("DID NOT (RAISE|WARN)", "the solver's name means nothing")
WORDS = Difference("did not match", "each solver of scikit-learn has its own words")
ACCURACY = Difference(
    "not almost equal", "the score is of scikit-learn's path, to its own accuracy"
)

#: Not about the squared norm.
PENALTIES: dict[str, Difference] = {
    "test_l1_ratio_non_elasticnet": PENALTY,
    "test_l1_ratio_None_deprecated": PENALTY,
    "test_lr_penalty_l1ratio_incompatible[*]": PENALTY,
    "test_penalty_none[*]": PENALTY._replace(reason="there is always a penalty"),
    "test_logistic_regression_solvers_multiclass_unpenalized[*]": NO_NORM,
    "test_warm_start_newton_solver[inf-*]": NO_NORM,
    "test_c_inf_no_warning[*]": NO_NORM,
}
#: About the limits, messages, tasks or accuracy of scikit-learn's own solvers.
_LIMITS = """test_check_solver_option[LogisticRegression]
test_large_sparse_matrix[*-liblinear] test_large_sparse_matrix[*-sag*]
test_liblinear_dual_random_state test_liblinear_with_large_values
test_liblinear_multiclass_raises[LogisticRegression]
test_logistic_regression_callback_support_warning"""
OWN_SOLVERS: dict[str, Difference] = {
    **dict.fromkeys(_LIMITS.split(), ONE_SOLVER),
    "test_logisticregression_warns_with_n_jobs": Difference(
        "DID NOT WARN", "n_jobs is the number of threads"
    ),
    "test_newton_cholesky_fallback_to_lbfgs": Difference(
        "Not converged", "separable classes with C = 1e30 are not solved to 1e-8"
    ),
    "test_max_iter[*]": WORDS,
    "test_dtype_match[*-liblinear]": Difference(
        "AssertionError", "weights are float32 if the rows are, as other solvers' are"
    ),
    "test_logistic_regression_callback_support[*]": Difference(
        "max_iter=0 is too small|AssertionError",
        "tasks are the fit, its problem, and the epochs and proofs",
    ),
    "test_logistic_cv[*]": ACCURACY,
    "test_logistic_cv_multinomial_score[neg_log_loss-*]": ACCURACY,
}
#: What ours does otherwise.
OURS: dict[str, Difference] = {
    "test_nan": Difference("did not match", "the message names the row"),
    "test_zero_max_iter[*]": Difference(
        "max_iter=0 is too small", "there is no certificate before the first step"
    ),
    "test_multinomial_logistic_regression_string_inputs": Difference(
        "class foo has no row", "a class of weight 0 has no optimum of its intercept"
    ),
}
DIFFERENCES = PENALTIES | OWN_SOLVERS | OURS


def test_every_listed_test_is_there():
    check_listed(DIFFERENCES, globals())


def test_the_document_lists_the_same_tests():
    table = (ROOT / "docs/tables/peers-logistic.csv").read_text("utf-8")
    listed = {name.split("[")[0] for name in DIFFERENCES}
    assert set(re.findall(r"test_\w+", table)) == listed

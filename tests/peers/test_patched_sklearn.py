"""scikit-learn's tests of its SVMs against the drop-ins of patch_sklearn."""

from __future__ import annotations

from typing import Any

import pytest
import sklearn
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.fixes import parse_version

from dualgap.estimators.drop_ins import DROP_INS

from .sklearn_tests import Difference, check_listed, load

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]

if parse_version(sklearn.__version__) < parse_version("1.9"):
    pytest.skip(
        f"scikit-learn {sklearn.__version__} is older than the table",
        allow_module_level=True,
    )

# The files have names in common: test_svm_svc, test_sparse_svc.
globals().update(
    {
        f"{module}_{name[5:]}": test
        for module in ("test_svm", "test_sparse", "test_bounds")
        for name, test in load(module, tuple(DROP_INS.values())).items()
    }
)

STEPS = Difference(
    "DID NOT WARN", "an epoch is many of LIBSVM's steps: so few are enough"
)

DIFFERENCES: dict[str, Difference] = {
    "test_sparse_timeout[*]": STEPS,
    "test_svm_libsvm_convergence_warnings": STEPS,
    "test_svm_linear_svm_convergence_warnings": Difference(
        "DID NOT WARN", "an epoch of LinearSVR may be eight steps of interior points"
    ),
    "test_svm_svm_with_infinite_C[*-SVR-*]": Difference(
        "Not equal to tolerance rtol=1e-07",
        "LIBSVM trains an infinite C, dualgap 1e10: each ends at its own tolerance",
    ),
}

# A row of weight k is worth k equal rows, and the check compares seven digits. The
# default gamma of scikit-learn is computed without the weights, and the optimum of the
# squared hinge is no vertex, which a fit reaches to rounding.
EXACT: dict[str, dict[str, Any]] = {
    "LinearSVC": {"loss": "hinge"},
    "SVC": {"gamma": "auto"},
    "SVR": {"gamma": "auto"},
    "OneClassSVM": {"gamma": "auto"},
}


@parametrize_with_checks([drop_in() for drop_in in DROP_INS.values()])
def test_estimator_checks(estimator: Any, check: Any) -> None:
    if "sample_weight_equivalence" in str(check):
        estimator.set_params(**EXACT.get(type(estimator).__name__, {}))
    check(estimator)


def test_every_listed_test_is_there() -> None:
    check_listed(DIFFERENCES, globals())

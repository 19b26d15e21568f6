"""scikit-learn's tests of its SVMs against the drop-ins of patch_sklearn."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import sklearn
from sklearn.svm import NuSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from dualgap.estimators.drop_ins import DROP_INS

from .count_fits import TRAINED
from .sklearn_tests import MARKS, Difference, check_listed, load

pytestmark = MARKS

# The files have names in common: test_svm_svc, test_sparse_svc.
globals().update(
    {
        f"{module}_{name[5:]}": test
        for module in ("test_svm", "test_sparse", "test_bounds")
        for name, test in load(module, tuple(DROP_INS.values())).items()
    }
)

STEPS = Difference(
    "DID NOT WARN",
    "an epoch is many of LIBSVM's steps: so few are enough",
)

DIFFERENCES: dict[str, Difference] = {
    "test_sparse_timeout[*]": STEPS,
    "test_svm_libsvm_convergence_warnings": STEPS,
    "test_svm_linear_svm_convergence_warnings": Difference(
        "DID NOT WARN", "an epoch of LinearSVR may be eight steps of interior points"
    ),
    "test_svm_svc_clone_with_callable_kernel": Difference(
        "AssertionError",
        "compares probabilities to four digits; each fold is solved to a gap of 1e-3",
        before="1.9",
    ),
    "test_svm_crammer_singer_binary": Difference(
        "AssertionError",
        "a row has a decision of 0.003: at the default tol it is on the other side",
        before="1.8",  # where the classes are further apart
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
    "NuSVR": {"gamma": "auto"},
    "OneClassSVM": {"gamma": "auto"},
}
#: scikit-learn's own NuSVC fails them too: nu is too large for the classes.
INFEASIBLE = dict.fromkeys(
    (
        "check_class_weight_classifiers",
        "check_classifiers_one_label_sample_weights",
        "check_sample_weight_equivalence_on_dense_data",
        "check_sample_weight_equivalence_on_sparse_data",
    ),
    "nu is infeasible, or class_weight is ignored",
)


@parametrize_with_checks(
    [drop_in() for drop_in in DROP_INS.values()],
    expected_failed_checks=lambda e: INFEASIBLE if isinstance(e, NuSVC) else {},
)
def test_estimator_checks(estimator: Any, check: Any) -> None:
    if "sample_weight_equivalence" in str(check):
        estimator.set_params(**EXACT.get(type(estimator).__name__, {}))
    check(estimator)


def test_every_listed_test_is_there() -> None:
    check_listed(DIFFERENCES, globals())


def test_the_table_counts_the_fits(tmp_path: Path) -> None:
    """It says how many dualgap trains, and why not the others."""
    table = Path(__file__).parents[2] / "docs" / "tables" / "patched-fits.csv"
    with table.open(encoding="utf-8", newline="") as file:
        found = {row: cells for row, *cells in csv.reader(file)}
    versions = found.pop("fits of scikit-learn's tests")
    version = ".".join(sklearn.__version__.split(".")[:2])
    if version not in versions:
        pytest.skip(f"scikit-learn {sklearn.__version__} is not in the table")
    at = versions.index(version)
    rows = {
        row: int(cells[at])
        for row, cells in found.items()
        if row == TRAINED or row.startswith("handed on")
    }
    paths = [str(Path(__file__).parent), *map(os.path.abspath, sys.path)]
    more = {"COUNTS": str(tmp_path / "counts"), "PYTHONPATH": os.pathsep.join(paths)}
    run = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "count_fits"),
            *("-p", "no:randomly", "-p", "no:cacheprovider"),
            *("--pyargs", "sklearn.svm.tests"),
        ],
        cwd=tmp_path,
        env={**os.environ, **more},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert run.returncode in (0, 1), run.stdout[-2000:] + run.stderr[-2000:]
    assert json.loads((tmp_path / "counts").read_text()) == rows

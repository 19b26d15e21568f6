"""scikit-learn's sklearn/svm/tests/test_sparse.py against ours."""

from __future__ import annotations

from .sklearn_tests import MARKS, Difference, check_listed, load

pytestmark = MARKS

globals().update(load("test_sparse"))


INDEFINITE = Difference(
    "kernel='sigmoid': the kernel matrix is indefinite",
    "an indefinite kernel matrix has no duality gap and is refused",
)
NO_PROBABILITY = Difference(
    "predict_proba",
    "no option `probability`; CalibratedClassifierCV is the way, as scikit-learn says",
)

DIFFERENCES: dict[str, Difference] = {
    # On the fourth, iris, it is positive semidefinite.
    "test_sparse_oneclasssvm[*-sigmoid-X_train0-*]": INDEFINITE,
    "test_sparse_oneclasssvm[*-sigmoid-X_train1-*]": INDEFINITE,
    "test_sparse_oneclasssvm[*-sigmoid-X_train2-*]": INDEFINITE,
    "test_svc[*]": NO_PROBABILITY._replace(before="1.8"),
    "test_consistent_proba": NO_PROBABILITY._replace(before="1.9"),
    "test_unsorted_indices[*]": NO_PROBABILITY,
    "test_sparse_svc_clone_with_callable_kernel[*]": NO_PROBABILITY,
    "test_timeout[*]": Difference(
        "DID NOT WARN", "an epoch is many of LIBSVM's steps: one is enough"
    ),
}


def test_every_listed_test_is_there():
    check_listed(DIFFERENCES, globals())

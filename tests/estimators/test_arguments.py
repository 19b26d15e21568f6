"""Arguments that no fit can do anything with are refused by their names."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import validate_data

from dualgap import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    OneClassSVM,
    compress,
)
from dualgap.estimators.input import ROWS, encode, rows_to_predict, validated
from dualgap.model_selection import svm_path

KERNELS = [SVC, SVR, OneClassSVM]
LINEAR = [LinearSVC, LinearSVR, LinearOneClassSVM, LinearSVCCV]


def rows(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1, -1)


@pytest.mark.filterwarnings("ignore:.*rounding decides")
@pytest.mark.parametrize("estimator", [*KERNELS, *LINEAR])
def test_atol_is_proved_where_tol_cannot_be(estimator):
    X, y = rows(60)
    y = np.where(X[:, 1] > 0.8, 2, y)  # three classes, or targets
    options = {"Cs": [0.1, 1.0]} if estimator is LinearSVCCV else {}
    with pytest.raises(ValueError, match="'atol' parameter"):
        estimator(atol=-1.0).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        estimator(tol=1e-300, **options).fit(X, y)
    model = estimator(tol=1e-300, atol=0.05, **options).fit(X, y)
    parts = model.certificate_.parts
    assert len(parts) == (3 if "SVC" in estimator.__name__ else 1)
    for part in parts:
        assert part.certified
        assert part.atol == 0.05
        assert part.gap <= 0.05
    each = " in each" if len(parts) > 1 else ""
    assert f"(target: a gap of 0.05{each})" in model.certificate_.message
    assert model.certificate_.to_dict()["atol"] == 0.05
    assert "atol" not in estimator(**options).fit(X, y).certificate_.to_dict()


def test_atol_of_paths_and_batches():
    X, y = rows(60)
    path = svm_path(X, y, [0.1, 10.0], tol=1e-300, atol=0.05)
    assert all(c.certified and c.gap <= 0.05 for c in path.certificates)
    model = LinearSVC(tol=1e-300, atol=200.0).partial_fit(X, y, [-1, 1])
    assert model.certificate_.certified
    assert model.certificate_.atol == 200.0
    model = LinearSVC(tol=1e-300).partial_fit(X, y, [-1, 1])
    assert not model.certificate_.certified


@pytest.mark.filterwarnings("ignore:.*rounding decides")
@pytest.mark.parametrize("estimator", [*KERNELS, *LINEAR, LogisticRegression])
@pytest.mark.parametrize("count", [1, 20])
def test_huge_numbers_of_rows_to_predict_are_refused_by_name(estimator, count):
    X, y = rows()
    model = estimator().fit(X, y)
    huge = [[10**400, 1, 1]] * count
    plain = [[10**30, 1, 1]] * count  # of Python, and within float64's range
    for name in ("predict", "decision_function", "predict_proba", "score_samples"):
        if hasattr(model, name):
            with pytest.raises(ValueError, match="X holds a number beyond the range"):
                getattr(model, name)(huge)
            found = getattr(model, name)(plain)
            np.testing.assert_array_equal(
                found, getattr(model, name)(np.array(plain, float))
            )


# ------------------------------------------------------------- kernels out of range


def gaussian(X):
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1))


@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
@pytest.mark.parametrize("scale", [1e-160, 1e-80, 1e39, 1e145])
def test_compress_says_which_values_are_out_of_range(scale):
    X, y = rows()
    K = scale * gaussian(X)
    model = SVC(kernel="precomputed", C=min(1.0, 1.0 / scale)).fit(K, y)
    with pytest.raises(
        ValueError, match=r"has kernel values up to .* scale the kernel"
    ):
        compress(model, K, y, tol=0.5)


@pytest.mark.parametrize("scale", [1e-37, 1.0, 1e38])
def test_compress_within_the_range(scale):
    X, y = rows()
    K = scale * gaussian(X)
    model = SVC(kernel="precomputed", C=min(1.0, 1.0 / scale)).fit(K, y)
    smaller = compress(model, K, y, tol=0.5)
    assert len(smaller.support_) < len(model.support_)
    assert smaller.certificate_.relative_gap <= 0.5


@pytest.mark.parametrize("kernel", ["linear", "precomputed"])
def test_support_vectors_that_span_nothing_are_kept(kernel):
    """The model is its bias; with all k = 0 there is nothing to compress."""
    X, y = np.zeros((12, 2)), np.array([1] * 8 + [-1] * 4)
    given = X @ X.T if kernel == "precomputed" else X
    model = SVC(kernel=kernel).fit(given, y)
    assert len(model.support_)
    smaller = compress(model, given, y, tol=0.5)
    assert np.array_equal(smaller.predict(given), model.predict(given))
    assert smaller.certificate_.relative_gap <= 0.5


@pytest.mark.parametrize(
    "y",
    [
        np.repeat([True, False, True], 5),
        np.arange(50) % 7 - 3,
        3 * (np.arange(50) % 7) - 5,
        np.array([-128, 127] * 200, np.int8),
        np.array([255, 0] * 200, np.uint8),
        np.array([2**62, -(2**62)] * 5),
        np.array([2**64 - 1, 2**64 - 3] * 5, np.uint64),
        np.array([0.0, 1.0] * 4),
        np.array([0.0, 2.0, 1.0] * 4),
        np.array(["b", "a", "b"]),
    ],
    ids=lambda y: f"{y.dtype}",
)
def test_classes_are_those_of_numpy(y):
    classes, codes = encode(y)
    expected, inverse = np.unique(y, return_inverse=True)
    assert classes.dtype == y.dtype
    assert codes.dtype == np.intp
    np.testing.assert_array_equal(classes, expected)
    np.testing.assert_array_equal(codes, inverse)


def outcome(check, *arguments, **options):
    """Return what a check returns, or how it refuses."""
    try:
        found = check(*arguments, **options)
    except (TypeError, ValueError) as error:
        return type(error), str(error)
    return [found] if not isinstance(found, tuple) else list(found)


def same(one, other) -> bool:
    """Whether two outcomes are the same error, or the same arrays of the same types."""
    if isinstance(one, tuple) or isinstance(other, tuple):
        return one == other
    return len(one) == len(other) and all(
        type(a) is type(b)
        and a.dtype == b.dtype
        and a.shape == b.shape
        and (a.toarray() == b.toarray() if sparse.issparse(a) else a == b).all()
        for a, b in zip(one, other, strict=True)
    )


PLAIN = np.arange(12.0).reshape(4, 3)
FORMS = {
    "float64": PLAIN,
    "float32": PLAIN.astype(np.float32),
    "float16": PLAIN.astype(np.float16),
    "integers": PLAIN.astype(int),
    "another byte order": PLAIN.astype(">f8"),
    "objects": PLAIN.astype(object),
    "complex": PLAIN + 1j,
    "by columns": np.asfortranarray(PLAIN),
    "a list": PLAIN.tolist(),
    "one dimension": PLAIN[0],
    "three dimensions": PLAIN[None],
    "no rows": PLAIN[:0],
    "no columns": PLAIN[:, :0],
    "CSR": sparse.csr_matrix(PLAIN),
    "a CSR array": sparse.csr_array(PLAIN),
    "CSC": sparse.csc_matrix(PLAIN),
    "COO": sparse.coo_array(PLAIN),
    "CSR integers": sparse.csr_matrix(PLAIN.astype(int)),
    "CSR without rows": sparse.csr_matrix((0, 3)),
    "two columns": PLAIN[:, :2],
}
LABELS = {
    "integers": np.array([0, 1, 0, 1]),
    "truths": np.array([False, True, False, True]),
    "texts": np.array(["a", "b", "a", "b"]),
    "numbers": np.array([0.0, 1.0, 0.0, 1.0]),
    "NaN": np.array([0.0, np.nan, 0.0, 1.0]),
    "infinite": np.array([0.0, np.inf, 0.0, 1.0]),
    "objects": np.array([0, "a", 0, 1], dtype=object),
    "a list": [0, 1, 0, 1],
    "too many": np.arange(5),
    "two columns": np.ones((4, 2)),
    "complex": np.array([0, 1j, 0, 1]),
    "None": None,
}


@pytest.mark.cases(None)
@pytest.mark.parametrize("form", FORMS)
def test_rows_pass_as_through_the_checks_of_sklearn(form):
    X = FORMS[form]
    for label, y in {**LABELS, "none at all": "no_validation"}.items():
        ours, theirs = SVC(), SVC()
        found = outcome(validated, ours, X, y)
        assert same(found, outcome(validate_data, theirs, X, y, **ROWS)), label
        assert vars(ours) == vars(theirs)
    options = {"accept_sparse": "csr", "dtype": ROWS["dtype"], "reset": False}
    for finite in (True, False):
        model = SVC().fit(PLAIN, LABELS["integers"])
        found = outcome(rows_to_predict, model, X, finite=finite)
        options["ensure_all_finite"] = finite
        assert same(found, outcome(validate_data, model, X, **options))


def test_names_of_columns_are_checked_and_forgotten():
    pd = pytest.importorskip("pandas")
    y = LABELS["integers"]
    model = SVC().fit(pd.DataFrame(PLAIN, columns=["a", "b", "c"]), y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(PLAIN)
    model.fit(PLAIN, y)
    assert not hasattr(model, "feature_names_in_")
    model.predict(PLAIN)

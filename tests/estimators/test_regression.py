"""SVR, OneClassSVM, LinearSVR and LinearOneClassSVM as estimators."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dualgap import (
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    save_model,
)

ALL = [LinearSVR(), SVR(), LinearOneClassSVM(), OneClassSVM()]
every = pytest.mark.parametrize("estimator", ALL, ids=lambda e: type(e).__name__)
LAYOUTS = [np.asarray, np.float32, sparse.csr_matrix]


def data(n=120, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + 1.0
    y = X @ rng.normal(size=d) + np.sin(3 * X[:, 0]) + 0.1 * rng.normal(size=n)
    return X, y


def values(model, X):
    return model.predict(X) if hasattr(model, "score") else model.decision_function(X)


def test_the_linear_forms_are_the_linear_kernel():
    X, y = data()
    linear = LinearOneClassSVM(nu=0.2, tol=1e-9).fit(X)
    kernel = OneClassSVM(kernel="linear", nu=0.2, tol=1e-9).fit(X)
    np.testing.assert_allclose(linear.coef_, kernel.coef_, rtol=1e-4)
    np.testing.assert_allclose(linear.offset_, kernel.offset_, rtol=1e-4)
    assert linear.certificate_.primal == pytest.approx(kernel.certificate_.primal)
    free = SVR(kernel="linear", epsilon=0.1).fit(X, y)
    with pytest.raises(AttributeError):
        free.coef_ = 1.0
    with pytest.raises(ValueError, match="read-only"):
        free.coef_[0, 0] = 1.0
    with pytest.raises(AttributeError, match="linear"):
        _ = SVR().fit(X, y).coef_


def test_a_model_without_support_vectors_predicts_its_constant():
    X, _ = data(20)
    for layout in (np.asarray, sparse.csr_matrix):
        model = SVR(epsilon=0.2).fit(layout(X), np.full(20, 7.0))
        assert model.support_.size == 0
        assert model.certificate_.primal == 0.0
        np.testing.assert_allclose(model.predict(layout(X)), 7.0)


def test_a_file_with_classes_that_should_have_none_is_refused(tmp_path):
    from dualgap.data import model_file as format_
    from dualgap.models import files as model_file

    X, y = data(30)
    save_model(LinearSVR().fit(X, y), tmp_path / "a")
    record, tensors = format_.read(str(tmp_path / "a"))
    labels = np.where(y > np.median(y), 1, 0)
    save_model(LinearSVC().fit(X, labels), tmp_path / "b")
    classes = format_.read(str(tmp_path / "b"))[0]["classes"]
    with pytest.raises(ValueError, match="invalid for a LinearSVR"):
        model_file._assemble({**record, "classes": classes}, tensors)


def test_no_plane_leaves_all_rows_inside():
    # 0 lies among the rows: the optimum is w = 0, and every decision cancels to 0.
    X = np.random.default_rng(0).normal(scale=5.0, size=(80, 2))
    for layout in (np.asarray, sparse.csr_matrix):
        with pytest.warns(UserWarning, match="no plane separates enough rows"):
            model = OneClassSVM(kernel="linear", random_state=0).fit(layout(X))
        assert (model.predict(layout(X)) == 1).all()
        assert not model.decision_function(layout(X)).any()

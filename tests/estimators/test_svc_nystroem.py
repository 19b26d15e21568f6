"""SVC(solver="nystroem"): landmarks through the faces of SVC."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap import SVC
from dualgap.certificate import Status
from dualgap.kernel import RBF, Nystroem

from ..twins import nystroem as twin

ABOUT = "the problem over 20 landmarks, not of the kernel problem"


def make(n=240, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, (np.digitize(X[:, 0] * X[:, 1], [-0.2, 0.3][: classes - 1])).astype(int)


def test_decisions_are_those_of_the_certified_model():
    """P in NumPy, from the decisions at the rows, is the P that is certified."""
    X, y = make()
    C, kernel = 3.0, RBF(0.4)
    model = SVC(C, kernel=kernel, loss="squared_hinge", solver=Nystroem(20))
    model.set_params(random_state=1, tol=1e-6)
    model.fit(X, y)
    certificate = model.certificate_
    assert certificate.certified
    assert certificate.about == ABOUT
    f = model.decision_function(X)
    V, beta, b = model.support_vectors_, model.dual_coef_[0], model.intercept_[0]
    norm = beta @ kernel.block(V, slice(None)) @ beta + b * b
    slack = np.maximum(0.0, 1.0 - np.where(y == 1, 1, -1) * f)
    assert 0.5 * norm + C * slack @ slack == pytest.approx(certificate.primal, rel=1e-4)
    np.testing.assert_array_equal(V, X[model.support_])
    np.testing.assert_array_equal(model.predict(X), f > 0)
    assert len(V) == 20
    assert model.fit_status_ == 0


def test_landmarks_of_a_class_are_shared_by_its_pairs():
    X, y = make(classes=3)
    model = SVC(loss="squared_hinge", solver=Nystroem(20), random_state=0).fit(X, y)
    assert model.n_support_.tolist() == [10, 10, 10]
    assert [c.about for c in model.certificate_] == [ABOUT] * 3
    assert all(c.certified for c in model.certificate_)
    # Each pair decides as a fit of its own does over the same landmarks.
    values = model.set_params(decision_function_shape="ovo").decision_function(X)
    kernel = model._fitted_kernel
    for p, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
        rows = np.flatnonzero((y == i) | (y == j))
        sign = np.where(y[rows] == i, 1.0, -1.0)
        here = np.flatnonzero(np.isin(rows, model.support_))
        K = twin.approximated(kernel.block(X[rows], slice(None)), here)
        coef = np.zeros(len(rows))
        own = np.isin(model.support_, rows)
        slot = np.where(y[model.support_[own]] == i, j - 1, i)
        dual = model.dual_coef_[:, own]
        order = np.argsort(model.support_[own])
        coef[here] = dual[slot, np.arange(own.sum())][order]
        b = model.intercept_[p]
        f = K @ coef + b
        np.testing.assert_allclose(f, values[rows, p], atol=1e-3)
        slack = np.maximum(0.0, 1.0 - sign * f)
        primal = 0.5 * (coef @ K @ coef + b * b) + slack @ slack
        assert primal == pytest.approx(model.certificate_.parts[p].primal, rel=1e-3)


def test_time_that_is_over_before_the_features_are_whole(recwarn):
    X, y = make()
    model = SVC(solver="nystroem", time_limit=1e-9).fit(X, y)
    assert model.certificate_.status is Status.TIME_LIMIT
    assert not model.dual_coef_.any()
    assert any("no bound on the objective" in str(w.message) for w in recwarn)

"""Landmarks: SVC(solver="nystroem") through every face, and searches over them."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

from dualgap import SVC, SVCCV
from dualgap.certificate import Status
from dualgap.kernel import RBF, Nystroem

from .. import memory
from ..twins import nystroem as twin

GRID = np.logspace(-2, 2, 5)
ABOUT = "the problem over 20 landmarks, not of the kernel problem"


def make(classes=2, n=300):
    return make_classification(
        n, 8, n_informative=4, n_classes=classes, flip_y=0.1, random_state=0
    )


def noted(search, X, y, **options):
    """Return the models that a search scores, and their values at held-out rows."""
    found = []

    def note(model, X_test, y_test):
        found.append((model, model.decision_function(X_test)))
        return model.score(X_test, y_test)

    search.set_params(scoring=note).fit(X, y, **options)
    return found


@pytest.mark.cases(1)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_every_model_is_that_of_a_single_fit(classes, loss):
    X, y = make(classes)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    common = {"solver": Nystroem(20), "loss": loss, "random_state": 1}
    own = SVCCV(GRID, [0.05, 0.3], cv=3, refit=False, **common)
    found = noted(own, X, y, sample_weight=weight)
    assert len(found) == 3 * 2 * len(GRID)
    folds = list(StratifiedKFold(3).split(X, y))
    for model, values in found:
        needed = {row.tobytes() for row in model.support_vectors_}
        (fold,) = [f for f in folds if needed <= {row.tobytes() for row in X[f[0]]}]
        part, test = fold
        single = SVC(model.C, gamma=model.gamma, tol=1e-8, **common)
        single.fit(X[part], y[part], sample_weight=weight[part])
        np.testing.assert_array_equal(model.support_vectors_, single.support_vectors_)
        for mine, best in zip(model.certificate_, single.certificate_, strict=True):
            assert mine.certified
            assert mine.about == best.about == ABOUT
            assert best.dual <= mine.primal <= best.primal * (1 + 1e-3)
            assert mine.dual <= best.primal
        again = model.decision_function(X[test][::-1])[::-1]
        np.testing.assert_allclose(again, values, atol=1e-9)


@pytest.mark.cases(1)
@pytest.mark.parametrize(("classes", "kept"), [(2, 1), (2, 2), (3, 1)])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_the_features_of_no_more_folds_than_the_cache_holds(
    monkeypatch, classes, kept, n_jobs
):
    X, y = make(classes)
    cache_size = 1.01e-6 * kept * (classes - 1) * 4 * len(y) * 20
    approximate, alive, most = Nystroem.approximate, [], []

    def note(self, *args, **named):
        features = approximate(self, *args, **named)
        alive.append(weakref.ref(features))
        some = [ref() for ref in list(alive)]
        most.append(sum(f.n * f.d * 4 for f in some if f is not None))
        return features

    monkeypatch.setattr(Nystroem, "approximate", note)
    search = SVCCV(GRID, [0.1, 0.2], cv=3, solver=Nystroem(20), random_state=0)
    search.set_params(cache_size=cache_size, refit=False, n_jobs=n_jobs).fit(X, y)
    # A feature whose eigenvalue is 0 up to rounding is left out: 20 at most.
    assert max(most) <= cache_size * 1e6
    whole = SVCCV(GRID, [0.1, 0.2], cv=3, solver=Nystroem(20), random_state=0)
    whole.set_params(refit=False).fit(X, y)
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_array_equal(search.cv_results_[name], whole.cv_results_[name])


LARGE = """
import numpy as np
from dualgap import SVCCV
rng = np.random.default_rng(0)
X = rng.standard_normal((100_000, 10))
y = np.sin(X[:, 0]) * X[:, 1] + 0.3 * rng.standard_normal(100_000) > 0.0
search = SVCCV([0.1, 1.0, 10.0], [0.03, 0.1], cv=3, solver="nystroem", random_state=0)
search.fit(X, y)
gaps = [search.cv_results_[f"split{k}_relative_gap"].max() for k in range(3)]
print(peak(), max(gaps), search.certificate_.certified)
"""


@pytest.mark.long
@memory.reads_peak
def test_a_hundred_thousand_rows():
    """n^2 kernel values would take 80 GB."""
    peak, gap, certified = memory.run(LARGE).split()
    assert int(peak) <= 1e9
    assert float(gap) <= 1e-3
    assert certified == "True"


def products(n=240, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    return X, (np.digitize(X[:, 0] * X[:, 1], [-0.2, 0.3][: classes - 1])).astype(int)


def test_decisions_are_those_of_the_certified_model():
    """P in NumPy, from the decisions at the rows, is the P that is certified."""
    X, y = products()
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
    X, y = products(classes=3)
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
    X, y = products()
    model = SVC(solver="nystroem", time_limit=1e-9).fit(X, y)
    assert model.certificate_.status is Status.TIME_LIMIT
    assert not model.dual_coef_.any()
    assert any("no bound on the objective" in str(w.message) for w in recwarn)

"""Searches over models with landmarks: SVCCV(solver="nystroem"), GridSearchCV."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
import sklearn.model_selection
from sklearn.datasets import make_classification
from sklearn.model_selection import StratifiedKFold

from dualgap import SVC, SVCCV
from dualgap.kernel import Nystroem
from dualgap.model_selection import GridSearchCV

from .. import memory

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


@pytest.mark.parametrize("gamma", [0.1, "scale"])
def test_a_grid_search_scores_as_scikit_learn_does(gamma):
    X, y = make()
    model = SVC(
        solver=Nystroem(20), loss="squared_hinge", gamma=gamma, random_state=0, tol=1e-9
    )
    search = {"param_grid": {"C": GRID.tolist()}, "cv": 3}
    ours = GridSearchCV(model, **search).fit(X, y)
    plain = sklearn.model_selection.GridSearchCV(model, **search).fit(X, y)
    assert ours.shared_
    assert ours.relative_gaps_.max() <= 1e-9
    for k in range(3):
        name = f"split{k}_test_score"
        np.testing.assert_array_equal(ours.cv_results_[name], plain.cv_results_[name])
    assert ours.best_params_ == plain.best_params_


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

"""Pickles are as large as the model; copies in memory keep all; fits in any order."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sklearn import svm
from sklearn.base import clone, is_classifier
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV as SklearnSearch
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import (
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    compress,
    load_model,
    patch_sklearn,
    save_model,
)
from dualgap.model_selection import GridSearchCV
from dualgap.models import what_if, write_proof

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

with patch_sklearn():
    PATCHED = [svm.LinearSVC(random_state=0), svm.LinearSVR(random_state=0)]

MODELS = [
    LinearSVC(random_state=0),
    LinearSVC(solver="dcd", loss="squared_hinge", random_state=0),
    LinearSVC(multi_class="ovo", random_state=0),
    LinearSVC(loss="hinge", multi_class="crammer_singer", random_state=0),
    LinearSVR(random_state=0),
    LinearSVR(solver="newton", loss="squared_epsilon_insensitive", random_state=0),
    LinearOneClassSVM(nu=0.9),
    LinearSVCCV(random_state=0),
    GridSearchCV(LinearSVC(random_state=0), {"C": [0.1, 1.0]}),
    SklearnSearch(LinearSVC(random_state=0), {"C": [0.1, 1.0]}),
    make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
    *PATCHED,
]
every_model = pytest.mark.parametrize("model", MODELS, ids=repr)


def fitted(model: Any, n: int = 400, classes: int = 3) -> tuple[Any, Any, Any]:
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=classes, flip_y=0.2, random_state=0
    )
    X += 2.0
    return clone(model).fit(X, y), X, y


def size(model: Any) -> int:
    """Bytes of a pickle, without the histories, which have a record for each epoch."""
    model = copy.deepcopy(model)
    final = model[-1] if hasattr(model, "steps") else model
    for part in (final, getattr(final, "best_estimator_", final)):
        vars(part).pop("history_", None)
    return len(pickle.dumps(model))


@pytest.mark.cases(None)
@every_model
def test_a_pickle_does_not_grow_with_the_rows(model: Any) -> None:
    few, many = (size(fitted(model, n)[0]) for n in (200, 2000))
    # Numbers take a few bytes more or less.
    assert abs(many - few) < 300
    assert many < 10_000


def test_partial_fit_goes_on_from_copies_and_pickles() -> None:
    model, X, y = fitted(LinearSVC(random_state=0))
    told = []
    kept = pickle.loads(pickle.dumps(copy.copy(model).set_params(warm_start=True)))
    for again in (copy.deepcopy(model), copy.copy(model), kept, model):
        again.partial_fit(X, y)
        told.append(again.certificate_.dual)
    assert len(set(told)) == 1
    fresh, X, y = fitted(LinearSVC(random_state=0))
    with pytest.raises(
        ValueError, match="partial_fit after fit: the model has no dual"
    ):
        pickle.loads(pickle.dumps(fresh)).partial_fit(X, y)
    # Between two calls nothing is lost, and threads change no bit.
    other = pickle.loads(pickle.dumps(model)).set_params(n_jobs=2)
    other.partial_fit(X[::-1], y[::-1])
    model.partial_fit(X[::-1], y[::-1])
    np.testing.assert_array_equal(other.coef_, model.coef_)
    proofs = [m.certify([(X, y), (X[::-1], y[::-1])]) for m in (model, other)]
    assert proofs[0].dual == proofs[1].dual


def test_what_needs_the_dual_variables_says_so(tmp_path: Any) -> None:
    model, X, y = fitted(LinearSVC(random_state=0))
    again = pickle.loads(pickle.dumps(model))
    remedy = "fit it again, pickle it with warm_start=True, or save it with duals=True"
    with pytest.raises(ValueError, match=f"duals=True: the model has no .*{remedy}"):
        save_model(again, tmp_path / "model", duals=True)
    save_model(again, tmp_path / "model")
    loaded = load_model(tmp_path / "model").set_params(warm_start=True)
    with pytest.raises(ValueError, match=remedy):
        loaded.fit(X, y)


def test_answers_about_the_optimum_need_no_dual_variables(tmp_path: Any) -> None:
    model, X, y = fitted(LinearSVC(random_state=0, tol=1e-8), classes=2)
    again = pickle.loads(pickle.dumps(model))
    for one in (model, again):
        one.bound_optimum(X, y)
    assert (again.certified_labels(X) == model.certified_labels(X)).all()
    change = what_if(again, X, y, without=[0, 1])
    assert change.radius < 1e-2
    assert change.refit().certificate_.certified
    write_proof(again, X, y, tmp_path / "proof")
    assert (tmp_path / "proof").stat().st_size > 0
    assert compress(again, X, y, tol=0.1).certificate_.relative_gap <= 0.1


@pytest.mark.long
@pytest.mark.parametrize("model", [LinearSVC(), LinearSVCCV([0.1, 1.0], cv=2)])
def test_other_processes_send_small_models_back(model: Any) -> None:
    _, X, y = fitted(LinearSVC())
    found = cross_validate(model, X, y, n_jobs=2, cv=2, return_estimator=True)
    for one in found["estimator"]:
        assert is_classifier(one)
        assert not hasattr(one, "dual_coef_")
        assert one.certificate_.certified
    search = SklearnSearch(model, {"tol": [1e-3, 1e-4]}, n_jobs=2, cv=2).fit(X, y)
    assert search.best_estimator_.certificate_.certified


RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = np.digitize(X[:, 0] + 0.5 * RNG.normal(size=60), [-0.4, 0.4])
PARTS = [slice(i, i + 20) for i in range(0, 60, 20)]
C = st.sampled_from([0.1, 1.0, 5.0])


class Model(RuleBasedStateMachine):
    """The model must be that of a fresh one, taught since the last fit alone."""

    @initialize(value=C)
    def begin(self, value: float) -> None:
        self.model, self.C = LinearSVC(C=value, random_state=0), value
        self.taught: list[object] = []
        self.taught_C = value

    def teach(self, model: LinearSVC, what: object) -> None:
        if isinstance(what, slice):
            model.partial_fit(X[what], Y[what], classes=[0, 1, 2])
        else:
            model.fit(X, Y)

    @rule()
    def fit(self) -> None:
        self.teach(self.model, "all")
        self.taught, self.taught_C = ["all"], self.C

    @rule(k=st.integers(0, 2))
    def partial_fit(self, k: int) -> None:
        if self.taught and (self.taught[0] == "all" or self.taught_C != self.C):
            return  # other rows, or another problem, than the fit before
        self.teach(self.model, PARTS[k])
        self.taught, self.taught_C = [*self.taught, PARTS[k]], self.C

    @rule(value=C)
    def set_params(self, value: float) -> None:
        self.model.set_params(C=value)
        self.C = value

    @rule()
    def pickled(self) -> None:
        self.model = pickle.loads(pickle.dumps(self.model))

    @invariant()
    def nothing_else_is_remembered(self) -> None:
        if not self.taught:
            assert not hasattr(self.model, "coef_")
            return
        fresh = LinearSVC(C=self.taught_C, random_state=0)
        for what in self.taught:
            self.teach(fresh, what)
        np.testing.assert_array_equal(self.model.coef_, fresh.coef_)
        np.testing.assert_array_equal(self.model.intercept_, fresh.intercept_)
        assert self.model.certificate_.primal == fresh.certificate_.primal
        assert self.model.certificate_.dual == fresh.certificate_.dual


Model.TestCase.settings = settings(
    max_examples=15, stateful_step_count=8, deadline=None
)
TestModel = Model.TestCase

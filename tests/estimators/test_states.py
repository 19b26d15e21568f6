"""One model through fit, partial_fit, set_params and pickles, in any order."""

from __future__ import annotations

import pickle

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dualgap import LinearSVC

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

"""Classes whose models memory cannot hold are refused before any work."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from dualgap import LinearSVC, core
from dualgap.certificate import Status
from dualgap.problems import batch, binary
from dualgap.problems.base import Claim


@pytest.mark.cases(None)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("columns", [1, 10**7])
def test_what_cannot_fit_is_refused_before_any_work(multi_class, columns, monkeypatch):
    if multi_class == "ovr" and columns == 1:
        return  # the nonzero dual variables may be few

    def work(*_, **__):
        raise AssertionError("work began")

    monkeypatch.setattr(binary.BinaryProblem, "__init__", work)
    monkeypatch.setattr(batch.Points, "of", work)
    classes = 500_000
    X = np.arange(2.0 * classes)[:, None]
    if columns > 1:
        X = sparse.csr_array((X[:, 0], np.arange(len(X)), np.arange(len(X) + 1)),
                             shape=(len(X), columns))  # fmt: skip
    model = LinearSVC(loss="hinge", multi_class=multi_class)
    with pytest.raises(
        MemoryError, match=f"500000 classes of 1000000 rows and {columns} col"
    ):
        model.fit(X, np.arange(2 * classes) // 2)
    assert not hasattr(model, "coef_")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_a_problem_that_was_not_reached_has_the_zero_model(loss, multi_class):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), np.arange(90) % 30
    model = LinearSVC(C=0.7, loss=loss, multi_class=multi_class)
    data = model._read(X, y, rng.uniform(0.0, 2.0, 90))
    batch = model._batch(data)
    assert batch.takes_long(warm=False)
    for k in (0, len(batch) - 1):
        zero, problem = batch.unreached(k), batch.problem(k)
        own = problem.prove(Claim(zero.w, zero.alpha.copy())).certificate
        assert zero.certificate.primal == pytest.approx(own.primal, rel=1e-12)
        assert zero.certificate.primal >= own.primal - own.rounding
        assert zero.certificate.dual == own.dual == 0.0


def test_a_stop_ends_many_classes_without_starting_them(monkeypatch):
    monkeypatch.setattr(binary.BinaryProblem, "prove", None)
    X, y = np.random.default_rng(0).normal(size=(90, 3)), np.arange(90) % 30
    stop = core.Stop()
    stop.request()
    model = LinearSVC()
    with pytest.warns(ConvergenceWarning, match="30 of 30 classes did not converge"):
        model._fit(X, y, stop=stop)
    assert not model.coef_.any()
    assert {part.status for part in model.certificate_.parts} == {Status.INTERRUPTED}


@pytest.mark.cases(None)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {0: 2.0, 3: 0.0}])
@pytest.mark.parametrize("labels", [False, True])
def test_a_stop_makes_no_array_of_rows_for_each_class(
    labels, class_weight, weighted, monkeypatch
):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(120, 3)), np.arange(120) % 40
    weight = rng.uniform(0.5, 2.0, 120) if weighted else None
    if labels:
        y = (rng.uniform(size=(120, 40)) < 0.3).astype(int)
        class_weight = {0: 1.0, 1: 2.0} if class_weight else None
    model = LinearSVC(class_weight=class_weight, loss="hinge")
    batch = model._batch(model._read(X, y, weight))
    assert len(batch) == 40
    calls = []
    for name in ("place", "weights"):
        whole = getattr(type(batch), name)
        monkeypatch.setattr(
            type(batch),
            name,
            lambda self, k, whole=whole: [calls.append(k), whole(self, k)][1],
        )
    found = [batch.unreached(k) for k in range(40)]
    assert not calls
    for k, zero in enumerate(found):
        own = batch.problem(k).prove(Claim(zero.w, zero.alpha.copy())).certificate
        assert zero.certificate.primal == pytest.approx(own.primal, rel=1e-11)
        assert zero.certificate.primal >= own.primal - own.rounding
        assert zero.certificate.dual == 0.0


def test_a_stopped_warm_start_keeps_the_earlier_models():
    X, y = np.random.default_rng(0).normal(size=(90, 3)), np.arange(90) % 30
    model = LinearSVC(warm_start=True).fit(X, y)
    coef, stop = model.coef_.copy(), core.Stop()
    stop.request()
    model._fit(X, y, stop=stop)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-6)
    assert model.certificate_.certified

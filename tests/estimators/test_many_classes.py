"""Classes whose models memory cannot hold are refused before any work."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from dualgap import LinearSVC
from dualgap.problems import batch, binary


@pytest.mark.cases(None)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "crammer_singer"])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_what_cannot_fit_is_refused_before_any_work(multi_class, form, monkeypatch):
    def work(*_, **__):
        raise AssertionError("work began")

    monkeypatch.setattr(binary.BinaryProblem, "__init__", work)
    monkeypatch.setattr(batch.Points, "of", work)
    classes = 500_000
    X = form(np.arange(2.0 * classes)[:, None])
    model = LinearSVC(loss="hinge", multi_class=multi_class)
    with pytest.raises(MemoryError, match=r"500000 classes of 1000000 rows and 1 col"):
        model.fit(X, np.arange(2 * classes) // 2)
    assert not hasattr(model, "coef_")


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "crammer_singer"])
def test_what_fits_is_trained(multi_class):
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = LinearSVC(loss="hinge", multi_class=multi_class).fit(X, np.arange(40) % 8)
    assert model.certificate_.certified

"""Fits in memory, streamed and on a cluster reach one optimum; a NumPy pass proves it.

``benchmarks/scale/three_ways.py`` has the fits and that pass.
"""

from __future__ import annotations

import importlib.util
import sys

import numpy as np
import pytest

from ..conftest import ROOT

pytestmark = pytest.mark.long

TOL = 1e-3


@pytest.fixture(scope="module")
def script():
    path = ROOT / "benchmarks" / "scale" / "three_ways.py"
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("three_ways", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


@pytest.fixture
def rows_of(script, request):
    """Some rows of a data set by name."""

    def rows(name):
        if name == "rcv1-like":
            return script.datasets.rcv1_like(3000, 800)
        load = request.getfixturevalue("load_xz")
        path = {
            "a9a": "adult/a9a",
            "covtype": "covtype/covtype.binary.scale.subset92962",
        }
        X, y = load(path[name])
        some = np.random.default_rng(0).permutation(len(y))[:4000]
        return X[some], np.where(y[some] == y.max(), 1.0, -1.0)

    return rows


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("name", ["rcv1-like", "a9a", "covtype"])
def test_three_fits_agree(client, tmp_path, script, rows_of, name, kind, weighted):
    X, y = rows_of(name)
    X = X.toarray().astype(np.float32) if kind == "dense" else X
    weight = script.drawn_weights(len(y)) if weighted else None
    classes = script.CLASS_WEIGHT if weighted else None
    found = script.compare(X, y, weight, 0.1, client, tmp_path, TOL, classes)
    assert [one.way for one in found] == ["memory", "streamed", "distributed"]
    for one in found:
        assert one.certified
        assert one.said == pytest.approx((one.primal, one.dual), rel=1e-10)
        assert one.gap <= TOL * (1 + 1e-9)
    # Every model's bounds hold for all others: they are of the same problem.
    assert max(one.dual for one in found) <= min(one.primal for one in found)
    assert script.spread(found) <= TOL

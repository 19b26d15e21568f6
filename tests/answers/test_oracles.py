"""Bounds are not violated on small odd problems; the benchmark has thousands more."""

from __future__ import annotations

import pytest
from threadpoolctl import threadpool_limits

from . import oracles


@pytest.fixture(autouse=True)
def _one_thread():
    """Let BLAS start no threads for products of a few numbers."""
    with threadpool_limits(1, "blas"):
        yield


def check(name, problems, seed):
    found = [oracles.run(name, k, seed) for k in range(problems)]
    assert [k for k, one in enumerate(found) if one.violations] == []
    whole = oracles.total(found)
    assert whole.checks > 2 * whole.unproved


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", oracles.ITEMS)
def test_a_few_problems(name):
    check(name, 12, seed=1)


@pytest.mark.long
@pytest.mark.cases(None)
@pytest.mark.parametrize("name", oracles.ITEMS)
def test_many_problems(name):
    check(name, 200, seed=2)

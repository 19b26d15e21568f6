"""The cache of kernel rows: what it forgets, what it holds, what it counts."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict

import numpy as np
import pytest
from scipy import sparse

from dualgap.kernel import RBF, Callable, Gram, Linear


def test_least_recently_used_rows_are_forgotten():
    n = 200
    X = np.random.default_rng(0).normal(size=(n, 3))
    gram = Gram(X, RBF(0.5), cache_size=(5 * (4 * n + 48) + 4 * n) / 1e6)
    assert gram.core.capacity == 5
    whole = Gram(X, RBF(0.5))
    expected, hits, misses = OrderedDict(), 0, 0
    for i in np.random.default_rng(1).integers(0, 12, 600):
        row = gram.row(int(i))
        np.testing.assert_array_equal(row, whole.row(int(i)))
        if i in expected:
            expected.move_to_end(i)
            hits += 1
        else:
            misses += 1
            expected[i] = True
            if len(expected) > 5:
                expected.popitem(last=False)
        assert {j for j in range(n) if gram.core.holds(j)} == set(expected)
        assert gram.core.held <= 5
    assert gram.statistics == (hits, misses, misses * n)


def test_a_row_that_fails_leaves_the_cache_whole():
    fail = [False]

    def kernel(A, B):
        if fail[0]:
            raise RuntimeError("not now")
        return A @ B.T

    X = np.random.default_rng(0).normal(size=(10, 2))
    gram = Gram(X, Callable(kernel), cache_size=(2 * (40 + 48) + 40) / 1e6)
    gram.row(0)
    gram.row(1)
    fail[0] = True
    with pytest.raises(RuntimeError, match="not now"):
        gram.row(2)
    assert not gram.core.holds(0)  # it made room
    np.testing.assert_array_equal(gram.row(1), (X @ X[1]).astype(np.float32))
    fail[0] = False
    for i in (2, 0, 1, 5, 0):
        np.testing.assert_allclose(gram.row(i), X @ X[i], rtol=1e-6)
    assert gram.core.held == 2


def test_evaluations_are_counted():
    X = np.random.default_rng(0).normal(size=(50, 3))
    gram = Gram(X, Linear())
    gram.row(3)
    gram.block([1, 2], [3, 4, 5])
    gram.times(np.eye(50)[0])
    gram.subset([1, 2, 3]).times(np.ones(3))
    assert gram.statistics.evaluations == 50 + 6 + 50 + 9


MEASURE = """
import sys
from pathlib import Path
import numpy as np
from dualgap.kernel import RBF, Gram
n, megabytes = 20_000, int(sys.argv[1])
X = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
gram = Gram(X, RBF(0.5), cache_size=megabytes)
out = np.ones(n, np.float32)
gram.core.row(0, out)
resident = lambda: 4096 * int(Path("/proc/self/statm").read_text().split()[1])
before = peak = resident()
for i in range(2000):
    gram.core.row(i, out)
    peak = max(peak, resident())
print(peak - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("megabytes", [20, 60])
def test_the_limit_in_bytes_is_kept(megabytes):
    out = subprocess.run(
        [sys.executable, "-c", MEASURE, str(megabytes)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    grown = int(out.stdout)
    assert 0.9 * megabytes * 1e6 <= grown <= 1.05 * megabytes * 1e6


def test_refusals():
    X = np.ones((1000, 2))
    with pytest.raises(ValueError, match=r"cache_size=0\.001 does not hold two rows"):
        Gram(X, Linear(), cache_size=0.001)
    for size in (0, -1, "much"):
        with pytest.raises(ValueError, match="cache_size"):
            Gram(X, Linear(), cache_size=size)
    gram = Gram(X, Linear())
    for indices in ([], [1000], [-1], [0.5], [[1]]):
        with pytest.raises(ValueError, match="indices"):
            gram.subset(indices)
    with pytest.raises(ValueError, match="NaN"):
        Gram(np.array([[np.nan]]), Linear())
    with pytest.raises(ValueError, match="range of float32"):
        Gram(np.array([[1e25], [-1e25]]), RBF(1e-50))
    with pytest.raises(ValueError, match="0 rows"):
        Gram(np.zeros((0, 2)), Linear())
    with pytest.raises(TypeError, match="list"):
        Gram([[1.0]], Linear())


def test_columns_named_twice_are_summed():
    X = sparse.csr_matrix(
        (np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])),
        shape=(2, 3),
    )
    np.testing.assert_array_equal(
        Gram(X, Linear()).block([0, 1]), [[9.0, 0.0], [0.0, 25.0]]
    )

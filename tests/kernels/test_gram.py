"""The cache of kernel rows: what it forgets, what it holds, what it counts."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from scipy import sparse

from dualgap import core
from dualgap.kernel import RBF, Callable, Gram, Linear, Precomputed, Sigmoid
from dualgap.kernels.gram import Pairs
from dualgap.kernels.table import SETTINGS, KernelTable

from ..conftest import unsanitized
from ..solvers.kernel.data import KERNELS, layouts

MEASURE = """
import ctypes
import resource
import sys
from pathlib import Path
import numpy as np
from dualgap.kernel import RBF, Gram
n, megabytes = 20_000, int(sys.argv[1])
X = np.random.default_rng(0).normal(size=(n, 4)).astype(np.float32)
gram = Gram(X, RBF(0.5), cache_size=megabytes)
out = np.ones(n, np.float32)
gram.core.row(0, out)
page = resource.getpagesize()
resident = lambda: page * int(Path("/proc/self/statm").read_text().split()[1])
# What the imports freed would hold rows that are not seen.
getattr(ctypes.CDLL(None), "malloc_trim", int)(0)
before = peak = resident()
for i in range(2000):
    gram.core.row(i, out)
    peak = max(peak, resident())
print(peak - before, 4 * n * gram.core.held)
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@unsanitized("its own memory is counted too")
@pytest.mark.parametrize("megabytes", [20, 60])
def test_the_limit_in_bytes_is_kept(megabytes):
    out = subprocess.run(
        [sys.executable, "-c", MEASURE, str(megabytes)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    grown, held = map(int, out.stdout.split())
    assert 0.9 * megabytes * 1e6 <= held <= megabytes * 1e6
    assert grown <= 1.05 * megabytes * 1e6


# Pairs of classes

BOUNDS = [0, 33, 70, 171]


def three_classes(layout="dense-f8"):
    X = np.random.default_rng(0).normal(size=(171, 7))
    X[np.abs(X) < 0.4] = 0.0
    return layouts(X)[layout]


def sparse_rows():
    X = np.random.default_rng(0).normal(size=(171, 40))
    return sparse.csr_matrix(np.where(np.abs(X) < 1.5, 0.0, X))


def bits_of_pairs(pairs, seed):
    """All rows of all pairs, asked for in a random order, twice."""
    rng = np.random.default_rng(seed)
    out = {}
    for a, b in rng.permutation([(0, 1), (0, 2), (1, 2), (2, 0)]).tolist():
        matrix = pairs.pair(a, b)
        for i in rng.permutation(np.tile(np.arange(matrix.n), 2)).tolist():
            row = matrix.row(i)
            assert np.array_equal(out.setdefault((a, b, i), row), row)
    return out


@pytest.mark.parametrize("kernel", [*KERNELS.values(), Sigmoid(0.1)], ids=repr)
@pytest.mark.parametrize("layout", ["dense-f8", "csr-f4", "sparse"])
def test_pairs_are_the_matrices_of_their_rows(kernel, layout):
    X = sparse_rows() if layout == "sparse" else three_classes(layout)
    pairs = Pairs(X, kernel, BOUNDS)
    for a, b in ((0, 1), (0, 2), (2, 1)):
        rows = pairs.rows(a, b)
        matrix, own = pairs.pair(a, b), Gram(X[rows], kernel)
        assert matrix.n == own.n == len(rows)
        every = np.arange(own.n)
        for i in (0, 20, 32, 33, 34, own.n - 1):
            np.testing.assert_array_equal(matrix.row(i), own.row(i))
        np.testing.assert_array_equal(matrix.block(every), own.block(every))
        np.testing.assert_array_equal(matrix.diagonal(), own.diagonal())
        c = np.where(every % 3 == 0, np.cos(every), 0.0)
        np.testing.assert_array_equal(matrix.times(c), own.times(c))
        some = matrix.subset([1, 40])
        np.testing.assert_array_equal(some.block([0, 1]), own.block([1, 40], [1, 40]))


@pytest.mark.parametrize("kernel", [RBF(0.3), KERNELS["laplacian"], Sigmoid(0.1)])
@pytest.mark.parametrize("X", [three_classes(), sparse_rows()], ids=["dense", "csr"])
def test_what_is_held_changes_no_bit(kernel, X):
    whole = bits_of_pairs(Pairs(X, kernel, BOUNDS), 0)
    # 0.11 MB: the largest pair whole; 0.003: two rows of it.
    for cache_size, threads in ((0.11, 1), (0.003, 1), (0.2, 4)):
        other = bits_of_pairs(Pairs(X, kernel, BOUNDS, cache_size, threads), 1)
        assert whole.keys() == other.keys()
        for key, row in whole.items():
            np.testing.assert_array_equal(other[key], row)


def test_dense_and_sparse_rows_are_symmetric_to_the_bit():
    for X in (three_classes(), sparse_rows()):
        for kernel in (*KERNELS.values(), Sigmoid(0.1)):
            gram = Gram(X, kernel)
            K = np.stack([gram.row(i) for i in range(gram.n)])
            np.testing.assert_array_equal(K, K.T)
            pair = Pairs(X, kernel, BOUNDS).pair(2, 0)
            K = np.stack([pair.row(i) for i in range(pair.n)])
            np.testing.assert_array_equal(K, K.T)


def test_pairs_in_threads_have_the_same_bits():
    X = np.random.default_rng(0).normal(size=(450, 9))
    bounds = [0, 150, 300, 450]
    serial = bits_of_pairs(Pairs(X, RBF(0.1), bounds), 0)
    for cache_size in (200, 1.5):
        pairs = Pairs(X, RBF(0.1), bounds, cache_size, 4)
        with ThreadPoolExecutor(4) as pool:
            for found in pool.map(partial(bits_of_pairs, pairs), range(4)):
                for key, row in found.items():
                    np.testing.assert_array_equal(serial[key], row)


def test_pairs_of_kernels_that_python_computes():
    X = three_classes()
    order = np.random.default_rng(2).permutation(len(X))
    K = X @ X.T
    given = Pairs(K, Precomputed(), BOUNDS, order=order)
    computed = Pairs(X[order], Callable(lambda A, B: A @ B.T), BOUNDS)
    for a, b in ((0, 1), (2, 1)):
        rows = order[given.rows(a, b)]
        expected = K[np.ix_(rows, rows)]
        for pairs in (given, computed):
            matrix = pairs.pair(a, b)
            every = np.arange(matrix.n)
            np.testing.assert_allclose(matrix.row(3), expected[3], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(
                matrix.block(every, [2, 5]), expected[:, [2, 5]], atol=1e-12
            )
            np.testing.assert_allclose(matrix.diagonal(), np.diag(expected), atol=1e-12)
            c = np.sin(every)
            np.testing.assert_allclose(matrix.times(c), expected @ c, atol=1e-10)


MEASURE_PAIRS = """
import resource
from pathlib import Path
import numpy as np
from dualgap.kernel import RBF
from dualgap.kernels.gram import Pairs
page = resource.getpagesize()
X = np.random.default_rng(0).normal(size=(6000, 4)).astype(np.float32)
pairs = Pairs(X, RBF(0.5), [0, 2000, 4000, 6000], 50)
resident = lambda: page * int(Path("/proc/self/statm").read_text().split()[1])
out = np.ones(4000, np.float32)
before = peak = resident()
for pair in ((0, 1), (0, 2), (1, 2)):
    gram = pairs.pair(*pair)
    for i in range(4000):
        gram.core.row(i, out)
        peak = max(peak, resident())
print(peak - before)
"""


@pytest.mark.long
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@unsanitized("its own memory is counted too")
def test_the_limit_in_bytes_holds_for_pairs():
    out = subprocess.run(
        [sys.executable, "-c", MEASURE_PAIRS],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert 0.9 * 50e6 <= int(out.stdout) <= 1.05 * 50e6


CYCLES = """
import gc, weakref
import numpy as np
from dualgap import SVC
from dualgap.kernel import Callable, Gram, KernelProblem, Precomputed, SWAP2o
from dualgap.training import solve

class Function:
    def __call__(self, A, B):
        if self.fails:
            raise RuntimeError("no")
        return A @ B.T

def fit(fails):
    function = Function()
    function.fails = False
    function.gram = gram = Gram(X, Callable(function))  # a cycle
    problem = KernelProblem(gram, y)
    gram.row(0)
    function.fails = fails
    try:
        solve(problem, SWAP2o())
    except RuntimeError as error:
        function.error = error  # its frames hold the problem
    return weakref.ref(gram)

X = np.random.default_rng(0).normal(size=(60, 3))
y = np.where(X[:, 0] > 0, 1, -1)
kept = [fit(False), fit(True)]
gc.collect()
assert [gram() for gram in kept] == [None, None]
function = Function()
function.fails = False
three = np.digitize(X[:, 0], [-0.5, 0.5])
model = SVC(kernel=function, n_jobs=2).fit(X, three)
given = SVC(kernel="precomputed", n_jobs=2).fit(X @ X.T, three)
problem = KernelProblem(X @ X.T, y, kernel=Precomputed())
function.gram = Gram(X, Callable(function))  # still there at exit
"""


@pytest.mark.long
def test_kernels_that_python_computes_leave_nothing_behind():
    out = subprocess.run(
        [sys.executable, "-c", CYCLES], check=True, capture_output=True, text=True
    )
    assert out.stderr == ""


def test_columns_named_twice_are_summed():
    X = sparse.csr_matrix(
        (np.array([1.0, 2.0, 5.0]), np.array([0, 0, 1]), np.array([0, 2, 3])),
        shape=(2, 3),
    )
    np.testing.assert_array_equal(
        Gram(X, Linear()).block([0, 1]), [[9.0, 0.0], [0.0, 25.0]]
    )


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=str)
def test_a_table_computes_the_values_of_two_rows_once(kernel):
    n, d = 600, 7
    X = np.random.default_rng(0).normal(size=(n, d))
    X[np.abs(X) < 0.5] = 0.0
    for rows in (X, sparse.csr_array(X), X.astype(np.float32)):
        gram = Gram(rows, kernel)
        values = KernelTable(gram, 1.0, core.Stop()).values
        most = n * (n + SETTINGS.rows_at_once) / 2
        assert gram.statistics.evaluations <= most
        assert (values == gram.block(np.arange(n))).all()
        assert (values == values.T).all()


def test_a_table_takes_the_memory_of_another_one():
    X = np.random.default_rng(0).normal(size=(300, 7))
    first, second = (Gram(X, RBF(gamma)) for gamma in (0.3, 3.0))
    last = KernelTable(first, 1.0, core.Stop())
    again = KernelTable(second, 1.0, core.Stop(), last)
    assert again.values is last.values
    assert (again.values == second.block(np.arange(300))).all()


def test_a_table_of_given_values_keeps_them():
    K = np.random.default_rng(0).normal(size=(80, 80))
    table = KernelTable(Gram(K, Precomputed()), 1.0, core.Stop())
    assert (table.values == K).all()


N = 9
POINTS = np.random.default_rng(0).integers(-9, 10, (N, 3)).astype(float)
K = POINTS @ POINTS.T  # whole numbers: exact in float32 too
ROW = st.integers(0, N - 1)


class RowCache(RuleBasedStateMachine):
    """Rows found, computed, evicted, and rows whose computation fails."""

    @initialize(capacity=st.integers(2, N), python=st.booleans())
    def begin(self, capacity: int, python: bool) -> None:
        self.capacity, self.python, self.fails = capacity, python, False
        self.held: OrderedDict[int, None] = OrderedDict()
        self.counts = [0, 0, 0]
        kernel = Callable(self.product) if python else Linear()
        megabytes = (capacity * (4 * N + 48) + 4 * N) / 1e6
        self.gram = Gram(POINTS, kernel, cache_size=megabytes)
        assert self.gram.core.capacity == capacity
        if capacity > 2:
            less = Gram(POINTS, kernel, cache_size=megabytes - 1e-6)
            assert less.core.capacity == capacity - 1

    def teardown(self) -> None:
        del self.gram  # it holds this machine, in a cycle that is not collected

    def product(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        if self.fails:
            raise RuntimeError("not now")
        return A @ B.T

    @rule(i=ROW)
    def row(self, i: int) -> None:
        np.testing.assert_array_equal(self.gram.row(i), K[i])
        if i in self.held:
            self.counts[0] += 1
        else:
            self.counts[1] += 1
            self.counts[2] += N
        self.held[i] = None
        self.held.move_to_end(i)
        if len(self.held) > self.capacity:
            self.held.popitem(last=False)

    @rule(i=ROW)
    def row_that_fails(self, i: int) -> None:
        if i in self.held or not self.python:
            return
        self.fails = True
        with pytest.raises(RuntimeError, match="not now"):
            self.gram.row(i)
        self.fails = False
        if len(self.held) == self.capacity:  # the oldest row made room
            self.held.popitem(last=False)

    @rule(rows=st.lists(ROW, min_size=1), columns=st.lists(ROW, min_size=1))
    def values(self, rows: list[int], columns: list[int]) -> None:
        found = self.gram.block(rows, columns)
        np.testing.assert_array_equal(found, K[np.ix_(rows, columns)])
        self.counts[2] += found.size

    @invariant()
    def the_newest_rows_are_held(self) -> None:
        cache = self.gram.core
        assert [i for i in range(N) if cache.holds(i)] == sorted(self.held)
        assert len(self.held) <= cache.held <= self.capacity

    @invariant()
    def all_work_is_counted(self) -> None:
        found = self.gram.statistics
        assert [found.hits, found.misses, found.evaluations] == self.counts


RowCache.TestCase.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None
)
TestRowCache = RowCache.TestCase

"""Problem: what it refuses, that it copies nothing, and its numbers."""

from __future__ import annotations

import copy
import logging
import math
import pickle
import re
from functools import partial

import numpy as np
import pytest
from scipy import sparse

from dualgap.data import RowStore, convert
from dualgap.kernel import KernelProblem, Linear
from dualgap.losses import SmoothedHinge, get_loss
from dualgap.problems import (
    BinaryProblem as Problem,
)
from dualgap.problems import (
    OneClassProblem,
    RegressionProblem,
)
from dualgap.problems.base import BinaryHint, Claim, KernelHint

from .memory import traced

EPS = np.finfo(np.float64).eps
Y = np.array([1, -1, 1, -1])


def small(dtype=np.float64):
    return np.array(
        [[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [-1.5, 4.0, 0.25], [0.0, 3.0, 0.0]], dtype
    )


def csr(X=None, **attributes) -> sparse.csr_matrix:
    """A CSR matrix whose arrays are replaced so that SciPy does not notice."""
    A = sparse.csr_matrix(small() if X is None else X)
    for name, value in attributes.items():
        setattr(A, name, np.asarray(value))
    return A


def refuses(error, text, X=None, y=Y, *args, **kwargs):
    X = small() if X is None else X
    with pytest.raises(error) as caught:
        Problem(X, y, *args, **kwargs)
    assert text in str(caught.value)
    # Whatever is wrong, the message says what to do.
    assert re.search(
        r"give|rebuild|reshape|convert|impute|rescale|map them|expected|keep it|"
        r"must be|needed|use one of",
        str(caught.value),
    )


# Refusals: X, y, weights and numbers.


def with_value(value, dtype=np.float64):
    X = small(dtype)
    X[2, 1] = value
    return X


def with_index(layout, name, index):
    X = sparse.csr_matrix(small()).asformat(layout)
    getattr(X, name)[0] = index
    return X


def with_type(name, dtype):
    X = csr()
    setattr(X, name, getattr(X, name).astype(dtype))
    return X


LAYOUTS, WIDTHS, SHAPES = (np.asarray, csr), (np.int32, np.int64), "X has shape (4, 3)"
PARTS = f"{SHAPES} but data, indices and indptr of shapes"
#: Matrices that are refused, by the words of the answer.
#: The arrays of `csr()` are: indices [0 2 | | 0 1 2 | 1], indptr [0 2 2 5 6].
WRONG = [
    ("X is a MaskedArray; give a NumPy array", np.ma.masked_equal(small(), 4.0)),
    *((f"X is a {type(X).__name__}; give a NumPy", X)
      for X in (small().tolist(), "X", 3.0, {"a": 1})),
    *((f"X has {X.ndim} dimension(s); reshape it to (n, d)", X)
      for X in (small()[:, 0], small()[None], np.float64(3.0))),
    *((f"X has dtype {np.dtype(kind)}; convert it to float32 or float64",
       np.zeros((4, 3), kind)) for kind in (complex, object, "U3", "M8[s]")),
    ("X has dtype complex128; convert it", csr(small() + 1j)),
    *(("X, row 2: value is NaN or infinite; impute or drop", layout(with_value(x, t)))
      for layout in LAYOUTS for t in (np.float32, np.float64)
      for x in (math.nan, math.inf, -math.inf)),
    *(("X, row 2: squared norm overflows; rescale the features",
       layout(with_value(1e155))) for layout in LAYOUTS),
    *(("X, row 2: column index out of range; rebuild",
       csr(indices=np.array([0, 2, 0, index, 2, 1], width)))
      for index in (3, -1, 2**31 - 1, -(2**31)) for width in WIDTHS),
    *((text, csr(indptr=np.array(indptr, width))) for indptr, text in (
        ([1, 2, 2, 5, 6], "X, row 0: indptr does not start at 0; rebuild"),
        ([-1, 2, 2, 5, 6], "X, row 0: indptr does not start at 0; rebuild"),
        ([0, 2, 1, 5, 6], "X, row 1: indptr decreases or passes the end; rebuild"),
        ([0, 2, 2, 7, 6], "X, row 2: indptr decreases or passes the end; rebuild"),
        ([0, 2, 2, 5, 7], "X, row 3: indptr decreases or passes the end; rebuild"),
        ([0, -2, 2, 5, 6], "X, row 0: indptr decreases or passes the end; rebuild"),
        ([0, 2, 2, 6], "but data, indices and indptr of shapes (6,), (6,) and (4,)"),
        ([0, 2, 2, 5, 6, 6], "data, indices and indptr of shapes (6,), (6,) and (6,)"),
        ([], PARTS),
    ) for width in WIDTHS),
    *((PARTS, csr(data=np.ones(shape))) for shape in (5, 7, (6, 1))),
    (PARTS, csr(indices=np.zeros(5, np.int32))),
    *((f"X.{name} has dtype {np.dtype(kind)}; rebuild the matrix",
       with_type(name, kind)) for name in ("indices", "indptr")
      for kind in (np.int16, np.uint32, np.float64, ">i4")),
    *(("; rebuild the matrix with scipy.sparse.csr_matrix", with_index(*where, index))
      for where in (("csc", "indices"), ("bsr", "indices"), ("coo", "row"),
                    ("coo", "col")) for index in (-1, 10**8)),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(("text", "X"), WRONG)
def test_matrices_are_refused(text, X):
    kind = " dtype " in text or text.startswith("X is a ")
    refuses(TypeError if kind else ValueError, text, X)


#: Labels and weights that the constructor and `with_labels` refuse.
LABELLED = [
    *((y, None, f"y has shape {np.shape(y)}; expected (4,), one label")
      for y in (Y[:3], Y[:, None], 1, None, [])),
    ([1, -1, 0, 1], None, "y[2]=0: labels are -1 and +1 here; map"),
    ([1, 2, 1, 2], None, "y[1]=2: labels"),
    ([True, True, True, False], None, "y[3]=False: labels"),
    ([1.0, -1.0, math.nan, 1.0], None, "y[2]=nan: labels"),
    ([1, -1, 257, 1], None, "y[2]=257: labels"),
    (["a", "b", "a", "b"], None, "y[0]='a': labels"),
    (Y, [1.0, 1.0], "sample_weight has shape (2,); expected (4,)"),
    (Y, np.ones((4, 1)), "sample_weight has shape (4, 1); expected (4,)"),
    (Y, 2.0, "sample_weight has shape (); expected (4,)"),
    (Y, [1.0, -0.5, 1.0, 1.0], "sample_weight[1]=-0.5: weights must be"),
    (Y, [1.0, 1.0, math.nan, 1.0], "sample_weight[2]=nan: give finite"),
    (Y, [1.0, math.inf, 1.0, 1.0], "sample_weight[1]=inf: give finite"),
    (Y, np.zeros(4), "sample_weight is zero everywhere; give a positive weight"),
    (Y, "balanced", "sample_weight is not an array of numbers"),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(("y", "weight", "text"), LABELLED)
def test_labels_and_weights_are_refused(y, weight, text):
    for make in (partial(Problem, small()), Problem(small(), Y).with_labels):
        with pytest.raises(ValueError, match=re.escape(text)):
            make(y, **{} if weight is None else {"sample_weight": weight})


#: Costs and losses that are refused.
OPTIONS = [
    ({"C": 1.0, "lambda_": 0.5}, "C=1.0 and lambda_=0.5 set the same parameter; give "),
    ({"lambda_": 1e-320}, "lambda_=1e-320 is too small: 1/(lambda n) overflows; give"),
    # Costs whose squares leave float64; products that are infinite, or zero.
    *(({"C": C, "sample_weight": weight}, "C times sample_weight spans [")
      for C, weight in (
          (1e151, None), (1e-151, None), (1e100, [1.0, 1e60, 1.0, 1.0]),
          (1e-100, [1.0, 1e-60, 1.0, 1.0]), (1e150, [1.0, 1e300, 1.0, 1.0]),
          (1e-150, [1.0, 1e-300, 1.0, 1.0]))),
    # Before the data are looked at.
    ({"X": "none", "y": None, "loss": "log"}, "loss='log' is unknown; use one of"),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(("options", "text"), OPTIONS)
def test_options_are_refused(options, text):
    refuses(ValueError, text, **options)


def test_sparse_vectors_and_no_rows_are_refused():
    X = sparse.coo_array(np.ones(4))
    if X.ndim == 1:  # else this SciPy has no sparse vectors
        refuses(ValueError, "X has 1 dimension(s); reshape it to (n, d)", X)
    for layout in LAYOUTS:
        X = layout(small()[:0])
        refuses(ValueError, "X has 0 rows; at least one example is needed", X, [])


@pytest.mark.parametrize(
    "value",
    [0, 0.0, -1.0, math.nan, math.inf, -math.inf, "1", None, [1.0], 1j, 10**400],
    ids=lambda value: str(value)[:9],
)
@pytest.mark.parametrize("name", ["C", "lambda_", "intercept_scaling"])
def test_numbers_out_of_range_are_refused(name, value):
    if name != "intercept_scaling" and value is None:
        return  # the defaults: C is 1 unless one of the two is given
    text = f"{name}={value!r}: give a positive, finite number"
    if value == 10**400:
        text = f"{name} is beyond the range of float64; give a number"
    refuses(ValueError, text, **{name: value})
    if name == "intercept_scaling":
        refuses(ValueError, text, fit_intercept=True, intercept_scaling=value)


@pytest.mark.parametrize("C", [1e-150, 1e150])
def test_the_last_costs_that_are_taken(C):
    problem = Problem(small(), Y, C)
    assert (problem.cost == C).all()
    assert np.isfinite(problem.lambda_)


# Refusals: points.
#: Points, and words of the answer.
POINTS = [
    *(({"w": w}, text) for w, text in (
        ([1.0, 2.0], "w has shape (2,); expected (4,)"),
        (np.ones((4, 1)), "w has shape (4, 1); expected (4,)"),
        ([0.0, 1.0, math.nan, 0.0], "w[2]=nan: give finite numbers"),
        ([0.0, 1.0, 0.0, -math.inf], "w[3]=-inf: give finite numbers"),
        (["a"] * 4, "w is not an array of numbers"))),
    *(({"alpha": alpha}, text) for alpha, text in (
        ([1.0], "alpha has shape (1,); expected (4,)"),
        ([0.0, 0.0, math.nan, 0.0], "alpha[2]=nan: give finite numbers"),
        ([0.0, -1e-9, 0.0, 0.0], "alpha[1]=-1e-09 is outside its box [0"),
        ([0.0, 0.0, 2.5, 0.0], "alpha[2]=2.5 is outside its box [0"),
        ([0.0, 0.0, 0.0, 1e-9], "alpha[3]=1e-09 is outside its box [0"))),
    ({}, "give w, alpha, or both"),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize(("point", "text"), POINTS)
def test_a_bad_point_is_refused(point, text):
    problem = Problem(
        small(), Y, C=2.0, sample_weight=[1.0, 1.0, 1.0, 0.0], fit_intercept=True
    )
    calls = [problem.certify]
    calls += [problem.primal, problem.margins] if "w" in point else []
    calls += [problem.dual, partial(problem.certify, np.zeros(4))] * ("alpha" in point)
    for call in calls:
        with pytest.raises(ValueError, match=re.escape(text)):
            call(**point)


def test_the_bounds_of_the_box_are_inside():
    problem = Problem(small(), Y, C=2.0)
    assert np.isfinite(problem.dual(np.full(4, 2.0)))
    assert problem.dual(np.zeros(4)) == 0.0


# Nothing is copied, or once and the log says so.


@pytest.fixture
def log(caplog):
    caplog.set_level(logging.DEBUG, logger="dualgap")
    return caplog


def tells_of_one_copy(log):
    assert len(log.messages) == 1
    assert log.records[0].name == "dualgap"
    assert log.records[0].levelno == logging.INFO
    assert "one copy" in log.messages[0]


def big(dtype=np.float64, n=2000, d=60) -> np.ndarray:
    X = np.random.default_rng(0).standard_normal((n, d))
    X[np.abs(X) < 0.8] = 0.0
    return X.astype(dtype)


def canonical(dtype, width, pointer_width=None, kind=sparse.csr_matrix):
    X = kind(big(dtype))
    X.indices = X.indices.astype(width)
    X.indptr = X.indptr.astype(pointer_width or width)
    return X


def labels(n):
    return np.where(np.arange(n) % 3, 1, -1).astype(np.int8)


def uses(problem: Problem, values: np.ndarray) -> bool:
    """Whether a change of the caller's values changes the problem."""
    w = np.ones(problem.width)
    before = problem.margins(w)
    old = values.flat[0]
    values.flat[0] = old + 1000.0
    after = problem.margins(w)
    values.flat[0] = old
    return not (before == after).all()


def read_only(array, path):
    view = array.view()
    view.flags.writeable = False
    return view, array


def mapped(array, path):
    array.tofile(path)
    return tuple(np.memmap(path, array.dtype, mode, shape=array.shape)
                 for mode in ("r", "r+"))  # fmt: skip


#: Where arrays are: each is given, and may be changed by its other name.
PLACES = {"own": lambda X, _: (X, X), "read-only": read_only, "mapped": mapped}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_rows_are_used_in_place(dtype, place, tmp_path, log):
    X, values = PLACES[place](big(dtype), tmp_path / "X")
    assert uses(Problem(X, labels(len(X))), values)
    assert log.messages == []


@pytest.mark.cases(6)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
@pytest.mark.parametrize("pointer_width", [np.int32, np.int64])
@pytest.mark.parametrize("width", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_csr_rows_are_used_in_place(
    dtype, width, pointer_width, kind, place, tmp_path, log
):
    X, values = canonical(dtype, width, pointer_width, kind), {}
    for name in ("data", "indices", "indptr"):
        given, values[name] = PLACES[place](getattr(X, name), tmp_path / name)
        setattr(X, name, given)
    problem = Problem(X, labels(X.shape[0]))
    assert uses(problem, values["data"])
    # The indices as well: moved to another column, an entry meets another w_j.
    w, indices = np.arange(1.0, problem.width + 1), values["indices"]
    before = problem.margins(w)
    indices[0] += 1 if indices[1] > indices[0] + 1 else 0
    indices[-1] = X.shape[1] - 1 if indices[-1] < X.shape[1] - 1 else 0
    assert not (before == problem.margins(w)).all()
    assert log.messages == []


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_a_problem_takes_little_memory_beside_its_data(layout, fit_intercept):
    n, d = 200, 20_000
    X = np.random.default_rng(0).standard_normal((n, d))
    if layout == "csr":
        X = sparse.csr_matrix(X)
        size = X.data.nbytes + X.indices.nbytes
    else:
        size = X.nbytes
    y = labels(n)

    def proved():
        problem = Problem(X, y, fit_intercept=fit_intercept)
        problem.certify(np.zeros(problem.width))

    _, peak = traced(proved)
    assert peak < 0.02 * size


def strided(X):
    wide = np.zeros((X.shape[0], 2 * X.shape[1]), X.dtype)
    wide[:, ::2] = X
    return wide[:, ::2]


def unaligned(X):
    raw = np.empty(X.nbytes + 1, np.uint8)
    view = raw[1:].view(X.dtype).reshape(X.shape)
    view[:] = X
    return view


DENSE_COPIES = {
    "fortran": np.asfortranarray,
    "strided": strided,
    "reversed": lambda X: X[::-1][::-1, ::-1][:, ::-1][::-1],
    "unaligned": unaligned,
    "integer": lambda X: np.round(X).astype(np.int64),
    "fortran integer": lambda X: np.asfortranarray(np.round(X).astype(np.int64)),
    "boolean": lambda X: X != 0,
    "half": lambda X: X.astype(np.float16),
    "byte-swapped": lambda X: X.astype(X.dtype.newbyteorder()),
}


@pytest.mark.parametrize("name", DENSE_COPIES)
def test_other_dense_rows_are_copied_once_and_the_log_says_so(name, log):
    X = DENSE_COPIES[name](big())
    original = X.copy()
    n, d = X.shape
    _, peak = traced(lambda: Problem(X, labels(n)))
    log.clear()
    problem = Problem(X, labels(n))

    tells_of_one_copy(log)
    assert 8 * n * d <= peak < 1.5 * 8 * n * d
    assert X.dtype == original.dtype
    assert (X == original).all()
    assert not uses(problem, X)
    w = np.linspace(-1.0, 1.0, d)
    expected = labels(n) * (original.astype(np.float64) @ w)
    np.testing.assert_allclose(problem.margins(w), expected, rtol=1e-12, atol=1e-12)


def reordered(X):
    """Every row's entries backwards."""
    X = X.copy()
    for i in range(X.shape[0]):
        row = slice(X.indptr[i], X.indptr[i + 1])
        X.indices[row] = X.indices[row][::-1].copy()
        X.data[row] = X.data[row][::-1].copy()
    return X


def doubled(X):
    """Every entry as two halves beside each other."""
    indices, data = np.repeat(X.indices, 2), np.repeat(X.data / 2, 2)
    return sparse.csr_matrix((data, indices, 2 * X.indptr), X.shape)


def stale(X):
    """Unsorted and with duplicates, but SciPy was told otherwise."""
    X = reordered(doubled(X))
    X.has_sorted_indices = True
    X.has_canonical_format = True
    return X


def strided_values(X):
    X = X.copy()
    X.data = np.repeat(X.data, 2)[::2]
    return X


SPARSE_COPIES = {
    "duplicates": doubled,
    "unsorted duplicates": lambda X: reordered(doubled(X)),
    "stale flags": stale,
    "csc": lambda X: X.tocsc(),
    "coo": lambda X: X.tocoo(),
    "integer": lambda X: (X * 100).astype(np.int32),
    "boolean": lambda X: X.astype(bool),
    "byte-swapped": lambda X: csr(X, data=X.data.astype(X.dtype.newbyteorder())),
    "strided values": strided_values,
}


@pytest.mark.parametrize("name", SPARSE_COPIES)
def test_other_sparse_rows_are_copied_once_and_the_log_says_so(name, log):
    X = SPARSE_COPIES[name](sparse.csr_matrix(big()))
    dense = X.toarray().astype(np.float64)
    n, d = X.shape
    names = ("data", "row", "col") if name == "coo" else ("data", "indices", "indptr")
    arrays = {key: getattr(X, key) for key in names}
    copies = {key: array.copy() for key, array in arrays.items()}
    stored = X.data.size
    _, peak = traced(lambda: Problem(X, labels(n)))
    log.clear()
    problem = Problem(X, labels(n))

    tells_of_one_copy(log)
    assert 8 * stored <= peak < 1.5 * 12 * stored
    for key, array in arrays.items():
        assert getattr(X, key) is array
        assert array.dtype == copies[key].dtype
        assert (array == copies[key]).all()
    w = np.linspace(-1.0, 1.0, d)
    expected = labels(n) * (dense @ w)
    np.testing.assert_allclose(problem.margins(w), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("told", [False, True])
def test_unsorted_rows_are_used_in_place(told, log):
    """Text vectorisers of scikit-learn return such rows."""
    X = reordered(sparse.csr_matrix(big()))
    X.has_sorted_indices = X.has_canonical_format = told
    problem = Problem(X, labels(X.shape[0]))
    w = np.linspace(-1.0, 1.0, X.shape[1])
    expected = labels(X.shape[0]) * (X.toarray().astype(np.float64) @ w)
    np.testing.assert_allclose(problem.margins(w), expected, rtol=1e-12, atol=1e-12)
    squares = (X.toarray().astype(np.float64) ** 2).sum(axis=1)
    np.testing.assert_allclose(problem.q, squares, rtol=1e-12)
    assert uses(problem, X.data)
    assert log.messages == []


@pytest.mark.parametrize("apart", [1, 2**16 - 1, 2**16])
def test_a_column_named_by_two_rows_is_no_duplicate(apart, log):
    """Marks of columns come again after as many rows as two bytes count."""
    n, d = apart + 1, 3
    indices = np.tile(np.array([1, 0], dtype=np.int32), n)  # all rows are unsorted
    indices[2:-2] = np.tile(np.array([2, 0], dtype=np.int32), n - 2)
    X = sparse.csr_matrix((np.ones(2 * n), indices, 2 * np.arange(n + 1)), (n, d))
    assert Problem(X, labels(n)).n == n
    assert log.messages == []
    X.indices[-2:] = 1  # the last row names its column twice
    assert Problem(X, labels(n)).q[-1] == 4.0
    assert len(log.messages) == 1


def test_data_live_as_long_as_the_problem():
    X = big()
    expected = labels(len(X)) * (X @ np.ones(X.shape[1]))
    problem = Problem(sparse.csr_matrix(X), labels(len(X)))
    del X
    junk = [np.full((2000, 60), 7.0) for _ in range(5)]
    margins = problem.margins(np.ones(60))
    assert len(junk) == 5
    np.testing.assert_allclose(margins, expected, rtol=1e-12, atol=1e-12)


# The numbers, against plain NumPy.


def matrices():
    """n x d with rows longer than a vector register, empty rows, and a remainder."""
    X = np.random.default_rng(3).standard_normal((37, 53))
    X[np.random.default_rng(4).random(X.shape) < 0.4] = 0.0
    X[[0, 5, 36]] = 0.0
    for dtype in (np.float32, np.float64):
        Xt = X.astype(dtype)
        yield f"dense-{np.dtype(dtype)}", Xt, Xt.astype(np.float64)
        for width in (np.int32, np.int64):
            for pointer_width in (np.int32, np.int64):
                A = sparse.csr_matrix(Xt)
                A.indices = A.indices.astype(width)
                A.indptr = A.indptr.astype(pointer_width)
                name = f"csr-{np.dtype(dtype)}-{np.dtype(width)}"
                yield f"{name}-{np.dtype(pointer_width)}", A, Xt.astype(np.float64)


MATRICES = {name: (X, dense) for name, X, dense in matrices()}


@pytest.mark.parametrize("bias", [None, 1.0, 2.5])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", SmoothedHinge(0.5)])
@pytest.mark.parametrize("name", MATRICES)
def test_the_numbers_are_those_of_plain_numpy(name, loss, bias):
    X, dense = MATRICES[name]
    rng = np.random.default_rng(5)
    n, d = dense.shape
    y = rng.choice([-1, 1], n)
    weight = rng.choice([0.0, 0.5, 2.0], n)
    problem = Problem(
        X, y, 0.3, loss=loss, sample_weight=weight, fit_intercept=bias is not None,
        intercept_scaling=bias or 1.0,
    )  # fmt: skip
    full = dense if bias is None else np.column_stack([dense, np.full(n, bias)])
    assert (problem.n, problem.d, problem.width) == (n, d, full.shape[1])
    assert (problem.y == y).all()
    cost = 0.3 * weight
    assert (problem.cost == cost).all()
    close = {"rtol": 1e-13, "atol": 1e-13}
    np.testing.assert_allclose(problem.q, (full**2).sum(axis=1), **close)

    w = rng.standard_normal(problem.width)
    margins = y * (full @ w)
    np.testing.assert_allclose(problem.margins(w), margins, **close)
    P = 0.5 * w @ w + cost @ get_loss(loss).value(margins)
    assert problem.primal(w) == pytest.approx(P, rel=1e-13)
    primal, certified = problem.primal(w), problem.certify(w)
    assert primal <= certified.primal <= primal + certified.rounding * (1 + 1e-6)

    alpha = rng.random(n) * np.minimum(problem.upper, 3.0 * cost)
    v = (alpha * y) @ full
    np.testing.assert_allclose(problem.combine(alpha), v, **close)
    delta = np.divide(problem.loss.curvature, cost, where=cost > 0, out=np.zeros(n))
    D = alpha.sum() - 0.5 * v @ v - 0.5 * delta @ alpha**2
    assert problem.dual(alpha) == pytest.approx(D, rel=1e-12, abs=1e-12)
    assert problem.certify(alpha=alpha).dual == pytest.approx(D, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", MATRICES)
def test_no_columns_at_all(name):
    X, _ = MATRICES[name]
    problem = Problem(X[:, :0], np.where(np.arange(37) % 2, 1, -1), C=2.0)
    assert problem.width == 0
    certificate = problem.certify(np.zeros(0))
    assert certificate.dual < 74.0 < certificate.primal
    assert certificate.gap <= 1e-14 * 74.0


def test_points_may_be_lists_integers_and_read_only():
    problem = Problem(small(), Y)
    w = np.array([1.0, 2.0, 0.0])
    expected = problem.primal(w)
    assert problem.primal([1, 2, 0]) == expected
    w.flags.writeable = False
    assert problem.primal(w) == expected
    alpha = np.full(4, 0.5)
    alpha.flags.writeable = False
    assert problem.dual(alpha) == problem.dual([0.5] * 4)
    assert problem.certify(w, alpha) == problem.certify([1, 2, 0], [0.5] * 4)


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.float64, np.float32, object])
def test_labels_of_any_dtype(dtype):
    y = Y.astype(dtype)
    problem = Problem(small(), y)
    assert problem.y.dtype == np.int8
    assert (problem.y == Y).all()


def test_with_labels_shares_the_rows():
    X = big()
    n = len(X)
    problem = Problem(X, labels(n), C=2.0, fit_intercept=True, intercept_scaling=3.0)
    weight = np.where(np.arange(n) % 2, 0.5, 0.0)
    other = problem.with_labels(-labels(n), weight)
    assert other.rows is problem.rows
    assert other.q is problem.q
    w = np.linspace(-1.0, 1.0, problem.width)
    assert (other.margins(w) == -problem.margins(w)).all()
    assert (other.cost == 2.0 * weight).all()
    assert (problem.cost == 2.0).all()
    assert (problem.y == labels(n)).all()
    fresh = Problem(
        X, -labels(n), 2.0, sample_weight=weight, fit_intercept=True,
        intercept_scaling=3.0,
    )  # fmt: skip
    assert other.certify(w) == fresh.certify(w)
    # Without weights, the costs are C again.
    assert (other.with_labels(labels(n)).cost == 2.0).all()


@pytest.mark.parametrize("lambda_", [1e-4, 0.25, 3])
def test_lambda_is_converted(lambda_):
    problem = Problem(small(), Y, lambda_=lambda_)
    assert problem.C == 1.0 / (lambda_ * 4)
    assert problem.lambda_ == pytest.approx(lambda_, rel=4 * EPS)
    # lambda P(w) is the objective of the papers.
    w = np.array([0.3, -0.2, 0.1])
    hinge = np.maximum(0.0, 1.0 - Y * (small() @ w)).mean()
    papers = 0.5 * lambda_ * w @ w + hinge
    assert lambda_ * problem.primal(w) == pytest.approx(papers, rel=1e-14)


def test_lambda_and_omega_with_weights():
    weight = np.array([0.0, 1.0, 2.0, 5.0])
    problem = Problem(small(), Y, C=0.5, sample_weight=weight)
    assert problem.lambda_ == pytest.approx(1.0 / 4.0)
    np.testing.assert_allclose(problem.omega, weight / 2.0, rtol=1e-15)


def test_an_integer_weight_is_a_repeated_row():
    weight = np.array([3, 0, 1, 2])
    w = np.array([0.3, -0.2, 0.1])
    repeated = Problem(np.repeat(small(), weight, axis=0), np.repeat(Y, weight))
    weighted = Problem(small(), Y, sample_weight=weight)
    assert weighted.primal(w) == pytest.approx(repeated.primal(w), rel=1e-14)


@pytest.mark.parametrize("scaling", [1.0, 0.1, 20.0])
def test_coef_splits_the_intercept(scaling):
    problem = Problem(small(), Y, fit_intercept=True, intercept_scaling=scaling)
    w = np.array([0.3, -0.2, 0.1, 0.7])
    coef, intercept = problem.coef(w)
    assert coef.shape == (3,)
    decision = small() @ coef + intercept
    np.testing.assert_allclose(Y * decision, problem.margins(w), rtol=1e-13, atol=1e-15)
    assert intercept == scaling * 0.7


def test_coef_without_an_intercept():
    w = np.array([0.3, -0.2, 0.1])
    coef, intercept = Problem(small(), Y).coef(w)
    assert (coef == w).all()
    assert intercept == 0.0


@pytest.mark.filterwarnings("error")
def test_a_cost_in_single_precision_is_taken_as_it_is():
    X, y = np.eye(2, dtype=np.float32), [-1, 1]
    assert Problem(X, y, np.float32(0.5)).C == 0.5
    with pytest.raises(ValueError, match="positive, finite"):
        Problem(X, y, np.float32(np.inf))


# ------------------------------------------------------------------------- copies


def problems():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.6)
    y, t = np.where(X[:, 0] > 0, 1, -1), X[:, 1] + rng.normal(size=50)
    weight = rng.random(50)
    yield "dense", Problem(X, y, 2.0)
    yield "float32", Problem(X.astype(np.float32), y, 2.0, fit_intercept=True)
    csr = sparse.csr_matrix(X)
    yield "csr", Problem(csr, y, 2.0, sample_weight=weight, fit_intercept=True)
    csr64 = sparse.csr_matrix(csr)
    csr64.indices, csr64.indptr = csr.indices.astype(np.int64), csr.indptr.astype("i8")
    yield "csr, int64", Problem(csr64, y, 2.0, loss="squared_hinge", n_jobs=2)
    free = {"fit_intercept": True, "penalize_intercept": False}
    yield "free bias", Problem(X, y, 2.0, **free)
    yield "regression", RegressionProblem(X, t, 2.0)
    yield "one class", OneClassProblem(X, 0.5)


@pytest.mark.parametrize("name", [name for name, _ in problems()])
def test_a_hint_for_another_kind_of_problem_is_refused(name):
    problem = dict(problems())[name]
    claim = Claim(alpha=np.zeros(problem.n), hint=KernelHint())
    with pytest.raises(TypeError, match="hint=KernelHint does not fit this problem"):
        problem.prove(claim)


def test_a_kernel_problem_proves_nothing_without_a_dual_point():
    problem = KernelProblem(np.eye(4), [1, -1, 1, -1], kernel=Linear())
    for claim in (Claim(np.ones(4)), Claim()):
        with pytest.raises(TypeError, match="must hold alpha"):
            problem.prove(claim)


@pytest.mark.parametrize("name", [name for name, _ in problems()])
@pytest.mark.parametrize(
    "copied", [lambda p: pickle.loads(pickle.dumps(p)), copy.deepcopy, copy.copy]
)
def test_a_problem_can_be_pickled_and_copied(name, copied):
    problem = dict(problems())[name]
    other = copied(problem)
    assert type(other) is type(problem)
    assert other.threads.size == problem.threads.size
    w = np.random.default_rng(1).normal(size=problem.width)
    alpha = np.full(problem.n, 0.01) * (problem.cost > 0)
    if name == "free bias":
        alpha[:] = 0.0
    proofs = [each.prove(Claim(w, alpha)) for each in (problem, other)]
    assert proofs[0].certificate == proofs[1].certificate
    if type(problem) is Problem:
        assert other.with_labels(-other.y).rows is other.rows


@pytest.mark.parametrize("buffer", [2**28, 20_000])
def test_a_problem_over_a_store_is_pickled_by_its_path(tmp_path, buffer):
    X, y = np.random.default_rng(0).normal(size=(900, 6)), np.arange(900) % 2 * 2 - 1
    convert([(X, y)], tmp_path / "s")
    store = RowStore.open(tmp_path / "s", buffer=buffer)
    problem = Problem(store, None, 2.0)
    assert problem.streamed == (buffer < 2**28)
    content = pickle.dumps(problem)
    assert len(content) < X.nbytes
    other = pickle.loads(content)
    w = np.ones(6)
    assert other.primal(w) == problem.primal(w)


def test_a_proof_takes_a_given_w_only_of_the_same_duals():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 5)), np.where(rng.normal(size=30) > 0, 1, -1)
    problem = Problem(X, y, 1.0)
    for alpha in (rng.uniform(size=30), rng.uniform(size=30) + 0.5):  # some too large
        clipped = np.minimum(alpha, 1.0)
        hint = BinaryHint(problem.combine(alpha), combined=True)
        proof, plain = (
            problem.prove(Claim(alpha=alpha, hint=hint)),
            Claim(alpha=clipped),
        )
        assert proof.certificate == problem.prove(plain).certificate
        np.testing.assert_array_equal(proof.w, problem.combine(clipped))

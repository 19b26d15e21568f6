"""Kernel rows and products of the core against the formulas in float64."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from dualgap import core

KERNELS = ("linear", "rbf", "laplacian", "poly", "sigmoid")
GAMMA, COEF0, DEGREE = 0.4, 0.7, 3
# Not multiples of the tile: 6 or 12 queries, 32 points, vectors of 2 to 16 lanes.
SIZES = [
    (1, 1), (2, 3), (31, 5), (32, 6), (33, 7), (63, 11), (65, 12), (100, 13), (96, 64),
]  # fmt: skip
COLUMNS = (1, 2, 17, 40)
RUNNABLE = [level for level in core.built_levels if int(level[1:]) <= core.cpu_level]


def exact(kernel, A, B, gamma=GAMMA, coef0=COEF0, degree=DEGREE):
    """The formulas, in extended precision."""
    A, B = A.astype(np.longdouble), B.astype(np.longdouble)
    s = A @ B.T
    if kernel == "linear":
        return s
    if kernel == "rbf":
        d = ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2)
        return np.exp(-np.longdouble(gamma) * d)
    if kernel == "laplacian":
        d = np.abs(A[:, None, :] - B[None, :, :]).sum(axis=2)
        return np.exp(-np.longdouble(gamma) * d)
    if kernel == "poly":
        return (np.longdouble(gamma) * s + coef0) ** degree
    return np.tanh(np.longdouble(gamma) * s + coef0)


def points(X):
    """The row accessor over X, and X dense in its own precision."""
    if sparse.issparse(X):
        return core.csr_rows(X.data, X.indices, X.indptr, X.shape[1], 0.0), X.toarray()
    return core.dense_rows(X, 0.0), X


def kernel_rows(X, kernel, *, dense=True, threads=1, named=None, gamma=GAMMA):
    form = core.KernelMap(kernel, gamma, COEF0, DEGREE)
    return core.KernelRows(points(X)[0], form, named, dense, threads)


def kernel_times(kernel, X, coef, ends, Z, out, *settings):
    """Write the products of kernel values with `coef`; whether it was not stopped."""
    return core.kernel_times(
        core.KernelMap(kernel, GAMMA, COEF0, DEGREE),
        points(X)[0],
        coef,
        np.array(ends),
        points(Z)[0],
        out,
        core.ProductSettings(*settings),
        core.Stop(),
    )


def rows_of(engine, who):
    who = np.asarray(who, dtype=np.uint32)
    out = np.full((len(who), -(-engine.n // 32) * 32), np.nan, np.float32)
    assert engine.rows(who, out, core.Stop())
    return out[:, : engine.n]


def cross_of(engine, who, columns):
    who, columns = np.asarray(who, np.uint32), np.asarray(columns, np.uint32)
    out = np.full((len(who), -(-len(columns) // 32) * 32), np.nan, np.float32)
    assert engine.cross(who, columns, out, core.Stop())
    return out[:, : len(columns)]


def sums_of(engine, who, coef):
    out = np.zeros(engine.n)
    assert engine.add_rows(np.asarray(who, np.uint32), coef, None, out, core.Stop())
    return out


def times_of(engine, who, coef):
    out = np.zeros(engine.n)
    assert engine.times(
        np.asarray(who, dtype=np.uint32), coef, None, out, None, core.Stop()
    )
    return out


def data(rng, n, d, dtype, form):
    X = rng.standard_normal((n, d)) + 0.5
    if form == "csr":
        X[rng.random((n, d)) < 0.6] = 0.0
        return sparse.csr_matrix(X.astype(dtype))
    return X.astype(dtype)


@pytest.mark.parametrize("form", ["dense", "csr", "csr packed"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_and_products_on_every_tail(kernel, form):
    rng = np.random.default_rng(7)
    for n, m in SIZES:
        for d in COLUMNS:
            for dtype in (np.float32, np.float64):
                X = data(rng, n, d, dtype, form.split()[0])
                engine = kernel_rows(X, kernel, dense=form != "csr")
                assert (engine.n, engine.dense) == (n, form != "csr")
                who = rng.integers(n, size=m)
                columns = rng.integers(n, size=n // 2 + 1)
                coef = rng.standard_normal(m)
                expected = exact(kernel, points(X)[1][who], points(X)[1])
                # Rounding of a sum is relative to its terms.
                size = 1.0 + np.abs(expected).max()
                np.testing.assert_allclose(
                    rows_of(engine, who), expected, rtol=0, atol=4e-6 * size
                )
                for precise in (False, True):
                    engine.precise = precise
                    rows = rows_of(engine, who)
                    np.testing.assert_array_equal(
                        cross_of(engine, who, columns), rows[:, columns]
                    )
                    np.testing.assert_allclose(
                        sums_of(engine, who, coef), coef @ rows.astype(np.float64),
                        rtol=0, atol=1e-6 * size * m,
                    )  # fmt: skip
                np.testing.assert_allclose(
                    rows_of(engine, who), expected, rtol=2e-7, atol=1e-13 * size
                )
                np.testing.assert_allclose(
                    times_of(engine, who, coef), coef @ expected,
                    rtol=0, atol=1e-13 * size * m,
                )  # fmt: skip


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("form", ["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_products_with_new_points_and_several_outputs(kernel, form, precise):
    rng = np.random.default_rng(3)
    for n, m, d, outputs in [(1, 1, 1, 1), (33, 13, 5, 2), (70, 70, 18, 3)]:
        Z = data(rng, n, d, np.float64, form)
        X = data(rng, m, d, np.float32, form)
        coef = rng.standard_normal((outputs, m))
        for ends in ([m], [0, m // 3, m // 3, m]):
            out = np.full((len(ends) * outputs, n), np.nan)
            settings = form == "dense", precise, 1
            assert kernel_times(kernel, X, coef, ends, Z, out, *settings)
            K = exact(kernel, points(X)[1], points(Z)[1])
            parts = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]
            expected = np.vstack([coef[:, part] @ K[part] for part in parts])
            size = m * (1.0 + np.abs(expected).max())
            tolerance = 1e-13 if precise else 4e-6
            np.testing.assert_allclose(out, expected, rtol=0, atol=tolerance * size)


@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("kernel", KERNELS)
def test_features_that_do_not_occur_change_no_bit(kernel, precise):
    # So many that points are listed by feature.
    rng = np.random.default_rng(6)
    few = data(rng, 150, 40, np.float64, "csr")
    columns = np.sort(rng.choice(50_000, 40, replace=False)).astype(np.int32)
    many = sparse.csr_matrix(
        (few.data, columns[few.indices], few.indptr), (150, 50_000)
    )
    who, coef = rng.integers(150, size=101), rng.standard_normal((2, 150))
    found = []
    for X in (few, many):
        engine = kernel_rows(X, kernel, dense=False)
        engine.precise = precise
        sums = np.empty((4, 150))
        assert kernel_times(kernel, X, coef, [70, 150], X, sums, False, precise, 2)
        found.append(
            (
                rows_of(engine, who),
                cross_of(engine, who, who[::2]),
                sums_of(engine, who, coef[0, :101]),
                times_of(engine, who, coef[1, :101]),
                sums,
            )
        )
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def text(rng, n, d, entries=12):
    """Few of many features, some in most rows and most of them in very few."""
    rows = np.repeat(np.arange(n), entries)
    columns = np.minimum((d ** rng.random(n * entries)).astype(int), d) - 1
    X = sparse.csr_matrix((rng.uniform(0.5, 1.5, n * entries), (rows, columns)), (n, d))
    X.sum_duplicates()
    X = X.multiply(rng.choice([-1.0, 1.0], d)).tocsr()
    X.data[X.indptr[3] : X.indptr[4]] = 0.0
    X.eliminate_zeros()  # a row without entries
    return X


@pytest.mark.long
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", KERNELS)
def test_common_and_rare_features(kernel, dtype):
    # More rows than a chunk of postings has, and more queries than meet it together.
    rng = np.random.default_rng(8)
    n, d, m = 2101, 6000, 530
    X = text(rng, n, d).astype(dtype)
    share = np.diff(X.tocsc().indptr) / n
    assert (share > 1 / 16).sum() > 5
    assert (share[share > 0] < 1 / 16).sum() > 1000
    engine = kernel_rows(X, kernel, dense=False)
    who = rng.permutation(n)[:m]
    who[:2], columns = (3, 1), rng.integers(n, size=700)
    coef = rng.standard_normal(m)
    A, some = X.toarray().astype(np.float64), who[:6]
    expected = np.vstack([exact(kernel, A[[i]], A) for i in some]).astype(float)
    size = 1.0 + np.abs(expected).max()
    for precise in (False, True):
        engine.precise = precise
        rows = rows_of(engine, who)
        close = {"rtol": 2e-7, "atol": 1e-13 * size} if precise else {
            "rtol": 0, "atol": 4e-6 * size}  # fmt: skip
        np.testing.assert_allclose(rows[:6], expected, **close)
        np.testing.assert_array_equal(cross_of(engine, who, columns), rows[:, columns])
        if kernel in ("rbf", "laplacian"):
            assert (rows[np.arange(m), who] == 1.0).all()
        np.testing.assert_allclose(
            sums_of(engine, who, coef), coef @ rows.astype(np.float64),
            rtol=0, atol=1e-6 * size * m,
        )  # fmt: skip
        threaded = kernel_rows(X, kernel, dense=False, threads=3)
        threaded.precise = precise
        np.testing.assert_array_equal(rows_of(threaded, who), rows)
        times = times_of(engine, some, coef[:6])
        np.testing.assert_array_equal(times_of(threaded, some, coef[:6]), times)
        np.testing.assert_allclose(times, coef[:6] @ expected, atol=1e-12 * size)
        # Other points than those of the problem: each set has common ones of its own.
        few, out = X[some], np.empty((2, n))
        weights = np.vstack([coef[:6], coef[6:12]])
        assert kernel_times(kernel, few, weights, [6], X, out, False, precise, 2)
        np.testing.assert_allclose(
            out, np.vstack([coef[:6], coef[6:12]]) @ expected,
            rtol=0, atol=(1e-12 if precise else 3e-5) * size,
        )  # fmt: skip


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
@pytest.mark.parametrize("gamma", [1e-12, 0.3, 1e6])
def test_equal_points_have_kernel_value_one_exactly(kernel, dense, gamma):
    rng = np.random.default_rng(0)
    X = data(rng, 50, 9, np.float64, "csr" if not dense else "dense")
    X = sparse.vstack([X, X], "csr") if not dense else np.vstack([X, X])
    engine = kernel_rows(X, kernel, dense=dense, gamma=gamma)
    for precise in (False, True):
        engine.precise = precise
        K = rows_of(engine, np.arange(100))
        same = np.arange(100)[:, None] % 50 == np.arange(100) % 50
        assert (K[same] == 1.0).all()
        assert (K <= 1.0).all()
        assert (K >= 0.0).all()
        if gamma == 1e6:
            assert (K[~same] < 1e-30).all()
        if gamma == 1e-12:
            assert (K >= 1.0 - 1e-6).all()


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_shifted_rows_tell_values_near_one_apart(kernel, dense):
    X = data(np.random.default_rng(5), 40, 6, np.float64, "dense" if dense else "csr")
    engine = kernel_rows(X, kernel, dense=dense, gamma=1e-9)
    engine.precise = engine.shifted = True
    A = points(X)[1].astype(np.longdouble)
    difference = A[:, None, :] - A[None, :, :]
    distance = (difference**2 if kernel == "rbf" else np.abs(difference)).sum(axis=2)
    np.testing.assert_allclose(
        rows_of(engine, np.arange(40)),
        np.expm1(-1e-9 * distance),
        rtol=1e-6,
        atol=1e-15,
    )


@pytest.mark.parametrize("dense", [True, False])
def test_named_points_are_the_whole_problem(dense):
    rng = np.random.default_rng(1)
    X = data(rng, 60, 8, np.float64, "dense" if dense else "csr")
    named = rng.permutation(60)[:41].astype(np.uint32)
    some = kernel_rows(X, "rbf", dense=dense, named=named)
    alone = kernel_rows(X[named], "rbf", dense=dense)
    who = np.arange(41)
    np.testing.assert_array_equal(rows_of(some, who), rows_of(alone, who))


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("precise", [True, False])
def test_threads_change_no_bit(dense, precise):
    rng = np.random.default_rng(2)
    X = data(rng, 333, 20, np.float32, "dense" if dense else "csr")
    who, coef = np.arange(50), rng.standard_normal(50)
    found = []
    for threads in (1, 2, 5):
        engine = kernel_rows(X, "rbf", dense=dense, threads=threads)
        engine.precise = precise
        found.append((rows_of(engine, who), times_of(engine, who, coef)))
    for rows, products in found[1:]:
        np.testing.assert_array_equal(rows, found[0][0])
        np.testing.assert_array_equal(products, found[0][1])


@pytest.mark.parametrize("dense", [True, False])
def test_a_stop_leaves_early(dense):
    X = data(np.random.default_rng(4), 40_000, 8, np.float32, "dense")
    X = X if dense else sparse.csr_matrix(X)
    engine = kernel_rows(X, "rbf", dense=dense)
    stop = core.Stop()
    stop.request()
    who = np.zeros(64, np.uint32)
    out = np.empty((64, 40_000), np.float32)
    assert not engine.rows(who, out, stop)
    assert not engine.times(who, np.ones(64), None, np.empty(40_000), None, stop)


@pytest.mark.parametrize("level", RUNNABLE[:-1])
def test_the_other_variants_pass_too(level):
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "DUALGAP_CPU": level},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stdout


if os.environ.get("DUALGAP_CPU"):  # the run of one variant starts no others
    del test_the_other_variants_pass_too

"""Rows are the same in any container, order of memory, format and width of indices."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

from ..conftest import SANITIZED
from .subjects import NAMES, SUBJECTS, X, bits, overlap, values

pytestmark = pytest.mark.filterwarnings(
    "ignore::dualgap.DegenerateWarning", "ignore::sklearn.exceptions.ConvergenceWarning"
)
PLAIN = [
    *("LinearSVC", "LinearSVC, dcd", "LogisticRegression", "LinearSVR"),
    *("LinearOneClassSVM", "SVC", "SVC, nystroem", "SVR", "OneClassSVM", "NuSVC"),
    *("NuSVR", "LinearSVC, L1", "LogisticRegression, L1", "SVC, block"),
]
every_plain = pytest.mark.parametrize("name", PLAIN)
COLUMNS = list("abcdefgh")
THIN = np.where(np.abs(X) < 1.0, 0.0, X)


def dense(X: Any, folder: Path) -> Iterator[tuple[str, Any]]:
    """Yield equal rows by the names of their containers."""
    strided = np.zeros((2 * len(X), 2 * X.shape[1]))
    strided[::2, ::2] = X
    read_only = X.copy()
    read_only.flags.writeable = False
    np.save(folder / "X.npy", X)
    yield "read-only", read_only
    yield "list", X.tolist()
    yield "Fortran", np.asfortranarray(X)
    yield "strided", strided[::2, ::2]
    yield "reversed", X[::-1].copy()[::-1]
    yield "mapped", np.load(folder / "X.npy", mmap_mode="r")
    yield "pandas", pd.DataFrame(X.copy(), columns=COLUMNS)
    if not SANITIZED:  # ThreadSanitizer and the allocator of polars do not agree
        import polars as pl

        yield "polars", pl.DataFrame(X.copy(), schema=COLUMNS)
    yield "pyarrow", pa.table(dict(zip(COLUMNS, X.T.copy(), strict=True)))


def wide(X: Any) -> Any:
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def twice(X: Any) -> Any:
    """Return rows whose entries are unsorted, each of them in two halves."""
    odd = X.copy()
    for i in range(odd.shape[0]):
        row = slice(odd.indptr[i], odd.indptr[i + 1])
        odd.indices[row] = odd.indices[row][::-1].copy()
        odd.data[row] = odd.data[row][::-1].copy()
    halves = np.repeat(odd.data, 2) / 2, np.repeat(odd.indices, 2), 2 * odd.indptr
    return sparse.csr_array(halves, shape=X.shape)


def mapped(X: Any, folder: Path) -> Any:
    arrays = []
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(X, name))
        arrays.append(np.load(folder / f"{name}.npy", mmap_mode="r"))
    return sparse.csr_array(tuple(arrays), shape=X.shape)


#: What the log says of rows that are copied.
COPIED = {
    "csc": "X is converted from CSC to CSR",
    "coo": "X is converted from COO to CSR",
    "twice": "rows that name a column twice",
}


def fit(name: str, rows: Any, **more: Any) -> Any:
    subject = SUBJECTS[name]
    model = subject.make(**({"max_iter": 100} | more))
    return model.fit(rows, subject.target(X, NAMES))


def predicts_alike(model: Any, rows: Any, wanted: Any) -> None:
    """Check predictions; values of a regression may round differently."""
    if wanted.dtype.kind == "f":
        np.testing.assert_allclose(model.predict(rows), wanted, rtol=1e-9, atol=1e-12)
    else:
        np.testing.assert_array_equal(model.predict(rows), wanted)


@pytest.mark.cases(None)
@every_plain
def test_dense_rows(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    expected = bits(fit(name, X), X)
    for kind, rows in dense(X, tmp_path):
        caplog.clear()
        with caplog.at_level(logging.INFO, "dualgap"):
            model = fit(name, rows)
        if name == "LinearSVC" and kind not in ("pandas", "polars", "pyarrow"):
            copied = kind in ("Fortran", "strided", "reversed")
            assert caplog.text.count("one copy is made") == copied, kind
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # names in one of the two
            assert bits(model, X) == expected, kind
            predicts_alike(model, rows, model.predict(X))
        if kind == "pandas":
            assert model.feature_names_in_.tolist() == COLUMNS
            with pytest.raises(ValueError, match="feature names should match"):
                model.predict(rows[COLUMNS[::-1]])


@pytest.mark.cases(None)
@every_plain
def test_sparse_rows(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows = sparse.csr_array(THIN)
    model = fit(name, rows, tol=1e-5, max_iter=10_000)
    expected, halves = bits(model, rows), twice(rows)
    before = halves.data.copy(), halves.indices.copy()
    forms = {form: rows.asformat(form) for form in ("csc", "coo", "lil", "dok", "bsr")}
    forms |= {"matrix": sparse.csr_matrix(rows), "wide": wide(rows), "twice": halves}
    for form, other in (forms | {"mapped": mapped(rows, tmp_path)}).items():
        caplog.clear()
        with caplog.at_level(logging.INFO, "dualgap"):
            found = fit(name, other, tol=1e-5, max_iter=10_000)
        if name == "LinearSVC" and form in COPIED:
            assert f"{COPIED[form]}: one copy" in caplog.text
        assert bits(found, rows) == expected, form
        predicts_alike(found, other, model.predict(rows))
    for array, was in zip((halves.data, halves.indices), before, strict=True):
        np.testing.assert_array_equal(array, was)
    if "nystroem" not in name:
        overlap(fit(name, THIN, tol=1e-5, max_iter=10_000), model, 1e-5)
        single, limits = THIN.astype(np.float32), {"tol": 1e-8, "max_iter": 10_000}
        exact = fit(name, single.astype(float), **limits)
        for same in (single, sparse.csr_array(single)):
            overlap(fit(name, same, **limits), exact, 1e-8)
    for key, found in values(model, THIN).items():  # of a model of sparse rows
        if found.dtype.kind == "f":
            wanted = values(model, rows)[key]
            np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)

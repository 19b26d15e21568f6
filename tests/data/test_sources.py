"""Files and batches that cannot be converted are refused with a message that says why.

What they become is in test_conversion.py.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap.data import convert

X = np.arange(6.0).reshape(3, 2)
Y = np.array([0, 1, 1])
ONES = np.ones((2, 2))
MEMORY = 2**20  # the least


def saved(save: Any, *arguments: Any, **arrays: Any) -> bytes:
    """Return what a function of NumPy or SciPy writes."""
    content = io.BytesIO()
    save(content, *arguments, **arrays)
    return content.getvalue()


def table(**columns: Any) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    content = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), content)
    return content.getvalue()


def npz(**arrays: Any) -> bytes:
    """A matrix as scipy.sparse.save_npz writes it, with labels and other arrays."""
    whole = {
        "data": np.ones(4), "indices": np.array([0, 1, 0, 2], np.int32),
        "indptr": np.array([0, 2, 2, 4], np.int32), "shape": np.array([3, 3]),
        "format": np.array(b"csr"), "y": np.array([0, 1, 1]),
    }  # fmt: skip
    return saved(np.savez_compressed, **{**whole, **arrays})


NPY = saved(np.save, X)
GZ = gzip.compress(b"1 1:1\n" * 1000)


def first(**columns: Any) -> dict[str, Any]:
    """Return a table, and another one with these columns."""
    one = {"x": [1.0, 2.0], "label": [0, 1]}
    return {"a.parquet": lambda: table(**one), "b.parquet": lambda: table(**columns)}


#: What is given, the options, and what is said. Bytes are those of a file, a dict has
#: several of them by their names, and a function makes its bytes.
REFUSED: list[tuple[Any, dict[str, Any], str]] = [
    # --- text
    (b"1 1:1\n1 2:x\n", {}, "rows, line 2, column 5"),
    (b"1 1:1\n-1 1:nan\n", {}, "rows, line 2, column 6"),
    (b"1 1:1\n" * 40_000 + b"1 2:x\n", {}, "rows, line 40001, column 5"),
    (b"", {}, "has no examples"),
    (b"\n", {}, "has no examples"),
    (b"1 1:1\n", {"zero_based": False, "n_features": 1, "seed": -1}, "seed=-1"),
    (b"1 9:1\n", {"n_features": 3}, "n_features=3, but the inputs have 9"),
    (b"1 9:1\n", {"memory": 100}, "memory=100"),
    (b"1 9:1\n", {"format": "coo"}, "format='coo'"),
    (b"1 9:1\n", {"y": [1]}, "y=... is for .npy and .npz files"),
    (b"1 " + b"1:1 " * 3_000_000, {}, "has a line of more than .* give more memory"),
    ({"a.gz": GZ[:-20]}, {}, r"a\.gz cannot be decompressed"),
    ({"b.gz": GZ, "X.npy": NPY}, {}, "several kinds"),
    # --- batches
    ([1, 2], {}, "batch 0 is a int, not a tuple"),
    ([(ONES, [1, np.nan])], {}, "row 1: label is nan"),
    ([(ONES, [1, 2], [1, -1])], {}, "row 1: weight -1"),
    ([(np.array([[1.0], [np.inf]]), [1, 2])], {}, "row 1: value is NaN"),
    ([(ONES, [0, 1], ["a", "b"])], {}, "dtype <U1; give numbers"),
    ([(ONES[:1], ["a"]), (ONES[:1], [0])], {}, "words, such as 'a'"),
    ([(ONES, [1])], {}, r"y has shape \(1,\); expected \(2,\)"),
    ([(ONES, [1, 2]), (np.ones((2, 3)), [1, 2])], {}, "different numbers"),
    ([(ONES, [1, 2]), (ONES, [1, 2], [1, 1])], {},
     "some rows have weights and some have none"),
    ([(ONES, None)], {}, "batch 0: y has dtype object"),
    ([(X[:, 0], Y)], {}, r"X has shape \(3,\) and dtype float64"),
    ([(X.astype("U1"), Y)], {}, "dtype <U1; give numbers"),
    # --- arrays
    *((saved(np.save, array), {"y": Y[: len(array)]}, words) for array, words in (
        (X.astype(object), r"Python objects in dtype; save it again, as numbers"),
        (np.empty((3, 2), "V0"), "has dtype .V0; save it as numbers"),
        (X.astype("U3"), "has dtype <U3; save it as numbers"),
        (X[0], r"X has shape \(2,\); expected \(n, d\)"))),
    *((content, {"y": Y}, rf"rows cannot be read: {words}") for content, words in (
        (NPY.replace(b"(3, 2)", b"(3,-2)"), "negative dimensions"),
        (NPY.replace(b"'<f8'", b"'<f8 "), "Cannot parse header"),
        (NPY[:-8], "mmap .* than file size; save it again"))),
    (NPY, {}, "has no labels; give y="),
    (NPY, {"y": np.ones(4)}, "y has 4 entries, but there are 3 rows"),
    (NPY, {"y": Y, "sample_weight": np.ones(5)},
     "sample_weight has 5 entries, but there are 3 rows"),
    # --- matrices
    (saved(sparse.save_npz, sparse.csr_matrix(X)), {}, "rows has no labels; give y="),
    (saved(sparse.save_npz, sparse.csc_matrix(X)), {"y": Y},
     r"has a matrix in the format b?'csc'; save X\.tocsr\(\)"),
    *((npz(**{name: np.array(value)}), {}, words) for name, value, words in (
        ("indptr", [0, 3, 2, 4], "indptr.npy does not increase from 0"),
        ("indptr", [1, 2, 3, 4], "indptr.npy does not increase from 0"),
        ("indptr", [0, 2, 4], "indptr.npy does not increase from 0"),
        ("indices", [0, 1, 0, 3], "indices.npy has an index out of range"),
        ("indices", [0, 1, 0, -1], "indices.npy has an index out of range"))),
    *(({"rows.npz": npz(**{name: np.array(value)})}, {}, r"rows\.npz")
      for name, value in (
        ("shape", 3), ("shape", [3]), ("shape", [3, -3]),
        ("format", [b"csr", b"csr"]), ("indptr", 0), ("indptr", [0.0, 2.0, 2.0, 4.0]),
        ("data", [b"a"] * 4), ("indices", np.zeros((4, 1), np.int32)),
        ("y", ["a", "b"]))),
    # --- tables
    (first(z=[1.0, 2.0], label=[0, 1]), {}, r"b\.parquet has no column 'x'"),
    ({"c.parquet": lambda: table(x=[1.0, None], label=[0, 1])}, {},
     r"c\.parquet, row 2, column 'x': the value is missing; fill it with missing="),
    (first(x=[1.0, 2.0], label=[0, 1]), {"label": "z"}, "no label column 'z'"),
]  # fmt: skip


def written(folder: Path, given: Any) -> Any:
    """Write the files that are given; return their paths, or other inputs."""
    if isinstance(given, bytes):
        given = {"rows": given}
    if not isinstance(given, dict):
        return given
    for name, content in given.items():
        (folder / name).write_bytes(content() if callable(content) else content)
    return [folder / name for name in given]


@pytest.mark.cases(None)
@pytest.mark.parametrize(("given", "options", "message"), REFUSED)
def test_what_is_wrong_is_named(
    tmp_path: Path, given: Any, options: Any, message: str
) -> None:
    inputs = written(tmp_path, given)
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ValueError, match=message):
        convert(inputs, tmp_path / "store", **({"memory": MEMORY} | options))
    # Nothing is left that blocks the next try.
    assert sorted(os.listdir(tmp_path)) == before


def test_a_whole_matrix_is_read(tmp_path: Path) -> None:
    # Else those above might be refused for another reason.
    convert(written(tmp_path, npz()), tmp_path / "store").verify()


def test_inputs_have_to_be_paths_or_batches(tmp_path: Path) -> None:
    for error, message, inputs in (
        (TypeError, "inputs is a int; give a path", 3),
        (ValueError, "is a folder; give the files in it", tmp_path),
        (FileNotFoundError, "none", tmp_path / "none"),
    ):
        with pytest.raises(error, match=message):
            convert(inputs, tmp_path / "store")
    assert os.listdir(tmp_path) == []


def test_entries_of_one_place_are_added_and_the_callers_stay(tmp_path: Path) -> None:
    twice = sparse.csr_matrix(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3]))
    )
    store = convert([(twice, Y[:2])], tmp_path / "store", shuffle=False)
    np.testing.assert_array_equal(store.matrix().toarray(), [[0, 3], [4, 0]])
    np.testing.assert_array_equal(twice.data, [1, 2, 4])


@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
def test_arrays_in_the_order_of_columns_are_read(tmp_path: Path, save: Any) -> None:
    given = {"arr" if save is np.save else "X": np.asfortranarray(X)}
    inputs = written(tmp_path, saved(save, **given))
    store = convert(inputs, tmp_path / "store", y=Y, shuffle=False)
    np.testing.assert_array_equal(store.matrix(), X)
    assert sorted(os.listdir(tmp_path)) == ["rows", "store"]


def test_the_weights_of_a_table_are_a_column(tmp_path: Path) -> None:
    inputs = written(tmp_path, table(x=[1.0, 2.0], label=[0, 1], w=[3.0, 4.0]))
    store = convert(inputs, tmp_path / "store", weight="w", shuffle=False)
    np.testing.assert_array_equal(store.sample_weight, [3, 4])
    np.testing.assert_array_equal(store.rows(0, 2).X, [[1], [2]])


def test_tables_need_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = written(tmp_path, table(x=[1.0], label=[0]))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="rows needs the package pyarrow; install it"):
        convert(inputs, tmp_path / "store")


def test_a_disk_that_fails_is_not_a_damaged_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    inputs = written(tmp_path, table(x=[1.0], label=[0]))

    def fail(*_: Any, **__: Any) -> None:
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(parquet, "ParquetFile", fail)
    with pytest.raises(OSError, match="input/output error"):
        convert(inputs, tmp_path / "store")


def test_a_flipped_bit_in_an_archive_is_told_with_its_name(tmp_path: Path) -> None:
    content, refused, accepted = npz(), 0, 0
    path = tmp_path / "rows.npz"
    for at in range(0, len(content), 23):
        path.write_bytes(content[:at] + bytes([content[at] ^ 16]) + content[at + 1 :])
        try:
            convert(path, tmp_path / "store", overwrite=True)
            accepted += 1
        except ValueError as error:
            refused += "rows.npz" in str(error)
    assert refused + accepted == len(range(0, len(content), 23))
    assert refused > 20

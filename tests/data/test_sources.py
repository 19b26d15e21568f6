"""Files and batches that cannot be converted are refused with a message that says why.

What they become is in test_conversion.py.
"""

from __future__ import annotations

import errno
import io
import os
import sys

import numpy as np
import pytest
from scipy import sparse

from dualgap.data import convert

X = np.arange(6.0).reshape(3, 2)
Y = np.array([0, 1, 1])
MEMORY = 2**20  # the least


def written(folder, name, save, *arguments, **arrays):
    """Write a file by a function of NumPy or SciPy; return its path."""
    content = io.BytesIO()
    save(content, *arguments, **arrays)
    path = folder / name
    path.write_bytes(content.getvalue())
    return path


def refused(message, inputs, folder, error=ValueError, **options):
    with pytest.raises(error, match=message):
        convert(inputs, folder / "store", **options)
    assert not (folder / "store").exists()


def test_inputs_have_to_be_paths_or_batches(tmp_path):
    refused("inputs is a int; give a path", 3, tmp_path, TypeError)
    refused("is a folder; give the files in it", tmp_path, tmp_path)


def test_a_line_that_does_not_fit_into_the_memory_is_refused(tmp_path):
    path = tmp_path / "rows"
    path.write_bytes(b"1 " + b"1:1 " * 3_000_000)
    refused(
        "has a line of more than .* give more memory", path, tmp_path, memory=MEMORY
    )


def test_rows_of_batches_are_matrices_of_numbers(tmp_path):
    refused(r"X has shape \(3,\) and dtype float64", [(X[:, 0], Y)], tmp_path)
    refused("dtype <U1; give numbers", [(X.astype("U1"), Y)], tmp_path)


def test_entries_of_one_place_are_added_and_the_callers_stay(tmp_path):
    twice = sparse.csr_matrix(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 2, 3]))
    )
    store = convert([(twice, Y[:2])], tmp_path / "store", shuffle=False)
    np.testing.assert_array_equal(store.matrix().toarray(), [[0, 3], [4, 0]])
    np.testing.assert_array_equal(twice.data, [1, 2, 4])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (X.astype(object), r"Python objects in dtype; save it again, as numbers"),
        (np.empty((3, 2), "V0"), "has dtype .V0; save it as numbers"),
        (X.astype("U3"), "has dtype <U3; save it as numbers"),
        (X[0], r"X has shape \(2,\); expected \(n, d\)"),
    ],
)
def test_arrays_that_are_no_rows_are_refused(tmp_path, array, message):
    path = written(tmp_path, "rows.npy", np.save, array)
    refused(message, path, tmp_path, y=Y[: len(array)])


def test_headers_of_arrays_are_checked(tmp_path):
    path = written(tmp_path, "rows.npy", np.save, X)
    content = path.read_bytes()
    path.write_bytes(content.replace(b"(3, 2)", b"(3,-2)"))
    refused(r"rows\.npy cannot be read: negative dimensions", path, tmp_path, y=Y)
    path.write_bytes(content.replace(b"'<f8'", b"'<f8 "))
    refused(r"rows\.npy cannot be read: Cannot parse header", path, tmp_path, y=Y)
    path.write_bytes(content[:-8])
    told = r"rows\.npy cannot be read: mmap .* than file size; save it again"
    refused(told, path, tmp_path, y=Y)


@pytest.mark.parametrize("save", [np.save, np.savez, np.savez_compressed])
def test_arrays_in_the_order_of_columns_are_read(tmp_path, save):
    columns = np.asfortranarray(X)
    given = {"arr": columns} if save is np.save else {"X": columns}
    path = written(tmp_path, "rows", save, **given)
    store = convert(path, tmp_path / "store", y=Y, shuffle=False)
    np.testing.assert_array_equal(store.matrix(), X)
    assert sorted(os.listdir(tmp_path)) == ["rows", "store"]


def test_labels_are_as_many_as_the_rows(tmp_path):
    path = written(tmp_path, "rows.npy", np.save, X)
    refused("y has 4 entries, but there are 3 rows", path, tmp_path, y=np.ones(4))
    refused(
        "sample_weight has 5 entries, but there are 3 rows",
        *(path, tmp_path),
        y=Y,
        sample_weight=np.ones(5),
    )
    refused(r"has no labels; give y=", path, tmp_path)


def test_a_matrix_by_columns_is_refused(tmp_path):
    matrix = sparse.csc_matrix(X)
    path = written(tmp_path, "rows.npz", sparse.save_npz, matrix)
    refused(
        r"has a matrix in the format b?'csc'; save X\.tocsr\(\)", path, tmp_path, y=Y
    )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("indptr", [0, 2, 1, 4], "indptr.npy does not increase from 0"),
        ("indptr", [1, 2, 3, 4], "indptr.npy does not increase from 0"),
        ("indptr", [0, 2, 4], "indptr.npy does not increase from 0"),
        ("indices", [0, 1, 0, 2], "indices.npy has an index out of range"),
        ("indices", [0, 1, 0, -1], "indices.npy has an index out of range"),
    ],
)
def test_matrices_that_contradict_themselves_are_refused(
    tmp_path, name, value, message
):
    arrays = {
        "data": np.ones(4), "indices": np.array([0, 1, 0, 1]), "format": b"csr",
        "indptr": np.array([0, 2, 3, 4]), "shape": np.array([3, 2]), "y": Y,
    }  # fmt: skip
    convert(written(tmp_path, "whole.npz", np.savez, **arrays), tmp_path / "whole")
    arrays[name] = np.array(value)
    refused(message, written(tmp_path, "rows.npz", np.savez, **arrays), tmp_path)


def table(folder, name, **columns):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = folder / name
    parquet.write_table(pyarrow.table(columns), path)
    return path


def test_tables_have_the_same_columns_and_no_nulls(tmp_path):
    first = table(tmp_path, "a.parquet", x=[1.0, 2.0], label=[0, 1])
    other = table(tmp_path, "b.parquet", z=[1.0, 2.0], label=[0, 1])
    refused(r"b\.parquet has no column 'x'", [first, other], tmp_path)
    gaps = table(tmp_path, "c.parquet", x=[1.0, None], label=[0, 1])
    told = r"c\.parquet, row 2, column 'x': the value is missing; fill it with missing="
    refused(told, gaps, tmp_path)


def test_the_weights_of_a_table_are_a_column(tmp_path):
    path = table(tmp_path, "a.parquet", x=[1.0, 2.0], label=[0, 1], w=[3.0, 4.0])
    store = convert(path, tmp_path / "store", weight="w", shuffle=False)
    np.testing.assert_array_equal(store.sample_weight, [3, 4])
    np.testing.assert_array_equal(store.rows(0, 2).X, [[1], [2]])


def test_tables_need_pyarrow(tmp_path, monkeypatch):
    path = table(tmp_path, "a.parquet", x=[1.0], label=[0])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(
        r"a\.parquet needs the package pyarrow; install it with: pip",
        path,
        tmp_path,
        ImportError,
    )


def test_a_disk_that_fails_is_not_a_damaged_file(tmp_path, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = table(tmp_path, "a.parquet", x=[1.0], label=[0])

    def fail(*_, **__):
        raise OSError(errno.EIO, "input/output error")

    monkeypatch.setattr(parquet, "ParquetFile", fail)
    refused("input/output error", path, tmp_path, OSError)

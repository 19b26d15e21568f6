"""Tables: what is read of them, and what is refused with its place."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap.data.tables import Table, kind_of, read_table


def read(text: str | bytes, kind: str = "csv", **options: Any) -> Table:
    content = text.encode() if isinstance(text, str) else text
    return read_table(io.BytesIO(content), kind, "t", **options)


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"1 1:2 3:4\n", ("svmlight", None)),
        (b"1\t1:2\t3:4\n", ("svmlight", None)),
        (b"1,2 1:2\n", ("svmlight", None)),
        (b"# comment, of words\n+1 qid:3 1:2\n", ("svmlight", None)),
        (b"1\n-1\n", ("svmlight", None)),
        (b"", ("svmlight", None)),
        (b"a,b\n1,2\n", ("csv", None)),
        (b"\xef\xbb\xbfa\tb\n", ("csv", None)),
        (b"\n1;2;3\n", ("csv", None)),
        (b"PAR1...", ("parquet", None)),
        (b"ARROW1..", ("arrow", None)),
        (b"PK\x03\x04..", ("npz", None)),
        (b"\x93NUMPY", ("npy", None)),
        (b"\x89PNG\r\n\x1a\n\0\0", ("binary", None)),
        (b"\x1f\x8b....", ("svmlight", ".gz")),
        (b"BZh9", ("svmlight", ".bz2")),
        (b"\xfd7zXZ\x00", ("svmlight", ".xz")),
        (b"(\xb5/\xfd", ("svmlight", ".zst")),
    ],
)
def test_the_first_bytes_tell_the_kind(start: bytes, kind: Any) -> None:
    assert kind_of(start) == kind


@pytest.mark.parametrize("mark", [",", ";", "\t"])
def test_header_and_labels(mark: str) -> None:
    rows = ["a,b,species", "1,2.5,x", "", "-3,4e2,y"]
    table = read("\r\n".join(rows).replace(",", mark))
    np.testing.assert_array_equal(table.X, [[1, 2.5], [-3, 400]])
    assert table.y is not None
    assert table.y.tolist() == ["x", "y"]
    assert (table.names, table.label) == (["a", "b"], "species")
    assert table.columns == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "options", "X", "y"),
    [
        ("Target,a\n1,2\n0,3\n", {}, [[2], [3]], [1, 0]),
        ("1,2,no\n3,4,yes\n", {}, [[1, 2], [3, 4]], ["no", "yes"]),
        ("1,2,3\n4,5,6\n", {"label": "1"}, [[2, 3], [5, 6]], [1, 4]),
        ("0,1,z\n4,5,6\n", {"label": "z"}, [[4, 5]], [6]),  # digits for names
        ("a,b,c\n4,5,6\n", {"label": "b", "columns": ["c"]}, [[6]], [5]),
        ("a,b,c\n4,5,6\n", {"label": "2", "columns": ["3", "a"]}, [[6, 4]], [5]),
        ('"a, b",c,y\n4,5,6\n', {"columns": ["a, b"]}, [[4]], [6]),
    ],
)
def test_columns_by_name_and_number(text: str, options: Any, X: Any, y: Any) -> None:
    table = read(text, **options)
    np.testing.assert_array_equal(table.X, X)
    assert table.y is not None
    assert table.y.tolist() == y


def test_labels_need_not_be_there() -> None:
    table = read("a,b\n1,2\n", label="y", columns=["b"], needs_label=False)
    assert (table.y, table.X.tolist()) == (None, [[2.0]])
    # Without a header the columns after that of the labels move up.
    table = read("1,2\n", label="1", columns=["2", "3"], needs_label=False)
    assert (table.y, table.X.tolist()) == (None, [[1.0, 2.0]])
    table = read("5,1,2\n6,3,4\n", label="1", columns=["2", "3"], needs_label=False)
    assert table.y is not None
    assert (table.y.tolist(), table.X.tolist()) == ([5, 6], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a,b,y\n1,2,1\n1,,0\n", {}, r"t, line 3, column 2 \('b'\): the value is miss"),
        ("a,b,y\n1,2,1\n1,NA,0\n", {}, "line 3.*missing"),
        ("a,b,y\n1,2,1\n1,3,\n", {}, r"line 3, column 3 \('y'\): the value is missing"),
        ("a,b,y\n1,2,1\n1,red,0\n", {}, "line 3, column 2.*found 'red'"),
        ("a,b,y\n1,2,1\n1,inf,0\n", {}, "line 3, column 2.*found 'inf'"),
        ("a,b,y\n1,2,1\n1,2\n", {}, "line 3: expected 3 columns as in the first"),
        ('a,b,y\n1,2,1\n1,"2\n', {}, "line 3: unexpected end of data"),
        ("a,b\n1,2\n", {}, "has no obvious label column"),
        ("1,2\n1,2\n", {}, "columns are 1 to 2"),
        ("a,y\n1,2\n", {"label": "z"}, "no label column 'z'; its columns are a, y"),
        ("a,y\n1,2\n", {"columns": ["z"]}, "no column 'z'"),
        ("a,y\n1,2\n", {"columns": ["y"]}, "among the features"),
        ("a,a,y\n1,2,3\n", {}, "several columns named 'a'"),
        ("y,\n", {}, "has no rows"),
        (b"a,y\n\xff,1\n", {}, "not text in UTF-8"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    text: str | bytes, options: Any, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        read(text, **options)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_parquet_and_arrow(kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")

    def write(**columns: Any) -> bytes:
        sink, table = io.BytesIO(), pyarrow.table(columns)
        if kind == "parquet":
            pyarrow.parquet.write_table(table, sink)
        else:
            with pyarrow.ipc.new_file(sink, table.schema) as file:
                file.write_table(table)
        return sink.getvalue()

    table = read(write(a=[1, 2], b=[True, False], c=["u", "v"]), kind)
    np.testing.assert_array_equal(table.X, [[1, 1], [2, 0]])
    assert table.y is not None
    assert (table.y.tolist(), table.label) == (["u", "v"], "c")
    for columns, words in (
        ({"a": [1, None], "y": [1, 2]}, "row 2, column 'a': the value is missing"),
        (
            {"a": [1.0, np.nan], "y": [1, 2]},
            "row 2, column 'a': the value is NaN or infinite",
        ),
        ({"a": ["u", "v"], "y": [1, 2]}, "column 'a' has type string, not numbers"),
        ({"a": [1, 2], "y": [1, None]}, "row 2, column 'y': the value is missing"),
    ):
        with pytest.raises(ValueError, match=words):
            read(write(**columns), kind)
    with pytest.raises(ValueError, match="cannot be read"):
        read(write(a=[1], y=[1])[:-9], kind)


def npz(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def test_npz() -> None:
    X = np.array([[1, 2], [3, 4]])
    table = read(npz(X=X, y=np.array(["a", "b"])), "npz")
    np.testing.assert_array_equal(table.X, X)
    assert table.y is not None
    assert table.y.tolist() == ["a", "b"]
    sink = io.BytesIO()
    sparse.save_npz(sink, sparse.csr_matrix(X))
    table = read(sink.getvalue(), "npz", needs_label=False)
    assert (table.X != X).sum() == 0
    for content, words in (
        (sink.getvalue(), "has no labels"),
        (npz(a=X), "has the arrays a; expected X and y"),
        (npz(X=X, y=np.ones(3)), "expected labels of shape"),
        (npz(X=X * np.nan, y=np.ones(2)), "NaN"),
        (npz(X=X, y=np.ones(2))[:-30], "cannot be read"),
    ):
        with pytest.raises(ValueError, match=words):
            read(content, "npz")
    with pytest.raises(ValueError, match=r"label=\.\.\. is for tables"):
        read(npz(X=X, y=np.ones(2)), "npz", label="y")

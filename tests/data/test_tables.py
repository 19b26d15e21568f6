"""Tables: what is read of them, and what is refused with its place."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap.data.chunks import read_arrays
from dualgap.data.features import Features
from dualgap.data.opening import kind_of
from dualgap.data.table_file import TableOptions
from dualgap.data.tables import Table, read_table


def read(
    text: str | bytes,
    kind: str = "csv",
    known: Features | None = None,
    needs_label: bool = True,
    training: bool = True,
    **options: Any,
) -> Table:
    content = io.BytesIO(text.encode() if isinstance(text, str) else text)
    wanted = TableOptions(**options)
    return read_table(
        content, kind, "t", wanted, known, needs_label=needs_label, training=training
    )


def labels(table: Table) -> Any:
    assert table.rows.y is not None
    return table.rows.y.tolist()


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"1 1:2 3:4\n", ("svmlight", None)),
        (b"1\t1:2\t3:4\n", ("svmlight", None)),
        (b"1,2 1:2\n", ("svmlight", None)),
        (b"# comment, of words\n+1 qid:3 1:2\n", ("svmlight", None)),
        (b"1\n-1\n", ("svmlight", None)),
        (b"1 2.5 'tag |a height:1.5 b\n", ("wabbit", None)),
        (b"1|2026-01-31 10:30|x\n", ("csv", None)),
        (b"1.5,31.01.2026 10:30:00,x\n", ("csv", None)),
        (b"1.5 10:30 11:2\n", ("svmlight", None)),
        (b"", ("empty", None)),
        (b"a,b\n1,2\n", ("csv", None)),
        (b"\xef\xbb\xbfa\tb\n", ("csv", None)),
        (b"\n1;2;3\n", ("csv", None)),
        (b"PAR1...", ("parquet", None)),
        (b"ARROW1..", ("arrow", None)),
        (b"PK\x03\x04" + bytes(22) + b"\5\0\0\0X.npy", ("npz", None)),
        (b"PK\x03\x04" + bytes(22) + b"\5\0\0\0a.csv", ("svmlight", ".zip")),
        (b"PK\x03\x04" + bytes(22) + b"\6\0\0\0xl/abc", ("xlsx", None)),
        (b"a|b|label\n1|2|x\n", ("csv", None)),
        (b"5.1 3.5 setosa\n", ("csv", None)),
        (b"  1   -0.5  3\n", ("csv", None)),
        (b"1 1:2 # words\n", ("svmlight", None)),
        ("a,b\n1,2\n".encode("utf-16"), ("csv", None)),
        (b"\xef\xbb\xbf1 1:1\n", ("svmlight", None)),
        (b'{"a": 1}\n', ("json", None)),
        (b'[{"a": 1}]\n', ("json", None)),
        (b"% iris\n@RELATION iris\n", ("arff", None)),
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


ROWS = "a,b,species\n1,2.5,x\n\n-3,4e2,y\n"


@pytest.mark.parametrize(
    "text",
    [
        ROWS,
        ROWS.replace(",", ";"),
        ROWS.replace(",", "|"),
        ROWS.replace(",", "\t").replace("\n", "\r\n"),
        ROWS.replace(",", "  ").replace("1", "  1"),
        ROWS.replace("\n", "\r"),
        ROWS.replace(",", ";").replace(".", ","),
        ROWS.replace("\n", ",\n").replace(",\n,\n", ",\n\n"),
        "# made by, a program\n\n" + ROWS,
        "\ufeff\ufeff" + ROWS,
        ROWS.encode("utf-16"),
        ROWS.encode("utf-16-be").join([b"\xfe\xff", b""]),
        ",a,b,species\n0,1,2.5,x\n1,-3,400,y\n",
        "Unnamed: 0,a,b,species\n7,1,2.5,x\n3,-3,400,y\n",
        "a,b,species\n1,1,2.5,x\n2,-3,400,y\n",
        ",a,,b,species,\n,1,,2.5,x,\n,-3,,400,y,\n",
        "SEP=;\n" + ROWS.replace(",", ";"),
    ],
)
def test_a_table_in_many_forms(text: str | bytes) -> None:
    table = read(text)
    np.testing.assert_array_equal(table.rows.X, [[1, 2.5], [-3, 400]])
    assert labels(table) == ["x", "y"]
    assert table.features.names == ["a", "b"]
    assert table.features.label == "species"


@pytest.mark.parametrize("label", ["Label", "Class", "y"])
def test_numbers_are_names_beside_the_name_of_the_labels(label: str) -> None:
    table = read(f"2019,2020,{label}\n1,2.5,u\n-3,400,v\n3,3,u\n")
    assert table.rows.X.tolist() == [[1, 2.5], [-3, 400], [3, 3]]
    assert (table.features.names, table.features.label) == (["2019", "2020"], label)


def test_decimal_commas_and_thousands() -> None:
    table = read('a,y\n"1,5",0\n"2,25",1\n', decimal=",")
    assert table.rows.X.tolist() == [[1.5], [2.25]]
    table = read("1,5;2,5;3,5\n1;2,5;0,5\n", label="3")
    assert table.rows.X.tolist() == [[1.5, 2.5], [1, 2.5]]
    for text, words in (
        ('a,y\n"1,000",0\n"2,500",1\n', "column 'a': '1,000' has thousands sep"),
        ('a,y\n1,0\n"2,500",1\n', r"line 3, column 1 \('a'\): '2,500' has thousands"),
        ("a;y\n1.000,5;0\n2;1\n", "'1.000,5' has thousands separators"),
        ("a,y\nUSD 5,0\n6,1\n", "'USD 5' is a number with a sign or unit"),
        ("a,y\n-1.5 cm,0\n6 cm,1\n", "is a number with a sign or unit"),
        ("a,y\n'5',0\n'6',1\n", "is a number with a sign or unit"),
        ("a,y\nMay 5 2020,0\n1 Jan 20,1\n", "is a date"),
        ("a,y\n2020-01-31T09:00,0\n2020-02-01T09:00,1\n", "is a date"),
        ("a,y\nJan 2020,0\nMay 2020,1\n", "is a date"),
        ("a,y\n9:30 am,0\n1:30 PM,1\n", "is a time of day"),
    ):
        with pytest.raises(ValueError, match=words):
            read(text)


def test_words_with_numbers_in_them_are_words() -> None:
    words = ["3 rooms", "80s", "10-20", "1st", "A1", "5 m", "v1.2", "mar", "(none)"]
    rows = "".join(f"{word},{k % 2}\n" for k, word in enumerate(words))
    table = read(f"a,y\n{rows}")
    assert table.features.names == sorted(f"a={word}" for word in words)


@pytest.mark.parametrize("first", [",a,y", "b,a,y", "Unnamed: 0,a,y"])
def test_row_numbers_are_no_feature_unless_they_are_asked_for(first: str) -> None:
    text = f"{first}\n5,1,0\n2,3,1\n"
    table = read(text)
    index = not first.startswith("b")
    assert table.rows.X.tolist() == ([[1], [3]] if index else [[5, 1], [2, 3]])
    assert table.said == ["column 1 numbers the rows: left out"][:index] or (
        "Unnamed" in first and "(Unnamed: 0) numbers the rows" in table.said[0]
    )
    assert read(text, columns=["1", "2"]).rows.X.tolist() == [[5, 1], [2, 3]]


def test_words_become_one_feature_each() -> None:
    text = "size,colour,ok,y\n1,red,True,0\n2,blue,false,1\n3,red,TRUE,0\n"
    table = read(text)
    assert table.features.names == ["size", "colour=blue", "colour=red", "ok"]
    expected = [[1, 0, 1, 1], [2, 1, 0, 0], [3, 0, 1, 1]]
    np.testing.assert_array_equal(table.rows.X, expected)
    table = read(text, one_hot=["size", "ok"], columns=["size", "ok"])
    assert table.features.names == [
        *("size=1", "size=2", "size=3", "ok=TRUE", "ok=True", "ok=false"),
    ]
    assert table.rows.X.sum() == 6
    known = read(text).features
    other = "y,extra,ok,colour,size\n1,7,1,green,5\n0,7,0,blue,6\n"
    table = read(other, known=known, needs_label=False, training=False)
    np.testing.assert_array_equal(table.rows.X, [[5, 0, 0, 1], [6, 1, 0, 0]])
    assert table.said == [
        "not used: extra",
        "words that the model does not know are ignored: colour (1)",
    ]
    with pytest.raises(ValueError, match="t has no columns 'size', 'ok'; its columns"):
        read("colour,y\nred,1\n", known=known, needs_label=False)
    assert Features.from_json(known.to_json()) == known
    for damage in (("blue", "zinc"), ('"size"', "7"), ("{", "[")):
        with pytest.raises(ValueError, match="description of the columns was damaged"):
            Features.from_json(known.to_json().replace(*damage))


def test_many_words_make_a_sparse_matrix() -> None:
    rng = np.random.default_rng(0)
    words = [f"w{k}" for k in rng.integers(0, 40, 3000)]
    text = "x,w,v,y\n" + "\n".join(f"{k},{w},{w},{k % 2}" for k, w in enumerate(words))
    table = read(text)
    every = sorted(set(words))
    expected = np.zeros((3000, 1 + 2 * len(every)))
    expected[:, 0] = np.arange(3000)
    for k, word in enumerate(words):
        expected[k, [1 + every.index(word), 1 + len(every) + every.index(word)]] = 1
    assert sparse.issparse(table.rows.X)
    np.testing.assert_array_equal(table.rows.X.toarray(), expected)
    text = "x,name,y\n" + "\n".join(f"{k},n{k},{k % 2}" for k in range(200))
    told = (
        r"more than 100 different words in 'name' \(200\).*columns='-name', or.*one_hot"
    )
    with pytest.raises(ValueError, match=told):
        read(text)
    assert read(text, one_hot=["name"]).features.width == 201


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_missing_values_are_filled_or_left_out(kind: str) -> None:
    columns: dict[str, list[Any]] = {
        "a": [1, None, 4, 1], "w": ["u", "v", None, "u"], "y": [0, 1, 0, 1],
    }  # fmt: skip
    if kind == "csv":
        rows = zip(*columns.values(), strict=True)
        lines = [",".join("?" if v is None else str(v) for v in row) for row in rows]
        content: Any = "\n".join(["a,w,y", *lines])
    else:
        content = written("parquet", **columns)
    found = {
        mode: read(content, kind, missing=mode).rows
        for mode in ("mean", "most-frequent", "drop")
    }
    np.testing.assert_array_equal(
        found["mean"].X, [[1, 1, 0], [2, 0, 1], [4, 1, 0], [1, 1, 0]]
    )
    np.testing.assert_array_equal(
        found["most-frequent"].X, [[1, 1, 0], [1, 0, 1], [4, 1, 0], [1, 1, 0]]
    )
    np.testing.assert_array_equal(found["drop"].X, [[1, 1, 0], [1, 1, 0]])
    assert found["drop"].y is not None
    assert found["drop"].y.tolist() == [0, 1]
    with pytest.raises(ValueError, match="the value is missing; fill it with missing="):
        read(content, kind)
    known = read(content, kind, missing="mean").features
    table = read("a,w\n?,\n", known=known, needs_label=False)
    assert table.rows.X.tolist() == [[2, 1, 0]]
    for mode in ("drop", None):
        text = content if mode else "a,w,y\n1,u,0\n2,v,1\n"
        known = read(text, kind if mode else "csv", missing=mode).features
        with pytest.raises(ValueError, match="the value is missing"):
            read("a,w\n?,u\n", known=known, needs_label=False, training=False)


def test_later_rows_are_read_like_the_first_ones() -> None:
    rows = [f"{k % 3},w{k % 2},{k % 2}" for k in range(3000)]
    text = "a,w,y\n" + "\n".join([*rows, "1,7,0"])
    assert read(text).features.names == ["a", "w=7", "w=w0", "w=w1"]
    with pytest.raises(ValueError, match=r"line 3002, column 1 .*found 'red'.*one_hot"):
        read("a,w,y\n" + "\n".join([*rows, "red,w1,0"]))


def test_labels_of_new_rows() -> None:
    known = read("a,kind\n1,no\n2,yes\n").features
    assert known.classes == ("no", "yes")
    ask: Any = {"known": known, "needs_label": False, "training": False}
    assert read("a\n1\n", "csv", label="kind", **ask).rows.y is None
    assert read("a,kind\n1,\n2,\n", **ask).rows.y is None
    assert labels(read("kind,a\n0,2\n1,3\n", **ask)) == ["0", "1"]
    with pytest.raises(ValueError, match="row 2: the label is missing"):
        read("a,kind\n1,no\n2,\n", **ask)


def test_the_most_frequent_of_several_is_the_smallest() -> None:
    table = read("a,w,y\n3,u,0\n1,v,1\n,,1\n", missing="most-frequent")
    numbers, words = table.features.columns
    assert (numbers.fill, words.fill, words.words) == (1.0, "u", ("u", "v"))


@pytest.mark.parametrize(
    ("text", "options", "X", "y"),
    [
        ("Target,a\n1,2\n0,3\n", {}, [[2], [3]], [1, 0]),
        ("1,2,no\n3,4,yes\n", {}, [[1, 2], [3, 4]], ["no", "yes"]),
        ("0,1,2\n4,5,6\n", {"label": "1"}, [[1, 2], [5, 6]], [0, 4]),
        ("0,1,2\n4,5,.6\n", {"label": "1"}, [[4, 0.6]], [5]),
        ("1,2,3\n4,5,.6\n", {"label": "1"}, [[2, 3], [5, 0.6]], [1, 4]),
        ("0,1,z\n4,5,6\n", {"label": "z"}, [[4, 5]], [6]),  # digits for names
        ("0,.5,1\n2.5,.6,0\n", {"label": "1"}, [[0.5, 1], [0.6, 0]], [0, 2.5]),
        ("a,b,c\n4,5,6\n", {"label": "b", "columns": ["c"]}, [[6]], [5]),
        ("a,b,c\n4,5,6\n", {"label": "2", "columns": ["3", "a"]}, [[6, 4]], [5]),
        ('"a, b",c,y\n4,5,6\n', {"columns": ["a, b"]}, [[4]], [6]),
    ],
)
def test_columns_by_name_and_number(text: str, options: Any, X: Any, y: Any) -> None:
    table = read(text, **options)
    np.testing.assert_array_equal(table.rows.X, X)
    assert labels(table) == y


def test_labels_need_not_be_there() -> None:
    table = read("a,b\n1,2\n", label="y", columns=["b"], needs_label=False)
    assert (table.rows.y, table.rows.X.tolist()) == (None, [[2.0]])
    # Without a header the columns after that of the labels move up.
    known = read("5,1,2\n6,3,4\n", label="1").features
    assert known.names is None
    table = read("1,2\n", known=known, needs_label=False)
    assert (table.rows.y, table.rows.X.tolist()) == (None, [[1.0, 2.0]])
    # A feature may stand where the labels stood.
    table = read("3,x,2\n5,6,7\n8,9,10\n", known=known, needs_label=False)
    assert (table.rows.y, table.rows.X.tolist()) == (None, [[7, 5], [10, 8]])
    table = read("5,1,2\n6,3,4\n", known=known, needs_label=False)
    assert (labels(table), table.rows.X.tolist()) == ([5, 6], [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a,b,y\n1,2,1\n1,,0\n", {}, r"t, line 3, column 2 \('b'\): the value is miss"),
        ("a,b,y\n1,2,1\n1,3,\n", {}, r"line 3, column 3 \('y'\): the value is missing"),
        ("a,b,y\n1,2,1\n1,red,0\n", {}, "line 3, column 2.*found 'red'"),
        ('a,b,y\n1,2,1\n1,"2\n', {}, "line 3: unexpected end of data"),
        ("a,y\n1,2\n1_000,1\n", {}, "found '1_000'; take its values as words"),
        ("a,b,y\n1,2,1\n1,x,0\n", {"weight": "b"}, "found 'x'; give a number"),
        ("Made in May\n\na,b,y\n1,2,0\n3,4,1\n", {}, "line 1 has 1 column, and the"),
        ("1,2\n1,2\n", {}, "columns are 1 to 2"),
        ("a,y\n1,2\n", {"label": "z"}, "no label column 'z'; its columns are a, y"),
        ("a,y\n1,2\n", {"columns": ["y"]}, "among the features"),
        (b"a,y\nu,1\n\xff,1\n", {}, r"line 3, column 1: b'\\xff' is not text in UTF-8"),
        (b"gr\xf6\xdfe,y\n1,1\n", {}, "line 1, column 1: .* iconv -f latin1"),
        ('"a"b,c\n1,2\n', {}, "line 1: ',' expected after"),
        ("a,b,y\n1,2,1\n", {"columns": ["a", "1"]}, "column 'a' is used twice"),
        ("a,b,y\n1,2,1\n", {"weight": "z"}, "no weight column 'z'"),
        ("a,b,y\n1,2,1\n", {"one_hot": ["y"]}, "'y' of one_hot is not among"),
        (
            "a,b,y\n1,2,1\n",
            {"missing": "median"},
            "missing='median': use one of None, 'mean'",
        ),
        ("a,b,y\n1,2,1\n", {"decimal": ";"}, "decimal=';': use one of None, '.', ','"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(
    text: str | bytes, options: Any, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        read(text, **options)


def written(kind: str, /, **columns: Any) -> bytes:
    return packed(kind, pytest.importorskip("pyarrow").table(columns))


def packed(kind: str, table: Any) -> bytes:
    pyarrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet")
    sink = io.BytesIO()
    if kind == "parquet":
        pyarrow.parquet.write_table(table, sink)
    else:
        with pyarrow.ipc.new_file(sink, table.schema) as file:
            file.write_table(table)
    return sink.getvalue()


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_parquet_and_arrow(kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = read(written(kind, a=[1, 2], b=[True, False], c=["u", "v"]), kind)
    np.testing.assert_array_equal(table.rows.X, [[1, 1], [2, 0]])
    assert labels(table) == ["u", "v"]
    assert table.features.label == "c"
    words = pyarrow.array(["s", None, "s "]).dictionary_encode()
    numbers = pyarrow.array([5, 6, 5]).dictionary_encode()
    content = written(kind, w=words, n=numbers, y=[0, 1, 0])
    table = read(content, kind, missing="most-frequent")
    assert table.features.names == ["w=s", "n"]
    np.testing.assert_array_equal(table.rows.X, [[1, 5], [1, 6], [1, 5]])
    days = pyarrow.array([0, 1], pyarrow.date32())
    for columns, told in (
        ({"a": [1, None], "y": [1, 2]}, "row 2, column 'a': the value is missing"),
        ({"a": [1.0, np.inf], "y": [1, 2]}, "row 2, column 'a': the value is infinite"),
        ({"a": days, "y": [1, 2]}, "column 'a' has dates or times"),
        ({"a": [[1], [2]], "y": [1, 2]}, r"'a' has type list.*, not numbers or words"),
        ({"a": [1, 2], "y": [1, None]}, "row 2, column 'y': the value is missing"),
    ):
        with pytest.raises(ValueError, match=told):
            read(written(kind, **columns), kind)
    with pytest.raises(ValueError, match="cannot be read"):
        read(written(kind, a=[1], y=[1])[:-9], kind)


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_the_index_of_pandas_is_left_out(kind: str) -> None:
    pandas = pytest.importorskip("pandas")
    pyarrow = pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"a": [1.0, 2, 3], "y": [0, 1, 0]}, index=[2, 0, 1])
    found = read(packed(kind, pyarrow.Table.from_pandas(frame)), kind)
    assert found.features.names == ["a"]
    assert found.said == ["column 3 (__index_level_0__) numbers the rows: left out"]


def test_words_are_missing_where_pandas_says_so() -> None:
    """Its list holds, in its case, and a question mark; all others are words."""
    pandas = pytest.importorskip("pandas")
    known = sorted(set(pandas._libs.parsers.STR_NA_VALUES) | {"?", "None"})
    words = ["none", "-", "na", "Null", "N/a", "nil", "missing", "#n/a"]
    text = "a,y\n" + "".join(f"{w},{k % 2}\n" for k, w in enumerate([*words, *known]))
    found = read(text, missing="drop")
    assert found.features.columns[0].words == tuple(sorted(words))
    assert found.rows.X.shape == (len(words), len(words))
    for word in ("-", "none"):
        with pytest.raises(ValueError, match=f"found '{word}'; leave the field empty"):
            read(f"a,y\n1,2\n2,1\n{word},1\n")


def npz(**arrays: Any) -> bytes:
    sink = io.BytesIO()
    np.savez(sink, **arrays)
    return sink.getvalue()


def arrays(content: bytes) -> Any:
    return read_arrays(io.BytesIO(content), "npz", "t")


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_an_arrow_column_may_have_no_name(kind: str) -> None:
    pyarrow = pytest.importorskip("pyarrow")

    def named(*names: str) -> bytes:
        arrays = list(map(pyarrow.array, columns))
        return packed(kind, pyarrow.Table.from_arrays(arrays, names))

    columns = [[0.5, 1.5, 0.0], [2.0, 3.0, 1.0], [0, 1, 0]]
    content = named("", "a.b", "y")
    table = read(content, kind)
    assert table.features.names == ["1", "a.b"]
    np.testing.assert_array_equal(table.rows.X.T, columns[:2])
    assert labels(table) == [0, 1, 0]
    for name, told in ("", "without a name; name"), ("a", "named 'a'"):
        with pytest.raises(ValueError, match=f"several columns {told}"):
            read(named(name, name, "y"), kind)
    spoilt = content.replace(b"a.b", b"a\xff.")
    with pytest.raises(ValueError, match="t cannot be read"):
        read(spoilt, kind)


def test_npz() -> None:
    X = np.array([[1, 2], [3, 4]])
    found, y, weight = arrays(npz(X=X, y=np.array(["a", b"b"]), sample_weight=[1, 2]))
    np.testing.assert_array_equal(found, X)
    assert y.tolist() == ["a", "b"]
    assert weight.tolist() == [1.0, 2.0]
    sink = io.BytesIO()
    sparse.save_npz(sink, sparse.csr_matrix(X))
    found, y, weight = arrays(sink.getvalue())
    assert (found != X).sum() == 0
    assert y is None
    assert weight is None
    with pytest.raises(ValueError, match=r"has the arrays \['a'\]; expected X, or"):
        arrays(npz(a=X))

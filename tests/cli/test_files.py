"""Files as people have them, of 206 kinds: each trains, or is refused in a sentence."""

from __future__ import annotations

import bz2
import gzip
import io
import itertools
import json
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file

from dualgap import load_model

from .running import call, refused

pandas = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")


class Kind(NamedTuple):
    """Bytes of a file, options of train, and the words of a refusal, if any."""

    content: Callable[[], bytes]
    options: tuple[str, ...] = ()
    words: str | None = None
    suffix: str = ""


def frame() -> Any:
    rng = np.random.default_rng(3)
    found = pandas.DataFrame(
        {
            "size": (rng.integers(-40, 40, 60) / 8.0) + 0.5,
            "colour": rng.choice(["red", "green", "blue"], 60),
            "count": rng.integers(0, 9, 60),
        }
    )
    score = found["size"] + 2.0 * (found.colour == "red") + rng.normal(size=60)
    found["label"] = np.where(score > 0.5, "yes", "no")
    return found


def text(
    table: Any = None, encoding: str = "utf-8", end: str = "\n", **options: Any
) -> bytes:
    table = frame() if table is None else table
    plain = table.to_csv(index=options.pop("index", False), **options)
    return plain.replace("\n", end).encode(encoding)


def edited(old: str, new: str, count: int = -1, **options: Any) -> Callable[[], bytes]:
    return lambda: text(**options).replace(old.encode(), new.encode(), count)


def column(name: str, values: Any) -> Callable[[], bytes]:
    return lambda: text(frame().assign(**{name: values}))


def parquet(change: Callable[[Any], Any] = lambda table: table) -> bytes:
    sink = io.BytesIO()
    change(frame()).to_parquet(sink)
    return sink.getvalue()


def feather() -> bytes:
    sink = io.BytesIO()
    frame().to_feather(sink)
    return sink.getvalue()


def zipped(*names: str) -> bytes:
    sink = io.BytesIO()
    with zipfile.ZipFile(sink, "w") as archive:
        for name in names:
            archive.writestr(name, text())
    return sink.getvalue()


def numbers() -> tuple[np.ndarray, np.ndarray]:
    X = pandas.get_dummies(frame().drop(columns="label"), dtype=float)
    return X[["size", "colour_blue", "colour_green", "colour_red", "count"]], X


def arrays(**more: Any) -> bytes:
    sink = io.BytesIO()
    X = numbers()[0].to_numpy()
    np.savez(sink, **{"X": X, "y": frame().label.to_numpy(str), **more})
    return sink.getvalue()


def beside(archive: bytes) -> bytes:
    """An archive with a file that is no array."""
    sink = io.BytesIO(archive)
    with zipfile.ZipFile(sink, "a") as more:
        more.writestr("notes.txt", "measured in May")
    return sink.getvalue()


def svmlight(labels: str = "words", zero_based: bool = False) -> bytes:
    sink = io.BytesIO()
    y = (frame().label == "yes").to_numpy().astype(int)
    dump_svmlight_file(numbers()[0].to_numpy(), y, sink, zero_based=zero_based)
    lines = [line for line in sink.getvalue().split(b"\n") if line]
    if labels == "words":
        lines = [[b"no", b"yes"][line[0] == ord("1")] + line[1:] for line in lines]
    return b"\n".join(lines) + b"\n"


# ---------------------------------------------------------------- files that are read

READ: dict[str, Kind] = {}
for sep, decimal, encoding, end, header in itertools.product(
    (",", ";", "\t", "|", " "), ".,", ("utf-8", "utf-8-sig", "utf-16"), ("\n", "\r\n"),
    (True, False),
):  # fmt: skip
    if (sep in ", " and decimal == ",") or (encoding != "utf-8" and end == "\n"):
        continue
    READ[f"{sep!r} {decimal} {encoding} {end!r} header={header}"] = Kind(
        lambda sep=sep, decimal=decimal, encoding=encoding, end=end, header=header: (
            text(sep=sep, decimal=decimal, encoding=encoding, end=end, header=header)
        ),
        ("--label", "label" if header else "4"),
    )
READ |= {
    "row numbers of pandas": Kind(lambda: text(index=True)),
    "row numbers, shuffled": Kind(
        lambda: text(frame().set_index(np.random.default_rng(0).permutation(60)),
                     index=True)
    ),
    "row numbers without names": Kind(
        lambda: text(index=True, header=False), ("--label", "5")
    ),
    "numbers as names": Kind(
        lambda: text(frame().set_axis(["2024", "2025", "2026", "odd"], axis=1)),
        ("--label", "odd"),
    ),
    "numbers as names of numbers": Kind(
        lambda: text(numbers()[0].assign(y=frame().label == "yes").set_axis(
            [*"012345"], axis=1).astype({"5": int})),
        ("--label", "5"),
    ),
    "a name of two lines": Kind(edited("size", '"size\n(cm)"', 1)),
    "a comment above": Kind(lambda: b"# made today\n#\n" + text()),
    "blank lines": Kind(edited("\n", "\n\n")),
    "no end of the last line": Kind(lambda: text().rstrip()),
    "a comma at the end": Kind(edited("\n", ",\n")),
    "old Mac lines": Kind(lambda: text(end="\r")),
    "every field quoted": Kind(lambda: text(quoting=1)),
    "blanks after commas": Kind(edited(",", ", ")),
    "tab after the last name": Kind(edited("label\n", "label\t\n", 1)),
    "label first": Kind(lambda: text(frame()[["label", "size", "colour", "count"]])),
    "named target": Kind(lambda: text(frame().rename(columns={"label": "Target"}))),
    "named by an option": Kind(
        lambda: text(frame().rename(columns={"label": "odd"})), ("--label", "odd")
    ),
    "a column of names left out": Kind(
        lambda: text(frame().assign(name=[f"n {k}" for k in range(60)])),
        ("--columns", "size,colour,count"),
    ),
    "an empty column at the end": Kind(
        lambda: text(frame().assign(**{"": np.nan})),
    ),
    "an empty column at the start": Kind(
        lambda: b"," + text().rstrip().replace(b"\n", b"\n,")
    ),
    "a line with the separator": Kind(lambda: b"sep=;\n" + text(sep=";")),
    "row names of R": Kind(
        lambda: text(sep=" ", quoting=2, index=True).replace(b'"" ', b"", 1)
    ),
    "row names of R, words": Kind(
        lambda: text(frame().rename(lambda k: f"row {k}"), index=True)[1:]
    ),
    "a comma at the end of rows only": Kind(
        lambda: text().replace(b"\n", b",\n").replace(b",\n", b"\n", 1)
    ),
    "gz": Kind(lambda: gzip.compress(text())),
    "bz2": Kind(lambda: bz2.compress(text())),
    "xz": Kind(lambda: lzma.compress(text())),
    "zip": Kind(lambda: zipped("a.csv")),
    "zip of a folder": Kind(lambda: zipped("a/", "a/a.csv", "__MACOSX/a")),
    "gz of text with tabs": Kind(lambda: gzip.compress(text(sep="\t"))),
    "gz of UTF-16": Kind(lambda: gzip.compress(text(encoding="utf-16"))),
    "gz of Parquet": Kind(lambda: gzip.compress(parquet())),
    "Parquet": Kind(parquet),
    "Parquet, shuffled rows": Kind(
        lambda: parquet(lambda t: t.set_index(np.arange(60)[::-1]))
    ),
    "Parquet, named index": Kind(lambda: parquet(lambda t: t.rename_axis("id"))),
    "Parquet, categories": Kind(
        lambda: parquet(lambda t: t.astype({"colour": "category", "label": "category"}))
    ),
    "Parquet, nullable": Kind(
        lambda: parquet(lambda t: t.astype({"count": "Int64", "size": "Float64"}))
    ),
    "Parquet, small numbers": Kind(
        lambda: parquet(lambda t: t.astype({"count": "uint8", "size": "float32"}))
    ),
    "Parquet, strings": Kind(
        lambda: parquet(lambda t: t.astype({"colour": "string", "label": "string"}))
    ),
    "Feather": Kind(feather),
    "npz": Kind(arrays),
    "npz, Fortran order": Kind(
        lambda: arrays(X=np.asfortranarray(numbers()[0].to_numpy()))
    ),
    "npz, bytes as labels": Kind(
        lambda: arrays(y=frame().label.to_numpy("S"))
    ),
    "npz, other files": Kind(lambda: beside(arrays())),
    "npz, float32": Kind(lambda: arrays(X=numbers()[0].to_numpy(np.float32))),
    "svmlight": Kind(svmlight),
    "svmlight from 0": Kind(lambda: svmlight(zero_based=True)),
    "svmlight, numbers": Kind(lambda: svmlight("numbers")),
    "svmlight, tabs": Kind(lambda: svmlight().replace(b" ", b"\t")),
    "svmlight, Windows": Kind(lambda: svmlight().replace(b"\n", b"\r\n")),
    "svmlight, mark": Kind(lambda: b"\xef\xbb\xbf" + svmlight()),
    "svmlight, comments": Kind(
        lambda: b"# a b\n\n" + svmlight().replace(b"\n", b" # row\n")
    ),
    "svmlight, queries": Kind(
        lambda: svmlight().replace(b"yes", b"yes qid:1").replace(b"no", b"no qid:2")
    ),
    "svmlight in gz": Kind(lambda: gzip.compress(svmlight())),
    "svmlight in gz, by name": Kind(lambda: gzip.compress(svmlight()), suffix=".gz"),
}  # fmt: skip


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", READ)
def test_a_file_trains_predicts_and_scores(name: str) -> None:
    """The model is that of the plain table."""
    kind, plain = READ[name], text()
    Path("plain.csv").write_bytes(plain)
    call("train", "plain.csv", "plain", "--quiet", "--tol", "1e-7")
    file = f"data{kind.suffix}"
    Path(file).write_bytes(kind.content())
    call("train", file, "m", *kind.options, "--quiet", "--tol", "1e-7")
    model, same = load_model("m"), load_model("plain")
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-3, atol=1e-5)
    figures = json.loads(call("score", file, "m", "--json").stdout)
    assert figures["accuracy"] > 0.7
    found = call("predict", file, "m").stdout.split()
    accuracy = np.mean(np.isin(found, ["yes", "1"]) == (frame().label == "yes"))
    assert accuracy == figures["accuracy"]


# ------------------------------------------------------------- files that are refused

#: Of a .npy file of more bytes than a number of 64 bits counts.
HEADER = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 8)}"
HEADER = HEADER.ljust(117) + b"\n"
REFUSED: dict[str, Kind] = {
    "empty": Kind(lambda: b"", ("--label", "y"), "no examples"),
    "blank": Kind(lambda: b"\n \n", words="no examples"),
    "only names": Kind(lambda: b"a,b,label\n", words="no rows"),
    "only labels": Kind(lambda: b"label\n1\n2\n", words="label"),
    "Latin-1": Kind(
        lambda: text(frame().replace("red", "gr\u00fcn"), encoding="latin-1"),
        words="iconv -f latin1",
    ),
    "JSON": Kind(lambda: frame().to_json().encode(), words="is JSON; save"),
    "JSON records": Kind(
        lambda: frame().to_json(orient="records").encode(), words="is JSON; save"
    ),
    "JSON lines": Kind(
        lambda: frame().to_json(orient="records", lines=True).encode(),
        words="is JSON; save",
    ),
    "ARFF": Kind(lambda: b"% a\n@RELATION a\n@data\n1,2\n", words="is ARFF (Weka)"),
    "workbook": Kind(lambda: zipped("[Content_Types].xml"), words="workbook of Excel"),
    "an open workbook": Kind(lambda: zipped("mimetype", "a"), words="LibreOffice"),
    "gz of gz": Kind(
        lambda: gzip.compress(gzip.compress(text())), words="holds a compressed file"
    ),
    "points for commas": Kind(text, ("--decimal", ","), "has a decimal point; give"),
    "weights of 0": Kind(column("w", 0), ("--weight", "w"), "or all 0; give numbers"),
    "an old workbook": Kind(
        lambda: b"\xd0\xcf\x11\xe0" + bytes(99), words="workbook of Excel"
    ),
    "UTF-32": Kind(lambda: text(encoding="utf-32"), words="is UTF-32; save"),
    "a stream of Arrow": Kind(lambda: b"\xff" * 4 + bytes(99), words="stream of Arrow"),
    "Vowpal Wabbit": Kind(lambda: b"1 | a:1 b:2\n-1 | a:2\n", words="Vowpal Wabbit"),
    "svmlight, old Mac": Kind(
        lambda: svmlight().replace(b"\n", b"\r"), words="tr '\\r' '\\n'"
    ),
    "NUL bytes": Kind(edited("red", "r\0d", 1), words="has no NUL bytes"),
    "Parquet of numbers as text": Kind(
        lambda: parquet(lambda t: t.assign(odd=["0.125", "1.5", "-2"] * 20)),
        words="save the column as numbers",
    ),
    "svmlight in UTF-16": Kind(
        lambda: svmlight().decode().encode("utf-16"), words="is UTF-16; save"
    ),
    "unknown bytes": Kind(lambda: bytes(range(256)), words="is not a data file"),
    "a picture": Kind(lambda: b"\x89PNG\r\n\x1a\n\0\0", words="is not a data file"),
    "HTML": Kind(lambda: b"<html><body>\n<p>a</p>\n", words="is HTML or XML; save"),
    "HTML of pandas": Kind(lambda: frame().to_html().encode(), words="is HTML or XML"),
    "columns between carets": Kind(
        edited(",", "^"), words="semicolons, tabs, bars or blanks"
    ),
    "zip of two": Kind(lambda: zipped("a.csv", "b.csv"), words="has 2 files; unpack"),
    "zip, spoilt name": Kind(
        lambda: zipped("ä.csv").replace("ä.csv".encode(), b"\xff\xff.csv"),
        words="cannot be decompressed",
    ),
    "zip, cut": Kind(lambda: zipped("a.csv")[:-9], words="cannot be"),
    "gz, cut": Kind(lambda: gzip.compress(text())[:-9], words="cannot be decompressed"),
    "xz, cut": Kind(lambda: lzma.compress(text())[:-9], words="cannot be decompressed"),
    "Parquet, cut": Kind(lambda: parquet()[:-9], words="cannot be read"),
    "Parquet of lists as words": Kind(
        lambda: parquet(lambda t: t.assign(many=[[1, 2]] * 60)),
        ("--one-hot", "many"),
        "has type list",
    ),
    "Parquet of bytes as words": Kind(
        lambda: parquet(lambda t: t.assign(many=[b"\xff"] * 60)),
        ("--one-hot", "many"),
        "cannot be read",
    ),
    "Parquet of words with NaN": Kind(
        lambda: parquet(lambda t: t.assign(odd=np.where(t.index == 3, np.nan, 1.5))),
        ("--one-hot", "odd"),
        "row 4, column 'odd': the value is missing",
    ),
    "Parquet, gaps": Kind(
        lambda: parquet(lambda t: t.assign(gap=[None, *range(59)])), words="--missing"
    ),
    "npz, other arrays": Kind(lambda: arrays(X=np.ones(3)), words="X has shape (3,)"),
    "npz, few labels": Kind(lambda: arrays(y=np.ones(3)), words="has shape (3,)"),
    "npz of objects": Kind(
        lambda: arrays(y=np.array(["a", 1], object)), words="words with dtype=str"
    ),
    "npz, NaN": Kind(lambda: arrays(X=np.full((60, 2), np.nan)), words="NaN"),
    "npz, spoilt name": Kind(
        lambda: arrays(ä=np.ones(3)).replace("ä.npy".encode(), b"\xff\xff.npy"),
        words="cannot be read",
    ),
    "npz, cut": Kind(lambda: arrays()[:-99], words="cannot be read"),
    "npy": Kind(lambda: b"\x93NUMPY\x01\0v\0" + HEADER, words="cannot be read"),
    "dates": Kind(column("day", "2026-01-31"), words="is a date"),
    "German dates": Kind(column("day", "31.01.2026"), words="is a date"),
    "American dates": Kind(column("day", "01/31/2026"), words="is a date"),
    "dates with months": Kind(column("day", "31 Jan 2026"), words="is a date"),
    "dates with times": Kind(column("day", "2026-01-31T12:30:00Z"), words="is a date"),
    "times": Kind(column("time", "12:30"), words="is a time of day"),
    "thousands": Kind(column("cost", "1,000"), words="thousands separators"),
    "thousands with dots": Kind(column("cost", "1.000.000"), words="thousands sep"),
    "percent": Kind(column("rate", "12%"), words="with a sign"),
    "dollars": Kind(column("cost", "$5"), words="with a sign"),
    "euros": Kind(column("cost", "5.50 EUR"), words="with a sign or unit"),
    "grams": Kind(column("weight", "5.5 kg"), words="with a sign or unit"),
    "numbers in brackets": Kind(column("cost", "(5.50)"), words="with a sign"),
    "a minus of printers": Kind(column("cost", "\u22125"), words="with a sign"),
    "hexadecimal": Kind(column("code", "0x1F"), words="is a hexadecimal number"),
    "thousands with blanks": Kind(column("cost", "1 000"), words="thousands sep"),
    "a decimal comma": Kind(column("cost", "1,5"), words="--decimal ,"),
    "names": Kind(
        lambda: text(
            pandas.concat([frame()] * 2).assign(
                name=[f"Person {k}" for k in range(120)]
            )
        ),
        words="--one-hot name",
    ),
    "a word in every row": Kind(
        column("name", [f"Person {k}" for k in range(60)]),
        words="column 'name' has a word of its own in nearly every row; leave the "
        "column out with --columns -name, or keep its words with --one-hot name",
    ),
    "infinite": Kind(column("odd", np.inf), words="found 'inf'"),
    "beyond float64": Kind(
        column("odd", ["1", "2", "1e400"] * 20), words="'1e400'; replace it or drop"
    ),
    "a field of very long text": Kind(
        column("note", "a" * 200_000), words="line 2: field larger than"
    ),
    "a dash for a gap": Kind(
        column("odd", ["1", "2", "-"] * 20), words="leave the field empty"
    ),
    "a word among numbers": Kind(
        column("odd", ["1", "2", "x"] * 20), words="--one-hot"
    ),
    "an empty field": Kind(edited(",red,", ",,", 1), words="--missing mean"),
    "a question mark": Kind(edited(",red,", ",?,", 1), words="--missing mean"),
    "a missing label": Kind(edited("yes\n", "\n", 1), words="missing"),
    "a short row": Kind(edited(",red,", ",", 1), words="expected 4 columns"),
    "a sum below": Kind(lambda: text() + b"Sum: 60\n", words="mend or remove the line"),
    "a long row": Kind(edited(",red,", ",red,red,", 1), words="expected 4 columns"),
    "an open quote": Kind(edited(",red,", ',"red,', 1), words="line"),
    "two columns of a name": Kind(
        edited("colour", "count", 1), words="several columns"
    ),
    "no label": Kind(
        lambda: text(frame().drop(columns="label").assign(x=1)[["size", "count", "x"]]),
        words="--label",
    ),
    "one class": Kind(edited("no\n", "yes\n"), words="only one class"),
    "targets": Kind(column("label", np.arange(60) / 7), words="--task regression"),
    "label:weight": Kind(
        lambda: b"1:0.5 1:1 2:2\n",
        words="put a label (0, say) before the features, and give weights of examples "
        "(label:weight) in a file with --weights FILE",
    ),
    "several labels": Kind(
        lambda: b"1,3 1:1\n2 1:2\n", words="several labels a line need dualgap train"
    ),
    "a word after numbers": Kind(
        lambda: b"1 1:1\nspam 1:2\n", words="line 2, column 1: expected a label (a fin"
    ),
    "no svmlight labels": Kind(lambda: b"1:1 2:2\n1:2\n", words="put a label"),
    "svmlight, wrong order": Kind(lambda: b"1 2:1 1:1\n", words="larger than the one"),
    "svmlight, a gap": Kind(lambda: b"1 2:\n", words="a value"),
    "svmlight, a cost": Kind(lambda: b"1 cost:2 2:1\n-1 1:1\n", words="cost:2"),
    "a model": Kind(lambda: b"solver_type L2R\n", words="is a model file"),
}


#: Files that convert refuses in the same words.
OTHERS = {
    *("JSON", "JSON records", "JSON lines", "ARFF", "workbook", "svmlight in UTF-16"),
    *("a picture", "HTML", "label:weight", "several labels", "a word after numbers"),
    *("two columns of a name", "npy"),
}


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_in_a_sentence(name: str) -> None:
    kind = REFUSED[name]
    Path("data").write_bytes(kind.content())
    words = refused("train", "data", "m", "--quiet", *kind.options)
    assert str(kind.words) in words
    assert len(words) < 400
    if name in OTHERS:
        assert str(kind.words) in refused("convert", "data", "s")

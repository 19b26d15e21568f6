"""load_svmlight against its grammar, Python's float and scikit-learn."""

import _thread
import bz2
import gzip
import io
import lzma
import math
import os
import re
import sys
import threading
import time

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from dualgap.data import load_svmlight

from .. import memory
from ..conftest import examples, unsanitized

INT32_MAX = np.iinfo(np.int32).max
LARGEST_INDEX = 2**63 - 2

quick = settings(deadline=None, max_examples=examples(200))


def load(text, **options):
    return load_svmlight(io.BytesIO(text), **options)


def bits(array):
    """The array as integers: -0.0 differs from 0.0."""
    return np.asarray(array).view(f"i{np.asarray(array).itemsize}").tolist()


def assert_same(ours, theirs):
    """Two results of load_svmlight(_file), bit for bit."""
    (X, *vectors), (Z, *others) = ours, theirs
    assert X.shape == Z.shape
    assert X.dtype == Z.dtype
    assert np.array_equal(X.indptr, Z.indptr)
    assert np.array_equal(X.indices, Z.indices)
    assert X.data.tobytes() == Z.data.tobytes()
    for vector, other in zip(vectors, others, strict=True):
        assert vector.dtype == other.dtype
        assert vector.tobytes() == other.tobytes()


# ------------------------------------------------------- the grammar, in Python


NUMBER = rb"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"


class MalformedError(Exception):
    """Holds the number of the first malformed line."""


def finite(token):
    if not re.fullmatch(NUMBER, token) or not math.isfinite(float(token)):
        raise ValueError(token)
    return float(token)


def is_word(label):
    """Return whether the first label is a word: then all labels are."""
    try:
        float(label)
    except ValueError:
        letter = re.search(rb"[A-Za-z_\x80-\xff]", label)
        return letter is not None and not re.search(rb"[:,;|]", label)
    return False


def read_line(tokens, zero_based, query_id, words):
    """Label, qid and features of one line; ValueError if it is malformed."""
    label, *rest = tokens
    label, qid = (
        label if words and not set(label) & set(b":,;|") else finite(label),
        None,
    )
    if rest and rest[0].startswith(b"qid:"):
        if not re.fullmatch(rb"[+-]?[0-9]+", rest[0][4:]):
            raise ValueError(rest)
        qid = int(rest.pop(0)[4:])
        if not -(2**63) <= qid < 2**63:
            raise ValueError(qid)
    elif query_id:
        raise ValueError(rest)
    features, previous = [], -1
    for token in rest:
        index, colon, value = token.partition(b":")
        if not re.fullmatch(rb"[0-9]+", index) or not colon:
            raise ValueError(token)
        if not previous < int(index) <= LARGEST_INDEX:
            raise ValueError(index)
        if zero_based is False and int(index) == 0:
            raise ValueError(index)
        previous = int(index)
        features.append((previous, finite(value)))
    return label, qid, features


def reference(text, zero_based="auto", query_id=False):
    """Return the expected result of load_svmlight: (rows, labels, qid, n_features)."""
    rows, labels, qids, lines, words = [], [], [], [], None
    for number, line in enumerate(text.split(b"\n"), 1):
        tokens = line.split(b"#", 1)[0].split()
        if tokens:
            words = is_word(tokens[0]) if words is None else words
            lines.append(number)
            try:
                label, qid, features = read_line(tokens, zero_based, query_id, words)
            except ValueError:
                raise MalformedError(number) from None
            rows.append(features)
            labels.append(label)
            qids.append(qid)
    for k, label in enumerate(labels if words else ()):
        try:
            labels[k] = label.decode()
        except UnicodeDecodeError:
            raise MalformedError(lines[k]) from None
    indices = [i for row in rows for i, _ in row]
    first = 0 if zero_based is True or (zero_based == "auto" and 0 in indices) else 1
    rows = [[(i - first, value) for i, value in row] for row in rows]
    n_features = max((i - first for i in indices), default=0) + 1
    return rows, labels, [qids] * query_id, n_features


def check_against_reference(text, **options):
    """Same result, bit for bit, or same line refused; whether it was read."""
    try:
        rows, labels, qids, n_features = reference(text, **options)
    except MalformedError as malformed:
        with pytest.raises(ValueError, match=rf"^<stream>, line {malformed}, column "):
            load(text, **options)
        return False
    X, y, *qid = load(text, **options)
    assert isinstance(X, sp.csr_matrix)
    assert X.shape == (len(rows), n_features)
    assert X.indptr.tolist() == np.cumsum([0] + [len(row) for row in rows]).tolist()
    assert X.indices.tolist() == [i for row in rows for i, _ in row]
    assert bits(X.data) == bits(np.array([v for row in rows for _, v in row], float))
    if y.dtype.kind == "U":
        assert y.tolist() == labels
    else:
        assert bits(y) == bits(np.array(labels, float))
    expected = np.int32 if n_features <= INT32_MAX else np.int64
    assert X.indices.dtype == X.indptr.dtype == expected
    assert X.has_sorted_indices
    assert X.has_canonical_format
    assert [q.tolist() for q in qid] == qids
    assert all(q.dtype == np.int64 for q in qid)
    return True


# ------------------------------------------------------------- random bytes, files

BLANKS = st.sampled_from([b" ", b"  ", b"\t", b"\r", b" \x0b", b"\x0c "])
NUMBERS = st.one_of(
    st.sampled_from(
        [b"1", b"+1", b"-1", b"0", b"-0", b"1.", b".5", b"+.5e1", b"00.10"]
    ),
    st.floats(allow_nan=False, allow_infinity=False).map(lambda x: repr(x).encode()),
    st.integers(0, 10**6).map(lambda i: f"0.{i:06d}".encode()),
)
INDICES = st.one_of(
    st.integers(0, 40), st.integers(0, 10**9), st.integers(0, LARGEST_INDEX)
)


@st.composite
def lines(draw):
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return draw(st.sampled_from([b"", b" \t", b"# a:b c:d", b"  #1 1:2"]))
    parts = [draw(NUMBERS)]
    if draw(st.integers(0, 2)) == 0:
        parts.append(b"qid:%d" % draw(st.integers(-(2**63), 2**63 - 1)))
    some = draw(st.sampled_from([INDICES, st.integers(0, 40)]))
    for index in sorted(draw(st.sets(some, max_size=6))):
        parts.append(b"%d:%s" % (index, draw(NUMBERS)))
    text = draw(BLANKS).join(parts) + draw(st.sampled_from([b"", b" ", b"\r"]))
    return text + draw(st.sampled_from([b"", b"", b"", b"#x:1", b" # 1 2:3"]))


FILES = st.lists(lines(), max_size=8).flatmap(
    lambda rows: st.sampled_from([b"\n".join(rows), b"\n".join(rows) + b"\n"])
)
SNIPPETS = st.sampled_from(
    [b"", b" ", b":", b"#", b"\n", b"\0", b"-", b"+", b".", b"e", b"_", b",", b"0",
     b"9" * 25, b"nan", b"inf", b"1e999", b"-1:2", b"qid:", b"qid:1 ", b"\xff", b" 1:2"]
)  # fmt: skip


@st.composite
def mutated_files(draw):
    text = draw(FILES)
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(text)))
        end = draw(st.integers(start, min(start + 4, len(text))))
        text = text[:start] + draw(SNIPPETS) + text[end:]
    return text


RANDOM_BYTES = st.one_of(
    st.binary(max_size=60),
    st.lists(st.sampled_from(b"0123456789 :.-+e#\nqid\t\r"), max_size=60).map(bytes),
)
ZERO_BASED = st.sampled_from(["auto", True, False])


@quick
@given(FILES | mutated_files() | RANDOM_BYTES, ZERO_BASED, st.booleans())
@example(b"1 0:1 2147483646:1", "auto", False)
@example(b"1 0:1 2147483647:1", "auto", False)
@example(b"1 2147483647:1", "auto", False)
@example(b"1 2147483648:1", "auto", False)
@example(b"1 9223372036854775806:1", True, False)
@example(b"1 9223372036854775807:1", True, False)
@example(b"", "auto", True)
@example(b"a 1:1\n\xff 1:1\n1\nb#\n", "auto", False)
@example(b"1 1:1e309", "auto", False)
@example(b"1 1:1.7976931348623159e308", "auto", False)
@example(b"1 1:" + b"1" * 400, "auto", False)
@example(b"a\n\tb 1:1\n#\n1 2:1\nc", "auto", False)
def test_any_bytes_against_the_grammar(text, zero_based, query_id):
    check_against_reference(text, zero_based=zero_based, query_id=query_id)


# Where scikit-learn accepts and load_svmlight refuses, by documented choice.
STRICTER = re.compile(
    rb"_|nan|inf|[eE]\+?[0-9]{3}|[0-9]{300}|[+-][0-9]+:|qid", re.IGNORECASE
)


@quick
@given(FILES | mutated_files() | RANDOM_BYTES, ZERO_BASED)
def test_any_bytes_against_sklearn(text, zero_based):
    try:
        theirs = load_svmlight_file(io.BytesIO(text), zero_based=zero_based)
    except OverflowError:  # its indices have 32 bits
        theirs = None
    except ValueError:
        first = re.match(rb"(?:\s|#.*\n)*([^\s#]*)", text)
        if is_word(first[1]):  # scikit-learn reads numbers alone
            return
        with pytest.raises(ValueError, match=r"line \d+, column \d+: expected"):
            load(text, zero_based=zero_based)
        return
    try:
        ours = load(text, zero_based=zero_based)
    except ValueError:
        assert theirs is None or STRICTER.search(text)
        return
    if theirs is not None:
        assert_same(ours, theirs)


@quick
@given(
    st.lists(
        st.one_of(
            st.floats(allow_nan=False, allow_infinity=False).map(repr),
            st.from_regex(r"\A[0-9]{0,25}\.[0-9]{1,25}([eE][+-]?[0-9]{1,2})?\Z"),
            st.from_regex(r"\A[0-9]{15,20}e-?(2[0-9]|30[0-8])\Z"),
            st.from_regex(r"\A0?\.0{0,330}[0-9]{1,20}\Z"),
            st.from_regex(r"\A[1-9][0-9]?e-3[0-9]{2}\Z"),
        ),
        min_size=1,
        max_size=20,
    )
)
@example(["9007199254740992", "9007199254740993", "9007199254740993e-22"])
@example(["18446744073709551617", "184467440737095516.17"])  # 2**64 + 1
@example(["1e22", "1e23", "123456789e15", "1.7976931348623157e308", "1e308"])
@example(["5e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-400"])
@example(["2.2250738585072011e-308", "0e99999", "0.1e-999999999999999999999"])
@example(["0." + "0" * 400 + "1e401", "1" + "0" * 400 + "e-400"])
def test_numbers_equal_pythons_float(numbers):
    numbers = [number for number in numbers if math.isfinite(float(number))]
    expected = [float(number) for number in numbers]
    text = "".join(f"{number} 1:{number}\n" for number in numbers)
    X, y = load(text.encode())
    assert bits(y) == bits(np.array(expected))
    assert bits(X.data) == bits(np.array(expected))


def test_float32():
    text = b"1 1:0.1 2:3.4028235e38 3:1e-50 4:-16777217\n"
    X, y = load(text, dtype=np.float32)
    assert_same((X, y), load_svmlight_file(io.BytesIO(text), dtype=np.float32))
    assert X.dtype == np.float32
    assert y.dtype == np.float64
    with pytest.raises(ValueError, match="line 2, column 5: expected a value within"):
        load(text + b"1 1:3.5e38\n", dtype=np.float32)


# ------------------------------------------------------------------ malformed lines


@pytest.mark.parametrize(
    ("line", "column", "message", "options"),
    [
        (b"x 1:2", 1, "a label (a finite decimal number), found 'x'", {}),
        (b"  1_0 1:2", 3, "a label (a finite decimal number), found '1_0'", {}),
        (b"nan 1:2", 1, "a label (a finite decimal number), found 'nan'", {}),
        (b"1,2 3:4", 1, "several labels a line (multi-label) train LinearSVC", {}),
        (b"a,b\n1,2", 1, "of a table (CSV) make svmlight text", {}),
        (b"1:2 3:4", 1, "put a label (0, say) before the features", {}),
        (b"1:2 3:4", 1, "weights of examples (label:weight) as sample_weight", {}),
        (b"1 2:3 a:1", 7, "a feature <index>:<value>", {}),
        (b"1 +2:3", 3, "a feature <index>:<value>", {}),
        (b"1 2:3 -7:1", 7, "an index that is not negative, found '-7:1'", {}),
        (b"1 2 3:1", 4, "':' and a value after the index", {}),
        (b"1 2", 4, "found the end of the line", {}),
        (b"1 2:", 5, "a value (a finite decimal number), found the end of the", {}),
        (b"1 2:#3", 5, "a value (a finite decimal number), found a comment", {}),
        (b"1 2: 3", 5, "a value (a finite decimal number), found a blank", {}),
        (b"1 2:3:4", 5, "a value (a finite decimal number), found '3:4'", {}),
        (b"1 2:inf", 5, "a value (a finite decimal number), found 'inf'", {}),
        (b"1 2:0x1", 5, "a value (a finite decimal number), found '0x1'", {}),
        (b"1 2:1e", 5, "a value (a finite decimal number), found '1e'", {}),
        (b"1 2:.", 5, "a value (a finite decimal number), found '.'", {}),
        (b"1 2:\xff\0'", 5, r"found '\xff\x00''", {}),
        (b"1 2:" + b"z" * 99, 5, "found '" + "z" * 40 + "...'", {}),
        (b"1 2:3 2:4", 7, "an index larger than the one before it", {}),
        (b"1 3:3\t2:4", 7, "an index larger than the one before it", {}),
        (b"1 0:3", 3, "an index of at least 1", {"zero_based": False}),
        (b"1 9223372036854775807:1", 3, "at most 9223372036854775806", {}),
        (b"1 qid:x 1:2", 7, "an integer after 'qid:'", {}),
        (b"1 qid:+-1 1:2", 7, "an integer after 'qid:'", {}),
        (b"1 qid: 1:2", 7, "an integer after 'qid:'", {}),
        (b"1 1:2 qid:1", 7, "'qid:' may stand only once, after the label", {}),
        (b"1 1:2", 3, "'qid:<integer>' after the label", {"query_id": True}),
    ],
)
def test_malformed_line(tmp_path, line, column, message, options):
    path = tmp_path / "bad.svm"
    path.write_bytes(b"# comment\n\n1 qid:1 3:4\r\n" + line + b"\n!\n")
    with pytest.raises(ValueError, match="expected") as caught:
        load_svmlight(path, **options)
    text = str(caught.value)
    assert text.startswith(f"{path}, line 4, column {column}: expected ")
    assert message in text


def test_labels_that_are_words():
    text = (
        "\ufeff# a b\n\n spam 1:0.5 2:1\nham#x\n1 2:3\n\tgr\u00fcn qid:1 3:1".encode()
    )
    X, y = load(text)
    assert y.tolist() == ["spam", "ham", "1", "gr\u00fcn"]
    assert X.toarray().tolist() == [[0.5, 1, 0], [0, 0, 0], [0, 3, 0], [0, 0, 1]]
    assert load(text, query_id=False, n_jobs=2)[1].tolist() == y.tolist()
    with pytest.raises(ValueError, match="line 2, column 8: expected a value"):
        load(b"spam 1:2\n ham 1:x\n")
    with pytest.raises(ValueError, match="line 2, column 1: expected a label"):
        load(b"spam 1:2\n1:2 2:3\n")
    with pytest.raises(ValueError, match=r"line 1, column 1: .* b'gr\\xfcn'; convert"):
        load(b"gr\xfcn 1:2\n")


# ------------------------------------------------------- several pieces and threads


@pytest.fixture(scope="module")
def large():
    """Several pieces, with all that makes the counts of the first pass bounds only."""
    rng = np.random.default_rng(0)
    rows = []
    for i in range(15000):
        n = rng.integers(0, 40)
        indices = np.cumsum(rng.integers(1, 50, n))
        values = rng.integers(0, 10**5, n)
        row = f"{i} qid:{i // 7} " + " ".join(
            f"{j}:0.{v}" for j, v in zip(indices.tolist(), values.tolist(), strict=True)
        )
        rows.append(row + ("", " # a:b", "\n\n", "\n# 1:2 3:4")[i % 4])
    rows.insert(9000, "-1 qid:0 " + " ".join(f"{j}:{j}" for j in range(1, 200_000)))
    text = "\n".join(rows).encode()
    assert len(text) > 4 << 20
    return text


def test_threads_do_not_matter(large):
    theirs = load_svmlight_file(io.BytesIO(large), query_id=True)
    for n_jobs in (1, 2, 5):
        assert_same(load(large, n_jobs=n_jobs, query_id=True), theirs)
    zero_based = large.replace(b"\n9 qid:1 ", b"\n9 qid:1 0:7 ", 1)
    theirs = load_svmlight_file(io.BytesIO(zero_based))
    assert_same(load(zero_based, n_jobs=2), theirs)
    assert theirs[0][9, 0] == 7


@pytest.mark.parametrize("n_jobs", [1, 4])
@pytest.mark.parametrize(
    "offsets",  # of malformed lines, in pieces of 1 MiB
    [(0, 0.9, 2), (0.5, 1.95, 2.9), (1.99, 2.01, 3), (4,)],
)
def test_first_malformed_line_is_reported(large, offsets, n_jobs):
    text = large.split(b"\n")
    ends = np.cumsum([len(line) + 1 for line in text])
    lines = np.searchsorted(ends, np.array(offsets) * 2**20)
    # the second time an index that needs 64 bits makes the parser start again
    for before in (text[1], b"7 99999999999:1"):
        bad = [text[0], before, *text[2:]]
        for line in lines:
            bad[line] = b"7 5:1 3:oops"
        with pytest.raises(ValueError, match=f"line {lines[0] + 1}, column 7: expect"):
            load(b"\n".join(bad), n_jobs=n_jobs)


def test_wide_indices_in_several_pieces(large):
    text = large + b"\n1 qid:5 1:2 5000000000:0.5"
    X, _y = load(text, n_jobs=2)
    Z, _z = load_svmlight_file(io.BytesIO(large))
    assert X.shape == (Z.shape[0] + 1, 5_000_000_000)
    assert X.indices.dtype == X.indptr.dtype == np.int64
    assert np.array_equal(X.indices[:-2], Z.indices)
    assert X.indices[-2:].tolist() == [0, 4_999_999_999]


@pytest.mark.long
def test_interrupt_leaves_at_once():
    # A long text per value: halfway between two subnormal doubles.
    line = b"1 1:0." + b"0" * 323 + b"7" * 760 + b"\n"

    def seconds(text):
        start = time.process_time()
        load(text, n_jobs=1)
        return time.process_time() - start

    text = line * (16_000_000 // len(line))
    # The least of several: while the machine is busy, more text would be needed.
    whole = min(seconds(text) for _ in range(4))
    text *= (times := math.ceil(1.5 / whole))
    sent = []

    def interrupt():
        sent.append(time.process_time())
        _thread.interrupt_main()

    threading.Timer(0.1, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        load(text, n_jobs=1)
    # Processor time of this process alone, and in units of its own.
    assert time.process_time() - sent[0] < 0.5 * times * whole


MEASURE = """
import sys
from dualgap.data import load_svmlight
load_svmlight(sys.argv[1])
before = peak()
X, y = load_svmlight(sys.argv[2])
print(sum(a.nbytes for a in (X.data, X.indices, X.indptr, y)), peak() - before)
"""


@pytest.mark.long
@unsanitized("its own memory is counted too")
@memory.reads_peak
def test_peak_memory(tmp_path, large):
    (tmp_path / "small").write_bytes(b"1 1:1\n")
    path = tmp_path / "large"
    path.write_bytes((large + b"\n") * 8)
    arrays, peak = map(int, memory.run(MEASURE, tmp_path / "small", path).split())
    assert arrays > 30e6
    assert peak <= 1.3 * arrays + path.stat().st_size


def test_no_memory_by_declared_index():
    X, _ = load(b"1 1:1 9223372036854775806:2\n")
    assert X.shape == (1, LARGEST_INDEX)
    assert X.nnz == 2


# ---------------------------------------------------------------- files, real data


@pytest.mark.parametrize(
    "name",
    ["adult/a1a", "adult/a9a", "web/w8a.t", "covtype/covtype.binary.scale.subset92962",
     "cocoa_rcv1_small/small_train.dat", "frappe/frappe.val_test.libfm",
     "letter/letter.scale", "splice/splice.scaled", "ijcnn1/ijcnn1"],
)  # fmt: skip
def test_real_files_as_sklearn(data_dir, name):
    path = data_dir / f"{name}.xz"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    text = lzma.decompress(path.read_bytes())
    # sklearn is slow: its result on whole lines of the first 1.5 MB suffices
    text = text[: text.find(b"\n", 1_500_000) + 1] or text
    assert_same(load(text), load_svmlight_file(io.BytesIO(text)))
    X, y = load_svmlight(path)
    assert X.nnz == load_svmlight(path, n_jobs=2)[0].nnz > 0
    assert len(y) == X.shape[0]


def test_what_sklearn_writes(tmp_path):
    rng = np.random.default_rng(1)
    X = sp.csr_matrix(rng.standard_normal((200, 50)) * (rng.random((200, 50)) < 0.2))
    y = rng.standard_normal(200)
    qid = rng.integers(0, 9, 200)
    for zero_based in (True, False):
        path = tmp_path / "data.svm"
        options = {"zero_based": zero_based, "query_id": qid, "comment": "été"}
        dump_svmlight_file(X, y, str(path), **options)
        for option in (zero_based, "auto"):
            options = {"zero_based": option, "query_id": True, "n_features": 60}
            theirs = load_svmlight_file(path, **options)
            assert_same(load_svmlight(path, **options), theirs)
            assert_same(load_svmlight(str(path), **options), theirs)
            with open(path, "rb") as file:
                assert_same(load_svmlight(file, **options), theirs)


TEXT = b"1 1:0.5 7:2\n-1 2:1e-3\n" * 1000


def zstd_compress(data):
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.compress(data)
    zstandard = pytest.importorskip("zstandard")
    return zstandard.ZstdCompressor().compress(data)


COMPRESSORS = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstd_compress,
}


@pytest.mark.parametrize("suffix", COMPRESSORS)
def test_compressed(tmp_path, suffix):
    path = tmp_path / f"data{suffix}"
    packed = COMPRESSORS[suffix](TEXT)
    path.write_bytes(packed)
    assert_same(load_svmlight(path), load(TEXT))
    path.write_bytes(packed + COMPRESSORS[suffix](b"3 9:4\n"))  # two members
    assert_same(load_svmlight(path), load(TEXT + b"3 9:4\n"))
    for damaged in (packed[:-9], packed[: len(packed) // 2], b"1 1:2\n" * 9):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"data\.\w+ cannot be decompressed: ."):
            load_svmlight(path)
    path.write_bytes(COMPRESSORS[suffix](TEXT + b"1 2:x"))
    with pytest.raises(ValueError, match=r"data\.\w+, line 2001, column 5: expected"):
        load_svmlight(path)


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python reads .zst itself")
def test_zst_without_zstandard(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = tmp_path / "data.zst"
    path.write_bytes(b"")
    with pytest.raises(ImportError, match="pip install zstandard"):
        load_svmlight(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_pipe(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(TEXT,))
    writer.start()
    result = load_svmlight(path)
    writer.join()
    assert_same(result, load(TEXT))


# ------------------------------------------------------------------------ arguments


def test_n_features():
    text = b"1 2:1 5:1\n"
    assert load(text)[0].shape == (1, 5)
    assert load(text, n_features=5)[0].shape == (1, 5)
    assert load(text, n_features=9)[0].shape == (1, 9)
    X, _ = load(text, n_features=2**40)
    assert X.shape == (1, 2**40)
    assert X.indices.dtype == np.int64
    with pytest.raises(ValueError, match="n_features was set to 4, but <stream> cont"):
        load(text, n_features=4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features=0: give a whole number, 1 or more"),
        ({"n_features": 2**63}, "n_features does not fit into 64 bits; give less"),
        ({"n_features": 2.0}, "n_features=2.0: give a whole number, 1 or more"),
        ({"dtype": int}, "dtype=<class 'int'>: use numpy.float64 or numpy.float32"),
        ({"dtype": ">f8"}, "dtype='>f8': use numpy.float64 or numpy.float32"),
        ({"dtype": "nonsense"}, "dtype='nonsense': use numpy.float64"),
        ({"zero_based": "yes"}, "zero_based='yes': use one of True, False, 'auto'"),
        ({"zero_based": 1}, "zero_based=1: use one of True, False, 'auto'"),
        ({"query_id": None}, "query_id=None: use one of True, False"),
        ({"n_jobs": 0}, "n_jobs=0: use None, 1, 2, ... or -1"),
        ({"n_jobs": 1.5}, "n_jobs=1.5: use None, 1, 2, ... or -1"),
    ],
)
def test_arguments(tmp_path, options, message):
    absent = tmp_path / "absent"  # refused before any work
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        load_svmlight(absent, **options)


def test_path():
    with pytest.raises(FileNotFoundError):
        load_svmlight("no such file.gz")
    with pytest.raises(TypeError, match="path=3 is neither a path nor a file-like"):
        load_svmlight(3)
    with pytest.raises(TypeError, match="<stream> gives str, not bytes: open it in"):
        load_svmlight(io.StringIO("1 1:2\n"))

"""Conversion: the same rows in random order, in bounded memory, whatever kills it."""

import gzip
import io
import lzma
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
import zipfile

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

from dualgap.data import RowStore, convert, load_svmlight

from .. import memory
from ..conftest import unsanitized

MEMORY = 2**20  # the least: chunks of 64 KiB


def example(n=3000, d=60, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=0.2, format="csr", random_state=rng)
    X.data = np.round(X.data, 4)
    return X, np.where(rng.random(n) < 0.4, -1.0, 1.0)


def text_of(X, y, zero_based=False):
    file = io.BytesIO()
    dump_svmlight_file(X, y, file, zero_based=zero_based)
    return file.getvalue()


def bag(X, y, weight=None):
    """The rows as a sorted list: what a permutation leaves."""
    X = sparse.csr_matrix(X, copy=True)
    X.eliminate_zeros()  # a dense store does not tell them from others
    X.sort_indices()
    weight = np.ones(len(y)) if weight is None else weight
    rows = zip(X.indptr[:-1], X.indptr[1:], y.tolist(), weight.tolist(), strict=True)
    return sorted(
        (label, own, tuple(X.indices[a:b]), tuple(X.data[a:b]))
        for a, b, label, own in rows
    )


def same_rows(store, X, y, weight=None):
    own = store.matrix(), store.y.astype(float), store.sample_weight
    return bag(*own) == bag(X, y.astype(float), weight)


@pytest.mark.parametrize("zero_based", [False, True])
@pytest.mark.parametrize("packed", [None, ".gz", ".xz"])
def test_text_becomes_a_store_of_the_same_rows(tmp_path, packed, zero_based):
    X, y = example()
    X = X[:, 1:].tocsr() if zero_based else X
    text = b"# a comment\n\n" + text_of(X, y, zero_based)
    pack = {None: bytes, ".gz": gzip.compress, ".xz": lzma.compress}[packed]
    path = tmp_path / f"data{packed or ''}"
    path.write_bytes(pack(text))
    store = convert(path, tmp_path / "s", memory=MEMORY, n_jobs=2)
    store.verify()
    expected, labels = load_svmlight(path)
    assert store.shape == expected.shape
    assert store.zero_based is zero_based
    assert same_rows(store, expected, labels)
    assert store.y.dtype == np.int8
    assert store.dtypes["indices"] == np.int32
    assert sorted(os.listdir(tmp_path)) == sorted([path.name, "s"])


def test_several_files_follow_each_other_and_share_the_base_of_indices(tmp_path):
    (tmp_path / "a").write_bytes(b"1 0:1 3:2\n")
    (tmp_path / "b").write_bytes(b"-1 5:3\n2 1:4")
    files = [tmp_path / "a", str(tmp_path / "b")]
    store = convert(files, tmp_path / "s", shuffle=False)
    expected = [[1, 0, 0, 2, 0, 0], [0, 0, 0, 0, 0, 3], [0, 4, 0, 0, 0, 0]]
    assert np.array_equal(store.matrix().toarray(), expected)
    assert store.y.tolist() == [1, -1, 2]


def test_the_order_is_random_and_the_same_for_any_number_of_threads(tmp_path):
    n = 20_000
    X, y = sparse.csr_matrix(np.arange(1.0, n + 1).reshape(-1, 1)), np.zeros(n)
    y[: n // 2] = 1.0
    one, two = (
        convert([(X, y)], tmp_path / f"s{jobs}", memory=MEMORY, n_jobs=jobs)
        for jobs in (1, 3)
    )
    assert one.fingerprint == two.fingerprint
    order = one.matrix().toarray().ravel()
    assert sorted(order) == list(range(1, n + 1))
    # Ranks against places: uncorrelated up to 5 standard deviations, and the labels,
    # sorted at first, are mixed in every hundredth of the store.
    correlation = np.corrcoef(order, np.arange(n))[0, 1]
    assert abs(correlation) < 5.0 / np.sqrt(n)
    shares = one.y.reshape(100, -1).mean(axis=1)
    assert np.abs(shares - 0.5).max() < 5.0 * 0.5 / np.sqrt(n / 100)
    other = convert([(X, y)], tmp_path / "t", memory=MEMORY, seed=1)
    assert not np.array_equal(other.matrix().toarray().ravel(), order)
    plain = convert([(X, y)], tmp_path / "u", memory=MEMORY, shuffle=False)
    assert np.array_equal(plain.matrix().toarray().ravel(), np.arange(1, n + 1))


def test_batches_of_any_size_and_form(tmp_path):
    X, y = example()
    weight = np.random.default_rng(1).random(len(y))
    batches = [
        (X[:7], y[:7], weight[:7]),
        (X[7:2500].tocoo(), y[7:2500], weight[7:2500]),
        (X[2500:].toarray(), y[2500:], weight[2500:]),
    ]
    store = convert(iter(batches), tmp_path / "s", memory=MEMORY)
    assert store.is_sparse
    assert same_rows(store, X, y, weight)
    store = convert(batches, tmp_path / "d", memory=MEMORY, format="dense")
    assert not store.is_sparse
    assert same_rows(store, X, y, weight)


def test_numpy_and_scipy_files(tmp_path):
    X, y = example()
    dense = X.toarray()
    np.save(tmp_path / "X.npy", dense)
    np.save(tmp_path / "y.npy", y)
    np.savez_compressed(tmp_path / "Xy.npz", X=dense, y=y, sample_weight=y + 2.0)
    sparse.save_npz(tmp_path / "csr.npz", X)
    options = {"memory": MEMORY}
    store = convert(tmp_path / "X.npy", tmp_path / "a", y=tmp_path / "y.npy", **options)
    assert not store.is_sparse
    assert same_rows(store, X, y)
    store = convert(tmp_path / "Xy.npz", tmp_path / "b", format="csr", **options)
    assert same_rows(store, X, y, y + 2.0)
    store = convert(tmp_path / "csr.npz", tmp_path / "c", y=y, **options)
    assert store.is_sparse
    assert same_rows(store, X, y)
    with zipfile.ZipFile(tmp_path / "notes.npz", "w") as archive:
        archive.writestr("notes.txt", "measured in May")
        archive.write(tmp_path / "X.npy", "X.npy")
    store = convert(tmp_path / "notes.npz", tmp_path / "e", y=y, **options)
    assert same_rows(store, X, y)


def test_labels_that_are_words_stay_with_their_rows(tmp_path):
    n = 3000
    labels = np.array(["b", "\u00e9", "a c"])[np.arange(n) % 3]
    X = np.arange(1.0, n + 1).reshape(-1, 1)
    batches = [(X[:7], labels[:7]), (X[7:], labels[7:].astype(object))]
    text = "".join(f"w{k % 3}\t1:{k}\n" for k in range(1, n + 1))
    (tmp_path / "text").write_text(f"# 1 1:1\n{text}")
    np.savez(tmp_path / "X.npz", X=X, y=labels)
    for inputs in (batches, tmp_path / "X.npz", tmp_path / "text"):
        store = convert(inputs, tmp_path / "s", memory=MEMORY, overwrite=True)
        rows = store.matrix()
        order = (rows.toarray() if store.is_sparse else np.array(rows)).ravel()
        names = ["w1", "w2", "w0"] if store.is_sparse else ["b", "\u00e9", "a c"]
        assert store.classes == tuple(sorted(names))
        found = np.array(store.classes)[store.y]
        assert found.tolist() == [names[int(k - 1) % 3] for k in order]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_tables(tmp_path, kind):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y = example(n=1000, d=5)
    columns = {f"f{j}": X.toarray()[:, j] for j in range(5)}
    table = pyarrow.table({"target": y, **columns, "w": y + 3.0})
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        parquet.write_table(table, path, row_group_size=300)
    else:
        with pyarrow.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table, max_chunksize=300)
    store = convert(path, tmp_path / "s", label="target", weight="w", memory=MEMORY)
    assert store.shape == (1000, 5)
    assert same_rows(store, X, y, y + 3.0)
    # The column named target has the labels, and then the weights are a feature.
    assert convert(path, tmp_path / "t", memory=MEMORY).shape == (1000, 6)


def test_float32_rounds_and_labels_that_are_no_whole_numbers_stay(tmp_path):
    (tmp_path / "a").write_bytes(b"0.5 1:0.1\n1 2:0.2\n")
    store = convert(tmp_path / "a", tmp_path / "s", dtype="float32", shuffle=False)
    assert store.dtype == np.float32
    assert np.array_equal(store.matrix().data, np.array([0.1, 0.2], np.float32))
    assert store.y.tolist() == [0.5, 1.0]


def test_targets_that_exist_are_not_touched_unasked(tmp_path):
    X, y = example(n=50)
    (tmp_path / "full").mkdir()
    with pytest.raises(FileExistsError, match="is not a row store"):
        convert([(X, y)], tmp_path / "full", overwrite=True)
    with pytest.raises(FileNotFoundError, match="create it first"):
        convert([(X, y)], tmp_path / "none" / "s")
    convert([(X, y)], tmp_path / "s")
    with pytest.raises(FileExistsError, match="overwrite=True"):
        convert([(X, y)], tmp_path / "s")
    store = convert([(X[:20], y[:20])], tmp_path / "s", overwrite=True)
    assert len(store) == 20
    assert sorted(os.listdir(tmp_path)) == ["full", "s"]


def failing(batches, error):
    """Yield batches, then fail."""
    yield from batches
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError("disk"), MemoryError()])
def test_a_conversion_that_failed_leaves_nothing(tmp_path, error):
    X, y = example()
    batches = [(X[k : k + 300], y[k : k + 300]) for k in range(0, 3000, 300)]
    earlier = convert([(X[:20], y[:20])], tmp_path / "s", memory=MEMORY)
    for path in ("s", "t"):
        with pytest.raises(type(error)):
            convert(
                failing(batches, error), tmp_path / path, memory=MEMORY, overwrite=True
            )
    assert os.listdir(tmp_path) == ["s"]
    assert RowStore.open(tmp_path / "s").fingerprint == earlier.fingerprint


@pytest.mark.parametrize("memory", [2**20, 2**21, 2**30])
def test_the_bytes_depend_neither_on_memory_nor_on_threads(tmp_path, memory):
    X, y = example()
    one = convert([(X, y)], tmp_path / "one", memory=MEMORY, n_jobs=1)
    two = convert([(X, y)], tmp_path / "two", memory=memory, n_jobs=3)
    assert one.fingerprint == two.fingerprint
    for name in one.dtypes:
        whole = pathlib.Path(one.file(name)).read_bytes()
        assert whole == pathlib.Path(two.file(name)).read_bytes()


@pytest.mark.parametrize("form", ["csr", "dense"])
def test_a_store_of_fewer_rows_than_intervals(tmp_path, form):
    """Most intervals of keys are empty, the first among them."""
    X = np.random.default_rng(0).normal(size=(7, 30_000))
    y = np.arange(7) % 2
    store = convert([(X, y)], tmp_path / "s", memory=MEMORY, format=form, seed=3)
    store.verify()
    assert same_rows(store, X, y)


def test_an_earlier_store_comes_back_if_the_new_one_gets_no_name(tmp_path, monkeypatch):
    X, y = example()
    earlier = convert([(X[:20], y[:20])], tmp_path / "s", memory=MEMORY)
    rename = os.rename

    def refuse(old, new):
        if os.path.basename(old) == "store":
            raise OSError("no name")
        rename(old, new)

    monkeypatch.setattr(os, "rename", refuse)
    with pytest.raises(OSError, match="no name"):
        convert([(X, y)], tmp_path / "s", memory=MEMORY, overwrite=True)
    assert os.listdir(tmp_path) == ["s"]
    assert RowStore.open(tmp_path / "s").fingerprint == earlier.fingerprint


@pytest.mark.parametrize("options", [{}, {"overwrite": True}])
def test_two_conversions_to_one_path_do_not_meet(tmp_path, options):
    X, y = example(n=100)
    entered, leave = threading.Event(), threading.Event()

    def slow():
        yield X, y
        entered.set()
        leave.wait(300.0)

    first = threading.Thread(target=convert, args=(slow(), tmp_path / "s"))
    first.start()
    try:
        assert entered.wait(300.0)
        with pytest.raises(ValueError, match=r"s is being written by .*; wait until"):
            convert([(X, y)], tmp_path / "s", **options)
    finally:
        leave.set()
        first.join()
    assert same_rows(RowStore.open(tmp_path / "s"), X, y)
    assert os.listdir(tmp_path) == ["s"]


KILLED = """
import sys
from dualgap.data import convert
convert(sys.argv[1], sys.argv[2], memory=2**20, n_jobs=2)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_at_any_moment_it_leaves_no_half_a_store(tmp_path):
    X, y = example(n=60_000, d=60)
    path = tmp_path / "data"
    path.write_bytes(text_of(X, y))
    whole = convert(path, tmp_path / "whole", memory=MEMORY, n_jobs=2)
    moments, longest = random.Random(0), 0.05
    target, work, kills, begun = tmp_path / "s", tmp_path / ".s.converting", 0, 0
    while not begun or not target.exists():
        if target.exists():  # ended before it was killed: once more
            shutil.rmtree(target)
        shutil.rmtree(work, ignore_errors=True)
        process = subprocess.Popen([sys.executable, "-c", KILLED, path, target])
        while process.poll() is None and not work.exists():
            time.sleep(0.001)
        # Longer each time, so that it ends on any machine.
        try:
            process.wait(longest * moments.random())
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
            begun += work.exists()
        if target.exists():  # whole, even if it was killed after the renaming
            store = RowStore.open(target)
            store.verify()
            assert store.fingerprint == whole.fingerprint
        longest *= 1.5
    assert kills


@pytest.mark.parametrize("published", [False, True])
def test_what_a_killed_conversion_has_left_is_removed(tmp_path, published):
    X, y = example(n=100)
    left = tmp_path / ".s.converting"
    (left / "store").mkdir(parents=True)
    (left / "run-000000").write_bytes(b"rows")
    if published:
        convert([(X[:20], y[:20])], tmp_path / "s", memory=MEMORY)
        with pytest.raises(FileExistsError):
            convert([(X, y)], tmp_path / "s", memory=MEMORY)
    store = convert([(X, y)], tmp_path / "s", memory=MEMORY, overwrite=published)
    assert same_rows(store, X, y)
    assert os.listdir(tmp_path) == ["s"]


@pytest.mark.long
@unsanitized("it keeps freed memory")
@memory.reads_peak
def test_memory_stays_bounded(tmp_path):
    X, y = example(n=20_000, d=200)
    path = pathlib.Path(tmp_path / "data")
    path.write_bytes(text_of(X, y) * 4)
    script = (
        "import sys\n"
        "from dualgap.data import convert\n"
        "convert(sys.argv[2], sys.argv[3], memory=2**20, n_jobs=1)\n"
        "before = peak()\n"
        "store = convert(sys.argv[1], sys.argv[4], memory=2**24, n_jobs=2)\n"
        "print(store.nnz * store.entry_bytes, peak() - before)\n"
    )
    (tmp_path / "small").write_bytes(b"1 1:1\n")
    told = memory.run(script, path, *(tmp_path / name for name in ("small", "a", "b")))
    size, grown = map(int, told.split())
    assert size > 30e6
    assert grown < 1.25 * 2**24


def test_columns_beyond_those_of_dense_rows_are_zero(tmp_path):
    X, y = np.arange(1.0, 13.0).reshape(4, 3), np.array([0, 1, 0, 1])
    for k, columns in enumerate((3, 5)):
        store = convert([(X, y)], tmp_path / f"{k}", shuffle=False, n_features=columns)
        store.verify()
        expected = np.pad(X, ((0, 0), (0, columns - 3)))
        np.testing.assert_array_equal(store.rows(0, 4).X, expected)
    store = convert([(X[:, :0], y)], tmp_path / "none", shuffle=False)
    store.verify()
    np.testing.assert_array_equal(store.rows(0, 4).X, np.zeros((4, 1)))

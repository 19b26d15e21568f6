"""Row stores and locks: what is read is what was written, nothing damaged passes."""

import errno
import json
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.data import RowStore, convert, lock
from dualgap.data.description import (
    DESCRIPTION,
    FORMAT,
    HEADER,
    PIECE,
    digest,
    header,
    shape_of,
)
from dualgap.data.files import StoredArray, StoreReadingSettings
from dualgap.data.lock import locked

from ..sealing import seal

#: Arrays of a sparse store.
ARRAYS = {
    "values": "<f8", "indices": "<i4", "indptr": "<i8", "y": "|i1", "weight": "<f8"
}  # fmt: skip


def data(n=1500, d=40, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=0.2, format="csr", dtype=dtype, random_state=rng)
    return X, np.where(rng.random(n) < 0.5, -1, 1), rng.random(n)


@pytest.fixture
def store(tmp_path):
    X, y, weight = data()
    convert([(X, y, weight)], tmp_path / "s", shuffle=False)
    return RowStore.open(tmp_path / "s", buffer=60_000)


def test_the_reader_thread_may_close_the_blocks(store, monkeypatch):
    suspended, closed = threading.Event(), threading.Event()
    load, calls, errors = RowStore._load, [], []

    def load_and_close(store, spans, slot=None, pool=None):
        calls.append(spans)
        if len(calls) == 2:  # as the garbage collector may do in this thread
            assert suspended.wait(300.0)
            try:
                blocks.close()
            except RuntimeError as error:
                errors.append(error)
            closed.set()
        return load(store, spans, slot, pool)

    monkeypatch.setattr(RowStore, "_load", load_and_close)
    blocks = store.blocks()
    next(blocks)
    suspended.set()
    assert closed.wait(300.0)
    assert not errors
    assert list(blocks) == []


@pytest.fixture
def past_the_cache(monkeypatch):
    """Read all stores past the file cache, in several short reads."""
    short = StoreReadingSettings(pieces=1, cached=0.0)
    monkeypatch.setattr(StoredArray, "settings", short)


@pytest.mark.parametrize("cache", ["through", "past"])
@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_and_ranges_are_the_rows_written(tmp_path, request, kind, dtype, cache):
    X, y, weight = data(n=6000, dtype=dtype)
    X, whole = (X, X.toarray()) if kind == "csr" else (X.toarray(), X.toarray())
    path = convert([(X, y, weight)], tmp_path / "s", dtype=dtype, shuffle=False).path
    if cache == "past":
        request.getfixturevalue("past_the_cache")
    store = RowStore.open(path, buffer=200_000)
    assert cache == "past" or not any(array.direct for array in store._arrays.values())
    as_array = (lambda A: A.toarray()) if kind == "csr" else np.asarray
    blocks, last = list(store), len(store.pages) - 1
    assert last >= len(blocks) > 2
    assert np.array_equal(np.vstack([as_array(b.X) for b in blocks]), whole)
    assert np.array_equal(np.concatenate([b.y for b in blocks]), y)
    assert np.array_equal(np.concatenate([b.sample_weight for b in blocks]), weight)
    # Blocks of the pages that are named, in any order, know their places.
    norms, q = (whole.astype(float) ** 2).sum(axis=1), np.empty(len(store))
    for _ in range(2):  # the pieces are compared, then they are not
        seen = []
        for block in store.read(2.0, [[2, 0], [last, 1], [*range(3, last)]]):
            part = np.empty(block.size)
            assert block.rows.inspect(part)[0] is None
            block.put(q, part)
            assert np.array_equal(block.take(q), part)
            if len(block.spans) == 1:
                q[block.span] = part
            seen.append(block.spans)
        assert seen[0] == (store.pages[2], store.pages[0])
        assert np.allclose(q, norms + 4.0, rtol=1e-14)
    part = store.rows(17, 230)
    assert np.array_equal(as_array(part.X), whole[17:230])
    assert (part.start, part.stop) == (17, 230)
    assert np.array_equal(as_array(store.matrix()), whole)
    assert store.matrix().dtype == dtype
    assert (len(store), store.shape) == (6000, (6000, 40))
    assert store.is_sparse == (kind == "csr")
    store.verify()


def test_pages_begin_at_multiples_of_64_and_blocks_fit_in_half_the_buffer(store):
    pages = store.pages
    assert len(pages) > 3
    assert [p.start for p in pages] == [0, *(p.stop for p in pages[:-1])]
    assert pages[-1].stop == len(store)
    assert all(page.start % 64 == 0 for page in pages)
    sizes = store.matrix().indptr[[p.stop for p in pages]]
    largest = np.sort(np.diff(sizes, prepend=0))[-store.block_pages :].sum()
    rows = store.block_pages * max(p.stop - p.start for p in pages)
    assert largest * store.entry_bytes + 8 * rows <= store.buffer // 2
    for block in store:
        held = block.X.data.nbytes + block.X.indices.nbytes + 8 * block.X.shape[0]
        assert held <= store.buffer // 2


def test_what_cannot_be_read_past_the_cache_is_read_through_it(
    store, past_the_cache, monkeypatch
):
    expected = store.matrix().toarray()
    monkeypatch.delattr(os, "O_DIRECT", raising=False)
    other = RowStore.open(store.path, buffer=60_000)
    assert not any(array.direct for array in other._arrays.values())
    assert np.array_equal(np.vstack([b.X.toarray() for b in other]), expected)


@pytest.mark.parametrize("cache", ["through", "past"])
def test_a_file_that_is_cut_short_while_it_is_open(store, cache, request):
    if cache == "past":
        request.getfixturevalue("past_the_cache")
    store = RowStore.open(store.path, buffer=60_000)
    for place, name in ((100, "indices"), (HEADER + 5000, "values")):
        with open(store.file(name), "rb+") as handle:
            whole = handle.read()
            handle.truncate(place)
        told = "has changed since the store was opened"
        with pytest.raises(ValueError, match=told):
            list(store)
        kept, stamp = store._arrays[name]._stamp, os.stat(store.file(name))
        store._arrays[name]._stamp = stamp.st_size, stamp.st_mtime_ns
        told = f"{name}.npy is truncated at byte {max(place, HEADER)}"
        with pytest.raises(ValueError, match=told):
            list(store)
        with open(store.file(name), "wb") as handle:
            handle.write(whole)
        os.utime(store.file(name), ns=(kept[1], kept[1]))
        store._arrays[name]._stamp = kept
    assert sum(len(block.y) for block in store) == len(store)


def test_a_store_survives_pickling_by_its_path(store):
    other = pickle.loads(pickle.dumps(store))
    assert (other.path, other.buffer) == (store.path, store.buffer)
    assert other.fingerprint == store.fingerprint
    assert "1500 rows" in repr(other)


def overwrite(store, name, place, value):
    with open(store.file(name), "rb+") as file:
        file.seek(HEADER + place * store.dtypes[name].itemsize)
        file.write(np.array(value, store.dtypes[name]).tobytes())


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("indices", 1000, 40, "column index out of range"),
        ("indices", 1000, -1, "column index out of range"),
        ("values", 1000, np.nan, "value is NaN or infinite"),
        ("indptr", 30, 10**9, "a pointer decreases or leaves"),
        ("indptr", 30, -5, "a pointer decreases or leaves"),
    ],
)
def test_damage_is_found_before_it_is_used(store, name, place, value, message):
    """Even where every checksum was made right again."""
    overwrite(store, name, place, value)
    seal(store.path)
    with pytest.raises(ValueError, match=message) as error:
        list(RowStore.open(store.path, buffer=60_000))
    assert "dualgap convert" in str(error.value)


def test_a_store_that_changes_while_it_is_open_is_refused(store):
    overwrite(store, "values", 0, 1.0)
    os.utime(store.file("values"), ns=(1, 1))
    with pytest.raises(ValueError, match="has changed since the store was opened"):
        list(store)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "does not have the format"),
        ({"format_version": 6}, "version 6, but this version of dualgap reads only 5"),
        ({"format_version": True}, "format version True"),
        ({"checksums": {}}, r"it has checksums of \[\]"),
        ({"checksums": dict.fromkeys(ARRAYS, 7)}, "it does not have . checksums of"),
        ({"checksums": dict.fromkeys(ARRAYS, "00")}, "it does not have . checksums of"),
        (
            {"checksums": dict.fromkeys(ARRAYS, "x" * 16)},
            "it does not have . checksums of",
        ),
        ({"n_samples": "7"}, "wrong type"),
        ({"n_samples": True}, "wrong type"),
        ({"entries": -1}, "is negative"),
        ({"largest_row": 2**40}, "a longest row of 1099511627776"),
        ({"n_samples": 1499}, r"\.npy has \d+ bytes, expected"),
        (
            {"arrays": ARRAYS | {"values": "<f4"}},
            "it does not have 1 checksums of values",
        ),
        ({"arrays": {"values": "<f8", "y": "|O"}}, "it has unexpected arrays"),
        ({"extra": 1}, "it has unexpected fields"),
        ({"n_samples": 0}, "it describes 0 rows with"),
        (
            {"arrays": dict.fromkeys(("values", "indices", "indptr", "y"), "|O")},
            r"has the invalid dtype '\|O'",
        ),
    ],
)
def test_a_description_is_checked_field_by_field(store, change, message):
    seal(store.path, **change)
    with pytest.raises(ValueError, match=message):
        RowStore.open(store.path)


def test_the_longest_of_dense_rows_is_their_length(tmp_path):
    path = convert([(np.ones((4, 3)), np.arange(4) % 2)], tmp_path / "rows").path
    seal(path, largest_row=0)
    with pytest.raises(ValueError, match="a longest row of 0 entries with 3 features"):
        RowStore.open(path, buffer=60)


def test_an_edited_description_is_refused(store):
    where = pathlib.Path(store.path, DESCRIPTION)
    where.write_text(where.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(ValueError, match="its checksum is wrong"):
        RowStore.open(store.path)


def test_what_is_no_store_and_too_small_a_buffer_are_refused(store, tmp_path):
    with pytest.raises(FileNotFoundError):
        RowStore.open(tmp_path / "none")
    with pytest.raises(ValueError, match=r"is not a row store.*dualgap convert"):
        RowStore.open(tmp_path)
    with pytest.raises(ValueError, match=r"buffer=1000 is too small.*give \d+"):
        RowStore.open(store.path, buffer=1000)
    with pytest.raises(ValueError, match="buffer=True"):
        RowStore.open(store.path, buffer=True)
    with pytest.raises(ValueError, match="the store has 1500 rows"):
        store.rows(10, 1501)


# ------------------------------------------------------------ more than 2^31 entries


def holey_store(folder, n, arrays, entries, d):
    """A store whose arrays are holes but for some entries: (place, values) each."""
    os.mkdir(folder)
    dtypes = {"values": "<f4", "indices": "<i4", "indptr": "<i8", "y": "|i1"}
    description = {
        "format": FORMAT, "format_version": 5, "dualgap_version": "test",
        "n_samples": n, "n_features": d, "entries": entries, "largest_row": d,
        "dense": False, "shuffled": True, "seed": 0, "zero_based": True, "columns": "",
        "classes": [], "arrays": dtypes, "checksums": {},
    }  # fmt: skip
    hole = core.crc32c(np.zeros(PIECE, np.uint8))
    for name, kind in dtypes.items():
        shape, item = shape_of(description, name), np.dtype(kind).itemsize
        total = shape[0] * item
        found = np.full(-(-total // PIECE), hole, np.uint32)
        with open(folder / f"{name}.npy", "wb+") as file:
            file.write(header(kind, shape))
            file.truncate(HEADER + total)
            for place, values in arrays[name]:
                file.seek(HEADER + place * item)
                file.write(np.asarray(values, kind).tobytes())
                for k in {(file.tell() - HEADER) // PIECE, len(found) - 1}:
                    file.seek(HEADER + k * PIECE)
                    content = np.frombuffer(file.read(PIECE), np.uint8)
                    found[k] = core.crc32c(content)
        description["checksums"][name] = found.tobytes().hex()
    description["sha256"] = digest(description)
    (folder / DESCRIPTION).write_text(json.dumps(description))


def test_entries_beyond_two_to_the_31_are_read_and_trained_on(tmp_path):
    # Row 0 is a hole of 2^31 + 5 entries, which nobody reads; rows 1 to 3 follow it.
    hole = 2**31 + 5
    indptr = [0, hole, hole + 2, hole + 3, hole + 5]
    arrays = {
        "values": [(hole, [1.0, 2.0, -3.0, 4.0, 5.0])],
        "indices": [(hole, [0, 6, 3, 1, 2])],
        "indptr": [(0, indptr)],
        "y": [(0, [1, 1, -1, 1])],
    }
    try:
        holey_store(tmp_path / "s", 4, arrays, hole + 5, 7)
    except OSError as error:  # no sparse files here
        pytest.skip(str(error))
    store = RowStore.open(tmp_path / "s")
    assert store.nnz == hole + 5
    part = store.rows(1, 4)
    expected = np.array(
        [[1, 0, 0, 0, 0, 0, 2], [0, 0, 0, -3, 0, 0, 0], [0, 4, 5, 0, 0, 0, 0]], float
    )
    assert np.array_equal(part.X.toarray(), expected)
    # The kernels follow 64-bit pointers over the whole map. (matrix() would read all of
    # the hole for its checksums.)
    maps = [
        np.load(store.file(name), mmap_mode="r")
        for name in ("values", "indices", "indptr")
    ]
    rows = core.csr_rows(*maps, 7, 0.0)
    order = np.array([3, 1, 2], np.uint32)
    alpha, w = np.zeros(4), np.zeros(7)
    q = np.array([0.0, 5.0, 9.0, 41.0])
    y = store.y
    examples = core.Examples(rows, y, np.ones(4), q, core.Loss(1.0, 0.0))
    state = core.DualState(alpha, w)
    found = core.sdca_epoch(examples, order, state, None, core.Stop())
    assert (found.visited, found.updates) == (3, 3)
    # The rows have no feature in common: each step is exact, a_i = min(1/q_i, 1).
    assert np.allclose(alpha, [0.0, 1 / 5, 1 / 9, 1 / 41], rtol=1e-15)
    assert np.allclose(w, (alpha[1:] * y[1:]) @ expected, rtol=1e-15)


HOLD = """
import sys
from dualgap.data.lock import locked
with locked(sys.argv[1], "path"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def other(tmp_path):
    """A process that holds the lock of ``tmp_path/x``."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "x")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout.readline() == "held\n"
    with process:
        yield process
        process.kill()


def test_another_process_is_named_and_its_death_is_enough(tmp_path, other):
    path = str(tmp_path / "x")
    told = f"x is being written by process {other.pid};"
    with pytest.raises(ValueError, match=told), locked(path, "x"):
        pass
    with locked(str(tmp_path / "y"), "y") as alone:  # another path
        assert alone
    if hasattr(signal, "SIGKILL"):
        other.send_signal(signal.SIGKILL)
    else:
        other.kill()
    other.wait()
    with locked(path, "x") as alone:
        assert alone
    assert os.listdir(tmp_path) == []


def test_another_thread_is_refused_too(tmp_path):
    path, found = str(tmp_path / "x"), []

    def second():
        try:
            with locked(path, "x"):
                found.append("locked")
        except ValueError as error:
            found.append(str(error))

    with locked(path, "x"):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join()
    assert "another thread of this process" in found[0]
    assert str(os.getpid()) in found[0]
    second()
    assert found[1] == "locked"
    assert os.listdir(tmp_path) == []


def test_of_many_threads_one_at_a_time_is_inside(tmp_path):
    """The file comes and goes all the time: none locks one that is gone already."""
    path, inside, most = str(tmp_path / "x"), [], []

    def work():
        for _ in range(40):
            done = False
            while not done:
                try:
                    with locked(path, "x"):
                        inside.append(1)
                        most.append(len(inside))
                        inside.pop()
                        done = True
                except ValueError:
                    pass

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert len(most) == 6 * 40
    assert os.listdir(tmp_path) == []


def test_long_names_have_locks_of_their_own(tmp_path):
    one, two = (str(tmp_path / ("n" * 250 + end)) for end in "ab")
    with locked(one, "one"):
        with locked(two, "two"):
            pass
        told = "one is being written"
        with pytest.raises(ValueError, match=told), locked(one, "one"):
            pass
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(
    not hasattr(os, "O_NOFOLLOW"), reason="without O_NOFOLLOW links are followed"
)
def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / ".x.lock").symlink_to(tmp_path / "victim")
    path = str(tmp_path / "x")
    with pytest.raises(OSError, match=r"\.x\.lock"), locked(path, "x"):
        pass
    assert (tmp_path / "victim").read_text() == "precious"


def test_file_systems_without_locks(tmp_path, monkeypatch, caplog):
    def refuse(handle):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "_lock", refuse)
    with locked(str(tmp_path / "x"), "x") as alone:
        assert not alone
    assert "x: this file system has no locks (No locks available)" in caplog.text

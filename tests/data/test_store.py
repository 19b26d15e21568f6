"""Row stores: what is read is what was written, and nothing damaged is trusted."""

import hashlib
import json
import os
import pickle
import threading

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.data import RowStore, convert
from dualgap.data import files as files_module
from dualgap.data import store as store_module
from dualgap.data.description import CHECKSUMS, DESCRIPTION, FORMAT, digest
from dualgap.data.gather import Gather, StoreWritingSettings

from ..sealing import seal

SEGMENT = Gather.settings.segment_bytes


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
    load, calls, errors = files_module.OpenFiles.load, [], []

    def load_and_close(files, spans, slot=None):
        calls.append(spans)
        if len(calls) == 2:  # as the garbage collector may do in this thread
            assert suspended.wait(300.0)
            try:
                blocks.close()
            except RuntimeError as error:
                errors.append(error)
            closed.set()
        return load(files, spans, slot)

    monkeypatch.setattr(files_module.OpenFiles, "load", load_and_close)
    with store._open() as files:
        blocks = files.ahead(store._consecutive(), reuse=False)
        next(blocks)
        suspended.set()
        assert closed.wait(300.0)
    assert not errors
    assert list(blocks) == []


def straight(path, buffer=60_000):
    """The store, its blocks read past the file cache."""
    store = RowStore.open(path, buffer=buffer, direct=True)
    if not store.direct:
        pytest.skip("this file system reads through its cache alone")
    return store


@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_and_ranges_of_rows_are_the_rows_written(tmp_path, kind, dtype):
    X, y, weight = data(dtype=dtype)
    if kind == "dense":
        X = X.toarray()
    convert([(X, y, weight)], tmp_path / "s", dtype=dtype, shuffle=False)
    store = RowStore.open(tmp_path / "s", buffer=60_000 if kind == "csr" else 100_000)
    full = X.toarray() if kind == "csr" else X
    as_array = (lambda A: A.toarray()) if kind == "csr" else np.asarray
    blocks = list(store)
    assert len(store.pages) >= len(blocks) > 2
    assert np.array_equal(np.vstack([as_array(b.X) for b in blocks]), full)
    assert np.array_equal(np.concatenate([b.y for b in blocks]), y)
    assert np.array_equal(np.concatenate([b.sample_weight for b in blocks]), weight)
    part = store.rows(17, 230)
    assert np.array_equal(as_array(part.X), full[17:230])
    assert (part.start, part.stop) == (17, 230)
    assert np.array_equal(as_array(store.matrix()), full)
    assert store.matrix().dtype == dtype
    assert (len(store), store.shape, store.is_sparse) == (
        1500,
        (1500, 40),
        kind == "csr",
    )


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


def test_blocks_are_of_the_pages_named_and_give_their_places(store):
    q, seen = np.empty(len(store)), []
    last = len(store.pages) - 1
    for block in store.read(2.0, [[2, 0], [last], [*range(3, last), 1]]):
        part = np.empty(block.size)
        block.rows.inspect(part)
        if len(block.spans) == 1:
            q[block.span] = part
        block.put(q, part)
        assert np.array_equal(block.take(q), part)
        seen.append(block.spans)
    assert seen[0] == (store.pages[2], store.pages[0])
    X = store.matrix()
    assert np.allclose(q, X.multiply(X).sum(axis=1).A1 + 4.0, rtol=1e-14)


@pytest.mark.parametrize("kind", ["csr", "dense"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_read_past_the_cache_are_the_same(tmp_path, monkeypatch, kind, dtype):
    several = files_module.StoreReadingSettings(
        straight=8192
    )  # several pieces to a part
    monkeypatch.setattr(files_module.OpenFiles, "settings", several)
    short = StoreWritingSettings(segment_bytes=4096)
    monkeypatch.setattr(Gather, "settings", short)
    X, y, weight = data(dtype=dtype)
    X = X if kind == "csr" else X.toarray()
    plain = convert([(X, y, weight)], tmp_path / "s", dtype=dtype)
    buffer = 60_000 if kind == "csr" else 100_000
    store = straight(plain.path, buffer)
    assert not RowStore.open(plain.path).direct  # it is small
    last = len(store.pages) - 1
    pages = [[2, 0], [last, 1], [*range(3, last)]]
    ours, theirs = store.read(2.0, pages), plain.read(2.0)
    q, expected = np.full(len(store), np.nan), np.empty(len(store))
    for block in ours:
        part = np.empty(block.size)
        assert block.rows.inspect(part)[0] is None
        block.put(q, part)
        if len(block.spans) == 1:
            q[block.span] = part
    for block in theirs:
        block.rows.inspect(expected[block.span])
    assert np.array_equal(q, expected)
    for ours, theirs in zip(
        store, RowStore.open(plain.path, buffer=buffer), strict=True
    ):
        same = ours.X == theirs.X if kind == "dense" else (ours.X != theirs.X).nnz == 0
        assert np.all(same)
    other = pickle.loads(pickle.dumps(store))
    assert (other.direct, other.buffer) == (True, buffer)
    store.verify()


def test_what_goes_wrong_past_the_cache(store, monkeypatch):
    direct = straight(store.path)
    for place, file in ((100, "indices"), (5000, "values")):  # while it is open
        with open(store.file(file), "rb+") as handle:
            whole = handle.read()
            handle.truncate(place)
        stamp = os.stat(store.file(file))
        direct._stamps[file] = (stamp.st_size, stamp.st_mtime_ns)
        with pytest.raises(ValueError, match=f"is truncated at byte {place}"):
            list(direct)
        with open(store.file(file), "wb") as handle:
            handle.write(whole)
    with pytest.raises(ValueError, match="has changed since the store was opened"):
        list(direct)
    with pytest.raises(
        ValueError, match="direct='always' is unknown; use True, False or 'auto'"
    ):
        RowStore.open(store.path, direct="always")
    monkeypatch.setattr(store_module, "machine_memory", lambda: 1000)
    assert RowStore.open(store.path, buffer=60_000).direct
    monkeypatch.delattr(os, "O_DIRECT")
    assert not RowStore.open(store.path, buffer=60_000, direct=True).direct


def test_a_store_survives_pickling_by_its_path(store):
    other = pickle.loads(pickle.dumps(store))
    assert (other.path, other.buffer) == (store.path, store.buffer)
    assert other.fingerprint == store.fingerprint
    assert "1500 rows" in repr(other)


def test_verify_finds_one_changed_byte_in_any_array(store):
    store.verify(n_jobs=2)
    for name in store.dtypes:
        path = store.file(name)
        middle = os.path.getsize(path) // 2
        with open(path, "rb+") as file:
            file.seek(middle)
            byte = file.read(1)
            file.seek(middle)
            file.write(bytes([byte[0] ^ 1]))
        with pytest.raises(ValueError, match="do not match their checksum"):
            RowStore.open(store.path).verify()
        with open(path, "rb+") as file:
            file.seek(middle)
            file.write(byte)
    RowStore.open(store.path).verify()


def overwrite(store, name, place, value):
    with open(store.file(name), "rb+") as file:
        file.seek(place * store.dtypes[name].itemsize)
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


def test_a_file_that_is_cut_short_is_refused(store):
    with open(store.file("indices"), "rb+") as file:
        file.truncate(100)
    with pytest.raises(ValueError, match="has 100 bytes, expected"):
        RowStore.open(store.path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "does not have the format"),
        (
            {"format_version": 3},
            "format version 3, but this version of dualgap reads 1 to 2",
        ),
        ({"format_version": True}, "format version True"),
        ({"format_version": 1}, "it has unexpected fields"),
        ({"segment_bytes": 0}, "segment_bytes=0 is not a power of two"),
        ({"segment_bytes": 65537}, "segment_bytes=65537 is not a power of two"),
        ({"segment_bytes": 2**40}, "segment_bytes=1099511627776"),
        ({"segment_bytes": 4096}, r"checksums\.bin has \d+ bytes, expected"),
        ({"checksums_sha256": "0" * 64}, r"checksums\.bin is damaged"),
        ({"n_samples": "7"}, "wrong type"),
        ({"n_samples": True}, "wrong type"),
        ({"entries": -1}, "is negative"),
        ({"largest_row": 2**40}, "a longest row of 1099511627776"),
        ({"n_samples": 1499}, "its shards have 1500 rows"),
        ({"arrays": {"values": "<f8", "y": "|O"}}, "it has unexpected arrays"),
        ({"extra": 1}, "it has unexpected fields"),
        ({"shards": [{"rows": 1500}]}, "the shard .* is invalid"),
        ({"shards": [{"rows": 1500, "entries": -1}]}, "the shard .* is invalid"),
        ({"n_samples": 0}, "it describes 0 rows of"),
        (
            {"arrays": dict.fromkeys(("values", "indices", "indptr", "y"), "|O")},
            r"has the invalid dtype '\|O'",
        ),
    ],
)
def test_a_description_is_checked_field_by_field(store, change, message):
    where = os.path.join(store.path, DESCRIPTION)
    with open(where) as file:
        description = json.load(file)
    description |= change
    description["sha256"] = digest(description)
    with open(where, "w") as file:
        json.dump(description, file)
    with pytest.raises(ValueError, match=message):
        RowStore.open(store.path)


def test_the_longest_of_dense_rows_is_their_length(tmp_path):
    path = convert([(np.ones((4, 3)), np.arange(4) % 2)], tmp_path / "rows").path
    where = os.path.join(path, "store.json")
    with open(where) as file:
        description = json.load(file)
    description |= {"largest_row": 0}
    description["sha256"] = digest(description)
    with open(where, "w") as file:
        json.dump(description, file)
    with pytest.raises(ValueError, match="a longest row of 0 entries with 3 features"):
        RowStore.open(path, buffer=60)


def test_an_edited_description_is_refused(store):
    where = os.path.join(store.path, DESCRIPTION)
    with open(where) as file:
        text = file.read()
    with open(where, "w") as file:
        file.write(text.replace('"seed": 0', '"seed": 1'))
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
    sizes = {"values": entries, "indices": entries, "indptr": n + 1, "y": n}
    hole, sums = core.crc32c(np.zeros(SEGMENT, np.uint8)), []
    for name, kind in dtypes.items():
        total = sizes[name] * np.dtype(kind).itemsize
        found = np.full(-(-total // SEGMENT), hole, np.uint32)
        with open(folder / f"{name}.bin", "wb+") as file:
            file.truncate(total)
            for place, values in arrays[name]:
                file.seek(place * np.dtype(kind).itemsize)
                file.write(np.asarray(values, kind).tobytes())
                for k in {file.tell() // SEGMENT, len(found) - 1}:
                    file.seek(k * SEGMENT)
                    content = np.frombuffer(file.read(SEGMENT), np.uint8)
                    found[k] = core.crc32c(content)
        sums.append(found.tobytes())
    (folder / CHECKSUMS).write_bytes(b"".join(sums))
    description = {
        "format": FORMAT, "format_version": 2, "dualgap_version": "test",
        "n_samples": n, "n_features": d, "entries": entries, "largest_row": d,
        "dense": False, "shuffled": True, "seed": 0, "zero_based": True,
        "arrays": dtypes, "segment_bytes": SEGMENT,
        "checksums_sha256": hashlib.sha256(b"".join(sums)).hexdigest(),
        "shards": [{"rows": n, "entries": entries, "sha256": "0" * 64}],
    }  # fmt: skip
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
        np.memmap(store.file(name), store.dtypes[name], "r")
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


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="a call of POSIX")
def test_pages_from_all_over_are_announced_before_they_are_read(store, monkeypatch):
    X, _, _ = data()
    told = []
    monkeypatch.setattr(os, "posix_fadvise", lambda *part: told.append(part[1:3]))
    pages = [[5, 0], [3, 1], [4]]
    for block, places in zip(store.read(0.0, pages), pages, strict=True):
        assert list(block.spans) == [store.pages[k] for k in places]
        for span in block.spans:
            first, last = X.indptr[span.start], X.indptr[span.stop]
            for size in (8, 4):  # values, indices
                assert (first * size, (last - first) * size) in told
        rows = np.concatenate([np.r_[span] for span in block.spans])
        total = np.empty(X.shape[1])
        ones = np.ones(len(rows))
        core.combine(block.rows, ones.astype(np.int8), ones, total, core.Team(1))
        np.testing.assert_allclose(total, X[rows].sum(axis=0).A1, rtol=1e-12)
    told.clear()
    for _ in store.read(0.0):  # one after the other, the system foresees them
        pass
    assert told == []

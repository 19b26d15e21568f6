"""Checksums of segments: right by their definition, and none is passed over."""

import itertools
import json
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from dualgap import LinearSVC, core
from dualgap.data import RowStore, convert
from dualgap.data.description import CHECKSUMS, DESCRIPTION, digest
from dualgap.data.gather import Gather, StoreWritingSettings
from dualgap.data.segments import Segments, joined, partial_sums
from dualgap.distributed.stores import parts_of
from dualgap.problems import BinaryProblem as Problem

_SEGMENT = 4096


def crc32c(data, before=0):
    """CRC-32C bit by bit: a remainder of polynomials over GF(2)."""
    remainder = before ^ 0xFFFFFFFF
    for byte in bytes(data):
        remainder ^= byte
        for _ in range(8):
            remainder = remainder >> 1 ^ (0x82F63B78 if remainder & 1 else 0)
    return remainder ^ 0xFFFFFFFF


def noise(n, seed=0):
    return np.random.default_rng(seed).integers(0, 256, n, dtype=np.uint8)


def test_the_values_of_the_standard():
    """RFC 3720, appendix B.4, and the usual check value."""
    for content, expected in (
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(reversed(range(32))), 0x113FDB5C),
        (b"", 0),
    ):
        assert crc32c(content) == expected
        assert core.crc32c(np.frombuffer(content, np.uint8)) == expected


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9, 63, 200, 1500])
def test_a_checksum_goes_on_where_another_ended(n):
    data = noise(n)
    for cut in {0, n // 5, n // 3, n}:
        first = core.crc32c(data[:cut])
        assert core.crc32c(data[cut:], first) == crc32c(data)


@pytest.mark.parametrize("size", [1, 5, 8, 17, 64, 256, 519, 1024])
@pytest.mark.parametrize("segments", [0, 1, 3, 4, 5, 9.5])
def test_segments_have_the_checksums_of_their_bytes(size, segments):
    data = noise(int(segments * size))
    found = core.crc32c_segments(data, size)
    expected = [crc32c(data[k : k + size]) for k in range(0, len(data), size)]
    assert found.dtype == np.uint32
    assert found.tolist() == expected
    with pytest.raises(ValueError, match="at least 1"):
        core.crc32c_segments(data, 0)


@pytest.mark.parametrize("seed", range(20))
def test_checksums_of_parts_are_joined(seed):
    """Wherever the parts of a file are cut, empty ones among them."""
    rng = np.random.default_rng(seed)
    total, size = int(rng.integers(1, 400)), int(rng.integers(1, 100))
    data = noise(total, seed)
    cuts = np.sort(rng.integers(0, total + 1, 6))
    cuts = [0, *cuts.tolist(), total]
    parts = [
        (begin, end - begin, partial_sums(begin, data[begin:end], size))
        for begin, end in itertools.pairwise(cuts)
    ]
    expected = core.crc32c_segments(data, size)
    assert np.array_equal(joined(parts, total, size), expected)


@pytest.mark.parametrize("total", [64, 100])
def test_any_range_is_compared_and_each_segment_once(total):
    size, data = 16, noise(total)
    sums = core.crc32c_segments(data, size)
    for begin in range(0, total, 3):
        for end in range(begin, total + 1, 5):
            segments, reads = Segments("file", total, size, sums), []

            def read(first, last, reads=reads):
                reads.append(last - first)
                return data[first:last]

            segments.check(begin, data[begin:end], read)
            touched = slice(begin // size, -(-end // size))
            assert segments.seen[touched].all()
            assert segments.seen.sum() == touched.stop - touched.start or begin == end
            assert sum(reads) < 2 * size
            reads.clear()
            segments.check(begin, data[begin:end], read)
            assert not reads
            wrong = data[begin:end].copy()
            for at in range(len(wrong)):
                wrong[at] ^= 1 << at % 8
                with pytest.raises(ValueError, match="file is damaged: bytes") as error:
                    Segments("file", total, size, sums).check(begin, wrong, read)
                wrong[at] ^= 1 << at % 8
                first = (begin + at) // size * size
                last = min(first + size, total)
                assert f"bytes {first} to {last} do not match their checksum" in str(
                    error.value
                )


# -------------------------------------------------------------------- stores


def example(dense, n=1500):
    rng = np.random.default_rng(0)
    X = sparse.random(n, 20, density=0.4, format="csr", random_state=rng)
    y = np.where(X @ rng.standard_normal(20) > 0, 1, -1)
    return (X.toarray() if dense else X), y, 0.5 + rng.random(n)


@pytest.fixture(params=["csr", "dense"])
def store(tmp_path, monkeypatch, request):
    """Rows in several shards, their arrays of several segments."""
    monkeypatch.setattr(
        Gather, "settings", StoreWritingSettings(segment_bytes=_SEGMENT)
    )
    batch = example(request.param == "dense")
    store = convert([batch], tmp_path / "s", memory=2**20)
    assert len(store.shards) > 1
    return store


def flipped(store, name, seed=0):
    """Flip one bit of an array, or of another file; its place in bytes."""
    path = store.file(name)
    content = bytearray(Path(path).read_bytes())
    at = int(np.random.default_rng(seed).integers(len(content)))
    content[at] ^= 1 << seed % 8
    Path(path).write_bytes(content)
    return at


def by_fit(**options):
    def fit(path):
        store = RowStore.open(path, **options)
        LinearSVC(max_iter=3, tol=1e-2).fit(store)

    return fit


def by_mapped_fit(path):
    store = RowStore.open(path)
    Problem(store.matrix(), np.where(store.y > 0, 1, -1), 1.0)
    assert len(store.sample_weight) == len(store)


def by_workers(path):
    for part in parts_of(RowStore.open(path), 3):
        part.open()


def by_blocks(path):
    for _ in RowStore.open(path, buffer=60_000):
        pass


READERS = {
    "held": by_fit(),
    "streamed": by_fit(buffer=120_000),
    "past the cache": by_fit(buffer=120_000, direct=True),
    "mapped": by_mapped_fit,
    "of workers": by_workers,
    "blocks": by_blocks,
}


def test_checksums_are_those_of_the_files(store):
    sums = np.fromfile(store.file("checksums"), "<u4")
    names = [n for n in ("values", "indices", "indptr", "y", "weight")
             if n in store.dtypes]  # fmt: skip
    expected = [
        core.crc32c_segments(np.fromfile(store.file(name), np.uint8), _SEGMENT)
        for name in names
    ]
    assert sums.tolist() == np.concatenate(expected).tolist()
    assert len(sums) > 2 * len(expected)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("reader", READERS)
def test_a_flipped_bit_is_refused_by_whoever_reads_it_first(store, reader):
    read = READERS[reader]
    read(store.path)
    for seed, name in enumerate(store.dtypes):
        whole = Path(store.file(name)).read_bytes()
        at = flipped(store, name, seed)
        first = at // _SEGMENT * _SEGMENT
        last = min(first + _SEGMENT, len(whole))
        with pytest.raises(ValueError, match="is damaged") as error:
            read(store.path)
        told = f"{store.file(name)} is damaged: bytes {first} to {last} do not match"
        assert told in str(error.value)
        assert "dualgap convert" in str(error.value)
        Path(store.file(name)).write_bytes(whole)
    read(store.path)


def test_damaged_checksums_are_refused_when_a_store_is_opened(store):
    whole = Path(store.path, CHECKSUMS).read_bytes()
    flipped(store, "checksums")
    with pytest.raises(ValueError, match=r"checksums\.bin is damaged"):
        RowStore.open(store.path)
    Path(store.path, CHECKSUMS).write_bytes(whole[:-4])
    with pytest.raises(ValueError, match=r"checksums\.bin has \d+ bytes, expected"):
        RowStore.open(store.path)
    os.unlink(store.file("checksums"))
    with pytest.raises(FileNotFoundError):
        RowStore.open(store.path)


@pytest.mark.parametrize("options", [{}, {"direct": True}])
def test_a_segment_is_compared_once(store, options, monkeypatch):
    store = RowStore.open(store.path, buffer=60_000, **options)
    compared, plain = [], core.crc32c_segments
    monkeypatch.setattr(
        core, "crc32c_segments",
        lambda data, size: compared.append(len(data)) or plain(data, size),
    )  # fmt: skip
    list(store.blocks())
    total = sum(os.path.getsize(store.file(name)) for name in store.dtypes)
    assert all(part.seen.all() for part in store._segments.values())
    # Past the cache, those at the ends of a page come with either page.
    assert 0 < sum(compared) <= total * (2 if store.direct else 1)
    compared.clear()
    list(store.blocks())
    assert not compared
    pickle.loads(pickle.dumps(store)).rows(0, 300)  # another process reads it first
    assert compared


# ------------------------------------------------------------------ stores of format 1


@pytest.fixture
def old(store):
    """Rewrite a store as version 0.1 wrote it."""
    where = Path(store.path, DESCRIPTION)
    description = json.loads(where.read_text())
    for field in ("segment_bytes", "checksums_sha256"):
        del description[field]
    description["format_version"] = 1
    description["sha256"] = digest(description)
    where.write_text(json.dumps(description))
    os.unlink(store.file("checksums"))
    return RowStore.open(store.path)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("reader", READERS)
def test_a_store_of_format_1_is_compared_as_a_whole(old, reader):
    read = READERS[reader]
    read(old.path)
    for seed, name in enumerate(old.dtypes):
        whole = Path(old.file(name)).read_bytes()
        flipped(old, name, seed)
        with pytest.raises(ValueError, match="do not match their checksum"):
            read(old.path)
        Path(old.file(name)).write_bytes(whole)


def test_a_store_of_format_1_is_compared_once(old, monkeypatch):
    looks, plain = [], RowStore.verify
    monkeypatch.setattr(RowStore, "verify", lambda s: looks.append(1) or plain(s))
    assert len(old.y) == len(old)
    assert old.matrix().shape == old.shape
    list(old.blocks())
    assert looks == [1]

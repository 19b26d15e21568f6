"""Checksums of stores: right by their definition, and none is passed over."""

import dataclasses
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
from dualgap.data.description import DESCRIPTION, HEADER, PIECE
from dualgap.data.files import StoredArray
from dualgap.distributed.stores import parts_of
from dualgap.problems import BinaryProblem as Problem

from ..conftest import ROOT


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


# -------------------------------------------------------------------- stores


def example(dense, n=1500):
    rng = np.random.default_rng(0)
    X = sparse.random(n, 20, density=0.4, format="csr", random_state=rng)
    y = np.where(X @ rng.standard_normal(20) > 0, 1, -1)
    return (X.toarray() if dense else X), y, 0.5 + rng.random(n)


@pytest.fixture(params=["csr", "dense"])
def store(tmp_path, request):
    """Rows whose arrays have several pieces, but for the labels and weights."""
    dense = request.param == "dense"
    store = convert([example(dense, 4000 if dense else 10_000)], tmp_path / "s")
    assert os.path.getsize(store.file("values")) > 5 * PIECE
    return store


def flipped(store, name, seed=0):
    """Flip one bit of an array; its place in bytes."""
    path = store.file(name)
    content = bytearray(Path(path).read_bytes())
    at = HEADER + int(np.random.default_rng(seed).integers(len(content) - HEADER))
    content[at] ^= 1 << seed % 8
    Path(path).write_bytes(content)
    return at


@pytest.fixture
def past_the_cache(monkeypatch):
    """Read all stores past the file cache."""
    everything = dataclasses.replace(StoredArray.settings, cached=0.0)
    monkeypatch.setattr(StoredArray, "settings", everything)


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
    for _ in RowStore.open(path, buffer=300_000):
        pass


READERS = {
    "held": by_fit(),
    "streamed": by_fit(buffer=300_000),
    "mapped": by_mapped_fit,
    "of workers": by_workers,
    "blocks": by_blocks,
    "verify": lambda path: RowStore.open(path).verify(n_jobs=2),
}


def test_checksums_are_those_of_the_files(store):
    description = json.loads(Path(store.path, DESCRIPTION).read_text())
    for name in store.dtypes:
        content = np.fromfile(store.file(name), np.uint8)[HEADER:]
        expected = [crc32c_of(content[k : k + PIECE])
                    for k in range(0, len(content), PIECE)]  # fmt: skip
        sums = np.frombuffer(bytes.fromhex(description["checksums"][name]), "<u4")
        assert sums.tolist() == expected


def crc32c_of(data):
    return core.crc32c(np.ascontiguousarray(data))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("cache", ["through", "past"])
@pytest.mark.parametrize("reader", READERS)
def test_a_flipped_bit_is_refused_by_whoever_reads_it_first(
    store, reader, cache, request
):
    if cache == "past":
        request.getfixturevalue("past_the_cache")
    read = READERS[reader]
    read(store.path)
    for seed, name in enumerate(store.dtypes):
        whole = Path(store.file(name)).read_bytes()
        at = flipped(store, name, seed)
        first = at - (at - HEADER) % PIECE
        last = min(first + PIECE, len(whole))
        with pytest.raises(ValueError, match="is damaged") as error:
            read(store.path)
        told = f"{store.file(name)} is damaged: bytes {first} to {last} do not match"
        assert told in str(error.value)
        assert "dualgap convert" in str(error.value)
        Path(store.file(name)).write_bytes(whole)
    read(store.path)


@pytest.mark.parametrize("at", [0, 6, 8, 20, 60, HEADER - 1])
def test_a_damaged_header_is_refused_when_a_store_is_opened(store, at):
    for name in store.dtypes:
        whole = Path(store.file(name)).read_bytes()
        content = bytearray(whole)
        content[at] ^= 4
        Path(store.file(name)).write_bytes(content)
        with pytest.raises(ValueError, match=rf"{name}\.npy is damaged: its header"):
            RowStore.open(store.path)
        Path(store.file(name)).write_bytes(whole)


@pytest.mark.parametrize("cache", ["through", "past"])
def test_any_range_is_compared_and_each_piece_once(tmp_path, cache, request):
    """Wherever a read begins and ends, and whatever byte is damaged within it."""
    if cache == "past":
        request.getfixturevalue("past_the_cache")
    n = PIECE * 2 + 100
    y = np.random.default_rng(0).integers(0, 100, n)
    store = convert([(np.ones((n, 1)), y)], tmp_path / "s", shuffle=False)
    assert store.y.dtype == np.int8
    edges = [0, 1, 500, PIECE - 1, PIECE, PIECE + 7, 2 * PIECE - 1, 2 * PIECE, n - 1, n]
    for begin, end in itertools.combinations(edges, 2):
        opened = RowStore.open(tmp_path / "s")
        assert np.array_equal(opened.column("y", begin, end), y[begin:end])
        touched = slice(begin // PIECE, -(-end // PIECE))
        seen = opened._arrays["y"].seen
        assert seen[touched].all()
        assert seen.sum() == touched.stop - touched.start
    for at in (0, 499, PIECE - 1, PIECE, n - 1):
        content = bytearray(Path(store.file("y")).read_bytes())
        content[HEADER + at] ^= 1
        Path(store.file("y")).write_bytes(content)
        for begin, end in itertools.combinations(edges, 2):
            opened = RowStore.open(tmp_path / "s")
            if begin // PIECE <= at // PIECE < -(-end // PIECE):
                with pytest.raises(ValueError, match="is damaged: bytes"):
                    opened.column("y", begin, end)
            else:
                assert np.array_equal(opened.column("y", begin, end), y[begin:end])
        content[HEADER + at] ^= 1
        Path(store.file("y")).write_bytes(content)


def test_a_piece_is_compared_once(store, monkeypatch):
    store = RowStore.open(store.path, buffer=300_000)
    compared, plain = [], core.crc32c_segments
    monkeypatch.setattr(
        core, "crc32c_segments",
        lambda data, size: compared.append(len(data)) or plain(data, size),
    )  # fmt: skip
    list(store.blocks())
    total = sum(os.path.getsize(store.file(name)) for name in store.dtypes)
    assert all(part.seen.all() for part in store._arrays.values())
    # Those at the ends of a page come with either page.
    assert 0 < sum(compared) <= 2 * total
    compared.clear()
    list(store.blocks())
    assert not compared
    pickle.loads(pickle.dumps(store)).rows(0, 300)  # another process reads it first
    assert compared
    compared.clear()
    store.verify()
    assert sum(compared) == total - HEADER * len(store.dtypes)


@pytest.mark.parametrize("name", ["store-1", "store-2"])
def test_a_store_of_an_earlier_format_is_refused_in_a_sentence(name):
    told = rf"it has format version {name[-1]}, but this version .* dualgap convert"
    with pytest.raises(ValueError, match=told):
        RowStore.open(ROOT / "tests" / "corpus" / "stores" / name)

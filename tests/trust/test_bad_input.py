"""No index is trusted before it is checked, and text found by fuzzing stays read.

`make fuzz` looks for inputs of the text parser and of the Python surface with coverage
feedback; what it found, and what had a bug behind it, is in tests/corpus.
"""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from dualgap import SVC, LinearSVC, LinearSVR
from dualgap.problems import BinaryProblem as Problem

from ..conftest import examples
from ..data.test_svmlight import check_against_reference

CORPUS = Path(__file__).parents[1] / "corpus"


def corpus() -> dict[str, bytes]:
    """Seeds, and what a fuzzer found on the way from them."""
    seeds = {path.name: path.read_bytes() for path in (CORPUS / "svmlight").iterdir()}
    with zipfile.ZipFile(CORPUS / "svmlight.zip") as found:
        seeds.update((name, found.read(name)) for name in found.namelist())
    return seeds


def test_the_corpus_is_read_or_refused_by_the_grammar():
    contents = [content for content in corpus().values() if content]
    read = 0
    for content in contents:
        options, text = content[0], content[1:]
        read += check_against_reference(
            text, query_id=bool(options & 4),
            zero_based=[True, False, "auto", "auto"][options & 3],
        )  # fmt: skip
    assert min(read, len(contents) - read) > 50


@pytest.mark.parametrize(
    "target", ["models", "stores", "sources", "peers", "matrices", "options"]
)
def test_what_was_found_on_the_python_surface_is_whole_or_refused(target):
    pytest.importorskip("pyarrow")
    from ..fuzz import surface

    with zipfile.ZipFile(CORPUS / "surface.zip") as found:
        names = [name for name in found.namelist() if name.startswith(f"{target}/")]
        accepted = [surface.try_one(target, found.read(name)) for name in names]
    assert any(accepted)
    assert not all(accepted)


@pytest.mark.cases(2)
@pytest.mark.parametrize("seed", range(100))
def test_a_command_ends_with_a_known_status_on_data_with_a_fault(seed):
    """20 lines; what a fuzzer would draw, without coverage."""
    from ..fuzz import surface

    rng = np.random.default_rng(seed)
    accepted = [surface.try_one("lines", rng.bytes(200)) for _ in range(20)]
    assert not all(accepted)


EXTREMES = [-(2**63), -(2**31), -1, 0, 1, 2, 5, 6, 2**31 - 1, 2**31, 2**62, 2**63 - 1]


def broken(data, indices, indptr, shape, wide):
    """A CSR matrix of arrays that SciPy has not looked at."""
    kind = np.int64 if wide else np.int32
    X = sparse.csr_matrix(shape)
    X.data = np.asarray(data, dtype=np.float64)
    X.indices = np.asarray(indices).astype(kind)
    X.indptr = np.asarray(indptr).astype(kind)
    return X


def whole(X) -> bool:
    n, d = X.shape
    p = X.indptr
    return bool(
        len(p) == n + 1
        and len(X.indices) == len(X.data)
        and p[0] == 0
        and (p[1:] >= p[:-1]).all()
        and p[-1] <= len(X.data)
        and (X.indices[: p[-1]] >= 0).all()
        and (X.indices[: p[-1]] < d).all()
        and np.isfinite(X.data[: p[-1]]).all()
    )


number = st.one_of(st.integers(-3, 9), st.sampled_from(EXTREMES))


@settings(max_examples=examples(500))
@given(
    indices=st.lists(number, min_size=0, max_size=8),
    indptr=st.lists(number, min_size=0, max_size=6),
    extra=st.sampled_from([0, 0, 0, -1, 1]),
    d=st.sampled_from([1, 4, 6, 2**31 - 1]),
    wide=st.booleans(),
    lie=st.booleans(),
)
@example([0, 1, 2], [0, 2**31 - 1, 3], 0, 4, False, True)
@example([0, 1, 2], [0, 3, 2, 3], 0, 4, True, True)
@example([0, -1, 2], [0, 1, 3], 0, 4, True, True)
def test_a_broken_matrix_is_refused_and_a_whole_one_is_not(
    indices, indptr, extra, d, wide, lie
):
    data = np.ones(max(0, len(indices) + extra))
    n = max(len(indptr) - 1, 1)
    X = broken(data, indices, indptr, (n, d), wide)
    # What SciPy believes about it must not matter.
    X.has_sorted_indices = X.has_canonical_format = lie
    y = np.where(np.arange(n) % 2, 1, -1)
    if whole(X):
        problem = Problem(X, y)
        assert np.isfinite(problem.q).all()
        if d < 2**20:
            problem.certify(np.zeros(problem.width))
        return
    with pytest.raises(ValueError, match="X"):
        Problem(X, y)


@pytest.mark.parametrize("where", ["predict", "decision_function", "fit"])
def test_an_estimator_refuses_indices_out_of_range(where):
    rng = np.random.default_rng(0)
    X = sparse.csr_matrix(rng.standard_normal((20, 5)))
    y = np.where(np.arange(20) % 2, 1, -1)
    model = LinearSVC().fit(X, y)
    scores = model.decision_function(X.tocsc())
    np.testing.assert_allclose(scores, model.decision_function(X), rtol=1e-12)
    bad = X.copy()
    bad.indices[3] = 10**6
    with pytest.raises(ValueError, match="X, row 0: column index out of range"):
        getattr(model, where)(*([bad, y] if where == "fit" else [bad]))


@settings(max_examples=40)
@given(
    content=st.binary(max_size=300),
    kind=st.sampled_from(["parquet", "arrow", "feather", "npy", "npz"]),
    magic=st.booleans(),
)
def test_tables_of_noise_are_refused(tmp_path_factory, content, kind, magic):
    from dualgap.data import convert

    heads = {"parquet": b"PAR1", "arrow": b"ARROW1\0\0", "feather": b"ARROW1\0\0",
             "npy": b"\x93NUMPY\x01\0", "npz": b"PK\x03\x04"}  # fmt: skip
    folder = tmp_path_factory.mktemp("noise")
    path = folder / f"data.{kind}"
    path.write_bytes((heads[kind] if magic else b"") + content)
    with pytest.raises((ValueError, OSError)):
        convert(str(path), folder / "rows")


def sent(thing):
    """Return a thing as Dask delivers it: its arrays begin at any byte."""
    buffers = []
    text = pickle.dumps(thing, protocol=5, buffer_callback=buffers.append)
    there = [memoryview(b"?" + bytes(buffer.raw()))[1:] for buffer in buffers]
    return pickle.loads(text, buffers=there)


@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_out_of_a_message_are_as_good(layout, dtype):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5)).astype(dtype)
    y, weight = np.where(X[:, 0] > 0, 1, -1), rng.uniform(1, 2, 60)
    X = layout(X)
    data = X, y, weight
    there = sent(data)
    assert not there[1].flags.aligned
    for model in (LinearSVC(), SVC(gamma=0.2), LinearSVR()):
        model.set_params(random_state=0)
        alone, other = clone(model).fit(*data), clone(model).fit(*there)
        assert other.certificate_.primal == alone.certificate_.primal
        assert other.certificate_.dual == alone.certificate_.dual
        moved, expected = sent(alone), alone.predict(X)
        np.testing.assert_array_equal(moved.predict(there[0]), expected)
        np.testing.assert_array_equal(other.predict(X), expected)
    one = LinearSVC(random_state=0).partial_fit(*data[:2], classes=[-1, 1])
    two = sent(one).partial_fit(*there[:2])
    np.testing.assert_array_equal(two.coef_, one.partial_fit(*data[:2]).coef_)

"""Every sentence of SECURITY.md."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from dualgap import LinearSVC, load_model, save_model
from dualgap.data import RowStore, convert, load_svmlight
from dualgap.data.description import DESCRIPTION

from ..conftest import SANITIZED
from ..sealing import seal

pytest.importorskip("safetensors")
DEEP = "[" * 100_000 + "]" * 100_000


class Bomb:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = str(mark)

    def __reduce__(self):
        return os.mkdir, (self.mark,)


def rows(n=60):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 4))
    return X, np.where(X[:, 0] > 0, 1, -1)


@pytest.fixture
def store(tmp_path) -> RowStore:
    return convert([rows()], tmp_path / "rows", seed=0)


def limited(code: str, folder: Path, megabytes: int = 1500) -> str:
    """Run code in a process that cannot have more memory; what it prints."""
    if SANITIZED:
        pytest.skip("not under a sanitizer: it maps terabytes for itself")
    most = megabytes << 20
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({most},) * 2)"
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", f"{limit}\n{code}"], cwd=folder, env=environment,
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


REFUSED = """
try:
    {call}
except (ValueError, OSError) as error:
    print(type(error).__name__)
"""


# --- runs no code


@pytest.mark.parametrize("name", ["model", "model.pkl", "model.joblib"])
def test_a_pickle_is_no_model(tmp_path, name):
    mark, path = tmp_path / "mark", tmp_path / name
    path.write_bytes(pickle.dumps(Bomb(mark)))
    with pytest.raises(ValueError, match="model"):
        load_model(path)
    assert not mark.exists()


def test_a_pickle_inside_a_model_stays_bytes(tmp_path):
    """The pickle is a tensor, a class label or a parameter."""
    from safetensors.numpy import load_file, save_file

    mark, path = tmp_path / "mark", tmp_path / "model"
    save_model(LinearSVC().fit(*rows()), path)
    bomb = pickle.dumps(Bomb(mark))
    tensors = load_file(path) | {"bomb": np.frombuffer(bomb, np.uint8)}
    save_file(tensors, path)
    with pytest.raises(ValueError, match="record"):
        load_model(path)
    assert not mark.exists()


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_arrays_of_objects_are_not_unpickled(tmp_path, kind):
    mark, path = tmp_path / "mark", tmp_path / f"data.{kind}"
    array = np.array([[Bomb(mark)]], dtype=object)
    if kind == "npy":
        np.save(path, array, allow_pickle=True)
    else:
        np.savez(path, X=array, y=array)
    with pytest.raises((ValueError, TypeError)):
        convert(str(path), tmp_path / "store")
    assert not mark.exists()


# --- allocates no more than the file justifies


@pytest.mark.long
@pytest.mark.parametrize("size", [2**40, 2**63 - 1])
def test_sizes_that_a_store_declares_are_not_believed(store, size):
    for change in ({"n_samples": size}, {"entries": size}):
        seal(store.path, **change)
        call = f"import dualgap.data; dualgap.data.RowStore.open({store.path!r}).y"
        told = limited(REFUSED.format(call=call), Path(store.path))
        assert told == "ValueError"


@pytest.mark.long
@pytest.mark.parametrize("size", [2**40, 2**63])
def test_sizes_that_a_model_declares_are_not_believed(tmp_path, size):
    header = {
        "coef": {"dtype": "F64", "shape": [1, size // 8], "data_offsets": [0, size]}
    }
    text = json.dumps(header).encode()
    path = tmp_path / "model"
    for length in (len(text), size):
        path.write_bytes(length.to_bytes(8, "little") + text)
        call = "import dualgap; dualgap.load_model('model')"
        assert limited(REFUSED.format(call=call), tmp_path) == "ValueError"


def test_an_index_that_text_names_costs_nothing(tmp_path):
    (tmp_path / "data").write_text(f"1 1:1 {2**62}:1\n-1 2:1\n")
    call = (
        "from dualgap.data import load_svmlight; print(load_svmlight('data')[0].shape)"
    )
    assert limited(call, tmp_path) == str((2, 2**62))
    X, y = load_svmlight(str(tmp_path / "data"))
    with pytest.raises((MemoryError, ValueError)):
        LinearSVC().fit(X, y)


@pytest.mark.parametrize("size", [2**60])
def test_the_shape_of_an_array_file_is_not_believed(tmp_path, size):
    np.save(tmp_path / "data.npy", np.ones((4, 3)))
    np.save(tmp_path / "y.npy", np.ones(4))
    content = (tmp_path / "data.npy").read_bytes()
    longer = content.replace(b"(4, 3)", f"({size}, 3)".encode())
    cut = len(longer) - len(content)
    at = longer.index(b"\n")
    longer = longer[: at - cut] + longer[at:]  # the header keeps its length
    (tmp_path / "data.npy").write_bytes(longer)
    call = "import dualgap.data; dualgap.data.convert('data.npy', 'rows', y='y.npy')"
    assert limited(REFUSED.format(call=call), tmp_path) in ("ValueError", "OSError")


# --- reads nothing but that file or folder


@pytest.mark.parametrize("name", ["../values", "/etc/passwd", "values/../../x"])
def test_a_store_names_no_other_file(store, name):
    description = json.loads(Path(store.path, DESCRIPTION).read_text())
    arrays = description["arrays"]
    for changed in (
        arrays | {name: "<f8"},
        {(name if key == "values" else key): kind for key, kind in arrays.items()},
    ):
        seal(store.path, arrays=changed)
        with pytest.raises(ValueError, match="arrays"):
            RowStore.open(store.path)


def test_a_link_out_of_a_store_is_refused(store, tmp_path):
    outside = tmp_path / "secret"
    os.rename(store.file("values"), outside)
    os.symlink(outside, store.file("values"))
    with pytest.raises(ValueError, match="is a link out of the store"):
        RowStore.open(store.path)


def test_a_store_may_itself_be_a_link(store, tmp_path):
    os.symlink(store.path, tmp_path / "link")
    assert RowStore.open(tmp_path / "link").shape == store.shape


# --- ends in a clear error


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model")
    told = []

    def load():
        with pytest.raises(ValueError, match="not a regular file") as error:
            load_model(tmp_path / "model")
        told.append(str(error.value))

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(60)
    assert told
    assert str(tmp_path / "model") in told[0]


def test_deep_json_is_refused(store, tmp_path):
    Path(store.path, DESCRIPTION).write_text(DEEP)
    with pytest.raises(ValueError, match="dualgap convert"):
        RowStore.open(store.path)
    header = json.dumps({"__metadata__": {"dualgap": DEEP}}).encode()
    (tmp_path / "model").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ValueError, match="model"):
        load_model(tmp_path / "model")


def test_limits_hold_in_these_tests(tmp_path):
    call = "import numpy; numpy.ones(2**32)"
    told = limited(f"try:\n    {call}\nexcept MemoryError:\n    print('no')", tmp_path)
    assert told == "no"

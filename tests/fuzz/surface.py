"""Fuzz targets for the Python surface, one per kind of input.

A target makes of the fuzzer's bytes what a stranger could hand over, and lets the
package work on it. The only exceptions that may come out are those that the documents
name, in a message that names what is wrong; what is accepted has to be whole: finite,
readable again once written, and with a certificate that holds. Half of the inputs are
sealed again after they were edited, for the checksums would hide all that is behind.

Nothing here needs a fuzzer. `run.py` lets atheris look for bytes, and the tests read
those of tests/corpus again.
"""

from __future__ import annotations

import atexit
import contextlib
import copy
import functools
import io
import json
import os
import shutil
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import dualgap
from dualgap import LinearSVC, LinearSVR, load_model, save_model
from dualgap.data import RowStore, convert
from dualgap.data import model_file as model_file
from dualgap.data.description import DESCRIPTION
from dualgap.data.description import digest as store_digest
from dualgap.estimators.novelty import LinearOneClassSVM, OneClassSVM
from dualgap.estimators.regression import SVR
from dualgap.estimators.svc import SVC
from dualgap.losses import LOSSES
from dualgap.models.peers import (
    read_liblinear,
    read_libsvm,
    write_liblinear,
    write_libsvm,
)
from dualgap.solvers import SOLVERS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from sealing import seal

INTEGERS = (
    0, 1, 2, 3, 4, 5, 7, -1, -2, 8, 16, 100, 2**15, 2**31 - 2, 2**31 - 1, 2**31,
    2**32, 2**40, 2**53, 2**62, 2**63 - 1, 2**63, -(2**31), -(2**63), 2**64, 10**30,
)  # fmt: skip
FLOATS = (
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-3, 1e3, 1e-10, 1e10, 5e-324, 1e-160, 1e155, 1e300,
    1.7e308, -1e300, float("inf"), float("-inf"), float("nan"),
)  # fmt: skip


class Draw:
    """Choices made by bytes; zeros once they are used up."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bytes(self, count: int) -> bytes:
        taken = self.data[self.at : self.at + count]
        self.at += count
        return taken

    def rest(self) -> bytes:
        return self.bytes(len(self.data))

    def below(self, n: int) -> int:
        size = 1 if n <= 256 else 2
        return int.from_bytes(self.bytes(size), "little") % n

    def choice(self, options: Any) -> Any:
        return options[self.below(len(options))]

    def chance(self, one_in: int) -> bool:
        return self.below(one_in) == one_in - 1

    def integer(self) -> int:
        return self.choice(INTEGERS) if self.chance(3) else self.below(256) - 4

    def real(self) -> float:
        return self.choice(FLOATS) if self.chance(3) else (self.below(256) - 128) / 16

    def text(self, words: Any = ()) -> str:
        if words and not self.chance(4):
            return str(self.choice(words))
        return self.bytes(self.below(12)).decode("utf-8", "replace")


# ---------------------------------------------------------------------- what is allowed


class FindingError(Exception):
    """The package did what it may not do."""


def require(holds: Any, what: str) -> None:
    if not holds:
        raise FindingError(what)


@contextlib.contextmanager
def refusals(*names: str, kinds: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Let documented exceptions pass whose message holds one of the names."""
    try:
        yield
    except (ValueError, OSError, *kinds) as error:
        told = str(error)
        if not told or (names and not any(name in told for name in names)):
            raise FindingError(f"the message names nothing: {error!r}") from error
        raise RefusedError from None


class RefusedError(Exception):
    """A clear refusal."""


@functools.cache
def scratch() -> Path:
    """A folder for this process; in memory where there is such a file system."""
    home = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.mkdtemp(prefix="dualgap-fuzz-", dir=home)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def rows(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


# ------------------------------------------------------------------------------ records


def some_json(draw: Draw, words: Any, depth: int = 0) -> Any:
    """A JSON value."""
    kind = draw.below(6 if depth < 3 else 4)
    if kind == 0:
        return draw.choice((None, True, False))
    if kind == 1:
        return draw.integer()
    if kind == 2:
        return draw.real()
    if kind == 3:
        return draw.text(words)
    values = [some_json(draw, words, depth + 1) for _ in range(draw.below(4))]
    return values if kind == 4 else {draw.text(words): value for value in values}


def edit_json(draw: Draw, node: Any, words: Any) -> None:
    """Remove, replace or add one thing somewhere in it."""
    while True:
        keys = sorted(node) if isinstance(node, dict) else range(len(node))
        if not keys:
            break
        key = draw.choice(keys)
        inner = node[key]
        if isinstance(inner, (dict, list)) and not draw.chance(4):
            node = inner
            continue
        kind = draw.below(5)
        if kind == 0:
            del node[key]
            return
        if kind < 4:
            node[key] = some_json(draw, words)
            return
        break
    value = some_json(draw, words)
    if isinstance(node, dict):
        node[draw.text(words)] = value
    else:
        node.insert(draw.below(len(node) + 1), value)


def words_of(value: Any) -> set[str]:
    """Return all strings in a value."""
    if isinstance(value, dict):
        return set(value).union(*map(words_of, value.values()))
    if isinstance(value, list):
        return set().union(*map(words_of, value))
    return {value} if isinstance(value, str) else set()


_TENSOR_DTYPES = ("<f8", "<f4", "<i8", "<i4", "|u1", "<u4", "<f2", "|b1", "<i2")


def some_array(draw: Draw, dtype: np.dtype[Any], shape: tuple[int, ...]) -> np.ndarray:
    count = int(np.prod(shape))
    values: list[Any] = [
        draw.real() if dtype.kind == "f" else draw.integer() for _ in range(count)
    ]
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        values = [min(max(v, limits.min), limits.max) for v in values]
    with np.errstate(over="ignore"):
        return np.array(values, dtype).reshape(shape)


def edit_tensors(draw: Draw, tensors: dict[str, np.ndarray]) -> None:
    """Change values, shape or dtype of one, rename it, remove it or add one."""
    names = sorted(tensors)
    kind = draw.below(7) if names else 6
    if kind == 6:
        dtype = np.dtype(draw.choice(_TENSOR_DTYPES))
        shape = tuple(draw.below(4) for _ in range(draw.below(4)))
        tensors[draw.text(names)] = some_array(draw, dtype, shape)
        return
    name = draw.choice(names)
    array = tensors[name].copy()
    if kind < 3 and array.size:
        at = draw.below(array.size)
        array.reshape(-1)[at] = some_array(draw, array.dtype, (1,))[0]
    elif kind == 3:
        with np.errstate(all="ignore"):
            array = array.astype(draw.choice(_TENSOR_DTYPES))
    elif kind == 4:
        flat = np.resize(array, max(0, array.size + draw.below(5) - 2))
        array = flat if draw.chance(2) or array.ndim < 2 else flat[None, :]
    else:
        del tensors[name]
        if draw.chance(2):
            return
        name = draw.text(names)
    tensors[name] = array


# ------------------------------------------------------------------------------- models


@functools.cache
def whole_models() -> list[tuple[dict[str, Any], dict[str, np.ndarray]]]:
    """Records and tensors of one model of every kind."""
    X = rows(24, 3)
    y2, y3 = (X[:, 0] > 0) * 2 - 1, np.arange(24) % 3
    fitted = [
        LinearSVC().fit(X, y2),
        LinearSVC(class_weight={0: 2.0}).fit(X, y3),
        LinearSVC(loss="hinge", multi_class="crammer_singer").fit(X, y3),
        SVC().fit(X, y3),
        SVC(kernel="poly", degree=2).fit(sparse.csr_matrix(X), y2),
        SVC(kernel="precomputed").fit(X @ X.T, y2),
        LinearSVR(tol=1e-2).fit(X, X[:, 0]),
        LinearOneClassSVM(tol=1e-2).fit(X),
        SVR().fit(X, X[:, 0]),
        OneClassSVM(tol=1e-2).fit(X),
    ]
    path, found = str(scratch() / "whole.safetensors"), []
    for model in fitted:
        save_model(model, path, duals=hasattr(model, "coef_"))
        found.append(model_file.read(path))
    return found


@functools.cache
def model_words() -> list[str]:
    return sorted(set().union(*(words_of(record) for record, _ in whole_models())))


def models(data: bytes) -> None:
    """A model file: any bytes, or a sound one edited and sealed again."""
    draw = Draw(data)
    if draw.chance(4):
        content = draw.rest()
    else:
        record, tensors = copy.deepcopy(draw.choice(whole_models()))
        for _ in range(1 + draw.below(4)):
            if draw.chance(3):
                edit_tensors(draw, tensors)
            else:
                edit_json(draw, record, model_words())
        with contextlib.suppress(ValueError, TypeError, KeyError):
            record["sha256"] = model_file.digest(record, tensors)
        text = json.dumps(record, separators=(",", ":"))
        content = safetensors.numpy.save(
            {name: np.ascontiguousarray(array) for name, array in tensors.items()},
            {"dualgap": text},
        )
    path = str(scratch() / "model.safetensors")
    Path(path).write_bytes(content)
    with refusals(path):
        model, notes = load_model(path, return_notes=True)
    use(model)
    save_model(model, path, duals=hasattr(model, "dual_coef_"), notes=notes)
    again = load_model(path)
    require(repr(again) == repr(model), "written and read it is another model")


def use(model: Any) -> None:
    """Predict with a model that was accepted."""
    d = model.n_features_in_
    X = rows(4, d) if d <= 1000 else sparse.csr_matrix((4, d))
    if hasattr(model, "feature_names_in_") or d > 10**6:  # it takes memory for d
        return
    with refusals("X, row"), np.errstate(all="ignore"):
        scores = getattr(model, "decision_function", model.predict)(X)
        require(len(scores) == 4, f"{scores.shape} scores of 4 rows")
        if hasattr(model, "classes_"):
            require(np.isin(model.predict(X), model.classes_).all(), "a strange class")


# ------------------------------------------------------------------------------- stores


@functools.cache
def whole_stores() -> list[dict[str, bytes]]:
    """Files of a sparse, a dense and a weighted store."""
    X = rows(12, 3)
    X[np.abs(X) < 0.4] = 0.0
    y = (X[:, 0] > 0).astype(float)
    S = sparse.csr_matrix(X)
    batches = [
        ([(S, y)], "float64"),
        ([(X, y * 2 - 1)], "float32"),
        ([(S, y + 0.5, np.arange(1.0, 13.0))], "float32"),
    ]
    found = []
    for k, (batch, dtype) in enumerate(batches):
        store = convert(batch, scratch() / f"whole-{k}", seed=0, dtype=dtype)
        files = sorted(Path(store.path).iterdir())
        found.append({file.name: file.read_bytes() for file in files})
    return found


def stores(data: bytes) -> None:
    """A folder of a store: description and arrays edited, and sealed again."""
    draw = Draw(data)
    files = dict(draw.choice(whole_stores()))
    if draw.chance(6):
        files[DESCRIPTION] = draw.rest()
    for _ in range(1 + draw.below(3)):
        name = draw.choice(sorted(files))
        if name == DESCRIPTION:
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                description = json.loads(files[name])
                words = sorted(words_of(description))
                edit_json(draw, description, words)
                if draw.chance(8):
                    text = json.dumps(description)
                else:
                    sealed = store_digest(description)
                    text = json.dumps({**description, "sha256": sealed})
                files[name] = text.encode()
            continue
        content = bytearray(files[name])
        kind = draw.below(4)
        if kind == 0:
            content = content[: draw.below(len(content) + 1)]
        elif kind == 1:
            content += draw.bytes(8)
        else:
            dtype = np.dtype(draw.choice(("<i8", "<i4", "<f8", "<f4", "|i1")))
            at = draw.below(len(content) + 1) // dtype.itemsize * dtype.itemsize
            content[at : at + dtype.itemsize] = some_array(draw, dtype, (1,)).tobytes()
        files[name] = bytes(content)
    folder = scratch() / "store"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name, content in files.items():
        (folder / name).write_bytes(content)
    if draw.below(8):  # else checksums hide what is behind them
        errors = (ValueError, TypeError, KeyError, RecursionError, OSError)
        with contextlib.suppress(*errors):
            seal(folder)
    buffer = draw.choice((2**28, 2**28, 600, 100))
    with refusals(str(folder)):
        store = RowStore.open(folder, buffer=buffer)
    if store.n_features > 10**6:  # w would take memory for them
        return
    whole = True
    for work in (lambda: list(store.blocks()), store.verify):
        try:
            with refusals(str(folder)):
                work()
        except RefusedError:
            whole = False
    with refusals("X", "y", "sample_weight", str(folder)):
        fit = LinearSVC(max_iter=3, fit_intercept=False).fit(store)
        check_certificate(fit)
    if whole:
        batch = store.rows(0, store.n_samples)
        check_objective(fit, batch.X, batch.y, batch.sample_weight)


# ------------------------------------------------------------------------------ sources


_NPY_DTYPES = (
    "<f8", "<f4", "<f2", ">f8", "<i4", "<i8", "|u1", "|b1", "<c16", "|S3", "<U3", "|O",
    "|V8", "|S0", "<M8[s]", "<m8", "|V0", "<f16", "f8", "<q", "",
)  # fmt: skip


def some_npy(draw: Draw) -> bytes:
    """An array as .npy has it; its header may lie."""
    dtype = draw.choice(_NPY_DTYPES[:2] if draw.chance(2) else _NPY_DTYPES)
    shape = tuple(draw.below(6) for _ in range(draw.below(3) + draw.below(2)))
    try:
        size = np.dtype(dtype).itemsize
    except TypeError:
        size = 8
    content = bytes(size * int(np.prod(shape)))
    kind = draw.below(4)
    if kind == 0 and np.dtype("f8").itemsize == size:
        content = some_array(draw, np.dtype("<f8"), shape).tobytes()
    elif kind == 1 and size in (4, 8):
        content = some_array(draw, np.dtype(f"<i{size}"), shape).tobytes()
    elif kind == 2:
        content = draw.bytes(len(content))
    if draw.chance(6):
        shape += (draw.integer(),)
    header = (
        f"{{'descr': '{dtype}', 'fortran_order': {draw.chance(8)}, 'shape': {shape}}}"
    )
    if draw.chance(8):
        at = draw.below(len(header))
        header = (
            header[:at] + draw.text(("'", "{", "(", "L", "-", "None")) + header[at:]
        )
    version = draw.choice((1, 1, 1, 2, 3))
    text = header.encode() + b"\n"
    size = len(text) if not draw.chance(16) else draw.below(65536)
    length = size.to_bytes(2 if version == 1 else 4, "little")
    return b"\x93NUMPY" + bytes((version, 0)) + length + text + content


def some_npz(draw: Draw) -> bytes:
    """A .npz of what convert looks for, or nearly so."""
    file = io.BytesIO()
    names = ("X", "y", "sample_weight", "data", "indices", "indptr", "shape", "format")
    with zipfile.ZipFile(file, "w", draw.choice((0, 8, 8, 14))) as members:
        if draw.chance(2):
            arrays: dict[str, Any] = {
                "data": np.ones(4),
                "indices": np.array([0, 1, 0, 2], np.int32),
                "indptr": np.array([0, 2, 2, 4], np.int32),
                "shape": np.array([3, 3]),
                "format": np.array(b"csr"),
                "y": np.array([0.0, 1.0, 1.0]),
            }
            for _ in range(draw.below(3)):
                name = draw.choice(sorted(arrays))
                one = {name: arrays[name]}
                if arrays[name].dtype.kind in "fiub":
                    edit_tensors(draw, one)
                arrays.pop(name)
                arrays |= one
            for name, array in arrays.items():
                part = io.BytesIO()
                np.lib.format.write_array(part, array)
                members.writestr(f"{name}.npy", part.getvalue())
        for _ in range(draw.below(3)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of names that occur twice
                name = draw.text(names).replace("\0", "")  # of which zipfile falls
                members.writestr(f"{name}.npy", some_npy(draw))
    return file.getvalue()


def some_table(draw: Draw, kind: str) -> bytes:
    """A Parquet or Arrow file of a few columns."""
    import pyarrow
    import pyarrow.feather
    import pyarrow.parquet

    n = draw.below(5)
    types = (
        pyarrow.float64(), pyarrow.float64(), pyarrow.int64(), pyarrow.float32(),
        pyarrow.bool_(), pyarrow.string(), pyarrow.null(), pyarrow.binary(),
        pyarrow.list_(pyarrow.int64()), pyarrow.decimal128(5, 2),
        pyarrow.timestamp("s"), pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
        pyarrow.uint64(), pyarrow.date32(), pyarrow.struct([("a", pyarrow.int8())]),
    )  # fmt: skip
    columns, names = [], []
    for _ in range(draw.below(4)):
        type_ = draw.choice(types[:3] if draw.chance(2) else types)
        values: list[Any] = [None] * n
        if pyarrow.types.is_floating(type_):
            values = [draw.real() for _ in range(n)]
        elif pyarrow.types.is_integer(type_):
            values = [draw.below(3) for _ in range(n)]
        elif pyarrow.types.is_boolean(type_):
            values = [draw.chance(2) for _ in range(n)]
        elif pyarrow.types.is_string(type_):
            values = [draw.text() for _ in range(n)]
        if draw.chance(8) and n:
            values[0] = None
        columns.append(pyarrow.array(values, type_))
        names.append(draw.text(("label", "a", "b", "w")))
    if draw.chance(2):
        columns.append(pyarrow.array([draw.below(3) for _ in range(n)]))
        names.append("label")
    table = pyarrow.Table.from_arrays(columns, names)
    file = io.BytesIO()
    if kind == "parquet":
        pyarrow.parquet.write_table(table, file)
    elif kind == "feather" and len(set(names)) == len(names):
        pyarrow.feather.write_feather(table, file, compression="uncompressed")
    else:
        with pyarrow.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    return file.getvalue()


_TABLES = ("npy", "npz", "parquet", "arrow", "feather")


def sources(data: bytes) -> None:
    """A file for convert: any bytes, or a sound file with some of its bytes changed."""
    from pyarrow import ArrowNotImplementedError

    draw = Draw(data)
    kind = draw.choice(_TABLES)
    if draw.chance(6):
        content = draw.rest()
    else:
        makers = {"npy": some_npy, "npz": some_npz}
        make = makers.get(kind, lambda draw: some_table(draw, kind))
        try:
            content = make(draw)
        except (ValueError, ArrowNotImplementedError):
            return  # not even written
        changed = bytearray(content)
        for _ in range(draw.choice((0, 0, 1, 2, 4)) if content else 0):
            at = int.from_bytes(draw.bytes(2), "little") % len(content)
            changed[at] = draw.below(256)
        content = bytes(changed)
    path, target = str(scratch() / f"rows.{kind}"), scratch() / "made"
    Path(path).write_bytes(content)
    shutil.rmtree(target, ignore_errors=True)
    options: dict[str, Any] = {}
    if kind in ("npy", "npz") and draw.chance(2):
        options["y"] = np.arange(draw.below(6)) % 2
    names = (path, "label", "weight", "n_features", "y has", "y is")
    try:
        with refusals(*names):
            store = convert(
                path, target, memory=2**20, n_jobs=1, seed=0,
                dtype=draw.choice((np.float64, np.float32)),
                format=draw.choice(("auto", "auto", "csr", "dense")),
                n_features=draw.choice((None, None, 3, 1000)),
                weight=draw.choice((None, None, None, "w")), **options,
            )  # fmt: skip
    finally:
        shutil.rmtree(scratch() / ".made.converting", ignore_errors=True)
    store.verify()
    for batch in store.blocks():
        held = batch.X.data if sparse.issparse(batch.X) else batch.X
        require(np.isfinite(held).all(), "a value that is not finite")
        require(np.isfinite(batch.y).all(), "a label that is not finite")


# ------------------------------------------------------------- models of other packages

_LIBLINEAR = """solver_type L2R_L1LOSS_SVC_DUAL
nr_class 3
label 1 -1 2
nr_feature 2
bias 1
w
0.5 -0.25 1
-1 2 0.125
1 0 3
"""
_LIBSVM = """svm_type c_svc
kernel_type polynomial
degree 2
gamma 0.5
coef0 1
nr_class 3
total_sv 4
rho 0.5 -0.5 0.25
label 1 -1 2
nr_sv 1 2 1
SV
1 -0.5 1:0.5 3:-1
0.25 0.75 2:1
-0.5 1 1:2
0.5 -1 3:0.125
"""
_WORDS = (
    "linear", "rbf", "sigmoid", "precomputed", "L2R_L2LOSS_SVC", "L2R_LR", "nu_svc",
    "nan", "inf", "1e308", "-1e308", "1e-320", "0x1", "1_0", "+1", "1.5", "1e0", "0:1",
    "1:nan", "2147483647:1", "2147483646:1", "4:1e200", "-1:1", "1:", ":1", "9" * 20,
    "9" * 5000, "\ufffd", "", "\n", "w", "SV", "label", "rho", "bias", "degree",
    "coef0",
    *map(str, INTEGERS),
)  # fmt: skip


def peers(data: bytes) -> None:
    """A model file of LIBLINEAR or LIBSVM."""
    draw = Draw(data)
    read, write, whole = draw.choice(
        ((read_liblinear, write_liblinear, _LIBLINEAR),
         (read_libsvm, write_libsvm, _LIBSVM))
    )  # fmt: skip
    if draw.chance(4):
        content = draw.rest()
    else:
        lines = [line.split(" ") for line in whole.split("\n")]
        for _ in range(1 + draw.below(4)):
            words = lines[draw.below(len(lines))]
            at = draw.below(len(words) + 1)
            if draw.chance(4):
                del words[at : at + 1]
            else:
                stop = at + draw.below(2)
                words[at:stop] = [draw.text(_WORDS)]
        content = "\n".join(map(" ".join, lines)).encode()
    path = str(scratch() / "peer.model")
    Path(path).write_bytes(content)
    with refusals(path):
        model = read(path)
    use(model)
    coef = "coef_" if hasattr(model, "coef_") else "dual_coef_"
    require(np.isfinite(getattr(model, coef)).all(), "a number that is not finite")
    write(model, path)
    again = read(path)
    same = np.array_equal(getattr(again, coef), getattr(model, coef))
    require(
        same and np.array_equal(again.classes_, model.classes_), "changed on the way"
    )


# ----------------------------------------------------------------------------- matrices


def some_matrix(draw: Draw) -> Any:
    """Rows: CSR whose arrays nobody has looked at, or an ndarray."""
    real = np.dtype(draw.choice(("<f8", "<f8", "<f4")))
    n, d = draw.below(7), draw.choice((1, 2, 3, 5, 1000))
    if draw.chance(4):
        return some_array(draw, real, (n, min(d, 5)))
    wide = np.dtype(draw.choice(("<i4", "<i4", "<i8")))
    counts = [draw.below(4) for _ in range(n)]
    nnz = sum(counts)
    X = sparse.csr_matrix((n, d), dtype=real)
    X.data = some_array(draw, real, (nnz,))
    X.indices = np.concatenate(
        [np.arange(count) % d for count in counts] or [np.zeros(0)]
    ).astype(wide)
    X.indptr = np.concatenate([[0], np.cumsum(counts, dtype=int)]).astype(wide)
    for _ in range(draw.choice((0, 0, 1, 2, 3))):
        name = draw.choice(("indices", "indptr", "data"))
        array = getattr(X, name)
        if draw.chance(4):
            array = np.resize(array, max(0, len(array) + draw.below(3) - 1))
        elif len(array):
            array[draw.below(len(array))] = some_array(draw, array.dtype, (1,))[0]
        setattr(X, name, array)
    if not whole_rows(X) and draw.chance(3):
        X._shape = (n, 2**31 - 1)
        if whole_rows(X):  # w would take 16 GB
            X._shape = (n, d)
    X.has_sorted_indices = X.has_canonical_format = draw.chance(2)
    if draw.chance(8) and d < 2**20 and whole_rows(X):
        return X.asformat(draw.choice(("csc", "coo", "lil", "dia")))
    return X


def whole_rows(X: Any) -> bool:
    """Whether CSR arrays make a matrix."""
    n, d = X.shape
    p = X.indptr
    return bool(
        len(p) == n + 1
        and len(X.indices) == len(X.data)
        and p[0] == 0
        and (p[1:] >= p[:-1]).all()
        and p[-1] == len(X.data)
        and (X.indices >= 0).all()
        and (X.indices < d).all()
    )


def matrices(data: bytes) -> None:
    """Rows, labels, weights and parameters of a fit, and rows to predict."""
    draw = Draw(data)
    X = some_matrix(draw)
    n = X.shape[0]
    kind = draw.below(5)
    y = np.array([draw.below(2 + draw.below(2)) for _ in range(n)], float)
    if draw.chance(8) and n:
        y[draw.below(n)] = draw.real()
    weight = None
    if draw.chance(3):
        weight = np.abs(some_array(draw, np.dtype("<f8"), (n,)))
    C = draw.choice((1.0, 1.0, 0.1, 1e-8, 1e8, draw.real()))
    tol = draw.choice((1e-3, 1e-1, 1e-12, draw.real()))
    common = {"C": C, "tol": tol, "max_iter": 5}
    words = (
        "X", "y", "sample_weight", "weights", "C", "tol", "sample", "class", "feature",
        "loss", "solver", "kernel", "K(", "intercept", "dtype", "dimension", "epsilon",
    )  # fmt: skip
    if kind < 3:
        model: Any = LinearSVC(
            **common, fit_intercept=False, loss=draw.choice(sorted(LOSSES)),
            solver=draw.choice(sorted(SOLVERS)), n_jobs=draw.choice((None, None, 2)),
        )  # fmt: skip
    elif kind == 3:
        model = SVC(**common, kernel=draw.choice(("linear", "rbf", "poly")))
    else:
        model = LinearSVR(**common)
    sound = whole_rows(X) if getattr(X, "format", "") == "csr" else True
    data_before = X.copy() if not sparse.issparse(X) else None
    with refusals(*words):
        model.fit(X, y, sample_weight=weight)
    require(sound, "a fit of rows that are none")
    if data_before is not None:
        require(np.array_equal(X, data_before, equal_nan=True), "X was changed")
    check_certificate(model)
    if kind < 3 and len(model.classes_) == 2:
        check_objective(model, X, y, weight)
    Z = some_matrix(draw)
    with refusals(*words):
        scores = model.decision_function(Z) if kind != 4 else model.predict(Z)
        require(len(scores) == Z.shape[0], "a score is missing")
        whole = whole_rows(Z) if getattr(Z, "format", "") == "csr" else True
        require(whole, "scores of rows that are none")


def check_certificate(model: Any) -> None:
    """The certificates do not contradict themselves."""
    found = model.certificate_
    for c in found if isinstance(found, (list, tuple, np.ndarray)) else [found]:
        require(not np.isnan(c.primal) and not np.isnan(c.dual), f"NaN in {c}")
        require(c.dual <= c.primal, f"the bounds are the wrong way round in {c}")
        require(not c.certified or np.isfinite(c.primal), f"certified: {c}")
    if hasattr(model, "coef_"):
        require(np.isfinite(model.coef_).all(), "coefficients that are not finite")


def check_objective(model: Any, X: Any, y: Any, weight: Any) -> None:
    """P(w), summed in double-double, is not above what the certificate says."""
    if model.loss not in ("hinge", "squared_hinge"):
        return
    c = model.certificate_
    if not isinstance(c, dualgap.certificate.Certificate) or not np.isfinite(c.primal):
        return
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X, np.longdouble)
    w = np.asarray(model.coef_.ravel(), np.longdouble)
    signs = np.where(np.asarray(y) == model.classes_[1], 1.0, -1.0)
    slack = np.maximum(0.0, 1.0 - signs * (dense @ w))
    cost = slack if model.loss == "hinge" else slack**2
    costs = model.C * (np.ones(len(signs)) if weight is None else weight)
    primal = w @ w / 2 + costs.astype(np.longdouble) @ cost
    room = 1e-15 * abs(primal)
    require(primal <= c.primal + room, f"P(w) = {primal} is above that of {c}")


# ------------------------------------------------------------------------- command line


@functools.cache
def commands() -> dict[str, list[tuple[str, bool]]]:
    """Options of every command, and whether they take a value."""
    from dualgap.cli import COMMANDS, command_of

    return {
        name: [
            (text, option.read is not None)
            for text, option in command_of(name)[0].known.items()
            if text != "--debug"  # shows tracebacks
        ]
        for name in sorted(COMMANDS)
    }


@functools.cache
def command_files() -> dict[str, bytes]:
    """Files that the commands find."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 4)).round(2)
    y = np.where(X[:, 0] > 0, 1, -1)
    text = "".join(
        f"{label} " + " ".join(f"{j + 1}:{x}" for j, x in enumerate(row)) + "\n"
        for label, row in zip(y, X, strict=True)
    )
    path = scratch() / "command.safetensors"
    save_model(LinearSVC().fit(X, y), path, notes={"zero_based": False})
    from dualgap.cli import run

    table, trained = scratch() / "command.csv", scratch() / "command.model"
    table.write_text(_TABLE)
    words = [
        "train",
        str(table),
        str(trained),
        "--missing",
        "mean",
        "--json",
        "--quiet",
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        require(run(words) in (0, 3), "the table does not train")
    return {
        "tables": trained.read_bytes(),
        "data": text.encode(),
        "three": text.replace("1 1:", "2 1:", 9).encode(),
        "model": path.read_bytes(),
        "liblinear": _LIBLINEAR.encode(),
        "libsvm": _LIBSVM.encode(),
        "table": _TABLE.encode(),
        "words": text.replace("-1 1", "no 1").replace("1 1:", "yes 1:").encode(),
        "labels": text.replace("-1 1", "a,b 1").replace("\n1 1:", "\nb 1:").encode(),
        "weights": b"1\n" * 30,
        "noise": bytes(range(256)),
        "empty": b"",
        **{f"store/{name}": content for name, content in whole_stores()[0].items()},
    }


_ROWS = """1.5,red,True,yes
,blue,False,no
-3,red,True,no
2e1,"gr,een",False,yes
0.25,?,True,yes
"""
_TABLE = "size,colour,when,label\n" + 6 * _ROWS
#: What a file gets in the place of some of its bytes.
_PIECES = (
    b"", b",", b";", b"\n", b"\r", b"\t", b" ", b":", b"#", b'"', b"\0", b"\xff", b"|",
    b"nan", b"-", b"1e999", b"qid:1 ", b"1,5", b"2026-01-01", b"\xef\xbb\xbf",
    b"PK\3\4", b"{", b"x" * 300, b"1 1:1\n", b",,,\n",
)  # fmt: skip


def edited(draw: Draw, content: bytes) -> bytes:
    """A file with some bytes replaced."""
    for _ in range(draw.below(4)):
        at = draw.below(2**16) % (len(content) + 1)
        content = content[:at] + draw.choice(_PIECES) + content[at + draw.below(5) :]
    return content


_VALUES = (
    "auto", "hinge", "squared_hinge", "logistic", "linear", "rbf", "poly", "sigmoid",
    "dcd", "sdca", "pegasos", "interior-point", "nystroem", "balanced", "1=2",
    "-1=0.5", "1=2,-1=3", "0", "1", "2", "3", "-1", "0.1", "1e-3", "1e300", "1e-300",
    "nan", "inf", "-inf", "1MB", "1e400", "2GB", "scale", "csv", "json", "onnx",
    "liblinear", "libsvm", "out", "data", "model", "store", "=", ",", "", "weights",
    "mean", "drop", "most-frequent", "label", "colour", "size,when", "colour,when",
    *(str(value) for value in INTEGERS if abs(value) > 10),
)  # fmt: skip
_FILES = ("data", "three", "model", "out", "store", "liblinear", "libsvm", "noise",
          "empty", "absent", "", "table", "words", "data", "table")  # fmt: skip


def options(data: bytes) -> None:
    """A command with any options on small files: a known status, never a traceback."""
    draw = Draw(data)
    name = draw.choice(sorted(commands()))
    known = commands()[name]
    arguments = [draw.choice(_FILES) for _ in range(draw.choice((1, 2, 2, 3)))]
    for _ in range(draw.below(5)):
        option, takes_value = draw.choice(known)
        arguments.append(option)
        if takes_value or draw.chance(16):
            arguments.append(draw.text(_VALUES).replace("/", "").replace("\0", ""))
    run_command(draw, name, arguments)


#: Commands that read the data $, whose outputs are one line or "out".
_LINES = (
    "train $ out", "train $ out --kernel rbf", "train $ out --bounds", "inspect $",
    "train $ out --task regression", "train $ out --task one-class", "convert $ out",
    "train $ out --standardize", "tune $ out --C 1,2 --cv 2", "path $ --n-Cs 2",
    "predict $ model", "score $ model", "certify $ model", "predict $ tables",
    "score $ tables", "certify $ tables", "train $ out --probability",
    "predict $ liblinear", "score $ libsvm", "certify $ libsvm --C 1",
    "train labels out --several-labels", "tune $ out --kernel rbf --nu 0.2,0.5 --cv 2",
)  # fmt: skip
_MORE = (
    "", "--label label", "--label 1", "--columns size,when", "--columns 1,2",
    "--columns -size", "--columns=-1,-9", "--several-labels",
    "--missing mean", "--missing drop", "--missing most-frequent", "--one-hot size",
    "--decimal ,", "--weights weights", "--weight size", "--zero-based", "--one-based",
    "--json", "--quiet", "--n-jobs 2",
)  # fmt: skip


def lines(data: bytes) -> None:
    """A sensible command on data with some bytes replaced."""
    draw = Draw(data)
    name, *arguments = draw.choice(_LINES).split()
    source = draw.choice(("data", "three", "table", "table", "table", "words", "store"))
    arguments = [source if word == "$" else word for word in arguments]
    for _ in range(draw.below(3)):
        arguments += draw.choice(_MORE).split()
    run_command(draw, name, arguments)


def run_command(draw: Draw, name: str, arguments: list[str]) -> None:
    """Run a command in a folder of small files; those it names are edited at times."""
    from dualgap.cli import run

    for option, takes_value in commands()[name]:  # the last holds: none takes long
        if option == "--time-limit" and takes_value:
            arguments += [option, "0.05"]
    folder = scratch() / "command"
    shutil.rmtree(folder, ignore_errors=True)
    (folder / "store").mkdir(parents=True)
    for file, content in command_files().items():
        chosen = file in arguments and draw.chance(2)
        (folder / file).write_bytes(edited(draw, content) if chosen else content)
    home, out, told = os.getcwd(), io.StringIO(), io.StringIO()
    os.chdir(folder)
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(told),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("default")  # as in a terminal
            status = run([name, *arguments])
    except Exception as error:
        raise FindingError(f"dualgap {name} {arguments}: {error!r}") from error
    finally:
        os.chdir(home)
    require(status in (0, 1, 2, 3), f"{name} {arguments} ended with {status!r}")
    if status in (1, 2):
        require(told.getvalue().strip(), f"{name} {arguments} failed without a word")
        raise RefusedError


TARGETS: dict[str, Callable[[bytes], None]] = {
    "models": models,
    "stores": stores,
    "sources": sources,
    "peers": peers,
    "matrices": matrices,
    "options": options,
    "lines": lines,
}


def try_one(target: str, data: bytes) -> bool:
    """Whether the input was accepted; anything but a refusal raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", dualgap.DegenerateWarning)
        # scikit-learn's own, of the infinities that it then refuses
        warnings.filterwarnings("ignore", "invalid value encountered in reduce")
        try:
            TARGETS[target](data)
        except RefusedError:
            return False
    return True


if __name__ == "__main__":
    for path in sys.argv[2:]:
        print(
            path,
            "accepted" if try_one(sys.argv[1], Path(path).read_bytes()) else "refused",
        )

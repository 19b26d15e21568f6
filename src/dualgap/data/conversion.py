"""Conversion of data files to row stores: a shuffle in bounded memory.

    scatter   Inputs are cut into chunks of `memory`/16 bytes. Every row gets a random
              64-bit key; each chunk is sorted by key and written as a run.
    gather    The range of keys is cut into intervals whose rows fit in memory. The rows
              of an interval are read from all runs, sorted by key, and written.

The rows of the store are in the order of their keys, so every permutation is equally
likely. A key depends on the seed and on the number of the row (in text, of the line).
The store therefore depends neither on `n_jobs` nor on `memory`.

Everything is written in a hidden folder beside the target; when the store is complete,
it is renamed. The conversion needs twice the disk space of the store, and room for the
unpacked arrays of .npz files.
Source     the shuffle by random keys is a sample sort (Frazer and McKellar, J. ACM 17,
           1970) of keys whose quantiles are known.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from .. import core
from ..checks import check_count, check_option
from ..memory import make_room_for
from .atomic import flush_folder
from .chunks import Chunk, Plan, Source
from .description import DESCRIPTION
from .gather import Gather, Run, in_order
from .lock import locked
from .sources import source_of
from .store import BUFFER, RowStore
from .svmlight import checked_dtype, thread_count
from .table_file import TableOptions
from .types import MatrixLike, Parameters

#: Bytes of memory of a conversion.
MEMORY = 2**30

_LARGEST_WHOLE = 2**53  # float64 cannot represent all larger whole numbers


def convert(
    inputs: Any,
    path: str | os.PathLike[str],
    *,
    format: Literal["auto", "csr", "dense"] = "auto",
    dtype: DTypeLike = np.float64,
    shuffle: bool = True,
    seed: int = 0,
    memory: int = MEMORY,
    n_jobs: int | None = None,
    overwrite: bool = False,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    label: str | None = None,
    weight: str | None = None,
    columns: Sequence[str] | None = None,
    one_hot: Sequence[str] = (),
    missing: Literal["mean", "most-frequent", "drop"] | None = None,
    decimal: Literal[".", ","] | None = None,
    thousands: Literal[",", ".", "'", " "] | None = None,
    y: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    buffer: int = BUFFER,
) -> RowStore:
    """Convert data larger than memory to a row store, with its rows in random order.

    Parameters
    ----------
    inputs : str, path-like, list of these, or iterable of tuples
        Files, whose rows are concatenated: svmlight text, plain or compressed
        (``.gz``, ``.bz2``, ``.xz``, ``.zst``); CSV or TSV, plain or compressed;
        Parquet or Arrow (these need the package pyarrow); ``.npy``; ``.npz`` of
        ``scipy.sparse.save_npz`` or with an array ``X``. Or an iterable of batches
        ``(X, y)`` or ``(X, y, sample_weight)`` of any size.
    path : str or path-like
        Folder to create.
    format : {"auto", "csr", "dense"}, default="auto"
        Format of the rows. "auto" keeps the format of the first rows. "csr" drops the
        zeros of dense rows.
    dtype : {numpy.float64, numpy.float32}, default=numpy.float64
        Type of the values. float32 rounds them and takes two thirds of the space.
    shuffle : bool, default=True
        Whether to shuffle the rows. Use False only for data that are in random order
        already, because the solvers treat a block as a random sample.
    seed : int, default=0
        Seed of the order. The same inputs and seed give the same store.
    memory : int, default=2**30
        Bytes of memory to use, at least 2**20.
    n_jobs : int, optional
        Number of threads, of which at most 4 are used; None uses all processors.
    overwrite : bool, default=False
        Whether to replace an existing store.
    zero_based : bool or "auto", default="auto"
        Whether the indices of svmlight text start at 0 or at 1. "auto" means 0 if any
        file has an index 0.
    n_features : int, optional
        Number of columns. None uses the largest number in the data.
    label, weight : str, optional
        Columns of tables with the labels and the weights, by name or number. Without
        `label` the column named label, target, class or y has the labels, or else the
        only column of text. Labels may be words; the store keeps them.
    columns : sequence of str, optional
        Columns of tables that are features or, as in "-name", that are not; None uses
        all that are left.
    one_hot : sequence of str
        Columns of tables whose values are words, though they may look like numbers.
        Columns of at most 100 words become one feature per word by themselves.
    missing : {"mean", "most-frequent", "drop"}, optional
        What to do about missing values in tables. None refuses them.
    decimal : {".", ","}, optional
        Decimal point of CSV files; None looks at the first lines.
    thousands : {",", ".", "'", " "}, optional
        Mark between thousands in CSV files.
    y : array-like or path of a .npy file, optional
        Labels of ``.npy`` and ``.npz`` files that do not contain them.
    sample_weight : array-like or path of a .npy file, optional
        Weights of the rows of all files, in their order.
    buffer : int, default=2**28
        As in :meth:`RowStore.open`.

    Returns
    -------
    RowStore
        The new store, open for reading.

    Raises
    ------
    ValueError
        If an input is malformed (the message names file and line), a value is NaN or
        infinite, an argument is out of range, or another
        conversion is writing to this path.
    FileExistsError
        If the path exists and `overwrite` is False, or it is not a store.
    ImportError
        If a format needs a missing package.

    Examples
    --------
    >>> from dualgap.data import convert
    >>> store = convert("big.svm.xz", "big.store", dtype="float32")  # doctest: +SKIP
    """
    target = os.path.abspath(os.fsdecode(path))
    if n_features is not None:
        check_count("n_features", n_features)
    check_option("format", format, ("auto", "csr", "dense"))
    check_count("seed", seed, 0)
    check_count("memory", memory, 2**20)
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(
            f"{os.path.dirname(target)}: no such folder; create it first"
        )
    plan = Plan(
        format=format,
        dtype=checked_dtype(dtype),
        shuffle=bool(shuffle),
        seed=int(seed),
        memory=int(memory),
        chunk=memory // Gather.settings.chunks,
        zero_based=zero_based,
        n_features=n_features,
        table=TableOptions(
            label, columns, weight, one_hot, missing, decimal, thousands
        ),
        y=y,
        sample_weight=sample_weight,
    )
    plan.table.check()
    source = source_of(inputs, plan)
    threads = min(thread_count(n_jobs), Gather.settings.most_threads)
    parent, name = os.path.split(target)
    with locked(os.path.join(os.path.realpath(parent), name), target):
        _check_free(target, overwrite)
        with _folder(os.path.join(parent, f".{name}.converting"), target) as folder:
            make_room_for(threads)
            with ThreadPoolExecutor(threads) as pool:
                runs = _scatter(source, folder, pool, threads)
                Gather(folder, source, runs).run(pool, threads)
            _publish(folder, target)
    return RowStore.open(target, buffer=buffer)


def _check_free(target: str, overwrite: bool) -> None:
    if not os.path.lexists(target):
        return
    if not os.path.isfile(os.path.join(target, DESCRIPTION)):
        raise FileExistsError(
            f"{target} exists and is not a row store; choose another name"
        )
    if not overwrite:
        raise FileExistsError(
            f"{target} exists; remove it, choose another name, or replace it with "
            "overwrite=True"
        )


@contextlib.contextmanager
def _folder(path: str, target: str) -> Iterator[str]:
    """Make an empty folder, in the place of one that a killed conversion has left.

    The error of a full disk names the target.
    """
    if os.path.lexists(path):
        shutil.rmtree(path)
    os.mkdir(path)
    try:
        yield path
    except OSError as error:
        if error.errno == errno.ENOSPC:
            error.filename = target
        raise
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _publish(folder: str, target: str) -> None:
    """Rename the complete store to its target."""
    store, old = os.path.join(folder, "store"), os.path.join(folder, "old")
    flush_folder(store)
    if os.path.lexists(target):
        os.rename(target, old)
    try:
        os.rename(store, target)
    except OSError:
        if os.path.lexists(old):
            os.rename(old, target)
        raise
    flush_folder(os.path.dirname(target))


def _scatter(
    source: Source, folder: str, pool: ThreadPoolExecutor, threads: int
) -> list[Run]:
    """Write one run per chunk, and return the runs."""
    plan, format_, source.folder = source.plan, source.plan.format, folder

    def numbered() -> Iterator[tuple[int, Chunk, str]]:
        nonlocal format_
        for k, chunk in enumerate(source.chunks()):
            if format_ == "auto":
                format_ = "dense" if chunk.dense else "csr"
            yield k, chunk, format_

    def write(item: tuple[int, Chunk, str]) -> Run:
        k, chunk, format_ = item
        return _write_run(os.path.join(folder, f"run-{k:06d}"), chunk, plan, format_)

    runs = list(in_order(pool, threads, write, numbered()))
    if len({bool(run.words) for run in runs if run.rows}) > 1:
        odd = next(run.words[0] for run in runs if run.words)
        raise ValueError(
            f"{source.name}: some labels are numbers and some are words, such as "
            f"{odd[:40]!r}; give labels of one kind"
        )
    if sum(run.rows for run in runs) == 0:
        raise ValueError(f"{source.name} has no rows; give data")
    return runs


def _write_run(path: str, chunk: Chunk, plan: Plan, format_: str) -> Run:
    X, labels, weight = chunk.load()
    n = len(labels)
    if plan.shuffle:
        # The key of row r is the r-th number of one sequence, whatever the chunks.
        generator = np.random.PCG64(plan.seed)
        generator.advance(chunk.first)
        keys = generator.random_raw(n)
    else:
        keys = np.arange(chunk.first, chunk.first + n, dtype=np.uint64)
    if not sparse.issparse(X) and format_ == "csr":
        X = sparse.csr_matrix(X)
    words: list[str] = []
    if labels.dtype.kind == "U":
        found, labels = np.unique(labels, return_inverse=True)
        words = found.tolist()
    y = labels.astype(np.float64)
    facts = _inspected(X, y, weight, chunk) | {"words": words}
    order = np.argsort(keys, kind="stable")
    X = X[order]
    arrays = {"keys": keys[order], "y": y[order]}
    if weight is not None:
        arrays["weight"] = weight[order]
    if sparse.issparse(X):
        arrays |= {"indptr": X.indptr.astype(np.int64, copy=False)}
        arrays |= {"indices": X.indices, "values": X.data}
    else:
        arrays["values"] = X
    return Run.written(path, arrays, **facts)


def _inspected(
    X: MatrixLike,
    y: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    chunk: Chunk,
) -> Parameters:
    """Refuse invalid values, labels and weights, and return the facts about a run."""
    n, dense = X.shape[0], not sparse.issparse(X)
    indices = np.empty(0, np.int32) if dense else X.indices
    rows = (
        core.dense_rows(X, 0.0)
        if dense
        else core.csr_rows(X.data, indices, X.indptr, X.shape[1], 0.0)
    )
    fault, where, unique = rows.inspect(np.empty(n))
    if fault is not None or not unique:
        raise ValueError(f"{chunk.place(where)}: {fault or 'a row has a column twice'}")
    for name, array in (("label", y), ("weight", weight)):
        if array is not None and not np.isfinite(array).all():
            bad = int(np.argmin(np.isfinite(array)))
            raise ValueError(f"{chunk.place(bad)}: {name} is {array[bad]}")
    if weight is not None and (weight < 0.0).any():
        bad = int(np.argmax(weight < 0.0))
        raise ValueError(f"{chunk.place(bad)}: weight {weight[bad]} is negative")
    lengths = np.diff(X.indptr) if not dense else np.full(min(n, 1), X.shape[1])
    columns = X.shape[1]
    if not chunk.columns:
        columns = int(indices.max()) + 1 if indices.size else 0
    return {
        "lowest": int(indices.min()) if indices.size else -1,
        "columns": columns,
        "largest_row": int(lengths.max()) if len(lengths) else 0,
        "whole": bool(((y == np.trunc(y)) & (np.abs(y) < _LARGEST_WHOLE)).all()),
        "least": float(y.min()) if n else 0.0,
        "most": float(y.max()) if n else 0.0,
    }

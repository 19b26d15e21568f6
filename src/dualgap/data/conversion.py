"""Conversion of data files to row stores: a resumable shuffle in bounded memory.

    scatter   Inputs are cut into chunks of `memory`/16 bytes. Every row gets a random
              64-bit key; each chunk is sorted by key and written as a run.
    gather    The range of keys is cut into intervals whose rows fit in memory. The rows
              of an interval are read from all runs, sorted by key, and written.

The rows of the store are in the order of their keys, so every permutation is equally
likely. A key depends on the seed and on the number of the row (in text, of the line).
The store therefore does not depend on `n_jobs`.

Everything is written in a hidden folder beside the target; when the store is complete,
it is renamed. After each run and each interval is on the disk, a line is added to a
journal, from which a killed conversion resumes. The conversion needs twice the disk
space of the store.
Source     the shuffle by random keys is a sample sort (Frazer and McKellar, J. ACM 17,
           1970) of keys whose quantiles are known.
"""

from __future__ import annotations

import logging
import os
from dataclasses import asdict
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray
from scipy import sparse

from .. import core
from . import sources
from .description import (
    DESCRIPTION,
    FORMAT_VERSION,
)
from .gather import Crew, Gather
from .lock import locked
from .store import BUFFER, RowStore, whole_number
from .svmlight import _check_n_features, _checked_dtype, _thread_count
from .types import MatrixLike
from .work import Run, StorePlan, Work

__all__ = ["convert"]

logger = logging.getLogger("dualgap")

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
    resume: bool = True,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    label: str = "label",
    weight: str | None = None,
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
        ``(X, y)`` or ``(X, y, sample_weight)`` of any size, or of functions that return
        a batch of at most `memory`/16 bytes. A resumed conversion does not call
        functions whose batches are already written.
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
        Seed of the order. The same inputs, seed and `memory` give the same store.
    memory : int, default=2**30
        Bytes of memory to use, at least 2**20.
    n_jobs : int, optional
        Number of threads, of which at most 4 are used; None uses all processors.
    overwrite : bool, default=False
        Whether to replace an existing store.
    resume : bool, default=True
        Whether to resume a killed conversion to the same path. Batches must then come
        in the same order. False starts over.
    zero_based : bool or "auto", default="auto"
        Whether the indices of svmlight text start at 0 or at 1. "auto" means 0 if any
        file has an index 0.
    n_features : int, optional
        Number of columns. None uses the largest number in the data.
    label, weight : str
        Columns of tables with the labels and, if given, the weights. All other columns
        are features. In CSV and TSV files that lack the column "label", the labels are
        in the column target, class or y, or in the only column of text.
    y, sample_weight : array-like or path of a .npy file, optional
        Labels and weights of ``.npy`` and ``.npz`` files that do not contain them.
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
        infinite, labels are not numbers, an argument is out of range, an unfinished
        conversion had other inputs or arguments, or another conversion is writing to
        this path.
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
    _check_n_features(n_features)
    if format not in ("auto", "csr", "dense"):
        raise ValueError(f"format={format!r} is unknown; use 'auto', 'csr' or 'dense'")
    seed = whole_number("seed", seed, 0, 2**64)
    memory = whole_number("memory", memory, 2**20)
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(
            f"{os.path.dirname(target)}: no such folder; create it first"
        )
    reading = sources.Reading(
        dtype=_checked_dtype(dtype),
        chunk=memory // Gather.settings.chunks,
        zero_based=zero_based,
        label=label,
        weight=weight,
        y=y,
        sample_weight=sample_weight,
    )
    source = sources.source_of(inputs, reading)
    plan: StorePlan = {
        "store_format": FORMAT_VERSION,
        "inputs": source.identity,
        "format": format,
        "dtype": reading.dtype.str,
        "shuffle": bool(shuffle),
        "seed": seed,
        "memory": memory,
        "zero_based": zero_based,
        "n_features": n_features,
        "label": label,
        "weight": weight,
    }
    threads = min(_thread_count(n_jobs), Gather.settings.most_threads)
    parent, name = os.path.split(target)
    with locked(os.path.join(os.path.realpath(parent), name), target):
        if not (resume and Work.was_published(target, plan)):
            _check_free(target, overwrite)
            with Work.begin(target, plan, resume) as work:
                if work.complete is None:
                    work.run(_Conversion(work, plan, threads), source)
                work.publish(target)
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


# ------------------------------------------------------------------------ conversion


class _Conversion:
    """Conversion of inputs to a store in the hidden folder."""

    def __init__(self, work: Work, plan: StorePlan, threads: int) -> None:
        self.work, self.plan, self.threads = work, plan, threads
        self.format = plan["format"]

    def run(self, source: sources.Source) -> None:
        if self.work.scattered is None:
            count = self._scatter(source)
            self.work.note(runs=count)
            self.work.scattered = count
        Gather(self.work, self.plan, self.threads).run()

    def _scatter(self, source: sources.Source) -> int:
        """Write one run per chunk, and return the number of runs."""
        count = 0
        with Crew(self.threads) as crew:
            known = {k: run.rows for k, run in self.work.runs.items()}
            for k, chunk in enumerate(source.chunks(known)):
                count = k + 1
                if self.format == "auto":
                    dense = self.work.runs[k].dense if chunk is None else chunk.dense
                    self.format = "dense" if dense else "csr"
                if chunk is not None and k not in known:
                    crew.do(self._write_run, k, chunk)
        if sum(run.rows for run in self.work.runs.values()) == 0:
            raise ValueError(f"{source.name} has no rows; give data")
        return count

    def _write_run(self, k: int, chunk: sources.Chunk) -> None:
        X, y, weight = chunk.load()
        n = len(y)
        if self.plan["shuffle"]:
            # The key of row r is the r-th number of one sequence, whatever the chunks.
            keys = _keys(self.plan["seed"], chunk.first, n)
        else:
            keys = np.arange(chunk.first, chunk.first + n, dtype=np.uint64)
        if not sparse.issparse(X) and self.format == "csr":
            X = sparse.csr_matrix(X)
        run = _describe(X, y, weight, chunk)
        order = np.argsort(keys, kind="stable")
        sections: list[NDArray[np.generic]] = [keys[order], y[order]]
        if weight is not None:
            sections.append(weight[order])
        X = X[order]
        if run.dense:
            sections.append(X)
        else:
            indices = X.indices.astype(np.int64 if run.wide else np.int32, copy=False)
            sections += [X.indptr.astype(np.int64, copy=False), indices, X.data]
        # An incomplete run is not in the journal, and is written again.
        with open(self.work.run_file(k), "wb") as file:
            for section in sections:
                file.write(
                    np.ascontiguousarray(section).reshape(-1).view(np.uint8).data
                )
            file.flush()
            os.fsync(file.fileno())
        self.work.note(run=k, **{"is": asdict(run)})
        self.work.runs[k] = run


def _keys(seed: int, first: int, n: int) -> NDArray[np.uint64]:
    generator = np.random.PCG64(seed)
    generator.advance(first)
    return generator.random_raw(n)


def _describe(
    X: MatrixLike,
    y: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
    chunk: sources.Chunk,
) -> Run:
    """Check the values of a chunk, and return the description of its run.

    Raises
    ------
    ValueError
        If a value, label or weight is invalid; the message names its place.
    """
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
    return Run(
        rows=n,
        entries=int(rows.stored),
        dense=dense,
        wide=indices.dtype.itemsize > 4,
        weights=weight is not None,
        lowest=int(indices.min()) if indices.size else -1,
        columns=X.shape[1]
        if chunk.columns
        else (int(indices.max()) + 1 if indices.size else 0),
        largest_row=int(lengths.max()) if len(lengths) else 0,
        whole=bool(((y == np.trunc(y)) & (np.abs(y) < _LARGEST_WHOLE)).all()),
        least=float(y.min()) if n else 0.0,
        most=float(y.max()) if n else 0.0,
    )

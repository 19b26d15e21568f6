"""``dualgap convert`` and ``dualgap inspect``: data to a row store, or described."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from .data import (
    DASH,
    FileExamples,
    check_files,
    is_store,
    read_data,
    refuse_model,
    shortened,
    table_options,
    told_of_text,
    weights_in,
)
from .fields import whole
from .options import WEIGHTS, Options, in_options
from .parser import Argument, Values
from .report import print_json

if TYPE_CHECKING:
    from ..data.table_file import TableOptions

CONVERT = (
    "dualgap convert big.svm.xz big.store --single",
    "dualgap convert part-*.parquet big.store --label clicked --memory 4GB",
    "dualgap train big.store big.model --checkpoint big.checkpoint",
    "The conversion works in a hidden folder beside STORE and needs twice its space. "
    "STORE appears when it is complete. A conversion that was killed starts over when "
    "the command is repeated.",
)


OPTIONS = """
Output:
  --format auto|csr|dense
    How to store the rows; auto is the format of the first ones. [default: auto]
  --shuffle /--no-shuffle
    Put the rows in random order, which the solvers rely on, or not. [default:
    --shuffle]
  --seed N
    Seed of the random order. [default: 0]
  --single
    Round values to float32.
  --overwrite
    Replace an existing store.
Options:
  --memory SIZE
    Memory to use, such as 500MB or 4GB. [default: 1GiB]
Data:
  --labels FILE
    .npy file with the labels, for .npy and .npz files without labels.
"""


def add_convert(command: Options) -> None:
    """Add the options."""
    text = (
        "Input files: svmlight text, CSV or TSV (also compressed), Parquet, Arrow, "
        ".npy or .npz, known by their content."
    )
    command.arguments.append(Argument("inputs", "IN", text, many=True))
    command.output("STORE", "Folder to create.", name="store")
    command.add(OPTIONS, seed=whole(0))
    command.n_features("IN")
    command.table_options("IN")
    command.add(WEIGHTS)
    command.jobs()
    command.common()


def convert(o: Values) -> None:
    """Make the store."""
    from ..data import convert as converted

    if o.store == DASH:
        raise ValueError("a store cannot be '-'; give a path, such as ./-")
    if DASH in o.inputs:
        raise ValueError(
            "convert reads files, not standard input (-), because tables are read "
            "twice; save the input to a file, or give svmlight text as /dev/stdin"
        )
    for path in o.inputs:
        refuse_model(path)
    said = _said_of(o.inputs[0], table_options(o))
    weight = None if o.weights is None else weights_in(o.weights).values
    begun = time.perf_counter()
    store = converted(
        o.inputs,
        o.store,
        format=o.format,
        dtype="float32" if o.single else "float64",
        shuffle=o.shuffle,
        seed=o.seed,
        memory=int(1e6 * o.memory),
        n_jobs=o.n_jobs,
        overwrite=o.overwrite,
        zero_based="auto" if o.zero_based is None else o.zero_based,
        n_features=o.n_features,
        **table_options(o)._asdict(),
        y=o.labels,
        sample_weight=weight,
    )
    seconds = time.perf_counter() - begun
    if store.features is not None:
        said += store.features.said()
        if store.features.missing == "drop":
            said.append("rows with missing values left out")
    if said:
        print(f"{o.store}: {'; '.join(said)}.", file=sys.stderr)
    if o.json:
        print_json(
            {
                "path": store.path,
                "n": store.n_samples,
                "d": store.n_features,
                "nnz": store.nnz,
                "dense": not store.is_sparse,
                "dtype": str(store.dtype),
                "weights": store.has_weights,
                "zero_based": store.zero_based,
                "seconds": seconds,
            }
        )
        return
    print(
        f"{o.store}: {store.n_samples:,} examples, {store.n_features:,} features, "
        f"{store.nnz:,} values, made in {seconds:.2f} s"
    )


def _said_of(path: str, options: TableOptions) -> list[str]:
    """Return sentences about what is not used of a file; a pipe is read only once."""
    from ..data.opening import open_data
    from ..data.tables import TABLES, open_table

    if not os.path.isfile(path):
        return []
    with open_data(path) as file:
        if file.kind not in TABLES:
            return told_of_text(file)
        with open_table(file.content, file.kind, path, options) as table:
            return table.left_out(table.layout(options, True))


INSPECT = ("dualgap inspect a9a.xz", "dualgap inspect a9a.xz --json")

_VERIFY = """
Options:
  --verify
    Compare every byte of a store with its checksums.
"""


def add_inspect(command: Options) -> None:
    """Add the options."""
    command.data(store=True)
    command.table_options()
    command.jobs()
    command.add(_VERIFY)
    command.common()


def inspect(o: Values) -> None:
    """Print the description."""
    check_files(o)
    from ..data.table_file import TableError

    needed = o.label is not None
    try:
        examples = read_data(o, needs_label=needed)
    except TableError as error:
        dates = error.unusable if o.columns is None else ""
        if not (dates or o.missing is None) or not os.path.isfile(o.data):
            raise
        if dates:  # and other columns that are no features
            print(f"{in_options(str(error))}.", file=sys.stderr)
            o.columns = dates
        given, o.missing = o.missing, o.missing or "most-frequent"
        examples = read_data(o, needs_label=needed)
        # The user did not ask to fill them.
        filled = "missing values filled"
        said = [one for one in examples.said if given or filled not in one]
        examples = replace(examples, said=said)
    if o.verify:
        if not is_store(o.data):
            raise ValueError(f"{o.data} is not a store; leave --verify out")
        examples.X.verify(n_jobs=max(o.n_jobs or 1, 1))
    more = _more_facts(examples)
    facts = examples.facts() | more | {"missing": examples.gaps}
    if o.json:
        print_json(facts)
        return
    examples.tell()
    norm, classes = more["row_norm"], more["classes"]
    counts = [f"{c['label']}: {c['count']}" for c in classes]
    many = len(counts) > 20
    numbering = f"from {0 if examples.zero_based else 1}"
    if examples.features is not None:
        names = examples.names or [column.name for column in examples.features.columns]
        numbering = shortened(names)
    rows = {
        "examples": f"{facts['n']:,}",
        "features": f"{facts['d']:,}, {numbering}",
        "values": f"{facts['nnz']:,} ({100 * more['density']:.3g} % of all)",
        "classes": f"{len(classes)} ({', '.join(counts[:20])}{', ...' * many})",
        "row norms": f"min {norm['min']:.4g}, median {norm['median']:.4g}, "
        f"max {norm['max']:.4g}",
        "empty rows": f"{more['empty_rows']:,}",
        "memory": f"{more['memory_bytes'] / 1e6:,.1f} MB of values"
        + ("" if is_store(o.data) else "; training takes about 3 times as much"),
    }
    if examples.gaps:
        counts = [f"{name}: {count:,}" for name, count in examples.gaps.items()]
        rows["missing"] = f"{', '.join(counts)}; train needs --missing"
    if not examples.labelled:
        rows["classes"] = "none: no column of labels; name one with --label"
    elif examples.y.dtype.kind == "f":
        low, high = examples.y.min(), examples.y.max()
        rows["classes"] = f"none: targets from {low:g} to {high:g}"
    for name, text in rows.items():
        print(f"{name:<11}{text}")


def _more_facts(examples: FileExamples) -> dict[str, Any]:
    import numpy as np

    from ..problems.binary import BinaryProblem

    X, y = examples.X, examples.y
    n, d = examples.shape
    labels, counts = np.unique(y, return_counts=True)
    norms = np.sqrt(BinaryProblem(X, np.ones(n)).q)
    if is_store(examples.path):
        size = sum(os.path.getsize(X.file(name)) for name in X.dtypes)
    else:
        held = (X.data, X.indices, X.indptr) if hasattr(X, "indptr") else (X,)
        size = sum(a.nbytes for a in (*held, y))
    return {
        "density": examples.nnz / (n * d) if d else 0.0,
        "classes": [
            {"label": label, "count": count}
            for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
            if examples.labelled
        ],
        "row_norm": {
            "min": float(norms.min()),
            "median": float(np.median(norms)),
            "max": float(norms.max()),
        },
        "empty_rows": int((norms == 0.0).sum()),
        "memory_bytes": size,
    }


COMMANDS = {
    "convert": (CONVERT, add_convert, convert),
    "inspect": (INSPECT, add_inspect, inspect),
}

"""``dualgap convert``: convert data larger than memory to a row store."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from .data import table_options, told_of_text, weights_in
from .files import DASH, refuse_model
from .options import WEIGHTS, Options
from .parser import Argument, Values
from .report import print_json
from .values import whole

if TYPE_CHECKING:
    from ..data.table_file import TableOptions

EPILOG = (
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


def add(command: Options) -> None:
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


def run(o: Values) -> None:
    """Make the store."""
    from ..data import convert

    if o.store == DASH:
        raise ValueError("a store cannot be '-'; give a path, such as ./-")
    for path in o.inputs:
        refuse_model(path)
    said = _said_of(o.inputs[0], table_options(o))
    weight = None if o.weights is None else weights_in(o.weights).values
    begun = time.perf_counter()
    store = convert(
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
        marks = options.decimal, options.thousands
        table = open_table(file.content, file.kind, path, *marks)
        with contextlib.closing(table):
            return table.left_out(table.layout(options, True))


COMMANDS = {"convert": (EPILOG, add, run)}

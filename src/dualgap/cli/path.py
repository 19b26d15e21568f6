"""``dualgap path``: train for many values of C."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from . import NOT_CERTIFIED
from .data import (
    TableReading,
    facts_of,
    read_data,
    refuse_untrainable,
    standardized,
    summary,
    table_options,
    tell,
)
from .files import (
    refuse_overwriting_by_model,
    refuse_store,
    refuse_unreadable,
    refuse_unwritable,
)
from .options import Options, parameters_of
from .parser import UsageError, Values
from .report import draw, picture_format, plain_warnings, print_json, table
from .values import whole

if TYPE_CHECKING:
    from ..data.scaling import Scaling
    from ..data.types import Parameters
    from .data import FileExamples

EPILOG = (
    "dualgap path a9a",
    "dualgap path a9a path.png --C 0.01,0.1,1,10 --loss squared_hinge",
    "dualgap path a9a --n-Cs 9 --class-weight balanced",
    "Each C starts from the solution of the previous, smaller one, which saves most of "
    "the work. Each model has its own certificate. dualgap tune chooses one of them.",
    "Exit status: 0 every model is certified to --tol; 3 some are not; 1 bad data or "
    "files; 2 wrong usage.",
)
#: Values of C without --C.
GRID = (0.001, 0.01, 0.1, 1.0, 10.0)


def add(command: Options) -> None:
    """Add the options."""
    add_grid(command, "LinearSVCCV", without=("cv", "scoring"))
    text = "Picture of the coefficients against C: .png, .svg or .pdf."
    command.output("PICTURE", text, name="picture", shown="none")


def add_grid(command: Options, *searches: str, without: Sequence[str] = ()) -> None:
    """Add the options of commands that train for many values of C."""
    command.data()
    command.table_options()
    command.weights()
    command.standardize()
    without = ("checkpoint", "checkpoint_every", *without)
    command.fields_of(*searches, without=without)
    text = "Instead of --C: this many values from 1e-4 to 1e4."
    command.add("--n-Cs", text, whole(2), "N", group="Model")
    command.jobs("training several classes", "all for reading, 1 for training")
    command.common(trains=True)


def run(o: Values) -> int:
    """Train the path, and print a row for every C."""
    import numpy as np

    from ..estimators import svm_path

    parameters = grid_of(o, "LinearSVCCV")
    examples, _ = read_for(o, "path", [o.picture])
    if o.picture is not None:
        picture_format(o.picture)
    with plainly():
        weight = examples.weight
        found = svm_path(examples.X, examples.y, sample_weight=weight, **parameters)
    rows = []
    for C, coefs, certificate in zip(
        found.Cs, found.coefs, found.certificates, strict=True
    ):
        each = certificate.parts
        rows.append(
            {
                "C": float(C),
                "relative_gap": float(np.max([c.relative_gap for c in each])),
                "primal": sum(c.primal for c in each),
                "norm": float(np.linalg.norm(coefs)),
                "epochs": sum(c.epochs for c in each),
                "seconds": sum(c.seconds for c in each),
            }
        )
    if o.picture is not None:
        from ..plot import PathDisplay

        draw(PathDisplay.from_path(found), o.picture)
    show(o, rows, {}, examples)
    # The gap of a model that was not trained in time is NaN.
    tol = parameters.get("tol", 1e-3)
    return 0 if all(row["relative_gap"] <= tol for row in rows) else NOT_CERTIFIED


def grid_of(o: Values, search: str) -> Parameters:
    """Return the parameters of a search, with values of C."""
    if o.Cs is not None and o.n_Cs is not None:
        raise UsageError("--C and --n-Cs exclude each other.")
    found = parameters_of(o, search)
    if o.solver is not None and search == "LinearSVCCV":
        from ..solvers import SOLVERS, get_solver

        able = [name for name in SOLVERS if get_solver(name).dual]
        if o.solver not in able:
            raise UsageError(
                f"--solver {o.solver} keeps no dual variables; use {' or '.join(able)}."
            )
    grid = sorted({C for part in o.Cs or [GRID] for C in part})
    return found | {"Cs": o.n_Cs or grid}


def read_for(
    o: Values, command: str, outputs: Sequence[str | None]
) -> tuple[FileExamples, Scaling | None]:
    """Read the examples of a command that trains classifiers, if it can write."""
    refuse_unreadable(o.data, "give a data file")
    refuse_store(o.data, command)
    for name in outputs:
        if name is not None:
            refuse_unwritable(name, [o.data])
    if getattr(o, "model", None) is not None:
        refuse_overwriting_by_model(o.model)
    reading = TableReading(table_options(o), weights=o.weights)
    examples = read_data(o.data, o.zero_based, o.n_jobs, reading=reading)
    examples, scaling = standardized(examples, o.standardize)
    refuse_untrainable(examples, command)
    if command == "tune":
        refuse_folds(o.cv or 5, examples)
    if not o.quiet:
        print(summary(examples), file=sys.stderr)
        tell(examples)
    return examples, scaling


def refuse_folds(folds: int, examples: FileExamples) -> None:
    """Raise an error for more folds than any class has examples."""
    import numpy as np

    _, counts = np.unique(examples.y, return_counts=True)
    if folds > counts.max():
        least = counts.min()
        raise ValueError(
            f"--cv {folds} is too large, as the smallest class of {examples.path} has "
            f"{least} examples; give at most {max(2, least)}"
        )


@contextlib.contextmanager
def plainly() -> Iterator[None]:
    """Leave out warnings that the table and the exit status tell."""
    from sklearn.exceptions import ConvergenceWarning

    with plain_warnings(), warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def show(
    o: Values,
    rows: Sequence[Mapping[str, float]],
    facts: Mapping[str, object],
    examples: FileExamples,
) -> None:
    """Print the models as a table, or as JSON."""
    if o.json:
        print_json({**facts, "models": rows, "data": facts_of(examples)})
        return
    cells = [[_cell(value, name) for name, value in row.items()] for row in rows]
    for line in table(list(rows[0]), cells):
        print(line)
    best = [
        f"{name[5:]} {_cell(v, name[5:])}"
        for name, v in facts.items()
        if name[:5] == "best_"
    ]
    if best:
        print(f"Best: {', '.join(best)}.")
    for file, what in ((getattr(o, "model", None), "Model"), (o.picture, "Picture")):
        if file is not None:
            print(f"{what} written to {file}")


def _cell(value: object, name: str) -> str:
    digits = _DIGITS.get(name, 4)
    return f"{value:.{digits}g}" if isinstance(value, float) else str(value)


#: Digits of the columns that have not four; values of C and gamma are chosen ones.
_DIGITS = {"relative_gap": 2, "std_score": 2, "seconds": 2, "C": 6, "gamma": 6}

"""``dualgap path`` and ``dualgap tune``: train for many values of C."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from . import NOT_CERTIFIED
from .data import read_data, refuse_untrainable, save, standardized
from .files import check_files
from .options import STANDARDIZE, WEIGHTS, Options, parameters_of
from .parser import UsageError, Values
from .records import refuse_shape
from .report import (
    draw,
    picture_format,
    plain_warnings,
    print_json,
    table,
    without_convergence_warnings,
)
from .values import whole

if TYPE_CHECKING:
    from ..data.scaling import Scaling
    from ..data.types import Parameters
    from .data import FileExamples

_STATUS = (
    "Exit status: 0 all models are certified to --tol; 3 some are not; 1 bad data or "
    "files; 2 wrong usage."
)
PATH = (
    "dualgap path a9a",
    "dualgap path a9a path.png --C 0.01,0.1,1,10 --loss squared_hinge",
    "dualgap path a9a --n-Cs 9 --class-weight balanced",
    "Each C starts from the solution of the previous, smaller one, which saves most of "
    "the work. Each model has its own certificate. dualgap tune chooses one of them.",
    _STATUS,
)
TUNE = (
    "dualgap tune a9a a9a.model",
    "dualgap tune a9a --C 0.01,0.1,1,10 --cv 10 --picture scores.png",
    "dualgap tune a9a a9a.model --kernel rbf --C 0.1,1,10 --gamma 0.01,0.1,scale",
    "Every fold trains all values of C, each from the solution of the previous one, "
    "and proves every model. MODEL is trained on all of DATA with the best parameters.",
    _STATUS,
)
#: Values of C without --C.
GRID = (0.001, 0.01, 0.1, 1.0, 10.0)
_N_CS = """
Model:
  --n-Cs N
    Instead of --C: this many values, 2 or more, from 1e-4 to 1e4.
"""
_PICTURE = """
Output:
  --picture FILE
    Draw the scores against C: .png, .svg or .pdf.
"""


def add_path(command: Options) -> None:
    """Add the options of path."""
    _add(command, "LinearSVCCV", without=("cv", "scoring"))
    text = "Picture of the coefficients against C: .png, .svg or .pdf."
    command.output("PICTURE", text, name="picture", shown="none")


def add_tune(command: Options) -> None:
    """Add the options of tune."""
    _add(command, "LinearSVCCV", "SVCCV")
    text = "File for the model of the best parameters, in the safetensors format."
    command.output("MODEL", text, "model", name="model", shown="none")
    command.add(_PICTURE)
    command.writes["picture"] = ""


def _add(command: Options, *searches: str, without: Sequence[str] = ()) -> None:
    command.data()
    command.table_options()
    command.add(WEIGHTS + STANDARDIZE)
    without = ("checkpoint", "checkpoint_every", *without)
    command.fields_of(*searches, without=without)
    command.add(_N_CS, n_Cs=whole(2))
    command.jobs("training several classes", "all for reading, 1 for training")
    command.common(trains=True)


def path(o: Values) -> int:
    """Train the path, and print a row for every C."""
    parameters = _grid(o, "LinearSVCCV")
    examples, _ = _read(o)
    import numpy as np

    from ..estimators import svm_path

    with plain_warnings(), without_convergence_warnings():
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
    _show(o, rows, {}, examples)
    # The gap of a model that was not trained in time is NaN.
    tol = parameters.get("tol", 1e-3)
    return 0 if all(row["relative_gap"] <= tol for row in rows) else NOT_CERTIFIED


def tune(o: Values) -> int:
    """Search, print a row for every candidate, and write the best model."""
    search = "LinearSVCCV" if o.kernel is None else "SVCCV"
    parameters = _grid(o, search) | {"refit": o.model is not None}
    if o.kernel is not None:
        if o.picture is not None:
            raise UsageError("--picture is not for --kernel; leave it out.")
        o.gamma = o.gammas
        refuse_shape(o)
    if o.gammas is not None:
        parameters["gammas"] = [gamma for part in o.gammas for gamma in part]
    examples, scaling = _read(o)
    import numpy as np

    from .. import estimators

    with plain_warnings(), without_convergence_warnings():
        model = getattr(estimators, search)(**parameters)
        found = model.fit(examples.X, examples.y, examples.weight)
    results = found.cv_results_
    folds = range(found.n_splits_)
    gaps = np.stack([results[f"split{f}_relative_gap"] for f in folds])
    rows = [
        {
            **params,
            "relative_gap": float(gaps[:, k].max()),
            "mean_score": float(results["mean_test_score"][k]),
            "std_score": float(results["std_test_score"][k]),
        }
        for k, params in enumerate(results["params"])
    ]
    facts = {f"best_{name}": value for name, value in found.best_params_.items()}
    facts["best_score"] = float(found.best_score_)
    proved = all(row["relative_gap"] <= found.tol for row in rows)
    if o.model is not None:
        best = found.best_estimator_
        save(best, o.model, examples, scaling)
        proved = proved and best.certificate_.certified
        facts |= {"model": o.model}
    if o.picture is not None:
        from ..plot import PathDisplay

        draw(PathDisplay.from_estimator(found), o.picture)
    _show(o, rows, facts | {"certified": proved}, examples)
    for option, key in (("--C", "C"), ("--gamma", "gamma")):
        if advice := _beyond(option, key, rows, found.best_params_):
            print(advice, file=sys.stderr)
    return 0 if proved else NOT_CERTIFIED


def _beyond(
    option: str,
    key: str,
    rows: Sequence[Mapping[str, float | str]],
    best: Mapping[str, float | str],
) -> str:
    """Return advice if the best value is the least or largest, and alone the best."""
    scores = {
        value: row["mean_score"]
        for row in rows
        if isinstance(value := row.get(key), float)
        and all(row[name] == best[name] for name in best if name != key)
    }
    values = sorted(scores)
    if len(values) < 2 or best.get(key) not in (values[0], values[-1]):
        return ""
    low = best[key] == values[0]
    end, neighbour = (values[0], values[1]) if low else (values[-1], values[-2])
    if scores[end] == scores[neighbour]:
        return ""
    step = end / neighbour
    more = ",".join(f"{end * step**k:.6g}" for k in range(3))
    return (
        f"The best {key} is the {'smallest' if low else 'largest'} that was tried: "
        f"try {option} {more} too."
    )


def _grid(o: Values, search: str) -> Parameters:
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
    if o.picture is not None:
        picture_format(o.picture)
    grid = sorted({C for part in o.Cs or [GRID] for C in part})
    return found | {"Cs": o.n_Cs or grid}


def _read(o: Values) -> tuple[FileExamples, Scaling | None]:
    """Read the examples, if classifiers can be trained on them."""
    check_files(o)
    examples, scaling = standardized(read_data(o), o.standardize)
    refuse_untrainable(examples)
    if hasattr(o, "cv"):
        _refuse_folds(o.cv or 5, examples)
    if not o.quiet:
        print(examples.summary(), file=sys.stderr)
        examples.tell()
    return examples, scaling


def _refuse_folds(folds: int, examples: FileExamples) -> None:
    """Raise an error for more folds than any class has examples."""
    import numpy as np

    _, counts = np.unique(examples.y, return_counts=True)
    if folds > counts.max():
        least = counts.min()
        raise ValueError(
            f"--cv {folds} is too large, as the smallest class of {examples.path} has "
            f"{least} examples; give at most {max(2, least)}"
        )


def _show(
    o: Values,
    rows: Sequence[Mapping[str, float]],
    facts: Mapping[str, object],
    examples: FileExamples,
) -> None:
    """Print the models as a table, or as JSON."""
    if o.json:
        print_json({**facts, "models": rows, "data": examples.facts()})
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
COMMANDS = {"path": (PATH, add_path, path), "tune": (TUNE, add_tune, tune)}

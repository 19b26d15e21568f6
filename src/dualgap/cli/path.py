"""``dualgap path`` and ``dualgap tune``: train for many values of C."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from typing import TYPE_CHECKING

from .data import check_files, read_data
from .fields import several, stored, whole
from .options import (
    STANDARDIZE,
    WEIGHTS,
    Options,
    estimator_of,
    parameters_of,
    reader_for,
    refuse_shape,
)
from .parser import UsageError, Values
from .report import (
    draw,
    exit_status,
    interrupted,
    picture_format,
    plain_warnings,
    print_json,
    table,
    without_convergence_warnings,
)
from .train import refuse_untrainable, save, standardized

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

    from ..data.scaling import Scaling
    from ..data.types import MatrixLike, Parameters
    from .data import FileExamples, Model

_STATUS = (
    "Exit status: 0 all models are certified to --tol; 3 some are not; 1 bad data or "
    "files; 2 wrong usage; 130 interrupted by Ctrl-C."
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
    "dualgap tune a9a a9a.model --kernel rbf --nu 0.1,0.2,0.3",
    "dualgap tune prices prices.model --task regression --epsilon 0.1,1",
    "Every fold trains all values of C, each from the solution of the previous one, "
    "and proves every model. MODEL is trained on all of DATA with the best parameters. "
    "The folds of a regression are drawn at random. Its score is R2 or, with --loss "
    "quantile, D2: R2 with the pinball loss in the place of the square.",
    _STATUS,
)
#: Values of C without --C.
GRID = (0.001, 0.01, 0.1, 1.0, 10.0)
_N_CS = """
Model:
  --n-Cs N
    Instead of --C: this many values, 2 or more, from 1e-4 to 1e4.
"""
_TUNED = """
Model:
  --task classification|regression
    What to train. [default: classification]
  --nu -n X,... ...
    Values of nu, in the place of C or of epsilon; they need --kernel.
  --epsilon -p X,... ...
    Values of epsilon, for --task regression. [default: as in train]
Output:
  --picture FILE
    Draw the scores of a linear classifier against C: .png, .svg or .pdf.
"""
#: Parameters that may have several values, and the option values that hold them.
_GRIDS = {"C": "Cs", "gamma": "gammas", "epsilon": "epsilon", "nu": "nu"}
_SEARCHES = {"LinearSVC": "LinearSVCCV", "SVC": "SVCCV"}


def add_path(command: Options) -> None:
    """Add the options of path."""
    _add(command, "LinearSVCCV", without=("cv", "scoring"))
    text = "Picture of the coefficients against C: .png, .svg or .pdf."
    command.output("PICTURE", text, name="picture", shown="none")


def add_tune(command: Options) -> None:
    """Add the options of tune."""
    others = ("LinearSVR", "SVR", "NuSVC", "NuSVR")
    _add(command, *_SEARCHES.values(), *others, without=[*_GRIDS])
    text = "File for the model of the best parameters, in the safetensors format."
    command.output("MODEL", text, "model", name="model", shown="none")
    readers = {name: several(reader_for(name)) for name in ("epsilon", "nu")}
    command.add(_TUNED, **readers)
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
    proved = all(row["relative_gap"] <= tol for row in rows)
    cut_short = interrupted(*found.certificates)
    _tell_unfinished(rows, "relative_gap", cut_short)
    return exit_status(proved, cut_short)


def tune(o: Values) -> int:
    """Search, print a row for every candidate, and write the best model."""
    name, parameters, grid = _chosen(o)
    examples, scaling = _read(o)
    import numpy as np

    with plain_warnings(), without_convergence_warnings():
        found = _search(o, name, parameters, grid)
        weight = {} if examples.weight is None else {"sample_weight": examples.weight}
        try:
            found.fit(examples.X, examples.y, **weight)
        except (ValueError, TypeError, AttributeError) as error:
            frames = traceback.extract_tb(error.__traceback__)
            files = [os.path.dirname(frame.filename) for frame in frames]
            if o.scoring is None or not any("metrics" in name for name in files):
                raise
            told = str(error).rstrip(".")
            raise ValueError(
                f"--scoring {o.scoring} does not go with these labels: {told}; choose "
                "another score"
            ) from None
    results = found.cv_results_
    gaps = [gap for key, gap in results.items() if fnmatch(key, "split*_relative_gap")]
    rows = [
        {
            **params,
            "relative_gap": float(np.max([gap[k] for gap in gaps])),
            "mean_score": float(results["mean_test_score"][k]),
            "std_score": float(results["std_test_score"][k]),
        }
        for k, params in enumerate(results["params"])
    ]
    facts = {f"best_{name}": value for name, value in found.best_params_.items()}
    facts["best_score"] = float(found.best_score_)
    proved = all(row["relative_gap"] <= parameters.get("tol", 1e-3) for row in rows)
    cut_short = getattr(found, "_interrupted", False)
    if o.model is not None:
        save(found.best_estimator_, o.model, examples, scaling)
        certificate = found.best_estimator_.certificate_
        proved = proved and certificate.certified
        cut_short = cut_short or interrupted(certificate)
        facts |= {"model": o.model}
    if o.picture is not None:
        from ..plot import PathDisplay

        draw(PathDisplay.from_estimator(found), o.picture)
    _show(o, rows, facts | {"certified": proved}, examples)
    if not _tell_unfinished(rows, "mean_score", cut_short):
        for key in ("C", "gamma", "epsilon"):
            if advice := _beyond(key, rows, found.best_params_):
                print(advice, file=sys.stderr)
    return exit_status(proved, cut_short)


def _tell_unfinished(
    rows: Sequence[Mapping[str, float]], key: str, cut_short: bool
) -> bool:
    """Print and return whether the command ended before all rows were complete."""
    left = sum(row[key] != row[key] for row in rows)  # NaN
    if left or cut_short:
        why = "interrupted" if cut_short else "ended by --time-limit"
        told = (
            f"{left} of {len(rows)} rows are missing" if left else "all rows are there"
        )
        print(f"The command was {why}: {told}.", file=sys.stderr)
    return left > 0 or cut_short


def _chosen(o: Values) -> tuple[str, Parameters, Parameters]:
    """Return the name of a search or of an estimator, its parameters, and the grid."""
    name = estimator_of(o)
    grid: Parameters = {
        key: [value for part in parts for value in part]
        for key, option in _GRIDS.items()
        if (parts := getattr(o, option)) is not None
    }
    if o.picture is not None and name != "LinearSVC":
        what = "--kernel" if o.kernel else f"--task {o.task}"
        raise UsageError(f"--picture is not for {what}; leave it out.")
    if search := _SEARCHES.get(name):
        parameters = _grid(o, search) | {"refit": o.model is not None}
        if "gamma" in grid:
            parameters["gammas"] = grid["gamma"]
    else:
        if o.time_limit is not None:
            what = "--nu" if o.nu else f"--task {o.task}"
            raise UsageError(f"--time-limit is not for {what}; try fewer values.")
        if "C" in stored()[name]:
            grid["C"] = _Cs(o)
        elif o.n_Cs is not None:
            raise UsageError("--n-Cs is not for --nu.")
        of_search = dict.fromkeys(("Cs", "gammas", "cv", "scoring"))
        first = {key: values[0] for key, values in grid.items() if key != "C"}
        first |= {"C": o.Cs and o.Cs[0]}
        one = Values(**(vars(o) | of_search | first))
        parameters = parameters_of(one, name)
    if o.kernel is not None:
        refuse_shape(Values(**(vars(o) | {"gamma": grid.get("gamma")})))
    return name, parameters, grid


def _search(o: Values, name: str, parameters: Parameters, grid: Parameters) -> Model:
    """Return a search, whose results have the proved gap of every model."""
    from .. import estimators

    if name in _SEARCHES:
        return getattr(estimators, _SEARCHES[name])(**parameters)
    from functools import partial

    from sklearn.metrics import check_scoring
    from sklearn.model_selection import KFold

    from ..estimators.parameters import refuse_scores_of_probabilities
    from ..estimators.search import grid_of
    from ..model_selection import GridSearchCV

    if "C" in grid:
        grid |= {"C": grid_of(grid["C"]).tolist()}
    n_jobs = parameters.pop("n_jobs", None)
    model = getattr(estimators, name)(**parameters)
    folds = o.cv or 5
    if o.task == "regression":  # tables are often sorted
        folds = KFold(folds, shuffle=True, random_state=0)
    score = check_scoring(model, scoring=o.scoring)
    refuse_scores_of_probabilities(model, o.scoring, score)
    scorer = partial(_scored, score)
    return GridSearchCV(
        model, grid, scoring=scorer, cv=folds, refit="score", error_score="raise",
        n_jobs=n_jobs,
    )  # fmt: skip


def _scored(
    scorer: Callable[..., float], model: Model, X: MatrixLike, y: NDArray[np.generic]
) -> dict[str, float]:
    """Return the score of a model on a fold, and its proved gap."""
    if interrupted(model.certificate_):  # the search would go on
        raise KeyboardInterrupt
    gap = max(part.relative_gap for part in model.certificate_.parts)
    return {"score": scorer(model, X, y), "relative_gap": gap}


def _beyond(
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
    if scores[end] == scores[neighbour] or 0.0 in (end, neighbour):
        return ""
    step = end / neighbour
    more = ",".join(f"{end * step**k:.6g}" for k in range(3))
    return (
        f"The best {key} is the {'smallest' if low else 'largest'} that was tried: "
        f"try --{key} {more} too."
    )


def _grid(o: Values, search: str) -> Parameters:
    """Return the parameters of a search, with values of C."""
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
    return found | {"Cs": _Cs(o)}


def _Cs(o: Values) -> int | list[float]:
    """Return the values of C, or how many there are."""
    if o.Cs is not None and o.n_Cs is not None:
        raise UsageError("--C and --n-Cs exclude each other.")
    return o.n_Cs or sorted({C for part in o.Cs or [GRID] for C in part})


def _read(o: Values) -> tuple[FileExamples, Scaling | None]:
    """Read the examples, if models can be trained on them."""
    check_files(o)
    task = getattr(o, "task", "classification")
    examples, scaling = standardized(read_data(o), o.standardize)
    refuse_untrainable(examples, task)
    if hasattr(o, "cv"):
        _refuse_folds(o.cv or 5, examples, task)
    if not o.quiet:
        print(examples.summary(task), file=sys.stderr)
        examples.tell()
    return examples, scaling


def _refuse_folds(folds: int, examples: FileExamples, task: str) -> None:
    """Raise an error for more folds than examples, or than any class has."""
    import numpy as np

    n = examples.shape[0]
    if task == "regression" and folds > n // 2:
        raise ValueError(
            f"--cv {folds} is too large for the {n} examples of {examples.path}; give "
            f"at most {max(2, n // 2)}"
        )
    if task == "regression":
        return
    _, counts = np.unique(examples.y, return_counts=True)
    least = counts.min()
    if least < 2 and len(counts) == 2:
        raise ValueError(
            f"a class of {examples.path} has 1 example, which no training part of its "
            "fold has; give more examples, or use dualgap train"
        )
    if folds > counts.max():
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

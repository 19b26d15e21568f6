"""``dualgap path``: train for many values of C, and choose one by cross-validation."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from .app import NOT_CERTIFIED, app, paragraphs, taking, told_plainly
from .data import (
    chosen_columns,
    facts_of,
    is_store,
    notes_of,
    read_data,
    refuse_overwriting_by_model,
    refuse_unreadable,
    refuse_untrainable,
    refuse_unwritable,
    standardized,
    summary,
)
from .options import (
    DataPath,
    LinearJobs,
    LinearLoss,
    TrainingOptions,
    complete_solver,
    fraction,
    positive,
    positive_numbers,
    solver_name,
)
from .parameters import Parameters, refuse_mismatch
from .report import picture_format, plain_warnings, print_json, table

if TYPE_CHECKING:
    from ..data.model_file import Scalar
    from ..data.scaling import Scaling
    from ..plot import PathDisplay
    from .data import FileExamples

_GRID = "0.001,0.01,0.1,1,10"


@dataclass(frozen=True, kw_only=True)
class PathOptions(TrainingOptions):
    """Options of ``dualgap path``."""

    data: DataPath
    C: Annotated[
        list[str] | None,
        typer.Option(
            "--C",
            "-C",
            "-c",
            metavar="C,...",
            help="Values of C.",
            show_default=_GRID,
        ),
    ] = None
    n_costs: Annotated[
        int | None,
        typer.Option(
            "--n-Cs",
            min=2,
            help="Instead of --C: this many values from 1e-4 to 1e4.",
            show_default=False,
        ),
    ] = None
    cv: Annotated[
        int | None,
        typer.Option(
            min=2, help="Number of cross-validation folds.", show_default="none"
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --cv: write the model of the best C.",
            show_default=False,
        ),
    ] = None
    loss: LinearLoss = "squared_hinge"
    solver: Annotated[
        str,
        typer.Option(
            callback=solver_name,
            autocompletion=complete_solver,
            help="auto, dcd or sdca: solvers that keep dual variables.",
        ),
    ] = "auto"
    tol: Annotated[
        float,
        typer.Option(
            callback=fraction, help="Relative duality gap to prove for each model."
        ),
    ] = 1e-3
    time_limit: Annotated[
        float | None,
        typer.Option(
            callback=positive, help="Seconds for the whole path.", show_default="none"
        ),
    ] = None
    class_weight: Annotated[
        bool,
        typer.Option("--balanced", help="Give all classes the same total weight."),
    ] = False
    picture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Draw scores (with --cv) or coefficients against C: .png, .svg, .pdf.",
            show_default=False,
        ),
    ] = None
    n_jobs: LinearJobs = None


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap path a9a",
        "dualgap path a9a --C 0.01,0.1,1,10 --loss squared_hinge --picture path.png",
        "dualgap path a9a --cv 5 --model a9a.model",
        "Each C starts from the solution of the previous, smaller one, which saves "
        "most of the work. Each model has its own certificate. With --cv, every fold "
        "trains a path, and --model writes a model of all of DATA with the best C.",
        "[bold]Exit status[/bold]: 0 every model is certified to --tol; 3 some are "
        "not; 1 bad data or files; 2 wrong usage.",
    )
)
@taking(PathOptions)
def path(options: PathOptions) -> None:
    """Train linear SVMs for many values of C, each with its proven gap."""
    from ..solvers import SOLVERS

    if options.C is not None and options.n_costs is not None:
        raise typer.BadParameter("--C and --n-Cs exclude each other.")
    grid = options.n_costs or positive_numbers("--C", ",".join(options.C or [_GRID]))
    record = SOLVERS.get(options.solver)
    if record is None or record.dual:  # the other solvers are refused for any loss
        refuse_mismatch(options.solver, options.loss)
    if options.model is not None and options.cv is None:
        raise typer.BadParameter("--model needs --cv, which chooses the C.")
    with told_plainly(options.debug):
        _refuse_early(options)
        chosen = chosen_columns(options.label, options.columns)
        examples = read_data(
            options.data, options.zero_based, options.n_jobs, columns=chosen
        )
        examples, scaling = standardized(examples, options.standardize)
        refuse_untrainable(examples, "path")
        _refuse_folds(options.cv or 0, examples)
        if not options.quiet:
            typer.echo(summary(examples), err=True)
        with plain_warnings("dualgap train "):
            found = _trained(options, examples, scaling, grid)
        if options.picture is not None:
            found.draw().figure_.figure.savefig(options.picture, dpi=150)
        _say(options, found, examples)
    # The gap of a model that was not trained in time is NaN.
    proved = all(row["relative_gap"] <= options.tol for row in found.rows)
    if not (proved and found.facts["certified"]):
        raise typer.Exit(NOT_CERTIFIED)


class _TrainedPath(NamedTuple):
    """Trained models as rows of a table, facts about all of them, and their picture."""

    rows: list[dict[str, float]]
    facts: dict[str, Scalar]
    draw: Callable[[], PathDisplay]


def _refuse_early(options: PathOptions) -> None:
    """Raise an error for a solver or files that cannot be used, before any work."""
    from ..solvers import SOLVERS, get_solver

    data, model, picture = options.data, options.model, options.picture
    if not get_solver(options.solver).dual:
        names = ", ".join(name for name in SOLVERS if get_solver(name).dual)
        raise ValueError(
            f"--solver {options.solver} keeps no dual variables; use one of {names}"
        )
    refuse_unreadable(data, "give a data file")
    if is_store(data):
        raise ValueError(f"{data} is a store, which path cannot read; give a data file")
    for name in (model, picture):
        if name is not None:
            refuse_unwritable(name, [data])
    if model is not None:
        refuse_overwriting_by_model(model)
    if picture is not None:
        picture_format(picture)


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


def _trained(
    options: PathOptions,
    examples: FileExamples,
    scaling: Scaling | None,
    grid: list[float] | int,
) -> _TrainedPath:
    """Train a path or, with --cv, search for the best C."""
    from sklearn.exceptions import ConvergenceWarning

    parameters = {
        "loss": options.loss,
        "solver": options.solver,
        "tol": options.tol,
        "time_limit": options.time_limit,
        "fit_intercept": options.intercept,
        "class_weight": "balanced" if options.class_weight else None,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
    }
    with warnings.catch_warnings():
        # The table and the exit status tell it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        if options.cv is None:
            return _path(examples, grid, parameters)
        parameters |= {"cv": options.cv, "refit": options.model is not None}
        return _search(examples, scaling, grid, parameters, options.model)


def _say(options: PathOptions, found: _TrainedPath, examples: FileExamples) -> None:
    """Print the models as a table, or as JSON."""
    if options.json_:
        print_json({**found.facts, "models": found.rows, "data": facts_of(examples)})
        return
    for line in table(list(found.rows[0]), [_cells(row) for row in found.rows]):
        typer.echo(line)
    if options.cv is not None:
        typer.echo(f"Best C: {found.facts['best_C']:g}")
    for file, what in ((options.model, "Model"), (options.picture, "Picture")):
        if file is not None:
            typer.echo(f"{what} written to {file}")


def _cells(row: dict[str, float]) -> list[str]:
    return [f"{value:.6g}" for value in row.values()]


def _path(
    examples: FileExamples, grid: list[float] | int, parameters: Parameters
) -> _TrainedPath:
    import numpy as np

    from ..estimators import svm_path

    found = svm_path(examples.X, examples.y, grid, **parameters)
    rows = []
    for C, coefs, certificate in zip(
        found.Cs, found.coefs, found.certificates, strict=True
    ):
        each = certificate.parts
        worst = max(each, key=lambda c: c.relative_gap)
        rows.append(
            {
                "C": float(C),
                "relative_gap": worst.relative_gap,
                "primal": sum(c.primal for c in each),
                "norm": float(np.linalg.norm(coefs)),
                "epochs": sum(c.epochs for c in each),
                "seconds": sum(c.seconds for c in each),
            }
        )

    def draw() -> PathDisplay:
        from ..plot import PathDisplay

        return PathDisplay.from_path(found)

    return _TrainedPath(rows, {"certified": True}, draw)


def _search(
    examples: FileExamples,
    scaling: Scaling | None,
    grid: list[float] | int,
    parameters: Parameters,
    model: str | None,
) -> _TrainedPath:
    from ..estimators import LinearSVCCV
    from ..models.files import save_parts

    found = LinearSVCCV(grid, **parameters)
    found.fit(examples.X, examples.y)
    rows = [
        {
            "C": float(C),
            "relative_gap": float(gap),
            "mean_score": float(mean),
            "std_score": float(spread),
        }
        for C, gap, mean, spread in zip(
            found.Cs_,
            found.relative_gaps_.max(axis=0),
            found.scores_.mean(axis=0),
            found.scores_.std(axis=0),
            strict=True,
        )
    ]
    facts: dict[str, Scalar] = {
        "best_C": found.C_,
        "best_score": found.best_score_,
        "certified": True,
    }
    if model is not None:
        best = found.best_estimator_
        save_parts(best, model, False, notes_of(examples), scaling, examples.names)
        facts |= {"model": model, "certified": best.certificate_.certified}

    def draw() -> PathDisplay:
        from ..plot import PathDisplay

        return PathDisplay.from_estimator(found)

    return _TrainedPath(rows, facts, draw)

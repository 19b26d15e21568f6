"""``dualgap path``: train for many values of C, and choose one by cross-validation."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .app import NOT_CERTIFIED, app, paragraphs, told_plainly
from .data import (
    chosen_columns,
    facts_of,
    is_store,
    notes_of,
    read_data,
    refuse_overwriting,
    refuse_unreadable,
    refuse_untrainable,
    refuse_unwritable,
    standardized,
    summary,
)
from .options import (
    DataPath,
    Debug,
    FeatureColumns,
    Json,
    Label,
    LinearJobs,
    Quiet,
    Seed,
    Standardize,
    ZeroBased,
    complete_loss,
    complete_solver,
    fraction,
    loss_name,
    positive,
    positive_numbers,
    solver_name,
)
from .parameters import refuse_mismatch
from .report import picture_format, print_json, table

if TYPE_CHECKING:
    from ..io.scaling import Scaling
    from .data import Data

_GRID = "0.001,0.01,0.1,1,10"


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
def path(
    data: DataPath,
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
    ] = None,
    n_Cs: Annotated[
        int | None,
        typer.Option(
            "--n-Cs",
            min=2,
            help="Instead of --C: this many values from 1e-4 to 1e4.",
            show_default=False,
        ),
    ] = None,
    cv: Annotated[
        int | None,
        typer.Option(
            min=2, help="Number of cross-validation folds.", show_default="none"
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="With --cv: write the model of the best C.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str,
        typer.Option(
            callback=loss_name,
            autocompletion=complete_loss,
            help="hinge, squared_hinge or smoothed_hinge.",
        ),
    ] = "hinge",
    solver: Annotated[
        str,
        typer.Option(
            callback=solver_name,
            autocompletion=complete_solver,
            help="auto, dcd or sdca: solvers that keep dual variables.",
        ),
    ] = "auto",
    tol: Annotated[
        float,
        typer.Option(
            callback=fraction, help="Relative duality gap to prove for each model."
        ),
    ] = 1e-3,
    time_limit: Annotated[
        float | None,
        typer.Option(
            callback=positive, help="Seconds for the whole path.", show_default="none"
        ),
    ] = None,
    intercept: Annotated[
        bool, typer.Option(help="Fit a bias: the weight of a constant feature.")
    ] = True,
    class_weight: Annotated[
        bool,
        typer.Option("--balanced", help="Give all classes the same total weight."),
    ] = False,
    picture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Draw scores (with --cv) or coefficients against C: .png, .svg, .pdf.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    label: Label = None,
    columns: FeatureColumns = None,
    standardize: Standardize = False,
    zero_based: ZeroBased = None,
    n_jobs: LinearJobs = None,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train linear SVMs for many values of C, each with its proven gap."""
    if C is not None and n_Cs is not None:
        raise typer.BadParameter("--C and --n-Cs exclude each other.")
    grid = n_Cs or positive_numbers("--C", ",".join(C or [_GRID]))
    refuse_mismatch(solver, loss)
    if model is not None and cv is None:
        raise typer.BadParameter("--model needs --cv, which chooses the C.")
    with told_plainly(debug):
        from sklearn.exceptions import ConvergenceWarning

        from ..solvers import get_solver

        if not get_solver(solver).dual:
            raise ValueError(
                f"--solver {solver} keeps no dual variables; use auto, dcd or sdca"
            )
        refuse_unreadable(data)
        if is_store(data):
            raise ValueError(
                f"{data} is a store, which path cannot read; give a data file"
            )
        outputs = [name for name in (model, picture) if name is not None]
        for name in outputs:
            refuse_unwritable(name, [data])
        if model is not None:
            refuse_overwriting(model)
        if picture is not None:
            picture_format(picture)
        chosen = chosen_columns(label, columns)
        examples = read_data(data, zero_based, n_jobs, columns=chosen)
        examples, scaling = standardized(examples, standardize)
        refuse_untrainable(examples)
        if not quiet:
            typer.echo(summary(examples), err=True)
        options = {
            "loss": loss,
            "solver": solver,
            "tol": tol,
            "time_limit": time_limit,
            "fit_intercept": intercept,
            "class_weight": "balanced" if class_weight else None,
            "random_state": seed,
            "n_jobs": n_jobs,
        }
        with warnings.catch_warnings():
            # The table and the exit status tell it.
            warnings.simplefilter("ignore", ConvergenceWarning)
            if cv is None:
                rows, facts, display = _path(examples, grid, options)
            else:
                rows, facts, display = _search(
                    examples, scaling, grid, cv, options, model
                )
        if picture is not None:
            display(picture)
        if json_:
            print_json({**facts, "models": rows, "data": facts_of(examples)})
        else:
            for line in table(list(rows[0]), [_cells(row) for row in rows]):
                typer.echo(line)
            if cv is not None:
                typer.echo(f"Best C: {facts['best_C']:g}")
            for file, what in ((model, "Model"), (picture, "Picture")):
                if file is not None:
                    typer.echo(f"{what} written to {file}")
    # The gap of a model that was not trained in time is NaN.
    proved = all(row["relative_gap"] <= tol for row in rows)
    if not (proved and facts["certified"]):
        raise typer.Exit(NOT_CERTIFIED)


def _cells(row: dict[str, Any]) -> list[str]:
    return [f"{value:.6g}" if value is not None else "-" for value in row.values()]


def _path(
    examples: Data, grid: Any, options: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any], Any]:
    import numpy as np

    from ..estimators import svm_path

    found = svm_path(examples.X, examples.y, grid, **options)
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

    def draw(picture: str) -> None:
        from ..plot import PathDisplay

        _save(PathDisplay.from_path(found), picture)

    return rows, {"certified": True}, draw


def _search(
    examples: Data,
    scaling: Scaling | None,
    grid: Any,
    cv: int,
    options: dict[str, Any],
    model: str | None,
) -> tuple[list[dict[str, Any]], dict[str, Any], Any]:
    from ..estimators import LinearSVCCV
    from ..models.files import save_parts

    found = LinearSVCCV(grid, cv=cv, refit=model is not None, **options)
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
    facts: dict[str, Any] = {
        "best_C": found.C_,
        "best_score": found.best_score_,
        "certified": True,
    }
    if model is not None:
        best = found.best_estimator_
        save_parts(best, model, False, notes_of(examples), scaling, examples.names)
        facts |= {"model": model, "certified": best.certificate_.certified}

    def draw(picture: str) -> None:
        from ..plot import PathDisplay

        _save(PathDisplay.from_estimator(found), picture)

    return rows, facts, draw


def _save(display: Any, picture: str) -> None:
    display.figure_.savefig(picture, dpi=150)

"""``dualgap path``: models of many C, and the one that cross-validation prefers."""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .data import (
    facts_of,
    is_store,
    read_data,
    refuse_overwriting,
    refuse_unreadable,
    refuse_untrainable,
    refuse_unwritable,
    summary,
)
from .options import (
    NOT_CERTIFIED,
    DataPath,
    Debug,
    Jobs,
    Json,
    Quiet,
    Seed,
    ZeroBased,
    app,
    complete_loss,
    complete_solver,
    loss_name,
    paragraphs,
    positive,
    solver_name,
    told_plainly,
)
from .report import picture_format, print_json, table
from .train import refuse_mismatch

if TYPE_CHECKING:
    from .data import Data


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap path a9a",
        "dualgap path a9a --C 0.01,0.1,1,10 --loss squared_hinge --picture path.png",
        "dualgap path a9a --cv 5 --model a9a.model",
        "Each C starts from the solution of the last smaller one, which saves most of "
        "the work; each model is certified by itself. With --cv every fold has a path, "
        "and MODEL is trained on all of DATA with the C whose models predict best.",
        "[bold]Exit status[/bold]: 0 every model is certified to --tol; 3 some are "
        "not; 1 bad data or files; 2 wrong usage.",
    )
)
def path(
    data: DataPath,
    C: Annotated[
        str,
        typer.Option(
            "--C",
            "-C",
            metavar="C,...",
            help="Values, or one whole number: how many from 1e-4 to 1e4.",
        ),
    ] = "0.001,0.01,0.1,1,10",
    cv: Annotated[
        int | None,
        typer.Option(min=2, help="Folds of a cross-validation.", show_default="none"),
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
            help="auto, dcd or sdca: those that keep dual variables.",
        ),
    ] = "auto",
    tol: Annotated[
        float,
        typer.Option(callback=positive, help="Relative duality gap to prove, each."),
    ] = 1e-3,
    time_limit: Annotated[
        float | None,
        typer.Option(
            callback=positive, help="Seconds for all of it.", show_default="none"
        ),
    ] = None,
    intercept: Annotated[
        bool, typer.Option(help="Fit a bias: the weight of a constant feature.")
    ] = True,
    class_weight: Annotated[
        bool,
        typer.Option("--balanced", help="Let the classes weigh the same."),
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
    zero_based: ZeroBased = None,
    n_jobs: Jobs = None,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train linear SVMs for many values of C, every one with its gap."""
    grid = _values(C)
    refuse_mismatch(solver, loss)
    if model is not None and cv is None:
        raise typer.BadParameter("--model needs --cv, which chooses the C.")
    with told_plainly(debug):
        from sklearn.exceptions import ConvergenceWarning

        from ..solvers import get_solver

        if not get_solver(solver).dual:
            raise ValueError(
                f"--solver {solver} keeps no dual variables to start from; use auto, "
                "dcd or sdca"
            )
        refuse_unreadable(data)
        if is_store(data):
            raise ValueError(f"{data} is a store; path needs svmlight text")
        outputs = [name for name in (model, picture) if name is not None]
        for name in outputs:
            refuse_unwritable(name, [data])
        if model is not None:
            refuse_overwriting(model)
        if picture is not None:
            picture_format(picture)
        examples = read_data(data, zero_based, n_jobs)
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
            # The table and the exit status say it.
            warnings.simplefilter("ignore", ConvergenceWarning)
            if cv is None:
                rows, facts, display = _path(examples, grid, options)
            else:
                rows, facts, display = _search(examples, grid, cv, options, model)
        if picture is not None:
            display(picture)
        if json_:
            print_json({**facts, "models": rows, "data": facts_of(examples)})
        else:
            for line in table(list(rows[0]), [_cells(row) for row in rows]):
                typer.echo(line)
            if cv is not None:
                typer.echo(f"best C {facts['best_C']:g}")
            for file, what in ((model, "model"), (picture, "picture")):
                if file is not None:
                    typer.echo(f"{what} written to {file}")
    # The gap of a model that was not reached is NaN.
    proved = all(row["relative_gap"] <= tol for row in rows)
    if not (proved and facts["certified"]):
        raise typer.Exit(NOT_CERTIFIED)


def _values(text: str) -> Any:
    """A list of C, or how many."""
    try:
        if text.strip().isdecimal() and int(text) > 1:
            return int(text)
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0.0 < value < math.inf for value in values):
        raise typer.BadParameter(
            f"--C {text!r}: give positive numbers such as 0.1,1,10, or how many."
        )
    return sorted(set(values))


def _cells(row: dict[str, Any]) -> list[str]:
    return [f"{value:.6g}" if value is not None else "-" for value in row.values()]


def _path(
    examples: Data, grid: Any, options: dict[str, Any]
) -> tuple[list[dict[str, Any]], dict[str, Any], Any]:
    import numpy as np

    from ..estimators import svm_path

    found = svm_path(examples.X, examples.y, grid, **options)
    rows = []
    for C, coefs, certificates in zip(
        found.Cs, found.coefs, found.certificates, strict=True
    ):
        each = certificates if isinstance(certificates, list) else [certificates]
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
    examples: Data, grid: Any, cv: int, options: dict[str, Any], model: str | None
) -> tuple[list[dict[str, Any]], dict[str, Any], Any]:
    from ..estimators import LinearSVCCV, save_model

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
        save_model(best, model, notes={"zero_based": examples.zero_based})
        each = best.certificate_
        each = each if isinstance(each, list) else [each]
        facts |= {"model": model, "certified": all(c.certified for c in each)}

    def draw(picture: str) -> None:
        from ..plot import PathDisplay

        _save(PathDisplay.from_estimator(found), picture)

    return rows, facts, draw


def _save(display: Any, picture: str) -> None:
    display.figure_.savefig(picture, dpi=150)

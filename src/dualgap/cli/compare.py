"""``dualgap compare``: solvers on one problem, other packages beside them."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .data import (
    facts_of,
    is_store,
    labels_of,
    read_data,
    refuse_unreadable,
    refuse_untrainable,
    refuse_unwritable,
    shortened,
    summary,
)
from .options import (
    DataPath,
    Debug,
    Json,
    Quiet,
    ReadJobs,
    Seed,
    ZeroBased,
    app,
    complete_loss,
    known_word,
    loss_name,
    paragraphs,
    positive,
    told_plainly,
)
from .report import picture_format, print_json, progress, table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..problem import Problem
    from .data import Data

# What the other packages are asked for, one after the other: they stop on a violation
# of the optimality conditions, which is no gap.
_ASKED = (1.0, 0.1, 0.01, 0.001)


@dataclass
class _Run:
    """One way to train one problem: points of (seconds, primal) and the last dual."""

    C: float
    name: str
    seconds: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    dual: float = -math.inf
    epochs: int | None = None
    status: str = ""
    history: NDArray[Any] | None = None


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap compare a9a",
        "dualgap compare a9a --solvers auto,sdca,sgd-s --C 0.1,10 --tol 1e-5",
        "dualgap compare a9a --picture a9a.png --time-limit 30",
        "dualgap compare letter --positive 7 --no-peers",
        "The gap is (P - D)/D, P the objective of a model in float64 and D the best "
        "dual value known for that C, of these runs and of one more to a hundredth of "
        "--tol: so it says of every model, those of other packages too, how far it is "
        "from the optimum at most. Seconds "
        "are those of training in memory, one thread; for LIBLINEAR with the copy of "
        "the data that it makes.",
        "Peers are scikit-learn's LinearSVC and, if installed, LIBLINEAR (package "
        "liblinear-official), each for the tolerances 1, 0.1, 0.01 and 0.001.",
    )
)
def compare(
    data: DataPath,
    solvers: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Solvers of this package."),
    ] = "auto,dcd,sdca,sgd-s,pegasos",
    C: Annotated[
        str, typer.Option("--C", "-C", metavar="C,...", help="Weights of the loss.")
    ] = "1",
    loss: Annotated[
        str,
        typer.Option(
            callback=loss_name,
            autocompletion=complete_loss,
            help="hinge, squared_hinge or smoothed_hinge.",
        ),
    ] = "hinge",
    tol: Annotated[
        float,
        typer.Option(callback=positive, help="Relative duality gap to prove."),
    ] = 1e-3,
    time_limit: Annotated[
        float,
        typer.Option(callback=positive, help="Seconds for each fit of this package."),
    ] = 10.0,
    intercept: Annotated[
        bool, typer.Option(help="Fit a bias: the weight of a constant feature.")
    ] = True,
    peers: Annotated[bool, typer.Option(help="Train with other packages too.")] = True,
    positive_label: Annotated[
        float | None,
        typer.Option(
            "--positive",
            metavar="LABEL",
            help="Of more than two classes: the one against the rest.",
            show_default=False,
        ),
    ] = None,
    picture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Draw the gaps against seconds: .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None,
    seed: Seed = 0,
    zero_based: ZeroBased = None,
    n_jobs: ReadJobs = None,
    json_: Json = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train DATA with several solvers, and tell their gaps and times."""
    names, costs = _solvers(solvers, loss), _costs(C)
    with told_plainly(debug):
        refuse_unreadable(data)
        if is_store(data):
            raise ValueError(f"{data} is a store; compare needs svmlight text")
        if picture is not None:
            refuse_unwritable(picture, [data])
            picture_format(picture)
        examples = read_data(data, zero_based, n_jobs)
        refuse_untrainable(examples)
        y = _signs(examples, positive_label)
        if not quiet:
            typer.echo(summary(examples), err=True)
        runs = []
        for cost in costs:
            problem = _problem(examples, y, cost, loss, intercept)
            for name in names:
                runs.append(_ours(problem, name, tol, time_limit, seed, quiet))
            if peers:
                for peer in _peers(loss):
                    if not quiet:
                        typer.echo(f"C={cost:g}, {peer.name}", err=True)
                    runs.append(peer.train(problem, examples.X, y, intercept, seed))
        best = {c: max(run.dual for run in runs if run.C == c) for c in costs}
        for cost in costs:
            problem = _problem(examples, y, cost, loss, intercept)
            best[cost] = max(best[cost], _bound(problem, 0.01 * tol, time_limit, seed))
        if picture is not None:
            _draw(runs, best, picture)
        rows = [_row(run, best[run.C]) for run in runs]
        if json_:
            print_json({"runs": rows, "data": facts_of(examples)})
            return
        cells = [[_cell(*item) for item in row.items()] for row in rows]
        for line in table([name.replace("_", " ") for name in rows[0]], cells):
            typer.echo(line)
        if picture is not None:
            typer.echo(f"picture written to {picture}")


def _solvers(text: str, loss: str) -> list[str]:
    from ..solvers import SOLVERS

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter("--solvers: name one or more, such as auto,sdca.")
    for name in names:
        known_word(name, list(SOLVERS))
        if loss not in SOLVERS[name].losses:
            able = [name for name, record in SOLVERS.items() if loss in record.losses]
            raise typer.BadParameter(
                f"--solvers: {name} cannot train {loss}; those that can are "
                f"{', '.join(able)}."
            )
    return list(dict.fromkeys(names))


def _costs(text: str) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0.0 < value < math.inf for value in values):
        raise typer.BadParameter(f"--C {text!r}: give positive numbers, as in 0.1,1.")
    return sorted(set(values))


def _signs(examples: Data, label: float | None) -> NDArray[Any]:
    """Labels -1 and +1."""
    import numpy as np

    labels = labels_of(examples)
    if label is None:
        if len(labels) > 2:
            raise ValueError(
                f"{examples.path} has {len(labels)} classes ({shortened(labels)}); "
                "choose one against the rest with --positive"
            )
        label = labels[1]
    if label not in labels:
        raise ValueError(
            f"--positive {label:g}: {examples.path} has the labels {shortened(labels)}"
        )
    return np.where(examples.y == label, 1, -1)


def _problem(
    examples: Data, y: NDArray[Any], C: float, loss: str, intercept: bool
) -> Problem:
    from ..problem import Problem

    return Problem(examples.X, y, C, loss=loss, fit_intercept=intercept)


def _ours(
    problem: Problem, name: str, tol: float, limit: float, seed: int, quiet: bool
) -> _Run:
    from ..loop import solve
    from ..solvers import get_solver

    if not quiet:
        typer.echo(f"C={problem.C:g}, {name}", err=True)
    with progress(quiet, several=False) as show:
        solution = solve(
            problem,
            get_solver(name),
            tol=tol,
            time_limit=limit,
            random_state=seed,
            on_epoch=None if show is None else lambda epoch: show(None, epoch),
        )
    c = solution.certificate
    status = c.status.label if c.status else ""
    return _Run(
        problem.C, name, [c.seconds], [c.primal], c.dual, c.epochs, status,
        solution.history,
    )  # fmt: skip


def _bound(problem: Problem, tol: float, limit: float, seed: int) -> float:
    """A dual value so near the optimum that gaps of `tol` can be told apart."""
    from ..loop import solve
    from ..solvers import get_solver

    solution = solve(
        problem, get_solver("auto"), tol=tol, time_limit=limit, random_state=seed
    )
    return float(solution.certificate.dual)


@dataclass(frozen=True)
class _Peer:
    """Another package: `fit` returns w, its last entry the weight of the constant."""

    name: str
    fit: Callable[..., Any]

    def train(
        self, problem: Problem, X: Any, y: NDArray[Any], intercept: bool, seed: int
    ) -> _Run:
        run = _Run(problem.C, self.name)
        for tol in _ASKED:
            begun = time.perf_counter()
            w = self.fit(X, y, problem.C, problem.loss.name, intercept, tol, seed)
            run.seconds.append(time.perf_counter() - begun)
            run.primal.append(problem.primal(w))
        run.status = f"tol {_ASKED[-1]:g}"
        return run


def _peers(loss: str) -> list[_Peer]:
    """Those that are installed and know the loss."""
    if loss == "smoothed_hinge":
        return []
    found = [_Peer("scikit-learn", _sklearn)]
    import_module("sklearn.svm")  # or its first fit would be charged for it
    if find_spec("liblinear") is not None:
        import_module("liblinear.liblinearutil")
        found.append(_Peer("liblinear", _liblinear))
    return found


def _sklearn(
    X: Any,
    y: NDArray[Any],
    C: float,
    loss: str,
    intercept: bool,
    tol: float,
    seed: int,
) -> NDArray[Any]:
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    if X.indices.dtype != np.int32:  # which it refuses; a copy of the pointers
        X = X.copy()
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    model = LinearSVC(
        C=C, loss=loss, dual=True, tol=tol, fit_intercept=intercept, max_iter=100_000,
        random_state=seed,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    w = model.coef_[0]
    return np.append(w, model.intercept_) if intercept else w


def _liblinear(
    X: Any,
    y: NDArray[Any],
    C: float,
    loss: str,
    intercept: bool,
    tol: float,
    seed: int,
) -> NDArray[Any]:
    import numpy as np
    from liblinear.liblinearutil import parameter, problem, train

    kind = 3 if loss == "hinge" else 1
    bias = 1 if intercept else -1
    data = problem(y.astype(float), X, bias)
    model = train(data, parameter(f"-s {kind} -c {C!r} -e {tol!r} -B {bias} -q"))
    # The first label that it met is its positive class.
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    d = X.shape[1] + intercept
    return sign * np.array(model.w[:d])


def _row(run: _Run, dual: float) -> dict[str, Any]:
    from ..certificate import relative_gap

    primal = run.primal[-1]
    return {
        "C": run.C,
        "solver": run.name,
        "gap": relative_gap(primal, dual),
        "primal": primal,
        "seconds": run.seconds[-1],
        "epochs": run.epochs,
        "status": run.status,
    }


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return format(value, {"primal": ".8g", "gap": ".2e"}.get(name, ".4g"))


def _draw(runs: list[_Run], best: dict[float, float], picture: str) -> None:
    """A panel per C: the solvers' histories, and the points of the other packages."""
    from matplotlib.figure import Figure

    from ..plot import ConvergenceDisplay

    figure = Figure(figsize=(6.4 * len(best), 4.8), layout="constrained")
    panels = figure.subplots(1, len(best), squeeze=False)[0]
    for ax, (C, dual) in zip(panels, best.items(), strict=True):
        own = {r.name: r.history for r in runs if r.C == C and r.history is not None}
        for run in runs:
            if run.C != C or run.history is not None:
                continue
            gaps = [(primal - dual) / dual for primal in run.primal]
            ax.plot(run.seconds, gaps, "x--", label=run.name)
        ConvergenceDisplay(own).plot(ax=ax)
        ax.set(title=f"C = {C:g}", xscale="log")
    figure.savefig(picture, dpi=150)

"""``dualgap compare``: compare solvers, and other packages, on one problem."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from .app import app, paragraphs, taking, told_plainly
from .data import (
    chosen_columns,
    facts_of,
    is_store,
    labels_of,
    read_data,
    refuse_unreadable,
    refuse_untrainable,
    refuse_unwritable,
    shortened,
    standardized,
    summary,
)
from .options import (
    DataPath,
    LinearLoss,
    ReadJobs,
    TrainingOptions,
    fraction,
    known_word,
    positive,
    positive_numbers,
)
from .report import picture_format, print_json, progress, table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..data.types import Matrix
    from ..losses import Vector
    from ..problems.binary import BinaryProblem
    from .data import FileExamples

#: Tolerances for the other packages, one fit for each. They limit a violation of the
#: optimality conditions, which is not a duality gap.
_ASKED = (1.0, 0.1, 0.01, 0.001)


@dataclass
class _Run:
    """Result of one method on one problem: points (seconds, primal), and last dual."""

    C: float
    name: str
    seconds: list[float] = field(default_factory=list)
    primal: list[float] = field(default_factory=list)
    dual: float = -math.inf
    epochs: int | None = None
    status: str = ""
    history: NDArray[np.void] | None = None


@dataclass(frozen=True, kw_only=True)
class CompareOptions(TrainingOptions):
    """Options of ``dualgap compare``."""

    data: DataPath
    solvers: Annotated[
        str,
        typer.Option(metavar="NAME,...", help="Solvers of dualgap."),
    ] = "auto,dcd,newton,sdca"
    C: Annotated[
        str,
        typer.Option("--C", "-C", "-c", metavar="C,...", help="Values of C."),
    ] = "1"
    loss: LinearLoss = "squared_hinge"
    tol: Annotated[
        float,
        typer.Option(callback=fraction, help="Relative duality gap to prove."),
    ] = 1e-3
    time_limit: Annotated[
        float,
        typer.Option(callback=positive, help="Seconds for each fit of dualgap."),
    ] = 10.0
    peers: Annotated[bool, typer.Option(help="Also train with other packages.")] = True
    positive_label: Annotated[
        str | None,
        typer.Option(
            "--positive",
            metavar="LABEL",
            help="With more than two classes: the class to train against the rest.",
            show_default=False,
        ),
    ] = None
    picture: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Draw the gaps against seconds: .png, .svg or .pdf.",
            show_default=False,
        ),
    ] = None
    n_jobs: ReadJobs = None


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap compare a9a",
        "dualgap compare a9a --solvers auto,sdca,sgd-s --C 0.1,10 --tol 1e-5",
        "dualgap compare a9a --picture a9a.png --time-limit 30",
        "dualgap compare letter --positive 7 --no-peers",
        "The gap is (P - D)/D. P is the objective of a model, computed in float64. D "
        "is the best dual value known for that C, from these runs and one more with a "
        "hundredth of --tol. The gap bounds how far any model, of dualgap or "
        "another package, is from the optimum.",
        "Seconds are training times in memory with one thread. For LIBLINEAR they "
        "include its copy of the data.",
        "Peers are scikit-learn's LinearSVC and, if installed, LIBLINEAR (package "
        "liblinear-official), each with the tolerances 1, 0.1, 0.01 and 0.001.",
    )
)
@taking(CompareOptions)
def compare(options: CompareOptions) -> None:
    """Compare solvers on DATA: their gaps and training times."""
    names = _solvers(options.solvers, options.loss)
    costs = positive_numbers("--C", options.C)
    picture = options.picture
    with told_plainly(options.debug):
        _refuse_files(options)
        chosen = chosen_columns(options.label, options.columns)
        examples = read_data(
            options.data, options.zero_based, options.n_jobs, columns=chosen
        )
        examples, _ = standardized(examples, options.standardize)
        refuse_untrainable(examples, "compare")
        y = _signs(examples, options.positive_label)
        if not options.quiet:
            typer.echo(summary(examples), err=True)
        _warm_up(names, options.loss)
        runs = [
            run for cost in costs for run in _runs(options, names, examples, y, cost)
        ]
        best = {c: max(run.dual for run in runs if run.C == c) for c in costs}
        for cost in costs:
            problem = _problem(options, examples, y, cost)
            best[cost] = max(best[cost], _bound(options, problem))
        if picture is not None:
            _draw(runs, best, picture)
        rows = [_row(run, best[run.C]) for run in runs]
        if options.json_:
            print_json({"runs": rows, "data": facts_of(examples)})
            return
        cells = [[_cell(*item) for item in row.items()] for row in rows]
        for line in table([name.replace("_", " ") for name in rows[0]], cells):
            typer.echo(line)
        if picture is not None:
            typer.echo(f"Picture written to {picture}")


def _refuse_files(options: CompareOptions) -> None:
    """Raise an error for files that cannot be read or written, before any work."""
    refuse_unreadable(options.data, "give a data file")
    if is_store(options.data):
        raise ValueError(
            f"{options.data} is a store, which compare cannot read; give a data file"
        )
    if options.picture is not None:
        refuse_unwritable(options.picture, [options.data])
        picture_format(options.picture)


def _runs(
    options: CompareOptions,
    names: list[str],
    examples: FileExamples,
    y: NDArray[np.int_],
    cost: float,
) -> Iterator[_Run]:
    """Train with every solver and, if asked, every other package."""
    problem = _problem(options, examples, y, cost)
    for name in names:
        yield _ours(options, problem, name)
    if options.peers:
        for peer in _peers(options.loss):
            if not options.quiet:
                typer.echo(f"C={cost:g}, {peer.name}", err=True)
            yield peer.train(problem, examples.X, y, options.intercept, options.seed)


def _solvers(text: str, loss: str) -> list[str]:
    from ..solvers import SOLVERS

    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise typer.BadParameter("--solvers is empty; give names, such as auto,sdca.")
    names = [known_word(name, list(SOLVERS), "solver", "--solvers") for name in names]
    for name in names:
        if loss not in SOLVERS[name].losses:
            able = [name for name, record in SOLVERS.items() if loss in record.losses]
            raise typer.BadParameter(
                f"--solvers: {name} cannot train --loss {loss}; use --loss "
                f"{' or '.join(SOLVERS[name].losses)}, or {', '.join(able)}."
            )
    return list(dict.fromkeys(names))


def _signs(examples: FileExamples, wanted: str | None) -> NDArray[np.int_]:
    """Return labels -1 and +1, shape (n,); +1 for the positive class."""
    import numpy as np

    labels = labels_of(examples)
    label: str | float | None = wanted
    if wanted is not None and not isinstance(labels[0], str):
        try:
            label = float(wanted)
        except ValueError:
            label = None
    elif wanted is None:
        if len(labels) > 2:
            raise ValueError(
                f"{examples.path} has {len(labels)} classes ({shortened(labels)}); "
                "choose the positive one with --positive"
            )
        label = labels[1]
    if label not in labels:
        raise ValueError(
            f"--positive {wanted} is not a label in {examples.path}; choose one of "
            f"{shortened(labels)}"
        )
    return np.where(examples.y == label, 1, -1)


def _problem(
    options: CompareOptions, examples: FileExamples, y: NDArray[np.int_], C: float
) -> BinaryProblem:
    from ..problems.binary import BinaryProblem

    return BinaryProblem(
        examples.X, y, C, loss=options.loss, fit_intercept=options.intercept
    )


def _warm_up(names: list[str], loss: str) -> None:
    """Train every solver on two rows, so that no measured fit loads modules or BLAS."""
    import numpy as np

    from ..problems.binary import BinaryProblem
    from ..solvers import SOLVERS, get_solver
    from ..training import solve

    problem = BinaryProblem(np.eye(2), np.array([-1, 1]), loss=loss)
    # auto may switch to the other two.
    for name in dict.fromkeys([*names, "dcd", "newton"]):
        if loss in SOLVERS[name].losses:
            solve(problem, get_solver(name), max_iter=3, random_state=0)


def _ours(options: CompareOptions, problem: BinaryProblem, name: str) -> _Run:
    from ..solvers import get_solver
    from ..training import solve

    if not options.quiet:
        typer.echo(f"C={problem.C:g}, {name}", err=True)
    with progress(options.quiet, options.tol) as show:
        solution = solve(
            problem,
            get_solver(name),
            tol=options.tol,
            time_limit=options.time_limit,
            random_state=options.seed,
            on_epoch=None if show is None else lambda epoch: show(None, epoch),
        )
    c = solution.certificate
    status = c.status.label if c.status else ""
    return _Run(
        C=problem.C,
        name=name,
        seconds=[c.seconds],
        primal=[c.primal],
        dual=c.dual,
        epochs=c.epochs,
        status=status,
        history=solution.history,
    )


def _bound(options: CompareOptions, problem: BinaryProblem) -> float:
    """Return a dual value so close to the optimum that gaps of `tol` are resolved."""
    from ..solvers import get_solver
    from ..training import solve

    solution = solve(
        problem,
        get_solver("auto"),
        tol=0.01 * options.tol,
        time_limit=options.time_limit,
        random_state=options.seed,
    )
    return float(solution.certificate.dual)


@dataclass(frozen=True)
class _Peer:
    """Another package; the last entry of `fit`'s result w is the bias weight."""

    name: str
    fit: Callable[..., Vector]

    def train(
        self,
        problem: BinaryProblem,
        X: Matrix,
        y: NDArray[np.int_],
        intercept: bool,
        seed: int,
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
    """Return the packages that are installed and support the loss."""
    if loss == "smoothed_hinge":
        return []
    found = [_Peer("scikit-learn", _sklearn)]
    import_module("sklearn.svm")  # now, so that the first fit does not include it
    if find_spec("liblinear") is not None:
        import_module("liblinear.liblinearutil")
        found.append(_Peer("liblinear", _liblinear))
    return found


def _sklearn(
    X: Matrix,
    y: NDArray[np.int_],
    C: float,
    loss: str,
    intercept: bool,
    tol: float,
    seed: int,
) -> Vector:
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.svm import LinearSVC

    if (
        hasattr(X, "indices") and X.indices.dtype != np.int32
    ):  # scikit-learn needs int32; copy so that the caller's matrix is not changed
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
    X: Matrix,
    y: NDArray[np.int_],
    C: float,
    loss: str,
    intercept: bool,
    tol: float,
    seed: int,
) -> Vector:
    import numpy as np
    from liblinear.liblinearutil import parameter, problem, train

    kind = 3 if loss == "hinge" else 1
    bias = 1 if intercept else -1
    data = problem(y.astype(float), X, bias)
    model = train(data, parameter(f"-s {kind} -c {C!r} -e {tol!r} -B {bias} -q"))
    # LIBLINEAR's positive class is the first label in the data.
    sign = 1.0 if model.get_labels()[0] == 1 else -1.0
    d = X.shape[1] + intercept
    return sign * np.array(model.w[:d])


def _row(run: _Run, dual: float) -> dict[str, float | str | None]:
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


def _cell(name: str, value: float | str | None) -> str:
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    return format(value, {"primal": ".8g", "gap": ".2e"}.get(name, ".4g"))


def _draw(runs: list[_Run], best: dict[float, float], picture: str) -> None:
    """Draw a panel per C: histories of the solvers, points of the other packages."""
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

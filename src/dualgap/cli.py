"""The command line: ``dualgap train``, ``predict``, ``inspect`` and ``convert``.

Exit status: 0 done, and for ``train`` certified to ``--tol``; 1 bad data or files;
2 wrong usage; 3 trained, but not to ``--tol`` (the model is written); 130 interrupted.

NumPy, SciPy and scikit-learn are imported by the commands that need them: help and
usage errors come at once.
"""

from __future__ import annotations

import contextlib
import difflib
import errno
import itertools
import json
import math
import os
import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

try:
    import rich.console
    import rich.progress
    import safetensors  # noqa: F401  (else found missing after the training)
    import typer
except ImportError as error:
    # All that this module does needs them; a traceback would bury the remedy.
    raise SystemExit(
        f"dualgap: the command line needs the package {str(error.name).split('.')[0]}: "
        "pip install 'dualgap[cli]'"
    ) from None

from . import __version__

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from scipy.sparse import csr_matrix

    from .certificate import Certificate
    from .estimators import SVC, LinearSVC
    from .io import RowStore
    from .loop import EpochInfo

NOT_CERTIFIED = 3
INTERRUPTED = 130  # as shells report a death by SIGINT

app = typer.Typer(
    name="dualgap",
    help="Support vector machines trained to a certificate of optimality.",
    epilog=(
        "Each command explains itself: [bold]dualgap train --help[/bold]. "
        "DATA is svmlight / LIBSVM text, plain or .gz, .bz2, .xz, .zst."
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    # Errors that users can cause are told in a sentence; for bugs, Python's own
    # traceback says more than a framed one.
    pretty_exceptions_enable=False,
)


def main() -> None:
    """Run the command line on ``sys.argv``; does not return."""
    app(prog_name="dualgap")


# ----------------------------------------------------------------- options and errors


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"dualgap {__version__}")
        raise typer.Exit


def _paragraphs(*lines: str) -> str:
    return "\n\n".join(lines)


def _positive(value: float | None) -> float | None:
    if value is not None and not 0.0 < value < math.inf:
        raise typer.BadParameter(f"{value} is not a positive, finite number.")
    return value


def _known(value: str, known: Sequence[str]) -> str:
    """Refuse an unknown word, with the nearest one that is known."""
    if value in known:
        return value
    near = difflib.get_close_matches(value.lower().replace("_", "-"), known, n=1)
    near = near or difflib.get_close_matches(value.lower(), known, n=1, cutoff=0.4)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    raise typer.BadParameter(f"{value!r} is not one of {', '.join(known)}.{hint}")


def _solver(value: str) -> str:
    from .kernel import APPROXIMATIONS, KERNEL_SOLVERS
    from .solvers import SOLVERS

    return _known(value, list({**SOLVERS, **KERNEL_SOLVERS, **APPROXIMATIONS}))


def _loss(value: str | None) -> str | None:
    from .losses import LOSSES

    return None if value is None else _known(value, list(LOSSES))


def _kernel(value: str | None) -> str | None:
    # Those of the estimator but "precomputed": DATA has rows.
    known = ["linear", "poly", "rbf", "sigmoid", "laplacian"]
    return None if value is None else _known(value, known)


_GAMMAS = ("scale", "auto", "mean-distance")


def _gamma(value: str | None) -> float | str | None:
    if value is None or value in _GAMMAS:
        return value
    try:
        return _positive(float(value))
    except ValueError:
        raise typer.BadParameter(
            f"{value!r} is neither a number nor one of {', '.join(_GAMMAS)}."
        ) from None


_UNITS = {"": 1.0, "kb": 1e-3, "mb": 1.0, "gb": 1e3, "tb": 1e6}
_UNITS |= {"kib": 1024e-6, "mib": 1024**2 / 1e6, "gib": 1024**3 / 1e6}


def _megabytes(value: str | None) -> float | None:
    """A size such as 2GB in units of 10**6 bytes."""
    if value is None:
        return None
    found = re.fullmatch(r"\s*([0-9.]+)\s*([a-zA-Z]*)\s*", value)
    unit = found and _UNITS.get(found[2].lower())
    try:
        size = float(found[1]) * unit if found and unit else 0.0
    except ValueError:
        size = 0.0
    if not 0.0 < size < math.inf:
        raise typer.BadParameter(f"{value!r} is not a size, such as 500MB or 2GB.")
    return size


DataPath = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="svmlight / LIBSVM text file; .gz, .bz2, .xz and .zst are decompressed. "
        "Or a store made by convert.",
        show_default=False,
    ),
]
ZeroBased = Annotated[
    bool | None,
    typer.Option(
        "--zero-based/--one-based",
        help="Whether the indices in DATA start at 0 or at 1.",
        show_default="at 0 if index 0 occurs",
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        help="Threads: for reading, and over the classes (with a kernel the pairs of "
        "them) where there are more than two. -1 takes all processors.",
        show_default="all for reading, 1 for training",
    ),
]
ReadJobs = Annotated[
    int | None,
    typer.Option(
        help="Threads that read, and that predict with a kernel; -1 takes all "
        "processors.",
        show_default="all",
    ),
]
Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of text.")
]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.callback()
def _dualgap(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_print_version,
            is_eager=True,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    pass


@contextlib.contextmanager
def _told_plainly(debug: bool) -> Iterator[None]:
    """Turn what bad data and files raise into one sentence and an exit status."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("dualgap: interrupted", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except BrokenPipeError:  # the reader of our output had enough
        raise
    except (OSError, ValueError, ImportError, MemoryError) as error:
        if debug:
            raise
        if isinstance(error, OSError) and error.filename is not None:
            sentence = f"{os.fsdecode(error.filename)}: {error.strerror}"
        elif isinstance(error, MemoryError):
            sentence = f"out of memory: {error}"
        else:
            sentence = str(error)
        typer.echo(f"dualgap: {sentence}", err=True)
        raise typer.Exit(1) from None


# ------------------------------------------------------------------------------- files


class Data(NamedTuple):
    """What a svmlight file holds."""

    path: str
    X: csr_matrix | RowStore
    y: NDArray[np.int64] | NDArray[np.float64]
    zero_based: bool

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape


def _refuse_unreadable(path: str) -> None:
    """Refuse a missing file or a folder before anything else is done."""
    os.stat(path)  # the usual error for a missing file
    if os.path.isdir(path):
        if _is_store(path):
            return
        raise IsADirectoryError(errno.EISDIR, "a folder, and no store", path)
    if not os.access(path, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def _is_store(path: str) -> bool:
    from .io.store import DESCRIPTION

    return os.path.isfile(os.path.join(path, DESCRIPTION))


def _refuse_unwritable(path: str, inputs: Sequence[str]) -> None:
    from .io.atomic import check_target

    check_target(path)
    for other in inputs:
        if os.path.exists(path) and os.path.samefile(path, other):
            raise ValueError(f"{path} is the input; choose another name for the output")


def _refuse_overwriting(path: str) -> None:
    """Refuse to put a model in the place of what is none, such as a data file."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        start = file.read(9)
    if start and start[8:] != b"{":
        raise ValueError(
            f"{path} exists and is not a model file; remove it first, or choose "
            "another name for the model"
        )


def _read(
    path: str,
    zero_based: bool | None,
    n_jobs: int | None,
    n_features: int | None = None,
    remedy: str = "",
) -> Data:
    """Examples of a file. Labels that are whole numbers become int64.

    With `n_features` the rows get that many, and a file with more is refused, naming
    the remedy.
    """
    import numpy as np

    from .io import load_svmlight

    if _is_store(path):
        return _opened(path, zero_based, n_features, remedy)
    # Left open, the base is seen in the indices as they are written.
    X, y = load_svmlight(
        path, zero_based=True if zero_based is None else zero_based, n_jobs=n_jobs
    )
    if zero_based is None:
        zero_based = bool(X.nnz) and int(X.indices.min()) == 0
        if not zero_based and X.nnz:
            X.indices -= 1
            X.resize((X.shape[0], X.shape[1] - 1))
    if X.shape[0] == 0:
        raise ValueError(f"{path} holds no examples")
    if (np.abs(y) < 2**53).all() and (y == np.trunc(y)).all():
        y = y.astype(np.int64)
    if n_features is not None:
        if X.shape[1] > n_features:
            raise ValueError(
                f"{path} has {X.shape[1]} features, more than {n_features}: {remedy}"
            )
        X.resize((X.shape[0], n_features))  # what a file never names is 0
    return Data(path, X, y, zero_based)


def _opened(
    path: str, zero_based: bool | None, n_features: int | None, remedy: str
) -> Data:
    """Examples of a store, which stay on the disk."""
    import numpy as np

    from .io import RowStore

    if zero_based is not None:
        raise ValueError(
            f"{path} is a store; --zero-based and --one-based are for text"
        )
    store = RowStore.open(path)
    if n_features not in (None, store.n_features):
        raise ValueError(
            f"{path} has {store.n_features} features, not {n_features}: {remedy}"
        )
    y = store.y
    y = y.astype(np.int64) if y.dtype.kind == "i" else y
    return Data(path, store, y, store.zero_based)


# ------------------------------------------------------------------------------- train


@app.command(
    epilog=_paragraphs(
        "[bold]Examples[/bold]",
        "dualgap train a9a a9a.model",
        "dualgap train a9a.xz a9a.model --C 0.1 --tol 1e-5 --solver sdca",
        "dualgap train a9a a9a.model --loss squared_hinge --class-weight balanced",
        "dualgap train a9a a9a.model --kernel rbf --gamma 0.05 --cache 2GB",
        "dualgap train big.svm big.model --time-limit 60 --json > certificate.json",
        "dualgap train big.store big.model --checkpoint big.checkpoint",
        "The certificate printed at the end bounds how far the model is from the best: "
        "no model has an objective below the dual value, this one has the primal "
        "value.",
        "Ctrl-C ends the training and keeps the best model so far; a second Ctrl-C "
        "gives up.",
        "[bold]Exit status[/bold]: 0 certified to --tol; 3 stopped before that (by a "
        "limit or Ctrl-C), the model is written; 1 bad data or files; 2 wrong usage; "
        "130 interrupted outside the training, nothing is written.",
    )
)
def train(
    data: DataPath,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="File to write, in the safetensors format; an older model is replaced "
            "when the new one is complete.",
            show_default=False,
        ),
    ],
    C: Annotated[
        float | None,
        typer.Option(
            "--C",
            "-C",
            callback=_positive,
            help="Weight of the loss, summed over the examples.",
            show_default="1",
        ),
    ] = None,
    lambda_: Annotated[
        float | None,
        typer.Option(
            "--lambda",
            callback=_positive,
            help="Weight of the norm, instead of --C: C = 1/(lambda n).",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            callback=_loss,
            help="hinge, squared_hinge or, without --kernel, smoothed_hinge.",
            show_default="hinge",
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            callback=_kernel,
            help="Train a kernel SVM, one versus one: linear, poly, rbf, sigmoid or "
            "laplacian.",
            show_default="none: a linear SVM, one versus the rest",
        ),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option(
            callback=_gamma,
            metavar="G",
            help="Of the kernel: a number, scale, auto or mean-distance. Or, of the "
            "smoothed hinge: the width of its kink.",
            show_default="scale; 1",
        ),
    ] = None,
    degree: Annotated[
        int | None,
        typer.Option(min=1, help="Of the kernel poly.", show_default="3"),
    ] = None,
    coef0: Annotated[
        float | None,
        typer.Option(help="Of the kernels poly and sigmoid.", show_default="0"),
    ] = None,
    cache: Annotated[
        str | None,
        typer.Option(
            callback=_megabytes,
            metavar="SIZE",
            help="Memory for kernel values, such as 500MB or 2GB.",
            show_default="200MB",
        ),
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            callback=_solver,
            help="auto, dcd, interior-point, sdca, sgd-s, sgd-m, sgd-r, pegasos, "
            "norma, svmsgd, cutting-plane, ocas, mpu or sgd-qn; with --kernel auto, "
            "block, fw, mfw, mdm, swap, swap-2o, core-vector, kernel-pegasos or "
            "nystroem.",
        ),
    ] = "auto",
    tol: Annotated[
        float,
        typer.Option(
            callback=_positive,
            help="Relative duality gap to prove: the objective is then within this "
            "fraction of the optimum.",
        ),
    ] = 1e-3,
    max_epochs: Annotated[
        int, typer.Option(min=1, help="Passes over the data, per class or pair.")
    ] = 10_000,
    time_limit: Annotated[
        float | None,
        typer.Option(
            callback=_positive,
            help="Seconds of training, all classes together.",
            show_default="none",
        ),
    ] = None,
    intercept: Annotated[
        bool, typer.Option(help="Fit a bias: the weight of a constant feature.")
    ] = True,
    intercept_scaling: Annotated[
        float | None,
        typer.Option(
            callback=_positive,
            metavar="X",
            help="Value of the constant feature; larger penalises the bias less.",
            show_default="1",
        ),
    ] = None,
    penalize_intercept: Annotated[
        bool,
        typer.Option(
            help="Penalise the bias like every weight; without, it is that of the "
            "textbook SVM (--solver auto or dcd)."
        ),
    ] = True,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS",
            help="Factors of C for the examples of a class: balanced, or LABEL=W,... "
            "such as -1=1,1=2.5.",
            show_default="1 for all",
        ),
    ] = None,
    seed: Annotated[
        int,
        typer.Option(min=0, help="The same seed gives the same model."),
    ] = 0,
    n_features: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of features, where DATA lacks the last ones.",
            show_default="what DATA holds",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write the state of the training to FILE, and go on from it if it is "
            "there. Not with --kernel.",
            show_default=False,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(callback=_positive, help="Seconds between two checkpoints."),
    ] = 60.0,
    zero_based: ZeroBased = None,
    n_jobs: Jobs = None,
    json_: Json = False,
    quiet: Annotated[
        bool,
        typer.Option(
            "--quiet", "-q", help="Show no progress, only the final certificate."
        ),
    ] = False,
    debug: Debug = False,
) -> None:
    """Train an SVM on DATA until its accuracy is proved, and write MODEL."""
    if C is not None and lambda_ is not None:
        raise typer.BadParameter("--C and --lambda exclude each other.")
    bias = {
        "fit_intercept": intercept,
        "intercept_scaling": intercept_scaling,
        "penalize_intercept": penalize_intercept,
    }
    shape = {"gamma": gamma, "degree": degree, "coef0": coef0, "cache_size": cache}
    told: dict[str, Any] = {}  # what JSON has in the place of a record
    if kernel is None:
        own = _of_linear_svc(solver, loss, bias, shape)
        told = {"loss": loss or "hinge", "gamma": gamma}
        own |= {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
    else:
        own = _of_svc(solver, loss, bias, shape, kernel)
        if checkpoint is not None:
            raise typer.BadParameter("--checkpoint is not for --kernel.")
    weights = _class_weight(class_weight)
    with _told_plainly(debug):
        _refuse_unreadable(data)
        _refuse_unwritable(model, [data])
        _refuse_overwriting(model)
        if kernel is not None and _is_store(data):
            raise ValueError(f"{data} is a store: with --kernel give svmlight text")
        begun = time.perf_counter()
        remedy = "leave --n-features out, or give a larger number"
        examples = _read(data, zero_based, n_jobs, n_features, remedy)
        seconds = time.perf_counter() - begun
        _refuse_untrainable(examples)
        weights = _of_labels(weights, examples)
        if not quiet:
            typer.echo(f"{_summary(examples)}, read in {seconds:.2f} s", err=True)
        if C is None:
            C = 1.0 if lambda_ is None else 1.0 / (lambda_ * examples.shape[0])
        parameters = {
            "C": C,
            **own,
            "solver": solver,
            "tol": tol,
            "max_epochs": max_epochs,
            "time_limit": time_limit,
            "class_weight": weights,
            "random_state": seed,
            "n_jobs": n_jobs,
        }
        fitted = _fit(parameters, examples, quiet)

        from .estimators import save_model

        save_model(fitted, model, notes={"zero_based": examples.zero_based})
        certificates = _by_problem(fitted)
        certified = all(c.certified for _, c in certificates)
        if json_:
            _print_json(
                {
                    "model": model,
                    "certified": certified,
                    "certificates": [
                        {
                            "pair" if isinstance(label, tuple) else "class": label,
                            **certificate.to_dict(),
                        }
                        for label, certificate in certificates
                    ],
                    "parameters": parameters | told,
                    "data": _facts(examples) | {"seconds_to_read": seconds},
                }
            )
        else:
            _print_certificates(certificates)
            typer.echo(f"model written to {model}")
    if not certified:
        raise typer.Exit(NOT_CERTIFIED)


def _of_linear_svc(
    solver: str, loss: str | None, bias: dict[str, Any], shape: dict[str, Any]
) -> dict[str, Any]:
    """Parameters that only LinearSVC has."""
    loss, gamma, scaling = loss or "hinge", shape["gamma"], bias["intercept_scaling"]
    for name, option in _ONLY_KERNEL.items():
        if shape[name] is not None:
            raise typer.BadParameter(f"{option} needs --kernel.")
    if gamma is not None and loss != "smoothed_hinge":
        raise typer.BadParameter(
            f"--gamma is for --kernel or for --loss smoothed_hinge, not {loss}."
        )
    if isinstance(gamma, str):
        raise typer.BadParameter(f"--gamma {gamma} is for --kernel; give a number.")
    if scaling is not None and not bias["fit_intercept"]:
        raise typer.BadParameter("--intercept-scaling needs --intercept.")
    if not bias["penalize_intercept"]:
        _refuse_free_bias(solver, bias["fit_intercept"], scaling)
    _refuse_mismatch(solver, loss)
    return bias | {
        "loss": _loss_record(loss, gamma),
        "intercept_scaling": scaling or 1.0,
    }


def _of_svc(
    solver: str,
    loss: str | None,
    bias: dict[str, Any],
    shape: dict[str, Any],
    kernel: str,
) -> dict[str, Any]:
    """Parameters that only SVC has, and those that were given for its kernel."""
    from .kernel import APPROXIMATIONS, KERNEL_SOLVERS

    known = KERNEL_SOLVERS | APPROXIMATIONS
    loss = loss or "hinge"
    if loss == "smoothed_hinge":
        raise typer.BadParameter(
            "--kernel needs --loss hinge or squared_hinge, not smoothed_hinge."
        )
    if bias != {
        "fit_intercept": True,
        "intercept_scaling": None,
        "penalize_intercept": True,
    }:
        raise typer.BadParameter(
            "with --kernel the loss has its own bias, hinge a free one and "
            "squared_hinge a penalised one: leave out --no-intercept, "
            "--intercept-scaling and --no-penalize-intercept."
        )
    if solver not in known:
        raise typer.BadParameter(
            f"--solver {solver} trains linear SVMs; with --kernel use "
            f"{', '.join(known)}."
        )
    if loss == "hinge" and not known[solver]().free_bias:
        raise typer.BadParameter(
            f"--solver {solver} cannot leave the bias free; use --loss squared_hinge, "
            "or --solver auto or block."
        )
    users = {"gamma": set(_SHAPED), "degree": {"poly"}, "coef0": {"poly", "sigmoid"}}
    for name, kernels in users.items():
        if shape[name] is not None and kernel not in kernels:
            raise typer.BadParameter(
                f"--{name} is for --kernel {' or '.join(sorted(kernels))}, not "
                f"{kernel}."
            )
    given = {name: value for name, value in shape.items() if value is not None}
    return {"kernel": kernel, "loss": loss, **given}


_SHAPED = ("poly", "rbf", "sigmoid", "laplacian")  # kernels with a gamma
_ONLY_KERNEL = {"degree": "--degree", "coef0": "--coef0", "cache_size": "--cache"}


def _refuse_mismatch(solver: str, loss: str) -> None:
    from .solvers import SOLVERS

    if solver not in SOLVERS:
        raise typer.BadParameter(f"--solver {solver} needs --kernel.")
    losses = SOLVERS[solver].losses
    if loss not in losses:
        able = [name for name, record in SOLVERS.items() if loss in record.losses]
        raise typer.BadParameter(
            f"--solver {solver} needs --loss {' or '.join(losses)}; for {loss} use "
            f"--solver {', '.join(able)}."
        )


def _refuse_free_bias(solver: str, intercept: bool, scaling: float | None) -> None:
    from .solvers import SOLVERS

    if not intercept:
        raise typer.BadParameter("--no-penalize-intercept needs --intercept.")
    if scaling is not None:
        raise typer.BadParameter(
            "--intercept-scaling has no effect with --no-penalize-intercept."
        )
    if not SOLVERS[solver]().free_bias:
        able = [name for name, record in SOLVERS.items() if record().free_bias]
        raise typer.BadParameter(
            f"--solver {solver} penalises the bias; with --no-penalize-intercept use "
            f"--solver {' or '.join(able)}."
        )


def _loss_record(loss: str, gamma: float | None) -> Any:
    if gamma is None:
        return loss
    from .losses import SmoothedHinge

    return SmoothedHinge(gamma)


def _class_weight(text: str | None) -> Any:
    """``None``, ``"balanced"``, or weights by label as they were written."""
    if text is None or text == "balanced":
        return text
    weights: dict[float, float] = {}
    for part in text.split(","):
        label, _, weight = part.partition("=")
        try:
            pair = float(label), float(weight)
        except ValueError:
            raise typer.BadParameter(
                f"--class-weight {text!r}: {part!r} is not LABEL=W, such as -1=2.5."
            ) from None
        if not 0.0 < pair[1] < math.inf:
            raise typer.BadParameter(
                f"--class-weight {text!r}: {weight} is not a positive, finite number."
            )
        if pair[0] in weights:
            raise typer.BadParameter(f"--class-weight {text!r}: {label} occurs twice.")
        weights[pair[0]] = pair[1]
    return weights


def _of_labels(weights: Any, examples: Data) -> Any:
    """Weights of labels that all occur, 1 for the others, keyed as in y."""
    if not isinstance(weights, dict):
        return weights
    labels = _labels(examples)
    strange = [label for label in weights if label not in labels]
    if strange:
        raise typer.BadParameter(
            f"--class-weight: {examples.path} has no label {strange[0]:g}; its labels "
            f"are {_shortened(labels)}."
        )
    return {label: weights.get(label, 1.0) for label in labels}


def _refuse_untrainable(examples: Data) -> None:
    labels = _labels(examples)
    if len(labels) < 2:
        raise ValueError(
            f"{examples.path} holds one class only, {labels[0]}: training needs two or "
            "more"
        )
    if examples.y.dtype.kind == "f":
        odd = [label for label in labels if label % 1 or abs(label) >= 2**53]
        raise ValueError(
            f"{examples.path} has labels that are not whole numbers below 2**53, such "
            f"as {odd[0]}: training tells classes apart, it fits no curve"
        )
    if examples.X.nnz == 0:
        raise ValueError(f"{examples.path} holds labels only, no values")


def _fit(parameters: Mapping[str, Any], examples: Data, quiet: bool) -> LinearSVC | SVC:
    from sklearn.exceptions import ConvergenceWarning

    from .estimators import SVC, LinearSVC

    estimator = SVC if "kernel" in parameters else LinearSVC
    with warnings.catch_warnings():
        # The certificate and the exit status say it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        with _progress(quiet, several=len(_labels(examples)) > 2) as on_epoch:
            weight = getattr(examples.X, "sample_weight", None)  # of a store
            return estimator(**parameters)._fit(
                examples.X, examples.y, weight, on_epoch=on_epoch
            )


@contextlib.contextmanager
def _progress(
    quiet: bool, several: bool
) -> Iterator[Callable[[Any, EpochInfo], None] | None]:
    """A receiver of epochs: one live line on a terminal, else ever rarer lines."""
    console = rich.console.Console(stderr=True)
    if quiet:
        yield None
    elif console.is_terminal and not console.is_dumb_terminal:
        with rich.progress.Progress(
            rich.progress.SpinnerColumn(),
            rich.progress.TextColumn("{task.description}", markup=False),
            rich.progress.TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
        ) as live:
            task = live.add_task("epoch 1", total=None)
            yield _paced(
                several,
                lambda text, _: live.update(task, description=text),
                lambda seconds: seconds + 0.1,
            )
    else:
        yield _paced(
            several,
            lambda text, seconds: typer.echo(f"{text}  {seconds:.1f} s", err=True),
            lambda seconds: 2 * max(seconds, 0.5),
        )


def _paced(
    several: bool, show: Callable[[str, float], None], later: Callable[[float], float]
) -> Callable[[Any, EpochInfo], None]:
    """A receiver of epochs that shows one, then none until later(seconds so far)."""
    begun = time.perf_counter()
    due = later(0.0)

    def receive(label: Any, epoch: EpochInfo) -> None:
        nonlocal due
        seconds = time.perf_counter() - begun
        if seconds >= due:
            due = later(seconds)
            show(_line(label if several else None, epoch), seconds)

    return receive


def _line(label: Any, epoch: EpochInfo) -> str:
    """An epoch in one line; ``~`` marks what no exact pass has confirmed yet."""

    def number(value: float, form: str) -> str:
        if not math.isfinite(value):
            return "-"
        return ("" if epoch.exact else "~") + format(value, form)

    start = "" if label is None else f"{_name(label)}: "
    return (
        f"{start}epoch {epoch.epoch}  primal {number(epoch.primal, '.6g')}  "
        f"dual {number(epoch.dual, '.6g')}  gap {number(epoch.relative_gap, '.2e')}"
    )


def _name(label: Any) -> str:
    """What a binary problem is about: a class, or two."""
    if isinstance(label, tuple):
        return f"{label[0]} against {label[1]}"
    return f"class {label}"


def _by_problem(fitted: LinearSVC | SVC) -> list[tuple[Any, Certificate]]:
    """Certificates with the label of the positive class, or with the pair of labels."""
    labels, certificates = fitted.classes_.tolist(), fitted.certificate_
    if not isinstance(certificates, list):
        return [(labels[1], certificates)]
    if hasattr(fitted, "kernel"):
        labels = list(itertools.combinations(labels, 2))
    return list(zip(labels, certificates, strict=True))


def _print_certificates(certificates: Sequence[tuple[Any, Certificate]]) -> None:
    if len(certificates) == 1:
        typer.echo(str(certificates[0][1]))
        return
    names = [_name(label) for label, _ in certificates]
    width = max(map(len, names))
    for name, (_, c) in zip(names, certificates, strict=True):
        typer.echo(
            f"{name:<{width}}  {c.to_dict()['status']:<11}  "
            f"primal {c.primal:<14.9g}  dual {c.dual:<14.9g}  "
            f"relative gap {c.relative_gap:.2e}  {c.epochs} epochs"
        )
    label, worst = max(certificates, key=lambda entry: entry[1].relative_gap)
    typer.echo(f"farthest from its optimum is {_name(label)}:")
    typer.echo(str(worst))


# ----------------------------------------------------------------------------- predict


@app.command(
    epilog=_paragraphs(
        "[bold]Examples[/bold]",
        "dualgap predict a9a.t a9a.model -o labels.txt",
        "dualgap predict a9a.t a9a.model --scores > scores.txt",
        "dualgap predict a9a.t a9a.model --json -o labels.txt",
        "Accuracy and balanced accuracy (the mean over the classes of the fraction "
        "found) go to standard error, or into the JSON. Labels that are all 0 stand "
        "for none.",
    )
)
def predict(
    data: DataPath,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL", help="File written by train.", show_default=False
        ),
    ],
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the predictions to FILE; it appears when it is complete.",
            show_default="standard output",
        ),
    ] = None,
    scores: Annotated[
        bool,
        typer.Option(
            "--scores",
            help="Decision values instead of labels: one column for two classes "
            "(positive: the larger label), else one column per class.",
        ),
    ] = False,
    zero_based: Annotated[
        bool | None,
        typer.Option(
            "--zero-based/--one-based",
            help="Whether the indices in DATA start at 0 or at 1.",
            show_default="as in training",
        ),
    ] = None,
    n_jobs: ReadJobs = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Predict the labels of DATA with MODEL, one a line."""
    with _told_plainly(debug):
        from .estimators import load_model

        _refuse_unreadable(data)
        fitted, notes = load_model(model, return_notes=True)
        if output is not None:
            _refuse_unwritable(output, [data, model])
        known = isinstance(notes.get("zero_based"), bool) and not _is_store(data)
        if zero_based is None and known:
            zero_based = bool(notes["zero_based"])
        remedy = f"that is what {model} was trained on"
        examples = _read(data, zero_based, n_jobs, fitted.n_features_in_, remedy)
        values, labels = _predictions(fitted, examples, n_jobs)
        quality, remark = _quality(fitted, examples, labels)
        predictions = values if scores else labels
        if output is not None:
            from .io.atomic import write_atomically

            with write_atomically(output, "w") as file:
                file.writelines(_lines(predictions))
        if json_:
            report = {"n": examples.shape[0], **quality, "remark": remark}
            if output is None:
                report["scores" if scores else "labels"] = predictions.tolist()
            _print_json(report | {"output": output})
            return
        if output is None:
            for block in _lines(predictions):
                typer.echo(block, nl=False)
        figures = [
            f"{name.replace('_', ' ')} {100 * value:.2f} %"
            for name, value in quality.items()
            if value is not None
        ]
        typer.echo("; ".join(filter(None, [", ".join(figures), remark])), err=True)


def _predictions(
    fitted: LinearSVC | SVC, examples: Data, n_jobs: int | None
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Decision values, of shape (n,) or (n, K), and labels."""
    from .estimators import SVC

    with warnings.catch_warnings():
        # A model fitted on a table has names; svmlight columns go by position.
        warnings.filterwarnings("ignore", "X does not have valid feature names")
        if isinstance(fitted, SVC):
            fitted.n_jobs = -1 if n_jobs is None else n_jobs
            return fitted._scores_and_labels(examples.X)
        values = fitted.decision_function(examples.X)
    codes = values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(int)
    return values, fitted.classes_[codes]


def _quality(
    fitted: LinearSVC | SVC, examples: Data, labels: NDArray[Any]
) -> tuple[dict[str, float | None], str]:
    """Accuracies, None where they would mean nothing, and what has to be said."""
    import numpy as np

    none: dict[str, float | None] = {"accuracy": None, "balanced_accuracy": None}
    found, known = _labels(examples), set(fitted.classes_.tolist())
    strange = [label for label in found if label not in known]
    if found == [0]:
        return none, "no accuracy: every label is 0, which stands for none"
    if len(strange) == len(found):
        return none, (
            f"no accuracy: the model knows none of the labels ({_shortened(found)}); "
            f"its classes are {_shortened(sorted(known))}"
        )
    remark = ""
    if strange:
        rows = int(np.isin(examples.y, strange).sum())
        remark = (
            f"{rows} of {len(labels)} labels are unknown to the model "
            f"({_shortened(strange)}) and count as errors"
        )
    right = labels == examples.y
    recalls = [float(right[examples.y == label].mean()) for label in found]
    return {
        "accuracy": float(right.mean()),
        "balanced_accuracy": sum(recalls) / len(recalls),
    }, remark


def _lines(predictions: NDArray[Any]) -> Iterator[str]:
    """One prediction a line, in blocks; floats so that they read back exactly."""
    for begin in range(0, len(predictions), 8192):
        rows = predictions[begin : begin + 8192].tolist()
        if predictions.ndim == 2:
            rows = [" ".join(map(str, row)) for row in rows]
        yield "".join(f"{row}\n" for row in rows)


# ----------------------------------------------------------------------------- inspect


@app.command(
    epilog=_paragraphs(
        "[bold]Examples[/bold]",
        "dualgap inspect a9a.xz",
        "dualgap inspect a9a.xz --json",
    )
)
def inspect(
    data: DataPath,
    zero_based: ZeroBased = None,
    n_jobs: ReadJobs = None,
    verify: Annotated[
        bool,
        typer.Option(help="Compare every byte of a store with its checksums."),
    ] = False,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Say what DATA holds: size, classes, norms of the rows, memory."""
    with _told_plainly(debug):
        _refuse_unreadable(data)
        examples = _read(data, zero_based, n_jobs)
        if verify:
            if not _is_store(data):
                raise ValueError(f"{data} is no store: --verify needs one")
            examples.X.verify(n_jobs=max(n_jobs or 1, 1))
        facts = _facts(examples) | _more_facts(examples)
        if json_:
            _print_json(facts)
            return
        norm, classes = facts["row_norm"], facts["classes"]
        counts = [f"{c['label']}: {c['count']}" for c in classes]
        many = len(counts) > 20
        rows = {
            "examples": f"{facts['n']:,}",
            "features": f"{facts['d']:,}, from {0 if examples.zero_based else 1}",
            "values": f"{facts['nnz']:,} ({100 * facts['density']:.3g} % of all)",
            "classes": f"{len(classes)} ({', '.join(counts[:20])}{', ...' * many})",
            "row norms": f"min {norm['min']:.4g}, median {norm['median']:.4g}, "
            f"max {norm['max']:.4g}",
            "empty rows": f"{facts['empty_rows']:,}",
            "memory": f"{facts['memory_bytes'] / 1e6:,.1f} MB",
        }
        for name, text in rows.items():
            typer.echo(f"{name:<11}{text}")


def _facts(examples: Data) -> dict[str, Any]:
    n, d = examples.shape
    return {
        "path": examples.path,
        "n": n,
        "d": d,
        "nnz": int(examples.X.nnz),
        "zero_based": examples.zero_based,
    }


def _more_facts(examples: Data) -> dict[str, Any]:
    import numpy as np

    from .io import RowStore
    from .problem import Problem

    X, y = examples.X, examples.y
    n, d = examples.shape
    labels, counts = np.unique(y, return_counts=True)
    norms = np.sqrt(Problem(X, np.ones(n)).q)
    if isinstance(X, RowStore):
        empty = int((norms == 0.0).sum())
        size = sum(os.path.getsize(X.file(name)) for name in X.dtypes)
    else:
        empty = int((np.diff(X.indptr) == 0).sum())
        size = sum(a.nbytes for a in (X.data, X.indices, X.indptr, y))
    return {
        "density": X.nnz / (n * d) if d else 0.0,
        "classes": [
            {"label": label, "count": count}
            for label, count in zip(labels.tolist(), counts.tolist(), strict=True)
        ],
        "row_norm": {
            "min": float(norms.min()),
            "median": float(np.median(norms)),
            "max": float(norms.max()),
        },
        "empty_rows": empty,
        "memory_bytes": size,
    }


# ----------------------------------------------------------------------------- convert


@app.command(
    epilog=_paragraphs(
        "[bold]Examples[/bold]",
        "dualgap convert big.svm.xz big.store --single",
        "dualgap convert part-*.parquet big.store --label clicked --memory 4GB",
        "dualgap train big.store big.model --checkpoint big.checkpoint",
        "A conversion that was killed goes on when it is called again; it works in a "
        "hidden folder beside STORE, which appears when it is complete, and needs "
        "twice the space of the store.",
    )
)
def convert(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... STORE",
            help="Files: svmlight text (plain, .gz, .bz2, .xz, .zst), .parquet, "
            ".arrow, .npy or .npz; and at last the folder to make.",
            show_default=False,
        ),
    ],
    format_: Annotated[
        str,
        typer.Option("--format", help="csr, dense, or auto: as the first rows are."),
    ] = "auto",
    single: Annotated[
        bool, typer.Option("--single", help="Round values to float32.")
    ] = False,
    shuffle: Annotated[
        bool,
        typer.Option(help="Put the rows in random order, which the solvers rely on."),
    ] = True,
    seed: Annotated[int, typer.Option(min=0, help="Of that order.")] = 0,
    memory: Annotated[
        str,
        typer.Option(metavar="SIZE", help="Memory to work in, such as 500MB or 4GB."),
    ] = "1GiB",
    label: Annotated[
        str, typer.Option(help="Column of labels, of Parquet and Arrow files.")
    ] = "label",
    weight: Annotated[
        str | None,
        typer.Option(help="Column of weights, of the same.", show_default="none"),
    ] = None,
    labels: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=".npy file of labels, for .npy and .npz files without.",
            show_default=False,
        ),
    ] = None,
    n_features: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of features, where IN lacks the last ones.",
            show_default="what IN holds",
        ),
    ] = None,
    zero_based: ZeroBased = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the store that is there.")
    ] = False,
    fresh: Annotated[
        bool,
        typer.Option("--fresh", help="Do not go on with a conversion that was killed."),
    ] = False,
    n_jobs: ReadJobs = None,
    json_: Json = False,
    debug: Debug = False,
) -> None:
    """Make a STORE of data larger than memory, its rows in random order."""
    if len(inputs) < 2:
        raise typer.BadParameter("give one file or more, and then STORE.")
    _known(format_, ["auto", "csr", "dense"])
    size = _megabytes(memory)
    with _told_plainly(debug):
        from .io import convert as convert_files

        begun = time.perf_counter()
        store = convert_files(
            inputs[:-1],
            inputs[-1],
            format=format_,  # type: ignore[arg-type]
            dtype="float32" if single else "float64",
            shuffle=shuffle,
            seed=seed,
            memory=int(1e6 * (size or 0.0)),
            n_jobs=n_jobs,
            overwrite=overwrite,
            resume=not fresh,
            zero_based="auto" if zero_based is None else zero_based,
            n_features=n_features,
            label=label,
            weight=weight,
            y=labels,
        )
        seconds = time.perf_counter() - begun
    if json_:
        _print_json(
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
    typer.echo(
        f"{store.path}: {store.n_samples:,} examples, {store.n_features:,} features, "
        f"{store.nnz:,} values, made in {seconds:.2f} s"
    )


# -------------------------------------------------------------------------------- text


def _labels(examples: Data) -> list[Any]:
    """The different labels, sorted, as Python numbers."""
    import numpy as np

    return np.unique(examples.y).tolist()


def _shortened(labels: Sequence[Any]) -> str:
    more = ", ..." if len(labels) > 10 else ""
    return ", ".join(map(str, labels[:10])) + more


def _summary(examples: Data) -> str:
    n, d = examples.shape
    return (
        f"{examples.path}: {n:,} examples, {d:,} features, {examples.X.nnz:,} values, "
        f"{len(_labels(examples))} classes"
    )


def _print_json(report: Mapping[str, Any]) -> None:
    typer.echo(json.dumps(_finite(report), indent=2, allow_nan=False))


def _finite(value: Any) -> Any:
    """The same with null for numbers that JSON lacks: an unbounded gap."""
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


if __name__ == "__main__":
    main()

"""``dualgap train``: a model from data, to a certificate."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .data import (
    Data,
    facts_of,
    is_store,
    labels_of,
    read_data,
    refuse_overwriting,
    refuse_unreadable,
    refuse_untrainable,
    refuse_unwritable,
    shortened,
    summary,
)
from .options import (
    NOT_CERTIFIED,
    DataPath,
    Debug,
    Jobs,
    Json,
    ZeroBased,
    app,
    complete_kernel,
    complete_loss,
    complete_multi_class,
    complete_solver,
    gamma_value,
    kernel_name,
    loss_name,
    megabytes,
    multi_class_name,
    paragraphs,
    positive,
    solver_name,
    told_plainly,
)
from .report import (
    by_problem,
    name_of,
    print_certificates,
    print_json,
    progress,
)
from .task import complete_task, estimator_of, of_task, task_name

if TYPE_CHECKING:
    from ..estimators import SVC, LinearSVC


@app.command(
    epilog=paragraphs(
        "[bold]Examples[/bold]",
        "dualgap train a9a a9a.model",
        "dualgap train a9a.xz a9a.model --C 0.1 --tol 1e-5 --solver sdca",
        "dualgap train a9a a9a.model --loss squared_hinge --class-weight balanced",
        "dualgap train a9a a9a.model --kernel rbf --gamma 0.05 --cache 2GB",
        "dualgap train letter letter.model --multi-class ovo --n-jobs -1",
        "dualgap train prices prices.model --task regression --epsilon 0.5",
        "dualgap train normal normal.model --task one-class --nu 0.05 --kernel rbf",
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
    task: Annotated[
        str,
        typer.Option(
            callback=task_name,
            autocompletion=complete_task,
            help="classification; regression, where the labels in DATA are targets "
            "(-s 11 to 13 of LIBLINEAR, -s 3 of LIBSVM); or one-class, which takes no "
            "notice of them (-s 21, -s 2).",
        ),
    ] = "classification",
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            "-p",
            min=0.0,
            help="Of regression: residuals up to it cost nothing.",
            show_default="0.1",
        ),
    ] = None,
    nu: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            max=1.0,
            help="Of one-class: most outliers in DATA, as a share.",
            show_default="0.5",
        ),
    ] = None,
    C: Annotated[
        float | None,
        typer.Option(
            "--C",
            "-C",
            callback=positive,
            help="Weight of the loss, summed over the examples.",
            show_default="1",
        ),
    ] = None,
    lambda_: Annotated[
        float | None,
        typer.Option(
            "--lambda",
            callback=positive,
            help="Weight of the norm, instead of --C: C = 1/(lambda n).",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            callback=loss_name,
            autocompletion=complete_loss,
            help="hinge, squared_hinge or, without --kernel, smoothed_hinge; of "
            "regression epsilon_insensitive or, without --kernel, "
            "squared_epsilon_insensitive.",
            show_default="hinge; epsilon_insensitive",
        ),
    ] = None,
    kernel: Annotated[
        str | None,
        typer.Option(
            callback=kernel_name,
            autocompletion=complete_kernel,
            help="Train a kernel SVM, one versus one: linear, poly, rbf, sigmoid or "
            "laplacian.",
            show_default="none: a linear SVM",
        ),
    ] = None,
    gamma: Annotated[
        str | None,
        typer.Option(
            callback=gamma_value,
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
            callback=megabytes,
            metavar="SIZE",
            help="Memory for kernel values, such as 500MB or 2GB.",
            show_default="200MB",
        ),
    ] = None,
    multi_class: Annotated[
        str | None,
        typer.Option(
            callback=multi_class_name,
            autocompletion=complete_multi_class,
            metavar="WAY",
            help="With more than two labels: ovr (one versus the rest), ovo (one "
            "versus one: more and smaller problems) or crammer-singer (one problem for "
            "all, with the hinge). With --kernel it is ovo.",
            show_default="ovr",
        ),
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            callback=solver_name,
            autocompletion=complete_solver,
            help="auto, dcd, newton, interior-point, sdca, sgd-s, sgd-m, sgd-r, "
            "pegasos, norma, svmsgd, cutting-plane, ocas, mpu or sgd-qn; with --kernel "
            "auto, block, fw, mfw, mdm, swap, swap-2o, core-vector, kernel-pegasos or "
            "nystroem. Of regression auto, dcd or newton, with --kernel auto or block.",
        ),
    ] = "auto",
    tol: Annotated[
        float,
        typer.Option(
            callback=positive,
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
            callback=positive,
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
            callback=positive,
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
        typer.Option(callback=positive, help="Seconds between two checkpoints."),
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
    classes = task == "classification"
    if C is not None and lambda_ is not None:
        raise typer.BadParameter("--C and --lambda exclude each other.")
    bias = {
        "fit_intercept": intercept,
        "intercept_scaling": intercept_scaling,
        "penalize_intercept": penalize_intercept,
    }
    shape = {"gamma": gamma, "degree": degree, "coef0": coef0, "cache_size": cache}
    told: dict[str, Any] = {}  # what JSON has in the place of a record
    if not classes:
        one_class = task == "one-class"
        given = {
            "--class-weight": class_weight,
            "--checkpoint": checkpoint,
            "--multi-class": multi_class,
            "--C": C if one_class else None,
            "--lambda": lambda_ if one_class else None,
        }
        own = of_task(task, solver, loss, bias, shape, kernel, epsilon, nu, given)
    elif epsilon is not None or nu is not None:
        name = "--nu" if epsilon is None else "--epsilon"
        raise typer.BadParameter(f"{name} needs --task regression or one-class.")
    elif kernel is None:
        own = _of_linear_svc(solver, loss, bias, shape, multi_class or "ovr")
        told = {"loss": loss or "hinge", "gamma": gamma}
        own |= {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
    else:
        own = _of_svc(solver, loss, bias, shape, kernel)
        if multi_class not in (None, "ovo"):
            raise typer.BadParameter(
                "with --kernel more than two labels are trained one versus one; leave "
                "out --multi-class."
            )
        if checkpoint is not None:
            raise typer.BadParameter("--checkpoint is not for --kernel.")
    weights = class_weights(class_weight)
    with told_plainly(debug):
        refuse_unreadable(data)
        refuse_unwritable(model, [data])
        refuse_overwriting(model)
        if kernel is not None and is_store(data):
            raise ValueError(f"{data} is a store: with --kernel give svmlight text")
        if not classes and is_store(data):
            raise ValueError(f"{data} is a store: --task {task} needs svmlight text")
        begun = time.perf_counter()
        remedy = "leave --n-features out, or give a larger number"
        examples = read_data(data, zero_based, n_jobs, n_features, remedy)
        seconds = time.perf_counter() - begun
        if classes:
            refuse_untrainable(examples)
        elif examples.X.nnz == 0:
            raise ValueError(f"{examples.path} holds labels only, no values")
        weights = weights_of_labels(weights, examples)
        if not quiet:
            told_of = summary(examples, classes)
            typer.echo(f"{told_of}, read in {seconds:.2f} s", err=True)
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
        if not classes:
            del parameters["class_weight"]
            parameters |= own
            if solver == "auto":
                del parameters["solver"]
            if task == "one-class":
                del parameters["C"]
                if kernel is None:
                    del parameters["random_state"]
        fitted = _fit(
            parameters, examples, quiet, estimator_of(task, kernel is not None)
        )

        from ..estimators import save_model

        save_model(fitted, model, notes={"zero_based": examples.zero_based})
        certificates = by_problem(fitted)
        certified = all(c.certified for _, c in certificates)
        if json_:
            print_json(
                {
                    "model": model,
                    "certified": certified,
                    "certificates": [
                        name_of(label) | certificate.to_dict()
                        for label, certificate in certificates
                    ],
                    "parameters": parameters | told,
                    "data": facts_of(examples) | {"seconds_to_read": seconds},
                }
            )
        else:
            print_certificates(certificates)
            typer.echo(f"model written to {model}")
    if not certified:
        raise typer.Exit(NOT_CERTIFIED)


def _of_linear_svc(
    solver: str,
    loss: str | None,
    bias: dict[str, Any],
    shape: dict[str, Any],
    multi_class: str,
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
    refuse_mismatch(solver, loss)
    if multi_class == "crammer-singer":
        _refuse_together(solver, loss, bias["penalize_intercept"])
    return bias | {
        "multi_class": multi_class.replace("-", "_"),
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
    from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS

    known = KERNEL_SOLVERS | APPROXIMATIONS
    loss = loss or "hinge"
    if loss not in ("hinge", "squared_hinge"):
        raise typer.BadParameter(
            f"--kernel needs --loss hinge or squared_hinge, not {loss}."
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


def refuse_mismatch(solver: str, loss: str) -> None:
    """Refuse a linear solver that cannot train this loss."""
    from ..losses import RESIDUAL_LOSSES
    from ..solvers import SOLVERS

    if loss in RESIDUAL_LOSSES:
        raise typer.BadParameter(f"--loss {loss} needs --task regression.")
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
    from ..solvers import SOLVERS

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


def _refuse_together(solver: str, loss: str, penalize_intercept: bool) -> None:
    """Refuse what the one problem of all classes has not."""
    for option, known in (
        ("--solver", solver == "auto"),
        ("--loss", loss == "hinge"),
        ("--no-penalize-intercept", penalize_intercept),
    ):
        if not known:
            raise typer.BadParameter(
                "--multi-class crammer-singer has a solver of its own, the hinge and a "
                f"penalised bias; leave out {option}, or use --multi-class ovr or ovo."
            )


def _loss_record(loss: str, gamma: float | None) -> Any:
    if gamma is None:
        return loss
    from ..losses import SmoothedHinge

    return SmoothedHinge(gamma)


def class_weights(text: str | None) -> Any:
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


def weights_of_labels(weights: Any, examples: Data) -> Any:
    """Weights of labels that all occur, 1 for the others, keyed as in y."""
    if not isinstance(weights, dict):
        return weights
    labels = labels_of(examples)
    strange = [label for label in weights if label not in labels]
    if strange:
        raise typer.BadParameter(
            f"--class-weight: {examples.path} has no label {strange[0]:g}; its labels "
            f"are {shortened(labels)}."
        )
    return {label: weights.get(label, 1.0) for label in labels}


def _fit(
    parameters: Mapping[str, Any],
    examples: Data,
    quiet: bool,
    estimator: type[LinearSVC] | type[SVC],
) -> LinearSVC | SVC:
    from sklearn.exceptions import ConvergenceWarning

    classes = hasattr(estimator, "_fit")
    with warnings.catch_warnings():
        # The certificate and the exit status say it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        several = classes and len(labels_of(examples)) > 2
        several &= parameters.get("multi_class") != "crammer_singer"
        with progress(quiet, several=several) as on_epoch:
            if not classes:
                model: Any = estimator(**parameters)
                model._tell = on_epoch
                model.fit(examples.X, examples.y)
                del model._tell
                return model
            weight = getattr(examples.X, "sample_weight", None)  # of a store
            return estimator(**parameters)._fit(
                examples.X, examples.y, weight, on_epoch=on_epoch
            )

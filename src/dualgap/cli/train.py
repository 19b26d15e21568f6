"""``dualgap train``: train a model and prove its accuracy."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    get_args,
    get_origin,
    get_type_hints,
)

import typer

from .data import (
    Data,
    chosen_columns,
    facts_of,
    is_store,
    labels_of,
    notes_of,
    read_data,
    refuse_overwriting,
    refuse_unfit,
    refuse_unreadable,
    refuse_untrainable,
    refuse_unwritable,
    shortened,
    standardized,
    summary,
)
from .options import (
    NOT_CERTIFIED,
    DataOrStore,
    Debug,
    FeatureColumns,
    Jobs,
    Json,
    Label,
    Quiet,
    Standardize,
    Verbose,
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
from .quality import Figures, on_training_rows
from .report import (
    by_problem,
    name_of,
    print_details,
    print_json,
    print_outcome,
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
        "dualgap train iris.csv iris.model --label species --standardize",
        "dualgap train prices prices.model --task regression --epsilon 0.5",
        "dualgap train normal normal.model --task one-class --nu 0.05 --kernel rbf",
        "dualgap train big.svm big.model --time-limit 60 --json > certificate.json",
        "dualgap train big.store big.model --checkpoint big.checkpoint",
        "The result at the end bounds how far the objective of the model is from the "
        "best possible one. --verbose shows both bounds: the primal value is the "
        "objective of this model, and no model has an objective below the dual value.",
        "Ctrl-C ends the training and keeps the best model so far; a second Ctrl-C "
        "aborts.",
        "[bold]Exit status[/bold]: 0 certified to --tol or --atol; 3 stopped before "
        "that (by a limit or Ctrl-C), the model is written; 1 bad data or files; 2 "
        "wrong usage; 130 interrupted outside the training, nothing is written.",
    )
)
def train(
    data: DataOrStore,
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="File to write, in the safetensors format. An existing model is "
            "replaced when the new one is complete.",
            show_default=False,
        ),
    ],
    task: Annotated[
        str,
        typer.Option(
            callback=task_name,
            autocompletion=complete_task,
            help="classification; regression, which predicts numbers (-s 11 to 13 of "
            "LIBLINEAR, -s 3 of LIBSVM); or one-class, which ignores the labels (-s 21 "
            "of LIBLINEAR, -s 2 of LIBSVM).",
        ),
    ] = "classification",
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            "-p",
            min=0.0,
            help="For regression: residuals up to epsilon cost nothing.",
            show_default="0.1",
        ),
    ] = None,
    nu: Annotated[
        float | None,
        typer.Option(
            "--nu",
            "-n",
            min=0.0,
            max=1.0,
            help="For one-class: largest fraction of outliers in DATA.",
            show_default="0.5",
        ),
    ] = None,
    C: Annotated[
        float | None,
        typer.Option(
            "--C",
            "-C",
            "-c",
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
            help="Weight of the norm, instead of --C: C = 1/(lambda n) for n examples.",
            show_default=False,
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            callback=loss_name,
            autocompletion=complete_loss,
            help="hinge, squared_hinge or, without --kernel, smoothed_hinge. For "
            "regression: epsilon_insensitive or, without --kernel, "
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
            "--gamma",
            "-g",
            callback=gamma_value,
            metavar="G",
            help="Scale of the kernel: a number, scale, auto or mean-distance. With "
            "the smoothed hinge: width of its kink.",
            show_default="scale; 1",
        ),
    ] = None,
    degree: Annotated[
        int | None,
        typer.Option(
            "--degree",
            "-d",
            min=1,
            help="Degree of the kernel poly.",
            show_default="3",
        ),
    ] = None,
    coef0: Annotated[
        float | None,
        typer.Option(
            "--coef0",
            "-r",
            help="Constant term of the kernels poly and sigmoid.",
            show_default="0",
        ),
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
            "versus one: more and smaller problems) or crammer-singer (one joint "
            "problem, with the hinge). Always ovo with --kernel.",
            show_default="ovr",
        ),
    ] = None,
    solver: Annotated[
        str,
        typer.Option(
            callback=solver_name,
            autocompletion=complete_solver,
            help="auto, dcd, newton, interior-point, sdca, sgd-s, sgd-m, sgd-r, "
            "pegasos, norma, svmsgd, cutting-plane, ocas, mpu or sgd-qn. With "
            "--kernel: auto, block, fw, mfw, mdm, swap, swap-2o, core-vector, "
            "kernel-pegasos or nystroem. For regression: auto, dcd or newton; with "
            "--kernel auto or block.",
        ),
    ] = "auto",
    solver_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Option of the solver, such as batch_size=64; may be repeated.",
            show_default=False,
        ),
    ] = None,
    tol: Annotated[
        float,
        typer.Option(
            callback=positive,
            help="Target accuracy: the relative duality gap to prove. The objective is "
            "then within this fraction of the optimum.",
        ),
    ] = 1e-3,
    atol: Annotated[
        float | None,
        typer.Option(
            callback=positive,
            help="Another target accuracy, of which one is enough: the duality gap "
            "P - D, in units of the objective with C.",
            show_default="none",
        ),
    ] = None,
    max_epochs: Annotated[
        int, typer.Option(min=1, help="Largest number of epochs, per class or pair.")
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
            help="Value of the constant feature. A larger value penalises the bias "
            "less.",
            show_default="1",
        ),
    ] = None,
    penalize_intercept: Annotated[
        bool,
        typer.Option(
            help="Penalise the bias like the other weights, or not, as in the textbook "
            "SVM (--solver auto, dcd, newton or interior-point)."
        ),
    ] = True,
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS",
            help="Factors of C for the classes: balanced, or LABEL=W,... such as "
            "-1=1,1=2.5.",
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
            help="Number of features, if the last ones do not occur in DATA.",
            show_default="from DATA",
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write checkpoints of the training to FILE, and resume from FILE if "
            "it exists. Not with --kernel.",
            show_default=False,
        ),
    ] = None,
    checkpoint_every: Annotated[
        float,
        typer.Option(callback=positive, help="Seconds between two checkpoints."),
    ] = 60.0,
    label: Label = None,
    columns: FeatureColumns = None,
    standardize: Standardize = False,
    zero_based: ZeroBased = None,
    n_jobs: Jobs = None,
    json_: Json = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
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
    told: dict[str, Any] = {}  # entries of the JSON that replace records
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
                f"--multi-class {multi_class} is not for --kernel, which trains one "
                "versus one; leave it out."
            )
        if checkpoint is not None:
            raise typer.BadParameter("--checkpoint is not for --kernel; leave it out.")
    weights = class_weights(class_weight)
    configured = configured_solver(solver, solver_option or [], kernel, task)
    with told_plainly(debug):
        refuse_unreadable(data)
        refuse_unwritable(model, [data])
        refuse_overwriting(model)
        if checkpoint is not None:
            refuse_unwritable(checkpoint, [data])
        if kernel is not None and is_store(data):
            raise ValueError(
                f"{data} is a store, which --kernel cannot use; give a data file"
            )
        if not classes and is_store(data):
            raise ValueError(
                f"{data} is a store, which --task {task} cannot use; give a data file"
            )
        begun = time.perf_counter()
        remedy = "leave --n-features out, or give a larger number"
        chosen = chosen_columns(label, columns)
        examples = read_data(data, zero_based, n_jobs, n_features, remedy, chosen)
        examples, scaling = standardized(examples, standardize)
        seconds = time.perf_counter() - begun
        if classes:
            refuse_untrainable(examples)
        else:
            refuse_unfit(examples, task)
        weights = weights_of_labels(weights, examples)
        if not quiet:
            told_of = summary(examples, task)
            typer.echo(f"{told_of}, read in {seconds:.2f} s", err=True)
            if classes:
                _suspect_targets(examples)
        if C is None:
            C = 1.0 if lambda_ is None else 1.0 / (lambda_ * examples.shape[0])
        parameters = {
            "C": C,
            **own,
            "solver": configured,
            "tol": tol,
            "atol": 0.0 if atol is None else atol,
            "max_epochs": max_epochs,
            "time_limit": time_limit,
            "class_weight": weights,
            "random_state": seed,
            "n_jobs": n_jobs,
        }
        if solver_option:
            told |= {"solver": solver, "solver_options": solver_option}
        if not classes:
            del parameters["class_weight"]
            parameters |= own
            if solver == "auto":
                del parameters["solver"]
            if task == "one-class":
                del parameters["C"]
                if kernel is None:
                    del parameters["random_state"]
        from ..estimators.plain import PlainLinearSVC, save_plain

        notes = notes_of(examples)
        linear = classes and kernel is None
        if linear and PlainLinearSVC.can_train(parameters, examples.X):
            fitted: Any = PlainLinearSVC(parameters)
            with progress(quiet, tol, _problems("ovr", examples)) as on_epoch:
                fitted.fit(examples.X, examples.y, on_epoch)
            save_plain(fitted, model, notes, scaling, examples.names)
        else:
            from ..models.files import save_parts

            fitted = _fit(
                parameters, examples, quiet, estimator_of(task, kernel is not None)
            )
            save_parts(fitted, model, False, notes, scaling, examples.names)
        certificates = by_problem(fitted)
        certified = all(c.certified for _, c in certificates)
        figures = on_training_rows(fitted, examples, n_jobs)
        if json_:
            print_json(
                {
                    "model": model,
                    "certified": certified,
                    "certificates": [
                        name_of(label) | certificate.to_dict()
                        for label, certificate in certificates
                    ],
                    "training": figures,
                    "parameters": parameters | told,
                    "data": facts_of(examples) | {"seconds_to_read": seconds},
                }
            )
        else:
            print_outcome(certificates)
            if verbose:
                print_details(certificates)
            typer.echo(_on_training_rows(figures))
            typer.echo(f"Model written to {model}. Next: dualgap predict DATA {model}")
    if not certified:
        raise typer.Exit(NOT_CERTIFIED)


def _suspect_targets(examples: Data) -> None:
    """Suggest regression if almost every example has its own class."""
    number = len(labels_of(examples))
    if number > max(20, 0.1 * examples.shape[0]):
        typer.echo(
            f"{number:,} classes in {examples.shape[0]:,} examples. If the labels are "
            "numbers to predict, use --task regression.",
            err=True,
        )


def _on_training_rows(figures: Figures) -> str:
    """Return a sentence about the quality on the training rows."""

    def number(name: str, form: str) -> str:
        value = figures.get(name)
        return "-" if value is None else format(value, form)

    if "accuracy" in figures:
        balanced = number("balanced_accuracy", ".2%")
        words = f"Training accuracy {number('accuracy', '.2%')} (balanced {balanced})"
    elif "outliers" in figures:
        words = f"Outliers among the training rows: {number('outliers', '.2%')}"
    else:
        error = number("mean_absolute_error", ".4g")
        words = f"Training R2 {number('r2', '.4g')}, mean absolute error {error}"
    if "rows_judged" in figures:
        words += f" on {figures['rows_judged']:,} rows drawn at random"
    if "support_vectors" in figures:
        words += f", {figures['support_vectors']:,} support vectors"
    return f"{words}.".replace("%", " %")


def configured_solver(
    solver: str, options: Sequence[str], kernel: str | None, task: str
) -> Any:
    """Return the name of a solver or, with options, its record.

    Raises
    ------
    typer.BadParameter
        If an option is unknown or its value is invalid.
    """
    if not options:
        return solver
    from ..io.model import from_fields
    from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS
    from ..solvers import SOLVERS

    if task != "classification":
        raise typer.BadParameter(f"--solver-option is not for --task {task}.")
    registers: dict[str, Any] = {**SOLVERS}
    if kernel is not None:
        registers = {**KERNEL_SOLVERS, **APPROXIMATIONS}
    record = registers[solver]
    # `max_steps`, the keyword that solvers inherit, comes last.
    own = sorted(fields(record), key=lambda f: f.kw_only is True)
    known = {f.name: getattr(record(), f.name) for f in own if f.init}
    given, hints = {}, get_type_hints(record)
    for option in options:
        name, equals, text = option.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or name not in known:
            names = ", ".join(
                f"{key}={'none' if value is None else value}"
                for key, value in known.items()
            )
            raise typer.BadParameter(
                f"--solver-option {option!r} is unknown; {solver} has "
                + (f"the options {names}." if names else "no options.")
            )
        # An option whose default is a word takes words, such as none.
        word = isinstance(known[name], str)
        given[name] = text.strip() if word else _parsed(text.strip())
        words = get_args(hints[name]) if get_origin(hints[name]) is Literal else ()
        if words and given[name] not in words:
            raise typer.BadParameter(
                f"--solver-option {option}: use {', '.join(map(str, words))}."
            )
    try:
        return from_fields(record, known | given)
    except (ValueError, TypeError) as error:
        told = str(error).removeprefix(f"{record.__name__}: ").replace("=None", "=none")
        raise typer.BadParameter(f"--solver-option: {told}.") from None


def _parsed(text: str) -> Any:
    """Return the value of a text: a number, true, false, none, or a word."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _of_linear_svc(
    solver: str,
    loss: str | None,
    bias: dict[str, Any],
    shape: dict[str, Any],
    multi_class: str,
) -> dict[str, Any]:
    """Return the parameters of LinearSVC, after checking the options."""
    loss, gamma, scaling = loss or "hinge", shape["gamma"], bias["intercept_scaling"]
    for name, option in _ONLY_KERNEL.items():
        if shape[name] is not None:
            raise typer.BadParameter(f"{option} needs --kernel.")
    if gamma is not None and loss != "smoothed_hinge":
        raise typer.BadParameter(
            f"--gamma is for --kernel or for --loss smoothed_hinge, not {loss}."
        )
    if isinstance(gamma, str):
        raise typer.BadParameter(
            f"--gamma {gamma} needs --kernel; without it, give a number."
        )
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
    """Return the parameters of SVC, after checking the options."""
    from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS

    known = KERNEL_SOLVERS | APPROXIMATIONS
    loss = loss or "hinge"
    if loss not in ("hinge", "squared_hinge"):
        raise typer.BadParameter(
            f"--kernel needs --loss hinge or squared_hinge, not {loss}."
        )
    if bias["intercept_scaling"] is not None or not bias["penalize_intercept"]:
        raise typer.BadParameter(
            "--intercept-scaling and --no-penalize-intercept are not for --kernel; "
            "leave them out. The bias is unpenalised with hinge, except with --solver "
            "kernel-pegasos, and penalised with squared_hinge."
        )
    if solver not in known:
        raise typer.BadParameter(
            f"--solver {solver} trains only linear SVMs; with --kernel use "
            f"{', '.join(known)}."
        )
    record: Any = known[solver]
    if loss not in getattr(record, "losses", (loss,)):
        raise typer.BadParameter(
            f"--solver {solver} cannot train --loss hinge; use --loss squared_hinge, "
            "or --solver auto, block or kernel-pegasos."
        )
    if not (bias["fit_intercept"] or record.without_bias):
        raise typer.BadParameter(
            f"--solver {solver} needs a bias; with --no-intercept use --solver "
            "kernel-pegasos or nystroem."
        )
    users = {"gamma": set(_SHAPED), "degree": {"poly"}, "coef0": {"poly", "sigmoid"}}
    for name, kernels in users.items():
        if shape[name] is not None and kernel not in kernels:
            raise typer.BadParameter(
                f"--{name} is for --kernel {' or '.join(sorted(kernels))}, not "
                f"{kernel}."
            )
    given = {name: value for name, value in shape.items() if value is not None}
    own = {"kernel": kernel, "loss": loss, "fit_intercept": bias["fit_intercept"]}
    return own | given


_SHAPED = ("poly", "rbf", "sigmoid", "laplacian")  # kernels with a gamma


_ONLY_KERNEL = {"degree": "--degree", "coef0": "--coef0", "cache_size": "--cache"}


def refuse_mismatch(solver: str, loss: str) -> None:
    """Raise an error if a linear solver cannot train a loss."""
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
    """Raise an error for options that the joint problem of all classes lacks."""
    for option, known in (
        ("--solver", solver == "auto"),
        ("--loss", loss == "hinge"),
        ("--no-penalize-intercept", penalize_intercept),
    ):
        if not known:
            raise typer.BadParameter(
                f"{option} is not for --multi-class crammer-singer, which has its own "
                "solver, the hinge and a penalised bias; leave it out, or use "
                "--multi-class ovr or ovo."
            )


def _loss_record(loss: str, gamma: float | None) -> Any:
    if gamma is None:
        return loss
    from ..losses import SmoothedHinge

    return SmoothedHinge(gamma)


def class_weights(text: str | None) -> Any:
    """Return None, ``"balanced"``, or weights by label, from the option's text.

    Raises
    ------
    typer.BadParameter
        If the text is malformed.
    """
    if text is None or text == "balanced":
        return text
    weights: dict[float | str, float] = {}
    for part in text.split(","):
        label, _, weight = part.partition("=")
        try:
            pair = _label(label), float(weight if label else "")
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


def _label(text: str) -> float | str:
    """Return a label as a number, or else as text."""
    try:
        return float(text)
    except ValueError:
        return text.strip()


def weights_of_labels(weights: Any, examples: Data) -> Any:
    """Return a weight for every label in the data, 1 by default.

    Raises
    ------
    typer.BadParameter
        If a label does not occur.
    """
    if not isinstance(weights, dict):
        return weights
    labels = labels_of(examples)
    strange = [label for label in weights if label not in labels]
    if strange:
        odd = strange[0] if isinstance(strange[0], str) else f"{strange[0]:g}"
        raise typer.BadParameter(
            f"--class-weight: {examples.path} has no label {odd}; its labels "
            f"are {shortened(labels)}."
        )
    return {label: weights.get(label, 1.0) for label in labels}


def _problems(multi_class: str, examples: Data) -> int:
    """Return the number of binary problems, each with its own progress."""
    classes = len(labels_of(examples))
    if classes == 2 or multi_class == "crammer_singer":
        return 1
    return classes * (classes - 1) // 2 if multi_class == "ovo" else classes


def _fit(
    parameters: Mapping[str, Any],
    examples: Data,
    quiet: bool,
    estimator: type[LinearSVC] | type[SVC],
) -> LinearSVC | SVC:
    from sklearn.exceptions import ConvergenceWarning

    classes = hasattr(estimator, "_fit")
    with warnings.catch_warnings():
        # The output and the exit status tell it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        kind = "ovo" if "kernel" in parameters else parameters.get("multi_class", "")
        problems = _problems(kind, examples) if classes else 1
        with progress(quiet, parameters["tol"], problems) as on_epoch:
            if not classes:
                model: Any = estimator(**parameters)
                model._tell = on_epoch
                model.fit(examples.X, examples.y)
                del model._tell
                return model
            weight = getattr(examples.X, "sample_weight", None)  # only stores have it
            return estimator(**parameters)._fit(
                examples.X, examples.y, weight, on_epoch=on_epoch
            )

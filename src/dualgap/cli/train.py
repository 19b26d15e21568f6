"""``dualgap train``: train a model and prove its accuracy."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
)

import typer

from .app import NOT_CERTIFIED, app, paragraphs, told_plainly
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
    standardized,
    summary,
)
from .options import (
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
    complete_kernel,
    complete_loss,
    complete_multi_class,
    complete_solver,
    fraction,
    gamma_value,
    kernel_name,
    loss_name,
    megabytes,
    multi_class_name,
    positive,
    solver_name,
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
from .parameters import (
    class_weights,
    configured_solver,
    of_linear_svc,
    of_svc,
    weights_of_labels,
)


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
            callback=fraction,
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
        own = of_linear_svc(solver, loss, bias, shape, multi_class or "ovr")
        told = {"loss": loss or "hinge", "gamma": gamma}
        own |= {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
    else:
        own = of_svc(solver, loss, bias, shape, kernel)
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

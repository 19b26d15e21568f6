"""``dualgap train``: train a model and prove its accuracy."""

from __future__ import annotations

import time
import warnings
from typing import TYPE_CHECKING

import typer

from .app import NOT_CERTIFIED, app, paragraphs, taking, told_plainly
from .data import (
    FileExamples,
    chosen_columns,
    facts_of,
    is_store,
    labels_of,
    notes_of,
    read_data,
    refuse_overwriting_by_model,
    refuse_unfit,
    refuse_unreadable,
    refuse_untrainable,
    refuse_unwritable,
    standardized,
    summary,
)
from .parameters import (
    Parameters,
    class_weights,
    configured_solver,
    default_loss,
    of_linear_svc,
    of_svc,
    weights_of_labels,
)
from .quality import Figures, on_training_rows
from .report import (
    by_problem,
    name_of,
    plain_warnings,
    print_details,
    print_json,
    print_outcome,
    progress,
)
from .task import estimator_of, of_task
from .train_options import TrainOptions

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from ..data.scaling import Scaling
    from ..estimators import SVC, LinearSVC
    from .data import Model


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
@taking(TrainOptions)
def train(options: TrainOptions) -> None:
    """Train an SVM on DATA until its accuracy is proved, and write MODEL."""
    own, told = _of_estimator(options)
    weights = class_weights(options.class_weight)
    solver = configured_solver(
        options.solver, options.solver_option or [], options.kernel, options.task
    )
    with told_plainly(options.debug):
        _refuse_files(options)
        if options.bounds and options.kernel is not None:
            _refuse_bounds(estimator_of(options.task, True)(**own))
        begun = time.perf_counter()
        examples, scaling = _read(options)
        seconds = time.perf_counter() - begun
        weights = weights_of_labels(weights, examples)
        if not options.quiet:
            _tell_of(examples, options.task, seconds)
        common = _common(options, examples) | {"class_weight": weights}
        parameters = _without_foreign(options, common | {"solver": solver} | own)
        with plain_warnings():
            model = _train(options, parameters, examples, scaling)
        certificates = by_problem(model)
        figures = on_training_rows(model, examples, options.n_jobs)
        certified = all(c.certified for _, c in certificates)
        if options.json_:
            print_json(
                {
                    "model": options.model,
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
            if options.verbose:
                print_details(certificates)
            typer.echo(_on_training_rows(figures))
            typer.echo(
                f"Model written to {options.model}. "
                f"Next: dualgap predict DATA {options.model}"
            )
    if not certified:
        raise typer.Exit(NOT_CERTIFIED)


def _of_estimator(options: TrainOptions) -> tuple[Parameters, Parameters]:
    """Return the parameters that only some estimators have, after checking them.

    The second dictionary has words for JSON in the place of records.
    """
    o, told = options, Parameters()
    if o.C is not None and o.lambda_ is not None:
        raise typer.BadParameter("--C and --lambda exclude each other.")
    bias = {
        "fit_intercept": o.intercept,
        "intercept_scaling": o.intercept_scaling,
        "penalize_intercept": o.penalize_intercept,
    }
    shape = {
        "gamma": o.gamma,
        "degree": o.degree,
        "coef0": o.coef0,
        "cache_size": o.cache,
    }
    if o.task != "classification":
        one_class = o.task == "one-class"
        given = {
            "--class-weight": o.class_weight,
            "--checkpoint": o.checkpoint,
            "--multi-class": o.multi_class,
            "--C": o.C if one_class else None,
            "--lambda": o.lambda_ if one_class else None,
            "--bounds": (o.bounds or None) if one_class else None,
            "--probability": o.probability or None,
        }
        own = of_task(
            o.task, o.solver, o.loss, bias, shape, o.kernel, o.epsilon, o.nu, given
        )
    elif o.epsilon is not None or o.nu is not None:
        raise typer.BadParameter(
            "--epsilon needs --task regression."
            if o.nu is None
            else "--nu needs --task one-class."
        )
    elif o.kernel is None:
        multi_class = o.multi_class or "ovr"
        own = of_linear_svc(o.solver, o.loss, bias, shape, multi_class)
        told = {"loss": o.loss or default_loss(multi_class), "gamma": o.gamma}
        own |= {"checkpoint": o.checkpoint, "checkpoint_every": o.checkpoint_every}
    else:
        own = of_svc(o.solver, o.loss, bias, shape, o.kernel)
        if o.multi_class not in (None, "ovo"):
            raise typer.BadParameter(
                f"--multi-class {o.multi_class} is not for --kernel, which trains one "
                "versus one; leave it out."
            )
        if o.checkpoint is not None:
            raise typer.BadParameter("--checkpoint is not for --kernel; leave it out.")
    if o.solver_option:
        told |= {"solver": o.solver, "solver_options": o.solver_option}
    return own, told


def _refuse_files(options: TrainOptions) -> None:
    """Raise an error for files that cannot be read or written, before any work."""
    data = options.data
    refuse_unreadable(data)
    refuse_unwritable(options.model, [data])
    refuse_overwriting_by_model(options.model)
    if options.checkpoint is not None:
        refuse_unwritable(options.checkpoint, [data])
    if is_store(data):
        for option, cannot in (
            ("--kernel", options.kernel is not None),
            (f"--task {options.task}", options.task != "classification"),
            ("--bounds", options.bounds),
            ("--probability", options.probability),
        ):
            if cannot:
                raise ValueError(
                    f"{data} is a store, which {option} cannot use; give a data file"
                )


def _refuse_bounds(model: BaseEstimator) -> None:
    """Raise an error if the kernel has no bounds on decisions at new rows."""
    from ..answers.kernel_regions import refuse_new_rows

    refuse_new_rows(model._kernel_record())


def _read(options: TrainOptions) -> tuple[FileExamples, Scaling | None]:
    """Read the examples and, if asked, standardise them."""
    chosen = chosen_columns(options.label, options.columns)
    if options.task == "one-class":
        chosen = chosen._replace(needs_label=options.label is not None)
    examples = read_data(
        options.data,
        options.zero_based,
        options.n_jobs,
        options.n_features,
        "leave --n-features out, or give a larger number",
        chosen,
    )
    examples, scaling = standardized(examples, options.standardize)
    if options.task == "classification":
        refuse_untrainable(examples)
        if options.probability:
            _refuse_few(examples)
    else:
        refuse_unfit(examples, options.task)
    return examples, scaling


def _refuse_few(examples: FileExamples) -> None:
    """Raise an error if a class has fewer rows than there are folds."""
    import numpy as np

    labels, counts = np.unique(examples.y, return_counts=True)
    if counts.min() < 5:
        raise ValueError(
            f"label {labels[counts.argmin()]!s} has {counts.min()} rows, but "
            "--probability needs 5 of each label; give more rows, or leave it out"
        )


def _tell_of(examples: FileExamples, task: str, seconds: float) -> None:
    """Print the size of the data, and advice if the labels look like numbers."""
    typer.echo(f"{summary(examples, task)}, read in {seconds:.2f} s", err=True)
    if task == "classification":
        _suspect_targets(examples)


def _common(options: TrainOptions, examples: FileExamples) -> Parameters:
    """Return the parameters that estimators have in common."""
    C = options.C
    if C is None:
        lambda_ = options.lambda_
        C = 1.0 if lambda_ is None else 1.0 / (lambda_ * examples.shape[0])
    return {
        "C": C,
        "tol": options.tol,
        "atol": 0.0 if options.atol is None else options.atol,
        "max_iter": options.max_iter,
        "time_limit": options.time_limit,
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
    }


def _without_foreign(options: TrainOptions, parameters: Parameters) -> Parameters:
    """Return the parameters without those that the estimator of the task lacks."""
    foreign: set[str] = set()
    if options.task != "classification":
        foreign = {"class_weight"}
        if options.solver == "auto":
            foreign.add("solver")
    if options.task == "one-class":
        foreign.add("C")
        if options.kernel is None:
            foreign.add("random_state")
    return {name: value for name, value in parameters.items() if name not in foreign}


def _train(
    options: TrainOptions,
    parameters: Parameters,
    examples: FileExamples,
    scaling: Scaling | None,
) -> Model:
    """Train a model, write it, and return it."""
    from ..models.plain import PlainLinearSVC, save_plain

    notes, kernel = notes_of(examples), options.kernel is not None
    linear = options.task == "classification" and not kernel
    plain_enough = linear and not options.bounds and not options.probability
    if plain_enough and PlainLinearSVC.can_train(parameters, examples.X):
        plain = PlainLinearSVC(parameters)
        problems = _problems("ovr", examples)
        with progress(options.quiet, options.tol, problems) as on_epoch:
            plain.fit(examples.X, examples.y, on_epoch)
        save_plain(plain, options.model, notes, scaling, examples.names)
        return plain
    from ..models.files import save_parts

    estimator = estimator_of(options.task, kernel)
    model = _fit(parameters, examples, options.quiet, estimator)
    if options.bounds:
        model.bound_optimum(examples.X, examples.y)
    whole = model
    if options.probability:
        from ..estimators import calibrated

        whole = calibrated(model, examples.X, examples.y)
    save_parts(whole, options.model, False, notes, scaling, examples.names)
    return model


def _suspect_targets(examples: FileExamples) -> None:
    """Suggest regression if almost every example has its own class."""
    number = len(labels_of(examples))
    if number > max(20, 0.1 * examples.shape[0]):
        typer.echo(
            f"{number:,} classes in {examples.shape[0]:,} examples. If the labels are "
            "numbers to predict, use --task regression"
            + (" on a data file." if is_store(examples.path) else "."),
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


def _problems(multi_class: str, examples: FileExamples) -> int:
    """Return the number of binary problems, each with its own progress."""
    classes = len(labels_of(examples))
    if classes == 2 or multi_class == "crammer_singer":
        return 1
    return classes * (classes - 1) // 2 if multi_class == "ovo" else classes


def _fit(
    parameters: Parameters,
    examples: FileExamples,
    quiet: bool,
    estimator: type[LinearSVC] | type[SVC],
) -> LinearSVC | SVC:
    from sklearn.base import is_classifier
    from sklearn.exceptions import ConvergenceWarning

    model = estimator(**parameters)
    with warnings.catch_warnings():
        # The output and the exit status tell it.
        warnings.simplefilter("ignore", ConvergenceWarning)
        kind = "ovo" if "kernel" in parameters else parameters.get("multi_class", "")
        problems = _problems(kind, examples) if is_classifier(model) else 1
        with progress(quiet, parameters["tol"], problems) as on_epoch:
            weight = getattr(examples.X, "sample_weight", None)  # only stores have it
            return model._fit(examples.X, examples.y, weight, on_epoch=on_epoch)

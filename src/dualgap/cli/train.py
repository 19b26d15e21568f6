"""``dualgap train``: train a model and prove its accuracy."""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

from .data import (
    FileExamples,
    check_files,
    is_store,
    read_data,
    refuse_store,
    shortened,
)
from .options import (
    PLACES,
    STANDARDIZE,
    WEIGHTS,
    Options,
    configured_loss,
    configured_solver,
    estimator_of,
    in_options,
    parameters_of,
    refuse_shape,
)
from .parser import UsageError, Values
from .predict import in_words, on_training_rows
from .report import (
    exit_status,
    in_json,
    interrupted,
    plain_warnings,
    print_details,
    print_json,
    print_outcome,
    progress,
    without_convergence_warnings,
)

if TYPE_CHECKING:
    from ..data.scaling import Scaling
    from ..data.types import Label, MatrixLike, Parameters
    from .data import Model

EPILOG = (
    "dualgap train a9a a9a.model",
    "dualgap train a9a.xz a9a.model --C 0.1 --tol 1e-5 --solver sdca",
    "dualgap train a9a a9a.model --loss squared_hinge --class-weight balanced",
    "dualgap train a9a a9a.model --kernel rbf --gamma 0.05 --cache 2GB",
    "dualgap train letter letter.model --multi-class ovo --n-jobs -1",
    "dualgap train iris.csv iris.model --label species --standardize",
    "dualgap train prices prices.model --task regression --epsilon 0.5",
    "dualgap train prices high.model --task regression --loss quantile --quantile 0.9",
    "dualgap train normal normal.model --task one-class --nu 0.05 --kernel rbf",
    "dualgap train a9a a9a.model --probability",
    "dualgap train big.svm big.model --time-limit 60 --json > certificate.json",
    "dualgap train big.store big.model --checkpoint big.checkpoint",
    "The result at the end bounds how far the objective of the model is from the best "
    "possible one. --verbose shows both bounds: the primal value is the objective of "
    "this model, and no model has an objective below the dual value.",
    "Ctrl-C ends the training and keeps the best model so far; a second Ctrl-C aborts.",
    "Exit status: 0 certified to --tol or --atol; 3 stopped before that, the model is "
    "written; 1 bad data or files; 2 wrong usage; 130 interrupted by Ctrl-C, the model "
    "is written if that ended its training.",
)
OPTIONS = """
Data:
  --several-labels
    Train on any number of labels per example, with commas between them, as in
    3,7 1:0.5 of svmlight text.
Model:
  --task classification|regression|one-class
    What to train: a classifier; regression, which predicts numbers (-s 11 to 13 of
    LIBLINEAR, -s 3 of LIBSVM); or one-class, which ignores the labels (-s 21 of
    LIBLINEAR, -s 2 of LIBSVM). [default: classification]
  --lambda X
    Weight of the norm, instead of --C: C = 1/(lambda n) for n examples, whatever
    their --weight.
  --probability --proba -b
    Fit probabilities for predict --proba, to five more models, each trained without a
    fifth of DATA. After Ctrl-C the model has none.
Solver and accuracy:
  --solver-option NAME=VALUE ...
    Option of the solver, such as batch_size=64; may be repeated.
Output:
  --bounds
    Keep in MODEL where the exact optimum may be, for predict --undecided.
  --verbose
    Show the certificate of every class or pair of classes.
"""
#: Options of models that give each row one label.
_ONE_LABEL = ("kernel", "bounds", "probability", "multi_class", "class_weight")


def add(command: Options) -> None:
    """Add the options."""
    command.data(store=True)
    text = (
        "File to write, in the safetensors format. An existing model is replaced when "
        "the new one is complete."
    )
    command.output("MODEL", text, "model", name="model")
    command.writes["checkpoint"] = ""
    command.table_options()
    command.add(WEIGHTS + STANDARDIZE)
    command.fields_of(*[*PLACES][:8])
    command.add(OPTIONS)
    command.n_features("DATA")
    command.jobs("training several classes", "all for reading, 1 for training")
    command.common(trains=True)


def run(o: Values) -> int:
    """Train, write the model, and tell what was proved."""
    name = estimator_of(o)
    parameters = _parameters(o, name)
    check_files(o)
    for option, given in (
        ("--kernel", o.kernel is not None),
        (f"--task {o.task}", o.task != "classification"),
        ("--bounds", o.bounds),
        ("--probability", o.probability),
        ("--standardize", o.standardize),
        ("--several-labels", o.several_labels),
        ("--penalty l1", o.penalty == "l1"),
    ):
        if given:
            refuse_store(o.data, option)
    begun = time.perf_counter()
    examples, scaling = _read(o)
    seconds = time.perf_counter() - begun
    if isinstance(o.class_weight, dict):
        parameters["class_weight"] = _weights(o.class_weight, examples)
    if o.lambda_ is not None:
        parameters["C"] = 1.0 / (o.lambda_ * examples.shape[0])
    if not o.quiet:
        _tell_of(examples, o.task, seconds)
    with plain_warnings():
        beyond = o.bounds or o.probability or examples.weight is not None
        beyond = beyond or bool(examples.several)
        whole = model = _model(name, parameters, beyond, examples.X)
        _fit(model, examples, o.quiet)
        if examples.several:
            import numpy as np

            model.classes_ = np.array(examples.several)
        if o.bounds:
            model.bound_optimum(examples.X, examples.y, examples.weight)
        if o.probability:
            whole = _with_probabilities(model, examples)
    save(whole, o.model, examples, scaling)
    certificate = model.certificate_
    figures = on_training_rows(whole, examples, o.n_jobs)
    if o.json:
        print_json(
            {
                "model": o.model,
                "certified": certificate.certified,
                "certificates": in_json(model, certificate),
                "training": figures,
                "parameters": _told(model, o),
                "data": examples.facts() | {"seconds_to_read": seconds},
            }
        )
    else:
        print_outcome(certificate)
        if o.verbose:
            print_details(certificate)
        judged = figures.pop("rows_judged", None)
        drawn = "" if judged is None else f"{judged:,} of "
        print(f"On {drawn}the training rows: {in_words(figures)}.")
        print(f"Model written to {o.model}. Next: dualgap predict DATA {o.model}")
    left_out = o.probability and whole is model
    return exit_status(certificate.certified, left_out or interrupted(certificate))


def _with_probabilities(model: Model, examples: FileExamples) -> Model:
    """Return the model with probabilities; as it is if Ctrl-C ended the training."""
    from ..estimators import calibrated

    if not interrupted(model.certificate_):
        try:
            weight = examples.weight
            return calibrated(model, examples.X, examples.y, sample_weight=weight)
        except KeyboardInterrupt:
            pass
    print("dualgap: interrupted; the model has no probabilities", file=sys.stderr)
    return model


def _parameters(o: Values, name: str) -> Parameters:
    """Return the parameters of an estimator, after refusing what contradicts itself."""
    if o.C is not None and o.lambda_ is not None:
        raise UsageError("--C and --lambda exclude each other.")
    if o.lambda_ is not None and o.task == "one-class":
        raise UsageError("--lambda is not for --task one-class; use --nu.")
    if o.probability and o.task != "classification":
        raise UsageError(f"--probability is not for --task {o.task}.")
    if o.bounds and o.task == "one-class":
        raise UsageError("--bounds is not for --task one-class.")
    for place, wanted, keys in (
        ("--nu", name.startswith("Nu"), ("bounds", "probability", "lambda_")),
        ("--several-labels", o.several_labels, _ONE_LABEL),
    ):
        wrong = [key.strip("_") for key in keys if wanted and getattr(o, key)]
        if wrong:
            raise UsageError(f"--{wrong[0].replace('_', '-')} is not for {place}.")
    if o.several_labels and name != "LinearSVC":
        raise UsageError(f"--several-labels is not for --task {o.task}.")
    if o.fit_intercept is False and o.intercept_scaling is not None:
        raise UsageError("--intercept-scaling needs --intercept.")
    if o.multi_class == "crammer_singer" and o.loss is None and o.kernel is None:
        o.loss = "hinge"  # the only loss of this problem
    loss = o.loss
    if name == "LinearSVC" and o.gamma is not None:
        loss, o.gamma = configured_loss(o.loss, o.gamma), None
    found = parameters_of(o, name)
    if o.kernel is not None:
        refuse_shape(o)
    found |= {} if loss is None else {"loss": loss}
    if o.solver_option:
        found["solver"] = configured_solver(
            o.solver or "auto", o.solver_option, o.kernel, o.task
        )
    else:
        _refuse_contradictions(name, found, o.bounds)
    return found


def _refuse_contradictions(name: str, parameters: Parameters, bounds: bool) -> None:
    """Refuse parameters that a fit would refuse, by a fit of four rows.

    Options of a solver may need more rows: the fit of all rows checks them.
    """
    import numpy as np

    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.0]]), [-1, 1, 1, -1]
    of_data = {"class_weight": None, "checkpoint": None, "n_jobs": None}
    few = {key: value for key, value in parameters.items() if key not in of_data}
    model = _model(name, few | {"max_iter": 1}, bounds, X)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _fit(model, FileExamples("", X, np.array(y), False), True)
            if bounds:
                model.bound_optimum(X, y)
    except (ValueError, TypeError) as error:
        raise UsageError(f"{in_options(str(error))}.") from None


def _model(name: str, parameters: Parameters, whole: bool, X: MatrixLike) -> Model:
    """Return an estimator; unless `whole`, one without scikit-learn if it can train."""
    from ..models.plain import PlainLinearSVC

    plain = name == "LinearSVC" and not whole
    if plain and PlainLinearSVC.can_train(parameters, X):
        return PlainLinearSVC(parameters)
    from .. import estimators

    return getattr(estimators, name)(**parameters)


def _fit(model: Model, examples: FileExamples, quiet: bool) -> None:
    """Train a model, and show the progress of its epochs."""
    tol, problems = model.get_params()["tol"], _problems(model, examples)
    with without_convergence_warnings(), progress(quiet, tol, problems) as on_epoch:
        weight = examples.weight
        if weight is None:
            weight = getattr(examples.X, "sample_weight", None)  # of a store
        model._fit(examples.X, examples.y, weight, on_epoch=on_epoch)


def _told(model: Model, o: Values) -> Parameters:
    """Return the parameters of a model for JSON, with names in place of records."""
    values = model.get_params()
    told = {key: getattr(value, "name", value) for key, value in values.items()}
    told |= {"solver_option": o.solver_option} if o.solver_option else {}
    width = getattr(values.get("loss"), "gamma", None)
    return told | ({} if width is None else {"gamma": width})


def _weights(
    weights: dict[float | str, float], examples: FileExamples
) -> dict[Label, float]:
    """Return a weight for every label in the data, 1 by default."""
    labels = examples.labels
    strange = [label for label in weights if label not in labels]
    if strange:
        odd = strange[0] if isinstance(strange[0], str) else f"{strange[0]:g}"
        raise UsageError(
            f"--class-weight: {examples.path} has no label {odd}; its labels are "
            f"{shortened(labels)}."
        )
    return {label: weights.get(label, 1.0) for label in labels}


def _read(o: Values) -> tuple[FileExamples, Scaling | None]:
    """Read the examples and, if asked, standardise them."""
    examples = read_data(o, needs_label=o.task != "one-class" or o.label is not None)
    examples, scaling = standardized(examples, o.standardize)
    refuse_untrainable(examples, o.task)
    if o.probability:
        import numpy as np

        labels, counts = np.unique(examples.y, return_counts=True)
        if counts.min() < 5:  # folds
            raise ValueError(
                f"label {labels[counts.argmin()]!s} has {counts.min()} rows, but "
                "--probability needs 5 of each label; give more rows, or leave it out"
            )
    return examples, scaling


def _tell_of(examples: FileExamples, task: str, seconds: float) -> None:
    """Print the size of the data, and advice if the labels look like numbers."""
    print(f"{examples.summary(task)}, read in {seconds:.2f} s", file=sys.stderr)
    examples.tell()
    if task != "classification":
        return
    number = len(examples.labels)
    if number > max(20, 0.1 * examples.shape[0]):
        print(
            f"{number:,} classes in {examples.shape[0]:,} examples. If the labels are "
            "numbers to predict, use --task regression"
            + (" on a data file." if is_store(examples.path) else "."),
            file=sys.stderr,
        )


def _problems(model: Model, examples: FileExamples) -> int:
    """Return the number of binary problems, each with its own progress."""
    from ..problems.reductions import reduction_of

    parameters = model.get_params()
    classes = len(examples.labels) if "class_weight" in parameters else 2
    return len(reduction_of(parameters.get("multi_class", "ovo"), classes))


def refuse_untrainable(examples: FileExamples, task: str = "classification") -> None:
    """Raise an error for examples that a model of a task cannot be trained on."""
    path, kind, of_store = examples.path, examples.y.dtype.kind, ""
    if is_store(examples.path):
        of_store = ", from the file that the store was made from"
    if examples.nnz == 0:
        raise ValueError(
            f"{path} has only labels and no values; add features (a table has commas, "
            "semicolons, tabs, bars or blanks between its columns)"
        )
    if task == "regression" and kind not in "if":
        raise ValueError(
            f"{path} has labels that are not numbers, such as {examples.y[0]!s}; name "
            "a column of numbers with --label, or leave --task regression out to "
            "train a classifier"
        )
    if task != "classification" or examples.several:
        return
    if len(examples.labels) < 2:
        raise ValueError(
            f"{path} has only one class, {examples.labels[0]}, and classification "
            f"needs two; dualgap train --task one-class learns one class{of_store}"
        )
    if kind == "f":
        odd = [x for x in map(float, examples.labels) if x % 1 or abs(x) >= 2**53]
        raise ValueError(
            f"{path} has labels that are not whole numbers below 2**53, such as "
            f"{odd[0]}; dualgap train --task regression predicts numbers{of_store}"
        )


def standardized(
    examples: FileExamples, wanted: bool
) -> tuple[FileExamples, Scaling | None]:
    """Return examples with standardised columns, and the scaling; or None for it."""
    if not wanted:
        return examples, None
    from ..data.scaling import Scaling

    scaling = Scaling.of(examples.X)
    return replace(examples, X=scaling.apply(examples.X)), scaling


def save(
    model: Model, path: str, examples: FileExamples, scaling: Scaling | None
) -> None:
    """Write a model file."""
    from ..models.plain import PlainLinearSVC, save_plain

    if isinstance(model, PlainLinearSVC):
        save_plain(model, path, examples.notes(), scaling, examples.names)
        return
    from ..models.files import save_parts

    save_parts(model, path, False, examples.notes(), scaling, examples.names)


COMMANDS = {"train": (EPILOG, add, run)}

"""Options of ``dualgap train``, with their help."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from .options import (
    KERNEL,
    LOSS,
    MULTI_CLASS,
    DataOrStore,
    Jobs,
    TrainingOptions,
    Verbose,
    complete_solver,
    fraction,
    gamma_value,
    megabytes,
    positive,
    solver_name,
)
from .task import TASK


@dataclass(frozen=True, kw_only=True)
class TrainOptions(TrainingOptions):
    """Options of ``dualgap train``."""

    data: DataOrStore
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="File to write, in the safetensors format. An existing model is "
            "replaced when the new one is complete.",
            show_default=False,
        ),
    ]
    task: Annotated[
        str,
        typer.Option(
            callback=TASK.check,
            autocompletion=TASK.complete,
            help="classification; regression, which predicts numbers (-s 11 to 13 of "
            "LIBLINEAR, -s 3 of LIBSVM); or one-class, which ignores the labels (-s 21 "
            "of LIBLINEAR, -s 2 of LIBSVM).",
        ),
    ] = "classification"
    epsilon: Annotated[
        float | None,
        typer.Option(
            "--epsilon",
            "-p",
            min=0.0,
            help="For regression: residuals up to epsilon cost nothing.",
            show_default="0.1",
        ),
    ] = None
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
    ] = None
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
    ] = None
    lambda_: Annotated[
        float | None,
        typer.Option(
            "--lambda",
            callback=positive,
            help="Weight of the norm, instead of --C: C = 1/(lambda n) for n examples.",
            show_default=False,
        ),
    ] = None
    loss: Annotated[
        str | None,
        typer.Option(
            callback=LOSS.check,
            autocompletion=LOSS.complete,
            help="hinge, squared_hinge or, without --kernel, smoothed_hinge. For "
            "regression: epsilon_insensitive or, without --kernel, "
            "squared_epsilon_insensitive.",
            show_default="squared_hinge, with --kernel hinge; epsilon_insensitive",
        ),
    ] = None
    kernel: Annotated[
        str | None,
        typer.Option(
            callback=KERNEL.check,
            autocompletion=KERNEL.complete,
            help="Train a kernel SVM, one versus one: linear, poly, rbf, sigmoid or "
            "laplacian.",
            show_default="none: a linear SVM",
        ),
    ] = None
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
    ] = None
    degree: Annotated[
        int | None,
        typer.Option(
            "--degree",
            "-d",
            min=1,
            help="Degree of the kernel poly.",
            show_default="3",
        ),
    ] = None
    coef0: Annotated[
        float | None,
        typer.Option(
            "--coef0",
            "-r",
            help="Constant term of the kernels poly and sigmoid.",
            show_default="0",
        ),
    ] = None
    cache: Annotated[
        str | None,
        typer.Option(
            callback=megabytes,
            metavar="SIZE",
            help="Memory for kernel values, such as 500MB or 2GB.",
            show_default="200MB",
        ),
    ] = None
    multi_class: Annotated[
        str | None,
        typer.Option(
            callback=MULTI_CLASS.check,
            autocompletion=MULTI_CLASS.complete,
            metavar="WAY",
            help="With more than two labels: ovr (one versus the rest), ovo (one "
            "versus one: more and smaller problems) or crammer-singer (one joint "
            "problem, with the hinge). Always ovo with --kernel.",
            show_default="ovr",
        ),
    ] = None
    solver: Annotated[
        str,
        typer.Option(
            callback=solver_name,
            autocompletion=complete_solver,
            help="auto, dcd, newton, interior-point, sdca, sgd-s, sgd-m, sgd-r, "
            "pegasos, norma, svmsgd, cutting-plane, ocas, mpu or sgd-qn. With "
            "--kernel: auto, block, fw, mfw, mdm, swap, swap-2o, core-vector, "
            "kernel-pegasos or nystroem. For regression: auto, dcd, newton or "
            "interior-point; with --kernel auto or block.",
        ),
    ] = "auto"
    solver_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Option of the solver, such as batch_size=64; may be repeated.",
            show_default=False,
        ),
    ] = None
    tol: Annotated[
        float,
        typer.Option(
            callback=fraction,
            help="Relative duality gap to prove. The objective is "
            "then within this fraction of the optimum.",
        ),
    ] = 1e-3
    atol: Annotated[
        float | None,
        typer.Option(
            callback=positive,
            help="Or the duality gap P - D to prove; one of both is enough. It is "
            "in units of the objective with C.",
            show_default="none",
        ),
    ] = None
    max_iter: Annotated[
        int, typer.Option(min=1, help="Largest number of epochs, per class or pair.")
    ] = 10_000
    time_limit: Annotated[
        float | None,
        typer.Option(
            callback=positive,
            help="Seconds of training, all classes together.",
            show_default="none",
        ),
    ] = None
    intercept_scaling: Annotated[
        float | None,
        typer.Option(
            callback=positive,
            metavar="X",
            help="Value of the constant feature. A larger value penalises the bias "
            "less.",
            show_default="1",
        ),
    ] = None
    penalize_intercept: Annotated[
        bool,
        typer.Option(
            help="Penalise the bias like the other weights, or not, as in the textbook "
            "SVM (--solver auto, dcd, newton or interior-point)."
        ),
    ] = True
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="WEIGHTS",
            help="Factors of C for the classes: balanced, or LABEL=W,... such as "
            "-1=1,1=2.5.",
            show_default="1 for all",
        ),
    ] = None
    n_features: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Number of features, if the last ones do not occur in DATA.",
            show_default="from DATA",
        ),
    ] = None
    checkpoint: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write checkpoints of the training to FILE, and resume from FILE if "
            "it exists. Not with --kernel.",
            show_default=False,
        ),
    ] = None
    checkpoint_every: Annotated[
        float,
        typer.Option(callback=positive, help="Seconds between two checkpoints."),
    ] = 60.0
    bounds: Annotated[
        bool,
        typer.Option(
            "--bounds",
            help="Keep in MODEL where the exact optimum may be, for predict "
            "--undecided.",
        ),
    ] = False
    probability: Annotated[
        bool,
        typer.Option(
            "--probability",
            "--proba",
            "-b",
            help="Train five more models, each without a fifth of DATA, and fit "
            "probabilities to what they say about it, for predict --proba.",
        ),
    ] = False
    n_jobs: Jobs = None
    verbose: Verbose = False

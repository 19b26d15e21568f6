"""Tasks of ``dualgap train`` besides classification: regression and one-class."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .options import SHAPED, Words
from .parameters import Parameters

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

TASK = Words(lambda: ("classification", "regression", "one-class"))


def of_task(
    task: str,
    solver: str,
    loss: str | None,
    bias: Parameters,
    shape: Parameters,
    kernel: str | None,
    epsilon: float | None,
    nu: float | None,
    given: Parameters,
) -> Parameters:
    """Return the estimator's parameters for a task, after checking the options.

    `given` are options that the task does not have; None where they were left out.

    Raises
    ------
    typer.BadParameter
        If an option does not apply to the task.
    """
    for option, value in given.items():
        if value is not None:
            raise typer.BadParameter(f"{option} is not for --task {task}.")
    if not bias["penalize_intercept"]:
        raise typer.BadParameter(
            f"--no-penalize-intercept is not for --task {task}; use --kernel linear "
            "for an unpenalised bias."
        )
    regression = task == "regression"
    if epsilon is not None and not regression:
        raise typer.BadParameter("--epsilon is for --task regression.")
    if nu is not None and regression:
        raise typer.BadParameter("--nu is for --task one-class.")
    solvers = {"auto", "block"} if kernel else {"auto"}
    if regression and not kernel:
        solvers = {"auto", "dcd", "interior-point", "newton"}
    if solver not in solvers:
        raise typer.BadParameter(
            f"--solver {solver} is not for this --task {task}; use "
            f"{' or '.join(sorted(solvers))}."
        )
    own: Parameters = {} if solver == "auto" else {"solver": solver}
    own |= {"epsilon": 0.1 if epsilon is None else epsilon} if regression else {}
    own |= {} if regression else {"nu": 0.5 if nu is None else nu}
    scaling, intercept = bias["intercept_scaling"], bias["fit_intercept"]
    if kernel or not regression:
        if not intercept or scaling is not None:
            raise typer.BadParameter(
                "--no-intercept and --intercept-scaling are only for linear "
                "regression; leave them out."
            )
    elif scaling is not None and not intercept:
        raise typer.BadParameter("--intercept-scaling needs --intercept.")
    else:
        own |= {"fit_intercept": intercept, "intercept_scaling": scaling or 1.0}
    if kernel is None:
        for name, value in shape.items():
            if value is not None:
                option = "--cache" if name == "cache_size" else f"--{name}"
                raise typer.BadParameter(f"{option} needs --kernel.")
    else:
        users = {"gamma": SHAPED, "degree": ("poly",), "coef0": ("poly", "sigmoid")}
        for name, kernels in users.items():
            if shape[name] is not None and kernel not in kernels:
                raise typer.BadParameter(
                    f"--{name} is for --kernel {' or '.join(sorted(kernels))}, not "
                    f"{kernel}."
                )
        own |= {"kernel": kernel}
        own |= {name: value for name, value in shape.items() if value is not None}
    known: tuple[str, ...] = ("epsilon_insensitive",)
    if not kernel:
        known += ("squared_epsilon_insensitive",)
    if loss is not None and (not regression or loss not in known):
        raise typer.BadParameter(
            f"--loss {loss} is not for this --task {task}"
            + (
                f"; use {' or '.join(known)}."
                if regression
                else ", which has one loss."
            )
        )
    if regression and not kernel:
        own |= {"loss": loss or "epsilon_insensitive"}
    return own


def estimator_of(task: str, kernel: bool) -> type[BaseEstimator]:
    """Return the estimator class of a task."""
    from .. import estimators as e

    if task == "regression":
        return e.SVR if kernel else e.LinearSVR
    if task == "one-class":
        return e.OneClassSVM if kernel else e.LinearOneClassSVM
    return e.SVC if kernel else e.LinearSVC

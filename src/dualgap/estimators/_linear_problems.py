"""The problems of a linear classifier: one by one, or one for all classes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray

from ..certificate import Bounds, Certificate
from ..losses import Vector, get_loss
from ..memory import make_room
from ..problems.binary import BinaryProblem
from ..problems.constant import constant_problems
from ..problems.crammer_singer import CrammerSingerProblem
from ..problems.multiclass import OneVsRest, binary_problems, number_of_problems
from ..solvers import SequentialDual, get_solver
from ..solvers.labellings import solve_labellings
from ..training import Solution, ctrl_c
from ..training.path import carried
from ._callbacks import Fitted
from ._columns import StoredColumns
from ._together import SolutionsTogether
from .training import Start, Training

if TYPE_CHECKING:
    from .linear_svc import LinearSVC

__all__ = ["JointProblem", "Models", "Rows", "SeparateProblems"]


class Models(NamedTuple):
    """Solutions of all problems.

    Attributes
    ----------
    w, alpha : sequence of ndarray
        One per problem.
    bounds : sequence of Bounds
        What is proved about each problem.
    certificate : Certificate
    epochs : int
        The largest number of epochs of a problem.
    histories : list of structured ndarray
    """

    w: Sequence[Vector]
    alpha: Sequence[Vector]
    bounds: Sequence[Bounds]
    certificate: Certificate
    epochs: int
    histories: list[NDArray[np.void]]

    @classmethod
    def of(cls, solutions: Sequence[Solution], names: Sequence[str]) -> Models:
        """Join the solutions of problems with these names."""
        parts = [solution.certificate for solution in solutions]
        return cls(
            [solution.w for solution in solutions],
            [solution.alpha for solution in solutions],
            [part.bounds for part in parts],
            Certificate.total(parts, names),
            max(part.epochs for part in parts),
            [solution.history for solution in solutions],
        )

    @classmethod
    def together(cls, found: SolutionsTogether) -> Models:
        """Return the solutions of problems that were solved in one call."""
        solved = found.solved
        return cls(
            list(solved.w),
            list(solved.alpha),
            solved.bounds,
            found.certificate(),
            found.epochs,
            found.histories,
        )


class Rows(NamedTuple):
    """Training rows of a classifier, with their classes and weights.

    Attributes
    ----------
    columns : StoredColumns
        The rows over the columns that are not empty.
    classes : ndarray of shape (K,)
    codes : ndarray of shape (n,)
        Index of every row's class.
    weight : ndarray of shape (n,)
        Sample weights.
    factor : ndarray of shape (K,)
        Class weights.
    weighted : bool
        Whether weights were given; else all are 1.
    """

    columns: StoredColumns
    classes: NDArray[np.generic]
    codes: NDArray[np.intp]
    weight: Vector
    factor: Vector
    weighted: bool

    def attributes(self, coef: Vector, intercept: Vector) -> Fitted:
        """Return the attributes with which an estimator predicts."""
        coef = self.columns.spread(coef)
        return {"classes_": self.classes, "coef_": coef, "intercept_": intercept}


def _make_room(problems: int, tables: int, data: Rows) -> None:
    """Refuse before any work what memory cannot hold: a model and duals per class."""
    n, d = data.columns.X.shape
    # The duals are held per problem and as the table that they are packed in.
    make_room(
        8 * (problems * d + 2 * tables * n),
        f"{len(data.classes)} classes of {n} rows and {d} columns",
        "train on fewer classes or rows",
    )


class SeparateProblems:
    """Binary problems of classes against the rest, or of pairs of classes.

    Parameters
    ----------
    parameters : LinearSVC
        The estimator.
    data : Rows
    """

    def __init__(self, parameters: LinearSVC, data: Rows) -> None:
        p = self.parameters = parameters
        self.data = data
        classes = len(data.classes)
        count = number_of_problems(p.multi_class, classes)
        pairs = p.multi_class == "ovo" and classes > 2
        _make_room(count, classes - 1 if pairs else count, data)
        self.binary = binary_problems(
            p.multi_class,
            data.columns.X,
            data.classes,
            data.codes,
            data.weight if data.weighted else None,
            data.factor,
            p.C,
            loss=p.loss,
            fit_intercept=p.fit_intercept,
            intercept_scaling=p.intercept_scaling,
            penalize_intercept=p.penalize_intercept,
            n_jobs=max(1, effective_n_jobs(p.n_jobs) // count),
        )
        self.rows: BinaryProblem = self.binary.rows
        self.names, self.labels = self.binary.names, self.binary.labels
        self.several = self.binary.several
        tables, n = self.binary.tables, len(data.codes)
        self.warm = p._previous_duals(data.classes, tables, n)
        self.solver = get_solver(p.solver)
        if p.warm_start:  # raise before the first fit, not after it
            self.solver.check_warm(self.rows, np.zeros(self.rows.n))
        self.models = [np.zeros(self.rows.width)] * count  # zeros until solved

    def start(self, k: int) -> Start:
        """Return problem k and the point to start from."""
        p, problem = self.parameters, self.binary.problem(k)
        alpha = None if self.warm is None else self.binary.unpack(self.warm, k)
        # Dual variables of another C are scaled. For the same C they may be optimal.
        if alpha is not None and getattr(p, "_fitted_C", p.C) != p.C:
            alpha = carried(problem, alpha)

        def attributes(model: Vector) -> Fitted:
            now = [*self.models[:k], model, *self.models[k + 1 :]]
            return self.data.attributes(*self.model(now))

        file = None if p.checkpoint is None else os.fspath(p.checkpoint)
        if file is not None and len(self.models) > 1:
            file = f"{file}.{k}"
        return Start(problem, self.solver, attributes, alpha, file, p.checkpoint_every)

    def solve_together(self, training: Training) -> SolutionsTogether | None:
        """Solve and prove small problems in one call; None if they are not small.

        Callbacks of scikit-learn want to see the epochs, so with them the loop trains.
        """
        p, binary = self.parameters, self.binary
        plain = self.warm is None and p.checkpoint is None
        if training.tasks.heard or not (plain and isinstance(binary, OneVsRest)):
            return None
        with ctrl_c(training.stop):
            solved = solve_labellings(
                self.solver,
                self.rows,
                binary.all_signs,
                binary.all_costs,
                tol=p.tol,
                atol=p.atol,
                max_epochs=p.max_epochs,
                stop=training.stop,
            )
        if solved is None:
            return None
        return SolutionsTogether(training, solved, self.solver.name)

    def keep(self, k: int, solution: Solution) -> None:
        """Keep the model of problem k for the callbacks of the others."""
        self.models[k] = solution.w

    def model(self, models: Sequence[Vector]) -> tuple[Vector, Vector]:
        """Return ``coef_`` and ``intercept_`` from the w of each problem."""
        coef, intercept = zip(*[self.rows.coef(w) for w in models], strict=True)
        return np.stack(coef), np.array(intercept)

    def table(self, alphas: Sequence[Vector]) -> Vector:
        """Return the ``dual_coef_`` of all rows."""
        return self.binary.pack(alphas)

    def constant(self, models: Models) -> list[int]:
        """Return the numbers of the models that are no better than a constant."""
        p = self.parameters
        return constant_problems(self.binary, models.w, models.bounds, p.tol, p.atol)


class JointProblem:
    """The problem of Crammer and Singer, for all classes together.

    Parameters
    ----------
    parameters : LinearSVC
        The estimator.
    data : Rows
    """

    names = ("all classes",)
    several = "problems"

    def __init__(self, parameters: LinearSVC, data: Rows) -> None:
        p = self.parameters = parameters
        self.data, self.solver = data, _joint_solver(p)
        self.labels, classes = [data.classes[-1]], len(data.classes)
        _make_room(classes, classes, data)
        self.rows = BinaryProblem(
            data.columns.X,
            np.ones(len(data.codes)),
            p.C,
            sample_weight=data.weight * data.factor[data.codes],
            fit_intercept=p.fit_intercept,
            intercept_scaling=p.intercept_scaling,
            n_jobs=max(1, effective_n_jobs(p.n_jobs)),
        )
        self.problem = CrammerSingerProblem(self.rows, data.codes, classes)
        self.warm = p._previous_duals(data.classes, classes, len(data.codes))

    def start(self, _: int) -> Start:
        """Return the problem and the point to start from."""
        p, warm = self.parameters, self.warm
        if warm is not None:
            warm = warm * (p.C / getattr(p, "_fitted_C", p.C))
            warm = np.ascontiguousarray(warm.T).ravel()

        def attributes(model: Vector) -> Fitted:
            return self.data.attributes(*self.model([model]))

        file = None if p.checkpoint is None else os.fspath(p.checkpoint)
        every = p.checkpoint_every
        return Start(self.problem, self.solver, attributes, warm, file, every)

    def solve_together(self, _: Training) -> None:
        """Return None: this is one problem."""

    def keep(self, _: int, solution: Solution) -> None:
        """Do nothing: no other problem needs this model."""

    def model(self, models: Sequence[Vector]) -> tuple[Vector, Vector]:
        """Return ``coef_`` and ``intercept_``; two classes give one row, w1 - w0."""
        coef, intercept = self.problem.coef(models[0])
        if len(coef) > 2:
            return coef, intercept
        return coef[1:] - coef[:1], intercept[1:] - intercept[:1]

    def table(self, alphas: Sequence[Vector]) -> Vector:
        """Return the ``dual_coef_`` of all rows."""
        return alphas[0].reshape(-1, len(self.data.classes)).T

    def constant(self, _: Models) -> list[int]:
        """Return no number: the joint problem compares the classes."""
        return []


def _joint_solver(parameters: LinearSVC) -> SequentialDual:
    """Return the solver of the joint problem, after checking the parameters."""
    given = parameters.solver
    solver = SequentialDual() if given == "auto" else get_solver(given)
    if not isinstance(solver, SequentialDual):
        raise ValueError(
            f"solver={given!r} trains only binary problems; with "
            "multi_class='crammer_singer' use solver='auto'"
        )
    if get_loss(parameters.loss).name != "hinge":
        raise ValueError(
            f"loss={parameters.loss!r} is not supported by "
            "multi_class='crammer_singer'; use loss='hinge', or multi_class='ovr'"
        )
    if not parameters.penalize_intercept:
        raise ValueError(
            "penalize_intercept=False is not supported by "
            "multi_class='crammer_singer'; use multi_class='ovr'"
        )
    return solver

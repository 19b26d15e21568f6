"""Statements about exact optima, against the optima that Lemke's method finds.

These attacks draw small problems, as those of `attacks` do, and compare bounds, labels
and masks with all optima of the problems. They are registered there too.
"""

from __future__ import annotations

import contextlib
import functools
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import dualgap
from dualgap.answers import Decided
from dualgap.certificate import Status
from dualgap.kernel import (
    FW,
    MDM,
    MFW,
    RBF,
    SWAP,
    BlockSolver,
    KernelSimplex,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
    SWAP2o,
)
from dualgap.losses import RESIDUAL_LOSSES
from dualgap.training import solve
from dualgap_check import Proof, check

from . import elastic_net, hard_margin, logistic, nu, squares
from .attacks import (
    ATTACKS,
    Group,
    KernelRun,
    Machine,
    RefusedError,
    Tally,
    attack,
    counts,
    first,
    kind_of,
    machine_plane,
    machine_svc,
    machine_svr,
    parameter_of,
    run,
)
from .nasty import Rng, draw, given_matrix, rows, weights
from .verifier import (
    SVM,
    Claim,
    CrammerSinger,
    Exact,
    Kernel,
    Optimum,
    Rows,
    Statement,
    enclosed,
    exponential,
    holds,
    semidefinite,
)

#: All attacks, those of the other modules included, and what runs them.
__all__ = [
    "ATTACKS",
    "Tally",
    "counts",
    "elastic_net",
    "hard_margin",
    "logistic",
    "nu",
    "run",
    "squares",
]

#: The least and the largest decision of all optima.
Interval = tuple[Any, Any]


def calm(rng: Rng, n: int, d: int) -> Any:
    """Nasty rows of a size whose powers stay short."""
    X = rows(rng, n, d, rng.choice([np.float32, np.float64]))
    largest = float(np.abs(X).max())
    if not 1e-6 < largest < 1e6:
        X = (X.astype(np.float64) / (largest or 1.0)).astype(X.dtype)
    return np.where(np.abs(X) < 1e-12, 0.0, X).astype(X.dtype)


def others(rng: Rng, X: Any, count: int = 4) -> Any:
    """New rows: some near those of X, one of them a row of X, and one of zeros."""
    size = float(np.abs(X).max()) or 1.0
    new = X[rng.integers(len(X), size=count)].astype(np.float64)
    new[1:] += size * rng.standard_normal(new[1:].shape) * 10.0 ** rng.uniform(-3, 1)
    new[-1] = 0.0
    return new


def labels(rng: Rng, n: int, classes: int) -> Any:
    """Codes of at least two rows of each class."""
    return rng.permutation(np.arange(n) % classes)


# ------------------------------------------------------------- problems of a classifier


@dataclass
class Classifier:
    """A classifier in exact numbers: its binary problems, and how they make labels.

    In each problem the second class of a pair is positive.

    Attributes
    ----------
    points : Rows or Kernel
    codes : ndarray of shape (n,)
    cost : ndarray of shape (n,)
    exact : dict
        Loss and bias of an `SVM`.
    pairs : bool
        Whether pairs of classes vote.
    confident : bool
        Whether the more confident of the classes with most votes wins.
    """

    points: Rows
    codes: Any
    cost: Any
    exact: dict[str, Any]
    pairs: bool
    confident: bool

    @property
    def classes(self) -> int:
        return int(self.codes.max()) + 1

    @property
    def two(self) -> bool:
        return self.classes == 2

    def problems(self, kept: Any = None) -> list[SVM]:
        """The problems of all rows, or of those in a mask."""
        cost = self.cost if kept is None else np.where(kept, self.cost, 0.0)
        found = []
        sides: list[Any] = [(None, k) for k in range(self.classes)]
        if self.pairs or self.two:
            sides = list(combinations(range(self.classes), 2))
        for i, j in sides:
            own = np.isin(self.codes, (i, j)) if self.pairs else True
            signs = np.where(self.codes == j, 1, -1)
            own = np.where(own, cost, 0.0)
            found.append(SVM(self.points, target=signs, cost=own, **self.exact))
        return found

    def optima(self, kept: Any = None) -> list[Optimum]:
        return [problem.optimum for problem in self.problems(kept)]

    def decisions(self, optima: Sequence[Optimum], Z: Exact) -> list[list[Interval]]:
        """Return, for each row of Z, the interval of each problem's decision."""
        found = [optimum.decisions(Z) for optimum in optima]
        return [list(row) for row in zip(*found, strict=True)]

    def scores(self, values: Sequence[Any]) -> list[Any]:
        """Return scores whose first maximum is the label, of decisions."""
        if self.two:
            return [0, values[0]]
        if not self.pairs:
            return list(values)
        votes = [0] * self.classes
        for (i, j), f in zip(combinations(range(self.classes), 2), values, strict=True):
            votes[j if f > 0 else i] += 1
        return self.ranked(values) if self.confident else votes

    def ranked(self, values: Sequence[Any]) -> list[Any]:
        """Return the scores of scikit-learn: votes, and sums of decisions below 1/3."""
        scores, sums = [Fraction(0)] * self.classes, [Fraction(0)] * self.classes
        for (i, j), f in zip(combinations(range(self.classes), 2), values, strict=True):
            scores[j if f > 0 else i] += 1
            sums[j] += f
            sums[i] -= f
        return [v + s / (3 * (abs(s) + 1)) for v, s in zip(scores, sums, strict=True)]

    def labels(self, inside: Sequence[Interval]) -> set[int]:
        """Return the labels of all optima."""
        return {max(range(self.classes), key=lambda k: (s[k], -k))
                for s in map(self.scores, corners(inside))}  # fmt: skip


def corners(inside: Sequence[Interval]) -> list[tuple[Any, ...]]:
    """Return all ends of intervals; scores are monotone in each decision."""
    return list(product(*(sorted(set(ends)) for ends in inside)))


def hull(values: Sequence[Sequence[Any]]) -> list[Interval]:
    """Return the interval of each entry of some vectors."""
    return [(min(column), max(column)) for column in zip(*values, strict=True)]


@dataclass
class Fitted:
    """A model, the arguments of its fit, new rows, and its problems in exact numbers.

    Attributes
    ----------
    make : Callable
        Makes the estimator, of options.
    X, y, weight : array
    new : array
        New rows.
    every : Rows or Kernel
        The points of X, and then the new ones.
    posed : Classifier
        Over the points of X.
    """

    make: Callable[..., Any]
    X: Any
    y: Any
    weight: Any
    new: Any
    every: Rows
    posed: Classifier

    def fit(self, **options: Any) -> Any:
        return first(lambda: self.make(**options).fit(self.X, self.y, self.weight))

    @property
    def data(self) -> tuple[Any, Any, Any]:
        return self.X, self.y, self.weight

    def inside(
        self, optima: Sequence[Optimum], rows: Any = None
    ) -> list[list[Interval]]:
        """Return the decisions at some rows of X, or at the new ones."""
        n = len(self.posed.codes)
        if rows is None:
            rows = self.X.shape[0] + np.arange(len(self.new))
        return self.posed.decisions(optima, self.every.seen(rows, n))

    def joined(self, labels: Any) -> Fitted:
        """Return the problem with the first new rows, of these labels, and weight 1."""
        posed, n = self.posed, self.X.shape[0]
        more = Classifier(
            self.every.first(n + len(labels)),
            np.append(posed.codes, labels),
            np.append(posed.cost, np.full(len(labels), self.make().C)),
            posed.exact, posed.pairs, posed.confident,
        )  # fmt: skip
        return replace(self, posed=more)


def classifier(
    rng: Rng,
    *,
    kernel: bool,
    most: int = 8,
    classes: int | None = None,
    plain: bool = False,
    more: int = 0,
) -> Fitted:
    """Draw a classifier.

    Parameters
    ----------
    kernel : bool
        Whether it is an SVC.
    most : int
        Rows.
    classes : int, optional
    plain : bool
        Only the hinge and its square.
    more : int
        New rows, besides those of `others`, that a change adds.
    """
    classes = classes or int(rng.choice([2, 2, 3, 4]))
    n, d = (
        int(rng.integers(2 * classes, max(most, 2 * classes) + 1)),
        int(rng.integers(1, 4)),
    )
    X, y = calm(rng, n, d), labels(rng, n, classes)
    weight = weights(rng, n) if rng.random() < 0.3 else None
    if weight is not None:
        weight[np.unique(y, return_index=True)[1]] = 1.0
    new = others(rng, X, 4 + more)
    C = float(10.0 ** rng.uniform(-2, 2))
    cost = C * (np.ones(n) if weight is None else weight)
    losses = ["hinge", "squared_hinge", "smoothed_hinge"]
    kind = kind_of(rng, losses[: 2 if plain or kernel else 3])
    if kind.constant and not 1e-3 < kind.constant < 1e3:
        kind = kind_of(rng, [kind.exact["loss"]], ["none"])
    options = {"random_state": int(rng.integers(100)), **kind.options}
    held: Any = sparse.csr_matrix(X) if rng.random() < 0.3 else X
    together = np.vstack([X.astype(np.float64), new])
    if not kernel:
        pairs = bool(rng.random() < 0.5)
        options["multi_class"] = "ovo" if pairs else "ovr"
        posed = Classifier(Rows(X), y, cost, kind.exact, pairs, True)
        make = functools.partial(dualgap.LinearSVC, C, **options)
        return Fitted(make, held, y, weight, new, Rows(together), posed)
    record, every = kernel_of(rng, together)
    loss = kind.exact["loss"]
    bias = {"hinge": "free", "squared_hinge": "penalised"}[loss]
    options = {"random_state": 0, "kernel": record, "loss": loss}
    options["break_ties"] = bool(rng.random() < 0.5)
    if classes > 2 and not options["break_ties"]:
        options["decision_function_shape"] = str(rng.choice(["ovr", "ovo"]))
    exact = {"loss": loss, "bias": bias}
    posed = Classifier(every.first(n), y, cost, exact, True, options["break_ties"])
    make = functools.partial(dualgap.SVC, C, **options)
    return Fitted(make, held, y, weight, new, every, posed)


def kernel_of(rng: Rng, X: Any) -> tuple[Any, Kernel]:
    """Draw a kernel, and return its exact matrix."""
    kind = rng.integers(4)
    if kind < 2:
        gram = Exact.of(X) @ Exact.of(X).T
        if kind == 0:
            return Linear(), Kernel(gram)
        gamma, coef0 = float(2.0 ** rng.integers(-4, 3)), float(rng.choice([0.0, 1.0]))
        degree = int(rng.choice([2, 3]))
        return Polynomial(degree, gamma, coef0), Kernel(
            (gram * gamma + coef0) ** degree
        )
    power = int(kind) - 1
    apart = float(np.median(np.abs(X[:, None] - X[None]).astype(float) ** power)) or 1.0
    gamma = float(10.0 ** rng.uniform(-2, 1)) / apart
    return (Laplacian if power == 1 else RBF)(gamma), exponential(X, gamma, power)


def limits(rng: Rng, kernel: bool, squared: bool = False) -> dict[str, Any]:
    """Draw limits of a fit, which may end far from the optimum."""
    if rng.random() < 0.5:
        return {"tol": float(10.0 ** rng.uniform(-9, 0)), "max_iter": 300}
    solver = "dcd" if not kernel else "kernel-pegasos" if squared else "block"
    epochs = int(rng.integers(1, 10))
    return {"tol": 1e-13, "max_iter": epochs, "solver": solver}


def asked(ask: Callable[[], Any]) -> Any:
    """Return what is told, None if that is refused."""
    with contextlib.suppress(ValueError):
        return ask()
    return None


def shown(found: Fitted, model: Any, inside: Sequence[Interval]) -> list[Interval]:
    """Return what the decision function of any optimum shows at a row."""
    posed = found.posed
    if posed.two or not posed.pairs:
        return list(inside)
    if getattr(model, "decision_function_shape", "ovr") == "ovo":
        return [(-high, -low) for low, high in inside]  # positive for the first class
    return hull([posed.ranked(values) for values in corners(inside)])


def about_decisions(
    found: Fitted, model: Any, told: Any, optima: Sequence[Optimum], how: str
) -> list[Statement]:
    """Check the bounds and labels that `told` has, a model or a changed one."""
    bounds, inside = (
        asked(lambda: told.decision_bounds(found.new)),
        found.inside(optima),
    )
    if bounds is None:
        return []
    true = [pair for row in inside for pair in shown(found, model, row)]
    said = enclosed(f"{how}: decision_bounds", *bounds, true)
    if not hasattr(told, "certified_labels"):
        return said
    certain, labels = told.certified_labels(found.new), model.predict(found.new)
    for row, sure, label in zip(inside, certain, labels.tolist(), strict=True):
        if sure:
            true = found.posed.labels(row) == {label}
            said.append(holds(f"{how}: label {label}", true))
    if told is model:
        partly = model.predict(found.new, undecided=-1)
        same = (partly == np.where(certain, labels, -1)).all()
        said.append(holds(f"{how}: predict(undecided=-1)", same))
    return said


def about_optimum(
    found: Fitted, model: Any, told: Any, optima: Sequence[Optimum], how: str
) -> list[Statement]:
    """Check bounds on decisions, labels, and the weights of a linear model."""
    said = about_decisions(found, model, told, optima, how)
    kernel, n = getattr(model, "kernel", None), len(found.posed.codes)
    bounds = asked(told.coef_bounds) if kernel in (None, Linear()) else None
    if bounds is None:
        return said
    X = np.vstack([dense(found.X), found.new])[:n].astype(np.float64)
    sign = -1 if kernel and not found.posed.two else 1
    weights = [(one.duals @ Exact.of(X)).fractions() for one in optima]
    true = [(sign * v, sign * v) for w in weights for v in w]
    said += enclosed(f"{how}: coef_bounds", *bounds, true)
    # A ball has the least to spare from its centre to the optimum.
    centre = sign * np.mean(bounds, axis=0).reshape(len(optima), -1)
    way = np.array(weights, float) - centre
    way = way / np.abs(way).max(axis=1, keepdims=True)
    if not np.isfinite(way).all():
        return said
    points = Rows(np.vstack([X, way]))
    every = Kernel(points.gram()) if kernel else points
    aimed = replace(found, X=X, new=way, every=every)
    return said + about_decisions(aimed, model, told, optima, how)


def about_support(
    found: Fitted, model: Any, optima: Sequence[Optimum], problems: Sequence[SVM]
) -> list[Statement]:
    """Check which rows surely have dual variables, or surely have none."""
    told = asked(lambda: model.certified_support(*found.data))
    if told is None:
        return []
    n = found.X.shape[0]
    has, may = np.zeros(n, bool), np.zeros(n, bool)
    for optimum, problem in zip(optima, problems, strict=True):
        has |= optimum.duals.digits != 0
        for b in set(optimum.biases):  # no loss at some optimum: it may have none
            scores = problem.points.model(optimum.model)[1] + b
            may |= problem.weighs & (problem.residuals(scores).digits > 0)
    said = []
    for i in range(n):
        if told[0][i]:
            said.append(holds(f"row {i} is a support vector", has[i]))
        if told[1][i]:
            said.append(holds(f"row {i} is none", not has[i] and not may[i]))
    return said


def about(
    found: Fitted, model: Any, stages: Sequence[str], problems: Sequence[SVM]
) -> list[Statement]:
    """Check all that a model says about its optimum."""
    optima = [problem.optimum for problem in problems]
    said = []
    for how in stages:
        if how == "bound_optimum":
            asked(lambda: model.bound_optimum(*found.data))
        said += about_optimum(found, model, model, optima, how)
    return said + about_support(found, model, optima, problems)


def dense(X: Any) -> Any:
    return X.toarray() if sparse.issparse(X) else X


def optimum_of(rng: Rng, kernel: bool) -> list[Group]:
    found = classifier(rng, kernel=kernel)
    squared = found.posed.exact["loss"] == "squared_hinge"
    options = limits(rng, kernel, squared)
    stages = ["fit", "bound_optimum"]
    if rng.random() < 0.2:
        rule = Decided(found.new, float(rng.choice([0.5, 1.0])))
        model = found.make(tol=options["tol"], max_iter=50)
        first(lambda: model.fit(*found.data, until=rule))
        stages = ["until"]
    else:
        model = found.fit(**options)
    return [(None, about(found, model, stages, found.posed.problems()))]


@attack("optimum-linear", "bounds on the optimum of `LinearSVC`", 1200)
def linear_optimum(rng: Rng) -> list[Group]:
    return optimum_of(rng, False)


@attack("optimum-kernel", "bounds on the optimum of `SVC`", 1200)
def kernel_optimum(rng: Rng) -> list[Group]:
    return optimum_of(rng, True)


@attack("optimum-joint", "bounds on the optimum of Crammer and Singer's problem", 600)
def joint_optimum(rng: Rng) -> list[Group]:
    classes = int(rng.integers(2, 5))
    n, d = int(rng.integers(classes, 7)), int(rng.integers(1, 4))
    X, y = calm(rng, n, d), labels(rng, n, classes)
    new, C = others(rng, X), float(10.0 ** rng.uniform(-2, 2))
    weight = weights(rng, n) if rng.random() < 0.3 else None
    cost = C * (np.ones(n) if weight is None else weight)
    constant = float(rng.choice([0.0, 1.0, 4.0]))
    model = dualgap.LinearSVC(
        C, multi_class="crammer_singer", loss="hinge", random_state=0,
        fit_intercept=constant > 0.0, intercept_scaling=constant or 1.0,
        tol=float(10.0 ** rng.uniform(-9, 0)), max_iter=int(rng.integers(1, 200)),
    )  # fmt: skip
    first(lambda: model.fit(X, y, weight))
    problem = CrammerSinger(X, y, cost, constant)
    W, biases = problem.optimum.model
    true, best = [], []
    for x in new.tolist():
        scores = [
            sum(Fraction(a) * v for a, v in zip(x, w, strict=True)) + b
            for w, b in zip(W, biases, strict=True)
        ]
        best.append(max(range(classes), key=lambda k: (scores[k], -k)))
        scores = [scores[1] - scores[0]] if classes == 2 else scores
        true += [(v, v) for v in scores]
    if classes == 2:
        W = [[b - a for a, b in zip(*W, strict=True)]]
    coefs = [(v, v) for w in W for v in w]
    said: list[Any] = []
    for how in ("fit", "bound_optimum"):
        if how == "bound_optimum":
            asked(lambda: model.bound_optimum(X, y, weight))
        bounds = asked(lambda: model.decision_bounds(new))
        if bounds is None:
            continue
        said += enclosed(f"{how}: decision_bounds", *bounds, true)
        said += enclosed(f"{how}: coef_bounds", *model.coef_bounds(), coefs)
        certain, told = model.certified_labels(new), model.predict(new)
        said += [
            holds(f"{how}: label {k}", k == label)
            for k, label, sure in zip(best, told.tolist(), certain, strict=True)
            if sure
        ]
    return [(None, said)]


def regression(rng: Rng) -> tuple[Fitted, SVM]:
    """Draw a regression problem; of the classifier there only the rows are used."""
    n, d = int(rng.integers(2, 7)), int(rng.integers(1, 4))
    X = calm(rng, n, d)
    new = others(rng, X)
    targets = rng.standard_normal(n) * 10.0 ** rng.uniform(-3, 3)
    if rng.random() < 0.3:
        targets = np.round(targets) + float(rng.choice([0.0, 1e4]))
    weight = weights(rng, n) if rng.random() < 0.3 else None
    C = float(10.0 ** rng.uniform(-2, 2))
    cost = C * (np.ones(n) if weight is None else weight)
    loss, bias = str(rng.choice(["epsilon_insensitive", "quantile"])), "free"
    kernel = rng.random() < 0.5
    if not kernel:
        loss = str(rng.choice(sorted(RESIDUAL_LOSSES)))
    parameter, given = parameter_of(rng, loss)
    if kernel:
        record, every = kernel_of(rng, np.vstack([X.astype(np.float64), new]))
        make = functools.partial(
            dualgap.SVR, C=C, loss=loss, kernel=record, random_state=0, **given
        )
    else:
        bias = str(rng.choice(["none", "penalised"]))
        every = Rows(np.vstack([X.astype(np.float64), new]))
        make = functools.partial(
            dualgap.LinearSVR, C=C, loss=loss, fit_intercept=bias != "none",
            random_state=0, **given,
        )  # fmt: skip
    posed = Classifier(every.first(n), np.arange(n) % 2, cost, {}, True, True)
    found = Fitted(make, X, targets, weight, new, every, posed)
    return found, SVM(every.first(n), loss, targets, cost, parameter, bias)


@attack("optimum-regression", "bounds on the optimum of `LinearSVR` and `SVR`", 600)
def regression_optimum(rng: Rng) -> list[Group]:
    found, problem = regression(rng)
    model = found.fit(**limits(rng, hasattr(found.make(), "kernel")))
    return [(None, about(found, model, ["fit", "bound_optimum"], [problem]))]


# ------------------------------------------------------------------- rows left out


def margins(posed: Classifier, inside: list[Interval], code: int) -> Interval | None:
    """Return the interval of a row's margin; None where scores are votes alone."""
    if posed.two:
        return inside[0] if code else (-inside[0][1], -inside[0][0])
    if not posed.confident:
        return None
    found = []
    for scores in map(posed.scores, corners(inside)):
        found.append(scores[code] - max(s for k, s in enumerate(scores) if k != code))
    return min(found), max(found)


def about_errors(
    posed: Classifier, told: Any, at: int, inside: list[Interval], code: int, how: str
) -> list[Statement]:
    """Check what an `ErrorBounds` says about entry `at`, a row of class `code`."""
    labels, said = posed.labels(inside), []
    if told.right[at]:
        said.append(holds(f"{how}: {at} is right", labels == {code}))
    if told.wrong[at]:
        said.append(holds(f"{how}: {at} is wrong", code not in labels))
    margin = margins(posed, inside, code)
    if margin is not None:
        lower, upper = told.lower_margins[at], told.upper_margins[at]
        said += enclosed(f"{how}: margin {at}", lower, upper, [margin])
    return said


def kept_without(n: int, rows: Any) -> Any:
    kept = np.ones(n, bool)
    kept[rows] = False
    return kept


@attack("left-out", "`loo_bounds`, at every stage", 400)
def left_out(rng: Rng) -> list[Group]:
    found = classifier(rng, kernel=bool(rng.random() < 0.4), most=6, plain=True)
    posed, n = found.posed, found.X.shape[0]
    model = found.fit(tol=float(10.0 ** rng.uniform(-9, -1)), max_iter=300)
    X, y, weight = found.data
    tol = [None, 1e-9][rng.integers(2)]
    told = {
        how: asked(lambda how=how: dualgap.models.loo_bounds(
            model, X, y, refine=how, sample_weight=weight, tol=tol))
        for how in ("none", "local", "exact")
    }  # fmt: skip
    said, given = [], [one for one in told.values() if one is not None]
    for wide, narrow in pairwise(given):
        inside = (wide.lower_margins <= narrow.lower_margins).all()
        inside &= (narrow.upper_margins <= wide.upper_margins).all()
        said.append(holds("bounds become narrower", inside))
    for i in range(n):
        optima = posed.optima(kept_without(n, i))
        (inside,) = found.inside(optima, [i])
        for how, one in told.items():
            if one is not None:
                said += about_errors(posed, one, i, inside, int(y[i]), how)
    return [(None, said)]


def parts_of(rng: Rng, y: Any) -> list[tuple[Any, Any]]:
    """Two or three folds, each with all classes in training."""
    n = len(y)
    for _ in range(20):
        tests = np.array_split(rng.permutation(n), int(rng.integers(2, 4)))
        parts = [(np.setdiff1d(np.arange(n), test), test) for test in tests]
        if all(len(np.unique(y[train])) > y.max() for train, _ in parts):
            return parts
    raise RefusedError


@attack("folds", "`cv_bounds`, at every stage", 400)
def folds(rng: Rng) -> list[Group]:
    found = classifier(rng, kernel=bool(rng.random() < 0.4), plain=True)
    posed, (X, y, weight) = found.posed, found.data
    parts = parts_of(rng, y)
    model = found.fit(tol=float(10.0 ** rng.uniform(-9, -1)), max_iter=300)
    told = {
        how: asked(lambda how=how: dualgap.models.cv_bounds(
            model, X, y, cv=parts, refine=how, sample_weight=weight,
            tol=float(10.0 ** rng.uniform(-6, -2))))
        for how in ("none", "local", "exact")
    }  # fmt: skip
    said, at = [], 0
    for _, test in parts:
        optima = posed.optima(kept_without(len(y), test))
        for i, inside in zip(test, found.inside(optima, test), strict=True):
            for how, one in told.items():
                if one is not None:
                    said += about_errors(posed, one, at, inside, int(y[i]), how)
            at += 1
    return [(None, said)]


@attack("influence", "`influence`", 400)
def influence(rng: Rng) -> list[Group]:
    found = classifier(rng, kernel=bool(rng.random() < 0.4), most=6, plain=True)
    posed, n = found.posed, found.X.shape[0]
    if posed.exact["bias"] == "free":
        raise RefusedError
    model = found.fit(tol=float(10.0 ** rng.uniform(-9, -1)), max_iter=300)
    X, y, weight = found.data
    labels = model.predict(found.new).tolist()
    tables = [
        asked(lambda r=r: dualgap.models.influence(
            model, X, y, found.new, sample_weight=weight, repair=r,
            tol=[None, 1e-9][rng.integers(2)]))
        for r in (False, True)
    ]  # fmt: skip
    said = []
    for i in range(n):
        inside = found.inside(posed.optima(kept_without(n, i)))
        for table in tables:
            for k, label in enumerate(labels if table is not None else []):
                if not table[k, i]:
                    true = posed.labels(inside[k]) == {label}
                    said.append(holds(f"new row {k} without row {i}", true))
    return [(None, said)]


@attack("changed", "`what_if`, with rows that leave or join", 600)
def changed(rng: Rng) -> list[Group]:
    classes = int(rng.choice([2, 2, 3]))
    joining = int(rng.integers(0, 3))
    found = classifier(
        rng, kernel=bool(rng.random() < 0.4), classes=classes, plain=True, more=joining
    )
    (X, y, weight), n = found.data, len(found.y)
    model = found.fit(tol=float(10.0 ** rng.uniform(-9, -1)), max_iter=300)
    may_leave = np.setdiff1d(np.arange(n), np.unique(y, return_index=True)[1])
    count = int(rng.integers(0, len(may_leave) + 1))
    without = rng.choice(may_leave, count, replace=False)
    more = {}
    if joining:
        X_more, y_more = found.new[:joining], rng.integers(0, classes, joining)
        more, found = {"X_more": X_more, "y_more": y_more}, found.joined(y_more)
    told = asked(lambda: dualgap.models.what_if(
        model, X, y, without=without, sample_weight=weight,
        tol=[None, 1e-9][rng.integers(2)], **more))  # fmt: skip
    if told is None:
        raise RefusedError
    optima = found.posed.optima(kept_without(len(found.posed.codes), without))
    return [(None, about_optimum(found, model, told, optima, "what_if"))]


# ----------------------------------------------------------- the choice of C, proofs


def selection(rng: Rng, kernel: bool) -> list[Group]:
    found = classifier(rng, kernel=kernel, most=9, plain=True)
    found.weight, n = None, len(found.y)
    own = dict(found.make.keywords) | {"random_state": 0, "max_iter": 50}
    low = float(10.0 ** rng.uniform(-2, 1))
    high = low * float(10.0 ** rng.uniform(0.2, 1))
    parts, search = parts_of(rng, found.y), dualgap.LinearSVCCV
    if kernel:
        own |= {"gammas": getattr(own["kernel"], "gamma", 1.0)}
        search = dualgap.SVCCV
    accuracy = float(rng.choice([0.05, 0.2]))
    model = search(
        (low, high),
        cv=parts,
        certify_C=True,
        error_tolerance=accuracy,
        refit=False,
        **own,
    )
    first(lambda: model.fit(found.X, found.y))
    edges, lower, upper = model.error_bounds_
    inner = np.exp(rng.uniform(np.log(low), np.log(high), 2))
    said = [holds("the interval", edges[0] <= low and high <= edges[-1])]
    for C in [low, high, model.C_, edges[rng.integers(len(edges))], *inner]:
        posed = replace(found.posed, cost=np.full(n, float(C)))
        least = most = 0.0
        for _, test in parts:
            optima, wrong = posed.optima(kept_without(n, test)), []
            for i, inside in zip(test, found.inside(optima, test), strict=True):
                labels = posed.labels(inside)
                wrong.append((found.y[i] not in labels, labels != {found.y[i]}))
            least += np.mean([a for a, _ in wrong]) / len(parts)
            most += np.mean([b for _, b in wrong]) / len(parts)
        few = 1e-12  # rounding of the means
        for k in np.flatnonzero((edges[:-1] <= C) & (C <= edges[1:])):
            about = f"C={C!r} in piece {k}, error {least} to {most}"
            true = lower[k] <= least + few and most <= upper[k] + few
            said.append(holds(f"{about}: {lower[k]} to {upper[k]}", true))
        best = 1.0 - model.best_score_ - model.error_tolerance_
        said.append(
            holds(f"C={C!r} has error {most}, below {best}", best <= most + few)
        )
    return [(None, said)]


@attack("certified-c", "certified choice of C, `LinearSVCCV`", 200)
def linear_selection(rng: Rng) -> list[Group]:
    return selection(rng, False)


@attack("certified-c-kernel", "certified choice of C, `SVCCV`", 200)
def kernel_selection(rng: Rng) -> list[Group]:
    return selection(rng, True)


@attack("proofs", "proof files, checked by `dualgap-check`", 400)
def proofs(rng: Rng) -> list[Group]:
    if rng.random() < 0.3:
        found, problem = regression(rng)
        problems = [problem]
    else:
        found = classifier(rng, kernel=bool(rng.random() < 0.4), plain=True)
        problems = found.posed.problems()
    model = found.fit(tol=float(10.0 ** rng.uniform(-9, -1)), max_iter=300)
    with tempfile.TemporaryDirectory() as folder:
        path, (X, y, weight) = Path(folder, "proof"), found.data
        first(
            lambda: dualgap.models.write_proof(model, X, y, path, sample_weight=weight)
        )
        pairs = check(Proof(path.read_bytes()), None)
    said = []
    for (primal, dual), one in zip(pairs, problems, strict=True):
        value, off = one.optimum.value, one.optimum.off
        said.append(holds(f"P = {float(primal)}", value - off <= primal))
        said.append(holds(f"D = {float(dual)}", dual <= value + off))
    return [(None, said)]


# ------------------------------------------------------- simplices, indefinite matrices


def integers(rng: Rng) -> tuple[Any, Any]:
    """Return small integer rows, whose products are exact, and signs."""
    n, d = int(rng.integers(2, 11)), int(rng.integers(1, 4))
    X, y = rng.integers(-4, 5, (n, d)).astype(float), np.where(labels(rng, n, 2), 1, -1)
    if rng.random() < 0.6:
        X[:, 0] += 6.0 * y
    return X, y


@attack("simplex", "`KernelSimplex`: quadratics, hard margins, smallest balls", 800)
def simplex(rng: Rng) -> list[Group]:
    kind, signs, kernel = int(rng.integers(4)), None, Precomputed()
    if kind == 0:  # any matrix
        X = given_matrix(rng)
        K, linear = Kernel(X), rng.standard_normal(len(X)) * float(np.abs(X).max())
    elif kind == 1:  # a hard margin
        points, signs = integers(rng)
        X = np.outer(signs, signs) * (points @ points.T + 1.0)
        K, linear = Kernel(X), None
    elif kind == 2:  # the smallest ball
        points = calm(rng, int(rng.integers(2, 11)), int(rng.integers(1, 4)))
        X = points.astype(np.float64) @ points.T.astype(np.float64)
        K, linear = Kernel(X), 0.5 * X.diagonal()
    else:
        X = calm(rng, int(rng.integers(2, 9)), int(rng.integers(1, 4)))
        kernel, K = kernel_of(rng, X)
        linear = rng.standard_normal(len(X)) if rng.random() < 0.5 else None
    n = len(X)

    def posed(points: Kernel) -> SVM:
        p = np.zeros(n) if linear is None else linear
        return SVM(points, "one_class", p, np.ones(n), bias="free", total=1.0)

    def problem() -> KernelSimplex:
        return KernelSimplex(X, linear, kernel=kernel)

    def told(what: str, found: Any) -> Claim:
        return Claim(what, found.certificate, (found.alpha, found.bias), found.alpha)

    fits = KernelRun(draw(rng, X=X), kernel, K, posed)
    said = []
    for k in rng.permutation(len(METHODS))[:3]:
        solver, tol = METHODS[k], float(10.0 ** rng.uniform(-12, -1))
        limits = {"tol": tol, "max_iter": int(rng.choice([1, 10, 300]))}
        found = first(
            lambda s=solver, m=limits: fits.add(
                repr(s), lambda: solve(problem(), s, **m), told
            )
        ).certificate
        if signs is not None:
            best = -posed(K).optimum.value
            said.append(holds("proved separable", found.primal >= 0.0 or best > 0))
            said += enclosed("margin", -found.primal, -found.dual, [(best, best)])
    a = rng.dirichlet(np.ones(n))
    fits.add("certify", lambda: problem().certify(a), Claim)
    return [*fits.groups(), (None, said)]


METHODS = [FW(), MFW(), MDM(), SWAP(), SWAP2o(), BlockSolver()]


@attack("sigmoid", "`SVC`, `SVR`, `OneClassSVM` with `sigmoid`, and `certify`", 600)
def sigmoid(rng: Rng) -> list[Group]:
    X = calm(rng, int(rng.integers(2, 9)), int(rng.integers(1, 4)))
    size = float(np.abs(X.astype(np.float64) @ X.T).max()) or 1.0
    gamma = float(10.0 ** rng.uniform(-6, 1)) / size
    kernel = Sigmoid(gamma, float(rng.choice([0.0, 0.0, 0.1, 1.0, -0.1])))
    K = kernel.block(X, slice(None), X, np.float64)
    if (K != K.T).any():
        raise RefusedError
    make: Any = [machine_svc, machine_svr, machine_plane][rng.integers(3)]
    machine: Machine = make(rng, draw(rng, X=X, reach=4.0), kernel, Kernel(K))
    model = first(lambda: machine.fit(tol=1e-6))
    found = model.certificate_
    if found.status is not Status.UNCERTIFIED:
        return machine.claims(rng, 2)
    nothing = found.primal == np.inf and found.dual == -np.inf and not found.certified
    return [(None, [
        holds("nothing is claimed about an indefinite matrix", nothing),
        holds("LIBSVM trains indefinite matrices alone", not semidefinite(Exact.of(K))),
        holds("decision_bounds are refused",
              asked(lambda: model.decision_bounds(X)) is None),
        holds("certify is refused", asked(lambda: dualgap.certify(
            model, X, machine.run.drawn.codes)) is None),
    ])]  # fmt: skip

"""Brute force for every kind of certified answer, on one small problem at a time.

Each function of `ITEMS` draws an odd small problem, asks for bounds, and compares them
with an optimum that an interior-point solver found, or with fits to rounding level.
`benchmarks/answers/oracle.py` runs thousands of problems of each, the tests a few.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dualgap import (
    SVC,
    SVCCV,
    SVR,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    cv_bounds,
    influence,
    loo_bounds,
    what_if,
    write_proof,
)
from dualgap.answers.ball import Ball
from dualgap.answers.kernel_regions import kernel_bounds, kernel_region_of
from dualgap.answers.left_out import LeftOut
from dualgap.answers.regions import linear_bounds, region_of
from dualgap.data.rows import Points
from dualgap.estimators.regions import ProblemBall, certain_support
from dualgap_check import Proof, check

from .. import removed
from .exact import (
    KERNEL,
    LINEAR,
    Case,
    case,
    crammer_singer,
    images,
    loose_point,
    optimum,
)

Vector = NDArray[np.float64]
Generator = np.random.Generator


class Found(NamedTuple):
    """Number of checks of one problem, and of those that failed.

    Attributes
    ----------
    checks : int
        Comparisons of bounds with the truth.
    violations : int
        Comparisons that failed.
    unproved : int
        Comparisons left out, because the reference could not tell the truth.
    """

    checks: int
    violations: int
    unproved: int = 0


def total(parts: Sequence[Found]) -> Found:
    return Found(*(int(sum(column)) for column in zip(*parts, strict=True)))


def outside(lower: Any, true: Vector, upper: Any, slack: Any) -> Found:
    """Count true values outside of their bounds."""
    wrong = (lower > true + slack) | (true > upper + slack)
    known = np.broadcast_to(np.isfinite(slack), wrong.shape)
    return Found(int(known.sum()), int(wrong.sum()), int((~known).sum()))


def contradicted(claims: NDArray[np.bool_], false: Any, proved: Any) -> Found:
    """Count claims that are false, among those with a proof of what is true."""
    wrong = claims & false & proved
    return Found(int(np.sum(proved)), int(wrong.sum()), int(np.sum(~proved)))


# ------------------------------------------------ one problem, with its exact optimum

Kinds = list[tuple[str, str, bool]]
CLASSES: Kinds = [(*kind, False) for kind in LINEAR if "eps" not in kind[0]]
KERNELS: Kinds = [(*kind, True) for kind in KERNEL]
TARGETS: Kinds = [(*kind, False) for kind in LINEAR if "eps" in kind[0]]


def drawn(rng: Generator, count: int, kinds: Kinds) -> tuple[Case, Ball, bool]:
    """Return a problem, the ball of a loose model, and whether it has a kernel."""
    loss, bias, kernel = kinds[count % len(kinds)]
    given = case(rng, loss, bias, kernel)
    return given, Ball.of(given.problem, *loose_point(rng, given)), kernel


def bounds_of(given: Case, ball: Ball, rows: Vector, kernel: bool) -> Any:
    """Return a region, and lower and upper bounds on decisions at rows."""
    if kernel:
        region, form = kernel_region_of(ball, given.X), given.problem.gram.kernel
        values = form.block(rows, slice(None), given.X[region.rows], np.float64)
        return region, *kernel_bounds(region, form, rows, values @ region.coef)
    penalised = given.problem.width > given.problem.d and not given.problem.free_bias
    region = region_of(ball, Points.of(given.X, float(penalised)))
    lower, upper = linear_bounds([region], rows)
    return region, lower[:, 0], upper[:, 0]


def decisions(rng: Generator, count: int, kinds: Kinds) -> Found:
    """Compare decisions at new rows with their bounds."""
    given, ball, kernel = drawn(rng, count, kinds)
    _, lower, upper = bounds_of(given, ball, given.new, kernel)
    return outside(lower, given.decisions, upper, given.slack)


def weights(rng: Generator, count: int) -> Found:
    """Compare weights, and their signs, with their bounds."""
    given, ball, _ = drawn(rng, count, CLASSES + TARGETS)
    region, _, _ = bounds_of(given, ball, given.new, False)
    w = given.exact.w[: given.X.shape[1]]
    lower, upper = region.coef_bounds()
    slack = given.exact.slack + 1e-6 * (1.0 + np.abs(w))
    signs = contradicted(lower > 0.0, w < -slack, np.ones(len(w), bool))
    others = contradicted(upper < 0.0, w > slack, np.ones(len(w), bool))
    return total([outside(lower, w, upper, slack), signs, others])


def support(rng: Generator, count: int) -> Found:
    """Compare the margins of rows that surely are, or are not, support vectors."""
    given, ball, kernel = drawn(rng, count, CLASSES + KERNELS + TARGETS)
    _, lower, upper = bounds_of(given, ball, given.X, kernel)
    n = len(given.X)
    whole = ProblemBall(ball, None, np.arange(n))
    sure, others = certain_support(n, [whole], lower[:, None], upper[:, None])
    values, slack = given.own
    if ball.of_regression:
        most = ball.problem.loss.epsilon
        margins = 1.0 + most - np.abs(ball.targets - values)
    else:
        margins = ball.signs * values
    used = ball.problem.cost > 0.0
    first = contradicted(sure, (margins > 1.0 + slack) | ~used, np.ones(n, bool))
    second = contradicted(others & used, margins < 1.0 - slack, np.ones(n, bool))
    return total([first, second])


# ------------------------------------------------------------------- several classes


#: What SVC does with the bias.
BIAS_OF_SVC = {"hinge": "free", "squared_hinge": "penalised"}


def several(rng: Generator, classes: int, most: int = 7) -> tuple[Vector, Any, Vector]:
    """Return rows, fewer than `most` of each class, their labels, and new rows."""
    n, d = int(rng.integers(3 * classes, most * classes)), int(rng.integers(1, 5))
    y = np.arange(n) % classes
    X = rng.standard_normal((n, d)) + y[:, None] * rng.standard_normal(d)
    if rng.random() < 0.3:  # ties and repeated rows
        X = np.round(X)
    if rng.random() < 0.2:
        X[-1] = 0.0
    new = X[:3] + rng.standard_normal((3, d)) * rng.uniform(0, 2)
    return X, y, new


def short(kind: Any, rng: Generator, **options: Any) -> Any:
    """Return a model that may be far from its optimum when it is fitted."""
    if rng.random() < 0.5:
        return kind(tol=10.0 ** rng.uniform(-8, -1), **options)
    epochs = int(rng.integers(1, 20))
    solver = "block" if kind is SVC else "dcd"
    if kind is SVC and options.get("loss") == "squared_hinge":
        solver = "kernel-pegasos"
    return kind(tol=1e-14, max_epochs=epochs, solver=solver, **options)


def classifier(rng: Generator, _: int, multi_class: str) -> Found:
    """Compare scores and labels of one versus the rest, or of pairs."""
    classes = int(rng.integers(3, 5))
    X, y, new = several(rng, classes)
    C, loss = 10.0 ** rng.uniform(-2, 1), str(rng.choice(["hinge", "squared_hinge"]))
    bias = str(rng.choice(["none", "penalised", "free"]))
    kernel = multi_class == "ovo" and rng.random() < 0.5
    options = {"C": C, "loss": loss, "random_state": 0}
    if kernel:
        bias = BIAS_OF_SVC[loss]
        model = short(SVC, rng, gamma=0.5, **options).fit(X, y)
        F = images(model._fitted_kernel, np.vstack([X, new]))
    else:
        options |= {"fit_intercept": bias != "none"}
        options |= {"penalize_intercept": bias != "free", "multi_class": multi_class}
        model = short(LinearSVC, rng, **options).fit(X, y)
        F = np.vstack([X, new])
    if bias == "penalised":
        F = np.column_stack([F, np.ones(len(F))])
    pairs = [(k, None) for k in range(classes)]
    if multi_class == "ovo":
        pairs = list(combinations(range(classes), 2))
    values, slack = np.empty((2, len(new), len(pairs)))
    for p, (i, j) in enumerate(pairs):
        rows = np.arange(len(y)) if j is None else np.flatnonzero((y == i) | (y == j))
        signs = np.where(y[rows] == (i if j is None or kernel else j), 1.0, -1.0)
        found = optimum(
            F[rows], signs, np.full(len(rows), C), loss, 0.0, bias == "free"
        )
        values[:, p], slack[:, p] = found.decisions(F[len(X) :])
    if rng.random() < 0.5 or bias == "free":
        model.bound_optimum(X, y)
    problems = outside(*_middle(model._problem_bounds(new), values), slack)
    if multi_class == "ovo":
        return total([problems, _votes(model, new, values, slack, kernel)])
    best = values.argmax(axis=1)
    first, second = np.sort(values)[:, [-1, -2]].T
    proved = first - second > 2.0 * slack.max(axis=1)
    labels = _labels(model, new, best, proved)
    return total(
        [problems, outside(*_middle(model.decision_bounds(new), values), slack), labels]
    )


def _middle(bounds: Any, values: Vector) -> Any:
    return bounds[0], values, bounds[1]


def _labels(model: Any, new: Vector, best: Any, proved: Any) -> Found:
    """Compare certain labels with the codes of the true ones."""
    certain = model.certified_labels(new)
    return contradicted(certain, model.predict(new) != model.classes_[best], proved)


def _votes(
    model: Any, new: Vector, values: Vector, slack: Vector, first: bool
) -> Found:
    """Count the votes of pairs again, where all are certain.

    With `first` a positive decision is a vote for the first class of the pair.
    """
    values = -values if first else values
    classes = len(model.classes_)
    votes, sums = np.zeros((2, len(new), classes))
    for p, (i, j) in enumerate(combinations(range(classes), 2)):
        votes[:, j] += values[:, p] > 0.0
        votes[:, i] += values[:, p] <= 0.0
        sums[:, j] += values[:, p]
        sums[:, i] -= values[:, p]
    proved = (np.abs(values) > slack).all(axis=1)
    scores = votes + sums / (3.0 * (np.abs(sums) + 1.0))
    lower, upper = model.decision_bounds(new)
    off = slack.sum(axis=1)[:, None] + 1e-9
    found = outside(lower[proved], scores[proved], upper[proved], off[proved])
    most = np.sort(votes)[:, -1]
    tied = (votes == most[:, None]).sum(axis=1) > 1
    return total([found, _labels(model, new, votes.argmax(axis=1), proved & ~tied)])


def together(rng: Generator, _: int) -> Found:
    """Compare scores and labels of Crammer and Singer's problem."""
    classes = int(rng.integers(2, 5))
    X, y, new = several(rng, classes)
    C, fit_intercept = 10.0 ** rng.uniform(-2, 1), bool(rng.random() < 0.5)
    model = LinearSVC(
        C, loss="hinge", multi_class="crammer_singer", fit_intercept=fit_intercept,
        tol=10.0 ** rng.uniform(-9, 0), max_epochs=int(rng.integers(1, 200)),
    ).fit(X, y)  # fmt: skip
    F = np.vstack([X, new])
    if fit_intercept:
        F = np.column_stack([F, np.ones(len(F))])
    found = crammer_singer(F[: len(X)], y, np.full(len(y), C), classes)
    values, slack = F[len(X) :] @ found.w, np.linalg.norm(F[len(X) :], axis=1)
    slack = (found.slack * slack + 1e-6 * (1.0 + np.abs(values).max(axis=1)))[:, None]
    if rng.random() < 0.5:
        model.bound_optimum(X, y)
    best = values.argmax(axis=1)
    first, second = np.sort(values)[:, [-1, -2]].T
    labels = _labels(model, new, best, first - second > 2.0 * slack[:, 0])
    if classes == 2:
        values, slack = values[:, 1] - values[:, 0], 2.0 * slack[:, 0]
    return total([outside(*_middle(model.decision_bounds(new), values), slack), labels])


# --------------------------------------------------------------------- rows left out


def left_out(rng: Generator, count: int, most: int = 4) -> Found:
    """Refit without some rows, and compare the three stages of bounds there."""
    kind = removed.KINDS[count % len(removed.KINDS)]
    loss = ("hinge", "squared_hinge")[count // len(removed.KINDS) % 2]
    given = removed.random_problem(rng)
    problem = removed.problem_of(*given, kind, loss)
    found = removed.fitted(problem, 10.0 ** rng.uniform(-12, -2))
    out = LeftOut(Ball.of(problem, found.w if len(found.w) else None, found.alpha))
    every = np.arange(problem.n)
    rows = rng.permutation(every)[:most]
    truth = [
        removed.refitted(*given, kind, loss, np.delete(every, i), given[0][[i]])
        for i in rows
    ]
    true, off = (np.concatenate(part) for part in zip(*truth, strict=True))
    slack = removed.slack(problem, true, off)
    parts = [outside(out.lower[rows], true, out.upper[rows], slack)]
    out.repair(rows)
    parts.append(outside(out.lower[rows], true, out.upper[rows], slack))
    for i in rows:
        out.settle(int(i), lambda: False)
    parts.append(outside(out.lower[rows], true, out.upper[rows], slack))
    return total(parts)


#: Models whose problems are checked without some of their rows.
MODELS: list[Callable[..., Any]] = [
    LinearSVC,
    partial(LinearSVC, fit_intercept=False),
    partial(LinearSVC, penalize_intercept=False),
    partial(LinearSVC, multi_class="ovo"),
    partial(LinearSVC, multi_class="ovo", penalize_intercept=False),
    partial(SVC, gamma=0.5),
    partial(SVC, gamma=0.5, break_ties=True),
]


def chosen(rng: Generator, count: int) -> tuple[Any, Any, Any, Any, Any]:
    """Return rows, labels, new rows, a fitted model, and the same one to fit again."""
    X, y, new = several(rng, int(rng.integers(2, 5)), most=5)
    loss = ("hinge", "squared_hinge")[count // len(MODELS) % 2]
    options = {"C": 10.0 ** rng.uniform(-1, 1), "loss": loss, "random_state": 0}
    make = partial(MODELS[count % len(MODELS)], **options)
    return X, y, new, make(tol=10.0 ** rng.uniform(-9, -3)).fit(X, y), make(tol=1e-12)


def truth(exact: Any, X: Any, y: Any, kept: Any, new: Any) -> tuple[Any, Any]:
    """Return the labels of a fit of some rows, and where they are proved."""
    exact.fit(X[kept], y[kept]).bound_optimum(X[kept], y[kept])
    return exact.predict(new), exact.certified_labels(new)


def leave_one_out(rng: Generator, count: int, most: int = 2) -> Found:
    """Refit models without some rows, and compare the three stages of `loo_bounds`."""
    X, y, _, model, exact = chosen(rng, count)
    found = [loo_bounds(model, X, y, refine=r) for r in ("none", "local", "exact")]
    parts = []
    for i in rng.permutation(len(y))[:most]:
        label, proved = truth(exact, X, y, np.delete(np.arange(len(y)), i), X[[i]])
        parts += _errors(found, [i], label != y[i], proved)
    return total(parts)


def _errors(found: Any, rows: Any, wrong: Any, proved: Any) -> list[Found]:
    claims = [(one.right[rows], wrong) for one in found]
    claims += [(one.wrong[rows], ~wrong) for one in found]
    return [contradicted(*claim, proved) for claim in claims]


def folds(rng: Generator, count: int) -> Found:
    """Refit models without folds, and compare the three stages of `cv_bounds`."""
    X, y, _, model, exact = chosen(rng, count)
    every = np.arange(len(y))
    tests = np.array_split(rng.permutation(every), int(rng.integers(2, 4)))
    parts = [(np.setdiff1d(every, test), test) for test in tests]
    if any(len(np.unique(y[train])) < y.max() + 1 for train, _ in parts):
        return Found(0, 0)
    found = [
        cv_bounds(model, X, y, cv=parts, refine=refine, tol=10.0 ** rng.uniform(-6, -2))
        for refine in ("none", "local", "exact")
    ]
    true = [truth(exact, X, y, train, X[test]) for train, test in parts]
    labels, proved = (np.concatenate(part) for part in zip(*true, strict=True))
    wrong = labels != y[np.concatenate(tests)]
    return total(_errors(found, slice(None), wrong, proved))


def changes(rng: Generator, count: int) -> Found:
    """Refit without groups of rows, and with more."""
    X, y, model = removed.random_model(rng, count)
    many = int(rng.integers(1, len(y) - 4))
    left = rng.choice(np.arange(4, len(y)), many, replace=False)
    more = (X[:2] + 0.5, y[:2]) if rng.random() < 0.5 else (None, None)
    change = what_if(model, X, y, without=left, X_more=more[0], y_more=more[1])
    violated, checked = removed.violations(change, X)
    return Found(checked, violated)


def flips(rng: Generator, count: int, most: int = 4) -> Found:
    """Refit without some rows: every flip of a label is in the table of `influence`."""
    X, y, new = several(rng, int(rng.integers(2, 4)))
    kinds = [
        LinearSVC,
        partial(LinearSVC, fit_intercept=False),
        partial(LinearSVC, multi_class="ovo"),
        partial(SVC, gamma=0.5, break_ties=bool(rng.random() < 0.5)),
    ]
    k = count % len(kinds)  # SVC penalises the bias only with the squared hinge
    loss = "squared_hinge" if k == 3 else ("hinge", "squared_hinge")[count // 4 % 2]
    make = partial(kinds[k], C=10.0 ** rng.uniform(-1, 1), loss=loss, random_state=0)
    new = 0.3 * new
    model = make(tol=1e-6).fit(X, y)
    tables = [influence(model, X, y, new, repair=repair) for repair in (False, True)]
    before, exact, parts = model.predict(new), make(tol=1e-12), []
    for i in rng.permutation(len(y))[:most]:
        kept = np.delete(np.arange(len(y)), i)
        label, proved = truth(exact, X, y, kept, new)
        parts += [contradicted(~t[:, i], label != before, proved) for t in tables]
    return total(parts)


# ----------------------------------------------------------- the choice of C, proofs

SEARCHES: list[tuple[Any, dict[str, Any]]] = [
    (LinearSVC, {}),
    (LinearSVC, {"fit_intercept": False}),
    (LinearSVC, {"penalize_intercept": False}),
    (LinearSVC, {"multi_class": "ovo"}),
    (LinearSVC, {"multi_class": "ovo", "penalize_intercept": False}),
    (SVC, {"kernel": "rbf", "gamma": 0.5}),
    (SVC, {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0}),
    (SVC, {"kernel": "rbf", "gamma": 0.5, "break_ties": True}),
]


def selection(rng: Generator, count: int, kernel: bool, values: int = 2) -> Found:
    """Compare the error at values of C inside the interval with its bounds."""
    kinds = [kind for kind in SEARCHES if (kind[0] is SVC) == kernel]
    kind, options = kinds[count % len(kinds)]
    loss = ("hinge", "squared_hinge")[count // len(kinds) % 2]
    options = {**options, "loss": loss, "random_state": 0}
    classes = int(rng.integers(2, 4))
    n, d = int(rng.integers(12, 20)), int(rng.integers(1, 6))
    y = np.arange(n) % classes
    X = rng.standard_normal((n, d)) + y[:, None] * rng.standard_normal(d)
    if rng.random() < 0.3:  # ties and repeated rows
        X = np.round(X)
    parts = [
        (np.setdiff1d(np.arange(n), test), test)
        for test in np.array_split(rng.permutation(n), 2)
    ]
    if any(len(np.unique(y[train])) < classes for train, _ in parts):
        return Found(0, 0)
    low = 10.0 ** rng.uniform(-2, 0.5)
    high = low * 10.0 ** rng.uniform(0.2, 1)
    own = dict(options)
    search: Any = LinearSVCCV
    if kernel:
        search = partial(SVCCV, gammas=own.pop("gamma"))
    search = search(
        (low, high), cv=parts, certify="error", accuracy=0.15, refit=False, **own
    ).fit(X, y)
    edges, lower, upper = search.error_bounds_
    found = [Found(0, 0)]
    for C in np.exp(rng.uniform(np.log(low), np.log(high), values)):
        k = min(np.searchsorted(edges, C, side="right"), len(lower)) - 1
        exact, least, most = kind(C=C, tol=1e-12, **options), 0.0, 0.0
        for train, test in parts:
            label, proved = truth(exact, X, y, train, X[test])
            wrong = label != y[test]
            least += np.mean(proved & wrong) / len(parts)
            most += np.mean(wrong | ~proved) / len(parts)
        bad = lower[k] > most + 1e-12 or least > upper[k] + 1e-12
        found.append(Found(1, int(bad)))
    return total(found)


def proofs(rng: Generator, count: int) -> Found:
    """Check proof files, and that the optimum is between the two values they claim."""
    models: list[Callable[..., Any]] = [
        *[partial(LinearSVC, **bias) for bias in (
            {"fit_intercept": False}, {}, {"penalize_intercept": False})],
        LinearSVR,
        partial(SVC, kernel="rbf", gamma=0.5),
        partial(SVC, kernel="poly", gamma=0.5, degree=2, coef0=1.0),
        partial(SVR, kernel="rbf", gamma=0.5),
    ]  # fmt: skip
    k = count % len(models)
    regression, C = k in (3, 6), 10.0 ** rng.uniform(-2, 1)
    X, y, _ = several(rng, 2)
    signs: Any = np.where(y > 0, 1.0, -1.0)
    if regression:
        signs = X.sum(axis=1) + rng.standard_normal(len(y))
    squared = rng.random() < 0.5 and k != 6
    name = ("squared_" if squared else "") + ("eps" if regression else "hinge")
    options = {"C": C}
    if k != 6:
        options["loss"] = name.replace("eps", "epsilon_insensitive")
    if regression:
        options["epsilon"] = 0.1
    model = models[k](tol=10.0 ** rng.uniform(-8, -1), **options).fit(X, signs)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "proof")
        write_proof(model, X, signs, path)
        [(primal, dual)] = check(Proof(path.read_bytes()), None)
    F = images(model._fitted_kernel, X) if k > 3 else X
    free = k in (2, 6) or (k > 3 and BIAS_OF_SVC.get(name) == "free")
    if k in (1, 3) or (k > 3 and not free):
        F = np.column_stack([F, np.ones(len(F))])
    found = optimum(F, signs, np.full(len(y), C), name, 0.1 * regression, free)
    off = 1e-8 * (1.0 + found.value)
    wrong = dual > found.value + off, primal < found.value - found.slack**2 / 2 - off
    return Found(2, sum(wrong))


FREE: Kinds = [kind for kind in CLASSES if kind[1] == "free"]
OTHERS: Kinds = [kind for kind in CLASSES if kind[1] != "free"]
#: Names of what is checked, and functions of a generator and the number of the problem.
ITEMS: dict[str, Callable[[Generator, int], Found]] = {
    "decisions, linear": partial(decisions, kinds=OTHERS),
    "decisions, unpenalised bias": partial(decisions, kinds=FREE),
    "decisions, kernels": partial(decisions, kinds=KERNELS),
    "decisions, regression": partial(decisions, kinds=TARGETS),
    "one versus the rest": partial(classifier, multi_class="ovr"),
    "one versus one": partial(classifier, multi_class="ovo"),
    "Crammer and Singer": together,
    "weights and their signs": weights,
    "support vectors and others": support,
    "a row left out": left_out,
    "loo_bounds": leave_one_out,
    "cv_bounds": folds,
    "what_if": changes,
    "influence": flips,
    "certified C, linear": partial(selection, kernel=False),
    "certified C, kernels": partial(selection, kernel=True),
    "proof files": proofs,
}


def run(name: str, count: int, seed: int = 0) -> Found:
    """Check one problem of an item, which the three arguments define."""
    rng = np.random.default_rng([seed, count, *name.encode()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ITEMS[name](rng, count)

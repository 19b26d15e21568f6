"""Tables 2 and 3 of Shalev-Shwartz et al. 2011: Pegasos with Gaussian kernels."""

from __future__ import annotations

import time
from functools import lru_cache, partial

import numpy as np
from scipy import sparse

from ..data.types import Matrix, Parameters
from ..kernel import RBF, KernelProblem
from ..kernels.functions import resolve_gamma
from ..losses import Vector
from ..training import Solution
from ..training.progress import EpochInfo
from . import data
from .frame import Budget, Paper, printed, published, solvers
from .measure import filled, lasting, lasting_epoch, scores, span, walk
from .names import settings
from .page import Findings, Rows, judged

#: Rows that the paper trains on, gamma, lambda and accuracy by set.
SETS = published("pegasos2011", "sets")["rows"].items()
CASES = {name: [*map(float, cells)] for name, cells in SETS}
SETTINGS = settings("pegasos2011-kernels")
METHODS = solvers(SETTINGS.methods)
FIRST, DRAWS, AVERAGE, _ = METHODS


@lru_cache(maxsize=1)
def split(name: str, seed: int = 0) -> data.Parts:
    """Return training and test rows; USPS is split at random by a seed.

    Images are the digit 8 against the others. Rows of USPS have unit norm.
    """
    if name == "reuters":
        return data.reuters(True, sublinear_tf=True)
    if name == "adult":
        X, y = data.load("a9a")
        return X, y, *data.svmlight("adult/a9a.t", X.shape[1])
    if name not in CASES:
        return data.halves(name)
    X, y, test, labels = data.images(name)
    y, labels = (np.where(found == 8, 1.0, -1.0) for found in (y, labels))
    if name == "mnist":
        return sparse.csr_matrix(X / 255), y, sparse.csr_matrix(test / 255), labels
    X, y = np.vstack([X, test]) * 0.001 + 1.0, np.concatenate([y, labels])
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    order = np.random.default_rng(seed).permutation(len(y))
    first, rest = np.split(order, [int(CASES["usps"][0])])
    return X[first], y[first], X[rest], y[rest]


def chosen(name: str) -> list[float]:
    """Return gamma, lambda and accuracy; gamma of others is one over the variance."""
    if name in CASES:
        return CASES[name][1:]
    gamma = 2.0 * resolve_gamma("mean-distance", split(name)[0])
    return [gamma, SETTINGS.lam, SETTINGS.accuracy]


def test_error(
    problem: KernelProblem, solution: Solution, X: Matrix, test: Matrix, labels: Vector
) -> float:
    """Return the percentage of test rows that the model of a solution gets wrong."""
    coef = problem.coef(solution.coefficients)[0]
    used = np.flatnonzero(coef)
    found = scores(problem.gram.kernel, X[used], coef[None, used], test)
    return 100.0 * float(np.mean((found[0] > 0.0) != (labels > 0.0)))


def within(info: EpochInfo, seconds: float, target: float) -> bool:
    """Return whether P of an epoch is at most `target`."""
    return info.primal <= target


def measure(name: str, budget: Budget) -> Parameters:
    """Return, for the reference and every method, one row of figures a seed.

    The reference has (seconds, proved P - P*, test error, training rows, test rows).
    A method has (seconds, test error, epochs, kernel rows, lasting epoch), or nothing
    after the limit.
    """
    results: Parameters = {"reference": [], **{label: [] for label in METHODS}}
    gamma, lam, accuracy = chosen(name)
    for seed in range(1 if name == "mnist" else budget.seeds):
        X, y, test, labels = split(name, seed if name == "usps" else 0)
        # each has an empty cache of kernel rows
        problem = partial(KernelProblem, X, y, 1.0 / (lam * len(y)), kernel=RBF(gamma),
                          loss="hinge", fit_intercept=False,
                          cache_size=SETTINGS.cache)  # fmt: skip
        if seed == 0 or name == "usps":
            begun, whole = time.process_time(), problem()
            near, limit = SETTINGS.reference / lam, SETTINGS.longer * budget.limit
            best, _ = walk(whole, METHODS[FIRST], limit=limit, atol=near * accuracy)
            seconds, proof = time.process_time() - begun, best.certificate
            wrong = test_error(whole, best, X, test, labels)
            slack = lam * (proof.primal - proof.dual)
            results["reference"].append([seconds, slack, wrong, len(y), len(labels)])
            del whole
        target = proof.dual + accuracy / lam
        for label, solver in METHODS.items():
            if len(results[label]) < seed:
                continue  # it was too slow
            fresh = problem()
            best, seconds = walk(fresh, solver, partial(within, target=target),
                                 seed=seed, limit=budget.limit)  # fmt: skip
            if (best.history["primal"] <= target).any():
                wrong = test_error(fresh, best, X, test, labels)
                epochs, updates = best.certificate.epochs, best.certificate.updates
                longer, _ = walk(fresh, solver, seed=seed, epochs=3 * epochs)
                last = lasting_epoch(longer.history, target)
                results[label].append([seconds, wrong, epochs, updates, last])
    return {"limit": budget.limit, "settings": [gamma, lam, accuracy], **results}


def middle(found: Parameters, label: str, at: int) -> float:
    """Return the median of a figure over the seeds."""
    return float(np.median([run[at] for run in found[label]] or np.nan))


def speed(found: Parameters, label: str) -> float:
    """Return the kernel values a second."""
    return found["reference"][0][3] * middle(found, label, 3) / middle(found, label, 0)


def judge(name: str, found: Parameters) -> Findings:
    """Yield what a set shows of the claims."""
    found, table = found["2"], published("pegasos2011", "2")["rows"]
    own = [middle(found, label, 1) for label in (FIRST, DRAWS)]
    if name in table and np.isfinite(own).all():
        error = float(table[name][0].rstrip(")").split("(")[1])
        off = max(abs(value - error) for value in own)
        yield "same", (off <= SETTINGS.near * error,
                       f"{span(own, '.2f')} against {error:g}")  # fmt: skip
    for key, a, b, at, digits in (("averages", AVERAGE, DRAWS, 2, ".1f"),
                                  ("draws", DRAWS, FIRST, 0, ".2f")):  # fmt: skip
        ratio = middle(found, a, at) / middle(found, b, at)
        if np.isfinite(ratio):
            yield key, (ratio > 1.0, format(ratio, digits))


def rows(name: str, found: Parameters) -> Rows:
    """Yield the rows of the tables: medians, or ranges too."""
    found = found["2"]
    seeds, base = len(found[FIRST] or [0]), speed(found, DRAWS)
    yield "seconds", {
        label: f"> {found['limit']:g}" if len(found[label]) < seeds else
        f"{middle(found, label, 0):.2g} ({middle(found, label, 1):.2f}), "
        f"{' / '.join(lasting([(run[2], run[4]) for run in found[label]]))}"
        for label in METHODS
    }  # fmt: skip
    yield "speeds", {label: f"{speed(found, label) / base:.2f}" for label in METHODS}
    for table in "23":
        if row := printed("pegasos2011", table).get(name):
            yield f"printed_{table}", row
    gamma, lam, accuracy = found["settings"]
    taken, slack, errors, train, test = np.array(found["reference"]).T
    size = f" ({CASES[name][0]:,.0f})" if name in CASES else ""
    yield "references", filled(
        SETTINGS.references, gamma=gamma, lam=lam, accuracy=accuracy, train=train[0],
        test=test[0], printed=size, slack=slack.max(), seconds=np.median(taken),
        wrong=span(errors, ".2f"))  # fmt: skip
    for label in METHODS:
        row = {"method": label}
        for at, (column, text) in enumerate(SETTINGS.columns.items()):
            if values := [run[at] for run in found[label]]:
                row[column] = f"{np.median(values):{text}} ({span(values, text)})"
        yield "ranges", row


PAPER = Paper(
    settings=SETTINGS,
    parts={"2": measure},
    verdicts=partial(judged, judge=judge), rows=rows,
)  # fmt: skip

"""Fits of Nanculef et al. 2014: at the stop that a sample decides, and to a proof."""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from ..certificate import Status
from ..data.types import Array, Matrix, Parameters
from ..estimators import SVC
from ..kernel import (
    FW,
    MFW,
    RBF,
    SWAP,
    CoreVector,
    Kernel,
    KernelProblem,
    KernelSolver,
    Polynomial,
    SWAP2o,
)
from ..kernels.functions import resolve_gamma
from ..training.progress import EpochInfo
from .frame import Budget
from .measure import walk
from .nanculef_data import COLLECTIONS, SETS, load, some

EQUAL = "CVM, equal"
METHODS = ("CVM", EQUAL, "FW", "MFW", "SWAP", "SWAP-2o")
WALKS = {"FW": FW, "MFW": MFW, "SWAP": SWAP}
# How a fit ends, and draws: the first is the paper's.
STOPS: dict[str, Parameters] = {
    "1 sample": {},
    "5 samples": {"quiet_samples": 5},
    "balanced": {"balanced": True},
    "small eps": {"quiet_samples": 5},
}
KERNELS = ("Gaussian", "polynomial")
FAST = ("FW", "MFW", "SWAP", "SWAP-2o")


@dataclass(frozen=True)
class NanculefSettings:
    """Settings of the fits, and thresholds of the verdicts."""

    #: eps of the sampled stop, and the one of the part "small eps".
    eps: float = 1e-4
    small: float = 1e-5
    #: Validation: values of C (the paper's 2^-4 to 2^4 is twice dualgap's C), rows to
    #: train on, and rows to validate on.
    costs: tuple[float, ...] = (1 / 32, 1 / 8, 1 / 2, 2.0, 8.0)
    train: int = 1000
    validate: int = 2000
    #: Test rows at most.
    test: int = 5000
    #: Processor seconds of a fit, of a cell until it gets no more seeds, and of the
    #: lower bound on an optimum.
    longest: float = 120.0
    patience: float = 5.0
    bound: float = 5.0
    #: Rows, seconds and gap of a fit to a proved gap.
    rows: int = 20_000
    limit: float = 20.0
    gap: float = 1e-3
    #: Least share by which a model beats naming the larger class.
    margin: float = 0.005
    #: Factor by which the seconds of two runs of one fit differ.
    noise: float = 1.25
    #: Differences of accuracy, in points, that are none.
    points: float = 0.1
    #: Points and factor within which another kernel is as accurate and as fast.
    kernel: float = 1.0
    slower: float = 2.0


SETTINGS = NanculefSettings()
#: Factors of gamma that are tried, where the paper chooses it too.
FACTORS = dict.fromkeys(("pendigits", "usps"), (0.25, 1.0, 4.0))


def kernel_of(name: str, gamma: float) -> Kernel:
    """Return the Gaussian or the polynomial kernel of the paper."""
    if name == "Gaussian":
        return RBF(gamma=gamma)
    return Polynomial(degree=2, gamma=gamma, coef0=0.0)


def solver_of(method: str, stop: str, C: float) -> KernelSolver:
    """Return a method with its stop.

    CVM's test at e asks for a gap 2(p - min g) of at most (2e + e^2)(kappa - p), where
    kappa is the largest K_ii. At the equal e that is about eps.
    """
    options = {"stop": "sampled", "initial_point": "random", **STOPS[stop]}
    eps = SETTINGS.small if stop == "small eps" else SETTINGS.eps
    if method == EQUAL:
        eps /= 2.0 * (2.0 + 1.0 / (2.0 * C))
    if method in ("CVM", EQUAL):
        return CoreVector(eps=eps, **options)
    if method == "SWAP-2o":
        return SWAP2o(eps=eps, ranking="paper", **options)
    return WALKS[method](eps=eps, **options)


def pairs_of(y: Array) -> Iterator[tuple[Array, Array]]:
    """Return (rows, labels) of each pair of classes, one for two classes."""
    for a, b in itertools.combinations(np.unique(y), 2):
        rows = np.flatnonzero((y == a) | (y == b))
        yield rows, np.where(y[rows] == b, 1, -1)


class KernelTraining:
    """A set with a kernel, and C and gamma that were chosen on validation rows."""

    def __init__(self, name: str, kernel: str) -> None:
        X, y, X_t, y_t = load(name)
        self.X, self.y, (self.X_t, self.y_t) = X, y, some(X_t, y_t, SETTINGS.test)
        self.kernel, self.pairs = kernel, [*pairs_of(y)]
        self.C, self.gamma = self.choose(FACTORS.get(name, (1.0,)))

    def choose(self, factors: Sequence[float]) -> tuple[float, float]:
        """Return the most accurate C and gamma.

        Of equal ones the smallest C, then the gamma closest to the rule's.
        """
        most = SETTINGS.train + SETTINGS.validate
        rows = np.random.default_rng(1).permutation(len(self.y))[:most]
        train, test = np.split(rows, [min(SETTINGS.train, len(rows) // 2)])
        whole, best = resolve_gamma("mean-distance", self.X), (-1.0, 0.0, 0.0)
        for C in SETTINGS.costs:
            for factor in sorted(factors, key=lambda f: abs(np.log(f))):
                kernel = kernel_of(self.kernel, factor * whole)
                model = SVC(C=C, loss="squared_hinge", tol=1e-3, kernel=kernel)
                model.fit(self.X[train], self.y[train])
                right = np.mean(model.predict(self.X[test]) == self.y[test])
                if right > best[0]:
                    best = float(right), C, factor * whole
        return best[1], best[2]

    def problems(self) -> Iterator[KernelProblem]:
        """Return the problem of each pair of classes."""
        for rows, labels in self.pairs:
            kernel = kernel_of(self.kernel, self.gamma)
            yield KernelProblem(self.X[rows], labels, self.C, kernel=kernel)

    def about(self, limit: float) -> Parameters:
        """Return sizes, what was chosen, and a lower bound on the optimum.

        It is the sum over the pairs, proved by SWAP-2o with the full gradient.
        """
        left, dual = limit, 0.0
        for problem in self.problems():
            found, steps = walk(problem, SWAP2o(), lambda info: False, tol=1e-2,
                                epochs=10**9, limit=left)  # fmt: skip
            dual += max(found.certificate.dual, 0.0)
            left -= steps[-1][1] if steps else 0.0
        counts = np.unique(self.y_t, return_counts=True)[1]
        return {
            "C": self.C, "gamma": self.gamma, "rows": self.X.shape[0],
            "d": self.X.shape[1], "classes": len(counts), "bound": dual,
            "largest": max(len(rows) for rows, _ in self.pairs),
            "majority": float(counts.max() / len(self.y_t)),
        }  # fmt: skip

    def fit(self, method: str, stop: str, seed: int, limit: float) -> Parameters:
        """Train on every pair of classes until a sample or the limit stops a fit.

        Report the models there. P and D are sums over the pairs; seconds are of
        processor time, without the proofs that follow.
        """
        solver, certificates = solver_of(method, stop, self.C), []
        coefs = np.zeros((len(self.pairs), self.X.shape[0]), dtype=np.float32)
        cpu, values = 0.0, 0
        for k, problem in enumerate(self.problems()):
            seen = [0]

            def look(info: EpochInfo, seen: list[int] = seen,
                     problem: KernelProblem = problem) -> None:  # fmt: skip
                seen.append(problem.gram.statistics.evaluations)

            solution, steps = walk(problem, solver, look, seed=seed, tol=1e-3,
                                   epochs=10**9, limit=limit - cpu)  # fmt: skip
            cpu, values = cpu + (steps[-1][1] if steps else 0.0), values + seen[-1]
            if solution.certificate.status not in (Status.SAMPLED, Status.CERTIFIED):
                return {"done": False, "cpu": cpu, "values": values}
            certificates.append(solution.certificate)
            coefs[k, self.pairs[k][0]] = problem.coef(solution.alpha)[0]
        support = np.flatnonzero(coefs.any(axis=0))
        return {
            "done": True, "cpu": cpu, "values": values, "support": len(support),
            "steps": sum(c.updates for c in certificates),
            "primal": sum(c.primal for c in certificates),
            "dual": sum(max(c.dual, 0.0) for c in certificates),
            "accuracy": self.accuracy(self.X[support], coefs[:, support]),
        }  # fmt: skip

    def accuracy(self, X: Matrix, coefs: Array) -> float:
        """Return the share of test rows that most pairs of classes get right."""
        from sklearn.metrics.pairwise import pairwise_kernels

        kind = "rbf" if self.kernel == "Gaussian" else "poly"
        given = {"gamma": self.gamma, "degree": 2, "coef0": 0.0, "filter_params": True}
        scores = np.zeros((len(coefs), len(self.y_t)))
        for rows in np.array_split(np.arange(X.shape[0]), -(-X.shape[0] // 1000)):
            K = pairwise_kernels(X[rows], self.X_t, kind, **given)
            scores += coefs[:, rows] @ (K + 1.0)
        classes = np.unique(self.y)
        votes = np.zeros((len(classes), len(self.y_t)), dtype=int)
        pairs = itertools.combinations(range(len(classes)), 2)
        for (a, b), score in zip(pairs, scores, strict=True):
            votes[b] += score > 0
            votes[a] += score <= 0
        return float(np.mean(classes[votes.argmax(axis=0)] == self.y_t))


def of(title: str, sets: Iterable[str]) -> list[str]:
    """Return the sets of a collection, and those outside of all."""
    return [n for n in sets if n in COLLECTIONS[title] or n not in SETS]


def measure(name: str, budget: Budget, stop: str, kernel: str) -> Parameters:
    """Return the fits of all methods on a set, with sizes and a bound."""
    if stop != "1 sample" and name not in of("Web", [name]):
        return {}
    training = KernelTraining(name, kernel)
    fits: dict[str, list[Parameters]] = {}
    for method in METHODS:
        if kernel != "Gaussian" and "CVM" in method:
            continue  # its test needs equal k(x, x)
        cell = fits[method] = []
        for seed in range(budget.seeds):
            cell.append(training.fit(method, stop, seed, budget.limit))
            if not cell[-1]["done"] or sum(f["cpu"] for f in cell) > SETTINGS.patience:
                break
    return {
        "limit": budget.limit,
        "fits": fits,
        **training.about(min(SETTINGS.bound, budget.limit)),
    }


def prove(name: str, budget: Budget, kernel: str) -> Parameters:
    """Return fits with the full gradient to a proved gap, of some rows."""
    X, y, X_t, y_t = load(name)
    most = SETTINGS.rows
    (X, y), (X_t, y_t) = some(X, y, most), some(X_t, y_t, most)
    limit, fits = min(SETTINGS.limit, budget.limit), {}
    solvers = CoreVector(sample=None), FW(), MFW(), SWAP(), SWAP2o(ranking="paper")
    for method, solver in zip(("CVM", *FAST), solvers, strict=True):
        model = SVC(
            C=1.0, loss="squared_hinge", max_iter=10**9, time_limit=limit,
            kernel=kernel_of(kernel, resolve_gamma("mean-distance", X)),
            tol=SETTINGS.gap, solver=solver, cache_size=1000, random_state=0,
        )  # fmt: skip
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        cpu = time.process_time() - begun
        fits[method] = [{
            "done": model.certificate_.certified, "cpu": cpu,
            "support": len(model.support_),
            "accuracy": float(np.mean(model.predict(X_t) == y_t)),
        }]  # fmt: skip
    return {"limit": limit, "rows": X.shape[0], "majority": 0.0, "fits": fits}

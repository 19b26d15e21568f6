"""Experiments of Nanculef, Frandi, Sartori and Allende 2014 (Frank-Wolfe SVMs).

Fits end at the stop that a sample decides, or with a proof.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np
from sklearn.model_selection import GridSearchCV

from ..certificate import Status
from ..data.types import Array, Matrix, Parameters
from ..estimators import SVC
from ..kernel import RBF, CoreVector, KernelProblem, Polynomial, SWAP2o
from ..kernels.functions import resolve_gamma
from ..solvers.base import Solver
from ..training.progress import EpochInfo
from .data import COLLECTIONS, parts_of, some
from .frame import Budget, Paper, published, solvers
from .measure import filled, scores, span, spread, two_digits, walk
from .names import settings
from .page import Finding, Row, Rows, Verdict, tally
from .pictures import Line, Panel
from .rank_tests import compared

SETS = [name for names in COLLECTIONS.values() for name in names]
EQUAL = "CVM, equal"
KERNELS = ("Gaussian", "polynomial")
SETTINGS = settings("nanculef2014")
STOPS: dict[str, Parameters] = SETTINGS.stops
FAST, METHODS = [*SETTINGS.fast], [*SETTINGS.cvm, *SETTINGS.fast]
Kind = RBF | Polynomial


def kernel_of(name: str, gamma: float) -> Kind:
    """Return the Gaussian or the polynomial kernel of the paper."""
    polynomial = Polynomial(degree=2, gamma=gamma, coef0=0.0)
    return polynomial if name == "polynomial" else RBF(gamma=gamma)


def looser(C: float) -> float:
    """Return how much looser CVM's test at a small eps is than one for a gap of eps.

    It asks for a gap 2(p - min g) of at most (2 eps + eps^2)(kappa - p), where kappa is
    the largest K_ii.
    """
    return 2.0 * (2.0 + 1.0 / (2.0 * C))


def solver_of(method: str, stop: str, C: float) -> Solver:
    """Return a method with its stop."""
    options = {"stop": "sampled", "initial_point": "random", **STOPS[stop]}
    eps = SETTINGS.small if stop == "small eps" else SETTINGS.eps
    if method == EQUAL:
        eps /= looser(C)
    return solvers(SETTINGS.cvm | SETTINGS.fast, eps=eps, **options)[method]


class KernelTraining:
    """A set with a kernel, and C and gamma that were chosen on validation rows."""

    def __init__(self, name: str, kernel: str) -> None:
        X, y, X_t, y_t = parts_of(name)
        self.X, self.y, (self.X_t, self.y_t) = X, y, some(X_t, y_t, SETTINGS.test)
        #: Rows and labels of each pair of classes.
        self.pairs = [(rows := np.flatnonzero((y == a) | (y == b)),
                       np.where(y[rows] == b, 1, -1))
                      for a, b in itertools.combinations(np.unique(y), 2)]  # fmt: skip
        self.C, self.kernel = self.choose(kernel, SETTINGS.factors.get(name, [1.0]))

    def choose(self, kernel: str, factors: Sequence[float]) -> tuple[float, Kind]:
        """Return the most accurate C and kernel.

        Of equal ones the smallest C, then the gamma closest to the rule's.
        """
        most = SETTINGS.train + SETTINGS.validate
        rows = np.random.default_rng(1).permutation(len(self.y))[:most]
        train, test = np.split(rows, [min(SETTINGS.train, len(rows) // 2)])
        whole = resolve_gamma("mean-distance", self.X)
        factors = sorted(factors, key=lambda factor: abs(np.log(factor)))
        kinds = [kernel_of(kernel, factor * whole) for factor in factors]
        model = SVC(loss="squared_hinge", tol=1e-3)
        search = GridSearchCV(model, {"C": SETTINGS.costs, "kernel": kinds},
                              cv=[(train, test)], refit=False)  # fmt: skip
        best = search.fit(self.X, self.y).best_params_
        return best["C"], best["kernel"]

    def problems(self) -> Iterator[KernelProblem]:
        """Return the problem of each pair of classes."""
        for rows, labels in self.pairs:
            yield KernelProblem(self.X[rows], labels, self.C, kernel=self.kernel)

    def about(self, limit: float) -> Parameters:
        """Return sizes, what was chosen, and a lower bound on the optimum.

        It is the sum over the pairs, proved by SWAP-2o with the full gradient.
        """
        left, dual = limit, 0.0
        for problem in self.problems():
            found, seconds = walk(problem, SWAP2o(), tol=1e-2, limit=left)
            dual, left = dual + max(found.certificate.dual, 0.0), left - seconds
        counts = np.unique(self.y_t, return_counts=True)[1]
        return {
            "C": self.C, "gamma": self.kernel.gamma, "rows": self.X.shape[0],
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

            def look(info: EpochInfo, seconds: float, seen: list[int] = seen,
                     problem: KernelProblem = problem) -> None:  # fmt: skip
                seen.append(problem.gram.statistics.evaluations)

            solution, seconds = walk(problem, solver, look, seed=seed, tol=1e-3,
                                     limit=limit - cpu)  # fmt: skip
            cpu, values = cpu + seconds, values + seen[-1]
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
        bias = coefs.sum(axis=1, keepdims=True, dtype=np.float64)
        sides = scores(self.kernel, X, coefs, self.X_t) + bias > 0
        classes = np.unique(self.y)
        votes = np.zeros((len(classes), len(self.y_t)), dtype=int)
        pairs = itertools.combinations(range(len(classes)), 2)
        for (a, b), second in zip(pairs, sides, strict=True):
            votes[b] += second
            votes[a] += ~second
        return float(np.mean(classes[votes.argmax(axis=0)] == self.y_t))


def of(title: str, sets: Iterable[str]) -> list[str]:
    """Return the sets of a collection or of all, and those outside of all."""
    return [n for n in sets if n in COLLECTIONS.get(title, SETS) or n not in SETS]


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
    sizes = training.about(min(SETTINGS.bound, budget.limit))
    return {"limit": budget.limit, "fits": fits, **sizes}


def prove(name: str, budget: Budget, kernel: str) -> Parameters:
    """Return fits with the full gradient to a proved gap, of some rows."""
    X, y, X_t, y_t = parts_of(name)
    most = SETTINGS.rows
    (X, y), (X_t, y_t) = some(X, y, most), some(X_t, y_t, most)
    limit, fits = min(SETTINGS.limit, budget.limit), {}
    exact = {"CVM": CoreVector(sample=None), **solvers(SETTINGS.fast)}
    for method, solver in exact.items():
        model = SVC(
            C=1.0, loss="squared_hinge", max_iter=10**9, time_limit=limit,
            kernel=kernel_of(kernel, resolve_gamma("mean-distance", X)),
            tol=SETTINGS.gap, solver=solver, cache_size=1000, random_state=0,
        )  # fmt: skip
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a fit may end at the limit
            model.fit(X, y)
        fits[method] = [{
            "cpu": time.process_time() - begun, "done": model.certificate_.certified,
            "support": len(model.support_),
            "accuracy": float(np.mean(model.predict(X_t) == y_t)),
        }]  # fmt: skip
    return {"limit": limit, "rows": X.shape[0], "majority": 0.0, "fits": fits}


def cell_of(part: Parameters, method: str) -> list[Parameters]:
    """Return the fits of a method, of which there may be none."""
    return part.get("fits", {}).get(method, [])


def ended(part: Parameters, method: str) -> bool:
    """Whether there are fits and none was stopped."""
    cell = cell_of(part, method)
    return bool(cell) and all(f["done"] for f in cell)


def middle(part: Parameters, method: str, what: str) -> float:
    """Return a median over the seeds, NaN where a fit was stopped or not run."""
    found = [f[what] for f in cell_of(part, method)] if ended(part, method) else []
    return float(np.median(found)) if found else np.nan


def learned(part: Parameters, methods: Iterable[str]) -> bool:
    """Whether all models that were trained beat naming the larger class."""
    known = [m for m in methods if ended(part, m)]
    least = part.get("majority", 0.0) + SETTINGS.margin
    return all(middle(part, m, "accuracy") >= least for m in known)


def ratio(part: Parameters, what: str, a: str, b: str, need: float) -> Finding | None:
    """Return whether b has at least `need` times the value of a; None if not run.

    A fit that was stopped counts with its limit. Seconds close to what is needed, and
    models that have learned nothing, leave the claim open.
    """
    if not (cell_of(part, a) and cell_of(part, b)):
        return None
    if not (ended(part, a) or ended(part, b)):
        return None, "stopped"
    sign = "" if ended(part, a) and ended(part, b) else "<" if ended(part, b) else ">"
    if sign and what != "cpu":
        return None, "stopped"
    x, y = (middle(part, m, what) if ended(part, m) else part["limit"] for m in (a, b))
    text = f"{sign} {two_digits(y / x)}".strip()
    if not learned(part, (a, b)):
        return None, f"{text}, no model"
    noise = SETTINGS.noise if what == "cpu" else 1.0
    if y / x >= need * noise:
        return (None if sign == "<" else True), text
    return (False if y / x < need / noise and sign != ">" else None), text


def ahead(
    part: Parameters, a: str, others: Sequence[str], words: str
) -> Finding | None:
    """Return whether a is more accurate than others, or as accurate, and the points."""
    known = [m for m in others if cell_of(part, m)]
    if not known or not cell_of(part, a):
        return None
    points = [100 * (middle(part, a, "accuracy") - middle(part, m, "accuracy"))
              for m in known]  # fmt: skip
    if np.isnan(points).any():
        return None, "stopped"
    text = ", ".join(f"{x:+.2f}" for x in points)
    if not learned(part, (a, *known)):
        return None, f"{text}, no model"
    apart = [x > 0 for x in points if abs(x) > SETTINGS.points]
    if " as accurate" in words:
        apart = [x > -SETTINGS.points for x in points]
    return tally(apart)[0] if apart else None, text


def growth(parts: Mapping[str, Parameters], what: str) -> dict[str, Finding]:
    """Return whether a value of SWAP rises or falls from a set to the next."""
    each: dict[str, Finding] = {}
    before = np.nan
    for name, part in parts.items():
        speed_up = middle(part, EQUAL, "cpu") / middle(part, "SWAP", "cpu")
        share = 100 * middle(part, "SWAP", "support") / part.get("rows", np.nan)
        value = speed_up if what == "speed-up" else -share
        if np.isnan(value):
            continue
        found = None if np.isnan(before) else bool(value >= before)
        model = learned(part, ("SWAP", EQUAL))
        text = two_digits(abs(value)) + ", no model" * (not model)
        each[name] = found if model else None, text
        before = value
    return each


def polynomial(sets: Parameters, what: str) -> dict[str, Finding]:
    """Return how the kernels compare: one point or a factor of two is the same.

    Only methods count with which models of both have learned.
    """
    each: dict[str, Finding] = {}
    key = "cpu" if what == "seconds" else what
    for name, found in sets.items():
        parts = [found.get(part, {}) for part in ("polynomial", "1 sample")]
        values = np.array([[middle(part, m, key) for m in FAST] for part in parts])
        known = np.isfinite(values).all(axis=0)
        own, other = values[:, known]
        same, told = own <= SETTINGS.slower * other, [*map(two_digits, own / other)]
        if what == "accuracy":
            points = 100 * (own - other)
            same, told = points >= -SETTINGS.kernel, [f"{x:+.2f}" for x in points]
        models = [all(learned(part, [m]) for part in parts) for m in FAST]
        judged = same[np.array(models)[known]]
        if own.size:
            text = ", ".join(told) + ", no model" * (not judged.size)
            each[name] = tally(judged)[0] if judged.size else None, text
    return each


def findings(
    claim: Parameters, parts: Mapping[str, Parameters], sets: Parameters
) -> dict[str, Finding]:
    """Return what each set shows of a claim."""
    if "kernels" in claim:
        return polynomial(sets, claim["kernels"])
    if "growth" in claim:
        return growth(parts, claim["growth"])
    first, *others = claim["of"]
    found = {
        name: ratio(part, claim["ratio"], first, others[0], claim.get("need", 1.0))
        if "ratio" in claim else ahead(part, first, others, claim["claim"])
        for name, part in parts.items()
    }  # fmt: skip
    return {name: one for name, one in found.items() if one is not None}


def places(title: str) -> list[tuple[str, str]]:
    """Return the stops of a collection, and what a verdict calls the place.

    A kernel has fits to a proved gap, of all sets.
    """
    if title in KERNELS:
        return [(f"proved, {title}", title)]
    if title != "Web":
        return [("1 sample", title)]
    return [(stop, f"Web, {stop}") for stop in STOPS]


def verdicts(claims: list[Parameters], sets: Parameters) -> list[Verdict]:
    """Judge the claims at all of their places."""
    return [
        Verdict(claim["claim"], place, claim["measured"], findings(claim, parts, sets))
        for claim in claims for title in claim["places"]
        for stop, place in places(title)
        for parts in [{n: sets[n].get(stop, {}) for n in of(title, sets)}]
    ]  # fmt: skip


def test_rows(sets: Parameters, learned_only: bool) -> list[dict[str, str]]:
    """Return the paper's tests of time and accuracy: sets ahead, p, and what is shown.

    CVM appears with both of its stops.
    """
    parts = [found.get("1 sample", {}) for found in sets.values()]
    values = {
        (what, m): np.array([
            np.nan if learned_only and not learned(part, [m])
            else middle(part, m, key) for part in parts
        ]) for what, key in (("time", "cpu"), ("accuracy", "accuracy")) for m in METHODS
    }  # fmt: skip
    rows = []
    for what in ("time", "accuracy"):
        for methods in ([EQUAL, *FAST], [EQUAL, "MFW", "SWAP", "SWAP-2o"]):
            words = "the five differ" if "FW" in methods else "all but FW differ"
            told = compared([values[what, m] for m in methods])
            rows.append({"of": what, "comparison": words, "the paper": "", **told})
    for what, a, b, side, paper in published("nanculef2014", "tests")["rows"]:
        for baseline in (b, EQUAL) if b == "CVM" else (b,):
            words = SETTINGS.comparisons.get(f"{what}, {side}", "{} and {} differ")
            told = compared([values[what, m] for m in (a, baseline)], side)
            words = words.format(a, baseline)
            rows.append({"of": what, "comparison": words, "the paper": paper, **told})
    return rows


def tables(sets: Parameters) -> dict[str, list[Row]]:
    """Return the paper's tests, where models have learned too, and what was not run.

    There are no tests with too few sets.
    """
    web = SETTINGS.tables["others"]
    where = {key: "Web" if key in web else "all" for key in PAPER.parts}
    absent = {key: ", ".join(n for n in of(title, sets) if not sets[n].get(key))
              for key, title in where.items()}  # fmt: skip
    every, some = test_rows(sets, False), test_rows(sets, True)
    both = zip(every, some, strict=True) if any(row["p"] for row in every) else ()
    keys = ("ahead", "p", "here")
    return {
        "tests": [row | {f"{key}, learned": told[key] for key in keys}
                  for row, told in both],
        "absent": [{"stop or kernel": key, "sets": names}
                   for key, names in absent.items() if names],
    }  # fmt: skip


def values(sets: Parameters) -> dict[str, object]:
    """Return what the samples on Web and the tests show, and what was not run."""
    counts = []
    for stop in STOPS:
        parts = [sets[name].get(stop, {}) for name in of("Web", sets)]
        models = [learned(part, [m]) for part in parts for m in METHODS
                  if ended(part, m)]  # fmt: skip
        if models:
            counts.append(f"{models.count(False)} of {len(models)} ({stop})")
    rows = tables(sets)["tests"]
    told = "With fewer than five sets they can show nothing."
    if rows:
        total = sum(bool(row["the paper"]) for row in rows)
        agree, fewer = (sum(row[key] == row["the paper"] for row in rows)
                        for key in ("here", "here, learned"))  # fmt: skip
        told = (
            f"{agree} of its {total} comparisons, CVM with either stop, have its "
            f"result at the level 5 %; {fewer} where both models have learned."
        )
    won: dict[str, list[str]] = {}
    for words, only in ((" sets", False), (" where both models have learned", True)):
        for row in test_rows(sets, only):
            text = f"{row['ahead']}{words}" + f" (p = {row['p']})" * bool(row["p"])
            won.setdefault(row["comparison"], []).append(text)
    same, equal = (", ".join(won[f"SWAP is faster than {m}"]) for m in ("CVM", EQUAL))
    costs = [f[stop]["C"] for f in sets.values() for stop in STOPS if f.get(stop)]
    return {
        "same": same, "equal": equal, "tests": told,
        "counts": ", ".join(counts) or "none was trained",
        "looser": span([looser(C) for C in costs or SETTINGS.costs], ".0f"),
        "costs": ", ".join(f"{C:g}" for C in SETTINGS.costs),
    }  # fmt: skip


def seconds(found: Parameters, keys: Sequence[str]) -> Iterator[Row]:
    """Yield the median seconds of all methods, with some stops or kernels."""
    for key in [key for key in keys if found.get(key)]:
        part = found[key]
        row: dict[str, object] = {"stop": key} if len(keys) > 1 else {}
        for method, cell in part["fits"].items():
            row[method] = f"> {part['limit']:g}" if cell else "not run"
            if ended(part, method):
                mark = ", no model" * (not learned(part, [method]))
                row[method] = two_digits(middle(part, method, "cpu")) + mark
        yield row


def figures(found: Parameters) -> Iterator[Row]:
    """Yield the figures of each stop and method, and the gap to the best bound."""
    for kernel in (STOPS, ["polynomial"]):
        parts = {key: found[key] for key in kernel if found.get(key)}
        cells = [(stop, part, *cell) for stop, part in parts.items()
                 for cell in part["fits"].items()]  # fmt: skip
        proved = [f.get("dual", 0.0) for *_, cell in cells for f in cell]
        best = max([0.0, *proved, *(part["bound"] for part in parts.values())])
        for stop, part, method, cell in cells:
            row: Row = {"CPU seconds": f"stopped after {part['limit']:g}"}
            if ended(part, method):
                told = {key: spread([f[key] for f in cell])
                        for key in ("steps", "cpu", "support")}  # fmt: skip
                told["values"] = spread([1e-6 * f["values"] for f in cell])
                told["gap"] = spread([100.0 * (f["primal"] / best - 1.0) for f in cell])
                told["steps"] *= "CVM" not in method
                row = filled(
                    SETTINGS.figures, learned=learned(part, [method]), **told,
                    accuracy=100 * middle(part, method, "accuracy"))  # fmt: skip
            yield {"stop": stop, "method": method, "seeds": len(cell), **row}


def rows(name: str, found: Parameters) -> Rows:
    """Yield the rows of the tables.

    Among them are the data, what was chosen, and the larger class's share of test rows.
    """
    for table, stops in SETTINGS.tables.items():
        yield from ((table, row) for row in seconds(found, stops))
    yield from (("figures", row) for row in figures(found))
    if parts := [found[stop] for stop in STOPS if found.get(stop)]:
        share = 100 * parts[0]["majority"]
        yield "sets", filled(SETTINGS.sizes, share=share, **parts[0])


def draw(sets: Parameters) -> Iterator[Panel]:
    """Yield the seconds at each stop, a panel for each collection."""
    for title in COLLECTIONS:
        for stop, place in places(title):
            names = [n for n in of(title, sets) if sets[n].get(stop)]
            if names:
                line = "-" if title in ("Web", "Adult") else ""  # growing parts
                lines = [
                    Line(range(len(names)),
                         [middle(sets[n][stop], method, "cpu") for n in names],
                         method, mark + line)
                    for method, mark in zip(METHODS, "sPo^vD", strict=True)
                ]  # fmt: skip
                yield Panel(place, "", "seconds", lines, log="y", ticks=names)


PAPER = Paper(
    settings=SETTINGS,
    parts={
        **{stop: partial(measure, stop=stop, kernel="Gaussian") for stop in STOPS},
        "polynomial": partial(measure, stop="1 sample", kernel="polynomial"),
        **{f"proved, {kernel}": partial(prove, kernel=kernel) for kernel in KERNELS},
    },
    verdicts=verdicts, values=values, rows=rows, tables=tables,
    draw=draw,
)  # fmt: skip

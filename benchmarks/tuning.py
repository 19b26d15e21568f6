"""Searches of SVCCV beside GridSearchCV over the SVCs of dualgap and scikit-learn.

    python benchmarks/tuning.py [NAME ...] [--rows N] [--values K] [--exponents A B]
        [--folds K] [--repeats R] [--rivals dualgap sklearn] [--limit S] [--linear]
        [--cache MB] [--no-split] [--landmarks M] [--regression] [--jobs N]
    python benchmarks/tuning.py --tables

Measures processor seconds of SVCCV on one thread, and the rivals' seconds over these:
the median of R runs in turn, each in a process of its own. "peak" is the most memory
of such a process in megabytes: packages, data and search. A rival that takes more than
S processor seconds is ended, and "over" tells the least ratio. The K values of C are
from 10^A to 10^B. tuning.json keeps the last result of each case, and --tables writes
docs/tables/tuning-*.csv from it. With --jobs, only the elapsed seconds of SVCCV on N
threads are measured, and kept with the case.

The names are data sets of kernel/bench.py, or made-D for scikit-learn's
`make_classification` with D features. Odd classes are told from even ones, except in
sets that are named with their number of classes, such as usps-10. Every model of
dualgap is certified to 1e-3; scikit-learn has its default tolerance. With --linear,
LinearSVCCV searches instead, the names are in datasets.py, and a third rival, "shared",
is dualgap.model_selection.GridSearchCV over LinearSVC. With --landmarks, all models of
dualgap are over M landmarks; give --rivals dualgap. With --regression, SVRCV searches,
and the targets are the labels as numbers, divided by their standard deviation.

Seconds of SVCCV are split into the kernel matrix, the training with gradients computed
again, the sums of the proofs, and all the rest. "scores" is the largest difference of
the mean scores from scikit-learn's, "gap" the largest proven relative gap.
"""

from __future__ import annotations

import argparse
import csv
import io
import math
import multiprocessing
import resource
import signal
import statistics
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import sklearn.svm
from datasets import load as load_set
from harness import keep, kept
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

sys.path.insert(0, str(Path(__file__).resolve().parent / "kernel"))

from bench import load

import dualgap.model_selection
from dualgap import SVC, SVCCV, SVR, SVRCV, LinearSVC, LinearSVCCV, core
from dualgap.kernel import Nystroem
from dualgap.kernels.table import KernelTable

RESULTS = Path(__file__).with_suffix(".json")
TABLES = Path(__file__).resolve().parents[1] / "docs" / "tables"
#: Seconds of TorchKM on an L40S, by data and rows (arXiv:2606.06742v2, tables 2 and 3).
PUBLISHED = {
    ("made-10", 10_000): 23.3, ("made-100", 10_000): 17.9, ("made-1000", 10_000): 37.7,
    ("made-10", 20_000): 76.0, ("made-100", 20_000): 78.2, ("made-1000", 20_000): 129.3,
    ("a7a", 16_100): 48.5, ("w7a", 24_692): 135.1,
}  # fmt: skip

T = TypeVar("T")


def timed(search: Any, X: Any, y: Any) -> tuple[float, Any]:
    """Processor seconds of a search, and the search."""
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        search.fit(X, y)
    return time.process_time() - begun, search


def elapsed(search: Any, X: Any, y: Any) -> float:
    """Seconds of a search by the clock."""
    begun = time.perf_counter()
    timed(search, X, y)
    return time.perf_counter() - begun


class ClockedFolds:
    """The core's folds, which add their seconds to the phases."""

    def __init__(self, *args: Any) -> None:
        self._folds = _FOLDS(*args)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._folds, name)
        phase = {"advance": "training", "points": "proofs", "proofs": "proofs"}
        return clocked(found, phase[name]) if name in phase else found


_FOLDS, _SPENT = core.Folds, Counter()


def clocked(function: Callable[..., Any], phase: str) -> Callable[..., Any]:
    """Return a function that adds its processor seconds to a phase."""

    def run(*args: Any, **named: Any) -> Any:
        begun = time.process_time()
        found = function(*args, **named)
        _SPENT[phase] += time.process_time() - begun
        return found

    return run


def split(search: Any, X: Any, y: Any) -> dict[str, float]:
    """Processor seconds of the parts of a search."""
    _SPENT.clear()
    made = KernelTable.__init__
    KernelTable.__init__, core.Folds = clocked(made, "matrix"), ClockedFolds
    try:
        seconds, _ = timed(search, X, y)
    finally:
        KernelTable.__init__, core.Folds = made, _FOLDS
    return {**_SPENT, "rest": seconds - sum(_SPENT.values())}


class Run(NamedTuple):
    """Result of a search: mean scores, the largest gap, and megabytes."""

    seconds: float
    scores: Any
    gap: float
    peak: int

    @classmethod
    def of(cls, search: Any, X: Any, y: Any) -> Run:
        """Run a search in this process."""
        seconds, search = timed(search, X, y)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1000
        if isinstance(search, LinearSVCCV):
            scores, gaps = search.scores_.mean(axis=0), [search.relative_gaps_]
        else:
            found = search.cv_results_
            scores = found["mean_test_score"]
            gaps = [v for k, v in found.items() if k.endswith("relative_gap")]
        return cls(seconds, scores, float(np.max(gaps)) if gaps else math.nan, peak)


def alone(work: Callable[..., T], *args: Any, limit: float = math.inf) -> T | None:
    """Call a function in a process of its own; None if it takes more than the limit."""

    def run() -> None:
        if limit < math.inf:
            used = time.process_time()
            resource.setrlimit(resource.RLIMIT_CPU, [int(used + limit) + 1] * 2)
        theirs.send(work(*args))

    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=run)
    process.start()
    theirs.close()
    try:
        found: T | None = ours.recv()
    except EOFError:
        found = None
    process.join()
    if found is None and process.exitcode not in (-signal.SIGXCPU, -signal.SIGKILL):
        raise RuntimeError(f"a search ended with exit code {process.exitcode}")
    return found


def data(name: str, given: Any) -> tuple[Any, Any, float]:
    """Return rows of a data set, their labels, and gamma."""
    kind, _, features = name.partition("-")
    if kind == "made":
        d = int(features)
        X, y = make_classification(
            given.rows, d, n_informative=min(d, 20), n_redundant=0, flip_y=0.05,
            random_state=0,
        )  # fmt: skip
        return X, y, 1.0 / (d * X.var())
    X, y, gamma = (*load_set(name), 1.0) if given.linear else load(name)
    rows = np.random.default_rng(0).permutation(len(y))[: given.rows]
    X, y = X[rows], y[rows].astype(int)
    return X, y / y.std() if given.regression else y, gamma


def searches(gamma: float, given: Any, cache: float) -> tuple[Any, dict[str, Any]]:
    """Return dualgap's search, and the rivals' by name."""
    folds = {"cv": given.folds, "refit": False}
    grid = {"C": np.logspace(*given.exponents, given.values)}
    if given.linear:
        own = LinearSVC(loss="hinge", random_state=0)
        peer = sklearn.svm.LinearSVC(loss="hinge", random_state=0)
        first = LinearSVCCV(grid["C"], loss="hinge", **folds)
    elif given.regression:
        common = {"gamma": gamma, "cache_size": cache}
        own, peer = SVR(**common), sklearn.svm.SVR(**common)
        common = {"random_state": 0, "cache_size": cache}
        first = SVRCV(grid["C"], gamma, **common, **folds)
    else:
        common = {"random_state": 0, "cache_size": cache}
        if given.landmarks:
            common["solver"] = Nystroem(given.landmarks)
        own = SVC(gamma=gamma, **common)
        peer = sklearn.svm.SVC(gamma=gamma, cache_size=cache)
        first = SVCCV(grid["C"], gamma, **common, **folds)
    rivals = {
        "dualgap": GridSearchCV(own, grid, **folds),
        "sklearn": GridSearchCV(peer, grid, **folds),
        "shared": dualgap.model_selection.GridSearchCV(own, grid, **folds),
    }
    return first, {name: rivals[name] for name in given.rivals}


def measure(name: str, given: Any) -> dict[str, Any]:
    """Return the result of a data set."""
    X, y, gamma = data(name, given)
    n, several = len(y), "-" in name and name[-1] != "k" and not name.startswith("made")
    if not (several or given.linear or given.regression):
        y = y % 2
    whole = 0.0 if given.landmarks else 13e-6 * n * n
    cache = given.cache or max(200.0, whole)  # megabytes
    own, rivals = searches(gamma, given, cache)
    seconds: dict[str, list[float]] = {key: [] for key in ("own", *rivals)}
    case: dict[str, Any] = {
        "data": name, "rows": n, "features": X.shape[1],
        "classes": len(np.unique(y)), "values": given.values, "folds": given.folds,
        "exponents": given.exponents, "landmarks": given.landmarks,
        "regression": given.regression,
        "linear": given.linear, "cache": cache, "ratios": {}, "over": [],
        "peaks": {},
    }  # fmt: skip
    if given.jobs:
        case = kept(RESULTS)["cases"][name_of(case)]
        case["elapsed"] = alone(elapsed, own.set_params(n_jobs=given.jobs), X, y)
        return case | {"jobs": given.jobs}
    timed(own, X[:200], y[:200])  # imports
    given.split = given.split and not (given.linear or given.regression)
    for _ in range(given.repeats):
        first = alone(Run.of, own, X, y)
        assert first is not None, "the search ended its process"
        seconds["own"].append(first.seconds)
        for key, rival in rivals.items():
            if key in case["over"]:
                continue
            run = alone(Run.of, rival, X, y, limit=given.limit)
            seconds[key].append(given.limit if run is None else run.seconds)
            if run is None:
                case["over"].append(key)
                continue
            case["peaks"][key] = run.peak
            if key == "sklearn":
                case["scores"] = float(np.abs(run.scores - first.scores).max())
                case["same"] = bool(run.scores.argmax() == first.scores.argmax())
    if given.split and not given.landmarks:
        case["split"] = alone(split, own, X, y)
    for key in rivals:
        pairs = zip(seconds[key], seconds["own"], strict=False)
        case["ratios"][key] = statistics.median(a / b for a, b in pairs)
    case |= {"gap": first.gap, "peak": first.peak}
    case["seconds"] = statistics.median(seconds["own"])
    return case


def name_of(case: dict[str, Any]) -> str:
    """Return the name under which a result is stored."""
    kind = "linear" if case["linear"] else "kernel"
    if case["regression"]:
        kind = "regression"
    if case["landmarks"]:
        kind = f"{case['landmarks']} landmarks"
    return f"{kind}, {case['data']}, {case['rows']}, {case['values']} x {case['folds']}"


def ratio(case: dict[str, Any], rival: str) -> str:
    """Return the words for a ratio."""
    if rival not in case["ratios"]:
        return "-"
    return "over " * (rival in case["over"]) + f"{case['ratios'][rival]:.3g}"


def head(case: dict[str, Any]) -> list[str]:
    """Return the first cells of a line."""
    name = case["data"].split("-")[0]
    return [name, f"{case['rows']:,}", str(case["features"]), str(case["classes"])]


def against(case: dict[str, Any]) -> list[str]:
    """Return the cells on scikit-learn."""
    same = {True: "same", False: "other"}.get(case.get("same"), "-")
    scores = f"{case['scores']:.4f}" if "scores" in case else "-"
    return [ratio(case, "sklearn"), same, scores]


def row(case: dict[str, Any]) -> list[str]:
    """Return a line of the table of searches."""
    models = f"{case['values']} x {case['folds']}"
    own = f"{case['seconds']:.3g}", ratio(case, "dualgap")
    return [*head(case), models, *own, *against(case)]


def linear(case: dict[str, Any]) -> list[str]:
    """Return a line of the table of linear searches."""
    own = f"{case['seconds']:.3g}", ratio(case, "shared")
    peaks = str(case["peak"]), str(case["peaks"].get("sklearn", "-"))
    return [*head(case)[:3], *own, *against(case), *peaks]


def landmarks(case: dict[str, Any]) -> list[str]:
    """Return a line of the table of searches over landmarks."""
    models = f"{case['values']} x {case['folds']}"
    own = f"{case['seconds']:.3g}", ratio(case, "dualgap"), f"{case['gap']:.1e}"
    return [*head(case)[:3], str(case["landmarks"]), models, *own, str(case["peak"])]


def parts(case: dict[str, Any]) -> list[str]:
    """Return a line of the table of seconds."""
    found, names = case.get("split", {}), ("matrix", "training", "proofs", "rest")
    seconds = [f"{found.get(name, 0.0):.2f}" if found else "-" for name in names]
    return [*head(case), f"{case['seconds']:.3g}", *seconds, f"{case['gap']:.1e}"]


def published(case: dict[str, Any]) -> list[str]:
    """Return a line of the table beside published seconds."""
    theirs = PUBLISHED[case["data"], case["rows"]]
    own = f"{case['seconds']:.3g}", f"{case['elapsed']:.3g}"
    return [*head(case)[:3], *own, f"{theirs:g}"]


def tables() -> dict[str, str]:
    """Return the tables of the page as CSV."""
    cases = list(kept(RESULTS)["cases"].values())
    over = [c for c in cases if c.get("landmarks")]
    tubes = [c for c in cases if c.get("regression")]
    whole = [c for c in cases if not c["linear"] and c not in [*over, *tubes]]
    kernel = [c for c in whole if c["values"] * c["folds"] == 500]
    measured = [c for c in whole if c["ratios"]]
    heads = {
        "searches": "data | rows | features | classes | C x folds | seconds | against "
        "dualgap's SVC | against scikit-learn | best C | scores differ by",
        "parts": "data | rows | features | classes | seconds | kernel matrix | "
        "training | proofs | rest | largest gap",
        "published": "data | rows | features | dualgap, one thread | dualgap, two "
        "threads | TorchKM on a GPU, published",
        "regression": "data | rows | features | C x folds | seconds | against "
        "dualgap's SVR | against scikit-learn | best C | scores differ by",
        "landmarks": "data | rows | features | landmarks | C x folds | seconds | "
        "against dualgap's SVC | largest gap | MB",
        "linear": "data | rows | features | seconds | against dualgap's "
        "GridSearchCV | against scikit-learn | best C | scores differ by | MB | "
        "MB, scikit-learn",
    }
    lines = {
        "searches": [row(case) for case in measured],
        "parts": [parts(case) for case in kernel],
        "published": [published(c) for c in kernel if "elapsed" in c],
        "regression": [[*row(case)[:3], *row(case)[4:]] for case in tubes],
        "landmarks": [landmarks(case) for case in over],
        "linear": [linear(case) for case in cases if case["linear"]],
    }
    return {name: table(heads[name], lines[name]) for name in heads if lines[name]}


def table(titles: str, lines: list[list[str]]) -> str:
    """Return a table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([titles.split(" | "), *lines])
    return text.getvalue()


def main() -> None:
    """Measure cases, or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    names = ["pendigits", "usps", "covtype-20k", "a9a", "w8a", "pendigits-10"]
    parser.add_argument("names", nargs="*", default=names)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--values", type=int, default=50)
    parser.add_argument("--exponents", type=float, nargs=2, default=[-3.0, 3.0])
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--rivals", nargs="*", default=["dualgap", "sklearn"])
    parser.add_argument("--limit", type=float, default=120.0)
    parser.add_argument("--cache", type=float, help="megabytes; all that is needed")
    parser.add_argument("--no-split", dest="split", action="store_false")
    parser.add_argument("--linear", action="store_true")
    parser.add_argument("--landmarks", type=int, help="number of landmarks")
    parser.add_argument("--regression", action="store_true")
    parser.add_argument("--jobs", type=int, help="threads, for elapsed seconds")
    parser.add_argument("--tables", action="store_true")
    given = parser.parse_args()
    if given.tables:
        for name, text in tables().items():
            (TABLES / f"tuning-{name}.csv").write_text(text, "utf-8")
        return
    for name in given.names:
        case = measure(name, given)
        keep(RESULTS, name_of(case), case)


if __name__ == "__main__":
    main()

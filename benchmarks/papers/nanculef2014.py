"""The experiments of Nanculef, Frandi, Sartori and Allende 2014 (Frank-Wolfe SVMs).

    python benchmarks/papers/nanculef2014.py [SET ...] [--seeds 5] [--limit 5]

The paper's protocol: C, and for the small sets gamma, are chosen on validation rows.
Then every method stops where a sample of 60 rows shows a small gap. Reported are steps,
kernel values, processor seconds, accuracy, model size, the gap that is proved after the
stop, and the paper's statistical tests. `nanculef2014_proved.py` goes on to a proof.

A method that the limit stops with one seed is not run with the next ones. Each fit is
kept as it ends (`--results`), so that a killed run goes on where it was. `--stored`
keeps the fits of the published JSON, and trains the others.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
from pathlib import Path

import numpy as np
from common import Report, arguments
from datasets import CACHE, DATA
from matplotlib.figure import Figure
from nanculef_data import ABSENT, SETS, Fits, some
from rank_tests import rank_rows
from sklearn.metrics.pairwise import rbf_kernel

from dualgap import SVC
from dualgap.kernel import FW, MFW, RBF, SWAP, CoreVector, KernelProblem, SWAP2o
from dualgap.kernels.functions import resolve_gamma
from dualgap.training import solve

# On random rows of any class at the start, as the paper has it.
OPTIONS = {"stop": "sampled", "initial_point": "random"}
METHODS = {
    "CVM": functools.partial(CoreVector, **OPTIONS),
    "FW": functools.partial(FW, **OPTIONS),
    "MFW": functools.partial(MFW, **OPTIONS),
    "SWAP": functools.partial(SWAP, **OPTIONS),
    "SWAP-2o": functools.partial(SWAP2o, ranking="paper", **OPTIONS),
}
COLLECTIONS = {
    "Web": ("w1a", "w4a", "w6a", "w7a", "w8a"),
    "Adult": ("a1a", "a2a", "a3a", "a7a", "a8a", "a9a"),
    "Medium": ("letter", "pendigits", "usps", "reuters", "mnist"),
    "Large": ("shuttle", "ijcnn1", "kdd99", "covtype"),
}
# The paper's claims: collection or set, the faster method, the slower one, words, least
# ratio of times.
CLAIMS = (
    ("Web", "FW", "CVM", "FW is faster than CVM", 1.0),
    ("Web", "SWAP", "CVM", "SWAP is faster than CVM", 1.0),
    ("Web", "FW", "MFW", "MFW is slower than FW", 1.0),
    ("Web", "SWAP", "MFW", "SWAP is faster than MFW", 1.0),
    ("Web", "SWAP", "FW", "SWAP is faster than FW or competitive (at most twice the "
     "time)", 0.5),
    ("Web", "SWAP", "SWAP-2o", "SWAP-2o is no faster than SWAP", 1.0),
    ("Adult", "SWAP", "CVM", "SWAP is faster than CVM", 1.0),
    ("Adult", "SWAP-2o", "CVM", "SWAP-2o is faster than CVM", 1.0),
    ("Adult", "MFW", "FW", "MFW is faster than FW", 1.0),
    ("Adult", "SWAP", "MFW", "SWAP is faster than MFW", 1.0),
    ("Adult", "SWAP-2o", "MFW", "SWAP-2o is faster than MFW", 1.0),
    ("Adult", "SWAP", "FW", "SWAP is 10 times as fast as FW", 10.0),
    ("Medium", "SWAP", "CVM", "SWAP is faster than CVM", 1.0),
    ("Medium", "SWAP-2o", "CVM", "SWAP-2o is faster than CVM", 1.0),
    ("Medium", "SWAP-2o", "MFW", "SWAP-2o is slightly faster than MFW", 1.0),
    ("Large", "SWAP", "CVM", "SWAP is faster than CVM", 1.0),
    ("Large", "SWAP-2o", "CVM", "SWAP-2o is faster than CVM", 1.0),
    ("Large", "SWAP", "MFW", "SWAP is faster than MFW", 1.0),
    ("Large", "SWAP-2o", "MFW", "SWAP-2o is faster than MFW", 1.0),
    ("shuttle", "SWAP", "FW", "SWAP is several times (2) as fast as FW", 2.0),
    ("kdd99", "FW", "MFW", "MFW is slower than FW", 1.0),
)  # fmt: skip
# Validation: C (2^-4 to 2^4 in the paper's notation, twice dualgap's C), factors of
# gamma where the paper chooses it too, rows to train on and to validate on.
GRID = (1 / 32, 1 / 8, 1 / 2, 2.0, 8.0)
FACTORS = {"pendigits": (0.25, 1.0, 4.0), "usps": (0.25, 1.0, 4.0)}
TRAIN, VALIDATE = 1000, 2000
TEST = 5000  # test rows at most
# A longer limit for FW where it is compared with SWAP on Adult, and 5 s are too few.
LONGER = {("a1a", "FW"): 30.0, ("a2a", "FW"): 30.0, ("a3a", "FW"): 30.0}


def pairs_of(y):
    """Return (rows, labels) of each pair of classes, one for two classes."""
    for a, b in itertools.combinations(np.unique(y), 2):
        rows = np.flatnonzero((y == a) | (y == b))
        yield a, b, rows, np.where(y[rows] == b, 1, -1)


@functools.lru_cache(maxsize=1)
def data(name: str):
    """Return all training rows and some of the test rows."""
    X, y, X_t, y_t = SETS[name]()
    return X, y, *some(X_t, y_t, TEST)


def choose(name: str) -> dict:
    """Return C and gamma that are the most accurate on validation rows.

    Of equally accurate ones the smallest C, then the gamma closest to the rule's.
    """
    X, y, _, _ = data(name)
    train = np.random.default_rng(1).permutation(len(y))[: TRAIN + VALIDATE]
    train, test = np.split(train, [min(TRAIN, len(train) // 2)])
    whole = resolve_gamma("mean-distance", data(name)[0])
    best, begun = None, time.process_time()
    for C in GRID:
        for factor in sorted(FACTORS.get(name, (1.0,)), key=lambda f: abs(np.log(f))):
            model = SVC(
                C=C, loss="squared_hinge", kernel=RBF(gamma=factor * whole), tol=1e-3
            )
            model.fit(X[train], y[train])
            accuracy = float(np.mean(model.predict(X[test]) == y[test]))
            if best is None or accuracy > best["accuracy"]:
                best = {
                    "C": C, "factor": factor, "gamma": factor * whole,
                    "accuracy": accuracy,
                }  # fmt: skip
    sizes = [len(rows) for _, _, rows, _ in pairs_of(data(name)[1])]
    return best | {
        "rows": data(name)[0].shape[0], "d": X.shape[1], "classes": len(np.unique(y)),
        "largest": max(sizes), "smallest": min(sizes),
        "cpu": time.process_time() - begun,
    }  # fmt: skip


def bound(name: str, chosen: dict, limit: float) -> dict:
    """Return a lower bound on the optimum, the sum over the pairs.

    It is proved by SWAP-2o with the full gradient.
    """
    X, y, _, _ = data(name)
    begun, dual = time.process_time(), 0.0
    for _, _, rows, labels in pairs_of(y):
        problem = KernelProblem(
            X[rows], labels, chosen["C"], kernel=RBF(gamma=chosen["gamma"])
        )
        found = solve(
            problem, SWAP2o(), tol=1e-2, max_iter=10**9, random_state=0,
            on_epoch=lambda info: time.process_time() - begun > limit,
        ).certificate  # fmt: skip
        dual += max(found.dual, 0.0)
    return {"dual": dual, "cpu": time.process_time() - begun}


def train(problem, solver, seed: int, limit: float) -> dict:
    """Fit one pair of classes until a sample or the limit stops the method.

    Seconds are of processor time, and like the kernel values without the last proof.
    """
    states, seen = [], []

    def start(*given):
        states.append(type(solver).start(solver, *given))
        return states[0]

    object.__setattr__(solver, "start", start)  # to see its state at the end
    begun = time.process_time()

    def on_epoch(info):
        if not info.final:
            spent = time.process_time() - begun
            seen.append((problem.gram.statistics.evaluations, spent))
        return seen[-1][1] > limit

    solution = solve(
        problem, solver, tol=1e-3, max_iter=10**9, random_state=seed,
        on_epoch=on_epoch,
    )  # fmt: skip
    return {
        "solution": solution,
        "done": solution.certificate.status.label in ("sampled", "certified"),
        "steps": states[0].visited,
        "values": seen[-1][0],
        "cpu": seen[-1][1],
    }


def limit_of(name: str, method: str, args) -> float:
    """Return the processor seconds that a fit has, all pairs together."""
    return LONGER.get((name, method), args.limit)


def fit(name: str, method: str, seed: int, chosen: dict, args) -> dict:
    """Train on every pair of classes and report the model at the stop.

    P and D are sums over the pairs.
    """
    X, y, X_t, y_t = data(name)
    kernel = RBF(gamma=chosen["gamma"])
    found, pairs = [], list(pairs_of(y))
    coefs = np.zeros((len(pairs), X.shape[0]), dtype=np.float32)
    begun = time.process_time()
    for k, (_, _, rows, labels) in enumerate(pairs):
        problem = KernelProblem(X[rows], labels, chosen["C"], kernel=kernel)
        left = limit_of(name, method, args) - sum(f["cpu"] for f in found)
        found.append(train(problem, METHODS[method](eps=args.eps), seed, left))
        if not found[-1]["done"]:
            break
        coefs[k, rows] = problem.coef(found[-1]["solution"].alpha)[0]
    report = {of: sum(f[of] for f in found) for of in ("steps", "values", "cpu")}
    report["done"] = all(f["done"] for f in found)
    report["pairs"] = len(found)
    if report["done"]:
        certificates = [f["solution"].certificate for f in found]
        primal = sum(c.primal for c in certificates)
        dual = sum(max(c.dual, 0.0) for c in certificates)
        support = np.flatnonzero(coefs.any(axis=0))
        report |= {
            "accuracy": accuracy(X[support], coefs[:, support], X_t, y_t, y,
                                 chosen["gamma"]),
            "support": len(support), "primal": primal, "dual": dual,
        }  # fmt: skip
    return report | {"all_cpu": time.process_time() - begun}


def accuracy(X, coefs, X_t, y_t, y, gamma: float) -> float:
    """Return the share of test rows that most pairs of classes get right."""
    scores = np.zeros((len(coefs), len(y_t)))
    for rows in np.array_split(np.arange(X.shape[0]), -(-X.shape[0] // 1000)):
        scores += coefs[:, rows] @ (rbf_kernel(X[rows], X_t, gamma) + 1.0)
    classes = np.unique(y)
    votes = np.zeros((len(classes), len(y_t)), dtype=int)
    for (a, b), score in zip(
        itertools.combinations(range(len(classes)), 2), scores, strict=True
    ):
        votes[b] += score > 0
        votes[a] += score <= 0
    return float(np.mean(classes[votes.argmax(axis=0)] == y_t))


def run(fits: Fits, args):
    """Return what was chosen for each set, and set, method -> one fit per seed."""
    chosen, found = {}, {}
    for name in args.sets:
        chosen[name] = fits.get(("choice", name), lambda n=name: choose(n))
        for method in METHODS:
            for seed in range(args.seeds):
                key = ("stop", name, method, seed, chosen[name]["C"],
                       chosen[name]["factor"], args.eps,
                       limit_of(name, method, args))  # fmt: skip
                one = fits.get(
                    key, lambda n=name, m=method, k=seed: fit(n, m, k, chosen[n], args)
                )
                found.setdefault((name, method), []).append(one)
                if not one["done"]:
                    break
        key = ("bound", name, chosen[name]["C"], chosen[name]["factor"])
        least = fits.get(key, lambda n=name: bound(n, chosen[n], args.limit))
        ended = [f for m in METHODS for f in found[name, m] if f["done"]]
        dual = max([least["dual"]] + [f["dual"] for f in ended])
        for one in ended:
            one["gap"] = one["primal"] / dual - 1.0
    return chosen, found


# ------------------------------------------------------------------------- report


class Found:
    """The fits of all sets and methods, and their medians over the seeds."""

    def __init__(self, choice: dict, fits: dict, args) -> None:
        self.choice, self.fits, self.sets, self.args = choice, fits, args.sets, args

    @property
    def titles(self) -> list[str]:
        """Return the collections of which a set was run."""
        return [title for title in COLLECTIONS if self.of(title)]

    def of(self, title: str) -> list[str]:
        """Return the sets of a collection, or the one of that name."""
        return [n for n in COLLECTIONS.get(title, (title,)) if n in self.sets]

    def middle(self, name: str, method: str, what: str) -> float:
        """Return a median, and NaN where the limit stopped a fit."""
        fits = self.fits[name, method]
        if not all(f["done"] for f in fits):
            return np.nan
        return float(np.median([f[what] for f in fits]))

    def ratios(self, names: list[str], slow: str, fast: str, what: str):
        """Return (ratio, sign) for each set on which either method ended.

        A fit that was stopped counts with the limit, and the sign says which side the
        ratio bounds.
        """
        found = []
        for name in names:
            a, b = (self.middle(name, m, what) for m in (slow, fast))
            ended = np.isfinite(a), np.isfinite(b)
            if all(ended):
                found.append((a / b, ""))
            elif any(ended) and what == "cpu":
                a, b = (
                    x if np.isfinite(x) else limit_of(name, m, self.args)
                    for x, m in ((a, slow), (b, fast))
                )
                found.append((a / b, ">" if ended[1] else "<"))
        return found


def two_digits(value: float) -> str:
    """Return a number to two digits, without an exponent."""
    return f"{float(f'{value:.2g}'):,g}"


def percent(gap: float) -> str:
    """Return a relative gap in per cent, to two digits."""
    return f"{two_digits(100 * gap)} %"


def between(ratios) -> str:
    """Return the range of some ratios with their signs."""
    if not ratios:
        return "–"
    ends = [f"{sign} {two_digits(value)}".strip() for value, sign in sorted(ratios)]
    return ends[0] if ends[0] == ends[-1] else f"{ends[0]} to {ends[-1]}"


def spread(fits: list[dict], of: str, form) -> str:
    """Return the median over the seeds, and the range."""
    values = [f[of] for f in fits]
    ends = form(min(values)), form(max(values))
    text = form(np.median(values))
    return text if ends[0] == ends[1] else f"{text} ({ends[0]} to {ends[1]})"


def verdict(ratios, need: float) -> str:
    """Return whether all, some or none of the ratios reach what a claim needs."""
    good = sum(ratio >= need and sign != "<" for ratio, sign in ratios)
    bad = sum(ratio < need and sign != ">" for ratio, sign in ratios)
    if good == len(ratios):
        return "holds"
    if bad == len(ratios):
        return "does not hold"
    if good + bad == 0:
        return "open"
    rest = len(ratios) - good - bad
    return f"holds on {good} of {len(ratios)} sets" + f", open on {rest}" * (rest > 0)


def claim_rows(found: Found) -> list[list[str]]:
    """Return the paper's claims, the ratios found at its stop, and the verdicts."""
    lines = []
    for title, fast, slow, claim, need in CLAIMS:
        names = found.of(title)
        steps, cpu = (
            found.ratios(names, slow, fast, what) for what in ("steps", "cpu")
        )
        if not cpu:
            continue
        shown, said = [between(steps), between(cpu)], verdict(cpu, need)
        if "CVM" in (fast, slow):
            shown[0] = "–"  # a step of CVM solves a problem
        elif steps and (in_steps := verdict(steps, need)) != said:
            said = f"in steps: {in_steps}; in seconds: {said}"
        lines.append([title, claim, *shown, said])
    return lines


def speed_ups(found: Found) -> list[list[str]]:
    """Return the median speed-ups over CVM, and their ranges."""
    lines = []
    for title in found.titles:
        cells = []
        for method in list(METHODS)[1:]:
            ratios = found.ratios(found.of(title), "CVM", method, "cpu")
            known = [ratio for ratio, sign in ratios if not sign]
            cells.append(
                f"{two_digits(np.median(known))} ({between(ratios)})" if known else "–"
            )
        lines.append([title, *cells])
    return lines


def cell(found: Found, name: str, method: str) -> list[str]:
    """Return the columns of a method on a set."""
    fits = found.fits[name, method]
    if not all(f["done"] for f in fits):
        limit = limit_of(name, method, found.args)
        which = "" if len(fits) == 1 else f", at seed {len(fits)} of {found.args.seeds}"
        return [f"stopped after {limit:g} s{which}", *[""] * 5]
    return [
        spread(fits, "steps", lambda x: f"{x:.0f}"),
        spread(fits, "values", lambda x: f"{x / 1e6:.1f}"),
        spread(fits, "cpu", two_digits),
        spread(fits, "accuracy", lambda x: f"{100 * x:.2f}"),
        spread(fits, "support", lambda x: f"{x:.0f}"),
        spread(fits, "gap", percent),
    ]


def draw(found: Found):
    """Draw, for each collection, seconds and the gap proved at the stop."""
    titles = found.titles
    figure = Figure(figsize=(9, 2.7 * len(titles)), layout="constrained")
    axes = figure.subplots(len(titles), 2, squeeze=False)
    for k, title in enumerate(titles):
        names = found.of(title)
        rows = [found.choice[name]["largest"] for name in names]
        series = title in ("Web", "Adult")
        for of, label, axis in (
            ("cpu", "seconds", axes[k, 0]), ("gap", "gap at the stop", axes[k, 1]),
        ):  # fmt: skip
            for m, (method, mark) in enumerate(zip(METHODS, "so^vD", strict=True)):
                ended = [
                    j for j, n in enumerate(names)
                    if np.isfinite(found.middle(n, method, of))
                ]  # fmt: skip
                values = np.array(
                    [[f[of] for f in found.fits[names[j], method]] for j in ended]
                )
                at = [rows[j] if series else j + (m - 2) * 0.08 for j in ended]
                if not ended:
                    axis.plot([], [], mark, label=method)
                    continue
                central = np.median(values, axis=1)
                axis.errorbar(
                    at, central, marker=mark, markersize=5, capsize=2, linewidth=1.2,
                    yerr=[central - values.min(1), values.max(1) - central],
                    label=method, linestyle="-" if series else "",
                )  # fmt: skip
            axis.set(yscale="log", title=f"{title}: {label}")
            axis.grid(True, alpha=0.3)
            if series:
                axis.set(xscale="log", xlim=(rows[0] / 1.2, rows[-1] * 1.2))
            else:
                axis.set(xlim=(-0.5, len(names) - 0.5))
            ticks = rows if series else range(len(names))
            labels = [f"{n}\n{m:,}" for n, m in zip(names, rows, strict=True)]
            axis.set_xticks(ticks, labels, fontsize=7)
            axis.minorticks_off()
        axes[k, 0].axhline(found.args.limit, color="black", linestyle="--", linewidth=1)
        axes[k, 1].axhline(1e-3, color="black", linestyle=":", linewidth=1)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))
    return figure


TITLE = "Frank-Wolfe SVMs (Nanculef, Frandi, Sartori and Allende 2014), reproduced"
CONCLUSION = """\
**The paper claims** that SWAP is faster than CVM, FW and MFW and as accurate. Away
steps (MFW) slow FW down on Web and speed it up on Adult. SWAP is said to be fast on
both.

**Reproduced** at the paper's stop, in processor seconds: on Web CVM takes {swap_cvm}
times as long as SWAP, MFW {fw_mfw} times as long as FW, and FW {swap_fw} times as long
as SWAP. On Adult MFW takes {swap_mfw} times as long as SWAP, and FW {ten} times,
where the paper says 10.

**Not reproduced**: on Adult SWAP is slower than CVM, which takes {adult} times as long
on {ended} of {adults} sets; on the others neither ended in time.
On Web the speed-up over CVM falls as the sets grow, and CVM is more accurate.

**Why**: the stop looks at 60 rows and proves nothing. On Web FW stops {fw_gap}
above the optimum, SWAP {swap_gap} and CVM {cvm_gap}.
[To a proved gap](nanculef2014_proved.md) FW is the slowest. With the full gradient
SWAP is then faster than CVM.

**Limits**: {seeds} seeds, eps = {eps:g}, C and gamma chosen on a part of the rows,
{limit:g} processor seconds a fit, {longer} ({stopped} of {count} cells hit this).
The sets are {sets}.
The paper's numbers and figures were not at hand, only its text.
"""


def conclusion(found: Found) -> str:
    """Return the first lines of the page."""

    def times(title: str, slow: str, fast: str) -> str:
        return between(found.ratios(found.of(title), slow, fast, "cpu"))

    def above(method: str) -> str:
        gaps = [found.middle(n, method, "gap") for n in found.of("Web")]
        return f"{percent(min(gaps))} to {percent(max(gaps))}"

    args = found.args
    return CONCLUSION.format(
        fw_mfw=times("Web", "MFW", "FW"), swap_cvm=times("Web", "CVM", "SWAP"),
        swap_mfw=times("Adult", "MFW", "SWAP"), swap_fw=times("Web", "FW", "SWAP"),
        adult=times("Adult", "CVM", "SWAP"), adults=len(found.of("Adult")),
        ended=len(found.ratios(found.of("Adult"), "CVM", "SWAP", "cpu")),
        ten=times("Adult", "FW", "SWAP"), longer=longer(),
        fw_gap=above("FW"), swap_gap=above("SWAP"),
        cvm_gap=above("CVM"), seeds=args.seeds, eps=args.eps, limit=args.limit,
        stopped=sum(not fits[-1]["done"] for fits in found.fits.values()),
        count=len(found.fits), sets=", ".join(args.sets),
    )  # fmt: skip


def longer() -> str:
    """Return which fits have a longer limit, in words."""
    names = [name for name, _ in LONGER]
    return (
        f"{next(iter(LONGER.values())):g} for FW on {', '.join(names[:-1])} and "
        f"{names[-1]}"
    )


def notes(report: Report, found: Found) -> None:
    """Report the claims about growth, accuracy and model size, and the luck."""
    for title in found.titles:
        names = found.of(title)
        ratios = [found.ratios([n], "CVM", "SWAP", "cpu") for n in names]
        grows = ", ".join(
            f"{between(ratio)} ({n})" for n, ratio in zip(names, ratios, strict=True)
        )
        report.say(
            f"- **{title}, growth.** The speed-up of SWAP over CVM is {grows}."
            + " The paper says that it grows with the set."
            * (title in ("Web", "Medium"))
        )
        ahead = {}
        for method in list(METHODS)[1:]:
            points = [
                found.middle(n, "CVM", "accuracy") - found.middle(n, method, "accuracy")
                for n in names
            ]
            points = [100 * x for x in points if np.isfinite(x)]
            if points:
                ahead[method] = f"{method} {np.median(points):+.2f} ({len(points)})"
        report.say(
            f"- **{title}, accuracy.** Points by which CVM is more accurate, median "
            f"over the sets (their number): {', '.join(ahead.values())}."
            + " In the paper CVM is slightly ahead, and FW is last."
            * (title == "Web")
        )
        sizes = [
            f"{m} {two_digits(np.median(known))}"
            for m in list(METHODS)[1:]
            if (known := [x for x, _ in found.ratios(names, m, "CVM", "support")])
        ]
        report.say(
            f"- **{title}, model size.** Support vectors over CVM's, median "
            f"over the sets: {', '.join(sizes)}."
        )
    web = [f["gap"] for n in found.of("Web") for m in METHODS
           for f in found.fits[n, m] if f["done"]]  # fmt: skip
    above = sum(gap > 1 for gap in web)
    report.say(
        f"- **Luck.** {above} of {len(web)} fits on Web stopped more than 100 % above "
        "the optimum, some after fewer than 20 steps. Most rows of Web are in "
        "one class and have no loss, so samples miss the others."
    )
    report.say()


def page(report: Report, found: Found) -> None:
    """Report the paper's protocol."""
    args = found.args
    report.say("## The paper's claims at its own stop")
    report.say()
    report.say(
        "Ratios are of the method that is to be slower over the one that is to be "
        f"faster, in medians of {args.seeds} seeds. The range is over the sets. A fit "
        "that was stopped counts with its limit in them, and the ratio is then a "
        "bound: > or <. In the picture, bars span the seeds, the dashed line is the "
        "limit, and the dotted one dualgap's default target."
    )
    report.say()
    report.table(
        ["sets", "claim", "ratio of steps", "ratio of seconds", "here"],
        claim_rows(found),
        "Every claim on its sets",
    )
    notes(report, found)
    report.say("## Speed-ups over CVM")
    report.say()
    report.say("Median over the sets on which both ended in time, and the range:")
    report.say()
    report.table(["collection", *list(METHODS)[1:]], speed_ups(found))
    report.say("## The paper's tests")
    report.say()
    values = {
        what: {
            m: np.array([found.middle(n, m, what) for n in args.sets]) for m in METHODS
        }
        for what in ("cpu", "accuracy")
    }
    tests = rank_rows(values["cpu"], values["accuracy"])
    agree = [row for row in tests if row[6] and (row[5] == "not shown") == (
        row[6] == "not shown") and row[4] != "–"]  # fmt: skip
    report.say(
        f"{len(agree)} of the paper's {sum(bool(row[6]) for row in tests)} comparisons "
        "have the paper's result here, at the level 5 %:"
    )
    report.say()
    report.table(
        ["", "comparison", "test", "sets", "p", "at 5 %", "the paper", "stopped alone"],
        tests,
        "All comparisons",
    )
    report.say(
        "The tests are Wilcoxon's with exact p and Pratt's treatment of zeros, and "
        "Friedman's with the correction of Iman and Davenport. They compare the "
        "medians on the sets on which all the methods in question ended. *Stopped "
        "alone* counts the sets on which only the other method ended: they are in no "
        "test, which spares the slow method."
    )
    report.say()
    report.table(
        ["set", "rows", "columns", "classes", "largest pair", "smallest pair", "C",
         "gamma"],
        [[n, c["rows"], c["d"], c["classes"], c["largest"], c["smallest"],
          f"{c['C']:g}", f"{c['gamma']:.3g}"] for n, c in found.choice.items()],
        "The data, and what was chosen on validation rows",
    )  # fmt: skip
    for title in found.titles:
        report.table(
            ["set", "method", "steps", "kernel values, millions", "CPU seconds",
             "accuracy, %", "support vectors", "gap at the stop"],
            [[n, m, *cell(found, n, m)] for n in found.of(title) for m in METHODS],
            f"{title}: every set and method",
        )  # fmt: skip
    details(report, found)


def details(report: Report, found: Found) -> None:
    """Report what was measured, and how."""
    args = found.args
    stopped = [
        f"{m} on {n}" for n in args.sets for m in METHODS
        if not all(f["done"] for f in found.fits[n, m])
    ]  # fmt: skip
    spent = sum(f["all_cpu"] for fits in found.fits.values() for f in fits)
    spent += sum(c["cpu"] for c in found.choice.values())
    left = [n for names in COLLECTIONS.values() for n in names if n not in args.sets]
    report.say("## What was measured")
    report.say()
    report.say(
        "- **Stop.** Each step draws 60 random rows. FW, MFW, SWAP and SWAP-2o stop "
        f"when 2(p − min g) over them is at most {args.eps:g}. CVM stops when none is "
        "outside the ball of radius (1 + eps) R, with the same eps. The paper's eps is "
        "not known to us.\n"
        "- **Start.** The solution on 20 random rows of any class.\n"
        "- **Problem.** The L2-SVM with the bias in the kernel, Gaussian kernel, all "
        "training rows. Each pair of several classes is a problem of its own. The "
        "paper states the methods for any concave function on the simplex. dualgap "
        "has them for [every quadratic one](../kernel-problems.md), hard margins "
        "included.\n"
        f"- **C and gamma.** C is the one of {', '.join(f'{C:g}' for C in GRID)} that "
        f"is the most accurate on {VALIDATE:,} random rows of the training set after "
        f"training on {TRAIN:,} others (fewer where there are fewer), and the smallest "
        "of equals. gamma is 1/mean squared distance. On pendigits and usps a quarter "
        "of it and 4 times it are tried too. The paper takes more rows, and ten folds "
        "on the small sets.\n"
        f"- **Stopped.** {args.limit:g} s of processor time ({longer()}) stopped "
        f"{len(stopped)} of {len(found.fits)} cells; the tables above name them. "
        "After the first seed that is stopped, the others of that set and method are "
        "not run.\n"
        "- **Seconds.** Processor time on one thread up to the stop, all pairs "
        f"together. Median of {args.seeds} seeds, range in brackets. Accuracy is on at "
        f"most {TEST:,} test rows.\n"
        "- **Gap.** P at the stop, from a certificate made afterwards, over the best "
        "proved lower bound of the set, less 1. The bound is the best of all fits "
        f"and of SWAP-2o with the full gradient for {args.limit:g} s or to 1 %. With "
        "several pairs all are sums over the pairs. The model is scaled for the "
        "smallest gap.\n"
        "- **CVM.** A step adds a row to the core set and solves the problem on it, so "
        "its steps do not compare with the others. dualgap solves this problem by "
        "SWAP-2o in C++. The solver of the CVM's authors may take another time.\n"
        f"- **Not included.** {', '.join([*left, ABSENT])}. The polynomial kernel is "
        "on the page about [proved gaps](nanculef2014_proved.md).\n"
        "- **Command.** `python benchmarks/papers/nanculef2014.py "
        f"{' '.join(args.sets)}`, which took {spent / 60:.0f} minutes of processor "
        "time. Without names it runs every set."
    )


def main() -> None:
    """Run what is missing, and write the page."""
    every = sum(COLLECTIONS.values(), ())
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", default=every, metavar="SET")
    parser.add_argument("--seeds", type=int, default=5, help="per set and method")
    parser.add_argument("--eps", type=float, default=1e-4, help="gap of the stop")
    parser.add_argument("--limit", type=float, default=5.0, metavar="SECONDS",
                        help="processor time of a fit")  # fmt: skip
    parser.add_argument(
        "--results", type=Path, default=CACHE / "nanculef2014.jsonl", metavar="FILE"
    )
    parser.add_argument("--stored", action="store_true", help="keep published fits")
    args = arguments(parser, "results", "stored")
    if unknown := set(args.sets) - set(every):
        parser.error(f"unknown: {', '.join(unknown)}; known: {', '.join(every)}")
    if not DATA.is_dir():
        parser.error(f"no data at {DATA}: set DUALGAP_DATA to the folder of data sets")
    report = Report("nanculef2014", TITLE, args.output)
    fits = Fits(args.results, report.stored() if args.stored else [])
    found = Found(*run(fits, args), args)
    page(report, found)
    report.conclusion = conclusion(found)
    report.results = fits.entries
    report.write(draw(found))


if __name__ == "__main__":
    main()

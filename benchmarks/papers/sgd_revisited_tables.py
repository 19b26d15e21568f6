"""Tables 2 to 8 of Panagiotakopoulos and Tsampouka 2013, on the sets at hand.

    python benchmarks/papers/sgd_revisited_tables.py [DATA ...] [--C 1 10 0.05]

Seconds and passes T until (J - J_opt)/J_opt <= 0.01, J measured from outside in float64
after every pass with the clock stopped; J_opt is `dcd`'s at a gap of 1e-6. No bias, as
in the paper. Published figures (a 2008 laptop: only ratios within a row compare) stand
below dualgap's; the figures of Table 8 are not known. T of SGD-r, SGD-s, SGD-m and
Pegasos does not depend on the machine. The paper's Physics, Realsim, News20, Webspam,
C11 and CCAT are not to be had here, nor is the whole of Covertype.
"""

from __future__ import annotations

import argparse
import re

import matplotlib as mpl
import numpy as np
from common import Problem, Report, get_solver, load, objective, reach

from dualgap import solve
from dualgap.solvers import Pegasos

mpl.use("agg")
from matplotlib import pyplot as plt

METHODS = {
    "Pegasos": Pegasos(projection=True, sampling="random"),
    "SGD-r": get_solver("sgd-r"),
    "SGD-s": get_solver("sgd-s"),
    "SGD-m": get_solver("sgd-m"),
} | {
    label: get_solver(name)
    for label, name in [
        ("SVMperf", "cutting-plane"),
        ("OCAS", "ocas"),
        ("DCD", "dcd"),
        ("MPU", "mpu"),
    ]
}

# Table 8 compares the methods of its sources in single precision.
SINGLE = {
    "SvmSGD": get_solver("svmsgd"),
    "SGD-QN": get_solver("sgd-qn"),
    "SGD-m": get_solver("sgd-m"),
    "MPU": get_solver("mpu"),
}

# (data, C): seconds (T) as printed, in the order of METHODS
PUBLISHED = {
    ("a9a", 1.0): "4.4 (181)|0.55 (116)|0.56 (111)|0.27 (50)|1.5|0.08|0.16|0.09",
    ("w8a", 1.0): "1.0 (53)|0.34 (46)|0.20 (26)|0.11 (14)|0.33|0.30|0.06|0.05",
    ("a9a", 10.0): "failed|5.3 (1146)|5.8 (1172)|2.4 (455)|38.0|0.33|1.2|0.62",
    ("w8a", 10.0): "6.5 (338)|2.4 (330)|1.7 (220)|0.76 (99)|1.4|0.55|0.20|0.08",
    ("a9a", 0.05): "0.17 (7)|0.06 (12)|0.05 (10)|0.03 (6)|0.14|0.05|0.03|0.03",
    ("w8a", 0.05): "0.11 (4)|0.03 (4)|0.02 (2)|0.02 (2)|0.09|0.09|0.03|0.03",
}
ORDER = ["Pegasos", "SGD-r", "SGD-s", "SGD-m", "SVMperf", "OCAS", "DCD", "MPU"]


def published(name: str, C: float) -> dict[str, str]:
    cells = PUBLISHED.get((name, C))
    return dict(zip(ORDER, cells.split("|"), strict=True)) if cells else {}


def run(report, names, C, repeats, limit, methods=METHODS, dtype=np.float64):
    """One table; yields (data, C, method, published T, our T) where both are known."""
    labels, rows = list(methods), []
    single = " single" if dtype == np.float32 else ""
    for name in names:
        X, y = load(name)
        X = X.astype(dtype)
        problem = Problem(X, y, C)
        best = solve(problem, get_solver("dcd"), tol=1e-6, max_epochs=10**6,
                     time_limit=120)  # fmt: skip

        def loss(w, X=X, y=y):
            return objective(X, y, C, w)

        target, cells = 1.01 * loss(best.w), []
        theirs = {} if single else published(name, C)
        for label in labels:
            runs = [
                reach(problem, methods[label], loss, target, seed=seed, limit=limit)
                for seed in range(repeats)
            ]
            runs = [found and found[:2] for found in runs]
            report.results[f"{name}, C={C:g}, {label}{single}"] = runs
            if None in runs:
                cells.append(f"> {limit:g} s")
                continue
            seconds, passes = np.median(np.array(runs), axis=0)
            cells.append(f"{seconds:.2g} ({passes:.0f})")
            known = re.search(r"\((\d+)\)", theirs.get(label, ""))
            if known:
                yield name, C, label, int(known[1]), passes
        rows.append([name, *cells])
        if theirs:
            rows.append([f"{name}, published", *(theirs[label] for label in labels)])
    report.say(f"## C = {C:g}{single and ', features in single precision'}\n")
    report.table(["data", *labels], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["a9a", "w8a", "imdb"])
    parser.add_argument("--C", type=float, nargs="+", default=[1.0, 10.0, 0.05])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds a run")
    args = parser.parse_args()
    report = Report(
        "sgd_revisited",
        "SGD revisited (Panagiotakopoulos and Tsampouka 2013), Tables 2-8",
    )
    report.say("## What was measured\n")
    report.say(
        "- **Figures.** Each is seconds (epochs T) to (J − J_opt)/J_opt ≤ 0.01, the "
        f"median of {args.repeats} seeds. There is no bias.\n"
        "- **Time.** Published seconds are from a laptop of 2008. Compare ratios "
        "within a row only.\n"
        "- **Data.** The paper's Physics, Realsim, News20, Webspam, C11, CCAT and "
        "whole Covertype are not included.\n"
        "  imdb stands in for text.\n"
        "- **Table 8.** Its published figures are not known.\n"
        "- **Command.** `python benchmarks/papers/sgd_revisited_tables.py "
        + " ".join(args.data) + f" --limit {args.limit:g}`.\n"
    )  # fmt: skip
    pairs = [
        pair
        for C in args.C
        for pair in run(report, args.data, C, args.repeats, args.limit)
    ]
    single = run(report, args.data, 1.0, args.repeats, args.limit, SINGLE, np.float32)
    list(single)
    off = [pair for pair in pairs if abs(pair[4] / pair[3] - 1) > 0.2]
    report.conclusion = (
        f"**The number of epochs agrees with the published one within 20 % in "
        f"{len(pairs) - len(off)} of {len(pairs)} cases.**"
    )
    report.say("## Numbers of epochs that differ\n")
    report.say("T is further than 20 % from the published one here:\n")
    report.table(
        ["data", "C", "method", "published", "dualgap"],
        [[name, f"{C:g}", label, t, f"{ours:.0f}"] for name, C, label, t, ours in off],
    )
    report.say(
        "dualgap counts to the first epoch that meets the target. The paper counts to "
        "where its own rule stopped, with eps or t_max tuned once per set.\nJ of these "
        "methods moves up and down from epoch to epoch. The two therefore differ by a "
        "fraction of T, and by one to five epochs if T is below 20.\nThe paper has one "
        "draw of the permutations, this page a median.\n"
    )
    figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
    for label in ("Pegasos", "SGD-r", "SGD-s", "SGD-m"):
        points = [(t, ours) for _, _, method, t, ours in pairs if method == label]
        published_t, our_t = zip(*points, strict=True) if points else ((), ())
        ax.loglog(published_t, our_t, "o", label=label, alpha=0.7)
    ends = [1, max((max(t, ours) for *_, t, ours in pairs), default=10)]
    ax.loglog(ends, ends, "k-", lw=0.7)
    ax.set(xlabel="T published", ylabel="T here", title="Passes to 1 %")
    ax.legend()
    report.write(figure)


if __name__ == "__main__":
    main()

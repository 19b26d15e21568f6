"""Table 1 of Panagiotakopoulos and Tsampouka 2013, on the sets at hand.

    python benchmarks/papers/sgd_revisited_table1.py [DATA ...] [--solver sgd-s ...]

C = 0.1, no bias, stopped at (J - L_T)/L_T <= 1e-5. Adult takes some 208,000 epochs
with sgd-s: minutes. T counts whole epochs, as in the paper; it depends on the random
permutations, so only its size can agree. An exact pass every 100 epochs stands for
the paper's "f raised until T stabilised". Published figures stand beside dualgap's.
Absent here: Physics, Realsim, News20, Webspam, the whole of Covertype, C11 and CCAT.
"""

from __future__ import annotations

import argparse

import matplotlib as mpl
from common import Problem, Report, get_solver, load

from dualgap.training import solve

mpl.use("agg")
from matplotlib import pyplot as plt

# data set, T, J, L_T as printed
PUBLISHED = {
    "a9a": ("Adult", 208_174, 1149.904, 1149.893),
    "w8a": ("Web", 16_849, 755.1139, 755.1064),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=list(PUBLISHED))
    parser.add_argument("--solver", nargs="+", default=["sgd-s", "sdca", "dcd"])
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    report = Report(
        "sgd_revisited_table1",
        "SGD revisited (Panagiotakopoulos and Tsampouka 2013), Table 1",
    )
    figure, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
    rows, agree = [], []
    for name in args.data:
        label, epochs, primal, dual = PUBLISHED[name]
        gap = f"{primal / dual - 1:.1e}"
        rows.append([label, "published", f"{epochs:,}", primal, dual, gap, ""])
        X, y = load(name)
        problem = Problem(X, y, 0.1)
        for solver in args.solver:
            solution = solve(
                problem, get_solver(solver), tol=1e-5, max_iter=2_000_000,
                random_state=args.seed, check_every=100,
            )  # fmt: skip
            c = solution.certificate
            report.results[f"{name}, {solver}"] = c.to_dict()
            rows.append([label, solver, f"{c.epochs:,}", f"{c.primal:.4f}",
                         f"{c.dual:.4f}", f"{c.relative_gap:.1e}",
                         f"{c.seconds:.1f}"])  # fmt: skip
            print(rows[-1], flush=True)
            if solver == "sgd-s":
                agree.append(f"{c.epochs:,} epochs on {label} (published: {epochs:,})")
            proved = solution.history[solution.history["exact"]]
            proved = proved[proved["dual"] > 0]
            gaps = (proved["primal"] - proved["dual"]) / proved["dual"]
            ax.loglog(proved["epoch"], gaps.clip(1e-9), label=f"{label}, {solver}")
    report.conclusion = (
        "**Claimed**: SGD-s gets as accurate as one likes. At C = 0.1 its own lower "
        "bound L_T proves a relative gap of 1e-5.\n\n"
        f"**Reproduced**: `sgd-s` needs {' and '.join(agree)}. J and L_T agree with "
        "the published ones in at least six digits.\n\n"
        "**Not reproduced**: nothing on these two sets.\n\n"
        "**Why**: T depends on the random permutations, so only its size can agree. "
        "The paper raised its factor f until T no longer changed. Here an exact pass "
        "every 100 epochs does the same, so T is a multiple of 100.\n\n"
        "**Limits**: Physics, Realsim, News20, Webspam, the whole of Covertype, C11 "
        "and CCAT are not included. There is one seed."
    )
    report.table(["data", "solver", "T", "J", "L_T", "rel. gap", "s"], rows)
    report.say("## What was measured\n")
    report.say(
        "T is the number of epochs to a relative gap of 1e-5, J the primal and L_T the "
        "dual value.\nC is 0.1 and there is no bias. The last column is seconds by the "
        "wall clock.\n\nThe command is "
        "`python benchmarks/papers/sgd_revisited_table1.py`."
    )
    ax.set(xlabel="epochs", ylabel="proved relative gap")
    ax.legend(fontsize=7)
    report.write(figure)


if __name__ == "__main__":
    main()

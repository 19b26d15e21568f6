"""Seconds until the objective is within 1e-2 / 1e-4 / 1e-6 of the best one seen.

``python table.py FILE.parquet...``, the files that benchopt writes. The time of a point
is the median over its repetitions; benchopt runs each point from the start. "–": not
before benchopt ended the run, because progress was slow or time was up.
"""

import re
import sys

import pandas as pd

WITHIN = (1e-2, 1e-4, 1e-6)


def times(points, best):
    """The cell of a solver."""
    middle = points.groupby("stop_val")[["time", "objective_value"]].median()
    error = middle["objective_value"] / best - 1.0
    found = [middle["time"][error <= accuracy].min() for accuracy in WITHIN]
    return " / ".join("–" if pd.isna(t) else f"{t:.2g}" for t in found)


runs = pd.concat([pd.read_parquet(path) for path in sys.argv[1:]])
runs["C"] = runs["objective_name"].str.extract(r"\[C=(.*)\]")
solvers = sorted(runs["solver_name"].unique())
print("| data | C | " + " | ".join(re.sub(r"\w+=", "", s) for s in solvers) + " |")
print("|" + "---|" * (2 + len(solvers)))
for (data, C), group in runs.groupby(["data_name", "C"]):
    best = group["objective_value"].min()
    cells = [times(group[group["solver_name"] == name], best) for name in solvers]
    print(f"| {re.sub('n_samples|n_features|size|=', '', data)} | {C} |", end="")
    print(" " + " | ".join(cells) + " |")

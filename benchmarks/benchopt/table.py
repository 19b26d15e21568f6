"""Seconds until the objective is within 1e-2, 1e-4, 1e-6 of the best one seen.

``python table.py FILE.parquet...``, the files that benchopt writes. The time of a point
is the median over its repetitions. benchopt runs each point from the start, so it is
that of a fit with so many iterations.
"""

import sys

import pandas as pd

WITHIN = (1e-2, 1e-4, 1e-6)
runs = pd.concat([pd.read_parquet(path) for path in sys.argv[1:]])
print("| data | objective | solver | " + " | ".join(f"{a:.0e}" for a in WITHIN) + " |")
print("|" + "---|" * (3 + len(WITHIN)))
for (data, objective), group in runs.groupby(["data_name", "objective_name"]):
    best = group["objective_value"].min()
    for solver, points in group.groupby("solver_name"):
        middle = points.groupby("stop_val")[["time", "objective_value"]].median()
        error = middle["objective_value"] / best - 1.0
        cells = []
        for accuracy in WITHIN:
            times = middle["time"][error <= accuracy]
            cells.append(f"{times.min():.2g}" if len(times) else "–")
        print(f"| {data} | {objective} | {solver} | " + " | ".join(cells) + " |")

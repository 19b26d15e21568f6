"""`ocas` beside its authors' program, in one paired run.

    DUALGAP_LIBOCAS=/path/to/svmocas python benchmarks/against_ocas.py [DATA ...]

The program named by DUALGAP_LIBOCAS is called as `svmocas -c C -r TOL -b 0 -v 1
EXAMPLES MODEL` on the data written as svmlight text; its own figure `ocas_time`, which
leaves loading out, is the time taken. dualgap's time is that in the certificate, which
includes the exact pass that proves it. Each runs on one thread, in turn, to the same
relative gap. Both objectives are measured from outside in float64. The figure is the
ratio (dualgap / svmocas), median and range. Without the variable nothing is run.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from datasets import load
from sklearn.datasets import dump_svmlight_file

from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import get_solver
from dualgap.training import solve


def objective(X, y, C, w) -> float:
    margins = y * np.asarray(X @ w, dtype=np.float64)
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - margins).sum())


def theirs(program, examples, model, C, tol, d) -> tuple[float, np.ndarray]:
    """(seconds in the solver, w)."""
    call = [program, "-c", repr(C), "-r", repr(tol), "-b", "0", "-v", "1"]
    done = subprocess.run(
        [*call, str(examples), str(model)], capture_output=True, text=True, check=True
    )
    found = re.search(r"^\s*ocas_time\s*:\s*([0-9.eE+-]+)", done.stdout, re.MULTILINE)
    if found is None:
        sys.exit(f"{program} printed no ocas_time:\n{done.stdout}{done.stderr}")
    # The bias is last; columns without entries at the end are not in the file.
    w = np.zeros(d)
    stored = np.loadtxt(model, ndmin=1)[:-1]
    w[: len(stored)] = stored
    return float(found[1]), w


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["ijcnn1", "a9a"])
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--tol", type=float, default=1e-6)
    parser.add_argument("--solver", default="ocas")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json")
    args = parser.parse_args()
    program = os.environ.get("DUALGAP_LIBOCAS")
    if not program:
        print("DUALGAP_LIBOCAS is not set: nothing to compare with, skipped")
        return
    results = []
    print("| data | C | P, dualgap | P, libocas | planes, dualgap | dualgap / libocas, "
          "median | range |\n|---|---|---|---|---|---|---|")  # fmt: skip
    for name in args.data:
        X, y = load(name)
        problem = Problem(X, y, args.C)
        ratios = []
        with tempfile.TemporaryDirectory() as folder:
            examples, model = Path(folder, "examples"), Path(folder, "model")
            dump_svmlight_file(X, y.astype(int), str(examples), zero_based=False)
            for _ in range(args.repeats):
                seconds, w = theirs(
                    program, examples, model, args.C, args.tol, problem.d
                )
                ours = solve(
                    problem, get_solver(args.solver), tol=args.tol, max_iter=10**6
                )
                ratios.append(ours.certificate.seconds / seconds)
        values = [objective(X, y, args.C, point) for point in (ours.w, w)]
        planes = ours.certificate.updates
        results.append({"data": name, "C": args.C, "tol": args.tol, "P": values,
                        "planes": planes, "status": ours.certificate.status.label,
                        "ratios": ratios})  # fmt: skip
        print(f"| {name} | {args.C:g} | {values[0]:.9g} | {values[1]:.9g} | {planes} | "
              f"{statistics.median(ratios):.2f} | {min(ratios):.2f} to "
              f"{max(ratios):.2f} |", flush=True)  # fmt: skip
    if args.json:
        with open(args.json, "w") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()

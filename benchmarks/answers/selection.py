"""Certified choice of C: a table of real sets.

    python benchmarks/answers/selection.py [--sets NAME ...] [--seconds S]
        [--tolerances T ...]

It prints, for 5 folds and C from 1e-3 to 10, how many values of C and processor seconds
each tolerance took, or what was proved when S seconds (default 2,000) were over; and
the same for RBF kernels with C from 0.01 to 100, over the first 2,000 rows of larger
sets.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

from dualgap import SVCCV, LinearSVCCV

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from datasets import load
from harness import timed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--sets", nargs="*", default=["cancer", "splice", "ijcnn1", "letter", "a9a"]
    )
    parser.add_argument(
        "--tolerances", nargs="*", type=float, default=[0.05, 0.02, 0.01]
    )
    parser.add_argument("--seconds", type=float, default=2000.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for kernel in (False, True):
        print("with RBF kernels" if kernel else "linear")
        print(
            "| data | tolerance | values of C | seconds | C | error | proved within |"
        )
        print("|---|---|---|---|---|---|---|")
        for name in given.sets:
            for tolerance in given.tolerances:
                row(name, kernel, tolerance, given.seconds)


def row(name: str, kernel: bool, tolerance: float, seconds: float) -> None:
    """Print a row of the table."""
    X, y = load(name)
    options: dict[str, Any] = {
        "certify_C": True, "error_tolerance": tolerance, "random_state": 0,
        "time_limit": seconds, "refit": False,
    }  # fmt: skip
    search: Any = LinearSVCCV((1e-3, 10.0), loss="hinge", **options)
    if kernel:
        X, y = X[:2000], y[:2000]
        search = SVCCV((1e-2, 100.0), **options)
    spent, _ = timed(search.fit, X, y)
    print(
        f"| {name} | {tolerance:.0%} | {search.n_fits_ // 5} "
        f"| {spent:.1f} | {search.C_:.3g} "
        f"| {1 - search.best_score_:.2%} | {search.error_tolerance_:.2%} |",
        flush=True,
    )


if __name__ == "__main__":
    main()

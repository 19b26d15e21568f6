"""Two versions of dualgap over 25 cases, in turn: about ten minutes.

    python benchmarks/paired.py BEFORE AFTER [--only WORD] [--repeats 5]
    python benchmarks/paired.py --save

BEFORE and AFTER are checkouts with a built core, such as two worktrees of two commits.
Each has a process of its own, with one BLAS thread. Their fits alternate, and the one
that begins does too. The ratio is the least processor seconds of AFTER over the least
of BEFORE. Counts of epochs and updates stand beside it: no load changes them.

`--save` writes the counts of the version in use to counts.json; a test compares them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

COUNTS = Path(__file__).with_name("counts.json")
#: Fits of a case between two looks at the clock take at least this many seconds.
LEAST = 0.05


def rows(n: int, d: int, *, classes: int = 2, noise: float = 1.0, density: float = 1.0):
    """Return rows of unlike columns, sparse below a density of 1, and noisy labels."""
    from scipy import sparse

    rng = np.random.default_rng(n + d)
    X = rng.standard_normal((n, d)) * np.geomspace(3.0, 0.3, d)
    if density < 1.0:
        X = sparse.csr_matrix(X * (rng.random((n, d)) < density))
    scores = X @ rng.standard_normal((d, classes))
    return X, np.argmax(
        scores + noise * scores.std() * rng.gumbel(size=(n, classes)), 1
    )


def real(name: str):
    """Return a data set of scikit-learn, standardised."""
    from sklearn import datasets
    from sklearn.preprocessing import scale

    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.nan_to_num(scale(X)), y


def target(X: Any):
    """Return targets of a curve in noise."""
    rng = np.random.default_rng(0)
    return X[:, 0] + np.sin(2.0 * X[:, 1]) + 0.3 * rng.standard_normal(len(X))


def cases() -> dict[str, Callable[[], tuple[Any, Any, Any]]]:
    """Return {name: function that makes a model, its rows and its labels}."""
    import dualgap as dg

    hinge, free = {"loss": "hinge"}, {"penalize_intercept": False}
    made: dict[str, Callable[[], tuple[Any, Any, Any]]] = {}
    for name in ("iris", "wine", "breast_cancer", "digits"):
        for model in (dg.LinearSVC(), dg.LinearSVC(**hinge), dg.SVC()):
            made[f"{model!r}, {name}"] = lambda m=model, n=name: (m, *real(n))
    narrow = partial(rows, 20_000, 20)
    made |= {
        "narrow": lambda: (dg.LinearSVC(), *narrow()),
        "narrow, hinge": lambda: (dg.LinearSVC(**hinge), *narrow()),
        "narrow, large C": lambda: (dg.LinearSVC(C=1e4, **hinge), *narrow()),
        "narrow, free bias": lambda: (dg.LinearSVC(**hinge, **free), *narrow()),
        "narrow, 10 classes": lambda: (dg.LinearSVC(), *narrow(classes=10)),
        "text": lambda: (dg.LinearSVC(), *rows(4000, 2000, density=0.01)),
        "text, hinge": lambda: (dg.LinearSVC(**hinge), *rows(4000, 2000, density=0.01)),
        "wide": lambda: (dg.LinearSVC(), *rows(400, 2000, classes=5)),
        "logistic": lambda: (dg.LogisticRegression(), *narrow(classes=3)),
        "kernel, much noise": lambda: (dg.SVC(), *rows(4000, 10, noise=2.0)),
        "kernel, little noise": lambda: (dg.SVC(C=10.0), *rows(4000, 10, noise=0.1)),
        "linear regression": lambda: (dg.LinearSVR(), X := narrow()[0], target(X)),
        "regression": lambda: (dg.SVR(), X := rows(2000, 10)[0], target(X)),
    }
    return made


def counts(model: Any) -> dict[str, int]:
    """Return the epochs and updates of all problems of a fitted model."""
    parts = model.certificate_.parts
    return {key: sum(getattr(part, key) for part in parts)
            for key in ("epochs", "updates")}  # fmt: skip


def counted(name: str) -> dict[str, int]:
    """Fit a case once and return its counts."""
    model, X, y = cases()[name]()
    return counts(model.fit(X, y))


def serve() -> None:
    """Answer each name of a case with the processor seconds of a fit, and counts."""
    warnings.simplefilter("ignore")
    made = cases()
    data: dict[str, Any] = {}
    for line in sys.stdin:
        name = line.strip()
        if name not in data:
            data = {name: made[name]()}
            model, X, y = data[name]
            model.fit(X, y)  # imports and first touches
        model, X, y = data[name]
        begun, fits = time.process_time(), 0
        while not fits or time.process_time() - begun < LEAST:
            model.fit(X, y)
            fits += 1
        seconds = (time.process_time() - begun) / fits
        print(json.dumps({"seconds": seconds, **counts(model)}), flush=True)


def start(checkout: Path) -> subprocess.Popen:
    """Start the process of a version."""
    environment = {"PYTHONPATH": str(checkout / "src"), "OMP_NUM_THREADS": "1",
                   "OPENBLAS_NUM_THREADS": "1"}  # fmt: skip
    return subprocess.Popen(
        [sys.executable, __file__, "--serve"], env=os.environ | environment,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip


def ask(process: subprocess.Popen, name: str) -> dict[str, Any]:
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs="*", type=Path)
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.serve:
        return serve()
    names = [name for name in cases() if args.only in name]
    if args.save:
        warnings.simplefilter("ignore")
        found = {name: counted(name) for name in names}
        COUNTS.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        return None
    if len(args.checkouts) != 2:
        parser.error("give two checkouts: BEFORE AFTER")
    processes = [start(checkout.resolve()) for checkout in args.checkouts]
    print("| case | before, ms | after, ms | after / before | epochs | updates |\n"
          "|---|---|---|---|---|---|")  # fmt: skip
    ratios = []
    for name in names:
        runs: list[list[dict[str, Any]]] = [[], []]
        for repeat in range(args.repeats):
            for k in (0, 1) if repeat % 2 else (1, 0):
                runs[k].append(ask(processes[k], name))
        before, after = (min(run["seconds"] for run in some) for some in runs)
        ratios.append(after / before)
        told = [
            f"{runs[0][0][key]}, {runs[1][0][key]}" for key in ("epochs", "updates")
        ]
        print(f"| {name} | {1e3 * before:.3g} | {1e3 * after:.3g} | {ratios[-1]:.2f} | "
              f"{told[0]} | {told[1]} |", flush=True)  # fmt: skip
    mean = float(np.exp(np.mean(np.log(ratios))))
    print(f"\n{len(ratios)} cases, geometric mean {mean:.3f}, "
          f"{min(ratios):.2f} to {max(ratios):.2f}")  # fmt: skip
    for process in processes:
        process.stdin.close()
        process.wait()
    return None


if __name__ == "__main__":
    main()

"""Settings of Vowpal Wabbit that come nearest to the SVM's objective, and how fast.

    python benchmarks/scale/vowpal.py --rows 40000 --passes 16

Vowpal Wabbit minimises mean loss + l2/2 ||w||^2, so that l2 = 1/(nC) is the SVM;
but its gradient steps shrink w only where a row has a loss, by a rate that the adaptive
and normalised updates do not have for any one coordinate. A grid of update rules,
rates, schedules and multiples of that l2 is run on a part of the set of out_of_core.py,
each from the same cache; the objective of every model is computed here. `--bfgs` takes
the sum of the losses, so that its l2 is 1/C. One line for each setting, the best last:
(P - P*)/P* after 1, 2, 4, ... passes and at the end, and processor seconds of all.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import out_of_core
from scipy import sparse

#: Passes after which a model is measured.
MEASURED = (1, 2, 4, 8, 16, 32)


def settings(rows: int, C: float) -> dict[str, tuple[list[str], float]]:
    """Return by name the options, and the multiple of l2."""
    found: dict[str, tuple[list[str], float]] = {}
    # Pegasos' 1/(l2 t), begun at the rate l: initial_t = nC/l.
    for rate, more in product((0.3, 1.0, 3.0, 10.0), (1.0, 1.5, 2.0)):
        rule = ["--sgd", "-l", f"{rate:g}", "--power_t", "1"]
        rule += ["--initial_t", f"{rows * C / rate:g}"]
        found[f"{' '.join(rule)}, l2 x {more:g}"] = rule, more
    rules = (["--sgd"], ["--adaptive"], ["--adaptive", "--normalized"],
             ["--adaptive", "--invariant"], [])  # fmt: skip
    for kind, power, rate, more in product(
        rules, ("0.5", "1"), ("0.01", "0.1", "0.5", "2", "10"), (1.0, 0.1)
    ):
        rule = [*kind, "-l", rate, "--power_t", power]
        found[f"{' '.join(rule)}, l2 x {more:g}"] = rule, more
    for rule in (["-l", "0.5"], ["--sgd", "-l", "3"]):
        rule = [*rule, "--decay_learning_rate", "0.7"]
        found[f"{' '.join(rule)}, l2 x 1"] = rule, 1.0
    rule = ["--bfgs", "--mem", "10", "--predict_only_model"]
    found["--bfgs"] = rule, rows  # l2 on the sum of the losses
    return found


class Subset:
    """Rows in memory, and their text and cache in a folder."""

    def __init__(self, rows: int, C: float, folder: Path) -> None:
        from dualgap.problems import BinaryProblem as Problem
        from dualgap.solvers import DCD
        from dualgap.training import solve

        parts = [out_of_core.batch(k) for k in range(-(-rows // out_of_core.BATCH))]
        self.X = sparse.vstack([X for X, _ in parts], format="csr")[:rows]
        positive = np.concatenate([y for _, y in parts])[:rows]
        self.y, self.C, self.folder = np.where(positive, 1.0, -1.0), C, folder
        self.text = folder / "text"
        self.text.write_bytes(out_of_core.text(self.X, positive).view("u1").data)
        done = solve(Problem(self.X, self.y, C), DCD(), tol=1e-5).certificate
        self.optimum = 0.5 * (done.primal + done.dual)
        self.vw("--passes", "1", "--kill_cache", "-f", os.fspath(folder / "none"))

    def vw(self, *options: str) -> float:
        """Run it on the subset; returns processor seconds."""
        command = [
            sys.executable, "-m", "vowpalwabbit", "-d", os.fspath(self.text),
            "--cache_file", os.fspath(self.folder / "cache"), "--loss_function",
            "hinge", "--noconstant", "-b", "18", "--quiet", "--holdout_off", *options,
        ]  # fmt: skip
        process = subprocess.Popen(command)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = status
        if status:
            raise SystemExit(f"vowpalwabbit failed: {' '.join(command)}")
        return usage.ru_utime + usage.ru_stime

    def objective(self, w: np.ndarray) -> float:
        loss = np.maximum(0.0, 1.0 - self.y * (self.X @ w)).sum()
        return 0.5 * float(w @ w) + self.C * float(loss)

    def tried(self, rule: list[str], more: float, passes: int) -> tuple[list, float]:
        """Suboptimality after some of the passes, and processor seconds."""
        model = os.fspath(self.folder / "model")
        l2 = more / (self.C * len(self.y))
        written = ["-f", model, "--save_per_pass"]
        if "--bfgs" in rule:  # which writes its last model alone, to be read as text
            written = ["-f", model, "--readable_model", f"{model}.txt"]
        seconds = self.vw(*rule, "--l2", repr(l2), "--passes", str(passes), *written)
        if "--bfgs" in rule:
            w = out_of_core.readable_weights(f"{model}.txt")
            reached = [self.objective(w) / self.optimum - 1.0]
        else:
            models = [f"{model}.{k}" for k in MEASURED if k <= passes]
            reached = [
                self.objective(out_of_core.vw_weights(path)) / self.optimum - 1.0
                for path in [*filter(os.path.exists, models), model]
            ]
        for file in self.folder.glob("model*"):
            file.unlink()
        return reached, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=40_000)
    parser.add_argument("--C", type=float, default=0.1)
    parser.add_argument("--passes", type=int, default=16)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="", help="settings with this in their name")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        subset = Subset(options.rows, options.C, Path(folder))
        print(f"{options.rows} rows, C = {options.C}, P* = {subset.optimum:.6g}")
        results = []
        for name, (rule, more) in settings(options.rows, options.C).items():
            if options.only not in name:
                continue
            reached, seconds = subset.tried(rule, more, options.passes)
            results.append((reached[-1], name, reached, seconds))
            shown = " ".join(f"{value:.2g}" for value in reached)
            print(f"{name}: {shown} ({seconds:.1f} s)", flush=True)
    print("the best:")
    for _, name, reached, seconds in sorted(results)[:10][::-1]:
        shown = " ".join(f"{value:.2g}" for value in reached)
        print(f"{name}: {shown} ({seconds:.1f} s)")


if __name__ == "__main__":
    main()

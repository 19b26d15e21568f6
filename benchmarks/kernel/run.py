"""Kernel SVMs: dualgap beside every rival, data x C, in one command.

    python benchmarks/kernel/run.py [--stage ...] [--data ...] [--C ...]

reference  bounds on P*: dualgap's certificate at a gap of 1e-6
sweep      every rival, to the loosest tolerance that reaches 1e-3
pair       every cell: dualgap at tol = 1e-3, the best rivals of the sweep and
           scikit-learn, in turn; fit and prediction
memory     the same once more on a fresh heap, for the peak of memory
nystroem   accuracy on a test set, and time, of Nystroem features beside the exact fit
report     docs/benchmarks-kernel.md, its picture, benchmarks/kernel/results.json

Results are appended to a JSON-lines file (--results); what is in it is not run again.
README.md in this folder says how the rivals are found.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

import bench
from bench import (
    CACHE,
    CAP,
    COSTS,
    EPS,
    LARGE,
    NAMES,
    PAIRS,
    SMALL,
    Worker,
    arrays,
    load,
    meetings,
    objective,
    touched,
)
from harness import BASELINE, SLACK, Clock, Grid, Results, arguments, repeats
from report import report
from rivals import RIVALS

FIRST = 1e-3  # tolerance that the search begins with: the default of all
TIGHTEST = 1e-6
LANDMARKS = [100, 300, 1000]


class Bench(Grid):
    def __init__(self, results: Results, clock: Clock, cap: float, ours: str) -> None:
        super().__init__(results, clock, cap)
        self.classifier = ours

    def open(self, name: str) -> None:
        self.name, self.folder = name, arrays(name)
        self.X, self.y, self.gamma = load(name)

    def ours(self, cache: int) -> str:
        return f"{self.classifier}, {cache} MB"

    def worker(self, rival: str, cache: int = SMALL) -> Worker:
        return Worker(rival, self.folder, touched(self.name, cache))

    def measure(
        self, worker: Worker, stage: str, C, family, value, tags=None, **options
    ) -> dict:
        """Fit once and record it, with the tags."""
        row, model = worker.fit(C, family, value, **options)
        if model is not None and "dual_coef" in model:
            found = objective(self.X, self.y, self.gamma, C, model)
            row["primal"], row["with_its_bias"] = found
            row["meetings"] = meetings(self.y, model)
        seed = options.get("seed", 0)
        return self.record(worker, stage, C, family, value, row, seed, tags)

    # ---- reference

    def reference(self, costs: list[float], budget: float) -> None:
        for C in costs:
            lower, upper = self.results.bracket(self.name, C)
            tried = self.results.where(stage="reference", data=self.name, C=C)
            enough = any(row["budget"] >= budget and "primal" in row for row in tried)
            if upper - lower <= 2e-6 * lower or enough or self.clock.over():
                continue
            worker = self.worker("dualgap", LARGE)
            self.measure(worker, "reference", C, self.ours(LARGE), 1e-6, cap=4 * budget,
                         time_limit=budget, tags={"budget": budget})  # fmt: skip
            worker.close()

    # ---- sweep

    def limit(self, C, rival) -> float:
        """Seconds after which a fit is of no use any more."""
        cap = self.cap
        for r in self.results.where(stage="sweep", data=self.name, rival=rival):
            if r["C"] < C and r.get("capped", 0) >= self.cap:
                cap = self.cap / 3  # it ran into the limit at a smaller C
        if rival == BASELINE and not math.isfinite(self.best(C, EPS, rival)):
            return cap
        return min(cap, max(SLACK * self.best(C, EPS), 1.0))

    def tried(self, worker: Worker, C, family, value) -> dict:
        """The fit, made now unless it was before, with as many seconds."""
        limit = self.limit(C, worker.rival)
        rows = [r for r in self.swept(C, worker.rival, family) if r["value"] == value]
        for row in rows:
            if "error" in row or row.get("capped", math.inf) >= limit / 1.5:
                return row
        return self.measure(worker, "sweep", C, family, value, cap=limit)

    def search(self, worker: Worker, C, form: str) -> float | None:
        """The loosest tolerance, by half decades, that reaches the accuracy."""
        family, value, reached, last = f"{form}, {SMALL} MB", FIRST, None, math.inf
        misses: list[float] = []
        while not self.clock.over() and TIGHTEST <= value <= 10.0:
            row = self.tried(worker, C, family, value)
            accuracy = self.accuracy(row)
            if accuracy <= EPS:
                done = row["cpu"] > 0.95 * last or misses
                reached, last = value, row["cpu"]
                if done:  # looser gains no time, or was tried
                    break
                value = half_decade(value, 1)
            elif reached is not None or "primal" not in row:
                break
            else:
                misses.append(accuracy)
                if len(misses) > 2 and misses[-1] > 0.9 * misses[-3]:
                    break  # tightening changes nothing: the model is another one
                value = half_decade(value, -1)
        return reached

    def sweep(self, rival: str, costs: list[float]) -> None:
        worker = self.worker(rival)
        if not self.started(worker):
            return
        large = self.worker(rival, LARGE)
        for C in costs:
            for form in RIVALS[rival].forms:
                value = self.search(worker, C, form)
                # A larger cache helps only where the kernel matrix fills the usual one.
                fits = 4 * self.X.shape[0] ** 2 <= SMALL * 1e6
                if value is not None and not fits and not self.clock.over():
                    self.tried(large, C, f"{form}, {LARGE} MB", value)
        worker.close()
        large.close()

    # ---- pair

    def contenders(self, C) -> dict[str, dict]:
        """{rival: best row}: the best ones, and scikit-learn."""
        best = self.quickest(C, EPS)
        by_fit = list(best)
        chosen = [r for r in by_fit[:2]
                  if best[r]["cpu"] <= SLACK * best[by_fit[0]]["cpu"]]  # fmt: skip
        chosen += [r for r in (BASELINE, "onedal") if r in best]
        return {rival: best[rival] for rival in dict.fromkeys(chosen)}

    def pair(self, costs: list[float], again: bool) -> None:
        run = time.strftime("%Y-%m-%d %H:%M:%S")
        for C in costs:
            cell = {"stage": "cell", "data": self.name, "C": C}
            if self.clock.over() or (self.results.where(**cell) and not again):
                continue
            rivals = self.contenders(C)
            caches = {r: int(row["family"].split()[-2]) for r, row in rivals.items()}
            # dualgap has the cache of the best rival, the first of them.
            cache = next(iter(caches.values()), SMALL)
            workers = {r: self.worker(r, c)
                       for r, c in ({"dualgap": cache} | caches).items()}  # fmt: skip
            self.one_cell(workers, rivals, C, cache, {"run": run})
            self.results.add(**cell, run=run, ours=self.ours(cache))
            for worker in workers.values():
                worker.close()

    def one_cell(self, workers, rivals, C, cache, tags) -> None:
        """Run dualgap and the rivals in turn; every repeat has another seed."""
        runs = {rival: repeats(row["cpu"]) for rival, row in rivals.items()}
        most, k = 3, 0
        while k < most:
            tags = tags | {"repeat": k}
            queries = bench.QUERIES if k == 0 else 0  # prediction is timed once
            row = self.measure(workers["dualgap"], "pair", C, self.ours(cache), EPS,
                               cap=2 * self.cap, seed=k, queries=queries,
                               tags=tags)  # fmt: skip
            if "cpu" not in row:
                break
            most = max(repeats(row["cpu"]), *runs.values(), 0)
            for rival, best in rivals.items():
                if k < runs[rival]:
                    # The slow ones predict fewer rows.
                    several = min(queries, 1000 if rival != "onedal" else queries)
                    self.measure(
                        workers[rival], "pair", C, best["family"], best["value"],
                        cap=4 * best["cpu"] + 10, seed=k, queries=several, tags=tags,
                    )  # fmt: skip
            k += 1

    # ---- memory

    def memory(self, costs: list[float]) -> None:
        C = costs[0]
        todo = {"dualgap": (self.ours(SMALL), EPS)} | {
            rival: (row["family"], row["value"])
            for rival, row in self.contenders(C).items()
        }
        for rival, (family, value) in todo.items():
            done = self.results.where(stage="memory", data=self.name, rival=rival, C=C)
            if not done and not self.clock.over():
                worker = Worker(rival, self.folder)
                self.measure(worker, "memory", C, family, value, cap=4 * self.cap)
                worker.close()

    # ---- nystroem

    def nystroem(self, costs: list[float]) -> None:
        C = costs[0]
        for rival in ("dualgap-nystroem", "sklearn-nystroem"):
            worker = self.worker(rival)
            # Pairs have few rows: the most landmarks would be nearly all of them.
            for value in LANDMARKS[: 2 if self.name in PAIRS else 3]:
                family = f"SVC, {SMALL} MB"
                done = self.results.where(
                    stage="nystroem", data=self.name, rival=rival, C=C, value=value
                )
                if not done and not self.clock.over():
                    self.measure(worker, "nystroem", C, family, value, cap=self.cap,
                                 queries=bench.QUERIES)  # fmt: skip
            worker.close()


def half_decade(value: float, up: int) -> float:
    """The next of 10^(k/2)."""
    return float(f"{10 ** ((round(2 * math.log10(value)) + up) / 2):.2g}")


def main() -> None:
    stages = ["reference", "sweep", "pair", "memory", "nystroem", "report"]
    parser = arguments(__doc__, stages, NAMES, RIVALS, CAP, 120.0)
    parser.add_argument("--C", nargs="+", type=float, choices=COSTS, default=COSTS)
    parser.add_argument("--model", choices=["SVC", "block"], default="SVC",
                        help="the classifier, or the engine alone")  # fmt: skip
    parser.add_argument("--results", type=Path, default=CACHE / "kernel.jsonl")
    args = parser.parse_args()
    results, clock = Results(args.results), Clock(args.time_limit)
    b = Bench(results, clock, args.budget, args.model)
    steps = {
        "reference": lambda: b.reference(args.C, args.reference_budget),
        "sweep": lambda: [b.sweep(rival, args.C) for rival in args.rivals],
        "pair": lambda: b.pair(args.C, args.again),
        "memory": lambda: b.memory(args.C),
        "nystroem": lambda: b.nystroem(args.C),
    }
    b.run(args, steps, report)


if __name__ == "__main__":
    main()

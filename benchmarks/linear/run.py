"""`auto` beside every rival: data x C x accuracy, in one command.

    python benchmarks/linear/run.py [--stage ...] [--data ...]

reference  bounds on P*, from two solvers of dualgap and a general QP solver
sweep      every rival through its settings, from loose to tight
refine     a finer search around the setting that reaches an accuracy, for those
           rivals that may be the best
pair       every cell: dualgap at tol = accuracy, the best rivals of the sweep and
           scikit-learn at the loosest setting that reaches it, in turn
report     docs/benchmarks-linear.md, its picture, benchmarks/linear/results.json

Results are appended to a JSON-lines file (--results); what is in it is not run again.
README.md in this folder says how the rivals are found.
"""

from __future__ import annotations

import math
import time
from pathlib import Path

from bench import (
    ACCURACIES,
    CACHE,
    CAP,
    COSTS,
    DATA,
    Worker,
    arrays,
    load,
    objective,
)
from harness import BASELINE, SLACK, Clock, Grid, Results, arguments, repeats, setting
from report import missed, report
from rivals import RIVALS


class Bench(Grid):
    def open(self, name: str) -> None:
        self.name, self.folder = name, arrays(name)
        self.X, self.y = load(name)
        self.broken: set[tuple[str, str]] = set()

    def measure(
        self, worker: Worker, stage: str, C, family, value, tags=None, **options
    ) -> dict:
        """Fit once and record it, with the tags."""
        row, w = worker.fit(C, family, value, **options)
        if w is not None:
            row["primal"] = objective(self.X, self.y, C, w)
        seed = options.get("seed", 0)
        return self.record(worker, stage, C, family, value, row, seed, tags)

    # ---- reference

    def reference(self, budget: float) -> None:
        n, d = self.X.shape
        for C in COSTS:
            ways = [("dualgap-reference", "auto")]
            if d <= 1000:
                ways.append(("dualgap-reference", "ocas"))
                if n <= 100_000:
                    ways.insert(1, ("clarabel", "qp"))
            for rival, family in ways:
                lower, upper = self.results.bracket(self.name, C)
                tried = self.results.where(
                    stage="reference", data=self.name, rival=rival, C=C, family=family
                )
                enough = any(row["budget"] >= budget for row in tried)
                if upper - lower <= 1e-8 * lower or enough or self.clock.over():
                    continue
                worker = Worker(rival, self.folder)
                value = 1e-9 if rival == "clarabel" else 1e-8
                self.measure(worker, "reference", C, family, value, cap=4 * budget,
                             time_limit=budget, tags={"budget": budget})  # fmt: skip
                worker.close()

    # ---- sweep

    def limit(self, C, rival, family) -> float:
        """Seconds after which a fit of this family is of no use any more."""
        rows = self.swept(C, rival, family)
        reached = min((self.accuracy(r) for r in rows), default=math.inf)
        open_ = [eps for eps in ACCURACIES if reached > eps]
        whose = rival if rival == BASELINE else None
        return max((SLACK * self.best(C, eps, whose) for eps in open_), default=0.0)

    def failed_before(self, C, rival, family) -> bool:
        """Whether it ran into the limit at a smaller C."""
        return any(r["C"] < C and r.get("capped", 0) >= self.cap
                   for r in self.results.where(stage="sweep", data=self.name,
                                               rival=rival, family=family))  # fmt: skip

    def hopeless(self, C, rival, family) -> bool:
        """Whether the next settings cannot be of use, from the last three.

        Either a tenfold tightening changed nothing (LIBLINEAR after its 300 epochs,
        single precision), or the value counts passes, of which no method here needs
        fewer than the inverse of the accuracy.
        """
        ladder = RIVALS[rival].families[family]
        passes = ladder[0] < ladder[-1]
        rows = [r for r in self.swept(C, rival, family) if "primal" in r]
        rows.sort(key=lambda r: r["value"], reverse=not passes)
        # Loose tolerances may all end after one pass.
        if len(rows) < (3 if passes else 7) or rows[-1]["cpu"] < 0.5:
            return False
        accuracy = [self.accuracy(r) for r in rows[-3:]]
        if accuracy[2] > 0.9 * accuracy[0]:
            return True
        return passes and not any(
            rows[-1]["cpu"] * accuracy[2] / eps
            <= 2.0 * min(self.cap, SLACK * self.best(C, eps))
            for eps in ACCURACIES
            if accuracy[2] > eps
        )

    def sweep(self, rival: str) -> None:
        worker = Worker(rival, self.folder)
        if not self.started(worker):
            return
        for family, ladder in RIVALS[rival].families.items():
            for C in COSTS:
                for value in ladder:
                    if self.clock.over() or (rival, family) in self.broken:
                        break
                    limit = self.limit(C, rival, family)
                    cap = self.cap
                    if self.failed_before(C, rival, family):
                        cap = self.cap / 3
                    cap = min(cap, max(limit, 1.0))
                    rows = [r for r in self.swept(C, rival, family)
                            if r["value"] == value]  # fmt: skip
                    if any(r.get("capped", math.inf) >= cap / 1.5 for r in rows):
                        row = rows[-1]
                    else:
                        row = self.measure(worker, "sweep", C, family, value, cap=cap)
                    if "error" in row:
                        self.broken.add((rival, family))
                    spent = row.get("cpu", row.get("capped", 0.0))
                    useless = spent >= self.limit(C, rival, family)
                    if "capped" in row or useless or self.hopeless(C, rival, family):
                        break
        worker.close()

    def refine(self) -> None:
        """Bisect, geometrically, between the settings that miss and that reach."""
        for rival in RIVALS:
            worker = Worker(rival, self.folder)
            for C in COSTS:
                for eps in ACCURACIES:
                    if self.best(C, eps, rival) > SLACK * self.best(C, eps) and (
                        rival != BASELINE
                    ):
                        continue
                    while (step := self.between(C, rival, eps)) is not None:
                        if self.clock.over():
                            break
                        row = self.measure(worker, "sweep", C, *step, cap=self.cap)
                        if "primal" not in row:
                            break
            worker.close()

    def between(self, C, rival, eps):
        """(family, value) between the last that missed and the first that reached."""
        rows = [r for r in self.swept(C, rival) if "primal" in r]
        good = [r for r in rows if self.accuracy(r) <= eps]
        if not good:
            return None
        best = min(good, key=lambda r: r["cpu"])
        family, value = best["family"], best["value"]
        ladder = RIVALS[rival].families[family]
        looser = [r["value"] for r in rows
                  if r["family"] == family and self.accuracy(r) > eps
                  and (r["value"] > value) == (ladder[0] > ladder[-1])]  # fmt: skip
        if not looser:
            return None
        near = min(looser, key=lambda v: abs(math.log(v / value)))
        if 1 / 1.5 < near / value < 1.5:
            return None
        middle = math.sqrt(near * value)
        passes = ladder[0] < ladder[-1]
        middle = round(middle) if passes else float(f"{middle:.3g}")
        tried = [r["value"] for r in self.swept(C, rival, family)]
        # LIBLINEAR draws on, so that a setting may miss once and reach once.
        if any(abs(math.log(v / middle)) < 0.1 for v in tried):
            return None
        return family, middle

    # ---- pair

    def contenders(self, C, eps, lucky: set) -> dict[str, dict]:
        """{rival: best row}: the best, the best with its overhead, scikit-learn."""
        best = self.quickest(C, eps, lucky)
        by_fit = list(best)
        by_all = sorted(best, key=lambda r: total(best[r]))
        chosen = [r for r in by_fit[:3]
                  if best[r]["cpu"] <= SLACK * best[by_fit[0]]["cpu"]]  # fmt: skip
        chosen += by_all[:1]
        chosen += [BASELINE] if BASELINE in best else []
        return {rival: best[rival] for rival in dict.fromkeys(chosen)}

    def pair(self, solver: str, again: bool) -> None:
        run = time.strftime("%Y-%m-%d %H:%M:%S")
        workers = {"dualgap": Worker("dualgap", self.folder)}
        for C in COSTS:
            for eps in ACCURACIES:
                cell = {"stage": "cell", "data": self.name, "C": C, "eps": eps}
                if self.clock.over() or (self.results.where(**cell) and not again):
                    continue
                done, lucky = set(), set()
                for turn in range(4):
                    rivals = self.contenders(C, eps, lucky)
                    rivals = {r: row for r, row in rivals.items()
                              if setting(row) not in done}  # fmt: skip
                    if done and not rivals:
                        break
                    for rival in rivals:
                        workers.setdefault(rival, Worker(rival, self.folder))
                    tags = {"eps": eps, "run": run, "round": turn}
                    self.one_cell(workers, rivals, C, eps, solver, tags)
                    done |= {setting(row) for row in rivals.values()} | {"ours"}
                    lucky = missed(self.results, self.name, C, eps, run)
                self.results.add(**cell, solver=solver, run=run)
        for worker in workers.values():
            worker.close()

    def one_cell(self, workers, rivals, C, eps, solver, tags) -> None:
        """Run dualgap and the rivals in turn; every repeat has another seed."""
        runs = {rival: repeats(row["cpu"]) for rival, row in rivals.items()}
        most, k = max(3, *runs.values(), 0), 0
        while k < most:
            tags = tags | {"repeat": k}
            row = self.measure(workers["dualgap"], "pair", C, solver, eps,
                               cap=2 * CAP, seed=k, tags=tags)  # fmt: skip
            if "cpu" not in row:
                break
            most = max(most, repeats(row["cpu"]))
            for rival, best in rivals.items():
                if k < runs[rival]:
                    self.measure(
                        workers[rival], "pair", C, best["family"], best["value"],
                        cap=4 * best["cpu"] + 10, seed=k, tags=tags,
                    )  # fmt: skip
            k += 1


def total(row: dict) -> float:
    """Seconds with import and conversion."""
    return row["cpu"] + row["import_cpu"] + row["convert_cpu"]


def main() -> None:
    stages = ["reference", "sweep", "refine", "pair", "report"]
    parser = arguments(__doc__, stages, DATA, RIVALS, CAP, 60.0)
    parser.add_argument("--solver", default="auto", help="solver of dualgap")
    parser.add_argument("--results", type=Path, default=CACHE / "linear.jsonl")
    args = parser.parse_args()
    bench = Bench(Results(args.results), Clock(args.time_limit), args.budget)
    steps = {
        "reference": lambda: bench.reference(args.reference_budget),
        "sweep": lambda: [bench.sweep(rival) for rival in args.rivals],
        "refine": bench.refine,
        "pair": lambda: bench.pair(args.solver, args.again),
    }
    bench.run(args, steps, report)


if __name__ == "__main__":
    main()

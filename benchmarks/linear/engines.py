"""`auto` beside its engines on the grid: the price of choosing.

    python benchmarks/linear/engines.py [--data ...] [--results FILE]

Processor seconds of one thread, the best of five fits under 0.1 s and of three up to
5 s. The figure is `auto` divided by the best engine; it should stay under 1.6. A
killed run goes on where it was.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench import ACCURACIES, CACHE, COSTS, DATA, Worker, arrays
from harness import Clock, Results, stamp

ENGINES = ["dcd", "newton", "interior-point"]


def seconds(worker: Worker, C, solver, eps, cap) -> dict:
    """{"cpu", ...} of the fastest fit; {"error"} or {"capped"} otherwise."""
    row, _ = worker.fit(C, solver, eps, cap=cap)
    for _ in range(
        0 if row.get("cpu", cap) > 5.0 else 4 if row.get("cpu", cap) < 0.1 else 2
    ):
        again, _ = worker.fit(C, solver, eps, cap=cap)
        row = min(row, again, key=lambda r: r.get("cpu", cap))
    return {k: row[k] for k in ("cpu", "status", "gap", "epochs", "capped", "error")
            if k in row}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="+", choices=DATA, default=DATA)
    parser.add_argument("--budget", type=float, default=60.0)
    parser.add_argument("--time-limit", type=float)
    parser.add_argument("--results", type=Path, default=CACHE / "engines.jsonl")
    args = parser.parse_args()
    results, clock = Results(args.results), Clock(args.time_limit)
    results.add(**stamp())
    engines = " | ".join(f"{name}, s" for name in ENGINES)
    print(f"| data | C | accuracy | auto, s | {engines} | auto / best |\n"
          f"|---|---|---|---|{'---|' * len(ENGINES)}---|")  # fmt: skip
    ratios = []
    for name in args.data:
        worker = Worker("dualgap", arrays(name))
        for C in COSTS:
            for eps in ACCURACIES:
                key = dict(stage="engines", data=name, C=C, eps=eps)
                rows = {}
                for solver in ["auto", *ENGINES]:
                    done = results.where(**key, solver=solver)
                    if not done and clock.over():
                        break
                    rows[solver] = done[-1] if done else results.add(
                        **key, solver=solver,
                        **seconds(worker, C, solver, eps, args.budget),
                    )  # fmt: skip
                if len(rows) <= len(ENGINES):
                    continue
                times = {k: r["cpu"] for k, r in rows.items()
                         if r.get("status") == "certified"}  # fmt: skip
                best = min((times[e] for e in ENGINES if e in times),
                           default=args.budget)  # fmt: skip
                ratio = times.get("auto", args.budget) / best
                ratios.append((ratio, name, C, eps))
                shown = [f"{times[k]:.4g}" if k in times else
                         rows[k].get("status", "–") for k in rows]  # fmt: skip
                line = [name, f"{C:g}", f"{eps:g}", *shown, f"{ratio:.2f}"]
                print(f"| {' | '.join(line)} |", flush=True)
        worker.close()
    over = [r for r in ratios if r[0] > 1.6]
    print(f"\n{len(ratios)} cells, over 1.6: {len(over)}")
    for ratio, name, C, eps in sorted(over, reverse=True):
        print(f"  {name} C {C:g} accuracy {eps:g}: {ratio:.2f}")


if __name__ == "__main__":
    main()

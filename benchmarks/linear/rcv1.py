"""The set of RCV1's shape to 1e-3, one run: LIBLINEAR, SGD, Pegasos and `auto`.

    python benchmarks/linear/rcv1.py [--data rcv1-like] [--C 1] [--accuracy 1e-3]

Pegasos' headline was RCV1's CCAT (781,265 rows) in under five seconds. The rivals
climb their settings until the objective, measured from outside, is within the accuracy
of P*; dualgap has to prove it. Then all run in turn. Processor seconds of one thread.
"""

from __future__ import annotations

import argparse
import json
import statistics

from bench import Worker, arrays, load, objective
from harness import processor
from rivals import OURS, RIVALS

OTHERS = ["liblinear", "sklearn", "sgd", "dualgap-pegasos"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="rcv1-like")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--accuracy", type=float, default=1e-3)
    parser.add_argument("--budget", type=float, default=120.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json")
    args = parser.parse_args()
    X, y = load(args.data)
    folder, C = arrays(args.data), args.C

    reference = Worker("dualgap-reference", folder)
    row, _ = reference.fit(C, "auto", args.accuracy / 1000, cap=600, time_limit=300)
    reference.close()
    # Against the lower bound: what counts as reached is proved for the rivals too.
    target = row["dual"] * (1 + args.accuracy)

    workers = {"auto": (Worker("dualgap", folder), "auto", args.accuracy)}
    for rival in OTHERS:
        worker, found = Worker(rival, folder), None
        for family, ladder in (RIVALS | OURS)[rival].families.items():
            for value in ladder:
                row, w = worker.fit(C, family, value, cap=args.budget)
                if w is None:
                    print(f"{rival} {family} {value:g}: {row}", flush=True)
                    break
                P = objective(X, y, C, w)
                print(f"{rival} {family} {value:g}: {row['cpu']:.2f} s, "
                      f"P/D - 1 = {P * (1 + args.accuracy) / target - 1:.1e}",
                      flush=True)  # fmt: skip
                if P <= target:
                    if found is None or row["cpu"] < found[0]:
                        found = row["cpu"], family, value
                    break
                if found is not None and row["cpu"] > found[0]:
                    break
        if found is not None:
            workers[rival] = worker, *found[1:]
    rows = []
    for k in range(args.repeats):
        for name, (worker, family, value) in workers.items():
            row, w = worker.fit(C, family, value, seed=k, cap=4 * args.budget)
            P = None if w is None else objective(X, y, C, w)
            rows.append({"name": name, "setting": family, "value": value,
                         "repeat": k, "primal": P, **row})  # fmt: skip
    print(f"\n{processor()}; {args.data}, C = {C:g}, accuracy {args.accuracy:g}\n\n"
          "| package | setting | seconds | with import and conversion | wall seconds | "
          "P/D - 1 | / auto |\n|---|---|---|---|---|---|---|")  # fmt: skip
    lower = target / (1 + args.accuracy)
    auto = None
    for name, (worker, family, value) in workers.items():
        worker.close()
        some = [r for r in rows if r["name"] == name and "cpu" in r]
        cpu = statistics.median(r["cpu"] for r in some)
        wall = statistics.median(r["wall"] for r in some)
        more = statistics.median(r["import_cpu"] + r["convert_cpu"] for r in some)
        worst = max(r["primal"] for r in some) / lower - 1
        auto = auto or cpu
        print(f"| {name} | {family} {value:g} | {cpu:.3f} | {cpu + more:.3f} | "
              f"{wall:.3f} | {worst:.1e} | {cpu / auto:.2f} |")  # fmt: skip
    for rival in OTHERS:
        if rival not in workers:
            missed = f"not within {args.accuracy:g} in {args.budget:g} s"
            print(f"| {rival} | {missed} | | | | | |")
    if args.json:
        with open(args.json, "w") as file:
            json.dump(rows, file, indent=1)


if __name__ == "__main__":
    main()

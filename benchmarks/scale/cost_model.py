"""Predict the time of a fit on many workers from the counted rounds.

python benchmarks/scale/rounds.py a9a covtype rcv1-like --passes 1 8 --out rounds.json
python benchmarks/scale/cost_model.py rounds.json

seconds = rounds(K) x (passes x entries/K x ENTRY + 2 x hops x 8 d/BANDWIDTH + LATENCY
+ K x TASK), with rounds(K) = a K^b fitted to the counted ones from K = 4 on. One worker
is the same method with K = 1, without messages. The rows are taken to be a multiple of
the set's rows, with the same rounds: an assumption, not a measurement.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np

ENTRY = 1.5e-9  # seconds per stored entry of a pass, in memory
BANDWIDTH = 1.25e9  # bytes per second: 10 Gbit/s
LATENCY = 0.02  # seconds of a round without anything to do
TASK = 1e-3  # seconds of Dask's scheduler and client per piece and round
SETS = {  # stored entries and columns
    "a9a": (451_592, 123),
    "covtype": (1_110_377, 54),
    "rcv1-like": (53_563_265, 47_236),
}
WORKERS = 16, 128, 1000


def hops(K):
    """Vectors on the longest way down to K workers or up again, in a tree of 4."""
    return math.ceil(math.log(K, 4)) if K > 1 else 0


def seconds(rounds, passes, entries, d, K):
    own = passes * entries / K * ENTRY
    if K == 1:
        return rounds * own
    return rounds * (own + 2 * hops(K) * 8 * d / BANDWIDTH + LATENCY + K * TASK)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("rounds", type=Path, nargs="+")
    parser.add_argument("--gap", default="0.001")
    parser.add_argument("--times", type=float, nargs="+", default=[1, 1000, 100_000])
    given = parser.parse_args()
    lines = [line for path in given.rounds for line in json.loads(path.read_text())]
    lines = [line for line in lines if line["rounds"][given.gap]]
    for name in dict.fromkeys(line["data"] for line in lines):
        entries, d = SETS[name]
        for passes in sorted({line["passes"] for line in lines}):
            found = {
                line["K"]: line["rounds"][given.gap]
                for line in lines
                if (line["data"], line["passes"]) == (name, passes)
            }
            several = [K for K in found if K >= 4]
            if len(several) < 3:
                continue
            b, a = np.polyfit(np.log(several), np.log([found[K] for K in several]), 1)
            print(
                f"\n{name}, {passes} pass(es): rounds(K) = {math.exp(a):.3g} K^{b:.2f}"
            )
            print(
                "| rows, times the set | GB | 1 worker, s |",
                " | ".join(f"{K}, s (of that messages)" for K in WORKERS),
                "|",
            )
            print("|" + "---|" * (3 + len(WORKERS)))
            for times in given.times:
                size = entries * times
                row = [
                    f"{times:g}",
                    f"{12 * size / 1e9:.3g}",
                    f"{seconds(found[1], passes, size, d, 1):.3g}",
                ]
                for K in WORKERS:
                    rounds = math.exp(a) * K**b
                    total = seconds(rounds, passes, size, d, K)
                    talk = seconds(rounds, 0, size, d, K)
                    row.append(f"{total:.3g} ({100 * talk / total:.0f} %)")
                print("|", " | ".join(row), "|")  # fmt: skip


if __name__ == "__main__":
    main()

"""Rounds of CoCoA+ to a relative gap against the number of pieces, in one process.

python benchmarks/scale/rounds.py a9a covtype rcv1-like
python benchmarks/scale/rounds.py a9a --acceleration none --passes 1 4 8

The rows are shuffled once and cut into K equal pieces; a cluster with these pieces
makes the same rounds, bit for bit. One line per K and number of local passes: the
rounds to each gap (a dash: not within --most rounds and --limit seconds), and the
largest ||sum A b_k||^2 / sum ||A b_k||^2 of a round, which sigma = K bounds. The lines
also go to --out as JSON.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from itertools import pairwise
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
import datasets

from dualgap.distributed.cocoa import CoCoA, PiecewiseProblem, Rounds
from dualgap.distributed.piece import Piece, Setup
from dualgap.losses import get_loss
from dualgap.training import solve
from tests.distributed.simulation import Simulation

GAPS = 1e-1, 1e-2, 1e-3


def rounds_to_gaps(X, y, K, C, loss, passes, acceleration, most, limit):
    edges = np.linspace(0, len(y), K + 1).astype(int)
    pieces = [
        Piece(X[a:b], y[a:b], index=k) for k, (a, b) in enumerate(pairwise(edges))
    ]
    record = get_loss(loss)
    engine = Simulation(
        pieces, Setup(np.array([-1.0, 1.0]), np.ones(2), C, record, False, 1.0, 0)
    )
    rounds = Rounds(engine, 1)
    seen = {}

    # The estimate of a round is P of the point before and D of the point after it;
    # a gap counts when it is proved, or when every look after it agrees.
    def look(info):
        for gap in GAPS:
            if info.relative_gap <= gap:
                seen.setdefault(gap, info.epoch)

    solution = solve(
        PiecewiseProblem(rounds, 0),
        CoCoA(local_epochs=passes, acceleration=acceleration),
        tol=min(GAPS), max_iter=most, time_limit=limit, on_epoch=look,
    )  # fmt: skip
    return {
        "K": K,
        "passes": passes,
        "rounds": {f"{gap:g}": seen.get(gap) for gap in GAPS},
        "status": solution.certificate.status.label,
        "gap": solution.certificate.relative_gap,
        "primal": solution.certificate.primal,
        "ratio": max(record[4] for record in rounds.records),
        "bytes": float(np.mean([record[7] for record in rounds.records])),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--C", type=float, default=1.0)
    parser.add_argument("--loss", default="hinge")
    parser.add_argument("--pieces", type=int, nargs="+", default=[1, 4, 16, 64, 256])
    parser.add_argument("--passes", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--acceleration", default="nesterov")
    parser.add_argument("--most", type=int, default=1000)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a line")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    lines = []
    for name in given.data:
        X, y = datasets.load(name)
        order = np.random.default_rng(0).permutation(len(y))
        X, y = X[order], y[order]
        print(f"\n{name}, {X.shape[0]} rows, {X.shape[1]} columns, C = {given.C:g}, "
              f"{given.loss}, acceleration {given.acceleration}")  # fmt: skip
        heads = [f"rounds to {gap:g}" for gap in GAPS]
        print("| K | passes |", " | ".join(heads), "| largest ratio | bytes a round |")
        print("|---|---|" + "---|" * (len(GAPS) + 2), flush=True)
        for K in given.pieces:
            for passes in given.passes:
                begun = time.perf_counter()
                line = rounds_to_gaps(
                    X, y, K, given.C, given.loss, passes, given.acceleration,
                    given.most, given.limit,
                )  # fmt: skip
                line |= {"data": name, "C": given.C, "loss": given.loss,
                         "acceleration": given.acceleration,
                         "seconds": time.perf_counter() - begun}  # fmt: skip
                lines.append(line)
                counts = [str(r or "-") for r in line["rounds"].values()]
                print(f"| {K} | {passes} |", " | ".join(counts),
                      f"| {line['ratio']:.2g} | {line['bytes']:.3g} |",
                      flush=True)  # fmt: skip
                assert not math.isnan(line["gap"])
    if given.out:
        given.out.write_text(json.dumps(lines, indent=1))


if __name__ == "__main__":
    main()

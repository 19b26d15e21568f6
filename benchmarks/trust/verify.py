"""Certificates of nasty random problems, checked in exact arithmetic.

    python benchmarks/trust/verify.py --problems 20000 --seed 0 --jobs 2
    python benchmarks/trust/verify.py --classes svc,svr --problems 500
    python benchmarks/trust/verify.py --classes svc --only 123     one problem again

Prints one row per class of attack, and fails if any certificate is false. The classes
are in tests/trust/attacks.py, the exact values in tests/trust/verifier.py.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a process is one of --jobs

import numpy as np

from tests.trust.attacks import ATTACKS, Tally, counts, run

CHUNK = 20
SHOWN = 20  # faults of a class in full
COLUMNS = ("problems", "refused", "certificates", "certified", "false", "worst")


def main() -> int:
    arguments = parse()
    logging.disable(logging.WARNING)
    names = arguments.classes.split(",") if arguments.classes else list(ATTACKS)
    unknown = sorted(set(names) - set(ATTACKS))
    if unknown:
        sys.exit(f"--classes: no {', '.join(unknown)}; there are {', '.join(ATTACKS)}")
    if arguments.only is None:
        wanted = {k: range(n) for k, n in counts(arguments.problems, names).items()}
    else:
        wanted = {k: range(arguments.only, arguments.only + 1) for k in names}
    chunks = [
        (name, problems[first : first + CHUNK], arguments.seed)
        for name, problems in wanted.items()
        for first in range(0, len(problems), CHUNK)
    ]
    tallies = {name: Tally() for name in names}
    begun, told, done = time.perf_counter(), 0.0, 0
    total = sum(map(len, wanted.values()))
    for name, found in results(chunks, arguments.jobs):
        tallies[name].add(found)
        done += found.problems
        for fault in found.faults[:SHOWN]:
            print(f"FALSE {fault}", flush=True)
        seconds = time.perf_counter() - begun
        if seconds > told + 10.0 or done == total:
            told = seconds
            false = sum(t.false for t in tallies.values())
            print(
                f"{done} of {total} problems, {false} false, {told:.0f} s", flush=True
            )
    report = {name: summary(tally) for name, tally in tallies.items()}
    report["all"] = summary(sum_of(list(tallies.values())))
    print(table(report, arguments.markdown))
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(report, indent=1) + "\n")
    return 1 if report["all"]["false"] else 0


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--problems", type=int, default=20_000, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--classes", metavar="A,B", help=", ".join(ATTACKS))
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one of each class")
    parser.add_argument("--json", metavar="FILE", help="write the table and the faults")
    parser.add_argument("--markdown", action="store_true", help="a table to be pasted")
    return parser.parse_args()


def check(name: str, problems: range, seed: int) -> tuple[str, Tally]:
    return name, sum_of([run(name, problem, seed) for problem in problems])


def sum_of(tallies: list[Tally]) -> Tally:
    total = Tally()
    for tally in tallies:
        total.add(tally)
    return total


def results(chunks: list[tuple[str, range, int]], jobs: int) -> Iterator[tuple]:
    if jobs == 1:
        yield from (check(*chunk) for chunk in chunks)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context) as pool:
        for future in as_completed([pool.submit(check, *chunk) for chunk in chunks]):
            yield future.result()


def summary(tally: Tally) -> dict:
    found = {name: getattr(tally, name) for name in COLUMNS}
    room = np.quantile(tally.room or [np.nan], [0.5, 0.9])
    return found | {
        "room_median": room[0],
        "room_90": room[1],
        "seconds": round(tally.seconds, 1),
        "problems_per_second": round(tally.problems / max(tally.seconds, 1e-9), 1),
        "faults": tally.faults,
    }


def table(report: dict, markdown: bool) -> str:
    columns = [name for name in COLUMNS if not (markdown and name == "refused")]
    lines = [["class", *columns, "problems/s"]]
    for name, row in report.items():
        title = ATTACKS[name].title if markdown and name in ATTACKS else name
        cells = [f"{row[column]:,}" for column in columns[:-1]]
        worst = f"{row['worst']:.1e}" if row["worst"] else "-"
        lines.append([title, *cells, worst, str(row["problems_per_second"])])
    if markdown:
        rows = ["| " + " | ".join(line[:-1]) + " |" for line in lines]
        return "\n".join([rows[0], "|---" * len(lines[0][:-1]) + "|", *rows[1:]])
    wide = [max(map(len, column)) for column in zip(*lines, strict=True)]
    room = (
        "room for rounding, relative to P: median {room_median:.0e}, 90 % {room_90:.0e}"
    )
    return "\n".join(
        [
            *(
                "  ".join([line[0].ljust(wide[0]), *map(str.rjust, line[1:], wide[1:])])
                for line in lines
            ),
            room.format(**report["all"]),
        ]
    )


if __name__ == "__main__":
    raise SystemExit(main())

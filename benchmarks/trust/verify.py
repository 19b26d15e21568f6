"""Certificates and statements about optima, checked in exact arithmetic.

    python benchmarks/trust/verify.py --problems 20000 --seed 0 --jobs 2
    python benchmarks/trust/verify.py --classes svc,svr --problems 500
    python benchmarks/trust/verify.py --classes svc --only 123     one problem again
    python benchmarks/trust/verify.py --tables FILE                from --json FILE

Prints one row per class of attack, and fails if anything is false. The classes are in
tests/trust/attacks.py and statements.py, the exact values in tests/trust/verifier.py.
`--tables` writes docs/tables/trust-*.csv.
"""

from __future__ import annotations

import argparse
import csv
import io
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

from tests.trust.statements import ATTACKS, Tally, counts, run

HERE = Path(__file__).resolve().parent
CHUNK = 20
SHOWN = 20  # faults of a class in full
#: Columns of the two tables of the documents.
CERTIFICATES = ("problems", "certificates", "optima", "certified", "false", "worst")
STATEMENTS = ("problems", "statements", "false")
HEADS = {"optima": "against the exact optimum"}
COLUMNS = ("problems", "refused", *CERTIFICATES[1:4], *STATEMENTS[1:], "worst")


def main() -> int:
    arguments = parse()
    if arguments.tables:
        report = json.loads(Path(arguments.tables).read_text())
        for name, text in tables(report).items():
            (HERE.parents[1] / "docs" / "tables" / f"{name}.csv").write_text(text)
        return 0
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
    print(table(report))
    if arguments.json:
        rows = [
            f"{json.dumps(name)}: {json.dumps(row)}" for name, row in report.items()
        ]
        Path(arguments.json).write_text("{\n" + ",\n".join(rows) + "\n}\n")
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
    parser.add_argument("--tables", metavar="FILE", help="write the documents' of it")
    return parser.parse_args()


def check(name: str, problems: range, seed: int) -> tuple[str, Tally]:
    logging.disable(logging.WARNING)
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
    room = np.quantile(tally.room or [0.0], [0.5, 0.9])
    return found | {
        "room_median": room[0],
        "room_90": room[1],
        "seconds": round(tally.seconds, 1),
        "problems_per_second": round(tally.problems / max(tally.seconds, 1e-9), 1),
        "faults": tally.faults,
    }


def table(report: dict) -> str:
    lines = [["class", *COLUMNS, "problems/s"]]
    for name, row in report.items():
        lines.append([name, *cells(row, COLUMNS), str(row["problems_per_second"])])
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


def tables(report: dict) -> dict[str, str]:
    """Return the files in docs/tables."""
    return {
        "trust-certificates": as_csv(report, CERTIFICATES),
        "trust-statements": as_csv(report, STATEMENTS),
    }


def as_csv(report: dict, columns: tuple[str, ...]) -> str:
    """Return the table of the documents of the classes with values in column 1."""
    rows = {ATTACKS[k].title: row for k, row in report.items() if k in ATTACKS}
    rows = {title: row for title, row in rows.items() if row[columns[1]]}
    rows["all"] = {name: sum(row[name] for row in rows.values()) for name in COLUMNS}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(["class", *(HEADS.get(name, name) for name in columns)])
    for title, row in rows.items():
        table.writerow([title.replace("`", ""), *cells(row, columns)])
    return text.getvalue()


def cells(row: dict, columns: tuple[str, ...]) -> list[str]:
    size = f"{row['worst']:.1e}" if row["worst"] else "-"
    return [size if name == "worst" else f"{row[name]:,}" for name in columns]


if __name__ == "__main__":
    raise SystemExit(main())

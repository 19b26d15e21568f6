"""Brute force: bounds on thousands of small odd problems against exact optima.

    python benchmarks/answers/oracle.py [ITEM ...] [--problems N] [--seed K]
    python benchmarks/answers/oracle.py --tables

Runs the checks of `tests/answers/oracles.py`, N (default 3,000) problems each, prints a
line per item, and writes `oracle.json` after each item. Items that are named here
replace only their own lines. Problems with a violation are listed by their numbers:
``oracles.run(item, number, seed)`` repeats one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.answers import oracles

RESULTS = Path(__file__).with_suffix(".json")


def table(results: dict[str, dict[str, object]]) -> str:
    """Return the table of docs/certified-answers.md."""
    lines = [
        "| bounds | problems | checks | violated | not decided by the reference |",
        "|---|---|---|---|---|",
    ]
    for name in oracles.ITEMS:
        if name in results:
            one = results[name]
            lines.append(
                f"| {name} | {one['problems']:,} | {one['checks']:,} | "
                f"{one['violations']:,} | {one['unproved']:,} |"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("items", nargs="*", choices=[*oracles.ITEMS, []], default=[])
    parser.add_argument("--problems", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", action="store_true", help="print the results again")
    given = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if given.tables:
        print(table(results))
        return
    for name in given.items or oracles.ITEMS:
        begun = time.process_time()
        found = [oracles.run(name, k, given.seed) for k in range(given.problems)]
        results[name] = {
            "problems": given.problems,
            **oracles.total(found)._asdict(),
            "violating": [k for k, one in enumerate(found) if one.violations],
            "seconds": round(time.process_time() - begun, 1),
        }
        print(name, results[name], flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

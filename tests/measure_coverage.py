"""Measure which lines and branches the tests run: `make coverage`.

Runs the fast suite and then the whole on a core that counts. Prints every line and
branch that no test runs, and the shares that both suites run. Fails
if a test fails, or if a share is below its threshold. Arguments are passed to pytest.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CORE = [ROOT / "src" / room for room in ("core", "io", "papers")]
BUILD = ROOT / "build" / "coverage"
OBJECTS = BUILD / "objects"
DATA = BUILD / "data"

#: What the compiler makes at a brace, such as a destructor's call, nobody wrote.
NO_CODE = re.compile(r"\s*([{}();,\s]|else|try)*(//.*)?")


class Share(NamedTuple):
    """Share of the lines or branches of one language that the tests ran."""

    kind: str
    ran: int
    total: int
    least: float

    @property
    def percent(self) -> float:
        return 100 * self.ran / self.total

    def __str__(self) -> str:
        note = f"   BELOW {self.least:g} %" if self.percent < self.least else ""
        count = f"{self.ran:>6} of {self.total:>6}"
        return f"{self.kind:16}{count}{self.percent:8.1f} %{note}"


class Source:
    """Run counts of the lines and branches of one file of C++.

    A line or a branch of a template ran if it did in one of its instances. gcov tells
    the instances apart by the name of the function, or leaves out the name and lists
    the branches of all instances one after the other.
    """

    def __init__(self, path: Path) -> None:
        self.name = str(path.relative_to(ROOT))
        self.text = path.read_text().split("\n")
        self.lines: Counter[int] = Counter()
        self.branches: Counter[tuple[int, int, int]] = Counter()
        self.excluded = set(self._excluded())

    def _excluded(self) -> Iterator[int]:
        inside = False
        for number, line in enumerate(self.text, 1):
            inside |= "LCOV_EXCL_START" in line
            if inside or "LCOV_EXCL_LINE" in line or NO_CODE.fullmatch(line):
                yield number
            inside &= "LCOV_EXCL_STOP" not in line

    def add(self, line: dict[str, Any], instances: int) -> None:
        """Add the counts of one line, whose function has so many instances."""
        number = line["line_number"]
        if number in self.excluded:
            return
        self.lines[number] += line["count"]
        written: list[int] = []
        for branch in line["branches"]:
            if branch["throw"]:  # of a call: the other branch is its return
                del written[-1:]
            else:
                written.append(branch["count"])
        # Where `if constexpr` gives instances other branches, each counts for itself.
        each = len(written)
        if not line.get("function_name") and each % (2 * instances) == 0:
            each //= instances
        for place, count in enumerate(written):
            self.branches[number, each, place % each] += count

    def __str__(self) -> str:
        lines = [number for number, count in self.lines.items() if not count]
        left = {number for (number, *_), count in self.branches.items() if not count}
        branches = sorted(left.difference(lines))
        if not lines and not branches:
            return ""
        found = ", ".join(spans(lines)) or "-"
        return f"{self.name}\n    lines: {found}\n    branches in: " + (
            ", ".join(spans(branches)) or "-"
        )


def spans(numbers: list[int]) -> list[str]:
    """Numbers as text, those that follow each other as one span."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][-1] + 1:
            found[-1].append(number)
        else:
            found.append([number])
    return [f"{s[0]}-{s[-1]}" if len(s) > 1 else str(s[0]) for s in found]


def instances(functions: list[dict[str, Any]]) -> Callable[[int], int]:
    """Return the number of instances of the innermost function around a line."""
    spans: Counter[tuple[int, int, int]] = Counter(
        (f["start_line"], f["start_column"], f["end_line"]) for f in functions
    )

    def count(line: int) -> int:
        around = [span for span in spans if span[0] <= line <= span[2]]
        return spans[max(around)] if around else 1

    return count


def sources() -> list[Source]:
    """Add up what gcov finds in the objects of the core."""
    found: dict[str, Source] = {}
    gcov = os.environ.get("GCOV", "gcov")
    for notes in sorted(OBJECTS.rglob("*.gcno")):
        command = [gcov, "--json-format", "--branch-probabilities", "--stdout", notes]
        printed = subprocess.run(command, cwd=BUILD, capture_output=True, check=True)
        for file in json.loads(printed.stdout)["files"]:
            path = Path(file["file"]).resolve()
            if any(room in path.parents for room in CORE):
                source = found.setdefault(str(path), Source(path))
                count = instances(file["functions"])
                for line in file["lines"]:
                    source.add(line, count(line["line_number"]))
    return [found[name] for name in sorted(found)]


def call(module: str, *arguments: str | Path) -> int:
    """Run a module of Python in the checkout; return its exit status."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def measure(lines: float, branches: float) -> list[Share]:
    """Add up what was counted so far."""
    call("coverage", "combine", "--append", "--quiet")
    call("coverage", "json", "--quiet", "-o", DATA / "python.json")
    python = json.loads((DATA / "python.json").read_text())["totals"]
    core: dict[str, list[int]] = defaultdict(list)
    for source in sources():
        core["lines"] += source.lines.values()
        core["branches"] += source.branches.values()
    counts = {name: (sum(map(bool, n)), len(n)) for name, n in core.items()}
    return [
        Share("Python lines", python["covered_lines"], python["num_statements"], lines),
        Share(
            *("Python branches", python["covered_branches"], python["num_branches"]),
            branches,
        ),
        Share("C++ lines", *counts["lines"], lines),
        Share("C++ branches", *counts["branches"], branches),
    ]


def main() -> int:
    shutil.rmtree(DATA, ignore_errors=True)
    (DATA / "python").mkdir(parents=True)
    for counted in OBJECTS.rglob("*.gcda"):
        counted.unlink()
    os.environ["COVERAGE_FILE"] = str(DATA / "python" / "counted")
    failed = 0
    shares = {}
    for suite, selection, lines, branches in (
        ("fast", (), 90, 0),
        ("whole", ("--all",), 97, 90),
    ):
        tests = ("pytest", "-q", "-p", "no:cacheprovider", *selection)
        status = call("coverage", "run", "-m", *tests, *sys.argv[1:])
        failed |= status != 0
        shares[suite] = measure(lines, branches)
    call("coverage", "report")
    print(*filter(None, map(str, sources())), sep="\n")
    for suite, measured in shares.items():
        print(f"{suite} suite", *measured, sep="\n  ")
        failed |= any(share.percent < share.least for share in measured)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

"""Break 40 lines and see whether the fast suite notices: `make mutations`.

`draw.py` says which lines are drawn and how each is changed. The copy of the checkout
under build/mutations holds both the old and the new code of every drawn line; the
environment variable DUALGAP_MUTANT says which one is broken. So everything is compiled
once, for this processor and with -O1. The fast suite then runs once with nothing
broken, and notes which tests run which of these lines. With a line broken, the tests
that run it follow, the quickest first, until one fails.

A change that does not compile is replaced by the next one drawn. A line that no test
runs counts as not noticed.

`--bounds` draws bounds on rounding errors and makes them twice as large, so that they
stay true: `make mutations MUTATIONS="--bounds --count 100"`.
"""

from __future__ import annotations

import argparse
import collections
import concurrent.futures
import itertools
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from dualgap import core

from .draw import Change, drawn, loosened

ROOT = Path(__file__).resolve().parents[2]
COPY = ROOT / "build" / "mutations"
#: The tests, and the changes that each of them runs.
RECORD = COPY / "record.jsonl"
HANGS = "a test that hangs"
#: Numbers of the changes that do not compile.
REFUSED = COPY / "refused.json"

#: Tests of text, which a broken line cannot change.
ABOUT_TEXT = [
    *("test_prose.py", "test_names.py", "test_layers.py", "test_docs.py"),
    *("test_look.py", "test_examples.py"),
]

#: Changes drawn beyond those asked for, in the place of those that do not compile.
SPARE = 8

#: More changes than can ever be drawn at once; it is part of the header.
MOST = 1024

HEADER = f"""
#pragma once
#include <cstdlib>
extern "C" {{
__attribute__((visibility("default"), used)) inline volatile unsigned char
    dualgap_reached[{MOST}] = {{}};
}}
inline const int dualgap_broken =
    std::getenv("DUALGAP_MUTANT") ? std::atoi(std::getenv("DUALGAP_MUTANT")) : -1;
inline bool dualgap_mutant(int number) {{
  dualgap_reached[number] = 1;
  return number == dualgap_broken;
}}
"""

IMPORT = b"from dualgap._mutants import mutant as dualgap_mutant\n"

MODULE = f'''
"""Which drawn lines ran, and which one is broken."""

import atexit
import ctypes
import json
import os

BROKEN = int(os.environ.get("DUALGAP_MUTANT", -1))
_mine = set()


def mutant(number):
    _mine.add(number)
    return number == BROKEN


def _table():
    from dualgap import core

    library = ctypes.CDLL(core._core.__file__)
    return (ctypes.c_ubyte * {MOST}).in_dll(library, "dualgap_reached")


def add(found):
    _mine.update(found)


def reached():
    """Return what ran since the last call."""
    table = _table()
    found = _mine | {{number for number in range({MOST}) if table[number]}}
    ctypes.memset(table, 0, {MOST})
    _mine.clear()
    return found


def _of_a_program(test):
    with open(os.environ["MUTANTS_RECORD"], "a") as file:
        file.write(json.dumps(["test", test, 0.0, sorted(reached())]) + "\\n")


if "MUTANTS_RECORD" in os.environ and "PYTEST_CURRENT_TEST" in os.environ:
    atexit.register(
        _of_a_program, os.environ["PYTEST_CURRENT_TEST"].rpartition(" ")[0]
    )
'''


def run(
    command: list[str], log: Path, extra: dict[str, str], seconds: float = 0.0
) -> int | None:
    """Return the status of a program, or None if it took too long."""
    environment = {
        **os.environ,
        **extra,
        "PYTHONPATH": f"{COPY / 'src'}:{COPY / 'tests' / 'mutations'}",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONHASHSEED": "0",
    }

    def limit() -> None:
        if seconds:  # of the processor; and a line broken may ask for any memory
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 5))
            resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))

    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, cwd=COPY, env=environment,
            start_new_session=True, preexec_fn=limit,
        )  # fmt: skip
        try:
            return process.wait(10 * seconds + 300 if seconds else None)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, 9)
                process.wait()


def write(changes: dict[int, Change]) -> None:
    """Make the copy, with both codes of the changes; leave files that are right."""
    by_file = collections.defaultdict(list)
    for number, change in changes.items():
        by_file[change.file].append((change.begin, change.end, number, change))
    names = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
    texts = {name: (ROOT / name).read_bytes() for name in names.split("\n")[:-1]}
    for file, places in by_file.items():
        name = str(file.relative_to(ROOT))
        for begin, end, number, change in sorted(places, reverse=True):
            old = texts[name]
            texts[name] = old[:begin] + change.switched(number).encode() + old[end:]
        if file.suffix == ".py":
            line = b"from __future__ import annotations\n"
            assert line in texts[name]
            texts[name] = texts[name].replace(line, line + IMPORT)
    texts["mutants.hpp"] = HEADER.encode()
    texts["src/dualgap/_mutants.py"] = MODULE.encode()
    for name, text in texts.items():
        file = COPY / name
        if not file.exists() or file.read_bytes() != text:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(text)


def build() -> str:
    """Compile the core for this processor; return the compiler's complaint."""
    folder, log = COPY / "build", COPY / "build.log"
    configure = [
        *("cmake", "-S", str(COPY), "-B", str(folder), "-G", "Ninja"),
        "-DCMAKE_BUILD_TYPE=None",
        f"-DCMAKE_CXX_FLAGS=-O1 -w -include {COPY / 'mutants.hpp'}",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    if not folder.exists() and run(configure, log, {}):
        sys.exit(log.read_text())
    if run(["cmake", "--build", str(folder), "--", "-k", "0"], log, {}):
        return log.read_text(errors="replace")
    for module in folder.glob("*.so"):
        shutil.copy(module, COPY / "src" / "dualgap")
    return ""


def prepare(count: int, draw: Iterator[Change]) -> dict[int, Change]:
    """Draw, write and compile so many changes; return them by number."""
    changes = dict(enumerate(itertools.islice(draw, count + SPARE)))
    if REFUSED.exists():
        for number in json.loads(REFUSED.read_text()):
            changes.pop(number)
    while True:
        write(changes)
        complaint = build()
        if not complaint:
            return dict(list(changes.items())[:count])
        wrong = {
            (Path(name).resolve(), int(line))
            for name, line in re.findall(r"^(\S+?):(\d+):\d+: error", complaint, re.M)
        }
        bad = [k for k, c in changes.items() if (in_copy(c.file), c.line) in wrong]
        if not bad or len(changes) - len(bad) < min(count, len(changes) // 2):
            sys.exit(complaint)
        for k in bad:
            print(f"{k:3} {place(changes[k])}  {changes[k].new}\n      no C++")
            changes.pop(k)
        known = json.loads(REFUSED.read_text()) if REFUSED.exists() else []
        REFUSED.write_text(json.dumps([*known, *bad]))


def in_copy(file: Path) -> Path:
    return COPY / file.relative_to(ROOT)


def pytest(*arguments: str) -> list[str]:
    ignored = [f"--ignore=tests/{name}" for name in ABOUT_TEXT]
    return [
        *(sys.executable, "-m", "pytest", "-q", "-p", "mutation_plugin"),
        *("-p", "no:randomly", "-p", "no:cacheprovider", *ignored, *arguments),
    ]


def tests_of(changes: dict[int, Change]) -> tuple[dict[int, list[str]], dict]:
    """Return the tests that run each line, the quickest first, and their seconds."""
    seconds: dict[str, float] = {}
    failed: set[str] = set()
    tests = collections.defaultdict(set)
    files = collections.defaultdict(set)
    for line in RECORD.read_text().split("\n")[:-1]:
        kind, name, took, found = json.loads(line)
        if kind == "failed":
            failed.add(name)
            continue
        if kind == "test":
            seconds[name] = max(took, seconds.get(name, 0.0))
        for number in found:
            (tests if kind == "test" else files)[number].add(name)
    for number in changes:
        tests[number] |= {
            name
            for name in seconds
            if name.partition("::")[0] in files[number] or "" in files[number]
        }
    for name in sorted(failed):
        print(f"fails with nothing broken, and is left out: {name}")
    return {
        number: sorted((tests[number] & set(seconds)) - failed, key=seconds.__getitem__)
        for number in changes
    }, seconds


def noticed(number: int, tests: list[str], seconds: dict[str, float]) -> str:
    """Return the name of the first test that fails, or nothing.

    A test counts only if it passes with nothing broken.
    """
    while test := first_failure(number, tests, seconds):
        meant = matching(test, tests)  # none: it crashed or hung
        if not meant or not first_failure(-1, meant, seconds, number):
            return test
        print(f"fails with nothing broken, and is left out: {test}", flush=True)
        tests = [name for name in tests if name not in set(meant)]
    return ""


def matching(test: str, tests: list[str]) -> list[str]:
    """Return the tests that pytest's short summary may mean, which ends at a blank."""
    return [name for name in tests if name == test] or [
        name for name in tests if name.startswith(test)
    ]


def first_failure(
    number: int, tests: list[str], seconds: dict[str, float], log: int | None = None
) -> str:
    if not tests:
        return ""
    log = number if log is None else log
    output, names = COPY / f"{log}.{number}.log", COPY / f"{log}.{number}.tests"
    names.write_text(json.dumps({name: seconds[name] for name in tests}))
    files = sorted({name.partition("::")[0] for name in tests})
    limit = 60.0 + 10.0 * sum(seconds[name] for name in tests)
    variables = {"DUALGAP_MUTANT": str(number), "MUTANTS_TESTS": str(names)}
    status = run(pytest("-x", *files), output, variables, limit)
    if status == 0:
        return ""
    if status in (None, -signal.SIGXCPU):
        return HANGS
    text = output.read_text(errors="replace")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", text, re.M)
    return failed[1] if failed else f"status {status}"


def place(change: Change) -> str:
    return f"{change.file.relative_to(ROOT)}:{change.line}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--bounds", action="store_true", help="bounds that become twice as large"
    )
    parser.add_argument("--tests", nargs="+", default=[], help="these alone")
    parser.add_argument("--draw", action="store_true", help="print the lines and end")
    parser.add_argument(
        "--again", action="store_true", help="as the last run found the tests' lines"
    )
    parser.add_argument("--only", type=int, nargs="+", help="these numbers alone")
    options = parser.parse_args()

    draw = (loosened if options.bounds else drawn)(ROOT, core.variant, options.seed)
    if options.draw:
        for change in itertools.islice(draw, options.count):
            print(f"{place(change)}\n    {change.old}\n    {change.new}")
        return
    start = time.perf_counter()
    changes = prepare(options.count, draw)
    print(f"compiled after {time.perf_counter() - start:.0f} s", flush=True)
    if not options.again:
        RECORD.unlink(missing_ok=True)
        command = pytest("-n", str(options.jobs), *options.tests)
        run(command, COPY / "tests.log", {"MUTANTS_RECORD": str(RECORD)})
    tests, seconds = tests_of(changes)
    print(f"{len(seconds)} tests after {time.perf_counter() - start:.0f} s", flush=True)

    if options.only:
        changes = {k: changes[k] for k in options.only}
    missed = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        found = {pool.submit(noticed, k, tests[k], seconds): k for k in changes}
        for done in concurrent.futures.as_completed(found):
            number, test = found[done], done.result()
            change = changes[number]
            missed += not test
            answer = f"noticed by {test}" if test else "NOT NOTICED"
            print(
                f"{number:3} {place(change)}  {' '.join(change.new.split())}\n"
                f"      {answer} (of {len(tests[number])})",
                flush=True,
            )
    print(f"{len(changes) - missed} of {len(changes)} noticed")
    print(f"took {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()

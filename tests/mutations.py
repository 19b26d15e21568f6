"""Break lines at random and see whether the fast suite notices: `make mutations`.

Lines are drawn from the headers of the core and from `problems` and `loop`; in each,
one sign, bound, factor or connective is changed. The copy of the checkout under
build/mutations is compiled anew and tested until the first failure. What does not
compile is drawn again, and so is a change listed under ``NO_DIFFERENCE``. Lines that
nobody noticed are printed: a test is missing there, or the change means nothing (a
faster path taken more often, a block of another size) and belongs into that list.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
COPY = ROOT / "build" / "mutations"

#: What is changed into what; blanks keep template brackets and pointers out of it.
CHANGES = [
    *((" < ", " <= "), (" <= ", " < "), (" > ", " >= "), (" >= ", " > ")),
    *((" + ", " - "), (" - ", " + "), (" += ", " -= "), (" -= ", " += ")),
    *((" * ", " / "), (" / ", " * "), ("= -", "= "), ("return -", "return ")),
    *(("0.5", "0.25"), ("2.0", "3.0"), ("1.0", "1.5"), ("T(2)", "T(3)")),
    *(("std::min(", "std::max("), ("std::max(", "std::min(")),
    *(("np.minimum(", "np.maximum("), ("np.maximum(", "np.minimum(")),
    *((" && ", " || "), (" || ", " && "), (" and ", " or "), (" or ", " and ")),
    *((" == ", " != "), (" != ", " == ")),
]

#: Changed lines that give the same results as before, with the reason. A list of
#: changes, not of places: every other change of these lines is still tried.
NO_DIFFERENCE = {
    "const Index room = (postings_->largest() + tile::kPanel + 1) / tile::kPanel;": (
        "a buffer with room for one panel more"
    ),
    "cache(end + begin, end - begin, capacity) {}": "a table with room for more rows",
    "if (shared(some * (d + 16) * (last + p))) return;": (
        "threads share smaller jobs too"
    ),
    "const Index parts = std::clamp<Index>(points.n() * kWorth, 1, team.shares());": (
        "threads share smaller jobs too"
    ),
    "x = x >= kLeast ? x : kLeast;": "a tie: both sides give kLeast",
    "return points.d() >= ScatteredBlock<T>::kFeatures;": (
        "a tie between two ways to the same sums"
    ),
}

#: Modules of the training loop.
LOOP = ["fit", "loop", "schedule"]

#: The quickest to notice come first.
TESTS = [
    *("tests/test_core.py", "tests/solvers", "tests/kernels", "tests/test_problem.py"),
    *("tests/training/test_loop.py", "tests/trust", "tests"),
]


class Mutation(NamedTuple):
    file: Path
    line: int
    old: str
    new: str


def code_lines(file: Path) -> list[tuple[int, str]]:
    """Lines that hold code alone: no comments, no text, no preprocessor."""
    text = file.read_text()
    if file.suffix == ".py":
        text = re.sub(r'"""(.|\n)*?"""', lambda m: "\n" * m[0].count("\n"), text)
    return [
        (number, line)
        for number, line in enumerate(text.split("\n"))
        if not re.search(r'#|//|"|\'|\b(import|static_assert|template)\b', line)
    ]


def candidates() -> list[tuple[Path, int, list[tuple[str, str]]]]:
    files = [
        *sorted((COPY / "src" / "core").rglob("*.hpp")),
        *sorted((COPY / "src" / "dualgap" / "problems").glob("*.py")),
        *sorted((COPY / "src" / "dualgap" / "data").glob("*.py")),
        *(COPY / "src" / "dualgap" / "training" / f"{name}.py" for name in LOOP),
    ]
    found = []
    for file in files:
        for number, line in code_lines(file):
            if changes := [(old, new) for old, new in CHANGES if old in line]:
                found.append((file, number, changes))
    return found


def run(command: list[str], log: Path, timeout: float | None = None) -> int:
    environment = {
        **os.environ,
        "PYTHONPATH": str(COPY / "src"),
        "OPENBLAS_NUM_THREADS": "1",
    }
    with log.open("wb") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=file, cwd=COPY, env=environment,
            start_new_session=True,
        )  # fmt: skip
        try:
            return process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.wait()
            return -1


def build() -> bool:
    """Compile one variant of the core, plainly optimised, and put it in its place."""
    folder = COPY / "build"
    configure = [
        *("cmake", "-S", str(COPY), "-B", str(folder), "-G", "Ninja"),
        *("-DCMAKE_BUILD_TYPE=None", "-DCMAKE_CXX_FLAGS=-O1"),
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    log = COPY / "build.log"
    if not folder.exists() and run(configure, log):
        sys.exit(log.read_text())
    if run(["cmake", "--build", str(folder)], log):
        return False
    for module in folder.glob("*.so"):
        shutil.copy(module, COPY / "src" / "dualgap")
    return True


def noticed(jobs: int, limit: float) -> str:
    """Name of the first test that fails, or nothing."""
    log = COPY / "tests.log"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", str(jobs), "-p"]
    status = run([*command, "no:randomly", *TESTS], log, limit)
    if status == 0:
        return ""
    if status == -1:
        return "a test that hangs"
    failed = re.search(
        r"^(?:FAILED|ERROR) (\S+)", log.read_text(errors="replace"), re.M
    )
    return failed[1] if failed else f"status {status}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--after", type=int, default=0, help="places to pass over")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of a run")
    options = parser.parse_args()

    if not COPY.exists():
        names = subprocess.check_output(["git", "ls-files"], cwd=ROOT, text=True)
        for name in names.split("\n")[:-1]:
            (COPY / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, COPY / name)
    if not build():
        sys.exit((COPY / "build.log").read_text())
    if found := noticed(options.jobs, options.limit):
        sys.exit(f"before any change: {found}\n{(COPY / 'tests.log').read_text()}")

    draw = random.Random(options.seed)
    places = candidates()
    draw.shuffle(places)
    tried = missed = 0
    for at, (file, number, changes) in enumerate(places):
        old, new = draw.choice(changes)
        whole = file.read_text()
        lines = whole.split("\n")
        lines[number] = lines[number].replace(old, new, 1)
        if at < options.after or lines[number].strip() in NO_DIFFERENCE:
            continue
        file.write_text("\n".join(lines))
        compiles = build()  # even of Python: the core may still be the one before
        found = noticed(options.jobs, options.limit) if compiles else ""
        file.write_text(whole)
        if not compiles:
            continue
        tried += 1
        missed += not found
        place = f"{file.relative_to(COPY)}:{number + 1}"
        print(f"{tried:3} ({at}) {place}  {lines[number].strip()}", flush=True)
        print(f"      {f'noticed by {found}' if found else 'NOT NOTICED'}", flush=True)
        if tried == options.count:
            break
    print(f"{tried - missed} of {tried} noticed")


if __name__ == "__main__":
    main()

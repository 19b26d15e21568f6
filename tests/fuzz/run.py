"""Fuzz the parser and the Python surface: `make fuzz`.

`python tests/fuzz/run.py TARGET [libFuzzer's options]` fuzzes one target of surface.py
under atheris. Coverage is that of the package's Python code. Seeds are random bytes,
because the targets make whole inputs of any; what is found comes as a file crash-*,
whose bytes `python tests/fuzz/surface.py TARGET FILE` tries again.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import atheris

with atheris.instrument_imports(include=["dualgap"]):
    import surface

TESTS = Path(__file__).resolve().parents[1]
BUILD = TESTS.parent / "build" / "fuzz"
#: Each target ends after that many runs or seconds, whichever is reached first.
LIMITS = ["-runs=100000", "-max_total_time=300"]
LIMITS += ["-max_len=512", "-len_control=0", "-timeout=30"]
PARSER = [f"-runs={os.environ.get('FUZZ_RUNS', 10_000_000)}", "-max_len=256"]
PARSER += ["-timeout=10", f"-dict={TESTS / 'fuzz' / 'svmlight.dict'}"]


def fuzz(target: str) -> None:
    counts = [0, 0]

    def one(data: bytes) -> None:
        counts[surface.try_one(target, data)] += 1
        if sum(counts) % 10_000 == 0:
            print(f"{target}: {counts[0]} refused, {counts[1]} accepted", flush=True)

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


def fuzz_all() -> int:
    """Fuzz the compiled parser, then each target in a process of its own."""
    corpora = [BUILD / "seen", BUILD / "found", TESTS / "corpus" / "svmlight"]
    commands = {"parser": [BUILD / "fuzzer", *PARSER, *corpora]}
    for target in surface.TARGETS:
        command = [sys.executable, __file__, target, *LIMITS, BUILD / target]
        commands[target] = command
    failed = 0
    for name, command in commands.items():
        (BUILD / (name if name != "parser" else "seen")).mkdir(exist_ok=True)
        artifacts = f"-artifact_prefix={BUILD}/{name}-"
        failed += subprocess.run([*map(str, command), artifacts]).returncode != 0
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(fuzz(sys.argv.pop(1)) if len(sys.argv) > 1 else fuzz_all())

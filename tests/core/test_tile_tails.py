"""The tile's tails under the compiler's sanitizers: tile_tails.cpp, compiled here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from dualgap import core

from ..conftest import unsanitized

_SOURCE = Path(__file__).with_name("tile_tails.cpp")
_HEADERS = _SOURCE.parents[2] / "src" / "core"
_SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]


def _compiler() -> str:
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    pytest.skip("no C++ compiler (c++, g++, clang++) on the path")


@unsanitized("it compiles with sanitizers itself")
def test_no_tail_leaves_its_buffer(tmp_path):
    compiler = _compiler()
    empty = tmp_path / "empty.cpp"
    empty.write_text("int main() {}\n")
    probe = subprocess.run(
        [compiler, *_SANITIZE, str(empty), "-o", str(tmp_path / "empty")],
        capture_output=True,
        text=True,
    )
    if probe.returncode or subprocess.run([str(tmp_path / "empty")]).returncode:
        pytest.skip(f"{compiler} has no address and undefined sanitizers")
    level = [] if core.variant == "generic" else [f"-march={core.variant}"]
    program = tmp_path / "tile_tails"
    subprocess.run(
        [compiler, "-std=c++20", "-O0", *level, *_SANITIZE, f"-I{_HEADERS}",
         str(_SOURCE), "-pthread", "-o", str(program)],
        check=True,
    )  # fmt: skip
    done = subprocess.run([str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "every tail passed\n"

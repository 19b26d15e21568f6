"""The C++ test programs of the core, compiled and run for this processor.

`make test-arm` runs the same programs for 64-bit ARM.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import zipfile

import pytest

from dualgap import core

from ..conftest import ROOT, unsanitized

pytestmark = [
    pytest.mark.long,
    unsanitized("these programs are compiled with sanitizers of their own"),
]

_TESTS = ROOT / "tests"
_SANITIZE = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
_FUZZING = "-DFUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION"
_LEVEL = [] if core.variant == "generic" else [f"-march={core.variant}"]


@pytest.fixture(scope="module")
def compiler():
    for name in (os.environ.get("CXX", ""), "c++", "g++", "clang++"):
        found = shutil.which(name) if name else None
        if found:
            return found
    pytest.skip("no C++ compiler (c++, g++, clang++) on the path")


@pytest.fixture
def compile_program(compiler, tmp_path):
    """Return a function that compiles sources below tests/ with more flags."""

    def compile_program(flags, *sources):
        built = subprocess.run(
            [compiler, "-std=c++20", *flags, f"-I{ROOT / 'src' / 'core'}",
             f"-I{ROOT / 'src' / 'io'}", *map(str, sources),
             "-pthread", "-o", str(tmp_path / "program")],
            capture_output=True, text=True,
        )  # fmt: skip
        assert built.returncode == 0, built.stderr
        return tmp_path / "program"

    return compile_program


@pytest.fixture
def sanitize(compiler, tmp_path):
    """Return the sanitizers' flags, if programs that have them run."""
    empty = tmp_path / "empty.cpp"
    empty.write_text("int main() {}\n")
    probe = subprocess.run(
        [compiler, *_SANITIZE, str(empty), "-o", str(tmp_path / "empty")],
        capture_output=True,
        text=True,
    )
    if probe.returncode or subprocess.run([str(tmp_path / "empty")]).returncode:
        pytest.skip(f"{compiler} has no address and undefined sanitizers")
    return _SANITIZE


def output(program, *arguments):
    done = subprocess.run(
        [program, *map(str, arguments)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_no_tail_of_the_tile_leaves_its_buffer(compile_program, sanitize):
    program = compile_program(
        ["-O0", *_LEVEL, *sanitize], _TESTS / "core" / "tile_tails.cpp"
    )
    assert output(program) == "every tail passed\n"


def test_allocations_that_fail_lose_nothing(compile_program):
    """Without sanitizers, which have an allocator of their own."""
    program = compile_program(
        ["-O0", *_LEVEL], _TESTS / "core" / "failing_allocations.cpp"
    )
    assert output(program) == "every failure was told, and nothing was lost\n"


def test_threads_change_no_result(compile_program, sanitize):
    program = compile_program(
        ["-O0", _FUZZING, *_LEVEL, *sanitize], _TESTS / "core" / "threads.cpp"
    )
    assert output(program) == "no thread got in the way of another\n"


def test_the_parser_reads_its_corpus(compile_program, sanitize, tmp_path):
    program = compile_program(
        ["-O0", _FUZZING, *_LEVEL, *sanitize],
        _TESTS / "fuzz" / "svmlight.cpp",
        _TESTS / "fuzz" / "read_corpus.cpp",
    )
    corpus, found = _TESTS / "corpus" / "svmlight", tmp_path / "found"
    with zipfile.ZipFile(corpus.with_suffix(".zip")) as archive:
        archive.extractall(found)
    inputs = sum(1 for folder in (corpus, found) for _ in folder.iterdir())
    assert output(program, corpus, found) == f"{inputs} inputs were read\n"


def test_sums_of_certificates_are_within_their_bounds(compile_program):
    """Optimised as the core is, so that the compiler fuses what it does there."""
    program = compile_program(
        ["-O3", "-fno-math-errno", "-fno-trapping-math", *_LEVEL],
        _TESTS / "core" / "certificate_sums.cpp",
    )
    assert output(program) == "every sum is within its bound\n"


@pytest.mark.parametrize("level", ["x86-64", "x86-64-v2", None])
def test_checksums_of_every_processor(compile_program, level):
    """The lowest level of x86-64 has tables alone, the next one the instruction."""
    if level and core.variant == "generic":
        pytest.skip("not an x86-64 build")
    program = compile_program(
        [f"-march={level}"] if level else [], _TESTS / "core" / "checksums.cpp"
    )
    assert output(program) == "every checksum is right\n"

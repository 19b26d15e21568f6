"""Files and functions of the package stay small, and `Any` becomes rarer."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

import pytest

import dualgap

from .conftest import OVER, ROOT

PACKAGE = Path(dualgap.__file__).parent
FILES = [path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")]

#: Uses of `Any` as a type. They may only fall.
ANY = 169


@functools.cache
def tree_of(name):
    """Syntax tree of a file of the package."""
    return ast.parse((PACKAGE / name).read_text("utf-8"))


#: Numbers that nobody tunes: of arithmetic, of formats, and exit codes.
FIXED = {
    "answers/bias.py": {"_INSIDE"},
    "answers/kernel_regions.py": {"_OF_EXPONENTIALS"},
    "checks.py": {"_SMALLEST_COST", "_LARGEST_COST"},
    "cli/__init__.py": {"NOT_CERTIFIED", "INTERRUPTED", "CLOSED"},
    "data/conversion.py": {"_LARGEST_WHOLE"},
    "data/description.py": {"PIECE", "HEADER"},
    "data/opening.py": {"START"},
    "estimators/drop_ins.py": {"_CRAMMER_SINGER"},
    "kernels/gram.py": {"_MEGABYTE", "_PER_ROW", "_PER_CACHED_ROW"},
    "kernels/table.py": {"_VALUE", "_CACHED"},
    "memory.py": {"BUFFER", "THREAD"},
    "models/onnx_graph.py": {"_OPSET", "_LARGEST"},
    "models/peer_files.py": {"_LARGEST"},
    "models/proofs.py": {"_BITS"},
    "problems/logistic.py": {"FUNCTIONS", "LARGEST", "_SMALL"},
    "solvers/base.py": {"TINY"},
    "solvers/kernel/block.py": {"_SLACK"},
    "training/batch.py": {"_END"},
}


def is_number(node) -> bool:
    """Whether an expression consists of numbers."""
    inner = ast.Tuple | ast.BinOp | ast.UnaryOp | ast.operator | ast.unaryop | ast.Load
    nodes = list(ast.walk(node))
    numbers = [n for n in nodes if isinstance(n, ast.Constant)]
    return all(isinstance(n, inner | ast.Constant) for n in nodes) and all(
        isinstance(n.value, int | float) for n in numbers
    )


def numbers_of(tree):
    """Yield names and lines of the upper-case numbers of a module."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and is_number(node.value):
            for name in ast.walk(node.targets[0]):
                if isinstance(name, ast.Name) and name.id.isupper():
                    yield name.id, node.lineno


def documented(lines, number):
    return lines[number - 2].strip().startswith("#: ")


@pytest.mark.parametrize("name", sorted(FILES))
def test_tuning_constants_are_documented(name):
    """Several are the fields of a frozen record; a single one may stand alone."""
    lines = (PACKAGE / name).read_text("utf-8").splitlines()
    numbers, fixed = dict(numbers_of(tree_of(name))), FIXED.get(name, set())
    assert fixed <= numbers.keys(), "FIXED names what is not there"
    tuned = numbers.keys() - fixed
    assert len(tuned) <= 1, "gather them in a record ...Settings"
    assert all(documented(lines, numbers[constant]) for constant in tuned)
    for node in tree_of(name).body:
        if isinstance(node, ast.ClassDef) and node.name.endswith("Settings"):
            decorators = [ast.unparse(one) for one in node.decorator_list]
            assert decorators == ["dataclass(frozen=True)"], node.name
            fields = [n for n in node.body if isinstance(n, ast.AnnAssign)]
            assert all(documented(lines, n.lineno) for n in fields), node.name


#: Headers of the core with coefficients of polynomials and powers of ten.
COEFFICIENTS = {"core/simd.hpp", "core/class_probabilities.hpp", "io/decimal.hpp"}
SOURCES = Path(__file__).parents[1] / "src"
#: Most lines of the C++ sources of each room. They may only fall.
CORE_ROOMS = {"core": 15458, "io": 1124, "papers": 2002}
HEADERS = {
    path.relative_to(SOURCES).as_posix(): path.read_text("utf-8")
    for path in sorted(SOURCES.rglob("*.hpp"))
}
FLOATING = re.compile(r"(?<![\w.])(\d+\.\d*(?:e[-+]?\d+)?|\d+e[-+]?\d+)", re.IGNORECASE)


def is_arithmetic(number) -> bool:
    """Whether a number of C++ code is a half or a whole number below ten."""
    return number == 0.5 or (number < 10.0 and number.is_integer())


@pytest.mark.parametrize("name", sorted(HEADERS.keys() - COEFFICIENTS))
def test_numbers_of_the_core_have_names(name):
    """Each stands in a `constexpr`; tuning constants stand at the head of the file."""
    bare = [
        (number, line.strip())
        for number, line in enumerate(HEADERS[name].splitlines(), 1)
        for literal in FLOATING.findall(re.sub(r'"[^"]*"', "", line.split("//")[0]))
        if "constexpr" not in line and not is_arithmetic(float(literal))
    ]
    assert bare == [], "give the number a name"


@pytest.mark.parametrize("name", HEADERS)
def test_tuning_constants_of_the_core_are_documented(name):
    """A struct `...Tuning` has a comment above each line of constants."""
    for struct in re.findall(r"struct \w+Tuning \{\n(.*?)\n\};", HEADERS[name], re.S):
        before = "{"
        for line in struct.splitlines():
            assert line.startswith("  //") or "constexpr" in line, line
            assert line.startswith("  //") or before.startswith("  //"), line
            before = line


@pytest.mark.parametrize("room", CORE_ROOMS)
def test_rooms_of_the_core_shrink(room):
    files = [*(SOURCES / room).rglob("*.hpp"), *(SOURCES / room).rglob("*.cpp")]
    lines = sum(len(file.read_text("utf-8").splitlines()) for file in files)
    assert lines <= CORE_ROOMS[room], OVER.format("CORE_ROOMS")


def test_headers_are_short():
    lengths = {name: len(text.splitlines()) for name, text in HEADERS.items()}
    assert {name: size for name, size in lengths.items() if size > 550} == {}, (
        "split it"
    )


def test_the_core_includes_nothing_of_the_other_rooms():
    """`core` includes neither `io` nor `papers`, and these not each other."""
    for path in SOURCES.rglob("*.[ch]pp"):
        room = path.relative_to(SOURCES).parts[0]
        for name in re.findall(r'#include "(.*)"', path.read_text("utf-8")):
            included = (path.parent / name).resolve().relative_to(SOURCES).parts[0]
            assert included in ("core", room), (path, name)


def lines_of(function):
    """Return the lines of a function, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    docstring = function.body[0]
    return lines - (docstring.end_lineno - docstring.lineno + 1)


def test_files_are_short():
    lengths = {
        name: len((PACKAGE / name).read_text("utf-8").splitlines()) for name in FILES
    }
    assert {name: size for name, size in lengths.items() if size > 600} == {}, (
        "split it"
    )
    assert lengths["training/loop.py"] <= 320
    assert len((ROOT / "Makefile").read_text("utf-8").splitlines()) <= 120


#: Most lines of the rooms that are to become smaller. They may only fall.
ROOMS = {
    "answers": 2329,
    "cli": 4213,
    "data": 5843,
    "distributed": 2610,
    "estimators": 11354,
    "kernels": 1634,
    "models": 6319,
    "papers": 3300,
    "plot": 1066,
    "problems": 6960,
    "solvers": 11955,
    "training": 2835,
}


@pytest.mark.parametrize("room", sorted(ROOMS))
def test_rooms_shrink(room):
    files = (PACKAGE / room).rglob("*.py")
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    assert lines <= ROOMS[room], OVER.format("ROOMS")


#: Most lines of the tests and of the benchmarks. They may only fall.
SCRIPTS = {"tests": 59359, "benchmarks": 9492}


@pytest.mark.parametrize("folder", SCRIPTS)
def test_scripts_shrink(folder):
    files = (ROOT / folder).rglob("*.py")
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in files)
    assert lines <= SCRIPTS[folder], OVER.format("SCRIPTS")


def test_functions_are_short():
    lengths = {
        (name, node.name): lines_of(node)
        for name in FILES
        for node in ast.walk(tree_of(name))
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: size for name, size in lengths.items() if size > 80} == {}, "split"


def test_any_is_used_less_and_less():
    uses = sum(
        isinstance(node, ast.Name) and node.id == "Any"
        for name in FILES
        for node in ast.walk(tree_of(name))
    )
    assert uses <= ANY, "give the new values a type; " + OVER.format("ANY")

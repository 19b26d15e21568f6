"""Files and functions of the package stay small, and `Any` becomes rarer."""

from __future__ import annotations

import ast
from pathlib import Path

import dualgap

PACKAGE = Path(dualgap.__file__).parent
TREES = {
    path.relative_to(PACKAGE).as_posix(): ast.parse(path.read_text("utf-8"))
    for path in sorted(PACKAGE.rglob("*.py"))
}

#: Files that are longer than the limit, with their lengths. These may only fall.
LONG_FILES: dict[str, int] = {
    "models/files.py": 606,
    "problems/binary.py": 678,
}

#: Functions that are longer than the limit, with their lines. These may only fall.
LONG_FUNCTIONS: dict[tuple[str, str], int] = {}

#: Uses of `Any` as a type. They may only fall.
ANY = 1680


def lines_of(function):
    """Return the lines of a function, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    docstring = function.body[0]
    return lines - (docstring.end_lineno - docstring.lineno + 1)


def over(found, limit, known):
    """Return the sizes over the limit, without known ones that have not risen."""
    large = {name: size for name, size in found.items() if size > limit}
    return {name: size for name, size in large.items() if size > known.get(name, 0)}


def test_files_are_short():
    lengths = {
        name: len((PACKAGE / name).read_text("utf-8").splitlines()) for name in TREES
    }
    assert over(lengths, 600, LONG_FILES) == {}
    assert all(lengths[name] > 600 for name in LONG_FILES)
    assert lengths["training/loop.py"] <= 320


def test_functions_are_short():
    lengths = {
        (name, node.name): lines_of(node)
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert over(lengths, 80, LONG_FUNCTIONS) == {}
    assert all(lengths[name] > 80 for name in LONG_FUNCTIONS)


def test_any_is_used_less_and_less():
    uses = sum(
        isinstance(node, ast.Name) and node.id == "Any"
        for tree in TREES.values()
        for node in ast.walk(tree)
    )
    assert uses <= ANY, "give the new values a type"

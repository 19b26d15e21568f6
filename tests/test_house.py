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

#: Uses of `Any` as a type. They may only fall.
ANY = 458


def lines_of(function):
    """Return the lines of a function, without its docstring."""
    lines = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function, clean=False) is None:
        return lines
    docstring = function.body[0]
    return lines - (docstring.end_lineno - docstring.lineno + 1)


def test_files_are_short():
    lengths = {
        name: len((PACKAGE / name).read_text("utf-8").splitlines()) for name in TREES
    }
    assert {name: size for name, size in lengths.items() if size > 600} == {}
    assert lengths["training/loop.py"] <= 320


def test_functions_are_short():
    lengths = {
        (name, node.name): lines_of(node)
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
    }
    assert {name: size for name, size in lengths.items() if size > 80} == {}


def test_any_is_used_less_and_less():
    uses = sum(
        isinstance(node, ast.Name) and node.id == "Any"
        for tree in TREES.values()
        for node in ast.walk(tree)
    )
    assert uses <= ANY, "give the new values a type"

"""The stub of the compiled core names what the core has, with its arguments."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from dualgap import core

STUB = ast.parse(Path(core.__file__).with_name("_core.pyi").read_text("utf-8"))

#: Aliases that stand for types in the stub alone.
ALIASES = {"Vector", "Real", "Index", "Block"}


def arguments(function):
    """Return the names of the arguments that a signature of the core has."""
    inside = re.search(r"\((.*)\)", function.__nb_signature__[0][0], re.DOTALL)[1]
    flat = re.sub(r"\[[^][]*\]", "", re.sub(r"\[[^][]*\]", "", inside))
    return [part.split(":")[0].strip() for part in flat.split(",") if ":" in part]


def members(value):
    """Return the methods, properties and constructor of a class of the core."""
    names = {name for name in vars(value) if not name.startswith("_")}
    if hasattr(vars(value).get("__init__"), "__nb_signature__"):
        names.add("__init__")
    return names


def stub_members(node):
    """Return the names that the body of a class in the stub defines."""
    names = set()
    for entry in node.body:
        if isinstance(entry, ast.FunctionDef):
            names.add(entry.name)
        elif isinstance(entry, ast.AnnAssign):
            names.add(entry.target.id)
        elif isinstance(entry, ast.Assign):
            names |= {target.id for target in entry.targets}
    return names


def core_names():
    """Return what the core exports, by name."""
    return {n: v for n, v in vars(core._core).items() if not n.startswith("_")}


def test_the_stub_has_the_names_of_the_core():
    defined = (ast.ClassDef, ast.FunctionDef)
    assert {n.name for n in STUB.body if isinstance(n, defined)} == set(core_names()), (
        "write what was added or removed into src/dualgap/_core.pyi by hand"
    )
    aliases = {n.targets[0].id for n in STUB.body if isinstance(n, ast.Assign)}
    assert aliases == ALIASES


def test_classes_of_the_stub_have_the_members_of_the_core():
    for node in STUB.body:
        if isinstance(node, ast.ClassDef):
            assert stub_members(node) == members(core_names()[node.name]), node.name


def test_calls_of_the_stub_have_the_arguments_of_the_core():
    compared = 0
    for node in STUB.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        value = core_names()[node.name]
        functions = node.body if isinstance(node, ast.ClassDef) else [node]
        for entry in functions:
            if not isinstance(entry, ast.FunctionDef):
                continue
            owner = value if entry is node else getattr(value, entry.name)
            if not hasattr(owner, "__nb_signature__"):
                continue  # a property
            names = [a.arg for a in entry.args.args if a.arg != "self"]
            assert names == arguments(owner), (node.name, entry.name)
            compared += 1
    assert compared > 100

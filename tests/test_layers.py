"""Imports run down the layers, and the pages about the layers say what is there."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import types
from collections import defaultdict
from pathlib import Path

import pytest
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import scale

import dualgap

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(dualgap.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))


def imported(path, tree=None):
    """Names of the package that a file imports, in functions and for types too."""
    package = ["dualgap", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(tree or ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (a.name for a in node.names if a.name.startswith("dualgap"))
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            module = ".".join([*base, *filter(None, [node.module])])
            if module.split(".")[0] == "dualgap":
                yield from (f"{module}.{alias.name}" for alias in node.names)


IMPORTS = [
    (path.relative_to(PACKAGE).as_posix(), name)
    for path in FILES
    for name in imported(path)
]


def place(file):
    """Place of a file: its folder or, outside folders, its own name."""
    return Path(file).parts[0].removesuffix(".py")


PLACES = {place(path.relative_to(PACKAGE)) for path in FILES}


def place_of(name):
    """Place of an imported name; what the package itself defines is in __init__."""
    first = name.replace("._core.", ".core.").split(".")[1:2]  # the stub of the core
    return first[0] if PLACES.intersection(first) else "__init__"


def table():
    """Rows of CONTRIBUTING's table: places, and the places that they import from."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = text.partition("\n## Where things are\n")[2].partition("\n## ")[0]
    for first, last in re.findall(r"^\| (`.+?) \| .+ \| (.+?) \|$", section, re.M):
        places = [place(name) for name in re.findall(r"`([^`]+)`", first)]
        if "src" not in places:
            yield places, [] if last == "–" else last.split(", ")


def reach():
    """Places that each place may import from, itself included."""
    found: dict[str, set[str]] = {}
    for places, sources in table():
        if sources == ["everything above"]:
            below = set(found)
        else:  # a row further down would be a KeyError
            below = set().union(*(found[source] for source in sources))
        found |= {name: below | {*places} for name in places}
    return found


def test_the_table_has_every_place_and_only_imports_that_there_are():
    assert sorted(name for places, _ in table() for name in places) == sorted(PLACES)
    used = {(place(file), place_of(name)) for file, name in IMPORTS}
    for places, sources in table():
        for source in set(sources) - {"everything above"}:
            assert used & {(name, source) for name in places}, (places, source)


def test_imports_run_down():
    allowed = reach()
    assert [(f, n) for f, n in IMPORTS if place_of(n) not in allowed[place(f)]] == []


def needed(path):
    """Modules that a file imports when it runs, in functions too, but not for types."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    for name in imported(path, tree):
        inner = PACKAGE.joinpath(*name.split(".")[1:])
        for module in (inner, inner.parent):
            if module.with_suffix(".py").exists():
                yield module.with_suffix(".py")
                break


def test_no_file_needs_itself():
    """No circle of imports: files that need or are needed by no other go first."""
    left = {path: {*needed(path)} - {path} for path in FILES}
    ends = set(left)
    while ends:
        used = set().union(*left.values())
        ends = {path for path in left if path not in used or not left[path]}
        left = {path: left[path] - ends for path in left.keys() - ends}
    assert {path.relative_to(PACKAGE).as_posix() for path in left} == set()


def folder_of(name):
    """Folder of the package that an imported name is in, as a path."""
    folder = PACKAGE
    for part in name.split(".")[1:]:
        folder = folder / part if (folder / part).is_dir() else folder
    return folder


def test_private_names_stay_in_their_folder():
    crossing = {
        (file, name)
        for file, name in IMPORTS
        if folder_of(name) != (PACKAGE / file).parent and re.search(r"\._(?!_)", name)
    }
    assert crossing == set()


#: Functions that solve the problems of a batch together, which a table names.
WHOLE = {
    "dualgap.solvers.labellings.solve_labellings",
    "dualgap.solvers.shared.solve_shared",
    "dualgap.solvers.regression.solve_regression",
}


def test_the_loop_and_the_kernels_know_no_linear_solver():
    for file, name in IMPORTS:
        loop = place(file) == "training" and not file.endswith("stream.py")
        if loop or file.startswith("solvers/kernel/"):
            linear = r"dualgap\.solvers\.(?!base\.|kernel\.)"
            assert not re.match(linear, name) or name in WHOLE, file


def test_no_other_solver_takes_from_the_papers_methods():
    public = {"solvers/__init__.py", "kernel/__init__.py"}
    taken = {
        file
        for file, name in IMPORTS
        if name.startswith("dualgap.solvers.papers.")
        and not file.startswith("solvers/papers/")
    }
    assert taken == public


def test_only_the_command_line_may_take_from_the_papers_and_twins_need_numpy_alone():
    taken = {place(file) for file, name in IMPORTS if place_of(name) == "papers"}
    assert "papers" in taken <= {"papers", "cli"}
    used = {
        name.split(".")[0]
        for path in (PACKAGE / "papers" / "twins").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        for name in modules(node)
    }
    assert used == {"", "__future__", "collections", "dataclasses", "numpy"}


def modules(node):
    """Return the modules that a statement imports, "" for a relative import."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return ["" if node.level else str(node.module)]
    return []


#: Classes of scikit-learn that dualgap has too: a drop-in has the name of the class
#: whose place it takes, for tools that look a class up by its module.
DROP_INS = "estimators/drop_ins.py"


def test_no_class_name_stands_in_two_files():
    places = defaultdict(set)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].add(path.relative_to(PACKAGE).as_posix())
    drop_ins = {"LinearSVC", "LinearSVR", "NuSVC", "NuSVR", "OneClassSVM", "SVC", "SVR"}
    for name in drop_ins:
        places[name].remove(DROP_INS)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_the_picture_is_drawn_from_these_layers():
    drawn = runpy.run_path(str(ROOT / "docs" / "layers.py"))
    svg = (ROOT / "docs" / "_static" / "layers.svg").read_text("utf-8")
    assert svg == drawn["draw"]()
    allowed, below = reach(), {"src"}
    for _, band in reversed(drawn["BANDS"]):
        boxes = [[place(name) for name in box.split(", ")] for box, _ in band]
        for places in boxes[1:] if boxes[0] == ["src"] else boxes:
            assert all(allowed[name] <= below | {*places} for name in places), places
        below |= {name for places in boxes for name in places}
    assert below == {"src", *allowed}


def calls(function):
    """Return files and functions of the package in the order of their first calls."""
    seen: dict[types.CodeType, tuple[str, str]] = {}

    def look(frame, event, _):
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(PACKAGE):
            file = path.relative_to(PACKAGE).as_posix()
            seen.setdefault(frame.f_code, (file, frame.f_code.co_name))

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        function()
    finally:
        sys.setprofile(before)
    return list(seen.values())


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", ["LinearSVC", "SVC"])
def test_the_life_of_a_fit_is_as_written(name):
    """The page names functions in the order in which the fit first calls them."""
    text = (ROOT / "docs" / "life-of-a-fit.md").read_text("utf-8")
    text = text.partition(f"\n## `{name}.fit`\n")[2].partition("\n## ")[0]
    text = text.partition("\n### Small data")[0]
    named = re.findall(r"`([\w/]+\.(?:py|hpp|cpp))`,\s+`([\w.]+)`", text)
    assert len(named) > 20
    X, y = load_breast_cancer(return_X_y=True)
    options = {"cache_size": 5}
    if name == "LinearSVC":
        X, y = load_digits(return_X_y=True)
        y, options = y > 4, {"C": 0.01}
    model = getattr(dualgap, name)(random_state=0, **options)
    order = calls(lambda: model.fit(scale(X), y))
    last = -1
    for file, function in named:
        if not file.endswith(".py"):
            source = (ROOT / "src" / "core" / file).read_text("utf-8")
            assert re.search(rf'["\s]{function}["(]', source), (file, function)
            continue
        last = order.index((file, function.split(".")[-1]), last + 1)

"""The code of the pages and of the docstrings does what is written."""

from __future__ import annotations

import csv
import doctest
import importlib
import json
import os
import pkgutil
import re
import runpy
import statistics
import subprocess
import sys
import warnings
from dataclasses import fields
from pathlib import Path

import pytest

import dualgap
from dualgap.cli.options import configured_solver
from dualgap.kernel import APPROXIMATIONS
from dualgap.solvers import base

from .conftest import OVER, ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
#: What a page needs beyond what is installed with dualgap.
NEEDS = {
    "start.md": ("matplotlib", "safetensors"),
    "serving.md": ("onnx", "onnxruntime", "skl2onnx", "skops"),
}


def blocks(page):
    """The blocks of a page that have prompts, with the line where each begins."""
    text = page.read_text("utf-8")
    for found in FENCE.finditer(text):
        if ">>> " in found[1]:
            yield found[1], text.count("\n", 0, found.start()) + 1


RUNNABLE = [page for page in PAGES if any(blocks(page))]


@pytest.mark.long
@pytest.mark.cases(None)
@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: page.name)
def test_code_of_the_pages(page, tmp_path, monkeypatch):
    """The blocks of a page follow one another, in a folder of its own.

    A warning is output, as it is in a terminal.
    """
    for package in NEEDS.get(page.name, ()):
        pytest.importorskip(package, reason=f"{package} is not installed")
    if page.name == "start.md":
        importlib.import_module("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    parser, names = doctest.DocTestParser(), {}
    runner = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF)
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, category, *_: print(
            f"{category.__name__}: {message}"
        )
        for source, line in blocks(page):
            test = parser.get_doctest(source, names, page.name, str(page), line)
            runner.run(test, clear_globs=False)
            names = test.globs
    assert runner.tries > 0
    assert runner.failures == 0
    if page.name == "start.md":
        commands = re.findall(r"^\$ (dualgap .*)$", page.read_text("utf-8"), re.M)
        assert len(commands) == 3
        for command in commands:
            arguments = [sys.executable, "-m", *command.split()]
            run = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
            assert run.returncode == 0, run.stderr


class Differences(doctest.DocTestRunner):
    """Collects the statements with another output; an exception ends the run."""

    def __init__(self):
        super().__init__()
        self.found = []

    def report_failure(self, out, test, example, got):
        self.found.append(example.source.split("#")[0].strip())

    def report_unexpected_exception(self, out, test, example, exc_info):
        raise exc_info[1]


#: Statements of the pages that are about the breast-cancer data alone.
ABOUT_TWO_CLASSES = {
    'model = LinearSVC(loss="hinge", random_state=0).fit(X, y)',  # its warning
    "print(dualgap.certify(model, X, y))",
    "round(model.score(X_test, y_test), 3)",
    "round(pipeline.score(X_test, y_test), 3)",
    "print(pipeline[-1].certificate_)",
    "print(better.certificate_)",
    "round(better.score(X_test, y_test), 3)",
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.cases(None)
@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_the_first_pages_hold_for_three_classes(page, tmp_path, monkeypatch):
    page = ROOT / page
    for package in NEEDS.get(page.name, ()):
        pytest.importorskip(package, reason=f"{package} is not installed")
    importlib.import_module("matplotlib").use("agg")
    monkeypatch.chdir(tmp_path)
    parser, runner, names = doctest.DocTestParser(), Differences(), {}
    for source, line in blocks(page):
        source = source.replace("load_breast_cancer", "load_wine")
        test = parser.get_doctest(source, names, page.name, str(page), line)
        runner.run(test, clear_globs=False)
        names = test.globs
    assert len(set(names["y"])) == 3
    assert set(runner.found) <= ABOUT_TWO_CLASSES


def test_no_line_of_a_page_is_a_comment():
    """MyST takes a line that begins with a percent sign for one, and drops it."""
    texts = {page: page.read_text("utf-8") for page in PAGES}
    assert [p.name for p, text in texts.items() if re.search(r"^%", text, re.M)] == []


def test_no_block_of_a_page_ends_with_an_empty_line():
    texts = {page: page.read_text("utf-8") for page in PAGES}
    assert [
        p.name for p, text in texts.items() if re.search(r"\n\n *```$", text, re.M)
    ] == []


def test_the_links_of_the_readme_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text("utf-8"))
    assert len(links) > 20
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_long_tables_are_collapsed():
    """A table of more than 15 rows is opened by the reader, but for that of solvers."""
    found = []
    for page in set(PAGES) - {ROOT / "docs" / "solvers.md"}:
        text = re.sub(
            r"<details>.*?</details>", "", page.read_text("utf-8"), flags=re.S
        )
        for table in re.findall(r"(?:^\|.*\n)+", text, re.M):
            rows = table.count("\n") - 2  # without the headings and the rule
            found += [f"{page.name}: {table.splitlines()[0]}"] * (rows > 15)
    assert found == []


def anchor(heading):
    """Return the anchor of a heading, as GitHub and MyST make it."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")


def test_the_links_of_the_pages_lead_somewhere():
    built = ROOT / "docs" / "auto_examples"  # from examples/, by `make docs`
    anchors, dead = {}, []
    for page in PAGES:
        headings = re.findall(r"^#+ (.*)$", page.read_text("utf-8"), re.M)
        anchors[page] = {anchor(heading) for heading in headings}
    for page in PAGES:
        text = page.read_text("utf-8")
        for link in re.findall(r"\]\((?!https?:)([^)\s]+)\)", text):
            path, _, name = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if target.is_relative_to(built):
                source = ROOT / "examples" / target.relative_to(built)
                index = source.parent / "GALLERY_HEADER.rst"
                target = index if source.stem == "index" else source.with_suffix(".py")
            if not target.exists() or (name and name not in anchors[target]):
                dead.append(f"{page.name}: {link}")
    assert dead == []


def numbers(text):
    return re.findall(r"\d[\d.,]*\d|\d", text)


def rounded(number, others):
    """Return whether a number is one of others, or rounded from one."""
    digits = len(re.sub("[.,]", "", number).strip("0"))
    value = float(number.replace(",", ""))
    return any(
        float(f"{float(other.replace(',', '')):.{digits}g}") == value
        for other in others
        if re.fullmatch(r"[\d,]+(\.\d+)?", other)
    )


def test_the_numbers_of_the_readme_are_those_of_the_pages_it_links_to():
    text = (ROOT / "README.md").read_text("utf-8")
    bullets = re.findall(r"^- \*\*(.*?)(?=\n\n|\n- )", text, re.S | re.M)[:6]
    told = 0
    for bullet in bullets:
        said, _, link = bullet.partition("](")
        page = re.match(r"docs/[\w-]+\.md", link)[0]
        there = numbers((ROOT / page).read_text("utf-8"))
        wrong = [number for number in numbers(said) if not rounded(number, there)]
        assert wrong == [], f"{page} does not say: {said}"
        told += bool(numbers(said))
        if numbers(said):
            assert measured(page), f"{page} names no script that prints its figures"
    assert told >= 4


def test_the_table_of_the_readme_shows_the_results():
    text = (ROOT / "README.md").read_text("utf-8")
    speed = runpy.run_path(str(ROOT / "docs" / "speed.py"))
    assert len({case["data"] for case in speed["cases"]()}) == 4
    assert f"\n\n{speed['table']()}\n\n" in text
    measured = json.loads((ROOT / "benchmarks" / "front_page.json").read_text("utf-8"))
    for case in measured["cases"]:
        own = case["packages"]["dualgap"]
        assert own["accuracy"] <= measured["accuracy"] == 1e-3


def test_the_ratios_of_the_first_page_are_those_of_the_chart():
    speed = runpy.run_path(str(ROOT / "docs" / "speed.py"))
    ratios = []
    for case in speed["cases"]():
        own, _ = case["times"]["dualgap"]
        for name in ("LIBLINEAR", "scikit-learn"):
            seconds, reached = case["times"][name]
            ratios += [seconds / own] * reached
    text = " ".join((ROOT / "docs" / "index.md").read_text("utf-8").split())
    said = f"take {min(ratios):.2g} to {max(ratios):.2g} times as long on the four"
    assert said in text


def test_the_pages_of_estimators_lead_with_the_results():
    results = json.loads((ROOT / "benchmarks" / "estimators.json").read_text("utf-8"))
    pages = {"SVR": "regression", "OneClassSVM": "regression", "SVC": "kernel"}
    pages["Crammer-Singer"] = "several-classes"
    seen = set()
    for name, case in results["cases"].items():
        page = pages[name.split(",")[0]]
        top = (ROOT / "docs" / f"{page}.md").read_text("utf-8").split("\n## ")[0]
        assert "benchmarks/estimators.py" in " ".join(top.split())
        for kind in ("fit", "predict"):
            if kind in case:
                assert f"{case[kind]['ratio']:.2g}" in numbers(top), (name, kind)
        seen.add(page)
    assert {"regression", "several-classes"} <= seen


def printed(code, *folders):
    """Return what code prints with the modules of some folders, as JSON."""
    path = os.pathsep.join([*map(str, folders), *sys.path])
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


def stored(tables):
    """Return the files in docs/tables of these names."""
    folder = ROOT / "docs" / "tables"
    return {name: (folder / f"{name}.csv").read_text("utf-8") for name in tables}


@pytest.mark.long
def test_the_pages_show_what_the_exact_verifier_found():
    folder = ROOT / "benchmarks" / "trust"
    report = json.loads((folder / "verify.json").read_text("utf-8"))
    code = (
        "import json, verify\nreport = json.load(open(verify.HERE / 'verify.json'))\n"
    )
    code += "print(json.dumps(verify.tables(report)))"
    tables = printed(code, folder)
    assert len(tables) == 2
    assert tables == stored(tables)
    assert report["all"]["false"] == 0
    page = (ROOT / "docs" / "trust.md").read_text("utf-8")
    for count in ("certificates", "statements"):
        assert f"0 of {report['all'][count]:,}" in page


@pytest.mark.long
def test_the_page_on_tuning_shows_its_results():
    folder = ROOT / "benchmarks"
    tables = printed("import json, tuning\nprint(json.dumps(tuning.tables()))", folder)
    assert len(tables) == 6
    tables = {f"tuning-{name}": text for name, text in tables.items()}
    assert tables == stored(tables)
    page = (ROOT / "docs" / "tuning.md").read_text("utf-8")
    cases = json.loads((folder / "tuning.json").read_text("utf-8"))["cases"]
    linear = [c["ratios"]["sklearn"] for c in cases.values() if c["linear"]]
    others = "linear", "landmarks", "regression"
    whole = [c for c in cases.values() if not any(c.get(name) for name in others)]
    compared = [c for c in whole if c["ratios"]]
    measured = [c for c in compared if c["values"] * c["folds"] == 500]
    (small,) = [c["ratios"] for c in compared if c not in measured]
    said = []
    for rival in ("sklearn", "dualgap"):
        two = [c["ratios"][rival] for c in measured if c["classes"] == 2]
        said += [min(two), max(two), statistics.geometric_mean(two)]
    (ten,) = [c["ratios"] for c in measured if c["classes"] == 10]
    said = [f"{float(f'{x:.2g}'):g}" for x in (*said, ten["sklearn"], ten["dualgap"])]
    text = " ".join(page.split("## When it pays\n")[1].split("\n\n")[0].split())
    assert numbers(text) == said
    text = " ".join(page.split())
    assert f"is {small['sklearn']:.2g} and {small['dualgap']:.2g} times as" in text
    assert f"is {min(linear):.2g} to {max(linear):.2g} times as fast" in text
    large = cases["kernel, covtype-93k, 92962, 2 x 3"]
    assert large["peak"] <= 2000
    assert f"takes {large['seconds']:.2g} s" in " ".join(page.split())
    assert f"{large['peak']:,} MB" in page


def test_the_kernel_ratios_of_the_readme_are_in_the_results():
    text = " ".join((ROOT / "README.md").read_text("utf-8").split())
    said = re.search(
        r"takes ([\d.]+) times as long as dualgap's on pendigits, ([\d.]+) times on "
        r"ijcnn1, and ([\d.]+) times on 20,000 rows of covtype",
        text,
    )
    results = ROOT / "benchmarks" / "kernel" / "results.json"
    cells = {
        cell["data"]: cell.get("ratio_sklearn")
        for cell in json.loads(results.read_text("utf-8"))["cells"]
        if cell["C"] == 1.0 and cell.get("kind", "AVX-512") == "AVX-512"
    }
    for number, name in zip(
        said.groups(), ("pendigits-10", "ijcnn1", "covtype-20k"), strict=True
    ):
        assert number == f"{cells[name]:.2g}"


def test_the_chart_of_the_readme_is_drawn(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "speed.png"
    runpy.run_path(str(ROOT / "docs" / "speed.py"))["draw"](path)
    assert path.read_bytes().startswith(b"\x89PNG")


def measured(page) -> bool:
    """Whether a page names a script that measures."""
    # scikit-learn's tests are what the page on migrating counts
    text = (ROOT / page).read_text("utf-8")
    return bool(re.search(r"python (?:benchmarks|-m pytest)|tests/peers", text))


def test_the_scripts_that_the_pages_name_are_there():
    named = set()
    for page in [*PAGES, ROOT / "CONTRIBUTING.md"]:
        text = page.read_text("utf-8")
        named |= set(re.findall(r"\b((?:benchmarks|docs|examples)/[\w/]+\.py)", text))
    assert len(named) > 30
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_the_scripts_take_from_datasets_what_is_there():
    defined = set(runpy.run_path(str(ROOT / "benchmarks" / "datasets.py")))
    taken = set()
    for script in (ROOT / "benchmarks").rglob("*.py"):
        text = script.read_text("utf-8")
        if re.search(r"^import datasets", text, re.M):
            taken |= set(re.findall(r"\bdatasets\.(\w+)", text))
        for names in re.findall(r"^from datasets import (.*?)(?: *#.*)?$", text, re.M):
            taken |= {name.split(" as ")[0] for name in re.split(r", ?", names)}
    assert len(taken) > 4
    assert taken <= defined


def test_the_pages_that_the_code_names_are_there():
    named = set()
    for suffix in ("py", "hpp", "cpp"):
        for file in (ROOT / "src").rglob(f"*.{suffix}"):
            named |= set(re.findall(r"\bdocs/[\w/-]+\.md", file.read_text("utf-8")))
    assert len(named) > 5
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


@pytest.mark.long
@pytest.mark.parametrize("kind", ["linear", "kernel"])
def test_the_benchmark_pages_show_their_results(kind):
    """The report prints the same page from results.json again."""
    folder = ROOT / "benchmarks" / kind
    code = "import json, report\nwhole = report.kept()\n"
    code += "cells = report.in_order(whole)\n"
    code += "found = report.generated(whole, cells), report.tables(cells)\n"
    code += "print(json.dumps(found))\n"
    parts, tables = printed(code, folder, folder.parent)
    page = (ROOT / "docs" / f"benchmarks-{kind}.md").read_text("utf-8")
    assert len(parts) == 3
    for name, body in parts.items():
        _, _, rest = page.partition(f"<!-- {name}: begin -->\n")
        assert rest.partition(f"\n<!-- {name}: end -->")[0] == body, name
    assert f"{kind}-cases" in tables
    assert tables == stored(tables)


def test_pages_with_code_are_found():
    names = {page.name for page in RUNNABLE}
    assert {"README.md", "index.md", "start.md", "faq.md"} <= names
    assert {"certificate.md", "serving.md", "svm-from-scratch.md"} <= names


def modules():
    """Yield the modules whose docstrings have examples."""
    package = Path(dualgap.__file__).parent
    for found in pkgutil.walk_packages([str(package)], "dualgap."):
        path = package.joinpath(*found.name.split(".")[1:])
        file = path / "__init__.py" if found.ispkg else path.with_suffix(".py")
        if file.is_file() and re.search(r"^\s*>>> ", file.read_text("utf-8"), re.M):
            yield found.name


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", sorted(modules()))
def test_examples_of_the_docstrings(name, tmp_path, monkeypatch):
    if name.endswith(".export"):
        pytest.importorskip("skl2onnx", reason="skl2onnx is not installed")
    if name == "dualgap.html_report":
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    monkeypatch.chdir(tmp_path)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0
    assert result.failed == 0


def solver_records():
    """Return the records of the solvers and approximations by name.

    The page on many machines describes the solver that only a cluster can run.
    """
    found = {name: [record] for name, record in APPROXIMATIONS.items()}
    for records in base._SOLVERS.values():
        for name, record in records.items():
            if record.__module__.startswith("dualgap.solvers."):
                found.setdefault(name, []).append(record)
    return found


def section(name):
    """Return the page of a solver's family, and the section about the solver."""
    found = {}
    for page in (ROOT / "docs" / "solvers").glob("*.md"):
        _, *parts = re.split(r"^## (.*)$", page.read_text("utf-8"), flags=re.M)
        for title, text in zip(parts[::2], parts[1::2], strict=True):
            if title == f"`{name}`":
                found[page.name] = text
    where = f"{len(found)} pages of docs/solvers have a section ## `{name}`: give one"
    assert len(found) == 1, where
    return next(iter(found.items()))


def test_every_solver_has_a_section():
    overview = (ROOT / "docs" / "solvers.md").read_text("utf-8")
    records = solver_records()
    for name in {*records} - {"auto"}:
        page, _ = section(name)
        assert f"[`{name}`](solvers/{page}#{name})" in overview
    pages = [*(ROOT / "docs" / "solvers").glob("*.md")]
    titles = {t for p in pages for t in re.findall("^## `(.*)`$", p.read_text(), re.M)}
    assert titles == {*records} - {"auto"}
    for page in pages:
        text = page.read_text("utf-8")
        assert ">>> " in text, page.name
        assert "*Source" in text, page.name


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", sorted({*solver_records()} - {"auto"}))
def test_the_section_of_a_solver_has_its_options(name):
    page, text = section(name)
    whole = (ROOT / "docs" / "solvers" / page).read_text("utf-8")
    if "\n## Options of all\n" in whole:
        common = whole.partition("\n## Options of all\n")[2].partition("\n## ")[0]
        text += common
    for record in solver_records()[name]:
        for field in fields(record):
            said = f"{field.name}={field.default!r}".replace("'", '"')
            assert said in text, said
    for line in re.findall(r"`([^`]*--solver [^`]*)`", whole):
        solver = re.search(r"--solver ([\w-]+)", line)[1]
        given = re.findall(r"--solver-option (\S+)", line)
        kernel = "rbf" if "--kernel rbf" in line else None
        made = configured_solver(solver, given, kernel, "classification")
        assert getattr(made, "name", made) == solver


def test_the_options_of_the_kernel_solver_auto_are_told():
    text = (ROOT / "docs" / "solvers.md").read_text("utf-8")
    block = {field.name for field in fields(solver_records()["block"][0])}
    for record in solver_records()["auto"]:
        for field in fields(record):
            assert field.name in block or f"`{field.name}={field.default!r}`" in text


@pytest.mark.parametrize(
    "module", ["", "data", "model_selection", "plot", "distributed"]
)
def test_every_public_name_is_in_the_reference(module):
    if module == "distributed":
        pytest.importorskip("distributed", reason="distributed is not installed")
    text = (ROOT / "docs" / "site" / "api.md").read_text("utf-8")
    listed = set(re.findall(r"^   ([\w.]+)$|^`(\w+)` is", text, re.M))
    listed = {name for names in listed for name in names}
    found = importlib.import_module(f"dualgap.{module}".rstrip("."))
    prefix = f"{module}." if module else ""
    assert found.__all__
    for name in found.__all__:
        # what a module gives again is listed where it is first
        again = hasattr(dualgap, name) and name in dualgap.__all__ and module == "data"
        assert prefix + name in listed or (again and name in listed), prefix + name


@pytest.mark.long
def test_the_modules_are_there_after_one_import():
    code = "import dualgap\nfor name in sorted(dualgap._MODULES - {'distributed'}):\n"
    code += "    assert getattr(dualgap, name).__name__ == f'dualgap.{name}'\n"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


def test_the_page_on_tuning_has_the_stored_results_of_paths(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    path = runpy.run_path(str(ROOT / "benchmarks" / "path.py"))
    text = (ROOT / "docs" / "tuning.md").read_text("utf-8")
    assert path["page"](text) == text
    tables = path["tables"]()
    assert len(tables) == 2
    assert tables == stored(tables)


def test_the_page_on_small_data_has_the_stored_results(capsys):
    small = runpy.run_path(str(ROOT / "benchmarks" / "small.py"))
    found = small["read"](small["TABLES"])
    small["show"](found)
    text = (ROOT / "docs" / "benchmarks-small.md").read_text("utf-8")
    lines = capsys.readouterr().out.splitlines()
    assert sum(x.startswith("|") for x in lines) > 10
    assert [x for x in lines if x.startswith("|") and f"\n{x}\n" not in text] == []
    told = dict(line.split(": ") for line in lines if ": " in line and line[0] != "|")
    fits, above = told["fits in all"], told["gap of scikit-learn's model above 0.001"]
    assert f"in {fits} cases" in text
    assert f"In {above.split()[0]} cases the gap" in text
    full = [row for row in found["fits"] if row["predict"]]
    largest = max(float(row["gap of scikit-learn's"]) for row in full)
    assert f"largest is {largest:.0f}:" in " ".join(text.split())
    head = " ".join(text.split()).partition("**On small")[2].partition("**")[0]
    assert head.endswith(f"{small['summary'](full, 'predict')[0].split()[0]}.")


def test_the_tables_are_linked_and_are_tables():
    folder = ROOT / "docs" / "tables"
    texts = "\n".join(page.read_text("utf-8") for page in PAGES)
    for path in sorted(folder.iterdir()):
        assert f"(tables/{path.name})" in texts, path.name
        with path.open(encoding="utf-8", newline="") as file:
            sizes = {len(row) for row in csv.reader(file)}
        assert len(sizes) == 1, path.name


#: Most words of the pages. They may only fall.
WORDS = 36_310


def test_the_pages_keep_to_their_budget():
    """The pages about the papers have a budget of their own.

    Lines and rules of tables are no words.
    """
    pages = [p for p in (ROOT / "docs").rglob("*.md") if p.parent.name != "papers"]
    pages = [p for p in pages if not {"auto_examples", "generated"} & {*p.parts}]
    assert len(pages) <= 48, OVER.format("this number")
    words = [re.findall(r"\S*\w\S*", page.read_text("utf-8")) for page in pages]
    assert sum(map(len, words)) <= WORDS, OVER.format("WORDS")

"""The frame of all experiments: load, measure, keep, judge, and write the page.

A module of a paper has a record :class:`Paper`: how to measure a table on a set, how to
write the tables from what was measured, and the claims, judged by the same results.
"""

from __future__ import annotations

import itertools
import json
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

from .. import kernel
from .. import solvers as linear
from ..data.types import Parameters
from . import data
from .data import worded
from .names import PAPERS, kept
from .page import Page, Row, Rows, Verdict
from .pictures import Panel, draw


@dataclass(frozen=True)
class Budget:
    """Runs of each method, processor seconds of one, and whether to try less of all."""

    seeds: int
    limit: float
    quick: bool = False


@dataclass(frozen=True)
class Paper:
    """Experiments of one paper.

    - `settings`: what `settings.json` has of it.
    - `parts`: for each table or figure, by the name that ``--table`` takes, the
      function that measures it on a set.
    - `verdicts` judges the paper's claims in `claims.json` by all results.
    - `rows` yields the rows of a set, each with the name of its table. Those in
      `published` follow where a table has rows. `tables` are made of all results.
    - `values` of all results, and the settings, called s, are the other things that
      the page shows: the template of the module's name in `pages/`.
    - `draw` yields the panels of the picture, in `columns`.
    """

    settings: SimpleNamespace
    parts: Mapping[str, Callable[[str, Budget], object]]
    verdicts: Callable[[list[Parameters], Parameters], list[Verdict]]
    rows: Callable[[str, Parameters], Rows]
    published: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    tables: Callable[[Parameters], Mapping[str, list[Row]]] = lambda sets: {}
    values: Callable[[Parameters], Mapping[str, object]] = lambda sets: {}
    draw: Callable[[Parameters], Iterable[Panel]] = lambda sets: ()
    columns: int = 3


def solvers(table: Parameters, **options: object) -> Parameters:
    """Return the solvers of a table of settings by label, with more options."""
    return {
        label: (getattr(kernel, name, None) or getattr(linear, name))(**own, **options)
        for label, (name, own) in table.items()
    }


def published(paper: str, table: str) -> Parameters:
    """Return a table of a paper as it was printed: unit, columns, and rows by set."""
    return kept("published")[paper]["tables"][table]


def printed(
    paper: str, *tables: str, rename: Mapping[str, str] | None = None
) -> dict[str, dict[str, str]]:
    """Return the rows of a paper's tables by set, as a page shows them below its own.

    Methods that have another name here have that.
    """
    rows: dict[str, dict[str, str]] = {}
    for table in tables:
        found = published(paper, table)
        columns = [(rename or {}).get(label, label) for label in found["columns"]]
        for name, cells in found["rows"].items():
            row = rows.setdefault(name, {"data": f"{name}, published"})
            row.update(zip(columns, cells, strict=True))
    return rows


def paper_of(name: str) -> Paper:
    """Return the experiments of a paper; a wrong name lists those there are."""
    if name not in PAPERS:
        raise ValueError(
            f"no experiments of {name!r}; the papers are {', '.join(PAPERS)}"
        )
    return import_module(f".{name.replace('-', '_')}", __package__).PAPER


def verdicts_of(name: str, sets: Parameters) -> list[Verdict]:
    """Judge the claims of a paper by the results of some sets."""
    return paper_of(name).verdicts(kept("claims")[name], sets)


def page_of(name: str, results: Parameters) -> Page:
    """Return the page that the results of a run make."""
    paper, sets = paper_of(name), results["sets"]
    run = f"`{results['command']}`. Seeds: {results['seeds']}."
    run += " A quick run does less of everything." * results["quick"]
    cpu = results.get("cpu", {})
    seconds = [cpu[one][part] for one in sets for part, found in sets[one].items()
               if found and part in cpu.get(one, {})]  # fmt: skip
    if seconds:
        total = sum(bool(part) for found in sets.values() for part in found.values())
        run += f" Processor time of {len(seconds)} of the {total} tables of a set: "
        run += f"{sum(seconds):,.0f} s."
    others = paper.settings.published_run["sets"]
    words = [worded(one) + f", for {others.get(one)}" * bool(others.get(one))
             for one in sets]  # fmt: skip
    module = name.replace("-", "_")
    path = Path(__file__).with_name("pages") / f"{module}.md"
    template = path.read_text("utf-8").format(
        s=paper.settings, run=run, data="; ".join(words), **paper.values(sets)
    )
    tables: dict[str, list[Row]] = {}
    for one, found in sets.items():
        for table, row in paper.rows(one, found):
            tables.setdefault(table, []).append({"data": one, **row})
    for table in tables.keys() & paper.published.keys():
        tables[table] += paper.published[table]
    tables |= paper.tables(sets)
    return Page(module, template, tables, verdicts_of(name, sets), results)


def _chosen(
    what: str, given: Sequence[str], known: Sequence[str], default: Sequence[str]
) -> list[str]:
    """Return the given names or the default, after refusing unknown ones."""
    for name in given:
        if name not in known:
            raise ValueError(f"no {what} {name!r} here; give {', '.join(known)}")
    return list(dict.fromkeys(given)) or list(default)


def reproduce(
    name: str,
    *,
    tables: Sequence[str] = (),
    sets: Sequence[str] = (),
    quick: bool = False,
    seeds: int | None = None,
    output: str | Path | None = None,
    keep: bool = False,
) -> Page:
    """Run the experiments of a paper, and return the page.

    Wrong names, and files that are missing, are refused with what there is.

    Parameters
    ----------
    name : str
        The paper: a name in `PAPERS`.
    tables, sets : sequence of str, optional
        Tables and figures to measure, and data sets by name or files of svmlight text;
        all of the published page by default.
    quick : bool, default=False
        Spend less than a minute, on data that need no files unless `sets` are given.
    seeds : int, optional
        Runs of each method.
    output : path, optional
        Folder for the page, its picture and its results, which are written after every
        table; nothing is written without.
    keep : bool, default=False
        Measure only what the results in `output` lack.
    """
    paper, words = paper_of(name), ["dualgap", "reproduce", name, *["--quick"] * quick]
    for option, given in (("table", tables), ("data", sets), ("seeds", [seeds])):
        words += [word for one in given if one for word in (f"--{option}", f"{one}")]
    tables = _chosen("table", tables, [*paper.parts], [*paper.parts])
    files = [one for one in sets if Path(one).is_file()]
    whole, less = paper.settings.published_run, paper.settings.quick_run
    run = less if quick else whole
    known = [*dict.fromkeys([*whole["sets"], *less["sets"], *data.SETS, *files])]
    skipped = {} if sets else run.get("skipped", {})
    sets = _chosen("data set or file", sets, known, [*run["sets"]])
    data.require(sets)
    budget = Budget(seeds or run["seeds"], run["limit"], quick)
    folder = None if output is None else Path(output)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name.replace('-', '_')}.json"
    results: Parameters = {"sets": {}}
    if folder is not None and keep:
        results = json.loads(path.read_text("utf-8")) if path.exists() else results
    about = {"seeds": budget.seeds, "quick": quick, "command": shlex.join(words)}
    results = {**about, **results}
    was, now = (f"a {'quick' if r['quick'] else 'full'} run with {r['seeds']} seeds"
                for r in (results, about))  # fmt: skip
    if was != now:
        words = [f"{path} has {was}, not {now};", "give the same, or another folder"]
        raise ValueError(" ".join(words))
    for one, table in itertools.product(sets, tables):
        found = results["sets"].setdefault(one, {})
        if table in found or table in skipped.get(one, ()):
            continue
        print(f"{one}, table {table} ...", file=sys.stderr, flush=True)
        begun = time.process_time()
        # as a file has it: keys are texts, pairs are lists
        found[table] = json.loads(json.dumps(paper.parts[table](one, budget)))
        spent = results.setdefault("cpu", {}).setdefault(one, {})
        spent[table] = round(time.process_time() - begun, 1)
        if folder is not None:
            text = json.dumps(results, separators=(",", ":")) + "\n"
            path.write_text(text, "utf-8")
    page = page_of(name, results)
    if folder is not None:
        panels = [*paper.draw(results["sets"])]
        drawn = draw(folder / f"{page.name}.png", panels, paper.columns)
        texts = {f"{page.name}.md": page.text(beside=True, picture=drawn)} | page.files
        for file, text in texts.items():
            (folder / file).write_text(text, "utf-8")
    return page

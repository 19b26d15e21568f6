"""The frame of all experiments: load, measure, keep, judge, and write the page.

A module of a paper has a record :class:`Paper`: how to measure a table on a set, how to
write the tables from what was measured, and the claims, judged by the same results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from math import comb
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.types import Parameters
from . import data
from .data import worded
from .names import MODULES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEGEND = (
    "A claim with several cases on a set holds there if 80 % of them agree, fails if "
    "80 % do not, and is open otherwise. p is from a sign test over the sets: the "
    "chance that a coin, thrown for each set that decides, is as often for the claim."
)

#: Verdicts in words; "holds on some" has numbers instead of the last word.
KINDS = ("holds", "holds on some", "does not hold", "open", "not measured")
#: Most rows of a table that is open to the reader.
MOST = 15


@dataclass(frozen=True)
class Budget:
    """Limits of a run.

    - `seeds`: runs of each method.
    - `limit`: processor seconds after which a run is given up.
    - `quick`: whether to try less of everything.
    """

    seeds: int
    limit: float
    quick: bool = False


#: Whether a claim holds on a set, None where that is open, and what was measured.
Finding = tuple[bool | None, str]


def tally(cases: Iterable[bool]) -> Finding:
    """Return whether a claim holds in 80 % of its cases, or fails in as many."""
    flags = [*map(bool, cases)]
    share = sum(flags) / len(flags)
    found = None if 0.2 < share < 0.8 else share >= 0.8
    return found, f"{sum(flags)} of {len(flags)}"


@dataclass(frozen=True)
class Verdict:
    """A claim of a paper, the place of its evidence, and what was found on each set.

    `what` says what was measured.
    """

    claim: str
    place: str
    what: str
    sets: Mapping[str, Finding]

    @property
    def known(self) -> list[bool]:
        """The sets that decide."""
        return [found for found, _ in self.sets.values() if found is not None]

    @property
    def word(self) -> str:
        """The verdict in words."""
        if not self.known:
            return "open" if self.sets else "not measured"
        held, total = sum(self.known), len(self.sets)
        if len(self.known) == total and held in (0, total):
            return "holds" if held else "does not hold"
        return f"holds on {held} of {total}"

    @property
    def p(self) -> str:
        """The sign test: the chance that a coin decides so often for the claim."""
        held, total = sum(self.known), len(self.known)
        if total < 2:
            return "–"
        return f"{sum(comb(total, k) for k in range(held, total + 1)) / 2**total:.2g}"

    def row(self) -> list[str]:
        """Return the cells of the table of claims."""
        cells = [
            [f"{name} {text}" for name, (found, text) in self.sets.items()
             if found is kind] for kind in (True, False, None)
        ]  # fmt: skip
        lists = ("; ".join(cell) for cell in cells)
        return [f"{self.claim} ({self.place})", self.what, self.word, *lists, self.p]


@dataclass
class Page:
    """A page about one paper, from the results alone."""

    name: str
    title: str
    verdicts: list[Verdict] = field(default_factory=list)
    results: Parameters = field(default_factory=dict)
    lines: list[str] = field(default_factory=list)

    def say(self, text: str = "") -> None:
        """Add a line of Markdown."""
        self.lines.append(text)

    def table(
        self, header: Sequence[str], rows: Sequence[Sequence[object]], title: str = ""
    ) -> None:
        """Add a table; the reader opens one with a title."""
        lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
        lines += ["| " + " | ".join(map(str, row)) + " |" for row in rows]
        if title:
            head = f"<details><summary>{title}</summary>"
            lines = [head, "", *lines, "", "</details>"]
        self.lines += [*lines, ""]

    def counts(self) -> list[list[str]]:
        """Return how many claims there are in each place, by their verdicts."""
        places: dict[str, list[str]] = {}
        for verdict in self.verdicts:
            kind = verdict.word if verdict.word in KINDS else "holds on some"
            places.setdefault(verdict.place, []).append(kind)
        return [
            [place, f"{len(found)}", *(f"{found.count(kind)}" for kind in KINDS)]
            for place, found in places.items()
        ]

    def text(self, picture: bool = False) -> str:
        """Return the page, which begins with the claims and their verdicts."""
        head = [f"# {self.title}", ""]
        if self.verdicts:
            claims = Page("", "")
            header = ["claim", "measured", "verdict", "holds on", "not on", "open", "p"]
            rows = [verdict.row() for verdict in self.verdicts]
            title = "All claims" if len(rows) > MOST else ""
            if title:
                claims.table(["place", "claims", *KINDS], self.counts())
            claims.table(header, rows, title)
            head += [*claims.lines, LEGEND, ""]
        if picture:
            head += [f"![{self.title}]({self.name}.png)", ""]
        return "\n".join([*head, *self.lines]).rstrip() + "\n"


@dataclass(frozen=True)
class Paper:
    """Experiments of one paper.

    - `title` of the page, and `about`, its text below the claims: what was measured.
    - `sets`: the data sets of the published page, and the paper's sets for which they
      stand in.
    - `parts`: for each table or figure, by the name that ``--table`` takes, the
      function that measures it on a set.
    - `verdicts` judges the claims and `write` adds the tables, both from the results of
      the sets, which have what the parts returned. `draw` makes the picture.
    """

    title: str
    about: str
    sets: Mapping[str, str]
    parts: Mapping[str, Callable[[str, Budget], object]]
    verdicts: Callable[[Parameters], list[Verdict]]
    write: Callable[[Page, Parameters], None]
    draw: Callable[[Figure, Parameters], None] | None = None
    budget: Budget = Budget(5, 60.0)
    quick: Budget = Budget(2, 2.0, quick=True)
    quick_sets: tuple[str, ...] = data.QUICK
    #: Tables that the published run leaves out, by set: they would take hours.
    skipped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: Whether files of one's own will do; else the sets are listed in an error.
    own: bool = True


def published(paper: str, table: str) -> Parameters:
    """Return a table of a paper as it was printed: unit, columns, and rows by set."""
    path = Path(__file__).with_name("published.json")
    return json.loads(path.read_text("utf-8"))[paper]["tables"][table]


def paper_of(name: str) -> Paper:
    """Return the experiments of a paper; a wrong name lists those there are."""
    if name not in MODULES:
        raise ValueError(
            f"no experiments of {name!r}; the papers are {', '.join(MODULES)}"
        )
    return import_module(f".{MODULES[name]}", __package__).PAPER


def page_of(name: str, results: Parameters) -> Page:
    """Return the page that the results of a run make."""
    paper, sets = paper_of(name), results["sets"]
    page = Page(MODULES[name], paper.title, paper.verdicts(sets), results)
    run = f"`{results['command']}`. Seeds: {results['seeds']}."
    run += " A quick run does less of everything." * results["quick"]
    words = [
        f"{worded(one)}, for {paper.sets[one]}" if paper.sets.get(one) else worded(one)
        for one in sets
    ]
    page.say("## What was measured\n")
    page.say(f"- **Run.** {run}\n- **Data.** {'; '.join(words)}.\n{paper.about}\n")
    paper.write(page, sets)
    return page


def _chosen(
    what: str, given: Sequence[str], known: Sequence[str], default: Sequence[str]
) -> list[str]:
    """Return the given names or the default, after refusing unknown ones."""
    for name in given:
        if name not in known:
            raise ValueError(f"no {what} {name!r} here; give {', '.join(known)}")
    return list(dict.fromkeys(given)) or list(default)


def _missing(
    paper: Paper, todo: Sequence[tuple[str, str]], budget: Budget, results: Parameters
) -> Iterator[None]:
    """Measure what the results lack, and pause after every table."""
    for name, table in todo:
        found = results["sets"].setdefault(name, {})
        if table not in found:
            print(f"{name}, table {table} ...", file=sys.stderr, flush=True)
            # as a file has it: keys are texts, pairs are lists
            measured = paper.parts[table](name, budget)
            found[table] = json.loads(json.dumps(measured))
            yield


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

    Parameters
    ----------
    name : str
        The paper: a name in `MODULES`.
    tables : sequence of str, optional
        Tables and figures to measure; all by default.
    sets : sequence of str, optional
        Data sets by name, and files of svmlight text; the paper's by default.
    quick : bool, default=False
        Spend less than a minute, on data that need no files unless `sets` are given.
    seeds : int, optional
        Runs of each method.
    output : path, optional
        Folder for the page, its results and its picture; nothing is written without.
        The results are written after every table.
    keep : bool, default=False
        Measure only what the results in `output` lack.

    Raises
    ------
    ValueError
        If there is no such paper, table or data set; it lists what there is.
    FileNotFoundError
        If a file, or the real data, are missing.
    """
    paper = paper_of(name)
    tables = _chosen("table", tables, [*paper.parts], [*paper.parts])
    names = [*paper.sets, *paper.quick_sets] + list(data.SETS) * paper.own
    files = [one for one in sets if paper.own and Path(one).is_file()]
    known = [*dict.fromkeys(names), *files]
    default = paper.quick_sets if quick else [*paper.sets]
    skipped = {} if sets else paper.skipped
    sets = _chosen("data set or file", sets, known, default)
    data.require(sets)
    budget = paper.quick if quick else paper.budget
    budget = Budget(seeds or budget.seeds, budget.limit, quick)
    folder = None if output is None else Path(output)
    results: Parameters = {"sets": {}}
    if folder is not None and keep:
        path = folder / f"{MODULES[name]}.json"
        results = json.loads(path.read_text("utf-8")) if path.exists() else results
        if results.get("quick", quick) != quick:
            kind = "full" if quick else "quick"
            raise ValueError(f"{path} is of a {kind} run; give another output folder")
    command = f"dualgap reproduce {name}" + " --quick" * quick
    results = {"seeds": budget.seeds, "quick": quick, "command": command} | results
    todo = [(one, t) for one in sets for t in tables if t not in skipped.get(one, ())]
    for _ in _missing(paper, todo, budget, results):
        if folder is not None:
            keep_results(folder, name, results)
    page = page_of(name, results)
    if folder is not None:
        keep_results(folder, name, results)
        write(folder, page, paper)
    return page


def keep_results(folder: Path, name: str, results: Parameters) -> None:
    """Write the results alone."""
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(results, separators=(",", ":")) + "\n"
    (folder / f"{MODULES[name]}.json").write_text(text, "utf-8")


def write(folder: Path, page: Page, paper: Paper) -> None:
    """Write a page, and its picture if matplotlib is installed."""
    drawn = paper.draw is not None and find_spec("matplotlib") is not None
    if drawn:
        drawn = _draw(folder / f"{page.name}.png", paper, page.results["sets"])
    path = folder / f"{page.name}.md"
    path.write_text(page.text(drawn), encoding="utf-8")


def _draw(path: Path, paper: Paper, sets: Parameters) -> bool:
    """Write the picture of some results; return whether there was something to draw."""
    from matplotlib.figure import Figure
    from PIL import Image

    assert paper.draw is not None
    figure = Figure(layout="constrained")
    paper.draw(figure, sets)
    if not figure.axes:
        return False
    figure.savefig(path, dpi=110)
    with Image.open(path) as image:  # a third of the size
        image.convert("RGB").quantize(64).save(path, optimize=True)
    return True

"""A page about a paper: claims with verdicts, and tables, from the results of a run."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import comb

from ..data.types import Parameters
from .names import settings

#: Whether a claim holds on a set, None where that is open, and what was measured.
Finding = tuple[bool | None, str]
#: A row of a table, by column.
Row = Mapping[str, object]
#: What the results of a set show of claims, and their rows of tables, by key and name.
Findings = Iterator[tuple[str, Finding]]
Rows = Iterator[tuple[str, Row]]

SETTINGS = settings("page")


def tally(cases: Iterable[bool]) -> Finding:
    """Return whether a claim holds in enough of its cases, or fails in as many."""
    flags = [*map(bool, cases)]
    share = sum(flags) / len(flags)
    return of_share(share), f"{sum(flags)} of {len(flags)}"


def of_share(share: float) -> bool | None:
    """Return whether a share of agreeing cases decides, and how."""
    agree = SETTINGS.agree
    return None if 1 - agree < share < agree else share >= agree


@dataclass(frozen=True)
class Verdict:
    """A claim, the place of its evidence, what was measured, and the finding by set."""

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
        if total < SETTINGS.fewest:
            return ""
        return f"{sum(comb(total, k) for k in range(held, total + 1)) / 2**total:.2g}"

    def short(self) -> dict[str, str]:
        """Return the cells of the table of claims."""
        marks = {True: "", False: "not ", None: "open "}
        each = [f"{marks[found]}{name} {text}" for name, (found, text)
                in self.sets.items()] + [f"p = {self.p}"] * bool(self.p)  # fmt: skip
        return {"claim": f"{self.claim} ({self.place})", "measured": self.what,
                "verdict": self.word, "on": "; ".join(each)}  # fmt: skip

    def row(self) -> dict[str, str]:
        """Return the cells of the file of claims."""
        lists = {
            word: "; ".join(f"{name} {text}" for name, (found, text)
                            in self.sets.items() if found is kind)
            for word, kind in (("holds on", True), ("not on", False), ("open", None))
        }  # fmt: skip
        return {"claim": self.claim, "place": self.place, "measured": self.what,
                "verdict": self.word, **lists, "p": self.p}  # fmt: skip


def judged(
    claims: Iterable[Parameters], sets: Parameters,
    judge: Callable[[str, Parameters], Findings],
) -> list[Verdict]:  # fmt: skip
    """Return the verdicts on some claims by what each set shows of them."""
    found: dict[str, dict[str, Finding]] = {}
    for name, results in sets.items():
        for key, finding in judge(name, results):
            found.setdefault(key, {})[name] = finding
    return [
        Verdict(one["claim"], one["place"], one["measured"], found.get(one["key"], {}))
        for one in claims
    ]


def markdown(rows: Sequence[Row], title: str = "") -> str:
    """Return a table in Markdown; a long one is opened by the reader."""
    columns = dict.fromkeys(column for row in rows for column in row)
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    lines += ["| " + " | ".join(str(row.get(c, "")) for c in columns) + " |"
              for row in rows]  # fmt: skip
    if len(rows) > SETTINGS.most:
        head = f"<details><summary>{title or 'All rows'}</summary>"
        lines = [head, "", *lines, "", "</details>"]
    return "\n".join(lines) + "\n"


def csv_text(rows: Sequence[Row]) -> str:
    """Return a table as a CSV file."""
    columns = dict.fromkeys(column for row in rows for column in row)
    file = io.StringIO()
    writer = csv.DictWriter(file, [*columns], restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue()


#: Lines of a template with a table: in the page, or in a file beside it.
INSIDE, BESIDE = re.compile(r"@(\w+) ?(.*)"), re.compile(r"\[(.+)\]\((\w+)\.csv\)")


@dataclass
class Page:
    """A page about one paper, from the results alone.

    Its `template` is Markdown. A line ``@name title`` is a table, with a title if the
    reader opens it; ``[title](name.csv)`` is one in a file beside the page. A section
    whose tables all have no rows is left out.
    """

    name: str
    template: str
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    verdicts: list[Verdict] = field(default_factory=list)
    results: Parameters = field(default_factory=dict)

    @property
    def counts(self) -> str:
        """The number of claims by their verdicts."""
        some, words = "holds on some", SETTINGS.kinds
        kinds = Counter(v.word if v.word in words else some if any(v.known) else
                        "does not hold" for v in self.verdicts)  # fmt: skip
        told = [f"{kinds[kind]} {text}" for kind, text in words.items() if kinds[kind]]
        return f"{len(self.verdicts)} claims: {', '.join(told)}."

    @property
    def many(self) -> bool:
        """Whether the claims have their numbers in a file beside the page."""
        return len(self.verdicts) > SETTINGS.most

    def claims(self, beside: bool) -> list[str]:
        """Return the claims with their verdicts; many have their numbers in a file."""
        if not self.verdicts:
            return []
        rows: list[Row] = [verdict.short() for verdict in self.verdicts]
        text = SETTINGS.below.format(100 * SETTINGS.agree)
        if not self.many:
            return [markdown(rows), text + "\n"]
        if beside:
            places: dict[str, list[str]] = {}
            for verdict in [v for v in self.verdicts if v.sets]:
                told = f"{verdict.place}: {verdict.word.removeprefix('holds on ')}"
                places.setdefault(verdict.claim, []).append(told)
            rows = [{"claim": c, "verdicts": "; ".join(v)} for c, v in places.items()]
            text += SETTINGS.numbers.format(self.name, SETTINGS.fewest)
        return [self.counts + "\n", markdown(rows, "All claims"), text + "\n"]

    def section(self, text: str, beside: bool) -> str:
        """Return a section with its tables; nothing if they all have no rows."""
        lines, sizes = [], []
        for line in text.split("\n"):
            inside, file = INSIDE.fullmatch(line), BESIDE.fullmatch(line)
            if found := inside or file:
                name, title = found.groups()[:: 1 if inside else -1]
                rows = self.tables.get(name, ())
                sizes.append(len(rows))
                line = markdown(rows, title) if rows else ""
                if file and beside and rows:
                    line = f"[{title}]({self.name}_{name}.csv)."
            lines.append(line)
        text = re.sub("\n{3,}", "\n\n", "\n".join(lines))
        return text if any(sizes) or not sizes else ""

    def text(self, *, beside: bool = False, picture: bool = False) -> str:
        """Return the page, which begins with the claims and their verdicts.

        Files `beside` it have its long tables; else these are in the text.
        """
        title, *sections = re.split(r"^(?=## )", self.template, flags=re.MULTILINE)
        title = title.strip()
        head = [title + "\n", *self.claims(beside)]
        if picture:
            head.append(f"![{title[2:]}]({self.name}.png)\n")
        body = "".join(self.section(text, beside) for text in sections)
        return "\n".join([*head, body]).rstrip() + "\n"

    @cached_property
    def files(self) -> dict[str, str]:
        """The CSV files beside the page."""
        names = [name for _, name in BESIDE.findall(self.template)]
        files = {f"{self.name}_{name}.csv": csv_text(self.tables[name])
                 for name in names if self.tables.get(name)}  # fmt: skip
        if self.many:
            claims = [verdict.row() for verdict in self.verdicts]
            files[f"{self.name}_claims.csv"] = csv_text(claims)
        return files

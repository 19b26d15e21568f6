"""Write the ledger of the papers' claims: ``python docs/claims.py``.

It is made from docs/papers/claims.json, which has every item of the five documents, and
from the results of the papers' experiments. A row of the JSON has one of three kinds of
evidence: the names of its ``tests``; a ``page``, with the verdicts on its claims that
have a text of ``row`` (several are counted set by set), or else with what the pattern
``says`` finds in its text; or the reason why it ``cannot`` be tested here.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from dualgap.papers.frame import verdicts_of
from dualgap.papers.names import PAPERS as NAMES
from dualgap.papers.page import Verdict

PAPERS = Path(__file__).parent / "papers"
DOCUMENTS = {
    "sgd": "SGD revisited (Panagiotakopoulos and Tsampouka 2013)",
    "sdca": "SDCA and Pegasos on blood cells (Bouche and Verluise 2018)",
    "pegasos": "Pegasos (Shalev-Shwartz et al. 2007, 2011) and a tutorial",
    "fw": "Frank-Wolfe SVMs (Nanculef, Frandi, Sartori and Allende 2014)",
}
#: Verdicts, as the summary counts them.
HOLDS, PARTLY, NOT, CANNOT = "holds", "holds on", "does not hold", "cannot be tested"
COMMAND = re.compile(r"`((?:python (?:benchmarks|examples)|dualgap reproduce) ?[^`]*)`")
#: Sets whose numbers a row shows; with more the page has them.
MOST = 4


def verdicts(page: str) -> list[Verdict]:
    """Return the verdicts that the results of a page make, if it has results."""
    names = {name.replace("-", "_"): name for name in NAMES}
    if page not in names:
        return []
    results = json.loads((PAPERS / f"{page}.json").read_text("utf-8"))
    return verdicts_of(names[page], results["sets"])


def tally(held: int, total: int) -> str:
    """Return the verdict on a claim that holds in some of all cases."""
    if held == total:
        return HOLDS
    return f"{PARTLY} {held} of {total}" if held else NOT


def judge(row: dict[str, Any]) -> tuple[str, str]:
    """Return the verdict on a row of the JSON, and its number."""
    if "cannot" in row:
        return CANNOT, row["cannot"]
    if "tests" in row:
        return HOLDS, row["number"]
    parts = row.get("row", [])
    judged = [
        v for v in verdicts(row["page"])
        if any(part in f"{v.claim} ({v.place})" for part in parts)
    ]  # fmt: skip
    if len(judged) == 1:
        cells = judged[0].row()
        numbers = filter(None, (cells[k] for k in ("holds on", "not on", "open")))
        short = len(judged[0].sets) <= MOST
        return judged[0].word, "; ".join(numbers) if short else "on the page"
    if judged:
        known = [held for v in judged for held in v.known]
        cases, whole = sum(len(v.sets) for v in judged), [v.word for v in judged]
        number = f"{whole.count(HOLDS)} of {len(judged)} conclusions hold on every set"
        return (tally(sum(known), cases) if known else "open"), number
    text = (PAPERS / f"{row['page']}.md").read_text("utf-8")
    found = re.search(row.get("says", "$^"), text)
    if found is None:
        raise ValueError(
            f"{row['id']}: {row['page']}.md no longer says {row.get('says', parts)!r}; "
            "judge the claim again in claims.json"
        )
    cases = re.fullmatch(r"([\d,]+) of ([\d,]+)", found[1])
    if cases and "verdict" not in row:
        return tally(*(int(n.replace(",", "")) for n in cases.groups())), found[1]
    told = ", ".join(found.groups()).replace(" | ", ", ")
    return row["verdict"], row.get("number", told)


def evidence(row: dict[str, Any]) -> str:
    """Return where the evidence of a row is."""
    if "page" in row:
        return f"[{row['page']}]({row['page']}.md)"
    return ", ".join(f"`{test}`" for test in row.get("tests", []))


def counts(found: list[str]) -> str:
    """Return how many verdicts there are of each kind, in words."""
    kinds = Counter(
        next((k for k in (PARTLY, HOLDS, NOT, CANNOT) if v.startswith(k)), "open")
        for v in (re.sub("^holds on 0 of .*", NOT, verdict) for verdict in found)
    )
    words = {HOLDS: "hold", PARTLY: "hold in part", NOT: "do not hold"}
    words |= {CANNOT: "cannot be tested here", "open": "open or mixed"}
    return ", ".join(f"{word}: {kinds[k]}" for k, word in words.items() if kinds[k])


def table(header: list[str], rows: list[list[str]]) -> list[str]:
    """Return the lines of a table, with an empty one before and after."""
    lines = ["| " + " | ".join(row) + " |" for row in [header, *rows]]
    return ["", lines[0], "|---" * len(header) + "|", *lines[1:], ""]


def write() -> str:
    """Return the page."""
    rows = json.loads((PAPERS / "claims.json").read_text("utf-8"))
    judged = [(row, *judge(row)) for row in rows]
    pages = sorted(name.replace("-", "_") for name in NAMES)
    every = [v.word for page in pages for v in verdicts(page)]
    lines = [
        "# Claims of the papers",
        "",
        f"Five documents have {len(rows)} claims and parts. "
        f"{counts([v for _, v, _ in judged]).capitalize()}.",
        "A part is a formula, method or rule. All parts hold: tests find that dualgap "
        "does as [the NumPy](beside.md), the twin, at every step, or as the theory.",
        "",
        f"The pages judge {len(every)} single conclusions. "
        f"{counts(every).capitalize()}.",
        "",
        "`pytest --all -k NAME` repeats a test, and these commands repeat the pages:",
        "",
    ]
    for page in sorted({row["page"] for row in rows if "page" in row}):
        found = COMMAND.search((PAPERS / f"{page}.md").read_text("utf-8"))
        if found:
            words = found[1].split()[: 2 + found[1].startswith("dualgap")]
            lines.append(f"- [{page}]({page}.md): `{' '.join(words)}`")
    for key, title in DOCUMENTS.items():
        mine = [r for r in judged if r[0]["id"].split("-")[0] == key]
        lines += ["", f"## {title}"]
        lines += table(
            ["claim", "place", "sets", "verdict", "number or reason", "page"],
            [
                [row["claim"], row["place"], row.get("sets", ""), *rest, evidence(row)]
                for row, *rest in mine
                if "tests" not in row
            ],
        )
        lines += table(
            ["part", "place", "measure", "tests"],
            [
                [row["claim"], row["place"], number, evidence(row)]
                for row, _, number in mine
                if "tests" in row
            ],
        )[1:-1]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    (PAPERS / "claims.md").write_text(write(), "utf-8")

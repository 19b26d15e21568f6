"""``dualgap reproduce``: run the experiments of a paper, beside its own figures."""

from __future__ import annotations

import os

from ..papers.names import PAPERS
from .options import Options
from .parser import Argument, UsageError, Values
from .report import print_json

EPILOG = (
    "dualgap reproduce pegasos2011 --quick",
    "dualgap reproduce pegasos2011 --table 1 --data mine.svm --output pages",
    f"The papers are {', '.join(PAPERS)}. Each page has the paper's claims with "
    "verdicts computed from this run, and its tables with the published figures beside "
    "what was measured.",
    "The paper's sets are read from the folder that DUALGAP_DATA names. --quick needs "
    "no files. --data takes svmlight text with two classes, or the name of a set.",
)
OPTIONS = """
Data:
  --table -t NAME ...
    Table or figure of the paper; may be repeated. [default: all of them]
  --data SET ...
    Data set by name, or a file of svmlight text; may be repeated. [default: the sets of
    the published page]
  --quick
    Take less than a minute, on data without files.
  --seeds N
    Runs of each method.
Output:
  --output -o FOLDER
    Folder for page, picture and results; without it the page is only printed.
  --keep
    Measure only what the results in FOLDER lack.
"""


def add(command: Options) -> None:
    """Add the options."""
    text = f"One of {', '.join(PAPERS)}."
    paper = Argument("paper", "PAPER", text, required=False, words=PAPERS)
    command.arguments.append(paper)
    command.add(OPTIONS)
    command.common()


def run(o: Values) -> None:
    """Measure, and print the page."""
    if o.paper not in PAPERS:
        what = "PAPER is missing" if o.paper is None else f"no paper {o.paper}"
        raise UsageError(f"{what}; give one of {', '.join(PAPERS)}.")
    if o.keep and o.output is None:
        raise UsageError("--keep needs the folder of the results: --output FOLDER.")
    from ..papers.frame import paper_of, reproduce

    known = [*paper_of(o.paper).parts]
    for table in o.table or ():
        if table not in known:
            tables = ", ".join(known)
            raise UsageError(f"{o.paper} has no table {table}; give one of {tables}.")
    page = reproduce(
        o.paper, tables=o.table or (), sets=o.data or (), quick=o.quick, seeds=o.seeds,
        output=o.output, keep=o.keep,
    )  # fmt: skip
    if o.json:
        claims = [
            {"claim": v.claim, "place": v.place, "verdict": v.word,
             "measured": v.what, "sets": v.sets} for v in page.verdicts
        ]  # fmt: skip
        print_json({"paper": o.paper, "claims": claims, "results": page.results})
        return
    print(page.text(), end="")
    if o.output is not None:
        names = [f"{page.name}{end}" for end in (".md", ".png", ".json")]
        names += page.files
        files = [name for name in names if os.path.isfile(os.path.join(o.output, name))]
        print(f"\nWritten to the folder {o.output}: {', '.join(files)}")


COMMANDS = {"reproduce": (EPILOG, add, run)}

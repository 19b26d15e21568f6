"""The ledger of the papers' claims has every item, and says what the pages say."""

from __future__ import annotations

import json
import re
import runpy

import pytest

from dualgap.papers.page import Verdict

from .conftest import ROOT

PAPERS = ROOT / "docs" / "papers"
ROWS = json.loads((PAPERS / "claims.json").read_text("utf-8"))
#: Items of the five documents, by the beginnings of their names.
ITEMS = {"sgd": 18, "sdca": 8, "pegasos": 12, "fw": 14}


@pytest.fixture
def ledger():
    return runpy.run_path(str(ROOT / "docs" / "claims.py"))


def test_the_page_is_what_the_ledger_makes(ledger):
    assert (PAPERS / "claims.md").read_text("utf-8") == ledger["write"](), (
        "a verdict has changed: read it, then run python docs/claims.py"
    )


def test_all_52_items_are_there_with_one_kind_of_evidence():
    ids = [row["id"] for row in ROWS]
    wanted = [f"{name}-{k + 1}" for name, most in ITEMS.items() for k in range(most)]
    assert len(wanted) == 52
    assert set(wanted) <= set(ids)
    assert len(ids) == len(set(ids))
    for row in ROWS:
        assert len({"tests", "page", "cannot"} & row.keys()) == 1, row["id"]
        assert len(row.get("cannot", "a reason of words").split()) > 3, row["id"]


def test_the_tests_that_are_named_exist():
    named = {test for row in ROWS for test in row.get("tests", [])}
    assert len(named) > 20
    there = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text("utf-8"), re.M)
    }
    assert named - there == set()


def test_a_page_that_says_something_else_is_noticed(ledger, tmp_path):
    """Numbers are read from the page, and a sentence that is gone is an error."""
    judge = ledger["judge"]
    judge.__globals__["PAPERS"] = tmp_path
    row = {"id": "x-1", "page": "a", "says": r"ahead in (\d+ of \d+) cases"}
    for text, verdict in (
        ("ahead in 8 of 8 cases", "holds"),
        ("ahead in 3 of 8 cases", "holds on 3 of 8"),
        ("ahead in 0 of 8 cases", "does not hold"),
    ):
        (tmp_path / "a.md").write_text(text)
        assert judge(row) == (verdict, text.split("in ")[1].removesuffix(" cases"))
    (tmp_path / "a.md").write_text("behind in all cases")
    with pytest.raises(ValueError, match=re.escape("x-1: a.md no longer says")):
        judge(row)


ALL = "conclusions hold on every set"
VERDICTS = [
    Verdict("A is fast", "Table 1", "seconds", {"x": (True, "2"), "y": (False, "3")}),
    Verdict("A beats B", "Table 1", "runs", {"x": (True, "2"), "y": (True, "3")}),
    Verdict("B beats A", "Table 2", "runs", {"x": (False, "2"), "y": (False, "3")}),
    Verdict("C beats A", "Table 2", "runs", {"x": (None, "2"), "y": (None, "3")}),
    Verdict("D wins", "Table 3", "runs", {f"set {k}": (True, "1") for k in range(9)}),
]


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"row": ["A is fast"], "says": "nothing"}, ("holds on 1 of 2", "x 2; y 3")),
        ({"row": ["B beats A (Table 2)"]}, ("does not hold", "x 2; y 3")),
        ({"row": ["C beats"]}, ("open", "x 2; y 3")),
        ({"row": ["(Table 3)"]}, ("holds", "on the page")),
        ({"row": ["beats"]}, ("holds on 2 of 6", f"1 of 3 {ALL}")),
        ({"says": "(A is) fast", "verdict": "holds"}, ("holds", "A is")),
        ({"says": "(A is) fast", "verdict": "x", "number": "5"}, ("x", "5")),
    ],
)
def test_a_row_may_ask_for_one_verdict_or_for_several(ledger, tmp_path, row, found):
    (tmp_path / "a.md").write_text("A is fast.")
    judge = ledger["judge"]
    judge.__globals__["PAPERS"] = tmp_path
    judge.__globals__["verdicts"] = lambda page: VERDICTS if page == "a" else []
    assert judge({"id": "x-1", "page": "a"} | row) == found


def test_the_verdicts_of_a_page_are_those_of_its_results(ledger):
    assert ledger["verdicts"]("blood_cells") == []
    found = {v.claim: v.word for v in ledger["verdicts"]("sdca2013")}
    text = (PAPERS / "sdca2013.md").read_text("utf-8")
    assert len(found) == 7
    for claim, word in found.items():
        (row,) = re.findall(rf"^\| {re.escape(claim)} \(.*$", text, re.M)
        assert f" | {word} | " in row

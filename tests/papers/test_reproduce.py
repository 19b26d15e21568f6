"""``dualgap reproduce``: the published pages, what a run says, and what is refused."""

from __future__ import annotations

import copy
import csv
import json
import re
from pathlib import Path

import pytest

from dualgap.cli import run
from dualgap.papers import data, sdca2013
from dualgap.papers.frame import page_of, paper_of, published, reproduce
from dualgap.papers.names import PAPERS, kept
from dualgap.papers.page import Verdict

from ..conftest import ROOT

DOCS = ROOT / "docs" / "papers"


#: Most words of all pages about papers. It may only fall.
WORDS = 10_500
#: Claims about sets or programs that a quick run does not have.
UNKNOWN = {
    "RCV1's 800,000 rows take less than 5 s",
    "Its J, L_T and T are the published ones",
    "Pegasos has numerical problems",
    "The published T are ones that these methods produce",
    "Pegasos has this test error at the paper's accuracy",
    "SVM-Light and LASVM are faster on small sets",
}


def stored(name):
    return json.loads((DOCS / f"{name.replace('-', '_')}.json").read_text("utf-8"))


def verdict(name, results, beginning):
    """Return the verdict about the claim that begins so."""
    (found,) = (
        v for v in page_of(name, results).verdicts if v.claim.startswith(beginning)
    )
    return found


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", PAPERS)
def test_a_published_page_is_what_its_results_make(name):
    page, module = page_of(name, stored(name)), name.replace("-", "_")
    drawn = (DOCS / f"{module}.png").exists()
    text = (DOCS / f"{module}.md").read_text("utf-8")
    assert page.text(beside=True, picture=drawn) == text
    files = {path.name: path.read_text("utf-8") for path in DOCS.glob(f"{module}_*.csv")
             if module != "pegasos2011" or "kernels" not in path.name}  # fmt: skip
    assert page.files == files
    assert all(f"]({file})" in text for file in files)


def test_the_pages_are_short():
    """Long tables are in files beside them."""
    pages = [path.read_text("utf-8") for path in DOCS.glob("*.md")]
    assert sum(len(re.findall(r"\S*\w\S*", page)) for page in pages) <= WORDS


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", PAPERS)
def test_a_page_that_is_printed_has_the_tables_of_the_files_in_its_text(name):
    page = page_of(name, stored(name))
    text = page.text()
    assert ".csv" not in text
    for name, file in page.files.items():
        if not name.endswith("_claims.csv"):  # of which the text has a column less
            for row in csv.reader(file.splitlines()):
                assert all(cell in text for cell in row)
    for verdict in page.verdicts:
        assert f"| {' | '.join(verdict.short().values())} |" in text


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", PAPERS)
def test_a_page_of_one_set_names_no_other(name):
    """Neither in its claims nor in what was measured."""
    results = stored(name)
    first, *others = results["sets"]
    results["sets"] = {first: results["sets"][first]}
    page = page_of(name, results)
    assert {s for v in page.verdicts for s in v.sets} <= {first}
    data_line = re.search(r"^- \*\*Data\.\*\*.*$", page.text(), re.M)[0]
    assert not any(data.worded(other) in data_line for other in others)


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", kept("settings"))
def test_every_setting_has_words_and_is_used(name):
    folder, module = Path(data.__file__).parent, name.replace("-", "_")
    files = [folder / "frame.py", *folder.glob(f"**/{module}.*")]
    code = "".join(file.read_text("utf-8") for file in files if file.suffix != ".pyc")
    for key, (_, words) in kept("settings")[name].items():
        assert len(words.split()) > 1, key
        assert re.search(rf"\b(SETTINGS|settings|s)\.{key}\b", code), key


@pytest.mark.long
@pytest.mark.cases(None)
@pytest.mark.parametrize("name", PAPERS)
def test_a_quick_run_needs_no_files_and_its_page_is_made_of_its_results(
    name, tmp_path, monkeypatch
):
    monkeypatch.setenv("DUALGAP_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("DUALGAP_CACHE", str(tmp_path / "none"))
    page = reproduce(name, quick=True, output=tmp_path)
    kept = json.loads((tmp_path / f"{name.replace('-', '_')}.json").read_text("utf-8"))
    assert page_of(name, kept).text() == page.text()
    assert {*kept["sets"]} == {*paper_of(name).settings.quick_run["sets"]}
    unknown = {v.claim for v in page.verdicts if not v.sets}
    assert unknown <= UNKNOWN
    again = reproduce(name, quick=True, output=tmp_path, keep=True)
    assert again.text() == page.text()


@pytest.fixture
def own(tmp_path):
    """Return the path of svmlight text with two classes."""
    X, y = data.load("breast-cancer")
    lines = [
        f"{label:g} " + " ".join(f"{k + 1}:{v:.4g}" for k, v in enumerate(row))
        for label, row in zip(y[:150], X[:150].toarray(), strict=True)
    ]
    path = tmp_path / "mine.svm"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def test_a_file_of_ones_own_is_measured_beside_the_published_figures(
    own, tmp_path, capsys
):
    options = ["--table", "1", "--data", own, "--quick", "--seeds", "1"]
    folder = tmp_path / "pages"
    assert run(["reproduce", "pegasos2011", *options, "-o", str(folder)]) == 0
    told = capsys.readouterr().out
    place, files = told.splitlines()[-1].split(": ")
    assert place == f"Written to the folder {folder}"
    assert sorted(files.split(", ")) == sorted(p.name for p in folder.iterdir())
    assert re.search(r"^\| \S*mine.svm \| .*\), \d+ / \d+ \|", told, re.M)
    cells = " | ".join(published("pegasos2011", "1")["rows"]["CCAT"])
    assert f"| CCAT, published | {cells} |" in told
    assert run(["reproduce", "pegasos2011", *options, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [*found["results"]["sets"]] == [own]
    assert {claim["verdict"] for claim in found["claims"]} > {"not measured"}


@pytest.mark.long
@pytest.mark.cases(None)
@pytest.mark.parametrize("name", PAPERS)
def test_every_paper_takes_a_file_of_ones_own(name, own):
    page = reproduce(name, sets=[own], quick=True, seeds=1)
    assert f"- **Data.** {data.worded(own)}.\n" in page.text()
    assert any(verdict.sets for verdict in page.verdicts)


@pytest.mark.parametrize(
    ("words", "status", "told"),
    [
        ([], 2, "PAPER is missing; give one of pegasos2011"),
        (["pegasus"], 2, "no paper pegasus; give one of pegasos2011"),
        (["pegasos2011", "-t", "9"], 2, "no table 9; give one of 1, batches, sampling"),
        (["pegasos2011", "--data", "x.svm"], 1, "'x.svm' here; give imdb, rcv1-like"),
        (["pegasos2011", "--keep"], 2, "--keep needs the folder"),
        (["pegasos2011"], 1, "set DUALGAP_DATA to the folder of the real data sets"),
        (["pegasos2011", "--data", "three.svm"], 1, "three.svm has 3 classes"),
    ],
)
@pytest.mark.cases(None)
def test_what_cannot_be_reproduced_is_refused(
    words, status, told, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DUALGAP_DATA", str(tmp_path))
    (tmp_path / "three.svm").write_text("1 1:1\n2 1:2\n3 1:3\n")
    assert run(["reproduce", *words]) == status
    assert told in capsys.readouterr().err


def test_a_quick_run_is_not_added_to_the_results_of_a_full_one(tmp_path):
    (tmp_path / "pegasos2011.json").write_text('{"quick":false,"sets":{}}')
    with pytest.raises(ValueError, match=r"has a full run .* not a quick run"):
        reproduce("pegasos2011", quick=True, output=tmp_path, keep=True)


def test_a_run_is_not_added_to_the_results_of_other_seeds(tmp_path):
    """The page says how many there are, of all its tables."""
    path = tmp_path / "sdca2013.json"
    path.write_text('{"quick":true,"seeds":3,"sets":{}}')
    with pytest.raises(ValueError, match=r"with 3 seeds, not a .* with 1 seeds; give"):
        reproduce("sdca2013", quick=True, output=tmp_path, keep=True)


def test_a_page_names_the_command_that_made_it(own):
    given = {"tables": ["absolute"], "sets": [own], "seeds": 1, "quick": True}
    page = reproduce("sdca2013", **given)
    options = f"--quick --table absolute --data {own} --seeds 1"
    assert f"`dualgap reproduce sdca2013 {options}`. Seeds: 1." in page.text()


@pytest.mark.parametrize(
    ("found", "word", "p"),
    [
        ([], "not measured", ""),
        ([None], "open", ""),
        ([True, None], "holds on 1 of 2", ""),
        ([False, None], "holds on 0 of 2", ""),
        ([False, False], "does not hold", ""),
        ([True] * 4, "holds", ""),
        ([True] * 4 + [None], "holds on 4 of 5", ""),
        ([True] * 5, "holds", "0.031"),
        ([True, True, True, False, False, None], "holds on 3 of 6", "0.5"),
        ([False] * 5, "does not hold", "1"),
    ],
)
@pytest.mark.cases(None)
def test_a_verdict_counts_the_sets_that_decide(found, word, p):
    """Fewer than five can show nothing, and then there is no test."""
    sets = {str(k): (value, "") for k, value in enumerate(found)}
    verdict = Verdict("It holds", "Table 1", "runs", sets)
    assert (verdict.word, verdict.p) == (word, p)


def test_many_claims_are_counted_above_their_table():
    page = page_of("nanculef2014", stored("nanculef2014"))
    told = re.findall(r"(\d+) ([a-z ]+)", page.counts.partition(" claims: ")[2])
    counts = {kind: int(number) for number, kind in told}
    assert sum(counts.values()) == len(page.verdicts)
    words = [verdict.word for verdict in page.verdicts]
    assert counts["hold"] == words.count("holds")
    none = sum(word.startswith(("does not", "holds on 0")) for word in words)
    assert counts["do not hold"] == none > words.count("does not hold")
    assert page.counts in page.text().split("<details>")[0]
    short = page.text(beside=True)
    for verdict in [v for v in page.verdicts if v.sets]:
        told = f"{verdict.place}: {verdict.word.removeprefix('holds on ')}"
        (row,) = re.findall(rf"^\| {re.escape(verdict.claim)} \| .*$", short, re.M)
        assert told in row


def test_a_batch_size_that_hurts_is_not_called_flat():
    results = stored("pegasos2011")
    wide = copy.deepcopy(results)
    for found in results["sets"].values():
        found["batches"]["errors"] = [
            [on, e, [1.0, *(3.0 for _ in rest)]]
            for on, e, (_, *rest) in found["batches"]["errors"]
        ]
    for found in wide["sets"].values():
        found["batches"]["errors"] = [
            [on, e, [1.0 for _ in errors]]
            for on, e, errors in found["batches"]["errors"]
        ]
    claim = "At a fixed number of rows read"
    assert verdict("pegasos2011", results, claim).word == "does not hold"
    assert verdict("pegasos2011", wide, claim).word == "holds"


def test_bent_traces_are_not_linear_convergence():
    epochs = [*range(1, 41)]
    straight = [epochs, [10 ** (-0.1 * e) for e in epochs]]
    bent = [epochs, [0.1 / e**2 for e in epochs]]
    first, second = sdca2013.rates(straight)
    assert first == pytest.approx(0.1)
    assert second == pytest.approx(0.1)
    first, second = sdca2013.rates(bent)
    assert second < first / 2
    claims = "The smoothed hinge converges linearly", "The hinge is slower at the end"
    for trace, words in ((bent, ("does not hold", "holds")),
                         (straight, ("holds", "does not hold"))):  # fmt: skip
        results = stored("sdca2013")
        for found in results["sets"].values():
            traces = found["smoothing"]["traces"]
            found["smoothing"]["traces"] = [[lam, g, trace] for lam, g, _ in traces]
        for claim, word in zip(claims, words, strict=True):
            assert verdict("sdca2013", results, claim).word == word


def test_lasting_epochs_are_beside_the_first_ones():
    runs = [[0.01, 0.1, (7, 16), None], [0.01, 0.01, (31, None), (4, 4)]]
    row = dict(sdca2013.rows("a9a", {"crossing": {"most": 60, "rows": runs}}))
    assert [*row["targets"].values()] == ["0.01", "7 (16) / > 60", "31 (–) / 4 (4)"]


def test_steps_that_grow_with_the_rows_are_told_from_those_that_do_not():
    claim = "The steps of Pegasos do not grow with the rows"
    for steps, word in (
        (lambda n: [n] * 3, "does not hold"),
        (lambda n: [1000] * 3, "holds"),
        (lambda n: [], "open"),
        (lambda n: [n] * 3 if n < 5000 else [], "does not hold"),
    ):
        results = stored("pegasos-rows")
        for found in results["sets"].values():
            curves = found["rows"]["curves"]
            curves["Pegasos"] = [[n, steps(n)] for n, _ in curves["Pegasos"]]
        assert verdict("pegasos-rows", results, claim).word == word


def test_values_off_the_published_ones_are_not_called_the_same():
    results, claim = stored("sgd-revisited"), "Its J, L_T and T are the published ones"
    assert verdict("sgd-revisited", results, claim).word == "holds"
    results["sets"]["a9a"]["1"]["sgd-s"]["primal"] *= 1.01
    changed = verdict("sgd-revisited", results, claim)
    assert changed.word == "holds on 1 of 2"
    assert changed.sets["a9a"] == (False, "+1e-02 and -9e-08, T 1.00 times")
    results["sets"]["w8a"]["1"]["sgd-s"]["relative_gap"] = 2e-5
    proved = verdict("sgd-revisited", results, "SGD-s gets as accurate as one likes")
    assert proved.sets["w8a"] == (False, "2e-05 (target 1e-05)")
    assert proved.word == "holds on 1 of 2"
    results["sets"]["a9a"]["kkt"][4][3] = 0.9
    fell = verdict("sgd-revisited", results, "alpha goes to 0 and to C")
    assert fell.sets["a9a"] == (False, "82 % at last, 49 to 90 % before")


def test_a_method_is_faster_where_most_pairs_of_runs_agree():
    results, claim = stored("sgd-revisited"), "SGD-m gains much on Pegasos"
    runs = results["sets"]["w8a"]["2"]["runs"]
    for times, found in (
        ([[1.0, 9], [2.0, 9]], (True, "15")),  # as fast as at most one of five
        ([[0.1, 9], [0.3, 9]], (None, "2")),
        ([[0.1, 9], None], (None, "at the limit")),
        ([[0.01, 9], [0.02, 9]], (False, "0.15")),
    ):
        runs["Pegasos"], runs["SGD-m"] = times, [[0.05, 5], [0.15, 5]]
        if times[1] is None:
            runs["SGD-m"] = [None, None]
        judged = verdict("sgd-revisited", results, claim)
        assert judged.sets["w8a"] == found
    assert "published 2.8 to 16, above 1 on 8 of 8" in judged.what

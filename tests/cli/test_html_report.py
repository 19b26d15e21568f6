"""The command report: the page is the page of the function."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dualgap
from dualgap import LinearSVC, html_report, load_model
from dualgap.models import write_liblinear

from .running import call, refused, write

pytest.importorskip("matplotlib")


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(html_report, "svg", lambda draw: b"<svg/>")


@pytest.mark.parametrize("labels", [[-1, 1], [3, 1, 7]])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_the_page_of_a_model(labels: list[int], kernel: str | None) -> None:
    X, y = write("data", labels)
    call("train", "data", "model", *(["--kernel", kernel] if kernel else []))
    told = call("report", "data", "model", "-o", "page.html").stdout
    assert told == "Report written to page.html\n"
    model = load_model("model")
    if kernel:
        model.n_jobs = -1
    names = [str(k + 1) for k in range(X.shape[1])]
    page = dualgap.report(model, X, y, feature_names=names).html
    assert Path("page.html").read_text("utf-8") == page
    Path("page.html").write_text(page[:50])  # a page is replaced
    again = call("report", "data", "model", "-o", "page.html", "--json").stdout
    assert (json.loads(again)["output"], json.loads(again)["n"]) == ("page.html", 60)
    assert Path("page.html").read_text("utf-8") == page


@pytest.mark.parametrize("task", ["regression", "one-class"])
def test_other_tasks(task: str) -> None:
    write("data", [1, 2, 4])
    call("train", "data", "model", "--task", task)
    call("report", "data", "model")
    words = {"regression": "mean absolute error", "one-class": "outliers"}
    assert words[task] in Path("report.html").read_text("utf-8")


def test_tables_have_names_and_models_their_scaling() -> None:
    rows = [
        f"{k % 7},{1000 * (k % 5)},1,{'no' if k % 7 < 3 else '<y>'}" for k in range(60)
    ]
    Path("t.csv").write_text("\n".join(["<a>,b,c,kind", *rows]) + "\n")
    call("train", "t.csv", "plain", "--tol", "0.1")
    call("train", "t.csv", "scaled", "--standardize")
    call("report", "t.csv", "plain", "plain.html")
    page = Path("plain.html").read_text("utf-8")
    assert "the values of column &lt;a&gt; span 6, the values of b 4e+03" in page
    assert "1 of 3 columns are constant (c)" in page
    assert "<td>&lt;y&gt;</td>" in page
    call("report", "t.csv", "scaled", "-o", "scaled.html")
    assert "different scales" not in Path("scaled.html").read_text("utf-8")


def test_files_of_liblinear() -> None:
    X, y = write("data", [5, 2])
    write_liblinear(LinearSVC(C=0.5).fit(X, y), "m")
    assert "is a file of LIBLINEAR" in refused("report", "data", "m")
    call("report", "data", "m", "--C", "0.5")
    assert "near the optimum" in Path("report.html").read_text("utf-8")

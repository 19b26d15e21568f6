"""The page where Pegasos can be watched: its numbers are the twin's, and it works."""

from __future__ import annotations

import json
import re
import runpy
import shutil
import subprocess

import numpy as np
import pytest

from dualgap import certify
from dualgap.papers.twins import PegasosTwin

from .conftest import ROOT

DOCS = ROOT / "docs"
SCRIPT = DOCS / "_static" / "pegasos.js"
PLAIN = {"lambda": 0.01, "k": 1, "project": False, "order": "permutation", "seed": 1}
RUN = """
const {ROWS, Run, batches} = require(process.argv[1]);
const [settings, steps] = JSON.parse(process.argv[2]);
const run = new Run(settings).to(steps), made = [];
for (const A of batches(settings.order, settings.k, settings.seed)) {
  if (made.length === steps) break;
  made.push(A);
}
const {w, b} = run.model;
console.log(JSON.stringify({rows: ROWS, w, b, curve: run.curve, batches: made}));
"""


def run(steps, **settings):
    """Run the script's steps under node."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("node is not installed")
    given = json.dumps([PLAIN | settings, steps])
    command = [node, "-e", RUN, str(SCRIPT), given]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    rows = np.array(found["rows"])
    found["X"] = np.column_stack([rows[:, :2], np.ones(len(rows))])
    found["y"] = rows[:, 2]
    return found


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("settings", "steps"),
    [
        ({}, 500),
        ({"k": 7, "order": "random", "seed": 3}, 120),
        ({"k": 40, "order": "cyclic"}, 60),
        ({"lambda": 0.001, "project": True}, 400),
        ({"lambda": 1.0, "k": 3, "project": True, "order": "random"}, 99),
    ],
)
def test_the_script_makes_the_steps_of_the_twin(settings, steps):
    found, settings = run(steps, **settings), PLAIN | settings
    X, y, lam = found["X"], found["y"], settings["lambda"]
    twin, C = PegasosTwin(X, y, lam, project=settings["project"]), 1 / (lam * len(y))
    curve = {point["t"]: point for point in found["curve"]}
    for A in found["batches"]:
        twin.step(A)
        if twin.t in curve:
            P = lam / 2 * twin.w @ twin.w + np.maximum(0, 1 - y * (X @ twin.w)).mean()
            alpha = np.clip(twin.b, 0, C)
            w = X.T @ (alpha * y)
            D = lam * (alpha.sum() - w @ w / 2)
            np.testing.assert_allclose(curve[twin.t]["P"], P, rtol=1e-9)
            np.testing.assert_allclose(curve[twin.t]["D"], D, rtol=1e-9, atol=1e-9)
    assert max(curve) == twin.t == steps
    np.testing.assert_allclose(found["w"], twin.w, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found["b"], twin.b, rtol=1e-9, atol=1e-12)
    proof = certify(twin.w, X, y, C)
    best = curve[steps]["best"]
    assert best[1] <= lam * proof.primal * (1 + 1e-9)
    assert lam * proof.dual <= best[0] * (1 + 1e-9)


@pytest.mark.parametrize("order", ["permutation", "random", "cyclic"])
def test_every_epoch_has_its_rows(order):
    found = run(12, k=16, order=order)["batches"]
    assert [len(A) for A in found] == [16, 16, 8] * 4
    epochs = [[i for A in found[at : at + 3] for i in A] for at in range(0, 12, 3)]
    whole = [sorted(epoch) == list(range(40)) for epoch in epochs]
    assert all(whole) != (order == "random")
    assert (epochs[0] == epochs[1]) == (order == "cyclic")


def gap(rows_read, **settings):
    """Return the relative gap of the best P and D after so many rows."""
    steps = -(-rows_read // settings.get("k", 1))
    gaps = []
    for seed in (1, 2, 3, 4, 5):
        P, D = run(steps, seed=seed, **settings)["curve"][-1]["best"]
        gaps.append((P - D) / D)
    return float(np.median(gaps))


@pytest.mark.long
def test_the_page_says_what_can_be_seen():
    """The list "What to try", in medians of five orders."""
    plain = gap(40_000)
    assert 3 < gap(40_000, **{"lambda": 0.001}) / plain < 9
    assert 3 < plain / gap(40_000, **{"lambda": 0.1}) < 9
    assert 0.5 < gap(4_000, k=10) / gap(4_000) < 1.5
    assert gap(4_000, k=40) / gap(4_000) > 1.5
    assert 3 < gap(40_000, order="random") / plain < 9
    assert 0.8 < gap(400, project=True) / gap(400) < 1.25


@pytest.fixture
def tab(tmp_path):
    """Open the page's script and style in a browser."""
    sync = pytest.importorskip(
        "playwright.sync_api", reason="the package playwright is not installed"
    )
    look = runpy.run_path(str(DOCS / "look.py"))
    text = (DOCS / "pegasos-live.md").read_text("utf-8")
    (body,) = re.findall(r"^```\{raw\} html\n(.*?)^```$", text, re.S | re.M)
    shutil.copytree(DOCS / "_static", tmp_path / "_static")
    style = '<link rel="stylesheet" href="_static/site.css">'
    meta = '<meta name="viewport" content="width=device-width">'
    (tmp_path / "a.html").write_text(f"<!doctype html>{meta}{style}{body}", "utf-8")
    with sync.sync_playwright() as play:
        try:
            program = look["browser"](play)
        except sync.Error as error:
            pytest.skip(f"no browser was found: {error}"[:80])
        page = program.new_page()
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.goto((tmp_path / "a.html").as_uri())
        yield page
        program.close()


def test_the_page_obeys_the_keyboard(tab):
    numbers = tab.locator(".live-numbers")
    first = numbers.inner_text()
    assert first.startswith("Step 400: best P ")
    tab.keyboard.press("Tab")
    assert tab.evaluate("document.activeElement.name") == "lambda"
    tab.keyboard.press("ArrowRight")
    changed = numbers.inner_text()
    assert changed.startswith("Step 400: best P ")
    assert changed != first
    reached = [tab.keyboard.press("Tab") or tab.evaluate("document.activeElement.name")
               for _ in range(8)]  # fmt: skip
    assert reached == [
        *("k", "order", "project", "play", "one", "epoch", "again", "seed"),
    ]
    tab.locator("[name=one]").press("Enter")
    assert numbers.inner_text().startswith("Step 401:")
    tab.locator("[name=play]").press("Space")
    tab.wait_for_function("document.querySelector('[name=play]').innerText == 'Pause'")
    tab.locator("[name=play]").press("Space")
    assert numbers.inner_text() > "Step 401:"
    tab.locator("[name=again]").press("Enter")
    start = "Step 0: best P 1.0000, best D 0.0000, so nothing is proved yet."
    assert numbers.inner_text().startswith(start)
    assert tab.faults == []


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_fits_the_screen(tab, width):
    tab.set_viewport_size({"width": width, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    left, right = (tab.locator("svg").nth(k).bounding_box() for k in (0, 1))
    stacked = right["y"] > left["y"]
    assert stacked == (width == 390)

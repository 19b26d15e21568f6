"""docs/look.py finds dead links, and what is wider than the screen or too long."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

LOOK = runpy.run_path(str(Path(__file__).resolve().parents[1] / "docs" / "look.py"))


def test_dead_links_are_found(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(
        '<h1 id="top">a</h1> <a href="#top">x</a> <a href="sub/b.html#there">x</a>'
        '<a href="https://example.org/#no">x</a> <a href="sub/b.html#gone">x</a>'
    )
    (tmp_path / "sub" / "b.html").write_text(
        '<p id="there"></p> <a href="../a.html">x</a> <img src="../c%20d.png">'
        '<a href="gone.html">x</a>'
    )
    assert LOOK["dead_links"](tmp_path) == [
        "a.html: dead link sub/b.html#gone",
        "sub/b.html: dead link ../c%20d.png",
        "sub/b.html: dead link gone.html",
    ]
    (tmp_path / "c d.png").write_bytes(b"")
    assert len(LOOK["dead_links"](tmp_path)) == 2


@pytest.fixture
def pages(tmp_path):
    """Pages of one fault each, and one without."""
    box = '<div style="overflow-x: auto">{}</div>'
    wide = "<table><tr><td><p style='width: {}px'>cell</p></td></tr></table>"
    bodies = {
        "good": "<pre>short</pre>" + box.format(wide.format(600)),
        "table": wide.format(2000),
        "scrolled": box.format(wide.format(2000)),
        "code": "<pre>" + "long " * 60 + "</pre>",
        "length": "<p style='height: 9000px'>page</p>",
        "genindex": "<p style='height: 9000px'>a page that may be long</p>",
    }
    for name, body in bodies.items():
        text = f"<!doctype html><body><article>{body}</article></body>"
        (tmp_path / f"{name}.html").write_text(text)
    return tmp_path


def test_what_is_too_wide_or_too_long_is_found(pages, tmp_path):
    try:
        faults = list(LOOK["look"](pages, tmp_path / "pictures"))
    except RuntimeError as error:
        pytest.skip(str(error))
    found = {(fault.split(".")[0], fault.split()[1]) for fault in faults}
    assert found == {
        *(("table", width) for width in ("390", "1280")),
        *(("code", width) for width in ("390", "1280")),
        *(("scrolled", "1280"), ("length", "1280")),
    }
    names = [path.name for path in (tmp_path / "pictures").iterdir()]
    assert len(names) == 6 * 4
    assert "genindex.narrow-dark.png" in names

"""The site's settings that depend on its address, and what scripts draw for it."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

from dualgap import distributed

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
CARD = "https://example.org/dualgap/_static/card.png"


def settings(monkeypatch, address):
    monkeypatch.setenv("DOCS_URL", address)
    return runpy.run_path(str(DOCS / "conf.py"))


def test_without_an_address_there_is_no_sitemap(monkeypatch):
    found = settings(monkeypatch, "")
    assert found["html_baseurl"] == ""
    assert not {"sphinx_sitemap", "sphinxext.opengraph"} & set(found["extensions"])


def test_the_link_to_the_repository_is_that_of_the_environment(monkeypatch):
    monkeypatch.delenv("REPOSITORY_URL", raising=False)
    assert "icon_links" not in settings(monkeypatch, "")["html_theme_options"]
    monkeypatch.setenv("REPOSITORY_URL", "https://example.org/code")
    (link,) = settings(monkeypatch, "")["html_theme_options"]["icon_links"]
    assert (link["name"], link["url"]) == ("Repository", "https://example.org/code")


def test_reading_the_settings_changes_nothing_in_the_package(monkeypatch):
    settings(monkeypatch, "")
    assert distributed.LinearSVC.__name__ == "DistributedLinearSVC"


@pytest.mark.cases(None)
@pytest.mark.parametrize("end", ["", "/"])
def test_the_address_is_that_of_the_pages_and_of_the_card(monkeypatch, end):
    found = settings(monkeypatch, f"https://example.org/dualgap{end}")
    assert {"sphinx_sitemap", "sphinxext.opengraph"} <= set(found["extensions"])
    assert found["html_baseurl"] == "https://example.org/dualgap/"
    assert found["ogp_image"] == CARD


def test_pages_with_an_address_are_listed_and_have_a_card(monkeypatch, tmp_path):
    """Two small pages are built with these settings alone."""
    for package in ("sphinx", "sphinx_sitemap", "sphinxext.opengraph"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    keys = r"html_baseurl|sitemap_\w+|ogp_\w+|project"
    found = settings(monkeypatch, "https://example.org/dualgap")
    lines = [f"{k} = {v!r}" for k, v in found.items() if re.fullmatch(keys, k)]
    lines.append('extensions = ["sphinx_sitemap", "sphinxext.opengraph"]')
    (tmp_path / "conf.py").write_text("\n".join(lines))
    (tmp_path / "index.rst").write_text(
        "First\n=====\n\nText.\n\n.. toctree::\n\n   b\n"
    )
    (tmp_path / "b.rst").write_text("Second\n======\n\nMore text.\n")
    site = tmp_path / "site"
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(tmp_path), str(site)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stderr
    listed = re.findall("<loc>(.*?)</loc>", (site / "sitemap.xml").read_text("utf-8"))
    base = "https://example.org/dualgap/"
    assert sorted(listed) == [f"{base}b.html", f"{base}index.html"]
    for name in ("index", "b"):
        page = (site / f"{name}.html").read_text("utf-8")
        tags = dict(re.findall(r'<meta property="(og:\w+)" content="(.*?)"', page))
        assert tags["og:image"] == CARD
        assert tags["og:url"] == f"{base}{name}.html"
        assert tags["og:title"] in ("First", "Second")
        assert f'<link rel="canonical" href="{base}{name}.html"' in page


def test_the_badges_show_the_facts():
    script = runpy.run_path(str(DOCS / "badges.py"))
    readme = (ROOT / "README.md").read_text("utf-8")
    for name, fact in script["facts"]().items():
        assert (DOCS / "badges" / f"{name}.svg").read_text("utf-8") == script["badge"](
            *fact
        )
        assert f"docs/badges/{name}.svg" in readme
    assert len(list((DOCS / "badges").iterdir())) == len(script["facts"]())


def test_the_logo_is_the_one_that_is_drawn():
    script = runpy.run_path(str(DOCS / "logo.py"))
    for name, stroke in (("logo", 4.5), ("favicon", 7)):
        drawn = (DOCS / "_static" / f"{name}.svg").read_text("utf-8")
        assert drawn == script["draw"](stroke)


def test_the_card_is_drawn_as_large_as_posts_show_it(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    path = tmp_path / "card.png"
    runpy.run_path(str(DOCS / "logo.py"))["draw_card"](path)
    for file in (path, DOCS / "_static" / "card.png"):
        start = file.read_bytes()[:24]
        assert start.startswith(b"\x89PNG")
        sizes = int.from_bytes(start[16:20], "big"), int.from_bytes(start[20:24], "big")
        assert sizes == (1200, 630)

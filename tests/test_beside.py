"""The page that shows the methods beside their papers quotes lines that are there."""

from __future__ import annotations

import re

import pytest

import dualgap.papers.twins as twins

from .conftest import ROOT

PAGE = ROOT / "docs" / "papers" / "beside.md"
QUOTE = re.compile(
    r"```\{literalinclude\} (\S+)\n:language: (\w+)\n:dedent:\n"
    r":start-at: (.+)\n:end-at: (.+)\n```"
)
QUOTES = QUOTE.findall(PAGE.read_text("utf-8"))


def quoted(path, start, end):
    """Return the lines that Sphinx shows, as its start-at and end-at choose them."""
    lines = (PAGE.parent / path).resolve().read_text("utf-8").splitlines()
    begins = [k for k, line in enumerate(lines) if start in line]
    assert len(begins) == 1, f"{path} has {len(begins)} lines with {start!r}"
    rest = lines[begins[0] :]
    ends = [k for k, line in enumerate(rest) if end in line]
    assert ends, f"{path} has no line with {end!r} after {start!r}"
    return rest[: ends[0] + 1]


@pytest.mark.cases(None)
@pytest.mark.parametrize(("path", "language", "start", "end"), QUOTES)
def test_each_quotation_is_in_its_file(path, language, start, end):
    assert 1 <= len(quoted(path, start, end)) <= 40
    assert path.endswith({"python": ".py", "cpp": ".hpp"}[language])


def test_a_lost_marker_is_found():
    path, _, start, end = QUOTES[0]
    with pytest.raises(AssertionError, match="has 0 lines with 'no such line'"):
        quoted(path, "no such line", end)
    with pytest.raises(AssertionError, match="has no line with 'no such line' after"):
        quoted(path, start, "no such line")


def test_every_section_has_three_columns_and_every_twin_a_section():
    text = PAGE.read_text("utf-8")
    sections = re.findall(r"^:class-container: beside$(.*?)^::::$", text, re.M | re.S)
    assert len(sections) == 8
    for section in sections:
        titles = ("**The paper**", "**In NumPy**", "**In the package**")
        assert [section.count(title) for title in titles] == [1, 1, 1]
    assert text.count("{literalinclude}") == len(QUOTES)
    for name in set(twins.__all__) - {"Phi", "NORMATwin"}:
        assert f"`{name}`" in text, name

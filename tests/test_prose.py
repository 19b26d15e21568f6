"""A coarse check of docstrings, comments, messages and the pages for users."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sorted((ROOT / "src" / "dualgap").rglob("*.py"))
CORE = sorted((ROOT / "src").rglob("*.[ch]pp"))
SCRIPTS = sorted(
    p for d in ("benchmarks", "examples") for p in (ROOT / d).rglob("*.py")
)
TESTS = sorted((ROOT / "tests").rglob("*.py"))
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *DOCS.glob("*.md")]
PAGES += [*DOCS.glob("papers/*.md"), *DOCS.glob("solvers/*.md")]
LONGEST, WORD = 40, r"\S*\w\S*"  # words of a sentence on a page
#: A text that begins so lacks its noun or its verb.
FRAGMENT = re.compile(
    r"(?:What|How|Where|[Oo]f|[Tt]hat|[Tt]hose|As of)\b"
    r"|The same(?: (?:\w+ )?(?:as|for|from|in|of|with)\b|[.,:;])"
)
BANNED = re.compile(
    r"\b(?:ours|theirs|so many|so much|th(?:at|ose) of|(?:what is|was) asked|asked for"
    r"|anew|mended|lies? down|last reading|quiet machine|not run here)\b",
    re.IGNORECASE,
)


def banned(text):
    """Return the banned phrases, also one that a line break divides."""
    return BANNED.findall(re.sub(r"\s*\n\s*(?:#:?|//)?\s*", " ", text))


def text_of_code(source):
    """Return the comments and texts of a script, without its names."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    found = [t.string.lstrip("#") for t in tokens if t.type == tokenize.COMMENT]
    values = [getattr(node, "value", None) for node in ast.walk(ast.parse(source))]
    return "\n".join(found + [v for v in values if isinstance(v, str) and " " in v])


def fragments_of_docstrings(source):
    """Return the docstrings of a module that begin with a fragment."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            text = ast.get_docstring(node) or ""
            if "bool" not in ast.unparse(getattr(node, "returns", None) or []):
                text = re.sub(r"^Whether", "What", text)  # allowed for predicates
            found += [text] * bool(FRAGMENT.match(text))
    return found


def fragments_of_code(source):
    """Return the docstrings and messages of a module that begin with a fragment."""
    found, skipped = fragments_of_docstrings(source), set()
    for node in ast.walk(ast.parse(source)):
        text = ""
        if isinstance(node, ast.Expr):
            skipped.add(node.value)  # a docstring
        elif isinstance(node, ast.JoinedStr):
            skipped.update(node.values)
            text = ast.unparse(node)[2:]
        elif isinstance(node, ast.Constant) and node not in skipped:
            text = str(node.value)
        found += [text] * bool(FRAGMENT.match(text) and len(text.split()) > 2)
    return found


def paragraphs(page):
    """Return paragraphs, list items and table cells, without code, links and marks."""
    page = re.sub(r"^( *`{3,})(?!\{gloss).*?^\1`*$", "", page, flags=re.S | re.M)
    page = re.sub(r"<!--.*?-->", "", page, flags=re.S)
    # headings, directives and formulas
    page = re.sub(r"^(?:#|---|:| {4,}.* = ).*$", "", page, flags=re.M)
    page = re.sub(r"`[^`]*`", "`code`", re.sub(r"\]\([^)]*\)", "]", page))
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:[-*|<]|\d+\.))| \| ", page)
    return [re.sub(r"^\s*(?:[-*|]|\d+\.)?[\s*_\[(\"]*", "", part) for part in parts]


def fragments_of_page(page):
    return [text for text in paragraphs(page) if FRAGMENT.match(text)]


def long_sentences(page):
    texts = [re.split(r"(?<=[.!?])\W*\s", text) for text in paragraphs(page)]
    return [s for text in texts for s in text if len(re.findall(WORD, s)) > LONGEST]


@pytest.mark.long
def test_the_prose_is_plain():
    texts = {file: file.read_text("utf-8") for file in PYTHON + CORE + PAGES}
    found = [(file, banned(text)) for file, text in texts.items()]
    for file in SCRIPTS:
        texts[file] = file.read_text("utf-8")
        found.append((file, banned(text_of_code(texts[file]))))
    found += [(file, fragments_of_code(texts[file])) for file in PYTHON + SCRIPTS]
    found += [(f, fragments_of_docstrings(f.read_text("utf-8"))) for f in TESTS]
    found += [(file, fragments_of_page(texts[file])) for file in PAGES]
    found += [(file, long_sentences(texts[file])) for file in PAGES]
    assert [(file.name, faults) for file, faults in found if faults] == []


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("check", "text", "faults"),
    [
        (banned, "The bound is tighter than ours.\n# The rows are those\n# of C.", 2),
        (banned, "It is as fast as hours before, so the many rows of both stay.", 0),
        (lambda s: banned(text_of_code(s)), "ours = 1  # ours\nx = 'by theirs'", 2),
        (fragments_of_code, '"""What a fit is about."""\nx = f"of {n} rows all"', 2),
        (fragments_of_code, 'def f() -> int:\n    """Whether rows are sorted."""', 1),
        (fragments_of_code, 'def f() -> bool:\n    """Whether rows are sorted."""', 0),
        (fragments_of_docstrings, 'def f():\n    """The same score for all."""', 1),
        (fragments_of_docstrings, 'x = "of two the larger"', 0),
        (fragments_of_page, "Of two the larger.\n- **Those** left\n\n| a | of x |", 3),
        (fragments_of_page, "## How it works\n\n```\nOf\n```\n\nRows of that kind", 0),
        (long_sentences, "A row. A" + " long" * 39 + "\n`sentence` of words.", 1),
        (long_sentences, "```\n" + "word " * 50 + "\n```\n" + "A row. " * 50, 0),
    ],
)
def test_a_planted_fault_is_found(check, text, faults):
    assert len(check(text)) == faults

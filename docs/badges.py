"""Draw the badges of the README: ``python docs/badges.py``.

Their facts come from pyproject.toml and from the page on how dualgap is tested.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "badges"
LABEL, VALUE = "#555555", "#1f6f8b"  # white text can be read on both
CHARACTER, MARGIN = 6.6, 8  # pixels


def facts() -> dict[str, tuple[str, str]]:
    """Return the label and the text of every badge, by the name of its file."""
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project)
    licence = re.search(r'^license = "(.*)"', project, re.M)
    trust = (ROOT / "docs" / "trust.md").read_text("utf-8")
    proofs = re.search(
        r"\| ([\d,]+) certificates of [\d,]+ problems \| (\d+) false", trust
    )
    typed = (ROOT / "src" / "dualgap" / "py.typed").exists()
    typed = typed and re.search(r"\[tool\.mypy\]\n(?:\w.*\n)*strict = true\n", project)
    if not (versions and licence and proofs and typed):
        raise ValueError("a fact is missing in pyproject.toml or docs/trust.md")
    return {
        "python": ("Python", f"{versions[0]} to {versions[-1]}"),
        "licence": ("licence", licence[1]),
        "typed": ("typed", "strictly"),
        "certificates": ("certificates checked", f"{proofs[1]}, {proofs[2]} false"),
    }


def badge(label: str, text: str) -> str:
    """Return one badge as SVG."""
    left, right = (round(len(t) * CHARACTER) + 2 * MARGIN for t in (label, text))
    label, text = escape(label), escape(text)
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img">
<title>{label}: {text}</title>
<rect width="{left + right}" height="20" rx="3" fill="{VALUE}"/>
<path d="M3 0H{left}V20H3a3 3 0 0 1-3-3V3a3 3 0 0 1 3-3z" fill="{LABEL}"/>
<g fill="#ffffff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">
<text x="{left / 2}" y="14">{label}</text>
<text x="{left + right / 2}" y="14">{text}</text>
</g>
</svg>
"""


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, fact in facts().items():
        (FOLDER / f"{name}.svg").write_text(badge(*fact), "utf-8")

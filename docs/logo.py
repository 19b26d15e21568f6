"""Draw the logo, the favicon and the card of links: ``python docs/logo.py``.

P falls, D rises, and the optimum is between them. The card, a picture of 1200 x 630
pixels, is what a post shows beside a link to the pages; it needs matplotlib.
"""

from __future__ import annotations

import textwrap
from math import exp
from pathlib import Path

STATIC = Path(__file__).parent / "_static"
#: Both read well on white and on black.
PRIMAL, DUAL, BETWEEN = "#e8743b", "#2f9fc4", "#8a8a8a"


def curve(sign: int, steps: int = 24) -> list[tuple[float, float]]:
    """Return the points of P (sign -1, as y points down) or D (sign 1), 64 wide."""
    span = [step / steps for step in range(steps + 1)]
    return [(6 + 52 * t, 32 + sign * (3.5 + 22.5 * exp(-4 * t))) for t in span]


def path(points: list[tuple[float, float]]) -> str:
    """Return the points as the data of an SVG path."""
    return "M" + " L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def draw(stroke: float) -> str:
    """Return the picture, with lines of this width, as SVG."""
    above, below = curve(-1), curve(1)
    line = f'fill="none" stroke-width="{stroke}" stroke-linecap="round"'
    return f"""\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" role="img">
<title>dualgap</title>
<path d="{path(above + below[::-1])} Z" fill="{BETWEEN}" fill-opacity="0.25"/>
<path d="{path(above)}" stroke="{PRIMAL}" {line}/>
<path d="{path(below)}" stroke="{DUAL}" {line}/>
</svg>
"""


def draw_card(path: Path) -> None:
    """Draw the logo, the name and the summary of the package, as PNG."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure = plt.figure(figsize=(12, 6.3), facecolor="white")
    ax = figure.add_axes((0, 0, 1, 1), xlim=(0, 1200), ylim=(630, 0))
    ax.axis("off")
    points = {
        sign: [(90 + 5 * x, 155 + 5 * y) for x, y in curve(sign)] for sign in (-1, 1)
    }
    ax.fill(*zip(*points[-1], *points[1][::-1], strict=True), BETWEEN, alpha=0.25)
    for sign, color in ((-1, PRIMAL), (1, DUAL)):
        line = ax.plot(*zip(*points[sign], strict=True), color=color, linewidth=16)
        line[0].set_solid_capstyle("round")
    ax.text(480, 250, "dualgap", fontsize=84, weight="bold", color="#222222")
    project = (STATIC.parents[1] / "pyproject.toml").read_text("utf-8")
    summary = textwrap.fill(project.split('description = "')[1].split('"')[0], 26)
    ax.text(480, 310, summary, fontsize=36, color="#444444", va="top", linespacing=1.4)
    figure.savefig(path, dpi=100)
    plt.close(figure)


if __name__ == "__main__":
    draw_card(STATIC / "card.png")
    (STATIC / "logo.svg").write_text(draw(4.5), "utf-8")
    (STATIC / "favicon.svg").write_text(draw(7), "utf-8")

"""Draw the logo and the favicon: ``python docs/logo.py``.

P falls, D rises, and the optimum is between them.
"""

from __future__ import annotations

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


if __name__ == "__main__":
    (STATIC / "logo.svg").write_text(draw(4.5), "utf-8")
    (STATIC / "favicon.svg").write_text(draw(7), "utf-8")

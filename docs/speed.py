"""Draw the chart of the README and print its table: ``python docs/speed.py``.

It shows the seconds that dualgap and other packages take to within 0.1 % of the optimum
of linear SVMs, as benchmarks/front_page.json has them. Nothing is measured here.
oneDAL, which solves another problem, and random numbers are left out.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: Names of packages in the results, as readers know them.
NAMES = {"dualgap": "dualgap", "liblinear": "LIBLINEAR", "sklearn": "scikit-learn"}


def cases() -> list[dict[str, Any]]:
    """Return data, rows, columns, C, and (seconds, whether it got there) by package."""
    results = ROOT / "benchmarks" / "front_page.json"
    found = []
    for case in json.loads(results.read_text("utf-8"))["cases"]:
        packages = case.pop("packages")
        if case["data"].endswith("-like"):
            continue
        times = {}
        for key, name in NAMES.items():
            row = packages[key]
            times[name] = (row.get("seconds", row.get("over")), "seconds" in row)
        found.append(case | {"times": times})
    return found


def table() -> str:
    """Return dualgap's seconds and the ratios of all others as a table in Markdown."""
    others = [name for name in NAMES.values() if name != "dualgap"]
    lines = [
        f"| data | rows x columns | C | dualgap | {' | '.join(others)} |",
        "|---|---|---|---|" + "---|" * len(others),
    ]
    for case in cases():
        own, _ = case["times"]["dualgap"]
        cells = [case["data"], f"{case['rows']:,} x {case['columns']:,}"]
        cells += [f"{case['C']:g}", f"{own:.2g} s"]
        for name in others:
            seconds, reached = case["times"][name]
            cells.append(f"{'' if reached else '> '}{float(f'{seconds / own:.2g}'):g}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(path: Path) -> None:
    """Draw the chart to a file."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    from dualgap.plot import COLORS

    rows = cases()
    figure, ax = plt.subplots(figsize=(7.4, 4.2), layout="constrained")
    colors = dict(zip(NAMES.values(), (COLORS[1], COLORS[0], COLORS[2]), strict=True))
    for place, row in enumerate(rows):
        for k, (name, (seconds, reached)) in enumerate(row["times"].items()):
            y = place + 0.25 * (k - 1)
            ax.barh(
                y, seconds, 0.22, color=colors[name], alpha=1.0 if reached else 0.55
            )
            text = f" {'' if reached else '> '}{seconds:.2g} s"
            ax.text(seconds, y, text, va="center", fontsize="x-small")
    for name, color in colors.items():
        ax.barh([0], [0], color=color, label=name)
    labels = [
        f"{r['data']}, C = {r['C']:g}\n{r['rows']:,} x {r['columns']:,}" for r in rows
    ]
    ax.set_yticks(range(len(rows)), labels, fontsize="small")
    ax.invert_yaxis()
    ax.set(xscale="log", xlim=(0.01, 400), xlabel="processor seconds of one fit")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.set_title("Seconds to within 0.1 % of the optimum (less is better)",
                 fontsize="medium")  # fmt: skip
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, ncols=3, loc="lower center", bbox_to_anchor=(0.4, -0.28))
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    draw(ROOT / "docs" / "speed.png")
    print(table())

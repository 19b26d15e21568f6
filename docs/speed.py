"""Draw the chart of the README: ``python docs/speed.py``.

It shows the time of scikit-learn's `LinearSVC` and `SVC`, and of the fastest of all
others, over dualgap's time, in cases of the benchmarks. Nothing is measured here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
#: The cases: kind of model and data, at C = 1 and an accuracy of 1e-3.
LINEAR = ("sector", "a9a", "covtype", "donors")
KERNEL = ("pendigits-10", "ijcnn1", "covtype-20k")
#: Names of packages in the results, as readers know them.
NAMES = {
    "sklearn": "scikit-learn",
    "sgd": "SGDClassifier",
    "onedal": "oneDAL",
    "libocas": "libocas",
}


def cases() -> list[dict[str, Any]]:
    """Return label, milliseconds, both ratios and the other package of every case."""
    found = []
    for kind, names in (("linear", LINEAR), ("kernel", KERNEL)):
        text = (ROOT / "benchmarks" / kind / "results.json").read_text("utf-8")
        for name in names:
            (cell,) = (
                cell
                for cell in json.loads(text)["cells"]
                if (cell["data"], cell["C"]) == (name, 1.0)
                and (kind == "kernel" or cell["accuracy"] == 1e-3)
                and cell.get("kind", "AVX-512") == "AVX-512"
            )
            linear = kind == "linear"
            found.append(
                {
                    "label": f"{name}, {'linear' if linear else 'RBF'}",
                    "milliseconds": 1000 * cell["ours"],
                    "sklearn": cell["ratio_baseline" if linear else "ratio_sklearn"],
                    "reached": cell["baseline_reached"] if linear else True,
                    "best": cell["ratio"],
                    "package": NAMES[cell["rival"]],
                }
            )
    return found


def draw(path: Path) -> None:
    """Draw the chart to a file."""
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    from dualgap.plot import COLORS

    rows = cases()
    figure, ax = plt.subplots(figsize=(7.4, 4.4), layout="constrained")
    for place, row in enumerate(rows):
        more = "" if row["reached"] else "> "
        ax.barh(place - 0.2, row["sklearn"], 0.38, color=COLORS[1])
        ax.text(
            row["sklearn"], place - 0.2, f" {more}{row['sklearn']:.3g}", va="center"
        )
        if row["package"] != "scikit-learn":
            ax.barh(place + 0.2, row["best"], 0.38, color=COLORS[5])
            text = f" {row['best']:.3g} ({row['package']})"
            ax.text(row["best"], place + 0.2, text, va="center")
    ax.barh([0], [0], color=COLORS[1], label="scikit-learn's LinearSVC, SVC")
    ax.barh([0], [0], color=COLORS[5], label="fastest of all others")
    ax.axvline(1, color="black", linewidth=1)
    ax.set_yticks(range(len(rows)), [row["label"] for row in rows])
    ax.invert_yaxis()
    ax.set(xscale="log", xlim=(0.9, 1500), xlabel="time over dualgap's time")
    ax.set_title("Time to within 0.1 % of the optimum, dualgap = 1", fontsize="medium")
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    draw(ROOT / "docs" / "speed.png")

"""Table, picture and summary of the paired runs; see run.py."""

from __future__ import annotations

import itertools
import math
import statistics
from pathlib import Path

from bench import ACCURACIES, CAP, COSTS, DATA
from datasets import ROOT
from harness import (
    BASELINE,
    NOISE,
    Report,
    Results,
    as_csv,
    by_rival,
    geometric,
    mark,
    median,
    number,
    publish,
    setting,
    versions,
)
from rivals import RIVALS

HERE = Path(__file__).resolve().parent
DOCS = ROOT / "docs"


def total(rows: list[dict]) -> float:
    """Seconds with import and conversion."""
    return median(rows, "cpu", "import_cpu", "convert_cpu")


def missed(results: Results, name: str, C: float, eps: float, run: str) -> set[tuple]:
    """Settings that reached the accuracy in the sweep, but not with most seeds."""
    _, upper = results.bracket(name, C)
    rows = results.where(stage="pair", data=name, C=C, eps=eps, run=run)
    primal: dict[tuple, list[float]] = {}
    for r in rows:
        primal.setdefault(setting(r), []).append(r.get("primal", math.inf))
    return {key for key, values in primal.items()
            if statistics.median(values) > upper * (1 + eps)}  # fmt: skip


def never(
    results: Results, rival: str, name: str, C: float, eps: float
) -> float | None:
    """Seconds that a rival counts as which no pair has at this accuracy.

    The cap if it ran out of settings; else the longest fit that was waited for, at
    this C or a smaller one. What its sweep took if that came there later. None if it
    was not tried.
    """
    _, upper = results.bracket(name, C)
    counts = [r["cpu"] for r in results.where(stage="sweep", data=name, rival=rival,
                                              C=C)
              if r.get("primal", math.inf) <= upper * (1 + eps)]  # fmt: skip
    for family in RIVALS[rival].families:
        rows = [r for r in results.where(stage="sweep", data=name, rival=rival,
                                         family=family) if r["C"] <= C]  # fmt: skip
        here = [r for r in rows if r["C"] == C and "error" not in r]
        if not here:
            continue
        capped = any("capped" in r for r in here)
        waited = max((r.get("capped", 0.0) for r in rows), default=0.0)
        counts.append(min(waited, CAP) if capped else CAP)
    return min(counts, default=None)


def cell(results: Results, name: str, C: float, eps: float) -> dict | None:
    """Figures of one cell, from the last run over it."""
    marks = results.where(stage="cell", data=name, C=C, eps=eps)
    if not marks:
        return None
    rows = results.where(stage="pair", data=name, C=C, eps=eps, run=marks[-1]["run"])
    mine = [r for r in rows if r["rival"] == "dualgap"]
    timed = [r for r in mine if "cpu" in r]
    certified = bool(timed) and len(timed) == len(mine) and all(
        r["status"] == "certified" and r["gap"] <= eps for r in timed
    )  # fmt: skip
    ours = median(timed, "cpu") if certified else CAP
    lucky = missed(results, name, C, eps, marks[-1]["run"])
    reached = [r for r in rows if r["rival"] in RIVALS and "cpu" in r]
    theirs = by_rival([r for r in reached if setting(r) not in lucky] or reached)
    seconds = {rival: median(some, "cpu") for rival, some in theirs.items()}
    out = {"data": name, "C": C, "accuracy": eps, "solver": marks[-1]["solver"],
           "certified": certified, "ours": ours,
           "gap": max((r["gap"] for r in timed), default=None)}  # fmt: skip
    lower, upper = results.bracket(name, C)
    out["bracket"] = (upper - lower) / lower if lower > 0 else None
    if seconds:
        best = min(seconds, key=seconds.get)
        some = theirs[best]
        turn = {(r["round"], r["repeat"]): r["cpu"] for r in timed}
        pairs = [r["cpu"] / turn[r["round"], r["repeat"]] for r in some
                 if (r["round"], r["repeat"]) in turn]  # fmt: skip
        low, high = min(pairs, default=None), max(pairs, default=None)
        out |= {"rival": best, "setting": f"{some[0]['family']}, {some[0]['value']:g}",
                "theirs": seconds[best], "spread": [low, high],
                "reached": True}  # fmt: skip
        if certified:
            out["ratio_all"] = min(map(total, theirs.values())) / total(timed)
    else:
        counts = {rival: never(results, rival, name, C, eps) for rival in RIVALS}
        counts = {rival: s for rival, s in counts.items() if s is not None}
        if not counts:
            return None
        out |= {"rival": min(counts, key=counts.get), "theirs": min(counts.values()),
                "reached": False, "ratio_all": None}  # fmt: skip
    out["ratio"] = out["theirs"] / ours
    base = by_rival(reached).get(BASELINE)
    out["baseline_reached"] = base is not None
    base = median(base, "cpu") if base else never(results, BASELINE, name, C, eps)
    out["ratio_baseline"] = None if base is None else base / ours
    return out


def row(c: dict) -> str:
    mine = number(1000 * c["ours"]) if c["certified"] else "not certified"
    if c["reached"]:
        low, high = c["spread"]
        rival = f"{c['rival']} ({c['setting']})"
        theirs, spread = number(1000 * c["theirs"]), f"{number(low)} to {number(high)}"
    else:
        rival, theirs, spread = "none", f"> {number(1000 * c['theirs'])}", "–"
    lost = " **lost**" if c["ratio"] < 1 / NOISE else ""
    return (
        f"| {c['data']} | {c['C']:g}{mark(c['machine'])} | {c['accuracy']:g} | "
        f"{mine} | "
        f"{c['gap'] or 0:.1e} | {rival} | {theirs} | "
        f"{number(c['ratio'], not c['reached'])}{lost} | {spread} | "
        f"{number(c.get('ratio_all'))} | "
        f"{number(c['ratio_baseline'], not c['baseline_reached'])} |"
    )


HEAD = (
    "| data | C | accuracy | dualgap, ms | gap proved | best rival (setting) | "
    "rival, ms | ratio | range | ratio with import and conversion | ratio to "
    "scikit-learn |\n|---|---|---|---|---|---|---|---|---|---|---|"
)


def won(cells: list[dict]) -> int:
    """Count the cases in which dualgap is as fast as the best rival, but for noise."""
    return sum(c["ratio"] >= 1 / NOISE for c in cells)


def summary(cells: list[dict]) -> list[str]:
    base = [c["ratio_baseline"] for c in cells if c["ratio_baseline"]]
    overall = [c["ratio_all"] for c in cells if c.get("ratio_all")]
    return [
        f"**`LinearSVC` is at least as fast as the best rival in {won(cells)} of "
        f"{len(cells)} cases ({100 * won(cells) / len(cells):.1f} %).",
        "It proves the accuracy of its answer in "
        f"{sum(c['certified'] for c in cells)} of them.**",
        "",
        "The ratio of a case is the best rival's processor time over dualgap's.",
        "Above 1, dualgap is faster.",
        "",
        "- The geometric mean of the ratios is "
        f"{geometric([c['ratio'] for c in cells]):.2f}.",
        "- Against scikit-learn's `LinearSVC` the geometric mean is "
        f"{geometric(base):.2f}.",
        f"- Import and data conversion included, the mean is {geometric(overall):.2f} "
        "over the cases that a rival reached.",
        "  A value below 1 means that the best rival is ahead.",
        f"- dualgap loses {len(cells) - won(cells)} cases ([losses](#losses)).",
        "- No rival reached the accuracy within its time limit in "
        f"{sum(not c['reached'] for c in cells)} cases.",
    ]


def table_of_data(cells: list[dict]) -> list[str]:
    lines = [
        "| data | cases | won | mean ratio | smallest ratio | mean ratio to "
        "scikit-learn |\n|---|---|---|---|---|---|"
    ]
    for name in DATA:
        some = [c for c in cells if c["data"] == name]
        if some:
            ratios = [c["ratio"] for c in some]
            base = [c["ratio_baseline"] for c in some if c["ratio_baseline"]]
            lines.append(
                f"| {name} | {len(some)} | {won(some)} | "
                f"{geometric(ratios):.2f} | {min(ratios):.2f} | {geometric(base):.2f} |"
            )
    return lines


def top(cells: list[dict]) -> str:
    """Return the conclusion, the picture and the summary table."""
    return "\n".join([
        *summary(cells), "",
        "![Heat map: the ratio of every case](benchmarks-linear.png)", "",
        *table_of_data(cells),
    ])  # fmt: skip


def cases(cells: list[dict]) -> str:
    """Return the losses, and what is not known."""
    lost = [c for c in cells if c["ratio"] < 1 / NOISE]
    lines = ["### Losses", ""]
    if lost:
        loosest = sum(c["accuracy"] == ACCURACIES[0] for c in lost)
        lines += [f"{loosest} of the {len(lost)} losses are at the loosest accuracy, "
                  f"{ACCURACIES[0]:g}.", ""]  # fmt: skip
        lines += ["| data | C | accuracy | dualgap, ms | best rival (setting) | "
                  "rival, ms | ratio |", "|---|---|---|---|---|---|---|"]  # fmt: skip
        for c in lost:
            # The whole row, with the gap and further ratios, stands in the CSV file.
            cells_of_row = row(c)[2:].split(" | ")
            name, C, accuracy, mine, _, rival, theirs, ratio, *_ = cells_of_row
            ratio = ratio.removesuffix(" **lost**")
            lines.append(f"| {name} | {C} | {accuracy} | {mine} | {rival} | "
                         f"{theirs} | {ratio} |")  # fmt: skip
        lines.append("")
    else:
        lines += ["None.", ""]
    lines.append(f"[All {len(cells)} cases](tables/linear-cases.csv) are in a table.")
    loose = [c for c in cells if c["accuracy"] == ACCURACIES[-1]
             and (c["bracket"] is None or c["bracket"] > 1e-7)]  # fmt: skip
    if loose:
        lines += [
            "P\\* is not known to 1e-7 in these: "
            + ", ".join(
                f"{c['data']} C = {c['C']:g} ({c['bracket'] or math.inf:.0e})"
                for c in loose
            )
            + ". Rivals get the benefit of the doubt there."
        ]
    return "\n".join(lines)


def tables(cells: list[dict]) -> dict[str, str]:
    """Return the files in docs/tables."""
    return {"linear-cases": as_csv([HEAD, *map(row, cells)])}


def picture(cells: list[dict], path: Path) -> None:
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.colors import TwoSlopeNorm

    names = [name for name in DATA if any(c["data"] == name for c in cells)]
    grid = np.full((len(names), len(COSTS) * len(ACCURACIES)), np.nan)
    never_reached = []
    for c in cells:
        i = names.index(c["data"])
        j = COSTS.index(c["C"]) * len(ACCURACIES) + ACCURACIES.index(c["accuracy"])
        grid[i, j] = math.log10(c["ratio"])
        if not c["reached"]:
            never_reached.append((i, j))
    figure, axes = plt.subplots(figsize=(12, 0.8 + 0.42 * len(names)))
    image = axes.imshow(
        np.clip(grid, -1, 2), cmap="RdBu", norm=TwoSlopeNorm(0.0, -1.0, 2.0),
        aspect="auto",
    )  # fmt: skip
    for i, j in np.argwhere(np.isfinite(grid)):
        value = 10 ** grid[i, j]
        label = f"{value:.0f}" if value >= 10 else f"{value:.1f}"
        axes.text(j, i, f">{label}" if (i, j) in never_reached else label, ha="center",
                  va="center", fontsize=7, color="white" if grid[i, j] > 1.2 or
                  grid[i, j] < -0.6 else "black")  # fmt: skip
    axes.set_yticks(range(len(names)), names)
    axes.set_xticks(range(grid.shape[1]), [f"{e:.0e}" for e in ACCURACIES] * len(COSTS),
                    rotation=90, fontsize=7)  # fmt: skip
    for k, C in enumerate(COSTS):
        axes.text((k + 0.5) * len(ACCURACIES) - 0.5, -0.75, f"C = {C:g}", ha="center")
        axes.axvline(k * len(ACCURACIES) - 0.5, color="black", linewidth=0.8)
    axes.set_xlabel("accuracy")
    bar = figure.colorbar(image, ticks=[-1, 0, 1, 2])
    bar.set_ticklabels(["1/10", "1", "10", "100"])
    bar.set_label("seconds of the best rival / dualgap")
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


EVERY = list(itertools.product(DATA, COSTS, ACCURACIES))


def kept() -> Report:
    """Return the cells of results.json."""
    return Report.read(HERE / "results.json", ("data", "C", "accuracy"))


def in_order(whole: Report) -> list[dict]:
    """Return the cells as the tables have them."""
    return whole.in_order(EVERY)


def generated(whole: Report, cells: list[dict]) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "linear summary": top(cells),
        "linear cases": cases(cells),
        "linear machines": whole.provenance(cells),
    }


def report(results: Results) -> None:
    """Write the generated parts of the page, the picture and results.json."""
    found = {key: c for key in EVERY if (c := cell(results, *key))}
    whole = kept()
    if found:
        packages = {name: r.package for name, r in RIVALS.items()}
        machine = results.where(stage="machine")[-1]
        whole.add(machine, versions(results, packages), found)
    cells = in_order(whole)
    if not cells:
        print("no paired runs yet: nothing to report")
        return
    publish("linear", DOCS, generated(whole, cells), tables(cells))
    picture(cells, DOCS / "benchmarks-linear.png")
    whole.write(cells)
    print("\n".join(summary(cells)))

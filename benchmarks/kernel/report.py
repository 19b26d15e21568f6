"""Tables, picture and summary of the paired runs; see run.py."""

from __future__ import annotations

import itertools
import math
import statistics
from pathlib import Path

from bench import CAP, COSTS, EPS, NAMES, SMALL, arrays, read_shape
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
    versions,
)
from rivals import OURS, RIVALS

HERE = Path(__file__).resolve().parent
DOCS = ROOT / "docs"
ORDER = sorted(COSTS)
# Processors differ in what they take from whom: each has cells of its own.
KINDS = ("AVX-512", "AVX2", "")


def accuracy(results: Results, row: dict) -> float:
    _, upper = results.bracket(row["data"], row["C"])
    return (row["primal"] - upper) / upper if "primal" in row else math.inf


def waited(results: Results, rival: str, name: str, C: float) -> float | None:
    """Seconds that a rival counts as which never reached the accuracy; None: untried.

    The cap if it ran out of tolerances; else the longest fit that was waited for.
    """
    rows = results.where(stage="sweep", data=name, rival=rival, C=C)
    rows = [r for r in rows if "error" not in r]
    if not rows or any(accuracy(results, r) <= EPS for r in rows):
        return None
    capped = [r["capped"] for r in rows if "capped" in r]
    return max(capped) if capped else CAP


def floor(row: dict) -> float:
    """Seconds of 2d operations per row and support vector of its pairs.

    At the rate of NumPy's product of matrices.
    """
    _, d = read_shape(arrays(row["data"]))
    return 2.0 * row["meetings"] * d / (1e9 * row["gflops"])


def before_proof(row: dict, upper: float) -> float:
    """Return seconds up to the first proof, if dualgap had the accuracy then."""
    reached = (row["reached"] - upper) / upper <= EPS
    return row["cpu"] - row["proofs"] if reached else row["cpu"]


def cell(results: Results, name: str, C: float) -> dict | None:
    """Figures of one cell, from the last run over it."""
    marks = results.where(stage="cell", data=name, C=C)
    if not marks:
        return None
    rows = results.where(stage="pair", data=name, C=C, run=marks[-1]["run"])
    mine = [r for r in rows if r["rival"] == "dualgap"]
    timed = [r for r in mine if "cpu" in r]
    certified = bool(timed) and len(timed) == len(mine) and all(
        r["certified"] and r["gap"] <= EPS for r in timed
    )  # fmt: skip
    ours = median(timed, "cpu") if certified else CAP
    theirs = by_rival([r for r in rows if r["rival"] in RIVALS and "cpu" in r
                       and accuracy(results, r) <= EPS])  # fmt: skip
    seconds = {rival: median(some, "cpu") for rival, some in theirs.items()}
    lower, upper = results.bracket(name, C)
    out = {"data": name, "C": C, "ours": ours, "by": marks[-1]["ours"],
           "certified": certified, "bracket": (upper - lower) / upper}  # fmt: skip
    if timed:
        first = timed[0]
        out |= {"gap": max(r["gap"] for r in timed), "vectors": first["vectors"],
                "accuracy": accuracy(results, first), "test": first.get("test"),
                "floor": floor(first),
                "gflops": first["gflops"]}  # fmt: skip
        if all("proofs" in r for r in timed):
            out["unproved"] = statistics.median(before_proof(r, upper) for r in timed)
        out["claimed"] = abs(first["claimed"] - first["primal"]) / first["primal"]
    counts = {r: waited(results, r, name, C) for r in RIVALS}
    counts = {r: s for r, s in counts.items() if s is not None}
    if seconds:
        best = min(seconds, key=seconds.get)
        some = theirs[best]
        turn = {r["repeat"]: r["cpu"] for r in timed}
        pairs = [r["cpu"] / turn[r["repeat"]] for r in some if r["repeat"] in turn]
        out |= {"rival": best, "setting": f"{some[0]['family']}, {some[0]['value']:g}",
                "theirs": seconds[best], "reached": True,
                "spread": [min(pairs, default=None), max(pairs, default=None)]
                }  # fmt: skip
    elif counts:
        best = min(counts, key=counts.get)
        out |= {"rival": best, "theirs": counts[best], "reached": False}
    else:
        return None
    out["ratio"] = out["theirs"] / ours
    if "unproved" in out:
        out["ratio_unproved"] = out["theirs"] / out["unproved"]
    for rival in RIVALS:
        if rival in seconds:
            out[f"ratio_{rival}"] = seconds[rival] / ours
        elif rival in counts:
            out[f"over_{rival}"] = counts[rival] / ours
    out["predict"] = prediction(mine, theirs)
    if timed and "onedal" in theirs:
        out["predict_share"] = share_of_product(theirs["onedal"], first)
    out["missed"] = missed(results, name, C)
    out["memory"] = {
        r["rival"]: r["peak"] - r["before"]
        for r in results.where(stage="memory", data=name, C=C) if "peak" in r
    }  # fmt: skip
    out["nystroem"] = {
        f"{r['rival']} {r['value']:g}": [r["test"], r["cpu"]]
        for r in results.where(stage="nystroem", data=name, C=C) if "cpu" in r
    }  # fmt: skip
    return out


def missed(results: Results, name: str, C: float) -> list[list]:
    """Families that missed the accuracy at every tolerance that was tried.

    [rival, family, tightest tolerance, best accuracy]
    """
    found, fits = [], {}
    for r in results.where(stage="sweep", data=name, C=C):
        if "primal" in r:
            fits.setdefault((r["rival"], r["family"]), []).append(r)
    for key, rows in fits.items():
        best = min(accuracy(results, r) for r in rows)
        if best > EPS and len(rows) > 2:
            found.append([*key, min(r["value"] for r in rows), best])
    return found


def prediction(mine: list[dict], theirs: dict[str, list[dict]]) -> dict[str, float]:
    """{rival: ratio} of seconds per query and support vector.

    "single" compares scikit-learn with dualgap in float32, as oneDAL is in float32.
    """

    def rate(rows: list[dict], key: str = "predict") -> float | None:
        rows = [r for r in rows if r.get("queries") and key in r]
        cost = [r[key] / (r["queries"] * max(r["vectors"], 1)) for r in rows]
        return min(cost, default=None)

    own, single = rate(mine), rate(mine, "predict_single")
    found = {rival: rate(rows) for rival, rows in theirs.items()}
    ratios = {r: v / (single if r == "onedal" and single else own)
              for r, v in found.items() if v is not None and own}  # fmt: skip
    if single and found.get(BASELINE):
        ratios["single"] = found[BASELINE] / single
    return ratios


def share_of_product(rows: list[dict], ours: dict) -> float | None:
    """Rate of dense predictions over the rate of NumPy's product of matrices.

    2d operations per query and support vector: who computes them at more than half
    that rate cannot be twice as slow as anybody in float32.
    """
    _, d = read_shape(arrays(ours["data"]))
    rates = [2e-9 * d * r["queries"] * r["vectors"] / r["predict"] for r in rows
             if r.get("queries") and r["family"].startswith("dense")]  # fmt: skip
    return max(rates) / ours["gflops"] if rates else None


# ---- tables


def spread(c: dict) -> str:
    low, high = c.get("spread", [None, None])
    return f"{number(low)} to {number(high)}" if c["reached"] else "–"


def ratio_to(c: dict, rival: str) -> str:
    if f"ratio_{rival}" in c:
        return number(c[f"ratio_{rival}"])
    return number(c.get(f"over_{rival}"), f"over_{rival}" in c)


HEAD = (
    "| data | C | dualgap, s | before the proof, s | gap proved | nSV | best rival "
    "(setting) | rival, s | ratio | ratio before the proof | range |\n"
    "|---|---|---|---|---|---|---|---|---|---|---|"
)
HEAD_OF_RIVALS = (
    "| data | C | oneDAL | LIBSVM | scikit-learn | ThunderSVM | floor, s | dualgap / "
    "floor |\n|---|---|---|---|---|---|---|---|"
)


def row(c: dict) -> str:
    """Return a case beside the best rival."""
    mine = number(c["ours"]) if c["certified"] else "not certified"
    if not c["by"].endswith(f" {SMALL} MB"):
        mine += f" ({c['by'].split(', ')[-1]})"
    rival = f"{c['rival']} ({c['setting']})" if c["reached"] else f"none, {c['rival']}"
    lost = " **lost**" if c["ratio"] < 1 / NOISE else ""
    return (
        f"| {c['data']}{mark(c['machine'])} | {c['C']:g} | {mine} | "
        f"{number(c.get('unproved'))} | {c.get('gap', math.inf):.1e} | "
        f"{c.get('vectors', '–')} | {rival} | "
        f"{number(c['theirs'], not c['reached'])} | "
        f"{number(c['ratio'], not c['reached'])}{lost} | "
        f"{number(c.get('ratio_unproved'), not c['reached'])} | {spread(c)} |"
    )


def row_of_rivals(c: dict) -> str:
    """Return the ratios of a case to every rival, and its floor."""
    others = ("onedal", "libsvm", "sklearn", "thundersvm")
    distance = c["ours"] / c["floor"] if "floor" in c else None
    return (
        f"| {c['data']}{mark(c['machine'])} | {c['C']:g} | "
        + " | ".join(ratio_to(c, r) for r in others)
        + f" | {number(c.get('floor'))} | {number(distance)} |"
    )


#: What predictions are compared with: the key of a cell's "predict", and its name.
PREDICTED = {
    "onedal": "oneDAL",
    BASELINE: "scikit-learn",
    "single": "scikit-learn, dualgap in float32",
}


def predicted(cells: list[dict], key: str) -> list[float]:
    """Return the ratios of predictions that are known."""
    return [c["predict"][key] for c in cells if key in c["predict"]]


def summary(cells: list[dict]) -> list[str]:
    won = sum(c["ratio"] >= 1 / NOISE for c in cells)
    reached = [c["ratio"] for c in cells if c["reached"]]
    lines = [
        f"**`SVC` is at least as fast as the best rival in {won} of {len(cells)} "
        "cases.",
        "It proves the accuracy of its answer in "
        f"{sum(c['certified'] for c in cells)} of them.**",
        "",
        "The ratio of a case is the best rival's processor time over dualgap's.",
        "Above 1, dualgap is faster.",
        "",
        f"- The geometric mean over the {len(reached)} cases that a rival reached is "
        f"{geometric(reached):.2f}.",
        f"- The smallest ratio is {min(c['ratio'] for c in cells):.2f}.",
        "- Prediction has a mean ratio of "
        f"{geometric(predicted(cells, 'onedal')):.1f} to oneDAL and "
        f"{geometric(predicted(cells, BASELINE)):.1f} to scikit-learn "
        "([prediction](#prediction)).",
        "",
        "![Ratio of every case](benchmarks-kernel.png)",
        "",
        "| processor | C | cases | certified | won | mean ratio | mean ratio before "
        "the proof | smallest ratio | to oneDAL | to LIBSVM | to scikit-learn |\n"
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, C in itertools.product(KINDS, [*ORDER, None]):
        some = [c for c in cells if c["kind"] == kind and C in (None, c["C"])]
        if some:
            ratios = [c["ratio"] for c in some]
            means = []
            for key in ("unproved", "onedal", "libsvm", BASELINE):
                found = [c.get(f"ratio_{key}", c.get(f"over_{key}")) for c in some]
                found = [r for r in found if r is not None]
                means.append(f"{geometric(found):.2f} ({len(found)})" if found else "–")
            lines.append(
                f"| {kind} | {'all' if C is None else format(C, 'g')} | {len(some)} | "
                f"{sum(c['certified'] for c in some)} | "
                f"{sum(r >= 1 / NOISE for r in ratios)} | {geometric(ratios):.2f} | "
                f"{means[0]} | {min(ratios):.2f} | {' | '.join(means[1:])} |"
            )
    return lines


def predictions(cells: list[dict]) -> list[str]:
    lines = ["| rival | mean ratio | smallest ratio | cases |", "|---|---|---|---|"]
    for key, name in PREDICTED.items():
        found = predicted(cells, key)
        if found:
            lines.append(f"| {name} | {geometric(found):.1f} | {min(found):.1f} | "
                         f"{len(found)} |")  # fmt: skip
    return lines


def all_predictions(cells: list[dict]) -> list[str]:
    rows = []
    for c in cells:
        p = c["predict"]
        if p:
            names = ("onedal", "libsvm", BASELINE, "single")
            rows.append(
                f"| {c['data']}{mark(c['machine'])} | {c['C']:g} | {c['vectors']} | "
                + " | ".join(number(p.get(r)) for r in names)
                + f" | {number(c.get('predict_share'))} |"
            )
    head = ["| data | C | nSV | oneDAL / dualgap | LIBSVM / dualgap | scikit-learn / "
            "dualgap | scikit-learn / dualgap in float32 | oneDAL's rate / matrix "
            "product's |", "|---|---|---|---|---|---|---|---|"]  # fmt: skip
    return [*head, *rows]


def memory(cells: list[dict]) -> list[str]:
    names = ("dualgap", "onedal", "libsvm", BASELINE)
    rows = [f"| {c['data']} | {c['C']:g} | "
            + " | ".join(number(c["memory"].get(r)) for r in names)
            + " |" for c in cells if c["memory"]]  # fmt: skip
    head = ["| data | C | dualgap, MB | oneDAL | LIBSVM | scikit-learn |",
            "|---|---|---|---|---|---|"]  # fmt: skip
    return [*head, *rows]


def nystroem(cells: list[dict]) -> list[str]:
    head = ["| data | C | exact: accuracy / s | dualgap, 100 landmarks | 300 | 1000 | "
            "scikit-learn, 100 landmarks | 300 | 1000 |",
            "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    rows = []
    for c in cells:
        if c["nystroem"]:
            exact = f"{c['test']:.4f} / {number(c['ours'])}"
            keys = itertools.product(("dualgap-nystroem", "sklearn-nystroem"),
                                     (100, 300, 1000))  # fmt: skip
            here = [c["nystroem"].get(f"{r} {m}") for r, m in keys]
            shown = [f"{h[0]:.4f} / {number(h[1])}" if h else "–" for h in here]
            rows.append(f"| {c['data']} | {c['C']:g} | {exact} | {' | '.join(shown)} |")
    return [*head, *rows]


def misses(cells: list[dict]) -> list[str]:
    rows = [f"| {c['data']} | {c['C']:g} | {rival} | {family} | {tightest:g} | "
            f"{best:.1e} |" for c in cells
            for rival, family, tightest, best in c["missed"]]  # fmt: skip
    head = ["| data | C | rival | setting | tightest tolerance | best accuracy |",
            "|---|---|---|---|---|---|"]  # fmt: skip
    return [*head, *rows]


def text(cells: list[dict]) -> str:
    """Return the losses, what is not known, and the ratios of predictions."""
    lost = [f"{c['data']} C = {c['C']:g}" for c in cells if c["ratio"] < 1 / NOISE]
    open_ = [c for c in cells if c["bracket"] > 1e-5]
    lines = [
        f"Lost: {', '.join(lost) or 'none'}.",
        "",
        "| table | rows |",
        "|---|---|",
        f"| [fits beside the best rival](tables/kernel-cases.csv) | {len(cells)} |",
        f"| [ratios to each rival, floors](tables/kernel-ratios.csv) | {len(cells)} |",
    ]
    for title, name, rows in (
        ("predictions", "predictions", all_predictions(cells)),
        ("memory of fits on a fresh heap", "memory", memory(cells)),
        ("Nystroem features", "nystroem", nystroem(cells)),
        ("searches in which no tolerance led to the accuracy", "missed", misses(cells)),
    ):
        lines.append(f"| [{title}](tables/kernel-{name}.csv) | {len(rows) - 2} |")
    lines.append("")
    if open_:
        lines += [
            "P\\* is not known to 1e-5 in these cases: "
            + ", ".join(f"{c['data']} C = {c['C']:g} ({c['bracket']:.0e})"
                        for c in open_) + ".",
            "Rivals get the benefit of the doubt there.", "",
        ]  # fmt: skip
    lines += ["### Prediction", "",
              "Each ratio is a rival's seconds per query and support vector over "
              "dualgap's.",
              "Rows are test rows, on one thread.", "",
              *predictions(cells)]  # fmt: skip
    return "\n".join(lines)


def tables(cells: list[dict]) -> dict[str, str]:
    """Return the files in docs/tables."""
    return {
        "kernel-cases": as_csv([HEAD, *map(row, cells)]),
        "kernel-ratios": as_csv([HEAD_OF_RIVALS, *map(row_of_rivals, cells)]),
        "kernel-predictions": as_csv(all_predictions(cells)),
        "kernel-memory": as_csv(memory(cells)),
        "kernel-nystroem": as_csv(nystroem(cells)),
        "kernel-missed": as_csv(misses(cells)),
    }


def provenance(whole: Report, cells: list[dict]) -> str:
    """Return the machines, the versions and the rate of matrix products."""
    gflops = [c["gflops"] for c in cells if "gflops" in c]
    return (
        f"{whole.provenance(cells)}\n\nNumPy's product of float32 matrices ran at "
        f"{min(gflops):.0f} to {max(gflops):.0f} GFLOP/s."
    )


def picture(cells: list[dict], path: Path) -> None:
    import matplotlib.pyplot as plt

    names = [name for name in NAMES if any(c["data"] == name for c in cells)]
    figure, axes = plt.subplots(figsize=(10, 0.8 + 0.28 * len(names)))
    for (k, C), kind in itertools.product(enumerate(ORDER), KINDS):
        some = [c for c in cells if c["C"] == C and c["kind"] == kind]
        for reached, marker in ((True, "o"), (False, ">")):
            here = [c for c in some if c["reached"] is reached]
            axes.scatter([c["ratio"] for c in here],
                         [names.index(c["data"]) + 0.2 * (k - 1) for c in here],
                         marker=marker, edgecolors=f"C{k}",
                         facecolors=f"C{k}" if kind == KINDS[0] else "none",
                         label=f"C = {C:g}" + f", {kind}" * bool(kind)
                         if reached and here else None)  # fmt: skip
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set_xlabel("seconds of the best rival / dualgap (>: at least)")
    axes.legend()
    axes.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=150, bbox_inches="tight")
    plt.close(figure)


EVERY = list(itertools.product(NAMES, ORDER))


def kept() -> Report:
    """Return the cells of results.json."""
    return Report.read(HERE / "results.json", ("data", "C", "kind"))


def in_order(whole: Report) -> list[dict]:
    """Return the cells as the tables have them."""
    return whole.in_order((*key, kind) for key in EVERY for kind in KINDS)


def generated(whole: Report, cells: list[dict]) -> dict[str, str]:
    """Return the generated parts of the page."""
    return {
        "kernel summary": "\n".join(summary(cells)),
        "kernel cases": text(cells),
        "kernel machines": provenance(whole, cells),
    }


def report(results: Results) -> None:
    """Write the generated parts of the page, the picture and results.json."""
    found = {key: c for key in EVERY if (c := cell(results, *key))}
    whole = kept()
    if found:
        packages = {name: r.package for name, r in (RIVALS | OURS).items()}
        machine = results.where(stage="machine")[-1]
        kind = machine["vectors"]
        found = {(*key, kind): c | {"kind": kind} for key, c in found.items()}
        whole.add(machine, versions(results, packages), found)
    cells = in_order(whole)
    if not cells:
        print("no paired runs yet: nothing to report")
        return
    publish("kernel", DOCS, generated(whole, cells), tables(cells))
    picture(cells, DOCS / "benchmarks-kernel.png")
    whole.write(cells)
    print("\n".join(summary(cells)))

"""Experiments of Nanculef, Frandi, Sartori and Allende 2014 (Frank-Wolfe SVMs)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ..data.types import Parameters
from .frame import Budget, Paper, kept, published
from .nanculef_data import COLLECTIONS, SETS
from .nanculef_fits import (
    EQUAL,
    FAST,
    KERNELS,
    METHODS,
    SETTINGS,
    STOPS,
    measure,
    of,
    prove,
)
from .page import Finding, Row, Verdict, each, tally
from .pictures import Line, Panel
from .rank_tests import WORDS, friedman_row, wilcoxon_row

PROVED = (("SWAP", "CVM"), ("SWAP", "FW"), ("SWAP", "MFW"), ("SWAP-2o", "CVM"))
MEASURED = {
    "cpu": "ratio of seconds",
    "support": "ratio of support vectors",
    "points": "points more than each",
    "speed-up": "speed-up, compared with the set before",
    "share": "per cent of the rows, compared with the set before",
    "accuracy": "points more, each method",
    "seconds": "times the seconds, each method",
}


def cell_of(part: Parameters, method: str) -> list[Parameters]:
    """Return the fits of a method, of which there may be none."""
    return part.get("fits", {}).get(method, [])


def ended(part: Parameters, method: str) -> bool:
    """Whether there are fits and none was stopped."""
    cell = cell_of(part, method)
    return bool(cell) and all(f["done"] for f in cell)


def middle(part: Parameters, method: str, what: str) -> float:
    """Return a median over the seeds, NaN where a fit was stopped or not run."""
    found = [f[what] for f in cell_of(part, method)] if ended(part, method) else []
    return float(np.median(found)) if found else np.nan


def learned(part: Parameters, methods: Iterable[str]) -> bool:
    """Whether no model that was trained is as good as naming the larger class."""
    known = [m for m in methods if ended(part, m)]
    least = part.get("majority", 0.0) + SETTINGS.margin
    return all(middle(part, m, "accuracy") >= least for m in known)


def two_digits(value: float) -> str:
    """Return a number to two digits, without an exponent."""
    return f"{float(f'{value:.2g}'):,g}"


def ratio(part: Parameters, what: str, a: str, b: str, need: float) -> Finding | None:
    """Return whether b has at least `need` times the value of a; None if not run.

    A fit that was stopped counts with its limit. Seconds close to what is needed, and
    models that have learned nothing, leave the claim open.
    """
    if not (cell_of(part, a) and cell_of(part, b)):
        return None
    if not (ended(part, a) or ended(part, b)):
        return None, "stopped"
    sign = "" if ended(part, a) and ended(part, b) else "<" if ended(part, b) else ">"
    if sign and what != "cpu":
        return None, "stopped"
    x, y = (middle(part, m, what) if ended(part, m) else part["limit"] for m in (a, b))
    text = f"{sign} {two_digits(y / x)}".strip()
    if not learned(part, (a, b)):
        return None, f"{text}, no model"
    noise = SETTINGS.noise if what == "cpu" else 1.0
    if y / x >= need * noise:
        return (None if sign == "<" else True), text
    return (False if y / x < need / noise and sign != ">" else None), text


def ahead(
    part: Parameters, a: str, others: Sequence[str], words: str
) -> Finding | None:
    """Return whether a is more accurate than others, or as accurate, and the points."""
    known = [m for m in others if cell_of(part, m)]
    if not known or not cell_of(part, a):
        return None
    points = [100 * (middle(part, a, "accuracy") - middle(part, m, "accuracy"))
              for m in known]  # fmt: skip
    if np.isnan(points).any():
        return None, "stopped"
    text = ", ".join(f"{x:+.2f}" for x in points)
    if not learned(part, (a, *known)):
        return None, f"{text}, no model"
    apart = [x > 0 for x in points if abs(x) > SETTINGS.points]
    if " as accurate" in words:
        apart = [x > -SETTINGS.points for x in points]
    return tally(apart)[0] if apart else None, text


def growth(sets: Parameters, stop: str, what: str) -> dict[str, Finding]:
    """Return whether a value of SWAP rises or falls from a set of Web to the next."""
    each: dict[str, Finding] = {}
    before = np.nan
    for name in of("Web", sets):
        part = sets[name].get(stop, {})
        speed_up = middle(part, EQUAL, "cpu") / middle(part, "SWAP", "cpu")
        share = 100 * middle(part, "SWAP", "support") / part.get("rows", np.nan)
        value = speed_up if what == "speed-up" else -share
        if np.isnan(value):
            continue
        found = None if np.isnan(before) else bool(value >= before)
        model = learned(part, ("SWAP", EQUAL))
        text = two_digits(abs(value)) + ", no model" * (not model)
        each[name] = found if model else None, text
        before = value
    return each


def polynomial(sets: Parameters, what: str) -> dict[str, Finding]:
    """Return how the kernels compare: one point or a factor of two is the same."""
    each: dict[str, Finding] = {}
    for name, parts in sets.items():
        values = np.array([
            [middle(parts.get(key, {}), m, what) for m in FAST]
            for key in ("polynomial", "1 sample")
        ])  # fmt: skip
        own, other = values[:, np.isfinite(values).all(axis=0)]
        if own.size and what == "accuracy":
            points = 100 * (own - other)
            text = ", ".join(f"{x:+.2f}" for x in points)
            each[name] = tally(points >= -SETTINGS.kernel)[0], text
        elif own.size:
            text = ", ".join(map(two_digits, own / other))
            each[name] = tally(own <= SETTINGS.slower * other)[0], text
    return each


def on_sets(parts: Mapping[str, Parameters], claim: Parameters) -> dict[str, Finding]:
    """Return what each set shows of a claim about a ratio, or about accuracies."""
    first, *others = claim["of"]
    found = {
        name: ratio(part, claim["ratio"], first, others[0], claim.get("need", 1.0))
        if "ratio" in claim else ahead(part, first, others, claim["claim"])
        for name, part in parts.items()
    }  # fmt: skip
    return {name: one for name, one in found.items() if one is not None}


def places(title: str) -> list[tuple[str, str]]:
    """Return the stops of a collection, and what a verdict calls the place."""
    if title != "Web":
        return [("1 sample", title)]
    return [(stop, f"Web, {stop}") for stop in STOPS]


def verdicts(sets: Parameters) -> list[Verdict]:
    """Judge the claims."""
    found: list[Verdict] = []
    for claim in kept("claims")["nanculef2014"]:
        what, words = claim.get("ratio", "points"), claim["claim"]
        for stop, place in [one for t in claim["places"] for one in places(t)]:
            parts = {name: sets[name].get(stop, {})
                     for name in of(place.split(",")[0], sets)}  # fmt: skip
            judged = [(words, claim)]
            if (what, claim["of"][-1]) == ("cpu", "CVM"):
                equal = {**claim, "of": [claim["of"][0], EQUAL]}
                judged.append((f"{words} of equal accuracy", equal))
            found += [Verdict(text, place, MEASURED[what], on_sets(parts, one))
                      for text, one in judged]  # fmt: skip
    for words, what in (
        ("SWAP's speed-up over CVM of equal accuracy grows with the set", "speed-up"),
        ("SWAP's model has a falling share of the rows", "share"),
    ):
        found += [Verdict(words, place, MEASURED[what], growth(sets, stop, what))
                  for stop, place in places("Web")]  # fmt: skip
    for kernel in KERNELS:
        parts = {n: one.get(f"proved, {kernel}", {}) for n, one in sets.items()}
        for pair in PROVED:
            each = on_sets(parts, {"ratio": "cpu", "of": pair})
            words = "{} is faster than {} to a proved gap".format(*pair)
            found.append(Verdict(words, kernel, MEASURED["cpu"], each))
    for words, what in (("accurate", "accuracy"), ("fast", "seconds")):
        text = f"With the polynomial kernel the methods are as {words} as with the"
        each = polynomial(sets, "cpu" if what == "seconds" else what)
        found.append(Verdict(f"{text} Gaussian", "polynomial", MEASURED[what], each))
    return found


def test_rows(sets: Parameters, learned_only: bool) -> list[dict[str, str]]:
    """Return the paper's tests of time and accuracy: sets ahead, p, and what is shown.

    CVM appears with both of its stops.
    """
    parts = [found.get("1 sample", {}) for found in sets.values()]
    values = {
        (what, m): np.array([
            np.nan if learned_only and not learned(part, [m])
            else middle(part, m, key) for part in parts
        ]) for what, key in (("time", "cpu"), ("accuracy", "accuracy")) for m in METHODS
    }  # fmt: skip
    rows = []
    for what in ("time", "accuracy"):
        for methods in (METHODS[1:], [EQUAL, *METHODS[3:]]):
            words = "the five differ" if "FW" in methods else "all but FW differ"
            column = {m: values[what, m] for m in methods}
            rows.append((what, words, "", friedman_row(column, methods)))
    for what, a, b, side, paper in published("nanculef2014", "tests")["rows"]:
        for baseline in (b, EQUAL) if b == "CVM" else (b,):
            words = WORDS.get((what, side), "{} and {} differ").format(a, baseline)
            pair = values[what, a], values[what, baseline]
            rows.append((what, words, paper, wilcoxon_row(*pair, side)))
    return [
        {"of": what, "comparison": words, "the paper": paper,
         **dict(zip(("ahead", "p", "here"), told, strict=True))}
        for what, words, paper, told in rows
    ]  # fmt: skip


def tests(sets: Parameters) -> list[Row]:
    """Return the paper's tests on all sets, and where models have learned.

    There are none with too few sets.
    """
    every, some = test_rows(sets, False), test_rows(sets, True)
    both = zip(every, some, strict=True) if any(row["p"] for row in every) else ()
    return [
        {**row, **{f"{key}, learned": told[key] for key in ("ahead", "p", "here")}}
        for row, told in both
    ]


def values(sets: Parameters) -> dict[str, object]:
    """Return what the samples on Web and the tests show, and what was not run."""
    counts = []
    for stop in STOPS:
        parts = [sets[name].get(stop, {}) for name in of("Web", sets)]
        models = [learned(part, [m]) for part in parts for m in METHODS
                  if ended(part, m)]  # fmt: skip
        counts.append(f"{models.count(False)} of {len(models)} ({stop})")
    rows = tests(sets)
    told = "with fewer than five sets they can show nothing."
    if rows:
        total = sum(bool(row["the paper"]) for row in rows)
        agree, fewer = (sum(row[key] == row["the paper"] for row in rows)
                        for key in ("here", "here, learned"))  # fmt: skip
        told = (
            f"{agree} of its {total} comparisons, CVM with either stop, have its "
            f"result at the level 5 %; {fewer} where both models have learned."
        )
    claims = {row["comparison"]: row for row in test_rows(sets, False)}
    ahead = [
        f"{row['ahead']} sets" + f" (p = {row['p']})" * bool(row["p"])
        for row in (claims[f"SWAP is faster than {slow}"] for slow in ("CVM", EQUAL))
    ]
    return {
        "same": ahead[0],
        "equal": ahead[1],
        "tests": told,
        "counts": ", ".join(counts),
        "absent": absent(sets),
        "costs": ", ".join(f"{C:g}" for C in SETTINGS.costs),
    }


def absent(sets: Parameters) -> str:
    """Return the sets that were not run, by stop."""
    lines = []
    for key in (*STOPS, "polynomial"):
        some = sets if key in ("1 sample", "polynomial") else of("Web", sets)
        names = [name for name in some if not sets[name].get(key)]
        lines += [f"- {key}: {', '.join(names)}."] * bool(names)
    return "\n".join(lines) or "None."


def spread(cell: Sequence[Parameters], of: str, scale: float = 1.0) -> str:
    """Return the median over the seeds, and the range."""
    values = [scale * f[of] for f in cell]
    ends = two_digits(min(values)), two_digits(max(values))
    text = two_digits(float(np.median(values)))
    return text if ends[0] == ends[1] else f"{text} ({ends[0]} to {ends[1]})"


def seconds(name: str, found: Parameters, keys: Sequence[str]) -> Iterator[Row]:
    """Yield the median seconds of all methods, with some stops or kernels."""
    for key in [key for key in keys if found.get(key)]:
        part = found[key]
        row: dict[str, object] = {"stop": key} if len(keys) > 1 else {}
        for method in (*METHODS[:2], *FAST):
            if ended(part, method):
                mark = "" if learned(part, [method]) else ", no model"
                row[method] = two_digits(middle(part, method, "cpu")) + mark
            elif cell_of(part, method):
                row[method] = f"> {part['limit']:g}"
            elif method in part["fits"]:
                row[method] = "not run"
        yield row


def sizes(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the data, what was chosen, and the larger class's share of test rows."""
    part = next((found[stop] for stop in STOPS if found.get(stop)), None)
    if part is not None:
        keys = {"rows": "rows", "columns": "d", "classes": "classes",
                "rows of the largest pair": "largest", "C": "C"}  # fmt: skip
        yield {label: part[key] for label, key in keys.items()} | {
            "gamma": f"{part['gamma']:.3g}",
            "majority, %": f"{100 * part['majority']:.2f}",
        }


def figures(name: str, found: Parameters) -> Iterator[Row]:
    """Yield the figures of each stop and method, and the gap to the best bound."""
    for kernel in (STOPS, ["polynomial"]):
        parts = {key: found[key] for key in kernel if found.get(key)}
        best = max([0.0, *(part["bound"] for part in parts.values()),
                    *(f.get("dual", 0.0) for part in parts.values()
                      for cell in part["fits"].values() for f in cell)])  # fmt: skip
        for stop, part in parts.items():
            for method, cell in part["fits"].items():
                row: dict[str, object] = {"stop": stop, "method": method}
                row["seeds"] = len(cell)
                if cell and not ended(part, method):
                    row["CPU seconds"] = f"stopped after {part['limit']:g}"
                elif cell:
                    gaps = [{"gap": f["primal"] / best - 1.0} for f in cell]
                    row |= {
                        "steps": "" if "CVM" in method else spread(cell, "steps"),
                        "kernel values, millions": spread(cell, "values", 1e-6),
                        "CPU seconds": spread(cell, "cpu"),
                        "accuracy, %": f"{100 * middle(part, method, 'accuracy'):.2f}",
                        "learned": learned(part, [method]),
                        "support vectors": spread(cell, "support"),
                        "gap, %": spread(gaps, "gap", 100.0),
                    }
                yield row


def draw(sets: Parameters) -> Iterator[Panel]:
    """Yield the seconds at each stop, a panel for each collection."""
    for title in COLLECTIONS:
        for stop, place in places(title):
            names = [n for n in of(title, sets) if sets[n].get(stop)]
            if names:
                line = "-" if title in ("Web", "Adult") else ""  # growing parts
                lines = [
                    Line(range(len(names)),
                         [middle(sets[n][stop], method, "cpu") for n in names],
                         method, mark + line)
                    for method, mark in zip(METHODS, "sPo^vD", strict=True)
                ]  # fmt: skip
                yield Panel(place, "", "seconds", lines, log="y", ticks=names)


PROOFS = tuple(f"proved, {kernel}" for kernel in KERNELS)
PAPER = Paper(
    settings=SETTINGS,
    sets=dict.fromkeys(SETS, ""),
    parts={
        **{stop: partial(measure, stop=stop, kernel="Gaussian") for stop in STOPS},
        "polynomial": partial(measure, stop="1 sample", kernel="polynomial"),
        **{part: partial(prove, kernel=kernel)
           for part, kernel in zip(PROOFS, KERNELS, strict=True)},
    },
    verdicts=verdicts, values=values,
    tables={
        "seconds": each(partial(seconds, keys=["1 sample"]), "1 sample"),
        "others": each(partial(seconds, keys=[*STOPS][1:]), *[*STOPS][1:]),
        "figures": each(figures, *STOPS, "polynomial"),
        "tests": tests,
        "proved": each(partial(seconds, keys=PROOFS), *PROOFS),
        "sets": each(sizes, *STOPS),
    },
    draw=draw, budget=Budget(3, SETTINGS.longest), quick=Budget(1, 2.0, quick=True),
    quick_sets=("breast-cancer", "digits"),
    skipped={
        **dict.fromkeys(("a7a", "a8a", "a9a", "kdd99", "covtype"), ("polynomial",)),
        "mnist": ("1 sample", "polynomial"),
    },
)  # fmt: skip

"""Verdicts about Frank-Wolfe SVMs: what they count, and what leaves them open."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from dualgap.papers import nanculef2014 as paper
from dualgap.papers.frame import verdicts_of
from dualgap.papers.nanculef2014 import EQUAL, METHODS, SETTINGS, STOPS, solver_of

from ..conftest import ROOT


@pytest.fixture
def sets():
    path = ROOT / "docs" / "papers" / "nanculef2014.json"
    return json.loads(path.read_text("utf-8"))["sets"]


def part(seconds, accuracy=0.9, limit=120.0):
    """Fits of one seed; a method without seconds was stopped."""
    fits = {
        method: [{"done": cpu is not None, "cpu": cpu or limit, "accuracy": accuracy,
                  "support": 10}]
        for method, cpu in seconds.items()
    }  # fmt: skip
    return {"limit": limit, "rows": 100, "majority": 0.7, "fits": fits}


def verdict(sets, claim, place):
    every = verdicts_of("nanculef2014", sets)
    (found,) = (v for v in every if (v.claim, v.place) == (claim, place))
    return found


@pytest.mark.parametrize("C", [0.125, 0.5, 8.0])
def test_equal_stops_ask_for_the_same_gap(C):
    kappa = 2.0 + 1.0 / (2.0 * C)
    for stop, gap in (("1 sample", SETTINGS.eps), ("small eps", SETTINGS.small)):
        eps = solver_of(EQUAL, stop, C).eps
        assert (2 * eps + eps**2) * kappa == pytest.approx(gap, rel=1e-4)
        eps = solver_of("CVM", stop, C).eps
        assert (2 * eps + eps**2) * kappa >= 4 * gap
        assert solver_of("SWAP", stop, C).eps == gap
    for method in METHODS:
        for stop, options in STOPS.items():
            solver = solver_of(method, stop, C)
            assert solver.ends_itself
            assert all(getattr(solver, key) == value for key, value in options.items())


@pytest.mark.parametrize(
    ("seconds", "found"),
    [
        ((1.0, 2.0), (True, "2")),
        ((2.0, 1.0), (False, "0.5")),
        ((1.0, 1.2), (None, "1.2")),  # seconds vary as much
        ((1.2, 1.0), (None, "0.83")),
        ((1.0, None), (True, "> 120")),
        ((None, 1.0), (False, "< 0.0083")),
        ((100.0, None), (None, "> 1.2")),
        ((None, None), (None, "stopped")),
    ],
)
@pytest.mark.cases(None)
def test_a_ratio_of_seconds(seconds, found):
    both = part(dict(zip(("SWAP", "CVM"), seconds, strict=True)))
    assert paper.ratio(both, "cpu", "SWAP", "CVM", 1.0) == found
    del both["fits"]["CVM"]
    assert paper.ratio(both, "cpu", "SWAP", "CVM", 1.0) is None


@pytest.mark.parametrize("points", [0.0, 0.4, 0.6])
def test_models_no_better_than_the_larger_class_decide_nothing(points):
    both = part({"SWAP": 1.0, "CVM": 9.0}, accuracy=0.7 + points / 100)
    decided = points > 100 * SETTINGS.margin
    found, text = paper.ratio(both, "cpu", "SWAP", "CVM", 1.0)
    assert (found, text) == ((True, "9") if decided else (None, "9, no model"))
    found, text = paper.ahead(both, "SWAP", ["CVM"], "SWAP is as accurate as CVM")
    assert (found is True) == decided
    assert ("no model" in text) != decided


def test_accuracies_within_a_tenth_of_a_point_are_equal():
    both = part({"SWAP": 1.0, "CVM": 1.0})
    both["fits"]["CVM"][0]["accuracy"] += 0.0005
    equal, more = "SWAP is as accurate as CVM", "SWAP is more accurate than CVM"
    assert paper.ahead(both, "SWAP", ["CVM"], equal) == (True, "-0.05")
    assert paper.ahead(both, "SWAP", ["CVM"], more) == (None, "-0.05")
    both["fits"]["CVM"][0]["accuracy"] += 0.01
    assert paper.ahead(both, "SWAP", ["CVM"], equal) == (False, "-1.05")
    assert paper.ahead(both, "SWAP", ["CVM"], more) == (False, "-1.05")


def test_growth_compares_each_set_with_the_one_before():
    times = {"w1a": 2.0, "w4a": 6.0, "w6a": 3.0}
    parts = {n: part({"SWAP": 1.0, EQUAL: t}) for n, t in times.items()}
    assert paper.growth(parts, "speed-up") == {
        "w1a": (None, "2"), "w4a": (True, "6"), "w6a": (False, "3"),
    }  # fmt: skip
    found = paper.growth(parts, "share")
    assert found["w4a"] == (True, "10")  # of so many rows each


def test_kernels_are_compared_by_models_that_have_learned():
    gaussian, own = (part(dict.fromkeys(("FW", "MFW", "SWAP", "SWAP-2o"), 1.0))
                     for _ in range(2))  # fmt: skip
    for method in ("FW", "MFW", "SWAP"):
        own["fits"][method][0]["accuracy"] = 0.8
    sets = {"w1a": {"1 sample": gaussian, "polynomial": own}}
    found = paper.polynomial(sets, "accuracy")
    assert found == {"w1a": (None, "-10.00, -10.00, -10.00, +0.00")}
    for method in ("FW", "MFW", "SWAP"):
        own["fits"][method][0]["accuracy"] = 0.7  # as naming the larger class
    assert paper.polynomial(sets, "accuracy")["w1a"][0] is True  # by SWAP-2o alone
    own["fits"]["SWAP-2o"][0]["accuracy"] = 0.7
    found, text = paper.polynomial(sets, "seconds")["w1a"]
    assert (found, text) == (None, "1, 1, 1, 1, no model")


def test_every_number_of_a_verdict_comes_from_the_results(sets):
    """Also after seconds are changed, and a set that was not run is named nowhere."""
    changed = copy.deepcopy(sets)
    for found in changed.values():
        for fit in found.get("1 sample", {}).get("fits", {}).get("SWAP", []):
            fit["cpu"] /= 10
    for results in (sets, changed):
        for claim, slow in (
            ("SWAP is faster than CVM", "CVM"),
            ("SWAP is faster than CVM of equal accuracy", EQUAL),
        ):
            told = verdict(results, claim, "Adult").sets
            assert set(told) <= set(results)
            for name, (_, text) in told.items():
                fits = results[name]["1 sample"]["fits"]
                if all(f["done"] for f in fits["SWAP"] + fits[slow]):
                    a, b = (np.median([f["cpu"] for f in fits[m]])
                            for m in ("SWAP", slow))  # fmt: skip
                    assert float(text.replace(",", "")) == float(f"{b / a:.2g}")
    held = [verdict(results, "SWAP is faster than CVM", "Adult").known
            for results in (sets, changed)]  # fmt: skip
    assert sum(held[0]) < sum(held[1])


def test_the_rank_tests_follow_the_results(sets):
    def row(comparison):
        rows = paper.test_rows(sets, False)
        return next(r for r in rows if r["comparison"] == comparison)

    for found in sets.values():
        for method, cell in found.get("1 sample", {}).get("fits", {}).items():
            for fit in cell:
                fit["done"], fit["cpu"] = True, {"SWAP": 1.0}.get(method, 2.0)
                fit.setdefault("accuracy", 0.9)
    told = row("SWAP is faster than CVM")
    cells = [found.get("1 sample", {}).get("fits", {}) for found in sets.values()]
    n = sum(bool(fits.get("CVM") and fits.get("SWAP")) for fits in cells)
    assert told["ahead"] == f"{n} of {n}"
    assert told["p"] == f"{0.5**n:.2g}"
    assert told["here"] == "shown"
    assert f"{n} of {n} sets (p = {told['p']}), " in paper.values(sets)["same"]

"""Bounds on rows left out hold against a fit without each row."""

from __future__ import annotations

import numpy as np
import pytest

from dualgap.answers.ball import Ball
from dualgap.answers.left_out import LeftOut

from .. import removed


def check(rng, kind, loss, tol=1e-9):
    """Compare the three stages on one problem; return the rows that were checked."""
    given = removed.random_problem(rng)
    problem = removed.problem_of(*given, kind, loss)
    found = removed.fitted(problem, tol)
    w = found.w if len(found.w) else None
    out = LeftOut(Ball.of(problem, w, found.alpha))
    X, n = given[0], problem.n
    rows = np.arange(n)
    truth = [
        removed.refitted(*given, kind, loss, np.delete(rows, i), X[[i]]) for i in rows
    ]
    true, off = (np.concatenate(part) for part in zip(*truth, strict=True))
    slack = removed.slack(problem, true, off)
    widths = []
    for stage in range(3):
        if stage == 1:
            out.repair(rows)
        for i in rows if stage == 2 else ():
            out.settle(int(i), lambda: False)
        assert (out.lower - slack <= true).all(), (kind, loss, stage)
        assert (true <= out.upper + slack).all(), (kind, loss, stage)
        widths.append(out.upper - out.lower)
    return widths


@pytest.mark.cases(None)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", removed.KINDS)
def test_bounds_hold_against_a_fit_without_each_row(kind, loss):
    rng = np.random.default_rng(7)
    for _ in range(2):
        dropped, repaired, settled = check(rng, kind, loss)
        assert (settled <= repaired).all()
        assert (repaired <= dropped).all()

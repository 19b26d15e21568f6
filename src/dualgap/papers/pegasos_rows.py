"""Pegasos' claim: the number of steps to an accuracy does not grow with the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from scipy import sparse

from ..data.types import Matrix, Parameters
from ..losses import Vector
from ..problems import BinaryProblem
from ..solvers import get_solver
from ..training import solve
from .data import load
from .frame import Budget, Paper, solvers
from .measure import Training, span
from .names import settings
from .page import Finding, Findings, Rows, judged, tally
from .pegasos2011 import CASES
from .pegasos2011 import SETTINGS as PEGASOS
from .pictures import Line, Panel

SETTINGS = settings("pegasos-rows")


def constant_steps(
    X: Matrix, y: Vector, lam: float, eta: float, T: int, seed: int
) -> Vector:
    """Return w after T sub-gradient steps of the same size, in plain NumPy."""
    rng, X = np.random.default_rng(seed), sparse.csr_matrix(X)
    v, scale = np.zeros(X.shape[1]), 1.0  # w = scale v
    for i in rng.integers(len(y), size=T):
        row = slice(X.indptr[i], X.indptr[i + 1])
        columns, values = X.indices[row], X.data[row]
        margin = y[i] * scale * (v[columns] @ values)
        scale *= 1.0 - eta * lam
        if scale < 1e-100:
            v, scale = scale * v, 1.0
        if margin < 1.0:
            v[columns] += (eta * y[i] / scale) * values
    return scale * v


def method_steps(problem: BinaryProblem, label: str, T: int, seed: int) -> Vector:
    """Return w after T steps of a method, which come before its tol."""
    solver = solvers(SETTINGS.methods, max_steps=T)[label]
    return solve(problem, solver, tol=1e-9, max_iter=10**6, random_state=seed).w


def steps(
    name: str, n: int, seeds: int, budgets: Sequence[int]
) -> dict[str, list[int]]:
    """Return the steps that every method needs, one number a seed; [] if too many."""
    lam, accuracy = CASES.get(name, PEGASOS.others)
    X, y = load(name)
    # The rows of covtype are sorted in parts, the rows of imdb by label.
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    X, y = X[rows], y[rows]
    train = Training(X, y, 1.0 / (lam * n), SETTINGS.resolution)
    target = train.best + accuracy / lam

    def least(
        fit: Callable[[int, int], Vector], seeds: int, budgets: Sequence[int]
    ) -> list[int]:
        found: list[int] = []
        for seed in range(seeds):
            enough = (T for T in budgets if train.loss(fit(T, seed)) <= target)
            T = next(enough, None)
            if T is None:
                return []
            found.append(T)
        return found

    problem = train.problem
    found = {label: least(partial(method_steps, problem, label), seeds, budgets)
             for label in SETTINGS.methods}  # fmt: skip
    short = [T for T in budgets if T <= SETTINGS.loop][::2]
    constant = (least(partial(constant_steps, X, y, lam, eta), 1, short)
                for eta in SETTINGS.sizes)  # fmt: skip
    found["constant steps"] = min(filter(None, constant), default=[])
    run = train.reach(get_solver("dcd"), target, epochs=SETTINGS.epochs)
    found["DCD"] = [n * run.epochs] if run else []
    return found


def count(name: str, budget: Budget) -> Parameters:
    """Return the largest T, and by method [n, steps of each seed] of each n."""
    total = len(load(name)[1])
    sizes = [n for n in SETTINGS.rows if n < total] + [total]
    budgets = SETTINGS.budgets
    if budget.quick:
        sizes = [total // 5, total]
        budgets = tuple(T for T in budgets if T <= SETTINGS.quick)
    curves: dict[str, list[object]] = {}
    for n in sizes:
        for label, T in steps(name, n, budget.seeds, budgets).items():
            curves.setdefault(label, []).append([n, T])
    return {"most": budgets[-1], "curves": curves}


def medians(curve: list[tuple[int, list[int]]]) -> dict[int, float]:
    """Return the median number of steps by n, of the n at which there is one."""
    return {n: float(np.median(T)) for n, T in curve if T}


def steady(curve: list[tuple[int, list[int]]]) -> Finding:
    """Return whether the steps stay the same from some n on.

    The same is one step of the grid of budgets at most, over several times the rows.
    """
    found, last = medians(curve), curve[-1][0]
    if not found:
        return None, "too many at any size"
    if last not in found:
        return False, f"too many with {last:,} rows"
    same, more = SETTINGS.same, SETTINGS.more
    flat = [n for n in found if 1 / same <= found[last] / found[n] <= same]
    first = min(found)
    text = f"{found[first]:,.0f} with {first:,} rows, {found[last]:,.0f} with {last:,}"
    text += f" (the same from {min(flat):,} on)" * (min(flat) < last)
    return (last >= more * min(flat) if last >= more * first else None), text


def judge(name: str, found: Parameters) -> Findings:
    """Yield what a set shows of the claims."""
    curves, tried = found["rows"]["curves"], found["rows"]["most"]
    yield "same", steady(curves["Pegasos"])
    pegasos, sdca = medians(curves["Pegasos"]), medians(curves["SDCA"])
    sizes = [n for n, _ in curves["SDCA"]]
    yield "ahead", tally(pegasos.get(n, np.inf) < sdca.get(n, np.inf) for n in sizes)
    yield "epoch", tally(n <= sdca.get(n, np.inf) for n in sizes)
    for key, label in (("norma", "NORMA"), ("constant", "constant steps")):
        other = medians(curves[label])
        most = SETTINGS.loop if label == "constant steps" else tried
        # Where neither gets there, or both budgets end, nothing can be said.
        known = [n for n in sizes if n in other or pegasos.get(n, np.inf) <= most]
        if known:
            yield key, tally(pegasos.get(n, np.inf) < other.get(n, np.inf)
                             for n in known)  # fmt: skip
    lam, accuracy = CASES.get(name, PEGASOS.others)
    most, limit = max(pegasos.values(), default=np.inf), 1.0 / (lam * accuracy)
    told = f"{most:,.0f}" if most < np.inf else f"more than {tried:,}"
    ends = SETTINGS.logarithm * limit
    near = None if most == np.inf and tried < ends else most <= ends
    yield "bound", (near, f"{told} against {limit:,.0f}")


def rows(name: str, found: Parameters) -> Rows:
    """Yield the steps by the number of rows."""
    curves = found["rows"]["curves"]
    for k, (n, _) in enumerate(curves["DCD"]):
        row = {"n": f"{n:,}"}
        for label, curve in curves.items():
            T = curve[k][1]
            row[label] = f"{np.median(T):,.0f}" if T else "–"
            if T and min(T) < max(T):
                row[label] += f" ({span(T, ',.0f')})"
        yield "steps", row


def draw(sets: Parameters) -> Iterator[Panel]:
    """Yield the steps against the rows, a panel for each set."""
    for name, found in sets.items():
        curves = found["rows"]["curves"]
        known = {label: medians(curve) for label, curve in curves.items()}
        sizes = [n for n, _ in curves["DCD"]]
        lines = [Line([*T], [*T.values()], label, "o-") for label, T in known.items()]
        lines.append(Line(sizes, sizes, "one epoch", "k:"))
        yield Panel(name, "rows n", "steps (rows read)", lines, log="xy")


PAPER = Paper(
    settings=SETTINGS,
    parts={"rows": count},
    verdicts=partial(judged, judge=judge), rows=rows,
    values=lambda sets: {"most": max(one["rows"]["most"] for one in sets.values())},
    draw=draw,
)  # fmt: skip

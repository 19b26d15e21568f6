"""Pegasos' claim: the number of steps to an accuracy does not grow with the rows.

Steps until P(w) - P* is at most the paper's absolute accuracy, on the scale of lambda,
on the first n rows of a set and a fixed lambda. A step reads one row. Pegasos, SDCA and
NORMA are stopped after T steps (max_steps), T from a grid; a step of constant size,
the best of five sizes in hindsight, is plain NumPy. "dcd" is counted in whole epochs,
because an epoch is its smallest unit. P is measured from outside on all n rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..data.types import Matrix, Parameters
from ..losses import Vector
from ..problems import BinaryProblem
from ..solvers import NORMA, SDCA, Pegasos, get_solver
from ..solvers.base import Solver
from ..training import solve
from .data import load, worded
from .frame import Budget, Finding, Page, Paper, Verdict, tally
from .measure import objective, optimum, reach

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# lambda, accuracy on its scale (Pegasos 2011, Table 1)
SETS = {
    "imdb": (5e-5, 0.0275),
    "rcv1-like": (1e-4, 0.00589),
    "covtype": (1e-6, 0.0449),
}
OTHERS = (1e-4, 0.01)
ROWS = [1000, 5000, 25_000, 125_000]
# Grid of step budgets: four a decade.
BUDGETS = [round(10 ** (k / 4)) for k in range(8, 29)]
SIZES = [10.0**k for k in range(-2, 3)]
#: Largest budget of the loop in Python.
LOOP = 10**5
METHODS: dict[str, Callable[[int], Solver]] = {
    "Pegasos": lambda T: Pegasos(sampling="random", projection=True, max_steps=T),
    "SDCA": lambda T: SDCA(order="random", max_steps=T),
    "NORMA": lambda T: NORMA(max_steps=T),
}


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


def least(
    reached: Callable[[int, int], bool], seeds: int, budgets: Sequence[int]
) -> list[int]:
    """Return, for each seed, the smallest budget with which `reached(T, seed)`."""
    found = []
    for seed in range(seeds):
        T = next((T for T in budgets if reached(T, seed)), None)
        if T is None:
            return []
        found.append(T)
    return found


def steps(
    name: str, n: int, seeds: int, budgets: Sequence[int]
) -> dict[str, list[int]]:
    """Return the steps that every method needs, one number a seed; [] if too many."""
    lam, accuracy = SETS.get(name, OTHERS)
    X, y = load(name)
    # The rows of covtype are sorted in parts, the rows of imdb by label.
    rows = np.random.default_rng(0).permutation(len(y))[:n]
    X, y, C = X[rows], y[rows], 1.0 / (lam * n)
    problem, target = BinaryProblem(X, y, C), optimum(X, y, C, 1e-5) + accuracy / lam

    def loss(w: Vector) -> float:
        return objective(X, y, C, w)

    def method(make: Callable[[int], Solver]) -> list[int]:
        def reached(T: int, seed: int) -> bool:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # it is to end before tol
                found = solve(problem, make(T), tol=1e-9, max_iter=10**6,
                              random_state=seed)  # fmt: skip
            return loss(found.w) <= target

        return least(reached, seeds, budgets)

    def size(eta: float) -> list[int]:
        def reached(T: int, seed: int) -> bool:
            return loss(constant_steps(X, y, lam, eta, T, seed)) <= target

        return least(reached, 1, [T for T in budgets if T <= LOOP][::2])

    found = {label: method(make) for label, make in METHODS.items()}
    found["constant steps"] = min(filter(None, map(size, SIZES)), default=[])
    run = reach(problem, get_solver("dcd"), loss, target, epochs=1000)
    found["DCD"] = [n * run[1]] if run else []
    return found


def count(name: str, budget: Budget) -> Parameters:
    """Return the largest T, and by method [n, steps of each seed] of each n."""
    total = len(load(name)[1])
    most = 10**6 if budget.quick else 10**7
    sizes = [n for n in ROWS if n < total] + [total]
    if budget.quick:
        sizes = [total // 5, total]
    curves: dict[str, list[object]] = {}
    for n in sizes:
        found = steps(name, n, budget.seeds, [T for T in BUDGETS if T <= most])
        for label, T in found.items():
            curves.setdefault(label, []).append([n, T])
    return {"most": most, "curves": curves}


def medians(curve: list[tuple[int, list[int]]]) -> dict[int, float]:
    """Return the median number of steps by n, of the n at which there is one."""
    return {n: float(np.median(T)) for n, T in curve if T}


def steady(curve: list[tuple[int, list[int]]]) -> Finding:
    """Return whether the steps stay the same from some n on.

    The same is one step of the grid of budgets at most, over five times the rows.
    """
    found, last = medians(curve), curve[-1][0]
    if not found:
        return None, "too many at any size"
    if last not in found:
        return False, f"too many with {last:,} rows"
    flat = [n for n in found if found[last] <= 1.8 * found[n] <= 3.3 * found[last]]
    first = min(found)
    text = f"{found[first]:,.0f} with {first:,} rows, {found[last]:,.0f} with {last:,}"
    return (last >= 5 * min(flat) if last >= 5 * first else None), text


def verdicts(sets: Parameters) -> list[Verdict]:
    """Judge the claims."""
    same, ahead, epoch, bound = ({} for _ in range(4))
    for name, found in sets.items():
        if "rows" not in found:
            continue
        curves = found["rows"]["curves"]
        same[name] = steady(curves["Pegasos"])
        pegasos, sdca = medians(curves["Pegasos"]), medians(curves["SDCA"])
        ahead[name] = tally(pegasos.get(n, np.inf) < sdca.get(n, np.inf)
                            for n, _ in curves["SDCA"])  # fmt: skip
        epoch[name] = tally(n <= sdca.get(n, np.inf) for n, _ in curves["SDCA"])
        lam, accuracy = SETS.get(name, OTHERS)
        most = max(pegasos.values(), default=np.inf)
        limit = 1.0 / (lam * accuracy)
        tried = found["rows"]["most"]
        told = f"{most:,.0f}" if most < np.inf else f"more than {tried:,}"
        near = None if most == np.inf and tried < 10 * limit else most <= 10 * limit
        bound[name] = near, f"{told} against {limit:,.0f}"
    return [
        Verdict("The steps of Pegasos do not grow with the rows", "abstract",
                "steps, in medians", same),
        Verdict("They are 1/(lambda accuracy) up to a logarithm, put at 10", "theory",
                "most steps against the bound", bound),
        Verdict("SDCA needs an epoch at least", "experiments", "sizes", epoch),
        Verdict("Pegasos needs fewer steps than SDCA", "not in the paper", "sizes",
                ahead),
    ]  # fmt: skip


def write(page: Page, sets: Parameters) -> None:
    """Add the tables."""
    for name, found in sets.items():
        if "rows" not in found:
            continue
        curves, rows = found["rows"]["curves"], []
        for k, (n, _) in enumerate(curves["DCD"]):
            row = [f"{n:,}"]
            for curve in curves.values():
                T = curve[k][1]
                text = f"{np.median(T):,.0f}" if T else "–"
                if T and min(T) < max(T):
                    text += f" ({min(T):,} to {max(T):,})"
                row.append(text)
            rows.append(row)
        lam, accuracy = SETS.get(name, OTHERS)
        page.say(
            f"## {name}\n\nSteps on {worded(name)} at lambda = {lam:g}, accuracy "
            f"{accuracy:g}. A dash is more than {found['rows']['most']:,} steps.\n"
        )
        page.table(["n", *curves], rows)


def draw(figure: Figure, sets: Parameters) -> None:
    """Draw steps against rows, a panel for each set."""
    sets = {name: found for name, found in sets.items() if "rows" in found}
    if not sets:
        return
    figure.set_size_inches(4.2 * len(sets), 3.6)
    axes = figure.subplots(1, len(sets), squeeze=False)
    for ax, (name, found) in zip(axes[0], sets.items(), strict=True):
        for k, (label, curve) in enumerate(found["rows"]["curves"].items()):
            known = medians(curve)
            if known:
                ax.loglog([*known], [*known.values()], "o-", color=f"C{k}", label=label)
        sizes = [n for n, _ in found["rows"]["curves"]["DCD"]]
        ax.loglog(sizes, sizes, "k:", lw=1, label="one epoch")
        ax.set(title=name, xlabel="rows n", ylabel="steps (rows read)")
        ax.grid(True, alpha=0.3)
        ax.legend(fontsize=7)


PAPER = Paper(
    title="Pegasos: steps against the number of rows",
    about=(
        "- **First passages.** w is looked at after T steps and not before, so these "
        "are not the first passages of [another page](pegasos2011.md): the last w of "
        "Pegasos can meet an accuracy and lose it again.\n"
        "- **Grid.** Budgets are four a decade, so all numbers are rounded up to the "
        "next one. DCD is counted in whole epochs, up to 1,000. Steps of constant size "
        "are up to 100,000 of the best of five sizes in hindsight, with one seed.\n"
        "- **Theory.** With few rows the bound is far from what is needed."
    ),
    sets={"imdb": "astro-ph", "rcv1-like": "CCAT", "covtype": "cov1"},
    parts={"rows": count},
    verdicts=verdicts, write=write, draw=draw, budget=Budget(3, np.inf),
    quick=Budget(1, np.inf, quick=True), quick_sets=("generated",),
)  # fmt: skip

"""The registry of solvers: one entry for each kind of problem and name.

Every solver's file enters it with :func:`register`. Estimators, the command line and
the tests read the registry; no other list says which solver trains what.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

from ..names import nearest
from .base import Solver

S = TypeVar("S", bound=Solver)
C = TypeVar("C", bound=Callable[..., Solver])

_SOLVERS: dict[str, dict[str, type[Solver]]] = {}
_CHOICES: dict[str, Callable[..., Solver]] = {}


def register(*kinds: str) -> Callable[[type[S]], type[S]]:
    """Enter a record of a solver, under its name, for these kinds of problem."""

    def enter(solver: type[S]) -> type[S]:
        for kind in kinds:
            _SOLVERS.setdefault(kind, {})[solver.name] = solver
        _by_name.cache_clear()  # another record may have had this name
        solver.kinds = kinds
        return solver

    return enter


def register_choice(kind: str) -> Callable[[C], C]:
    """Enter the function that chooses the solver of a problem for "auto"."""

    def enter(choice: C) -> C:
        _CHOICES[kind] = choice
        return choice

    return enter


def solvers_of(kind: str) -> dict[str, type[Solver]]:
    """Return the records for a kind of problem by name, "auto" first."""
    known = _SOLVERS[kind]
    return {name: known[name] for name in sorted(known, key=lambda n: (n != "auto", n))}


def get_solver(solver: str | Solver, kind: str = "binary") -> Solver:
    """Return the record of a solver given by name or as a record.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(solver, Solver):
        return solver
    try:
        return _by_name(solver, kind)
    except (KeyError, TypeError):
        known = solvers_of(kind)
        names = ", ".join(map(repr, known))
        near = nearest(str(solver), known, "solver")
        hint = f" Did you mean {near!r}?" if near else ""
        raise ValueError(
            f"solver={solver!r} is unknown; use one of {names} or a record such as "
            f"SDCA(order='random').{hint}"
        ) from None


@cache
def _by_name(name: str, kind: str) -> Solver:
    return _SOLVERS[kind][name]()


def check_kind(problem: Any, solver: Solver) -> None:
    """Refuse a solver that is registered for other kinds of problem."""
    if solver.kinds and problem.kind not in solver.kinds:
        able = ", ".join(map(repr, solvers_of(problem.kind)))
        raise ValueError(
            f"solver={solver.name!r} is for {' and '.join(solver.kinds)} problems, got "
            f"a {type(problem).__name__}; for {problem.kind} use {able}"
        )


def solver_for(problem: Any, solver: str | Solver = "auto") -> Solver:
    """Return the record that trains a problem.

    Parameters
    ----------
    problem : Problem
    solver : str or Solver, default="auto"
        "auto" is the solver registered under that name, or the one chosen by counts,
        or the only solver of its kind.
    """
    known = solvers_of(problem.kind)
    if solver == "auto" and problem.kind in _CHOICES:
        return _CHOICES[problem.kind](problem)
    if solver == "auto" and len(known) == 1:
        (solver,) = known
    return get_solver(solver, problem.kind)

"""Every solver is in the registry, documented, and a frozen record."""

from __future__ import annotations

import dataclasses
import inspect
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from dualgap import LinearSVC, kernel, solvers
from dualgap.losses import LOSSES
from dualgap.solvers import (
    SOLVERS,
    Auto,
    Solver,
    State,
    get_solver,
    papers,
    register,
    solver_for,
    solvers_of,
)
from dualgap.solvers.base import _CHOICES, _SOLVERS

pytestmark = pytest.mark.cases(15)

LINES = ("Problem", "Update", "Guarantee", "Cost", "Source")
every_solver = pytest.mark.parametrize("name", SOLVERS)
KINDS = {
    "binary": solvers,
    "regression": solvers,
    "one-class": solvers,
    "crammer-singer": solvers,
    "logistic": solvers,
    "elastic-net": solvers,
    "kernel": kernel,
    "kernel-regression": kernel,
    "kernel-one-class": kernel,
    "kernel-simplex": kernel,
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_solver_of_a_kind_says_what_it_is_for(kind):
    known = solvers_of(kind)
    assert list(known) == sorted(known, key=lambda name: (name != "auto", name))
    for name, record in known.items():
        assert (record.name, kind in record.kinds) == (name, True)
        assert record.__name__ in KINDS[kind].__all__
        assert type(get_solver(name, kind)) is record
        check_header(record)


def test_the_last_record_of_a_name_is_the_one_in_use(monkeypatch):
    """A cell of a notebook that runs again registers its solver again."""
    monkeypatch.setitem(_SOLVERS, "mine", {})
    for _ in range(2):

        @register("mine")
        class Mine(Auto):
            name = "mine"

        assert type(get_solver("mine", "mine")) is Mine


@pytest.mark.parametrize("kind", sorted(KINDS.keys() - _CHOICES.keys()))
def test_auto_is_registered_or_the_only_solver(kind):
    known = solvers_of(kind)
    problem = types.SimpleNamespace(kind=kind)
    found = solver_for(problem)
    assert type(found) is known.get("auto", type(found))
    assert "auto" in known or len(known) == 1
    assert solver_for(problem, found) is found


def test_the_register_is_complete():
    registered = {record for kind in KINDS for record in solvers_of(kind).values()}
    public = [
        vars(module)[name] for module in (solvers, kernel) for name in module.__all__
    ]
    named = {one for one in public if isinstance(one, type) and issubclass(one, Solver)}
    assert {one for one in named if hasattr(one, "name")} == registered
    files = {path.stem for path in Path(papers.__file__).parent.glob("*.py")}
    assert files - {"__init__", "stochastic_gradient"} <= {
        record.__module__.rpartition(".")[2] for record in registered
    }


def check_header(record):
    lines = sys.modules[record.__module__].__doc__.splitlines()
    starts = [line.split(" ")[0] for line in lines if line and line[0] != " "]
    found = [start for start in starts if start in LINES]
    assert found == list(LINES) * max(1, len(found) // len(LINES))  # two share a file
    for line in lines:
        if line.startswith(LINES):
            assert len(line.split()) > 2


@every_solver
def test_hyper_parameters_are_documented(name):
    solver = SOLVERS[name]
    doc = inspect.getdoc(solver)
    assert doc.splitlines()[0].endswith(".")
    own = [f.name for f in dataclasses.fields(solver)]
    text = "\n".join(inspect.getdoc(base) or "" for base in solver.__mro__)
    for field in own:
        assert f"\n{field}" in text or f", {field} :" in text, field


@every_solver
def test_constructible_by_name_and_by_record(name):
    solver = get_solver(name)
    assert type(solver) is SOLVERS[name]
    assert solver.name == name
    assert get_solver(solver) is solver


@every_solver
def test_records_are_frozen_hashable_and_comparable(name):
    solver, twin = get_solver(name), get_solver(name)
    assert solver == twin
    assert hash(solver) == hash(twin)
    assert len({solver, twin}) == 1
    assert dataclasses.is_dataclass(solver)
    for field in dataclasses.fields(solver):
        assert field.name in repr(solver)
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(solver, field.name, None)
    with pytest.raises((dataclasses.FrozenInstanceError, AttributeError)):
        solver.name = "other"


def test_other_hyper_parameters_make_another_record():
    assert solvers.SDCA(order="random") != solvers.SDCA()
    assert solvers.DCD() != solvers.Auto()
    assert len({solvers.Pegasos(batch_size=k) for k in (1, 2, 2)}) == 2


@every_solver
def test_declares_what_it_needs(name):
    solver = get_solver(name)
    assert isinstance(solver, Solver)
    assert set(solver.losses) <= set(LOSSES)
    assert "hinge" in solver.losses
    if solver.monotone:
        assert solver.dual


class Outsider(Solver):
    """A solver from outside the package, whose iterate returns what a test sets."""

    name = "outsider"

    def __init__(self, found):
        self.found = found

    def start(self, problem, rng, warm):
        return State(problem, rng, None)

    def step(self, state, stop):
        state.epochs += 1

    def iterate(self, state):
        return self.found


ROWS, LABELS = np.eye(6, 3), np.array([0, 1, 0, 1, 0, 1])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (np.zeros(6), r"must return the pair \(w, alpha\).* got ndarray"),
        ((None, np.zeros(5)), r"alpha .*shape \(6,\); got float64 of shape \(5,\)"),
        ((None, np.zeros(6, np.float32)), "alpha .*float64 array.*; got float32"),
        (([0.0] * 4, np.zeros(6)), r"w .*shape \(4,\); got list of shape \(4,\)"),
    ],
)
def test_a_wrong_iterate_from_outside_is_named(found, said):
    with pytest.raises((TypeError, ValueError), match="solver='outsider': .*" + said):
        LinearSVC(solver=Outsider(found)).fit(ROWS, LABELS)


def test_a_solver_without_a_name_is_told_to_have_one(monkeypatch):
    monkeypatch.delattr(Outsider, "name")
    with pytest.raises(TypeError, match="has no name; give its class one"):
        LinearSVC(solver=Outsider((None, np.zeros(6)))).fit(ROWS, LABELS)

"""Plugin of pytest for `make mutations`: which changes does a test run, and which tests
are to run.

`MUTANTS_RECORD` is a file to which every test appends its name, its processor time and
the changes it ran. `MUTANTS_TESTS` is a file of the names of the tests to run, in this
order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dualgap import _mutants


def _record(kind: str, name: str, seconds: float, found: set[int]) -> None:
    if record := os.environ.get("MUTANTS_RECORD"):
        line = json.dumps([kind, name, seconds, sorted(found)])
        with Path(record).open("a") as file:
            file.write(line + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _record("file", "", 0.0, _mutants.reached())
    if "MUTANTS_TESTS" not in os.environ:
        return
    names = Path(os.environ["MUTANTS_TESTS"]).read_text().split("\n")
    places = {name: place for place, name in enumerate(names)}
    items[:] = sorted(
        (item for item in items if item.nodeid in places),
        key=lambda item: places[item.nodeid],
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = sum(os.times()[:4])
    result = yield
    _record("test", item.nodeid, sum(os.times()[:4]) - before, _mutants.reached())
    return result


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef, request) -> Iterator[None]:
    if fixturedef.scope == "function":
        return (yield)
    before = _mutants.reached()
    result = yield
    found = _mutants.reached()
    file = request.node.nodeid.partition("::")[0]
    _record("file", file, 0.0, found)
    _mutants.add(before | found)
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        _record("failed", report.nodeid, 0.0, set())

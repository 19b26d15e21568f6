"""Plugin of pytest for `make mutations`: which changes does a test run, and which tests
are to run.

`MUTANTS_RECORD` is a file to which every test appends its name, its processor time and
the changes it ran. `MUTANTS_TESTS` is a file of the names of the tests to run, in this
order, with the seconds of each: a test that takes far longer ends the run.
"""

from __future__ import annotations

import json
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from dualgap import _mutants

_seconds: dict[str, float] = {}


def _record(kind: str, name: str, seconds: float, found: set[int]) -> None:
    if record := os.environ.get("MUTANTS_RECORD"):
        line = json.dumps([kind, name, seconds, sorted(found)])
        with Path(record).open("a") as file:
            file.write(line + "\n")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    _record("file", "", 0.0, _mutants.reached())
    if "MUTANTS_TESTS" not in os.environ:
        return
    _seconds.update(json.loads(Path(os.environ["MUTANTS_TESTS"]).read_text()))
    places = {name: place for place, name in enumerate(_seconds)}
    items[:] = sorted(
        (item for item in items if item.nodeid in places),
        key=lambda item: places[item.nodeid],
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    if item.nodeid in _seconds:
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        most = sum(os.times()[:2]) + 60.0 + 10.0 * _seconds[item.nodeid]
        resource.setrlimit(resource.RLIMIT_CPU, (min(int(most), hard), hard))
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

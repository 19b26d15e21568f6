"""Pytest hooks for scikit-learn's tests, and the differences that they assert."""

from __future__ import annotations

import fnmatch
import re

import pytest


def pytest_configure(config):
    config.addinivalue_line("markers", "thread_unsafe: a mark of scikit-learn's tests")


@pytest.fixture
def global_random_seed():
    return 42


@pytest.hookimpl(hookwrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Require a test with a listed difference to fail with the listed error."""
    outcome = yield
    listed = getattr(pyfuncitem.module, "DIFFERENCES", {})
    for pattern, difference in listed.items():
        # Brackets are part of a name here.
        same = fnmatch.fnmatchcase(pyfuncitem.name, pattern.replace("[", "[[]"))
        if not (same and difference.expected):
            continue
        error, reason = difference.error, difference.reason
        if outcome.excinfo is None:
            outcome.force_exception(
                AssertionError(f"passes, so it is no difference: {pattern} ({reason})")
            )
        else:
            kind, value, _ = outcome.excinfo
            found = f"{kind.__name__}: {value}"
            if re.search(error, found):
                outcome.force_result(True)
        return

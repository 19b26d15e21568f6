"""The fast suite's selection, the shared fixtures and hypothesis's settings."""

from __future__ import annotations

import functools
import lzma
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from dualgap import core

from .selection import CASES, chosen

# A run started in the background has Ctrl-C ignored, and so would the programs that
# the tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[1]
#: What to do about a budget that is exceeded.
OVER = (
    "shorten, or raise {} by what a new feature needs, in the same commit, and say "
    "what it replaces"
)

#: Whether this is `make sanitize`, which loads a sanitizer's runtime first.
SANITIZED = "san" in os.environ.get("LD_PRELOAD", "")


def unsanitized(reason: str) -> pytest.MarkDecorator:
    """Leave a test out where a sanitizer watches, and say why."""
    return pytest.mark.skipif(SANITIZED, reason=f"not under a sanitizer: {reason}")


#: Examples of one property that hypothesis tries at most in the fast suite.
EXAMPLES = 50

_whole = False

TOOK = pytest.StashKey[float]()
WORKERS = pytest.StashKey[list[float]]()


def examples(count: int) -> int:
    """Number of examples of a property: so many in the whole suite, few in the fast."""
    return count if _whole else min(count, EXAMPLES)


settings.register_profile("default", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        help="run the whole suite: every case, tests marked `long`, all examples",
    )


def pytest_configure(config: pytest.Config) -> None:
    global _whole
    _whole = config.getoption("all")


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Leave out what only the whole suite runs, unless it was asked for by name."""
    if _whole or any("::" in argument for argument in config.invocation_params.args):
        return
    tests: dict[str, dict[str, pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("long") is None:
            test = item.nodeid.partition("[")[0]
            tests.setdefault(test, {})[item.nodeid] = item
    kept: set[str] = set()
    for cases in tests.values():
        mark = next(iter(cases.values())).get_closest_marker("cases")
        most = mark.args[0] if mark else CASES
        kept |= chosen({name: _values(item) for name, item in cases.items()}, most)
    config.hook.pytest_deselected(
        items=[item for item in items if item.nodeid not in kept]
    )
    items[:] = [item for item in items if item.nodeid in kept]


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    # What the core of `make coverage` counted: pytest-xdist ends its processes by
    # os._exit, and kills them 10 seconds after their last test.
    getattr(core, "write_counters", lambda: None)()
    config = session.config
    # Of this process, and of its children or of the processes of pytest-xdist.
    user, system, *children, _ = os.times()
    took = user + system + sum(config.stash.get(WORKERS, children))
    if hasattr(config, "workerinput"):
        config.workeroutput["seconds"] = took
    config.stash[TOOK] = took


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Note the processor time of a process of pytest-xdist."""
    seconds = getattr(node, "workeroutput", {}).get("seconds", 0.0)
    node.config.stash.setdefault(WORKERS, []).append(seconds)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    took = terminalreporter.config.stash[TOOK]
    terminalreporter.line(f"{took:.0f} s of processor time")


def _values(item: pytest.Item) -> dict[str, str]:
    """Values of a test's parameters as text, those without a short one by number."""
    call = getattr(item, "callspec", None)
    if call is None:
        return {}
    return {
        name: repr(value)
        if isinstance(value, (str, int, float, bool, type(None)))
        else f"#{call.indices[name]}"
        for name, value in call.params.items()
    }


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Folder of real data sets: DUALGAP_DATA, or ../shared/data beside the checkout."""
    folder = Path(os.environ.get("DUALGAP_DATA") or ROOT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no data at {folder}: set DUALGAP_DATA to the folder of data sets")
    return folder


@pytest.fixture(scope="session")
def load_xz(data_dir: Path) -> Callable[[str], tuple[Any, Any]]:
    """Reader of the svmlight file `<data_dir>/<name>.xz`: (X in CSR, y)."""
    from sklearn.datasets import load_svmlight_file

    @functools.cache
    def load(name: str) -> tuple[Any, Any]:
        path = data_dir / f"{name}.xz"
        if not path.is_file():
            pytest.skip(f"no {path}")
        with lzma.open(path) as file:
            return load_svmlight_file(file)

    return load

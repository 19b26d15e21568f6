"""Limits on the threads of BLAS."""

import contextlib
from types import SimpleNamespace

import pytest

from dualgap import blas
from dualgap.blas import limited


class Library:
    """A BLAS library, as threadpoolctl shows it."""

    def __init__(self, threads):
        self.num_threads = threads

    def set_num_threads(self, threads):
        self.num_threads = threads


@pytest.fixture
def threads(monkeypatch):
    """Return a function that tells the threads of two libraries."""
    libraries = [Library(3), Library(4)]
    controller = SimpleNamespace(lib_controllers=libraries)
    monkeypatch.setattr(blas, "algebra", lambda: ((), controller))
    return lambda: [library.num_threads for library in libraries]


def test_the_smallest_limit_holds(threads):
    with limited(2):
        assert threads() == [2, 2]
        with limited(1):
            assert threads() == [1, 1]
        assert threads() == [2, 2]
        with limited(5):
            assert threads() == [2, 2]
    assert threads() == [3, 4]


def test_a_limit_gives_no_library_more_threads(threads):
    with limited(4):
        assert threads() == [3, 4]


def test_blocks_that_end_in_any_order_give_all_threads_back(threads):
    first, second = contextlib.ExitStack(), contextlib.ExitStack()
    first.enter_context(limited(1))
    second.enter_context(limited(1))
    first.close()
    assert threads() == [1, 1]
    second.close()
    assert threads() == [3, 4]


def test_an_error_gives_the_threads_back(threads):
    with contextlib.suppress(RuntimeError), limited(1):
        raise RuntimeError
    assert threads() == [3, 4]

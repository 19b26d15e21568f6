"""Limits on the threads of BLAS."""

import contextlib

import pytest
from threadpoolctl import threadpool_limits

from dualgap.blas import algebra, limited


def threads():
    return {library.num_threads for library in algebra()[1].lib_controllers}


@pytest.fixture(autouse=True)
def three_threads():
    with threadpool_limits(3, "blas"):
        if threads() != {3}:
            pytest.skip("this BLAS does not let its threads be set to 3")
        yield


def test_the_smallest_limit_holds():
    with limited(2):
        assert threads() == {2}
        with limited(1):
            assert threads() == {1}
        assert threads() == {2}
        with limited(5):
            assert threads() == {2}
    assert threads() == {3}


def test_blocks_that_end_in_any_order_give_all_threads_back():
    first, second = contextlib.ExitStack(), contextlib.ExitStack()
    first.enter_context(limited(1))
    second.enter_context(limited(1))
    first.close()
    assert threads() == {1}
    second.close()
    assert threads() == {3}


def test_an_error_gives_the_threads_back():
    with contextlib.suppress(RuntimeError), limited(1):
        raise RuntimeError
    assert threads() == {3}

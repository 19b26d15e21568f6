"""Modules that have moved are found under their old names."""

from __future__ import annotations

import pickle
from importlib import import_module

import pytest

import dualgap
from dualgap._moved import MOVED


@pytest.mark.parametrize("old", MOVED)
def test_an_old_name_is_the_module_of_today(old):
    if old.startswith("dualgap.estimators.distributed"):
        pytest.importorskip("distributed")
    module, now = import_module(old), import_module(MOVED[old])
    if old == "dualgap.io":
        assert module.RowStore is now.RowStore
    else:
        assert module is now
        assert module.__name__ == module.__spec__.name == MOVED[old]


def test_an_old_module_hides_no_function():
    from dualgap.io.convert import convert as old

    from dualgap.data import convert

    assert dualgap.data.convert is convert is old


def test_a_pickle_with_an_old_name_is_read():
    kept = pickle.dumps(dualgap.Solution, protocol=0)
    assert b"cdualgap.training.solution\n" in kept
    old = kept.replace(b"dualgap.training.solution", b"dualgap.loop")
    assert pickle.loads(old) is dualgap.Solution

"""The cache of kernel rows against a dict, in whatever order rows are asked for."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
)

from dualgap import core

N = 9
K = np.random.default_rng(0).normal(size=(N, N))
ROW = st.integers(0, N - 1)


class RowCache(RuleBasedStateMachine):
    """Rows found, computed, evicted, and rows whose computation fails."""

    @initialize(capacity=st.integers(2, N))
    def begin(self, capacity: int) -> None:
        self.capacity, self.fails = capacity, False
        self.held: OrderedDict[int, None] = OrderedDict()
        self.counts = [0, 0, 0]
        self.gram = core.Gram(core.PythonRows(N, self.block), capacity)

    def teardown(self) -> None:
        del self.gram  # it holds this machine, in a cycle that is not collected

    def block(
        self, rows: np.ndarray, columns: np.ndarray | None, precise: bool
    ) -> np.ndarray:
        if self.fails:
            raise RuntimeError("not now")
        values = K[rows] if columns is None else K[np.ix_(rows, columns)]
        return np.ascontiguousarray(values, np.float64 if precise else np.float32)

    @rule(i=ROW)
    def row(self, i: int) -> None:
        out = np.empty(N, np.float32)
        self.gram.row(i, out)
        np.testing.assert_array_equal(out, K[i].astype(np.float32))
        if i in self.held:
            self.counts[0] += 1
        else:
            self.counts[1] += 1
            self.counts[2] += N
        self.held[i] = None
        self.held.move_to_end(i)
        if len(self.held) > self.capacity:
            self.held.popitem(last=False)

    @rule(i=ROW)
    def row_that_fails(self, i: int) -> None:
        if i in self.held:
            return
        self.fails = True
        with pytest.raises(RuntimeError, match="not now"):
            self.gram.row(i, np.empty(N, np.float32))
        self.fails = False
        if len(self.held) == self.capacity:  # the oldest row made room
            self.held.popitem(last=False)

    @rule(rows=st.lists(ROW, min_size=1), columns=st.lists(ROW, min_size=1))
    def values(self, rows: list[int], columns: list[int]) -> None:
        out = np.empty(len(rows) * len(columns))
        self.gram.block(np.array(rows, np.uint32), np.array(columns, np.uint32), out)
        np.testing.assert_array_equal(out, K[np.ix_(rows, columns)].ravel())
        self.counts[2] += out.size

    @invariant()
    def the_newest_rows_are_held(self) -> None:
        assert [i for i in range(N) if self.gram.holds(i)] == sorted(self.held)
        assert len(self.held) <= self.gram.held <= self.capacity

    @invariant()
    def all_work_is_counted(self) -> None:
        found = self.gram.statistics
        assert [found.hits, found.misses, found.evaluations] == self.counts


RowCache.TestCase.settings = settings(
    max_examples=30, stateful_step_count=30, deadline=None
)
TestRowCache = RowCache.TestCase

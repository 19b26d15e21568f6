"""A checkpoint through stops, other problems and other limits, in any order."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from dualgap.problems import BinaryProblem
from dualgap.solvers import DCD
from dualgap.training import solve

from .test_checkpoint import KilledError, killed_at, rows, same

X, Y = rows(n=80, d=10)
EPOCHS = 12
WHOLE = solve(BinaryProblem(X, Y, 30.0), DCD(), tol=1e-14, max_iter=EPOCHS)
assert WHOLE.certificate.epochs == EPOCHS


class Checkpoint(RuleBasedStateMachine):
    """Whatever happened to the file, going on gives the bits of one whole fit."""

    @initialize()
    def begin(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "c"
        self.reached = 0

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()

    def solve(self, C: float = 30.0, **options):
        return solve(
            BinaryProblem(X, Y, C), DCD(), tol=1e-14, checkpoint=self.file,
            checkpoint_every=1e-9, **options,
        )  # fmt: skip

    @rule(epoch=st.integers(1, EPOCHS))
    def killed(self, epoch: int) -> None:
        if epoch <= self.reached:
            return
        with pytest.raises(KilledError):
            self.solve(max_iter=EPOCHS, on_epoch=killed_at(epoch))
        self.reached = max(self.reached, epoch - 1)

    @rule(epoch=st.integers(1, EPOCHS))
    def ended_by_a_limit(self, epoch: int) -> None:
        found = self.solve(max_iter=epoch)
        self.reached = max(self.reached, epoch)
        assert found.certificate.epochs == self.reached

    @rule(C=st.sampled_from([1.0, 2.0]))
    def refused_for_another_problem(self, C: float) -> None:
        if not self.file.exists():
            return
        before = self.file.read_bytes()
        with pytest.raises(ValueError, match="by a fit of"):
            self.solve(C, max_iter=EPOCHS)
        assert self.file.read_bytes() == before

    @rule()
    def to_the_end(self) -> None:
        found = self.solve(max_iter=EPOCHS)
        np.testing.assert_array_equal(found.w, WHOLE.w)
        same(found, WHOLE)
        self.reached = EPOCHS

    @invariant()
    def nothing_else_is_left(self) -> None:
        if hasattr(self, "file"):
            left = {path.name for path in self.file.parent.iterdir()}
            assert left <= {"c"}


Checkpoint.TestCase.settings = settings(
    max_examples=15, stateful_step_count=8, deadline=None
)
TestCheckpoint = Checkpoint.TestCase

"""Calls of the command line, the files that they read, and Ctrl-C."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from dataclasses import dataclass
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from dualgap import cli
from dualgap.training.loop import Loop


def write(
    name: str, labels: list[Any], n: int = 60, d: int = 6, seed: int = 0, base: int = 1
) -> tuple[sparse.csr_matrix, np.ndarray]:
    """A svmlight file of noisy, overlapping classes; what scikit-learn reads in it."""
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % len(labels)
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    X[:, 1] += codes - len(labels) / 2
    X[:, -1] += 1.0  # the last feature occurs
    X[:, 0] -= 1.0  # and the first
    dump_svmlight_file(X, np.array(labels)[codes], name, zero_based=base == 0)
    return load_svmlight_file(name, zero_based=base == 0)


@dataclass
class Result:
    """Outcome of a call: what a shell sees."""

    exit_code: int
    stdout: str
    stderr: str


def invoke(*arguments: str, content: bytes = b"") -> Result:
    """Call the command line, with content on standard input; nothing may escape."""
    out, told = io.StringIO(), io.StringIO()
    stdin = mock.Mock(buffer=io.BytesIO(content))
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(told),
        mock.patch.object(sys, "stdin", stdin),
    ):
        status = cli.run(arguments)
    return Result(status, out.getvalue(), told.getvalue())


def call(*arguments: str, status: int = 0) -> Result:
    result = invoke(*arguments)
    assert result.exit_code == status, result
    return result


def refused(*arguments: str, status: int = 1) -> str:
    """The sentence with which a call is refused."""
    before = sorted(os.listdir())
    result = call(*arguments, status=status)
    assert result.stdout == ""
    assert sorted(os.listdir()) == before
    if status == 1:
        assert result.stderr.startswith("dualgap: ")
        assert result.stderr.count("\n") == 1
    return result.stderr


def interrupt(monkeypatch: pytest.MonkeyPatch, runs: int) -> list[int]:
    """Press Ctrl-C as the loop begins this run; the list grows with the runs."""
    run, begun = Loop.run, list[int]()

    def interrupting(*given: Any, **named: Any) -> Any:
        begun.append(1)
        if len(begun) == runs:
            os.kill(os.getpid(), signal.SIGINT)
        return run(*given, **named)

    monkeypatch.setattr(Loop, "run", interrupting)
    return begun

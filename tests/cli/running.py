"""Calls of the command line, and the files that they read."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from typer.testing import CliRunner

from dualgap.cli import app


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


def call(*arguments: str, status: int = 0) -> Any:
    result = CliRunner().invoke(app, arguments)
    text = f"{result.output}\n{result.exception!r}"
    assert result.exit_code == status, text
    # Nothing but exits: no traceback reaches a user.
    assert result.exception is None or isinstance(result.exception, SystemExit), text
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

"""Pytest plugin: patch scikit-learn, and count who trains the fits of its tests."""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from pathlib import Path

import dualgap
from dualgap.estimators import drop_ins

#: The row of docs/tables/patched-fits.csv for the first words of a reason.
ROWS = {
    "probability=True": "handed on: `probability=True`",
    "kernel=": "handed on: an indefinite kernel matrix",
    "sample_weight": "handed on: weights that leave a class without a row",
    "C=inf": "handed on: `C=inf`",
    "gamma=0": "handed on: `gamma=0`",
    "X, y": "handed on: different lengths",
}
TRAINED = "trained by dualgap"
counts: Counter[str] = Counter()


class Reasons(logging.Handler):
    """Counts the fits that are handed on, by their reasons."""

    def emit(self, record: logging.LogRecord) -> None:
        _, _, reason = record.getMessage().partition("scikit-learn trains this model: ")
        if reason:
            rows = (row for words, row in ROWS.items() if reason.startswith(words))
            counts[next(rows, reason)] += 1


def pytest_configure() -> None:
    dualgap.patch_sklearn()
    train = drop_ins.train

    def counting(*arguments: object) -> object:
        found = train(*arguments)
        counts[TRAINED] += found is not None
        return found

    drop_ins.train = counting
    log = logging.getLogger("dualgap")
    log.addHandler(Reasons())
    log.setLevel(logging.INFO)


def pytest_unconfigure() -> None:
    Path(os.environ["COUNTS"]).write_text(json.dumps(counts))

"""Grid, objective and data, for all scripts of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness
from datasets import CACHE, load
from harness import save

# Cheap ones first.
DATA = [
    "ijcnn1", "a9a", "w8a", "sector", "20news", "covtype", "imdb", "phish-urls",
    "cover", "donors", "mnist", "kdd99", "imdb-bigrams", "rcv1-like",
]  # fmt: skip
COSTS = [0.05, 0.1, 1.0, 10.0, 100.0]
ACCURACIES = [1e-2, 1e-3, 1e-4, 1e-6]
CAP = 60.0  # processor seconds of one fit, and what a failure counts as


def objective(X, y, C: float, w) -> float:
    """P(w) of the hinge in NumPy and float64, from outside of every package."""
    margins = y * np.asarray(X @ w, dtype=np.float64)
    return float(0.5 * w @ w + C * np.maximum(0.0, 1.0 - margins).sum())


def arrays(name: str) -> Path:
    """Folder of the data set's arrays as .npy, written once."""
    folder = CACHE / "linear" / name
    if not (folder / "y.npy").exists():
        save(folder, *load(name))
    return folder


class Worker(harness.Worker):
    """A package in a process of its own, with one data set."""

    script = Path(__file__).with_name("worker.py")

    def fit(self, C, family, value, *, cap=CAP, seed=0, **options):
        """(row, w); the row has "capped" if the fit was ended at `cap`."""
        row, model = super().fit(C, family, value, cap=cap, seed=seed, **options)
        return row, None if model is None else model["w"]

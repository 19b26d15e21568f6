"""Probabilities of `calibrated` beside scikit-learn's `CalibratedClassifierCV`.

Prints log loss and Brier score on held-out rows, the largest difference of two
probabilities, and processor time relative to one fit, all measured in turns in one run.
The files hold the real data; see `datasets.py`.

Usage: OPENBLAS_NUM_THREADS=1 python benchmarks/probabilities.py [--repeat 5]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
from datasets import read
from harness import timed
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import scale

from dualgap import SVC, LinearSVC, calibrated

Rows = tuple[np.ndarray, np.ndarray]


def svmlight(name: str) -> Rows:
    X, y = read(name)
    return scale(X.toarray()), y


def embeddings() -> Rows:
    """Return 25,000 rows of 256 dense columns, in 10 overlapping classes."""
    random = np.random.default_rng(0)
    centres = 0.12 * random.standard_normal((10, 256))
    y = random.integers(0, 10, 25_000)
    X = centres[y] + random.standard_normal((len(y), 256))
    return (X / 4.0).astype(np.float32), y


CASES: dict[str, tuple[Callable[[], Rows], LinearSVC | SVC]] = {
    "pendigits, rbf, 10 classes": (
        lambda: svmlight("pendigits/pendigits"),
        SVC(C=10.0),
    ),
    "ijcnn1, linear": (lambda: svmlight("ijcnn1/ijcnn1"), LinearSVC()),
    "covtype, linear": (
        lambda: svmlight("covtype/covtype.binary.scale.subset92962"),
        LinearSVC(),
    ),
    "20,000 x 256, linear, 10 classes (synthetic)": (embeddings, LinearSVC()),
}


def brier(y: np.ndarray, likely: np.ndarray, classes: np.ndarray) -> float:
    """Return the mean, over the rows, of the summed squares of all classes."""
    return float(((likely - (y[:, None] == classes)) ** 2).sum(axis=1).mean())


def measure(name: str, repeat: int) -> None:
    make, model = CASES[name]
    X, y = make()
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.2, random_state=0)
    theirs = CalibratedClassifierCV(model, ensemble=False, cv=5)
    ways = {
        "fit": lambda: model.fit(X, y),
        "ours": lambda: calibrated(type(model)(**model.get_params()), X, y),
        "theirs": lambda: theirs.fit(X, y),
    }
    taken = {way: [] for way in ways}
    for _ in range(repeat):
        for way, work in ways.items():
            taken[way].append(timed(work)[0])
    fit, ours, rival = (min(taken[way]) for way in ways)
    found = calibrated(model, X, y)
    likely, expected = found.predict_proba(X_test), theirs.predict_proba(X_test)
    both = likely, expected
    figures = [
        *(log_loss(y_test, of, labels=found.classes_) for of in both),
        *(brier(y_test, of, found.classes_) for of in both),
    ]
    apart = f"{abs(likely - expected).max():.0e}"
    times = f"{fit:.2f}", f"{ours / fit:.1f}", f"{rival / fit:.1f}"
    cells = [name, *(f"{one:.4f}" for one in figures), apart, *times]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--cases", nargs="*", default=list(CASES))
    options = parser.parse_args()
    print(
        "| data | log loss | scikit-learn's | Brier score | scikit-learn's | largest "
        "difference | fit, s | calibrated / fit | scikit-learn's / fit |"
    )
    print("|---" * 9 + "|")
    for name in options.cases:
        measure(name, options.repeat)


if __name__ == "__main__":
    main()

"""Three or more classes: test accuracy of the schemes, and times of Crammer-Singer.

    python benchmarks/several_classes.py [accuracy] [times]

`accuracy` prints the share of test rows that default estimators of dualgap and
scikit-learn classify correctly, at C = 1: one versus the rest, one versus one, and
Crammer and Singer. Letter, pendigits and 20 newsgroups have their own test rows. Small
sets are the mean of ten random splits, the others one split, with a third held out.
Dense columns are standardised on the training rows.

`times` prints ratios of processor time of Crammer and Singer's SVM, on one thread:
dualgap is certified to 1e-3; scikit-learn (LIBLINEAR -s 4) runs with three tolerances,
and `certify` proves what each of its models has reached. Columns are scaled to [-1, 1].
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import sklearn.svm
from datasets import narrow, read, texts_of
from harness import timed
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from dualgap import DegenerateWarning, LinearSVC, certify

TOLS = (1.0, 0.1, 0.01)
FILES = {
    "pendigits": "pendigits/pendigits",
    "letter": "letter/letter.scale",
}
#: Training rows and labels, test rows and labels.
Split = tuple[Any, Any, Any, Any]


# ------------------------------------------------------------------------- accuracy


def parted(X: Any, y: Any, splits: int = 1) -> Iterator[Split]:
    """Yield random splits that hold back a third of each class."""
    for seed in range(splits):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=1 / 3, stratify=y, random_state=seed
        )
        yield X_train, y_train, X_test, y_test


def official(name: str) -> Iterator[Split]:
    """Yield a set of LIBSVM's pages with its own test rows."""
    X, y, X_test, y_test = read(name, f"{name}.t")
    yield X.toarray(), y, X_test.toarray(), y_test


def newsgroups() -> Iterator[Split]:
    texts, y = texts_of("20news/train.tsv")
    more, y_test = texts_of("20news/test.tsv")
    words = TfidfVectorizer()
    X, X_test = words.fit_transform(texts), words.transform(more)
    yield narrow(X), np.array(y), narrow(X_test), np.array(y_test)


def covtype() -> Iterator[Split]:
    X, y = read("covtype/covtype.binary.scale.subset92962")
    yield from parted(X.toarray(), y)


def ordered(n: int = 20_000) -> Iterator[Split]:
    """Four ordered classes: age, income, and two columns of words as indicators."""
    rng = np.random.default_rng(0)
    age, income = rng.normal(45, 15, n), rng.lognormal(10, 0.6, n)
    city, job = rng.integers(0, 6, n), rng.integers(0, 5, n)
    score = 0.03 * (age - 45) + 0.8 * (np.log(income) - 10) + 0.3 * (city == 2)
    score += rng.normal(0, 1, n) - 0.4 * (job == 1)
    y = np.digitize(score, np.quantile(score, [0.4, 0.7, 0.9]))
    X = np.column_stack([age, income, np.eye(6)[city], np.eye(5)[job]])
    yield from parted(X, y)


def customers(n: int = 20_000) -> Iterator[Split]:
    """Six classes of 2 to 45 % of the rows, told by 20 numbers and 30 shops."""
    rng = np.random.default_rng(1)
    y = rng.choice(6, n, p=[0.45, 0.25, 0.14, 0.09, 0.05, 0.02])
    centres, spread = rng.normal(0, 0.7, (6, 20)), rng.uniform(0.5, 2.0, (6, 20))
    numbers = centres[y] + spread[y] * rng.normal(size=(n, 20))
    numbers[:, :5] = np.exp(numbers[:, :5])  # such as prices
    shares = rng.dirichlet(np.full(30, 0.5), 6)
    shop = np.array([rng.choice(30, p=shares[k]) for k in y])
    yield from parted(np.column_stack([numbers, np.eye(30)[shop]]), y)


SETS: dict[str, Callable[[], Iterator[Split]]] = {
    "iris": lambda: parted(*load_iris(return_X_y=True), splits=10),
    "wine": lambda: parted(*load_wine(return_X_y=True), splits=10),
    "digits": lambda: parted(*load_digits(return_X_y=True), splits=10),
    "letter": lambda: official("letter/letter.scale"),
    "pendigits": lambda: official("pendigits/pendigits"),
    "20 newsgroups": newsgroups,
    "covtype": covtype,
    "four ordered classes": ordered,
    "six classes of customers": customers,
}
MODELS: dict[str, Callable[[], Any]] = {
    "`LinearSVC()`": LinearSVC,
    "scikit-learn's `LinearSVC()`": lambda: sklearn.svm.LinearSVC(random_state=0),
    '`loss="hinge"`': lambda: LinearSVC(loss="hinge"),
    "one versus one": lambda: LinearSVC(multi_class="ovo"),
    "Crammer and Singer": lambda: LinearSVC(loss="hinge", multi_class="crammer_singer"),
}


def accuracy() -> None:
    """Print a row per set, with the share of test rows in percent."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    warnings.simplefilter("ignore", DegenerateWarning)
    print(
        f"| data | classes | {' | '.join(MODELS)} |\n|---|{'---|' * (1 + len(MODELS))}"
    )
    for name, splits in SETS.items():
        shares: dict[str, list[float]] = {kind: [] for kind in MODELS}
        for X, y, X_test, y_test in splits():
            for kind, make in MODELS.items():
                model = make()
                if not sparse.issparse(X):
                    model = make_pipeline(StandardScaler(), model)
                shares[kind].append(model.fit(X, y).score(X_test, y_test))
        cells = " | ".join(f"{100 * np.mean(share):.1f}" for share in shares.values())
        print(f"| {name} | {len(np.unique(y))} | {cells} |", flush=True)


# ---------------------------------------------------------------------------- times


def load(name: str) -> tuple[Any, Any]:
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        X, y = read(FILES[name])
        X = narrow(X)  # scikit-learn refuses 64-bit indices
    return MaxAbsScaler().fit_transform(X), y


def times() -> None:
    """Print a row per set and C of Crammer and Singer's problem."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| data | classes | C | gap of dualgap | epochs | "
          + " | ".join(f"tol {t:g}: time / dualgap, gap" for t in TOLS)
          + " |\n|" + "---|" * (5 + len(TOLS)))  # fmt: skip
    for name in ("digits", *FILES):
        X, y = load(name)
        for C in (0.1, 1.0):
            ours = LinearSVC(C, loss="hinge", multi_class="crammer_singer")
            seconds = timed(ours.fit, X, y)[0]
            cells = []
            for tol in TOLS:
                theirs = sklearn.svm.LinearSVC(
                    C=C, multi_class="crammer_singer", tol=tol, max_iter=10_000,
                    random_state=0,
                )  # fmt: skip
                ratio = timed(theirs.fit, X, y)[0] / seconds
                gap = certify(theirs, X, y, tol=1e-5, time_limit=60).relative_gap
                cells.append(f"{ratio:.2g}, {gap:.1e}")
            c = ours.certificate_
            print(
                f"| {name} | {len(ours.classes_)} | {C:g} | {c.relative_gap:.1e} | "
                f"{c.epochs} | " + " | ".join(cells) + " |",
                flush=True,
            )


if __name__ == "__main__":
    parts: dict[str, Callable[[], None]] = {"accuracy": accuracy, "times": times}
    for part in sys.argv[1:] or parts:
        parts[part]()

"""Data sets of Nanculef et al. 2014 that are present: training rows and test rows."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from ..data.types import Array, Matrix
from . import data
from .data import unpack

COLLECTIONS = {
    "Web": ("w1a", "w4a", "w6a", "w7a", "w8a"),
    "Adult": ("a1a", "a2a", "a3a", "a7a", "a8a", "a9a"),
    "Medium": ("letter", "pendigits", "usps", "reuters", "mnist"),
    "Large": ("shuttle", "ijcnn1", "kdd99", "covtype"),
}
SETS = sum(COLLECTIONS.values(), ())
#: Training rows, their labels, test rows, their labels.
Parts = tuple[Matrix, Array, Matrix, Array]


def svmlight(train: str, test: str) -> Parts:
    """Return two svmlight files of the same features."""
    from sklearn.datasets import load_svmlight_files

    return tuple(load_svmlight_files([unpack(train), unpack(test)]))


def dense(train: str, test: str, divisor: float = 1.0) -> Parts:
    """Return two svmlight files of dense rows, divided by a number."""
    X, y, X_t, y_t = svmlight(train, test)
    return X.toarray() / divisor, y, X_t.toarray() / divisor, y_t


def images(path: str) -> Parts:
    """Return the images of mnist or usps, pixels scaled."""
    X, y, X_t, y_t = data.images(path.split("/")[0])
    factor = 1 / 255 if path.startswith("mnist") else 0.001
    return X * factor, y, X_t * factor, y_t


def shuttle(train: str, test: str) -> Parts:
    """Return shuttle, scaled to [-1, 1] by the training rows, as LIBSVM's copy is."""
    from sklearn.preprocessing import MinMaxScaler

    X, y, X_t, y_t = dense(train, test)
    scaler = MinMaxScaler((-1, 1)).fit(X)
    return scaler.transform(X), y, scaler.transform(X_t), y_t


def ijcnn1(name: str) -> Parts:
    """Return ijcnn1; its validation part is the test, as the test file is not here."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(unpack(name), n_features=22)
    X = X.toarray()
    return X[:35_000], y[:35_000], X[35_000:], y[35_000:]


def covtype(name: str) -> Parts:
    """Return class 2 of covtype against the rest; a fifth of the subset is the test."""
    from sklearn.model_selection import train_test_split

    X, y = data.covtype()
    X, X_t, y, y_t = train_test_split(X.toarray(), y, test_size=0.2, random_state=0)
    return X, y, X_t, y_t


def kdd99(train: str, test: str) -> Parts:
    """Return attack against normal; categories one-hot, numbers scaled to [0, 1]."""
    from scipy import sparse
    from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

    tables = []
    for name in (train, test):
        lines = unpack(name).read().decode().split()
        tables.append(np.array([line.split(",") for line in lines]))
    words = [1, 2, 3]  # protocol, service, flag
    encoder = OneHotEncoder(handle_unknown="ignore").fit(tables[0][:, words])
    numbers = [np.delete(t[:, :-1], words, axis=1).astype(np.float64) for t in tables]
    scaler = MaxAbsScaler().fit(numbers[0])
    X, X_t = (
        sparse.hstack([encoder.transform(t[:, words]), scaler.transform(n)], "csr")
        for t, n in zip(tables, numbers, strict=True)
    )
    y, y_t = (t[:, -1] != "normal." for t in tables)
    return X, y, X_t, y_t


#: How sets are made of their files that are not two files of svmlight text.
MAKERS: dict[str, Callable[..., Parts]] = {
    "letter": dense,
    "pendigits": functools.partial(dense, divisor=100),
    "usps": images,
    "reuters": lambda _: data.reuters(False),
    "mnist": images,
    "shuttle": shuttle,
    "ijcnn1": ijcnn1,
    "kdd99": kdd99,
    "covtype": covtype,
}


def some(X: Matrix, y: Array, limit: int) -> tuple[Matrix, Array]:
    """Return random rows, each class with its share and at least 2 rows."""
    if X.shape[0] <= limit:
        return X, y
    rng, rows = np.random.default_rng(0), []
    for label in np.unique(y):
        own = np.flatnonzero(y == label)
        size = min(len(own), max(2, round(limit * len(own) / len(y))))
        rows.append(rng.choice(own, size, replace=False))
    chosen = np.sort(np.concatenate(rows))
    return X[chosen], y[chosen]


@functools.lru_cache(maxsize=1)
def load(name: str) -> Parts:
    """Return a set by name, or parts of another set or file."""
    if name not in SETS:
        return data.halves(name)
    make: Callable[..., Parts] = MAKERS.get(name, svmlight)
    return make(*data.FILES[name])

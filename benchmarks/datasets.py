"""Data sets of the benchmarks, by name, as (X, y) with y in {-1, +1}.

Real sets are read from the folder `DUALGAP_DATA` (default: ../shared/data beside the
checkout), packed with xz. What is slow to make is kept in `DUALGAP_CACHE` (default:
the user's cache folder) as .npz.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

from dualgap.papers.data import (
    SETS,
    Data,
    imdb,
    narrow,
    read,
    svmlight,
    texts_of,
    unpack,
)

ROOT = Path(__file__).resolve().parent.parent
CACHE = Path(os.environ.get("DUALGAP_CACHE", Path.home() / ".cache" / "dualgap"))

# Where dualgap.papers looks.
os.environ.setdefault("DUALGAP_DATA", str(ROOT.parent / "shared" / "data"))


def _sector() -> Data:
    """The most frequent of the 105 classes against the rest."""
    X, y = read("sector/sector.scale")
    classes, counts = np.unique(y, return_counts=True)
    return X, np.where(y == classes[counts.argmax()], 1.0, -1.0)


def _20news() -> Data:
    """One group against the other nineteen."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = texts_of("20news/train.tsv", "20news/test.tsv")
    X = TfidfVectorizer().fit_transform(texts)
    return X, np.where(np.array(labels) == "comp.graphics", 1.0, -1.0)


def _phish_urls() -> Data:
    """URLs, phishing (+1) or not, as 3-grams of characters."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    lines = unpack("phish_urls/urls.tsv").read().decode().rstrip("\n").split("\n")
    labels, urls = zip(*(line.split("\t", 1) for line in lines), strict=True)
    X = TfidfVectorizer(analyzer="char", ngram_range=(3, 3)).fit_transform(urls)
    return X, np.where(np.array(labels) == "1", 1.0, -1.0)


def _mnist() -> Data:
    packed = np.load(unpack("mnist/mnist.npz"))
    key = {name.lower(): name for name in packed.files}
    images = packed[key.get("x_train", packed.files[0])]
    digits = packed[key.get("y_train", packed.files[1])]
    X = images.reshape(len(images), -1) / 255.0
    return sparse.csr_matrix(X), np.where(digits % 2 == 0, 1.0, -1.0)


def _letter() -> Data:
    """A to M against N to Z."""
    X, y = read("letter/letter.scale")
    return X, np.where(y <= 13, 1.0, -1.0)


def _usps() -> Data:
    """Even digits against odd ones."""
    packed = np.load(unpack("usps/usps.npz"))
    X = packed["X_train"] * float(packed["scale"])
    return X, np.where(packed["y_train"] % 2 == 0, 1.0, -1.0)


def _cancer() -> Data:
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import scale

    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), np.where(y > 0, 1.0, -1.0)


def _standardised(name: str) -> Data:
    """Dense rows of ADBench, every column of mean 0 and variance 1."""
    packed = np.load(unpack(name))
    X = packed["X"].astype(np.float64)
    X = (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-12)
    return np.ascontiguousarray(X), np.where(packed["y"] > 0, 1.0, -1.0)


def _kdd99(scaled: bool = True) -> Data:
    """Attack against normal; categories one-hot, numbers raw or scaled to [0, 1]."""
    from sklearn.preprocessing import MaxAbsScaler, OneHotEncoder

    lines = unpack("kdd99/kddcup.data_10_percent").read().decode().split()
    fields = np.array([line.split(",") for line in lines])
    names = [1, 2, 3]  # protocol, service, flag
    rest = np.delete(fields[:, :-1], names, axis=1).astype(np.float64)
    parts = [
        OneHotEncoder().fit_transform(fields[:, names]),
        sparse.csr_matrix(MaxAbsScaler().fit_transform(rest) if scaled else rest),
    ]
    y = np.where(fields[:, -1] == "normal.", -1.0, 1.0)
    return sparse.hstack(parts, format="csr"), y


def susy_like(n: int = 3_000_000, d: int = 18, seed: int = 0) -> Data:
    """Dense rows in the shape of SUSY: correlated columns, every second one skewed.

    The labels come from a linear and a quadratic part and from noise, so that a linear
    model is wrong for about a fifth of the rows.
    """
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[:, ::2] = np.exp(0.6 * X[:, ::2])
    X = X @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    score = X @ rng.standard_normal(d) + 0.5 * (X[:, :6] ** 2 - 1).sum(axis=1)
    score += 0.5 * score.std() * rng.standard_normal(n)
    return X, np.where(score > np.median(score), 1.0, -1.0)


NAMES: dict[str, Callable[[], Data]] = SETS | {
    "a1a": lambda: svmlight("adult/a1a", 123),
    "ijcnn1": lambda: svmlight("ijcnn1/ijcnn1", 22),
    "imdb-bigrams": lambda: imdb(ngram_range=(1, 2), min_df=2),
    "20news": _20news,
    "sector": _sector,
    "phish-urls": _phish_urls,
    "mnist": _mnist,
    "letter": _letter,
    "usps": _usps,
    "cancer": _cancer,
    "splice": lambda: svmlight("splice/splice.scaled"),
    "donors": lambda: _standardised("adbench/11_donors.npz"),
    "cover": lambda: _standardised("adbench/10_cover.npz"),
    "kdd99": _kdd99,
    "kdd99-raw": lambda: _kdd99(scaled=False),
    "susy-like": susy_like,
}
_CACHED = {
    "imdb", "imdb-bigrams", "20news", "phish-urls", "kdd99", "kdd99-raw", "rcv1-like"
}  # fmt: skip


def cached(name: str, make: Callable[[], Data]) -> Data:
    """Return what `make` makes, from the cache once it was made."""
    path = CACHE / f"{name}.npz"
    if path.exists():
        kept = np.load(path)
        arrays = kept["data"], kept["indices"], kept["indptr"]
        return narrow(sparse.csr_matrix(arrays, kept["shape"])), kept["y"]
    X, y = make()
    X = narrow(X.tocsr())
    path.parent.mkdir(parents=True, exist_ok=True)
    parts = dict(data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape)
    np.savez(path, y=y, **parts)
    return X, y


def load(name: str) -> Data:
    """Data set by name; KeyError names the known ones."""
    if name not in NAMES:
        raise KeyError(f"{name!r}: known data sets are {', '.join(NAMES)}")
    if name in _CACHED:
        return cached(name, NAMES[name])
    X, y = NAMES[name]()
    return narrow(X.tocsr()) if sparse.issparse(X) else X, y

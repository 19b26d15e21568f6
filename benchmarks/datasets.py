"""Data sets of the benchmarks, by name, as (X, y) with y in {-1, +1}.

Real sets are read from the folder `DUALGAP_DATA` (default: ../shared/data beside the
checkout), packed with xz. What is slow to make is kept in `DUALGAP_CACHE` (default:
the user's cache folder) as .npz.
"""

from __future__ import annotations

import io
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import sparse

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DUALGAP_DATA", ROOT.parent / "shared" / "data"))
CACHE = Path(os.environ.get("DUALGAP_CACHE", Path.home() / ".cache" / "dualgap"))

Data = tuple[sparse.csr_matrix | np.ndarray, np.ndarray]


def unpack(name: str) -> io.BytesIO:
    with lzma.open(DATA / f"{name}.xz") as file:
        return io.BytesIO(file.read())


def _narrow(X: sparse.csr_matrix) -> sparse.csr_matrix:
    """Narrow the indices to int32; scikit-learn's LinearSVC refuses int64."""
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def _svmlight(name: str, n_features: int | None = None) -> Data:
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(unpack(name), n_features=n_features)
    return X, np.where(y > 0, 1.0, -1.0)


def _covtype(positive: int = 2) -> Data:
    """Return one class of forest cover against the rest."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(unpack("covtype/covtype.binary.scale.subset92962"))
    return X, np.where(y == positive, 1.0, -1.0)


def _sector() -> Data:
    """The most frequent of the 105 classes against the rest."""
    from sklearn.datasets import load_svmlight_file

    X, y = load_svmlight_file(unpack("sector/sector.scale"))
    classes, counts = np.unique(y, return_counts=True)
    return X, np.where(y == classes[counts.argmax()], 1.0, -1.0)


def _texts(*names: str) -> tuple[list[str], list[str]]:
    """Texts and labels of packed tables whose last column is the text."""
    texts, labels = [], []
    for name in names:
        for line in unpack(name).read().decode().rstrip("\n").split("\n"):
            _, label, *_, text = line.split("\t")
            texts.append(text.replace("\\n", " "))
            labels.append(label)
    return texts, labels


def _imdb(**options: object) -> Data:
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = _texts("imdb/train.tsv", "imdb/test.tsv")
    X = TfidfVectorizer(**options).fit_transform(texts)
    return X, np.where(np.array(labels) == "pos", 1.0, -1.0)


def _20news() -> Data:
    """One group against the other nineteen."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts, labels = _texts("20news/train.tsv", "20news/test.tsv")
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


def rcv1_like(n: int = 781_265, d: int = 47_236, row: int = 76, seed: int = 0) -> Data:
    """Random numbers in the shape of RCV1: Zipf features, unit rows, noisy labels."""
    rng = np.random.default_rng(seed)
    weight = 1.0 / np.arange(1, d + 1) ** 0.9
    edges = np.cumsum(weight / weight.sum())
    normal = rng.standard_normal(d)
    blocks, scores = [], []
    for begin in range(0, n, 50_000):
        m = min(50_000, n - begin)
        columns = np.searchsorted(edges, rng.random((m, row))).clip(0, d - 1)
        # Inverse document frequency against term frequency, as in tf-idf.
        values = (1.0 + rng.exponential(size=(m, row))) * np.log1p(columns)
        pointers = np.arange(0, m * row + 1, row)
        X = sparse.csr_matrix((values.ravel(), columns.ravel(), pointers), (m, d))
        X.sum_duplicates()
        norms = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
        X.data /= np.repeat(norms, np.diff(X.indptr))
        blocks.append(X)
        scores.append(X @ normal)
    X = sparse.vstack(blocks, format="csr")
    score = np.concatenate(scores)
    score += 0.3 * score.std() * rng.standard_normal(n)
    return X, np.where(score > np.median(score), 1.0, -1.0)


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


NAMES: dict[str, Callable[[], Data]] = {
    "a1a": lambda: _svmlight("adult/a1a", 123),
    "a9a": lambda: _svmlight("adult/a9a", 123),
    "w8a": lambda: _svmlight("web/w8a", 300),
    "ijcnn1": lambda: _svmlight("ijcnn1/ijcnn1", 22),
    "covtype": _covtype,
    "cov1": lambda: _covtype(1),
    "imdb": _imdb,
    "imdb-bigrams": lambda: _imdb(ngram_range=(1, 2), min_df=2),
    "20news": _20news,
    "sector": _sector,
    "phish-urls": _phish_urls,
    "mnist": _mnist,
    "donors": lambda: _standardised("adbench/11_donors.npz"),
    "cover": lambda: _standardised("adbench/10_cover.npz"),
    "kdd99": _kdd99,
    "kdd99-raw": lambda: _kdd99(scaled=False),
    "rcv1-like": rcv1_like,
    "susy-like": susy_like,
}
_CACHED = {
    "imdb", "imdb-bigrams", "20news", "phish-urls", "kdd99", "kdd99-raw", "rcv1-like"
}  # fmt: skip


def load(name: str) -> Data:
    """Data set by name; KeyError names the known ones."""
    if name not in NAMES:
        raise KeyError(f"{name!r}: known data sets are {', '.join(NAMES)}")
    path = CACHE / f"{name}.npz"
    if name in _CACHED and path.exists():
        packed = np.load(path)
        X = sparse.csr_matrix(
            (packed["data"], packed["indices"], packed["indptr"]), packed["shape"]
        )
        return _narrow(X), packed["y"]
    X, y = NAMES[name]()
    if sparse.issparse(X):
        X = _narrow(X.tocsr())
    if name in _CACHED:
        CACHE.mkdir(parents=True, exist_ok=True)
        parts = dict(data=X.data, indices=X.indices, indptr=X.indptr, shape=X.shape)
        np.savez(path, y=y, **parts)
    return X, y

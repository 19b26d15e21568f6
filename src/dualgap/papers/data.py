"""Data sets of the papers' experiments: real ones by name, made ones, and files.

Real sets are read from the folder `DUALGAP_DATA`, packed with xz.
"""

from __future__ import annotations

import functools
import io
import lzma
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from scipy import sparse

from ..data.svmlight import load_svmlight
from ..data.types import Array, Matrix
from ..losses import Vector
from .names import kept

Data = tuple[Matrix, Vector]
#: Training rows, their labels, test rows, their labels.
Parts = tuple[Matrix, Array, Matrix, Array]
_KEPT = kept("sets")
#: Files of the real sets, and what sets are, where the name does not say it.
FILES: dict[str, list[str]] = _KEPT["files"]
WORDS: dict[str, str] = _KEPT["words"]
#: The sets of Nanculef et al. 2014 by collection.
COLLECTIONS: dict[str, list[str]] = _KEPT["collections"]
#: Divisors of features in sets with dense rows.
DENSE: dict[str, float] = _KEPT["dense"]


def packed(name: str) -> Path:
    """Return the path of a packed file of the real data sets."""
    return Path(os.environ.get("DUALGAP_DATA", "data")) / f"{name}.xz"


def unpack(name: str) -> io.BytesIO:
    """Return a file of the real data sets."""
    with lzma.open(packed(name)) as file:
        return io.BytesIO(file.read())


def narrow(X: Matrix) -> Matrix:
    """Narrow the indices of a sparse matrix to int32."""
    X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return X


def read(*names: str, n_features: int | None = None) -> tuple[Matrix, ...]:
    """Return rows and labels of packed svmlight files with the same columns."""
    from sklearn.datasets import load_svmlight_files

    return tuple(load_svmlight_files([*map(unpack, names)], n_features=n_features))


def svmlight(name: str, n_features: int | None = None) -> Data:
    """Return a packed svmlight file with labels -1 and 1."""
    X, y = read(name, n_features=n_features)
    return X, np.where(y > 0, 1.0, -1.0)


def covtype(positive: int = 2) -> Data:
    """Return a sixth of forest cover: one class against the rest."""
    X, y = read(*FILES["covtype"])
    return X, np.where(y == positive, 1.0, -1.0)


def texts_of(*names: str) -> tuple[list[str], list[str]]:
    """Return texts and labels of packed tables whose last column is the text."""
    found, labels = [], []
    for name in names:
        for line in unpack(name).read().decode().rstrip("\n").split("\n"):
            _, label, *_, text = line.split("\t")
            found.append(text.replace("\\n", " "))
            labels.append(label)
    return found, labels


def imdb(**options: object) -> Data:
    """Return the reviews of imdb, positive or not, as tf-idf."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    found, labels = texts_of("imdb/train.tsv", "imdb/test.tsv")
    X = TfidfVectorizer(**options).fit_transform(found)
    return X, np.where(np.array(labels) == "pos", 1.0, -1.0)


def reuters(topics: bool, **options: object) -> Parts:
    """Return ModApte's training and test articles, money-fx or not, as tf-idf.

    With `topics` only those that have one.
    """
    from sklearn.feature_extraction.text import TfidfVectorizer

    text = unpack("reuters21578/reut2-all.sgm").read().decode("latin-1")
    texts: dict[str, list[str]] = {"TRAIN": [], "TEST": []}
    labels: dict[str, list[float]] = {"TRAIN": [], "TEST": []}
    pattern = r'<REUTERS[^>]*TOPICS="YES"[^>]*LEWISSPLIT="(TRAIN|TEST)".*?</REUTERS>'
    for entry in re.finditer(pattern, text, flags=re.DOTALL):
        (names,) = re.findall(r"<TOPICS>(.*?)</TOPICS>", entry[0])
        (body,) = re.findall(r"<TEXT.*</TEXT>", entry[0], flags=re.DOTALL)
        if names or not topics:
            texts[entry[1]].append(re.sub(r"<.*?>|&#\d+;", " ", body))
            labels[entry[1]].append(1.0 if "<D>money-fx</D>" in names else -1.0)
    tfidf = TfidfVectorizer(min_df=2, **options)
    X, X_t = tfidf.fit_transform(texts["TRAIN"]), tfidf.transform(texts["TEST"])
    return X, np.array(labels["TRAIN"]), X_t, np.array(labels["TEST"])


def images(name: str) -> Parts:
    """Return the pixels and digits of usps or mnist, training and test rows."""
    packed = np.load(unpack(f"{name}/{name}.npz"))
    X, X_t = (packed[f"X_{part}"] for part in ("train", "test"))
    X, X_t = (x.reshape(len(x), -1) for x in (X, X_t))
    return X, packed["y_train"], X_t, packed["y_test"]


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


def breast_cancer() -> Data:
    """Return scikit-learn's table of tumours, every column of variance 1."""
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import scale

    X, y = load_breast_cancer(return_X_y=True)
    return sparse.csr_matrix(scale(X) / X.shape[1] ** 0.5), np.where(y > 0, 1.0, -1.0)


def digits() -> Data:
    """Return scikit-learn's digits: the 8 against the others."""
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return sparse.csr_matrix(X / 16.0), np.where(y == 8, 1.0, -1.0)


SETS: dict[str, Callable[[], Data]] = {
    "a9a": lambda: svmlight("adult/a9a", 123),
    "w8a": lambda: svmlight("web/w8a", 300),
    "covtype": covtype,
    "cov1": lambda: covtype(1),
    "imdb": imdb,
    "rcv1-like": rcv1_like,
    "breast-cancer": breast_cancer,
    "digits": digits,
    "generated": lambda: rcv1_like(3000, 2000, 40),
}


def require(names: Iterable[str]) -> None:
    """Refuse sets whose files are not there."""
    for name in names:
        for path in map(packed, FILES.get(name, ())):
            if not path.is_file():
                raise FileNotFoundError(
                    f"{name} needs {path}, which is missing: set DUALGAP_DATA to the "
                    "folder of the real data sets, or do without them by --quick or "
                    "--data FILE"
                )


@functools.lru_cache(maxsize=1)
def load(name: str) -> Data:
    """Return a data set: one of `SETS`, or a file of svmlight text with two classes."""
    if name in SETS:
        X, y = SETS[name]()
        return narrow(X.tocsr()), y
    X, labels = load_svmlight(name)
    classes = np.unique(labels)
    if len(classes) != 2:
        raise ValueError(
            f"{name} has {len(classes)} classes, but the papers' experiments need two; "
            "write its labels as -1 and 1"
        )
    return X, np.where(labels == classes[1], 1.0, -1.0)


def halves(name: str, shuffled: bool = True) -> Parts:
    """Return training and test rows: imdb's own halves, a tenth of others at random.

    The rows of imdb are sorted by label. Unless `shuffled`, they keep their order.
    """
    X, y = load(name)
    rng = np.random.default_rng(0)
    order = rng.permutation(len(y)) if shuffled else np.arange(len(y))
    if name == "imdb":
        test = order >= 25_000
    elif shuffled:
        test = np.arange(len(y)) < len(y) // 10
    else:
        test = rng.random(len(y)) < 0.1
    if shuffled:
        X, y = X[order], y[order]
    return X[~test], y[~test], X[test], y[test]


def kdd99(train: str, test: str) -> Parts:
    """Return attack against normal; categories one-hot, numbers scaled to [0, 1]."""
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


@functools.lru_cache(maxsize=1)
def parts_of(name: str) -> Parts:
    """Return the training and test rows of a set of Nanculef et al., or of another.

    The features are scaled as in LIBSVM's copies. A fifth of covtype is the test, and
    ijcnn1's validation part, as its test file is not here.
    """
    from sklearn.model_selection import train_test_split
    from sklearn.preprocessing import MinMaxScaler

    if not any(name in names for names in COLLECTIONS.values()):
        return halves(name)
    if name == "reuters":
        return reuters(False)
    if name == "kdd99":
        return kdd99(*FILES[name])
    if name == "covtype":
        X, y = covtype()
        X, X_t, y, y_t = train_test_split(X.toarray(), y, test_size=0.2, random_state=0)
    elif name == "ijcnn1":
        X, y = read(*FILES[name], n_features=22)
        X, X_t, y, y_t = *np.split(X.toarray(), [35_000]), *np.split(y, [35_000])
    elif name in ("usps", "mnist"):
        X, y, X_t, y_t = images(name)
        X, X_t = (x * (1 / 255 if name == "mnist" else 0.001) for x in (X, X_t))
    else:
        X, y, X_t, y_t = read(*FILES[name])
    if name in DENSE:
        X, X_t = X.toarray() / DENSE[name], X_t.toarray() / DENSE[name]
    if name == "shuttle":
        X, X_t = map(MinMaxScaler((-1, 1)).fit(X).transform, (X, X_t))
    return X, y, X_t, y_t


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


def worded(name: str) -> str:
    """Return what a data set is, in words."""
    return WORDS.get(name, Path(name).name)

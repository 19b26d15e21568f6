"""Data, workers and the objective, for all scripts of this folder."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import harness
from datasets import CACHE, unpack
from datasets import load as load_set
from datasets import read as read_set
from harness import ONE_THREAD, save
from serving import read

# Cheap ones first; those with a number after the dash are one versus one.
BINARY = [
    "usps", "letter", "ijcnn1", "cover", "covtype-20k", "w8a", "a9a", "kdd99", "mnist",
    "imdb", "covtype-80k",
]  # fmt: skip
PAIRS = ["pendigits-10", "shuttle-7", "usps-10", "letter-26", "mnist-10"]
NAMES = [*PAIRS[:4], *BINARY[:7], "kdd99", "mnist", "mnist-10", "imdb", "covtype-80k"]
COSTS = [10.0, 1.0, 1000.0]
EPS = 1e-3
CAP = 60.0  # processor seconds of one fit, and what a failure counts as
QUERIES = 10_000  # rows of a test set
SMALL, LARGE = 200, 2000  # megabytes of cache: the usual one, and one for the rivals

_BLOCK = 4_000_000  # kernel values that the objective has in memory


# ---- data


def _images(name: str, scale: float):
    packed = np.load(unpack(f"{name}.npz"))
    X, y, Q, z = (packed[k] for k in ("X_train", "y_train", "X_test", "y_test"))
    return sparse.csr_matrix(X * scale), y, sparse.csr_matrix(Q * scale), z


def _divided(X, y, rows: int, seed: int | None = 0):
    """The first `rows` of a permutation to train on, the last 10,000 to test on."""
    order = np.arange(len(y))
    if seed is not None:
        order = np.random.default_rng(seed).permutation(len(y))
    some, rest = order[:rows], order[-QUERIES:]
    return X[some], y[some], X[rest], y[rest]


def _covtype(rows: int):
    X, y = read_set("covtype/covtype.binary.scale.subset92962")
    return _divided(X, y == 1, rows)


def _load(name: str):
    """X, y and the same of a test set."""
    base, _, classes = name.partition("-")
    if base == "covtype":
        return _covtype(int(classes.rstrip("k")) * 1000)
    if base in ("usps", "mnist"):
        parts = _images(f"{base}/{base}", 0.001 if base == "usps" else 1 / 255)
    elif base == "letter":
        parts = read_set("letter/letter.scale", "letter/letter.scale.t")
    elif base in ("pendigits", "shuttle"):
        parts = read_set(f"{base}/{base}", f"{base}/{base}.t")
    elif base in ("a7a", "a9a", "w7a", "w8a"):
        folder = {"a": "adult", "w": "web"}[base[0]]
        parts = read_set(f"{folder}/{base}", f"{folder}/{base}.t")
    elif base == "ijcnn1":
        parts = _divided(*load_set(base), 35_000, None)
    elif base == "imdb":  # its own halves
        parts = _divided(*load_set(base), 25_000, None)
    else:
        X, y = load_set(base)
        parts = _divided(X, y, len(y) - 2 * QUERIES)
    X, y, Q, z = parts
    if name == "letter":
        y, z = y > 13, z > 13
    elif name in ("usps", "mnist"):
        y, z = y % 2, z % 2
    return X, y, Q, z


def arrays(name: str) -> Path:
    """Folder of the data set's arrays, written once.

    Classes are numbers from 0 on. Rows are stored densely where half of them is not 0.
    """
    folder = CACHE / "kernel" / name
    if not (folder / "y.npy").exists():
        X, y, Q, z = _load(name)
        if sparse.issparse(X) and X.nnz >= 0.5 * X.shape[0] * X.shape[1]:
            X, Q = X.toarray(), Q.toarray()
        X, Q = X.astype(np.float64), Q[:QUERIES].astype(np.float64)
        classes, codes = np.unique(y, return_inverse=True)
        save(folder, Q, np.searchsorted(classes, z[:QUERIES]), "_test")
        np.save(folder / "gamma.npy", gamma_scale(X))
        save(folder, X, codes)
    return folder


def gamma_scale(X) -> float:
    """1/(d Var X), in NumPy."""
    mean = X.mean()
    square = X.multiply(X).mean() if sparse.issparse(X) else (X * X).mean()
    return 1.0 / (X.shape[1] * (square - mean * mean))


def load(name: str):
    """X, y and gamma."""
    folder = arrays(name)
    return *read(str(folder)), float(np.load(folder / "gamma.npy"))


# ---- the objective, from outside of every package


def objective(X, y, gamma: float, C: float, model: dict) -> tuple[float, float]:
    """Sum over the pairs of classes of P(w, b), kernel values in float64 by NumPy.

    With the best b for the coefficients, and with the b of the model. The model is in
    the layout of LIBSVM: a support vector of class a has its coefficient against class
    b in row b - 1 if a < b, in row b if b < a.
    """
    support, coef = model["support"], model["dual_coef"]
    classes = int(y.max()) + 1
    pairs = [(i, j) for i in range(classes) for j in range(i + 1, classes)]
    which = y[support]
    F = np.zeros((len(y), classes - 1))  # without b, of a row against every other class
    S, norms_S = X[support], _squares(X[support])
    step = max(1, _BLOCK // max(1, len(support)))
    for first in range(0, len(y), step):
        rows = slice(first, min(first + step, len(y)))
        K = X[rows] @ S.T
        K = K.toarray() if sparse.issparse(K) else K
        K *= 2.0
        K -= _squares(X[rows])[:, None]
        K -= norms_S
        np.minimum(K, 0.0, out=K)
        K *= gamma
        np.exp(K, out=K)
        sums = [K[:, which == k] @ coef[:, which == k].T for k in range(classes)]
        own = y[rows]
        for i, j in pairs:
            f = sums[i][:, j - 1] + sums[j][:, i]
            F[rows, j - 1] = np.where(own == i, f, F[rows, j - 1])
            F[rows, i] = np.where(own == j, f, F[rows, i])
    best = given = 0.0
    for (i, j), b in zip(pairs, model["intercept"], strict=True):
        sign = -1.0 if classes == 2 else 1.0  # of two the second class is positive
        f = np.concatenate([F[y == i, j - 1], F[y == j, i]])
        label = np.repeat([sign, -sign], [(y == i).sum(), (y == j).sum()])
        norm = sum(float(coef[slot, which == k] @ F[support[which == k], slot])
                   for k, slot in ((i, j - 1), (j, i)))  # fmt: skip
        # The loss is piecewise linear in b: its slope, from minus the number of
        # positive rows, rises by one where a row begins or ends to cost.
        positive = int((label > 0).sum())
        least = np.partition(label - f, positive - 1)[positive - 1]
        best += 0.5 * norm + C * float(np.maximum(0.0, 1.0 - label * (f + least)).sum())
        given += 0.5 * norm + C * float(np.maximum(0.0, 1.0 - label * (f + b)).sum())
    return best, given


def meetings(y, model: dict) -> int:
    """Rows times support vectors, summed over the pairs of classes."""
    used = model["dual_coef"] != 0
    which, sizes = y[model["support"]], np.bincount(y)
    pairs = 0
    for i in range(len(sizes)):
        for j in range(i + 1, len(sizes)):
            vectors = used[j - 1, which == i].sum() + used[i, which == j].sum()
            pairs += int(vectors) * int(sizes[i] + sizes[j])
    return pairs


def _squares(X):
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


# ---- processes


class Worker(harness.Worker):
    """Worker whose heap is touched before, so that no first touch is measured."""

    script = Path(__file__).with_name("worker.py")

    def __init__(self, rival: str, data: Path, touch: int = 0) -> None:
        super().__init__(rival, data)
        self.environment = ONE_THREAD | {"DUALGAP_TOUCH": str(touch)}
        if touch:
            self.environment |= {
                "MALLOC_MMAP_MAX_": "0",
                "MALLOC_TRIM_THRESHOLD_": "1000000000000",
            }


def touched(name: str, cache: int) -> int:
    """Megabytes of heap to touch: a few copies of the data, and the cache."""
    folder = arrays(name)
    parts = ("X", "data", "indices")
    files = [folder / f"{part}.npy" for part in parts]
    size = sum(f.stat().st_size for f in files if f.exists())
    n, d = read_shape(folder)
    dense = 8 * n * d if n * d <= 1e8 else 0
    return int(3 * max(size, dense) / 1e6) + cache + 300


def read_shape(folder: Path) -> tuple[int, int]:
    if (folder / "shape.npy").exists():
        n, d = np.load(folder / "shape.npy")
        return int(n), int(d)
    return np.load(folder / "X.npy", mmap_mode="r").shape

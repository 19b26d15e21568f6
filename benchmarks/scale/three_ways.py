"""Fits in memory, from a disk and on a cluster: one optimum, proved from outside.

python benchmarks/scale/three_ways.py a9a covtype rcv1-like

Each set is fitted by `LinearSVC` in memory, by `LinearSVC` from a row store through a
buffer of a fifth of it, and by `distributed.LinearSVC` from two stores with half of the
rows each, on a LocalCluster of two processes: sparse and dense, plain, and with sample
weights (some 0) and class weights together. P and D of every model are then computed
from all rows and duals by one pass in NumPy that shares nothing with the package. The
dense rcv1-like is one of 20,000 rows and 1000 columns: the whole would take 300 GB.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import datasets

from dualgap import LinearSVC
from dualgap.data import RowStore, convert
from dualgap.papers.data import rcv1_like

#: Sample weights are drawn from these.
WEIGHTS = np.array([0.0, 0.5, 1.0, 3.0])
CLASS_WEIGHT = {-1: 0.7, 1: 1.6}


class Found(NamedTuple):
    """A fit: what its certificate says, and what the pass from outside finds."""

    way: str
    epochs: int
    seconds: float
    certified: bool
    said: tuple[float, float]
    primal: float
    dual: float

    @property
    def gap(self):
        return (self.primal - self.dual) / self.dual


def outside(X, y, weight, C, model, duals):
    """P and D of the hinge loss with a penalised bias, in float64.

    `duals` are y_i alpha_i of all rows.
    """
    cost = np.full(len(y), float(C))
    if model.class_weight is not None:
        cost *= np.where(y > 0, model.class_weight[1], model.class_weight[-1])
    if weight is not None:
        cost *= weight
    w, bias = model.coef_[0], model.intercept_[0]
    loss = np.maximum(0.0, 1.0 - y * (X @ w + bias))
    primal = 0.5 * (w @ w + bias * bias) + cost @ loss
    alpha = y * duals
    rounding = 1e-12 * cost
    if (alpha < -rounding).any() or (alpha > cost + rounding).any():
        raise AssertionError("a dual is out of its box")
    v, total = X.T @ duals, duals.sum()
    return float(primal), float(alpha.sum() - 0.5 * (v @ v + total * total))


def compare(X, y, weight, C, client, folder, tol=1e-3, class_weight=None):
    """The three fits of one problem."""
    options = {"C": C, "loss": "hinge", "tol": tol, "class_weight": class_weight}
    n = len(y)
    batch = (X, y) if weight is None else (X, y, weight)
    kind = "csr" if sparse.issparse(X) else "dense"
    plain = {"dtype": X.dtype, "format": kind, "zero_based": True}
    store = convert([batch], f"{folder}/whole", **plain)
    size = store.stored * store.entry_bytes + 8 * n
    store = RowStore.open(store.path, buffer=size // 5)
    assert len(store.pages) > 1
    halves = []
    for k in range(2):
        part = tuple(column[k * n // 2 : (k + 1) * n // 2] for column in batch)
        path = f"{folder}/half-{k}"
        halves.append(convert([part], path, n_features=X.shape[1], **plain))

    found = []

    def fit(way, model, given, rows):
        begun = time.perf_counter()
        model.fit(*given)
        seconds = time.perf_counter() - begun
        duals = model.dual_coef_[0]
        if len(duals) < n:
            duals = np.zeros(n)
            duals[model.support_] = model.dual_coef_[0]
        X, y, weight = rows
        c = model.certificate_
        P, D = outside(X, np.asarray(y, float), weight, C, model, duals)
        found.append(
            Found(way, c.epochs, seconds, c.certified, (c.primal, c.dual), P, D)
        )

    fit("memory", LinearSVC(**options), (X, y, weight), (X, y, weight))
    fit("streamed", LinearSVC(**options), (store,), of_stores([store]))
    if client is not None:
        from dualgap.distributed import LinearSVC as Distributed

        model = Distributed(**options, keep_duals=True, client=client)
        fit("distributed", model, (halves,), of_stores(halves))
    return found


def of_stores(stores):
    X = [store.matrix() for store in stores]
    weight = [store.sample_weight for store in stores]
    X = sparse.vstack(X, "csr") if sparse.issparse(X[0]) else np.concatenate(X)
    y = np.concatenate([store.y for store in stores])
    return X, y, None if weight[0] is None else np.concatenate(weight)


def spread(found):
    """Return the spread of the objectives, relative to the best proved bound."""
    primals = [one.primal for one in found]
    return (max(primals) - min(primals)) / max(one.dual for one in found)


def drawn_weights(n):
    return np.random.default_rng(1).choice(WEIGHTS, n)


def load(name, kind):
    if name == "rcv1-like" and kind == "dense":
        X, y = rcv1_like(20_000, 1000)
    else:
        X, y = datasets.load(name)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    return (X.toarray() if kind == "dense" else X), y


def main():
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=["a9a", "covtype", "rcv1-like"])
    parser.add_argument("--C", type=float, default=0.1)
    parser.add_argument("--tol", type=float, default=1e-3)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"C = {given.C:g}, tol = {given.tol:g}\n")
    print("| data | | P, D by the outside pass: memory | streamed | distributed | "
          "spread of P | passes or rounds |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0"
    )
    with cluster, Client(cluster) as client:
        for name in given.data:
            for kind in ("sparse", "dense"):
                X, y = load(name, kind)
                for weighted in (False, True):
                    weight = drawn_weights(len(y)) if weighted else None
                    classes = CLASS_WEIGHT if weighted else None
                    with tempfile.TemporaryDirectory() as folder:
                        found = compare(
                            X, y, weight, given.C, client, folder, given.tol, classes
                        )
                    report(name, kind, weighted, found, given.tol)


def report(name, kind, weighted, found, tol):
    cells = []
    for one in found:
        for said, seen in zip(one.said, (one.primal, one.dual), strict=True):
            assert abs(said - seen) <= 1e-9 * abs(seen)
        assert one.certified
        assert one.gap <= tol * (1 + 1e-9)
        cells.append(f"{one.primal:.8g}, {one.dual:.8g}: {one.gap:.1e}")
    assert max(f.dual for f in found) <= min(f.primal for f in found)
    assert spread(found) <= tol
    words = f"{kind}, {'weights' if weighted else 'plain'}"
    epochs = ", ".join(str(one.epochs) for one in found)
    line = [name, words, *cells, f"{spread(found):.1e}", epochs]
    print("|", " | ".join(line), "|", flush=True)


if __name__ == "__main__":
    main()

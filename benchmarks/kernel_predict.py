"""Prediction of kernel models against scikit-learn: the same support vectors.

    python benchmarks/kernel_predict.py [--rows 10000] [--queries 10000] [--rounds 3]

scikit-learn's SVC is fitted on the first rows of mnist (RBF, C = 10), and its support
vectors, coefficients and intercepts are put into a model of
dualgap. Both predict the same images in
turn, with OPENBLAS_NUM_THREADS=1: set it, or the script does so for itself.
scikit-learn has one thread; dualgap is timed with one, and with all processors. NumPy's
products of images and support vectors alone are timed beside them.
"""

from __future__ import annotations

import argparse
import os
import sys

if os.environ.get("OPENBLAS_NUM_THREADS") != "1":  # read when NumPy is loaded
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    os.execv(sys.executable, [sys.executable, *sys.argv])

import time
from functools import partial
from statistics import median

import numpy as np
import sklearn.svm
from datasets import unpack
from scipy import sparse

from dualgap import SVC
from dualgap.kernel import RBF


def ours(theirs, convert, n_jobs: int) -> SVC:
    """Our SVC with the model of scikit-learn's."""
    model = SVC(n_jobs=n_jobs)
    model.classes_, model.n_features_in_ = theirs.classes_, theirs.n_features_in_
    model.support_, model.n_support_ = theirs.support_, theirs.n_support_
    model.support_vectors_ = convert(theirs.support_vectors_)
    model.dual_coef_, model.intercept_ = theirs.dual_coef_, theirs.intercept_
    model._fitted_kernel = RBF(gamma=theirs._gamma)
    return model


def main() -> None:
    """Print one line per kind of input: seconds, and times scikit-learn."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    packed = np.load(unpack("mnist/mnist.npz"))
    X = packed["X_train"][: args.rows].reshape(-1, 784) / 255.0
    new = packed["X_test"][: args.queries].reshape(-1, 784) / 255.0
    theirs = sklearn.svm.SVC(C=10.0, cache_size=500)
    theirs.fit(X, packed["y_train"][: args.rows])
    print(f"{len(theirs.support_)} support vectors, {len(new)} images", flush=True)

    kinds = {
        "float64": np.asarray,
        "float32": lambda A: A.astype(np.float32),
        "float64, CSR": sparse.csr_matrix,
    }
    runs = {"scikit-learn": (theirs.predict, new)}
    for name, convert in kinds.items():
        for n_jobs in sorted({1, os.cpu_count() or 1}):
            label = f"{name}, {n_jobs} thread{'s' * (n_jobs > 1)}"
            runs[label] = (ours(theirs, convert, n_jobs).predict, convert(new))
    for name in ("float64", "float32"):
        columns = theirs.support_vectors_.T.astype(name)
        product = partial(np.dot, b=columns)
        runs[f"products in {name}"] = (product, new.astype(name))
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    labels = {}
    for _ in range(args.rounds):
        for name, (predict, images) in runs.items():
            begun = time.perf_counter()
            labels[name] = predict(images)
            seconds[name].append(time.perf_counter() - begun)
    for name, times in seconds.items():
        ratios = [
            theirs / own
            for theirs, own in zip(seconds["scikit-learn"], times, strict=True)
        ]
        line = (f"{name:<24}{median(times):7.2f} s  {median(ratios):5.1f} times "
                f"({min(ratios):.1f} to {max(ratios):.1f})")  # fmt: skip
        if labels[name].ndim == 1:
            same = np.mean(labels[name] == labels["scikit-learn"])
            line += f"  same labels {100 * same:.2f} %"
        print(line)


if __name__ == "__main__":
    main()

"""dualgap.distributed beside what else trains a linear SVM on Dask and on Spark.

python benchmarks/scale/peers.py a9a covtype imdb --C 0.001 0.1

All solve min 1/2 ||w||^2 + C sum of hinge losses, without a bias, on the same two
workers of this machine. P* is bracketed by one machine alone. Cluster and JVM are
started, data loaded and cached, and everybody has made a fit before the clock runs.
Everything runs once per repetition, one after the other. A line of a rival: how far its
objective is from P*, measured from outside in float64; dualgap's setting of the loosest
tolerance that reaches at least that; and seconds of the rival over dualgap's within a
repetition, the median and the range. The rivals run at several settings, for their
users cannot know which of them is near enough.

Spark: pyspark.ml.classification.LinearSVC (hinge, OWL-QN), regParam = 1/(nC), without
standardisation. Dask-ML has no linear SVM; nearest is its Incremental wrapper around
scikit-learn's SGDClassifier(loss="hinge", alpha=1/(nC)), block after block. What is not
installed is said to be so.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import datasets

from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD
from dualgap.training import solve

WORKERS = 2
TOLERANCES = 3e-1, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5
PASSES = 1, 3, 10
ITERATIONS = 10, 30, 100


def ours(client, X, y, C):
    """Prepare the data and return (setting, fit) pairs; a fit returns w."""
    from dualgap.distributed import LinearSVC

    parts = np.array_split(np.arange(len(y)), WORKERS)
    pieces = [[client.scatter(X[rows]), client.scatter(y[rows])] for rows in parts]

    def fit(tol):
        model = LinearSVC(
            C, loss="hinge", fit_intercept=False, client=client, tol=tol
        ).fit(pieces)
        return model.coef_[0]

    return [(f"tol={tol:g}", lambda tol=tol: fit(tol)) for tol in TOLERANCES]


def dask_ml(client, X, y, C):
    import dask.array as da
    from dask_ml.wrappers import Incremental
    from sklearn.linear_model import SGDClassifier

    step = -(-len(y) // WORKERS)
    if sparse.issparse(X) and X.nnz < 0.1 * X.shape[0] * X.shape[1]:
        parts = [
            da.from_delayed(client.scatter(X[k : k + step]), (len(y[k : k + step]),
                            X.shape[1]), X.dtype, meta=sparse.csr_matrix((0, 0)))
            for k in range(0, len(y), step)
        ]  # fmt: skip
        rows = da.concatenate(parts)
    else:
        rows = client.persist(da.from_array(np.asarray(X.todense()), (step, -1)))
    labels = client.persist(da.from_array(y, step))

    def fit(passes):
        inner = SGDClassifier(
            loss="hinge", alpha=1 / (len(y) * C), fit_intercept=False, random_state=0
        )
        model = Incremental(inner, shuffle_blocks=False)
        for _ in range(passes):
            model.partial_fit(rows, labels, classes=[-1.0, 1.0])
        return model.estimator_.coef_[0]

    return [(f"{k} pass(es)", lambda k=k: fit(k)) for k in PASSES]


def spark(session, X, y, C):
    from pyspark.ml.classification import LinearSVC
    from pyspark.ml.linalg import Vectors

    X = X.tocsr()
    rows = [
        (float(label > 0), Vectors.sparse(X.shape[1], row.indices, row.data))
        for label, row in zip(y, X, strict=True)
    ]
    frame = session.createDataFrame(rows, ["label", "features"])
    frame = frame.repartition(WORKERS).cache()
    frame.count()

    def fit(most):
        model = LinearSVC(
            regParam=1 / (len(y) * C), maxIter=most, tol=1e-9, standardization=False,
            fitIntercept=False,
        ).fit(frame)  # fmt: skip
        return model.coefficients.toArray()

    return [(f"maxIter={most}", lambda most=most: fit(most)) for most in ITERATIONS]


def start_spark():
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    session = (
        SparkSession.builder.master(f"local[{WORKERS}]")
        .config("spark.driver.memory", "4g")
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    return session


def compare(entrants, problem, optimum, repeats):
    """Print the lines of one data set and one C."""
    settings = []
    for name, prepare in entrants.items():
        try:
            fits = prepare()
        except ImportError as error:
            print(f"| {name} | not installed: {error} | | | | |")
            continue
        fits[0][1]()  # what starts with the first fit
        settings += [(name, setting, fit) for setting, fit in fits]
    seconds = np.zeros((repeats, len(settings)))
    far = np.zeros(len(settings))
    for r in range(repeats):
        for k, (_, _, fit) in enumerate(settings):
            begun = time.perf_counter()
            w = fit()
            seconds[r, k] = time.perf_counter() - begun
            far[k] = problem.primal(np.ascontiguousarray(w, float)) / optimum - 1
    first = next(iter(entrants))
    mine = [k for k, line in enumerate(settings) if line[0] == first]
    for k, (name, setting, _) in enumerate(settings):
        line = f"| {name} | {setting} | {far[k]:.1e} | {np.median(seconds[:, k]):.2f} |"
        if k in mine:
            print(line, "| |", flush=True)
            continue
        enough = [j for j in mine if far[j] <= max(far[k], 1e-9)]
        if not enough:
            print(line, "none is as near | |", flush=True)
            continue
        j = min(enough, key=lambda j: np.median(seconds[:, j]))
        ratio = seconds[:, k] / seconds[:, j]
        print(line, f"{settings[j][1]}, {far[j]:.1e} | {np.median(ratio):.2g} "
              f"({ratio.min():.2g} to {ratio.max():.2g}) |", flush=True)  # fmt: skip


def main():
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--C", type=float, nargs="+", default=[0.1])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, help="the first ones, after shuffling")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    session = start_spark()
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1) as cluster,
        Client(cluster) as client,
    ):
        for name in given.data:
            X, y = datasets.load(name)
            order = np.random.default_rng(0).permutation(len(y))[: given.rows]
            X, y = X[order], y[order]
            for C in given.C:
                problem = Problem(X, y, C)
                alone = solve(problem, DCD(), tol=1e-6, max_iter=20_000).certificate
                print(
                    f"\n{name}, {len(y)} rows, C = {C:g}, P* = {alone.dual:.8g} "
                    f"(proved to {alone.relative_gap:.0e})\n"
                )
                print("| | setting | (P - P*)/P* | seconds | dualgap as near | "
                      "seconds, times dualgap |")  # fmt: skip
                print("|---|---|---|---|---|---|")
                entrants = {
                    "dualgap": lambda args=(client, X, y, C): ours(*args),
                    "Dask-ML, SGD": lambda args=(client, X, y, C): dask_ml(*args),
                }
                if session is not None:
                    args = session, X, y, C
                    entrants["Spark LinearSVC"] = lambda args=args: spark(*args)
                compare(entrants, problem, alone.dual, given.repeats)
            if session is not None:
                session.catalog.clearCache()
            else:
                print("| Spark | not installed | | | | |")


if __name__ == "__main__":
    main()

"""dualgap.distributed beside what else trains a linear SVM on Dask and on Spark.

python benchmarks/scale/peers.py a9a covtype

All solve min 1/2 ||w||^2 + C sum of hinge losses, without a bias, on the same two
workers of this machine. P* is bracketed by one machine alone. A line: the seconds of
one fit (cluster and JVM started, data loaded and cached before) and how far its
objective is from P*, measured from outside in float64. The rivals run at several
settings, for their users cannot know which of them is near enough.

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

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import datasets

from dualgap import DCD, Problem, solve

WORKERS = 2


def ours(client, X, y, C):
    from dualgap.distributed import LinearSVC

    parts = np.array_split(np.arange(len(y)), WORKERS)
    pieces = [[client.scatter(X[rows]), client.scatter(y[rows])] for rows in parts]
    LinearSVC(C, fit_intercept=False, client=client, max_rounds=1).fit(pieces)
    for tol in (1e-2, 1e-3):
        begun = time.perf_counter()
        model = LinearSVC(C, fit_intercept=False, client=client, tol=tol).fit(pieces)
        yield f"tol={tol:g}, {model.n_iter_} rounds", begun, model.coef_[0]


def dask_ml(client, X, y, C):
    import dask.array as da
    from dask_ml.wrappers import Incremental
    from sklearn.linear_model import SGDClassifier

    step = -(-len(y) // WORKERS)
    dense = client.persist(da.from_array(X.toarray(), (step, -1)))
    labels = client.persist(da.from_array(y, step))
    for passes in (1, 10, 30):
        inner = SGDClassifier(
            loss="hinge", alpha=1 / (len(y) * C), fit_intercept=False, random_state=0
        )
        model = Incremental(inner, shuffle_blocks=False)
        begun = time.perf_counter()
        for _ in range(passes):
            model.partial_fit(dense, labels, classes=[-1.0, 1.0])
        yield f"{passes} passes", begun, model.estimator_.coef_[0]


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
    for most in (10, 30, 100):
        begun = time.perf_counter()
        model = LinearSVC(
            regParam=1 / (len(y) * C), maxIter=most, tol=1e-9, standardization=False,
            fitIntercept=False,
        ).fit(frame)  # fmt: skip
        yield f"maxIter={most}", begun, model.coefficients.toArray()


def report(name, fits, problem, optimum):
    try:
        for setting, begun, w in fits:
            seconds = time.perf_counter() - begun
            far = problem.primal(np.ascontiguousarray(w, float)) / optimum - 1
            print(f"| {name} | {setting} | {seconds:.2f} | {far:.1e} |", flush=True)
    except ImportError as error:
        print(f"| {name} | not installed: {error} | | |")


def main():
    from distributed import Client, LocalCluster

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="+")
    parser.add_argument("--C", type=float, default=0.1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    try:
        from pyspark.sql import SparkSession

        session = (
            SparkSession.builder.master(f"local[{WORKERS}]")
            .config("spark.driver.memory", "4g")
            .config("spark.ui.enabled", "false")
            .getOrCreate()
        )
        session.sparkContext.setLogLevel("ERROR")
    except ImportError:
        session = None
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1) as cluster,
        Client(cluster) as client,
    ):
        for name in given.data:
            X, y = datasets.load(name)
            order = np.random.default_rng(0).permutation(len(y))
            X, y = X[order], y[order]
            problem = Problem(X, y, given.C)
            alone = solve(problem, DCD(), tol=1e-6).certificate
            print(f"\n{name}, C = {given.C:g}, P* = {alone.dual:.8g} "
                  f"(proved to {alone.relative_gap:.0e})")  # fmt: skip
            print("| | setting | seconds | (P - P*)/P* |")
            print("|---|---|---|---|")
            args = X, y, given.C
            report("dualgap.distributed", ours(client, *args), problem, alone.dual)
            report("Dask-ML, SGD", dask_ml(client, *args), problem, alone.dual)
            if session is None:
                print("| Spark | not installed | | |")
            else:
                report("Spark LinearSVC", spark(session, *args), problem, alone.dual)


if __name__ == "__main__":
    main()

"""Kernel fits of the block solver beside scikit-learn's SVC, in one run.

    python benchmarks/kernel/against_sklearn.py [DATA ...] [--C 10] [--tol 1e-3]

Binary problems, RBF kernel with gamma="scale", one thread, the same cache. CPU seconds
of `fit`, float32 input for the block solver and float64 for LIBSVM, which converts. For
both the dual objective and the largest violation of the optimality conditions (the
quantity that LIBSVM's tolerance is about) are recomputed outside in float64. The block
solver is run twice: to a relative duality gap of --tol, and to the gap --tight, which
makes its violation as small as LIBSVM's on most sets.

Run it with a heap that is not given back, or the first touch of memory is measured:

    MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000 python ...
"""

from __future__ import annotations

import argparse
import io
import json
import lzma
import os
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from dualgap.kernel import RBF, BlockSolver, KernelProblem
from dualgap.training import solve

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("DUALGAP_DATA") or ROOT.parent / "shared" / "data")


def svmlight(name: str) -> tuple[Any, Any]:
    with lzma.open(FOLDER / f"{name}.xz") as file:
        return load_svmlight_file(file)


def arrays(name: str) -> Any:
    with lzma.open(FOLDER / f"{name}.xz") as file:
        return np.load(io.BytesIO(file.read()))


def load(name: str) -> tuple[Any, Any]:
    """Rows and labels of -1 and 1."""
    if name == "letter":
        X, y = svmlight("letter/letter.scale")
        return X.toarray(), np.where(y <= 13, 1, -1)
    if name == "usps":
        data = arrays("usps/usps.npz")
        keys = [k for k in data.files if "test" not in k.lower()]
        X = next(data[k] for k in keys if data[k].ndim == 2)
        y = next(data[k] for k in keys if data[k].ndim == 1)
        return X * 0.001, np.where(y % 2 == 1, 1, -1)
    if name == "mnist":
        data = arrays("mnist/mnist.npz")
        keys = [k for k in data.files if "test" not in k.lower()]
        X = next(data[k] for k in keys if data[k].ndim >= 2)
        y = next(data[k] for k in keys if data[k].ndim == 1)
        return X.reshape(len(X), -1) / 255.0, np.where(y % 2 == 1, 1, -1)
    if name == "covtype20k":
        X, y = svmlight("covtype/covtype.binary.scale.subset92962")
        some = np.random.default_rng(0).permutation(len(y))[:20_000]
        return X[some].toarray(), np.where(y[some] == 1, 1, -1)
    if name == "shuttle":
        X, y = svmlight("shuttle/shuttle")
        return X.toarray(), np.where(y == 1, 1, -1)
    X, y = svmlight({"a9a": "adult/a9a", "w8a": "web/w8a"}.get(name, f"{name}/{name}"))
    dense = X.nnz > 0.25 * X.shape[0] * X.shape[1]
    return (X.toarray() if dense else X), np.where(y > 0, 1, -1)


def judged(problem: KernelProblem, alpha: Any) -> tuple[float, float]:
    """Dual objective and largest violation, in float64."""
    y = problem.y
    F = problem.scores(alpha)
    v, c = y - F, alpha * y
    upper = np.where(y > 0, problem.cost, 0.0)
    lower = np.where(y > 0, 0.0, -problem.cost)
    violation = v[c < upper].max() - v[c > lower].min()
    return float(alpha.sum() - 0.5 * c @ F), float(violation)


def ours(X: Any, y: Any, options: Any, tol: float) -> dict[str, float]:
    X = X.astype(np.float32)
    begun = time.process_time()
    problem = KernelProblem(
        X, y, options.C, kernel=RBF("scale"), loss="hinge",
        penalize_intercept=False, cache_size=options.cache,
    )  # fmt: skip
    solution = solve(problem, BlockSolver(), tol=tol)
    seconds = time.process_time() - begun
    dual, violation = judged(problem, solution.alpha)
    return {
        "seconds": seconds, "dual": dual, "violation": violation,
        "gap": solution.certificate.relative_gap,
        "certified": solution.certificate.certified,
        "vectors": int((solution.alpha > 0).sum()),
        "sets": solution.certificate.epochs,
    }  # fmt: skip


def libsvm(X: Any, y: Any, options: Any) -> dict[str, float]:
    X = X.astype(np.float64)
    begun = time.process_time()
    model = SVC(C=options.C, tol=options.tol, cache_size=options.cache).fit(X, y)
    seconds = time.process_time() - begun
    problem = KernelProblem(
        X, y, options.C, kernel=RBF(model._gamma), loss="hinge",
        penalize_intercept=False,
    )  # fmt: skip
    BlockSolver().start(problem, _random(), None)  # a fast product
    alpha = np.zeros(X.shape[0])
    alpha[model.support_] = np.abs(
        model.dual_coef_[0].toarray() if sparse.issparse(X) else model.dual_coef_
    ).ravel()
    dual, violation = judged(problem, alpha)
    return {
        "seconds": seconds, "dual": dual, "violation": violation,
        "vectors": len(model.support_),
    }  # fmt: skip


def _random() -> Any:
    from dualgap import core

    return core.Random(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "data", nargs="*", default=["ijcnn1", "letter", "usps", "a9a", "w8a"]
    )
    parser.add_argument("--C", type=float, default=10.0)
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--tight", type=float, default=1e-5)
    parser.add_argument("--cache", type=float, default=200.0)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--no-rival", action="store_true")
    parser.add_argument("--json", type=Path)
    parser.add_argument(
        "--touch", type=int, default=2500, help="megabytes of heap touched before"
    )
    options = parser.parse_args()
    np.ones(options.touch * 125_000).sum()
    found: dict[str, Any] = {}
    for name in options.data:
        X, y = load(name)
        kind = "sparse" if sparse.issparse(X) else "dense"
        print(f"{name} {X.shape[0]} x {X.shape[1]} {kind}", flush=True)
        runs: dict[str, list[dict[str, float]]] = {}
        for _ in range(options.repeat):
            for tol in (options.tol, options.tight):
                runs.setdefault(f"block {tol:g}", []).append(ours(X, y, options, tol))
        if not options.no_rival:
            runs["LIBSVM"] = [libsvm(X, y, options)]
        for method, results in runs.items():
            seconds = sorted(r["seconds"] for r in results)
            r = results[0]
            print(
                f"  {method:12} {seconds[len(seconds) // 2]:8.3f} s "
                f"({seconds[0]:.3f} - {seconds[-1]:.3f})  dual {r['dual']:.8g}  "
                f"violation {r['violation']:.1e}  gap {r.get('gap', np.nan):.1e}  "
                f"{r['vectors']} SV  {r.get('sets', 0)} sets",
                flush=True,
            )
        found[name] = runs
    if options.json:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()

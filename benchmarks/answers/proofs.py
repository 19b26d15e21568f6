"""Sizes of proof files, and what `dualgap-check` takes for them.

    python benchmarks/answers/proofs.py [--rows N]

Prints processor seconds of the checker, run as a lone file, with and without the data.
The drawn sets have 136 entries of float32 in each of N rows (default 50,000): all of
136 columns, or 136 drawn of 5,000. All models are certified to 1e-4. Then it prints
the seconds without the data for kernels with C = 1, over the first rows of a set.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import dualgap_check
from dualgap import SVC, LinearSVC
from dualgap.data import load_svmlight
from dualgap.models import write_proof

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from datasets import load


def drawn(n: int, width: int) -> tuple[Any, Any]:
    """Rows of 136 normal numbers in float32, with noisy labels."""
    rng = np.random.default_rng(0)
    share = width // 136  # of columns for each entry
    columns = share * np.arange(136) + rng.integers(0, share, (n, 136))
    values = rng.standard_normal(n * 136).astype(np.float32).astype(float)
    ends = np.arange(0, n * 136 + 1, 136)
    X = sparse.csr_matrix((values, columns.ravel(), ends), shape=(n, width))
    f = X @ rng.standard_normal(width) + 8 * rng.standard_normal(n)
    return X, np.where(f > 0, 1, -1)


def write(path: Path, X: Any, y: Any) -> None:
    """Write svmlight text in which every number keeps all of its digits."""
    X = sparse.csr_matrix(X)
    with open(path, "w") as file:
        for i in range(X.shape[0]):
            row = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True)
            words = " ".join(f"{k + 1}:{value!r}" for k, value in pairs)
            file.write(f"{y[i]:g} {words}\n")


def seconds(*arguments: Path) -> float:
    """Processor seconds of a check, which must succeed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-I", "-S", dualgap_check.__file__, *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    n = parser.parse_args().rows
    sets = {
        "a9a": lambda: load("a9a"),
        "ijcnn1": lambda: load("ijcnn1"),
        "drawn, all of 136 columns": lambda: drawn(n, 136),
        "drawn, 136 of 5,000 columns": lambda: drawn(n, 5000),
    }
    print("| data | rows | entries | MB | check | check with DATA |")
    print("|---|---|---|---|---|---|")
    for name, make in sets.items():
        with tempfile.TemporaryDirectory() as folder:
            data, proof = Path(folder, "data"), Path(folder, "proof")
            write(data, *make())
            X, y = load_svmlight(str(data))
            model = LinearSVC(C=0.1, loss="hinge", tol=1e-4).fit(X, y)
            write_proof(model, X, y, proof, data=data)
            size = os.path.getsize(proof) / 1e6
            alone, both = seconds(proof), seconds(proof, data)
            print(
                f"| {name} | {X.shape[0]:,} | {X.nnz:,} | {size:.1f} | {alone:.1f} | "
                f"{both:.1f} |",
                flush=True,
            )
    kernels()


def kernels() -> None:
    """Print what proofs of kernel models take."""
    print(
        "| data, kernel | rows | support vectors | columns | MB | check "
        "| microseconds a value |"
    )
    print("|---|---|---|---|---|---|---|")
    rows = 2000
    X, y = load("ijcnn1")
    X, y = X[:rows], y[:rows]
    for kernel, title in (("rbf", "RBF"), ("poly", "polynomial of degree 3")):
        model = SVC(kernel=kernel, tol=1e-4).fit(X, y)
        with tempfile.TemporaryDirectory() as folder:
            proof = Path(folder, "proof")
            write_proof(model, X, y, proof)
            size, used = os.path.getsize(proof) / 1e6, seconds(proof)
        support = len(model.support_)
        print(
            f"| ijcnn1, {title} | {rows:,} | {support:,} | {X.shape[1]} | {size:.1f} "
            f"| {used:.1f} | {1e6 * used / (rows * support):.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

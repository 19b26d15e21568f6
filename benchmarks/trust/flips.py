"""Flip every single bit of small models, checkpoints and stores; who notices?

Models and checkpoints are loaded; stores are trained on.

    python benchmarks/trust/flips.py

One line per file: its bytes, the flips, how many were refused, and how many were
harmless, for what was read is the same to the last bit (the case of an exponent or of
a hexadecimal digit in JSON). Fails if any other was read.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy import sparse

from dualgap import SVC, LinearSVC, save_model
from dualgap.data import RowStore, convert
from dualgap.data import model_file as model_file
from dualgap.data.description import HEADER
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import DCD
from dualgap.training import solve
from dualgap.training.checkpoint import FORMAT as CHECKPOINT


def rows(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1, -1)


def write_model(path):
    save_model(LinearSVC(C=0.5).fit(*rows(12)), path)


def write_kernel_model(path):
    save_model(SVC(kernel="linear", C=0.5).fit(*rows(12)), path)


def write_checkpoint(path):
    X, y = rows(20)
    solve(Problem(X, y, 1.0), DCD(), checkpoint=path, checkpoint_every=1e-9)


def read_tensors(format):
    def read(path):
        record, tensors = model_file.read(str(path), format)
        return record, {name: array.tobytes() for name, array in tensors.items()}

    return read


def read_store(path):
    """Models trained on the store, held in memory and mapped. `verify` has no part."""
    store = RowStore.open(path.parent)
    fits = [
        LinearSVC(C=0.5).fit(store),
        LinearSVC(C=0.5).fit(store.matrix(), store.y, store.sample_weight),
    ]
    return [(fit.coef_.tobytes(), fit.intercept_.tobytes()) for fit in fits]


FILES = {
    "LinearSVC": (write_model, read_tensors(model_file.FORMAT)),
    "SVC": (write_kernel_model, read_tensors(model_file.FORMAT)),
    "checkpoint": (write_checkpoint, read_tensors(CHECKPOINT)),
}


def write_store(folder, dense):
    X, y = rows(7)
    X = X if dense else sparse.csr_matrix(X * (np.abs(X) > 0.5))
    return sorted(Path(convert([(X, y, np.arange(7.0))], folder).path).iterdir())


def places(path):
    """Bytes of a file, of the blanks in the header of an array only some."""
    size = path.stat().st_size
    return [
        at
        for at in range(size)
        if path.suffix != ".npy" or not 128 <= at < HEADER or at % 500 == 0
    ]


def flip(path, read, bits=8):
    """Bytes, flips, refusals and harmless flips of a file; all bits, or some a byte."""
    content, whole = path.read_bytes(), read(path)
    damaged, flips, harmless = bytearray(content), 0, 0
    for at in places(path):
        for bit in range(at % (8 // bits), 8, 8 // bits):
            damaged[at] ^= 1 << bit
            path.write_bytes(damaged)
            damaged[at] ^= 1 << bit
            flips += 1
            try:
                found = read(path)
            except ValueError:
                continue
            if found != whole:
                raise AssertionError(f"{path.name}: bit {bit} of byte {at} unnoticed")
            harmless += 1
    path.write_bytes(content)
    return len(places(path)), flips, flips - harmless, harmless


def main():
    print("| file | bytes | flips | refused | harmless |")
    print("|---|---|---|---|---|", flush=True)

    def line(name, counts):
        print(f"| {name} |", " | ".join(map(str, counts)), "|", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        for name, (write, read) in FILES.items():
            path = Path(folder) / name
            write(path)
            line(name, flip(path, read))
        for dense in (True, False):
            kind = "dense" if dense else "sparse"
            for path in write_store(Path(folder) / kind, dense):
                line(f"{kind} store, {path.name}", flip(path, read_store))


if __name__ == "__main__":
    sys.exit(main())

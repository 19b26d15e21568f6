"""kill -9 at random moments of a conversion and of a fit with checkpoints.

    python benchmarks/scale/kill.py --times 50 --folder /path/with/space

Half of the kills hit `convert`, half `LinearSVC(checkpoint=...).fit(store)`, started
again and again: what has ended begins anew, until the kills are used up. After every
kill it looks at what is there: no store under the target's name unless it is whole
(`verify`), no checkpoint unless it can be read. At the end of each round the store has
the checksum, and the model the bits, of runs that were never killed.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

CONVERT = """
import sys
from dualgap.io import convert
convert(sys.argv[1], sys.argv[2], memory=2**21, n_jobs=2)
"""
FIT = """
import sys, warnings
import numpy as np
from dualgap import LinearSVC
from dualgap.io import RowStore
warnings.simplefilter("ignore")
store = RowStore.open(sys.argv[1], buffer=2**22)
model = LinearSVC(C=10.0, tol=1e-9, max_epochs=int(sys.argv[4]), random_state=0,
                  checkpoint=sys.argv[2], checkpoint_every=0.05).fit(store)
np.save(sys.argv[3] + ".part.npy", model.coef_)
import os
os.replace(sys.argv[3] + ".part.npy", sys.argv[3])
"""


def write_text(path: Path, rows: int, rng: np.random.Generator) -> None:
    """Svmlight text of Zipf-distributed columns and noisy labels."""
    d, length = 20_000, 40
    direction = rng.standard_normal(d)
    with open(path, "w") as file:
        for _ in range(rows):
            columns = np.unique((d ** rng.random(length)).astype(int)) % d
            values = np.round(rng.random(len(columns)), 4)
            score = values @ direction[columns] + rng.standard_normal()
            entries = " ".join(
                f"{j + 1}:{v}" for j, v in zip(columns, values, strict=True)
            )
            file.write(f"{1 if score > 0 else -1} {entries}\n")


def timed(command: list[str]) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - begun


def kill_sometimes(command: list[str], longest: float, rng: random.Random) -> bool:
    """Run; True: it was killed first, at a random moment."""
    process = subprocess.Popen(command)
    try:
        if process.wait(longest * rng.random()) != 0:
            raise SystemExit("failed without being killed")
        return False
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True


def check_store(path: Path, fingerprint: str | None) -> None:
    from dualgap.io import RowStore

    store = RowStore.open(path)
    store.verify()
    if fingerprint is not None and store.fingerprint != fingerprint:
        raise SystemExit(f"{path} differs from the store of a whole conversion")


def check_checkpoint(path: Path) -> bool:
    from dualgap.checkpoint import FORMAT
    from dualgap.io import model

    if path.exists():
        model.read(os.fspath(path), FORMAT)
    return path.exists()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    root = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        run(root, options, rng)
    finally:
        shutil.rmtree(root)


def run(root: Path, options: argparse.Namespace, rng: random.Random) -> None:
    from dualgap.io import RowStore

    text, whole, target = root / "text", root / "whole", root / "store"
    write_text(text, options.rows, np.random.default_rng(options.seed))
    python = [sys.executable, "-c"]

    def convert(to: Path) -> list[str]:
        return [*python, CONVERT, str(text), str(to)]

    def fit(name: str) -> list[str]:
        files = [str(root / f"{name}.checkpoint"), str(root / f"{name}.npy")]
        return [*python, FIT, str(whole), *files, str(options.epochs)]

    seconds = timed(convert(whole))
    fingerprint = RowStore.open(whole).fingerprint
    print(f"text of {text.stat().st_size / 1e6:.0f} MB, converted in {seconds:.1f} s")
    kills = rounds = 0
    while kills < options.times // 2:
        if kill_sometimes(convert(target), 1.1 * seconds, rng):
            kills += 1
            if target.exists():
                check_store(target, fingerprint)
                shutil.rmtree(target)
                shutil.rmtree(root / ".store.converting", ignore_errors=True)
        else:
            check_store(target, fingerprint)
            shutil.rmtree(target)
            rounds += 1
    subprocess.run(convert(target), check=True)
    check_store(target, fingerprint)
    print(f"convert: {kills} kills, {rounds + 1} stores ended, all equal and whole")

    seconds = timed(fit("whole"))
    model = np.load(root / "whole.npy")
    print(f"fit of {options.epochs} epochs in {seconds:.1f} s")
    kills, rounds, resumed = 0, 0, 0
    left = options.times - options.times // 2
    while kills < left:
        resumed += check_checkpoint(root / "killed.checkpoint")
        if kill_sometimes(fit("killed"), 1.1 * seconds, rng):
            kills += 1
        else:
            compare(root, model)
            rounds += 1
    subprocess.run(fit("killed"), check=True)
    compare(root, model)
    print(
        f"fit: {kills} kills, {resumed} starts from a checkpoint, {rounds + 1} models "
        "ended, all with the same bits"
    )


def compare(root: Path, model: np.ndarray) -> None:
    if not np.array_equal(np.load(root / "killed.npy"), model):
        raise SystemExit("a resumed fit differs from the whole one")
    for name in ("killed.npy", "killed.checkpoint"):
        (root / name).unlink()


if __name__ == "__main__":
    main()

"""kill -9 at random moments of a conversion and of a fit with checkpoints.

    python benchmarks/scale/kill.py --times 50 --folder /path/with/space
    python benchmarks/scale/kill.py --gb 20.2 --folder /path/with/45/GB

Half of the kills hit `convert`, half `LinearSVC(checkpoint=...).fit(store)`, started
again and again: what has ended starts over, until the kills are used up. After every
kill it looks at what is there: no store under the target's name unless it is whole
(`verify`), no checkpoint unless it can be read. At the end of each round the store has
the checksum, and the model the bits, of runs that were never killed.

With `--gb`, one store of the set of out_of_core.py is converted, killed at a few random
moments, and then one fit with a checkpoint every three seconds is killed again and
again until it has ended, all in an address space of a quarter of the store. Then the
fit runs unkilled, the store is verified and removed, and converted unkilled: there is
no room on a disk for two.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

CONVERT = """
import sys
from dualgap.data import convert
convert(sys.argv[1], sys.argv[2], memory=2**21, n_jobs=2)
"""
FIT = """
import sys, warnings
import numpy as np
from dualgap import LinearSVC
from dualgap.data import RowStore
warnings.simplefilter("ignore")
store = RowStore.open(sys.argv[1], buffer=2**22)
model = LinearSVC(C=10.0, loss="hinge", tol=1e-9, max_iter=int(sys.argv[4]),
                  checkpoint=sys.argv[2], checkpoint_every=0.05).fit(store)
np.save(sys.argv[3] + ".part.npy", model.coef_)
import os
os.replace(sys.argv[3] + ".part.npy", sys.argv[3])
"""


CONVERT_LARGE = """
import sys
sys.path.insert(0, sys.argv[3])
import out_of_core
from dualgap.data import convert
gb = float(sys.argv[2])
convert(out_of_core.batches(int(gb * 1e9 / 12)), sys.argv[1], memory=int(gb * 1e9 / 16),
        n_jobs=1)
"""
FIT_LARGE = """
import sys
import numpy as np
from dualgap import LinearSVC
from dualgap.data import RowStore
store = RowStore.open(sys.argv[1], buffer=int(float(sys.argv[2]) * 1e9 / 32))
model = LinearSVC(C=0.1, loss="hinge", tol=1e-3, checkpoint=sys.argv[3],
                  checkpoint_every=3.0).fit(store)
print(model.certificate_)
np.save(sys.argv[4] + ".part.npy", np.append(model.coef_, model.intercept_))
import os
os.replace(sys.argv[4] + ".part.npy", sys.argv[4])
"""
VERIFY = """
import sys
from dualgap.data import RowStore
RowStore.open(sys.argv[1]).verify()
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
    from dualgap.data import RowStore

    store = RowStore.open(path)
    store.verify()
    if fingerprint is not None and store.fingerprint != fingerprint:
        raise SystemExit(f"{path} differs from the store of a whole conversion")


def check_checkpoint(path: Path) -> bool:
    from dualgap.data import model_file
    from dualgap.training.checkpoint import FORMAT

    if path.exists():
        model_file.read(os.fspath(path), FORMAT)
    return path.exists()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None)
    parser.add_argument("--gb", type=float, help="GB of the store that is killed")
    parser.add_argument(
        "--between", type=float, nargs=2, default=(25.0, 15.0),
        help="mean seconds from start to kill, of convert and of fit",
    )  # fmt: skip
    parser.add_argument("--only", nargs="*", default=list(LARGE), choices=LARGE)
    parser.add_argument("--most", type=int, default=60, help="kills of each")
    parser.add_argument("--libraries", type=int, default=0, help="MB, added to a limit")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    if options.gb:
        for name in options.only:
            LARGE[name](options, rng)
        return
    root = Path(tempfile.mkdtemp(dir=options.folder))
    try:
        run(root, options, rng)
    finally:
        shutil.rmtree(root)


def run(root: Path, options: argparse.Namespace, rng: random.Random) -> None:
    from dualgap.data import RowStore

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


# ------------------------------------------------------------------ one large store


def limited(code: str, options: argparse.Namespace, *arguments: object) -> list[str]:
    """A command for some Python in an address space of a quarter of the store."""
    kilobytes = int((options.gb * 1e9 / 4 + options.libraries * 1e6) / 1024)
    shell = f'ulimit -v {kilobytes}; exec "$0" "$@"'
    return ["sh", "-c", shell, sys.executable, "-c", code, *map(str, arguments)]


def killed_until_it_ends(
    name: str,
    command: list[str],
    mean: float,
    rng: random.Random,
    look: Callable[[], str],
    target: Path,
    most: int,
) -> None:
    """Start, kill at a random moment and start again, until the target is there.

    What is not written down (a proof, a store) must end between two kills, and may not.
    Then the limit on kills ends the round.
    """
    begun, kills = time.perf_counter(), 0
    while not target.exists() and kills < most:
        if kill_sometimes(command, 2.0 * mean, rng):
            kills += 1
            seconds = time.perf_counter() - begun
            print(f"  {seconds:7.1f} s: killed, {look()}", flush=True)
    if not target.exists():
        subprocess.run(command, check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    print(
        f"{name}: {kills} kills, ended after {time.perf_counter() - begun:.0f} s, peak "
        f"resident of all processes so far {peak:.0f} MB",
        flush=True,
    )


def alone(name: str, command: list[str]) -> None:
    print(f"{name}, not killed: {timed(command):.0f} s", flush=True)


def large_convert(options: argparse.Namespace, rng: random.Random) -> None:
    """The conversion that is killed; leaves the store."""
    store = options.folder / "store"
    here, most = Path(__file__).parent, min(options.most, 5)
    command = limited(CONVERT_LARGE, options, store, options.gb, here)

    def look() -> str:
        return "whole" if store.exists() else "no store"

    killed_until_it_ends("convert", command, options.between[0], rng, look, store, most)
    digest = json.loads((store / "store.json").read_text())["sha256"]
    (options.folder / "digest").write_text(digest)
    alone("verify", limited(VERIFY, options, store))
    size = sum(file.stat().st_size for file in store.iterdir())
    print(f"a store of {size / 1e9:.2f} GB, SHA-256 {digest[:16]}...", flush=True)


def large_fit(options: argparse.Namespace, rng: random.Random) -> None:
    """The fit that is killed, and the one that is not."""

    def command(name: str) -> list[str]:
        files = (options.folder / f"{name}.checkpoint", options.folder / f"{name}.npy")
        return limited(FIT_LARGE, options, options.folder / "store", options.gb, *files)

    checkpoint = options.folder / "killed.checkpoint"

    def look() -> str:
        if not check_checkpoint(checkpoint):
            return "no checkpoint yet"
        age = time.time() - checkpoint.stat().st_mtime
        return f"a whole checkpoint, {age:.0f} s old"

    model, most = options.folder / "killed.npy", options.most
    killed_until_it_ends(
        "fit", command("killed"), options.between[1], rng, look, model, most
    )
    alone("fit", command("whole"))
    models = [np.load(options.folder / f"{name}.npy") for name in ("killed", "whole")]
    same = models[0].tobytes() == models[1].tobytes()
    print(f"the models have {'the same' if same else 'OTHER'} bits", flush=True)


def large_whole(options: argparse.Namespace, rng: random.Random) -> None:
    """Remove the store, convert without kills, and compare the checksums."""
    store = options.folder / "store"
    shutil.rmtree(store, ignore_errors=True)
    command = limited(CONVERT_LARGE, options, store, options.gb, Path(__file__).parent)
    alone("convert", command)
    digest = json.loads((store / "store.json").read_text())["sha256"]
    same = digest == (options.folder / "digest").read_text()
    print(f"the stores have {'the same' if same else 'OTHER'} bytes", flush=True)


LARGE = {"convert": large_convert, "fit": large_fit, "whole": large_whole}


if __name__ == "__main__":
    main()

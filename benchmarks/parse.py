"""Speed and memory of reading svmlight text, beside scikit-learn.

    python benchmarks/parse.py [FILE ...] [--megabytes 100] [--repeats 5] [--json FILE]

Without a file: a synthetic one of text-like rows (some 70 features each, values like
0.0273). Files packed with gz, bz2, xz or zst are unpacked first. Every reading is done
in a fresh process that has imported its reader and read a tiny file, with the file in
the page cache; the readers take turns, and each ratio is of one turn (median and
range over the repeats). All readers must give the same arrays, bit for bit but for
scikit-learn's wider indices.

Memory is the peak of resident memory over what was resident before, in units of the
arrays that dualgap returns; "less file" leaves out the pages of the mapped file.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import resident

READERS = ("scikit-learn", "dualgap, 1 thread", "dualgap, 2 threads")


def reader(name: str) -> Callable[[str], Any]:
    """Return the function that reads a path, imported and used once."""
    if name == "scikit-learn":
        from sklearn.datasets import load_svmlight_file as read
    else:
        from dualgap.data import load_svmlight

        def read(path: str) -> Any:
            return load_svmlight(path, n_jobs=READERS.index(name))

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tiny")
        path.write_bytes(b"1 1:1\n")
        read(str(path))
    return read


def read_once(name: str, path: str) -> dict[str, Any]:
    """Measure one reading in this process."""
    read = reader(name)
    size = Path(path).stat().st_size
    before = resident("VmRSS")
    begin, begin_cpu = time.perf_counter(), time.process_time()
    X, y = read(path)
    seconds = [time.perf_counter() - begin]
    cpu_seconds = time.process_time() - begin_cpu
    peak = resident("VmHWM")
    arrays = (X.data, X.indices, X.indptr, y)
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(array if array.dtype.kind == "f" else array.astype(np.int64))
    # One reading of a small file is over before a clock can tell.
    while sum(seconds) < 0.2 and len(seconds) < 50:
        begin = time.perf_counter()
        read(path)
        seconds.append(time.perf_counter() - begin)
    return {
        "seconds": statistics.median(seconds),
        "cpu_seconds": cpu_seconds,
        "file_bytes": size,
        "array_bytes": sum(a.nbytes for a in arrays),
        "peak_bytes": None if peak is None or before is None else peak - before,
        "digest": digest.hexdigest(),
    }


def synthetic(path: Path, megabytes: float) -> None:
    """Text-like rows; a block of 5 MB is repeated."""
    rng = np.random.default_rng(0)
    block: list[str] = []
    length = 0
    while length < min(5e6, megabytes * 1e6):
        n = rng.poisson(70)
        indices = np.unique((47_236 * rng.random(n) ** 3).astype(int)) + 1
        values = rng.lognormal(-3.3, 0.6, len(indices))
        features = (
            f"{i}:{v:.4g}"
            for i, v in zip(indices.tolist(), values.tolist(), strict=True)
        )
        block.append(" ".join([("-1", "+1")[rng.integers(2)], *features]) + "\n")
        length += len(block[-1])
    text = "".join(block).encode()
    with open(path, "wb") as file:
        for _ in range(max(1, round(megabytes * 1e6 / len(text)))):
            file.write(text)


def plain(path: Path, folder: Path) -> Path:
    """Return the file, unpacked into folder if need be."""
    if path.suffix not in (".gz", ".bz2", ".xz", ".zst"):
        return path
    from dualgap.data.svmlight import _read_text

    unpacked = folder / path.stem
    unpacked.write_bytes(_read_text(path)[0])
    return unpacked


def measure(path: Path, repeats: int) -> dict[str, Any]:
    """Ratios of one file."""
    path.read_bytes()  # into the page cache
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in READERS}
    for _ in range(repeats):
        for name in READERS:
            command = [sys.executable, __file__, "--read-once", name, str(path)]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
            runs[name].append(json.loads(output))
    digests = {run["digest"] for results in runs.values() for run in results}
    if len(digests) != 1:
        raise RuntimeError(f"the readers disagree on {path}")
    return {"file": path.name, "readers": runs}


def spread(values: list[float], digits: int) -> str:
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def report(result: dict[str, Any]) -> None:
    runs = result["readers"]
    first = runs[READERS[1]][0]
    size, arrays = first["file_bytes"], first["array_bytes"]
    print(
        f"{result['file']}: {size / 1e6:.1f} MB of text, arrays {arrays / 1e6:.1f} MB"
    )
    header = ("MB/s", "times sklearn", "by CPU time", "memory/arrays", "less file")
    print(f"  {'':20}" + "".join(f"{title:>21} " for title in header))
    for name in READERS:
        speed = [size / 1e6 / run["seconds"] for run in runs[name]]
        row = [spread(speed, 0)]
        for clock in ("seconds", "cpu_seconds"):
            turns = zip(runs[READERS[0]], runs[name], strict=True)
            row.append(spread([base[clock] / run[clock] for base, run in turns], 1))
        if first["peak_bytes"] is not None:
            mapped = 0 if name == READERS[0] else size
            for less in dict.fromkeys((0, mapped)):
                row.append(
                    spread(
                        [(run["peak_bytes"] - less) / arrays for run in runs[name]], 2
                    )
                )
        print(f"  {name:20}" + "".join(f"{cell:>21} " for cell in row))


def main() -> None:
    if sys.argv[1:2] == ["--read-once"]:
        print(json.dumps(read_once(*sys.argv[2:])))
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    results = []
    with tempfile.TemporaryDirectory() as folder:
        files = [plain(file, Path(folder)) for file in args.files]
        if not files:
            files = [Path(folder, "synthetic")]
            synthetic(files[0], args.megabytes)
        for file in files:
            results.append(measure(file, args.repeats))
            report(results[-1])
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

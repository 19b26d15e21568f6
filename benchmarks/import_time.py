"""Cost of `import dualgap` beside importing scikit-learn.

Each round starts two fresh interpreters, in an order that alternates: one imports
scikit-learn, the other scikit-learn and dualgap. Each reports its own wall time,
counted from after the interpreter's start. The first line is `import dualgap` itself,
which imports most parts when they are first used; the second has used them all.

Then the processor time (user and system) of whole commands on 1,600 rows, the least of
all rounds, beside the time of imports that dualgap cannot change.

    python benchmarks/import_time.py [rounds]
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile

import numpy as np

CASES = {
    "import": ("import sklearn", "import dualgap"),
    "everything": (
        "import sklearn.svm",
        "import dualgap; [getattr(dualgap, name) for name in dualgap.__all__]; "
        "import dualgap.core",
    ),
}
LIMIT = 0.2


def seconds(*statements: str) -> float:
    code = "\n".join(
        [
            "import time",
            "start = time.perf_counter()",
            *statements,
            "print(time.perf_counter() - start)",
        ]
    )
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    return float(result.stdout)


def pairs(scikit_learn: str, dualgap: str, rounds: int) -> list[tuple[float, float]]:
    seconds(scikit_learn, dualgap)  # fills the file cache and writes the byte code
    found = []
    for k in range(rounds):
        if k % 2:
            alone, both = seconds(scikit_learn), seconds(scikit_learn, dualgap)
        else:
            both, alone = seconds(scikit_learn, dualgap), seconds(scikit_learn)
        found.append((alone, both))
    return found


def processor_time(*command: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *command], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def commands(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        data, model = f"{folder}/data.svm", f"{folder}/data.model"
        rng = np.random.default_rng(0)
        with open(data, "w") as file:
            for y in rng.choice([-1, 1], 1600):
                columns = np.sort(rng.choice(119, 14, replace=False)) + 1
                values = " ".join(f"{j}:{v:.2f}" for j, v in zip(
                    columns, rng.normal(0.2 * y, 1.0, 14), strict=True))  # fmt: skip
                file.write(f"{y} {values}\n")
        start = ("-m", "dualgap")
        for name, command in {
            "python": ("-c", "pass"),
            "import numpy": ("-c", "import numpy"),
            "and SciPy's sparse and linalg": (
                "-c", "import scipy.sparse, scipy.linalg, threadpoolctl",
            ),
            "dualgap --help": (*start, "--help"),
            "dualgap train": (*start, "train", data, model),
            "dualgap predict": (*start, "predict", data, model),
        }.items():  # fmt: skip
            least = min(processor_time(*command) for _ in range(rounds))
            print(f"{name:30} {least:6.3f}")


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 11
    print(f"Medians of {rounds} rounds, seconds.")
    print(f"{'':10}  scikit-learn  and dualgap    added    ratio")
    too_slow = []
    for name, (scikit_learn, dualgap) in CASES.items():
        found = pairs(scikit_learn, dualgap, rounds)
        alone = statistics.median(a for a, _ in found)
        both = statistics.median(b for _, b in found)
        added = statistics.median(b - a for a, b in found)
        ratio = statistics.median(b / a for a, b in found)
        print(f"{name:10}  {alone:12.3f}  {both:11.3f}  {added:7.3f}  {ratio:7.2f}")
        if added > LIMIT:
            too_slow.append(name)
    print(f"\nLeast processor time of {rounds} rounds, seconds.")
    commands(rounds)
    if too_slow:
        sys.exit(f"more than the {LIMIT} s that dualgap may add: {', '.join(too_slow)}")


if __name__ == "__main__":
    main()

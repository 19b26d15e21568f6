"""The side of a package: it runs in the package's own Python and talks JSON lines.

First line out: seconds of the import and the version. Then, for every line in (C,
family, value, seed, cap, out): processor and wall seconds of conversion and fit; the
model goes to the file `out`. A fit that uses more than `cap` processor seconds ends the
process. Nothing but NumPy and SciPy is imported here.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from scipy import sparse

_OWN = ("C", "family", "value", "seed", "cap", "out")


def read(folder: str, suffix: str = ""):
    """X and y as harness.save wrote them."""

    def path(name: str) -> str:
        return os.path.join(folder, f"{name}{suffix}.npy")

    y = np.load(path("y"))
    if os.path.exists(path("X")):
        return np.load(path("X")), y
    arrays = (np.load(path(k)) for k in ("data", "indices", "indptr", "shape"))
    data, indices, indptr, shape = arrays
    return sparse.csr_matrix((data, indices, indptr), tuple(shape)), y


def processor_seconds() -> float:
    """Return the processor seconds of this process and of the programs it ran.

    Not `time.process_time`, which moves by ticks of milliseconds under a timer.
    """
    own, children = map(
        resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


class Stopwatch:
    """Processor and wall seconds."""

    def __enter__(self):
        self.begin = processor_seconds(), time.perf_counter()
        return self

    def __exit__(self, *_):
        self.cpu = processor_seconds() - self.begin[0]
        self.wall = time.perf_counter() - self.begin[1]


def serve(known: dict, arrays_of) -> None:
    """Answer until the input ends.

    `arrays_of(rival, model, X)` gives what is written to `out`, a dict of arrays, and
    what else is to be recorded.
    """
    name, folder = sys.argv[1:3]
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a package prints is no answer

    def answer(**line) -> None:
        answers.write(json.dumps(line) + "\n")

    rival = known[name]()
    with Stopwatch() as clock:
        rival.load()
    try:
        release = version(rival.package)
    except PackageNotFoundError:
        release = ""
    X, y = read(folder)
    rival.folder_of_arrays = folder
    answer(import_cpu=clock.cpu, import_wall=clock.wall, version=release)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    converted: dict[str, tuple] = {}
    for line in sys.stdin:
        job = json.loads(line)
        family = job["family"]
        for option in job.keys() - set(_OWN):
            setattr(rival, option, job[option])
        try:
            if family not in converted:
                converted.clear()
                with Stopwatch() as clock:
                    data = rival.convert(X, y, family)
                converted[family] = data, clock.cpu, clock.wall
            data, convert_cpu, convert_wall = converted[family]
            rival.limit = (int(job["cap"]) + 1, hard)  # for a program
            signal.setitimer(signal.ITIMER_PROF, job["cap"])  # SIGPROF ends a process
            with Stopwatch() as clock:
                model = rival.fit(data, job["C"], family, job["value"], job["seed"])
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            arrays, more = arrays_of(rival, model, X)
        except Exception as error:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            answer(error=f"{type(error).__name__}: {error}"[:300])
            continue
        np.savez(job["out"], **arrays)
        cpu, wall = clock.cpu, clock.wall
        if "share" in more:  # of a program's time that is not reading the data
            share = more.pop("share")
            convert_cpu += (1 - share) * cpu
            convert_wall += (1 - share) * wall
            cpu, wall = share * cpu, share * wall
        answer(cpu=cpu, wall=wall, convert_cpu=convert_cpu, convert_wall=convert_wall,
               **more)  # fmt: skip

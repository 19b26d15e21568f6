"""One package on one data set, in the package's own Python; see ../serving.py.

python worker.py RIVAL FOLDER_OF_ARRAYS
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

import numpy as np
from rivals import OURS, RIVALS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from serving import Stopwatch, read, serve


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000.0


def judged(rival, model, X):
    arrays, more = rival.arrays(model), rival.more(model)
    more |= {"vectors": len(arrays["support"]), "peak": peak(), "before": rival.before}
    if rival.queries:
        Q, z = read(rival.folder_of_arrays, "_test")
        Q, z = Q[: rival.queries], z[: rival.queries]
        Q = rival.queries_of(Q)
        with Stopwatch() as clock:
            labels = rival.predict(model, Q)
        more |= {"predict": clock.cpu, "queries": len(z)}
        more["test"] = float(np.mean(np.asarray(labels) == z))
        if single := rival.single(model, Q):
            with Stopwatch() as clock:
                rival.predict(*single)
            more["predict_single"] = clock.cpu
    return arrays, more


if __name__ == "__main__":
    touch = int(os.environ.get("DUALGAP_TOUCH", 0))
    heap = np.ones(touch * 125_000)
    del heap
    serve(RIVALS | OURS, judged)

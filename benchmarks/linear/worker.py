"""One package on one data set, in the package's own Python; see ../serving.py.

python worker.py RIVAL FOLDER_OF_ARRAYS
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from rivals import OURS, RIVALS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from serving import serve


def coefficients(rival, model, X):
    w, more = rival.weights(model)
    full = np.zeros(X.shape[1])
    full[: len(w)] = w
    return {"w": full}, more


if __name__ == "__main__":
    serve(RIVALS | OURS, coefficients)

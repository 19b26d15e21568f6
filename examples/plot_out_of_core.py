"""
Rows that stay on the disk
==========================

Batches of any size become a row store, in random order and in bounded memory; a fit
reads it block by block through a buffer that you set, and proves its accuracy over all
of it. Here the data are made, and so small that the buffer has to be smaller still.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from dualgap import LinearSVC
from dualgap.io import RowStore, convert
from dualgap.plot import ConvergenceDisplay

D = 100
TRUTH = np.random.default_rng(0).normal(size=D)


def batches(seed, count):
    """Batches of 1000 rows, as a database or a set of files would give them."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        X = rng.normal(size=(1000, D))
        yield X, np.where(X @ TRUTH + rng.normal(size=1000) > 0.0, 1, -1)


# %%
# 20,000 rows of 100 columns are 16 MB; the buffer is a quarter of that. 1000 more rows
# are for the test.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "rows.store")
    convert(batches(1, 20), path, memory=2**22)
    store = RowStore.open(path, buffer=2**22)
    print(f"{store.n_samples} rows; a pass reads {16e6 / 2**22:.1f} buffers")
    model = LinearSVC(C=0.01, solver="dcd", random_state=0).fit(store)
    print(model.certificate_)
    X_test, y_test = next(batches(2, 1))
    print(f"{model.score(X_test, y_test):.1%} of new rows are told right")

    # %%
    # In memory the problem is the same; the two bounds have to overlap, and do.

    X, y = map(np.concatenate, zip(*batches(1, 20), strict=True))
    held = LinearSVC(C=0.01, solver="dcd", random_state=0).fit(X, y)
    assert model.certificate_.dual <= held.certificate_.primal
    assert held.certificate_.dual <= model.certificate_.primal

# %%
# Passes over the data: of blocks that are swept more than once, there are fewer.

display = ConvergenceDisplay(
    {"through the buffer": model.history_, "in memory": held.history_}
).plot(x="epoch")
plt.show()

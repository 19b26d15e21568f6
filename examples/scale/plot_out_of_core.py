"""
Train on rows that stay on disk
===============================

``convert`` writes batches of any size to a row store, in random order and in bounded
memory. A fit reads the store block by block through a buffer that you set, and proves
its accuracy over all rows. The data here are small, and the buffer is smaller.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from dualgap import LinearSVC
from dualgap.data import RowStore, convert
from dualgap.plot import ConvergenceDisplay

D = 100
TRUTH = np.random.default_rng(0).normal(size=D)


def batches(seed, count):
    """Yield batches of 1000 rows, as a database or a set of files would."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        X = rng.normal(size=(1000, D))
        yield X, np.where(X @ TRUTH + rng.normal(size=1000) > 0.0, 1, -1)


# %%
# 10,000 rows of 100 columns take 8 MB. The buffer is a quarter of that. The test has
# 1000 more rows.

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder, "rows.store")
    convert(batches(1, 10), path, memory=2**22)
    store = RowStore.open(path, buffer=2**21)
    print(f"{store.n_samples} rows; one epoch reads {8e6 / 2**21:.1f} buffers")
    model = LinearSVC(C=0.01, solver="dcd", random_state=0).fit(store)
    print(model.certificate_)
    X_test, y_test = next(batches(2, 1))
    print(f"{model.score(X_test, y_test):.1%} of new rows are classified correctly")

    # %%
    # The problem is the same in memory, so the intervals that hold its optimum overlap.

    X, y = map(np.concatenate, zip(*batches(1, 10), strict=True))
    held = LinearSVC(C=0.01, solver="dcd", random_state=0).fit(X, y)
    assert model.certificate_.dual <= held.certificate_.primal
    assert held.certificate_.dual <= model.certificate_.primal

# %%
# The store needs fewer epochs, because each block is swept several times while it is
# in the buffer.

display = ConvergenceDisplay(
    {"through the buffer": model.history_, "in memory": held.history_}
).plot(x="epoch")
plt.show()

"""
Train on a Dask cluster
=======================

The rows stay with the workers, and only the model travels. The cluster of this example
is the program itself. On a real cluster, pass the address of its scheduler to
``Client``; everything else stays the same.
"""

import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client

import dualgap
from dualgap.distributed import LinearSVC

rng = np.random.default_rng(0)
X = rng.normal(size=(4000, 20))
y = np.where(X @ rng.normal(size=20) + rng.normal(size=4000) > 0.0, 1, -1)

# %%
# Four blocks of 1000 rows lie on two workers. In each round every worker makes some
# epochs over its blocks, and the changes of the model are added up.

with Client(
    processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"
) as client:
    blocks = da.from_array(X, chunks=(1000, 20)), da.from_array(y, chunks=1000)
    model = LinearSVC(C=0.1, client=client, random_state=0).fit(*blocks)
print(model.certificate_)

# %%
# A fit on one machine solves the same problem, so the bounds of the two overlap.

alone = dualgap.LinearSVC(C=0.1, tol=1e-6, random_state=0).fit(X, y)
assert model.certificate_.dual <= alone.certificate_.primal
assert alone.certificate_.dual <= model.certificate_.primal

figure, ax = plt.subplots(figsize=(4, 4), layout="constrained")
ax.scatter(alone.coef_, model.coef_, s=12)
ax.axline((0, 0), slope=1, color="black", linewidth=0.5)
ax.set(xlabel="weights, one machine", ylabel="weights, four blocks on a cluster")
plt.show()

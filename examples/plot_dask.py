"""
A fit on a Dask cluster
=======================

The rows stay with the workers; what travels is the model. The cluster is the program
itself here: with the address of a scheduler the rest is the same.
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
# Four blocks of 1000 rows, on two workers. A round is some passes over every block, and
# one model sent to and fro.

with Client(
    processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0"
) as client:
    blocks = da.from_array(X, chunks=(1000, 20)), da.from_array(y, chunks=1000)
    model = LinearSVC(C=0.1, client=client, random_state=0).fit(*blocks)
print(model.certificate_)

# %%
# The problem is that of a fit on one machine, and the bounds of both hold the optimum.

alone = dualgap.LinearSVC(C=0.1, tol=1e-6, random_state=0).fit(X, y)
assert model.certificate_.dual <= alone.certificate_.primal
assert alone.certificate_.dual <= model.certificate_.primal

figure, ax = plt.subplots(figsize=(4, 4), layout="constrained")
ax.scatter(alone.coef_, model.coef_, s=12)
ax.axline((0, 0), slope=1, color="black", linewidth=0.5)
ax.set(xlabel="weights, one machine", ylabel="weights, four blocks on a cluster")
plt.show()

"""
Which labels could still change?
================================

A fit ends near the optimum, not at it. The duality gap tells more than how near: it
bounds the decisions of the exact optimum, and so tells which labels training to the end
could change. The smaller the gap, the fewer they are.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from dualgap import LinearSVC
from dualgap.answers import Decided
from dualgap.plot import COLORS

X, y = make_blobs(400, centers=2, cluster_std=2.4, random_state=3)
X -= X.mean(axis=0)

# %%
# A grid of new rows, and models of three accuracies. ``bound_optimum`` reads the
# training rows once. Then ``certified_labels`` is true where the label of the model is
# proved to be the label of every exact optimum.

first, second = np.meshgrid(np.linspace(-10, 10, 120), np.linspace(-10, 10, 120))
grid = np.column_stack([first.ravel(), second.ravel()])

figure, axes = plt.subplots(1, 3, figsize=(8.4, 3.1), layout="constrained")
for axis, tol in zip(axes, (1e-2, 1e-4, 1e-6), strict=True):
    model = LinearSVC(C=1.0, solver="dcd", tol=tol, random_state=0).fit(X, y)
    model.bound_optimum(X, y)
    told = model.predict(grid, undecided=-1)
    share = model.certified_labels(X).mean()
    axis.contourf(
        first,
        second,
        told.reshape(first.shape),
        levels=[-1.5, -0.5, 0.5, 1.5],
        colors=["gray", *COLORS[:2]],
        alpha=0.3,
    )
    for label in (0, 1):
        axis.scatter(*X[y == label].T, color=COLORS[label], s=4)
    axis.set(title=f"tol={tol:g}: {share:.1%} certain", xticks=[], yticks=[])

# %%
# Grey is undecided. The bounds are as wide as the root of the gap, so a gap 100 times
# smaller makes the grey band 10 times narrower.
#
# The bounds themselves, for the first rows:

lower, upper = model.decision_bounds(X[:3])
print(np.column_stack([lower, model.decision_function(X[:3]), upper]))

# %%
# A fit can also go on until given labels are certain.

model = LinearSVC(random_state=0).fit(X, y, until=Decided(X))
assert model.certified_labels(X).all()
print(model.certificate_.message)
plt.show()

"""
Find rows unlike the others
===========================

``OneClassSVM`` learns where the training rows are, without labels. New rows outside of
that region are novelties. ``nu`` is the share of training rows that may lie outside.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from dualgap import OneClassSVM
from dualgap.plot import COLORS

X, _ = make_moons(400, noise=0.08, random_state=0)
new = np.random.default_rng(0).uniform((-2, -1.3), (3, 1.8), (60, 2))

# %%
# At most 5 % of the training rows may lie outside.

model = OneClassSVM(nu=0.05, gamma=4.0, tol=1e-4).fit(X)
print(model.certificate_.message)
outside = np.mean(model.predict(X) == -1)
novel = model.predict(new) == -1
print(f"{outside:.1%} of the training rows lie outside")
print(f"{novel.sum()} of {len(new)} new rows are novelties")
assert outside < 0.06

# %%
# The training rows in grey, new rows in blue and novelties in orange.

figure, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
DecisionBoundaryDisplay.from_estimator(
    model,
    np.vstack([X, new]),
    response_method="decision_function",
    plot_method="contour",
    levels=[0.0],
    colors="black",
    ax=ax,
)
ax.plot(*X.T, ".", color="0.7", markersize=4, label="training rows")
ax.plot(*new[~novel].T, "o", color=COLORS[0], markersize=4, label="new, as expected")
ax.plot(*new[novel].T, "o", color=COLORS[3], markersize=4, label="new, novel")
ax.legend(fontsize="small", ncols=3, loc="upper center")
ax.set(ylim=(-1.6, 2.3))
plt.show()

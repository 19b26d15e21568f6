"""
Fit a curve within a tube
=========================

``SVR`` ignores errors below ``epsilon``. Only rows on or outside this tube become
support vectors, so a wider tube needs fewer of them.
"""

import matplotlib.pyplot as plt
import numpy as np

from dualgap import SVR
from dualgap.plot import COLORS

rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, (150, 1)), axis=0)
y = np.sin(2 * X[:, 0]) * np.exp(-0.3 * X[:, 0]) + rng.normal(scale=0.1, size=150)
grid = np.linspace(0, 6, 300)[:, None]

# %%
# Two tubes, and the rows that each model depends on.

figure, axes = plt.subplots(1, 2, figsize=(7, 3.2), layout="constrained", sharey=True)
counts = []
for ax, epsilon in zip(axes, (0.05, 0.2), strict=True):
    model = SVR(C=10.0, gamma=1.0, epsilon=epsilon, random_state=0).fit(X, y)
    assert model.certificate_.certified
    curve, rows = model.predict(grid), model.support_
    ax.fill_between(
        grid[:, 0], curve - epsilon, curve + epsilon, color=COLORS[0], alpha=0.2
    )
    ax.plot(grid, curve, color=COLORS[0])
    ax.plot(X, y, ".", color="0.7", markersize=4)
    ax.plot(X[rows], y[rows], ".", color=COLORS[3], markersize=4)
    ax.set_title(f"epsilon = {epsilon}: {len(rows)} support vectors", fontsize="medium")
    counts.append(len(rows))
assert counts[1] < counts[0]
plt.show()

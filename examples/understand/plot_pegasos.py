"""
Watch Pegasos find a line
=========================

Pegasos looks at one row at a time. If the margin of the row is below 1, it turns the
line toward classifying that row. The certificate says how far each line is from the
best one.

:doc:`A page with sliders </pegasos-live>` shows the same steps and the closing gap.
``python plot_pegasos.py PICTURE`` writes the first picture below.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from dualgap import LinearSVC
from dualgap.plot import COLORS
from dualgap.solvers import Pegasos

X, y = make_blobs(40, centers=[(-1, -1), (1, 1)], cluster_std=1.0, random_state=0)
signs = 2 * y - 1
C = 0.05


def draw(ax, a, b, bias):
    """Draw the rows, the line a x1 + b x2 + bias = 0 and its margins."""
    ends = np.array([-4.0, 4.0])
    for level, style in ((-1, ":"), (0, "-"), (1, ":")):
        ax.plot(ends, (level - bias - a * ends) / b, style, color="black", linewidth=1)
    for label, color, marker in ((0, COLORS[3], "s"), (1, COLORS[0], "o")):
        ax.scatter(*X[y == label].T, color=color, marker=marker, s=14)
    ax.set(xlim=(-4, 4), ylim=(-4, 4), aspect="equal", xticks=[], yticks=[])


# %%
# The first steps, in plain NumPy. Step t shrinks w by the factor 1 - 1/t. If the row in
# the circle has a margin below 1, the step also adds n C/t times y x. The constant
# third column stands for the bias. The first steps are large, the later ones small.

rows = np.column_stack([X, np.ones(len(X))])
rng = np.random.default_rng(2)
steps, w = [], np.zeros(3)
for t in range(1, 401):
    i = rng.integers(len(rows))
    below = signs[i] * (rows[i] @ w) < 1
    w = (1 - 1 / t) * w
    if below:
        w += len(rows) * C / t * signs[i] * rows[i]
    steps.append((i, below, w))


def show(ax, t):
    """Draw step t: the line after it, and the row that it looked at."""
    i, below, w = steps[t - 1]
    draw(ax, *w)
    ax.scatter(*X[i], s=120, facecolors="none", edgecolors="black")
    what = "line turned" if below else "w shrunk"
    ax.set_title(f"step {t}: {what}", fontsize="medium")


figure, axes = plt.subplots(1, 4, figsize=(9, 2.5), layout="constrained")
for t, ax in zip((1, 2, 20, 400), axes, strict=True):
    show(ax, t)
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)

# %%
# dualgap's Pegasos on the same rows after 1, 10 and 1000 epochs, with the proved bound
# on its distance from the optimum. A fit that ends before ``tol`` is proved warns; that
# is expected here.

figure, axes = plt.subplots(1, 3, figsize=(7.5, 2.9), layout="constrained")
gaps = []
for ax, epochs in zip(axes, (1, 10, 1000), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=C, loss="hinge", solver=Pegasos(), max_iter=epochs)
        model.fit(X, y)
    draw(ax, *model.coef_[0], model.intercept_[0])
    gaps.append(model.certificate_.relative_gap)
    title = f"{epochs} epoch{'s' * (epochs > 1)}: within {gaps[-1]:.1%}"
    ax.set_title(title, fontsize="medium")
assert gaps[0] > gaps[-1]
plt.show()

"""
Watch Pegasos find a line
=========================

Pegasos looks at one row at a time. If the margin of the row is below 1, it turns the
line toward classifying that row. The certificate says how far each line is from the
best one.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs
from sklearn.exceptions import ConvergenceWarning

from dualgap import LinearSVC

X, y = make_blobs(100, centers=[(-1, -1), (1, 1)], cluster_std=1.0, random_state=0)

# %%
# The line and its margins after 1, 10 and 1000 epochs. A fit that ends before ``tol``
# is proved warns; that is expected here.

figure, axes = plt.subplots(1, 3, figsize=(7.5, 3), layout="constrained", sharey=True)
ends = np.array([-3.5, 3.5])
for ax, epochs in zip(axes, (1, 10, 1000), strict=True):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(C=1.0, solver="pegasos", max_epochs=epochs, random_state=0)
        model.fit(X, y)
    (a, b), bias = model.coef_[0], model.intercept_[0]
    for level, style in ((-1, ":"), (0, "-"), (1, ":")):
        ax.plot(ends, (level - bias - a * ends) / b, style, color="black")
    ax.scatter(*X.T, c=y, cmap="RdBu", s=12, edgecolors="black", linewidths=0.3)
    gap = model.certificate_.relative_gap
    title = f"{epochs} epoch{'s' * (epochs > 1)}: within {gap:.1%}"
    ax.set_title(title, fontsize="medium")
    ax.set(xlim=(-3.5, 3.5), ylim=(-3.5, 3.5), aspect="equal")
plt.show()

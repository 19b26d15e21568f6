"""
Prove the leave-one-out error
=============================

Leave-one-out takes one fit per row. ``loo_bounds`` encloses it from a single fit, and
trains again only for the rows that this leaves open.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from dualgap import LinearSVC
from dualgap.models import loo_bounds
from dualgap.plot import COLORS

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)

# %%
# Three kinds of work: "none" drops the dual variable of a row, "local" repairs the rows
# nearest the margin, and "exact" trains without the row until its sign is proved. Each
# interval contains the leave-one-out error of the exact optimum.

Cs = np.geomspace(1e-3, 3.0, 8)
found = {"none": [], "local": [], "exact": []}
for C in Cs:
    model = LinearSVC(C, tol=1e-9, random_state=0).fit(X, y)
    for refine, bounds in found.items():
        bounds.append(loo_bounds(model, X, y, refine=refine))
    assert bounds[-1].exact
    print(f"C = {C:.3g}: {bounds[-1].n_fits} further fits. {bounds[-1]}")

# %%
# At small C one fit is enough. At large C a single support vector can move the plane
# far, so the interval of "none" is wide.

figure, axes = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
for color, (refine, bounds) in zip(COLORS, found.items(), strict=False):
    lower = [100 * one.lower for one in bounds]
    upper = [100 * one.upper for one in bounds]
    if refine == "exact":
        axes.plot(Cs, lower, "o-", color="black", markersize=4, label=refine)
    else:
        axes.fill_between(Cs, lower, upper, color=color, alpha=0.4, label=refine)
axes.set(xscale="log", xlabel="C", ylabel="leave-one-out error, %")
axes.legend()
plt.show()

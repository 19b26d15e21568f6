"""
Race four solvers on one problem
================================

All solvers share one loop, which limits them and proves their results. So their curves
can be compared point by point.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

from dualgap import LinearSVC
from dualgap.plot import ConvergenceDisplay

X, y = load_digits(return_X_y=True)
X, y = X / 16.0, y % 2

# %%
# Tell odd digits from even ones. A solver that does not prove ``tol`` within 100 epochs
# warns; the picture shows how far it came.

models = {}
for solver in ("auto", "dcd", "sdca", "pegasos"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        models[solver] = LinearSVC(
            C=1.0, loss="hinge", solver=solver, tol=1e-5, max_iter=100, random_state=0
        ).fit(X, y)
    print(f"{solver:8} {models[solver].certificate_.message}")

# %%
# Bold lines and dots are proved, thin lines are the solvers' own estimates.

figure, ax = plt.subplots(figsize=(5.6, 3.8), layout="constrained")
ConvergenceDisplay.from_estimators(models, x="epoch", ax=ax)
ax.set_xscale("log")
plt.show()

"""
Halve the candidates of a search
================================

``HalvingGridSearchCV`` of scikit-learn trains all candidates on few rows, keeps the
best third, and gives these three times as many rows. It works with dualgap as it is.
Here a full search over the shared kernel matrix checks what it chose.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.model_selection import HalvingGridSearchCV

from dualgap import SVC, SVCCV

X, y = load_digits(return_X_y=True)
X, y = X / 16.0, y % 2
grid = {"C": np.logspace(-1, 3, 9).tolist(), "gamma": [0.003, 0.03, 0.3]}

# %%
# Every model of a round is certified, also on few rows: candidates are dropped for
# their scores, not because a solver stopped early.

halving = HalvingGridSearchCV(
    SVC(random_state=0), grid, cv=3, factor=3, min_resources=150, random_state=0
).fit(X, y)
print(f"rows of a round:       {halving.n_resources_}")
print(f"candidates of a round: {halving.n_candidates_}")
print(f"best: {halving.best_params_}, accuracy {halving.best_score_:.3f}")

# %%
# With few rows the scores of good candidates are close, so halving may drop the best
# one. ``SVCCV`` trains all of them on all rows, and proves each model.

full = SVCCV(grid["C"], grid["gamma"], cv=3, random_state=0).fit(X, y)
print(f"full search: {full.best_params_}, accuracy {full.best_score_:.3f}")

figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
rounds = halving.cv_results_["iter"]
for k in range(halving.n_iterations_):
    scores = np.sort(halving.cv_results_["mean_test_score"][rounds == k])[::-1]
    label = f"round {k + 1}: {halving.n_resources_[k]} rows"
    ax.plot(1 + np.arange(len(scores)), scores, "o-", label=label)
scores = np.sort(full.cv_results_["mean_test_score"])[::-1]
ax.plot(1 + np.arange(len(scores)), scores, "k:", label="full search: all rows")
ax.set(xlabel="candidates, best first", ylabel="accuracy in cross-validation")
ax.legend()
plt.show()

"""
Search C and gamma of an RBF kernel
===================================

A grid search compares models, and the comparison is fair if every model was trained to
the same accuracy. All fits of dualgap are, whatever their parameters.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import SVC

X, y = load_wine(return_X_y=True)
Cs, gammas = np.logspace(-1, 3, 5), np.logspace(-4, 0, 5)

# %%
# Parameters of a step in a pipeline have the name of the step before them.

search = GridSearchCV(
    make_pipeline(StandardScaler(), SVC(random_state=0)),
    {"svc__C": Cs, "svc__gamma": gammas},
    cv=3,
).fit(X, y)
best = search.best_params_
print(f"best: C = {best['svc__C']:g}, gamma = {best['svc__gamma']:g}")
print(search.best_estimator_[-1].certificate_.message)

# %%
# Good values lie along a diagonal: a smaller gamma makes the model smoother, and a
# larger C makes up for it.

figure, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
scores = search.cv_results_["mean_test_score"].reshape(len(Cs), len(gammas))
image = ax.imshow(scores, origin="lower", vmin=0.4, vmax=1)
for (i, j), score in np.ndenumerate(scores):
    color = "white" if score < 0.8 else "black"
    ax.text(j, i, f"{score:.2f}", ha="center", va="center", color=color)
ax.set_xticks(range(len(gammas)), [f"{gamma:g}" for gamma in gammas])
ax.set_yticks(range(len(Cs)), [f"{C:g}" for C in Cs])
ax.set(xlabel="gamma", ylabel="C", title="accuracy in cross-validation")
figure.colorbar(image, ax=ax)
plt.show()

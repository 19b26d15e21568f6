"""
Let dualgap train the classes of scikit-learn
=============================================

``patch_sklearn`` makes dualgap train ``sklearn.svm``, so a program needs one new line.
Here the models of both are compared: how far can each be from the optimum?
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning

import dualgap

datasets = {"iris": load_iris, "wine": load_wine, "cancer": load_breast_cancer}


def gaps():
    """Proven relative gap of ``sklearn.svm.LinearSVC`` on every data set."""
    from sklearn.svm import LinearSVC

    found = []
    for load in datasets.values():
        X, y = load(return_X_y=True)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model = LinearSVC(loss="hinge", random_state=0).fit(X, y)
        found.append(dualgap.certify(model, X, y).relative_gap)
    return found


# %%
# The same function, without the patch and with it.

before = gaps()
with dualgap.patch_sklearn():
    after = gaps()
for name, first, second in zip(datasets, before, after, strict=True):
    print(f"{name:7} scikit-learn {first:8.2%}   patched {second:8.4%}")

# %%
# The features were not standardised. LIBLINEAR needs that, dualgap can do without.

figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
places = range(len(datasets))
ax.bar([p - 0.2 for p in places], before, width=0.4, label="scikit-learn")
ax.bar([p + 0.2 for p in places], after, width=0.4, label="patched")
ax.set_xticks(places, list(datasets))
ax.set(yscale="log", ylabel="within this fraction of the optimum")
ax.legend()
plt.show()

"""
How good is a model from elsewhere?
===================================

``certify`` bounds how far any SVM is from the optimum of its own training problem,
whoever trained it: a warning such as "Liblinear failed to converge" says that something
is wrong, and this says how much.
"""

import warnings

import matplotlib.pyplot as plt
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler

from dualgap import certify

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# The same warning, twice; one model is nearly optimal and the other is not.

for iterations in (20, 1000):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model = sklearn.svm.LinearSVC(
            loss="hinge", max_iter=iterations, random_state=0
        ).fit(X, y)
    print(f"{iterations} iterations: {[str(w.message) for w in caught]}")
    print(f"    {certify(model, X, y).message}")

# %%
# Stochastic gradient descent stops without a word. What its ``tol`` leads to:

tols, within = [1e-1, 1e-2, 1e-3, 1e-4, 1e-5], []
for tol in tols:
    model = SGDClassifier(alpha=1e-4, tol=tol, max_iter=10_000, random_state=0)
    within.append(certify(model.fit(X, y), X, y).relative_gap)

figure, ax = plt.subplots(figsize=(5, 3.4), layout="constrained")
ax.loglog(tols, within, "o-")
ax.set(xlabel="tol of SGDClassifier", ylabel="proved: within this of the optimum")
ax.invert_xaxis()

# %%
# A kernel model, too, brings its own dual variables. Here 3 is told from 8.

X, y = load_digits(return_X_y=True)
X, y = X[(y == 3) | (y == 8)], y[(y == 3) | (y == 8)]
model = sklearn.svm.SVC(tol=0.5).fit(X, y)
print(certify(model, X, y).message)
plt.show()

"""
A path of C
===========

How strongly should the loss weigh? One model per C answers. ``svm_path`` trains them in
rising order, each from the dual variables of the one before, and each has a
certificate, so that what differs between two points of the curve is C and not how long
the solver ran.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from dualgap import LinearSVC, LinearSVCCV, svm_path
from dualgap.plot import PathDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# %%
# A path is the values of C with coefficients, intercepts and certificates. What it
# saves is seen in the steps of the solver, beside fits that begin at nothing.

Cs = np.logspace(-4, 1, 16)
path = svm_path(X_train, y_train, Cs, solver="dcd", random_state=0)
cold = LinearSVC(solver="dcd", random_state=0)
alone = [cold.set_params(C=C).fit(X_train, y_train).certificate_ for C in Cs]
warm = sum(certificate.updates for certificate in path.certificates)
print(f"{warm} steps along the path, {sum(c.updates for c in alone)} from nothing")
print(f"worst relative gap {path.relative_gaps.max():.1e}")
assert path.relative_gaps.max() <= 1e-3

# %%
# Weights grow with C, and the errors on the training rows get fewer; on rows that were
# not seen they need not.


def errors(X, y):
    """Share of rows on the wrong side, for every C."""
    scores = X @ path.coefs.T + path.intercepts
    return ((scores > 0) != y[:, None]).mean(axis=0)


figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
PathDisplay.from_path(path, ax=left)
right.semilogx(Cs, errors(X_train, y_train), label="training")
right.semilogx(Cs, errors(X_test, y_test), label="test")
right.set(xlabel="C", ylabel="share of errors")
right.legend()

# %%
# Which C? ``LinearSVCCV`` trains such a path in every fold and keeps the best.

search = LinearSVCCV(Cs, random_state=0).fit(X_train, y_train)
print(f"C = {search.C_:.3g}, test accuracy {search.score(X_test, y_test):.3f}")

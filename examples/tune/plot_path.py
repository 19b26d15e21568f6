"""
Choose C from a regularisation path
===================================

C weighs the losses against the size of the weights. ``svm_path`` trains one model for
each value of C and starts each from the one before. Every model has a certificate, so
the models differ in C only, and not in how long the solver ran.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from dualgap import LinearSVCCV
from dualgap.model_selection import svm_path
from dualgap.plot import PathDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# %%
# A path holds the values of C with their coefficients, intercepts and certificates.

Cs = np.logspace(-4, 1, 16)
path = svm_path(X_train, y_train, Cs, random_state=0)
print(f"worst relative gap {path.relative_gaps.max():.1e}")
assert path.relative_gaps.max() <= 1e-3

# %%
# As C grows, so do the weights, and the model makes fewer errors on the training rows.
# On test rows it may make more.


def errors(X, y):
    """Return the share of misclassified rows for every C."""
    scores = X @ path.coefs.T + path.intercepts
    return ((scores > 0) != y[:, None]).mean(axis=0)


figure, (left, right) = plt.subplots(1, 2, figsize=(7, 3.4), layout="constrained")
PathDisplay.from_path(path, ax=left)
right.semilogx(Cs, errors(X_train, y_train), label="training")
right.semilogx(Cs, errors(X_test, y_test), label="test")
right.set(xlabel="C", ylabel="share of errors")
right.legend()

# %%
# ``LinearSVCCV`` trains such a path in every fold of a cross-validation and keeps the
# best C.

search = LinearSVCCV(Cs, random_state=0).fit(X_train, y_train)
print(f"C = {search.C_:.3g}, test accuracy {search.score(X_test, y_test):.3f}")
plt.show()

"""
A path of C
===========

How strongly should the loss weigh? One fit per C answers, each begun with the dual
variables of the one before, and each with a certificate, so that what differs between
two points of the curve is C and not how long the solver ran.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from dualgap import LinearSVC

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# %%
# ``warm_start=True`` clips the dual variables of the last fit to the box of the new C
# and goes on from there.

Cs = np.logspace(-4, 1, 16)
model = LinearSVC(solver="dcd", warm_start=True, random_state=0)
coefs, passes, gaps, scores = [], [], [], []
for C in Cs:
    model.set_params(C=C).fit(X_train, y_train)
    coefs.append(model.coef_.ravel())
    passes.append(model.n_iter_)
    gaps.append(model.certificate_.relative_gap)
    scores.append((1 - model.score(X_train, y_train), 1 - model.score(X_test, y_test)))
cold = LinearSVC(solver="dcd", random_state=0)
without = [cold.set_params(C=C).fit(X_train, y_train).n_iter_ for C in Cs]
print(f"{sum(passes)} passes warm, {sum(without)} cold; worst gap {max(gaps):.1e}")

# %%
# Weights grow with C, and the errors on the training rows get fewer; on rows that were
# not seen they need not.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.semilogx(Cs, coefs)
left.set(xlabel="C", ylabel="weights")
right.semilogx(Cs, np.array(scores), label=["training", "test"])
right.set(xlabel="C", ylabel="share of errors")
right.legend()

"""
Watch a certificate close in on the optimum
===========================================

The objective P of any model is at least the optimum P* of the training problem. The
value D of any feasible point of the dual problem is at most P*. A fit that knows both
values knows how far it can be from the optimum, without knowing the optimum.

``python plot_certificate.py FILE`` also writes the picture to a file.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from dualgap import LinearSVC
from dualgap.solvers import DCD

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# Fits of 1, 2, ..., 40 epochs of dual coordinate descent. The seed is the same, so they
# show one fit at different moments. A fit that ends before ``tol`` is proved warns;
# that is expected here.

counts = np.arange(1, 41)
certificates = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for epochs in counts:
        model = LinearSVC(
            C=0.1,
            solver=DCD(acceleration="none"),
            tol=1e-9,
            max_iter=int(epochs),
            random_state=0,
        ).fit(X, y)
        certificates.append(model.certificate_)
P = np.array([certificate.primal for certificate in certificates])
D = np.array([certificate.dual for certificate in certificates])
print(certificates[4])

# %%
# No fit needs the optimum itself. This picture does, so it is computed to nine digits.

best = LinearSVC(C=0.1, solver="interior-point", tol=1e-9).fit(X, y).certificate_.primal
assert (D <= best * (1 + 1e-9)).all()
assert (best * (1 - 1e-9) <= P).all()

# %%
# Left: P and D close in on P*. Right: the relative gap is proved, and always above the
# true error, which nobody knows while a fit runs. A fit stops when the gap is below
# ``tol``.

figure, (left, right) = plt.subplots(1, 2, figsize=(7.5, 3.4), layout="constrained")
left.fill_between(counts, D, P, alpha=0.2, label="where the optimum can be")
left.plot(counts, P, label="P of the model")
left.plot(counts, D, label="D of the dual point")
left.axhline(best, color="black", linestyle=":", label="P*")
left.set(xlabel="epochs", ylabel="value", xlim=(0, 15), ylim=(0, 1.6 * best))
left.legend()
right.semilogy(counts, (P - D) / D, label="(P - D)/D: proved")
right.semilogy(counts, (P - best) / best, label="(P - P*)/P*: true, unknown")
right.axhline(1e-3, color="black", linestyle=":", label="tol = 0.001")
right.set(xlabel="epochs", ylabel="relative error")
right.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)
plt.show()

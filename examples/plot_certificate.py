"""
The certificate, drawn
======================

Whatever a solver did, the dual value D of any point in the dual's box is below the
optimal value P* of the training problem, and the primal value P of any model is above
it. A fit that knows both knows how far it can be from the optimum, without knowing the
optimum.

``python examples/plot_certificate.py FILE`` also writes the picture to a file.
"""

import sys
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from dualgap import DCD, LinearSVC

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# Fits of 1, 2, ..., 40 passes by dual coordinate descent. They are the same fit, seen
# at different moments, for the seed is the same. Those that end too early warn, and the
# warning has the number; here it is wanted.

passes = np.arange(1, 41)
certificates = []
with warnings.catch_warnings():
    warnings.simplefilter("ignore", ConvergenceWarning)
    for epochs in passes:
        model = LinearSVC(
            C=0.1,
            solver=DCD(acceleration="none"),
            tol=1e-9,
            max_epochs=int(epochs),
            random_state=0,
        ).fit(X, y)
        certificates.append(model.certificate_)
P = np.array([certificate.primal for certificate in certificates])
D = np.array([certificate.dual for certificate in certificates])
print(certificates[4])

# %%
# The optimum itself, to nine digits, which no fit needs: only this picture does.

best = LinearSVC(C=0.1, solver="interior-point", tol=1e-9).fit(X, y).certificate_.primal
assert (D <= best * (1 + 1e-9)).all()
assert (best * (1 - 1e-9) <= P).all()

# %%
# Left: P and D close in on P*. Right: the relative gap, which is proved, is always
# above the true error, which nobody knows while a fit runs. ``tol`` is the height at
# which a fit may stop.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.fill_between(passes, D, P, alpha=0.2, label="where the optimum can be")
left.plot(passes, P, label="P of the model")
left.plot(passes, D, label="D of the dual point")
left.axhline(best, color="black", linestyle=":", label="P*")
left.set(
    xlabel="passes over the data", ylabel="value", xlim=(0, 15), ylim=(0, 1.6 * best)
)
left.legend()
right.semilogy(passes, (P - D) / D, label="(P - D)/D: proved")
right.semilogy(passes, (P - best) / best, label="(P - P*)/P*: true, unknown")
right.axhline(1e-3, color="black", linestyle=":", label="tol = 0.001")
right.set(xlabel="passes over the data", ylabel="relative error")
right.legend()
if len(sys.argv) > 1:
    figure.savefig(sys.argv[1], dpi=120)

"""
Find out how accurate a model must be
=====================================

A training problem need not be solved to many digits. Here fits stop at ever smaller
values of ``tol``: the test error settles long before the fit
gets expensive.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from dualgap import LinearSVC
from dualgap.plot import COLORS

X, y = make_classification(
    3000, 60, n_informative=20, flip_y=0.02, class_sep=1.0, random_state=2
)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# ``tol`` is what a fit has to prove, so the horizontal axis means the same for every
# data set.

tols = [1.0, 0.3, 0.1, 0.03, 0.01, 1e-3, 1e-4, 1e-5]
errors, epochs = [], []
for tol in tols:
    model = LinearSVC(C=0.1, solver="dcd", tol=tol, random_state=0)
    model.fit(X_train, y_train)
    assert model.certificate_.relative_gap <= tol
    errors.append(1 - model.score(X_test, y_test))
    epochs.append(model.certificate_.epochs)
    print(f"tol {tol:7g}: {epochs[-1]:4} epochs, test error {errors[-1]:.2%}")

# %%
# The default, 1e-3, is where this curve is flat.

figure, left = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
right = left.twinx()
left.semilogx(tols, errors, "o-", color=COLORS[0])
right.loglog(tols, epochs, "s--", color=COLORS[3])
left.axvline(1e-3, color="gray", linewidth=0.8)
left.invert_xaxis()
left.set(xlabel="tol: proven relative gap")
left.set_ylabel("test error", color=COLORS[0])
right.set_ylabel("epochs", color=COLORS[3])
plt.show()

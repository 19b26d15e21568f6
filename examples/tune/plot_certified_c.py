"""
Choose C with a proof that no other is much better
==================================================

A grid search compares the values of C on the grid. ``LinearSVCCV(certify_C=True)``
also proves something about all values between: no C of the interval has a
cross-validation error that is smaller by more than ``error_tolerance``.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from dualgap import LinearSVCCV
from dualgap.plot import ErrorBoundsDisplay

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)

# %%
# The search begins with fits at the ends of the interval. Two neighbouring fits bound
# the error of every C between them, and the search splits the interval whose bound is
# least. A smaller tolerance takes more fits.

figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for ax, tolerance in zip(axes, (0.02, 0.01), strict=True):
    search = LinearSVCCV((1e-3, 10.0), certify_C=True, error_tolerance=tolerance).fit(
        X, y
    )
    print(
        f"tolerance {tolerance:.0%}: C = {search.C_:.4g}, error "
        f"{1 - search.best_score_:.2%}, {search.n_fits_} fits; the error at every C is "
        f"at least {search.error_bounds_.lower.min():.2%}"
    )
    ErrorBoundsDisplay.from_estimator(search, ax=ax)
    ax.set(
        title=f"within {tolerance:.0%}, proved: {search.error_tolerance_:.2%}",
        ylim=(0, 0.1),
    )
plt.show()

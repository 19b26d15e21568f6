"""
Check how good a model of scikit-learn is
=========================================

``certify`` bounds how far an SVM is from the optimum of its own training problem,
whichever package trained it. A warning such as "Liblinear failed to converge" says that
something may be wrong; the bound says how much.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from dualgap import certify

X, y = load_breast_cancer(return_X_y=True)
scaled = StandardScaler().fit_transform(X)

# %%
# Five models of scikit-learn, most of them with its default settings.

cases = {
    "LinearSVC, raw features": (LinearSVC(loss="hinge", random_state=0), X),
    "LinearSVC, standardised": (LinearSVC(loss="hinge", random_state=0), scaled),
    "SGDClassifier": (SGDClassifier(random_state=0), scaled),
    "SVC": (SVC(), scaled),
    "SVC, tol=0.5": (SVC(tol=0.5), scaled),
}
gaps = {}
for name, (model, rows) in cases.items():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(rows, y)
    gaps[name] = certify(model, rows, y).relative_gap
    print(f"{name:24} {gaps[name]:8.3%} {'failed to converge' * bool(caught)}")

# %%
# Two models come with the same warning. One is nearly optimal, the other is not. The
# worst model of the three on standardised features comes without a warning.

figure, ax = plt.subplots(figsize=(5.6, 3), layout="constrained")
bars = ax.barh(list(gaps), list(gaps.values()))
ax.bar_label(bars, [f"{gap:.2%}" for gap in gaps.values()], padding=3)
ax.invert_yaxis()
ax.set(xscale="log", xlabel="within this fraction of the optimum: proved")
ax.set_xlim(1e-5, 100 * max(gaps.values()))
plt.show()

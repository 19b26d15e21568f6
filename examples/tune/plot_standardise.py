"""
See why features should be standardised
=======================================

The features of the wine data differ in scale by a factor of some 5,000. An SVM measures
distances, so the feature with the largest numbers drowns the others.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from dualgap import SVC, LinearSVC

X, y = load_wine(return_X_y=True)
spread = X.std(axis=0)
print(f"standard deviations from {spread.min():.2f} to {spread.max():.0f}")

# %%
# Each model is cross-validated on the raw features and behind two scalers.

scalers = {
    "raw": "passthrough",
    "MinMaxScaler": MinMaxScaler(),
    "StandardScaler": StandardScaler(),
}
accuracy = {}
for estimator in (LinearSVC(random_state=0), SVC(random_state=0)):
    accuracy[type(estimator).__name__] = [
        cross_validate(make_pipeline(scaler, estimator), X, y)["test_score"].mean()
        for scaler in scalers.values()
    ]

# %%
# The kernel model suffers most: without a scaler it sees little but the feature
# "proline".

figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
for shift, (name, values) in zip((-0.2, 0.2), accuracy.items(), strict=True):
    places = [i + shift for i in range(len(scalers))]
    bars = ax.bar(places, values, width=0.4, label=name)
    ax.bar_label(bars, [f"{value:.0%}" for value in values])
ax.set_xticks(range(len(scalers)), list(scalers))
ax.set(ylabel="accuracy in cross-validation", ylim=(0, 1.3))
ax.legend(ncols=2, loc="upper center")
assert accuracy["SVC"][2] > accuracy["SVC"][0] + 0.1
plt.show()

"""
Learn from batches with partial_fit
===================================

``partial_fit`` learns from one batch after another, without keeping the rows. It keeps
their dual variables, so going over the batches again leads to the model of ``fit``.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.linear_model import SGDClassifier

from dualgap import LinearSVC

X, y = make_classification(
    6000, 30, n_informative=10, flip_y=0.05, class_sep=0.8, random_state=0
)
X_test, y_test = X[:1000], y[:1000]
batches = [(X[k : k + 500], y[k : k + 500]) for k in range(1000, 6000, 500)]

# %%
# Five passes over ten batches, for dualgap and for stochastic gradient descent. Both
# minimise the same function: alpha is 1/(n C) for n rows.

C, n = 0.01, 5000
models = {
    "LinearSVC.partial_fit": LinearSVC(C=C, random_state=0),
    "SGDClassifier.partial_fit": SGDClassifier(alpha=1 / (n * C), random_state=0),
}
errors = {name: [] for name in models}
for _ in range(5):
    for batch in batches:
        for name, model in models.items():
            model.partial_fit(*batch, classes=[0, 1])
            errors[name].append(1 - model.score(X_test, y_test))

# %%
# ``certify`` reads all batches once more and proves how close the model is to the
# optimum of ``fit`` on all rows.

certificate = models["LinearSVC.partial_fit"].certify(batches)
print(certificate.message)

# %%
# Test errors after each batch.

figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
for name, values in errors.items():
    ax.plot(range(1, len(values) + 1), values, ".-", label=name)
held = LinearSVC(C=C, random_state=0).fit(X[1000:], y[1000:])
ax.axhline(1 - held.score(X_test, y_test), color="black", ls=":", label="fit, all rows")
ax.set(xlabel="batches seen (ten are one pass)", ylabel="test error")
ax.legend()
plt.show()

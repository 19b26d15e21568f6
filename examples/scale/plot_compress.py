"""
Make a kernel model smaller
===========================

The time of a prediction grows with the number of support vectors. ``compress`` drops as
many as it can while the model stays within a bound that you choose.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split

from dualgap import SVC, compress

X, y = make_classification(
    1200, 10, n_informative=6, flip_y=0.05, class_sep=0.8, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
model = SVC(C=1.0, random_state=0).fit(X_train, y_train)

# %%
# ``tol`` is the relative gap that the smaller model may have. Its certificate proves
# it.

tols = [1e-3, 0.01, 0.03, 0.1, 0.3]
sizes, scores = [len(model.support_)], [model.score(X_test, y_test)]
for tol in tols[1:]:
    smaller = compress(model, X_train, y_train, tol=tol)
    assert smaller.certificate_.relative_gap <= tol
    sizes.append(len(smaller.support_))
    scores.append(smaller.score(X_test, y_test))
for tol, size, score in zip(tols, sizes, scores, strict=True):
    print(f"within {tol:6.1%}: {size:3} support vectors, test accuracy {score:.1%}")
assert sizes[-1] < sizes[0]

# %%
# How many support vectors a given accuracy needs.

figure, ax = plt.subplots(figsize=(5.6, 3.4), layout="constrained")
bars = ax.bar([f"{tol:.1%}" for tol in tols], sizes)
ax.bar_label(bars, [f"{score:.1%} right" for score in scores], fontsize="small")
ax.set(xlabel="distance to the optimum, at most", ylabel="support vectors")
ax.margins(y=0.1)
plt.show()

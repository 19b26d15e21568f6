"""
Train many classes in three ways
================================

``LinearSVC`` can train one model per class, one per pair of classes, or all of them as
one problem, which is the method of Crammer and Singer.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from dualgap import LinearSVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16.0, y, stratify=y, random_state=0
)

# %%
# Each strategy solves other problems. The certificate is about all problems of a
# strategy together.

found = {}
for strategy, loss in (
    ("ovr", "squared_hinge"),
    ("ovo", "squared_hinge"),
    ("crammer_singer", "hinge"),
):
    model = LinearSVC(C=0.3, loss=loss, multi_class=strategy)
    model.fit(X_train, y_train)
    found[strategy] = model.score(X_test, y_test)
    print(f"{strategy:14} {found[strategy]:.1%}  {model.certificate_.message}")

# %%
# One model per pair draws finer boundaries than one per class. Crammer and Singer's
# method optimises the decision of all ten classes at once.

figure, ax = plt.subplots(figsize=(5.6, 3), layout="constrained")
bars = ax.barh(list(found), [1 - score for score in found.values()])
ax.bar_label(bars, [f"{1 - score:.1%}" for score in found.values()], padding=3)
ax.invert_yaxis()
ax.set(xlabel="share of test digits misread", xlim=(0, 0.08))
plt.show()

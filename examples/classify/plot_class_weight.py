"""
Find a rare class with class weights
====================================

If one row in twenty is positive, a model can be right on 95 % of the rows and find
none of the positive ones. ``class_weight`` makes errors on the rare class expensive.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, precision_score, recall_score
from sklearn.model_selection import train_test_split

from dualgap import LinearSVC

X, y = make_classification(
    4000, 20, n_informative=5, weights=[0.95], class_sep=0.7, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# ``"balanced"`` gives both classes the same total weight. A dictionary sets the weights
# one by one.

scores = {"recall": [], "precision": [], "balanced accuracy": []}
weights = (None, {1: 3.0}, "balanced")
for weight in weights:
    model = LinearSVC(class_weight=weight, random_state=0).fit(X_train, y_train)
    predicted = model.predict(X_test)
    scores["recall"].append(recall_score(y_test, predicted))
    scores["precision"].append(precision_score(y_test, predicted, zero_division=0))
    scores["balanced accuracy"].append(balanced_accuracy_score(y_test, predicted))

# %%
# Recall is the share of positive rows that are found, precision the share of findings
# that are positive. The weights trade one for the other.

figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
for shift, (name, values) in zip((-0.25, 0, 0.25), scores.items(), strict=True):
    ax.bar([i + shift for i in range(len(weights))], values, width=0.25, label=name)
ax.set_xticks(range(len(weights)), ["no weights", "{1: 3.0}", '"balanced"'])
ax.set(xlabel="class_weight", ylabel="score on test rows", ylim=(0, 1.2))
ax.legend(ncols=3, fontsize="small", loc="upper center")
assert scores["recall"][2] > scores["recall"][0]
plt.show()

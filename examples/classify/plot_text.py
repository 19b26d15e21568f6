"""
Classify texts by their words
=============================

Which part of SciPy does a docstring belong to? Every word becomes a column of a sparse
matrix. One linear SVM per class learns from it, each with a certificate of its own.
"""

import inspect

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.stats
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from dualgap import LinearSVC

# %%
# Each public function gives one text. Words that would give the answer away are removed
# below.

PARTS = (scipy.linalg, scipy.optimize, scipy.signal, scipy.stats)
texts, labels = [], []
for part in PARTS:
    for name in part.__all__:
        found = getattr(part, name)
        if inspect.isfunction(found) and found.__doc__:
            texts.append(inspect.getdoc(found))
            labels.append(part.__name__.removeprefix("scipy."))
print({label: labels.count(label) for label in sorted(set(labels))})

# %%
# A quarter of the texts is kept for the test.

words = TfidfVectorizer(
    stop_words=["scipy", "linalg", "optimize", "signal", "stats"], sublinear_tf=True
)
train, test, y_train, y_test = train_test_split(
    texts, labels, test_size=0.25, stratify=labels, random_state=0
)
pipeline = make_pipeline(words, LinearSVC(C=10.0, random_state=0)).fit(train, y_train)
model = pipeline[-1]
for label, certificate in zip(model.classes_, model.certificate_, strict=True):
    print(f"{label:9} {certificate.message}")
print(f"{pipeline.score(test, y_test):.1%} of the test texts are classified correctly")

# %%
# The words with the largest weights for each class.

names = words.get_feature_names_out()
figure, axes = plt.subplots(2, 2, figsize=(6, 4.4), layout="constrained")
for ax, label, coef in zip(axes.flat, model.classes_, model.coef_, strict=True):
    top = np.argsort(coef)[-6:]
    ax.barh(names[top], coef[top])
    ax.set_title(label)
plt.show()

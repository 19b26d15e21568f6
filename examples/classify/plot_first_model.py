"""
Train a first SVM and read its certificate
==========================================

A linear SVM tells benign from malignant tumours. Its certificate says how close the
model is to the best possible one, and the histogram of margins which rows are hard.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import LinearSVC
from dualgap.plot import MarginDisplay

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# The pipeline standardises the features, which an SVM needs.

model = make_pipeline(StandardScaler(), LinearSVC(C=0.1, random_state=0))
model.fit(X_train, y_train)
print(f"test accuracy {model.score(X_test, y_test):.1%}")

# %%
# The optimum of the training problem lies between the two objectives of the
# certificate.

certificate = model[-1].certificate_
print(certificate)
print(f"{certificate.dual:.4f} <= optimum <= {certificate.primal:.4f}")
assert certificate.relative_gap <= 1e-3

# %%
# A row has a loss if its margin is below 1, and is misclassified if its margin is
# negative. These are the margins of the test rows.

figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
MarginDisplay.from_estimator(model, X_test, y_test, support=False, bins=30, ax=ax)
plt.show()

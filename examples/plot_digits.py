"""
Handwritten digits with a kernel
================================

``SVC`` trains a pair of classes at a time, like LIBSVM and scikit-learn, and proves the
accuracy of every pair.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import ConfusionMatrixDisplay
from sklearn.model_selection import train_test_split

from dualgap import SVC

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)

# %%
# Ten classes make 45 pairs, and 45 certificates; the worst is what counts.

model = SVC(C=10.0, random_state=0).fit(X_train, y_train)
worst = max(model.certificate_, key=lambda certificate: certificate.relative_gap)
print(f"{len(model.certificate_)} pairs; the worst: {worst.message}")
print(f"{len(model.support_)} of {len(X_train)} rows are support vectors")
print(f"{model.score(X_test, y_test):.1%} of the test digits are read right")

# %%
# What is taken for what, and the support vectors with the largest dual variables: the
# digits that were hardest to tell from the others.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
ConfusionMatrixDisplay.from_estimator(model, X_test, y_test, ax=left, colorbar=False)
hardest = np.argsort(np.abs(model.dual_coef_).max(axis=0))[-16:]
images = model.support_vectors_[hardest].reshape(4, 4, 8, 8)
right.imshow(images.transpose(0, 2, 1, 3).reshape(32, 32), cmap="gray_r")
right.set_title("hardest digits")
right.axis("off")

"""
Read handwritten digits with an RBF kernel
==========================================

``SVC`` trains one model for each pair of classes, as LIBSVM and scikit-learn do, and
proves the accuracy of each.
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
# Ten classes make 45 pairs, each with a certificate. The worst of them counts.

model = SVC(C=10.0, random_state=0).fit(X_train, y_train)
worst = max(model.certificate_, key=lambda certificate: certificate.relative_gap)
print(f"{len(model.certificate_)} pairs; the worst: {worst.message}")
print(f"{len(model.support_)} of {len(X_train)} rows are support vectors")
print(f"{model.score(X_test, y_test):.1%} of the test digits are read correctly")

# %%
# The confusion matrix counts, for each digit, what the model takes it for.

figure, ax = plt.subplots(figsize=(4.6, 4.2), layout="constrained")
ConfusionMatrixDisplay.from_estimator(model, X_test, y_test, ax=ax, colorbar=False)

# %%
# The support vectors with the largest dual variables are the training digits that were
# hardest to tell from the others.

hardest = np.argsort(np.abs(model.dual_coef_).max(axis=0))[-18:]
figure, axes = plt.subplots(3, 6, figsize=(5.6, 3.2), layout="constrained")
for ax, row in zip(axes.flat, hardest, strict=True):
    ax.imshow(model.support_vectors_[row].reshape(8, 8), cmap="gray_r")
    ax.set_title(y_train[model.support_[row]], fontsize="small")
    ax.axis("off")
plt.show()

# sphinx_gallery_thumbnail_number = 2

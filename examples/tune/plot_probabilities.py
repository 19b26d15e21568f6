"""
Turn decision values into probabilities
=======================================

An SVM gives decision values, not probabilities. ``calibrated`` fits a sigmoid to the
decision values of rows that the model was not trained on (Platt's method).
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.metrics import brier_score_loss
from sklearn.model_selection import train_test_split

from dualgap import SVC, LinearSVC, calibrated

X, y = make_classification(
    4000, 20, n_informative=6, flip_y=0.1, class_sep=0.7, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)

# %%
# A linear model and a kernel model, both calibrated. The inner model still has its
# certificate. Smaller Brier scores are better.

figure, ax = plt.subplots(figsize=(5, 4), layout="constrained")
share = np.mean(y_train)
constant = brier_score_loss(y_test, np.full(len(y_test), share))
print(f"predicting {share:.2f} for every row: Brier score {constant:.3f}")
for estimator in (LinearSVC(C=0.1, random_state=0), SVC(random_state=0)):
    model = calibrated(estimator, X_train, y_train, cv=3)
    probability = model.predict_proba(X_test)[:, 1]
    name = type(estimator).__name__
    print(f"{name}: Brier score {brier_score_loss(y_test, probability):.3f}")
    print(f"    {model.certificate_.message}")
    CalibrationDisplay.from_predictions(y_test, probability, n_bins=8, name=name, ax=ax)
plt.show()

"""
Explain decisions by exact Shapley values
=========================================

``ShapleyDisplay`` draws what each feature adds to a decision, compared with the mean
decision of some background rows.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import SVC
from dualgap.plot import ShapleyDisplay

X, y = load_wine(return_X_y=True, as_frame=True)
model = make_pipeline(StandardScaler(), SVC(tol=1e-6)).fit(X, y == 1)

# %%
# Over many rows, the bars are mean sizes. The black lines enclose the bars of the exact
# optimum.

ShapleyDisplay.from_estimator(model, X[::3], background=X[::6], max_features=8)

# %%
# For one row, the bars add up from the mean decision to the decision of this row.

display = ShapleyDisplay.from_estimator(model, X[70:71], background=X[::6])
decision = model.decision_function(X[70:71])[0]
assert abs(display.values.sum() + display.base - decision) < 1e-6
plt.show()

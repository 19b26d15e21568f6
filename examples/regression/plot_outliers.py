"""
Fit a line that outliers hardly move
====================================

The loss of ``LinearSVR`` grows with the error. Least squares, as the name says, squares
it. So a few rows with wrong targets bend the line of least squares, and hardly move the
other.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LinearRegression

from dualgap import LinearSVR
from dualgap.plot import COLORS

rng = np.random.default_rng(0)
X = rng.uniform(-5, 5, (100, 1))
y = 2.0 * X[:, 0] + rng.normal(size=100)
wrong = X[:, 0] > 4.5
y[wrong] -= 40

# %%
# The targets of all rows beyond 4.5 are wrong. The true slope is 2.

models = {
    "LinearSVR": LinearSVR(C=10.0, random_state=0),
    "least squares": LinearRegression(),
}
slopes = {}
for name, model in models.items():
    slopes[name] = np.ravel(model.fit(X, y).coef_)[0]
    print(f"{name:13} slope {slopes[name]:.2f}")
print(models["LinearSVR"].certificate_.message)
assert abs(slopes["LinearSVR"] - 2) < 0.2 < abs(slopes["least squares"] - 2)

# %%
# The two lines.

figure, ax = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
ax.plot(X[~wrong], y[~wrong], ".", color="0.6")
ax.plot(X[wrong], y[wrong], "x", color=COLORS[3], label="wrong targets")
ends = np.array([[-5.0], [5.0]])
for name, model in models.items():
    ax.plot(ends, model.predict(ends), label=f"{name}, slope {slopes[name]:.2f}")
ax.set(xlabel="x", ylabel="y")
ax.legend()
plt.show()

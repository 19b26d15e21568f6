"""
Compare the decision boundaries of four kernels
===============================================

Two half moons cannot be separated by a line. The kernel decides which curves ``SVC``
can draw between them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.inspection import DecisionBoundaryDisplay

from dualgap import SVC

X, y = make_moons(300, noise=0.2, random_state=0)

# %%
# Every model is certified, so a boundary shows the kernel and not a fit that stopped
# too early.

figure, axes = plt.subplots(2, 2, figsize=(6, 5), layout="constrained")
for ax, kernel in zip(axes.flat, ("linear", "poly", "rbf", "laplacian"), strict=True):
    model = SVC(C=10.0, kernel=kernel, coef0=1.0, random_state=0).fit(X, y)
    assert model.certificate_.certified
    DecisionBoundaryDisplay.from_estimator(
        model, X, plot_method="pcolormesh", cmap="RdBu", alpha=0.4, ax=ax
    )
    ax.scatter(*X.T, c=y, cmap="RdBu", s=8, edgecolors="black", linewidths=0.3)
    ax.set(title=f"{kernel}: {model.score(X, y):.0%} right", xticks=[], yticks=[])
    print(f"{kernel:9} {len(model.support_):3} support vectors")
plt.show()

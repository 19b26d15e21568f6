"""
Compare the decision boundaries of four kernels
===============================================

Two half moons cannot be separated by a line. The kernel decides which curves ``SVC``
can draw between them.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from dualgap import SVC
from dualgap.plot import BoundaryDisplay

X, y = make_moons(300, noise=0.2, random_state=0)

# %%
# Every model is certified, so a boundary shows the kernel and not a fit that stopped
# too early. The dashed lines are the margins, where ``decision_function`` is -1 and 1.

figure, axes = plt.subplots(2, 2, figsize=(7, 6), layout="constrained")
for ax, kernel in zip(axes.flat, ("linear", "poly", "rbf", "laplacian"), strict=True):
    model = SVC(C=10.0, kernel=kernel, coef0=1.0, random_state=0).fit(X, y)
    assert model.certificate_.certified
    BoundaryDisplay.from_estimator(model, X, y, support=False, ax=ax)
    ax.set(title=f"{kernel}: {model.score(X, y):.0%} right", xlabel="", ylabel="")
    print(f"{kernel:9} {len(model.support_):3} support vectors")
plt.show()

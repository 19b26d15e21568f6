"""
Ask what if rows had not been there
===================================

Somebody asks for their rows to be deleted from a model. ``what_if`` bounds the optimum
without them before anything is trained again, and ``refit`` then trains with a proof.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from dualgap import LinearSVC
from dualgap.models import influence, what_if
from dualgap.plot import COLORS

X, y = load_breast_cancer(return_X_y=True)
X = scale(X)
model = LinearSVC(0.05, tol=1e-9, random_state=0).fit(X, y)

# %%
# Without ten support vectors the optimum moves, but not far: the bounds on the weights
# and on the labels hold for every exact optimum without these rows.

rows = np.random.default_rng(0).choice(model.support_, 10, replace=False)
change = what_if(model, X, y, without=rows)
print(change)
print(f"{change.certified_labels(X).mean():.2%} of the labels surely stay")

# %%
# The certificate of ``refit`` says that the result equals training from the beginning
# without these rows, within its tolerance.

again = change.refit()
print(again.certificate_.message)

# %%
# The weights of the refit are inside the bounds that were known before it.

lower, upper = (bound[0] for bound in change.coef_bounds())
assert np.all((lower <= again.coef_[0]) & (again.coef_[0] <= upper))
at = np.arange(len(lower))
figure, axes = plt.subplots(figsize=(5.6, 3.6), layout="constrained")
axes.vlines(at, lower, upper, color=COLORS[0], linewidth=4, label="bounds")
axes.plot(at, model.coef_[0], "_", color="gray", label="before")
axes.plot(at, again.coef_[0], "k.", label="after the refit")
axes.set(xlabel="feature", ylabel="weight")
axes.legend()

# %%
# ``influence`` turns the question round: which single rows could flip a prediction?

flips = influence(model, X, y, X)
print(f"{flips.any(axis=0).sum()} of {len(y)} rows could flip a label alone")
plt.show()

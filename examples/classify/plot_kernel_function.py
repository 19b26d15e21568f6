"""
Compare words with a kernel of your own
=======================================

A kernel matrix is all that ``SVC`` needs. Here the rows are words, which are similar if
they share pieces of two letters, and the model learns whether a name belongs to a
function of ``numpy.linalg`` or of ``numpy.random``.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.model_selection import cross_val_predict

from dualgap import SVC

words, y = [], []
for label, part in enumerate((np.linalg, np.random)):
    names = [n for n in dir(part) if n.islower() and not n.startswith("_")]
    words += names
    y += [label] * len(names)
y = np.array(y)

# %%
# The kernel counts common pieces. Words are divided by their norms, or long ones would
# be similar to everything.

pieces = [{f" {word} "[i : i + 2] for i in range(len(word) + 1)} for word in words]
K = np.array([[len(a & b) for b in pieces] for a in pieces], dtype=float)
K /= np.sqrt(np.outer(K.diagonal(), K.diagonal()))

# %%
# dualgap checks that the matrix is positive semidefinite, because the certificate of
# an indefinite matrix would prove nothing.

model = SVC(kernel="precomputed", C=1.0, random_state=0).fit(K, y)
print(model.certificate_.message)
predicted = cross_val_predict(model, K, y, cv=5)
print(f"{np.mean(predicted == y):.0%} of {len(y)} names are classified correctly")

# %%
# The kernel matrix, with the names of ``numpy.linalg`` first. Bright blocks are
# families of names that share a word.

order = np.argsort(y, kind="stable")
figure, ax = plt.subplots(figsize=(5.6, 4.4), layout="constrained")
image = ax.imshow(K[np.ix_(order, order)], cmap="magma", vmax=0.6)
border = np.sum(y == 0) - 0.5
ax.axhline(border, color="white", linewidth=0.8)
ax.axvline(border, color="white", linewidth=0.8)
ax.set_title("similarity of names: numpy.linalg, then numpy.random", fontsize="medium")
figure.colorbar(image, ax=ax)
plt.show()

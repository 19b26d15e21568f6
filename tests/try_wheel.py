"""Train from an installed wheel: `make wheel`."""

from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

import dualgap

dualgap.show_versions()
X, y = load_breast_cancer(return_X_y=True)
model = dualgap.LinearSVC(tol=1e-4).fit(StandardScaler().fit_transform(X), y)
print(f"\n{model.certificate_}")
assert 0 <= model.certificate_.relative_gap <= 1e-4

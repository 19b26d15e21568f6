"""gamma="scale" is scikit-learn's: one over d times the variance of all rows."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.model_selection
import sklearn.svm
from scipy import sparse
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualgap
from dualgap.estimators import drop_ins
from dualgap.kernel import RBF
from dualgap.model_selection import GridSearchCV

N, D = 90, 4
LAYOUTS = {
    "C": np.ascontiguousarray,
    "Fortran": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "list": lambda X: X.tolist(),
    "CSR": sparse.csr_matrix,
    "CSC": sparse.csc_array,
    "CSR of float32": lambda X: sparse.csr_array(X.astype(np.float32)),
}
WEIGHTS = {
    "none": None,
    "half are 0": np.arange(N) % 2.0,
    "a fold": np.where(np.arange(N) < 60, 1.0, 0.0),
    "counts": np.arange(N) % 4.0,
    "fractions": np.linspace(0.1, 3.0, N),
}
#: Parameters of the kernels, for which the matrix is positive semidefinite.
KERNELS = {
    "rbf": {},
    "poly": {"coef0": 1.0},
    "linear": {},
    "laplacian": {},
    "sigmoid": {},
}
NAMES = ("SVC", "SVR", "OneClassSVM")


def table() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows that differ in scale, so that weights would change the variance."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, D)) * np.geomspace(0.1, 10.0, N)[:, None]
    X[::3, 1] = 0.0
    rng.shuffle(X)
    return X, (X[:, 0] > X[:, 1]).astype(int), X @ np.arange(D) + 1.0


def fitted(model, X, labels, targets, weight):
    if not hasattr(model, "classes_") and "epsilon" in model.get_params():
        return model.fit(X, targets, weight)
    classifier = sklearn.base.is_classifier(model)
    return model.fit(X, labels if classifier else None, sample_weight=weight)


@pytest.mark.cases(None)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("weight", list(WEIGHTS))
@pytest.mark.parametrize("layout", list(LAYOUTS))
@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "sigmoid"])
@pytest.mark.parametrize("name", NAMES)
def test_rows_count_equally_whatever_their_weights(name, kernel, layout, weight):
    X, labels, targets = table()
    rows, given = LAYOUTS[layout](X), WEIGHTS[weight]
    expected = 1.0 / (D * np.asarray(X.astype(np.float32), float).var())
    own = getattr(dualgap, name)(kernel=kernel, **KERNELS[kernel])
    if kernel == "sigmoid" and name != "SVC":  # its matrix is indefinite
        found = own._kernel_record().resolve(np.asarray(X)).gamma
    else:
        found = fitted(own, rows, labels, targets, given)._fitted_kernel.gamma
    assert found == pytest.approx(expected, rel=1e-6)
    if kernel == "laplacian":
        return
    for other in (getattr(sklearn.svm, name), getattr(drop_ins, name)):
        model = fitted(
            other(kernel=kernel, **KERNELS[kernel]), rows, labels, targets, given
        )
        tight = 1e-6 if kernel == "sigmoid" and name != "SVC" else 1e-12
        assert found == pytest.approx(model._gamma, rel=tight)


@pytest.mark.parametrize("layout", ["C", "CSR", "float32"])
@pytest.mark.parametrize("weight", list(WEIGHTS))
def test_paths_searches_and_landmarks(weight, layout):
    X, labels, targets = table()
    rows, given = LAYOUTS[layout](X), WEIGHTS[weight]
    expected = 1.0 / (D * np.asarray(rows.toarray() if layout == "CSR" else rows).var())
    path = dualgap.model_selection.svc_path(
        rows, labels, [1.0, 2.0], sample_weight=given
    )
    landmarks = dualgap.SVC(solver="nystroem", random_state=0)
    models = [path.model(1), landmarks.fit(rows, labels, given)]
    for search, y in ((dualgap.SVCCV, labels), (dualgap.SVRCV, targets)):
        models.append(search([1.0, 2.0], cv=3).fit(rows, y, given).best_estimator_)
    for model in models:
        rel = 1e-6 if layout == "float32" else 1e-12
        assert model._fitted_kernel.gamma == pytest.approx(expected, rel=rel)


FOLDS = {
    "folds": sklearn.model_selection.StratifiedKFold(3),
    # neither part is the rest of the other one, and rows repeat
    "given": [
        (np.r_[0:50, 0:10], np.arange(40, 80)),
        (np.arange(30, 90), np.arange(20)),
    ],
}


@pytest.mark.cases(None)
@pytest.mark.parametrize("weight", list(WEIGHTS))
@pytest.mark.parametrize("folds", list(FOLDS))
@pytest.mark.parametrize("steps", [False, True])
@pytest.mark.parametrize("name", ["SVC", "SVR"])
def test_a_search_computes_it_for_every_fold(name, steps, folds, weight):
    """The scorer returns the value of gamma itself."""
    X, labels, targets = table()
    y = labels if name == "SVC" else targets
    if name == "SVR" and folds == "folds":
        folds = 3
    given = WEIGHTS[weight]

    def gamma(model, X, y, sample_weight=None):
        model = model[-1] if steps else model
        kernel = getattr(model, "_fitted_kernel", None)
        return model._gamma if kernel is None else kernel.gamma

    found = []
    for search, package in (
        (GridSearchCV, dualgap),
        (sklearn.model_selection.GridSearchCV, sklearn.svm),
    ):
        model, prefix = getattr(package, name)(), ""
        if steps:
            prefix = f"{name.lower()}__"
            model = make_pipeline(StandardScaler(), model)
        options = {} if given is None else {f"{prefix}sample_weight": given}
        search = search(
            model,
            {f"{prefix}C": [1.0, 2.0]},
            cv=FOLDS.get(folds, folds),
            scoring=gamma,
            refit=False,
        )
        table_ = search.fit(X, y, **options).cv_results_
        found.append([v for k, v in table_.items() if k.endswith("_test_score")][:-3])
    np.testing.assert_allclose(*found, rtol=1e-12)
    if not steps:
        assert len({float(one[0]) for one in found[0]}) > 1


def test_a_sparse_matrix_far_from_zero():
    """The formula of scikit-learn for sparse rows would cancel here."""
    X, _, _ = table()
    X += 1e9
    dense = RBF().resolve(X).gamma
    assert RBF().resolve(sparse.csr_matrix(X)).gamma == pytest.approx(dense, rel=1e-6)

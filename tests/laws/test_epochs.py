"""Fits keep their limits of epochs, with a certificate of the model they return."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn import svm
from sklearn.base import is_classifier
from sklearn.datasets import make_classification

from dualgap import (
    SVC,
    SVCCV,
    SVRCV,
    LinearSVC,
    LinearSVCCV,
    certify,
    patch_sklearn,
)
from dualgap.certificate import Certificate
from dualgap.estimators import grid_search, search
from dualgap.estimators.drop_ins import DROP_INS
from dualgap.kernel import APPROXIMATIONS, RBF, KernelSimplex
from dualgap.model_selection import GridSearchCV, svc_path, svm_path
from dualgap.solvers import SOLVERS, get_solver, solvers_of
from dualgap.training import solve

from .subjects import SUBJECTS, Subject, every

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

LIMITS = range(1, 8)


def fitted(model: Any, limit: int, n_classes: int) -> tuple[Any, Any, Any]:
    """Fit a model to data of its own for each limit, and return all three."""
    X, y = make_classification(
        60, 6, n_informative=4, n_classes=n_classes, flip_y=0.2, random_state=limit
    )
    if not is_classifier(model):
        y = X[:, 0] + np.sin(X[:, 1])
    return model.fit(X, y), X, y


def losses(subject: Subject) -> list[dict[str, Any]]:
    """Return the losses that its solver trains, or no option."""
    solver = SOLVERS.get(subject.options.get("solver", ""))
    if not subject.classifies or solver is None:
        return [{}]
    return [{"loss": k} for k in ("hinge", "squared_hinge") if k in solver.losses]


@pytest.mark.cases(15)
@every(labels=False)
def test_no_fit_makes_more_epochs_than_its_limit(name: str) -> None:
    subject = SUBJECTS[name]
    for limit, loss in product(LIMITS, losses(subject)):
        for C, classes in ((100.0, 2), (1.0, 3)):
            more = loss | ({"C": C} if subject.has("C") else {})
            model, X, y = fitted(subject.make(max_iter=limit, **more), limit, classes)
            assert 1 <= np.max(model.n_iter_) <= limit
            assert np.max(model.n_iter_) == most_epochs([model.certificate_])
            told = {part.solver.split(":")[0] for part in model.certificate_.parts}
            asked = subject.options.get("solver")
            # The features of landmarks are trained by "auto".
            assert asked in (None, "nystroem") or told == {asked}
            histories = model.history_
            for history in histories if isinstance(histories, list) else [histories]:
                assert history["epoch"].max() <= limit
            check_certificate(model, X, y)


def most_epochs(certificates: list[Certificate]) -> int:
    return max(part.epochs for whole in certificates for part in whole.parts)


def check_certificate(model: Any, X: Any, y: Any, weight: Any = None) -> None:
    """Check that P of the certificate is the objective of the model."""
    known, again = model.certificate_, certify(model, X, y, sample_weight=weight)
    assert known.primal >= again.dual
    assert again.primal >= known.dual
    # The features of landmarks are float32.
    rel = 1e-6 if getattr(model, "solver", "") in APPROXIMATIONS else 1e-9
    # P is that of other rows, or `certify` finds a better length of the same plane.
    if not known.about and type(model).__name__ != "NuSVC":
        assert known.primal == pytest.approx(again.primal, rel=rel, abs=1e-12)


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", DROP_INS)
def test_no_patched_fit_makes_more_epochs_than_max_iter(name: str) -> None:
    with patch_sklearn():
        kind = getattr(svm, name)
    for limit in LIMITS:
        for C, classes in ((100.0, 2), (1.0, 3)):
            model = kind(max_iter=limit)
            if "C" in model.get_params():
                model.set_params(C=C)
            model, X, y = fitted(model, limit, classes)
            assert 1 <= np.max(model.n_iter_) <= limit
            assert np.max(model.n_iter_) == most_epochs([model.certificate_])
            check_certificate(model, X, y)


SEARCHES = {
    "LinearSVCCV": lambda limit: LinearSVCCV(max_iter=limit, random_state=0),
    "SVCCV": lambda limit: SVCCV(max_iter=limit, random_state=0),
    "SVCCV-nystroem": lambda limit: SVCCV(
        solver="nystroem", max_iter=limit, random_state=0
    ),
    "SVRCV": lambda limit: SVRCV(max_iter=limit, random_state=0),
    "GridSearchCV-LinearSVC": lambda limit: GridSearchCV(
        LinearSVC(max_iter=limit, random_state=0), {"C": [0.1, 10.0]}
    ),
    "GridSearchCV-SVC": lambda limit: GridSearchCV(
        SVC(max_iter=limit, random_state=0), {"C": [0.1, 10.0]}
    ),
}


@pytest.mark.cases(2)
@pytest.mark.parametrize("name", SEARCHES)
def test_no_model_of_a_search_has_more_epochs(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    met: list[Certificate] = []
    for module in (search, grid_search):
        monkeypatch.setattr(
            module,
            "warn_of_models",
            lambda _, found, **__: met.extend(dict(found).values()),
        )
    for limit in LIMITS:
        met.clear()
        model, *_ = fitted(SEARCHES[name](limit), limit, 2)
        assert len(met) >= 10
        assert most_epochs([*met, model.best_estimator_.certificate_]) <= limit


@pytest.mark.parametrize("path", [svm_path, svc_path], ids=["svm", "svc"])
def test_no_model_of_a_path_has_more_epochs(path: Callable[..., Any]) -> None:
    X, y = make_classification(60, 6, flip_y=0.2, n_classes=2, random_state=0)
    for limit in LIMITS:
        found = path(X, y, max_iter=limit, random_state=0)
        assert most_epochs(found.certificates) <= limit


@pytest.mark.cases(None)
@pytest.mark.parametrize("solver", solvers_of("kernel-simplex"))
def test_no_fit_on_the_simplex_has_more_epochs(solver: str) -> None:
    X, _ = make_classification(60, 6, random_state=0)
    for limit in LIMITS:
        problem = KernelSimplex(X, kernel=RBF(0.1))
        solution = solve(problem, get_solver(solver, problem.kind), max_iter=limit)
        assert 1 <= solution.certificate.epochs <= limit

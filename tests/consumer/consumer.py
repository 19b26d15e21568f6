"""A program that uses dualgap, checked by mypy and pyright, both strict: `make lint`.

Lines with an ignore are mistakes that a checker must find: both report an ignore that
hides no error. mypy cannot know the names of parameters, because scikit-learn has no
types and dualgap's estimators derive from its.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dualgap import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    OneClassSVM,
    certify,
    load_model,
    save_model,
)
from dualgap.certificate import Certificate
from dualgap.kernel import RBF
from dualgap.model_selection import svm_path
from dualgap.problems import BinaryProblem
from dualgap.solvers import DCD, Pegasos
from dualgap.training import Solution, solve

Floats = NDArray[np.float64]


def fit(X: Floats, y: NDArray[np.int64]) -> float:
    model = LinearSVC(C=0.5, loss="hinge", solver=DCD(), time_limit=10.0).fit(X, y)
    certificate: Certificate = model.certificate_
    gap: float = certificate.relative_gap
    if not certificate.certified:
        print(certificate.message)
    assert model.predict(X).shape == y.shape
    return gap


def mistakes() -> None:
    LinearSVC(loss="hinges")  # type: ignore[arg-type]
    LinearSVC(multi_class="one")  # type: ignore[arg-type]
    LinearSVC(c=1.0)  # pyright: ignore[reportCallIssue]
    SVC(kernel=3)  # type: ignore[arg-type]
    LinearSVR(loss="hinge")  # type: ignore[arg-type]
    LogisticRegression(penalties="l1")  # pyright: ignore[reportCallIssue]


def others(X: Floats, y: Floats) -> list[Certificate]:
    classifier = SVC(C=10.0, kernel=RBF(gamma=0.5)).fit(X, y > 0)
    models = [
        SVR(epsilon=0.1, gamma="scale").fit(X, y),
        LinearSVR(loss="squared_epsilon_insensitive").fit(X, y),
        OneClassSVM(nu=0.1).fit(X),
        LinearOneClassSVM(nu=0.1).fit(X),
    ]
    scores: Floats = classifier.decision_function(X)
    assert scores.ndim == 1
    found = [model.certificate_ for model in models]
    probability: Floats = LogisticRegression().fit(X, y > 0).predict_proba(X)
    assert probability.ndim == 2
    return [*found, classifier.certificate_]


def files(model: LinearSVC, path: Path, X: Floats, y: Floats) -> Certificate:
    save_model(model, path)
    loaded = load_model(path)
    certificate = certify(loaded, X, y)
    bounds: tuple[float, float] = certificate.dual, certificate.primal
    assert bounds[0] <= bounds[1]
    return certificate


def below(X: Floats, y: NDArray[np.int8]) -> Floats:
    problem = BinaryProblem(X, y, 1.0, loss="squared_hinge")
    solution: Solution = solve(problem, Pegasos(), tol=1e-3)
    path = svm_path(X, y, Cs=[0.1, 1.0])
    gaps: list[float] = [found.relative_gap for found in path.certificates]
    assert gaps
    return solution.w

"""The laws are about every estimator, in its kinds and with each of its solvers.

A law is a test over this table. A new estimator or kind of model gets a row here, and
no tests of its own about seeds, threads, copies, files, limits, layouts or weights.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import make_classification

from dualgap import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
)
from dualgap.kernel import APPROXIMATIONS, KERNEL_SOLVERS, RBF, Polynomial
from dualgap.losses import SmoothedHinge
from dualgap.solvers import SOLVERS, solvers_of


def rows(n: int, d: int = 8, classes: int = 3) -> tuple[Any, Any]:
    """Return noisy rows around a point off the origin, and names of classes."""
    X, codes = make_classification(
        n, d, n_informative=5, n_classes=classes, flip_y=0.2, random_state=0
    )
    return X + 1.0, np.array(["ant", "bee", "cat"])[codes]


X, NAMES = rows(90)


@dataclass(frozen=True)
class Subject:
    """An estimator with its options, and what it is fitted to."""

    kind: Any
    options: dict[str, Any] = field(default_factory=dict)
    labels: bool = False  # a table of labels, a column for each

    def make(self, **more: Any) -> Any:
        return self.kind(**(self.options | more))

    def has(self, *names: str) -> bool:
        """Whether the estimator has all these parameters."""
        return set(names) <= inspect.signature(self.kind).parameters.keys()

    @property
    def classifies(self) -> bool:
        return is_classifier(self.kind())

    def target(self, X: Any, names: Any) -> Any:
        """Return what it learns about rows whose classes have these names."""
        if self.labels:
            return np.column_stack([names == name for name in ("ant", "bee", "cat")])
        return names if self.classifies else X[:, 0] + np.sin(X[:, 1])


HINGE = {"loss": "hinge"}
SQUARED = {"loss": "squared_hinge"}
QUANTILES = {"loss": "quantile", "quantile": [0.1, 0.9]}
SUBJECTS: dict[str, Subject] = {
    "LinearSVC": Subject(LinearSVC),
    **{
        f"LinearSVC, {solver}": Subject(LinearSVC, HINGE | {"solver": solver})
        for solver in sorted(SOLVERS)
    },
    "LinearSVC, smoothed": Subject(LinearSVC, {"loss": SmoothedHinge(gamma=0.3)}),
    "LinearSVC, free bias": Subject(
        LinearSVC, {"penalize_intercept": False, "solver": "dcd"}
    ),
    "LinearSVC, pairs": Subject(LinearSVC, {"multi_class": "ovo"}),
    "LinearSVC, joint": Subject(LinearSVC, HINGE | {"multi_class": "crammer_singer"}),
    "LinearSVC, labels": Subject(LinearSVC, labels=True),
    "LinearSVC, L1": Subject(LinearSVC, {"penalty": "l1"}),
    "LogisticRegression": Subject(LogisticRegression),
    "LogisticRegression, labels": Subject(LogisticRegression, labels=True),
    "LogisticRegression, L1": Subject(LogisticRegression, {"l1_ratio": 1.0}),
    "LogisticRegression, elastic net": Subject(LogisticRegression, {"l1_ratio": 0.4}),
    "LinearSVR": Subject(LinearSVR),
    "LinearSVR, dcd": Subject(LinearSVR, {"solver": "dcd"}),
    "LinearSVR, interior-point": Subject(
        LinearSVR, {"loss": "epsilon_insensitive", "solver": "interior-point"}
    ),
    "LinearSVR, smoothing-newton": Subject(
        LinearSVR, {"loss": "epsilon_insensitive", "solver": "smoothing-newton"}
    ),
    "LinearSVR, newton": Subject(
        LinearSVR, {"loss": "squared_epsilon_insensitive", "solver": "newton"}
    ),
    "LinearSVR, quantiles": Subject(LinearSVR, QUANTILES),
    "LinearOneClassSVM": Subject(LinearOneClassSVM),
    "SVC": Subject(SVC),
    "SVC, block": Subject(SVC, {"solver": "block"}),
    **{
        f"SVC, {solver}": Subject(SVC, SQUARED | {"solver": solver})
        for solver in sorted(KERNEL_SOLVERS | APPROXIMATIONS)
    },
    "SVC, linear": Subject(SVC, {"kernel": "linear"}),
    "SVC, poly": Subject(SVC, {"kernel": "poly", "degree": 2, "coef0": 1.0}),
    "SVC, laplacian": Subject(SVC, {"kernel": "laplacian"}),
    "SVC, votes": Subject(
        SVC,
        {
            "kernel": Polynomial(degree=2, gamma=0.1),
            "decision_function_shape": "ovo",
            "cache_size": 10,
        },
    ),
    "SVC, balanced": Subject(
        SVC,
        {
            "kernel": RBF(gamma=0.2),
            "class_weight": "balanced",
            "break_ties": True,
        },
    ),
    "SVR": Subject(SVR),
    "SVR, block": Subject(SVR, {"solver": "block"}),
    "SVR, quantiles": Subject(SVR, QUANTILES),
    "OneClassSVM": Subject(OneClassSVM, {"nu": 0.3}),
    "NuSVC": Subject(NuSVC, {"nu": 0.3}),
    "NuSVR": Subject(NuSVR),
}
ESTIMATORS = list(dict.fromkeys(subject.kind for subject in SUBJECTS.values()))
#: These converge like 1/t, and so make few epochs here, and no proof.
SLOW = {
    *(f"LinearSVC, {name}" for name in ("norma", "pegasos", "svmsgd")),
    *(f"LinearSVC, {name}" for name in ("sgd-m", "sgd-qn", "sgd-r", "sgd-s")),
    *(f"SVC, {name}" for name in ("fw", "kernel-pegasos", "nystroem")),
}


def test_no_solver_is_missing() -> None:
    """Every registered solver of an estimator is a subject, by its name or as auto."""
    used = {s.options.get("solver", "auto") for s in SUBJECTS.values()}
    kinds = ("binary", "kernel", "kernel-regression", "kernel-one-class", "regression")
    assert used >= {name for kind in kinds for name in solvers_of(kind)}


def every(*without: str, **having: Any) -> pytest.MarkDecorator:
    """Parametrize a law by the subjects with these attributes, without some names."""
    return pytest.mark.parametrize(
        "name",
        [name for name, s in SUBJECTS.items() if name not in without
         and all(getattr(s, key) == value for key, value in having.items())],
    )  # fmt: skip


def certificates(model: Any) -> list[Any]:
    """Return the certificates of all problems of a model."""
    return list(model.certificate_.parts)


def overlap(one: Any, other: Any, tol: float) -> None:
    """Check that two fits of one problem prove the same optimum to `tol`."""
    for a, b in zip(certificates(one), certificates(other), strict=True):
        assert a.certified
        assert b.certified
        room = 1e-12 * max(abs(a.primal), abs(b.primal))
        assert a.dual <= b.primal + room
        assert b.dual <= a.primal + room
        assert max(a.relative_gap, b.relative_gap) <= tol


def values(model: Any, X: Any) -> dict[str, Any]:
    """Return all that a model says about rows."""
    names = ("predict", "decision_function", "predict_proba", "score_samples")
    return {name: getattr(model, name)(X) for name in names if hasattr(model, name)}


def bits(model: Any, X: Any) -> dict[str, Any]:
    """Return the numbers of a model but for its times, and what it says about rows."""
    kept = {
        name: (value + 0.0 if value.dtype.kind == "f" else value).tobytes()  # not -0.0
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and "time" not in name
        and name not in ("history_", "feature_names_in_")
        and isinstance(value, np.ndarray) and value.dtype != object
    }  # fmt: skip
    assert kept
    kept |= {name: value.tobytes() for name, value in values(model, X).items()}
    found = model.history_
    fields = ["epoch", "primal", "dual", "exact", "updates"]
    for k, part in enumerate(found if isinstance(found, list) else [found]):
        kept[f"history {k}"] = repr(part[fields].tolist())
    return kept | {"bounds": repr([part.bounds for part in certificates(model)])}

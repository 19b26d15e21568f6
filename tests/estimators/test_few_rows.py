"""Few plain rows skip scikit-learn's checks, with the same results and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator

from dualgap import SVC, SVR, LinearSVC, LinearSVR, LogisticRegression
from dualgap.estimators import input as rows

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
MODELS: list[Callable[[], BaseEstimator]] = [
    LinearSVC,
    LinearSVR,
    LogisticRegression,
    SVC,
    SVR,
]


def labels(n_classes: int = 2) -> np.ndarray:
    return np.digitize(X[:, 0], np.linspace(-0.5, 0.5, n_classes - 1))


def outcome(model: BaseEstimator, given: object) -> object:
    """The result of a prediction, or its error and warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            found: object = model.predict(given).tolist()
        except (ValueError, TypeError) as error:
            found = type(error), str(error)
    return found, [str(one.message) for one in heard]


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_few_rows_have_the_results_and_errors_of_the_checks(
    kind: Callable[[], BaseEstimator], n_classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = pd.DataFrame(X, columns=list("abcd"))
    models = [kind().fit(X, labels(n_classes)), kind().fit(names, labels(n_classes))]
    wrong = X[:3].copy()
    wrong[1, 2] = np.nan
    given: list[object] = [
        X[:1], X[:7], X[:3].astype(np.float32), X[:3].astype(np.int64), X[:3, ::-1],
        X[:3].tolist(), X[:0], X[:3, :3], X[0], wrong, np.where(wrong > 0, np.inf, 1.0),
        np.full((2, 4), 1e308), X[:3].astype(object), names[:3], np.array(["a"] * 4),
        np.ma.masked_array(X[:3], X[:3] > 0),
    ]  # fmt: skip
    for model in models:
        short = [outcome(model, one) for one in given]
        with monkeypatch.context() as patched:
            patched.setattr(rows, "_is_plain", lambda *args, **options: False)
            assert short == [outcome(model, one) for one in given]

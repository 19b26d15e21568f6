"""SVMs inside meta-estimators, with the rows and labels that each was trained on."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, BaggingRegressor
from sklearn.model_selection import check_cv
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.utils import _safe_indexing
from sklearn.utils.metaestimators import _safe_split
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ..estimators.meta import unwrap


class Member(NamedTuple):
    """A model, and the data that it was trained on."""

    #: What it was trained for, such as "class 3"; empty for a model on its own.
    name: str
    model: BaseEstimator  # or the coefficients of a linear model
    X: ArrayLike
    y: ArrayLike | None
    sample_weight: ArrayLike | None

    def named(self, outer: str) -> Member:
        """Return the member with the name of the ensemble around it before its own."""
        return self._replace(name=f"{outer}, {self.name}" if self.name else outer)


def members_of(given: Member) -> Iterator[Member]:
    """Yield the models inside pipelines, searches and ensembles.

    `given`: a model of any kind, with its training data. Any estimator that is not made
    of members is yielded as it is. Raises ValueError if the data of a member cannot be
    found out.
    """
    model, X = unwrap(given.model, given.X)
    given = given._replace(model=model, X=X)
    for kind, split in _SPLITS.items():
        if isinstance(model, kind):
            check_is_fitted(model)
            for member in split(given):
                yield from (inner.named(member.name) for inner in _inner(member))
            return
    yield given


def _inner(member: Member) -> Iterator[Member]:
    yield from members_of(member._replace(name=""))


def _one_versus_rest(given: Member) -> Iterator[Member]:
    columns = given.model.label_binarizer_.transform(given.y)
    if not isinstance(columns, np.ndarray):
        columns = columns.toarray()
    model = given.model
    classes = model.classes_ if columns.shape[1] > 1 else model.classes_[1:]
    for name, y, part in zip(classes, columns.T, model.estimators_, strict=True):
        if len(np.unique(y)) == 2:  # else the part is a constant
            yield given._replace(name=f"class {name}", model=part, y=y)


def _one_versus_one(given: Member) -> Iterator[Member]:
    classes, y = given.model.classes_, np.asarray(given.y)
    pairs = combinations(range(len(classes)), 2)
    for (i, j), part in zip(pairs, given.model.estimators_, strict=True):
        rows = np.flatnonzero((y == classes[i]) | (y == classes[j]))
        yield _on_rows(given, rows)._replace(
            name=f"{classes[i]} against {classes[j]}",
            model=part,
            y=(y[rows] == classes[j]).astype(int),
        )


def _bagged(given: Member) -> Iterator[Member]:
    if given.sample_weight is not None:
        raise ValueError(
            "sample_weight does not tell which rows a bagging ensemble drew; leave it "
            "out"
        )
    model, y = given.model, np.asarray(given.y)
    if hasattr(model, "classes_"):
        y = np.searchsorted(model.classes_, y)
    drawn = zip(
        model.estimators_,
        model.estimators_samples_,
        model.estimators_features_,
        strict=True,
    )
    for number, (part, rows, features) in enumerate(drawn):
        one = given._replace(name=f"estimator {number}", model=part, y=y)
        if has_fit_parameter(part, "sample_weight"):
            counts = np.bincount(rows, minlength=len(y)).astype(float)
            one = one._replace(sample_weight=counts)
        else:
            one = _on_rows(one, rows)
        yield one._replace(X=_safe_indexing(one.X, features, axis=1))


def _calibrated(given: Member) -> Iterator[Member]:
    model = given.model
    parts = [pair.estimator for pair in model.calibrated_classifiers_]
    if len(parts) == 1:
        yield given._replace(name="", model=parts[0])
        return
    folds = check_cv(model.cv, given.y, classifier=True)
    if getattr(folds, "shuffle", False) and not isinstance(folds.random_state, int):
        raise ValueError(
            f"the folds of cv={folds!r} cannot be drawn again; fit "
            f"{type(model).__name__} with an int as random_state of the folds"
        )
    splits = zip(folds.split(given.X, given.y), parts, strict=True)
    for number, ((rows, _), part) in enumerate(splits):
        yield _on_rows(given, rows)._replace(name=f"fold {number}", model=part)


def _on_rows(given: Member, rows: NDArray[np.intp]) -> Member:
    """Return the member on some of its rows."""
    X, y = _safe_split(given.model, given.X, given.y, rows)
    weight = given.sample_weight
    weight = None if weight is None else np.asarray(weight)[rows]
    return given._replace(X=X, y=y, sample_weight=weight)


_SPLITS = {
    OneVsRestClassifier: _one_versus_rest,
    OneVsOneClassifier: _one_versus_one,
    (BaggingClassifier, BaggingRegressor): _bagged,
    CalibratedClassifierCV: _calibrated,
}

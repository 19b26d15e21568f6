"""A warm start goes on from the last fit, its pickle or its file."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap import load_model, save_model

from .subjects import NAMES, SLOW, SUBJECTS, X, certificates, overlap, rows

#: More than 20 classes have sparse dual variables.
MANY = rows(90)[0], np.arange(90) % 30
#: Of these a model has no dual variables, or several of them per row.
COLD = {"LinearSVR, quantiles"} | {
    f"LinearSVC, {solver}"
    for solver in ("mpu", "cutting-plane", "ocas", "newton", "interior-point")
}
WARM = [
    name
    for name, subject in SUBJECTS.items()
    if subject.has("warm_start") and name not in SLOW | COLD
]
TOL = 1e-5
#: Those that start from given coefficients.
NEAR = [
    "LinearSVC", "LinearSVC, newton", "LinearSVC, L1", "LinearSVC, labels",
    "LogisticRegression", "LogisticRegression, labels", "LogisticRegression, L1",
    "LogisticRegression, elastic net",
]  # fmt: skip
every_warm = pytest.mark.parametrize("name", WARM)


def fit(name: str, **more: Any) -> tuple[Any, Any]:
    subject = SUBJECTS[name]
    y = subject.target(X, NAMES)
    options = {"warm_start": True, "tol": TOL, "max_iter": 100_000} | more
    return subject.make(**options).fit(X, y), y


@pytest.mark.cases(None)
@every_warm
def test_no_epoch_is_needed_at_the_optimum(name: str, tmp_path: Path) -> None:
    model, y = fit(name)
    first, kept = copy.deepcopy(model), hasattr(model, "dual_coef_")
    save_model(model, tmp_path / "model", duals=kept)
    assert np.max(model.n_iter_) > 0
    others = pickle.loads(pickle.dumps(model)), load_model(tmp_path / "model")
    for one in (copy.copy(model), copy.deepcopy(model), model, *others):
        assert np.max(one.fit(X, y).n_iter_) == 0
        overlap(one, first, TOL)
    if "C" in model.get_params():  # clipped to the new box
        for C in (0.1, 3.0):
            cold, _ = fit(name, C=C, warm_start=False)
            for other in (copy.deepcopy(first), load_model(tmp_path / "model")):
                overlap(other.set_params(C=C).fit(X, y), cold, TOL)


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", NEAR)
def test_given_coefficients_are_only_a_start(name: str) -> None:
    """Near the optimum they save steps; anywhere, the optimum is the same."""
    cold, y = fit(name, warm_start=False)
    coef, intercept = cold.coef_.copy(), cold.intercept_.copy()
    if len(coef) == 1:
        coef, intercept = coef[0], intercept[0]
    for near, far in (((coef, intercept), False), ((-5.0 * coef, None), True)):
        model = copy.deepcopy(cold).fit(X, y, coef_init=near[0], intercept_init=near[1])
        overlap(model, cold, TOL)
        spent = [part.updates for part in (model.certificate_, cold.certificate_)]
        assert far or spent[0] < spent[1]


def test_of_many_classes() -> None:
    subject = SUBJECTS["LinearSVC"]
    model = subject.make(warm_start=True, solver="dcd").fit(*MANY)
    assert sparse.issparse(model.dual_coef_)
    assert pickle.loads(pickle.dumps(model)).fit(*MANY).n_iter_ == 0


@pytest.mark.cases(None)
@every_warm
def test_of_other_rows_or_without_dual_variables_is_refused(name: str) -> None:
    model, y = fit(name)
    if "L1" in name or not hasattr(model, "dual_coef_"):  # it starts from its model
        with pytest.raises(ValueError, match="set warm_start=False"):
            copy.deepcopy(model).fit(X[:, :2], y)
        return
    with pytest.raises(ValueError, match="90 rows"):
        copy.deepcopy(model).fit(X[1:], y[1:])
    if name == "LinearSVC":
        with pytest.raises(ValueError, match="classes"):
            copy.deepcopy(model).fit(X, np.array(["d", "e", "f"])[np.arange(90) % 3])
    lost = pickle.loads(pickle.dumps(model.set_params(warm_start=False)))
    lost.set_params(warm_start=True)
    with pytest.raises(ValueError, match="warm_start=True: the model has no dual var"):
        lost.fit(X, y)
    assert certificates(lost.set_params(warm_start=False).fit(X, y))[0].certified

"""Pickles, copies and files say what the model says."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone

from dualgap import LinearSVR, load_model, save_model
from dualgap.estimators.base import DEFINING

from .subjects import NAMES, SUBJECTS, X, every, values

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::dualgap.DegenerateWarning"
)
LAYOUTS = [np.asarray, np.float32, sparse.csr_matrix]
#: Two values of each parameter that defines the problems: one is new to the model.
OTHERS: dict[str, tuple[Any, Any]] = {
    "C": (7.0, 8.0),
    "class_weight": ("balanced", None),
    "coef0": (3.0, 1.0),
    "degree": (5, 2),
    "epsilon": (0.7, 0.2),
    "fit_intercept": (False, True),
    "gamma": (9.0, "auto"),
    "intercept_scaling": (3.0, 1.0),
    "kernel": ("linear", "rbf"),
    "l1_ratio": (0.7, 0.0),
    "loss": ("squared_hinge", "quantile"),
    "multi_class": ("ovo", "ovr"),
    "nu": (0.4, 0.1),
    "penalize_intercept": (False, True),
    "penalty": ("l1", "l2"),
    "quantile": ([0.2, 0.3, 0.9], 0.5),
    "solver": ("nystroem", "auto"),
}


def fitted(name: str, layout: Any = np.asarray, **more: Any) -> Any:
    subject = SUBJECTS[name]
    model = subject.make(max_iter=30, **more)
    return model.fit(layout(X), subject.target(X, NAMES))


def assert_same(model: Any, other: Any, X: Any) -> None:
    """Check that two models say the same, bit for bit."""
    assert type(other) is type(model)
    assert repr(other.get_params()) == repr(model.get_params())
    assert other.certificate_ == model.certificate_
    for name, found in values(other, X).items():
        np.testing.assert_array_equal(found, values(model, X)[name], err_msg=name)


def numbers(table: Any) -> Any:
    """The numbers of an array, which may be sparse."""
    return table.data if sparse.issparse(table) else table


@pytest.mark.cases(15)
@every()
def test_pickles_and_copies(name: str, tmp_path: Path) -> None:
    model = fitted(name)
    joblib.dump(model, tmp_path / "model")
    shallow, (deep, same) = copy.copy(model), copy.deepcopy([model, model])
    assert deep is same is not model
    read = pickle.loads(pickle.dumps(model)), joblib.load(tmp_path / "model")
    for other in (*read, shallow, deep):
        assert_same(model, other, X)
    if hasattr(model, "dual_coef_"):  # which a pickle of a linear model lacks
        kept, *others = (numbers(m.dual_coef_) for m in (model, shallow, deep))
        for other in others:
            np.testing.assert_array_equal(kept, other)
        assert not np.shares_memory(kept, numbers(deep.dual_coef_))
    again = clone(model)
    assert repr(again.get_params()) == repr(model.get_params())
    assert not hasattr(again, "certificate_")


def told(model: Any) -> dict[str, str]:
    """Return all that a model says, or the errors by which it refuses to."""
    found = {}
    for name, ask in {
        "coef_": lambda: model.coef_,
        "coef_bounds": lambda: model.coef_bounds(),
        "decision_bounds": lambda: model.decision_bounds(X),
        "decision_function": lambda: model.decision_function(X),
        "predict": lambda: model.predict(X),
        "predict_proba": lambda: model.predict_proba(X),
        "sorted": lambda: model.predict(X, sort_quantiles=True),
    }.items():
        try:
            found[name] = repr(ask())
        except (AttributeError, TypeError, ValueError) as error:
            found[name] = repr(error)
    return found


@pytest.mark.cases(15)
@every()
def test_new_parameters_are_about_the_next_fit(name: str, tmp_path: Path) -> None:
    """A fitted model stays as it is, in memory and in files, until the next fit."""
    assert OTHERS.keys() == DEFINING
    model = fitted(name)
    before = told(model)
    save_model(model, tmp_path / "before")
    given = model.get_params()
    for parameter in OTHERS.keys() & given.keys():
        for value in OTHERS[parameter]:
            model.set_params(**{parameter: value})
            assert told(model) == before, (parameter, value)
            save_model(model, tmp_path / "after")
            same = (tmp_path / "after").read_bytes()
            assert same == (tmp_path / "before").read_bytes(), (parameter, value)
        model.set_params(**{parameter: given[parameter]})


def test_arrays_that_change_are_about_the_next_fit() -> None:
    quantile = np.array([0.2, 0.8])
    model = LinearSVR(loss="quantile", quantile=quantile).fit(X, (X**2).sum(axis=1))
    before = told(model)
    quantile[:] = 0.8, 0.2
    assert told(model) == before


@pytest.mark.cases(15)
@pytest.mark.parametrize("layout", LAYOUTS)
@every()
def test_files(name: str, layout: Any, tmp_path: Path) -> None:
    model, path = fitted(name, layout, atol=1e-9), tmp_path / "model"
    save_model(model, path, duals=hasattr(model, "dual_coef_"), notes={"unit": "m"})
    found, notes = load_model(path, return_notes=True)
    assert notes == {"unit": "m"}
    assert_same(model, found, layout(X))
    save_model(found, tmp_path / "again", duals=hasattr(model, "dual_coef_"),
               notes=notes)  # fmt: skip
    assert path.read_bytes() == (tmp_path / "again").read_bytes()
    save_model(model, path)  # without the dual variables of a linear model
    assert_same(model, load_model(path), layout(X))


def fitted_attributes(model: Any) -> set[str]:
    """Return the names of fitted attributes and of properties computed from them."""
    found = {name for name in vars(model) if name.endswith("_")}
    for kind in type(model).__mro__:
        for name, value in vars(kind).items():
            public = name.endswith("_") and not name.startswith("_")
            if public and isinstance(value, property) and hasattr(model, name):
                found.add(name)
    return found


@pytest.mark.cases(12)
@pytest.mark.parametrize("duals", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
@every(labels=False)
def test_a_loaded_model_has_every_attribute(
    name: str, duals: bool, classes: int, tmp_path: Path
) -> None:
    subject, frame = SUBJECTS[name], pd.DataFrame(X, columns=list("abcdefgh"))
    names = NAMES if classes == 3 else np.where(NAMES == "ant", "ant", "bee")
    model = subject.make(max_iter=30).fit(frame, subject.target(X, names))
    duals = duals and hasattr(model, "dual_coef_")
    save_model(model, tmp_path / "model", duals=duals)
    found, lost = load_model(tmp_path / "model"), {"history_"}
    if "Linear" in name and not duals:
        lost |= {"support_", "dual_coef_"}
    assert fitted_attributes(found) == fitted_attributes(model) - lost
    for attribute in fitted_attributes(found):
        ours, theirs = getattr(model, attribute), getattr(found, attribute)
        assert type(ours) is type(theirs), attribute
        if isinstance(ours, np.ndarray):
            assert ours.dtype == theirs.dtype, attribute
            np.testing.assert_array_equal(ours, theirs)
        elif sparse.issparse(ours):
            assert (ours != theirs).nnz == 0
        else:
            assert ours == theirs, attribute

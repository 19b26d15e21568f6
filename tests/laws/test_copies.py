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

from dualgap import load_model, save_model

from .subjects import NAMES, SUBJECTS, X, every, values

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::dualgap.DegenerateWarning"
)
LAYOUTS = [np.asarray, np.float32, sparse.csr_matrix]


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

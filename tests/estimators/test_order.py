"""The order of `coef_` in memory: SciPy multiplies sparse rows without a copy of it."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import dualgap
from dualgap import LinearSVC
from dualgap.data import convert

N, D = 40, 12
X = sparse.random(N, D, 0.4, format="csr", random_state=1)
Y = np.arange(N) % 4
MODELS = {
    "one versus rest": LinearSVC(),
    "hinge": LinearSVC(loss="hinge"),
    "free bias": LinearSVC(penalize_intercept=False),
    "one versus one": LinearSVC(multi_class="ovo"),
    "together": LinearSVC(loss="hinge", multi_class="crammer_singer"),
}
ROWS = {
    "csr": X,
    "csc": X.tocsc(),
    "array": sparse.csr_array(X),
    "float32": X.astype(np.float32),
    "wide": sparse.csr_matrix((X.data, X.indices * 1000, X.indptr), (N, 1000 * D)),
}


def order(model: Any) -> str:
    flags = model.coef_.flags
    return "C" if flags.c_contiguous else "F" if flags.f_contiguous else "neither"


def others(model: Any, folder: Path) -> list[Any]:
    """Return the same model after a pickle, copies, and a file."""
    dualgap.save_model(model, folder / "model")
    loaded = dualgap.load_model(folder / "model")
    pickled = pickle.loads(pickle.dumps(model))
    return [pickled, copy.copy(model), copy.deepcopy(model), loaded]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("rows", ROWS)
def test_sparse_rows_give_fortran_order(name: str, rows: str, tmp_path: Path) -> None:
    model = copy.copy(MODELS[name]).fit(ROWS[rows], Y)
    assert order(model) == "F"
    expected = model.decision_function(ROWS[rows])
    in_c = copy.copy(model)
    in_c.coef_ = np.ascontiguousarray(model.coef_)
    np.testing.assert_array_equal(in_c.decision_function(ROWS[rows]), expected)
    for other in others(model, tmp_path):
        assert order(other) == "F"
        np.testing.assert_array_equal(other.decision_function(ROWS[rows]), expected)


@pytest.mark.parametrize("name", MODELS)
def test_dense_rows_give_c_order(name: str, tmp_path: Path) -> None:
    model = copy.copy(MODELS[name]).fit(X.toarray(), Y)
    assert order(model) == "C"
    expected = model.decision_function(X.toarray())
    for other in others(model, tmp_path):
        assert order(other) == "C"
        np.testing.assert_array_equal(other.decision_function(X.toarray()), expected)


@pytest.mark.parametrize("form", ["sparse", "dense"])
def test_stores_are_like_their_rows(form: str, tmp_path: Path) -> None:
    rows = X if form == "sparse" else X.toarray()
    store = convert([(rows, Y)], tmp_path / "store")
    assert order(LinearSVC().fit(store)) == ("F" if form == "sparse" else "C")


def test_compressed_models_keep_the_order() -> None:
    for rows, expected in ((X, "F"), (X.toarray(), "C")):
        model = LinearSVC(tol=1e-6).fit(rows, Y)
        assert order(dualgap.compress(model, rows, Y, tol=0.1)) == expected


def test_orders_of_files_that_are_not_known_are_refused(tmp_path: Path) -> None:
    from dualgap.data import model_file as file

    dualgap.save_model(LinearSVC().fit(X, Y), tmp_path / "model")
    record, tensors = file.read(str(tmp_path / "model"))
    record["coef_order"] = "K"
    file.write(tmp_path / "model", file.seal(record, tensors), tensors)
    with pytest.raises(ValueError, match="coef_order in its record is 'K'"):
        dualgap.load_model(tmp_path / "model")

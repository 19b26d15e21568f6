"""svc_path: certified kernel classifiers for many values of C, and their file."""

from __future__ import annotations

import _thread
import time

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from dualgap.estimators import folds as module
from dualgap.model_selection import SVCPath, svc_path

CS = [0.03, 10.0, 0.5]


def make(classes=2, n=90):
    X, y = make_classification(
        n, 6, n_informative=4, n_classes=classes, flip_y=0.1, random_state=0
    )
    return X, np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse", "precomputed"])
def test_a_file_holds_all_models(kind, tmp_path):
    X, y = make(3)
    options = {"gamma": 0.3}
    if kind == "float32":
        X = X.astype(np.float32)
    elif kind == "sparse":
        X = csr_matrix(np.where(np.abs(X) < 0.5, 0.0, X))
    elif kind == "precomputed":
        X, options = X @ X.T, {"kernel": "precomputed"}
    path = svc_path(X, y, CS, **options)
    file = tmp_path / "path.safetensors"
    path.save(file)
    again = SVCPath.load(file)
    assert (again.relative_gaps == path.relative_gaps).all()
    assert again.classes.tolist() == ["a", "b", "c"]
    for k in range(3):
        first, second = path.model(k), again.model(k)
        assert (first.decision_function(X) == second.decision_function(X)).all()
        assert first.get_params() == second.get_params()
        assert second.certificate_.parts[0].status == first.certificate_.parts[0].status
    # Vectors once, 16 bytes a coefficient, and what does not grow with the rows.
    coefs = sum(coef.nnz for coef in path.dual_coefs)
    vectors = path.support_vectors
    if sparse := hasattr(vectors, "nnz"):
        assert again.support_vectors.nnz == vectors.nnz
    size = 16 * vectors.nnz + 8 * len(path.support) if sparse else vectors.nbytes
    assert file.stat().st_size <= size + 16 * coefs + 8 * len(path.support) + 12_000


def test_a_damaged_file_is_refused(tmp_path):
    X, y = make()
    file = tmp_path / "path.safetensors"
    svc_path(X, y, CS).save(file)
    data = bytearray(file.read_bytes())
    data[-9] ^= 1
    file.write_bytes(data)
    with pytest.raises(ValueError, match="cannot be read: its checksum"):
        SVCPath.load(file)


def test_a_path_that_is_cut_short(monkeypatch):
    X, y = make()
    with pytest.raises(ValueError, match="before any model was finished"):
        svc_path(X, y, CS, time_limit=1e-9)
    walk = module.solve_path

    def interrupted(*args):
        for k, found in enumerate(walk(*args)):
            if k == after:
                _thread.interrupt_main()
                time.sleep(0.0)
            yield found

    monkeypatch.setattr(module, "solve_path", interrupted)
    after = 1
    with pytest.warns(ConvergenceWarning, match="interrupted after 2 of 3 models"):
        path = svc_path(X, y, CS)
    assert path.Cs.tolist() == sorted(CS)[:2]
    assert (path.relative_gaps <= 1e-3).all()

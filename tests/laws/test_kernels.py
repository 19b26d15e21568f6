"""A kernel by its name, a record, a function or its matrix is one kernel."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.utils import get_tags

from dualgap import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dualgap.kernel import RBF, Precomputed

from .subjects import NAMES, Subject, X, overlap, values

SUBJECTS = [
    Subject(SVC, {"C": 3.0}),
    Subject(SVC, {"loss": "squared_hinge"}),
    Subject(SVC, {"solver": "block"}),
    Subject(SVR, {"C": 10.0}),
    Subject(OneClassSVM, {"nu": 0.3}),
    Subject(NuSVC, {"nu": 0.3}),
    Subject(NuSVR, {"nu": 0.4, "C": 10.0}),
]
WEIGHT = np.where(np.arange(len(X)) % 5 == 0, 0.0, 0.5 + np.arange(len(X)) % 3)
TOL = 1e-7


def gaussian(A: Any, B: Any) -> Any:
    return np.exp(-0.1 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


K = gaussian(X, X)
FORMS: dict[str, tuple[dict[str, Any], Any]] = {
    "record": ({"kernel": RBF(gamma=0.1)}, X),
    "function": ({"kernel": gaussian}, X),
    "matrix": ({"kernel": "precomputed"}, K),
    "matrix as a record": ({"kernel": Precomputed()}, K),
    "fewer rows": ({"gamma": 0.1}, X),
}


@pytest.mark.cases(None)
@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: f"{s.kind.__name__}")
def test_forms_of_a_kernel(subject: Subject) -> None:
    y = subject.target(X, NAMES)
    name = subject.make(gamma=0.1, tol=TOL).fit(X, y, sample_weight=WEIGHT)
    assert (WEIGHT[name.support_] > 0.0).all()
    for form, (options, rows) in FORMS.items():
        used = WEIGHT > 0.0 if form == "fewer rows" else np.ones(len(X), bool)
        model = subject.make(tol=TOL, **options)
        model.fit(rows[used], y[used], sample_weight=WEIGHT[used])
        overlap(model, name, TOL)
        for key, wanted in values(name, X).items():
            found = values(model, rows)[key]
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(found, wanted, atol=5e-3, err_msg=form)
        assert get_tags(model).input_tags.pairwise == (rows is K)
        if rows is K:
            assert model.support_vectors_.shape == (0, 0)

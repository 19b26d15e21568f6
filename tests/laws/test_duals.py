"""Dual variables and support vectors are the model, in the layout of scikit-learn."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from .subjects import NAMES, SLOW, SUBJECTS, X, certificates, values

pytestmark = pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
#: Those with an L1 norm, several quantiles or outcomes have no such dual variables.
WITHOUT = ("L1", "elastic", "quantiles", "Logistic")
HAVING = [n for n in SUBJECTS if not any(w in n for w in WITHOUT) and n not in SLOW]
WEIGHT = np.where(np.arange(len(X)) % 7 == 0, 0.0, 1.0)


def pairs_of(model: Any) -> Any:
    """Return the dual variables of every pair, from the layout of LIBSVM."""
    ends = np.cumsum(model.n_support_)
    part = [slice(e - m, e) for e, m in zip(ends, model.n_support_, strict=True)]
    table = []
    for i, j in combinations(range(len(model.classes_)), 2):
        row = np.zeros(ends[-1])
        row[part[i]] = model.dual_coef_[j - 1, part[i]]
        row[part[j]] = model.dual_coef_[i, part[j]]
        table.append(row)
    return np.array(table)


@pytest.mark.cases(20)
@pytest.mark.parametrize("layout", [np.asarray, np.float32, sparse.csr_matrix])
@pytest.mark.parametrize("name", HAVING)
def test_dual_variables_are_the_model(name: str, layout: Any) -> None:
    subject, rows = SUBJECTS[name], layout(X)
    y = subject.target(X, NAMES)
    model = subject.make(tol=1e-5, max_iter=20_000).fit(rows, y, sample_weight=WEIGHT)
    assert (WEIGHT[model.support_] > 0.0).all()
    duals, seen = model.dual_coef_, np.asarray(X.astype(rows.dtype), float)
    by_class = subject.kind.__name__ in ("SVC", "NuSVC")
    codes = np.searchsorted(["ant", "bee", "cat"], NAMES)[model.support_]
    order = np.lexsort((model.support_, codes if by_class else 0 * codes))
    np.testing.assert_array_equal(order, np.arange(len(model.support_)))
    if by_class or "pairs" in name:
        np.testing.assert_array_equal(np.bincount(codes), model.n_support_)
        duals = pairs_of(model) if by_class else None
    if "Linear" in name and duals is not None:
        point = duals @ seen[model.support_]
        for w, v, part in zip(
            np.atleast_2d(model.coef_), np.atleast_2d(point), certificates(model),
            strict="joint" not in name,
        ):  # fmt: skip
            # 1/2 ||w - w(alpha)||^2 <= P - D
            most = np.sqrt(2.0 * max(part.primal - part.dual, 0.0))
            assert np.linalg.norm(w - v) <= most + 1e-9 * (1.0 + np.linalg.norm(w))
    elif duals is not None:
        held = model.support_vectors_
        assert sparse.issparse(held) == sparse.issparse(rows)
        assert held.dtype == rows.dtype
        held = np.asarray(held.toarray() if sparse.issparse(held) else held, float)
        np.testing.assert_array_equal(held, seen[model.support_])
        K = model._fitted_kernel.block(seen, slice(None), held, np.float64)
        if hasattr(model, "decision_function_shape"):
            model.decision_function_shape, model.break_ties = "ovo", False
        found = values(model, rows).get("decision_function")
        found = values(model, rows)["predict"] if found is None else found
        wanted = np.squeeze(K @ np.atleast_2d(duals).T + model.intercept_)
        size = np.abs(duals).sum() * np.abs(K).max()
        np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-6 * size)

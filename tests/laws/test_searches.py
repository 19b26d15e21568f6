"""Searches and paths are loops over single fits, and have equal bits."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.linear_model
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.model_selection import GridSearchCV as PlainSearch
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualgap
from dualgap import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    certify,
)
from dualgap.distributed.linear_svc import DistributedLinearSVC
from dualgap.estimators import drop_ins
from dualgap.estimators.results import first_best, ranks
from dualgap.kernel import Nystroem
from dualgap.model_selection import (
    GridSearchCV,
    SVCPath,
    SVMPath,
    l1_path,
    svc_path,
    svm_path,
)
from dualgap.training.batch import seeds_of

from ..cli.running import call, write

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning",
    "ignore::dualgap.DegenerateWarning",
)

X, Y = make_classification(
    90, 8, n_informative=5, n_classes=3, flip_y=0.2, random_state=0
)
TARGET = X[:, 0] + 0.1 * X[:, 1] ** 2
CV = {"cv": 3}

#: Searches, paths and proofs, and estimators that the table of subjects lacks.
FITS: dict[str, Callable[..., Any]] = {
    "LinearSVC, stream": lambda **o: LinearSVC(**o).partial_fit(X, Y, [0, 1, 2]),
    "LinearSVCCV": lambda **o: LinearSVCCV([0.1, 1.0], solver="dcd", **CV, **o).fit(
        X, Y
    ),
    "LinearSVCCV, 4 values": lambda **o: LinearSVCCV(4, **CV, **o).fit(X, Y),
    "SVCCV": lambda **o: SVCCV([0.1, 1.0], [0.1, 0.3], **CV, **o).fit(X, Y),
    "SVCCV, landmarks": lambda **o: SVCCV(2, solver="nystroem", **CV, **o).fit(X, Y),
    "SVRCV": lambda **o: SVRCV([0.1, 1.0], 0.1, **CV, **o).fit(X, TARGET),
    "GridSearchCV, linear": lambda **o: GridSearchCV(
        LinearSVC(solver="dcd"), {"C": [0.1, 1.0]}, **CV, **o
    ).fit(X, Y),
    "GridSearchCV, kernel": lambda **o: GridSearchCV(
        SVC(solver="block"), {"C": [0.1, 1.0], "gamma": ["scale", 0.1]}, **CV, **o
    ).fit(X, Y),
    "svm_path": lambda **o: svm_path(X, Y, 3, solver="sdca", **o),
    "svc_path": lambda **o: svc_path(X, Y, [0.1, 1.0], **o),
    "certify": lambda **o: certify(
        LinearSVC(tol=0.5, solver="dcd").fit(X, Y), X, Y, **o
    ),
    "patched LinearSVC": lambda: drop_ins.LinearSVC().fit(X, Y),
    "patched LinearSVR": lambda: drop_ins.LinearSVR(dual=True).fit(X, TARGET),
    "patched SVC": lambda: drop_ins.SVC().fit(X, Y),
}


def numbers(found: Any) -> dict[str, bytes]:
    """All numbers of a result but for its times."""
    if isinstance(found, (SVMPath, SVCPath)):
        certificates = {k: numbers(c) for k, c in enumerate(found.certificates)}
        if isinstance(found, SVMPath):
            coefs = found.coefs
        else:
            coefs = np.concatenate([part.data for part in found.dual_coefs])
        return {"coefs": coefs.tobytes()} | {
            f"{k}": part["bounds"] for k, part in certificates.items()
        }
    if isinstance(found, dualgap.certificate.Certificate):
        return {"bounds": repr([part.bounds for part in found]).encode()}
    kept = {
        name: value
        for name, value in vars(found).items()
        if name.endswith("_") and not name.startswith("_") and "time" not in name
    }
    out = {k: v.tobytes() for k, v in kept.items() if isinstance(v, np.ndarray)
           and v.dtype != object and k != "history_"}  # fmt: skip
    table = kept.get("cv_results_", {})
    out |= {k: v.tobytes() for k, v in table.items() if k.endswith("_score")}
    if "certificate_" in kept:
        out |= numbers(kept["certificate_"])
    if "best_estimator_" in kept:
        best = numbers(kept["best_estimator_"])
        out |= {f"best {name}": value for name, value in best.items()}
        best_params = getattr(found, "best_params_", found.best_estimator_.C)
        out["chosen"] = repr(best_params).encode()
    assert out
    return out


@pytest.mark.cases(6)
@pytest.mark.parametrize("name", sorted(FITS))
def test_seeds_and_threads(name: str) -> None:
    one = numbers(FITS[name]())
    np.random.random_sample()  # noqa: NPY002  (NumPy's global generator is elsewhere)
    assert numbers(FITS[name]()) == one
    if name == "certify":  # threads share its sums, whose bits depend on their number
        one = numbers(FITS[name](n_jobs=2))
    if not name.startswith("patched"):  # these have no n_jobs
        assert numbers(FITS[name](n_jobs=2)) == one


@pytest.mark.parametrize(
    "estimator",
    [
        *(LinearSVC, LinearSVCCV, LinearSVR, SVC, SVR, SVCCV, SVRCV, svm_path, certify),
        DistributedLinearSVC,
    ],
)
def test_the_seed_is_0(estimator: Any) -> None:
    assert inspect.signature(estimator).parameters["random_state"].default == 0


def test_scikit_learns_classes_keep_their_signature() -> None:
    for name, drop_in in drop_ins.DROP_INS.items():
        parameters = inspect.signature(drop_in).parameters
        assert parameters == inspect.signature(drop_in._original).parameters, name


def test_a_state_or_none_gives_other_models() -> None:
    model = LinearSVC(solver="dcd", tol=0.5, random_state=np.random.RandomState(0))
    one, two = (clone(model).fit(X, Y).coef_ for _ in range(2))
    assert np.array_equal(one, two)
    assert not np.array_equal(model.fit(X, Y).coef_, model.fit(X, Y).coef_)
    model = LinearSVC(solver="dcd", tol=0.5, random_state=None)
    assert not np.array_equal(model.fit(X, Y).coef_, model.fit(X, Y).coef_)


def test_seeds_are_those_of_scikit_learns_states() -> None:
    for seed in (0, 3, np.int64(7), 2**32 - 1):
        state = np.random.RandomState(seed)
        drawn = state.randint(2**31 - 1, size=5).tolist()
        assert list(seeds_of(seed, 5)) == drawn
        assert seeds_of(np.random.RandomState(seed), 5) == drawn
        assert seeds_of(seed, 1)[0] == drawn[0]
    with pytest.raises(ValueError, match="between 0 and 2\\*\\*32 - 1"):
        seeds_of(-1, 1)


# -------------------------------------------------------------------------- scores

#: With enough features searches share a table of kernel values.
WIDE, CODES = make_classification(
    90, 60, n_informative=4, n_classes=3, flip_y=0.1, random_state=0
)
LABELS = np.column_stack([CODES == 0, CODES > 1]).astype(int)
Cs, GAMMAS = [0.03, 0.2, 1.0, 30.0], [0.003, 0.02]
LOGISTIC = LogisticRegression(tol=1e-8)
LANDMARKS = SVC(solver=Nystroem(20), loss="squared_hinge", tol=1e-8, random_state=0)
VOTES: dict[str, Any] = {"decision_function_shape": "ovo", "tol": 1e-7}
#: Searches of our own, and the estimators and grids of the same plain searches. Kernel
#: values of a polynomial are up to 1e5, and their rounding leaves a gap of some 1e-8.
SCORED: list[tuple[Any, Any, dict[str, Any], Any]] = [
    *((LinearSVCCV(Cs, tol=1e-8, **more), LinearSVC(tol=1e-8, **more), {"C": Cs}, CODES)
      for more in ({}, {"multi_class": "ovo"}, {"class_weight": "balanced"})),
    *((SVCCV(Cs, GAMMAS, **VOTES, **more, **own), SVC(**VOTES, **more),
       {"C": Cs, "gamma": GAMMAS}, y)
      for y in (CODES, CODES > 0) for more, own in (
          ({}, {}), ({}, {"cache_size": 0.2}), ({"class_weight": "balanced"}, {}),
          ({"loss": "squared_hinge"}, {}), ({"kernel": "poly", "coef0": 1.0}, {}))),
    (SVRCV(Cs, GAMMAS, [0.05, 0.4], tol=1e-8), SVR(tol=1e-8),
     {"C": Cs, "epsilon": [0.05, 0.4], "gamma": GAMMAS}, WIDE[:, :2].sum(1) + 10.0),
    *((GridSearchCV(model, {"C": Cs}), model, {"C": Cs}, y) for model, y in (
        (LOGISTIC, CODES), (LOGISTIC, LABELS), (LinearSVC(tol=1e-8), LABELS),
        (LANDMARKS, CODES > 0), (clone(LANDMARKS).set_params(gamma=0.01), CODES))),
]  # fmt: skip


def size(model: Any, X: Any, y: Any) -> float:
    """Score without the jumps that accuracy makes where a row is on the boundary."""
    return float(np.abs(model.decision_function(X)).mean())


@pytest.mark.cases(None)
@pytest.mark.parametrize(("search", "model", "grid", "y"), SCORED)
def test_scores_are_those_of_the_plain_search(
    search: Any, model: Any, grid: dict[str, Any], y: Any
) -> None:
    how = {"cv": 3, "scoring": None if isinstance(search, SVRCV) else size}
    # Searches over kernels share no table of sparse rows.
    rows = sparse.csr_matrix(WIDE) if isinstance(search, LinearSVCCV) else WIDE
    ours = clone(search).set_params(**how).fit(rows, y)
    plain = PlainSearch(model, grid, **how).fit(rows, y).cv_results_
    if isinstance(search, LinearSVCCV):
        found, gaps = list(ours.scores_), ours.relative_gaps_
    else:
        assert ours.cv_results_["params"] == plain["params"]
        found = [ours.cv_results_[f"split{k}_test_score"] for k in range(3)]
        assert ours.best_params_ == plain["params"][int(np.argmax(np.mean(found, 0)))]
        gaps = [ours.cv_results_.get(f"split{k}_relative_gap", 0.0) for k in range(3)]
        gaps.append(getattr(ours, "relative_gaps_", 0.0))
    known = [plain[f"split{k}_test_score"] for k in range(3)]
    np.testing.assert_allclose(found, known, rtol=2e-3, atol=1e-4)
    assert np.max(known) > 1.01 * np.min(known)
    assert max(np.max(one) for one in gaps) <= model.tol
    best = getattr(ours, "best_estimator_", ours)
    assert best.certificate_.certified


# --------------------------------------------------------------------------- paths

#: Paths, their options, and the estimators of their models.
PATHS: list[tuple[Any, Any, dict[str, Any], dict[str, Any]]] = [
    *((svm_path, LinearSVC, more, more) for more in (
        {}, {"loss": "hinge"}, {"multi_class": "ovo", "class_weight": {0: 2.0}})),
    (svm_path, LogisticRegression, {"loss": "logistic"}, {}),
    *((svc_path, SVC, more, more) for more in (
        {"gamma": 0.2}, {"kernel": "poly", "coef0": 1.0},
        {"loss": "squared_hinge", "class_weight": "balanced"})),
    (l1_path, LinearSVC, {"loss": "squared_hinge"}, {"penalty": "l1"}),
    (l1_path, LogisticRegression, {"loss": "logistic"}, {"l1_ratio": 1}),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("path", "kind", "options", "parameters"), PATHS)
def test_models_of_a_path_are_those_of_single_fits(
    path: Any, kind: Any, options: Any, parameters: Any, classes: int
) -> None:
    y, weight, tol = np.minimum(Y, classes - 1), np.arange(90) % 3.0, 1e-7
    found = path(X, y, [3.0, 0.03, 0.3], tol=tol, sample_weight=weight, **options)
    assert sorted(found.Cs) == [0.03, 0.3, 3.0]
    for k, C in enumerate(found.Cs):
        single = kind(C=C, tol=tol, **parameters).fit(X, y, sample_weight=weight)
        parts = zip(found.certificates[k], single.certificate_, strict=True)
        for one, other in parts:
            assert one.certified
            assert one.dual <= other.primal
            assert other.dual <= one.primal
            assert one.relative_gap <= tol
        if path is svc_path:
            model = found.model(k)
            assert (model.C, found.model(-1).C) == (C, 3.0)
            assert (weight[model.support_] > 0.0).all()
            ours = model.decision_function(X)
            np.testing.assert_allclose(ours, single.decision_function(X), atol=2e-3)
        else:
            coef, intercept = np.squeeze(single.coef_), np.squeeze(single.intercept_)
            np.testing.assert_allclose(found.coefs[k], coef, atol=1e-3)
            np.testing.assert_allclose(found.intercepts[k], intercept, atol=1e-3)
        if path is l1_path:
            assert not found.coefs[k][found.zeros[k]].any()


# ---------------------------------------------------------------------------- ties


def level(model: Any, X: Any, y: Any) -> float:
    """Return an equal score for every model."""
    return 0.75


COSTS = [10.0, 0.1, 1.0]
SEARCHES: dict[str, Callable[[], Any]] = {
    "LinearSVCCV": lambda: LinearSVCCV(COSTS, scoring=level, cv=3).fit(X, Y),
    "SVCCV": lambda: SVCCV(COSTS, [0.5, 0.1], scoring=level, cv=3).fit(X, Y),
    "SVCCV, landmarks": lambda: SVCCV(
        COSTS, [0.5, 0.1], solver="nystroem", scoring=level, cv=3
    ).fit(X, Y),
    "SVRCV": lambda: SVRCV(COSTS, [0.5, 0.1], scoring=level, cv=3).fit(X, TARGET),
    "GridSearchCV": lambda: GridSearchCV(
        SVC(), {"gamma": [0.5, 0.1], "C": COSTS}, scoring=level, cv=3
    ).fit(X, Y),
    "GridSearchCV, several scores": lambda: GridSearchCV(
        LinearSVC(), {"C": COSTS}, scoring={"a": level, "b": level}, refit="b", cv=3
    ).fit(X, Y),
    "GridSearchCV, pipeline": lambda: GridSearchCV(
        make_pipeline(StandardScaler(), LinearSVC()),
        {"linearsvc__C": COSTS},
        scoring=level,
        cv=3,
    ).fit(X, Y),
    "GridSearchCV, another package": lambda: GridSearchCV(
        sklearn.linear_model.LogisticRegression(), {"C": COSTS}, scoring=level, cv=3
    ).fit(X, Y),
}


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", sorted(SEARCHES))
def test_of_equal_scores_the_smallest_C_wins_then_the_first(name: str) -> None:
    search = SEARCHES[name]()
    chosen = getattr(search, "best_params_", None) or {"C": search.C_}
    (C,) = (value for key, value in chosen.items() if key.endswith("C"))
    assert C == 0.1
    if "gamma" in chosen:
        assert chosen["gamma"] == 0.5
    if hasattr(search, "cv_results_"):
        rank = next(v for k, v in search.cv_results_.items() if k.startswith("rank"))
        assert (rank == 1).all()


def test_candidates_without_C_take_the_first() -> None:
    grid = {"tol": [1e-2, 1e-3]}
    search = GridSearchCV(LinearSVC(), grid, scoring=level, cv=3).fit(X, Y)
    assert not search.shared_
    assert search.best_index_ == 0


def test_a_callable_refit_chooses_itself() -> None:
    search = GridSearchCV(
        LinearSVC(), {"C": COSTS}, scoring=level, refit=lambda results: 2, cv=3
    ).fit(X, Y)
    assert search.best_index_ == 2


def test_certified_searches_take_the_smallest_C_of_equal_scores() -> None:
    easy = np.r_[np.full(20, -1.0), np.full(20, 1.0)][:, None] * [1.0, 2.0]
    y = easy[:, 0] > 0.0
    linear = LinearSVCCV((0.1, 10.0), certify_C=True, error_tolerance=0.5, cv=2).fit(
        easy, y
    )
    kernel = SVCCV(
        (0.1, 10.0), [0.5, 0.1], certify_C=True, error_tolerance=0.5, cv=2
    ).fit(easy, y)  # fmt: skip
    assert linear.best_score_ == kernel.best_score_ == 1.0
    assert linear.C_ == kernel.C_ == 0.1
    assert kernel.gamma_ == 0.5


def test_the_command_line_takes_the_smallest_C_of_equal_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write("data", [-1, 1])
    tune = ("tune", "data", "--cv", "3", "--C", "100,10,1e-5,1e-6", "--json")
    found = json.loads(call(*tune).stdout)
    scores = {model["C"]: model["mean_score"] for model in found["models"]}
    best = max(scores.values())
    tied = [C for C, score in scores.items() if score >= best - 1e-12]
    assert found["best_C"] == min(tied)


def test_scores_that_differ_by_the_order_of_their_sum_are_equal() -> None:
    folds = np.array([[0.1, 0.7, 0.4], [0.4, 0.1, 0.7], [0.7, 0.4, 0.1]])
    sums = np.array([[sum(row) for row in folds]]).ravel()
    mean = np.append(sums / 3, [0.4 - 1e-9, np.nan])
    assert len(set(mean[:3])) > 1  # they do differ
    assert ranks(mean).tolist() == [1, 1, 1, 4, 5]
    assert first_best(mean, [3.0, 1.0, 2.0, 0.1, 0.1]) == 1
    assert first_best(mean, [1.0, 1.0, 1.0, 0.1, 0.1]) == 0
    inf = np.array([-np.inf, np.inf, np.inf, 0.0])
    assert ranks(inf).tolist() == [4, 1, 1, 3]
    assert ranks(np.full(3, np.nan)).tolist() == [1, 1, 1]
    assert ranks(np.array([-2e-30, -1e-30])).tolist() == [2, 1]

"""Probabilities: those of scikit-learn's calibration, from folds that share work."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from dualgap import (
    SVC,
    CalibratedClassifier,
    LinearSVC,
    LinearSVCCV,
    calibrated,
    certify,
    load_model,
    save_model,
)
from dualgap.estimators import calibration, drop_ins
from dualgap.estimators.calibrators import (
    IsotonicCalibrator,
    SigmoidCalibrator,
    TemperatureCalibrator,
    probabilities,
)
from dualgap.estimators.folds import FoldFit, Folds
from dualgap.kernels.functions import resolve_gamma
from dualgap.solvers import SmoothingNewton

from ..cli.running import interrupt

METHODS = ["sigmoid", "isotonic", "temperature"]
#: Models whose folds are trained together, over shared values, or each by itself.
MODELS = [
    LinearSVC(tol=1e-9),
    LinearSVC(C=0.1, multi_class="ovo", class_weight="balanced", tol=1e-9),
    LinearSVC(loss="hinge", multi_class="crammer_singer", C=0.1, tol=1e-10),
    SVC(tol=1e-9),
    # Its decisions move by up to sqrt(2 gap): a small C makes the gap small.
    SVC(kernel="linear", loss="squared_hinge", C=0.01, tol=1e-9),
    SVC(gamma=0.1, tol=1e-9, break_ties=True),
]


def rows(classes=3, kind="dense"):
    load = load_wine if classes == 3 else load_breast_cancer
    X, y = load(return_X_y=True)
    X, y = scale(X)[::2, :8], np.array(["no", "yes", "may be"])[y[::2]]
    return (sparse.csr_matrix(X) if kind == "sparse" else X), y


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_probabilities_are_those_of_scikit_learn(
    model, method, classes, kind, weighted
):
    if method == "temperature":
        pytest.importorskip("sklearn", minversion="1.8")
    X, y = rows(classes, kind)
    weight = np.arange(len(y)) % 3 + 0.5 if weighted else None
    found = calibrated(model, X, y, method, 4, weight)
    if isinstance(model, SVC):  # the folds have the kernel of all rows
        gamma = resolve_gamma("scale", X) if model.gamma == "scale" else model.gamma
        model = clone(model).set_params(gamma=gamma)
    theirs = CalibratedClassifierCV(model, method=method, cv=4, ensemble=False)
    theirs.fit(X, y, weight)
    probability = found.predict_proba(X)
    np.testing.assert_allclose(probability, theirs.predict_proba(X), rtol=0, atol=2e-6)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0, rtol=1e-12)
    assert (found.predict(X) == found.classes_[probability.argmax(axis=1)]).all()
    with np.errstate(divide="ignore"):
        assert (found.predict_log_proba(X) == np.log(probability)).all()


@pytest.mark.parametrize("model", [LinearSVC(), SVC()], ids=repr)
def test_all_folds_are_trained_together(model, monkeypatch):
    X, y = rows()
    walks = []

    def counted(self, *args, original=Folds.walks):
        walks.append(original(self, *args))
        return walks[-1]

    monkeypatch.setattr(Folds, "walks", counted)
    calibrated(model, X, y)
    assert [len(each) for each in walks] == [1]


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(solver=SmoothingNewton(passes="shared"), tol=1e-8),
        LinearSVC(
            solver=SmoothingNewton(passes="shared"), intercept_scaling=10.0, tol=1e-8
        ),
        LinearSVC(
            solver=SmoothingNewton(passes="shared"), fit_intercept=False, tol=1e-8
        ),
        LinearSVC(solver="dcd", tol=1e-9),
        LinearSVC(solver="newton", fit_intercept=False, tol=1e-8),
        LinearSVC(solver="newton", loss="hinge", tol=1e-8),
        SVC(gamma=0.1, tol=1e-8),
    ],
    ids=repr,
)
def test_folds_begin_near_the_model_of_all_rows(model):
    """They take fewer epochs than cold ones, and have the same probabilities."""
    random = np.random.default_rng(0)
    y = random.integers(0, 3, 600)
    X = random.standard_normal((600, 8)) + np.eye(3, 8)[y]
    work = []

    def noted(self, original=FoldFit.decisions):
        for part in self.parts:
            assert part.certified
            assert part.tol == calibration._LOOSER * model.tol
            work[-1] += part.epochs if model.solver == "dcd" else part.updates
        return original(self)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FoldFit, "decisions", noted)
        work.append(0)
        warm = calibrated(model, X, y).predict_proba(X)
        patch.setattr(calibration, "_near", lambda _: [])
        patch.setattr(calibration, "_duals", lambda *_: None)
        work.append(0)
        cold = calibrated(model, X, y).predict_proba(X)
    assert work[0] < work[1]
    np.testing.assert_allclose(warm, cold, rtol=0, atol=1e-5)


@pytest.mark.parametrize("model", [LinearSVC(n_jobs=1), SVC(n_jobs=1)], ids=repr)
def test_threads_change_no_bit(model):
    X, y = rows()
    one = calibrated(model, X, y).predict_proba(X)
    three = calibrated(clone(model).set_params(n_jobs=3), X, y).predict_proba(X)
    again = CalibratedClassifier(model).fit(X, y).predict_proba(X)
    assert (one == three).all()
    assert (one == again).all()


def test_a_fitted_model_is_kept_and_later_fits_do_not_change_it():
    X, y = rows()
    model = SVC().fit(X, y)
    found = calibrated(model, X, y)
    before = found.predict_proba(X)
    assert found.estimator_.dual_coef_ is model.dual_coef_
    assert found.certificate_ is model.certificate_
    model.set_params(C=1e-3).fit(X, y)
    assert (found.predict_proba(X) == before).all()


@pytest.mark.parametrize("ways", [("ovr", "ovo"), ("ovo", "ovr")])
def test_folds_have_the_parameters_of_the_fit(ways):
    X, y = rows()
    model = LinearSVC(C=0.1, multi_class=ways[0]).fit(X, y)
    expected = calibrated(model, X, y).predict_proba(X)
    found = calibrated(model.set_params(multi_class=ways[1], C=5.0), X, y)
    np.testing.assert_array_equal(found.predict_proba(X), expected)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LinearSVCCV([0.01, 0.1], cv=3),
        lambda: GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=3),
    ],
)
def test_a_search_is_made_once_on_all_rows(make):
    X, y = rows()
    search = make().fit(X, y)
    found = calibrated(search, X, y)
    assert found.estimator_.C == search.best_params_["C"]
    expected = calibrated(search.best_estimator_, X, y).predict_proba(X)
    assert (found.predict_proba(X) == expected).all()
    if isinstance(search, LinearSVCCV):
        again = CalibratedClassifier(make()).fit(X, y)
        assert (again.predict_proba(X) == expected).all()


@pytest.mark.parametrize("name", ["LinearSVC", "SVC"])
def test_patched_classes(name):
    X, y = rows()
    patched = drop_ins.DROP_INS[name]()
    found = calibrated(patched, X, y)
    assert type(found.estimator_) is type(patched)
    options = {"tol": 1e-4} if name == "LinearSVC" else {}
    own = {"LinearSVC": LinearSVC, "SVC": SVC}[name](**options)
    expected = calibrated(own, X, y).predict_proba(X)
    np.testing.assert_allclose(found.predict_proba(X), expected, rtol=0, atol=1e-2)


def test_a_precomputed_kernel():
    X, y = rows()
    K = X @ X.T
    found = calibrated(SVC(kernel="precomputed", tol=1e-8), K, y)
    expected = calibrated(SVC(kernel="linear", tol=1e-8), X, y)
    np.testing.assert_allclose(
        found.predict_proba(K), expected.predict_proba(X), rtol=0, atol=1e-5
    )


def test_data_frames_and_pipelines():
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    frame = pandas.DataFrame(X, columns=list("abcdefgh"))
    found = calibrated(LinearSVC(), frame, pandas.Series(y))
    assert found.feature_names_in_.tolist() == list("abcdefgh")
    assert (
        found.predict_proba(frame) == calibrated(LinearSVC(), X, y).predict_proba(X)
    ).all()
    pipeline = make_pipeline(StandardScaler(), CalibratedClassifier(SVC()))
    search = GridSearchCV(
        pipeline,
        {"calibratedclassifier__estimator__C": [0.1, 1.0]},
        scoring="neg_log_loss",
        cv=3,
    ).fit(X, y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_the_certificate_is_found_inside():
    X, y = rows()
    found = CalibratedClassifier(LinearSVC()).fit(X, y)
    assert found.certificate_.certified
    assert certify(found, X, y).relative_gap <= 1e-3


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("model", [LinearSVC(), SVC(), drop_ins.SVC()], ids=repr)
def test_files_and_pickles(model, method, classes, tmp_path):
    X, y = rows(classes)
    found = calibrated(model, X, y, method, StratifiedKFold(3))
    probability = found.predict_proba(X)
    again = pickle.loads(pickle.dumps(found))
    assert (again.predict_proba(X) == probability).all()
    save_model(found, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert isinstance(loaded, CalibratedClassifier)
    assert (loaded.method, loaded.cv, loaded.n_splits_) == (method, 3, 3)
    np.testing.assert_allclose(loaded.predict_proba(X), probability, rtol=0, atol=1e-12)
    pipeline = make_pipeline(StandardScaler(), CalibratedClassifier(model)).fit(X, y)
    save_model(pipeline, tmp_path / "pipeline")
    served = load_model(tmp_path / "pipeline").predict_proba(X)
    np.testing.assert_allclose(served, pipeline.predict_proba(X), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"calibration.folds": np.array([1])}, "1 folds"),
        ({"calibration.sigmoid": np.zeros((2, 2))}, "shape"),
        ({"calibration.sigmoid": np.full((3, 2), np.nan)}, "NaN"),
        ({"calibration.temperature": np.zeros((1, 1))}, "tensors"),
        ({"calibration.more": np.zeros(1)}, "should have"),
    ],
)
def test_damaged_files_are_refused(change, message, tmp_path):
    from dualgap.data import model_file

    X, y = rows()
    path = str(tmp_path / "model")
    save_model(calibrated(LinearSVC(), X, y), path)
    record, tensors = model_file.read(path)
    fields = {k: v for k, v in record.items() if k not in model_file._HEADER}
    tensors |= change
    fields["estimator"] = record["estimator"]
    model_file.write(path, model_file.seal(fields, tensors), tensors)
    with pytest.raises(ValueError, match=message):
        load_model(path)


@pytest.mark.parametrize(
    ("table", "ends"),
    [
        ([[0.0, 0.0], [0.0, 1.0]], [2]),
        ([[0.0, 1.0], [1.0, 0.0]], [2]),
        ([[0.0, 0.0], [1.0, 2.0]], [2]),
        ([[0.0, 0.0], [1.0, 1.0]], [3]),
    ],
)
def test_steps_of_a_file_rise(table, ends):
    from dualgap.models.files import set_calibration

    given = {"isotonic": np.array(table), "ends": np.array(ends)}
    given["folds"] = np.array([5])
    with pytest.raises(ValueError, match="steps of the calibration"):
        set_calibration(LinearSVC().fit(*rows(2)), given)


def test_limits_of_the_folds():
    X, y = rows()
    with pytest.warns(ConvergenceWarning):
        model = LinearSVC(solver="sdca", max_iter=1).fit(X, y)
    with pytest.warns(ConvergenceWarning, match="15 of 15 models did not.* fold"):
        found = calibrated(model, X, y)
    assert np.isfinite(found.predict_proba(X)).all()
    fitted = LinearSVC().fit(X, y).set_params(time_limit=1e-9)
    with pytest.raises(ValueError, match="time_limit=1e-09 was reached before"):
        calibrated(fitted, X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("runs", [1, 2])
def test_ctrl_c_keeps_the_best_model(runs, monkeypatch):
    """In the fit of the model, and in that of the first fold."""
    X, y = rows(2)
    model = CalibratedClassifier(LinearSVC(solver="dcd")).fit(X, y)
    begun = interrupt(monkeypatch, runs)
    with pytest.raises(KeyboardInterrupt, match="has no probabilities"):
        model.fit(X, y)
    assert len(begun) == runs
    assert model.certificate_.certified == (runs == 2)
    assert np.isfinite(model.estimator_.decision_function(X)).all()
    with pytest.raises(NotFittedError):
        model.predict_proba(X)


def test_a_solver_without_dual_variables():
    X, y = rows(2)
    model = LinearSVC(loss="hinge", solver="pegasos", tol=0.05)
    found = calibrated(model, X, y).predict_proba(X)
    expected = calibrated(LinearSVC(loss="hinge"), X, y).predict_proba(X)
    assert abs(found - expected).max() < 0.1


def test_calibrators_minimise_the_entropy():
    """No neighbour of a sigmoid or a temperature has a smaller one."""
    random = np.random.default_rng(0)
    values = 1e3 + 40.0 * random.standard_normal(500)
    hits = random.random(500) < 1.0 / (1.0 + np.exp(-(values - 1e3) / 20.0))
    weight = random.random(500)
    found = SigmoidCalibrator.fit(values, hits, weight)
    inside, outside = weight[hits].sum(), weight[~hits].sum()
    target = np.where(hits, (inside + 1) / (inside + 2), 1 / (outside + 2))

    def entropy(slope, offset):
        z = slope * values + offset
        return weight @ (np.logaddexp(0.0, z) - target * z)

    least = entropy(found.slope, found.offset)
    for step in (1e-3, -1e-3):
        slope = found.slope * (1.0 + step)
        for offset in (found.offset, found.offset * (1.0 + step)):
            assert entropy(slope, offset) > least
        assert entropy(found.slope, found.offset + step) > least
    table = np.column_stack([1e3 - values, values - 1e3])
    chosen = TemperatureCalibrator.fit(table, hits.astype(int), weight)
    losses = [
        log_loss(
            hits,
            TemperatureCalibrator(chosen.factor * by)(table)[:, 1],
            sample_weight=weight,
        )
        for by in (1.0, 0.999, 1.001)
    ]
    assert losses[0] == min(losses)


def test_equal_decisions_and_classes_without_probability():
    flat = SigmoidCalibrator.fit(np.ones(6), np.arange(6) < 2, np.ones(6))
    assert flat(np.ones(1)) == pytest.approx((2 * 0.75 + 4 / 6) / 6, abs=1e-6)
    never = IsotonicCalibrator(np.zeros(1), np.zeros(1))
    found = probabilities([never] * 4, np.zeros((2, 4)))
    assert (found == 0.25).all()

"""Wrong parameters and missing methods are answered with the right ones."""

from __future__ import annotations

import re

import numpy as np
import pytest
from sklearn import svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris, make_classification
from sklearn.ensemble import VotingClassifier
from sklearn.metrics import make_scorer, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError

from dualgap import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    CalibratedClassifier,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    OneClassSVM,
    model_selection,
    to_onnx,
)
from dualgap.distributed.linear_svc import DistributedLinearSVC
from dualgap.plot import ConvergenceDisplay

CLASSIFIERS = [SVC, SVCCV, LinearSVC, LinearSVCCV]
FACES = [*CLASSIFIERS, SVR, SVRCV, LinearSVR, OneClassSVM, LinearOneClassSVM]


@pytest.fixture(scope="module")
def data():
    return make_classification(120, 5, random_state=0)


@pytest.mark.parametrize(
    ("face", "name", "answer"),
    [
        *((f, "max_epochs", "use max_iter") for f in FACES),
        *((f, "shrinking", "leave it out") for f in FACES),
        *((f, "dual", "leave it out") for f in (LinearSVC, LinearSVR, LinearSVCCV)),
        *((f, "penalty", "have an L1 penalty") for f in (LinearSVCCV, LinearSVR)),
        (LinearSVC, "l1_ratio", "use penalty='l1' or 'l2'"),
        *((f, "probability", "CalibratedClassifier") for f in CLASSIFIERS),
        (SVR, "probability", "only classifiers"),
        (OneClassSVM, "C", "use nu"),
        (LinearSVCCV, "C", "use Cs"),
        (SVCCV, "gamma", "use gammas"),
        (SVRCV, "epsilon", "use epsilons"),
        (SVC, "nu", "use C$"),
        (SVR, "nu", "use C and epsilon"),
        (LinearSVC, "kernel", "SVC, SVR and OneClassSVM have kernels"),
        (SVC, "c", "did you mean 'C'"),
        (SVC, "gama", "did you mean 'gamma'"),
        (SVR, "cachesize", "did you mean 'cache_size'"),
        (LinearOneClassSVM, "wide", "it has nu, "),
        (DistributedLinearSVC, "max_iter", "use max_rounds"),
        (SVC, "svc__C", "did you mean 'C'"),
    ],
)
def test_parameters_of_other_models_are_answered(face, name, answer):
    told = f"{face.__name__} has no parameter '{name}': "
    with pytest.raises(TypeError, match=f"{re.escape(told)}.*{answer}") as made:
        face(**{name: 1})
    model = face()
    with pytest.raises(ValueError, match="has no parameter") as changed:
        model.set_params(**{name: 1, "tol": 0.1})
    assert str(changed.value) == str(made.value)
    assert model.tol != 0.1
    pipeline = make_pipeline(StandardScaler(), model)
    with pytest.raises(ValueError, match="has no parameter") as changed:
        pipeline.set_params(**{f"{pipeline.steps[-1][0]}__{name}": 1})
    assert str(changed.value) == str(made.value)


def test_a_parameter_of_the_model_inside_is_answered():
    for name in ("C", "model__C", "base_estimator__C"):
        with pytest.raises(ValueError, match="did you mean 'estimator__C'"):
            CalibratedClassifier(LinearSVC()).set_params(**{name: 1.0})


def test_what_takes_no_rows_says_so(data):
    model = LinearSVC().fit(*data)
    for function in (to_onnx, ConvergenceDisplay.from_estimator):
        with pytest.raises(TypeError, match="takes a fitted model and no rows; leave"):
            function(model, *data)


def test_columns_of_a_table_are_named(data):
    """NaN in training, and columns that the command line has made of words."""
    (X, y), pd = data, pytest.importorskip("pandas")
    table = pd.DataFrame(X, columns=["a", "b", "c", "city=Oslo", "e"])
    model = LinearSVC().fit(table, y)
    with pytest.raises(ValueError, match=r"(?s)city=Oslo.* with 'dualgap predict'"):
        model.predict(table.rename(columns={"city=Oslo": "city"}))
    table.iloc[7, 2] = np.nan
    with pytest.raises(ValueError, match=r"row 7: .* NaN or infinite in column 'c'"):
        model.fit(table, y)


@pytest.mark.parametrize("search", [model_selection.GridSearchCV, GridSearchCV])
@pytest.mark.parametrize(
    ("face", "name"),
    [(SVC, "shrinking"), (SVC, "probability"), (LinearSVC, "dual"), (SVC, "kernels")],
)
def test_grids_are_answered(data, search, face, name):
    with pytest.raises(TypeError) as made:
        face(**{name: 1})
    step = face.__name__.lower()
    for model, key in ((face(), name), (make_pipeline(face()), f"{step}__{name}")):
        with pytest.raises(ValueError, match="has no parameter") as told:
            search(model, {key: [1, 2]}).fit(*data)
        assert str(told.value) == str(made.value)


@pytest.mark.parametrize(
    ("face", "theirs", "names"),
    [
        (SVC, svm.SVC, "'probability' and 'shrinking'"),
        (SVC, svm.NuSVC, "'nu', 'probability' and 'shrinking'"),
        (LinearSVCCV, svm.LinearSVC, "'C', 'dual' and 'penalty'"),
        (SVR, svm.NuSVR, "'nu' and 'shrinking'"),
    ],
)
def test_all_unknown_parameters_are_answered_at_once(face, theirs, names):
    parameters = theirs().get_params()
    with pytest.raises(TypeError) as told:
        face(**parameters)
    message = str(told.value)
    assert message.startswith(f"{face.__name__} has no parameters {names}. ")
    answers = [part.partition(": ")[0] for part in message.split(". ")[1:]]
    assert answers == re.findall(r"'(\w+)'", names)
    with pytest.raises(ValueError, match="has no parameters") as changed:
        face().set_params(**parameters)
    assert str(changed.value) == message


def test_the_parameters_there_are_are_listed_once():
    with pytest.raises(TypeError, match="'wide' and 'deep': it has nu, tol") as told:
        LinearOneClassSVM(wide=1, deep=2)
    assert str(told.value).count("verbose") == 1
    with pytest.raises(TypeError, match=r"dual: leave .*\. It has nu, tol, ") as told:
        LinearOneClassSVM(wide=1, dual=2)
    assert str(told.value).count("verbose") == 1


def test_a_subclass_may_take_any_parameter():
    class Mine(LinearSVC):
        def __init__(self, **options):
            self.options = options

    assert Mine(whatever=1).options == {"whatever": 1}


def test_parameters_are_set_as_scikit_learn_sets_them():
    model = SVC()
    assert model.set_params() is model
    assert model.set_params(C=2.0, kernel="linear") is model
    assert (model.C, model.kernel) == (2.0, "linear")
    search = model_selection.GridSearchCV(SVC(), {"C": [1.0]}).set_params(
        estimator__tol=0.1
    )
    assert search.estimator.tol == 0.1


@pytest.mark.parametrize("face", CLASSIFIERS)
def test_the_way_to_probabilities_is_told(face):
    for name in ("predict_proba", "predict_log_proba"):
        assert not hasattr(face(), name)
        with pytest.raises(AttributeError, match=rf"{name}.*CalibratedClassifier"):
            getattr(face(), name)


def inside(face):
    """Models around a classifier, with the method that asks it for probabilities."""
    model = face()
    pipeline = make_pipeline(StandardScaler(), model)
    yield pipeline, "predict_proba"
    yield pipeline, "predict_log_proba"
    yield make_pipeline(StandardScaler(), pipeline), "predict_proba"
    yield OneVsRestClassifier(model), "predict_proba"
    yield VotingClassifier([("one", model)], voting="soft"), "predict"
    yield VotingClassifier([("one", pipeline)], voting="soft"), "predict"
    if face in (SVC, LinearSVC):
        for search in (GridSearchCV, model_selection.GridSearchCV):
            yield (
                search(pipeline, {f"{face.__name__.lower()}__C": [1.0]}, cv=2),
                ("predict_proba"),
            )


@pytest.mark.cases(None)
@pytest.mark.parametrize("face", CLASSIFIERS)
def test_the_way_to_probabilities_is_told_from_within_other_models(data, face):
    """The answer is the message or its cause, which a traceback shows first."""
    X, y = data
    for model, method in inside(face):
        model.fit(X, y)
        with pytest.raises(AttributeError) as told:
            getattr(model, method)(X)
        error = told.value
        while error.__cause__ is not None:
            error = error.__cause__
        assert re.search(r"has no predict.*CalibratedClassifier", str(error))


SCORES = ["roc_auc_ovr", "neg_log_loss", "neg_brier_score"]


@pytest.mark.parametrize("scoring", [*SCORES, "made"])
@pytest.mark.parametrize("where", ["SVCCV", "LinearSVCCV", "plain", "steps", "several"])
def test_scores_of_probabilities_are_refused_before_any_fit(
    where, scoring, monkeypatch
):
    X, y = load_iris(return_X_y=True)
    if scoring == "made":
        scoring = make_scorer(
            roc_auc_score, response_method="predict_proba", multi_class="ovr"
        )
    if where.endswith("CV"):
        search = {"SVCCV": SVCCV, "LinearSVCCV": LinearSVCCV}[where](scoring=scoring)
    else:
        model, prefix = SVC(), ""
        if where == "steps":
            model, prefix = make_pipeline(StandardScaler(), LinearSVC()), "linearsvc__"
        if where == "several":
            scoring = {"one": "accuracy", "two": scoring}
        search = model_selection.GridSearchCV(
            model, {f"{prefix}C": [1.0, 2.0]}, scoring=scoring, refit=False
        )
    for estimator in (SVC, LinearSVC):
        monkeypatch.setattr(estimator, "_fit", None)
    with pytest.raises(
        ValueError, match=r"^scoring=.* needs probabilities, and .*SVC has no predict"
    ):
        search.fit(X, y)


def test_scores_of_probabilities_of_calibrated_models():
    X, y = load_iris(return_X_y=True)
    model = CalibratedClassifierCV(SVC(), ensemble=False, cv=3)
    search = model_selection.GridSearchCV(
        model, {"estimator__C": [0.1, 1.0]}, scoring="roc_auc_ovr", cv=3
    )
    assert np.isfinite(search.fit(X, y).cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    ("face", "name", "value", "meant"),
    [
        (LinearSVC, "solver", "newtn", "newton"),
        (LinearSVC, "loss", "squared-hinge", "squared_hinge"),
        (LinearSVC, "class_weight", "balancd", "balanced"),
        (LinearSVCCV, "scoring", "acuracy", "accuracy"),
        (SVC, "kernel", "gaussian", "rbf"),
        (SVC, "kernel", "gausian", "rbf"),
        (SVC, "solver", "smo", "auto"),
        (SVR, "kernel", "rfb", "rbf"),
        (SVCCV, "kernel", "rfb", "rbf"),
        (OneClassSVM, "gamma", "scal", "scale"),
        (SVC, "kernel", "wavelet", None),
        (SVC, "gamma", -1.0, None),
    ],
)
def test_wrong_values_are_answered_with_the_ones_meant(data, face, name, value, meant):
    with pytest.raises(ValueError, match=f"Got {value!r} instead") as told:
        face(**{name: value}).fit(*data)
    end = "" if meant is None else f" Did you mean {meant!r}?"
    assert str(told.value).endswith(f"instead.{end}")
    # Names are sorted, and few.
    names = re.findall(r"'[a-z_-]+'", "".join(re.findall(r"\{.*\}", str(told.value))))
    assert len(names) < 20
    assert name == "scoring" or names == sorted(names)
    assert len(str(told.value)) < 500


@pytest.mark.parametrize("face", [SVR, LinearSVR, LogisticRegression])
def test_no_penalty_may_have_no_optimum(data, face):
    with pytest.raises(ValueError, match=r"instead\. Without a penalty there may"):
        face(C=np.inf).fit(*data)


def test_the_hard_margin_is_reached_at_a_large_C():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0.0, 1, -1)
    X[:, 0] += 0.5 * y
    hard, harder = (SVC(C=C, kernel="linear").fit(X, y) for C in (1e6, np.inf))
    assert (y * hard.decision_function(X)).min() >= 1.0 - 1e-2
    assert hard.certificate_.dual <= harder.certificate_.primal
    assert harder.certificate_.dual <= hard.certificate_.primal


@pytest.mark.parametrize("face", [SVC, LinearSVC, SVR])
def test_no_limit_is_a_large_number_of_epochs(data, face):
    with pytest.raises(ValueError, match="-1 is no limit: leave it out for 10,000"):
        face(max_iter=-1).fit(*data)


@pytest.mark.parametrize("face", [SVC, LinearSVC, LinearSVCCV])
def test_a_key_of_class_weight_is_a_class(data, face):
    X, y = data
    with pytest.raises(ValueError, match="key 'z', which is no class; the classes are"):
        face(class_weight={0: 1.0, "z": 2.0}).fit(X, y)
    # A class that a fold lacks may have a weight.
    face(class_weight={0: 1.0, 1: 1.0, 2: 5.0}).fit(X, y)


def test_values_that_are_equal_but_of_another_type_are_checked_again():
    X, y = [[0.0], [1.0]], [0, 1]
    LinearSVC(fit_intercept=True, C=1.0).fit(X, y)
    with pytest.raises(InvalidParameterError, match="fit_intercept"):
        LinearSVC(fit_intercept=1, C=1.0).fit(X, y)
    for _ in range(2):
        with pytest.raises(InvalidParameterError, match="'C' parameter of LinearSVC"):
            LinearSVC(C=-1.0).fit(X, y)
    assert LinearSVC(C=np.float64(1.0)).fit(X, y).certificate_.certified

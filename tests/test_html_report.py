"""Reports: the page says what the certificate and scikit-learn's metrics say."""

from __future__ import annotations

import base64
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest
from scipy import sparse
from sklearn import linear_model as others
from sklearn import metrics, svm
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import SGDClassifier, SGDOneClassSVM
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

import dualgap
from dualgap import (
    SVC,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    NuSVR,
    OneClassSVM,
    html_report,
    plot,
)

pyplot = pytest.importorskip("matplotlib.pyplot")

VOID = {"meta", "img"}


@pytest.fixture(autouse=True)
def sketches(monkeypatch):
    """Draw every picture, but write none, because that takes half a second."""

    def sketch(draw):
        draw(pyplot.Figure().subplots())
        return b"<svg/>"

    monkeypatch.setattr(html_report, "svg", sketch)


@pytest.fixture
def pictures(monkeypatch, sketches):
    monkeypatch.setattr(html_report, "svg", plot.svg)


class Page(HTMLParser):
    """The text, tables and attributes of a page; every tag has to be closed."""

    def __init__(self, report):
        super().__init__()
        self.open, self.tables, self.links, self.ids = [], [], [], []
        self.words = ""
        self.feed(report.html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        assert tag not in ("script", "link", "iframe")
        self.links += [value for name, value in attrs if name in ("src", "href")]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        self.words += data

    def table(self, head):
        """Rows of the table whose head begins so."""
        found = [rows for rows in self.tables if rows[0][: len(head)] == head]
        return found[0][1:]


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def percent(x):
    return f"{100 * x:.2f} %"


def checked(model, X, y=None, **options):
    """The page, after checks that hold for every page."""
    page = Page(dualgap.report(model, X, y, **options))
    assert len(page.links) > 0
    for link in page.links:
        kind, _, data = link.partition(",")
        assert kind == "data:image/svg+xml;base64"
        picture = base64.b64decode(data).decode()
        outside = r"""(href|src)=["'](?!#)|url\((?!#)|@import|<script"""
        assert not re.search(outside, picture)
    assert not re.search(r"https?://|url\(|@import", page.words)
    return page


def check_certificate(page, certificate):
    """The table of the certificate is there, with the largest gap first."""
    rows = page.table(["", "within", "primal", "dual"])
    parts = {part.name: part for part in certificate}
    if len(parts) > 1:
        parts["all together"] = certificate
        assert rows[0][0] == "all together"
    assert {row[0] for row in rows} == set(parts)
    for name, within, primal, dual, *_ in rows:
        part = parts[name]
        assert within == dualgap.certificate.percent(part.relative_gap)
        assert (primal, dual) == (f"{part.primal:.9g}", f"{part.dual:.9g}")
    gaps = [parts[row[0]].relative_gap for row in rows[len(parts) > 1 :]]
    assert gaps == sorted(gaps, reverse=True)
    assert certificate.message in page.words


def check_classes(page, model, X, y):
    predicted, classes = model.predict(X), np.unique(y)
    accuracy = metrics.accuracy_score(y, predicted)
    balanced = metrics.balanced_accuracy_score(y, predicted)
    text = f"Accuracy {percent(accuracy)}, balanced accuracy {percent(balanced)}."
    assert text in page.words
    rows = page.table(["class", "rows", "share", "found"])
    recalls = metrics.recall_score(y, predicted, average=None)
    for label, recall, row in zip(classes, recalls, rows, strict=True):
        share = percent(np.mean(y == label))
        assert row[:4] == [str(label), str(np.sum(y == label)), share, percent(recall)]
    confusion = metrics.confusion_matrix(y, predicted)
    found = page.table(["true class ↓, predicted →"])
    assert [row[1:] for row in found] == [list(map(str, row)) for row in confusion]
    return rows


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(random_state=0),
        LinearSVC(multi_class="ovo", random_state=0),
        LinearSVC(loss="hinge", multi_class="crammer_singer", random_state=0),
        SVC(random_state=0),
        SVC(decision_function_shape="ovo", random_state=0),
    ],
    ids=str,
)
def test_classifiers(model):
    X, y = load_iris(return_X_y=True)
    model.fit(X, y)
    page = checked(model, X, y)
    check_certificate(page, model.certificate_)
    rows = check_classes(page, model, X, y)
    counts = np.bincount(y[model.support_])
    for row, count in zip(rows, counts, strict=True):
        assert row[4] == f"{count} ({percent(count / 50)})"
    n = len(model.support_)
    assert f"{n} support vectors, {percent(n / 150)} of the rows." in page.words
    assert len(page.links) == 2  # convergence and margins


@pytest.mark.parametrize("ensemble", [True, False])
def test_calibrated_classifiers(ensemble):
    X, y = load_iris(return_X_y=True)
    y = np.array(["a", "b", "c"])[y]
    model = CalibratedClassifierCV(SVC(random_state=0), ensemble=ensemble)
    page = Page(dualgap.report(model.fit(X, y), X, y))
    check_classes(page, model, X, y)
    assert page.links == []  # there are probabilities, and no margins


def test_two_classes_sparse_and_dense():
    X, y = cancer()
    model = LinearSVC(random_state=0).fit(X, y)
    page = checked(model, X, y)
    check_certificate(page, model.certificate_)
    check_classes(page, model, X, y)
    assert "569 rows, 30 columns" in page.words
    X = sparse.csr_matrix(np.where(X > 1, X, 0.0))
    model = LinearSVC(random_state=0).fit(X, y)
    page = checked(model, X.tocsc(), y)
    check_certificate(page, model.certificate_)
    check_classes(page, model, X, y)


PROVED = "Labels proved equal to labels of the exact optimum"


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(loss="hinge", tol=0.1),
        LinearSVC(loss="hinge", tol=0.1, penalize_intercept=False),
        SVC(random_state=0),  # a small problem, solved up to rounding
        LinearSVC(tol=1e-12, random_state=0),
    ],
    ids=repr,
)
def test_labels_proved_equal_to_labels_of_the_optimum(model):
    """The page counts the labels that `certified_labels` proves, at its end."""
    X, y = cancer()
    weight = np.linspace(0.5, 2.0, len(y))
    model.fit(X, y, sample_weight=weight)
    before = set(vars(model))
    words = checked(model, X, y, sample_weight=weight).words
    assert words.index("Accuracy") < words.index("certified") < words.index("Advanced")
    assert set(vars(model)) == before
    certain = model.bound_optimum(X, y, weight).certified_labels(X)
    left = np.count_nonzero(~certain)
    assert (left > 0) == (model.tol == 0.1)
    proved = 569 - left
    assert f"{PROVED}{proved} of 569 ({percent(proved / 569)})." in words
    assert ("The bound is cautious" in words) == (left > 0)
    exact = LinearSVC if isinstance(model, LinearSVC) else SVC
    exact = exact(**model.get_params()).set_params(tol=1e-10)
    labels = exact.fit(X, y, sample_weight=weight).predict(X)
    assert np.array_equal(labels[certain], model.predict(X)[certain])


def test_labels_of_a_problem_without_bounds():
    X, y = cancer()
    landmarks = SVC(solver="nystroem", random_state=0).fit(X, y)
    assert PROVED not in checked(landmarks, X, y).words
    gram = SVC(kernel="precomputed", random_state=0).fit(X @ X.T, y)
    assert PROVED not in checked(gram, X @ X.T, y).words
    other = svm.SVC().fit(X, y)
    assert PROVED not in checked(other, X, y).words


@pytest.mark.cases(None)
@pytest.mark.filterwarnings(
    "ignore::FutureWarning", "ignore::dualgap.DegenerateWarning"
)
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        LogisticRegression(penalty="l2"),
        LogisticRegression(l1_ratio=0.5),
        LogisticRegression(C=1e-3, l1_ratio=1.0),
        others.LogisticRegression(),
        others.RidgeClassifier(),
    ],
    ids=repr,
)
def test_models_without_support_vectors(model, scaled):
    X, y = cancer()
    model = make_pipeline(StandardScaler(), model) if scaled else model
    page = checked(model.fit(X, y), X, y, random_state=0)
    check_classes(page, model, X, y)
    last = model[-1] if scaled else model
    for words in ("support vector", "have a loss", "balanced'"):
        assert words not in page.words
    empty = not np.any(last.coef_)
    assert ("All features have the weight 0: use a larger C." in page.words) == empty
    assert ("another threshold for predict_proba" in page.words) == empty


@pytest.mark.parametrize("model", [others.Ridge(), others.HuberRegressor(max_iter=999)])
def test_regression_of_scikit_learn(model):
    X, y = load_diabetes(return_X_y=True)
    X = scale(X)
    words = checked(model.fit(X, y), X, y, random_state=0).words
    assert "support vector" not in words
    inside = "square of each residual"
    if hasattr(model, "scale_"):
        far = np.abs(y - model.predict(X)) > 1.35 * model.scale_
        assert np.array_equal(far, model.outliers_)
        inside = f"{percent(np.mean(~far))} of the residuals lie within ±epsilon scale_"
    assert inside in words


@pytest.mark.parametrize("quantile", [0.1, 0.9])
def test_quantiles_that_a_penalised_bias_pulls(quantile):
    """The dual variables add up to what the share lacks, which the sentence says."""
    X, y = load_diabetes(return_X_y=True)
    X, weight = scale(X), np.linspace(0.5, 2.0, len(y))
    model = LinearSVR(loss="quantile", quantile=quantile, tol=1e-6)
    with pytest.warns(dualgap.DegenerateWarning, match="bias is penalised") as caught:
        model.fit(X, y, weight)
    told = float(str(caught[0].message).split()[2]) / 100.0
    below = np.average(y <= model.predict(X), weights=weight)
    assert abs(below - told) < 0.02 < abs(below - quantile)
    words = checked(model, X, y, sample_weight=weight).words
    assert "use intercept_scaling=100, or kernel='linear' (SVR)" in words
    assert f"D² {model.score(X, y):.3f}" in words
    model.set_params(intercept_scaling=100.0).fit(X, y, weight)
    below = np.average(y <= model.predict(X), weights=weight)
    assert abs(below - quantile) < 0.02
    assert "penalised" not in checked(model, X, y, sample_weight=weight).words


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", [svm.LinearSVC(), svm.SVC(), SGDClassifier()])
def test_models_of_scikit_learn(model):
    X, y = cancer()
    if hasattr(model, "random_state"):
        model.set_params(random_state=0)
    model.set_params(**({} if hasattr(model, "gamma") else {"loss": "hinge"}))
    model.fit(X, y)
    page = checked(model, X, y, random_state=0)
    check_certificate(page, dualgap.certify(model, X, y, random_state=0))
    check_classes(page, model, X, y)
    assert "Convergence" not in page.words
    assert ("keep its support vectors" in page.words) != hasattr(model, "support_")


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "model", [LinearSVR(), SVR(C=100.0), svm.SVR(C=100.0), svm.LinearSVR()], ids=repr
)
def test_regression(model):
    X, y = load_diabetes(return_X_y=True)
    model.set_params(epsilon=5.0).fit(X, y)
    page = checked(model, X, y, random_state=0)
    predicted = model.predict(X)
    error, r2 = metrics.mean_absolute_error(y, predicted), model.score(X, y)
    assert f"R² {r2:.3f}, mean absolute error {error:.4g}." in page.words
    inside = percent(np.mean(np.abs(y - predicted) <= 5.0))
    assert f"{inside} of the residuals lie within ±epsilon = ±5." in page.words
    assert ("worse than a constant (R²" in page.words) == (r2 < 0)
    own = getattr(model, "certificate_", None)
    check_certificate(page, own or dualgap.certify(model, X, y, random_state=0))


@pytest.mark.cases(None)
@pytest.mark.parametrize("model", [NuSVR(nu=0.3), svm.NuSVR(nu=0.3)], ids=repr)
def test_regression_that_chooses_its_tube(model):
    X, y = load_diabetes(return_X_y=True)
    page = checked(model.fit(X, y), X, y, random_state=0)
    assert "at most nu = 0.3 of the rows lie outside the tube." in page.words
    page = checked(model.set_params(nu=1.0).fit(X, y), X, y, random_state=0)
    assert "Nearly every row is a support vector: try a smaller nu." in page.words


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    "model",
    [
        OneClassSVM(nu=0.2),
        LinearOneClassSVM(nu=0.2),
        svm.OneClassSVM(nu=0.2),
        SGDOneClassSVM(nu=0.2, random_state=0),
    ],
    ids=repr,
)
def test_one_class_needs_no_labels(model):
    X, _ = load_iris(return_X_y=True)
    model.fit(X)
    page = checked(model, X, random_state=0)
    share = percent(np.mean(model.predict(X) == -1))
    assert f"{share} of the rows are outliers" in page.words
    assert "at most nu = 0.2 of them are" in page.words


def test_pipelines_and_searches():
    X, y = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0))
    search = GridSearchCV(pipeline, {"linearsvc__C": [0.1, 1.0]}, cv=2).fit(X, y)
    model = search.best_estimator_[-1]
    page = checked(search, X, y)
    check_certificate(page, model.certificate_)
    check_classes(page, search, X, y)
    assert "GridSearchCV(" in page.words
    assert "different scales" not in page.words  # the scaler is in the pipeline
    assert "different scales" in checked(LinearSVC(tol=0.1).fit(X, y), X, y).words


def test_searches_for_C(pictures):
    X, y = cancer()
    model = LinearSVCCV([0.001, 0.0001], cv=3, random_state=0).fit(X, y)
    page = checked(model, X, y)
    check_certificate(page, model.certificate_)
    assert model.C_ == 0.001
    assert "The best C, 0.001, is the largest of Cs: search beyond it." in page.words
    assert len(page.links) == 3  # convergence, scores, margins


def test_names_are_escaped(pictures):
    X, y = load_iris(return_X_y=True)
    names = np.array(["<script>alert(1)</script>", "a & $b$", "_'\"\u4e2d"])[y]
    X[:, 1] = 3.0
    columns = ["<img src=x>", "<b>", "c", "d"]
    model = LinearSVC(random_state=0).fit(X, names)
    page = checked(model, X, names, feature_names=columns)
    check_classes(page, model, X, names)
    assert "1 of 4 columns are constant (<b>)" in page.words


def test_columns_of_data_frames_have_their_names():
    pandas = pytest.importorskip("pandas")
    X, y = load_iris(return_X_y=True)
    X[:, 1] = 3.0
    columns = ["<img src=x>", "<b>", "c", "d"]
    frame = pandas.DataFrame(X, columns=columns)
    assert "(<b>)" in checked(LinearSVC().fit(frame, y), frame, y).words
    pipeline = make_pipeline(StandardScaler(), LinearSVC()).fit(frame, y)
    assert "(<b>)" in checked(pipeline, frame, y).words


def test_remarks_on_columns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 8)), np.arange(200) % 2
    X[:, 0] += y
    model = LinearSVC(tol=0.1, random_state=0)
    words = checked(model.fit(X, y), X, y).words
    for remark in ("constant", "different scales", "far from all others"):
        assert remark not in words
    X[:, 2:] *= 1e3
    X[:, 1:3] = [[7.0, 0.1]]
    words = checked(model.fit(X, y), X, y).words
    assert "2 of 8 columns are constant (1, 2)" in words
    assert "the values of column 0 span" in words
    assert "StandardScaler()" in words
    rows = sparse.csr_matrix(X)
    assert "MaxAbsScaler()" in checked(model.fit(rows, y), rows, y).words
    X[:, 1:] = 0.0
    X[7, 0] = 99_999.0
    words = checked(model.fit(X, y), X, y).words
    assert "1 of 8 columns have values far from all others (0)" in words
    assert "7 of 8 columns are constant (1, 2, 3, 4, 5 and 2 more)" in words
    gram = rng.normal(size=(200, 1)) @ np.full((1, 200), 0.0) + np.eye(200)
    kernel = SVC(kernel="precomputed").fit(gram, y)
    assert "column" not in checked(kernel, gram, y).words.replace("200 columns", "")


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_badge_and_the_remedies():
    X, y = cancer()
    rough = LinearSVC(
        loss="hinge", solver="sgd-s", max_iter=1, tol=1e-9, random_state=0
    ).fit(X, y)
    page = dualgap.report(rough, X, y).html
    assert not rough.certificate_.certified
    colour = "amber" if rough.certificate_.relative_gap < 0.1 else "red"
    assert f'class="badge {colour}"' in page
    assert "Train with solver=&#x27;auto&#x27; instead of &#x27;sgd-s&#x27;." in page
    best = LinearSVC(random_state=0).fit(X, y)
    page = dualgap.report(best, X, y).html
    assert '<span class="badge green">certified</span>' in page
    assert "Train with" not in page
    raw, _ = load_breast_cancer(return_X_y=True)
    far = svm.LinearSVC(loss="hinge", max_iter=20, random_state=0).fit(raw, y)
    page = dualgap.report(far, raw, y).html
    assert '<span class="badge red">far from the optimum</span>' in page
    assert "Train again with a smaller tol" in page


def test_advice_follows_from_the_facts():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), np.r_[np.zeros(190), np.ones(10)]
    words = checked(LinearSVC(C=1e-4).fit(X, y), X, y).words
    assert "no better than naming the largest class" in words
    assert "Only 0.00 % of the rows of class 1.0 are found" in words
    balanced = LinearSVC(C=1e-4, class_weight="balanced").fit(X, y)
    assert "class_weight='balanced' gives" not in checked(balanced, X, y).words
    words = checked(SVC(C=1e3, gamma=100.0).fit(X, y), X, y).words
    assert "All training rows are right" in words
    assert "no better than" not in words
    y = rng.integers(0, 2, 200)
    words = checked(SVC(C=0.01).fit(X, y), X, y).words
    assert "Nearly every row is a support vector: try a larger C." in words


def test_long_tables_are_collapsed():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 20
    X = rng.normal(size=(400, 5)) + rng.normal(size=(20, 5))[y]
    model = LinearSVC(tol=0.1, random_state=0).fit(X, y)
    page = checked(model, X, y)
    heads = [rows[0][:2] for rows in page.tables]
    assert heads.count(["", "within"]) == 2  # 15 rows and the rest
    assert len(page.table(["", "within"])) == 15
    assert "6 more" in page.words
    assert "5 more" in page.words
    confusion = metrics.confusion_matrix(y, model.predict(X))
    np.fill_diagonal(confusion, 0)
    true, predicted, rows = page.table(["true class", "predicted"])[0]
    assert confusion[int(true), int(predicted)] == int(rows) == confusion.max()


def test_the_same_model_gives_the_same_page_which_can_be_saved(pictures, tmp_path):
    X, y = cancer()
    model = LinearSVC(random_state=0).fit(X, y)
    report = dualgap.report(model, X, y)
    assert report.html == dualgap.report(model, X, y).html
    report.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == report.html
    with pytest.raises(TypeError, match="path must be a str or a pathlib"):
        report.save(3)
    assert "<html" not in report._repr_html_()
    assert report._repr_html_().startswith("<iframe ")
    assert repr(report) == "Report()"


def test_models_from_elsewhere(tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SVC(random_state=0).fit(X, y)
    smaller = dualgap.compress(model, X, y, tol=0.05)
    page = checked(smaller, X, y)
    check_certificate(page, smaller.certificate_)
    assert f"{len(smaller.support_)} support vectors" in page.words
    assert len(page.links) == 1  # no history
    with dualgap.patch_sklearn():
        drop_in = svm.SVC().fit(X, y)
    check_certificate(checked(drop_in, X, y), drop_in.certificate_)
    pytest.importorskip("safetensors")
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, y)
    dualgap.save_model(pipeline, tmp_path / "model")
    loaded = dualgap.load_model(tmp_path / "model")
    check_certificate(checked(loaded, X, y), pipeline[-1].certificate_)


def test_compression_is_advised_for_many_support_vectors():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1100, 2)), rng.integers(0, 2, 1100)
    model = SVC(C=0.01, random_state=0).fit(X, y)
    words = checked(model, X, y).words
    assert len(model.support_) >= 1000
    assert "dualgap.compress drops some" in words


def test_sample_weights():
    X, y = cancer()
    weight = np.linspace(0.5, 2.0, len(y))
    model = LinearSVC(random_state=0).fit(X, y, sample_weight=weight)
    check_certificate(checked(model, X, y, sample_weight=weight), model.certificate_)
    with pytest.raises(ValueError, match="give the arguments of fit"):
        dualgap.report(model, X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_batches_get_a_new_certificate():
    X, y = cancer()
    model = LinearSVC(random_state=0).partial_fit(X[:300], y[:300], classes=[0, 1])
    model.partial_fit(X[300:], y[300:])
    assert model.certificate_.relative_gap == np.inf
    bound = dualgap.certify(model, X, y, random_state=0)
    check_certificate(checked(model, X, y, random_state=0), bound)


def test_without_matplotlib_there_is_a_remedy(monkeypatch):
    X, y = cancer()
    model = LinearSVC(tol=0.1).fit(X, y)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'dualgap\[plot\]'"):
        dualgap.report(model, X, y)

"""Displays: what is drawn is what was measured."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.inspection import DecisionBoundaryDisplay
from sklearn.preprocessing import scale

from dualgap import SVC, LinearSVC, LinearSVCCV, svm_path
from dualgap.certificate import relative_gap
from dualgap.plot import ConvergenceDisplay, MarginDisplay, PathDisplay

pyplot = pytest.importorskip("matplotlib.pyplot")


@pytest.fixture(autouse=True)
def closed():
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


def test_solvers_on_one_axis_by_gap_and_by_value():
    X, y = cancer()
    models = {
        name: LinearSVC(solver=name, tol=0.05, random_state=0).fit(X, y)
        for name in ("dcd", "sdca", "sgd-s")
    }
    gaps = ConvergenceDisplay.from_estimators(models, x="epoch")
    labels = [text.get_text() for text in gaps.ax_.get_legend().get_texts()]
    assert labels == list(models)
    history = models["sdca"].history_
    line, dots = gaps.ax_.lines[2:4]
    expected = [relative_gap(r["primal"], r["dual"]) for r in history]
    shown = np.isfinite(expected) & (np.array(expected) > 0)
    np.testing.assert_allclose(line.get_ydata(), np.array(expected)[shown])
    np.testing.assert_array_equal(line.get_xdata(), history["epoch"][shown])
    proved = shown & history["exact"]
    np.testing.assert_array_equal(dots.get_xdata(), history["epoch"][proved])

    _, ax = pyplot.subplots()
    values = ConvergenceDisplay.from_estimator(models["dcd"], y="objective", ax=ax)
    assert values.ax_ is ax
    primal, _, dual, _ = ax.lines
    assert primal.get_ydata()[-1] == models["dcd"].history_["primal"][-1]
    assert dual.get_ydata()[-1] == models["dcd"].history_["dual"][-1]
    assert dual.get_linestyle() == "--"


def test_one_curve_per_class():
    X, y = load_iris(return_X_y=True)
    display = ConvergenceDisplay.from_estimator(LinearSVC().fit(X, y), name="ours")
    assert list(display.histories) == [f"ours, class {k}" for k in range(3)]
    X, y = X[::4], np.arange(len(X[::4])) % 4
    pairs = list(itertools.combinations(range(4), 2))
    for model in (LinearSVC(multi_class="ovo"), SVC()):
        display = ConvergenceDisplay.from_estimator(model.fit(X, y), name="ours")
        names = [f"ours, {i} against {j}" for i, j in pairs]
        assert list(display.histories) == names


def test_paths_of_coefficients_norms_and_gaps():
    X, y = cancer()
    path = svm_path(X, y, [1.0, 0.01, 0.1], random_state=0)
    lines = PathDisplay.from_path(path).ax_.lines
    assert len(lines) == 30
    np.testing.assert_array_equal(lines[3].get_xdata(), [0.01, 0.1, 1.0])
    np.testing.assert_array_equal(lines[3].get_ydata(), path.coefs[[1, 2, 0], 3])
    (line,) = PathDisplay.from_path(path, y="norm").ax_.lines
    np.testing.assert_allclose(
        line.get_ydata(), np.linalg.norm(path.coefs[[1, 2, 0]], axis=1)
    )
    (line,) = PathDisplay.from_path(path, y="gaps").ax_.lines
    np.testing.assert_array_equal(line.get_ydata(), path.relative_gaps[[1, 2, 0]])
    X, y = load_iris(return_X_y=True)
    several = svm_path(X, y, [0.1, 1.0])
    lines = PathDisplay.from_path(several, positive=2).ax_.lines
    np.testing.assert_array_equal(lines[0].get_ydata(), several.coefs[:, 2, 0])


def test_scores_of_a_search():
    X, y = cancer()
    model = LinearSVCCV([0.01, 0.1, 1.0], cv=3, random_state=0).fit(X, y)
    display = PathDisplay.from_estimator(model)
    mean, best = display.ax_.lines
    np.testing.assert_allclose(mean.get_ydata(), model.scores_.mean(axis=0))
    assert best.get_xdata()[0] == model.C_
    assert len(PathDisplay.from_estimator(model, y="gaps").ax_.lines) == 3 + 1


@pytest.mark.parametrize("face", [LinearSVC, SVC])
def test_margins_and_support_vectors(face):
    X, y = cancer()
    model = face(random_state=0).fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y, bins=20)
    margins = np.where(y == 1, 1, -1) * model.decision_function(X)
    np.testing.assert_array_equal(display.margins, margins)
    heights = [patch.get_height() for patch in display.ax_.patches[:20]]
    np.testing.assert_array_equal(heights, np.histogram(margins, 20)[0])
    assert np.flatnonzero(display.support).tolist() == sorted(model.support_)
    # Off the support no row costs anything but what the gap allows.
    slack = np.maximum(0.0, 1.0 - margins[~display.support]).sum()
    assert slack <= model.certificate_.gap + 1e-9
    swapped = MarginDisplay.from_estimator(model, X, y, positive=0, support=False)
    np.testing.assert_array_equal(swapped.margins, margins)


def test_margins_of_one_class_against_the_rest():
    X, y = load_iris(return_X_y=True)
    model = LinearSVC(random_state=0).fit(X, y)
    display = MarginDisplay.from_estimator(model, X, y, positive=2)
    expected = np.where(y == 2, 1, -1) * model.decision_function(X)[:, 2]
    np.testing.assert_array_equal(display.margins, expected)
    assert display.support.sum() == np.count_nonzero(model.dual_coef_[2])


def test_what_cannot_be_drawn_is_refused():
    X, y = load_iris(return_X_y=True)
    linear, kernel = LinearSVC().fit(X, y), SVC().fit(X, y)
    with pytest.raises(ValueError, match="x='hours'"):
        ConvergenceDisplay.from_estimator(linear, x="hours")
    with pytest.raises(ValueError, match="y='loss'"):
        ConvergenceDisplay.from_estimator(linear, y="loss")
    with pytest.raises(ValueError, match="'gaps', 'norm'"):
        PathDisplay.from_path(svm_path(X, y, [1.0]), y="scores")
    with pytest.raises(ValueError, match="positive=None"):
        MarginDisplay.from_estimator(linear, X, y)
    with pytest.raises(ValueError, match="one versus the rest"):
        MarginDisplay.from_estimator(kernel, X, y, positive=1)
    pairs = LinearSVC(multi_class="ovo").fit(X, y)
    with pytest.raises(ValueError, match="one versus the rest"):
        MarginDisplay.from_estimator(pairs, X, y, positive=1)
    with pytest.raises(ValueError, match="LinearSVC has no history_; fit it"):
        ConvergenceDisplay.from_estimator(LinearSVC())
    with pytest.raises(ValueError, match="is not a class"):
        MarginDisplay.from_estimator(linear, X, y, positive=7)
    with pytest.raises(ValueError, match="support=False"):
        MarginDisplay.from_estimator(linear, X[:5], y[:5], positive=1)


@pytest.mark.parametrize("face", [LinearSVC, SVC])
def test_decision_boundaries_by_scikit_learn(face):
    X, y = load_iris(return_X_y=True)
    model = face(random_state=0).fit(X[:, :2], y == 1)
    display = DecisionBoundaryDisplay.from_estimator(
        model, X[:, :2], response_method="decision_function", grid_resolution=20
    )
    grid = np.c_[display.xx0.ravel(), display.xx1.ravel()]
    np.testing.assert_allclose(
        display.response.ravel(), model.decision_function(grid), atol=1e-12
    )


# Notebooks


def test_the_notebook_shows_the_certificate():
    X, y = cancer()
    model = LinearSVC(C=0.1, random_state=0)
    before = model._repr_html_()
    assert "Certificate" not in before
    model.fit(X, np.array(["<no>", "yes"])[y])
    for text in (model._repr_html_(), model._repr_mimebundle_()["text/html"]):
        assert text.count("dualgap-certificate") == 1
        assert "certified" in text
        assert f"{model.certificate_.primal:.9g}" in text
        assert f"{model.certificate_.dual:.9g}" in text
    assert "C=0.1" in model._repr_mimebundle_()["text/plain"]


def test_the_notebook_names_classes_and_pairs():
    X, y = load_iris(return_X_y=True)
    names = np.array(["<k>", "b", "c"])[y]
    linear = LinearSVC(random_state=0).fit(X, names)._repr_html_()
    kernel = SVC(random_state=0).fit(X, names)._repr_html_()
    together = LinearSVC(multi_class="crammer_singer").fit(X, names)._repr_html_()
    search = LinearSVCCV([0.1, 1.0], random_state=0).fit(X, names)._repr_html_()
    assert "class &lt;k&gt;" in linear
    assert "&lt;k&gt; against b" in kernel
    for text in (linear, kernel, together, search):
        assert "<k>" not in text
        assert "dualgap-certificate" in text

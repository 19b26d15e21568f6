"""Displays: what is drawn is what was measured."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import numpy as np
import pandas
import pytest
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from dualgap import (
    SVC,
    SVCCV,
    SVR,
    CalibratedClassifier,
    LinearSVC,
    LinearSVCCV,
    OneClassSVM,
)
from dualgap.certificate import relative_gap
from dualgap.model_selection import GridSearchCV, l1_path, svc_path, svm_path
from dualgap.models import shapley_values
from dualgap.plot import (
    COLORS,
    BoundaryDisplay,
    ConvergenceDisplay,
    ErrorBoundsDisplay,
    MarginDisplay,
    PathDisplay,
    ShapleyDisplay,
)

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
        name: LinearSVC(loss="hinge", solver=name, tol=0.05).fit(X, y)
        for name in ("dcd", "sdca", "sgd-s")
    }
    gaps = ConvergenceDisplay.from_estimators(models, x="epoch")
    labels = [text.get_text() for text in gaps.ax_.get_legend().get_texts()]
    assert labels == [*models, "tol = 0.05"]
    history = models["sdca"].history_
    line, dots, estimates = gaps.ax_.lines[3:6]
    found = np.array([relative_gap(r["primal"], r["dual"]) for r in history])
    best = np.minimum.accumulate(np.where(history["exact"], found, np.inf))
    proved = np.isfinite(best)
    np.testing.assert_array_equal(line.get_xdata(), history["epoch"][proved])
    np.testing.assert_array_equal(line.get_ydata(), best[proved])
    assert (np.diff(line.get_ydata()) <= 0.0).all()
    assert line.get_ydata()[-1] == models["sdca"].certificate_.relative_gap
    assert set(dots.get_xdata()) <= set(history["epoch"][history["exact"]])
    assert dots.get_ydata()[-1] == line.get_ydata()[-1]
    assert (np.diff(estimates.get_ydata()) <= 0.0).all()

    _, ax = pyplot.subplots()
    values = ConvergenceDisplay.from_estimator(models["dcd"], y="objective", ax=ax)
    assert values.ax_ is ax
    primal, _, dual, _ = ax.lines
    assert primal.get_ydata()[-1] == models["dcd"].history_["primal"][-1]
    assert dual.get_ydata()[-1] == models["dcd"].history_["dual"][-1]
    assert dual.get_linestyle() == "--"


def test_of_many_curves_the_worst_is_in_colour():
    X, y = load_digits(return_X_y=True)
    model = SVC().fit(X[:200], y[:200])
    display = ConvergenceDisplay.from_estimator(model)
    worst = max(model.certificate_.parts, key=lambda part: part.relative_gap)
    (label,) = (
        text.get_text()
        for text in display.ax_.get_legend().get_texts()
        if "tol" not in text.get_text()
    )
    assert label == f"SVC, {worst.name} (worst of 45)"
    colored = [line for line in display.ax_.lines if line.get_color() == COLORS[0]]
    assert colored[0].get_ydata()[-1] == worst.relative_gap


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
    with_zeros = l1_path(X, y, Cs=3)
    lines = PathDisplay.from_path(with_zeros, y="gaps").ax_.lines
    gaps = [[part.relative_gap for part in c] for c in with_zeros.certificates]
    assert np.array_equal(np.array([line.get_ydata() for line in lines]).T, gaps)
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
    with pytest.raises(ValueError, match="LinearSVC has no history_; fit a"):
        ConvergenceDisplay.from_estimator(LinearSVC())
    theirs = sklearn.svm.LinearSVC().fit(X, y)
    with pytest.raises(ValueError, match="or of another package, has none"):
        ConvergenceDisplay.from_estimator(theirs)
    with pytest.raises(TypeError, match="estimators is of type list; give a dict"):
        ConvergenceDisplay.from_estimators([linear, kernel])
    for model in (linear, SVCCV([1.0]), GridSearchCV(SVC(), {"C": [1.0]}).fit(X, y)):
        with pytest.raises(TypeError, match="to draw; give a fitted LinearSVCCV"):
            PathDisplay.from_estimator(model)
    with pytest.raises(TypeError, match=r"SVCPath, .* give a result of svm_path"):
        PathDisplay.from_path(svc_path(X, y, [1.0]))
    for model in (SVR().fit(X, y), OneClassSVM().fit(X)):
        with pytest.raises(TypeError, match="has no margins; give a fitted classifier"):
            MarginDisplay.from_estimator(model, X, y)
    with pytest.raises(ValueError, match="is not a class"):
        MarginDisplay.from_estimator(linear, X, y, positive=7)
    with pytest.raises(ValueError, match="support=False"):
        MarginDisplay.from_estimator(linear, X[:5], y[:5], positive=1)


@pytest.mark.parametrize("face", [LinearSVC, SVC])
def test_the_boundary_of_two_classes(face):
    X, y = load_iris(return_X_y=True, as_frame=True)
    X, y = X.iloc[:, :2], np.array(["no", "yes"])[(y == 1).astype(int)]
    model = make_pipeline(StandardScaler(), face(random_state=0)).fit(X, y)
    display = BoundaryDisplay.from_estimator(model, X, y, resolution=20)
    grid = pandas.DataFrame(display.grid.reshape(2, -1).T, columns=X.columns)
    np.testing.assert_array_equal(display.values.ravel(), model.decision_function(grid))
    for k in range(2):
        assert display.grid[k].min() < X.iloc[:, k].min()
        assert display.grid[k].max() > X.iloc[:, k].max()
    assert display.ax_.get_xlabel() == X.columns[0]
    labels = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    support = len(model[-1].support_)
    assert labels == ["no", "yes", f"{support} support vectors"]
    points = [part.get_offsets() for part in display.ax_.collections[-3:]]
    assert [len(part) for part in points] == [100, 50, support]


def test_the_regions_of_several_classes_and_of_one():
    X, y = load_iris(return_X_y=True)
    X, names = X[:, 2:], np.array(["a", "b", "c"])[y]
    model = SVC().fit(X, names)
    display = BoundaryDisplay.from_estimator(model, X, names, resolution=20)
    grid = display.grid.reshape(2, -1).T
    found = np.array(["a", "b", "c"])[display.values.ravel()]
    np.testing.assert_array_equal(found, model.predict(grid))
    one = OneClassSVM(nu=0.2, gamma=1.0).fit(X)
    display = BoundaryDisplay.from_estimator(one, X, resolution=20)
    np.testing.assert_array_equal(
        display.values.ravel(), one.decision_function(display.grid.reshape(2, -1).T)
    )
    with pytest.raises(ValueError, match="two features"):
        BoundaryDisplay.from_estimator(model, X[:, :1])
    with pytest.raises(ValueError, match="predicts numbers"):
        BoundaryDisplay.from_estimator(SVR().fit(X, y), X)
    with pytest.raises(ValueError, match="support=False"):
        BoundaryDisplay.from_estimator(model, X[:5])


def test_examples_and_the_chart_of_speed_name_no_colours_of_their_own():
    root = Path(__file__).resolve().parents[1]
    sources = [*root.glob("examples/**/plot_*.py"), root / "docs" / "speed.py"]
    assert len(sources) > 20
    for source in sources:
        text = source.read_text("utf-8")
        assert not re.search(r'"C[0-9]"|"#[0-9A-Fa-f]{6}"', text), source.name


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


def test_the_notebook_shows_the_certificate_inside_other_models():
    """Its sentence is visible, and its table is folded."""
    html = pytest.importorskip("sklearn.utils._repr_html.estimator")
    X, y = cancer()
    pipeline = make_pipeline(StandardScaler(), LinearSVC(random_state=0)).fit(X, y)
    search = GridSearchCV(LinearSVC(random_state=0), {"C": [1.0]}, cv=2).fit(X, y)
    calibrated = CalibratedClassifier(LinearSVC(random_state=0)).fit(X, y)
    for model, inner in (
        (pipeline, pipeline[-1]),
        (search, search.best_estimator_),
        (calibrated, calibrated),
    ):
        text = html.estimator_html_repr(model)
        assert text.count('<details class="dualgap-certificate">') == 1
        caption = f'<div class="caption">{inner.certificate_.message}</div>'
        assert (caption in text) == (inner is not calibrated)
        assert "LinearSVC" in text


def test_the_notebook_names_classes_and_pairs():
    X, y = load_iris(return_X_y=True)
    names = np.array(["<k>", "b", "c"])[y]
    linear = LinearSVC(random_state=0).fit(X, names)._repr_html_()
    kernel = SVC(random_state=0).fit(X, names)._repr_html_()
    together = (
        LinearSVC(loss="hinge", multi_class="crammer_singer")
        .fit(X, names)
        ._repr_html_()
    )
    search = LinearSVCCV([0.1, 1.0], random_state=0).fit(X, names)._repr_html_()
    assert "class &lt;k&gt;" in linear
    assert "&lt;k&gt; against b" in kernel
    for text in (linear, kernel, together, search):
        assert "<k>" not in text
        assert "dualgap-certificate" in text


def test_bounds_along_c_are_drawn_as_they_were_proved():
    X, y = cancer()
    search = LinearSVCCV([0.01, 0.1], certify_C=True, error_tolerance=0.05, cv=2).fit(
        X, y
    )
    ax = ErrorBoundsDisplay.from_estimator(search).ax_
    edges, lower, upper = search.error_bounds_
    for stairs, bound in zip(ax.patches, (upper, lower), strict=False):
        np.testing.assert_array_equal(stairs.get_data().values, bound)
        np.testing.assert_array_equal(stairs.get_data().edges, edges)
    dots = ax.lines[0]
    np.testing.assert_array_equal(dots.get_xdata(), search.Cs_)
    np.testing.assert_allclose(dots.get_ydata(), 1 - search.scores_.mean(axis=0))
    with pytest.raises(ValueError, match="certify_C=True"):
        ErrorBoundsDisplay.from_estimator(LinearSVCCV([0.1], cv=2).fit(X, y))


def lines_of(display):
    """Return the left and right ends of the black lines, from the largest bar on."""
    (lines,) = display.ax_.collections
    return np.array([segment[:, 0] for segment in lines.get_segments()]).T


@pytest.mark.parametrize("rows", [1, 7])
def test_bars_are_shapley_values_and_lines_enclose_the_optimum(rows):
    X, y = cancer()
    table = pandas.DataFrame(X, columns=[f"f{j}" for j in range(X.shape[1])])
    some, background = table[:rows], table[::40]
    model = SVC(tol=1e-3).fit(table, y)
    display = ShapleyDisplay.from_estimator(model, some, background, max_features=30)
    found = shapley_values(model, some, background)
    values = found.values[0] if rows == 1 else np.abs(found.values).mean(axis=0)
    order = np.argsort(-np.abs(values), kind="stable")
    widths = np.array([bar.get_width() for bar in display.ax_.patches])
    np.testing.assert_array_equal(widths, values[order])
    names = [label.get_text() for label in display.ax_.get_yticklabels()]
    assert names == [f"f{j}" for j in order]
    low, high = lines_of(display)
    near = shapley_values(SVC(tol=1e-9).fit(table, y), some, background)
    best = near.values[0] if rows == 1 else np.abs(near.values).mean(axis=0)
    room = near.optimum_error.mean(axis=0)[order]
    assert (low - room <= best[order]).all()
    assert (best[order] <= high + room).all()
    if rows == 1:
        decision = model.decision_function(some)[0]
        assert abs(widths.sum() + display.base - decision) <= found.error.sum() + 1e-12
        assert f"= {decision:.3g}" in display.ax_.get_xlabel()
    few = display.plot(max_features=4)
    assert [label.get_text() for label in few.ax_.get_yticklabels()][-1] == (
        "27 other features"
    )
    (*_, rest), far = few.ax_.patches, np.diff(lines_of(few), axis=0)[0, -1]
    assert rest.get_width() == pytest.approx(values[order[3:]].sum())
    assert far == pytest.approx(np.diff([low, high], axis=0)[0, 3:].sum())


def test_one_column_of_the_decisions_is_explained():
    X, y = load_iris(return_X_y=True)
    model = sklearn.svm.SVC().fit(X, y)
    found = shapley_values(model, X[:3], X[::10])
    display = ShapleyDisplay(found, column=2, names=list("abcd")).plot()
    np.testing.assert_array_equal(display.values, found.values[:, 2])
    assert not display.ax_.collections
    make = ShapleyDisplay.from_estimator
    for refused, words in [
        (lambda: make(model, X[:3], X), "column=None does not choose one of 3"),
        (lambda: ShapleyDisplay(found, column=3), "column=3 .* from 0 to 2"),
        (lambda: ShapleyDisplay(found, column=0, names=["a"]), "names has 1 names"),
        (lambda: make(model, X, X, max_features=0), "max_features=0 is not a positive"),
        (lambda: display.plot(max_features=2.5), "max_features=2.5 .* such as 10"),
        (lambda: make(SVC(kernel="poly").fit(X, y), X, X), "not a product"),
    ]:
        with pytest.raises(ValueError, match=words):
            refused()

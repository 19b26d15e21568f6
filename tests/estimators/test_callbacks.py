"""Callbacks of scikit-learn's protocol follow a fit and can stop it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import warnings
from importlib.util import find_spec

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import SVC, LinearSVC
from dualgap.certificate import Status
from dualgap.solvers import SOLVERS

supported = pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="this scikit-learn has no callbacks"
)

X, LABELS = load_iris(return_X_y=True)
X = StandardScaler().fit_transform(X)
BINARY = (LABELS == 1).astype(int)


class Recorder:
    """Keeps what the hooks are given, and checks that they are never run at once."""

    def __init__(self, stop=lambda context: False):
        self.stop, self.events = stop, []
        self.busy = threading.Lock()

    def setup(self, estimator, context):
        self.events.append(("setup", context, None))

    def teardown(self, estimator, context):
        self.events.append(("teardown", context, None))

    def on_fit_task_begin(self, estimator, context):
        self.keep("begin", context, None)

    def on_fit_task_end(self, estimator, context, *, X, y, metadata, fitted_estimator):
        kept = {"X": X, "y": y, "metadata": metadata, "model": fitted_estimator}
        self.keep("end", context, kept)
        return self.stop(context)

    def keep(self, *event):
        assert self.busy.acquire(blocking=False)
        time.sleep(1e-5)
        self.events.append(event)
        self.busy.release()

    def contexts(self, event, name=""):
        return [c for e, c, _ in self.events if e == event and name in c.task_name]

    def ended(self):
        """The epochs and what the hook was given."""
        return [
            (context, kept)
            for event, context, kept in self.events
            if event == "end" and context.task_name == "epoch"
        ]


def quiet(model, y, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y, **options)


def infos(recorder, parent=None):
    """EpochInfo of the ended epochs, of one class if it is given."""
    return [
        context.epoch_info
        for context, _ in recorder.ended()
        if parent is None or context.parent.parent is parent
    ]


def as_history(infos):
    fields = ("epoch", "primal", "dual", "exact", "updates")
    return [tuple(getattr(info, name) for name in fields) for info in infos]


def history(array):
    return array[["epoch", "primal", "dual", "exact", "updates"]].tolist()


@supported
@pytest.mark.parametrize("solver", sorted(SOLVERS))
def test_every_epoch_is_a_leaf_with_its_numbers(solver):
    recorder = Recorder()
    model = LinearSVC(loss="hinge", solver=solver, max_iter=100)
    quiet(model.set_callbacks(recorder), BINARY)
    root = recorder.contexts("setup")[0]
    assert root.task_name == "fit"
    assert as_history(infos(recorder)) == history(model.history_)
    seconds = [info.seconds for info in infos(recorder)]
    assert seconds == model.history_["seconds"].tolist()
    assert [info.final for info in infos(recorder)] == [False] * (len(seconds) - 1) + [
        True
    ]
    for context, _ in recorder.ended():
        assert context.max_subtasks == 0
        assert context.parent.task_name.startswith("epochs from ")
        assert context.parent.parent is root


@supported
@pytest.mark.parametrize(("y", "n_jobs"), [(BINARY, 1), (LABELS, 1), (LABELS, 2)])
def test_every_task_begins_once_and_ends_once_inside_its_parent(y, n_jobs):
    recorder = Recorder()
    model = LinearSVC(solver="dcd", n_jobs=n_jobs, random_state=0)
    quiet(model.set_callbacks(recorder), y)
    events = [event for event, _, _ in recorder.events]
    assert (events[0], events[-1]) == ("setup", "teardown")
    begun, ended = recorder.contexts("begin"), recorder.contexts("end")
    assert len(begun) == len(set(begun)) == len(ended)
    assert set(begun) == set(ended)
    assert begun[0] is ended[-1]
    when = {(e, id(c)): i for i, (e, c, _) in enumerate(recorder.events)}
    for context in begun[1:]:
        assert when["begin", id(context.parent)] < when["begin", id(context)]
        assert when["end", id(context)] < when["end", id(context.parent)]


@supported
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("model", "tasks"),
    [
        (LinearSVC(solver="dcd"), ["class a", "class b", "class c"]),
        (SVC(), ["a against b", "a against c", "b against c"]),
    ],
    ids=["classes", "pairs"],
)
def test_each_class_or_pair_has_its_own_task(model, tasks, n_jobs):
    recorder, y = Recorder(), np.array(["a", "b", "c"])[LABELS]
    plain, model = clone(model), clone(model).set_params(n_jobs=n_jobs)
    quiet(plain, y)
    quiet(model.set_callbacks(recorder), y)
    if isinstance(model, LinearSVC):  # pairs take another way, and round otherwise
        np.testing.assert_array_equal(model.coef_, plain.coef_)
    contexts = [c for c in recorder.contexts("begin") if c.task_name in tasks]
    assert sorted((c.task_id, c.task_name) for c in contexts) == [*enumerate(tasks)]
    assert recorder.contexts("setup")[0].max_subtasks == 3
    for context in contexts:
        expected = history(model.history_[context.task_id])
        assert as_history(infos(recorder, context)) == expected
    if isinstance(model, SVC):  # w does not tell it; the fit's own end has a model
        assert all(kept["model"] is None for _, kept in recorder.ended())
        assert isinstance(recorder.events[-2][2]["model"], SVC)


@pytest.mark.long
@supported
def test_a_stage_is_a_power_of_ten_of_the_gap():
    recorder = Recorder()
    model = LinearSVC(solver="dcd", tol=1e-8, max_iter=100_000, random_state=0)
    model.set_callbacks(recorder).fit(X, BINARY)
    stages = recorder.contexts("begin", "epochs from ")
    assert stages[0].task_name == "epochs from 1"
    assert len(stages) >= 7
    smallest = 0
    for stage in stages[1:]:
        first, gap = stage.task_name.removeprefix("epochs from ").split(", gap ")
        row = model.history_[int(first) - 2]
        assert row["epoch"] == int(first) - 1
        exact = (row["primal"] - row["dual"]) / row["dual"]
        assert float(gap) == pytest.approx(exact, rel=0.06)
        assert np.floor(np.log10(exact)) < smallest
        smallest = np.floor(np.log10(exact))


@supported
@pytest.mark.parametrize("y", [BINARY, LABELS], ids=["binary", "classes"])
@pytest.mark.parametrize("solver", ["dcd", "sgd-s"])
def test_the_model_so_far_can_predict(y, solver):
    recorder = Recorder()
    model = LinearSVC(loss="hinge", solver=solver, max_iter=30)
    quiet(model.set_callbacks(recorder), y, sample_weight=np.ones(len(y)))
    ended = recorder.ended()
    for _, kept in ended:
        so_far = kept["model"]
        assert so_far.coef_.shape == model.coef_.shape
        assert set(so_far.predict(X)) <= set(model.classes_)
        np.testing.assert_array_equal(kept["X"], X)
        np.testing.assert_array_equal(kept["y"], y)
        np.testing.assert_array_equal(
            kept["metadata"]["sample_weight"], np.ones(len(y))
        )
    # the last epoch of the last class: all classes are done
    np.testing.assert_array_equal(ended[-1][1]["model"].coef_, model.coef_)
    first = ended[0][1]["model"]
    assert first.coef_[0].any()
    assert not first.coef_[1:].any()
    root_end = [k for e, c, k in recorder.events if e == "end" and c.parent is None]
    np.testing.assert_array_equal(root_end[0]["model"].coef_, model.coef_)


@supported
def test_the_exact_primal_value_is_that_of_the_model_so_far():
    recorder = Recorder()
    model = LinearSVC(loss="hinge", solver="dcd", tol=1e-6, max_iter=100_000)
    model.set_callbacks(recorder).fit(X, BINARY)
    checked = [(c.epoch_info, k["model"]) for c, k in recorder.ended()]
    checked = [(info, model) for info, model in checked if info.exact]
    assert checked
    for info, so_far in checked:
        bias = so_far.intercept_[0]
        norm = so_far.coef_[0] @ so_far.coef_[0] + bias * bias
        loss = np.maximum(0, 1 - np.where(BINARY, 1, -1) * so_far.decision_function(X))
        assert info.primal == pytest.approx(0.5 * norm + loss.sum(), rel=1e-9)


@supported
def test_a_callback_that_returns_true_ends_the_fit():
    recorder = Recorder(
        lambda context: context.task_name == "epoch" and context.epoch_info.epoch == 7
    )
    model = LinearSVC(solver="dcd", tol=1e-12, max_iter=1000, random_state=0)
    model.set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning, match="Stopped by Ctrl-C or by a callback"):
        model.fit(X, BINARY)
    assert model.certificate_.status is Status.INTERRUPTED
    assert model.n_iter_ == 7
    assert model.coef_.any()


@supported
def test_the_end_of_a_class_can_end_the_fit():
    recorder = Recorder(lambda context: context.task_name == "class 0")
    model = LinearSVC(solver="dcd", max_iter=100_000, random_state=0)
    model.set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning, match="2 of 3 classes"):
        model.fit(X, LABELS)
    statuses = [certificate.status for certificate in model.certificate_]
    assert statuses == [Status.CERTIFIED, Status.INTERRUPTED, Status.INTERRUPTED]


@supported
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_callback_that_fails_ends_the_fit_and_is_torn_down(n_jobs):
    def fail(context):
        if context.task_name == "epoch" and context.epoch_info.epoch == 3:
            raise RuntimeError("callback failed")

    recorder = Recorder(fail)
    model = LinearSVC(solver="dcd", tol=1e-15, max_iter=10**9, n_jobs=n_jobs)
    model.set_callbacks(recorder)
    with pytest.raises(RuntimeError, match="callback failed"):
        model.fit(X, LABELS)
    assert recorder.events[-1][0] == "teardown"


@supported
def test_a_warm_start_at_the_optimum_has_one_empty_epoch():
    recorder = Recorder()
    model = LinearSVC(solver="dcd", warm_start=True, max_iter=10_000, random_state=0)
    model.fit(X, BINARY).set_callbacks(recorder).fit(X, BINARY)
    [(context, kept)] = recorder.ended()
    assert not hasattr(context, "epoch_info")
    assert kept["model"] is None


@supported
def test_the_task_tree_does_not_keep_the_data_alive():
    recorder = Recorder()
    quiet(LinearSVC(solver="dcd", max_iter=3).set_callbacks(recorder), BINARY)
    assert all(info.model is None for info in infos(recorder))


@supported
def test_a_class_is_not_a_callback():
    with pytest.raises(TypeError, match="FitCallback protocol"):
        LinearSVC().set_callbacks(Recorder)


@supported
def test_progress_bar_shows_epochs_and_the_gap(capsys):
    from sklearn.callback import ProgressBar

    model = LinearSVC(solver="dcd", n_jobs=2, random_state=0)
    quiet(model.set_callbacks(ProgressBar()), LABELS)
    shown = capsys.readouterr().out
    for name in ("LinearSVC - fit", "LinearSVC - class 2 #2", "epochs from 1 #0"):
        assert name in shown
    assert ", gap " in shown


@supported
def test_scoring_monitor_scores_every_epoch():
    from sklearn.callback import ScoringMonitor

    monitor = ScoringMonitor(scoring="accuracy")
    model = LinearSVC(solver="dcd", random_state=0)
    quiet(model.set_callbacks(monitor), BINARY, sample_weight=np.ones(len(BINARY)))
    data = monitor.get_logs().data
    scores = [row["accuracy"] for row in data if row["task_name"] == "epoch"]
    assert len(scores) == len(model.history_)
    assert scores[-1] == model.score(X, BINARY)


@supported
def test_inside_a_pipeline_the_bars_are_shown_too(capsys):
    from sklearn.callback import ProgressBar

    model = make_pipeline(StandardScaler(), LinearSVC(solver="dcd", random_state=0))
    quiet(model.set_callbacks(ProgressBar()), BINARY)
    shown = capsys.readouterr().out
    assert "Pipeline - fit-final-estimator | LinearSVC - fit #1" in shown
    assert "LinearSVC - epochs from 1" in shown


@pytest.mark.long
def test_without_callbacks_in_scikit_learn_all_else_works():
    code = """
import sys, warnings
import sklearn.svm
try:
    import sklearn.callback
except ImportError:
    pass
kept = sys.modules.get("sklearn.callback")
sys.modules["sklearn.callback"] = None
import dualgap
from dualgap import LinearSVC
sys.modules["sklearn.callback"] = kept  # scikit-learn itself may need it
assert not hasattr(LinearSVC, "_init_callback_context")
told = []
y = [0, 0, 1, 1, 2, 2]
X = [[0.0, 0.0], [0.1, 0.0], [1.0, 0.0], [1.1, 0.0], [0.0, 1.0], [0.0, 1.1]]
model = LinearSVC(random_state=0, n_jobs=2)
model._fit(X, y, on_epoch=lambda label, info: told.append(label))
assert all(c.certified for c in model.certificate_)
assert set(told) == {0, 1, 2}
try:
    model.set_callbacks()
except ImportError as error:
    print(error)
"""
    result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("set_callbacks needs scikit-learn 1.9 or newer")
    assert "pip install --upgrade" in result.stdout


@supported
def test_a_hook_stops_a_kernel_fit():
    recorder = Recorder(stop=lambda context: context.task_name == "epoch")
    model = SVC(loss="squared_hinge", solver="fw", tol=1e-12).set_callbacks(recorder)
    quiet(model, BINARY)
    assert model.certificate_.status is Status.INTERRUPTED
    assert len(infos(recorder)) == len(model.history_) <= 2

"""The estimator on a real cluster of processes: kinds of data, models, certificates."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from importlib.util import find_spec
from itertools import combinations

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import dualgap
from dualgap.distributed import LinearSVC
from dualgap.distributed.collections import blocks, join
from dualgap.distributed.piece import Piece, Setup
from dualgap.losses import SmoothedHinge
from dualgap.problems import BinaryProblem as Problem

from .simulation import Simulation
from .test_cocoa import cut, fit

TOL = 1e-2
X = np.arange(24.0).reshape(12, 2)
Y = np.arange(12) % 2
ARRAY = da.from_array(X, chunks=(4, 2))
UNKNOWN = ARRAY[ARRAY[:, 0] >= 0]
FRAME = dd.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=3)
SERIES = dd.from_pandas(pd.Series(Y), npartitions=3)


def data(n=300, d=12, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    y = (X @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes))).argmax(1)
    return X, np.array(["hen", "owl", "emu", "jay"])[y]


def svc(client, C=0.05, **options):
    return LinearSVC(C, client=client, tol=TOL, keep_duals=True, **options)


def check(model, X, y, weight=None, tol=TOL):
    """The certificate by one outside pass; the objective of one machine alone."""
    problems = range(1, 2) if len(model.classes_) == 2 else range(len(model.classes_))
    if model.multi_class == "ovo":
        problems = list(combinations(range(len(model.classes_)), 2))
    certificates = model.certificate_.parts
    for row, k in enumerate(problems):
        factor = np.ones(len(y)) if weight is None else np.asarray(weight, float)
        if isinstance(model.class_weight, dict):
            of_row = np.array([model.class_weight.get(label, 1.0) for label in y])
            mine = len(problems) == 1 or isinstance(k, tuple) or y == model.classes_[k]
            factor = np.where(mine, factor * of_row, factor)
        positive = k
        if isinstance(k, tuple):
            factor, positive = factor * np.isin(y, model.classes_[list(k)]), k[1]
        problem = Problem(
            X, np.where(y == model.classes_[positive], 1, -1), model.C, loss=model.loss,
            sample_weight=factor, fit_intercept=model.fit_intercept,
            intercept_scaling=model.intercept_scaling,
        )  # fmt: skip
        w = model.coef_[row]
        if model.fit_intercept:
            w = np.append(w, model.intercept_[row] / model.intercept_scaling)
        certificate = certificates[row]
        assert certificate.certified
        assert certificate.relative_gap <= tol
        assert problem.primal(w) == pytest.approx(certificate.primal, rel=1e-11)
        alpha = np.clip(np.abs(model.dual_coef_[row]), 0, problem.upper)
        assert problem.dual(alpha) >= certificate.dual * (1 - 1e-11)
        assert problem.dual(alpha) <= certificate.primal
        alone = dualgap.training.solve(
            problem, dualgap.solvers.DCD(), tol=1e-7
        ).certificate
        assert alone.dual <= certificate.primal <= alone.primal * (1 + tol)


def test_dense_arrays(client):
    X, y = data()
    model = svc(client)
    assert model.fit(da.from_array(X, (70, 5)), da.from_array(y, 300)) is model
    check(model, X, y)
    assert model.n_pieces_ == 3
    assert model.rounds_["round"].size == model.n_iter_
    assert model.classes_.tolist() == ["hen", "owl"]


def test_atol_ends_a_fit(client):
    X, y = data(classes=3)
    model = svc(client).set_params(tol=1e-300, atol=0.5)
    model.fit(da.from_array(X, chunks=(90, 12)), da.from_array(y, chunks=90))
    for part in model.certificate_.parts:
        assert part.certified
        assert part.gap <= part.atol == 0.5
    assert "(target: a gap of 0.5 in each)" in model.certificate_.message


WEIGHT = np.random.default_rng(1).uniform(0, 2, 300)
FEW = np.where(np.arange(300) < 40, 0.0, WEIGHT)


def arrays(X, y, weight):
    """Dask arrays of other blocks each."""
    given = X, y, weight
    return [None if a is None else da.from_array(a, k)
            for a, k in zip(given, ((99, 12), 99, 90), strict=True)]  # fmt: skip


def sparse_blocks(X, y, weight):
    X = da.from_array(X, (100, -1)).map_blocks(sparse.csr_matrix)
    return X, da.from_array(y, 100), weight


def frames(X, y, weight):
    names = [f"f{j}" for j in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names).assign(label=y, weight=weight)
    frame = dd.from_pandas(frame, npartitions=7)
    return frame[names], frame["label"], frame["weight"]


@pytest.mark.long
@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("given", "classes", "weight", "options"),
    [
        (sparse_blocks, 2, None, {"fit_intercept": False}),
        (frames, 2, FEW, {"class_weight": {True: 3.0}, "intercept_scaling": 2.0}),
        (arrays, 4, WEIGHT, {"loss": "squared_hinge", "class_weight": {"emu": 2.0}}),
        (arrays, 4, WEIGHT, {"loss": SmoothedHinge(0.3), "class_weight": {"emu": 2.0}}),
        (arrays, 4, WEIGHT, {"multi_class": "ovo", "class_weight": {"emu": 2.0}}),
    ],
)
def test_collections_are_the_problem_of_their_rows(
    client, given, classes, weight, options
):
    X, y = data(classes=classes)
    X = X.astype(np.float32) if given is sparse_blocks else X
    y = y == "owl" if given is frames else y
    parts = given(X, y, weight)
    model = svc(client, **options).fit(*parts)
    X = sparse.csr_matrix(X) if given is sparse_blocks else X
    check(model, X, y, weight)
    scores = model.decision_function(X)
    assert scores.shape == ((300, 4) if classes == 4 else (300,))
    there = model.decision_function(parts[0]).compute()
    few = 0.0 if given is sparse_blocks else 1e-14  # BLAS sums blocks in its own order
    np.testing.assert_allclose(there, scores, rtol=0.0, atol=few)
    np.testing.assert_array_equal(model.predict(parts[0]).compute(), model.predict(X))
    expected = model.score(X, y, weight)
    assert model.score(*parts) == pytest.approx(expected, rel=1e-12)
    # Problems of several classes share rounds.
    problems = model.certificate_.parts
    assert model.rounds_["problems"].max() == len(problems) == len(model.coef_)
    if classes > 2:
        assert len(model.rounds_) < sum(part.epochs for part in problems)
    if model.multi_class == "ovo":  # the decisions of pairs are those of one machine
        assert model.coef_.shape == (6, X.shape[1])
        alone = dualgap.LinearSVC(0.05, multi_class="ovo")
        for name in ("classes_", "coef_", "intercept_"):
            setattr(alone, name, getattr(model, name))
        np.testing.assert_allclose(scores, alone.decision_function(X))
        np.testing.assert_array_equal(model.predict(X), alone.predict(X))


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_classes_that_are_constants_are_named(client, C):
    """At the smaller C the indicators make a constant that is cheaper than the bias."""
    rng = np.random.default_rng(0)
    kind, x = rng.integers(0, 4, 1500), rng.normal(size=1500)
    y = np.digitize(x + rng.normal(0, 1, 1500), [0.0, 0.7, 1.6])
    X = np.column_stack([x, np.eye(4)[kind]])
    who = r"LinearSVC: 3 of 4 classes \(1, 2, 3\) have a decision function that is no"
    with pytest.warns(dualgap.DegenerateWarning, match=who):
        alone = dualgap.LinearSVC(C, loss="hinge").fit(X, y)
    model = svc(client).set_params(C=C, loss="hinge", class_weight=None)
    with pytest.warns(dualgap.DegenerateWarning, match=who):
        model.fit(da.from_array(X, (500, 5)), da.from_array(y, 500))
    assert model.certificate_.certified
    assert alone.certificate_.certified
    constant = np.append(np.zeros(5), -1.0)
    for k in (1, 2, 3):
        signs = np.where(y == k, 1, -1)
        problem = dualgap.problems.BinaryProblem(
            X, signs, C, loss="hinge", fit_intercept=True
        )
        bias = problem.primal(constant) <= alone.certificate_.parts[k].primal
        assert bias == (C == 1.0)
    model.set_params(loss="squared_hinge")
    model.fit(da.from_array(X, (500, 5)), da.from_array(y, 500))


@pytest.mark.skipif(
    find_spec("sklearn.callback") is None, reason="this scikit-learn has no callbacks"
)
def test_callbacks_hear_of_the_rounds_of_each_class(client):
    class Recorder:
        def __init__(self):
            self.begun = []

        def setup(self, estimator, context):
            pass

        teardown = setup

        def on_fit_task_begin(self, estimator, context):
            self.begun.append(context.task_name)

        def on_fit_task_end(self, estimator, context, *, fitted_estimator):
            return self.begun.count("epoch") > 9

    X, y = data(classes=3)
    model, recorder = svc(client).set_params(tol=1e-12), Recorder()
    with pytest.warns(ConvergenceWarning, match="Stopped"):
        model.set_callbacks(recorder).fit(X, y)
    names = [f"class {label}" for label in model.classes_]
    assert [name for name in recorder.begun if name in names] == names
    assert model.n_iter_ < 12


@pytest.mark.long
def test_a_class_without_weight_is_in_no_pair(client):
    with pytest.raises(ValueError, match="class owl has no row with a positive weight"):
        svc(client, class_weight={"owl": 0.0}, multi_class="ovo").fit(*data(classes=4))


@pytest.mark.long
def test_delayed_pieces_futures_and_memory_are_one_problem(client):
    X, y = data(600)
    rows = cut(600, 3)
    there = [(client.scatter(X[r]), client.scatter(y[r])) for r in rows]
    pieces = {
        "memory": [(X[r], y[r]) for r in rows],
        "delayed parts": [(dask.delayed(X[r]), dask.delayed(y[r])) for r in rows],
        "delayed pieces": [dask.delayed((X[r], y[r], np.ones(200))) for r in rows],
        "futures": there,
    }
    models = {kind: svc(client).fit(given) for kind, given in pieces.items()}
    models["arrays"] = svc(client).fit(X, y)
    check(models["arrays"], X, y)
    for model in models.values():
        assert np.array_equal(model.coef_, models["arrays"].coef_)
        assert np.array_equal(model.dual_coef_, models["arrays"].dual_coef_)


@pytest.mark.long
def test_the_cluster_gives_the_bits_of_the_simulation(client):
    X, y = data(700)
    rows = cut(700, 7)
    signs = np.where(y == "owl", 1, -1)
    model = svc(client, local_epochs=2, random_state=5)
    model.fit([(X[r], signs[r]) for r in rows])
    setup = Setup(
        np.array([-1, 1]), np.ones(2), 0.05, dualgap.losses.SquaredHinge(), True, 1.0, 5
    )
    engine = Simulation([Piece(X[r], signs[r], index=k) for k, r in enumerate(rows)],
                        setup)  # fmt: skip
    (solution,) = fit(engine, setup.loss, tol=TOL, solver={"local_epochs": 2})
    assert np.array_equal(solution.w[:-1], model.coef_[0])
    assert solution.certificate.primal == model.certificate_.primal
    assert solution.certificate.dual == model.certificate_.dual


@pytest.mark.long
def test_measured_passes_can_be_had_again(client):
    X, y = data(600)
    first = svc(client, local_epochs="measured").fit(X, y)
    passes = first.rounds_["local_epochs"]
    assert passes.max() > 1  # messages cost more than passes over 200 rows
    again = svc(client, local_epochs=passes).fit(X, y)
    assert np.array_equal(first.coef_, again.coef_)


@pytest.mark.long
def test_real_data_dense_and_sparse(client, load_xz):
    X, y = load_xz("adult/a9a")
    for rows in (X, X.toarray().astype(np.float32)):
        model = svc(client, 0.1, n_pieces=4).fit(rows, y)
        check(model, rows, y)


@pytest.mark.long
def test_covertype_balanced(client, load_xz):
    X, y = load_xz("covtype/covtype.binary.scale.subset92962")
    X, y = X[:20_000], y[:20_000]
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order] == 2
    count = {label: (y == label).sum() for label in np.unique(y)}
    model = svc(client, 0.1, class_weight="balanced")
    model.fit(X, y)
    model.class_weight = {k: len(y) / (2 * c) for k, c in count.items()}
    check(model, X, y)


@pytest.mark.long
@pytest.mark.parametrize("limits", [{"max_rounds": 3}, {"time_limit": 1e3}])
def test_limits_keep_the_best_model(client, limits, disturb):
    X, y = data()
    if "time_limit" in limits:  # it is over before the seventh play
        disturb({7: lambda engine: engine.stop.set_deadline(-1.0)})
    model = LinearSVC(C=0.1, client=client, tol=1e-14, **limits)
    with pytest.warns(ConvergenceWarning, match="within"):
        model.fit(X, y)
    status = "time_limit" if "time_limit" in limits else "epoch_limit"
    assert model.certificate_.status.label == status
    assert model.certificate_.relative_gap < 1.0


@pytest.mark.long
def test_a_cluster_of_its_own():
    script = """
import numpy as np
from dualgap.distributed import LinearSVC
if __name__ == "__main__":
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=300) > 0, 1, -1)
    print(LinearSVC(0.1, tol=0.01).fit(X, y).certificate_.certified)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=300
    )
    assert done.stdout.strip() == "True", done.stderr


@pytest.mark.long
def test_nothing_is_left_on_the_cluster(client):
    X, y = data(300)
    svc(client).fit(X, y)
    assert client.list_datasets() == ()


@pytest.mark.long
def test_a_model_travels_without_its_client(client):
    X, y = data(300)
    model = svc(client).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    assert again.client is None
    assert np.array_equal(again.predict(X), model.predict(X))
    assert np.array_equal(again.dual_coef_, model.dual_coef_)
    assert clone(model).client is copy.deepcopy(model).client is client


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: (X, y[:-1]), "y has 59 entries and X has 60 rows"),
        (lambda X, y: (da.from_array(X, 20), X), "y has 2 dimensions; expected one"),
        (lambda *_: (UNKNOWN, Y), r"in memory .* X\.compute_chunk_sizes\(\) first"),
        (lambda *_: (FRAME, Y), "y is in memory .* give y as a collection"),
        (lambda *_: (UNKNOWN, da.from_array(Y, 6)), "y has 2 blocks and X has 3"),
        (lambda *_: (FRAME, SERIES.repartition(npartitions=2)), "y has 2 blocks and"),
        (lambda *_: (ARRAY[:, 0], Y), r"X has 1 dimension\(s\); reshape it to"),
        (lambda X, y: (X, y, np.ones(3)), "sample_weight has 3 entries"),
        (lambda X, y: (X, None), "labels are missing"),
        (lambda X, y: ([], None), "empty list"),
        (lambda X, y: ([(X, y)], y), "have their own labels"),
        (lambda X, y: ([(X,)], None), "has 1 parts"),
        (lambda X, y: ([dask.delayed((X,))], None), "piece 0: a block has 1 parts"),
        (lambda X, y: (X, y, -np.ones(60)), r"\[0\]=-1.0: weights must be zero or pos"),
        (lambda X, y: (X, np.full(60, "hen")), "one class, hen"),
        (lambda X, y: (X, np.linspace(0, 1, 60)), "Unknown label type"),
        (lambda X, y: (np.where(X == X[7, 3], np.nan, X), y), "piece 0: X, row 7"),
        (lambda X, y: ([(X, y), (X[:, :5], y)], None), "5 to 12 columns"),
        (lambda X, y: (X.astype(str), y), "encode its columns"),
        (lambda X, y: (da.from_array(X[0], 12), y), "1 dimension"),
        (lambda X, y: (da.from_array(X, 20), da.from_array(y[:-1], 20)), "59 entries"),
    ],
)
def test_bad_input_is_refused(client, make, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(client=client).fit(*make(*data(60)))


@pytest.mark.long
def test_other_kinds_are_refused(client):
    with pytest.raises(TypeError, match="X is a str; give a Dask array"):
        LinearSVC(client=client).fit("rows", [1, -1])
    with pytest.raises(ValueError, match="local_epochs=0"):
        LinearSVC(client=client, local_epochs=0).fit(*data(60))
    with pytest.raises(ValueError, match="'C' parameter"):
        LinearSVC(client=client, C=-1).fit(*data(60))
    with pytest.raises(NotFittedError):
        LinearSVC(client=client).predict(da.zeros((4, 2)))


@pytest.mark.long
def test_without_dask_the_error_says_what_to_install():
    script = (
        "import sys; sys.modules['distributed'] = None\n"
        "try: from dualgap.distributed import LinearSVC\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert "pip install 'dualgap[dask]'" in done.stdout


def together(pieces):
    """Rows, labels and weights of all pieces."""
    joined = [join(piece, k) for k, piece in enumerate(dask.compute(pieces)[0])]
    return [np.concatenate(part) for part in zip(*joined, strict=True)]


@pytest.mark.parametrize("y", [Y, Y[:, None], da.from_array(Y, chunks=5), SERIES])
@pytest.mark.parametrize("rows", [ARRAY, ARRAY.rechunk((4, 1))])
def test_labels_of_any_kind_follow_their_rows(rows, y):
    found, labels, weight = together(blocks(rows, y, np.arange(12.0), 2))
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(weight, np.arange(12))


def test_series_label_the_rows_of_a_dataframe():
    found, labels, weight = together(blocks(FRAME, SERIES.to_frame(), SERIES + 1.0, 2))
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels, Y)
    np.testing.assert_array_equal(weight, Y + 1)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([(X, Y), (X, Y, Y)], "piece 3: some of its blocks have weights, others none"),
        ([(X, Y), (X[:, :1], Y)], r"piece 3: blocks of \[1, 2\] columns"),
        ([((X, Y, Y, Y),)], "piece 3: a block has 4 parts; a piece is"),
        ([(X.astype(str), Y)], "piece 3: X has dtype <U32; encode its columns"),
        ([(Y, Y)], r"piece 3: X has 1 dimension\(s\); expected \(n, d\)"),
    ],
)
def test_pieces_that_contradict_themselves_are_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        join(parts, 3)

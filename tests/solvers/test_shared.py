"""Many problems over shared passes: steps, proofs, limits, and when `auto` shares."""

from __future__ import annotations

import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from dualgap import LinearSVC, core
from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.base import Claim
from dualgap.problems.batch import LinearBatch
from dualgap.problems.dense import DenseRows, prove_together
from dualgap.problems.reductions import OneVsOne, OneVsRest
from dualgap.solvers import DCD, Auto, SmoothingNewton, active_rows, near_folds
from dualgap.solvers import shared as module
from dualgap.solvers import shared_steps as steps
from dualgap.solvers.near_folds import NearFolds
from dualgap.solvers.shared import SharedFit, chosen, chunk_size, solve_shared
from dualgap.training import solve
from dualgap.training.batch import solve_batch, solve_path

from ..conftest import examples
from ..trust.verifier import SVM, Rows
from ..twins import shared as twin
from .data import gaussians, job, odd_rows
from .test_labellings import several

SHARED = SmoothingNewton(passes="shared")
dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32])


def squared(seed=0, dtype=np.float64, **options):
    """One problem with the squared hinge for each of several classes."""
    return several(
        seed, X=lambda rows: rows.astype(dtype), loss="squared_hinge", **options
    )


def rows_of(batch, **changes):
    X = batch.rows.rows.arrays[0]
    dense = DenseRows(X, batch.rows.intercept_scaling)
    return steps.SharedRows.of(dense, replace(steps.SETTINGS, **changes))


def bordered(batch):
    """The rows with their constant feature, in float64."""
    X = batch.columns.X.astype(np.float64)
    return np.column_stack([X, np.full(len(X), batch.rows.intercept_scaling)])


# ---------------------------------------------------------------------------- steps


@pytest.mark.parametrize("few", [True, False])
@pytest.mark.parametrize("inverse", ["", "columns", "rows"])
@pytest.mark.cases(None)
def test_steps_are_those_of_the_twin(few, inverse):
    n, d = (120, 200) if inverse == "rows" else (700, 7)
    batch = squared(3, n=n, d=d, classes=4, C=0.3)
    changes = {} if few else {"active_entries": 0, "active_share": 0.2}
    changes |= {"gram_rows": 700, "search_accuracy": 0.0, "rank": 300}
    changes |= {"inverse_size": 1000 if inverse else 0}
    rows, problems = rows_of(batch, **changes), np.arange(4)
    point = steps.SharedPoint.start(rows, batch, problems, None)
    twins = [
        twin.SharedNewton(
            bordered(batch) * batch.problem(k).y[:, None],
            batch.problem(k).cost,
            residual=0.0 if inverse and few else 0.1,
        )
        for k in problems
    ]
    for _ in range(5):
        point.look()
        point.aim(lambda: False, np.ones(4, bool))
        for k, other in enumerate(twins):
            w = point.W[k]
            np.testing.assert_allclose(w, other.w, rtol=1e-6, atol=1e-9)
            assert point.primal[k] == pytest.approx(other.objective(w), rel=1e-12)
            other.w = w.copy()
            other.iterate()
        point.move()


def test_a_few_eigenvalues_precondition_wide_rows():
    batch = squared(1, n=900, d=60)
    gaps = []
    for rank in (5, 100):
        fit = SharedFit(rows_of(batch, rank=rank), batch, job(tol=1e-6))
        fit.run()
        assert all(bounds.meets(1e-6) for bounds in fit.proofs.values())
        gaps.append(len(fit.epochs[0]))
    assert gaps[0] <= 2 * gaps[1] + 4


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_a_sample_saves_products(C, monkeypatch):
    seen, scores = [0], DenseRows.scores

    def counted(rows, X, W):
        seen[-1] += len(X) * len(W)
        return scores(rows, X, W)

    monkeypatch.setattr(DenseRows, "scores", counted)
    batch = batch_of(*gaussians(12_000, 24, 20, 4.0, np.float32, seed=2), C=C)
    for share in (0.5, 0.0):
        rows = rows_of(batch, sample_share=share, active_entries=0, active_share=0.0)
        fit = SharedFit(rows, batch, job())
        fit.run()
        assert all(bounds.meets(1e-3) for bounds in fit.proofs.values())
        seen.append(0)
    assert seen[0] < 0.9 * seen[1]


def test_inverses_save_products_at_large_C(monkeypatch):
    made, product = [0], active_rows.Active.product

    def counted(rows, p, size):
        made[-1] += 1
        return product(rows, p, size)

    monkeypatch.setattr(active_rows.Active, "product", counted)
    batch, epochs = batch_of(*gaussians(4000, 60, 8, 4.0, np.float32), C=10.0), []
    for size in (steps.SETTINGS.inverse_size, 0):
        fit = SharedFit(rows_of(batch, inverse_size=size), batch, job())
        fit.run()
        assert all(bounds.meets(1e-3) for bounds in fit.proofs.values())
        epochs.append(sum(map(len, fit.epochs)))
        made.append(0)
    assert 0 < made[0] < 0.5 * made[1]
    assert epochs[0] < epochs[1]


def test_problems_that_are_near_get_no_step(monkeypatch):
    gaps, aim = [], steps.SharedPoint.aim

    def seen(point, stopped, exact):
        gaps.extend((point.primal - point.dual) / np.maximum(point.dual, 1e-300))
        aim(point, stopped, exact)

    monkeypatch.setattr(steps.SharedPoint, "aim", seen)
    found = solve_shared(SHARED, squared(4, n=600, d=4, classes=6), job())
    assert all(bounds.meets(1e-3) for bounds in found.bounds)
    assert min(gaps) > 0.9e-3


# --------------------------------------------------------------------------- proofs


@dtypes
def test_the_gradient_is_the_certificate(dtype):
    """P - D = 1/2 ||grad P||^2 for a_i = 2 c_i max(0, u_i), at any w."""
    batch = squared(6, dtype, n=600, d=4)
    W = np.random.default_rng(0).normal(size=(3, 5))
    rows = DenseRows(batch.rows.rows.arrays[0], 1.0)
    found = prove_together(batch, range(3), W, rows)
    alpha = found.alpha
    Z = bordered(batch)
    for k, w in enumerate(W):
        of = batch.problem(k)
        natural = 2 * of.cost * np.maximum(1 - of.y * (Z @ w), 0)
        gradient = w - (natural * of.y) @ Z
        gap = of.primal(w) - of.dual(natural)
        assert gap == pytest.approx(gradient @ gradient / 2, rel=1e-9)
        # The proof takes the best multiple of that point.
        scale = alpha[k].sum() / natural.sum()
        np.testing.assert_allclose(alpha[k], scale * natural, rtol=1e-9)
        assert of.dual(alpha[k]) >= max(of.dual(natural), of.dual(0.999 * alpha[k]))
        assert found.bounds[k].primal == pytest.approx(of.primal(w), rel=1e-9)
        np.testing.assert_allclose(
            found.residual[k], of.y - Z @ w, rtol=1e-5, atol=1e-5
        )


def test_some_problems_are_proved_alone_as_together():
    batch = squared(8, n=400, d=3, classes=5)
    W = np.random.default_rng(1).normal(size=(5, 4))
    rows = DenseRows(batch.rows.rows.arrays[0], 1.0)
    alpha = prove_together(batch, range(5), W, rows).alpha
    some = prove_together(batch, [3, 1], W[[3, 1]], rows).alpha
    np.testing.assert_allclose(some, alpha[[3, 1]], rtol=1e-12)


# -------------------------------------------------------------------------- optima


@dtypes
@pytest.mark.parametrize("C", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize("kind", ["many rows", "weighted", "few rows"])
@pytest.mark.cases(None)
def test_the_optimum_is_that_of_each_alone(dtype, C, kind):
    if kind == "few rows":
        batch = batch_of(*gaussians(60, 150, 4, 3.0, dtype), C=C)
    else:
        weighted = kind == "weighted"
        batch = squared(2, dtype, n=800, d=6, classes=4, C=C, weight=weighted)
    if kind == "weighted":
        batch = batch.weighted([(batch.parts[0][0], np.array([1.0, 2.0, 0.5, 3.0]))])
        batch.first = None
    together = solve_batch(batch, SHARED, job(seeds=[0] * 4, tol=1e-5))
    for k, found in enumerate(together):
        other = solve(batch.problem(k), SmoothingNewton(passes="own"), tol=1e-5)
        assert found.certificate.certified
        assert found.certificate.dual <= other.certificate.primal
        assert other.certificate.dual <= found.certificate.primal


def test_folds_share_passes_with_rows_of_cost_0():
    batch = squared(7, n=600, d=4, weight=False)
    parts = [np.where(np.arange(600) % 3 == f, 0.0, 1.0) for f in range(3)]
    folds = batch.weighted([(weight, np.ones(3)) for weight in parts])
    found = solve_shared(SHARED, folds, job())
    assert len(found.bounds) == 9
    for k, bounds in enumerate(found.bounds):
        kept = np.flatnonzero(parts[k // 3])
        y = batch.problem(k % 3).y[kept]
        X = batch.columns.X[kept]
        alone = Problem(X, y, loss="squared_hinge", fit_intercept=True)
        assert not found.alpha[k][parts[k // 3] == 0.0].any()
        own = alone.prove(Claim(found.w[k], found.alpha[k][kept])).certificate
        assert bounds.meets(1e-3)
        assert bounds.primal == pytest.approx(own.primal, rel=1e-10)
        assert bounds.dual == pytest.approx(own.dual, rel=1e-10)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_folds_step_from_models_of_all_rows(classes, weighted, threads, monkeypatch):
    """A few steps by exact matrices are enough, without conjugate gradients."""
    batch = squared(7, n=3000, d=9, weight=weighted, classes=classes)
    near = [one.w for one in solve_batch(batch, Auto(), job())]
    parts = [np.where(np.arange(3000) % 5 == f, 0.0, 1.0) for f in range(5)]
    if weighted:
        parts = [part * batch.parts[0][0] for part in parts]
    folds = batch.weighted([(weight, np.ones(classes)) for weight in parts], near)
    monkeypatch.delattr(steps.SharedPoint, "aim")
    few = replace(near_folds.SETTINGS, narrowest=2)
    monkeypatch.setattr(near_folds, "SETTINGS", few)
    begin = replace(job(), models=5 * near)
    found = solve_shared(Auto(), folds, replace(begin, threads=threads))
    again = solve_shared(Auto(), folds, begin)
    assert np.array_equal(found.w, again.w)
    assert len(found.bounds) == 5 * len(near)
    assert max(np.diff(found.ends, prepend=0)) <= 4
    for k, bounds in enumerate(found.bounds):
        assert bounds.meets(1e-3)
        own = solve(folds.problem(k), DCD(), tol=1e-6).certificate
        assert bounds.dual <= own.primal <= bounds.primal * (1.0 + 1e-6)


def test_folds_far_from_the_model_of_all_rows_are_trained_otherwise(monkeypatch):
    batch = squared(7, n=3000, d=9)
    parts = [np.where(np.arange(3000) % 5 == f, 0.0, 1.0) for f in range(5)]
    parts = [(weight, np.ones(3)) for weight in parts]
    none = [np.zeros(batch.rows.width)] * 3
    begin = replace(job(), models=5 * none)
    found = solve_batch(batch.weighted(parts, none), Auto(), begin)
    assert found.certificate.certified
    monkeypatch.setattr(NearFolds, "few", True)
    monkeypatch.setattr(NearFolds, "inverses", lambda folds: None)
    assert solve_shared(Auto(), batch.weighted(parts, none), begin) is None


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(2, 100),
    d=st.integers(1, 6),
    few=st.booleans(),
    classes=st.integers(2, 4),
    dtype=st.sampled_from([np.float32, np.float64]),
    spread=st.sampled_from([0.0, 3.0, 6.0, 15.0]),
    C=st.sampled_from([1e-100, 1e-12, 1e-3, 1.0, 1e3, 1e12, 1e100]),
    odd=st.sampled_from(["", "zero rows", "equal rows", "weights", "outlier"]),
)
@settings(max_examples=examples(100))
def test_odd_inputs(seed, n, d, few, classes, dtype, spread, C, odd):
    """The certificate holds for what the model says, whichever way trained it."""
    rng = np.random.default_rng(seed)
    n, d = (2 + n % 11, 24 + 2 * d) if few else (n, d)  # rows over their factor, or not
    X, weight = odd_rows(rng, n, d, spread, odd)
    X, y = X.astype(dtype), rng.permutation(np.arange(n) % min(classes, n))
    weight[np.unique(y, return_index=True)[1]] = 1.0
    model = LinearSVC(C=C, solver=SHARED, tol=1e-2, max_iter=20)
    model.fit(X, y, sample_weight=weight if odd == "weights" else None)
    positive = [1] if len(model.classes_) == 2 else range(len(model.classes_))
    dual = np.zeros((len(positive), n))
    dual[:, model.support_] = model.dual_coef_
    for row, k in enumerate(positive):
        part, sign = model.certificate_.parts[row], np.where(y == k, 1, -1)
        problem = SVM(Rows(X), "squared_hinge", sign, C * weight, bias="penalised")
        assert not dual[row][weight == 0.0].any()
        assert part.dual <= problem.dual(dual[row])
        assert problem.primal(model.coef_[row], model.intercept_[row]) <= part.primal


# --------------------------------------------------------------------------- limits


@pytest.fixture
def data():
    """Rows for several steps."""
    return gaussians(3000, 20, 5, 2.0, np.float32, seed=4)


@pytest.mark.parametrize("few", [False, True])
def test_bits_are_the_same_for_any_number_of_threads(data, few):
    model = LinearSVC(C=1.0 if few else 10.0, solver=SHARED)
    data = gaussians(600, 2000, 4, 3.0) if few else data
    models = [clone(model).set_params(n_jobs=jobs).fit(*data) for jobs in (1, 3)]
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)
    np.testing.assert_array_equal(models[0].dual_coef_, models[1].dual_coef_)
    assert models[0].certificate_.primal == models[1].certificate_.primal
    assert models[0].n_iter_ == models[1].n_iter_ > (0 if few else 2)


def after(epochs, action):
    """Listener that notes the epochs, and acts after some of them."""
    heard = []

    def hear(label, info):
        heard.append((label, info))
        now = info.epoch == epochs and not info.final and label == 0
        return now and action()

    return hear, heard


@pytest.mark.parametrize("how", ["callback", "Ctrl-C"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_stop_keeps_the_models(data, how):
    end = {
        "callback": lambda: True,
        "Ctrl-C": lambda: signal.raise_signal(signal.SIGINT),
    }
    hear, heard = after(3, end[how])
    model = LinearSVC(C=10.0, solver=SHARED, tol=1e-8)._fit(*data, on_epoch=hear)
    assert {part.status for part in model.certificate_} == {Status.INTERRUPTED}
    assert model.n_iter_ == 3
    for k, part in enumerate(model.certificate_):
        assert 0.0 < part.dual < part.primal < 10.0 * len(data[1])  # of w = 0
        told = [info for label, info in heard if label == k]
        assert [info.epoch for info in told] == [1, 2, 3, 3]
        assert [info.final for info in told] == [False, False, False, True]
        own = np.append(model.coef_[k], model.intercept_[k])
        np.testing.assert_array_equal(told[-1].model(), own)
        assert told[-1].primal == part.primal


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_time_limit_keeps_the_models(data, monkeypatch):
    def slow(point):
        core_stop.set_deadline(0.0)
        move(point)

    move, core_stop = steps.SharedPoint.move, core.Stop()
    monkeypatch.setattr(steps.SharedPoint, "move", slow)
    model = LinearSVC(C=10.0, solver=SHARED, tol=1e-8)._fit(*data, stop=core_stop)
    assert {part.status for part in model.certificate_} == {Status.TIME_LIMIT}
    assert all(0.0 < part.relative_gap < np.inf for part in model.certificate_)
    assert model.n_iter_ == 1  # after a step with a sample


def test_too_few_epochs_are_reported(data):
    with pytest.warns(match="Stopped at max_iter"):
        model = LinearSVC(C=10.0, solver=SHARED, max_iter=2).fit(*data)
    assert model.n_iter_ == 2
    assert all(part.dual > 0.0 for part in model.certificate_)


def test_chunks_bound_the_memory(data, monkeypatch):
    X, _ = data
    y = np.arange(3000) % 40
    sizes = []
    start = steps.SharedPoint.start

    def counted(rows, batch, problems, W, sample=None):
        if sample is None:
            sizes.append(len(problems))
        return start(rows, batch, problems, W, sample)

    monkeypatch.setattr(steps.SharedPoint, "start", counted)
    whole = LinearSVC(solver=SHARED).fit(X, y)
    assert sizes == [16, 16, 8]
    assert whole.certificate_.certified
    wide = squared(1, np.float32, n=300, d=768)
    assert chunk_size(wide) * 9 * 300 <= 0.6 * wide.rows.rows.bytes


@dtypes
def test_an_accuracy_beyond_the_products_is_proved(data, dtype):
    """The proof's residuals in float64 correct the next step."""
    X, y = data
    model = LinearSVC(C=1.0, solver=SHARED, tol=1e-10).fit(X.astype(dtype), y)
    assert model.certificate_.certified


def test_a_path_starts_from_the_last_models(data):
    batch = batch_of(*data)
    Cs = np.logspace(-3, 1, 8)
    cold = [solve_batch(batch.at(C), SHARED, job(seeds=[0] * 5)) for C in Cs]
    limits = job(seeds=[0] * 5)
    path, found = [], None
    for C in Cs:
        limits = replace(limits, models=[] if found is None else list(found.w))
        found = solve_batch(batch.at(C), SHARED, limits)
        path.append(found)
    assert all(one.certificate.certified for one in [*cold, *path])
    steps_of = [sum(part.certificate.epochs for one in way for part in one)
                for way in (path, cold)]  # fmt: skip
    assert steps_of[0] < 0.9 * steps_of[1]
    for one, other in zip(path, cold, strict=True):
        assert one.certificate.dual <= other.certificate.primal
        assert other.certificate.dual <= one.certificate.primal


def test_problems_given_up_are_trained_one_by_one(data, monkeypatch):
    whole = module.prove_together

    def worse(batch, problems, *rest):
        found = whole(batch, problems, *rest)
        for j, k in enumerate(problems):
            if k == 1:
                found.bounds[j] = replace(found.bounds[j], dual=0.0)
        return found

    monkeypatch.setattr(module, "prove_together", worse)
    found = solve_shared(SHARED, batch_of(*data), job())
    assert [bounds.meets(1e-3) for bounds in found.bounds] == [True, False] + 3 * [True]
    assert found.statuses[1] is None
    model = LinearSVC(solver=SHARED).fit(*data)
    assert model.certificate_.certified


# --------------------------------------------------------------------------- choice


def batch_of(X, y, **options):
    classes, codes = np.unique(y, return_inverse=True)
    usual = {"loss": "squared_hinge", "fit_intercept": True}
    reduction = options.pop("reduction", OneVsRest)(len(classes))
    ones = np.ones(len(classes))
    return LinearBatch(
        X, classes, codes, reduction, None, ones, **(usual | options), copies=False
    )


@pytest.fixture(scope="module")
def wide():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5000, 384)).astype(np.float32), np.arange(5000) % 10


def test_a_path_of_wide_rows_shares_passes_from_model_to_model(wide, monkeypatch):
    begun, start = [], steps.SharedPoint.start
    found, eigenvalues = steps.SharedRows.of, []

    def counted(*rows):
        eigenvalues.append(rows)
        return found(*rows)

    monkeypatch.setattr(steps.SharedRows, "of", counted)

    def seen(rows, batch, problems, W, sample=None):
        begun.append(None if W is None else W.copy())
        return start(rows, batch, problems, W, sample)

    monkeypatch.setattr(steps.SharedPoint, "start", seen)
    batch = batch_of(*wide)
    limits = job(seeds=[0] * 10, tol=1e-2)
    first, second = solve_path(batch, [0.1, 0.2], Auto(), limits)
    assert first.certificate.certified
    assert second.certificate.certified
    assert begun[0] is None
    np.testing.assert_array_equal(begun[1], np.array(first.w))
    assert len(eigenvalues) == 1  # are those of every C


@pytest.mark.parametrize("C", [1e-3, 1e-2])
def test_folds_of_several_classes_share_passes_for_small_C(wide, C):
    X, y = wide
    batch = batch_of(np.float32(0.2) * X, y, C=C)
    parts = [(np.where(np.arange(len(y)) % 5 == f, 0.0, 1.0), np.ones(10))
             for f in range(5)]  # fmt: skip
    assert chosen(Auto(), batch.weighted(parts), job())


@pytest.mark.parametrize("solver", [Auto(), SmoothingNewton()])
def test_wide_dense_rows_of_several_classes_share_passes(wide, solver):
    X, y = wide
    assert chosen(solver, batch_of(X, y), job())
    assert not chosen(DCD(), batch_of(X, y), job())
    assert not chosen(SmoothingNewton(passes="own"), batch_of(X, y), job())
    assert not chosen(solver, batch_of(X, y > 4), job())
    few = X[: 2 * X.shape[1]], y[: 2 * X.shape[1]]
    assert not chosen(solver, batch_of(*few), job())
    assert not chosen(solver, batch_of(X[:500, :10].copy(), y[:500]), job())
    assert not chosen(solver, batch_of(X[:, :20].copy(), y), job())


@pytest.mark.parametrize("solver", [Auto(), SmoothingNewton()])
def test_narrow_rows_whose_blocks_cost_calls_do_not_share_passes(solver):
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(200_000, 20)).astype(np.float32)
    y = np.minimum(rng.geometric(0.4, len(X)), 10)
    assert not chosen(solver, batch_of(X, y), job())


def test_classes_that_dcd_separates_in_few_epochs_do_not_share_passes(wide):
    X, y = wide
    easy = X + 9 * np.eye(10, X.shape[1], dtype=np.float32)[y]
    assert not chosen(Auto(), batch_of(easy, y), job())
    assert chosen(SmoothingNewton(), batch_of(easy, y), job())


@pytest.mark.parametrize(
    ("change", "needs"),
    [
        ({"X": sparse.csr_matrix}, "dense rows"),
        ({"loss": "hinge"}, "squared_hinge"),
        ({"penalize_intercept": False}, "a penalised intercept"),
        ({"reduction": OneVsOne}, "multi_class='ovr'"),
    ],
)
@pytest.mark.cases(None)
def test_what_cannot_share_passes_is_refused_if_asked(wide, change, needs):
    X, y = wide
    layout = change.pop("X", np.asarray)
    batch = batch_of(layout(X[:200]), y[:200], **change)
    change["X"] = layout
    for solver in (Auto(), SmoothingNewton()):
        assert not chosen(solver, batch, job())
    with pytest.raises(ValueError, match=f"passes='shared'.*{needs}.*passes='auto'"):
        solve_shared(SHARED, batch, job())

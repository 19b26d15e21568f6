"""Small problems with the same rows, solved and proved in one call into the core."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from dualgap import LinearSVC, core
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.base import Claim
from dualgap.problems.batch import LinearBatch
from dualgap.problems.reductions import OneVsOne, OneVsRest
from dualgap.solvers import DCD, Auto
from dualgap.solvers.labellings import SETTINGS, solve_labellings
from dualgap.training import batch as training

from ..conftest import examples
from ..trust.verifier import SVM, Rows
from .data import LOSSES, job, odd_rows

every_loss = pytest.mark.parametrize("loss", LOSSES)


def several(seed=0, n=60, d=4, classes=3, X=None, weight=True, codes=None, **options):
    """One problem for each of several classes, over rows with weights."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, d))
    if codes is None:
        scores = rows @ rng.normal(size=(d, classes)) + rng.normal(size=(n, 1))
        codes = np.argmax(scores, 1)
    weights = rng.uniform(0.1, 3.0, n) if weight else None
    return LinearBatch(
        rows if X is None else X(rows),
        np.arange(classes),
        codes,
        OneVsRest(classes),
        weights,
        np.ones(classes),
        **({"fit_intercept": True} | options),
    )


def solved(batch, **limits):
    return solve_labellings(Auto(), batch, job(**limits))


def exact(X, problem, w, alpha):
    """P and D in exact arithmetic, for rows with a constant feature of 1."""
    name, y, gamma = problem.loss.name, problem.y, getattr(problem.loss, "gamma", 0.0)
    posed = SVM(Rows(X), name, y, problem.cost, gamma, "penalised")
    return posed.primal(w[:-1], w[-1]), posed.dual(alpha * y)


@every_loss
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.cases(12)
def test_bounds_hold_and_are_those_of_the_problem(loss, layout, dtype):
    batch = several(1, X=lambda rows: layout(rows.astype(dtype)), loss=loss)
    found = solved(batch)
    X = batch.columns.X
    dense = X.toarray() if sparse.issparse(X) else X
    for k, bounds in enumerate(found.bounds):
        of = batch.problem(k)
        w, alpha = found.w[k], found.alpha[k]
        assert core.in_box(alpha, of.cost, of.core_loss)
        primal, dual = exact(dense, of, w, alpha)
        assert bounds.dual <= dual
        assert primal <= bounds.primal
        assert bounds.meets(1e-3)
        own = of.prove(Claim(w, alpha)).certificate
        assert bounds.primal == own.primal
        assert bounds.dual == pytest.approx(own.dual, rel=1e-12)
        assert bounds.rounding <= 2 * own.rounding


@every_loss
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
def test_rows_of_a_fold_are_those_with_a_cost(loss, layout):
    batch = several(7, X=layout, weight=False, loss=loss)
    parts = [np.where(np.arange(60) % 3 == f, 0.0, 1.0) for f in range(3)]
    folds = batch.weighted([(weight, np.ones(3)) for weight in parts])
    found = solved(folds)
    assert len(found.bounds) == len(folds) == 9
    for k, bounds in enumerate(found.bounds):
        kept = np.flatnonzero(parts[k // 3])
        alone = Problem(
            batch.columns.X[kept],
            batch.problem(k % 3).y[kept],
            loss=loss,
            fit_intercept=True,
        )
        assert not found.alpha[k][parts[k // 3] == 0.0].any()
        own = alone.prove(Claim(found.w[k], found.alpha[k][kept])).certificate
        assert bounds.primal == pytest.approx(own.primal, rel=1e-12)
        assert bounds.dual == pytest.approx(own.dual, rel=1e-12)


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 90),
    d=st.integers(1, 6),
    classes=st.integers(2, 4),
    loss=st.sampled_from(["hinge", "squared_hinge"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    spread=st.sampled_from([0.0, 3.0, 6.0]),
    C=st.sampled_from([1e-3, 1.0, 1e3]),
    odd=st.sampled_from(["", "zero rows", "equal rows", "weights", "class weights"]),
)
@settings(max_examples=examples(50))
def test_odd_inputs(seed, n, d, classes, loss, dtype, spread, C, odd):
    """The certificate holds for what the model says, whichever path trained it."""
    rng = np.random.default_rng(seed)
    X, weight = odd_rows(rng, n, d, spread, odd)
    X, y = X.astype(dtype), rng.permutation(np.arange(n) % min(classes, n))
    weight[np.unique(y, return_index=True)[1]] = 1.0
    factor = {k: 1.0 + k for k in set(y.tolist())} if odd == "class weights" else None
    model = LinearSVC(C=C, loss=loss, class_weight=factor, tol=1e-2, max_iter=20_000)
    model.fit(X, y, sample_weight=weight if odd == "weights" else None)
    positive = [1] if len(model.classes_) == 2 else range(len(model.classes_))
    dual = np.zeros((len(positive), n))
    dual[:, model.support_] = model.dual_coef_
    for row, k in enumerate(positive):
        part = model.certificate_.parts[row]
        assert part.certified
        sign = np.where(y == k, 1, -1)
        cost = C * weight
        if factor is not None:
            cost = cost * (1.0 + k) ** (y == k)
            if len(positive) == 1:
                cost = C * (1.0 + y)
        problem = Problem(
            X, sign, 1.0, loss=loss, sample_weight=cost, fit_intercept=True
        )
        w = np.append(model.coef_[row], model.intercept_[row])
        primal, value = exact(X, problem, w, np.abs(dual[row]))
        assert value >= part.dual
        assert primal <= part.primal
        assert part.relative_gap <= 1e-2


def test_what_is_not_small_is_left_to_the_ordinary_solver():
    assert solved(several(2)) is not None
    assert solved(several(2, penalize_intercept=False)) is None
    few = 2 * 5
    assert solved(several(2, n=few)) is None
    assert solved(several(2, n=SETTINGS.most_entries, d=1)) is None
    pairs = several(2)
    copies = (pairs.columns.X, pairs.classes, pairs.codes, OneVsOne(3))
    for copied, small in [(True, False), (False, True)]:
        batch = LinearBatch(
            *copies, None, np.ones(3), copies=copied, fit_intercept=True
        )
        assert (solved(batch) is not None) == small
    for d, small in [(127, True), (128, False)]:  # few rows are for the squared hinge
        wide = several(2, n=20, d=d, loss="squared_hinge")
        assert (solved(wide) is not None) == small


def thirty(spread, n, layout=np.asarray, **options):
    """Thirty classes of the same number of rows; they overlap if `spread` is small."""
    rng = np.random.default_rng(8)
    codes = np.arange(n) % 30
    rows = spread * rng.normal(size=(30, 6))[codes] + rng.normal(size=(n, 6))
    options |= {"X": lambda _: layout(rows), "weight": False, "classes": 30}
    return several(n=n, codes=codes, **options)


@every_loss
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("spread", [0.3, 2.0])
@pytest.mark.cases(8)
def test_few_rows_beside_those_of_a_rare_class_matter(loss, layout, bias, spread):
    """Rows of the other classes join where they have a loss."""
    batch = thirty(spread, 2400, layout, loss=loss, fit_intercept=bias)
    assert batch.rows.n * batch.rows.width > SETTINGS.free_entries
    found = solved(batch)
    assert len(found.bounds) == 30
    for k, bounds in enumerate(found.bounds):
        of, alpha = batch.problem(k), found.alpha[k]
        alpha = alpha.dense()
        assert core.in_box(alpha, of.cost, of.core_loss)
        assert bounds.meets(1e-3)
        own = of.prove(Claim(found.w[k], alpha)).certificate
        assert bounds.primal == own.primal
        assert bounds.dual == pytest.approx(own.dual, rel=1e-12)


def test_overlapping_classes_of_the_squared_hinge_are_left_to_others(monkeypatch):
    """All rows may have a loss there, and be too many for one call."""
    rng = np.random.default_rng(2)
    n = 24_000
    codes = np.arange(n) % 30
    apart = np.arange(30) < 20
    centres = np.where(apart, 6.0, 0.1)[:, None] * rng.normal(size=(30, 6))
    X = centres[codes] + rng.normal(size=(n, 6))
    assert n * 7 > SETTINGS.most_steep_entries
    options = {"X": lambda _: X, "weight": False, "C": 0.05, "loss": "squared_hinge"}
    found = solved(several(n=n, codes=codes, classes=30, **options))
    left = np.array([not bounds.meets(1e-3) for bounds in found.bounds])
    assert left[apart].mean() < 0.5
    assert left[~apart].any()
    for k in np.flatnonzero(left):
        assert not found.w[k].any()
        assert not len(found.alpha[k].rows)
    turned = 29 - codes  # now most of the first classes overlap
    assert solved(several(n=n, codes=turned, classes=30, **options)) is None

    model = LinearSVC(C=0.05, random_state=0).fit(X, codes)
    monkeypatch.setattr(training, "WHOLE", {})
    alone = LinearSVC(C=0.05, random_state=0).fit(X, codes)
    parts = zip(model.certificate_.parts, alone.certificate_.parts, strict=True)
    for own, other in parts:
        assert own.certified
        assert own.dual <= other.primal
        assert other.dual <= own.primal


def test_rare_classes_are_small_up_to_more_rows():
    n, d = 5000, 4
    assert n * (d + 1) > SETTINGS.most_entries
    codes = np.arange(n) % 32
    common = np.where(codes < 8, codes, 8)
    assert solved(several(9, n=n, d=d, loss="hinge", C=1e-3)) is None
    for loss, own, small in [
        ("hinge", codes, True),
        ("squared_hinge", codes, False),
        ("hinge", common, False),
    ]:
        many = several(9, n=n, d=d, classes=32, codes=own, loss=loss, C=1e-3)
        if own is common:  # as many problems, of classes that are not rare
            many.reduction.counts = lambda codes, rows: np.full(32, n // 16 + 1)
        assert (solved(many) is not None) == small


def sparse_classes(n=400, d=2100, classes=25, apart=0.5, seed=0, used=None, **options):
    """Sparse rows of many classes, whose own columns are a share `apart` of a row.

    `used`: number of columns that are not empty.
    """
    rng = np.random.default_rng(seed)
    codes = np.arange(n) % classes
    own = rng.integers(0, d, (classes, 8))
    columns = rng.integers(0, used or d, (n, 20))
    chosen = rng.random((n, 20)) < apart
    columns[chosen] = own[codes][
        np.nonzero(chosen)[0], rng.integers(0, 8, chosen.sum())
    ]
    place = np.repeat(np.arange(n), 20), columns.ravel()
    rows = sparse.csr_matrix((rng.uniform(0.1, 0.4, 20 * n), place), (n, d))
    options = {"X": lambda _: rows, "codes": codes, "classes": classes} | options
    return several(n=n, **options)


@every_loss
@pytest.mark.parametrize("d", [500, 2100])
@pytest.mark.parametrize("C", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("weight", [False, True])
@pytest.mark.cases(10)
def test_many_classes_of_sparse_rows_are_swept_and_proved(loss, d, C, weight):
    batch = sparse_classes(d=d, C=C, weight=weight, loss=loss, seed=d)
    found = solved(batch)
    assert found.method == "dcd"
    assert len(found.bounds) == len(batch)
    assert np.mean([bounds.meets(1e-3) for bounds in found.bounds]) > 0.5
    for k, bounds in enumerate(found.bounds):
        of, alpha = batch.problem(k), found.alpha[k].dense()
        assert core.in_box(alpha, of.cost, of.core_loss)
        np.testing.assert_allclose(found.w[k], of.combine(alpha), atol=1e-12)
        own = of.prove(Claim(found.w[k], alpha)).certificate
        assert bounds.primal == own.primal
        assert bounds.dual == pytest.approx(own.dual, rel=1e-12)


def test_threads_share_classes_and_seeds_decide_the_orders_of_sweeps():
    batch = sparse_classes()
    alone = solved(batch)
    for other in (solved(batch, threads=3), solved(batch, seeds=[0] * len(batch))):
        np.testing.assert_array_equal(alone.w, other.w)
        np.testing.assert_array_equal(alone.epochs, other.epochs)
    assert (solved(batch, seeds=[1]).w != alone.w).any()


def test_classes_that_take_many_sweeps_are_left_to_the_ordinary_solver():
    batch = sparse_classes(apart=0.0, used=40, C=100.0)
    assert solved(batch) is None
    X, codes = batch.columns.X, batch.codes
    model = LinearSVC(C=100.0, tol=0.1).fit(X, codes)
    assert model.certificate_.certified


def test_what_is_not_swept():
    assert solved(sparse_classes()) is not None
    assert solved(sparse_classes(classes=20)) is None
    assert solved(sparse_classes(penalize_intercept=False)) is None
    assert solved(sparse_classes(), models=[np.zeros(2101)]) is None
    assert solve_labellings(DCD(), sparse_classes(), job()) is None
    dense = sparse_classes().columns.X.toarray()
    assert solved(sparse_classes(X=lambda _: dense)) is None
    rows = SETTINGS.most_swept_entries // 10
    assert solved(sparse_classes(n=rows, d=30_000)) is None
    stop = core.Stop()
    stop.request()
    assert solved(sparse_classes(), stop=stop) is None


def test_steps_beyond_the_target_do_not_spoil_a_point():
    """Rounding hides the optimum of rows far away from 0, after it was close."""
    rng = np.random.default_rng(6180)
    n, d = 28, 11
    X = rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-6.0, 6.0, d)
    X = (X[rng.integers(0, n // 3, n)] + 2.4e6).astype(np.float32)
    y = rng.permutation(np.arange(n) % 2)
    found = LinearSVC(C=1e6, loss="hinge", tol=1e-2).fit(X, y).certificate_
    assert found.certified


def test_the_smallest_problems_are_solved_to_rounding():
    for bounds in solved(several(3, n=20, d=2)).bounds:
        assert bounds.meets(1e-9)


def test_an_absolute_accuracy_ends_a_fit():
    batch = several(4, n=500, d=6)
    loose = solved(batch, tol=1e-12, atol=1e3)
    tight = solved(batch, tol=1e-12, atol=1e-3)
    for few, many in zip(loose.bounds, tight.bounds, strict=True):
        assert few.primal - few.dual <= 1e3
        assert many.primal - many.dual <= 1e-3
    assert (loose.epochs[loose.ends - 1, 2] < tight.epochs[tight.ends - 1, 2]).all()


@pytest.mark.parametrize(("times", "left"), [(0.99, 1), (1.01, 0)])
def test_a_problem_that_misses_its_target_is_left(times, left):
    """Sweeps end at their limit, and the one proof decides."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 4))
    y = np.where(X[:, 0] + rng.normal(size=60) > 0.0, 1, -1).astype(np.int8)[None]

    def swept(atol):
        tables = core.Labellings(y, np.ones((1, 60)), *map(np.zeros, ((1, 4), (1, 60))))
        return core.sweep_labellings(
            *[core.dense_rows(X, 0.0), (X**2).sum(axis=1), tables, core.Loss(1, 0)],
            core.SweepRules(
                *[core.Targets(0.0, atol, 0.0, 0.0), 4.0, 4.0, 6],
                *[core.SweepSettings(), 31, 0.0],
            ),
            *[[7], core.Team(1), core.Stop()],
        )

    loss, total, diagonal, *_ = swept(0.0).sums[0]
    norm = swept(0.0).sums[0][11]
    gap = 0.5 * norm + loss - (total - 0.5 * (norm + diagonal))
    assert gap > 0.0
    assert swept(times * gap / 0.999).left == left

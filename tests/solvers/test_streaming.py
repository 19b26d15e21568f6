"""Rows that are read block by block: the same optimum, the same proof, bounded memory.

Every certificate is recomputed here from all rows, in plain NumPy and float64.
"""

import time

import numpy as np
import pytest
from scipy import sparse

from dualgap import LinearSVC, core
from dualgap.certificate import Status
from dualgap.data import RowStore, convert
from dualgap.data.description import HEADER
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import (
    DCD,
    OCAS,
    SDCA,
    SOLVERS,
    InteriorPoint,
    Pegasos,
    SGDr,
    SvmSGD,
    get_solver,
)
from dualgap.solvers.some_rows import SomeRowsState
from dualgap.training import solve

from .. import memory
from ..conftest import unsanitized
from ..sealing import seal
from ..twins.objectives import dual, primal
from .data import LOSSES

N, D = 2000, 30
STREAMING = list(SOLVERS)


def rows(dense=False, seed=0):
    rng = np.random.default_rng(seed)
    X = sparse.random(N, D, density=0.3, format="csr", random_state=rng)
    X.data = rng.standard_normal(len(X.data))
    X = X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1).A + 1e-9)).tocsr()
    score = X @ rng.standard_normal(D) + 0.3 * rng.standard_normal(N)
    weight = rng.integers(0, 4, N).astype(float)
    return X.toarray() if dense else X, np.where(score > 0, 1, -1), weight


@pytest.fixture(scope="module")
def stores(tmp_path_factory):
    """Path of a store, sparse or dense, and whether it holds weights."""
    folder = tmp_path_factory.mktemp("stores")
    for dense in (False, True):
        X, y, weight = rows(dense)
        convert([(X, y)], folder / f"{dense}-False")
        convert([(X, y, weight)], folder / f"{dense}-True")
    return lambda dense, weights: folder / f"{dense}-{weights}"


def small(path):
    """A store that is streamed in some blocks of several pages."""
    size = RowStore.open(path)
    total = size.nnz * size.entry_bytes + 8 * size.n_samples
    store = RowStore.open(path, buffer=int(0.7 * total))
    assert len(store.pages) >= 8
    assert len(store.pages) > 2 * store.block_pages
    return store


@pytest.fixture
def streamed(stores):
    return small(stores(False, False))


def outside(problem, store, w, alpha, scaling=0.0):
    """P(w) and D(alpha) of the hinge or the squared hinge, in plain NumPy."""
    X = store.matrix()
    X = X.toarray() if sparse.issparse(X) else np.asarray(X)
    if problem.width > D:
        X = np.hstack([X, np.full((N, 1), scaling)])
    given = X, problem.y, problem.cost, LOSSES[problem.loss.name][1]
    return primal(*given, w), dual(*given, alpha)


@pytest.mark.parametrize("name", STREAMING)
def test_every_streaming_solver_nears_the_optimum_and_proves_how_much(streamed, name):
    problem = Problem(streamed, None, 0.5)
    best = solve(Problem(streamed.matrix(), streamed.y, 0.5), DCD(), tol=1e-9)
    slow = name in ("norma", "sgd-r", "svmsgd")
    solver = SvmSGD(initial_step=None) if name == "svmsgd" else get_solver(name)
    found = solve(problem, solver, tol=1e-2, max_iter=40 if slow else 400)
    P, D_ = outside(problem, streamed, found.w, found.alpha)
    assert np.isclose(P, found.certificate.primal, rtol=1e-12)
    assert D_ >= found.certificate.dual - 1e-12 * abs(D_)
    assert D_ <= best.certificate.primal
    assert best.certificate.dual <= P
    if not slow:
        assert found.certificate.status is Status.CERTIFIED
    # Not much worse than the same solver over rows in memory.
    same = solve(
        Problem(streamed.matrix(), streamed.y, 0.5), solver, tol=1e-2,
        max_iter=40 if slow else 400,
    ).certificate  # fmt: skip
    excess = P - best.certificate.dual
    assert excess <= max(2.0 * (same.primal - best.certificate.dual), 1e-2 * P)


def test_a_bias_that_is_not_penalised(streamed):
    options = {"fit_intercept": True, "penalize_intercept": False}
    found = solve(Problem(streamed, None, 1.0, **options), DCD(), tol=1e-3)
    assert found.certificate.status is Status.CERTIFIED
    whole = Problem(streamed.matrix(), streamed.y, 1.0, **options)
    best = solve(whole, get_solver("interior-point"), tol=1e-7).certificate
    certificate = whole.certify(found.w, found.alpha)
    assert certificate.relative_gap <= 1.001e-3
    assert best.dual <= certificate.primal
    search = solve(
        Problem(streamed, None, 1.0, **options),
        Pegasos(bias="search"),
        max_iter=20,
    )
    assert search.certificate.dual <= best.primal


@pytest.mark.cases(1)
# A sample and the rows near its margin, which are copied; a sample, but too many are
# near for a copy; no copy at all.
@pytest.mark.parametrize(
    ("buffer", "sample", "copies"), [(0.8, 100, "all"), (0.15, 100, 1), (0.15, 1200, 0)]
)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("dense", [False, True])
def test_interior_points_over_a_store(
    tmp_path, monkeypatch, dense, loss, buffer, sample, copies
):
    rng = np.random.default_rng(1)
    n, d = 6000, 10
    X = rng.standard_normal((n, d)) * (rng.random((n, d)) < 0.6)
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(n) > 0, 1, -1)
    weight = rng.integers(0, 4, n).astype(float)
    X = X if dense else sparse.csr_matrix(X)
    convert([(X, y, weight)], tmp_path / "s", memory=2**20)
    store = RowStore.open(tmp_path / "s")
    size = store.nnz * store.entry_bytes + 8 * n
    store = RowStore.open(tmp_path / "s", buffer=int(buffer * size))
    options = {"fit_intercept": True, "penalize_intercept": False, "loss": loss}
    problem = Problem(store, None, 1e2, **options)
    assert problem.streamed
    assert not (problem.cost > 0.0).all()
    passes = []
    read = RowStore.read

    def counted(self, constant, blocks=None):
        passes.append(blocks)
        yield from read(self, constant, blocks)

    monkeypatch.setattr(RowStore, "read", counted)
    copied = []
    rows_of = SomeRowsState.rows

    def noted(state):
        rows = rows_of(state)
        copied.append(isinstance(rows, list))
        if copied[-1] and state.problem.streamed:  # rows are not all as long
            assert sum(part.bytes for part in rows) <= 1.1 * store.buffer
        return rows

    monkeypatch.setattr(SomeRowsState, "rows", noted)
    found = solve(problem, InteriorPoint(sample=sample), tol=1e-8)
    assert found.certificate.status is Status.CERTIFIED
    assert passes == [None] * len(passes)  # each from one end to the other
    if copies == "all":
        assert all(copied)
        assert len(passes) < 2 * found.certificate.epochs
    else:
        assert copied == [True] * copies + [False]
        assert len(passes) > 3 * found.certificate.epochs
    X, y, weight = store.matrix(), store.y, store.sample_weight
    whole = Problem(X, y, 1e2, sample_weight=weight, **options)
    again = whole.certify(found.w, found.alpha)
    assert again.relative_gap <= 1.01e-8
    best = solve(whole, InteriorPoint(), tol=1e-8).certificate
    assert best.dual <= again.primal
    assert again.dual <= best.primal


def test_interior_points_over_a_store_leave_at_once_when_told(streamed):
    problem, stop = Problem(streamed, None, 1e2), core.Stop()
    solver = InteriorPoint()
    state = solver.start(problem, core.Random(0), None)
    for _ in range(3):
        solver.step(state, stop)
    before = state.inner.w
    stop.request()
    solver.step(state, stop)
    assert np.array_equal(state.inner.w, before)
    found = solve(problem, solver, tol=1e-9, max_iter=1)
    assert found.certificate.status is Status.EPOCH_LIMIT
    P, D_ = outside(problem, streamed, found.w, found.alpha)
    assert np.isclose(P, found.certificate.primal, rtol=1e-12)
    lost = D_ - found.certificate.dual  # to rounding, which the certificate subtracts
    assert -1e-12 * D_ <= lost <= found.certificate.rounding + 1e-12 * D_


def visiting_order(store, seed):
    """The rows in the order of a pass, from the random numbers that it draws."""
    random = core.Random(seed) if isinstance(seed, int) else seed
    pages = np.arange(len(store.pages), dtype=np.uint32)
    random.shuffle(pages)
    order = []
    for k in range(0, len(pages), store.block_pages):
        spans = [store.pages[p] for p in pages[k : k + store.block_pages]]
        numbers = np.concatenate([np.arange(s.start, s.stop) for s in spans])
        own = np.arange(len(numbers), dtype=np.uint32)
        random.shuffle(own)
        order.append(numbers[own])
    return np.concatenate(order).astype(np.uint32)


def one_pass(store, solver, seed=5, C=1.0):
    """Return the state after a pass, the same rows in memory, and zeros for a point."""
    state = solver.start(Problem(store, None, C), core.Random(seed), None)
    solver.step(state, core.Stop())
    whole = Problem(store.matrix(), store.y, C, sample_weight=store.sample_weight)
    return state, whole.examples(), (np.zeros(N), np.zeros(D))


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(
    "solver", [SDCA(), DCD(block_sweeps=1), DCD(block_sweeps=1, shrinking="none")]
)
def test_a_pass_is_that_over_rows_in_memory_in_the_same_order(stores, dense, solver):
    store = small(stores(dense, True))
    state, rows, (alpha, w) = one_pass(store, solver, 5, 3.0)
    order, point = visiting_order(store, 5), core.DualState(alpha, w)
    assert sorted(order) == list(range(N))
    found = core.sdca_epoch(rows, order, point, None, core.Stop())
    assert np.allclose(state.alpha, alpha, rtol=1e-12, atol=1e-14)
    assert np.allclose(state.w, w, rtol=1e-12, atol=1e-14)
    assert state.updates == found.updates
    assert np.isclose(state.primal - state.dual, found.gap, rtol=1e-10)


def test_starts_and_averages_run_on_from_block_to_block(streamed):
    state, rows, (alpha, w) = one_pass(streamed, SDCA(output="average"))
    order, point = visiting_order(streamed, 5), core.DualState(alpha, w)
    total, since = np.zeros(N), np.zeros(N)
    core.sdca_epoch(rows, order, point, core.Average(total, since, 0.0), core.Stop())
    mean = (total + alpha * (N - since)) / N
    found = SDCA(output="average").iterate(state)[1]
    assert np.allclose(found, mean, rtol=1e-12, atol=1e-15)
    state, rows, (alpha, w) = one_pass(streamed, SDCA(init="sgd"))
    point = core.DualState(alpha, w)
    core.modified_sgd_epoch(rows, order, point, 0, N, core.Stop())
    assert np.allclose(state.alpha, alpha, rtol=1e-12, atol=1e-15)
    assert np.allclose(state.w, w, rtol=1e-12, atol=1e-15)


def test_the_random_output_is_a_point_within_a_block(streamed):
    solver = SDCA(output="random")
    for seed in range(5):
        state, rows, (alpha, w) = one_pass(streamed, solver, seed)
        # What it drew: whether to keep a point of this pass (always of the first one),
        # which, and then the rows.
        random = core.Random(seed)
        random.below(1)
        cut = random.below(N) + 1
        order, point = visiting_order(streamed, random)[:cut], core.DualState(alpha, w)
        core.sdca_epoch(rows, order, point, None, core.Stop())
        found = solver.iterate(state)[1]
        assert np.allclose(found, alpha, rtol=1e-12, atol=1e-15)
        assert not np.array_equal(found, state.alpha)


@pytest.mark.parametrize("name", ["dcd", "sdca", "pegasos", "sgd-r", "ocas"])
def test_the_same_seed_gives_the_same_bits(streamed, name):
    first, second = (
        solve(Problem(streamed), get_solver(name), max_iter=5, random_state=3)
        for _ in range(2)
    )
    assert np.array_equal(first.w, second.w)
    assert np.array_equal(first.alpha, second.alpha)


def test_more_sweeps_of_a_block_save_passes(streamed):
    problem = Problem(streamed, None, 10.0)
    epochs = [
        solve(problem, DCD(block_sweeps=k), tol=1e-2).certificate.epochs for k in (1, 5)
    ]
    assert epochs[1] < 0.8 * epochs[0]


def test_a_store_that_fits_in_its_buffer_is_held_in_memory(stores):
    store = RowStore.open(stores(False, False))
    problem = Problem(store, None, 1.0)
    assert not problem.streamed
    whole = Problem(store.matrix(), store.y, 1.0)
    for name in sorted(set(SOLVERS) - {"norma"}):
        one, two = (solve(p, get_solver(name), max_iter=3) for p in (problem, whole))
        assert np.array_equal(one.w, two.w), name


@pytest.mark.parametrize(
    "solver",
    [DCD(shrinking="hsieh"), DCD(acceleration="conjugate")],
    ids=repr,
)
def test_solvers_that_need_all_rows_say_so(streamed, solver):
    problem = Problem(streamed, None, 1.0)
    with pytest.raises(ValueError, match=r"needs its rows in memory.*buffer=\d+"):
        solve(problem, solver)
    assert isinstance(solver, (OCAS, SGDr)) is False


def test_every_solver_streams():
    assert [name for name in SOLVERS if not get_solver(name).streams] == []


def test_limits_leave_an_honest_certificate(streamed):
    problem = Problem(streamed, None, 100.0)
    found = solve(
        problem, DCD(), tol=1e-12, time_limit=0.2, on_epoch=lambda _: time.sleep(0.2)
    )
    assert found.certificate.status is Status.TIME_LIMIT
    P, D_ = outside(problem, streamed, found.w, found.alpha)
    assert np.isclose(P, found.certificate.primal, rtol=1e-12)
    assert np.isclose(D_, found.certificate.dual, rtol=1e-12)


def test_warm_starts(streamed):
    problem = Problem(streamed, None, 0.1)
    cold = solve(problem, DCD(), tol=1e-4)
    warm = solve(problem, DCD(), tol=1e-3, warm=cold.alpha)
    assert warm.certificate.epochs == 0


def test_damage_is_found_by_the_first_pass(tmp_path):
    X, y, _ = rows()
    convert([(X, y)], tmp_path / "s")
    store = small(tmp_path / "s")
    bad = int(np.searchsorted(store.matrix().indptr, 9000, side="right")) - 1
    with open(store.file("indices"), "rb+") as file:
        file.seek(HEADER + 4 * 9000)
        file.write(np.int32(D).tobytes())
    seal(store.path)
    looks = [
        lambda problem: problem.q,
        lambda problem: problem.primal(np.zeros(D)),
        lambda problem: solve(problem, DCD()),
        lambda problem: solve(problem, SDCA(), warm=np.ones(N)),
        lambda problem: solve(problem, OCAS()),
    ]
    for look in looks:
        problem = Problem(small(tmp_path / "s"))
        with pytest.raises(ValueError, match=f"row {bad}: column index out of range"):
            look(problem)


def test_rows_are_measured_as_they_come(streamed):
    X = streamed.matrix()
    expected = Problem(X, np.ones(N), 1.0, fit_intercept=True).q
    problem = Problem(streamed, None, 1.0, fit_intercept=True)
    other = problem.with_labels(-problem.y)
    assert not problem.q_read.any()  # opened, and not read
    (block,) = problem.blocks([[5, 2]])
    seen = np.zeros(N, bool)
    for span in block.spans:
        seen[span] = True
    assert 0 < seen.sum() < N
    np.testing.assert_array_equal(problem.q_read, np.where(seen, expected, 0.0))
    assert not problem.all_read
    np.testing.assert_array_equal(other.q, expected)
    np.testing.assert_array_equal(problem.q_read, expected)


@pytest.mark.parametrize("name", ["dcd", "sdca", "sgd-s"])
def test_a_fit_reads_the_store_once_for_a_pass_or_a_proof(streamed, monkeypatch, name):
    read, plain = [], RowStore.read

    def counted(self, *arguments):
        for block in plain(self, *arguments):
            read.append(block.size)
            yield block

    monkeypatch.setattr(RowStore, "read", counted)
    found = solve(Problem(streamed, None, 0.5), get_solver(name), tol=0.05)
    assert found.certificate.certified
    passes = found.certificate.epochs + int(found.history["exact"].sum())
    # sdca proves by two passes, one for each value
    twice = int(found.history["exact"].sum()) if name == "sdca" else 0
    assert sum(read) == N * (passes + twice)


# ----------------------------------------------------------------------- the estimator


def test_the_estimator_takes_labels_and_weights_of_the_store(stores):
    store = small(stores(False, True))
    model = LinearSVC(C=0.2, tol=1e-3, random_state=0, class_weight="balanced")
    assert model.fit(store) is model
    whole = LinearSVC(C=0.2, tol=1e-7, random_state=0, class_weight="balanced")
    whole.fit(store.matrix(), store.y, store.sample_weight)
    assert model.certificate_.certified
    assert model.certificate_.dual <= whole.certificate_.primal
    assert whole.certificate_.dual <= model.certificate_.primal
    assert model.n_features_in_ == D
    X = store.matrix()
    scores = model.decision_function(store)
    assert np.array_equal(scores, model.decision_function(X))
    assert np.array_equal(model.predict(store), model.predict(X))
    assert model.score(store) == model.score(X, store.y, store.sample_weight)
    assert model.score(store, store.y) == model.score(X, store.y)
    with pytest.raises(ValueError, match="y has 3 labels, but X has 2000 rows"):
        model.fit(store, [1, 2, 3])


@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
def test_several_classes_in_threads(stores):
    store = small(stores(True, False))
    y = np.arange(N) % 3
    y[store.y > 0] = 7
    one, two = (
        LinearSVC(loss="hinge", tol=1e-2, n_jobs=jobs).fit(store, y) for jobs in (1, 2)
    )
    assert np.array_equal(one.coef_, two.coef_)
    assert one.classes_.tolist() == [0, 1, 2, 7]
    assert all(certificate.certified for certificate in one.certificate_)
    for k, label in enumerate(one.classes_):
        problem = Problem(
            store.matrix(), np.where(y == label, 1, -1), fit_intercept=True
        )
        w = np.append(one.coef_[k], one.intercept_[k])
        alpha = np.zeros(N)
        alpha[one.support_] = np.abs(one.dual_coef_[k])
        assert problem.certify(w, alpha).relative_gap <= 1.001e-2


@pytest.mark.long
@unsanitized("it keeps freed memory")
@memory.reads_peak
def test_memory_is_model_duals_and_buffer(tmp_path):
    rng = np.random.default_rng(0)
    width, rows_, buffer = 250, 20_000, 2**23

    def batches(n):
        for _ in range(n // 1000):
            X = rng.standard_normal((1000, width))
            yield X, X[:, 0] + rng.standard_normal(1000) > 0

    convert(batches(1000), tmp_path / "small")
    convert(batches(rows_), tmp_path / "large")
    assert RowStore.open(tmp_path / "large").nnz * 8 > 4 * buffer
    script = (
        "import sys\n"
        "from dualgap import LinearSVC\n"
        "from dualgap.data import RowStore\n"
        "folder, buffer, *names = sys.argv[1:]\n"
        "def fit(name, which, buffer):\n"
        "    store = RowStore.open(f'{folder}/{which}', buffer=buffer)\n"
        "    model = LinearSVC(1e-3, loss='hinge', tol=1e-2, solver=name, max_iter=5)\n"
        "    model.fit(store)\n"
        "for name in names:\n"  # what first fits load and allocate
        "    fit(name, 'small', 2**20)\n"
        "before = peak()\n"
        "for name in names:\n"
        "    fit(name, 'large', int(buffer))\n"
        "    print(name, peak() - before)\n"
    )
    large = ["newton", "interior-point"]
    names = [name for name in STREAMING if name not in large]
    told = memory.run(script, tmp_path, buffer, *names, *large)
    grown = {line.split()[0]: int(line.split()[1]) for line in told.splitlines()}
    assert set(grown) == set(STREAMING)
    # Of a row: alpha twice, cost, q, labels, weights and codes; and of a block.
    most = buffer + 100 * rows_ + 2**20
    assert max(grown[name] for name in names) <= most, grown
    # Their variables of a row, and their matrix.
    for name in large:
        assert grown[name] <= most + 180 * rows_ + 12 * width**2, grown


@pytest.mark.long
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize(
    "name", ["adult/a9a", "covtype/covtype.binary.scale.subset92962"]
)
def test_real_sets_reach_the_optimum_of_the_rows_in_memory(
    load_xz, tmp_path, name, dense
):
    X, y = load_xz(name)
    X, y = X[:20_000], np.where(y[:20_000] == y.max(), 1, -1)
    weight = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    X = X.toarray() if dense else X
    convert([(X, y, weight)], tmp_path / "s", dtype="float64")
    size = (X.size * 8) if dense else X.nnz * 12 + 8 * len(y)
    store = RowStore.open(tmp_path / "s", buffer=size // 4)
    options = {"C": 0.1, "loss": "hinge", "class_weight": "balanced"}
    streamed = LinearSVC(tol=1e-3, **options).fit(store)
    whole = LinearSVC(tol=1e-6, **options).fit(X, y, weight)
    assert streamed.certificate_.certified
    # An outside pass, over the rows as they were before the conversion.
    total = np.bincount((y > 0).astype(int), weight)
    cost = 0.1 * weight * (total.sum() / (2 * total))[(y > 0).astype(int)]
    w, b = streamed.coef_[0], streamed.intercept_[0]
    loss = np.maximum(0.0, 1.0 - y * (X @ w + b))
    primal = 0.5 * (w @ w + b * b) + cost @ loss
    assert np.isclose(primal, streamed.certificate_.primal, rtol=1e-10)
    assert primal <= (1.0 + 1e-3) * whole.certificate_.primal
    assert streamed.certificate_.dual <= whole.certificate_.primal
    assert whole.certificate_.dual <= primal * (1.0 + 1e-12)

"""Checkpoints: whatever kills a fit, going on gives the bits of one that was not."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import sparse

from dualgap import LinearSVC
from dualgap.data import RowStore, convert
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import (
    DCD,
    SDCA,
    SOLVERS,
    Auto,
    Pegasos,
    SGDs,
    SvmSGD,
    get_solver,
)
from dualgap.training import checkpoint, solve

N, D = 600, 40


def rows(n=N, d=D, seed=0, density=0.2):
    rng = np.random.default_rng(seed)
    X = sparse.random(n, d, density=density, format="csr", random_state=rng)
    score = X @ rng.standard_normal(d)
    noisy = score + 0.5 * score.std() * rng.standard_normal(n)
    return X, np.where(noisy > np.median(noisy), 1, -1)


def wide_rows():
    """Rows with little in common, which `dcd` accelerates."""
    return rows(n=300, d=3000, density=0.01)


class KilledError(Exception):
    pass


def killed_at(epoch):
    def on_epoch(info):
        if info.epoch == epoch:
            raise KilledError

    return on_epoch


def same(one, two):
    """Assert equal models, proofs and histories, apart from seconds."""
    assert np.array_equal(one.w, two.w)
    assert np.array_equal(one.alpha, two.alpha)
    for name in ("primal", "dual", "epochs", "updates", "status"):
        assert getattr(one.certificate, name) == getattr(two.certificate, name), name
    for name in set(one.history.dtype.names) - {"seconds"}:
        a, b = one.history[name], two.history[name]
        assert a.shape == b.shape
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), name


def resumed(problem, solver, folder, epoch, **options):
    """Return a whole fit, and one that is killed after an epoch and taken up."""
    whole = solve(problem, solver, **options)
    assert whole.certificate.epochs > epoch
    options |= {"checkpoint": folder / "c", "checkpoint_every": 1e-9}
    with pytest.raises(KilledError):
        solve(problem, solver, on_epoch=killed_at(epoch), **options)
    assert (folder / "c").exists()
    epochs = []
    found = solve(problem, solver, on_epoch=lambda i: epochs.append(i.epoch), **options)
    same(found, whole)
    if not isinstance(solver, Auto):  # which begins Newton's method again
        assert epochs[0] == epoch  # and none before
    return found


SOLVERS_THAT_RESUME = [
    *(get_solver(name) for name in sorted(SOLVERS) if SOLVERS[name].resumes),
    DCD(shrinking="hsieh"),
    DCD(shrinking="none"),
    SDCA(output="average"),
    SDCA(output="random", order="random"),
    SDCA(init="sgd"),
    Pegasos(batch_size=7, output="average", projection=True),
    SvmSGD(initial_step=0.5),
]


@pytest.mark.parametrize("solver", SOLVERS_THAT_RESUME, ids=repr)
@pytest.mark.parametrize("epoch", [2, 7])
def test_a_resumed_fit_has_the_bits_of_a_whole_one(tmp_path, solver, epoch):
    if isinstance(solver, Auto):
        solver = solver._with_settings(margin=math.inf)  # it begins with `dcd`
    problem = Problem(*rows(), 1.0, fit_intercept=True)
    options = {"tol": 1e-4, "max_iter": 25, "random_state": 5, "check_every": 3}
    resumed(problem, solver, tmp_path, epoch, **options)


@pytest.mark.parametrize("solver", [DCD(), SDCA(), SGDs()], ids=repr)
def test_a_fit_that_atol_ends_is_resumed(tmp_path, solver):
    problem = Problem(*rows(), 1.0, fit_intercept=True)
    options = {"tol": 1e-15, "atol": 10.0, "max_iter": 500}
    assert resumed(problem, solver, tmp_path, 3, **options).certificate.certified


@pytest.mark.parametrize("epoch", [3, 12, 18, 22])
def test_momentum_and_conjugate_directions_are_held(tmp_path, epoch):
    problem = Problem(*wide_rows(), 1000.0)
    assert DCD().accelerates(problem)
    resumed(problem, DCD(), tmp_path, epoch, tol=1e-9, max_iter=40)


@pytest.mark.parametrize("options", [{}, {"penalize_intercept": False}])
def test_biases_losses_and_warm_starts(tmp_path, options):
    X, y = rows()
    problem = Problem(X, y, 1.0, loss="squared_hinge", fit_intercept=True, **options)
    warm = np.linspace(0.0, 0.5, N)
    call = {"tol": 1e-6, "max_iter": 40, "warm": warm}
    resumed(problem, DCD(), tmp_path, 4, **call)
    call |= {"checkpoint": tmp_path / "c"}
    with pytest.raises(ValueError, match="by a fit of warm="):
        solve(problem, DCD(), **(call | {"warm": warm / 2}))


@pytest.fixture
def store(tmp_path):
    convert([rows(n=6000)], tmp_path / "store")
    store = RowStore.open(tmp_path / "store", buffer=150_000)
    assert store.block_pages > 1
    assert len(store.pages) > 2 * store.block_pages
    return store


@pytest.mark.parametrize("name", ["auto", "dcd", "sdca", "pegasos", "sgd-s"])
def test_a_stream_goes_on_in_the_midst_of_a_pass(tmp_path, store, name, monkeypatch):
    problem = Problem(store, None, 3.0)
    options = {"tol": 1e-3, "max_iter": 20}
    whole = solve(problem, get_solver(name), **options)
    options |= {"checkpoint": tmp_path / "c", "checkpoint_every": 1e-9}
    save, sweeps = checkpoint.Checkpoint.save, []

    def killed_after_seven(self, solver, state, kept):
        save(self, solver, state, kept)
        sweeps.append(getattr(state, "sweep", None))
        if len(sweeps) == 7:
            raise KilledError

    monkeypatch.setattr(checkpoint.Checkpoint, "save", killed_after_seven)
    with pytest.raises(KilledError):
        solve(problem, get_solver(name), **options)
    if name == "dcd":
        assert any(sweep is not None for sweep in sweeps)
    same(solve(problem, get_solver(name), **options), whole)


def test_a_resumed_stream_reads_what_is_left_and_nothing_twice(
    tmp_path, store, monkeypatch
):
    read, plain = [], RowStore.read

    def counted(self, *arguments):
        for block in plain(self, *arguments):
            read.append(block.size)
            yield block

    def fit(**options):
        return solve(
            Problem(store, None, 1.0), DCD(), tol=1e-2, random_state=0,
            checkpoint=tmp_path / "c", checkpoint_every=1e-9, **options,
        )  # fmt: skip

    with pytest.raises(KilledError):  # after three passes, two of them written
        fit(on_epoch=killed_at(3))
    monkeypatch.setattr(RowStore, "read", counted)
    found = fit()
    exact = int(found.history["exact"][2:].sum())
    passes, n = found.certificate.epochs - 3 + exact, len(store)
    # From before the last block of the third pass on; too few passes for a repair of w.
    assert passes * n < sum(read) <= passes * n + max(read) < (passes + 1) * n


def test_leftovers_of_killed_writers_are_removed(tmp_path):
    mine = [tmp_path / f".c.{k:016x}.tmp" for k in (1, 2**60)]
    others = [tmp_path / name for name in (".c.tmp", ".d.0000000000000001.tmp")]
    for file in (*mine, *others):
        file.write_bytes(b"half")
    X, y = rows()
    solve(Problem(X, y, 1.0), DCD(), checkpoint=tmp_path / "c")
    assert not any(file.exists() for file in mine)
    assert all(file.exists() for file in others)


@pytest.mark.long
def test_a_second_fit_with_the_same_file_is_refused_and_the_first_goes_on(tmp_path):
    problem = Problem(*rows(), 3.0)
    call = {"checkpoint": tmp_path / "c", "checkpoint_every": 1e-9, "tol": 1e-9}
    second = tmp_path / ".c.0000000000000001.tmp"  # as if it were being written

    def meanwhile(info):
        if info.epoch == 2:
            second.write_bytes(b"half")
            told = []

            def fit():
                with pytest.raises(ValueError, match="is being written by") as error:
                    solve(problem, DCD(), **call)
                told.append(str(error.value))

            thread = threading.Thread(target=fit)
            thread.start()
            thread.join()
            assert "another thread of this process" in told[0]
            assert repr(str(tmp_path / "c")) in told[0]
            assert second.exists()
            command = [sys.executable, "-c", SECOND, str(tmp_path / "c")]
            done = subprocess.run(command, capture_output=True, text=True)
            assert f"is being written by process {os.getpid()};" in done.stderr
            assert second.exists()
            second.unlink()

    whole = solve(problem, DCD(), max_iter=5, tol=1e-9)
    found = solve(problem, DCD(), max_iter=5, on_epoch=meanwhile, **call)
    same(found, whole)
    assert os.listdir(tmp_path) == ["c"]


SECOND = """
import sys
import numpy as np
from dualgap import LinearSVC
X = np.random.default_rng(0).normal(size=(40, 2))
LinearSVC(checkpoint=sys.argv[1], random_state=0).fit(X, X[:, 0] > 0)
"""


def test_a_link_to_a_checkpoint_in_use_is_refused(tmp_path):
    problem = Problem(*rows(), 3.0)
    (tmp_path / "link").symlink_to(tmp_path / "c")

    def meanwhile(info):
        with pytest.raises(ValueError, match="is being written by"):
            solve(problem, DCD(), checkpoint=tmp_path / "link")

    solve(
        problem, DCD(), checkpoint=tmp_path / "c", on_epoch=meanwhile, max_iter=2
    )  # fmt: skip


def test_limits_may_change_and_all_else_may_not(tmp_path):
    X, y = rows()
    problem = Problem(X, y, 3.0)
    call = {"tol": 1e-8, "checkpoint": tmp_path / "c", "checkpoint_every": 1e-9}
    solve(problem, DCD(), max_iter=5, **call)
    more = solve(problem, DCD(), max_iter=50, **call)
    same(more, solve(problem, DCD(), max_iter=50, tol=1e-8))
    other = y.copy()
    other[0] = -y[0]
    changed = X.copy()
    changed.data[17] += 1e-9
    for problem_, solver, change, message in (
        (Problem(X, other, 3.0), DCD(), {}, "a fit of other data"),
        (Problem(changed, y, 3.0), DCD(), {}, "a fit of other data"),
        (Problem(X, y, 3.5), DCD(), {}, "a fit of other data"),
        (problem, DCD(shrinking="none"), {}, r"of solver=\"DCD\(shrinking='sleep'"),
        (problem, DCD(), {"random_state": 1}, "of random_state=0, this fit has"),
        (problem, DCD(), {"tol": 1e-3}, "of tol="),
        (problem, DCD(), {"atol": 1e-3}, "of atol="),
        (problem, SDCA(), {}, "solver="),
    ):
        with pytest.raises(ValueError, match=message) as error:
            solve(problem_, solver, **(call | change))
        assert "remove the file to start over" in str(error.value)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    problem = Problem(*rows(), 3.0)
    call = {"checkpoint": tmp_path / "c", "checkpoint_every": 1e-9, "tol": 1e-9}
    solve(problem, DCD(), max_iter=3, **call)
    content = (tmp_path / "c").read_bytes()
    for place in (20, len(content) // 2, len(content) - 5):
        damaged = bytearray(content)
        damaged[place] ^= 1
        (tmp_path / "c").write_bytes(damaged)
        with pytest.raises(ValueError, match="remove the file to start over"):
            solve(problem, DCD(), **call)
    (tmp_path / "c").write_bytes(content[:-1])
    with pytest.raises(ValueError, match="remove the file to start over"):
        solve(problem, DCD(), **call)


def test_what_cannot_be_done_is_said_before_any_work(tmp_path):
    problem = Problem(*rows(), 3.0)
    for name in sorted(SOLVERS):
        if not SOLVERS[name].resumes:
            with pytest.raises(ValueError, match=r"cannot write checkpoints.*'dcd'"):
                solve(problem, get_solver(name), checkpoint=tmp_path / "c")
    with pytest.raises(ValueError, match="checkpoint_every=0"):
        solve(problem, DCD(), checkpoint=tmp_path / "c", checkpoint_every=0)
    with pytest.raises(FileNotFoundError, match="create it first"):
        solve(problem, DCD(), checkpoint=tmp_path / "none" / "c")
    with pytest.raises(ValueError, match="needs an integer random_state"):
        LinearSVC(random_state=None, checkpoint=tmp_path / "c").fit(*rows())
    assert os.listdir(tmp_path) == []


def test_the_estimator_has_a_file_per_class(tmp_path):
    X, _ = rows()
    y = np.arange(N) % 3
    call = {"tol": 1e-3, "random_state": 0, "max_iter": 30, "solver": "dcd"}
    whole = LinearSVC(**call, C=0.1).fit(X, y)
    path = str(tmp_path / "c")
    model = LinearSVC(**call, C=0.1, checkpoint=path, checkpoint_every=1e-9)

    def killed(label, info):
        if label == 1 and info.epoch == 3:
            raise KilledError

    with pytest.raises(KilledError):
        model._fit(X, y, on_epoch=killed)
    assert sorted(os.listdir(tmp_path)) == ["c.0", "c.1"]
    model.fit(X, y)
    assert np.array_equal(model.coef_, whole.coef_)
    assert np.array_equal(model.dual_coef_, whole.dual_coef_)
    one = LinearSVC(**call, C=0.1, checkpoint=tmp_path / "one", checkpoint_every=1e-9)
    one.fit(X, y > 0)
    assert (tmp_path / "one").exists()


def test_seconds_add_up(tmp_path):
    problem = Problem(*rows(), 3.0)
    call = {"checkpoint": tmp_path / "c", "checkpoint_every": 1e-9, "tol": 1e-10}
    first = solve(problem, DCD(), max_iter=10, **call).history["seconds"]
    both = solve(problem, DCD(), max_iter=11, **call).history["seconds"]
    np.testing.assert_array_equal(both[:10], first[:10])
    assert both[10] >= both[9]


KILLED = """
import sys
import numpy as np
from dualgap import LinearSVC
from dualgap.data import RowStore
store = RowStore.open(sys.argv[1], buffer=150_000)
data = (store,) if sys.argv[4] == "streamed" else (store.matrix(), store.y)
model = LinearSVC(
    C=30.0, tol=1e-9, max_iter=int(sys.argv[5]), random_state=0, solver="dcd",
    checkpoint=sys.argv[2], checkpoint_every=0.02,
)
import warnings
warnings.simplefilter("ignore")
model.fit(*data)
np.save(sys.argv[3], model.coef_)
"""


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
@pytest.mark.parametrize(("kind", "epochs"), [("streamed", 30), ("memory", 1500)])
def test_killed_at_any_moment_it_ends_with_the_same_bits(tmp_path, store, kind, epochs):
    def command(name):
        return [
            sys.executable, "-c", KILLED, store.path, tmp_path / name,
            tmp_path / f"{name}.npy", kind, str(epochs),
        ]  # fmt: skip

    subprocess.run(command("whole"), check=True)
    moments, file = random.Random(1), tmp_path / "killed"
    for _ in range(4):  # each at some moment after it has come further
        before = file.stat().st_mtime_ns if file.exists() else 0
        process = subprocess.Popen(command("killed"))
        while process.poll() is None and (
            not file.exists() or file.stat().st_mtime_ns == before
        ):
            time.sleep(0.001)
        time.sleep(0.1 * moments.random())
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert file.exists()
    subprocess.run(command("killed"), check=True)
    whole, found = (np.load(tmp_path / f"{name}.npy") for name in ("whole", "killed"))
    assert np.array_equal(whole, found)


def test_the_file_is_plain_safetensors(tmp_path):
    safetensors = pytest.importorskip("safetensors")
    problem = Problem(*rows(), 3.0)
    solve(problem, DCD(), checkpoint=tmp_path / "c", checkpoint_every=1e-9, max_iter=3)
    with safetensors.safe_open(tmp_path / "c", framework="numpy") as file:
        record = json.loads(file.metadata()["dualgap"])
        assert record["format"] == "dualgap-checkpoint"
        assert file.get_tensor("solver.alpha").shape == (N,)

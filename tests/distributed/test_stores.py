"""Row stores as pieces: opened where they are used, never sent, proved from outside."""

from __future__ import annotations

import copy
import itertools
import mmap
import os
import pickle
import signal
import socket

import dask
import numpy as np
import pytest
from scipy import sparse

import dualgap
from dualgap.data import RowStore, convert
from dualgap.distributed import ClusterError, LinearSVC
from dualgap.distributed.cluster import Cluster
from dualgap.distributed.piece import Piece
from dualgap.distributed.stores import StorePart, locate, part_of, parts_of
from dualgap.distributed.stores import see as seen_by

from .conftest import cluster, kill_home_of
from .test_dask import TOL, check, svc

pytestmark = pytest.mark.long

N, D = 600, 12


def rows(seed=0, n=N, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) * (rng.random((n, D)) < 0.5)
    score = X @ np.arange(1.0, D + 1) / D + 0.5 * rng.normal(size=n)
    return X, (score > 0).astype(int) if classes == 2 else np.digitize(score, [-1, 1])


def write(folder, X, y, weight=None, K=3, **options):
    """K stores of consecutive rows."""
    edges = np.linspace(0, len(y), K + 1).astype(int)
    paths = []
    for k in range(K):
        part = slice(edges[k], edges[k + 1])
        batch = (
            (X[part], y[part]) if weight is None else (X[part], y[part], weight[part])
        )
        paths.append(folder / f"rows-{k}")
        convert([batch], paths[-1], seed=k, **options)
    return paths


def together(paths):
    """All rows, labels and weights, in the order of the pieces."""
    stores = [RowStore.open(path) for path in paths]
    X = [store.matrix() for store in stores]
    X = sparse.vstack(X, "csr") if sparse.issparse(X[0]) else np.concatenate(X)
    weight = None
    if stores[0].has_weights:
        weight = np.concatenate([store.sample_weight for store in stores])
    return X, np.concatenate([store.y for store in stores]), weight


@pytest.mark.parametrize("dense", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_a_set_of_stores_is_the_problem_of_their_rows(
    client, tmp_path, dense, weighted
):
    X, y = rows()
    X = X.astype(np.float32) if dense else sparse.csr_matrix(X)
    weight = np.random.default_rng(1).integers(0, 3, N) * 0.5 if weighted else None
    paths = write(tmp_path, X, y, weight)
    model = svc(client, class_weight={1: 2.0}).fit(paths)
    X, y, weight = together(paths)
    check(model, X, y, weight)
    assert model.n_pieces_ == 3
    # The same bits as of the same rows in memory.
    edges = np.linspace(0, N, 4).astype(int)
    pieces = [
        (X[a:b], y[a:b]) if weight is None else (X[a:b], y[a:b], weight[a:b])
        for a, b in itertools.pairwise(edges)
    ]
    again = svc(client, class_weight={1: 2.0}).fit(pieces)
    assert np.array_equal(model.coef_, again.coef_)
    assert np.array_equal(model.dual_coef_, again.dual_coef_)
    if weighted:
        return
    stores = [str(paths[0]), *map(RowStore.open, paths[1:])]
    again = svc(client, class_weight={1: 2.0}).fit(stores)
    assert np.array_equal(model.coef_, again.coef_)


@pytest.mark.parametrize("dense", [True, False])
def test_one_store_is_cut_into_pieces(client, tmp_path, dense):
    X, y = rows(classes=3)
    (path,) = write(tmp_path, X if dense else sparse.csr_matrix(X), y, np.ones(N), K=1)
    store = RowStore.open(path)
    model = svc(client, n_pieces=4).fit(store)
    assert model.n_pieces_ == 4
    X, y, weight = together([path])
    check(model, X, y, weight)
    # A worker may also open it by itself.
    opened = dask.delayed(RowStore.open)(str(path))
    whole = svc(client).fit([opened])
    assert np.array_equal(whole.coef_, svc(client).fit([path]).coef_)


@pytest.mark.parametrize("classes", [2, 3])
def test_stores_are_scored_and_classified_where_they_are(client, tmp_path, classes):
    X, y = rows(classes=classes)
    weight = np.random.default_rng(1).uniform(0, 2, N)
    paths = write(tmp_path, sparse.csr_matrix(X), y, weight)
    model = svc(client).fit(paths)
    X, y, weight = together(paths)
    alone = dualgap.LinearSVC()
    for name in ("coef_", "intercept_", "classes_", "n_features_in_"):
        setattr(alone, name, getattr(model, name))
    stores = [RowStore.open(path) for path in paths]
    for given in (paths, stores):
        scores = model.decision_function(given)
        assert hasattr(scores, "compute")
        assert np.allclose(
            scores.compute(), alone.decision_function(X), rtol=1e-12, atol=1e-12
        )
        assert np.array_equal(model.predict(given).compute(), alone.predict(X))
        expected = alone.score(X, y, weight)
        assert model.score(given) == pytest.approx(expected, rel=1e-12)
    first = model.predict(stores[0])
    assert first.shape == (len(stores[0]),)
    assert np.array_equal(first.compute(), alone.predict(stores[0]))


def test_rows_stay_in_their_files(tmp_path):
    """Pieces are mapped, weigh little, and what is sent of them is a path."""
    X, y = rows(n=5000)
    for dense in (True, False):
        folder = tmp_path / str(dense)
        folder.mkdir()
        (path,) = write(folder, X if dense else sparse.csr_matrix(X), y, K=1)
        store = RowStore.open(path)
        for part in (part_of(path), *parts_of(store, 3)):
            piece = Piece.of(part, 0)
            for array in (piece.X,) if dense else (piece.X.data, piece.X.indices):
                assert isinstance(root_of(array), mmap.mmap)
            start, stop = part.start, len(store) if part.stop is None else part.stop
            batch = store.rows(start, stop)
            assert abs(batch.X - piece.X).max() == 0
            assert np.array_equal(batch.y, piece.y)
            assert piece.__sizeof__() < 5000 * 8 + 200
            assert len(pickle.dumps(piece)) < 1000
            again = copy.copy(piece)
            assert abs(again.X - piece.X).max() == 0
            assert np.array_equal(again.y, piece.y)


def root_of(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no signal to kill with")
def test_a_killed_workers_stores_are_opened_again(tmp_path, disturb):
    X, y = rows()
    paths = write(tmp_path, sparse.csr_matrix(X), y, K=4)
    disturb({6: kill_home_of(1)})
    with cluster(2) as client:
        model = LinearSVC(0.05, client=client, tol=1e-3, keep_duals=True, safe_every=3)
        model.fit(paths)
    assert model.recoveries_ >= 1
    X, y, _ = together(paths)
    check(model, X, y, tol=1e-3)


def test_a_store_that_one_host_alone_has_is_opened_there(tmp_path, monkeypatch):
    """Two hosts, of which one has the stores; its worker dies and is started again."""
    from distributed import Client, Nanny, Scheduler, SpecCluster

    try:
        with socket.socket() as probe:
            probe.bind(("127.0.0.2", 0))
    except OSError:
        pytest.skip("one loopback address only")
    hidden = tmp_path / "rows-0"

    def hide():
        """Make the store's folder absent for this process."""
        from dualgap.data.store import RowStore

        there = RowStore.open

        def absent(path, **options):
            if os.fsdecode(path) == str(hidden):
                raise FileNotFoundError(2, "No such file or directory", str(path))
            return there(path, **options)

        RowStore.open = absent

    X, y = rows()
    paths = write(tmp_path, sparse.csr_matrix(X), y, K=2)
    options = {"nthreads": 1, "dashboard_address": ":0"}
    workers = {
        k: {"cls": Nanny, "options": options | {"host": f"127.0.0.{k + 1}"}}
        for k in range(2)
    }
    scheduler = {"cls": Scheduler, "options": {"dashboard_address": ":0"}}
    with SpecCluster(workers, scheduler) as local, Client(local) as client:
        client.wait_for_workers(2)
        (blind,) = [a for a in client.nthreads() if "127.0.0.1" in a]
        client.run(hide, workers=[blind])
        parts = seen_by(client, [part_of(path) for path in paths])
        assert [hosts for _, hosts in parts] == [{"127.0.0.2"}, None]
        play, plays = Cluster._play, []

        def kill(self, tasks):
            plays.append(self.homes[0])
            if len(plays) == 6:
                kill_home_of(0)(self)
            return play(self, tasks)

        monkeypatch.setattr(Cluster, "_play", kill)
        model = LinearSVC(0.05, client=client, tol=1e-3, keep_duals=True).fit(paths)
        assert model.recoveries_ >= 1
        assert all("127.0.0.2" in home for home in plays)
        assert len(set(plays)) == 2
        X, y, _ = together(paths)
        check(model, X, y, tol=1e-3)
        score = model.score(paths)
    assert score == pytest.approx(model.score(X, y), rel=1e-12)


def test_a_store_whose_host_is_gone_is_one_clear_error():
    engine = Cluster.__new__(Cluster)
    engine.hosts = {0: {"10.0.0.7"}}
    engine._check_stores_are_seen(["tcp://10.0.0.7:4000", "tcp://10.0.0.8:4000"])
    with pytest.raises(ClusterError, match=r"piece 0 .* only 10\.0\.0\.7 can open"):
        engine._check_stores_are_seen(["tcp://10.0.0.8:4000"])


def test_who_sees_which_store():
    part, one = StorePart("/rows"), {"/rows": ("abc", "")}
    other, none = {"/rows": ("xyz", "")}, {"/rows": ("", "no such folder")}
    ((found, there),) = locate([part], {"a": one, "b": none, "c": one})
    assert (found.fingerprint, there) == ("abc", {"a", "c"})
    with pytest.raises(ValueError, match=r"worker b differs from .* on worker a"):
        locate([part], {"a": one, "b": other})
    with pytest.raises(ValueError, match=r"on worker b differs from the one here"):
        locate([StorePart("/rows", fingerprint="abc")], {"a": one, "b": other})
    with pytest.raises(ValueError, match=r"no worker can open .*no such folder"):
        locate([part], {"a": none})


def test_stores_that_do_not_fit_together_are_refused(client, tmp_path):
    X, y = rows()
    first, second = write(tmp_path, sparse.csr_matrix(X), y, K=2)

    def refused(message, *given, **arguments):
        with pytest.raises(ValueError, match=message):
            svc(client).fit(list(given), **arguments)

    refused(r"no worker can open the store .*nowhere", first, tmp_path / "nowhere")
    refused("is not a row store", tmp_path)
    refused("own labels and weights", first, y=y)
    with pytest.raises(ValueError, match="own labels and weights"):
        svc(client).fit(RowStore.open(first), None, np.ones(300))
    narrow = convert([(X[:, :5], y)], tmp_path / "narrow").path
    refused(r"5 to 12 columns \(.*narrow and .*n_features=12", first, narrow)
    signs = convert([(X, np.where(y, 1, -1))], tmp_path / "signs").path
    refused("-1 and 1 in .*signs, but 0 and 1 in .*rows-0", first, signs)
    real = convert([(X, y + 0.25 * X[:, 0])], tmp_path / "real").path
    refused("Unknown label type", first, real)
    text = tmp_path / "text"
    text.write_text("1 1:0.5 12:1\n0 2:1\n")
    one_based = convert(text, tmp_path / "one-based").path
    refused("feature 0 in .*rows-0, but feature 1 in .*one-based", first, one_based)
    # A damaged file of the store is found when it is opened.
    os.truncate(second / "values.npy", 8)
    refused(r"values\.npy has 8 bytes", first, second)
    model = svc(client).fit([first])
    with pytest.raises(ValueError, match="5 features, but LinearSVC is expecting 12"):
        model.score([narrow])
    with pytest.raises(ValueError, match="own labels and weights"):
        model.score([first], y)
    assert model.certificate_.relative_gap <= TOL


def test_a_store_that_was_made_again_is_refused(tmp_path):
    X, y = rows()
    (path,) = write(tmp_path, X, y, K=1)
    piece = Piece.of(part_of(RowStore.open(path)), 0)
    sent = pickle.dumps(piece)
    (tmp_path / "new").mkdir()
    (new,) = write(tmp_path / "new", X + 1.0, y, K=1)
    path.rename(tmp_path / "old")
    new.rename(path)
    with pytest.raises(ValueError, match="another store than it was"):
        pickle.loads(sent)

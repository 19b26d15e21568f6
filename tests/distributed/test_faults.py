"""Fits survive dead and slow workers, a lost client and a lost scheduler.

Every fit here is disturbed at a round of its own choosing, by what a machine would do.
"""

from __future__ import annotations

import gc
import signal
import threading
import time
import warnings

import dask
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualgap.distributed import ClusterError, LinearSVC
from dualgap.distributed.cluster import Cluster, ClusterSettings

from .conftest import cluster, kill_home_of
from .test_dask import check

pytestmark = pytest.mark.long

TOL = 1e-4


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8))
    return X, np.where(X[:, 0] + 0.5 * rng.normal(size=400) > 0, 1, -1)


def svc(client, **options):
    return LinearSVC(
        0.1, loss="hinge", client=client, tol=TOL, keep_duals=True, **options
    )


def test_killed_workers_cost_rounds_and_never_the_truth(data, disturb, monkeypatch):
    """One before the first safe point, and another one after it."""
    ask, restored = Cluster._ask_all, []

    def noted(self, method, *args):
        if method == "recover":
            restored.append(args[-1])
        return ask(self, method, *args)

    monkeypatch.setattr(Cluster, "_ask_all", noted)
    with cluster(3) as client:
        plan = disturb({5: kill_home_of(1), 25: kill_home_of(0)})
        model = svc(client, safe_every=10, n_pieces=4).fit(*data)
        assert not plan
        assert model.recoveries_ >= 2
        assert model.rounds_["lost"].sum() >= 2
        assert restored[0] == [None] * 4
        assert None not in restored[-1]  # duals of the safe point
        check(model, *data, tol=TOL)
        # The same as without: it is the same optimum.
        calm = svc(client, n_pieces=4).fit(*data)
        assert calm.recoveries_ == 0
        check(calm, *data, tol=TOL)
        primal, dual = model.certificate_.primal, calm.certificate_.dual
        assert primal <= dual * (1 + 3 * TOL)


def test_a_worker_killed_between_the_rounds_of_a_proof(data, monkeypatch):
    """The sum of w is of other duals than those that come back."""
    with cluster(2) as client:
        killed = []

        def at_the_evaluation(self, tasks):
            kinds = {task.kind for task in tasks.values()}
            if kinds == {"evaluate"} and not killed:
                killed.append(True)
                kill_home_of(0)(self)
            return play(self, tasks)

        play = Cluster._play
        monkeypatch.setattr(Cluster, "_play", at_the_evaluation)
        model = svc(client, safe_every=10).fit(*data)
        assert killed
        assert model.recoveries_ >= 1
        check(model, *data, tol=TOL)


def test_a_slow_worker_does_not_stall_the_round(data, disturb, monkeypatch):
    monkeypatch.setattr(Cluster, "settings", ClusterSettings(least_patience=1.0))
    with cluster(2) as client:

        def slow_down(engine):
            slow = engine.rounds

            def sleep_in_one_round():
                from time import sleep

                from dualgap.distributed.piece import Piece

                quick = Piece._take_part

                def take_part(self, setup, order, points):
                    if order.round == slow:
                        sleep(10.0)
                    return quick(self, setup, order, points)

                Piece._take_part = take_part

            client.run(sleep_in_one_round, workers=[engine.homes[1]])

        disturb({6: slow_down})
        model = svc(client, patience=1.5).fit(*data)
        assert model.rounds_["late"].max() == 1
        assert model.recoveries_ == 0
        check(model, *data, tol=TOL)


@pytest.mark.filterwarnings("ignore:Client .* desires key")
def test_the_client_comes_back(data, disturb):
    with cluster(2) as client:

        def cut_off(engine):
            comm = client.scheduler_comm.comm
            client.loop.add_callback(comm.abort)
            time.sleep(0.3)

        plan = disturb({8: cut_off})
        model = svc(client).fit(*data)
        assert not plan
        check(model, *data, tol=TOL)


@pytest.mark.filterwarnings("ignore")  # what Dask says when its scheduler is gone
def test_a_lost_scheduler_is_one_clear_error(data, disturb):
    with dask.config.set({"distributed.comm.timeouts.connect": "10s"}):
        local = cluster(2)
        client = local.__enter__()

        def lose(engine):
            nodes = engine.client.cluster
            nodes.sync(nodes.scheduler.close)

        disturb({6: lose})
        with pytest.raises(ClusterError, match=r"scheduler|cluster"):
            svc(client).fit(*data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.close()
            client.cluster.close()
            # Sockets that nobody closed are found here, and not in the next test.
            del local, client
            gc.collect()


def test_ctrl_c_keeps_the_best_model(client, data, disturb):
    disturb({7: lambda engine: signal.raise_signal(signal.SIGINT)})
    model = LinearSVC(client=client, tol=1e-13)
    with pytest.warns(ConvergenceWarning, match="Stopped by Ctrl-C"):
        model.fit(*data)
    assert model.certificate_.status.label == "interrupted"
    assert model.certificate_.relative_gap < 1.0


def in_time(engine):
    """Workers know how much time is left to the fit."""
    engine.deadline = time.monotonic() + 2.0  # all passes would take minutes


def by_ctrl_c(engine):
    threading.Timer(1.0, signal.raise_signal, (signal.SIGINT,)).start()


@pytest.mark.parametrize(
    ("end", "told"), [(by_ctrl_c, "Stopped by Ctrl-C"), (in_time, "Not converged")]
)
def test_a_round_of_many_passes_ends_early_on_every_worker(client, disturb, end, told):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 30))
    y = np.where(X[:, 0] + rng.normal(size=20_000) > 0, 1, -1)
    disturb({1: end})
    limits = {"max_rounds": 2} if end is in_time else {}
    model = LinearSVC(10.0, client=client, tol=1e-13, local_epochs=100_000, **limits)
    with pytest.warns(ConvergenceWarning, match=told):
        model.fit(X, y)
    assert model.n_iter_ <= 3
    # What was done, and not what was asked for: that would take minutes.
    assert 1 <= model.rounds_["local_epochs"].max() < 100_000


@pytest.mark.filterwarnings("ignore:Client .* desires key")
def test_data_that_only_a_dead_worker_had_are_one_clear_error(data, disturb):
    X, y = data
    with cluster(2) as client:
        one, other = sorted(client.nthreads())
        pieces = [
            (client.scatter(X[:200], workers=[one]), client.scatter(y[:200])),
            (client.scatter(X[200:], workers=[other]), client.scatter(y[200:])),
        ]
        disturb({6: kill_home_of(0)})
        with pytest.raises(ClusterError, match="data"):
            svc(client).fit(pieces)

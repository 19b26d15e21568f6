"""A cluster for the tests of this folder: of processes, or of threads where fast."""

from __future__ import annotations

import contextlib
import os
import signal

import pytest

from dualgap.distributed.cluster import Cluster

KILL = getattr(signal, "SIGKILL", signal.SIGTERM)  # Windows has none


@contextlib.contextmanager
def cluster(workers, **options):
    """A client of a LocalCluster of so many workers, each a process."""
    from distributed import Client, LocalCluster

    options = {"processes": True, "threads_per_worker": 1} | options
    with (
        LocalCluster(n_workers=workers, dashboard_address=":0", **options) as local,
        Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="package")
def client(pytestconfig):
    """Three workers that no test may harm.

    The fast suite has them in its own process, for four processes and their imports
    take longer than its tests of them.
    """
    with cluster(3, processes=pytestconfig.getoption("all")) as client:
        yield client


@pytest.fixture
def disturb(monkeypatch):
    """Call a function before some plays of a fit: disturb({play: function})."""

    def arrange(plan):
        play, plays = Cluster._play, [0]

        def disturbed(self, tasks):
            plays[0] += 1
            if plays[0] in plan:
                plan.pop(plays[0])(self)
            return play(self, tasks)

        monkeypatch.setattr(Cluster, "_play", disturbed)
        return plan

    return arrange


def kill_home_of(piece):
    """Return what kills the worker that has a piece."""

    def kill(engine):
        home = engine.homes[piece]
        os.kill(engine.client.run(os.getpid, workers=[home])[home], KILL)

    return kill

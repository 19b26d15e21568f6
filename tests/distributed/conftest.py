"""A cluster for the tests of this folder: of processes, or of threads where fast."""

from __future__ import annotations

import contextlib

import pytest


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

"""A cluster of processes for the tests of this folder."""

from __future__ import annotations

import contextlib

import pytest


@contextlib.contextmanager
def cluster(workers, **options):
    """A client of a LocalCluster of so many processes."""
    from distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": ":0"} | options
    with (
        LocalCluster(n_workers=workers, processes=True, **options) as local,
        Client(local) as client,
    ):
        yield client


@pytest.fixture(scope="package")
def client():
    """Three workers that no test may harm."""
    with cluster(3) as client:
        yield client

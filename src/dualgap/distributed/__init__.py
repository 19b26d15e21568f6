"""Distributed fits with the same certificate, over rows on many machines.

They need the extra ``dask``: ``pip install 'dualgap[dask]'``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .cluster import ClusterError
    from .cocoa import CoCoA
    from .linear_svc import DistributedLinearSVC as LinearSVC

__all__ = ["ClusterError", "CoCoA", "LinearSVC"]

_HOMES = {"ClusterError": "cluster", "CoCoA": "cocoa", "LinearSVC": "linear_svc"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        if name != "CoCoA":
            import_module("distributed")
    except ImportError as error:
        raise ImportError(
            f"dualgap.distributed.{name} needs Dask: pip install 'dualgap[dask]'"
        ) from error
    home = import_module(f".{_HOMES[name]}", __name__)
    return getattr(home, {"LinearSVC": "DistributedLinearSVC"}.get(name, name))

"""Distributed fits with the same certificate, over rows on many machines.

They need the extra ``dask``: ``pip install 'dualgap[dask]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .cluster import ClusterError
    from .cocoa import CoCoA
    from .linear_svc import DistributedLinearSVC as LinearSVC

__all__ = ["ClusterError", "CoCoA", "LinearSVC"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "CoCoA":
        from .cocoa import CoCoA

        return CoCoA
    try:
        import distributed  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"dualgap.distributed.{name} needs Dask: pip install 'dualgap[dask]'"
        ) from error
    if name == "ClusterError":
        from .cluster import ClusterError

        return ClusterError
    from .linear_svc import DistributedLinearSVC

    return DistributedLinearSVC

"""Distributed fits with the same certificate, over rows on many machines.

They need the extra ``dask``: ``pip install 'dualgap[dask]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..estimators.distributed import DistributedLinearSVC as LinearSVC
    from .cluster import ClusterError
    from .cocoa import CoCoA

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
    # The estimator is defined in dualgap.estimators; this is its public name.
    from ..estimators.distributed import DistributedLinearSVC

    return DistributedLinearSVC

"""Solvers of kernel problems, and the Nystroem approximation."""

from __future__ import annotations

from ..registry import solvers_of
from .auto import Auto
from .base import KernelSolver, KernelState
from .block import BlockSolver
from .core_vector import CoreVector
from .frank_wolfe import FW, MDM, MFW, SWAP, SWAP2o
from .nystroem import Nystroem
from .pegasos import KernelPegasos

KERNEL_SOLVERS: dict[str, type[KernelSolver]] = {
    name: solver
    for name, solver in solvers_of("kernel").items()
    if issubclass(solver, KernelSolver)
}

#: Approximations that SVC accepts besides the solvers. They pose a linear problem.
APPROXIMATIONS: dict[str, type[Nystroem]] = {Nystroem.name: Nystroem}


def get_kernel_solver(
    solver: str | KernelSolver | Nystroem,
) -> KernelSolver | Nystroem:
    """Return the record of a kernel solver or approximation.

    "auto" is the block solver for both losses and every kernel. Of the other kernel
    solvers, only ``block`` and ``kernel-pegasos`` can train the hinge.

    Parameters
    ----------
    solver : str, KernelSolver or Nystroem
        A name, or a record, which is returned as it is.

    Returns
    -------
    KernelSolver or Nystroem

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(solver, (KernelSolver, Nystroem)):
        return solver
    try:
        return (KERNEL_SOLVERS | APPROXIMATIONS)[solver]()
    except (KeyError, TypeError):
        known = ", ".join(map(repr, KERNEL_SOLVERS | APPROXIMATIONS))
        raise ValueError(
            f"solver={solver!r} is unknown; use one of {known} or a record such as "
            "SWAP2o(ranking='paper')"
        ) from None


__all__ = [
    "APPROXIMATIONS",
    "FW",
    "KERNEL_SOLVERS",
    "MDM",
    "MFW",
    "SWAP",
    "Auto",
    "BlockSolver",
    "CoreVector",
    "KernelPegasos",
    "KernelSolver",
    "KernelState",
    "Nystroem",
    "SWAP2o",
    "get_kernel_solver",
]

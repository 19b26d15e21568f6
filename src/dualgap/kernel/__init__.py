"""Public names of kernel SVMs: kernel functions, problems and solvers."""

from __future__ import annotations

from functools import cache

from ..kernels.functions import (
    RBF,
    Callable,
    Kernel,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from ..kernels.gram import Gram
from ..problems.kernel import KernelProblem
from ..problems.kernel_boxes import KernelOneClass, KernelRegression, KernelSimplex
from ..solvers.base import solvers_of
from ..solvers.kernel.auto import KernelAuto
from ..solvers.kernel.base import KernelSolver, KernelState
from ..solvers.kernel.block import BlockSolver
from ..solvers.kernel.nystroem import Nystroem
from ..solvers.papers.core_vector import CoreVector
from ..solvers.papers.frank_wolfe import FW, MDM, MFW, SWAP, SWAP2o
from ..solvers.papers.kernel_pegasos import KernelPegasos

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
        return _by_name(solver)
    except (KeyError, TypeError):
        known = ", ".join(map(repr, KERNEL_SOLVERS | APPROXIMATIONS))
        raise ValueError(
            f"solver={solver!r} is unknown; use one of {known} or a record such as "
            "SWAP2o(ranking='paper')"
        ) from None


@cache
def _by_name(name: str) -> KernelSolver | Nystroem:
    return (KERNEL_SOLVERS | APPROXIMATIONS)[name]()


__all__ = [
    "APPROXIMATIONS",
    "FW",
    "KERNEL_SOLVERS",
    "MDM",
    "MFW",
    "RBF",
    "SWAP",
    "BlockSolver",
    "Callable",
    "CoreVector",
    "Gram",
    "Kernel",
    "KernelAuto",
    "KernelOneClass",
    "KernelPegasos",
    "KernelProblem",
    "KernelRegression",
    "KernelSimplex",
    "KernelSolver",
    "KernelState",
    "Laplacian",
    "Linear",
    "Nystroem",
    "Polynomial",
    "Precomputed",
    "SWAP2o",
    "Sigmoid",
    "get_kernel_solver",
]

"""Public names of kernel SVMs: kernel functions, problems and solvers."""

from __future__ import annotations

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
from ..solvers.kernel import (
    APPROXIMATIONS,
    FW,
    KERNEL_SOLVERS,
    MDM,
    MFW,
    SWAP,
    Auto,
    BlockSolver,
    CoreVector,
    KernelPegasos,
    KernelSolver,
    KernelState,
    Nystroem,
    SWAP2o,
    get_kernel_solver,
)

__all__ = [
    "APPROXIMATIONS",
    "FW",
    "KERNEL_SOLVERS",
    "MDM",
    "MFW",
    "RBF",
    "SWAP",
    "Auto",
    "BlockSolver",
    "Callable",
    "CoreVector",
    "Gram",
    "Kernel",
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

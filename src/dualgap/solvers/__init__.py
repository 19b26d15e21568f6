"""The register of solvers, and the `auto` choice."""

from __future__ import annotations

from .auto import Auto
from .base import Solver, State
from .crammer_singer import SequentialDual
from .cutting_planes import OCAS, CuttingPlane
from .dcd import DCD
from .interior_point import InteriorPoint
from .mpu import MPU
from .norma import NORMA
from .pegasos import Pegasos
from .sdca import SDCA
from .sgd import SGDm, SGDr, SGDs
from .sgd_qn import SGDQN
from .smoothing_newton import SmoothingNewton
from .svmsgd import SvmSGD

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        *(Auto, DCD, SDCA, SGDs, SGDm, SGDr, Pegasos, NORMA, SvmSGD),
        *(CuttingPlane, OCAS, MPU, SGDQN, InteriorPoint, SmoothingNewton),
    )
}


def get_solver(solver: str | Solver) -> Solver:
    """The record of a solver given by name or as a record.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(solver, Solver):
        return solver
    try:
        return SOLVERS[solver]()
    except (KeyError, TypeError):
        known = ", ".join(map(repr, SOLVERS))
        raise ValueError(
            f"solver={solver!r} is unknown; use one of {known} or a record such as "
            "SDCA(order='random')"
        ) from None


__all__ = [
    "DCD",
    "MPU",
    "NORMA",
    "OCAS",
    "SDCA",
    "SGDQN",
    "SOLVERS",
    "Auto",
    "CuttingPlane",
    "InteriorPoint",
    "Pegasos",
    "SGDm",
    "SGDr",
    "SGDs",
    "SequentialDual",
    "SmoothingNewton",
    "Solver",
    "State",
    "SvmSGD",
    "get_solver",
]

"""The register of solvers, and the `auto` choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from .base import Solver, State
from .cutting_planes import OCAS, CuttingPlane
from .dcd import DCD
from .interior_point import InteriorPoint
from .mpu import MPU
from .norma import NORMA
from .pegasos import Pegasos
from .sdca import SDCA
from .sgd import SGDm, SGDr, SGDs
from .sgd_qn import SGDQN
from .svmsgd import SvmSGD


@dataclass(frozen=True)
class Auto(DCD):
    """The fastest certified solver for the problem at hand: DCD.

    Problems of a few thousand stored entries cost less to solve to rounding level
    than to set up, so `tol` may end the fit only after `free_work` entries are read:
    small models do not depend on the order of their rows.
    """

    name: ClassVar[str] = "auto"
    free_work: ClassVar[float] = 2e6


SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        *(Auto, DCD, SDCA, SGDs, SGDm, SGDr, Pegasos, NORMA, SvmSGD),
        *(CuttingPlane, OCAS, MPU, SGDQN, InteriorPoint),
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
    "Solver",
    "State",
    "SvmSGD",
    "get_solver",
]

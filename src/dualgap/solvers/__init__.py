"""Solvers of linear problems, and the registry of all solvers."""

from __future__ import annotations

from .auto import Auto
from .base import Solver, State
from .crammer_singer import SequentialDual
from .cutting_planes import OCAS, CuttingPlane
from .dcd import DCD
from .interior_point import InteriorPoint
from .mpu import MPU
from .newton import ResidualNewton
from .norma import NORMA
from .pegasos import Pegasos
from .registry import get_solver, register, solver_for, solvers_of
from .regression import PairDescent, RegressionDCD
from .regression_interior import RegressionInterior
from .sdca import SDCA
from .sgd import SGDm, SGDr, SGDs
from .sgd_qn import SGDQN
from .smoothing_newton import SmoothingNewton
from .svmsgd import SvmSGD

SOLVERS = solvers_of("binary")

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
    "PairDescent",
    "Pegasos",
    "RegressionDCD",
    "RegressionInterior",
    "ResidualNewton",
    "SGDm",
    "SGDr",
    "SGDs",
    "SequentialDual",
    "SmoothingNewton",
    "Solver",
    "State",
    "SvmSGD",
    "get_solver",
    "register",
    "solver_for",
    "solvers_of",
]

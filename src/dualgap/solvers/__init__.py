"""Solvers of linear problems, and the registry of all solvers."""

from __future__ import annotations

from .auto import Auto
from .base import Solver, State, get_solver, register, solver_for, solvers_of
from .crammer_singer import SequentialDual
from .dcd import DCD
from .elastic_net import ProximalNewton
from .interior_point import InteriorPoint
from .logistic import LogisticNewton
from .logistic_dual import LogisticDCD
from .newton import ResidualNewton
from .papers.cutting_planes import OCAS, CuttingPlane
from .papers.mpu import MPU
from .papers.norma import NORMA
from .papers.pegasos import Pegasos
from .papers.sdca import SDCA
from .papers.sgd import SGDm, SGDr, SGDs
from .papers.sgd_qn import SGDQN
from .papers.svmsgd import SvmSGD
from .regression import PairDescent, RegressionDCD
from .regression_interior import OneClassInterior, RegressionInterior
from .smoothing_newton import SmoothingNewton
from .smoothing_regression import SmoothingRegression

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
    "LogisticDCD",
    "LogisticNewton",
    "OneClassInterior",
    "PairDescent",
    "Pegasos",
    "ProximalNewton",
    "RegressionDCD",
    "RegressionInterior",
    "ResidualNewton",
    "SGDm",
    "SGDr",
    "SGDs",
    "SequentialDual",
    "SmoothingNewton",
    "SmoothingRegression",
    "Solver",
    "State",
    "SvmSGD",
    "get_solver",
    "register",
    "solver_for",
    "solvers_of",
]

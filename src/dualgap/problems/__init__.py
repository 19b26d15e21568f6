"""Optimisation problems and the proofs of their certificates.

`base.py` defines the contract between problems, solvers and the training loop. Each
kind of problem has its own file.
"""

from __future__ import annotations

from .binary import BinaryProblem
from .one_class import OneClassProblem
from .regression import RegressionProblem

__all__ = ["BinaryProblem", "OneClassProblem", "RegressionProblem"]

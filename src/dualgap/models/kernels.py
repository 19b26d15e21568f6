"""Certificates of kernel models from anywhere."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable
from dataclasses import replace

from sklearn.base import BaseEstimator

from ..certificate import Certificate
from ..estimators.fitted import FittedProblem
from ..kernel import BlockSolver, KernelPegasos, KernelProblem, KernelSolver
from ..problems.reductions import certificate_of
from .single_problems import ProofLimits, sharpened


def certify_kernel(
    model: BaseEstimator, problems: Iterable[FittedProblem], limits: ProofLimits
) -> Certificate:
    """Certify a kernel model from its dual variables, or a fit that starts there."""
    parts = []
    for one in problems:
        alpha = one.alpha
        proof = one.certificate().with_dual_of(one.problem.certify(alpha))
        solver = _solver_of(one.problem)
        if solver is not None:
            warm = alpha if solver.dual else None
            proof = sharpened(proof, one.problem, solver, limits, warm)
        parts.append(replace(proof, tol=math.nan))
    return certificate_of(model, parts)


def _solver_of(problem: KernelProblem) -> KernelSolver | None:
    """Return a solver that can train a kernel problem; None if there is none."""
    for solver in (BlockSolver(), KernelPegasos()):
        with contextlib.suppress(ValueError):
            solver.check(problem)
            return solver
    return None

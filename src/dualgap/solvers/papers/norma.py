"""NORMA: naive online regularised risk minimisation, for a linear kernel.

Problem    min lambda/2 ||w||^2 + (1/n) sum_i max(0, 1 - y_i w.x_i), lambda = 1/(nC)
Update     w <- (1 - eta_t lambda) w + eta_t [y_i w.x_i < 1] y_i x_i,
           eta_t = p/(lambda sqrt(t))
Guarantee  O(1/(lambda sqrt(t))): expect a gap of 1e-1 to 1e-2
Cost       O(nnz of the row) per step; no coefficient is truncated
Source     Kivinen, Smola and Williamson 2004, as the Pegasos paper runs it
           (section 7.1): the best constant is p = 1/2 (2 + 1/2 T^(-1/2))^(1/2), in
           [0.7, 0.716] for every length T of the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ... import core
from ...checks import Fraction
from ...problems.binary import BinaryProblem
from ..base import register
from .stochastic_gradient import StochasticGradient


@register("binary")
@dataclass(frozen=True)
class NORMA(StochasticGradient):
    """NORMA of Kivinen et al. 2004.

    Parameters
    ----------
    p : float, default=0.7071
        Constant of the step size. The default is the best value for long runs,
        sqrt(2)/2.
    """

    p: Fraction = 0.5 * 2.0**0.5

    name: ClassVar[str] = "norma"
    schedule: ClassVar[core.Schedule] = core.Schedule.norma

    def eta0(self, problem: BinaryProblem, rng: core.Random) -> float:
        return self.p

"""Pegasos: primal estimated sub-gradient solver.

Problem    min lambda/2 ||w||^2 + (1/n) sum_i max(0, 1 - y_i w.x_i), lambda = 1/(nC)
Update     step t on k rows A, those with y_i w.x_i < 1 being A+:
             w <- (1 - 1/t) w + 1/(lambda t k) sum_{i in A+} y_i x_i
             w <- min(1, 1/(sqrt(lambda) ||w||)) w              (optional)
Guarantee  suboptimality O(log t/(lambda t)) in expectation, for the average and, with
           constant probability, for the last iterate (Theorems 1 to 3); no dependence
           on n
Cost       O(nnz of the k rows) per step through w = a v with ||w|| kept (section 2.3)
Source     Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Figs. 1
           and 2; first ICML 2007.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from .. import core
from ..problem import Problem
from .base import RowOrder, check_count, check_option
from .stochastic_gradient import StochasticGradient


@dataclass(frozen=True)
class Pegasos(StochasticGradient):
    """Pegasos of Shalev-Shwartz et al. 2007, 2011.

    Parameters
    ----------
    batch_size : int, default=1
        Rows k per step, from 1 (stochastic) to n (the deterministic sub-gradient
        method). The last batch of a pass may be shorter.
    projection : bool, default=False
        Project onto the ball that holds the optimum.
    sampling : {"permutation", "random"}, default="permutation"
        A new permutation every epoch, which the paper found faster, or the analysed
        independent draws. Either way n rows make an epoch.
    output : {"last", "average"}, default="last"
        Last iterate, or the average of all.
    """

    batch_size: int = 1
    projection: bool = False
    sampling: Literal["permutation", "random"] = "permutation"
    output: Literal["last", "average"] = "last"

    name: ClassVar[str] = "pegasos"
    schedule: ClassVar[Any] = core.Schedule.pegasos

    def __post_init__(self) -> None:
        check_count("batch_size", self.batch_size)
        check_option("projection", self.projection, (True, False))
        check_option("sampling", self.sampling, ("permutation", "random"))
        check_option("output", self.output, ("last", "average"))

    def check(self, problem: Problem) -> None:
        super().check(problem)
        if self.batch_size > problem.n:
            raise ValueError(
                f"batch_size={self.batch_size} is more than the {problem.n} rows; "
                f"give 1 to {problem.n}"
            )

    def options(self) -> tuple[RowOrder, int, bool, bool]:
        average = self.output == "average"
        return self.sampling, self.batch_size, self.projection, average

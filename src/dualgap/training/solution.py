"""The result of a fit: a solution, or several of a batch of problems."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from typing import cast, overload

import numpy as np
from numpy.typing import NDArray

from ..certificate import Bounds, Certificate, LazyParts, Status
from ..losses import Vector
from ..problems.duals import SparseDuals, StoredDuals, dense
from ..solvers.base import Whole
from .progress import HISTORY_DTYPE, solver_that_ran


@dataclass(frozen=True)
class Solution:
    """Result of a fit.

    Attributes
    ----------
    w : ndarray of shape (width,)
        The model; ``problem.coef(w)`` splits off the intercept. For a kernel problem,
        coefficients that need not be dual variables, which only `KernelPegasos`
        returns, else empty; ``problem.coef(coefficients)`` is the model.
    alpha : ndarray of shape (n,)
        A feasible dual point. For dual solvers ``w = sum alpha_i y_i x_i``; `DCD` with
        acceleration returns the best multiple of that sum. Where "newton" or
        "interior-point" ends a fit, ``1/2 ||w - w(alpha)||^2 <= P - D``.
    certificate : Certificate
        Certificate of exactly this w and alpha.
    bias : float or None
        Bias of a kernel or one-class model; None where w contains it.
    decisions : ndarray of shape (n,) or None
        Decisions at the training rows, for a kernel problem.
    history : structured ndarray
        One record per epoch, and one for a final exact pass, with the fields epoch,
        seconds, primal, dual, exact, updates, solver (the method that made the epoch)
        and predicted (the products with the data that "auto" still expects, else NaN).
    """

    w: Vector
    alpha: Vector
    certificate: Certificate
    bias: float | None = None
    decisions: Vector | None = None
    history: NDArray[np.void] = field(
        default_factory=lambda: np.empty(0, HISTORY_DTYPE)
    )

    @property
    def coefficients(self) -> Vector:
        """Coefficients of a kernel model, of shape (n,): w, or alpha if w is empty."""
        return self.w if self.w.size else self.alpha

    @property
    def model(self) -> Vector:
        """Model that callbacks receive: w, or the decisions of a kernel model."""
        return self.w if self.decisions is None else self.decisions


class Solutions(Sequence[Solution]):
    """Solutions of the problems of a batch.

    `names`: name of each problem. `stored`: the dual variables of many problems, whose
    solutions have empty ones.
    """

    def __init__(
        self,
        found: Sequence[Solution],
        names: Sequence[str],
        stored: Sequence[SparseDuals] = (),
    ) -> None:
        self._found, self.names, self._stored = found, names, stored

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[Solution]:
        if self._stored:
            return map(self.__getitem__, range(len(self)))
        return iter(self._found)

    @overload
    def __getitem__(self, k: int) -> Solution: ...
    @overload
    def __getitem__(self, k: slice) -> Solutions: ...
    def __getitem__(self, k: int | slice) -> Solution | Solutions:
        if isinstance(k, slice):
            chosen = range(len(self))[k]
            return Solutions([self[i] for i in chosen], self.names[k])
        found = self._found[k]
        return replace(found, alpha=self.alpha[k]) if self._stored else found

    @property
    def w(self) -> Sequence[Vector]:
        """The w of each problem."""
        return [solution.w for solution in self._found]

    @property
    def alpha(self) -> Sequence[Vector]:
        """The alpha of each problem."""
        if self._stored:
            return dense(self._stored)
        return [solution.alpha for solution in self._found]

    @property
    def duals(self) -> Sequence[StoredDuals]:
        """The alpha of each problem, as it is stored."""
        return self._stored or self.alpha

    def take_duals(self) -> list[StoredDuals]:
        """Return a list of the duals that nothing else holds, if they are many."""
        duals, self._stored = list(self.duals), ()
        return duals

    @property
    def bias(self) -> Sequence[float | None]:
        """The bias of each problem."""
        return [solution.bias for solution in self._found]

    @property
    def table(self) -> Vector | None:
        """``y_i alpha_i`` in the layout of a batch of pairs, if it is known."""
        return None

    @property
    def bounds(self) -> Sequence[Bounds]:
        """Proved bounds on the objective of each problem."""
        return [one.certificate.bounds for one in self._found]

    @cached_property
    def certificate(self) -> Certificate:
        """Certificate of all problems, with a part for each."""
        return Certificate.total([one.certificate for one in self._found], self.names)

    @property
    def epochs(self) -> int:
        """The largest number of epochs of a problem."""
        return max(one.certificate.epochs for one in self._found)

    @property
    def histories(self) -> list[NDArray[np.void]]:
        """The history of each problem."""
        return [one.history for one in self._found]


class WholeSolutions(Solutions):
    """Solutions that the core found in one call; each is made when it is used.

    - `solver`: name of the solver.
    - `tol`, `atol`: relative and absolute gap to prove.
    - `done`: whether the accuracy of each problem is proved, or a limit ended its fit.
      The others need another solver.
    - `proved`: whether the accuracy of all of them is proved.
    """

    def __init__(
        self, whole: Whole, names: Sequence[str], solver: str, tol: float, atol: float
    ) -> None:
        self.whole, self.names = whole, names
        self._floors = whole.floors or [0.0] * len(names)
        proved = [
            bounds.meets(tol, atol, floor)
            for bounds, floor in zip(whole.bounds, self._floors, strict=True)
        ]
        ended = whole.statuses or [None] * len(proved)
        self._statuses = [
            Status.CERTIFIED if met else limit
            for met, limit in zip(proved, ended, strict=True)
        ]
        self.proved = all(proved)
        self.done = [status is not None for status in self._statuses]
        self._ends = [0, *whole.ends.tolist()]
        self._epochs = [end - begin for begin, end in pairwise(self._ends)]
        self._updates = whole.epochs[whole.ends - 1, 2].astype(np.int64).tolist()
        self._common = replace(
            whole.bounds[0].certificate,
            status=Status.CERTIFIED,
            solver=solver_that_ran(solver, [whole.method]),
            tol=tol,
            atol=atol,
            floor=max(self._floors),
            seconds=whole.seconds / len(names),
        )

    def __iter__(self) -> Iterator[Solution]:
        return map(self.__getitem__, range(len(self)))

    @overload
    def __getitem__(self, k: int) -> Solution: ...
    @overload
    def __getitem__(self, k: slice) -> Solutions: ...
    def __getitem__(self, k: int | slice) -> Solution | Solutions:
        if isinstance(k, slice):
            return super().__getitem__(k)
        whole, alpha = self.whole, self.whole.alpha[k]
        return Solution(
            whole.w[k],
            alpha.dense() if isinstance(alpha, SparseDuals) else alpha,
            self._part(k),
            None if whole.bias is None else float(whole.bias[k]),
            None if whole.decisions is None else whole.decisions[k],
            self.histories[k],
        )

    def _part(self, k: int) -> Certificate:
        """Return the certificate of problem k, without a name."""
        return replace(
            self._common,
            bounds=self.whole.bounds[k],
            floor=self._floors[k],
            status=self._statuses[k],
            epochs=self._epochs[k],
            updates=self._updates[k],
        )

    @property
    def w(self) -> Sequence[Vector]:
        return cast("Sequence[Vector]", self.whole.w)

    @property
    def alpha(self) -> Sequence[Vector]:
        found = cast("Sequence[StoredDuals]", self.whole.alpha)
        if isinstance(found, list) and isinstance(found[0], SparseDuals):
            return dense(found)
        return cast("Sequence[Vector]", found)

    @property
    def duals(self) -> Sequence[StoredDuals]:
        return cast("Sequence[StoredDuals]", self.whole.alpha)

    def take_duals(self) -> list[StoredDuals]:
        duals, self.whole = list(self.duals), self.whole._replace(alpha=())
        return duals

    @property
    def bias(self) -> Sequence[float | None]:
        known = self.whole.bias
        return [None] * len(self) if known is None else cast("Sequence[float]", known)

    @property
    def table(self) -> Vector | None:
        return self.whole.table

    @property
    def bounds(self) -> Sequence[Bounds]:
        return self.whole.bounds

    @cached_property
    def certificate(self) -> Certificate:
        bounds, names = self.whole.bounds, self.names
        if len(names) == 1:
            return self._part(0)
        parts = LazyParts(len(names), lambda k: replace(self._part(k), name=names[k]))
        return replace(
            self._common,
            bounds=Bounds.total(bounds),
            epochs=len(self.whole.epochs),
            updates=sum(self._updates),
            seconds=sum([self._common.seconds] * len(names)),  # as from the parts
            several=parts,
        )

    @property
    def epochs(self) -> int:
        return max(self._epochs)

    @cached_property
    def histories(self) -> list[NDArray[np.void]]:
        # A column at a time would take longer where the epochs are few.
        rows, seconds = [], self._common.seconds
        epochs = iter(self.whole.epochs.tolist())
        for bounds, count in zip(self.whole.bounds, self._epochs, strict=True):
            for k in range(1, count + 1):
                (primal, dual, steps), exact = next(epochs), k == count
                if exact:
                    primal, dual = bounds.primal, bounds.dual
                end = exact, steps, self.whole.method, math.nan
                rows.append((k, seconds, primal, dual, *end))
        history = np.array(rows, HISTORY_DTYPE)
        return [history[a:b] for a, b in pairwise(self._ends)]

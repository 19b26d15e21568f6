"""Contract of problems, solvers and the training loop, and bases of linear problems.

A solver hands over a :class:`Claim`: points, and a typed hint about them. A
:class:`Problem` turns the claim into a :class:`Proof` by a pass over its data. It
computes P and D itself and takes no values of them from the solver.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import Certificate
from ..data.blocks import Block, RowSource, StreamedRows
from ..data.rows import Norms, inspect_rows
from ..data.types import MatrixLike
from ..docstrings import inherit_entries
from ..losses import Loss, ResidualLoss, Vector


class Proof(NamedTuple):
    """Primal point, dual point, and their certificate."""

    #: Primal point, shape (width,). For a kernel problem, coefficients of a model that
    #: need not be dual variables; empty if the model is alpha and the bias.
    w: Vector
    #: Dual point, shape (n_duals,).
    alpha: Vector
    certificate: Certificate
    #: The bias, if w does not hold it.
    bias: float | None = None
    #: Decisions at the training rows, for a kernel problem, shape (n,).
    decisions: Vector | None = None

    @property
    def model(self) -> Vector:
        """Model that callbacks receive: w, or the decisions of a kernel model."""
        return self.w if self.decisions is None else self.decisions


#: Stands for w in problems without w, and for alpha in problems that keep no duals.
EMPTY: Vector = np.empty(0)


@dataclass(frozen=True, slots=True)
class Hint:
    """Base of the hints that a solver may add to a claim, one class per kind."""


@dataclass(frozen=True, slots=True)
class LinearHint(Hint):
    """Hint for a problem whose w follows from alpha."""

    #: Array that receives ``w(alpha)``, shape (width,).
    out: Vector | None = None


@dataclass(frozen=True, slots=True)
class BinaryHint(LinearHint):
    """Hint for a binary problem."""

    #: Use the best ``b w(alpha)``, b in [1/2, 2], as the primal point if it is better.
    #: It often is, because the error of P is of first order in the error of alpha, and
    #: the error of D of second order.
    rescale: bool = False
    #: ``w(alpha)`` up to rounding, shape (width,). It becomes the primal point, and one
    #: pass over the rows then gives both P and D.
    near: Vector | None = None
    #: Whether `out` already holds ``w(alpha)``, as computed from this alpha.
    combined: bool = False
    #: Epochs for which shrinking still skips each row, shape (n,). The proof sets it to
    #: 0 for rows that are not at a bound or whose margin is on the wrong side of it.
    skipped: NDArray[np.uint8] | None = None


class ApproximateScores(NamedTuple):
    """Approximate scores with bounds on their errors, and an approximate bias.

    Scores and errors have shape (n,). An error is infinite if no bound is known.
    """

    scores: Vector
    error: Vector
    bias: float


@dataclass(frozen=True, slots=True)
class KernelHint(Hint):
    """Hint for a problem over a kernel matrix."""

    #: Approximate scores of alpha. The proof does not recompute the score of a row
    #: whose dual variable is 0 and whose bounds show that it has no loss.
    near: ApproximateScores | None = None
    #: A request that ends the proof early.
    stop: core.Stop | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """Points that a solver hands over for a proof."""

    #: Primal point, or the coefficients of a kernel model. Defaults to the w, or the
    #: model, that alpha defines.
    w: Vector | None = None
    #: Dual point. Defaults to the alpha that w suggests.
    alpha: Vector | None = None
    #: The bias of w, if w does not hold it. Defaults to the best bias.
    bias: float | None = None
    #: Whether w is to be proved as it is. If False, it is the model of alpha up to
    #: rounding, and a proof may take that one. Only kernel problems ask.
    apart: bool = True
    #: Saves work or improves the bounds. The proof is valid without it.
    hint: Hint | None = None


H = TypeVar("H", bound=Hint)


class Problem(ABC):
    """Base class of problems: their contract with the training loop and the solvers.

    - `kind`: "binary", "regression", "one-class", "crammer-singer", "kernel" ...
    - `n`, `n_duals`: rows, and dual variables.
    - `free_bias`: whether there is an unpenalised bias.
    - `streamed`: whether rows are read block by block.
    - `about`: description of the problem that certificates are about, if it is not the
      problem as given; else "".
    - `floor`: smallest size of P* in relative gaps; see
      :class:`dualgap.certificate.Certificate`.
    - `title`: name in the log of one of several problems: its class or pair; else "".
    """

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        inherit_entries(cls)

    kind: ClassVar[str]
    loss: Loss | ResidualLoss
    n: int
    free_bias: bool = False
    title: str = ""

    @property
    def n_duals(self) -> int:
        return self.n

    @property
    def streamed(self) -> bool:
        return False

    @property
    def about(self) -> str:
        return ""

    @property
    def floor(self) -> float:
        return 0.0

    @abstractmethod
    def prove(self, claim: Claim) -> Proof:
        """Return a primal and a dual point, with proved bounds on P and D there.

        Raises StoppedError if a stop request in the claim's hint ends the proof.
        """

    @abstractmethod
    def combine(self, alpha: Vector) -> Vector:
        """Return the model that a dual point defines."""

    def model(self, w: Vector | None, alpha: Vector | None) -> Vector:
        """Return the model of an iterate, as callbacks receive it."""
        if w is not None:
            return w
        assert alpha is not None
        return self.combine(alpha)

    def fingerprint(self) -> dict[str, Any] | None:
        """Return everything in the problem that determines a fit bit for bit.

        None if the problem cannot tell.
        """
        return None


def hint_of(claim: Claim, kind: type[H]) -> H:
    """Return the hint of a claim, or an empty one."""
    if claim.hint is None:
        return kind()
    if type(claim.hint) is not kind:
        raise TypeError(
            f"hint={type(claim.hint).__name__} does not fit this problem; use a "
            f"{kind.__name__}"
        )
    return claim.hint


class RowsProblem(Problem):
    """Base class of linear problems: their rows, inspected once, and the norms.

    - `source`: the store that the rows are from.
    - `rows`: row accessor over the data. For a streamed store it holds the sizes only.
    - `intercept_scaling`: value of the constant feature; 0 for none.
    - `n`, `d`, `width`: rows, columns, and length of w (``d + 1`` with the constant
      feature).
    """

    rows: Any
    intercept_scaling: float
    cost: Vector

    def _set_rows(self, X: MatrixLike) -> None:
        """Inspect X and set the attributes; `intercept_scaling` is set before."""
        self.source = X if isinstance(X, RowSource) else None
        self.rows, self._norms, self.d = inspect_rows(X, self.intercept_scaling)
        self.n = self.rows.n
        self.width = self.rows.width
        if self.n == 0:
            raise ValueError("X has 0 rows; at least one example is needed")
        if self.n >= 2**32:
            raise ValueError(f"X has {self.n} rows; at most 2**32 - 1 are supported")

    @property
    def q(self) -> Vector:
        if isinstance(self.rows, StreamedRows) and not self.all_read:
            for _ in self.blocks():
                pass
        return self._norms.q

    @q.setter
    def q(self, q: Vector) -> None:
        self._norms = Norms(q)

    @property
    def steepness(self) -> float:
        """Mean of c_i q_i, on which the epochs of dual coordinate descent depend."""
        # BLAS would start threads for this, and wait for them.
        return float(np.add.reduce(self.cost * self.q)) / self.n

    @property
    def q_read(self) -> Vector:
        return self._norms.q

    @property
    def all_read(self) -> bool:
        """Whether every row is in memory or has been read in a block."""
        return not self.streamed or bool(self._norms.seen.all())

    @property
    def streamed(self) -> bool:
        """Whether the rows are read block by block."""
        return isinstance(self.rows, StreamedRows)

    def blocks(self, blocks: Sequence[Any] | None = None) -> Iterator[Block]:
        """Yield the rows block by block. Rows in memory are one block.

        Streamed rows are checked, and their norms noted, when they are first read. A
        separate pass for this would cost as much as an epoch of a solver. A block is
        valid until the next one.

        `blocks`: pages of each block of streamed rows; all pages in order by default.
        """
        if self.source is None or not self.streamed:
            yield Block(self.rows, (slice(0, self.n),))
            return
        for block in self.source.read(self.rows.constant, blocks):
            self._norms.look(block, self.source.name)
            yield block

    def norms(self, constant: float) -> Vector:
        """Return ``||x_i||^2`` with another constant feature, shape (n,); one pass."""
        q = np.empty(self.n)
        for block in self.blocks():
            block.rows.with_constant(constant).inspect(q[block.span])
        return q


class VectorProblem(RowsProblem):
    """Base class of linear problems whose primal point is one vector w."""

    def coef(self, w: Vector) -> tuple[Vector, float]:
        """Return the coefficients, shape (d,), and the intercept of a point w."""
        if self.width == self.d:
            return w, 0.0
        return w[: self.d], self.intercept_scaling * float(w[self.d])

    def point(self, coef: Vector, intercept: float = 0.0) -> Vector:
        """Return the point w of coefficients and an intercept; inverts :meth:`coef`."""
        if self.width == self.d:
            return coef
        return np.append(coef, intercept / self.intercept_scaling)

    def squared_norm(self, w: Vector) -> float:
        """Return ``||w||^2`` as in the objective: without an unpenalised bias."""
        return core.squared_norm(w[: self.d] if self.free_bias else w)

"""What the loop asks of a solver.

A solver is a small frozen record of its hyper-parameters. It supplies
``start -> state``, ``step(state)`` (one pass over the data), ``estimate(state)``
(cheap, may be wrong) and ``iterate(state)`` (the model and a dual point). It says
what it needs in class attributes, and :meth:`Solver.check` refuses the rest.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from ..blocks import Block
from ..losses import Vector
from ..problem import Problem, Proof

RowOrder = Literal["permutation", "random", "cyclic"]

# What a solver aims at instead of tol while that costs next to nothing.
ROUNDING = 1e-12


@dataclass
class State:
    """What every solver's state has; each solver adds its own arrays."""

    problem: Problem
    rng: Any
    order: NDArray[np.uint32]
    epochs: int = 0
    updates: int = 0
    visited: int = 0
    primal: float = math.nan
    dual: float = math.nan
    #: The relative gap that the fit is to prove; the loop sets it.
    tol: float = 1e-3
    #: The request to leave that its fit listens to; the loop sets it.
    stop: Any = None
    #: Who made the last pass, where a solver has a choice of methods, and how many
    #: products with the data it thinks are still to come.
    method: str = ""
    predicted: float = math.nan
    #: Called in the midst of a pass, where the state may be written to a checkpoint.
    pause: Callable[[], None] | None = None
    #: The records and enums in it, for checkpoints.
    parts: ClassVar[tuple[type, ...]] = ()

    @property
    def work(self) -> float:
        """Stored entries read so far, and those of w in as many epochs."""
        problem = self.problem
        entries = problem.rows.stored / problem.n + 1.0
        return self.visited * entries + self.epochs * problem.width

    def finite(self) -> bool:
        """Whether the model is still made of finite numbers."""
        return True


class Solver(ABC):
    """Base of the solver records."""

    name: ClassVar[str]
    losses: ClassVar[tuple[str, ...]] = ("hinge", "squared_hinge", "smoothed_hinge")
    #: Keeps dual variables that define w, so it can start from some.
    dual: ClassVar[bool] = False
    #: Stored entries to read before `tol` may end the fit; only `auto` has any.
    free_work: ClassVar[float] = 0.0
    # An exact pass is made when the estimated gap is below this many times the goal
    # (f of Panagiotakopoulos and Tsampouka 2013, section 4).
    check_factor: ClassVar[float] = 1.2
    #: reject() makes the estimate exact: how far off it was says nothing of what comes.
    mends_estimate: ClassVar[bool] = False

    @property
    def monotone(self) -> bool:
        """Whether D never falls and a pass without a change is a fixed point."""
        return False

    @property
    def free_bias(self) -> bool:
        """Whether it can leave a bias unpenalised (the dual: sum alpha_i y_i = 0)."""
        return False

    @property
    def streams(self) -> bool:
        """Whether it goes over rows block by block, so that they may be on the disk."""
        return False

    #: Its state is made of arrays and numbers, that a checkpoint can hold.
    resumes: ClassVar[bool] = False

    def resumable(self, state: Any) -> bool:
        """Whether a checkpoint can be written now; the last one holds good if not."""
        return True

    def check(self, problem: Problem) -> None:
        """Refuse a problem that this solver cannot solve.

        Raises
        ------
        ValueError
            Naming the parameter and a solver that can.
        """
        if problem.loss.name not in self.losses:
            known = " or ".join(map(repr, self.losses))
            raise ValueError(
                f"solver={self.name!r} needs loss={known}, got "
                f"loss={problem.loss.name!r}; use solver='dcd' or 'sdca' for it"
            )
        if problem.free_bias and not self.free_bias:
            raise ValueError(
                f"penalize_intercept=False: solver={self.name!r} penalises the bias; "
                "use solver='dcd', Pegasos(bias='search'), or penalize_intercept=True"
            )

        if problem.streamed and not self.streams:
            raise ValueError(
                f"solver={self!r} needs its rows in memory; use solver='auto', 'dcd', "
                "'sdca', 'sgd-s', 'pegasos' or 'ocas', or open the store with "
                f"buffer={problem.rows.bytes + 8 * problem.n + 8} or more"
            )

    def check_warm(self, problem: Problem, warm: Vector) -> Vector:
        """Dual variables clipped to the box of this problem, as a new array.

        Raises
        ------
        ValueError
            If the solver keeps no duals, or the shape or a value is wrong.
        """
        if not self.dual:
            raise ValueError(
                f"warm start: solver={self.name!r} keeps no dual variables to start "
                "from; use solver='dcd' or 'sdca'"
            )
        warm = np.asarray(warm, dtype=np.float64)
        if warm.shape != (problem.n,):
            raise ValueError(
                f"warm start: dual variables of shape {warm.shape}, expected "
                f"({problem.n},); fit the same rows, or start cold"
            )
        if not np.isfinite(warm).all():
            raise ValueError("warm start: dual variables are not finite; start cold")
        return np.clip(warm, problem.lower, problem.upper)

    @abstractmethod
    def start(self, problem: Problem, rng: Any, warm: Vector | None) -> State:
        """State before the first pass."""

    @abstractmethod
    def step(self, state: Any, stop: Any) -> None:
        """One pass over the data; leaves early, state whole, when told to stop."""

    def estimate(self, state: Any) -> tuple[float, float]:
        """Primal and dual value as the pass saw them; NaN where unknown."""
        return state.primal, state.dual

    @abstractmethod
    def iterate(self, state: Any) -> tuple[Vector | None, Vector | None]:
        """The model and a dual point in the box.

        ``(None, alpha)``: the model is ``w(alpha)``. ``(w, alpha)``: alpha is a dual
        point that need not belong to w. ``(w, None)``: no dual point is known.
        """

    def goal(self, state: Any) -> float:
        """The relative gap to aim at: tol, or less while `free_work` lasts."""
        if state.work < self.free_work:
            return min(state.tol, ROUNDING)
        return float(state.tol)

    def proof_options(self, state: Any) -> dict[str, Any]:
        """What :meth:`Problem.prove` may do besides, by keyword."""
        return {}

    def unproved(self, state: Any) -> Proof | None:
        """The model reached, with a certificate that promises nothing.

        For a fit that was ended before its first proof. None: the zero model it is.
        """
        return None

    def reject(self, state: Any) -> None:  # noqa: B027  (a hook, not a duty)
        """Told that an exact pass found a larger gap than the goal."""


def new_order(n: int) -> NDArray[np.uint32]:
    """Rows 0..n-1 in their own order."""
    return np.arange(n, dtype=np.uint32)


def next_order(kind: RowOrder, rng: Any, order: NDArray[np.uint32], n: int) -> None:
    """Fill `order` for the next pass: a new permutation, independent draws, or 0..n-1.

    Permuting anew every epoch converges faster than one fixed permutation, and that
    faster than independent draws (Shalev-Shwartz et al. 2011, section 7.4).
    """
    if kind == "permutation":
        rng.shuffle(order)
    elif kind == "random":
        rng.draw(order, n)


def random_blocks(
    problem: Problem, pages: NDArray[np.uint32]
) -> list[NDArray[np.uint32]]:
    """Pages in the order given, as blocks that memory holds."""
    together = problem.source.block_pages if problem.source else 1
    return [pages[k : k + together] for k in range(0, len(pages), together)]


def page_order(problem: Problem) -> NDArray[np.uint32]:
    """The pages of rows that are streamed, in their own order."""
    return new_order(len(problem.source.pages) if problem.source else 1)


def row_visits(
    kind: RowOrder, state: State, stop: Any
) -> Iterator[tuple[Block, NDArray[np.uint32]]]:
    """The blocks of the next pass, each with the order in which to visit its rows.

    Rows in memory are one block. Of a store a block is made of random pages, unless
    `kind` is "cyclic"; the pages hold random rows, for the store was shuffled.
    """
    problem, blocks = state.problem, None
    if not problem.streamed:
        next_order(kind, state.rng, state.order, problem.n)
        yield Block(problem.rows, (slice(0, problem.n),)), state.order
        return
    if kind != "cyclic":
        pages = page_order(problem)
        state.rng.shuffle(pages)
        blocks = random_blocks(problem, pages)
    for block in problem.blocks(blocks):
        order = new_order(block.size)
        next_order(kind, state.rng, order, len(order))
        yield block, order
        if stop.requested or stop.expired:
            return


def check_option(name: str, value: object, allowed: tuple[object, ...]) -> None:
    """Refuse a hyper-parameter that is not one of a few words or flags.

    Raises
    ------
    ValueError
    """
    if not any(type(value) is type(word) and value == word for word in allowed):
        words = ", ".join(map(repr, allowed))
        raise ValueError(f"{name}={value!r}: use one of {words}")


def check_count(name: str, value: object) -> None:
    """Refuse a hyper-parameter that is not a whole number from 1 on.

    Raises
    ------
    ValueError
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r}: give a whole number, 1 or more")


def check_step(name: str, value: object, largest: float = math.inf) -> None:
    """Refuse a step size that is not a positive, finite number up to `largest`.

    Raises
    ------
    ValueError
    """
    if not (
        isinstance(value, (int, float)) and 0.0 < value <= largest and value < math.inf
    ):
        limit = "" if math.isinf(largest) else f" of at most {largest:g}"
        raise ValueError(f"{name}={value!r}: give a positive, finite number{limit}")

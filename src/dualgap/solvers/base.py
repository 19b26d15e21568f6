"""The interface between the training loop and its solvers.

A solver is a small frozen record of its hyper-parameters. It supplies
``start -> state``, ``step(state)`` (one pass over the data), ``estimate(state)``
(cheap, may be wrong) and ``iterate(state)`` (the model and a dual point).
``claim(state)`` may add a hint for the proof. Class attributes declare what a solver
needs, and :meth:`Solver.check` refuses everything else.

The tuning constants of a solver are the fields of one frozen record, its ``settings``.
They are not hyper-parameters: users never set them.

Every solver's file enters its record in the registry with :func:`register`. Estimators,
the command line and the tests read the registry; no other list says which solver trains
what.
"""

from __future__ import annotations

import contextlib
import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import Bounds, Status
from ..checks import Count, check_fields, refuse_huge
from ..data.blocks import Block
from ..docstrings import inherit_entries
from ..losses import LOSSES, Vector
from ..names import nearest
from ..problems.base import Claim, Proof
from ..problems.binary import BinaryProblem
from ..problems.duals import StoredDuals

if TYPE_CHECKING:
    from ..problems.batch import Batch

RowOrder = Literal["permutation", "fixed", "random", "cyclic"]

S = TypeVar("S", bound="Solver")

#: Smallest divisor: it keeps a ratio finite whose denominator is 0.
TINY = 1e-300


@dataclass
class State:
    """Base of the states; each solver adds its own arrays."""

    problem: BinaryProblem
    rng: core.Random
    #: Rows in the order of their visits; empty if the solver keeps none.
    order: NDArray[np.uint32] = field(default_factory=lambda: new_order(0))
    epochs: int = 0
    updates: int = 0
    #: Whether the last epoch made progress; False if its updates were too small.
    moved: bool = True
    visited: int = 0
    primal: float = math.nan
    dual: float = math.nan
    #: Relative gap that the fit is to prove; the loop sets it, and raises it to what
    #: `atol` allows.
    tol: float = 1e-3
    #: Whether the last proof met `tol` or `atol` of the fit; the loop sets it.
    met: bool = False
    #: Stop request of the fit; the loop sets it.
    stop: core.Stop = field(default_factory=core.Stop)
    #: Steps left of `max_steps`; None for no limit. The loop sets it.
    steps_left: int | None = None
    #: Name of the method that made the last pass, for solvers that run several.
    method: str = ""
    #: Passes over the data that such a solver still expects to need.
    predicted: float = math.nan
    #: Set by a solver that `ends_itself` where its rule is met.
    ended: bool = False
    #: Called between blocks of a pass, where the state may be written to a checkpoint.
    pause: Callable[[], None] | None = None
    #: What the fit holds until it ends: the limit on the threads of BLAS.
    resources: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    #: Whether BLAS has been limited to one thread.
    alone: bool = False
    #: Types of the records and enums in the state, for checkpoints.
    parts: ClassVar[tuple[type, ...]] = ()
    #: The value that is not finite once the model is not; "" if none tells.
    witness: ClassVar[str] = ""

    @property
    def work(self) -> float:
        """Stored entries read so far, plus the entries of w for every epoch."""
        problem = self.problem
        entries = problem.rows.stored / problem.n + 1.0
        return self.visited * entries + self.epochs * problem.width

    def finite(self) -> bool:
        """Whether all numbers of the model are finite."""
        return not self.witness or math.isfinite(getattr(self, self.witness))

    def rows_left(self, rows: int, batch: int = 1) -> int:
        """Return how many of the next `rows` rows may be visited, and count the steps.

        A step visits `batch` rows; the last one of a pass may visit fewer.
        """
        if self.steps_left is None:
            return rows
        steps = min(self.steps_left, -(-rows // batch))
        self.steps_left -= steps
        return min(rows, steps * batch)


class Limits(Protocol):
    """Limits of a fit, as solvers of whole problems read them."""

    tol: float
    atol: float
    max_iter: int
    stop: core.Stop
    seeds: Sequence[int]
    threads: int
    models: Sequence[Vector]

    @property
    def told(self) -> bool:
        """Whether somebody hears of the problems."""

    def tell(
        self,
        batch: Batch,
        k: int,
        epochs: Sequence[tuple[float, float, int]],
        w: Vector,
    ) -> None:
        """Tell listeners of the last epoch of problem k, whose model is w."""


def targets(job: Limits, goal: float, free: float) -> core.Targets:
    """Return the accuracies of a job whose first `free` work aims at `goal`."""
    return core.Targets(job.tol, job.atol, min(job.tol, goal), free)


class Solver(ABC):
    """Base of the solver records."""

    name: ClassVar[str]
    #: Tuning constants, a frozen record per solver; see :meth:`_with_settings`.
    settings: ClassVar[Any]
    #: Kinds of problem that the solver is registered for.
    kinds: ClassVar[tuple[str, ...]] = ()
    losses: ClassVar[tuple[str, ...]] = tuple(LOSSES)
    #: The solver keeps dual variables that define w, so it can start from given ones.
    dual: ClassVar[bool] = False
    #: Stored entries to read before `tol` may end the fit.
    free_work: ClassVar[float] = 0.0
    #: Relative gap to aim at while `free_work` lasts: solved to rounding.
    free_goal: ClassVar[float] = 1e-12
    #: An exact pass is made once the estimated gap is below this many times the goal
    #: (f of Panagiotakopoulos and Tsampouka 2013, section 4).
    check_factor: float = 1.2
    #: reject() makes the estimate exact, so its past error says nothing about the next.
    mends_estimate: ClassVar[bool] = False
    #: Steps after which a fit ends, even within an epoch; see `SteppedSolver`.
    max_steps: int | None = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        inherit_entries(cls)

    def __post_init__(self) -> None:
        check_fields(self)

    @property
    def monotone(self) -> bool:
        """Whether D never falls and a pass without a change is a fixed point."""
        return False

    @property
    def free_bias(self) -> bool:
        """Whether the bias may be unpenalised (in the dual, sum alpha_i y_i = 0)."""
        return False

    @property
    def ends_itself(self) -> bool:
        """Whether a rule of the solver ends the fit, and one proof is made after it."""
        return False

    @property
    def streams(self) -> bool:
        """Whether rows are read block by block, so that they may stay on disk."""
        return False

    #: The state consists of arrays and numbers, which a checkpoint can hold.
    resumes: ClassVar[bool] = False

    def resumable(self, state: Any) -> bool:
        """Whether a checkpoint can be written now; if not, the last one stays valid."""
        return True

    def check(self, problem: Any) -> None:
        """Refuse a problem that this solver cannot solve.

        Raises
        ------
        ValueError
            With the parameter at fault and a solver that accepts it.
        """
        if problem.loss.name not in self.losses:
            known = " or ".join(map(repr, self.losses))
            remedy = "solver='dcd' or 'sdca'"
            if problem.loss.name not in Solver.losses:
                remedy = "name it in `losses` of a solver that can train it"
            raise ValueError(
                f"solver={self.name!r} cannot train loss={problem.loss.name!r}; use "
                f"loss={known}, or {remedy}"
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

    def check_warm(self, problem: Any, warm: Vector) -> Vector:
        """Return dual variables clipped to the box of this problem, as a new array.

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
        refuse_huge("warm", warm)
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
    def start(self, problem: Any, rng: core.Random, warm: Vector | None) -> State:
        """Return the state before the first pass."""

    @abstractmethod
    def step(self, state: Any, stop: core.Stop) -> None:
        """Make one pass over the data, or leave it early in a valid state on `stop`."""

    def estimate(self, state: Any) -> tuple[float, float]:
        """Return the primal and dual value as the pass saw them; NaN where unknown."""
        return state.primal, state.dual

    @abstractmethod
    def iterate(self, state: Any) -> tuple[Vector | None, Vector | None]:
        """Return the model and a dual point in the box.

        ``(None, alpha)``: the model is ``w(alpha)``. ``(w, alpha)``: alpha is a dual
        point that need not belong to w. ``(w, None)``: no dual point is known.
        """

    def goal(self, state: Any) -> float:
        """Return the relative gap to aim at: tol, or less while `free_work` lasts."""
        if state.work < self.free_work:
            return min(state.tol, self.free_goal)
        return float(state.tol)

    def claim(self, state: Any) -> Claim:
        """Return the claim to prove: the iterate, and a hint if there is one."""
        found = self.iterate(state)
        if not self.kinds:
            problem = state.problem
            binary = problem.kind == "binary"
            lengths = (problem.width, problem.n) if binary else (None, None)
            _check_iterate(self.name, found, lengths)
        return Claim(*found)

    def unproved(self, state: Any) -> Proof | None:
        """Return the model reached, with a certificate that promises nothing.

        A fit that ends before its first proof asks for it. None: take the zero model.
        """
        return None

    def reject(self, state: Any) -> None:  # noqa: B027  (a hook, not a duty)
        """React to an exact pass that found a larger gap than the goal."""

    def _with_settings(self: S, **changes: float) -> S:
        """Return a copy with some tuning constants changed, for tests."""
        changed = copy.copy(self)
        object.__setattr__(changed, "settings", replace(self.settings, **changes))
        return changed


def _check_iterate(
    name: str, found: object, lengths: tuple[int | None, int | None]
) -> None:
    """Refuse what `iterate` of somebody's own solver may return by mistake."""
    if not (isinstance(found, tuple) and len(found) == 2):
        raise TypeError(
            f"solver={name!r}: iterate() must return the pair (w, alpha), each an "
            f"array or None; got {type(found).__name__}"
        )
    for label, value, length in zip(("w", "alpha"), found, lengths, strict=True):
        if value is None:
            continue
        dtype, shape = getattr(value, "dtype", type(value).__name__), np.shape(value)
        if dtype != np.float64 or (length is not None and shape != (length,)):
            size = "" if length is None else f" of shape ({length},)"
            raise ValueError(
                f"solver={name!r}: {label} from iterate() must be a float64 array"
                f"{size}; got {dtype} of shape {shape}"
            )


@dataclass(frozen=True)
class SteppedSolver(Solver):
    """Base of the solvers that can end within an epoch, after `max_steps` steps.

    Parameters
    ----------
    max_steps : int, optional
        Largest number of steps, each a visit to a row, or to `batch_size` of them; it
        may be less than an epoch. Of the fit, only the last proof then reads all rows.
    """

    max_steps: Count | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class OrderedSolver(SteppedSolver):
    """Base of the solvers that visit every row once an epoch, in a chosen order.

    Parameters
    ----------
    order : {"permutation", "fixed", "cyclic"}, default="permutation"
        Order of the rows: a new permutation every epoch, one permutation for all epochs
        (as in the experiments of Panagiotakopoulos and Tsampouka 2013) or the order of
        the data. "fixed" needs the rows in memory.
    """

    order: Literal["permutation", "fixed", "cyclic"] = field(
        default="permutation", kw_only=True
    )

    @property
    def streams(self) -> bool:
        return self.order != "fixed"


def new_order(n: int) -> NDArray[np.uint32]:
    """Return the rows 0..n-1 in their own order."""
    return np.arange(n, dtype=np.uint32)


def next_order(
    kind: RowOrder,
    rng: core.Random,
    order: NDArray[np.uint32],
    n: int,
    *,
    first: bool = True,
) -> None:
    """Fill `order` for the next pass: a permutation, independent draws, or 0..n-1.

    A new permutation every epoch converges faster than one fixed permutation, which
    converges faster than independent draws (Shalev-Shwartz et al. 2011, section 7.4).
    `first` says whether it is the first pass, whose permutation "fixed" keeps.
    """
    if kind == "permutation" or (kind == "fixed" and first):
        rng.shuffle(order)
    elif kind == "random":
        rng.draw(order, n)


def random_blocks(
    problem: BinaryProblem, pages: NDArray[np.uint32]
) -> list[NDArray[np.uint32]]:
    """Group pages, in the order given, into blocks that fit in memory."""
    together = problem.source.block_pages if problem.source else 1
    return [pages[k : k + together] for k in range(0, len(pages), together)]


def page_order(problem: BinaryProblem) -> NDArray[np.uint32]:
    """Return the pages of streamed rows, in their own order."""
    return new_order(len(problem.source.pages) if problem.source else 1)


def row_visits(
    kind: RowOrder, state: State, stop: core.Stop, batch: int = 1
) -> Iterator[tuple[Block, NDArray[np.uint32]]]:
    """Yield the blocks of the next pass, each with the order of visits to its rows.

    Rows in memory are one block. A block of a store consists of random pages, unless
    `kind` is "cyclic"; pages hold random rows, because the store was shuffled. The pass
    ends where the steps, of `batch` rows each, reach `max_steps`.
    """
    problem, blocks = state.problem, None
    if not problem.streamed:
        first = state.epochs == 0
        next_order(kind, state.rng, state.order, problem.n, first=first)
        rows = state.rows_left(len(state.order), batch)
        yield Block(problem.rows, (slice(0, problem.n),)), state.order[:rows]
        return
    if kind != "cyclic":
        pages = page_order(problem)
        state.rng.shuffle(pages)
        blocks = random_blocks(problem, pages)
    for block in problem.blocks(blocks):
        order = new_order(block.size)
        next_order(kind, state.rng, order, len(order))
        yield block, order[: state.rows_left(block.size, batch)]
        if stop.requested or stop.expired or state.steps_left == 0:
            return


class Whole(NamedTuple):
    """Points of several problems, their proofs, and the epochs that led to them.

    After a stop these are the first problems of the batch only.
    """

    #: One per problem, empty for a kernel problem.
    w: Vector | Sequence[Vector]
    #: One per problem.
    alpha: Vector | Sequence[StoredDuals]
    #: One per problem.
    bounds: list[Bounds]
    #: Estimates of P and D, and the steps so far, after each epoch of each problem,
    #: shape (n_epochs, 3).
    epochs: Vector
    #: Where the epochs of each problem end, shape (n_problems,).
    ends: NDArray[np.intp]
    #: Time of all problems.
    seconds: float
    #: Name of the method that made the epochs.
    method: str
    #: As for :class:`dualgap.training.Solution`, one per problem.
    bias: Vector | Sequence[float] | None = None
    decisions: Sequence[Vector] | None = None
    #: Smallest size of each optimum in relative gaps; none for 0.
    floors: Sequence[float] = ()
    #: ``y_i alpha_i`` of all problems in the layout of a batch of pairs.
    table: Vector | None = None
    #: Limits that ended the fits of problems without a proof of their accuracy. The
    #: ordinary solver trains such a problem if no limit ended its fit.
    statuses: Sequence[Status | None] = ()


C = TypeVar("C", bound=Callable[..., Solver])

_SOLVERS: dict[str, dict[str, type[Solver]]] = {}
_CHOICES: dict[str, Callable[..., Solver]] = {}


def register(*kinds: str) -> Callable[[type[S]], type[S]]:
    """Enter a record of a solver, under its name, for these kinds of problem."""

    def enter(solver: type[S]) -> type[S]:
        for kind in kinds:
            _SOLVERS.setdefault(kind, {})[solver.name] = solver
        _by_name.cache_clear()  # another record may have had this name
        solver.kinds = kinds
        return solver

    return enter


def register_choice(kind: str) -> Callable[[C], C]:
    """Enter the function that chooses the solver of a problem for "auto"."""

    def enter(choice: C) -> C:
        _CHOICES[kind] = choice
        return choice

    return enter


def solvers_of(kind: str) -> dict[str, type[Solver]]:
    """Return the records for a kind of problem by name, "auto" first."""
    known = _SOLVERS[kind]
    return {name: known[name] for name in sorted(known, key=lambda n: (n != "auto", n))}


def get_solver(solver: str | Solver, kind: str = "binary") -> Solver:
    """Return the record of a solver given by name or as a record.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    if isinstance(solver, Solver):
        return solver
    try:
        return _by_name(solver, kind)
    except (KeyError, TypeError):
        known = solvers_of(kind)
        names = ", ".join(map(repr, known))
        near = nearest(str(solver), known, "solver")
        hint = f" Did you mean {near!r}?" if near else ""
        others = [other for other, able in _SOLVERS.items() if str(solver) in able]
        fault = f"for {' and '.join(others)} problems" if others else "unknown"
        raise ValueError(
            f"solver={solver!r} is {fault}; use one of {names} or a record such as "
            f"SDCA(order='random').{hint}"
        ) from None


@cache
def _by_name(name: str, kind: str) -> Solver:
    return _SOLVERS[kind][name]()


def check_kind(problem: Any, solver: Solver) -> None:
    """Refuse a solver that is registered for other kinds of problem."""
    if solver.kinds and problem.kind not in solver.kinds:
        able = ", ".join(map(repr, solvers_of(problem.kind)))
        raise ValueError(
            f"solver={solver.name!r} is for {' and '.join(solver.kinds)} problems, got "
            f"a {type(problem).__name__}; for {problem.kind} use {able}"
        )


def solver_for(problem: Any, solver: str | Solver = "auto") -> Solver:
    """Return the record that trains a problem.

    Parameters
    ----------
    problem : Problem
    solver : str or Solver, default="auto"
        "auto" is the solver registered under that name, or the one chosen by counts,
        or the only solver of its kind.
    """
    known = solvers_of(problem.kind)
    if solver == "auto" and problem.kind in _CHOICES:
        return _CHOICES[problem.kind](problem)
    if solver == "auto" and len(known) == 1:
        (solver,) = known
    return get_solver(solver, problem.kind)

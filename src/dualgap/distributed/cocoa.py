"""CoCoA+: communication-efficient dual coordinate ascent over pieces of the rows.

Problem    the binary problem of problems/binary.py, its rows in K pieces with their own
           duals
Update     in every round piece k runs some epochs on its subproblem with sigma = K
           (piece.py), and sends A b_k, the change of its share of w:
             alpha <- alpha + gamma b,  w <- w + gamma sum_k A b_k,
           with the gamma in [0, 1] that maximises D; it is 1 if beta = 0. As in
           Nesterov's method the epochs begin beyond the last step, by
           beta_j = (t_j - 1)/t_{j+1} times this step, with
           t_{j+1} = (1 + sqrt(1 + 4 t_j^2))/2. t restarts at 1 when the best real gamma
           falls below 3/2.
Guarantee  D never falls. With beta = 0 the rate is linear for smooth losses and 1/t
           for the hinge, however accurately the subproblems are solved.
Cost       per round: the epochs, one product for the gap, and one d-vector each way
Source     Ma, Smith, Jaggi, Jordan, Richtarik and Takac, ICML 2015; Nesterov, Soviet
           Math. Doklady 27, 1983. The combination, with the exact gamma as a safeguard
           and as the criterion of restarts, is specific to dualgap.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..checks import check_option
from ..data.columns import StoredColumns
from ..losses import Vector
from ..problems.base import EMPTY, Claim, Proof
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..solvers.base import Solver, State, register
from .engine import Engine, RoundOutcome, Summary
from .messages import Task

ROUND_DTYPE = np.dtype(
    [
        ("round", np.int64),
        ("problems", np.int64),
        ("local_epochs", np.int64),
        ("gamma", np.float64),
        ("ratio", np.float64),
        ("seconds", np.float64),
        ("computing", np.float64),
        ("bytes", np.int64),
        ("late", np.int64),
        ("lost", np.int64),
    ]
)


@dataclass(frozen=True)
class CoCoASettings:
    """Tuning constants of CoCoA+, with the cost model of ``local_epochs="auto"``."""

    #: If the best gamma of a step is below this, the acceleration restarts.
    restart: float = 1.5
    #: Seconds per stored entry of an epoch.
    entry: float = 1.5e-9
    #: Seconds of the messages of a round.
    latency: float = 10e-3
    #: Seconds per byte of a vector, both ways over 10 Gbit/s.
    byte: float = 2 / 1.25e9


SETTINGS = CoCoASettings()


class Rounds:
    """Rounds shared by problems that are trained in separate threads.

    A round begins when every unfinished problem has submitted a task.
    """

    def __init__(self, engine: Engine, problems: int) -> None:
        self.engine = engine
        self.going = set(range(problems))
        self.asked: dict[int, Task] = {}
        self.answers: dict[int, Summary] = {}
        self.error: BaseException | None = None
        self.changed = threading.Condition()
        self.records: list[tuple[float, ...]] = []
        self.measured_passes = 1

    @property
    def counted_passes(self) -> int:
        """Epochs whose cost equals the messages of a round, by the cost model."""
        messages = SETTINGS.latency + 8 * self.engine.width * SETTINGS.byte
        return self._within(messages / (SETTINGS.entry * max(self.engine.stored, 1)))

    def _within(self, passes: float) -> int:
        """Return the next lower power of 2, from 1 to the largest that pays."""
        passes = min(max(passes, 1.0), self.engine.most_passes)
        return int(2 ** math.floor(math.log2(passes)))

    def ask(self, k: int, task: Task) -> Summary:
        with self.changed:
            self.asked[k] = task
            self._play_if_all_asked()
            while k not in self.answers:
                if self.error is not None:
                    raise self.error
                self.changed.wait()
            return self.answers.pop(k)

    def leave(self, k: int) -> None:
        """Mark problem k as finished; the others go on without it."""
        with self.changed:
            self.going.discard(k)
            self._play_if_all_asked()

    def _play_if_all_asked(self) -> None:
        if not self.asked or set(self.asked) != self.going:
            return
        tasks, self.asked = dict(sorted(self.asked.items())), {}
        try:
            self.answers.update(self._play(tasks).summaries)
        except BaseException as error:
            self.error = error
            raise
        finally:
            self.changed.notify_all()

    def _play(self, tasks: dict[int, Task]) -> RoundOutcome:
        advances = [task for task in tasks.values() if task.kind == "advance"]
        begun = time.perf_counter()
        outcome = self.engine.run(tasks)
        if advances:
            wall = time.perf_counter() - begun
            summaries = [outcome.summaries[k] for k in tasks]
            passes = max(summary.epochs for summary in summaries)
            self.records.append(
                (self.engine.rounds, len(advances), passes,
                 min(summary.gamma for summary in summaries),
                 max(summary.ratio for summary in summaries), wall, outcome.seconds,
                 outcome.nbytes, outcome.late, len(outcome.lost))
            )  # fmt: skip
            # The product for the gap counts as one more epoch.
            one = outcome.seconds / (passes + 1)
            messages = wall - outcome.seconds
            self.measured_passes = self._within(messages / max(one, 1e-9))
        return outcome


class PiecewiseProblem(BinaryProblem):
    """Problem `k` over pieces of the rows, which are on workers like their duals."""

    kind: ClassVar[str] = "pieces"
    n = 0
    rows = None

    def __init__(self, rounds: Rounds, k: int) -> None:
        engine, setup = rounds.engine, rounds.engine.setup
        self.rounds, self.k, self.loss = rounds, k, setup.loss
        self.width, self.d = engine.width, engine.width - setup.fit_intercept
        self.intercept_scaling = setup.intercept_scaling * setup.fit_intercept

    def combine(self, alpha: Vector, out: Vector | None = None) -> Vector:
        """Return w of the duals on the workers; `alpha` is ignored."""
        return self.prove(Claim(alpha=alpha)).model

    def prove(self, claim: Claim) -> Proof:
        """Return the certificate of the duals on the workers.

        It takes two rounds. The first sums up w from the duals. The second sums up the
        losses at this w and the terms of D over all rows.
        """
        self.rounds.ask(self.k, Task("combine"))
        found = self.rounds.ask(self.k, Task("evaluate"))
        assert found.w is not None
        assert found.bounds is not None
        return Proof(found.w, EMPTY, found.bounds.certificate)


class PiecesBatch(LinearBatch):
    """Problems of a linear classifier over pieces of the rows.

    To the client the rows are the census: one per piece and label, with the
    summed weights of the rows that have it.
    """

    def __init__(
        self, engine: Engine, codes: NDArray[np.intp], weight: Vector | None
    ) -> None:
        setup = engine.setup
        self.engine, self.rounds = engine, Rounds(engine, engine.problems)
        self.kind, self.joint, self.C = "pieces", False, setup.C
        self.classes, self.reduction = setup.classes, setup.reduction
        self.count, self.several = engine.problems, setup.reduction.several
        self.names = setup.reduction.names(setup.classes)
        self.codes, self.parts = codes, [(weight, setup.factors)]
        # Models take rounds, so callbacks, which hear one problem at a time, get none.
        self.rows, self.zero = self.problem(0), EMPTY
        self.columns = StoredColumns(np.empty((0, self.rows.d)))

    def problem(self, k: int) -> PiecewiseProblem:
        return PiecewiseProblem(self.rounds, k)

    def leave(self, k: int) -> None:
        self.rounds.leave(k)

    def takes_long(self, warm: bool) -> bool:
        return False

    def moments(self, k: int, w: Vector) -> Vector:
        return self.engine.moments(k, w)


@dataclass(kw_only=True)
class CoCoAState(State):
    """State of a binary problem; its w and duals are on the workers."""

    problem: PiecewiseProblem
    t: float = 1.0

    @property
    def work(self) -> float:
        return 0.0

    def finite(self) -> bool:
        return math.isfinite(self.dual)


@register("pieces")
@dataclass(frozen=True)
class CoCoA(Solver):
    """Accelerated CoCoA+ of Ma et al. 2015. An epoch of the fit is a round.

    Parameters
    ----------
    local_epochs : int, "auto", "measured" or sequence of int, default="auto"
        Epochs of each piece over its own rows in a round. "auto" chooses them by a cost
        model of the epochs and of the messages on a usual network. "measured" uses the
        measured times of the rounds so far, so two fits may differ. A sequence has the
        number for every round; its last entry holds for all later rounds.
    acceleration : {"nesterov", "none"}, default="nesterov"
        Whether the epochs begin beyond the last step.
    """

    local_epochs: int | Literal["auto", "measured"] | Sequence[int] = "auto"
    acceleration: Literal["nesterov", "none"] = "nesterov"

    name: ClassVar[str] = "cocoa+"
    dual: ClassVar[bool] = True
    monotone = True

    def __post_init__(self) -> None:
        check_option("acceleration", self.acceleration, ("nesterov", "none"))
        if isinstance(self.local_epochs, str):
            check_option("local_epochs", self.local_epochs, ("auto", "measured"))
            return
        try:
            numbers = np.atleast_1d(np.asarray(self.local_epochs))
            valid = numbers.size and numbers.dtype.kind in "iu" and numbers.min() >= 1
        except (TypeError, ValueError):
            valid = False
        if not valid:
            raise ValueError(
                f"local_epochs={self.local_epochs!r}: give a positive integer, a "
                "sequence of them, 'auto' or 'measured'"
            )

    def start(
        self, problem: PiecewiseProblem, rng: core.Random, warm: Vector | None
    ) -> CoCoAState:
        return CoCoAState(problem=problem, rng=rng, order=np.empty(0, np.uint32))

    def step(self, state: CoCoAState, stop: core.Stop) -> None:
        rounds, k = state.problem.rounds, state.problem.k
        t = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * state.t * state.t))
        beta = (state.t - 1.0) / t if self.acceleration == "nesterov" else 0.0
        sigma = float(rounds.engine.count)
        task = Task("advance", sigma, self.passes(rounds), beta)
        found = rounds.ask(k, task)
        state.t = t if found.best >= SETTINGS.restart else 1.0
        state.epochs += 1
        state.updates += found.updates
        state.visited += found.visited
        # P is the value before the step, D the value after it.
        state.primal, state.dual = found.primal, found.reached

    def passes(self, rounds: Rounds) -> int:
        """Return the number of local epochs of the next round."""
        if isinstance(self.local_epochs, str):
            counted = self.local_epochs == "auto"
            return rounds.counted_passes if counted else rounds.measured_passes
        numbers = np.atleast_1d(self.local_epochs)
        return int(numbers[min(len(rounds.records), len(numbers) - 1)])

    def iterate(self, state: CoCoAState) -> tuple[None, Vector]:
        return None, EMPTY  # the duals are on the workers

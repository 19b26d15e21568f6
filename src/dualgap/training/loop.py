"""The outer loop that all solvers share.

A solver advances its state by one epoch and returns a cheap estimate of its primal and
dual value. The loop does everything else: target gaps, limits, the check for
non-finite numbers, the best proof so far. Estimates only decide when to run an exact
pass; a fit ends as certified only through :meth:`Problem.prove`.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace

import numpy as np

from .. import core
from ..certificate import Certificate, Status
from ..core import StoppedError
from ..losses import Vector
from ..problems.base import Claim, Problem, Proof
from ..solvers.base import Solver, State
from .checkpoint import Checkpoint, Kept
from .progress import HISTORY_DTYPE, Progress, Schedule, solver_that_ran
from .solution import Solution

logger = logging.getLogger("dualgap")


@dataclass(frozen=True)
class LoopSettings:
    """Tuning constants of `Loop`."""

    #: A gap below this multiple of the allowance for rounding counts as closed.
    rounded: float = 1.25
    #: Seconds for the final proof after a fit was stopped.
    grace: float = 0.1
    #: For a fit that ran out of time without any proof: this multiple of its time.
    first_grace: float = 1.0


class Loop:
    """One fit: epochs of a solver, until a proof meets the target or a limit ends it.

    - `tol`, `atol`: relative gap, and gap, to prove.
    - `stop`: request to stop, with its deadline.
    - `progress`: history, which it reports.
    - `checkpoint`: file for the state of the fit.
    """

    settings = LoopSettings()

    def __init__(
        self,
        problem: Problem,
        solver: Solver,
        tol: float,
        atol: float,
        stop: core.Stop,
        progress: Progress,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self.problem, self.solver = problem, solver
        self.tol, self.atol = tol, atol
        self.stop, self.progress, self.checkpoint = stop, progress, checkpoint
        self.schedule = Schedule(solver, tol, atol, problem.floor)
        self.best: Proof | None = None
        self.idle = 0  # epochs without a change, up to now
        self.broken = False  # whether the solver's numbers are not finite

    def run(
        self,
        state: State,
        max_iter: int,
        check_every: int | None = None,
        check_start: bool = False,
    ) -> Solution:
        """Make epochs until one of them, or a limit, ends the fit.

        - `state`: the solver's state, started or resumed.
        - `check_every`: number of epochs after which a proof is made anyway.
        - `check_start`: whether to begin with a proof: a warm start may be the optimum.
        """
        proof = self.prove(state) if check_start else None
        if proof is not None and self.meets(proof):
            return self.finish(Status.CERTIFIED, state)
        if self.checkpoint is not None:
            state.pause = lambda: self.save(state)
        while True:
            status = self.limit(state, max_iter)
            if status is not None:
                return self.finish(status, state)
            before = state.updates
            self.solver.step(state, self.stop)
            idle = state.updates == before or not state.moved
            self.idle = self.idle + 1 if idle else 0
            status = self.judge(state, check_every)
            if status is not None:
                return self.finish(status, state)

    @property
    def stopped(self) -> bool:
        return bool(self.stop.requested or self.stop.expired)

    def meets(self, certificate: Certificate) -> bool:
        """Whether a certificate meets `tol` or `atol`."""
        return certificate.meets(self.tol, self.atol)

    def limit(self, state: State, max_iter: int) -> Status | None:
        """Return the limit that forbids another epoch, if there is one."""
        if self.stop.requested:
            return Status.INTERRUPTED
        if self.stop.expired:
            return Status.TIME_LIMIT
        if state.epochs >= max_iter:
            return Status.EPOCH_LIMIT
        if state.steps_left == 0:
            return Status.STEP_LIMIT
        return None

    def judge(self, state: State, check_every: int | None) -> Status | None:
        """Judge an epoch by its estimates and, where it is worth it, by a proof.

        Returns why the fit ends here; None if it goes on.
        """
        cut_short = self.stopped
        primal, dual = self.solver.estimate(state)
        self.schedule.aim(state, primal, dual)
        if math.isinf(primal) or not state.finite():
            logger.warning(
                "%s: epoch %d ended with non-finite numbers; the fit stops",
                self.solver.name,
                state.epochs,
            )
            self.progress.record(state, math.nan, math.nan, False)
            self.broken = True
            return Status.STALLED

        # A dual epoch that changes nothing has reached a fixed point of the active
        # rows. A second one in a row has reached a fixed point of all rows, because
        # the proof between them, or reject(), made every row active that can move.
        idle_dual = self.solver.monotone and self.idle > 0 and not cut_short
        due = check_every is not None and state.epochs % check_every == 0
        proof = None
        # finish() proves a fit that ends early.
        if not cut_short and (
            due or idle_dual or self.schedule.worth_checking(state, primal, dual)
        ):
            proof = self.prove(state)
            if proof is not None:
                primal, dual = proof.primal, proof.dual
                self.schedule.aim(state, primal, dual)
        self.progress.record(state, primal, dual, proof is not None)
        if proof is not None and not self.solver.ends_itself:
            status = self.verdict(state, proof, idle_dual)
            if status is not None:
                return status
            self.solver.reject(state)
        if self.progress.announce(lambda: self.model(state), final=False):
            self.stop.request()
        if state.ended and not self.stopped:
            return Status.SAMPLED
        if not cut_short:
            self.save(state)
        return None

    def verdict(
        self, state: State, proof: Certificate, idle_dual: bool
    ) -> Status | None:
        """Return the status with which a proof ends the fit; None if it goes on."""
        state.met = met = self.meets(proof)
        goal = self.solver.goal(state)
        if met and (proof.relative_gap <= goal or goal >= state.tol):
            return Status.CERTIFIED
        if idle_dual and self.idle > 1:
            return Status.CERTIFIED if met else Status.STALLED
        if proof.gap <= self.settings.rounded * proof.rounding < math.inf:
            # More epochs cannot reduce the allowance for rounding. (`finish` checks
            # whether the gap is within tol or atol.)
            return Status.STALLED
        return None

    def prove(self, state: State) -> Certificate | None:
        """Prove bounds for the state; return None if stopped before they are known."""
        try:
            proof = self.problem.prove(self.solver.claim(state))
        except StoppedError:
            return None
        exact = proof.certificate
        self.schedule.learn(state, exact)
        if not (math.isfinite(exact.primal) and math.isfinite(exact.dual)):
            return exact
        if self.best is None or self.rank(exact) < self.rank(self.best.certificate):
            self.keep(proof)
        return exact

    def rank(self, certificate: Certificate) -> tuple[bool, float, float]:
        """Return a sort key of proofs: those that meet the target come first."""
        return not self.meets(certificate), certificate.relative_gap, certificate.gap

    def keep(self, proof: Proof) -> None:
        """Keep a copy of a proof's points: the solver may go on changing its arrays."""
        if self.best is None:
            self.best = proof._replace(w=proof.w.copy(), alpha=proof.alpha.copy())
        else:
            self.best.w[:], self.best.alpha[:] = proof.w, proof.alpha
            self.best = proof._replace(w=self.best.w, alpha=self.best.alpha)

    def model(self, state: State) -> Vector:
        """Return the current w, or the decisions of a kernel model."""
        return self.problem.model(*self.solver.iterate(state))

    def finish(self, status: Status, state: State | None) -> Solution:
        """Return the solution with the best proof, after a final proof if needed.

        A fit that was interrupted or ran out of time has `settings.grace` seconds for
        the final proof, and more if it ran out of time without any. If it then has no
        proof at all, it returns the current model with an infinite gap.
        """
        done = self.broken or self.progress.proved or status is Status.CERTIFIED
        if state is not None and not done:
            status = self.last_proof(status, state)
        if self.best is None:  # no iterate was finite; the zero model is
            zero = np.zeros(self.problem.n_duals)
            self.best = self.problem.prove(Claim(alpha=zero))
        if self.meets(self.best.certificate):
            status = Status.CERTIFIED
        history = self.progress.history
        certificate = replace(
            self.best.certificate,
            epochs=history[-1][0] if history else 0,
            updates=history[-1][5] if history else 0,
            seconds=self.progress.clock.seconds,
            status=status,
            solver=solver_that_ran(self.solver.name, [epoch[6] for epoch in history]),
            tol=self.tol,
            atol=self.atol,
            about=self.problem.about,
        )
        best = self.best
        if self.progress.end(certificate, lambda: best.model):
            self.stop.request()
        return Solution(
            best.w,
            best.alpha,
            certificate,
            best.bias,
            best.decisions,
            np.array(history, dtype=HISTORY_DTYPE),
        )

    def last_proof(self, status: Status, state: State) -> Status:
        """Prove the last iterate; return the status, which lack of time may change."""
        if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
            settings = self.settings
            grace = settings.grace
            if self.best is None and status is Status.TIME_LIMIT:
                grace = max(grace, settings.first_grace * self.progress.clock.seconds)
            state.stop = core.Stop()
            state.stop.set_deadline(grace)
        exact = self.prove(state)
        if exact is not None:
            self.progress.record(state, exact.primal, exact.dual, True)
            return status
        if self.best is None:
            self.best = self.solver.unproved(state)
        if status in (Status.EPOCH_LIMIT, Status.STEP_LIMIT, Status.SAMPLED):
            asked = self.stop.requested
            return Status.INTERRUPTED if asked else Status.TIME_LIMIT
        return status

    def save(self, state: State) -> None:
        """Write a checkpoint if one is due."""
        file = self.checkpoint
        if file is None or not file.due or not self.solver.resumable(state):
            return
        schedule, progress = self.schedule, self.progress
        kept = Kept(
            schedule.factor,
            schedule.next_blind_check,
            self.idle,
            progress.clock.seconds,
            self.best,
            progress.history,
        )
        file.save(self.solver, state, kept)

    def resume(self, kept: Kept) -> None:
        """Go on where the fit that wrote a checkpoint was."""
        self.schedule.factor, self.schedule.next_blind_check = kept[:2]
        self.idle, self.best = kept.idle, kept.best
        self.progress.clock.away -= kept.seconds
        self.progress.history = kept.history

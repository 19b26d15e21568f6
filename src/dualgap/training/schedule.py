"""Schedule of the proofs: after which epochs an exact pass is worth its cost."""

from __future__ import annotations

import math

from ..certificate import Certificate, relative_gap, size_of_optimum
from ..solvers.base import Solver, State


class Schedule:
    """Rule that decides from a solver's estimates when to prove.

    `tol`, `atol`: relative gap, and gap, to prove. `floor`: lower bound on the size of
    the optimum that makes gaps relative.
    """

    def __init__(self, solver: Solver, tol: float, atol: float, floor: float) -> None:
        self.solver = solver
        self.tol, self.atol, self.floor = tol, atol, floor
        self.factor = solver.check_factor
        self.next_blind_check = 1

    def aim(self, state: State, primal: float, dual: float) -> None:
        """Set the relative gap of the solver to the looser of `tol` and `atol`."""
        largest = max(primal, -dual, self.floor)  # bounds |P*| from above
        if self.atol > 0.0 and 0.0 < largest < math.inf:
            state.tol = max(self.tol, self.atol / largest)

    def worth_checking(self, state: State, primal: float, dual: float) -> bool:
        """Whether the estimates are near enough to the goal for a proof."""
        if self.solver.ends_itself:
            return False
        blind = math.isnan(primal) or math.isnan(dual)
        goal = self.solver.goal(state)
        gap = self.factor * goal
        floor = 0.0 if blind else size_of_optimum(primal, dual, self.floor)
        if not blind and primal - dual <= gap * floor:
            return True
        near = not blind and primal - dual <= self.factor * self.atol
        if near and goal >= state.tol:
            return True
        # Check at growing intervals without an estimate, between tol and a tighter
        # goal, and where an earlier proof was worse than its estimate: the next one
        # need not be. This costs a few passes in all, and reject() learns what an
        # estimate misses.
        likely = primal - dual <= self.solver.check_factor * self.tol * floor
        if blind or near or likely:
            if not blind and self.next_blind_check == 1:
                self.next_blind_check = 2 * state.epochs + 8
            if state.epochs < self.next_blind_check:
                return False
            self.next_blind_check = self._later(state, 1 if blind else 4)
            return True
        return False

    def _later(self, state: State, least: int = 4) -> int:
        return max(state.epochs + least, int(1.25 * state.epochs))

    def learn(self, state: State, exact: Certificate) -> None:
        """Learn from a proof how optimistic the solver's estimate is."""
        primal, dual = self.solver.estimate(state)
        estimated = relative_gap(primal, dual, exact.floor)
        met = exact.meets(self.tol, self.atol)
        misled = not met and 0.0 < estimated < math.inf
        if misled and not self.solver.mends_estimate:
            ratio = estimated / exact.relative_gap
            self.factor = min(self.solver.check_factor, max(0.95 * ratio, 1e-3))
            self.next_blind_check = self._later(state)

"""
Write a solver of your own
==========================

A solver is a small record with three methods: ``start``, ``step`` and ``iterate``. It
does not decide when to stop, or say how good its model is: dualgap's loop lets the
problem prove that. So an experiment of ten lines has limits, a history, Ctrl-C and a
certificate. If the solver is wrong, the certificate shows it.

The example is accelerated projected gradient ascent on the dual (Beck and Teboulle,
SIAM J. Imaging Sciences 2, 2009), in NumPy. With a = alpha, the dual variables in
their box:

    grad D(a)_i = 1 - y_i w(a).x_i - delta_i a_i,     a <- P[a + grad D(a)/L]
"""

import warnings
from dataclasses import dataclass
from typing import ClassVar

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from dualgap import LinearSVC
from dualgap.plot import ConvergenceDisplay
from dualgap.solvers import Solver, State


@dataclass(kw_only=True)
class Ascent(State):
    """Dual point, the point of the next gradient, and the momentum."""

    alpha: np.ndarray
    ahead: np.ndarray
    L: float
    t: float = 1.0


@dataclass(frozen=True)
class ProjectedGradient(Solver):
    """Accelerated projected gradient ascent on the dual."""

    name: ClassVar[str] = "projected-gradient"

    def start(self, problem, rng, warm):
        # The largest eigenvalue of the dual's matrix, by power iteration.
        v = np.abs(np.sin(np.arange(1.0, problem.n + 1)))
        for _ in range(30):
            v /= np.linalg.norm(v)
            u = problem.margins(problem.combine(v)) + problem.delta * v
            L, v = float(v @ u), u
        zero = np.zeros(problem.n)
        return Ascent(problem, rng, None, alpha=zero, ahead=zero, L=1.05 * L)

    def step(self, state, stop):
        problem = state.problem
        w = problem.combine(state.ahead)
        gradient = 1.0 - problem.margins(w) - problem.delta * state.ahead
        alpha = np.clip(state.ahead + gradient / state.L, 0.0, problem.upper)
        t = (1.0 + np.sqrt(1.0 + 4.0 * state.t**2)) / 2.0
        state.ahead = alpha + (state.t - 1.0) / t * (alpha - state.alpha)
        state.alpha, state.t = alpha, t
        state.epochs += 1
        # An estimate. The loop has it checked once it looks good enough.
        state.primal = problem.primal(problem.combine(alpha))
        state.dual = problem.dual(alpha)

    def iterate(self, state):
        return None, state.alpha  # the model is w(alpha)


# %%
# ``solver=`` accepts the record in place of a name. It takes more epochs than the two
# solvers of dualgap; the picture shows how many.

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
histories = {}
for solver in (ProjectedGradient(), "dcd", "interior-point"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LinearSVC(
            C=0.1, solver=solver, tol=1e-5, max_iter=1000, random_state=0
        ).fit(X, y)
    print(model.certificate_)
    histories[model.certificate_.solver] = model.history_
display = ConvergenceDisplay(histories).plot(x="epoch")
display.ax_.set_xscale("log")
plt.show()

"""Shalev-Shwartz, Singer, Srebro and Cotter, Math. Prog. 127 (2011), Figs. 1 and 2.

min lambda/2 |w|^2 + (1/n) sum_i omega_i phi(y_i w.x_i), or y_i (w.x_i + b) in section 6

The paper has the hinge and omega_i = 1.
"""

from __future__ import annotations

import numpy as np

from .losses import Array, Phi, Rows

HINGE = Phi("hinge")


class PegasosTwin:
    """Sub-gradient steps of 1/(lambda t) on batches of rows."""

    bias = 0.0  # two subclasses move it

    def __init__(
        self, X: Array, y: Array, lam: float, phi: Phi = HINGE,
        omega: Array | None = None, project: bool = False,
    ):  # fmt: skip
        self.X, self.y, self.lam, self.phi = X, y, lam, phi
        self.omega = np.ones(len(X)) if omega is None else omega
        self.project = project
        self.t = 0
        self.w = np.zeros(X.shape[1])
        self.b = np.zeros(len(X))  # w = sum b_i y_i x_i
        self.past: list[tuple[Array, Array]] = []  # w_1, w_2, ... and their b

    def eta(self) -> float:
        """Return the length of step t."""
        return 1.0 / (self.lam * self.t)

    def margins(self, A: Rows) -> Array:
        """Return y_i (w.x_i + bias) of the rows A."""
        return self.y[A] * (self.X[A] @ self.w + self.bias)

    def slopes(self, A: Rows) -> Array:
        """Return -phi' at the margins of the rows A: [m < 1] for the hinge."""
        return self.omega[A] * self.phi.slope(self.margins(A))

    def step(self, A: Rows) -> None:
        """Make step t on the rows A."""
        self.past.append((self.w, self.b.copy()))
        self.t += 1
        g, eta, k = self.slopes(A), self.eta(), len(A)
        self.w = (1 - eta * self.lam) * self.w + eta / k * (g * self.y[A]) @ self.X[A]
        self.b = (1 - eta * self.lam) * self.b
        np.add.at(self.b, A, eta / k * g)
        norm = np.linalg.norm(self.w)
        if self.project and norm > 0:
            shrink = min(1.0, 1.0 / (np.sqrt(self.lam) * norm))
            self.w, self.b = shrink * self.w, shrink * self.b

    def average(self) -> tuple[Array, Array]:
        """Return the mean of w_1 ... w_T, and of its coefficients."""
        w, b = zip(*self.past, strict=True)
        return np.mean(w, axis=0), np.mean(b, axis=0)


class NORMATwin(PegasosTwin):
    """Kivinen, Smola and Williamson 2004, linear kernel, nothing truncated.

    f_{t+1} = (1 - eta lambda) f_t + eta [y f < 1] y k(x_t, .), one row a step.
    """

    def __init__(
        self, X: Array, y: Array, lam: float, phi: Phi, omega: Array, p: float
    ):
        super().__init__(X, y, lam, phi, omega)
        self.p = p

    def eta(self) -> float:
        """Return the length of step t: p/(lambda sqrt t)."""
        return self.p / (self.lam * float(np.sqrt(self.t)))


class SubgradientBias(PegasosTwin):
    """Pegasos with a bias outside of the norm, which takes sub-gradient steps too."""

    def slopes(self, A: Rows) -> Array:
        """Return -phi' at the margins, and move the bias along it."""
        slope = super().slopes(A)
        self.bias += slope @ self.y[A] / (len(A) * np.sqrt(self.t))
        return slope


class BatchBias(PegasosTwin):
    """Pegasos with the hinge and, in every step, the bias that is best for its rows.

    The derivative in b, the sum of omega_i over the negative rows with smaller kinks
    less the sum over the positive rows with larger ones, crosses 0 at the best kink.
    Its row takes what is missing there. Equal kinks count in the order of the batch.
    """

    def slopes(self, A: Rows) -> Array:
        """Return the slopes at the best bias, whose sum over y is 0."""
        y, omega = self.y[A], self.omega[A]
        kinks = y - self.X[A] @ self.w
        order = np.argsort(kinks, kind="stable")
        for p, j in enumerate(order):
            before, after = order[:p], order[p + 1 :]
            slope = np.zeros(len(A))
            slope[before] = np.where(y[before] < 0, omega[before], 0.0)
            slope[after] = np.where(y[after] > 0, omega[after], 0.0)
            slope[j] = -y[j] * (slope @ y)
            if -1e-12 <= slope[j] <= omega[j] + 1e-12:
                break
        slope[j] = np.clip(slope[j], 0.0, omega[j])
        self.bias = kinks[j]
        return slope

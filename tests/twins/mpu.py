"""The margin perceptron with unlearning, one unit update after the other.

Rows are extended by a coordinate of their own, y_k -> [y_k x_k, sqrt(delta_k) e_k], so
that the squared hinge needs no other rule than the hinge. No formula for multiple
updates here: a row is presented until it asks for none.
"""

from __future__ import annotations

import numpy as np


class MPU:
    def __init__(self, X, y, box, diagonal, s):
        self.Y = np.hstack([y[:, None] * X, np.diag(np.sqrt(diagonal))])
        self.d = X.shape[1]
        self.s, self.box, self.diagonal = s, box, diagonal
        self.a = np.zeros(self.Y.shape[1])
        self.n = np.zeros(len(X))
        self.learned = self.unlearned = 0
        self.unclear = 0  # decisions that rounding may turn

    def present(self, k):
        """One unit update of row k, or a fraction at its cap; 0 if it asks for none."""
        b, cap = 1.0 / self.s, self.box[k] / self.s
        p, half = self.a @ self.Y[k], 0.5 * self.Y[k] @ self.Y[k]
        step = 0.0
        self.unclear += abs(abs(p - b) - half) < 1e-11 * b
        if p < b - half and self.n[k] < cap:
            step = min(1.0, cap - self.n[k])
        elif p > b + half and self.n[k] > 0.0:
            step = -min(1.0, self.n[k])
        self.a = self.a + step * self.Y[k]
        self.n[k] += step
        return step

    def visit(self, k):
        first = step = self.present(k)
        while step != 0.0:
            step = self.present(k)
            assert step * first >= 0.0  # never back and forth
        self.learned += first > 0.0
        self.unlearned += first < 0.0

    def refine(self):
        self.s /= 2
        self.a, self.n = 2 * self.a, 2 * self.n

    @property
    def updates(self):
        return self.learned + self.unlearned

    @property
    def alpha(self):
        return self.s * self.n

    @property
    def w(self):
        return self.s * self.a[: self.d]

"""A step of Newton's method for the squared hinge, by conjugate gradients.

min P(w) = 1/2 |w|^2 + sum_i c_i max(0, u_i)^2,  u_i = 1 - z_i.w,  z_i = y_i x_i

H = I + 2 sum of c_i z_i z_i' over the rows u_i > 0 is preconditioned by I + k M. M is
the mean of all z_i z_i', and k = 2 sum of c_i over the rows u_i > 0. The next w has the
least P in the span of the step, w and the constant feature, which is the last column.
"""

from __future__ import annotations

import numpy as np


class SharedNewton:
    def __init__(self, Z, c, residual=0.1):
        self.Z, self.c, self.residual = Z, c, residual
        self.M = Z.T @ Z / len(Z)
        k = 2 * c.sum()
        self.w = np.linalg.solve(np.eye(len(self.M)) + k * self.M, 2 * c @ Z)

    def objective(self, w):
        return w @ w / 2 + self.c @ np.maximum(0, 1 - self.Z @ w) ** 2

    def gradient(self, w):
        return w - 2 * (self.c * np.maximum(0, 1 - self.Z @ w)) @ self.Z

    def direction(self):
        active = self.Z @ self.w < 1
        Z, c = self.Z[active], self.c[active]
        precondition = np.linalg.inv(np.eye(len(self.M)) + 2 * c.sum() * self.M)
        r = -self.gradient(self.w)
        if self.residual == 0.0:  # the exact step
            H = np.eye(len(r)) + 2 * (Z.T * c) @ Z
            return np.linalg.solve(H, r)
        s, p = 0 * r, precondition @ r
        left = first = r @ p
        while left > self.residual * first:
            h = p + 2 * (c * (Z @ p)) @ Z
            step = left / (p @ h)
            s, r = s + step * p, r - step * h
            before, left = left, r @ precondition @ r
            p = precondition @ r + left / before * p
        return s

    def iterate(self):
        """The least P in the span, by Newton's method with halved steps."""
        basis = np.stack([self.direction(), self.w, np.eye(len(self.w))[-1]])
        for _ in range(100):
            active = self.Z @ self.w < 1
            images, c = self.Z[active] @ basis.T, self.c[active]
            bent = basis @ basis.T + 2 * (images.T * c) @ images
            step = -np.linalg.solve(bent, basis @ self.gradient(self.w)) @ basis
            while self.objective(self.w + step) > self.objective(self.w):
                step = step / 2
            self.w = self.w + step

"""A step of Newton's method for the squared hinge, by conjugate gradients.

min P(w) = 1/2 |w|^2 + sum_i c_i max(0, u_i)^2,  u_i = 1 - z_i.w,  z_i = y_i x_i

H = I + 2 sum of c_i z_i z_i' over the rows u_i > 0 is preconditioned by I + k M. M is
the mean of all z_i z_i', and k = 2 sum of c_i over the rows u_i > 0. Where more than
`most` of these rows are active, the step is the preconditioned gradient.
"""

from __future__ import annotations

import numpy as np


class SharedNewton:
    def __init__(self, Z, c, most, residual=0.1):
        self.Z, self.c, self.most, self.residual = Z, c, most, residual
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
        if len(Z) > self.most:
            return precondition @ r
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
        """The least P along the direction, from the sorted breakpoints of P."""
        s = self.direction()
        u, v = 1 - self.Z @ self.w, self.Z @ s
        with np.errstate(divide="ignore", invalid="ignore"):
            breaks = u / v
        breaks = np.sort(breaks[np.isfinite(breaks) & (breaks > 0)])
        for low, high in zip([0, *breaks], [*breaks, np.inf], strict=True):
            middle = (low + high) / 2 if np.isfinite(high) else low + 1
            on = self.c * (u - middle * v > 0)
            slope = self.w @ s - 2 * (on * v) @ u
            bent = s @ s + 2 * (on * v) @ v
            if -slope / bent <= high:
                break
        self.w = self.w - slope / bent * s

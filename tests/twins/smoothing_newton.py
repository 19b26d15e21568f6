"""Newton's method on P with a smoothed loss, and a rough minimum along the step.

min 1/2 |Jw|^2 + sum_i c_i l_tau(u_i),  u = 1 - Z w, Z the rows y_i x_i, with

    l_tau(u) = max over 0 <= b <= slope of b (u + tau/2) - (curvature + tau) b^2/2

J = I, or with a 0 at the end for a bias that is not penalised. Given offsets o, the
u_i are 1 + o_i - z_i.
"""

from __future__ import annotations

import numpy as np

ENOUGH = 0.1  # of the slope along the step may be left
WHOLE = 0.4  # by a step of 1, which is tried
LONG = 0.6  # after one as long as this, but not every 20th time


class SmoothingNewton:
    def __init__(self, Z, c, slope, curvature, w, tau, free_bias=False, offset=0.0):
        self.Z, self.c, self.slope, self.curvature = Z, c, slope, curvature
        self.w, self.tau, self.offset = np.array(w, float), tau, offset
        self.J, self.t, self.steps = np.eye(Z.shape[1]), 1.0, 0
        if free_bias:
            self.J[-1, -1] = 0.0

    def shifted(self, w):
        return 1 + self.offset - self.Z @ w + self.tau / 2

    def best(self, w):
        """The b without its bounds."""
        return self.shifted(w) / (self.curvature + self.tau)

    @property
    def alpha(self):
        return self.c * np.clip(self.best(self.w), 0, self.slope)

    def objective(self, w):
        b = np.clip(self.best(w), 0, self.slope)
        losses = b * self.shifted(w)
        losses -= (self.curvature + self.tau) * b**2 / 2
        return w @ self.J @ w / 2 + self.c @ losses

    def gradient(self, w):
        b = np.clip(self.best(w), 0, self.slope)
        return self.J @ w - self.Z.T @ (self.c * b)

    def hessian(self, w):
        b = self.best(w)
        theta = self.c / (self.curvature + self.tau) * ((b > 0) & (b < self.slope))
        return self.J + self.Z.T @ (theta[:, None] * self.Z)

    def iterate(self, limit=np.inf):
        """A step; how far w moves."""
        H = self.hessian(self.w)
        H += np.diag(1e-13 * np.diag(H) + 1e-15 * np.diag(H).max())
        s = -np.linalg.solve(H, self.gradient(self.w))
        first = abs(self.gradient(self.w) @ s)
        most = limit / np.linalg.norm(s)
        self.steps += 1
        whole = most >= 1 and self.t >= LONG and self.steps % 20
        whole = whole and abs(self.gradient(self.w + s) @ s) <= WHOLE * first
        whole = whole and self.objective(self.w + s) < self.objective(self.w)
        low, high, t = 0.0, np.inf, min(1.0, most)
        for _ in range(0 if whole else 60):
            slope = self.gradient(self.w + t * s) @ s
            if abs(slope) <= ENOUGH * first or (slope < 0 and t == most):
                break
            low, high = (t, high) if slope < 0 else (low, t)
            next_ = t - slope / (s @ self.hessian(self.w + t * s) @ s)
            if not low < next_ < high:
                next_ = (low + min(high, 4 * t)) / 2
            t, before = min(next_, most), t
            if t == before:
                break
        self.w, self.t = self.w + t * s, t
        return t * np.linalg.norm(s)

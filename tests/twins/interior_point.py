"""Mehrotra's predictor-corrector with Gondzio's correctors, on the full Newton system.

min 1/2 |Jw|^2 + sum_i c_i phi(z_i),  z = Z w, Z the rows y_i x_i, through

    J w = Z'a,   z - 1 + delta a - s + v = 0,   s a = g mu,   v (U - a) = g mu

All four equations are solved together by numpy.linalg.solve: no normal equations, no
elimination. g = c/mean(c). J = I, or with a 0 at the end for a bias that is not
penalised. Where U is infinite, v and its equation do not exist. `reg` is the solver's
proximal term.
"""

from __future__ import annotations

import numpy as np

BACK = 0.995  # of the way to the boundary
TRIAL, LOW, HIGH, MOST = 0.3, 0.1, 10.0, 3  # Gondzio's


def centre(g, delta, U, mu):
    """The a in (0, U) with g + delta a = mu/a - mu/(U - a), by bisection."""
    bounded = np.isfinite(U)
    low = np.zeros(len(g))
    high = U if bounded.all() else 1e3 * (np.abs(g) + 1 + mu + delta) / delta
    for _ in range(200):
        a = 0.5 * (low + high)
        right = mu / a - np.where(bounded, mu / (U - a), 0.0)
        low, high = np.where(g + delta * a < right, [a, high], [low, a])
    return 0.5 * (low + high)


class InteriorPoint:
    def __init__(self, Z, U, delta, w, mu, weight, free_bias=False, reg=0.0):
        self.weight = weight
        self.Z, self.U, self.delta, self.reg = Z, U, delta, reg
        self.m, self.d = Z.shape
        self.bounded = bool(np.isfinite(U).all())
        self.J = np.eye(self.d)
        if free_bias:
            self.J[-1, -1] = 0.0
        self.w = np.array(w, float)
        g = Z @ self.w - 1
        self.a = centre(g, delta, U, weight * mu)
        self.b = U - self.a if self.bounded else np.ones(self.m)
        self.s = weight * mu / self.a
        self.v = weight * mu / self.b if self.bounded else np.zeros(self.m)

    @property
    def mu(self):
        total = self.a @ self.s + (self.b @ self.v if self.bounded else 0.0)
        return total / (self.m * (2 if self.bounded else 1))

    def newton(self, t, u):
        """(dw, da, ds, dv) for the targets t of a s and u of b v."""
        m, d, one, none = self.m, self.d, np.eye(self.m), np.zeros((self.m, self.m))
        a, b, s, v = map(np.diag, (self.a, self.b, self.s, self.v))
        off = np.zeros((m, d))
        rows = [
            [self.J, -self.Z.T, off.T, off.T],
            [self.Z, np.diag(self.delta + self.reg), -one, one],
            [off, s, a, none],
            [off, -v, none, b if self.bounded else one],
        ]
        z = self.Z @ self.w
        right = [
            self.Z.T @ self.a - self.J @ self.w,
            1 - z - self.delta * self.a + self.s - self.v,
            t - self.a * self.s,
            u - self.b * self.v if self.bounded else np.zeros(m),
        ]
        step = np.linalg.solve(np.block(rows), np.concatenate(right))
        return np.split(step, [d, d + m, d + 2 * m])

    def longest(self, da, ds, dv):
        """The step at which the first of a, s, b, v is 0."""
        pairs = [(self.a, da), (self.s, ds)]
        if self.bounded:
            pairs += [(self.b, -da), (self.v, dv)]
        return 1 / max(np.max(-change / value) for value, change in pairs)

    def products(self, step, da, ds, dv):
        """a s and b v after a step."""
        first = (self.a + step * da) * (self.s + step * ds)
        return first, (self.b - step * da) * (self.v + step * dv) * self.bounded

    def iterate(self):
        zero = np.zeros(self.m)
        _, da, ds, dv = self.newton(zero, zero)
        far = self.longest(da, ds, dv)
        far = min(1.0, far) if far > 0 else 1.0
        first, second = self.products(far, da, ds, dv)
        after = (first.sum() + second.sum()) / (self.m * (1 + self.bounded))
        target = np.clip(after / self.mu, 0, 1) ** 3 * self.mu

        target = target * self.weight
        t, u = target - da * ds, (target + da * dv) * self.bounded
        dw, da, ds, dv = self.newton(t, u)
        step = self.longest(da, ds, dv)
        for _ in range(MOST):
            if step >= 0.9:
                break
            change = [
                np.maximum(np.clip(p, LOW * target, HIGH * target) - p, -HIGH * target)
                for p in self.products(min(1.0, step + TRIAL), da, ds, dv)
            ]
            t2, u2 = t + change[0], u + change[1] * self.bounded
            trial = self.newton(t2, u2)
            longer = self.longest(*trial[1:])
            if longer < 1.01 * step:
                break
            last = longer < 1.1 * step
            (dw, da, ds, dv), t, u, step = trial, t2, u2, longer
            if last:
                break
        step = min(1.0, BACK * step)
        self.w += step * dw
        self.a += step * da
        self.s += step * ds
        if self.bounded:
            self.b -= step * da
            self.v += step * dv
        return step

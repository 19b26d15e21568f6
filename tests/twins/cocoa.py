"""CoCoA+ (Ma et al., ICML 2015), accelerated: K pieces, one after the other.

On the scale of the paper's algorithm, not of the package's: duals a_i in [0, U_i], the
subproblem with its sigma, rows firmly at a bound asleep.
"""

from __future__ import annotations

import numpy as np


class Piece:
    """Rows of one machine, with duals a and the step before."""

    def __init__(self, X, y, U, D, random):
        self.X, self.y, self.U, self.D, self.random = X, y, U, D, random
        self.q = (X * X).sum(axis=1)
        self.a = np.zeros(len(X))
        self.before = None  # (a, w) where the last step began
        self.asleep = [0] * len(X)
        self.last = [0] * len(X)
        self.threshold = None

    def A(self, b):
        return self.X.T @ (b * self.y)

    def propose(self, w, sigma, epochs, beta):
        """A feasible a + b, from some passes on the subproblem."""
        a, u = self.a.copy(), w.copy()
        G = self.y * (self.X @ w) - 1 + self.D * a
        stays = ((a == 0) & (G >= 0)) | ((a == self.U) & (G <= 0))
        for i in np.flatnonzero(~stays):  # the others have moved w
            self.asleep[i] = 0
        if beta > 0 and self.before is not None:
            a_before, w_before = self.before
            beyond = self.a + beta * (self.a - a_before)
            a = np.clip(beyond, 0, self.U)
            u = w + beta * (w - w_before) + sigma * self.A(a - beyond)
            for i in np.flatnonzero(self.a != a_before):
                self.asleep[i] = 0
        self.before = self.a.copy(), w.copy()
        for _ in range(epochs):
            moves, moving, rows = 0, [], self.order()
            learns = self.threshold is None
            threshold = np.inf if learns else self.threshold
            for t, i in enumerate(rows):
                if learns and 4 * t >= len(rows):
                    threshold = sum(moving) / t
                G = self.y[i] * (u @ self.X[i]) - 1 + self.D[i] * a[i]
                if (a[i] == 0 and G >= 0) or (a[i] == self.U[i] and G <= 0):
                    length = 0
                    if abs(G) > threshold:
                        far = 254 * threshold <= abs(G)
                        away = 127 if far else int(0.5 * abs(G) / threshold)
                        length = min(max(2 * self.last[i] + 1, away), 127)
                    self.asleep[i] = self.last[i] = length
                    moving.append(0.0)
                    continue
                self.last[i] = 0
                moving.append(abs(G))
                Q = sigma * self.q[i] + self.D[i]
                new = self.U[i] if Q == 0 else min(max(a[i] - G / Q, 0), self.U[i])
                moves += new != a[i]
                u = u + sigma * (new - a[i]) * self.y[i] * self.X[i]
                a[i] = new
            if moving:
                self.threshold = sum(moving) / len(moving)
            if moves == 0:
                break
        return a

    def order(self):
        awake = [i for i, s in enumerate(self.asleep) if s == 0]
        self.asleep = [max(s - 1, 0) for s in self.asleep]
        self.random.shuffle(awake)
        return awake


class CoCoA:
    """Rounds over the pieces; `gamma` and D are exact."""

    def __init__(self, pieces, epochs, acceleration=True):
        self.pieces, self.epochs, self.acceleration = pieces, epochs, acceleration
        self.w = np.zeros(pieces[0].X.shape[1])
        self.t = 1.0

    def dual(self, points):
        w = sum(p.A(a) for p, a in zip(self.pieces, points, strict=True))
        value = sum(
            a.sum() - p.D @ (a * a) / 2
            for p, a in zip(self.pieces, points, strict=True)
        )
        return value - w @ w / 2

    def round(self):
        K = len(self.pieces)
        t = (1 + np.sqrt(1 + 4 * self.t**2)) / 2
        beta = (self.t - 1) / t if self.acceleration else 0.0
        now = [p.a for p in self.pieces]
        there = [p.propose(self.w, K, self.epochs, beta) for p in self.pieces]
        # D on the line is a parabola: three values of it tell where it is largest.
        D0, D1 = self.dual(now), self.dual(there)
        half = self.dual([(a + b) / 2 for a, b in zip(now, there, strict=True)])
        bend = D0 + D1 - 2 * half  # -curvature/4
        best = (4 * half - D1 - 3 * D0) / (-4 * bend) if bend < 0 else 1.0
        gamma = min(max(best, 0.0), 1.0)
        for p, a in zip(self.pieces, there, strict=True):
            p.a = a if gamma == 1 else p.a + gamma * (a - p.a)
        self.w = sum(p.A(p.a) for p in self.pieces)
        self.t = t if best >= 1.5 else 1.0
        return gamma

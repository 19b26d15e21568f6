"""Ho and Lin, JMLR 13, 2012, with rows that sleep; Chou, Lin and Lin, SDM 2020."""

from __future__ import annotations

import numpy as np


class RegressionDCD:
    """min 1/2 |sum b_i x_i|^2 + 1/2 sum D_ii b_i^2 - y.b + epsilon |b|_1.

    The box is L_i <= b_i <= U_i; theirs has L = -U, and the pinball loss another.

    The step is theirs by cases (their eqs. 24 to 27): with G the derivative of the
    smooth part and H its curvature, -(G + epsilon)/H if that leaves b_i positive,
    -(G - epsilon)/H if negative, else to 0.
    """

    def __init__(self, X, y, L, U, D, epsilon):
        self.X, self.y, self.D, self.epsilon = X, y, D, epsilon
        self.L, self.U = L, U
        self.H = (X * X).sum(axis=1) + D
        self.b = np.zeros(len(X))
        self.w = np.zeros(X.shape[1])
        self.asleep = [0] * len(X)
        self.last = [0] * len(X)
        self.threshold = np.inf
        self.unclear = set()  # rows that rounding may send to sleep or not

    def order(self, random):
        awake = [i for i, s in enumerate(self.asleep) if s == 0]
        self.asleep = [max(s - 1, 0) for s in self.asleep]
        random.shuffle(awake)
        return awake

    def violation(self, i, G):
        """Return how far the row violates optimality; negative if it does not."""
        b, U, e = self.b[i], self.U[i], self.epsilon
        if U == 0.0:
            return -np.inf
        if b == 0.0:
            return abs(G) - e
        if b > 0.0:
            return G + e if b == U else abs(G + e)
        return e - G if b == self.L[i] else abs(G - e)

    def visit(self, i):
        b, e, H, U = self.b[i], self.epsilon, self.H[i], self.U[i]
        G = self.X[i] @ self.w - self.y[i] + self.D[i] * b
        lack = self.violation(i, G)
        if min(abs(lack), abs(-lack - self.threshold)) < 1e-11:
            self.unclear.add(i)
        if lack <= 0.0:
            firm = -lack > self.threshold
            self.last[i] = min(2 * self.last[i] + 1, 127) if firm else 0
            self.asleep[i] = self.last[i]
            return 0.0
        self.last[i] = 0
        if H == 0.0:
            new = 0.0 if abs(G) <= e else self.L[i] if G > 0.0 else U
        elif G + e < H * b:
            new = b - (G + e) / H
        elif G - e > H * b:
            new = b - (G - e) / H
        else:
            new = 0.0
        new = min(max(new, self.L[i]), U)
        self.w = self.w + (new - b) * self.X[i]
        self.b[i] = new
        return lack

    def epoch(self, rows):
        moving = [self.visit(i) for i in rows]
        if moving:
            self.threshold = sum(moving) / len(moving)


def pair_pass(X, upper, a, w, scores):
    """One pass over pairs for one class: a tenth of the rows, the worst ones first.

    `scores` are X @ w. A pair that has moved has equal ones but for rounding, which
    then decides the order.
    """
    a, w = a.copy(), w.copy()
    order = [i for i in np.argsort(scores, kind="stable") if upper[i] > 0.0]
    rise = [i for i in order if a[i] < upper[i]]
    fall = [i for i in order[::-1] if a[i] > 0.0]
    most = min(len(rise), len(fall), max(len(X) // 10, 1))
    for i, j in zip(rise[:most], fall[:most], strict=True):
        if scores[i] >= scores[j]:
            continue
        difference = X[i] - X[j]
        curvature = difference @ difference
        if curvature <= 1e-14 * (X[i] @ X[i] + X[j] @ X[j]):
            continue
        t = -(w @ difference) / curvature
        t = min(max(t, -a[i], a[j] - upper[j]), upper[i] - a[i], a[j])
        a[i] = upper[i] if t == upper[i] - a[i] else 0.0 if t == -a[i] else a[i] + t
        a[j] = upper[j] if t == a[j] - upper[j] else 0.0 if t == a[j] else a[j] - t
        w = w + t * difference
    return a, w


class Newton:
    """min 1/2 |w|^2 + sum c_i max(0, |y_i - x_i.w| - epsilon)^2, by numpy.linalg.solve.

    The step length is the minimiser along the step, by bisection on the derivative.
    """

    def __init__(self, X, y, c, epsilon):
        self.X, self.y, self.c, self.epsilon = X, y, c, epsilon
        self.w = np.zeros(X.shape[1])

    def duals(self, w):
        r = self.y - self.X @ w
        return 2 * self.c * np.maximum(np.abs(r) - self.epsilon, 0) * np.sign(r)

    def gradient(self, w):
        return w - self.X.T @ self.duals(w)

    def step(self):
        outside = np.abs(self.y - self.X @ self.w) > self.epsilon
        A = self.X[outside]
        H = np.eye(len(self.w)) + 2 * A.T @ (self.c[outside, None] * A)
        s = -np.linalg.solve(H, self.gradient(self.w))
        low, high = 0.0, 64.0
        for _ in range(200):
            t = 0.5 * (low + high)
            if self.gradient(self.w + t * s) @ s < 0:
                low = t
            else:
                high = t
        self.w = self.w + t * s

"""Damped Newton steps and dual coordinate descent for logistic regression, in NumPy.

Source: C.-J. Lin, R. C. Weng, S. S. Keerthi, JMLR 9, 2008, with exact directions; H.-F.
Yu, F.-L. Huang, C.-J. Lin, Machine Learning 85, 2011, Algorithm 3, without a bias.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, expit


class Newton:
    """Two or more classes, without a bias; W has a row per class, or one for two."""

    def __init__(self, X, codes, cost, classes):
        self.X, self.cost = X, cost
        self.Y = np.eye(classes)[codes][:, classes == 2 :]
        self.W = np.zeros((self.Y.shape[1], X.shape[1]))

    def probabilities(self, W):
        S = self.X @ W.T
        if S.shape[1] == 1:
            return 1.0 / (1.0 + np.exp(-S))
        E = np.exp(S - S.max(axis=1, keepdims=True))
        return E / E.sum(axis=1, keepdims=True)

    def primal(self, W):
        P = self.probabilities(W)
        if len(W) == 1:
            own = np.where(self.Y[:, 0] == 1, P[:, 0], 1.0 - P[:, 0])
        else:
            own = (P * self.Y).sum(axis=1)
        return 0.5 * (W**2).sum() - self.cost @ np.log(own)

    def gradient(self, W):
        P = self.probabilities(W)
        return W - ((self.Y - P) * self.cost[:, None]).T @ self.X

    def hessian(self, W):
        P, (K, d) = self.probabilities(W), W.shape
        H = np.eye(K * d)
        for p, c, x in zip(P, self.cost, self.X, strict=True):
            H += np.kron(c * (np.diag(p) - np.outer(p, p)), np.outer(x, x))
        return H

    def step(self):
        g = self.gradient(self.W)
        s = -np.linalg.solve(self.hessian(self.W), g.ravel()).reshape(g.shape)
        t = 1.0
        while (
            self.primal(self.W + t * s) > self.primal(self.W) + 1e-4 * t * (g * s).sum()
        ):
            t *= 0.5
        self.W = self.W + t * s


class DualCoordinate:
    """Two classes with labels y of -1 and 1, over 0 <= a_i <= c_i."""

    def __init__(self, X, y, cost, a):
        self.X, self.y, self.cost, self.a = X, y, cost, a.copy()

    @property
    def w(self):
        return (self.y * self.a) @ self.X

    @property
    def dual(self):
        b = self.a / self.cost
        entropy = self.cost @ (entr(b) + entr(1.0 - b))
        return entropy - 0.5 * self.w @ self.w

    def share(self, i):
        """Return the share of row i in the gap at w."""
        b, margin = self.a[i] / self.cost[i], self.y[i] * self.X[i] @ self.w
        loss = np.logaddexp(0.0, -margin) - entr(b) - entr(1.0 - b)
        return self.cost[i] * loss + self.a[i] * margin

    def visit(self, i):
        """Maximise the dual in a_i, through the root t of its derivative."""
        c, x, a = self.cost[i], self.X[i], self.a[i]
        margin, q = self.y[i] * x @ self.w, x @ x

        def slope(t):
            return t + margin + q * (c * expit(t) - a)

        most = abs(margin) + q * c + 1.0
        self.a[i] = c * expit(brentq(slope, -most, most, xtol=1e-15, rtol=1e-15))

"""Damped Newton steps for logistic regression, in plain NumPy.

Source: C.-J. Lin, R. C. Weng, S. S. Keerthi, JMLR 9, 2008, with exact directions.
"""

from __future__ import annotations

import numpy as np


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

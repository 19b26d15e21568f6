"""Keerthi, Sundararajan, Chang, Hsieh and Lin, KDD 2008, section 3, in plain NumPy.

The problem of one row is solved as in section 3.1: by sorting, without projections.
"""

from __future__ import annotations

import numpy as np


class CrammerSinger:
    """min 1/2 sum_m |w_m|^2 + sum_i sum_m e_im a_im, a_im <= C_im, sum_m a_im = 0.

    Rows that do not change sleep for 1, 3, 7, ... 31 epochs.
    """

    def __init__(self, X, y, cost, K):
        self.X, self.y, self.cost, self.K = X, y, cost, K
        self.A = (X * X).sum(axis=1)
        self.a = np.zeros((len(X), K))
        self.W = np.zeros((K, X.shape[1]))
        self.asleep, self.last = [0] * len(X), [0] * len(X)

    def order(self, random):
        """Rows of the next epoch."""
        awake = [i for i, s in enumerate(self.asleep) if s == 0]
        self.asleep = [max(s - 1, 0) for s in self.asleep]
        random.shuffle(awake)
        return awake

    def best(self, i):
        """The duals of row i that are best, the others fixed."""
        y, c, A, K = self.y[i], self.cost[i], self.A[i], self.K
        if c == 0.0:
            return np.zeros(K)
        if A == 0.0:
            a = np.zeros(K)
            a[y], a[1 if y == 0 else 0] = c, -c
            return a
        e = np.arange(K) != y
        C = np.where(e, 0.0, c)
        B = self.W @ self.X[i] + e - A * self.a[i]
        D = np.sort(B + A * C)[::-1]
        beta, r = D[0] - A * c, 1
        while r < K and beta < r * D[r]:
            beta += D[r]
            r += 1
        a = np.minimum(C, (beta / r - B) / A)
        return a

    def visit(self, i):
        new = self.best(i)
        changed = bool((new != self.a[i]).any())
        self.W = self.W + np.outer(new - self.a[i], self.X[i])
        self.a[i] = new
        self.last[i] = 0 if changed else min(2 * self.last[i] + 1, 31)
        self.asleep[i] = self.last[i]
        return changed

    def dual(self):
        e = np.arange(self.K) != np.asarray(self.y)[:, None]
        return -0.5 * (self.W**2).sum() - (self.a * e).sum()

    def primal(self):
        scores = self.X @ self.W.T
        own = scores[np.arange(len(self.y)), self.y]
        e = np.arange(self.K) != np.asarray(self.y)[:, None]
        loss = (scores - own[:, None] + e).max(axis=1)
        return 0.5 * (self.W**2).sum() + self.cost @ loss

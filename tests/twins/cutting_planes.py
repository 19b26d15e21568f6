"""SVMperf's one-slack cutting planes (Joachims 2006) and OCAS (Franc and Sonnenburg).

F(w) = 1/2 |w|^2 + R(w),  R(w) = sum_i c_i max(0, 1 - y_i w.x_i)

The reduced problem is solved by trying every support, the line search by walking over
the sorted kinks, and no plane is ever dropped. Few planes only.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np


def reduced_dual(A, b):
    """max b.beta - 1/2 |A' beta|^2 over the simplex (A has one plane per row)."""
    H, best, value = A @ A.T, None, -np.inf
    for size in range(1, min(len(b), A.shape[1] + 1) + 1):
        for support in map(list, combinations(range(len(b)), size)):
            kkt = np.ones((size + 1, size + 1))
            kkt[:size, :size], kkt[size, size] = H[np.ix_(support, support)], 0.0
            beta = np.linalg.lstsq(kkt, np.append(b[support], 1.0), rcond=None)[0][:-1]
            # Any point of the simplex is one to compare: no weight is too negative.
            beta = np.maximum(beta, 0.0)
            if beta.sum() == 0.0:
                continue
            beta /= beta.sum()
            v = beta @ A[support]
            if beta @ b[support] - 0.5 * v @ v > value:
                value = beta @ b[support] - 0.5 * v @ v
                best = np.zeros(len(b))
                best[support] = beta
    return best, value


def line_search(c, old, new, W_old, W):
    """argmin over t >= 0 of F(W_old + t (W - W_old)); old, new are the outputs."""
    A0 = (W - W_old) @ (W - W_old)
    B0 = W_old @ (W - W_old)
    B, C = c * (old - new), c * (1.0 - old)
    with np.errstate(divide="ignore", invalid="ignore"):
        kinks = np.where(B != 0.0, -C / B, -1.0)
    active = np.where(kinks > 0.0, B < 0.0, (B > 0.0) | ((C > 0.0) & (B == 0.0)))
    t, gradient = 0.0, B0 + B[active].sum()
    if gradient >= 0.0:
        return 0.0
    for i in np.argsort(kinks):
        if kinks[i] <= 0.0:
            continue
        before = gradient + A0 * (kinks[i] - t)
        if before >= 0.0:
            break
        t, gradient = kinks[i], before + abs(B[i])
        if gradient >= 0.0:
            return t
    return t - gradient / A0


class CuttingPlanes:
    """One-slack cutting planes if mu is None, else OCAS."""

    def __init__(self, X, y, c, mu=None):
        self.Z, self.c, self.mu = y[:, None] * X, c, mu
        self.W = np.zeros(X.shape[1])  # the best point, or the last
        self.members = np.ones(len(X), dtype=bool)
        self.sets = [np.zeros(len(X), dtype=bool)]
        self.A, self.b = np.zeros((1, X.shape[1])), np.zeros(1)

    def step(self):
        in_set = self.c * self.members
        self.sets.append(self.members)
        self.A = np.vstack([self.A, in_set @ self.Z])
        self.b = np.append(self.b, in_set.sum())
        beta, self.Q_D = reduced_dual(self.A, self.b)
        W = beta @ self.A
        self.alpha = self.c * (beta @ np.array(self.sets))
        old, new = self.Z @ self.W, self.Z @ W
        if self.mu is None:
            t = t2 = 1.0
        else:
            t = line_search(self.c, old, new, self.W, W)
            t2 = t + self.mu * (1.0 - t)
        self.way = np.abs(W - self.W).max()  # as short as rounding: t is anything
        self.at_cut = old + t2 * (new - old)
        self.members = self.at_cut <= 1.0
        self.W = self.W + t * (W - self.W)
        self.Q_P = 0.5 * self.W @ self.W + self.c @ np.maximum(0, 1 - self.Z @ self.W)

"""Hsieh, Chang, Lin, Keerthi and Sundararajan, ICML 2008, Algorithms 1 and 3."""

from __future__ import annotations

import numpy as np


class DCD:
    """min f(a) = 1/2 |sum a_i y_i x_i|^2 + 1/2 sum D_ii a_i^2 - sum a_i, 0 <= a <= U.

    A row that shrinking removes gives its place to the last one of the pass: the
    paper leaves the order open.
    """

    def __init__(self, X, y, U, D):
        self.X, self.y, self.U, self.D = X, y, U, D
        self.Q = (X * X).sum(axis=1) + D  # Q_ii
        self.a = np.zeros(len(X))
        self.w = np.zeros(X.shape[1])
        self.M_bar, self.m_bar = np.inf, -np.inf
        self.closest = np.inf  # of a gradient to the bound it was compared with

    def visit(self, i):
        """One coordinate. Returns its projected gradient; None: shrunk away."""
        X, y, U = self.X, self.y, self.U
        G = y[i] * (self.w @ X[i]) - 1.0 + self.D[i] * self.a[i]
        PG = G
        if self.a[i] == 0.0:
            PG = min(PG, 0.0)
            self.closest = min(self.closest, abs(G - self.M_bar))
            if G > self.M_bar:
                return None
        if self.a[i] == U[i]:
            PG = max(PG, 0.0)
            self.closest = min(self.closest, abs(G - self.m_bar))
            if G < self.m_bar:
                return None
        if PG != 0.0:
            old = self.a[i]
            if self.Q[i] == 0.0:  # f is linear in a_i and G = -1
                self.a[i] = U[i]
            else:
                self.a[i] = min(max(old - G / self.Q[i], 0.0), U[i])
            self.w = self.w + (self.a[i] - old) * y[i] * X[i]
        return PG

    def epoch(self, rows):
        """One pass over the list `rows`, which the shrunk ones leave."""
        seen = []
        t = 0
        while t < len(rows):
            PG = self.visit(rows[t])
            if PG is None:
                rows[t] = rows[-1]
                rows.pop()
            else:
                seen.append(PG)
                t += 1
        M, m = max(seen, default=-np.inf), min(seen, default=np.inf)
        self.M_bar = M if M > 0 else np.inf
        self.m_bar = m if m < 0 else -np.inf
        return M, m


class SleepingDCD:
    """Dual coordinate descent that skips rows at a bound for 1, 3, 7, ... 127 epochs.

    A row with gradient G is skipped for |G|/(2 threshold) epochs if that is more. In
    the first epoch the threshold is the mean projected gradient so far, from a quarter
    of the rows on. `omega` over-relaxes the steps. `chunk` rows in a row are visited
    together; the generator shuffles the chunks, and an incomplete chunk comes last.
    With `modified_sgd` the first epoch is the one of twins/sdca.py.

    `lengths` holds, for every row visited in the last epoch, the sleeps that a gradient
    within 1e-9 of the computed one would give. There is one unless rounding decides.
    """

    def __init__(self, X, y, U, D, omega=1.0, modified_sgd=False):
        self.X, self.y, self.U, self.D = X, y, U, D
        self.Q = (X * X).sum(axis=1)
        self.a = np.zeros(len(X))
        self.w = np.zeros(X.shape[1])
        self.omega, self.modified_sgd, self.longest = omega, modified_sgd, 127
        self.asleep = [0] * len(X)
        self.last = [0] * len(X)
        self.lengths = {}
        self.threshold = None

    def follow(self, a, w, asleep, last, threshold):
        """Go on from this state, so that no difference adds up."""
        self.a, self.w = a.copy(), w.copy()
        self.asleep, self.last = asleep.tolist(), last.tolist()
        self.threshold = None if np.isnan(threshold) else threshold

    def order(self, random, chunk=1):
        """Rows of the next epoch."""
        awake = [i for i, s in enumerate(self.asleep) if s == 0]
        self.asleep = [max(s - 1, 0) for s in self.asleep]
        chunk = min(chunk, max(len(awake) // 1000, 1))
        whole = len(awake) // chunk
        chunks = [awake[k * chunk : (k + 1) * chunk] for k in range(whole)]
        random.shuffle(chunks)
        return [i for part in chunks for i in part] + awake[whole * chunk :]

    def rests(self, i, G) -> bool:
        """Whether row i is at a bound and not drawn off it."""
        return (self.a[i] == 0.0 and G >= 0.0) or (self.a[i] == self.U[i] and G <= 0.0)

    def length(self, i, G, threshold):
        """Return for how many epochs to skip row i with gradient G."""
        if not self.rests(i, G) or abs(G) <= threshold:
            return 0
        far = self.longest * threshold <= 0.5 * abs(G)
        away = self.longest if far else int(0.5 * abs(G) / threshold)
        return min(max(2 * self.last[i] + 1, away), self.longest)

    def visit(self, i, threshold, scale=1.0, share=1.0):
        """One coordinate, of a w `scale` times as long and a row `share` as heavy.

        Returns the size of its projected gradient.
        """
        a, U = self.a[i], self.U[i]
        margin = scale * self.y[i] * (self.w @ self.X[i])
        G = margin - 1.0 + self.D[i] * a
        off = 1e-9 * (1.0 + abs(G))
        self.lengths[i] = {self.length(i, g, threshold) for g in (G - off, G, G + off)}
        length = self.length(i, G, threshold)
        self.asleep[i] = self.last[i] = length
        if self.rests(i, G):
            return 0.0
        Q = share * self.Q[i] + self.D[i]
        step = np.inf if Q == 0.0 else -self.omega * G / Q
        self.a[i] = min(max(a + step, 0.0), U)
        self.w = self.w + (self.a[i] - a) * self.y[i] * self.X[i]
        return abs(G)

    def prove(self):
        """A proof wakes the rows that it finds on the wrong side of their margin.

        Returns those of which rounding may say either.
        """
        G = self.y * (self.X @ self.w) - 1.0 + self.D * self.a
        for i in range(len(self.a)):
            if not self.rests(i, G[i]):
                self.asleep[i] = 0
        off = 1e-9 * (1.0 + np.abs(G))
        return [
            i
            for i in range(len(self.a))
            if self.rests(i, G[i] - off[i]) != self.rests(i, G[i] + off[i])
        ]

    def epoch(self, rows):
        learns = self.threshold is None
        begins, n = self.modified_sgd and learns, len(rows)
        self.lengths = {}
        threshold, total = np.inf if learns else self.threshold, 0.0
        for t, i in enumerate(rows):
            if learns and 4 * t >= n:
                threshold = total / t
            scale, share = 1.0, 1.0
            if begins:
                scale, share = n / t if t else 0.0, n / (t + 1)
            total += self.visit(i, threshold, scale, share)
        if rows:
            self.threshold = total / n


class ConjugateDCD(SleepingDCD):
    """Sweeps, then momentum on whole sweeps, then conjugate directions made of them.

    `plain` sweeps are over-relaxed. Call :meth:`between` before each sweep but the
    first. K is formed, and every product is taken with it. `closest` is how near the
    last decision was: a difference of D over D, of a dual variable over its box.
    """

    def __init__(self, X, y, U, D, plain, omega=1.3):
        super().__init__(X, y, U, D, omega)
        Z = y[:, None] * X
        self.K = Z @ Z.T + np.diag(D)
        self.scale = np.where(np.isfinite(U), U, 1.0)
        self.plain, self.sweeps = plain, 0
        self.mode, self.past, self.closest = "plain", [], np.inf

    def dual(self, a):
        return a.sum() - 0.5 * a @ self.K @ a

    def sweep(self, rows):
        if self.mode != "plain":
            self.omega, self.longest = 1.0, 31
        self.epoch(rows)
        self.sweeps += 1
        self.visited = len(rows)

    def move(self, a):
        """Move to the point a; skipped rows that change are visited again."""
        for i in np.flatnonzero(a != self.a):
            self.asleep[i] = 0
        self.a, self.w = a, self.X.T @ (a * self.y)

    def between(self):
        self.closest = np.inf
        if self.mode == "plain":
            if self.sweeps >= self.plain:
                self.mode, self.end = "momentum", self.a.copy()
                self.last_dual = self.dual(self.a)
                self.t, self.steps, self.calm = 1, 0, 0
        elif self.mode == "momentum":
            self.momentum()
        else:
            self.conjugate()

    def momentum(self):
        D = self.dual(self.a)
        restart = D < self.last_dual
        self.closest = abs(D - self.last_dual) / abs(D)
        if restart:
            self.t = 1
        t = (1 + np.sqrt(1 + 4 * self.t**2)) / 2
        beta, self.t, self.last_dual = (self.t - 1) / t, t, D
        point, self.end = self.a + beta * (self.a - self.end), self.a.copy()
        inside = np.clip(point, 0, self.U)
        clipped = np.count_nonzero(inside != point)
        going = (point != self.end) & (self.U > 0)
        edges = np.minimum(abs(point), abs(point - self.U))[going]
        self.closest = min(self.closest, (edges / self.scale[going]).min(initial=1.0))
        self.move(inside)
        self.steps += 1
        self.calm = self.calm + 1 if clipped <= 0.01 * self.visited else 0
        if self.steps > 5 and (restart or self.calm >= 2):
            self.mode, self.base, self.past = "conjugate", self.a.copy(), []

    def conjugate(self):
        K, base = self.K, self.base
        s = self.a - base
        q = s.copy()
        for p in self.past:
            q -= p * (s @ K @ p) / (p @ K @ p)
        curvature = q @ K @ q
        step = (q.sum() - q @ K @ base) / curvature if curvature > 0 else 0.0
        point = np.clip(base + step * q, 0, self.U)
        D = self.dual(self.a)
        self.closest = abs(self.dual(point) - D) / abs(D)
        if self.dual(point) - D > 1e-14 * abs(D):
            self.past = [*self.past, point - base][-2:]
            self.move(point)
        else:
            self.past = [s]
        self.base = self.a.copy()

    def forget(self):
        """Begin anew from here."""
        if self.mode == "conjugate":
            self.base, self.past = self.a.copy(), []

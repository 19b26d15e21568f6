"""The installed twins, watched: which decisions are between all but equal numbers.

Two programs round differently, so rounding may turn such a decision. The tests compare
the others. What the papers' algorithms do not compute is counted here too: the errors
and the losses at the visits.
"""

from __future__ import annotations

import numpy as np

from dualgap.papers import twins

TIE = 1e-9  # relative: gradients round in float64, and steps make some of them equal


def one_row_dual(phi, omega, y, s, q, a, b):
    """Return the value that `sdca.delta` maximises, at a + Delta = y b.

    -omega phi*(-b/omega) - (lambda n/2) |w + Delta x/(lambda n)|^2, up to a constant.
    """
    step = y * b - a
    return -omega * phi.conjugate(b / omega) - step * s - q * step**2 / 2


class SGD(twins.SGDTwin):
    unclear = 0

    def present(self, k):
        p, theta = self.a @ self.Y[k], self.lam * self.t
        self.unclear += 0 < abs(p - theta) < 1e-11 * theta
        super().present(k)


class SDCA(twins.SDCATwin):
    def gap_share(self, i):
        """phi_i(w.x_i) + phi_i*(-a_i) + a_i w.x_i, the part of row i of n (P - D)."""
        s, a, omega, y = self.X[i] @ self.w, self.a[i], self.omega[i], self.y[i]
        if omega == 0.0:
            return 0.0
        conjugate = self.phi.conjugate(a * y / omega)
        return float(omega * (self.phi.value(y * s) + conjugate) + a * s)


class KernelPegasos(twins.KernelPegasosTwin):
    """Keeps the slopes -phi' and shares 1/k of all visits, of which dual points are."""

    def __init__(self, *given, **options):
        super().__init__(*given, **options)
        self.slopes, self.shares = [[] for _ in self.y], [[] for _ in self.y]

    def step(self, A):
        slopes = super().step(A)
        for i, g in zip(A, slopes, strict=True):
            self.slopes[i].append(float(g))
            self.shares[i].append(1.0 / len(A))
        return slopes

    def mean_slopes(self):
        """The mean of -phi' over the visits to each row, 0 without any."""
        mean = np.zeros(len(self.y))
        for i, slopes in enumerate(self.slopes):
            if slopes:
                mean[i] = np.average(slopes, weights=self.shares[i])
        return mean


class Watched:
    """Counts errors, losses and unclear decisions of Pegasos and its relatives."""

    errors = unclear = 0
    loss = 0.0

    def note(self, A, slopes, margins):
        self.errors += np.count_nonzero(slopes)
        self.loss += self.omega[A] @ self.phi.value(margins)

    def slopes(self, A):
        m = self.margins(A)
        slopes = super().slopes(A)
        self.unclear += np.count_nonzero(abs(m - 1) < 1e-11)
        self.note(A, slopes, m)
        return slopes


class Pegasos(Watched, twins.PegasosTwin):
    pass


class NORMA(Watched, twins.NORMATwin):
    pass


class Subgradient(Watched, twins.SubgradientBias):
    pass


class Batch(Watched, twins.BatchBias):
    def slopes(self, A):
        apart = np.diff(np.sort(self.y[A] - self.X[A] @ self.w))
        self.unclear += np.count_nonzero((0 < apart) & (apart < 1e-11))
        slopes = twins.BatchBias.slopes(self, A)
        self.note(A, slopes, self.margins(A))
        return slopes


class FrankWolfe(twins.FrankWolfeTwin):
    """`clear` says whether rounding may turn no decision of the last step."""

    clear = True
    swaps = drops = aways = 0  # swap-adds are swaps - (their drops)

    def differ(self, one, other, size):
        self.clear &= bool(abs(one - other) > TIE * size)

    def larger(self, one, other):
        self.differ(one, other, max(abs(one), abs(other)))
        return super().larger(one, other)

    def best(self, values, among):
        order = sorted(set(map(int, among)), key=lambda k: -values[k])
        if len(order) > 1:
            size = max(abs(values[k]) for k in order)
            self.differ(values[order[0]], values[order[1]], size)
        return super().best(values, among)

    def line_search(self, d, longest):
        slope, bend = -2 * (self.K @ self.a) @ d, 2 * d @ self.K @ d
        if bend > 0:
            self.differ(slope / bend, longest, max(abs(slope / bend), longest))
        return super().line_search(d, longest)

    def step(self, candidates=None):
        self.clear = True
        self.last = "none", False
        moved = super().step(candidates)
        kind, drop = self.last
        self.drops += drop
        self.swaps += kind == "swap"
        self.aways += kind == "away"
        return moved

"""All folds of a search for rising C: hinge, free bias, over one kernel matrix.

c = y alpha, F = K c, v = y - F. A fold is a row of weights, zero for rows it leaves
out. The start extends Chu, Ho, Tsai, Lin and Lin, KDD 2015; pairs as in Fan, Chen and
Lin, JMLR 6 (2005), WSS 2.
"""

from __future__ import annotations

import math

import numpy as np

LEAST, LARGEST, MOST = 256, 2048, 8192  # rows of a working set
SHORT = 0.1  # part of the way to a start before which it is cut


def box(weight, C):
    """Return the bounds of alpha, on the grid of its steps, and the grid's unit."""
    unit = math.ldexp(1.0, math.frexp(C * weight.max())[1] - 53)
    return np.trunc(C * weight / unit) * unit, unit


def sides(y, weight, C):
    """Return the bounds of c."""
    bound, _ = box(weight, C)
    return np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)


def start(y, weight, Cs, old, older=None):
    """Return c for the last of Cs, from the solutions for the two before, or for one.

    A variable at a bound goes to the new bound, the others follow the line.
    """
    bound, unit = box(weight, Cs[-1])
    before, _ = box(weight, Cs[-2])
    a = wish = y * old
    if older is not None:
        by = (Cs[-1] - Cs[-2]) / (Cs[-2] - Cs[-3])
        wish = a + by * (a - y * older)
    inside = np.trunc(np.clip(wish, 0.0, bound) / unit) * unit
    c = y * np.where(a == 0.0, 0.0, np.where(a < before, inside, bound))
    heavy = math.fsum(c)
    movable = (np.abs(c) > 0.0) & (np.abs(c) < bound) & (c * heavy > 0.0)
    total = math.fsum(np.abs(c[movable]))
    if total > 0.0:
        part = min(1.0, abs(heavy) / total)
        c[movable] = np.trunc(c[movable] * (1.0 - part) / unit) * unit
    return balanced(c)


def cut(K, y, old, c):
    """Return the point with the largest D on the way from old to c, if it is early."""
    change = c - old
    slope, bend = change @ (y - K @ old), change @ K @ change
    return old + max(slope / bend, 0.0) * change if slope < SHORT * bend else c


def balanced(c):
    """Lower rows of the heavier sign, the first ones first, until the sum is 0."""
    off = math.fsum(c)
    for i in np.flatnonzero(c * off > 0.0):
        t = math.copysign(min(abs(c[i]), abs(off)), off)
        c[i] -= t
        off -= t
    return c


def violation(y, c, F, low, high):
    """Return the largest v that may rise and the least that may fall."""
    v = y - F
    return v[c < high].max(), v[c > low].min()


def working_set(y, c, F, low, high):
    """Return the rows between their bounds, and those that violate most."""
    top, bottom = violation(y, c, F, low, high)
    v = y - F - (top + bottom) / 2
    rises, falls = c < high, c > low
    free = np.flatnonzero(rises & falls)
    up, down = rises & ~falls & (v > 0.0), falls & ~rises & (v < 0.0)
    most = min(max(len(free) + len(free) // 3 + 1, LARGEST), MOST)
    q = min(max(2 * len(free) + 128, LEAST), most)
    if len(free) > 3 * q // 4:
        up[free], down[free] = v[free] > 0.0, v[free] <= 0.0
        free = free[:0]
    up, down = (np.flatnonzero(side) for side in (up, down))
    room = q - len(free)
    first = min(len(up), max(room // 2, room - len(down)))
    up = up[np.argsort(-v[up], kind="stable")][:first]
    down = down[np.argsort(v[down], kind="stable")][: room - first]
    return np.sort(np.concatenate([free, up, down]))


def pair_steps(K, v, low, high, c, tol):
    """Return c after steps of the best pairs until none violates by more than tol."""
    while True:
        i = int(np.argmax(np.where(c < high, v, -np.inf)))
        lead = np.where(c > low, np.maximum(v[i] - v, 0.0), 0.0)
        if not (c < high).any() or lead.max() <= tol:
            return c
        bend = np.maximum(K[i, i] + np.diag(K) - 2.0 * K[i], 1e-12)
        j = int(np.argmax(lead**2 / bend))
        t = min(lead[j] / bend[j], high[i] - c[i], c[j] - low[j])
        c[i] += t
        c[j] -= t
        v = v - t * (K[i] - K[j])


def bounds(y, weight, C, c, F):
    """Return P at the best bias, D, and this bias."""
    cost = C * weight
    kinks = (y - F)[cost > 0.0]
    losses = [cost @ np.maximum(0.0, 1.0 - y * (F + b)) for b in kinks]
    best = int(np.argmin(losses))
    return c @ F / 2 + losses[best], y @ c - c @ F / 2, kinks[best]


def solve(K, y, weights, Cs, tol):
    """Return (c, P, D, bias) of every fold, for every C."""
    found = []
    for k, C in enumerate(Cs):
        folds = []
        for fold, weight in enumerate(weights):
            before = [of[fold][0] for of in found[-2:]]
            c = np.zeros(len(y))
            if before:
                c = start(y, weight, Cs[max(0, k - 2) : k + 1], *before[::-1])
                c = balanced(cut(K, y, before[-1], c))
            low, high = sides(y, weight, C)
            F = K @ c
            while True:
                primal, dual, bias = bounds(y, weight, C, c, F)
                if primal - dual <= tol * dual:
                    break
                top, bottom = violation(y, c, F, low, high)
                rows = working_set(y, c, F, low, high)
                v = (y - F - (top + bottom) / 2)[rows]
                some = K[np.ix_(rows, rows)]
                c[rows] = pair_steps(
                    some, v, low[rows], high[rows], c[rows], 0.1 * (top - bottom)
                )
                F = K @ c
            folds.append((c, primal, dual, bias))
        found.append(folds)
    return found

"""The block solver of small problems: hinge, free bias, pair steps in float64.

c = y alpha, v = y - K c. Pairs as in Fan, Chen and Lin, JMLR 6 (2005), WSS 2.
"""

from __future__ import annotations

import math

import numpy as np


def solve(K, y, cost, epochs):
    """Return c, P, D and the steps so far after each of so many epochs."""
    unit = math.ldexp(1.0, math.frexp(cost.max())[1] - 53)
    bound = np.trunc(cost / unit) * unit
    low, high = np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)
    c, steps, told = np.zeros(len(y)), 0, []
    for _ in range(epochs + 1):
        v = y - K @ c
        top, bottom = v[c < high].max(), v[c > low].min()
        bias = (top + bottom) / 2
        norm = c @ K @ c
        loss = cost @ np.maximum(0.0, 1.0 - y * (K @ c + bias))
        told.append((c.copy(), norm / 2 + loss, y @ c - norm / 2, steps))
        if not top > bottom or told[-1][1] - told[-1][2] <= 1e-11 * told[-1][2]:
            break
        rises, falls = c < high, c > low
        free = rises & falls
        rows = np.flatnonzero(free | (rises & (v > bottom)) | (falls & (v < top)))
        some = (K[np.ix_(rows, rows)], v[rows] - bias, low[rows], high[rows])
        c[rows], made = pair_steps(*some, c[rows], unit, 0.1 * (top - bottom))
        steps += made
    return told[1:]


def pair_steps(K, v, low, high, c, unit, tol):
    for steps in range(10_000):
        i = int(np.argmax(np.where(c < high, v, -np.inf)))
        lead = np.where(c > low, np.maximum(v[i] - v, 0.0), 0.0)
        if not lead.max() > tol:
            return c, steps
        bend = K[i, i] + np.diag(K) - 2 * K[i]
        bend = np.maximum(bend, 1e-15 * (K[i, i] + np.diag(K)) + 1e-30)
        j = int(np.argmax(lead**2 / bend))
        t = min(high[i] - c[i], c[j] - low[j])
        if lead[j] / bend[j] < t:
            t = np.rint(lead[j] / bend[j] / unit) * unit
        if not t > 0.0:
            return c, steps
        c[i] += t
        c[j] -= t
        v = v - t * (K[i] - K[j])
    raise AssertionError("too many steps")

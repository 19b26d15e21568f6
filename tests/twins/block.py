"""The inner steps of the block solver, one at a time in plain NumPy.

c_i = y_i alpha_i, F = K c; v_i = y_i - F_i measured from the threshold.
"""

from __future__ import annotations

import numpy as np


def best(gains):
    """The largest, and whether it is so by more than float32 rounds."""
    k = int(np.argmax(gains))
    return k, bool(np.delete(gains, k).max(initial=-np.inf) < gains[k] * (1 - 1e-5))


def pair_step(K, c, lo, hi, v, tol):
    """The second-order pair (Fan, Chen and Lin 2005, WSS 2), or None, and its step.

    The last value says whether rounding to float32 leaves the choice as it is.
    """
    c, v = c.copy(), v.copy()
    i = int(np.argmax(np.where(c < hi, v, -np.inf)))
    lead = np.maximum(v[i] - np.where(c > lo, v, np.inf), 0.0)
    clear = abs(lead.max() - tol) > 1e-5
    if not (c < hi).any() or lead.max() <= tol:
        return None, c, v, clear
    bend = K[i, i] + K.diagonal() - 2.0 * K[i]
    bend = np.maximum(bend, 5e-7 * (K[i, i] + K.diagonal()) + 1e-30)
    j, alone = best(lead**2 / bend)
    t = min(lead[j] / bend[j], hi[i] - c[i], c[j] - lo[j])
    c[i] += t
    c[j] -= t
    v -= t * (K[i] - K[j])
    return (i, j), c, v, clear and alone


def coordinate_step(K, y, delta, c, v, tol):
    """The row of most gain for the squared hinge, or None, and its step.

    The bias sum_i c_i is penalised. The last value is that of `pair_step`.
    """
    c, v = c.copy(), v.copy()
    s = K.diagonal() + 1.0 + delta
    w = y * v
    lead = np.maximum(w, np.where(c != 0.0, -w, 0.0))
    i, alone = best(np.maximum(lead, 0.0) ** 2 / s)
    clear = alone and abs(lead[i] - tol) > 1e-5
    if lead[i] <= tol:
        i, alone = best(lead)
        clear = clear and alone and abs(lead[i] - tol) > 1e-5
    if lead[i] <= tol:
        return None, c, v, abs(lead[i] - tol) > 1e-5
    t = v[i] / s[i]
    if y[i] * (c[i] + t) <= 0.0:
        t = -c[i]
    c[i] += t
    v -= t * (K[i] + 1.0)
    v[i] -= t * delta[i]
    return i, c, v, clear

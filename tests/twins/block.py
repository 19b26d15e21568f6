"""The inner steps of the block solver, in plain NumPy, and the whole solver on them.

c_i = y_i alpha_i, F = K c; v_i = y_i - F_i measured from the threshold.
"""

from __future__ import annotations

import numpy as np


def pair_steps(K, c, lo, hi, v, tol, most):
    """Second-order pairs (Fan, Chen and Lin 2005, WSS 2). Returns the pairs taken."""
    c, v, taken = c.copy(), v.copy(), []
    for _ in range(most):
        i = int(np.argmax(np.where(c < hi, v, -np.inf)))
        lead = np.maximum(v[i] - np.where(c > lo, v, np.inf), 0.0)
        if not (c < hi).any() or lead.max() <= tol:
            break
        bend = K[i, i] + K.diagonal() - 2.0 * K[i]
        bend = np.maximum(bend, 5e-7 * (K[i, i] + K.diagonal()) + 1e-30)
        j = int(np.argmax(lead**2 / bend))
        t = min(lead[j] / bend[j], hi[i] - c[i], c[j] - lo[j])
        c[i] += t
        c[j] -= t
        v -= t * (K[i] - K[j])
        taken.append((i, j))
    return taken, c, v


def coordinate_steps(K, y, delta, c, v, tol, most):
    """Greedy coordinate ascent for the squared hinge, the bias sum_i c_i penalised."""
    c, v, taken = c.copy(), v.copy(), []
    s = K.diagonal() + 1.0 + delta
    for _ in range(most):
        w = y * v
        lead = np.maximum(w, np.where(c != 0.0, -w, 0.0))
        i = int(np.argmax(np.maximum(lead, 0.0) ** 2 / s))
        if lead[i] <= tol:
            i = int(np.argmax(lead))
        if lead[i] <= tol:
            break
        t = v[i] / s[i]
        if y[i] * (c[i] + t) <= 0.0:
            t = -c[i]
        c[i] += t
        v -= t * (K[i] + 1.0)
        v[i] -= t * delta[i]
        taken.append(i)
    return taken, c, v

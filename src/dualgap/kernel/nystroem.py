"""Nystroem: the kernel SVM over the functions that some of its rows span.

Problem    min 1/2 ||f||^2 + sum_i c_i l(y_i (f(x_i) + b)), f = sum_j beta_j k(x_j, .)
           over m landmarks x_j instead of all rows; b as the kernel problem has it
Update     K_mm = V S V', z(x) = S^-1/2 V' (k(x_1, x), ..., k(x_m, x)) over the
           landmarks: f(x) = w.z(x) with beta = V S^-1/2 w, and ||f|| = ||w||. So it is
           a linear SVM over m features, which the linear solvers train.
Guarantee  theirs, about that problem, whose features are float32. In exact arithmetic
           P(w) is also the value that the kernel problem gives to f, and D(alpha) need
           not be a bound there, for z'z is no larger than K. `Approximation.bound`
           proves both values for the kernel problem with K itself, in float64.
Cost       n m (2 d + 2 m) operations and m^3, then the linear fit. 4 n m bytes of
           features, float32, and 16 MB or, from m = 1000 on, 16 m^2 bytes
           more.
Source     Williams and Seeger, "Using the Nystroem method to speed up kernel machines",
           NIPS 13, 2001

Eigenvalues that float32 kernel values do not tell from 0 are left out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .. import core
from ..certificate import Certificate
from ..losses import Vector
from ..problem import Problem, Rounding, _rows
from ..solvers.base import check_count
from .problem import KernelProblem
from .rows import core_arguments, packs

# Units of rounding in a float32 kernel value.
_NOISE = 10.0
# Kernel values in memory at a time.
_VALUES = 4_000_000


@dataclass(frozen=True)
class Nystroem:
    """Approximate a kernel problem by landmarks.

    Parameters
    ----------
    n_components : int, default=300
        Landmarks, half of them drawn from each class; all rows of a class that has
        fewer.
    threads : int, default=1
        Threads that compute features; the result does not depend on it.
    """

    n_components: int = 300
    threads: int = 1

    name: ClassVar[str] = "nystroem"
    free_bias: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("n_components", self.n_components)
        check_count("threads", self.threads)

    def rows_held(self, n: int) -> int:
        """Rows of a kernel matrix of n in the cache: it has no use for any."""
        return 1

    def one_of(self, problems: int, threads: int) -> Nystroem:
        """The same for one of so many problems, on so many threads."""
        return replace(self, threads=threads)

    def approximate(
        self,
        problem: KernelProblem,
        random_state: int = 0,
        *,
        stop: Any = None,
    ) -> Approximation:
        """The linear problem over the features of all rows.

        Parameters
        ----------
        problem : KernelProblem
        random_state : int, default=0
            Of a class with as many rows it draws the same ones, whatever the other
            class is: pairs of classes share landmarks.
        stop : core.Stop, optional
            Leaves early, with features that are not whole, when told to stop.

        Returns
        -------
        Approximation

        Raises
        ------
        ValueError
            If all landmarks are 0 to the kernel.
        """
        drawn = [
            _drawn(np.flatnonzero((problem.y == label) & (problem.cost > 0.0)),
                   -(-self.n_components // 2), random_state)
            for label in (-1, 1)
        ]  # fmt: skip
        return over(problem, np.concatenate(drawn), self.threads, stop)


def over(
    problem: KernelProblem,
    landmarks: NDArray[np.intp],
    threads: int = 1,
    stop: Any = None,
) -> Approximation:
    """The linear problem over the functions that these landmarks span.

    Parameters
    ----------
    problem : KernelProblem
    landmarks : ndarray of shape (m,)
        Rows of the problem.
    threads : int, default=1
    stop : core.Stop, optional
        Leaves early, with features that are not whole, when told to stop.

    Returns
    -------
    Approximation

    Raises
    ------
    ValueError
        If all landmarks are 0 to the kernel.
    """
    K = problem.gram.block(landmarks, landmarks)
    values, vectors = np.linalg.eigh(K)
    # Rounding of m kernel values moves a feature by their size over its root.
    noise = _NOISE * np.finfo(np.float32).eps * float(K.diagonal().max())
    kept = values > math.sqrt(len(landmarks)) * noise
    if not kept.any():
        raise ValueError(
            f"kernel={problem.gram.kernel.name!r} is 0 at all {len(landmarks)} "
            "landmarks; give rows that are not all 0, or another kernel"
        )
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    stop = core.Stop() if stop is None else stop
    return Approximation(problem, landmarks, whiten, threads, stop)


class Approximation(Problem):
    """The linear problem of :meth:`Nystroem.approximate`, for the linear solvers.

    Attributes
    ----------
    kernel : KernelProblem
        What it approximates.
    landmarks : ndarray of shape (m,)
        Rows of the kernel problem.
    whiten : ndarray of shape (m, n_features), float64
        ``V S^-1/2``.
    """

    def __init__(
        self,
        problem: KernelProblem,
        landmarks: NDArray[np.intp],
        whiten: Vector,
        threads: int,
        stop: Any,
    ) -> None:
        self.kernel, self.landmarks, self.whiten = problem, landmarks, whiten
        super().__init__(
            _features(problem, landmarks, whiten.astype(np.float32), threads, stop),
            problem.y,
            1.0,
            loss=problem.loss,
            sample_weight=problem.cost,
            fit_intercept=True,
            penalize_intercept=not problem.free_bias,
        )

    @property
    def about(self) -> str:
        """What its certificates are about, in words."""
        return (
            f"the problem over {len(self.landmarks)} landmarks, not of the kernel "
            "problem"
        )

    def expand(self, w: Vector) -> tuple[Vector, float]:
        """Coefficients of the kernel at all rows, and the bias, of a model w.

        Returns
        -------
        coef : ndarray of shape (n,)
            0 but at the landmarks.
        bias : float
        """
        features, bias = self.coef(w)
        coef = np.zeros(self.n)
        coef[self.landmarks] = self.whiten @ features
        return coef, bias

    def bound(self, w: Vector, alpha: Vector) -> Certificate:
        """Prove bounds on the kernel problem from a solution of this one.

        The primal value is P of the kernel problem at the expanded model, computed with
        kernel values in float64 and rounded up. alpha is in the box of both problems:
        the dual value is D of the kernel problem at its best multiple, rounded down.

        Parameters
        ----------
        w : ndarray of shape (width,)
        alpha : ndarray of shape (n,)
            The points of a solution.

        Returns
        -------
        Certificate
            Its relative gap tells how far the model may be from the optimum of the
            kernel problem. It is no smaller than what the landmarks cost.

        Notes
        -----
        One pass over the rows of the kernel matrix that belong to landmarks, and one
        over those with alpha > 0.
        """
        problem = self.kernel
        proof = problem.certify_model(*self.expand(w))
        scores = problem.scores(alpha)
        off = float(core.signed_sum(self.y, alpha))
        norm = float((alpha * self.y) @ scores)
        if not problem.free_bias:
            norm += off * off
        total = float(alpha.sum())
        curvature = norm + float((self.delta * alpha * alpha).sum())
        # A little less, so that no product leaves the box by a rounding.
        scale = self.best_scale(alpha, total, curvature) * (1.0 - 8 * Rounding.unit)
        bounds = problem.bounds(alpha, scores, 0.0, scale)
        return proof.with_dual_of(bounds.certificate)


def _drawn(rows: NDArray[np.intp], most: int, seed: int) -> NDArray[np.intp]:
    """Some of the rows, by their number and the seed only; sorted."""
    order = np.random.default_rng(seed).permutation(len(rows))
    return np.sort(rows[order[:most]])


def _features(
    problem: KernelProblem,
    landmarks: NDArray[np.intp],
    whiten: NDArray[np.float32],
    threads: int,
    stop: Any,
) -> NDArray[np.float32]:
    """``z(x_i)`` of all rows, shape (n, n_features), blocks of rows at a time."""
    X, columns = problem.gram.source()
    kernel, (m, width) = problem.gram.kernel, whiten.shape
    rows = np.arange(problem.n) if columns is None else columns
    out = np.zeros((problem.n, width), np.float32)
    # Each block packs the landmarks anew: no fewer rows than that is worth.
    step = max(4 * m, _VALUES // m)
    for first in range(0, problem.n, step):
        if stop.requested or stop.expired:
            break
        block = rows[first : first + step]
        if kernel.form is None:
            values = kernel.block(X, rows[landmarks], X[block], np.float32)
        else:
            values = _packed(X, kernel, rows[landmarks], block, threads, stop)
        np.matmul(values.T, whiten, out=out[first : first + len(block)])
    return out


def _packed(
    X: Any, kernel: Any, landmarks: Any, block: Any, threads: int, stop: Any
) -> NDArray[np.float32]:
    """Kernel values of the landmarks and a block of rows, shape (m, len(block))."""
    m = len(landmarks)
    named = np.concatenate([landmarks, block]).astype(np.uint32)
    rows, _, _ = _rows(X, 0.0)
    source = core.KernelRows(rows, *core_arguments(kernel), named, packs(X), threads)
    values = np.zeros((m, -(-len(named) // 32) * 32), np.float32)
    source.rows(np.arange(m, dtype=np.uint32), values, stop)
    return values[:, m : len(named)]

"""Nystroem approximation: the kernel SVM over the span of some landmark rows.

Problem    min 1/2 ||f||^2 + sum_i c_i l(y_i (f(x_i) + b)), f = sum_j beta_j k(x_j, .)
           over m landmarks x_j instead of all rows; b as in the kernel problem
Update     with K_mm = V S V' over the landmarks and
           z(x) = S^-1/2 V' (k(x_1, x), ..., k(x_m, x)), f(x) = w.z(x) for
           beta = V S^-1/2 w, and ||f|| = ||w||. This is a linear SVM over at most m
           features, which the linear solvers train.
Guarantee  the certificate of the linear solver, about the linear problem with float32
           features. In exact arithmetic P(w) is also P of the kernel problem at f.
           D(alpha) need not be a bound for the kernel problem, because z'z is at most
           K. `Approximation.bound` proves both values for the kernel problem with K
           itself, in float64.
Cost       n m (2 d + 2 m) operations and m^3, then the linear fit. 4 n m bytes of
           float32 features, and 16 MB more, or 16 m^2 bytes from m = 1000 on.
Source     Williams and Seeger, "Using the Nystroem method to speed up kernel machines",
           NIPS 13, 2001

Eigenvalues that are 0 up to the rounding of float32 kernel values are left out.
"""

from __future__ import annotations

import copy
import math
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ... import core
from ...blas import limited
from ...certificate import Certificate
from ...checks import Count, check_fields
from ...core import StoppedError
from ...kernels.gram import Matrix, packs
from ...losses import Vector
from ...memory import BLAS, make_room_for
from ...problems.base import Problem
from ...problems.binary import BinaryProblem
from ...problems.duals import along, carried
from ...problems.kernel import KernelBatch, KernelProblem
from ...problems.rounding import Rounding

S = TypeVar("S")


@dataclass(frozen=True)
class NystroemSettings:
    """Tuning constants of `Nystroem`."""

    #: Error of a float32 kernel value, in units of float32 rounding.
    noise: float = 10.0
    #: Kernel values in memory at a time.
    values_at_once: int = 4_000_000
    #: Rows of a product that one thread computes.
    rows_per_thread: int = 1024


SETTINGS = NystroemSettings()


@dataclass(frozen=True)
class Nystroem:
    """Approximation of a kernel problem by landmarks.

    Parameters
    ----------
    n_components : int, default=300
        Number of landmarks. Half of them are drawn from each class; a class with fewer
        rows gives all its rows.
    threads : int, default=1
        Threads that compute features. The result does not depend on it.
    """

    n_components: Count = 300
    threads: Count = 1

    name: ClassVar[str] = "nystroem"
    free_bias: ClassVar[bool] = True
    without_bias: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_fields(self)

    def rows_held(self, n: int) -> int:
        """Return 1: Nystroem needs no cached kernel rows."""
        return 1

    def bytes_of_features(self, n: int) -> int:
        """Return the memory of the features of n rows."""
        return 8 * n * -(-self.n_components // 2)

    def one_of(self, problems: int, threads: int) -> Nystroem:
        """Return a copy that uses `threads` threads."""
        return replace(self, threads=threads)

    def approximate(
        self,
        problem: KernelProblem,
        random_state: int = 0,
        *,
        stop: core.Stop | None = None,
    ) -> Approximation:
        """Return the linear problem over the features of all rows; see :func:`over`.

        `random_state`: seed of the landmarks. Pairs of classes share landmarks, because
        the landmarks of a class do not depend on the other class.
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
    stop: core.Stop | None = None,
    settings: NystroemSettings = SETTINGS,
) -> Approximation:
    """Return the linear problem over the functions that these landmarks span.

    - `landmarks`: rows of the problem, shape (m,).
    - `stop`: a request that ends the computation early; the features are then
      incomplete.

    Raises ValueError if the kernel is 0 at all landmarks. Raises MemoryError if there
    is no memory for the threads or the buffers of BLAS.
    """
    K = problem.gram.block(landmarks, landmarks)
    # The last bits of `eigh` depend on the number of its threads.
    with limited(1):
        values, vectors = np.linalg.eigh(K)
    # The rounding of m kernel values, divided by the root of an eigenvalue, is the
    # error of its feature.
    unit = np.finfo(np.float32).eps * float(K.diagonal().max())
    noise = settings.noise * unit
    kept = values > math.sqrt(len(landmarks)) * noise
    if not kept.any():
        raise ValueError(
            f"kernel={problem.gram.kernel.name!r} is 0 at all {len(landmarks)} "
            "landmarks; give rows that are not all 0, or another kernel"
        )
    whiten = vectors[:, kept] / np.sqrt(values[kept])
    stop = core.Stop() if stop is None else stop
    return Approximation(problem, landmarks, whiten, threads, stop, settings)


class Approximation(BinaryProblem):
    """Linear problem of :meth:`Nystroem.approximate`, for the linear solvers.

    `kernel`: the problem that it approximates. `landmarks`: rows of the kernel problem,
    shape (m,). `whiten`: ``V S^-1/2``, shape (m, n_features).
    """

    def __init__(
        self,
        problem: KernelProblem,
        landmarks: NDArray[np.intp],
        whiten: Vector,
        threads: int,
        stop: core.Stop,
        settings: NystroemSettings,
    ) -> None:
        self.kernel, self.landmarks, self.whiten = problem, landmarks, whiten
        single = whiten.astype(np.float32)
        super().__init__(
            _features(problem, landmarks, single, threads, stop, settings),
            problem.y,
            1.0,
            loss=problem.loss,
            sample_weight=problem.cost,
            fit_intercept=problem.free_bias or problem.constant != 0.0,
            penalize_intercept=not problem.free_bias,
        )

    @property
    def about(self) -> str:
        """Description of the problem that the certificates are about."""
        return (
            f"the problem over {len(self.landmarks)} landmarks, not of the kernel "
            "problem"
        )

    def expand(self, w: Vector) -> tuple[Vector, float]:
        """Return the kernel coefficients and the bias of a model w.

        Returns `coef`: coefficients of all rows, 0 except at the landmarks, shape (n,).
        """
        features, bias = self.coef(w)
        coef = np.zeros(self.n)
        coef[self.landmarks] = self.whiten @ features
        return coef, bias

    def bound(self, w: Vector, alpha: Vector) -> Certificate:
        """Prove bounds on the kernel problem from a solution of this one.

        The primal value is P of the kernel problem at the expanded model, computed with
        float64 kernel values and rounded up. alpha is in the box of both problems. The
        dual value is D of the kernel problem at the best multiple of alpha, rounded
        down. The gap includes the error of the approximation. It takes one pass over
        the kernel rows of the landmarks, and one over the kernel rows with alpha > 0.
        """
        problem = self.kernel
        proof = problem.certify_model(*self.expand(w))
        scores = problem.scores(alpha)
        off = float(core.signed_sum(self.y, alpha))
        norm = float((alpha * self.y) @ scores)
        norm += problem.constant * off * off
        total = float(alpha.sum())
        curvature = norm + float((self.delta * alpha * alpha).sum())
        # Slightly smaller, so that rounding takes no product out of the box.
        scale = self.best_scale(alpha, total, curvature) * (1.0 - 8 * Rounding.unit)
        bounds = problem.bounds(alpha, scores, 0.0, scale)
        return proof.with_dual_of(bounds.certificate)


class LandmarkBatch(KernelBatch):
    """Problems of pairs over landmarks; pairs of a class share its landmarks.

    `*args`, `**options`: as for :class:`KernelBatch`.
    """

    kind = "landmarks"

    def __init__(
        self,
        *args: Any,
        landmarks: Nystroem,
        seed: int,
        stop: core.Stop,
        **options: Any,
    ) -> None:
        super().__init__(*args, **options)
        self.landmarks, self.seed, self.stop = landmarks, seed, stop

    def for_path(self) -> LandmarkBatch:
        other = copy.copy(self)
        other.kept = {}
        return other

    def problem(self, k: int) -> BinaryProblem:  # type: ignore[override]
        kept = self.kept
        if kept is None:
            return self._features(super().problem(k))
        if k not in kept:
            matrices = copy.copy(self)
            matrices.kept, matrices.C = None, 1.0
            kept[k] = self._features(KernelBatch.problem(matrices, k))
        found: Approximation = kept[k]
        return found.with_labels(found.y, found.kernel.cost, self.C)

    def _features(self, problem: KernelProblem) -> Approximation:
        found = self.landmarks.approximate(problem, self.seed, stop=self.stop)
        if self.stop.requested or self.stop.expired:
            raise StoppedError
        return found

    def finish(self, k: int, problem: Problem, solution: S) -> S:
        known = cast(Any, solution)
        coef, bias = cast(Approximation, problem).expand(known.w)
        return cast(S, replace(known, w=coef * self.signs(k), bias=bias))

    def along(
        self, k: int, problem: Problem, past: list[tuple[float, Vector]]
    ) -> Vector:
        return along(self.C, past, problem.loss.curvature > 0.0)

    def begin(self, k: int, problem: Problem, C: float, alpha: Vector) -> Vector:
        return alpha if C == self.C else carried(cast(BinaryProblem, problem), alpha)


def _drawn(rows: NDArray[np.intp], most: int, seed: int) -> NDArray[np.intp]:
    """Return at most `most` random rows, sorted.

    The choice depends on the number of rows and on the seed only.
    """
    order = np.random.default_rng(seed).permutation(len(rows))
    return np.sort(rows[order[:most]])


def _features(
    problem: KernelProblem,
    landmarks: NDArray[np.intp],
    whiten: NDArray[np.float32],
    threads: int,
    stop: core.Stop,
    settings: NystroemSettings,
) -> NDArray[np.float32]:
    """Return ``z(x_i)`` of all rows, shape (n, n_features), block by block."""
    X, columns = problem.gram.source()
    kernel, (m, width) = problem.gram.kernel, whiten.shape
    rows = np.arange(problem.n) if columns is None else columns
    out = np.zeros((problem.n, width), np.float32)
    # Every block packs the landmarks again, so it needs enough rows to pay for that.
    step = max(4 * m, settings.values_at_once // m)
    make_room_for(threads, BLAS)
    with limited(1), ThreadPoolExecutor(threads) as team:
        for first in range(0, problem.n, step):
            if stop.requested or stop.expired:
                break
            block = rows[first : first + step]
            if kernel.form is None:
                values = kernel.block(X, rows[landmarks], X[block], np.float32)
            else:
                values = _packed(problem.gram, rows[landmarks], block, threads, stop)
            part = out[first : first + len(block)]
            _product(values, whiten, part, settings.rows_per_thread, team)
    return out


def _product(
    values: NDArray[np.float32],
    whiten: NDArray[np.float32],
    out: NDArray[np.float32],
    rows: int,
    team: ThreadPoolExecutor,
) -> None:
    """Compute ``values.T @ whiten`` in parts of `rows` rows.

    The last bits of a product depend on how BLAS shares it among its own threads.
    """

    def compute(first: int) -> None:
        some = slice(first, first + rows)
        np.matmul(values[:, some].T, whiten, out=out[some])

    list(team.map(compute, range(0, len(out), rows)))


def _packed(
    gram: Matrix,
    landmarks: NDArray[np.integer],
    block: NDArray[np.integer],
    threads: int,
    stop: core.Stop,
) -> NDArray[np.float32]:
    """Return kernel values of landmarks and a block of rows, shape (m, len(block))."""
    assert gram.accessor is not None
    assert gram.kernel.form is not None
    m = len(landmarks)
    named = np.concatenate([landmarks, block]).astype(np.uint32)
    source = core.KernelRows(
        gram.accessor,
        gram.kernel.form,
        named,
        packs(gram.source()[0]),
        threads,
    )
    values = np.zeros((m, -(-len(named) // 32) * 32), np.float32)
    source.rows(np.arange(m, dtype=np.uint32), values, stop)
    return values[:, m : len(named)]

"""`newton` for many problems over the same dense rows, which share its passes.

Problem    for every k: min over w of P_k(w) = 1/2 ||w||^2 + sum_i c_ik max(0, u_ik)^2,
           u_ik = 1 - y_ik x_i.w
Update     w <- w + t s with the t that minimises P_k, and H s = -grad P_k(w), where
           H = I + 2 sum c_ik x_i x_i' over the active rows, u_ik > 0. Conjugate
           gradients solve that system over copies of the active rows; where these are
           many, s is the preconditioned gradient. The largest eigenvalues of X'X, times
           the costs of the active rows, precondition all problems. Products with all
           rows are matrix products for all problems together. The first w is the ridge
           solution. Problems whose gap is small enough leave.
Guarantee  P_k never rises but for rounding, and w_k -> w_k*. The dual point is
           a_i = 2 c_i max(0, u_i), and P - D = 1/2 ||grad P||^2.
Cost       a step of K problems: one or two matrix products of 2 n d K operations, and
           four products with the active rows of each problem for each conjugate
           gradient. X'X and its eigenvalues once: n d^2, for at most 16 rows per
           column. 9 bytes per row and problem (17 for float64), for at most 128
           problems at a time; copies of n/2 rows per thread.
Source     Keerthi and DeCoste, JMLR 6, 2005, for one problem; what problems share is
           this package's.

Products have the precision of the rows, and the proof float64. Where rounding in
float32 keeps a problem from its accuracy, the ordinary solver trains it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..losses import Vector
from ..problems.batch import LinearBatch
from ..problems.dense import DenseRows, Floats, blocks_of
from .base import TINY

Numbers = NDArray[np.intp]


@dataclass(frozen=True)
class SharedStepsSettings:
    """Tuning constants of the steps."""

    #: Eigenvalues of X'X that the preconditioner has.
    rank: int = 200
    #: Most rows per column that X'X is made from.
    gram_rows: int = 16
    #: More vectors of the iteration that finds them.
    more_vectors: int = 20
    #: Steps of that iteration.
    power_steps: int = 3
    #: The other eigenvalues count as this part of the last one.
    rest: float = 0.5
    #: Conjugate gradients of a problem stop at this share of the first residual.
    residual: float = 0.1
    #: Most conjugate gradients of a step.
    most_gradients: int = 40
    #: A step of conjugate gradients copies at most this part of the rows.
    active_share: float = 0.5
    #: It may copy this many entries in any case.
    active_entries: int = 1_000_000
    #: Most problems whose conjugate gradients go together, to share a preconditioner.
    group: int = 16
    #: Most of the rows that several problems copy together.
    group_share: float = 0.25
    #: Most steps of the search along a direction.
    search_steps: int = 30
    #: Change of t that ends the search.
    search_accuracy: float = 1e-9


SETTINGS = SharedStepsSettings()


@dataclass
class SharedRows:
    """Rows that the problems of a fit share, and large eigenvalues of ``X'X/n``."""

    dense: DenseRows
    values: Vector
    vectors: Floats  # (width, number of values)
    rest: float  # stands for the other eigenvalues
    settings: SharedStepsSettings

    @classmethod
    def of(
        cls, dense: DenseRows, settings: SharedStepsSettings = SETTINGS
    ) -> SharedRows | None:
        """Find the eigenvalues from some of the rows; None if float32 overflows."""
        kind = dense.X.dtype
        with np.errstate(over="ignore", invalid="ignore"):
            gram = dense.gram(max(1, dense.n // (settings.gram_rows * dense.width)))
        if not np.abs(gram).max() < 0.1 * np.finfo(kind).max:
            return None
        values, vectors = _largest(gram, settings)
        values = np.maximum(values, 0.0)
        rest = settings.rest * values.min() if len(values) < len(gram) else values.min()
        return cls(dense, values, vectors.astype(kind), float(rest), settings)

    @property
    def most_active(self) -> int:
        """Number of active rows up to which they are copied."""
        few = self.settings.active_entries // self.dense.width
        return max(few, int(self.settings.active_share * self.dense.n))

    def solve(self, W: Vector, weight: Vector) -> Vector:
        """Return ``(I + weight X'X/n)^-1 w``, or nearly so, for each row w of W."""
        scale = 1.0 / (1.0 + weight[:, None] * self.values)
        rest = 1.0 / (1.0 + weight[:, None] * self.rest)
        sizes = _sizes(W)[:, None]
        part = (W / sizes).astype(self.vectors.dtype) @ self.vectors
        part *= (scale / rest - 1.0).astype(part.dtype)
        return (W + (part @ self.vectors.T).astype(np.float64) * sizes) * rest


def _largest(gram: Vector, settings: SharedStepsSettings) -> tuple[Vector, Vector]:
    """Return the largest eigenvalues of a matrix and their vectors, or nearly.

    A few steps of subspace iteration from fixed random vectors are enough for a
    preconditioner (Halko, Martinsson and Tropp, SIAM Review 53, 2011).
    """
    width, rank = len(gram), settings.rank
    if width <= 2 * rank:
        return np.linalg.eigh(gram)
    random = np.random.default_rng(0)
    basis = random.standard_normal((width, rank + settings.more_vectors))
    for _ in range(settings.power_steps):
        basis = np.linalg.qr(gram @ basis)[0]
    values, turn = np.linalg.eigh(basis.T @ gram @ basis)
    return values[-rank:], (basis @ turn)[:, -rank:]


def _sizes(W: Vector) -> Vector:
    """Return the largest size of an entry of each row, at least a tiny number."""
    return np.maximum(np.abs(W).max(axis=1), TINY)


def _dots(A: Vector, B: Vector) -> Vector:
    """Return the products of the rows of A with the rows of B."""
    return np.einsum("ij,ij->i", A, B)


class Active(NamedTuple):
    """Copies of the active rows of a problem."""

    dense: DenseRows
    X: Floats
    cost: Floats  # relative costs

    def sums(self, weights: Floats) -> Vector:
        """Return the sum of the rows with these weights, added block by block."""
        total = np.zeros(self.dense.width)
        for block in blocks_of(len(weights)):
            self.dense.add_sums(self.X[block], weights[block, None], total[None])
        return total

    def product(self, p: Vector, size: float) -> Vector:
        """Return the sum of ``c_i (x_i.p) x_i``, for the largest entry of p."""
        direction, total = (p / size).astype(self.X.dtype)[None], np.zeros(len(p))
        for block in blocks_of(len(self.X)):
            X = self.X[block]
            image = self.dense.scores(X, direction)
            image *= self.cost[block, None]
            self.dense.add_sums(X, image, total[None])
        return total * size


@dataclass
class SharedPoint:
    """Problems of a chunk that are not solved yet, and their w.

    Attributes
    ----------
    problems : ndarray of shape (K,)
        Their numbers in the batch.
    positive : ndarray of shape (K, n)
    cost : ndarray of shape (1, n) or (K, n)
        Costs relative to the largest one of the problem.
    largest : ndarray of shape (K,)
        The largest cost of each problem.
    W : ndarray of shape (K, width), float64
    residual : ndarray of shape (K, n)
        ``y_i - x_i.w``.
    """

    rows: SharedRows
    problems: Numbers
    positive: NDArray[np.bool_]
    cost: Floats
    largest: Vector
    W: Vector
    residual: Floats
    primal: Vector = field(init=False)
    dual: Vector = field(init=False)
    steps: Vector = field(init=False)

    @classmethod
    def at(
        cls,
        rows: SharedRows,
        batch: LinearBatch,
        problems: Numbers,
        W: Vector,
        F: Floats,
    ) -> SharedPoint:
        """Return the point of some problems of a batch, whose residuals are F."""
        cost = batch.costs(problems.tolist())
        largest = cost.max(axis=1, keepdims=True)
        relative = (cost / largest).astype(F.dtype)
        each = np.broadcast_to(largest[:, 0], len(problems)).copy()
        positive = batch.signs(problems.tolist()) > 0
        return cls(rows, problems, positive, relative, each, W, F)

    @classmethod
    def start(
        cls, rows: SharedRows, batch: LinearBatch, problems: Numbers, W: Vector | None
    ) -> SharedPoint:
        """Return the point W, or the ridge solutions, where every row is active."""
        dense, kind, count = rows.dense, rows.dense.X.dtype, len(problems)
        residual, one = np.empty((count, dense.n), kind), kind.type(1)
        ridge = W is None
        W = np.zeros((count, dense.width)) if W is None else W
        point = cls.at(rows, batch, problems, W, residual)
        np.copyto(residual, np.where(point.positive, one, -one))
        if ridge:
            sums = point.sums(range(count), lambda k, block: residual[k, block])
            mean = point.cost.mean(axis=1, dtype=np.float64)
            factor = 2.0 * point.largest
            W[:] = rows.solve(factor[:, None] * sums, factor * dense.n * mean)
        images = np.empty_like(residual)
        images *= point.images(W, images).astype(kind)[:, None]
        residual -= images
        return point

    def keep(self, some: NDArray[np.bool_]) -> None:
        """Drop all but some problems."""
        if self.cost.shape[0] > 1:
            self.cost = self.cost[some]
        for name in ("problems", "largest", "positive", "residual", "W", "steps"):
            setattr(self, name, getattr(self, name)[some])

    def sums(
        self, some: Sequence[int], weights: Callable[[int, slice], Floats]
    ) -> Vector:
        """Return sums of rows with the weights times costs, a row for each problem."""
        dense = self.rows.dense

        def of_strip(strip: slice) -> Vector:
            total = np.zeros((len(some), dense.width))
            for block in dense.blocks(strip):
                own = np.stack([weights(k, block) * self._cost(k)[block] for k in some])
                dense.add_sums(dense.X[block], own.T, total)
            return total

        return np.sum(list(dense.over_strips(of_strip)), axis=0)

    def images(self, S: Vector, out: Floats) -> Vector:
        """Set the products of all rows with S, divided by sizes that it returns."""
        dense = self.rows.dense
        sizes = _sizes(S)
        directions = (S / sizes[:, None]).astype(out.dtype)

        def of_strip(strip: slice) -> None:
            for block in dense.blocks(strip):
                out[:, block] = dense.scores(dense.X[block], directions).T

        for _ in dense.over_strips(of_strip):
            pass
        return sizes

    def _cost(self, k: int) -> Floats:
        return self.cost[k if len(self.cost) > 1 else 0]

    def inside(self, k: int) -> NDArray[np.bool_]:
        """Return which rows of problem k are active."""
        return (self.residual[k] > 0) == self.positive[k]

    def look(self, stopped: Callable[[], bool]) -> None:
        """Compute P, D and a step of every problem.

        Where few rows are active, conjugate gradients solve the system of a step over
        copies of these. Otherwise the step is the preconditioned gradient.
        """
        count, dense = len(self.W), self.rows.dense
        self.primal, self.dual, weight = np.empty((3, count))
        self.steps = np.empty_like(self.W)
        sizes = [int(np.count_nonzero(self.inside(k))) for k in range(count)]
        few = [k for k in range(count) if sizes[k] <= self.rows.most_active]
        many = [k for k in range(count) if sizes[k] > self.rows.most_active]

        def together(group: list[int]) -> None:
            active = []
            for k in group:
                place = np.flatnonzero(self.inside(k))
                cost = self._cost(k)[place]
                active.append(Active(dense, dense.X[place], cost))
                sums = active[-1].sums(self.residual[k, place] * cost)
                self.steps[k], weight[k] = self._values(k, place, sums)
            self._gradients(group, active, weight[group], stopped)

        for _ in dense.over(together, grouped(few, sizes, self.rows)):
            pass
        if many:
            masks = {k: self.inside(k) for k in many}
            sums = self.sums(many, lambda k, b: self.residual[k, b] * masks[k][b])
            for k, own in zip(many, sums, strict=True):
                self.steps[k], weight[k] = self._values(
                    k, np.flatnonzero(masks[k]), own
                )
            self.steps[many] = -self.rows.solve(self.steps[many], weight[many])

    def _values(self, k: int, inside: Numbers, sums: Vector) -> tuple[Vector, float]:
        """Set P and D of problem k; return its gradient and the weight of X'X/n."""
        w, v = self.W[k], 2.0 * self.largest[k] * sums
        r, cost = self.residual[k, inside].astype(np.float64), self._cost(k)[inside]
        loss = self.largest[k] * float(cost @ r**2)
        total = 2.0 * self.largest[k] * float(cost @ np.abs(r))
        self.primal[k] = 0.5 * float(w @ w) + loss
        # D of the best multiple of a_i = 2 c_i max(0, u_i).
        self.dual[k] = 0.5 * total**2 / max(float(v @ v) + 2.0 * loss, TINY)
        return w - v, 2.0 * self.largest[k] * float(cost.sum(dtype=np.float64))

    def _gradients(
        self,
        group: list[int],
        active: list[Active],
        weight: Vector,
        stopped: Callable[[], bool],
    ) -> None:
        """Replace gradients by steps of conjugate gradients, for some problems."""
        rows, factor = self.rows, 2.0 * self.largest[group]
        settings = rows.settings
        R = -self.steps[group]
        S, Y = np.zeros_like(R), rows.solve(R, weight)
        P, H, left = Y.copy(), np.zeros_like(R), _dots(R, Y)
        goal = settings.residual * left
        for _ in range(settings.most_gradients):
            going = np.flatnonzero(left > goal)
            if not len(going) or stopped():
                break
            for j, size in zip(going, _sizes(P[going]), strict=True):
                H[j] = P[j] + factor[j] * active[j].product(P[j], size)
            bent = np.maximum(_dots(P[going], H[going]), TINY)
            length = (left[going] / bent)[:, None]
            S[going] += length * P[going]
            R[going] -= length * H[going]
            Y = rows.solve(R[going], weight[going])
            before, left[going] = left[going], _dots(R[going], Y)
            P[going] = Y + (left[going] / before)[:, None] * P[going]
        self.steps[group] = S

    def move(self) -> None:
        """Move w along the steps, to the least P."""
        images = np.empty_like(self.residual)
        sizes = self.images(self.steps, images)

        def along(k: int) -> None:
            t = self._length(k, images[k], sizes[k])
            self.W[k] += t * self.steps[k]
            images[k] *= images.dtype.type(t * sizes[k])
            self.residual[k] -= images[k]

        for _ in self.rows.dense.over(along, range(len(self.W))):
            pass

    def _length(self, k: int, image: Floats, size: float) -> float:
        """Return the t that minimises P(w + t s), by Newton's method in one variable.

        P is piecewise quadratic along s. A step that leaves the interval where the
        derivative changes its sign is replaced by its middle.
        """
        s, residual, cost = self.steps[k], self.residual[k], self._cost(k)
        settings = self.rows.settings
        first, square = float(self.W[k] @ s), float(s @ s)
        t, low, high = 1.0, 0.0, math.inf
        for _ in range(settings.search_steps):
            now = residual - image * image.dtype.type(t * size)
            weighted = image * ((now > 0) == self.positive[k])
            weighted *= cost
            bent = 2.0 * self.largest[k] * size**2 * float(weighted @ image)
            slope = first + t * square
            slope -= 2.0 * self.largest[k] * size * float(weighted @ now)
            low, high = (t, high) if slope < 0.0 else (low, t)
            new = t - slope / max(square + bent, TINY)
            if not low < new < high:
                new = 2.0 * t if math.isinf(high) else 0.5 * (low + high)
            change, t = abs(new - t), new
            if change <= settings.search_accuracy * t:
                break
        return t


def grouped(
    problems: list[int], sizes: list[int], rows: SharedRows
) -> Iterator[list[int]]:
    """Yield groups of problems whose active rows are copied at a time."""
    group: list[int] = []
    copied, most = 0, int(rows.settings.group_share * rows.dense.n)
    for k in problems:
        full = len(group) == rows.settings.group
        if full or (group and copied + sizes[k] > most):
            yield group
            group, copied = [], 0
        group.append(k)
        copied += sizes[k]
    if group:
        yield group

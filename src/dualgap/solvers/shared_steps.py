"""`newton` for many problems over the same dense rows, which share its passes.

Problem    for every k: min over w of P_k(w) = 1/2 ||w||^2 + sum_i c_ik max(0, u_ik)^2,
           u_ik = 1 - y_ik x_i.w
Update     w <- the least P_k in the span of w, s and the constant feature, at no pass;
           H s = -grad P_k(w), where
           H = I + 2 sum c_ik x_i x_i' over the active rows, u_ik > 0. Conjugate
           gradients solve that system over copies of the active rows, or, where these
           are many, over all rows for all problems together, as matrix products. The
           largest eigenvalues of X'X, times the costs of the active rows, precondition
           all problems. The first w is the ridge solution. Problems whose gap is small
           enough leave.
Guarantee  P_k never rises but for rounding, and w_k -> w_k*. The dual point is
           a_i = 2 c_i max(0, u_i), and P - D = 1/2 ||grad P||^2.
Cost       a step of K problems: one or two matrix products of 2 n d K operations, and
           four products with the active rows of each problem for each conjugate
           gradient. Eigenvalues once: n d^2 operations, for at most 16 rows per
           column; beyond 1,200 columns 2,600 n d, for at most 19,200 rows. 9 bytes per
           row and problem (17 for float64), for at most 128 problems at a time; copies
           of the active rows per thread, where these are few.
Source     Keerthi and DeCoste, JMLR 6, 2005, for one problem; what problems share is
           this package's.

Products have the precision of the rows, and the proof float64. Where rounding in
float32 keeps a problem from its accuracy, the ordinary solver trains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
    #: Up to this many columns X'X itself is computed; beyond, products with it alone.
    widest_gram: int = 1200
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
    #: A product of K problems with all rows costs as many plain ones, and `wide` more
    #: per problem. Copies of the active rows are used where they are fewer.
    narrow: float = 1.9
    #: Plain products that a problem adds to a product of several.
    wide: float = 0.053
    #: At most this part of the rows is copied.
    active_share: float = 0.5
    #: It may copy this many entries in any case.
    active_entries: int = 1_000_000
    #: Most problems whose conjugate gradients go together, to share a preconditioner.
    group: int = 16
    #: Most of the rows that several problems copy together.
    group_share: float = 0.25
    #: Most steps of the search in the span of a few directions.
    search_steps: int = 30
    #: The search ends when a step would gain less than this part of what the first did,
    search_accuracy: float = 1e-4
    #: or less than this many roundings of P.
    search_rounding: float = 1e-3
    #: A step of the search gains at least this part of what its slope promises.
    least_gain: float = 1e-4
    #: Part of a step at which the search ends, for rounding hides its gain.
    shortest_search: float = 1e-4


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
        kind, width = dense.X.dtype, dense.width
        columns = min(width, settings.widest_gram)
        step = max(1, dense.n // (settings.gram_rows * columns))
        most = 0.1 * float(np.finfo(kind).max)
        with np.errstate(over="ignore", invalid="ignore"):
            if width > settings.widest_gram:
                found = _largest(lambda V: dense.gram_product(step, V), width, settings)
            else:
                gram = dense.gram(step)
                if not np.abs(gram).max() < most:
                    return None
                few = width <= 2 * settings.rank
                multiply = gram.__matmul__
                found = (
                    np.linalg.eigh(gram) if few else _largest(multiply, width, settings)
                )
        values, vectors = found
        if not values.max() < most:
            return None
        values = np.maximum(values, 0.0)
        rest = settings.rest * values.min() if len(values) < width else values.min()
        return cls(dense, values, vectors.astype(kind), float(rest), settings)

    def most_active(self, problems: int) -> int:
        """Return up to how many active rows are copied, by counted cost."""
        settings = self.settings
        share = min(settings.narrow / problems + settings.wide, settings.active_share)
        few = settings.active_entries // self.dense.width
        return max(few, int(share * self.dense.n))

    def solve(self, W: Vector, weight: Vector) -> Vector:
        """Return ``(I + weight X'X/n)^-1 w``, or nearly so, for each row w of W."""
        scale = 1.0 / (1.0 + weight[:, None] * self.values)
        rest = 1.0 / (1.0 + weight[:, None] * self.rest)
        sizes = _sizes(W)[:, None]
        part = (W / sizes).astype(self.vectors.dtype) @ self.vectors
        part *= (scale / rest - 1.0).astype(part.dtype)
        return (W + (part @ self.vectors.T).astype(np.float64) * sizes) * rest


def _largest(
    multiply: Callable[[Vector], Vector], width: int, settings: SharedStepsSettings
) -> tuple[Vector, Vector]:
    """Return the largest eigenvalues of a matrix and their vectors, or nearly.

    A few steps of subspace iteration from fixed random vectors are enough for a
    preconditioner (Halko, Martinsson and Tropp, SIAM Review 53, 2011). Values are NaN
    if products overflow.
    """
    random = np.random.default_rng(0)
    basis = random.standard_normal((width, settings.rank + settings.more_vectors))
    for _ in range(settings.power_steps):
        basis = np.linalg.qr(multiply(basis))[0]
    small = basis.T @ multiply(basis)
    if not np.isfinite(small).all():
        return np.full(1, np.nan), basis[:, :1]
    values, turn = np.linalg.eigh(small)
    return values[-settings.rank :], (basis @ turn)[:, -settings.rank :]


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
            sums = point.sums(count, lambda b: residual[:, b] * point.cost[:, b])
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

    def sums(self, count: int, weights: Callable[[slice], Floats]) -> Vector:
        """Return sums of rows with weights, a block at a time, for several problems."""
        dense = self.rows.dense

        def add(block: slice, X: Floats, total: Vector) -> None:
            dense.add_sums(X, weights(block).T, total)

        return dense.total((count, dense.width), add, dense.X.dtype)

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

        Conjugate gradients solve the system of a step: over copies of the active rows
        where these are few, otherwise by matrix products with all rows.
        """
        count, dense = len(self.W), self.rows.dense
        self.primal, self.dual, weight = np.empty((3, count))
        self.steps = np.empty_like(self.W)
        sizes = [int(np.count_nonzero(self.inside(k))) for k in range(count)]
        most = self.rows.most_active(count)
        few = [k for k in range(count) if sizes[k] <= most]
        many = [k for k in range(count) if sizes[k] > most]

        def together(group: list[int]) -> None:
            active = []
            for k in group:
                place = np.flatnonzero(self.inside(k))
                cost = self._cost(k)[place]
                active.append(Active(dense, dense.X[place], cost))
                sums = active[-1].sums(self.residual[k, place] * cost)
                self.steps[k], weight[k] = self._values(k, place, sums)

            def product(going: Numbers, P: Vector) -> Vector:
                sizes = _sizes(P)
                each = zip(going, P, sizes, strict=True)
                return np.stack([active[j].product(p, size) for j, p, size in each])

            self._gradients(group, product, weight[group], stopped)

        for _ in dense.over(together, grouped(few, sizes, self.rows)):
            pass
        if many:
            self._look_at_all(many, weight, stopped)

    def _look_at_all(
        self, many: list[int], weight: Vector, stopped: Callable[[], bool]
    ) -> None:
        """Set P, D and steps of problems with many active rows, by shared passes."""
        dense = self.rows.dense
        weights = np.stack([self.inside(k) * self._cost(k) for k in many])
        sums = self.sums(len(many), lambda b: self.residual[many, b] * weights[:, b])
        for k, own, row in zip(many, sums, weights, strict=True):
            self.steps[k], weight[k] = self._values(k, np.flatnonzero(row), own)

        def product(going: Numbers, P: Vector) -> Vector:
            sizes = _sizes(P)[:, None]
            directions = (P / sizes).astype(dense.X.dtype)
            own = weights[going]

            def of_strip(strip: slice) -> Vector:
                total = np.zeros(P.shape)
                for block in dense.blocks(strip):
                    images = dense.scores(dense.X[block], directions)
                    images *= own[:, block].T
                    dense.add_sums(dense.X[block], images, total)
                return total

            return sizes * np.sum(list(dense.over_strips(of_strip)), axis=0)

        self._gradients(many, product, weight[many], stopped)

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
        product: Callable[[Numbers, Vector], Vector],
        weight: Vector,
        stopped: Callable[[], bool],
    ) -> None:
        """Replace gradients by steps of conjugate gradients, for some problems.

        ``product(some, P)`` is the sum of ``c_i (x_i.p) x_i`` over the active rows of
        each of some problems of the group.
        """
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
            H[going] = P[going] + factor[going, None] * product(going, P[going])
            bent = np.maximum(_dots(P[going], H[going]), TINY)
            length = (left[going] / bent)[:, None]
            S[going] += length * P[going]
            R[going] -= length * H[going]
            Y = rows.solve(R[going], weight[going])
            before, left[going] = left[going], _dots(R[going], Y)
            P[going] = Y + (left[going] / before)[:, None] * P[going]
        self.steps[group] = S

    def move(self) -> None:
        """Move w to the least P in the span of the step, w and the constant feature."""
        images = np.empty_like(self.residual)
        sizes = self.images(self.steps, images)
        dense, kind = self.rows.dense, images.dtype
        constant = np.zeros(dense.width)
        constant[-1] = 1.0
        flat = np.full(dense.n, dense.constant, kind)
        few = 3 if dense.constant else 2

        def along(k: int) -> None:
            # Products of all rows with the three directions are known.
            fitted = np.where(self.positive[k], kind.type(1), kind.type(-1))
            fitted -= self.residual[k]
            directions = np.stack([self.steps[k] / sizes[k], self.W[k], constant][:few])
            spanned = np.stack([images[k], fitted, flat][:few])
            theta = self._lengths(k, directions, spanned)
            self.W[k] += theta @ directions
            self.residual[k] -= theta.astype(kind) @ spanned

        for _ in dense.over(along, range(len(self.W))):
            pass

    def _lengths(self, k: int, directions: Vector, spanned: Floats) -> Vector:
        """Return the lengths theta that minimise P(w + theta directions).

        Newton's method with halved steps; P is piecewise quadratic. ``spanned`` are the
        products of all rows with the directions.
        """
        settings, w, cost = self.rows.settings, self.W[k], self._cost(k)
        gram, theta = directions @ directions.T, np.zeros(len(directions))
        rounding = settings.search_rounding * float(np.finfo(spanned.dtype).eps)
        first = 0.0

        def at(theta: Vector) -> tuple[float, Vector, Vector]:
            moved = w + theta @ directions
            residual = self.residual[k] - theta.astype(spanned.dtype) @ spanned
            active = np.flatnonzero((residual > 0) == self.positive[k])
            r = residual[active].astype(np.float64)
            weighted = 2.0 * self.largest[k] * cost[active].astype(np.float64)
            Z = spanned[:, active].astype(np.float64)
            value = 0.5 * (float(moved @ moved) + float(weighted @ r**2))
            gradient = directions @ moved - Z @ (weighted * r)
            return value, gradient, gram + (Z * weighted) @ Z.T

        value, gradient, bent = at(theta)
        for _ in range(settings.search_steps):
            step = _newton_step(gradient, bent)
            gain = -float(gradient @ step)
            first = first or gain
            if not gain > max(settings.search_accuracy * first, rounding * value):
                break
            length, new = 1.0, at(theta + step)
            while not new[0] <= value - settings.least_gain * length * gain:
                length *= 0.5
                if length < settings.shortest_search:
                    return theta
                new = at(theta + length * step)
            theta = theta + length * step
            value, gradient, bent = new
        return theta


def _newton_step(gradient: Vector, bent: Vector) -> Vector:
    """Return ``-bent^-1 gradient``, also if directions are zero or nearly parallel."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(bent), TINY))
    bent = bent * np.outer(scale, scale) + 1e-10 * np.eye(len(scale))
    step: Vector = -scale * np.linalg.solve(bent, scale * gradient)
    return step


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

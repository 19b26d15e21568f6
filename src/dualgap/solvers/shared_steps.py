"""`newton` for many problems over the same dense rows, which share its passes.

Problem    for every k: min over w of P_k(w) = 1/2 ||w||^2 + sum_i c_ik max(0, u_ik)^2,
           u_ik = 1 - y_ik x_i.w
Update     w <- the least P_k in the span of w, s and the constant feature, at no pass;
           H s = -grad P_k(w), where
           H = I + 2 sum c_ik x_i x_i' over the active rows, u_ik > 0. Conjugate
           gradients solve that system over copies of the active rows, or, where these
           are many, over all rows for all problems together, as matrix products. There
           a sample of the rows gives H, until the gap no longer falls by half. The
           largest eigenvalues of X'X, times the costs of the active rows, precondition
           all problems. The first w is the ridge solution, or a step from the one of
           the sample. Where that system took many conjugate gradients and has few
           active rows or columns, its exact inverse preconditions the next. Problems
           whose gap is small enough leave.
Guarantee  P_k never rises but for rounding, and w_k -> w_k*. The dual point is
           a_i = 2 c_i max(0, u_i), and P - D = 1/2 ||grad P||^2.
Cost       a step of K problems: one or two matrix products of 2 n d K operations, and
           four products with the active rows of each problem for each conjugate
           gradient. Eigenvalues once: n d^2 operations, for at most 16 rows per
           column; beyond 1,200 columns 2,600 n d, for at most 19,200 rows. 9 bytes per
           row and problem (17 for float64), for at most 128 problems at a time; copies
           of the sample, and of the active rows per thread, where these are few.
Source     Keerthi and DeCoste, JMLR 6, 2005, for one problem; what problems share is
           this package's.

Products have the precision of the rows, and the proof float64. Where rounding in
float32 keeps a problem from its accuracy, the ordinary solver trains it.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..losses import Vector
from ..problems.batch import LinearBatch
from ..problems.dense import DenseRows, Floats
from .active_rows import Active, Inverse
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
    #: Rows per column of the sample that gives steps of problems with many active rows,
    sample_rows: int = 16
    #: at most this part of all rows,
    sample_share: float = 0.5
    #: with at least this many active ones per column.
    sample_active: float = 2.0
    #: A product of K problems with all rows costs as many plain ones, and `wide` more
    #: per problem. Copies of the active rows are used where they are fewer.
    narrow: float = 1.9
    #: Plain products that a problem adds to a product of several.
    wide: float = 0.053
    #: Copies get the exact inverse of H where their rows or columns are at most this
    #: many for each conjugate gradient of the last step,
    inverse_size: int = 60
    #: of which a first step counts as this many.
    first_gradients: float = 3.0
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
    #: Rows that it looks at together.
    search_rows: int = 16384
    #: The search ends when a step would gain less than this part of what the first did,
    search_accuracy: float = 1e-4
    #: or less than this many roundings of P.
    search_rounding: float = 1e-3
    #: A step of the search gains at least this part of what its slope promises.
    least_gain: float = 1e-4
    #: Part of a step at which the search ends, for rounding hides its gain.
    shortest_search: float = 1e-4
    #: Up to this relative gap, sums over the rows are in float64.
    search_near: float = 1e-2


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

    @functools.cached_property
    def sample(self) -> Numbers:
        """Rows that stand for all of them in a step that needs not be exact."""
        count = self.settings.sample_rows * self.dense.width
        random = np.random.default_rng(0)
        return np.sort(random.choice(self.dense.n, count, replace=False))

    @functools.cached_property
    def sampled(self) -> DenseRows:
        """Copies of these rows."""
        dense = self.dense
        return DenseRows(dense.X[self.sample], dense.constant, dense.pool)

    @property
    def small(self) -> SharedRows | None:
        """The sample with the eigenvalues of all rows; None if it is not much fewer."""
        if math.isinf(self.least_sampled):
            return None
        return replace(self, dense=self.sampled)

    @property
    def least_sampled(self) -> float:
        """Fewest active rows of a problem whose steps use the sample."""
        settings, dense = self.settings, self.dense
        share = settings.sample_rows * dense.width / dense.n
        if share > settings.sample_share:
            return math.inf
        return settings.sample_active * dense.width / share

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


@dataclass
class SharedPoint:
    """Problems of a chunk that are not solved yet, and their w."""

    rows: SharedRows
    #: Their numbers in the batch, shape (K,).
    problems: Numbers
    #: Shape (K, n).
    positive: NDArray[np.bool_]
    #: Costs relative to the largest one of the problem, shape (1, n).
    cost: Floats
    #: The largest cost of each problem, shape (K,).
    largest: Vector
    #: Shape (K, width).
    W: Vector
    #: ``y_i - x_i.w``, shape (K, n).
    residual: Floats
    primal: Vector = field(init=False)
    dual: Vector = field(init=False)
    steps: Vector = field(init=False)
    weight: Vector = field(init=False)
    active: Vector = field(init=False)
    exact: NDArray[np.bool_] = field(init=False)
    #: Conjugate gradients of the last step of each problem without an exact inverse.
    made: Vector = field(init=False)

    def __post_init__(self) -> None:
        self.made = np.full(len(self.W), self.rows.settings.first_gradients)

    @classmethod
    def at(
        cls,
        rows: SharedRows,
        batch: LinearBatch,
        problems: Numbers,
        W: Vector,
        F: Floats,
        sample: Numbers | None = None,
    ) -> SharedPoint:
        """Return the point of some problems of a batch, whose residuals are F.

        A sample of the rows stands for all of them.
        """
        cost = batch.costs(problems.tolist())
        positive = batch.signs(problems.tolist()) > 0
        if sample is not None:
            cost = cost[:, sample] * (cost.shape[1] / len(sample))
            positive = positive[:, sample]
        largest = cost.max(axis=1, keepdims=True)
        relative = (cost / largest).astype(F.dtype)
        each = np.broadcast_to(largest[:, 0], len(problems)).copy()
        return cls(rows, problems, positive, relative, each, W, F)

    @classmethod
    def start(
        cls,
        rows: SharedRows,
        batch: LinearBatch,
        problems: Numbers,
        W: Vector | None,
        sample: Numbers | None = None,
    ) -> SharedPoint:
        """Return the point W, or the ridge solutions, where every row is active."""
        dense, kind, count = rows.dense, rows.dense.X.dtype, len(problems)
        residual, one = np.empty((count, dense.n), kind), kind.type(1)
        ridge = W is None
        W = np.zeros((count, dense.width)) if W is None else W
        point = cls.at(rows, batch, problems, W, residual, sample)
        np.copyto(residual, np.where(point.positive, one, -one))
        if ridge:
            sums = point.class_sums()
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
        for name in (
            "problems", "largest", "positive", "residual", "W", "steps", "primal",
            "dual", "weight", "active", "made",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name)[some])

    def class_sums(self) -> Vector:
        """Return the sums of ``c_i y_i x_i``."""
        dense, kind, cost = self.rows.dense, self.rows.dense.X.dtype, self.cost
        few = (
            len(cost) == 1 and 4 * np.count_nonzero(self.positive) < self.positive.size
        )

        def add(block: slice, X: Floats, total: Vector) -> None:
            own = self.positive[:, block]
            if few:  # twice the positive rows, less all rows
                both = sparse.csr_matrix(own * (2.0 * cost[:, block]).astype(kind))
                total[:, : dense.d] += both @ X
                if dense.constant:
                    total[:, dense.d] += dense.constant * both.sum(axis=1).A1
                every = np.zeros((1, dense.width))
                dense.add_sums(X, cost[:, block].T, every)
                total -= every
            else:
                weights = np.where(own, cost[:, block], -cost[:, block])
                dense.add_sums(X, weights.T, total)

        return dense.total(self.W.shape, add, kind)

    def images(self, S: Vector, out: Floats) -> Vector:
        """Set the products of all rows with S, divided by sizes that it returns."""
        dense = self.rows.dense
        sizes = _sizes(S)
        directions = (S / sizes[:, None]).astype(out.dtype)

        def of_strip(strip: slice) -> None:
            for block in dense.blocks(strip, out.dtype):
                out[:, block] = dense.scores(dense.X[block], directions).T

        for _ in dense.over_strips(of_strip):
            pass
        return sizes

    def _cost(self, k: int) -> Floats:
        return self.cost[k if len(self.cost) > 1 else 0]

    def inside(self, k: int, some: slice | Numbers = slice(None)) -> NDArray[np.bool_]:
        """Return which rows, or which of some, are active in problem k."""
        return (self.residual[k, some] > 0) == self.positive[k, some]

    def look(self) -> None:
        """Compute P, D and the gradient of every problem, by one pass."""
        dense, width = self.rows.dense, self.rows.dense.width

        def add(block: slice, X: Floats, total: Vector) -> None:
            r, own = self.residual[:, block], self.positive[:, block]
            active = (r > 0) == own
            weights = active * self.cost[:, block]
            values = total[:, width:].T
            values[0] += np.count_nonzero(active, axis=1)
            values[1] += weights.sum(axis=1)
            weights *= r
            dense.add_sums(X, weights.T, total[:, :width])
            values[2] += np.abs(weights).sum(axis=1)
            weights *= r
            values[3] += weights.sum(axis=1)

        shape = len(self.W), width + 4
        sums = dense.total(shape, add, dense.X.dtype)
        factor, v = 2.0 * self.largest, sums[:, :width]
        v *= factor[:, None]
        self.active, weight, total, loss = sums[:, width:].T.copy()
        self.weight = factor * weight
        self.primal = 0.5 * (_dots(self.W, self.W) + factor * loss)
        # D of the best multiple of a_i = 2 c_i max(0, u_i).
        bent = np.maximum(_dots(v, v) + factor * loss, TINY)
        self.dual = 0.5 * (factor * total) ** 2 / bent
        self.steps = self.W - v

    def aim(self, stopped: Callable[[], bool], exact: NDArray[np.bool_]) -> None:
        """Replace gradients by steps, by conjugate gradients.

        They go over copies of the active rows where these are few, otherwise by matrix
        products with all rows or, for problems that need no exact step, with a sample.
        """
        self.exact = exact
        most, dense = self.rows.most_active(len(self.W)), self.rows.dense
        sizes = self.active.astype(np.intp).tolist()
        few = [k for k, size in enumerate(sizes) if size <= most]

        def together(group: list[int]) -> None:
            active, inverses = [], {}
            for j, k in enumerate(group):
                # Held-out rows of a fold have no cost.
                place = np.flatnonzero(self.inside(k) & (self._cost(k) > 0))
                active.append(Active(dense, dense.X[place], self._cost(k)[place]))
                most = self.rows.settings.inverse_size * self.made[k]
                if min(len(place), dense.width) <= most:
                    inverses[j] = active[-1].inverse(2.0 * self.largest[k])

            def product(going: Numbers, P: Vector) -> Vector:
                sizes = _sizes(P)
                each = zip(going, P, sizes, strict=True)
                return np.stack([active[j].product(p, size) for j, p, size in each])

            self._gradients(group, product, stopped, inverses)

        for _ in dense.over(together, grouped(few, sizes, self.rows)):
            pass
        least = self.rows.least_sampled if len(self.cost) == 1 else math.inf
        many, rough = self.active > most, (self.active >= least) & ~exact
        if (many & rough).any():
            self._aim_together(np.flatnonzero(many & rough), self.rows.sample, stopped)
        if (many & ~rough).any():
            self._aim_together(np.flatnonzero(many & ~rough), None, stopped)

    def _aim_together(
        self, many: Numbers, sample: Numbers | None, stopped: Callable[[], bool]
    ) -> None:
        """Set the steps of problems with many active rows, by shared passes."""
        every = slice(None) if sample is None else sample
        dense = self.rows.dense if sample is None else self.rows.sampled
        weights = np.stack([self.inside(k, every) * self._cost(k)[every] for k in many])
        if sample is not None:
            share = self.weight[many] / (2.0 * self.largest[many])
            share /= np.maximum(weights.sum(axis=1, dtype=np.float64), TINY)
            weights *= share[:, None].astype(weights.dtype)

        def product(going: Numbers, P: Vector) -> Vector:
            sizes = _sizes(P)[:, None]
            directions = (P / sizes).astype(dense.X.dtype)
            own = weights[going]

            def add(block: slice, X: Floats, total: Vector) -> None:
                images = dense.scores(X, directions)
                images *= own[:, block].T
                dense.add_sums(X, images, total)

            return sizes * dense.total(P.shape, add, dense.X.dtype)

        self._gradients(many.tolist(), product, stopped)

    def _gradients(
        self,
        group: list[int],
        product: Callable[[Numbers, Vector], Vector],
        stopped: Callable[[], bool],
        inverses: Mapping[int, Inverse | None] = MappingProxyType({}),
    ) -> None:
        """Replace gradients by steps of conjugate gradients, for some problems.

        ``product(some, P)`` is the sum of ``c_i (x_i.p) x_i`` over the active rows of
        each of some problems. Some have inverses, by their place in the group.
        """
        rows, factor, weight = self.rows, 2.0 * self.largest[group], self.weight[group]
        settings = rows.settings

        def solve(some: Numbers, R: Vector) -> Vector:
            Y = rows.solve(R, weight[some])
            for y, r, j in zip(Y, R, some.tolist(), strict=True):
                if inverse := inverses.get(j):
                    y[:] = inverse.times(r)
            return Y

        R, made = -self.steps[group], np.zeros(len(group))
        S, Y = np.zeros_like(R), solve(np.arange(len(group)), R)
        P, H, left = Y.copy(), np.zeros_like(R), _dots(R, Y)
        goal = settings.residual * left
        for _ in range(settings.most_gradients):
            going = np.flatnonzero(left > goal)
            if not len(going) or stopped():
                break
            made[going] += 1.0
            H[going] = P[going] + factor[going, None] * product(going, P[going])
            bent = np.maximum(_dots(P[going], H[going]), TINY)
            length = (left[going] / bent)[:, None]
            S[going] += length * P[going]
            R[going] -= length * H[going]
            Y = solve(going, R[going])
            before, left[going] = left[going], _dots(R[going], Y)
            P[going] = Y + (left[going] / before)[:, None] * P[going]
        self.steps[group] = S
        plain = [j for j in range(len(group)) if j not in inverses]
        self.made[np.array(group)[plain]] = made[plain]

    def move(self) -> None:
        """Move w to the least P in the span of the step, w and the constant feature."""
        images = np.empty_like(self.residual)
        sizes = self.images(self.steps, images)
        dense, kind = self.rows.dense, images.dtype
        constant = np.zeros(dense.width)
        constant[-1] = 1.0
        few = 3 if dense.constant else 2

        def along(k: int) -> None:
            # Products of all rows with the three directions are known.
            directions = np.stack([self.steps[k] / sizes[k], self.W[k], constant][:few])
            spanned = np.empty((few + 1, dense.n), kind)
            spanned[0] = 0.0  # room for the residuals
            spanned[1] = images[k]
            spanned[2] = self.positive[k]
            spanned[2] *= 2.0
            spanned[2] -= 1.0 + self.residual[k]
            spanned[3:] = dense.constant
            theta = self._lengths(k, directions, spanned, sizes[k])
            self.W[k] += theta @ directions
            self.residual[k] -= theta.astype(kind) @ spanned[1:]

        for _ in dense.over(along, range(len(self.W))):
            pass

    def _lengths(
        self, k: int, directions: Vector, spanned: Floats, whole: float
    ) -> Vector:
        """Return the lengths theta that minimise P(w + theta directions).

        Newton's method with halved steps; P is piecewise quadratic. ``spanned`` has the
        products of all rows with the directions, below a row for the residuals. The
        first step is to ``whole`` times the first direction, if P is smaller there.
        """
        settings, w, cost = self.rows.settings, self.W[k], self._cost(k)
        residual, positive = self.residual[k], self.positive[k]
        rounding = float(np.finfo(spanned.dtype).eps)
        gap = self.primal[k] - self.dual[k]
        if self.exact[k] or gap <= settings.search_near * self.primal[k]:
            rounding *= settings.search_rounding
            residual, spanned = residual.astype(float), spanned.astype(float)
        gram, factor = directions @ directions.T, 2.0 * self.largest[k]
        shape = len(spanned), len(spanned)

        def at(theta: Vector) -> tuple[float, Vector, Vector]:
            lengths, sums = theta.astype(spanned.dtype), np.zeros(shape)
            for begin in range(0, len(cost), settings.search_rows):
                piece = slice(begin, begin + settings.search_rows)
                Z = spanned[:, piece]
                np.subtract(residual[piece], lengths @ Z[1:], out=Z[0])
                active = ((Z[0] > 0) == positive[piece]) * cost[piece]
                sums += (Z * active) @ Z.T
            moved, sums = w + theta @ directions, factor * sums
            value = 0.5 * (float(moved @ moved) + float(sums[0, 0]))
            return value, directions @ moved - sums[0, 1:], gram + sums[1:, 1:]

        theta = np.zeros(len(directions))
        theta[0] = whole
        value, gradient, bent = at(theta)
        if not value < self.primal[k]:
            theta[0] = 0.0
            value, gradient, bent = at(theta)
        first = max(self.primal[k] - value, 0.0)
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
    return -scale * np.linalg.solve(bent, scale * gradient)


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

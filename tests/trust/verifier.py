"""Exact values of P and D, in rational numbers. Slow, and nothing of the package.

A float64 or float32 number is a rational number, so for given rows, costs, coefficients
and dual variables every value here is exact: no tolerance is needed anywhere.

    P(w, b) = 1/2 ||w||^2 + sum_i c_i l(y_i (w.x_i + b))
    D(a)    = sum_i a_i - 1/2 ||sum_i a_i y_i x_i||^2 - 1/2 sum_i delta_i a_i^2

A constant feature is a column of the rows. In place of rows a kernel matrix will do.
Regression and one class are in `ExactBox`, Crammer and Singer's problem in
`ExactClasses`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

Numbers = Sequence[Fraction]


def exact(values) -> list[Fraction]:
    """Floats, of any precision, as they are."""
    return [Fraction(float(v)) for v in values]


def dot(a: Numbers, b: Numbers) -> Fraction:
    return sum((x * z for x, z in zip(a, b, strict=True)), Fraction(0))


@dataclass
class Exact:
    """A binary problem.

    Attributes
    ----------
    rows : list of lists, or None
        x_i, the constant feature included.
    gram : list of lists
        x_i.x_j, or the kernel matrix.
    y, cost : list
    loss : str
        hinge, squared_hinge or smoothed_hinge.
    gamma : Fraction
        Of the smoothed hinge.
    free_bias : bool
    """

    rows: list[list[Fraction]] | None
    gram: list[list[Fraction]]
    y: list[int]
    cost: list[Fraction]
    loss: str
    gamma: Fraction
    free_bias: bool
    #: An optimum below it counts as that large.
    floor = Fraction(0)

    @classmethod
    def linear(cls, X, y, cost, loss, gamma, constant, free_bias) -> Exact:
        rows = [exact(x) for x in X]
        if constant:
            rows = [[*x, Fraction(float(constant))] for x in rows]
        gram = [[dot(a, b) for b in rows] for a in rows]
        return cls(rows, gram, [int(v) for v in y], exact(cost), loss, gamma, free_bias)

    @classmethod
    def kernel(cls, K, y, cost, loss, free_bias, shift) -> Exact:
        gram = [[Fraction(value) for value in row] for row in K]
        for i, row in enumerate(gram):
            row[i] += Fraction(float(shift))
            if not free_bias:  # the constant feature
                gram[i] = [value + 1 for value in row]
        signs = [int(v) for v in y]
        return cls(None, gram, signs, exact(cost), loss, Fraction(1), free_bias)

    def loss_of(self, margin: Fraction) -> Fraction:
        u = max(Fraction(0), 1 - margin)
        if self.loss == "hinge":
            return u
        if self.loss == "squared_hinge":
            return u * u
        if u < self.gamma:
            return u * u / (2 * self.gamma)
        return u - self.gamma / 2

    def upper(self, i: int) -> Fraction | None:
        """None: no bound."""
        if self.cost[i] == 0:
            return Fraction(0)
        return None if self.loss == "squared_hinge" else self.cost[i]

    def delta(self, i: int) -> Fraction:
        if self.cost[i] == 0 or self.loss == "hinge":
            return Fraction(0)
        curvature = Fraction(1, 2) if self.loss == "squared_hinge" else self.gamma
        return curvature / self.cost[i]

    def losses(self, scores: Numbers) -> Fraction:
        terms = zip(self.cost, self.y, scores, strict=True)
        return sum((c * self.loss_of(y * s) for c, y, s in terms), Fraction(0))

    def primal(self, w: Numbers, bias: Fraction = Fraction(0)) -> Fraction:
        assert self.rows is not None
        scores = [dot(x, w) + bias for x in self.rows]
        return dot(w, w) / 2 + self.losses(scores)

    def scores(self, alpha: Numbers) -> list[Fraction]:
        signed = [a * y for a, y in zip(alpha, self.y, strict=True)]
        return [dot(row, signed) for row in self.gram]

    def norm(self, alpha: Numbers) -> Fraction:
        scores = self.scores(alpha)
        return sum((a * y * s for a, y, s in zip(alpha, self.y, scores, strict=True)),
                   Fraction(0))  # fmt: skip

    def primal_of_duals(self, alpha: Numbers, bias: Fraction = Fraction(0)) -> Fraction:
        """P of ``sum_i alpha_i y_i x_i``, in whatever space the kernel has."""
        scores = [s + bias for s in self.scores(alpha)]
        return self.norm(alpha) / 2 + self.losses(scores)

    def dual(self, alpha: Numbers) -> Fraction:
        bent = sum((self.delta(i) * a * a for i, a in enumerate(alpha)), Fraction(0))
        return sum(alpha, Fraction(0)) - (self.norm(alpha) + bent) / 2

    def in_box(self, alpha: Numbers) -> bool:
        for i, a in enumerate(alpha):
            upper = self.upper(i)
            if a < 0 or (upper is not None and a > upper):
                return False
        return True

    def balanced(self, alpha: Numbers) -> list[Fraction]:
        """With sum_i alpha_i y_i = 0 exactly, where the bias is free."""
        if not self.free_bias:
            return list(alpha)
        sums = {s: sum((a for a, y in zip(alpha, self.y, strict=True) if y == s),
                       Fraction(0)) for s in (-1, 1)}  # fmt: skip
        least = min(sums.values())
        if least == 0:
            return [Fraction(0)] * len(alpha)
        return [a * least / sums[y] for a, y in zip(alpha, self.y, strict=True)]

    def bracket(self, points: Sequence[tuple]) -> tuple[Fraction, Fraction]:
        """The best bounds on P* that these points prove: (w, bias, alpha), any None.

        Also tried is the optimum on the face of the box that the best alpha is in: the
        exact solution of the linear system there, which often is the optimum.
        """
        lower = Fraction(0)
        upper = sum(self.cost, lower) * self.loss_of(lower)
        best = None
        for w, bias, alpha in points:
            if w is not None:
                upper = min(upper, self.primal(w, bias))
            if alpha is None:
                continue
            feasible = self.balanced(alpha)
            value = self.dual(feasible)
            if value > lower:
                lower, best = value, feasible
        if best is not None and not self.free_bias:
            face = self.on_face(best)
            for alpha in (best, face):
                if alpha is None or not self.in_box(alpha):
                    continue
                lower = max(lower, self.dual(alpha))
                upper = min(upper, self.primal_of_duals(alpha))
        return lower, upper

    def on_face(self, alpha: Numbers) -> list[Fraction] | None:
        """Where D is largest among the alphas with the same entries at a bound."""
        free = [i for i, a in enumerate(alpha) if a > 0 and a != self.upper(i)]
        Q = {(i, j): self.y[i] * self.y[j] * self.gram[i][j]
             for i, j in product(free, range(len(alpha)))}  # fmt: skip
        system = []
        for i in free:
            held = sum((Q[i, j] * alpha[j] for j in range(len(alpha)) if j not in free),
                       Fraction(0))  # fmt: skip
            row = [Q[i, j] + (self.delta(i) if i == j else 0) for j in free]
            system.append([*row, 1 - held])
        solution = solve(system)
        if solution is None:
            return None
        out = list(alpha)
        for i, value in zip(free, solution, strict=True):
            out[i] = value
        return out


@dataclass
class ExactBox:
    """Regression, or one class: signed dual variables in a box.

    P(f, b) = 1/2 ||f||^2 + b total + sum_i c_i l(y_i - f(x_i) - b),
    D(a)    = sum_i (y_i a_i - epsilon |a_i|) - 1/2 a'Ka - 1/2 sum_i delta_i a_i^2

    with l(r) = max(0, |r| - epsilon) or its square, |a_i| <= c_i or not bounded, and
    for one class l(r) = max(0, r), 0 <= a_i <= c_i. Where the bias is free the a_i add
    up to `total`.

    Attributes
    ----------
    rows : list of lists, or None
    gram : list of lists
    target, cost : list
    epsilon, total, floor : Fraction
    free_bias, squared, one_class : bool
    """

    rows: list[list[Fraction]] | None
    gram: list[list[Fraction]]
    target: list[Fraction]
    cost: list[Fraction]
    epsilon: Fraction = Fraction(0)
    total: Fraction = Fraction(0)
    floor: Fraction = Fraction(0)
    free_bias: bool = False
    squared: bool = False
    one_class: bool = False

    def loss_of(self, r: Fraction) -> Fraction:
        u = max(Fraction(0), r if self.one_class else abs(r) - self.epsilon)
        return u * u if self.squared else u

    def primal(self, norm: Fraction, scores: Numbers, bias: Fraction) -> Fraction:
        terms = zip(self.cost, self.target, scores, strict=True)
        losses = sum((c * self.loss_of(t - s - bias) for c, t, s in terms), Fraction(0))
        return norm / 2 + bias * self.total + losses

    def primal_of(self, w: Numbers, bias: Fraction) -> Fraction:
        assert self.rows is not None
        return self.primal(dot(w, w), [dot(x, w) for x in self.rows], bias)

    def primal_of_duals(self, alpha: Numbers, bias: Fraction) -> Fraction:
        scores = [dot(row, alpha) for row in self.gram]
        return self.primal(dot(alpha, scores), scores, bias)

    def dual(self, alpha: Numbers) -> Fraction:
        bent = Fraction(0)
        if self.squared:
            pairs = zip(alpha, self.cost, strict=True)
            bent = sum((a * a / (2 * c) for a, c in pairs if c), Fraction(0))
        scores = [dot(row, alpha) for row in self.gram]
        size = sum(map(abs, alpha), Fraction(0))
        linear = dot(self.target, alpha) - self.epsilon * size
        return linear - (dot(alpha, scores) + bent) / 2

    def in_box(self, alpha: Numbers) -> bool:
        for a, c in zip(alpha, self.cost, strict=True):
            if c == 0 and a != 0:
                return False
            if not self.squared and abs(a) > c:
                return False
            if self.one_class and a < 0:
                return False
        return True

    def feasible(self, alpha: Numbers) -> list[Fraction] | None:
        """With the sum that a free bias asks for; None if there is none in the box."""
        if not self.free_bias:
            return list(alpha)
        if self.one_class:
            least, most = sum(alpha, Fraction(0)), sum(self.cost, Fraction(0))
            if least >= self.total:
                return [a * self.total / least for a in alpha]
            if most < self.total:
                return None
            share = (self.total - least) / (most - least)
            return [a + share * (c - a) for a, c in zip(alpha, self.cost, strict=True)]
        up = sum((a for a in alpha if a > 0), Fraction(0))
        down = -sum((a for a in alpha if a < 0), Fraction(0))
        least = min(up, down)
        if least == 0:
            return [Fraction(0)] * len(alpha)
        return [a * least / (up if a > 0 else down) for a in alpha]


@dataclass
class ExactClasses:
    """The problem of Crammer and Singer.

    P(W) = 1/2 sum_m ||w_m||^2 + sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + [m != y_i])
    D(b) = sum_im b_im - 1/2 sum_m ||v_m||^2,  b_im >= 0 for m != y_i, at most c_i
           together,  v_m = sum_i ([m = y_i] sum_k b_ik - b_im) x_i
    """

    rows: list[list[Fraction]]
    y: list[int]
    cost: list[Fraction]
    classes: int
    floor = Fraction(0)
    free_bias = False

    def primal(self, W: Sequence[Numbers]) -> Fraction:
        value = sum((dot(w, w) for w in W), Fraction(0)) / 2
        for x, y, c in zip(self.rows, self.y, self.cost, strict=True):
            scores = [dot(w, x) for w in W]
            value += c * max(s - scores[y] + (m != y) for m, s in enumerate(scores))
        return value

    def in_box(self, alpha: Numbers) -> bool:
        """The signs; sums are made to fit in `dual`."""
        return all(
            (a <= 0) != (i % self.classes == self.y[i // self.classes]) or a == 0
            for i, a in enumerate(alpha)
        )

    def dual(self, alpha: Numbers) -> Fraction:
        """D of the others' duals, scaled down where they are more than c_i."""
        K, value = self.classes, Fraction(0)
        V = [[Fraction(0)] * len(self.rows[0]) for _ in range(K)]
        for i, (x, y, c) in enumerate(zip(self.rows, self.y, self.cost, strict=True)):
            b = [Fraction(0) if m == y else -alpha[i * K + m] for m in range(K)]
            total = sum(b, Fraction(0))
            if total > c:
                b, total = [v * c / total for v in b], c
            value += total
            for m in range(K):
                a = total if m == y else -b[m]
                if a:
                    V[m] = [v + a * t for v, t in zip(V[m], x, strict=True)]
        return value - sum((dot(v, v) for v in V), Fraction(0)) / 2


def kernel_matrix(X, name: str, gamma: float, coef0: float, degree: int):
    """k(x_i, x_j) of the rows, linear or polynomial."""
    rows, g, shift = [exact(x) for x in X], Fraction(gamma), Fraction(coef0)
    products = [[dot(x, z) for z in rows] for x in rows]
    if name == "linear":
        return products
    return [[(g * value + shift) ** degree for value in row] for row in products]


def solve(system: list[list[Fraction]]) -> list[Fraction] | None:
    """Gauss and Jordan; None if singular."""
    m = len(system)
    for k in range(m):
        pivot = next((i for i in range(k, m) if system[i][k] != 0), None)
        if pivot is None:
            return None
        system[k], system[pivot] = system[pivot], system[k]
        system[k] = [value / system[k][k] for value in system[k]]
        for i in range(m):
            if i != k and system[i][k] != 0:
                factor = system[i][k]
                system[i] = [
                    a - factor * b for a, b in zip(system[i], system[k], strict=True)
                ]
    return [row[m] for row in system]

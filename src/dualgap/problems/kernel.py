"""Kernel SVM problems and their certificates.

P(w) = 1/2 ||w||^2 + sum_i c_i l(y_i f(x_i)),   f(x) = sum_i a_i y_i (k(x_i, x) + 1)
D(a) = sum_i a_i - 1/2 a'Qa - 1/2 sum_i delta_i a_i^2,   0 <= a_i <= U_i

with Q_ij = y_i y_j (k_ij + 1), c_i = C sample_weight_i, and for the squared hinge
delta_i = 1/(2 c_i), U_i = inf. The 1 added to the kernel is the constant feature, that
is, a penalised bias b = sum_i a_i y_i. Nanculef et al. 2014 write the loss as
``C/2 sum max(0, .)^2``, so their C is twice the C here.

An unpenalised bias (``penalize_intercept=False``) gives the C-SVC of Cortes and Vapnik
1995 and of LIBSVM: f(x) = sum_i a_i y_i k(x_i, x) + b, Q_ij = y_i y_j k_ij, and the
dual has the additional constraint sum_i a_i y_i = 0. Without a bias
(``fit_intercept=False``) it is the same with b = 0, and without the constraint.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, ClassVar, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import core
from ..certificate import Bounds, Certificate
from ..checks import check_C, check_costs, check_labels
from ..data.rows import Points
from ..data.types import MatrixLike, ProblemLabel
from ..kernels.functions import Kernel, Precomputed
from ..kernels.gram import Gram, Matrix, Pairs
from ..losses import Loss, Vector, get_loss
from .base import ApproximateScores, Claim, KernelHint, Problem, Proof, hint_of
from .batch import Batch, S, SingleBatch
from .bias import balanced, best_bias
from .duals import extrapolated
from .kernel_matrix import SETTINGS, SUM, UNIT, MatrixProblem, dual_point, scaled_values
from .kernel_nu import InfeasibleNuError, NuClassification, half_of, largest_nu
from .reductions import OneVsOne, Signs, refuse_missing
from .rounding import Rounding


class Bias(TypedDict, total=False):
    """Arguments of :class:`KernelProblem` that set the bias."""

    fit_intercept: bool
    penalize_intercept: bool


def bounds_of(values: core.KernelValues) -> Bounds:
    """Return the bounds that values with their errors prove."""
    return Bounds.proved(
        values.primal, values.primal_error, values.dual, values.dual_error
    )


class KernelProblem(MatrixProblem):
    """Binary SVM over a kernel matrix, for :func:`dualgap.training.solve`.

    The model is the ``alpha`` of a solution, of shape (n,), or its ``w`` if it has one.
    The decision at a point x is ``sum_i alpha_i y_i (k(x_i, x) + 1)``, so a penalised
    bias is ``sum_i alpha_i y_i``. An unpenalised bias is the bias with the least loss
    for this alpha. :meth:`coef` returns either. The ``decisions`` of a solution, of
    shape (n,), are the decisions at the training rows. The solvers ``block`` and
    ``auto`` compute them in float32 for rows with neither a dual variable nor a loss,
    in float64 otherwise.

    Parameters
    ----------
    y : array-like of shape (n,)
        Labels, -1 or +1.
    C : float, default=1.0
        Weight of the loss, which is a sum over the examples.
    loss : str or Loss, default="squared_hinge"
        ``block`` trains the hinge with an unpenalised bias. Only ``kernel-pegasos``
        trains the smoothed hinge, the hinge with a penalised bias, and problems without
        a bias.
    penalize_intercept : bool, default=True
        If False, the bias is not penalised.
    fit_intercept : bool, default=True
        If False, there is no bias.

    Attributes
    ----------
    gram : Gram
    y : ndarray of shape (n,), int8
    cost : ndarray of shape (n,), float64
        ``c_i``.
    n : int
        Rows.
    free_bias : bool
        Whether the bias is not penalised.
    """

    kind: ClassVar[str] = "kernel"
    loss: Loss
    cost: Vector
    # The block solver reads these from every problem; kernel_boxes.py has others.
    lower = centre = epsilon = total = lowest = 0.0
    two_sided, two_sums, sides = False, False, (1.0, 1.0)

    def __init__(
        self,
        X: MatrixLike,
        y: ArrayLike,
        C: float | None = None,
        *,
        kernel: Kernel | None = None,
        loss: str | Loss = "squared_hinge",
        sample_weight: ArrayLike | None = None,
        cache_size: float = 200,
        penalize_intercept: bool = True,
        fit_intercept: bool = True,
        rows: ArrayLike | None = None,
    ) -> None:
        self.loss = get_loss(loss)
        self.free_bias = not penalize_intercept
        if self.free_bias and not fit_intercept:
            raise ValueError(
                "penalize_intercept=False needs an intercept; use fit_intercept=True"
            )
        self.constant = 1.0 if fit_intercept and penalize_intercept else 0.0
        super().__init__(X, kernel, cache_size, rows)
        self.C = check_C(C, None, self.n)
        self.y = check_labels(y, self.n)
        self.cost = check_costs(self.C, sample_weight, self.n)
        self.core_loss = core.Loss(self.loss.slope, self.loss.curvature)
        self._check_positive()

    @property
    def linear(self) -> Vector:
        """Linear term of the dual in the variables ``alpha_i y_i``, shape (n,)."""
        return self.y.astype(np.float64)

    def start(self) -> None:
        """Return None: training starts from 0."""

    @property
    def upper(self) -> Vector:
        """Upper bounds ``U_i`` of the dual variables, shape (n,)."""
        return self.loss.upper(self.cost)

    @property
    def lambda_(self) -> float:
        """The papers' lambda, ``1/sum_i c_i``."""
        return 1.0 / float(self.cost.sum())

    @property
    def delta(self) -> Vector:
        """Diagonal ``delta_i``, shape (n,)."""
        return self.loss.diagonal(self.cost)

    def coef(self, alpha: Vector) -> tuple[Vector, float]:
        """Return ``alpha_i y_i``, shape (n,), and the bias."""
        bias = self.known(alpha).bias if self.free_bias else self._bias(alpha, alpha)
        return alpha * self.y, bias

    def in_doubt(self, near: ApproximateScores) -> NDArray[np.bool_]:
        margins = self.y * (near.scores + near.bias)
        return self.loss.value(margins - SETTINGS.beyond(near.error)) != 0.0

    def _bias(self, alpha: Vector, scores: Vector) -> float:
        if self.free_bias:
            return best_bias(scores, self.y, self.cost, self.loss)
        return float(core.signed_sum(self.y, alpha)) if self.constant else 0.0

    def prove(self, claim: Claim) -> Proof:
        """Return bounds on P and D of alpha, from a scan in float64.

        alpha defines the model. It is clipped to its box. With the squared hinge and a
        penalised bias it is scaled by the s >= 0 that minimises
        ``P(s alpha) - D(s alpha)``. With an unpenalised bias it is moved to where
        ``sum_i alpha_i y_i`` is 0 up to rounding.

        If the claim has a w `apart` from alpha, P is of the model
        ``sum_i w_i y_i k(x_i, .)`` as given, and D of alpha. The proof holds w if the
        claim does.
        """
        of_alpha = replace(claim, w=None)
        if claim.w is None:
            return super().prove(of_alpha)
        if claim.apart:
            alpha = self._feasible(dual_point(of_alpha))
            return self._prove_apart(claim.w, alpha, hint_of(claim, KernelHint).stop)
        proof = super().prove(of_alpha)
        return proof._replace(w=proof.alpha)

    def _feasible(self, alpha: Vector) -> Vector:
        alpha = np.clip(alpha, 0.0, self.upper)
        if self.free_bias and core.signed_sum(self.y, alpha) != 0.0:
            alpha = balanced(self.y, alpha)
        return alpha

    def _factor(self, alpha: Vector, f: Vector) -> float:
        if math.isinf(self.loss.slope) and not self.free_bias:
            return scaled_values(self.cost, self.delta, alpha, self.y * f)[0]
        return 1.0

    def _prove_apart(self, w: Vector, alpha: Vector, stop: core.Stop | None) -> Proof:
        """Prove P of the model w, and D of a feasible alpha that it does not have."""
        scores, _, bias = self.known(alpha, stop)
        dual = self.bounds(alpha, scores, bias).certificate
        scores, _, bias = self.known(w, stop)
        proof = self.certify_model(w * self.y, bias).with_dual_of(dual)
        return Proof(w, alpha, proof, bias, scores + bias)

    def bounds(
        self, alpha: Vector, scores: Vector, bias: float, s: float = 1.0
    ) -> Bounds:
        own = float(core.signed_sum(self.y, alpha)) if self.constant else 0.0
        free = None
        if self.free_bias:
            free = core.FreeBias(
                float(core.signed_sum(self.y, alpha)),
                self._adding,
                float(self.loss.value(0.0)) * float(self.cost.sum()),
                float(self.lengths.max()),
            )
        with np.errstate(over="ignore", invalid="ignore"):
            sums = self._sums(alpha, scores, bias, own, s)
            return bounds_of(core.kernel_values(sums, self._lost(alpha), free, s))

    @property
    def _adding(self) -> float:
        """Relative error of a compensated sum of dual variables."""
        return UNIT + (self.n * UNIT) ** 2

    def _sums(
        self, alpha: Vector, scores: Vector, bias: float, own: float, s: float = 1.0
    ) -> core.KernelSums:
        """Return the sums over all rows at `s alpha` and `s bias`.

        They are the sums of alpha, ``|alpha|`` and ``delta alpha^2``, the losses and a
        bound on their error, and ``alpha' Q alpha``, a bound on its error, and the size
        of its terms. `own`, the share of a penalised bias ``sum_i alpha_i y_i``, is
        added to the scores.
        """
        scalars = core.KernelScalars(
            own, bias, s, self.shift, self._adding, self._underflow_of_values
        )
        errors = self.rounding_of_scores(alpha)
        return core.kernel_sums(
            self.y, self.cost, self.core_loss, alpha, scores, errors, scalars
        )

    def certify_model(self, coef: Vector, bias: float) -> Certificate:
        if bias != 0.0 and not (self.free_bias or self.constant):
            raise ValueError(
                f"bias={bias!r}, but the problem has no bias; use fit_intercept=True"
            )
        return super().certify_model(coef, bias)

    def _above(self, alpha: Vector, scores: Vector, bias: float) -> tuple[float, float]:
        sums = self._sums(alpha, scores, bias, 0.0)
        loss, own = sums.loss, self.constant * bias * bias
        more = 0.5 * sums.norm_error + sums.loss_error
        more += SUM * (0.5 * (sums.size + own) + loss)
        more = Rounding.slack * more + self._lost(alpha)
        return 0.5 * (sums.norm + own) + loss, more

    def dual_value(self, alpha: Vector, norm: float) -> float:
        """Return D of alpha, given ``norm = alpha' Q alpha``."""
        return core.dual_value(alpha, self.cost, self.core_loss, 1.0, norm)


class SingleKernelBatch(SingleBatch):
    """One kernel problem, or one for each quantile.

    - `problem`, `name`, `make`: as for :class:`SingleBatch`.
    - `points`: all rows.
    - `place`: those in use.
    """

    def __init__(
        self,
        problem: Problem | Sequence[Problem],
        name: str,
        make: Callable[[float], Problem | Sequence[Problem]],
        *,
        points: Points,
        place: NDArray[np.intp],
        kernel: Kernel,
    ) -> None:
        super().__init__(problem, name, make)
        self.points, self.place, self.kernel = points, place, kernel

    def expansion(
        self, k: int, coefficients: Vector
    ) -> tuple[NDArray[np.intp], Vector]:
        """Return the rows of the problem, and the factors of their kernel rows."""
        return self.place, coefficients

    def begin(self, k: int, problem: Problem, C: float, alpha: Vector) -> Vector:
        return alpha if C == self.C else self.along(k, problem, [(C, alpha)])

    def along(
        self, k: int, problem: Problem, past: list[tuple[float, Vector]]
    ) -> Vector:
        return extrapolated(cast(KernelProblem, problem), self.C, past)


class KernelBatch(Batch):
    """Problems of the pairs of classes of a kernel classifier.

    - `points`: all rows; for a precomputed kernel, the whole matrix.
    - `kernel`: its gamma is resolved.
    - `classes`: shape (K,).
    - `codes`: class of every row, shape (n,).
    - `weight`: weights of the rows, class weights included, shape (n,). Rows of weight
      0 are left out.
    - `cache_size`: megabytes for kernel values of all problems.
    - `room`: returns how many problems of at most a number of rows may be in use at a
      time.
    - `**options`: as in :class:`dualgap.kernel.KernelProblem`: the loss and the kind of
      bias.
    - `order`: the rows in use, sorted by class, as indices into all rows, shape (m,).
    - `points`, once built: these rows. For a precomputed kernel, the whole matrix in
      its original order, because reordering would copy it.
    - `bounds`: class c has the rows bounds[c] to bounds[c + 1] - 1 of `order`.
    - `weight`: weights of these rows, shape (m,).
    """

    kind = "kernel"

    def __init__(
        self,
        points: Points,
        kernel: Kernel,
        classes: NDArray[np.generic],
        codes: NDArray[np.intp],
        weight: Vector,
        C: float,
        reduction: OneVsOne,
        *,
        cache_size: float,
        room: Callable[[int], int],
        **options: Any,
    ) -> None:
        self.kernel, self.classes, self.reduction = kernel, classes, reduction
        self.names = reduction.names(classes)
        self.several, self.cache_size = reduction.several, cache_size
        self.room, self.options = room, options
        kept = np.flatnonzero(weight > 0.0)
        self.order = kept[np.argsort(codes[kept], kind="stable")]
        ordered = codes[self.order]
        self.bounds = np.searchsorted(ordered, np.arange(len(classes) + 1)).tolist()
        refuse_missing(classes, np.diff(self.bounds))
        self.weight, self.C = weight[self.order], C
        self.precomputed = isinstance(kernel, Precomputed)
        whole = len(self.order) == len(codes) and bool((codes[:-1] <= codes[1:]).all())
        self.points = points if whole or self.precomputed else points[self.order]
        self.matrices: Callable[[int, int], Matrix] | None = None
        #: Matrices and landmarks of the problems, kept for other values of C.
        self.kept: dict[int, Any] | None = None

    def label(self, k: int) -> ProblemLabel:
        return self.reduction.labels(self.classes)[k]

    def at(self, C: float) -> KernelBatch:
        other = copy.copy(self)
        other.C = C
        return other

    def for_path(self) -> KernelBatch:
        other = copy.copy(self)
        sizes = np.diff(self.bounds).astype(np.float64)
        # Float32 values of all pairs, as if their caches held whole matrices.
        whole = sum(
            4e-6 * (sizes[i] + sizes[j]) ** 2 for i, j in self.reduction.subjects
        )
        if len(self) == 1 or whole <= self.cache_size:
            other.kept = {}
        return other

    def takes_long(self, warm: bool) -> bool:
        return True  # copies rows, computes norms and the kernel rows of a warm start

    def unreached(self, k: int) -> Proof:
        """Return a proof of the zero model, whose P is the sum of the costs."""
        cost = self.C * self.weights_of(k)
        total, zero = float(cost.sum()), np.zeros(len(cost))
        bounds = Bounds.proved(total, Rounding.summed * total, 0.0)
        return Proof(zero, zero, bounds.certificate, 0.0)

    @property
    def cost(self) -> Vector:
        """Costs of the rows in `order`, (m,)."""
        return check_costs(self.C, self.weight, len(self.weight))

    def coef(self, k: int, coefficients: Vector) -> Vector:
        """Return the factors of the kernel rows in the decisions of problem k."""
        return coefficients * self.signs(k)

    def expansion(
        self, k: int, coefficients: Vector
    ) -> tuple[NDArray[np.intp], Vector]:
        """Return the rows of problem k, and the factors of their kernel rows."""
        return self.order[self.place(k)], self.coef(k, coefficients)

    @property
    def at_a_time(self) -> int:
        # Each pair must have enough cache that sharing does not change its result.
        sizes = sorted(end - begin for begin, end in pairwise(self.bounds))
        return max(1, min(len(self), self.room(sum(sizes[-2:]))))

    def prepare(self) -> None:
        if self.matrices is not None:
            return
        if len(self.classes) == 2 and not self.precomputed:
            # A function that knew this batch would keep it alive.
            given = self.points, self.kernel, self.cache_size
            self.matrices = lambda i, j: Gram(*given)
            return
        order = self.order if self.precomputed else None
        self.matrices = Pairs(
            self.points,
            self.kernel,
            self.bounds,
            self.cache_size,
            self.at_a_time,
            order,
        ).pair

    def share(self, whole: Matrix) -> None:
        """Take kernel values from the matrix of all rows."""
        classes = [self.order[self.rows_of(c)] for c in range(len(self.classes))]
        self.matrices = lambda i, j: whole.subset(
            np.concatenate([classes[i], classes[j]])
        )

    def rows_of(self, c: int) -> slice:
        """Return the rows of class c, in `order`."""
        return slice(self.bounds[c], self.bounds[c + 1])

    def place(self, k: int) -> NDArray[np.intp]:
        """Return the rows of problem k, as indices into `order`."""
        i, j = self.reduction.subjects[k]
        m = np.arange(len(self.order))
        return np.concatenate([m[self.rows_of(i)], m[self.rows_of(j)]])

    def signs(self, k: int) -> Signs:
        """Return the labels of the rows of problem k, -1 or +1."""
        sizes = [
            self.bounds[c + 1] - self.bounds[c] for c in self.reduction.subjects[k]
        ]
        second = self.reduction.second
        return np.repeat(np.array([-second, second], np.int8), sizes)

    def weights_of(self, k: int) -> Vector:
        """Return the weights of the rows of problem k."""
        return self.weight[self.place(k)]

    def problem(self, k: int) -> KernelProblem:
        self.prepare()
        assert self.matrices is not None
        matrix = None if self.kept is None else self.kept.get(k)
        if matrix is None:
            matrix = self.matrices(*self.reduction.subjects[k])
            if self.kept is not None:
                self.kept[k] = matrix
        return self._problem(matrix, self.signs(k), self.weights_of(k))

    def _problem(self, matrix: Matrix, signs: Signs, weight: Vector) -> KernelProblem:
        return KernelProblem(
            matrix, signs, self.C, sample_weight=weight, **self.options
        )

    def entries(self, table: Vector, k: int) -> Vector:
        """Return the entries of problem k in a table of :meth:`table`."""
        i, j = self.reduction.subjects[k]
        return np.concatenate(
            [table[j - 1, self.rows_of(i)], table[i, self.rows_of(j)]]
        )

    def table(self, coef: Sequence[Vector]) -> Vector:
        """Return ``y_i alpha_i`` of all problems in LIBSVM's layout, (K - 1, m)."""
        table = np.zeros((self.reduction.tables, len(self.order)))
        for (i, j), own in zip(self.reduction.subjects, coef, strict=True):
            first, second = self.rows_of(i), self.rows_of(j)
            split = first.stop - first.start
            table[j - 1, first], table[i, second] = own[:split], own[split:]
        return table

    def along(
        self, k: int, problem: Problem, past: list[tuple[float, Vector]]
    ) -> Vector | None:
        """Return a start for this C; None for a small pair if the others are far."""
        few = len(self.names) > 1 and problem.n_duals <= SETTINGS.cold_rows
        if few and self.C > SETTINGS.far * past[-1][0]:
            return None
        return extrapolated(cast(KernelProblem, problem), self.C, past)


class NuBatch(KernelBatch):
    """Problems of the pairs of classes of a nu-SVC.

    Their solutions are LIBSVM's models: all is divided by rho.
    """

    kind = "kernel-nu"

    def __init__(self, *args: Any, **options: Any) -> None:
        """Raise an error if the classes of a pair do not allow the nu."""
        super().__init__(*args, **options)
        most = [largest_nu(*costs) for costs in self._costs()]
        k, nu = int(np.argmin(most)), self.options["nu"]
        if nu > most[k] * (1.0 + 1e-9):
            raise InfeasibleNuError(nu, most[k], self.names[k])

    def _costs(self) -> list[tuple[list[float], list[float]]]:
        """Return the costs of the two classes of every pair."""
        own = [self.weight[self.rows_of(c)].tolist() for c in range(len(self.classes))]
        return [(own[i], own[j]) for i, j in self.reduction.subjects]

    def halves(self) -> list[float]:
        """Return what the dual variables of either class of each pair add up to."""
        return [half_of(self.options["nu"], *costs) for costs in self._costs()]

    def _problem(self, matrix: Matrix, signs: Signs, weight: Vector) -> KernelProblem:
        found = NuClassification(
            matrix, signs, self.options["nu"], sample_weight=weight
        )
        return cast(KernelProblem, found)

    def unreached(self, k: int) -> Proof:
        """Return a proof of the zero model, whose P is 0."""
        problem = self.problem(k)
        zero = np.zeros(problem.n)
        bounds = Bounds.proved(0.0, 0.0, problem.lowest)
        certificate = replace(bounds.certificate, floor=problem.floor)
        return Proof(zero, zero, certificate, 0.0)

    def finish(self, k: int, problem: Problem, solution: S) -> S:
        found = vars(solution)
        if not np.isfinite(found["decisions"]).all():  # stopped before any proof
            return solution
        nu_problem = cast(NuClassification, problem)
        rho = nu_problem.scale(found["decisions"] - found["bias"])
        scaled = {name: found[name] / rho for name in ("alpha", "bias", "decisions")}
        return replace(solution, **scaled)  # type: ignore[type-var]

"""Ball that contains every exact optimum, from a model, dual variables and the gap.

Every problem here has P(w, b) = 1/2 ||w||^2 + L(w, b) with convex L, and a dual
D(alpha) = A(alpha) - 1/2 ||v||^2 with v = sum_i s_i alpha_i x_i, where s_i is the label
y_i, or 1 for regression. For any point (w, b), any feasible alpha, and every optimum
(w*, b*),

    ||w*||^2 - (w + v).w*  <=  L(w, b) - A(alpha)                                  (T)

Proof: (-w*, 0) is a subgradient of L at (w*, b*), so L(w, b) >= L(w*, b*) - w*.(w - w*);
and L(w*, b*) >= A(alpha) - v.w* by Fenchel's inequality. Add both. Completing the
square gives the ball

    ||w* - c||^2 <= r^2 = P(w, b) - D(alpha) - 1/4 ||w - v||^2,    c = (w + v)/2

so that w*.x is in c.x +- r ||x||. With kernels x stands for its image, and every
quantity is an inner product. A penalised bias is the weight of a constant feature, for
kernels 1 added to all kernel values; rows and images include it. An unpenalised bias is
part of neither w nor c, and the ball does not bound it.

What the record promises
------------------------
`Ball.of` makes one proof, that is, one or two passes over the rows. All else is computed
on first use. Bounds count rounding outward: `radius`, `squared_radius` and
`certificate.gap` are upper bounds, for exactly the stored `centre`. Per-row arrays are
computed values; `products` and `decisions` come with bounds on their errors, and
`losses`, `dual_terms` and `squares` have relative errors of a few units of 2^-53 beyond
those. The arrays are shared: do not change them. Nothing is kept of the problem's data
but the problem itself. `Decided` is the rule that trains until a ball decides labels.
"""  # noqa: E501

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from .. import core
from ..certificate import Certificate
from ..checks import refuse_huge
from ..data.types import MatrixLike
from ..losses import Loss, Vector
from ..problems.base import EMPTY, Claim, Problem, Proof
from ..problems.binary import BinaryProblem
from ..problems.crammer_singer import CrammerSingerProblem
from ..problems.kernel import KernelProblem
from ..problems.kernel_boxes import KernelRegression
from ..problems.kernel_matrix import MatrixProblem
from ..problems.regression import RegressionProblem
from ..problems.rounding import Rounding

_SLACK, _UNIT = Rounding.slack, Rounding.unit


class Estimate(NamedTuple):
    """Computed values with bounds on their errors, both of shape (n,)."""

    values: Vector
    error: Vector


@dataclass(frozen=True)
class Ball:
    """Ball that contains w* of every optimum of a problem; see the module."""

    #: A binary, regression or kernel problem, or Crammer and Singer's.
    problem: Any
    #: Proved bounds on P at (w, b) and D at alpha.
    certificate: Certificate
    #: Primal point, shape (width,). If the bias is unpenalised it is the last entry.
    #: Empty for kernels, where alpha defines w, so that w = v = c.
    w: Vector
    #: Dual point in its box, shape (n,). Proofs may scale or balance the given one.
    alpha: Vector
    #: The unpenalised bias of the primal point; 0 if there is none.
    bias: float
    #: ``sum_i s_i alpha_i x_i``, shape (width,); 0 in the place of an unpenalised bias.
    #: Empty for kernels.
    v: Vector
    #: ``(w + v)/2``, shape (width,); 0 in the place of an unpenalised bias. Empty for
    #: kernels.
    centre: Vector
    #: Upper bound on ``r^2`` around the exact ``(w + v)/2``; inf without a finite gap.
    squared_radius: float
    #: Upper bound on the distance of every w* from the stored `centre`.
    radius: float
    #: Upper bound on the distance of the stored `centre` from the exact ``(w + v)/2``.
    offset: float = 0.0

    @classmethod
    def of(
        cls, problem: Problem, w: Vector | None = None, alpha: Vector | None = None
    ) -> Ball:
        """Prove the ball of a primal point, a dual point, or both.

        `problem`: its rows must be the training rows. `w`: primal point, shape
        (width,); defaults to the point that alpha defines. Leave it out for kernels.
        `alpha`: dual point, clipped to its box, shape (n_duals,); defaults to the point
        that w suggests. Raises TypeError if the problem is of another kind, such as the
        one-class problem.
        """
        if isinstance(problem, (KernelProblem, KernelRegression)):
            proof = problem.prove(Claim(alpha=alpha))
            if problem.two_sided and proof.certificate.dual <= problem.lowest:
                # A bound that needs no dual point is better than D(alpha).
                proof = problem.prove(Claim(alpha=np.zeros(problem.n)))
            return cls._of_kernel(problem, proof)
        if not isinstance(problem, (BinaryProblem, CrammerSingerProblem)):
            raise TypeError(
                f"problem={type(problem).__name__} has no ball; give a binary or "
                "regression problem, linear or with a kernel"
            )
        return cls._of_linear(problem, problem.prove(Claim(w, alpha)))

    @classmethod
    def _of_kernel(cls, problem: MatrixProblem, proof: Proof) -> Ball:
        squared = _gap(proof.certificate)
        bias = float(proof.bias or 0.0) if problem.free_bias else 0.0
        return cls(
            problem, proof.certificate, EMPTY, proof.alpha, bias, EMPTY, EMPTY,
            squared, _root(squared),
        )  # fmt: skip

    @classmethod
    def _of_linear(
        cls, problem: BinaryProblem | CrammerSingerProblem, proof: Proof
    ) -> Ball:
        w, alpha = proof.w, proof.alpha
        if isinstance(problem, BinaryProblem):
            v = problem.weighted_sum(alpha)
            reach = float(np.abs(alpha) @ np.sqrt(problem.q))
            used, rounding = float(np.count_nonzero(alpha)), problem.rounding
        else:
            v = problem.combine(alpha)
            table = np.abs(alpha).reshape(problem.n, -1)
            reach = float(table.sum(axis=1) @ np.sqrt(problem.q))
            # The exact dual point differs from alpha by a few units; see `prove`.
            reach *= 1.0 + 3 * problem.classes
            used = float(np.count_nonzero(table))
            rounding = Rounding(len(alpha), len(v), problem.threads.size)
        bias, model = 0.0, w
        if problem.free_bias:
            v[-1], bias = 0.0, float(w[-1])
            model = np.append(w[:-1], 0.0)
        # A proof may be about a multiple of a dual point, which alpha rounds.
        drift = rounding.of_sum(used, _SLACK * reach) + 8 * _UNIT * reach
        centre = 0.5 * (model + v)
        apart = math.sqrt(core.squared_norm(model - v)) * (1.0 - 1e-9) - drift
        squared = _gap(proof.certificate) - 0.25 * max(apart, 0.0) ** 2 * (1.0 - 1e-9)
        squared = max(squared, 0.0)  # negative only if w and v are optimal
        # The stored centre is rounded, and v is a computed sum.
        off = 0.5 * drift + 4 * _UNIT * math.sqrt(core.squared_norm(centre))
        off *= _SLACK
        radius = math.nextafter(off + _root(squared), math.inf)
        return cls(
            problem, proof.certificate, w, alpha, bias, v, centre, squared, radius, off
        )

    @property
    def signs(self) -> Vector:
        """The s_i of v, shape (n,): labels -1 or +1, or 1 for regression."""
        return self.problem.y.astype(np.float64)

    @cached_property
    def products(self) -> Estimate:
        """``c.x_i`` at all training rows, without an unpenalised bias."""
        problem = self.problem
        if not isinstance(problem, MatrixProblem):
            return Estimate(*problem.scores(self.centre))
        known = problem.known(self.alpha)
        # The problem is about the matrix with `shift` on its diagonal.
        error = known.error + problem.shift * np.abs(self.alpha)
        if problem.constant == 0.0:
            return Estimate(known.scores, error)
        own = float(core.signed_sum(problem.y, self.alpha))
        values = known.scores + own
        more = _UNIT * (np.abs(values) + 2 * abs(own))
        return Estimate(values, error + _SLACK * more)

    @cached_property
    def decisions(self) -> Estimate:
        """``w.x_i + b`` at all training rows: the decisions of the primal point."""
        if not isinstance(self.problem, MatrixProblem):
            return Estimate(*self.problem.scores(self.w))
        values, error = self.products
        values = values + self.bias
        return Estimate(values, error + _SLACK * _UNIT * np.abs(values))

    @cached_property
    def losses(self) -> Vector:
        """``c_i l_i`` at the primal point, shape (n,); they add up to L(w, b)."""
        problem, f = self.problem, self.decisions.values
        at = self.targets - f if self.of_regression else self.signs * f
        return np.asarray(problem.cost * problem.loss.value(at))

    @cached_property
    def dual_terms(self) -> Vector:
        """Terms of A(alpha), shape (n,); they add up to A(alpha)."""
        problem, alpha = self.problem, self.alpha
        bent = 0.5 * problem.loss.diagonal(problem.cost) * alpha * alpha
        if self.of_regression:
            linear = self.targets * alpha - problem.loss.epsilon * np.abs(alpha)
        else:
            linear = alpha
        return np.asarray(linear - bent)

    @cached_property
    def squares(self) -> Vector:
        """``||x_i||^2`` at all training rows, shape (n,).

        Kernel values k(x_i, x_i) for kernels. A constant feature is included only where
        the bias is penalised.
        """
        problem = self.problem
        if isinstance(problem, MatrixProblem):
            diagonal = problem.gram.diagonal() + problem.shift + problem.constant
            return np.asarray(np.maximum(diagonal, 0.0), np.float64)
        return problem.norms(0.0) if problem.free_bias else problem.q

    @property
    def of_regression(self) -> bool:
        """Whether the problem has targets instead of labels."""
        return not isinstance(self.problem.loss, Loss)

    @property
    def targets(self) -> Vector:
        """Targets of regression, shape (n,)."""
        return targets_of(self.problem)


def targets_of(problem: RegressionProblem | KernelRegression) -> Vector:
    """Return the targets of a regression problem, shape (n,)."""
    if isinstance(problem, RegressionProblem):
        return problem.target
    return problem.linear + problem.centre


def _gap(certificate: Certificate) -> float:
    """Return an upper bound on P - D; inf without one."""
    gap = certificate.gap
    if not gap < math.inf:
        return math.inf
    # Rounding of the difference. A negative gap can only come from rounding bounds.
    return math.nextafter(max(gap, 0.0), math.inf)


def _root(squared: float) -> float:
    """Return an upper bound on a square root."""
    return math.nextafter(math.sqrt(squared), math.inf)


#: Relative gaps that a fit tries in turn, after its own `tol`. The width of the bounds
#: goes as the root of the gap, and later steps often cost little.
TOLERANCES = (1e-6, 1e-9, 1e-12)


@dataclass(frozen=True, eq=False)
class Decided:
    """Stopping rule of ``fit(X, y, until=...)``: train until labels are certain.

    A fit ends once the predicted labels of a share of these rows are proved to be the
    labels of every exact optimum. It tries relative gaps of `tol`, 1e-6, 1e-9 and
    1e-12, all within `time_limit`, and warns if labels that could change are left over.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows whose labels are to be certain; any rows, without labels.
    share : float, default=1.0
        Share of the rows to decide, in (0, 1].

    Raises
    ------
    ValueError
        If `share` is out of range.

    Examples
    --------
    >>> from dualgap import LinearSVC
    >>> from dualgap.answers import Decided
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> X = scale(X)
    >>> model = LinearSVC(random_state=0)
    >>> model = model.fit(X[:400], y[:400], until=Decided(X[400:]))
    >>> bool(model.certified_labels(X[400:]).all())
    True
    """

    X: MatrixLike
    share: float = 1.0

    def __post_init__(self) -> None:
        refuse_huge("share", self.share)
        if not 0.0 < self.share <= 1.0:
            raise ValueError(
                f"share={self.share!r} is not in (0, 1]; give the share of the rows to "
                "decide, 1.0 for all"
            )

"""The kernel SVM and its certificate.

P(w) = 1/2 ||w||^2 + sum_i c_i l(y_i f(x_i)),   f(x) = sum_i a_i y_i (k(x_i, x) + 1)
D(a) = sum_i a_i - 1/2 a'Qa - 1/2 sum_i delta_i a_i^2,   0 <= a_i <= U_i

with Q_ij = y_i y_j (k_ij + 1), c_i = C sample_weight_i, and for the squared hinge
delta_i = 1/(2 c_i), U_i = inf. The 1 beside the kernel is the constant feature: a
penalised bias, b = sum_i a_i y_i. Nanculef et al. 2014 have ``C/2 sum max(0, .)^2``:
their C is twice this one.

With a bias that is not penalised (``penalize_intercept=False``, the C-SVC of Cortes
and Vapnik 1995 and of LIBSVM) f(x) = sum_i a_i y_i k(x_i, x) + b, Q_ij = y_i y_j k_ij,
and the dual carries sum_i a_i y_i = 0.
"""

from __future__ import annotations

import functools
import logging
import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .. import core
from ..bias import best_bias
from ..certificate import Bounds, Certificate
from ..losses import Loss, Vector, get_loss
from ..problem import (
    _C,
    Proof,
    Rounding,
    _costs,
    _labels,
    _vector,
    balanced,
)
from .functions import Kernel
from .gram import Gram, Matrix, Subset, roundings_of_values

logger = logging.getLogger("dualgap")

# Rows up to which a kernel that may be indefinite is checked whole, and rows drawn
# beyond.
_CHECKED = 1000

# Of the analysis of rounding.
_UNIT, _SUM = Rounding.unit, Rounding.summed

# How far beyond the kink of the loss a row is free of doubt: so many times its error,
# which the certificate rounds up, and what the bias may move by when the scores of
# others become exact.
_TIMES, _BEYOND = 1.05, 1e-3


class Near(NamedTuple):
    """Scores, how far they are off at most, and a bias that is about right.

    Scores and errors are of shape (n,); an error is infinite where nothing is known.
    """

    scores: Vector
    error: Vector
    bias: float


class Combined(NamedTuple):
    """The last scores: of which alpha, and at which rows in float64."""

    alpha: Vector
    near: Near
    exact: NDArray[np.bool_]


class MatrixProblem(ABC):
    """What all problems over a kernel matrix have in common: sums over its values.

    Attributes
    ----------
    gram : Gram
    y : ndarray of shape (n,), int8
        Signs of the dual variables.
    n, width : int
        Rows.
    shift : float
        What makes the kernel matrix positive semidefinite, added to its diagonal.
    """

    y: NDArray[np.int8]
    shift = 0.0

    def __init__(
        self, X: Any, kernel: Kernel | None, cache_size: float, rows: ArrayLike | None
    ) -> None:
        if isinstance(X, (Matrix, Subset)):
            if kernel is not None:
                raise ValueError(
                    f"kernel={kernel!r}: a Gram has its kernel already; leave it out"
                )
            gram: Matrix | Subset = X
        elif kernel is None:
            raise ValueError("kernel=None: give a kernel, such as RBF(gamma='scale')")
        else:
            gram = Gram(X, kernel, cache_size)
        self.gram = gram if rows is None else gram.subset(rows)
        self.n = self.width = self.gram.n
        self._combined: Combined | None = None
        self._lengths: Vector | None = None

    def _check_positive(self) -> None:
        if not self.gram.kernel.positive:
            self.shift = _check_positive(self.gram)

    def scores(self, alpha: Vector) -> Vector:
        """``sum_j alpha_j y_j k_ij`` at all rows i, in float64, shape (n,)."""
        return self.known(alpha).scores.copy()

    def known(self, alpha: Vector, stop: Any = None, near: Near | None = None) -> Near:
        """The scores of alpha, in float64, how far they are off, and the best bias.

        Where `near` says already that a row has no loss, and its dual variable is 0,
        the certificate does not depend on more: such rows keep what is near. The last
        ones are kept: a solver told that its proof failed asks for them again.

        Parameters
        ----------
        alpha : ndarray of shape (n,)
        stop : core.Stop, optional
        near : Near, optional
            What is known of the scores of this alpha. Without it all are computed.

        Raises
        ------
        StoppedError
            If `stop` says so before all are computed.
        """
        last = self._combined
        if (
            last is not None
            and (near is not None or last.exact.all())
            and np.array_equal(last.alpha, alpha)
        ):
            return last.near
        exact, wanted = np.zeros(self.n, bool), np.ones(self.n, bool)
        scores, error = np.zeros(self.n), np.zeros(self.n)
        if near is not None:
            scores, error = near.scores.copy(), near.error.copy()
            wanted = (alpha != 0.0) | self.in_doubt(near)
        while True:
            self._scan(alpha, wanted, scores, error, stop)
            exact |= wanted
            near = Near(scores, error, self._bias(alpha, scores))
            # The bias is another one now.
            if exact.all() or not (wanted := self.in_doubt(near) & ~exact).any():
                break
        self._combined = Combined(alpha.copy(), near, exact)
        return near

    def _scan(
        self,
        alpha: Vector,
        rows: NDArray[np.bool_],
        scores: Vector,
        error: Vector,
        stop: Any,
    ) -> None:
        """Scores of some rows in float64, and how far they may be off."""
        last, signed = self._combined, alpha * self.y
        groups = [(rows, signed)]
        if last is not None:
            # Where less has changed than there is, the change is what is computed.
            moved = signed - last.alpha * self.y
            if np.count_nonzero(moved) < np.count_nonzero(signed):
                groups = [(rows & ~last.exact, signed), (rows & last.exact, moved)]
        for some, change in groups:
            if not some.any():
                continue
            at = None if some.all() else np.flatnonzero(some)
            of: Any = slice(None) if at is None else at
            lengths = self.lengths[of]
            off = np.zeros(len(lengths))
            scores[of] = self.gram.times(change, stop, at, off)
            if not self.gram.bounded:
                bound = self._roundings(change) * _UNIT * self._reach(change)
                off = Rounding.slack * bound * lengths
            error[of] = off
            if change is not signed:
                assert last is not None
                scores[of] += last.near.scores[of]
                # Of `moved`, and of the sum above.
                reach = self._reach(np.abs(alpha) + np.abs(last.alpha))
                error[of] += Rounding.slack * 3 * _UNIT * reach * lengths
                error[of] += last.near.error[of]

    @abstractmethod
    def _bias(self, alpha: Vector, scores: Vector) -> float:
        """The best one, if it is free; else that of alpha."""

    @abstractmethod
    def in_doubt(self, near: Near) -> NDArray[np.bool_]:
        """Rows that may have a loss, for all that is known."""

    def _moved(self, near: Near | None, by: Vector) -> Near | None:
        """What is known after alpha has changed by so much."""
        if near is None or not by.any():
            return near
        return near._replace(error=near.error + self._reach(by) * self.lengths)

    @property
    def lengths(self) -> Vector:
        """``sqrt(k(x_i, x_i))``, or more where that underflows; shape (n,)."""
        if self._lengths is None:
            diagonal = np.maximum(self.gram.diagonal() + self.shift, 0.0)
            self._lengths = np.sqrt(diagonal + self._underflow_of_values)
        return self._lengths

    @functools.cached_property
    def _underflow_of_values(self) -> float:
        """Bound on what underflow did to a kernel value of `linear` or `poly`.

        The certificate is about the computed values of all other kernels.
        """
        return _underflow_of_values(self.gram)

    def _underflow(self, change: Vector) -> float:
        """Return a bound on what underflow did to a score."""
        used = int(np.count_nonzero(change))
        if used == 0:
            return 0.0
        of_values = self._underflow_of_values * float(np.abs(change).sum())
        return of_values + (used + 8) * Rounding.least

    def _lost(self, *terms: Vector) -> float:
        """Return a bound on what underflow took from sums of these terms."""
        some = any(term.any() for term in terms)
        return (4 * self.n + 16) * Rounding.least if some else 0.0

    def _roundings(self, change: Vector) -> float:
        """At most so many does a term of the scores pass, its value included."""
        m = int(np.count_nonzero(change))
        # The core adds up the products of 6, 12 or 32 rows and then these sums, one by
        # one: m/6 + 8, m/12 + 14 or, in lanes of two, m/32 + 19 and less. Python's
        # values come one by one.
        added = m if self.gram.kernel.form is None else m // 6
        return added + 20 + roundings_of_values(self.gram)

    def _reach(self, change: Vector) -> float:
        return float(np.abs(change) @ self.lengths)

    def rounding_of_scores(self, alpha: Vector) -> Vector:
        """How far the last :meth:`scores`, of this alpha, may be from the exact sums.

        Shape (n,). For the values are at most ``sqrt(k_ii k_jj)``.
        """
        last = self._combined
        if last is not None and np.array_equal(last.alpha, alpha):
            return last.near.error
        return self.known(alpha).error

    def squared_norm(
        self, signed: Vector, scores: Vector, error: Vector
    ) -> tuple[float, float, float]:
        """``sum_i signed_i scores_i``, its rounding, and the sum of its terms' sizes.

        Parameters
        ----------
        signed, scores, error : ndarray of shape (n,)
            ``alpha_i y_i``, and how far the scores may be off.
        """
        terms = signed * scores
        size = float(np.abs(terms).sum())
        rounding = float(np.abs(signed) @ error) + _SUM * size
        # The certificate is about the matrix with `shift` on its diagonal.
        rounding += self.shift * float(signed @ signed)
        rounding += 4 * int(np.count_nonzero(signed)) * Rounding.least
        return float(terms.sum()), rounding, size


class KernelProblem(MatrixProblem):
    """A binary SVM over a kernel matrix, for :func:`dualgap.loop.solve`.

    A solution's ``alpha`` of shape (n,) is the model: the decision at a point x is
    ``sum_i alpha_i y_i (k(x_i, x) + 1)``, so the bias is ``sum_i alpha_i y_i``. Its
    ``w`` of shape (n,) are the decisions at the training rows, from ``block`` and
    ``auto`` those of float32 where a row has neither a dual variable nor a loss. A bias
    that is not penalised is the one with the least loss for this alpha; :meth:`coef`
    has either.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d), or Gram
        Rows, or the kernel matrix of them (then without `kernel`).
    y : array-like of shape (n,)
        Labels, -1 or +1.
    C : float, default=1.0
        Weight of the loss, the sum over examples.
    kernel : Kernel, optional
        A record of :mod:`dualgap.kernel.functions`.
    loss : str or Loss, default="squared_hinge"
        The hinge with a free bias is for ``block``; other losses, and the hinge with
        a penalised bias, only ``kernel-pegasos`` takes.
    sample_weight : array-like of shape (n,), optional
        Factors of C, zero or positive.
    cache_size : float, default=200
        Megabytes of kernel rows held.
    penalize_intercept : bool, default=True
        False: the norm leaves the bias out.
    rows : array-like of int, optional
        Train on these rows of X only; y and sample_weight are theirs.

    Attributes
    ----------
    gram : Gram
    y : ndarray of shape (n,), int8
    cost : ndarray of shape (n,), float64
        ``c_i``.
    n, width : int
        Rows.
    free_bias : bool
        Whether the bias is not penalised.

    Raises
    ------
    ValueError
        If an argument is out of range or of the wrong shape, the loss is another
        one, or the kernel matrix is not positive semidefinite.
    """

    cost: Vector
    # What the block solver asks of every problem; see regression.py for others.
    lower = centre = epsilon = total = lowest = floor = 0.0
    two_sided = False

    def __init__(
        self,
        X: Any,
        y: ArrayLike,
        C: float | None = None,
        *,
        kernel: Kernel | None = None,
        loss: str | Loss = "squared_hinge",
        sample_weight: ArrayLike | None = None,
        cache_size: float = 200,
        penalize_intercept: bool = True,
        rows: ArrayLike | None = None,
    ) -> None:
        self.loss = get_loss(loss)
        self.free_bias = not penalize_intercept
        super().__init__(X, kernel, cache_size, rows)
        self.C = _C(C, None, self.n)
        self.y = _labels(y, self.n)
        self.cost = _costs(self.C, sample_weight, self.n)
        self.core_loss = core.Loss(self.loss.slope, self.loss.curvature)
        self._check_positive()

    @property
    def linear(self) -> Vector:
        """Linear term of the dual in ``alpha_i y_i``."""
        return self.y.astype(np.float64)

    def start(self) -> None:
        """Training starts from 0."""

    @property
    def upper(self) -> Vector:
        """Box ``U_i``, infinite but for rows without a cost; shape (n,)."""
        return self.loss.upper(self.cost)

    @property
    def lambda_(self) -> float:
        """``1/sum_i c_i``: the papers' lambda."""
        return 1.0 / float(self.cost.sum())

    @property
    def delta(self) -> Vector:
        """Diagonal ``delta_i``, shape (n,)."""
        return self.loss.diagonal(self.cost)

    def combine(self, alpha: Vector) -> Vector:
        """Decisions at all rows, the bias included, in float64; shape (n,)."""
        known = self.known(alpha)
        return known.scores + known.bias

    def coef(self, alpha: Vector) -> tuple[Vector, float]:
        """``alpha_i y_i`` of shape (n,), and the bias."""
        bias = self.known(alpha).bias if self.free_bias else self._bias(alpha, alpha)
        return alpha * self.y, bias

    def in_doubt(self, near: Near) -> NDArray[np.bool_]:
        margins = self.y * (near.scores + near.bias)
        return self.loss.value(margins - _TIMES * near.error - _BEYOND) != 0.0

    def _bias(self, alpha: Vector, scores: Vector) -> float:
        if self.free_bias:
            return best_bias(scores, self.y, self.cost, self.loss)
        return float(core.signed_sum(self.y, alpha))

    def prove(
        self,
        w: Vector | None,
        alpha: Vector | None,
        *,
        stop: Any = None,
        near: Near | None = None,
    ) -> Proof:
        """P and D of alpha, from a scan in float64.

        alpha defines the model, whatever decisions `w` a solver carries along. With
        the squared hinge it is scaled by the s >= 0 that minimises
        ``P(s alpha) - D(s alpha)``; with an unpenalised bias it is balanced.

        Parameters
        ----------
        w : ignored
        alpha : ndarray of shape (n,)
        stop : core.Stop, optional
        near : Near, optional
            What is known of the scores of alpha. Rows without a dual variable and, for
            all that is known, without a loss are not scanned again; without it all are.

        Returns
        -------
        Proof
            ``(decisions at the rows, alpha, certificate, bias)``.

        Raises
        ------
        StoppedError
            If `stop` (a core.Stop) ends the scan: there is no proof.
        """
        assert alpha is not None
        given, alpha = alpha, np.clip(alpha, 0.0, self.upper)
        if self.free_bias and core.signed_sum(self.y, alpha) != 0.0:
            alpha = balanced(self.y, alpha)
        scores, _, bias = self.known(alpha, stop, self._moved(near, alpha - given))
        f = scores + bias
        s = 1.0
        if math.isinf(self.loss.slope) and not self.free_bias:
            s, _, _ = scaled_values(self.cost, self.delta, alpha, self.y * f)
        bounds = self.bounds(alpha, scores, bias, s)
        if s != 1.0:
            f, alpha, bias = s * f, s * alpha, s * bias
        return Proof(f, alpha, bounds.certificate, bias)

    def bounds(
        self, alpha: Vector, scores: Vector, bias: float, s: float = 1.0
    ) -> Bounds:
        """P of the model `s alpha`, with `s bias`, at most, and D of s alpha, at least.

        What rounding may do to kernel values and to sums over them is counted.

        Parameters
        ----------
        alpha, scores : ndarray of shape (n,)
            In the box, and with ``sum_i alpha_i y_i`` next to 0 where the bias is free.
        bias : float
        s : float, default=1.0
        """
        own = 0.0 if self.free_bias else float(core.signed_sum(self.y, alpha))
        with np.errstate(over="ignore", invalid="ignore"):
            total, reach = float(alpha.sum()), float(np.abs(alpha).sum())
            bent = float((self.delta * alpha * alpha).sum())
            loss, loss_error, (norm, norm_error, size) = self._losses(
                alpha, scores, bias, own, s
            )
            primal = 0.5 * s * s * norm + loss
            dual = s * total - 0.5 * s * s * (norm + bent)
            both = 0.5 * s * s * norm_error
            more = both + loss_error + _SUM * (0.5 * s * s * size + loss)
            less = both + _SUM * (s * reach + s * s * (size + bent))
            lost = self._lost(alpha)
            more, less = Rounding.slack * more + lost, Rounding.slack * less + lost
            if self.free_bias:
                # As Problem.prove: an optimal bias is no larger than this.
                off_zero = abs(float(core.signed_sum(self.y, alpha)))
                off_zero += self._adding * reach
                least = float(self.loss.value(0.0)) * float(self.cost.sum())
                least = max(min(primal + more, least), 0.0)
                longest = math.sqrt(2.0 * least) * float(self.lengths.max())
                less += Rounding.slack * s * off_zero * (1.0 + longest)
        if reach == 0.0:  # nothing was added
            less = 0.0
        return Bounds.proved(primal, more, dual, less)

    @property
    def _adding(self) -> float:
        """Relative error of a compensated sum of dual variables."""
        return _UNIT + (self.n * _UNIT) ** 2

    def _losses(
        self, alpha: Vector, scores: Vector, bias: float, own: float, s: float = 1.0
    ) -> tuple[float, float, tuple[float, float, float]]:
        """Return the losses of `s alpha` and `s bias`, their error, and a squared norm.

        The last one is what `squared_norm` says of alpha, with `own` added to the
        scores: the share of a bias that is the sum of the ``alpha_i y_i``.
        """
        reach = float(np.abs(alpha).sum())
        error = self.rounding_of_scores(alpha) + self._underflow(alpha)
        if reach > 0.0:  # else the scores are 0
            error = error + self._adding * reach
            error += 4.0 * _UNIT * (np.abs(scores) + abs(own) + abs(bias))
        norm = self.squared_norm(alpha * self.y, scores + own, error)
        margins = s * (self.y * (scores + bias))
        # `shift` on the diagonal raises margins, but for rows with alpha below 0.
        off = Rounding.slack * s * (error + self.shift * np.maximum(-alpha, 0.0))
        loss = float((self.cost * self.loss.value(margins)).sum())
        slope = self.loss.derivative(margins - off)
        return loss, float((self.cost * slope * off).sum()), norm

    def certify_model(self, coef: Vector, bias: float) -> Certificate:
        """Prove an upper bound on P of ``sum_j coef_j k(x_j, .) + bias``.

        D stays unknown.

        Parameters
        ----------
        coef : ndarray of shape (n,)
            Of either sign and any size: they need not be dual variables.
        bias : float
        """
        alpha = coef * self.y
        scores = self.scores(alpha)
        with np.errstate(over="ignore", invalid="ignore"):
            loss, loss_error, (norm, norm_error, size) = self._losses(
                alpha, scores, bias, 0.0
            )
            own = 0.0 if self.free_bias else bias * bias
            primal = 0.5 * (norm + own) + loss
            more = 0.5 * norm_error + loss_error + _SUM * (0.5 * (size + own) + loss)
            more = Rounding.slack * more + self._lost(alpha)
        return Bounds.proved(primal, more).certificate

    def dual_value(self, alpha: Vector, norm: float) -> float:
        """D of alpha, given ``alpha' Q alpha``."""
        return core.dual_value(alpha, self.cost, self.core_loss, 1.0, norm)

    def certify(self, alpha: ArrayLike) -> Certificate:
        """The certificate of dual variables of shape (n,).

        Raises
        ------
        ValueError
            If the shape is wrong, or a value is negative or not finite.
        """
        alpha = _vector("alpha", alpha, self.n)
        outside = (alpha < 0.0) | (alpha > self.upper)
        if outside.any():
            i = int(np.argmax(outside))
            raise ValueError(
                f"alpha[{i}]={float(alpha[i])!r} is outside its box "
                f"[0, {float(self.upper[i])!r}]"
            )
        return self.prove(None, alpha).certificate


def _underflow_of_values(gram: Matrix | Subset) -> float:
    """Return a bound on what underflow does to a value of `linear` or `poly`.

    It is 0 for the other kernels. A product of two rows, or the scale of an entry of
    one times an entry of the other, loses a few units of 2^-1074 for every entry. The
    power multiplies that by its slope, which is taken at the largest value there is.
    """
    form = gram.kernel.form
    if form is None or form[0] not in ("linear", "power"):
        return 0.0
    _, _, gamma, _, degree = form
    X, _ = gram.source()
    entries = X.nnz if sparse.issparse(X) else X.shape[1]
    largest = float(gram.diagonal().max())
    base = max(largest, 0.0) ** (1.0 / degree)
    slope = degree * max(base, 1.0) ** (degree - 1)
    scale = 1.0 if gamma == 1.0 else 1.0 + gamma + math.sqrt(base / gamma)
    return slope * scale * (entries + 8) * Rounding.least


def scaled_values(
    cost: Vector, delta: Vector, alpha: Vector, margins: Vector
) -> tuple[float, float, float]:
    """The s >= 0 that minimises ``P(s alpha) - D(s alpha)``, and P and D there.

    The difference is convex and once differentiable in s: safeguarded Newton steps.

    Parameters
    ----------
    cost, delta, alpha, margins : ndarray of shape (n,)
        ``y_i f(x_i)`` are the margins of alpha.
    """
    total, norm = float(alpha.sum()), float((alpha * margins).sum())
    diagonal = float((delta * alpha * alpha).sum())
    curvature = 2.0 * norm + diagonal
    # What has left the range of float64, or has no sum, is no point to scale.
    s = 1.0 if 0.0 < total < math.inf and 0.0 < curvature < math.inf else 0.0
    for _ in range(30 if s > 0.0 else 0):
        slack = np.maximum(0.0, 1.0 - s * margins)
        pull = cost * margins
        slope = s * curvature - total - 2.0 * float((pull * slack).sum())
        bend = curvature + 2.0 * float((pull * margins)[slack > 0.0].sum())
        step = slope / bend
        s = max(s - step, 0.5 * s)
        if abs(step) <= 1e-12 * s:
            break
    if s == 0.0:
        return 0.0, float(cost.sum()), 0.0
    slack = np.maximum(0.0, 1.0 - s * margins)
    primal = 0.5 * s * s * norm + float((cost * slack * slack).sum())
    return s, primal, s * total - 0.5 * s * s * (norm + diagonal)


def _check_positive(gram: Matrix | Subset) -> float:
    """Refuse a matrix with negative curvature: whole up to 1000 rows, else a sample.

    Returns
    -------
    float
        What has to be added to the diagonal for no eigenvalue to be below 0, the
        rounding of the eigenvalues included.

    Raises
    ------
    ValueError
    """
    n = gram.n
    rows = np.arange(n)
    if n > _CHECKED:
        rows = np.sort(np.random.default_rng(0).choice(n, _CHECKED, replace=False))
        logger.info(
            "kernel %r may be indefinite: a sample of %d of %d rows is checked",
            gram.kernel.name,
            _CHECKED,
            n,
        )
    block = gram.block(rows, rows)
    size = float(np.abs(block).max())
    if not np.allclose(block, block.T, rtol=0.0, atol=1e-6 * size):
        raise ValueError(
            f"kernel={gram.kernel.name!r}: the matrix is not symmetric; give one with "
            "K[i, j] = K[j, i]"
        )
    values = np.linalg.eigvalsh((block + block.T) / 2.0)
    largest = max(float(values[-1]), -float(values[0]))
    if values[0] < -1e-6 * largest:
        raise ValueError(
            f"kernel={gram.kernel.name!r}: the kernel matrix is indefinite (eigenvalue "
            f"{float(values[0]):.3g} beside {float(values[-1]):.3g}), so no duality "
            "gap would bound the optimum; use 'rbf', 'laplacian', 'linear', or 'poly' "
            "with coef0 >= 0"
        )
    asymmetry = float(np.abs(block - block.T).sum(axis=1).max())
    rounding = 4.0 * len(rows) * np.finfo(np.float64).eps * largest
    return max(0.0, -float(values[0])) + rounding + asymmetry

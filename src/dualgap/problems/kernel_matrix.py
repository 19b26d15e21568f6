"""Problems over a kernel matrix: scores of all rows, and bounds on their rounding."""

from __future__ import annotations

import functools
import logging
import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .. import core
from ..certificate import Bounds, Certificate
from ..checks import check_duals
from ..data.types import MatrixLike
from ..kernels.functions import Kernel
from ..kernels.gram import Gram, Matrix, roundings_of_values
from ..losses import Vector
from .base import EMPTY, ApproximateScores, Claim, KernelHint, Problem, Proof, hint_of
from .rounding import Rounding

logger = logging.getLogger("dualgap")

UNIT, SUM = Rounding.unit, Rounding.summed


@dataclass(frozen=True)
class KernelMatrixSettings:
    """Tuning constants of problems over a kernel matrix."""

    #: Most rows that are checked where a kernel may be indefinite; beyond, a sample.
    checked_rows: int = 1000
    #: A row surely has no loss if its margin is beyond the kink of the loss by this
    #: multiple of its error, which covers the rounding up in the certificate,
    errors: float = 1.05
    #: plus this distance: the bias changes once other scores become exact.
    distance: float = 1e-3
    #: Such small pairs start cold if C rises far: a warm start takes as many epochs.
    cold_rows: int = 2000
    #: Factor from which C rises far; measured with 4,000 and 7,494 rows of ten classes.
    far: float = 2.0

    def beyond(self, error: Vector) -> Vector:
        """Return the distances from the kink beyond which rows surely have no loss."""
        return self.errors * error + self.distance


SETTINGS = KernelMatrixSettings()


class Combined(NamedTuple):
    """Scores that were computed last."""

    #: Dual variables of the scores, shape (n,).
    alpha: Vector
    #: Scores, their errors, and the bias.
    near: ApproximateScores
    #: Rows whose scores were computed in float64, shape (n,).
    exact: NDArray[np.bool_]


class MatrixProblem(Problem):
    """Base of all problems over a kernel matrix.

    - `y`: signs of the dual variables, shape (n,).
    - `n`: rows.
    - `width`: always 0, because there is no w.
    - `shift`: amount added to the diagonal so that the kernel matrix is positive
      semidefinite.
    - `constant`: number added to kernel values: 1 for a penalised bias, else 0.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n, d), or Gram
        Rows, or a kernel matrix; with a matrix, leave `kernel` out.
    kernel : Kernel, optional
        A record of :mod:`dualgap.kernels.functions`.
    sample_weight : array-like of shape (n,), optional
        Factors of C, or weights of the rows, zero or positive.
    cache_size : float, default=200
        Megabytes of cached kernel rows.
    rows : array-like of int, optional
        Train on these rows of X only; other arrays have one entry for each.

    Raises
    ------
    ValueError
        If an argument is out of range or of the wrong shape, the loss is unknown, or
        the kernel matrix is not positive semidefinite.
    """

    width = 0
    y: NDArray[np.int8]
    lower: Vector | float
    shift = 0.0
    constant = 0.0

    def __init__(
        self,
        X: MatrixLike,
        kernel: Kernel | None,
        cache_size: float,
        rows: ArrayLike | None,
    ) -> None:
        if isinstance(X, Matrix):
            if kernel is not None:
                raise ValueError(
                    f"kernel={kernel!r}: a Gram has its kernel already; leave it out"
                )
            gram: Matrix = X
        elif kernel is None:
            raise ValueError("kernel=None: give a kernel, such as RBF(gamma='scale')")
        else:
            gram = Gram(X, kernel, cache_size)
        self.gram = gram if rows is None else gram.subset(rows)
        self.n = self.gram.n
        self._combined: Combined | None = None
        self._lengths: Vector | None = None

    def combine(self, alpha: Vector) -> Vector:
        """Return the decisions at all rows, bias included, shape (n,), float64."""
        known = self.known(alpha)
        return known.scores + known.bias

    def certify(self, alpha: ArrayLike) -> Certificate:
        """Return the certificate of dual variables.

        Parameters
        ----------
        alpha : array-like of shape (n,)

        Raises
        ------
        ValueError
            If the shape is wrong, or a value is outside its box or not finite.
        """
        alpha = check_duals(alpha, self.lower, self.upper)
        return self.prove(Claim(alpha=alpha)).certificate

    def prove(self, claim: Claim) -> Proof:
        """Return bounds on P and D of alpha, made feasible, from a scan in float64.

        The hint of the claim is a KernelHint. The proof holds the decisions at the
        rows, and no w.

        Raises StoppedError if the stop request of the hint ends the scan.
        """
        given, hint = dual_point(claim), hint_of(claim, KernelHint)
        alpha = self._feasible(given)
        near = self._moved(hint.near, alpha - given)
        scores, _, bias = self.known(alpha, hint.stop, near)
        f, s = scores + bias, self._factor(alpha, scores + bias)
        bounds = self.bounds(alpha, scores, bias, s)
        if s != 1.0:
            f, alpha, bias = s * f, s * alpha, s * bias
        certificate = replace(bounds.certificate, floor=self.floor)
        return Proof(EMPTY, alpha, certificate, bias, f)

    @abstractmethod
    def _feasible(self, alpha: Vector) -> Vector:
        """Return a feasible dual point near alpha."""

    def _factor(self, alpha: Vector, f: Vector) -> float:
        """Return the factor of alpha with the least gap; f are its decisions."""
        return 1.0

    @abstractmethod
    def bounds(
        self, alpha: Vector, scores: Vector, bias: float, s: float = 1.0
    ) -> Bounds:
        """Bound P of the model `s alpha` with `s bias` above, and D of `s alpha` below.

        The bounds include the rounding errors of kernel values and of sums over them.
        alpha is feasible, with these scores.
        """

    @abstractmethod
    def _above(self, alpha: Vector, scores: Vector, bias: float) -> tuple[float, float]:
        """Return P of any alpha with this bias, and its error."""

    def certify_model(self, coef: Vector, bias: float) -> Certificate:
        """Prove an upper bound on P of ``sum_j coef_j k(x_j, .) + bias``.

        The certificate has no dual value. `coef`, of shape (n,), may have either sign
        and any size: it need not be dual variables.
        """
        alpha = coef * self.y
        scores = self.scores(alpha)
        with np.errstate(over="ignore", invalid="ignore"):
            primal, more = self._above(alpha, scores, bias)
        return replace(Bounds.proved(primal, more).certificate, floor=self.floor)

    def _check_positive(self) -> None:
        if not self.gram.kernel.positive:
            self.shift = check_positive(self.gram)

    @property
    @abstractmethod
    def upper(self) -> Vector:
        """Upper bounds of the dual variables, shape (n,)."""

    def scores(self, alpha: Vector) -> Vector:
        """Return ``sum_j alpha_j y_j k_ij`` at all rows i, shape (n,), float64."""
        return self.known(alpha).scores.copy()

    def known(
        self,
        alpha: Vector,
        stop: core.Stop | None = None,
        near: ApproximateScores | None = None,
    ) -> ApproximateScores:
        """Return the scores of alpha, bounds on their errors, and the best bias.

        A row keeps its approximate score from `near` if `near` shows that it has no
        loss and its dual variable is 0: the certificate does not depend on its exact
        score. All other scores are computed in float64. The result is cached, because a
        solver asks for it again when its proof fails.

        Raises StoppedError if `stop` ends the computation early.
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
            near = ApproximateScores(scores, error, self._bias(alpha, scores))
            # The bias has changed, so other rows may be in doubt now.
            if exact.all() or not (wanted := self.in_doubt(near) & ~exact).any():
                break
        self._combined = Combined(alpha.copy(), near, exact)
        return near

    def remember(
        self, alpha: Vector, scores: Vector, error: Vector | None = None
    ) -> None:
        """Take over float64 scores of alpha, so that a proof need not add them up.

        Without bounds on their errors they are sums over the rows of a matrix in
        memory, in any order: the bound counts a rounding for each term.
        """
        if error is None:
            error = self._error(alpha, self.lengths)
        near = ApproximateScores(scores, error, self._bias(alpha, scores))
        self._combined = Combined(alpha.copy(), near, np.ones(self.n, bool))

    def _error(self, change: Vector, lengths: Vector) -> Vector:
        """Bound the errors of float64 scores of a change at rows of these lengths."""
        bound = self._roundings(change) * UNIT * self._reach(change)
        return Rounding.slack * bound * lengths

    def _scan(
        self,
        alpha: Vector,
        rows: NDArray[np.bool_],
        scores: Vector,
        error: Vector,
        stop: core.Stop | None,
    ) -> None:
        """Write the float64 scores of some rows, and bounds on their errors."""
        last, signed = self._combined, alpha * self.y
        groups = [(rows, signed)]
        if last is not None:
            # If the change of alpha has fewer entries than alpha, add the scores of the
            # change to the last scores.
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
                off = self._error(change, lengths)
            error[of] = off
            if change is not signed:
                assert last is not None
                scores[of] += last.near.scores[of]
                # Rounding of `moved` and of the sum above.
                reach = self._reach(np.abs(alpha) + np.abs(last.alpha))
                error[of] += Rounding.slack * 3 * UNIT * reach * lengths
                error[of] += last.near.error[of]

    def model(self, w: Vector | None, alpha: Vector | None) -> Vector:
        return super().model(None, alpha if w is None else w)

    @abstractmethod
    def _bias(self, alpha: Vector, scores: Vector) -> float:
        """Return the best bias if it is unpenalised, else the bias of alpha."""

    @abstractmethod
    def in_doubt(self, near: ApproximateScores) -> NDArray[np.bool_]:
        """Return a mask of the rows that may have a loss, given approximate scores."""

    def _moved(
        self, near: ApproximateScores | None, by: Vector
    ) -> ApproximateScores | None:
        """Return the approximate scores with their errors raised for a change `by`."""
        if near is None or not by.any():
            return near
        return near._replace(error=near.error + self._reach(by) * self.lengths)

    @property
    def lengths(self) -> Vector:
        """Upper bounds on ``sqrt(k(x_i, x_i))``, shape (n,).

        They are larger than the root where it underflows.
        """
        if self._lengths is None:
            diagonal = np.maximum(self.gram.diagonal() + self.shift, 0.0)
            self._lengths = np.sqrt(diagonal + self._underflow_of_values)
        return self._lengths

    @functools.cached_property
    def _underflow_of_values(self) -> float:
        """Bound on the underflow error of a kernel value of `linear` or `poly`.

        It is 0 for other kernels, whose certificate is about the computed values.
        """
        return _underflow_of_values(self.gram)

    def _underflow(self, change: Vector) -> float:
        """Return a bound on the underflow error of a score."""
        used = int(np.count_nonzero(change))
        if used == 0:
            return 0.0
        of_values = self._underflow_of_values * float(np.abs(change).sum())
        return of_values + (used + 8) * Rounding.least

    def _lost(self, *terms: Vector) -> float:
        """Return a bound on the underflow error of sums of these terms."""
        some = any(term.any() for term in terms)
        return (4 * self.n + 16) * Rounding.least if some else 0.0

    def _roundings(self, change: Vector) -> float:
        """Bound the roundings of a term of the scores, its kernel value included."""
        m = int(np.count_nonzero(change))
        # The core adds up the products of 6, 12 or 32 rows, and then adds these sums
        # one by one: at most m/6 + 8, m/12 + 14 or, in lanes of two, m/32 + 19
        # roundings. Values that Python computes are added one by one.
        added = m if self.gram.kernel.form is None else m // 6
        return added + 20 + roundings_of_values(self.gram)

    def _reach(self, change: Vector) -> float:
        return float((np.abs(change) * self.lengths).sum())

    def rounding_of_scores(self, alpha: Vector) -> Vector:
        """Return bounds on the errors of the :meth:`scores` of alpha, shape (n,).

        The bounds use that kernel values are at most ``sqrt(k_ii k_jj)``.
        """
        last = self._combined
        if last is not None and np.array_equal(last.alpha, alpha):
            return last.near.error
        return self.known(alpha).error

    def squared_norm(
        self, signed: Vector, scores: Vector, error: Vector
    ) -> tuple[float, float, float]:
        """Return ``sum_i signed_i scores_i``, its error, and the sum of absolute terms.

        `signed`: ``alpha_i y_i``. `error`: bounds on the errors of the scores.
        """
        terms = signed * scores
        size = float(np.abs(terms).sum())
        rounding = float((np.abs(signed) * error).sum()) + SUM * size
        # The certificate is about the matrix with `shift` on its diagonal.
        rounding += self.shift * float((signed * signed).sum())
        rounding += 4 * int(np.count_nonzero(signed)) * Rounding.least
        return float(terms.sum()), rounding, size


def dual_point(claim: Claim) -> Vector:
    """Return the alpha of a claim, which alone defines a kernel model."""
    if claim.alpha is None or claim.w is not None or claim.bias is not None:
        raise TypeError("a claim on a kernel problem must hold alpha, and no w or bias")
    return claim.alpha


def _underflow_of_values(gram: Matrix) -> float:
    """Return a bound on the underflow error of a value of `linear` or `poly`.

    It is 0 for the other kernels. A product of two rows, or of scaled entries, loses a
    few units of 2^-1074 for every entry. The power multiplies this loss by its slope,
    which is taken at the largest kernel value.
    """
    kernel = gram.kernel
    if kernel.form is None or kernel.name not in ("linear", "poly"):
        return 0.0
    gamma, degree = getattr(kernel, "gamma", 1.0), getattr(kernel, "degree", 1)
    X, _ = gram.source()
    entries = X.nnz if sparse.issparse(X) else X.shape[1]
    largest = float(gram.diagonal().max())
    base = max(largest, 0.0) ** (1.0 / degree)
    slope = degree * max(base, 1.0) ** (degree - 1)
    scale = 1.0 if gamma == 1.0 else 1.0 + gamma + math.sqrt(base / gamma)
    return slope * scale * (entries + 8) * Rounding.least


def score_roundings(gram: Matrix, added: float) -> core.ScoreRoundings:
    """Return sizes of the rounding errors of float64 scores, for proofs in the core.

    `gram`: its kernel makes every matrix positive semidefinite. `added`: roundings of
    sums, per term; see `MatrixProblem._roundings`.
    """
    underflow = _underflow_of_values(gram)
    each = Rounding.slack * UNIT
    return core.ScoreRoundings(
        np.sqrt(np.maximum(gram.diagonal(), 0.0) + underflow),
        added * each,
        each * (20 + roundings_of_values(gram)),
        UNIT + (gram.n * UNIT) ** 2,
        underflow,
    )


def scaled_values(
    cost: Vector, delta: Vector, alpha: Vector, margins: Vector
) -> tuple[float, float, float]:
    """Return the s >= 0 that minimises ``P(s alpha) - D(s alpha)``, and P and D there.

    The difference is convex and once differentiable in s. It is minimised by
    safeguarded Newton steps.

    All arrays have shape (n,). The margins are ``y_i f(x_i)`` of the model alpha.
    """
    total, norm = float(alpha.sum()), float((alpha * margins).sum())
    diagonal = float((delta * alpha * alpha).sum())
    curvature = 2.0 * norm + diagonal
    # A point that is 0, or whose sums overflow, cannot be scaled: s is 0.
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


class IndefiniteKernelError(ValueError):
    """A kernel matrix that is not positive semidefinite, so that no gap is a proof."""


def check_positive(gram: Matrix) -> float:
    """Check that a kernel matrix is symmetric and positive semidefinite.

    Up to `SETTINGS.checked_rows` rows the whole matrix is checked, else a sample.

    Returns the amount to add to the diagonal so that no eigenvalue is negative. It
    includes the rounding errors of the eigenvalues. Raises IndefiniteKernelError if the
    matrix is not symmetric, or indefinite beyond rounding.
    """
    n, most = gram.n, SETTINGS.checked_rows
    rows = np.arange(n)
    if n > most:
        rows = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
        logger.info(
            "kernel %r may be indefinite: checking a sample of %d of %d rows",
            gram.kernel.name,
            most,
            n,
        )
    block = gram.block(rows, rows)
    size = float(np.abs(block).max())
    if not np.allclose(block, block.T, rtol=0.0, atol=1e-6 * size):
        raise IndefiniteKernelError(
            f"kernel={gram.kernel.name!r}: the matrix is not symmetric; make "
            "K[i, j] equal to K[j, i]"
        )
    values = np.linalg.eigvalsh((block + block.T) / 2.0)
    largest = max(float(values[-1]), -float(values[0]))
    if values[0] < -1e-6 * largest:
        raise IndefiniteKernelError(
            f"kernel={gram.kernel.name!r}: the kernel matrix is indefinite "
            f"(eigenvalues from {float(values[0]):.3g} to {float(values[-1]):.3g}). "
            "No duality gap would bound the optimum; use 'rbf', 'laplacian', 'linear', "
            "or 'poly' with coef0 >= 0"
        )
    asymmetry = float(np.abs(block - block.T).sum(axis=1).max())
    rounding = 4.0 * len(rows) * np.finfo(np.float64).eps * largest
    return max(0.0, -float(values[0])) + rounding + asymmetry

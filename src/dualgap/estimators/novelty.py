"""Novelty detection by one-class SVMs, linear and with kernels."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OutlierMixin
from sklearn.utils.validation import check_is_fitted

from ..data.columns import StoredColumns
from ..data.types import Matrix, MatrixLike
from ..kernel import KernelOneClass, Precomputed
from ..kernels.functions import Kernel
from ..losses import Vector
from ..problems.batch import SingleBatch
from ..problems.one_class import OneClassProblem
from ..solvers import Solver, solver_for
from ..training.batch import Job
from ..training.solution import Solution, Solutions
from .input import TrainingData
from .kernels import KernelRows, KernelSingle, LinearSingle
from .parameters import Nu, ParameterHints

#: A decision below this fraction of the offset counts as 0: it is within rounding.
ZERO = 1e-9


def on_the_plane(decisions: Vector, least: float) -> Vector:
    """Return one-class decisions, with those below `least` in size set to 0.

    At the optimum many rows lie on the plane itself. Without this, rounding would
    decide the signs of their decisions, and so their labels.
    """
    return np.where(np.abs(decisions) <= least, 0.0, decisions)


def least_decision(
    kernel: Kernel, vectors: Matrix, coef: Vector, offset: float
) -> float:
    """Return the largest decision of a one-class SVM that counts as 0.

    - `vectors`: support vectors, shape (n_SV, n_features); not looked at with a
      precomputed kernel.
    - `coef`: shape (1, n_SV).
    """
    least = ZERO * abs(offset)
    if isinstance(kernel, Precomputed):
        return least
    return max(
        least, 1e-13 * float(np.abs(coef).sum() * kernel.diagonal(vectors).max())
    )


class Novelty(OutlierMixin, ParameterHints):
    """Mixin for one-class SVMs: scores and labels from their decisions."""

    if TYPE_CHECKING:
        dual_coef_: Vector
        intercept_: Vector

        @property
        def _least(self) -> float: ...

    def _chance(self, batch: SingleBatch, found: Solutions) -> str:
        certificate = found.certificate
        if not certificate.certified:
            return ""
        # The optimum is -||w||^2 / 2. With P >= 0 it may be 0, and w too.
        if certificate.primal >= 0.0:
            return (
                "rounding decides the predictions, because no plane separates enough "
                "rows from the origin, so that w = 0 is optimal within the proved gap. "
                "Use the rbf kernel (OneClassSVM), a larger nu, or columns that are "
                "not centred"
            )
        # Rows on the plane have no loss, and so nu sum_i c_i rho = ||w||^2 = -2 P*.
        weighed = -float(self.dual_coef_.sum() * self.intercept_[0])
        if weighed > -2.0 * certificate.dual * (1.0 + 1e-6):
            return ""
        if np.abs(self._own_decisions(batch, found[0])).max() > self._least:
            return ""
        return (
            "rounding decides the predictions, because all training rows lie on the "
            "boundary, and so count as inliers. They are equal, or too few, or the "
            "kernel is too narrow: lower gamma"
        )

    def _own_decisions(self, batch: SingleBatch, solution: Solution) -> Vector:
        """Return the decisions of the training rows of positive weight."""
        return np.asarray(solution.decisions)

    def decision_function(self, X: MatrixLike) -> Vector:
        """Return the scores minus `offset_`: negative for outliers, 0 on the boundary.

        Values within rounding are set to 0: those below 1e-9 times the offset in size
        and, for OneClassSVM, those below 1e-13 times ``sum_i a_i max_i k(x_i, x_i)``.
        The second limit matters where the optimum is ``w = 0`` and the sums cancel; it
        is not used with a precomputed kernel.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Decisions.
        """
        return on_the_plane(self._values(X)[:, 0], self._least)

    def score_samples(self, X: MatrixLike) -> Vector:
        """Return the scores of rows; lower is more unusual.

        Returns
        -------
        ndarray of shape (n_samples,), float64
            Scores.
        """
        return self.decision_function(X) + self.offset_[0]

    def predict(self, X: MatrixLike) -> NDArray[np.intp]:
        """Predict which rows are inliers (1) and which are outliers (-1).

        Returns
        -------
        ndarray of shape (n_samples,), intp
            1 or -1.
        """
        return np.where(self.decision_function(X) >= 0.0, 1, -1).astype(np.intp)


@dataclass(eq=False, repr=False)
class LinearOneClassSVM(Novelty, LinearSingle):
    r"""Linear one-class SVM for novelty detection, with a certificate of optimality.

    It finds the plane ``coef_ . x = offset_`` that separates most rows from the origin.
    This is the model of ``OneClassSVM(kernel="linear")`` and of LIBLINEAR's -s 21.

    Parameters
    ----------
    nu : float, default=0.5
        In (0, 1]: an upper bound on the fraction of training rows on the wrong side of
        the plane, and a lower bound on the fraction of support vectors.
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/|P|`` to prove.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features), float64
        Weights of the features.
    offset_ : ndarray of shape (1,), float64
        Offset of the plane: ``decision_function = score_samples - offset_``.
    intercept_ : ndarray of shape (1,), float64
        ``-offset_``.
    support_ : ndarray of shape (n_support,), intp
        Indices of the rows with a positive dual variable, sorted.
    dual_coef_ : ndarray of shape (1, n_support), float64
        Dual variables of the rows in `support_`, between 0 and the weight of the row.
        Their sum is nu times the sum of the weights.
        ``coef_ = dual_coef_ @ X[support_]``.

    See Also
    --------
    OneClassSVM : One-class SVM with kernels. A linear one cannot enclose rows that lie
        around the origin.
    sklearn.linear_model.SGDOneClassSVM : The same model, by stochastic gradients.

    Notes
    -----
    With weights ``c_i = sample_weight_i`` it minimises

    .. math:: P(w, \rho) = \tfrac12 \|w\|^2 - \nu \sum_i c_i \, \rho
              + \sum_i c_i \max(0, \rho - w \cdot x_i)

    by dual coordinate descent on pairs of variables [1]_ and, where that is slow, by an
    interior point. The optimum is :math:`-\tfrac12 \|w\|^2`. The plane passes through
    support vectors, which have a decision of 0 and count as inliers.

    References
    ----------
    .. [1] H.-Y. Chou, P.-Y. Lin, C.-J. Lin, "Dual coordinate-descent methods for
       linear one-class SVM and SVDD", SDM 2020.

    Examples
    --------
    >>> import numpy as np
    >>> from dualgap import LinearOneClassSVM
    >>> X = np.random.default_rng(0).normal(size=(200, 2)) + [4.0, 4.0]
    >>> model = LinearOneClassSVM(nu=0.1).fit(X)
    >>> model.certificate_.certified
    True
    >>> model.predict([[0.0, 0.0], [5.0, 5.0]])
    array([-1,  1])
    """

    nu: Nu = 0.5
    _: KW_ONLY

    def _batch(self, data: TrainingData, job: Job) -> SingleBatch:
        columns = StoredColumns(data.X)
        problem = OneClassProblem(
            columns.X, self.nu, sample_weight=data.weight, n_jobs=job.threads
        )
        return SingleBatch(problem, type(self).__name__, columns=columns)

    def _solver(self, batch: SingleBatch, job: Job) -> Solver:
        return solver_for(batch.only)

    def _keep(self, data: TrainingData, batch: SingleBatch, found: Solutions) -> None:
        bias = found[0].bias
        assert bias is not None
        self.coef_ = batch.columns.spread(found.w[0][None, :].copy())
        self.intercept_ = np.array([bias])
        self.offset_ = -self.intercept_
        self._keep_duals(found)

    def _own_decisions(self, batch: SingleBatch, solution: Solution) -> Vector:
        values: Vector = batch.only.margins(solution.w) + self.intercept_
        return values[batch.only.cost > 0.0]

    @property
    def _least(self) -> float:
        """Size up to which a decision counts as 0."""
        return ZERO * abs(float(self.offset_[0]))


@dataclass(eq=False, repr=False, kw_only=True)
class OneClassSVM(Novelty, KernelSingle):
    r"""Kernel one-class SVM for novelty detection, with a certificate of optimality.

    It solves the problem of LIBSVM and scikit-learn, on the same scale.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/|P|`` to prove.
    nu : float, default=0.5
        In (0, 1]: an upper bound on the fraction of training rows that are outliers,
        and a lower bound on the fraction of support vectors.

    Attributes
    ----------
    offset_ : ndarray of shape (1,), float64
        Offset of the plane: ``decision_function = score_samples - offset_``.
    intercept_ : ndarray of shape (1,), float64
        ``-offset_``.
    dual_coef_ : ndarray of shape (1, n_SV), float64
        Coefficients of the support vectors, between 0 and the weight of the row. Their
        sum is nu times the sum of the weights.

    See Also
    --------
    sklearn.svm.OneClassSVM : The same problem, without a proof of accuracy.
    LinearOneClassSVM : Linear one-class SVM; faster if the kernel is linear.

    Notes
    -----
    With weights ``c_i = sample_weight_i`` it minimises

    .. math:: P = \tfrac12 \|w\|^2 - \nu \sum_i c_i \, \rho
              + \sum_i c_i \max(0, \rho - g(x_i)), \qquad
              g(x) = \sum_i a_i k(x_i, x)

    with :math:`0 \le a_i \le c_i` and :math:`\sum_i a_i = \nu \sum_i c_i` [1]_. The
    optimum is :math:`-\tfrac12 \|w\|^2`. Support vectors on the boundary have a
    decision of 0 and count as inliers. Rows of weight 0 are left out.

    References
    ----------
    .. [1] B. Schoelkopf, J. C. Platt, J. Shawe-Taylor, A. J. Smola, R. C. Williamson,
       "Estimating the support of a high-dimensional distribution", Neural Computation
       13, 2001.

    Examples
    --------
    >>> from dualgap import OneClassSVM
    >>> X = [[0.0], [0.44], [0.45], [0.46], [1.0]]
    >>> model = OneClassSVM(gamma="auto").fit(X)
    >>> model.predict(X)
    array([-1,  1,  1,  1, -1])
    """

    nu: Nu = 0.5

    def _problem(self, rows: KernelRows, C: float) -> KernelOneClass:
        return KernelOneClass(rows.matrix, self.nu, sample_weight=rows.weight)

    @property
    def offset_(self) -> Vector:
        """Offset of the plane, shape (1,).

        ``decision_function = score_samples - offset_``.
        """
        if "intercept_" not in vars(self):  # the check itself takes long
            check_is_fitted(self)
        return -self.intercept_

    @property
    def _least(self) -> float:
        """Size up to which a decision counts as 0."""
        return least_decision(
            Precomputed() if hasattr(self, "_items") else self._fitted_kernel,
            self.support_vectors_,
            self.dual_coef_,
            float(self.offset_[0]),
        )

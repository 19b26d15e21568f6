"""Kernel machines with nu, a share of the rows, in the place of C or of epsilon."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Annotated, cast

from sklearn.utils._param_validation import StrOptions

from ..data.types import Parameters
from ..kernel import BlockSolver
from ..problems.kernel import KernelBatch, NuBatch
from ..problems.kernel_nu import NuRegression
from ..solvers import get_solver, solvers_of
from ..training.batch import Job
from ..training.solution import Solutions
from .kernels import KernelRows, KernelSingle, Targets
from .parameters import Nu, Positive
from .svc import KernelClassifier


@dataclass(eq=False, repr=False)
class NuSVC(KernelClassifier):
    r"""Kernel support vector classifier with a bound on the share of errors.

    It solves the nu-SVC of LIBSVM and scikit-learn until a relative duality gap of
    `tol` is proved. More than two classes are trained one versus one.

    Parameters
    ----------
    nu : float, default=0.5
        Share in (0, 1]: an upper bound on the share of rows on the wrong side of their
        margin, and a lower bound on the share of support vectors. For each pair of
        classes it is at most twice the share of the smaller class, by weight.
    solver : {"auto", "block"} or BlockSolver, default="auto"
        Training method, as for :class:`SVR`.
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/|P|`` to prove, per pair of classes.
    class_weight : dict or "balanced", optional
        Factor of the weights of the rows of each class, as for :class:`SVC`.
        scikit-learn's NuSVC ignores it.

    Attributes
    ----------
    dual_coef_ : ndarray of shape (n_classes - 1, n_SV), float64
        As for :class:`SVC`, divided by rho as in LIBSVM, as are `intercept_` and
        `coef_`.
    certificate_ : Certificate
        As for :class:`SVC`, about the objective below, before the division.

    See Also
    --------
    sklearn.svm.NuSVC : The same problem, without a proof of accuracy.
    SVC : The same models, with C instead of nu.

    Notes
    -----
    With weights ``c_i = sample_weight_i * class_weight[y_i]`` and labels of -1 and +1
    it minimises, over w, b and rho [1]_,

    .. math:: P = \tfrac12 \|w\|^2 - \nu \rho \sum_i c_i
              + \sum_i c_i \max(0, \rho - y_i (w \cdot x_i + b)),

    whose optimum is negative, or 0 if the classes cannot be told apart. The model is
    the one of an :class:`SVC` with C = 1/rho.

    References
    ----------
    .. [1] B. Schoelkopf, A. J. Smola, R. C. Williamson, P. L. Bartlett, "New support
       vector algorithms", Neural Computation 12, 2000.

    Examples
    --------
    >>> from dualgap import NuSVC
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = NuSVC(nu=0.2).fit(X, y)
    >>> model.certificate_.certified
    True
    >>> model.predict(X[:5])
    array([0, 0, 0, 0, 0])
    """

    nu: Nu = 0.5
    _: KW_ONLY
    solver: Annotated[
        str | BlockSolver, StrOptions(set(solvers_of("kernel-nu"))), BlockSolver
    ] = "auto"

    def _kind_of_problems(
        self, pairs: int, job: Job | None
    ) -> tuple[type[NuBatch], BlockSolver, Parameters]:
        solver = cast(BlockSolver, get_solver(self.solver, "kernel-nu"))
        return NuBatch, solver, {"nu": self.nu}

    def _chance(self, batch: KernelBatch, found: Solutions) -> str:
        # w = 0 is optimal for a pair, within the proved gap.
        decided = [
            part.name
            for part in self.certificate_.parts
            if part.certified and -part.dual <= part.tol * part.floor
        ]
        return self._undecided(
            decided,
            "w = 0 is optimal within the proved gap: the kernel and this nu",
            "a smaller nu, another kernel, or other features",
        )


@dataclass(eq=False, repr=False, kw_only=True)
class NuSVR(Targets, KernelSingle):
    r"""Kernel support vector regressor that chooses the width of its tube.

    It solves the nu-SVR of LIBSVM and scikit-learn until a relative duality gap of
    `tol` is proved.

    Parameters
    ----------
    nu : float, default=0.5
        Share in (0, 1]: an upper bound on the share of rows outside the tube, and a
        lower bound on the share of support vectors.
    C : float, default=1.0
        Weight of the loss, summed over the rows.

    See Also
    --------
    sklearn.svm.NuSVR : The same problem, without a proof of accuracy.
    SVR : The same models, with epsilon instead of nu.

    Notes
    -----
    With costs ``c_i = C * sample_weight_i`` it minimises

    .. math:: P = \tfrac12 \|w\|^2 + \nu \epsilon \sum_i c_i
              + \sum_i c_i \max(0, |y_i - f(x_i)| - \epsilon)

    over w, b and epsilon [1]_.

    References
    ----------
    .. [1] B. Schoelkopf, A. J. Smola, R. C. Williamson, P. L. Bartlett, "New support
       vector algorithms", Neural Computation 12, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from dualgap import NuSVR
    >>> X = np.linspace(0.0, 6.0, 50)[:, None]
    >>> y = np.sin(X).ravel()
    >>> model = NuSVR(C=10.0, nu=0.2).fit(X, y)
    >>> model.certificate_.certified
    True
    >>> bool(np.abs(model.predict(X) - y).max() < 0.06)
    True
    """

    nu: Nu = 0.5
    C: Positive = 1.0

    def _problem(self, rows: KernelRows, C: float) -> NuRegression:
        matrix, y, weight = rows
        return NuRegression(matrix, y, C, self.nu, sample_weight=weight)

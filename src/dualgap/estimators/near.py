"""The fit of LinearSVC, which may start near given coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from ..answers.ball import Decided
from ..data.types import MatrixLike
from .certain import CertainLabels

if TYPE_CHECKING:
    from typing_extensions import Self


class FitsNear(CertainLabels):
    """Mixin whose fits may start at coefficients, and end when labels are certain."""

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        until: Decided | None = None,
        coef_init: ArrayLike | None = None,
        intercept_init: ArrayLike | None = None,
    ) -> Self:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowStore} of shape (n_samples, n_features)
            Training rows. A :class:`dualgap.data.RowStore` larger than its buffer is
            read block by block in every epoch; memory then holds the model, the dual
            variables and the buffer.
        y : array-like or sparse matrix of shape (n_samples,) or (n_samples, n_labels)
            Class labels, numbers or strings. Optional for a store that has labels. Two
            columns or more, of 0 and 1, are labels of which a row may have any number.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, zero or positive: the integer k counts like k equal rows. If
            both y and `sample_weight` are omitted, the weights of the store are used.
        until : Decided, optional
            Train beyond `tol` until given labels are certain; see
            :class:`dualgap.answers.Decided`.
        coef_init : array-like of the shape of ``coef_``, optional
            Coefficients near the solution, as for scikit-learn's ``SGDClassifier``; of
            one problem also of shape (n_features,). "newton", with a penalised bias,
            and "proximal-newton" start from them, as does "auto" where it takes these.
            The certificate holds as for any other fit.
        intercept_init : array-like of the shape of ``intercept_``, optional
            Intercepts of this start; zeros if omitted, like omitted coefficients.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, X contains NaN or infinite values,
            a class has no row with a positive weight, or a warm start does not match
            the data.

        Warns
        -----
        ConvergenceWarning
            If the relative gap `tol` was not proved, or labels of `until` are not
            certain. The message tells what was proved.
        DegenerateWarning
            If the decision function of a class is no better than a constant on the
            training rows. The message names the class and a remedy.
        """
        first = coef_init, intercept_init
        if until is None:
            return self._fit(X, y, sample_weight, first=first)
        return self._fit_until(X, y, sample_weight, until, first)

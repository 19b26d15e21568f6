"""partial_fit of LinearSVC, and the certificate of the resulting model."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call, unique_labels

from ..certificate import Bounds, Certificate, Status
from ..data.types import Label, MatrixLike
from ..losses import Loss, Vector
from ..problems.batch import LinearBatch
from ..problems.binary import BinaryProblem
from ..problems.duals import Table, dense_table, expanded
from ..problems.reductions import OneVsRest
from ..solvers import DCD, Solver, get_solver
from ..solvers.auto import Auto
from ..training.batch import begin, in_threads, seeds_of
from ..training.stream import Stream, key_of
from .base import Estimator, need_duals
from .input import check_sample_weight, checked, class_factors, refuse_masks, validated

#: Parameters that define the problem. They must not change between calls.
FIXED = (
    "C", "loss", "fit_intercept", "intercept_scaling", "penalize_intercept",
    "class_weight", "multi_class",
)  # fmt: skip
#: Approximate number of rows in the fingerprint of a fit.
_TOLD = 20_000


def _learns_in_batches(estimator: BaseEstimator) -> bool:
    """Whether the parameters allow partial_fit; if not, raise an error with the reason.

    The AttributeError names the parameter and the values that partial_fit supports.
    """
    if _sweeper(estimator.solver) is None:
        raise AttributeError(
            f"solver={estimator.solver!r} is not supported by partial_fit, which uses "
            "dual coordinate descent; use solver='auto' or 'dcd' (shrinking='sleep')"
        )
    if estimator.penalty != "l2":
        raise AttributeError(
            f"penalty={estimator.penalty!r} is not supported by partial_fit; use "
            "penalty='l2'"
        )
    if estimator.multi_class != "ovr":
        raise AttributeError(
            f"multi_class={estimator.multi_class!r} is not supported by partial_fit, "
            "which learns each class against the rest; use multi_class='ovr'"
        )
    if isinstance(estimator.class_weight, str):
        raise AttributeError(
            f"class_weight={estimator.class_weight!r} is not supported by partial_fit, "
            "which does not know the rows to come. Give a dict, with the weights "
            "that sklearn.utils.class_weight.compute_class_weight('balanced', "
            "classes=classes, y=y) finds for a sample of y"
        )
    if not estimator.penalize_intercept:
        raise AttributeError(
            "penalize_intercept=False is not supported by partial_fit, whose steps "
            "on single rows cannot keep sum_i alpha_i y_i = 0. Use "
            "penalize_intercept=True; with intercept_scaling=10 it penalises the "
            "bias a hundredth as much"
        )
    return True


def _sweeper(solver: str | Solver) -> DCD | None:
    """Return the `DCD` that sweeps a batch for this solver; None if it cannot."""
    try:
        solver = get_solver(solver)
    except ValueError:  # fit says what is wrong with it
        return None
    if isinstance(solver, Auto):
        return DCD(acceleration="none")
    # Acceleration across sweeps would need the rows of all batches.
    if isinstance(solver, DCD) and solver.shrinking == "sleep":
        return DCD(acceleration="none", block_sweeps=solver.block_sweeps)
    return None


#: Rows, labels, and perhaps weights.
LabelledRows = (
    tuple[MatrixLike, ArrayLike] | tuple[MatrixLike, ArrayLike, ArrayLike | None]
)


class PartialFit(Estimator[LinearBatch]):
    """Mixin that gives LinearSVC ``partial_fit`` and ``certify``."""

    # Set by LinearSVC, by fit and by partial_fit.
    if TYPE_CHECKING:
        C: float
        loss: str | Loss
        solver: str | Solver
        fit_intercept: bool
        intercept_scaling: float
        penalize_intercept: bool
        class_weight: dict[Label, float] | str | None
        checkpoint: str | os.PathLike[str] | None
        support_: NDArray[np.intp]
        dual_coef_: Table
        classes_: NDArray[np.generic]
        _stream: Stream
        _seconds: float

    @available_if(_learns_in_batches)
    @checked
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> BaseEstimator:
        """Learn from one more batch of rows.

        The problem is ``fit``'s on the rows of all batches so far, with the same C for
        every row. Dual coordinate descent sweeps the batch a few times
        (``DCD(block_sweeps=...)``); earlier batches are not needed again. It requires
        the solver "auto" or "dcd", ``multi_class="ovr"`` and a penalised intercept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. A batch that equals an earlier one, row for row, is recognised: its
            dual variables continue from their last values. Rows in another order or in
            other batches count as new rows, so keep the batches unchanged to make
            several epochs.
        y : array-like of shape (n_samples,)
            Classes of the rows.
        classes : array-like of shape (n_classes,), optional
            All classes that will occur in any batch. Required in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, zero or positive.

        Returns
        -------
        LinearSVC
            This estimator, with ``coef_``, ``intercept_``, ``classes_``, ``n_iter_``
            (the largest number of times that one batch was given) and
            ``certificate_``; without dual variables and history.

        Raises
        ------
        ValueError
            If `classes` is missing in the first call or differs later, y contains a
            class that is not among them, X has another number of features, or a
            parameter that defines the problem has changed since the first call. Also in
            the first call after ``fit``, if X and y are not the rows passed to ``fit``.
        KeyboardInterrupt
            After Ctrl-C.

        See Also
        --------
        certify : Prove the accuracy of the model, by one more pass.

        Notes
        -----
        After a call, ``certificate_`` contains (per class, if there are more than two):

        - ``dual``, a lower bound on the least objective over all rows so far. It
          includes a bound on the rounding of the sums, and apart from that it never
          falls.
        - ``primal``, which is infinite: the objective sums over rows that are not kept.
          The status is "streamed", and the distance from the optimum is unknown.
        - With only one batch so far, ``primal`` and ``dual`` come from one exact pass
          over it, as in ``fit``. The status is "certified" if they prove `tol` or
          `atol`.

        A first call after ``fit``, with the same rows, continues from its dual
        variables.

        The estimator stores the dual variables, 8 bytes per row and binary problem, and
        no rows. `tol`, `atol`, `max_iter` and `warm_start` have no effect on the
        steps; `time_limit` applies to each call. Ctrl-C ends a call early: the model is
        consistent, but has learned only part of the batch.
        """
        sweeper = _sweeper(self.solver)
        assert sweeper is not None
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        self._check_step()
        first = not hasattr(self, "_stream")
        fitted = first and hasattr(self, "classes_")  # by fit
        X, y = validated(self, X, y, reset=first and not fitted)
        begun = time.perf_counter()
        if first and not fitted:
            known = _first_classes(classes)
        else:
            known = self.classes_
            if classes is not None:
                _check_partial_fit_first_call(self, classes)
        codes = _codes(y, known)
        weight = check_sample_weight(sample_weight, X)
        binary, key = self._binary_problems(X, known, codes, weight)
        alpha = self._duals_of_fit(codes, binary) if fitted else None
        stop = begin(self.time_limit)
        if first:  # only now, so that a failed first call changes nothing
            self._begin_stream(known, len(binary))
        batch = self._stream.open(key, len(codes))
        if alpha is not None:
            self._stream.take_up(batch, binary, alpha)
            for name in ("support_", "dual_coef_", "history_"):
                delattr(self, name)

        def learn(k: int) -> None:
            problem = binary[k]
            if problem is not None:
                self._stream.learn(k, problem, batch, sweeper, stop)

        in_threads(learn, len(binary), self._job(stop))
        self._seconds += time.perf_counter() - begun
        alone = len(self._stream.batches) == 1
        self._tell(self._stream.prove([(key, binary)]) if alone else None)
        if stop.requested:
            raise KeyboardInterrupt
        return self

    @available_if(_learns_in_batches)
    def certify(self, batches: Iterable[LabelledRows]) -> Certificate:
        """Prove the accuracy of a model of `partial_fit`, by one pass over its batches.

        Parameters
        ----------
        batches : iterable of tuples (X, y) or (X, y, sample_weight)
            Every batch that was given to `partial_fit`, once and unchanged, in any
            order; or a :class:`dualgap.data.RowStore` whose blocks were the batches.

        Returns
        -------
        Certificate
            ``certificate_`` from now on, with one part per class if there are more than
            two. ``primal`` is the objective of this model over all rows, ``dual`` the
            value of the duals that are kept. Both are computed from the rows in
            float64, so that ``dual <= P* <= primal``. The status is "certified" if they
            prove `tol` or `atol`, else "streamed".

        Raises
        ------
        ValueError
            If a batch was not given to `partial_fit`, is given twice, or is missing; or
            if the model was not trained by `partial_fit`. Use :func:`dualgap.certify`
            in that case.
        """
        if not hasattr(self, "_stream"):
            raise ValueError(
                "this model was not trained by partial_fit; use "
                "dualgap.certify(model, X, y)"
            )
        self._check_unchanged()

        def problems() -> Iterator[tuple[bytes, list[BinaryProblem | None]]]:
            for batch in batches:
                X, y = validated(self, batch[0], batch[1], reset=False)
                weight = check_sample_weight(batch[2] if len(batch) > 2 else None, X)
                codes = _codes(y, self.classes_)
                binary, key = self._binary_problems(X, self.classes_, codes, weight)
                yield key, binary

        begun = time.perf_counter()
        values = self._stream.prove(problems())
        self._seconds += time.perf_counter() - begun
        self._tell(values)
        return self.certificate_

    # ------------------------------------------------------------------- refusals

    def _check_step(self) -> None:
        if self.checkpoint is not None:
            raise ValueError(
                "checkpoint is not supported by partial_fit; set checkpoint=None, and "
                "pickle the estimator between two calls instead"
            )
        if hasattr(self, "_skl_callbacks"):
            raise ValueError(
                "callbacks are not supported by partial_fit; remove them with "
                "set_callbacks()"
            )
        if hasattr(self, "_stream"):
            self._check_unchanged()

    def _check_unchanged(self) -> None:
        for name in FIXED:
            value = self._fitted[name]
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} was {value!r} in the first call of partial_fit and is now "
                    f"{getattr(self, name)!r}. Restore it, or start with a clone of "
                    "this estimator"
                )

    def _duals_of_fit(
        self, codes: NDArray[np.intp], binary: list[BinaryProblem | None]
    ) -> NDArray[np.float64]:
        """Return the dual variables that `fit` found, shape (problems, n)."""
        need_duals(self, "partial_fit after fit")
        told = getattr(self, "_fit_rows", None)
        if told is None or told != rows_of_fit(codes, binary[0]):
            raise ValueError(
                "partial_fit after fit must start with the rows passed to fit, in the "
                "same order; fit does not store them. Give these rows, or use a clone "
                "of this estimator"
            )
        table = expanded(self.dual_coef_, self.support_, len(codes))
        return np.abs(dense_table(table))

    def _begin_stream(self, classes: NDArray[np.generic], problems: int) -> None:
        self.classes_ = classes
        seeds = seeds_of(self.random_state, problems)
        width = self.n_features_in_ + bool(self.fit_intercept)
        self._stream = Stream.begin(width, seeds)
        self._note_parameters()
        self._seconds = 0.0

    # -------------------------------------------------------------------- problems

    def _binary_problems(
        self,
        X: MatrixLike,
        classes: NDArray[np.generic],
        codes: NDArray[np.intp],
        weight: Vector,
    ) -> tuple[list[BinaryProblem | None], bytes]:
        """Return the binary problems of a batch, and the key of the batch.

        A problem is None if all its rows have weight 0.
        """
        reduction = OneVsRest(len(classes))
        factors = class_factors(
            self.class_weight, classes, np.ones(len(classes))
        )  # of all classes, even if the batch lacks some
        threads = max(1, effective_n_jobs(self.n_jobs) // len(reduction))
        rows = BinaryProblem(
            X,
            reduction.signs(codes, 0),
            self.C,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            n_jobs=threads,
        )
        binary: list[BinaryProblem | None] = []
        for k in range(len(reduction)):
            cost = reduction.weights(codes, k, weight, factors)
            signs = reduction.signs(codes, k)
            binary.append(rows.with_labels(signs, cost) if cost.any() else None)
        return binary, key_of(rows, codes, weight)

    def _tell(self, values: list[Bounds] | None) -> None:
        """Set the fitted attributes, from proved bounds or from D alone."""
        stream, constant = self._stream, self.intercept_scaling
        d = self.n_features_in_
        self.coef_ = stream.w[:, :d].copy()
        self.intercept_ = (
            constant * stream.w[:, d] if self.fit_intercept else np.zeros(len(stream.w))
        )
        parts = []
        for k in range(len(stream.w)):
            bounds = stream.dual(k) if values is None else values[k]
            proof = bounds.certificate
            proved = proof.meets(self.tol, self.atol)
            parts.append(
                replace(
                    proof,
                    epochs=stream.passes,
                    updates=stream.updates[k],
                    seconds=self._seconds,
                    status=Status.CERTIFIED if proved else Status.STREAMED,
                    solver="dcd",
                    tol=self.tol,
                    atol=self.atol,
                )
            )
        self.n_iter_ = stream.passes
        names = OneVsRest(len(self.classes_)).names(self.classes_)
        self.certificate_ = Certificate.total(parts, names)

    def _forget_stream(self) -> None:
        """Remove the state of partial_fit before a new fit."""
        for name in ("_stream", "_seconds", "_fit_rows", "_labels"):
            self.__dict__.pop(name, None)


def rows_of_fit(codes: NDArray[np.intp], rows: BinaryProblem | None) -> str | None:
    """Return a fingerprint of the rows of a fit; None if not all rows were read.

    It covers the labels and norms of some rows, and sums over all. A mistaken match
    does no harm: the dual point is feasible for any rows, only a worse start.
    """
    if rows is None or not rows.all_read:
        return None
    every = len(codes) // _TOLD + 1
    sums = len(codes), int(codes.sum()), float(rows.q.sum())
    found = zlib.crc32(codes[::every].tobytes())
    return f"{sums} {zlib.crc32(rows.q[::every].tobytes(), found)}"


def _first_classes(classes: ArrayLike | None) -> NDArray[np.generic]:
    if classes is None:  # scikit-learn's message, which its estimator checks expect
        raise ValueError("classes must be passed on the first call to partial_fit.")
    found = unique_labels(classes)
    if len(found) < 2:
        raise ValueError(
            "The number of classes has to be greater than one; got "
            f"{len(found)} class in classes"
        )
    return found


def _codes(y: ArrayLike, classes: NDArray[np.generic]) -> NDArray[np.intp]:
    """Return the index of every label among the classes, shape (n,)."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y has labels {unknown.tolist()} that are not among the classes "
            f"{classes.tolist()} of the first call to partial_fit; start again with "
            "all classes"
        )
    return np.searchsorted(classes, y)

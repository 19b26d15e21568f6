"""partial_fit of LinearSVC, and the certificate of the resulting model."""

from __future__ import annotations

import os
import time
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from fractions import Fraction
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
from ..training.signed_stream import SignedStream
from ..training.stream import Stream, key_of
from .base import Estimator, need_duals
from .input import (
    balanced_factors,
    check_sample_weight,
    checked,
    class_factors,
    refuse_masks,
    validated,
)

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
        every row; "balanced" class weights count all rows so far. Dual
        coordinate descent sweeps the batch a few times (``DCD(block_sweeps=...)``);
        earlier batches are not needed again. It requires the solver "auto" or "dcd",
        and ``multi_class="ovr"``.

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
          includes a bound on the rounding of the sums. Apart from that, it falls only
          with a free intercept, or where new rows change "balanced" weights.
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
        rows, key = self._rows(X, known, codes, weight)
        totals = self._totals(key, len(known), codes, weight)
        factor = self._factor(known, totals)
        binary = _problems(rows, codes, weight, factor)
        alpha = self._duals_of_fit(codes, binary) if fitted else None
        stop = begin(self.time_limit)
        if first:  # only now, so that a failed first call changes nothing
            self._begin_stream(known, len(binary))
        batch = self._stream.open(key, len(codes))
        if isinstance(self._stream, SignedStream):
            self._stream.weigh(*self._sides(factor, totals), totals)
        if alpha is not None:
            self._stream.take_up(batch, binary, alpha)
            for name in ("support_", "dual_coef_", "history_"):
                delattr(self, name)
            if not self.penalize_intercept:
                self._stream.w[:, -1] = self.intercept_

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

        stream = self._stream
        totals = stream.classes if isinstance(stream, SignedStream) else []
        factor = self._factor(self.classes_, totals)

        def problems() -> Iterator[tuple[bytes, list[BinaryProblem | None]]]:
            for batch in batches:
                X, y = validated(self, batch[0], batch[1], reset=False)
                weight = check_sample_weight(batch[2] if len(batch) > 2 else None, X)
                codes = _codes(y, self.classes_)
                rows, key = self._rows(X, self.classes_, codes, weight)
                yield key, _problems(rows, codes, weight, factor)

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
        if self._by_sign:
            free = not self.penalize_intercept
            self._stream = SignedStream.signed(width, seeds, free)
        else:
            self._stream = Stream.begin(width, seeds)
        self._note_parameters()
        self._seconds = 0.0

    # -------------------------------------------------------------------- problems

    @property
    def _by_sign(self) -> bool:
        """Whether the sums of negative and positive rows are kept separately."""
        return self.class_weight == "balanced" or not self.penalize_intercept

    def _rows(
        self,
        X: MatrixLike,
        classes: NDArray[np.generic],
        codes: NDArray[np.intp],
        weight: Vector,
    ) -> tuple[BinaryProblem, bytes]:
        """Return the rows of a batch as a problem, and the key of the batch."""
        reduction = OneVsRest(len(classes))
        threads = max(1, effective_n_jobs(self.n_jobs) // len(reduction))
        rows = BinaryProblem(
            X,
            reduction.signs(codes, 0),
            self.C,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            penalize_intercept=self.penalize_intercept,
            n_jobs=threads,
        )
        return rows, key_of(rows, codes, weight)

    def _totals(
        self, key: bytes, classes: int, codes: NDArray[np.intp], weight: Vector
    ) -> list[Fraction]:
        """Return the weight of each class so far, a new batch included."""
        if not self._by_sign:
            return []
        stream = getattr(self, "_stream", None)
        before = [Fraction()] * classes if stream is None else stream.classes
        if stream is not None and key in stream.batches:
            return before
        more = np.bincount(codes, weight, classes).tolist()
        return [old + Fraction(new) for old, new in zip(before, more, strict=True)]

    def _factor(self, classes: NDArray[np.generic], totals: list[Fraction]) -> Vector:
        """Return the class weights; a batch may lack some of the classes."""
        if self.class_weight == "balanced":
            return balanced_factors(np.array(totals, dtype=np.float64))
        return class_factors(self.class_weight, classes, np.ones(len(classes)))

    def _sides(
        self, factor: Vector, totals: list[Fraction]
    ) -> tuple[NDArray[np.float64], Vector]:
        """Return the factors by sign and the total cost of every problem."""
        reduction = OneVsRest(len(factor))
        costs = reduction.costs(list(map(float, totals)), factor.tolist())
        cost = self.C * np.sum(costs, axis=0)
        if self.class_weight != "balanced":  # the costs of a batch never change
            return np.ones((len(reduction), 2)), cost
        if len(factor) == 2:
            return factor[None], cost
        return np.stack([np.ones_like(factor), factor], axis=1), cost

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


def _problems(
    rows: BinaryProblem, codes: NDArray[np.intp], weight: Vector, factor: Vector
) -> list[BinaryProblem | None]:
    """Return the binary problems of a batch; None where all rows have weight 0."""
    reduction = OneVsRest(len(factor))
    binary: list[BinaryProblem | None] = []
    for k in range(len(reduction)):
        cost = reduction.weights(codes, k, weight, factor)
        signs = reduction.signs(codes, k)
        binary.append(rows.with_labels(signs, cost) if cost.any() else None)
    return binary


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

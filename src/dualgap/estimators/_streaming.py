"""partial_fit of LinearSVC, and the proof of what it has learned."""

from __future__ import annotations

import copy
import hashlib
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import _fit_context
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import _check_partial_fit_first_call, unique_labels
from sklearn.utils.validation import _check_sample_weight, validate_data

from .. import core, one_vs_rest
from ..certificate import Bounds, Certificate, Status
from ..losses import Vector
from ..problem import Problem
from ..solvers import DCD, get_solver
from ..solvers.auto import Auto
from ..stream import Stream, key_of
from ._fitting import class_factors, fit_all, one_or_all, refuse_masks

#: Parameters that a stream is about: its dual says nothing when they change.
FIXED = (
    "C", "loss", "fit_intercept", "intercept_scaling", "penalize_intercept",
    "class_weight", "multi_class",
)  # fmt: skip
_TOLD = 20_000  # rows, about, that tell a fit from others


def _learns_in_batches(estimator: Any) -> bool:
    """Whether its parameters let it learn batch by batch; says why not."""
    if _sweeper(estimator.solver) is None:
        raise AttributeError(
            "partial_fit learns by dual coordinate descent: it is there for "
            f"solver='auto' and 'dcd' (shrinking='sleep'), not {estimator.solver!r}"
        )
    if not estimator.penalize_intercept:
        raise AttributeError(
            "partial_fit needs penalize_intercept=True: steps on one row at a time "
            "cannot keep sum_i alpha_i y_i = 0"
        )
    if estimator.multi_class != "ovr":
        raise AttributeError(
            f"multi_class={estimator.multi_class!r} is not supported by partial_fit, "
            "which learns each class against the rest; use multi_class='ovr'"
        )
    if isinstance(estimator.class_weight, str):
        raise AttributeError(
            f"class_weight={estimator.class_weight!r} is not supported by partial_fit, "
            "which does not know how many rows will come; give a dict"
        )
    return True


def _sweeper(solver: Any) -> DCD | None:
    """The sweeps over a batch that a solver stands for; None if there are none."""
    try:
        solver = get_solver(solver)
    except ValueError:  # fit says what is wrong with it
        return None
    if isinstance(solver, Auto):
        return DCD(acceleration="none")
    # Directions across sweeps would need the rows of all batches.
    if isinstance(solver, DCD) and solver.shrinking == "sleep":
        return DCD(acceleration="none", block_sweeps=solver.block_sweeps)
    return None


class StreamingMixin:
    """What LinearSVC has beside ``fit``: ``partial_fit`` and ``certify``."""

    # Set by LinearSVC, by fit and by partial_fit.
    C: Any
    loss: Any
    solver: Any
    tol: Any
    time_limit: Any
    fit_intercept: Any
    intercept_scaling: Any
    penalize_intercept: Any
    class_weight: Any
    random_state: Any
    n_jobs: Any
    verbose: Any
    checkpoint: Any
    n_features_in_: Any
    support_: Any
    dual_coef_: Any
    classes_: Any
    certificate_: Any
    _stream: Stream
    _about: dict[str, Any]
    _seconds: float

    @available_if(_learns_in_batches)  # type: ignore[untyped-decorator]
    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def partial_fit(
        self,
        X: Any,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Any:
        """Learn from one batch of rows, on top of the batches before.

        The problem is that of ``fit`` on the rows of all batches so far, with the same
        C for every row. The batch is swept by dual coordinate descent, a few times
        (``DCD(block_sweeps=...)``); the others are not looked at. With the solvers
        "auto" and "dcd" and a penalised intercept.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows. A batch that came before, row for row, is recognised and gets another
            epoch, its duals going on from where they were. Rows in another order or in
            other batches count as new rows: keep batches as they are to go over
            the data several times.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like of shape (n_classes,), optional
            All classes that will ever come. Needed in the first call.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, zero or positive.

        Returns
        -------
        LinearSVC
            With ``coef_``, ``intercept_``, ``classes_``, ``n_iter_`` (how often the
            batch that came most often has come) and ``certificate_``; without duals by
            row and without a history.

        Raises
        ------
        ValueError
            If `classes` is missing in the first call or differs later, y holds a class
            that is not among them, X has another number of features, or a parameter
            that is part of the problem was changed since the first call. After ``fit``,
            if these are not its rows: it keeps no others.

        See Also
        --------
        certify : Proves what was learned, by one more pass.

        Notes
        -----
        What ``certificate_`` says after a call, per class if there are more than two:

        - ``dual`` is D, at most the least objective over all rows so far, with the
          rounding of the sums that steps have added up. It never falls.
        - ``primal``, the objective of the model over these rows, is not known, for
          they are gone: it is infinite, the status "streamed", and nothing is said
          about how far the model is from the optimum.
        - If there was only one batch it is the whole set: ``primal`` and ``dual`` are
          those of one exact pass over it, as in ``fit``, and the status is
          "certified" if they prove `tol`.

        After ``fit`` a call with the same rows is one more epoch, from its duals.

        It keeps 8 bytes per row and binary problem, the duals, and no rows.
        `tol`, `max_epochs` and `warm_start` have no effect on the steps; `time_limit`
        is that of a call. Ctrl-C ends a call early: the model is whole, the batch
        learned in part, and KeyboardInterrupt is raised.
        """
        sweeper = _sweeper(self.solver)
        assert sweeper is not None
        refuse_masks(X=X, y=y, sample_weight=sample_weight)
        self._check_step()
        first = not hasattr(self, "_stream")
        fitted = first and hasattr(self, "classes_")  # by fit
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc", "coo"],
            dtype=[np.float64, np.float32],
            ensure_all_finite=False,  # Problem looks at every entry once
            reset=first and not fitted,
        )
        begun = time.perf_counter()
        if first and not fitted:
            known = _first_classes(classes)
        else:
            known = self.classes_
            if classes is not None:
                _check_partial_fit_first_call(self, classes)
        codes = _codes(y, known)
        weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        binary, key = self._binary_problems(X, known, codes, weight)
        alpha = self._duals_of_fit(codes, binary) if fitted else None
        stop = core.Stop()
        if self.time_limit is not None:
            stop.set_deadline(self.time_limit)
        if first:  # nothing is kept of a first call that was refused
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

        fit_all(learn, len(binary), n_jobs=self.n_jobs, stop=stop, verbose=self.verbose)
        self._seconds += time.perf_counter() - begun
        alone = len(self._stream.batches) == 1
        self._tell(self._stream.prove([(key, binary)]) if alone else None)
        if stop.requested:
            raise KeyboardInterrupt
        return self

    @available_if(_learns_in_batches)  # type: ignore[untyped-decorator]
    def certify(
        self, batches: Iterable[tuple[Any, ...]]
    ) -> Certificate | list[Certificate]:
        """Prove what `partial_fit` has learned, by one pass over its batches.

        Parameters
        ----------
        batches : iterable of tuples (X, y) or (X, y, sample_weight)
            Every batch that `partial_fit` was given, once and as it was, in any order;
            a :class:`dualgap.io.RowStore` whose blocks they were.

        Returns
        -------
        Certificate or list of Certificate
            ``certificate_`` from now on, one per class if there are more than two:
            ``primal`` is the objective of this model over all rows, ``dual`` the value
            of the duals that are kept, both computed from the rows in float64, so that
            ``dual <= P* <= primal``. The status is "certified" if they prove `tol`,
            else "streamed".

        Raises
        ------
        ValueError
            If a batch is not one of those, comes twice, or is left out, or the model
            was not learned by `partial_fit`: use :func:`dualgap.certify` then.
        """
        if not hasattr(self, "_stream"):
            raise ValueError(
                "this model was not learned by partial_fit; use "
                "dualgap.certify(model, X, y)"
            )
        self._check_unchanged()

        def problems() -> Any:
            for batch in batches:
                X, y = validate_data(
                    self,
                    batch[0],
                    batch[1],
                    accept_sparse=["csr", "csc", "coo"],
                    dtype=[np.float64, np.float32],
                    ensure_all_finite=False,
                    reset=False,
                )
                weight = _check_sample_weight(
                    batch[2] if len(batch) > 2 else None, X, dtype=np.float64,
                    ensure_non_negative=True,
                )  # fmt: skip
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
                "checkpoint is for fit: between two calls of partial_fit the estimator "
                "can be pickled; set checkpoint=None"
            )
        if hasattr(self, "_skl_callbacks"):
            raise ValueError(
                "partial_fit tells no callbacks, for a call is one step; remove them "
                "with set_callbacks()"
            )
        if hasattr(self, "_stream"):
            self._check_unchanged()

    def _check_unchanged(self) -> None:
        for name, value in self._about.items():
            if getattr(self, name) != value:
                raise ValueError(
                    f"{name} was {value!r} when partial_fit was first called and is "
                    f"{getattr(self, name)!r} now, which is another problem; set it "
                    "back, or begin with a clone of this estimator"
                )

    def _duals_of_fit(
        self, codes: NDArray[np.intp], binary: list[Problem | None]
    ) -> NDArray[np.float64]:
        """Where `fit` left the duals of these rows, shape (problems, n)."""
        told = getattr(self, "_fit_rows", None)
        if told is None or told != rows_of_fit(codes, binary[0]):
            raise ValueError(
                "the rows that fit has learned from are not kept, so partial_fit goes "
                "on with these rows, in their order, or not at all; give them, or call "
                "it on a clone of this estimator"
            )
        alpha = np.zeros((len(binary), len(codes)))
        alpha[:, self.support_] = np.abs(self.dual_coef_)
        return alpha

    def _begin_stream(self, classes: NDArray[Any], problems: int) -> None:
        self.classes_ = classes
        seeds = check_random_state(self.random_state).randint(2**31 - 1, size=problems)
        width = self.n_features_in_ + bool(self.fit_intercept)
        self._stream = Stream.begin(width, seeds)
        self._about = {name: copy.copy(getattr(self, name)) for name in FIXED}
        self._seconds = 0.0

    # -------------------------------------------------------------------- problems

    def _binary_problems(
        self,
        X: Any,
        classes: NDArray[Any],
        codes: NDArray[np.intp],
        weight: Vector,
    ) -> tuple[list[Problem | None], bytes]:
        """The binary problems of a batch, and what tells it from others.

        A problem is None where none of its rows has a weight.
        """
        positive = one_vs_rest.positives(len(classes))
        factors = class_factors(
            self.class_weight, classes, np.ones(len(classes))
        )  # all classes count, whichever this batch has
        threads = max(1, effective_n_jobs(self.n_jobs) // len(positive))
        rows = Problem(
            X,
            one_vs_rest.signs(codes, positive[0]),
            self.C,
            loss=self.loss,
            fit_intercept=self.fit_intercept,
            intercept_scaling=self.intercept_scaling,
            n_jobs=threads,
        )
        binary: list[Problem | None] = []
        for k in positive:
            cost = one_vs_rest.weights(codes, k, weight, factors)
            signs = one_vs_rest.signs(codes, k)
            binary.append(rows.with_labels(signs, cost) if cost.any() else None)
        return binary, key_of(rows, codes, weight)

    def _tell(self, values: list[Bounds] | None) -> None:
        """Set the attributes: with the proved values, or with D alone."""
        stream, constant = self._stream, self.intercept_scaling
        d = self.n_features_in_
        self.coef_ = stream.w[:, :d].copy()
        self.intercept_ = (
            constant * stream.w[:, d] if self.fit_intercept else np.zeros(len(stream.w))
        )
        certificates = []
        for k in range(len(stream.w)):
            bounds = stream.dual(k) if values is None else values[k]
            proof = bounds.certificate
            proved = proof.relative_gap <= self.tol
            certificates.append(
                replace(
                    proof,
                    epochs=stream.passes,
                    updates=stream.updates[k],
                    seconds=self._seconds,
                    status=Status.CERTIFIED if proved else Status.STREAMED,
                    solver="dcd",
                    tol=self.tol,
                )
            )
        self.n_iter_ = stream.passes
        self.certificate_ = one_or_all(certificates)

    def _forget_stream(self) -> None:
        """Begin anew: what fit learns is no stream."""
        for name in ("_stream", "_about", "_seconds", "_fit_rows"):
            self.__dict__.pop(name, None)


def rows_of_fit(codes: NDArray[np.intp], rows: Problem | None) -> str | None:
    """What tells the rows of a fit from others: labels and norms of some, sums of all.

    A dual point is feasible for any rows: at worst it is a poor one to go on from.
    """
    if rows is None or not rows.all_read:
        return None
    every = len(codes) // _TOLD + 1
    sums = len(codes), int(codes.sum()), float(rows.q.sum())
    found = hashlib.sha256(repr(sums).encode())
    found.update(np.ascontiguousarray(codes[::every]).view(np.uint8).data)
    found.update(np.ascontiguousarray(rows.q[::every]).view(np.uint8).data)
    return found.hexdigest()


def _first_classes(classes: ArrayLike | None) -> NDArray[Any]:
    if classes is None:  # as scikit-learn has it
        raise ValueError("classes must be passed on the first call to partial_fit.")
    found = unique_labels(classes)
    if len(found) < 2:
        raise ValueError(
            "The number of classes has to be greater than one; got "
            f"{len(found)} class in classes"
        )
    return found


def _codes(y: Any, classes: NDArray[Any]) -> NDArray[np.intp]:
    """Places of the labels among the classes."""
    unknown = np.setdiff1d(y, classes)
    if len(unknown):
        raise ValueError(
            f"y holds the label(s) {unknown.tolist()}, which are not among the classes "
            f"{classes.tolist()} of the first call to partial_fit"
        )
    return np.searchsorted(classes, y)

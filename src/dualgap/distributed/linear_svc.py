"""Linear support vector classification on a Dask cluster."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, clone
from sklearn.linear_model._base import SparseCoefMixin
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from ..data.types import Parameters
from ..estimators.base import DUALS, Estimator, is_silent
from ..estimators.input import TrainingData, checked, labelled
from ..estimators.linear_svc import LinearSVC
from ..estimators.parameters import (
    ClassWeight,
    Count,
    Flag,
    LossLike,
    Positive,
    ProbabilityHints,
)
from ..losses import get_loss
from ..problems.constant import constant_sentence
from ..problems.reductions import refuse_missing, weights_of_rows
from ..training.batch import Job, begin
from ..training.solution import Solutions
from .cocoa import ROUND_DTYPE, CoCoA, PiecesBatch
from .collections import blocks, have_their_own, is_dask
from .piece import Census, Setup
from .stores import count_right, holds_stores, in_batches, of_rows, of_store, see

if TYPE_CHECKING:
    from dask.array import Array as DaskArray
    from distributed import Client

    from .cluster import Cluster


@dataclass(eq=False, repr=False)
class DistributedLinearSVC(
    ProbabilityHints, ClassifierMixin, SparseCoefMixin, Estimator[PiecesBatch]
):
    """Linear support vector classifier on a Dask cluster, with a certificate.

    It has the model, the objective and the certificate of :class:`dualgap.LinearSVC`.
    CoCoA+ trains it over partitions of the rows, called pieces, that stay on their
    workers. The class is available as ``dualgap.distributed.LinearSVC``.

    Parameters
    ----------
    C, loss, tol, atol, time_limit, fit_intercept, intercept_scaling, class_weight
        As in :class:`dualgap.LinearSVC`.
    multi_class : {"ovr", "ovo"}, default="ovr"
        One versus the rest or one versus one, as in :class:`dualgap.LinearSVC`. One
        versus one, a piece keeps all its rows; rows of other classes have weight 0.
    max_rounds : int, default=10000
        Largest number of rounds of communication.
    n_pieces : int, optional
        Number of pieces, made by joining neighbouring blocks of the data. None makes
        one per thread of the workers. Fewer pieces need fewer rounds. Pieces given as a
        list are not changed.
    local_epochs : int, "auto", "measured" or sequence of int, default="auto"
        Number of epochs that a piece makes per round; a sequence gives one number per
        round. "auto" and "measured" balance computation and communication: "auto" by
        counted costs, so that the fit is reproducible, "measured" by the times of this
        fit. The numbers used are in ``rounds_["local_epochs"]``; passing them again
        gives the same result bit for bit.
    safe_every : int, optional
        Number of rounds between two safe points, at which the dual variables of every
        piece are copied to another worker. None balances their traffic with the
        traffic of the rounds.
    patience : float, default=5.0
        A round continues without workers that take this many times as long as a usual
        round, and at least 10 seconds.
    keep_duals : bool, default=False
        Whether to set `dual_coef_`.
    random_state : int, default=0
        Seed of the order of the rows.
    client : distributed.Client, optional
        Client of the cluster. None uses the current client of this process or, if there
        is none, a temporary LocalCluster of single-threaded processes.
    verbose : int, default=0
        1 logs each class, 2 also each round, to the logger "dualgap".

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_problems, n_features), float64
        Weights of the features: one row per class or, one versus one, per pair of
        classes. Two classes have one row.
    intercept_ : ndarray of shape (1,) or (n_problems,), float64
        Constants of the decision function; 0 without an intercept.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted.
    n_iter_ : int
        Number of rounds, the maximum over all classes.
    n_pieces_ : int
        Number of pieces.
    certificate_ : Certificate
        As in :class:`dualgap.LinearSVC`; its epochs are rounds.
    history_ : structured ndarray or list of structured ndarray
        As in :class:`dualgap.LinearSVC`, with one record per round.
    rounds_ : structured ndarray
        One record per round, for all classes together: round, problems (number of
        classes or pairs that took part), local_epochs, gamma (the smallest fraction of
        a step that was taken), ratio (the largest
        ``||sum A b_k||^2/sum ||A b_k||^2``), seconds, computing (seconds of the slowest
        piece), bytes (of the updates that were sent), late and lost (pieces).
    recoveries_ : int
        Number of times that lost dual variables were restored.
    dual_coef_ : ndarray of shape (n_problems, n_rows), float64
        ``y_i alpha_i`` of the rows, in their order; only with `keep_duals`. Its dual
        value is at least ``certificate_.dual``.

    See Also
    --------
    dualgap.LinearSVC : The same model on one machine, with a choice of solvers.

    Notes
    -----
    For given data and parameters the result depends only on the pieces and on
    `random_state`, and is reproducible bit for bit. Exceptions are lost or late workers
    (see ``rounds_``) and ``local_epochs="measured"``.

    References
    ----------
    .. [1] C. Ma, V. Smith, M. Jaggi, M. Jordan, P. Richtarik, M. Takac, "Adding vs.
       averaging in distributed primal-dual optimization", ICML 2015.
    """

    C: Positive = 1.0
    _: KW_ONLY
    loss: LossLike = "squared_hinge"
    max_rounds: Count = 10_000
    fit_intercept: Flag = True
    intercept_scaling: Positive = 1.0
    class_weight: ClassWeight = None
    multi_class: Literal["ovr", "ovo"] = "ovr"
    n_pieces: Count | None = None
    local_epochs: Annotated[  # CoCoA validates it
        int | Literal["auto", "measured"] | Sequence[int], "no_validation"
    ] = "auto"
    safe_every: Count | None = None
    patience: Annotated[float, Interval(Real, 1, None, closed="neither")] = 5.0
    keep_duals: Flag = False
    random_state: Annotated[int, Interval(Integral, 0, None, closed="left")] = 0
    client: Annotated[object, "no_validation"] = None
    max_iter: int = field(default=1, init=False)  # rounds, here
    n_jobs: None = field(default=None, init=False)

    def __sklearn_clone__(self) -> DistributedLinearSVC:
        """Clone this estimator; the clone shares the client."""
        given = self.get_params(deep=False)
        client = given.pop("client")
        copies = {name: clone(value, safe=False) for name, value in given.items()}
        return type(self)(**copies, client=client)

    def __deepcopy__(self, memo: dict[int, object]) -> DistributedLinearSVC:
        memo[id(self.client)] = self.client  # as of a clone
        return super().__deepcopy__(memo)

    def __getstate__(self) -> Parameters:
        duals = {name: vars(self)[name] for name in DUALS if name in vars(self)}
        return {**super().__getstate__(), **duals, "client": None}

    def fit(
        self,
        X: DaskArray,
        y: DaskArray | None = None,
        sample_weight: DaskArray | None = None,
    ) -> DistributedLinearSVC:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        X : Dask array or dataframe, RowStore, or list of stores or pieces
            Training rows, as one of:

            - a Dask array or dataframe with dense or sparse blocks;
            - a list of row stores or of their paths, each of which is a piece that its
              worker maps into memory;
            - a single row store, which is cut into pieces;
            - a list of pieces ``(X, y)`` or ``(X, y, sample_weight)``. A piece, or each
              part of it, may be delayed or a future. Data that a worker opens itself,
              stores included, are used in place;
            - a NumPy array or a SciPy matrix, which is cut into pieces and sent.
        y : Dask array or series, or array-like
            Class labels; None if X is a store or a list.
        sample_weight : Dask array or series, or array-like, optional
            Factors of C, zero or positive.

        Raises
        ------
        dualgap.distributed.ClusterError
            If the cluster, or the data on it, are lost.
        """
        return self._fit(X, y, sample_weight)

    @checked
    def _fit(
        self,
        X: DaskArray,
        y: DaskArray | None = None,
        sample_weight: DaskArray | None = None,
        **options: object,
    ) -> DistributedLinearSVC:
        from .cluster import Cluster

        CoCoA(local_epochs=self.local_epochs)
        stop, begun = begin(self.time_limit), time.monotonic()
        with _cluster_of(self.client) as client:
            count = self.n_pieces or max(sum(client.nthreads().values()), 1)
            cluster = Cluster(
                client,
                blocks(X, y, sample_weight, count),
                stop=stop,
                deadline=begun + (self.time_limit or math.inf),
                safe_every=self.safe_every,
                patience=self.patience,
            )
            with contextlib.closing(cluster):
                return super()._fit(cluster, stop=stop)

    def _read(self, X: Cluster, y: object, sample_weight: object) -> TrainingData:
        _check_alike(X.census)
        told = [piece for piece in X.census if piece.rows]
        labels = np.concatenate([piece.labels for piece in told])
        weight = np.concatenate([piece.weights for piece in told])
        data = labelled(self.class_weight, labels[:, None], labels, weight)
        self.n_features_in_ = X.census[0].width
        return replace(data, X=X)

    def _batch(self, data: TrainingData, job: Job) -> PiecesBatch:
        cluster, classes = data.X, data.classes
        if self.multi_class == "ovo":
            own = weights_of_rows(data.codes, data.weight, data.factor)
            refuse_missing(classes, np.bincount(data.codes, own))
        setup = Setup(
            classes, data.factor, self.C, get_loss(self.loss), self.fit_intercept,
            self.intercept_scaling, int(self.random_state), self.multi_class,
        )  # fmt: skip
        cluster.begin(setup)
        return PiecesBatch(cluster, data.codes, data.weight)

    def _solver(self, batch: PiecesBatch, job: Job) -> CoCoA:
        job.max_iter, job.threads = self.max_rounds, len(batch)  # rounds are shared
        return CoCoA(local_epochs=self.local_epochs)

    def _keep(self, data: TrainingData, batch: PiecesBatch, found: Solutions) -> None:
        cluster = data.X
        self.classes_, (self.coef_, self.intercept_) = data.classes, batch.coef(found.w)
        self.n_pieces_, self.recoveries_ = cluster.count, cluster.recoveries
        self.rounds_ = np.array(batch.rounds.records, dtype=ROUND_DTYPE)
        if self.keep_duals:
            self.dual_coef_ = cluster.signed_duals()

    def _chance(self, batch: PiecesBatch, found: Solutions) -> str:
        if is_silent():
            return ""
        return constant_sentence(
            batch, found.w, found.bounds, self.tol, self.atol, self.class_weight
        )

    def decision_function(self, X: DaskArray) -> DaskArray | NDArray[np.generic]:
        """Return decision scores: positive for the second class, or one per class.

        Parameters
        ----------
        X : Dask array or dataframe, RowStore, list of stores, array-like or matrix
            Rows.

        Returns
        -------
        Dask array or ndarray of shape (n,) or (n, n_classes)
            A lazy Dask array if X is a Dask collection or consists of stores.
        """
        return self._of(X, "decision_function")

    def predict(self, X: DaskArray) -> DaskArray | NDArray[np.generic]:
        """Predict the class labels of rows.

        Parameters
        ----------
        X : Dask array or dataframe, RowStore, list of stores, array-like or matrix
            Rows.

        Returns
        -------
        Dask array or ndarray of shape (n,)
            A lazy Dask array if X is a Dask collection or consists of stores.
        """
        return self._of(X, "predict")

    def score(
        self,
        X: DaskArray,
        y: DaskArray | None = None,
        sample_weight: DaskArray | None = None,
    ) -> float:
        """Return the accuracy: the fraction of rows whose class is predicted correctly.

        Parameters
        ----------
        X : Dask array or dataframe, RowStore, list of stores, array-like or matrix
            Rows.
        y : same type as X
            Classes; None for stores, which contain labels and weights.
        sample_weight : same type as X, optional
            Weights of the rows in the mean.

        Returns
        -------
        float
            Accuracy, from 0 to 1.

        Raises
        ------
        ValueError
            If y is missing and X is not a store, or given and X is a store.
        """
        if holds_stores(X):
            have_their_own("stores, which have their", y, sample_weight)
            return self._score_stores(X)
        if y is None:
            raise ValueError("y is missing; only row stores contain labels")
        if not is_dask(X):
            return self._alone.score(X, y, sample_weight)
        import dask
        import dask.array as da

        right = self.predict(X) == _values(y)
        weight = da.ones_like(right)
        if sample_weight is not None:
            weight = da.asarray(_values(sample_weight))
        total, whole = dask.compute((right * weight).sum(), weight.sum())
        return float(total / whole)

    @property
    def _alone(self) -> LinearSVC:
        """Make the model in memory that workers get for prediction."""
        check_is_fitted(self)
        alone = LinearSVC(multi_class=self._as_fitted.multi_class)
        for name in ("n_features_in_", "classes_", "coef_", "intercept_"):
            setattr(alone, name, getattr(self, name))
        return alone

    def _of(self, X: DaskArray, method: str) -> DaskArray | NDArray[np.generic]:
        """Return what a method of the model in memory returns, lazily from workers."""
        alone = self._alone
        if not holds_stores(X) and not is_dask(X):
            found: NDArray[np.generic] = getattr(alone, method)(X)
            return found
        import dask
        import dask.array as da

        like = of_rows(np.empty((0, self.n_features_in_)), alone, method)
        if holds_stores(X):
            task, model = dask.delayed(of_store, pure=False), dask.delayed(alone)
            parts = [
                da.from_delayed(
                    task(part, model, method),
                    (part.rows, *like.shape[1:]),
                    like.dtype,
                )
                for part in in_batches(X)
            ]
            return da.concatenate(parts, allow_unknown_chunksizes=True)
        X = X.to_dask_array() if hasattr(X, "map_partitions") else X
        if X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but LinearSVC is expecting "
                f"{self.n_features_in_} features as input"
            )
        X = X.rechunk({1: -1})
        return X.map_blocks(
            of_rows, alone, method, dtype=like.dtype, meta=like,
            chunks=(X.chunks[0], *[(size,) for size in like.shape[1:]]),
            drop_axis=[] if like.ndim == 2 else [1],
        )  # fmt: skip

    def _score_stores(self, X: DaskArray) -> float:
        alone = self._alone
        with _cluster_of(self.client) as client:
            client.wait_for_workers(1)
            asked = [
                client.submit(
                    count_right, part, alone, pure=False,
                    workers=None if hosts is None else sorted(hosts),
                )
                for part, hosts in see(client, in_batches(X))
            ]  # fmt: skip
            counts = np.array(client.gather(asked))
        right, whole = counts.sum(axis=0)
        return float(right / whole)


def _values(part: DaskArray) -> DaskArray:
    return part.values if hasattr(part, "map_partitions") else part


def _check_alike(census: Sequence[Census]) -> None:
    """Refuse pieces whose columns or labels have different meanings; name two."""

    def name(k: int) -> str:
        return census[k].name or f"piece {k}"

    widths = [found.width for found in census]
    if min(widths) < max(widths):
        low, high = int(np.argmin(widths)), int(np.argmax(widths))
        remedy = ""
        if census[low].name:
            remedy = f"; convert the stores again with n_features={max(widths)}"
        raise ValueError(
            f"the pieces of X have {min(widths)} to {max(widths)} columns ({name(low)} "
            f"and {name(high)}), but must have the same columns{remedy}"
        )
    origins = [found.zero_based for found in census]
    if len(set(origins)) > 1:
        raise ValueError(
            f"column 0 is feature 0 in {name(origins.index(True))}, but feature 1 in "
            f"{name(origins.index(False))}; convert the stores again, all with "
            "zero_based=True or all with zero_based=False"
        )
    kinds = [set(found.labels.tolist()) for found in census if found.name]
    pairs = [kinds.index({a, 1}) if {a, 1} in kinds else -1 for a in (-1, 0)]
    if min(pairs) >= 0 and {-1, 0, 1} not in kinds:
        own = [k for k, found in enumerate(census) if found.name]
        raise ValueError(
            f"the labels are -1 and 1 in {name(own[pairs[0]])}, but 0 and 1 in "
            f"{name(own[pairs[1]])}; convert the stores again with the same two labels "
            "or, if there are three classes, with all of them in one store"
        )


@contextlib.contextmanager
def _cluster_of(client: Client | None) -> Iterator[Client]:
    """Yield the given client, the current one, or one of a temporary LocalCluster."""
    from distributed import Client, LocalCluster, default_client

    if client is None:
        with contextlib.suppress(ValueError):
            client = default_client()
    if client is not None:
        yield client
        return
    with (
        LocalCluster(threads_per_worker=1, processes=True, dashboard_address=":0") as c,
        Client(c) as own,
    ):
        yield own

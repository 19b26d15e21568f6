"""The one fit of all estimators, its warnings, and models inside other models."""

from __future__ import annotations

import contextlib
import copy
import math
import os
import sys
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils.metaestimators import available_if

from .. import core
from ..certificate import Certificate, Status
from ..checks import check_constant
from ..data.types import MatrixLike
from ..data.types import Parameters as Values
from ..kernels.functions import refuse_items
from ..losses import Vector
from ..names import own_version
from ..problems.batch import Batch
from ..problems.constant import DegenerateWarning
from ..problems.duals import Table
from ..solvers import Solver
from ..training.batch import (
    Job,
    OnEpoch,
    Start,
    Tasks,
    begin,
    check_warm,
    seeds_of,
    solve_batch,
)
from ..training.hard_margin import solve_hard_margin
from ..training.solution import Solution, Solutions
from .callbacks import CallbackSupportMixin, FitTasks, Fitted
from .hard_margin import softened
from .input import FirstModel, TrainingData, checked
from .parameters import (
    Count,
    Jobs,
    NonNegative,
    ParameterHints,
    Positive,
    Seed,
    Verbose,
)

if TYPE_CHECKING:
    from sklearn.utils._repr_html.estimator import _VisualBlock
    from sklearn.utils._repr_html.params import ParamsDict
    from typing_extensions import Self

#: Kind of batch that an estimator trains.
B = TypeVar("B", bound=Batch)

#: Parameters that define the problems. A fitted model keeps them as its fit had them.
DEFINING = frozenset(
    (
        "C", "class_weight", "coef0", "degree", "epsilon", "fit_intercept", "gamma",
        "intercept_scaling", "kernel", "l1_ratio", "loss", "multi_class", "nu",
        "penalize_intercept", "penalty", "quantile", "solver",
    )
)  # fmt: skip
_CONTAINERS = dict, list, np.ndarray


def _alone(model: BaseEstimator) -> bool:
    """Whether a model has a certificate to show, and no other model inside."""
    return hasattr(model, "certificate_") and not hasattr(model, "estimator")


class CertificateHTMLMixin(BaseEstimator):
    """Mixin that adds the certificate to scikit-learn's HTML, in pipelines too.

    Its sentence stands below the name of the estimator, and its table is folded like
    the table of the parameters.
    """

    @available_if(_alone)
    def _sk_visual_block_(self) -> _VisualBlock:
        # In scikit-learn 1.6 this import fails, and the estimator has no such sentence.
        from sklearn.utils._repr_html.estimator import _VisualBlock

        return _VisualBlock(
            "single",
            self,
            names=type(self).__name__,
            name_details=str(self),
            name_caption=self.certificate_.message,
        )

    def _get_params_html(self, *args: object, **options: object) -> ParamsDict:
        params = super()._get_params_html(*args, **options)
        if hasattr(self, "certificate_"):
            inner = params._repr_html_inner() + self.certificate_._repr_html_()
            params._repr_html_inner = lambda: inner
        return params


@dataclass(eq=False, repr=False)
class Parameters(ParameterHints, CertificateHTMLMixin, BaseEstimator):
    """Base of estimators and searches: the parameters that all of them have.

    Parameters
    ----------
    tol : float, default=1e-3
        Relative duality gap ``(P - D)/D`` to prove, for each problem if there are
        several. The objective is then within a factor ``1 + tol`` of the optimum.
    atol : float, default=0.0
        Duality gap ``P - D`` to prove, for each problem, in units of the objective
        below; 0 leaves it out. `fit` ends once `tol` or `atol` is proved. For an
        accuracy eps of the objective with lambda = 1/(n C) instead of C, ``lambda/2
        ||w||^2`` plus the mean loss, set ``atol = eps/lambda``.
    max_iter : int, default=10000
        Largest number of epochs, for each problem.
    time_limit : float, optional
        Seconds for the whole fit, all problems together. A problem without a proof by
        then gets as long again for one.
    random_state : int, RandomState instance or None, default=0
        Seed of the order of the rows. The same int gives the same model, bit for bit,
        for the same `n_jobs`. None draws a new seed for every fit.
    n_jobs : int, optional
        Number of threads. They share the problems; additional threads share the rows of
        a problem. None means 1 unless :func:`joblib.parallel_config` sets another
        number; -1 uses all processors.
    verbose : int, default=0
        1 logs each problem, 2 also each epoch, to the logger "dualgap" and, if the
        program has no log handler, to standard output.

    Attributes
    ----------
    n_features_in_ : int
        Number of features seen by fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X has column names that are all strings.
    """

    _: KW_ONLY
    tol: Positive = 1e-3
    atol: NonNegative = 0.0
    max_iter: Count = 10_000
    time_limit: Positive | None = None
    random_state: Seed = 0
    n_jobs: Jobs = None
    verbose: Verbose = 0

    def __getstate__(self) -> Values:
        state: Values = {**super().__getstate__(), "_dualgap_version": own_version()}
        if "coef_" in state and not state.get("warm_start"):
            for name in DUALS:
                state.pop(name, None)
        return state

    def __copy__(self) -> Self:
        new = type(self).__new__(type(self))
        new.__dict__.update(vars(self))
        return new

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        new = memo[id(self)] = type(self).__new__(type(self))
        new.__dict__.update(copy.deepcopy(vars(self), memo))
        return new

    def __setstate__(self, state: Values) -> None:
        written = state.get("_dualgap_version", "an unknown version")
        if written != own_version():
            tell(
                f"this {type(self).__name__} was pickled by dualgap {written}, but "
                f"dualgap {own_version()} is running: attributes may have changed "
                "their meaning. Use files of save_model",
                UserWarning,
            )
        kept = {k: value for k, value in state.items() if k != "_dualgap_version"}
        super().__setstate__(kept)

    @property
    def _threads(self) -> int:
        return max(1, int(effective_n_jobs(self.n_jobs)))

    def _seeds(self, count: int) -> Sequence[int]:
        """Return the seeds of several problems."""
        return seeds_of(self.random_state, count)

    def _job(
        self,
        stop: core.Stop,
        threads: int | None = None,
        on_epoch: OnEpoch | None = None,
    ) -> Job:
        """Return the limits of a fit; `threads` share its problems."""
        file = getattr(self, "checkpoint", None)
        return Job(
            self.tol,
            self.atol,
            self.max_iter,
            stop,
            (),
            self._threads if threads is None else threads,
            self.verbose,
            on_epoch,
            Tasks(),
            None if file is None else os.fspath(file),
            getattr(self, "checkpoint_every", 60.0),
        )


@dataclass(eq=False, repr=False)
class Estimator(CallbackSupportMixin, Parameters, Generic[B]):
    """Base of all estimators that train the problems of one batch.

    An estimator says which problems its rows make (`_batch`), and keeps the solutions
    (`_keep`).

    Attributes
    ----------
    n_iter_ : int
        Number of epochs, the maximum over all problems.
    certificate_ : Certificate
        Proven bound on the distance from the optimum. With several problems it is about
        the sum of their objectives, and ``certificate_.parts`` has one for each.
    history_ : structured ndarray or list of structured ndarray
        One record per epoch, and one for a final exact pass. A list, with one array per
        problem, if there are several.
    """

    if TYPE_CHECKING:
        certificate_: Certificate = field(init=False)
        history_: NDArray[np.void] | list[NDArray[np.void]] = field(init=False)
        n_iter_: int = field(init=False)
        n_features_in_: int = field(init=False)

    def fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Train the model and prove its accuracy.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows; with a precomputed kernel, the kernel matrix of shape
            (n_samples, n_samples).
        y : array-like of shape (n_samples,)
            Class labels, numbers or strings; targets of a regression. Novelty detectors
            ignore it.
        sample_weight : array-like of shape (n_samples,), optional
            Factors of C, or weights of the rows, zero or positive: the integer k counts
            like k equal rows.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ValueError
            If a parameter or an argument is invalid, X or y contains NaN or infinite
            values, a class or the whole fit has no row with a positive weight, a warm
            start does not match the data, a kernel matrix is not positive
            semidefinite, or no model separates the rows with C=inf.

        Warns
        -----
        ConvergenceWarning
            If neither `tol` nor `atol` was proved. The message tells what was.
        DegenerateWarning
            If rounding decides predictions, because a constant model is optimal, or all
            rows lie on the boundary of a novelty detector; or if a penalised bias keeps
            predictions far from their quantile.
        """
        return self._fit(X, y, sample_weight)

    @checked
    def _fit(
        self,
        X: MatrixLike,
        y: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        *,
        on_epoch: OnEpoch | None = None,
        stop: core.Stop | None = None,
        first: FirstModel = (None, None),
    ) -> Self:
        """Fit, and call on_epoch(label, EpochInfo), which may return True to stop.

        A given `stop` belongs to a longer job; its deadline replaces `time_limit`.
        `first`: `coef_init` and `intercept_init`.
        """
        stop = begin(self.time_limit) if stop is None else stop
        data = self._read(X, y, sample_weight)
        job = self._job(stop, on_epoch=on_epoch)
        hard = getattr(self, "C", 1.0) == math.inf
        model, own = softened(self, data) if hard else (self, data)
        batch, solver = model._problems(own, job)
        if all(given is None for given in first):
            warm = self._warm(batch, solver)
        else:
            warm = self._begin_at(batch, solver, job, first, "coef_init")
        job.tasks = self._tasks(data, batch, stop)
        if hard:
            found = solve_hard_margin(batch, solver, job, warm)
        else:
            found = solve_batch(batch, solver, job, warm, warm is None)
        self._keep(data, batch, found)
        self._note_parameters()
        self.certificate_, self.n_iter_ = found.certificate, found.epochs
        histories = found.histories
        self.history_ = histories if len(histories) > 1 else histories[0]
        job.tasks.end()
        warn_of_failures(name := type(self).__name__, self.certificate_, batch.several)
        if not hard and (chance := self._chance(batch, found)):
            tell(f"{name}: {chance}", DegenerateWarning)
        return self

    @abstractmethod
    def _read(
        self, X: MatrixLike, y: ArrayLike | None, sample_weight: ArrayLike | None
    ) -> TrainingData:
        """Return the training data, after checking them and the parameters."""

    def _problems(self, data: TrainingData, job: Job) -> tuple[B, Solver]:
        """Return the problems of these data and their solver, for this job."""
        batch = self._batch(data, job)
        solver = self._solver(batch, job)
        job.seeds, job.unproved = self._seeds(len(batch)), self._unproved(batch, solver)
        return batch, solver

    @abstractmethod
    def _batch(self, data: TrainingData, job: Job) -> B:
        """Return the problems of these data; a job's stop ends what takes long."""

    @abstractmethod
    def _solver(self, batch: B, job: Job) -> Solver:
        """Return the solver of the problems."""

    def _warm(self, batch: B, solver: Solver) -> Start | None:
        """Return what gives the dual variables to start from; None for a cold start."""
        if not getattr(self, "warm_start", False):
            return None
        check_warm(batch, solver)
        if hasattr(self, "_stream"):  # of partial_fit, which keeps them itself
            return None
        need_duals(self, "warm_start=True")
        if not hasattr(self, "dual_coef_"):
            return None
        table, before = self._previous_duals(batch), vars(self)["_fitted"].get("C", 1.0)
        return lambda k, problem: batch.begin(k, problem, before, batch.duals(table, k))

    def _begin_at(
        self, batch: B, solver: Solver, job: Job, first: FirstModel, name: str
    ) -> Start | None:
        """Return what gives the models to start from, or let the solver know them.

        `name`: what `first` is, for messages.
        """
        raise NotImplementedError

    def _previous_duals(self, batch: B) -> Table:
        """Return ``dual_coef_`` of all rows of the previous fit.

        Raises ValueError if these data do not match it.
        """
        raise NotImplementedError

    def _unproved(self, batch: B, solver: Solver) -> Callable[[int], Solution] | None:
        """Return what trains a problem without a proof, if the parameters allow it."""
        return None

    @abstractmethod
    def _keep(self, data: TrainingData, batch: B, found: Solutions) -> None:
        """Set the attributes of the model."""

    def _chance(self, batch: B, found: Solutions) -> str:
        """Return a sentence if rounding decides predictions, with a remedy."""
        return ""

    def _attributes(
        self, data: TrainingData, batch: B, models: Sequence[Vector]
    ) -> Fitted:
        """Return the attributes with which models predict."""
        raise NotImplementedError

    def _note_parameters(self) -> None:
        """Keep the parameters of this fit; containers may change and are copied."""
        own = vars(self).items()
        self._fitted = {
            name: copy.copy(value) if isinstance(value, _CONTAINERS) else value
            for name, value in own
            if name in DEFINING
        }

    @property
    def _as_fitted(self) -> Self:
        """The model itself, or a copy of it with the parameters that its fit had.

        Everything that a fitted model tells reads them here: `set_params` is about the
        next fit.
        """
        own = vars(self)
        fitted: Values = own.get("_fitted", {})
        for name, value in fitted.items():  # in half the time of `all`
            if own[name] is not value:
                model = copy.copy(self)
                model.__dict__.update(fitted)
                return model
        return self

    @property
    def _constant(self) -> float:
        """Value of the constant feature of a linear model; 0 for none."""
        if not hasattr(self, "intercept_scaling"):
            return 0.0
        return check_constant(self.fit_intercept, self.intercept_scaling)

    def _seen(
        self, X: MatrixLike, y: ArrayLike
    ) -> tuple[MatrixLike, NDArray[np.generic], Values]:
        """Return checked rows and labels, and the attributes about their features."""
        own = clone(self)
        data = own._read(X, y, None)
        if data.items is not None:
            refuse_items(type(self).__name__)
        rows = data.X.tocsr() if hasattr(data.X, "tocsr") else data.X
        seen = {k: v for k, v in vars(own).items() if k.endswith("_in_")}
        return rows, data.y, seen

    def _tasks(self, data: TrainingData, batch: B, stop: core.Stop) -> Tasks:
        """Return the tasks of scikit-learn's callbacks, if there are any."""
        if not (
            hasattr(self, "_skl_callbacks") or hasattr(self, "_parent_callback_ctx")
        ):
            return Tasks()
        weight = data.sample_weight
        metadata = None if weight is None else {"sample_weight": weight}
        told = {"X": data.X, "y": data.y, "metadata": metadata}

        def attributes(models: Sequence[Vector]) -> Fitted:
            return self._attributes(data, batch, models)

        return FitTasks(self, told, batch, stop, attributes)


#: An estimator of any kind of batch.
Model: TypeAlias = Estimator[Any]


#: Attributes that pickles of linear models leave out: they grow with the rows.
DUALS = ("support_", "dual_coef_")


def need_duals(model: BaseEstimator, what: str) -> None:
    """Raise an error if a fitted linear model has no dual variables."""
    if hasattr(model, "coef_") and not hasattr(model, "dual_coef_"):
        raise ValueError(
            f"{what}: the model has no dual variables, which pickles and model files "
            "leave out; fit it again, pickle it with warm_start=True, or save it with "
            "duals=True"
        )


# ------------------------------------------------------------------------- warnings

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep
_OWN = (_PACKAGE, os.path.join("sklearn", "base.py"))


def tell(message: str, category: type[Warning] = ConvergenceWarning) -> None:
    """Warn at the line that called the package."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and any(
        own in frame.f_code.co_filename for own in _OWN
    ):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


# Unlike a filter of warnings it touches no other thread.
_SILENT: ContextVar[bool] = ContextVar("silent_failures", default=False)


@contextlib.contextmanager
def silent_failures() -> Iterator[None]:
    """Let fits end without a proof and without a warning, in this thread alone.

    Callers read the certificate and warn in their own words.
    """
    before = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(before)


def is_silent() -> bool:
    """Whether fits of this thread end without warnings; see :func:`silent_failures`."""
    return _SILENT.get()


def warn_of_failures(
    name: str, certificate: Certificate, several: str = "problems"
) -> None:
    """Warn once if problems did not converge, and name the worst of them.

    `several` is a plural noun for what the parts are about, such as "classes".
    """
    if certificate.certified or _SILENT.get():
        return
    failed = [part for part in certificate.parts if not part.certified]
    worst = max(failed, key=lambda part: part.relative_gap)
    message = str(worst)
    if worst.status is Status.UNCERTIFIED:
        message = worst.message
    elif len(certificate) > 1:
        message = (
            f"{len(failed)} of {len(certificate)} {several} did not converge. Worst: "
            f"{worst.name}, {worst.message.removeprefix('Not converged: ')}"
        )
    tell(f"{name}: {message}")


def warn_of_models(name: str, found: Sequence[tuple[str, Certificate]]) -> None:
    """Warn once if models of a search did not converge; each comes with its name."""
    if all(certificate.certified for _, certificate in found):
        return  # joining thousands of certificates takes time
    names, certificates = zip(*found, strict=True)
    whole = Certificate.total(list(certificates), list(names))
    warn_of_failures(name, whole, "models")


# ------------------------------------------------------- models inside other models


def own(model: BaseEstimator) -> BaseEstimator:
    """Return dualgap's estimator of a patched model; any other model as it is.

    dualgap's own have the parameters of their fit.
    """
    convert = getattr(model, "_as_own", None)
    return getattr(model, "_as_fitted", model) if convert is None else convert()


def final(model: BaseEstimator) -> BaseEstimator:
    """Return the model of a search or of a calibration; any other model as it is."""
    while True:
        if isinstance(model, FrozenEstimator):
            model = model.estimator
        elif hasattr(model, "calibrators_"):
            model = model.estimator_
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "cv_results_") or hasattr(model, "param_grid"):
            raise NotFittedError(
                f"{type(model).__name__} has no best_estimator_; fit it with refit=True"
            )
        else:
            return model


def unwrap(
    model: BaseEstimator, X: MatrixLike | None = None
) -> tuple[BaseEstimator, MatrixLike]:
    """Return the model inside pipelines and searches, and the rows that it sees.

    A patched model that dualgap has trained becomes dualgap's own estimator.
    """
    steps, model = taken_apart(model)
    if X is not None:
        for step in steps:
            X = step.transform(X)
    return model, X


def taken_apart(model: BaseEstimator) -> tuple[list[BaseEstimator], BaseEstimator]:
    """Return the transformers of pipelines, in order, and the model behind them."""
    steps: list[BaseEstimator] = []
    model = final(model)
    while isinstance(getattr(model, "steps", None), list):  # a Pipeline
        before = [step for _, step in model.steps[:-1]]
        steps += [step for step in before if step not in (None, "passthrough")]
        model = final(model.steps[-1][1])
    # A patched model that scikit-learn has trained stays as it is: its penalty may have
    # no counterpart, and LIBSVM numbers only the rows of positive weight.
    return steps, own(model) if hasattr(model, "certificate_") else model

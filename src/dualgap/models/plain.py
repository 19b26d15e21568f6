"""Linear classifiers without scikit-learn, whose import takes longer than a small fit.

The command line trains and applies the commonest model with them: one binary problem,
or one versus the rest, of data in memory. The result has the coefficients, the
certificate and the file of :class:`dualgap.LinearSVC` with the same parameters.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate
from ..data import model_file as file
from ..data.scaling import Scaling
from ..data.types import MatrixLike, Parameters, ProblemLabel
from ..losses import Loss
from ..problems.batch import LinearBatch
from ..problems.constant import DegenerateWarning, constant_sentence
from ..problems.reductions import OneVsRest
from ..solvers import Solver, get_solver
from ..training.batch import Job, begin, seeds_of, solve_batch
from .linear_files import make_linear, take_linear

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..training import EpochInfo

#: Parameters of LinearSVC and their defaults.
DEFAULTS: Parameters = {
    "C": 1.0,
    "atol": 0.0,
    "checkpoint": None,
    "checkpoint_every": 60.0,
    "class_weight": None,
    "fit_intercept": True,
    "intercept_scaling": 1.0,
    "loss": "squared_hinge",
    "max_iter": 10_000,
    "multi_class": "ovr",
    "n_jobs": None,
    "penalize_intercept": True,
    "penalty": "l2",
    "random_state": 0,
    "solver": "auto",
    "time_limit": None,
    "tol": 1e-3,
    "verbose": 0,
    "warm_start": False,
}
# Parameters that only LinearSVC supports, but for their defaults.
_OTHER = (
    "checkpoint",
    "class_weight",
    "multi_class",
    "n_jobs",
    "penalty",
    "warm_start",
)


class PlainLinearSVC:
    """Fitted linear classifier, with the attributes that the command line uses.

    `parameters`: parameters of LinearSVC; those left out have their defaults.
    """

    multi_class = "ovr"
    classes_: NDArray[np.generic]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    support_: NDArray[np.intp]
    n_support_: NDArray[np.int32]
    n_features_in_: int
    certificate_: Certificate

    def __init__(self, parameters: Parameters) -> None:
        self.parameters = DEFAULTS | dict(parameters)

    @staticmethod
    def can_train(parameters: Parameters, X: MatrixLike) -> bool:
        """Whether it can train with these parameters and rows."""
        return (
            isinstance(X, np.ndarray) or getattr(X, "format", None) == "csr"
        ) and all(
            parameters.get(name, DEFAULTS[name]) == DEFAULTS[name] for name in _OTHER
        )

    def get_params(self) -> Parameters:
        """Return all parameters."""
        return self.parameters

    def _fit(
        self,
        X: MatrixLike,
        y: NDArray[np.generic],
        sample_weight: None,
        *,
        on_epoch: Callable[[ProblemLabel, EpochInfo], object] | None,
    ) -> PlainLinearSVC:
        """Train as LinearSVC does, and call on_epoch(label, EpochInfo) every epoch."""
        p = self.parameters
        stop = begin(p["time_limit"])
        classes, codes = np.unique(y, return_inverse=True)
        codes = codes.astype(np.int32)  # half the memory
        batch = LinearBatch(
            X,
            classes,
            codes,
            OneVsRest(len(classes)),
            None,
            np.ones(len(classes)),
            p["C"],
            loss=p["loss"],
            fit_intercept=p["fit_intercept"],
            intercept_scaling=p["intercept_scaling"],
            penalize_intercept=p["penalize_intercept"],
            n_jobs=1,
        )
        seeds = seeds_of(p["random_state"], len(batch))
        limits = p["tol"], p["atol"], p["max_iter"]
        job = Job(*limits, stop, seeds, on_epoch=on_epoch)
        found = solve_batch(batch, get_solver(p["solver"]), job)
        self.classes_, self.n_features_in_ = classes, X.shape[1]
        self.coef_, self.intercept_ = batch.coef(found.w)
        self.support_, self.n_support_, _ = batch.packed(found.take_duals())
        self.certificate_ = found.certificate
        gaps = limits[:2]
        if sentence := constant_sentence(batch, found.w, found.bounds, *gaps, None):
            warnings.warn(f"LinearSVC: {sentence}", DegenerateWarning, stacklevel=2)
        return self

    def decision_function(self, X: MatrixLike) -> NDArray[np.float64]:
        """Return decision values, shape (n,) or (n, K), as LinearSVC does."""
        values: NDArray[np.float64] = X @ self.coef_.T + self.intercept_
        return values.ravel() if values.shape[1] == 1 else values


def save_plain(
    model: PlainLinearSVC,
    path: file.Path,
    notes: Mapping[str, file.Scalar],
    scaling: Scaling | None,
    names: Iterable[str] | None,
) -> None:
    """Write the model file of a LinearSVC with these attributes."""
    own, tensors = take_linear(model, False)
    given = sorted(model.parameters.items())
    record = {
        "estimator": "LinearSVC",
        "parameters": {key: _written(key, value) for key, value in given},
        **file.common_fields(model, names, notes),
        **own,
    }
    if scaling is not None:
        tensors |= scaling.tensors()
    file.write(path, file.seal(record, tensors), tensors)


def _written(key: str, value: object) -> file.Scalar | file.Record:
    """Return a parameter as JSON: a plain value, or the fields of a record."""
    if isinstance(value, (Loss, Solver)):
        return {"record": value.name, "fields": file.fields_of(value)}
    return file.scalar(key, value)


def load_plain(
    path: str,
) -> tuple[PlainLinearSVC, dict[str, file.Scalar], Scaling | None] | None:
    """Read a model, its notes and its scaling; None if it needs scikit-learn.

    None also stands for a file that is damaged or no model. The caller reads it again
    with ``model_file.load_parts``, which says what is wrong.
    """
    try:
        record, tensors = file.read(path)
        parameters = record["parameters"]
        if record["estimator"] != "LinearSVC" or set(parameters) != set(DEFAULTS):
            return None
        if parameters["multi_class"] != "ovr" or record["labels"] is not None:
            return None
        scaling = Scaling.taken_from(tensors)
        model = PlainLinearSVC(parameters)
        model.classes_ = file.classes(record["classes"])
        model.n_features_in_ = record["n_features"]
        own = {n: t for n, t in tensors.items() if not n.startswith(file.OPTIMUM)}
        make_linear(model, record, own)
        if scaling and len(scaling.scale) != model.n_features_in_:
            return None
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return None
    return model, record["notes"], scaling

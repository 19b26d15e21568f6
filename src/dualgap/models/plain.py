"""Linear classifiers without scikit-learn, whose import takes longer than a small fit.

The command line trains and applies the commonest model with them: one binary problem,
or one versus the rest, of data in memory. The result has the coefficients, the
certificate and the file of :class:`dualgap.LinearSVC` with the same parameters. The
tensors of linear models in files are here too, set and read by their attributes.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate
from ..data import model_file as file
from ..data.model_file import Record, Tensors
from ..data.scaling import Scaling
from ..data.types import MatrixLike, Parameters, ProblemLabel
from ..problems.reductions import OneVsRest, certificate_of, reduction_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from sklearn.base import BaseEstimator

    from ..training import EpochInfo


# ------------------------------------------------- tensors of linear models in files


def certificates_of(record: Record, problems: int) -> list[Certificate]:
    """Return the certificates of a record, after checking how many there are."""
    certificates = [file.certificate(fields) for fields in record["certificates"]]
    if len(certificates) != problems:
        raise ValueError(
            f"it has {len(certificates)} certificates, but should have {problems}"
        )
    return certificates


def support_of(tensors: Tensors, n: int) -> Any:
    """Return the indices of the support vectors among n rows, after checking them."""
    support = tensors["support"].astype(np.intp)
    if support.size and not 0 <= support.min() <= support.max() < n:
        raise ValueError(f"support has indices outside the {n} training rows")
    return support


def take_linear(model: BaseEstimator, duals: bool) -> tuple[Record, Tensors]:
    """Return the extra fields and the tensors of a linear model."""
    if duals:
        from ..estimators.base import need_duals

        need_duals(model, "duals=True")
    fields, tensors = file.linear_parts(model)
    if hasattr(model, "classes_"):
        fields["labels"] = getattr(model, "_labels", None)
    if duals:
        fields["n_rows"] = int(model._n_rows)
        tensors["support"] = np.ascontiguousarray(model.support_, dtype="<i8")
        tensors |= file.matrix_tensors("dual_coef", model.dual_coef_)
    return fields, tensors


def models_of(model: BaseEstimator) -> int:
    """Return the number of models of an estimator without classes: its quantiles."""
    if getattr(model, "loss", "") != "quantile":
        return 1
    return int(np.size(model.quantile))


def make_linear(model: BaseEstimator, record: Record, tensors: Tensors) -> None:
    """Set the attributes of a linear model from the fields and tensors of a file."""
    classes = len(getattr(model, "classes_", "ab"))  # without classes, count as two
    kind = getattr(model, "multi_class", "ovr")
    if record.get("labels") is not None:
        if kind != "ovr" or record["labels"] not in ("dense", "sparse"):
            raise ValueError(f"labels in its record is {record['labels']!r}")
        model._labels = record["labels"]
        kind = "labels"
    reduction, together = reduction_of(kind, classes), kind == "crammer_singer"
    problems = len(reduction) if not together or classes == 2 else classes
    n, d = record["n_rows"], model.n_features_in_
    name = record["estimator"]
    if name == "LinearSVR":
        problems = models_of(model)
    flat = name == "LinearSVR" and problems == 1
    expected: dict[str, file.Shape] = {
        "coef": (("F64",), (d,) if flat else (problems, d)),
        "intercept": (("F64",), (problems,)),
    }
    if n is not None:
        size = tensors["support"].size if "support" in tensors else -1
        expected["support"] = (("I64",), (-1,))
        tables = reduction.tables if hasattr(model, "classes_") else problems
        expected |= file.matrix_shapes(tensors, "dual_coef", tables, size)
    if "n_support" in tensors and hasattr(model, "multi_class"):
        expected["n_support"] = (("I64",), (classes,))
    file.expect_tensors(tensors, expected)
    one = together or (name == "LogisticRegression" and kind != "labels")
    certificates = certificates_of(record, 1 if one else problems)
    if record["coef_order"] not in ("C", "F"):
        raise ValueError(f"coef_order in its record is {record['coef_order']!r}")
    model.coef_ = np.asarray(tensors["coef"], order=record["coef_order"])
    model.intercept_ = tensors["intercept"]
    model.certificate_ = certificate_of(model, certificates)
    model.n_iter_ = max(certificate.epochs for certificate in certificates)
    if "n_support" in expected:
        counts = tensors["n_support"]
        if not 0 <= counts.min() <= counts.max() < 2**31 or (
            n is not None and kind != "labels" and counts.sum() != size
        ):
            raise ValueError("n_support does not match the number of support vectors")
        model.n_support_ = counts.astype(np.int32)
    if name == "LinearOneClassSVM":
        model.offset_ = -model.intercept_
    if n is not None:
        model.support_ = support_of(tensors, n)
        if (np.diff(model.support_) <= 0).any():
            raise ValueError("support is not sorted")
        model.dual_coef_ = file.matrix(tensors, "dual_coef", tables, size)
        model._n_rows = n


# ---------------------------------------------------- LinearSVC without scikit-learn

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
        # A prediction does without these, whose import takes longer.
        from ..problems.batch import LinearBatch
        from ..problems.constant import DegenerateWarning, constant_sentence
        from ..solvers import get_solver
        from ..training.batch import Job, begin, seeds_of, solve_batch

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
    from ..losses import Loss
    from ..solvers import Solver

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

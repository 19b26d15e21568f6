"""Model files: write fitted models and read them back.

``data/model_file.py`` defines the format. A LinearSVC's file has the tensors ``coef``,
``intercept`` and ``n_support``; with dual variables also ``support`` and ``dual_coef``.
The file of an SVC has ``dual_coef``, ``intercept``, ``n_support``, ``support`` and the
support vectors: ``support_vectors`` if they are dense, ``support_vectors.data``,
``.indices`` and ``.indptr`` if they are sparse, none if the kernel is precomputed. Its
record contains the kernel with gamma as a number. After `bound_optimum` the tensors
whose names begin with ``optimum.`` hold the region (``region_files.py``).

The file of a CalibratedClassifier is its model's file, with the tensors of its
calibrators. ``calibration.sigmoid`` has a slope and an offset for each,
``calibration.temperature`` the factor, and ``calibration.isotonic`` the decisions and
probabilities of all steps, whose calibrators end before the rows in
``calibration.ends``. ``calibration.folds`` is the number of folds.

LinearSVR and LinearOneClassSVM are written like LinearSVC, but without ``n_support``;
SVR, NuSVR and OneClassSVM are written like SVC. These five have no classes.
"""

from __future__ import annotations

import dataclasses
import os
import types
from collections.abc import Mapping
from typing import Any, Literal, overload

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from ..data import model_file as file
from ..data.atomic import refuse_no_path
from ..data.model_file import Path, Record, Scalar, Tensors
from ..data.scaling import Scaling
from ..estimators.base import final, own
from ..estimators.calibration import CalibratedClassifier
from ..estimators.calibrators import (
    Calibrator,
    IsotonicCalibrator,
    SigmoidCalibrator,
    TemperatureCalibrator,
)
from ..estimators.kernels import KernelModel
from ..estimators.linear_svc import LinearSVC
from ..estimators.logistic import LogisticRegression
from ..estimators.novelty import LinearOneClassSVM, OneClassSVM
from ..estimators.nu import NuSVC, NuSVR
from ..estimators.parameters import KERNELS
from ..estimators.regression import SVR, LinearSVR
from ..estimators.svc import SVC
from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS, Precomputed
from ..kernel import Callable as CallableKernel
from ..losses import LOSSES, Vector
from ..problems.reductions import certificate_of
from ..solvers import SOLVERS
from .plain import (
    certificates_of,
    make_linear,
    models_of,
    support_of,
    take_linear,
)
from .region_files import region_tensors, set_region, taken_region

Model = (
    LinearSVC
    | SVC
    | NuSVC
    | LinearSVR
    | LinearOneClassSVM
    | SVR
    | NuSVR
    | OneClassSVM
    | CalibratedClassifier
)

_FIELDS: dict[str, type | types.UnionType] = {
    "parameters": dict,
    "classes": dict | None,
    "n_features": int,
    "n_rows": int | None,
    "feature_names": list | None,
    "certificates": list,
    "notes": dict,
}


def save_model(
    model: Model,
    path: Path,
    *,
    duals: bool = False,
    notes: Mapping[str, Scalar] | None = None,
) -> None:
    """Write a fitted model to a file.

    The file is written atomically: an interrupted or failed write leaves an existing
    file unchanged. The same model gives the same bytes.

    Parameters
    ----------
    model : LinearSVC, SVC, NuSVC, LinearSVR, SVR, NuSVR, LinearOneClassSVM, \
OneClassSVM or CalibratedClassifier
        A fitted model, or a fitted pipeline of scikit-learn's StandardScaler and one of
        these. A patched model of scikit-learn is written as dualgap's own.
    path : str or path-like
        File to write, usually named ``*.safetensors``.
    duals : bool, default=False
        Whether to store the dual variables of a linear model, 16 bytes per support
        vector and class. The loaded model can then be refitted with
        ``warm_start=True``. Kernel models always store them.
    notes : mapping of str to str, int, float, bool or None, optional
        Your own remarks; ``load_model(return_notes=True)`` returns them.

    Raises
    ------
    ImportError
        If the package safetensors is missing.
    OSError
        If the file cannot be written.
    TypeError
        If the type of the model is not supported.
    ValueError
        If the model is not fitted or not finite, has no certificate, or has a parameter
        that a file cannot hold: your own solver, loss or kernel function, or a
        RandomState.

    See Also
    --------
    load_model : Read the file.

    Notes
    -----
    ``history_`` is not stored, and sparse coefficients are written as dense arrays. The
    region of `bound_optimum` is stored, so that `decision_bounds` and
    `certified_labels` work as before. For the squared hinge it has a matrix of d x d
    numbers for each problem of up to 2,000 features, at most 32 MB. A loaded
    CalibratedClassifier has the number of its folds as `cv`.

    Examples
    --------
    >>> import os, tempfile
    >>> import numpy as np
    >>> from dualgap import LinearSVC, load_model, save_model
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), ["a", "b"]
    >>> model = LinearSVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "model.safetensors")
    ...     save_model(model, path)
    ...     load_model(path).predict(X)
    array(['a', 'b'], dtype='<U1')
    """
    scaling = None
    steps = [step for _, step in getattr(model, "steps", ())]
    if len(steps) == 2 and type(steps[0]).__name__ == "StandardScaler":
        scaler, model = steps
        check_is_fitted(scaler)
        scaling = Scaling.of_scaler(scaler)
        names = getattr(scaler, "feature_names_in_", None)
    else:
        names = getattr(model, "feature_names_in_", None)
    save_parts(model, path, duals, notes, scaling, names)


def save_parts(
    model: BaseEstimator,
    path: Path,
    duals: bool,
    notes: Mapping[str, Scalar] | None,
    scaling: Scaling | None,
    names: Any,
) -> None:
    """Write a model, the scaling of its columns, and their names."""
    file.safetensors("writing")
    calibration: Tensors = {}
    if isinstance(model, CalibratedClassifier):
        check_is_fitted(model)
        calibration, model = calibration_tensors(model), model.estimator_
        names = getattr(model, "feature_names_in_", None) if names is None else names
    model = own(model)
    name = type(model).__name__
    if type(model) is not _ESTIMATORS.get(name):
        remedy = f"Give one of {', '.join(_ESTIMATORS)}, also after a StandardScaler"
        if hasattr(model, "best_estimator_"):
            remedy = "Give its best_estimator_"
        elif hasattr(model, "steps"):
            remedy = (
                "Keep the whole pipeline by pickle, skops or ONNX. Its last step, "
                "pipeline[-1], predicts rows that went through all other steps"
            )
        elif isinstance(model, str | os.PathLike):
            remedy = "The order is save_model(model, path)"
        elif name in _ESTIMATORS:
            name += f" of {type(model).__module__.partition('.')[0]}"
        raise TypeError(f"model is a {name}, which a model file cannot hold. {remedy}")
    check_is_fitted(model)
    if not hasattr(model, "certificate_"):
        raise ValueError(
            f"model is a {name} without a certificate, which a model file needs; train "
            "it with dualgap, or pickle it"
        )
    take = _take_kernel if _has_kernel(type(model)) else take_linear
    extra, tensors = take(model, duals)
    record = {
        "estimator": name,
        "parameters": {
            key: _plain(key, value, type(model))
            for key, value in model.get_params(deep=False).items()
        },
        **file.common_fields(model, names, notes or {}),
        **extra,
    }
    tensors |= region_tensors(model)
    # Make sure that load_model will accept the file.
    _assemble(file.seal(record, tensors), dict(tensors))
    tensors |= calibration
    if scaling is not None:
        tensors |= scaling.tensors()
    file.write(path, file.seal(record, tensors), tensors)


@overload
def load_model(path: Path, *, return_notes: Literal[False] = ...) -> Model: ...


@overload
def load_model(
    path: Path, *, return_notes: Literal[True]
) -> tuple[Model, dict[str, Scalar]]: ...


def load_model(
    path: Path, *, return_notes: bool = False
) -> Model | tuple[Model, dict[str, Scalar]]:
    """Read a model that :func:`save_model` wrote.

    It runs no code from the file and checks its whole content: a file that is
    truncated, damaged, or not a model raises an error.

    Parameters
    ----------
    path : str or path-like
        The file.
    return_notes : bool, default=False
        Also return the notes that were given to :func:`save_model`.

    Returns
    -------
    model : LinearSVC, SVC, NuSVC, LinearSVR, SVR, NuSVR, LinearOneClassSVM, \
OneClassSVM or CalibratedClassifier
        The fitted model, or a pipeline of a StandardScaler and the model. It has
        ``certificate_`` but no ``history_``. A linear model has ``dual_coef_`` and
        ``support_`` if they were stored.
    notes : dict
        Notes; only with ``return_notes=True``.

    Raises
    ------
    ImportError
        If the package safetensors is missing.
    OSError
        If the file cannot be opened.
    TypeError
        If the path is not one.
    ValueError
        If the file is not a valid model file, or of an unknown format version. The
        message names the file.
    """
    model, notes, scaling = load_parts(path)
    if scaling is not None:
        model = pipeline_of(scaling, model)
    return (model, notes) if return_notes else model


def load_parts(path: Path) -> tuple[Any, dict[str, Scalar], Scaling | None]:
    """Read a model, its notes, and the scaling of its columns or None."""
    refuse_no_path(path)
    name = os.fsdecode(path)
    try:
        record, tensors = file.read(name)
        scaling = Scaling.taken_from(tensors)
        calibration = taken_calibration(tensors)
        model = _assemble(record, tensors)
        if calibration:
            model = set_calibration(model, calibration)
        if scaling is not None and len(scaling.scale) != model.n_features_in_:
            raise ValueError(
                f"the scaling has {len(scaling.scale)} columns, but the model has "
                f"{model.n_features_in_}"
            )
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{name} is not a valid dualgap model: {error}") from error
    return model, record["notes"], scaling


def pipeline_of(scaling: Scaling, model: BaseEstimator) -> Any:
    """Return the fitted pipeline of a StandardScaler and a model."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    scaler = StandardScaler(with_mean=scaling.mean is not None)
    d = len(scaling.scale)
    scaler.mean_ = np.zeros(d) if scaling.mean is None else scaling.mean
    scaler.scale_, scaler.var_ = scaling.scale, scaling.scale**2
    scaler.n_features_in_ = d
    scaler.n_samples_seen_ = 1
    if hasattr(model, "feature_names_in_"):
        scaler.feature_names_in_ = model.feature_names_in_
        del final(model).feature_names_in_
    return make_pipeline(scaler, model)


# ------------------------------------------------------------- common to all models


#: Estimators by their names in files.
_ESTIMATORS: dict[str, type[BaseEstimator]] = {
    estimator.__name__: estimator
    for estimator in (
        *(LinearSVC, SVC, LinearSVR, LinearOneClassSVM, LogisticRegression),
        *(NuSVC, SVR, NuSVR, OneClassSVM),
    )
}


def _has_kernel(estimator: type[BaseEstimator]) -> bool:
    return issubclass(estimator, KernelModel)


def _register(key: str, estimator: type[BaseEstimator]) -> Mapping[str, type[Any]]:
    """Return the records that may stand for the names of a parameter."""
    if key == "solver":
        return KERNEL_SOLVERS | APPROXIMATIONS if _has_kernel(estimator) else SOLVERS
    if key == "loss":
        return LOSSES
    return KERNELS if key == "kernel" else {}


def _fields_of(estimator: type[BaseEstimator]) -> dict[str, type | types.UnionType]:
    """Return the fields of the record besides the common ones."""
    if _has_kernel(estimator):
        return {"kernel": dict}
    labels = {"labels": str | None} if is_classifier(estimator()) else {}
    return {"coef_order": str, **labels}


def _assemble(record: Record, tensors: Tensors) -> Any:
    """Return the model of a record and tensors, after checking all of them."""
    estimator = _ESTIMATORS.get(record["estimator"])
    if estimator is None:
        raise ValueError(f"its estimator {record['estimator']!r} is unknown")
    file.expect_fields(record, _FIELDS | _fields_of(estimator))
    known = set(estimator().get_params(deep=False))
    if set(record["parameters"]) != known:
        raise ValueError(
            f"its parameters are {sorted(record['parameters'])}, but should be "
            f"{sorted(known)}"
        )
    given = record["parameters"].items()
    model = estimator(**{key: _parameter(key, v, estimator) for key, v in given})
    # scikit-learn's check of parameters, with which fit begins
    model._validate_params()

    if is_classifier(model) != (record["classes"] is not None):
        raise ValueError(
            f"its classes {record['classes']!r} are invalid for a {record['estimator']}"
        )
    if is_classifier(model):
        model.classes_ = file.classes(record["classes"])
    model.n_features_in_ = record["n_features"]
    if model.n_features_in_ < 1:
        raise ValueError("the model has no features")
    for note, value in record["notes"].items():
        if not isinstance(note, str):
            raise ValueError(f"the name {note!r} of a note is not a string")
        file.scalar(note, value)
    names = record["feature_names"]
    if names is not None:
        d = model.n_features_in_
        if len(names) != d or not all(isinstance(name, str) for name in names):
            raise ValueError(f"feature_names must be {d} strings")
        model.feature_names_in_ = np.array(names, dtype=object)
    region = taken_region(tensors)
    make = _make_kernel if _has_kernel(estimator) else make_linear
    make(model, record, tensors)
    set_region(model, region)
    model._note_parameters()
    return model


def _plain(key: str, value: Any, estimator: type[BaseEstimator]) -> Any:
    """Return a parameter as JSON, from which :func:`_parameter` restores it."""
    if isinstance(value, dict):
        pairs = value.items()
        return {"pairs": [[file.scalar(key, k), file.scalar(key, v)] for k, v in pairs]}
    if key == "quantile" and np.ndim(value) == 1:
        return {"values": [file.scalar(key, v) for v in value]}
    if isinstance(value, CallableKernel) or (callable(value) and key == "kernel"):
        raise ValueError(
            f"kernel={value!r} is a function, which a model file cannot hold; use a "
            "kernel's name or a record of dualgap.kernel, or pickle the model"
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = str(getattr(value, "name", ""))
        if _register(key, estimator).get(name) is not type(value):
            raise ValueError(
                f"{key}={value!r} is not a record of dualgap, so a model file cannot "
                "hold it; pickle the model"
            )
        return {"record": name, "fields": file.fields_of(value)}
    return file.scalar(key, value)


def _parameter(key: str, value: Any, estimator: type[BaseEstimator]) -> Any:
    """Invert :func:`_plain`."""
    if not isinstance(value, dict):
        return file.scalar(key, value)
    if set(value) == {"values"} and isinstance(value["values"], list):
        return [file.scalar(key, v) for v in value["values"]]
    if set(value) == {"pairs"}:
        weights = {file.scalar(key, k): file.scalar(key, v) for k, v in value["pairs"]}
        if not all(
            isinstance(w, (int, float)) and not isinstance(w, bool)
            for w in weights.values()
        ):
            raise ValueError(f"{key}={weights!r} is invalid: weights must be numbers")
        return weights
    register = _register(key, estimator)
    if set(value) != {"record", "fields"} or value["record"] not in register:
        raise ValueError(f"{key}={value!r} is unknown")
    return file.from_fields(register[value["record"]], value["fields"])


# -------------------------------------------------------------------------------- SVC


def _take_kernel(model: BaseEstimator, duals: bool) -> tuple[Record, Tensors]:
    tensors = {
        "dual_coef": np.ascontiguousarray(model.dual_coef_, dtype="<f8"),
        "intercept": np.ascontiguousarray(model.intercept_, dtype="<f8"),
        "n_support": np.ascontiguousarray(model.n_support_, dtype="<i8"),
        "support": np.ascontiguousarray(model.support_, dtype="<i8"),
    }
    if hasattr(model, "class_weight_"):
        tensors["class_weight"] = np.ascontiguousarray(model.class_weight_, dtype="<f8")
    if not isinstance(model._fitted_kernel, Precomputed):
        tensors |= file.matrix_tensors("support_vectors", model.support_vectors_)
    kernel = _plain("kernel", model._fitted_kernel, SVC)
    return {"n_rows": int(model.shape_fit_[0]), "kernel": kernel}, tensors


def _make_kernel(model: BaseEstimator, record: Record, tensors: Tensors) -> None:
    kernel = _parameter("kernel", record["kernel"], SVC)
    if isinstance(getattr(kernel, "gamma", 1.0), str):
        raise ValueError(f"its kernel has gamma={kernel.gamma!r}, not a number")
    n, d = record["n_rows"], model.n_features_in_
    single = not hasattr(model, "classes_")
    classes = 1 + models_of(model) if single else len(model.classes_)
    pairs = classes - 1 if single else classes * (classes - 1) // 2
    size = tensors["support"].size if "support" in tensors else -1
    expected: dict[str, file.Shape] = {
        "dual_coef": (("F64",), (classes - 1, size)),
        "intercept": (("F64",), (pairs,)),
        "n_support": (("I64",), (1 if single else classes,)),
        "support": (("I64",), (-1,)),
    }
    if "class_weight" in tensors and not single:  # not of LIBSVM's files
        expected["class_weight"] = (("F64",), (classes,))
    precomputed = isinstance(kernel, Precomputed)
    if precomputed:
        if n != d:
            raise ValueError(
                f"its precomputed kernel has {n} rows and {d} columns, but should be "
                "square"
            )
    else:
        expected |= file.matrix_shapes(tensors, "support_vectors", size, d)
    file.expect_tensors(tensors, expected)
    if not isinstance(n, int):
        raise ValueError("its record lacks n_rows")
    counts = tensors["n_support"]
    if (counts < 0).any() or (counts > size).any() or counts.sum() != size:
        raise ValueError(f"n_support does not match the {size} support vectors")
    certificates = certificates_of(record, pairs)
    model.support_ = support_of(tensors, n)
    model.n_support_ = counts.astype(np.int32)
    model.dual_coef_, model.intercept_ = tensors["dual_coef"], tensors["intercept"]
    model.support_vectors_ = (
        np.empty((0, 0))
        if precomputed
        else file.matrix(tensors, "support_vectors", size, d)
    )
    if "class_weight" in expected:
        model.class_weight_ = tensors["class_weight"]
    model.shape_fit_ = (n, d)
    model._fitted_kernel = kernel
    model.certificate_ = certificate_of(model, certificates)
    model.n_iter_ = max(certificate.epochs for certificate in certificates)
    model.fit_status_ = int(not all(c.certified for c in certificates))


# ------------------------------------------------------------------------ calibrators

#: Beginning of the names of the tensors.
_CALIBRATION = "calibration."
#: Columns of the tensor of each method.
_WIDTHS = {"sigmoid": 2, "isotonic": 2, "temperature": 1}


def calibration_tensors(model: CalibratedClassifier) -> Tensors:
    """Return the tensors of the calibrators."""
    rows, tensors = [one.table for one in model.calibrators_], Tensors()
    if model.method == "isotonic":
        tensors[f"{_CALIBRATION}ends"] = np.cumsum(
            [len(own) for own in rows], dtype="<i8"
        )
    tensors[f"{_CALIBRATION}{model.method}"] = np.ascontiguousarray(
        np.vstack(rows), "<f8"
    )
    tensors[f"{_CALIBRATION}folds"] = np.array([model.n_splits_], "<i8")
    return tensors


def taken_calibration(tensors: Tensors) -> Tensors:
    """Take the tensors of calibrators out of a model file's; none without any."""
    names = [name for name in tensors if name.startswith(_CALIBRATION)]
    return {name.removeprefix(_CALIBRATION): tensors.pop(name) for name in names}


def set_calibration(model: BaseEstimator, given: Tensors) -> CalibratedClassifier:
    """Return the calibrated classifier of a loaded model."""
    found = [name for name in _WIDTHS if name in given]
    if len(found) != 1 or not hasattr(model, "classes_"):
        raise ValueError(f"the calibration has the tensors {sorted(given)}")
    method = found[0]
    classes = len(model.classes_)
    count = 1 if classes == 2 or method == "temperature" else classes
    rows = -1 if method == "isotonic" else count
    expected: dict[str, file.Shape] = {
        method: (("F64",), (rows, _WIDTHS[method])),
        "folds": (("I64",), (1,)),
    }
    if method == "isotonic":
        expected["ends"] = (("I64",), (count,))
    file.expect_tensors(given, expected)
    folds, table = int(given["folds"][0]), given[method]
    if folds < 2:
        raise ValueError(f"the calibration has {folds} folds")
    made = CalibratedClassifier(model, cv=folds).set_params(method=method)
    calibrators: list[Calibrator] = []
    if method == "isotonic":
        calibrators += _steps(table, given["ends"])
    elif method == "sigmoid":
        calibrators += [SigmoidCalibrator(*map(float, row)) for row in table]
    else:
        if not table[0, 0] > 0.0:
            raise ValueError("the temperature of the calibration is not positive")
        calibrators.append(TemperatureCalibrator(float(table[0, 0])))
    made.calibrators_, made.n_splits_ = tuple(calibrators), folds
    made.estimator_, made.classes_ = model, model.classes_
    return made


def _steps(table: Vector, ends: Vector) -> list[IsotonicCalibrator]:
    """Return calibrators whose decisions rise, and whose probabilities do not fall."""
    bounds = np.concatenate([[0], ends])
    if (np.diff(bounds) < 1).any() or bounds[-1] != len(table):
        raise ValueError("the steps of the calibration do not match their ends")
    found = [
        IsotonicCalibrator(*table[a:b].T.copy())
        for a, b in zip(bounds, ends, strict=False)
    ]
    for one in found:
        valid = (np.diff(one.x) > 0.0).all() and (np.diff(one.y) >= 0.0).all()
        if not (valid and one.y[0] >= 0.0 and one.y[-1] <= 1.0):
            raise ValueError("the steps of the calibration do not rise from 0 to 1")
    return found

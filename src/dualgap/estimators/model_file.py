"""Models to files and back; the format is that of ``io/model.py``.

A LinearSVC has the tensors ``coef``, ``intercept`` and ``n_support``, and ``support``
and ``dual_coef`` where the duals were kept. An SVC has ``dual_coef``, ``intercept``,
``n_support`` and ``support``, and its support vectors: ``support_vectors`` if they are
dense, ``support_vectors.data``, ``.indices`` and ``.indptr`` if they are sparse, none
if the kernel is precomputed; its record tells the kernel with gamma as a number.

A LinearSVR and a LinearOneClassSVM are written as a LinearSVC is, without
``n_support``, an SVR and a OneClassSVM as an SVC; they have no classes.
"""

from __future__ import annotations

import dataclasses
import os
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from ..certificate import Certificate
from ..io import model as file
from ..io.model import Path, Record, Scalar, Tensors
from ..kernel import APPROXIMATIONS, KERNEL_SOLVERS, Precomputed
from ..kernel import Callable as CallableKernel
from ..losses import LOSSES
from ..solvers import SOLVERS
from ._binary import number_of_problems
from ._fitting import one_or_all
from .kernel_regression import BOX_SOLVERS, SVR, OneClassSVM
from .linear_regression import LinearOneClassSVM, LinearSVR
from .linear_svc import LinearSVC
from .svc import KERNELS, SVC

__all__ = ["load_model", "save_model"]

Model = LinearSVC | SVC | LinearSVR | LinearOneClassSVM | SVR | OneClassSVM

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

    The file is complete or not there: an interrupted or failed write leaves an
    existing file as it was. The same model gives the same bytes.

    Parameters
    ----------
    model : LinearSVC, SVC, LinearSVR, SVR, LinearOneClassSVM or OneClassSVM
        Fitted.
    path : str or path-like
        By custom ``*.safetensors``.
    duals : bool, default=False
        Keep the dual variables of a linear model too (16 bytes per support vector and
        class), so that the loaded model can be refitted with ``warm_start=True``.
        Those of a kernel model are the model, and always kept.
    notes : mapping of str to str, int, float, bool or None, optional
        Remarks of the caller's own, given back by ``load_model(return_notes=True)``.

    Raises
    ------
    ImportError
        If the package safetensors is missing.
    OSError
        If the file cannot be written.
    TypeError
        If the model is none of these.
    ValueError
        If the model is not fitted, is not finite, or has a parameter that a file
        cannot hold: a solver, loss or kernel function of your own, or a RandomState.

    See Also
    --------
    load_model : Reads the file.

    Notes
    -----
    ``history_`` is not kept, and sparse coefficients are written dense.

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
    file.safetensors("writing")
    name = type(model).__name__
    face = _FACES.get(name)
    if face is None or type(model) is not face.estimator:
        raise TypeError(
            f"model is a {name}; a model file holds a {', a '.join(_FACES)}. Of a "
            "pipeline, give its last step, pipeline[-1]"
        )
    check_is_fitted(model)
    extra, tensors = face.take_apart(model, duals)
    certificates = model.certificate_
    if isinstance(certificates, Certificate):
        certificates = [certificates]
    names = getattr(model, "feature_names_in_", None)
    record = {
        "estimator": name,
        "parameters": {
            key: _plain(key, value, face)
            for key, value in model.get_params(deep=False).items()
        },
        "classes": file.classes_fields(model.classes_) if face.classes else None,
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else names.tolist(),
        "certificates": [file.certificate_fields(c) for c in certificates],
        "notes": {key: file.scalar(key, value) for key, value in (notes or {}).items()},
        **extra,
    }
    sealed = file.seal(record, tensors)
    # Also what the file says must be what load_model accepts.
    _assemble(sealed, tensors)
    file.write(path, sealed, tensors)


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

    Runs no code from the file, and believes nothing in it unchecked: a file that is
    cut short, damaged, or not a model is refused.

    Parameters
    ----------
    path : str or path-like
        The file.
    return_notes : bool, default=False
        Return the notes given to :func:`save_model` too.

    Returns
    -------
    model : LinearSVC, SVC, LinearSVR, SVR, LinearOneClassSVM or OneClassSVM
        Fitted, with ``certificate_``; a linear model with ``dual_coef_`` and
        ``support_`` if they were kept; without ``history_``.
    notes : dict
        Only with ``return_notes=True``.

    Raises
    ------
    ImportError
        If the package safetensors is missing.
    OSError
        If the file cannot be opened.
    ValueError
        If the content is not a sound model of a format known here; the message names
        the file.
    """
    name = os.fsdecode(path)
    try:
        record, tensors = file.read(name)
        model = _assemble(record, tensors)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{name} is not a sound dualgap model: {error}") from error
    return (model, record["notes"]) if return_notes else model


# ------------------------------------------------------------- common to all models


class _Face(NamedTuple):
    """What is particular to an estimator."""

    estimator: type[Any]
    #: Registers of the parameters that may be records instead of names.
    registers: dict[str, Mapping[str, type[Any]]]
    #: Fields of the record beyond the common ones.
    fields: dict[str, type | types.UnionType]
    take_apart: Callable[[Any, bool], tuple[Record, Tensors]]
    #: Sets the attributes that the tensors and the own fields hold.
    put_together: Callable[[Any, Record, Tensors], None]
    #: Whether it has classes.
    classes: bool = True
    #: Parameters that files of before do not have; they get their defaults.
    later: frozenset[str] = frozenset()


def _assemble(record: Record, tensors: Tensors) -> Any:
    """The model, every part of it checked."""
    face = _FACES.get(record["estimator"])
    if face is None:
        raise ValueError(f"estimator {record['estimator']!r} is unknown here")
    file.expect_fields(record, _FIELDS | face.fields)
    known = set(face.estimator().get_params(deep=False))
    given = set(record["parameters"])
    if not known - face.later <= given <= known:
        raise ValueError(
            f"its parameters are {sorted(record['parameters'])}, expected "
            f"{sorted(known)}"
        )
    model = face.estimator(
        **{k: _parameter(k, value, face) for k, value in record["parameters"].items()}
    )
    # scikit-learn's own check of parameters, the one that fit begins with
    model._validate_params()

    if face.classes != (record["classes"] is not None):
        raise ValueError(f"classes of a {record['estimator']}: {record['classes']!r}")
    if face.classes:
        model.classes_ = file.classes(record["classes"])
    model.n_features_in_ = record["n_features"]
    if model.n_features_in_ < 1:
        raise ValueError("the model has no features")
    for note, value in record["notes"].items():
        if not isinstance(note, str):
            raise ValueError(f"the name of a note, {note!r}, is not a string")
        file.scalar(note, value)
    names = record["feature_names"]
    if names is not None:
        d = model.n_features_in_
        if len(names) != d or not all(isinstance(name, str) for name in names):
            raise ValueError(f"feature_names are not {d} strings")
        model.feature_names_in_ = np.array(names, dtype=object)
    face.put_together(model, record, tensors)
    return model


def _certificates(record: Record, problems: int) -> list[Certificate]:
    certificates = [file.certificate(fields) for fields in record["certificates"]]
    if len(certificates) != problems:
        raise ValueError(f"{len(certificates)} certificates for {problems} problem(s)")
    return certificates


def _support(tensors: Tensors, n: int) -> Any:
    support = tensors["support"].astype(np.intp)
    if support.size and not 0 <= support.min() <= support.max() < n:
        raise ValueError(f"support is not within the {n} rows of the training data")
    return support


def _plain(key: str, value: Any, face: _Face) -> Any:
    """Of a parameter: JSON from which :func:`_parameter` makes the same."""
    if isinstance(value, dict):
        pairs = value.items()
        return {"pairs": [[file.scalar(key, k), file.scalar(key, v)] for k, v in pairs]}
    if isinstance(value, CallableKernel) or (callable(value) and key == "kernel"):
        raise ValueError(
            f"kernel={value!r}: a model file runs no code and cannot hold a function; "
            "use a kernel by name or a record of dualgap.kernel, or pickle the model"
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = str(getattr(value, "name", ""))
        if face.registers.get(key, {}).get(name) is not type(value):
            raise ValueError(
                f"{key}={value!r}: a model file holds the records of dualgap only"
            )
        return {"record": name, "fields": file.fields_of(value)}
    return file.scalar(key, value)


def _parameter(key: str, value: Any, face: _Face) -> Any:
    """The inverse of :func:`_plain`."""
    if not isinstance(value, dict):
        return file.scalar(key, value)
    if set(value) == {"pairs"}:
        weights = {file.scalar(key, k): file.scalar(key, v) for k, v in value["pairs"]}
        if not all(
            isinstance(w, (int, float)) and not isinstance(w, bool)
            for w in weights.values()
        ):
            raise ValueError(f"{key}={weights!r}: weights must be numbers")
        return weights
    register = face.registers.get(key, {})
    if set(value) != {"record", "fields"} or value["record"] not in register:
        raise ValueError(f"{key}={value!r} is unknown here")
    return file.from_fields(register[value["record"]], value["fields"])


# -------------------------------------------------------------------------- LinearSVC


def _take_linear(model: Any, duals: bool) -> tuple[Record, Tensors]:
    if duals and not hasattr(model, "dual_coef_"):
        raise ValueError(
            "duals=True: this model has no dual variables; it was loaded from a file "
            "that did not keep them"
        )
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    tensors = {
        "coef": np.ascontiguousarray(coef, dtype="<f8"),
        "intercept": np.ascontiguousarray(model.intercept_, dtype="<f8"),
    }
    if hasattr(model, "n_support_"):
        tensors["n_support"] = np.ascontiguousarray(model.n_support_, dtype="<i8")
    if duals:
        tensors["support"] = np.ascontiguousarray(model.support_, dtype="<i8")
        tensors["dual_coef"] = np.ascontiguousarray(model.dual_coef_, dtype="<f8")
    return {"n_rows": int(model._n_rows) if duals else None}, tensors


def _make_linear(model: Any, record: Record, tensors: Tensors) -> None:
    classes = len(getattr(model, "classes_", "ab"))  # as many problems as two have
    kind = getattr(model, "multi_class", "ovr")
    problems, together = number_of_problems(kind, classes), kind == "crammer_singer"
    n, d = record["n_rows"], model.n_features_in_
    flat = isinstance(model, LinearSVR)
    expected: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
        "coef": (("F64",), (d,) if flat else (problems, d)),
        "intercept": (("F64",), (problems,)),
    }
    if n is not None:
        size = tensors["support"].size if "support" in tensors else -1
        expected["support"] = (("I64",), (-1,))
        tables = classes if together else problems
        if kind == "ovo":
            tables = classes - 1
        expected["dual_coef"] = (("F64",), (tables, size))
    if "n_support" in tensors and isinstance(model, LinearSVC):
        expected["n_support"] = (("I64",), (classes,))
    file.expect_tensors(tensors, expected)
    certificates = _certificates(record, 1 if together else problems)
    model.coef_, model.intercept_ = tensors["coef"], tensors["intercept"]
    model.certificate_ = one_or_all(certificates)
    model.n_iter_ = max(certificate.epochs for certificate in certificates)
    if "n_support" in expected:
        counts = tensors["n_support"]
        if not 0 <= counts.min() <= counts.max() < 2**31 or (
            n is not None and counts.sum() != size
        ):
            raise ValueError("n_support does not count the support vectors")
        model.n_support_ = counts.astype(np.int32)
    if isinstance(model, LinearOneClassSVM):
        model.offset_ = -model.intercept_
    if n is not None:
        model.support_ = _support(tensors, n)
        if (np.diff(model.support_) <= 0).any():
            raise ValueError("support is not sorted")
        model.dual_coef_, model._n_rows = tensors["dual_coef"], n
        if isinstance(model, LinearSVC):
            model._fitted_C = model.C


# -------------------------------------------------------------------------------- SVC


def _take_kernel(model: Any, duals: bool) -> tuple[Record, Tensors]:
    tensors = {
        "dual_coef": np.ascontiguousarray(model.dual_coef_, dtype="<f8"),
        "intercept": np.ascontiguousarray(model.intercept_, dtype="<f8"),
        "n_support": np.ascontiguousarray(model.n_support_, dtype="<i8"),
        "support": np.ascontiguousarray(model.support_, dtype="<i8"),
    }
    vectors = model.support_vectors_
    if sparse.issparse(vectors):
        vectors = sparse.csr_matrix(vectors)
        tensors |= {
            "support_vectors.data": np.ascontiguousarray(vectors.data),
            "support_vectors.indices": np.ascontiguousarray(vectors.indices, "<i8"),
            "support_vectors.indptr": np.ascontiguousarray(vectors.indptr, "<i8"),
        }
    elif not isinstance(model._fitted_kernel, Precomputed):
        tensors["support_vectors"] = np.ascontiguousarray(vectors)
    kernel = _plain("kernel", model._fitted_kernel, _FACES["SVC"])
    return {"n_rows": int(model.shape_fit_[0]), "kernel": kernel}, tensors


def _make_kernel(model: Any, record: Record, tensors: Tensors) -> None:
    kernel = _parameter("kernel", record["kernel"], _FACES["SVC"])
    if isinstance(getattr(kernel, "gamma", 1.0), str):
        raise ValueError(f"its kernel has gamma={kernel.gamma!r}, no number")
    n, d = record["n_rows"], model.n_features_in_
    single = not hasattr(model, "classes_")
    classes = 2 if single else len(model.classes_)
    pairs = classes * (classes - 1) // 2
    size = tensors["support"].size if "support" in tensors else -1
    expected: dict[str, tuple[tuple[str, ...], tuple[int, ...]]] = {
        "dual_coef": (("F64",), (classes - 1, size)),
        "intercept": (("F64",), (pairs,)),
        "n_support": (("I64",), (1 if single else classes,)),
        "support": (("I64",), (-1,)),
    }
    floats = ("F32", "F64")
    if isinstance(kernel, Precomputed):
        if n != d:
            raise ValueError(f"a precomputed kernel of {n} rows and {d} columns")
    elif "support_vectors" in tensors:
        expected["support_vectors"] = (floats, (size, d))
    else:
        expected["support_vectors.data"] = (floats, (-1,))
        expected["support_vectors.indices"] = (("I64",), (-1,))
        expected["support_vectors.indptr"] = (("I64",), (size + 1,))
    file.expect_tensors(tensors, expected)
    if not isinstance(n, int):
        raise ValueError("n_rows in its record is missing")
    counts = tensors["n_support"]
    if (counts < 0).any() or (counts > size).any() or counts.sum() != size:
        raise ValueError(f"n_support does not count the {size} support vectors")
    certificates = _certificates(record, pairs)
    model.support_ = _support(tensors, n)
    model.n_support_ = counts.astype(np.int32)
    model.dual_coef_, model.intercept_ = tensors["dual_coef"], tensors["intercept"]
    model.support_vectors_ = _vectors(tensors, size, d)
    model.shape_fit_ = (n, d)
    model._fitted_kernel = kernel
    model.certificate_ = one_or_all(certificates)
    epochs = np.array([c.epochs for c in certificates], np.int64)
    model.n_iter_ = int(epochs[0]) if single else epochs
    model.fit_status_ = int(not all(c.certified for c in certificates))


def _vectors(tensors: Tensors, size: int, d: int) -> Any:
    if "support_vectors" in tensors:
        return tensors["support_vectors"]
    if "support_vectors.data" not in tensors:
        return np.empty((0, 0))
    data, indices, indptr = (
        tensors[f"support_vectors.{part}"] for part in ("data", "indices", "indptr")
    )
    if (
        len(data) != len(indices)
        or indptr[0] != 0
        or indptr[-1] != len(data)
        or (np.diff(indptr) < 0).any()
        or (indices.size and not 0 <= indices.min() <= indices.max() < d)
    ):
        raise ValueError("support_vectors are not a sound CSR matrix")
    # SciPy narrows the indices where they fit, as scikit-learn wants them.
    vectors = sparse.csr_matrix((data, indices, indptr), shape=(size, d))
    if not vectors.has_canonical_format:
        raise ValueError("support_vectors are not a sound CSR matrix")
    return vectors


_BOX: Any = (
    {"solver": BOX_SOLVERS, "kernel": KERNELS},
    {"kernel": dict},
    _take_kernel,
    _make_kernel,
    False,
)
_FACES: dict[str, _Face] = {
    "LinearSVC": _Face(
        LinearSVC,
        {"loss": LOSSES, "solver": SOLVERS},
        {},
        _take_linear,
        _make_linear,
        later=frozenset({"multi_class"}),
    ),
    "SVC": _Face(
        SVC,
        {
            "loss": LOSSES,
            "solver": KERNEL_SOLVERS | APPROXIMATIONS,
            "kernel": KERNELS,
        },
        {"kernel": dict},
        _take_kernel,
        _make_kernel,
    ),
    "LinearSVR": _Face(
        LinearSVR,
        {},
        {},
        _take_linear,
        _make_linear,
        False,
        later=frozenset({"solver"}),
    ),
    "LinearOneClassSVM": _Face(
        LinearOneClassSVM, {}, {}, _take_linear, _make_linear, False
    ),
    "SVR": _Face(SVR, *_BOX),
    "OneClassSVM": _Face(OneClassSVM, *_BOX),
}

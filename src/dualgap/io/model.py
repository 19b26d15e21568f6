"""Model files: safetensors with a record of what the model is. Loading runs no code.

The tensors are ``coef`` and ``intercept``, and ``support`` and ``dual_coef`` where the
duals were kept, so that any reader of safetensors can use the model. All the rest is
one JSON text, the metadata entry ``"dualgap"``: format and versions, estimator and
parameters, classes, certificates, feature names, and a SHA-256 over everything.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import os
import types
import typing
from collections.abc import Mapping
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ..certificate import Certificate, Status
from ..losses import LOSSES
from .atomic import write_atomically

if TYPE_CHECKING:
    from ..estimators import LinearSVC

__all__ = ["load_model", "save_model"]

FORMAT = "dualgap-model"
FORMAT_VERSION = 1

Path = str | os.PathLike[str]
Scalar = str | int | float | bool | None
Record = dict[str, Any]
Tensors = dict[str, NDArray[Any]]

_ENTRY = "dualgap"  # the one metadata entry: two would be written in any order
_DTYPES = {"F64": np.dtype("<f8"), "I64": np.dtype("<i8")}
_TENSORS = {"coef": "F64", "intercept": "F64"}
_DUAL_TENSORS = {"support": "I64", "dual_coef": "F64"}
_CLASS_DTYPES: dict[str, type] = {
    "bool": bool,
    **{f"{kind}{bits}": int for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": float for bits in (16, 32, 64)},
    "str": str,
    "object": str,
}
_FIELDS: dict[str, type | types.UnionType] = {
    "format": str,
    "format_version": int,
    "dualgap_version": str,
    "estimator": str,
    "parameters": dict,
    "classes": dict,
    "n_features": int,
    "n_rows": int | None,
    "feature_names": list | None,
    "certificates": list,
    "notes": dict,
    "sha256": str,
}


def save_model(
    model: LinearSVC,
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
    model : LinearSVC
        Fitted.
    path : str or path-like
        By custom ``*.safetensors``.
    duals : bool, default=False
        Keep the dual variables too (16 bytes per support vector and class), so that
        the loaded model can be refitted with ``warm_start=True``.
    notes : mapping of str to str, int, float, bool or None, optional
        Remarks of the caller's own, given back by ``load_model(return_notes=True)``.

    Raises
    ------
    ImportError
        If the package safetensors is missing.
    OSError
        If the file cannot be written.
    TypeError
        If the model is not a LinearSVC.
    ValueError
        If the model is not fitted, is not finite, or has a parameter that a file
        cannot hold: a solver or loss of your own, or a RandomState.

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
    safetensors = _safetensors("writing")
    name = type(model).__name__
    if type(model) is not _estimators().get(name):
        raise TypeError(
            f"model is a {name}; a model file holds a LinearSVC. Of a pipeline, give "
            "its last step, pipeline[-1]"
        )
    record, tensors = _take_apart(model, duals, dict(notes or {}))
    record["sha256"] = _digest(record, tensors)
    # Also what the file says must be what load_model accepts.
    _assemble(record, tensors)
    content = safetensors.save(tensors, metadata={_ENTRY: _json(record)})
    with write_atomically(path) as file:
        file.write(content)


@overload
def load_model(path: Path, *, return_notes: Literal[False] = ...) -> LinearSVC: ...


@overload
def load_model(
    path: Path, *, return_notes: Literal[True]
) -> tuple[LinearSVC, dict[str, Scalar]]: ...


def load_model(
    path: Path, *, return_notes: bool = False
) -> LinearSVC | tuple[LinearSVC, dict[str, Scalar]]:
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
    model : LinearSVC
        Fitted, with ``certificate_``; with ``dual_coef_`` and ``support_`` if they
        were kept; without ``history_``.
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
    _safetensors("reading")
    name = os.fsdecode(path)
    with open(name, "rb") as file:  # the usual OSError, with the name
        start = file.read(9)
    try:
        if start[8:] != b"{":
            raise ValueError("it does not begin as a safetensors file does")
        record, tensors = _read(name)
        model = _assemble(record, tensors)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise ValueError(f"{name} is not a sound dualgap model: {error}") from error
    return (model, record["notes"]) if return_notes else model


def _safetensors(doing: str) -> Any:
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            f"{doing} a model file needs the package safetensors: "
            "pip install 'dualgap[cli]'"
        ) from error
    return safetensors.numpy


# Imported late: the estimators stand floors above, and only their names are used here.
def _estimators() -> dict[str, type[LinearSVC]]:
    from ..estimators import LinearSVC

    return {"LinearSVC": LinearSVC}


def _records() -> dict[str, Mapping[str, type[Any]]]:
    """Registers of the parameters that may be records instead of names."""
    from ..solvers import SOLVERS

    return {"loss": LOSSES, "solver": SOLVERS}


# --------------------------------------------------------------- from model to record


def _take_apart(
    model: LinearSVC, duals: bool, notes: dict[str, Scalar]
) -> tuple[Record, Tensors]:
    from sklearn.utils.validation import check_is_fitted

    from .. import __version__

    check_is_fitted(model)
    if duals and not hasattr(model, "dual_coef_"):
        raise ValueError(
            "duals=True: this model has no dual variables; it was loaded from a file "
            "that did not keep them"
        )
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    arrays = {"coef": coef, "intercept": model.intercept_}
    if duals:
        arrays |= {"support": model.support_, "dual_coef": model.dual_coef_}
    kinds = _TENSORS | _DUAL_TENSORS
    tensors = {
        name: np.ascontiguousarray(array, dtype=_DTYPES[kinds[name]])
        for name, array in arrays.items()
    }
    certificates = model.certificate_
    if isinstance(certificates, Certificate):
        certificates = [certificates]
    names = getattr(model, "feature_names_in_", None)
    record = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "dualgap_version": __version__,
        "estimator": type(model).__name__,
        "parameters": {
            key: _plain_parameter(key, value)
            for key, value in model.get_params(deep=False).items()
        },
        "classes": {
            "dtype": _dtype_name(model.classes_),
            "values": model.classes_.tolist(),
        },
        "n_features": int(model.n_features_in_),
        "n_rows": int(model._n_rows) if duals else None,
        "feature_names": None if names is None else names.tolist(),
        "certificates": [
            _plain_fields(c) | {"status": c.to_dict()["status"]} for c in certificates
        ],
        "notes": {key: _scalar(key, value) for key, value in notes.items()},
    }
    return record, tensors


def _plain_parameter(key: str, value: Any) -> Any:
    """Of a parameter: JSON from which :func:`_parameter` makes the same."""
    if isinstance(value, dict):
        return {"pairs": [[_scalar(key, k), _scalar(key, v)] for k, v in value.items()]}
    register = _records().get(key, {})
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        name = str(getattr(value, "name", ""))
        if register.get(name) is not type(value):
            raise ValueError(
                f"{key}={value!r}: a model file holds the records of dualgap only"
            )
        return {"record": name, "fields": _plain_fields(value)}
    return _scalar(key, value)


def _plain_fields(record: Any) -> Record:
    return {
        field.name: getattr(record, field.name)
        if isinstance(getattr(record, field.name), Status)
        else _scalar(field.name, getattr(record, field.name))
        for field in dataclasses.fields(record)
        if field.init
    }


def _scalar(name: str, value: Any) -> Scalar:
    """A number, a string, a truth value or None, freed of NumPy's types."""
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        if not math.isfinite(value):
            raise ValueError(f"{name}={value!r} is not finite")
        return float(value)
    remedy = "; give an int as the seed" if name == "random_state" else ""
    raise ValueError(
        f"{name}={value!r}: a model file holds numbers, strings and None only{remedy}"
    )


def _dtype_name(classes: NDArray[Any]) -> str:
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    if name not in _CLASS_DTYPES:
        raise ValueError(f"classes of dtype {name!r} cannot be held by a model file")
    return str(name)


def _json(record: Record) -> str:
    return json.dumps(record, allow_nan=False, separators=(",", ":"))


def _digest(record: Record, tensors: Tensors) -> str:
    """SHA-256 of the record without its own digest, and of the tensors."""
    record = {key: value for key, value in record.items() if key != "sha256"}
    digest = hashlib.sha256(_json(record).encode())
    for name, array in sorted(tensors.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


# --------------------------------------------------------------- from record to model


def _read(path: str) -> tuple[Record, Tensors]:
    """Record and tensors of a file, of known names and dtypes, whole and undamaged."""
    import safetensors

    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            record = _parse((file.metadata() or {}).get(_ENTRY))
            tensors = {}
            kinds = _TENSORS | (_DUAL_TENSORS if record["n_rows"] is not None else {})
            if set(file.keys()) != set(kinds):
                raise ValueError(
                    f"it holds the tensors {sorted(file.keys())}, expected "
                    f"{sorted(kinds)}"
                )
            for name, kind in kinds.items():
                if file.get_slice(name).get_dtype() != kind:
                    raise ValueError(f"tensor {name} is not of type {kind}")
                tensors[name] = np.array(file.get_tensor(name), dtype=_DTYPES[kind])
    except safetensors.SafetensorError as error:
        raise ValueError(str(error)) from error
    if _digest(record, tensors) != record["sha256"]:
        raise ValueError("its checksum is wrong, so it was damaged or edited")
    return record, tensors


def _parse(text: str | None) -> Record:
    if text is None:
        raise ValueError("it has no dualgap record")
    record = json.loads(text, parse_constant=_refuse_constant)
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"its record is not of the format {FORMAT}")
    found = record.get("format_version")
    if found != FORMAT_VERSION or isinstance(found, bool):
        raise ValueError(
            f"it has format version {found!r}, written by dualgap "
            f"{record.get('dualgap_version')!r}; this dualgap reads version "
            f"{FORMAT_VERSION}: pip install --upgrade dualgap"
        )
    if set(record) != set(_FIELDS):
        raise ValueError(f"its record has the fields {sorted(record)}")
    for key, kind in _FIELDS.items():
        if not isinstance(record[key], kind) or isinstance(record[key], bool):
            raise ValueError(f"{key} in its record is a {type(record[key]).__name__}")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"its record holds {name}")


def _assemble(record: Record, tensors: Tensors) -> LinearSVC:
    """The model, every part of it checked."""
    estimator = _estimators().get(record["estimator"])
    if estimator is None:
        raise ValueError(f"estimator {record['estimator']!r} is unknown here")
    model = estimator(**_parameters(record["parameters"], estimator))
    # scikit-learn's own check of parameters, the one that fit begins with
    model._validate_params()

    classes = _classes(record["classes"])
    problems = 1 if len(classes) == 2 else len(classes)
    d = record["n_features"]
    _expect(tensors, "coef", (problems, d))
    _expect(tensors, "intercept", (problems,))
    if d < 1:
        raise ValueError("the model has no features")
    certificates = [_certificate(fields) for fields in record["certificates"]]
    if len(certificates) != problems:
        raise ValueError(f"{len(certificates)} certificates for {problems} problem(s)")
    for note, value in record["notes"].items():
        if not isinstance(note, str):
            raise ValueError(f"the name of a note, {note!r}, is not a string")
        _scalar(note, value)

    model.classes_ = classes
    model.n_features_in_ = d
    model.coef_, model.intercept_ = tensors["coef"], tensors["intercept"]
    model.certificate_ = certificates[0] if problems == 1 else certificates
    model.n_iter_ = max(certificate.epochs for certificate in certificates)
    names = record["feature_names"]
    if names is not None:
        if len(names) != d or not all(isinstance(name, str) for name in names):
            raise ValueError(f"feature_names are not {d} strings")
        model.feature_names_in_ = np.array(names, dtype=object)
    n = record["n_rows"]
    if n is not None:
        support = tensors["support"]
        _expect(tensors, "support", (support.size,))
        _expect(tensors, "dual_coef", (problems, support.size))
        if support.size and not 0 <= support[0] <= support[-1] < n:
            raise ValueError(f"support is not within the {n} rows of the training data")
        if (np.diff(support) <= 0).any():
            raise ValueError("support is not sorted")
        model.support_, model.dual_coef_ = support.astype(np.intp), tensors["dual_coef"]
        model._n_rows = n
    return model


def _expect(tensors: Tensors, name: str, shape: tuple[int, ...]) -> None:
    if tensors[name].shape != shape:
        raise ValueError(f"{name} has shape {tensors[name].shape}, expected {shape}")
    if not np.isfinite(tensors[name]).all():
        raise ValueError(f"{name} holds NaN or infinite values")


def _parameters(plain: Record, estimator: type[LinearSVC]) -> Record:
    known = set(estimator().get_params(deep=False))
    if set(plain) != known:
        raise ValueError(
            f"its parameters are {sorted(plain)}, expected {sorted(known)}"
        )
    return {key: _parameter(key, value) for key, value in plain.items()}


def _parameter(key: str, value: Any) -> Any:
    """The inverse of :func:`_plain_parameter`."""
    if not isinstance(value, dict):
        return _scalar(key, value)
    if set(value) == {"pairs"}:
        weights = {_scalar(key, k): _scalar(key, v) for k, v in value["pairs"]}
        if not all(_is_a(weight, float) for weight in weights.values()):
            raise ValueError(f"{key}={weights!r}: weights must be numbers")
        return weights
    register = _records().get(key, {})
    if set(value) != {"record", "fields"} or value["record"] not in register:
        raise ValueError(f"{key}={value!r} is unknown here")
    return _from_fields(register[value["record"]], value["fields"])


def _from_fields(record: Any, fields: Any) -> Any:
    """A dataclass from its fields, names and types checked, values by itself."""
    hints = _hints(record)
    known = {field.name for field in dataclasses.fields(record) if field.init}
    if not isinstance(fields, dict) or set(fields) != known:
        raise ValueError(f"{record.__name__} has the fields {sorted(known)}")
    for name, value in fields.items():
        if not _is_a(value, hints[name]):
            raise ValueError(f"{record.__name__}: {name}={value!r} is of a wrong type")
    return record(**fields)


@functools.cache  # slow: the annotations are compiled
def _hints(record: Any) -> dict[str, Any]:
    return typing.get_type_hints(record)


def _is_a(value: Any, hint: Any) -> bool:
    """Whether a JSON scalar is what an annotation says."""
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_a(value, option) for option in typing.get_args(hint))
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if hint is float else hint)


def _certificate(fields: Any) -> Certificate:
    labels = {status.label: status for status in Status}
    if not isinstance(fields, dict) or fields.get("status") not in labels:
        raise ValueError("a certificate has no known status")
    status = labels[fields["status"]]
    c: Certificate = _from_fields(Certificate, fields | {"status": status})
    if not all(
        math.isfinite(number) for number in (c.primal, c.dual, c.seconds, c.tol)
    ):
        raise ValueError("a certificate holds infinite values")
    if min(c.epochs, c.updates) < 0:
        raise ValueError("a certificate counts below 0")
    return c


def _classes(plain: Record) -> NDArray[Any]:
    if set(plain) != {"dtype", "values"} or not isinstance(plain["values"], list):
        raise ValueError("classes in its record are not a dtype and a list")
    name, values = plain["dtype"], plain["values"]
    if not isinstance(name, str) or name not in _CLASS_DTYPES:
        raise ValueError(f"classes of dtype {name!r} cannot be held by a model file")
    dtype = np.dtype(name)
    if not all(type(value) is _CLASS_DTYPES[name] for value in values):
        raise ValueError(f"classes {values!r} are not all of dtype {name}")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not all(limits.min <= value <= limits.max for value in values):
            raise ValueError(f"classes {values!r} do not fit into {name}")
    with np.errstate(over="ignore"):  # found just below
        classes = np.array(values, dtype=dtype)
    # An equal list: none was rounded, cut or wrapped on the way.
    if classes.tolist() != values or np.unique(classes).tolist() != values:
        raise ValueError(f"classes {values!r} are not sorted values of dtype {name}")
    if len(classes) < 2:
        raise ValueError("a model needs 2 classes or more")
    return classes

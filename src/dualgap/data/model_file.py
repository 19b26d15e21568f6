"""File format of models: safetensors with a JSON record. Reading runs no code.

A file contains named tensors, which any reader of safetensors can use, and one JSON
text in the metadata entry ``"dualgap"``. The text contains format and versions, the
fields of the estimator, and a SHA-256 of the whole content.

``models/files.py`` interprets the record. This module writes and reads plain
values exactly, and converts them to and from dualgap's frozen dataclasses.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import os
import stat
import types
import typing
from collections.abc import Iterable, Mapping
from numbers import Integral, Real
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..certificate import Bounds, Certificate, Status
from ..names import own_version
from .atomic import write_atomically
from .types import Array, Matrix

T = TypeVar("T")

FORMAT = "dualgap-model"
#: Version of the format; files of others are refused.
_VERSION = 1
#: First letters of the tensors of the region that contains the optimum.
OPTIMUM = "optimum."

Path = str | os.PathLike[str]
Scalar = str | int | float | bool | None
Record = dict[str, Any]
Tensors = dict[str, Array]
#: The allowed types of a tensor, such as ``("F64",)``, and its shape, where -1 stands
#: for any length.
Shape = tuple[tuple[str, ...], tuple[int, ...]]
Expected = Mapping[str, Shape]

_ENTRY = "dualgap"  # a single metadata entry, so that files are reproducible
DTYPES: dict[str, np.dtype[np.generic]] = {
    "U8": np.dtype("|u1"),
    "U32": np.dtype("<u4"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
}
_CLASS_DTYPES: dict[str, type] = {
    "bool": bool,
    **{f"{kind}{bits}": int for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
    **{f"float{bits}": float for bits in (16, 32, 64)},
    "str": str,
    "object": str,
}
_HEADER: dict[str, type] = {
    "format": str,
    "format_version": int,
    "dualgap_version": str,
    "estimator": str,
    "sha256": str,
}


# ---------------------------------------------------------------------- whole files


def common_fields(
    model: Any, names: Iterable[str] | None, notes: Mapping[str, Scalar]
) -> Record:
    """Return the fields that the records of all models have."""
    known = getattr(model, "classes_", None)
    return {
        "classes": None if known is None else classes_fields(known),
        "n_features": int(model.n_features_in_),
        "feature_names": None if names is None else list(names),
        "certificates": [certificate_fields(c) for c in model.certificate_],
        "notes": {key: scalar(key, value) for key, value in notes.items()},
    }


def linear_parts(model: Any) -> tuple[Record, Tensors]:
    """Return the other fields and the tensors of a linear model without its duals."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    tensors = {
        "coef": np.ascontiguousarray(coef, dtype="<f8"),
        "intercept": np.ascontiguousarray(model.intercept_, dtype="<f8"),
    }
    if hasattr(model, "n_support_"):
        tensors["n_support"] = np.ascontiguousarray(model.n_support_, dtype="<i8")
    # In Fortran order after sparse rows.
    fortran = coef.flags.f_contiguous and not coef.flags.c_contiguous
    return {"n_rows": None, "coef_order": "F" if fortran else "C"}, tensors


def seal(record: Record, tensors: Tensors, format: str = FORMAT) -> Record:
    """Return the record with format, versions and checksum added."""
    record = {
        "format": format,
        "format_version": _VERSION,
        "dualgap_version": own_version(),
        **record,
    }
    return {**record, "sha256": digest(record, tensors)}


def write(path: Path, record: Record, tensors: Tensors) -> None:
    """Write a sealed record and its tensors atomically."""
    safetensors("writing")  # raise now if the file could not be read back
    # The format of the library's `save`, written without its copies of all tensors:
    # the length of the header, the header in JSON, and the data, with aligned tensors.
    named = sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0]))
    kinds = {dtype: kind for kind, dtype in DTYPES.items()}
    header: Record = {"__metadata__": {_ENTRY: _json(record)}}
    at = 0
    for name, array in named:
        header[name] = {
            "dtype": kinds[array.dtype],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with write_atomically(path) as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for _, array in named:
            file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def read(path: str, format: str = FORMAT) -> tuple[Record, Tensors]:
    """Read record and tensors of a file, and check its format and checksum.

    Only the header fields of the record are checked here.
    """
    safetensors("reading")
    import safetensors as library

    kind = os.stat(path).st_mode  # the usual OSError, with the name
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        raise ValueError("it is a pipe or a device, not a regular file")
    with open(path, "rb") as file:
        start = file.read(9)
    if start[8:] != b"{":
        raise ValueError("it is not a safetensors file")
    tensors = {}
    try:
        with library.safe_open(path, framework="numpy") as file:
            record = _parse((file.metadata() or {}).get(_ENTRY), format)
            names = file.keys()
            for name in names:
                kind = file.get_slice(name).get_dtype()
                if kind not in DTYPES:
                    raise ValueError(f"tensor {name} has the unknown type {kind}")
                tensors[name] = np.array(file.get_tensor(name), dtype=DTYPES[kind])
    except library.SafetensorError as error:
        raise ValueError(str(error)) from error
    if digest(record, tensors) != record["sha256"]:
        raise ValueError("its checksum is wrong: it was damaged or edited")
    return record, tensors


def safetensors(doing: str) -> Any:
    """Return the module safetensors.numpy, needed for `doing` ("reading")."""
    try:
        import safetensors.numpy
    except ImportError as error:
        raise ImportError(
            f"{doing} a model file needs the package safetensors; install it with: "
            "pip install 'dualgap[cli]'"
        ) from error
    return safetensors.numpy


def _json(record: Record) -> str:
    return json.dumps(record, allow_nan=False, separators=(",", ":"))


def digest(record: Record, tensors: Tensors) -> str:
    """Return the SHA-256 of the record, without its digest, and of the tensors."""
    record = {key: value for key, value in record.items() if key != "sha256"}
    found = hashlib.sha256(_json(record).encode())
    for name, array in sorted(tensors.items()):
        found.update(f"{name} {array.dtype.str} {array.shape}".encode())
        found.update(array.reshape(-1).view(np.uint8).data)
    return found.hexdigest()


def _parse(text: str | None, format: str) -> Record:
    if text is None:
        raise ValueError("it has no dualgap record")
    try:
        record = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise ValueError("its record is nested too deeply") from None
    if not isinstance(record, dict) or record.get("format") != format:
        raise ValueError(f"its record does not have the format {format}")
    found = record.get("format_version")
    if found != _VERSION or isinstance(found, bool):
        raise ValueError(
            f"it has format version {found!r} of dualgap "
            f"{record.get('dualgap_version')!r}, but this version reads only "
            f"{_VERSION}; upgrade with: pip install --upgrade dualgap"
        )
    expect_fields(record, _HEADER, others=True)
    # The digest covers parsed values. Compare the text too: it may have digits that a
    # float64 does not hold.
    if _json(record) != text:
        raise ValueError("its record was damaged or edited")
    return record


def _refuse_constant(name: str) -> None:
    raise ValueError(f"its record contains {name}")


def expect_fields(
    record: Record,
    fields: Mapping[str, type | types.UnionType],
    *,
    others: bool = False,
) -> None:
    """Raise an error if a record lacks a field, or a field has another type.

    With ``others=False``, the record may have only these fields and the header's.
    """
    known = set(fields) | set(_HEADER)
    if not known <= set(record) or not (others or set(record) == known):
        raise ValueError(f"its record has unexpected fields: {sorted(record)}")
    for key, kind in fields.items():
        if not isinstance(record[key], kind) or isinstance(record[key], bool):
            raise ValueError(f"{key} in its record is a {type(record[key]).__name__}")


def expect_tensors(
    tensors: Tensors, expected: Expected, infinite: bool = False
) -> None:
    """Raise an error for tensors with other names, types, shapes or non-finite values.

    With ``infinite=True``, values may be infinite.
    """
    if set(tensors) != set(expected):
        raise ValueError(
            f"it has the tensors {sorted(tensors)}, but should have {sorted(expected)}"
        )
    for name, (kinds, shape) in expected.items():
        found = tensors[name]
        if found.dtype not in [DTYPES[kind] for kind in kinds]:
            raise ValueError(f"tensor {name} is not of type {' or '.join(kinds)}")
        if len(found.shape) != len(shape) or any(
            wanted not in (-1, size)
            for size, wanted in zip(found.shape, shape, strict=True)
        ):
            raise ValueError(f"{name} has shape {found.shape}, but should have {shape}")
        if not (np.isfinite(found) | (infinite & ~np.isnan(found))).all():
            raise ValueError(f"{name} contains NaN or infinite values")


# ---------------------------------------------------------------- dense or CSR matrices


def matrix_tensors(name: str, X: Matrix) -> Tensors:
    """Return a dense or sparse matrix as tensors, which :func:`matrix` reads back."""
    if not sparse.issparse(X):
        return {name: np.ascontiguousarray(X)}
    X = sparse.csr_matrix(X)
    return {
        f"{name}.data": np.ascontiguousarray(X.data),
        f"{name}.indices": np.ascontiguousarray(X.indices, "<i8"),
        f"{name}.indptr": np.ascontiguousarray(X.indptr, "<i8"),
    }


def matrix_shapes(tensors: Tensors, name: str, rows: int, columns: int) -> Expected:
    """Return what :func:`expect_tensors` should expect of a matrix."""
    floats = ("F32", "F64")
    if f"{name}.data" not in tensors:
        return {name: (floats, (rows, columns))}
    return {
        f"{name}.data": (floats, (-1,)),
        f"{name}.indices": (("I64",), (-1,)),
        f"{name}.indptr": (("I64",), (rows + 1,)),
    }


def matrix(tensors: Tensors, name: str, rows: int, columns: int) -> Matrix:
    """Return a matrix whose tensors have the right types and shapes.

    Raises ValueError if it is sparse, and its indices are invalid.
    """
    if name in tensors:
        return tensors[name]
    data, indices, indptr = (
        tensors[f"{name}.{part}"] for part in ("data", "indices", "indptr")
    )
    valid = (
        len(data) == len(indices)
        and indptr[0] == 0
        and indptr[-1] == len(data)
        and (np.diff(indptr) >= 0).all()
        and (not indices.size or 0 <= indices.min() <= indices.max() < columns)
    )
    if valid:
        # SciPy uses 32-bit indices where they suffice, as scikit-learn requires.
        found = sparse.csr_matrix((data, indices, indptr), shape=(rows, columns))
        if found.has_canonical_format:
            return found
    raise ValueError(f"{name} are not a valid CSR matrix")


# ------------------------------------------------------------- values to JSON and back


def scalar(name: str, value: object) -> Scalar:
    """Return a number, a string, a bool or None as a plain Python value."""
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        if not math.isfinite(value):
            remedy = "so a model file cannot hold it; pickle the model instead"
            raise ValueError(f"{name}={value!r} is not finite, {remedy}")
        return float(value)
    remedy = "; give an int as the seed" if name == "random_state" else ""
    raise ValueError(
        f"{name}={value!r} is not a number, string or None, so a model file cannot "
        f"hold it{remedy}"
    )


def fields_of(record: object) -> Record:
    """Return the fields of a frozen dataclass as JSON."""
    assert dataclasses.is_dataclass(record)
    return {
        field.name: scalar(field.name, getattr(record, field.name))
        for field in dataclasses.fields(record)
        if field.init
    }


def from_fields(record: type[T], fields: object, without: Iterable[str] = ()) -> T:
    """Return a dataclass from its fields, after checking their names and types.

    The class itself checks the values. Fields named in `without` are left at their
    defaults.
    """
    assert dataclasses.is_dataclass(record)
    hints = _hints(record)
    known = {field.name for field in dataclasses.fields(record) if field.init}
    known -= set(without)
    if not isinstance(fields, dict) or set(fields) != known:
        raise ValueError(f"{record.__name__} needs the fields {sorted(known)}")
    for name, value in fields.items():
        if not _is_a(value, hints[name]):
            raise ValueError(f"{record.__name__}: {name}={value!r} has a wrong type")
    return record(**fields)


@functools.cache  # slow: the annotations are compiled
def _hints(record: type) -> Record:
    return typing.get_type_hints(record)


def _is_a(value: object, hint: Any) -> bool:
    """Whether a JSON scalar has the type of an annotation."""
    if typing.get_origin(hint) is Literal:
        return value in typing.get_args(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_a(value, option) for option in typing.get_args(hint))
    if hint in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, (int, float) if hint is float else hint)


def certificate_fields(certificate: Certificate) -> Record:
    """Return a part of a certificate as JSON, which :func:`certificate` reads back.

    Infinite values are stored as None. The name is left out: the classes of the
    model tell it.
    """
    fields = dataclasses.replace(certificate, name="").to_dict()
    del fields["gap"], fields["relative_gap"]
    for value in ("primal", "dual"):
        if math.isinf(fields[value]):
            fields[value] = None
    return {name: scalar(name, value) for name, value in fields.items()}


def certificate(fields: object) -> Certificate:
    """Invert :func:`certificate_fields`, and check every value."""
    labels = {status.label: status for status in Status}
    if not isinstance(fields, dict) or fields.get("status") not in labels:
        raise ValueError("a certificate has an unknown status")
    status = labels[fields["status"]]
    unknown = set()  # infinite bounds
    if status is not Status.CERTIFIED:
        unknown = {name for name in ("primal", "dual") if fields.get(name, 0) is None}
    fields = {"atol": 0.0} | fields | {"status": status}  # stored if it is not 0
    numbers = {f.name: fields.pop(f.name, None) for f in dataclasses.fields(Bounds)}
    numbers |= {name: math.inf if name == "primal" else -math.inf for name in unknown}
    bounds = from_fields(Bounds, numbers)
    whole = fields | {"bounds": bounds}
    c: Certificate = from_fields(Certificate, whole, without=("name", "several"))
    finite = [c.seconds, c.tol, c.atol, c.floor]
    if not unknown:
        finite.append(c.rounding)
    finite += [getattr(c, name) for name in {"primal", "dual"} - unknown]
    if not all(map(math.isfinite, finite)):
        raise ValueError("a certificate contains infinite values")
    if min(c.epochs, c.updates) < 0:
        raise ValueError("a certificate has a negative number of epochs or updates")
    return c


def classes_fields(classes: NDArray[np.generic]) -> Record:
    """Return sorted class labels as JSON, from which :func:`classes` restores them."""
    return {"dtype": _dtype_name(classes), "values": classes.tolist()}


def _dtype_name(classes: NDArray[np.generic]) -> str:
    name = "str" if classes.dtype.kind == "U" else classes.dtype.name
    if name not in _CLASS_DTYPES:
        raise ValueError(f"a model file cannot hold classes of dtype {name!r}")
    return str(name)


def classes(plain: Record) -> NDArray[np.generic]:
    """Invert :func:`classes_fields`, and check every value."""
    if set(plain) != {"dtype", "values"} or not isinstance(plain["values"], list):
        raise ValueError("classes in its record are not a dtype and a list")
    name, values = plain["dtype"], plain["values"]
    if not isinstance(name, str) or name not in _CLASS_DTYPES:
        raise ValueError(f"a model file cannot hold classes of dtype {name!r}")
    dtype = np.dtype(name)
    if not all(type(value) is _CLASS_DTYPES[name] for value in values):
        raise ValueError(f"classes {values!r} are not all of dtype {name}")
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        if not all(limits.min <= value <= limits.max for value in values):
            raise ValueError(f"classes {values!r} do not fit into {name}")
    with np.errstate(over="ignore"):  # checked below
        labels = np.array(values, dtype=dtype)
    # The lists are equal only if no value was rounded, truncated or wrapped.
    if labels.tolist() != values or np.unique(labels).tolist() != values:
        raise ValueError(f"classes {values!r} are not sorted values of dtype {name}")
    if len(labels) < 2:
        raise ValueError("a model needs 2 classes or more")
    return labels

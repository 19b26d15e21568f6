"""Regions that contain the optimum in model files.

A region is a tree of records of arrays and numbers. Its tensors have the names of the
fields, such as ``optimum.0.free.means`` for the means of the first problem. The numbers
of a record are one tensor, ``optimum.0.numbers``. Only these may be infinite.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ..answers.bias import Side
from ..answers.kernel_regions import BiasSide, KernelRegion
from ..answers.regions import Ellipsoid, FreeBias, LinearRegion
from ..data import model_file as file
from ..data.model_file import Tensors
from ..data.types import Matrix
from ..estimators.regions import Optimum

_Kept = LinearRegion | FreeBias | Side | Ellipsoid | KernelRegion | BiasSide

#: Fields of records: numbers are 1 or a pair is 2, an array is the letters of its
#: dimensions, and other records are their types. Letters are the same inside a record.
_FORMS: dict[type, dict[str, int | str | tuple[type, ...]]] = {
    LinearRegion: {
        "centre": "d", "intercept": 1, "constant": 1, "radius": 1,
        "squared_radius": 1, "offset": 1, "free": (FreeBias,),
        "ellipsoid": (Ellipsoid,),
    },
    FreeBias: {
        "upper": (Side,), "lower": (Side,), "errors": "K", "means": "Kd", "interval": 2,
    },
    Side: {"sigma": "K", "level": "K", "bend": "K", "rows": "m", "mu": "Km"},
    Ellipsoid: {"centre": "w", "root": "ww", "radius": 1},
    KernelRegion: {
        "rows": "m", "coef": "m", "intercept": 1, "constant": 1, "reach": 1,
        "radius": 1, "squared_radius": 1, "near": (BiasSide, BiasSide), "interval": 2,
    },
    BiasSide: {"side": (Side,), "norms": "K", "vectors": "md"},
}  # fmt: skip
_START = file.OPTIMUM


def region_tensors(model: BaseEstimator) -> Tensors:
    """Return the tensors of the region of `bound_optimum`; none without a region."""
    kept = vars(model).get("_optimum")
    if kept is None or kept.certificate != model.certificate_:
        return {}
    tensors: Tensors = {}
    for k, region in enumerate(kept.regions):
        _put(region, f"{_START}{k}", tensors)
    if kept.dual_coef is not None:
        tensors[f"{_START}dual_coef"] = np.ascontiguousarray(kept.dual_coef, "<f8")
    return tensors


def taken_region(tensors: Tensors) -> Tensors:
    """Take the tensors of a region out of the tensors of a file."""
    return {name: tensors.pop(name) for name in [*tensors] if name.startswith(_START)}


def set_region(model: BaseEstimator, tensors: Tensors) -> None:
    """Give a model the region of these tensors, after checking all of them."""
    if not tensors:
        return
    kernel, table = hasattr(model, "kernel"), None
    kind = KernelRegion if kernel else LinearRegion
    if not (kernel or hasattr(model, "coef_")) or not hasattr(model, "bound_optimum"):
        raise ValueError(f"a {type(model).__name__} has no region of the optimum")
    problems = len(model.intercept_)
    left = dict(tensors)
    if kernel:
        name = f"{_START}dual_coef"
        _expect(left, {name: (("F64",), model.dual_coef_.shape)})
        table = left.pop(name)
    regions = [_taken(kind, f"{_START}{k}", left, model) for k in range(problems)]
    if left:
        raise ValueError(f"it has the unexpected tensors {sorted(left)}")
    if len({region.constant for region in regions}) > 1:
        raise ValueError("the regions of its problems have different constants")
    joint = getattr(model, "multi_class", "ovr") == "crammer_singer"
    model._optimum = Optimum(model.certificate_, regions, joint, table)


def _put(record: _Kept, name: str, tensors: Tensors) -> None:
    """Add the tensors of a record."""
    numbers: list[float] = []
    for field, form in _FORMS[type(record)].items():
        value, own = getattr(record, field), f"{name}.{field}"
        if isinstance(form, int):
            numbers += [value] if form == 1 else value
        elif isinstance(form, str):
            dtype = "<i8" if field == "rows" else "<f8"
            tensors |= file.matrix_tensors(own, value.astype(dtype, copy=False))
        elif value is not None:
            parts = value if isinstance(value, tuple) else (value,)
            for part, its in zip(parts, _names(own, form), strict=True):
                _put(part, its, tensors)
    if numbers:
        tensors[f"{name}.numbers"] = np.array(numbers, "<f8")


def _taken(kind: type, name: str, tensors: Tensors, model: BaseEstimator) -> Any:
    """Take the tensors of a record out of others, and return the record."""
    found: dict[str, Any] = {}
    sizes = {"d": int(model.n_features_in_)}
    form = _FORMS[kind]
    for field, what in form.items():
        own = f"{name}.{field}"
        if isinstance(what, str):
            found[field] = _array(own, what, tensors, sizes)
        elif isinstance(what, tuple) and any(
            key.startswith(f"{own}.") for key in tensors
        ):
            parts = [
                _taken(part, its, tensors, model)
                for part, its in zip(what, _names(own, what), strict=True)
            ]
            found[field] = tuple(parts) if len(parts) > 1 else parts[0]
    counts = {field: n for field, n in form.items() if isinstance(n, int)}
    if counts:
        own = f"{name}.numbers"
        _expect(tensors, {own: (("F64",), (sum(counts.values()),))}, infinite=True)
        numbers = iter(tensors.pop(own).tolist())
        for field, n in counts.items():
            one = tuple(next(numbers) for _ in range(n))
            found[field] = one if n > 1 else one[0]
    optional = {f.name for f in dataclasses.fields(kind) if f.default is None}
    if not set(form) - optional <= set(found):
        raise ValueError(f"it lacks tensors of {name}")
    record = kind(**found)
    if not _possible(record):
        raise ValueError(f"the tensors of {name} have impossible values")
    return record


def _names(own: str, kinds: tuple[type, ...]) -> list[str]:
    """Return the names of the records of a field."""
    return [own] if len(kinds) == 1 else [f"{own}.{k}" for k in range(len(kinds))]


def _array(own: str, letters: str, tensors: Tensors, sizes: dict[str, int]) -> Matrix:
    """Take an array or a matrix out of tensors; its new sizes become known."""
    if len(letters) == 2 and f"{own}.data" in tensors:
        pointers = tensors.get(f"{own}.indptr", np.zeros(1))
        rows = sizes.get(letters[0], max(len(pointers) - 1, 0))
        columns = sizes[letters[1]]
        expected = file.matrix_shapes(tensors, own, rows, columns)
        _expect(tensors, expected)
        found = file.matrix(tensors, own, rows, columns)
    else:
        kind = "I64" if own.endswith(".rows") else "F64"
        shape = tuple(sizes.get(letter, -1) for letter in letters)
        expected = {own: ((kind,), shape)}
        _expect(tensors, expected)
        found = tensors[own]
    sizes.update(zip(letters, found.shape, strict=True))
    for name in expected:
        del tensors[name]
    return found


def _expect(tensors: Tensors, expected: file.Expected, infinite: bool = False) -> None:
    """Check some of the tensors as `expect_tensors` does."""
    some = {name: tensors[name] for name in expected if name in tensors}
    file.expect_tensors(some, expected, infinite)


def _possible(record: _Kept) -> bool:
    """Whether the values of a record can be about a region."""
    if isinstance(record, Side):
        return bool((record.sigma > 0.0).all()) and _positive(record.bend, record.mu)
    if isinstance(record, FreeBias):
        choices = len(record.upper.sigma) + len(record.lower.sigma)
        ordered = record.interval[0] <= record.interval[1]
        return choices == len(record.errors) and ordered and _positive(record.errors)
    if isinstance(record, BiasSide):
        K, m = record.side.mu.shape
        same = (K, m) == (len(record.norms), record.vectors.shape[0])
        return same and _positive(record.norms)
    if isinstance(record, Ellipsoid):
        return record.radius >= 0.0
    finite = [record.intercept, record.constant]
    sizes = [record.constant, record.radius, record.squared_radius]
    if isinstance(record, LinearRegion):
        finite.append(record.offset)
        sizes.append(record.offset)
        width = len(record.centre) + (record.constant > 0.0)
        if record.ellipsoid is not None and len(record.ellipsoid.centre) != width:
            return False
    else:
        sizes.append(record.reach)
        if not record.interval[0] <= record.interval[1]:
            return False
    return bool(np.isfinite(finite).all()) and _positive(sizes)


def _positive(*arrays: ArrayLike) -> bool:
    """Whether no value is negative."""
    return all((np.asarray(array) >= 0.0).all() for array in arrays)

"""Functions on fitted models: certificates, smaller models, and files.

A module is imported when one of its names is first used: some need optional packages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certification import certify as certify
    from .changed_rows import WhatIf as WhatIf
    from .changed_rows import influence as influence
    from .changed_rows import what_if as what_if
    from .compression import compress as compress
    from .explanations import ShapleyValues as ShapleyValues
    from .explanations import shapley_values as shapley_values
    from .files import load_model as load_model
    from .files import save_model as save_model
    from .leave_one_out import ErrorBounds as ErrorBounds
    from .leave_one_out import cv_bounds as cv_bounds
    from .leave_one_out import loo_bounds as loo_bounds
    from .onnx import register_skl2onnx as register_skl2onnx
    from .onnx import to_onnx as to_onnx
    from .peers import read_liblinear as read_liblinear
    from .peers import read_libsvm as read_libsvm
    from .peers import write_liblinear as write_liblinear
    from .peers import write_libsvm as write_libsvm
    from .proofs import write_proof as write_proof

_HOME = {
    name: module
    for module, names in {
        ".certification": ("certify",),
        ".changed_rows": ("WhatIf", "influence", "what_if"),
        ".compression": ("compress",),
        ".explanations": ("ShapleyValues", "shapley_values"),
        ".files": ("load_model", "save_model"),
        ".leave_one_out": ("ErrorBounds", "cv_bounds", "loo_bounds"),
        ".onnx": ("register_skl2onnx", "to_onnx"),
        ".peers": (
            *("read_liblinear", "read_libsvm"),
            *("write_liblinear", "write_libsvm"),
        ),
        ".proofs": ("write_proof",),
    }.items()
    for name in names
}
__all__ = [*_HOME]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOME[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Functions on fitted models: certificates, smaller models, and files.

A module is imported when one of its names is first used: some need optional packages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certification import certify
    from .changed_rows import WhatIf, what_if
    from .compression import compress
    from .explanations import ShapleyValues, shapley_values
    from .files import load_model, save_model
    from .influential_rows import influence
    from .leave_one_out import ErrorBounds, cv_bounds, loo_bounds
    from .onnx import register_skl2onnx, to_onnx
    from .peers import read_liblinear, read_libsvm, write_liblinear, write_libsvm
    from .proofs import write_proof

_HOME = {
    "ErrorBounds": ".leave_one_out",
    "ShapleyValues": ".explanations",
    "WhatIf": ".changed_rows",
    "certify": ".certification",
    "compress": ".compression",
    "cv_bounds": ".leave_one_out",
    "influence": ".influential_rows",
    "load_model": ".files",
    "loo_bounds": ".leave_one_out",
    "read_liblinear": ".peers",
    "read_libsvm": ".peers",
    "register_skl2onnx": ".onnx",
    "save_model": ".files",
    "shapley_values": ".explanations",
    "to_onnx": ".onnx",
    "what_if": ".changed_rows",
    "write_liblinear": ".peers",
    "write_libsvm": ".peers",
    "write_proof": ".proofs",
}

__all__ = [
    "ErrorBounds",
    "ShapleyValues",
    "WhatIf",
    "certify",
    "compress",
    "cv_bounds",
    "influence",
    "load_model",
    "loo_bounds",
    "read_liblinear",
    "read_libsvm",
    "register_skl2onnx",
    "save_model",
    "shapley_values",
    "to_onnx",
    "what_if",
    "write_liblinear",
    "write_libsvm",
    "write_proof",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_HOME[name], __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

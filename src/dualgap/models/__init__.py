"""Functions on fitted models: certificates, smaller models, and files.

A module is imported when one of its names is first used: some need optional packages.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .certification import certify
    from .compression import compress
    from .files import load_model, save_model
    from .onnx import register_skl2onnx, to_onnx
    from .peers import read_liblinear, read_libsvm, write_liblinear, write_libsvm
    from .proofs import write_proof

_HOME = {
    "certify": ".certification",
    "compress": ".compression",
    "load_model": ".files",
    "read_liblinear": ".peers",
    "read_libsvm": ".peers",
    "register_skl2onnx": ".onnx",
    "save_model": ".files",
    "to_onnx": ".onnx",
    "write_liblinear": ".peers",
    "write_libsvm": ".peers",
    "write_proof": ".proofs",
}

__all__ = [
    "certify",
    "compress",
    "load_model",
    "read_liblinear",
    "read_libsvm",
    "register_skl2onnx",
    "save_model",
    "to_onnx",
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

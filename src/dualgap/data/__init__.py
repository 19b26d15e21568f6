"""Rows in memory and in files: what X may be, row stores, svmlight text, conversion."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conversion import convert
    from .store import RowBatch, RowStore
    from .svmlight import load_svmlight

__all__ = ["RowBatch", "RowStore", "convert", "load_svmlight"]

# Imported on first use: a fit of rows in memory needs none of them.
_HOME = {
    "RowBatch": "store",
    "convert": "conversion",
    "RowStore": "store",
    "load_svmlight": "svmlight",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""Data files, row stores and model files."""

from .convert import convert
from .store import Batch, RowStore
from .svmlight import load_svmlight

__all__ = ["Batch", "RowStore", "convert", "load_svmlight"]

"""Reading and writing data and model files."""

from .svmlight import load_svmlight

__all__ = ["load_svmlight"]

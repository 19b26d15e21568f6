"""Reading and writing data and models."""

from .model import load_model, save_model
from .svmlight import load_svmlight

__all__ = ["load_model", "load_svmlight", "save_model"]

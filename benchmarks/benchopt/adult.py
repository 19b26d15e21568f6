"""The adult data for the same benchmark, from the folder that DUALGAP_DATA names.

Copy this file into its folder ``datasets``.
"""

import os
from pathlib import Path
from typing import ClassVar

from benchopt import BaseDataset, safe_import_context

with safe_import_context() as import_ctx:
    from dualgap.data import load_svmlight


class Dataset(BaseDataset):
    """a1a to a9a, svmlight text."""

    name = "adult"
    parameters: ClassVar = {"size": ["a1a", "a9a"]}

    def __init__(self, size="a9a"):
        self.size = size

    def get_data(self):
        X, y = load_svmlight(
            Path(os.environ["DUALGAP_DATA"], "adult", self.size + ".xz")
        )
        return X.shape[1], {"X": X, "y": y.astype(float)}

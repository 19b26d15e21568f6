"""Types of X and y as users pass them, and of the inspected rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from .blocks import RowSource

#: An array of any data type.
Array = NDArray[Any]

#: Rows after their inspection.
Matrix = NDArray[np.floating] | sparse.csr_matrix

#: Rows as users pass them: anything that NumPy makes an array of (a data frame, too), a
#: sparse matrix of any format, or a store.
MatrixLike = ArrayLike | sparse.spmatrix | sparse.sparray | RowSource

#: Labels as a file or the columns of a table name them.
Label = str | int | float | bool

#: What tells one of several problems: its positive class, or its pair of classes.
ProblemLabel = Label | tuple[Label, Label]

#: Parameters of an estimator, by name.
Parameters = dict[str, Any]

"""Calibrated classifiers in model files: the tensors of their calibrators.

``calibration.sigmoid`` has a slope and an offset for each calibrator,
``calibration.temperature`` the factor, and ``calibration.isotonic`` the decisions and
probabilities of all steps, whose calibrators end before the rows in
``calibration.ends``. ``calibration.folds`` is the number of folds.
"""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from ..data import model_file as file
from ..data.model_file import Tensors
from ..estimators.calibration import CalibratedClassifier
from ..estimators.calibrators import (
    Calibrator,
    IsotonicCalibrator,
    SigmoidCalibrator,
    TemperatureCalibrator,
)
from ..losses import Vector

_START = "calibration."


def calibration_tensors(model: CalibratedClassifier) -> Tensors:
    """Return the tensors of the calibrators."""
    rows, tensors = [one.table for one in model.calibrators_], Tensors()
    if model.method == "isotonic":
        tensors[f"{_START}ends"] = np.cumsum([len(own) for own in rows], dtype="<i8")
    tensors[f"{_START}{model.method}"] = np.ascontiguousarray(np.vstack(rows), "<f8")
    tensors[f"{_START}folds"] = np.array([model.n_splits_], "<i8")
    return tensors


def taken_calibration(tensors: Tensors) -> Tensors:
    """Take the tensors of calibrators out of a model file's; none without any."""
    names = [name for name in tensors if name.startswith(_START)]
    return {name.removeprefix(_START): tensors.pop(name) for name in names}


def set_calibration(model: BaseEstimator, given: Tensors) -> CalibratedClassifier:
    """Return the calibrated classifier of a loaded model."""
    found = [name for name in _WIDTHS if name in given]
    if len(found) != 1 or not hasattr(model, "classes_"):
        raise ValueError(f"the calibration has the tensors {sorted(given)}")
    method = found[0]
    classes = len(model.classes_)
    count = 1 if classes == 2 or method == "temperature" else classes
    rows = -1 if method == "isotonic" else count
    expected: dict[str, file.Shape] = {
        method: (("F64",), (rows, _WIDTHS[method])),
        "folds": (("I64",), (1,)),
    }
    if method == "isotonic":
        expected["ends"] = (("I64",), (count,))
    file.expect_tensors(given, expected)
    folds, table = int(given["folds"][0]), given[method]
    if folds < 2:
        raise ValueError(f"the calibration has {folds} folds")
    made = CalibratedClassifier(model, cv=folds).set_params(method=method)
    calibrators: list[Calibrator] = []
    if method == "isotonic":
        calibrators += _steps(table, given["ends"])
    elif method == "sigmoid":
        calibrators += [SigmoidCalibrator(*map(float, row)) for row in table]
    else:
        if not table[0, 0] > 0.0:
            raise ValueError("the temperature of the calibration is not positive")
        calibrators.append(TemperatureCalibrator(float(table[0, 0])))
    made.calibrators_, made.n_splits_ = tuple(calibrators), folds
    made.estimator_, made.classes_ = model, model.classes_
    return made


def _steps(table: Vector, ends: Vector) -> list[IsotonicCalibrator]:
    """Return calibrators whose decisions rise, and whose probabilities do not fall."""
    bounds = np.concatenate([[0], ends])
    if (np.diff(bounds) < 1).any() or bounds[-1] != len(table):
        raise ValueError("the steps of the calibration do not match their ends")
    found = [
        IsotonicCalibrator(*table[a:b].T.copy())
        for a, b in zip(bounds, ends, strict=False)
    ]
    for one in found:
        valid = (np.diff(one.x) > 0.0).all() and (np.diff(one.y) >= 0.0).all()
        if not (valid and one.y[0] >= 0.0 and one.y[-1] <= 1.0):
            raise ValueError("the steps of the calibration do not rise from 0 to 1")
    return found


#: Columns of the tensor of each method.
_WIDTHS = {"sigmoid": 2, "isotonic": 2, "temperature": 1}

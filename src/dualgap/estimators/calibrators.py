"""Functions that turn decision values into probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.isotonic import IsotonicRegression

from ..losses import Vector

#: Largest gradient of a fitted calibrator, and error of the logarithm of a factor.
_ACCURACY = 1e-9


@dataclass(frozen=True)
class SigmoidCalibrator:
    """Probability 1 / (1 + exp(-(slope f + offset))) of a class with the decision f.

    Minimises the cross-entropy with Platt's targets, which are within (0, 1).
    """

    slope: float
    offset: float

    @classmethod
    def fit(
        cls, values: Vector, hits: NDArray[np.bool_], weight: Vector
    ) -> SigmoidCalibrator:
        """Fit it to decisions, and to whether each row has the class."""
        centre, scale = float(values.mean()), float(values.std()) or 1.0
        f, share = (values - centre) / scale, weight / weight.sum()
        inside, outside = float(weight[hits].sum()), float(weight[~hits].sum())
        target = np.where(hits, (inside + 1.0) / (inside + 2.0), 1.0 / (outside + 2.0))

        def entropy(line: Vector) -> tuple[float, Vector]:
            z = line[0] * f + line[1]
            tail = np.exp(-np.abs(z))
            loss = np.maximum(z, 0.0) + np.log1p(tail) - target * z
            return float(share @ loss), np.where(z > 0.0, 1.0, tail) / (1.0 + tail)

        line = np.array([0.0, np.log((inside + 1.0) / (outside + 1.0))])
        loss, p = entropy(line)
        for _ in range(100):
            excess, q = share * (p - target), share * p * (1.0 - p)
            slopes = np.array([excess @ f, excess.sum()])
            if np.abs(slopes).max() <= _ACCURACY:
                break
            along, flat = float(q @ f), np.finfo(float).tiny
            bent = np.array([[q @ (f * f) + flat, along], [along, q.sum() + flat]])
            step = -np.linalg.lstsq(bent, slopes, rcond=None)[0]
            most, size = loss + 1e-15 * (1.0 + loss), 1.0  # beyond is rounding
            while size > 1e-10:  # Newton's method, damped
                loss, p = entropy(line + size * step)
                if loss <= most + 1e-4 * size * float(slopes @ step):
                    break
                size *= 0.5
            line = line + size * step
        slope = float(line[0]) / scale
        return cls(slope, float(line[1]) - slope * centre)

    @property
    def table(self) -> Vector:
        """Its numbers as the row of a table."""
        return np.array([[self.slope, self.offset]])

    def __call__(self, values: Vector) -> Vector:
        return expit(self.slope * values + self.offset)


@dataclass(frozen=True)
class IsotonicCalibrator:
    """Probability of a class as a nondecreasing function of its decision.

    It is linear between the decisions `x`, sorted, where its values are `y`.
    """

    x: Vector
    y: Vector

    @classmethod
    def fit(
        cls, values: Vector, hits: NDArray[np.bool_], weight: Vector
    ) -> IsotonicCalibrator:
        """Fit it to decisions, and to whether each row has the class."""
        found = IsotonicRegression().fit(values, hits.astype(np.float64), weight)
        return cls(found.X_thresholds_, found.y_thresholds_)

    @property
    def table(self) -> Vector:
        """Its steps as the rows of a table."""
        return np.column_stack([self.x, self.y])

    def __call__(self, values: Vector) -> Vector:
        return np.interp(values, self.x, self.y)


@dataclass(frozen=True)
class TemperatureCalibrator:
    """Softmax of the decisions of all classes times a factor, the inverse temperature.

    Of two classes, the decisions are -f and f. The factor minimises the cross-entropy.
    """

    factor: float

    @classmethod
    def fit(
        cls, values: Vector, codes: NDArray[np.intp], weight: Vector
    ) -> TemperatureCalibrator:
        """Fit it to decisions of shape (n, n_classes), and to the class of each row."""
        own, share = np.arange(len(codes)), weight / weight.sum()

        def entropy(logarithm: float) -> float:
            likely = log_softmax(np.exp(logarithm) * values, axis=1)
            return -float((share * likely[own, codes]).sum())

        found = minimize_scalar(
            *(entropy,), bounds=(-10.0, 10.0), options={"xatol": _ACCURACY}
        )
        return cls(float(np.exp(found.x)))

    @property
    def table(self) -> Vector:
        """Its number as the row of a table."""
        return np.array([[self.factor]])

    def __call__(self, values: Vector) -> Vector:
        return softmax(self.factor * values, axis=1)


Calibrator: TypeAlias = SigmoidCalibrator | IsotonicCalibrator | TemperatureCalibrator
_OF_CLASS: dict[str, type[SigmoidCalibrator] | type[IsotonicCalibrator]] = {
    "sigmoid": SigmoidCalibrator,
    "isotonic": IsotonicCalibrator,
}


def fitted_calibrators(
    method: str, values: Vector, codes: NDArray[np.intp], weight: Vector
) -> tuple[Calibrator, ...]:
    """Fit one calibrator per class, one for two classes or for a temperature."""
    if method == "temperature":
        return (TemperatureCalibrator.fit(_of_all_classes(values), codes, weight),)
    first = 1 if values.shape[1] == 1 else 0
    return tuple(
        _OF_CLASS[method].fit(column, codes == c, weight)
        for c, column in enumerate(values.T, first)
    )


def _of_all_classes(values: Vector) -> Vector:
    """Return decisions with a column per class: of two classes, -f and f."""
    return np.hstack([-values, values]) if values.shape[1] == 1 else values


def probabilities(calibrators: Sequence[Calibrator], values: Vector) -> Vector:
    """Return the probabilities of all classes from decisions, (n, 1) or (n, n_classes).

    Each row sums to 1.
    """
    if isinstance(calibrators[0], TemperatureCalibrator):
        return calibrators[0](_of_all_classes(values))
    each = zip(calibrators, values.T, strict=True)
    found = np.column_stack([of(column) for of, column in each])
    if len(calibrators) == 1:
        return np.hstack([1.0 - found, found])
    total = found.sum(axis=1, keepdims=True)
    # Steps may give all classes the probability 0.
    uniform = np.full_like(found, 1.0 / len(calibrators))
    return np.divide(found, total, out=uniform, where=total > 0.0)

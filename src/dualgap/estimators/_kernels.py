"""Kernel parameters that several estimators share."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from ..kernel import (
    RBF,
    Callable,
    Laplacian,
    Linear,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from ..kernels.functions import Kernel, KernelLike
from .parameters import Constraints

if TYPE_CHECKING:
    from sklearn.utils import Tags


__all__ = ["KERNELS", "KernelParameters"]

KERNELS: dict[str, type[Kernel]] = {
    kernel.name: kernel
    for kernel in (Linear, Polynomial, RBF, Sigmoid, Laplacian, Precomputed)
}

KERNEL_CONSTRAINTS: Constraints = {
    "kernel": [StrOptions(set(KERNELS)), Kernel, callable],
    "degree": [Interval(Integral, 1, None, closed="left")],
    "gamma": [
        StrOptions({"scale", "auto", "mean-distance"}),
        Interval(Real, 0, None, closed="neither"),
    ],
    "coef0": [Interval(Real, None, None, closed="neither")],
}


class KernelParameters(BaseEstimator):
    """Mixin for estimators with `kernel`, `degree`, `gamma` and `coef0`."""

    kernel: KernelLike
    degree: int
    gamma: str | float
    coef0: float

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        tags.input_tags.sparse = not self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return self.kernel == "precomputed" or isinstance(self.kernel, Precomputed)

    def _kernel_record(self) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        if isinstance(self.kernel, type):
            raise ValueError(
                f"kernel={self.kernel.__name__} is a class; give an instance, such as "
                "RBF(gamma=0.1)"
            )
        if not isinstance(self.kernel, str):
            return Callable(self.kernel)
        own = {"degree": self.degree, "gamma": self.gamma, "coef0": self.coef0}
        record = KERNELS[self.kernel]
        known = getattr(record, "__dataclass_fields__", {})
        return record(**{name: own[name] for name in own if name in known})

    def _refuse_coef(self) -> None:
        """Raise an error if the kernel is not linear, for then there is no `coef_`."""
        if self.kernel != "linear" and not isinstance(self.kernel, Linear):
            raise AttributeError("coef_ is only available with kernel='linear'")

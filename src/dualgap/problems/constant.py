"""Binary problems whose decision function is no better than a constant.

With the hinge the best model of a class against the rest is often w = 0: it gives every
row the same score, and between such classes rounding decides. With W+ and W- for the
summed costs of both sides, a constant c has the loss L(c) = W+ l(c) + W- l(-c).

A model is no better than a constant where one of these holds:

1. The best constant of the bias alone has an objective, 1/2 c^2/s^2 + L(c) for the
   constant feature s, of at most P.
2. The features make the constant, as indicator columns that add up to 1 can: the
   decision values of the training rows are one number but for their spread, and one
   number in their place would lose no more than the proved gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..certificate import Bounds
from ..losses import Loss, Vector
from .batch import LinearBatch
from .reductions import OneVsRest


@dataclass(frozen=True)
class ConstantSettings:
    """Tuning constants of the comparison, and of the warning."""

    #: Relative error of sums over the rows, above their rounding.
    rounding: float = 1e-9
    #: Standard deviation of decision values that are one number, as part of their mean.
    spread: float = 0.01
    #: Halvings of the interval that holds the best constant: all bits of a float.
    halvings: int = 60
    #: Names of classes in a warning before the rest is left out.
    named: int = 30


SETTINGS = ConstantSettings()


class Constants(NamedTuple):
    """Constant decision functions of binary problems over the same rows."""

    loss: Loss
    #: Value of the constant feature; 0 without a bias, inf if it is not penalised.
    bias: float
    #: Summed costs of the rows of either side, for each problem.
    positive: list[float]
    negative: list[float]

    def least(self, k: int) -> tuple[float, float]:
        """Return the constant with the least loss in problem k, and that loss."""
        positive, negative = self.positive[k], self.negative[k]
        most, few = max(positive, negative), min(positive, negative)
        # The derivatives of both sides balance at this distance from the larger one.
        knee = self.loss.slope * self.loss.curvature
        u = min(2.0 * (few / (most + few)), knee * (few / most)) if few > 0.0 else 0.0
        c = 1.0 - u if positive >= negative else u - 1.0
        return c, self.value(k, c)

    def value(self, k: int, c: float) -> float:
        """Return the loss of the constant c in problem k."""
        positive, negative = self.loss.value([c, -c]).tolist()
        return float(self.positive[k] * positive + self.negative[k] * negative)

    def objectives(self, problems: list[int]) -> Vector:
        """Return the least objective of a constant of the bias alone, per problem."""
        if not problems:
            return np.empty(0)
        price = 1.0 / self.bias / self.bias if self.bias else math.inf
        sides = [(self.positive[k], self.negative[k]) for k in problems]
        positive, negative = np.array(sides).reshape(-1, 2).T
        c = np.zeros(len(problems))
        if math.isfinite(price):
            low, high = c - 1.0, c + 1.0
            for _ in range(SETTINGS.halvings):
                down, up = self.loss.derivative(np.stack([c, -c]))
                less = price * c + negative * up > positive * down
                low, high = np.where(less, low, c), np.where(less, c, high)
                c = 0.5 * (low + high)
            price *= 0.5
        else:
            price = 0.0
        own, rest = self.loss.value(np.stack([c, -c]))
        return price * c * c + (positive * own + negative * rest)

    def reached(
        self,
        bounds: Sequence[Bounds],
        norm: Callable[[int], float],
        moments: Callable[[int], Vector],
        tol: float,
        atol: float = 0.0,
    ) -> list[int]:
        """Return the problems whose model is no better than a constant.

        - `bounds`: problems whose bounds do not prove `tol` or `atol` are left out.
        - `norm`: returns ``||w||^2`` of the model of problem k.
        - `moments`: returns its :meth:`LinearBatch.moments`. It is called where the
          loss of the model is as large as the loss of a constant, and the bias alone
          does not decide.
        """
        middle = _middle(self.loss)
        sides = zip(bounds, self.positive, self.negative, strict=True)
        suspects = [
            k
            for k, (part, positive, negative) in enumerate(sides)
            if min(positive, negative) * middle <= part.primal  # clears most problems
            and part.meets(tol, atol)
            and self.least(k)[1] * (1.0 - SETTINGS.rounding) <= part.primal
        ]
        least_of = self.objectives(suspects).tolist()
        return [
            k
            for k, least in zip(suspects, least_of, strict=True)
            if least <= bounds[k].primal + bounds[k].rounding
            or self._is_one_number(k, bounds[k], norm, moments)
        ]

    def _is_one_number(
        self,
        k: int,
        bounds: Bounds,
        norm: Callable[[int], float],
        moments: Callable[[int], Vector],
    ) -> bool:
        """Whether the decision values of a model may as well be one number."""
        if math.isinf(self.bias):  # which makes every constant at no price
            return False
        best, least = self.least(k)
        gap = bounds.primal - bounds.dual + bounds.rounding
        loss = bounds.primal - 0.5 * norm(k) + gap
        if least > loss:
            return False
        cost, first, second = moments(k)
        mean = first / cost
        if second / cost - mean**2 > (SETTINGS.spread * mean) ** 2:
            return False
        # Beyond the mean a constant would cost a longer w.
        c = float(np.clip(best, min(mean, 0.0), max(mean, 0.0)))
        return self.value(k, c) <= loss


@lru_cache(maxsize=16)  # the call of a loss is a third of the work on small data
def _middle(loss: Loss) -> float:
    """Return a lower bound of ``l(c) + l(-c)`` for all c: ``2 l(0)``, by convexity."""
    return 2.0 * float(loss.value(0.0)) * (1.0 - SETTINGS.rounding)


def constant_problems(
    batch: LinearBatch,
    models: Sequence[Vector],
    bounds: Sequence[Bounds],
    tol: float,
    atol: float = 0.0,
) -> list[int]:
    """Return the problems of a classifier whose model is no better than a constant.

    See :meth:`Constants.reached`.
    """
    rows = batch.rows
    bias = math.inf if rows.free_bias else rows.intercept_scaling
    constants = Constants(rows.loss, bias, *batch.class_costs())
    return constants.reached(
        bounds,
        lambda k: rows.squared_norm(models[k]),
        lambda k: batch.moments(k, models[k]),
        tol,
        atol,
    )


def label_sentence(
    batch: LinearBatch,
    models: Sequence[Vector],
    bounds: Sequence[Bounds],
    tol: float,
    atol: float,
    class_weight: object,
) -> str:
    """Return a sentence about labels that no row has, or all, and constant models."""
    sides = zip(*batch.class_costs(), strict=True)
    alone = [k for k, costs in enumerate(sides) if min(costs) == 0.0]
    found = constant_problems(batch, models, bounds, tol, atol)
    found = sorted(set(found) - set(alone))
    sentences = []
    if alone:
        who = names_of(alone, batch.names, "labels")
        sentences.append(
            f"all training rows agree on {who}, which every row has or none, so their "
            "problems have rows of one kind; drop these columns of y, or give rows of "
            "both kinds"
        )
    if found:
        sentences.append(sentence_about(found, batch, class_weight))
    return ". Moreover, ".join(sentences)


def joint_sentence(batch: LinearBatch, bounds: Bounds, tol: float, atol: float) -> str:
    """Return a sentence if w = 0 is an optimum of Crammer and Singer's problem."""
    # The loss of w = 0 is 1 at every row.
    nothing = float(batch.rows.cost.sum()) * (1.0 - SETTINGS.rounding)
    if not bounds.meets(tol, atol) or nothing > bounds.primal + bounds.rounding:
        return ""
    return (
        "the model is no better than w = 0, which gives all classes the same score, so "
        "rounding may decide the predictions; use other features or a larger C"
    )


def constant_sentence(
    batch: LinearBatch,
    models: Sequence[Vector],
    bounds: Sequence[Bounds],
    tol: float,
    atol: float,
    class_weight: object,
    *,
    by_pairs: bool = True,
) -> str:
    """Return a sentence if models of a classifier are no better than a constant.

    `by_pairs` tells whether the estimator can train pairs of classes instead.
    """
    found = constant_problems(batch, models, bounds, tol, atol)
    by_pairs = by_pairs and type(batch.reduction) is OneVsRest and len(batch.names) > 1
    return sentence_about(found, batch, class_weight, by_pairs) if found else ""


class DegenerateWarning(UserWarning):
    """Warning that a proved optimum may be of no use.

    The best model of a class against the rest can be a constant, most often with
    ``loss="hinge"``; rounding then decides, as where all rows lie on the boundary of a
    novelty detector. A penalised bias can keep predictions far from their quantile.
    """


def names_of(found: Sequence[int], names: Sequence[str], several: str) -> str:
    """Return the names of some problems, and how many of all they are."""
    if len(found) == 1:
        return names[found[0]]
    some = [names[k] for k in found[: SETTINGS.named]]
    first = [name.removeprefix("class ").removeprefix("label ") for name in some]
    more = ", ..." if len(found) > SETTINGS.named else ""
    return f"{len(found)} of {len(names)} {several} ({', '.join(first)}{more})"


def sentence_about(
    found: Sequence[int],
    batch: LinearBatch,
    class_weight: object,
    by_pairs: bool = False,
) -> str:
    """Return a sentence about models that are no better than a constant.

    `by_pairs` tells whether pairs of classes are a remedy.
    """
    who = names_of(found, batch.names, batch.several)
    have = "have" if len(found) > 1 else "has"
    other_loss = batch.rows.loss.name != "squared_hinge"
    remedies = ["loss='squared_hinge'"] if other_loss else []
    if by_pairs:
        remedies.append("multi_class='ovo'")
    elif other_loss and class_weight is None:
        remedies.append("class_weight='balanced'")
    remedy = " or ".join(remedies) or "other features or a larger C"
    return (
        f"{who} {have} a decision function that is no better than a constant on the "
        f"training rows, so rounding may decide the predictions; use {remedy}"
    )

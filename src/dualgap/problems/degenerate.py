"""Warning about optima that leave predictions to rounding."""

from __future__ import annotations

from collections.abc import Sequence

from ..losses import Loss, get_loss

#: Names of classes in a warning before the rest is left out.
_NAMED = 30


class DegenerateWarning(UserWarning):
    """Warning that rounding decides predictions, though the optimum is proved.

    The best model of a class against the rest can be a constant, most often with
    ``loss="hinge"``. All rows can lie on the boundary of a novelty detector.
    """


def names_of(found: Sequence[int], names: Sequence[str], several: str) -> str:
    """Return the names of some problems, and how many of all they are."""
    if len(found) == 1:
        return names[found[0]]
    first = [
        names[k].removeprefix("class ").removeprefix("label ") for k in found[:_NAMED]
    ]
    more = ", ..." if len(found) > _NAMED else ""
    return f"{len(found)} of {len(names)} {several} ({', '.join(first)}{more})"


def sentence_about(
    found: Sequence[int],
    names: Sequence[str],
    *,
    loss: str | Loss,
    multi_class: str | None = None,
    several: str = "",
    class_weight: object = None,
) -> str:
    """Return a sentence about models that are no better than a constant.

    `multi_class` is None for an estimator that has no such parameter. `several` is a
    plural noun for the problems: classes, or pairs with "ovo".
    """
    who = names_of(
        found, names, several or ("pairs" if multi_class == "ovo" else "classes")
    )
    have = "have" if len(found) > 1 else "has"
    other_loss = get_loss(loss).name != "squared_hinge"
    remedies = ["loss='squared_hinge'"] if other_loss else []
    if multi_class == "ovr" and len(names) > 1:
        remedies.append("multi_class='ovo'")
    elif other_loss and class_weight is None:
        remedies.append("class_weight='balanced'")
    remedy = " or ".join(remedies) or "other features or a larger C"
    return (
        f"{who} {have} a decision function that is no better than a constant on the "
        f"training rows, so rounding may decide the predictions; use {remedy}"
    )

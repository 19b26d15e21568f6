"""What a fit can prove about itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Status(Enum):
    """Why a fit ended. The value is the sentence that people read."""

    CERTIFIED = "proved to be within the accuracy asked"
    EPOCH_LIMIT = (
        "stopped at max_epochs; raise it, scale the columns, or ask for less accuracy "
        "(tol)"
    )
    TIME_LIMIT = "stopped at time_limit; raise it, or ask for less accuracy (tol)"
    INTERRUPTED = "stopped by Ctrl-C or by a callback; the best model so far is kept"
    STALLED = (
        "the solver can make no further progress in float64; rescale the data or ask "
        "for less accuracy (tol)"
    )
    STREAMED = (
        "learned batch by batch; go over the batches again for more accuracy, and let "
        "certify(batches) prove it"
    )

    @property
    def label(self) -> str:
        """The status in one word, as in ``'certified'`` or ``'time_limit'``."""
        return self.name.lower()


@dataclass(frozen=True)
class Certificate:
    """A proven bound on how far a model is from the optimum.

    ``dual <= P* <= primal`` holds for the optimal value ``P*`` whatever the solver
    did: both numbers come from one full pass in float64 over the data, ``primal``
    from the coefficients and ``dual`` from a point inside the dual's box, and what
    rounding may have done in that pass has been added to the one and taken from the
    other.

    Attributes
    ----------
    primal : float
        ``P(w) = 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i)`` of the model, or a little more:
        no less. Infinite where it is not known: a fit with a kernel was told to end
        before its first proof, or rows came in batches that are gone
        (``LinearSVC.partial_fit``).
    dual : float
        ``D(alpha)``, a lower bound on the optimal ``P``, or a little less: no more.
    epochs : int
        Passes over the (awake) rows.
    updates : int
        Changes of the model: coordinate steps or margin errors.
    seconds : float
        Wall-clock time of the fit, callbacks excluded.
    status : Status or None
        Why the fit ended; None where there was none (``Problem.certify``).
    solver : str
        Name of the solver.
    tol : float
        Accuracy asked: ``CERTIFIED`` means ``relative_gap <= tol``.
    about : str
        The problem that the bounds are about, where it is not the one that was given:
        an approximation of it.
    rounding : float
        What of the gap is room for the rounding of the pass.
    floor : float
        An optimum that is smaller than this, without its sign, counts as this large
        in `relative_gap`. 0 but for one-class SVMs, whose optimum is 0 where there is
        no plane.
    """

    primal: float
    dual: float
    epochs: int = 0
    updates: int = 0
    seconds: float = 0.0
    status: Status | None = None
    solver: str = ""
    tol: float = math.nan
    about: str = ""
    rounding: float = 0.0
    floor: float = 0.0

    @property
    def gap(self) -> float:
        """``primal - dual``, an upper bound on ``primal - P*``."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """``(P - D)/D``, at least ``(P - P*)/P*``; ``inf`` if ``D <= 0 < P``.

        Where the optimum is below 0 (one-class SVMs) it is ``(P - D)/(-P)``, at least
        ``(P - P*)/|P*|``.
        """
        if self.gap == 0.0:
            return 0.0
        size = size_of_optimum(self.primal, self.dual, self.floor)
        return self.gap / size if size > 0.0 else math.inf

    @property
    def certified(self) -> bool:
        """Whether the accuracy asked was proved."""
        return self.status is Status.CERTIFIED

    @property
    def message(self) -> str:
        """One sentence with the numbers."""
        asked = "" if math.isnan(self.tol) else f" (asked {percent(self.tol)})"
        if math.isinf(self.relative_gap):
            reach = "no bound on the objective is known yet"
        else:
            reach = f"objective is within {percent(self.relative_gap)} of the optimum"
            reach += f" of {self.about}" if self.about else ""
        why = "" if self.status is None else f": {self.status.value}"
        return f"{reach}{asked}{why}"

    @classmethod
    def total(cls, certificates: Certificate | Sequence[Certificate]) -> Certificate:
        """One certificate for several problems that were solved side by side.

        It is about the sum of their objectives, at the models that they have: what
        several classes minimise one versus the rest, or one versus one. Passes, updates
        and seconds are sums too, and the status is that of the problem that is farthest
        from its optimum.

        Parameters
        ----------
        certificates : Certificate or sequence of Certificate
            ``certificate_`` of an estimator.

        Returns
        -------
        Certificate

        Raises
        ------
        ValueError
            If there is none.
        """
        if isinstance(certificates, Certificate):
            return certificates
        if not certificates:
            raise ValueError("certificates: give one or more")
        if len(certificates) == 1:
            return certificates[0]
        worst = max(certificates, key=lambda c: (not c.certified, c.relative_gap))
        solvers = {c.solver for c in certificates}
        abouts = {c.about for c in certificates}
        primal = math.fsum(c.primal for c in certificates)
        dual = math.fsum(c.dual for c in certificates)
        return cls(
            primal=math.nextafter(primal, math.inf),  # the sums are rounded too
            dual=math.nextafter(dual, -math.inf),
            epochs=sum(c.epochs for c in certificates),
            updates=sum(c.updates for c in certificates),
            seconds=sum(c.seconds for c in certificates),
            status=worst.status,
            solver=solvers.pop() if len(solvers) == 1 else "",
            tol=max(c.tol for c in certificates),
            about=abouts.pop() if len(abouts) == 1 else "",
            rounding=sum(c.rounding for c in certificates),
            floor=max(c.floor for c in certificates),
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, with both gaps, ready for JSON."""
        return asdict(self) | {
            "status": self.status.label if self.status else None,
            "gap": self.gap,
            "relative_gap": self.relative_gap,
        }

    # The status by its name: skops, among those that keep objects, knows no enums.
    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"status": self.status.name if self.status else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        name = state["status"]
        vars(self).update(state | {"status": None if name is None else Status[name]})

    def __str__(self) -> str:
        return (
            f"{self.status.label if self.status else 'no fit'}: {self.message}\n"
            f"  primal {self.primal:.9g}  dual {self.dual:.9g}  "
            f"relative gap {self.relative_gap:.2e}\n"
            f"  {self.solver}, {self.epochs} epochs, {self.updates} updates, "
            f"{self.seconds:.3g} s"
        )


def size_of_optimum(primal: float, dual: float, floor: float = 0.0) -> float:
    """What ``|P*|`` is at least: D, or -P where that is below 0; or the floor."""
    return max(dual, -primal, floor)


def percent(x: float) -> str:
    """A relative accuracy as people write it: 3.1 %, 0.002 %."""
    return f"{100 * max(x, 0.0):.2g} %"

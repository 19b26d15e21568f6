"""What a fit can prove about itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
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
class Bounds:
    """An upper bound on P, a lower bound on D, and the room for rounding in them.

    Do not call the constructor. `proved` takes computed values together with bounds on
    their errors and rounds outwards; `stored` reads back what was proved before.
    """

    primal: float
    dual: float
    rounding: float

    @classmethod
    def proved(
        cls,
        primal: float = math.inf,
        primal_error: float = 0.0,
        dual: float = -math.inf,
        dual_error: float = 0.0,
    ) -> Bounds:
        """Round computed values of P and D to the safe side.

        Parameters
        ----------
        primal, dual : float
            Values as float64 computed them. Leave one out if nothing is known of it.
        primal_error, dual_error : float
            How far the exact P may be above `primal`, and the exact D below `dual`. The
            rounding of ``primal + primal_error`` itself has to be part of that.

        Returns
        -------
        Bounds
            A value that has left the range of float64 bounds nothing.
        """
        above, below = float(primal + primal_error), float(dual - dual_error)
        rounding = float(primal_error + dual_error)
        return cls(
            above if above > -math.inf else math.inf,
            below if below < math.inf else -math.inf,
            math.inf if math.isnan(rounding) else rounding,
        )

    @classmethod
    def stored(cls, primal: float, dual: float, rounding: float) -> Bounds:
        """Read back bounds that were proved and written to a file."""
        return cls(primal, dual, rounding)

    @classmethod
    def total(cls, several: Sequence[Bounds]) -> Bounds:
        """Add up the bounds of problems that were solved side by side."""
        primal = math.fsum(bounds.primal for bounds in several)
        dual = math.fsum(bounds.dual for bounds in several)
        return cls(
            math.nextafter(primal, math.inf),  # the sums are rounded too
            math.nextafter(dual, -math.inf),
            sum(bounds.rounding for bounds in several),
        )

    def with_dual_of(self, other: Bounds) -> Bounds:
        """Keep P of this model beside the better lower bound of the two proofs.

        Both have to be about the same problem. `rounding` is then that of both proofs
        if the dual bound is the other's.
        """
        if not other.dual > self.dual:
            return self
        rounding = self.rounding + other.rounding
        return Bounds(self.primal, other.dual, rounding)

    @property
    def certificate(self) -> Certificate:
        """The certificate of these bounds; no fit is part of it yet."""
        return Certificate(self)


_NOT_FROM_NUMBERS = (
    "a Certificate is made by a proof, never from numbers; use problem.certify(...) or "
    "dualgap.certify(model, X, y), or relative_gap(primal, dual) for the gap alone"
)


@dataclass(frozen=True)
class Certificate:
    """A proven bound on how far a model is from the optimum.

    ``dual <= P* <= primal`` holds for the optimal value ``P*`` whatever the solver
    did: both numbers come from one full pass in float64 over the data, ``primal``
    from the coefficients and ``dual`` from a point inside the dual's box, and what
    rounding may have done in that pass has been added to the one and taken from the
    other. Only a proof makes a certificate: the constructor refuses plain numbers.

    Attributes
    ----------
    bounds : Bounds
        `primal`, `dual` and `rounding` as one record.
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

    bounds: Bounds
    epochs: int = 0
    updates: int = 0
    seconds: float = 0.0
    status: Status | None = None
    solver: str = ""
    tol: float = math.nan
    about: str = ""
    floor: float = 0.0

    def __new__(cls, *args: Any, **named: Any) -> Certificate:
        # Without arguments it is called by pickle and copy.
        first = args[0] if args else named.get("bounds")
        if (args or named) and not isinstance(first, Bounds):
            raise TypeError(_NOT_FROM_NUMBERS)
        return super().__new__(cls)

    @property
    def primal(self) -> float:
        return self.bounds.primal

    @property
    def dual(self) -> float:
        return self.bounds.dual

    @property
    def rounding(self) -> float:
        return self.bounds.rounding

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
        return relative_gap(self.primal, self.dual, self.floor)

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
        return cls(
            Bounds.total([c.bounds for c in certificates]),
            epochs=sum(c.epochs for c in certificates),
            updates=sum(c.updates for c in certificates),
            seconds=sum(c.seconds for c in certificates),
            status=worst.status,
            solver=solvers.pop() if len(solvers) == 1 else "",
            tol=max(c.tol for c in certificates),
            about=abouts.pop() if len(abouts) == 1 else "",
            floor=max(c.floor for c in certificates),
        )

    def with_dual_of(self, other: Certificate) -> Certificate:
        """Keep P of this model beside the better lower bound of the two proofs.

        Parameters
        ----------
        other : Certificate
            About the same problem, and perhaps about another model.

        Returns
        -------
        Certificate
        """
        return replace(self, bounds=self.bounds.with_dual_of(other.bounds))

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, with both gaps, ready for JSON."""
        return self._fields() | {
            "status": self.status.label if self.status else None,
            "gap": self.gap,
            "relative_gap": self.relative_gap,
        }

    def _fields(self) -> dict[str, Any]:
        """All fields, those of the bounds among them."""
        fields = dict(vars(self))
        return asdict(fields.pop("bounds")) | fields

    # The status by its name: skops, among those that keep objects, knows no enums.
    def __getstate__(self) -> dict[str, Any]:
        return self._fields() | {"status": self.status.name if self.status else None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        name = state["status"]
        state = state | {"status": None if name is None else Status[name]}
        numbers = [state.pop(key) for key in ("primal", "dual", "rounding")]
        vars(self).update(state, bounds=Bounds.stored(*numbers))

    def __str__(self) -> str:
        return (
            f"{self.status.label if self.status else 'no fit'}: {self.message}\n"
            f"  primal {self.primal:.9g}  dual {self.dual:.9g}  "
            f"relative gap {self.relative_gap:.2e}\n"
            f"  {self.solver}, {self.epochs} epochs, {self.updates} updates, "
            f"{self.seconds:.3g} s"
        )


def relative_gap(primal: float, dual: float, floor: float = 0.0) -> float:
    """Return the relative gap of two values, which need not be proved.

    Parameters
    ----------
    primal, dual : float
    floor : float, default=0.0
        See :class:`Certificate`.

    Returns
    -------
    float
        ``(P - D)/D`` as :attr:`Certificate.relative_gap` has it; ``inf`` where the two
        values bound nothing or are no numbers.
    """
    gap = primal - dual
    if gap == 0.0:
        return 0.0
    size = size_of_optimum(primal, dual, floor)
    return gap / size if gap < math.inf and size > 0.0 else math.inf


def size_of_optimum(primal: float, dual: float, floor: float = 0.0) -> float:
    """What ``|P*|`` is at least: D, or -P where that is below 0; or the floor."""
    return max(dual, -primal, floor)


def percent(x: float) -> str:
    """A relative accuracy as people write it: 3.1 %, 0.002 %."""
    return f"{100 * max(x, 0.0):.2g} %"

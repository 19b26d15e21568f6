"""Certificates: proven bounds on how far a model is from the optimum."""

from __future__ import annotations

import html
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from enum import Enum
from functools import cached_property
from typing import Any, overload


class Status(Enum):
    """Reason why a fit ended. The value is part of `Certificate.message`."""

    CERTIFIED = "Converged"
    EPOCH_LIMIT = "Stopped at max_iter: raise it, scale the columns, or raise tol."
    STEP_LIMIT = "Stopped at max_steps of the solver: raise it, or raise tol."
    SUPPORT_LIMIT = "Stopped at max_support: raise it, or raise tol."
    TIME_LIMIT = "Stopped at time_limit: raise it, or raise tol."
    INTERRUPTED = "Stopped by Ctrl-C or by a callback: the best model so far is kept."
    SAMPLED = (
        "Stopped at the gap that a sample of rows showed, which proves nothing: use "
        "stop='certified' to train until tol is proved."
    )
    STALLED = (
        "The solver cannot make further progress in float64: rescale the data, or "
        "raise tol."
    )
    UNCERTIFIED = (
        "Nothing is proved: the kernel matrix is indefinite, so no duality gap bounds "
        "the optimum. LIBSVM trained the model; for a proof use kernel='rbf' or "
        "another positive semidefinite one."
    )
    STREAMED = (
        "The model was learned batch by batch: repeat the batches for more accuracy, "
        "and call certify(batches) to prove it."
    )

    @property
    def label(self) -> str:
        """Status as one word, such as ``'certified'`` or ``'time_limit'``."""
        return self.name.lower()


@dataclass(frozen=True)
class Bounds:
    """Upper bound on P, lower bound on D, and the allowance for rounding in both.

    Do not call the constructor. `proved` takes computed values together with bounds on
    their errors and rounds outwards; `stored` restores bounds that were proved before.
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

        `primal`, `dual`: values as computed in float64. Omit a value that is unknown.
        `primal_error`, `dual_error`: bounds on how far the exact P may be above
        `primal`, and the exact D below `dual`. They must include the rounding of
        ``primal + primal_error`` and of ``dual - dual_error``. A value that overflowed
        float64 is replaced by an infinite, trivial bound.
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
        """Restore bounds that were proved and written to a file."""
        return cls(primal, dual, rounding)

    @classmethod
    def total(cls, several: Sequence[Bounds]) -> Bounds:
        """Add the bounds of independent problems, such as the classes of one model."""
        primal = math.fsum(bounds.primal for bounds in several)
        dual = math.fsum(bounds.dual for bounds in several)
        return cls(
            math.nextafter(primal, math.inf),  # the sums are rounded too
            math.nextafter(dual, -math.inf),
            sum(bounds.rounding for bounds in several),
        )

    def with_dual_of(self, other: Bounds) -> Bounds:
        """Combine the primal bound of this proof with the better dual bound.

        Both proofs must be about the same problem. If the dual bound comes from
        `other`, `rounding` is the sum over both proofs.
        """
        if not other.dual > self.dual:
            return self
        rounding = self.rounding + other.rounding
        return Bounds(self.primal, other.dual, rounding)

    def meets(self, tol: float, atol: float = 0.0, floor: float = 0.0) -> bool:
        """Return whether the bounds prove an accuracy; see `Certificate.meets`."""
        if relative_gap(self.primal, self.dual, floor) <= tol:
            return True
        return atol > 0.0 and self.primal - self.dual <= atol

    @property
    def certificate(self) -> Certificate:
        """Certificate of these bounds, without a fit."""
        return Certificate(self)


_NOT_FROM_NUMBERS = (
    "a Certificate is only made by a proof, not from plain numbers; use "
    "problem.certify(...) or dualgap.certify(model, X, y), or relative_gap(primal, "
    "dual) for the gap alone"
)


class LazyParts(Sequence["Certificate"]):
    """Parts of a certificate that are made when one of them is first used.

    `make` returns the part of an index.
    """

    def __init__(self, count: int, make: Callable[[int], Certificate]) -> None:
        self._count, self._make = count, make

    @cached_property
    def parts(self) -> tuple[Certificate, ...]:
        """The parts."""
        return tuple(map(self._make, range(self._count)))

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, k: int) -> Certificate: ...
    @overload
    def __getitem__(self, k: slice) -> tuple[Certificate, ...]: ...
    def __getitem__(self, k: int | slice) -> Certificate | tuple[Certificate, ...]:
        return self.parts[k]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self.parts == tuple(other)

    def __hash__(self) -> int:
        return hash(self.parts)

    def __reduce__(self) -> tuple[object, ...]:
        return tuple, (self.parts,)


@dataclass(frozen=True, eq=False)
class Certificate:
    """Proven bound on how far a model is from the optimum.

    ``dual <= P* <= primal`` holds for the optimal value ``P*``, whatever the solver
    did. Both numbers come from one full pass over the data in float64: ``primal`` from
    the coefficients, ``dual`` from a feasible dual point. A bound on the rounding
    error of that pass is added to ``primal`` and subtracted from ``dual``. Only a proof
    makes a certificate: the constructor refuses plain numbers.

    A model of several classes minimises one objective per class, or per pair of
    classes. Its certificate is about the sum of them, and `parts` holds one certificate
    for each. Iterating over a certificate gives its parts.

    Attributes
    ----------
    bounds : Bounds
        `primal`, `dual` and `rounding` as one record.
    primal : float
        Upper bound on ``P(w) = 1/2 ||w||^2 + sum_i c_i l(y_i w.x_i)`` of the model, or
        on its counterpart for regression and one-class SVMs. Infinite where P is
        unknown: a kernel fit was stopped before its first proof, or the rows came in
        batches that were not kept (``LinearSVC.partial_fit``).
    dual : float
        Lower bound on ``D(alpha)``, and so on the optimal ``P``.
    epochs : int
        Passes over the active rows.
    updates : int
        Changes of the model: coordinate steps or margin errors.
    seconds : float
        Wall-clock seconds of the fit, excluding callbacks.
    status : Status or None
        Reason why the fit ended; None if there was no fit (``Problem.certify``).
    solver : str
        Name of the solver, and the methods that it chose, such as "auto: newton".
    tol : float
        Relative gap to prove in every part, for ``CERTIFIED``.
    atol : float
        Gap to prove; 0 if there is none. ``gap <= atol`` is ``CERTIFIED``
        too. In a certificate of several parts it is the target of each part.
    about : str
        The approximate problem that the bounds are about, if it is not the given one;
        else empty.
    rounding : float
        The part of the gap that allows for rounding.
    name : str
        Binary problem that this part is about, such as ``"class 3"`` or ``"0 against
        1"``; empty where there is one problem only.
    floor : float
        `relative_gap` divides the gap by the size of the optimum, or by this number if
        it is larger. It is 0 except for one-class SVMs, whose optimum can be 0.
    """

    bounds: Bounds
    epochs: int = 0
    updates: int = 0
    seconds: float = 0.0
    status: Status | None = None
    solver: str = ""
    tol: float = math.nan
    atol: float = 0.0
    about: str = ""
    floor: float = 0.0
    name: str = ""
    several: Sequence[Certificate] = ()  # the parts, if there are more than one

    def __new__(cls, *args: object, **named: object) -> Certificate:
        # pickle and copy call it without arguments.
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
    def parts(self) -> tuple[Certificate, ...]:
        """One certificate per binary problem; this one if there is one problem."""
        return tuple(self.several) or (self,)

    # NaN, a missing target, is equal to itself here.
    def _key(self) -> tuple[object, ...]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values["tol"] = None if math.isnan(self.tol) else self.tol
        return tuple(values.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Certificate):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __len__(self) -> int:
        return len(self.several) or 1

    def __iter__(self) -> Iterator[Certificate]:
        return iter(self.parts)

    @property
    def gap(self) -> float:
        """``primal - dual``, an upper bound on ``primal - P*``."""
        return self.primal - self.dual

    @property
    def relative_gap(self) -> float:
        """``(P - D)/D``, an upper bound on ``(P - P*)/P*``; ``inf`` if ``D <= 0 < P``.

        Where the optimum is negative (one-class SVMs) it is ``(P - D)/(-P)``, an upper
        bound on ``(P - P*)/|P*|``.
        """
        return relative_gap(self.primal, self.dual, self.floor)

    def meets(self, tol: float, atol: float = 0.0) -> bool:
        """Return whether the relative gap is at most `tol`, or the gap at most `atol`.

        Parameters
        ----------
        tol : float
        atol : float, default=0.0
            0 leaves the gap out of account.

        Returns
        -------
        bool
        """
        return self.bounds.meets(tol, atol, self.floor)

    @property
    def certified(self) -> bool:
        """Whether the gap `tol` or `atol` was proved, for every part."""
        return self.status is Status.CERTIFIED

    @property
    def target(self) -> str:
        """Words for the gap to prove; of a finished fit, for the one it reached."""
        if math.isnan(self.tol):
            return ""
        relative = f"target {percent(self.tol, up=False)}"
        if self.atol == 0.0 or (self.certified and self.relative_gap <= self.tol):
            return relative
        gap = f"a gap of {self.atol:g}" + (" in each" if self.several else "")
        return f"target: {gap}" if self.certified else f"{relative} or {gap}"

    @property
    def message(self) -> str:
        """Distance of the model from the optimum and, if it is too far, what to do."""
        reach = distance(self.relative_gap, self.about)
        if self.certified and self.relative_gap == math.inf:  # D <= 0, but atol is met
            reach = f"at most {self.atol:g} above the optimum"
        if self.target:
            reach += f" ({self.target})"
        if self.status is None:  # certify cannot know the rows of the training
            if self.relative_gap < math.inf:
                reach += ", if it was trained on these rows and weights"
            return f"{reach[0].upper()}{reach[1:]}."
        if self.certified:
            return f"{self.status.value}: {reach}."
        if self.status is Status.UNCERTIFIED:
            return self.status.value
        failed = sum(not part.certified for part in self.several)
        which = f" in {failed:,} of {len(self):,} problems" if self.several else ""
        return f"Not converged{which}: {reach}. {self.status.value}"

    @classmethod
    def total(
        cls,
        certificates: Certificate | Sequence[Certificate],
        names: Sequence[str] = (),
    ) -> Certificate:
        """Join the certificates of problems that were solved side by side.

        The result is about the sum of their objectives: the objective of several
        classes one versus the rest, or one versus one. Epochs, updates and seconds are
        sums too. The status belongs to the part farthest from its optimum. It is
        "certified" if all parts are.

        Parameters
        ----------
        certificates : Certificate or sequence of Certificate
            They become `parts`. A certificate is returned as it is.
        names : sequence of str, optional
            Binary problem that each part is about.

        Returns
        -------
        Certificate

        Raises
        ------
        ValueError
            If the sequence is empty.
        """
        if isinstance(certificates, Certificate):
            return certificates
        if not certificates:
            raise ValueError("certificates is empty; give one or more")
        if len(certificates) == 1:
            return certificates[0]
        if names:
            certificates = [
                replace(part, name=name)
                for part, name in zip(certificates, names, strict=True)
            ]
        worst = max(certificates, key=lambda c: (not c.certified, c.relative_gap))
        solvers = {c.solver for c in certificates}
        if len(solvers) > 1:  # auto may choose a method for each
            solvers = {name.partition(":")[0] for name in solvers}
        abouts = {c.about for c in certificates}
        return cls(
            Bounds.total([c.bounds for c in certificates]),
            epochs=sum(c.epochs for c in certificates),
            updates=sum(c.updates for c in certificates),
            seconds=sum(c.seconds for c in certificates),
            status=worst.status,
            solver=solvers.pop() if len(solvers) == 1 else "",
            tol=max(c.tol for c in certificates),
            atol=max(c.atol for c in certificates),
            about=abouts.pop() if len(abouts) == 1 else "",
            floor=max(c.floor for c in certificates),
            several=tuple(certificates),
        )

    def named(self, outer: str) -> tuple[Certificate, ...]:
        """Return the parts, with the name of the model that they belong to."""
        if not outer:
            return self.parts
        return tuple(
            replace(part, name=f"{outer}, {part.name}" if part.name else outer)
            for part in self.parts
        )

    def with_dual_of(self, other: Certificate) -> Certificate:
        """Combine the primal bound of this certificate with the better dual bound.

        Parameters
        ----------
        other : Certificate
            A certificate of the same problem, possibly for another model.

        Returns
        -------
        Certificate
            This certificate with the larger of the two dual bounds.
        """
        return replace(self, bounds=self.bounds.with_dual_of(other.bounds))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and strings, with both gaps, ready for JSON.

        `name` is there if it is not empty, `atol` if it is not 0, and `parts` if there
        are several.
        """
        fields = self._fields()
        for optional in ("name", "atol"):
            if not fields[optional]:
                del fields[optional]
        if parts := fields.pop("several"):
            fields["parts"] = [part.to_dict() for part in parts]
        return fields | {
            "status": self.status.label if self.status else None,
            "gap": self.gap,
            "relative_gap": self.relative_gap,
        }

    def _fields(self) -> dict[str, Any]:
        """Return all fields, including the fields of the bounds."""
        fields = dict(vars(self))
        return asdict(fields.pop("bounds")) | fields

    # The status is stored by name because skops cannot store enums, nor lazy parts.
    def __getstate__(self) -> dict[str, Any]:
        status = self.status.name if self.status else None
        return self._fields() | {"status": status, "several": tuple(self.several)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        name = state["status"]
        state = state | {"status": None if name is None else Status[name]}
        numbers = [state.pop(key) for key in ("primal", "dual", "rounding")]
        vars(self).update(state, bounds=Bounds.stored(*numbers))

    def __str__(self) -> str:
        return f"{self.name}: {self.message}" if self.name else self.message

    def __repr__(self) -> str:
        words = [f"relative_gap={self.relative_gap:.2e}"]
        words += [f"primal={self.primal:.9g}", f"dual={self.dual:.9g}"]
        if self.status is not None:
            words = [self.status.label, *words, f"solver={self.solver!r}"]
            words += [f"epochs={self.epochs}", f"seconds={self.seconds:.3g}"]
        if self.several:
            words.append(f"parts={len(self)}")
        if self.name:
            words.insert(0, self.name)
        return f"Certificate({', '.join(words)})"

    def _repr_html_(self) -> str:
        rows = [cells_of(part, part.name) for part in self.parts]
        if self.several:
            rows.append(cells_of(self, "all together"))
        return (
            # scikit-learn's classes, with which an estimator shows its parameters
            '<div class="estimator-table"><details class="dualgap-certificate">'
            f"<summary>{html.escape(self.message)}</summary>"
            f'<table class="parameters-table">{_row(COLUMNS, "th")}'
            f"{''.join(_row(row, 'td') for row in rows)}</table></details></div>"
        )


#: Names of the columns of tables of certificates.
COLUMNS = ("", "status", "within", "primal", "dual", "epochs", "seconds", "solver")


def cells_of(certificate: Certificate, name: str) -> list[str]:
    """Return the row of a certificate in a table with these `COLUMNS`."""
    c, gap = certificate, certificate.relative_gap
    within = percent(gap)
    if c.about:
        within += f" of the optimum of {c.about}"
    return [
        *(name, c.status.label if c.status else "", within),
        *(f"{c.primal:.9g}", f"{c.dual:.9g}"),
        *(str(c.epochs), f"{c.seconds:.3g}", c.solver),
    ]


def _row(cells: Iterable[str], tag: str) -> str:
    inner = "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells)
    return f"<tr>{inner}</tr>"


def relative_gap(primal: float, dual: float, floor: float = 0.0) -> float:
    """Return the relative gap of a primal and a dual value, proved or estimated.

    `floor`: smallest denominator; see :class:`Certificate`. Returns ``(P - D)/D``, as
    in :attr:`Certificate.relative_gap`; ``inf`` where the two values give no bound or
    are NaN.
    """
    gap = primal - dual
    if gap == 0.0:
        return 0.0
    size = size_of_optimum(primal, dual, floor)
    return gap / size if gap < math.inf and size > 0.0 else math.inf


def size_of_optimum(primal: float, dual: float, floor: float = 0.0) -> float:
    """Return a lower bound on ``|P*|``: D, or -P where P is negative; or the floor."""
    return max(dual, -primal, floor)


def distance(gap: float, about: str = "") -> str:
    """Return words for a relative gap, and for the problem that it is about."""
    if gap == math.inf:
        return "no bound on the objective is known yet"
    optimum = f"the optimum of {about}" if about else "the optimum"
    if gap >= 10.0:
        return f"possibly more than 1000 % above {optimum}"
    if gap >= 1.0:
        return f"possibly {percent(gap)} above {optimum}"
    return f"within {percent(gap)} of {optimum}"


def percent(x: float, up: bool = True) -> str:
    """Return percent with two digits, rounded up by default; "unknown" if infinite."""
    value = 100.0 * max(x, 0.0)
    if value == math.inf:
        return "unknown"
    if value == 0.0:
        return "0 %"
    places = 1 - math.floor(math.log10(value))
    if up:
        value = math.ceil(value * 10.0**places) / 10.0**places
    if value < 1e-6:
        return f"{value:.1e} %"
    text = f"{value:.{max(places, 0)}f}"
    return (text.rstrip("0").rstrip(".") if "." in text else text) + " %"

"""Check a proof of ``dualgap prove`` in exact integers.

``python dualgap_check.py PROOF [DATA]`` says whether the claims of PROOF hold, and
whether the svmlight text DATA holds its rows, as docs/proof-format.md specifies. It
needs Python 3.10 or newer, and nothing else.

Exit status: 0 valid, 1 not valid, 2 not checked (wrong usage, unreadable files).
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import repeat
from operator import add, lt, mul
from pathlib import Path


class NotValidError(Exception):
    """Raised for a proof that is malformed, or whose claims do not hold."""


LOSSES = ("hinge", "epsilon_insensitive")  # and their squares
FAILURES = (NotValidError, ValueError, TypeError, OverflowError, RecursionError)
MOST = 5000  # largest exponent: sums stay small enough for memory
Example = tuple[float, list[int], list[float]]  # label, columns and values


def require(holds: object, what: str) -> None:
    """Raise an error unless a condition holds."""
    if not holds:
        raise NotValidError(what)


def integers(text: bytes) -> list[int]:
    """Return integers in decimal, separated by single spaces; there is one spelling."""
    values = list(map(int, text.split(b" ")))
    require(b" ".join(map(b"%d".__mod__, values)) == text, "a number is not canonical")
    return values


def natural(text: bytes) -> int:
    """Return one integer, zero or positive."""
    (value,) = integers(text)
    require(value >= 0, "a number is negative")
    return value


def rising(values: list[int]) -> bool:
    """Whether every value is larger than the one before."""
    return all(map(lt, values, values[1:]))


class Part:
    """One binary problem, or the regression problem, with sums over the rows so far."""

    def __init__(self, proof: Proof) -> None:
        self.positive, self.negative = integers(proof.value(b"part"))
        least = -1 if proof.residual else 0
        sound = least <= self.positive < len(proof.labels) > self.negative >= -1
        require(sound, "a part has a class that is not there")
        require(least or self.positive != self.negative, "a part has one class twice")
        self.w = integers(proof.value(b"w"))
        width = proof.d + (proof.constant != 0)
        require(len(self.w) == width, "w has the wrong length")
        self.costs = integers(proof.value(b"costs"))
        require(len(self.costs) in (1, proof.n), "the number of costs is wrong")
        require(min(self.costs) >= 0, "a cost is negative")
        self.claim = proof.value(b"claim")
        penalised = self.w[: proof.d] if proof.free else self.w
        self.norm = sum(map(mul, penalised, penalised))
        self.offset = sum(self.w[proof.d :]) * proof.constant
        self.v = [0] * proof.d
        self.loss = self.linear = self.curved = self.balance = 0

    def add(
        self, proof: Proof, i: int, label: int, a: int, index: list[int], x: list[int]
    ) -> None:
        """Check the dual variable of row i, and add the row to the sums."""
        sign = 1
        if label != self.positive and not proof.residual:
            sign = -1
            if self.negative not in (-1, label):
                require(a == 0, "a row outside a part has a dual variable")
                return
        cost = self.costs[i] if len(self.costs) > 1 else self.costs[0]
        size = abs(a) if proof.residual else a
        inside = size << proof.exponent_cost <= cost << proof.exponent_a
        inside = inside or (proof.squared and cost > 0)
        require(size >= 0 and inside, "a dual variable is outside its box")
        # Rows often have the same columns: all of them, if the data are dense.
        dense = len(index) == proof.d
        w = self.w if dense else map(self.w.__getitem__, index)
        score = sum(map(mul, w, x)) + self.offset
        if proof.residual:
            off = abs((label << proof.score) - (score << proof.exponent_y))
            excess = off - (proof.epsilon << proof.score)
            self.linear += label * a - proof.epsilon * size
        else:
            excess = (1 << proof.score) - sign * score
            self.linear += a
        if excess > 0:
            self.loss += cost * (excess * excess if proof.squared else excess)
        if a == 0:
            return
        if proof.squared:
            self.curved -= -(a * a << proof.exponent_cost) // cost  # rounded up
        a *= sign
        self.balance += a
        if dense:
            self.v = list(map(add, self.v, map(mul, repeat(a), x)))
        else:
            v = self.v
            for k, entry in zip(index, x, strict=True):
                v[k] += a * entry

    def bounds(self, proof: Proof) -> tuple[Fraction, Fraction]:
        """Return P and D, after all rows."""
        unit = proof.score + proof.exponent_y
        unit = proof.exponent_cost + (2 * unit if proof.squared else unit)
        primal = Fraction(self.norm, 2 << 2 * proof.exponent_w)
        primal += Fraction(self.loss, 1 << unit)
        norm = sum(map(mul, self.v, self.v))
        if proof.free:
            require(self.balance == 0, "the dual variables do not balance")
        else:
            norm += (proof.constant * self.balance) ** 2
        dual = Fraction(self.linear, 1 << proof.exponent_a + proof.exponent_y)
        dual -= Fraction(norm, 2 << 2 * (proof.exponent_a + proof.exponent_x))
        return primal, dual - Fraction(self.curved, 4 << 2 * proof.exponent_a)


class Proof:
    """A proof file: the header, the parts, and the rows."""

    def __init__(self, content: bytes) -> None:
        body, _, seal = content.rpartition(b"sha256 ")
        digest = hashlib.sha256(body).hexdigest()
        require(seal == digest.encode() + b"\n", "the checksum does not match")
        require(content.isascii(), "there are bytes outside ASCII")
        self.lines = iter(body.split(b"\n"))
        require(self.value(b"dualgap-proof") == b"1", "this is no proof of version 1")
        self.data, _, base = self.value(b"data").partition(b" ")
        none = (self.data, base) == (b"none", b"")
        digits = len(self.data) == 64 and not self.data.strip(b"0123456789abcdef")
        require(none or (digits and base in (b"0", b"1")), "the data have no name")
        self.base = int(base or 0)
        name, _, epsilon = self.value(b"loss").partition(b" ")
        self.loss = name.decode()
        require(self.loss.removeprefix("squared_") in LOSSES, "the loss is unknown")
        self.squared = self.loss.startswith("squared_")
        self.residual = self.loss.endswith(LOSSES[1])
        self.epsilon = natural(epsilon)
        self.n, self.d = integers(self.value(b"size"))
        require(self.n > 0 and self.d > 0, "there are no rows or columns")
        exponents = integers(self.value(b"exponents"))
        require(min(exponents) >= 0 and max(exponents) <= MOST, "an exponent is large")
        self.exponent_x, self.exponent_w, self.exponent_a = exponents[:3]
        self.exponent_cost, self.exponent_y = exponents[3:]
        self.score = self.exponent_x + self.exponent_w
        bias, _, constant = self.value(b"bias").partition(b" ")
        self.bias, self.constant = bias.decode(), natural(constant)
        self.free = self.bias == "free"  # its feature is 1, and outside the norm
        require(self.bias in ("none", "free", "penalised"), "the bias is unknown")
        one = 1 << self.exponent_x if self.free else self.constant
        require(self.constant == one, "the constant of a free bias is 1")
        require((self.bias == "none") == (one == 0), "the constant is 0, or should be")
        text = self.value(b"labels")
        self.labels = json.loads(text)
        require(json.dumps(self.labels).encode() == text, "labels are not canonical")
        require(rising(self.labels), "labels are not rising")
        plain = not (self.exponent_y or self.epsilon)
        require(not self.labels if self.residual else plain, "the labels do not fit")
        self.parts = [Part(self) for _ in range(natural(self.value(b"parts")))]
        require(self.parts, "there are no parts")
        require(next(self.lines, b"") == b"rows", "the rows are missing")

    def value(self, key: bytes) -> bytes:
        """Return what follows a keyword on the next line."""
        word, _, rest = next(self.lines, b"").partition(b" ")
        require(word == key, f"the line of {key.decode()!r} is missing")
        return rest

    def rows(self) -> Iterator[tuple[list[int], list[int], list[int]]]:
        """Yield (label and dual variables, columns, values) of every row."""
        last, index = b"", list[int]()
        for _ in range(self.n):
            head, columns, values = next(self.lines, b"").split(b";")
            if columns != last:
                last, index = columns, integers(columns) if columns else []
                within = not index or (index[0] >= 0 and index[-1] < self.d)
                require(
                    rising(index) and within, "columns are not rising, or too large"
                )
            # No value is 0, so no value may begin with 0.
            plain = not values.translate(None, b"0123456789 -")
            zero = values[:1] == b"0" or b" 0" in values or b"-0" in values
            require(plain and not zero, "a value is not canonical")
            x = list(map(int, values.split(b" "))) if values else []
            require(len(x) == len(index), "a row has too many or too few values")
            yield integers(head), index, x
        require(list(self.lines) == [b""], "there is more after the rows")

    def bounds(self, data: bytes | None = None) -> list[tuple[Fraction, Fraction]]:
        """Return P and D of every part, and compare the rows with data if given."""
        others = None if data is None else examples(data, self.base)
        for i, (head, index, x) in enumerate(self.rows()):
            label, *alpha = head
            require(len(alpha) == len(self.parts), "a dual variable is missing")
            known = self.residual or label in range(len(self.labels))
            require(known, "a label is unknown")
            same = not others or self.is_row(next(others, None), label, index, x)
            require(same, f"row {i + 1} is not row {i + 1} of DATA")
            for part, a in zip(self.parts, alpha, strict=True):
                part.add(self, i, label, a, index, x)
        require(not others or not next(others, None), "DATA has more rows")
        return [part.bounds(self) for part in self.parts]

    def is_row(
        self, other: Example | None, label: int, index: list[int], x: list[int]
    ) -> bool:
        """Whether a row of DATA is a row of the proof."""
        own = Fraction(label, 1 << self.exponent_y)
        own = own if self.residual else self.labels[label]
        if other is None or other[:2] != (own, index):
            return False
        values = other[2]
        # Python compares a float with an integer exactly.
        if list(map(mul, values, repeat(2.0 ** min(self.exponent_x, 1000)))) == x:
            return True
        return [Fraction(value) * 2**self.exponent_x for value in values] == x


def examples(data: bytes, base: int) -> Iterator[Example]:
    """Yield label, columns and values of the rows of svmlight text, without zeros."""
    for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        if not (text := line.partition(b"#")[0].split()):
            continue
        label, *pairs = text
        words = b":".join(pairs).split(b":") if pairs else []
        index = [int(word) - base for word in words[::2]]
        values = list(map(float, words[1::2]))
        if not (all(values) and rising(index)):
            kept = sorted(pair for pair in zip(index, values, strict=True) if pair[1])
            index, values = [k for k, _ in kept], [value for _, value in kept]
        yield float(label), index, values


def claim_of(primal: Fraction, dual: Fraction) -> bytes:
    """Return the claim of a part: P and D, as fractions in lowest terms."""
    return b"%d/%d %d/%d" % (*primal.as_integer_ratio(), *dual.as_integer_ratio())


def check(proof: Proof, data: bytes | None = None) -> list[tuple[Fraction, Fraction]]:
    """Return P and D of every part, or raise one of `FAILURES` if a claim is false."""
    if data is not None:
        digest = hashlib.sha256(data).hexdigest().encode()
        require(digest == proof.data, "DATA is not the file that the proof names")
    found = proof.bounds(data)
    for part, bounds in zip(proof.parts, found, strict=True):
        require(claim_of(*bounds) == part.claim, "a claim is not the computed value")
    return found


def main() -> None:
    """Check the proof that the command line names, and exit."""
    try:
        if len(sys.argv) not in (2, 3) or sys.argv[1].startswith("-"):
            raise OSError("usage: dualgap-check PROOF [DATA]")
        content, *data = [Path(name).read_bytes() for name in sys.argv[1:]]
        proof = Proof(content)
        found = check(proof, *data)
    except OSError as error:
        print(f"dualgap-check: {error}", file=sys.stderr)
        sys.exit(2)
    except FAILURES as error:
        print(f"NOT VALID: {error}")
        sys.exit(1)
    one = proof.constant / 2**proof.exponent_x
    epsilon = proof.epsilon / 2**proof.exponent_y
    print(f"{proof.loss}, epsilon {epsilon:g}, bias {proof.bias} {one:g}", end=", ")
    print(f"{proof.n} rows, {proof.d} columns, labels {proof.labels}")
    for part, (primal, dual) in zip(proof.parts, found, strict=True):
        units = -(-(primal - dual) * 10**9 // dual) if dual > 0 else "infinity"
        least, most = (f(part.costs) / 2**proof.exponent_cost for f in (min, max))
        print(f"part {part.positive} {part.negative}: costs {least:g} to {most:g}")
        print(
            f"P = {float(primal):.9g}, D = {float(dual):.9g}, (P - D)/D <= {units}e-9"
        )
    rows = "DATA holds the same rows" if data else "no DATA was given to compare"
    print(f"VALID: the claims hold exactly; {rows}.")


if __name__ == "__main__":
    main()

"""Check a proof of ``dualgap prove`` in exact integers, with Python 3.10 or newer.

``python dualgap_check.py PROOF [DATA]`` says whether the claims of PROOF hold, and DATA
holds its rows (docs/proof-format.md). Exit status: 0 valid, 1 not valid, 2 not checked.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterator
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from operator import mul
from pathlib import Path

LOSSES = ("hinge", "epsilon_insensitive")  # and their squares
FAILURES = (ValueError, TypeError, ArithmeticError, LookupError, RuntimeError)
MOST = 5000  # largest exponent, and half the bits of k(z, x)
KERNELS = {"poly": 2, "rbf": 0}  # their parameters besides gamma
BITS = 64  # of values of the RBF kernel, which are at most 2 units off
Row = tuple[list[int], list[int]]  # columns and values
Example = tuple[float, list[int], list[float]]  # label, columns and values
Dyadic = tuple[int, int]  # a number: an integer over 2 to this power


def require(holds: object, what: str) -> None:
    """Raise an error for a proof that is malformed, or whose claims do not hold."""
    if not holds:
        raise ValueError(what)


def integers(text: bytes, signed: bool = False) -> list[int]:
    """Return integers in decimal, separated by single spaces; there is one spelling."""
    values = list(map(int, text.split(b" ")))
    require(b" ".join(map(b"%d".__mod__, values)) == text, "a number is not canonical")
    require(signed or min(values) >= 0, "a number is negative")
    return values


def total(*terms: Dyadic) -> Dyadic:
    """Return a sum in lowest terms."""
    most = max(power for _, power in terms)
    number = sum(number << most - power for number, power in terms)
    zeros = min((number & -number).bit_length() - 1, most) if number else most
    return number >> zeros, most - zeros


def shown(top: int, bottom: int, digits: int = 6) -> str:
    """Return a quotient in some digits; it may be too large for a float."""
    number = top / bottom if abs(top) < bottom << 1000 else Decimal(top // bottom)
    return f"{number:.{digits}g}"


class Part:
    """One binary problem, or the regression problem, with sums over the rows so far."""

    def __init__(self, proof: Proof) -> None:
        p, q = self.positive, self.negative = integers(proof.value(b"part"), True)
        least = -1 if proof.residual else 0
        sound = least <= p < len(proof.labels) > q >= -1 and (least or p != q)
        require(sound, "a part has a class that is not there, or twice")
        self.signs, self.others = {q: -1, p: 1}, -(q == -1)
        self.w = integers(proof.value(b"w"), True)
        require(len(self.w) == proof.d + bool(proof.constant), "w has the wrong length")
        own = self.w[: proof.d]
        require(not (proof.nonlinear and any(own)), "w is not 0 beside a kernel")
        self.costs = integers(proof.value(b"costs"))
        require(len(self.costs) in (1, proof.n), "the number of costs is wrong")
        self.claim = proof.value(b"claim")
        last = sum(self.w[proof.d :])
        self.norm = sum(map(mul, own, own)) + (0 if proof.free else last * last)
        self.slopes = list(map(mul, own, proof.factors)) if proof.scaled else own
        self.offset = last * proof.constant - sum(map(mul, self.slopes, proof.means))
        self.v, self.support = [0] * proof.d, list[tuple[int, int, dict[int, int]]]()
        self.loss = self.linear = self.curved = self.balance = 0
        self.square = self.doubt = 0  # for kernels: |v|^2, and the error of a score

    def score(self, proof: Proof, row: Row) -> int:
        """Return the sum of a k(z, x) over the rows z that were kept."""
        score, (x, own) = 0, proof.weighted(row)
        for a, other, z in self.support:
            inner = sum(map(mul, map(z.get, row[0], repeat(0)), x))
            if proof.kernel == "poly":
                base = proof.gamma * (inner + own + other + proof.middle) + proof.coef0
                require(proof.degree * base.bit_length() <= 2 * MOST, "k is too large")
                score += a * base**proof.degree
            else:  # Decimal.exp rounds correctly, to 28 digits: at most 2 units off
                r = proof.gamma * (2 * inner + own + other) << 256 >> proof.inner
                score += a * int((max(r, -99 << 256) / Decimal(2**256)).exp() * 2**BITS)
        return score

    def add(self, proof: Proof, i: int, label: int, a: int, row: Row) -> None:
        """Check the dual variable of row i, and add the row to the sums."""
        index, x = row
        if not (sign := proof.residual or self.signs.get(label, self.others)):
            require(a == 0, "a row outside a part has a dual variable")
            return
        cost = self.costs[i] if len(self.costs) > 1 else self.costs[0]
        size = abs(a) if proof.residual else a
        inside = size << proof.exponent_cost <= cost << proof.exponent_a
        inside = inside or (proof.squared and cost > 0)
        require(size >= 0 and inside, "a dual variable is outside its box")
        known = self.score(proof, row) if self.support else 0
        score = self.offset + known
        score += sum(map(mul, map(self.slopes.__getitem__, index), x))
        if proof.residual:
            off = abs((label << proof.score) - (score << proof.exponent_y))
            excess = off - (proof.epsilon << proof.score)
            self.linear += label * a - proof.epsilon * size
        else:
            excess = (1 << proof.score) - sign * score
            self.linear += a
        excess = max(0, excess + (self.doubt << proof.exponent_y))
        self.loss += cost * (excess * excess if proof.squared else excess)
        if a == 0:
            return
        if proof.squared:
            self.curved -= -(a * a << proof.exponent_cost) // cost  # rounded up
        a *= sign
        self.balance += a
        if proof.nonlinear:
            self.square += a * known + abs(a) * self.doubt
            return
        for k, product in zip(index, map(mul, repeat(a), x), strict=True):
            self.v[k] += product

    def bounds(self, proof: Proof) -> tuple[Dyadic, Dyadic]:
        """Return P and D, after all rows."""
        unit = proof.exponent_cost + (proof.score + proof.exponent_y << proof.squared)
        require(self.balance == 0 or not proof.free, "dual variables do not balance")
        if proof.scaled and not proof.nonlinear:  # v so far is the sum of a x
            terms = zip(self.v, proof.means, proof.factors, strict=True)
            self.v = [(v - self.balance * mean) * factor for v, mean, factor in terms]
        norm = sum(map(mul, self.v, self.v)) + (proof.constant * self.balance) ** 2
        a, curve = proof.exponent_a, proof.exponent_a + proof.score + 1
        own, curved = (self.norm, 2 * proof.exponent_w + 1), (-self.curved, 2 * a + 2)
        primal = total(own, (self.square, curve), (self.loss, unit))
        rest = curved, (-self.square, curve), (-norm, 2 * (a + proof.exponent_x) + 1)
        return primal, total((self.linear, a + proof.exponent_y), *rest)


class Proof:
    """A proof file: the header, the parts, and the rows."""

    def __init__(self, content: bytes) -> None:
        body, _, seal = content.rpartition(b"sha256 ")
        digest = hashlib.sha256(body).hexdigest()
        require(seal == digest.encode() + b"\n", "the checksum does not match")
        self.lines = iter(body.split(b"\n"))
        require(self.value(b"dualgap-proof") == b"1", "this is no proof of version 1")
        text = self.value(b"data")
        require(re.fullmatch(b"none|[0-9a-f]{64} [01]", text), "the data have no name")
        self.data, self.base = text[:64], int(text[65:] or b"0")
        name, _, epsilon = self.value(b"loss").partition(b" ")
        self.loss, (self.epsilon,) = name.decode(), integers(epsilon)
        require(self.loss.removeprefix("squared_") in LOSSES, "the loss is unknown")
        self.squared = self.loss.startswith("squared_")
        self.residual = self.loss.endswith(LOSSES[1])
        self.n, self.d = integers(self.value(b"size"))
        exponents = integers(self.value(b"exponents"))
        require(max(exponents) <= MOST, "an exponent is large")
        self.exponent_x, self.exponent_w, self.exponent_a = exponents[:3]
        self.exponent_cost, self.exponent_y = exponents[3:]
        self.score = self.exponent_x + self.exponent_w
        bias, _, constant = self.value(b"bias").partition(b" ")
        self.bias, (self.constant,) = bias.decode(), integers(constant)
        self.free = self.bias == "free"  # its feature is 1, and outside the norm
        require(self.bias in ("none", "free", "penalised"), "the bias is unknown")
        one = self.constant == 1 << self.exponent_x if self.free else self.constant
        require((self.bias == "none") == (not one), "the constant is not of the bias")
        text, lines = self.value(b"scaling"), [list[int](), list[int]()]
        self.scaled, self.raw = text != b"none", self.exponent_x
        if self.scaled:  # the rows of the problem are (x - means) * factors
            (self.raw,) = integers(text)
            lines = [integers(self.value(key), True) for key in (b"means", b"factors")]
            fits = set(map(len, lines)) == {self.d} and min(lines[1]) > 0
            require(fits and self.raw <= self.exponent_x, "the scaling does not fit")
        self.means, self.factors = lines
        self.weights = list(map(mul, self.factors, self.factors))
        self.middle = sum(map(mul, self.weights, map(mul, self.means, self.means)))
        text = self.value(b"kernel")
        self.kernel, self.nonlinear = text.split(b" ")[0].decode(), text != b"none"
        if self.nonlinear:
            self.gamma, e, *power = integers(text.partition(b" ")[2])
            require(len(power) == KERNELS.get(self.kernel), "the kernel is unknown")
            self.degree, self.coef0 = power or (1, 0)
            self.inner = e + 2 * self.exponent_x
            own = BITS if self.kernel == "rbf" else self.degree * self.inner
            fits = max(own, self.inner) <= MOST and self.exponent_a + own == self.score
            require(fits, "the exponents do not fit the kernel")
        moved = self.kernel == "rbf" and any(self.means)
        require(not moved, "a mean does not matter to the kernel, but is not 0")
        text = self.value(b"labels")
        self.labels = list(json.loads(text))
        rising = json.dumps(sorted(set(self.labels)), allow_nan=False)
        require(rising.encode() == text, "labels are not canonical, or not rising")
        plain = not (self.exponent_y or self.epsilon)
        require(not self.labels if self.residual else plain, "the labels do not fit")
        (parts,) = integers(self.value(b"parts"))
        self.parts = [Part(self) for _ in range(parts)]
        require(next(self.lines, b"") == b"rows" and parts, "no rows or no parts")

    def value(self, key: bytes) -> bytes:
        """Return what follows a keyword on the next line."""
        word, _, rest = next(self.lines, b"").partition(b" ")
        require(word == key, f"the line of {key.decode()!r} is missing")
        return rest

    def rows(self) -> Iterator[tuple[list[int], Row]]:
        """Yield label and dual variables, and columns and values, of every row."""
        last, index = b"", list[int]()
        for _ in range(self.n):
            head, columns, values = next(self.lines, b"").split(b";")
            if columns != last:
                last, index = columns, integers(columns) if columns else []
                sound = index == sorted(set(index)) and max(index, default=-1) < self.d
                require(sound, "columns are not rising, or too many")
            x = integers(values, True) if values else []
            require(len(x) == len(index) and all(x), "a row has other values, or a 0")
            yield integers(head, True), (index, x)
        require(list(self.lines) == [b""], "there is more after the rows")

    def bounds(self, data: bytes | None = None) -> list[tuple[Dyadic, Dyadic]]:
        """Return P and D of every part, and compare the rows with data if given."""
        others = None if data is None else examples(data, self.base)
        rows = list(self.rows()) if self.nonlinear else self.rows()
        for (label, *alpha), row in rows if self.nonlinear else ():
            own, z = self.weighted(row)[1], dict(zip(*row, strict=True))
            for part, a in zip(self.parts, alpha, strict=True):
                if a:
                    sign = self.residual or part.signs.get(label, part.others)
                    part.support.append((sign * a, own, z))
                    part.doubt += 2 * abs(a) if self.kernel == "rbf" else 0
        for i, ((label, *alpha), row) in enumerate(rows):
            if i % 500 == 499 and sys.stderr.isatty():  # with a kernel this is slow
                print(f"row {i + 1} of {self.n}", end="\r", file=sys.stderr)
            same = not others or self.is_row(next(others, None), label, row)
            require(same, f"row {i + 1} is not row {i + 1} of DATA")
            require(self.residual or -1 < label < len(self.labels), "no such class")
            for part, a in zip(self.parts, alpha, strict=True):
                part.add(self, i, label, a, row)
        require(not others or not next(others, None), "DATA has more rows")
        return [part.bounds(self) for part in self.parts]

    def weighted(self, row: Row) -> tuple[list[int], int]:
        """Return a row for inner products with others, and its own term in k."""
        index, x = row
        means = list(map(self.means.__getitem__, index)) if self.scaled else []
        if self.scaled:
            x = list(map(mul, map(self.weights.__getitem__, index), x))
        return x, -sum(map(mul, x, row[1] if self.kernel == "rbf" else means))

    def is_row(self, other: Example | None, label: int, row: Row) -> bool:
        """Whether a row of DATA is a row of the proof."""
        own = Fraction(label, 1 << self.exponent_y)
        own = own if self.residual else self.labels[label]
        if other is None or other[:2] != (own, row[0]):
            return False
        values, e = other[2], self.raw
        quick = e < 1024 and list(map(mul, values, repeat(2.0**e))) == row[1]
        return quick or [Fraction(value) * 2**e for value in values] == row[1]


def examples(data: bytes, base: int) -> Iterator[Example]:
    """Yield label, columns and values of the rows of svmlight text, without zeros."""
    lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    for label, *pairs in filter(None, (x.partition(b"#")[0].split() for x in lines)):
        words = b":".join(pairs).split(b":") if pairs else []
        index = [int(word) - base for word in words[::2]]
        values = list(map(float, words[1::2]))
        if not all(values) or index != sorted(set(index)):
            kept = sorted(pair for pair in zip(index, values, strict=True) if pair[1])
            index, values = [k for k, _ in kept], [value for _, value in kept]
        yield float(label), index, values


def claim_of(primal: Dyadic, dual: Dyadic) -> bytes:
    """Return the claim of a part: P and D, as fractions in lowest terms."""
    return b"%d/%d %d/%d" % (primal[0], 1 << primal[1], dual[0], 1 << dual[1])


def check(proof: Proof, data: bytes | None = None) -> list[tuple[Fraction, Fraction]]:
    """Return P and D of every part, or raise one of `FAILURES` if a claim is false."""
    if data is not None:
        digest = hashlib.sha256(data).hexdigest().encode()
        require(digest == proof.data, "DATA is not the file that the proof names")
    found = proof.bounds(data)
    for part, bounds in zip(proof.parts, found, strict=True):
        require(claim_of(*bounds) == part.claim, "a claim is not the computed value")
    return [(Fraction(p, 1 << e), Fraction(d, 1 << f)) for (p, e), (d, f) in found]


def main() -> None:
    """Check the proof that the command line names, and exit."""
    paths = list(map(Path, sys.argv[1:]))
    if {"-h", "--help"} & {*sys.argv}:
        sys.exit(print((__doc__ or "").replace("`", "")))
    try:
        if len(paths) not in (1, 2) or any(map(Path.is_char_device, paths)):
            raise OSError("usage: dualgap-check PROOF [DATA], which are files")
        content, *data = map(Path.read_bytes, paths)
        proof = Proof(content)
        if data and proof.data == b"none":
            raise OSError("PROOF names no DATA of svmlight text to compare; omit DATA")
        found = check(proof, *data)
    except (OSError, MemoryError, KeyboardInterrupt) as error:
        stopped = isinstance(error, KeyboardInterrupt)
        told = "interrupted" if stopped else str(error) or "too little memory"
        print("dualgap-check:", re.sub(r"\[.*?\] ", "", told), file=sys.stderr)
        sys.exit(130 if stopped else 2)
    except FAILURES as error:
        print(f"NOT VALID: {error}")
        sys.exit(1)
    rows = "DATA holds the same rows" if data else "no DATA was given to compare"
    gaps = [-1 if p > d * 10**9 else -(-(p - d) * 10**9 // (d or 1)) for p, d in found]
    percent = Decimal(max(*gaps, 1)).scaleb(-7).normalize()  # gaps are in 1e-9
    near = f"within {percent:f} % of" if min(gaps) >= 0 else "not shown to be near"
    print(f"The proof is valid: the model is {near} the optimum; {rows}.")
    print(f"{proof.loss}, epsilon", shown(proof.epsilon, 2**proof.exponent_y), end=", ")
    print(f"bias {proof.bias} {shown(proof.constant, 2**proof.exponent_x)}", end=", ")
    print(f"kernel {proof.kernel}, {proof.n} rows, {proof.d}", end=" ")
    print(f"{'scaled ' * proof.scaled}columns, labels {proof.labels!a}")  # in ASCII
    for part, bounds, gap in zip(proof.parts, found, gaps, strict=True):
        least, most = (shown(f(part.costs), 2**proof.exponent_cost) for f in (min, max))
        print(f"part {part.positive} {part.negative}: costs {least} to {most}")
        p, d = (shown(*bound.as_integer_ratio(), 9) for bound in bounds)
        ratio = f"{gap}e-9" if gap >= 0 else "infinity"
        print(f"P = {p}, D = {d}, (P - D)/D <= {ratio}")
    print(f"VALID: the claims hold exactly; {rows}.")


if __name__ == "__main__":
    main()

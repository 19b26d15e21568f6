"""Hostile proofs for dualgap_check: python tests/fuzz/proofs.py FIRST COUNT.

Each number is the seed of one proof, so what is found can be made again. Every proof
gets a right checksum, or it would go no further. The program prints the proofs that
took over 2 s of processor time or 200 MB, or ended in anything but an answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import random
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import SVC, SVR, LinearSVC, LinearSVR
from dualgap.models import write_proof
from dualgap_check import FAILURES, Proof, check

resource = None
if sys.platform.startswith("linux"):
    import resource

#: Spellings in place of a number: wrong ones, and some that are large.
WORDS = [
    *(b"", b"00", b"+1", b"-0", b"1.5", b"1e9", b"nan", b"true", b"\xff"),
    *(b"0", b"1", b"-1", b"2", b"3", b"52", b"64", b"1000", b"4999", b"5000", b"5001"),
    *(b"300000000", b"99999999999", b"18446744073709551616"),
    *(b"9" * 4300, b"-" + b"9" * 4300, b"9" * 4301, b"1" + b"0" * 20_000),
]
LABELS = [
    b"[" * 100_000,
    b"[" * 500 + b"]" * 500,
    json.dumps(list(range(5000))).encode(),
    b'["' + b"a" * 50_000 + b'"]',
    b'["\\u00e9", "\\u00fc"]',
    b'["\\ud800"]',
    b"[1e999]",
    b"[" + b"9" * 5000 + b"]",
    b'{"a": 1}',
    b"null",
]
NUMBERS = [str(value) for value in (0, 1, 2, 3, 5, 7, -1, -4, 10**18, -(10**18))]
NUMBERS = [*NUMBERS, "9" * 300] * 3 + ["9" * 1500, "1" + "0" * 4299]


def sealed(body: bytes) -> bytes:
    """Add the checksum."""
    return b"%bsha256 %b\n" % (body, hashlib.sha256(body).hexdigest().encode())


def mutated(draw: random.Random, proofs: list[bytes]) -> bytes:
    """Return a proof with some edits of its bytes, words or lines."""
    bodies = [proof[: proof.rindex(b"sha256 ")] for proof in proofs]
    body = draw.choice(bodies)
    for _ in range(draw.choice([1, 1, 1, 2, 3, 8])):
        lines = body.split(b"\n")
        at = draw.randrange(len(lines))
        kind = draw.randrange(8)
        if kind == 0:
            found = draw.choice([*re.finditer(rb"-?[0-9]+", body)])
            lines = [body[: found.start()] + draw.choice(WORDS) + body[found.end() :]]
        elif kind == 1:
            at = draw.choice([i for i, line in enumerate(lines) if b" " in line])
            words = lines[at].split(b" ")
            words[draw.randrange(len(words))] = draw.choice(WORDS)
            lines[at] = b" ".join(words)
        elif kind == 2:
            del lines[at]
        elif kind == 3:
            lines[at:at] = [draw.choice(lines)] * draw.choice([1, 2, 50])
        elif kind == 4:
            edited = bytearray(body)
            for _ in range(draw.choice([1, 4, 30])):
                edited[draw.randrange(len(edited))] = draw.randrange(256)
            lines = [bytes(edited)]
        elif kind == 5:
            other = draw.choice(bodies).split(b"\n")
            at = draw.randrange(min(len(lines), len(other)))
            lines[at:] = other[at:]
        elif kind == 6:
            words = lines[at].split(b" ")
            place = draw.randrange(len(words))
            words[place:place] = [draw.choice(WORDS[:23])] * draw.choice([1, 10, 1000])
            lines[at] = b" ".join(words)
        else:
            new = b"labels " + draw.choice(LABELS)
            lines = [new if line.startswith(b"labels") else line for line in lines]
        body = b"\n".join(lines)[:400_000]
        if not re.search(rb"[0-9]", body):
            break
    return sealed(body)


def hostile(draw: random.Random) -> bytes:
    """Return a proof whose header fits, with extreme sizes and numbers."""

    def number() -> str:
        return draw.choice(NUMBERS)

    def size() -> str:
        return number().lstrip("-")

    def exponent() -> int:
        return draw.choice([0, 1, 2, 52, 64, 100, 1000, 5000, draw.randrange(5001)])

    d, n = draw.choice([1, 1, 1, 2, 5, 100]), draw.choice([1, 1, 2, 5, 30, 200])
    residual, squared = draw.random() < 0.2, draw.random() < 0.4
    x, w, a, c = exponent(), exponent(), exponent(), exponent()
    y = exponent() if residual else 0
    name, kernel = draw.choice(["none", "none", "poly", "rbf", "poly"]), "none"
    if name != "none":
        x, e = draw.choice([0, 0, 1, 52, 1000, 2000]), draw.choice([0, 0, 1, 10, 1000])
        power = draw.choice([1, 1, 2, 3, 5, 50, 5000, 300_000_000, 99_999_999_999])
        own = 64 if name == "rbf" else power * (e + 2 * x)
        kernel = f"{name} {size()} {e}"
        kernel += f" {power} {size()}" if name == "poly" else ""
        a = max(a if a + own - x <= 5000 else 0, x - own)
        w = a + own - x
    bias = draw.choice(["none", "free", "penalised"])
    constant = {"none": "0", "free": str(1 << x), "penalised": size()}[bias]
    scaling = ["scaling none"]
    if draw.random() < 0.4:
        few = ["0"] if name == "rbf" else NUMBERS
        scaling = [
            f"scaling {draw.randrange(x + 1)}",
            f"means {' '.join(draw.choice(few) for _ in range(d))}",
            f"factors {' '.join(size().replace('0', '1', 1) for _ in range(d))}",
        ]
    classes = 1 if residual else draw.choice([2, 2, 2, 3, 3, 300, 3000])
    parts = 1 if residual else draw.choice([1, 1, 2, 5, min(classes, 2000)])
    n = min(n, 2) if parts > 5 else n
    loss = "epsilon_insensitive" if residual else "hinge"
    lines = [
        "dualgap-proof 1",
        "data none",
        f"loss {'squared_' * squared}{loss} {size() if residual else 0}",
        f"size {n} {d}",
        f"exponents {x} {w} {a} {c} {y}",
        f"bias {bias} {constant}",
        *scaling,
        f"kernel {kernel}",
        f"labels {json.dumps([] if residual else list(range(classes)))}",
        f"parts {parts}",
    ]
    for _ in range(parts):
        first = -1 if residual else draw.randrange(classes)
        rest = residual or draw.random() < 0.6
        own_w = ["0" if kernel != "none" else number() for _ in range(d)]
        own_w += [] if constant == "0" else [number()]
        claim = f"{number()}/{1 << draw.choice([0, 1, 100, 5000])} {number()}/1"
        lines += [
            f"part {first} {-1 if rest else (first + 1) % classes}",
            f"w {' '.join(own_w)}",
            f"costs {' '.join(size() for _ in range(draw.choice([1, 1, n])))}",
            f"claim {draw.choice(['0/1 0/1', claim])}",
        ]
    lines.append("rows")
    for _ in range(n):
        columns = range(draw.choice([d, d, min(d, 1), 0]))
        few = bias == "free" or draw.random() < 0.5
        duals = ["0" if few else size() for _ in range(parts)]
        label = number() if residual else str(draw.randrange(classes))
        values = [number().replace("0", "1", 1) for _ in columns]
        index = " ".join(map(str, columns))
        lines.append(f"{' '.join([label, *duals])};{index};{' '.join(values)}")
    return sealed("\n".join([*lines, ""]).encode()[:1_500_000])


def proof_of(seed: int, proofs: list[bytes]) -> bytes:
    """Return the hostile or mutated proof of a seed."""
    draw = random.Random(seed)
    return hostile(draw) if draw.random() < 0.5 else mutated(draw, proofs)


def answer(content: bytes) -> str:
    """Return what the checker says: "valid", or why not."""
    try:
        check(Proof(content))
    except FAILURES as error:
        return type(error).__name__
    return "valid"


@contextlib.contextmanager
def little_memory() -> Iterator[None]:
    """Leave 200 MB to the process, on Linux."""
    if resource is None:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        held = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (held + 200 * 2**20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def attack(
    seeds: range, proofs: list[bytes], most: float = math.inf
) -> tuple[Counter[str], dict[int, str]]:
    """Check the proofs of these seeds, each in at most `most` processor seconds.

    Returns
    -------
    said : Counter
        How often the checker gave each answer.
    found : dict
        Seeds of proofs that took more seconds or over 200 MB, or ended otherwise.
    """
    said: Counter[str] = Counter()
    found: dict[int, str] = {}
    for seed in seeds:
        content = proof_of(seed, proofs)
        begun = time.process_time()
        try:
            with little_memory():
                said[answer(content)] += 1
        except Exception as error:
            found[seed] = type(error).__name__
        if time.process_time() - begun > most:
            found[seed] = f"over {most:g} s"
    return said, found


def examples() -> list[bytes]:
    """Return proofs of every kind."""
    draw = np.random.default_rng(0)
    y = np.arange(24) % 3
    X = draw.normal(size=(24, 4)) + y[:, None] * draw.normal(size=4)
    target = X @ [1.0, -2.0, 0.5, 0.1]
    few = y < 2
    cases = [
        (LinearSVC(loss="hinge"), X[few], np.array(["\u00e9", "\u00fc"])[y[few]]),
        (LinearSVC(loss="squared_hinge", fit_intercept=False), X[few], y[few]),
        (LinearSVC(penalize_intercept=False), X[few], y[few]),
        (LinearSVC(multi_class="ovo"), X, y),
        (LinearSVC(), X, y),
        (LinearSVR(epsilon=0.1), X, target),
        (SVC(kernel="poly", coef0=1.0), X[few], y[few]),
        (SVC(), X, y),
        (SVR(kernel="linear"), X, target),
        (make_pipeline(StandardScaler(), LinearSVC()), X, y),
        (make_pipeline(StandardScaler(), SVC(kernel="poly")), X[few], y[few]),
    ]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "proof"
        proofs = []
        for model, rows, labels in cases:
            write_proof(model.fit(rows, labels), rows, labels, path, tol=1e300)
            proofs.append(path.read_bytes())
    return proofs


def main() -> None:
    first, count = map(int, sys.argv[1:])
    said, found = attack(range(first, first + count), examples(), most=2.0)
    print(dict(said), found)


if __name__ == "__main__":
    main()

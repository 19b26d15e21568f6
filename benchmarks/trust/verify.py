"""Certificates of 10,000 nasty random problems, checked in rational numbers.

    python benchmarks/trust/verify.py                 all of them, about 15 minutes
    python benchmarks/trust/verify.py 1000 --first 7  some
    python benchmarks/trust/verify.py --others        regression, one class, all classes
                                                      in one problem, kernels of rows

Every problem goes to every solver that accepts it. tests/trust/nasty.py draws them,
tests/trust/verifier.py knows the exact values.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.trust.nasty import Tally, verify, verify_others

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("problems", type=int, nargs="?", default=10_000)
parser.add_argument("--first", type=int, default=0, help="seed of the first one")
parser.add_argument("--others", action="store_true")


def main() -> int:
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    tally, begun = Tally(), time.perf_counter()
    last = arguments.first + arguments.problems
    for seed in range(arguments.first, last):
        try:
            (verify_others if arguments.others else verify)(seed, tally)
        except Exception as error:  # whatever it is, it is a finding
            tally.false.append(f"seed {seed}: {type(error).__name__}: {error}")
        if (seed + 1) % 1000 == 0:
            print(f"{seed + 1}: {len(tally.false)} false", flush=True)
    print(f"problems {tally.problems}, refused {tally.refused}, "
          f"certificates {sum(tally.fits.values())} in "
          f"{time.perf_counter() - begun:.0f} s")  # fmt: skip
    print("by solver:", ", ".join(f"{k} {v}" for k, v in sorted(tally.fits.items())))
    print(
        "by status:", ", ".join(f"{k} {v}" for k, v in sorted(tally.statuses.items()))
    )
    room = np.quantile(tally.room, [0.5, 0.9, 0.99])
    print(
        "room for rounding over P: median {:.1e}, 90 % {:.1e}, 99 % {:.1e}".format(
            *room
        )
    )
    print(f"false: {len(tally.false)}")
    print(*tally.false[:50], sep="\n")
    return 1 if tally.false else 0


if __name__ == "__main__":
    raise SystemExit(main())

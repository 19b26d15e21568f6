"""Claims about models that no solver has just returned, checked in rational numbers.

    python benchmarks/trust/verify_derived.py               3,000 problems of each kind
    python benchmarks/trust/verify_derived.py 500 --first 7

tests/trust/derived.py draws them: compressed models, models over landmarks, batches,
and what `certify` says of models from elsewhere.
"""

from __future__ import annotations

import argparse
import logging
import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.trust.derived import KINDS, check

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("problems", type=int, nargs="?", default=3000)
parser.add_argument("--first", type=int, default=0, help="seed of the first one")
parser.add_argument("--kind", choices=sorted(KINDS), help="one kind alone")


def main() -> int:
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    seeds = range(arguments.first, arguments.first + arguments.problems)
    wrong: list[str] = []
    print("| kind | problems | certificates | with P | with D | false |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    for name, draw in KINDS.items():
        if arguments.kind not in (None, name):
            continue
        claims = with_primal = with_dual = 0
        found: list[str] = []
        for seed in seeds:
            for claim in draw(seed):
                c = claim.certificate
                claims += 1
                with_primal += claim.primal is not None and c.primal < math.inf
                with_dual += claim.dual is not None and c.dual not in (0.0, -math.inf)
                found += check(claim)
        counts = (arguments.problems, claims, with_primal, with_dual, len(found))
        print(f"| {name} |", " | ".join(map(str, counts)), "|", flush=True)
        wrong += found
    print(*wrong[:50], sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""atheris on a target of surface.py: python tests/fuzz/run.py TARGET [libFuzzer's].

Coverage is that of the package's Python code. Seeds are random bytes, for the targets
make whole inputs of any; what is found comes as a file crash-*, whose bytes
`python tests/fuzz/surface.py TARGET FILE` tries again.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["dualgap"]):
    import surface


def main() -> None:
    target = sys.argv.pop(1)
    counts = [0, 0]

    def one(data: bytes) -> None:
        counts[surface.try_one(target, data)] += 1
        if sum(counts) % 10_000 == 0:
            print(f"{target}: {counts[0]} refused, {counts[1]} accepted", flush=True)

    atheris.Setup(sys.argv, one)
    atheris.Fuzz()


if __name__ == "__main__":
    main()

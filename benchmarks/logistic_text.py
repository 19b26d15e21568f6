"""Logistic regression of two classes of sparse text: dcd, newton and scikit-learn.

Prints processor time of one thread relative to dcd, the least of three fits in turns,
without intercepts. Our fits prove a gap of 1e-3, and `certify` proves the gap of
scikit-learn's at their default tol. The files hold the real data; see `datasets.py`.

Usage: OPENBLAS_NUM_THREADS=1 python benchmarks/logistic_text.py [--sets 20news,imdb]
"""

from __future__ import annotations

import argparse
import warnings

from datasets import load
from harness import timed
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression as Peer

from dualgap import LogisticRegression, certify

WAYS: dict[str, BaseEstimator] = {
    "dcd": LogisticRegression(solver="dcd"),
    "newton": LogisticRegression(solver="newton"),
    "auto": LogisticRegression(),
    "L-BFGS": Peer(),
    "LIBLINEAR, dual": Peer(solver="liblinear", dual=True),
}


def main(sets: list[str]) -> None:
    warnings.simplefilter("ignore")
    print(f"| data | C | seconds of dcd | {' | '.join(list(WAYS)[1:])} |")
    print("|---" * (len(WAYS) + 2) + "|")
    for name in sets:
        X, y = load(name)
        for C in (0.1, 1.0, 10.0, 100.0):
            best, gaps = dict.fromkeys(WAYS, float("inf")), {}
            for _ in range(3):
                for way, model in WAYS.items():
                    own = clone(model).set_params(C=C, fit_intercept=False)
                    best[way] = min(best[way], timed(own.fit, X, y)[0])
                    gaps[way] = certify(own, X, y).relative_gap
            parts = [f"{best[w] / best['dcd']:.1f} ({gaps[w]:.0e})" for w in WAYS]
            shown = " | ".join(parts[1:])
            print(f"| {name} | {C:g} | {best['dcd']:.3f} | {shown} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="20news,sector,imdb,w8a,a9a")
    main(parser.parse_args().sets.split(","))

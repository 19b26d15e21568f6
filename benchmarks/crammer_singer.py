"""Crammer and Singer's multiclass SVM: dualgap beside scikit-learn (LIBLINEAR -s 4).

    python benchmarks/crammer_singer.py

Prints ratios of processor time, one thread. dualgap is certified to 1e-3; scikit-learn
runs with three tolerances, and `certify` proves what each of its models has reached.
Columns are scaled to [-1, 1].
"""

from __future__ import annotations

import time
import warnings

import numpy as np
import sklearn.svm
from datasets import unpack
from sklearn.datasets import load_digits, load_svmlight_file
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import MaxAbsScaler

from dualgap import LinearSVC, certify

FILES = {
    "pendigits": "pendigits/pendigits",
    "letter": "letter/letter.scale",
}


def load(name: str):
    if name == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        X, y = load_svmlight_file(unpack(FILES[name]))
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return MaxAbsScaler().fit_transform(X), y


def timed(model, X, y):
    begun = time.process_time()
    model.fit(X, y)
    return time.process_time() - begun


def main() -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    print("| data | classes | C | gap of dualgap | epochs | "
          + " | ".join(f"tol {t:g}: time / dualgap, gap" for t in TOLS)
          + " |\n|" + "---|" * (5 + len(TOLS)))  # fmt: skip
    for name in ("digits", *FILES):
        X, y = load(name)
        for C in (0.1, 1.0):
            ours = LinearSVC(C, multi_class="crammer_singer", random_state=0)
            seconds = timed(ours, X, y)
            cells = []
            for tol in TOLS:
                theirs = sklearn.svm.LinearSVC(
                    C=C, multi_class="crammer_singer", tol=tol, max_iter=10_000,
                    random_state=0,
                )  # fmt: skip
                ratio = timed(theirs, X, y) / seconds
                gap = certify(theirs, X, y, tol=1e-5, time_limit=60).relative_gap
                cells.append(f"{ratio:.2g}, {gap:.1e}")
            c = ours.certificate_
            print(
                f"| {name} | {len(ours.classes_)} | {C:g} | {c.relative_gap:.1e} | "
                f"{c.epochs} | " + " | ".join(cells) + " |",
                flush=True,
            )


TOLS = (1.0, 0.1, 0.01)

if __name__ == "__main__":
    main()

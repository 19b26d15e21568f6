"""Bad and nasty inputs, to this package and to others: who crashes, hangs, is wrong.

    DUALGAP_RIVALS=liblinear=PYTHON,libsvm=PYTHON,... python benchmarks/trust/compare.py

Names of inputs as arguments leave out the others. Every fit runs in a process of its
own with a time limit. What it answers is judged here: P of its model against a proved
lower bound on the optimum of the problem it poses (hinge loss; libraries of the LIBSVM
kind leave the bias out of the norm, the others have none).

refuses   ends with an exception or a message that says what is wrong
warns     answers, and says that the answer may be poor
exact     answers, and P is within 10 times its own tolerance of the optimum
wrong     answers, P is further off than that, and says nothing
unproved  answers, as good as what is found here, and the proof fails too
crash, no answer (in time), memory
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

SECONDS = 45


def blobs(n=300, d=5, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = np.where(X[:, 0] + noise * rng.standard_normal(n) > 0, 1, -1)
    return X, y


def broken(change):
    X, y = blobs()
    X = sparse.csr_matrix(X)
    change(X)
    return X, y, 1.0


def index_out_of_range(X):
    X.indices[7] = 10**8


def index_negative(X):
    X.indices[7] = -(10**8)


def pointers_fall(X):
    X.indptr[3] = 10**8


def pointers_beyond(X):
    X.indptr[-1] = 10**8


def with_value(value):
    X, y = blobs()
    X[3, 1] = value
    return X, y, 1.0


def scaled(scale, C=1.0):
    X, y = blobs()
    return X * scale, y, C


def columns():
    X, y = blobs()
    return X * 10.0 ** np.arange(-3, 7, 2), y, 1.0


def opposite():
    X, y = blobs(200)
    return np.vstack([X, X]), np.concatenate([y, -y]), 100.0


def one_class():
    X, y = blobs()
    return X, np.ones(len(y), int), 1.0


CASES = {
    "column index 1e8": lambda: broken(index_out_of_range),
    "column index -1e8": lambda: broken(index_negative),
    "pointer 1e8": lambda: broken(pointers_fall),
    "last pointer 1e8": lambda: broken(pointers_beyond),
    "NaN": lambda: with_value(np.nan),
    "infinity": lambda: with_value(np.inf),
    "1e200 in one entry": lambda: with_value(1e200),
    "all of size 1e150": lambda: scaled(1e150),
    "all of size 1e-150": lambda: scaled(1e-150),
    "all of size 1e-5, C 1e8": lambda: scaled(1e-5, 1e8),
    "C 1e8": lambda: scaled(1.0, 1e8),
    "columns of size 1e-3 to 1e5": columns,
    "every row with both labels, C 100": opposite,
    "one class": one_class,
    "rows of zeros": lambda: scaled(0.0),
}
#: Accuracy that each promises, as it is set here: relative, of the objective.
TOLERANCE = 1e-3


# ------------------------------------------------------------ in a process of its own


def by_dualgap(X, y, C):
    from dualgap import LinearSVC

    model = LinearSVC(loss="hinge", C=C, tol=TOLERANCE, fit_intercept=False)
    return model.fit(X, y).coef_[0], 0.0


def by_dualgap_svc(X, y, C):
    from dualgap import SVC

    model = SVC(kernel="linear", C=C, tol=TOLERANCE).fit(X, y)
    return model.coef_[0], model.intercept_[0]


def by_sklearn(X, y, C):
    from sklearn.svm import LinearSVC

    model = LinearSVC(loss="hinge", C=C, fit_intercept=False, tol=1e-3).fit(X, y)
    return model.coef_[0], 0.0


def by_sklearn_svc(X, y, C):
    from sklearn.svm import SVC

    model = SVC(kernel="linear", C=C, tol=1e-3).fit(X, y)
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    return coef[0], model.intercept_[0]


def by_onedal(X, y, C):
    from sklearnex import patch_sklearn

    patch_sklearn(verbose=False)
    return by_sklearn_svc(X, y, C)


def by_thundersvm(X, y, C):
    from thundersvm import SVC

    model = SVC(kernel="linear", C=C, tol=1e-3)
    model.fit(X, y)
    sign = (
        1.0 if model.predict(X[:1])[0] * model.decision_function(X[:1])[0] > 0 else -1.0
    )
    return sign * np.asarray(model.coef_)[0], sign * float(model.intercept_[0])


def by_liblinear(X, y, C):
    from liblinear.liblinearutil import train

    model = train(y.astype(float), X, f"-s 3 -q -e 1e-3 -c {C!r}")
    w = np.array(model.get_decfun()[0])
    return w * model.get_labels()[0], 0.0


def by_libsvm(X, y, C):
    from libsvm.svmutil import svm_train

    model = svm_train(y.astype(float), X, f"-s 0 -t 0 -q -e 1e-3 -c {C!r}")
    coef = np.array([c[0] for c in model.get_sv_coef()])
    w = np.zeros(X.shape[1])
    for c, vector in zip(coef, model.get_SV(), strict=True):
        for j, value in vector.items():
            if j > 0:
                w[j - 1] += c * value
    labels = model.get_labels()
    return w * labels[0], -model.rho[0] * labels[0]


#: Who fits it, in whose Python, and whether the bias is free.
FITS = {
    "dualgap LinearSVC": (by_dualgap, "", False),
    "scikit-learn LinearSVC": (by_sklearn, "", False),
    "LIBLINEAR": (by_liblinear, "liblinear", False),
    "dualgap SVC": (by_dualgap_svc, "", True),
    "scikit-learn SVC": (by_sklearn_svc, "", True),
    "LIBSVM": (by_libsvm, "libsvm", True),
    "oneDAL (sklearnex)": (by_onedal, "sklearnex", True),
    "ThunderSVM": (by_thundersvm, "thundersvm", True),
}


def child(fit: str, case: str) -> None:
    X, y, C = CASES[case]()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            w, bias = FITS[fit][0](X, y, C)
        except MemoryError:
            print(json.dumps({"verdict": "memory"}))
            return
        except ImportError:
            raise
        except Exception as error:
            print(json.dumps({"verdict": "refuses", "why": str(error)[:100]}))
            return
    told = [str(w.message) for w in seen if "onverge" in type(w.message).__name__]
    answer = {"w": [float(v).hex() for v in np.ravel(w)], "bias": float(bias).hex()}
    print(json.dumps(answer | {"warned": bool(told)}))


# ------------------------------------------------------------------------- the judge


def judge(case: str, free: bool, answer: dict) -> str:
    if "verdict" in answer:
        return answer["verdict"]
    if answer["warned"]:
        return "warns"
    from dualgap.problems import BinaryProblem as Problem
    from dualgap.solvers import DCD, get_solver
    from dualgap.training import solve

    w = np.array([float.fromhex(v) for v in answer["w"]])
    bias = float.fromhex(answer["bias"])
    if not (np.isfinite(w).all() and np.isfinite(bias)):
        return "wrong (NaN)"
    X, y, C = CASES[case]()
    if w.shape != (X.shape[1],):
        return "wrong (no coefficients)"
    try:
        problem = Problem(X, y, C, fit_intercept=free, penalize_intercept=not free)
    except ValueError:
        return "wrong (answers what is no problem)"
    primal = problem.certify(np.append(w, bias) if free else w).primal
    bounds = []
    for solver in (get_solver("auto"), DCD()):
        found = solve(problem, solver, tol=TOLERANCE / 10, max_iter=3000)
        bounds.append(found.certificate)
    lower = max(bound.dual for bound in bounds)
    upper = min(bound.primal for bound in bounds)
    if primal <= lower * (1 + 10 * TOLERANCE) or primal == 0.0:
        return "exact"
    if primal <= upper * (1 + 10 * TOLERANCE):
        return "unproved"
    if upper <= 0.0:
        return "wrong (the optimum is 0)"
    return f"wrong ({100 * (primal / upper - 1):.2g} % off)"


def run(fit: str, case: str, pythons: dict[str, str]) -> str:
    _, who, free = FITS[fit]
    python = pythons.get(who, "") if who else sys.executable
    if not python:
        return "-"
    try:
        done = subprocess.run(
            [python, str(Path(__file__).resolve()), "--child", fit, case],
            capture_output=True, text=True, timeout=SECONDS,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "2"},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "no answer"
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode < 0:
        return f"crash (signal {-done.returncode})"
    if not lines:
        said = (done.stderr.strip().splitlines() or ["nothing said"])[-1]
        return f"crash (exit {done.returncode}: {said[:50]})"
    return judge(case, free, json.loads(lines[-1]))


def main() -> None:
    given = os.environ.get("DUALGAP_RIVALS", "")
    pythons = dict(pair.split("=", 1) for pair in given.split(",") if pair)
    print("| input |", " | ".join(FITS), "|")
    print("|---|" + "---|" * len(FITS))
    for case in sys.argv[1:] or CASES:
        print(f"| {case} |", " | ".join(run(fit, case, pythons) for fit in FITS), "|",
              flush=True)  # fmt: skip


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4])
    else:
        main()

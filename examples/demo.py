"""Train a linear SVM on generated data beside scikit-learn's, and draw both.

Every point is the fastest of several runs.
"""

import time
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import sklearn.svm
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from dualgap import LinearSVC
from dualgap.plot import ConvergenceDisplay
from dualgap.training.progress import HISTORY_DTYPE

PICTURE = Path("convergence.png")
C = 1.0
RUNS = 5
ITERATIONS = (1, 3, 10, 30, 100, 300, 1000, 3000)


def objective(model, X, y):
    """Return the objective that both packages minimise, computed from outside."""
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    w = np.append(model.coef_, model.intercept_)
    return 0.5 * (w @ w) + C * np.maximum(0.0, 1.0 - margins).sum()


def fastest(model, X, y):
    """Return the seconds of the fastest of several fits, and its model."""
    runs = []
    for run in range(RUNS):
        begun = time.perf_counter()
        fitted = clone(model).fit(X, y)
        runs.append((time.perf_counter() - begun, run, fitted))
    seconds, _, fitted = min(runs)
    return seconds, fitted


def fits_of_scikit_learn(X, y, dual):
    """Return a history of scikit-learn's fits with more and more iterations."""
    records = []
    for max_iter in ITERATIONS:
        model = sklearn.svm.LinearSVC(
            C=C, loss="hinge", tol=1e-9, max_iter=max_iter, random_state=0
        )
        with warnings.catch_warnings():  # the picture shows that it has not converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            seconds, fitted = fastest(model, X, y)
        primal = objective(fitted, X, y)
        records.append((max_iter, seconds, primal, dual, True, 0, "liblinear", np.nan))
        print(
            f"scikit-learn, {max_iter:4} iterations: {seconds:6.3f} s, at most "
            f"{100 * (primal / dual - 1.0):.3g} % above the optimum"
        )
    return np.array(records, HISTORY_DTYPE)


def main():
    X, y = make_classification(
        20_000, 30, n_informative=10, n_redundant=7, flip_y=0.1, class_sep=0.7,
        random_state=0,
    )  # fmt: skip
    print(f"{X.shape[0]:,} generated rows with {X.shape[1]} features, C = {C:g}\n")
    model = LinearSVC(C=C, loss="hinge").fit(X, y)
    print(f"dualgap's LinearSVC: {model.certificate_}\n")

    # The lower bound of an accurate fit shows how far scikit-learn's models are.
    seconds, ours = fastest(LinearSVC(C=C, loss="hinge", tol=1e-6), X, y)
    certificate = ours.certificate_
    theirs = fits_of_scikit_learn(X, y, certificate.dual)
    print(
        f"dualgap, tol=1e-6:             {seconds:6.3f} s, at most "
        f"{100 * certificate.relative_gap:.3g} % above the optimum: proved"
    )

    mpl.use("agg")
    histories = {"dualgap, auto": ours.history_, "scikit-learn": theirs}
    display = ConvergenceDisplay(histories, tol=1e-3).plot()
    display.ax_.set(
        xscale="log",
        ylabel="at most so far above the optimum, relative",
        title="LinearSVC on 20,000 generated rows, C = 1",
    )
    display.figure_.savefig(PICTURE, dpi=150)
    print(f"\nThe picture is in {PICTURE}. Next: docs/start.md")


if __name__ == "__main__":
    main()

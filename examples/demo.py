"""Train a linear SVM on real data, beside scikit-learn's, and draw who gets how near.

a9a (census, 32,561 people, is the income above $50,000?) where the folder named by
DUALGAP_DATA, or ../shared/data beside the checkout, has it; otherwise the breast-cancer
set that scikit-learn ships.
"""

import os
import time
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import sklearn.svm
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from dualgap import LinearSVC
from dualgap.data import load_svmlight
from dualgap.plot import ConvergenceDisplay
from dualgap.training import HISTORY_DTYPE

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DUALGAP_DATA", ROOT.parent / "shared" / "data"))
PICTURE = ROOT / "convergence.png"
C = 1.0


def load():
    """Name, X and y."""
    for path in (DATA / "adult" / "a9a.xz", DATA / "a9a.xz", DATA / "a9a"):
        if path.exists():
            return "a9a", *load_svmlight(path)
    X, y = load_breast_cancer(return_X_y=True)
    return "breast cancer", StandardScaler().fit_transform(X), y


def objective(model, X, y):
    """The objective that both packages minimise, from outside."""
    margins = np.where(y == model.classes_[1], 1, -1) * model.decision_function(X)
    w = np.append(model.coef_, model.intercept_)
    return 0.5 * (w @ w) + C * np.maximum(0.0, 1.0 - margins).sum()


def fits_of_scikit_learn(X, y, dual):
    """A history of scikit-learn's fits with more and more iterations."""
    records = []
    for max_iter in (1, 3, 10, 30, 100, 300, 1000):
        model = sklearn.svm.LinearSVC(
            C=C, loss="hinge", tol=1e-9, max_iter=max_iter, random_state=0
        )
        begun = time.perf_counter()
        with warnings.catch_warnings():  # the picture shows that it has not converged
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        seconds, primal = time.perf_counter() - begun, objective(model, X, y)
        records.append((max_iter, seconds, primal, dual, True, 0, "liblinear", np.nan))
    return np.array(records, HISTORY_DTYPE)


def main():
    name, X, y = load()
    print(f"{name}: {X.shape[0]:,} examples, {X.shape[1]} features\n")

    model = LinearSVC(C=C, loss="hinge").fit(X, y)
    print(f"LinearSVC(C={C}, loss='hinge')\n{model.certificate_}\n")

    # The lower bound of an accurate fit shows how far scikit-learn's models are.
    ours = LinearSVC(C=C, loss="hinge", tol=1e-6).fit(X, y)
    theirs = fits_of_scikit_learn(X, y, ours.certificate_.dual)
    for row in theirs:
        above = row["primal"] / row["dual"] - 1.0
        print(
            f"scikit-learn, {row['epoch']:4} iterations: {row['seconds']:6.3f} s, "
            f"at most {100 * above:.3g} % above the optimum"
        )
    certificate = ours.certificate_
    print(
        f"dualgap, tol=1e-6:             {certificate.seconds:6.3f} s, at most "
        f"{100 * certificate.relative_gap:.3g} % above the optimum: proved"
    )

    mpl.use("agg")
    histories = {"dualgap, auto": ours.history_, "scikit-learn": theirs}
    display = ConvergenceDisplay(histories, tol=1e-3).plot()
    display.ax_.set(
        ylabel="at most so far above the optimum, relative",
        title=f"LinearSVC on {name}, C = 1",
    )
    display.figure_.savefig(PICTURE, dpi=150)
    print(f"\nThe picture is in {PICTURE.name}. Next: docs/start.md")


if __name__ == "__main__":
    main()

"""Train a linear SVM on real data, print its certificate, draw how it got there.

a9a (census, 32,561 people, is the income above $50,000?) where the folder named by
DUALGAP_DATA, or ../shared/data beside the checkout, has it; otherwise the breast-cancer
set that scikit-learn ships.
"""

import os
import warnings
from pathlib import Path

import matplotlib as mpl
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from dualgap import LinearSVC, load_svmlight
from dualgap.plot import ConvergenceDisplay

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("DUALGAP_DATA", ROOT.parent / "shared" / "data"))
PICTURE = ROOT / "convergence.png"


def load():
    """Name, X and y."""
    for path in (DATA / "adult" / "a9a.xz", DATA / "a9a.xz", DATA / "a9a"):
        if path.exists():
            return "a9a", *load_svmlight(path)
    X, y = load_breast_cancer(return_X_y=True)
    return "breast cancer", StandardScaler().fit_transform(X), y


def main():
    name, X, y = load()
    print(f"{name}: {X.shape[0]:,} examples, {X.shape[1]} features\n")

    model = LinearSVC(C=1.0).fit(X, y)
    print(f"LinearSVC(C=1.0)\n{model.certificate_}\n")

    histories = {}
    for solver in ("dcd", "svmsgd", "sgd-s", "sgd-r"):
        with warnings.catch_warnings():  # the picture shows who is not there yet
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted = LinearSVC(
                C=1.0, solver=solver, tol=1e-6, max_epochs=300, random_state=0
            ).fit(X, y)
        print(f"{solver:8} {fitted.certificate_.message}")
        histories[solver] = fitted.history_

    mpl.use("agg")
    display = ConvergenceDisplay(histories).plot(x="epoch")
    display.ax_.set_xscale("log")
    display.ax_.set_title(f"{name}, C = 1: what each solver can prove")
    display.figure_.savefig(PICTURE, dpi=150)
    print(f"\nThe picture is in {PICTURE.name}")


if __name__ == "__main__":
    main()

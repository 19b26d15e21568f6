"""Tables 2 and 3 of Shalev-Shwartz et al. 2011: Pegasos with Gaussian kernels.

    python benchmarks/papers/pegasos2011_kernels.py [DATA ...] [--limit 60]

Processor seconds, test error and kernel rows until P - P* is at most the paper's
accuracy, on the scale of lambda. There is no bias. P comes from the margins that the
solver keeps; a proved lower bound from a longer run stands in for P*. One run a seed
finds the epoch; a second one, which ends there, gives the test error.
"""

from __future__ import annotations

import argparse
import re
import time
import warnings

import numpy as np
from common import Report, load
from datasets import unpack
from scipy import sparse

from dualgap import SVC, solve
from dualgap.kernel import RBF, KernelPegasos, KernelProblem

CACHE = 1500.0  # megabytes
MNIST = 4000  # training rows

# rows, gamma, lambda, accuracy; published seconds (test error %), optimum's error
SETS = {
    "reuters": (7770, 1.0, 1.29e-4, 0.00719,
                "15 (2.91)", "13 (3.15)", "4.1 (2.82)", "4.7 (3.03)", "2.88"),
    "adult": (32562, 0.05, 3.07e-5, 0.0445,
              "30 (15.5)", "4.8 (15.5)", "59 (15.1)", "1.5 (15.6)", "14.9"),
    "usps": (7329, 2.0, 1.36e-4, 0.000381,
             "120 (0.457)", "21 (0.508)", "3.3 (0.457)", "1.8 (0.457)", "0.457"),
    "mnist": (60000, 0.02, 1.67e-5, 0.00144,
              "4200 (0.6)", "1800 (0.56)", "290 (0.58)", "280 (0.56)", "0.57"),
}  # fmt: skip
METHODS = {
    "Pegasos, permutations": KernelPegasos(),
    "Pegasos, draws": KernelPegasos(sampling="random"),
    "Pegasos, draws, average": KernelPegasos(sampling="random", output="average"),
    "Pegasos, batches of 64": KernelPegasos(batch_size=64),
}

CONCLUSION = """\
**Claimed**: kernelised Pegasos gets as accurate as SVM-Light and LASVM, but takes
longer on small sets: it suits rough models of many rows.

**Reproduced**: on Reuters and Adult the test error at the paper's accuracy is within
0.5 points of the published one, with one row a step: by permutations, and by the
independent draws of the paper's algorithm.

**Not reproduced**: USPS, whose published error of 0.457 % is on another split of
another number of rows. MNIST runs on 4,000 random rows, so its errors and
seconds do not compare with the published ones.

**Why**: averages keep the early iterates, so they take two to seven times as many
epochs to the same accuracy. Draws and averages give some rows coefficients above their
cost.
[Another dual point](../solvers/kernel-pegasos.md#method) proves them.

**Limits**: the paper does not state how USPS was scaled; its rows have unit norm
here. Reuters is money-fx against the rest, as tf-idf."""


def reuters():
    """Articles of ModApte with a topic, as tf-idf: money-fx against the rest."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    text = unpack("reuters21578/reut2-all.sgm").read().decode("latin-1")
    parts: dict[str, tuple[list[str], list[float]]] = {
        "TRAIN": ([], []),
        "TEST": ([], []),
    }
    for article in re.findall(r"<REUTERS.*?</REUTERS>", text, re.DOTALL):
        head = article[: article.index(">")]
        split = re.search(r'LEWISSPLIT="(\w+)"', head)
        topics = re.search(r"<TOPICS>(.*?)</TOPICS>", article, re.DOTALL)
        if 'TOPICS="YES"' not in head or not split or split[1] not in parts:
            continue
        names = re.findall(r"<D>(.*?)</D>", topics[1] if topics else "")
        if not names:
            continue
        body = re.search(r"<TEXT.*?</TEXT>", article, re.DOTALL)
        parts[split[1]][0].append(re.sub(r"<[^>]*>", " ", body[0] if body else ""))
        parts[split[1]][1].append(1.0 if "money-fx" in names else -1.0)
    tfidf = TfidfVectorizer(sublinear_tf=True, min_df=2)
    return (
        tfidf.fit_transform(parts["TRAIN"][0]), np.array(parts["TRAIN"][1]),
        tfidf.transform(parts["TEST"][0]), np.array(parts["TEST"][1]),
    )  # fmt: skip


def adult():
    from sklearn.datasets import load_svmlight_file

    X, y = load("a9a")
    test, labels = load_svmlight_file(unpack("adult/a9a.t"), n_features=X.shape[1])
    return X, y, test, np.where(labels > 0, 1.0, -1.0)


def digits(name: str):
    """The digit 8 against the others. Rows of USPS have unit norm."""
    packed = np.load(unpack(f"{name}/{name}.npz"))
    names = {key.lower(): key for key in packed.files}
    out = []
    for part in ("train", "test"):
        X = packed[names[f"x_{part}"]].reshape(len(packed[names[f"y_{part}"]]), -1)
        X = X.astype(np.float64)
        if name == "usps":
            X = X * 0.001 + 1.0
            X /= np.linalg.norm(X, axis=1, keepdims=True)
        else:
            X = sparse.csr_matrix(X / 255.0)
        out += [X, np.where(packed[names[f"y_{part}"]] == 8, 1.0, -1.0)]
    return tuple(out)


def data(name: str):
    if name == "usps":
        return digits(name)
    if name == "mnist":
        X, y, test, labels = digits(name)
        rows = np.random.default_rng(0).choice(len(y), MNIST, replace=False)
        return X[rows], y[rows], test, labels
    return reuters() if name == "reuters" else adult()


def trace(problem, solver, seed, limit, atol=1e-9, target=0.0):
    """Fit, until P is at most `target`.

    Return the solution and (processor seconds, P, updates) of every epoch.
    """
    found, begun = [], time.process_time()

    def look(info):
        seconds = time.process_time() - begun
        if not info.final:
            found.append((seconds, info.primal, info.updates))
        return info.primal <= target or seconds > limit

    solution = solve(
        problem, solver, tol=1e-9, atol=atol, max_epochs=10**6, random_state=seed,
        on_epoch=look,
    )  # fmt: skip
    return solution, found


def test_error(X, y, C, gamma, solver, seed, epochs, test, labels) -> float:
    """Return the percentage of test rows that a fit of `epochs` epochs gets wrong."""
    model = SVC(
        C=C, gamma=gamma, solver=solver, fit_intercept=False, tol=1e-9,
        random_state=seed, max_epochs=epochs, cache_size=CACHE,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is to end before tol
        model.fit(X, y)
    return 100 * float(np.mean(model.predict(test) != labels))


def experiment(report: Report, name: str, seeds: int, limit: float) -> None:
    rows, gamma, lam, accuracy, *published = SETS[name]
    X, y, test, labels = data(name)
    C = 1.0 / (lam * len(y))

    def problem():
        """Return the problem with an empty cache of kernel rows."""
        return KernelProblem(
            X, y, C, kernel=RBF(gamma), loss="hinge", fit_intercept=False,
            cache_size=CACHE,
        )  # fmt: skip

    begun = time.process_time()
    permutations = METHODS["Pegasos, permutations"]
    best, found = trace(problem(), permutations, 0, 4 * limit, 0.2 * accuracy / lam)
    seconds, proof = time.process_time() - begun, best.certificate
    target = proof.dual + accuracy / lam
    slack = lam * (proof.primal - proof.dual)
    error = test_error(X, y, C, gamma, permutations, 0, len(found), test, labels)
    report.say(f"## {name}\n")
    report.say(
        f"{len(y):,} and {len(labels):,} rows (published: {rows:,}), "
        f"gamma = {gamma:g}, lambda = {lam:g}, accuracy {accuracy:g}. The reference "
        f"has P − P\\* ≤ {slack:.2g}, proved, after {seconds:.0f} s, and a test "
        f"error of {error:.2f} % (published for the optimum: {published[-1]} %).\n"
    )  # fmt: skip
    table = []
    for label, solver in METHODS.items():
        runs = []
        for seed in range(seeds):
            _, found = trace(problem(), solver, seed, limit, target=target)
            seconds, primal, updates = found[-1]
            if primal > target:
                break
            epoch = len(found)
            wrong = test_error(X, y, C, gamma, solver, seed, epoch, test, labels)
            runs.append((seconds, wrong, epoch, updates))
        report.results[f"{name}, {label}"] = runs
        if len(runs) < seeds:
            table.append([label, f"> {limit:g}", "–", "–", "–"])
            continue
        seconds, wrong, epochs, updates = np.median(np.array(runs), axis=0)
        spread = [run[0] for run in runs]
        table.append([
            label, f"{seconds:.2g} ({min(spread):.2g} to {max(spread):.2g})",
            f"{wrong:.2f}", f"{epochs:.0f}", f"{updates:,.0f}",
        ])  # fmt: skip
    for label, cell in zip(
        ("Pegasos", "SDCA", "SVM-Light", "LASVM"), published, strict=False
    ):
        seconds, wrong = cell.rstrip(")").split(" (")
        table.append([f"{label}, published", seconds, wrong, "", ""])
    report.table(
        ["method", "seconds", "test error %", "epochs", "kernel rows"], table
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=list(SETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds a run")
    args = parser.parse_args()
    report = Report(
        "pegasos2011_kernels", "Pegasos with kernels (Shalev-Shwartz et al. 2011)"
    )
    report.conclusion = CONCLUSION
    for name in args.data:
        experiment(report, name, args.seeds, args.limit)
    report.say("The command is `python benchmarks/papers/pegasos2011_kernels.py`.")
    report.write()


if __name__ == "__main__":
    main()

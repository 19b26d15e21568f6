"""Bounds about rows left out: brute force on small problems, tightness on real sets.

    python benchmarks/answers/leave_one_out.py [PART ...] [--problems N] [--seed K]
        [--seconds S]

With the parts "left", "pairs" and "groups" it checks that no interval is violated by n
refits of small random problems (leave-one-out, also of several classes) and by refits
after the removal of groups of rows (what-if). With the parts "what-if", "sets" and
"kernels" it prints the tables of docs/certified-loo.md. Times are processor seconds of
one thread.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_svmlight_file
from sklearn.preprocessing import scale
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import datasets
import removed

from dualgap import SVC, LinearSVC, loo_bounds, what_if
from dualgap.answers.ball import Ball
from dualgap.answers.left_out import LeftOut


def _svmlight(name: str, positive: object) -> datasets.Data:
    X, y = load_svmlight_file(datasets.unpack(name))
    return X, np.where(positive(y), 1.0, -1.0)


def _usps() -> datasets.Data:
    packed = np.load(datasets.unpack("usps/usps.npz"))
    X = packed["X_train"] * float(packed["scale"])
    return X, np.where(packed["y_train"] % 2 == 1, 1.0, -1.0)


SETS = {
    "a9a": lambda: datasets.load("a9a"),
    "ijcnn1": lambda: datasets.load("ijcnn1"),
    "w8a": lambda: datasets.load("w8a"),
    "letter (A-M)": lambda: _svmlight("letter/letter.scale", lambda y: y <= 13),
    "usps (parity)": _usps,
    "splice": lambda: _svmlight("splice/splice.scaled", lambda y: y > 0),
    "breast cancer": lambda: (
        scale(load_breast_cancer().data),
        2.0 * load_breast_cancer().target - 1.0,
    ),
}
#: Set, C, loss, free bias.
ROWS = [
    ("breast cancer", 1.0, "hinge", False),
    ("breast cancer", 1.0, "hinge", True),
    ("splice", 0.01, "hinge", False),
    ("splice", 1.0, "hinge", True),
    ("a9a", 0.001, "hinge", False),
    ("a9a", 0.01, "hinge", False),
    ("a9a", 1.0, "hinge", False),
    ("letter (A-M)", 1.0, "hinge", False),
    ("ijcnn1", 1.0, "hinge", False),
    ("usps (parity)", 0.01, "hinge", False),
    ("w8a", 1.0, "hinge", False),
    ("a9a", 0.1, "hinge", False),
    ("a9a", 0.01, "squared_hinge", False),
]


def violations_of_leave_one_out(problems: int, seed: int) -> None:
    """Print the number of violations in three stages of bounds on every row."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(3, int)
    bad = np.zeros(3, int)
    widths: list[list[float]] = [[], [], []]
    for count in range(problems):
        kind = removed.KINDS[count % len(removed.KINDS)]
        loss = ("hinge", "squared_hinge")[count // len(removed.KINDS) % 2]
        given = removed.random_problem(rng)
        problem = removed.problem_of(*given, kind, loss)
        found = removed.fitted(problem, 10.0 ** rng.uniform(-12, -2))
        w = found.w if len(found.w) else None
        out = LeftOut(Ball.of(problem, w, found.alpha))
        every = np.arange(problem.n)
        truth = [
            removed.refitted(*given, kind, loss, np.delete(every, i), given[0][[i]])
            for i in every
        ]
        true, off = (np.concatenate(part) for part in zip(*truth, strict=True))
        slack = removed.slack(problem, true, off)
        for stage in range(3):
            if stage == 1:
                out.repair(every)
            for i in every if stage == 2 else ():
                out.settle(int(i), lambda: False)
            outside = (out.lower - slack > true) | (out.upper + slack < true)
            rows[stage] += problem.n
            bad[stage] += int(outside.sum())
            width = (out.upper - out.lower) / (1.0 + np.abs(true))
            widths[stage].append(float(np.median(width)))
    print(f"leave-one-out: {problems} problems, {rows[0]} rows, each refitted")
    for name, wrong, width in zip(
        ("drop", "repair", "refit"), bad, widths, strict=True
    ):
        print(f"  {name}: {wrong} violations, median width {np.median(width):.2g}")


def violations_of_pairs(problems: int, seed: int) -> None:
    """Print the violations of loo_bounds with pairs of classes, by refits of each row.

    A row counts only if the refit proves its label.
    """
    kinds = [
        lambda **own: LinearSVC(multi_class="ovo", **own),
        lambda **own: LinearSVC(multi_class="ovo", penalize_intercept=False, **own),
        lambda **own: SVC(gamma=0.5, **own),
        lambda **own: SVC(gamma=0.5, break_ties=True, **own),
    ]
    rng = np.random.default_rng(seed)
    bad, open_rows, total, unproved = np.zeros(3, int), np.zeros(3, int), 0, 0
    for count in range(problems):
        make = kinds[count % len(kinds)]
        loss = ("hinge", "squared_hinge")[count // len(kinds) % 2]
        classes = int(rng.integers(3, 5))
        n, d = int(rng.integers(3 * classes, 7 * classes)), int(rng.integers(1, 5))
        y = np.arange(n) % classes
        X = rng.standard_normal((n, d)) + y[:, None] * rng.standard_normal(d)
        if count % 3 == 0:  # ties and repeated rows
            X = np.round(X)
        C = 10.0 ** rng.uniform(-1, 1)
        model = make(C=C, loss=loss, tol=1e-4, random_state=0).fit(X, y)
        found = [loo_bounds(model, X, y, refine=r) for r in ("none", "local", "exact")]
        exact = make(C=C, loss=loss, tol=1e-12, random_state=0)
        for i in range(n):
            rest = np.delete(np.arange(n), i)
            exact.fit(X[rest], y[rest]).bound_optimum(X[rest], y[rest])
            if not exact.certified_labels(X[[i]])[0]:
                unproved += 1
                continue
            wrong = exact.predict(X[[i]])[0] != y[i]
            total += 1
            for stage, bounds in enumerate(found):
                bad[stage] += bounds.right[i] if wrong else bounds.wrong[i]
                open_rows[stage] += not (bounds.right[i] or bounds.wrong[i])
    print(f"pairs: {problems} problems, {total} rows refitted ({unproved} not proved)")
    for name, wrong, left in zip(
        ("none", "local", "exact"), bad, open_rows, strict=True
    ):
        print(f"  {name}: {wrong} violations, {left} rows open")


def violations_of_what_if(problems: int, seed: int) -> None:
    """Print the number of violations by refits without groups of rows."""
    rng = np.random.default_rng(seed)
    checks = bad = 0
    for count in range(problems):
        X, y, model = removed.random_model(rng, count)
        many = int(rng.integers(1, len(y) - 4))
        left = rng.choice(np.arange(4, len(y)), many, replace=False)
        more = (X[:2] + 0.5, y[:2]) if rng.random() < 0.5 else (None, None)
        change = what_if(model, X, y, without=left, X_more=more[0], y_more=more[1])
        violated, checked = removed.violations(change, X)
        bad += violated
        checks += checked
    print(f"what-if: {problems} problems, {checks} decisions, {bad} violations")


def tightness(seconds: float) -> None:
    """Print the table of leave-one-out errors on real sets."""
    print("| set, C | one fit: error between | local | exact | undecided | seconds |")
    print("|---|---|---|---|---|---|")
    for name, C, loss, free in ROWS:
        X, y = SETS[name]()
        model = LinearSVC(
            C, loss=loss, tol=1e-9, penalize_intercept=not free, random_state=0
        ).fit(X, y)
        cells = [f"{name}, {C:g}{', squared hinge' * (loss != 'hinge')}"]
        cells[0] += ", free bias" * free
        spent = []
        for refine in ("none", "local", "exact"):
            start = time.process_time()
            found = loo_bounds(model, X, y, refine=refine, time_limit=seconds)
            spent.append(time.process_time() - start)
            cells.append(f"{100 * found.lower:.3f} to {100 * found.upper:.3f} %")
        times = f"{spent[0]:.2f}, {spent[1]:.1f}, {spent[2]:.1f}"
        print(
            "|", " | ".join([*cells, str(len(found.undecided)), times]), "|", flush=True
        )


def kernels() -> None:
    """Print the table of leave-one-out errors of kernel models."""
    X, y = SETS["splice"]()
    C, gamma = 1.0, 0.02
    for loss in ("hinge", "squared_hinge"):
        model = SVC(C=C, gamma=gamma, loss=loss, tol=1e-9).fit(X, y)
        for refine in ("local", "exact"):
            start = time.process_time()
            found = loo_bounds(model, X, y, refine=refine)
            spent = time.process_time() - start
            print(f"splice, rbf, C = {C:g}, {loss}, {refine}: {found} {spent:.1f} s")


def groups() -> None:
    """Print the table of what-if bounds on a9a."""
    X, y = SETS["a9a"]()
    rng = np.random.default_rng(0)
    print(
        "| C | rows left out | radius | labels proved | labels that flip "
        "| bound, cold refit |"
    )
    print("|---|---|---|---|---|---|")
    for C in (0.01, 1.0):
        model = LinearSVC(C, tol=1e-9, random_state=0).fit(X, y)
        for many in (1, 10, 100, 1000):
            rows = rng.choice(model.support_, many, replace=False)
            start = time.process_time()
            change = what_if(model, X, y, without=rows)
            bound = time.process_time() - start
            certain = change.certified_labels(X).mean()
            kept = np.setdiff1d(np.arange(len(y)), rows)
            start = time.process_time()
            again = LinearSVC(C, tol=1e-9, random_state=0).fit(X[kept], y[kept])
            cold = time.process_time() - start
            flips = (again.predict(X) != model.predict(X)).mean()
            print(
                f"| {C:g} | {many} support vectors | {change.radius:.3g} | "
                f"{100 * certain:.2f} % | {100 * flips:.3f} % | "
                f"{1e3 * bound:.0f} ms, {1e3 * cold:.0f} ms |",
                flush=True,
            )


def main() -> None:
    parts = {
        "left": lambda: violations_of_leave_one_out(options.problems, options.seed),
        "pairs": lambda: violations_of_pairs(options.problems, options.seed),
        "groups": lambda: violations_of_what_if(options.problems, options.seed),
        "what-if": groups,
        "sets": lambda: tightness(options.seconds),
        "kernels": kernels,
    }
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--problems", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=300.0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        for name in options.parts or parts:
            parts[name]()


if __name__ == "__main__":
    main()

"""Fingerprints of 250 small fits, to check a change that must not change any bit.

    python benchmarks/trust/fingerprints.py --save before.json
    python benchmarks/trust/fingerprints.py --compare before.json
    python benchmarks/trust/fingerprints.py --only SVC,store      some of them

Every fit has one sha256 for each of its parts: the model, the dual point, the
certificate and the history, both without their times. The fits cover estimators,
solvers, losses, layouts, row stores, checkpoints and a simulated cluster, with fixed
seeds and one BLAS thread. The bits depend on the processor: compare only what one
machine has written.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import cycle, pairwise
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import numpy as np
from scipy import sparse

import dualgap
from dualgap.data import RowStore, convert
from dualgap.distributed.cocoa import CoCoA, PiecewiseProblem, Rounds
from dualgap.distributed.piece import Piece, Setup
from dualgap.kernel import (
    KERNEL_SOLVERS,
    RBF,
    Gram,
    KernelOneClass,
    KernelProblem,
    KernelRegression,
    Laplacian,
    Linear,
    Polynomial,
)
from tests.distributed.simulation import Simulation

Parts = dict[str, str]
Fit = tuple[str, Callable[[], Any]]

LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "dense64": lambda X: np.ascontiguousarray(X),
    "csr64": sparse.csr_matrix,
    "dense32": lambda X: X.astype(np.float32),
    "csr32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "fortran": np.asfortranarray,
    "csc64": sparse.csc_matrix,
}
LOSSES = {
    "hinge": dualgap.losses.Hinge(),
    "squared_hinge": dualgap.losses.SquaredHinge(),
    "smoothed_hinge": dualgap.losses.SmoothedHinge(0.4),
}
TUBES = ("epsilon_insensitive", "squared_epsilon_insensitive")


class KilledError(Exception):
    """Ends a fit from its callback, as if the process had died."""


# --------------------------------------------------------------------- data


def rows(n: int = 300, d: int = 12, seed: int = 0) -> tuple[Any, Any]:
    """Return noisy rows of a planted separator, half of the entries zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    y = np.where(X @ rng.normal(size=d) + 0.3 * rng.normal(size=n) > 0.2, 1, -1)
    return X, y


def targets(X: Any, seed: int = 1) -> Any:
    """Return noisy targets of a planted plane."""
    rng = np.random.default_rng(seed)
    return X @ rng.normal(size=X.shape[1]) + 0.2 * rng.normal(size=len(X))


def classes(y: Any, X: Any, count: int = 4) -> Any:
    """Return labels of several classes."""
    return (np.digitize(X[:, 0], [-0.4, 0.4]) + (y > 0)) % count


def weights(n: int) -> Any:
    """Return sample weights, a few of them zero."""
    weight = np.random.default_rng(2).uniform(0.2, 2.0, n)
    weight[::17] = 0.0
    return weight


# ------------------------------------------------------------- fingerprints


def digest(*values: Any) -> str:
    """Return the sha256 of arrays, sparse matrices, numbers and strings."""
    found = hashlib.sha256()
    for value in values:
        if sparse.issparse(value):
            value = value.toarray()
        array = np.ascontiguousarray(value)
        found.update(f"{array.dtype} {array.shape} ".encode())
        found.update(repr(value).encode() if array.dtype == object else array.tobytes())
    return found.hexdigest()


def of_certificates(several: Any) -> str:
    """Return the fingerprint of one certificate or of several, times left out."""
    return digest(*(x for c in several for x in facts(c)))


def facts(c: Any) -> list[Any]:
    """Return all that a certificate says, but for its seconds."""
    status = "none" if c.status is None else c.status.label
    numbers = [c.primal, c.dual, c.rounding, c.tol, c.floor, c.epochs, c.updates]
    return [*map(float, numbers), status, c.solver, c.about]


def of_history(several: Any) -> str:
    """Return the fingerprint of one history or of several, times left out."""
    listed = several if isinstance(several, list) else [several]
    return digest(
        *(h[name] for h in listed for name in h.dtype.names if name != "seconds")
    )


def of_solution(problem: Any, solution: Any) -> Parts:
    """Return the fingerprints of what `dualgap.training.solve` returns."""
    kernel = solution.bias is not None
    model = problem.coef(solution.alpha if kernel else solution.w)
    bias = solution.bias if kernel else 0.0
    return {
        "coef": digest(*model, float(bias)),
        "dual": digest(solution.alpha),
        "certificate": of_certificates(solution.certificate),
        "history": of_history(solution.history),
    }


def of_estimator(model: Any) -> Parts:
    """Return the fingerprints of a fitted estimator."""
    found = {}
    coef = [vars(model)[k] for k in ("coef_", "intercept_") if k in vars(model)]
    if coef:
        found["coef"] = digest(*coef)
    if "dual_coef_" in vars(model):
        found["dual"] = digest(model.dual_coef_, model.support_)
    if "certificate_" in vars(model):
        found["certificate"] = of_certificates(model.certificate_)
    if "history_" in vars(model):
        found["history"] = of_history(model.history_)
    return found


# --------------------------------------------------------------------- fits


def solved(problem: Any, solver: Any, **options: Any) -> Parts:
    """Solve a problem and return its fingerprints."""
    options = {"tol": 1e-4, "max_iter": 60, "random_state": 7} | options
    return of_solution(problem, dualgap.training.solve(problem, solver, **options))


def fitted(model: Any, *data: Any, **options: Any) -> Parts:
    """Fit an estimator and return its fingerprints."""
    return of_estimator(model.fit(*data, **options))


def linear_solvers() -> Iterator[Fit]:
    """Yield every solver of linear problems with every loss and bias it can have."""
    X, y = rows()
    layouts = cycle(LAYOUTS)
    for name, kind in sorted(dualgap.solvers.SOLVERS.items()):
        for loss in kind.losses:
            for bias in ("none", "penalised", "free"):
                solver = kind()
                if bias == "free" and not solver.free_bias:
                    continue
                layout = next(layouts)

                def run(kind=kind, loss=loss, bias=bias, layout=layout):
                    problem = dualgap.problems.BinaryProblem(
                        LAYOUTS[layout](X), y, 2.0, loss=LOSSES[loss],
                        sample_weight=weights(len(y)), fit_intercept=bias != "none",
                        penalize_intercept=bias != "free",
                    )  # fmt: skip
                    return solved(problem, kind())

                yield f"solve/{name}/{loss}/bias-{bias}/{layout}", run


def solver_options() -> Iterator[Fit]:
    """Yield variants of solvers, warm starts and several threads."""
    X, y = rows(200, 300, seed=3)
    problem = dualgap.problems.BinaryProblem(sparse.csr_matrix(X), y, 10.0)
    for solver in (
        dualgap.solvers.DCD(shrinking="none"),
        dualgap.solvers.DCD(shrinking="hsieh"),
        dualgap.solvers.DCD(),
        dualgap.solvers.SDCA(order="random"),
        dualgap.solvers.SDCA(output="average"),
        dualgap.solvers.SDCA(init="sgd"),
        dualgap.solvers.Pegasos(batch_size=7, output="average", projection=True),
        dualgap.solvers.SvmSGD(initial_step=0.5),
    ):
        yield f"option/{solver!r}", lambda solver=solver: solved(problem, solver)
    warm = np.linspace(0.0, 0.5, len(y))
    for name in ("dcd", "sdca", "auto"):
        yield (
            f"warm/{name}",
            lambda name=name: solved(
                problem, dualgap.solvers.SOLVERS[name](), warm=warm
            ),
        )
    for layout in ("dense64", "csr32"):
        yield (
            f"threads/{layout}",
            lambda layout=layout: solved(
                dualgap.problems.BinaryProblem(LAYOUTS[layout](X), y, 1.0, n_jobs=2),
                dualgap.solvers.DCD(),
                check_every=3,
            ),
        )


def linear_estimators() -> Iterator[Fit]:
    """Yield the estimators of linear models."""
    X, y = rows()
    several, target = classes(y, X), targets(X)
    for layout, convert_to in LAYOUTS.items():
        data = convert_to(X)
        for strategy in ("ovr", "ovo", "crammer_singer"):
            yield (
                f"LinearSVC/{strategy}/{layout}",
                lambda data=data, strategy=strategy: fitted(
                    dualgap.LinearSVC(
                        loss="hinge", multi_class=strategy, random_state=0
                    ),
                    data, several, sample_weight=weights(len(y)),
                ),
            )  # fmt: skip
        for loss in TUBES:
            yield (
                f"LinearSVR/{loss}/{layout}",
                lambda data=data, loss=loss: fitted(
                    dualgap.LinearSVR(0.1, loss=loss, random_state=0), data, target
                ),
            )
        yield (
            f"LinearOneClassSVM/{layout}",
            lambda data=data: fitted(dualgap.LinearOneClassSVM(nu=0.3), data),
        )
    for options in (
        {"solver": "newton"},
        {"solver": "interior-point", "loss": "squared_hinge"},
        {"solver": "dcd", "class_weight": "balanced"},
        {"penalize_intercept": False},
        {"fit_intercept": False, "loss": "smoothed_hinge"},
        {"intercept_scaling": 10.0, "tol": 1e-6},
        {"n_jobs": 2, "C": 30.0},
        {"multi_class": "ovo", "penalize_intercept": False},
    ):
        yield (
            f"LinearSVC/{options}",
            lambda options=options: fitted(
                dualgap.LinearSVC(random_state=0, **options), X, several
            ),
        )
    for solver in ("dcd", "newton"):
        yield (
            f"LinearSVR/{solver}",
            lambda solver=solver: fitted(
                dualgap.LinearSVR(
                    loss="squared_epsilon_insensitive", solver=solver, random_state=0
                ),
                X, target, sample_weight=weights(len(y)),
            ),
        )  # fmt: skip
    yield (
        "LinearSVCCV",
        lambda: fitted(dualgap.LinearSVCCV([0.1, 1.0], cv=3, random_state=0), X, y),
    )
    yield (
        "LinearSVCCV/classes",
        lambda: fitted(
            dualgap.LinearSVCCV([0.1, 1.0], cv=3, random_state=0), X, several
        ),
    )
    svm_path = dualgap.model_selection.svm_path
    yield "svm_path", lambda: of_path(svm_path(X, y, [0.1, 1.0, 10.0]))
    yield "svm_path/classes", lambda: of_path(svm_path(X, several, [0.1, 1.0]))
    yield "warm_start", lambda: warm_started(X, y)
    yield "partial_fit", lambda: learned_in_batches(X, several)
    signed = {"class_weight": "balanced", "penalize_intercept": False}
    yield "partial_fit/signed", lambda: learned_in_batches(X, several, **signed)


def of_path(path: Any) -> Parts:
    """Return the fingerprints of a path of C."""
    return {
        "coef": digest(path.coefs, path.intercepts),
        "certificate": of_certificates([c for at in path.certificates for c in at]),
    }


def warm_started(X: Any, y: Any) -> Parts:
    """Fit twice, the second time from the duals of the first."""
    model = dualgap.LinearSVC(solver="dcd", warm_start=True, random_state=0)
    return fitted(model.fit(X, y).set_params(C=2.0), X, y)


def learned_in_batches(X: Any, y: Any, **options: Any) -> Parts:
    """Learn twice from three batches, and prove the result over all of them."""
    model = dualgap.LinearSVC(random_state=0, **options)
    batches = [(X[k::3], y[k::3]) for k in range(3)]
    for _ in range(2):
        for batch in batches:
            model.partial_fit(*batch, classes=np.unique(y))
    found = of_estimator(model)
    found["proof"] = of_certificates(list(model.certify(batches)))
    return found


def kernel_solvers() -> Iterator[Fit]:
    """Yield every solver of kernel problems."""
    X, y = rows(150, 6, seed=4)
    layouts = cycle(LAYOUTS)
    for name, kind in sorted(KERNEL_SOLVERS.items()):
        for loss in kind.losses:
            if loss not in LOSSES:
                continue
            for free in (False, True):
                # Only the hinge has a free bias, and all but one solver want it so.
                if free and not (loss == "hinge" and kind().free_bias):
                    continue
                if loss == "hinge" and not free and name != "kernel-pegasos":
                    continue
                layout = next(layouts)
                yield (
                    f"kernel/{name}/{loss}/{'free' if free else 'penalised'}/{layout}",
                    lambda kind=kind, loss=loss, free=free, layout=layout: solved(
                        KernelProblem(
                            LAYOUTS[layout](X), y, 3.0, kernel=RBF(0.3),
                            loss=LOSSES[loss], penalize_intercept=not free,
                            sample_weight=weights(len(y)),
                        ),
                        kind(), max_iter=2000,
                    ),
                )  # fmt: skip
    block = KERNEL_SOLVERS["block"]
    yield (
        "kernel/regression",
        lambda: solved(
            KernelRegression(X, targets(X), 2.0, kernel=Laplacian(0.2)), block()
        ),
    )
    yield (
        "kernel/one-class",
        lambda: solved(KernelOneClass(X, 0.3, kernel=RBF(0.3)), block()),
    )
    gram = Gram(X, Linear(), 200)
    yield (
        "kernel/subset-of-a-gram",
        lambda: solved(
            KernelProblem(
                gram, y[::2], loss="hinge", penalize_intercept=False,
                rows=np.arange(0, len(y), 2),
            ),
            block(),
        ),
    )  # fmt: skip


def kernel_estimators() -> Iterator[Fit]:
    """Yield the estimators of kernel models."""
    X, y = rows(150, 6, seed=4)
    several, target = classes(y, X, 3), targets(X)
    for layout in ("dense64", "csr64", "dense32", "csr32"):
        data = LAYOUTS[layout](X)
        for kernel in ("rbf", "linear", "poly", "laplacian"):
            coef0 = 1.0 if kernel == "poly" else 0.0
            yield (
                f"SVC/{kernel}/{layout}",
                lambda data=data, kernel=kernel, coef0=coef0: fitted(
                    dualgap.SVC(kernel=kernel, coef0=coef0, random_state=0),
                    data, several,
                ),
            )  # fmt: skip
        yield (
            f"SVR/{layout}",
            lambda data=data: fitted(
                dualgap.SVR(C=2.0, random_state=0), data, target,
                sample_weight=weights(len(y)),
            ),
        )  # fmt: skip
        yield (
            f"OneClassSVM/{layout}",
            lambda data=data: fitted(dualgap.OneClassSVM(nu=0.2), data),
        )
    for solver in ("swap-2o", "core-vector", "kernel-pegasos", "nystroem", "block"):
        for loss in ("hinge", "squared_hinge"):
            if loss == "hinge" and solver in ("swap-2o", "core-vector"):
                continue
            if solver == "kernel-pegasos" and loss == "hinge":
                continue
            yield (
                f"SVC/{solver}/{loss}",
                lambda solver=solver, loss=loss: fitted(
                    dualgap.SVC(
                        solver=solver, loss=loss, random_state=0, max_iter=3000
                    ),
                    X, several,
                ),
            )  # fmt: skip
    yield (
        "SVC/precomputed",
        lambda: fitted(dualgap.SVC(kernel="precomputed"), X @ X.T + 1.0, y),
    )
    yield (
        "SVC/callable",
        lambda: fitted(dualgap.SVC(kernel=lambda A, B: A @ B.T), X, y),
    )
    yield (
        "SVC/large-C",
        lambda: fitted(dualgap.SVC(C=1e6, gamma=0.1, class_weight="balanced"), X, y),
    )
    record = Polynomial(gamma=0.5, coef0=1.0, degree=2)
    yield "SVC/record", lambda: fitted(dualgap.SVC(kernel=record), X, y)


def foreign_models() -> Iterator[Fit]:
    """Yield certificates of models of scikit-learn, and compressed models."""
    import sklearn.svm as theirs

    X, y = rows(150, 6, seed=4)
    several, target = classes(y, X, 3), targets(X)
    for model, labels in (
        (theirs.LinearSVC(random_state=0), several),
        (theirs.LinearSVC(loss="hinge", random_state=0), y),
        (
            theirs.LinearSVC(
                loss="hinge", multi_class="crammer_singer", random_state=0
            ),
            several,
        ),
        (theirs.SVC(), several),
        (theirs.SVC(kernel="linear"), y),
        (theirs.SVR(), target),
        (theirs.LinearSVR(random_state=0), target),
        (theirs.OneClassSVM(nu=0.3), None),
    ):
        yield (
            f"certify/{model!r}",
            lambda model=model, labels=labels: {
                "certificate": of_certificates(
                    dualgap.certify(model.fit(X, labels), X, labels)
                )
            },
        )
    yield (
        "compress",
        lambda: of_estimator(dualgap.compress(dualgap.SVC().fit(X, y), X, y, tol=0.05)),
    )


def stored_rows(folder: Path) -> Iterator[Fit]:
    """Yield fits of rows that are read block by block."""
    X, y = rows(3000, 20, seed=5)
    stores = {}
    for layout in ("csr64", "dense32"):
        path = folder / layout
        convert([(LAYOUTS[layout](X), y)], path, dtype=LAYOUTS[layout](X).dtype)
        stores[layout] = path
    for layout, path in stores.items():
        for buffer in (60_000, 10_000_000):
            for name in ("auto", "dcd", "sdca", "sgd-s", "pegasos", "ocas"):
                yield (
                    f"store/{layout}/{buffer}/{name}",
                    lambda path=path, buffer=buffer, name=name: solved(
                        dualgap.problems.BinaryProblem(
                            RowStore.open(path, buffer=buffer), C=0.5,
                            loss="squared_hinge" if name == "sdca" else "hinge",
                        ),
                        dualgap.solvers.SOLVERS[name](), tol=1e-3, max_iter=25,
                    ),
                )  # fmt: skip
        yield (
            f"store/{layout}/LinearSVC",
            lambda path=path: fitted(
                dualgap.LinearSVC(random_state=0, max_iter=30),
                RowStore.open(path, buffer=60_000),
            ),
        )


def checkpoints(folder: Path) -> Iterator[Fit]:
    """Yield fits that were killed and went on."""
    X, y = rows(n=400, d=15, seed=6)
    for name, kind in sorted(dualgap.solvers.SOLVERS.items()):
        if kind.resumes:
            yield (
                f"checkpoint/{name}",
                lambda name=name: resumed(
                    dualgap.problems.BinaryProblem(X, y, 1.0, fit_intercept=True),
                    dualgap.solvers.SOLVERS[name](),
                    folder / f"{name}.checkpoint",
                ),
            )


def resumed(problem: Any, solver: Any, path: Path) -> Parts:
    """Kill a fit after four epochs, go on, and return the fingerprints."""
    options = {"checkpoint": path, "checkpoint_every": 1e-9, "check_every": 3}

    def kill(info: Any) -> None:
        if info.epoch >= 4:
            raise KilledError

    with contextlib.suppress(KilledError):
        solved(problem, solver, on_epoch=kill, **options)
    return solved(problem, solver, **options)


def clusters() -> Iterator[Fit]:
    """Yield fits over pieces of the rows, all of them in this process."""
    X, y = rows(600, 15, seed=8)
    for pieces in (2, 5):
        for loss, record in LOSSES.items():
            for layout in ("csr64", "dense32"):
                yield (
                    f"cluster/{pieces}/{loss}/{layout}",
                    lambda pieces=pieces, record=record, layout=layout: over_pieces(
                        LAYOUTS[layout](X), y, pieces, record
                    ),
                )


def over_pieces(X: Any, y: Any, pieces: int, loss: Any) -> Parts:
    """Solve over that many pieces, one after the other."""
    edges = np.linspace(0, len(y), pieces + 1).astype(int)
    engine = Simulation(
        [Piece(X[a:b], y[a:b], index=k) for k, (a, b) in enumerate(pairwise(edges))],
        Setup(np.array([-1.0, 1.0]), np.ones(2), 1.0, loss, True, 1.0, 0),
    )
    problem = PiecewiseProblem(Rounds(engine, 1), 0)
    solution = dualgap.training.solve(
        problem, CoCoA(local_epochs=2), tol=1e-4, max_iter=40, random_state=0
    )
    return {
        "coef": digest(solution.w),
        "certificate": of_certificates(solution.certificate),
        "history": of_history(solution.history),
    }


def fits(folder: Path) -> Iterator[Fit]:
    """Yield all fits, by name."""
    yield from linear_solvers()
    yield from solver_options()
    yield from linear_estimators()
    yield from kernel_solvers()
    yield from kernel_estimators()
    yield from foreign_models()
    yield from stored_rows(folder)
    yield from checkpoints(folder)
    yield from clusters()


# --------------------------------------------------------------- command line


def fingerprints(wanted: Iterable[str] = ()) -> dict[str, Parts]:
    """Make all fits, or those whose names contain one of the words."""
    words, found = list(wanted), {}
    with tempfile.TemporaryDirectory() as folder:
        for name, run in fits(Path(folder)):
            if not words or any(word in name for word in words):
                assert name not in found, name
                np.random.seed(0)  # noqa: NPY002  (for fits without a random_state)
                found[name] = run()
    return found


def differences(
    before: Mapping[str, Parts], after: Mapping[str, Parts]
) -> Iterator[str]:
    """Yield one line per fit that is missing or has other bits."""
    for name in sorted(before.keys() | after.keys()):
        if name not in after or name not in before:
            yield f"{name}: only {'before' if name in before else 'now'}"
            continue
        then, now = before[name], after[name]
        changed = [p for p in sorted(then | now) if then.get(p) != now.get(p)]
        if changed:
            yield f"{name}: {', '.join(changed)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", type=Path, metavar="FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE")
    parser.add_argument("--only", default="", metavar="WORDS", help="parts of names")
    arguments = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")  # many of the fits end before they converge
    begun = time.process_time()
    words = [word for word in arguments.only.split(",") if word]
    found = fingerprints(words)
    print(f"{len(found)} fits, {time.process_time() - begun:.0f} s", file=sys.stderr)
    if arguments.save:
        arguments.save.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    if arguments.compare:
        before = json.loads(arguments.compare.read_text())
        if words:
            before = {k: v for k, v in before.items() if any(w in k for w in words)}
        lines = list(differences(before, found))
        print("\n".join(lines) or "all the same")
        return 1 if lines else 0
    if not arguments.save:
        for name, parts in found.items():
            print(name, *(f"{part}={value[:12]}" for part, value in parts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())

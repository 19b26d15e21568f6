"""The packages compared: how each is called, and which settings of it are swept.

This file also runs in the environments of the rivals, so it imports nothing but NumPy,
SciPy and, late, the one package to be run. All solve

    P(w) = 1/2 ||w||^2 + C sum_i max(0, 1 - y_i w.x_i)        (no intercept)

on one thread. An adapter has

    package     the distribution whose version is recorded
    families    {name: ladder}; a ladder is one number, from loose to tight
    load()      imports the package (timed: "import")
    convert()   turns (X, y) into what fit takes, where that is a step of its own
                (timed: "convert")
    fit()       trains (timed: "fit")
    weights()   coefficients, shape (d,) at most, and what else is to be recorded
"""

from __future__ import annotations

import math
import os
import re
import resource
import subprocess
import tempfile
import time
import warnings
from pathlib import Path
from typing import ClassVar

import numpy as np
from scipy import sparse
from scipy.optimize import minimize_scalar


def steps(first: float, last: float, per_decade: int = 2) -> list[float]:
    """Powers of ten and their fractions, from first to last."""
    a, b = round(math.log10(first) * per_decade), round(math.log10(last) * per_decade)
    sign = 1 if b > a else -1
    return [float(f"{10 ** (k / per_decade):.2g}") for k in range(a, b + sign, sign)]


EPOCHS = [1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000, 2000, 3000]
MANY = 10**8


class Rival:
    """Base class of most adapters: scikit-learn's interface, fit on the arrays."""

    package: str
    families: ClassVar[dict[str, list[float]]]

    def load(self) -> None:
        raise NotImplementedError

    def convert(self, X, y, family):
        return X, y

    def make(self, n, C, family, value, seed):
        raise NotImplementedError

    def fit(self, data, C, family, value, seed):
        X, y = data
        return self.make(len(y), C, family, value, seed).fit(X, y)

    def weights(self, model):
        return np.asarray(model.coef_, dtype=np.float64).ravel(), {}


class Dualgap(Rival):
    """dualgap. The value is the relative gap to prove."""

    package = "dualgap"
    families: ClassVar = {
        name: [1e-2, 1e-3, 1e-4, 1e-6]
        for name in ("auto", "dcd", "newton", "interior-point", "hsieh")
    }
    time_limit: float | None = None
    n_jobs: int | None = None

    def load(self):
        from dualgap import LinearSVC

        self.model = LinearSVC

    def solver(self, family):
        """A name of the register; "hsieh" is DCD with the classic shrinking rule."""
        if family != "hsieh":
            return family
        from dualgap.solvers import DCD

        # Where shrinking is on or off, the classic rule is the only one.
        return DCD() if DCD().shrinking is True else DCD(shrinking="hsieh")

    def make(self, n, C, family, value, seed):
        return self.model(C=C, loss="hinge", solver=self.solver(family), tol=value,
                          max_iter=MANY, time_limit=self.time_limit,
                          n_jobs=self.n_jobs, fit_intercept=False,
                          random_state=seed)  # fmt: skip

    def weights(self, model):
        certificate = model.certificate_
        return model.coef_.ravel(), {
            "gap": certificate.relative_gap,
            "status": certificate.status.label,
            "epochs": certificate.epochs,
            "solver": certificate.solver,
        }


class DualgapPegasos(Dualgap):
    """The value is the number of epochs."""

    families: ClassVar = {"pegasos": EPOCHS}

    def make(self, n, C, family, value, seed):
        return self.model(C=C, solver=family, tol=1e-12, max_iter=int(value),
                          fit_intercept=False, random_state=seed)  # fmt: skip


class DualgapReference(Dualgap):
    """Bounds on P*: the dual value is computed here, from the dual variables."""

    families: ClassVar = {"auto": [1e-8], "ocas": [1e-8]}

    def fit(self, data, C, family, value, seed):
        self.data = data
        return super().fit(data, C, family, value, seed)

    def weights(self, model):
        w, more = super().weights(model)
        X, _ = self.data
        signed = model.dual_coef_.ravel()
        v = np.asarray(signed @ X[model.support_]).ravel()
        return w, more | {"dual": float(np.abs(signed).sum() - 0.5 * v @ v)}


class Clarabel(Rival):
    """A general interior-point QP solver, for bounds on P* only."""

    package = "clarabel"
    families: ClassVar = {"qp": [1e-9]}

    def load(self):
        import clarabel

        self.module = clarabel

    def fit(self, data, C, family, value, seed):
        X, y = data
        (n, d), eye = X.shape, sparse.identity(X.shape[0], format="csc")
        Z = sparse.diags(y) @ sparse.csr_matrix(X)
        P = sparse.diags(np.r_[np.ones(d), np.zeros(n)]).tocsc()
        A = sparse.bmat([[-Z, -eye], [None, -eye]], format="csc")
        settings = self.module.DefaultSettings()
        settings.verbose, settings.max_threads = False, 1
        settings.tol_gap_abs = settings.tol_feas = 1e-10
        settings.tol_gap_rel = value
        solver = self.module.DefaultSolver(
            P, np.r_[np.zeros(d), np.full(n, C)], A, np.r_[-np.ones(n), np.zeros(n)],
            [self.module.NonnegativeConeT(2 * n)], settings)  # fmt: skip
        solution = solver.solve()
        self.problem = Z, C
        return np.array(solution.x)[:d], np.array(solution.z)[:n]

    def weights(self, model):
        w, a = model
        Z, C = self.problem
        a = np.clip(a, 0.0, C)
        v = Z.T @ a
        return w, {"dual": float(a.sum() - 0.5 * v @ v)}


class Liblinear(Rival):
    """LIBLINEAR's own package; its dual solver stops after 300 epochs."""

    package = "liblinear-official"
    families: ClassVar = {"-s 3": steps(10, 1e-6)}
    options = ""

    def load(self):
        from liblinear import liblinearutil

        self.module = liblinearutil

    def convert(self, X, y, family):
        return self.module.problem(y, X)

    def fit(self, data, C, family, value, seed):
        options = f"{family} -c {C!r} -e {value!r} -q {self.options}"
        return self.module.train(data, self.module.parameter(options))

    def weights(self, model):
        w = np.array(model.w[: model.nr_feature])
        return (w if model.get_labels()[0] == 1 else -w), {}


class LiblinearMulticore(Liblinear):
    package = "liblinear-multicore"
    options = "-m 1"


class SklearnLinearSVC(Rival):
    package = "scikit-learn"
    families: ClassVar = {"hinge": steps(10, 1e-7)}

    def load(self):
        from sklearn.svm import LinearSVC

        self.model = LinearSVC

    def make(self, n, C, family, value, seed):
        return self.model(C=C, loss="hinge", dual=True, tol=value, max_iter=MANY,
                          fit_intercept=False, random_state=seed)  # fmt: skip


class SklearnSGD(Rival):
    """The value is the number of epochs."""

    package = "scikit-learn"
    slow: ClassVar = {"learning_rate": "invscaling", "power_t": 0.5, "average": True}
    schedules: ClassVar = {
        "optimal": {},
        "optimal, averaged": {"average": True},
        "invscaling, averaged": {"eta0": 1.0, **slow},
        "invscaling 0.1, averaged": {"eta0": 0.1, **slow},
    }
    families: ClassVar = dict.fromkeys(schedules, EPOCHS)

    def load(self):
        from sklearn.linear_model import SGDClassifier

        self.model = SGDClassifier

    def make(self, n, C, family, value, seed):
        return self.model(loss="hinge", alpha=1 / (n * C), max_iter=int(value),
                          tol=None, fit_intercept=False, random_state=seed,
                          **self.schedules[family])  # fmt: skip


class Snapml(Rival):
    package = "snapml"
    families: ClassVar = {"tol": steps(1, 1e-7)}

    def load(self):
        from snapml import SupportVectorMachine

        self.model = SupportVectorMachine

    def make(self, n, C, family, value, seed):
        return self.model(loss="hinge", regularizer=1 / C, tol=value, max_iter=10**6,
                          n_jobs=1, fit_intercept=False, random_state=seed)  # fmt: skip


class Rehline(Rival):
    package = "rehline"
    families: ClassVar = {"as given": steps(100, 1e-7), "dense": steps(100, 1e-7)}

    def load(self):
        from rehline import plqERM_Ridge

        self.model = plqERM_Ridge

    def convert(self, X, y, family):
        if family == "as given":
            return X, y
        if not sparse.issparse(X) or X.nnz < 0.05 * X.shape[0] * X.shape[1]:
            raise NotImplementedError("dense already, or under 5 % of it not zero")
        return X.toarray(), y

    def make(self, n, C, family, value, seed):
        return self.model(loss={"name": "svm"}, C=C, tol=value, max_iter=10**8,
                          shrink=seed + 1)  # fmt: skip


class Skglm(Rival):
    package = "skglm"
    families: ClassVar = {"p0 = 10": steps(1, 1e-7), "p0 = 1000": steps(1, 1e-7)}

    def load(self):
        from skglm import LinearSVC

        self.model = LinearSVC

    def convert(self, X, y, family):
        # Compilation is no part of the first fit that counts.
        for rows in (X[:50], X[-50:]):
            some = np.where(np.arange(rows.shape[0]) % 2, 1.0, -1.0)
            self.model(tol=0.1).fit(rows, some)
        return X, y

    def make(self, n, C, family, value, seed):
        return self.model(C=C, tol=value, max_iter=10_000, p0=int(family[5:]),
                          fit_intercept=False)  # fmt: skip


class Lightning(Rival):
    package = "sklearn-contrib-lightning"
    families: ClassVar = {"LinearSVC": steps(1, 1e-7), "SDCA": steps(0.1, 1e-7)}

    def load(self):
        from lightning.classification import LinearSVC, SDCAClassifier

        self.models = LinearSVC, SDCAClassifier

    def make(self, n, C, family, value, seed):
        dcd, sdca = self.models
        if family == "LinearSVC":
            return dcd(C=C, loss="hinge", tol=value, max_iter=10**6, random_state=seed)
        return sdca(alpha=1 / (n * C), loss="hinge", tol=value, max_iter=10**6,
                    random_state=seed)  # fmt: skip


class VowpalWabbit(Rival):
    """Vowpal Wabbit from a cache, which conversion writes; the value counts passes.

    With --l2 the weights it prints point the right way but are too long, by a factor
    that grows with the passes, so the best multiple of them is taken, off the clock.
    """

    package = "vowpalwabbit"
    rules: ClassVar = {
        "adaptive": "--adaptive --normalized --invariant",
        "--sgd, 1/t": "--sgd -l 1 --power_t 1 --initial_t {nC!r}",
        "--sgd, 1/sqrt(t)": "--sgd -l 0.1 --power_t 0.5 --initial_t 100",
    }
    families: ClassVar = dict.fromkeys(rules, EPOCHS)

    def load(self):
        from vowpalwabbit import pyvw

        self.module = pyvw

    def convert(self, X, y, family):
        folder = tempfile.TemporaryDirectory()
        X = sparse.csr_matrix(X)
        text, cache = Path(folder.name, "text"), Path(folder.name, "cache")
        with text.open("w") as file:
            for i, label in enumerate(y):
                row = slice(X.indptr[i], X.indptr[i + 1])
                pairs = zip(X.indices[row].tolist(), X.data[row].tolist(), strict=True)
                row = " ".join(f"{j}:{v:.9g}" for j, v in pairs)
                file.write(f"{label:g} | {row}\n")
        self.folder, self.data, self.d = folder, (X, y), X.shape[1]
        self.call = (
            f"-d {text} --cache_file {cache} --noconstant --loss_function hinge "
            f"--holdout_off --quiet -b {max(1, math.ceil(math.log2(self.d)))}"
        )
        self.module.Workspace(self.call).finish()
        return len(y)

    def fit(self, data, C, family, value, seed):
        model = Path(self.folder.name, "model")
        done = self.module.Workspace(
            f"{self.call} --passes {int(value)} --l2 {1 / (data * C)!r} "
            f"{self.rules[family].format(nC=data * C)} --readable_model {model}"
        )
        return done, model, C

    def weights(self, model):
        workspace, path, C = model
        workspace.finish()
        w = np.zeros(self.d)
        found = re.findall(r"^(\d+):(\S+)", path.read_text(), re.MULTILINE)
        w[[int(j) for j, _ in found]] = [float(v) for _, v in found]
        X, y = self.data
        margins, square = y * (X @ w), w @ w

        def primal(power):
            s = np.exp(power)
            return 0.5 * s * s * square + C * np.maximum(0.0, 1.0 - s * margins).sum()

        best = minimize_scalar(primal, bounds=(-20.0, 3.0), method="bounded")
        return np.exp(best.x) * w, {}


class Libocas(Rival):
    """The authors' program; reading the data counts as conversion."""

    package = "libocas"
    families: ClassVar = {"OCAS": steps(0.3, 1e-7)}

    def load(self):
        self.program = os.environ["DUALGAP_LIBOCAS"]

    def convert(self, X, y, family):
        from sklearn.datasets import dump_svmlight_file

        self.folder = tempfile.TemporaryDirectory()
        self.examples = os.path.join(self.folder.name, "examples")
        dump_svmlight_file(X, y.astype(int), self.examples, zero_based=False)

    def fit(self, data, C, family, value, seed):
        path = os.path.join(self.folder.name, "model")
        begin = time.perf_counter()
        # The limit on processor seconds starts again in a child.
        done = subprocess.run(
            [self.program, "-c", repr(C), "-r", repr(value), "-b", "0", "-v", "1",
             self.examples, path],
            capture_output=True, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, self.limit),
        )  # fmt: skip
        found = re.search(
            r"^\s*ocas_time\s*:\s*([0-9.eE+-]+)", done.stdout, re.MULTILINE
        )
        if found is None:
            raise TimeoutError("no result within the limit")
        # Its own clock, wall seconds, starts when the data are read.
        return float(found[1]) / (time.perf_counter() - begin), path

    def weights(self, model):
        share, path = model
        return np.loadtxt(path, ndmin=1)[:-1], {"share": share}


RIVALS: dict[str, type[Rival]] = {
    "liblinear": Liblinear,
    "liblinear-multicore": LiblinearMulticore,
    "sklearn": SklearnLinearSVC,
    "libocas": Libocas,
    "snapml": Snapml,
    "rehline": Rehline,
    "lightning": Lightning,
    "sgd": SklearnSGD,
    "skglm": Skglm,
    "vw": VowpalWabbit,
}
OURS: dict[str, type[Rival]] = {
    "dualgap": Dualgap,
    "dualgap-pegasos": DualgapPegasos,
    "dualgap-reference": DualgapReference,
    "clarabel": Clarabel,
}

warnings.simplefilter("ignore")

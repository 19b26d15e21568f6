"""The packages compared: how each is called, and which settings of it are swept.

This file also runs in the environments of the rivals, so it imports nothing but NumPy,
SciPy and, late, the one package to be run. All solve the C-SVC, hinge and a bias that
is not penalised, with the RBF kernel and the same gamma, classes one versus one, on
one thread. A family is "form, megabytes of cache"; the value is the package's
tolerance. An adapter has

    package     the distribution whose version is recorded
    forms       "dense", "sparse", or both
    load()      imports the package
    convert()   turns (X, y) into what fit takes, off the clock
    fit()       trains (timed)
    arrays()    support, dual_coef and intercept as scikit-learn's SVC has them
    predict()   labels (timed)
    single()    model and queries in float32, to be timed as well; None: no
"""

from __future__ import annotations

import copy
import os
import resource
import time
import warnings
from typing import ClassVar

import numpy as np
from scipy import sparse

LARGEST = 2e9  # bytes of float64 up to which sparse rows are tried densely too


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


class Rival:
    """Base class of most adapters, with scikit-learn's interface."""

    package: str
    forms: ClassVar[tuple[str, ...]] = ("dense", "sparse")
    dtype: ClassVar[type] = np.float64
    queries: int = 0
    folder_of_arrays: str

    def load(self) -> None:
        raise NotImplementedError

    def convert(self, X, y, family):
        self.form, _, cache = family.partition(", ")
        self.cache = float(cache.split()[0])
        self.gamma = float(np.load(os.path.join(self.folder_of_arrays, "gamma.npy")))
        if self.form == "dense" and 8 * X.shape[0] * X.shape[1] > LARGEST:
            raise NotImplementedError("too large for dense rows")
        if self.form == "sparse" and not sparse.issparse(X):
            raise NotImplementedError("stored densely: half of it is not 0")
        data = self.queries_of(X), y
        self.before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000.0
        return data

    def queries_of(self, X):
        return (dense(X) if self.form == "dense" else X).astype(self.dtype)

    def make(self, C, value):
        raise NotImplementedError

    def fit(self, data, C, family, value, seed):
        return self.make(C, value).fit(*data)

    def arrays(self, model):
        return {"support": np.asarray(model.support_, np.int64),
                "dual_coef": np.asarray(dense(model.dual_coef_), np.float64),
                "intercept": np.asarray(model.intercept_, np.float64)}  # fmt: skip

    def more(self, model):
        return {}

    def predict(self, model, Q):
        return model.predict(Q)

    def single(self, model, Q):
        """Model and queries in float32, where predicting then takes less."""
        return None


class Sklearn(Rival):
    package = "scikit-learn"

    def load(self):
        from sklearn.svm import SVC

        self.model = SVC

    def make(self, C, value):
        return self.model(C=C, gamma=self.gamma, tol=value, cache_size=self.cache)


class Onedal(Rival):
    """scikit-learn-intelex, single precision."""

    package = "scikit-learn-intelex"
    dtype = np.float32

    def load(self):
        import daal4py
        from sklearnex.svm import SVC

        daal4py.daalinit(nthreads=1)
        self.model = SVC

    def make(self, C, value):
        return self.model(C=C, gamma=self.gamma, tol=value, cache_size=self.cache)


class Libsvm(Rival):
    """LIBSVM's own package; rows are sparse whatever they were."""

    package = "libsvm-official"
    forms = ("sparse",)

    def load(self):
        from libsvm import svmutil

        self.module = svmutil

    def convert(self, X, y, family):
        # Its classes are numbered by first appearance.
        self.order = np.argsort(y, kind="stable")
        X = sparse.csr_matrix(X)
        _, y = super().convert(X[self.order], y[self.order], family)
        return self.module.svm_problem(y.astype(float), X[self.order])

    def queries_of(self, X):
        return sparse.csr_matrix(X)

    def fit(self, data, C, family, value, seed):
        options = f"-c {C!r} -g {self.gamma!r} -e {value!r} -m {self.cache} -q"
        return self.module.svm_train(data, self.module.svm_parameter(options))

    def arrays(self, model):
        sign = -1.0 if model.get_nr_class() == 2 else 1.0
        pairs = model.get_nr_class() * (model.get_nr_class() - 1) // 2
        return {
            "support": self.order[np.array(model.get_sv_indices()) - 1],
            "dual_coef": sign * np.array(model.get_sv_coef()).T,
            "intercept": -sign * np.array([model.rho[p] for p in range(pairs)]),
        }

    def predict(self, model, Q):
        labels, _, _ = self.module.svm_predict([], Q, model, "-q")
        return labels


class Thundersvm(Rival):
    """ThunderSVM's CPU version."""

    package = "thundersvm-cpu"
    forms = ("dense",)
    dtype = np.float32

    def load(self):
        from thundersvm import SVC

        self.model = SVC

    def make(self, C, value):
        return self.model(kernel="rbf", C=C, gamma=self.gamma, tol=value, n_jobs=1)


class Proofs:
    """Time of the proofs of a fit, which other packages do without.

    Attributes
    ----------
    seconds : float
        Of the processor, from where the first proof of a problem begins to where its
        last one ends, summed over the problems of a fit.
    reached : float
        P where the first proofs began, summed alike.
    """

    def __init__(self, problem) -> None:
        self.problem, self.prove = problem, problem.prove

    def __enter__(self) -> None:
        self.seconds = self.reached = 0.0
        self.last, self.ended = None, 0.0
        self.problem.prove = lambda problem, claim: self.timed(problem, claim)

    def __exit__(self, *error) -> None:
        self.problem.prove = self.prove
        self.last = None

    def timed(self, problem, claim):
        begun = time.process_time()
        proof = self.prove(problem, claim)
        ended = time.process_time()
        if problem is self.last:  # not the first one: what was between them counts
            begun = self.ended
        else:
            self.last = problem
            self.reached += proof.certificate.primal
        self.seconds, self.ended = self.seconds + ended - begun, ended
        return proof


class Dualgap(Rival):
    """dualgap. The value is the relative gap to prove, for every pair of classes.

    Family "SVC, ..." is the classifier, "block, ..." the engine alone, pair after pair.
    """

    package = "dualgap"
    forms = ("SVC", "block")
    n_jobs: int | None = None
    time_limit: float | None = None
    loss: str = "hinge"

    def load(self):
        from dualgap import SVC
        from dualgap.kernel import RBF, BlockSolver, KernelProblem
        from dualgap.training import solve

        self.model, self.proofs = SVC, Proofs(KernelProblem)
        self.parts = RBF, BlockSolver, KernelProblem, solve
        A = np.ones((2048, 2048), np.float32)
        rates = []
        for _ in range(3):
            begun = time.process_time()
            A @ A
            rates.append(2 * 2048**3 / (time.process_time() - begun) / 1e9)
        self.gflops = max(rates)

    def queries_of(self, X):
        return X

    def single(self, model, Q):
        model = copy.copy(model)
        model.support_vectors_ = model.support_vectors_.astype(np.float32)
        return model, Q.astype(np.float32)

    def fit(self, data, C, family, value, seed):
        kind = self.fit_pairs if self.form == "block" else self.fit_svc
        with self.proofs:
            return kind(data, C, value, seed)

    def fit_svc(self, data, C, value, seed):
        return self.model(
            C=C, gamma=self.gamma, loss=self.loss, tol=value, cache_size=self.cache,
            n_jobs=self.n_jobs, time_limit=self.time_limit, random_state=seed,
        ).fit(*data)  # fmt: skip

    def fit_pairs(self, data, C, value, seed):
        RBF, BlockSolver, KernelProblem, solve = self.parts
        X, y = data
        classes = int(y.max()) + 1
        coef = np.zeros((classes - 1, len(y)))
        intercept, certificates = [], []
        for i in range(classes):
            for j in range(i + 1, classes):
                rows = np.flatnonzero((y == i) | (y == j))
                first = y[rows] == i
                positive = ~first if classes == 2 else first
                problem = KernelProblem(
                    X if classes == 2 else X[rows], np.where(positive, 1, -1), C,
                    kernel=RBF(self.gamma), loss="hinge", penalize_intercept=False,
                    cache_size=self.cache,
                )  # fmt: skip
                solution = solve(problem, BlockSolver(), tol=value, random_state=seed,
                                 time_limit=self.time_limit)  # fmt: skip
                c, b = problem.coef(solution.alpha)
                coef[j - 1, rows[first]] = c[first]
                coef[i, rows[~first]] = c[~first]
                intercept.append(b)
                certificates.append(solution.certificate)
        support = np.flatnonzero(coef.any(axis=0))
        support = support[np.argsort(y[support], kind="stable")]
        return _Model(support, coef[:, support], np.array(intercept), certificates,
                      X[support], np.bincount(y[support], minlength=classes),
                      RBF(self.gamma))  # fmt: skip

    def more(self, model):
        found = list(model.certificate_)
        return {
            "gap": max(c.relative_gap for c in found),
            "certified": all(c.certified for c in found),
            "dual": sum(c.dual for c in found),
            "claimed": sum(c.primal for c in found),
            "epochs": sum(c.epochs for c in found),
            "proofs": self.proofs.seconds,
            "reached": self.proofs.reached,
            "gflops": self.gflops,
        }


class _Model:
    """Pairs of classes, trained one by one."""

    def __init__(self, support, coef, intercept, certificates, vectors, counts, kernel):
        self.support_, self.dual_coef_, self.intercept_ = support, coef, intercept
        self.certificate_, self.support_vectors_ = certificates, vectors
        self.counts, self.kernel = counts.astype(np.int32), kernel

    def predict(self, Q):
        from dualgap.kernels.predict import pair_values

        values = pair_values(self.kernel, Q, self.support_vectors_, self.dual_coef_,
                             self.counts, self.intercept_)  # fmt: skip
        classes = len(self.counts)
        if classes == 2:
            return (values.ravel() > 0.0).astype(int)
        votes, p = np.zeros((len(values), classes), int), 0
        for i in range(classes):
            for j in range(i + 1, classes):
                votes[:, i] += values[:, p] > 0
                votes[:, j] += values[:, p] <= 0
                p += 1
        return votes.argmax(axis=1)


class Approximation(Rival):
    """The value is the number of landmarks; there is no model of support vectors."""

    forms = ("SVC",)

    def arrays(self, model):
        return {"support": np.zeros(0)}


class DualgapNystroem(Approximation):
    package = "dualgap"

    def load(self):
        from dualgap import SVC
        from dualgap.kernel import Nystroem

        self.model, self.record = SVC, Nystroem

    def queries_of(self, X):
        return X

    def fit(self, data, C, family, value, seed):
        return self.model(
            C=C, gamma=self.gamma, loss="hinge", random_state=seed,
            solver=self.record(n_components=int(value)),
        ).fit(*data)  # fmt: skip

    def more(self, model):
        found = list(model.certificate_)
        return {"gap": max(c.relative_gap for c in found),
                "certified": all(c.certified for c in found)}  # fmt: skip


class SklearnNystroem(Approximation):
    """Nystroem features and LinearSVC(loss="hinge"), at its default tolerance."""

    package = "scikit-learn"

    def load(self):
        from sklearn.kernel_approximation import Nystroem
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import LinearSVC

        self.parts = make_pipeline, Nystroem, LinearSVC

    def queries_of(self, X):
        return X

    def fit(self, data, C, family, value, seed):
        pipeline, features, linear = self.parts
        return pipeline(
            features(gamma=self.gamma, n_components=int(value), random_state=seed),
            linear(C=C, loss="hinge", max_iter=10_000, random_state=seed),
        ).fit(*data)


RIVALS: dict[str, type[Rival]] = {
    "onedal": Onedal,
    "sklearn": Sklearn,
    "libsvm": Libsvm,
    "thundersvm": Thundersvm,
}
OURS: dict[str, type[Rival]] = {
    "dualgap": Dualgap,
    "dualgap-nystroem": DualgapNystroem,
    "sklearn-nystroem": SklearnNystroem,
}

warnings.simplefilter("ignore")

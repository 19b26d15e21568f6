"""Models trained on nasty problems, class by class, and their claims.

Each attack draws a problem, trains or certifies models of it, and returns what they
claim beside the problem in exact numbers; `verifier.faults` compares the two. What
dualgap refuses with a ValueError is no finding, any other exception is.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn.svm
from scipy import sparse

import dualgap
from dualgap import certify, compress
from dualgap.estimators.input import balanced_factors
from dualgap.kernel import (
    KERNEL_SOLVERS,
    RBF,
    KernelProblem,
    Laplacian,
    Linear,
    Nystroem,
    Polynomial,
    Precomputed,
)
from dualgap.losses import RESIDUAL_LOSSES, Pinball, SmoothedHinge
from dualgap.problems.kernel_matrix import MatrixProblem
from dualgap.solvers import SOLVERS
from dualgap.training import solve

from .nasty import Drawn, Rng, draw, given_matrix, lowered, near_origin, rows
from .verifier import (
    SVM,
    Claim,
    CrammerSinger,
    Exact,
    Fault,
    Kernel,
    ManyExponentials,
    Rows,
    Statement,
    exponential,
    faults,
)

#: A problem in exact numbers, None where only statements follow, and what was claimed.
Group = tuple[Any, list[Any]]


#: Seconds for the fit that `certify` makes of a kernel model, which has no other limit.
PATIENCE = 0.05


class RefusedError(Exception):
    """The problem was refused: there is nothing to check."""


class Attack(NamedTuple):
    title: str
    #: Of 20,000 problems, how many.
    share: int
    generate: Callable[[Rng], list[Group]]


ATTACKS: dict[str, Attack] = {}


def attack(name: str, title: str, share: int) -> Callable[[Any], Any]:
    def register(generate: Callable[[Rng], list[Group]]) -> Any:
        ATTACKS[name] = Attack(title, share, generate)
        return generate

    return register


@dataclass
class Tally:
    """Counts and faults of an attack."""

    problems: int = 0
    refused: int = 0
    certificates: int = 0
    certified: int = 0
    #: Certificates that were compared with the exact optimum.
    optima: int = 0
    #: Statements about exact optima.
    statements: int = 0
    #: Certificates and statements with a fault.
    false: int = 0
    #: The largest fault, relative to P.
    worst: float = 0.0
    seconds: float = 0.0
    #: Room for rounding, relative to P.
    room: list[float] = field(default_factory=list)
    #: Sentences.
    faults: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        for name, value in vars(other).items():
            own = getattr(self, name)
            setattr(self, name, max(own, value) if name == "worst" else own + value)

    def blame(self, about: str, found: list[Fault]) -> None:
        """Note the faults of what is claimed about one problem."""
        self.false += len({fault.claim for fault in found})
        self.worst = max([self.worst, *(fault.size for fault in found)])
        self.faults += [f"{about}: {fault.what}" for fault in found]


def run(name: str, problem: int, seed: int = 0) -> Tally:
    """Draw one problem of an attack, and check all that is claimed about it."""
    rng = np.random.default_rng([seed, problem, *name.encode()])
    tally, groups, about = Tally(problems=1), [], f"{name}, problem {problem}"
    begun = time.perf_counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            groups = ATTACKS[name].generate(rng)
            for group in groups:
                tally.blame(about, list(faults(*group)))
        except RefusedError:
            tally.refused += 1
        except Exception as error:  # whatever it is, it is a finding
            sentence = f"{type(error).__name__}: {error}"
            tally.blame(about, [Fault(0, sentence, math.inf)])
    for posed, claim in ((posed, claim) for posed, said in groups for claim in said):
        if isinstance(claim, Statement):
            tally.statements += 1
        elif (certificate := claim.certificate) is not None:
            tally.optima += posed.small
            tally.certificates += 1
            tally.certified += certificate.certified
            if 0.0 < certificate.primal < math.inf and certificate.rounding < math.inf:
                tally.room.append(certificate.rounding / certificate.primal)
    tally.seconds = time.perf_counter() - begun
    return tally


def counts(problems: int, names: Sequence[str] = ()) -> dict[str, int]:
    """Divide a number of problems over the attacks; each gets at least one."""
    names = names or list(ATTACKS)
    total = sum(ATTACKS[name].share for name in names)
    return {k: max(1, round(problems * ATTACKS[k].share / total)) for k in names}


def first(fit: Callable[[], Any]) -> Any:
    """The first fit of a problem, which may be refused; the others may not."""
    try:
        return fit()
    except ValueError as error:
        raise RefusedError from error


# --------------------------------------------------------------------- linear, binary


class Kind(NamedTuple):
    """A loss and a bias, for the package and for the verifier."""

    options: dict[str, Any]
    exact: dict[str, Any]

    @property
    def constant(self) -> float:
        """Size of the constant feature; 0 without one."""
        return self.exact["scaling"] if self.exact["bias"] == "penalised" else 0.0


def kind_of(rng: Rng, losses: Sequence[str] = (), biases: Sequence[str] = ()) -> Kind:
    loss = str(rng.choice(losses or ["hinge", "squared_hinge", "smoothed_hinge"]))
    bias = str(rng.choice(biases or ["none", "penalised", "free"]))
    gamma = float(rng.choice([1e-3, 0.1, 1.0, 10.0]))
    scaling = float(rng.choice([1.0, 1.0, 1e-2, 1e2, 1e-100, 1e100]))
    scaling = scaling if bias == "penalised" else 1.0
    return Kind(
        {
            "loss": SmoothedHinge(gamma) if loss == "smoothed_hinge" else loss,
            "fit_intercept": bias != "none",
            "intercept_scaling": scaling,
            "penalize_intercept": bias != "free",
        },
        {"loss": loss, "parameter": gamma, "bias": bias, "scaling": scaling},
    )


def binary(drawn: Drawn, kind: Kind, signs: Any = None, cost: Any = None) -> SVM:
    signs = drawn.signs if signs is None else signs
    cost = drawn.cost if cost is None else cost
    return SVM(Rows(drawn.X), target=signs, cost=cost, **kind.exact)


def spread(n: int, support: Any, duals: Any) -> Any:
    """Dual variables of the support vectors as those of all rows."""
    out = np.zeros((*np.shape(duals)[:-1], n))
    out[..., support] = duals
    return out


def of_svc(what: str, model: Any, n: int, certificate: Any = None) -> Claim:
    """Claim of an estimator of one problem, or of `certify` about it."""
    bias = float(np.ravel(model.intercept_)[0])
    if certificate is not None:
        return Claim(what, certificate, (np.ravel(model.coef_), bias))
    duals = np.ravel(spread(n, model.support_, model.dual_coef_))
    return Claim(what, model.certificate_, (np.ravel(model.coef_), bias), duals)


def svc(drawn: Drawn, kind: Kind, solver: Any = "auto", **options: Any) -> Any:
    options = {**kind.options, **drawn.limits, **options}
    model = dualgap.LinearSVC(drawn.C, solver=solver, **options)
    return model.fit(drawn.held, drawn.codes, drawn.weight)


def reference(drawn: Drawn, kind: Kind, **options: Any) -> Any:
    """The best model that there is, to bound P*."""
    options = {"tol": 1e-13, "max_iter": 300, **options}
    return first(lambda: svc(drawn, kind, **options))


def takes(solver: Any, drawn: Drawn, kind: Kind) -> bool:
    """Whether the solver can train the problem, as it says itself."""
    problem = dualgap.problems.BinaryProblem(
        drawn.held, drawn.signs, drawn.C, **kind.options
    )
    try:
        solver.check(problem)
    except ValueError:
        return False
    return True


def with_solvers(rng: Rng, solvers: list[Any], count: int) -> list[Group]:
    drawn, kind = draw(rng), kind_of(rng)
    n = len(drawn.X)
    claims = [of_svc("reference", reference(drawn, kind), n)]
    usable = [solver for solver in solvers if takes(solver, drawn, kind)]
    for k in rng.permutation(len(usable))[:count]:
        model = svc(drawn, kind, usable[k], n_jobs=int(rng.choice([1, 1, 1, 3])))
        claims.append(of_svc(repr(usable[k]), model, n))
    return [(binary(drawn, kind), claims)]


@attack("linear", "`LinearSVC`, all solvers", 3500)
def linear_svc(rng: Rng) -> list[Group]:
    return with_solvers(rng, [solver() for solver in SOLVERS.values()], 4)


@attack("records", "`LinearSVC`, solvers with options", 2500)
def records(rng: Rng) -> list[Group]:
    return with_solvers(rng, RECORDS, 4)


RECORDS = [
    *(dualgap.solvers.SDCA(order=order, init=init, output=output)
      for order in ("permutation", "random", "cyclic") for init in ("zero", "sgd")
      for output in ("last", "average", "random")),
    *(dualgap.solvers.Pegasos(batch_size=size, projection=projection, sampling=sampling)
      for size in (1, 3) for projection in (False, True)
      for sampling in ("permutation", "random")),
    *(dualgap.solvers.Pegasos(batch_size=2, bias=bias)
      for bias in ("subgradient", "batch", "search")),
    dualgap.solvers.Pegasos(output="average"),
    *(dualgap.solvers.SmoothingNewton(passes="shared") for _ in range(4)),
    *(dualgap.solvers.DCD(shrinking=shrinking, acceleration=acceleration)
      for shrinking, acceleration in (
          ("sleep", "conjugate"), ("sleep", "none"), ("hsieh", "none"),
          ("hsieh", "auto"), ("none", "none"), ("none", "auto"))),
]  # fmt: skip


@attack("certify-linear", "`certify` of linear models and of coefficients", 1500)
def certify_linear(rng: Rng) -> list[Group]:
    drawn, kind = draw(rng), kind_of(rng)
    X, n = drawn.held, len(drawn.X)
    given = {"sample_weight": drawn.weight, "random_state": drawn.seed}
    model = reference(drawn, kind)
    own = certify(model, X, drawn.codes, **given)
    models = [of_svc("reference", model, n), of_svc("of the model", model, n, own)]

    # Coefficients have a constant feature of 1 or none.
    unit = Kind(
        kind.options | {"intercept_scaling": 1.0}, kind.exact | {"scaling": 1.0}
    )
    coef = rng.standard_normal(X.shape[1]) * 10.0 ** rng.uniform(-6, 6)
    coef = np.ravel(model.coef_) * rng.choice([0.0, 0.5, 1.0]) + coef
    bias, said = 0.0, given | {"loss": kind.options["loss"], "tol": drawn.tol}
    if kind.exact["bias"] != "none":
        bias = float(rng.standard_normal() * 10.0 ** rng.uniform(-6, 6))
        said |= {"intercept": bias, "penalize_intercept": kind.constant > 0.0}
    found = certify(coef, X, drawn.codes, drawn.C, **said)
    claims = [
        of_svc("reference", reference(drawn, unit), n),
        Claim("of coefficients", found, (coef, bias)),
    ]
    return [(binary(drawn, kind), models), (binary(drawn, unit), claims)]


# -------------------------------------------------------------- linear, many classes


def problems_of(drawn: Drawn, kind: Kind, multi_class: str) -> list[SVM]:
    """The binary problems of several classes; a pair has weights on its rows alone."""
    classes = np.unique(drawn.codes)
    if multi_class == "ovr":
        signs = [np.where(drawn.codes == k, 1, -1) for k in classes]
        return [binary(drawn, kind, s) for s in signs]
    return [
        binary(
            drawn, kind, np.where(drawn.codes == j, 1, -1),
            np.where(np.isin(drawn.codes, (i, j)), drawn.cost, 0.0),
        )
        for i, j in combinations(classes, 2)
    ]  # fmt: skip


def of_classes(
    what: str, model: Any, drawn: Drawn, certificates: Any = None
) -> list[Claim]:
    """Claims about each binary problem, by the model or by `certify`."""
    duals, codes = spread(len(drawn.X), model.support_, model.dual_coef_), drawn.codes
    if model.multi_class == "ovo":  # the layout of LIBSVM; i < j, and j is positive
        duals = [
            np.where(codes == i, duals[j - 1], np.where(codes == j, duals[i], 0.0))
            for i, j in combinations(range(len(model.classes_)), 2)
        ]
    models = list(zip(model.coef_, model.intercept_.tolist(), strict=True))
    if certificates is None:
        said = zip(model.certificate_, models, duals, strict=True)
    else:
        said = zip(certificates, models, [None] * len(models), strict=True)
    return [Claim(what, *one) for one in said]


def several(rng: Rng) -> tuple[Drawn, Kind, Any]:
    """Three or four classes, and a fit of them."""
    drawn = draw(rng, classes=int(rng.integers(3, 5)))
    kind = kind_of(rng)
    multi_class = str(rng.choice(["ovr", "ovo"]))
    model = first(lambda: svc(drawn, kind, multi_class=multi_class))
    return drawn, kind, model


@attack(
    "classes", "several classes, one versus rest and one versus one, and `certify`", 600
)
def multiclass(rng: Rng) -> list[Group]:
    drawn, kind, model = several(rng)
    options = {"sample_weight": drawn.weight, "random_state": drawn.seed}
    found = certify(model, drawn.held, drawn.codes, **options)
    best = reference(drawn, kind, multi_class=model.multi_class)
    said = zip(
        problems_of(drawn, kind, model.multi_class),
        of_classes("fit", model, drawn),
        of_classes("certify", model, drawn, found),
        of_classes("reference", best, drawn),
        strict=True,
    )
    return [(problem, list(claims)) for problem, *claims in said]


@attack("crammer-singer", "Crammer and Singer's problem, and `certify`", 600)
def crammer_singer(rng: Rng) -> list[Group]:
    K = int(rng.integers(2, 5))
    drawn, kind = draw(rng, classes=K), kind_of(rng, ["hinge"], ["none", "penalised"])
    X, n = drawn.held, len(drawn.X)

    def fit(**options: Any) -> Any:
        return svc(drawn, kind, multi_class="crammer_singer", **options)

    def told(what: str, model: Any, certificate: Any, own: bool) -> Claim:
        W, b = model.coef_, model.intercept_
        if K == 2:  # the difference of two that add up to 0 at the optimum
            W, b = np.vstack([-W, W]) / 2, np.concatenate([-b, b]) / 2
        duals = spread(n, model.support_, model.dual_coef_).T if own else None
        return Claim(what, certificate, (W, b), duals)

    model = first(fit)
    best = fit(tol=1e-13, max_iter=300)
    weight, seed = drawn.weight, drawn.seed
    found = certify(model, X, drawn.codes, sample_weight=weight, random_state=seed)
    problem = CrammerSinger(drawn.X, drawn.codes, drawn.cost, kind.constant)
    return [(problem, [told("fit", model, model.certificate_, True),
                       told("reference", best, best.certificate_, True),
                       told("certify", model, found, False)])]  # fmt: skip


@attack("path", "`svm_path`", 700)
def path(rng: Rng) -> list[Group]:
    drawn, kind = draw(rng), kind_of(rng)
    Cs = drawn.C * 10.0 ** rng.uniform(-2, 2, 3)
    solver = str(rng.choice(["auto", "dcd", "sdca"]))
    if not takes(SOLVERS[solver](), drawn, kind):
        solver = "auto"
    found = first(lambda: dualgap.model_selection.svm_path(
        drawn.held, drawn.codes, Cs, solver=solver, sample_weight=drawn.weight,
        **kind.options, **drawn.limits,
    ))  # fmt: skip
    groups = []
    for k, C in enumerate(Cs):
        at = replace(drawn, C=float(C))
        best = of_svc("reference", reference(at, kind), len(at.X))
        said = found.certificates[k], (found.coefs[k], float(found.intercepts[k]))
        groups.append((binary(at, kind), [best, Claim("path", *said)]))
    return groups


# -------------------------------------------------------- linear, regression, one class


def regression(drawn: Drawn, loss: str, parameter: float, **exact: Any) -> SVM:
    return SVM(Rows(drawn.X), loss, drawn.targets, drawn.cost, parameter, **exact)


def parameter_of(rng: Rng, loss: str) -> tuple[float, dict[str, float]]:
    """Draw epsilon or the quantile, and return it also as an option."""
    if loss == "quantile":
        q = float(rng.choice([0.5, 0.1, 0.9, 0.3, 1e-3, 1.0 - 1e-9, 1e-300]))
        return q, {"quantile": q}
    epsilon = float(rng.choice([0.0, 0.1, 3.0]))
    return epsilon, {"epsilon": epsilon}


@attack("linear-svr", "`LinearSVR`, and `certify`", 1400)
def linear_svr(rng: Rng) -> list[Group]:
    drawn = draw(rng, classes=1)
    kind = kind_of(rng, sorted(RESIDUAL_LOSSES), ["none", "penalised"])
    loss, bias = kind.exact["loss"], kind.exact["bias"]
    parameter, given = parameter_of(rng, loss)
    solver = str(rng.choice(["auto", "dcd", "newton"]))
    if not loss.startswith("squared") and solver == "newton":
        solver = "auto"
    options = {k: v for k, v in kind.options.items() if k != "penalize_intercept"}

    def fit(solver: str, **limits: Any) -> Any:
        limits = {**drawn.limits, **options, **limits}
        model = dualgap.LinearSVR(C=drawn.C, solver=solver, **given, **limits)
        return model.fit(drawn.held, drawn.targets, drawn.weight)

    models = {
        "reference": first(lambda: fit("auto", tol=1e-13, max_iter=300)),
        solver: fit(solver),
    }
    n = len(drawn.X)
    claims = [of_svc(what, model, n) for what, model in models.items()]
    found = certify(
        models[solver], drawn.held, drawn.targets, sample_weight=drawn.weight,
        random_state=drawn.seed,
    )  # fmt: skip
    claims.append(of_svc("certify", models[solver], n, found))
    scaling = kind.exact["scaling"]
    return [(regression(drawn, loss, parameter, bias=bias, scaling=scaling), claims)]


@attack("certify-regression", "`certify` of regression coefficients", 800)
def regression_coefficients(rng: Rng) -> list[Group]:
    drawn = draw(rng, classes=1)
    loss = str(rng.choice(sorted(RESIDUAL_LOSSES)))
    bias = str(rng.choice(["none", "penalised", "free"]))
    parameter, given = parameter_of(rng, loss)
    coef = rng.standard_normal(drawn.X.shape[1]) * 10.0 ** rng.uniform(-6, 6)
    b, said = 0.0, {}
    posed = {"loss": loss, **given}
    if loss == "quantile":
        posed = {"loss": Pinball(parameter)}
    if bias != "none":
        b = float(rng.standard_normal() * 10.0 ** rng.uniform(-6, 15))
        said = {"intercept": b, "penalize_intercept": bias == "penalised"}
    found = first(lambda: certify(
        coef, drawn.held, drawn.targets, drawn.C, **posed,
        sample_weight=drawn.weight, random_state=drawn.seed, tol=drawn.tol,
        time_limit=PATIENCE, **said,
    ))  # fmt: skip
    claims = [Claim("certify", found, (coef, b))]
    if bias != "free":
        best = dualgap.LinearSVR(
            C=drawn.C, loss=loss, fit_intercept=bias != "none", tol=1e-13,
            max_iter=300, random_state=0, **given,
        ).fit(drawn.held, drawn.targets, drawn.weight)  # fmt: skip
        claims.append(of_svc("reference", best, len(drawn.X)))
    return [(regression(drawn, loss, parameter, bias=bias), claims)]


def one_class(points: Rows, factors: Any, nu: float) -> SVM:
    """Build a one-class problem whose duals add up to nu times the weights, rounded."""
    weight = [float(v) for v in factors]
    total = nu * math.fsum(weight)
    if math.fsum([*weight, -total]) < 0.0:
        total = math.nextafter(total, 0.0)
    return SVM(
        points, "one_class", np.zeros(len(weight)), weight, bias="free", total=total
    )


@attack("linear-one-class", "`LinearOneClassSVM`, and `certify`", 1000)
def linear_one_class(rng: Rng) -> list[Group]:
    return planes(rng, draw(rng, classes=1))


def planes(rng: Rng, drawn: Drawn) -> list[Group]:
    nu, weight = float(rng.choice([1e-3, 0.2, 0.5, 1.0])), drawn.weight

    def fit(**limits: Any) -> Any:
        return dualgap.LinearOneClassSVM(nu, **limits).fit(
            drawn.held, sample_weight=weight
        )

    best = first(lambda: fit(tol=1e-13, max_iter=300))
    model = fit(tol=drawn.tol, max_iter=drawn.epochs)
    n, options = len(drawn.X), {"sample_weight": weight, "random_state": drawn.seed}
    own = certify(model, drawn.held, **options)
    coef = rng.standard_normal(drawn.X.shape[1]) * 10.0 ** rng.uniform(-6, 6)
    bias = float(rng.standard_normal() * 10.0 ** rng.uniform(-6, 6))
    other = certify(coef, drawn.held, nu=nu, intercept=bias, **options)
    return [(one_class(Rows(drawn.X), drawn.factors, nu), [
        of_svc("reference", best, n), of_svc("fit", model, n),
        of_svc("certify", model, n, own), Claim("coefficients", other, (coef, bias)),
    ])]  # fmt: skip


# ---------------------------------------------------------------------------- kernels


@contextlib.contextmanager
def shifts() -> Iterator[list[float]]:
    """Record what fits add to the diagonal of a matrix; certificates include it."""
    found: list[float] = []
    check = MatrixProblem._check_positive

    def noted(problem: Any) -> None:
        check(problem)
        found.append(problem.shift)

    MatrixProblem._check_positive = noted  # type: ignore[method-assign]
    try:
        yield found
    finally:
        MatrixProblem._check_positive = check  # type: ignore[method-assign]


class KernelRun:
    """Fits over one kernel, their claims grouped by what the diagonal had added.

    Parameters
    ----------
    drawn : Drawn
        Its X is the kernel matrix if that is given.
    kernel : object
        What estimators of dualgap take as their `kernel`.
    K : Kernel
        The exact matrix.
    posed : Callable
        Makes the problem in exact numbers of a `Kernel`.
    """

    def __init__(
        self, drawn: Drawn, kernel: Any, K: Kernel, posed: Callable[[Kernel], SVM]
    ) -> None:
        self.drawn, self.kernel, self.K, self.posed = drawn, kernel, K, posed
        self.said: dict[float, list[Claim]] = {}

    def add(self, what: str, fit: Callable[[], Any], tell: Callable[..., Claim]) -> Any:
        with shifts() as found:
            result = fit()
        shift = found[-1] if found else 0.0
        self.said.setdefault(shift, []).append(tell(what, result))
        return result

    def groups(self) -> list[Group]:
        return [
            (self.posed(Kernel(self.K.K, shift) if shift else self.K), claims)
            for shift, claims in self.said.items()
        ]


def of_kernel(n: int, what: str, model: Any, certificate: Any = None) -> Claim:
    coef = np.ravel(spread(n, model.support_, dense(model.dual_coef_)))
    said = (coef, float(model.intercept_[0]))
    if certificate is not None:
        return Claim(what, certificate, said)
    return Claim(what, model.certificate_, said, coef)


def dense(values: Any) -> Any:
    return values.toarray() if sparse.issparse(values) else values


def rational_kernel(rng: Rng, names: Sequence[str] = ()) -> tuple[Any, Any, Kernel]:
    """Draw rows for a fit, a kernel, and the exact matrix."""
    name = str(rng.choice(names or ["linear", "poly", "precomputed"]))
    if name == "precomputed":
        K = given_matrix(rng)
        return K, name, Kernel(K)
    X = near_origin(rng)
    gram = Exact.of(X) @ Exact.of(X).T
    if name == "linear":
        return X, Linear(), Kernel(gram)
    gamma = float(10.0 ** rng.uniform(-4, 2))
    coef0, degree = float(rng.choice([0.0, 1.0, 30.0])), int(rng.choice([1, 2, 3]))
    kernel = Polynomial(degree, gamma, coef0)
    return X, kernel, Kernel((gram * gamma + coef0) ** degree)


def kernel_problem(rng: Rng, make: Callable[..., Any], **options: Any) -> KernelRun:
    """An instance of one of the three problems over a kernel with rational values."""
    X, kernel, K = rational_kernel(rng, options.pop("names", ()))
    return make(rng, draw(rng, X=X, reach=8.0, **options), kernel, K)


class Machine(NamedTuple):
    """One of the three estimators: how it is fitted and certified."""

    run: KernelRun
    fit: Callable[..., Any]
    solvers: list[str]

    def claims(self, rng: Rng, count: int) -> list[Group]:
        run, drawn = self.run, self.run.drawn
        n = len(drawn.X)
        tell = functools.partial(of_kernel, n)
        first(lambda: run.add("reference", lambda: self.fit(tol=1e-13), tell))
        models = {}
        for solver in rng.permutation(self.solvers)[:count].tolist():
            limits = {"max_iter": drawn.epochs, "tol": drawn.tol}
            try:
                models[solver] = run.add(
                    solver, lambda s=solver, m=limits: self.fit(solver=s, **m), tell
                )
            except ValueError as error:
                # Some find out on the way what is not checked before.
                if "indefinite" not in str(error):
                    raise
        for solver, model in models.items():
            self.certify(f"certify {solver}", model)
        return run.groups()

    def certify(self, what: str, model: Any) -> None:
        drawn = self.run.drawn
        target = drawn.targets if "R" in type(model).__name__ else drawn.codes
        self.run.add(
            what,
            lambda: certify(
                model, drawn.held, target, sample_weight=drawn.weight,
                random_state=drawn.seed, time_limit=PATIENCE,
            ),
            lambda what, found: of_kernel(len(drawn.X), what, model, found),
        )  # fmt: skip


def machine_svc(rng: Rng, drawn: Drawn, kernel: Any, K: Kernel) -> Machine:
    loss = str(rng.choice(["hinge", "squared_hinge"]))
    bias = {"hinge": "free", "squared_hinge": "penalised"}[loss]

    def fit(**options: Any) -> Any:
        options = {"max_iter": 300, "random_state": drawn.seed, **options}
        model = dualgap.SVC(drawn.C, kernel=kernel, loss=loss, **options)
        return model.fit(drawn.held, drawn.codes, drawn.weight)

    def posed(points: Kernel) -> SVM:
        return SVM(points, loss, drawn.signs, drawn.cost, bias=bias)

    solvers = ["auto", "block"] if loss == "hinge" else sorted(KERNEL_SOLVERS)
    return Machine(KernelRun(drawn, kernel, K, posed), fit, solvers)


def machine_svr(rng: Rng, drawn: Drawn, kernel: Any, K: Kernel) -> Machine:
    loss = str(rng.choice(["epsilon_insensitive", "quantile"]))
    parameter, given = parameter_of(rng, loss)

    def fit(**options: Any) -> Any:
        options = {"max_iter": 300, "random_state": drawn.seed, **given, **options}
        model = dualgap.SVR(C=drawn.C, kernel=kernel, loss=loss, **options)
        return model.fit(drawn.held, drawn.targets, drawn.weight)

    def posed(points: Kernel) -> SVM:
        return SVM(points, loss, drawn.targets, drawn.cost, parameter, bias="free")

    return Machine(KernelRun(drawn, kernel, K, posed), fit, ["auto", "block"])


def machine_plane(rng: Rng, drawn: Drawn, kernel: Any, K: Kernel) -> Machine:
    nu = float(rng.choice([1e-3, 0.2, 0.5, 1.0]))

    def fit(**options: Any) -> Any:
        options = {"max_iter": 300, "random_state": drawn.seed, **options}
        model = dualgap.OneClassSVM(kernel=kernel, nu=nu, **options)
        return model.fit(drawn.held, sample_weight=drawn.weight)

    def posed(points: Kernel) -> SVM:
        return one_class(points, drawn.factors, nu)

    return Machine(KernelRun(drawn, kernel, K, posed), fit, ["auto", "block"])


@attack("svc", "`SVC`, all solvers, and `certify`", 900)
def kernel_svc(rng: Rng) -> list[Group]:
    return kernel_problem(rng, machine_svc).claims(rng, 2)


@attack("kernel-pegasos", "`KernelProblem` with a penalised bias and any loss", 200)
def kernel_pegasos(rng: Rng) -> list[Group]:
    X, kernel, K = rational_kernel(rng)
    drawn, kind = draw(rng, X=X, reach=8.0), kind_of(rng, biases=["none"])

    def posed(points: Kernel) -> SVM:  # the constant feature adds 1 to its values
        return SVM(Kernel(points.K + 1.0), target=drawn.signs, cost=drawn.cost,
                   **kind.exact)  # fmt: skip

    def fit(**limits: Any) -> Any:
        problem = KernelProblem(
            drawn.held if kernel != "precomputed" else X, drawn.signs, drawn.C,
            kernel=Precomputed() if kernel == "precomputed" else kernel,
            loss=kind.options["loss"], sample_weight=drawn.weight,
        )  # fmt: skip
        return solve(problem, KERNEL_SOLVERS["kernel-pegasos"](), **limits)

    def tell(what: str, found: Any) -> Claim:
        coef = found.alpha * drawn.signs
        return Claim(what, found.certificate, (coef, 0.0), coef)

    run = KernelRun(drawn, kernel, K, posed)
    first(lambda: run.add("reference", lambda: fit(tol=1e-13, max_iter=300), tell))
    run.add("fit", lambda: fit(**drawn.limits), tell)
    return run.groups()


@attack("svr", "`SVR`, and `certify`", 500)
def kernel_svr(rng: Rng) -> list[Group]:
    return kernel_problem(rng, machine_svr).claims(rng, 1)


@attack("one-class", "`OneClassSVM`, and `certify`", 500)
def kernel_one_class(rng: Rng) -> list[Group]:
    return kernel_problem(rng, machine_plane).claims(rng, 1)


@attack("scikit-learn", "`certify` of scikit-learn's `SVC`, `SVR`, `OneClassSVM`", 700)
def scikit_learn(rng: Rng) -> list[Group]:
    # Its one-class SVM writes beyond its arrays where weights are 0.
    make = [machine_svc, machine_svr, machine_plane][rng.integers(3)]
    machine = kernel_problem(rng, make, weighted=0.0)
    return foreign(rng, machine, machine.run.kernel)


def foreign(rng: Rng, machine: Machine, kernel: Any) -> list[Group]:
    """A model of scikit-learn for the same problem, certified."""
    run, drawn = machine.run, machine.run.drawn
    tell = functools.partial(of_kernel, len(drawn.X))
    own = first(lambda: run.add("reference", lambda: machine.fit(tol=1e-13), tell))
    options: dict[str, Any] = {"kernel": getattr(kernel, "name", kernel)}
    if options["kernel"] == "laplacian":
        return machine.claims(rng, 1)
    for name in ("gamma", "coef0", "degree"):
        if hasattr(kernel, name):
            options[name] = getattr(kernel, name)
    options |= {"max_iter": 1000, "tol": float(10.0 ** rng.uniform(-8, -1))}
    kind = type(own).__name__
    if kind == "OneClassSVM":
        model = sklearn.svm.OneClassSVM(nu=own.nu, **options)
    elif kind == "SVR" and own.loss == "quantile":
        return run.groups()
    elif kind == "SVR":
        model = sklearn.svm.SVR(C=own.C, epsilon=own.epsilon, **options)
    elif own.loss == "squared_hinge":
        return run.groups()
    else:
        model = sklearn.svm.SVC(C=own.C, **options)
    try:
        given = drawn.X if kernel == "precomputed" else drawn.held
        model.fit(given, drawn.targets if kind == "SVR" else drawn.codes)
    except ValueError as error:
        raise RefusedError from error  # by scikit-learn
    if np.isfinite(dense(model.dual_coef_)).all():
        machine.certify("certify scikit-learn's", model)
    return run.groups()


@attack("underflow", "one class, rows whose products underflow", 300)
def underflow(rng: Rng) -> list[Group]:
    n, d = int(rng.integers(2, 9)), int(rng.integers(1, 4))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-175, -150)
    drawn = draw(rng, X=X)
    if rng.random() < 0.3:
        return planes(rng, drawn)
    gram, kernel = Exact.of(X) @ Exact.of(X).T, Linear()
    if rng.random() < 0.3:
        kernel, gram = Polynomial(1, 0.25, 0.0), gram * 0.25
    machine = machine_plane(rng, drawn, kernel, Kernel(gram))
    if drawn.weight is None and rng.random() < 0.3:
        return foreign(rng, machine, kernel)
    return machine.claims(rng, 2)


def exponential_kernel(rng: Rng) -> tuple[Any, Any, Kernel]:
    """Draw RBF and Laplacian problems, as `rational_kernel` does for its kernels."""
    n, d = int(rng.integers(2, 11)), int(rng.integers(1, 6))
    X = rng.standard_normal((n, d))
    i, j = rng.choice(n, 2, replace=False)
    kind = rng.integers(5)
    if kind == 0:  # a common offset
        X += 10.0 ** rng.uniform(0, 8)
    elif kind == 1:  # a sentinel
        X[rng.integers(n), rng.integers(d)] = 10.0 ** rng.uniform(4, 12)
    elif kind == 2:
        X *= 10.0 ** rng.uniform(-6, 6, (1, d))
    elif kind == 3:
        X = rows(rng, n, d)
        X /= max(float(np.abs(X).max()), 1e-12) / 10.0 ** rng.uniform(-3, 3)
    X = X.astype(rng.choice([np.float32, np.float64]))
    power, gamma = int(rng.choice([1, 2])), float(10.0 ** rng.uniform(-12, 12))
    apart = float((np.abs(X[i] - X[j]).astype(float) ** power).sum())
    if rng.random() < 0.6 and apart > 1e-100:
        gamma = float(10.0 ** rng.uniform(-3, 1.5)) / apart
    kernel = RBF(gamma) if power == 2 else Laplacian(gamma)
    return X, kernel, exponential(X, gamma, power)


def exponential_problem(rng: Rng, make: Callable[..., Machine]) -> list[Group]:
    X, kernel, K = exponential_kernel(rng)
    machine = make(rng, draw(rng, X=X, reach=6.0), kernel, K)
    if machine.run.drawn.weight is None and rng.random() < 0.3:
        return foreign(rng, machine, kernel)
    return machine.claims(rng, 1)


@attack("rbf-svc", "`SVC`, `rbf` and `laplacian`, and `certify`", 500)
def rbf_svc(rng: Rng) -> list[Group]:
    return exponential_problem(rng, machine_svc)


@attack("rbf-svr", "`SVR`, `rbf` and `laplacian`, and `certify`", 300)
def rbf_svr(rng: Rng) -> list[Group]:
    return exponential_problem(rng, machine_svr)


@attack("rbf-one-class", "`OneClassSVM`, `rbf` and `laplacian`, and `certify`", 300)
def rbf_one_class(rng: Rng) -> list[Group]:
    return exponential_problem(rng, machine_plane)


# ------------------------------------------------------------------- made from a model


def smaller(make: Callable[[float], Any], gap: float, rng: Rng) -> Any:
    """`compress` to some tol that is more than the gap of the model."""
    if not gap < 1e6:
        raise RefusedError
    tol = (gap or 1e-12) * float(10.0 ** rng.uniform(0.01, 3))
    return first(lambda: make(tol))


@attack("compress-linear", "`compress` of `LinearSVC`", 1000)
def compress_linear(rng: Rng) -> list[Group]:
    drawn, kind = draw(rng), kind_of(rng)
    n, weight = len(drawn.X), drawn.weight
    best = reference(drawn, kind)
    model = svc(drawn, kind, max_iter=100)
    small = smaller(
        lambda tol: compress(
            model, drawn.held, drawn.codes, tol=tol, sample_weight=weight
        ),
        model.certificate_.relative_gap,
        rng,
    )
    models = {"reference": best, "fit": model, "compress": small}
    return [(binary(drawn, kind), [of_svc(k, m, n) for k, m in models.items()])]


@attack("compress-classes", "`compress` of several classes", 400)
def compress_classes(rng: Rng) -> list[Group]:
    drawn, kind, model = several(rng)
    gap = max(c.relative_gap for c in model.certificate_)
    small = smaller(
        lambda tol: compress(
            model, drawn.held, drawn.codes, tol=tol, sample_weight=drawn.weight
        ),
        gap,
        rng,
    )
    said = zip(
        problems_of(drawn, kind, model.multi_class),
        of_classes("fit", model, drawn),
        of_classes("compress", small, drawn),
        strict=True,
    )
    return [(problem, list(claims)) for problem, *claims in said]


def compressed(rng: Rng, machine: Machine) -> list[Group]:
    run, drawn = machine.run, machine.run.drawn
    tell = functools.partial(of_kernel, len(drawn.X))
    model = first(
        lambda: run.add("fit", lambda: machine.fit(tol=drawn.tol, max_iter=60), tell)
    )
    weight, gap = drawn.weight, model.certificate_.relative_gap

    def make(tol: float) -> Any:
        return compress(model, drawn.held, drawn.codes, tol=tol, sample_weight=weight)

    def told(what: str, small: Any) -> Claim:  # its coefficients are no dual variables
        return of_kernel(len(drawn.X), what, small, small.certificate_)

    with contextlib.suppress(RefusedError):
        run.add("compress", lambda: smaller(make, gap, rng), told)
    return run.groups()


@attack("compress-svc", "`compress` of `SVC`", 500)
def compress_svc(rng: Rng) -> list[Group]:
    return compressed(rng, kernel_problem(rng, machine_svc))


@attack(
    "compress-lowered", "`compress` of `SVC` over a matrix next to semidefinite", 300
)
def compress_lowered(rng: Rng) -> list[Group]:
    K = given_matrix(rng)
    K = lowered(rng, K, 10.0 ** rng.uniform(-12, -6.3))
    drawn = draw(rng, X=K, reach=8.0)
    return compressed(rng, machine_svc(rng, drawn, "precomputed", Kernel(K)))


@attack("nystroem", "`certify` of `SVC(solver=Nystroem())`", 400)
def nystroem(rng: Rng) -> list[Group]:
    # The fit's own certificate is about the problem over the features.
    machine = kernel_problem(rng, machine_svc, names=["linear", "poly"])
    run, drawn = machine.run, machine.run.drawn
    tell = functools.partial(of_kernel, len(drawn.X))
    first(lambda: run.add("reference", lambda: machine.fit(tol=1e-13), tell))
    landmarks = Nystroem(int(rng.integers(1, len(drawn.X) + 1)))
    with contextlib.suppress(RefusedError):
        model = first(
            lambda: machine.fit(solver=landmarks, tol=drawn.tol, max_iter=drawn.epochs)
        )
        machine.certify("certify", model)
    return run.groups()


@attack("nystroem-bound", "`Nystroem`: `Approximation.bound`", 300)
def nystroem_bound(rng: Rng) -> list[Group]:
    machine = kernel_problem(rng, machine_svc, names=["linear", "poly"])
    run, drawn = machine.run, machine.run.drawn
    n = len(drawn.X)
    tell = functools.partial(of_kernel, n)
    model = first(lambda: run.add("reference", lambda: machine.fit(tol=1e-13), tell))

    def bound() -> Any:
        problem = KernelProblem(
            drawn.held, drawn.signs, drawn.C, kernel=run.kernel, loss=model.loss,
            sample_weight=drawn.weight, penalize_intercept=model.loss != "hinge",
        )  # fmt: skip
        landmarks = Nystroem(int(rng.integers(1, n + 1)))
        approximation = landmarks.approximate(problem)
        found = solve(
            approximation, SOLVERS["auto"](), tol=drawn.tol, max_iter=drawn.epochs
        )
        said = approximation.bound(found.w, found.alpha)
        return said, approximation.expand(found.w)

    with contextlib.suppress(RefusedError):
        run.add("bound", lambda: first(bound), lambda what, found: Claim(what, *found))
    return run.groups()


# ------------------------------------------------------------------- other ways to fit


@attack("partial-fit", "`partial_fit`, and `certify(batches)`", 700)
def partial_fit(rng: Rng) -> list[Group]:
    drawn, kind = draw(rng, weighted=0.2), kind_of(rng)
    X, codes, weight, n = drawn.held, drawn.codes, drawn.factors, len(drawn.X)
    cuts = [0, *sorted(rng.choice(np.arange(1, n), min(2, n - 1), replace=False)), n]
    batches = [(X[a:b], codes[a:b], weight[a:b]) for a, b in pairwise(cuts)]
    class_weight, factor = None, np.ones(2)
    if rng.random() < 0.5:  # the totals of the batches are added exactly
        class_weight = "balanced"
        totals = [np.bincount(part, own, 2) for _, part, own in batches]
        factor = balanced_factors(np.array([*map(math.fsum, np.transpose(totals))]))
    best = reference(drawn, kind, class_weight=dict(enumerate(factor.tolist())))
    claims = [of_svc("reference", best, n)]
    model = dualgap.LinearSVC(
        drawn.C, solver=str(rng.choice(["auto", "dcd"])), random_state=drawn.seed,
        class_weight=class_weight, **kind.options,
    )  # fmt: skip

    def learn() -> None:
        for X, y, weight in batches:
            model.partial_fit(X, y, classes=[0, 1], sample_weight=weight)

    for _ in range(int(rng.choice([1, 3, 20]))):
        first(learn)  # batches without weight are refused
    claims.append(Claim("partial_fit", model.certificate_))
    found = first(lambda: model.certify(batches))  # equal ones would count as one
    claims.append(of_svc("certify", model, n, found))
    return [(binary(drawn, kind, cost=drawn.C * (weight * factor[codes])), claims)]


def stored(rng: Rng, drawn: Drawn, kind: Kind, buffer: int, **options: Any) -> Any:
    """A fit of the rows in a store."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store"
        batch = (drawn.held, drawn.codes, drawn.factors)
        dualgap.data.convert(
            [batch], path, shuffle=False, dtype=drawn.X.dtype, n_jobs=1
        )
        store = dualgap.data.RowStore.open(path, buffer=buffer)
        model = dualgap.LinearSVC(
            drawn.C, **{**drawn.limits, **kind.options}, **options
        )
        return first(lambda: model.fit(store)), len(store.pages)


@attack("store", "`LinearSVC` on a row store in memory", 200)
def store_in_memory(rng: Rng) -> list[Group]:
    drawn, kind = draw(rng), kind_of(rng)
    n, best = len(drawn.X), reference(drawn, kind)
    solver = str(rng.choice(["auto", "dcd"]))
    model, _ = stored(rng, drawn, kind, 2**20, solver=solver)
    claims = [of_svc("reference", best, n), of_svc("store", model, n)]
    return [(binary(drawn, kind), claims)]


@attack("streamed", "`LinearSVC` on a streamed row store", 60)
def streamed(rng: Rng) -> list[Group]:
    X = rows(rng, 1500, 2, rng.choice([np.float32, np.float64]))
    drawn, kind = draw(rng, X=X), kind_of(rng, biases=["none", "penalised"])
    drawn.epochs = min(drawn.epochs, 30)
    best = reference(drawn, kind, max_iter=50)
    solver = str(rng.choice(["auto", "dcd", "sdca"]))
    model, pages = stored(rng, drawn, kind, 8192, solver=solver)
    assert pages > 1
    claims = [of_svc("reference", best, 1500), of_svc("streamed", model, 1500)]
    return [(binary(drawn, kind), claims)]


@attack("cv", "`LinearSVCCV`", 200)
def cross_validated(rng: Rng) -> list[Group]:
    X = rows(rng, int(rng.integers(8, 15)), int(rng.integers(1, 7)))
    drawn, kind = draw(rng, X=X), kind_of(rng)
    Cs = (drawn.C * 10.0 ** rng.uniform(-2, 2, 2)).tolist()
    model = dualgap.LinearSVCCV(Cs, cv=2, **drawn.limits, **kind.options)
    first(lambda: model.fit(drawn.held, drawn.codes, drawn.weight))
    drawn = replace(drawn, C=model.C_)
    n, best = len(drawn.X), reference(drawn, kind)
    claims = [of_svc("reference", best, n), of_svc("refit", model, n)]
    return [(binary(drawn, kind), claims)]


@functools.cache
def client() -> Any:
    """A cluster of one worker in this process."""
    from distributed import Client

    return Client(
        n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
    )


@atexit.register
def close() -> None:
    """End the cluster, if one was begun."""
    if client.cache_info().currsize:
        client().shutdown()
        client.cache_clear()


@attack("distributed", "`distributed.LinearSVC`", 40)
def distributed(rng: Rng) -> list[Group]:
    X = rng.standard_normal((int(rng.integers(4, 25)), int(rng.integers(1, 5))))
    X = X + 10.0 ** rng.uniform(0, 8) * rng.integers(0, 2)
    drawn, kind = draw(rng, X=X, reach=3.0), kind_of(rng, biases=["none", "penalised"])
    options = {k: v for k, v in kind.options.items() if k != "penalize_intercept"}
    model = dualgap.distributed.LinearSVC(
        drawn.C, tol=drawn.tol, max_rounds=drawn.epochs, client=client(),
        n_pieces=int(rng.integers(1, 4)), keep_duals=True, **options,
    )  # fmt: skip
    first(lambda: model.fit(drawn.held, drawn.codes, drawn.factors))
    said = (np.ravel(model.coef_), float(model.intercept_[0]))
    claims = [
        of_svc("reference", reference(drawn, kind), len(X)),
        Claim("cluster", model.certificate_, said, np.ravel(model.dual_coef_)),
    ]
    return [(binary(drawn, kind), claims)]


# ----------------------------------------------------------------------- large problems


def with_sentinels(rng: Rng, n: int, d: int) -> Any:
    """Ordinary rows but for a few entries, one of them 1e8 or more."""
    X = rng.standard_normal((n, d)) + rng.choice([0.0, 3.0, 100.0], d)
    for least in [8, *[4] * int(rng.integers(5))]:
        X[rng.integers(n), rng.integers(d)] = 10.0 ** rng.uniform(least, 12)
    return X


@attack("large-linear", "100,000 rows with sentinels, `LinearSVC` and `LinearSVR`", 6)
def large_linear(rng: Rng) -> list[Group]:
    n, d = 100_000, int(rng.integers(2, 6))
    X = with_sentinels(rng, n, d)
    score = (X - np.median(X, axis=0)) @ rng.standard_normal(d)
    noisy = score + rng.standard_normal(n)
    drawn = replace(
        draw(rng, X=X, weighted=0.3), targets=noisy, codes=(noisy > 0).astype(int),
        C=float(10.0 ** rng.uniform(-4, 2)), epochs=20,
    )  # fmt: skip
    if rng.random() < 0.4:
        loss = str(rng.choice(sorted(RESIDUAL_LOSSES)))
        more = {"quantile": 0.1} if loss == "quantile" else {}
        model: Any = dualgap.LinearSVR(
            0.1, C=drawn.C, loss=loss, **more, **drawn.limits
        )
        model.fit(drawn.held, drawn.targets, drawn.weight)
        problem = regression(drawn, loss, 0.1, bias="penalised")
    else:
        kind = kind_of(rng)
        model, problem = reference(drawn, kind, **drawn.limits), binary(drawn, kind)
    return [(problem, [of_svc("fit", model, n)])]


@attack("large-rbf", "20,000 rows with sentinels, `rbf` and `laplacian`", 6)
def large_rbf(rng: Rng) -> list[Group]:
    n, power = 20_000, int(rng.choice([1, 2, 2]))
    X = with_sentinels(rng, n, 2)
    centred = np.clip(X - np.median(X, axis=0), -3.0, 3.0)
    drawn = replace(
        draw(rng, X=X, weighted=0.0), targets=np.sin(centred.sum(axis=1)),
        codes=(centred.prod(axis=1) > 0).astype(int), weight=None,
        C=float(10.0 ** rng.uniform(-1, 1)), tol=1e-3, epochs=150,
    )  # fmt: skip
    gamma = float(10.0 ** rng.uniform(-1, 0.5))
    kernel = RBF(gamma) if power == 2 else Laplacian(gamma)
    make = [machine_svc, machine_svr, machine_plane][rng.integers(3)]
    machine = make(rng, drawn, kernel, ManyExponentials(X, gamma, power))
    tell = functools.partial(of_kernel, n)
    model = machine.run.add("fit", lambda: machine.fit(**drawn.limits), tell)
    machine.certify("certify", model)
    return machine.run.groups()

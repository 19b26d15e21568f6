"""scikit-learn's own tests of its SVMs, as its wheel ships them, run against ours.

A test module is executed with `sklearn.svm` replaced by a module in which SVC, SVR,
OneClassSVM, LinearSVC and LinearSVR are ours behind scikit-learn's constructors, so
that its parametrisations see ours too. The rest (NuSVC, NuSVR, LIBSVM's bindings)
stays scikit-learn's. Of test_bounds.py nothing applies: it is about
l1_min_c, and the random numbers of LIBLINEAR.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import sys
import types
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import sklearn
import sklearn.svm
from scipy import sparse
from sklearn.utils.fixes import parse_version

import dualgap

#: Marks of every file of these tests.
MARKS = [
    pytest.mark.long,
    pytest.mark.filterwarnings("default"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),
]
_ITERATIONS = 10_000  # for LIBSVM's -1, no limit


def behind(name: str, **given: Any) -> Any:
    """Return the constructor of scikit-learn's class, with other defaults."""
    found = inspect.signature(getattr(sklearn.svm, name).__init__)
    signature = found.replace(parameters=[
        p.replace(default=given.get(p.name, p.default))
        for p in found.parameters.values()
    ])  # fmt: skip

    def init(self, *args, **options):
        bound = signature.bind(self, *args, **options)
        bound.apply_defaults()
        vars(self).update(list(bound.arguments.items())[1:])

    init.__signature__ = signature
    return init


class _Linear:
    """scikit-learn's constructor over ours; what it lacks is left at its default."""

    time_limit = None
    warm_start = False
    n_jobs = None
    checkpoint = None
    checkpoint_every = 60.0
    penalize_intercept = True
    atol = 0.0
    solver = "auto"


class LinearSVC(_Linear, dualgap.LinearSVC):
    __init__ = behind("LinearSVC", tol=1e-3, max_iter=_ITERATIONS, dual="auto")

    def fit(self, X, y, sample_weight=None):
        if self.multi_class == "crammer_singer":
            self.loss = "hinge"  # scikit-learn ignores any other
        return super().fit(X, y, sample_weight)


class LinearSVR(_Linear, dualgap.LinearSVR):
    __init__ = behind("LinearSVR", tol=1e-3, max_iter=_ITERATIONS, dual="auto")


class _Kernel:
    """Estimator that shows coefficients of sparse rows as scikit-learn does, sparse:
    here they are dense arrays, and its checks would end at that. LIBSVM draws no random
    numbers, so there is a seed.
    """

    random_state = 0
    time_limit = None
    n_jobs = None
    solver = "auto"
    atol = 0.0
    _inside = False

    def _shown(self, dense):
        if self._inside or not sparse.issparse(self.support_vectors_):
            return dense
        return sparse.csr_matrix(dense)

    @contextlib.contextmanager
    def _own_view(self):
        self._inside = True
        try:
            yield
        finally:
            self._inside = False

    @property
    def dual_coef_(self):
        if "_dense" not in vars(self):
            raise AttributeError("dual_coef_")
        return self._shown(self._dense)

    @dual_coef_.setter
    def dual_coef_(self, value):
        self._dense = value

    @property
    def coef_(self):
        with self._own_view():
            dense = super().coef_
        return self._shown(dense)

    def _pair_values(self, X):
        with self._own_view():
            return super()._pair_values(X)

    def _values(self, X):
        with self._own_view():
            return super()._values(X)


class SVC(_Kernel, dualgap.SVC):
    loss = "hinge"
    fit_intercept = True
    penalize_intercept = None
    __init__ = behind("SVC", probability=False, max_iter=_ITERATIONS, random_state=0)


class SVR(_Kernel, dualgap.SVR):
    __init__ = behind("SVR", max_iter=_ITERATIONS)


class OneClassSVM(_Kernel, dualgap.OneClassSVM):
    __init__ = behind("OneClassSVM", max_iter=_ITERATIONS)


OURS = (LinearSVC, LinearSVR, SVC, SVR, OneClassSVM)


VERSION = parse_version(sklearn.__version__)


class Difference(NamedTuple):
    """Expected failure of a scikit-learn test: a pattern of its error, and why.

    It is there from a version of scikit-learn on, and before another one.
    """

    error: str
    reason: str
    since: str = "0"
    before: str = "1000"

    @property
    def expected(self) -> bool:
        """Whether the installed version of scikit-learn has it."""
        return parse_version(self.since) <= VERSION < parse_version(self.before)


def load(
    name: str, classes: tuple[type, ...] = OURS, package: str = "svm"
) -> dict[str, Any]:
    """The tests of `sklearn.<package>.tests.<name>` as functions over other classes."""
    place = f"sklearn.{package}"
    real = importlib.import_module(place)
    path = Path(str(real.__file__)).parent / "tests" / f"{name}.py"
    if not path.is_file():
        pytest.skip(
            f"scikit-learn {sklearn.__version__} ships no {path.name}",
            allow_module_level=True,
        )
    ours = types.ModuleType(place)
    ours.__dict__.update(real.__dict__)
    ours.__dict__.update({cls.__name__: cls for cls in classes})
    spec = importlib.util.spec_from_file_location(f"dualgap_on_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    before = set(sys.modules)
    sys.modules[place] = ours
    setattr(sklearn, package, ours)
    try:
        spec.loader.exec_module(module)
    finally:
        sys.modules[place] = real
        setattr(sklearn, package, real)
        for loaded in set(sys.modules) - before:
            if loaded.startswith(f"{place}.tests"):
                del sys.modules[loaded]
    return {key: value for key, value in vars(module).items() if key[:5] == "test_"}


def check_listed(differences: dict[str, Difference], module: dict[str, Any]) -> None:
    """No entry is about a test that this version of scikit-learn does not have."""
    expected = [name for name, one in differences.items() if one.expected]
    missing = [name for name in expected if name.split("[")[0] not in module]
    assert not missing

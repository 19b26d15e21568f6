"""The public names of the package."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module

import numpy as np
import pytest
import sklearn.linear_model
import sklearn.svm
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import scale

import dualgap
from dualgap.names import INSTEAD, MODULES


def test_dir_lists_what_can_be_imported_and_nothing_else() -> None:
    names = [name for name in dir(dualgap) if not name.startswith("__")]
    assert {*dualgap.__all__} - {"__version__"} <= {*names}
    assert {"data", "distributed", "kernel", "losses", "plot", "solvers"} <= {*names}
    assert not {"Any", "TYPE_CHECKING", "annotations"} & {*names}
    for name in names:
        assert getattr(dualgap, name) is not None
    assert "__version__" in dir(dualgap)
    assert dualgap.__version__


@pytest.mark.parametrize("name", [*INSTEAD, *MODULES])
def test_guessed_names_are_answered(name: str) -> None:
    """All ways to ask for them: as an attribute, from the package, as a module."""
    answer = re.escape(INSTEAD.get(name) or MODULES[name])
    assert not hasattr(dualgap, name)
    with pytest.raises(AttributeError, match=f"no attribute '{name}': {answer}"):
        getattr(dualgap, name)
    with pytest.raises(ImportError, match=answer):
        exec(f"from dualgap import {name}")
    with pytest.raises(ImportError, match=answer) as told:
        import_module(f"dualgap.{name}")
    assert isinstance(told.value, ModuleNotFoundError) == (name in MODULES)
    if name in MODULES:
        with pytest.raises(ModuleNotFoundError, match=f"No module .*: {answer}"):
            exec(f"from dualgap.{name} import anything")


def test_answers_hide_no_name_and_name_what_there_is() -> None:
    own = {module.name for module in pkgutil.iter_modules(dualgap.__path__)}
    answered = {*INSTEAD, *MODULES}
    assert not answered & (own | {*dualgap.__all__} | {*dir(dualgap)})
    assert not {*INSTEAD} & {*MODULES}
    for answer in (*INSTEAD.values(), *MODULES.values()):
        for used in re.findall(r"\buse (\w+)", answer):
            assert used in dualgap.__all__, answer


@pytest.mark.parametrize("name", ["nothing", "svn", "Nu_SVC"])
def test_other_names_are_plainly_missing(name: str) -> None:
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
        getattr(dualgap, name)
    with pytest.raises(
        ModuleNotFoundError, match=f"^No module named 'dualgap.{name}'$"
    ):
        import_module(f"dualgap.{name}")
    with pytest.raises(
        ModuleNotFoundError, match=r"^No module named 'dualgap\.kernel\."
    ):
        import_module("dualgap.kernel.svm")


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_nu_and_C_of_a_classifier(C: float) -> None:
    """NuSVC has the model of the SVC whose dual variables sum to nu n C."""
    X, y = load_breast_cancer(return_X_y=True)
    X, y = scale(X)[::2], y[::2]
    own = dualgap.SVC(C=C, tol=1e-9).fit(X, y)
    nu = np.abs(own.dual_coef_).sum() / (len(y) * C)
    other = sklearn.svm.NuSVC(nu=nu, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(
        own.decision_function(X), other.decision_function(X), atol=1e-3
    )


def test_nu_and_epsilon_of_a_regressor() -> None:
    """NuSVR has the model of the SVR whose dual variables sum to nu n C."""
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X)[::2], y[::2] / 50.0
    own = dualgap.SVR(C=0.5, epsilon=0.4, tol=1e-9).fit(X, y)
    nu = np.abs(own.dual_coef_).sum() / (len(y) * 0.5)
    other = sklearn.svm.NuSVR(nu=nu, C=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(own.predict(X), other.predict(X), atol=1e-3)


def test_alpha_and_C_of_squared_losses() -> None:
    X, y = load_diabetes(return_X_y=True)
    X, y = scale(X), y / 50.0
    other = sklearn.linear_model.Ridge(alpha=4.0, fit_intercept=False).fit(X, y)
    loss = "squared_epsilon_insensitive"
    own = dualgap.LinearSVR(0.0, C=1 / 8.0, loss=loss, fit_intercept=False, tol=1e-10)
    np.testing.assert_allclose(own.fit(X, y).coef_, other.coef_, atol=1e-4)

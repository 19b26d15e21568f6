"""Parameters are declared once, as fields, and documented where they are declared."""

from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields
from typing import Any

import pytest
import sklearn.svm
from sklearn.utils._param_validation import Interval

import dualgap
from dualgap.cli.fields import _fields as described
from dualgap.distributed.linear_svc import DistributedLinearSVC
from dualgap.estimators.base import Parameters
from dualgap.models.plain import DEFAULTS

from ..cli.running import call

ESTIMATORS = [
    *(dualgap.LinearSVC, dualgap.LinearSVCCV, dualgap.LinearSVR),
    *(dualgap.LinearOneClassSVM, dualgap.SVC, dualgap.SVR, dualgap.OneClassSVM),
    *(dualgap.SVCCV, dualgap.SVRCV, dualgap.NuSVC, dualgap.NuSVR),
    *(dualgap.LogisticRegression, DistributedLinearSVC),
]
SHARED = [field.name for field in fields(Parameters)]
every_estimator = pytest.mark.parametrize(
    "estimator", ESTIMATORS, ids=lambda e: str(e.__name__)
)


def entries(estimator: Any) -> dict[str, tuple[str, str]]:
    """Types and texts of the parameters that have an entry of their own."""
    text = inspect.getdoc(estimator).partition("Parameters\n----------\n")[2]
    section = text.partition("\n\nAttributes\n")[0]
    found = re.findall(r"^(\w+(?:, \w+)*) : (.*)\n((?:    .*\n?|\n)*)", section, re.M)
    return {
        name: (kind, " ".join(words.split()))
        for names, kind, words in found
        for name in names.split(", ")
    }


@every_estimator
def test_each_parameter_has_values_that_are_refused(estimator: Any) -> None:
    """A bare type as the only constraint means that an annotation was lost."""
    for name, valid in estimator._parameter_constraints.items():
        assert not set(map(str, valid)) & {str(float), str(int), str(str)} - (
            {str(str)} if name in ("checkpoint", "store") else set()
        ), name


@every_estimator
def test_the_docstring_tells_the_defaults(estimator: Any) -> None:
    written = entries(estimator)
    for name, parameter in inspect.signature(estimator).parameters.items():
        default = written.get(name, ("", ""))[0].partition("default=")[2]
        if default:
            assert parameter.default == ast.literal_eval(default), name


@every_estimator
def test_each_parameter_is_documented_once_and_nothing_else_is(estimator: Any) -> None:
    for documented in (estimator, estimator.fit):
        text = inspect.getdoc(documented).partition("Parameters\n----------\n")[2]
        section = re.split(r"\n\n(?:Attributes|Returns)\n", text)[0]
        heads = re.findall(r"^(\w[^:\n]*?)(?: :.*)?$", section, re.M)
        names = [name for head in heads for name in head.split(", ")]
        own = [p for p in inspect.signature(documented).parameters if p != "self"]
        assert sorted(names) == sorted(own)
    assert names == own, "arguments of fit in their order"


def test_subclasses_show_the_entries_of_their_bases() -> None:
    class Own(dualgap.LinearSVR):
        """Regressor of somebody.

        Parameters
        ----------
        tol : float
            My own text.

        Notes
        -----
        It has notes.
        """

    text = inspect.getdoc(Own)
    assert text.count("\ntol : float") == 1
    assert "    My own text.\nepsilon : float" in text
    assert text.index("coef_ : ndarray") < text.index("Notes\n-----\nIt has notes.")
    silent = type("Silent", (dualgap.LinearSVR,), {})
    assert vars(silent)["__doc__"] is None


@pytest.mark.parametrize("name", SHARED)
def test_shared_parameters_are_alike(name: str) -> None:
    having = [
        e
        for e in ESTIMATORS
        if name in inspect.signature(e).parameters
        # A cluster needs a seed that every worker can be given.
        and (e, name) != (DistributedLinearSVC, "random_state")
    ]
    assert len(having) > 1
    valid = {
        tuple(sorted(map(str, e._parameter_constraints[name])))
        for e in having
        if all(isinstance(v, Interval) for v in e._parameter_constraints[name])
    }
    assert len(valid) <= 1
    defaults = {inspect.signature(e).parameters[name].default for e in having}
    assert len(defaults) == 1 or name in ("max_iter", "tol")


@pytest.mark.parametrize(
    "face",
    [
        *(dualgap.LinearSVCCV, dualgap.model_selection.svm_path, DistributedLinearSVC),
        sklearn.svm.LinearSVC,
    ],
)
def test_linear_classifiers_have_the_same_loss(face: Any) -> None:
    default = inspect.signature(dualgap.LinearSVC).parameters["loss"].default
    assert dualgap.LinearSVC().get_params() == DEFAULTS  # those of PlainLinearSVC
    assert inspect.signature(face).parameters["loss"].default == default


@pytest.mark.parametrize(
    "solver",
    [
        name
        for name, record in dualgap.solvers.SOLVERS.items()
        if "squared_hinge" not in record.losses
    ],
)
def test_solvers_that_need_the_hinge_say_so_in_one_sentence(solver: str) -> None:
    with pytest.raises(ValueError, match="; use loss='hinge'") as caught:
        dualgap.LinearSVC(solver=solver).fit([[0.0], [1.0]], [0, 1])
    words = str(caught.value)
    assert words.startswith(f"solver='{solver}' cannot train loss='squared_hinge'")
    assert ". " not in words
    told = call("train", "no data", "model", "--solver", solver, status=2).stderr
    told = " ".join(told.split())
    assert (
        f"--solver {solver} cannot train --loss squared_hinge; use --loss hinge" in told
    )
    with pytest.raises(ValueError, match="use loss='hinge', or"):
        dualgap.LinearSVC(multi_class="crammer_singer").fit([[0.0], [1.0]], [0, 1])


def test_fields_of_a_docstring_that_cannot_be_parsed_are_refused() -> None:
    class Other(dualgap.LinearSVC):
        __doc__ = "Other.\n\nParameters\n----------\ntol : float\n    How near.\n"
        own: float = 1.0

    with pytest.raises(ValueError, match=r"of Other has no text for \['own'\]; write"):
        described(Other)

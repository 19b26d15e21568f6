"""Parameters that estimators share have the same constraints and documentation."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest
import sklearn.svm

import dualgap
from dualgap.distributed.linear_svc import DistributedLinearSVC
from dualgap.estimators.parameters import SHARED
from dualgap.estimators.plain import DEFAULTS, PlainLinearSVC

from ..cli.running import call

ESTIMATORS = [
    *(dualgap.LinearSVC, dualgap.LinearSVCCV, dualgap.LinearSVR),
    *(dualgap.LinearOneClassSVM, dualgap.SVC, dualgap.SVR, dualgap.OneClassSVM),
    *(dualgap.SVCCV, dualgap.SVRCV, DistributedLinearSVC),
]
#: A cluster needs a seed that every worker can be given.
OTHERS = {("DistributedLinearSVC", "random_state")}


def shared_by(estimator: Any) -> list[str]:
    """Names of the shared parameters that an estimator has."""
    names = inspect.signature(estimator).parameters
    known = [name for name in SHARED if name in names]
    return [name for name in known if (estimator.__name__, name) not in OTHERS]


def entries(estimator: Any) -> dict[str, tuple[str, str]]:
    """Types and texts of the parameters that have an entry of their own."""
    text = inspect.getdoc(estimator).partition("Parameters\n----------\n")[2]
    section = text.partition("\n\nAttributes\n")[0]
    found = re.findall(r"^(\w+) : (.*)\n((?:    .*\n?|\n)*)", section, re.M)
    return {name: (kind, " ".join(words.split())) for name, kind, words in found}


@pytest.mark.cases(None)
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: str(e.__name__))
def test_constraints_and_docstrings_follow_the_table(estimator: Any) -> None:
    written, defaults = entries(estimator), inspect.signature(estimator).parameters
    assert shared_by(estimator)
    for name in shared_by(estimator):
        shared = SHARED[name]
        valid = estimator._parameter_constraints[name]
        assert list(map(str, valid)) == list(map(str, shared.valid)), name
        default = shared.type.partition("default=")[2]
        value = defaults[name].default
        assert value == (ast.literal_eval(default) if default else None), name
        if name in written:
            kind, text = written[name]
            assert kind == shared.type, name
            assert text.startswith(shared.text), name


@pytest.mark.parametrize(
    "face",
    [
        *(dualgap.LinearSVCCV, dualgap.svm_path, DistributedLinearSVC),
        *(sklearn.svm.LinearSVC, PlainLinearSVC),
    ],
)
def test_linear_classifiers_have_the_same_loss(face: Any) -> None:
    default = inspect.signature(dualgap.LinearSVC).parameters["loss"].default
    if face is PlainLinearSVC:
        model = dualgap.LinearSVC().get_params()
        assert {name: DEFAULTS[name] for name in model} == DEFAULTS == model
        return
    assert inspect.signature(face).parameters["loss"].default == default


@pytest.mark.parametrize(
    "solver",
    [
        name
        for name, record in dualgap.SOLVERS.items()
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


def test_every_shared_parameter_is_shared() -> None:
    for name in SHARED:
        assert sum(name in shared_by(estimator) for estimator in ESTIMATORS) > 1

"""Parameters that estimators share have the same constraints and documentation."""

from __future__ import annotations

import ast
import inspect
import re
from typing import Any

import pytest

import dualgap
from dualgap.distributed.linear_svc import DistributedLinearSVC
from dualgap.estimators.parameters import SHARED

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


def test_every_shared_parameter_is_shared() -> None:
    for name in SHARED:
        assert sum(name in shared_by(estimator) for estimator in ESTIMATORS) > 1

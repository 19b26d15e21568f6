"""A fit that is cut short says so once, keeps a model, and proves what it has."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from dualgap.certificate import Status

from .subjects import SUBJECTS, certificates, every, rows, values

pytestmark = pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
X, NAMES = rows(400, 20)


def cut(name: str, **limits: Any) -> tuple[Any, list[Any]]:
    """Return a model that was cut short, and its warnings."""
    subject = SUBJECTS[name]
    model, y = subject.make(tol=1e-13, **limits), subject.target(X, NAMES)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y)
    return model, caught


def check(model: Any) -> None:
    """Check what a model that was cut short says of itself."""
    for part in certificates(model):
        assert part.dual <= part.primal
    for found in values(model, X).values():
        assert found.dtype.kind not in "fc" or np.isfinite(found).all()


@pytest.mark.cases(15)
@every()
def test_one_epoch(name: str) -> None:
    model, (warning,) = cut(name, max_iter=1)
    assert warning.filename == __file__  # points at the caller of fit
    message = str(warning.message)
    assert message.startswith(f"{type(model).__name__}: ")
    parts = certificates(model)
    late = [part for part in parts if not part.certified]
    assert {part.status for part in late} <= {Status.EPOCH_LIMIT, Status.STALLED}
    assert model.certificate_.status is late[0].status
    assert np.max(model.n_iter_) == 1
    assert getattr(model, "fit_status_", 1) == 1
    if len(parts) > 1:  # the worst one is named
        assert f"{len(late)} of {len(parts)} " in message
        worst = max(late, key=lambda part: part.relative_gap)
        assert worst.name in message
        message = worst.message
    else:
        assert message == f"{type(model).__name__}: {model.certificate_.message}"
    if np.isfinite(model.certificate_.relative_gap):
        known = r"(within|possibly( more than)?) \S+ % (of|above) the optimum"
        assert re.search(f"{known}|no bound", message)
    check(model)


@pytest.mark.cases(15)
@every()
def test_no_time(name: str) -> None:
    model, caught = cut(name, time_limit=1e-9)
    assert [one.filename for one in caught] == [__file__]
    assert {part.status for part in certificates(model)} <= {
        Status.TIME_LIMIT,
        Status.CERTIFIED,
    }
    assert model.certificate_.status is Status.TIME_LIMIT
    check(model)


@pytest.mark.cases(15)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@every()
def test_a_listener_may_end_the_fit_or_fail(name: str) -> None:
    subject = SUBJECTS[name]
    y = subject.target(X, NAMES)
    model = subject.make(tol=1e-13, max_iter=50)
    model._fit(X, y, on_epoch=lambda label, info: True)
    ended = {Status.INTERRUPTED, Status.CERTIFIED, Status.STALLED}  # of a small one
    assert certificates(model)[0].status in ended
    assert np.max(model.n_iter_) <= 1
    check(model)

    def fail(label: Any, info: Any) -> None:
        raise RuntimeError("stop here")

    for n_jobs in (1, 2):
        model = subject.make(n_jobs=n_jobs)
        with pytest.raises(RuntimeError, match="stop here"):
            model._fit(X, y, on_epoch=fail)
        assert not hasattr(model, "certificate_")

"""LinearSVC: certificates checked in plain NumPy, invariances, inputs, stopping."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning

import dualgap.problems.batch as module
from dualgap import (
    SVC,
    DegenerateWarning,
    LinearSVC,
)
from dualgap.certificate import Status
from dualgap.losses import SmoothedHinge
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import SDCA

from ..laws.test_epochs import check_certificate

LOSSES = ["hinge", "squared_hinge", SmoothedHinge(gamma=0.3)]


def make(n=60, d=4, classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.argmax(X @ rng.normal(size=(d, classes)) + rng.normal(size=(n, classes)), 1)
    return X, y


def quiet(model, X, y, sample_weight=None):
    """Fit, certified or not."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", DegenerateWarning)
        return model.fit(X, y, sample_weight)


def certificates(model):
    return list(model.certificate_)


# Certificates, whose truth for any solver is the law of trust/


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("C", [1e-100, 1e-12, 1e12, 1e100])
def test_huge_and_tiny_costs_stay_finite_and_true(C, loss):
    X, y = make()
    model = quiet(LinearSVC(C=C, loss=loss, max_iter=50, random_state=0), X, y)
    assert np.isfinite(model.coef_).all()
    check_certificate(model, X, y)


# The optimum


# Invariances


def exact(**options):
    defaults = {"tol": 1e-10, "max_iter": 200_000, "random_state": 0}
    return LinearSVC(**{**defaults, **options})


# Inputs


@pytest.fixture
def seen(monkeypatch):
    """The matrices that reached Problem."""
    matrices = []

    class Spy(Problem):
        def __init__(self, X, *args, **options):
            matrices.append(X)
            super().__init__(X, *args, **options)

    monkeypatch.setattr(module, "BinaryProblem", Spy)
    return matrices


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_rows_are_used_in_place(dtype, layout, seen, caplog):
    X, y = make(classes=3)
    X = layout(X.astype(dtype))
    with caplog.at_level(logging.INFO, "dualgap"):
        model = LinearSVC(random_state=0).fit(X, y)
    assert not [r for r in caplog.records if "copy" in r.message]
    [used] = seen
    assert used.dtype == dtype
    if sparse.issparse(X):
        for name in ("data", "indices", "indptr"):
            assert np.shares_memory(getattr(used, name), getattr(X, name))
    else:
        assert np.shares_memory(used, X)
    assert model.coef_.dtype == model.intercept_.dtype == np.float64
    check_certificate(model, X, y)


def test_one_row_per_class_and_one_feature():
    X, y = np.array([[-1.0], [3.0], [5.0]]), np.array(["u", "v", "w"])
    model = exact().fit(X, y)
    check_certificate(model, X, y)
    pair = exact(loss="hinge", fit_intercept=False, C=10.0).fit(X[:2], y[:2])
    # margins 1 of w = 1: P = 1/2
    assert pair.certificate_.primal == pytest.approx(0.5, rel=1e-9)
    np.testing.assert_allclose(pair.coef_, [[1.0]], rtol=1e-6)


def test_rows_of_zeros_and_of_weight_zero():
    X, y = make()
    X[::7] = 0.0
    weight = np.ones(len(y))
    weight[::5] = 0.0
    model = exact().fit(X, y, weight)
    check_certificate(model, X, y, weight)
    without = exact().fit(X[weight > 0], y[weight > 0])
    assert model.certificate_.primal == pytest.approx(
        without.certificate_.primal, rel=1e-9
    )
    zeros = exact(loss="hinge", fit_intercept=False, C=2.0)
    nothing = quiet(zeros, np.zeros((4, 2)), [0, 1, 0, 1])
    assert nothing.certificate_.dual < 8.0 < nothing.certificate_.primal
    assert nothing.certificate_.gap <= 1e-13
    assert not nothing.coef_.any()


# Stopping


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(loss="hinge", solver="norma"),
        LinearSVC(loss="hinge", solver="norma", n_jobs=2),
        SVC(loss="squared_hinge", solver="fw"),
    ],
    ids=repr,
)
def test_time_limit_is_for_the_whole_fit(model):
    """A callback of the first problem uses it up, and nothing is left for the last."""
    X, y = make(n=200, classes=3)
    model = clone(model).set_params(tol=1e-12, time_limit=0.2)
    with pytest.warns(ConvergenceWarning, match="3 of 3 (classes|pairs)"):
        model._fit(X, y, on_epoch=lambda label, info: time.sleep(0.2))
    assert {c.status for c in model.certificate_} == {Status.TIME_LIMIT}
    epochs = [c.epochs for c in model.certificate_]
    assert max(epochs) <= 1
    assert epochs[-1] == 0
    check_certificate(model, X, y)


def test_the_first_class_to_fail_stops_the_others():
    X, y = make(n=20_000, d=20, classes=3)
    model = LinearSVC(solver="dcd", tol=1e-15, max_iter=10**9, n_jobs=3)
    running = set()

    def fail(label, info):
        running.add(label)
        if label == 1:
            running.remove(label)
            raise RuntimeError("stop here")
        if info.final:
            time.sleep(0.2)
            running.remove(label)

    with pytest.raises(RuntimeError, match="stop here"):
        model._fit(X, y, on_epoch=fail)
    # None goes on in the background, where it would put back the filters of warnings
    # that it found when it began.
    assert not running
    assert not hasattr(model, "classes_")


# scikit-learn's habits


def test_the_text_of_a_model():
    model = LinearSVC(loss=SmoothedHinge(gamma=0.2), solver=SDCA(order="random"))
    assert repr(model.set_params(random_state=0, tol=1e-2)) == (
        "LinearSVC(loss=SmoothedHinge(gamma=0.2),\n"
        "          solver=SDCA(max_steps=None,\n"
        "                      order='random',\n"
        "                      init='zero',\n"
        "                      output='last'),\n"
        "          tol=0.01)"
    )


def test_sparse_coefficients_predict_the_same():
    X, y = load_digits(return_X_y=True)
    model = quiet(LinearSVC(solver="dcd", max_iter=5, random_state=0), X, y)
    decision = model.decision_function(X)
    model.sparsify()
    np.testing.assert_allclose(model.decision_function(X), decision)


def test_verbose_is_heard_and_the_logger_left_as_it_was(caplog):
    X, y = make()
    logger = logging.getLogger("dualgap")
    before = logger.level, list(logger.handlers)
    model = LinearSVC(random_state=0, solver="dcd").fit(X, y)
    assert not caplog.records
    model.set_params(verbose=1).fit(X, y)
    others = [line for line in caplog.messages if " epoch " not in line]
    assert others == [str(model.certificate_)]
    caplog.clear()
    model.set_params(verbose=2).fit(X, y)
    epochs = [line for line in caplog.messages if " epoch " in line]
    assert len(epochs) == len(model.history_) >= model.n_iter_
    assert epochs[0].startswith("dcd epoch 1  primal ")
    assert all(re.search(r"gap ~?(\d\S+|-), target 0\.001", line) for line in epochs)
    assert (logger.level, logger.handlers) == before
    caplog.clear()
    three = np.arange(len(y)) % 3
    for one in (LinearSVC(verbose=1), SVC(verbose=1)):
        one.fit(X, three)
        for part in one.certificate_.parts:
            assert str(part).startswith(f"{part.name}: Converged")
            assert str(part) in caplog.messages


@pytest.mark.long
def test_blas_has_its_threads_back_after_fits_in_threads():
    code = """
import numpy as np
from threadpoolctl import threadpool_info
from dualgap import LinearSVC

def threads():
    return [m["num_threads"] for m in threadpool_info() if m["user_api"] == "blas"]

rng = np.random.default_rng(0)
X, y = rng.normal(size=(2000, 10)), rng.integers(0, 5, 2000)
model = LinearSVC(solver="newton")
model.fit(X[:100], y[:100])  # loads all there is of BLAS
before = threads()
LinearSVC(solver="newton", n_jobs=3).fit(X, y)
assert threads() == before, (threads(), before)
"""
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "2"}
    subprocess.run(
        [sys.executable, "-c", code], env=environment, check=True, timeout=300
    )


@pytest.mark.long
def test_verbose_without_logging_set_up_goes_to_standard_output():
    code = (
        "from dualgap import LinearSVC\n"
        "model = LinearSVC(loss='hinge', verbose=1).fit([[0.0], [1.0]], [0, 1])\n"
        "LinearSVC(loss='hinge').fit([[0.0], [1.0]], [0, 1])\n"
        "print(model.certificate_)\n"
    )
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert result.stderr == ""
    reason, *lines = result.stdout.splitlines()
    assert reason.startswith("auto: dcd begins")
    half = len(lines) // 2
    assert lines[:half] == lines[half:]
    assert lines[0].startswith("Converged: within ")

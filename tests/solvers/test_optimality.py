"""Objectives against LIBLINEAR's and against published ones.

Every objective is recomputed here, in plain NumPy and float64.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from dualgap.certificate import Status
from dualgap.problems import BinaryProblem as Problem
from dualgap.solvers import get_solver
from dualgap.training import solve

from ..twins import objectives
from .data import LOSSES


def primal(X, y, C, loss, w):
    return objectives.primal(X, y, np.full(len(y), C), LOSSES[loss][1], w)


def dual(X, y, C, loss, alpha):
    return objectives.dual(X, y, np.full(len(y), C), LOSSES[loss][1], alpha)


@pytest.fixture(scope="module")
def data(load_xz):
    """(X in CSR with int32 indices, y) by name."""

    @functools.cache
    def load(name):
        if name == "digits":  # even against odd, unit rows
            X, y = load_digits(return_X_y=True)
            X, y = sparse.csr_matrix(normalize(X)), np.where(y % 2 == 0, 1, -1)
        else:
            X, y = load_xz(name)
        X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return X, y.astype(int)

    return load


def train_liblinear(X, y, C, loss, max_iter):
    """LIBLINEAR's objective. It warns, which is an error, if it does not converge."""
    hinge = loss == "hinge"
    model = LinearSVC(
        C=C, loss=loss, dual=hinge, fit_intercept=False, random_state=0,
        tol=1e-6 if hinge else 1e-10, max_iter=max_iter,
    )  # fmt: skip
    return primal(X, y, C, loss, model.fit(X, y).coef_.ravel())


@pytest.fixture(scope="module")
def liblinear(data):
    """LIBLINEAR's objective of a data set, computed once."""

    @functools.cache
    def objective(name, C, loss, max_iter=300_000):
        return train_liblinear(*data(name), C, loss, max_iter)

    return objective


# The hinge of a1a at C = 100 has tests of its own below.
PROBLEMS = [
    (name, C, loss)
    for name in ("adult/a1a", "web/w1a", "digits")
    for loss in ("hinge", "squared_hinge")
    for C in (0.01, 1.0, 100.0)
    if (C, loss, name) != (100.0, "hinge", "adult/a1a")
]


def agrees(solver, X, y, C, loss, reference, accuracy):
    """Certified to half the accuracy, and no further than that from the reference."""
    problem = Problem(X, y, C, loss=loss)
    solution = solve(problem, get_solver(solver), tol=accuracy / 2, max_iter=10**6)
    assert solution.certificate.status is Status.CERTIFIED
    X = X.astype(np.float64)
    P = primal(X, y, C, loss, solution.w)
    D = dual(X, y, C, loss, solution.alpha)
    np.testing.assert_allclose(solution.certificate.primal, P, 1e-10)
    np.testing.assert_allclose(solution.certificate.dual, D, 1e-10)
    assert D <= reference * (1 + accuracy)
    assert abs(P - reference) <= accuracy * reference


@pytest.mark.cases(9)
@pytest.mark.parametrize(
    ("solver", "dense", "dtype", "accuracy"),
    [
        ("auto", False, np.float64, 1e-6),
        *(
            (solver, dense, dtype, accuracy)
            for solver in ("dcd", "sdca")
            for dense in (False, True)
            for dtype, accuracy in ((np.float64, 1e-6), (np.float32, 1e-4))
        ),
    ],
)
@pytest.mark.parametrize(("name", "C", "loss"), PROBLEMS)
def test_liblinear(solver, dense, dtype, accuracy, name, C, loss, data, liblinear):
    X, y = data(name)
    X = X.astype(dtype)
    X = X.toarray() if dense else X
    agrees(solver, X, y, C, loss, liblinear(name, C, loss), accuracy)


@pytest.mark.long
@pytest.mark.parametrize("solver", ["dcd", "sdca"])
def test_liblinear_a1a_hinge_at_large_C(solver, data, liblinear):
    X, y = data("adult/a1a")
    reference = liblinear("adult/a1a", 100.0, "hinge", max_iter=5_000_000)
    agrees(solver, X, y, 100.0, "hinge", reference, 1e-6)


# Panagiotakopoulos and Tsampouka 2013, Table 1: J and L_T at C = 0.1, no bias.
@pytest.mark.parametrize("solver", ["dcd", "sdca", "auto"])
@pytest.mark.parametrize(
    ("name", "J", "L"),
    [("adult/a9a", 1149.904, 1149.893), ("web/w8a", 755.1139, 755.1064)],
)
def test_published_objectives(solver, name, J, L, data):
    X, y = data(name)
    problem = Problem(X, y, 0.1)
    solution = solve(problem, get_solver(solver), tol=1e-5, max_iter=20_000)
    assert solution.certificate.status is Status.CERTIFIED
    P = primal(X, y, 0.1, "hinge", solution.w)
    D = dual(X, y, 0.1, "hinge", solution.alpha)
    assert P - D <= 1.0001e-5 * D
    assert abs(P - J) <= 1e-5 * J
    assert D <= J
    assert P >= L


@pytest.mark.parametrize(
    ("solver", "tol"),
    [
        ("sgd-s", 1e-2),
        ("sgd-s", 1e-3),
        ("sgd-m", 1e-2),
        ("cutting-plane", 1e-6),
        ("ocas", 1e-6),
    ],
)
@pytest.mark.parametrize("name", ["adult/a1a", "web/w1a"])
def test_the_hinge_of_other_solvers(solver, tol, name, data, liblinear):
    X, y = data(name)
    C = 0.05
    solution = solve(Problem(X, y, C), get_solver(solver), tol=tol, max_iter=100_000)
    assert solution.certificate.status is Status.CERTIFIED
    assert solution.certificate.relative_gap <= tol
    optimum = liblinear(name, C, "hinge")
    P = primal(X, y, C, "hinge", solution.w)
    assert -1e-6 * optimum <= P - optimum <= tol * optimum
    assert dual(X, y, C, "hinge", solution.alpha) <= optimum * (1 + 1e-6)

"""Kernel problems with a penalised bias, and without a bias, through to SVC."""

from __future__ import annotations

import numpy as np
import pytest
from libsvm import svmutil

from dualgap import SVC, certify, compress, core, load_model, save_model
from dualgap.kernel import (
    RBF,
    KernelProblem,
    Nystroem,
)
from dualgap.models import write_libsvm

from .data import form, make, optimum, values

#: Arguments of SVC with kernel-pegasos, and the number added to the kernel.
BIASES = [
    ({}, 1.0),
    ({"penalize_intercept": True}, 1.0),
    ({"fit_intercept": False}, 0.0),
]
any_bias = pytest.mark.parametrize(("bias", "constant"), BIASES[1:])
any_loss = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])


def svc(bias, loss="hinge", tol=0.02, **options):
    return SVC(
        1.0, kernel=RBF(0.5), loss=loss, solver="kernel-pegasos", tol=tol,
        max_iter=5000, random_state=0, **bias, **options,
    )  # fmt: skip


def gaussian(A, B):
    return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=-1))


def decisions(model, A, X):
    signed = np.zeros(len(X))
    signed[model.support_] = model.dual_coef_[0]
    return gaussian(A, X) @ signed + model.intercept_[0]


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smoothed_hinge"])
@any_bias
def test_bounds_are_the_objective_and_its_dual(loss, bias, constant):
    X, y = make(50, 3, 2)
    weight = np.random.default_rng(1).uniform(0.0, 2.0, 50)
    problem = KernelProblem(
        X, y, 0.7, kernel=RBF(0.5), loss=loss, sample_weight=weight, **bias
    )
    assert problem.constant == constant
    best = optimum(problem)
    for scale in (0.0, 0.3, 1.0):
        proof = problem.certify(scale * best.alpha)
        assert proof.dual <= best.upper * (1 + 1e-9)
        assert proof.primal >= best.lower * (1 - 1e-9)
    P, D = values(problem, best.alpha)
    assert (proof.primal, proof.dual) == pytest.approx((P, D), rel=1e-7)
    assert proof.relative_gap < 1e-4
    alpha = np.random.default_rng(0).uniform(0.0, 0.5, 50) * np.minimum(weight, 1.0)
    coef, own = problem.coef(alpha)
    assert own == pytest.approx(constant * (alpha @ y), rel=1e-12)
    f = problem.combine(alpha)
    np.testing.assert_allclose(f * y, form(problem) @ alpha, rtol=1e-9, atol=1e-12)
    # P of any coefficients and bias.
    b = 0.3 * constant
    K = gaussian(X, X)
    P = 0.5 * coef @ K @ coef + 0.5 * b * b
    P += problem.cost @ problem.loss.value(y * (K @ coef + b))
    assert problem.certify_model(coef, b).primal == pytest.approx(P, rel=1e-9)


@any_loss
@pytest.mark.parametrize(("bias", "constant"), BIASES)
def test_svc_is_the_optimum_of_a_quadratic_programme(loss, bias, constant):
    X, y = make(70, 3, 5)
    model = svc(bias, loss).fit(X, y)
    problem = KernelProblem(
        X, y, 1.0, kernel=RBF(0.5), loss=loss, fit_intercept=constant == 1.0
    )
    best, proof = optimum(problem), model.certificate_
    assert proof.certified
    assert proof.dual <= best.upper * (1 + 1e-9)
    assert best.lower * (1 - 1e-9) <= proof.primal <= 1.021 * best.upper
    signed = np.zeros(70)
    signed[model.support_] = model.dual_coef_[0]
    P, D = values(problem, signed * y)
    assert (proof.primal, proof.dual) == pytest.approx((P, D), rel=1e-6)
    assert model.intercept_[0] == pytest.approx(constant * signed.sum(), rel=1e-9)
    new, _ = make(30, 3, 6)
    f = decisions(model, new, X)
    np.testing.assert_allclose(model.decision_function(new), f, rtol=1e-9, atol=1e-12)
    np.testing.assert_array_equal(model.predict(new), np.where(f > 0, 1, -1))


@any_loss
@any_bias
def test_files_hold_every_kind_of_bias(tmp_path, loss, bias, constant):
    X, y = make(60, 3, 5)
    model = svc(bias, loss).fit(X, y)
    new, _ = make(30, 3, 6)
    save_model(model, tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert again.get_params() == model.get_params()
    assert again.certificate_ == model.certificate_
    f = model.decision_function(new)
    np.testing.assert_array_equal(again.decision_function(new), f)
    write_libsvm(model, tmp_path / "libsvm")
    theirs = svmutil.svm_load_model(str(tmp_path / "libsvm"))
    found = svmutil.svm_predict([], new.tolist(), theirs, "-q")[2]
    signs = 1.0 if theirs.get_labels()[0] == 1 else -1.0
    np.testing.assert_allclose(signs * np.ravel(found), f, rtol=1e-5, atol=1e-6)


@any_loss
@any_bias
def test_certify_is_about_the_problem_of_the_model(loss, bias, constant):
    X, y = make(60, 3, 5)
    model = svc(bias, loss).fit(X, y)
    proof = certify(model, X, y, tol=0.03)
    own = model.certificate_
    assert (proof.primal, proof.dual) == pytest.approx((own.primal, own.dual), 1e-6)
    closer = certify(model, X, y, tol=0.015)  # by another fit
    assert closer.dual >= proof.dual
    problem = KernelProblem(
        X, y, 1.0, kernel=RBF(0.5), loss=loss, fit_intercept=constant == 1.0
    )
    assert closer.dual <= optimum(problem).upper * (1 + 1e-9)


@any_bias
def test_compress_keeps_the_kind_of_bias(bias, constant):
    X, y = make(60, 3, 5)
    model = svc(bias).fit(X, y)
    smaller = compress(model, X, y, tol=0.2)
    assert len(smaller.support_) < len(model.support_)
    assert smaller.certificate_.relative_gap <= 0.2
    assert (smaller.intercept_[0] == 0.0) == (constant == 0.0)


@any_bias
def test_pairs_of_classes_have_their_own_bias(bias, constant):
    X, _ = make(90, 3, 5)
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    model = svc(bias).fit(X, y)
    assert len(model.certificate_) == 3
    assert model.certificate_.certified
    if constant == 0.0:
        assert not model.intercept_.any()
    else:
        assert model.intercept_.all()
    proof = certify(model, X, y, tol=0.03)
    assert proof.primal == pytest.approx(model.certificate_.primal, rel=1e-6)


@any_loss
@any_bias
def test_nystroem_trains_every_kind_of_bias(loss, bias, constant):
    X, y = make(60, 3, 5)
    options = {"kernel": RBF(0.5), "loss": loss, "random_state": 0, **bias}
    model = SVC(solver=Nystroem(n_components=120), tol=1e-4, **options).fit(X, y)
    assert (model.intercept_[0] == 0.0) == (constant == 0.0)
    problem = KernelProblem(
        X, y, 1.0, kernel=RBF(0.5), loss=loss, fit_intercept=constant == 1.0
    )
    best = optimum(problem)
    # All rows are landmarks: it is the kernel problem but for float32 features.
    assert model.certificate_.primal == pytest.approx(best.upper, rel=1e-3)
    proof = certify(model, X, y, tol=0.05)
    assert proof.dual <= best.upper * (1 + 1e-9)
    assert best.lower * (1 - 1e-9) <= proof.primal


def test_the_default_bias_of_other_solvers_is_as_before():
    X, y = make(40, 3, 5)
    for options in ({}, {"loss": "squared_hinge"}, {"solver": "nystroem"}):
        penalised = options.get("loss") == "squared_hinge"
        plain = SVC(random_state=0, **options).fit(X, y)
        told = SVC(random_state=0, penalize_intercept=penalised, **options).fit(X, y)
        np.testing.assert_array_equal(plain.dual_coef_, told.dual_coef_)
        np.testing.assert_array_equal(plain.intercept_, told.intercept_)


def test_a_weighted_quantile_is_that_of_sorted_points():
    rng = np.random.default_rng(0)
    for case in range(400):
        n = int(rng.integers(1, 40))
        points = rng.integers(-5, 6, n) / 4 if case % 2 else rng.normal(size=n)
        weight = rng.integers(0, 4, n).astype(float)
        for target in (rng.integers(-1, weight.sum() + 2), weight[: n // 2].sum()):
            order = np.argsort(points, kind="stable")
            sums = np.cumsum(weight[order])
            k = min(int(np.searchsorted(sums, target)), n - 1)
            best = points[order[k]]
            if k + 1 < n and sums[k] == target:
                best = 0.5 * (best + points[order[k + 1]])
            found = core.weighted_quantile(points, weight, float(target))
            assert found == best

"""A certificate is never wrong: P >= P* >= D on random small problems, whatever the
solver did, in exact arithmetic.
"""

from __future__ import annotations

import ast
import copy
import json
import math
import pickle
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import dualgap
from dualgap.certificate import Bounds, Certificate, Status, percent
from dualgap.losses import SmoothedHinge
from dualgap.problems import BinaryProblem as Problem
from dualgap.problems.base import Claim

from . import qp
from .conftest import examples
from .proofs import certificate as by_hand
from .trust.verifier import SVM, Rows

EPS = np.finfo(np.float64).eps


class Plain(NamedTuple):
    """Data of a problem for the reference, none of them computed by the package."""

    Z: np.ndarray  # y_i x_i, constant feature included
    cost: np.ndarray
    upper: np.ndarray
    curvature: float
    linear: bool

    def posed(self, y=None) -> SVM:
        """The problem for the verifier; with labels it has a free bias."""
        loss = "smoothed_hinge" if self.linear else "squared_hinge"
        loss = loss if self.curvature else "hinge"
        Z, y, bias = (
            (self.Z, np.ones(len(self.Z)), "none") if y is None
            else (self.Z * y[:, None], y, "free")
        )  # fmt: skip
        return SVM(Rows(Z), loss, y, self.cost, self.curvature, bias)

    def dual(self, alpha):
        return qp.dual(self.Z, self.cost, self.curvature, alpha)


def floats(exact) -> np.ndarray:
    """Return exact numbers in float64."""
    return np.array([float(value) for value in exact.fractions()])


@dataclass(frozen=True)
class Case:
    """A small problem, often a degenerate one."""

    n: int
    d: int
    seed: int
    loss: str
    gamma: float
    C: float
    scale: float
    rows: str
    labels: str
    weights: str
    intercept_scaling: float | None
    dtype: str
    layout: str

    def build(self) -> tuple[Problem, Plain]:
        rng = np.random.default_rng(self.seed)
        X = rng.standard_normal((self.n, self.d))
        y = rng.choice([-1, 1], size=self.n)
        if self.labels == "separable":
            y = np.where(X[:, 0] > 0, 1, -1)
        elif self.labels == "one class":
            y[:] = y[0]
        X = self.degenerate(X, rng)
        X = (X * self.scale).astype(self.dtype)
        weight = self.weight(rng)
        bias = self.intercept_scaling
        loss = SmoothedHinge(self.gamma) if self.loss == "smoothed_hinge" else self.loss
        problem = Problem(
            sparse.csr_matrix(X) if self.layout == "csr" else X,
            y,
            self.C,
            loss=loss,
            sample_weight=weight,
            fit_intercept=bias is not None,
            intercept_scaling=1.0 if bias is None else bias,
        )
        Z = X.astype(np.float64)
        if bias is not None:
            Z = np.column_stack([Z, np.full(self.n, bias)])
        cost = np.full(self.n, self.C) if weight is None else self.C * weight
        curvature = {"hinge": 0.0, "squared_hinge": 0.5}.get(self.loss, self.gamma)
        linear = self.loss != "squared_hinge"
        upper = cost if linear else np.where(cost > 0, np.inf, 0.0)
        return problem, Plain(y[:, None] * Z, cost, upper, curvature, linear)

    def degenerate(self, X, rng):
        if self.rows == "some zero":
            X[rng.random(self.n) < 0.5] = 0.0
        elif self.rows == "all zero":
            X[:] = 0.0
        elif self.rows == "duplicates":
            X = X[rng.integers(0, self.n, self.n)]
        elif self.rows == "opposite duplicates":
            X = X[rng.integers(0, self.n, self.n)] * rng.choice([-1, 1], (self.n, 1))
        elif self.rows == "collinear":
            X = X[:, :1] * X[:1]
        elif self.rows == "integers":
            X = np.round(X)
        elif self.rows == "mixed sizes":
            X *= 10.0 ** rng.integers(-1, 2, (self.n, 1))
        return X

    def weight(self, rng):
        if self.weights == "none":
            return None
        weight = rng.choice([1.0, 2.0, 0.1, 30.0], self.n)
        if self.weights == "some zero":
            weight[rng.random(self.n) < 0.5] = 0.0
            weight[rng.integers(self.n)] = 1.0
        return weight


def sampled(*values):
    return st.sampled_from(values)


cases = st.builds(
    Case,
    n=st.integers(1, 12),
    d=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
    loss=sampled("hinge", "squared_hinge", "smoothed_hinge"),
    gamma=sampled(1e-3, 0.1, 1.0, 10.0),
    C=sampled(1e-4, 1e-2, 0.1, 1.0, 10.0, 1e2, 1e4),
    scale=sampled(1e-3, 0.1, 1.0, 10.0, 1e3),
    rows=sampled(
        "random", "some zero", "all zero", "duplicates", "opposite duplicates",
        "collinear", "integers", "mixed sizes",
    ),
    labels=sampled("random", "separable", "one class"),
    weights=sampled("none", "positive", "some zero"),
    intercept_scaling=sampled(None, 1.0, 0.01, 100.0),
    dtype=sampled("float32", "float64"),
    layout=sampled("dense", "csr"),
)  # fmt: skip


def check_bracket(posed: SVM, certificate: Certificate, w, alpha) -> None:
    """The certificate is about w and alpha, and the optimum lies between."""
    assert posed.in_box(alpha)
    primal, dual = posed.primal(w), posed.dual(alpha)
    assert certificate.dual <= dual <= primal <= certificate.primal
    assert certificate.dual <= posed.optimum.value <= certificate.primal
    # P and D are rounded outwards, by their own rounding at the most.
    room = 2.0 * certificate.rounding
    assert max(certificate.primal - primal, dual - certificate.dual) <= room
    assert certificate.gap == certificate.primal - certificate.dual
    if dual > 0:
        assert certificate.relative_gap == certificate.gap / certificate.dual


scales = st.integers(-6, 6).map(lambda exponent: 10.0**exponent)


@settings(max_examples=examples(300))
@given(case=cases, seed=st.integers(0, 2**32 - 1), length=scales)
def test_any_primal_point_gets_a_true_certificate(case, seed, length):
    problem, plain = case.build()
    posed = plain.posed()
    best = floats(posed.optimum.model)
    near = np.random.default_rng(seed).standard_normal(problem.width)
    for w in (near * length, best + near * length * np.abs(best), best * 0.0):
        proof = problem.prove(Claim(w))
        told, same = problem.certify(w), (proof.w == w).all()
        check_bracket(posed, proof.certificate, proof.w, proof.alpha)
        assert told == proof.certificate or not same
        assert told.dual <= posed.optimum.value
        assert posed.primal(w) <= told.primal

        # The core's own margins: at the kink of the hinge one rounding decides.
        suggested = plain.cost * suggestion(plain, 1.0 - problem.margins(w))
        room = 2.0 * proof.certificate.rounding
        assert best_scaled(plain, suggested) <= proof.certificate.dual + room


def suggestion(plain: Plain, u):
    """The slope of the loss in u; any b in [0, 1] is one at the kink of the hinge."""
    if plain.curvature == 0.0:
        return (u > 0).astype(float)
    slope = np.maximum(u, 0.0) / plain.curvature
    return np.minimum(slope, 1.0) if plain.linear else slope


def best_scaled(plain: Plain, alpha) -> float:
    """Largest D(s alpha) over a grid of s that holds 0, 1 and the edge of the box."""
    positive = alpha > 0
    if not positive.any():
        return 0.0
    edge = (plain.upper[positive] / alpha[positive]).min()
    grid = np.concatenate([[0.0, 1.0, edge], 10.0 ** np.linspace(-12, 12, 49)])
    inside = grid[(grid <= edge) & np.isfinite(grid)]
    return max(plain.dual(np.minimum(s * alpha, plain.upper)) for s in inside)


@settings(max_examples=examples(300))
@given(
    case=cases, seed=st.integers(0, 2**32 - 1), length=scales, size=scales,
    bounds=sampled("inside", "corners", "few"),
)  # fmt: skip
def test_any_dual_point_gives_a_true_bound(case, seed, length, size, bounds):
    problem, plain = case.build()
    posed = plain.posed()
    rng = np.random.default_rng(seed)
    reach = size * (floats(posed.optimum.duals).max() + 1e-9)
    reach = np.minimum(plain.upper, reach)
    share = rng.random(case.n)
    if bounds == "corners":
        share = np.round(share)
    elif bounds == "few":
        share[rng.random(case.n) < 0.7] = 0.0
    alpha = share * reach
    given_alpha = alpha.copy()

    alone = problem.prove(Claim(alpha=alpha))
    check_bracket(posed, alone.certificate, alone.w, alpha)
    off = (case.n + 4) * EPS * (alpha @ np.abs(plain.Z))
    assert (np.abs(alone.w - alpha @ plain.Z) <= off).all()
    assert problem.certify(alpha=alpha) == alone.certificate

    w = rng.standard_normal(problem.width) * length
    both = problem.prove(Claim(w, alpha))
    check_bracket(posed, both.certificate, both.w, both.alpha)
    assert problem.certify(w, alpha) == both.certificate or (both.w != w).any()
    assert (alpha == given_alpha).all()
    room = 2.0 * both.certificate.rounding
    assert best_scaled(plain, alpha) <= both.certificate.dual + room
    # The point that is certified is alpha on another scale.
    i = int(np.argmax(alpha))
    if alpha[i] > 0:
        ray = alpha * (both.alpha[i] / alpha[i])
        np.testing.assert_allclose(both.alpha, ray, rtol=1e-12, atol=0.0)


# The largest numbers that a caller can hand over.


def few_rows(loss="squared_hinge") -> tuple[Problem, qp.Optimum]:
    X = np.array([[1.0, 2.0], [-3.0, 0.5], [0.25, -4.0]])
    problem = Problem(X, [1, -1, 1], loss=loss)
    Z = problem.y[:, None] * X
    linear = not math.isinf(problem.loss.slope)
    return problem, qp.optimum(Z, problem.cost, problem.loss.curvature, linear)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "smoothed_hinge"])
@pytest.mark.parametrize("size", [1e100, 1e160, 1e300])
def test_huge_points_keep_the_bracket(loss, size):
    problem, best = few_rows(loss)
    for w in (np.array([size, -size]), np.array([size, size]), np.array([0, size])):
        certificate = problem.certify(w)
        assert certificate.primal >= best.lower
        assert certificate.dual <= best.upper
        assert certificate.primal >= size * size / 2
        assert certificate.dual >= 0.0
        assert certificate.relative_gap > 1.0


@pytest.mark.parametrize("size", [5e-324, 1e-310, 1e-200, 1e160, 1e200, 1e300])
def test_extreme_dual_points_keep_the_bracket(size):
    problem, best = few_rows()
    alpha = np.array([size, 0.5 * size, 0.0])
    for w in (None, np.zeros(2)):
        certificate = problem.certify(w, alpha)
        assert certificate.primal >= best.lower
        assert certificate.dual <= best.upper


def test_a_sum_of_rows_beyond_float64_keeps_the_bracket():
    """w(alpha) holds infinite values, and NaN where two of them meet."""
    problem = Problem(
        1e10 * np.array([[1.0, 2.0], [-3.0, 0.5]]), [1, 1], loss="squared_hinge"
    )
    alpha = np.full(2, 1e300)
    for certificate in (
        problem.certify(alpha=alpha),
        problem.certify(np.zeros(2), alpha),
    ):
        assert certificate.primal >= 1e-22
        assert certificate.dual <= 2.0
        assert certificate.relative_gap == math.inf


@pytest.mark.parametrize("size", [1e-140, 1e-100, 1e100, 1e140])
def test_the_size_of_a_dual_point_that_is_scaled_does_not_matter(size):
    problem, _ = few_rows()
    alpha = np.array([1.0, 0.5, 0.0])
    expected = problem.certify(np.zeros(2), alpha).dual
    assert problem.certify(np.zeros(2), size * alpha).dual == pytest.approx(
        expected, rel=1e-12
    )


# The record.


def test_the_values_of_a_certificate_cannot_be_replaced():
    certificate = by_hand(3.0, 2.0)
    for name in ("primal", "dual", "rounding"):
        with pytest.raises(TypeError):
            replace(certificate, **{name: 2.5})
    assert replace(certificate, epochs=7).primal == 3.0
    with pytest.raises(AttributeError):
        certificate.dual = 3.0


def test_copies_are_the_same():
    certificate = by_hand(3.0, 2.0, tol=0.1, status=Status.STALLED, floor=0.5)
    copies = [copy.copy(certificate), copy.deepcopy(certificate)]
    copies += [pickle.loads(pickle.dumps(certificate, k)) for k in range(2, 6)]
    for other in copies:
        assert other == certificate
        assert hash(other) == hash(certificate)


def test_what_is_proved_is_rounded_outwards():
    bounds = Bounds.proved(1.0, 0.25, 0.5, 0.125)
    assert (bounds.primal, bounds.dual, bounds.rounding) == (1.25, 0.375, 0.375)
    upper = Bounds.proved(1.0, 0.25)
    assert (upper.primal, upper.dual) == (1.25, -math.inf)
    lower = Bounds.proved(dual=0.5)
    assert (lower.primal, lower.dual) == (math.inf, 0.5)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("error", [0.0, math.nan, math.inf])
def test_what_is_not_finite_bounds_nothing(value, error):
    bounds = Bounds.proved(value, error, value, error)
    assert bounds.primal == math.inf
    assert bounds.dual == -math.inf
    assert not math.isnan(bounds.rounding)
    certificate = bounds.certificate
    for floor in (0.0, 1.0, math.inf):
        assert replace(certificate, floor=floor).relative_gap == math.inf


def test_two_proofs_of_one_problem():
    one = Bounds.proved(3.0, 0.5, 1.0, 0.25).certificate
    two = Bounds.proved(9.0, 0.0, 2.0, 0.125).certificate
    both = one.with_dual_of(two)
    assert (both.primal, both.dual) == (3.5, 1.875)
    assert both.rounding == one.rounding + two.rounding
    assert one.with_dual_of(Bounds.proved(9.0).certificate) == one


def calls(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(object, attribute) or ("", name) of all that is called."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        function = node.func
        if isinstance(function, ast.Name):
            yield "", function.id
        elif isinstance(function, ast.Attribute):
            of = function.value
            yield of.id if isinstance(of, ast.Name) else "", function.attr


def test_certificates_come_from_proofs_alone():
    """Only modules that bound the rounding, or read a proof, may make certificates."""
    provers = {
        "problems/binary.py", "problems/regression.py", "problems/one_class.py",
        "problems/rounding.py", "training/stream.py", "problems/kernel.py",
        "problems/kernel_boxes.py", "problems/batch.py", "problems/logistic.py",
        "problems/kernel_matrix.py", "problems/kernel_nu.py", "problems/elastic_net.py",
        "problems/hard_margin.py",
        "solvers/kernel/base.py",
        "solvers/kernel/auto.py",  # proved by the core
        "estimators/_libsvm.py",  # infinite bounds, which claim nothing
        "models/proofs.py",  # rounds exact values outward
    }  # fmt: skip
    allowed = {
        ("", "Certificate"): {"certificate.py"},
        ("", "Bounds"): {"certificate.py"},
        ("Bounds", "proved"): provers,
        ("Bounds", "stored"): {"certificate.py", "training/checkpoint.py"},
    }
    seen: dict[tuple[str, str], set[str]] = {call: set() for call in allowed}
    source = Path(dualgap.__file__).parent
    for path in sorted(source.rglob("*.py")):
        for called in calls(ast.parse(path.read_text())):
            of, name = called
            call = ("", name) if name in ("Certificate", "Bounds") else (of, name)
            if call in seen:
                seen[call].add(path.relative_to(source).as_posix())
    assert seen == allowed


@pytest.mark.parametrize("sizes", [(0.1, 0.2, 0.3), (0.1, 0.2)])
def test_total_of_certificates_is_rounded_outwards(sizes):
    """The nearest float64 is below the first sum, and above the second one."""
    total = Certificate.total([by_hand(size, size) for size in sizes])
    assert total.dual <= sum(map(Fraction, sizes)) <= total.primal


def test_the_total_has_the_targets_of_all_parts_and_the_status_of_the_worst():
    near = by_hand(1.0, 0.9, tol=0.2, atol=0.5, floor=3.0, status=Status.STALLED)
    far = by_hand(1.0, 0.5, tol=0.1, atol=0.6, floor=0.5, status=Status.CERTIFIED)
    total = Certificate.total([far, near])
    assert (total.tol, total.atol, total.floor) == (0.2, 0.6, 3.0)
    assert far.relative_gap > near.relative_gap
    assert total.status is Status.STALLED


def test_a_gap_meets_a_target_of_its_size_and_no_smaller_one():
    certificate = by_hand(3.0, 2.0)
    assert certificate.meets(0.5)
    assert not certificate.meets(0.49)
    assert certificate.meets(0.0, 1.0)
    assert not certificate.meets(0.0, 0.99)


def test_a_certificate_of_several_problems_has_their_parts():
    done = replace(by_hand(1.0, 0.9), status=Status.CERTIFIED, solver="dcd", tol=0.2)
    failed = replace(
        by_hand(3.0, 2.0), status=Status.EPOCH_LIMIT, solver="dcd", tol=0.2
    )
    total = Certificate.total([done, failed], ["class a", "class b"])
    assert [part.name for part in total.parts] == ["class a", "class b"]
    assert len(total) == 2
    assert list(total) == list(total.parts)
    assert total.parts[1].gap == 1.0
    assert not total.certified
    assert total.gap >= 1.0 + (1.0 - 0.9)
    assert total.message.startswith("Not converged in 1 of 2 problems: within 38 % of")
    assert str(total.parts[1]).startswith("class b: Not converged: within 50 % of")
    assert Certificate.total([done, done]).certified
    assert pickle.loads(pickle.dumps(total)) == total
    assert copy.deepcopy(total) == total
    assert [part["name"] for part in total.to_dict()["parts"]] == ["class a", "class b"]
    json.dumps(total.to_dict())
    table = total._repr_html_()
    assert table.count("<tr>") == 4
    assert "all together" in table


def test_certificates_of_the_same_proof_are_equal():
    one, two = by_hand(1.0, 0.5), by_hand(1.0, 0.5)
    one, two = replace(one, tol=math.nan), replace(two, tol=float("nan"))
    assert one == two
    assert hash(one) == hash(two)
    assert one != replace(two, tol=1e-3)
    assert one != by_hand(1.0, 0.25)
    assert one != (1.0, 0.5)


def test_a_certificate_of_one_problem_is_its_own_part():
    alone = by_hand(1.0, 0.5)
    assert alone.parts == (alone,)
    assert alone.parts[0] is alone
    assert np.array([alone, alone]).shape == (2,)
    assert len(alone) == 1
    assert "parts" not in alone.to_dict()
    assert alone._repr_html_().count("<tr>") == 2


#: Primal and dual values, the relative gap (None: none is within any), and the message.
NO_BOUND = "No bound on the objective is known yet"
GAPS = [
    (3.0, 2.0, 0.5, "Within 50 % of the optimum, if it was trained on these rows"),
    (
        5.0,
        2.0,
        1.5,
        "Possibly 150 % above the optimum, if it was trained on these rows",
    ),
    *((3.0, dual, math.inf, NO_BOUND) for dual in (0.0, -1.0, -math.inf)),
    *((value, value, 0.0, "Within 0 % of") for value in (0.0, 2.0)),
    (1.0, 1.0 + EPS, -EPS, "Within 0 % of"),  # rounding below zero, as it is
    (math.nan, 1.0, None, ""),
    (1.0, math.nan, None, ""),
    (math.inf, 1.0, None, ""),
]


@pytest.mark.cases(None)
@pytest.mark.parametrize(("primal", "dual", "relative", "message"), GAPS)
def test_gaps(primal, dual, relative, message):
    certificate = by_hand(primal=primal, dual=dual)
    if relative is None:
        assert not certificate.relative_gap <= 1e300
        return
    assert certificate.gap == primal - dual
    assert certificate.relative_gap == pytest.approx(relative, rel=4 * EPS)
    assert message.lower() in certificate.message.lower()
    assert "target" not in certificate.message


@pytest.mark.parametrize("status", Status)
def test_only_one_status_is_certified(status):
    certificate = by_hand(primal=1.0, dual=0.5, status=status)
    assert certificate.certified == (status.name == "CERTIFIED")
    assert certificate.status.label == status.name.lower()
    if not certificate.certified:
        assert certificate.message.endswith(status.value)


def test_message_has_the_numbers():
    certificate = by_hand(
        primal=1.031, dual=1.0, epochs=7, updates=42, seconds=0.5,
        status=Status.EPOCH_LIMIT, solver="dcd", tol=1e-3,
    )  # fmt: skip
    assert certificate.message == (
        "Not converged: within 3.1 % of the optimum (target 0.1 %). Stopped at "
        "max_iter: raise it, scale the columns, or raise tol."
    )
    assert str(certificate) == certificate.message
    assert repr(certificate) == (
        "Certificate(epoch_limit, relative_gap=3.10e-02, primal=1.031, dual=1, "
        "solver='dcd', epochs=7, seconds=0.5)"
    )
    converged = replace(certificate, status=Status.CERTIFIED, tol=0.05)
    assert converged.message == "Converged: within 3.1 % of the optimum (target 5 %)."
    no_fit = replace(certificate, status=None, tol=math.nan)
    assert no_fit.message == (
        "Within 3.1 % of the optimum, if it was trained on these rows and weights."
    )


def test_to_dict_is_json_with_both_gaps():
    certificate = by_hand(primal=3.0, dual=2.0, status=Status.CERTIFIED, tol=0.5)
    assert json.loads(json.dumps(certificate.to_dict())) == {
        "primal": 3.0, "dual": 2.0, "epochs": 0, "updates": 0, "seconds": 0.0,
        "status": "certified", "solver": "", "tol": 0.5, "gap": 1.0,
        "relative_gap": 0.5, "about": "", "rounding": 0.0, "floor": 0.0,
    }  # fmt: skip


def test_shares_are_rounded_up():
    shares = [0.031, 2e-5, 0.5, 0.0, -1.0, 0.000451, 0.001, 1.12, 3e-8, 2.11e-14]
    texts = "3.1 0.002 50 0 0 0.046 0.1 120 0.000003 2.2e-12"
    assert [percent(x) for x in shares] == [f"{text} %" for text in texts.split()]
    assert percent(math.inf) == percent(1e308) == "unknown"

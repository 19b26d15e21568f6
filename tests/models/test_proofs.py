"""Proof files, and the program that checks them in exact integers."""

from __future__ import annotations

import ast
import hashlib
import io
import itertools
import random
import re
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import sklearn.svm
from scipy import sparse
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.linear_model import SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualgap_check
from dualgap import SVC, SVR, LinearSVC, LinearSVR, certify
from dualgap.data.scaling import Scaling
from dualgap.models import write_proof
from dualgap_check import FAILURES, Proof, check, claim_of

from ..trust.verifier import SVM, Exact, Kernel, Rows, exponential

CHECKER = Path(dualgap_check.__file__)


def examples(classes=2, n=24, d=4, seed=0):
    """Overlapping classes with a zero row and a repeated row."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % classes
    X = rng.standard_normal((n, d)) + y[:, None] * rng.standard_normal(d)
    X[0] = 0.0
    X[1] = X[1 + classes]
    return X, y


def proved(model, X, y, path, **options):
    """Write a proof, check it, and return it with the checked values and bounds."""
    bounds = write_proof(model, X, y, path, **options)
    content = path.read_bytes()
    data = options.get("data")
    found = check(Proof(content), None if data is None else data.read_bytes())
    for (primal, dual), part in zip(found, bounds.parts, strict=True):
        assert part.dual <= dual <= primal <= part.primal
        assert part.primal - primal <= 1e-15 * part.primal
    return content, found, bounds


def rows_of(proof, X):
    """The rows of the problem in fractions: X, or its scaled columns."""
    rows = [[Fraction(float(x)) for x in row] for row in X]
    if not proof.scaled:
        return rows
    means = [Fraction(mean, 2**proof.raw) for mean in proof.means]
    unit = 2 ** (proof.exponent_x - proof.raw)
    factors = [Fraction(factor, unit) for factor in proof.factors]
    columns = list(zip(means, factors, strict=True))
    return [
        [(x - mean) * factor for x, (mean, factor) in zip(row, columns, strict=True)]
        for row in rows
    ]


def values_of(content, X, y, C, loss="hinge", kernel=None):
    """P and D by the verifier, from X and y and the integers of the file."""
    proof, y = Proof(content), np.asarray(y, float)
    w = [Fraction(entry, 2**proof.exponent_w) for entry in proof.parts[0].w]
    alpha = [Fraction(head[1], 2**proof.exponent_a) for head, _ in proof.rows()]
    duals = Exact.vector(alpha) * (np.ones(len(y)) if proof.residual else y)
    rows = rows_of(proof, np.asarray(X))
    flat = Exact.vector([entry for row in rows for entry in row])
    Z = Exact(flat.digits.reshape(len(rows), -1), 1 - flat.over.bit_length())
    epsilon, constant = 0.0, Fraction(proof.constant, 2**proof.exponent_x)
    if proof.residual:
        epsilon = Fraction(proof.epsilon, 2**proof.exponent_y)
    if kernel:
        points, model, bias, b = Kernel(Rows(Z).gram()), duals, "free", w[-1]
        if kernel["kernel"] == "rbf":
            points = exponential(Z, kernel["gamma"], 2)
        elif kernel["kernel"] == "poly":
            K = points.K * kernel["gamma"] + kernel["coef0"]
            points = Kernel(K ** kernel["degree"])
    else:
        bias = "free" if proof.free else "penalised" if constant else "none"
        *model, b = w if bias != "none" else (*w, Fraction(0))
        points, model, b = Rows(Z), Exact.vector(model), b * (constant or 1)
    svm = SVM(points, loss, y, np.full(len(y), C), epsilon, bias, constant or 1)
    assert svm.in_box(duals)
    assert bias != "free" or duals.sum().fraction() == 0
    return svm.primal(model, b), svm.dual(duals)


def compare(primal, dual, content, X, signs, C, **kernel):
    """P and D of the hinge are exact; with an RBF kernel they are safe, and close."""
    P, D = values_of(content, X, signs, C, kernel=kernel)
    rbf = kernel["kernel"] == "rbf"
    # Values of the RBF kernel have an error of at most 2 units of 2^-64.
    room, off = rbf * Fraction(len(signs) * 20, 2**62), rbf * Fraction(1, 2**90)
    assert P - off <= primal <= P + off + room
    assert D - off - room <= dual <= D + off


BIAS = [
    {"fit_intercept": False},
    {"intercept_scaling": 0.3},
    {"penalize_intercept": False},
]


@pytest.mark.cases(None)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("bias", BIAS)
def test_claims_are_the_exact_values(tmp_path, loss, bias):
    X, y = examples()
    model = LinearSVC(C=0.7, loss=loss, tol=1e-6, random_state=0, **bias).fit(X, y)
    content, [(primal, dual)], _ = proved(model, X, y, tmp_path / "proof")
    exact = values_of(content, X, np.where(y > 0, 1, -1), 0.7, loss)
    assert primal == exact[0]
    assert max(map(abs, Proof(content).parts[0].w[:4])).bit_length() == 53
    # D of the squared hinge rounds every term down by at most 2^-(2 ea + 2).
    assert 0 <= exact[1] - dual <= Fraction(len(y), 4**40)
    assert dual <= primal <= Fraction(model.certificate_.primal)
    assert primal - dual <= Fraction(2, 10**6) * dual


SCALERS = {
    "both": StandardScaler(),
    "no mean": StandardScaler(with_mean=False),
    "no scale": StandardScaler(with_std=False),
}


@pytest.mark.cases(6)
@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize("bias", BIAS)
@pytest.mark.parametrize("text", [False, True])
def test_standardised_columns_are_part_of_the_proof(tmp_path, scaler, bias, text):
    """P and D belong to the rows (x - mean)/scale, in exact rationals."""
    X, y = examples()
    X = X * [1.0, 1e3, 1e-4, 1.0] + [0.0, 1e6, 0.0, 1.0]
    X[:, 3] = 7.25  # its scale is 1
    options = {"data": tmp_path / "data"} if text else {}
    if text:
        dump_svmlight_file(X, y, str(options["data"]), zero_based=False)
        X = load_svmlight_file(str(options["data"]))[0].toarray()
    svm = LinearSVC(C=0.7, loss="hinge", tol=1e-6, random_state=0, **bias)
    model = make_pipeline(SCALERS[scaler], svm).fit(X, y)
    content, [(primal, dual)], _ = proved(model, X, y, tmp_path / "proof", **options)
    assert (primal, dual) == values_of(content, X, np.where(y > 0, 1, -1), 0.7)
    assert primal - dual <= Fraction(2, 10**6) * dual
    # The rows in the proof are those that the model was trained on, before rounding.
    np.testing.assert_allclose(Scaling.of(X).scale, StandardScaler().fit(X).scale_)
    mean, scale = Scaling.of_scaler(model[0])
    mean = np.zeros(4) if mean is None else mean
    trained = model[0].transform(X)
    for exact, row, own in zip(rows_of(Proof(content), X), X, trained, strict=True):
        for z, x, m, s, entry in zip(exact, row, mean, scale, own, strict=True):
            true = (Fraction(x) - Fraction(m)) / Fraction(s)
            assert abs(z - true) <= abs(true) / 2**53
            assert abs(Fraction(entry) - true) <= abs(true) * 3 / 2**53
    assert primal == pytest.approx(certify(model, X, y).primal, rel=1e-9)


@pytest.mark.cases(None)
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_claims_of_a_regression_are_the_exact_values(tmp_path, loss):
    X, y = examples()
    t = X @ [1.0, -2.0, 0.5, 0.1] + 0.3 * y
    options = {"loss": loss, "epsilon": 0.1, "tol": 1e-4, "random_state": 0}
    model = LinearSVR(C=0.3, **options).fit(X, t)
    content, [(primal, dual)], _ = proved(model, X, t, tmp_path / "proof")
    exact = values_of(content, X, t, 0.3, loss)
    assert primal == exact[0]
    assert 0 <= exact[1] - dual <= Fraction(len(y), 4**40)
    assert primal - dual <= Fraction(1, 1000) * dual


@pytest.mark.cases(None)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("bias", BIAS[1:])
def test_several_classes_have_a_part_each(tmp_path, multi_class, bias):
    X, y = examples(classes=3)
    options = {"class_weight": {0: 2.0, 1: 1.0, 2: 0.25}, "multi_class": multi_class}
    model = LinearSVC(tol=1e-5, random_state=0, **options, **bias)
    data = tmp_path / "data"
    dump_svmlight_file(X, y, str(data), zero_based=False)
    X = load_svmlight_file(str(data))[0]  # rounded to the digits in the text
    model.fit(X, y)
    weight = np.arange(len(y)) / len(y)
    _, found, bounds = proved(model, X, y, tmp_path / "proof", data=data)
    assert len(found) == 3
    for part, own in zip(bounds.parts, model.certificate_.parts, strict=True):
        assert part.dual <= own.primal
        assert own.dual <= part.primal
        assert part.name == own.name
    assert bounds.relative_gap <= 2e-5
    model.fit(X, y, weight)
    *_, bounds = proved(
        model, X, y, tmp_path / "proof", sample_weight=weight, data=data
    )
    assert bounds.relative_gap <= 2e-5


def test_models_of_other_packages_get_dual_variables_from_a_fit(tmp_path):
    X, y = examples(n=60)
    for model in (
        sklearn.svm.LinearSVC(loss="hinge", random_state=0),
        sklearn.svm.LinearSVC(random_state=0),
        SGDClassifier(random_state=0),
        make_pipeline(StandardScaler(), LinearSVC(random_state=0)),
    ):
        *_, bounds = proved(model.fit(X, y), X, y, tmp_path / "proof")
        own = certify(model, X, y)
        assert bounds.primal == pytest.approx(own.primal, rel=1e-9)
        assert bounds.dual >= (1 - 1e-3) * own.dual


ODD = {
    "one column": (np.array([[1.0], [0.0], [-1.0], [0.5]]), [1, 0, 0, 1], {}),
    "two rows": (np.eye(2), [0, 1], {}),
    "only zeros": (np.zeros((3, 2)), [0, 1, 1], {}),
    "tiny entries": (np.array([[5e-324, 1.0], [0.0, -1e-300]]), [0, 1], {}),
    "large entries": (np.array([[1e150, 1.0], [0.0, -1e-3]]), [0, 1], {}),
    "tiny C": (*examples(), {"C": 1e-12}),
    "huge C": (*examples(), {"C": 1e9, "max_iter": 50}),
}


@pytest.mark.cases(None)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.parametrize("case", list(ODD))
def test_odd_data_and_costs_are_proved_too(tmp_path, case):
    X, y, options = ODD[case]
    for bias in BIAS:
        model = LinearSVC(random_state=0, **options, **bias).fit(X, y)
        proved(model, X, np.array(y), tmp_path / "proof")


def test_dual_variables_at_any_cost_stay_in_their_box(tmp_path):
    """Costs below the largest one have more digits than the grid of alpha."""
    X, y = examples()
    weight = np.random.default_rng(1).uniform(0.01, 1.0, len(y))
    model = LinearSVC(C=0.01, loss="hinge", random_state=0).fit(X, y, weight)
    content, *_ = proved(model, X, y, tmp_path / "proof", sample_weight=weight)
    proof = Proof(content)
    alpha = [Fraction(row[0][1], 2**proof.exponent_a) for row in proof.rows()]
    near = np.isclose(list(map(float, alpha)), 0.01 * weight, 1e-9)
    assert near.sum() > 12
    assert all(np.array(alpha) <= list(map(Fraction, 0.01 * weight)))


def test_the_same_rows_have_the_same_proof(tmp_path):
    X, y = examples()
    X = X.astype(np.float32)
    X[X < -1] = 0.0
    model = LinearSVC(random_state=0).fit(X, y)
    text = {
        proved(model, rows, y, tmp_path / "proof")[0]
        for rows in (X, X.astype(float), sparse.csr_matrix(X), sparse.coo_matrix(X))
    }
    assert len(text) == 1
    *_, bounds = proved(
        model, X, y, tmp_path / "proof", sample_weight=np.arange(24) % 3 + 0.0
    )
    assert bounds.relative_gap > 0.0


# ------------------------------------------------------------------------- kernels

KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 3, "gamma": 0.3, "coef0": 0.7},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
}


@pytest.mark.cases(1)
@pytest.mark.parametrize("kernel", KERNELS)
def test_claims_of_kernels_are_the_exact_values(tmp_path, kernel):
    X, y = examples()
    options = {**KERNELS[kernel], "C": 0.7}
    model = SVC(tol=1e-6, random_state=0, **options).fit(X, y)
    content, [(primal, dual)], _ = proved(model, X, y, tmp_path / "proof")
    compare(primal, dual, content, X, 2 * y - 1, **options)
    assert 0 <= primal - dual <= Fraction(2, 10**6) * dual
    assert primal == pytest.approx(model.certificate_.primal, rel=1e-9)


@pytest.mark.cases(None)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("classes", [2, 3])
def test_every_kernel_model_has_a_proof(tmp_path, kernel, classes):
    X, y = examples(classes)
    weight = 1.0 + np.arange(len(y)) % 2
    for model in (
        SVC(**KERNELS[kernel], tol=1e-6),
        SVC(**KERNELS[kernel], tol=1e-6, loss="squared_hinge"),
        sklearn.svm.SVC(**KERNELS[kernel], tol=1e-6, class_weight={0: 2.0}),
        make_pipeline(StandardScaler(), SVC(**KERNELS[kernel], tol=1e-6)),
    ):
        *_, bounds = proved(model.fit(X, y), X, y, tmp_path / "proof")
        own = certify(model, X, y)
        assert bounds.primal == pytest.approx(own.primal, rel=1e-9)
        assert bounds.relative_gap <= 1e-4
    model = SVC(**KERNELS[kernel], tol=1e-6).fit(X, y, sample_weight=weight)
    *_, bounds = proved(model, X, y, tmp_path / "proof", sample_weight=weight)
    assert bounds.relative_gap <= 2e-6
    model = SVR(**KERNELS[kernel], tol=1e-6).fit(X, X[:, 0] + y)
    *_, bounds = proved(model, X, X[:, 0] + y, tmp_path / "proof")
    assert bounds.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    assert bounds.relative_gap <= 2e-6


# ---------------------------------------------------------------------- tampering


COST = 0.01


SUBJECTS = [*KERNELS, *(f"scaled {kernel}" for kernel in KERNELS)]


@pytest.fixture(scope="module", params=SUBJECTS)
def files(request, tmp_path_factory):
    """A proof and its data: dense rows, every row with a loss or a dual variable."""
    folder = tmp_path_factory.mktemp("proof")
    rng = np.random.default_rng(3)
    X, y = rng.integers(-99, 99, (13, 3)) / 64, np.arange(13) % 2
    dump_svmlight_file(X, y, str(folder / "data"), zero_based=False, comment="rows")
    model = LinearSVC(C=COST, loss="hinge", tol=1e-6)
    scaled, _, kernel = request.param.rpartition(" ")
    if kernel != "linear":
        model = SVC(C=COST, **KERNELS[kernel])
    if scaled:
        model = make_pipeline(StandardScaler(), model)
    write_proof(model.fit(X, y), X, y, folder / "proof", data=folder / "data")
    return (folder / "proof").read_bytes(), (folder / "data").read_bytes()


def mutated(text, rng):
    """A different text: a byte changed, removed, doubled or inserted, or a cut."""
    while True:
        i, j = rng.randrange(len(text)), rng.randrange(len(text))
        byte = bytes([rng.choice(b"0123456789 \n\t\r-+:;.#_eE\x00\xff")])
        other = [
            text[:i] + byte + text[i + 1 :],
            text[:i] + bytes([text[i] ^ 1 << rng.randrange(8)]) + text[i + 1 :],
            text[:i] + text[i + 1 :],
            text[:i] + text[i : i + 1] + text[i:],
            text[:i] + byte + text[i:],
            text[: min(i, j)] + text[max(i, j) :],
            text + byte,
        ][rng.randrange(7)]
        if other != text:
            return other


def sealed(text):
    """The text with the checksum that belongs to it."""
    body = text.rpartition(b"sha256 ")[0]
    return body + b"sha256 " + hashlib.sha256(body).hexdigest().encode() + b"\n"


def accepted(proof, data=None):
    try:
        check(Proof(proof), data)
    except FAILURES:
        return False
    return True


NUMBERS = [60, pytest.param(1000, marks=pytest.mark.long)]


@pytest.mark.parametrize("number", NUMBERS)
def test_no_mutation_is_accepted(files, number):
    proof, data = files
    assert accepted(proof)
    assert accepted(proof, data)
    rng = random.Random(number)
    for _ in range(number):
        assert not accepted(mutated(proof, rng))
        assert not accepted(proof, mutated(data, rng))


def is_true(content, data) -> bool:
    """Whether the claim is true of the data: by other code, in exact arithmetic."""
    X, y = load_svmlight_file(io.BytesIO(data), zero_based=False)
    X, signs, proof = X.toarray(), np.where(y > 0, 1, -1), Proof(content)
    words = proof.parts[0].claim.replace(b" ", b"/").split(b"/")
    p, primal_unit, d, dual_unit = map(int, words)
    primal, dual = Fraction(p, primal_unit), Fraction(d, dual_unit)
    if not proof.nonlinear:
        return (primal, dual) == values_of(content, X, signs, COST)
    compare(primal, dual, content, X, signs, COST, **KERNELS[proof.kernel])
    return True


@pytest.mark.parametrize("number", NUMBERS)
def test_mutations_with_a_new_checksum_are_refused_or_true(files, number):
    """Someone who changes a proof can compute the checksum again.

    A free bias is not unique where rows of both classes with the same costs have a
    loss. A proof with another such bias is a proof of the same P and D.
    """
    proof, data = files
    assert is_true(proof, data)
    rng = random.Random(number)
    tried = 0
    while tried < number:
        other = sealed(mutated(proof, rng))
        tried += other != proof  # a mutation of the old checksum changes nothing
        if other == proof or not accepted(other, data):
            continue
        assert is_true(other, data), other
        w = b"0 0 0 %d" % Proof(other).parts[0].w[-1]
        assert other == changed(proof, b"w", lambda _, w=w: w)


def changed(proof, key, change):
    """The proof with another value on the line of a keyword, and its checksum."""
    lines = proof.split(b"\n")
    (i,) = [i for i, line in enumerate(lines) if line.startswith(key + b" ")]
    lines[i] = key + b" " + change(lines[i][len(key) + 1 :])
    return sealed(b"\n".join(lines))


def test_forgeries_are_refused_for_their_reason(files):
    proof, data = files
    first = proof.split(b"rows\n")[1].split(b"\n")[0]
    below = b"\n0 -1;" + first.partition(b";")[2]
    forged = {
        "dualgap-proof": changed(proof, b"dualgap-proof", lambda _: b"2"),
        "unknown": changed(proof, b"loss", lambda _: b"logistic 0"),
        "not rising": changed(proof, b"labels", lambda _: b"[1, 1]"),
        "canonical": changed(proof, b"labels", lambda text: text.replace(b", ", b",")),
        "an exponent": changed(proof, b"exponents", lambda text: text[:-1] + b"9999"),
        "constant": changed(proof, b"bias", lambda _: b"penalised 0"),
        "not there, or twice": changed(proof, b"part", lambda _: b"1 1"),
        "not there": changed(proof, b"part", lambda _: b"2 -1"),
        "w has the wrong": changed(proof, b"w", lambda text: text + b" 1"),
        "a number is negative": changed(proof, b"costs", lambda text: b"-" + text),
        "a claim": changed(proof, b"claim", lambda text: text.replace(b" ", b" -")),
        "no parts": changed(proof, b"parts", lambda _: b"0"),
        "outside its box": sealed(proof.replace(b"\n" + first, below)),
        "the kernel is unknown": changed(proof, b"kernel", lambda _: b"rbf 1 0 1"),
        "exponents do not fit": changed(proof, b"kernel", lambda _: b"poly 1 0 9 0"),
        "more after": sealed(proof.replace(b"sha256 ", first + b"\nsha256 ")),
    }
    for reason, other in forged.items():
        with pytest.raises(FAILURES, match=reason.replace("dualgap-proof", "no proof")):
            check(Proof(other), data)


@pytest.mark.cases(None)
def test_what_the_format_does_not_allow_is_refused(files):
    """Labels and dual variables that are not there, and text that is not ASCII."""
    proof, data = files
    first = proof.split(b"rows\n")[1].split(b"\n")[0]
    head, _, rest = first.partition(b";")

    def with_head(other):
        return sealed(proof.replace(b"\n" + first, b"\n" + other + b";" + rest))

    assert with_head(head) == proof
    label, alpha = head.split(b" ")
    wrong = [
        *(with_head(b"%d %b" % (k, alpha)) for k in (-2, -1, 2, 3)),
        *(with_head(text) for text in (b"", label, head + b" 0", head + b" 1")),
        changed(proof, b"labels", lambda _: b'"01"'),
        changed(proof, b"labels", lambda _: b"[0, Infinity]"),
        changed(proof, b"labels", lambda _: '["0", "é"]'.encode()),
        changed(proof, b"kernel", lambda text: text + b"\xff"),
        changed(proof, b"loss", lambda text: text.replace(b"0", "\u0660".encode())),
        changed(proof, b"size", lambda _: b"0 3"),
        changed(proof, b"size", lambda _: b"13 0"),
        sealed(proof.replace(b"rows\n", b"rows\n\xc3\xa9\n")),
    ]
    for other in wrong:
        assert other != proof
        assert not accepted(other)
        assert not accepted(other, data)


@pytest.mark.cases(None)
@pytest.mark.parametrize("exponent", [0, 60, 1000, 1001, 1023, 1024, 3000])
def test_rows_are_compared_at_every_exponent(exponent):
    """Half of the values of DATA are other rows, whatever the unit of the file."""
    data = b"1 1:2\n0 1:-4\n"

    def content(shift, claim=b"0"):
        digest = hashlib.sha256(data).hexdigest().encode()
        unit = Fraction(2) ** (exponent - shift)
        rows = b"1 0;0;%d\n0 0;0;%d\n" % (int(2 * unit), int(-4 * unit))
        return sealed(
            b"dualgap-proof 1\ndata %b 1\nloss hinge 0\nsize 2 1\n"
            b"exponents %d 0 0 0 0\nbias none 0\nscaling none\nkernel none\n"
            b"labels [0, 1]\n"
            b"parts 1\npart 1 -1\nw 1\ncosts 1\nclaim %b\nrows\n%bsha256 "
            % (digest, exponent, claim, rows)
        )

    for shift, same in ((0, True), (1, False), (exponent - 1000, exponent == 1000)):
        [bounds] = Proof(content(shift)).bounds()
        other = content(shift, claim_of(*bounds))
        assert accepted(other)
        assert accepted(other, data) == same


SCALINGS = {
    "scaling": [b"none", b"none 0", b"5001", b"-1", b"", b"0 0", b"1e1"],
    "means": [b"", b"0", b"0 0", b"0 0 0 0", b"0 0 x"],
    "factors": [b"", b"1", b"1 1 0", b"1 1 -1", b"1 1 1 1"],
}


def test_other_means_and_scales_are_refused(files):
    """Every unit of every number counts, also without the data."""
    proof, data = files
    if not Proof(proof).scaled:
        assert not accepted(changed(proof, b"scaling", lambda _: b"0"))
        return
    others = [
        changed(proof, key.encode(), lambda _, text=text: text)
        for key, texts in SCALINGS.items()
        for text in texts
    ]
    for k, off in itertools.product(range(3), (-1, 1, 2**40)):

        def moved(text, k=k, off=off):
            numbers = list(map(int, text.split(b" ")))
            numbers[k] += off
            return b" ".join(map(b"%d".__mod__, numbers))

        others += [changed(proof, key, moved) for key in (b"means", b"factors")]
    for other in others:
        assert not accepted(other)
        assert not accepted(other, data)


def test_unbalanced_dual_variables_are_refused(tmp_path):
    X, y = examples()
    model = LinearSVC(penalize_intercept=False, random_state=0).fit(X, y)
    content, _, _ = proved(model, X, y, tmp_path / "proof")
    head, _, rows = content.partition(b"\nrows\n")
    lines = rows.split(b"\n")
    i = next(
        i for i, line in enumerate(lines) if not line.split(b" ")[1].startswith(b"0")
    )
    label, alpha = lines[i].split(b";")[0].split(b" ")
    lines[i] = b"%b %d;%b" % (label, int(alpha) - 1, lines[i].partition(b";")[2])
    with pytest.raises(FAILURES, match="do not balance"):
        check(Proof(sealed(head + b"\nrows\n" + b"\n".join(lines))))


# -------------------------------------------------------------------- the program


def test_the_checker_is_one_short_file_of_plain_python():
    text = CHECKER.read_text("utf-8")
    assert len(text.splitlines()) <= 337
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            names = [node.module]
        else:
            continue
        assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
    named = {
        node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)
    }
    assert not named & {"eval", "exec", "compile", "__import__"}


@pytest.mark.cases(1)
def test_the_lone_file_says_valid_or_not(files, tmp_path):
    lone = tmp_path / "lone.py"
    lone.write_bytes(CHECKER.read_bytes())
    for name, content in zip(("proof", "data"), files, strict=True):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "bad").write_bytes(files[0].replace(b"0", b"1", 1))

    def run(*arguments):
        command = [sys.executable, "-I", "-S", lone, *arguments]
        found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        return found.returncode, found.stdout, found.stderr

    status, output, _ = run("proof", "data")
    assert status == 0
    same = "DATA holds the same rows.\n"
    assert output.endswith(f"VALID: the claims hold exactly; {same}")
    first = re.match(r"The proof is valid: the model is within (\S+) % of", output)
    gaps = [Fraction(gap) for gap in re.findall(r"\(P - D\)/D <= (\S+)", output)]
    assert Fraction(first[1]) == 100 * max(gaps)
    assert run("proof")[1].endswith("no DATA was given to compare.\n")
    assert run("bad")[:2] == (1, "NOT VALID: the checksum does not match\n")
    assert run("proof", "bad")[0] == 1
    unnamed = re.sub(rb"\ndata .*", b"\ndata none", files[0])
    (tmp_path / "unnamed").write_bytes(sealed(unnamed))
    assert run("unnamed")[0] == 0
    for wrong, words in (
        ([], "usage: dualgap-check PROOF"), (["absent"], "No such file or directory"),
        (["proof", "data", "more"], "usage: "),
        (["unnamed", "data"], "PROOF names no DATA of svmlight text to compare; omit"),
    ):  # fmt: skip
        status, output, error = run(*wrong)
        assert (status, output) == (2, "")
        assert error.startswith(f"dualgap-check: {words}")
    status, output, error = run("--help")
    assert (status, error) == (0, "")
    assert "says whether the claims of PROOF hold" in output


def test_sizes_beyond_float64_are_printed(tmp_path, monkeypatch, capsys):
    """Here P is the sum of two costs of 1e400, with a loss of 1 each."""
    header = [
        b"dualgap-proof 1",
        b"data none",
        b"loss hinge 0",
        b"size 2 1",
        b"exponents 0 0 0 0 0",
        b"bias none 0",
        b"scaling none",
        b"kernel none",
        b"labels [0, 1]",
        b"parts 1",
        b"part 1 0",
        b"w 0",
        b"costs %d" % 10**400,
        b"claim %d/1 0/1" % (2 * 10**400),
        b"rows",
    ]
    lines = [*header, b"0 0;0;1", b"1 0;0;2", b"sha256 "]
    (tmp_path / "proof").write_bytes(sealed(b"\n".join(lines)))
    monkeypatch.setattr(sys, "argv", ["dualgap-check", str(tmp_path / "proof")])
    dualgap_check.main()
    output = capsys.readouterr().out
    assert "costs 1.00000e+400 to 1.00000e+400\n" in output
    assert "P = 2.00000000e+400, D = 0, (P - D)/D <= infinity\n" in output
    assert "VALID" in output


def test_the_program_in_this_process(files, tmp_path, monkeypatch, capsys):
    """Run `main` as the lone file does, so that coverage sees it."""
    (tmp_path / "proof").write_bytes(files[0])
    for arguments, status in ((["proof"], None), (["proof", "proof"], 1), ([], 2)):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["dualgap-check", *arguments])
        if status is None:
            dualgap_check.main()
        else:
            with pytest.raises(SystemExit) as left:
                dualgap_check.main()
            assert left.value.code == status
    assert "VALID" in capsys.readouterr().out

    X = np.arange(600.0)[:, None] % 7
    model = LinearSVC(loss="hinge").fit(X, X[:, 0] > 3)
    write_proof(model, X, X[:, 0] > 3, tmp_path / "proof")
    monkeypatch.setattr(sys, "argv", ["dualgap-check", "proof"])
    for terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda told=terminal: told)
        dualgap_check.main()
        assert capsys.readouterr().err == "row 500 of 600\r" * terminal

    def stopped(content):
        raise KeyboardInterrupt

    monkeypatch.setattr(dualgap_check, "Proof", stopped)
    with pytest.raises(SystemExit) as left:
        dualgap_check.main()
    assert left.value.code == 130
    assert capsys.readouterr().err == "dualgap-check: interrupted\n"

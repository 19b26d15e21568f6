"""The checker of proofs answers for any bytes, on any terminal, in bounded time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import dualgap_check
from dualgap import SVC, LinearSVC
from dualgap.models import write_proof
from dualgap_check import FAILURES, Proof, check

from ..conftest import examples
from ..fuzz import proofs
from ..fuzz.proofs import sealed

LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="limits of the address space, /dev"
)
#: Far more than any of these files takes: it ends what would not end.
TIMEOUT = 120


def run(*arguments, before=(), **environment):
    done = subprocess.run(
        [*before, sys.executable, "-I", "-S", dualgap_check.__file__, *arguments]
        if "PYTHONIOENCODING" not in environment
        else [*before, sys.executable, dualgap_check.__file__, *arguments],
        capture_output=True, timeout=TIMEOUT, check=False,
        env={**os.environ, **environment},
    )  # fmt: skip
    assert b"Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def header(kernel="none", labels="[0, 1]", parts=1, size="1 1", exponents="0 0 0 0 0"):
    return textwrap.dedent(
        f"""\
        dualgap-proof 1
        data none
        loss hinge 0
        size {size}
        exponents {exponents}
        bias none 0
        scaling none
        kernel {kernel}
        labels {labels}
        parts {parts}
        """
    )


PART = "part 1 0\nw 0\ncosts 1\nclaim 0/1 0/1\n"


@pytest.mark.cases(None)
@pytest.mark.parametrize("degree", [3 * 10**8, 99_999_999_999, 10**4000])
def test_a_power_that_is_large_is_refused(degree, tmp_path):
    text = header(f"poly 3 0 {degree} 1") + PART + "rows\n1 1;0;5\n"
    path = tmp_path / "proof"
    path.write_bytes(sealed(text.encode()))
    status, output, _ = run(path)
    assert (status, output[:10]) == (1, b"NOT VALID:")


def test_many_labels_in_many_parts_take_their_length():
    labels = json.dumps(list(range(20_000)))
    text = header(labels=labels, parts=20_000) + 20_000 * PART
    text += "rows\n0" + 20_000 * " 0" + ";0;5\n"
    content = sealed(text.encode())
    with proofs.little_memory(), pytest.raises(ValueError, match="computed value"):
        check(Proof(content))


def test_bytes_get_an_answer():
    count = examples(400)
    said, found = proofs.attack(range(count), proofs.examples())
    assert not found
    assert said["valid"] >= max(1, count // 100)
    assert said["ValueError"] > count // 2


@pytest.fixture
def valid(tmp_path):
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.array(["é", "ü", "\u4e2d"])[np.arange(20) % 3]
    path = tmp_path / "proof"
    write_proof(LinearSVC().fit(X, y), X, y, path, tol=1e300)
    return path


@pytest.mark.cases(None)
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437", "utf-8", "utf-16"])
def test_any_labels_on_any_terminal(valid, encoding):
    status, output, _ = run(valid, PYTHONIOENCODING=encoding)
    assert status == 0
    assert "VALID: the claims hold exactly" in output.decode(encoding)


@LINUX
def test_too_little_memory_is_no_verdict(valid, tmp_path):
    large = tmp_path / "large"
    # Its body is split into lines, which take 40 times the file.
    large.write_bytes(sealed(valid.read_bytes()[:-72] + b"\n" * 20_000_000))
    limit = ["prlimit", f"--as={200 * 2**20}"]
    status, output, error = run(large, before=limit)
    assert (status, output) == (2, b"")
    assert error.startswith(b"dualgap-check: ")


@pytest.mark.parametrize("name", ["absent", ".", "/dev/zero"])
def test_what_cannot_be_read_is_not_checked(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, output, error = run(name)
    assert (status, output) == (2, b"")
    assert error.startswith(b"dualgap-check: ")


# ------------------------------------------------------------------- writing a proof

TINY = [
    ([[1e-90], [-2e-90], [1.0]], [0, 1, 2], {"kernel": "poly", "degree": 5}),
    ([[1e-90], [-2e-90], [1.0]], [0, 1, 2], {"kernel": "linear"}),
    ([[1e-150], [-2e-150], [1e15]], [0, 1, 1], {"kernel": "linear"}),
    ([[1e-120], [-2e-140], [1.0]], [0, 1, 2], {"kernel": "rbf"}),
    ([[1e-300], [-2e-300], [1e-290]], [0, 1, 0], None),
    ([[1e-200], [-2e-3], [1e140]], [0, 1, 2], None),
]


@pytest.mark.cases(None)
@pytest.mark.parametrize(("X", "y", "options"), TINY)
@pytest.mark.filterwarnings("ignore")
def test_tiny_and_large_numbers_have_a_proof(X, y, options, tmp_path):
    model = LinearSVC() if options is None else SVC(gamma=1.0, **options)
    path = tmp_path / "proof"
    bounds = write_proof(model.fit(X, y), X, y, path, tol=1e300)
    values = check(Proof(path.read_bytes()))
    for part, (primal, dual) in zip(bounds.parts, values, strict=True):
        assert part.dual <= dual <= primal <= part.primal


@pytest.mark.filterwarnings("ignore:.*rounding decides")
def test_numbers_that_do_not_fit_are_refused_with_the_reason(tmp_path):
    X, y = [[1e-150], [-2e-150], [1.0]], [0, 1, 2]
    model = SVC(kernel="poly", degree=10, gamma=1.0).fit(X, y)
    with pytest.raises(ValueError, match=r"do not fit into a proof: .*; scale the"):
        write_proof(model, X, y, tmp_path / "proof", tol=1e300)
    assert not (tmp_path / "proof").exists()


def test_failures_are_not_caught_too_widely():
    assert not issubclass(MemoryError, FAILURES)
    assert not issubclass(OSError, FAILURES)

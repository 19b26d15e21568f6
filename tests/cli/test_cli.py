"""The command line: exit status, streams, files, signals."""

from __future__ import annotations

import bz2
import errno
import gzip
import json
import lzma
import os
import pkgutil
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

import dualgap
from dualgap import SVC, LinearSVC, load_model, save_model
from dualgap.cli import command_of, fields
from dualgap.cli.data import FileExamples
from dualgap.cli.predict import on_training_rows
from dualgap.estimators.parameters import KERNELS
from dualgap.kernel import APPROXIMATIONS, KERNEL_SOLVERS

from .running import call, invoke, refused, write

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and files")
# Never certified, and never out of epochs.
ENDLESS = ("--loss", "hinge", "--solver", "norma", "--tol", "1e-12")
ENDLESS += ("--max-iter", "1000000000")


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "dualgap", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def primal(
    tensors: dict[str, np.ndarray], X: Any, y: np.ndarray, C: float, k: int = 0
) -> float:
    """P of the hinge loss, from the tensors of a model file."""
    w, b = tensors["coef"][k], tensors["intercept"][k]
    losses = np.maximum(0.0, 1.0 - y * (X @ w + b))
    return 0.5 * (w @ w + b * b) + C * losses.sum()


# ------------------------------------------------------------------------------- train


def test_text_says_what_json_says() -> None:
    write("data", [-1, 1])
    converged, quality, written, *more = call("train", "data", "model").stdout.split(
        "\n"
    )
    c = load_model("model").certificate_
    told = re.fullmatch(
        r"Converged: within (\S+) % of the optimum \(target 0.1 %\), \S+ s\.", converged
    )
    assert told, converged
    assert c.relative_gap <= float(told[1]) / 100 <= max(1.1 * c.relative_gap, 1e-6)
    report = json.loads(call("train", "data", "model", "--json").stdout)["training"]
    accuracy = report["accuracy"]
    assert accuracy == load_model("model").score(*load_svmlight_file("data"))
    assert quality == (
        f"On the training rows: accuracy {100 * accuracy:.2f} %, balanced accuracy "
        f"{100 * report['balanced_accuracy']:.2f} %, "
        f"support vectors {report['support_vectors']}."
    )
    assert written == "Model written to model. Next: dualgap predict DATA model"
    assert more == [""]


def test_several_classes() -> None:
    write("data", [3, 1, 7])
    lines = call("train", "data", "model").stdout.splitlines()
    assert lines[0].startswith("Converged: all 3 classes within ")
    assert len(lines) == 3
    head, *lines = call("train", "data", "model", "--verbose").stdout.splitlines()[1:5]
    assert head.split()[:4] == ["problem", "status", "within", "primal"]
    assert [line.split()[:3] for line in lines] == [
        ["class", str(label), "certified"] for label in (1, 3, 7)
    ]
    pairs = call("train", "data", "model", "--kernel", "rbf", "--verbose").stdout
    assert pairs.startswith("Converged: all 3 pairs of classes within")
    for told in (pairs, call("certify", "data", "model", "--verbose").stdout):
        assert "1 against 7" in told


def test_the_worst_of_several_classes_is_named() -> None:
    write("data", [3, 1, 7])
    arguments = ("--loss", "hinge", "--solver", "norma", "--tol", "1e-9")
    arguments += ("--max-iter", "3")
    lines = call("train", "data", "model", *arguments, status=3).stdout.splitlines()
    certificates = load_model("model").certificate_.parts
    worst = max(range(3), key=lambda k: certificates[k].relative_gap)
    assert lines[0] == "Not converged: 3 of 3 classes (target 1.0e-07 %)."
    assert lines[1].startswith(f"Worst: class {[1, 3, 7][worst]}, ")
    assert lines[2].startswith("Stopped at --max-iter: ")


def test_a_stop_by_a_sample_names_the_option() -> None:
    write("data", [-1, 1])
    arguments = ("--kernel", "rbf", "--loss", "squared_hinge", "--tol", "1e-12")
    arguments += ("--solver", "fw", "--solver-option", "stop=sampled")
    told = call("train", "data", "model", *arguments, status=3).stdout
    assert load_model("model").certificate_.status.label == "sampled"
    assert "use --solver-option stop=certified to train until --tol" in told


def test_a_class_for_almost_every_number_is_told() -> None:
    write("data", list(range(30)))
    told = call("train", "data", "model").stderr
    assert "30 classes in 60 examples. If the labels are numbers to predict" in told
    assert "--task regression" in told


def test_a_kernel_model_is_judged_on_a_sample() -> None:
    X, y = write("data", [-1, 1])
    model = SVC().fit(X, y)
    figures = on_training_rows(model, FileExamples("data", X, y, False), 1, most=20)
    rows = np.sort(np.random.default_rng(0).choice(len(y), 20, replace=False))
    assert figures["accuracy"] == accuracy_score(y[rows], model.predict(X[rows]))
    assert figures["rows_judged"] == 20


def test_time_limit() -> None:
    write("data", [-1, 1])
    begun = time.perf_counter()
    result = call("train", "data", "model", *ENDLESS, "--time-limit", "1.5", status=3)
    assert time.perf_counter() - begun >= 1.5
    assert "Stopped at --time-limit: raise it" in result.stdout
    # Not a terminal: lines at growing intervals, the first after a second.
    lines = [line for line in result.stderr.splitlines() if " s: epoch" in line]
    seconds = [float(line.split()[0]) for line in lines]
    assert seconds
    assert all(second >= 2**k for k, second in enumerate(seconds))
    words = r"\S+ s: epoch \d+, .* optimum( \(estimate\))?; target 1.0e-10 %"
    assert re.match(words, lines[0])


def test_classes_that_were_never_reached_have_no_bound() -> None:
    write("data", [1, 2, 3])
    arguments = ("train", "data", "model", *ENDLESS, "--time-limit", "0.3")
    report = json.loads(call(*arguments, "--json", status=3).stdout)
    last = report["certificates"][-1]
    assert (last["epochs"], last["status"]) == (0, "time_limit")
    # JSON knows no infinity
    assert (last["dual"], last["relative_gap"]) == (0.0, None)
    assert 60.0 <= last["primal"] <= 60.0 * (1 + 1e-14)
    assert load_model("model").certificate_.parts[-1].primal == last["primal"]
    text = call(*arguments, status=3).stdout
    assert "no bound on the objective is known yet" in text


def test_quiet_and_the_streams() -> None:
    write("data", [-1, 1])
    result = call("train", "data", "model")
    assert result.stderr.startswith("data: 60 examples, 6 features, ")
    result = call("train", "data", "model", "--quiet")
    assert result.stderr == ""
    assert result.stdout.startswith("Converged: ")
    json.loads(call("train", "data", "model", "--json", "-q").stdout)


@pytest.mark.parametrize("labels", [[-1, 1], [3, 1, 7]])
def test_an_indefinite_kernel_proves_nothing_and_says_only_that(labels) -> None:
    write("data", labels, n=100)
    train = ("train", "data", "model", "--kernel", "sigmoid", "--gamma", "5")
    first, *_ = call(*train, status=3).stdout.splitlines()
    assert first.startswith("Nothing is proved: the kernel matrix is indefinite")
    certificate = load_model("model").certificate_
    assert not certificate.certified
    assert certificate.relative_gap == np.inf


def test_compressed_data() -> None:
    zstandard = pytest.importorskip("zstandard")
    write("data", [-1, 1])
    content = Path("data").read_bytes()
    call("train", "data", "model")
    expected = load_model("model").coef_
    for suffix, compress in {
        "gz": gzip.compress,
        "bz2": bz2.compress,
        "xz": lzma.compress,
        "zst": zstandard.compress,
    }.items():
        Path(f"data.{suffix}").write_bytes(compress(content))
        call("train", f"data.{suffix}", "model")
        np.testing.assert_array_equal(load_model("model").coef_, expected)


def test_n_features() -> None:
    write("data", [-1, 1])
    call("train", "data", "model", "--n-features", "9")
    assert load_model("model").coef_.shape == (1, 9)


# ----------------------------------------------------------------- what train refuses


@POSIX
def test_a_model_is_no_device_and_its_folder_can_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write("data", [-1, 1])
    assert "not a regular file" in refused("train", "data", os.devnull)
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    os.mkdir("sub")
    monkeypatch.setattr(os, "access", lambda path, mode: mode == os.R_OK)
    assert "not writable" in refused("train", "data", "sub/model")
    with pytest.raises(FileNotFoundError):
        invoke("train", "missing", "model", "--debug")


# ------------------------------------------------------------------------------ indices


@pytest.mark.parametrize("base", [0, 1])
def test_the_base_of_indices_is_seen_and_kept(base: int) -> None:
    X, y = write("data", [-1, 1], base=base)
    report = json.loads(call("train", "data", "model", "--json").stdout)
    assert report["data"]["zero_based"] is (base == 0)
    expected = LinearSVC(random_state=0).fit(X, y)
    np.testing.assert_array_equal(load_model("model").coef_, expected.coef_)
    # Without the first feature, "auto" alone would shift all others in base 0.
    rows = sparse.csr_matrix(([2.0, 1.0], [2, 4], [0, 1, 2]), shape=(2, 6))
    Path("new").write_text(f"0 {2 + base}:2\n0 {4 + base}:1\n")
    scores = call("predict", "new", "model", "--scores").stdout.split()
    np.testing.assert_array_equal(
        np.array(scores, dtype=float), expected.decision_function(rows)
    )


def test_the_base_of_indices_may_be_given() -> None:
    write("data", [-1, 1], base=1)
    call("train", "data", "model", "--zero-based")
    assert load_model("model").coef_.shape == (1, 7)
    assert load_model("model").coef_[0, 0] == 0.0
    call("train", "data", "model", "--one-based")
    assert load_model("model").coef_.shape == (1, 6)
    Path("zero").write_text("1 0:1\n-1 1:1\n")
    assert call("predict", "zero", "model", "--zero-based").exit_code == 0


# ----------------------------------------------------------------------------- predict


def quality(stderr: str) -> tuple[float, float]:
    found = re.match(r"accuracy (\S+) %, balanced accuracy (\S+) %", stderr)
    assert found, stderr
    return float(found[1]), float(found[2])


@pytest.mark.parametrize("labels", [[-1, 1], [0, 1], [2, 5, 9]])
def test_predictions_and_accuracy(labels: list[int]) -> None:
    write("data", labels)
    X, y = write("test", labels, n=31, seed=1)
    call("train", "data", "model")
    model = load_model("model")
    result = call("predict", "test", "model")
    found = np.array(result.stdout.split(), dtype=np.int64)
    np.testing.assert_array_equal(found, model.predict(X))
    assert quality(result.stderr) == pytest.approx(
        (
            100 * accuracy_score(y, found),
            100 * balanced_accuracy_score(y, found),
        ),
        abs=0.005,
    )
    report = json.loads(call("predict", "test", "model", "--json").stdout)
    assert report["labels"] == found.tolist()
    assert report["n"] == 31
    assert report["accuracy"] == accuracy_score(y, found)
    assert report["balanced_accuracy"] == pytest.approx(
        balanced_accuracy_score(y, found), rel=1e-15
    )


@pytest.mark.parametrize("kernel", [(), ("--kernel", "rbf")])
@pytest.mark.parametrize("labels", [[-1, 1], [2, 5, 9]])
def test_score(labels: list[int], kernel: tuple[str, ...]) -> None:
    write("data", labels)
    X, y = write("test", labels, n=31, seed=1)
    call("train", "data", "model", *kernel)
    model = load_model("model")
    report = json.loads(call("score", "test", "model", "--json").stdout)
    assert report["n"] == 31
    assert report["accuracy"] == model.score(X, y)
    values, classes = model.decision_function(X), model.classes_
    if len(classes) == 2:
        area = roc_auc_score(y, values)
    else:
        area = np.mean(
            [roc_auc_score(y == c, values[:, k]) for k, c in enumerate(classes)]
        )
    assert report["auc"] == pytest.approx(area)
    text = call("score", "test", "model").stdout
    assert text.startswith(f"accuracy {100 * report['accuracy']:.2f} %, balanced ")
    assert f"AUC {area:.3f}" in text


def test_a_score_needs_labels_that_say_something() -> None:
    write("data", [-1, 1])
    call("train", "data", "model")
    Path("none").write_text("0 2:1\n0 2:2\n")
    assert "none cannot be scored: every label is 0" in refused(
        "score", "none", "model"
    )
    Path("one").write_text("1 2:1\n1 2:2\n")
    assert json.loads(call("score", "one", "model", "--json").stdout)["auc"] is None
    assert "AUC" not in call("score", "one", "model").stdout


def test_output_file() -> None:
    write("data", [-1, 1])
    call("train", "data", "model")
    expected = call("predict", "data", "model").stdout
    result = call("predict", "data", "model", "-o", "out")
    assert result.stdout == ""
    assert Path("out").read_text() == expected
    report = json.loads(call("predict", "data", "model", "-o", "out", "--json").stdout)
    assert report["output"] == "out"
    assert "labels" not in report
    figures = call("predict", "data", "model", "-o", os.devnull)
    assert (figures.stdout, figures.stderr) == ("", result.stderr)


def test_the_output_is_the_last_argument_or_an_option() -> None:
    write("data", [-1, 1])
    call("train", "data", "-o", "model")
    call("train", "data", "--C", "1", "other")  # between the arguments
    np.testing.assert_array_equal(load_model("model").coef_, load_model("other").coef_)
    call("predict", "data", "model", "out")
    assert Path("out").read_text() == call("predict", "data", "model").stdout


def test_long_options_may_be_cut_short() -> None:
    write("data", [-1, 1])
    for options in (("--max", "5"), ("--max-iter=5", "--no-inter")):
        assert call("train", "data", "model", "--tol=0.9", *options).stdout


def test_a_failed_output_leaves_the_old_one(monkeypatch: pytest.MonkeyPatch) -> None:
    write("data", [-1, 1])
    call("train", "data", "model")
    Path("out").write_text("old")
    monkeypatch.setattr(os, "fsync", no_space)
    told = refused("predict", "data", "model", "-o", "out")
    assert told == "dualgap: out: No space left on device\n"
    told = refused("convert", "data", "store")
    assert told.endswith("store: No space left on device\n")
    for command in ("path", "tune"):
        words = ("--quiet", "--picture") if command == "tune" else ("--quiet",)
        result = call(command, "data", "--n-Cs", "2", *words, "picture.svg", status=1)
        assert result.stderr == "dualgap: picture.svg: No space left on device\n"
    assert sorted(os.listdir()) == ["data", "model", "out"]
    assert Path("out").read_text() == "old"


def no_space(descriptor: int) -> None:
    raise OSError(28, "No space left on device")


def test_narrower_data_is_padded() -> None:
    write("data", [-1, 1])
    call("train", "data", "model")
    Path("narrow").write_text("1 2:1\n-1 2:-1\n")
    rows = np.array([[0, 1, 0, 0, 0, 0], [0, -1, 0, 0, 0, 0]])
    scores = call("predict", "narrow", "model", "--scores").stdout.split()
    np.testing.assert_array_equal(
        np.array(scores, dtype=float), load_model("model").decision_function(rows)
    )


def test_labels_that_say_nothing() -> None:
    write("data", [-1, 1])
    call("train", "data", "model")
    for labels, words in {
        (0, 0): "every label is 0, which counts as missing",
        (5, 6): "the model has none of the labels (5, 6); its classes are -1, 1",
    }.items():
        Path("new").write_text("".join(f"{label} 2:1\n" for label in labels))
        result = call("predict", "new", "model")
        assert len(result.stdout.splitlines()) == 2
        assert result.stderr.startswith(f"Not scored: {words}")
        report = json.loads(call("predict", "new", "model", "--json").stdout)
        assert (report["accuracy"], report["balanced_accuracy"]) == (None, None)
        assert report["remark"].startswith(words)


def test_some_unknown_labels_count_as_errors() -> None:
    write("data", [-1, 1])
    call("train", "data", "model")
    sign = call("predict", "data", "model").stdout.split()[0]
    first = Path("data").read_text().splitlines()[0].split(" ", 1)[1]
    Path("new").write_text(f"{sign} {first}\n7 {first}\n7 {first}\n{sign} {first}\n")
    result = call("predict", "new", "model")
    assert quality(result.stderr) == (50.0, 50.0)
    assert "2 of 4 labels are unknown to the model (7)" in result.stderr


def test_models_of_strings_and_of_tables() -> None:
    pandas = pytest.importorskip("pandas")
    X, y = write("data", [-1, 1])
    X = pandas.DataFrame(X.toarray(), columns=list("abcdef"))
    model = LinearSVC(random_state=0).fit(X, np.where(y > 0, "yes", "no"))
    save_model(model, "model")
    result = call("predict", "data", "model")
    assert result.stdout.split() == model.predict(X).tolist()
    assert "has none of the labels (-1, 1); its classes are no, yes" in result.stderr


# ----------------------------------------------------------------------------- inspect


def test_inspect() -> None:
    X, y = write("data", [-1, 1, 4], n=50)
    facts = json.loads(call("inspect", "data", "--json").stdout)
    norms = sparse.linalg.norm(X, axis=1)
    assert (facts["n"], facts["d"], facts["nnz"]) == (*X.shape, X.nnz)
    assert facts["density"] == X.nnz / (X.shape[0] * X.shape[1])
    assert facts["classes"] == [
        {"label": label, "count": int((y == label).sum())} for label in (-1, 1, 4)
    ]
    assert facts["row_norm"] == pytest.approx(
        {"min": norms.min(), "median": np.median(norms), "max": norms.max()}
    )
    assert facts["empty_rows"] == 0
    assert facts["zero_based"] is False
    assert facts["memory_bytes"] == (8 + 4) * X.nnz + 4 * 51 + 8 * 50
    text = call("inspect", "data").stdout
    assert "classes    3 (-1: 17, 1: 17, 4: 16)" in text
    assert "features   6, from 1" in text


def test_inspect_odd_files() -> None:
    Path("one").write_text("3 0:3 2:4\n3\n")
    facts = json.loads(call("inspect", "one", "--json").stdout)
    assert (facts["n"], facts["d"], facts["nnz"]) == (2, 3, 2)
    assert facts["row_norm"] == {"min": 0.0, "median": 2.5, "max": 5.0}
    assert facts["empty_rows"] == 1
    Path("bare").write_text("1\n2\n")
    assert json.loads(call("inspect", "bare", "--json").stdout)["density"] == 0.0
    Path("many").write_text("".join(f"{k} 1:1\n" for k in range(100)))
    assert "100 (0: 1, 1: 1" in (text := call("inspect", "many").stdout)
    assert ", ...)" in text


# -------------------------------------------------------------------------------- help


def test_as_many_folds_as_examples_of_a_class() -> None:
    write("data", [-1, 1, 4], n=50)
    call("tune", "data", "--cv", "16", "--C", "1", "--quiet")
    assert "Did you mean help?" in call("hepl", status=2).stderr


def test_help_and_version() -> None:
    assert call().stdout == call("--help").stdout == call("help").stdout
    assert call("help", "train").stdout == call("train", "-h").stdout
    assert call("--version").stdout == f"dualgap {dualgap.__version__}\n"
    for arguments in (("--help",), ("-h",)):
        for command in ("train", "predict", "inspect"):
            assert command in call(*arguments).stdout
            assert "Examples" in call(command, *arguments).stdout


def test_help_has_groups_and_plain_placeholders() -> None:
    text = call("train", "--help").stdout
    groups = [
        "Data",
        "Model",
        "Bias",
        "Kernel",
        "Solver and accuracy",
        "Output",
    ]
    places = [text.index(f"\n{group}:\n") for group in groups]
    assert places == sorted(places)
    assert "dualgap train [OPTIONS] DATA MODEL" in text
    # An option alone in its group stands with the options of every command.
    for command in ("predict", "score", "inspect"):
        text = call(command, "--help").stdout
        assert "Solver and accuracy" not in text
        assert "--n-jobs N" in text.partition("\nOptions:\n")[2]
    usage = call("convert", "--help").stdout
    assert "dualgap convert [OPTIONS] IN... STORE\n" in usage
    assert max(map(len, text.splitlines())) <= 80


def test_help_imports_no_numerical_package() -> None:
    code = (
        "import sys; from dualgap.cli import run\n"
        "assert run(['train', '--help']) == 0\n"
        "print(*{'numpy', 'scipy', 'sklearn', 'pandas'}\n"
        "      & set(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == ""


def test_the_stored_fields_are_the_estimators() -> None:
    remedy = "write it again: python -m dualgap.cli.fields"
    assert fields.stored() == json.loads(fields.as_text(fields.described())), remedy


def test_every_parameter_of_an_estimator_is_an_option_or_left_out() -> None:
    known = {o.name for o in command_of("train")[0].options}
    for name in fields.ESTIMATORS[:6]:
        every = set(getattr(dualgap, name)().get_params())
        assert every - known <= {
            *("verbose", "warm_start", "decision_function_shape", "break_ties"),
        }


def test_every_solver_and_loss_is_named_in_the_help() -> None:
    text = call("train", "--help").stdout
    names = {*KERNELS, *APPROXIMATIONS} - {"precomputed"}
    for name in (
        *dualgap.solvers.SOLVERS,
        *dualgap.losses.LOSSES,
        *KERNEL_SOLVERS,
        *names,
    ):
        assert re.search(rf"\b{name}\b", text), name


def test_a_missing_package_is_one_line_with_the_remedy() -> None:
    program = """
import importlib.util
importlib.util.find_spec = lambda name: None
from dualgap.cli import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", program, "--help"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr == (
        "dualgap: the command line needs the package safetensors; install it with: "
        "pip install 'dualgap[cli]'\n"
    )


# --------------------------------------------------------------- as its own process


@pytest.mark.long
def test_as_module_and_as_script() -> None:
    write("data", [-1, 1])
    module = [sys.executable, "-m"]
    script = Path(sys.executable).with_name("dualgap")
    commands = [[*module, "dualgap"], [*module, "dualgap.cli"]]
    for command in [*commands, *([[str(script)]] if script.exists() else [])]:
        done = subprocess.run(
            [*command, "train", "data", "model", "--json"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["certified"] is True


@pytest.mark.long
@POSIX
def test_data_from_a_pipe() -> None:
    write("data", [-1, 1])
    call("train", "data", "model")
    expected = load_model("model").coef_
    with open("data", "rb") as file:
        process = start("train", "/dev/stdin", "piped", stdin=file)
        assert process.wait() == 0, process.communicate()
        process.communicate()
    np.testing.assert_array_equal(load_model("piped").coef_, expected)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_under_the_output_is_told() -> None:
    write("data", [-1, 1])
    call("train", "data", "model")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dualgap", "predict", "data", "model", "--scores"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "dualgap: the output: No space left on device\n" in done.stderr


@pytest.mark.long
@POSIX
def test_a_reader_that_had_enough() -> None:
    write("data", [-1, 1], n=100_000)  # more than a pipe holds
    call("train", "data", "model", "--tol", "0.1")
    process = start("predict", "data", "model")
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141  # as shells report a death by SIGPIPE


def read_until(stream: Any, words: str) -> str:
    for line in stream:
        if words in line:
            return str(line)
    raise AssertionError(f"ended without {words!r}")


@POSIX
def test_ctrl_c_while_training_keeps_the_best_model() -> None:
    X, y = write("data", [-1, 1])
    process = start("train", "data", "model", "--json", *ENDLESS)
    read_until(process.stderr, "epoch")  # in the middle of training
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=300)
    assert process.returncode == 130, errors
    (certificate,) = json.loads(output)["certificates"]
    assert certificate["status"] == "interrupted"
    assert certificate["epochs"] > 0
    tensors = safetensors.numpy.load_file("model")
    found = primal(tensors, X, y, 1.0)
    assert found == pytest.approx(certificate["primal"], rel=1e-12)
    assert load_model("model").certificate_.primal == certificate["primal"]


@POSIX
def test_ctrl_c_elsewhere_is_status_130_and_writes_nothing() -> None:
    os.mkfifo("data")
    Path("model").write_bytes(b"")
    process = start("train", "data", "model")
    writer = opened_with_a_reader("data", process)  # which never writes
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=300)
    os.close(writer)
    assert process.returncode == 130, errors
    assert output == ""
    assert sorted(os.listdir()) == ["data", "model"]
    assert Path("model").read_bytes() == b""


@POSIX
@pytest.mark.parametrize(
    ("line", "place", "after"),
    [
        ("path data", "dualgap.training.batch.solve_batch", 1),
        ("tune data model --cv 2", "dualgap.estimators.folds.FoldFit.score", 2),
    ],
)
def test_ctrl_c_in_a_search_keeps_what_was_trained(
    line: str, place: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("data", [-1, 1])
    function, calls = pkgutil.resolve_name(place), []

    def interrupting(*arguments: Any, **named: Any) -> Any:
        calls.append(function(*arguments, **named))
        if len(calls) == after:
            os.kill(os.getpid(), signal.SIGINT)
        return calls[-1]

    monkeypatch.setattr(place, interrupting)
    words = (*line.split(), "--C", "1,2", "--json")
    result = call(*words, status=130)
    first, second = json.loads(result.stdout)["models"]
    assert "The command was interrupted: " in result.stderr
    assert "that was tried" not in result.stderr  # no advice from half of a search
    if "model" in line:
        assert "interrupted: 1 of 2 rows are missing." in result.stderr
    assert first["relative_gap"] <= 1e-3
    assert second["relative_gap"] is None or second["relative_gap"] > 1e-3
    assert ("model" in line) == os.path.exists("model")


def opened_with_a_reader(pipe: str, process: subprocess.Popen[str]) -> int:
    """Open a named pipe for writing as soon as the process has opened it to read."""
    while process.poll() is None:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
        time.sleep(0.01)
    raise AssertionError(process.communicate())


SABOTAGED = """
import os, signal, sys
from dualgap.cli import main
def fsync(descriptor):
    {act}
os.fsync = fsync
main()
"""


@pytest.mark.long
@POSIX
@pytest.mark.parametrize(
    ("act", "status", "litter"),
    [
        ("raise OSError(28, 'No space left on device')", 1, 0),
        ("os.kill(os.getpid(), signal.SIGINT)", 130, 0),
        ("os.kill(os.getpid(), signal.SIGKILL)", -9, 1),
    ],
    ids=["full disk", "Ctrl-C", "SIGKILL"],
)
def test_the_old_model_survives_a_broken_write(
    act: str, status: int, litter: int
) -> None:
    write("data", [-1, 1])
    call("train", "data", "model", "--C", "7")
    old = Path("model").read_bytes()
    program = SABOTAGED.format(act=act)
    done = subprocess.run(
        [sys.executable, "-c", program, "train", "data", "model"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    assert Path("model").read_bytes() == old
    others = set(os.listdir()) - {"data", "model"}
    assert len(others) == litter
    call("predict", "data", "model")


@pytest.mark.long
@POSIX
def test_a_terminal_sees_one_live_line() -> None:
    import pty

    write("data", [-1, 1])
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm-256color"}
    arguments = ("train", "data", "model", *ENDLESS, "--time-limit", "100")
    process = subprocess.Popen(
        [sys.executable, "-m", "dualgap", *arguments],
        stdout=subprocess.PIPE,
        stderr=slave,
        env=environment,
    )
    os.close(slave)
    seen, live = b"", []
    for chunk in chunks(master):
        seen += chunk
        live = re.findall(rb"epoch (\d+), ", seen)
        if len(live) > 5 and process.poll() is None:
            process.send_signal(signal.SIGINT)
            break
    seen += b"".join(chunks(master))
    os.close(master)
    assert process.stdout is not None
    output = process.stdout.read()
    process.stdout.close()
    assert process.wait() == 130
    assert output.startswith(b"Not converged: ")
    assert len(live) > 5
    assert sorted(map(int, live)) == list(map(int, live))
    # Drawn over itself: no more than the summary and the line scroll.
    assert seen.count(b"\n") <= 3


def chunks(master: int) -> Iterator[bytes]:
    try:
        while chunk := os.read(master, 4096):
            yield chunk
    except OSError:  # Linux's way to say that the other end is closed
        pass


class TestStores:
    """convert, and what takes a store in the place of a file."""

    def store(self, *options: str) -> dict[str, Any]:
        found = invoke("convert", "data", "rows.store", "--json", *options)
        assert found.exit_code == 0, found.stderr
        report: dict[str, Any] = json.loads(found.stdout)
        return report

    def test_a_store_trains_predicts_and_explains_itself_as_its_file(self) -> None:
        write("data", [-1, 1], n=300)
        report = self.store()
        assert (report["n"], report["d"], report["zero_based"]) == (300, 6, False)
        for data in ("data", "rows.store"):
            trained = invoke("train", data, f"{data}.model", "--tol", "1e-6", "--json")
            assert trained.exit_code == 0
            out = invoke("predict", "data", f"{data}.model", "-o", f"{data}.out")
            assert out.exit_code == 0
        assert Path("data.out").read_text() == Path("rows.store.out").read_text()
        whole, streamed = (load_model(f"{d}.model") for d in ("data", "rows.store"))
        one, two = whole.certificate_, streamed.certificate_
        assert one.dual <= two.primal
        assert two.dual <= one.primal
        of_store = invoke("predict", "rows.store", "rows.store.model", "--json")
        of_file = invoke("predict", "data", "rows.store.model", "--json")
        quality = [json.loads(r.stdout)["accuracy"] for r in (of_store, of_file)]
        assert quality[0] == quality[1]
        facts = [
            json.loads(invoke("inspect", data, "--json").stdout)
            for data in ("data", "rows.store")
        ]
        for key in ("n", "d", "nnz", "classes", "empty_rows", "zero_based"):
            assert facts[0][key] == facts[1][key]
        assert facts[0]["row_norm"] == pytest.approx(facts[1]["row_norm"], rel=1e-12)
        assert invoke("inspect", "rows.store", "--verify").exit_code == 0

    def test_damage_is_told(self) -> None:
        write("data", [-1, 1])
        self.store("--single")
        with open("rows.store/values.npy", "rb+") as file:
            file.seek(-1, os.SEEK_END)
            file.write(b"\1")
        found = invoke("inspect", "rows.store", "--verify")
        assert found.exit_code == 1
        assert "do not match their checksum" in found.stderr

    def test_a_checkpoint_is_written_and_taken_up(self) -> None:
        write("data", [-1, 1])
        options = ("--solver", "dcd", "--tol", "1e-9", "--checkpoint", "c")
        often = ("--checkpoint-every", "1e-9")
        first = invoke("train", "data", "a.model", *options, *often, "--max-iter", "3")
        assert first.exit_code == dualgap.cli.NOT_CERTIFIED
        assert Path("c").exists()
        assert invoke("train", "data", "b.model", *options).exit_code == 0
        plain = invoke("train", "data", "c.model", *options[:-2])
        assert plain.exit_code == 0
        b, c = load_model("b.model"), load_model("c.model")
        assert np.array_equal(b.coef_, c.coef_)
        other = invoke("train", "data", "d.model", *options, "--seed", "4")
        assert other.exit_code == 1
        assert "remove the file to start over" in other.stderr

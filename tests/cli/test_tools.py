"""path, tune, certify and export: tables, pictures, files, refusals, completion."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import dump_svmlight_file
from sklearn.metrics import d2_pinball_score
from sklearn.model_selection import GridSearchCV, KFold

import dualgap
from dualgap import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVR,
    NuSVR,
    certify,
    load_model,
    save_model,
)
from dualgap.cli.options import in_options
from dualgap.data import RowStore

from .running import call, refused, write

liblinear = pytest.importorskip("liblinear.liblinearutil")
libsvm = pytest.importorskip("libsvm.svmutil")


# -------------------------------------------------------------------------------- path


def test_a_path_as_text_and_as_json() -> None:
    X, y = write("data", [-1, 1])
    grid = ("--C", "1", "-C", "0.1")
    arguments = ("path", "data", "p.svg", *grid, "--tol", "1e-6")
    head, *rows, last = call(*arguments).stdout.splitlines()
    assert last == "Picture written to p.svg"
    assert "<svg" in Path("p.svg").read_text()
    assert head.split()[:3] == ["C", "relative_gap", "primal"]
    report = json.loads(call(*arguments, "--json").stdout)
    for row, text, C in zip(report["models"], rows, (0.1, 1.0), strict=True):
        best = LinearSVC(C=C, tol=1e-10, random_state=0).fit(X, y).certificate_
        assert row["C"] == C == float(text.split()[0])
        assert best.dual * (1 - 1e-12) <= row["primal"]
        assert row["primal"] <= best.primal * (1 + 2e-6)
        assert row["relative_gap"] <= 1e-6


@pytest.mark.parametrize(
    ("options", "Cs"),
    [
        (["--C", "3"], [3.0]),
        (["-c", "2,1"], [1.0, 2.0]),
        (["--n-Cs", "3"], [1e-4, 1, 1e4]),
    ],
)
def test_values_of_C_and_a_grid_of_them(options: list[str], Cs: list[float]) -> None:
    write("data", [-1, 1])
    report = json.loads(call("path", "data", *options, "--json").stdout)
    assert [row["C"] for row in report["models"]] == pytest.approx(Cs)


def test_the_best_model_of_a_cross_validation_is_written() -> None:
    X, y = write("data", [1, 2, 3], base=0)
    arguments = ("tune", "data", "m", "--C", "0.01,1", "--cv", "3")
    report = json.loads(call(*arguments, "--picture", "p.png", "--json").stdout)
    means = [row["mean_score"] for row in report["models"]]
    assert report["best_C"] == (0.01, 1.0)[int(np.argmax(means))]
    assert report["best_score"] == max(means)
    model, notes = load_model("m", return_notes=True)
    assert model.C == report["best_C"]
    assert notes["zero_based"] is True
    assert not model.warm_start
    assert all(c.relative_gap <= 1e-3 for c in certify(model, X, y))
    assert f"Best: C {report['best_C']:g}, score " in call(*arguments).stdout
    assert call("predict", "data", "m").stderr.startswith("accuracy")


def test_a_kernel_is_tuned() -> None:
    X, y = write("data", [1, 2, 3])
    arguments = ("tune", "data", "m", "--kernel", "rbf", "--gamma", "0.1,scale")
    arguments += ("--C", "0.1,10")
    report = json.loads(call(*arguments, "--json").stdout)
    assert [(row["C"], row["gamma"]) for row in report["models"]] == [
        (C, gamma) for C in (0.1, 10.0) for gamma in (0.1, "scale")
    ]
    best = max(report["models"], key=lambda row: row["mean_score"])
    assert report["best_score"] == best["mean_score"]
    model = load_model("m")
    assert (model.C, report["best_gamma"]) == (report["best_C"], best["gamma"])
    assert all(c.relative_gap <= 1e-3 for c in certify(model, X, y))
    lines = call(*arguments).stdout.splitlines()
    assert lines[0].split()[:2] == ["C", "gamma"]
    assert f"gamma {report['best_gamma']}" in lines[-2]


@pytest.mark.parametrize(
    ("kernel", "model", "options", "grid"),
    [
        ((), LinearSVR(), (), {"C": [0.1, 1.0], "epsilon": [0.0, 0.5]}),
        (
            ("--kernel", "rbf"),
            SVR(),
            (),
            {"C": [0.1, 1.0], "gamma": [0.1, "scale"], "epsilon": [0.5]},
        ),
        (("--kernel", "rbf"), NuSVR(), (), {"C": [1.0], "nu": [0.2, 0.5]}),
        (
            (),
            LinearSVR(loss="quantile", quantile=0.9),
            ("--loss", "quantile", "--quantile", "0.9"),
            {"C": [0.01, 100.0]},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*at or below the predictions of quantile")
def test_a_regression_is_tuned(kernel, model, options, grid) -> None:
    """The score of a quantile is that of the pinball loss."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    y = np.sort(X @ [1.0, -1.0, 0.5] + rng.exponential(2.0, 90))
    dump_svmlight_file(X, y, "data", zero_based=False)
    arguments = ["tune", "data", "m", "--task", "regression", "--cv", "3", *kernel]
    for name, values in grid.items():
        arguments += [f"--{name}", ",".join(map(str, values))]
    report = json.loads(call(*arguments, *options, "--json").stdout)
    cv = KFold(3, shuffle=True, random_state=0)  # the rows are sorted
    own = GridSearchCV(model, grid, cv=cv).fit(X, y)
    assert [row["mean_score"] for row in report["models"]] == pytest.approx(
        own.cv_results_["mean_test_score"], abs=0.02
    )
    assert all(row["relative_gap"] <= 1e-3 for row in report["models"])
    best = max(report["models"], key=lambda row: row["mean_score"])
    assert report["best_score"] == best["mean_score"]
    found = load_model("m")
    assert type(found) is type(model)
    assert all(getattr(found, name) == best[name] for name in grid)
    if "loss" in model.get_params() and model.loss == "quantile":
        scores = d2_pinball_score(y, found.predict(X), alpha=0.9)
        assert found.score(X, y) == scores


@pytest.mark.parametrize(
    ("scoring", "options", "text"),
    [
        ("roc_auc", ("--task", "regression"), "does not go with these labels: Linear"),
        ("accuracy", ("--task", "regression"), "continuous is not supported; choose"),
        ("f1", (), "does not go with these labels: Target is multiclass"),
        ("neg_log_loss", ("--kernel", "rbf", "--nu", "0.1"), "; choose another"),
    ],
)
def test_scores_that_do_not_go_with_the_labels(scoring, options, text) -> None:
    X, _ = write("data", [1, 2, 3])
    if "regression" in options:
        dump_svmlight_file(X, X.toarray()[:, 0] + 0.5, "data", zero_based=False)
    told = refused("tune", "data", "--scoring", scoring, "--quiet", *options)
    assert f"--scoring {scoring} " in told
    assert text in told


def test_a_share_of_errors_is_tuned() -> None:
    write("data", [-1, 1])
    arguments = ("tune", "data", "m", "--kernel", "rbf", "--nu", "0.1,0.3", "--nu", "1")
    report = json.loads(call(*arguments[:-2], "--json").stdout)
    assert [row["nu"] for row in report["models"]] == [0.1, 0.3]
    assert report["certified"]
    assert load_model("m").nu == report["best_nu"]
    assert "mean_score" in call(*arguments, "--cv", "3").stdout
    told = refused("predict", "data", "m", "--undecided", "?")
    assert "--undecided is for classification with --C" in told
    told = refused("prove", "data", "m", "proof")
    assert "NuSVC has no proof file; use dualgap certify, or train without --nu" in told


def test_a_best_value_at_an_end_of_the_grid_is_told() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    y = X[:, 0] + rng.normal(size=200) > 0
    dump_svmlight_file(X, np.where(y, 1, -1), "data", zero_based=False)
    arguments = ("tune", "data", "--kernel", "rbf", "--C", "1")
    arguments += ("--gamma", "1,10,100,scale", "--json")
    result = call(*arguments)
    scores = {r["gamma"]: r["mean_score"] for r in json.loads(result.stdout)["models"]}
    assert scores[1.0] > scores[10.0]
    advice = "The best gamma is the smallest that was tried: try --gamma 1,0.1,0.01 too"
    best = json.loads(result.stdout)["best_gamma"]
    assert (advice in result.stderr) == (best == 1.0)
    regression = ("tune", "data", "--task", "regression", "--C", "1", "--epsilon")
    for epsilons in ("0,0.5", "0,1.9"):  # a step from 0 has no direction
        assert "best epsilon" not in call(*regression, epsilons).stderr
    told = call("tune", "data", "--C", "1e-6,1e-5,1e-3,1").stderr
    assert "The best C" not in told  # inside, or as good as its neighbour


def test_a_path_that_is_not_certified_is_status_3() -> None:
    write("data", [-1, 1], n=3000)
    call("path", "data", "--C", "1", "--tol", "1e-14", "--time-limit", "1e-3", status=3)


def test_a_search_without_time_chooses_nothing() -> None:
    write("data", [-1, 1])
    arguments = ("tune", "data", "--cv", "3", "--time-limit", "1e-9")
    told = call(*arguments, status=1).stderr
    assert "dualgap: --time-limit 1e-09 was reached before any candidate was" in told


# ----------------------------------------------------------------------------- certify


@pytest.mark.parametrize(("kind", "loss"), [(3, "hinge"), (1, "squared_hinge")])
@pytest.mark.parametrize("bias", [-1, 2])
def test_models_of_liblinear(kind: int, loss: str, bias: int) -> None:
    X, y = write("data", [5, 2])
    model = liblinear.train(y.tolist(), X, f"-s {kind} -c 0.5 -e 0.3 -B {bias} -q")
    liblinear.save_model("m", model)
    (c,) = json.loads(call("certify", "data", "m", "--C", "0.5", "--json").stdout)[
        "certificates"
    ]
    best = LinearSVC(
        0.5, loss=loss, tol=1e-10, fit_intercept=bias > 0,
        intercept_scaling=max(bias, 1), random_state=0,
    ).fit(X, y).certificate_  # fmt: skip
    assert c["dual"] <= best.primal * (1 + 1e-12)
    assert c["primal"] >= best.dual * (1 - 1e-12)
    assert 0 <= c["relative_gap"] < 0.5
    assert "is a file of LIBLINEAR" in refused("certify", "data", "m")
    told = call("certify", "data", "m", "--C", "1e-6").stderr
    assert "training ended far from the optimum, or that it had other data" in told
    labels, *_ = liblinear.predict([], X, model, "-q")
    assert call("predict", "data", "m").stdout.split() == [f"{k:g}" for k in labels]


@pytest.mark.parametrize("labels", [[-1, 1], [3, 1, 7]])
@pytest.mark.parametrize("options", ["-t 2 -g 0.3", "-t 0", "-t 1 -r 1 -g 0.2"])
def test_models_of_libsvm(labels: list[int], options: str) -> None:
    X, y = write("data", labels)
    # Some examples twice, and as often support vectors.
    dump_svmlight_file(
        np.vstack([X.toarray(), X.toarray()[:10]]), np.r_[y, y[:10]], "data",
        zero_based=False,
    )  # fmt: skip
    rows = np.r_[np.arange(len(y)), np.arange(10)]
    model = libsvm.svm_train(y[rows].tolist(), X[rows], f"-c 2 {options} -e 1e-4 -q")
    libsvm.svm_save_model("m", model)
    report = json.loads(call("certify", "data", "m", "--C", "2", "--json").stdout)
    pairs = len(labels) * (len(labels) - 1) // 2
    assert report["kind"] == "LIBSVM"
    assert len(report["certificates"]) == pairs
    for c in report["certificates"]:
        assert -1e-9 <= c["relative_gap"] <= 1e-3
    write("other", labels, seed=1)
    assert "is not among the examples" in refused("certify", "other", "m", "--C", "2")
    # Columns that the support vectors or the rows lack are 0. Of three classes with
    # equal votes LIBSVM takes another one.
    for d in (5, 8) if pairs == 1 else ():
        X, _ = write("other", labels, d=d, seed=2)
        found, *_ = libsvm.svm_predict([], X, model, "-q")
        assert call("predict", "other", "m").stdout.split() == [f"{k:g}" for k in found]


# ------------------------------------------------------------------------------ export


def test_labels_that_are_words_become_numbers_in_files_of_peers() -> None:
    X, y = write("data", [3, 1, 7])
    for model in (LinearSVC(random_state=0), SVC()):
        model.fit(X, np.array(["", "low", "", "mid", "", "", "", "top"])[y.astype(int)])
        save_model(model, "m")
        told = call("export", "m", "out").stderr
        assert (
            told == "Labels are numbers in this file: 1 is low, 2 is mid, 3 is top.\n"
        )
        assert json.loads(call("export", "m", "out", "--json").stdout)["labels"] == [
            *("low", "mid", "top")
        ]
        if isinstance(model, SVC):
            labels, *_ = libsvm.svm_predict([], X, libsvm.svm_load_model("out"), "-q")
        else:
            labels, *_ = liblinear.predict([], X, liblinear.load_model("out"), "-q")
        words = np.array(["", *model.classes_])[np.array(labels, int)]
        np.testing.assert_array_equal(words, model.predict(X))


def test_the_extension_or_the_format_decides() -> None:
    write("data", [-1, 1])
    call("train", "data", "model", "--kernel", "linear")
    report = json.loads(call("export", "model", "out.libsvm", "--json").stdout)
    assert report == {"model": "model", "output": "out.libsvm", "format": "libsvm"}
    call("export", "model", "out.xyz", "--format", "libsvm")
    assert Path("out.xyz").read_bytes() == Path("out.libsvm").read_bytes()


def test_features_from_0_are_told() -> None:
    write("data", [-1, 1], base=0)
    call("train", "data", "model")
    assert "from 1 in this file" in call("export", "model", "out").stderr


def test_onnx_graphs_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write("data", [-1, 1])
    call("train", "data", "model")

    class Proto:
        @staticmethod
        def SerializeToString() -> bytes:
            return b"graph"

    monkeypatch.setattr(dualgap, "to_onnx", lambda model: Proto)
    call("export", "model", "out.onnx")
    assert Path("out.onnx").read_bytes() == b"graph"


# ------------------------------------------------------------------------------ stores


def test_what_convert_made_is_told_in_a_sentence() -> None:
    X, _ = write("data", [-1, 1])
    told = call("convert", "data", "store").stdout
    assert told.startswith(f"store: 60 examples, 6 features, {X.nnz} values, made in ")


# ---------------------------------------------------------------------------- the shell


@pytest.mark.parametrize(
    ("python", "option"),
    [
        ("n_features=2 is few; use n_features=3 or more, or None", "--n-features 3 or"),
        ("give y=..., or an array y", "give --labels ..., or an array y"),
        ("kernel='rbf': no", "--kernel rbf: no"),
        ("replace it with overwrite=True", "with --overwrite"),
        ("/a/tol=3.svm is empty", "/a/tol=3.svm is empty"),
        ("asked (tol)", "asked (tol)"),
    ],
)
def test_errors_speak_of_options(python: str, option: str) -> None:
    assert option in in_options(python)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["tr"], {"train"}),
        (["train", "a", "--sol"], {"--solver", "--solver-option"}),
        (["train", "a", "--solver", "sgd"], {"sgd-s", "sgd-m", "sgd-r", "sgd-qn"}),
        (["train", "a", "--loss", "sm"], {"smoothed_hinge"}),
        (["train", "--kernel", "l"], {"linear", "laplacian"}),
        (["train", "--multi-class", "cr"], {"crammer-singer"}),
        (["train", "--task", "r"], {"regression"}),
        (["nothing", ""], set()),
        (["train", "a", "--loss=sm"], {"--loss=smoothed_hinge"}),
        (["train", "a", "--loss", "=", "sm"], {"smoothed_hinge"}),
        (["train", "--task", "="], {"classification", "regression", "one-class"}),
        (["--v"], {"--version"}),
        (["--completion", ""], {"bash", "zsh", "fish"}),
        (["reproduce", "pegasos2011-"], {"pegasos2011-kernels"}),
    ],
)
def test_completion_of_names(words: list[str], found: set[str]) -> None:
    assert set(call("--complete", *words).stdout.split()) == found


SHELLS = {
    "bash": "COMP_WORDS=(dualgap {0}) COMP_CWORD={1}; _dualgap\necho ${{COMPREPLY[@]}}",
    "zsh": "words=(dualgap {0}) CURRENT={1}+1\ncompadd() {{ echo $@[2,-1] }}\n_dualgap",
    "fish": "complete -C 'dualgap {0}'",
}


@pytest.mark.long
@pytest.mark.parametrize("shell", SHELLS)
def test_shells_complete(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell}")
    program = tmp_path / "dualgap"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m dualgap "$@"\n')
    program.chmod(0o755)
    script = call("--completion", shell).stdout
    if shell == "zsh":
        script = f"compdef() {{ }}\n{script}"
    for line, found in {
        "tr": ["train"],
        "help exp": ["export"],
        "train a b --solver inter": ["interior-point"],
        "tune a --class": ["--class-weight"],
        "export m o --format lib": ["liblinear", "libsvm"],
    }.items():
        count = len(line.split())
        done = subprocess.run(
            [shell, "-c", script + "\n" + SHELLS[shell].format(line, count)],
            env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stdout.split() == found, done.stderr
    assert "bash, zsh or fish" in call("--completion", status=2).stderr


def test_a_refused_conversion_does_not_stand_in_the_way() -> None:
    np.save("x.npy", np.arange(8.0).reshape(4, 2))
    np.save("y.npy", np.array([1, 1, -1, -1]))
    told = refused("convert", "x.npy", "store")
    assert "give --labels ..., or save an array y in a .npz file" in told
    np.save("names.npy", np.array(["a", "b", "c", "d"]))
    np.save("few.npy", np.array(["a", "b", "c"]))
    refused("convert", "x.npy", "store", "--labels", "few.npy")
    call("convert", "x.npy", "words", "--labels", "names.npy")
    assert RowStore.open("words").classes == ("a", "b", "c", "d")
    call("convert", "x.npy", "store", "--labels", "y.npy")


@pytest.mark.parametrize("command", ["certify", "report", "path", "tune", "export"])
def test_help_teaches(command: str) -> None:
    text = call(command, "--help").stdout
    assert "Examples" in text
    assert text.count(f"dualgap {command} ") >= 3
    assert "store made by convert" not in text  # which these commands do not read

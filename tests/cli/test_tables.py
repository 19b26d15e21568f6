"""Tables on the command line: every command, standardised columns, reports."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dualgap
from dualgap import SVC, SVR, LinearSVC, html_report, load_model, save_model
from dualgap.data import RowStore
from dualgap.models import write_liblinear

from .running import call, invoke, refused, write

NAMES = ["no", "yes"]


def table(name: str = "t.csv", seed: int = 0, labels: Any = NAMES) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    codes = np.arange(60) % len(labels)
    X = rng.normal(size=(60, 3)) * [1, 10, 100] + 5
    X[:, 1] += 8 * codes
    y = np.array(labels)[codes]
    rows = ["a,b,c,kind"]
    rows += [
        f"{u!r},{v!r},{w!r},{k}" for (u, v, w), k in zip(X.tolist(), y, strict=True)
    ]
    Path(name).write_text("\n".join(rows) + "\n")
    return X, y


def frame(X: Any) -> Any:
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(X, columns=["a", "b", "c"])


@pytest.mark.parametrize("standardize", [False, True])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_every_command_reads_a_table(kernel: str | None, standardize: bool) -> None:
    X, y = table()
    options = ["--standardize"] * standardize
    if kernel is not None:
        options += ["--kernel", kernel]
    told = call("train", "t.csv", "model", *options).stderr
    assert "3 features, labels in column kind, 2 classes" in told
    expected: Any = SVC(random_state=0) if kernel else LinearSVC(random_state=0)
    if standardize:
        expected = make_pipeline(StandardScaler(), expected)
    expected.fit(X, y)
    model = load_model("model")
    assert type(model) is type(expected)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    values = expected.decision_function(X)
    np.testing.assert_allclose(model.decision_function(frame(X)), values, rtol=1e-9)
    found = call("predict", "t.csv", "model").stdout.split()
    assert found == expected.predict(X).tolist()
    report = json.loads(call("score", "t.csv", "model", "--json").stdout)
    assert report["accuracy"] == expected.score(X, y)
    assert call("certify", "t.csv", "model").stdout.startswith("model is within 0.")


def test_tables_become_stores() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)).round(4), np.arange(40) % 2
    rows = [f"{a},{b},{c},{k},{k + 1}" for (a, b, c), k in zip(X, y, strict=True)]
    text = "\n".join(["a,b,c,target,w", *rows]) + "\n"
    Path("data.csv").write_text(text)
    Path("packed").write_bytes(gzip.compress(text.replace(",", "\t").encode()))
    for name in ("data.csv", "packed"):  # the content decides, not the name
        call("convert", name, f"{name}.store", "--no-shuffle", "--weight", "w")
        store = RowStore.open(f"{name}.store")
        np.testing.assert_array_equal(store.y, y)
        np.testing.assert_array_equal(store.sample_weight, y + 1)
        (block,) = store.blocks()
        np.testing.assert_array_equal(block.X, X)
    call("convert", "data.csv", "--label", "5", "b.store", "--no-shuffle")
    np.testing.assert_array_equal(RowStore.open("b.store").y, y + 1)
    np.savez("arrays.csv.npz", X=X, y=y)
    os.rename("arrays.csv.npz", "arrays.csv")
    call("convert", "arrays.csv", "c.store")


def test_a_table_without_labels_is_described() -> None:
    Path("t.csv").write_text("a,b\n1,2\n3,4\n")
    assert "features   2, a, b" in (told := call("inspect", "t.csv").stdout)
    assert "none: no column of labels; name one with --label" in told
    assert json.loads(call("inspect", "t.csv", "--json").stdout)["classes"] == []


def test_columns_go_by_name_and_labels_may_lack() -> None:
    table()
    call("train", "t.csv", "model", "--columns", "c,b")
    expected = call("predict", "t.csv", "model").stdout
    rows = [line.split(",") for line in Path("t.csv").read_text().splitlines()]
    Path("u.csv").write_text("\n".join(f"{b};{c};{a}" for a, b, c, _ in rows))
    result = call("predict", "u.csv", "model")
    assert result.stdout == expected
    assert result.stderr == "u.csv: not used: a.\nNot scored: DATA has no labels.\n"
    assert "DATA has no labels" in refused("score", "u.csv", "model")
    assert "no column 'c'; its columns are a, b, kind" in refused(
        "score", narrow(rows), "model"
    )
    known = json.loads(load_model("model", return_notes=True)[1]["columns"])
    assert [column["name"] for column in known["columns"]] == ["c", "b"]
    assert (known["label"], known["classes"]) == ("kind", NAMES)


def narrow(rows: list[list[str]]) -> str:
    Path("n.csv").write_text("\n".join(f"{a},{b},{k}" for a, b, _, k in rows))
    return "n.csv"


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("header", ["a,b,y\n", ""])
def test_one_class_needs_no_labels(header: str, kernel: str | None) -> None:
    X = np.random.default_rng(0).normal(size=(60, 3)) + 3
    lines = [",".join(map(repr, row)) for row in X.tolist()]
    Path("t.csv").write_text(header + "\n".join(lines))
    np.savez("t.npz", X=X)
    options = ["--task", "one-class", "--nu", "0.1"]
    estimator: Any = dualgap.LinearOneClassSVM(nu=0.1)
    if kernel is not None:
        options += ["--kernel", kernel]
        estimator = dualgap.OneClassSVM(nu=0.1)
    ways = {"t.npz": ((), [0, 1, 2]), "t.csv": (("--columns", "1,3"), [0, 2])}
    for name, (columns, features) in ways.items():
        call_of = call("train", name, "model", *options, *columns)
        start = f"{name}: 60 examples, {len(features)} features, read in"
        assert call_of.stderr.startswith(start)
        call("predict", name, "model", "-o", "out")
        expected = estimator.fit(X[:, features]).predict(X[:, features])
        np.testing.assert_array_equal(np.loadtxt("out", dtype=int), expected)
        proved = json.loads(call("certify", name, "model", "--json").stdout)
        (certificate,) = proved["certificates"]
        assert 0 <= certificate["relative_gap"] <= 1e-3


def test_one_class_leaves_labels_aside_unless_they_are_features() -> None:
    table()
    told = call("train", "t.csv", "model", "--task", "one-class").stderr
    assert "3 features, labels in column kind, read" in told


def test_predictions_go_to_standard_output_by_a_dash_and_other_output_does_not() -> (
    None
):
    table()
    call("train", "t.csv", "model")
    plain = call("predict", "t.csv", "model")
    assert call("predict", "t.csv", "model", "-").stdout == plain.stdout
    assert call("predict", "t.csv", "model", "-o", "-").stdout == plain.stdout
    assert not Path("-").exists()


def test_standard_input_and_content_before_names() -> None:
    table()
    content = Path("t.csv").read_bytes()
    Path("t.svm").write_bytes(gzip.compress(content))
    call("train", "t.svm", "one")
    result = invoke("train", "-", "two", content=content)
    assert result.exit_code == 0, result
    assert result.stderr.startswith("standard input: 60 examples")
    np.testing.assert_array_equal(load_model("one").coef_, load_model("two").coef_)
    # svmlight text from standard input, and compressed under a plain name
    write("data", [-1, 1])
    call("train", "data", "one")
    text = Path("data").read_bytes()
    Path("plain").write_bytes(gzip.compress(text))
    call("train", "plain", "two")
    np.testing.assert_array_equal(load_model("one").coef_, load_model("two").coef_)
    result = invoke("score", "-", "one", content=text)
    assert result.stdout.startswith("accuracy ")


def test_other_commands_read_tables() -> None:
    X, y = table()
    facts = json.loads(call("inspect", "t.csv", "--json").stdout)
    assert (facts["n"], facts["d"], facts["nnz"]) == (60, 3, 180)
    assert [c["label"] for c in facts["classes"]] == NAMES
    assert "features   3, a, b, c" in call("inspect", "t.csv").stdout
    call("tune", "t.csv", "m", "--C", "1", "--cv", "2", "--standardize")
    scored = json.loads(call("score", "t.csv", "m", "--json").stdout)
    assert scored["accuracy"] == load_model("m").score(frame(X), y)
    np.savez("t.npz", X=X, y=y)
    call("train", "t.npz", "m")
    expected = LinearSVC(random_state=0).fit(X, y)
    np.testing.assert_array_equal(load_model("m").coef_, expected.coef_)
    call("train", "t.csv", "m", "--class-weight", "yes=2")
    assert load_model("m").class_weight == {"no": 1.0, "yes": 2.0}


def test_sparse_columns_keep_their_zeros() -> None:
    X, y = write("data", [-1, 1])
    call("train", "data", "model", "--standardize")
    scaler = StandardScaler(with_mean=False)
    expected = LinearSVC(random_state=0).fit(scaler.fit_transform(X), y)
    model = load_model("model")
    np.testing.assert_allclose(model[0].scale_, scaler.scale_, rtol=1e-12)
    np.testing.assert_allclose(model[-1].coef_, expected.coef_, atol=1e-4)
    assert call("certify", "data", "model").stdout.startswith("model is within")


def test_a_linear_model_takes_its_scaling_along() -> None:
    X, _ = table(labels=[3, 4])
    call("train", "t.csv", "model", "--standardize", "--label", "kind")
    call("export", "model", "out.ll")
    folded = dualgap.models.read_liblinear("out.ll")
    values = load_model("model").decision_function(frame(X))
    np.testing.assert_allclose(folded.decision_function(X), values, rtol=1e-9)
    call("train", "t.csv", "k", "--standardize", "--kernel", "rbf", "--label", "kind")
    told = refused("export", "k", "out.libsvm")
    assert "export it to .onnx, or train without --standardize on a file" in told


@pytest.mark.parametrize("more", [(), ("--probability",)])
def test_a_kernel_model_has_its_scaling_in_onnx(more: tuple[str, ...]) -> None:
    runtime = pytest.importorskip("onnxruntime")
    X, _ = table()
    words = ("--standardize", "--kernel", "rbf", "--label", "kind", *more)
    call("train", "t.csv", "k", *words)
    call("export", "k", "out.onnx")
    session = runtime.InferenceSession("out.onnx")
    found = session.run(None, {session.get_inputs()[0].name: X.astype(np.float32)})
    model = load_model("k")
    np.testing.assert_array_equal(found[0], model.predict(frame(X)))
    exact = model.predict_proba if more else model.decision_function
    values = np.asarray(exact(frame(X)))
    np.testing.assert_allclose(found[1].reshape(values.shape), values, atol=1e-4)


def test_a_pipeline_is_saved_as_it_is() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3)) * [1, 10, 100]
    for y, svm in ((X[:, 0] > 0, SVC()), (X[:, 0], SVR()), (X[:, 0] > 0, LinearSVC())):
        model = make_pipeline(StandardScaler(), svm).fit(X, y)
        save_model(model, "model")
        found = load_model("model")
        np.testing.assert_array_equal(found.predict(X), model.predict(X))
        save_model(found, "again")
        assert Path("again").read_bytes() == Path("model").read_bytes()
    with pytest.raises(TypeError, match="Keep the whole pipeline"):
        save_model(make_pipeline(StandardScaler(), StandardScaler(), svm), "model")


def test_a_csv_of_numbers_is_a_regression() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    y = X @ [1.0, -2.0] + 0.1 * rng.normal(size=50)
    content = io.StringIO()
    np.savetxt(content, np.c_[X, y], delimiter="\t", fmt="%.17g")
    Path("r.tsv").write_text(content.getvalue())
    call("train", "r.tsv", "m", "--task", "regression", "--label", "3")
    report = json.loads(call("score", "r.tsv", "m", "--json").stdout)
    assert report["r2"] == pytest.approx(load_model("m").score(X, y))


@pytest.fixture
def no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(html_report, "svg", lambda draw: b"<svg/>")


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("labels", [[-1, 1], [3, 1, 7]])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_the_page_of_a_model(labels: list[int], kernel: str | None) -> None:
    X, y = write("data", labels)
    call("train", "data", "model", *(["--kernel", kernel] if kernel else []))
    told = call("report", "data", "model", "-o", "page.html").stdout
    assert told == "Report written to page.html\n"
    model = load_model("model")
    if kernel:
        model.n_jobs = -1
    names = [str(k + 1) for k in range(X.shape[1])]
    page = dualgap.report(model, X, y, feature_names=names).html
    assert Path("page.html").read_text("utf-8") == page
    Path("page.html").write_text(page[:50])  # a page is replaced
    again = call("report", "data", "model", "-o", "page.html", "--json").stdout
    assert (json.loads(again)["output"], json.loads(again)["n"]) == ("page.html", 60)
    assert Path("page.html").read_text("utf-8") == page


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("task", ["regression", "one-class"])
def test_other_tasks(task: str) -> None:
    write("data", [1, 2, 4])
    call("train", "data", "model", "--task", task)
    call("report", "data", "model")
    words = {"regression": "mean absolute error", "one-class": "outliers"}
    assert words[task] in Path("report.html").read_text("utf-8")


@pytest.mark.usefixtures("no_pictures")
def test_tables_have_names_and_models_their_scaling() -> None:
    rows = [
        f"{k % 7},{1000 * (k % 5)},1,{'no' if k % 7 < 3 else '<y>'}" for k in range(60)
    ]
    Path("t.csv").write_text("\n".join(["<a>,b,c,kind", *rows]) + "\n")
    call("train", "t.csv", "plain", "--tol", "0.1")
    call("train", "t.csv", "scaled", "--standardize")
    call("report", "t.csv", "plain", "plain.html")
    page = Path("plain.html").read_text("utf-8")
    assert "the values of column &lt;a&gt; span 6, the values of b 4e+03" in page
    assert "1 of 3 columns are constant (c)" in page
    assert "<td>&lt;y&gt;</td>" in page
    call("report", "t.csv", "scaled", "-o", "scaled.html")
    assert "different scales" not in Path("scaled.html").read_text("utf-8")


@pytest.mark.usefixtures("no_pictures")
def test_files_of_liblinear() -> None:
    X, y = write("data", [5, 2])
    write_liblinear(LinearSVC(C=0.5).fit(X, y), "m")
    assert "is a file of LIBLINEAR" in refused("report", "data", "m")
    call("report", "data", "m", "--C", "0.5")
    assert "near the optimum" in Path("report.html").read_text("utf-8")

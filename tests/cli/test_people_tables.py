"""Tables as people have them, against the same pipelines in scikit-learn."""

from __future__ import annotations

import json
import os
import zipfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from dualgap import LinearSVC, load_model
from dualgap.data import RowStore

from .running import call, refused, write

pandas = pytest.importorskip("pandas")


def adult(n: int = 900) -> Any:
    """A table like the Adult data: numbers, words, and gaps among the words."""
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "age": rng.integers(17, 80, n),
            "workclass": rng.choice(["Private", "State-gov", "Self-emp"], n),
            "education": rng.choice(["HS-grad", "Bachelors", "Doctorate"], n),
            "hours": rng.integers(10, 80, n),
            "sex": rng.choice(["Male", "Female"], n),
        }
    )
    score = 0.05 * (frame.age - 40) + 0.05 * (frame.hours - 40)
    score += 2.0 * (frame.education == "Doctorate") + (frame.workclass == "Self-emp")
    score += rng.normal(size=n)
    frame["income"] = np.where(score > 1, ">50K", "<=50K")
    frame.loc[rng.random(n) < 0.05, "workclass"] = None
    return frame


def titanic(n: int = 800) -> Any:
    """A table like the Titanic's: names, missing ages, few missing ports."""
    rng = np.random.default_rng(1)
    frame = pandas.DataFrame(
        {
            "Survived": 0,
            "Pclass": rng.integers(1, 4, n),
            "Name": [f"Passenger, Mr. {k}" for k in range(n)],
            "Sex": rng.choice(["male", "female"], n),
            "Age": rng.uniform(1, 80, n).round(1),
            "Embarked": rng.choice(["S", "C", "Q"], n),
        }
    )
    score = 2.5 * (frame.Sex == "female") - frame.Pclass - 0.02 * frame.Age
    frame["Survived"] = (score + rng.normal(size=n) > -1.3).astype(int)
    frame.loc[rng.random(n) < 0.2, "Age"] = None
    frame.loc[rng.random(n) < 0.01, "Embarked"] = None
    return frame


def wine(n: int = 800) -> Any:
    """A table like that of wine quality: numbers alone, three labels."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 4)) * [1, 2, 5, 10] + [7, 3, 20, 100]
    frame = pandas.DataFrame(X.round(2), columns=["acid", "sugar", "so2", "alcohol"])
    score = (frame.alcohol - 100) / 10 + frame.acid - 7 + 0.5 * rng.normal(size=n)
    frame["quality"] = np.digitize(score, [-0.8, 0.8]) + 5
    return frame


def dummies(n: int = 800) -> Any:
    frame = adult(n).dropna()
    return pandas.get_dummies(frame, columns=["workclass", "education", "sex"])


def plain(frame: Any, name: str, **options: Any) -> None:
    frame.to_csv(name, index=False, **options)


def adult_text(frame: Any, name: str) -> None:
    """Without names, with blanks after the commas, and ? for what is missing."""
    rows = frame.astype(object).fillna("?").to_numpy().tolist()
    lines = [", ".join(map(str, row)) for row in rows]
    Path(name).write_text("\n".join(lines) + "\n\n")


def nullable(frame: Any, name: str) -> None:
    """Parquet with nullable and categorical columns, in a random order."""
    pytest.importorskip("pyarrow")
    types = {"age": "Int64", "workclass": "category", "sex": "category"}
    frame.astype(types).sample(frac=1, random_state=0).to_parquet(name)


def excel(frame: Any, name: str) -> None:
    frame = frame.assign(hours=frame.hours + 0.25)
    plain(frame, name, sep=";", decimal=",", encoding="utf-16")


SETTINGS: dict[str, tuple[Any, Any, str, str, list[str]]] = {
    "adult": (adult, plain, "csv", "income", ["--missing", "most-frequent"]),
    "adult without names": (adult, adult_text, "csv", "6", ["--missing", "mean"]),
    "adult with row numbers": (
        adult, lambda frame, name: frame.to_csv(name), "csv", "income",
        ["--missing", "mean"],
    ),
    "adult, Excel": (adult, excel, "csv", "income", ["--missing", "mean"]),
    "adult, Parquet": (adult, nullable, "parquet", "income", ["--missing", "mean"]),
    "wine": (
        wine, lambda frame, name: plain(frame, name, sep=";"), "csv", "quality", []
    ),
    "titanic": (
        titanic, plain, "csv", "Survived",
        ["--columns", "Pclass,Sex,Age,Embarked", "--missing", "mean"],
    ),
    "dummies": (dummies, plain, "csv", "income", []),
}  # fmt: skip


def pipeline(frame: Any, features: list[str], fill: str) -> Any:
    """Return scikit-learn's pipeline, around the same classifier."""
    words = [c for c in features if frame[c].dtype.kind not in "biufM"]
    numbers = [c for c in features if c not in words]
    encoder = OneHotEncoder(handle_unknown="ignore")
    steps = ColumnTransformer(
        [
            ("numbers", SimpleImputer(strategy=fill), numbers),
            ("words", make_pipeline(SimpleImputer(strategy="most_frequent"), encoder),
             words),
        ],
        sparse_threshold=0.0,
    )  # fmt: skip
    return make_pipeline(steps, StandardScaler(), LinearSVC(tol=1e-6))


@pytest.mark.parametrize("name", SETTINGS)
def test_a_table_trains_predicts_and_scores_as_in_scikit_learn(name: str) -> None:
    make, save, kind, label, options = SETTINGS[name]
    frame = make()
    half = len(frame) // 2
    old, new = frame[:half], frame[half:]
    save(old, f"old.{kind}")
    save(new, f"new.{kind}")
    target = "income" if label == "6" else label
    features = [c for c in frame.columns if c not in (target, "Name")]
    fill = "most_frequent" if "most-frequent" in options else "mean"
    model = pipeline(old, features, fill).fit(old[features], old[target])
    expected = model.score(new[features], new[target])
    more = ["--label", label, *options, "--standardize", "--tol", "1e-6"]
    call("train", f"old.{kind}", "m", *more)
    report = json.loads(call("score", f"new.{kind}", "m", "--json").stdout)
    assert report["accuracy"] == pytest.approx(expected, abs=0.005)
    assert report["n"] == len(new)
    assert report["d"] == model[-1].n_features_in_
    predicted = call("predict", f"new.{kind}", "m").stdout.split()
    assert set(predicted) <= set(map(str, old[target].unique()))
    assert len(predicted) == len(new)
    proved = call("certify", f"old.{kind}", "m", "--json").stdout
    for certificate in json.loads(proved)["certificates"]:
        assert certificate["relative_gap"] <= 1e-3


@pytest.mark.parametrize(
    ("thousands", "decimal"), [(",", "."), (".", ","), (" ", ","), ("'", ".")]
)
def test_thousands_are_read_with_an_option_that_the_message_names(
    thousands: str, decimal: str
) -> None:
    rng = np.random.default_rng(0)
    values = rng.uniform(-1e7, 1e7, 40).round(2)
    values[:3] = 7.0, 1234.5, -12.0
    marks = str.maketrans({",": thousands, ".": decimal})
    texts = [f"{value:,}".translate(marks) for value in values]
    # Blanks in spreadsheets often do not break a line.
    texts[5:] = [text.replace(" ", "\u202f") for text in texts[5:]]
    rows = [f"{t};{k};{'ab'[k % 2]}" for k, t in enumerate(texts)]
    Path("t.csv").write_text("x;k;y\n" + "\n".join(rows) + "\n", "utf-8")
    told = refused("train", "t.csv", "m")
    shown = thousands if thousands in ",." else repr(thousands)
    assert f"; give --thousands {shown}" in told
    call("train", "t.csv", "m", "--thousands", thousands, "--standardize")
    X = np.column_stack([values, np.arange(40)])
    labels = np.array([*"ab"])[np.arange(40) % 2]
    same = LinearSVC(random_state=0).fit((X - X.mean(0)) / X.std(0), labels)
    np.testing.assert_allclose(load_model("m")[-1].coef_, same.coef_, rtol=1e-9)
    assert call("predict", "t.csv", "m").stdout.count("\n") == 40
    call("convert", "t.csv", "s", "--thousands", thousands, "--no-shuffle")
    (block,) = RowStore.open("s").blocks()
    np.testing.assert_array_equal(block.X, X)
    Path("t.csv").write_text(f"x;y\n1{thousands}00;a\n2;b\n", "utf-8")
    train = ("train", "t.csv", "m2", "--decimal", decimal, "--thousands")
    assert "t.csv, line 2, column 1 ('x')" in refused(*train, thousands)
    assert "--thousands x: use one of" in refused(*train, "x")
    told = f"--decimal {decimal} is the mark between thousands too"
    assert told in refused(*train, decimal)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("name", ["id", "index", "Unnamed: 0", "PassengerId", "row_id"])
def test_a_column_that_numbers_the_rows_is_left_out(name: str, kind: str) -> None:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(120, 2)), columns=["a", "b"])
    frame["label"] = ["no"] * 60 + ["yes"] * 60

    def save(column: Any) -> None:
        other = frame.copy()
        other.insert(1 if name == "PassengerId" else 0, name, column)
        save_as = other.to_parquet if kind == "parquet" else partial(plain, other)
        save_as(f"t.{kind}")

    first = 0 if name == "index" else 1
    save(np.arange(first, first + 120))
    place = 2 if name == "PassengerId" else 1
    for command in ("train", "convert"):
        told = call(command, f"t.{kind}", f"out.{command}").stderr
        assert f"column {place} ({name}) numbers the rows: left out" in told
    assert load_model("out.train").feature_names_in_.tolist() == ["a", "b"]
    call("train", f"t.{kind}", "m", "--columns", f"{name},a")
    assert load_model("m").feature_names_in_.tolist() == [name, "a"]
    save(np.arange(120) * 2)  # a feature, unless pandas alone names a column so
    if name != "Unnamed: 0":
        assert "numbers the rows" not in call("train", f"t.{kind}", "m").stderr


def test_inspect_counts_missing_values() -> None:
    frame = adult()
    plain(frame, "t.csv")
    nullable(frame, "t.parquet")
    gaps = {"workclass": int(frame.workclass.isna().sum())}
    for data in ("t.csv", "t.parquet"):
        facts = json.loads(call("inspect", data, "--label", "income", "--json").stdout)
        assert (facts["n"], facts["missing"]) == (len(frame), gaps)
    told = call("inspect", "t.csv", "--label", "income")
    assert f"missing    workclass: {gaps['workclass']}; train needs" in told.stdout
    assert "filled" not in told.stderr
    assert "missing" not in call("inspect", "t.csv", "--columns", "age,hours").stdout
    Path("d.csv").write_text("day,a,y\n2026-01-31,1,p\n2026-02-01,,q\n")
    told = call("inspect", "d.csv")  # a date is told, and the rest described
    assert "'2026-01-31' is a date" in told.stderr
    assert "features   1, a\n" in told.stdout
    assert "a: 1; train needs --missing" in told.stdout


def test_columns_go_by_name_in_any_order_and_words_may_be_new() -> None:
    frame = adult().dropna()
    plain(frame, "old.csv")
    call("train", "old.csv", "m", "--label", "income")
    expected = call("predict", "old.csv", "m").stdout
    model = load_model("m")
    names = model.feature_names_in_.tolist()
    assert names == [
        "age", "workclass=Private", "workclass=Self-emp", "workclass=State-gov",
        "education=Bachelors", "education=Doctorate", "education=HS-grad", "hours",
        "sex=Female", "sex=Male",
    ]  # fmt: skip
    by_hand = np.column_stack(
        [
            frame[name] if "=" not in name
            else frame[name.split("=")[0]] == name.split("=")[1]
            for name in names
        ]
    ).astype(float)  # fmt: skip
    same = LinearSVC(random_state=0).fit(by_hand, frame.income)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    turned = frame[frame.columns[::-1]].assign(note="kept")
    plain(turned, "new.csv", sep="\t")
    told = call("predict", "new.csv", "m")
    assert told.stdout == expected
    assert "new.csv: not used: note." in told.stderr
    plain(frame.replace("Private", "Never"), "strange.csv")
    count = int((frame.workclass == "Private").sum())
    told = call("predict", "strange.csv", "m")
    assert f"does not know are ignored: workclass ({count})." in told.stderr
    zeros = by_hand.copy()
    zeros[:, 1] = 0
    assert told.stdout.split() == same.predict(zeros).tolist()
    plain(frame.drop(columns=["sex", "age"]), "few.csv")
    told = refused("predict", "few.csv", "m")
    assert "few.csv has no columns 'age', 'sex'; its columns are" in told


def test_a_model_of_a_store_takes_the_table_that_made_it() -> None:
    frame = adult()
    plain(frame, "t.csv")
    options = ["--label", "income", "--missing", "mean"]
    call("convert", "t.csv", "s.store", *options, "--no-shuffle")
    store = RowStore.open("s.store")
    assert store.classes == ("<=50K", ">50K")
    labels = np.array(store.classes)[store.y]
    np.testing.assert_array_equal(labels, frame.income)
    call("train", "t.csv", "direct", *options)
    call("train", "s.store", "m")
    (block,) = store.blocks()
    direct = LinearSVC(random_state=0).fit(block.X, labels)
    np.testing.assert_allclose(load_model("direct").coef_, direct.coef_, rtol=1e-12)
    model = load_model("m")
    assert model.classes_.tolist() == ["<=50K", ">50K"]
    assert model.certificate_.certified
    names = load_model("direct").feature_names_in_.tolist()
    assert model.feature_names_in_.tolist() == names
    for data in ("t.csv", "s.store"):
        report = json.loads(call("score", data, "m", "--json").stdout)
        assert report["accuracy"] == direct.score(block.X, labels)
    call("convert", "t.csv", "t.csv", "two.store", *options)
    assert RowStore.open("two.store").n_samples == 2 * len(frame)
    call("convert", "t.csv", "dropped", "--label", "income", "--missing", "drop")
    assert RowStore.open("dropped").n_samples == len(frame.dropna())


def test_rows_with_gaps_are_left_out_but_not_in_prediction() -> None:
    frame = adult()
    plain(frame, "t.csv")
    whole = frame.dropna()
    plain(whole, "whole.csv")
    told = call("train", "t.csv", "m", "--label", "income", "--missing", "drop")
    gone = len(frame) - len(whole)
    assert f"{gone} rows with missing values left out" in told.stderr
    call("train", "whole.csv", "n", "--label", "income")
    np.testing.assert_array_equal(load_model("m").coef_, load_model("n").coef_)
    assert "m is within" in call("certify", "t.csv", "m").stdout
    assert "the value is missing; fill it" in refused("predict", "t.csv", "m")
    text = "a,w,y\n1,1,2.5\n2,,3.5\n3,1,\n4,1,5.5\n,1,2.5\n6,1,2.5\n"
    for kind in ("regression", "classification"):  # labels and weights are dropped too
        Path("t.csv").write_text(text)
        words = ("--task", kind, "--label", "y", "--weight", "w", "--missing", "drop")
        told = call("train", "t.csv", "m", *words).stderr
        assert "3 rows with missing values left out" in told
        call("certify", "t.csv", "m")
        text = text.replace("2.5", "two").replace("5.5", "five")


def test_weights_are_a_column_or_a_file() -> None:
    frame = adult(400).dropna()
    weight = np.random.default_rng(0).integers(1, 5, len(frame)).astype(float)
    plain(frame, "t.csv")
    plain(frame.assign(w=weight), "w.csv")
    np.savetxt("weights", weight)
    call("train", "w.csv", "m", "--label", "income", "--weight", "w")
    call("train", "t.csv", "n", "--label", "income", "-W", "weights")
    X = pandas.get_dummies(frame.drop(columns="income"), dtype=float, prefix_sep="=")
    model = load_model("m")
    same = LinearSVC(random_state=0)
    same.fit(X[model.feature_names_in_].to_numpy(), frame.income, weight)
    np.testing.assert_array_equal(model.coef_, same.coef_)
    np.testing.assert_array_equal(load_model("n").coef_, same.coef_)
    call("certify", "w.csv", "m")
    call("certify", "t.csv", "n", "-W", "weights")
    assert "no weight column 'w'" in refused("certify", "t.csv", "m")
    assert "t.csv: " not in call("predict", "t.csv", "m").stderr
    call("convert", "w.csv", "s", "--label", "income", "--weight", "w", "--no-shuffle")
    np.testing.assert_array_equal(RowStore.open("s").sample_weight, weight)
    write("data", [-1, 1])
    np.savetxt("weights", np.arange(60.0))
    call("train", "data", "k", "-W", "weights")
    Path("odd").write_text("1\nmany\n")
    for file, words in (
        ("odd", "is not a file of weights"), ("t.csv", "is not a file of weights"),
    ):  # fmt: skip
        assert words in refused("train", "data", "k2", "-W", file)
    np.savetxt("odd", np.arange(3.0))
    assert "odd has 3 entries, but there are more rows" in refused(
        "train", "data", "k2", "-W", "odd"
    )
    np.savetxt("odd", -np.arange(60.0))
    assert "negative" in refused("train", "data", "k2", "-W", "odd")


@pytest.mark.parametrize("kind", ["text", "csv", "npz"])
def test_weights_in_a_file_travel_with_a_store(kind: str) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
    weight = rng.random(50) + 0.5
    np.savetxt("w", weight)
    frame = pandas.DataFrame(X, columns=[*"abc"]).assign(y=y)
    rows = [f"{label} 1:{a} 2:{b} 3:{c}" for (a, b, c), label in zip(X, y, strict=True)]
    Path("text").write_text("# 1 1:2\n\n" + "\n # one\n".join(rows))
    frame.to_csv("csv", index=False)
    np.savez("npz", X=X, y=y)
    os.rename("npz.npz", "npz")
    call("convert", kind, "s", "-W", "w", "--no-shuffle")
    np.testing.assert_array_equal(RowStore.open("s").sample_weight, weight)
    call("train", "s", "m", "--tol", "1e-6")
    call("train", kind, "n", "-W", "w", "--tol", "1e-6")
    np.testing.assert_allclose(load_model("m").coef_, load_model("n").coef_, rtol=1e-2)
    assert "a store, whose rows are in random order; give --weights to convert" in (
        refused("train", "s", "m", "-W", "w")
    )
    for size, words in ((49, "there are more rows"), (51, "there are 50 rows")):
        np.savetxt("w", np.ones(size))
        assert f"--weights has {size} entries, but {words}" in refused(
            "convert", kind, "other", "-W", "w"
        )


def test_rows_that_are_left_out_keep_no_weight() -> None:
    frame = adult(400)
    weight = np.arange(1.0, 401.0)
    plain(frame, "t.csv")
    np.savetxt("w", weight)
    words = ("t.csv", "--label", "income", "--missing", "drop", "-W", "w")
    call("convert", *words, "s", "--no-shuffle")
    kept = weight[frame.workclass.notna()]
    np.testing.assert_array_equal(RowStore.open("s").sample_weight, kept)
    told = call("train", *words, "m").stderr
    gone = f"{int(frame.workclass.isna().sum())} rows with missing values left out."
    assert told.count("left out") == told.count(gone) == 1
    call("certify", "t.csv", "m", "-W", "w")
    plain(frame.assign(w=weight), "t.csv")
    assert "w and --weight w exclude each other" in refused(
        "train", "t.csv", "m2", "--label", "income", "--weight", "w", "-W", "w",
        "--missing", "drop",
    )  # fmt: skip


def test_a_csv_in_a_zip_and_svmlight_text_with_a_mark() -> None:
    plain(adult().dropna(), "t.csv")
    with zipfile.ZipFile("t.zip", "w") as archive:
        archive.write("t.csv")
    for name in ("t.csv", "t.zip"):
        call("train", name, f"{name}.model", "--label", "income")
    coef = [load_model(f"{name}.model").coef_ for name in ("t.csv", "t.zip")]
    np.testing.assert_array_equal(*coef)
    call("convert", "t.zip", "s", "--label", "income", "--no-shuffle")
    assert RowStore.open("s").n_samples == len(pandas.read_csv("t.csv"))
    with zipfile.ZipFile("two.zip", "w") as archive:
        archive.write("t.csv")
        archive.writestr("other.csv", "a")
    assert "it has 2 files; unpack it" in refused("train", "two.zip", "m")
    write("data", [-1, 1])
    Path("marked").write_bytes(b"\xef\xbb\xbf" + Path("data").read_bytes())
    for name in ("data", "marked"):
        call("train", name, f"{name}.model")
    coef = [load_model(f"{name}.model").coef_ for name in ("data", "marked")]
    np.testing.assert_array_equal(*coef)


WORDS = "spam qid:1 1:3 2:1\nham qid:1 1:-1\nspam qid:2 1:2\nham qid:2 1:-2 2:1\n" * 6


@pytest.mark.parametrize("command", ["train", "train, store", "tune"])
def test_svmlight_text_with_words_and_queries(command: str) -> None:
    Path("t").write_text(WORDS)
    Path("new").write_text(WORDS.replace("qid:1 ", "").replace("qid:2 ", ""))
    source, outputs = "t", ["m"]
    if command == "train, store":
        source = "s"
        assert call("convert", "t", "s").stderr.count("qid is not used") == 1
        assert RowStore.open("s").classes == ("ham", "spam")
    told = call(command.split(",")[0], source, *outputs).stderr
    assert told.count("qid is not used") == (source == "t")
    assert call("predict", "t", "m").stdout == "spam\nham\n" * 12
    found = call("score", "new", "m")
    assert "accuracy 100.00 %" in found.stdout
    assert "qid" not in found.stderr
    assert "accuracy 100.00 %" in call("predict", "t", "m", "labels").stderr
    if command == "train":
        assert "proved" not in call("certify", "t", "m").stderr
        assert "ham: 12, spam: 12" in call("inspect", "t").stdout
        assert call("path", "t", "--n-Cs", "2").stdout


def test_onnx_has_the_description_of_the_columns() -> None:
    onnx = pytest.importorskip("onnx")
    plain(adult().dropna(), "t.csv")
    call("train", "t.csv", "m", "--label", "income")
    call("export", "m", "m.onnx")
    (entry,) = onnx.load("m.onnx").metadata_props
    assert entry.key == "dualgap.columns"
    assert entry.value == load_model("m", return_notes=True)[1]["columns"]


def test_the_faults_of_all_columns_are_told_at_once() -> None:
    """The first fault of a column is told; columns with the same one share it."""
    rows = [
        f"Name {i},{'' if i % 7 == 3 else i % 50},2020-01-{i % 28 + 1:02d},"
        f"{'' if i == 2 else 'ABC'[i % 3]},{i},{i % 2}"
        for i in range(300)
    ]
    Path("t.csv").write_text("\n".join(["name,age,day,deck,fare,label", *rows]) + "\n")
    told = refused("train", "t.csv", "m")
    assert told.startswith("dualgap: t.csv: line 5, column 2 ('age') and line 4, col")
    assert "column 4 ('deck'): the value is missing; fill it with --missing" in told
    assert "; and column 'day': '2020-01-01' is a date" in told
    assert "; and it has more than 100 different words in 'name' (300); leave" in told
    assert "with --columns -day,-name, or keep them with --one-hot name" in told
    options = ("--missing", "most-frequent", "--columns", "-day,-name")
    call("train", "t.csv", "m", *options)
    assert "accuracy" in call("score", "t.csv", "m").stdout
    lines = Path("t.csv").read_text().splitlines()
    lines[20:22] = ["Name 1,x,2020-01-01,A,inf,0", "Name 2,1,2020-01-01,?,1,0"]
    Path("new.csv").write_text("\n".join(lines) + "\n")
    for command in ("score", "predict"):
        told = refused(command, "new.csv", "m")
        assert "line 21, column 2 ('age'): expected a finite number, found 'x'" in told
        assert "; and line 21, column 5 ('fare'): expected a finite number" in told
    told = refused("convert", "new.csv", "s", "--columns", "age,fare,deck")
    assert "line 4, column 4 ('deck'): the value is missing" in told
    assert told.count("column 5 ('fare')") == told.count("column 2 ('age')") == 1


def test_faults_of_an_arrow_table_are_told_at_once() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    days = np.array(["2020-01-01", "2020-01-02"], "datetime64[D]")
    columns = {"a": [1.0, None], "b": [None, 2.0], "day": days, "c": [np.inf, 1.0]}
    frame = pyarrow.table(columns | {"y": [0, 1]})
    pytest.importorskip("pyarrow.parquet").write_table(frame, "t.parquet")
    told = refused("train", "t.parquet", "m")
    assert "t.parquet: row 2, column 'a' and row 1, column 'b': the value is" in told
    assert "; and column 'day' has dates or times" in told
    assert "; and row 1, column 'c': the value is infinite" in told


def test_columns_are_left_out_by_a_minus() -> None:
    Path("t.csv").write_text("a,b c,-d,kind,y\n1,x,2,p,no\n2,y,1,q,yes\n3,x,4,p,no\n")

    def features(*columns: str) -> list[str]:
        call("train", "t.csv", "m", "--label", "y", *columns)
        return load_model("m").feature_names_in_.tolist()

    words = ["kind=p", "kind=q"]
    assert features("--columns", "-b c,-a") == ["-d", *words]
    assert features("--columns=-2,-1") == ["-d", *words]
    assert features("--columns", "a,-d") == ["a", "-d"]  # a column of that name
    assert features("--columns", "-d") == ["-d"]
    call("convert", "t.csv", "s", "--label", "y", "--columns", "-b c,-kind")
    assert RowStore.open("s").features.names == ["a", "-d"]
    call("train", "t.csv", "m", "--columns", "-b c,-kind")  # the words that are left
    assert load_model("m").classes_.tolist() == ["no", "yes"]
    told = refused("train", "t.csv", "m2", "--label", "y", "--columns", "a,-kind")
    assert "--columns a,-kind has columns to use and, with a minus, columns" in told
    assert "no column 'e'" in refused("train", "t.csv", "m2", "--columns", "-e")
    Path("t.csv").write_text("a,b c,y\n1,$2,0\n2,$3,1\n")
    told = refused("train", "t.csv", "m2")
    assert "as words with --one-hot 'b c'" in told
    rows = "2020-01-31,p,1,0\n2020-02-28,q,2,1\n2020-03-31,p,3,0\n"
    Path("t.csv").write_text(f'"day, first","a,b",c,y\n{rows}')
    told = refused("train", "t.csv", "m2")
    assert """leave it out with --columns '"-day, first"'\n""" in told
    assert features("--columns", '"-day, first"') == ["a,b=p", "a,b=q", "c"]
    assert features("--columns", '"a,b", c') == ["a,b=p", "a,b=q", "c"]

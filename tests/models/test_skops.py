"""skops keeps the estimators, and names no type beyond those in docs/serving.md."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dualgap import SVC, LinearSVC
from dualgap.kernel import RBF
from dualgap.losses import SquaredHinge
from dualgap.solvers import DCD

skops = pytest.importorskip("skops.io", reason="skops is not installed")

PAGE = Path(__file__).resolve().parents[2] / "docs" / "serving.md"


def documented():
    """The types that the page tells readers to trust."""
    listed = re.search(r"TRUSTED = \[(.*?)\]", PAGE.read_text("utf-8"), re.DOTALL)
    return re.findall(r"\"([\w.]+)\"", listed.group(1))


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(),
        LinearSVC(loss=SquaredHinge(), solver=DCD(), random_state=0),
        SVC(),
        SVC(kernel="poly", decision_function_shape="ovo"),
        SVC(kernel=RBF(gamma=0.5), solver="nystroem", random_state=0),
    ],
    ids=["linear", "records", "rbf", "poly", "landmarks"],
)
def test_dumped_and_loaded(model):
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), model).fit(X, y)
    data = skops.dumps(pipeline)
    unknown = set(skops.get_untrusted_types(data=data))
    own = {name for name in unknown if name.startswith("dualgap.")}
    assert unknown == own
    loaded = skops.loads(data, trusted=[*documented(), *extra(model)])
    np.testing.assert_array_equal(
        loaded.decision_function(X), pipeline.decision_function(X)
    )
    assert [str(c) for c in loaded[-1].certificate_] == [
        str(c) for c in model.certificate_
    ]
    assert loaded[-1].get_params() == model.get_params()


def extra(model):
    """Records that were given as parameters: trusted by who chose them."""
    records = [p for p in vars(model).values() if type(p).__module__[:8] == "dualgap."]
    return [f"{type(r).__module__}.{type(r).__qualname__}" for r in records]


def test_untrusted_types_are_refused():
    X, y = load_iris(return_X_y=True)
    data = skops.dumps(LinearSVC().fit(X, y))
    with pytest.raises(TypeError, match="Untrusted types"):
        skops.loads(data)

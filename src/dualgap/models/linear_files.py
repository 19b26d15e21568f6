"""Linear models in model files: their tensors, and checks that kernel models share.

They are set and read by their attributes, because the command line has models of its
own and does without scikit-learn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..certificate import Certificate
from ..data import model_file as file
from ..data.model_file import Record, Tensors
from ..problems.reductions import certificate_of, reduction_of

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator


def certificates_of(record: Record, problems: int) -> list[Certificate]:
    """Return the certificates of a record, after checking how many there are."""
    certificates = [file.certificate(fields) for fields in record["certificates"]]
    if len(certificates) != problems:
        raise ValueError(
            f"it has {len(certificates)} certificates, but should have {problems}"
        )
    return certificates


def support_of(tensors: Tensors, n: int) -> Any:
    """Return the indices of the support vectors among n rows, after checking them."""
    support = tensors["support"].astype(np.intp)
    if support.size and not 0 <= support.min() <= support.max() < n:
        raise ValueError(f"support has indices outside the {n} training rows")
    return support


def take_linear(model: BaseEstimator, duals: bool) -> tuple[Record, Tensors]:
    """Return the extra fields and the tensors of a linear model."""
    if duals:
        from ..estimators.base import need_duals

        need_duals(model, "duals=True")
    fields, tensors = file.linear_parts(model)
    if hasattr(model, "classes_"):
        fields["labels"] = getattr(model, "_labels", None)
    if duals:
        fields["n_rows"] = int(model._n_rows)
        tensors["support"] = np.ascontiguousarray(model.support_, dtype="<i8")
        tensors |= file.matrix_tensors("dual_coef", model.dual_coef_)
    return fields, tensors


def models_of(model: BaseEstimator) -> int:
    """Return the number of models of an estimator without classes: its quantiles."""
    if getattr(model, "loss", "") != "quantile":
        return 1
    return int(np.size(model.quantile))


def make_linear(model: BaseEstimator, record: Record, tensors: Tensors) -> None:
    """Set the attributes of a linear model from the fields and tensors of a file."""
    classes = len(getattr(model, "classes_", "ab"))  # without classes, count as two
    kind = getattr(model, "multi_class", "ovr")
    if record.get("labels") is not None:
        if kind != "ovr" or record["labels"] not in ("dense", "sparse"):
            raise ValueError(f"labels in its record is {record['labels']!r}")
        model._labels = record["labels"]
        kind = "labels"
    reduction, together = reduction_of(kind, classes), kind == "crammer_singer"
    problems = len(reduction) if not together or classes == 2 else classes
    n, d = record["n_rows"], model.n_features_in_
    name = record["estimator"]
    if name == "LinearSVR":
        problems = models_of(model)
    flat = name == "LinearSVR" and problems == 1
    expected: dict[str, file.Shape] = {
        "coef": (("F64",), (d,) if flat else (problems, d)),
        "intercept": (("F64",), (problems,)),
    }
    if n is not None:
        size = tensors["support"].size if "support" in tensors else -1
        expected["support"] = (("I64",), (-1,))
        tables = classes if together else problems
        if kind == "ovo":
            tables = classes - 1
        expected |= file.matrix_shapes(tensors, "dual_coef", tables, size)
    if "n_support" in tensors and name == "LinearSVC":
        expected["n_support"] = (("I64",), (classes,))
    file.expect_tensors(tensors, expected)
    one = together or (name == "LogisticRegression" and kind != "labels")
    certificates = certificates_of(record, 1 if one else problems)
    if record["coef_order"] not in ("C", "F"):
        raise ValueError(f"coef_order in its record is {record['coef_order']!r}")
    model.coef_ = np.asarray(tensors["coef"], order=record["coef_order"])
    model.intercept_ = tensors["intercept"]
    model.certificate_ = certificate_of(model, certificates)
    model.n_iter_ = max(certificate.epochs for certificate in certificates)
    if "n_support" in expected:
        counts = tensors["n_support"]
        if not 0 <= counts.min() <= counts.max() < 2**31 or (
            n is not None and kind != "labels" and counts.sum() != size
        ):
            raise ValueError("n_support does not match the number of support vectors")
        model.n_support_ = counts.astype(np.int32)
    if name == "LinearOneClassSVM":
        model.offset_ = -model.intercept_
    if n is not None:
        model.support_ = support_of(tensors, n)
        if (np.diff(model.support_) <= 0).any():
            raise ValueError("support is not sorted")
        model.dual_coef_ = file.matrix(tensors, "dual_coef", tables, size)
        model._n_rows, model._fitted_C = n, record["parameters"].get("C", 1.0)

"""Model files of LIBLINEAR and LIBSVM.

The files are text. Reading checks every value; writing is atomic.

LIBLINEAR   solver_type, nr_class, label, nr_feature, bias; then, below `w`, one line
            per feature (the constant one last, if bias >= 0) with one number per
            problem. The first of two labels is the positive one. Crammer and Singer's
            problem has one number per class, even for two. Regression and one-class
            files have no label; one-class files have rho before `w`.
LIBSVM      svm_type, kernel_type and its parameters, nr_class, total_sv, rho, label,
            nr_sv; then, below `SV`, one line per support vector: its coefficients in
            the K - 1 problems of its class, and its entries, numbered from 1. A
            decision is the sum minus rho, and the first class is the positive one.
            Regression and one-class files have one coefficient per line, and neither
            label nor nr_sv.
Source      the READMEs of LIBLINEAR 2.50 and LIBSVM 3.37.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from ..data.atomic import write_atomically

Path = str | os.PathLike[str]
Vector = NDArray[np.float64]
T = TypeVar("T")

#: Losses of classifiers with the l2 penalty, by solver_type.
LIBLINEAR_LOSSES: dict[str, Literal["hinge", "squared_hinge"]] = {
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "MCSVM_CS": "hinge",
}
#: The solver_type of Crammer and Singer's problem.
LIBLINEAR_JOINT = "MCSVM_CS"
#: Losses of regression models, by solver_type; and the solver_type of one-class models.
LIBLINEAR_RESIDUAL_LOSSES: dict[
    str, Literal["epsilon_insensitive", "squared_epsilon_insensitive"]
] = {
    "L2R_L2LOSS_SVR": "squared_epsilon_insensitive",
    "L2R_L2LOSS_SVR_DUAL": "squared_epsilon_insensitive",
    "L2R_L1LOSS_SVR_DUAL": "epsilon_insensitive",
}
LIBLINEAR_ONE_CLASS = "ONECLASS_SVM"
LIBSVM_KINDS = ("c_svc", "epsilon_svr", "one_class")
LIBSVM_KERNELS = ("linear", "polynomial", "rbf", "sigmoid")
_LARGEST = 2**31 - 1  # both packages count with int


@dataclass(frozen=True)
class LiblinearFile:
    """Content of a LIBLINEAR file.

    `w` has shape (problems, features), or (problems, features + 1) if bias >= 0, with
    one problem for two classes, and a row per class for Crammer and Singer's problem.
    Regression and one-class models have no labels; only one-class models have a rho.
    """

    solver_type: str
    labels: tuple[int, ...]
    features: int
    bias: float
    w: Vector
    rho: float | None = None


@dataclass(frozen=True)
class LibsvmFile:
    """Content of a LIBSVM file.

    `coef` has shape (K - 1, n_SV) and `vectors` (n_SV, features). Regression and
    one-class models have neither labels nor sizes, and K = 2.
    """

    kernel: str
    degree: int
    gamma: float
    coef0: float
    labels: tuple[int, ...]
    sizes: tuple[int, ...]
    rho: Vector
    coef: Vector
    vectors: sparse.csr_matrix
    kind: str = "c_svc"


# ------------------------------------------------------------------------- writing


def write_liblinear_file(path: Path, model: LiblinearFile) -> None:
    """Write a LIBLINEAR file atomically."""
    label = f"label {_numbers(model.labels)}\n" if model.labels else ""
    rho = "" if model.rho is None else f"rho {model.rho!r}\n"
    with write_atomically(path, "w") as file:
        file.write(
            f"solver_type {model.solver_type}\nnr_class {len(model.labels) or 2}\n"
            f"{label}nr_feature {model.features}\nbias {model.bias!r}\n{rho}w\n"
        )
        for line in model.w.T:
            file.write(_numbers(line) + " \n")


def write_libsvm_file(path: Path, model: LibsvmFile) -> None:
    """Write a LIBSVM file atomically."""
    lines = [f"svm_type {model.kind}", f"kernel_type {model.kernel}"]
    if model.kernel == "polynomial":
        lines.append(f"degree {model.degree}")
    if model.kernel != "linear":
        lines.append(f"gamma {model.gamma!r}")
    if model.kernel in ("polynomial", "sigmoid"):
        lines.append(f"coef0 {model.coef0!r}")
    lines += [
        f"nr_class {len(model.labels) or 2}",
        f"total_sv {model.vectors.shape[0]}",
        f"rho {_numbers(model.rho)}",
    ]
    if model.labels:
        lines += [f"label {_numbers(model.labels)}", f"nr_sv {_numbers(model.sizes)}"]
    lines.append("SV")
    rows = model.vectors
    with write_atomically(path, "w") as file:
        file.write("\n".join(lines) + "\n")
        for k, coef in enumerate(model.coef.T):
            at = slice(rows.indptr[k], rows.indptr[k + 1])
            entries = zip(rows.indices[at], rows.data[at], strict=True)
            text = " ".join(f"{j + 1}:{float(x)!r}" for j, x in entries)
            file.write(f"{_numbers(coef)} {text}\n")


def _numbers(values: Sequence[Any] | Vector) -> str:
    return " ".join(repr(value) for value in np.asarray(values).tolist())


# ------------------------------------------------------------------------- reading


class _Lines:
    """Lines of a file, with the current position for error messages."""

    def __init__(self, path: Path, first: str, package: str) -> None:
        self.path = os.fsdecode(path)
        with open(path, encoding="ascii", errors="replace") as file:
            self.lines = file.read().split("\n")
        self.at = 0
        if not any(line.split()[:1] == [first] for line in self.lines):
            raise ValueError(
                f"{self.path} is not a model file of {package}, for it has no line "
                f"{first}; give a file that {package} has written"
            )

    def error(self, message: str) -> ValueError:
        return ValueError(f"{self.path}, line {self.at}: {message}")

    def header(self, end: str) -> dict[str, list[str]]:
        """Read the header: the fields before the line `end`."""
        fields: dict[str, list[str]] = {}
        while self.at < len(self.lines):
            words = self.lines[self.at].split()
            self.at += 1
            if words == [end]:
                return fields
            if not words or words[0] in fields:
                raise self.error(f"expected a field, found {self.lines[self.at - 1]!r}")
            fields[words[0]] = words[1:]
        raise self.error(f"the file ends before the line {end!r}")

    def body(self, count: int) -> Iterator[list[str]]:
        """Yield the words of the `count` lines after the header."""
        rest = self.lines[self.at :]
        while rest and not rest[-1].strip():
            rest.pop()
        if len(rest) != count:
            raise self.error(f"expected {count} more lines, found {len(rest)}")
        for line in rest:
            self.at += 1
            yield line.split()

    def values(self, words: list[str], count: int, what: str) -> list[float]:
        """Return the words as `count` finite numbers."""
        try:
            found = [_number(word, float) for word in words]
        except ValueError:
            found = []
        if len(found) != count or not all(map(math.isfinite, found)):
            raise self.error(f"expected {count} finite numbers for {what}")
        return found

    def field(
        self, fields: dict[str, list[str]], name: str, kind: Callable[[str], T]
    ) -> T:
        """Return the single value of a field."""
        words = fields.get(name, [])
        try:
            (word,) = words
            value = _number(word, kind)
        except ValueError:
            raise self.error(
                f"expected one value of {name!r}, found {' '.join(words)!r}"
            ) from None
        if isinstance(value, (int, float)) and not abs(value) <= 1e300:
            raise self.error(f"{name} {value!r} is not a finite number")
        return value

    def count(self, fields: dict[str, list[str]], name: str, least: int) -> int:
        value = self.field(fields, name, int)
        if not least <= value <= _LARGEST:
            raise self.error(f"{name} {value} is not between {least} and {_LARGEST}")
        return value

    def labels(self, fields: dict[str, list[str]], classes: int) -> tuple[int, ...]:
        words = fields.get("label", [])
        try:
            found = tuple(_number(word, int) for word in words)
        except ValueError:
            found = ()
        if any(abs(label) > _LARGEST for label in found):
            found = ()
        if len(found) != classes or len(set(found)) != classes:
            raise self.error(
                f"expected {classes} different labels, whole numbers below 2**31"
            )
        return found


def _number(word: str, kind: Callable[[str], T]) -> T:
    """Return a word, or a number as C reads it; Python would also accept 1_000."""
    if kind is not str and "_" in word:
        raise ValueError
    return kind(word)


def read_liblinear_file(path: Path) -> LiblinearFile:
    """Read a LIBLINEAR file with an SVM that has the l2 penalty."""
    lines = _Lines(path, "solver_type", "LIBLINEAR")
    fields = lines.header("w")
    kind = lines.field(fields, "solver_type", str)
    known = (*LIBLINEAR_LOSSES, *LIBLINEAR_RESIDUAL_LOSSES, LIBLINEAR_ONE_CLASS)
    if kind not in known:
        raise lines.error(
            f"solver_type {kind} is not supported; it must be one of {', '.join(known)}"
        )
    classes = lines.count(fields, "nr_class", 2)
    features = lines.count(fields, "nr_feature", 0)
    bias = lines.field(fields, "bias", float)
    labels = lines.labels(fields, classes) if kind in LIBLINEAR_LOSSES else ()
    single = not labels or (classes == 2 and kind != LIBLINEAR_JOINT)
    problems = 1 if single else classes
    one_class = kind == LIBLINEAR_ONE_CLASS
    if one_class and bias >= 0.0:
        raise lines.error(f"bias {bias!r} is invalid: a model of {kind} has none")
    rho = lines.field(fields, "rho", float) if one_class else None
    rows = features + (bias >= 0.0)
    w = [lines.values(words, problems, "w") for words in lines.body(rows)]
    return LiblinearFile(
        kind, labels, features, bias, np.array(w).reshape(rows, problems).T, rho
    )


def read_libsvm_file(path: Path) -> LibsvmFile:
    """Read a LIBSVM file with a C-SVC, an epsilon-SVR or a one-class SVM.

    The number of columns is the largest index of a support vector.
    """
    lines = _Lines(path, "svm_type", "LIBSVM")
    fields = lines.header("SV")
    kind = lines.field(fields, "svm_type", str)
    if kind not in LIBSVM_KINDS:
        raise lines.error(
            f"svm_type {kind} is not supported; it must be one of "
            f"{', '.join(LIBSVM_KINDS)}"
        )
    kernel = lines.field(fields, "kernel_type", str)
    if kernel not in LIBSVM_KERNELS:
        raise lines.error(
            f"kernel_type {kernel} is not supported; it must be one of "
            f"{', '.join(LIBSVM_KERNELS)}"
        )
    classes = lines.count(fields, "nr_class", 2)
    total = lines.count(fields, "total_sv", 0)
    labels = lines.labels(fields, classes) if kind == "c_svc" else ()
    classes = len(labels) or 2
    gamma = 0.0
    if kernel != "linear":
        gamma = lines.field(fields, "gamma", float)
        if not gamma > 0.0:
            raise lines.error(f"gamma {gamma!r} is not positive")
    pairs = classes * (classes - 1) // 2
    rho = lines.values(fields.get("rho", []), pairs, "rho")
    sizes: list[int] = []
    if labels:
        found = lines.values(fields.get("nr_sv", []), classes, "nr_sv")
        sizes = [int(x) for x in found]
        if sizes != found or min(sizes) < 0 or sum(sizes) != total:
            raise lines.error(
                f"nr_sv {found} must be counts with the sum total_sv {total}"
            )
    coef, data, indices, indptr = [], [], [], [0]
    for words in lines.body(total):
        coef.append(lines.values(words[: classes - 1], classes - 1, "coefficients"))
        last = 0
        for word in words[classes - 1 :]:
            column, colon, value = word.partition(":")
            if not colon or not column.isdecimal() or not last < int(column) < _LARGEST:
                raise lines.error(
                    f"expected index:value with increasing indices, found {word!r}"
                )
            last = int(column)
            indices.append(last - 1)
            data.extend(lines.values([value], 1, "an entry"))
        indptr.append(len(data))
    vectors = sparse.csr_matrix(
        (np.array(data), np.array(indices, np.int32), np.array(indptr, np.int32)),
        shape=(total, max(indices, default=-1) + 1),
    )
    return LibsvmFile(
        kernel,
        lines.count(fields, "degree", 1) if kernel == "polynomial" else 3,
        gamma,
        lines.field(fields, "coef0", float) if "coef0" in fields else 0.0,
        labels,
        tuple(sizes),
        np.array(rho),
        np.array(coef).reshape(total, classes - 1).T,
        vectors,
        kind,
    )

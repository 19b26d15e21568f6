"""Import and export of models in the file formats of LIBLINEAR and LIBSVM."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..estimators.base import own
from ..estimators.linear_svc import LinearSVC
from ..estimators.novelty import LinearOneClassSVM, OneClassSVM
from ..estimators.nu import NuSVC, NuSVR
from ..estimators.parameters import KERNELS, kernel_named
from ..estimators.regression import SVR, LinearSVR
from ..estimators.svc import SVC, KernelClassifier
from ..kernels.functions import Kernel
from ..losses import get_loss
from ..problems.duals import dense_table
from ..problems.reductions import Joint, OneVsRest, reduction_in, refuse_others
from .peer_files import (
    LIBLINEAR_JOINT,
    LIBLINEAR_LOSSES,
    LIBLINEAR_ONE_CLASS,
    LIBLINEAR_RESIDUAL_LOSSES,
    LIBSVM_KERNELS,
    LiblinearFile,
    LibsvmFile,
    Path,
    read_liblinear_file,
    read_libsvm_file,
    write_liblinear_file,
    write_libsvm_file,
)

#: LIBSVM's name of a kernel, where it is another.
_NAMES = {"poly": "polynomial"}
_KERNELS = {name: own for own, name in _NAMES.items()}


def read_liblinear(
    path: Path, *, C: float = 1.0, epsilon: float = 0.1, nu: float = 0.5
) -> LinearSVC | LinearSVR | LinearOneClassSVM:
    """Read a linear SVM that LIBLINEAR's ``train`` has written.

    The file does not contain C, epsilon and nu; :func:`certify` needs them.

    Parameters
    ----------
    path : str or path-like
        The file.
    C : float, default=1.0
        C that the model was trained with (-c).
    epsilon : float, default=0.1
        epsilon that a regression model was trained with (-p).
    nu : float, default=0.5
        nu that a one-class model was trained with (-n).

    Returns
    -------
    LinearSVC, LinearSVR or LinearOneClassSVM
        The model, ready to predict. It has no certificate.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is malformed, or its model has an unsupported loss or penalty.
    """
    model = read_liblinear_file(path)
    if not model.labels:
        return _single(model, C, epsilon, nu)
    classes, order = np.unique(np.array(model.labels), return_inverse=True)
    if len(model.w) == 1:  # LIBLINEAR's positive class is the first label
        w = model.w if order[0] == 1 else -model.w
    else:
        w = model.w[np.argsort(order)]
        w = w[1:] - w[:1] if len(w) == 2 else w
    scaling = max(model.bias, 0.0)
    joint = model.solver_type == LIBLINEAR_JOINT
    svm = LinearSVC(
        C=C,
        loss=LIBLINEAR_LOSSES[model.solver_type],
        fit_intercept=scaling > 0.0,
        intercept_scaling=scaling or 1.0,
        multi_class="crammer_singer" if joint else "ovr",
    )
    svm.coef_ = np.asfortranarray(w[:, : model.features])  # its rows are sparse
    svm.intercept_ = scaling * w[:, -1] if scaling else np.zeros(len(w))
    svm.classes_ = classes
    svm.n_features_in_ = model.features
    return svm


def _single(
    model: LiblinearFile, C: float, epsilon: float, nu: float
) -> LinearSVR | LinearOneClassSVM:
    """Return the regression or one-class model of a file."""
    w = model.w[0]
    svm: LinearSVR | LinearOneClassSVM
    if model.rho is not None:
        svm = LinearOneClassSVM(nu)
        svm.coef_, svm.offset_ = w[None, :].copy(), np.array([model.rho])
        svm.intercept_ = -svm.offset_
    else:
        scaling = max(model.bias, 0.0)
        svm = LinearSVR(
            epsilon,
            C=C,
            loss=LIBLINEAR_RESIDUAL_LOSSES[model.solver_type],
            fit_intercept=scaling > 0.0,
            intercept_scaling=scaling or 1.0,
        )
        svm.coef_ = w[: model.features].copy()
        svm.intercept_ = np.array([scaling * w[-1] if scaling else 0.0])
    svm.n_features_in_ = model.features
    return svm


def write_liblinear(
    model: LinearSVC | LinearSVR | LinearOneClassSVM, path: Path
) -> None:
    """Write a linear model as a file that LIBLINEAR's ``predict`` reads.

    Parameters
    ----------
    model : LinearSVC, LinearSVR or LinearOneClassSVM
        A fitted model of dualgap, or a LinearSVC or LinearSVR of scikit-learn, patched
        or not. The classes of a LinearSVC must be whole numbers.
    path : str or path-like
        File to write; it is written atomically.

    Raises
    ------
    OSError
        If the file cannot be written.
    TypeError
        If the model is not linear.
    ValueError
        If a class is not a whole number, or LIBLINEAR does not have the loss or the
        problems of several classes, such as pairs.
    """
    model = own(model)
    check_is_fitted(model)
    svm = hasattr(model, "loss") and hasattr(model, "intercept_scaling")
    if not (svm or isinstance(model, LinearOneClassSVM)):
        kernel = hasattr(model, "_fitted_kernel")
        remedy = "use write_libsvm" if kernel else "give a linear SVM"
        raise _other_kind(model, "LIBLINEAR", "linear", remedy)
    if isinstance(model, LinearOneClassSVM):
        rho = float(model.offset_[0])
        write_liblinear_file(
            path,
            LiblinearFile(
                LIBLINEAR_ONE_CLASS, (), model.n_features_in_, -1.0, model.coef_, rho
            ),
        )
        return
    labels: tuple[int, ...] = ()
    joint = False
    losses: dict[str, str] = {**LIBLINEAR_RESIDUAL_LOSSES}
    if hasattr(model, "classes_"):
        refuse_others(model, "LIBLINEAR", OneVsRest, Joint)
        joint = isinstance(reduction_in(model), Joint)
        labels, losses = _whole(model.classes_, "LIBLINEAR"), {**LIBLINEAR_LOSSES}
        loss = get_loss(model.loss).name
    else:
        loss = str(model.loss)
    kinds = {loss: kind for kind, loss in reversed(losses.items())}
    kinds |= {loss: LIBLINEAR_JOINT} if joint else {}
    if loss not in kinds:
        known = " or ".join(map(repr, sorted(kinds)))
        raise ValueError(
            f"loss={loss!r} is not supported by LIBLINEAR; train with {known}"
        )
    coef = np.atleast_2d(np.asarray(dense_table(model.coef_), dtype=np.float64))
    scaling = float(model.intercept_scaling) if model.fit_intercept else -1.0
    if model.fit_intercept:
        bias = np.broadcast_to(np.asarray(model.intercept_) / scaling, len(coef))
        coef = np.c_[coef, bias]
    if joint and len(coef) == 1:
        coef = np.vstack([-0.5 * coef, 0.5 * coef])
    elif len(labels) == 2:
        labels = labels[::-1]
    write_liblinear_file(
        path, LiblinearFile(kinds[loss], labels, model.n_features_in_, scaling, coef)
    )


def read_libsvm(
    path: Path,
    *,
    C: float = 1.0,
    epsilon: float = 0.1,
    nu: float = 0.5,
    n_features: int | None = None,
) -> SVC | SVR | OneClassSVM:
    """Read an SVM that LIBSVM's ``svm-train`` has written.

    It may be a C-SVC, an epsilon-SVR or a one-class SVM.

    The file does not contain C, epsilon and nu; :func:`certify` needs them.

    Parameters
    ----------
    path : str or path-like
        The file.
    C : float, default=1.0
        C that the model was trained with (-c).
    epsilon : float, default=0.1
        epsilon that a regression model was trained with (-p).
    nu : float, default=0.5
        nu that a one-class model was trained with (-n).
    n_features : int, optional
        Number of features of the data. None uses the largest index in the support
        vectors.

    Returns
    -------
    SVC, SVR or OneClassSVM
        The model, ready to predict. It has no certificate. Its ``support_`` contains
        -1, because the file does not say which rows the support vectors were.

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If the file is malformed, contains an unsupported model or kernel, or has more
        than `n_features` features.
    """
    model = read_libsvm_file(path)
    columns = model.vectors.shape[1]
    if n_features is not None and n_features < columns:
        raise ValueError(
            f"n_features={n_features!r} is too small: {path} has support vectors of "
            f"{columns} features; give {columns} or more"
        )
    name = _KERNELS.get(model.kernel, model.kernel)
    kernel = kernel_named(name, model.degree, model.gamma, model.coef0)
    if not model.labels:
        # Both models decide by the sign of the sum minus rho.
        box: SVR | OneClassSVM = (
            SVR(C=C, epsilon=epsilon, kernel=kernel)
            if model.kind == "epsilon_svr"
            else OneClassSVM(nu=nu, kernel=kernel)
        )
        box.dual_coef_ = np.ascontiguousarray(model.coef)
        box.n_support_ = np.array([model.vectors.shape[0]], np.int32)
        return _filled(box, model.vectors, -model.rho, kernel, n_features or columns)
    labels = np.array(model.labels)
    order = np.argsort(labels)
    edges = np.cumsum([0, *model.sizes])
    own = [slice(edges[k], edges[k + 1]) for k in range(len(labels))]
    coef = np.zeros_like(model.coef)
    intercept = np.empty(len(model.rho))
    file_pairs = {pair: p for p, pair in enumerate(combinations(range(len(labels)), 2))}
    for p, (a, b) in enumerate(combinations(range(len(labels)), 2)):
        i, j = int(order[a]), int(order[b])
        # The first class of a pair is positive; with only two classes, the second is.
        sign = (1.0 if i < j else -1.0) * (-1.0 if len(labels) == 2 else 1.0)
        coef[b - 1, own[i]] = sign * model.coef[j - 1 if i < j else j, own[i]]
        coef[a, own[j]] = sign * model.coef[i - 1 if j < i else i, own[j]]
        intercept[p] = -sign * model.rho[file_pairs[min(i, j), max(i, j)]]
    rows = np.concatenate([np.arange(own[k].start, own[k].stop) for k in order])
    svm = SVC(C=C, kernel=kernel, loss="hinge")
    svm.classes_ = labels[order]
    svm.dual_coef_ = np.ascontiguousarray(coef[:, rows])
    svm.n_support_ = np.array(model.sizes, np.int32)[order]
    vectors = model.vectors[rows]
    return _filled(svm, vectors, intercept, kernel, n_features or columns)


def _filled(
    svm: Any,
    vectors: sparse.csr_matrix,
    intercept: NDArray[np.float64],
    kernel: Kernel,
    columns: int,
) -> Any:
    """Set the attributes that all kernel models have."""
    svm.support_vectors_ = vectors
    svm.support_vectors_.resize(vectors.shape[0], columns)
    svm.support_ = np.full(vectors.shape[0], -1)
    svm.intercept_ = intercept
    svm.n_features_in_ = columns
    svm._fitted_kernel = kernel
    return svm


def find_support(
    model: BaseEstimator, X: sparse.csr_matrix, y: NDArray[np.generic]
) -> None:
    """Find the support vectors of a model of :func:`read_libsvm` among training rows.

    LIBSVM writes values with eight digits. Rows with the same label that agree with a
    support vector in these digits replace it. Models without classes ignore y.
    """
    columns = max(X.shape[1], model.support_vectors_.shape[1])
    rows, vectors = (sparse.csr_matrix(m) for m in (X, model.support_vectors_))
    contents, wanted = _contents(rows), _contents(vectors)
    known: dict[tuple[object, ...], list[int]] = {}
    classes = getattr(model, "classes_", None)
    own = [None] * len(contents) if classes is None else y
    for i in range(rows.shape[0] - 1, -1, -1):  # so that pop() takes the first one
        known.setdefault((own[i], *contents[i]), []).append(i)
    labels = np.repeat([None] if classes is None else classes, model.n_support_)
    for s in range(vectors.shape[0]):
        same = known.get((labels[s], *wanted[s]))
        if not same:
            raise ValueError(
                f"support vector {s + 1}"
                + ("" if classes is None else f" of class {labels[s]}")
                + " is not among the examples"
                + ("" if classes is None else " of that class")
                + "; give the training data of the model"
            )
        model.support_[s] = same.pop()
    model.support_vectors_ = rows[model.support_]
    model.support_vectors_.resize(len(model.support_), columns)
    model.n_features_in_ = columns
    model.shape_fit_ = (rows.shape[0], columns)


def _contents(rows: sparse.csr_matrix) -> list[tuple[bytes, bytes]]:
    """Return columns and values of every row, without zeros, with eight digits."""
    rows = rows.astype(np.float64)
    rows.eliminate_zeros()
    columns = rows.indices.astype(np.int64)
    values = np.char.mod("%.8g", rows.data) if rows.nnz else rows.data
    bounds = rows.indptr
    return [
        (columns[a:b].tobytes(), " ".join(values[a:b]).encode())
        for a, b in pairwise(bounds)
    ]


def write_libsvm(model: SVC | NuSVC | SVR | NuSVR | OneClassSVM, path: Path) -> None:
    """Write a kernel model as a file that LIBSVM's ``svm-predict`` reads.

    Parameters
    ----------
    model : SVC, NuSVC, SVR, NuSVR or OneClassSVM
        A fitted model of dualgap, or a patched one of scikit-learn. Its classes must be
        whole numbers, and its kernel "linear", "poly", "rbf" or "sigmoid".
    path : str or path-like
        File to write; it is written atomically.

    Raises
    ------
    OSError
        If the file cannot be written.
    TypeError
        If the model has no kernel of dualgap.
    ValueError
        If a class is not a whole number, or LIBSVM does not have the kernel or the
        loss.
    """
    model = own(model)
    check_is_fitted(model)
    if not hasattr(model, "_fitted_kernel"):
        linear = hasattr(model, "coef_") and not hasattr(model, "kernel")
        remedy = "use write_liblinear" if linear else "give an SVC of dualgap"
        raise _other_kind(model, "LIBSVM", "kernel", remedy)
    labels: tuple[int, ...] = ()
    kinds = {"SVR": "epsilon_svr", "NuSVR": "nu_svr", "NuSVC": "nu_svc", "SVC": "c_svc"}
    kind, sizes = kinds.get(type(model).__name__, "one_class"), ()
    if isinstance(model, KernelClassifier):
        labels = _whole(model.classes_, "LIBSVM")
        sizes = tuple(model.n_support_.tolist())
    if getattr(model, "loss", "") == "quantile":
        raise ValueError(
            "loss='quantile' is not supported by LIBSVM; use save_model or to_onnx"
        )
    kernel = model._fitted_kernel
    name = _NAMES.get(kernel.name, kernel.name)
    if name not in LIBSVM_KERNELS or type(kernel) is not KERNELS.get(kernel.name):
        raise ValueError(
            f"kernel={kernel!r} is not supported by LIBSVM; use 'linear', 'poly', "
            "'rbf' or 'sigmoid'"
        )
    # With two classes, LIBSVM's positive class is the first, and dualgap's the second.
    sign = -1.0 if len(labels) == 2 else 1.0
    write_libsvm_file(
        path,
        LibsvmFile(
            name,
            getattr(kernel, "degree", 3),
            float(getattr(kernel, "gamma", 0.0)),
            float(getattr(kernel, "coef0", 0.0)),
            labels,
            sizes,
            -sign * model.intercept_,
            sign * model.dual_coef_,
            sparse.csr_matrix(model.support_vectors_).sorted_indices(),
            kind,
        ),
    )


def _other_kind(
    model: BaseEstimator, package: str, kind: str, remedy: str
) -> TypeError:
    """Return the error for a model that a file of a package cannot hold."""
    if hasattr(model, "best_estimator_"):
        remedy = "give its best_estimator_"
    return TypeError(
        f"model is of type {type(model).__name__}, but {package}'s files are for "
        f"{kind} models; {remedy}"
    )


def _whole(classes: NDArray[np.generic], package: str) -> tuple[int, ...]:
    """Return class labels as whole numbers."""
    try:
        found = tuple(int(label) for label in classes)
    except ValueError:
        found = ()
    if any(a != b or abs(a) >= 2**31 for a, b in zip(found, classes, strict=False)) or (
        len(found) != len(classes)
    ):
        raise ValueError(
            f"classes {np.asarray(classes).tolist()} are not supported by {package}; "
            "number the classes with whole numbers below 2**31 before fitting"
        )
    return found

"""Paths of kernel SVMs: models for rising C, each with a certificate."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from ..certificate import Certificate
from ..data import model_file as file
from ..data.types import Matrix, MatrixLike, Parameters
from ..kernels.functions import Callable, Kernel, Precomputed, refuse_items, takes_items
from ..kernels.gram import points_of
from ..losses import Vector
from ..problems.reductions import OneVsOne
from ..training.batch import begin
from .base import tell
from .folds import Fold, FoldFit, run, why_ended
from .input import checked_weights, refuse_masks, validated
from .parameters import KERNELS
from .path import gaps_of, warn_of_path
from .search import grid_of
from .svc import SVC

_FORMAT = "dualgap-path"


@dataclass(frozen=True, eq=False)
class SVCPath:
    """Result of :func:`svc_path`: kernel classifiers for rising C, with certificates.

    Support vectors are stored once for all models, and coefficients sparsely.

    Attributes
    ----------
    Cs : ndarray of shape (n_Cs,)
        Values of C, increasing.
    classes : ndarray of shape (n_classes,)
        Labels, sorted.
    support : ndarray of shape (n_support,)
        Training rows that are a support vector of some model, sorted by class.
    support_vectors : {ndarray, sparse matrix} of shape (n_support, n_features)
        These rows; empty for a precomputed kernel.
    dual_coefs : list of csr_matrix of shape (n_classes - 1, n_support)
        Dual coefficients of every model, in the layout of ``SVC.dual_coef_``.
    intercepts : ndarray of shape (n_Cs, n_pairs)
        Intercepts of every model.
    certificates : list of Certificate
        One per C; with several pairs of classes they have a part for each.
    kernel : Kernel
        Kernel function; its gamma is a number.
    sizes : ndarray of shape (n_classes,)
        Number of support vectors of every class.
    shape : tuple of int
        Shape of the training data.
    parameters : dict
        Parameters of the models, as for :class:`SVC`, without C.
    """

    Cs: Vector
    classes: NDArray[np.generic]
    support: NDArray[np.intp]
    support_vectors: Matrix
    dual_coefs: list[sparse.csr_matrix]
    intercepts: Vector
    certificates: list[Certificate]
    kernel: Kernel
    sizes: NDArray[np.int64]
    shape: tuple[int, int]
    parameters: Parameters

    def __len__(self) -> int:
        return len(self.Cs)

    @property
    def relative_gaps(self) -> Vector:
        """``(P - D)/D`` of every model, shape (n_Cs,) or (n_Cs, n_pairs)."""
        return gaps_of(self.certificates)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, all models together."""
        arrays: list[NDArray[np.generic]] = [
            self.Cs,
            self.support,
            self.intercepts,
            self.sizes,
        ]
        for matrix in (*self.dual_coefs, self.support_vectors):
            arrays += file.matrix_tensors("", matrix).values()
        return sum(array.nbytes for array in arrays)

    def model(self, k: int) -> SVC:
        """Return the k-th model, for ``Cs[k]``.

        Parameters
        ----------
        k : int
            Index of a value of C; negative values count from the end.

        Returns
        -------
        SVC
            A fitted model, without ``history_``.

        Raises
        ------
        IndexError
            If there is no k-th model.
        """
        model = SVC(**{**self.parameters, "C": float(self.Cs[k])})
        bounds = [0, *np.cumsum(self.sizes)]
        used = model._keep_table(self.dual_coefs[k].toarray(), self.support, bounds)
        model.classes_, model.shape_fit_ = self.classes, self.shape
        model.n_features_in_ = self.shape[1]
        model.intercept_ = self.intercepts[k].copy()
        vectors = self.support_vectors
        model.support_vectors_ = vectors if vectors.shape[1] == 0 else vectors[used]
        model._fitted_kernel = self.kernel
        model.certificate_ = self.certificates[k]
        model.n_iter_ = max(part.epochs for part in self.certificates[k].parts)
        model.fit_status_ = int(not self.certificates[k].certified)
        model._note_parameters()
        return model

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the path to a file, atomically; :meth:`load` reads it.

        Parameters
        ----------
        path : str or path-like
            File to write, usually named ``*.safetensors``.

        Raises
        ------
        ImportError
            If the package safetensors is missing.
        OSError
            If the file cannot be written.
        ValueError
            If the kernel is a function, or a parameter is an object.
        """
        if isinstance(self.kernel, Callable):
            raise ValueError(
                f"kernel={self.kernel!r} is a function, which a file cannot hold; use "
                "a kernel's name, or pickle the path"
            )
        coefs = sparse.vstack(self.dual_coefs, format="csr")
        tensors = {
            "Cs": self.Cs,
            "support": self.support.astype("<i8"),
            "sizes": self.sizes.astype("<i8"),
            "intercepts": self.intercepts,
            **file.matrix_tensors("dual_coefs", coefs),
            **file.matrix_tensors("vectors", self.support_vectors),
        }
        parameters = {k: v for k, v in self.parameters.items() if k != "kernel"}
        record = {
            "estimator": "SVCPath",
            "kernel": self.kernel.name,
            "kernel_fields": file.fields_of(self.kernel),
            "classes": file.classes_fields(self.classes),
            "rows": self.shape[0],
            "columns": self.shape[1],
            "parameters": {k: file.scalar(k, v) for k, v in parameters.items()},
            "certificates": [
                [file.certificate_fields(part) for part in c.parts]
                for c in self.certificates
            ],
        }
        file.write(path, file.seal(record, tensors, _FORMAT), tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> SVCPath:
        """Read a path that :meth:`save` wrote. No code of the file is run.

        Parameters
        ----------
        path : str or path-like

        Raises
        ------
        ImportError
            If the package safetensors is missing.
        OSError
            If the file cannot be read.
        ValueError
            If the file holds no path, or is damaged.
        """
        try:
            record, tensors = file.read(os.fspath(path), _FORMAT)
            return cls._assembled(record, tensors)
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from error

    @classmethod
    def _assembled(cls, record: file.Record, tensors: file.Tensors) -> SVCPath:
        file.expect_fields(
            record,
            {
                **{"kernel": str, "kernel_fields": dict, "classes": dict},
                **{"rows": int, "columns": int, "parameters": dict},
                "certificates": list,
            },
        )
        if record["kernel"] not in KERNELS:
            raise ValueError(f"its kernel {record['kernel']!r} is unknown")
        kernel = file.from_fields(KERNELS[record["kernel"]], record["kernel_fields"])
        classes = file.classes(record["classes"])
        n, d = record["rows"], record["columns"]
        k, m, models = len(classes), tensors["support"].size, len(tensors["Cs"])
        pairs = k * (k - 1) // 2
        integers, reals = ("I64",), ("F64",)
        shape_of_vectors = (0, 0) if isinstance(kernel, Precomputed) else (m, d)
        shape_of_coefs = models * (k - 1), m
        expected: file.Expected = {
            "Cs": (reals, (-1,)),
            "support": (integers, (-1,)),
            "sizes": (integers, (k,)),
            "intercepts": (reals, (models, pairs)),
            **file.matrix_shapes(tensors, "dual_coefs", *shape_of_coefs),
            **file.matrix_shapes(tensors, "vectors", *shape_of_vectors),
        }
        file.expect_tensors(tensors, expected)
        support, sizes = tensors["support"], tensors["sizes"]
        if support.size and not 0 <= support.min() <= support.max() < n:
            raise ValueError(f"support has indices outside the {n} training rows")
        if (sizes < 0).any() or sizes.sum() != m:
            raise ValueError(f"sizes do not match the {m} support vectors")
        coefs = sparse.csr_matrix(file.matrix(tensors, "dual_coefs", *shape_of_coefs))
        certificates = [
            Certificate.total(
                [file.certificate(part) for part in parts],
                OneVsOne(len(classes)).names(classes),
            )
            for parts in record["certificates"]
        ]
        if len(certificates) != models:
            raise ValueError(
                f"it has {len(certificates)} certificates for {models} values of C"
            )
        parameters = {**record["parameters"], "kernel": record["kernel"]}
        SVC(**parameters)._validate_params()
        return cls(
            tensors["Cs"],
            classes,
            support.astype(np.intp),
            file.matrix(tensors, "vectors", *shape_of_vectors),
            [coefs[i * (k - 1) : (i + 1) * (k - 1)] for i in range(models)],
            tensors["intercepts"],
            certificates,
            kernel,
            sizes,
            (n, d),
            parameters,
        )


def _collected(models: Iterable[SVC], codes: NDArray[np.intp], classes: int) -> Any:
    """Return Cs, support, sizes of classes, coefficients, and intercepts."""
    kept = [
        (model.C, model.support_, sparse.csr_matrix(model.dual_coef_), model.intercept_)
        for model in models
    ]
    support = np.unique(np.concatenate([rows for _, rows, _, _ in kept]))
    support = support[np.argsort(codes[support], kind="stable")]
    place = np.zeros(len(codes), dtype=np.int64)
    place[support] = np.arange(len(support))
    coefs = [
        sparse.csr_matrix(
            (coef.data, place[rows][coef.indices], coef.indptr),
            shape=(classes - 1, len(support)),
        )
        for _, rows, coef, _ in kept
    ]
    Cs, intercepts = [np.array([entry[k] for entry in kept]) for k in (0, 3)]
    sizes = np.bincount(codes[support], minlength=classes)
    return Cs, support, sizes, coefs, intercepts


def svc_path(
    X: MatrixLike,
    y: ArrayLike,
    Cs: int | ArrayLike = 10,
    *,
    sample_weight: ArrayLike | None = None,
    time_limit: float | None = None,
    **parameters: Any,
) -> SVCPath:
    """Train kernel SVMs for many values of C, each with a certificate.

    All values of C share a kernel matrix, if `cache_size` holds it. Each fit starts
    from the dual variables of the two smaller values, extrapolated into the new box.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Training rows; with a precomputed kernel, the kernel matrix.
    y : array-like of shape (n_samples,)
        Class labels.
    Cs : int or array-like of shape (n_Cs,), default=10
        Values of C in any order, different from each other; an int gives that many,
        evenly spaced in their logarithm from 1e-4 to 1e4.
    sample_weight : array-like of shape (n_samples,), optional
        Factors of C.
    time_limit : float, optional
        Seconds for the whole path.
    **parameters
        Other parameters of :class:`SVC`, such as `kernel`, `gamma`, `tol` and
        `cache_size`. The solver is "auto" or "block".

    Returns
    -------
    SVCPath
        After Ctrl-C or `time_limit`, only the models that were finished.

    Raises
    ------
    ValueError
        If an argument is invalid, or no model was finished in time.
    KeyboardInterrupt
        After Ctrl-C, if no model was finished.

    Warns
    -----
    ConvergenceWarning
        If a model did not reach `tol`, or the path was cut short.

    See Also
    --------
    svm_path : The same for linear SVMs.
    SVCCV : Choose C and gamma by cross-validation.

    Examples
    --------
    >>> from dualgap.model_selection import svc_path
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> path = svc_path(scale(X), y, [0.1, 1.0, 10.0], gamma=0.03)
    >>> bool((path.relative_gaps <= 1e-3).all())
    True
    >>> path.model(1).C
    1.0
    """
    SVC(**{**parameters, "time_limit": time_limit})._validate_params()
    template = SVC(**parameters)
    stop = begin(time_limit)
    grid = np.unique(grid_of(Cs))
    if not isinstance(Cs, Integral) and len(grid) < len(np.asarray(Cs)):
        raise ValueError(f"Cs={Cs!r} has equal values; give each value once")
    if template.solver not in ("auto", "block"):
        raise ValueError(f"solver={template.solver!r}: a path needs 'auto' or 'block'")
    refuse_masks(X=X, y=y, sample_weight=sample_weight)
    if takes_items(template.kernel, X):
        refuse_items("svc_path")
    X, y = validated(template, X, y)
    weight = checked_weights(sample_weight, X)
    fold = Fold(0, X, np.asarray(y), weight, X[:0], np.asarray(y)[:0])
    models: list[SVC] = []

    def take(fits: list[FoldFit]) -> None:
        models.extend(fit.fitted() for fit in fits)

    threads = template._threads
    walk = partial(fold.walk, template, grid, stop, threads)
    run([walk], take, template._job(stop, threads=1))
    if not models:
        message = f"{why_ended(stop, time_limit)} before any model was finished"
        if stop.requested:
            raise KeyboardInterrupt(message)
        raise ValueError(f"{message}; give more time")
    if len(models) < len(grid):
        tell(
            f"svc_path: {why_ended(stop, time_limit)} after {len(models)} of "
            f"{len(grid)} models; the others are missing"
        )
    classes = models[0].classes_
    certificates = [model.certificate_ for model in models]
    warn_of_path("svc_path", [model.C for model in models], certificates)
    codes = np.searchsorted(classes, np.asarray(y))
    numbers, support, sizes, coefs, intercepts = _collected(models, codes, len(classes))
    kernel = models[0]._fitted_kernel
    return SVCPath(
        numbers,
        classes,
        support,
        np.empty((0, 0))
        if isinstance(kernel, Precomputed)
        else points_of(X, kernel).X[support],
        coefs,
        intercepts,
        certificates,
        kernel,
        sizes,
        X.shape,
        {k: v for k, v in template.get_params(deep=False).items() if k != "C"},
    )

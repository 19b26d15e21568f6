"""Training data and rows to predict, checked before any work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from inspect import signature
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csc_matrix, csr_array, csr_matrix, issparse
from sklearn.base import BaseEstimator, _fit_context
from sklearn.utils import validation
from sklearn.utils._param_validation import HasMethods, validate_params
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from ..checks import refuse_huge
from ..data.blocks import RowSource
from ..data.rows import Points, check_indices
from ..data.store import RowStore
from ..data.types import Label, MatrixLike, Parameters
from ..losses import Vector
from ..problems.reductions import weights_of_rows
from .parameters import refuse_huge_of

Function = TypeVar("Function", bound=Callable[..., object])


def encode(y: NDArray[np.generic]) -> tuple[NDArray[np.generic], NDArray[np.intp]]:
    """Return the sorted classes of y, and the index of every row's class."""
    whole = y if y.dtype.kind in "biu" else None
    if y.dtype.kind == "f":
        with np.errstate(invalid="ignore"):  # NaN and infinite labels are refused below
            numbers = y.astype(np.intp)
        whole = numbers if (numbers == y).all() else None
    if whole is not None and y.size:
        # A table of small whole numbers needs no sort. scikit-learn's check takes
        # longer than a small fit, and of them only looks at how many differ.
        low, high = int(whole.min()), int(whole.max())
        if high - low < len(y) and max(-low, high) < 2**62:
            codes = whole.astype(np.intp) - low
            present = np.bincount(codes) > 0
            classes = (np.flatnonzero(present) + low).astype(y.dtype)
            if len(classes) < high - low + 1:
                codes = (np.cumsum(present) - 1)[codes]
            if 2 * len(classes) > len(y):
                check_classification_targets(y)
            return classes, codes
    try:
        with np.errstate(invalid="ignore"):
            check_classification_targets(y)
    except ValueError:
        for label in y.ravel() if y.dtype.kind == "O" else ():
            refuse_huge("y", label, whole=True)
        raise
    return np.unique(y, return_inverse=True)


#: Arguments of scikit-learn's checks of rows. Problems and kernel matrices check every
#: entry, and log a copy.
ROWS: Parameters = {
    "accept_sparse": ["csr", "csc", "coo"],
    "dtype": [np.float64, np.float32],
    "ensure_all_finite": False,
}


#: Most entries of rows whose checks would take longer than their products.
_FEW = 10_000


def checked(fit: Function) -> Function:
    """Let scikit-learn check the parameters of an estimator before a method runs."""
    return cast(Function, _fit_context(prefer_skip_nested_validation=True)(fit))


def checking(
    constraints: Mapping[str, Sequence[object]],
) -> Callable[[Function], Function]:
    """Let scikit-learn check the arguments of a function before it runs."""
    valid = {
        name: [_OfRange(name, allowed), *allowed]
        for name, allowed in constraints.items()
    }
    return cast(
        Callable[[Function], Function],
        validate_params(valid, prefer_skip_nested_validation=True),
    )


class _OfRange(HasMethods):
    """Constraint that refuses numbers beyond 64 bits, and leaves the rest to others."""

    def __init__(self, name: str, others: Sequence[object]) -> None:
        super().__init__("__int__")
        self.hidden = True
        self.name, self.others = name, others

    def is_satisfied_by(self, val: object) -> bool:
        refuse_huge_of(self.name, val, self.others)
        return False


def validated(
    estimator: BaseEstimator,
    X: MatrixLike | Points,
    y: ArrayLike | None,
    **options: bool,
) -> Any:
    """Return what scikit-learn's ``validate_data`` returns for training rows.

    Inspected rows, which a search passes to the fit of its final model, pass as they
    are, with their labels. So do arrays that the checks would return as they are: the
    checks take longer than a small fit.
    """
    if isinstance(X, Points):
        estimator.n_features_in_ = X.shape[1]
        return X, y
    named = isinstance(y, str)  # "no_validation"
    rows = _is_plain(estimator, X, reset=options.get("reset", True))
    if rows and (named or _are_plain_labels(y, X.shape[0])):
        estimator.n_features_in_ = X.shape[1]
        return X if named else (X, y)
    found = validate_data(estimator, X, y, **ROWS, **options)
    if "feature_names_in_" in vars(estimator):
        _refuse_missing(found if named else found[0], estimator.feature_names_in_)
    return found


def _refuse_missing(X: MatrixLike, names: NDArray[np.generic]) -> None:
    """Raise an error for a value of a table that is NaN or infinite; name its column.

    The sum of all values is finite without one, and takes less time than a search.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        if issparse(X) or np.isfinite(X.sum()) or np.isfinite(X).all():
            return
    row, column = np.argwhere(~np.isfinite(X))[0]
    raise ValueError(
        f"X, row {row}: value is NaN or infinite in column {names[column]!r}; impute "
        "or drop such rows"
    )


def rows_to_predict(
    estimator: BaseEstimator, X: MatrixLike, *, finite: bool
) -> MatrixLike:
    """Return rows of float32 or float64, dense or CSR, as wide as the training rows.

    Their values are checked only if `finite` says so.
    """
    if not finite and _is_plain(estimator, X, reset=False):
        return X
    try:
        return validate_data(
            estimator,
            X,
            reset=False,
            accept_sparse="csr",
            dtype=ROWS["dtype"],
            ensure_all_finite=finite,
        )
    except ValueError as error:
        names = getattr(estimator, "feature_names_in_", ())
        if "feature names should match" in str(error) and any("=" in n for n in names):
            error.args = (
                f"{error}\nThe model has a column of 0 and 1 for each word, as the "
                "command line makes them; apply it with 'dualgap predict', or make its "
                "feature_names_in_ from the table",
            )
        raise


def require_fitted(model: BaseEstimator, attribute: str) -> None:
    """Raise an error if a model without this attribute has not been fitted."""
    if attribute not in vars(model):  # scikit-learn's check takes long
        check_is_fitted(model)


def linear_values(model: BaseEstimator, X: MatrixLike) -> Vector:
    """Return ``X @ coef_.T + intercept_``, after checking the rows.

    Few finite rows pass as they are: the checks take longer than the products.
    """
    require_fitted(model, "coef_")
    if isinstance(X, RowStore):
        return np.concatenate([linear_values(model, b.X) for b in X.blocks()])
    few = type(X) is np.ndarray and X.size <= _FEW
    if not (few and _is_plain(model, X, reset=False) and np.isfinite(X).all()):
        finite = issparse(X) and check_indices(X)
        X = rows_to_predict(model, X, finite=not finite)
    coef = model.coef_.T.astype(np.float64, copy=False)  # sparse after sparsify()
    found = X @ coef
    values: Vector = found.toarray() if issparse(found) else found
    values += model.intercept_
    return values


def _is_plain(estimator: BaseEstimator, X: MatrixLike, *, reset: bool) -> bool:
    """Whether scikit-learn's checks would return these rows as they are."""
    return (
        type(X) in (np.ndarray, csr_matrix, csr_array)
        and X.ndim == 2
        and X.dtype in (np.float64, np.float32)
        and min(X.shape) > 0
        and (reset or X.shape[1] == getattr(estimator, "n_features_in_", None))
        and "feature_names_in_" not in vars(estimator)
    )


def _are_plain_labels(y: ArrayLike | None, n: int) -> bool:
    """Whether scikit-learn's checks would return these labels as they are."""
    if type(y) is not np.ndarray or y.shape != (n,):
        return False
    kind = y.dtype.kind
    return kind in "biuU" or (kind == "f" and bool(np.isfinite(y).all()))


def refuse_masks(**arrays: object) -> None:
    """Raise an error for masked arrays, whose masked values would be used."""
    for name, array in arrays.items():
        if isinstance(array, np.ma.MaskedArray):
            raise TypeError(
                f"{name} is a MaskedArray, whose mask would be ignored; remove the "
                f"masked rows, or give {name}.filled(value)"
            )


def refuse_store(X: MatrixLike, who: str, remedy: str) -> None:
    """Raise an error if X is on disk where the rows must be in memory."""
    if isinstance(X, RowSource):
        raise ValueError(f"X is {X!r}, but {who} needs its rows in memory; {remedy}")


def labels_of_store(
    estimator: BaseEstimator,
    store: RowSource,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
    table: bool = False,
) -> tuple[Any, ArrayLike | None]:
    """Return labels and weights of a store's rows: the given or the stored ones.

    `table`: whether y has a column per label.
    """
    if y is None and sample_weight is None:
        sample_weight = store.sample_weight
    labels = store.y if y is None else y if table else column_or_1d(y)
    count = np.shape(labels)[0]
    if count != store.n_samples:
        raise ValueError(
            f"y has {count} labels, but X has {store.n_samples} rows; give "
            "one label per row"
        )
    estimator.n_features_in_ = store.n_features
    if hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_
    return labels, sample_weight


def weights(
    class_weight: dict[Label, float] | str | None,
    X: MatrixLike,
    classes: NDArray[np.generic],
    codes: NDArray[np.intp],
    sample_weight: ArrayLike | None,
) -> tuple[Vector | None, Vector]:
    """Return sample weights, shape (n,), and class weights, shape (n_classes,).

    Sample weights are None if all weights are 1.
    """
    if len(classes) < 2:
        raise ValueError(
            f"y holds only one class, {classes[0]!s}; give rows of at least 2 classes"
        )
    if sample_weight is None and class_weight is None:
        return None, np.ones(len(classes))
    weight = check_sample_weight(sample_weight, X)
    total = np.bincount(codes, weight).astype(np.float64)
    factor = class_factors(class_weight, classes, total)
    return weight, factor


def balanced_factors(total: Vector) -> Vector:
    """Return the "balanced" class weights, given each class's total sample weight."""
    # compute_class_weight ignores the sample weights in older versions.
    return total.sum() / (len(total) * np.where(total > 0, total, np.inf))


def class_factors(
    class_weight: dict[Label, float] | str | None,
    classes: NDArray[np.generic],
    total: Vector,
) -> Vector:
    """Return class weights, (n_classes,), given each class's total sample weight."""
    if class_weight == "balanced":
        factor = balanced_factors(total)
    elif class_weight is None:
        factor = np.ones(len(classes))
    else:
        known, given = classes.tolist(), list(class_weight)
        wrong = [key for key in given if key not in known]
        if wrong and any(name not in given for name in known):
            names = ", ".join(map(repr, known[:10])) + ", ..." * (len(known) > 10)
            raise ValueError(
                f"class_weight has the key {wrong[0]!r}, which is no class; the "
                f"classes are {names}"
            )
        factor = compute_class_weight(class_weight, classes=classes, y=classes)
        if not (np.isfinite(factor) & (factor >= 0.0)).all():
            raise ValueError(
                f"class_weight={class_weight!r}: weights must be finite, zero or "
                "positive"
            )
    if np.count_nonzero(total * factor) < 2:
        raise ValueError(
            "fewer than 2 classes have rows with a positive weight; change "
            "sample_weight or class_weight"
        )
    return factor


def checked_weights(sample_weight: ArrayLike | None, X: MatrixLike) -> Vector | None:
    """Return sample weights as float64, shape (n,); None stays None."""
    if sample_weight is None:
        return None
    refuse_masks(sample_weight=sample_weight)
    weight: Vector = check_sample_weight(sample_weight, X)
    if not weight.any():
        raise ValueError("sample_weight is zero everywhere; give a positive weight")
    return weight


@dataclass(frozen=True)
class TrainingData:
    """Training data of a fit."""

    #: Rows.
    X: MatrixLike
    #: Labels or targets, shape (n,).
    y: NDArray[np.generic] | None
    #: Weights as they were given.
    sample_weight: ArrayLike | None
    #: The same in float64, shape (n,); None if all are 1 and there are no class
    #: weights.
    weight: Vector | None
    #: Labels, sorted, shape (K,); empty without classes.
    classes: NDArray[np.generic]
    #: Index of the class of every row, shape (n,).
    codes: NDArray[np.intp]
    #: Class weights, shape (K,).
    factor: Vector
    #: X as it was given, if a kernel function has to make numbers of it; then X is the
    #: kernel matrix.
    items: MatrixLike | None = None
    #: 1 where a row has a label, if rows have any number of labels, shape (n, K); then
    #: the codes are the numbers of the rows, and the class weights are pairs.
    table: csc_matrix | None = None

    @property
    def costs(self) -> Vector:
        """Weights of the rows, class weights included, (n,)."""
        if not len(self.classes):
            assert self.y is not None
            return np.ones(len(self.y)) if self.weight is None else self.weight
        return weights_of_rows(self.codes, self.weight, self.factor)


_NONE = np.empty(0, np.intp)


def unlabelled(
    X: MatrixLike,
    y: NDArray[np.generic] | None,
    sample_weight: ArrayLike | None,
    items: MatrixLike | None = None,
) -> TrainingData:
    """Return the data of a regression or of novelty detection."""
    rows = X.X if isinstance(X, Points) else X
    weight = checked_weights(sample_weight, rows)
    return TrainingData(X, y, sample_weight, weight, _NONE, _NONE, np.empty(0), items)


def has_label_table(y: object) -> bool:
    """Whether y is a table of labels: two columns or more."""
    if type(y) is np.ndarray and y.ndim == 1:
        return False
    try:
        shape = y.shape if hasattr(y, "shape") else np.asarray(y).shape
    except ValueError:  # rows of several lengths, which scikit-learn's checks refuse
        return False
    return len(shape) == 2 and shape[1] > 1


def label_table(y: ArrayLike) -> csc_matrix:
    """Return the table of the labels of all rows, 0 or 1 with the ones stored."""
    known = check_array(y, accept_sparse="csc", dtype=None, input_name="y")
    values = known.data if issparse(known) else known
    wrong = values[(values != 0) & (values != 1)]
    if wrong.size:
        raise ValueError(
            f"y has {known.shape[1]} columns and the value {wrong.flat[0]!s}; give one "
            "class per row, of shape (n_samples,), or one column of 0 and 1 per label"
        )
    table = csc_matrix(known, dtype=np.int8, copy=issparse(known))
    table.sum_duplicates()
    table.eliminate_zeros()
    return table


def label_factors(
    class_weight: dict[Label, float] | str | None, positive: Vector, total: float
) -> Vector:
    """Return the factors of rows without and with each label, shape (labels, 2).

    `positive` has the summed weights of the rows with each label.
    """
    if class_weight is None:
        return np.ones((len(positive), 2))
    if isinstance(class_weight, str):  # "balanced"
        sides = np.stack([np.maximum(total - positive, 0.0), positive], axis=1)
        present = (sides > 0.0).sum(axis=1, keepdims=True)
        ones = np.ones_like(sides)
        return np.divide(total, present * sides, out=ones, where=sides > 0.0)
    wrong = [key for key in class_weight if key not in (0, 1)]
    if wrong:
        raise ValueError(
            f"class_weight has the key {wrong[0]!r}, but a row has a label or not; "
            "give the keys 0 and 1"
        )
    factor = np.array([class_weight.get(0, 1.0), class_weight.get(1, 1.0)], float)
    if not (np.isfinite(factor) & (factor >= 0.0)).all() or not factor.any():
        raise ValueError(
            f"class_weight={class_weight!r}: weights must be finite, zero or positive, "
            "and not all zero"
        )
    return np.tile(factor, (len(positive), 1))


def multilabelled(
    class_weight: dict[Label, float] | str | None,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
) -> TrainingData:
    """Return the data of a classification with a table of labels."""
    table = label_table(y)
    n, labels = table.shape
    weight = checked_weights(sample_weight, X)
    if weight is None and class_weight is not None:
        weight = np.ones(n)
    own = np.ones(n) if weight is None else weight
    factor = label_factors(class_weight, table.T @ own, float(own.sum()))
    given, classes = cast("NDArray[np.generic]", y), np.arange(labels)
    return TrainingData(
        X, given, sample_weight, weight, classes, np.arange(n), factor, table=table
    )


def labelled(
    class_weight: dict[Label, float] | str | None,
    X: MatrixLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    items: MatrixLike | None = None,
) -> TrainingData:
    """Return the data of a classification."""
    y = np.asarray(y)
    classes, codes = encode(y)
    rows = X.X if isinstance(X, Points) else X
    weight, factor = weights(class_weight, rows, classes, codes, sample_weight)
    return TrainingData(X, y, sample_weight, weight, classes, codes, factor, items)


#: Name of the coefficients that a warm start begins at.
PREVIOUS = "warm_start=True: coef_ of the previous fit"
#: Coefficients and intercepts to start from; None stands for zeros.
FirstModel = tuple[ArrayLike | None, ArrayLike | None]


def first_model(
    first: FirstModel, problems: int, d: int, fit_intercept: bool, name: str
) -> tuple[Vector, Vector]:
    """Return coefficients, (problems, d), and intercepts to start from.

    `name`: name of the coefficients, in errors.
    """
    coef, intercept = first
    if intercept is not None and not fit_intercept and np.any(intercept):
        raise ValueError(
            "intercept_init is not supported by fit_intercept=False; leave it out, or "
            "set fit_intercept=True"
        )
    expected = {name: (coef, (problems, d)), "intercept_init": (intercept, (problems,))}
    found = []
    for word, (given, shape) in expected.items():
        table = np.zeros(shape)
        if given is not None:
            options = {"ensure_2d": False, "allow_nd": True, "ensure_min_samples": 0}
            table = check_array(given, dtype=np.float64, input_name=word, **options)
        if table.shape not in (shape, shape[1:] if problems == 1 else shape):
            remedy = "give the values of a model of the same classes and features"
            if name == PREVIOUS:
                remedy = "set warm_start=False for new data"
            raise ValueError(
                f"{word} has shape {table.shape}, but these data need {shape}; {remedy}"
            )
        if not np.isfinite(np.vdot(table, table)):
            raise ValueError(
                f"{word} has values up to {np.abs(table).max():.3g}, whose squares "
                "exceed float64; give coefficients near the solution"
            )
        found.append(table.reshape(shape))
    return found[0], found[1]


def classified(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None,
    sample_weight: ArrayLike | None,
) -> TrainingData:
    """Return the data of a classifier that takes stores, and tables of labels."""
    refuse_masks(X=X, y=y, sample_weight=sample_weight)
    table = has_label_table(y)
    if isinstance(X, RowSource):
        y, sample_weight = labels_of_store(estimator, X, y, sample_weight, table)
    else:
        X, y = validated(estimator, X, y, multi_output=table)
    read = multilabelled if table else labelled
    return read(estimator.class_weight, X, y, sample_weight)


# ----------------------------------------- scikit-learn's checks, for huge numbers too

Check = TypeVar("Check", bound=Callable[..., object])


def _naming(check: Check, *names: str) -> Check:
    """Return a check that raises a ValueError instead of an OverflowError.

    It names the column of a table that holds a word. `names` are the arguments of the
    check that hold numbers.
    """
    arguments = signature(check)

    @wraps(check)
    def named(*args: object, **options: object) -> object:
        try:
            return check(*args, **options)
        except ValueError as error:
            given = arguments.bind(*args, **options).arguments
            word = str(error).partition("could not convert string to float: ")[2]
            table = given.get(names[0], ())
            for column in getattr(table, "columns", ()) if word else ():
                if word in map(repr, table[column]):
                    raise ValueError(
                        f"{error} in column {column!r}; encode columns of words, for "
                        "example by sklearn.preprocessing.OneHotEncoder"
                    ) from None
            raise
        except OverflowError:
            given = arguments.bind(*args, **options).arguments
            for name in names:
                if _overflows(given.get(name)):
                    own = given.get("input_name") or name
                    raise ValueError(
                        f"{own} holds a number beyond the range of float64; give "
                        "numbers of at most 1.8e308 in size"
                    ) from None
            raise

    return cast(Check, named)


def _overflows(values: object) -> bool:
    try:
        np.asarray(values, dtype=np.float64)
    except OverflowError:
        return True
    except (TypeError, ValueError):
        pass
    return False


check_array = _naming(validation.check_array, "array")
check_rows_and_labels = _naming(validation.check_X_y, "X", "y")
#: Weights are float64, zero or positive.
check_sample_weight = _naming(
    partial(
        validation._check_sample_weight, dtype=np.float64, ensure_non_negative=True
    ),
    "sample_weight",
)
validate_data = _naming(validation.validate_data, "X", "y")

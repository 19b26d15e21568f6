"""Export of models to ONNX, for runtimes without Python and dualgap.

The graph consists of plain operators of the default domain and computes in float64,
whatever the type of the input. LinearClassifier and SVMClassifier of ``ai.onnx.ml``
support only float32, which loses the fifth digit of a kernel model with large dual
variables.

For class i with support vectors V_i, let ``S_i = K(X, V_i) A_i^T``, where A_i contains
their coefficients against the K - 1 other classes, in the layout of LIBSVM. The
decision value of the pair (i, j) is ``S_i[:, j - 1] + S_j[:, i] + b_ij``. Every kernel
value is therefore computed once, as in ``kernels/predict.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .. import core
from ..data.rows import inspect_rows
from ..estimators.kernel_regression import SVR, OneClassSVM
from ..estimators.linear_regression import LinearOneClassSVM, LinearSVR
from ..estimators.linear_svc import LinearSVC
from ..estimators.linear_svc_cv import LinearSVCCV
from ..estimators.svc import SVC
from ..kernel import RBF, Laplacian, Linear, Polynomial, Sigmoid
from ..kernels.functions import Kernel
from ..kernels.predict import pair_weights
from ..kernels.rows import core_arguments

__all__ = ["register_skl2onnx", "to_onnx"]

_OPSET = 13  # the lowest with all operators used here
_LARGEST = 2**31 - 1  # largest size of a protocol buffer in bytes


Model = (
    LinearSVC | LinearSVCCV | SVC | LinearSVR | SVR | LinearOneClassSVM | OneClassSVM
)
_REGRESSORS = (LinearSVR, SVR)
_ONE_CLASS = (LinearOneClassSVM, OneClassSVM)


def to_onnx(model: Model, *, dtype: DTypeLike = np.float32) -> Any:
    """Convert a fitted model to an ONNX graph.

    Parameters
    ----------
    model : LinearSVC, LinearSVCCV, SVC, LinearSVR, SVR, LinearOneClassSVM or \
            OneClassSVM
        A fitted model. For a pipeline, see :func:`register_skl2onnx`.
    dtype : {float32, float64}, default=float32
        Type of the input and of the scores. The graph computes in float64.

    Returns
    -------
    onnx.ModelProto
        The graph; write it with ``onnx.save(proto, path)``. Its input is ``X``, a dense
        array of shape (n_samples, n_features). Its outputs are ``label``, of shape
        (n_samples,) and the type of ``classes_`` (integers as int64), and ``scores``,
        the result of ``decision_function``. A regression model has a single output
        ``prediction``, of shape (n_samples,). A one-class model has the labels 1 and
        -1.

    Raises
    ------
    ImportError
        If the package onnx is missing.
    TypeError
        If the type of the model is not supported.
    ValueError
        If the model is not fitted, its kernel is precomputed or a function, its labels
        have no type in ONNX, or the model exceeds 2 GB, the limit of the format.

    See Also
    --------
    register_skl2onnx : Make skl2onnx convert dualgap's estimators in pipelines.
    save_model : Write a file that keeps the certificate and can be trained further.

    Examples
    --------
    >>> import numpy as np
    >>> from dualgap import LinearSVC, to_onnx
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0]]), ["a", "b"]
    >>> proto = to_onnx(LinearSVC().fit(X, y))
    >>> [output.name for output in proto.graph.output]
    ['label', 'scores']
    """
    _require("onnx")
    import onnx
    from onnx import helper

    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype={dtype}: use float32 or float64")
    _refuse(model)
    graph = _Graph()
    name = type(model).__name__
    if isinstance(model, LinearSVCCV):
        model = model.best_estimator_
    element = helper.np_dtype_to_tensor_dtype(dtype)
    columns: list[int] = []
    outputs = []
    if isinstance(model, _REGRESSORS + _ONE_CLASS):
        scores = _single(graph, model, graph.node("Cast", "X", to=_element(True)))
        scores = graph.node("Squeeze", scores, graph.constant(np.array([1])))
        if isinstance(model, _ONE_CLASS):
            label, scores = _side(graph, model, scores)
            graph.node("Identity", label, name="label")
            outputs = [helper.make_tensor_value_info("label", _integer(), ["n"])]
    else:
        labels = _labels(model.classes_)
        label, scores = _outputs(graph, model, "X", labels)
        if len(model.classes_) == 2:
            scores = graph.node("Squeeze", scores, graph.constant(np.array([1])))
        else:
            columns = [_columns(model)]
        graph.node("Identity", label, name="label")
        kind = onnx.numpy_helper.from_array(labels).data_type
        outputs = [helper.make_tensor_value_info("label", kind, ["n"])]
    last = "scores" if outputs else "prediction"
    graph.node("Cast", scores, name=last, to=element)
    outputs.append(helper.make_tensor_value_info(last, element, ["n", *columns]))
    proto = helper.make_model(
        helper.make_graph(
            graph.nodes,
            name,
            [helper.make_tensor_value_info("X", element, ["n", model.n_features_in_])],
            outputs,
            graph.constants,
        ),
        producer_name="dualgap",
        opset_imports=[helper.make_opsetid("", _OPSET)],
        # the oldest format version with this opset, which old runtimes can read
        ir_version=helper.find_min_ir_version_for([helper.make_opsetid("", _OPSET)]),
    )
    onnx.checker.check_model(proto)
    return proto


def register_skl2onnx() -> None:
    """Register dualgap's estimators with skl2onnx, so that it converts pipelines.

    Afterwards ``skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False})`` converts
    them like scikit-learn's estimators, also within pipelines,
    ``CalibratedClassifierCV``, ``OneVsRestClassifier`` and grid searches.

    The second output of classifiers, "probabilities", contains the decision values with
    one column per class, as with skl2onnx's own classifiers. Two classes have minus and
    plus the decision value. An SVC with ``decision_function_shape="ovo"`` has a column
    per pair. Regressors have the output "variable", one-class SVMs "label" and
    "scores"; these are columns, as with skl2onnx's own estimators.

    Raises
    ------
    ImportError
        If the package skl2onnx is missing.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> import dualgap, skl2onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> pipeline = make_pipeline(StandardScaler(), dualgap.LinearSVC()).fit(X, y)
    >>> dualgap.register_skl2onnx()
    >>> proto = skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False})
    >>> [output.name for output in proto.graph.output]
    ['label', 'probabilities']
    """
    _require("skl2onnx")
    from skl2onnx import update_registered_converter

    for single in (*_REGRESSORS, *_ONE_CLASS):
        update_registered_converter(
            single,
            f"Dualgap{single.__name__}",
            _single_shapes,
            _convert_single,
        )
    for estimator in (LinearSVC, LinearSVCCV, SVC):
        update_registered_converter(
            estimator,
            f"Dualgap{estimator.__name__}",
            _shapes,
            _convert,
            # calibration requests raw scores, which these converters always give
            options={
                "nocl": [True, False],
                "output_class_labels": [False, True],
                "raw_scores": [True, False],
                "zipmap": [True, False, "columns"],
            },
        )


# -------------------------------------------------------------------- the two writers


class _Graph:
    """Nodes and constants of a stand-alone ONNX graph."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, array: NDArray[Any]) -> str:
        """Add a constant and return its name."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        """Add an operator and return the name of its output."""
        from onnx import helper

        name = name or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name


class _Skl2onnxGraph:
    """Nodes and constants within a graph that skl2onnx builds."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope = scope
        self.container = container

    def constant(self, array: NDArray[Any]) -> str:
        from onnx import numpy_helper

        name = str(self.scope.get_unique_variable_name("constant"))
        tensor = numpy_helper.from_array(array, name)
        # skl2onnx does not copy the strings of a tensor
        content = tensor if array.dtype != object else tensor.string_data
        self.container.add_initializer(name, tensor.data_type, array.shape, content)
        return name

    def node(self, kind: str, *inputs: str, name: str = "", **attributes: Any) -> str:
        name = name or str(self.scope.get_unique_variable_name(kind))
        self.container.add_node(
            kind,
            list(inputs),
            name,
            name=self.scope.get_unique_operator_name(kind),
            op_version=_OPSET,
            **attributes,
        )
        return name


def _shapes(operator: Any) -> None:
    """Set the types and shapes of a classifier's outputs, for skl2onnx."""
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes,
    )

    calculate_linear_classifier_output_shapes(operator)
    model = operator.raw_operator
    if len(model.classes_) > 2:
        operator.outputs[1].type.shape[1] = _columns(model)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes of a classifier to the graph, for skl2onnx."""
    from skl2onnx.common.data_types import DoubleTensorType
    from skl2onnx.common.utils_classifier import get_label_classes

    model = operator.raw_operator
    _refuse(model)
    _refuse_old(model, container)
    if isinstance(model, LinearSVCCV):
        model = model.best_estimator_
    labels = _labels(np.asarray(get_label_classes(scope, model)))
    if labels.dtype.kind != "O":  # the output type that `_shapes` has declared
        labels = labels.astype(np.int64)
    graph = _Skl2onnxGraph(scope, container)
    label, scores = _outputs(graph, model, operator.inputs[0].full_name, labels)
    if len(labels) == 2:
        scores = graph.node("Concat", graph.node("Neg", scores), scores, axis=1)
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    graph.node("Identity", label, name=operator.outputs[0].full_name)
    graph.node("Cast", scores, name=operator.outputs[1].full_name, to=_element(double))


def _single_shapes(operator: Any) -> None:
    """Set the types and shapes of the outputs of a model without classes."""
    from skl2onnx.common.data_types import Int64TensorType

    rows = operator.inputs[0].get_first_dimension()
    *labels, scores = operator.outputs
    for label in labels:
        label.type = Int64TensorType([rows, 1])
    scores.type.shape = [rows, 1]


def _convert_single(scope: Any, operator: Any, container: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    model = operator.raw_operator
    _refuse(model)
    _refuse_old(model, container)
    graph = _Skl2onnxGraph(scope, container)
    X = graph.node("Cast", operator.inputs[0].full_name, to=_element(double=True))
    scores = _single(graph, model, X)
    outputs = [output.full_name for output in operator.outputs]
    if isinstance(model, _ONE_CLASS):
        label, scores = _side(graph, model, scores)
        graph.node("Identity", label, name=outputs[0])
    double = isinstance(operator.outputs[-1].type, DoubleTensorType)
    graph.node("Cast", scores, name=outputs[-1], to=_element(double))


def _refuse_old(model: Any, container: Any) -> None:
    if container.target_opset < _OPSET:
        raise ValueError(
            f"target_opset={container.target_opset} is too old for "
            f"{type(model).__name__}; use {_OPSET} or later"
        )


# ------------------------------------------------------------------------- the graphs


def _single(graph: Any, model: Any, X: str) -> str:
    """Add the decision values of a model without classes: float64, shape (n, 1)."""
    if isinstance(model, LinearSVR | LinearOneClassSVM):
        coef = graph.constant(_double(np.reshape(_dense(model.coef_), (-1, 1))))
        values = graph.node("MatMul", X, coef)
    elif isinstance(model._fitted_kernel, Linear):
        values = graph.node("MatMul", X, graph.constant(_double(_dense(model.coef_).T)))
    else:
        vectors = _dense(model.support_vectors_)
        values = _kernel(graph, model._fitted_kernel, X, vectors)
        coef = graph.constant(_double(model.dual_coef_.T))
        values = graph.node("MatMul", values, coef)
    constant = graph.constant(_double(model.intercept_))
    return str(graph.node("Add", values, constant))


def _side(graph: Any, model: Any, values: str) -> tuple[str, str]:
    """Add the label, 1 or -1, and the decision, with rounding errors set to 0."""
    zero = graph.constant(np.zeros(1))
    least = graph.constant(np.full(1, model._least))
    off = graph.node("Greater", graph.node("Abs", values), least)
    decision = graph.node("Where", off, values, zero)
    outside = graph.node("Less", decision, zero)
    one = graph.constant(np.ones(1, np.int64))
    label = graph.node("Where", outside, graph.constant(-np.ones(1, np.int64)), one)
    return label, decision


def _outputs(graph: Any, model: Any, X: str, labels: NDArray[Any]) -> tuple[str, str]:
    """Add the labels, shape (n,), and the scores in float64, shape (n, m)."""
    X = graph.node("Cast", X, to=_element(double=True))
    if isinstance(model, LinearSVC):
        coef = _dense(model.coef_)
        scores = graph.node("MatMul", X, graph.constant(_double(coef.T)))
        scores = graph.node("Add", scores, graph.constant(_double(model.intercept_)))
        elected = scores
        if model.multi_class == "ovo" and len(labels) > 2:
            values = graph.node("Neg", scores)  # positive for the first of a pair
            scores, elected = _elect(graph, len(labels), values, True, True)
    else:
        values = _pair_values(graph, model, X)
        by_class = model.decision_function_shape == "ovr"
        scores, elected = _elect(graph, len(labels), values, by_class, model.break_ties)
    if len(labels) == 2:
        zero = graph.constant(np.zeros(1))
        chosen = graph.node("Cast", graph.node("Greater", scores, zero), to=_integer())
        chosen = graph.node("Squeeze", chosen, graph.constant(np.array([1])))
    else:
        chosen = graph.node("ArgMax", elected, axis=1, keepdims=0)
    return graph.node("Gather", graph.constant(labels), chosen), scores


def _pair_values(graph: Any, model: SVC, X: str) -> str:
    """Add the decision values of the pairs, shape (n, K (K - 1) / 2)."""
    classes = len(model.classes_)
    vectors = _dense(model.support_vectors_)
    if isinstance(model._fitted_kernel, Linear):
        weights = pair_weights(vectors, model.dual_coef_, model.n_support_)
        values = graph.node("MatMul", X, graph.constant(_double(weights.T)))
        constant = graph.constant(_double(model.intercept_))
        return str(graph.node("Add", values, constant))
    ends = np.cumsum(model.n_support_)
    sums = []
    for end, size in zip(ends, model.n_support_, strict=True):
        coef = graph.constant(_double(model.dual_coef_[:, end - size : end].T))
        values = _kernel(graph, model._fitted_kernel, X, vectors[end - size : end])
        sums.append(graph.node("MatMul", values, coef))
    every = graph.node("Concat", *sums, axis=1)
    pairs = list(combinations(range(classes), 2))
    width = classes - 1
    first = np.array([i * width + j - 1 for i, j in pairs])
    second = np.array([j * width + i for i, j in pairs])
    values = graph.node(
        "Add",
        graph.node("Gather", every, graph.constant(first), axis=1),
        graph.node("Gather", every, graph.constant(second), axis=1),
    )
    return str(graph.node("Add", values, graph.constant(_double(model.intercept_))))


def _elect(
    graph: Any, classes: int, values: str, by_class: bool, break_ties: bool
) -> tuple[str, str]:
    """Add the scores of `decision_function`, and the values whose maximum wins."""
    if classes == 2:
        return values, values
    pairs = list(combinations(range(classes), 2))
    gain = np.zeros(
        (len(pairs), classes)
    )  # +1 for the first of a pair, -1 for the second
    for p, (i, j) in enumerate(pairs):
        gain[p, i], gain[p, j] = 1.0, -1.0
    change = graph.constant(gain)
    zero = graph.constant(np.zeros(1))
    lost = graph.constant(_double((gain < 0.0).sum(axis=0)))

    def votes(first: str) -> str:
        won = graph.node("Cast", first, to=_element(double=True))
        return str(graph.node("Add", graph.node("MatMul", won, change), lost))

    scores = values
    if break_ties or by_class:
        # as in scikit-learn: votes, plus the confidence scaled to at most 1/3
        total = graph.node("MatMul", values, change)
        size = graph.node("Add", graph.node("Abs", total), graph.constant(np.ones(1)))
        size = graph.node("Mul", size, graph.constant(np.full(1, 3.0)))
        first = graph.node("Not", graph.node("Less", values, zero))
        confident = graph.node("Div", total, size)
        scores = graph.node("Add", votes(first), confident)
    if break_ties:
        return scores, scores
    return scores, votes(graph.node("Greater", values, zero))


def _kernel(graph: Any, kernel: Kernel, X: str, vectors: NDArray[Any]) -> str:
    """Add the kernel values of X and the vectors, shape (n, len(vectors))."""

    def number(value: float) -> str:
        return str(graph.constant(np.full(1, float(value))))

    gamma = float(getattr(kernel, "gamma", 1.0))
    if isinstance(kernel, RBF | Laplacian):
        if isinstance(kernel, Laplacian):
            distance = _distances(graph, X, vectors, "Abs")
        else:
            distance = _squares(graph, kernel, X, vectors)
        return str(graph.node("Exp", graph.node("Mul", distance, number(-gamma))))
    values = graph.node("MatMul", X, _constant_double(graph, vectors.T))
    if isinstance(kernel, Polynomial | Sigmoid):
        values = graph.node("Mul", values, number(gamma))
        values = graph.node("Add", values, number(kernel.coef0))
        if isinstance(kernel, Sigmoid):
            values = graph.node("Tanh", values)
        else:
            values = graph.node("Pow", values, number(kernel.degree))
    return str(values)


def _squares(graph: Any, kernel: RBF, X: str, vectors: NDArray[Any]) -> str:
    """Add ``||x - v||^2`` for all rows of X and all vectors.

    They are computed from products of centred points where these are accurate enough
    for all vectors, as in prediction (kernels/predict.py); else from differences.
    """
    rows, _, _ = inspect_rows(np.ascontiguousarray(vectors), 0.0)
    points = core.KernelRows(rows, *core_arguments(kernel), None, True, 1)
    if not points.by_products:
        return _distances(graph, X, vectors, "Mul")
    centred = vectors.astype(np.float64) - points.centre
    X = graph.node("Sub", X, graph.constant(points.centre))
    own = graph.node("Mul", X, X)
    own = graph.node("ReduceSum", own, graph.constant(np.array([1])), keepdims=1)
    norms = np.einsum("ij,ij->i", centred, centred)
    twice = graph.node(
        "MatMul", X, graph.constant(np.ascontiguousarray(-2.0 * centred.T))
    )
    square = graph.node("Add", graph.node("Add", own, graph.constant(norms)), twice)
    # Rounding can make a square negative. Squares of very distant rows can overflow.
    square = graph.node("Max", square, graph.constant(np.zeros(1)))
    far = graph.constant(np.full(1, np.finfo(np.float64).max))
    return str(graph.node("Where", graph.node("IsNaN", square), far, square))


def _distances(graph: Any, X: str, vectors: NDArray[Any], size: str) -> str:
    """Add the L1 distances (`size` "Abs") or squared L2 distances ("Mul").

    A scan over the rows of X avoids an array of all differences.
    """
    from onnx import TensorProto, helper

    points = _constant_double(graph, vectors)
    axes = graph.constant(np.array([1]))
    apart = ["difference"] if size == "Abs" else ["difference", "difference"]
    body = helper.make_graph(
        [
            helper.make_node("Sub", [points, "row"], ["difference"]),
            helper.make_node(size, apart, ["distance"]),
            helper.make_node("ReduceSum", ["distance", axes], ["sum"], keepdims=0),
        ],
        "distances",
        [helper.make_tensor_value_info("row", TensorProto.DOUBLE, [vectors.shape[1]])],
        [helper.make_tensor_value_info("sum", TensorProto.DOUBLE, [len(vectors)])],
    )
    return str(graph.node("Scan", X, body=body, num_scan_inputs=1))


def _constant_double(graph: Any, array: NDArray[Any]) -> str:
    """Add a float64 constant, stored as float32 if the array is float32."""
    name: str = graph.constant(np.ascontiguousarray(array))
    if array.dtype == np.float64:
        return name
    return str(graph.node("Cast", name, to=_element(double=True)))


def _columns(model: Any) -> int:
    """Return the number of columns of the scores with more than two classes."""
    classes = len(model.classes_)
    if getattr(model, "decision_function_shape", "ovr") == "ovo":
        return classes * (classes - 1) // 2
    return classes


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes in a type that ONNX has: integers as int64, strings as object.

    Raises
    ------
    ValueError
        If ONNX has no such type.
    """
    if classes.dtype.kind in "iu":
        whole = classes.astype(np.int64)
        if np.array_equal(whole, classes):
            return whole
    elif classes.dtype.kind == "b" or classes.dtype in (np.float32, np.float64):
        return classes
    elif classes.dtype.kind in "UO" and all(isinstance(c, str) for c in classes):
        return classes.astype(object)
    raise ValueError(
        f"classes of dtype {classes.dtype} have no type in ONNX; use strings, "
        "booleans, floats or integers below 2**63 as labels"
    )


def _refuse(model: Any) -> None:
    """Raise an error for a model that cannot be converted.

    Raises
    ------
    TypeError
        If the type of the model is not supported.
    ValueError
        If the kernel or the size of the model is not supported.
    """
    name = type(model).__name__
    from sklearn.pipeline import Pipeline

    if isinstance(model, Pipeline):
        raise TypeError(
            "model is a Pipeline; call dualgap.register_skl2onnx(), then "
            "skl2onnx.to_onnx(pipeline, X[:1], options={'zipmap': False})"
        )
    if not isinstance(model, Model):
        raise TypeError(f"model is a {name}; give an SVM of dualgap")
    check_is_fitted(model)
    if not hasattr(model, "kernel"):
        taken = model.coef_.size * 8
    else:
        kernel = model._fitted_kernel
        known: Sequence[type[Kernel]] = (Linear, Polynomial, RBF, Sigmoid, Laplacian)
        if type(kernel) not in known:
            raise ValueError(
                f"kernel={kernel.name!r} cannot be converted to ONNX; use 'linear', "
                "'poly', 'rbf', 'sigmoid' or 'laplacian'"
            )
        vectors = model.support_vectors_
        taken = vectors.shape[0] * vectors.shape[1] * vectors.dtype.itemsize
        taken += model.dual_coef_.nbytes
    if taken > _LARGEST:
        raise ValueError(
            f"the model has {taken:,} bytes, but an ONNX graph can have {_LARGEST:,}. "
            "Train on fewer features, or with solver='nystroem' for fewer support "
            "vectors"
        )


def _double(array: Any) -> NDArray[np.float64]:
    return np.ascontiguousarray(array, dtype=np.float64)


def _dense(array: Any) -> NDArray[Any]:
    return np.asarray(array.toarray() if sparse.issparse(array) else array)


def _element(double: bool) -> int:
    """Return ONNX's number for float64 or float32."""
    from onnx import TensorProto

    return int(TensorProto.DOUBLE if double else TensorProto.FLOAT)


def _integer() -> int:
    from onnx import TensorProto

    return int(TensorProto.INT64)


def _require(package: str) -> None:
    try:
        __import__(package)
    except ImportError as error:
        raise ImportError(
            f"ONNX export needs the package {package}; install it with: pip install "
            "'dualgap[onnx]'"
        ) from error

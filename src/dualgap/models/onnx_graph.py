"""Graphs of ONNX nodes that compute decisions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from .. import core
from ..data.rows import accessor_of
from ..data.types import Matrix
from ..estimators import LinearOneClassSVM, LinearSVC, LinearSVR
from ..estimators.calibrators import (
    Calibrator,
    SigmoidCalibrator,
    TemperatureCalibrator,
)
from ..estimators.svc import KernelClassifier
from ..kernel import RBF, Laplacian, Linear, Polynomial, Sigmoid
from ..kernels.functions import Kernel
from ..kernels.predict import pair_weights
from ..losses import Vector
from ..problems.reductions import OneVsOne, reduction_in

if TYPE_CHECKING:
    import onnx
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Scope


_OPSET = 13  # the lowest with all operators used here

_LARGEST = 2**31 - 1  # largest size of a protocol buffer in bytes


# -------------------------------------------------------------------- the two writers


class _Graph:
    """Nodes and constants of a stand-alone ONNX graph."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, array: NDArray[np.generic]) -> str:
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

    def __init__(self, scope: Scope, container: ModelComponentContainer) -> None:
        self.scope = scope
        self.container = container

    def constant(self, array: NDArray[np.generic]) -> str:
        from onnx import numpy_helper

        name = str(self.scope.get_unique_variable_name("constant"))
        tensor = numpy_helper.from_array(array, name)
        # skl2onnx does not copy the strings of a tensor
        content = tensor if array.dtype != object else tensor.string_data
        self.container.add_initializer(name, tensor.data_type, array.shape, content)
        return name

    def node(
        self, kind: str, *inputs: str, name: str = "", **attributes: object
    ) -> str:
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


Graph: TypeAlias = _Graph | _Skl2onnxGraph


# ------------------------------------------------------------------------- the graphs


def _single(graph: Graph, model: BaseEstimator, X: str) -> str:
    """Add the values of a model without classes: float64, a column a problem."""
    if isinstance(model, LinearSVR | LinearOneClassSVM):
        coef = graph.constant(_double(np.atleast_2d(_dense(model.coef_)).T))
        values = graph.node("MatMul", X, coef)
    elif isinstance(model._fitted_kernel, Linear):
        values = graph.node("MatMul", X, graph.constant(_double(_dense(model.coef_).T)))
    else:
        vectors = _dense(model.support_vectors_)
        values = _kernel(graph, model._fitted_kernel, X, vectors)
        coef = graph.constant(_double(model.dual_coef_.T))
        values = graph.node("MatMul", values, coef)
    constant = graph.constant(_double(model.intercept_))
    return graph.node("Add", values, constant)


def _side(graph: Graph, model: BaseEstimator, values: str) -> tuple[str, str]:
    """Add the label, 1 or -1, and the decision, with rounding errors set to 0."""
    zero = graph.constant(np.zeros(1))
    least = graph.constant(np.full(1, model._least))
    off = graph.node("Greater", graph.node("Abs", values), least)
    decision = graph.node("Where", off, values, zero)
    outside = graph.node("Less", decision, zero)
    one = graph.constant(np.ones(1, np.int64))
    label = graph.node("Where", outside, graph.constant(-np.ones(1, np.int64)), one)
    return label, decision


def _outputs(
    graph: Graph,
    model: BaseEstimator,
    X: str,
    labels: NDArray[np.generic],
    calibrators: Sequence[Calibrator] = (),
) -> tuple[str, str]:
    """Add the labels, shape (n,), and the scores in float64, shape (n, m).

    With calibrators, add the probabilities of all classes in place of the scores.
    """
    X = graph.node("Cast", X, to=_element(double=True))
    if isinstance(model, LinearSVC):
        coef = _dense(model.coef_)
        scores = graph.node("MatMul", X, graph.constant(_double(coef.T)))
        scores = graph.node("Add", scores, graph.constant(_double(model.intercept_)))
        elected = scores
        if isinstance(reduction_in(model), OneVsOne):
            values = graph.node("Neg", scores)  # positive for the first of a pair
            scores, elected = _elect(graph, len(labels), values, True, True)
    else:
        values = _pair_values(graph, model, X)
        by_class = model.decision_function_shape == "ovr"
        scores, elected = _elect(graph, len(labels), values, by_class, model.break_ties)
    if calibrators:
        scores = _probabilities(graph, calibrators, scores, len(labels))
        chosen = graph.node("ArgMax", scores, axis=1, keepdims=0)
    elif len(labels) == 2:
        zero = graph.constant(np.zeros(1))
        chosen = graph.node("Cast", graph.node("Greater", scores, zero), to=_integer())
        chosen = graph.node("Squeeze", chosen, graph.constant(np.array([1])))
    else:
        chosen = graph.node("ArgMax", elected, axis=1, keepdims=0)
    return graph.node("Gather", graph.constant(labels), chosen), scores


def _probabilities(
    graph: Graph, calibrators: Sequence[Calibrator], scores: str, classes: int
) -> str:
    """Add the probabilities of all classes in float64, shape (n, K)."""
    first = calibrators[0]
    if isinstance(first, TemperatureCalibrator):
        scores = graph.node("Mul", scores, graph.constant(np.full(1, first.factor)))
        if classes == 2:
            scores = graph.node("Concat", graph.node("Neg", scores), scores, axis=1)
        return str(graph.node("Softmax", scores, axis=1))
    if isinstance(first, SigmoidCalibrator):
        lines = np.vstack([of.table for of in calibrators])
        values = graph.node("Mul", scores, graph.constant(_double(lines[:, 0])))
        values = graph.node("Add", values, graph.constant(_double(lines[:, 1])))
        values = graph.node("Sigmoid", values)
    else:
        each = [_steps(graph, of.table, scores, c) for c, of in enumerate(calibrators)]
        values = graph.node("Concat", *each, axis=1)
    one = graph.constant(np.ones(1))
    if classes == 2:
        return str(graph.node("Concat", graph.node("Sub", one, values), values, axis=1))
    total = graph.node("ReduceSum", values, graph.constant(np.array([1])), keepdims=1)
    some = graph.node("Greater", total, graph.constant(np.zeros(1)))
    shares = graph.node("Div", values, graph.node("Where", some, total, one))
    uniform = graph.constant(np.full((1, classes), 1.0 / classes))
    return str(graph.node("Where", some, shares, uniform))


def _steps(graph: Graph, table: Vector, scores: str, column: int) -> str:
    """Add the values of a function that is linear between its steps, shape (n, 1)."""
    steps, heights = table.T
    at = graph.constant(np.array([column]))
    values = graph.node("Gather", scores, at, axis=1)
    for side, end in (("Max", steps[0]), ("Min", steps[-1])):
        values = graph.node(side, values, graph.constant(np.full(1, end)))
    # The last step at or before a value: the number of steps after the first that are.
    before = graph.node("Less", values, graph.constant(_double(steps[1:])))
    before = graph.node("Cast", graph.node("Not", before), to=_integer())
    place = graph.node("ReduceSum", before, graph.constant(np.array([1])), keepdims=1)
    slopes = np.append(np.diff(heights) / np.diff(steps), 0.0)
    x, y, slope = (
        graph.node("Gather", graph.constant(_double(of)), place)
        for of in (steps, heights, slopes)
    )
    rise = graph.node("Mul", slope, graph.node("Sub", values, x))
    return str(graph.node("Add", y, rise))


def _pair_values(graph: Graph, model: KernelClassifier, X: str) -> str:
    """Add the decision values of the pairs, shape (n, K (K - 1) / 2)."""
    classes = len(model.classes_)
    vectors = _dense(model.support_vectors_)
    if isinstance(model._fitted_kernel, Linear):
        weights = pair_weights(vectors, model.dual_coef_, model.n_support_)
        values = graph.node("MatMul", X, graph.constant(_double(weights.T)))
        constant = graph.constant(_double(model.intercept_))
        return graph.node("Add", values, constant)
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
    graph: Graph, classes: int, values: str, by_class: bool, break_ties: bool
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


def _kernel(graph: Graph, kernel: Kernel, X: str, vectors: NDArray[np.generic]) -> str:
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


def _squares(graph: Graph, kernel: RBF, X: str, vectors: NDArray[np.generic]) -> str:
    """Add ``||x - v||^2`` for all rows of X and all vectors.

    They are computed from products of centred points where these are accurate enough
    for all vectors, as in prediction (kernels/predict.py); else from differences.
    """
    rows = accessor_of(np.ascontiguousarray(vectors))
    points = core.KernelRows(rows, kernel.form, None, True, 1)
    if not points.by_products or points.centre is None:
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


def _distances(graph: Graph, X: str, vectors: NDArray[np.generic], size: str) -> str:
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


def _constant_double(graph: Graph, array: NDArray[np.generic]) -> str:
    """Add a float64 constant, stored as float32 if the array is float32."""
    name: str = graph.constant(np.ascontiguousarray(array))
    if array.dtype == np.float64:
        return name
    return str(graph.node("Cast", name, to=_element(double=True)))


def _double(array: ArrayLike) -> NDArray[np.float64]:
    return np.ascontiguousarray(array, dtype=np.float64)


def _dense(array: Matrix) -> NDArray[np.generic]:
    return np.asarray(array.toarray() if sparse.issparse(array) else array)


def _element(double: bool) -> int:
    """Return ONNX's number for float64 or float32."""
    from onnx import TensorProto

    return int(TensorProto.DOUBLE if double else TensorProto.FLOAT)


def _integer() -> int:
    from onnx import TensorProto

    return int(TensorProto.INT64)

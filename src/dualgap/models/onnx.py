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
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn import model_selection
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ..checks import only_a_model
from ..estimators.base import final, own
from ..estimators.calibration import CalibratedClassifier
from ..estimators.calibrators import Calibrator
from ..estimators.cross_validation import SVCCV, SVRCV, LinearSVCCV
from ..estimators.drop_ins import DROP_INS, exchange, seeing
from ..estimators.grid_search import GridSearchCV
from ..estimators.linear_svc import LinearSVC
from ..estimators.novelty import LinearOneClassSVM, OneClassSVM
from ..estimators.nu import NuSVC, NuSVR
from ..estimators.regression import SVR, LinearSVR
from ..estimators.svc import SVC
from ..kernel import RBF, Laplacian, Linear, Polynomial, Sigmoid
from ..kernels.functions import Kernel
from ..problems.reductions import Joint, OneVsOne, OneVsRest, refuse_others
from .onnx_graph import (
    _LARGEST,
    _OPSET,
    _element,
    _Graph,
    _integer,
    _outputs,
    _side,
    _single,
    _Skl2onnxGraph,
)

if TYPE_CHECKING:
    import onnx
    from skl2onnx.common._container import ModelComponentContainer
    from skl2onnx.common._topology import Operator, Scope


Model = (
    LinearSVC | SVC | NuSVC | LinearSVR | SVR | NuSVR | LinearOneClassSVM | OneClassSVM
)

_REGRESSORS = (LinearSVR, SVR, NuSVR)

_ONE_CLASS = (LinearOneClassSVM, OneClassSVM)


@only_a_model
def to_onnx(model: BaseEstimator, *, dtype: DTypeLike = np.float32) -> onnx.ModelProto:
    """Convert a fitted model to an ONNX graph.

    Parameters
    ----------
    model : LinearSVC, SVC, NuSVC, LinearSVR, SVR, NuSVR, LinearOneClassSVM, \
OneClassSVM or CalibratedClassifier
        A fitted model of dualgap, a patched one of scikit-learn, or a search that has
        trained one on all rows. For a pipeline, see :func:`register_skl2onnx`.
    dtype : {float32, float64}, default=float32
        Type of the input and of the scores. The graph computes in float64.

    Returns
    -------
    onnx.ModelProto
        The graph; write it with ``onnx.save(proto, path)``. Its input is ``X``, a dense
        array of shape (n_samples, n_features). Its outputs are ``label``, of shape
        (n_samples,) and the type of ``classes_`` (integers as int64), and ``scores``,
        the result of ``decision_function``. A calibrated classifier has
        ``probabilities``, the result of ``predict_proba``, in place of the scores. A
        regression model has a single output ``prediction``, of the shape of
        ``predict``. A one-class model has the labels 1 and -1.

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
    name, calibrators = type(model).__name__, _calibrators(model)
    model = _checked(model)
    graph = _Graph()
    element = helper.np_dtype_to_tensor_dtype(dtype)
    columns: list[int] = []
    outputs, last = [], "scores"
    if isinstance(model, _REGRESSORS + _ONE_CLASS):
        scores = _single(graph, model, graph.node("Cast", "X", to=_element(True)))
        columns = [len(model.intercept_)]
        if columns == [1]:  # not several quantiles
            columns = []
            scores = graph.node("Squeeze", scores, graph.constant(np.array([1])))
        if isinstance(model, _ONE_CLASS):
            label, scores = _side(graph, model, scores)
            graph.node("Identity", label, name="label")
            outputs = [helper.make_tensor_value_info("label", _integer(), ["n"])]
    else:
        labels = _labels(model.classes_)
        label, scores = _outputs(graph, model, "X", labels, calibrators)
        if calibrators:
            columns, last = [len(labels)], "probabilities"
        elif len(model.classes_) == 2:
            scores = graph.node("Squeeze", scores, graph.constant(np.array([1])))
        else:
            columns = [_columns(model)]
        graph.node("Identity", label, name="label")
        kind = onnx.numpy_helper.from_array(labels).data_type
        outputs = [helper.make_tensor_value_info("label", kind, ["n"])]
    last = last if outputs else "prediction"
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
    ``CalibratedClassifierCV``, ``OneVsRestClassifier`` and grid searches. Patched
    classes of scikit-learn are converted as skl2onnx converts scikit-learn's own,
    whether they are patched before or after skl2onnx is imported.

    The second output of classifiers, "probabilities", contains the decision values with
    one column per class, as with skl2onnx's own classifiers, and the probabilities of a
    ``CalibratedClassifier``. Two classes have minus and
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
    >>> dualgap.models.register_skl2onnx()
    >>> proto = skl2onnx.to_onnx(pipeline, X[:1], options={"zipmap": False})
    >>> [output.name for output in proto.graph.output]
    ['label', 'probabilities']
    """
    _require("skl2onnx")
    from skl2onnx import update_registered_converter

    for single in (*_REGRESSORS, SVRCV, *_ONE_CLASS):
        update_registered_converter(
            single,
            f"Dualgap{single.__name__}",
            _single_shapes,
            _convert_single,
        )
    searches = (LinearSVCCV, SVCCV, CalibratedClassifier)
    for estimator in (LinearSVC, SVC, NuSVC, *searches):
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
    _register_subclasses()


def _register_subclasses() -> None:
    """Let skl2onnx convert the drop-ins and `GridSearchCV` as scikit-learn's classes.

    skl2onnx knows whichever class of a name scikit-learn's modules had when it was
    imported, and looks most of them up by identity.
    """
    from skl2onnx import _parse, _supported_operators
    from skl2onnx.common._registration import get_converter

    pairs = {drop_in._original: drop_in for drop_in in DROP_INS.values()}
    for original, drop_in in pairs.items():
        exchange(original.__name__, drop_in, original, within="skl2onnx")
    pairs[model_selection.GridSearchCV] = GridSearchCV
    parsers = _parse.sklearn_parsers_map
    for original, other in pairs.items():
        for known in (_supported_operators.sklearn_operator_name_map, parsers):
            if original in known or other in known:
                known[original] = known[other] = known.get(original, known.get(other))
        for kinds in (
            _supported_operators.sklearn_classifier_list,
            _supported_operators.outlier_list,
        ):
            if original in kinds or other in kinds:
                kinds += {original, other}.difference(kinds)
    parsers[DROP_INS["SVC"]] = seeing(
        _parse._parse_sklearn_classifier, SVC=DROP_INS["SVC"]
    )
    # skl2onnx 1.20 gives this option to the last step of a pipeline, and then refuses a
    # LinearSVC there, of scikit-learn too, because it lacks the option.
    options = get_converter("SklearnLinearSVC").get_allowed_options()
    options.setdefault("zipmap", [True, False])


def _shapes(operator: Operator) -> None:
    """Set the types and shapes of a classifier's outputs, for skl2onnx."""
    from skl2onnx.common.shape_calculator import (
        calculate_linear_classifier_output_shapes,
    )

    calculate_linear_classifier_output_shapes(operator)
    model = operator.raw_operator
    if len(model.classes_) > 2:
        operator.outputs[1].type.shape[1] = _columns(model)


def _convert(
    scope: Scope, operator: Operator, container: ModelComponentContainer
) -> None:
    """Add the nodes of a classifier to the graph, for skl2onnx."""
    from skl2onnx.common.data_types import DoubleTensorType
    from skl2onnx.common.utils_classifier import get_label_classes

    calibrators = _calibrators(operator.raw_operator)
    model = _checked(operator.raw_operator)
    _refuse_old(model, container)
    labels = _labels(np.asarray(get_label_classes(scope, model)))
    if labels.dtype.kind != "O":  # the output type that `_shapes` has declared
        labels = labels.astype(np.int64)
    graph = _Skl2onnxGraph(scope, container)
    X = operator.inputs[0].full_name
    label, scores = _outputs(graph, model, X, labels, calibrators)
    if len(labels) == 2 and not calibrators:
        scores = graph.node("Concat", graph.node("Neg", scores), scores, axis=1)
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    graph.node("Identity", label, name=operator.outputs[0].full_name)
    graph.node("Cast", scores, name=operator.outputs[1].full_name, to=_element(double))


def _single_shapes(operator: Operator) -> None:
    """Set the types and shapes of the outputs of a model without classes."""
    from skl2onnx.common.data_types import Int64TensorType

    rows = operator.inputs[0].get_first_dimension()
    *labels, scores = operator.outputs
    for label in labels:
        label.type = Int64TensorType([rows, 1])
    scores.type.shape = [rows, len(_checked(operator.raw_operator).intercept_)]


def _convert_single(
    scope: Scope, operator: Operator, container: ModelComponentContainer
) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    model = _checked(operator.raw_operator)
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


def _refuse_old(model: BaseEstimator, container: ModelComponentContainer) -> None:
    if container.target_opset < _OPSET:
        raise ValueError(
            f"target_opset={container.target_opset} is too old for "
            f"{type(model).__name__}; use {_OPSET} or later"
        )


def _calibrators(model: BaseEstimator) -> tuple[Calibrator, ...]:
    """Return the calibrators of a calibrated classifier, or of the best of a search."""
    return getattr(getattr(model, "best_estimator_", model), "calibrators_", ())


def _columns(model: BaseEstimator) -> int:
    """Return the number of columns of the scores with more than two classes."""
    classes = len(model.classes_)
    if getattr(model, "decision_function_shape", "ovr") == "ovo":
        return classes * (classes - 1) // 2
    return classes


def _labels(classes: NDArray[np.generic]) -> NDArray[np.generic]:
    """Return the classes in a type of ONNX: integers as int64, strings as object."""
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


def _checked(model: BaseEstimator) -> Model:
    """Return dualgap's own model that a search or a patched class holds, if any."""
    from sklearn.pipeline import Pipeline

    model = final(model)
    if isinstance(model, Pipeline):
        raise TypeError(
            "model is a Pipeline; call dualgap.models.register_skl2onnx(), then "
            "skl2onnx.to_onnx(pipeline, X[:1], options={'zipmap': False})"
        )
    check_is_fitted(model)
    model = own(model)
    refuse_others(model, "to_onnx", OneVsRest, OneVsOne, Joint)
    if not isinstance(model, Model):
        raise TypeError(f"model is a {type(model).__name__}; give an SVM of dualgap")
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
    return model


def _require(package: str) -> None:
    try:
        __import__(package)
    except ImportError as error:
        raise ImportError(
            f"ONNX export needs the package {package}; install it with: pip install "
            "'dualgap[onnx]'"
        ) from error

"""Support vector machines trained to a certificate.

Every model comes with the primal and the dual value of its training problem,
computed over the whole data, so that one can read how far it is from the optimum.
"""

from __future__ import annotations

from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._show_versions import show_versions
    from .certificate import Certificate, Status
    from .estimators import (
        SVC,
        SVR,
        LinearOneClassSVM,
        LinearSVC,
        LinearSVCCV,
        LinearSVR,
        OneClassSVM,
        SVMPath,
        certify,
        compress,
        load_model,
        read_liblinear,
        read_libsvm,
        register_skl2onnx,
        save_model,
        svm_path,
        to_onnx,
        write_liblinear,
        write_libsvm,
    )
    from .io import load_svmlight
    from .loop import Solution, solve
    from .losses import (
        EpsilonInsensitive,
        Hinge,
        SmoothedHinge,
        SquaredEpsilonInsensitive,
        SquaredHinge,
    )
    from .problem import Problem
    from .regression import OneClassProblem, RegressionProblem
    from .solvers import (
        DCD,
        NORMA,
        SDCA,
        SOLVERS,
        Pegasos,
        SGDm,
        SGDr,
        SGDs,
        SvmSGD,
    )

__version__ = _version("dualgap")

# What `import dualgap` gives, and the module that each name comes from. Nothing is
# imported before it is asked for: `import dualgap` stays cheap beside scikit-learn.
_HOME = {
    "DCD": ".solvers",
    "NORMA": ".solvers",
    "SDCA": ".solvers",
    "SOLVERS": ".solvers",
    "SVC": ".estimators",
    "SVMPath": ".estimators",
    "Certificate": ".certificate",
    "Hinge": ".losses",
    "EpsilonInsensitive": ".losses",
    "LinearOneClassSVM": ".estimators",
    "LinearSVC": ".estimators",
    "LinearSVCCV": ".estimators",
    "LinearSVR": ".estimators",
    "OneClassProblem": ".regression",
    "OneClassSVM": ".estimators",
    "RegressionProblem": ".regression",
    "SVR": ".estimators",
    "SquaredEpsilonInsensitive": ".losses",
    "Pegasos": ".solvers",
    "Problem": ".problem",
    "SGDm": ".solvers",
    "SGDr": ".solvers",
    "SGDs": ".solvers",
    "SmoothedHinge": ".losses",
    "Solution": ".loop",
    "SquaredHinge": ".losses",
    "Status": ".certificate",
    "SvmSGD": ".solvers",
    "certify": ".estimators",
    "compress": ".estimators",
    "load_model": ".estimators",
    "load_svmlight": ".io",
    "read_liblinear": ".estimators",
    "read_libsvm": ".estimators",
    "register_skl2onnx": ".estimators",
    "save_model": ".estimators",
    "show_versions": "._show_versions",
    "solve": ".loop",
    "svm_path": ".estimators",
    "to_onnx": ".estimators",
    "write_liblinear": ".estimators",
    "write_libsvm": ".estimators",
}

__all__ = [
    "DCD",
    "NORMA",
    "SDCA",
    "SOLVERS",
    "SVC",
    "SVR",
    "Certificate",
    "EpsilonInsensitive",
    "Hinge",
    "LinearOneClassSVM",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "OneClassProblem",
    "OneClassSVM",
    "Pegasos",
    "Problem",
    "RegressionProblem",
    "SGDm",
    "SGDr",
    "SGDs",
    "SVMPath",
    "SmoothedHinge",
    "Solution",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "Status",
    "SvmSGD",
    "__version__",
    "certify",
    "compress",
    "load_model",
    "load_svmlight",
    "read_liblinear",
    "read_libsvm",
    "register_skl2onnx",
    "save_model",
    "show_versions",
    "solve",
    "svm_path",
    "to_onnx",
    "write_liblinear",
    "write_libsvm",
]


#: Modules that are there after `import dualgap`, imported when they are asked for.
_MODULES = {"distributed", "io", "kernel", "losses", "plot", "solvers"}


def __getattr__(name: str) -> Any:
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    value = getattr(import_module(_HOME[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

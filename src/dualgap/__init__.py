"""Support vector machines with a certificate of optimality.

Every fitted model comes with the primal and the dual value of its training problem,
computed over all training rows. Their difference, the duality gap, bounds how far the
model is from the optimum.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from .names import Guesses, instead

if TYPE_CHECKING:
    __version__: str
    from ._show_versions import show_versions
    from .answers.decided import Decided
    from .certificate import Certificate, Status
    from .data import load_svmlight
    from .estimators import (
        SVC,
        SVCCV,
        SVR,
        SVRCV,
        LinearOneClassSVM,
        LinearSVC,
        LinearSVCCV,
        LinearSVR,
        OneClassSVM,
        SVCPath,
        SVMPath,
        svc_path,
        svm_path,
    )
    from .html_report import Report, report
    from .losses import (
        EpsilonInsensitive,
        Hinge,
        SmoothedHinge,
        SquaredEpsilonInsensitive,
        SquaredHinge,
    )
    from .models import (
        ErrorBounds,
        WhatIf,
        certify,
        compress,
        cv_bounds,
        influence,
        load_model,
        loo_bounds,
        read_liblinear,
        read_libsvm,
        register_skl2onnx,
        save_model,
        to_onnx,
        what_if,
        write_liblinear,
        write_libsvm,
        write_proof,
    )
    from .patch import patch_sklearn, unpatch_sklearn
    from .problems.binary import BinaryProblem
    from .problems.binary import BinaryProblem as Problem
    from .problems.degenerate import DegenerateWarning
    from .problems.one_class import OneClassProblem
    from .problems.regression import RegressionProblem
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
    from .training import Solution, solve

# Public names and the modules that define them. A module is imported when one of its
# names is first used, which keeps `import dualgap` fast.
_HOME = {
    "DCD": ".solvers",
    "NORMA": ".solvers",
    "SDCA": ".solvers",
    "SOLVERS": ".solvers",
    "SVC": ".estimators",
    "SVCCV": ".estimators",
    "SVRCV": ".estimators",
    "SVCPath": ".estimators",
    "SVMPath": ".estimators",
    "BinaryProblem": ".problems.binary",
    "Decided": ".answers.decided",
    "DegenerateWarning": ".problems.degenerate",
    "ErrorBounds": ".models",
    "WhatIf": ".models",
    "Certificate": ".certificate",
    "Hinge": ".losses",
    "EpsilonInsensitive": ".losses",
    "LinearOneClassSVM": ".estimators",
    "LinearSVC": ".estimators",
    "LinearSVCCV": ".estimators",
    "LinearSVR": ".estimators",
    "OneClassProblem": ".problems.one_class",
    "OneClassSVM": ".estimators",
    "RegressionProblem": ".problems.regression",
    "Report": ".html_report",
    "SVR": ".estimators",
    "SquaredEpsilonInsensitive": ".losses",
    "Pegasos": ".solvers",
    "Problem": ".problems.binary",
    "SGDm": ".solvers",
    "SGDr": ".solvers",
    "SGDs": ".solvers",
    "SmoothedHinge": ".losses",
    "Solution": ".training",
    "SquaredHinge": ".losses",
    "Status": ".certificate",
    "SvmSGD": ".solvers",
    "certify": ".models",
    "compress": ".models",
    "cv_bounds": ".models",
    "influence": ".models",
    "load_model": ".models",
    "load_svmlight": ".data",
    "loo_bounds": ".models",
    "patch_sklearn": ".patch",
    "read_liblinear": ".models",
    "read_libsvm": ".models",
    "register_skl2onnx": ".models",
    "report": ".html_report",
    "save_model": ".models",
    "show_versions": "._show_versions",
    "solve": ".training",
    "svc_path": ".estimators",
    "svm_path": ".estimators",
    "to_onnx": ".models",
    "unpatch_sklearn": ".patch",
    "what_if": ".models",
    "write_liblinear": ".models",
    "write_libsvm": ".models",
    "write_proof": ".models",
}

# Short public names of classes that have a longer name in their module.
_ALIASES = {"Problem": "BinaryProblem"}

__all__ = [
    "DCD",
    "NORMA",
    "SDCA",
    "SOLVERS",
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "BinaryProblem",
    "Certificate",
    "Decided",
    "DegenerateWarning",
    "EpsilonInsensitive",
    "ErrorBounds",
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
    "Report",
    "SGDm",
    "SGDr",
    "SGDs",
    "SVCPath",
    "SVMPath",
    "SmoothedHinge",
    "Solution",
    "SquaredEpsilonInsensitive",
    "SquaredHinge",
    "Status",
    "SvmSGD",
    "WhatIf",
    "__version__",
    "certify",
    "compress",
    "cv_bounds",
    "influence",
    "load_model",
    "load_svmlight",
    "loo_bounds",
    "patch_sklearn",
    "read_liblinear",
    "read_libsvm",
    "register_skl2onnx",
    "report",
    "save_model",
    "show_versions",
    "solve",
    "svc_path",
    "svm_path",
    "to_onnx",
    "unpatch_sklearn",
    "what_if",
    "write_liblinear",
    "write_libsvm",
    "write_proof",
]


#: Submodules that are available after `import dualgap`. Each is imported on first use.
_MODULES = {
    "data",
    "distributed",
    "kernel",
    "losses",
    "model_selection",
    "plot",
    "solvers",
}

sys.meta_path.insert(0, Guesses)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        globals()[name] = value = version("dualgap")
        return value
    if name not in _HOME and name not in _MODULES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}{instead(name)}"
        )
    from importlib import import_module

    if name in _MODULES:
        return import_module(f".{name}", __name__)
    value = getattr(import_module(_HOME[name], __name__), _ALIASES.get(name, name))
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = (name for name in globals() if name.startswith("__"))
    return sorted({*own, *__all__, *_MODULES})

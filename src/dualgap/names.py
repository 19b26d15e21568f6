"""Other packages' names, the name meant by a wrong one, and the own version."""

from __future__ import annotations

import functools
from collections.abc import Collection

#: Names of kernels and solvers, and the name here.
ALIASES = {
    "kernel": {
        "gaussian": "rbf",
        "radial": "rbf",
        "polynomial": "poly",
        "laplace": "laplacian",
        "tanh": "sigmoid",
    },
    "solver": dict.fromkeys(("smo", "libsvm", "liblinear"), "auto"),
}
#: Words that are less similar than this are not taken for misspellings, or than this if
#: they begin with different letters.
_SIMILAR = (0.66, 0.76)


def nearest(word: str, known: Collection[str], parameter: str = "") -> str | None:
    """Return the known name that a wrong one stands for, or None.

    `word`: a name that is not known. `parameter`: parameter whose aliases count, a key
    of ``ALIASES``. Returns the name that `word`, or the alias most similar to it,
    stands for.
    """
    import difflib  # takes longer than the rest of `import dualgap`

    aliases = ALIASES.get(parameter, {}).items()
    folded = {alias: name for alias, name in aliases if name in known}
    folded |= {name.lower().replace("_", "-"): name for name in known}
    word = word.lower().replace("_", "-")
    for cutoff, start in zip(_SIMILAR, (word[:1], ""), strict=True):
        likely = [name for name in folded if name.startswith(start)]
        if near := difflib.get_close_matches(word, likely, n=1, cutoff=cutoff):
            return folded[near[0]]
    return None


# ------------------------------------------------ names in modules of other packages

_WITH_THEM = "keep sklearn.{0}, whose tools take the estimators of dualgap"
_L1 = "use LinearSVC(penalty='l1') or LogisticRegression(l1_ratio=1) for classes"
_BATCHES = "use LinearSVC, whose partial_fit learns from batches"
_KERNEL = "use SVC, or LinearSVC if the kernel is linear"
_LOGISTIC = (
    "use LogisticRegression in sklearn.model_selection.GridSearchCV, which chooses C"
)
_RIDGE = (
    "use LinearSVC(loss='squared_hinge') with C = 1/(2 alpha): its loss is the square "
    "below the margin, and 0 beyond it"
)

#: Modules of scikit-learn, which are guessed by an exchange of ``sklearn.``.
MODULES = {
    "svm": "import SVC, LinearSVC, SVR, LinearSVR and OneClassSVM from dualgap itself, "
    "or call dualgap.patch_sklearn() and keep sklearn.svm",
    "linear_model": "import LogisticRegression, LinearSVC, LinearSVR and "
    "LinearOneClassSVM from dualgap itself, and keep sklearn.linear_model for other "
    "models",
} | {
    name: _WITH_THEM.format(name)
    for name in (
        *("base", "calibration", "compose", "datasets", "ensemble", "exceptions"),
        *("feature_selection", "inspection", "metrics", "multiclass", "multioutput"),
        *("pipeline", "preprocessing", "utils"),
    )
}

#: Names in modules of other packages.
INSTEAD = {
    "SGDClassifier": "use LinearSVC(penalize_intercept=False) with "
    "C = 1/(alpha n_samples)",
    "SGDRegressor": "use LinearSVR with C = 1/(alpha n_samples)",
    "SGDOneClassSVM": "use LinearOneClassSVM, with the same nu",
    "LogisticRegressionCV": _LOGISTIC,
    **dict.fromkeys(("RidgeClassifier", "RidgeClassifierCV"), _RIDGE),
    "Ridge": "use LinearSVR(loss='squared_epsilon_insensitive', epsilon=0) with "
    "C = 1/(2 alpha), which penalises the intercept too",
    **dict.fromkeys(("PassiveAggressiveClassifier", "Perceptron"), _BATCHES),
    **dict.fromkeys(("SVM", "SVMClassifier", "SVClassifier", "CSVC"), _KERNEL),
    **dict.fromkeys(("LinearSVM", "LinearSVMClassifier"), "use LinearSVC"),
    "HuberRegressor": "use LinearSVR, which is as robust, or keep scikit-learn's and "
    "certify it",
    "QuantileRegressor": "use LinearSVR(loss='quantile', quantile=q), which penalises "
    "the square of the weights, or SVR for kernels",
    **dict.fromkeys(("SVMRegressor", "EpsilonSVR"), "use SVR"),
    **dict.fromkeys(("OneClassSVC", "SVDD"), "use OneClassSVM"),
    **dict.fromkeys(("Lasso", "ElasticNet"), _L1),
    "l1_min_c": "dualgap.model_selection.l1_path returns it as `least`",
    **{
        name: f"import it from dualgap.{module}"
        for module, names in {
            "answers": ("Decided",),
            "certificate": ("Certificate", "Status"),
            "data": ("load_svmlight",),
            "losses": ("Hinge", "SquaredHinge", "SmoothedHinge", "Pinball"),
            "model_selection": ("GridSearchCV", "svm_path", "svc_path", "l1_path"),
            "models": (
                *("loo_bounds", "cv_bounds", "what_if", "influence", "write_proof"),
                "shapley_values",
                *("read_liblinear", "read_libsvm", "write_liblinear", "write_libsvm"),
            ),
            "problems": ("BinaryProblem", "RegressionProblem", "OneClassProblem"),
            "solvers": ("SOLVERS", "DCD", "SDCA", "Pegasos"),
            "training": ("solve", "Solution"),
        }.items()
        for name in names
    },
    "RandomizedSearchCV": "keep scikit-learn's, which takes the estimators of dualgap",
    "CalibratedClassifierCV": "use CalibratedClassifier, or import it from "
    "sklearn.calibration",
    "unpatch": "use unpatch_sklearn",
    "load": "use load_model",
    "save": "use save_model",
    "load_svmlight_file": "import load_svmlight from dualgap.data",
}


def instead(name: str) -> str:
    """Return the end of a message about a name: a colon and the answer, or nothing."""
    answer = INSTEAD.get(name) or MODULES.get(name)
    return f": {answer}" if answer else ""


class Guesses:
    """Finder of modules that refuses guessed modules, and names in ``from dualgap``.

    Python imports such a name as a module where the package does not have it, and says
    only that it cannot, unless this attempt raises another error.
    """

    @staticmethod
    def find_spec(fullname: str, *others: object) -> None:
        """Raise an error with the answer to a guessed name."""
        package, _, name = fullname.rpartition(".")
        if package != __package__:
            return
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {fullname!r}{instead(name)}")
        if name in INSTEAD:
            raise ImportError(
                f"cannot import name {name!r} from {package!r}{instead(name)}",
                name=package,
            )


@functools.cache
def own_version() -> str:
    """Return the version of dualgap, which files and pickles hold."""
    from importlib.metadata import version  # takes long

    return version("dualgap")

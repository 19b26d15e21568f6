"""Models inside pipelines and searches, and names that only scikit-learn has."""

from __future__ import annotations

from inspect import signature
from typing import Any, NoReturn

from sklearn.exceptions import NotFittedError

__all__ = ["ScikitLearnNames", "unwrap"]


def unwrap(model: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the model inside pipelines and searches, and the rows that it sees.

    Parameters
    ----------
    model : estimator
        A fitted model, a `Pipeline` that ends in one, or a search over such models
        (`GridSearchCV` and the like), one inside the other.
    X : {array-like, sparse matrix} of shape (n_samples, n_features), optional
        Rows that `model` takes. The steps of a pipeline transform them.

    Returns
    -------
    model : estimator
    X : {array-like, sparse matrix} of shape (n_samples, n_features_in_) or None

    Raises
    ------
    NotFittedError
        If a search was not fitted, or not refitted on all rows.
    """
    while True:
        if isinstance(getattr(model, "steps", None), list):  # a Pipeline
            if X is not None:
                for _, step in model.steps[:-1]:
                    if step is not None and step != "passthrough":
                        X = step.transform(X)
            model = model.steps[-1][1]
        elif hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "cv_results_") or hasattr(model, "param_grid"):
            raise NotFittedError(
                f"{type(model).__name__} has no best_estimator_; fit it with refit=True"
            )
        else:
            return model, X


class ScikitLearnNames:
    """Mixin that answers parameters and methods which only scikit-learn's SVMs have."""

    def __new__(cls, *args: Any, **parameters: Any) -> Any:
        for name in parameters.keys() & _ANSWERS.keys():
            if name not in signature(cls.__init__).parameters:
                answer = _ANSWERS[name]
                raise TypeError(f"{cls.__name__} has no parameter {name!r}: {answer}")
        return super().__new__(cls)

    @property
    def predict_proba(self) -> NoReturn:
        raise AttributeError(_no_probabilities(self, "predict_proba"))

    @property
    def predict_log_proba(self) -> NoReturn:
        raise AttributeError(_no_probabilities(self, "predict_log_proba"))


def _no_probabilities(model: Any, name: str) -> str:
    return f"{type(model).__name__} has no {name}: {_ANSWERS['probability']}"


_ANSWERS = {
    "dual": "leave it out; dualgap solves the dual and the primal problem together",
    "max_iter": "use max_epochs, or time_limit in seconds",
    "nu": "use SVC and C",
    "penalty": "leave it out for the squared norm; there is no L1 penalty",
    "probability": "for probabilities fit sklearn.calibration."
    "CalibratedClassifierCV(model, ensemble=False)",
    "shrinking": "leave it out; the solvers always shrink",
}

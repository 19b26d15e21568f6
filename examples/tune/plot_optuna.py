"""
Search with Optuna, and prune slow trials
=========================================

Optuna proposes parameters from the results so far. A callback ends fits that take too
long: their certificates tell that they are not finished, and the trials are pruned.
This example needs the package ``optuna``, and scikit-learn 1.9 for the callback.
"""

import statistics
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from dualgap import SVC

try:
    import optuna
except ImportError:
    optuna = None
    print("Optuna is not installed; get it with: pip install optuna")

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y % 2, random_state=0)

# %%
# scikit-learn calls the hook after every epoch. If it returns True, the fit ends and
# keeps its best model so far.


class TimeLimit:
    """Callback that ends a fit after some seconds."""

    def __init__(self, seconds):
        self.end = time.perf_counter() + seconds

    def setup(self, estimator, context):
        """Prepare nothing."""

    def teardown(self, estimator, context):
        """Clean up nothing."""

    def on_fit_task_begin(self, estimator, context, **data):
        """Wait for the end of the epoch."""

    def on_fit_task_end(self, estimator, context, **data):
        """Return whether the time is over."""
        return time.perf_counter() > self.end


# %%
# A trial may take three times as long as the median of the finished ones.


def objective(trial):
    """Fit a model with the parameters of a trial, and return its accuracy."""
    model = SVC(
        C=trial.suggest_float("C", 1e-2, 1e5, log=True),
        gamma=trial.suggest_float("gamma", 1e-4, 10.0, log=True),
        random_state=0,
    )
    finished = [t.user_attrs["seconds"] for t in trial.study.get_trials(states=DONE)]
    limit = 3 * statistics.median(finished) if len(finished) >= 5 else np.inf
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.set_callbacks(TimeLimit(limit)).fit(X_train, y_train)
    trial.set_user_attr("seconds", time.perf_counter() - begun)
    if not model.certificate_.certified:
        raise optuna.TrialPruned
    return model.score(X_test, y_test)


figure, ax = plt.subplots(figsize=(5.6, 4), layout="constrained")
if optuna is not None:
    DONE = (optuna.trial.TrialState.COMPLETE,)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.TPESampler(seed=0)
    )
    study.optimize(objective, n_trials=25)
    done = study.get_trials(states=DONE)
    pruned = study.get_trials(states=(optuna.trial.TrialState.PRUNED,))
    print(f"{len(done)} trials finished, {len(pruned)} were pruned")
    print(f"best: {study.best_params}, accuracy {study.best_value:.3f}")
    places = [[t.params["gamma"], t.params["C"]] for t in done]
    image = ax.scatter(*np.transpose(places), c=[t.value for t in done])
    places = [[t.params["gamma"], t.params["C"]] for t in pruned]
    ax.scatter(
        *np.transpose(places or np.empty((0, 2))), marker="x", c="k", label="pruned"
    )
    figure.colorbar(image, ax=ax, label="accuracy")
    ax.legend()
    ax.set(xscale="log", yscale="log")
ax.set(xlabel="gamma", ylabel="C", title="trials of Optuna")
plt.show()

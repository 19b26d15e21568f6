"""Adapter from the loop's epochs to scikit-learn's callback protocol.

Callbacks such as ``ProgressBar`` see a fit as a tree of tasks:

    fit
      class k              one per binary problem, if there are several
        epochs from ...    a stage: a new one when the gap falls by a power of ten
          epoch            a leaf

A progress bar can only show names. The gap is known when a stage ends, so the name of
the next stage contains it.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from .. import core
from ..losses import Vector
from ..problems.batch import Batch
from ..training import EpochInfo, Solution
from ..training.batch import Tasks

if TYPE_CHECKING:
    from sklearn.callback import CallbackContext


try:
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Replacement for versions of scikit-learn without callbacks."""

        def set_callbacks(self, *callbacks: object) -> NoReturn:
            """Raise an error: this version of scikit-learn has no callbacks.

            Raises
            ------
            ImportError
                Naming the version that is needed.
            """
            raise ImportError(
                "set_callbacks needs scikit-learn 1.9 or newer, but this is "
                f"{sklearn.__version__}; upgrade with: "
                'pip install --upgrade "scikit-learn>=1.9"'
            )


#: Attributes of a fitted estimator, by name.
Fitted = dict[str, NDArray[np.generic]]
Attributes = Callable[[Sequence[Vector]], Fitted]
#: A smaller gap starts no new stage.
_ROUNDING = 1e-16


class FitTasks(Tasks):
    """Tasks of one fit. Classes may run in threads; hooks are called one at a time.

    - `estimator`: the estimator that is fitted.
    - `data`: ``X``, ``y`` and ``metadata``, for callbacks that use them.
    - `batch`: a single problem has no task of its own.
    - `stop`: set when a hook returns True at the end of a task.
    - `attributes`: turns the models of all problems into the attributes that an
      estimator needs to predict. It is called only if a callback uses
      ``fitted_estimator``, and not for models that are empty until they are fitted.
    """

    def __init__(
        self,
        estimator: BaseEstimator,
        data: dict[str, object],
        batch: Batch,
        stop: core.Stop,
        attributes: Attributes,
    ) -> None:
        self.data = {"estimator": estimator, **data}
        self.stop, self.attributes = stop, attributes
        names, self.models = batch.names, [batch.zero] * len(batch)
        self.lock = threading.Lock()
        several = len(names) > 1
        self.root: CallbackContext = estimator._init_callback_context(
            max_subtasks=len(names) if several else None,
            sequential_subtasks=not several,
        )
        self.root.call_on_fit_task_begin(**self.data)
        self.problems: list[CallbackContext] = []
        if hasattr(estimator, "_skl_callbacks"):
            self.problems = [self.root]
            if several:
                self.problems = [
                    self.root.subcontext(name, k, max_subtasks=None)
                    for k, name in enumerate(names)
                ]
        self.heard = bool(self.problems)

    def problem(
        self, k: int
    ) -> contextlib.AbstractContextManager[Callable[[EpochInfo], object] | None]:
        if not self.problems:
            return contextlib.nullcontext()
        attributes, models = self.attributes, self.models
        if not len(models[k]):
            return _ProblemTasks(self, self.problems[k], None)

        def with_model(model: Vector) -> Fitted:
            return attributes([*models[:k], model, *models[k + 1 :]])

        return _ProblemTasks(self, self.problems[k], with_model)

    def keep(self, k: int, solution: Solution) -> None:
        self.models[k] = solution.w

    def end(self) -> None:
        self.root.call_on_fit_task_end(**self.data, reconstruction_attributes={})


class _ProblemTasks:
    """Stages and epochs of one binary problem.

    `fit`: tasks of the whole fit. `context`: context of the problem. `attributes`:
    function that turns w into the attributes that an estimator needs to predict. It is
    called only if a callback uses ``fitted_estimator``. None where w alone does not
    determine them.
    """

    def __init__(
        self,
        fit: FitTasks,
        context: CallbackContext,
        attributes: Callable[[Vector], Fitted] | None,
    ) -> None:
        self.fit, self.context, self.attributes = fit, context, attributes
        self.stage: CallbackContext | None = None
        self.epoch: CallbackContext | None = None
        self.level = 0  # power of ten of the smallest gap so far, from 1 down

    def __enter__(self) -> _ProblemTasks:
        with self.fit.lock:
            if self.context is not self.fit.root:
                self.context.call_on_fit_task_begin(**self.fit.data)
            self.stage = self._begin(self.context, "epochs from 1", max_subtasks=None)
            self.epoch = self._begin(self.stage, "epoch")
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:  # scikit-learn closes the open tasks after an error
            return
        with self.fit.lock:
            self._end("epoch")  # still open if a warm start was optimal
            self._end("stage")
            if self.context is not self.fit.root:
                self._end("context")

    def __call__(self, info: EpochInfo) -> None:
        """End the epoch and begin the next one."""
        with self.fit.lock:
            # The model is dropped because it would keep the data alive in the tree.
            assert self.epoch is not None
            self.epoch.epoch_info = replace(info, model=None)
            model = info.model
            assert model is not None
            of_model = self.attributes

            def attributes() -> Fitted:
                assert of_model is not None
                return of_model(model())

            self._end("epoch", None if of_model is None else attributes)
            if info.final:
                return
            gap = info.relative_gap
            level = math.floor(math.log10(max(gap, _ROUNDING))) if gap < 1.0 else 0
            if level < self.level:
                self.level = level
                self._end("stage")
                name = f"epochs from {info.epoch + 1}, gap {gap:.1e}"
                self.stage = self._begin(self.context, name, max_subtasks=None)
            self.epoch = self._begin(self.stage, "epoch")

    def _begin(
        self, parent: CallbackContext, name: str, **options: None
    ) -> CallbackContext:
        context = parent.subcontext(name, **options)
        context.call_on_fit_task_begin(**self.fit.data)
        return context

    def _end(self, task: str, attributes: Callable[[], Fitted] | None = None) -> None:
        """End the open task of this kind, if there is one."""
        context = getattr(self, task)
        setattr(self, task, None)
        if context is not None and context.call_on_fit_task_end(
            **self.fit.data, reconstruction_attributes=attributes
        ):
            self.fit.stop.request()

"""The bridge from the loop's epochs to scikit-learn's callback protocol.

A fit is a tree of tasks, the one that callbacks such as ``ProgressBar`` see:

    fit
      class k              one per binary problem, if there are several
        epochs from ...    a stage: a new one when the gap falls by a power of ten
          epoch            a leaf

The gap is not known before a stage ends, so the name of the next one tells it: that is
what a progress bar, which reads nothing but names, can show.
"""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import sklearn

from ..loop import EpochInfo
from ..losses import Vector

__all__ = ["CallbackSupportMixin", "FitTasks"]

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in where scikit-learn has no callbacks yet."""

        def set_callbacks(self, *callbacks: Any) -> Any:
            """Refuse: this scikit-learn has no callbacks.

            Raises
            ------
            ImportError
                Saying which version is needed.
            """
            raise ImportError(
                "set_callbacks needs scikit-learn 1.9 or newer, this is "
                f"{sklearn.__version__}; upgrade it with: "
                'pip install --upgrade "scikit-learn>=1.9"'
            )


Attributes = Callable[[Vector], dict[str, Any]]
_ROUNDING = 1e-16  # gaps below it open no further stage


class FitTasks:
    """The tasks of one fit. Classes may run in threads; hooks are called one at a time.

    Parameters
    ----------
    estimator : CallbackSupportMixin
    data : dict
        ``X``, ``y`` and ``metadata``, for the callbacks that ask for them.
    names : sequence of str
        One per binary problem. A single problem has no task of its own.
    stop : core.Stop
        Requested when a hook returns True at the end of any task.
    """

    def __init__(
        self,
        estimator: Any,
        data: dict[str, Any],
        names: Sequence[str],
        stop: Any,
    ) -> None:
        self.data = {"estimator": estimator, **data}
        self.stop = stop
        self.lock = threading.Lock()
        several = len(names) > 1
        self.root: Any = None
        if hasattr(estimator, "_init_callback_context"):
            self.root = estimator._init_callback_context(
                max_subtasks=len(names) if several else None,
                sequential_subtasks=not several,
            )
            self.root.call_on_fit_task_begin(**self.data)
        self.problems: list[Any] = [None] * len(names)
        if self.root is not None and hasattr(estimator, "_skl_callbacks"):
            self.problems = [self.root]
            if several:
                self.problems = [
                    self.root.subcontext(name, k, max_subtasks=None)
                    for k, name in enumerate(names)
                ]

    def problem(
        self, k: int, attributes: Attributes | None
    ) -> contextlib.AbstractContextManager[Callable[[EpochInfo], None] | None]:
        """The tasks of the k-th binary problem; of None if nobody listens."""
        context = self.problems[k]
        if context is None:
            return contextlib.nullcontext()
        return _ProblemTasks(self, context, attributes)

    def end(self) -> None:
        """The fit is over and the estimator is fitted."""
        if self.root is not None:
            self.root.call_on_fit_task_end(**self.data, reconstruction_attributes={})


class _ProblemTasks:
    """Stages and epochs of one binary problem.

    Parameters
    ----------
    fit : FitTasks
    context : sklearn.callback.CallbackContext
        Of the problem.
    attributes : callable
        From a w to the attributes that make the estimator ready to predict, called
        only if a callback asks for ``fitted_estimator``; None where a w does not tell.
    """

    def __init__(
        self, fit: FitTasks, context: Any, attributes: Attributes | None
    ) -> None:
        self.fit, self.context, self.attributes = fit, context, attributes
        self.stage: Any = None
        self.epoch: Any = None
        self.level = 0  # power of ten of the smallest gap so far, from 1 down

    def __enter__(self) -> _ProblemTasks:
        with self.fit.lock:
            if self.context is not self.fit.root:
                self.context.call_on_fit_task_begin(**self.fit.data)
            self.stage = self._begin(self.context, "epochs from 1", max_subtasks=None)
            self.epoch = self._begin(self.stage, "epoch")
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if kind is not None:  # scikit-learn tears callbacks down, open tasks included
            return
        with self.fit.lock:
            self._end("epoch")  # one that never ran, when a warm start was optimal
            self._end("stage")
            if self.context is not self.fit.root:
                self._end("context")

    def __call__(self, info: EpochInfo) -> None:
        """End the epoch and begin the next one."""
        with self.fit.lock:
            # Without the model, which would keep the data alive in the task tree.
            self.epoch.epoch_info = replace(info, model=None)
            model = info.model
            assert model is not None
            of_model = self.attributes

            def attributes() -> dict[str, Any]:
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

    def _begin(self, parent: Any, name: str, **options: Any) -> Any:
        context = parent.subcontext(name, **options)
        context.call_on_fit_task_begin(**self.fit.data)
        return context

    def _end(self, task: str, attributes: Any = None) -> None:
        """End the open task of this kind, if there is one."""
        context = getattr(self, task)
        setattr(self, task, None)
        if context is not None and context.call_on_fit_task_end(
            **self.fit.data, reconstruction_attributes=attributes
        ):
            self.fit.stop.request()

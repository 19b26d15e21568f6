"""Scores of the candidates of a search on all folds."""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .. import core
from ..certificate import Certificate
from ..data import model_file
from ..data.types import Parameters as Values
from ..losses import Vector
from ..training.checkpoint import Checkpoint
from .certified import ErrorCurve
from .folds import why_ended

logger = logging.getLogger("dualgap")

#: Relative difference up to which mean scores are equal: the same scores, added in
#: another order, differ by rounding.
_ROUNDING = 1e-12


def ranks(mean: Vector) -> NDArray[np.int32]:
    """Return the ranks of mean scores from 1; equal ones share the better rank.

    NaN has the last rank.
    """
    order = np.argsort(-mean, kind="stable")  # NaN last
    falling = np.where(np.isnan(mean), -np.inf, mean)[order]
    equal = np.isclose(falling[1:], falling[:-1], rtol=_ROUNDING, atol=0.0)
    place = np.arange(1, len(mean) + 1)
    place[1:][equal] = 0
    found = np.empty(len(mean), np.int32)
    found[order] = np.maximum.accumulate(place)
    return found


def first_best(mean: Vector, Cs: ArrayLike) -> int:
    """Return the index of the best mean score: the smallest C of equal ones, the first.

    `Cs` has the C of every score; infinity where there is none.
    """
    tied = np.flatnonzero(ranks(mean) == 1)
    return int(tied[np.argmin(np.asarray(Cs)[tied])])


def best_of(
    mean: Vector,
    Cs: Vector,
    stop: core.Stop,
    what: str,
    scoring: str | Callable[..., float] | None,
    time_limit: float | None,
) -> int:
    """Return the index of the best mean score; with equal scores, of the smallest C.

    - `mean`: mean scores of what was scored on all folds, shape (n,); empty if nothing
      was.
    - `Cs`: the C of each, shape (n,).
    - `what`: word for what is scored, such as "C".
    - `scoring`, `time_limit`: as for the estimator.

    Raises ValueError if there is no score, or every score is NaN. Raises
    KeyboardInterrupt if there is no score because of Ctrl-C.
    """
    if not np.isnan(mean).all():
        return first_best(mean, Cs)
    if mean.size:
        raise ValueError(
            f"scoring={scoring!r} gave NaN for every {what}; choose another score"
        )
    message = f"{why_ended(stop, time_limit)} before any {what} was scored on all folds"
    if stop.requested:
        raise KeyboardInterrupt(message)
    raise ValueError(f"{message}; give more time, or fewer values or folds")


class Results:
    """Scores, gaps and times of the candidates on the folds; NaN where not reached."""

    def __init__(self, name: str, candidates: list[Values], folds: int) -> None:
        self.name, self.candidates = name, candidates
        self.number = {_key(params): k for k, params in enumerate(candidates)}
        self.begun, self.added = time.perf_counter(), itertools.count(1)
        self.before = 0  # models that a checkpoint held
        shape = (folds, len(candidates))
        self.scores, self.gaps, self.fit_times, self.score_times = np.full(
            (4, *shape), np.nan
        )
        self.certificates: list[tuple[str, Certificate]] = []
        #: Bounds on the error for each gamma, of a certified search.
        self.bounds: dict[str | float, ErrorCurve] = {}
        self.file: Checkpoint | None = None
        self.writing = threading.Lock()

    def resume(self, file: Checkpoint) -> None:
        """Take over the models in a checkpoint, and write the next ones to it."""
        self.file, found = file, file.read()
        if found is None:
            return
        certificates, tensors = found
        values = tensors["values"]
        self.scores, self.gaps, self.fit_times, self.score_times = values
        self.certificates = [
            (name, model_file.certificate(fields)) for name, fields in certificates
        ]
        before = int((~np.isnan(self.fit_times)).sum())
        logger.info("%s: %d models are in %s", self.name, before, file.path)
        self.before, self.added = before, itertools.count(before + 1)

    def save(self) -> None:
        """Write the checkpoint, if there is one."""
        if self.file is None:
            return
        with self.writing:
            values = [self.scores, self.gaps, self.fit_times, self.score_times]
            certificates = [
                (name, model_file.certificate_fields(c))
                for name, c in list(self.certificates)
            ]
            self.file.write(certificates, {"values": np.stack(values)}, self.name)

    def missing(self, params: Values, Cs: Vector) -> Vector:
        """Return the values of C that lack a score of some fold."""
        numbers = [self.number[_key({**params, "C": float(C)})] for C in Cs]
        return Cs[np.isnan(self.fit_times[:, numbers]).any(axis=0)]

    def add(
        self,
        fold: int,
        params: Values,
        parts: Sequence[Certificate],
        score: float,
        times: tuple[float, float],
    ) -> None:
        """Keep the score and the certificates of a model, and log the progress.

        `times` are the seconds of its fit and of its score. Threads may add at the same
        time.
        """
        k = self.number[_key(params)]
        self.gaps[fold, k] = max(c.relative_gap for c in parts)
        self.scores[fold, k] = score
        self.fit_times[fold, k], self.score_times[fold, k] = times
        named = ", ".join(f"{n}={v}" for n, v in self.candidates[k].items())
        self.certificates += [(f"fold {fold}, {named}", c) for c in parts]
        done, total = next(self.added), self.scores.size
        each = (time.perf_counter() - self.begun) / (done - self.before)
        left = each * (total - done)
        logger.info(
            "%s: %d of %d models, fold %d, %s: score %.4g, about %.0f s left",
            self.name, done, total, fold, named, score, left,
        )  # fmt: skip
        if self.file is not None and self.file.due:
            self.save()

    @property
    def done(self) -> NDArray[np.bool_]:
        """Candidates that were scored on all folds."""
        return ~np.isnan(self.fit_times).any(axis=0)

    def table(self) -> Values:
        """Return the results in the layout of GridSearchCV, and the proven gaps."""
        out: Values = {}
        for name, values in (("fit", self.fit_times), ("score", self.score_times)):
            out[f"mean_{name}_time"] = values.mean(axis=0)
            out[f"std_{name}_time"] = values.std(axis=0)
        for name in self.candidates[0]:
            kinds = {type(params[name]) for params in self.candidates}
            column = np.ma.empty(
                len(self.candidates), dtype=float if kinds == {float} else object
            )
            for k, params in enumerate(self.candidates):
                column[k] = params[name]
            out[f"param_{name}"] = column
        out["params"] = self.candidates
        for fold, scores in enumerate(self.scores):
            out[f"split{fold}_test_score"] = scores
        mean = self.scores.mean(axis=0)
        out["mean_test_score"] = mean
        out["std_test_score"] = self.scores.std(axis=0)
        out["rank_test_score"] = ranks(mean)
        for fold, gaps in enumerate(self.gaps):
            out[f"split{fold}_relative_gap"] = gaps
        return out


def _key(params: Values) -> tuple[tuple[str, str | float], ...]:
    return tuple(sorted(params.items()))

"""Certified choice of C of kernel classifiers, for one or several values of gamma."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from ..core import StoppedError
from ..data.types import Parameters
from ..kernel import BlockSolver
from ..kernels.table import shared_matrix
from ..losses import Vector
from ..problems.multiclass import refuse_missing
from ._certified import Found, Settings, search
from ._certified_folds import KernelFolds
from ._kernel_search import Results, Work
from .fitting import weights
from .seeds import seed_of
from .training import fit_all, fit_options

if TYPE_CHECKING:
    from .kernel_cv import SVCCV

__all__ = ["Certified", "certified_search"]


class Certified(NamedTuple):
    """Result of a certified search.

    Attributes
    ----------
    results : Results
    accuracy : float
        Proved difference between the error of the best models and the least error of
        the exact optimum at any C, with any of the values of gamma.
    found : list of (Found or None)
        The search of each gamma; None if it ended before the ends of the interval.
    """

    results: Results
    accuracy: float
    found: list[Found | None]


def certified_search(own: SVCCV, work: Work) -> Certified:
    """Choose C with a proof, for one gamma after the other.

    The error of the best models so far bounds what the next gamma has to prove.
    """
    settings, best = Settings(), -np.inf
    found: dict[str | float, Found | None] = {}
    for gamma in dict.fromkeys(params["gamma"] for params in work.others):
        folds = _folds(own, work, gamma, settings)
        if folds is None:
            found[gamma] = None
            continue
        (one,) = fit_all(
            partial(_search, folds, work.Cs, own.accuracy, settings, best),
            1,
            n_jobs=None,
            stop=work.stop,
            verbose=own.verbose,
        )
        found[gamma] = one
        if one is not None:
            best = max(best, *map(one.score, one.fits))
    least = [0.0 if one is None else one.bounds.lower.min() for one in found.values()]
    accuracy = max(1.0 - best - float(min(least)), 0.0)
    return Certified(_results(own, work, found), accuracy, list(found.values()))


def _search(
    folds: KernelFolds,
    start: Vector,
    accuracy: float,
    settings: Settings,
    best: float,
    _: int,
) -> Found | None:
    return search(folds, start, accuracy, settings, best)


def _folds(
    own: SVCCV, work: Work, gamma: str | float, settings: Settings
) -> KernelFolds | None:
    """Return the folds for a gamma; None if the search is to end."""
    model = own._model(gamma=gamma)
    seed = seed_of(own.random_state)
    points = work.points
    kernel = model._kernel_record().resolve(points.X)
    threads = min(effective_n_jobs(own.n_jobs), len(work.folds))
    try:
        matrix = shared_matrix(points, kernel, own.cache_size, threads, work.stop)
    except StoppedError:
        return None
    codes, classes = work.targets.values.astype(np.intp), work.targets.classes
    assert classes is not None
    model.classes_ = classes
    factors = []
    for part, _ in work.folds:
        part, factor = weights(own.class_weight, points.X, classes, codes, part)
        factors.append(part * factor[codes])
        refuse_missing(classes, np.bincount(codes, factors[-1], len(classes)))
    return KernelFolds(
        [test for _, test in work.folds],
        codes,
        len(classes),
        len(classes) * (len(classes) - 1) // 2,
        BlockSolver(),
        fit_options(own, seed, work.stop) | {"tol": min(own.tol, settings.tol)},
        own.n_jobs,
        own.verbose,
        model=model,
        matrix=matrix,
        weight=factors,
    )


def _results(own: SVCCV, work: Work, found: dict[str | float, Found | None]) -> Results:
    """Return the scores of all fits."""
    candidates: list[Parameters] = [
        {"C": C, "gamma": gamma}
        for gamma, one in found.items()
        for C in (work.Cs.tolist() if one is None else one.fits)
    ]
    results = Results(type(own).__name__, candidates, len(work.folds))
    for params in candidates:
        one = found[params["gamma"]]
        for fold, fit in enumerate([] if one is None else one.fits[params["C"]]):
            times = fit.seconds, fit.score_seconds
            results.add(fold, params, fit.certificates, fit.score, times)
    results.certificates.clear()  # the search tells what their gaps allow
    results.bounds = {
        gamma: one.bounds for gamma, one in found.items() if one is not None
    }
    return results

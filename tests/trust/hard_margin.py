"""LinearSVC and SVC with C = inf on nasty problems, in exact numbers."""

from __future__ import annotations

import functools
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import sklearn.svm

import dualgap
from dualgap import certify

from .attacks import (
    PATIENCE,
    Group,
    KernelRun,
    RefusedError,
    attack,
    dense,
    first,
    kind_of,
    of_kernel,
    of_svc,
    rational_kernel,
)
from .nasty import Drawn, Rng, draw
from .verifier import SVM, Exact, Kernel, Rows

#: A cost that no dual variable of rows that float64 can separate comes near.
HUGE = 2.0**900


class HardMargin(SVM):
    """The problem of C = inf, by costs that stand for it."""

    def primal(self, model: Any, bias: float = 0.0) -> Fraction:
        """Return P of the model, divided by its least margin where that is below 1."""
        norm, scores = self.points.model(Exact.of(model))
        if self.bias == "penalised":
            norm += (Fraction(bias) / Fraction(self.scaling)) ** 2
        margins = np.array((self.target * (scores + bias)).fractions())
        least = min(margins[self.weighs])
        return norm / 2 / min(least, 1) ** 2 if least > 0 else Fraction(HUGE)


def separated(rng: Rng, X: Any = None) -> Drawn:
    """Return a problem whose classes a plane separates, more often than not."""
    drawn = draw(rng, X=X, weighted=0.3)
    if rng.random() < 0.8:
        with np.errstate(all="ignore"):
            side = np.asarray(drawn.X, float) @ rng.standard_normal(drawn.X.shape[1])
            codes = (side > np.median(side)).astype(int)
        if len(set(codes.tolist())) == 2:
            drawn = replace(drawn, codes=codes)
    return drawn


@attack("hard-linear", "`LinearSVC(C=inf)`, and `certify`", 300)
def hard_linear(rng: Rng) -> list[Group]:
    drawn, kind = separated(rng), kind_of(rng)
    n = len(drawn.X)
    exact = {**kind.exact, "loss": "hinge"}
    posed = HardMargin(
        Rows(drawn.X), target=drawn.signs, cost=HUGE * (drawn.factors > 0.0), **exact
    )

    def fit(**options: Any) -> Any:
        model = dualgap.LinearSVC(np.inf, **kind.options, **options)
        return model.fit(drawn.held, drawn.codes, drawn.weight)

    model = first(lambda: fit(tol=drawn.tol, random_state=drawn.seed))
    claims = [of_svc("fit", model, n)]
    for what, tol in (("reference", 1e-12), ("short", 1.0)):
        claims.append(of_svc(what, first(functools.partial(fit, tol=tol)), n))
    scale = float(rng.choice([1.0, 1.0, 0.5, 3.0]))
    model.coef_, model.intercept_ = scale * model.coef_, scale * model.intercept_
    del model.certificate_
    proof = certify(
        model, drawn.held, drawn.codes, sample_weight=drawn.weight,
        random_state=drawn.seed, time_limit=PATIENCE,
    )  # fmt: skip
    claims.append(of_svc("certify", model, n, proof))
    return [(posed, claims)]


@attack("hard-kernel", "`SVC(C=inf)`, and `certify`, also of scikit-learn's", 300)
def hard_kernel(rng: Rng) -> list[Group]:
    X, kernel, K = rational_kernel(rng)
    drawn = separated(rng, X)
    n = len(drawn.X)

    def posed(points: Kernel) -> HardMargin:
        cost = HUGE * (drawn.factors > 0.0)
        return HardMargin(points, "hinge", drawn.signs, cost, bias="free")

    def fit(**options: Any) -> Any:
        model = dualgap.SVC(np.inf, kernel=kernel, **options)
        return model.fit(drawn.held, drawn.codes, drawn.weight)

    run, tell = KernelRun(drawn, kernel, K, posed), functools.partial(of_kernel, n)

    def said(what: str, model: Any) -> Any:
        """The dual variables of the certificate are not the coefficients."""
        return tell(what, model)._replace(duals=None)

    models = [first(lambda: run.add("fit", lambda: fit(tol=drawn.tol), said))]
    first(lambda: run.add("reference", lambda: fit(tol=1e-12), said))
    name = getattr(kernel, "name", kernel)
    if drawn.weight is None:
        options = {k: getattr(kernel, k) for k in ("gamma", "coef0", "degree")
                   if hasattr(kernel, k)}  # fmt: skip
        theirs = sklearn.svm.SVC(C=np.inf, kernel=name, max_iter=1000, **options)
        try:
            theirs.fit(drawn.X if name == "precomputed" else drawn.held, drawn.codes)
        except ValueError as error:
            raise RefusedError from error  # by scikit-learn
        if np.isfinite(dense(theirs.dual_coef_)).all():
            models.append(theirs)
    for model in models:
        run.add(
            f"certify {type(model).__module__}",
            lambda m=model: certify(
                m, drawn.held, drawn.codes, sample_weight=drawn.weight,
                random_state=drawn.seed, time_limit=PATIENCE,
            ),
            lambda what, found, m=model: tell(what, m, found),
        )  # fmt: skip
    return run.groups()

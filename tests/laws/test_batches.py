"""Small problems of one call into the core are those that the loop would train."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dualgap.certificate import Bounds
from dualgap.training import batch as training

from .subjects import NAMES, SUBJECTS, X, certificates, overlap

#: Those whose problems are small here.
SMALL = [
    *("LinearSVC", "LinearSVC, auto", "LinearSVC, labels", "SVC"),
    *("SVC, balanced", "SVC, linear", "SVC, laplacian", "SVC, poly"),
    *("LinearSVR, dcd", "OneClassSVM", "NuSVC", "NuSVR"),
]


def fit(name: str) -> Any:
    subject = SUBJECTS[name]
    return subject.make(tol=1e-4).fit(X, subject.target(X, NAMES))


def without_first_proof(solve: Any, calls: list[Any]) -> Any:
    """Let a function that solves several problems leave the first without a proof."""

    def unproved(*args: Any, **options: Any) -> Any:
        found = solve(*args, **options)
        if found is not None:
            calls.append((solve, args))
            found.bounds[0] = Bounds.proved()
        return found

    return unproved


@pytest.mark.cases(None)
@pytest.mark.parametrize("name", SMALL)
def test_what_one_call_leaves_is_trained_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, calls = fit(name), list[Any]()
    unproved = {
        kind: tuple(without_first_proof(solve, calls) for solve in solvers)
        for kind, solvers in training.WHOLE.items()
    }
    monkeypatch.setattr(training, "WHOLE", unproved)
    rest = fit(name)
    assert len(calls) == 1
    overlap(rest, whole, 1e-4)
    for one, other in zip(certificates(rest)[1:], certificates(whole)[1:], strict=True):
        assert one.bounds == other.bounds
    monkeypatch.setattr(training, "WHOLE", {})
    overlap(fit(name), whole, 1e-4)
    ((solve, (solver, batch, job)),) = calls
    for end in (lambda: job.stop.set_deadline(-1.0), job.stop.request):
        end()
        assert solve(solver, batch, job) is None


@pytest.mark.cases(6)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.filterwarnings("ignore::dualgap.DegenerateWarning")
@pytest.mark.parametrize("name", SUBJECTS)
def test_histories_end_with_their_proofs(name: str) -> None:
    subject = SUBJECTS[name]
    model = subject.make(max_iter=30).fit(X, subject.target(X, NAMES))
    found = model.history_
    histories = found if isinstance(found, list) else [found]
    for history, part in zip(histories, certificates(model), strict=True):
        epochs = history["epoch"]
        assert np.isin(np.diff(epochs), (0, 1)).all()
        assert epochs[0] in (0, 1)
        assert epochs[-1] == part.epochs
        assert (np.diff(history["updates"]) >= 0).all()
        assert (np.diff(history["seconds"]) >= 0).all()
        assert history["updates"][-1] == part.updates
        assert history["seconds"][-1] <= part.seconds
        assert history["exact"][-1]
        name, _, chosen = part.solver.partition(": ")
        used = set((chosen or name).split(", "))
        assert used <= set(history["solver"]) <= used | {name}
        if part.certified:
            assert history["primal"][-1] == part.primal
            assert history["dual"][-1] == part.dual
    assert np.max(model.n_iter_) == max(part.epochs for part in certificates(model))

"""Equal fits give equal models, bit for bit, on any number of threads."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from dualgap import SVC, LinearSVC, LinearSVR, LogisticRegression
from dualgap.solvers import SmoothingNewton

from ..solvers.data import draws, job
from .subjects import NAMES, SUBJECTS, Subject, X, bits, every, overlap, rows

pytestmark = pytest.mark.filterwarnings(
    "ignore::sklearn.exceptions.ConvergenceWarning", "ignore::dualgap.DegenerateWarning"
)


#: Threads share the sums of one problem, whose bits depend on their number.
ROUNDED = {name for name in SUBJECTS if name.startswith(("LinearSVR", "LinearOne"))}
ROUNDED |= {"LinearSVC, joint"}
#: Numbers that are drawn choose blocks of rows, but these kernel fits have one block.
FIXED = {f"SVC{more}" for more in ("", ", balanced", ", laplacian", ", linear")}
FIXED |= {"SVC, poly", "SVC, votes", "NuSVC", "NuSVR", "OneClassSVM"}


def draws_numbers(subject: Subject) -> bool:
    """Whether a fit begins with random numbers."""
    model, limits = subject.make(), job()
    batch = model._batch(model._read(X, subject.target(X, NAMES), None), limits)
    return draws(model._solver(batch, limits), batch.problem(0))


@pytest.mark.cases(15)
@every()
def test_seeds_and_threads(name: str) -> None:
    subject = SUBJECTS[name]

    def fit(**more: Any) -> dict[str, Any]:
        model = subject.make(max_iter=30, **more)
        return bits(model.fit(X, subject.target(X, NAMES)), X)

    one = fit()
    np.random.random_sample()  # noqa: NPY002  (NumPy's global generator is elsewhere)
    assert fit() == one
    assert fit(random_state=np.int64(0)) == one
    seedless = name in FIXED or not draws_numbers(subject)
    assert (fit(random_state=1) == one) == seedless, (
        "a seed must matter where a step draws numbers, and nowhere else; a kernel fit "
        "of one block belongs into FIXED"
    )
    for n_jobs in (2, 3):
        if name in ROUNDED:
            one = fit(n_jobs=n_jobs)
        assert fit(n_jobs=n_jobs) == one


#: Fits of two classes or of targets, whose threads share the rows of one problem, the
#: number of rows, and whether they change no bit at all.
SHARED: list[tuple[Subject, int, bool]] = [
    *((Subject(LinearSVC, {"loss": "hinge", "solver": solver}), 9_000, False)
      for solver in ("interior-point", SmoothingNewton(), "cutting-plane", "ocas")),
    (Subject(LinearSVC, {"solver": "newton"}), 30_000, False),
    (Subject(LogisticRegression), 3_000, True),
    *((Subject(LinearSVR, {"solver": solver}), 9_000, False)
      for solver in ("interior-point", "smoothing-newton")),
    (Subject(LinearSVR, {"loss": "squared_epsilon_insensitive", "solver": "newton"}),
     30_000, False),
    (Subject(SVC, {"solver": "block", "C": 10.0}), 3_000, True),
    (Subject(SVC, {"solver": "nystroem", "loss": "squared_hinge"}), 3_000, True),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize("layout", [np.float32, sparse.csr_matrix])
@pytest.mark.parametrize(("subject", "n", "exact"), SHARED)
def test_threads_of_one_problem(
    subject: Subject, n: int, exact: bool, layout: Any
) -> None:
    X, names = rows(n, 12)
    X, y = layout(X), subject.target(X, names == "ant")
    one, two, again = (
        subject.make(n_jobs=jobs, tol=1e-4).fit(X, y) for jobs in (1, 2, 2)
    )
    expected = bits(two, X[:99])
    assert bits(again, X[:99]) == expected
    overlap(one, two, 1e-4)
    assert not exact or bits(one, X[:99]) == expected


@pytest.mark.cases(6)
@every()
def test_listeners_hear_every_epoch_and_change_no_bit(name: str) -> None:
    subject, heard = SUBJECTS[name], []
    y = subject.target(X, NAMES)
    plain = subject.make(max_iter=30).fit(X, y)
    told = subject.make(max_iter=30, verbose=2)
    told._fit(X, y, on_epoch=lambda label, info: heard.append((label, info)))
    assert bits(told, X) == bits(plain, X)
    final = {label: info for label, info in heard if info.final}
    parts = told.certificate_.parts
    assert len(final) == len(parts)
    for part, info in zip(parts, final.values(), strict=True):
        assert not part.certified or (info.primal, info.dual) == (
            part.primal,
            part.dual,
        )
    if isinstance(told, LinearSVC) and len(told.coef_) == len(parts):
        models = [info.model()[: X.shape[1]] for info in final.values()]
        np.testing.assert_array_equal(models, told.coef_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert max(info.epoch for info in final.values()) == np.max(told.n_iter_)

"""The compiled core: what its functions refuse, how exactly they add, how a pass is
left early, and that every variant of it computes the same.

The generator and the orders are in solvers/test_dcd.py.
"""

from __future__ import annotations

import math
import os
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from scipy import sparse

from dualgap import core
from dualgap.data.rows import Points

EPS = np.finfo(np.float64).eps
HINGE = core.Loss(1.0, 0.0)
N, D = 30, 7


def rows(dtype=np.float64, constant=0.0, n=N, d=D):
    X = np.random.default_rng(0).standard_normal((n, d)).astype(dtype)
    return core.dense_rows(X, constant)


def labels(n=N):
    return np.where(np.arange(n) % 2, 1, -1).astype(np.int8)


def order(n=N):
    return np.arange(n, dtype=np.uint32)


def numbers(record):
    """Return the public numbers in a record of the core."""
    return [getattr(record, name) for name in dir(record) if name[0] != "_"]


# What the functions refuse. Every array of every kernel, by name.


def examples(rows, y, cost, q, loss=HINGE):
    return core.Examples(rows, y, cost, q, loss)


def labelled():
    return {"rows": rows(), "y": labels(), "cost": np.ones(N), "q": np.ones(N)}


def evaluate_arguments():
    points = {"w": np.ones(D), "alpha": np.ones(N), "v": np.ones(D)}
    return {**labelled(), **points, "margins": np.ones(N), "dual": "given"}


def evaluate(rows, y, cost, q, **others):
    return core.evaluate(examples(rows, y, cost, q), **others)


def combine_arguments():
    return {"rows": rows(), "y": labels(), "alpha": np.ones(N), "v": np.ones(D)}


def dual_arguments(**more):
    point = {"alpha": np.zeros(N), "w": np.zeros(D)}
    return {**labelled(), "order": order(), **point, "stop": core.Stop(), **more}


def sdca_arguments():
    return dual_arguments(sum=np.zeros(N), since=np.zeros(N))


def sdca(rows, y, cost, q, order, alpha, w, stop, sum, since):
    state, average = core.DualState(alpha, w), core.Average(sum, since, 0.0)
    return core.sdca_epoch(examples(rows, y, cost, q), order, state, average, stop)


def modified_sgd_arguments():
    return dual_arguments(n=N)


def modified_sgd(rows, y, cost, q, order, alpha, w, stop, n):
    state = core.DualState(alpha, w)
    return core.modified_sgd_epoch(
        examples(rows, y, cost, q), order, state, before=0, n=n, stop=stop
    )


def dcd_arguments():
    return dual_arguments(active=N)


def dcd(rows, y, cost, q, order, alpha, w, stop, active):
    limits = {"upper": math.inf, "lower": -math.inf}
    state = core.DualState(alpha, w)
    return core.dcd_epoch(
        examples(rows, y, cost, q), order, active, state, **limits, stop=stop
    )


def counting_arguments():
    point = {"a": np.zeros(D), "errors": np.zeros(N, np.int64)}
    return {**labelled(), **point, "order": order(), "stop": core.Stop()}


def counting(rows, y, cost, q, a, errors, order, stop):
    state = core.CountingState(a, errors, 0.0, 0.0)
    return core.counting_sgd_epoch(
        examples(rows, y, cost, q), 0.1, 1, order, state, stop
    )


def gradient_arguments():
    point = {"v": np.zeros(D), "beta": np.zeros(N)}
    sums = {"r": np.zeros(D), "r_beta": np.zeros(N)}
    return {
        **{**labelled(), **point, **sums, "batch": 1},
        **{"order": order(), "stop": core.Stop()},
    }


def gradient(rows, y, cost, q, v, beta, r, r_beta, batch, order, stop):
    state = core.GradientState(v, beta, sum=core.SumOfSteps(r, r_beta, 0.0))
    settings = core.GradientSettings(0.1, core.Schedule.pegasos, 0.0, batch)
    return core.stochastic_gradient_epoch(
        examples(rows, y, cost, q), settings, order, state, stop
    )


KERNELS = {
    "evaluate": evaluate_arguments,
    "combine": combine_arguments,
    "sdca_epoch": sdca_arguments,
    "modified_sgd_epoch": modified_sgd_arguments,
    "dcd_epoch": dcd_arguments,
    "counting_sgd_epoch": counting_arguments,
    "stochastic_gradient_epoch": gradient_arguments,
}
#: Each kernel, with all that its records hold as arguments.
CALLS = {
    "evaluate": evaluate,
    "combine": core.combine,
    "sdca_epoch": sdca,
    "modified_sgd_epoch": modified_sgd,
    "dcd_epoch": dcd,
    "counting_sgd_epoch": counting,
    "stochastic_gradient_epoch": gradient,
}
# An order may be of any length; it is looked at below.
ARRAYS = [
    (kernel, name)
    for kernel, arguments in KERNELS.items()
    for name, value in arguments().items()
    if isinstance(value, np.ndarray) and name != "order"
]
ORDERED = [kernel for kernel, arguments in KERNELS.items() if "order" in arguments()]
OUTPUTS = {
    "evaluate": {"alpha", "v", "margins"},
    "combine": {"v"},
    "sdca_epoch": {"alpha", "w", "sum", "since"},
    "modified_sgd_epoch": {"alpha", "w"},
    "dcd_epoch": {"alpha", "w", "order"},
    "counting_sgd_epoch": {"a", "errors"},
    "stochastic_gradient_epoch": {"v", "beta", "r", "r_beta"},
}


def unchanged(arguments, call, error, text=None):
    """`call` is refused before anything is written."""
    before = {
        name: value.copy()
        for name, value in arguments.items()
        if isinstance(value, np.ndarray)
    }
    with pytest.raises(error, match=text):
        call(**arguments)
    for name, value in before.items():
        assert (arguments[name] == value).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_takes_what_is_right(kernel):
    CALLS[kernel](**KERNELS[kernel]())


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
@pytest.mark.parametrize("change", [-1, 1])
def test_wrong_lengths_are_refused(kernel, name, change):
    arguments = KERNELS[kernel]()
    value = arguments[name]
    arguments[name] = np.ones(len(value) + change, value.dtype)
    text = f"^{name} has {len(value) + change} entries, expected {len(value)}$"
    unchanged(arguments, CALLS[kernel], ValueError, text)


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
def test_wrong_kinds_of_array_are_refused(kernel, name):
    right = KERNELS[kernel]()[name]
    other = np.float32 if right.dtype == np.float64 else np.float64
    for wrong in (
        right.astype(other),
        right.astype(right.dtype.newbyteorder()) if right.dtype.itemsize > 1 else None,
        right[:, None],
        np.repeat(right, 2)[::2],
        right.tolist(),
    ):
        if wrong is not None:
            arguments = {**KERNELS[kernel](), name: wrong}
            with pytest.raises(TypeError, match="incompatible function arguments"):
                CALLS[kernel](**arguments)


@pytest.mark.parametrize("kernel", KERNELS)
def test_read_only_outputs_are_refused_and_read_only_inputs_taken(kernel):
    for name, value in KERNELS[kernel]().items():
        if not isinstance(value, np.ndarray):
            continue
        arguments = KERNELS[kernel]()
        arguments[name].flags.writeable = False
        if name in OUTPUTS[kernel]:
            with pytest.raises(TypeError, match="incompatible function arguments"):
                CALLS[kernel](**arguments)
        else:
            CALLS[kernel](**arguments)


def out_of_a_message(array):
    """Return a copy whose entries are all misaligned."""
    message = np.empty(array.nbytes + 1, np.uint8)
    copy = np.ndarray(array.shape, array.dtype, message, offset=1)
    copy[...] = array
    return copy


@pytest.mark.parametrize(("kernel", "name"), ARRAYS)
def test_misaligned_outputs_are_refused_and_misaligned_inputs_copied(kernel, name):
    arguments, call = KERNELS[kernel](), CALLS[kernel]
    given = out_of_a_message(arguments[name])
    assert given.flags.aligned == (given.itemsize == 1)
    arguments[name] = given
    if name in OUTPUTS[kernel]:
        unchanged(arguments, call, TypeError, "incompatible function arguments")
        return
    expected = KERNELS[kernel]()
    found, wanted = call(**arguments), call(**expected)
    if found is not None:
        assert numbers(found) == numbers(wanted)
    for output in OUTPUTS[kernel]:
        np.testing.assert_array_equal(arguments[output], expected[output])


@pytest.mark.parametrize("kernel", ORDERED)
@pytest.mark.parametrize("row", [N, N + 1, 2**32 - 1])
@pytest.mark.parametrize("place", [0, 17, N - 1])
def test_an_order_that_names_no_row_is_refused(kernel, row, place):
    arguments = KERNELS[kernel]()
    arguments["order"][place] = row
    text = "order names a row that does not exist"
    unchanged(arguments, CALLS[kernel], ValueError, text)


@pytest.mark.parametrize("kernel", ORDERED)
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64, np.float64])
def test_an_order_of_another_dtype_is_refused(kernel, dtype):
    arguments = KERNELS[kernel]()
    arguments["order"] = arguments["order"].astype(dtype)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        CALLS[kernel](**arguments)


@pytest.mark.parametrize("active", [-1, N + 1, 2**40])
def test_more_active_rows_than_the_order_holds_are_refused(active):
    arguments = {**dcd_arguments(), "active": active}
    unchanged(arguments, dcd, ValueError, "active is out of range")


# Sums.

# Added one by one in float64, the small terms are lost: an error of 1e-10.
NASTY = np.concatenate([[1e16], np.ones(10**6), [1e16], np.full(10**5, 1e-3)])


@pytest.mark.parametrize(
    "terms",
    [
        NASTY,
        NASTY[::-1].copy(),
        np.full(10**6, 0.1),
        10.0 ** np.random.default_rng(0).uniform(-12, 12, 10**5),
    ],
    ids=["large first", "large last", "equal", "any size"],
)
class TestSums:
    def test_squared_norm(self, terms):
        w = np.sqrt(terms)
        exact = math.fsum(w * w)
        # Blocks of 256 are added plainly.
        assert abs(core.squared_norm(w) - exact) <= 128 * EPS * exact

    def test_evaluate(self, terms):
        n = len(terms)
        X = np.random.default_rng(1).uniform(0.1, 0.9, (n, 1))
        y = labels(n)
        w = np.array([0.7])
        squared = core.Loss(math.inf, 0.5)
        margins = np.empty(n)
        given = core.Examples(core.dense_rows(X, 0.0), y, terms, X[:, 0] ** 2, squared)
        values = core.evaluate(given, w, "of w", terms, None, margins)
        assert (np.abs(margins - y * X[:, 0] * 0.7) <= EPS).all()
        # Every term has a few roundings of its own; adding them has one.
        exact = math.fsum(terms * (1.0 - margins) ** 2)
        assert abs(values.loss - exact) <= 5 * EPS * exact
        exact = math.fsum(terms)
        assert abs(values.sum - exact) <= EPS * exact
        exact = math.fsum(0.5 / terms * terms * terms)
        assert abs(values.diagonal - exact) <= 5 * EPS * exact

    def test_dual_value(self, terms):
        # sum a - sum delta a^2 / 2 = (1 - 1/4) sum a for the squared hinge at a = c.
        value = core.dual_value(terms, terms, core.Loss(math.inf, 0.5), 1.0, 0.0)
        exact = 0.75 * math.fsum(terms)
        assert abs(value - exact) <= 128 * EPS * exact


def test_sums_beyond_float64_are_infinite():
    assert core.squared_norm(np.array([1e160, 1.0])) == math.inf
    assert math.isnan(core.squared_norm(np.array([math.nan, 1.0])))
    assert core.squared_norm(np.empty(0)) == 0.0


def test_dual_value_clips_and_subtracts_the_norm():
    b, cost = np.array([0.5, 3.0, 1.0]), np.array([1.0, 2.0, 0.0])
    smoothed = core.Loss(1.0, 0.25)
    # alpha = min(2 b, U) = (1, 2, 0), delta = (1/4, 1/8, 0).
    got = core.dual_value(b, cost, smoothed, 2.0, 4.0)
    assert got == 1.0 + 2.0 - 0.5 * (0.25 * 1.0 + 0.125 * 4.0) - 2.0


# Leaving a pass.


@pytest.mark.parametrize(
    "kernel", [kernel for kernel in ORDERED if kernel != "modified_sgd_epoch"]
)
def test_a_pass_that_is_told_to_leave_leaves_soon_and_whole(kernel):
    arguments = KERNELS[kernel]()
    X = np.random.default_rng(0).standard_normal((N, D))
    arguments["q"] = (X * X).sum(axis=1)
    arguments["order"] = np.resize(order(), 10**6)
    if kernel == "dcd_epoch":
        arguments["active"] = 10**6
    stop = arguments["stop"]
    stop.request()
    visited = CALLS[kernel](**arguments).visited
    # About a millisecond of work, and nothing half done: w is that of alpha.
    assert 0 < visited < 10**5
    w, alpha = {
        "counting_sgd_epoch": ("a", "errors"),
        "stochastic_gradient_epoch": ("v", "beta"),
    }.get(kernel, ("w", "alpha"))
    combined = np.empty(D)
    core.combine(
        arguments["rows"], arguments["y"], arguments[alpha].astype(float), combined
    )
    size = np.abs(X).T @ np.abs(arguments[alpha])
    assert (np.abs(arguments[w] - combined) <= 1e-10 * size).all()


@pytest.mark.parametrize("constant", [0.0, 0.5])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix])
def test_image_lengths(form, constant):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 11)) * (rng.random((30, 11)) < 0.5)
    rows = Points.of(form(X), constant).accessor
    width = 11 + (constant > 0.0)
    root = np.triu(rng.standard_normal((width, width)))
    out = np.full(30, np.nan)
    core.image_lengths(rows, root, out)
    full = np.column_stack([X, np.full(30, constant)])[:, :width]
    np.testing.assert_allclose(out, np.linalg.norm(full @ root, axis=1), rtol=1e-14)


@pytest.mark.parametrize("squared", [False, True])
def test_total_loss(squared):
    loss = core.Loss(math.inf, 0.5) if squared else HINGE
    rng = np.random.default_rng(0)
    margins, cost = rng.standard_normal(1000), rng.uniform(0.0, 2.0, 1000)
    u = np.maximum(1.0 - margins, 0.0)
    expected = cost @ (u * u if squared else u)
    assert math.isclose(core.total_loss(margins, cost, loss), expected, rel_tol=1e-13)
    assert core.total_loss(margins[:0], cost[:0], loss) == 0.0


def test_modified_sgd_that_is_told_to_leave_leaves_soon_and_whole():
    """One epoch visits every row once, so the test needs more rows."""
    n = 200_000
    matrix, w, alpha, q = rows(n=n), np.zeros(D), np.zeros(n), np.empty(n)
    matrix.inspect(q)
    stop = core.Stop()
    stop.request()
    visited = modified_sgd(
        matrix, labels(n), np.ones(n), q, order(n), alpha, w, stop, n
    ).visited
    assert 0 < visited < 100_000
    assert not alpha[visited:].any()
    combined = np.empty(D)
    core.combine(matrix, labels(n), alpha, combined)
    np.testing.assert_allclose(w, combined, rtol=1e-9)


def test_a_pass_leaves_at_its_deadline_and_holds_no_lock():
    """Another thread sees it begin and tells it to leave, long before its end."""
    d = 3000
    arguments = sdca_arguments() | {"rows": rows(d=d), "w": np.zeros(d)}
    arguments |= {"q": np.full(N, float(d)), "order": np.resize(order(), 10**7)}
    stop, visited = arguments["stop"], []
    thread = threading.Thread(target=lambda: visited.append(sdca(**arguments).visited))
    thread.start()
    while thread.is_alive() and not arguments["w"].any():
        time.sleep(0.001)
    stop.set_deadline(-1.0)
    thread.join()
    assert 0 < visited[0] < 10**7
    assert stop.expired
    assert not stop.requested


def test_stop():
    stop = core.Stop()
    assert not stop.requested
    assert not stop.expired
    stop.set_deadline(1000.0)
    assert not stop.expired
    stop.set_deadline(-1.0)
    assert stop.expired
    assert not stop.requested
    stop.request()
    assert stop.requested


# Every variant computes the same. The number of updates is left out where a change of
# one rounding counts as one.

REPORT = """
import math, sys
import numpy as np
from scipy import sparse
from dualgap import core

rng = np.random.default_rng(0)
n, d = 61, 45
X = rng.standard_normal((n, d))
X[rng.random(X.shape) < 0.5] = 0.0
y = rng.choice([-1, 1], n).astype(np.int8)
cost = rng.uniform(0.1, 2.0, n)
out = {}

def told(passed, *names):
    # The public numbers of a record, in the order of their names.
    names = names or [name for name in dir(passed) if name[0] != "_"]
    return [getattr(passed, name) for name in names]

for dtype in (np.float32, np.float64):
    A = sparse.csr_matrix(X.astype(dtype))
    matrices = {
        "dense": core.dense_rows(X.astype(dtype), 1.5),
        "csr": core.csr_rows(A.data, A.indices, A.indptr, d, 1.5),
    }
    for layout, rows in matrices.items():
        for curvature, slope in ((0.0, 1.0), (0.3, 1.0), (0.5, math.inf)):
            loss = core.Loss(slope, curvature)
            key = f"{np.dtype(dtype)}-{layout}-{curvature}-"
            q = np.empty(n)
            rows.inspect(q)
            order = np.empty(3 * n, np.uint32)
            core.Random(1).draw(order, n)
            stop = core.Stop()

            alpha, w = np.zeros(n), np.zeros(d + 1)
            seen = ("visited", "gap")
            examples = core.Examples(rows, y, cost, q, loss)
            state = core.DualState(alpha, w)
            passed = core.sdca_epoch(examples, order, state, None, stop)
            out[key + "sdca"] = np.concatenate([alpha, w, told(passed, *seen)])
            alpha, w = np.zeros(n), np.zeros(d + 1)
            state = core.DualState(alpha, w)
            passed = core.modified_sgd_epoch(examples, order[:n], state, 0, n, stop)
            out[key + "modified"] = np.concatenate([alpha, w, told(passed, *seen)])
            passed = core.dcd_epoch(
                examples, order.copy(), 2 * n, state, 10.0, -10.0, stop)
            seen += ("active", "max_gradient", "min_gradient")
            out[key + "dcd"] = np.concatenate([alpha, w, told(passed, *seen)])

            a, errors = np.zeros(d + 1), np.zeros(n, np.int64)
            state = core.CountingState(a, errors, 0.0, 0.0)
            passed = core.counting_sgd_epoch(examples, 0.01, 3, order, state, stop)
            out[key + "counting"] = np.concatenate(
                [a, errors, told(passed), [state.t, state.norm]])
            for schedule in ("pegasos", "norma", "svmsgd"):
                v, beta = np.zeros(d + 1), np.zeros(n)
                state = core.GradientState(v, beta)
                settings = core.GradientSettings(
                    0.05, getattr(core.Schedule, schedule), 0.5, 2, True)
                passed = core.stochastic_gradient_epoch(
                    examples, settings, order, state, stop)
                out[key + schedule] = np.concatenate(
                    [v, beta, told(passed), [state.scale, state.norm, state.t]])

            margins, sums = np.empty(n), np.empty(d + 1)
            values = core.evaluate(examples, w, "given", alpha, sums, margins)
            out[key + "evaluate"] = np.concatenate([told(values), sums, margins])
            built = np.empty(n)
            # Away from the kink of the hinge, where one rounding decides.
            away = np.linspace(-0.3, 0.4, d + 1)
            values = core.evaluate(examples, away, "built", built, sums)
            out[key + "built"] = np.concatenate([told(values), sums, built])
            value = core.dual_value(alpha, cost, loss, 0.7, 1.0)
            out[key + "value"] = np.array([value])
            out[key + "norm"] = np.array([core.squared_norm(w)])
            out[key + "q"] = q
np.savez(sys.argv[1], variant=core.variant, **out)
"""

RUNNABLE = [level for level in core.built_levels if int(level[1:]) <= core.cpu_level]


@pytest.mark.skipif(len(RUNNABLE) < 2, reason="one variant is built or runs here")
def test_every_variant_computes_the_same(tmp_path):
    results = {}
    for level in RUNNABLE:
        path = tmp_path / f"{level}.npz"
        subprocess.run(
            [sys.executable, "-c", REPORT, str(path)],
            env={**os.environ, "DUALGAP_CPU": level},
            check=True,
            timeout=300,
        )
        with np.load(path) as file:
            results[level] = dict(file)
        assert results[level].pop("variant") == f"x86-64-{level}"
    first = results.pop(RUNNABLE[0])
    assert len(first) == 2 * 2 * 3 * 12
    for level, other in results.items():
        assert first.keys() == other.keys()
        for key, value in first.items():
            size = np.abs(value).max()
            off = np.abs(value - other[key]).max()
            assert off <= 1e-12 * size, (level, key, off)


def test_the_constant_feature_is_a_last_column():
    """In every layout the results equal those with the feature stored as a column."""
    X = np.random.default_rng(0).standard_normal((N, D))
    full = np.column_stack([X, np.full(N, 2.5)])
    A = sparse.csr_matrix(X)
    plain = core.dense_rows(full, 0.0)
    for with_constant in (
        core.dense_rows(X, 2.5),
        core.csr_rows(A.data, A.indices, A.indptr, D, 2.5),
    ):
        results = []
        for matrix in (plain, with_constant):
            assert matrix.width == D + 1
            q = np.empty(N)
            fault, _, unique = matrix.inspect(q)
            assert fault is None
            assert unique
            alpha, w = np.zeros(N), np.zeros(D + 1)
            state = core.DualState(alpha, w)
            given = examples(matrix, labels(), np.ones(N), q)
            core.sdca_epoch(given, order(), state, None, core.Stop())
            results.append(np.concatenate([q, alpha, w]))
        np.testing.assert_allclose(*results, rtol=1e-12, atol=1e-14)

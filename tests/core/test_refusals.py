"""Arguments of the core's functions that would lead out of an array are refused.

The lengths of arrays are in ../test_core.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dualgap import core
from dualgap.blas import algebra

HINGE = core.Loss(1.0, 0.0)
SQUARED = core.Loss(math.inf, 0.5)
N, D = 6, 3
ALGEBRA = algebra()[0]
ROWS = core.dense_rows(np.random.default_rng(0).standard_normal((N, D)), 0.0)
LABELS = np.where(np.arange(N) % 2, 1, -1).astype(np.int8)
NONE = np.empty(0, np.uint32)
WIDTH = 5000
SPARSE = core.csr_rows(
    np.ones(N), np.arange(N, dtype=np.int32), np.arange(N + 1), WIDTH, 0.0
)


def order(n=N):
    return np.arange(n, dtype=np.uint32)


def examples(loss=HINGE):
    return core.Examples(ROWS, LABELS, np.ones(N), np.ones(N), loss)


def point():
    return core.DualState(np.zeros(N), np.zeros(D))


def sleep(longest):
    wake, length = np.zeros(N, np.uint8), np.zeros(N, np.uint8)
    return core.Sleep(wake, length, math.inf, longest)


def how():
    """Return the generator and the stop of a pass."""
    return core.Random(0), core.Stop()


def sleeping(chunk=1, longest=127):
    settings = core.SweepSettings(chunk=chunk)
    return core.sleeping_epoch(
        examples(), point(), sleep(longest), settings, order(), *how()
    )


def regression(chunk=1, longest=127):
    tube = core.ResidualLoss(HINGE, 0.1, 1.0, 1.0)
    targets = core.RegressionExamples(ROWS, *np.ones((3, N)), tube)
    return core.regression_epoch(
        targets, point(), sleep(longest), chunk, order(), *how()
    )


def conjugate(next_direction):
    points, images = tuple(np.zeros((2, N))), tuple(np.zeros((2, D)))
    directions = core.Directions(point(), points, images, (0.0, 0.0), next_direction)
    wake = np.zeros(N, np.uint8)
    return core.conjugate_step(
        examples(), point(), 0.0, directions, wake, order(), core.Stop()
    )


def crammer_singer(classes, codes):
    codes = np.asarray(codes, np.int32)
    alpha = np.zeros(N * max(classes, 1))
    given = core.MulticlassExamples(ROWS, codes, np.ones(N), np.ones(N), classes)
    return core.multiclass_feasible(given, alpha)


def gradient(rule, loss=HINGE, bias=None, batch=1):
    settings = core.GradientSettings(0.1, core.Schedule.svmsgd, 1.0, batch, rule=rule)
    state = core.GradientState(np.zeros(D), np.zeros(N), bias=bias)
    return core.stochastic_gradient_epoch(
        examples(loss), settings, order(), state, core.Stop()
    )


def sgd_qn(skip):
    settings = core.SgdQnSettings(0.1, True, skip, 1.0, 1.0)
    arrays = np.zeros(D), np.ones(D), np.zeros(D), np.zeros(N)
    state = core.SgdQnState(*arrays, 0.0, 1.0, skip, False)
    return core.sgd_qn_epoch(examples(), settings, order(), state, core.Stop())


def kernel_rows(kernel="rbf", rows=ROWS):
    form = core.KernelMap(kernel, 1.0, 0.0, 3)
    return core.KernelRows(rows, form, None, rows is not SPARSE, 1)


def block(*chosen, shape):
    """Write kernel values of rows, or of rows and columns, into an array."""
    values = kernel_rows().cross if len(chosen) > 1 else kernel_rows().rows
    return values(*chosen, np.empty(shape, np.float32), core.Stop())


def master(matrix, n, entries=None):
    b = np.ones(n if entries is None else entries)
    return core.solve_master(matrix, b, np.full(n, 0.5), 0.1, core.Stop())


def small(H, n):
    H = np.asarray(H, np.float32)
    return core.solve_small(H, np.full(n, 0.5), np.zeros(n), 0.1, 1, core.Stop())


def parse(threads):
    content = np.frombuffer(b"1 1:1\n", np.uint8)
    return core.parse_svmlight(content, threads, None, False, False, False)


def segments(size):
    return core.crc32c_segments(np.ones(5, np.uint8), size)


WIDER = core.dense_rows(np.ones((N, D + 1)), 0.0)


def gram():
    return core.Gram(kernel_rows(), N)


def python_gram(block):
    return core.Gram(core.PythonRows(N, block), N)


def simplex(size=1):
    problem = core.Simplex(gram(), None, np.ones(N), np.ones(N), np.ones(N))
    return problem, core.SimplexState(np.eye(N)[0], np.ones(N), order(), size)


def frank_wolfe(method="fw", size=1):
    settings = core.WalkSettings(method, False, 1)
    return core.frank_wolfe(*simplex(size), settings, core.Stop())


def sampled(count=2, split=0, vertex=-1):
    settings = core.WalkSettings("fw", False, 1)
    sample = core.Sample(count, NONE, split, vertex)
    return core.frank_wolfe_sampled(*simplex(), settings, sample, *how())


def kernel_pegasos(size=0, batch=1, most=N, sums=N):
    settings = core.PegasosSettings(HINGE, 0.1, N, batch, 1.0)
    total = core.SumOfSteps(np.zeros(sums), np.zeros(N), 0.0)
    visits = order(), np.zeros(most), total, core.Stop()
    return core.kernel_pegasos(*simplex(size), np.ones(N), settings, *visits)


def kernel_times(ends):
    ends = np.asarray(ends, np.int64)
    out = np.empty((len(ends), N))
    form = core.KernelMap("rbf", 1.0, 0.0, 3)
    settings = core.ProductSettings(True, False, 1)
    coef = np.ones((1, N))
    return core.kernel_times(form, ROWS, coef, ends, ROWS, out, settings, core.Stop())


def interior(rows, y=LABELS, algebra=ALGEBRA, width=D):
    given = core.SomeRows(rows, y, np.ones(len(y)), np.ones(width), 0.0)
    return core.Interior(given, HINGE, 1.0, False, core.Team(1), algebra)


def labelling(cost, q=N, y=(1, N), costs=(1, N), w=(1, D), alpha=(1, N)):
    """Solve a problem by Newton's method; one without costs has no rows."""
    rules = core.NewtonRules(0.1, 0.1, 10.0, 1e-9, 3, 1e-3)
    settings = core.LabellingSettings(
        core.Targets(0.1, 0.0, 0.1, math.inf), 1.0, 9, 9, rules
    )
    tables = core.Labellings(
        np.resize(LABELS, y), np.full(costs, cost), np.zeros(w), np.zeros(alpha)
    )
    given = ROWS, np.ones(q), tables, HINGE, settings, ALGEBRA, core.Team(1)
    return core.solve_labellings(*given, core.Stop())


def block_solver(q):
    tube = core.ResidualLoss(HINGE, 0.0, 1.0, 1.0)
    problem = core.BlockProblem(*np.ones((3, N)), tube, np.ones(N), 0.0, False)
    return core.BlockSolver(kernel_rows(), problem, q, q, 10**6, False, core.Random(0))


def pairs(bounds=(0, 2, N), costs=N, lengths=N, scores=(1, N), **more):
    tables = core.PairTables(np.zeros((1, N)), np.zeros(scores))
    settings = core.WholeSettings(core.Targets(0.1, 0.0, 0.1, 0.0), 1e6, 9)
    sizes = core.ScoreRoundings(np.ones(lengths), 0.0, 0.0, 0.0, 0.0)
    rows = kernel_rows(rows=more.pop("rows", ROWS))
    given = list(bounds), np.ones(costs), sizes, settings, tables, core.Stop()
    return core.solve_pairs(rows, *given, *more.values())


def evaluate(dual="given", alpha=True, v=True):
    arrays = np.ones(N) if alpha else None, np.ones(D) if v else None
    return core.evaluate(examples(), np.ones(D), dual, *arrays)


def csr(values=3, ends=(0, 3)):
    indices = np.zeros(3, np.int32)
    return core.csr_rows(np.ones(values), indices, np.array(ends, int), 5, 0.0)


def class_weights(coef=N, ends=(2, N), classes=2):
    ends, out = np.array(ends), np.zeros((classes, D))
    return core.class_weights(ROWS, np.ones((1, coef)), ends, out)


def image_lengths(root=(D, D), out=N):
    return core.image_lengths(ROWS, np.ones(root), np.zeros(out))


def shapley(factors=6, columns=3, weights=2):
    rows = np.ones((2, 3)), np.ones((2, factors))
    return core.shapley_sums(*rows, *map(np.ones, (2, weights)), np.ones((2, columns)))


def nu_regression(linear=N, cost=N, rows=ROWS):
    settings = core.WholeSettings(core.Targets(0.1, 0.0, 0.1, 0.0), 1e6, 9)
    given = np.ones(linear), np.ones(cost), 1.0, settings, np.zeros(N), core.Stop()
    return core.solve_nu_regression(kernel_rows(rows=rows), *given)


def yielding(pairs):
    """Start on blocks of rows that a function yields."""
    return interior(lambda: pairs).start(np.zeros(D), 0.0, core.Stop())


def probabilities(codes=(0, 1, 2, 0, 1, 2), rows=(0, N), sums=4, classes=3):
    arrays = np.zeros((3, N)), np.asarray(codes, np.int64)
    return core.class_probabilities(
        *arrays, *rows, np.empty((sums, N)), np.empty((classes, N))
    )


#: A call of each function that is right.
RIGHT = {
    "class_probabilities": probabilities,
    "sleeping_epoch": sleeping,
    "regression_epoch": regression,
    "conjugate_step": lambda: conjugate(1),
    "multiclass_feasible": lambda: crammer_singer(2, [0, 1] * 3),
    "stochastic_gradient_epoch": lambda: gradient(core.BiasRule.step, bias=np.zeros(1)),
    "sgd_qn_epoch": lambda: sgd_qn(2),
    "solve_master": lambda: master(np.eye(2), 2),
    "KernelRows.rows": lambda: block(order(), shape=(N, 32)),
    "KernelRows.cross": lambda: block(order(), order(2), shape=(N, 32)),
    "Gram.row": lambda: gram().row(N - 1, np.empty(N, np.float32)),
    "frank_wolfe": frank_wolfe,
    "frank_wolfe_sampled": sampled,
    "kernel_pegasos": kernel_pegasos,
    "solve_small": lambda: small(np.eye(2), 2),
    "kernel_times": lambda: kernel_times([2, N]),
    "Interior": lambda: yielding([(ROWS, None)]),
    "solve_labellings": lambda: labelling(1.0),
    "solve_labellings without costs": lambda: labelling(0.0),
    "BlockSolver": lambda: block_solver(2),
    "shapley_sums": shapley,
    "solve_nu_regression": nu_regression,
    "solve_pairs": pairs,
    "evaluate": evaluate,
    "csr_rows": csr,
    "class_weights": class_weights,
    "image_lengths": image_lengths,
    "Random.below": lambda: core.Random(0).below(3),
    "crc32c_segments": lambda: segments(2),
    "parse_svmlight": lambda: parse(1),
}


@pytest.mark.parametrize("call", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_taken(call):
    call()


#: Calls that are wrong: what is wrong, the call, and what the error says.
WRONG = [
    ("unknown class", lambda: probabilities([0, 1, 3] * 2), "a code is out of range"),
    ("negative class", lambda: probabilities([0, -1, 2] * 2), "a code is out of range"),
    ("few codes", lambda: probabilities([0, 1]), "codes"),
    ("rows beyond", lambda: probabilities(rows=(0, N + 1)), "rows are out of range"),
    ("rows reversed", lambda: probabilities(rows=(3, 2)), "rows are out of range"),
    ("few sums", lambda: probabilities(sums=3), "sums has 3 entries"),
    ("few outputs", lambda: probabilities(classes=2), "residual has 2 entries"),
    ("no chunk", lambda: sleeping(chunk=0), "chunk must be positive"),
    ("no spell", lambda: sleeping(longest=0), "longest is from 1 to 127"),
    ("long spell", lambda: sleeping(longest=128), "longest is from 1 to 127"),
    ("regression: no chunk", lambda: regression(chunk=0), "chunk must be positive"),
    ("regression: no spell", lambda: regression(longest=0), "longest is from 1"),
    ("regression: long spell", lambda: regression(longest=128), "longest is from 1"),
    ("direction below 0", lambda: conjugate(-1), "next is 0 or 1"),
    ("third direction", lambda: conjugate(2), "next is 0 or 1"),
    ("one class", lambda: crammer_singer(1, [0] * N), "classes must be 2 or more"),
    ("class 2 of 2", lambda: crammer_singer(2, [0, 1, 2] * 2), "does not exist"),
    ("class -1", lambda: crammer_singer(2, [0, 1, -1] * 2), "does not exist"),
    ("no bias", lambda: gradient(core.BiasRule.step), "this rule needs a bias"),
    ("bias of a batch and the squared hinge",
     lambda: gradient(core.BiasRule.batch, SQUARED, np.zeros(1)),
     "the bias of a batch is for the hinge"),
    ("no skip", lambda: sgd_qn(0), "skip must be positive"),
    ("more planes", lambda: master(np.eye(2), 3), "beta does not fit gram"),
    ("no planes", lambda: master(np.eye(2), 0), "beta does not fit gram"),
    ("few rows", lambda: master(np.eye(3)[:2], 3), "beta does not fit gram"),
    ("unknown kernel", lambda: kernel_rows("cubic"), "kernel: cubic"),
    *((f"kernel values into {shape}", lambda shape=shape, own=own: block(
        *own, shape=shape), "out has")
      for own in ((order(),), (order(), order(2))) for shape in ((2, 32), (N, 2))),
    ("unknown method", lambda: frank_wolfe("newton"), "method: newton"),
    ("no active rows", lambda: frank_wolfe(size=0), "size does not fit active"),
    ("more active rows", lambda: frank_wolfe(size=N + 1), "size does not fit active"),
    ("empty sample", lambda: sampled(count=0), "count must be positive"),
    ("split below 0", lambda: sampled(split=-1), "split"),
    ("split beyond the rows", lambda: sampled(split=N + 1), "split"),
    ("split without an order", lambda: sampled(split=1), "order has 0 entries"),
    ("vertex beyond the rows", lambda: sampled(vertex=N), "vertex"),
    ("Pegasos: size below 0", lambda: kernel_pegasos(-1), "size"),
    ("Pegasos: no rows in a batch", lambda: kernel_pegasos(batch=0), "batch"),
    ("Pegasos: more rows than there are", lambda: kernel_pegasos(N + 1), "size"),
    ("Pegasos: few sums of slopes", lambda: kernel_pegasos(most=N - 1), "most"),
    ("Pegasos: few margins in a sum", lambda: kernel_pegasos(sums=N - 1), "r"),
    ("matrix of few columns", lambda: small(np.ones((3, 2)), 3), "a does not fit H"),
    ("matrix of few rows", lambda: small(np.ones((2, 3)), 3), "a does not fit H"),
    ("an empty problem", lambda: small(np.ones((2, 2)), 0), "a does not fit H"),
    ("parts that overlap", lambda: kernel_times([4, 2]), "ends"),
    ("parts beyond the rows", lambda: kernel_times([2, N + 1]), "ends"),
    ("rows of two widths", lambda: interior([ROWS, WIDER]), "rows of different widths"),
    *((name, lambda blocks=blocks: yielding(blocks), "blocks of other rows than before")
      for name, blocks in (("too few blocks", []), ("too many", [(ROWS, None)] * 2),
                           ("blocks of another width", [(WIDER, None)]))),
    ("another BLAS", lambda: interior([ROWS], algebra=ALGEBRA[::-1]),
     "SciPy's BLAS is not the one that is known: void"),
    ("two functions", lambda: interior([ROWS], algebra=ALGEBRA[:2]), "four functions"),
    *((f"labellings: {name} of {shape}",
       lambda name=name, shape=shape: labelling(1.0, **{name: shape}), f"{words} has")
      for name, words, shape in (
          ("q", "q", N - 1), ("y", "y", (1, N - 1)), ("y", "w", (2, N)),
          ("costs", "cost", (1, N - 1)), ("costs", "cost", (2, N)),
          ("w", "w", (1, D - 1)), ("alpha", "alpha", (0, N)))),
    ("no working set", lambda: block_solver(0), "q must be positive"),
    ("a start at NaN", lambda: block_solver(2).set_alpha(np.full(N, math.nan)),
     "a start is not a number"),
    *((f"classes from {bounds}", lambda bounds=bounds: pairs(bounds), "bounds")
      for bounds in ([0, 0, N], [], [0, 3], [0, 5, 2, N], [1, 2, N])),
    ("pairs: few costs", lambda: pairs(costs=N - 1), "cost"),
    *((f"pairs: scores of {shape}", lambda shape=shape: pairs(scores=shape), "scores")
      for shape in ((0, N), (1, N - 1))),
    *((f"pairs: halves {halves}", lambda halves=halves: pairs(halves=halves), "halves")
      for halves in ([1.0, 1.0], [0.0], [math.nan])),
    ("nu-SVR: few targets", lambda: nu_regression(linear=2), "linear"),
    ("nu-SVR: few costs", lambda: nu_regression(cost=2), "cost"),
    ("nu-SVR: sparse rows", lambda: nu_regression(rows=SPARSE), "sparse"),
    ("shapley: part of a row", lambda: shapley(factors=7), "B"),
    ("shapley: few sums", lambda: shapley(columns=2), "sums"),
    ("shapley: few weights", lambda: shapley(weights=1), "weights"),
    ("pairs: few lengths", lambda: pairs(lengths=3), "lengths"),
    ("pairs: sparse rows", lambda: pairs(rows=SPARSE), "sparse"),
    *((f"dual point {point}", lambda point=point: evaluate(**point),
       "this dual point needs alpha and v")
      for dual in ("given", "built")
      for point in ({"dual": dual, "alpha": False}, {"dual": dual, "v": False})),
    ("unknown dual point", lambda: evaluate("other"), "dual: other"),
    ("dual value: few costs",
     lambda: core.dual_value(np.ones(3), np.ones(2), HINGE, 1.0, 0.0),
     "cost has 2 entries, expected 3"),
    ("few values", lambda: csr(values=2), "values and indices differ in length"),
    ("no ends of rows", lambda: csr(ends=()), "indptr is empty"),
    ("few squared lengths", lambda: ROWS.inspect(np.ones(N - 1)), "q has 5 entries"),
    ("few coefficients", lambda: class_weights(coef=N - 1), "coef"),
    ("few classes", lambda: class_weights(classes=1), "out"),
    *((f"classes end at {ends}", lambda ends=ends: class_weights(ends=ends), "ends")
      for ends in ([N, 2], [2, N + 1])),
    *((f"image: {wrong}", lambda wrong=wrong: image_lengths(**wrong), "root|out")
      for wrong in ({"root": (D - 1, D)}, {"root": (D, D - 1)}, {"out": N - 1})),
    *((f"batch of {size}", lambda size=size: gradient(core.BiasRule.fixed, batch=size),
       "batch must be positive") for size in (0, -3)),
    ("kernel row beyond", lambda: block(order(1) + N, shape=(1, 32)),
     "row that does not exist"),
    ("few entries of b", lambda: master(np.eye(3), 3, 2), "b has 2 entries"),
    ("no threads", lambda: core.Team(0), "threads must be positive"),
    ("nothing to draw from", lambda: core.Random(0).below(0), "n must be positive"),
    ("no orders", lambda: core.Random(0).draw(order(), 0), "n must be positive"),
    ("empty segments", lambda: segments(0), "segment must be at least 1"),
    ("a parser without threads", lambda: parse(0), "n_threads must be at least 1"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("call", "message"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG]
)
def test_what_is_wrong_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


FIXED = order(4)
FIXED.flags.writeable = False
#: Calls with numbers and arrays of another kind.
KINDS = [
    *(lambda X=X: core.dense_rows(X, 0.0)
      for X in (np.ones((2, 3), np.int64), np.ones(3), np.ones((3, 2)).T)),
    *(lambda out=out: core.Random(0).shuffle(out)
      for out in (np.arange(4), order(8)[::2], FIXED)),
    *(lambda out=out: core.Random(0).draw(out, 4)
      for out in (np.arange(4), order(8)[::2])),
    *(lambda seed=seed: core.Random(seed) for seed in (-1, 2**64, 0.5, "0")),
]  # fmt: skip


@pytest.mark.cases(None)
@pytest.mark.parametrize("call", KINDS)
def test_other_kinds_are_refused(call):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call()


@pytest.mark.parametrize("row", [-1, N])
def test_a_row_that_does_not_exist_is_refused(row):
    with pytest.raises(IndexError, match="no such row"):
        gram().row(row, np.empty(N, np.float32))
    assert not gram().holds(row)


@pytest.mark.parametrize("shape", [(2, N), (1, N - 1)])
def test_a_kernel_of_the_caller_has_to_return_blocks_that_fit(shape):
    matrix = python_gram(lambda who, columns, precise: np.ones(shape))
    with pytest.raises(ValueError, match="a block of another shape"):
        matrix.row(0, np.empty(N, np.float32))
    with pytest.raises(ValueError, match="a block of another shape"):
        matrix.block(order(1), order(), np.empty(N))

"""Arguments of the core's functions that would lead out of an array are refused.

Every array of every call in `RIGHT` has its length checked. Kinds of arrays are in
../test_core.py.
"""

from __future__ import annotations

import functools
import math
from enum import Enum

import numpy as np
import pytest
from scipy.linalg import cython_blas

from dualgap import core
from dualgap.blas import algebra

HINGE = core.Loss(1.0, 0.0)
SQUARED = core.Loss(math.inf, 0.5)
N, D = 6, 3
ALGEBRA, AXPY = algebra()[0], cython_blas.__pyx_capi__["daxpy"]
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


def master(matrix, n):
    return core.solve_master(matrix, np.ones(n), np.full(n, 0.5), 0.1, core.Stop())


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


def kernel_pegasos(size=0, batch=1):
    settings = core.PegasosSettings(HINGE, 0.1, N, batch, 1.0)
    total = core.SumOfSteps(np.zeros(N), np.zeros(N), 0.0)
    visits = order(), np.zeros(N), total, core.Stop()
    return core.kernel_pegasos(*simplex(size), np.ones(N), settings, *visits)


def kernel_times(ends, rows=ROWS):
    ends = np.asarray(ends, np.int64)
    out = np.empty((len(ends), N))
    form = core.KernelMap("rbf", 1.0, 0.0, 3)
    settings = core.ProductSettings(True, False, 1)
    coef = np.ones((1, N))
    return core.kernel_times(form, rows, coef, ends, ROWS, out, settings, core.Stop())


def packed_times(rows=ROWS):
    form, ends = core.KernelMap("rbf", 1.0, 0.0, 3), np.array([2, N])
    packed = core.PackedVectors(form, rows, np.ones((1, N)), ends, True)
    return packed.times(ROWS, np.empty((2, N)))


def interior(rows, y=LABELS, algebra=ALGEBRA, width=D):
    given = core.SomeRows(rows, y, np.ones(len(y)), np.ones(width), 0.0)
    return core.Interior(given, HINGE, 1.0, False, core.Team(1), algebra)


def labelling(cost):
    """Solve problems by Newton's method; without costs they have no rows."""
    rules = core.NewtonRules(0.1, 0.1, 10.0, 1e-9, 3, 1e-3)
    settings = core.LabellingSettings(
        core.Targets(0.1, 0.0, 0.1, math.inf), 1.0, 9, 9, rules
    )
    tables = core.Labellings(
        np.tile(LABELS, (3, 1)), np.full((3, N), cost), *map(
        np.zeros, ((3, D), (3, N))))  # fmt: skip
    given = ROWS, np.ones(N), tables, HINGE, settings, ALGEBRA, core.Team(1)
    return core.solve_labellings(*given, core.Stop())


def block_solver(q, largest=2):
    tube = core.ResidualLoss(HINGE, 0.0, 1.0, 1.0)
    problem = core.BlockProblem(*np.ones((3, N)), tube, np.ones(N), 0.0, False)
    return core.BlockSolver(
        kernel_rows(), problem, q, largest, 10**6, False, core.Random(0)
    )


def pairs(bounds=(0, 2, N), rows=ROWS, halves=()):
    tables = core.PairTables(*np.zeros((2, 1, N)))
    sizes = core.ScoreRoundings(np.ones(N), 0.0, 0.0, 0.0, 0.0)
    given = list(bounds), np.ones(N), sizes, whole(), tables, core.Stop(), list(halves)
    return core.solve_pairs(kernel_rows(rows=rows), *given)


def evaluate(dual="given", alpha=True, v=True):
    arrays = np.ones(N) if alpha else None, np.ones(D) if v else None
    return core.evaluate(examples(), np.ones(D), dual, *arrays)


def csr(ends=(0, 3)):
    indices = np.zeros(3, np.int32)
    return core.csr_rows(np.ones(3), indices, np.array(ends, int), 5, 0.0)


def class_weights(ends=(2, N)):
    out = np.zeros((len(ends), D))
    return core.class_weights(ROWS, np.ones((1, N)), np.array(ends, int), out)


def shapley():
    rows = np.ones((2, 3)), np.ones((2, 6))
    return core.shapley_sums(*rows, np.ones(2), np.ones(2), np.ones((2, 3)))


def whole():
    return core.WholeSettings(core.Targets(0.1, 0.0, 0.1, 0.0), 1e6, 9)


def nu_regression(rows=ROWS):
    given = np.ones(N), np.ones(N), 1.0, whole(), np.zeros(N), core.Stop()
    return core.solve_nu_regression(kernel_rows(rows=rows), *given)


def one_class(rows=ROWS):
    given = np.ones(N), 0.0, whole(), np.full(N, 0.5), core.Stop()
    return core.solve_one_class(kernel_rows(rows=rows), *given)


def crammer_singer_epoch():
    codes = np.resize(np.arange(3, dtype=np.int32), N)
    given = core.MulticlassExamples(ROWS, codes, np.ones(N), np.ones(N), 3)
    point = core.MulticlassState(np.zeros(3 * N), np.zeros(8 * D), *bytes_of_rows())
    core.crammer_singer_epoch(given, point, order(), *how())
    core.multiclass_values(given, np.zeros(8 * D), np.zeros(3 * N))
    core.multiclass_combine(ROWS, np.zeros(3 * N), 3, np.zeros(8 * D))


def bytes_of_rows():
    return np.zeros(N, np.uint8), np.zeros(N, np.uint8)


def momentum():
    wake, _ = bytes_of_rows()
    core.momentum(examples(), point(), point(), 0.5, wake, order(), core.Stop())


def by_columns():
    """Call what the elastic net does with columns; the rows stand for them."""
    penalty = core.ElasticNetPenalty(0.5, 0.5, -1, 0.1, 9)
    chosen, long, short = order(2), np.ones(N), np.ones(D)
    core.column_products(ROWS, chosen, short, long, core.Stop())
    core.add_columns(ROWS, chosen, long, short)
    core.descend_by_columns(ROWS, penalty, np.ones(D), short, long, core.Stop())
    core.add_products(ROWS, long, np.eye(D), core.Stop())
    core.add_squares(ROWS, long, short)
    core.descend_by_products(np.eye(D), penalty, *np.ones((3, D)), core.Stop())


def folds(runs=((0, 2), (3, N)), n=N - 1):
    values = np.eye(N)
    table = core.FoldTable(values, values.astype(np.float32))
    weights, targets = np.ones((2, n)), np.arange(float(n))
    found = core.Folds(table, list(runs), LABELS[:n], weights, 1, targets, 0.1)
    found.start(np.zeros(n))
    found.points(np.zeros((2, n)), np.zeros((2, n)))


def proofs_of_folds():
    table = core.FoldTable(np.eye(N), np.eye(N, dtype=np.float32))
    found = core.Folds(table, [(0, N)], LABELS, np.ones((1, N)), 1)
    found.proofs(core.ScoreRoundings(np.ones(N), 0.0, 0.0, 0.0, 0.0))


def newton():
    targets = core.RegressionExamples(
        ROWS, *np.ones((3, N)), core.ResidualLoss(SQUARED, 0.1, 1.0, 1.0)
    )
    w, gradient, step = np.zeros((3, D))
    state = core.NewtonState(w, np.zeros(N), gradient, step, np.zeros(N))
    core.newton_point(targets, state, core.Team(1))
    core.newton_step(targets, state, 0.1, 9, ALGEBRA, core.Team(1), core.Stop())


def of_kernel():
    """Call what works with the scores of a kernel problem."""
    scalars = core.KernelScalars(0.0, 0.0, 1.0, 0.0, 0.0, 0.0)
    ones = np.ones((4, N))
    core.kernel_sums(LABELS, ones[0], HINGE, *ones[1:], scalars)
    core.hinge_bias(ones[0], LABELS, ones[1])
    core.weighted_quantile(ones[0], ones[1], 1.0)


def matrix_rows():
    """Call the kernel matrix, and its products with coefficients."""
    form, stop = core.KernelMap("rbf", 1.0, 0.0, 3), core.Stop()
    core.KernelRows(ROWS, form, order(2), True, 1).errors(False, np.empty(2))
    rows, chosen = kernel_rows(), order(2)
    gram().block(order(2), order(3), np.empty(6))
    rows.add_rows(chosen, np.ones(2), None, np.zeros(N), stop)
    rows.times(chosen, np.ones(2), order(4), np.zeros(4), np.zeros(4), stop)
    rows.sum_errors(np.empty(N))


def inner_steps():
    H, stop = np.eye(2, dtype=np.float32), core.Stop()
    v, lower, upper = np.ones(2, np.float32), np.zeros(2), np.ones(2)
    core.pair_steps(H, np.zeros(2), (lower, upper), v, 1e-9, 0.1, 9, stop)
    core.coordinate_steps(H, upper, lower, np.zeros(2), v, 0.1, 9, stop)


def block_steps():
    solver = block_solver(2)
    solver.set_alpha(np.zeros(N))
    solver.set_gradient(np.zeros(N))


def pair_epoch():
    given = *np.ones((2, N)), order(2), order(2), point(), np.zeros(D)
    core.pair_epoch(ROWS, *given, core.Stop())


def sums_of_rows():
    core.signed_sum(LABELS, np.ones(N))
    core.dual_value(np.ones(N), np.ones(N), HINGE, 1.0, 0.0)
    core.best_multiple(examples(), np.ones(N), 1.0, 1.0, 0.0, 5.0)
    core.group_duplicates(ROWS, LABELS, order())
    core.chosen_rows(ROWS, order(2), 0.0)
    core.image_lengths(ROWS, np.ones((D, D)), np.zeros(N))
    ROWS.inspect(np.ones(N))


def sweeps(seeds=(7,)):
    tables = core.Labellings(LABELS[None], np.ones((1, N)), *map(
        np.zeros, ((1, D), (1, N))))  # fmt: skip
    rules = core.SweepRules(
        core.Targets(0.1, 0.0, 0.1, 0.0), 4.0, 4.0, 6, core.SweepSettings(), 31, 0.0
    )
    given = ROWS, np.ones(N), tables, HINGE, rules, list(seeds), core.Team(1)
    return core.sweep_labellings(*given, core.Stop())


def smoothed():
    offset = np.zeros(N)
    some = core.SomeRows([ROWS], LABELS, np.ones(N), np.zeros(D), 0.0, offset)
    newton = core.SmoothingNewton(some, HINGE, False, core.Team(1), ALGEBRA)
    newton.start(np.zeros(D), 1.0, core.Stop())


def yielding(pairs):
    """Start on blocks of rows that a function yields."""
    return interior(lambda: pairs).start(np.zeros(D), 0.0, core.Stop())


def probabilities(codes=(0, 1, 2, 0, 1, 2), rows=(0, N), classes=3):
    scores, codes = np.zeros((classes, N)), np.asarray(codes, np.int64)
    out = np.empty((4, N)), np.empty((classes, N))
    return core.class_probabilities(scores, codes, *rows, *out)


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
    "solve_one_class": one_class,
    "crammer_singer_epoch": crammer_singer_epoch,
    "momentum": momentum,
    "columns": by_columns,
    "Folds": folds,
    "Folds.proofs": proofs_of_folds,
    "newton_step": newton,
    "sums of a kernel problem": of_kernel,
    "kernel matrices": matrix_rows,
    "PackedVectors": packed_times,
    "inner steps": inner_steps,
    "block solver": block_steps,
    "pair_epoch": pair_epoch,
    "sums of rows": sums_of_rows,
    "sweep_labellings": sweeps,
    "SmoothingNewton": smoothed,
    "some rows of a block": lambda: yielding([(ROWS, order())]),
    "Random.below": lambda: core.Random(0).below(3),
    "crc32c_segments": lambda: segments(2),
    "parse_svmlight": lambda: parse(1),
}


@pytest.mark.parametrize("call", RIGHT.values(), ids=RIGHT)
def test_what_is_right_is_taken(call):
    call()


class Recorder:
    """Record the calls of the core, and what its records were made of."""

    def __init__(self, monkeypatch):
        self.calls, self.made = [], {}
        for name, value in vars(core._core).items():
            if isinstance(value, type) and not issubclass(value, Enum):
                for method, function in list(vars(value).items()):
                    if type(function).__name__ == "nb_method" and method[0] != "_":
                        noted = self.noted(f"{name}.{method}", function)
                        monkeypatch.setattr(value, method, noted)
                monkeypatch.setattr(core, name, self.maker(value))
            elif type(value).__name__ == "nb_func":
                monkeypatch.setattr(core, name, self.noted(name, value))

    def noted(self, name, function):
        def call(*given):
            self.calls.append((name, function, given))
            return function(*given)

        return call

    def maker(self, kind):
        def make(*given, **named):
            value = kind(*given, **named)
            self.made[id(value)] = value, kind, given, named
            return value

        return make

    def changed(self, value, change):
        """Yield what makes the value again with one of its arrays changed."""
        if isinstance(value, np.ndarray):
            yield from (lambda array=array: array for array in change(value))
        elif isinstance(value, tuple | list):
            for k, item in enumerate(value):
                for other in self.changed(item, change):
                    yield lambda k=k, other=other: type(value)(
                        [*value[:k], other(), *value[k + 1 :]]
                    )
        elif id(value) in self.made:
            _, kind, given, named = self.made[id(value)]
            for other in self.changed(given, change):
                yield lambda other=other: kind(*other(), **named)

    def arrays(self, value):
        if isinstance(value, np.ndarray):
            return [value]
        if isinstance(value, tuple | list):
            return [array for item in value for array in self.arrays(item)]
        return self.arrays(self.made[id(value)][2]) if id(value) in self.made else []

    def engines(self):
        """Yield calls that make what no other call takes."""
        taken = {id(item) for *_, given in self.calls for item in given}
        taken |= {id(item) for _, _, given, _ in self.made.values() for item in given}
        for number, (_, kind, given, named) in self.made.items():
            if number not in taken:
                yield kind.__name__, functools.partial(kind, **named), given


def shorter(array):
    """Yield copies with an entry less along one axis."""
    for axis, size in enumerate(array.shape):
        if size > 0:
            yield np.ascontiguousarray(array.take(range(size - 1), axis))


def beyond(array):
    """Yield a read-only copy of an order that ends with a row that does not exist."""
    if array.dtype == np.uint32 and array.size:
        array = np.append(array[:-1], np.uint32(N))
        array.flags.writeable = False
        yield array


#: Arrays of any length: their functions, and the places of the arguments. Of some
#: folds, fewer are right too.
FREE = {
    *(("stochastic_gradient_epoch", 2), ("sgd_qn_epoch", 2), ("kernel_pegasos", 4)),
    *(("column_products", 1), ("add_columns", 1)),
    *(
        ("KernelRows.cross", 2),
        ("chosen_rows", 1),
        ("csr_rows", 2),
        ("crc32c_segments", 0),
    ),
    *(("parse_svmlight", 0), ("Folds.start", 0), ("Folds.proofs", 0)),
}


@pytest.mark.cases(None)
@pytest.mark.parametrize(
    ("change", "errors"), [(shorter, ValueError), (beyond, (ValueError, TypeError))]
)
@pytest.mark.parametrize("call", RIGHT.values(), ids=RIGHT)
def test_arrays_that_do_not_fit_are_refused(call, change, errors, monkeypatch):
    """Any array of any call, also in its records: nothing is written before."""
    record = Recorder(monkeypatch)
    call()
    monkeypatch.undo()
    for name, function, given in [*record.calls, *record.engines()]:
        arrays = record.arrays(given)
        before = [array.copy() for array in arrays]
        for k, value in enumerate(given):
            if change is shorter and (name, k) in FREE:
                continue
            for other in record.changed(value, change):
                with pytest.raises(errors):
                    function(*given[:k], other(), *given[k + 1 :])
        for array, old in zip(arrays, before, strict=True):
            np.testing.assert_array_equal(array, old)


#: Calls that are wrong: what is wrong, the call, and what the error says.
WRONG = [
    ("unknown class", lambda: probabilities([0, 1, 3] * 2), "a code is out of range"),
    ("negative class", lambda: probabilities([0, -1, 2] * 2), "a code is out of range"),
    *((f"rows {rows}", lambda rows=rows: probabilities(rows=rows), "out of range")
      for rows in ((0, N + 1), (3, 2), (-1, 2))),
    ("no classes", lambda: probabilities([0] * N, classes=0), "out of range"),
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
    ("no planes", lambda: master(np.eye(2), 0), "beta does not fit gram"),
    ("unknown kernel", lambda: kernel_rows("cubic"), "kernel: cubic"),
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
    ("an empty problem", lambda: small(np.ones((2, 2)), 0), "a does not fit H"),
    ("parts that overlap", lambda: kernel_times([4, 2]), "ends"),
    ("parts beyond the rows", lambda: kernel_times([2, N + 1]), "ends"),
    *(("vectors of another width", lambda call=call: call(rows=WIDER), "a row has 3")
      for call in (functools.partial(kernel_times, [2, N]), packed_times)),
    ("rows of two widths", lambda: interior([ROWS, WIDER]), "rows of different widths"),
    *((name, lambda blocks=blocks: yielding(blocks), "blocks of other rows than before")
      for name, blocks in (("too few blocks", []), ("too many", [(ROWS, None)] * 2),
                           ("blocks of another width", [(WIDER, None)]))),
    ("a block of a row beyond", lambda: yielding([(ROWS, order() + 1)]),
     "row that does not exist"),
    *((f"another BLAS, {name}", lambda other=other: interior([ROWS], algebra=other),
     "SciPy's BLAS is not the one that is known: void")
      for name, other in (("in another order", ALGEBRA[::-1]),
                          ("axpy", (*ALGEBRA[:2], AXPY, ALGEBRA[3])))),
    ("two functions", lambda: interior([ROWS], algebra=ALGEBRA[:2]), "four functions"),
    *((f"working sets of {q}", lambda q=q: block_solver(*q), "q must be positive")
      for q in ((0, 2), (2, 0))),
    ("a start at NaN", lambda: block_solver(2).set_alpha(np.full(N, math.nan)),
     "a start is not a number"),
    *((f"classes from {bounds}", lambda bounds=bounds: pairs(bounds), "bounds")
      for bounds in ([0, 0, N], [], [0, 3], [0, 5, 2, N], [1, 2, N])),
    *((f"pairs: halves {halves}", lambda halves=halves: pairs(halves=halves), "halves")
      for halves in ([1.0, 1.0], [0.0], [math.nan])),
    ("nu-SVR: sparse rows", lambda: nu_regression(rows=SPARSE), "sparse"),
    ("pairs: sparse rows", lambda: pairs(rows=SPARSE), "sparse"),
    *((f"dual point {point}", lambda point=point: evaluate(**point),
       "this dual point needs alpha and v")
      for dual in ("given", "built")
      for point in ({"dual": dual, "alpha": False}, {"dual": dual, "v": False})),
    ("unknown dual point", lambda: evaluate("other"), "dual: other"),
    ("no ends of rows", lambda: csr(ends=()), "indptr is empty"),
    *((f"classes end at {ends}", lambda ends=ends: class_weights(ends=ends), "ends")
      for ends in ([N, 2], [2, N + 1], [-1, N], [])),
    *((f"folds of {run}", lambda run=run: folds([run], 1), "rows outside the matrix")
      for run in ((-1, 0), (2, 1), (N, N + 1))),
    ("no seeds", lambda: sweeps(()), "seeds is empty"),
    ("one class: sparse rows", lambda: one_class(SPARSE), "sparse"),
    ("no points", lambda: core.weighted_quantile(*np.ones((2, 0)), 1.0), "no points"),
    *((f"batch of {size}", lambda size=size: gradient(core.BiasRule.fixed, batch=size),
       "batch must be positive") for size in (0, -3)),
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

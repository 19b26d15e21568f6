"""Rounds of CoCoA+ in one process against the twin; three ways to one optimum."""

from __future__ import annotations

import copy
import importlib.util
import itertools
import sys

import numpy as np
import pytest

from dualgap.distributed.cocoa import CoCoA, PiecewiseProblem, Rounds
from dualgap.distributed.messages import (
    PartialSums,
    Reply,
    Task,
    Update,
    add_updates,
    pack,
)
from dualgap.distributed.piece import Piece, Setup
from dualgap.papers.data import rcv1_like
from dualgap.problems.rounding import Values
from dualgap.training import solve

from ..conftest import ROOT
from ..qp import optimum
from ..solvers.data import CASES, LAYOUTS, LOSSES, close, make
from ..twins import cocoa
from ..twins.random import Random
from .simulation import Simulation


def setup(bench, **changes):
    problem = bench.problem
    given = dict(
        classes=np.array([-1, 1]), factors=np.ones(2), C=1.0, loss=problem.loss,
        fit_intercept=problem.width > problem.d,
        intercept_scaling=problem.intercept_scaling or 1.0, random_state=0,
    )  # fmt: skip
    return Setup(**{**given, **changes})


def cut(n, K):
    edges = np.linspace(0, n, K + 1).astype(int)
    return [slice(a, b) for a, b in itertools.pairwise(edges)]


def pieces_of(bench, layout, K):
    X = bench.X[:, : bench.problem.d]
    return [
        Piece(LAYOUTS[layout](X[rows]), bench.y[rows], bench.c[rows], index=k)
        for k, rows in enumerate(cut(bench.n, K))
    ]


def twin_of(bench, K, epochs, acceleration=True):
    loss = bench.problem.loss
    pieces = []
    for k, rows in enumerate(cut(bench.n, K)):
        c = bench.c[rows]
        seed = np.random.SeedSequence([0, 0, k]).generate_state(1, np.uint64)[0]
        pieces.append(
            cocoa.Piece(
                bench.X[rows], bench.y[rows], loss.upper(c), loss.diagonal(c),
                Random(int(seed)),
            )
        )  # fmt: skip
    return cocoa.CoCoA(pieces, epochs, acceleration)


def fit(simulation, loss, problems=1, **options):
    """Solutions of a simulation, one binary problem after the other."""
    rounds = Rounds(simulation, problems)
    found = []
    for k in range(problems):
        rounds.going = {k}
        problem = PiecewiseProblem(rounds, k)
        solver = CoCoA(**options.pop("solver", {}))
        found.append(solve(problem, solver, **options))
    return found


def alpha_of(simulation, k=0):
    return np.concatenate(
        [
            np.zeros(len(piece.y)) if duals is None else duals
            for piece in simulation.pieces
            for duals in [piece.duals()[k]]
        ]
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(
    ("case", "layout", "K", "acceleration"),
    [
        ("plain", "dense-f8", 1, "nesterov"),
        ("plain", "csr-f8-i4-i4", 3, "nesterov"),
        ("everything", "dense-f8", 3, "nesterov"),
        ("everything", "csr-f8-i8-i8", 4, "none"),
        ("weights", "dense-f8", 4, "nesterov"),
    ],
)
def test_rounds_agree_with_the_twin(case, layout, loss, K, acceleration):
    bench = make(case, layout, loss)
    twin = twin_of(bench, K, 2, acceleration == "nesterov")
    engine = Simulation(pieces_of(bench, layout, K), setup(bench))
    rounds = Rounds(engine, 1)
    solver = CoCoA(local_epochs=2, acceleration=acceleration)
    problem = PiecewiseProblem(rounds, 0)
    state = solver.start(problem, None, None)
    for _ in range(15):
        solver.step(state, None)
        gamma = twin.round()
        close(engine.state[0][0], twin.w, rtol=1e-9)
        close(state.dual, twin.dual([p.a for p in twin.pieces]), rtol=1e-9)
        assert rounds.records[-1][3] == pytest.approx(gamma, abs=1e-6)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("K", [1, 2, 7])
def test_certificates_bracket_the_optimum(case, loss, K):
    bench = make(case, "csr-f8-i4-i4", loss, n=60)
    record = bench.problem.loss
    best = optimum(
        bench.y[:, None] * bench.X, bench.c, record.curvature, record.slope == 1.0
    )
    engine = Simulation(pieces_of(bench, "csr-f8-i4-i4", K), setup(bench))
    (solution,) = fit(engine, record, tol=1e-6)
    certificate = solution.certificate
    assert certificate.certified
    assert certificate.dual <= best.upper * (1 + 1e-9)
    assert certificate.primal >= best.lower * (1 - 1e-9)
    # One outside pass, over the rows in one place.
    primal = bench.problem.primal(solution.w)
    assert primal == pytest.approx(certificate.primal, rel=1e-12)
    dual = bench.problem.dual(alpha_of(engine))
    assert dual == pytest.approx(certificate.dual, rel=1e-12)


@pytest.mark.parametrize("acceleration", ["nesterov", "none"])
def test_the_dual_never_falls_and_safe_steps_are_whole(acceleration):
    bench = make("everything", "dense-f8", "hinge", n=200)
    engine = Simulation(pieces_of(bench, "dense-f8", 8), setup(bench))
    rounds = Rounds(engine, 1)
    problem = PiecewiseProblem(rounds, 0)
    solver = CoCoA(local_epochs=3, acceleration=acceleration)
    state, last = solver.start(problem, None, None), 0.0
    for _ in range(60):
        solver.step(state, None)
        assert state.dual >= last * (1 - 1e-13)
        last = state.dual
    record = np.array(rounds.records, object)
    assert (record[:, 4] <= 8 * (1 + 1e-9)).all()  # Cauchy-Schwarz: at most K
    if acceleration == "none":
        assert (record[:, 3] == 1.0).all()


def test_the_same_seed_gives_the_same_bits_and_another_does_not():
    bench = make("everything", "dense-f8", "hinge", n=200)
    found = []
    for seed in (3, 3, 4):
        engine = Simulation(
            pieces_of(bench, "dense-f8", 5), setup(bench, random_state=seed)
        )
        found += fit(engine, bench.problem.loss, tol=1e-4)
    assert np.array_equal(found[0].w, found[1].w)
    assert not np.array_equal(found[0].w, found[2].w)


class Fragile(Simulation):
    """Loses a piece before some rounds: what is left is what pickling keeps."""

    def __init__(self, *args, lose, safe=None):
        super().__init__(*args)
        self.lose, self.safe, self.plays = dict(lose), safe, 0
        self.kept = {}

    def play(self, tasks):
        self.plays += 1
        if self.plays == self.safe:
            self.kept = {i: piece.duals() for i, piece in enumerate(self.pieces)}
        if self.plays in self.lose:
            i = self.lose.pop(self.plays)
            self.pieces[i] = copy.copy(self.pieces[i])
        return super().play(tasks)

    def restore(self, orders):
        for i, (piece, order) in enumerate(zip(self.pieces, orders, strict=True)):
            piece.recover(self.setup, order, self.kept.get(i))


# Before a round of passes, at the sum of w, and between the two rounds of a proof.
@pytest.mark.parametrize("when", range(1, 14))
@pytest.mark.parametrize("safe", [None, 3])
def test_a_lost_piece_costs_rounds_and_never_the_truth(when, safe):
    bench = make("everything", "dense-f8", "hinge", n=120)
    engine = Fragile(
        pieces_of(bench, "dense-f8", 4), setup(bench), lose={when: 2}, safe=safe
    )
    (solution,) = fit(engine, bench.problem.loss, tol=1e-5, check_every=2)
    assert not engine.lose
    assert engine.recoveries == (when > 1)  # nothing is lost before the first round
    assert solution.certificate.certified
    outside = bench.problem.certify(solution.w, alpha_of(engine))
    assert outside.primal == pytest.approx(solution.certificate.primal, rel=1e-12)
    assert outside.relative_gap <= 1e-5 * (1 + 1e-6)


def test_a_safe_point_is_where_a_lost_piece_begins_again():
    bench = make("plain", "dense-f8", "hinge", n=120)
    args = pieces_of(bench, "dense-f8", 4), setup(bench)
    engine = Fragile(*args, lose={9: 1}, safe=8)
    rounds = Rounds(engine, 1)
    solver = CoCoA(local_epochs=1)
    problem = PiecewiseProblem(rounds, 0)
    state = solver.start(problem, None, None)
    for _ in range(8):
        solver.step(state, None)
    before = state.dual
    solver.step(state, None)
    assert engine.recoveries == 1
    # The safe point is what was agreed on a round before the loss.
    found = bench.problem.certify(engine.state[0][0], alpha_of(engine))
    assert found.dual >= 0.9 * before


def test_a_piece_that_is_lost_again_and_again_is_an_error():
    bench = make("plain", "dense-f8", "hinge")
    lose = {play: 1 for play in range(4, 60)}
    engine = Fragile(pieces_of(bench, "dense-f8", 3), setup(bench), lose=lose)
    with pytest.raises(RuntimeError, match=r"pieces \[1\] of the data were lost"):
        fit(engine, bench.problem.loss, tol=1e-9)


def test_a_round_that_is_asked_for_twice_is_done_once():
    bench = make("plain", "dense-f8", "hinge")
    engine = Simulation(pieces_of(bench, "dense-f8", 2), setup(bench))
    engine.rounds = 1
    order = engine.order(0, {0: Task("advance", 2.0)})
    piece = engine.pieces[0]
    first = piece.take_part(engine.setup, order, engine.state)
    trial = piece.binaries[0].trial.copy()
    again = piece.take_part(engine.setup, order, engine.state)
    assert again is first
    assert np.array_equal(piece.binaries[0].trial, trial)


def test_pieces_without_rows_or_weight_take_part():
    bench = make("plain", "dense-f8", "hinge")
    n = bench.n
    pieces = [
        Piece(bench.X, bench.y, bench.c, index=0),
        Piece(bench.X[:5], bench.y[:5], np.zeros(5), index=1),
        Piece(bench.X[:0], bench.y[:0], index=2),
    ]
    engine = Simulation(pieces, setup(bench))
    (solution,) = fit(engine, bench.problem.loss, tol=1e-5)
    assert solution.certificate.certified
    outside = bench.problem.certify(solution.w, alpha_of(engine)[:n])
    assert outside.relative_gap <= 1e-5 * (1 + 1e-6)


def test_a_schedule_of_passes_is_kept():
    bench = make("plain", "dense-f8", "hinge", n=200)
    engine = Simulation(pieces_of(bench, "dense-f8", 4), setup(bench))
    rounds = Rounds(engine, 1)
    problem = PiecewiseProblem(rounds, 0)
    solver = CoCoA(local_epochs=[3, 1, 2])
    state = solver.start(problem, None, None)
    for _ in range(5):
        solver.step(state, None)
    assert [record[2] for record in rounds.records] == [3, 1, 2, 2, 2]


@pytest.mark.parametrize("passes", [0, 1.5, [], [1, 0], "often", None, [[1], [2, 3]]])
def test_a_wrong_number_of_passes_is_refused(passes):
    with pytest.raises(ValueError, match="local_epochs="):
        CoCoA(local_epochs=passes)


def test_updates_are_sent_in_the_shorter_form():
    w = np.zeros(100)
    w[[3, 70]] = 1.5, -2.0
    assert pack(w).nbytes == 24
    assert pack(np.ones(100)).nbytes == 800
    assert pack(np.ones(100)).indices is ...


def test_callbacks_get_the_model_of_all_pieces():
    bench, models = make("plain", "dense-f8", "hinge"), []
    engine = Simulation(pieces_of(bench, "dense-f8", 2), setup(bench))

    def look(info):
        models.append(info.model().copy())

    (solution,) = fit(engine, bench.problem.loss, tol=1e-3, on_epoch=look)
    assert np.array_equal(models[-1], solution.w)
    assert not np.array_equal(models[0], solution.w)


@pytest.mark.parametrize("filled", [[2, 3], [2, 90], [1, 1, 1, 1], [100, 2], [0, 0]])
def test_updates_add_up_in_any_form(filled):
    rng = np.random.default_rng(0)
    wholes = []
    for count in filled:
        w = np.zeros(100)
        w[rng.choice(100, count, replace=False)] = rng.normal(size=count)
        wholes.append(w)
    total = add_updates([pack(w) for w in wholes])
    assert np.allclose(total.whole(), sum(wholes), rtol=0, atol=1e-15)
    other = rng.normal(size=100)
    assert total.dot(other) == pytest.approx(sum(wholes) @ other, rel=1e-12, abs=1e-12)


def test_replies_merge_part_by_part():
    values = Values(*np.arange(11.0))
    left = Reply(
        {0: PartialSums(values=values, epochs=2), 1: PartialSums(slope=3.0)}, [4], 0.5
    )
    w = np.ones(3)
    right = Reply(
        {0: PartialSums(values=values, epochs=1, update=Update(3, w))}, [], 0.7
    )
    both = Reply.merge([left, right])
    # Sums, and of the last three numbers the largest.
    assert both.parts[0].values == (0, 2, 4, 6, 8, 10, 12, 14, 8, 9, 10)
    assert (both.parts[0].epochs, both.parts[0].pieces) == (2, 2)
    assert both.parts[1].slope == 3.0
    assert (both.lost, both.seconds, both.nbytes) == ([4], 0.7, 24)


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        ([1, 1], None, "one label per row"),
        ([[1], [1], [1]], None, "one label per row"),
        ([1, 1, -1], [1, 1], "sample_weight has shape"),
        ([1, 1, -1], [1, 1, np.nan], r"piece 7: sample_weight\[2\]=nan: give finite"),
        ([1, 1, -1], [1, 1, -2], r"piece 7: sample_weight\[2\]=-2.0: .* positive"),
    ],
)
def test_a_piece_that_makes_no_sense_is_refused(y, weight, message):
    with pytest.raises(ValueError, match=message):
        Piece(np.eye(3), y, weight, index=7)


TOL = 1e-3


@pytest.fixture(scope="module")
def script():
    path = ROOT / "benchmarks" / "scale" / "three_ways.py"
    before = list(sys.path)
    spec = importlib.util.spec_from_file_location("three_ways", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.path[:] = before
    return module


@pytest.fixture
def rows_of(script, request):
    """Some rows of a data set by name."""

    def rows(name):
        if name == "rcv1-like":
            return rcv1_like(3000, 800)
        load = request.getfixturevalue("load_xz")
        path = {
            "a9a": "adult/a9a",
            "covtype": "covtype/covtype.binary.scale.subset92962",
        }
        X, y = load(path[name])
        some = np.random.default_rng(0).permutation(len(y))[:4000]
        return X[some], np.where(y[some] == y.max(), 1.0, -1.0)

    return rows


@pytest.mark.long
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["sparse", "dense"])
@pytest.mark.parametrize("name", ["rcv1-like", "a9a", "covtype"])
def test_three_fits_agree(client, tmp_path, script, rows_of, name, kind, weighted):
    X, y = rows_of(name)
    X = X.toarray().astype(np.float32) if kind == "dense" else X
    weight = script.drawn_weights(len(y)) if weighted else None
    classes = script.CLASS_WEIGHT if weighted else None
    found = script.compare(X, y, weight, 0.1, client, tmp_path, TOL, classes)
    assert [one.way for one in found] == ["memory", "streamed", "distributed"]
    for one in found:
        assert one.certified
        assert one.said == pytest.approx((one.primal, one.dual), rel=1e-10)
        assert one.gap <= TOL * (1 + 1e-9)
    # Every model's bounds hold for all others: they are of the same problem.
    assert max(one.dual for one in found) <= min(one.primal for one in found)
    assert script.spread(found) <= TOL

"""Types of the compiled core. The variants (``_core_v2`` and so on) have them too."""

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Real = NDArray[np.float32] | NDArray[np.float64]
Index = NDArray[np.int32] | NDArray[np.int64]
Block = Callable[..., NDArray[np.generic]]

class Rows:
    n: Final[int]
    width: Final[int]
    stored: Final[int]
    dense: Final[bool]
    bytes: Final[int]
    arrays: Final[list[NDArray[np.generic]]]
    def with_constant(self, constant: float) -> Rows: ...
    def inspect(self, q: Vector) -> tuple[str | None, int, bool]: ...

def csr_rows(
    values: Real, indices: Index, indptr: Index, d: int, constant: float
) -> Rows: ...
def dense_rows(values: Real, constant: float) -> Rows: ...

class Loss:
    def __init__(self, slope: float, curvature: float) -> None: ...
    def value(self, u: float) -> float: ...
    def derivative(self, u: float) -> float: ...

class Team:
    def __init__(self, threads: int) -> None: ...
    size: Final[int]

class Random:
    def __init__(self, seed: int) -> None: ...
    def shuffle(self, order: NDArray[np.uint32]) -> None: ...
    def draw(self, order: NDArray[np.uint32], n: int) -> None: ...
    def below(self, n: int) -> int: ...
    state: list[int]

class Stop:
    def __init__(self) -> None: ...
    def request(self) -> None: ...
    def set_deadline(self, seconds_from_now: float) -> None: ...
    requested: Final[bool]
    expired: Final[bool]

def squared_norm(w: Vector) -> float: ...

class Examples:
    def __init__(
        self,
        rows: Rows,
        y: NDArray[np.int8],
        cost: Vector,
        q: Vector,
        loss: Loss,
    ) -> None: ...

class RegressionExamples:
    def __init__(
        self,
        rows: Rows,
        target: Vector,
        cost: Vector,
        q: Vector,
        loss: Loss,
        epsilon: float,
    ) -> None: ...

class Values:
    loss: Final[float]
    sum: Final[float]
    diagonal: Final[float]
    loss_error: Final[float]
    along: Final[float]
    along_error: Final[float]
    reach: Final[float]
    used: Final[float]
    roundings: Final[float]
    length: Final[float]
    last: Final[float]

def signed_sum(y: NDArray[np.int8], alpha: Vector) -> float: ...
def dual_value(
    b: Vector,
    cost: Vector,
    loss: Loss,
    scale: float,
    norm: float,
) -> float: ...
def total_loss(margins: Vector, cost: Vector, loss: Loss) -> float: ...
def in_box(alpha: Vector, cost: Vector, loss: Loss) -> bool: ...
def best_scale(
    alpha: Vector, cost: Vector, loss: Loss, sum: float, curvature: float
) -> float: ...
def scale_into_box(alpha: Vector, cost: Vector, loss: Loss, scale: float) -> None: ...

class Scaled:
    scale: Final[float]
    loss: Final[float]
    loss_error: Final[float]

def best_multiple(
    examples: Examples,
    margins: Vector,
    norm: float,
    length: float,
    last: float,
    roundings: float,
) -> Scaled: ...
def image_lengths(rows: Rows, root: NDArray[np.float64], out: Vector) -> None: ...
def combine(
    rows: Rows,
    y: NDArray[np.int8],
    alpha: Vector,
    v: Vector,
    threads: Team | int = ...,
) -> None: ...
def evaluate(
    examples: Examples,
    w: Vector,
    dual: str,
    alpha: Vector | None,
    v: Vector | None,
    margins: Vector | None = ...,
    threads: Team | int = ...,
    wake: NDArray[np.uint8] | None = ...,
) -> Values: ...
def evaluate_residuals(
    examples: RegressionExamples,
    w: Vector,
    dual: str,
    alpha: Vector | None,
    v: Vector | None,
    residuals: Vector | None,
    threads: Team | int = ...,
) -> Values: ...

class RowSource:
    n: Final[int]
    fixed: Final[bool]

class PythonRows(RowSource):
    def __init__(self, n: int, block: Block) -> None: ...

class KernelMap:
    def __init__(self, name: str, gamma: float, coef0: float, degree: int) -> None: ...

class KernelRows(RowSource):
    def __init__(
        self,
        rows: Rows,
        kernel: KernelMap,
        named: NDArray[np.uint32] | None,
        dense: bool,
        threads: int,
    ) -> None: ...
    dense: Final[bool]
    largest_half_self: Final[float]
    by_products: Final[bool]
    centre: Final[Vector | None]
    precise: bool
    shifted: bool
    def rows(
        self, who: NDArray[np.uint32], out: NDArray[np.float32], stop: Stop
    ) -> bool: ...
    def cross(
        self,
        who: NDArray[np.uint32],
        columns: NDArray[np.uint32],
        out: NDArray[np.float32],
        stop: Stop,
    ) -> bool: ...
    def add_rows(
        self,
        who: NDArray[np.uint32],
        coef: Vector,
        at: NDArray[np.uint32] | None,
        out: Vector,
        stop: Stop,
    ) -> bool: ...
    bounded: Final[bool]
    def times(
        self,
        who: NDArray[np.uint32],
        coef: Vector,
        at: NDArray[np.uint32] | None,
        out: Vector,
        errors: Vector | None,
        stop: Stop,
    ) -> bool: ...
    def errors(self, fixed: bool, out: Vector) -> None: ...

class BlockProblem:
    def __init__(
        self,
        y: Vector,
        cost: Vector,
        diagonal: Vector,
        squared: bool,
        linear: Vector,
        epsilon: float,
        total: float,
        two_sided: bool,
    ) -> None: ...

class BlockSolver:
    def __init__(
        self,
        rows: RowSource,
        problem: BlockProblem,
        q: int,
        largest_q: int,
        cache_bytes: int,
        fixed: bool,
        random: Random,
    ) -> None: ...
    n: Final[int]
    q: Final[int]
    steps: Final[int]
    computed: Final[int]
    seconds: Final[dict[str, float]]
    capacity: Final[int]
    held: Final[int]
    violation: Final[float]
    moved: Final[float]
    drift: Final[float]
    threshold: Final[float]
    primal: Final[float]
    dual: Final[float]
    def set_alpha(self, alpha: Vector) -> None: ...
    def set_gradient(self, F: Vector) -> None: ...
    def forget_rows(self) -> None: ...
    def alpha(self, out: Vector) -> None: ...
    def gradient(self, out: Vector) -> None: ...
    def step(self, inner_tolerance: float, stop: Stop) -> int: ...

def pair_steps(
    H: NDArray[np.float32],
    c: Vector,
    box: Sequence[Vector],
    v: NDArray[np.float32],
    unit: float,
    tol: float,
    most: int,
    stop: Stop,
) -> int: ...
def coordinate_steps(
    H: NDArray[np.float32],
    y: Vector,
    delta: Vector,
    c: Vector,
    v: NDArray[np.float32],
    tol: float,
    most: int,
    stop: Stop,
) -> int: ...

class WholeSettings:
    def __init__(
        self,
        tol: float,
        atol: float,
        goal: float,
        free: float,
        limit: float,
        epochs: int,
    ) -> None: ...

class PairTables:
    def __init__(self, coef: Vector, scores: Vector) -> None: ...

class PairProofs:
    bounds: Final[Vector]
    biases: Final[Vector]
    epochs: Final[Vector]
    ends: Final[list[int]]

def solve_pairs(
    rows: KernelRows,
    bounds: Sequence[int],
    cost: Vector,
    roundings: ScoreRoundings,
    settings: WholeSettings,
    tables: PairTables,
    stop: Stop,
) -> PairProofs: ...
def solve_one_class(
    rows: KernelRows,
    upper: Vector,
    floor: float,
    settings: WholeSettings,
    alpha: Vector,
    stop: Stop,
) -> Vector: ...

class ProductSettings:
    def __init__(self, dense: bool, precise: bool, threads: int) -> None: ...

def kernel_times(
    kernel: KernelMap,
    rows: Rows,
    coef: Vector,
    ends: NDArray[np.int64],
    targets: Rows,
    out: Vector,
    settings: ProductSettings,
    stop: Stop,
) -> bool: ...

class PackedVectors:
    def __init__(
        self,
        kernel: KernelMap,
        rows: Rows,
        coef: Vector,
        ends: NDArray[np.int64],
        precise: bool,
    ) -> None: ...
    def times(self, targets: Rows, out: Vector) -> None: ...

def class_weights(
    rows: Rows, coef: Vector, ends: NDArray[np.int64], out: Vector
) -> None: ...

class FoldProof:
    bias: Final[float]
    values: Final[KernelValues]

class FoldTable:
    def __init__(self, values: Vector, floats: NDArray[np.float32]) -> None: ...

class Folds:
    def __init__(
        self,
        table: FoldTable,
        runs: Sequence[tuple[int, int]],
        y: NDArray[np.int8],
        weights: Vector,
        threads: int,
        targets: Vector | None = None,
        epsilon: float = 0.0,
    ) -> None: ...
    def advance(
        self, C: float, tol: float, atol: float, most: int, stop: Stop
    ) -> bool: ...
    def counts(self, fold: int) -> tuple[int, int]: ...
    def points(self, alpha: Vector, scores: Vector) -> None: ...
    def proofs(self, roundings: ScoreRoundings) -> list[FoldProof]: ...

class MulticlassExamples:
    def __init__(
        self,
        rows: Rows,
        y: NDArray[np.int32],
        cost: Vector,
        q: Vector,
        classes: int,
    ) -> None: ...

class MulticlassState:
    def __init__(
        self,
        alpha: Vector,
        w: Vector,
        wake: NDArray[np.uint8],
        length: NDArray[np.uint8],
    ) -> None: ...

class MulticlassPass:
    visited: Final[int]
    updates: Final[int]
    gap: Final[float]
    linear: Final[float]

def crammer_singer_epoch(
    examples: MulticlassExamples,
    state: MulticlassState,
    order: NDArray[np.uint32],
    random: Random,
    stop: Stop,
) -> MulticlassPass: ...
def multiclass_feasible(examples: MulticlassExamples, alpha: Vector) -> int: ...
def multiclass_combine(
    rows: Rows,
    alpha: Vector,
    classes: int,
    w: Vector,
    threads: Team | int = ...,
) -> None: ...
def multiclass_values(
    examples: MulticlassExamples,
    w: Vector,
    alpha: Vector | None,
    threads: Team | int = ...,
) -> Values: ...
def outputs(
    rows: Rows,
    y: NDArray[np.int8],
    w: Vector,
    out: Vector,
    threads: Team | int,
    stop: Stop,
) -> int: ...
def change_plane(
    examples: Examples,
    from_: NDArray[np.uint8],
    to: NDArray[np.uint8],
    a: Vector,
    b: float,
    threads: Team | int,
    stop: Stop,
) -> tuple[int, float]: ...
def solve_master(
    gram: Vector,
    b: Vector,
    beta: Vector,
    tol: float,
    stop: Stop,
) -> float: ...
def line_search(
    cost: Vector,
    from_: Vector,
    to: Vector,
    slope: float,
    curvature: float,
) -> float: ...
def move_outputs(
    cost: Vector,
    from_: Vector,
    to: Vector,
    t: float,
    cut: float,
    set: NDArray[np.uint8],
) -> float: ...
def add_rows(set: NDArray[np.uint8], beta: float, share: Vector) -> None: ...

class DualState:
    def __init__(self, alpha: Vector, w: Vector) -> None: ...

class DualPass:
    visited: Final[int]
    updates: Final[int]
    gap: Final[float]

class ShrunkPass(DualPass):
    active: Final[int]
    max_gradient: Final[float]
    min_gradient: Final[float]

class SleepingPass(DualPass):
    linear: Final[float]
    threshold: Final[float]
    norm: Final[float]
    saved: Final[float]

class Leap:
    whole: Final[bool]
    taken: Final[bool]
    clipped: Final[int]
    moved: Final[int]
    linear: Final[float]

class Average:
    def __init__(self, sum: Vector, since: Vector, step: float) -> None: ...

class Sleep:
    def __init__(
        self,
        wake: NDArray[np.uint8],
        length: NDArray[np.uint8],
        threshold: float,
        longest: int,
    ) -> None: ...

class SweepSettings:
    def __init__(
        self,
        omega: float = ...,
        chunk: int = ...,
        scale: bool = ...,
        modified_sgd: bool = ...,
    ) -> None: ...

class Directions:
    def __init__(
        self,
        base: DualState,
        points: Sequence[Vector],
        images: Sequence[Vector],
        norms: Sequence[float],
        next: int,
    ) -> None: ...
    norms: Final[tuple[float, float]]
    next: Final[int]

def sdca_epoch(
    examples: Examples,
    order: NDArray[np.uint32],
    state: DualState,
    average: Average | None,
    stop: Stop,
) -> DualPass: ...
def modified_sgd_epoch(
    examples: Examples,
    order: NDArray[np.uint32],
    state: DualState,
    before: int,
    n: int,
    stop: Stop,
) -> DualPass: ...
def dcd_epoch(
    examples: Examples,
    order: NDArray[np.uint32],
    active: int,
    state: DualState,
    upper: float,
    lower: float,
    stop: Stop,
) -> ShrunkPass: ...
def sleeping_epoch(
    examples: Examples,
    state: DualState,
    sleep: Sleep,
    settings: SweepSettings,
    order: NDArray[np.uint32],
    random: Random,
    stop: Stop,
) -> SleepingPass: ...
def momentum(
    examples: Examples,
    state: DualState,
    end: DualState,
    beta: float,
    wake: NDArray[np.uint8],
    order: NDArray[np.uint32],
    stop: Stop,
) -> Leap: ...
def conjugate_step(
    examples: Examples,
    state: DualState,
    dual: float,
    directions: Directions,
    wake: NDArray[np.uint8],
    order: NDArray[np.uint32],
    stop: Stop,
) -> Leap: ...

class CountingState:
    def __init__(
        self, a: Vector, errors: NDArray[np.int64], t: float, norm: float
    ) -> None: ...
    t: Final[float]
    norm: Final[float]

class CountingPass:
    visited: Final[int]
    updates: Final[int]
    weighted: Final[float]
    loss: Final[float]

def counting_sgd_epoch(
    examples: Examples,
    lambda_: float,
    multiplicity: int,
    order: NDArray[np.uint32],
    state: CountingState,
    stop: Stop,
) -> CountingPass: ...

class Schedule(enum.Enum):
    pegasos = 0
    norma = 1
    svmsgd = 2

class BiasRule(enum.Enum):
    fixed = 0
    step = 1
    batch = 2

class GradientSettings:
    def __init__(
        self,
        lambda_: float,
        schedule: Schedule,
        eta0: float,
        batch: int = ...,
        project: bool = ...,
        rule: BiasRule = ...,
    ) -> None: ...

class SumOfSteps:
    def __init__(self, r: Vector, r_beta: Vector, sigma: float) -> None: ...
    sigma: Final[float]

class GradientState:
    def __init__(
        self,
        v: Vector,
        beta: Vector,
        scale: float = ...,
        norm: float = ...,
        t: float = ...,
        sum: SumOfSteps | None = ...,
        bias: Vector | None = ...,
    ) -> None: ...
    scale: Final[float]
    norm: Final[float]
    t: Final[float]

class GradientPass:
    visited: Final[int]
    updates: Final[int]
    loss: Final[float]

def stochastic_gradient_epoch(
    examples: Examples,
    settings: GradientSettings,
    order: NDArray[np.uint32],
    state: GradientState,
    stop: Stop,
) -> GradientPass: ...
def regression_epoch(
    examples: RegressionExamples,
    state: DualState,
    sleep: Sleep,
    chunk: int,
    order: NDArray[np.uint32],
    random: Random,
    stop: Stop,
) -> SleepingPass: ...

class RegressionTargets:
    def __init__(
        self,
        tol: float,
        atol: float,
        goal: float,
        free: float,
        most: float,
        epochs: int,
    ) -> None: ...

class RegressionProof:
    values: Final[Values]
    norm: Final[float]
    epochs: Final[Vector]

def solve_regression(
    examples: RegressionExamples,
    state: DualState,
    targets: RegressionTargets,
    random: Random,
    threads: Team | int,
    stop: Stop,
) -> RegressionProof: ...
def pair_epoch(
    rows: Rows,
    upper: Vector,
    q: Vector,
    rise: NDArray[np.uint32],
    fall: NDArray[np.uint32],
    state: DualState,
    room: Vector,
    stop: Stop,
) -> DualPass: ...

class SgdQnSettings:
    def __init__(
        self, lambda_: float, corrected: bool, skip: int, t0: float, gain: float
    ) -> None: ...

class SgdQnState:
    def __init__(
        self,
        w: Vector,
        B: Vector,
        past: Vector,
        slope: Vector,
        t: float,
        r: float,
        count: int,
        refresh: bool,
    ) -> None: ...
    t: Final[float]
    r: Final[float]
    count: Final[int]
    refresh: Final[bool]

class SgdQnPass:
    visited: Final[int]
    updates: Final[int]
    loss: Final[float]
    gap: Final[float]

def sgd_qn_epoch(
    examples: Examples,
    settings: SgdQnSettings,
    order: NDArray[np.uint32],
    state: SgdQnState,
    stop: Stop,
) -> SgdQnPass: ...

class UnlearningPass:
    visited: Final[int]
    updates: Final[int]
    unlearned: Final[int]
    gap: Final[float]

def unlearning_epoch(
    examples: Examples,
    s: float,
    order: NDArray[np.uint32],
    a: Vector,
    count: Vector,
    stop: Stop,
) -> UnlearningPass: ...

class SomeRows:
    def __init__(
        self,
        rows: list[Rows]
        | Callable[[], Iterable[tuple[Rows, NDArray[np.uint32] | None]]],
        y: NDArray[np.int8],
        cost: Vector,
        fixed: Vector,
        constant: float,
    ) -> None: ...

class NewtonState:
    def __init__(
        self,
        w: Vector,
        residual: Vector,
        gradient: Vector,
        step: Vector,
        image: Vector,
    ) -> None: ...

def newton_point(
    examples: RegressionExamples, state: NewtonState, threads: Team
) -> tuple[float, float, int]: ...
def newton_step(
    examples: RegressionExamples,
    state: NewtonState,
    accuracy: float,
    most: int,
    algebra: tuple[Callable[..., object], ...],
    threads: Team | int,
    stop: Stop,
) -> tuple[float, int]: ...

class NewtonRules:
    def __init__(
        self,
        share: float,
        slack: float,
        divisor: float,
        rounding: float,
        most_idle: int,
        least_radius: float,
    ) -> None: ...

class NewtonRun:
    outcome: Final[int]
    steps: Final[int]
    sharpened: Final[int]
    inside: Final[int]
    stuck: Final[bool]
    far: Final[bool]

class SmoothingNewton:
    def __init__(
        self,
        examples: SomeRows,
        loss: Loss,
        free_bias: bool,
        threads: Team | int,
        algebra: tuple[Callable[..., object], ...],
    ) -> None: ...
    def start(self, w: Vector, tau: float, stop: Stop) -> bool: ...
    def smooth(self, tau: float, stop: Stop) -> bool: ...
    def iterate(self, limit: float, stop: Stop) -> int: ...
    def run(
        self,
        goal: float,
        whole: bool,
        radius: float,
        most: int,
        rules: NewtonRules,
        stop: Stop,
    ) -> NewtonRun: ...
    w: Final[Vector]
    alpha: Final[Vector]
    margins: Final[Vector]
    tau: Final[float]
    primal: Final[float]
    dual: Final[float]
    smoothing: Final[float]
    moved: Final[float]
    decrement: Final[float]
    inside: Final[int]

class LabellingSettings:
    def __init__(
        self,
        tau: float,
        tol: float,
        atol: float,
        goal: float,
        free: float,
        most: int,
        epoch: int,
        rules: NewtonRules,
    ) -> None: ...

class Labellings:
    def __init__(
        self, y: NDArray[np.int8], cost: Vector, w: Vector, alpha: Vector
    ) -> None: ...

class LabellingProofs:
    sums: Final[Vector]
    epochs: Final[Vector]
    ends: Final[list[int]]

def solve_labellings(
    rows: Rows,
    q: Vector,
    labellings: Labellings,
    loss: Loss,
    settings: LabellingSettings,
    algebra: tuple[Callable[..., object], ...],
    threads: Team | int,
    stop: Stop,
) -> LabellingProofs: ...
def group_duplicates(
    rows: Rows, y: NDArray[np.int8], group: NDArray[np.uint32]
) -> int: ...
def has_windows(rows: Rows) -> bool: ...
def snapped(
    alpha: Vector, cost: Vector, loss: Loss, share: float, most: float
) -> Vector: ...
def chosen_rows(rows: Rows, chosen: NDArray[np.uint32], feature: float) -> Rows: ...

class Interior:
    def __init__(
        self,
        examples: SomeRows,
        loss: Loss,
        scale: float,
        free_bias: bool,
        threads: Team | int,
        algebra: tuple[Callable[..., object], ...],
        offset: Vector | None = None,
    ) -> None: ...
    def start(self, w: Vector, mu: float, stop: Stop) -> bool: ...
    def iterate(self, stop: Stop) -> int: ...
    def run(self, goal: float, most: int, stop: Stop) -> tuple[int, int, int]: ...
    def refresh(self, stop: Stop) -> bool: ...
    w: Final[Vector]
    alpha: Final[Vector]
    mu: Final[float]
    primal: Final[float]
    dual: Final[float]
    length: Final[float]
    correctors: Final[int]
    single: Final[bool]

class ParsedSvmlight:
    labels: Final[Vector]
    values: Final[Real]
    indices: Final[Index]
    indptr: Final[Index]
    qid: Final[NDArray[np.int64]]
    n_features: Final[int]

def parse_svmlight(
    buffer: NDArray[np.uint8],
    n_threads: int,
    zero_based: bool | None,
    query_id: bool,
    single_precision: bool,
    wide_index: bool,
) -> ParsedSvmlight: ...
def crc32c(data: NDArray[np.uint8], before: int = ...) -> int: ...
def fingerprint(data: NDArray[np.uint8]) -> int: ...
def crc32c_segments(data: NDArray[np.uint8], segment: int) -> NDArray[np.uint32]: ...

class GramStatistics:
    hits: Final[int]
    misses: Final[int]
    evaluations: Final[int]
    copied: Final[int]

class KernelFunction:
    def __init__(
        self, shape: str, overlap: bool, gamma: float, coef0: float, degree: int
    ) -> None: ...

class KernelScalars:
    def __init__(
        self,
        own: float,
        bias: float,
        factor: float,
        shift: float,
        adding: float,
        underflow: float,
    ) -> None: ...

class KernelSums:
    alpha: Final[float]
    reach: Final[float]
    bent: Final[float]
    loss: Final[float]
    loss_error: Final[float]
    norm: Final[float]
    norm_error: Final[float]
    size: Final[float]

class FreeBias:
    def __init__(
        self, off: float, adding: float, zero: float, longest: float
    ) -> None: ...

class ScoreRoundings:
    def __init__(
        self,
        lengths: Vector,
        each: float,
        more: float,
        adding: float,
        underflow: float,
    ) -> None: ...

class Simplex:
    def __init__(
        self,
        gram: Gram,
        columns: NDArray[np.uint32] | None,
        y: Vector,
        delta: Vector,
        diagonal: Vector,
        constant: float = ...,
        linear: Vector | None = ...,
    ) -> None: ...

class SimplexState:
    def __init__(
        self,
        a: Vector,
        g: Vector,
        active: NDArray[np.uint32],
        size: int,
    ) -> None: ...
    size: Final[int]

class WalkSettings:
    def __init__(self, method: str, clipped: bool, steps: int) -> None: ...

class Sample:
    def __init__(
        self,
        count: int,
        order: NDArray[np.uint32],
        split: int = ...,
        vertex: int = ...,
        eps: float = ...,
    ) -> None: ...

class SimplexWalk:
    steps: Final[int]
    p: Final[float]
    loss: Final[float]
    swaps: Final[int]
    drops: Final[int]
    aways: Final[int]
    gap: Final[float]

class PegasosWalk:
    visited: Final[int]
    steps: Final[int]
    updates: Final[int]

class Gram:
    n: Final[int]
    capacity: Final[int]
    held: Final[int]
    def holds(self, i: int) -> bool: ...
    statistics: Final[GramStatistics]
    def row(self, i: int, out: NDArray[np.float32]) -> None: ...
    def block(
        self,
        rows: NDArray[np.uint32],
        columns: NDArray[np.uint32],
        out: Vector,
    ) -> None: ...

class PythonGram(Gram):
    def add_times(
        self,
        rows: NDArray[np.uint32],
        c: Vector,
        columns: NDArray[np.uint32] | None,
        out: Vector,
        stop: Stop,
    ) -> bool: ...

class Classes:
    def gram(self, a: int, b: int, capacity: int) -> Gram: ...

def rows_of_classes(
    rows: Rows,
    function: KernelFunction,
    bounds: Sequence[int],
    capacities: Sequence[int],
) -> Classes: ...
def rows_gram(rows: Rows, function: KernelFunction, capacity: int) -> Gram: ...
def python_gram(n: int, capacity: int, rows: Block, block: Block) -> PythonGram: ...

class KernelValues:
    primal: Final[float]
    primal_error: Final[float]
    dual: Final[float]
    dual_error: Final[float]

def kernel_values(
    sums: KernelSums, lost: float, free: FreeBias | None, s: float = ...
) -> KernelValues: ...
def kernel_sums(
    y: NDArray[np.int8],
    cost: Vector,
    loss: Loss,
    alpha: Vector,
    scores: Vector,
    error: Vector,
    scalars: KernelScalars,
) -> KernelSums: ...
def hinge_bias(scores: Vector, y: NDArray[np.int8], cost: Vector) -> float: ...
def weighted_quantile(points: Vector, weight: Vector, target: float) -> float: ...
def frank_wolfe(
    problem: Simplex, state: SimplexState, settings: WalkSettings, stop: Stop
) -> SimplexWalk: ...
def frank_wolfe_sampled(
    problem: Simplex,
    state: SimplexState,
    settings: WalkSettings,
    sample: Sample,
    random: Random,
    stop: Stop,
) -> SimplexWalk: ...
def add_gradient(
    problem: Simplex,
    rows: NDArray[np.uint32],
    change: Vector,
    g: Vector,
    stop: Stop,
) -> int: ...

class PegasosSettings:
    def __init__(
        self, loss: Loss, lambda_: float, budget: int, batch: int, t: float
    ) -> None: ...

def kernel_pegasos(
    problem: Simplex,
    state: SimplexState,
    omega: Vector,
    settings: PegasosSettings,
    order: NDArray[np.uint32],
    most: Vector,
    sum: SumOfSteps | None,
    stop: Stop,
) -> PegasosWalk: ...
def solve_small(
    H: NDArray[np.float32],
    a: Vector,
    g: Vector,
    tol: float,
    steps: int,
    stop: Stop,
) -> int: ...

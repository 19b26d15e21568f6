from collections.abc import Sequence
import enum
from typing import Annotated, overload

import numpy
from numpy.typing import NDArray


class Rows:
    """Rows of a matrix, dense or CSR, not copied."""

    @property
    def n(self) -> int: ...

    @property
    def width(self) -> int:
        """columns, and the constant feature"""

    @property
    def stored(self) -> int:
        """stored entries"""

    @property
    def dense(self) -> bool:
        """whether all entries are stored, in order"""

    @property
    def bytes(self) -> int:
        """size of the stored entries"""

    @property
    def arrays(self) -> list[NDArray[numpy.generic]]:
        """values, and of CSR rows indices and pointers"""

    def with_constant(self, constant: float) -> Rows:
        """The same rows with another constant feature; 0 for none."""

    def inspect(self, q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> tuple[str | None, int, bool]:
        """
        Check every pointer, index and value and fill q with ||x_i||^2. Returns (fault or None, row of the fault, whether no row names a column twice).
        """

@overload
def csr_rows(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int, constant: float) -> Rows: ...

@overload
def csr_rows(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int, constant: float) -> Rows: ...

@overload
def csr_rows(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int, constant: float) -> Rows: ...

@overload
def csr_rows(values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int, constant: float) -> Rows: ...

@overload
def csr_rows(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int, constant: float) -> Rows: ...

@overload
def csr_rows(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int, constant: float) -> Rows: ...

@overload
def csr_rows(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int, constant: float) -> Rows: ...

@overload
def csr_rows(values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], d: int, constant: float) -> Rows: ...

@overload
def dense_rows(values: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], constant: float) -> Rows: ...

@overload
def dense_rows(values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], constant: float) -> Rows: ...

class Loss:
    """max over 0 <= b <= slope of b u - curvature b^2/2."""

    def __init__(self, slope: float, curvature: float) -> None: ...

    def value(self, u: float) -> float: ...

    def derivative(self, u: float) -> float: ...

class ResidualLoss:
    """
    A loss of |r| - epsilon, times `above` where r > 0 and `below` elsewhere.
    """

    def __init__(self, form: Loss, epsilon: float, above: float, below: float) -> None: ...

class Team:
    """Threads that wait for loops to share; 1 has none."""

    def __init__(self, threads: int) -> None: ...

    @property
    def size(self) -> int: ...

class Random:
    """xoshiro256++; the same seed, the same orders."""

    def __init__(self, seed: int) -> None: ...

    def shuffle(self, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def draw(self, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], n: int) -> None: ...

    def below(self, n: int) -> int: ...

    @property
    def state(self) -> list[int]:
        """Its four words: with them another one goes on as this one."""

    @state.setter
    def state(self, arg: Sequence[int], /) -> None: ...

class Targets:
    """
    Accuracies to reach: the relative gap `goal` while less than `free` work is done, and `tol` after it, or the gap `atol`.
    """

    def __init__(self, tol: float, atol: float, goal: float, free: float) -> None: ...

def next_factor(estimated: float, proved: float, most: float) -> float:
    """
    How many times the target gap a gap may be estimated for the next proof, given an estimate and what was proved there.
    """

def gap_at_the_end(gap: float, before: float, lag: float, least: float, after_sgd: bool) -> float:
    """
    The gap at the end of a sweep, given its sum over the visits and the sum of the sweep before.
    """

class Stop:
    """Tells running passes to leave, from any thread."""

    def __init__(self) -> None: ...

    def request(self) -> None: ...

    def set_deadline(self, seconds_from_now: float) -> None: ...

    @property
    def requested(self) -> bool: ...

    @property
    def expired(self) -> bool: ...

def squared_norm(w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float: ...

class Examples:
    """
    Rows with their labels -1 or 1, costs c_i, q_i = ||x_i||^2, and the loss.
    """

    def __init__(self, rows: Rows, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: Loss) -> None: ...

class LogisticExamples:
    """Examples of the logistic loss."""

    def __init__(self, rows: Rows, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class RegressionExamples:
    """Rows with their targets p_i instead of labels."""

    def __init__(self, rows: Rows, target: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: ResidualLoss) -> None: ...

class Values:
    """
    Sums over the rows, and what bounds their rounding: dualgap.problems.rounding.Values says what each is.
    """

    @property
    def loss(self) -> float: ...

    @property
    def sum(self) -> float: ...

    @property
    def diagonal(self) -> float: ...

    @property
    def loss_error(self) -> float: ...

    @property
    def along(self) -> float: ...

    @property
    def along_error(self) -> float: ...

    @property
    def reach(self) -> float: ...

    @property
    def used(self) -> float: ...

    @property
    def roundings(self) -> float: ...

    @property
    def length(self) -> float: ...

    @property
    def last(self) -> float: ...

def signed_sum(y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
    """sum_i y_i alpha_i, compensated."""

def dual_value(b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: Loss, scale: float, norm: float) -> float:
    """D of alpha = min(scale b, U), given norm = ||sum alpha_i y_i x_i||^2."""

def total_loss(margins: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: Loss) -> float:
    """sum c_i l(m_i)."""

def in_box(alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: Loss) -> bool:
    """Whether 0 <= alpha_i <= U_i for every i."""

def best_scale(alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: Loss, sum: float, curvature: float) -> float:
    """
    The s >= 0 that maximises D(s alpha) in the box, given sum alpha_i and ||v||^2 + sum delta_i alpha_i^2; 0 if there is none, or if it overflows.
    """

def scale_into_box(alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: Loss, scale: float) -> None:
    """alpha_i <- min(scale alpha_i, U_i)."""

def snapped(alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: Loss, share: float, most: float) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
    """
    The dual variables, with those at a bound that are within `share` U, and within `most`, of it.
    """

class Scaled:
    """The best multiple of a point."""

    @property
    def scale(self) -> float: ...

    @property
    def loss(self) -> float:
        """sum of the losses there"""

    @property
    def loss_error(self) -> float:
        """what rounding may hide of it"""

def best_multiple(examples: Examples, margins: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], norm: float, length: float, last: float, roundings: float) -> Scaled:
    """
    The b in [1/2, 2] that minimises P(b w), given ||w||^2; the last three as in `Values`.
    """

def class_probabilities(scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], codes: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: int, last: int, sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    For rows first to last - 1 and scores of shape (classes, n), or (1, n) of the second of two classes whose first has the score 0: the rows of `sums` become sum exp(s_k - s_top) without one largest class, s_top - s_own, sum p_k (s_top - s_k) and 1 - p_own; `residual` becomes [y = k] - p_k.
    """

def image_lengths(rows: Rows, root: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """out_i <- ||x_i' root|| for an upper triangular root."""

def combine(rows: Rows, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: Team | int = 1) -> None:
    """v <- sum_i alpha_i y_i x_i."""

def evaluate(examples: Examples, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], dual: str, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, margins: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None, threads: Team | int = 1, wake: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')] | None = None) -> Values:
    """
    One pass: sum c_i l(1 - m_i), sum a_i, sum delta_i a_i^2, and what bounds their rounding. `dual` is 'of w', 'given', 'precise' or 'built'. `wake` becomes 0 at rows that are not at a bound on their side of the margin.
    """

def evaluate_residuals(examples: RegressionExamples, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], dual: str, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, residuals: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, threads: Team | int = 1) -> Values:
    """
    The same for l(|r_i| - epsilon): sum c_i l, sum (p_i a_i - epsilon |a_i|), sum delta_i a_i^2, and the bounds.
    """

class GramStatistics:
    """What a kernel matrix has done."""

    @property
    def hits(self) -> int: ...

    @property
    def misses(self) -> int: ...

    @property
    def evaluations(self) -> int: ...

class KernelScalars:
    """
    The share `own` of a penalised bias, the bias, the factor of the model, the shift of the diagonal, the relative error of sum_i alpha_i y_i, and the underflow of a kernel value.
    """

    def __init__(self, own: float, bias: float, factor: float, shift: float, adding: float, underflow: float) -> None: ...

class KernelSums:
    """Sums over the rows of a kernel problem."""

    @property
    def alpha(self) -> float: ...

    @property
    def reach(self) -> float:
        """of |alpha|"""

    @property
    def bent(self) -> float:
        """of delta alpha^2"""

    @property
    def loss(self) -> float: ...

    @property
    def loss_error(self) -> float: ...

    @property
    def norm(self) -> float:
        """alpha' Q alpha"""

    @property
    def norm_error(self) -> float: ...

    @property
    def size(self) -> float:
        """size of its terms"""

class FreeBias:
    """
    An unpenalised bias: sum_i alpha_i y_i, the relative error of such a sum, P of the zero model, and a bound on sqrt(k_ii).
    """

    def __init__(self, off: float, adding: float, zero: float, longest: float) -> None: ...

class ScoreRoundings:
    """
    Bounds on sqrt(k_ii), `lengths`. A score is off by at most (each s + more) sqrt(k_ii) sum_j alpha_j sqrt(k_jj), s the number of terms; a sum of alpha by `adding` times itself; a kernel value by `underflow`.
    """

    def __init__(self, lengths: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], each: float, more: float, adding: float, underflow: float) -> None: ...

class RowSource:
    """Rows of a kernel matrix."""

    @property
    def n(self) -> int: ...

    @property
    def fixed(self) -> bool:
        """whether all values are from 0 to 1, so that 16 bits may hold them"""

class PythonRows(RowSource):
    """Rows of a kernel matrix that Python computes."""

    def __init__(self, n: int, block: object) -> None: ...

class KernelMap:
    """A kernel by its name and parameters."""

    def __init__(self, name: str, gamma: float, coef0: float, degree: int) -> None: ...

class Gram:
    """The kernel matrix on demand, float32 rows cached."""

    def __init__(self, rows: RowSource, capacity: int) -> None: ...

    @property
    def n(self) -> int: ...

    @property
    def capacity(self) -> int:
        """rows held at most"""

    @property
    def held(self) -> int:
        """rows for which there is memory"""

    def holds(self, i: int) -> bool: ...

    @property
    def statistics(self) -> GramStatistics: ...

    def row(self, i: int, out: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def block(self, rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def kernel_sums(y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: Loss, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], error: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], scalars: KernelScalars) -> KernelSums:
    """
    Sums over the rows of a kernel problem, given its scores and their errors.
    """

class KernelValues:
    """P and D as computed, and how far the exact P may be above and D below."""

    @property
    def primal(self) -> float: ...

    @property
    def primal_error(self) -> float: ...

    @property
    def dual(self) -> float: ...

    @property
    def dual_error(self) -> float: ...

def kernel_values(sums: KernelSums, lost: float, free: FreeBias | None, s: float = 1.0) -> KernelValues:
    """
    P of the model s alpha and D of s alpha. The losses of the sums are those at s alpha and s bias, the other sums those at alpha. `lost` bounds the underflow of sums.
    """

def hinge_bias(scores: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float:
    """A b that minimises sum_i c_i max(0, 1 - y_i (scores_i + b))."""

def weighted_quantile(points: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], target: float) -> float:
    """
    The point below which the weights sum to the target; the middle of an interval.
    """

def shapley_sums(A: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], B: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], nodes: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    Writes what each feature adds, by support vector, summed over background rows. `A`: factors of a row, (d, vectors); `B`: of the background, (d, rows vectors).
    """

class KernelRows(RowSource):
    """Kernel values of the rows of a matrix."""

    def __init__(self, rows: Rows, kernel: KernelMap, named: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, dense: bool, threads: int) -> None: ...

    @property
    def dense(self) -> bool:
        """whether the points were packed"""

    @property
    def largest_half_self(self) -> float: ...

    @property
    def by_products(self) -> bool:
        """whether products in float64 do for the values of all points"""

    @property
    def centre(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,), writable=False)]:
        """what is subtracted from dense points before their products"""

    @property
    def precise(self) -> bool:
        """whether values of rows are computed in float64"""

    @precise.setter
    def precise(self, arg: bool, /) -> None: ...

    @property
    def shifted(self) -> bool:
        """whether precise rows hold K - 1 instead of K (rbf and laplacian)"""

    @shifted.setter
    def shifted(self, arg: bool, /) -> None: ...

    def rows(self, who: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], stop: Stop) -> bool:
        """
        out[t, j] <- k(x_who[t], x_j); out has n columns rounded up to 32s. False if told to leave.
        """

    def cross(self, who: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], columns: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu')], stop: Stop) -> bool:
        """
        out[t, s] <- k(x_who[t], x_columns[s]); out has as many columns, rounded up to 32s. False if told to leave.
        """

    def add_rows(self, who: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], at: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> bool:
        """
        out_j += sum_t coef_t k(x_who[t], x_at[j]), values as in `rows`; all rows where `at` is None. False if told to leave.
        """

    @property
    def bounded(self) -> bool:
        """whether `times` bounds the errors of the kernel values"""

    def times(self, who: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], coef: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], at: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], errors: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None, stop: Stop) -> bool:
        """
        As add_rows, all in float64. Where `bounded` is true, errors_j, if it is given, becomes no less than what was added to out_j is off.
        """

    def errors(self, fixed: bool, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
        """
        out_i >= |k - k(x_i, x_j)| for the values of `rows` and all j, and what it costs to add one up; infinity where no bound is known.
        """

    def sum_errors(self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float:
        """
        Sums of `add_rows` are off by at most out_i S_i + a M, where S_i is the sum of |coef k(x, x_i)|, and M of |coef|. Returns a; out_i is infinite where no bound is known.
        """

class BlockProblem:
    """
    Labels, costs and k(x_i, x_i); the loss; the linear term, the sum of the variables, and whether they have both signs. With two sums it is the sum for y = 1, and the negative of the other; a row with both signs then has two variables, first all with y = 1.
    """

    def __init__(self, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], loss: ResidualLoss, linear: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], total: float, two_sided: bool, two_sums: bool = False) -> None: ...

class BlockSolver:
    """State of the block solver."""

    def __init__(self, rows: RowSource, problem: BlockProblem, q: int, largest_q: int, cache_bytes: int, fixed: bool, random: Random) -> None: ...

    @property
    def n(self) -> int:
        """rows"""

    @property
    def q(self) -> int:
        """rows of a working set"""

    @property
    def steps(self) -> int:
        """inner steps so far"""

    @property
    def computed(self) -> int:
        """kernel rows computed so far"""

    @property
    def seconds(self) -> dict[str, float]:
        """seconds of the steps so far, by what they were spent on"""

    @property
    def capacity(self) -> int:
        """rows that the cache may hold"""

    @property
    def held(self) -> int: ...

    @property
    def full(self) -> bool: ...

    @property
    def moved(self) -> float:
        """sum of what alpha has moved by since set_gradient, step by step"""

    @property
    def moved_by_cached(self) -> float:
        """the part of `moved` whose kernel rows were cached"""

    @property
    def sizes(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]:
        """
        sums of |change k(x, x_i)| over the other part of `moved`, for kernels whose values have one sign
        """

    @property
    def drift(self) -> float:
        """norm of what alpha has moved by since set_gradient"""

    @property
    def violation(self) -> float: ...

    @property
    def threshold(self) -> float: ...

    @property
    def apart(self) -> float: ...

    @property
    def primal(self) -> float: ...

    @property
    def dual(self) -> float: ...

    def set_alpha(self, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def set_gradient(self, F: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """F = sum_j c_j k(x_j, x_i), as computed elsewhere."""

    def forget_rows(self) -> None: ...

    @property
    def alpha(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def gradient(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    def step(self, inner_tolerance: float, stop: Stop) -> int:
        """
        Solves one working set to `inner_tolerance` times the violation. Returns the inner steps made.
        """

def pair_steps(H: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], box: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]], v: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], unit: float, tol: float, most: int, stop: Stop) -> int:
    """
    The inner steps of the hinge on one matrix. Returns how many were made.
    """

def coordinate_steps(H: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], v: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], tol: float, most: int, stop: Stop) -> int:
    """The inner steps of the squared hinge on one matrix, as pair_steps."""

class MulticlassExamples:
    """Rows with their classes 0 to K - 1, costs c_i, and q_i = ||x_i||^2."""

    def __init__(self, rows: Rows, y: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: int) -> None: ...

class MulticlassState:
    """A dual point, its w, and the counters of shrinking."""

    def __init__(self, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], wake: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], length: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

class MulticlassPass:
    @property
    def visited(self) -> int: ...

    @property
    def updates(self) -> int: ...

    @property
    def gap(self) -> float:
        """estimate of the gap, from the visits"""

    @property
    def linear(self) -> float:
        """change of sum_i a_{i,y_i}"""

def crammer_singer_epoch(examples: MulticlassExamples, state: MulticlassState, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], random: Random, stop: Stop) -> MulticlassPass:
    """
    One pass over the rows that are awake; `order` receives them as visited.
    """

def multiclass_feasible(examples: MulticlassExamples, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """Moves alpha into the feasible set: how many rows were outside."""

def multiclass_combine(rows: Rows, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], classes: int, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: Team | int = 1) -> None:
    """
    w_m <- sum_i a_im x_i; entry (j, m) is w[j s + m], s = K in whole eights.
    """

def multiclass_values(examples: MulticlassExamples, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, threads: Team | int = 1) -> Values:
    """
    One pass: sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + e_im), sum_i a_{i,y_i}, and what bounds their rounding.
    """

def outputs(rows: Rows, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], threads: Team | int, stop: Stop) -> int:
    """out_i <- y_i w.x_i. Returns the rows done."""

def change_plane(examples: Examples, from_: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], to: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], b: float, threads: Team | int, stop: Stop) -> tuple[int, float]:
    """
    Turns (a, b) of one set of rows into (a, b) of another. Returns (rows done, b).
    """

def solve_master(gram: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], tol: float, stop: Stop) -> float:
    """
    Raise beta.b - 1/2 beta.H beta over the simplex from beta. Returns the gap.
    """

def line_search(cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], from_: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], to: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], slope: float, curvature: float) -> float:
    """The t >= 0 that minimises P on the line between two points."""

def move_outputs(cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], from_: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], to: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], t: float, cut: float, set: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')]) -> float:
    """
    from <- from + t (to - from), and the set of the next plane. Returns the loss.
    """

def add_rows(set: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], beta: float, share: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """share_i <- share_i + beta for the rows of the set."""

class DualState:
    """A dual point, and w = sum_i alpha_i y_i x_i."""

    def __init__(self, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

class DualPass:
    """Result of a pass of dual coordinate ascent."""

    @property
    def visited(self) -> int: ...

    @property
    def updates(self) -> int: ...

    @property
    def gap(self) -> float:
        """estimate of the gap, from the visits"""

class ShrunkPass(DualPass):
    """Result of `dcd_epoch`."""

    @property
    def active(self) -> int:
        """rows left"""

    @property
    def max_gradient(self) -> float:
        """largest projected gradient"""

    @property
    def min_gradient(self) -> float:
        """smallest one"""

class SleepingPass(DualPass):
    """Result of a pass that skips rows."""

    @property
    def linear(self) -> float:
        """change of the terms of D without w"""

    @property
    def threshold(self) -> float:
        """mean projected gradient"""

    @property
    def norm(self) -> float:
        """||w||^2"""

    @property
    def saved(self) -> float:
        """change of the gap by the best multiple of w, at most 0; with `scale`"""

class Leap:
    """Result of a step between two sweeps."""

    @property
    def whole(self) -> bool:
        """whether w belongs to alpha"""

    @property
    def taken(self) -> bool:
        """whether a conjugate step was taken"""

    @property
    def clipped(self) -> int:
        """rows clipped to their boxes"""

    @property
    def moved(self) -> int:
        """rows whose alpha has changed"""

    @property
    def linear(self) -> float:
        """sum a_i - 1/2 sum delta_i a_i^2"""

class Average:
    """Time-weighted sum of alpha after `step` steps of `sdca_epoch`."""

    def __init__(self, sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], since: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], step: float) -> None: ...

class Sleep:
    """
    Rows that shrinking skips: `wake` counts down the epochs, `length` is the last number of them, at most `longest`. Rows whose gradient points outward by more than `threshold` are skipped; NaN: the pass finds it out.
    """

    def __init__(self, wake: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], length: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], threshold: float, longest: int) -> None: ...

class SweepSettings:
    """
    Over-relaxation `omega`, rows of a `chunk`, whether to find the best multiple of w, and whether the pass is Modified-SGD.
    """

    def __init__(self, omega: float = 1.0, chunk: int = 1, scale: bool = False, modified_sgd: bool = False) -> None: ...

class Directions:
    """
    Two directions, of squared lengths `norms`, the one to be replaced `next`, and the start of the next step.
    """

    def __init__(self, base: DualState, points: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]], images: Sequence[Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]], norms: Sequence[float], next: int) -> None: ...

    @property
    def norms(self) -> tuple[float, float]: ...

    @property
    def next(self) -> int: ...

@overload
def sdca_epoch(examples: Examples, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], state: DualState, average: Average | None, stop: Stop) -> DualPass:
    """One pass of SDCA."""

@overload
def sdca_epoch(examples: LogisticExamples, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], state: DualState, average: Average | None, stop: Stop) -> DualPass:
    """One pass of SDCA for logistic regression."""

def modified_sgd_epoch(examples: Examples, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], state: DualState, before: int, n: int, stop: Stop) -> DualPass:
    """
    The part of a pass of Modified-SGD from alpha = 0 that comes after the first `before` of n rows.
    """

def dcd_epoch(examples: Examples, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], active: int, state: DualState, upper: float, lower: float, stop: Stop) -> ShrunkPass:
    """
    One pass of DCD over order[:active]; rows at a bound whose gradient is beyond `upper` or `lower` leave the active ones.
    """

def sleeping_epoch(examples: Examples, state: DualState, sleep: Sleep, settings: SweepSettings, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], random: Random, stop: Stop) -> SleepingPass:
    """
    One pass over the rows that are awake; `order` receives them as visited.
    """

def momentum(examples: Examples, state: DualState, end: DualState, beta: float, wake: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> Leap:
    """
    Momentum between two sweeps; `end` is the end of the sweep before, and becomes the end of the last one.
    """

def conjugate_step(examples: Examples, state: DualState, dual: float, directions: Directions, wake: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu')], order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> Leap:
    """
    A conjugate step after a sweep from the base of the directions, given D.
    """

class ElasticNetPenalty:
    """
    Weights of the norms, a column without them or -1, and the violation or the sweeps that end a descent.
    """

    def __init__(self, l1: float, l2: float, free: int, target: float, most: int) -> None: ...

class Descent:
    """Sweeps, and the largest violation that was met."""

    @property
    def sweeps(self) -> int: ...

    @property
    def violation(self) -> float: ...

def column_products(columns: Rows, set: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> bool:
    """The sums of v_i x_ij of some columns; whether all are there."""

def add_squares(rows: Rows, h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sums: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Add up h_i x_ij^2 of all columns."""

def add_products(rows: Rows, h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sums: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], stop: Stop) -> bool:
    """Add h_i x_ij x_ik of columns that ascend; whether all rows are in it."""

def add_columns(columns: Rows, set: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None:
    """Add some columns times their weights."""

def descend_by_columns(columns: Rows, penalty: ElasticNetPenalty, h: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> Descent:
    """Coordinate descent over columns."""

def descend_by_products(products: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], penalty: ElasticNetPenalty, diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], u: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> Descent:
    """Coordinate descent by the products of all columns."""

class FoldTable:
    """A kernel matrix in float64, and rounded to float32."""

    def __init__(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], floats: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class FoldProof:
    """The proof of a fold."""

    @property
    def bias(self) -> float: ...

    @property
    def values(self) -> KernelValues: ...

class Folds:
    """
    Problems over some rows of a kernel matrix, which differ in the weights of the rows; free bias, hinge or regression.
    """

    def __init__(self, table: FoldTable, runs: Sequence[tuple[int, int]], y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], threads: int, targets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, epsilon: float = 0.0) -> None: ...

    def start(self, c: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Sets y_i alpha_i near which all folds begin, before the first C."""

    def advance(self, C: float, tol: float, atol: float, most: int, stop: Stop) -> bool:
        """
        Solves all folds for a larger C, with at most `most` working sets for each. False if told to leave; the folds are not to be used then.
        """

    def points(self, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Writes the dual variables of all folds, and sum_j alpha_j y_j k_ij."""

    def proofs(self, roundings: ScoreRoundings) -> list[FoldProof]:
        """Proves all folds of the hinge from their scores."""

    def counts(self, fold: int) -> tuple[int, int]:
        """Working sets and pair steps of a fold for this C."""

class Schedule(enum.Enum):
    pegasos = 0

    norma = 1

    svmsgd = 2

class BiasRule(enum.Enum):
    fixed = 0

    step = 1

    batch = 2

class GradientSettings:
    """
    Step sizes of Pegasos, NORMA or SvmSGD, rows of a batch, and how the bias moves.
    """

    def __init__(self, lambda_: float, schedule: Schedule, eta0: float, batch: int = 1, project: bool = False, rule: BiasRule = BiasRule.fixed) -> None: ...

class SumOfSteps:
    """
    Sum of the w of all steps, sigma v + r, and of their coefficients, sigma beta + r_beta.
    """

    def __init__(self, r: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], r_beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], sigma: float) -> None: ...

    @property
    def sigma(self) -> float: ...

class GradientState:
    """
    w = scale v with v = sum_i beta_i y_i x_i, ||w||^2 = norm, after t steps. `bias`, of shape (1,), is left as the rule moves it.
    """

    def __init__(self, v: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], beta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], scale: float = 1.0, norm: float = 0.0, t: float = 0.0, sum: SumOfSteps | None = None, bias: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')] | None = None) -> None: ...

    @property
    def scale(self) -> float: ...

    @property
    def norm(self) -> float: ...

    @property
    def t(self) -> float: ...

class GradientPass:
    @property
    def visited(self) -> int: ...

    @property
    def updates(self) -> int: ...

    @property
    def loss(self) -> float:
        """sum of the losses at the visits"""

class CountingState:
    """
    a = lambda t w with ||a||^2 = norm after t presentations, and the margin errors of the rows.
    """

    def __init__(self, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], errors: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu')], t: float, norm: float) -> None: ...

    @property
    def t(self) -> float: ...

    @property
    def norm(self) -> float: ...

class CountingPass:
    @property
    def visited(self) -> int: ...

    @property
    def updates(self) -> int:
        """margin errors"""

    @property
    def weighted(self) -> float:
        """their weights"""

    @property
    def loss(self) -> float:
        """sum of the losses at the visits"""

class UnlearningPass:
    @property
    def visited(self) -> int: ...

    @property
    def updates(self) -> int: ...

    @property
    def unlearned(self) -> int:
        """updates that lowered a counter"""

    @property
    def gap(self) -> float:
        """estimate of the gap, from the visits"""

class SgdQnSettings:
    """`gain` is the weight of a new slope in its running mean."""

    def __init__(self, lambda_: float, corrected: bool, skip: int, t0: float, gain: float) -> None: ...

class SgdQnState:
    """
    w, the diagonal B, an earlier w, the mean slopes of the rows, and the counts of steps.
    """

    def __init__(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], B: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], past: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], slope: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], t: float, r: float, count: int, refresh: bool) -> None: ...

    @property
    def t(self) -> float: ...

    @property
    def r(self) -> float: ...

    @property
    def count(self) -> int: ...

    @property
    def refresh(self) -> bool: ...

class SgdQnPass:
    @property
    def visited(self) -> int: ...

    @property
    def updates(self) -> int: ...

    @property
    def loss(self) -> float:
        """sum of the losses at the visits"""

    @property
    def gap(self) -> float:
        """estimate of the gap, from the visits"""

def stochastic_gradient_epoch(examples: Examples, settings: GradientSettings, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], state: GradientState, stop: Stop) -> GradientPass:
    """
    One pass of Pegasos, NORMA or SvmSGD. The costs are the relative weights omega.
    """

def counting_sgd_epoch(examples: Examples, lambda_: float, multiplicity: int, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], state: CountingState, stop: Stop) -> CountingPass:
    """One pass of SGD-r/s/m. The costs are the relative weights omega."""

def unlearning_epoch(examples: Examples, s: float, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], count: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> UnlearningPass:
    """One pass of MPU."""

def sgd_qn_epoch(examples: Examples, settings: SgdQnSettings, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], state: SgdQnState, stop: Stop) -> SgdQnPass:
    """One pass of SGD-QN. The costs are the relative weights omega."""

def regression_epoch(examples: RegressionExamples, state: DualState, sleep: Sleep, chunk: int, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], random: Random, stop: Stop) -> SleepingPass:
    """One pass of dual coordinate ascent for regression over the rows awake."""

class RegressionTargets:
    """Accuracies to reach; most entries read, and epochs."""

    def __init__(self, targets: Targets, most: float, epochs: int) -> None: ...

class RegressionProof:
    """Sums at the w of a dual point."""

    @property
    def values(self) -> Values: ...

    @property
    def norm(self) -> float:
        """||w||^2"""

    @property
    def epochs(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """
        P and D, and the updates so far, after every epoch; none if told to stop.
        """

def solve_regression(examples: RegressionExamples, state: DualState, targets: RegressionTargets, random: Random, threads: Team, stop: Stop) -> RegressionProof:
    """Solve a small problem by dual coordinate ascent from 0, and prove it."""

def pair_epoch(rows: Rows, upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rise: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], fall: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], state: DualState, room: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> DualPass:
    """Pair steps of the linear one-class SVM."""

class SomeRows:
    """
    Rows with labels and costs; the sum `fixed` and the dual variables `constant` of all other rows. The rows are a list of accessors, or what a function yields in every pass: an accessor, and which of its rows or None for all. Offsets are taken off the margins; they are 0 by default.
    """

    def __init__(self, rows: object, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], fixed: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], constant: float, offset: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

def group_duplicates(rows: Rows, y: Annotated[NDArray[numpy.int8], dict(shape=(None,), order='C', device='cpu', writable=False)], group: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')]) -> int:
    """
    The number of each row's group of equal rows and labels; returns how many.
    """

def has_windows(rows: Rows) -> bool:
    """Whether entries of a sparse row are in neighbouring columns."""

def chosen_rows(rows: Rows, chosen: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], feature: float) -> Rows:
    """A copy of the chosen rows."""

class NewtonState:
    """
    A point, its residuals and gradient, and room for a step and its image.
    """

    def __init__(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], residual: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], gradient: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], step: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], image: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

def newton_point(examples: RegressionExamples, state: NewtonState, threads: Team) -> tuple[float, float, int]:
    """
    Residuals and gradient of the squared loss at w: (P, P - D, rows outside of the tube).
    """

def newton_step(examples: RegressionExamples, state: NewtonState, accuracy: float, most: int, algebra: tuple[object, ...], threads: Team, stop: Stop) -> tuple[float, int]:
    """
    A Newton step and how far to go along it: (length, conjugate gradients); by a factor if `most` is 0. The length is 0 if told to leave, or at the optimum.
    """

class Interior:
    """The interior-point iteration; every cost is positive."""

    def __init__(self, examples: SomeRows, loss: Loss, scale: float, free_bias: bool, threads: Team, algebra: tuple[object, ...]) -> None: ...

    def start(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], mu: float, stop: Stop) -> bool:
        """
        Start at w with every product at mu; 0: far inside, for w = 0. False: told to leave.
        """

    def iterate(self, stop: Stop) -> int:
        """One iteration: 0, 1 if told to leave, 2 if the matrix has no factor."""

    def run(self, goal: float, most: int, stop: Stop) -> tuple[int, int, int]:
        """
        Iterations until the relative gap is at most `goal`: the last outcome, the number of steps, and of their correctors.
        """

    def refresh(self, stop: Stop) -> bool:
        """
        Recompute margins, residual, P and D from w and alpha. False: told to leave.
        """

    @property
    def w(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def alpha(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def mu(self) -> float: ...

    @property
    def primal(self) -> float: ...

    @property
    def dual(self) -> float: ...

    @property
    def length(self) -> float: ...

    @property
    def correctors(self) -> int: ...

    @property
    def single(self) -> bool:
        """Whether the next matrix is added up in float32."""

class ParsedSvmlight:
    """Arrays of parsed svmlight text."""

    @property
    def labels(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def values(self) -> NDArray[numpy.float32] | NDArray[numpy.float64]: ...

    @property
    def indices(self) -> NDArray[numpy.int32] | NDArray[numpy.int64]: ...

    @property
    def indptr(self) -> NDArray[numpy.int32] | NDArray[numpy.int64]: ...

    @property
    def qid(self) -> Annotated[NDArray[numpy.int64], dict(shape=(None,))]: ...

    @property
    def n_features(self) -> int: ...

def parse_svmlight(buffer: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int, zero_based: bool | None, query_id: bool, single_precision: bool, wide_index: bool) -> ParsedSvmlight:
    """
    Parse svmlight text.

    zero_based None detects where indices start. ValueError names line and column of the first malformed line. Indices are int32 unless wide_index is set or the text needs int64.
    """

def crc32c(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], before: int = 0) -> int:
    """CRC-32C of bytes that follow those whose CRC-32C is `before`."""

def fingerprint(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> int:
    """64-bit hash, for comparisons in one process."""

def crc32c_segments(data: Annotated[NDArray[numpy.uint8], dict(shape=(None,), order='C', device='cpu', writable=False)], segment: int) -> Annotated[NDArray[numpy.uint32], dict(shape=(None,))]:
    """CRC-32C of consecutive segments of bytes; the last one may be shorter."""

def class_weights(rows: Rows, coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
    """
    out[k outputs + o] += sum_i coef[o, i] x_i over the rows i of class k, those up to ends[k] that no class before it has.
    """

class ProductSettings:
    """
    Whether to pack the rows as dense ones, whether to compute in float64, and the threads.
    """

    def __init__(self, dense: bool, precise: bool, threads: int) -> None: ...

def kernel_times(kernel: KernelMap, rows: Rows, coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], targets: Rows, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], settings: ProductSettings, stop: Stop) -> bool:
    """
    For every part p of the rows, those up to ends[p] that no part before it has: out[p outputs + o, j] <- sum_i coef[o, i] k(x_i, z_j), sums in float64. Values are off by 1e-8 at most where they are from 0 to 1; by 1e-4, in float32, unless `precise`. False if told to leave.
    """

class PackedVectors:
    """
    Dense copies of the rows and the coefficients of kernel_times, for few targets.
    """

    def __init__(self, kernel: KernelMap, rows: Rows, coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], ends: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], precise: bool) -> None: ...

    def times(self, targets: Rows, out: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None:
        """Writes what kernel_times writes, with the same bits."""

class NewtonRules:
    """How fast a run smooths less, and when it is stuck."""

    def __init__(self, share: float, slack: float, divisor: float, rounding: float, most_idle: int, least_radius: float) -> None: ...

class NewtonRun:
    """Steps that were made in one call."""

    @property
    def outcome(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def sharpened(self) -> int:
        """How often tau was reduced."""

    @property
    def inside(self) -> int:
        """`inside` over all steps."""

    @property
    def stuck(self) -> bool: ...

    @property
    def far(self) -> bool:
        """Whether hardly any of the radius is left."""

class SmoothingNewton:
    """Newton's method on a smoothed loss; every cost is positive."""

    def __init__(self, examples: SomeRows, loss: Loss, free_bias: bool, threads: Team, algebra: tuple[object, ...]) -> None: ...

    def start(self, w: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], tau: float, stop: Stop) -> bool:
        """Start at w, smoothed by tau. False: told to leave."""

    def smooth(self, tau: float, stop: Stop) -> bool:
        """Another tau at the same w. False: told to leave."""

    def iterate(self, limit: float, stop: Stop) -> int:
        """
        A step that moves w by `limit` at most: 0, 1 if told to leave, 2 if the matrix has no factor.
        """

    def run(self, goal: float, whole: bool, radius: float, most: int, rules: NewtonRules, stop: Stop) -> NewtonRun:
        """
        Up to `most` steps, until the relative gap is at most `goal` or w has moved by `radius` from where it started. `whole`: this gap is to be proved.
        """

    @property
    def w(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def alpha(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def margins(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None,))]: ...

    @property
    def tau(self) -> float: ...

    @property
    def primal(self) -> float: ...

    @property
    def dual(self) -> float: ...

    @property
    def smoothing(self) -> float:
        """What smoothing adds to P - D."""

    @property
    def moved(self) -> float: ...

    @property
    def decrement(self) -> float:
        """About what the last step took from the smoothed objective."""

    @property
    def inside(self) -> int: ...

class LabellingSettings:
    """
    Accuracies to reach, the first smoothing, most steps, and steps of an epoch.
    """

    def __init__(self, targets: Targets, tau: float, most: int, epoch: int, rules: NewtonRules) -> None: ...

    @property
    def whole(self) -> bool:
        """whether problems in which most rows matter are solved too"""

    @whole.setter
    def whole(self, arg: bool, /) -> None: ...

    @property
    def near(self) -> bool:
        """whether problems begin at the given w, not at 0"""

    @near.setter
    def near(self, arg: bool, /) -> None: ...

class Labellings:
    """
    Labels and costs of several problems over the same rows, and room for w and alpha, one row each. A single row of costs is for all of them.
    """

    def __init__(self, y: Annotated[NDArray[numpy.int8], dict(shape=(None, None), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], w: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

class LabellingProofs:
    """Points of all labellings."""

    @property
    def sums(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """The fields of `Values`, ||w||^2, ||v||^2, and the scale of alpha."""

    @property
    def epochs(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """Estimates of P and D, and the steps so far, after every epoch."""

    @property
    def ends(self) -> list[int]:
        """Where the epochs of each one end."""

    @property
    def left(self) -> int:
        """Number of problems left to others."""

def solve_labellings(rows: Rows, q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labellings: Labellings, loss: Loss, settings: LabellingSettings, algebra: tuple[object, ...], threads: Team, stop: Stop) -> LabellingProofs:
    """
    Solve and prove problems with the same rows, each with its labels, by Newton's method; the first ones if told to stop.
    """

class SweepRules:
    """
    Accuracies to reach, where a visit counts as `row` entries that are read and a sweep as `sweep` more; most sweeps, how they are made, and most of them that a row is skipped. A proof is made once a gap seems `nearly` times the target.
    """

    def __init__(self, targets: Targets, row: float, sweep: float, most: int, sweeps: SweepSettings, longest: int, nearly: float) -> None: ...

    @property
    def lag(self) -> float:
        """`lag` of gap_at_the_end, or 0"""

    @lag.setter
    def lag(self, arg: float, /) -> None: ...

    @property
    def least(self) -> float:
        """`least` of gap_at_the_end"""

    @least.setter
    def least(self, arg: float, /) -> None: ...

def sweep_labellings(rows: Rows, q: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], labellings: Labellings, loss: Loss, rules: SweepRules, seeds: Sequence[int], threads: Team, stop: Stop) -> LabellingProofs:
    """
    Solve and prove problems with the same rows, each with its labels, by sweeps that skip rows; the first ones if told to stop.
    """

class WholeSettings:
    """
    Accuracies to reach: `tol` or `atol`, and then `goal` if as much work again, and `free` more, suffices; the limits of work and epochs.
    """

    def __init__(self, targets: Targets, limit: float, epochs: int) -> None: ...

class PairTables:
    """
    Room for the coefficients of the models of all pairs, y alpha over rho with nu, and for the scores of their models.
    """

    def __init__(self, coef: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')], scores: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> None: ...

class PairProofs:
    """Proofs of all pairs of classes."""

    @property
    def bounds(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """
        P, its error, D, and its error for every pair, as kernel_values gives them.
        """

    @property
    def biases(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """Shape (n_pairs, 1)."""

    @property
    def epochs(self) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
        """
        Estimates of P and D, and the steps so far, after every epoch of every pair.
        """

    @property
    def ends(self) -> list[int]:
        """Where the epochs of each pair end."""

    @property
    def floors(self) -> list[float]:
        """
        With nu, the least size of the optimum in the relative gap of each pair; else 0.
        """

def solve_pairs(rows: KernelRows, bounds: Sequence[int], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], roundings: ScoreRoundings, settings: WholeSettings, tables: PairTables, stop: Stop, halves: Sequence[float] = []) -> PairProofs:
    """
    Solves and proves the problems of all pairs of classes, hinge with a free bias, or with nu, where the dual variables of either class add up to `halves`. The rows of class k are bounds[k] to bounds[k + 1] - 1. The first class of a pair is positive; with two classes the second one is. In the pair (i, j) the rows of class i have their entries in row j - 1 of the tables, the rows of j in row i. Returns proofs for the pairs (0, 1), (0, 2), ...; none if told to stop.
    """

def solve_one_class(rows: KernelRows, upper: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], floor: float, settings: WholeSettings, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """
    Solves the dual of the one-class problem from `alpha`, whose sum it keeps. Returns estimates of P and D, and the steps so far, after every epoch; none if told to stop.
    """

def solve_nu_regression(rows: KernelRows, linear: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], cost: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], half: float, settings: WholeSettings, alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> Annotated[NDArray[numpy.float64], dict(shape=(None, None))]:
    """
    Solves the dual of nu-SVR, whose positive and negative variables add up to `half` at most, and writes its solution. Returns what solve_one_class does.
    """

class Simplex:
    """
    min 1/2 a'Ka over the simplex, for the `columns` of a Gram matrix or all of them; `diagonal` holds the K_ii.
    """

    def __init__(self, gram: Gram, columns: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, y: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], delta: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], constant: float = 1.0, linear: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class SimplexState:
    """A point, its gradient, and its `size` rows with a > 0."""

    def __init__(self, a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], active: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu')], size: int) -> None: ...

    @property
    def size(self) -> int: ...

class WalkSettings:
    """
    Method, whether gains assume clipped steps, and how many steps to make.
    """

    def __init__(self, method: str, clipped: bool, steps: int) -> None: ...

class Sample:
    """
    Draws `count` rows per step, half of them from either side of order[split] if split > 0; the first step goes to `vertex`, if it is one; the last has 2 (p - g_i) <= eps.
    """

    def __init__(self, count: int, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], split: int = 0, vertex: int = -1, eps: float = float('-inf')) -> None: ...

class SimplexWalk:
    """Result of steps over the simplex."""

    @property
    def steps(self) -> int: ...

    @property
    def p(self) -> float: ...

    @property
    def loss(self) -> float:
        """mean loss of the drawn rows with a = 0"""

    @property
    def swaps(self) -> int: ...

    @property
    def drops(self) -> int: ...

    @property
    def aways(self) -> int: ...

    @property
    def gap(self) -> float:
        """2 (p - g_i) of the last sample"""

class PegasosWalk:
    @property
    def visited(self) -> int: ...

    @property
    def steps(self) -> int: ...

    @property
    def updates(self) -> int: ...

def frank_wolfe(problem: Simplex, state: SimplexState, settings: WalkSettings, stop: Stop) -> SimplexWalk:
    """Steps on the full gradient."""

def frank_wolfe_sampled(problem: Simplex, state: SimplexState, settings: WalkSettings, sample: Sample, random: Random, stop: Stop) -> SimplexWalk:
    """Steps with i from samples."""

def add_gradient(problem: Simplex, rows: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], change: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], stop: Stop) -> int:
    """
    g += K change, for a change of some entries of a. Returns the entries done.
    """

class PegasosSettings:
    """
    Most rows with a > 0, 0 for any number; rows of a batch; steps made before.
    """

    def __init__(self, loss: Loss, lambda_: float, budget: int, batch: int, t: float) -> None: ...

def kernel_pegasos(problem: Simplex, state: SimplexState, omega: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], settings: PegasosSettings, order: Annotated[NDArray[numpy.uint32], dict(shape=(None,), order='C', device='cpu', writable=False)], most: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], sum: SumOfSteps | None, stop: Stop) -> PegasosWalk:
    """Kernelised Pegasos. `sum` is of the margins and of `a`."""

def solve_small(H: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], g: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], tol: float, steps: int, stop: Stop) -> int:
    """min 1/2 a'Ha over the simplex, warm. Returns the steps made."""

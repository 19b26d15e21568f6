#include "bindings_proof.hpp"
#include "gram/block.hpp"
#include "gram/pairs.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/vector.h>

namespace dualgap {

namespace {

// A problem of the block solver, as Python holds it.
struct BoxProblem {
  Array<const double> y, cost, diagonal;
  ResidualLoss loss;
  Array<const double> linear;
  double total;
  bool two_sided, two_sums;

  BlockProblem taken(Index n) const {
    if (two_sums && two_sided) n *= 2;  // two variables for each row
    const auto take = [&](const Array<const double> &a, const char *name) {
      const double *data = sized(a, n, name);
      return Vec(data, data + n);
    };
    BlockProblem problem;
    problem.squared = !std::isfinite(loss.form.slope);
    problem.epsilon = loss.epsilon;
    problem.total = total;
    problem.two_sided = two_sided && !two_sums;
    problem.two_sums = two_sums;
    problem.above = loss.above;
    problem.below = loss.below;
    problem.y = take(y, "y");
    problem.cost = take(cost, "cost");
    problem.diagonal = take(diagonal, "diagonal");
    problem.p = take(linear, "linear");
    return problem;
  }
};

// A number that the last scan found.
template <double BlockScan::*kNumber>
double of_scan(const BlockSolver &self) {
  return self.last_scan().*kNumber;
}

// Tables for the coefficients of all pairs and for their scores.
struct PairTables {
  Table<double> coef, scores;
};

Inner small_problem(const Table<const float> &H, Index m) {
  check_shape(H, m, m, "H");
  Inner inner(m);
  for (Index i = 0; i < m; ++i)
    std::copy_n(H.data() + i * m, m, inner.H.data() + i * inner.stride());
  for (Index i = m; i < inner.q; ++i) inner.s[i] = 1.0f;
  return inner;
}

}  // namespace

void bind_block(nb::module_ &m) {
  nb::class_<BoxProblem>(
      m, "BlockProblem",
      "Labels, costs and k(x_i, x_i); the loss; the linear term, the sum of "
      "the variables, and whether they have both signs. With two sums it is the sum "
      "for y = 1, and the negative of the other; a row with both signs then has two "
      "variables, first all with y = 1.")
      .def(nb::init<Array<const double>, Array<const double>, Array<const double>,
                    const ResidualLoss &, Array<const double>, double, bool, bool>(),
           "y"_a, "cost"_a, "diagonal"_a, "loss"_a, "linear"_a, "total"_a,
           "two_sided"_a, "two_sums"_a = false);
  nb::class_<BlockSolver>(m, "BlockSolver", "State of the block solver.")
      .def(
          "__init__",
          [](BlockSolver *self, RowSource &rows, const BoxProblem &problem, Index q,
             Index largest_q, Index cache_bytes, bool fixed, Random &random) {
            if (q < 1 || largest_q < 1)
              throw std::invalid_argument("q must be positive");
            new (self) BlockSolver(rows, problem.taken(rows.n()), q, largest_q,
                                   cache_bytes, fixed, random);
          },
          "rows"_a, "problem"_a, "q"_a, "largest_q"_a, "cache_bytes"_a, "fixed"_a,
          "random"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("n", &BlockSolver::n, "rows")
      .def_prop_ro("q", &BlockSolver::q, "rows of a working set")
      .def_prop_ro("steps", &BlockSolver::steps, "inner steps so far")
      .def_prop_ro("computed", &BlockSolver::computed, "kernel rows computed so far")
      .def_prop_ro(
          "seconds",
          [](const BlockSolver &self) {
            return std::map<std::string, double>{
                {"select", self.seconds(Phase::kSelect)},
                {"rows", self.seconds(Phase::kRows)},
                {"matrix", self.seconds(Phase::kMatrix)},
                {"inner", self.seconds(Phase::kInner)},
                {"update", self.seconds(Phase::kUpdate)},
                {"scan", self.seconds(Phase::kScan)}};
          },
          "seconds of the steps so far, by what they were spent on")
      .def_prop_ro("capacity", &BlockSolver::capacity, "rows that the cache may hold")
      .def_prop_ro("held", &BlockSolver::held)
      .def_prop_ro("moved", &BlockSolver::moved,
                   "sum of what alpha has moved by since set_gradient, step by step")
      .def_prop_ro("drift", &BlockSolver::drift,
                   "norm of what alpha has moved by since set_gradient")
      .def_prop_ro("violation", &of_scan<&BlockScan::violation>)
      .def_prop_ro("threshold", &of_scan<&BlockScan::threshold>)
      .def_prop_ro("apart", &of_scan<&BlockScan::apart>)
      .def_prop_ro("primal", &of_scan<&BlockScan::primal>)
      .def_prop_ro("dual", &of_scan<&BlockScan::dual>)
      .def(
          "set_alpha",
          [](BlockSolver &self, Array<const double> alpha) {
            self.set_alpha(sized(alpha, self.n(), "alpha"));
          },
          "alpha"_a)
      .def(
          "set_gradient",
          [](BlockSolver &self, Array<const double> F) {
            self.set_gradient(sized(F, self.n(), "F"));
          },
          "F"_a, "F = sum_j c_j k(x_j, x_i), as computed elsewhere.")
      .def("forget_rows", &BlockSolver::forget_rows)
      .def(
          "alpha",
          [](const BlockSolver &self, Array<double> out) {
            self.alpha(sized(out, self.n(), "out"));
          },
          "out"_a)
      .def(
          "gradient",
          [](const BlockSolver &self, Array<double> out) {
            std::copy_n(self.gradient().begin(), self.n(), sized(out, self.n(), "out"));
          },
          "out"_a)
      .def(
          "step",
          [](BlockSolver &self, double inner_tolerance, Stop &stop) {
            return without_gil(
                stop, [&](Poll &poll) { return self.step(inner_tolerance, poll); });
          },
          "inner_tolerance"_a, "stop"_a,
          "Solves one working set to `inner_tolerance` times the violation. Returns "
          "the inner steps made.");

  m.def(
      "pair_steps",
      [](Table<const float> H, Array<double> c,
         const std::array<Array<const double>, 2> &box, Array<float> v, double unit,
         double tol, Index most, Stop &stop) {
        const auto size = c.length();
        Inner inner = small_problem(H, size);
        for (Index i = 0; i < size; ++i) {
          inner.s[i] = inner.row(i)[i];
          inner.c[i] = c.data()[i];
          inner.lo[i] = sized(box[0], size, "box[0]")[i];
          inner.hi[i] = sized(box[1], size, "box[1]")[i];
          inner.v[i] = sized(v, size, "v")[i];
        }
        const Index steps = without_gil(
            stop, [&](Poll &poll) { return pair_steps(inner, unit, tol, most, poll); });
        std::copy_n(inner.c.begin(), size, c.data());
        std::copy_n(inner.v.begin(), size, v.data());
        return steps;
      },
      "H"_a, "c"_a, "box"_a, "v"_a, "unit"_a, "tol"_a, "most"_a, "stop"_a,
      "The inner steps of the hinge on one matrix. Returns how many were made.");

  m.def(
      "coordinate_steps",
      [](Table<const float> H, Array<const double> y, Array<const double> delta,
         Array<double> c, Array<float> v, double tol, Index most, Stop &stop) {
        const auto size = c.length();
        Inner inner = small_problem(H, size);
        for (Index i = 0; i < size; ++i) {
          inner.c[i] = c.data()[i];
          inner.y[i] = static_cast<float>(sized(y, size, "y")[i]);
          inner.delta[i] = sized(delta, size, "delta")[i];
          inner.v[i] = sized(v, size, "v")[i];
          inner.s[i] = inner.row(i)[i] + 1.0f + static_cast<float>(inner.delta[i]);
        }
        const Index steps = without_gil(
            stop, [&](Poll &poll) { return coordinate_steps(inner, tol, most, poll); });
        std::copy_n(inner.c.begin(), size, c.data());
        std::copy_n(inner.v.begin(), size, v.data());
        return steps;
      },
      "H"_a, "y"_a, "delta"_a, "c"_a, "v"_a, "tol"_a, "most"_a, "stop"_a,
      "The inner steps of the squared hinge on one matrix, as pair_steps.");

  nb::class_<WholeSettings>(m, "WholeSettings",
                            "Accuracies to reach: `tol` or `atol`, and then `goal` if "
                            "as much work again, and `free` more, suffices; the limits "
                            "of work and epochs.")
      .def(nb::init<Targets, double, Index>(), "targets"_a, "limit"_a, "epochs"_a);
  nb::class_<PairTables>(
      m, "PairTables",
      "Room for the coefficients of the models of all pairs, y alpha "
      "over rho with nu, and for the scores of their models.")
      .def(nb::init<Table<double>, Table<double>>(), "coef"_a, "scores"_a);
  nb::class_<PairProofs>(m, "PairProofs", "Proofs of all pairs of classes.")
      .def_prop_ro(
          "bounds",
          [](const PairProofs &self) {
            return table_of(self.proofs, [](const KernelProof &of) {
              const KernelValues &v = of.values;
              return std::array{v.primal, v.primal_error, v.dual, v.dual_error};
            });
          },
          "P, its error, D, and its error for every pair, as kernel_values gives them.")
      .def_prop_ro(
          "biases",
          [](const PairProofs &self) {
            return table_of(self.proofs,
                            [](const KernelProof &of) { return std::array{of.bias}; });
          },
          "Shape (n_pairs, 1).")
      .def_prop_ro(
          "epochs", [](const PairProofs &self) { return table_of_epochs(self.epochs); },
          "Estimates of P and D, and the steps so far, after every epoch of every "
          "pair.")
      .def_ro("ends", &PairProofs::ends, "Where the epochs of each pair end.")
      .def_ro(
          "floors", &PairProofs::floors,
          "With nu, the least size of the optimum in the relative gap of each pair; "
          "else 0.");
  m.def(
      "solve_pairs",
      [](const KernelRows &rows, const Vector<Index> &bounds, Array<const double> cost,
         const ScoreSizes &sizes, const WholeSettings &settings,
         const PairTables &tables, Stop &stop, const Vec &halves) {
        if (!rows.dense()) throw std::invalid_argument("rows are sparse");
        if (bounds.empty() || bounds.front() != 0 || bounds.back() != rows.n() ||
            std::adjacent_find(bounds.begin(), bounds.end(), std::greater_equal<>()) !=
                bounds.end())
          throw std::invalid_argument("bounds");
        const Index classes = bounds.size() - 1;
        check_shape(tables.coef, classes - 1, rows.n(), "coef");
        check_shape(tables.scores, classes - 1, rows.n(), "scores");
        const bool of_pairs = halves.size() == classes * (classes - 1) / 2;
        const auto positive = [](double half) { return half > 0.0; };
        if (!(halves.empty() || of_pairs) ||
            !std::all_of(halves.begin(), halves.end(), positive))
          throw std::invalid_argument("halves");
        PairsOfClasses pairs(rows, bounds, sized(cost, rows.n(), "cost"),
                             sizes.of(rows.n()), tables.coef.data(),
                             tables.scores.data(), halves);
        return without_gil(
            stop, [&](Poll &poll) { return pairs.solve(settings, stop, poll); });
      },
      "rows"_a, "bounds"_a, "cost"_a, "roundings"_a, "settings"_a, "tables"_a, "stop"_a,
      "halves"_a = Vec(),
      "Solves and proves the problems of all pairs of classes, hinge with a free bias, "
      "or with nu, where the dual variables of either class add up to `halves`. "
      "The rows of class k are bounds[k] to bounds[k + 1] - 1. The first class of a "
      "pair is positive; with two classes the second one is. In the pair (i, j) the "
      "rows of class i have their entries in row j - 1 of the tables, the rows of j in "
      "row i. Returns proofs for the pairs (0, 1), (0, 2), ...; none if told to stop.");

  m.def(
      "solve_one_class",
      [](const KernelRows &rows, Array<const double> upper, double floor,
         const WholeSettings &settings, Array<double> alpha, Stop &stop) {
        if (!rows.dense()) throw std::invalid_argument("rows are sparse");
        const Index n = rows.n();
        double *a = sized(alpha, n, "alpha");
        const double *most = sized(upper, n, "upper");
        BlockProblem problem;
        problem.y.assign(n, 1.0);
        problem.p.assign(n, 0.0);
        problem.cost.assign(most, most + n);
        const auto epochs = without_gil(stop, [&](Poll &poll) {
          return solve_whole(rows, std::move(problem), floor, settings, a, stop, poll);
        });
        return table_of_epochs(epochs);
      },
      "rows"_a, "upper"_a, "floor"_a, "settings"_a, "alpha"_a, "stop"_a,
      "Solves the dual of the one-class problem from `alpha`, whose sum it keeps. "
      "Returns estimates of P and D, and the steps so far, after every epoch; none if "
      "told to stop.");
}

}  // namespace dualgap

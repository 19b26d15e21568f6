#include "bindings_kernel.hpp"
#include "gram/pairs.hpp"

#include <nanobind/stl/array.h>

namespace dualgap {

template bool KernelRows::dense_rows<double>(const KernelMap &, const Order *, Index,
                                             const Order *, Index, double *const *,
                                             Poll &) const;
template bool KernelRows::dense_rows<float>(const KernelMap &, const Order *, Index,
                                            const Order *, Index, simd::Fixed *const *,
                                            Poll &) const;

namespace {

// Tables for the coefficients of all pairs and for their scores.
struct PairTables {
  Table<double> coef, scores;
};

}  // namespace

void bind_pairs(nb::module_ &m) {
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
  m.def(
      "solve_nu_regression",
      [](const KernelRows &rows, Array<const double> linear, Array<const double> cost,
         double half, const WholeSettings &settings, Array<double> alpha, Stop &stop) {
        if (!rows.dense()) throw std::invalid_argument("rows are sparse");
        const Index n = rows.n();
        double *a = sized(alpha, n, "alpha");
        const double *p = sized(linear, n, "linear"), *most = sized(cost, n, "cost");
        BlockProblem problem;
        for (const double sign : {1.0, -1.0}) {
          problem.y.resize(problem.y.size() + n, sign);
          problem.p.insert(problem.p.end(), p, p + n);
          problem.cost.insert(problem.cost.end(), most, most + n);
        }
        problem.two_sums = true;
        problem.total = half;
        const auto epochs = without_gil(stop, [&](Poll &poll) {
          return solve_whole(rows, std::move(problem), 0.0, settings, a, stop, poll);
        });
        return table_of_epochs(epochs);
      },
      "rows"_a, "linear"_a, "cost"_a, "half"_a, "settings"_a, "alpha"_a, "stop"_a,
      "Solves the dual of nu-SVR, whose positive and negative variables add up to "
      "`half` at most, and writes its solution. Returns what solve_one_class does.");
}

}  // namespace dualgap

#include "bindings_kernel.hpp"
#include "gram/folds.hpp"

#include <nanobind/stl/pair.h>

namespace dualgap {

namespace {

// A square matrix in float64, and rounded to float32.
struct FoldTable {
  Table<const double> doubles;
  Table<const float> floats;
  Index n = checked();

  Index checked() const {
    check_shape(doubles, floats.length(), floats.length(), "values");
    check_length(floats.columns(), floats.length(), "a row of floats");
    return floats.length();
  }
};

}  // namespace

void bind_folds(nb::module_ &m) {
  nb::class_<FoldTable>(m, "FoldTable",
                        "A kernel matrix in float64, and rounded to float32.")
      .def(nb::init<Table<const double>, Table<const float>>(), "values"_a, "floats"_a);
  nb::class_<KernelProof>(m, "FoldProof", "The proof of a fold.")
      .def_ro("bias", &KernelProof::bias)
      .def_ro("values", &KernelProof::values);
  nb::class_<Folds>(m, "Folds",
                    "Problems over some rows of a kernel matrix, which differ in the "
                    "weights of the rows; free bias, hinge or regression.")
      .def(
          "__init__",
          [](Folds *self, const FoldTable &table,
             const Vector<std::pair<Index, Index>> &runs, Array<const std::int8_t> y,
             Table<const double> weights, Index threads, Maybe<const double> targets,
             double epsilon) {
            Vector<Run> rows;
            Index count = 0;
            for (const auto &[begin, end] : runs) {
              if (begin < 0 || end < begin || end > table.n)
                throw std::invalid_argument("runs: rows outside the matrix");
              rows.push_back({begin, end - begin});
              count += end - begin;
            }
            check_length(weights.columns(), count, "weights");
            const std::int8_t *labels = sized(y, count, "y");
            const auto folds = weights.length();
            const double *all = weights.data();
            Vec linear;
            if (const double *first = sized(targets, count, "targets"))
              linear.assign(first, first + count);
            nb::gil_scoped_release released;
            new (self) Folds(table.doubles.data(), table.floats.data(), table.n, rows,
                             {labels, labels + count}, all, folds, threads,
                             std::move(linear), epsilon);
          },
          "table"_a, "runs"_a, "y"_a, "weights"_a, "threads"_a,
          "targets"_a = nb::none(), "epsilon"_a = 0.0, nb::keep_alive<1, 2>())
      .def(
          "start",
          [](Folds &self, Array<const double> c) {
            self.start(sized(c, self.rows(), "c"));
          },
          "c"_a, "Sets y_i alpha_i near which all folds begin, before the first C.")
      .def(
          "advance",
          [](Folds &self, double C, double tol, double atol, Index most, Stop &stop) {
            return without_gil(stop, [&](Poll &poll) {
              return self.advance(C, tol, atol, most, poll);
            });
          },
          "C"_a, "tol"_a, "atol"_a, "most"_a, "stop"_a,
          "Solves all folds for a larger C, with at most `most` working sets for each. "
          "False if told to leave; the folds are not to be used then.")
      .def(
          "points",
          [](const Folds &self, Table<double> alpha, Table<double> scores) {
            for (const auto *out : {&alpha, &scores}) {
              check_length(out->length(), self.folds(), "out");
              check_length(out->columns(), self.rows(), "out");
            }
            for (Index p = 0; p < self.folds(); ++p) {
              std::copy_n(self.alpha(p).begin(), self.rows(),
                          alpha.data() + p * self.rows());
              std::copy_n(self.scores(p).begin(), self.rows(),
                          scores.data() + p * self.rows());
            }
          },
          "alpha"_a, "scores"_a,
          "Writes the dual variables of all folds, and sum_j alpha_j y_j k_ij.")
      .def(
          "proofs",
          [](const Folds &self, const ScoreSizes &sizes) {
            const ScoreRoundings by = sizes.of(self.rows());
            nb::gil_scoped_release released;
            Vector<KernelProof> found;
            for (Index p = 0; p < self.folds(); ++p) found.push_back(self.proof(p, by));
            return found;
          },
          "roundings"_a, "Proves all folds of the hinge from their scores.")
      .def(
          "counts",
          [](const Folds &self, Index p) {
            return std::pair(self.sets(p), self.steps(p));
          },
          "fold"_a, "Working sets and pair steps of a fold for this C.");
}

}  // namespace dualgap

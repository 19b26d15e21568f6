#include "bindings.hpp"
#include "certify.hpp"
#include "epochs/regression.hpp"
#include "small_regression.hpp"

namespace dualgap {

// Compiled in bindings.cpp.
extern template struct Evaluation<ResidualTerms>;

void bind_regression(nb::module_ &m) {
  m.def(
      "regression_epoch",
      [](const RegressionExamples &examples, DualState &state, Sleep &sleep,
         Index chunk, Array<Order> order, Random &random, Stop &stop) {
        check(state, examples.rows);
        check(sleep, examples.rows);
        Order *visits = sized(order, examples.rows.n(), "order");
        if (chunk < 1) throw std::invalid_argument("chunk must be positive");
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          SleepingPass pass = regression_epoch(x, examples.dual(), state, sleep, chunk,
                                               visits, random, poll);
          pass.norm = squared_norm(state.w, x.width());
          return pass;
        });
      },
      "examples"_a, "state"_a, "sleep"_a, "chunk"_a, "order"_a, "random"_a, "stop"_a,
      "One pass of dual coordinate ascent for regression over the rows awake.");

  nb::class_<RegressionTargets>(m, "RegressionTargets",
                                "Accuracies to reach; most entries read, and epochs.")
      .def(nb::init<Targets, double, Index>(), "targets"_a, "most"_a, "epochs"_a);
  nb::class_<RegressionProof>(m, "RegressionProof", "Sums at the w of a dual point.")
      .def_ro("values", &RegressionProof::values)
      .def_ro("norm", &RegressionProof::norm, "||w||^2")
      .def_prop_ro(
          "epochs",
          [](const RegressionProof &self) { return table_of_epochs(self.epochs); },
          "P and D, and the updates so far, after every epoch; none if told to stop.");
  m.def(
      "solve_regression",
      [](const RegressionExamples &examples, DualState &state,
         const RegressionTargets &targets, Random &random, Team &threads, Stop &stop) {
        check(state, examples.rows);
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return SmallRegression(x, examples.dual(), state, threads)
              .solve(targets, random, poll, stop);
        });
      },
      "examples"_a, "state"_a, "targets"_a, "random"_a, "threads"_a.noconvert(),
      "stop"_a,
      "Solve a small problem by dual coordinate ascent from 0, and prove it.");

  m.def(
      "pair_epoch",
      [](const AnyRows &rows, Array<const double> upper, Array<const double> q,
         Array<const Order> rise, Array<const Order> fall, DualState &state,
         Array<double> room, Stop &stop) {
        const Index n = rows.n(), many = rise.length();
        const double *most = sized(upper, n, "upper"), *norms = sized(q, n, "q");
        checked_lengths(many, {{fall, "fall"}});
        const Order *up = checked_order(rise, n), *down = checked_order(fall, n);
        check(state, rows);
        double *zeros = sized(room, rows.width(), "room");
        return pass_over(rows, stop, [&](const auto &x, Poll &poll) {
          return pair_epoch(x, most, norms, up, down, many, state, zeros, poll);
        });
      },
      "rows"_a, "upper"_a, "q"_a, "rise"_a, "fall"_a, "state"_a, "room"_a, "stop"_a,
      "Pair steps of the linear one-class SVM.");
}

}  // namespace dualgap

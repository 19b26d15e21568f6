#include "bindings.hpp"
#include "certify.hpp"
#include "epochs/regression.hpp"

namespace dualgap {

void bind_regression(nb::module_ &m) {
  m.def(
      "regression_epoch",
      [](const AnyRows &rows, Array<const double> target, Array<const double> cost,
         Array<const double> q, const Loss &loss, double epsilon, Array<double> alpha,
         Array<double> w, Array<std::uint8_t> wake, Array<std::uint8_t> length,
         double threshold, int longest, Index chunk, Array<Order> order, Random &random,
         Stop &stop) {
        const Index n = rows.n();
        const RegressionData data{sized(target, n, "target"), sized(cost, n, "cost"),
                                  sized(q, n, "q"), loss, epsilon};
        const DualState state{sized(alpha, n, "alpha"), sized(w, rows.width(), "w")};
        const Sleep sleep{sized(wake, n, "wake"), sized(length, n, "length"), threshold,
                          longest};
        Order *visits = sized(order, n, "order");
        if (chunk < 1) throw std::invalid_argument("chunk must be positive");
        if (longest < 0 || longest > 127)
          throw std::invalid_argument("longest is out of range");
        const auto [pass, norm] = without_gil(stop, [&](Poll &poll) {
          const SleepingPass pass = rows.visit([&](const auto &x) {
            return regression_epoch(x, data, state, sleep, chunk, visits, random, poll);
          });
          return std::pair(pass, squared_norm(state.w, rows.width()));
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap, pass.linear,
                               pass.threshold, norm);
      },
      "rows"_a, "target"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(),
      "loss"_a, "epsilon"_a, "alpha"_a.noconvert(), "w"_a.noconvert(),
      "wake"_a.noconvert(), "length"_a.noconvert(), "threshold"_a, "longest"_a,
      "chunk"_a, "order"_a.noconvert(), "random"_a, "stop"_a,
      "One pass of dual coordinate ascent for regression over the rows awake: "
      "(visited, "
      "updates, gap estimate, change of the terms of D without w, mean projected "
      "gradient, ||w||^2).");

  m.def(
      "pair_epoch",
      [](const AnyRows &rows, Array<const double> upper, Array<const double> q,
         Array<const Order> rise, Array<const Order> fall, Array<double> alpha,
         Array<double> w, Array<double> room, Stop &stop) {
        const Index n = rows.n();
        const auto many = static_cast<Index>(rise.shape(0));
        const double *most = sized(upper, n, "upper"), *norms = sized(q, n, "q");
        check_length(static_cast<Index>(fall.shape(0)), many, "fall");
        const Order *up = checked_order(rise, n), *down = checked_order(fall, n);
        const DualState state{sized(alpha, n, "alpha"), sized(w, rows.width(), "w")};
        double *zeros = sized(room, rows.width(), "room");
        const DualPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return pair_epoch(x, most, norms, up, down, many, state, zeros, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates);
      },
      "rows"_a, "upper"_a.noconvert(), "q"_a.noconvert(), "rise"_a.noconvert(),
      "fall"_a.noconvert(), "alpha"_a.noconvert(), "w"_a.noconvert(),
      "room"_a.noconvert(), "stop"_a,
      "Pair steps of the linear one-class SVM: (visited, updates).");
}

}  // namespace dualgap

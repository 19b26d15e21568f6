#include "bindings.hpp"
#include "epochs/counting_sgd.hpp"

namespace dualgap {

void bind_counting_sgd(nb::module_ &m) {
  m.def(
      "counting_sgd_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> omega,
         Array<const double> q, double lambda, Index multiplicity,
         Array<const Order> order, Array<double> a, Array<std::int64_t> errors,
         double t, double norm, Stop &stop) {
        const Index n = rows.n();
        const CountingData data{sized(y, n, "y"), sized(omega, n, "omega"),
                                sized(q, n, "q"), lambda, multiplicity};
        CountingState state{sized(a, rows.width(), "a"), sized(errors, n, "errors"), t,
                            norm};
        const auto *visits = checked_order(order, n);
        const auto count = static_cast<Index>(order.shape(0));
        const CountingPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return counting_sgd_epoch(x, data, visits, count, state, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.weighted, pass.loss,
                               state.t, state.norm);
      },
      "rows"_a, "y"_a.noconvert(), "omega"_a.noconvert(), "q"_a.noconvert(),
      "lambda_"_a, "multiplicity"_a, "order"_a.noconvert(), "a"_a.noconvert(),
      "errors"_a.noconvert(), "t"_a, "norm"_a, "stop"_a,
      "One pass of SGD-r/s/m: (visited, errors, weighted errors, loss estimate, t, "
      "||a||^2).");
}

}  // namespace dualgap

#include "bindings.hpp"
#include "epochs/sgd_qn.hpp"

namespace dualgap {

void bind_sgd_qn(nb::module_ &m) {
  m.def(
      "sgd_qn_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> omega,
         const Loss &loss, double lambda, bool corrected, Index skip, double t0,
         double gain, Array<const Order> order, Array<double> w, Array<double> B,
         Array<double> past, Array<double> slope, double t, double r, Index count,
         bool refresh, Stop &stop) {
        const Index n = rows.n(), width = rows.width();
        if (skip < 1) throw std::invalid_argument("skip must be positive");
        const SgdQnData data{sized(y, n, "y"),
                             sized(omega, n, "omega"),
                             loss,
                             lambda,
                             corrected,
                             skip,
                             t0,
                             gain};
        SgdQnState state{sized(w, width, "w"),
                         sized(B, width, "B"),
                         sized(past, width, "past"),
                         sized(slope, n, "slope"),
                         t,
                         r,
                         count,
                         refresh};
        const auto *visits = checked_order(order, n);
        const auto visit_count = static_cast<Index>(order.shape(0));
        const SgdQnPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return sgd_qn_epoch(x, data, visits, visit_count, state, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.loss, pass.gap, state.t,
                               state.r, state.count, state.refresh);
      },
      "rows"_a, "y"_a.noconvert(), "omega"_a.noconvert(), "loss"_a, "lambda_"_a,
      "corrected"_a, "skip"_a, "t0"_a, "gain"_a, "order"_a.noconvert(),
      "w"_a.noconvert(), "B"_a.noconvert(), "past"_a.noconvert(), "slope"_a.noconvert(),
      "t"_a, "r"_a, "count"_a, "refresh"_a, "stop"_a,
      "One pass of SGD-QN: (visited, updates, loss and gap estimates, t, r, count, "
      "refresh).");
}

}  // namespace dualgap

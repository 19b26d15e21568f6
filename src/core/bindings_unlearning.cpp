#include "bindings.hpp"
#include "epochs/unlearning.hpp"

namespace dualgap {

void bind_unlearning(nb::module_ &m) {
  m.def(
      "unlearning_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, double s, Array<const Order> order,
         Array<double> a, Array<double> count, Stop &stop) {
        const Index n = rows.n();
        const UnlearningData data{sized(y, n, "y"), sized(cost, n, "cost"),
                                  sized(q, n, "q"), loss, s};
        const UnlearningState state{sized(a, rows.width(), "a"),
                                    sized(count, n, "count")};
        const auto *visits = checked_order(order, n);
        const auto m = static_cast<Index>(order.shape(0));
        const UnlearningPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return unlearning_epoch(x, data, visits, m, state, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.unlearned, pass.gap);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "s"_a, "order"_a.noconvert(), "a"_a.noconvert(), "count"_a.noconvert(), "stop"_a,
      "One pass of MPU: (visited, updates, unlearning ones among them, gap estimate).");
}

}  // namespace dualgap

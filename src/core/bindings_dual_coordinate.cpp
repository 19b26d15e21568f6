#include "bindings.hpp"
#include "epochs/dual_coordinate.hpp"
#include "epochs/sleeping_rows.hpp"
#include "random.hpp"

namespace dualgap {

namespace {

DualData dual_data(const AnyRows &rows, const Array<const std::int8_t> &y,
                   const Array<const double> &cost, const Array<const double> &q,
                   const Loss &loss) {
  return {sized(y, rows.n(), "y"), sized(cost, rows.n(), "cost"),
          sized(q, rows.n(), "q"), loss};
}

DualState dual_state(const AnyRows &rows, Array<double> &alpha, Array<double> &w) {
  return {sized(alpha, rows.n(), "alpha"), sized(w, rows.width(), "w")};
}

}  // namespace

void bind_dual_coordinate(nb::module_ &m) {
  m.def(
      "sdca_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, Array<const Order> order,
         Array<double> alpha, Array<double> w, Maybe<double> average_sum,
         Maybe<double> average_since, double average_step, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        const auto *visits = checked_order(order, rows.n());
        const Average average{sized(average_sum, rows.n(), "average_sum"),
                              sized(average_since, rows.n(), "average_since"),
                              average_step};
        if (average.sum && !average.since)
          throw std::invalid_argument("average_sum needs average_since");
        const auto count = static_cast<Index>(order.shape(0));
        const DualPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return sdca_epoch(x, data, visits, count, state, average, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "order"_a.noconvert(), "alpha"_a.noconvert(), "w"_a.noconvert(),
      "average_sum"_a.noconvert().none(), "average_since"_a.noconvert().none(),
      "average_step"_a, "stop"_a,
      "One pass of SDCA: (visited, updates, gap estimate).");

  m.def(
      "modified_sgd_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, Array<const Order> order,
         Array<double> alpha, Array<double> w, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        const auto *visits = checked_order(order, rows.n());
        const auto count = static_cast<Index>(order.shape(0));
        const DualPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return modified_sgd_epoch(x, data, visits, count,
                                      static_cast<double>(rows.n()), state, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "order"_a.noconvert(), "alpha"_a.noconvert(), "w"_a.noconvert(), "stop"_a,
      "One pass of Modified-SGD from alpha = 0: (visited, updates, gap estimate).");

  m.def(
      "dcd_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, Array<Order> order, Index active,
         Array<double> alpha, Array<double> w, double upper, double lower, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        Order *visits = checked_order(order, rows.n());
        if (active < 0 || active > static_cast<Index>(order.shape(0)))
          throw std::invalid_argument("active is out of range");
        const ShrunkPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return dcd_epoch(x, data, visits, active, state, {upper, lower}, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap, pass.active,
                               pass.max_gradient, pass.min_gradient);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "order"_a.noconvert(), "active"_a, "alpha"_a.noconvert(), "w"_a.noconvert(),
      "upper"_a, "lower"_a, "stop"_a,
      "One pass of DCD over order[:active]: (visited, updates, gap estimate, active "
      "rows left, largest and smallest projected gradient).");

  m.def(
      "sleeping_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, Array<double> alpha, Array<double> w,
         Array<std::uint8_t> wake, Array<std::uint8_t> length, double threshold,
         double omega, Index chunk, Array<Order> order, Random &random, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        const Sleep sleep{sized(wake, rows.n(), "wake"),
                          sized(length, rows.n(), "length"), threshold};
        Order *visits = sized(order, rows.n(), "order");
        if (chunk < 1) throw std::invalid_argument("chunk must be positive");
        const SleepingPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return sleeping_epoch(x, data, state, sleep, omega, chunk, visits, random,
                                  poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap, pass.linear,
                               pass.threshold);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "alpha"_a.noconvert(), "w"_a.noconvert(), "wake"_a.noconvert(),
      "length"_a.noconvert(), "threshold"_a, "omega"_a, "chunk"_a,
      "order"_a.noconvert(), "random"_a, "stop"_a,
      "One pass over the rows that are awake; `order` receives them as visited: "
      "(visited, updates, gap estimate, change of sum a_i - 1/2 sum delta_i a_i^2, "
      "mean projected gradient).");
}

}  // namespace dualgap

#include "bindings.hpp"
#include "certify.hpp"
#include "epochs/conjugate_sweeps.hpp"
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
         Array<double> alpha, Array<double> w, Index before, Index n, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        const auto *visits = checked_order(order, rows.n());
        const auto count = static_cast<Index>(order.shape(0));
        const DualPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return modified_sgd_epoch(x, data, visits, count, before,
                                      static_cast<double>(n), state, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "order"_a.noconvert(), "alpha"_a.noconvert(), "w"_a.noconvert(), "before"_a,
      "n"_a, "stop"_a,
      "A pass of Modified-SGD from alpha = 0, or what of it comes after the first "
      "`before` of n rows: (visited, updates, gap estimate).");

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
         int longest, double omega, Index chunk, bool scale, bool modified_sgd,
         Array<Order> order, Random &random, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        const Sleep sleep{sized(wake, rows.n(), "wake"),
                          sized(length, rows.n(), "length"), threshold, longest};
        Order *visits = sized(order, rows.n(), "order");
        if (chunk < 1) throw std::invalid_argument("chunk must be positive");
        if (longest < 1 || longest > 127)
          throw std::invalid_argument("longest is from 1 to 127");
        double saved = 0, norm = 0;
        const SleepingPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            const SleepingPass done =
                sleeping_epoch(x, data, state, sleep, omega, chunk, scale, modified_sgd,
                               visits, random, poll);
            norm = squared_norm(state.w, x.width());
            if (scale && std::isfinite(threshold))
              saved = done.best_scale(norm, threshold);
            return done;
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap, pass.linear,
                               pass.threshold, norm, saved);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "alpha"_a.noconvert(), "w"_a.noconvert(), "wake"_a.noconvert(),
      "length"_a.noconvert(), "threshold"_a, "longest"_a, "omega"_a, "chunk"_a,
      "scale"_a, "modified_sgd"_a, "order"_a.noconvert(), "random"_a, "stop"_a,
      "One pass over the rows that are awake; `order` receives them as visited: "
      "(visited, updates, gap estimate, change of sum a_i - 1/2 sum delta_i a_i^2, "
      "mean projected gradient, ||w||^2, and with `scale` what the best multiple of w "
      "takes off "
      "the gap, at most 0).");

  m.def(
      "momentum",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, Array<double> alpha, Array<double> w,
         Array<double> end, Array<double> end_w, double beta, Array<std::uint8_t> wake,
         Array<Order> order, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        double *point = sized(end, rows.n(), "end");
        double *image = sized(end_w, rows.width(), "end_w");
        std::uint8_t *asleep = sized(wake, rows.n(), "wake");
        Order *visits = sized(order, rows.n(), "order");
        const Leap leap = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return momentum(x, data, state, point, image, beta, asleep, visits, poll);
          });
        });
        return std::make_tuple(leap.whole, leap.clipped, leap.moved, leap.linear);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "alpha"_a.noconvert(), "w"_a.noconvert(), "end"_a.noconvert(),
      "end_w"_a.noconvert(), "beta"_a, "wake"_a.noconvert(), "order"_a.noconvert(),
      "stop"_a,
      "Momentum between two sweeps: (whether w belongs to alpha, rows clipped, rows "
      "moved, sum a_i - 1/2 sum delta_i a_i^2).");

  m.def(
      "conjugate_step",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, Array<double> alpha, Array<double> w,
         double dual, Array<double> base, Array<double> base_w, Array<double> point0,
         Array<double> point1, Array<double> image0, Array<double> image1, double norm0,
         double norm1, Index next, Array<std::uint8_t> wake, Array<Order> order,
         Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        const Index n = rows.n(), width = rows.width();
        if (next != 0 && next != 1) throw std::invalid_argument("next is 0 or 1");
        Directions dirs{
            sized(base, n, "base"),
            sized(base_w, width, "base_w"),
            {sized(point0, n, "point0"), sized(point1, n, "point1")},
            {sized(image0, width, "image0"), sized(image1, width, "image1")},
            {norm0, norm1},
            next};
        std::uint8_t *asleep = sized(wake, n, "wake");
        Order *visits = sized(order, n, "order");
        const Leap leap = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return conjugate_step(x, data, state, dual, dirs, asleep, visits, poll);
          });
        });
        return std::make_tuple(leap.taken, leap.clipped, leap.moved, leap.linear,
                               dirs.norm[0], dirs.norm[1], dirs.next);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "alpha"_a.noconvert(), "w"_a.noconvert(), "dual"_a, "base"_a.noconvert(),
      "base_w"_a.noconvert(), "point0"_a.noconvert(), "point1"_a.noconvert(),
      "image0"_a.noconvert(), "image1"_a.noconvert(), "norm0"_a, "norm1"_a, "next"_a,
      "wake"_a.noconvert(), "order"_a.noconvert(), "stop"_a,
      "A conjugate step after a sweep from base: (whether it was taken, rows clipped, "
      "rows moved, sum a_i - 1/2 sum delta_i a_i^2 of its end, both norms, which "
      "direction gives way next).");
}

}  // namespace dualgap

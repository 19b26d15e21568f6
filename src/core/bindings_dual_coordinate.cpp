#include "bindings.hpp"
#include "certify.hpp"
#include "epochs/conjugate_sweeps.hpp"
#include "epochs/dual_coordinate.hpp"
#include "epochs/sleeping_rows.hpp"
#include "random.hpp"

#include <nanobind/stl/array.h>

namespace dualgap {

namespace {

struct RunningAverage {
  Array<double> sum, since;
  double step;
  Average of(const AnyRows &rows) const {
    return {sized(sum, rows.n(), "sum"), sized(since, rows.n(), "since"), step};
  }
};

struct Steps {
  DualPoint base;
  std::array<Array<double>, 2> points, images;
  std::array<double, 2> norms;
  Index next;
  Directions of(const AnyRows &rows) const {
    if (next != 0 && next != 1) throw std::invalid_argument("next is 0 or 1");
    const Index n = rows.n(), width = rows.width();
    const DualState start = base.of(rows);
    return {
        start.alpha,
        start.w,
        {sized(points[0], n, "points[0]"), sized(points[1], n, "points[1]")},
        {sized(images[0], width, "images[0]"), sized(images[1], width, "images[1]")},
        norms,
        next};
  }
};

void bind_records(nb::module_ &m) {
  nb::class_<DualPoint>(m, "DualState", "A dual point, and w = sum_i alpha_i y_i x_i.")
      .def(nb::init<Array<double>, Array<double>>(), "alpha"_a, "w"_a);
  nb::class_<DualPass>(m, "DualPass", "Result of a pass of dual coordinate ascent.")
      .def_ro("visited", &DualPass::visited)
      .def_ro("updates", &DualPass::updates)
      .def_ro("gap", &DualPass::gap, "estimate of the gap, from the visits");
  nb::class_<ShrunkPass, DualPass>(m, "ShrunkPass", "Result of `dcd_epoch`.")
      .def_ro("active", &ShrunkPass::active, "rows left")
      .def_ro("max_gradient", &ShrunkPass::max_gradient, "largest projected gradient")
      .def_ro("min_gradient", &ShrunkPass::min_gradient, "smallest one");
  nb::class_<SleepingPass, DualPass>(m, "SleepingPass",
                                     "Result of a pass that skips rows.")
      .def_ro("linear", &SleepingPass::linear, "change of the terms of D without w")
      .def_ro("threshold", &SleepingPass::threshold, "mean projected gradient")
      .def_ro("norm", &SleepingPass::norm, "||w||^2")
      .def_ro("saved", &SleepingPass::saved,
              "change of the gap by the best multiple of w, at most 0; with `scale`");
  nb::class_<Leap>(m, "Leap", "Result of a step between two sweeps.")
      .def_ro("whole", &Leap::whole, "whether w belongs to alpha")
      .def_ro("taken", &Leap::taken, "whether a conjugate step was taken")
      .def_ro("clipped", &Leap::clipped, "rows clipped to their boxes")
      .def_ro("moved", &Leap::moved, "rows whose alpha has changed")
      .def_ro("linear", &Leap::linear, "sum a_i - 1/2 sum delta_i a_i^2");

  nb::class_<RunningAverage>(
      m, "Average", "Time-weighted sum of alpha after `step` steps of `sdca_epoch`.")
      .def(nb::init<Array<double>, Array<double>, double>(), "sum"_a, "since"_a,
           "step"_a);
  nb::class_<SkippedRows>(
      m, "Sleep",
      "Rows that shrinking skips: `wake` counts down the epochs, `length` is the last "
      "number of them, at most `longest`. Rows whose gradient points outward by more "
      "than `threshold` are skipped; NaN: the pass finds it out.")
      .def(nb::init<Array<std::uint8_t>, Array<std::uint8_t>, double, int>(), "wake"_a,
           "length"_a, "threshold"_a, "longest"_a);
  nb::class_<SweepSettings>(m, "SweepSettings",
                            "Over-relaxation `omega`, rows of a `chunk`, whether to "
                            "find the best multiple of w, and whether the pass is "
                            "Modified-SGD.")
      .def(
          "__init__",
          [](SweepSettings *self, double omega, Index chunk, bool scale,
             bool modified_sgd) {
            if (chunk < 1) throw std::invalid_argument("chunk must be positive");
            new (self) SweepSettings{omega, chunk, scale, modified_sgd};
          },
          "omega"_a = 1.0, "chunk"_a = 1, "scale"_a = false, "modified_sgd"_a = false);
  nb::class_<Steps>(
      m, "Directions",
      "Two directions, of squared lengths `norms`, the one to be replaced "
      "`next`, and the start of the next step.")
      .def(nb::init<const DualPoint &, std::array<Array<double>, 2>,
                    std::array<Array<double>, 2>, std::array<double, 2>, Index>(),
           "base"_a, "points"_a, "images"_a, "norms"_a, "next"_a)
      .def_prop_ro("norms",
                   [](const Steps &self) {
                     return std::make_tuple(self.norms[0], self.norms[1]);
                   })
      .def_ro("next", &Steps::next);
}

template <class Rows>
void bind_sdca(nb::module_ &m, const char *about) {
  m.def(
      "sdca_epoch",
      [](const Rows &examples, Array<const Order> order, const DualPoint &point,
         const RunningAverage *average, Stop &stop) {
        DualState state = point.of(examples.rows);
        const auto *visits = checked_order(order, examples.n);
        const auto count = static_cast<Index>(order.shape(0));
        Average mean = average ? average->of(examples.rows) : Average{};
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return sdca_epoch(x, examples.dual(), visits, count, state, mean, poll);
        });
      },
      "examples"_a, "order"_a, "state"_a, "average"_a.none(), "stop"_a, about);
}

}  // namespace

void bind_dual_coordinate(nb::module_ &m) {
  bind_records(m);
  bind_sdca<Examples>(m, "One pass of SDCA.");
  bind_sdca<LogisticExamples>(m, "One pass of SDCA for logistic regression.");

  m.def(
      "modified_sgd_epoch",
      [](const Examples &examples, Array<const Order> order, const DualPoint &point,
         Index before, Index n, Stop &stop) {
        DualState state = point.of(examples.rows);
        const auto *visits = checked_order(order, examples.n);
        const auto count = static_cast<Index>(order.shape(0));
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return modified_sgd_epoch(x, examples.dual(), visits, count, before,
                                    static_cast<double>(n), state, poll);
        });
      },
      "examples"_a, "order"_a, "state"_a, "before"_a, "n"_a, "stop"_a,
      "The part of a pass of Modified-SGD from alpha = 0 that comes after the first "
      "`before` of n rows.");

  m.def(
      "dcd_epoch",
      [](const Examples &examples, Array<Order> order, Index active,
         const DualPoint &point, double upper, double lower, Stop &stop) {
        DualState state = point.of(examples.rows);
        Order *visits = checked_order(order, examples.n);
        if (active < 0 || active > static_cast<Index>(order.shape(0)))
          throw std::invalid_argument("active is out of range");
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return dcd_epoch(x, examples.dual(), visits, active, state, {upper, lower},
                           poll);
        });
      },
      "examples"_a, "order"_a, "active"_a, "state"_a, "upper"_a, "lower"_a, "stop"_a,
      "One pass of DCD over order[:active]; rows at a bound whose gradient is beyond "
      "`upper` or `lower` leave the active ones.");

  m.def(
      "sleeping_epoch",
      [](const Examples &examples, const DualPoint &point, const SkippedRows &skipped,
         const SweepSettings &settings, Array<Order> order, Random &random,
         Stop &stop) {
        DualState state = point.of(examples.rows);
        Sleep sleep = skipped.of(examples.rows);
        Order *visits = sized(order, examples.n, "order");
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          SleepingPass pass = sleeping_epoch(x, examples.dual(), state, sleep, settings,
                                             visits, random, poll);
          pass.norm = squared_norm(state.w, x.width());
          if (settings.scale && std::isfinite(sleep.threshold))
            pass.saved = pass.best_scale(pass.norm, sleep.threshold);
          return pass;
        });
      },
      "examples"_a, "state"_a, "sleep"_a, "settings"_a, "order"_a, "random"_a, "stop"_a,
      "One pass over the rows that are awake; `order` receives them as visited.");

  m.def(
      "momentum",
      [](const Examples &examples, const DualPoint &point, const DualPoint &end,
         double beta, Array<std::uint8_t> wake, Array<Order> order, Stop &stop) {
        DualState state = point.of(examples.rows);
        const DualState last = end.of(examples.rows);
        std::uint8_t *asleep = sized(wake, examples.n, "wake");
        Order *visits = sized(order, examples.n, "order");
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return momentum(x, examples.dual(), state, last.alpha, last.w, beta, asleep,
                          visits, poll);
        });
      },
      "examples"_a, "state"_a, "end"_a, "beta"_a, "wake"_a, "order"_a, "stop"_a,
      "Momentum between two sweeps; `end` is the end of the sweep before, and becomes "
      "the end of the last one.");

  m.def(
      "conjugate_step",
      [](const Examples &examples, const DualPoint &point, double dual, Steps &steps,
         Array<std::uint8_t> wake, Array<Order> order, Stop &stop) {
        DualState state = point.of(examples.rows);
        Directions directions = steps.of(examples.rows);
        std::uint8_t *asleep = sized(wake, examples.n, "wake");
        Order *visits = sized(order, examples.n, "order");
        const Leap leap =
            pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
              return conjugate_step(x, examples.dual(), state, dual, directions, asleep,
                                    visits, poll);
            });
        steps.norms = directions.norm;
        steps.next = directions.next;
        return leap;
      },
      "examples"_a, "state"_a, "dual"_a, "directions"_a, "wake"_a, "order"_a, "stop"_a,
      "A conjugate step after a sweep from the base of the directions, given D.");
}

}  // namespace dualgap

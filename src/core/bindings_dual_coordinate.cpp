#include "bindings.hpp"
#include "certify.hpp"
#include "epochs/conjugate_sweeps.hpp"
#include "epochs/dual_coordinate.hpp"
#include "epochs/sleeping_rows.hpp"
#include "random.hpp"

#include <nanobind/stl/array.h>

namespace dualgap {

namespace {

void check(const Directions &directions, const AnyRows &rows) {
  if (directions.next != 0 && directions.next != 1)
    throw std::invalid_argument("next is 0 or 1");
  check(directions.base, rows);
  const auto &[first, second] = directions.point;
  checked_lengths(rows.n(), {{first, "points[0]"}, {second, "points[1]"}});
  const auto &[image, other] = directions.image;
  checked_lengths(rows.width(), {{image, "images[0]"}, {other, "images[1]"}});
}

void bind_records(nb::module_ &m) {
  made_of<Span<double>, Span<double>>(
      nb::class_<DualState>(m, "DualState",
                            "A dual point, and w = sum_i alpha_i y_i x_i."),
      "alpha"_a, "w"_a);
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

  made_of<Span<double>, Span<double>, double>(
      nb::class_<Average>(
          m, "Average",
          "Time-weighted sum of alpha after `step` steps of `sdca_epoch`."),
      "sum"_a, "since"_a, "step"_a);
  made_of<Span<std::uint8_t>, Span<std::uint8_t>, double, int>(
      nb::class_<Sleep>(
          m, "Sleep",
          "Rows that shrinking skips: `wake` counts down the epochs, `length` is the "
          "last number of them, at most `longest`. Rows whose gradient points outward "
          "by more than `threshold` are skipped; NaN: the pass finds it out."),
      "wake"_a, "length"_a, "threshold"_a, "longest"_a);
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
  using Two = std::array<Span<double>, 2>;
  made_of<const DualState &, Two, Two, std::array<double, 2>, Index>(
      nb::class_<Directions>(
          m, "Directions",
          "Two directions, of squared lengths `norms`, the one to be replaced "
          "`next`, and the start of the next step."),
      "base"_a, "points"_a, "images"_a, "norms"_a, "next"_a)
      .def_prop_ro("norms",
                   [](const Directions &self) {
                     return std::make_tuple(self.norm[0], self.norm[1]);
                   })
      .def_ro("next", &Directions::next);
}

// Runs step(clip), a step between two sweeps that clips rows of `order`.
template <class Step>
Leap leap_over(const Examples &examples, const Order *order, Stop &stop,
               const Step &step) {
  return without_gil(stop, [&](Poll &poll) {
    return step([&](Index m, double *point, double *image) {
      return examples.rows.visit([&](const auto &x) {
        return clip_rows(x, examples.dual(), order, m, point, image, poll);
      });
    });
  });
}

template <class Rows>
void bind_sdca(nb::module_ &m, const char *about) {
  m.def(
      "sdca_epoch",
      [](const Rows &examples, Array<const Order> order, DualState &state,
         const Average *average, Stop &stop) {
        check(state, examples.rows);
        const auto *visits = checked_order(order, examples.n);
        Average mean = average ? *average : Average{};
        if (average)
          checked_lengths(examples.n, {{mean.sum, "sum"}, {mean.since, "since"}});
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return sdca_epoch(x, examples.dual(), visits, order.length(), state, mean,
                            poll);
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
      [](const Examples &examples, Array<const Order> order, DualState &state,
         Index before, Index n, Stop &stop) {
        check(state, examples.rows);
        const auto *visits = checked_order(order, examples.n);
        const FirstPass first{before, static_cast<double>(n)};
        Average none;
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return sdca_epoch(x, examples.dual(), visits, order.length(), state, none,
                            poll, &first);
        });
      },
      "examples"_a, "order"_a, "state"_a, "before"_a, "n"_a, "stop"_a,
      "The part of a pass of Modified-SGD from alpha = 0 that comes after the first "
      "`before` of n rows.");

  m.def(
      "dcd_epoch",
      [](const Examples &examples, Array<Order> order, Index active, DualState &state,
         double upper, double lower, Stop &stop) {
        check(state, examples.rows);
        Order *visits = checked_order(order, examples.n);
        if (active < 0 || active > order.length())
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
      [](const Examples &examples, DualState &state, Sleep &sleep,
         const SweepSettings &settings, Array<Order> order, Random &random,
         Stop &stop) {
        check(state, examples.rows);
        check(sleep, examples.rows);
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
      [](const Examples &examples, DualState &state, const DualState &end, double beta,
         Array<std::uint8_t> wake, Array<Order> order, Stop &stop) {
        check(state, examples.rows);
        check(end, examples.rows);
        std::uint8_t *asleep = sized(wake, examples.n, "wake");
        Order *visits = sized(order, examples.n, "order");
        return leap_over(examples, visits, stop, [&](const Clip &clip) {
          return momentum(examples.n, examples.width(), examples.dual(), state, end,
                          beta, asleep, visits, clip);
        });
      },
      "examples"_a, "state"_a, "end"_a, "beta"_a, "wake"_a, "order"_a, "stop"_a,
      "Momentum between two sweeps; `end` is the end of the sweep before, and becomes "
      "the end of the last one.");

  m.def(
      "conjugate_step",
      [](const Examples &examples, DualState &state, double dual,
         Directions &directions, Array<std::uint8_t> wake, Array<Order> order,
         Stop &stop) {
        check(state, examples.rows);
        check(directions, examples.rows);
        std::uint8_t *asleep = sized(wake, examples.n, "wake");
        Order *visits = sized(order, examples.n, "order");
        return leap_over(examples, visits, stop, [&](const Clip &clip) {
          return conjugate_step(examples.n, examples.width(), examples.dual(), state,
                                dual, directions, asleep, visits, clip);
        });
      },
      "examples"_a, "state"_a, "dual"_a, "directions"_a, "wake"_a, "order"_a, "stop"_a,
      "A conjugate step after a sweep from the base of the directions, given D.");
}

}  // namespace dualgap

#include "bindings_row_sets.hpp"
#include "labellings.hpp"
#include "smoothing_newton.hpp"
#include "sweeps.hpp"

namespace dualgap {

// Compiled in bindings.cpp.
extern template struct Evaluation<MarginTerms>;

namespace {

// Labels and costs of several problems over the same rows, and room for w and alpha,
// one row each. A single row of costs is for all of them.
struct LabellingTables {
  Table<const std::int8_t> y;
  Table<const double> cost;
  Table<double> w, alpha;
  Vector<Labelling> of(const AnyRows &rows) const {
    const Index n = rows.n(), width = rows.width();
    const auto many = y.length();
    const auto costs = cost.length();
    const auto check = [&](const auto &table, Index columns, const char *name) {
      check_length(table.columns(), columns, name);
    };
    check(y, n, "y"), check(cost, n, "cost"), check(alpha, n, "alpha");
    check(w, width, "w");
    check_length(w.length(), many, "w");
    check_length(alpha.length(), many, "alpha");
    if (costs != 1) check_length(costs, many, "cost");
    Vector<Labelling> all;
    for (Index k = 0; k < many; ++k)
      all.push_back({y.data() + k * n, cost.data() + (costs == 1 ? 0 : k * n),
                     w.data() + k * width, alpha.data() + k * n});
    return all;
  }
};

void bind_smoothing_newton(nb::module_ &m) {
  using Newton = SmoothingNewton;
  nb::class_<NewtonRules>(m, "NewtonRules",
                          "How fast a run smooths less, and when it is stuck.")
      .def(nb::init<double, double, double, double, int, double>(), "share"_a,
           "slack"_a, "divisor"_a, "rounding"_a, "most_idle"_a, "least_radius"_a);
  nb::class_<NewtonRun>(m, "NewtonRun", "Steps that were made in one call.")
      .def_prop_ro("outcome",
                   [](const NewtonRun &run) { return static_cast<int>(run.outcome); })
      .def_ro("steps", &NewtonRun::steps)
      .def_ro("sharpened", &NewtonRun::sharpened, "How often tau was reduced.")
      .def_ro("inside", &NewtonRun::inside, "`inside` over all steps.")
      .def_ro("stuck", &NewtonRun::stuck)
      .def_ro("far", &NewtonRun::far, "Whether hardly any of the radius is left.");
  nb::class_<Newton>(m, "SmoothingNewton",
                     "Newton's method on a smoothed loss; every cost is positive.")
      .def(
          "__init__",
          [](Newton *self, const ChosenExamples &examples, const Loss &loss,
             bool free_bias, Team &threads, const Algebra &algebra) {
            new (self)
                Newton(examples.taken(), loss, free_bias, threads, look_up(algebra));
          },
          "examples"_a, "loss"_a, "free_bias"_a, "threads"_a.noconvert(), "algebra"_a,
          nb::keep_alive<1, 5>())
      .def(
          "start",
          [](Newton &self, Doubles w, double tau, Stop &stop) {
            const auto *point = sized(w, self.width(), "w");
            return without_gil(
                stop, [&](Poll &poll) { return self.start(point, tau, poll, stop); });
          },
          "w"_a, "tau"_a, "stop"_a,
          "Start at w, smoothed by tau. False: told to leave.")
      .def(
          "smooth",
          [](Newton &self, double tau, Stop &stop) {
            return without_gil(
                stop, [&](Poll &poll) { return self.smooth(tau, poll, stop); });
          },
          "tau"_a, "stop"_a, "Another tau at the same w. False: told to leave.")
      .def(
          "iterate",
          [](Newton &self, double limit, Stop &stop) {
            const auto outcome = without_gil(
                stop, [&](Poll &poll) { return self.iterate(limit, poll, stop); });
            return static_cast<int>(outcome);
          },
          "limit"_a, "stop"_a,
          "A step that moves w by `limit` at most: 0, 1 if told to leave, 2 if the "
          "matrix has no factor.")
      .def(
          "run",
          [](Newton &self, double goal, bool whole, double radius, int most,
             const NewtonRules &rules, Stop &stop) {
            return without_gil(stop, [&](Poll &poll) {
              return self.run(goal, whole, radius, most, rules, poll, stop);
            });
          },
          "goal"_a, "whole"_a, "radius"_a, "most"_a, "rules"_a, "stop"_a,
          "Up to `most` steps, until the relative gap is at most `goal` or w has moved "
          "by `radius` from where it started. `whole`: this gap is to be proved.")
      .def_prop_ro("w", [](Newton &self) { return copied(self.w()); })
      .def_prop_ro("alpha", [](Newton &self) { return copied(self.alpha()); })
      .def_prop_ro("margins", [](Newton &self) { return copied(self.margins()); })
      .def_prop_ro("tau", &Newton::tau)
      .def_prop_ro("primal", &Newton::primal)
      .def_prop_ro("dual", &Newton::dual)
      .def_prop_ro("smoothing", &Newton::smoothing, "What smoothing adds to P - D.")
      .def_prop_ro("moved", &Newton::moved)
      .def_prop_ro("decrement", &Newton::decrement,
                   "About what the last step took from the smoothed objective.")
      .def_prop_ro("inside", &Newton::inside);
}

}  // namespace

void bind_labellings(nb::module_ &m) {
  bind_smoothing_newton(m);
  nb::class_<LabellingSettings>(m, "LabellingSettings",
                                "Accuracies to reach, the first smoothing, most "
                                "steps, and steps of an epoch.")
      .def(nb::init<Targets, double, int, int, NewtonRules>(), "targets"_a, "tau"_a,
           "most"_a, "epoch"_a, "rules"_a)
      .def_rw("whole", &LabellingSettings::whole,
              "whether problems in which most rows matter are solved too")
      .def_rw("near", &LabellingSettings::near,
              "whether problems begin at the given w, not at 0");
  nb::class_<LabellingTables>(m, "Labellings",
                              "Labels and costs of several problems over the same "
                              "rows, and room for w and alpha, one row each. A single "
                              "row of costs is for all of them.")
      .def(nb::init<Table<const std::int8_t>, Table<const double>, Table<double>,
                    Table<double>>(),
           "y"_a, "cost"_a, "w"_a, "alpha"_a);
  nb::class_<LabellingProofs>(m, "LabellingProofs", "Points of all labellings.")
      .def_prop_ro(
          "sums",
          [](const LabellingProofs &self) {
            return table_of(self.points, [](const GivenPoint &of) {
              const Values &v = of.values;
              return std::array{v.loss,       v.sum,         v.diagonal, v.loss_error,
                                v.along,      v.along_error, v.reach,    v.used,
                                v.roundings,  v.length,      v.last,     of.norm,
                                of.dual_norm, of.scale};
            });
          },
          "The fields of `Values`, ||w||^2, ||v||^2, and the scale of alpha.")
      .def_prop_ro(
          "epochs",
          [](const LabellingProofs &self) { return table_of_epochs(self.epochs); },
          "Estimates of P and D, and the steps so far, after every epoch.")
      .def_ro("ends", &LabellingProofs::ends, "Where the epochs of each one end.")
      .def_ro("left", &LabellingProofs::left, "Number of problems left to others.");
  m.def(
      "solve_labellings",
      [](const AnyRows &rows, Doubles q, const LabellingTables &labellings,
         const Loss &loss, const LabellingSettings &settings, const Algebra &algebra,
         Team &threads, Stop &stop) {
        const double *squares = sized(q, rows.n(), "q");
        const Vector<Labelling> all = labellings.of(rows);
        const LinearAlgebra functions = look_up(algebra);
        return pass_over(rows, stop, [&](const auto &x, Poll &poll) {
          using Rows = std::decay_t<decltype(x)>;
          const auto set = [&](const Vector<Order> &kept) {
            if (kept.size() == x.rows()) return one_block(rows);
            return one_block(rows, Span{kept.data(), kept.size()});
          };
          return LabellingSolver<Rows>(x, squares, loss, set, threads, functions)
              .solve(all, settings, poll, stop);
        });
      },
      "rows"_a, "q"_a, "labellings"_a, "loss"_a, "settings"_a, "algebra"_a,
      "threads"_a.noconvert(), "stop"_a,
      "Solve and prove problems with the same rows, each with its labels, by Newton's "
      "method; the first ones if told to stop.");
  nb::class_<SweepRules>(
      m, "SweepRules",
      "Accuracies to reach, where a visit counts as `row` entries that are read and a "
      "sweep as `sweep` more; most sweeps, how they are made, and most of them that a "
      "row is skipped. A proof is made once a gap seems `nearly` times the target.")
      .def(nb::init<Targets, double, double, int, SweepSettings, int, double>(),
           "targets"_a, "row"_a, "sweep"_a, "most"_a, "sweeps"_a, "longest"_a,
           "nearly"_a)
      .def_rw("lag", &SweepRules::lag, "`lag` of gap_at_the_end, or 0")
      .def_rw("least", &SweepRules::least, "`least` of gap_at_the_end");
  m.def(
      "sweep_labellings",
      [](const AnyRows &rows, Doubles q, const LabellingTables &labellings,
         const Loss &loss, const SweepRules &rules, const Vector<std::uint64_t> &seeds,
         Team &threads, Stop &stop) {
        const double *squares = sized(q, rows.n(), "q");
        const Vector<Labelling> all = labellings.of(rows);
        if (seeds.empty()) throw std::invalid_argument("seeds is empty");
        return pass_over(rows, stop, [&](const auto &x, Poll &poll) {
          using Rows = std::decay_t<decltype(x)>;
          return SweepSolver<Rows>(x, squares, loss, rules)
              .solve(all, seeds, threads, poll, stop);
        });
      },
      "rows"_a, "q"_a, "labellings"_a, "loss"_a, "rules"_a, "seeds"_a,
      "threads"_a.noconvert(), "stop"_a,
      "Solve and prove problems with the same rows, each with its labels, by sweeps "
      "that skip rows; the first ones if told to stop.");
}

}  // namespace dualgap

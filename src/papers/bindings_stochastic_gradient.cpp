#include "../core/bindings.hpp"
#include "counting_sgd.hpp"
#include "sgd_qn.hpp"
#include "stochastic_gradient.hpp"
#include "unlearning.hpp"

namespace dualgap {

namespace {

void bind_records(nb::module_ &m) {
  nb::enum_<Schedule>(m, "Schedule")
      .value("pegasos", Schedule::kPegasos)
      .value("norma", Schedule::kNorma)
      .value("svmsgd", Schedule::kSvmSgd);
  nb::enum_<BiasRule>(m, "BiasRule")
      .value("fixed", BiasRule::kFixed)
      .value("step", BiasRule::kStep)
      .value("batch", BiasRule::kBatch);
  nb::class_<GradientSettings>(m, "GradientSettings",
                               "Step sizes of Pegasos, NORMA or SvmSGD, rows of a "
                               "batch, and how the bias moves.")
      .def(
          "__init__",
          [](GradientSettings *self, double lambda, Schedule schedule, double eta0,
             Index batch, bool project, BiasRule rule) {
            if (batch < 1) throw std::invalid_argument("batch must be positive");
            new (self) GradientSettings{lambda, schedule, eta0, batch, project, rule};
          },
          "lambda_"_a, "schedule"_a, "eta0"_a, "batch"_a = 1, "project"_a = false,
          "rule"_a = BiasRule::kFixed);
  made_of<Span<double>, Span<double>, double>(
      nb::class_<SumOfSteps>(m, "SumOfSteps",
                             "Sum of the w of all steps, sigma v + r, and of their "
                             "coefficients, sigma beta + r_beta."),
      "r"_a, "r_beta"_a, "sigma"_a)
      .def_ro("sigma", &SumOfSteps::sigma);
  made_of<Span<double>, Span<double>, double, double, double, SumOfSteps *,
          Span<double>>(
      nb::class_<GradientState>(m, "GradientState",
                                "w = scale v with v = sum_i beta_i y_i x_i, ||w||^2 = "
                                "norm, after t steps. `bias`, of shape (1,), is left "
                                "as the rule moves it."),
      "v"_a, "beta"_a, "scale"_a = 1.0, "norm"_a = 0.0, "t"_a = 0.0,
      "sum"_a.none() = nb::none(), "bias"_a.none() = nb::none())
      .def_ro("scale", &GradientState::a)
      .def_ro("norm", &GradientState::norm)
      .def_ro("t", &GradientState::t);
  nb::class_<GradientPass>(m, "GradientPass")
      .def_ro("visited", &GradientPass::visited)
      .def_ro("updates", &GradientPass::updates)
      .def_ro("loss", &GradientPass::loss, "sum of the losses at the visits");
  made_of<Span<double>, Span<std::int64_t>, double, double>(
      nb::class_<CountingState>(m, "CountingState",
                                "a = lambda t w with ||a||^2 = norm after t "
                                "presentations, and the margin errors of the rows."),
      "a"_a, "errors"_a, "t"_a, "norm"_a)
      .def_ro("t", &CountingState::t)
      .def_ro("norm", &CountingState::norm);
  nb::class_<CountingPass>(m, "CountingPass")
      .def_ro("visited", &CountingPass::visited)
      .def_ro("updates", &CountingPass::updates, "margin errors")
      .def_ro("weighted", &CountingPass::weighted, "their weights")
      .def_ro("loss", &CountingPass::loss, "sum of the losses at the visits");
  nb::class_<UnlearningPass>(m, "UnlearningPass")
      .def_ro("visited", &UnlearningPass::visited)
      .def_ro("updates", &UnlearningPass::updates)
      .def_ro("unlearned", &UnlearningPass::unlearned, "updates that lowered a counter")
      .def_ro("gap", &UnlearningPass::gap, "estimate of the gap, from the visits");
  nb::class_<SgdQnSettings>(m, "SgdQnSettings",
                            "`gain` is the weight of a new slope in its running mean.")
      .def(
          "__init__",
          [](SgdQnSettings *self, double lambda, bool corrected, Index skip, double t0,
             double gain) {
            if (skip < 1) throw std::invalid_argument("skip must be positive");
            new (self) SgdQnSettings{lambda, corrected, skip, t0, gain};
          },
          "lambda_"_a, "corrected"_a, "skip"_a, "t0"_a, "gain"_a);
  made_of<Span<double>, Span<double>, Span<double>, Span<double>, double, double, Index,
          bool>(
      nb::class_<SgdQnState>(m, "SgdQnState",
                             "w, the diagonal B, an earlier w, the mean slopes of the "
                             "rows, and the counts of steps."),
      "w"_a, "B"_a, "past"_a, "slope"_a, "t"_a, "r"_a, "count"_a, "refresh"_a)
      .def_ro("t", &SgdQnState::t)
      .def_ro("r", &SgdQnState::r)
      .def_ro("count", &SgdQnState::count)
      .def_ro("refresh", &SgdQnState::refresh);
  nb::class_<SgdQnPass>(m, "SgdQnPass")
      .def_ro("visited", &SgdQnPass::visited)
      .def_ro("updates", &SgdQnPass::updates)
      .def_ro("loss", &SgdQnPass::loss, "sum of the losses at the visits")
      .def_ro("gap", &SgdQnPass::gap, "estimate of the gap, from the visits");
}

}  // namespace

void bind_stochastic_gradient(nb::module_ &m) {
  bind_records(m);
  m.def(
      "stochastic_gradient_epoch",
      [](const Examples &examples, const GradientSettings &settings,
         Array<const Order> order, GradientState &state, Stop &stop) {
        const Index n = examples.n, width = examples.width();
        const GradientData data{examples.dual(), settings};
        if (state.bias) checked_lengths(1, {{state.bias, "bias"}});
        if (data.rule != BiasRule::kFixed && !state.bias)
          throw std::invalid_argument("this rule needs a bias");
        if (data.rule == BiasRule::kBatch && data.loss.curvature != 0.0)
          throw std::invalid_argument("the bias of a batch is for the hinge");
        checked_lengths(width, {{state.v, "v"}});
        checked_lengths(n, {{state.beta, "beta"}});
        if (state.sum) checked_lengths(width, {{state.sum->r, "r"}});
        if (state.sum) checked_lengths(n, {{state.sum->r_beta, "r_beta"}});
        const auto *visits = checked_order(order, n);
        Vec slopes(data.batch);
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return stochastic_gradient_epoch(x, data, visits, order.length(),
                                           slopes.data(), state, poll);
        });
      },
      "examples"_a, "settings"_a, "order"_a, "state"_a, "stop"_a,
      "One pass of Pegasos, NORMA or SvmSGD. The costs are the relative weights "
      "omega.");
  m.def(
      "counting_sgd_epoch",
      [](const Examples &examples, double lambda, Index multiplicity,
         Array<const Order> order, CountingState &state, Stop &stop) {
        const CountingData data{examples.dual(), lambda, multiplicity};
        checked_lengths(examples.width(), {{state.a, "a"}});
        checked_lengths(examples.n, {{state.errors, "errors"}});
        const auto *visits = checked_order(order, examples.n);
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return counting_sgd_epoch(x, data, visits, order.length(), state, poll);
        });
      },
      "examples"_a, "lambda_"_a, "multiplicity"_a, "order"_a, "state"_a, "stop"_a,
      "One pass of SGD-r/s/m. The costs are the relative weights omega.");
  m.def(
      "unlearning_epoch",
      [](const Examples &examples, double s, Array<const Order> order, Array<double> a,
         Array<double> count, Stop &stop) {
        const UnlearningData data{examples.dual(), s};
        UnlearningState state{sized(a, examples.width(), "a"),
                              sized(count, examples.n, "count")};
        const auto *visits = checked_order(order, examples.n);
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return unlearning_epoch(x, data, visits, order.length(), state, poll);
        });
      },
      "examples"_a, "s"_a, "order"_a, "a"_a, "count"_a, "stop"_a, "One pass of MPU.");
  m.def(
      "sgd_qn_epoch",
      [](const Examples &examples, const SgdQnSettings &settings,
         Array<const Order> order, SgdQnState &state, Stop &stop) {
        const SgdQnData data{examples.dual(), settings};
        checked_lengths(examples.width(),
                        {{state.w, "w"}, {state.B, "B"}, {state.past, "past"}});
        checked_lengths(examples.n, {{state.slope, "slope"}});
        const auto *visits = checked_order(order, examples.n);
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return sgd_qn_epoch(x, data, visits, order.length(), state, poll);
        });
      },
      "examples"_a, "settings"_a, "order"_a, "state"_a, "stop"_a,
      "One pass of SGD-QN. The costs are the relative weights omega.");
}

}  // namespace dualgap

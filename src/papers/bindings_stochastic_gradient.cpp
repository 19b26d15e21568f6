#include "../core/bindings.hpp"
#include "stochastic_gradient.hpp"

namespace dualgap {

namespace {

struct GradientPoint {
  Array<double> v, beta;
  double scale, norm, t;
  SumOfSteps *sum;
  Maybe<double> bias;
};

}  // namespace

void bind_stochastic_gradient(nb::module_ &m) {
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
  nb::class_<SumOfSteps>(m, "SumOfSteps",
                         "Sum of the w of all steps, sigma v + r, and of their "
                         "coefficients, sigma beta + r_beta.")
      .def(nb::init<Array<double>, Array<double>, double>(), "r"_a, "r_beta"_a,
           "sigma"_a)
      .def_ro("sigma", &SumOfSteps::sigma);
  nb::class_<GradientPoint>(
      m, "GradientState",
      "w = scale v with v = sum_i beta_i y_i x_i, ||w||^2 = norm, "
      "after t steps. `bias`, of shape (1,), is left as the rule "
      "moves it.")
      .def(nb::init<Array<double>, Array<double>, double, double, double, SumOfSteps *,
                    Maybe<double>>(),
           "v"_a, "beta"_a, "scale"_a = 1.0, "norm"_a = 0.0, "t"_a = 0.0,
           "sum"_a.none() = nb::none(), "bias"_a.none() = nb::none(),
           nb::keep_alive<1, 7>())
      .def_ro("scale", &GradientPoint::scale)
      .def_ro("norm", &GradientPoint::norm)
      .def_ro("t", &GradientPoint::t);
  nb::class_<GradientPass>(m, "GradientPass")
      .def_ro("visited", &GradientPass::visited)
      .def_ro("updates", &GradientPass::updates)
      .def_ro("loss", &GradientPass::loss, "sum of the losses at the visits");

  m.def(
      "stochastic_gradient_epoch",
      [](const Examples &examples, const GradientSettings &settings,
         Array<const Order> order, GradientPoint &point, Stop &stop) {
        const Index n = examples.n, width = examples.width();
        const GradientData data{settings, examples.y.data(), examples.cost.data(),
                                examples.q.data(), examples.loss};
        double *moved = sized(point.bias, 1, "bias");
        if (data.rule != BiasRule::kFixed && !moved)
          throw std::invalid_argument("this rule needs a bias");
        if (data.rule == BiasRule::kBatch && data.loss.curvature != 0.0)
          throw std::invalid_argument("the bias of a batch is for the hinge");
        SumOfSteps *sum = point.sum;
        GradientState state{sized(point.v, width, "v"),
                            sized(point.beta, n, "beta"),
                            point.scale,
                            point.norm,
                            point.t,
                            sum ? sized(sum->r, width, "r") : nullptr,
                            sum ? sized(sum->r_beta, n, "r_beta") : nullptr,
                            sum ? sum->sigma : 0.0};
        if (moved) state.bias = *moved;
        const auto *visits = checked_order(order, n);
        const auto count = static_cast<Index>(order.shape(0));
        Vec slopes(data.batch);
        const GradientPass pass =
            pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
              return stochastic_gradient_epoch(x, data, visits, count, slopes.data(),
                                               state, poll);
            });
        if (moved) *moved = state.bias;
        if (sum) sum->sigma = state.sigma;
        point.scale = state.a;
        point.norm = state.norm;
        point.t = state.t;
        return pass;
      },
      "examples"_a, "settings"_a, "order"_a, "state"_a, "stop"_a,
      "One pass of Pegasos, NORMA or SvmSGD. The costs are the relative weights "
      "omega.");
}

}  // namespace dualgap

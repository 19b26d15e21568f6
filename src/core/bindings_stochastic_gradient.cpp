#include "bindings.hpp"
#include "epochs/stochastic_gradient.hpp"

namespace dualgap {

void bind_stochastic_gradient(nb::module_ &m) {
  nb::enum_<Schedule>(m, "Schedule")
      .value("pegasos", Schedule::kPegasos)
      .value("norma", Schedule::kNorma)
      .value("svmsgd", Schedule::kSvmSgd);
  nb::enum_<BiasRule>(m, "BiasRule")
      .value("fixed", BiasRule::kFixed)
      .value("step", BiasRule::kStep)
      .value("batch", BiasRule::kBatch);
  m.def(
      "stochastic_gradient_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> omega,
         Array<const double> q, const Loss &loss, double lambda, Schedule schedule,
         double eta0, Index batch, bool project, Array<const Order> order,
         Array<double> v, Array<double> beta, double scale, double norm, double t,
         Maybe<double> r, Maybe<double> r_beta, double sigma, Stop &stop,
         Maybe<double> bias, BiasRule rule) {
        const Index n = rows.n(), width = rows.width();
        if (batch < 1) throw std::invalid_argument("batch must be positive");
        const GradientData data{sized(y, n, "y"),
                                sized(omega, n, "omega"),
                                sized(q, n, "q"),
                                loss,
                                lambda,
                                schedule,
                                eta0,
                                batch,
                                project,
                                rule};
        double *moved = sized(bias, 1, "bias");
        if (rule != BiasRule::kFixed && !moved)
          throw std::invalid_argument("this rule needs a bias");
        if (rule == BiasRule::kBatch && loss.curvature != 0.0)
          throw std::invalid_argument("the bias of a batch is for the hinge");
        GradientState state{
            sized(v, width, "v"), sized(beta, n, "beta"),     scale, norm, t,
            sized(r, width, "r"), sized(r_beta, n, "r_beta"), sigma};
        if (static_cast<bool>(state.r) != static_cast<bool>(state.r_beta))
          throw std::invalid_argument("r and r_beta come together");
        if (moved) state.bias = *moved;
        const auto *visits = checked_order(order, n);
        const auto count = static_cast<Index>(order.shape(0));
        std::vector<double> slopes(static_cast<std::size_t>(batch));
        const GradientPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return stochastic_gradient_epoch(x, data, visits, count, slopes.data(),
                                             state, poll);
          });
        });
        if (moved) *moved = state.bias;
        return std::make_tuple(pass.visited, pass.updates, pass.loss, state.a,
                               state.norm, state.t, state.sigma);
      },
      "rows"_a, "y"_a.noconvert(), "omega"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "lambda_"_a, "schedule"_a, "eta0"_a, "batch"_a, "project"_a,
      "order"_a.noconvert(), "v"_a.noconvert(), "beta"_a.noconvert(), "scale"_a,
      "norm"_a, "t"_a, "r"_a.noconvert().none(), "r_beta"_a.noconvert().none(),
      "sigma"_a, "stop"_a, "bias"_a.noconvert() = nb::none(),
      "rule"_a = BiasRule::kFixed,
      "One pass of Pegasos, NORMA or SvmSGD: (visited, updates, loss estimate, scale, "
      "||w||^2, t, sigma). `bias`, of shape (1,), is left as the rule moves it.");
}

}  // namespace dualgap

#include "../core/bindings.hpp"
#include "counting_sgd.hpp"

namespace dualgap {

namespace {

struct CountingPoint {
  Array<double> a;
  Array<std::int64_t> errors;
  double t, norm;
};

}  // namespace

void bind_counting_sgd(nb::module_ &m) {
  nb::class_<CountingPoint>(m, "CountingState",
                            "a = lambda t w with ||a||^2 = norm after t presentations, "
                            "and the margin errors of the rows.")
      .def(nb::init<Array<double>, Array<std::int64_t>, double, double>(), "a"_a,
           "errors"_a, "t"_a, "norm"_a)
      .def_ro("t", &CountingPoint::t)
      .def_ro("norm", &CountingPoint::norm);
  nb::class_<CountingPass>(m, "CountingPass")
      .def_ro("visited", &CountingPass::visited)
      .def_ro("updates", &CountingPass::updates, "margin errors")
      .def_ro("weighted", &CountingPass::weighted, "their weights")
      .def_ro("loss", &CountingPass::loss, "sum of the losses at the visits");

  m.def(
      "counting_sgd_epoch",
      [](const Examples &examples, double lambda, Index multiplicity,
         Array<const Order> order, CountingPoint &point, Stop &stop) {
        const Index n = examples.n;
        const CountingData data{examples.y.data(), examples.cost.data(),
                                examples.q.data(), lambda, multiplicity};
        CountingState state{sized(point.a, examples.width(), "a"),
                            sized(point.errors, n, "errors"), point.t, point.norm};
        const auto *visits = checked_order(order, n);
        const auto count = static_cast<Index>(order.shape(0));
        const CountingPass pass =
            pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
              return counting_sgd_epoch(x, data, visits, count, state, poll);
            });
        point.t = state.t;
        point.norm = state.norm;
        return pass;
      },
      "examples"_a, "lambda_"_a, "multiplicity"_a, "order"_a, "state"_a, "stop"_a,
      "One pass of SGD-r/s/m. The costs are the relative weights omega.");
}

}  // namespace dualgap

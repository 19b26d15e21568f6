#include "../core/bindings.hpp"
#include "sgd_qn.hpp"

namespace dualgap {

namespace {

struct SgdQnPoint {
  Array<double> w, B, past, slope;
  double t, r;
  Index count;
  bool refresh;
};

}  // namespace

void bind_sgd_qn(nb::module_ &m) {
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
  nb::class_<SgdQnPoint>(
      m, "SgdQnState",
      "w, the diagonal B, an earlier w, the mean slopes of the rows, "
      "and the counts of steps.")
      .def(nb::init<Array<double>, Array<double>, Array<double>, Array<double>, double,
                    double, Index, bool>(),
           "w"_a, "B"_a, "past"_a, "slope"_a, "t"_a, "r"_a, "count"_a, "refresh"_a)
      .def_ro("t", &SgdQnPoint::t)
      .def_ro("r", &SgdQnPoint::r)
      .def_ro("count", &SgdQnPoint::count)
      .def_ro("refresh", &SgdQnPoint::refresh);
  nb::class_<SgdQnPass>(m, "SgdQnPass")
      .def_ro("visited", &SgdQnPass::visited)
      .def_ro("updates", &SgdQnPass::updates)
      .def_ro("loss", &SgdQnPass::loss, "sum of the losses at the visits")
      .def_ro("gap", &SgdQnPass::gap, "estimate of the gap, from the visits");

  m.def(
      "sgd_qn_epoch",
      [](const Examples &examples, const SgdQnSettings &settings,
         Array<const Order> order, SgdQnPoint &point, Stop &stop) {
        const Index n = examples.n, width = examples.width();
        const SgdQnData data{settings, examples.y.data(), examples.cost.data(),
                             examples.loss};
        SgdQnState state{sized(point.w, width, "w"),
                         sized(point.B, width, "B"),
                         sized(point.past, width, "past"),
                         sized(point.slope, n, "slope"),
                         point.t,
                         point.r,
                         point.count,
                         point.refresh};
        const auto *visits = checked_order(order, n);
        const auto count = static_cast<Index>(order.shape(0));
        const SgdQnPass pass =
            pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
              return sgd_qn_epoch(x, data, visits, count, state, poll);
            });
        point.t = state.t;
        point.r = state.r;
        point.count = state.count;
        point.refresh = state.refresh;
        return pass;
      },
      "examples"_a, "settings"_a, "order"_a, "state"_a, "stop"_a,
      "One pass of SGD-QN. The costs are the relative weights omega.");
}

}  // namespace dualgap

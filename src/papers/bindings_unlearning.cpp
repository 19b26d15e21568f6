#include "../core/bindings.hpp"
#include "unlearning.hpp"

namespace dualgap {

void bind_unlearning(nb::module_ &m) {
  nb::class_<UnlearningPass>(m, "UnlearningPass")
      .def_ro("visited", &UnlearningPass::visited)
      .def_ro("updates", &UnlearningPass::updates)
      .def_ro("unlearned", &UnlearningPass::unlearned, "updates that lowered a counter")
      .def_ro("gap", &UnlearningPass::gap, "estimate of the gap, from the visits");

  m.def(
      "unlearning_epoch",
      [](const Examples &examples, double s, Array<const Order> order, Array<double> a,
         Array<double> count, Stop &stop) {
        const Index n = examples.n;
        const UnlearningData data{examples.y.data(), examples.cost.data(),
                                  examples.q.data(), examples.loss, s};
        UnlearningState state{sized(a, examples.width(), "a"),
                              sized(count, n, "count")};
        const auto *visits = checked_order(order, n);
        const auto many = static_cast<Index>(order.shape(0));
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return unlearning_epoch(x, data, visits, many, state, poll);
        });
      },
      "examples"_a, "s"_a, "order"_a, "a"_a, "count"_a, "stop"_a, "One pass of MPU.");
}

}  // namespace dualgap

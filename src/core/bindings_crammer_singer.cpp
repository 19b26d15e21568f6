#include "bindings.hpp"
#include "certify.hpp"
#include "epochs/crammer_singer.hpp"
#include "random.hpp"

namespace dualgap {

namespace {

struct MulticlassExamples {
  AnyRows rows;
  Array<const std::int32_t> y;
  Array<const double> cost, q;
  Index classes;
  Index n = checked();

  Index checked() const {
    if (classes < 2) throw std::invalid_argument("classes must be 2 or more");
    const Index count = checked_lengths(rows.n(), {{y, "y"}, {cost, "cost"}, {q, "q"}});
    for (Index i = 0; i < count; ++i)
      if (y.data()[i] < 0 || y.data()[i] >= classes)
        throw std::invalid_argument("y names a class that does not exist");
    return count;
  }
  // Entries of a primal point.
  Index size() const { return rows.width() * class_stride(classes); }
  MulticlassData data() const { return {y.data(), cost.data(), q.data(), classes}; }
};

}  // namespace

void bind_crammer_singer(nb::module_ &m) {
  nb::class_<MulticlassExamples>(m, "MulticlassExamples",
                                 "Rows with their classes 0 to K - 1, costs c_i, and "
                                 "q_i = ||x_i||^2.")
      .def(nb::init<const AnyRows &, Array<const std::int32_t>, Array<const double>,
                    Array<const double>, Index>(),
           "rows"_a, "y"_a, "cost"_a, "q"_a, "classes"_a);
  made_of<Span<double>, Span<double>, Span<std::uint8_t>, Span<std::uint8_t>>(
      nb::class_<MulticlassState>(
          m, "MulticlassState", "A dual point, its w, and the counters of shrinking."),
      "alpha"_a, "w"_a, "wake"_a, "length"_a);
  nb::class_<MulticlassPass>(m, "MulticlassPass")
      .def_ro("visited", &MulticlassPass::visited)
      .def_ro("updates", &MulticlassPass::updates)
      .def_ro("gap", &MulticlassPass::gap, "estimate of the gap, from the visits")
      .def_ro("linear", &MulticlassPass::linear, "change of sum_i a_{i,y_i}");

  m.def(
      "crammer_singer_epoch",
      [](const MulticlassExamples &examples, const MulticlassState &state,
         Array<Order> order, Random &random, Stop &stop) {
        const Index n = examples.n, classes = examples.classes;
        checked_lengths(n * classes, {{state.alpha, "alpha"}});
        checked_lengths(examples.size(), {{state.w, "w"}});
        checked_lengths(n, {{state.wake, "wake"}, {state.length, "length"}});
        Order *visits = sized(order, n, "order");
        Vec scratch(3 * class_stride(classes));
        return pass_over(examples.rows, stop, [&](const auto &x, Poll &poll) {
          return crammer_singer_epoch(x, examples.data(), state, visits, scratch.data(),
                                      random, poll);
        });
      },
      "examples"_a, "state"_a, "order"_a, "random"_a, "stop"_a,
      "One pass over the rows that are awake; `order` receives them as visited.");

  m.def(
      "multiclass_feasible",
      [](const MulticlassExamples &examples, Array<double> alpha) {
        const Index n = examples.n;
        return multiclass_feasible(examples.data(), n,
                                   sized(alpha, n * examples.classes, "alpha"));
      },
      "examples"_a, "alpha"_a,
      "Moves alpha into the feasible set: how many rows were outside.");

  m.def(
      "multiclass_combine",
      [](const AnyRows &rows, Array<const double> alpha, Index classes, Array<double> w,
         TeamOrCount threads) {
        const double *a = sized(alpha, rows.n() * classes, "alpha");
        double *out = sized(w, rows.width() * class_stride(classes), "w");
        std::fill(out, out + rows.width() * class_stride(classes), 0.0);
        nb::gil_scoped_release released;
        rows.visit(
            [&](const auto &x) { multiclass_combine(x, a, classes, out, threads); });
      },
      "rows"_a, "alpha"_a, "classes"_a, "w"_a, "threads"_a = 1,
      "w_m <- sum_i a_im x_i; entry (j, m) is w[j s + m], s = K in whole eights.");

  m.def(
      "multiclass_values",
      [](const MulticlassExamples &examples, Array<const double> w,
         Maybe<const double> alpha, TeamOrCount threads) {
        const double *point = sized(w, examples.size(), "w");
        const double *a = sized(alpha, examples.n * examples.classes, "alpha");
        nb::gil_scoped_release released;
        return examples.rows.visit([&](const auto &x) {
          return multiclass_values(x, examples.data(), point, a, threads);
        });
      },
      "examples"_a, "w"_a, "alpha"_a.none(), "threads"_a = 1,
      "One pass: sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + e_im), sum_i a_{i,y_i}, and "
      "what bounds their rounding.");
}

}  // namespace dualgap

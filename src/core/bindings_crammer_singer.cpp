#include "bindings.hpp"
#include "epochs/crammer_singer.hpp"
#include "random.hpp"

namespace dualgap {

namespace {

MulticlassData multiclass_data(const AnyRows &rows, const Array<const std::int32_t> &y,
                               const Array<const double> &cost,
                               const Array<const double> &q, Index classes) {
  if (classes < 2) throw std::invalid_argument("classes must be 2 or more");
  const Index n = rows.n();
  const std::int32_t *codes = sized(y, n, "y");
  for (Index i = 0; i < n; ++i)
    if (codes[i] < 0 || codes[i] >= classes)
      throw std::invalid_argument("y names a class that does not exist");
  return {codes, sized(cost, n, "cost"), sized(q, n, "q"), classes};
}

}  // namespace

void bind_crammer_singer(nb::module_ &m) {
  m.def(
      "crammer_singer_epoch",
      [](const AnyRows &rows, Array<const std::int32_t> y, Array<const double> cost,
         Array<const double> q, Index classes, Array<double> alpha, Array<double> w,
         Array<std::uint8_t> wake, Array<std::uint8_t> length, Array<Order> order,
         Random &random, Stop &stop) {
        const MulticlassData data = multiclass_data(rows, y, cost, q, classes);
        const Index n = rows.n();
        const MulticlassState state{sized(alpha, n * classes, "alpha"),
                                    sized(w, rows.width() * class_stride(classes), "w"),
                                    sized(wake, n, "wake"), sized(length, n, "length")};
        Order *visits = sized(order, n, "order");
        std::vector<double> scratch(
            static_cast<std::size_t>(3 * class_stride(classes)));
        const MulticlassPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return crammer_singer_epoch(x, data, state, visits, scratch.data(), random,
                                        poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap, pass.linear);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "classes"_a,
      "alpha"_a.noconvert(), "w"_a.noconvert(), "wake"_a.noconvert(),
      "length"_a.noconvert(), "order"_a.noconvert(), "random"_a, "stop"_a,
      "One pass over the rows that are awake; `order` receives them as visited: "
      "(visited, updates, gap estimate, change of sum_i a_{i,y_i}).");

  m.def(
      "multiclass_feasible",
      [](const AnyRows &rows, Array<const std::int32_t> y, Array<const double> cost,
         Array<const double> q, Index classes, Array<double> alpha) {
        const MulticlassData data = multiclass_data(rows, y, cost, q, classes);
        return multiclass_feasible(data, rows.n(),
                                   sized(alpha, rows.n() * classes, "alpha"));
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "classes"_a,
      "alpha"_a.noconvert(),
      "Moves alpha into the feasible set: how many rows were outside.");

  m.def(
      "multiclass_combine",
      [](const AnyRows &rows, Array<const double> alpha, Index classes, Array<double> w,
         Team &threads) {
        const double *a = sized(alpha, rows.n() * classes, "alpha");
        double *out = sized(w, rows.width() * class_stride(classes), "w");
        std::fill(out, out + rows.width() * class_stride(classes), 0.0);
        rows.visit([&](const auto &x) {
          nb::gil_scoped_release released;
          multiclass_combine(x, a, classes, out, threads);
        });
      },
      "rows"_a, "alpha"_a.noconvert(), "classes"_a, "w"_a.noconvert(), "threads"_a = 1,
      "w_m <- sum_i a_im x_i; entry (j, m) is w[j s + m], s = K in whole eights.");

  m.def(
      "multiclass_values",
      [](const AnyRows &rows, Array<const std::int32_t> y, Array<const double> cost,
         Array<const double> q, Index classes, Array<const double> w,
         Maybe<const double> alpha, Team &threads) {
        const MulticlassData data = multiclass_data(rows, y, cost, q, classes);
        const double *point = sized(w, rows.width() * class_stride(classes), "w");
        const double *a = sized(alpha, rows.n() * classes, "alpha");
        const Values values = rows.visit([&](const auto &x) {
          nb::gil_scoped_release released;
          return multiclass_values(x, data, point, a, threads);
        });
        return as_tuple(values);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "classes"_a,
      "w"_a.noconvert(), "alpha"_a.noconvert().none(), "threads"_a = 1,
      "One pass: sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + e_im), sum_i a_{i,y_i}, and "
      "what bounds their rounding (dualgap.problems.rounding.Values).");
}

}  // namespace dualgap

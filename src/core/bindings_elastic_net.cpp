#include "bindings.hpp"
#include "epochs/elastic_net.hpp"

namespace dualgap {

void bind_elastic_net(nb::module_ &m) {
  nb::class_<ElasticNetPenalty>(
      m, "ElasticNetPenalty",
      "Weights of the norms, a column without them or -1, and "
      "the violation or the sweeps that end a descent.")
      .def(nb::init<double, double, Index, double, Index>(), "l1"_a, "l2"_a, "free"_a,
           "target"_a, "most"_a);
  nb::class_<Descent>(m, "Descent", "Sweeps, and the largest violation that was met.")
      .def_ro("sweeps", &Descent::sweeps)
      .def_ro("violation", &Descent::violation);

  m.def(
      "column_products",
      [](const AnyRows &columns, Array<const Order> set, Array<const double> v,
         Array<double> out, Stop &stop) {
        const Order *chosen = checked_order(set, columns.n());
        const auto count = set.length();
        const double *vector = sized(v, columns.width(), "v");
        double *sums = sized(out, columns.n(), "out");
        return pass_over(columns, stop, [&](const auto &x, Poll &poll) {
          for (Index t = 0; t < count; ++t) {
            const Index j = chosen[t];
            look_ahead(x, chosen, t, count);
            if (poll(x.count(j))) return false;
            sums[j] = x.dot(j, vector);
          }
          return true;
        });
      },
      "columns"_a, "set"_a, "v"_a, "out"_a, "stop"_a,
      "The sums of v_i x_ij of some columns; whether all are there.");
  m.def(
      "add_squares",
      [](const AnyRows &rows, Array<const double> h, Array<double> sums) {
        const double *weights = sized(h, rows.n(), "h");
        double *squares = sized(sums, rows.width(), "sums");
        rows.visit([&](const auto &x) {
          for (Index i = 0; i < x.rows(); ++i)
            if (const double weight = weights[i]; weight != 0.0)
              x.for_each(i, [&](Index j, double a) { squares[j] += weight * a * a; });
        });
      },
      "rows"_a, "h"_a, "sums"_a, "Add up h_i x_ij^2 of all columns.");
  m.def(
      "add_products",
      [](const AnyRows &rows, Array<const double> h, Table<double> sums, Stop &stop) {
        const double *weights = sized(h, rows.n(), "h");
        check_shape(sums, rows.width(), rows.width(), "sums");
        return pass_over(rows, stop, [&](const auto &x, Poll &poll) {
          return add_products(x, weights, sums.data(), poll);
        });
      },
      "rows"_a, "h"_a, "sums"_a, "stop"_a,
      "Add h_i x_ij x_ik of columns that ascend; whether all rows are in it.");
  m.def(
      "add_columns",
      [](const AnyRows &columns, Array<const Order> set, Array<const double> w,
         Array<double> out) {
        const Order *chosen = checked_order(set, columns.n());
        const double *weights = sized(w, columns.n(), "w");
        double *sums = sized(out, columns.width(), "out");
        columns.visit([&](const auto &x) {
          for (Index t = 0; t < set.length(); ++t)
            if (weights[chosen[t]] != 0.0) x.axpy(chosen[t], weights[chosen[t]], sums);
        });
      },
      "columns"_a, "set"_a, "w"_a, "out"_a, "Add some columns times their weights.");
  m.def(
      "descend_by_columns",
      [](const AnyRows &columns, const ElasticNetPenalty &penalty,
         Array<const double> h, Array<double> u, Array<double> w, Stop &stop) {
        const double *curvature = sized(h, columns.width(), "h");
        double *slopes = sized(u, columns.width(), "u");
        double *model = sized(w, columns.n(), "w");
        return pass_over(columns, stop, [&](const auto &x, Poll &poll) {
          QuadraticOfColumns<std::decay_t<decltype(x)>> of{x, curvature, slopes};
          return descend(of, penalty, x.rows(), model, poll);
        });
      },
      "columns"_a, "penalty"_a, "h"_a, "u"_a, "w"_a, "stop"_a,
      "Coordinate descent over columns.");
  m.def(
      "descend_by_products",
      [](Table<const double> products, const ElasticNetPenalty &penalty,
         Array<const double> diagonal, Array<double> u, Array<double> w, Stop &stop) {
        const auto size = products.length();
        check_length(products.columns(), size, "products");
        QuadraticOfProducts of{{products.data(), size, size, 0.0},
                               sized(diagonal, size, "diagonal"),
                               sized(u, size, "u")};
        double *model = sized(w, size, "w");
        return without_gil(
            stop, [&](Poll &poll) { return descend(of, penalty, size, model, poll); });
      },
      "products"_a, "penalty"_a, "diagonal"_a, "u"_a, "w"_a, "stop"_a,
      "Coordinate descent by the products of all columns.");
}

}  // namespace dualgap

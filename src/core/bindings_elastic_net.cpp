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
         Array<double> out, bool squared, Stop &stop) {
        const Order *chosen = checked_order(set, columns.n());
        const auto count = set.length();
        const double *vector = sized(v, columns.width(), "v");
        double *sums = sized(out, columns.n(), "out");
        return pass_over(columns, stop, [&](const auto &x, Poll &poll) {
          for (Index t = 0; t < count; ++t) {
            const Index j = chosen[t];
            look_ahead(x, chosen, t, count);
            if (poll(x.count(j))) return false;
            sums[j] = 0.0;
            if (squared)
              x.for_each(j, [&](Index i, double a) { sums[j] += vector[i] * a * a; });
            else
              sums[j] = x.dot(j, vector);
          }
          return true;
        });
      },
      "columns"_a, "set"_a, "v"_a, "out"_a, "squared"_a, "stop"_a,
      "The sums of v_i x_ij, or of v_i x_ij^2, of some columns; whether all are "
      "there.");
  m.def(
      "add_products",
      [](const AnyRows &rows, Array<const std::int32_t> place, Array<const double> h,
         Table<double> sums, Stop &stop) {
        const std::int32_t *places = sized(place, rows.width(), "place");
        const double *weights = sized(h, rows.n(), "h");
        const auto size = sums.length();
        check_length(sums.columns(), size, "sums");
        for (Index j = 0; j < rows.width(); ++j)
          if (places[j] >= size) throw std::invalid_argument("place is out of range");
        return pass_over(rows, stop, [&](const auto &x, Poll &poll) {
          return add_products(x, places, size, weights, sums.data(), poll);
        });
      },
      "rows"_a, "place"_a, "h"_a, "sums"_a, "stop"_a,
      "Add up h_i x_ij x_ik of some columns; whether all rows are in it.");
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
      [](const AnyRows &columns, Array<const Order> set,
         const ElasticNetPenalty &penalty, Array<const double> h,
         Array<const double> squares, Array<double> u, Array<double> w, Stop &stop) {
        const Order *chosen = checked_order(set, columns.n());
        const double *curvature = sized(h, columns.width(), "h");
        const double *bent = sized(squares, columns.n(), "squares");
        double *slopes = sized(u, columns.width(), "u");
        double *model = sized(w, columns.n(), "w");
        return pass_over(columns, stop, [&](const auto &x, Poll &poll) {
          QuadraticOfColumns<std::decay_t<decltype(x)>> of{x, curvature, bent, slopes};
          return descend(of, penalty, chosen, set.length(), model, poll);
        });
      },
      "columns"_a, "set"_a, "penalty"_a, "h"_a, "squares"_a, "u"_a, "w"_a, "stop"_a,
      "Coordinate descent over some columns.");
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
        Vector<Order> all(size);
        for (Index j = 0; j < size; ++j) all[j] = static_cast<Order>(j);
        return without_gil(stop, [&](Poll &poll) {
          return descend(of, penalty, all.data(), size, model, poll);
        });
      },
      "products"_a, "penalty"_a, "diagonal"_a, "u"_a, "w"_a, "stop"_a,
      "Coordinate descent by the products of all columns.");
}

}  // namespace dualgap

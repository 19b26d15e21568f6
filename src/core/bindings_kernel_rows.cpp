#include "bindings_kernel.hpp"
#include "gram/kernel_rows.hpp"
#include "gram/row_errors.hpp"

namespace dualgap {

// Compiled in bindings_kernel_times.cpp.
extern template bool add_times(const Addition &, Poll &, const Postings<float> *,
                               const Panels<float> *);
extern template bool add_times(const Addition &, Poll &, const Postings<double> *,
                               const Panels<double> *);

// Compiled in bindings_pairs.cpp.
extern template bool KernelRows::dense_rows<double>(const KernelMap &, const Order *,
                                                    Index, const Order *, Index,
                                                    double *const *, Poll &) const;
extern template bool KernelRows::dense_rows<float>(const KernelMap &, const Order *,
                                                   Index, const Order *, Index,
                                                   simd::Fixed *const *, Poll &) const;

namespace {

Vector<float *> rows_of(const Table<float> &table) {
  Vector<float *> rows(table.length());
  for (Index t = 0; t < rows.size(); ++t) rows[t] = table.data() + t * table.columns();
  return rows;
}

// Checks the arguments, and adds to out_j the sums of add(who, coef, m, at, sums,
// poll).
template <class Add>
bool add_at(const KernelRows &rows, const Array<const Order> &who,
            const Array<const double> &coef, const Maybe<const Order> &at,
            const Array<double> &out, Stop &stop, const Add &add) {
  const Order *order = checked_order(who, rows.n());
  const auto m = who.length();
  const double *c = sized(coef, m, "coef");
  Some some{nullptr, rows.n()};
  if (at) some = {checked_order(*at, rows.n()), at->length()};
  double *to = sized(out, some.count, "out");
  Vec sums(tile::in_panels(some.count));
  const bool whole = without_gil(stop, [&](Poll &poll) {
    return add(order, c, m, some, sums.data(), std::ref(poll));
  });
  for (Index j = 0; j < some.count; ++j) to[j] += sums[j];
  return whole;
}

}  // namespace

void bind_kernel_rows(nb::module_ &m) {
  nb::class_<KernelRows, RowSource>(m, "KernelRows",
                                    "Kernel values of the rows of a matrix.")
      .def(
          "__init__",
          [](KernelRows *self, const AnyRows &rows, const KernelMap &kernel,
             Maybe<const Order> named, bool dense, Index threads) {
            KernelMap map = kernel;
            auto points = points_of(rows, named);
            nb::gil_scoped_release released;
            new (self) KernelRows(std::move(points), std::move(map), dense, threads);
          },
          "rows"_a, "kernel"_a, "named"_a.none(), "dense"_a, "threads"_a,
          nb::keep_alive<1, 2>())
      .def_prop_ro("dense", &KernelRows::dense, "whether the points were packed")
      .def_prop_ro("largest_half_self", &KernelRows::largest_half_self)
      .def_prop_ro(
          "by_products",
          [](const KernelRows &self) {
            return self.placement().of_all() == Way::kDouble;
          },
          "whether products in float64 do for the values of all points")
      .def_prop_ro(
          "centre",
          [](const KernelRows &self) {
            Vec centre = self.map().centre;
            centre.resize(self.points().d(), 0.0);
            return NewArray<const double>({centre.data(),
                                           {static_cast<std::size_t>(centre.size())},
                                           nb::handle()},
                                          nb::rv_policy::copy);
          },
          "what is subtracted from dense points before their products")
      .def_prop_rw("precise", &KernelRows::precise, &KernelRows::set_precise,
                   "whether values of rows are computed in float64")
      .def_prop_rw("shifted", &KernelRows::shifted, &KernelRows::set_shifted,
                   "whether precise rows hold K - 1 instead of K (rbf and laplacian)")
      .def(
          "rows",
          [](const KernelRows &self, Array<const Order> who, Table<float> out,
             Stop &stop) {
            const Order *order = checked_order(who, self.n());
            check_shape(out, who.length(), self.stride(), "out");
            const Vector<float *> to = rows_of(out);
            return without_gil(stop, [&](Poll &poll) {
              return self.rows(order, who.length(), to.data(), poll);
            });
          },
          "who"_a, "out"_a, "stop"_a,
          "out[t, j] <- k(x_who[t], x_j); out has n columns rounded up to 32s. "
          "False if told to leave.")
      .def(
          "cross",
          [](const KernelRows &self, Array<const Order> who, Array<const Order> columns,
             Table<float> out, Stop &stop) {
            const Order *order = checked_order(who, self.n());
            const Order *at = checked_order(columns, self.n());
            const Index many = columns.length();
            check_shape(out, who.length(), tile::in_panels(many), "out");
            const Vector<float *> to = rows_of(out);
            return without_gil(stop, [&](Poll &poll) {
              return self.cross(order, who.length(), at, many, to.data(), poll);
            });
          },
          "who"_a, "columns"_a, "out"_a, "stop"_a,
          "out[t, s] <- k(x_who[t], x_columns[s]); out has as many columns, rounded up "
          "to 32s. False if told to leave.")
      .def(
          "add_rows",
          [](const KernelRows &self, Array<const Order> who, Array<const double> coef,
             Maybe<const Order> at, Array<double> out, Stop &stop) {
            return add_at(self, who, coef, at, out, stop,
                          [&](auto... a) { return self.add_rows(a...); });
          },
          "who"_a, "coef"_a, "at"_a.none(), "out"_a, "stop"_a,
          "out_j += sum_t coef_t k(x_who[t], x_at[j]), values as in `rows`; all "
          "rows where `at` is None. False if told to leave.")
      .def_prop_ro("bounded", &KernelRows::bounded,
                   "whether `times` bounds the errors of the kernel values")
      .def(
          "times",
          [](const KernelRows &self, Array<const Order> who, Array<const double> coef,
             Maybe<const Order> at, Array<double> out, Maybe<double> errors,
             Stop &stop) {
            const auto count = out.length();
            double *off = sized(errors, count, "errors");
            return add_at(self, who, coef, at, out, stop,
                          [&](const Order *rows, const double *c, Index terms,
                              Some targets, double *sums, Poll &poll) {
                            return self.times(rows, c, terms, targets, sums, off, poll);
                          });
          },
          "who"_a, "coef"_a, "at"_a.none(), "out"_a, "errors"_a.none(), "stop"_a,
          "As add_rows, all in float64. Where `bounded` is true, errors_j, if it is "
          "given, becomes no less than what was added to out_j is off.")
      .def(
          "errors",
          [](const KernelRows &self, bool fixed, Array<double> out) {
            double *to = sized(out, self.n(), "out");
            nb::gil_scoped_release released;
            row_errors(self, fixed, to);
          },
          "fixed"_a, "out"_a,
          "out_i >= |k - k(x_i, x_j)| for the values of `rows` and all j, and what it "
          "costs to add one up; infinity where no bound is known.")
      .def(
          "sum_errors",
          [](const KernelRows &self, Array<double> out) {
            double *to = sized(out, self.n(), "out");
            nb::gil_scoped_release released;
            return sum_errors(self, to);
          },
          "out"_a,
          "Sums of `add_rows` are off by at most out_i S_i + a M, where S_i is the sum "
          "of |coef k(x, x_i)|, and M of |coef|. Returns a; out_i is infinite where no "
          "bound is known.");
}

}  // namespace dualgap

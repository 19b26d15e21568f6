#include "bindings.hpp"
#include "gram/kernel_rows.hpp"
#include "gram/packed_vectors.hpp"
#include "gram/row_errors.hpp"

#include <nanobind/stl/unique_ptr.h>

namespace dualgap {

namespace {

tile::Shape shape_of(const std::string &kernel) {
  if (kernel == "linear") return tile::Shape::kLinear;
  if (kernel == "rbf") return tile::Shape::kExponential;
  if (kernel == "laplacian") return tile::Shape::kLaplacian;
  if (kernel == "poly") return tile::Shape::kPolynomial;
  if (kernel == "sigmoid") return tile::Shape::kSigmoid;
  throw std::invalid_argument("kernel: " + kernel);
}

// Kernel rows that Python computes. `block(who, columns, precise)` returns them, of
// shape (len(who), len(columns)), as float64 if `precise`, else as float32; `columns`
// is None for all columns.
class PythonRows final : public RowSource {
 public:
  PythonRows(Index n, nb::object block)
      : RowSource(1), n_(n), block_(std::move(block)) {}
  Index n() const override { return n_; }
  double cost() const override { return 10.0; }
  bool rows(const Order *who, Index m, float *const *out, Poll &poll) const override {
    return values(who, m, nullptr, n_, out, poll);
  }
  bool cross(const Order *who, Index m, const Order *columns, Index many,
             float *const *out, Poll &poll) const override {
    return values(who, m, columns, many, out, poll);
  }
  bool add_rows(const Order *who, const double *coef, Index m, double *sums,
                Poll &poll) const override {
    FloatVec row(stride());
    float *to = row.data();
    for (Index t = 0; t < m; ++t) {
      if (!rows(who + t, 1, &to, poll)) return false;
      for (Index j = 0; j < n_; ++j) sums[j] += coef[t] * static_cast<double>(to[j]);
    }
    return true;
  }
  void row(Index i, float *out) const override {
    const auto who = static_cast<Order>(i);
    fetch<double>(&who, 1, nullptr, n_, [&](Index, const double *values) {
      std::transform(values, values + n_, out,
                     [](double v) { return static_cast<float>(v); });
    });
  }
  void block(const Order *who, Index m, const Order *columns, Index many, double *out,
             Index stride) const override {
    fetch<double>(who, m, columns, many, [&](Index t, const double *values) {
      std::copy_n(values, many, out + t * stride);
    });
  }

 private:
  using Numbers = nb::ndarray<nb::numpy, const Order, nb::ndim<1>>;
  static nb::object numbers(const Order *who, Index m) {
    return nb::cast(Numbers(who, {static_cast<std::size_t>(m)}, nb::handle()),
                    nb::rv_policy::copy);
  }
  // Calls take(t, values) with every row.
  template <class T, class Take>
  void fetch(const Order *who, Index m, const Order *columns, Index many,
             const Take &take) const {
    nb::gil_scoped_acquire gil;
    const auto values = nb::cast<Table<const T>>(
        block_(numbers(who, m), columns ? numbers(columns, many) : nb::none(),
               std::is_same_v<T, double>));
    if (values.length() != m || values.columns() != many)
      throw std::invalid_argument("the kernel returned a block of another shape");
    for (Index t = 0; t < m; ++t) take(t, values.data() + t * many);
  }
  bool values(const Order *who, Index m, const Order *columns, Index many,
              float *const *out, Poll &poll) const {
    // A few rows at a time, because a call of Python cannot be stopped early.
    constexpr Index kSome = 16;
    for (Index first = 0; first < m; first += kSome) {
      const Index some = std::min(kSome, m - first);
      fetch<float>(who + first, some, columns, many, [&](Index t, const float *row) {
        std::copy_n(row, many, out[first + t]);
      });
      if (poll(some * many)) return false;
    }
    return true;
  }

  Index n_;
  nb::object block_;
};

std::unique_ptr<Points> points_of(const AnyRows &rows,
                                  const Maybe<const Order> &named) {
  Vector<Order> who;
  if (named) {
    const Order *order = checked_order(*named, rows.n());
    who.assign(order, order + named->shape(0));
  }
  return rows.visit([&](const auto &x) -> std::unique_ptr<Points> {
    using Rows = std::decay_t<decltype(x)>;
    return std::make_unique<PointsOf<Rows>>(x, std::move(who), !named);
  });
}

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

// How to compute products: from dense packed rows, and all in float64.
struct ProductSettings {
  bool dense, precise;
  Index threads;
};

}  // namespace

void bind_kernel_rows(nb::module_ &m) {
  nb::class_<RowSource>(m, "RowSource", "Rows of a kernel matrix.")
      .def_prop_ro("n", &RowSource::n)
      .def_prop_ro("fixed", &RowSource::fixed,
                   "whether all values are from 0 to 1, so that 16 bits may hold them");

  nb::class_<PythonRows, RowSource>(m, "PythonRows",
                                    "Rows of a kernel matrix that Python computes.")
      .def(nb::init<Index, nb::object>(), "n"_a, "block"_a);

  nb::class_<KernelMap>(m, "KernelMap", "A kernel by its name and parameters.")
      .def(
          "__init__",
          [](KernelMap *self, const std::string &name, double gamma, double coef0,
             int degree) {
            new (self) KernelMap(KernelMap::of(shape_of(name), gamma, coef0, degree));
          },
          "name"_a, "gamma"_a, "coef0"_a, "degree"_a);
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
          "costs to add one up; infinity where no bound is known.");

  m.def(
      "class_weights",
      [](const AnyRows &rows, Table<const double> coef, Array<const std::int64_t> ends,
         Table<double> out) {
        const auto outputs = coef.length();
        const auto n = coef.columns();
        const auto classes = ends.length();
        check_length(n, rows.n(), "coef");
        check_shape(out, classes * outputs, rows.width(), "out");
        Index first = 0;
        rows.visit([&](const auto &x) {
          for (Index k = 0; k < classes; ++k) {
            const Index end = ends.data()[k];
            if (end < first || end > n) throw std::invalid_argument("ends");
            for (; first < end; ++first)
              for (Index o = 0; o < outputs; ++o) {
                const double c = coef.data()[o * n + first];
                if (c == 0.0) continue;
                x.axpy(first, c, out.data() + (k * outputs + o) * rows.width());
              }
          }
        });
      },
      "rows"_a, "coef"_a, "ends"_a, "out"_a,
      "out[k outputs + o] += sum_i coef[o, i] x_i over the rows i of class k, those up "
      "to ends[k] that no class before it has.");

  nb::class_<ProductSettings>(m, "ProductSettings",
                              "Whether to pack the rows as dense ones, whether to "
                              "compute in float64, and the threads.")
      .def(nb::init<bool, bool, Index>(), "dense"_a, "precise"_a, "threads"_a);
  m.def(
      "kernel_times",
      [](const KernelMap &kernel, const AnyRows &rows, Table<const double> coef,
         Array<const std::int64_t> ends, const AnyRows &targets, Table<double> out,
         const ProductSettings &settings, Stop &stop) {
        KernelMap map = kernel;
        const auto points = points_of(rows, std::nullopt);
        const auto to = points_of(targets, std::nullopt);
        const auto outputs = coef.length();
        const auto many = ends.length();
        const Index n = to->n(), vectors = points->n();
        check_length(to->d(), points->d(), "a row");
        check_length(coef.columns(), vectors, "coef");
        check_shape(out, many * outputs, n, "out");
        const Index room = tile::in_panels(n);
        Vec sums(room * many * outputs);
        Vector<double *> each(many * outputs);
        for (Index o = 0; o < each.size(); ++o) each[o] = sums.data() + o * room;
        Vector<Part> parts;
        Index first = 0;
        for (Index g = 0; g < many; ++g) {
          const Index end = ends.data()[g];
          if (end < first || end > vectors) throw std::invalid_argument("ends");
          parts.push_back({first, end - first, each.data() + g * outputs});
          first = end;
        }
        const bool whole = without_gil(stop, [&](Poll &poll) {
          Team team(settings.threads);
          return add_placed(std::move(map), settings.dense, settings.precise, *points,
                            coef.data(), outputs, parts, *to, team, poll);
        });
        for (Index o = 0; o < each.size(); ++o)
          std::copy(each[o], each[o] + n, out.data() + o * n);
        return whole;
      },
      "kernel"_a, "rows"_a, "coef"_a, "ends"_a, "targets"_a, "out"_a, "settings"_a,
      "stop"_a,
      "For every part p of the rows, those up to ends[p] that no part before it has: "
      "out[p outputs + o, j] <- sum_i coef[o, i] k(x_i, z_j), sums in float64. Values "
      "are off by 1e-8 at most where they are from 0 to 1; by 1e-4, in float32, unless "
      "`precise`. False if told to leave.");

  nb::class_<PackedVectors>(
      m, "PackedVectors",
      "Dense copies of the rows and the coefficients of kernel_times, for few targets.")
      .def(
          "__init__",
          [](PackedVectors *self, const KernelMap &kernel, const AnyRows &rows,
             Table<const double> coef, Array<const std::int64_t> ends, bool precise) {
            const auto points = points_of(rows, std::nullopt);
            check_length(coef.columns(), points->n(), "coef");
            const Vector<Index> of(ends.data(), ends.data() + ends.shape(0));
            if (of.empty() || of.front() < 0 || of.back() > points->n() ||
                !std::is_sorted(of.begin(), of.end()))
              throw std::invalid_argument("ends");
            nb::gil_scoped_release released;
            new (self)
                PackedVectors(kernel, precise, *points, coef.data(), coef.length(), of);
          },
          "kernel"_a, "rows"_a, "coef"_a, "ends"_a, "precise"_a)
      .def(
          "times",
          [](const PackedVectors &self, const AnyRows &targets, Table<double> out) {
            const auto to = points_of(targets, std::nullopt);
            check_length(to->d(), self.d(), "a row");
            check_shape(out, self.sums(), to->n(), "out");
            nb::gil_scoped_release released;
            self.times(*to, out.data());
          },
          "targets"_a, "out"_a, "Writes what kernel_times writes, with the same bits.");
}

}  // namespace dualgap

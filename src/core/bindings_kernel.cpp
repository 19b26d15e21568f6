#include "bindings_kernel.hpp"
#include "gram/gram.hpp"
#include "shapley.hpp"

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

KernelPoint kernel_point(const Array<const std::int8_t> &y,
                         const Array<const double> &cost,
                         const Array<const double> &alpha,
                         const Array<const double> &scores,
                         const Array<const double> &error) {
  const auto n = alpha.length();
  return {n,
          sized(y, n, "y"),
          sized(cost, n, "cost"),
          alpha.data(),
          sized(scores, n, "scores"),
          sized(error, n, "error")};
}

void bind_records(nb::module_ &m) {
  nb::class_<GramStatistics>(m, "GramStatistics", "What a kernel matrix has done.")
      .def_ro("hits", &GramStatistics::hits)
      .def_ro("misses", &GramStatistics::misses)
      .def_ro("evaluations", &GramStatistics::evaluations);
  nb::class_<KernelScalars>(
      m, "KernelScalars",
      "The share `own` of a penalised bias, the bias, the factor "
      "of the model, the shift of the diagonal, the relative error "
      "of sum_i alpha_i y_i, and the underflow of a kernel value.")
      .def(nb::init<double, double, double, double, double, double>(), "own"_a,
           "bias"_a, "factor"_a, "shift"_a, "adding"_a, "underflow"_a);
  nb::class_<KernelSums>(m, "KernelSums", "Sums over the rows of a kernel problem.")
      .def_ro("alpha", &KernelSums::alpha)
      .def_ro("reach", &KernelSums::reach, "of |alpha|")
      .def_ro("bent", &KernelSums::bent, "of delta alpha^2")
      .def_ro("loss", &KernelSums::loss)
      .def_ro("loss_error", &KernelSums::loss_error)
      .def_ro("norm", &KernelSums::norm, "alpha' Q alpha")
      .def_ro("norm_error", &KernelSums::norm_error)
      .def_ro("size", &KernelSums::size, "size of its terms");
  nb::class_<FreeBias>(m, "FreeBias",
                       "An unpenalised bias: sum_i alpha_i y_i, the relative error of "
                       "such a sum, P of the zero model, and a bound on sqrt(k_ii).")
      .def(nb::init<double, double, double, double>(), "off"_a, "adding"_a, "zero"_a,
           "longest"_a);
  nb::class_<ScoreSizes>(
      m, "ScoreRoundings",
      "Bounds on sqrt(k_ii), `lengths`. A score is off by at most (each s + more) "
      "sqrt(k_ii) sum_j alpha_j sqrt(k_jj), s the number of terms; a sum of alpha by "
      "`adding` times itself; a kernel value by `underflow`.")
      .def(nb::init<Array<const double>, double, double, double, double>(), "lengths"_a,
           "each"_a, "more"_a, "adding"_a, "underflow"_a);
}

}  // namespace

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

void bind_kernel(nb::module_ &m) {
  bind_records(m);
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
  nb::class_<Gram>(m, "Gram", "The kernel matrix on demand, float32 rows cached.")
      .def(nb::init<const RowSource &, Index>(), "rows"_a, "capacity"_a,
           nb::keep_alive<1, 2>())
      .def_prop_ro("n", &Gram::n)
      .def_prop_ro("capacity", &Gram::capacity, "rows held at most")
      .def_prop_ro("held", &Gram::held, "rows for which there is memory")
      .def(
          "holds",
          [](const Gram &self, Index i) {
            return i >= 0 && i < self.n() && self.holds(i);
          },
          "i"_a)
      .def_prop_ro("statistics", [](const Gram &self) { return self.statistics(); })
      .def(
          "row",
          [](Gram &self, Index i, Array<float> out) {
            if (i < 0 || i >= self.n()) throw std::out_of_range("no such row");
            float *to = sized(out, self.n(), "out");
            nb::gil_scoped_release released;
            const std::lock_guard lock(self.mutex());
            const float *values = self.row(i);
            std::copy(values, values + self.n(), to);
          },
          "i"_a, "out"_a)
      .def(
          "block",
          [](Gram &self, Array<const Order> rows, Array<const Order> columns,
             Array<double> out) {
            const auto queries = rows.length();
            const auto many = columns.length();
            const Order *query = checked_order(rows, self.n());
            const Order *column = checked_order(columns, self.n());
            double *to = sized(out, queries * many, "out");
            nb::gil_scoped_release released;
            const std::lock_guard lock(self.mutex());
            self.block(
                queries, [&](Index q) { return query[q]; }, many,
                [&](Index t) { return column[t]; }, to, many);
          },
          "rows"_a, "columns"_a, "out"_a);

  m.def(
      "kernel_sums",
      [](Array<const std::int8_t> y, Array<const double> cost, const Loss &loss,
         Array<const double> alpha, Array<const double> scores,
         Array<const double> error, const KernelScalars &scalars) {
        return kernel_sums(kernel_point(y, cost, alpha, scores, error), loss, scalars);
      },
      "y"_a, "cost"_a, "loss"_a, "alpha"_a, "scores"_a, "error"_a, "scalars"_a,
      "Sums over the rows of a kernel problem, given its scores and their errors.");

  nb::class_<KernelValues>(
      m, "KernelValues",
      "P and D as computed, and how far the exact P may be above and D below.")
      .def_ro("primal", &KernelValues::primal)
      .def_ro("primal_error", &KernelValues::primal_error)
      .def_ro("dual", &KernelValues::dual)
      .def_ro("dual_error", &KernelValues::dual_error);
  m.def(
      "kernel_values",
      [](const KernelSums &sums, double lost, const FreeBias *free, double s) {
        return kernel_values(sums, lost, free, s);
      },
      "sums"_a, "lost"_a, "free"_a.none(), "s"_a = 1.0,
      "P of the model s alpha and D of s alpha. The losses of the sums are those at s "
      "alpha and s bias, the other sums those at alpha. `lost` bounds the underflow of "
      "sums.");

  m.def(
      "hinge_bias",
      [](Array<const double> scores, Array<const std::int8_t> y,
         Array<const double> cost) {
        const auto n = scores.length();
        return hinge_bias(scores.data(), sized(y, n, "y"), sized(cost, n, "cost"), n);
      },
      "scores"_a, "y"_a, "cost"_a,
      "A b that minimises sum_i c_i max(0, 1 - y_i (scores_i + b)).");

  m.def(
      "weighted_quantile",
      [](Array<const double> points, Array<const double> weight, double target) {
        const auto n = points.length();
        if (n < 1) throw std::invalid_argument("no points");
        return weighted_quantile(points.data(), sized(weight, n, "weight"), n, target);
      },
      "points"_a, "weight"_a, "target"_a,
      "The point below which the weights sum to the target; the middle of an "
      "interval.");
  m.def(
      "shapley_sums",
      [](Table<const double> A, Table<const double> B, Array<const double> nodes,
         Array<const double> weights, Table<double> sums) {
        const Index d = A.length(), vectors = A.columns();
        const Index rows = vectors > 0 ? B.columns() / vectors : 0;
        check_shape(B, d, rows * vectors, "B");
        check_shape(sums, d, vectors, "sums");
        const Index count = nodes.length();
        const double *part = sized(weights, count, "weights");
        nb::gil_scoped_release released;
        shapley_sums({A.data(), B.data(), d, rows, vectors},
                     {nodes.data(), part, count}, sums.data());
      },
      "A"_a, "B"_a, "nodes"_a, "weights"_a, "sums"_a,
      "Writes what each feature adds, by support vector, summed over background rows. "
      "`A`: factors of a row, (d, vectors); `B`: of the background, (d, rows "
      "vectors).");
}

}  // namespace dualgap

#include "bindings.hpp"
#include "epochs/frank_wolfe.hpp"
#include "epochs/kernel_pegasos.hpp"
#include "gram/gram.hpp"
#include "gram/proof.hpp"

#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace dualgap {

namespace {

nb::object numbers(const Order *data, Index m) {
  auto *copy = new Order[static_cast<std::size_t>(std::max<Index>(m, 1))];
  std::copy(data, data + m, copy);
  nb::capsule owner(copy, [](void *p) noexcept { delete[] static_cast<Order *>(p); });
  return nb::cast(nb::ndarray<nb::numpy, Order, nb::ndim<1>>(
      copy, {static_cast<std::size_t>(m)}, owner));
}

// A kernel matrix that Python computes. `rows(queries)` returns whole rows and
// `block(queries, columns)` some entries of rows, both as float64.
class PythonGram final : public Gram {
 public:
  PythonGram(Index n, Index capacity, nb::object rows, nb::object block)
      : Gram(n, capacity), rows_(std::move(rows)), block_(std::move(block)) {}

  // out_t += sum_j c_j k(x_rows[j], x_columns[t]), t < count, all in float64. Without
  // columns the sums are for all rows.
  void add_times(const Order *rows, const double *c, Index m, const Order *columns,
                 Index count, double *out, Poll &poll) {
    constexpr Index kRows = 32;
    for (Index q0 = 0; q0 < m; q0 += kRows) {
      const Index some = std::min(m - q0, kRows);
      {
        nb::gil_scoped_acquire gil;
        const nb::object queries = numbers(rows + q0, some);
        const auto values = nb::cast<Table<const double>>(
            columns ? block_(queries, numbers(columns, count)) : rows_(queries));
        check(values, some, count);
        for (Index q = 0; q < some; ++q)
          for (Index t = 0; t < count; ++t)
            out[t] += c[q0 + q] * values.data()[q * count + t];
      }
      statistics_.evaluations += some * count;
      if (poll(count * some)) break;
    }
  }

 protected:
  void compute(Index i, float *out) override {
    nb::gil_scoped_acquire gil;
    const auto query = static_cast<Order>(i);
    const auto values = nb::cast<Table<const double>>(rows_(numbers(&query, 1)));
    check(values, 1, n());
    for (Index j = 0; j < n(); ++j) out[j] = static_cast<float>(values.data()[j]);
    statistics_.evaluations += n();
  }
  void compute_block(const Order *queries, Index m, const std::vector<Order> &columns,
                     double *out, Index stride) override {
    nb::gil_scoped_acquire gil;
    const auto many = static_cast<Index>(columns.size());
    const auto values = nb::cast<Table<const double>>(
        block_(numbers(queries, m), numbers(columns.data(), many)));
    check(values, m, many);
    for (Index q = 0; q < m; ++q)
      std::copy_n(values.data() + q * many, many, out + q * stride);
  }

 private:
  static void check(const Table<const double> &values, Index rows, Index columns) {
    if (static_cast<Index>(values.shape(0)) != rows ||
        static_cast<Index>(values.shape(1)) != columns)
      throw std::invalid_argument("the kernel returned a block of another shape");
  }
  nb::object rows_, block_;
};

KernelFunction make_function(const std::string &shape, bool overlap, double gamma,
                             double coef0, int degree) {
  const auto known = [&] {
    if (shape == "linear") return Shape::kLinear;
    if (shape == "exponential") return Shape::kExponential;
    if (shape == "power") return Shape::kPower;
    if (shape == "tanh") return Shape::kTanh;
    throw std::invalid_argument("shape: " + shape);
  };
  return {known(), overlap, gamma, coef0, degree};
}

Method method_of(const std::string &name) {
  if (name == "fw") return Method::kFw;
  if (name == "mfw") return Method::kMfw;
  if (name == "swap") return Method::kSwap;
  if (name == "swap-2o") return Method::kSwap2o;
  if (name == "mdm") return Method::kMdm;
  throw std::invalid_argument("method: " + name);
}

// Checks the arrays of a simplex problem.
Simplex simplex_of(Gram &gram, const Maybe<const Order> &columns,
                   const Array<const double> &y, const Array<const double> &delta,
                   const Array<const double> &diagonal, const Array<double> &a,
                   const Array<double> &g, const Array<Order> &active, Index size) {
  const auto m = static_cast<Index>(a.shape(0));
  const Order *map = sized(columns, m, "columns");
  if (map)
    checked_order(*columns, gram.n());
  else
    check_length(m, gram.n(), "a");
  sized(active, m, "active");
  if (size < 1 || size > m) throw std::invalid_argument("size does not fit active");
  checked_order(active, m);
  return {&gram,
          map,
          m,
          sized(y, m, "y"),
          sized(delta, m, "delta"),
          sized(diagonal, m, "diagonal"),
          a.data(),
          sized(g, m, "g"),
          active.data(),
          size};
}

auto result(const Simplex &s, const SimplexWalk &walk) {
  return std::make_tuple(walk.steps, s.size, walk.p, walk.loss,
                         std::make_tuple(walk.swaps, walk.drops, walk.aways));
}

}  // namespace

void bind_kernel(nb::module_ &m) {
  nb::class_<Gram>(m, "Gram", "The kernel matrix on demand, float32 rows cached.")
      .def_prop_ro("n", &Gram::n)
      .def_prop_ro("capacity", &Gram::capacity, "rows held at most")
      .def_prop_ro("held", &Gram::held, "rows for which there is memory")
      .def(
          "holds",
          [](const Gram &self, Index i) {
            return i >= 0 && i < self.n() && self.holds(i);
          },
          "i"_a)
      .def_prop_ro("statistics",
                   [](const Gram &self) {
                     const GramStatistics &s = self.statistics();
                     return std::make_tuple(s.hits, s.misses, s.evaluations, s.copied);
                   })
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
          "i"_a, "out"_a.noconvert())
      .def(
          "block",
          [](Gram &self, Array<const Order> rows, Array<const Order> columns,
             Array<double> out) {
            const auto m = static_cast<Index>(rows.shape(0));
            const auto many = static_cast<Index>(columns.shape(0));
            const Order *query = checked_order(rows, self.n());
            const Order *column = checked_order(columns, self.n());
            double *to = sized(out, m * many, "out");
            nb::gil_scoped_release released;
            const std::lock_guard lock(self.mutex());
            self.block(
                m, [&](Index q) { return query[q]; }, many,
                [&](Index t) { return column[t]; }, to, many);
          },
          "rows"_a.noconvert(), "columns"_a.noconvert(), "out"_a.noconvert());

  nb::class_<PythonGram, Gram>(m, "PythonGram", "A kernel matrix that Python computes.")
      .def(
          "add_times",
          [](PythonGram &self, Array<const Order> rows, Array<const double> c,
             Maybe<const Order> columns, Array<double> out, Stop &stop) {
            const auto many = static_cast<Index>(rows.shape(0));
            const auto count = static_cast<Index>(out.shape(0));
            const Order *query = checked_order(rows, self.n());
            const double *weight = sized(c, many, "c");
            const Order *column = sized(columns, count, "columns");
            column ? (void)checked_order(*columns, self.n())
                   : check_length(count, self.n(), "out");
            without_gil(stop, [&](Poll &poll) {
              const std::lock_guard lock(self.mutex());
              self.add_times(query, weight, many, column, count, out.data(), poll);
              return 0;
            });
            return !stop.requested() && !stop.expired();
          },
          "rows"_a.noconvert(), "c"_a.noconvert(), "columns"_a.noconvert().none(),
          "out"_a.noconvert(), "stop"_a,
          "out_t += sum_j c_j k(x_rows[j], x_columns[t]), in float64. False if told to "
          "leave.");

  nb::class_<Classes>(m, "Classes",
                      "Rows class after class, for the kernel matrices of pairs.")
      .def(
          "gram",
          [](Classes &self, Index a, Index b, Index capacity) {
            for (const Index c : {a, b})
              if (c < 0 || c >= self.count()) throw std::out_of_range("no such class");
            if (a == b) throw std::invalid_argument("a pair has two classes");
            return self.gram(a, b, capacity);
          },
          "a"_a, "b"_a, "capacity"_a, nb::keep_alive<0, 1>());

  m.def(
      "rows_of_classes",
      [](const AnyRows &rows, const std::string &shape, bool overlap, double gamma,
         double coef0, int degree, const std::vector<Index> &bounds,
         const std::vector<Index> &capacities) {
        if (bounds.size() != capacities.size() + 1 || bounds.front() != 0 ||
            !std::is_sorted(bounds.begin(), bounds.end()))
          throw std::invalid_argument("bounds");
        const KernelFunction function =
            make_function(shape, overlap, gamma, coef0, degree);
        return rows.visit([&](const auto &x) -> std::unique_ptr<Classes> {
          using Rows = std::decay_t<decltype(x)>;
          check_length(bounds.back(), x.rows(), "bounds");
          return std::make_unique<ClassesOf<Rows>>(
              std::make_shared<RowsOfClasses<Rows>>(x, rows.stored(), function, bounds,
                                                    capacities));
        });
      },
      "rows"_a, "shape"_a, "overlap"_a, "gamma"_a, "coef0"_a, "degree"_a, "bounds"_a,
      "capacities"_a, nb::keep_alive<0, 1>());

  m.def(
      "rows_gram",
      [](const AnyRows &rows, const std::string &shape, bool overlap, double gamma,
         double coef0, int degree, Index capacity) {
        const KernelFunction function =
            make_function(shape, overlap, gamma, coef0, degree);
        return rows.visit([&](const auto &x) -> std::unique_ptr<Gram> {
          using Rows = std::decay_t<decltype(x)>;
          const std::vector<Index> bounds{0, x.rows()}, none{0};
          auto data = std::make_shared<RowsOfClasses<Rows>>(x, rows.stored(), function,
                                                            bounds, none);
          return std::make_unique<RowsGram<Rows>>(std::move(data), 0, -1, capacity);
        });
      },
      "rows"_a, "shape"_a, "overlap"_a, "gamma"_a, "coef0"_a, "degree"_a, "capacity"_a,
      nb::keep_alive<0, 1>());

  m.def(
      "python_gram",
      [](Index n, Index capacity, nb::object rows,
         nb::object block) -> std::unique_ptr<PythonGram> {
        return std::make_unique<PythonGram>(n, capacity, std::move(rows),
                                            std::move(block));
      },
      "n"_a, "capacity"_a, "rows"_a, "block"_a);

  m.def(
      "kernel_sums",
      [](Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> alpha, Array<const double> scores,
         Array<const double> error, const Loss &loss, double own, double bias,
         double factor, double shift, double adding, double underflow) {
        const auto n = static_cast<Index>(alpha.shape(0));
        const KernelPoint point{n,
                                sized(y, n, "y"),
                                sized(cost, n, "cost"),
                                alpha.data(),
                                sized(scores, n, "scores"),
                                sized(error, n, "error")};
        const KernelSums s =
            kernel_sums(point, loss, {own, bias, factor, shift, adding, underflow});
        return std::make_tuple(s.alpha, s.reach, s.bent, s.loss, s.loss_error, s.norm,
                               s.norm_error, s.size);
      },
      "y"_a.noconvert(), "cost"_a.noconvert(), "alpha"_a.noconvert(),
      "scores"_a.noconvert(), "error"_a.noconvert(), "loss"_a, "own"_a, "bias"_a,
      "factor"_a, "shift"_a, "adding"_a, "underflow"_a,
      "Sums over the rows of a kernel problem: alpha, |alpha|, delta alpha^2, the losses "
      "and their error, alpha' Q alpha, its error, and the size of its terms.");

  m.def(
      "hinge_bias",
      [](Array<const double> scores, Array<const std::int8_t> y,
         Array<const double> cost) {
        const auto n = static_cast<Index>(scores.shape(0));
        return hinge_bias(scores.data(), sized(y, n, "y"), sized(cost, n, "cost"), n);
      },
      "scores"_a.noconvert(), "y"_a.noconvert(), "cost"_a.noconvert(),
      "A b that minimises sum_i c_i max(0, 1 - y_i (scores_i + b)).");

  m.def(
      "weighted_quantile",
      [](Array<const double> points, Array<const double> weight, double target) {
        const auto n = static_cast<Index>(points.shape(0));
        if (n < 1) throw std::invalid_argument("no points");
        return weighted_quantile(points.data(), sized(weight, n, "weight"), n, target);
      },
      "points"_a.noconvert(), "weight"_a.noconvert(), "target"_a,
      "The point below which the weights sum to the target; the middle of an interval.");

  m.def(
      "frank_wolfe",
      [](Gram &gram, Maybe<const Order> columns, Array<const double> y,
         Array<const double> delta, Array<const double> diagonal, Array<double> a,
         Array<double> g, Array<Order> active, Index size, const std::string &method,
         bool clipped, Index steps, Stop &stop) {
        Simplex s = simplex_of(gram, columns, y, delta, diagonal, a, g, active, size);
        const Method kind = method_of(method);
        const Ranking ranking = clipped ? Ranking::kClipped : Ranking::kPaper;
        const SimplexWalk walk = without_gil(stop, [&](Poll &poll) {
          const std::lock_guard lock(gram.mutex());
          return s.columns ? full_steps<true>(s, kind, ranking, steps, poll)
                           : full_steps<false>(s, kind, ranking, steps, poll);
        });
        return result(s, walk);
      },
      "gram"_a, "columns"_a.noconvert().none(), "y"_a.noconvert(),
      "delta"_a.noconvert(), "diagonal"_a.noconvert(), "a"_a.noconvert(),
      "g"_a.noconvert(), "active"_a.noconvert(), "size"_a, "method"_a, "clipped"_a,
      "steps"_a, "stop"_a,
      "Steps on the full gradient. Returns (steps, size, p, loss, (swaps, drops, "
      "aways)); the loss is 0.");

  m.def(
      "frank_wolfe_sampled",
      [](Gram &gram, Maybe<const Order> columns, Array<const double> y,
         Array<const double> delta, Array<const double> diagonal, Array<double> a,
         Array<double> g, Array<Order> active, Index size, const std::string &method,
         bool clipped, Index steps, Index count, Array<const Order> order, Index split,
         Index vertex, Random &random, Stop &stop, double eps) {
        Simplex s = simplex_of(gram, columns, y, delta, diagonal, a, g, active, size);
        const Method kind = method_of(method);
        const Ranking ranking = clipped ? Ranking::kClipped : Ranking::kPaper;
        if (count < 1) throw std::invalid_argument("count must be positive");
        if (split < 0 || split > s.m) throw std::invalid_argument("split");
        if (vertex >= s.m) throw std::invalid_argument("vertex");
        if (split > 0) check_length(static_cast<Index>(order.shape(0)), s.m, "order");
        const Sample sample{count, checked_order(order, s.m), split};
        const SimplexWalk walk = without_gil(stop, [&](Poll &poll) {
          const std::lock_guard lock(gram.mutex());
          return sampled_steps(s, kind, ranking, steps, sample, vertex, eps, random,
                               poll);
        });
        return std::tuple_cat(result(s, walk), std::make_tuple(2.0 * walk.gap));
      },
      "gram"_a, "columns"_a.noconvert().none(), "y"_a.noconvert(),
      "delta"_a.noconvert(), "diagonal"_a.noconvert(), "a"_a.noconvert(),
      "g"_a.noconvert(), "active"_a.noconvert(), "size"_a, "method"_a, "clipped"_a,
      "steps"_a, "count"_a, "order"_a.noconvert(), "split"_a, "vertex"_a, "random"_a,
      "stop"_a, "eps"_a = -std::numeric_limits<double>::infinity(),
      "Steps with i from samples, until 2 (p - g_i) <= eps in one. Returns (steps, size, "
      "p, loss, (swaps, drops, aways), gap): the mean loss of drawn rows with a = 0, and "
      "2 (p - g_i) of the last sample.");

  m.def(
      "add_gradient",
      [](Gram &gram, Maybe<const Order> columns, Array<const double> y,
         Array<const double> delta, Array<const Order> rows, Array<const double> change,
         Array<double> g, Stop &stop) {
        const auto size = static_cast<Index>(g.shape(0));
        const Order *map = sized(columns, size, "columns");
        if (map)
          checked_order(*columns, gram.n());
        else
          check_length(size, gram.n(), "g");
        const auto many = static_cast<Index>(rows.shape(0));
        const Order *who = checked_order(rows, size);
        const double *c = sized(change, many, "change");
        sized(y, size, "y");
        sized(delta, size, "delta");
        Simplex s{};
        s.gram = &gram;
        s.columns = map;
        s.m = size;
        s.y = y.data();
        s.delta = delta.data();
        s.g = g.data();
        return without_gil(stop, [&](Poll &poll) {
          const std::lock_guard lock(gram.mutex());
          for (Index t = 0; t < many; ++t) {
            if (c[t] == 0.0) continue;
            const Index i = who[t];
            const float *k = gram.row(s.column(i));
            const double u = c[t] * s.y[i];
            s.g[i] += c[t] * s.delta[i];
            map ? move_gradient<true, 1>(s, 1.0, u, k, 0.0, nullptr)
                : move_gradient<false, 1>(s, 1.0, u, k, 0.0, nullptr);
            if (poll(size)) return t + 1;
          }
          return many;
        });
      },
      "gram"_a, "columns"_a.noconvert().none(), "y"_a.noconvert(),
      "delta"_a.noconvert(), "rows"_a.noconvert(), "change"_a.noconvert(),
      "g"_a.noconvert(), "stop"_a,
      "g += K change, for a change of some entries of a. Returns the entries done.");

  m.def(
      "kernel_pegasos",
      [](Gram &gram, Maybe<const Order> columns, const Loss &loss,
         Array<const double> y, Array<const double> omega, double lambda, Index budget,
         Index batch, double constant, Array<double> a, Array<double> g, Array<Order> active, Index size,
         Array<const Order> order, double t, Stop &stop) {
        const auto m = static_cast<Index>(a.shape(0));
        Simplex s{};
        s.gram = &gram;
        s.columns = sized(columns, m, "columns");
        s.columns ? (void)checked_order(*columns, gram.n())
                  : check_length(m, gram.n(), "a");
        s.m = m;
        s.y = sized(y, m, "y");
        s.a = a.data();
        s.g = sized(g, m, "g");
        s.active = sized(active, m, "active");
        s.size = size;
        if (size < 0 || size > m) throw std::invalid_argument("size");
        checked_order(active, m);
        s.constant = constant;
        if (batch < 1) throw std::invalid_argument("batch");
        const PegasosData data{loss,   s.y,    sized(omega, m, "omega"),
                               lambda, budget, batch};
        const Order *rows = checked_order(order, m);
        const auto many = static_cast<Index>(order.shape(0));
        const PegasosWalk walk = without_gil(stop, [&](Poll &poll) {
          const std::lock_guard lock(gram.mutex());
          return kernel_pegasos(s, data, rows, many, t, poll);
        });
        return std::make_tuple(walk.visited, walk.steps, walk.updates, s.size);
      },
      "gram"_a, "columns"_a.noconvert().none(), "loss"_a, "y"_a.noconvert(),
      "omega"_a.noconvert(), "lambda_"_a, "budget"_a, "batch"_a, "constant"_a,
      "a"_a.noconvert(), "g"_a.noconvert(), "active"_a.noconvert(), "size"_a, "order"_a.noconvert(), "t"_a,
      "stop"_a, "Kernelised Pegasos. Returns (visited, steps, updates, size).");

  m.def(
      "solve_small",
      [](Table<const float> H, Array<double> a, Array<double> g, double tol,
         Index steps, Stop &stop) {
        const auto q = static_cast<Index>(a.shape(0));
        const auto stride = static_cast<Index>(H.shape(1));
        if (q < 1 || q > stride || q > static_cast<Index>(H.shape(0)))
          throw std::invalid_argument("a does not fit H");
        double *gradient = sized(g, q, "g");
        return without_gil(stop, [&](Poll &poll) {
          return solve_small(H.data(), stride, q, a.data(), gradient, tol, steps, poll);
        });
      },
      "H"_a.noconvert(), "a"_a.noconvert(), "g"_a.noconvert(), "tol"_a, "steps"_a,
      "stop"_a, "min 1/2 a'Ha over the simplex, warm. Returns the steps made.");
}

}  // namespace dualgap

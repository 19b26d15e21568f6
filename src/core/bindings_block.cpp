#include "bindings_proof.hpp"
#include "gram/block.hpp"
#include "gram/kernel_rows.hpp"
#include "gram/packed_vectors.hpp"
#include "gram/row_errors.hpp"
#include "gram/whole.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

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
    if (static_cast<Index>(values.shape(0)) != m ||
        static_cast<Index>(values.shape(1)) != many)
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

// Checks the arguments, and adds to out_j the sums of add(who, coef, m, at, sums,
// poll).
template <class Add>
bool add_at(const KernelRows &rows, const Array<const Order> &who,
            const Array<const double> &coef, const Maybe<const Order> &at,
            const Array<double> &out, Stop &stop, const Add &add) {
  const Order *order = checked_order(who, rows.n());
  const auto m = static_cast<Index>(who.shape(0));
  const double *c = sized(coef, m, "coef");
  Some some{nullptr, rows.n()};
  if (at) some = {checked_order(*at, rows.n()), static_cast<Index>(at->shape(0))};
  double *to = sized(out, some.count, "out");
  const Index panels = (some.count + tile::kPanel - 1) / tile::kPanel;
  Vec sums(panels * tile::kPanel);
  const bool whole = without_gil(stop, [&](Poll &poll) {
    return add(order, c, m, some, sums.data(), std::ref(poll));
  });
  for (Index j = 0; j < some.count; ++j) to[j] += sums[j];
  return whole;
}

// A problem of the block solver, as Python holds it.
struct BoxProblem {
  Array<const double> y, cost, diagonal;
  ResidualLoss loss;
  Array<const double> linear;
  double total;
  bool two_sided, two_sums;

  BlockProblem taken(Index n) const {
    if (two_sums && two_sided) n *= 2;  // two variables for each row
    const auto take = [&](const Array<const double> &a, const char *name) {
      const double *data = sized(a, n, name);
      return Vec(data, data + n);
    };
    BlockProblem problem;
    problem.squared = !std::isfinite(loss.form.slope);
    problem.epsilon = loss.epsilon;
    problem.total = total;
    problem.two_sided = two_sided && !two_sums;
    problem.two_sums = two_sums;
    problem.above = loss.above;
    problem.below = loss.below;
    problem.y = take(y, "y");
    problem.cost = take(cost, "cost");
    problem.diagonal = take(diagonal, "diagonal");
    problem.p = take(linear, "linear");
    return problem;
  }
};

// Tables for the coefficients of all pairs and for their scores.
struct PairTables {
  Table<double> coef, scores;
};

// How to compute products: from dense packed rows, and all in float64.
struct ProductSettings {
  bool dense, precise;
  Index threads;
};

Inner small_problem(const Table<const float> &H, Index m) {
  check_length(static_cast<Index>(H.shape(0)), m, "H");
  check_length(static_cast<Index>(H.shape(1)), m, "a row of H");
  Inner inner(m);
  for (Index i = 0; i < m; ++i)
    std::copy_n(H.data() + i * m, m, inner.H.data() + i * inner.stride());
  for (Index i = m; i < inner.q; ++i) inner.s[i] = 1.0f;
  return inner;
}

}  // namespace

void bind_block(nb::module_ &m) {
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
            const auto many = static_cast<Index>(who.shape(0));
            if (static_cast<Index>(out.shape(0)) != many ||
                static_cast<Index>(out.shape(1)) != self.stride())
              throw std::invalid_argument("out does not fit");
            Vector<float *> to(many);
            for (Index t = 0; t < many; ++t) to[t] = out.data() + t * self.stride();
            return without_gil(stop, [&](Poll &poll) {
              return self.rows(order, many, to.data(), poll);
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
            const auto queries = static_cast<Index>(who.shape(0));
            const auto many = static_cast<Index>(columns.shape(0));
            const auto width = static_cast<Index>(out.shape(1));
            if (static_cast<Index>(out.shape(0)) != queries ||
                width != (many + tile::kPanel - 1) / tile::kPanel * tile::kPanel)
              throw std::invalid_argument("out does not fit");
            Vector<float *> to(queries);
            for (Index t = 0; t < queries; ++t) to[t] = out.data() + t * width;
            return without_gil(stop, [&](Poll &poll) {
              return self.cross(order, queries, at, many, to.data(), poll);
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
            const auto count = static_cast<Index>(out.shape(0));
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

  nb::class_<BoxProblem>(
      m, "BlockProblem",
      "Labels, costs and k(x_i, x_i); the loss; the linear term, the sum of "
      "the variables, and whether they have both signs. With two sums it is the sum "
      "for y = 1, and the negative of the other; a row with both signs then has two "
      "variables, first all with y = 1.")
      .def(nb::init<Array<const double>, Array<const double>, Array<const double>,
                    const ResidualLoss &, Array<const double>, double, bool, bool>(),
           "y"_a, "cost"_a, "diagonal"_a, "loss"_a, "linear"_a, "total"_a,
           "two_sided"_a, "two_sums"_a = false);
  nb::class_<BlockSolver>(m, "BlockSolver", "State of the block solver.")
      .def(
          "__init__",
          [](BlockSolver *self, RowSource &rows, const BoxProblem &problem, Index q,
             Index largest_q, Index cache_bytes, bool fixed, Random &random) {
            new (self) BlockSolver(rows, problem.taken(rows.n()), q, largest_q,
                                   cache_bytes, fixed, random);
          },
          "rows"_a, "problem"_a, "q"_a, "largest_q"_a, "cache_bytes"_a, "fixed"_a,
          "random"_a, nb::keep_alive<1, 2>())
      .def_prop_ro("n", &BlockSolver::n, "rows")
      .def_prop_ro("q", &BlockSolver::q, "rows of a working set")
      .def_prop_ro("steps", &BlockSolver::steps, "inner steps so far")
      .def_prop_ro("computed", &BlockSolver::computed, "kernel rows computed so far")
      .def_prop_ro(
          "seconds",
          [](const BlockSolver &self) {
            return std::map<std::string, double>{
                {"select", self.seconds(Phase::kSelect)},
                {"rows", self.seconds(Phase::kRows)},
                {"matrix", self.seconds(Phase::kMatrix)},
                {"inner", self.seconds(Phase::kInner)},
                {"update", self.seconds(Phase::kUpdate)},
                {"scan", self.seconds(Phase::kScan)}};
          },
          "seconds of the steps so far, by what they were spent on")
      .def_prop_ro(
          "capacity", [](const BlockSolver &self) { return self.capacity(); },
          "rows that the cache may hold")
      .def_prop_ro("held", [](const BlockSolver &self) { return self.held(); })
      .def_prop_ro("violation",
                   [](const BlockSolver &self) { return self.last_scan().violation; })
      .def_prop_ro("moved", &BlockSolver::moved,
                   "sum of what alpha has moved by since set_gradient, step by step")
      .def_prop_ro("drift", &BlockSolver::drift,
                   "norm of what alpha has moved by since set_gradient")
      .def_prop_ro("threshold",
                   [](const BlockSolver &self) { return self.last_scan().threshold; })
      .def_prop_ro("apart",
                   [](const BlockSolver &self) { return self.last_scan().apart; })
      .def_prop_ro("primal",
                   [](const BlockSolver &self) { return self.last_scan().primal; })
      .def_prop_ro("dual",
                   [](const BlockSolver &self) { return self.last_scan().dual; })
      .def(
          "set_alpha",
          [](BlockSolver &self, Array<const double> alpha) {
            self.set_alpha(sized(alpha, self.n(), "alpha"));
          },
          "alpha"_a)
      .def(
          "set_gradient",
          [](BlockSolver &self, Array<const double> F) {
            self.set_gradient(sized(F, self.n(), "F"));
          },
          "F"_a, "F = sum_j c_j k(x_j, x_i), as computed elsewhere.")
      .def("forget_rows", &BlockSolver::forget_rows)
      .def(
          "alpha",
          [](const BlockSolver &self, Array<double> out) {
            self.alpha(sized(out, self.n(), "out"));
          },
          "out"_a)
      .def(
          "gradient",
          [](const BlockSolver &self, Array<double> out) {
            std::copy_n(self.gradient().begin(), self.n(), sized(out, self.n(), "out"));
          },
          "out"_a)
      .def(
          "step",
          [](BlockSolver &self, double inner_tolerance, Stop &stop) {
            return without_gil(
                stop, [&](Poll &poll) { return self.step(inner_tolerance, poll); });
          },
          "inner_tolerance"_a, "stop"_a,
          "Solves one working set to `inner_tolerance` times the violation. Returns "
          "the inner steps made.");

  m.def(
      "pair_steps",
      [](Table<const float> H, Array<double> c,
         const std::array<Array<const double>, 2> &box, Array<float> v, double unit,
         double tol, Index most, Stop &stop) {
        const auto size = static_cast<Index>(c.shape(0));
        Inner inner = small_problem(H, size);
        for (Index i = 0; i < size; ++i) {
          inner.s[i] = inner.row(i)[i];
          inner.c[i] = c.data()[i];
          inner.lo[i] = sized(box[0], size, "box[0]")[i];
          inner.hi[i] = sized(box[1], size, "box[1]")[i];
          inner.v[i] = sized(v, size, "v")[i];
        }
        const Index steps = without_gil(
            stop, [&](Poll &poll) { return pair_steps(inner, unit, tol, most, poll); });
        std::copy_n(inner.c.begin(), size, c.data());
        std::copy_n(inner.v.begin(), size, v.data());
        return steps;
      },
      "H"_a, "c"_a, "box"_a, "v"_a, "unit"_a, "tol"_a, "most"_a, "stop"_a,
      "The inner steps of the hinge on one matrix. Returns how many were made.");

  m.def(
      "coordinate_steps",
      [](Table<const float> H, Array<const double> y, Array<const double> delta,
         Array<double> c, Array<float> v, double tol, Index most, Stop &stop) {
        const auto size = static_cast<Index>(c.shape(0));
        Inner inner = small_problem(H, size);
        for (Index i = 0; i < size; ++i) {
          inner.c[i] = c.data()[i];
          inner.y[i] = static_cast<float>(sized(y, size, "y")[i]);
          inner.delta[i] = sized(delta, size, "delta")[i];
          inner.v[i] = sized(v, size, "v")[i];
          inner.s[i] = inner.row(i)[i] + 1.0f + static_cast<float>(inner.delta[i]);
        }
        const Index steps = without_gil(
            stop, [&](Poll &poll) { return coordinate_steps(inner, tol, most, poll); });
        std::copy_n(inner.c.begin(), size, c.data());
        std::copy_n(inner.v.begin(), size, v.data());
        return steps;
      },
      "H"_a, "y"_a, "delta"_a, "c"_a, "v"_a, "tol"_a, "most"_a, "stop"_a,
      "The inner steps of the squared hinge on one matrix, as pair_steps.");

  nb::class_<WholeSettings>(
      m, "WholeSettings",
      "Accuracies to reach: tol, atol, and `goal` while less than "
      "`free` of the work is done; the limits of work and epochs.")
      .def(nb::init<double, double, double, double, double, Index>(), "tol"_a, "atol"_a,
           "goal"_a, "free"_a, "limit"_a, "epochs"_a);
  nb::class_<PairTables>(
      m, "PairTables",
      "Room for the coefficients y alpha of all pairs, and for their scores.")
      .def(nb::init<Table<double>, Table<double>>(), "coef"_a, "scores"_a);
  nb::class_<PairProofs>(m, "PairProofs", "Proofs of all pairs of classes.")
      .def_prop_ro(
          "bounds",
          [](const PairProofs &self) {
            return table_of(self.proofs, [](const HingeProof &of) {
              const KernelValues &v = of.values;
              return std::array{v.primal, v.primal_error, v.dual, v.dual_error};
            });
          },
          "P, its error, D, and its error for every pair, as kernel_values gives them.")
      .def_prop_ro(
          "biases",
          [](const PairProofs &self) {
            return table_of(self.proofs,
                            [](const HingeProof &of) { return std::array{of.bias}; });
          },
          "Shape (n_pairs, 1).")
      .def_prop_ro(
          "epochs", [](const PairProofs &self) { return table_of_epochs(self.epochs); },
          "Estimates of P and D, and the steps so far, after every epoch of every "
          "pair.")
      .def_ro("ends", &PairProofs::ends, "Where the epochs of each pair end.");
  m.def(
      "solve_pairs",
      [](const KernelRows &rows, const Vector<Index> &bounds, Array<const double> cost,
         const ScoreSizes &sizes, const WholeSettings &settings,
         const PairTables &tables, Stop &stop) {
        if (!rows.dense()) throw std::invalid_argument("rows are sparse");
        if (bounds.empty() || bounds.front() != 0 || bounds.back() != rows.n() ||
            !std::is_sorted(bounds.begin(), bounds.end()))
          throw std::invalid_argument("bounds");
        const auto classes = bounds.size() - 1;
        for (const auto &[table, name] :
             {std::pair{&tables.coef, "coef"}, std::pair{&tables.scores, "scores"}}) {
          check_length(static_cast<Index>(table->shape(0)), classes - 1, name);
          check_length(static_cast<Index>(table->shape(1)), rows.n(), name);
        }
        PairsOfClasses pairs(rows, bounds, sized(cost, rows.n(), "cost"),
                             sizes.of(rows.n()), tables.coef.data(),
                             tables.scores.data());
        return without_gil(
            stop, [&](Poll &poll) { return pairs.solve(settings, stop, poll); });
      },
      "rows"_a, "bounds"_a, "cost"_a, "roundings"_a, "settings"_a, "tables"_a, "stop"_a,
      "Solves and proves the problems of all pairs of classes, hinge with a free bias. "
      "The rows of class k are bounds[k] to bounds[k + 1] - 1. The first class of a "
      "pair is positive; with two classes the second one is. In the pair (i, j) the "
      "rows of class i have their entries in row j - 1 of the tables, the rows of j in "
      "row i. Returns proofs for the pairs (0, 1), (0, 2), ...; none if told to stop.");

  m.def(
      "solve_one_class",
      [](const KernelRows &rows, Array<const double> upper, double floor,
         const WholeSettings &settings, Array<double> alpha, Stop &stop) {
        if (!rows.dense()) throw std::invalid_argument("rows are sparse");
        const Index n = rows.n();
        double *a = sized(alpha, n, "alpha");
        const double *most = sized(upper, n, "upper");
        const Vec zeros(n);
        WholeProblem problem{zeros, zeros, {most, most + n}, {a, a + n}, floor};
        const auto epochs = without_gil(stop, [&](Poll &poll) {
          return solve_whole(rows, std::move(problem), settings, a, stop, poll);
        });
        return table_of_epochs(epochs);
      },
      "rows"_a, "upper"_a, "floor"_a, "settings"_a, "alpha"_a, "stop"_a,
      "Solves the dual of the one-class problem from `alpha`, whose sum it keeps. "
      "Returns estimates of P and D, and the steps so far, after every epoch; none if "
      "told to stop.");

  m.def(
      "class_weights",
      [](const AnyRows &rows, Table<const double> coef, Array<const std::int64_t> ends,
         Table<double> out) {
        const auto outputs = static_cast<Index>(coef.shape(0));
        const auto n = static_cast<Index>(coef.shape(1));
        const auto classes = static_cast<Index>(ends.shape(0));
        check_length(n, rows.n(), "coef");
        check_length(static_cast<Index>(out.shape(0)), classes * outputs, "out");
        check_length(static_cast<Index>(out.shape(1)), rows.width(), "a row of out");
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
        const auto outputs = static_cast<Index>(coef.shape(0));
        const auto many = static_cast<Index>(ends.shape(0));
        const Index n = to->n(), vectors = points->n();
        check_length(to->d(), points->d(), "a row");
        check_length(static_cast<Index>(coef.shape(1)), vectors, "coef");
        check_length(static_cast<Index>(out.shape(0)), many * outputs, "out");
        check_length(static_cast<Index>(out.shape(1)), n, "a row of out");
        const Index room = (n + tile::kPanel - 1) / tile::kPanel * tile::kPanel;
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
            check_length(static_cast<Index>(coef.shape(1)), points->n(), "coef");
            const Vector<Index> of(ends.data(), ends.data() + ends.shape(0));
            if (of.empty() || of.front() < 0 || of.back() > points->n() ||
                !std::is_sorted(of.begin(), of.end()))
              throw std::invalid_argument("ends");
            nb::gil_scoped_release released;
            new (self) PackedVectors(kernel, precise, *points, coef.data(),
                                     static_cast<Index>(coef.shape(0)), of);
          },
          "kernel"_a, "rows"_a, "coef"_a, "ends"_a, "precise"_a)
      .def(
          "times",
          [](const PackedVectors &self, const AnyRows &targets, Table<double> out) {
            const auto to = points_of(targets, std::nullopt);
            check_length(to->d(), self.d(), "a row");
            check_length(static_cast<Index>(out.shape(0)), self.sums(), "out");
            check_length(static_cast<Index>(out.shape(1)), to->n(), "a row of out");
            nb::gil_scoped_release released;
            self.times(*to, out.data());
          },
          "targets"_a, "out"_a, "Writes what kernel_times writes, with the same bits.");
}

}  // namespace dualgap

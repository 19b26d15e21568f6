#include "../core/bindings.hpp"
#include "frank_wolfe.hpp"
#include "kernel_pegasos.hpp"

namespace dualgap {

namespace {

Method method_of(const std::string &name) {
  if (name == "fw") return Method::kFw;
  if (name == "mfw") return Method::kMfw;
  if (name == "swap") return Method::kSwap;
  if (name == "swap-2o") return Method::kSwap2o;
  if (name == "mdm") return Method::kMdm;
  throw std::invalid_argument("method: " + name);
}

// A problem over a simplex, as Python holds it.
struct SimplexProblem {
  Gram *gram;
  Maybe<const Order> columns;
  Array<const double> y, delta, diagonal;
  double constant;
  Maybe<const double> linear;
  Index m = checked();

  Index checked() const {
    const auto count = y.length();
    sized(columns, count, "columns");
    columns ? (void)checked_order(*columns, gram->n())
            : check_length(count, gram->n(), "y");
    sized(delta, count, "delta");
    sized(diagonal, count, "diagonal");
    sized(linear, count, "linear");
    return count;
  }
  // The problem with its gradient, and no point.
  Simplex with(const Array<double> &g) const {
    return {gram,
            columns ? columns->data() : nullptr,
            m,
            y.data(),
            delta.data(),
            diagonal.data(),
            nullptr,
            sized(g, m, "g"),
            nullptr,
            0,
            constant,
            linear ? linear->data() : nullptr};
  }
};

// A point, its gradient, and its rows with a > 0.
struct SimplexPoint {
  Array<double> a, g;
  Array<Order> active;
  Index size;

  Simplex of(const SimplexProblem &problem, Index least) const {
    Simplex s = problem.with(g);
    s.a = sized(a, s.m, "a");
    s.active = sized(active, s.m, "active");
    s.size = size;
    if (size < least || size > s.m)
      throw std::invalid_argument("size does not fit active");
    checked_order(active, s.m);
    return s;
  }
};

struct WalkSettings {
  Method method;
  Ranking ranking;
  Index steps;
};

struct SampleOfRows {
  Index count;
  Array<const Order> order;
  Index split, vertex;
  double eps;
};

void bind_records(nb::module_ &m) {
  nb::class_<SimplexProblem>(m, "Simplex",
                             "min 1/2 a'Ka over the simplex, for the `columns` of a "
                             "Gram matrix or all of them; `diagonal` holds the K_ii.")
      .def(
          nb::init<Gram *, Maybe<const Order>, Array<const double>, Array<const double>,
                   Array<const double>, double, Maybe<const double>>(),
          "gram"_a, "columns"_a.none(), "y"_a, "delta"_a, "diagonal"_a,
          "constant"_a = 1.0, "linear"_a.none() = nb::none(), nb::keep_alive<1, 2>());
  nb::class_<SimplexPoint>(m, "SimplexState",
                           "A point, its gradient, and its `size` rows with a > 0.")
      .def(nb::init<Array<double>, Array<double>, Array<Order>, Index>(), "a"_a, "g"_a,
           "active"_a, "size"_a)
      .def_ro("size", &SimplexPoint::size);
  nb::class_<WalkSettings>(m, "WalkSettings",
                           "Method, whether gains assume clipped steps, and how "
                           "many steps to make.")
      .def(
          "__init__",
          [](WalkSettings *self, const std::string &method, bool clipped, Index steps) {
            new (self)
                WalkSettings{method_of(method),
                             clipped ? Ranking::kClipped : Ranking::kPaper, steps};
          },
          "method"_a, "clipped"_a, "steps"_a);
  nb::class_<SampleOfRows>(m, "Sample",
                           "Draws `count` rows per step, half of them from either side "
                           "of order[split] if split > 0; the first step goes to "
                           "`vertex`, if it is one; the last has 2 (p - g_i) <= eps.")
      .def(nb::init<Index, Array<const Order>, Index, Index, double>(), "count"_a,
           "order"_a, "split"_a = 0, "vertex"_a = -1,
           "eps"_a = -std::numeric_limits<double>::infinity());
  nb::class_<SimplexWalk>(m, "SimplexWalk", "Result of steps over the simplex.")
      .def_ro("steps", &SimplexWalk::steps)
      .def_ro("p", &SimplexWalk::p)
      .def_ro("loss", &SimplexWalk::loss, "mean loss of the drawn rows with a = 0")
      .def_ro("swaps", &SimplexWalk::swaps)
      .def_ro("drops", &SimplexWalk::drops)
      .def_ro("aways", &SimplexWalk::aways)
      .def_prop_ro(
          "gap", [](const SimplexWalk &self) { return 2.0 * self.gap; },
          "2 (p - g_i) of the last sample");
  nb::class_<PegasosWalk>(m, "PegasosWalk")
      .def_ro("visited", &PegasosWalk::visited)
      .def_ro("steps", &PegasosWalk::steps)
      .def_ro("updates", &PegasosWalk::updates);
}

}  // namespace

void bind_simplex(nb::module_ &m) {
  bind_records(m);
  m.def(
      "frank_wolfe",
      [](const SimplexProblem &problem, SimplexPoint &point,
         const WalkSettings &settings, Stop &stop) {
        Simplex s = point.of(problem, 1);
        const auto [method, ranking, steps] = settings;
        const SimplexWalk walk = without_gil(stop, [&](Poll &poll) {
          const std::lock_guard lock(s.gram->mutex());
          return s.columns ? full_steps<true>(s, method, ranking, steps, poll)
                           : full_steps<false>(s, method, ranking, steps, poll);
        });
        point.size = s.size;
        return walk;
      },
      "problem"_a, "state"_a, "settings"_a, "stop"_a, "Steps on the full gradient.");

  m.def(
      "frank_wolfe_sampled",
      [](const SimplexProblem &problem, SimplexPoint &point,
         const WalkSettings &settings, const SampleOfRows &rows, Random &random,
         Stop &stop) {
        Simplex s = point.of(problem, 1);
        if (rows.count < 1) throw std::invalid_argument("count must be positive");
        if (rows.split < 0 || rows.split > s.m) throw std::invalid_argument("split");
        if (rows.vertex >= s.m) throw std::invalid_argument("vertex");
        if (rows.split > 0) check_length(rows.order.length(), s.m, "order");
        const Sample sample{rows.count, checked_order(rows.order, s.m), rows.split};
        const SimplexWalk walk = without_gil(stop, [&](Poll &poll) {
          const std::lock_guard lock(s.gram->mutex());
          return sampled_steps(s, settings.method, settings.ranking, settings.steps,
                               sample, rows.vertex, rows.eps, random, poll);
        });
        point.size = s.size;
        return walk;
      },
      "problem"_a, "state"_a, "settings"_a, "sample"_a, "random"_a, "stop"_a,
      "Steps with i from samples.");

  m.def(
      "add_gradient",
      [](const SimplexProblem &problem, Array<const Order> rows,
         Array<const double> change, Array<double> g, Stop &stop) {
        const auto many = rows.length();
        const Order *who = checked_order(rows, problem.m);
        const double *c = sized(change, many, "change");
        Simplex s = problem.with(g);
        return without_gil(stop, [&](Poll &poll) {
          const std::lock_guard lock(s.gram->mutex());
          for (Index t = 0; t < many; ++t) {
            if (c[t] == 0.0) continue;
            const Index i = who[t];
            const float *k = s.gram->row(s.column(i));
            const double u = c[t] * s.y[i];
            s.g[i] += c[t] * s.delta[i];
            move_linear(s, 1.0, c[t], i, 0.0, -1);
            s.columns ? move_gradient<true, 1>(s, 1.0, u, k, 0.0, nullptr)
                      : move_gradient<false, 1>(s, 1.0, u, k, 0.0, nullptr);
            if (poll(s.m)) return t + 1;
          }
          return many;
        });
      },
      "problem"_a, "rows"_a, "change"_a, "g"_a, "stop"_a,
      "g += K change, for a change of some entries of a. Returns the entries done.");

  nb::class_<PegasosSettings>(
      m, "PegasosSettings",
      "Most rows with a > 0, 0 for any number; rows of a batch; steps made before.")
      .def(
          "__init__",
          [](PegasosSettings *self, const Loss &loss, double lambda, Index budget,
             Index batch, double t) {
            if (batch < 1) throw std::invalid_argument("batch");
            new (self) PegasosSettings{loss, lambda, budget, batch, t};
          },
          "loss"_a, "lambda_"_a, "budget"_a, "batch"_a, "t"_a);
  m.def(
      "kernel_pegasos",
      [](const SimplexProblem &problem, SimplexPoint &point, Array<const double> omega,
         const PegasosSettings &settings, Array<const Order> order, Array<double> most,
         SumOfSteps *sum, Stop &stop) {
        Simplex s = point.of(problem, 0);
        const PegasosData data{settings, s.y, sized(omega, s.m, "omega")};
        const Order *rows = checked_order(order, s.m);
        const auto many = order.length();
        double *sizes = sized(most, s.m, "most");
        SumOfSteps none;
        SumOfSteps &sums = sum ? *sum : none;
        if (sum) checked_lengths(s.m, {{sum->r, "r"}, {sum->r_beta, "r_beta"}});
        const PegasosWalk walk = without_gil(stop, [&](Poll &poll) {
          const std::lock_guard lock(s.gram->mutex());
          return kernel_pegasos(s, data, rows, many, sizes, sums, poll);
        });
        point.size = s.size;
        return walk;
      },
      "problem"_a, "state"_a, "omega"_a, "settings"_a, "order"_a, "most"_a,
      "sum"_a.none(), "stop"_a,
      "Kernelised Pegasos. `sum` is of the margins and of `a`.");

  m.def(
      "solve_small",
      [](Table<const float> H, Array<double> a, Array<double> g, double tol,
         Index steps, Stop &stop) {
        const auto q = a.length();
        const auto stride = H.columns();
        if (q < 1 || q > stride || q > H.length())
          throw std::invalid_argument("a does not fit H");
        double *gradient = sized(g, q, "g");
        return without_gil(stop, [&](Poll &poll) {
          return solve_small(H.data(), stride, q, a.data(), gradient, tol, steps, poll);
        });
      },
      "H"_a, "a"_a, "g"_a, "tol"_a, "steps"_a, "stop"_a,
      "min 1/2 a'Ha over the simplex, warm. Returns the steps made.");
}

}  // namespace dualgap

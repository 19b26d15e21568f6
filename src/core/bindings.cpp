// The compiled module: arrays in, one pass over the rows, numbers out. The GIL
// is released around every pass.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <variant>
#include <vector>

#include "certify.hpp"
#include "epochs/counting_sgd.hpp"
#include "epochs/dual_coordinate.hpp"
#include "epochs/stochastic_gradient.hpp"
#include "random.hpp"
#include "rows.hpp"
#include "stop.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace dualgap;

void bind_io(nb::module_ &m);

namespace {

template <class T>
using Array = nb::ndarray<T, nb::numpy, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Maybe = std::optional<Array<T>>;

// The matrix with its dtypes erased: the one place that knows all of them.
class AnyRows {
 public:
  using Variant =
      std::variant<CsrRows<float, std::int32_t>, CsrRows<double, std::int32_t>,
                   CsrRows<float, std::int64_t>, CsrRows<double, std::int64_t>,
                   DenseRows<float>, DenseRows<double>>;

  AnyRows(Variant rows, Index stored, std::vector<nb::object> owners)
      : rows_(std::move(rows)), stored_(stored), owners_(std::move(owners)) {}

  template <class F>
  decltype(auto) visit(F &&f) const {
    return std::visit(std::forward<F>(f), rows_);
  }
  Index n() const {
    return visit([](const auto &rows) { return rows.rows(); });
  }
  Index width() const {
    return visit([](const auto &rows) { return rows.width(); });
  }
  Index stored() const { return stored_; }

 private:
  Variant rows_;
  Index stored_;
  std::vector<nb::object> owners_;  // keeps the arrays alive
};

template <class V, class I, class P>
AnyRows make_csr(Array<const V> values, Array<const I> indices, Array<const P> indptr,
                 Index d, double constant) {
  if (indptr.shape(0) == 0) throw std::invalid_argument("indptr is empty");
  if (values.shape(0) != indices.shape(0))
    throw std::invalid_argument("values and indices differ in length");
  return AnyRows(CsrRows<V, I>(values.data(), indices.data(), Pointers(indptr.data()),
                               static_cast<Index>(indptr.shape(0)) - 1, d, constant),
                 static_cast<Index>(values.shape(0)),
                 {nb::cast(values), nb::cast(indices), nb::cast(indptr)});
}

template <class V>
using Matrix =
    nb::ndarray<const V, nb::numpy, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class V>
AnyRows make_dense(Matrix<V> values, double constant) {
  const auto n = static_cast<Index>(values.shape(0));
  const auto d = static_cast<Index>(values.shape(1));
  return AnyRows(DenseRows<V>(values.data(), n, d, constant), n * d,
                 {nb::cast(values)});
}

void check_length(Index have, Index want, const char *name) {
  if (have != want)
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(have) +
                                " entries, expected " + std::to_string(want));
}

template <class A>
auto *sized(const A &array, Index want, const char *name) {
  check_length(static_cast<Index>(array.shape(0)), want, name);
  return array.data();
}

template <class A>
auto *sized(const std::optional<A> &array, Index want, const char *name) {
  return array ? sized(*array, want, name) : nullptr;
}

// An order may name any row, so it is checked before a kernel trusts it.
template <class A>
auto *checked_order(const A &order, Index n) {
  const auto m = static_cast<Index>(order.shape(0));
  Order largest = 0;
  for (Index t = 0; t < m; ++t) largest = std::max<Order>(largest, order.data()[t]);
  if (m > 0 && static_cast<Index>(largest) >= n)
    throw std::invalid_argument("order names a row that does not exist");
  return order.data();
}

// Runs a kernel without the GIL. A pending signal runs its Python handler; an
// exception that it raises makes the kernel leave and is passed on.
template <class F>
auto without_gil(Stop &stop, F &&kernel) {
  std::optional<nb::python_error> error;
  auto signals = [&] {
    nb::gil_scoped_acquire gil;
    if (!error && PyErr_CheckSignals() != 0) {
      error.emplace();
      stop.request();
    }
  };
  Poll poll(stop, signals);
  auto result = [&] {
    nb::gil_scoped_release released;
    return kernel(poll);
  }();
  if (error) throw std::move(*error);
  return result;
}

void bind_rows(nb::module_ &m) {
  nb::class_<AnyRows>(m, "Rows", "Rows of a matrix, dense or CSR, not copied.")
      .def_prop_ro("n", &AnyRows::n)
      .def_prop_ro("width", &AnyRows::width, "columns, and the constant feature")
      .def_prop_ro("stored", &AnyRows::stored, "stored entries")
      .def(
          "inspect",
          [](const AnyRows &self, Array<double> q) {
            double *out = sized(q, self.n(), "q");
            bool canonical = true;
            Index where = 0;
            const char *fault = self.visit([&](const auto &rows) {
              nb::gil_scoped_release released;
              return rows.inspect(out, self.stored(), &canonical, &where);
            });
            return std::make_tuple(
                fault ? std::optional<std::string>(fault) : std::nullopt, where,
                canonical);
          },
          "q"_a.noconvert(),
          "Check every pointer, index and value and fill q with ||x_i||^2. Returns "
          "(fault or None, row of the fault, whether indices strictly increase).");

  auto csr = [&](auto f) { m.def("csr_rows", f, "values"_a.noconvert(),
        "indices"_a.noconvert(), "indptr"_a.noconvert(), "d"_a, "constant"_a); };
  using std::int32_t, std::int64_t;
  csr(&make_csr<float, int32_t, int32_t>);
  csr(&make_csr<float, int32_t, int64_t>);
  csr(&make_csr<float, int64_t, int64_t>);
  csr(&make_csr<float, int64_t, int32_t>);
  csr(&make_csr<double, int32_t, int32_t>);
  csr(&make_csr<double, int32_t, int64_t>);
  csr(&make_csr<double, int64_t, int64_t>);
  csr(&make_csr<double, int64_t, int32_t>);
  m.def("dense_rows", &make_dense<float>, "values"_a.noconvert(), "constant"_a);
  m.def("dense_rows", &make_dense<double>, "values"_a.noconvert(), "constant"_a);
}

void bind_tools(nb::module_ &m) {
  nb::class_<Loss>(m, "Loss", "max over 0 <= b <= slope of b u - curvature b^2/2.")
      .def(nb::init<double, double>(), "slope"_a, "curvature"_a)
      .def("value", &Loss::value, "u"_a)
      .def("derivative", &Loss::derivative, "u"_a);

  nb::class_<Random>(m, "Random", "xoshiro256++; the same seed, the same orders.")
      .def(nb::init<std::uint64_t>(), "seed"_a)
      .def("shuffle",
           [](Random &self, Array<Order> order) {
             self.shuffle(order.data(), static_cast<Index>(order.shape(0)));
           },
           "order"_a.noconvert())
      .def("draw",
           [](Random &self, Array<Order> order, std::uint32_t n) {
             if (n == 0) throw std::invalid_argument("n must be positive");
             self.draw(order.data(), static_cast<Index>(order.shape(0)), n);
           },
           "order"_a.noconvert(), "n"_a)
      .def("below",
           [](Random &self, std::uint32_t n) {
             if (n == 0) throw std::invalid_argument("n must be positive");
             return self.below(n);
           },
           "n"_a);

  nb::class_<Stop>(m, "Stop", "Tells running passes to leave, from any thread.")
      .def(nb::init<>())
      .def("request", &Stop::request)
      .def("set_deadline", &Stop::set_deadline, "seconds_from_now"_a)
      .def_prop_ro("requested", &Stop::requested)
      .def_prop_ro("expired", &Stop::expired);

  m.def("squared_norm",
        [](Array<const double> w) {
          return squared_norm(w.data(), static_cast<Index>(w.shape(0)));
        },
        "w"_a.noconvert());
}

void bind_certify(nb::module_ &m) {
  m.def(
      "dual_value",
      [](Array<const double> b, Array<const double> cost, const Loss &loss,
         double scale, double norm) {
        const auto n = static_cast<Index>(b.shape(0));
        return dual_value(b.data(), sized(cost, n, "cost"), n, loss, scale, norm);
      },
      "b"_a.noconvert(), "cost"_a.noconvert(), "loss"_a, "scale"_a, "norm"_a,
      "D of alpha = min(scale b, U), given norm = ||sum alpha_i y_i x_i||^2.");

  m.def(
      "combine",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> alpha,
         Array<double> v) {
        const auto *labels = sized(y, rows.n(), "y");
        const auto *a = sized(alpha, rows.n(), "alpha");
        double *out = sized(v, rows.width(), "v");
        Stop never;
        std::fill(out, out + rows.width(), 0.0);
        without_gil(never, [&](Poll &poll) {
          return rows.visit(
              [&](const auto &x) { return combine(x, labels, a, out, poll); });
        });
      },
      "rows"_a, "y"_a.noconvert(), "alpha"_a.noconvert(), "v"_a.noconvert(),
      "v <- sum_i alpha_i y_i x_i.");

  m.def(
      "evaluate",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         const Loss &loss, Array<const double> w, const std::string &dual,
         Maybe<double> alpha, Maybe<double> v, Maybe<double> margins) {
        const Index n = rows.n();
        const auto *labels = sized(y, n, "y");
        const auto *c = sized(cost, n, "cost");
        const auto *point = sized(w, rows.width(), "w");
        double *a = sized(alpha, n, "alpha");
        double *sum = sized(v, rows.width(), "v");
        double *out = sized(margins, n, "margins");
        Dual kind = Dual::kOfW;
        if (dual == "given") kind = Dual::kGiven;
        else if (dual == "built") kind = Dual::kBuilt;
        else if (dual != "of w") throw std::invalid_argument("dual: " + dual);
        if (kind != Dual::kOfW && !(a && sum))
          throw std::invalid_argument("this dual point needs alpha and v");
        if (sum) std::fill(sum, sum + rows.width(), 0.0);
        const Values values = rows.visit([&](const auto &x) {
          nb::gil_scoped_release released;
          return evaluate(x, labels, c, loss, point, kind, a, sum, out);
        });
        return std::make_tuple(values.loss, values.sum, values.diagonal);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "loss"_a, "w"_a.noconvert(),
      "dual"_a, "alpha"_a.noconvert().none(), "v"_a.noconvert().none(),
      "margins"_a.noconvert().none(),
      "One pass: (sum c_i l(1 - m_i), sum a_i, sum delta_i a_i^2). `dual` is 'of w', "
      "'given' or 'built'.");
}

DualData dual_data(const AnyRows &rows, const Array<const std::int8_t> &y,
                   const Array<const double> &cost, const Array<const double> &q,
                   const Loss &loss) {
  return {sized(y, rows.n(), "y"), sized(cost, rows.n(), "cost"),
          sized(q, rows.n(), "q"), loss};
}

DualState dual_state(const AnyRows &rows, Array<double> &alpha, Array<double> &w) {
  return {sized(alpha, rows.n(), "alpha"), sized(w, rows.width(), "w")};
}

void bind_dual_coordinate(nb::module_ &m) {
  m.def(
      "sdca_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, Array<const Order> order,
         Array<double> alpha, Array<double> w, Maybe<double> average_sum,
         Maybe<double> average_since, double average_step, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        const auto *visits = checked_order(order, rows.n());
        const Average average{sized(average_sum, rows.n(), "average_sum"),
                              sized(average_since, rows.n(), "average_since"),
                              average_step};
        if (average.sum && !average.since)
          throw std::invalid_argument("average_sum needs average_since");
        const auto count = static_cast<Index>(order.shape(0));
        const DualPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return sdca_epoch(x, data, visits, count, state, average, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "order"_a.noconvert(), "alpha"_a.noconvert(), "w"_a.noconvert(),
      "average_sum"_a.noconvert().none(), "average_since"_a.noconvert().none(),
      "average_step"_a, "stop"_a, "One pass of SDCA: (visited, updates, gap estimate).");

  m.def(
      "modified_sgd_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, Array<const Order> order,
         Array<double> alpha, Array<double> w, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        const auto *visits = checked_order(order, rows.n());
        const auto count = static_cast<Index>(order.shape(0));
        const DualPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return modified_sgd_epoch(x, data, visits, count,
                                      static_cast<double>(rows.n()), state, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "order"_a.noconvert(), "alpha"_a.noconvert(), "w"_a.noconvert(), "stop"_a,
      "One pass of Modified-SGD from alpha = 0: (visited, updates, gap estimate).");

  m.def(
      "dcd_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
         Array<const double> q, const Loss &loss, Array<Order> order, Index active,
         Array<double> alpha, Array<double> w, double upper, double lower, Stop &stop) {
        const DualData data = dual_data(rows, y, cost, q, loss);
        const DualState state = dual_state(rows, alpha, w);
        Order *visits = checked_order(order, rows.n());
        if (active < 0 || active > static_cast<Index>(order.shape(0)))
          throw std::invalid_argument("active is out of range");
        const ShrunkPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return dcd_epoch(x, data, visits, active, state, {upper, lower}, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.gap, pass.active,
                               pass.max_gradient, pass.min_gradient);
      },
      "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "order"_a.noconvert(), "active"_a, "alpha"_a.noconvert(), "w"_a.noconvert(),
      "upper"_a, "lower"_a, "stop"_a,
      "One pass of DCD over order[:active]: (visited, updates, gap estimate, active "
      "rows left, largest and smallest projected gradient).");
}

void bind_counting_sgd(nb::module_ &m) {
  m.def(
      "counting_sgd_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> omega,
         Array<const double> q, double lambda, Index multiplicity,
         Array<const Order> order, Array<double> a, Array<std::int64_t> errors,
         double t, double norm, Stop &stop) {
        const Index n = rows.n();
        const CountingData data{sized(y, n, "y"), sized(omega, n, "omega"),
                                sized(q, n, "q"), lambda, multiplicity};
        CountingState state{sized(a, rows.width(), "a"), sized(errors, n, "errors"), t,
                            norm};
        const auto *visits = checked_order(order, n);
        const auto count = static_cast<Index>(order.shape(0));
        const CountingPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return counting_sgd_epoch(x, data, visits, count, state, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.weighted, pass.loss,
                               state.t, state.norm);
      },
      "rows"_a, "y"_a.noconvert(), "omega"_a.noconvert(), "q"_a.noconvert(),
      "lambda_"_a, "multiplicity"_a, "order"_a.noconvert(), "a"_a.noconvert(),
      "errors"_a.noconvert(), "t"_a, "norm"_a, "stop"_a,
      "One pass of SGD-r/s/m: (visited, errors, weighted errors, loss estimate, t, "
      "||a||^2).");
}

void bind_stochastic_gradient(nb::module_ &m) {
  nb::enum_<Schedule>(m, "Schedule")
      .value("pegasos", Schedule::kPegasos)
      .value("norma", Schedule::kNorma)
      .value("svmsgd", Schedule::kSvmSgd);
  m.def(
      "stochastic_gradient_epoch",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<const double> omega,
         Array<const double> q, const Loss &loss, double lambda, Schedule schedule,
         double eta0, Index batch, bool project, Array<const Order> order,
         Array<double> v, Array<double> beta, double scale, double norm, double t,
         Maybe<double> r, Maybe<double> r_beta, double sigma, Stop &stop) {
        const Index n = rows.n(), width = rows.width();
        if (batch < 1) throw std::invalid_argument("batch must be positive");
        const GradientData data{sized(y, n, "y"), sized(omega, n, "omega"),
                                sized(q, n, "q"), loss, lambda, schedule, eta0, batch,
                                project};
        GradientState state{sized(v, width, "v"), sized(beta, n, "beta"), scale, norm,
                            t, sized(r, width, "r"), sized(r_beta, n, "r_beta"), sigma};
        if (static_cast<bool>(state.r) != static_cast<bool>(state.r_beta))
          throw std::invalid_argument("r and r_beta come together");
        const auto *visits = checked_order(order, n);
        const auto count = static_cast<Index>(order.shape(0));
        std::vector<double> slopes(static_cast<std::size_t>(batch));
        const GradientPass pass = without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            return stochastic_gradient_epoch(x, data, visits, count, slopes.data(),
                                             state, poll);
          });
        });
        return std::make_tuple(pass.visited, pass.updates, pass.loss, state.a,
                               state.norm, state.t, state.sigma);
      },
      "rows"_a, "y"_a.noconvert(), "omega"_a.noconvert(), "q"_a.noconvert(), "loss"_a,
      "lambda_"_a, "schedule"_a, "eta0"_a, "batch"_a, "project"_a,
      "order"_a.noconvert(), "v"_a.noconvert(), "beta"_a.noconvert(), "scale"_a,
      "norm"_a, "t"_a, "r"_a.noconvert().none(), "r_beta"_a.noconvert().none(),
      "sigma"_a, "stop"_a,
      "One pass of Pegasos, NORMA or SvmSGD: (visited, updates, loss estimate, scale, "
      "||w||^2, t, sigma).");
}

}  // namespace

NB_MODULE(DUALGAP_MODULE, m) {
  bind_rows(m);
  bind_tools(m);
  bind_certify(m);
  bind_dual_coordinate(m);
  bind_counting_sgd(m);
  bind_stochastic_gradient(m);
  bind_io(m);
}

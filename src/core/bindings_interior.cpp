#include <cstring>

#include "bindings.hpp"
#include "duplicates.hpp"
#include "interior.hpp"
#include "newton.hpp"

namespace dualgap {

namespace {

// The function that a capsule of a Cython module's __pyx_capi__ holds. Its name is its
// signature: sizes have to be C ints.
template <class F>
F *function(nb::handle capsule, int ints) {
  const char *name = PyCapsule_GetName(capsule.ptr());
  int found = 0;
  for (const char *at = name; at && (at = std::strstr(at, "int *")); ++at) ++found;
  if (found != ints || std::strncmp(name, "void (char *", 12) != 0)
    throw std::invalid_argument(
        std::string("SciPy's BLAS is not the one that is known: ") +
        (name ? name : "no signature"));
  return reinterpret_cast<F *>(PyCapsule_GetPointer(capsule.ptr(), name));
}

template <class F>
void look_up(F *&pointer, nb::handle capsule, int ints) {
  pointer = function<F>(capsule, ints);
}

LinearAlgebra look_up(const nb::tuple &algebra) {
  LinearAlgebra functions{};
  look_up(functions.dsyrk, algebra[0], 4);
  look_up(functions.dpotrf, algebra[1], 3);
  look_up(functions.dpotrs, algebra[2], 5);
  return functions;
}

// The iteration, and the arrays it needs kept alive.
class Bound {
 public:
  Bound(const AnyRows &rows, Array<const std::int8_t> y, Array<const double> cost,
        const Loss &loss, Array<const Order> chosen, Array<const double> fixed,
        double constant, double scale, double feature, bool free_bias, Team &threads,
        nb::tuple algebra)
      : rows_(rows) {
    const auto *labels = sized(y, rows.n(), "y");
    const auto *c = sized(cost, rows.n(), "cost");
    const auto *f = sized(fixed, rows.width(), "fixed");
    const auto *order = checked_order(chosen, rows.n());
    const auto m = static_cast<Index>(chosen.shape(0));
    const LinearAlgebra functions = look_up(algebra);
    nb::gil_scoped_release released;
    Interior::Data data;
    data.y.resize(static_cast<std::size_t>(m));
    data.cost.resize(static_cast<std::size_t>(m));
    for (Index t = 0; t < m; ++t) {
      data.y[static_cast<std::size_t>(t)] = labels[order[t]];
      data.cost[static_cast<std::size_t>(t)] = c[order[t]];
    }
    data.rows =
        rows_.visit([&](const auto &x) { return make_block(x, order, m, feature); });
    data.fixed.assign(f, f + rows.width());
    data.constant = constant;
    data.scale = scale;
    interior_.emplace(std::move(data), loss, free_bias, threads, functions);
  }

  Interior &operator*() { return *interior_; }

 private:
  AnyRows rows_;
  std::optional<Interior> interior_;
};

nb::object copied(const Vec &x) {
  auto *data = new Vec(x);
  nb::capsule owner(data, [](void *p) noexcept { delete static_cast<Vec *>(p); });
  return nb::cast(
      nb::ndarray<nb::numpy, double, nb::ndim<1>>(data->data(), {data->size()}, owner));
}

AnyRows chosen_rows(const AnyRows &rows, Array<const Order> chosen, double constant) {
  const auto *order = checked_order(chosen, rows.n());
  const auto m = static_cast<Index>(chosen.shape(0));
  return rows.visit([&](const auto &x) {
    Index stored = 0;
    for (Index t = 0; t < m; ++t) stored += x.count(order[t]);
    auto [copy, storage] = copy_rows(x, order, m, constant);
    nb::capsule owner(new std::shared_ptr<void>(storage), [](void *p) noexcept {
      delete static_cast<std::shared_ptr<void> *>(p);
    });
    return AnyRows(copy, stored, {nb::object(owner)});
  });
}

NewtonPoint point_of(const AnyRows &rows, const Array<double> &w,
                     const Array<double> &residual, const Array<double> &gradient) {
  return {sized(w, rows.width(), "w"), sized(residual, rows.n(), "residual"),
          sized(gradient, rows.width(), "gradient")};
}

void bind_newton(nb::module_ &m) {
  m.def(
      "newton_point",
      [](const AnyRows &rows, Array<const double> target, Array<const double> cost,
         double epsilon, Array<double> w, Array<double> residual,
         Array<double> gradient, Team &threads) {
        const Index n = rows.n();
        const NewtonData data{sized(target, n, "target"), sized(cost, n, "cost"),
                              epsilon};
        const NewtonPoint point = point_of(rows, w, residual, gradient);
        nb::gil_scoped_release released;
        const NewtonValues values = rows.visit(
            [&](const auto &x) { return newton_point(x, data, point, threads); });
        return std::make_tuple(values.primal, values.gap, values.outside);
      },
      "rows"_a, "target"_a.noconvert(), "cost"_a.noconvert(), "epsilon"_a,
      "w"_a.noconvert(), "residual"_a.noconvert(), "gradient"_a.noconvert(),
      "threads"_a.noconvert(),
      "Residuals and gradient of the squared loss at w: (P, P - D, rows outside of the "
      "tube).");
  m.def(
      "newton_step",
      [](const AnyRows &rows, Array<const double> target, Array<const double> cost,
         double epsilon, Array<double> w, Array<double> residual,
         Array<double> gradient, Array<double> step, Array<double> image,
         double accuracy, Index most, nb::tuple algebra, Team &threads, Stop &stop) {
        const Index n = rows.n(), d = rows.width();
        const NewtonData data{sized(target, n, "target"), sized(cost, n, "cost"),
                              epsilon};
        const NewtonPoint point = point_of(rows, w, residual, gradient);
        double *s = sized(step, d, "step"), *moved = sized(image, n, "image");
        const LinearAlgebra functions = look_up(algebra);
        return without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            Index conjugate = 0;
            bool found = most == 0 && newton_factor(x, data, point, s, functions,
                                                    threads, poll, stop);
            if (most > 0) {
              conjugate = newton_conjugate(x, data, point, s, accuracy, most,
                                           rows.stored(), threads, poll);
              found = conjugate > 0;
            }
            double length = 0;
            if (found) {
              products(x, s, moved, threads);
              length = newton_length(data, point.residual, moved, n,
                                     dot_of(point.w, s, d), squared_norm(s, d));
            }
            return std::make_tuple(length, conjugate);
          });
        });
      },
      "rows"_a, "target"_a.noconvert(), "cost"_a.noconvert(), "epsilon"_a,
      "w"_a.noconvert(), "residual"_a.noconvert(), "gradient"_a.noconvert(),
      "step"_a.noconvert(), "image"_a.noconvert(), "accuracy"_a, "most"_a, "algebra"_a,
      "threads"_a.noconvert(), "stop"_a,
      "A Newton step and how far to go along it: (length, conjugate gradients); by a "
      "factor if `most` is 0. The length is 0 if told to leave, or at the optimum.");
}

}  // namespace

void bind_interior(nb::module_ &m) {
  bind_newton(m);
  m.def(
      "group_duplicates",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<Order> group) {
        const auto *labels = sized(y, rows.n(), "y");
        auto *out = sized(group, rows.n(), "group");
        Stop never;
        return without_gil(never, [&](Poll &poll) {
          return rows.visit(
              [&](const auto &x) { return group_duplicates(x, labels, out, poll); });
        });
      },
      "rows"_a, "y"_a.noconvert(), "group"_a.noconvert(),
      "The number of each row's group of equal rows and labels; returns how many.");
  m.def("chosen_rows", &chosen_rows, "rows"_a, "chosen"_a.noconvert(), "feature"_a,
        "A copy of the chosen rows.");

  nb::class_<Bound>(m, "Interior",
                    "The interior-point iteration over chosen rows, which are copied "
                    "unless all are chosen; every cost of theirs is positive.")
      .def(nb::init<const AnyRows &, Array<const std::int8_t>, Array<const double>,
                    const Loss &, Array<const Order>, Array<const double>, double,
                    double, double, bool, Team &, nb::tuple>(),
           "rows"_a, "y"_a.noconvert(), "cost"_a.noconvert(), "loss"_a,
           "chosen"_a.noconvert(), "fixed"_a.noconvert(), "constant"_a, "scale"_a,
           "feature"_a, "free_bias"_a, "threads"_a.noconvert(), "algebra"_a,
           nb::keep_alive<1, 12>())
      .def(
          "start",
          [](Bound &self, Array<const double> w, double mu) {
            const auto *point = sized(w, (*self).width(), "w");
            nb::gil_scoped_release released;
            (*self).start(point, mu);
          },
          "w"_a.noconvert(), "mu"_a,
          "Start at w with every product at mu; 0: far inside, for w = 0.")
      .def(
          "iterate",
          [](Bound &self, Stop &stop) {
            const auto outcome = without_gil(
                stop, [&](Poll &poll) { return (*self).iterate(poll, stop); });
            return static_cast<int>(outcome);
          },
          "stop"_a,
          "One iteration: 0, 1 if told to leave, 2 if the matrix has no factor.")
      .def(
          "refresh",
          [](Bound &self) {
            nb::gil_scoped_release released;
            (*self).refresh();
          },
          "Recompute margins, residual, P and D from w and alpha.")
      .def_prop_ro("w", [](Bound &self) { return copied((*self).w()); })
      .def_prop_ro("alpha", [](Bound &self) { return copied((*self).alpha()); })
      .def_prop_ro("mu", [](Bound &self) { return (*self).mu(); })
      .def_prop_ro("primal", [](Bound &self) { return (*self).primal(); })
      .def_prop_ro("dual", [](Bound &self) { return (*self).dual(); })
      .def_prop_ro("length", [](Bound &self) { return (*self).step(); })
      .def_prop_ro("correctors", [](Bound &self) { return (*self).correctors(); });
}

}  // namespace dualgap

#include <nanobind/stl/vector.h>

#include <cstring>

#include "bindings.hpp"
#include "duplicates.hpp"
#include "interior.hpp"
#include "labellings.hpp"
#include "newton.hpp"
#include "row_blocks.hpp"
#include "smoothing_newton.hpp"
#include "sweeps.hpp"

namespace dualgap {

namespace {

// The functions of SciPy, in capsules.
using Algebra = nb::typed<nb::tuple, nb::object, nb::ellipsis>;

// Returns the function in a capsule of a Cython module's __pyx_capi__. The name of the
// capsule is the signature of the function. It must have C ints for sizes.
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

LinearAlgebra look_up(const Algebra &algebra) {
  LinearAlgebra functions{};
  look_up(functions.dsyrk, algebra[0], 4);
  look_up(functions.ssyrk, algebra[1], 4);
  look_up(functions.dpotrf, algebra[2], 3);
  look_up(functions.dpotrs, algebra[3], 5);
  return functions;
}

// Makes a block of all or of the chosen rows. `begin` is its first row number in the
// set.
std::unique_ptr<RowBlock> make_block(const AnyRows &rows, Index begin,
                                     const Order *chosen = nullptr, Index count = 0) {
  return rows.visit([&](const auto &x) -> std::unique_ptr<RowBlock> {
    using Rows = std::decay_t<decltype(x)>;
    using Chosen = ChosenRows<Rows>;
    if (!chosen) return std::make_unique<RowBlockOf<Rows>>(x, begin);
    return std::make_unique<RowBlockOf<Chosen>>(Chosen(x, chosen, count), begin);
  });
}

// A set of rows in memory.
class HeldRows final : public RowSet {
 public:
  explicit HeldRows(Vector<AnyRows> rows) : held_(std::move(rows)) {
    for (const AnyRows &part : held_) {
      if (part.width() != held_[0].width())
        throw std::invalid_argument("rows of different widths");
      blocks_.push_back(make_block(part, n_));
      n_ += part.n();
    }
  }

  Index rows() const override { return n_; }
  Index width() const override { return held_.at(0).width(); }
  void centre(const Centring *centring) override {
    for (const auto &block : blocks_) block->centre(centring);
  }
  void visit(const std::function<bool(const RowBlock &)> &body) const override {
    for (const auto &block : blocks_)
      if (!body(*block)) return;
  }

 private:
  Vector<AnyRows> held_;
  Vector<std::unique_ptr<RowBlock>> blocks_;
  Index n_ = 0;
};

// The rows of one accessor, all or chosen ones, which are kept alive elsewhere.
template <class Rows>
class OneBlock final : public RowSet {
 public:
  explicit OneBlock(const Rows &rows) : rows_(rows), block_(rows, 0) {}
  Index rows() const override { return rows_.rows(); }
  Index width() const override { return rows_.width(); }
  void centre(const Centring *centring) override { block_.centre(centring); }
  void visit(const std::function<bool(const RowBlock &)> &body) const override {
    body(block_);
  }

 private:
  Rows rows_;
  RowBlockOf<Rows> block_;
};

// A set of rows that `blocks()` yields again in every pass, as pairs of rows and the
// numbers of the chosen ones, or None for all.
class YieldedRows final : public RowSet {
 public:
  YieldedRows(nb::callable blocks, Index rows, Index width)
      : blocks_(std::move(blocks)), n_(rows), width_(width) {}

  Index rows() const override { return n_; }
  Index width() const override { return width_; }
  void centre(const Centring *centring) override { centring_ = centring; }
  void visit(const std::function<bool(const RowBlock &)> &body) const override {
    const nb::gil_scoped_acquire gil;
    Index begin = 0;
    for (const nb::handle pair : blocks_()) {
      const auto &rows = nb::cast<const AnyRows &>(pair[0]);
      const Order *chosen = nullptr;
      Index count = rows.n();
      std::optional<Array<const Order>> which;
      if (!pair[1].is_none()) {
        which = nb::cast<Array<const Order>>(pair[1]);
        chosen = checked_order(*which, rows.n());
        count = static_cast<Index>(which->shape(0));
      }
      if (rows.width() != width_ || begin + count > n_) {
        begin = -1;
        break;
      }
      const nb::gil_scoped_release released;
      const auto block = make_block(rows, begin, chosen, count);
      block->centre(centring_);
      if (!body(*block)) return;
      begin += count;
    }
    if (begin != n_) throw std::invalid_argument("blocks of other rows than before");
  }

 private:
  nb::callable blocks_;
  Index n_, width_;
  const Centring *centring_ = nullptr;
};

// Copies an array into a vector.
template <class T>
Vector<T> values_of(const Array<const T> &array, Index n, const char *name) {
  const T *first = sized(array, n, name);
  return Vector<T>(first, first + n);
}

using Bytes = Array<const std::int8_t>;
using Doubles = Array<const double>;

// Makes a set of rows from a list of accessors, or from a function that yields blocks.
std::unique_ptr<RowSet> row_set(const nb::object &rows, const Bytes &y,
                                const Doubles &fixed) {
  if (!nb::isinstance<nb::list>(rows)) {
    const auto n = static_cast<Index>(y.shape(0));
    const auto width = static_cast<Index>(fixed.shape(0));
    return std::make_unique<YieldedRows>(nb::cast<nb::callable>(rows), n, width);
  }
  Vector<AnyRows> held;
  for (const nb::handle part : nb::cast<nb::list>(rows))
    held.push_back(nb::cast<const AnyRows &>(part));
  return std::make_unique<HeldRows>(std::move(held));
}

// The arguments of a set of rows, as Python holds them.
struct ChosenExamples {
  nb::object rows;
  Bytes y;
  Doubles cost, fixed;
  double constant;
  std::optional<Doubles> offset;
  SomeRows taken() const {
    std::unique_ptr<RowSet> set = row_set(rows, y, fixed);
    const Index n = set->rows(), width = set->width();
    SomeRows some{std::move(set), values_of(y, n, "y"), values_of(cost, n, "cost"),
                  values_of(fixed, width, "fixed"), constant};
    if (offset) some.offset = values_of(*offset, n, "offset");
    return some;
  }
};

NewArray<double> copied(const Vec &x) {
  auto *data = new Vec(x);
  nb::capsule owner(data, [](void *p) noexcept { delete static_cast<Vec *>(p); });
  return NewArray<double>({data->data(), {static_cast<std::size_t>(x.size())}, owner});
}

AnyRows chosen_rows(const AnyRows &rows, Array<const Order> chosen, double constant) {
  const auto *order = checked_order(chosen, rows.n());
  const auto m = static_cast<Index>(chosen.shape(0));
  return rows.visit([&](const auto &x) {
    Index stored = 0;
    for (Index t = 0; t < m; ++t) stored += x.count(order[t]);
    auto [copy, storage] = [&] {
      const nb::gil_scoped_release released;
      return copy_rows(x, order, m, constant);
    }();
    nb::capsule owner(new std::shared_ptr<void>(storage), [](void *p) noexcept {
      delete static_cast<std::shared_ptr<void> *>(p);
    });
    return AnyRows(copy, stored, {nb::object(owner)});
  });
}

// A point, its residuals and gradient, and room for a step and its image.
struct NewtonArrays {
  Array<double> w, residual, gradient, step, image;
  NewtonPoint of(const AnyRows &rows) const {
    return {sized(w, rows.width(), "w"), sized(residual, rows.n(), "residual"),
            sized(gradient, rows.width(), "gradient")};
  }
};

NewtonData newton_data(const RegressionExamples &examples) {
  return {examples.target.data(), examples.cost.data(), examples.loss.epsilon};
}

void bind_newton(nb::module_ &m) {
  nb::class_<NewtonArrays>(m, "NewtonState",
                           "A point, its residuals and gradient, and room for a step "
                           "and its image.")
      .def(nb::init<Array<double>, Array<double>, Array<double>, Array<double>,
                    Array<double>>(),
           "w"_a, "residual"_a, "gradient"_a, "step"_a, "image"_a);
  m.def(
      "newton_point",
      [](const RegressionExamples &examples, const NewtonArrays &state, Team &threads) {
        const NewtonData data = newton_data(examples);
        const NewtonPoint point = state.of(examples.rows);
        nb::gil_scoped_release released;
        const NewtonValues values = examples.rows.visit(
            [&](const auto &x) { return newton_point(x, data, point, threads); });
        return std::make_tuple(values.primal, values.gap, values.outside);
      },
      "examples"_a, "state"_a, "threads"_a.noconvert(),
      "Residuals and gradient of the squared loss at w: (P, P - D, rows outside of the "
      "tube).");
  m.def(
      "newton_step",
      [](const RegressionExamples &examples, const NewtonArrays &state, double accuracy,
         Index most, const Algebra &algebra, Team &threads, Stop &stop) {
        const AnyRows &rows = examples.rows;
        const Index n = rows.n(), d = rows.width();
        const NewtonData data = newton_data(examples);
        const NewtonPoint point = state.of(rows);
        double *s = sized(state.step, d, "step");
        double *moved = sized(state.image, n, "image");
        const LinearAlgebra functions = look_up(algebra);
        return without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            Index conjugate = 0;
            bool found = false;
            if (most == 0) {
              using Rows = OneBlock<std::decay_t<decltype(x)>>;
              NewtonFactor matrix(std::make_unique<Rows>(x), threads, functions);
              found = matrix.solve(data, point, s, poll, stop);
            }
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
      "examples"_a, "state"_a, "accuracy"_a, "most"_a, "algebra"_a,
      "threads"_a.noconvert(), "stop"_a,
      "A Newton step and how far to go along it: (length, conjugate gradients); by a "
      "factor if `most` is 0. The length is 0 if told to leave, or at the optimum.");
}

// Labels and costs of several problems over the same rows, and room for w and alpha,
// one row each. A single row of costs is for all of them.
struct LabellingTables {
  Table<const std::int8_t> y;
  Table<const double> cost;
  Table<double> w, alpha;
  Vector<Labelling> of(const AnyRows &rows) const {
    const Index n = rows.n(), width = rows.width();
    const auto many = static_cast<Index>(y.shape(0));
    const auto costs = static_cast<Index>(cost.shape(0));
    const auto check = [&](const auto &table, Index columns, const char *name) {
      check_length(static_cast<Index>(table.shape(1)), columns, name);
    };
    check(y, n, "y"), check(cost, n, "cost"), check(alpha, n, "alpha");
    check(w, width, "w");
    check_length(static_cast<Index>(w.shape(0)), many, "w");
    check_length(static_cast<Index>(alpha.shape(0)), many, "alpha");
    if (costs != 1) check_length(costs, many, "cost");
    Vector<Labelling> all;
    for (Index k = 0; k < many; ++k)
      all.push_back({y.data() + k * n, cost.data() + (costs == 1 ? 0 : k * n),
                     w.data() + k * width, alpha.data() + k * n});
    return all;
  }
};

void bind_labellings(nb::module_ &m) {
  nb::class_<LabellingSettings>(m, "LabellingSettings",
                                "The first smoothing; accuracies to reach: tol, atol, "
                                "and `goal` while less than `free` entries are read; "
                                "most steps, and steps of an epoch.")
      .def(nb::init<double, double, double, double, double, int, int, NewtonRules>(),
           "tau"_a, "tol"_a, "atol"_a, "goal"_a, "free"_a, "most"_a, "epoch"_a,
           "rules"_a)
      .def_rw("whole", &LabellingSettings::whole,
              "whether problems in which most rows matter are solved too")
      .def_rw("near", &LabellingSettings::near,
              "whether problems begin at the given w, not at 0");
  nb::class_<LabellingTables>(m, "Labellings",
                              "Labels and costs of several problems over the same "
                              "rows, and room for w and alpha, one row each. A single "
                              "row of costs is for all of them.")
      .def(nb::init<Table<const std::int8_t>, Table<const double>, Table<double>,
                    Table<double>>(),
           "y"_a, "cost"_a, "w"_a, "alpha"_a);
  nb::class_<LabellingProofs>(m, "LabellingProofs", "Points of all labellings.")
      .def_prop_ro(
          "sums",
          [](const LabellingProofs &self) {
            return table_of(self.points, [](const GivenPoint &of) {
              const Values &v = of.values;
              return std::array{v.loss,       v.sum,         v.diagonal, v.loss_error,
                                v.along,      v.along_error, v.reach,    v.used,
                                v.roundings,  v.length,      v.last,     of.norm,
                                of.dual_norm, of.scale};
            });
          },
          "The fields of `Values`, ||w||^2, ||v||^2, and the scale of alpha.")
      .def_prop_ro(
          "epochs",
          [](const LabellingProofs &self) { return table_of_epochs(self.epochs); },
          "Estimates of P and D, and the steps so far, after every epoch.")
      .def_ro("ends", &LabellingProofs::ends, "Where the epochs of each one end.")
      .def_ro("left", &LabellingProofs::left, "Number of problems left to others.");
  m.def(
      "solve_labellings",
      [](const AnyRows &rows, Doubles q, const LabellingTables &labellings,
         const Loss &loss, const LabellingSettings &settings, const Algebra &algebra,
         Team &threads, Stop &stop) {
        const double *squares = sized(q, rows.n(), "q");
        const Vector<Labelling> all = labellings.of(rows);
        const LinearAlgebra functions = look_up(algebra);
        return without_gil(stop, [&](Poll &poll) {
          return rows.visit([&](const auto &x) {
            using Rows = std::decay_t<decltype(x)>;
            const auto set = [&](const Vector<Order> &kept) -> std::unique_ptr<RowSet> {
              const auto count = kept.size();
              if (count == x.rows()) return std::make_unique<OneBlock<Rows>>(x);
              using Chosen = ChosenRows<Rows>;
              return std::make_unique<OneBlock<Chosen>>(Chosen(x, kept.data(), count));
            };
            return LabellingSolver<Rows>(x, squares, loss, set, threads, functions)
                .solve(all, settings, poll, stop);
          });
        });
      },
      "rows"_a, "q"_a, "labellings"_a, "loss"_a, "settings"_a, "algebra"_a,
      "threads"_a.noconvert(), "stop"_a,
      "Solve and prove problems with the same rows, each with its labels, by Newton's "
      "method; the first ones if told to stop.");
  nb::class_<SweepRules>(
      m, "SweepRules",
      "Accuracies to reach: tol, atol, and `goal` while less than "
      "`free` entries are read, of which `row` count for a visit "
      "and `sweep` for a sweep; most sweeps. The fields say how they "
      "are made, from how many times the gap a proof is made, and how "
      "the gap is estimated.")
      .def(nb::init<double, double, double, double, double, double, int>(), "tol"_a,
           "atol"_a, "goal"_a, "free"_a, "row"_a, "sweep"_a, "most"_a)
      .def_rw("omega", &SweepRules::omega, "over-relaxation")
      .def_rw("chunk", &SweepRules::chunk, "rows that are visited together")
      .def_rw("longest", &SweepRules::longest, "most sweeps that a row is skipped")
      .def_rw("modified_sgd", &SweepRules::modified_sgd,
              "whether the first sweep is Modified-SGD")
      .def_rw("nearly", &SweepRules::nearly,
              "times the target gap, at which a proof is made")
      .def_rw("lag", &SweepRules::lag, "how much the fall of the gap corrects it")
      .def_rw("least", &SweepRules::least, "least share that a correction leaves");
  m.def(
      "sweep_labellings",
      [](const AnyRows &rows, Doubles q, const LabellingTables &labellings,
         const Loss &loss, const SweepRules &rules, const Vector<std::uint64_t> &seeds,
         Team &threads, Stop &stop) {
        const double *squares = sized(q, rows.n(), "q");
        const Vector<Labelling> all = labellings.of(rows);
        if (seeds.empty()) throw std::invalid_argument("seeds is empty");
        return pass_over(rows, stop, [&](const auto &x, Poll &poll) {
          using Rows = std::decay_t<decltype(x)>;
          return SweepSolver<Rows>(x, squares, loss, rules)
              .solve(all, seeds, threads, poll, stop);
        });
      },
      "rows"_a, "q"_a, "labellings"_a, "loss"_a, "rules"_a, "seeds"_a,
      "threads"_a.noconvert(), "stop"_a,
      "Solve and prove problems with the same rows, each with its labels, by sweeps "
      "that skip rows; the first ones if told to stop.");
}

void bind_smoothing_newton(nb::module_ &m) {
  using Newton = SmoothingNewton;
  nb::class_<NewtonRules>(m, "NewtonRules",
                          "How fast a run smooths less, and when it is stuck.")
      .def(nb::init<double, double, double, double, int, double>(), "share"_a,
           "slack"_a, "divisor"_a, "rounding"_a, "most_idle"_a, "least_radius"_a);
  nb::class_<NewtonRun>(m, "NewtonRun", "Steps that were made in one call.")
      .def_prop_ro("outcome",
                   [](const NewtonRun &run) { return static_cast<int>(run.outcome); })
      .def_ro("steps", &NewtonRun::steps)
      .def_ro("sharpened", &NewtonRun::sharpened, "How often tau was reduced.")
      .def_ro("inside", &NewtonRun::inside, "`inside` over all steps.")
      .def_ro("stuck", &NewtonRun::stuck)
      .def_ro("far", &NewtonRun::far, "Whether hardly any of the radius is left.");
  nb::class_<Newton>(m, "SmoothingNewton",
                     "Newton's method on a smoothed loss; every cost is positive.")
      .def(
          "__init__",
          [](Newton *self, const ChosenExamples &examples, const Loss &loss,
             bool free_bias, Team &threads, const Algebra &algebra) {
            new (self)
                Newton(examples.taken(), loss, free_bias, threads, look_up(algebra));
          },
          "examples"_a, "loss"_a, "free_bias"_a, "threads"_a.noconvert(), "algebra"_a,
          nb::keep_alive<1, 5>())
      .def(
          "start",
          [](Newton &self, Doubles w, double tau, Stop &stop) {
            const auto *point = sized(w, self.width(), "w");
            return without_gil(
                stop, [&](Poll &poll) { return self.start(point, tau, poll, stop); });
          },
          "w"_a, "tau"_a, "stop"_a,
          "Start at w, smoothed by tau. False: told to leave.")
      .def(
          "smooth",
          [](Newton &self, double tau, Stop &stop) {
            return without_gil(
                stop, [&](Poll &poll) { return self.smooth(tau, poll, stop); });
          },
          "tau"_a, "stop"_a, "Another tau at the same w. False: told to leave.")
      .def(
          "iterate",
          [](Newton &self, double limit, Stop &stop) {
            const auto outcome = without_gil(
                stop, [&](Poll &poll) { return self.iterate(limit, poll, stop); });
            return static_cast<int>(outcome);
          },
          "limit"_a, "stop"_a,
          "A step that moves w by `limit` at most: 0, 1 if told to leave, 2 if the "
          "matrix has no factor.")
      .def(
          "run",
          [](Newton &self, double goal, bool whole, double radius, int most,
             const NewtonRules &rules, Stop &stop) {
            return without_gil(stop, [&](Poll &poll) {
              return self.run(goal, whole, radius, most, rules, poll, stop);
            });
          },
          "goal"_a, "whole"_a, "radius"_a, "most"_a, "rules"_a, "stop"_a,
          "Up to `most` steps, until the relative gap is at most `goal` or w has moved "
          "by `radius` from where it started. `whole`: this gap is to be proved.")
      .def_prop_ro("w", [](Newton &self) { return copied(self.w()); })
      .def_prop_ro("alpha", [](Newton &self) { return copied(self.alpha()); })
      .def_prop_ro("margins", [](Newton &self) { return copied(self.margins()); })
      .def_prop_ro("tau", &Newton::tau)
      .def_prop_ro("primal", &Newton::primal)
      .def_prop_ro("dual", &Newton::dual)
      .def_prop_ro("smoothing", &Newton::smoothing, "What smoothing adds to P - D.")
      .def_prop_ro("moved", &Newton::moved)
      .def_prop_ro("decrement", &Newton::decrement,
                   "About what the last step took from the smoothed objective.")
      .def_prop_ro("inside", &Newton::inside);
}

}  // namespace

void bind_interior(nb::module_ &m) {
  nb::class_<ChosenExamples>(
      m, "SomeRows",
      "Rows with labels and costs; the sum `fixed` and the dual "
      "variables `constant` of all other rows. The rows are a "
      "list of accessors, or what a function yields in every "
      "pass: an accessor, and which of its rows or None for all. "
      "Offsets are taken off the margins; they are 0 by default.")
      .def(nb::init<nb::object, Bytes, Doubles, Doubles, double,
                    std::optional<Doubles>>(),
           "rows"_a, "y"_a, "cost"_a, "fixed"_a, "constant"_a,
           "offset"_a.none() = nb::none());
  bind_newton(m);
  bind_smoothing_newton(m);
  bind_labellings(m);
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
      "rows"_a, "y"_a, "group"_a,
      "The number of each row's group of equal rows and labels; returns how many.");
  m.def(
      "has_windows",
      [](const AnyRows &rows) {
        return rows.visit([](const auto &x) { return windows_pay(x); });
      },
      "rows"_a, "Whether entries of a sparse row are in neighbouring columns.");
  m.def(
      "snapped",
      [](Doubles alpha, Doubles cost, const Loss &loss, double share, double most) {
        const auto n = static_cast<Index>(alpha.shape(0));
        const double *given = alpha.data(), *costs = sized(cost, n, "cost");
        Vec out(given, given + n);
        for (Index i = 0; i < out.size(); ++i) {
          const double upper = loss.upper(costs[i]),
                       near = std::min(share * upper, most);
          if (out[i] < near) out[i] = 0.0;
          if (upper - out[i] < near) out[i] = upper;
        }
        return copied(out);
      },
      "alpha"_a, "cost"_a, "loss"_a, "share"_a, "most"_a,
      "The dual variables, with those at a bound that are within `share` U, and within "
      "`most`, of it.");
  m.def("chosen_rows", &chosen_rows, "rows"_a, "chosen"_a, "feature"_a,
        "A copy of the chosen rows.");

  nb::class_<Interior>(m, "Interior",
                       "The interior-point iteration; every cost is positive.")
      .def(
          "__init__",
          [](Interior *self, const ChosenExamples &examples, const Loss &loss,
             double scale, bool free_bias, Team &threads, const Algebra &algebra) {
            new (self) Interior(examples.taken(), loss, scale, free_bias, threads,
                                look_up(algebra));
          },
          "examples"_a, "loss"_a, "scale"_a, "free_bias"_a, "threads"_a.noconvert(),
          "algebra"_a, nb::keep_alive<1, 6>())
      .def(
          "start",
          [](Interior &self, Doubles w, double mu, Stop &stop) {
            const auto *point = sized(w, self.width(), "w");
            return without_gil(
                stop, [&](Poll &poll) { return self.start(point, mu, poll, stop); });
          },
          "w"_a, "mu"_a, "stop"_a,
          "Start at w with every product at mu; 0: far inside, for w = 0. False: told "
          "to leave.")
      .def(
          "iterate",
          [](Interior &self, Stop &stop) {
            const auto outcome =
                without_gil(stop, [&](Poll &poll) { return self.iterate(poll, stop); });
            return static_cast<int>(outcome);
          },
          "stop"_a,
          "One iteration: 0, 1 if told to leave, 2 if the matrix has no factor.")
      .def(
          "run",
          [](Interior &self, double goal, int most, Stop &stop) {
            const auto [outcome, steps, correctors] = without_gil(
                stop, [&](Poll &poll) { return self.run(goal, most, poll, stop); });
            return std::make_tuple(static_cast<int>(outcome), steps, correctors);
          },
          "goal"_a, "most"_a, "stop"_a,
          "Iterations until the relative gap is at most `goal`: the last outcome, the "
          "number of steps, and of their correctors.")
      .def(
          "refresh",
          [](Interior &self, Stop &stop) {
            return without_gil(stop,
                               [&](Poll &poll) { return self.refresh(poll, stop); });
          },
          "stop"_a,
          "Recompute margins, residual, P and D from w and alpha. False: told to "
          "leave.")
      .def_prop_ro("w", [](Interior &self) { return copied(self.w()); })
      .def_prop_ro("alpha", [](Interior &self) { return copied(self.alpha()); })
      .def_prop_ro("mu", &Interior::mu)
      .def_prop_ro("primal", &Interior::primal)
      .def_prop_ro("dual", &Interior::dual)
      .def_prop_ro("length", &Interior::step)
      .def_prop_ro("correctors", &Interior::correctors)
      .def_prop_ro("single", &Interior::single,
                   "Whether the next matrix is added up in float32.");
}

}  // namespace dualgap

#include "bindings_row_sets.hpp"

#include <cstring>

#include "duplicates.hpp"

namespace dualgap {

namespace {

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

// Makes a block of all or of the chosen rows. `begin` is its first row number in the
// set.
std::unique_ptr<RowBlock> make_block(const AnyRows &rows, Index begin,
                                     const Numbers &chosen) {
  return rows.visit([&]<class Rows>(const Rows &x) -> std::unique_ptr<RowBlock> {
    using Some = SomeOf<Rows>;
    return std::make_unique<RowBlockOf<Some>>(
        chosen ? Some(x, *chosen, chosen->length) : Some(x), begin);
  });
}

// A set of rows in memory.
class HeldRows final : public RowSet {
 public:
  // Adds all or the chosen rows, which are kept alive elsewhere.
  void add(const AnyRows &rows, const Numbers &chosen = {}) {
    if (!blocks_.empty() && rows.width() != width_)
      throw std::invalid_argument("rows of different widths");
    width_ = rows.width();
    blocks_.push_back(make_block(rows, n_, chosen));
    n_ += chosen ? chosen->length : rows.n();
  }
  // Adds rows, and keeps them alive.
  void hold(const AnyRows &rows) {
    held_.push_back(rows);
    add(rows);
  }

  Index rows() const override { return n_; }
  Index width() const override { return width_; }
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
  Index n_ = 0, width_ = 0;
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
      Numbers chosen;
      Maybe<const Order> which;
      if (!pair[1].is_none()) {
        which = nb::cast<Array<const Order>>(pair[1]);
        chosen = {checked_order(*which, rows.n()), which->length()};
      }
      const Index count = chosen ? chosen->length : rows.n();
      if (rows.width() != width_ || begin + count > n_) {
        begin = -1;
        break;
      }
      const nb::gil_scoped_release released;
      const auto block = make_block(rows, begin, chosen);
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

// Makes a set of rows from a list of accessors, or from a function that yields blocks.
std::unique_ptr<RowSet> row_set(const nb::object &rows, const Bytes &y,
                                const Doubles &fixed) {
  if (!nb::isinstance<nb::list>(rows)) {
    const auto n = y.length();
    const auto width = fixed.length();
    return std::make_unique<YieldedRows>(nb::cast<nb::callable>(rows), n, width);
  }
  auto held = std::make_unique<HeldRows>();
  for (const nb::handle part : nb::cast<nb::list>(rows))
    held->hold(nb::cast<const AnyRows &>(part));
  return held;
}

AnyRows chosen_rows(const AnyRows &rows, Array<const Order> chosen, double constant) {
  const auto *order = checked_order(chosen, rows.n());
  const auto m = chosen.length();
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

}  // namespace

LinearAlgebra look_up(const Algebra &algebra) {
  if (algebra.size() != 4) throw std::invalid_argument("algebra has four functions");
  LinearAlgebra functions{};
  look_up(functions.dsyrk, algebra[0], 4);
  look_up(functions.ssyrk, algebra[1], 4);
  look_up(functions.dpotrf, algebra[2], 3);
  look_up(functions.dpotrs, algebra[3], 5);
  return functions;
}

std::unique_ptr<RowSet> one_block(const AnyRows &rows, const Numbers &chosen) {
  auto held = std::make_unique<HeldRows>();
  held->add(rows, chosen);
  return held;
}

SomeRows ChosenExamples::taken() const {
  std::unique_ptr<RowSet> set = row_set(rows, y, fixed);
  const Index n = set->rows(), width = set->width();
  SomeRows some{std::move(set), values_of(y, n, "y"), values_of(cost, n, "cost"),
                values_of(fixed, width, "fixed"), constant};
  if (offset) some.offset = values_of(*offset, n, "offset");
  return some;
}

void bind_row_sets(nb::module_ &m) {
  nb::class_<ChosenExamples>(
      m, "SomeRows",
      "Rows with labels and costs; the sum `fixed` and the dual variables `constant` "
      "of all other rows. The rows are a list of accessors, or what a function yields "
      "in every pass: an accessor, and which of its rows or None for all. Offsets are "
      "taken off the margins; they are 0 by default.")
      .def(nb::init<nb::object, Bytes, Doubles, Doubles, double,
                    std::optional<Doubles>>(),
           "rows"_a, "y"_a, "cost"_a, "fixed"_a, "constant"_a,
           "offset"_a.none() = nb::none());
  m.def(
      "group_duplicates",
      [](const AnyRows &rows, Array<const std::int8_t> y, Array<Order> group) {
        const auto *labels = sized(y, rows.n(), "y");
        auto *out = sized(group, rows.n(), "group");
        Stop never;
        return pass_over(rows, never, [&](const auto &x, Poll &poll) {
          return group_duplicates(x, labels, out, poll);
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
  m.def("chosen_rows", &chosen_rows, "rows"_a, "chosen"_a, "feature"_a,
        "A copy of the chosen rows.");
}

}  // namespace dualgap

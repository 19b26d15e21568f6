// Shared parts of the bindings: the matrix with its dtypes erased, checked arrays, and
// running a kernel without the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "epoch.hpp"
#include "epochs/dual.hpp"
#include "losses.hpp"
#include "rows.hpp"
#include "stop.hpp"
#include "threads.hpp"

namespace dualgap {

namespace nb = nanobind;
using namespace nb::literals;

// One function per file; bindings.cpp calls all of them.
void bind_block(nb::module_ &m);
void bind_crammer_singer(nb::module_ &m);
void bind_cutting_planes(nb::module_ &m);
void bind_dual_coordinate(nb::module_ &m);
void bind_elastic_net(nb::module_ &m);
void bind_folds(nb::module_ &m);
void bind_interior(nb::module_ &m);
void bind_io(nb::module_ &m);
void bind_kernel(nb::module_ &m);
void bind_kernel_rows(nb::module_ &m);
void bind_kernel_times(nb::module_ &m);
void bind_labellings(nb::module_ &m);
void bind_pairs(nb::module_ &m);
void bind_simplex(nb::module_ &m);
void bind_regression(nb::module_ &m);
void bind_row_sets(nb::module_ &m);
void bind_stochastic_gradient(nb::module_ &m);

// An array whose entries are aligned for their type. Arrays cut out of a message, as in
// Dask, may begin at any byte. The caster below copies such an array if it is only
// read, and rejects it if it is to be written. An array of another type is never
// converted, because Python would not see what is written into the copy.
template <class T, class Dimensions>
struct Aligned : nb::ndarray<T, nb::numpy, Dimensions, nb::c_contig, nb::device::cpu> {
  using Base = nb::ndarray<T, nb::numpy, Dimensions, nb::c_contig, nb::device::cpu>;
  Aligned() = default;
  explicit Aligned(Base array) : Base(std::move(array)) {}
  bool aligned() const {
    return reinterpret_cast<std::uintptr_t>(this->data()) % alignof(T) == 0;
  }
  Index length() const { return static_cast<Index>(this->shape(0)); }
  Index columns() const { return static_cast<Index>(this->shape(1)); }
};
template <class T>
using Array = Aligned<T, nb::ndim<1>>;
template <class T>
using Table = Aligned<T, nb::ndim<2>>;
template <class T>
using Maybe = std::optional<Array<T>>;

// An array that is made for Python, whose type its signature names.
template <class T, class Dimensions = nb::ndim<1>>
struct NewArray : nb::object {
  using Base = nb::ndarray<nb::numpy, T, Dimensions>;
  static constexpr auto Name = nb::detail::make_caster<Base>::Name;
  explicit NewArray(const Base &array,
                    nb::rv_policy policy = nb::rv_policy::automatic_reference)
      : nb::object(nb::cast(array, policy)) {}
};
using NewTable = NewArray<double, nb::ndim<2>>;

// A team, or a number of threads that start for one call.
struct TeamOrCount {
  Team *team = nullptr;
  operator Team &() const { return *team; }
};

// The matrix with its dtypes erased. Only this class lists all dtypes.
class AnyRows {
 public:
  using Variant =
      std::variant<CsrRows<float, std::int32_t>, CsrRows<double, std::int32_t>,
                   CsrRows<float, std::int64_t>, CsrRows<double, std::int64_t>,
                   DenseRows<float>, DenseRows<double>>;

  AnyRows(Variant rows, Index stored, Vector<nb::object> owners)
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
  bool dense() const {
    return visit([]<class Rows>(const Rows &) { return is_dense<Rows>::value; });
  }
  Index bytes() const {
    return visit([&](const auto &rows) { return stored_ * rows.kEntryBytes; });
  }
  // The arrays: values, and for CSR rows also indices and pointers.
  const Vector<nb::object> &owners() const { return owners_; }
  AnyRows with_constant(double constant) const {
    return visit([&](const auto &rows) {
      return AnyRows(rows.with_constant(constant), stored_, owners_);
    });
  }

 private:
  Variant rows_;
  Index stored_;
  Vector<nb::object> owners_;  // keeps the arrays alive
};

inline void check_length(Index have, Index want, const char *name) {
  if (have != want)
    throw std::invalid_argument(std::string(name) + " has " + std::to_string(have) +
                                " entries, expected " + std::to_string(want));
}

template <class A>
auto *sized(const A &array, Index want, const char *name) {
  check_length(array.length(), want, name);
  return array.data();
}

template <class A>
auto *sized(const std::optional<A> &array, Index want, const char *name) {
  return array ? sized(*array, want, name) : nullptr;
}

inline void check_shape(const auto &table, Index rows, Index columns,
                        const char *name) {
  check_length(table.length(), rows, name);
  check_length(table.columns(), columns, (std::string("a row of ") + name).c_str());
}

inline NewArray<double> copied(Vec x) {
  auto *data = new Vec(std::move(x));
  nb::capsule owner(data, [](void *p) noexcept { delete static_cast<Vec *>(p); });
  return NewArray<double>(
      {data->data(), {static_cast<std::size_t>(data->size())}, owner});
}

// Returns an array of shape (n, N) with the N numbers that `row` makes of every item.
template <class Items, class Row>
NewTable table_of(const Items &items, const Row &row) {
  using Numbers = decltype(row(*items.begin()));
  constexpr std::size_t kColumns = std::tuple_size_v<Numbers>;
  auto *rows = new Vector<Numbers>;
  nb::capsule owner(rows,
                    [](void *p) noexcept { delete static_cast<decltype(rows)>(p); });
  for (const auto &item : items) rows->push_back(row(item));
  const auto count = static_cast<std::size_t>(rows->size());
  return NewTable({rows->data(), {count, kColumns}, owner});
}

// Returns P, D and the steps so far of every epoch, shape (n, 3).
inline NewTable table_of_epochs(const Vector<Epoch> &epochs) {
  return table_of(epochs, [](const Epoch &of) {
    return std::array{of.primal, of.dual, static_cast<double>(of.steps)};
  });
}

// Checks that an order names existing rows only.
template <class A>
auto *checked_order(const A &order, Index n) {
  auto *first = order.data();
  if (std::any_of(first, first + order.length(), [n](Order i) { return i >= n; }))
    throw std::invalid_argument("order names a row that does not exist");
  return order.data();
}

// The length of an array, and its name in messages.
struct Named {
  template <class A>
  Named(const A &array, const char *title) : length(array.length()), name(title) {}
  template <class T>
  Named(const Span<T> &array, const char *title) : length(array.length), name(title) {}
  Index length;
  const char *name;
};

// Checks that the arrays have `want` entries, and returns this number.
inline Index checked_lengths(Index want, std::initializer_list<Named> arrays) {
  for (const auto &[length, name] : arrays) check_length(length, want, name);
  return want;
}

// Rows with a label or a target, a cost, and q_i = ||x_i||^2 each.
template <class Target, class L>
struct ExamplesOf {
  AnyRows rows;
  Array<const Target> y;
  Array<const double> cost, q;
  L loss{};
  Index n = checked_lengths(rows.n(), {{y, "y"}, {cost, "cost"}, {q, "q"}});

  Index width() const { return rows.width(); }
  DualDataOf<L, Target> dual() const { return {y.data(), cost.data(), q.data(), loss}; }
};
using Examples = ExamplesOf<std::int8_t, Loss>;
using LogisticExamples = ExamplesOf<std::int8_t, LogisticLoss>;
using RegressionExamples = ExamplesOf<double, ResidualLoss>;

// Makes a record of the core from its fields in order. The arrays of Python to which
// its spans point live as long as it. They are used with different rows, so every call
// checks their lengths.
template <class... Fields, class Class, class... Names>
Class made_of(Class record, const Names &...names) {
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    record.def(nb::init<Fields...>(), names..., nb::keep_alive<1, k + 2>()...);
  }(std::index_sequence_for<Fields...>());
  return record;
}

inline void check(const DualState &point, const AnyRows &rows) {
  checked_lengths(rows.n(), {{point.alpha, "alpha"}});
  checked_lengths(rows.width(), {{point.w, "w"}});
}

inline void check(const Sleep &sleep, const AnyRows &rows) {
  if (sleep.longest < 1 || sleep.longest > 127)
    throw std::invalid_argument("longest is from 1 to 127");
  checked_lengths(rows.n(), {{sleep.wake, "wake"}, {sleep.length, "length"}});
}

// Runs a kernel without the GIL. A pending signal runs its Python handler. If the
// handler raises an exception, the kernel stops and the exception is rethrown.
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

// Makes a pass over the rows without the GIL.
template <class F>
auto pass_over(const AnyRows &rows, Stop &stop, F &&pass) {
  return without_gil(stop, [&](Poll &poll) {
    return rows.visit([&](const auto &x) { return pass(x, poll); });
  });
}

}  // namespace dualgap

namespace nanobind::detail {

template <class T, class Dimensions>
struct type_caster<dualgap::Aligned<T, Dimensions>> {
  using Array = dualgap::Aligned<T, Dimensions>;
  using Caster = make_caster<typename Array::Base>;
  NB_TYPE_CASTER(Array, Caster::Name)

  template <class Flags>
  bool from_python(handle src, Flags given, cleanup_list *cleanup) noexcept {
    const auto flags =
        static_cast<Flags>(given & ~static_cast<Flags>(cast_flags::convert));
    Caster caster;
    if (!caster.from_python(src, flags, cleanup)) return false;
    value = Array(std::move(caster.value));
    if (value.aligned()) return true;
    if (!std::is_const_v<T>) return false;
    const object copy = steal(PyObject_CallMethod(src.ptr(), "copy", nullptr));
    if (!copy.is_valid()) PyErr_Clear();
    if (!copy.is_valid() || !caster.from_python(copy, flags, cleanup)) return false;
    value = Array(std::move(caster.value));
    return value.aligned();
  }
  static handle from_cpp(const Array &array, rv_policy policy,
                         cleanup_list *cleanup) noexcept {
    return Caster::from_cpp(array, policy, cleanup);
  }
};

// None is a span without entries; arguments take it that say so.
template <class T>
struct type_caster<dualgap::Span<T>> {
  using Caster = make_caster<dualgap::Array<T>>;
  NB_TYPE_CASTER(dualgap::Span<T>, Caster::Name)

  template <class Flags>
  bool from_python(handle src, Flags flags, cleanup_list *cleanup) noexcept {
    static_assert(!std::is_const_v<T>, "a copy would die with the call");
    if (src.is_none()) return true;
    Caster caster;
    if (!caster.from_python(src, flags, cleanup)) return false;
    value = {caster.value.data(), caster.value.length()};
    return true;
  }
};

template <class T>
struct type_caster<dualgap::Vector<T>> : list_caster<dualgap::Vector<T>, T> {};

template <>
struct type_caster<dualgap::TeamOrCount> {
  using Caster = make_caster<dualgap::Team>;
  NB_TYPE_CASTER(dualgap::TeamOrCount, Caster::Name + const_name(" | int"))

  template <class Flags>
  bool from_python(handle src, Flags flags, cleanup_list *cleanup) noexcept {
    Caster caster;
    if (!caster.from_python(src, flags, cleanup)) return false;
    value.team = caster.operator dualgap::Team *();
    return value.team != nullptr;
  }
};

}  // namespace nanobind::detail

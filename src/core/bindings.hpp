// Shared parts of the bindings: the matrix with its dtypes erased, checked arrays, and
// running a kernel without the GIL.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "rows.hpp"
#include "stop.hpp"

namespace dualgap {

namespace nb = nanobind;
using namespace nb::literals;

// One function per file; bindings.cpp calls all of them.
void bind_block(nb::module_ &m);
void bind_counting_sgd(nb::module_ &m);
void bind_crammer_singer(nb::module_ &m);
void bind_cutting_planes(nb::module_ &m);
void bind_dual_coordinate(nb::module_ &m);
void bind_interior(nb::module_ &m);
void bind_io(nb::module_ &m);
void bind_kernel(nb::module_ &m);
void bind_regression(nb::module_ &m);
void bind_sgd_qn(nb::module_ &m);
void bind_stochastic_gradient(nb::module_ &m);
void bind_unlearning(nb::module_ &m);

// An array whose entries are aligned for their type. Arrays cut out of a message, as in
// Dask, may begin at any byte. The caster below copies such an array if it is only
// read, and rejects it if it is to be written.
template <class T, class Dimensions>
struct Aligned : nb::ndarray<T, nb::numpy, Dimensions, nb::c_contig, nb::device::cpu> {
  using Base = nb::ndarray<T, nb::numpy, Dimensions, nb::c_contig, nb::device::cpu>;
  Aligned() = default;
  explicit Aligned(Base array) : Base(std::move(array)) {}
  bool aligned() const {
    return reinterpret_cast<std::uintptr_t>(this->data()) % alignof(T) == 0;
  }
};
template <class T>
using Array = Aligned<T, nb::ndim<1>>;
template <class T>
using Table = Aligned<T, nb::ndim<2>>;
template <class T>
using Maybe = std::optional<Array<T>>;

// The matrix with its dtypes erased. Only this class lists all dtypes.
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
  bool dense() const {
    return visit([]<class Rows>(const Rows &) { return is_dense<Rows>::value; });
  }
  Index bytes() const {
    return visit([&](const auto &rows) { return stored_ * rows.kEntryBytes; });
  }
  // The arrays: values, and for CSR rows also indices and pointers.
  const std::vector<nb::object> &owners() const { return owners_; }
  AnyRows with_constant(double constant) const {
    return visit([&](const auto &rows) {
      return AnyRows(rows.with_constant(constant), stored_, owners_);
    });
  }

 private:
  Variant rows_;
  Index stored_;
  std::vector<nb::object> owners_;  // keeps the arrays alive
};

inline void check_length(Index have, Index want, const char *name) {
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

// Checks that an order names existing rows only.
template <class A>
auto *checked_order(const A &order, Index n) {
  const auto m = static_cast<Index>(order.shape(0));
  Order largest = 0;
  for (Index t = 0; t < m; ++t) largest = std::max<Order>(largest, order.data()[t]);
  if (m > 0 && static_cast<Index>(largest) >= n)
    throw std::invalid_argument("order names a row that does not exist");
  return order.data();
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

}  // namespace dualgap

namespace nanobind::detail {

template <class T, class Dimensions>
struct type_caster<dualgap::Aligned<T, Dimensions>> {
  using Array = dualgap::Aligned<T, Dimensions>;
  using Caster = make_caster<typename Array::Base>;
  NB_TYPE_CASTER(Array, Caster::Name)

  template <class Flags>
  bool from_python(handle src, Flags flags, cleanup_list *cleanup) noexcept {
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

}  // namespace nanobind::detail

// Sets of rows for methods that treat all rows as one matrix, and the functions of
// SciPy for it. One unit compiles the blocks of all kinds of rows.
#pragma once

#include <memory>

#include "bindings.hpp"
#include "newton_system.hpp"

namespace dualgap {

// The functions of SciPy, in capsules.
using Algebra = nb::typed<nb::tuple, nb::object, nb::ellipsis>;

LinearAlgebra look_up(const Algebra &algebra);

// Numbers of chosen rows; nothing for all rows.
using Numbers = std::optional<Span<const Order>>;

// The rows, all or chosen ones, which are kept alive elsewhere.
std::unique_ptr<RowSet> one_block(const AnyRows &rows, const Numbers &chosen = {});

using Bytes = Array<const std::int8_t>;
using Doubles = Array<const double>;

// The arguments of a set of rows, as Python holds them.
struct ChosenExamples {
  nb::object rows;
  Bytes y;
  Doubles cost, fixed;
  double constant;
  std::optional<Doubles> offset;
  SomeRows taken() const;
};

}  // namespace dualgap

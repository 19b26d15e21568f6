// The sum of the points of stochastic gradient methods.
#pragma once

#include "../core/index.hpp"

namespace dualgap {

// The sum of w_1 ... w_t is sigma v + r, with the coefficients sigma beta + r_beta.
// With a kernel, the margins of the rows take the place of w.
struct SumOfSteps {
  Span<double> r, r_beta;
  double sigma = 0.0;
};

}  // namespace dualgap

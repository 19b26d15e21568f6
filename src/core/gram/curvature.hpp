// Curvature along a step, and the check that it does not show an indefinite kernel.
#pragma once

#include <algorithm>
#include <stdexcept>

namespace dualgap {

// Throws if a curvature is negative by more than rounding. `size` is the size of the
// terms whose sum it is.
inline void refuse_negative(double bend, double size) {
  if (bend < -1e-4 * size)
    throw std::domain_error(
        "the kernel matrix is indefinite (a step met negative curvature), so no "
        "duality gap would bound the optimum; use a positive semidefinite kernel");
}

// Checks a curvature, and returns it as a divisor for a step, bounded away from 0.
inline double curvature(double bend, double size) {
  refuse_negative(bend, size);
  return std::max(bend, 1e-12 * size);
}

}  // namespace dualgap

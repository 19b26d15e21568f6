// Curvature that a step meets, and what refutes a kernel.
#pragma once

#include <algorithm>
#include <stdexcept>

namespace dualgap {

// A curvature beside the size of the terms that it is a sum of: what is below 0 by more
// than rounding refutes the kernel.
inline void refuse_negative(double bend, double size) {
  if (bend < -1e-4 * size)
    throw std::domain_error(
        "the kernel matrix is indefinite (a step met negative curvature), so no "
        "duality gap would bound the optimum; use a positive semidefinite kernel");
}

// The same, or the curvature as a step divides by it.
inline double curvature(double bend, double size) {
  refuse_negative(bend, size);
  return std::max(bend, 1e-12 * size);
}

}  // namespace dualgap

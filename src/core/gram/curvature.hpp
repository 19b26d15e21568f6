// Curvature along a step, and the check that it does not show an indefinite kernel.
#pragma once

#include <algorithm>
#include <stdexcept>

namespace dualgap {

// Curvature, relative to the size of its terms, below which a kernel is indefinite:
// float32 values of a semidefinite one err by less. Least curvature of a step.
inline constexpr double kIndefinite = -1e-4, kLeastCurvature = 1e-12;
// Size of terms up to which underflow in float32 says nothing about the kernel.
inline constexpr double kUnderflow = 1e-33;

// Throws if a curvature is negative by more than rounding. `size` is the size of the
// terms whose sum it is.
inline void refuse_negative(double bend, double size) {
  if (bend < kIndefinite * size && size > kUnderflow)
    throw std::domain_error(
        "the kernel matrix is indefinite (a step met negative curvature), so no "
        "duality gap would bound the optimum; use a positive semidefinite kernel");
}

// Checks a curvature, and returns it as a divisor for a step, bounded away from 0.
inline double curvature(double bend, double size) {
  refuse_negative(bend, size);
  return std::max(bend, kLeastCurvature * size);
}

}  // namespace dualgap

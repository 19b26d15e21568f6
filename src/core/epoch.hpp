// What a problem that is solved in one call tells of an epoch, when it ends, and when a
// proof is worth its cost.
#pragma once

#include <algorithm>
#include <cmath>

#include "rows.hpp"

namespace dualgap {

// P and D after an epoch, estimates or exact, and the steps or updates so far.
struct Epoch {
  double primal, dual;
  Index steps;
};

// When to end: once the relative gap is at most `goal` while less than `free` work is
// done, and `tol` after it; or once the gap is at most `atol`.
struct Targets {
  double tol, atol, goal, free;
  double relative(double work) const { return work < free ? goal : tol; }
};

// Share of a target gap that ends the work: a proof adds what rounding may hide.
inline constexpr double kSafe = 0.999;

// Returns how many times the target gap, at most `most`, a gap may be estimated for the
// next proof: a gap estimated as `estimated` was `proved`, and the next estimate may
// be nearly as wrong.
inline double next_factor(double estimated, double proved, double most) {
  constexpr double kDoubted = 0.95, kLeast = 1e-3;
  return std::min(std::max(kDoubted * estimated / proved, kLeast), most);
}

// Returns the gap at the end of a sweep, given its sum over the visits, which lags
// behind, and the sum of the sweep before. The share left is `lag` times the root of
// the fall, at least `least`; after a sweep of Modified-SGD it is `lag` times the fall.
inline double gap_at_the_end(double gap, double before, double lag, double least,
                             bool after_sgd) {
  if (!(0.0 < gap && gap < before)) return gap;
  const double fall = gap / before;
  const double share = after_sgd ? lag * fall : std::max(lag * std::sqrt(fall), least);
  return std::min(share, 1.0) * gap;
}

}  // namespace dualgap

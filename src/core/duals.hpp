// Dual variables a_i in their boxes 0 <= a_i <= U_i (losses.hpp), and sums over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "losses.hpp"
#include "sums.hpp"

namespace dualgap {

// Returns D of a_i = min(scale b_i, U_i), given norm = ||v||^2.
inline double dual_value(const double *b, const double *cost, Index n, const Loss &loss,
                         double scale, double norm) {
  const auto term = [&](Index k) {
    const double a = std::min(scale * b[k], loss.upper(cost[k]));
    return a - 0.5 * loss.diagonal(cost[k]) * a * a;
  };
  return blocked_sum(n, term) - 0.5 * norm;
}

// Returns sum_i c_i l(1 - m_i).
inline double total_loss(const double *margins, const double *cost, Index n,
                         const Loss &loss) {
  return blocked_sum(n,
                     [&](Index k) { return cost[k] * loss.value(1.0 - margins[k]); });
}

// Whether 0 <= a_i <= U_i for every i; false for NaN.
inline bool in_box(const double *alpha, const double *cost, Index n, const Loss &loss) {
  bool inside = true;
  for (Index i = 0; i < n; ++i)
    inside &= alpha[i] >= 0.0 && alpha[i] <= loss.upper(cost[i]);
  return inside;
}

// Returns the largest a_i / U_i. Its inverse is the largest scale that keeps alpha in
// the box.
inline double fullest(const double *alpha, const double *cost, Index n,
                      const Loss &loss) {
  double most = 0;
  for (Index i = 0; i < n; ++i)
    if (alpha[i] > 0.0) most = std::max(most, alpha[i] / loss.upper(cost[i]));
  return most;
}

// a_i <- min(scale a_i, U_i); 0 for a scale of 0, also in place of NaN.
inline void scale_into_box(double *alpha, const double *cost, Index n, const Loss &loss,
                           double scale) {
  for (Index i = 0; i < n; ++i)
    alpha[i] = scale == 0.0 ? 0.0 : std::min(scale * alpha[i], loss.upper(cost[i]));
}

// Returns sum_i y_i a_i, which must be 0 for an unpenalised bias.
inline double signed_sum(const std::int8_t *y, const double *alpha, Index n) {
  Sum sum;
  for (Index i = 0; i < n; ++i) sum += y[i] * alpha[i];
  return sum.value();
}

// Returns alpha, with every a_i at a bound that is within `share` U_i, and within
// `most`, of it.
inline Vec snapped(const double *alpha, const double *cost, Index n, const Loss &loss,
                   double share, double most) {
  Vec out(alpha, alpha + n);
  for (Index i = 0; i < n; ++i) {
    const double upper = loss.upper(cost[i]), near = std::min(share * upper, most);
    if (out[i] < near) out[i] = 0.0;
    if (upper - out[i] < near) out[i] = upper;
  }
  return out;
}

// Returns the s >= 0 that maximises D(s a) in the box, given the sum of a and
// curvature = ||v||^2 + sum_i delta_i a_i^2. 0 if the sums or the result overflow, or
// if there is no positive s.
inline double best_scale(const double *alpha, const double *cost, Index n,
                         const Loss &loss, double sum, double curvature) {
  if (!(sum > 0.0) || !std::isfinite(sum) || !std::isfinite(curvature)) return 0.0;
  const double inverse = std::max(fullest(alpha, cost, n, loss), curvature / sum);
  constexpr double kLeast = 1e-307;  // 1/inverse overflows below
  return inverse > kLeast && std::isfinite(inverse) ? 1.0 / inverse : 0.0;
}

}  // namespace dualgap

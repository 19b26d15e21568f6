// Sums over the rows of a kernel problem, from which bounds on P and D follow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "../losses.hpp"
#include "../sums.hpp"

namespace dualgap {

// A point of the dual, the scores sum_j alpha_j y_j k_ij, and bounds on their errors.
struct KernelPoint {
  Index n;
  const std::int8_t *y;
  const double *cost, *alpha, *scores, *error;
};

// Numbers that the sums use: the share `own` of a penalised bias in the scores, the
// bias, the factor of the model, the shift of the diagonal; the relative error of
// sum_i alpha_i y_i, and the underflow of a kernel value.
struct KernelScalars {
  double own, bias, factor, shift, adding, underflow;
};

// Compensated sums. `norm` is alpha' Q alpha, with terms of the total size `size`.
struct KernelSums {
  double alpha = 0.0, reach = 0.0, bent = 0.0;  // alpha, |alpha|, delta alpha^2
  double loss = 0.0, loss_error = 0.0;
  double norm = 0.0, norm_error = 0.0, size = 0.0;
};

inline KernelSums kernel_sums(const KernelPoint &point, const Loss &loss,
                              const KernelScalars &by) {
  constexpr double kLeast = 0x1p-1074;
  Sum alpha, reach, bent, squares;
  double used = 0.0;
  for (Index i = 0; i < point.n; ++i) {
    const double a = point.alpha[i];
    if (a == 0.0) continue;
    used += 1.0;
    alpha += a;
    reach += std::abs(a);
    bent += loss.diagonal(point.cost[i]) * a * a;
    squares += a * a;
  }
  KernelSums sums;
  sums.alpha = alpha.value();
  sums.reach = reach.value();
  sums.bent = bent.value();
  // Errors of every score: underflow, and the share of a penalised bias.
  const bool zero = used == 0.0;
  const double more =
      zero ? 0.0 : (by.underflow + by.adding) * sums.reach + (used + 8.0) * kLeast;
  const double rounded = zero ? 0.0 : 4.0 * kUnit;
  Sum norm, size, norm_error, total, loss_error;
  for (Index i = 0; i < point.n; ++i) {
    const double a = point.alpha[i], y = point.y[i], score = point.scores[i];
    const double error =
        point.error[i] + more +
        rounded * (std::abs(score) + std::abs(by.own) + std::abs(by.bias));
    if (a != 0.0) {
      const double term = a * y * (score + by.own);
      norm += term;
      size += std::abs(term);
      norm_error += std::abs(a) * error;
    }
    const double margin = by.factor * (y * (score + by.bias));
    // The shift of the diagonal raises the margins of all rows with alpha_i >= 0.
    const double off = kSlack * by.factor * (error + by.shift * std::max(-a, 0.0));
    total += point.cost[i] * loss.value(1.0 - margin);
    loss_error += point.cost[i] * loss.derivative(1.0 - (margin - off)) * off;
  }
  sums.norm = norm.value();
  sums.size = size.value();
  sums.loss = total.value();
  sums.loss_error = loss_error.value();
  sums.norm_error = norm_error.value() + 64.0 * kUnit * sums.size +
                    by.shift * squares.value() + 4.0 * used * kLeast;
  return sums;
}

// Returns the point below which the weights sum to the target. If an interval of points
// qualifies, returns its middle. There is at least one point.
inline double weighted_quantile(const double *points, const double *weight, Index n,
                                double target) {
  std::vector<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), Index{0});
  // Equal points in their own order, and NaN last, so that this is an order.
  const auto before = [&](Index a, Index b) {
    const double x = points[a], y = points[b];
    if (std::isnan(x) || std::isnan(y))
      return std::pair(std::isnan(x), a) < std::pair(std::isnan(y), b);
    return x != y ? x < y : a < b;
  };
  double total = 0.0;
  for (Index i = 0; i < n; ++i) total += weight[i];
  // Sums that equal the target up to rounding mark an interval; find its beginning.
  const double rounding = 1e-14 * total;
  double sum = 0.0;  // of the weights before `first`
  auto first = order.begin(), last = order.end();
  while (last - first > 1) {
    const auto middle = first + (last - first) / 2;
    std::nth_element(first, middle, last, before);
    double more = 0.0;
    for (auto at = first; at < middle; ++at) more += weight[*at];
    if (sum + more < target - rounding) {
      sum += more;
      first = middle;
    } else {
      last = middle;
    }
  }
  const double here = points[*first];
  if (last == order.end() || !(sum + weight[*first] <= target + rounding)) return here;
  return 0.5 * (here + points[*std::min_element(last, order.end(), before)]);
}

// Returns a b that minimises sum_i c_i max(0, 1 - y_i (scores_i + b)) over the rows with
// a cost; the middle of an interval. If these rows have one label only, returns the end
// of the interval without loss.
inline double hinge_bias(const double *scores, const std::int8_t *y, const double *cost,
                         Index n) {
  std::vector<double> kinks, costs;
  kinks.reserve(static_cast<std::size_t>(n));
  costs.reserve(static_cast<std::size_t>(n));
  double up = 0.0;
  bool positive = false, negative = false;
  for (Index i = 0; i < n; ++i) {
    if (!(cost[i] > 0.0)) continue;
    kinks.push_back(y[i] - scores[i]);
    costs.push_back(cost[i]);
    (y[i] > 0 ? positive : negative) = true;
    if (y[i] > 0) up += cost[i];
  }
  if (kinks.empty()) return 0.0;
  if (!negative) return *std::max_element(kinks.begin(), kinks.end());
  if (!positive) return *std::min_element(kinks.begin(), kinks.end());
  return weighted_quantile(kinks.data(), costs.data(), static_cast<Index>(kinks.size()),
                           up);
}

}  // namespace dualgap

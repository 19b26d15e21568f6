// Sums over the rows of a kernel problem, from which bounds on P and D follow.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>

#include "../losses.hpp"
#include "../sums.hpp"

namespace dualgap {

// Bound on the relative error of a compensated sum and of the few operations on it,
// with much room: Rounding.summed has the same value.
inline constexpr double kSummed = 64.0 * kRounding<double>;
// Part of the total weight by which two sums may differ by rounding.
inline constexpr double kSumsDiffer = 1e-14;

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
  const double rounded = zero ? 0.0 : 4.0 * kRounding<double>;
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
  sums.norm_error = norm_error.value() + kSummed * sums.size +
                    by.shift * squares.value() + 4.0 * used * kLeast;
  return sums;
}

// An unpenalised bias: sum_i alpha_i y_i, which is 0 up to rounding; the relative error
// of such a sum; P of the zero model; a bound on sqrt(k_ii).
struct FreeBias {
  double off, adding, zero, longest;
};

// P and D as computed, and bounds on how far the exact P may be above and D below.
struct KernelValues {
  double primal, primal_error, dual, dual_error;
};

// P of the model s alpha and D of s alpha. The losses of `sums` are those at s alpha
// and s bias, the other sums those at alpha. `lost` bounds the underflow of sums.
inline KernelValues kernel_values(const KernelSums &sums, double lost,
                                  const FreeBias *free, double s = 1.0) {
  const double primal = 0.5 * s * s * sums.norm + sums.loss;
  const double dual = s * sums.alpha - 0.5 * s * s * (sums.norm + sums.bent);
  const double both = 0.5 * s * s * sums.norm_error;
  double more =
      both + sums.loss_error + kSummed * (0.5 * s * s * sums.size + sums.loss);
  double less = both + kSummed * (s * sums.reach + s * s * (sums.size + sums.bent));
  more = kSlack * more + lost;
  less = kSlack * less + lost;
  if (free) {
    // BinaryProblem.prove shows that an optimal bias is at most 1 + longest in size.
    const double off = std::abs(free->off) + free->adding * sums.reach;
    const double least = std::max(std::min(primal + more, free->zero), 0.0);
    less += kSlack * s * off * (1.0 + std::sqrt(2.0 * least) * free->longest);
  }
  if (sums.reach == 0.0) less = 0.0;  // no terms, so no rounding
  return {primal, more, dual, less};
}

// Sizes of rounding errors: bounds on sqrt(k_ii); the error of a score, per row in the
// sum and besides, as a multiple of sum_j |alpha_j| sqrt(k_jj) sqrt(k_ii); the relative
// error of a compensated sum; the underflow of a kernel value.
struct ScoreRoundings {
  const double *lengths;
  double each, more, adding, underflow;

  // errors_i = the bound on the error of the score of row i.
  void bound(const double *alpha, Index n, double *errors) const {
    double reach = 0.0;
    Index used = 0;
    for (Index i = 0; i < n; ++i) {
      reach += std::abs(alpha[i]) * lengths[i];
      used += alpha[i] != 0.0;
    }
    const double one = (each * static_cast<double>(used) + more) * reach;
    for (Index i = 0; i < n; ++i) errors[i] = one * lengths[i];
  }
};

// Returns the point below which the weights sum to the target. If an interval of points
// qualifies, returns its middle. There is at least one point.
inline double weighted_quantile(const double *points, const double *weight, Index n,
                                double target) {
  Vector<Index> order(n);
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
  const double rounding = kSumsDiffer * total;
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

// Returns a b that minimises sum_i c_i max(0, 1 - y_i (scores_i + b)) over the rows
// with a cost; the middle of an interval. If these rows have one label only, returns
// the end of the interval without loss.
inline double hinge_bias(const double *scores, const std::int8_t *y, const double *cost,
                         Index n) {
  Vec kinks, costs;
  kinks.reserve(n);
  costs.reserve(n);
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
  return weighted_quantile(kinks.data(), costs.data(), kinks.size(), up);
}

// The model is the point divided by rho, which is 1 without nu, with this bias.
struct KernelProof {
  double bias, rho;
  KernelValues values;
};

// Proves a point of the hinge with an unpenalised bias, whose bias is the best one.
inline KernelProof hinge_proof(const KernelPoint &point, const ScoreRoundings &by) {
  const Loss hinge{1.0, 0.0};
  const Index n = point.n;
  const double bias = hinge_bias(point.scores, point.y, point.cost, n);
  const auto sums =
      kernel_sums(point, hinge, {0.0, bias, 1.0, 0.0, by.adding, by.underflow});
  Sum off, zero;
  bool inside = true;
  for (Index i = 0; i < n; ++i) {
    off += point.y[i] * point.alpha[i];
    zero += point.cost[i];
    inside = inside && point.alpha[i] >= 0.0 && point.alpha[i] <= point.cost[i];
  }
  const double lost = static_cast<double>(4 * n + 16) * 0x1p-1074;
  const FreeBias free{off.value(), by.adding, zero.value(),
                      *std::max_element(by.lengths, by.lengths + n)};
  KernelValues values = kernel_values(sums, lost, &free);
  if (!inside) values.dual = -std::numeric_limits<double>::infinity();
  return {bias, 1.0, values};
}

// Proves a point with nu, where the dual variables of either class add up to `half`,
// for the best b and rho:
//
// P = 1/2 ||w||^2 - 2 half rho + sum_i c_i max(0, rho - y_i (scores_i + b)).
//
// The losses are rho times the hinge losses of the model divided by rho. P of the
// multiple 0 of a model is 0, so this is the value where rho is not positive.
inline KernelProof nu_proof(const KernelPoint &point, const ScoreRoundings &by,
                            double half) {
  const Index n = point.n;
  Vec scores[2], costs[2];  // of the rows with y = 1, and with y = -1
  Sum sums[2];
  bool inside = true;
  double reach = 0.0;
  for (Index i = 0; i < n; ++i) {
    const bool negative = point.y[i] < 0;
    sums[negative] += point.alpha[i];
    inside = inside && point.alpha[i] >= 0.0 && point.alpha[i] <= point.cost[i];
    reach += std::abs(point.alpha[i]) * by.lengths[i];
    if (!(point.cost[i] > 0.0)) continue;
    scores[negative].push_back(point.y[i] * point.scores[i]);
    costs[negative].push_back(point.cost[i]);
  }
  const auto least = [&](int of) {
    const Index size = scores[of].size();
    return weighted_quantile(scores[of].data(), costs[of].data(), size, half);
  };
  const double up = least(0), down = least(1);  // y_i scores_i where a loss begins
  const double rho = 0.5 * (up + down), bias = 0.5 * (down - up);
  // The coefficients of the model are divided by rho, and rounded.
  Vec error(point.error, point.error + n);
  for (Index i = 0; i < n; ++i)
    error[i] += kSlack * 4.0 * kRounding<double> * reach * by.lengths[i];
  const bool positive = rho > 0.0;
  const auto found = kernel_sums(
      {n, point.y, point.cost, point.alpha, point.scores, error.data()}, {1.0, 0.0},
      {0.0, bias, positive ? 1.0 / rho : 0.0, 0.0, by.adding, by.underflow});
  const double lost = static_cast<double>(4 * n + 16) * 0x1p-1074;
  const double norm = 0.5 * found.norm, loss = rho * found.loss, own = 2.0 * half * rho;
  const double size = kSummed * 0.5 * found.size;
  KernelValues values{norm + loss - own,
                      kSlack * (0.5 * found.norm_error + rho * found.loss_error + size +
                                kSummed * (loss + own)) +
                          lost,
                      -norm, 0.0};
  if (!positive || !(values.primal + values.primal_error < 0.0))
    values.primal = values.primal_error = 0.0;
  // If the sums are off `half` by `off`, D is at most |offset| off too large for an
  // optimal offset: largest_rho of problems/one_class.py.
  const double longest = *std::max_element(by.lengths, by.lengths + n);
  const double off =
      kSlack * (std::abs(sums[0].value() - half) + std::abs(sums[1].value() - half) +
                by.adding * found.reach);
  const double length = std::sqrt(std::max(found.norm + found.norm_error, 0.0));
  const double offset = kSlack * longest * (length + 2.0 * off * longest);
  values.dual_error = kSlack * (0.5 * found.norm_error + size + off * offset) + lost;
  if (!inside) values.dual = -std::numeric_limits<double>::infinity();
  return {positive ? bias / rho : bias, positive ? rho : 1.0, values};
}

}  // namespace dualgap

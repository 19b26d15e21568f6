// Bounds on the errors of the float32 values of kernel rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernel_rows.hpp"

namespace dualgap {

// Error of a float32 power of 2, relative to it.
inline constexpr double kErrorOfPower = 3.0 * kRounding<float>;

// Error of products, sums of up to 12 or 32 products, and the final sum, relative to
// the sum of the sizes.
inline double error_of_adding(const KernelRows &rows) {
  constexpr double kDense = 16.0, kSparse = 40.0;
  return (rows.dense() ? kDense : kSparse) * kRounding<float>;
}

// Returns sqrt(d) p of each point, or for sparse points the additions; see
// `row_errors`.
inline Vec spreads(const KernelRows &rows) {
  const Points &points = rows.points();
  Vec spread(rows.n());
  if (!rows.dense()) {
    Entries entries;
    for (Index i = 0; i < rows.n(); ++i) {
      points.entries(i, entries);
      const Index m = entries.columns.size();
      const bool posted = SparseMeeting<float>::by_postings(points);
      const Index longest =
          posted ? Postings<float>::longest_chain(m) : tile::longest_chain<float>(m);
      spread[i] = static_cast<double>(longest);
    }
    return spread;
  }
  const auto d = points.d();
  Vec room(d), x(d);
  for (Index i = 0; i < rows.n(); ++i) {
    rows.map().read(points, i, room.data(), x.data());
    double sum = 0.0, sums = 0.0;
    for (Index k = 0; k < d;) {
      const double before = sum;
      for (const Index end = std::min(d, k + tile::kSpan<float>); k < end; ++k) {
        sum += x[k] * x[k];
        sums += sum - before;
      }
      if (before > 0.0) sums += sum;  // the part is added to the sum before
    }
    spread[i] = sum > 0.0 ? std::sqrt(sums / sum) : 0.0;
  }
  return spread;
}

// What the errors of float32 values depend on: the spread of each point, and the
// largest spread, error of h, and h of the points that use float32; -1 if none does.
struct FarthestPoint {
  Vec spread;
  double widest = 0.0, off = 0.0, far = -1.0;

  explicit FarthestPoint(const KernelRows &rows) : spread(spreads(rows)) {
    const Placement &placement = rows.placement();
    for (Index i = 0; i < rows.n(); ++i) {
      if (rows.way_of(i) != Way::kSingle) continue;
      widest = std::max(widest, spread[i]);
      off = std::max(off, std::abs(rows.half_self(i) - placement.h(i)));
      far = std::max(far, placement.h(i));
    }
  }
};

// Writes errors_i, a bound on |k - k(x_i, x_j)| for the value k of `rows` and any j,
// plus the error of adding products of these values to a sum. Infinity if no bound is
// known. `fixed` is for values in 16 bits.
//
// Let A = ||a|| = sqrt(2 h) for the scaled point a, b another point, r = ||a - b||
// and u = 2^-24. k = 2^t, t = -r^2/2, is computed as 2^(s - h_a - h_b). Errors:
//   s    at most u (sum_k |s_k| + 3 A B), for its partial sums s_k and the rounding
//        of its entries and, without FMA, of products. |s_k| is at most the product
//        of the norms of the entries that are summed, so sum_k |s_k| <= P_a P_b A B,
//        where P_a^2 A^2 is the sum of the squares of these norms. For sparse points
//        the additions that a term passes replace P_a P_b.
//   h    the difference from the same sum in float64
//   t    u (2 |t| + max(h_a, h_b)) more, from two subtractions
// B <= A + r, and k compensates for r: |t| k <= kLargestTk, and A (A + r) k <= A^2 +
// kLargestArk, because 2^(r^2/2) >= 1 + r^2 ln(2)/2 and A r <= c + (A^2 + c) r^2
// ln(2)/2 for c = 1/(2 ln 2). If a is far away and the points b are not, the bound of b
// is the better one.
inline void row_errors(const KernelRows &rows, bool fixed, double *errors) {
  const Placement &placement = rows.placement();
  const Index n = rows.n();
  constexpr double kHalfPlace = 0.51;
  using Bounds = ProductErrors<float>;
  const double adding = error_of_adding(rows);
  if (rows.map().shape != tile::Shape::kExponential) {
    std::fill_n(errors, n, std::numeric_limits<double>::infinity());
    return;
  }
  constexpr double kLargestArk = 0.73;
  // Values computed in float64 are rounded once.
  const double least = kRounding<float> + adding + 2.0 * Placement::kLargestError;
  std::fill_n(errors, n, least);
  const FarthestPoint of(rows);
  const auto &[spread, widest, off, far] = of;
  if (far < 0.0) return;  // no point uses float32
  const double of_others = placement.single_errors().value(far) + adding;
  for (Index i = 0; i < n; ++i) {
    const double h = placement.h(i), own = spread[i];
    const double longest = placement.single_errors().added;
    const double added = 3.0 + (rows.dense() ? std::min(own * widest, longest) : own);
    const double more = Bounds::kLargestRk * std::sqrt(2.0 * h);
    const double exponent = kRounding<float> * (added * (2.0 * h + kLargestArk) + h +
                                                more + 3.0 * Bounds::kLargestTk) +
                            std::abs(rows.half_self(i) - h) + off;
    // 2^x - 1 <= 0.74 x up to x = 0.18. `exponent` is k times the error x of t. If it
    // is at most kLargestExponent, x is small too, unless k is next to 0.
    constexpr double kLargestExponent = 0.02, kSlope = 0.74;
    double error = of_others;
    if (exponent <= kLargestExponent)
      error = std::min(error, kSlope * exponent + kErrorOfPower + adding);
    errors[i] = std::max(least, error);
    if (fixed) errors[i] += kHalfPlace / static_cast<double>(simd::kFixed);
  }
}

// Writes the r_i of another bound on the errors of `add_rows`, r_i S_i + a M at row i,
// where S_i is the sum of the sizes |c_t k(x_t, x_i)| and M the sum of all |c_t|.
// Returns a. r_i is infinite if no bound is known.
//
// With the notation above and x the error of t without its part 2 u |t|, a value is off
// by at most (2^x - 1) k, and that part of it by kSlope 2 u |t| k <= a. Here the other
// point is at most as far as the farthest. The sizes are computed as well, so r and a
// are divided by 1 - r, which is 0.88 or more. The second term of a, for values that
// are computed in float64, is large enough for that.
inline double sum_errors(const KernelRows &rows, double *relative) {
  using Bounds = ProductErrors<float>;
  constexpr double kSlope = 0.74, kLargestExponent = 0.16;
  const Index n = rows.n();
  std::fill_n(relative, n, std::numeric_limits<double>::infinity());
  if (rows.map().shape != tile::Shape::kExponential) return 0.0;
  const Placement &placement = rows.placement();
  const auto [spread, widest, off, far] = FarthestPoint(rows);
  const double longest = placement.single_errors().added;
  for (Index i = 0; i < n; ++i) {
    double x = 0.0;  // if no point uses float32
    if (far >= 0.0) {
      const double h = placement.h(i), own = spread[i];
      const double added = 3.0 + (rows.dense() ? std::min(own * widest, longest) : own);
      x = kRounding<float> * (added * 2.0 * std::sqrt(h * far) + std::max(h, far)) +
          std::abs(rows.half_self(i) - h) + off;
    }
    if (!(x <= kLargestExponent)) continue;
    const double r = kSlope * x + kErrorOfPower + error_of_adding(rows);
    relative[i] = r / (1.0 - r);
  }
  return kSlope * 2.0 * kRounding<float> * Bounds::kLargestTk +
         2.0 * Placement::kLargestError;
}

}  // namespace dualgap

// Sums over many numbers: compensated sums, and sums in lanes. Lanes are explicit
// because the compiler may not reorder a floating-point sum by itself.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <type_traits>

#include "rows.hpp"

// Promises that the arrays of a loop do not overlap. Compilers do not check this at run
// time for loops with many arrays.
#if defined(__clang__)
#define DUALGAP_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define DUALGAP_INDEPENDENT _Pragma("GCC ivdep")
#else
#define DUALGAP_INDEPENDENT __pragma(loop(ivdep))
#endif

namespace dualgap {

// Constants of the rounding analysis: the unit u of a type, a factor that covers terms
// in u^2, and a number that is negligible but far above the range of underflow.
template <class T>
inline constexpr double kRounding = std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
inline constexpr double kSlack = 1.01, kSmall = 0x1p-1000;

// Neumaier's sum. For n terms t the error is at most u |result| + (n u)^2 sum |t|
// (Ogita, Rump and Oishi 2005, proposition 4.5).
class Sum {
 public:
  void operator+=(double x) {
    const double t = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - t) + x : (x - t) + sum_;
    sum_ = t;
  }
  // If the sum overflows, `lost_` is NaN but the sum is not.
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

inline constexpr Index kLanes = 8;

// Compensated sum in lanes, for numbers in arrays.
class LaneSums {
 public:
  void operator+=(double x) { add(x, sum_[0], lost_[0]); }
  void add(const double *x, Index n) {
    Index k = 0;
    for (; k + kLanes <= n; k += kLanes)
      for (Index l = 0; l < kLanes; ++l) add(x[k + l], sum_[l], lost_[l]);
    for (Index l = 0; k < n; ++k, ++l) add(x[k], sum_[l], lost_[l]);
  }
  double value() const {
    Sum all;
    for (Index l = 0; l < kLanes; ++l) {
      all += sum_[l];
      if (std::isfinite(sum_[l])) all += lost_[l];
    }
    return all.value();
  }

 private:
  // Knuth's form without a branch, which computes the same lost part.
  static void add(double x, double &sum, double &lost) {
    const double t = sum + x, z = t - sum;
    lost += (sum - (t - z)) + (x - z);
    sum = t;
  }
  double sum_[kLanes] = {}, lost_[kLanes] = {};
};

// Reduces the numbers in an array, in lanes.
template <class Combine>
double reduce(const double *x, Index n, const Combine &combine) {
  double lane[kLanes] = {};
  Index k = 0;
  for (; k + kLanes <= n; k += kLanes)
    for (Index l = 0; l < kLanes; ++l) lane[l] = combine(lane[l], x[k + l]);
  for (Index l = 0; k < n; ++k, ++l) lane[l] = combine(lane[l], x[k]);
  for (Index half = kLanes / 2; half > 0; half /= 2)
    for (Index l = 0; l < half; ++l) lane[l] = combine(lane[l], lane[l + half]);
  return lane[0];
}
inline double total(const double *x, Index n) {
  return reduce(x, n, [](double a, double b) { return a + b; });
}
inline double largest(const double *x, Index n) {  // 0 if none is positive
  return reduce(x, n, [](double a, double b) { return a > b ? a : b; });
}

// Returns the N sums over first <= k < last of the terms that f(k, term) writes. f is
// called once for every k, in order, and may do other work as well.
template <std::size_t N, class F>
DUALGAP_INLINE std::array<double, N> sums_of(Index first, Index last, F &&f) {
  double lane[N][kLanes] = {};
  Index k = first;
  for (; k + kLanes <= last; k += kLanes)
    for (Index l = 0; l < kLanes; ++l) {
      double term[N];
      f(k + l, term);
      for (std::size_t s = 0; s < N; ++s) lane[s][l] += term[s];
    }
  for (; k < last; ++k) {
    double term[N];
    f(k, term);
    for (std::size_t s = 0; s < N; ++s) lane[s][0] += term[s];
  }
  std::array<double, N> sums;
  for (std::size_t s = 0; s < N; ++s)
    sums[s] = ((lane[s][0] + lane[s][1]) + (lane[s][2] + lane[s][3])) +
              ((lane[s][4] + lane[s][5]) + (lane[s][6] + lane[s][7]));
  return sums;
}

// Returns the sum over first <= k < last of f(k).
template <class F>
DUALGAP_INLINE double sum_of(Index first, Index last, F &&f) {
  return sums_of<1>(first, last, [&](Index k, double *term) { term[0] = f(k); })[0];
}

// Returns the sum of f(0) to f(n - 1), compensated over blocks.
template <class F>
double blocked_sum(Index n, F &&f) {
  constexpr Index kTerms = 256;
  Sum sum;
  for (Index k = 0; k < n; k += kTerms) sum += sum_of(k, std::min(n, k + kTerms), f);
  return sum.value();
}

// The relative error is at most kNormRoundings units of rounding.
inline constexpr double kNormRoundings = 40;
inline double squared_norm(const double *w, Index size) {
  return blocked_sum(size, [&](Index k) { return w[k] * w[k]; });
}

}  // namespace dualgap

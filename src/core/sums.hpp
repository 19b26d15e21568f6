// Sums over many numbers: compensated ones, and ones in lanes, because the compiler may
// not reorder a floating-point sum by itself.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>

#include "rows.hpp"

namespace dualgap {

// Of the analysis of rounding: u = 2^-53, what stands for terms in u^2 beside those in
// u, and a number below all that matters but above what underflows.
inline constexpr double kUnit = 0x1p-53, kSlack = 1.01, kSmall = 0x1p-1000;

// Neumaier's sum: of n terms t the error is at most u |result| + (n u)^2 sum |t|
// (Ogita, Rump and Oishi 2005, proposition 4.5).
class Sum {
 public:
  void operator+=(double x) {
    const double t = sum_ + x;
    lost_ += std::abs(sum_) >= std::abs(x) ? (sum_ - t) + x : (x - t) + sum_;
    sum_ = t;
  }
  // Past the range of double, `lost_` is NaN and the sum is not.
  double value() const { return std::isfinite(sum_) ? sum_ + lost_ : sum_; }

 private:
  double sum_ = 0, lost_ = 0;
};

inline constexpr Index kLanes = 8;

// The sums over first <= k < last of the N terms that f(k, term) writes. f is called
// once for every k, in order, and may do other work on the way.
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

// sum over first <= k < last of f(k).
template <class F>
DUALGAP_INLINE double sum_of(Index first, Index last, F &&f) {
  return sums_of<1>(first, last, [&](Index k, double *term) { term[0] = f(k); })[0];
}

}  // namespace dualgap

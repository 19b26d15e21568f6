// Kernel functions of a similarity s(x, z) and of s(x, x), s(z, z).
//
//   linear       s                      power    (gamma s + coef0)^degree
//   exponential  exp(-gamma (s(x, x) + s(z, z) - 2 s))
//   tanh         tanh(gamma s + coef0)
//
// s is the product x.z, or the overlap sum_k (|x_k| + |z_k| - |x_k - z_k|)/2, for
// which the exponent is the distance ||x - z||_1 of the Laplacian kernel. Terms of both
// are 0 if one of the two entries is 0. The distance from an overlap loses digits if
// points are far from 0; dense points use a sum of differences instead.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "../rows.hpp"

namespace dualgap {

struct Product {
  template <class T>
  static T of(T a, T b) {
    return a * b;
  }
};

struct Overlap {
  template <class T>
  static T of(T a, T b) {
    return T(0.5) * (std::abs(a) + std::abs(b) - std::abs(a - b));
  }
};

// Terms of distances.
struct SquaredDifference {
  template <class T>
  static T of(T a, T b) {
    return (a - b) * (a - b);
  }
};

struct AbsoluteDifference {
  template <class T>
  static T of(T a, T b) {
    return std::abs(a - b);
  }
};

// Returns exp(x) for x <= 0, to a few units in the last place. It has no branches, so
// that loops become vector code. Results below the normal numbers are replaced by a
// number near the smallest normal one. x = k ln 2 + r with |r| <= ln(2)/2, and the
// Taylor series of exp(r).
template <class T>
DUALGAP_INLINE T exp_negative(T x) {
  constexpr bool kDouble = std::is_same_v<T, double>;
  using Bits = std::conditional_t<kDouble, std::int64_t, std::int32_t>;
  constexpr T kLeast = kDouble ? T(-708.0) : T(-87.0);
  // Adding kRound rounds to an integer, which is then in the low bits.
  constexpr T kRound = kDouble ? T(6755399441055744.0) : T(12582912.0);
  constexpr T kInverse = T(1.4426950408889634);
  constexpr T kHigh = kDouble ? T(0x1.62e42fee00000p-1) : T(0x1.62e4p-1);
  constexpr T kLow = kDouble ? T(0x1.a39ef35793c76p-33) : T(0x1.7f7d1cf7ap-20);
  x = x > kLeast ? x : kLeast;
  const T shifted = x * kInverse + kRound;
  const T k = shifted - kRound;
  const T r = (x - k * kHigh) - k * kLow;
  T sum = kDouble ? T(1.0 / 6227020800.0) : T(1.0 / 5040.0);
  if constexpr (kDouble) {
    sum = sum * r + T(1.0 / 479001600.0);
    sum = sum * r + T(1.0 / 39916800.0);
    sum = sum * r + T(1.0 / 3628800.0);
    sum = sum * r + T(1.0 / 362880.0);
    sum = sum * r + T(1.0 / 40320.0);
    sum = sum * r + T(1.0 / 5040.0);
  }
  sum = sum * r + T(1.0 / 720.0);
  sum = sum * r + T(1.0 / 120.0);
  sum = sum * r + T(1.0 / 24.0);
  sum = sum * r + T(1.0 / 6.0);
  sum = sum * r + T(1.0 / 2.0);
  sum = sum * r + T(1);
  sum = sum * r + T(1);
  constexpr int kMantissa = kDouble ? 52 : 23;
  constexpr Bits kBias = kDouble ? 1023 : 127;
  const Bits power = std::bit_cast<Bits>(shifted) - std::bit_cast<Bits>(kRound);
  return sum * std::bit_cast<T>(static_cast<Bits>((power + kBias) << kMantissa));
}

enum class Shape { kLinear, kExponential, kPower, kTanh };

struct KernelFunction {
  Shape shape = Shape::kLinear;
  bool overlap = false;
  double gamma = 1.0;
  double coef0 = 0.0;
  int degree = 1;

  bool exponential() const { return shape == Shape::kExponential; }

  // Replaces the distance s_j by the kernel value.
  template <class T>
  void of_distances(T *s, Index m) const {
    // An infinite scale would make k(x, x) NaN.
    const T scale = static_cast<T>(
        std::min(gamma, static_cast<double>(std::numeric_limits<T>::max())));
    for (Index j = 0; j < m; ++j) s[j] = exp_negative(-scale * s[j]);
  }

  // Replaces the similarity s_j by the kernel value, given s(x, x) = own and
  // s(z_j, z_j) = norms_j.
  template <class T>
  void apply(T *s, Index m, T own, const T *norms) const {
    const T scale = static_cast<T>(gamma), shift = static_cast<T>(coef0);
    switch (shape) {
      case Shape::kLinear:
        break;
      case Shape::kExponential:
        for (Index j = 0; j < m; ++j) {
          const T distance = own + norms[j] - 2 * s[j];
          s[j] = distance <= T(0) ? T(0) : distance;  // NaN after an overflow stays NaN
        }
        of_distances(s, m);
        break;
      case Shape::kPower:
        for (Index j = 0; j < m; ++j) {
          T base = scale * s[j] + shift;
          T power = degree % 2 != 0 ? base : T(1);
          for (int left = degree / 2; left > 0; left /= 2) {
            base *= base;
            if (left % 2 != 0) power *= base;
          }
          s[j] = power;
        }
        break;
      case Shape::kTanh:
        for (Index j = 0; j < m; ++j) s[j] = std::tanh(scale * s[j] + shift);
        break;
    }
  }
};

}  // namespace dualgap

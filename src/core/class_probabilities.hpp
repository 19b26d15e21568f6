// Probabilities of the classes of rows, from their scores (softmax).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "rows.hpp"
#include "sums.hpp"

namespace dualgap {

struct ClassTuning {
  // Rows whose sums stay in the nearest cache.
  static constexpr Index kRows = 256;
};

// Where the rows are. `scores` and `residual` have a stretch of n numbers per class. Of
// two classes they have the second one alone: the score of the first is 0.
struct ClassRows {
  const double *scores;
  const std::int64_t *codes;
  Index n, classes;
  double *rest;    // sum of exp(s_k - s_top) without one largest class
  double *behind;  // s_top less the score of the own class
  double *mean;    // sum_k p_k (s_top - s_k); NaN, as `rest`, if a score is not finite
  double *wrong;   // probability of all classes but the own one
  double *residual;  // [y = k] - p_k
};

// Returns exp(x) for x <= 0, to a few units in the last place. It has no branches, so
// that loops become vector code. Results below the normal numbers are replaced by a
// number near the smallest normal one. x = k ln 2 + r with |r| <= ln(2)/2, and the
// Taylor series of exp(r).
DUALGAP_INLINE double exp_negative(double x) {
  constexpr double kLeast = -708.0;
  // Adding kRound rounds to an integer, which is then in the low bits.
  constexpr double kRound = 6755399441055744.0;
  constexpr double kInverse = 1.4426950408889634;
  constexpr double kHigh = 0x1.62e42fee00000p-1, kLow = 0x1.a39ef35793c76p-33;
  x = x > kLeast ? x : kLeast;
  const double shifted = x * kInverse + kRound;
  const double k = shifted - kRound;
  const double r = (x - k * kHigh) - k * kLow;
  double sum = 1.0 / 6227020800.0;
  sum = sum * r + 1.0 / 479001600.0;
  sum = sum * r + 1.0 / 39916800.0;
  sum = sum * r + 1.0 / 3628800.0;
  sum = sum * r + 1.0 / 362880.0;
  sum = sum * r + 1.0 / 40320.0;
  sum = sum * r + 1.0 / 5040.0;
  sum = sum * r + 1.0 / 720.0;
  sum = sum * r + 1.0 / 120.0;
  sum = sum * r + 1.0 / 24.0;
  sum = sum * r + 1.0 / 6.0;
  sum = sum * r + 1.0 / 2.0;
  sum = sum * r + 1.0;
  sum = sum * r + 1.0;
  constexpr int kMantissa = 52;
  constexpr std::int64_t kBias = 1023;
  const std::int64_t power =
      std::bit_cast<std::int64_t>(shifted) - std::bit_cast<std::int64_t>(kRound);
  return sum * std::bit_cast<double>((power + kBias) << kMantissa);
}

// exp(-below), 0 for a largest class and for less than the least normal number.
DUALGAP_INLINE double exp_below(double below) {
  constexpr double kMost = 708.0;
  const double e = exp_negative(-below);
  return below == 0.0 || below > kMost ? 0.0 : e;
}

inline void two_probabilities(const ClassRows &rows, Index first, Index last) {
  DUALGAP_INDEPENDENT
  for (Index i = first; i < last; ++i) {
    const double size = std::abs(rows.scores[i]);
    const double e = size == 0.0 ? 1.0 : exp_below(size), total = 1.0 + e;
    const bool positive = rows.codes[i] == 1;
    const bool right = (rows.scores[i] > 0.0) == positive;
    const double wrong = (right ? e : 1.0) / total;
    rows.mean[i] = e * size / total;
    rows.rest[i] = e + 0.0 * rows.mean[i];  // NaN stays NaN
    rows.behind[i] = right ? 0.0 : size;
    rows.wrong[i] = wrong;
    rows.residual[i] = positive ? wrong : -wrong;
  }
}

// Computes them for the rows first <= i < last. No difference of nearly equal numbers
// is taken, so every result is correct to a few roundings.
inline void class_probabilities(const ClassRows &rows, Index first, Index last) {
  if (rows.classes == 1) return two_probabilities(rows, first, last);
  double tops[ClassTuning::kRows], totals[ClassTuning::kRows];
  for (Index begin = first; begin < last; begin += ClassTuning::kRows) {
    const Index count = std::min(ClassTuning::kRows, last - begin);
    double *rest = rows.rest + begin, *mean = rows.mean + begin;
    std::copy_n(rows.scores + begin, count, tops);
    std::fill_n(rest, count, -1.0);  // one largest class is left out
    std::fill_n(mean, count, 0.0);
    for (Index k = 1; k < rows.classes; ++k) {
      const double *s = rows.scores + k * rows.n + begin;
      for (Index j = 0; j < count; ++j) tops[j] = s[j] > tops[j] ? s[j] : tops[j];
    }
    for (Index k = 0; k < rows.classes; ++k) {
      const double *s = rows.scores + k * rows.n + begin;
      double *out = rows.residual + k * rows.n + begin;
      DUALGAP_INDEPENDENT
      for (Index j = 0; j < count; ++j) {
        const double below = tops[j] - s[j], e = exp_below(below);
        out[j] = e;
        rest[j] += below == 0.0 ? 1.0 : 0.0;
        mean[j] += e * below;
      }
    }
    for (Index k = 0; k < rows.classes; ++k) {
      const double *e = rows.residual + k * rows.n + begin;
      for (Index j = 0; j < count; ++j) rest[j] += e[j];
    }
    for (Index j = 0; j < count; ++j) {
      rest[j] += 0.0 * mean[j];  // NaN stays NaN
      totals[j] = 1.0 + rest[j];
      mean[j] /= totals[j];
    }
    for (Index k = 0; k < rows.classes; ++k) {
      const double *s = rows.scores + k * rows.n + begin;
      double *out = rows.residual + k * rows.n + begin;
      DUALGAP_INDEPENDENT
      for (Index j = 0; j < count; ++j)
        out[j] = -(tops[j] == s[j] ? 1.0 : out[j]) / totals[j];
    }
    for (Index j = 0; j < count; ++j) {
      const Index at = rows.codes[begin + j] * rows.n + begin + j;
      const double below = tops[j] - rows.scores[at];
      const double wrong = below == 0.0 ? rest[j] / totals[j] : 1.0 + rows.residual[at];
      rows.behind[begin + j] = below;
      rows.wrong[begin + j] = rows.residual[at] = wrong;
    }
  }
}

}  // namespace dualgap

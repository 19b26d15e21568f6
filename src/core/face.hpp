// Newton steps of a dual over a face: over variables whose sum does not change.
//
// Problem    max over s with sum_t s_t = 0 of  g.s - 1/2 s.H s
// Update     the last variable balances the others:
//              (R + shift I) s = r,  R_st = H_st - H_sl - H_lt + H_ll,  r_s = g_s - g_l
// Guarantee  s is an ascent direction; a step of length 1 does not lower the value
// Cost       m^3/6 for m variables, by a Cholesky factor
// Source     active sets: Wolfe, Math. Programming 11 (1976); Scheinberg, JMLR 7 (2006)
#pragma once

#include <algorithm>
#include <cmath>

namespace dualgap {

class FaceStep {
 public:
  // Shift of R, relative to the largest entry of H, until R has a factor: the first is
  // some roundings, and a matrix that needs more than the last is singular.
  static constexpr double kFirstShift = 1e-14, kLargestShift = 1e-6, kGrowth = 100.0;

  // Computes the step of `count` variables, H_st = at(s, t), g_s = g(s). If variables
  // are linearly dependent, the shift makes a long step along the dependence, which
  // ends at a bound. Returns false if there is no step.
  template <class At, class Slope>
  bool solve(Index count, const At &at, const Slope &g) {
    const Index k = count - 1;
    last_.resize(count);
    double largest = 0.0;
    for (Index s = 0; s < count; ++s) {
      last_[s] = at(k, s);
      largest = std::max(largest, at(s, s));
    }
    for (double shift = kFirstShift; shift < kLargestShift; shift *= kGrowth)
      if (factor(k, at, g, shift * largest)) {
        substitute(k);
        return true;
      }
    return false;
  }
  double operator[](Index s) const { return step_[s]; }

 private:
  // Computes the factor L of R + shift I, and L^-1 r.
  template <class At, class Slope>
  bool factor(Index k, const At &at, const Slope &g, double shift) {
    factor_.resize(k * k);
    step_.resize(k + 1);
    for (Index i = 0; i < k; ++i) {
      double *row = factor_.data() + i * k;
      for (Index j = 0; j <= i; ++j) {
        double value = at(i, j) - last_[i] - last_[j] + last_[k];
        if (i == j) value += shift;
        const double *other = factor_.data() + j * k;
        value -= dot(row, other, j);
        row[j] = i == j ? std::sqrt(value) : value / other[j];
      }
      if (!(row[i] > 0.0 && std::isfinite(row[i]))) return false;
      step_[i] = (g(i) - g(k) - dot(row, step_.data(), i)) / row[i];
    }
    return true;
  }
  // Solves L^T s = L^-1 r, and balances the sum.
  void substitute(Index k) {
    for (Index i = k; i-- > 0;) {
      step_[i] /= factor_[i * k + i];
      for (Index j = 0; j < i; ++j) step_[j] -= factor_[i * k + j] * step_[i];
    }
    step_[k] = 0.0;
    for (Index i = 0; i < k; ++i) step_[k] -= step_[i];
  }

  // Uses lanes, because the compiler may not reorder a sum by itself.
  static double dot(const double *x, const double *z, Index size) {
    double lane[8] = {};
    Index j = 0;
    for (; j + 8 <= size; j += 8)
      for (Index l = 0; l < 8; ++l) lane[l] += x[j + l] * z[j + l];
    for (; j < size; ++j) lane[0] += x[j] * z[j];
    return ((lane[0] + lane[4]) + (lane[1] + lane[5])) +
           ((lane[2] + lane[6]) + (lane[3] + lane[7]));
  }

  Vec last_, factor_, step_;
};

}  // namespace dualgap

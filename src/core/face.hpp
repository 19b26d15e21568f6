// Newton steps of a dual over a face: over variables whose sum does not change, or two
// groups of variables whose sums do not.
//
// Problem    max over s with sum_t s_t = 0 (in each group) of  g.s - 1/2 s.H s
// Update     the last variable of a group balances the others, l(s) is the one of s:
//              (R + shift I) s = r,  r_s = g_s - g_l(s),
//              R_st = H_st - H_s,l(t) - H_l(s),t + H_l(s),l(t)
// Guarantee  s is an ascent direction; a step of length 1 does not lower the value
// Cost       m^3/6 for m variables, by a Cholesky factor
// Source     active sets: Wolfe, Math. Programming 11 (1976); Scheinberg, JMLR 7 (2006)
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "index.hpp"

namespace dualgap {

class FaceStep {
 public:
  // Shift of R, relative to the largest entry of H, until R has a factor: the first is
  // some roundings, and a matrix that needs more than the last is singular.
  static constexpr double kFirstShift = 1e-14, kLargestShift = 1e-6, kGrowth = 100.0;

  // Computes the step of `count` variables, H_st = at(s, t), g_s = g(s). The first
  // `group` of them, or all if it is 0, are the first group. Dependent variables make
  // a long step, which ends at a bound. Returns false if there is no step.
  template <class At, class Slope>
  bool solve(Index count, const At &at, const Slope &g, Index group = 0) {
    if (group == 0) group = count;
    const std::array<Index, 2> ends{group - 1, count - 1};
    step_.assign(count, 0.0);
    free_.clear();
    double largest = 0.0;
    for (Index which = 0; which < 2; ++which) last_[which].resize(count);
    for (Index s = 0; s < count; ++s) {
      const Index which = s >= group;
      if (s != ends[which]) free_.push_back({s, which});
      for (Index w = 0; w <= (group < count); ++w) last_[w][s] = at(ends[w], s);
      largest = std::max(largest, at(s, s));
    }
    if (free_.empty()) return false;
    for (double shift = kFirstShift; shift < kLargestShift; shift *= kGrowth)
      if (factor(ends, at, g, shift * largest)) {
        substitute(ends);
        return true;
      }
    return false;
  }
  double operator[](Index s) const { return step_[s]; }

 private:
  // A variable that does not balance others, and its group.
  struct Free {
    Index at, group;
  };

  // Computes the factor L of R + shift I, and L^-1 r.
  template <class At, class Slope>
  bool factor(const std::array<Index, 2> &ends, const At &at, const Slope &g,
              double shift) {
    const Index k = free_.size();
    factor_.resize(k * k);
    part_.resize(k);
    for (Index i = 0; i < k; ++i) {
      const auto [s, a] = free_[i];
      double *row = factor_.data() + i * k;
      for (Index j = 0; j <= i; ++j) {
        const auto [t, b] = free_[j];
        double value = at(s, t) - last_[b][s] - last_[a][t] + last_[b][ends[a]];
        if (i == j) value += shift;
        const double *other = factor_.data() + j * k;
        value -= dot(row, other, j);
        row[j] = i == j ? std::sqrt(value) : value / other[j];
      }
      if (!(row[i] > 0.0 && std::isfinite(row[i]))) return false;
      part_[i] = (g(s) - g(ends[a]) - dot(row, part_.data(), i)) / row[i];
    }
    return true;
  }
  // Solves L^T s = L^-1 r, and balances the sums.
  void substitute(const std::array<Index, 2> &ends) {
    const Index k = free_.size();
    for (Index i = k; i-- > 0;) {
      part_[i] /= factor_[i * k + i];
      for (Index j = 0; j < i; ++j) part_[j] -= factor_[i * k + j] * part_[i];
    }
    for (Index i = 0; i < k; ++i) {
      step_[free_[i].at] = part_[i];
      step_[ends[free_[i].group]] -= part_[i];
    }
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

  std::array<Vec, 2> last_;  // rows of H of the variables that balance
  Vector<Free> free_;
  Vec factor_, part_, step_;
};

}  // namespace dualgap

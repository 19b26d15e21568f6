// Primal and dual value in one pass, float64 throughout, compensated sums.
//
//   P(w) = 1/2 ||w||^2 + sum_i c_i l(1 - m_i),   m_i = y_i x_i.w
//   D(a) = sum_i a_i - 1/2 ||v||^2 - 1/2 sum_i delta_i a_i^2,  v = sum_i a_i y_i x_i
//
// Weak duality: D(a) <= P* <= P(w) for every w and every a in the box.
// Cost: one product with X, and one with X^T over the rows with a_i > 0.
#pragma once

#include <cmath>

#include "losses.hpp"
#include "rows.hpp"
#include "stop.hpp"

namespace dualgap {

// Neumaier's sum: the error stays at one rounding of the result.
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

inline double squared_norm(const double *w, Index size) {
  Sum sum;
  constexpr Index kBlock = 256;
  for (Index j = 0; j < size; j += kBlock) {
    double part = 0;
    for (Index k = j; k < std::min(size, j + kBlock); ++k) part += w[k] * w[k];
    sum += part;
  }
  return sum.value();
}

// D of min(scale b_i, U_i) with norm = ||v||^2 known.
inline double dual_value(const double *b, const double *cost, Index n, const Loss &loss,
                         double scale, double norm) {
  Sum sum;
  constexpr Index kBlock = 256;
  for (Index i = 0; i < n; i += kBlock) {
    double part = 0;
    for (Index k = i; k < std::min(n, i + kBlock); ++k) {
      const double a = std::min(scale * b[k], loss.upper(cost[k]));
      part += a - 0.5 * loss.diagonal(cost[k]) * a * a;
    }
    sum += part;
  }
  return sum.value() - 0.5 * norm;
}

// Whether 0 <= a_i <= U_i for every i; false for NaN.
inline bool in_box(const double *alpha, const double *cost, Index n, const Loss &loss) {
  bool inside = true;
  for (Index i = 0; i < n; ++i)
    inside &= alpha[i] >= 0.0 && alpha[i] <= loss.upper(cost[i]);
  return inside;
}

// The largest a_i / U_i: the scale beyond which alpha leaves the box is its inverse.
inline double fullest(const double *alpha, const double *cost, Index n,
                      const Loss &loss) {
  double most = 0;
  for (Index i = 0; i < n; ++i)
    if (alpha[i] > 0.0) most = std::max(most, alpha[i] / loss.upper(cost[i]));
  return most;
}

// a_i <- min(scale a_i, U_i).
inline void scale_into_box(double *alpha, const double *cost, Index n, const Loss &loss,
                           double scale) {
  for (Index i = 0; i < n; ++i)
    alpha[i] = std::min(scale * alpha[i], loss.upper(cost[i]));
}

// sum_i y_i a_i, which an unpenalised bias wants to be 0.
inline double signed_sum(const std::int8_t *y, const double *alpha, Index n) {
  Sum sum;
  for (Index i = 0; i < n; ++i) sum += y[i] * alpha[i];
  return sum.value();
}

// v = sum_i a_i y_i x_i. v must be zero on entry. Returns rows visited.
template <class Rows>
Index combine(const Rows &rows, const std::int8_t *y, const double *alpha, double *v,
              Poll &poll) {
  for (Index i = 0; i < rows.rows(); ++i) {
    if (alpha[i] == 0.0) continue;
    rows.axpy(i, alpha[i] * y[i], v);
    if (poll(rows.count(i))) return i + 1;
  }
  return rows.rows();
}

struct Values {
  double loss = 0;      // sum_i c_i l(1 - m_i)
  double sum = 0;       // sum_i a_i
  double diagonal = 0;  // sum_i delta_i a_i^2
};

// How the dual point of a certificate comes about.
enum class Dual {
  kOfW,    // w = sum a y x already: the pass leaves v alone
  kGiven,  // a is given and need not belong to w: v is accumulated
  kBuilt,  // a_i = c_i l'(1 - m_i), the dual point that w itself suggests
};

template <class Rows>
Values evaluate(const Rows &rows, const std::int8_t *y, const double *cost,
                const Loss &loss, const double *w, Dual dual, double *alpha, double *v,
                double *margins) {
  Sum losses, sum, diagonal;
  for (Index i = 0; i < rows.rows(); ++i) {
    const double c = cost[i];
    const double margin = y[i] * rows.dot(i, w);
    losses += c * loss.value(1.0 - margin);
    if (margins) margins[i] = margin;
    if (!alpha) continue;
    if (dual == Dual::kBuilt) alpha[i] = c * loss.derivative(1.0 - margin);
    const double a = alpha[i];
    if (a == 0.0) continue;
    sum += a;
    diagonal += loss.diagonal(c) * a * a;
    if (dual != Dual::kOfW) rows.axpy(i, a * y[i], v);
  }
  return {losses.value(), sum.value(), diagonal.value()};
}

}  // namespace dualgap

// Primal and dual value in one pass, float64 throughout, compensated sums.
//
//   P(w) = 1/2 ||w||^2 + sum_i c_i l(1 - m_i),   m_i = y_i x_i.w
//   D(a) = sum_i a_i - 1/2 ||v||^2 - 1/2 sum_i delta_i a_i^2,  v = sum_i a_i y_i x_i
//
// Weak duality: D(a) <= P* <= P(w) for every w and every a in the box.
// Cost: one product with X, and one with X^T over the rows with a_i > 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "losses.hpp"
#include "rows.hpp"
#include "sums.hpp"
#include "threads.hpp"

namespace dualgap {

inline double squared_norm(const double *w, Index size) {
  Sum sum;
  constexpr Index kBlock = 256;
  for (Index j = 0; j < size; j += kBlock)
    sum += sum_of(j, std::min(size, j + kBlock), [&](Index k) { return w[k] * w[k]; });
  return sum.value();
}

// D of min(scale b_i, U_i) with norm = ||v||^2 known.
inline double dual_value(const double *b, const double *cost, Index n, const Loss &loss,
                         double scale, double norm) {
  Sum sum;
  constexpr Index kBlock = 256;
  for (Index i = 0; i < n; i += kBlock)
    sum += sum_of(i, std::min(n, i + kBlock), [&](Index k) {
      const double a = std::min(scale * b[k], loss.upper(cost[k]));
      return a - 0.5 * loss.diagonal(cost[k]) * a * a;
    });
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

// Rows from which a second thread pays, in stored entries read.
inline constexpr Index kWorthThread = 500'000;

template <class Rows>
Index worth_threads(const Rows &rows, Index threads) {
  const Index sample = std::max<Index>(rows.rows() / 64, 1);
  Index seen = 0, stored = 0;
  for (Index i = 0; i < rows.rows(); i += sample, ++seen) stored += rows.count(i) + 1;
  const Index work = seen ? stored * (rows.rows() / seen) : 0;
  return std::clamp<Index>(work / kWorthThread, 1, threads);
}

// A vector that every part but the first has to itself, added up in their order.
class PartSums {
 public:
  PartSums(double *first, Index size, Index parts)
      : first_(first),
        size_(size),
        own_(static_cast<std::size_t>(first ? (parts - 1) * size : 0)) {}
  double *of(Index part) {
    return part == 0 || !first_ ? first_ : own_.data() + (part - 1) * size_;
  }
  void add_up() {
    for (std::size_t k = 0; k < own_.size(); ++k)
      first_[k % static_cast<std::size_t>(size_)] += own_[k];
  }

 private:
  double *first_;
  Index size_;
  std::vector<double> own_;
};

// v = sum_i a_i y_i x_i. v must be zero on entry.
template <class Rows>
void combine(const Rows &rows, const std::int8_t *y, const double *alpha, double *v,
             Team &threads) {
  const Index parts = worth_threads(rows, threads.size());
  PartSums sums(v, rows.width(), parts);
  threads.run(parts, rows.rows(), [&](Index part, Index begin, Index end) {
    double *own = sums.of(part);
    for (Index i = begin; i < end; ++i)
      if (alpha[i] != 0.0) rows.axpy(i, alpha[i] * y[i], own);
  });
  sums.add_up();
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
                double *margins, Team &threads) {
  struct Part {
    Sum loss, sum, diagonal;
  };
  const Index parts = worth_threads(rows, threads.size());
  std::vector<Part> part_sums(static_cast<std::size_t>(parts));
  PartSums sums(v, rows.width(), parts);
  threads.run(parts, rows.rows(), [&](Index part, Index begin, Index end) {
    Part total;
    double *own = sums.of(part);
    for (Index i = begin; i < end; ++i) {
      const double c = cost[i];
      const double margin = y[i] * rows.dot(i, w);
      total.loss += c * loss.value(1.0 - margin);
      if (margins) margins[i] = margin;
      if (!alpha) continue;
      if (dual == Dual::kBuilt) alpha[i] = c * loss.derivative(1.0 - margin);
      const double a = alpha[i];
      if (a == 0.0) continue;
      total.sum += a;
      total.diagonal += loss.diagonal(c) * a * a;
      if (dual != Dual::kOfW) rows.axpy(i, a * y[i], own);
    }
    part_sums[static_cast<std::size_t>(part)] = total;
  });
  sums.add_up();
  Part all;
  for (const Part &part : part_sums) {
    all.loss += part.loss.value();
    all.sum += part.sum.value();
    all.diagonal += part.diagonal.value();
  }
  return {all.loss.value(), all.sum.value(), all.diagonal.value()};
}

struct Scaled {
  double scale;
  double loss;  // sum_i c_i l(1 - scale m_i)
};

// The b in [1/2, 2] that minimises P(b w) = b^2/2 ||w||^2 + sum_i c_i l(1 - b m_i), by
// bisection on its derivative, given norm = ||w||^2. Cost: O(n) a trial.
inline Scaled best_multiple(const double *margins, const double *cost, Index n,
                            const Loss &loss, double norm) {
  constexpr int kTrials = 16;
  double low = 0.5, high = 2.0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const double b = 0.5 * (low + high);
    const double fall = sum_of(0, n, [&](Index i) {
      return cost[i] * margins[i] * loss.derivative(1.0 - b * margins[i]);
    });
    (b * norm > fall ? high : low) = b;
  }
  const double b = 0.5 * (low + high);
  Sum sum;
  for (Index i = 0; i < n; ++i) sum += cost[i] * loss.value(1.0 - b * margins[i]);
  return {b, sum.value()};
}

}  // namespace dualgap

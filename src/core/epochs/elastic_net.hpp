// Coordinate descent for a quadratic with an L1 norm, over columns of a working set.
//
// Problem    min over w of  r.z + 1/2 sum_i h_i z_i^2 + sum_j l1 |w_j| + l2/2 w_j^2,
//            z = sum_j (w_j - v_j) x_j, for columns x_j and a start v; a free column,
//            such as a bias, has no penalty
// Update     w_j <- sign(s) max(|s| - l1/H, 0), s = w_j - G/H, the best w_j alone:
//            G = x_j.u + l2 w_j, u = r + h z, H = sum_i h_i x_ij^2 + l2
//            Sweeps over nonzero w_j alone, until they are near their optimum, come
//            between sweeps over all.
// Guarantee  the value never rises; the fixed points are the optima
// Cost       a product with u for each column, and another one for each change; with
//            the matrix of all products sum_i h_i x_ij x_ik, m for each change
// Source     Friedman, Hastie, Tibshirani, J. Stat. Software 33, 2010; Yuan, Ho, Lin,
//            JMLR 13, 2012, whose quadratic is the loss's second-order model
#pragma once

#include <algorithm>
#include <cmath>

#include "../rows.hpp"
#include "../stop.hpp"

namespace dualgap {

struct ElasticNetPenalty {
  double l1, l2;
  Index free;     // -1 for none
  double target;  // violation that ends a descent
  Index most;     // sweeps that end it

  double l1_of(Index j) const { return j == free ? 0.0 : l1; }
  double l2_of(Index j) const { return j == free ? 0.0 : l2; }
};

// Returns the distance of 0 from the subdifferential, given the slope without L1.
inline double l1_violation(double slope, double w, double l1) {
  if (w != 0.0) return std::abs(slope + std::copysign(l1, w));
  return std::max(std::abs(slope) - l1, 0.0);
}

// The quadratic by its columns, which are the rows of an accessor.
template <class Columns>
struct QuadraticOfColumns {
  const Columns &x;
  const double *h, *squares;  // squares: sum_i h_i x_ij^2 of every column j
  double *u;

  double slope(Index j) const { return x.dot(j, u); }
  double curvature(Index j) const { return squares[j]; }
  Index work(Index j) const { return x.count(j); }
  void move(Index j, double t) {
    x.for_each(j, [&](Index i, double value) { u[i] += t * (h[i] * value); });
  }
};

// The quadratic by the products of all columns of the working set, whose slopes are u.
struct QuadraticOfProducts {
  DenseRows<double> products;
  const double *diagonal;
  double *u;

  double slope(Index j) const { return u[j]; }
  double curvature(Index j) const { return diagonal[j]; }
  Index work(Index) const { return products.cols(); }
  void move(Index j, double t) { products.axpy(j, t, u); }
};

// Adds up h_i x_ij x_ik of the columns of a set, m by m, over rows. `place` has the
// place of every column in the set, or -1. Returns false if told to stop.
template <class Rows>
bool add_products(const Rows &rows, const std::int32_t *place, Index m, const double *h,
                  double *sums, Poll &poll) {
  Vector<Index> at(rows.width());
  Vec values(rows.width());
  for (Index i = 0; i < rows.rows(); ++i) {
    if (h[i] == 0.0) continue;
    Index count = 0;
    rows.for_each(i, [&](Index j, double value) {
      if (place[j] < 0 || value == 0.0) return;
      at[count] = place[j];
      values[count++] = value;
    });
    for (Index a = 0; a < count; ++a) {
      const double value = h[i] * values[a];
      double *row = sums + at[a] * m;
      for (Index b = 0; b <= a; ++b) row[at[b]] += value * values[b];
    }
    if (poll(rows.count(i) + count * count / 2)) return false;
  }
  for (Index a = 0; a < m; ++a)  // a pair is in one triangle or in the other
    for (Index b = 0; b < a; ++b)
      sums[a * m + b] = sums[b * m + a] = sums[a * m + b] + sums[b * m + a];
  return true;
}

struct Descent {
  Index sweeps = 0;
  double violation = 0;  // the largest that the last sweep over all columns met
};

struct DescentTuning {
  // Share of the violation that sweeps over nonzero w leave.
  static constexpr double kShare = 0.1;
  // Most of these sweeps in a row.
  static constexpr Index kMost = 100;
};

template <class Quadratic>
Descent descend(Quadratic &of, const ElasticNetPenalty &penalty, const Order *set,
                Index m, double *w, Poll &poll) {
  Vector<Order> active(m);
  Descent done;
  bool left = false;
  const auto sweep = [&](const Order *columns, Index count) {
    double largest = 0.0;
    for (Index t = 0; t < count && !left; ++t) {
      const Index j = columns[t];
      const double l1 = penalty.l1_of(j), l2 = penalty.l2_of(j), before = w[j];
      const double slope = of.slope(j) + l2 * before, bent = of.curvature(j) + l2;
      left = poll(2 * of.work(j));
      const double off = l1_violation(slope, before, l1);
      largest = std::max(largest, off);
      if (off == 0.0 || !(bent > 0.0)) continue;
      const double best = before - slope / bent;
      const double size = std::max(std::abs(best) - l1 / bent, 0.0);
      w[j] = std::copysign(size, best);
      if (w[j] != before) of.move(j, w[j] - before);
    }
    ++done.sweeps;
    return largest;
  };
  while (!left && done.sweeps < penalty.most) {
    done.violation = sweep(set, m);
    if (done.violation <= penalty.target) break;
    Index count = 0;
    for (Index t = 0; t < m; ++t)
      if (w[set[t]] != 0.0 || static_cast<Index>(set[t]) == penalty.free)
        active[count++] = set[t];
    const double enough =
        std::max(penalty.target, DescentTuning::kShare * done.violation);
    for (Index k = 0; k < DescentTuning::kMost && done.sweeps < penalty.most && !left;
         ++k)
      if (sweep(active.data(), count) <= enough) break;
  }
  return done;
}

}  // namespace dualgap

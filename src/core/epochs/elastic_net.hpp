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
#include <numeric>

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
  const double *h;
  double *u;
  Vec squares = Vec(x.rows(), -1.0);  // sum_i h_i x_ij^2, -1 until it is needed

  double slope(Index j) const { return x.dot(j, u); }
  double curvature(Index j) {
    if (squares[j] < 0.0) {
      double sum = 0.0;
      x.for_each(j, [&](Index i, double value) { sum += h[i] * value * value; });
      squares[j] = sum;
    }
    return squares[j];
  }
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

// Adds h_i x_ij x_ik to the sums of all pairs of columns, which ascend within a row.
// Returns false if told to stop.
template <class Rows>
bool add_products(const Rows &rows, const double *h, double *sums, Poll &poll) {
  const Index m = rows.width();
  Vector<Index> at(m);
  Vec values(m);
  for (Index i = 0; i < rows.rows(); ++i) {
    if (h[i] == 0.0) continue;
    Index count = 0;
    rows.for_each(i, [&](Index j, double value) {
      at[count] = j;
      values[count++] = value;
    });
    for (Index a = 0; a < count; ++a) {
      const double value = h[i] * values[a];
      double *row = sums + at[a] * m;
      for (Index b = 0; b <= a; ++b) row[at[b]] += value * values[b];
    }
    if (poll(count * count / 2)) return false;
  }
  constexpr Index kTile = 32;  // its lines stay in the cache
  for (Index first = 0; first < m; first += kTile)
    for (Index begin = 0; begin <= first; begin += kTile)
      for (Index a = first; a < std::min(first + kTile, m); ++a)
        for (Index b = begin; b < std::min(begin + kTile, a); ++b)
          sums[b * m + a] = sums[a * m + b];
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
Descent descend(Quadratic &of, const ElasticNetPenalty &penalty, Index m, double *w,
                Poll &poll) {
  Vector<Order> all(m), active(m);
  std::iota(all.begin(), all.end(), Order{0});
  Descent done;
  bool left = false;
  const auto sweep = [&](const Order *columns, Index count) {
    double largest = 0.0;
    for (Index t = 0; t < count && !left; ++t) {
      const Index j = columns[t];
      const double l1 = penalty.l1_of(j), l2 = penalty.l2_of(j), before = w[j];
      const double slope = of.slope(j) + l2 * before;
      left = poll(2 * of.work(j));
      const double off = l1_violation(slope, before, l1);
      largest = std::max(largest, off);
      if (off == 0.0) continue;
      const double bent = of.curvature(j) + l2;
      if (!(bent > 0.0)) continue;
      const double best = before - slope / bent;
      const double size = std::max(std::abs(best) - l1 / bent, 0.0);
      w[j] = std::copysign(size, best);
      if (w[j] != before) of.move(j, w[j] - before);
    }
    ++done.sweeps;
    return largest;
  };
  while (!left && done.sweeps < penalty.most) {
    done.violation = sweep(all.data(), m);
    if (done.violation <= penalty.target) break;
    Index count = 0;
    for (Index j = 0; j < m; ++j)
      if (w[j] != 0.0 || j == penalty.free) active[count++] = static_cast<Order>(j);
    const double enough =
        std::max(penalty.target, DescentTuning::kShare * done.violation);
    for (Index k = 0; k < DescentTuning::kMost && done.sweeps < penalty.most && !left;
         ++k)
      if (sweep(active.data(), count) <= enough) break;
  }
  return done;
}

}  // namespace dualgap

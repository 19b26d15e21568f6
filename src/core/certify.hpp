// Primal and dual values from one pass, in float64 with compensated sums.
//
//   P(w) = 1/2 ||w||^2 + sum_i c_i l(1 - m_i),   m_i = y_i x_i.w
//   D(a) = sum_i a_i - 1/2 ||v||^2 - 1/2 sum_i delta_i a_i^2,  v = sum_i a_i y_i x_i
//
// Weak duality: D(a) <= P* <= P(w) for every w and every a in the box.
// Rounding: every sum comes with a bound on its error (docs/certificate.md). If no term
// of a product x_i.w passes more than g roundings, its error is to first order at most
// g u sum_j |x_ij w_j| <= g u ||x_i|| ||w||, u = 2^-53 (Higham 2002, section 3.1).
// kSlack covers the higher orders.
// Where these bounds hide the gap, a pass with compensated products has errors of u of
// the result, and (g u)^2 of the sizes (Ogita, Rump and Oishi 2005): for columns that
// are large and nearly constant, whose products cancel.
// Regression has the losses c_i l(|p_i - x_i.w| - epsilon) and the linear term
// sum_i (p_i a_i - epsilon |a_i|).
// Cost: one product with X, and one with X^T over the rows with a_i > 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>

#include "duals.hpp"
#include "losses.hpp"
#include "rows.hpp"
#include "shared_rows.hpp"
#include "sums.hpp"

namespace dualgap {

// v = sum_i a_i y_i x_i. v must be zero on entry.
template <class Rows>
void combine(const Rows &rows, const std::int8_t *y, const double *alpha, double *v,
             Team &threads) {
  over_rows(rows, threads, v, rows.width(), [&](Index begin, Index end, double *own) {
    for (Index i = begin; i < end; ++i)
      if (alpha[i] != 0.0) rows.axpy(i, alpha[i] * y[i], own);
  });
}

// out_i = ||x_i' W|| for an upper triangular W, given by rows.
template <class Rows>
void image_lengths(const Rows &rows, const double *W, double *out) {
  const Index width = rows.width(), padded = (width + kLanes - 1) / kLanes * kLanes;
  Vec zeros(padded);
  double *image = zeros.data();
  for (Index i = 0; i < rows.rows(); ++i) {
    std::fill(image, image + padded, 0.0);
    rows.for_each(i, [&](Index j, double value) {
      const double *row = W + j * width;
      for (Index k = j; k < width; ++k) image[k] += value * row[k];
    });
    double lane[kLanes] = {};
    for (Index k = 0; k < padded; k += kLanes)
      for (Index l = 0; l < kLanes; ++l) lane[l] += image[k + l] * image[k + l];
    out[i] = std::sqrt(std::accumulate(lane, lane + kLanes, 0.0));
  }
}

// Returns an upper bound on ||w||, which is 0 only if w is 0.
inline double length_of(const double *w, Index size) {
  const double norm = squared_norm(w, size);
  if (norm == 0.0 && std::all_of(w, w + size, [](double x) { return x == 0.0; }))
    return 0.0;
  return std::sqrt(norm * (1.0 + kNormRoundings * kRounding<double>)+kSmall);
}

// Bounds on the sizes of products x_i.w and on their errors. The constant feature is
// separate, because its scale may differ.
struct Sizes {
  const double *q;       // ||x_i||^2 as computed, constant feature included
  double constant = 0;   // square of the constant feature
  double length = 0;     // length of w, without the constant feature
  double last = 0;       // |constant w_d|
  double roundings = 0;  // bound on the roundings of a term of q
  // Terms of `off`.
  double each = length == 0.0 ? 0.0 : kSlack * kRounding<double>;
  double other = length == 0.0 && constant != 1.0 ? 2.0 * kRounding<double> : 0.0;
  double least = length == 0.0 ? 0.0 : kSmall;

  // Returns an upper bound on ||x_i||, without the constant feature.
  double row(Index i) const {
    const double square = q[i] * (1.0 + 2.0 * roundings * kRounding<double>)-constant;
    return std::sqrt(std::max(square, 0.0) + kSmall);
  }
  // Returns an upper bound on |x_i|.|w|.
  double product(double row) const { return row * length + last; }
  // Returns an upper bound on the error of x_i.w and of 1 - y_i x_i.w, whose terms
  // passed at most this number of roundings. If w is 0, only the constant feature has
  // an error, and none if it is 1.
  double off(double size, double passed) const {
    return (each * passed + other) * size + least;
  }
};

struct Values {
  double loss = 0;      // sum_i c_i l(1 - m_i)
  double sum = 0;       // sum_i a_i, or the linear term of D in its place
  double diagonal = 0;  // sum_i delta_i a_i^2
  // Rounding: the exact sum of losses is at most loss + loss_error, and w.v is within
  // along_error of `along`.
  double loss_error = 0;
  double along = 0;  // sum_i a_i m_i
  double along_error = 0;
  double reach = 0;      // at least sum_i a_i ||x_i||, constant feature included
  double used = 0;       // number of rows with a_i != 0
  double roundings = 0;  // largest number of roundings in a product x_i.w
  double length = 0;     // length of w, without the constant feature
  double last = 0;       // |constant w_d|
};

// Values of one part of the rows.
struct PartValues {
  LaneSums loss, sum, diagonal, along;
  double loss_error = 0, along_error = 0, reach = 0, used = 0, roundings = 0;
};

inline Values add_up(const Vector<PartValues> &parts, const Sizes &sizes) {
  Values all;
  Sum losses, alphas, diagonals, along;
  for (const PartValues &part : parts) {
    losses += part.loss.value();
    alphas += part.sum.value();
    diagonals += part.diagonal.value();
    along += part.along.value();
    all.loss_error += part.loss_error;
    all.along_error += part.along_error;
    all.reach += part.reach;
    all.used += part.used;
    all.roundings = std::max(all.roundings, part.roundings);
  }
  all.loss = losses.value();
  all.sum = alphas.value();
  all.diagonal = diagonals.value();
  all.along = along.value();
  all.length = sizes.length;
  all.last = sizes.last;
  return all;
}

// x_i.w with less rounding for long rows: a compensated sum over blocks of entries. It
// adds two roundings to the roundings inside a block, and a relative (blocks u)^2.
// Blocks are short enough for the error bound of a short row, and long enough to add no
// cost to the pass.
template <class Rows>
struct BlockedDot {
  static constexpr Index kBlock = Rows::kBlock;
  const Rows &rows;
  const double *w;

  double operator()(Index i) const {
    const Index count = rows.count(i);
    if (count <= kBlock) return rows.dot(i, w);
    Sum sum;
    if (rows.constant() != 0.0) sum += rows.constant() * w[rows.cols()];
    for (Index first = 0; first < count; first += kBlock)
      sum += rows.partial_dot(i, first, std::min(first + kBlock, count), w, 0.0);
    return sum.value();
  }
  // Bound on the roundings of a term.
  double roundings(Index i) const {
    const Index count = rows.count(i);
    return static_cast<double>(Rows::roundings(std::min(count, kBlock)) +
                               (count > kBlock ? 3 : 0));
  }
};

// The exact sum of two numbers, or their exact product: a rounded one, and its error.
struct Exact {
  double value, error;
  static Exact sum(double a, double b) {
    const double s = a + b, z = s - a;
    return {s, (a - (s - z)) + (b - z)};
  }
  static Exact product(double a, double b) {
    const volatile double p = a * b;  // not to be fused into a sum
    return {p, std::fma(a, b, -p)};
  }
};

// x_i.w as the sum of a value and its error, both rounded.
template <class Rows>
Exact precise_dot(const Rows &rows, Index i, const double *w) {
  Exact all{0.0, 0.0};
  rows.for_each(i, [&](Index j, double x) {
    const Exact product = Exact::product(x, w[j]);
    const Exact next = Exact::sum(all.value, product.value);
    all = {next.value, all.error + (next.error + product.error)};
  });
  return all;
}

// v += a x_i, and the errors of these sums to `lost`.
template <class Rows>
void precise_axpy(const Rows &rows, Index i, double a, double *v, double *lost) {
  rows.for_each(i, [&](Index j, double x) {
    const Exact product = Exact::product(a, x);
    const Exact next = Exact::sum(v[j], product.value);
    v[j] = next.value;
    lost[j] += next.error + product.error;
  });
}

// Origin of the dual point of a certificate.
enum class Dual {
  kOfW,      // w is already sum a y x, so v is not computed
  kGiven,    // a is given and need not define w, so v is computed
  kPrecise,  // the same, with compensated products
  kBuilt,    // a_i = c_i l'(1 - m_i), the dual point that w suggests
};

// Terms of a row in P and D, with a loss of the margin y_i x_i.w.
struct MarginTerms {
  const std::int8_t *y;
  const double *cost;
  Loss form;
  std::uint8_t *wake = nullptr;  // counters of shrinking; see sleeping_rows.hpp
  RowLoss of{form};
  double at(Index i, double score) const { return y[i] * score; }
  double at(Index i, Exact score) const { return y[i] * (score.value + score.error); }
  double loss(Index i, double m) const { return cost[i] * of.value(1.0 - m); }
  // As the loss is convex, an error `off` raises it by at most off times this slope.
  double slope(Index i, double m, double off) const {
    return cost[i] * of.derivative(1.0 - m + off);
  }
  double dual(Index i, double m) const { return cost[i] * of.derivative(1.0 - m); }
  double linear(Index, double a) const { return a; }
  double diagonal(Index i) const { return form.diagonal(cost[i]); }
  double sign(Index i) const { return y[i]; }
  double rounding(Index) const { return 0.0; }
  double size(Index) const { return 1.0; }
  double shift() const { return 1.0; }
  // Ends the skipping of a row unless it is at a bound that its gradient confirms.
  void look(Index i, double m, double a) const {
    if (!wake || wake[i] == 0) return;
    const double gradient = m - 1.0 + diagonal(i) * a;
    const bool stays =
        (a == 0.0 && gradient >= 0.0) || (a == form.upper(cost[i]) && gradient <= 0.0);
    if (!stays) wake[i] = 0;
  }
};

// Terms of a row with a loss l(|r_i| - epsilon) of the residual r_i = p_i - x_i.w,
// times the weight of its side, and a signed a_i.
struct ResidualTerms {
  const double *target;
  const double *cost;
  ResidualLoss loss_of;
  Loss form = loss_of.form;
  double epsilon = loss_of.epsilon;
  RowLoss of{form};
  double at(Index i, double score) const { return target[i] - score; }
  double at(Index i, Exact score) const {
    const Exact rest = Exact::sum(target[i], -score.value);
    return rest.value + (rest.error - score.error);
  }
  double loss(Index i, double r) const {
    return cost[i] * loss_of.weight(r) * of.value(std::abs(r) - epsilon);
  }
  // The exact residual may be on the other side of 0.
  double slope(Index i, double r, double off) const {
    return cost[i] * loss_of.largest() * of.derivative(std::abs(r) - epsilon + off);
  }
  double dual(Index i, double r) const {
    const double size = of.derivative(std::abs(r) - epsilon);
    return std::copysign(cost[i] * loss_of.weight(r) * size, r);
  }
  double linear(Index i, double a) const {
    return target[i] * a - epsilon * std::abs(a);
  }
  double diagonal(Index i) const { return form.diagonal(cost[i]); }
  double sign(Index) const { return 1.0; }
  // Error of the two subtractions, in addition to the error of x_i.w.
  double rounding(Index i) const {
    return 2.0 * kSlack * kRounding<double> * (2.0 * std::abs(target[i]) + epsilon);
  }
  // Size of what is subtracted from x_i.w, and from its residual.
  double size(Index i) const { return std::abs(target[i]); }
  double shift() const { return epsilon; }
  void look(Index, double, double) const {}
};

// Rows whose terms are computed together in vectors, while their entries are in cache.
inline constexpr Index kRowsTogether = 64;

// The n rows from `first` on: their scores, and the roundings of these; bounds on
// ||x_i||; margins or residuals, and bounds on their errors.
struct RowsTogether {
  Index first, n;
  double score[kRowsTogether], roundings[kRowsTogether], row[kRowsTogether];
  double at[kRowsTogether], off[kRowsTogether];
};

// What a pass does with scores, which does not depend on the kind of rows.
template <class Terms>
struct Evaluation {
  const Terms &terms;
  const Sizes &sizes;
  double constant;  // feature
  Dual dual;
  double *alpha, *seen;  // duals, and room for margins or residuals; either may be null
  double adding;         // bound on the relative error of a sum over the rows
  // An intercept is stored as the rounded product of w_d and a scaling, and w_d may be
  // a rounded quotient.
  double intercept = constant == 1.0 ? 0.0 : 2.0 * kRounding<double> * sizes.last;

  // Takes the k-th score, a compensated product with a row of `entries` entries.
  void take(RowsTogether &of, Index k, Exact exact, Index entries) const {
    const Index i = of.first + k;
    of.score[k] = exact.value + exact.error;
    of.at[k] = terms.at(i, exact);
    const double least = static_cast<double>(entries + 4) * kRounding<double>;
    const double size = sizes.product(sizes.row(i)) + terms.size(i);
    of.off[k] =
        kSlack * (3.0 * kRounding<double> * (std::abs(of.at[k]) + terms.shift()) +
                  2.0 * least * least * size + intercept) +
        kSmall;
  }

  // Adds the rows to P and D. It is compiled once, not for every kind of rows.
  DUALGAP_NOINLINE void add(RowsTogether &of, PartValues &all) const {
    const Index first = of.first, n = of.n;
    double *row = of.row, *at = of.at, *off = of.off;
    const double *score = of.score;
    double x[kRowsTogether] = {}, y[kRowsTogether] = {};
    DUALGAP_INDEPENDENT
    for (Index k = 0; k < n; ++k) row[k] = sizes.row(first + k);
    if (dual != Dual::kPrecise) {
      DUALGAP_INDEPENDENT
      for (Index k = 0; k < n; ++k) {
        const Index i = first + k;
        at[k] = terms.at(i, score[k]);
        off[k] = sizes.off(sizes.product(row[k]), of.roundings[k]) + terms.rounding(i);
      }
    }
    DUALGAP_INDEPENDENT
    for (Index k = 0; k < n; ++k) {
      x[k] = terms.loss(first + k, at[k]);
      y[k] = terms.slope(first + k, at[k], off[k]) * off[k];
    }
    all.loss.add(x, n);
    all.loss_error += total(y, n);
    all.roundings = std::max(all.roundings, largest(of.roundings, n));
    if (seen) std::copy_n(at, n, seen + first);
    if (!alpha) return;
    double *a = alpha + first;
    if (dual == Dual::kBuilt)
      for (Index k = 0; k < n; ++k) a[k] = terms.dual(first + k, at[k]);
    for (Index k = 0; k < n; ++k) terms.look(first + k, at[k], a[k]);
    // If a score is infinite this is NaN, which counts as no bound.
    Index used = 0;
    DUALGAP_INDEPENDENT
    for (Index k = 0; k < n; ++k) {
      const double rounding =
          (2.0 * kRounding<double> + adding * adding) * sizes.product(row[k]);
      x[k] = a[k] * terms.sign(first + k) * score[k];
      y[k] = std::abs(a[k]) * (off[k] + rounding);
      row[k] = std::abs(a[k]) * (row[k] + std::abs(constant));
      used += a[k] != 0.0;
    }
    all.along.add(x, n);
    all.along_error += total(y, n);
    all.reach += total(row, n);
    all.used += static_cast<double>(used);
    for (Index k = 0; k < n; ++k) x[k] = terms.linear(first + k, a[k]);
    all.sum.add(x, n);
    if (terms.form.curvature == 0.0) return;
    for (Index k = 0; k < n; ++k)
      x[k] = terms.form.diagonal(terms.cost[first + k]) * a[k] * a[k];
    all.diagonal.add(x, n);
  }
};

// Evaluates P at w and D at alpha. The margins or residuals go to `seen` if it is
// given. If `dual` is kPrecise, products are compensated, and alpha must be given.
template <class Rows, class Terms>
Values evaluate(const Rows &rows, const Terms &terms, const double *q, const double *w,
                Dual dual, double *alpha, double *v, double *seen, Team &threads) {
  const bool precise = dual == Dual::kPrecise;
  Vec lost(precise ? rows.width() : 0);
  const double constant = rows.constant();
  const Sizes sizes{q, constant * constant, length_of(w, rows.cols()),
                    constant != 0.0 ? std::abs(constant * w[rows.cols()]) : 0.0,
                    static_cast<double>(rows.cols() + 2)};
  const double adding = static_cast<double>(rows.rows()) * kRounding<double>;
  const Evaluation<Terms> of{terms, sizes, constant, dual, alpha, seen, adding};
  const BlockedDot<Rows> dot{rows, w};
  const auto values = [&](Index begin, Index end, double *own, PartValues &all) {
    RowsTogether some;
    for (Index first = begin; first < end; first += kRowsTogether) {
      some.first = first;
      some.n = std::min(kRowsTogether, end - first);
      for (Index k = 0; k < some.n; ++k) {
        const Index i = first + k;
        some.roundings[k] = dot.roundings(i);
        if (precise)
          of.take(some, k, precise_dot(rows, i, w), rows.count(i));
        else
          some.score[k] = dot(i);
      }
      of.add(some, all);
      if (!alpha || dual == Dual::kOfW) continue;
      for (Index i = first; i < first + some.n; ++i) {
        if (alpha[i] == 0.0) continue;
        const double by = alpha[i] * terms.sign(i);
        if (precise)
          precise_axpy(rows, i, by, own, lost.data());
        else
          rows.axpy(i, by, own);
      }
    }
  };
  Team alone(1);
  Team &team = precise ? alone : threads;
  const auto parts = over_rows<PartValues>(rows, team, v, rows.width(), values);
  for (Index j = 0; j < lost.size(); ++j) v[j] += lost[j];
  return add_up(parts, sizes);
}

// Sums at a point w and at scale times a dual point, from which bounds on P and D
// follow: norm = ||w||^2, dual_norm = ||v||^2 for the dual point without its scale.
struct GivenPoint {
  Values values;
  double norm, dual_norm, scale;
};

// Evaluates P at w, and D at the best multiple of alpha, a point of the box, which
// alpha becomes.
template <class Rows>
GivenPoint evaluate_given(const Rows &rows, const MarginTerms &terms, const double *q,
                          const double *w, double *alpha, Team &threads) {
  const Index n = rows.rows(), width = rows.width();
  Vec v(width);
  const Values values =
      evaluate(rows, terms, q, w, Dual::kGiven, alpha, v.data(), nullptr, threads);
  const double dual_norm = squared_norm(v.data(), width);
  const double scale = best_scale(alpha, terms.cost, n, terms.form, values.sum,
                                  dual_norm + values.diagonal);
  scale_into_box(alpha, terms.cost, n, terms.form, scale);
  return {values, squared_norm(w, width), dual_norm, scale};
}

struct Scaled {
  double scale;
  double loss;  // sum_i c_i l(1 - scale m_i)
  double loss_error;
};

// Returns the b in [1/2, 2] that minimises
// P(b w) = b^2/2 ||w||^2 + sum_i c_i l(1 - b m_i), by bisection on the derivative,
// given norm = ||w||^2. Cost: O(n) per trial.
inline Scaled best_multiple(const double *margins, const double *cost, Index n,
                            const Loss &loss, double norm, const Sizes &sizes,
                            double roundings) {
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
  double error = 0;
  for (Index i = 0; i < n; ++i) {
    const double u = 1.0 - b * margins[i];
    // Two more roundings: of b m_i, and of the entries of b w.
    const double size = b * sizes.product(sizes.row(i));
    const double off = sizes.off(size, roundings + 2.0);
    sum += cost[i] * loss.value(u);
    error += cost[i] * loss.derivative(u + off) * off;
  }
  return {b, sum.value(), error};
}

}  // namespace dualgap

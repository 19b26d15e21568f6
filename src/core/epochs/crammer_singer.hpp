// Multiclass SVM of Crammer and Singer: sequential dual steps, one row at a time.
//
// Problem    min over w_1, ..., w_K of
//              1/2 sum_m ||w_m||^2 + sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + e_im)
//            with e_im = 0 for m = y_i, else 1; through its dual
//            max D(a) = -1/2 sum_m ||w_m||^2 - sum_i sum_m e_im a_im,
//            w_m = sum_i a_im x_i,  sum_m a_im = 0,  a_im <= C_im,
//            C_im = c_i for m = y_i, else 0
// Update     for one i, exactly: with A = ||x_i||^2, B_m = w_m.x_i + e_im - A a_im
//              a_im <- min(C_im, (beta - B_m)/A),
//              sum_m max(0, B_m + A C_im - beta) = A c_i
//              w_m <- w_m + (change of a_im) x_i
//            Shrinking: a row that does not change is skipped for 1 epoch, then for 3,
//            7, ..., 31.
// Guarantee  D never falls, and converges to its maximum
// Cost       K dots, and an axpy for each a_im that changes; 8 K bytes of a and 2 of
//            counters per row. The K weights of a feature are adjacent, so that a row
//            is read once for all classes.
// Source     Keerthi, Sundararajan, Chang, Hsieh and Lin, KDD 2008, section 3 (there
//            shrinking also removes classes). The problem of one row is a projection on
//            a simplex, solved without sorting (Michelot, J. Optim. Theory Appl. 50,
//            1986).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "../certify.hpp"
#include "../random.hpp"
#include "../rows.hpp"
#include "../shared_rows.hpp"
#include "../stop.hpp"
#include "../sums.hpp"
#include "dual.hpp"

namespace dualgap {

inline constexpr int kLongestMulticlassSleep = 31;

struct MulticlassData {
  const std::int32_t *y;  // class of each row, 0..K-1
  const double *cost;
  const double *q;
  Index classes;
};

struct MulticlassState {
  Span<double> alpha;  // n x K
  Span<double> w;      // width x class_stride(K)
  Span<std::uint8_t> wake, length;
};

struct MulticlassPass {
  Index visited = 0;
  Index updates = 0;
  double gap = 0;     // sum of the rows' shares of P - D at visit time
  double linear = 0;  // change of -sum_im e_im a_im = sum_i a_{i,y_i}
};

// Weights of a feature are padded with zeros to this multiple, for vector registers.
inline constexpr Index kClassBlock = 8;
inline Index class_stride(Index classes) {
  return (classes + kClassBlock - 1) / kClassBlock * kClassBlock;
}

// Computes score_m = w_m.x_i for all classes and the padding.
template <class Rows>
void class_scores(const Rows &rows, Index i, const double *w, Index stride,
                  double *score) {
  for (Index b = 0; b < stride; b += kClassBlock) {
    double sum[kClassBlock] = {};
    rows.for_each(i, [&](Index j, double x) {
      const double *of_feature = w + j * stride + b;
      for (Index l = 0; l < kClassBlock; ++l) sum[l] += x * of_feature[l];
    });
    std::copy(sum, sum + kClassBlock, score + b);
  }
}

// Adds s_m x_i to every w_m; s is padded with zeros.
template <class Rows>
void add_to_classes(const Rows &rows, Index i, const double *s, Index stride,
                    double *w) {
  for (Index b = 0; b < stride; b += kClassBlock) {
    double own[kClassBlock];
    std::copy(s + b, s + b + kClassBlock, own);
    rows.for_each(i, [&](Index j, double x) {
      double *of_feature = w + j * stride + b;
      for (Index l = 0; l < kClassBlock; ++l) of_feature[l] += x * own[l];
    });
  }
}

// Returns the maximum over m != y of score_m - score_y + 1: the loss, if positive.
inline double multiclass_excess(const double *score, Index y, Index classes) {
  double excess = -std::numeric_limits<double>::infinity();
  for (Index m = 0; m < classes; ++m)
    if (m != y) excess = std::max(excess, score[m] - score[y] + 1.0);
  return excess;
}

inline double multiclass_loss(const double *score, Index y, Index classes) {
  return std::max(0.0, multiclass_excess(score, y, classes));
}

// Returns the beta with sum_m max(0, d_m - beta) = radius, by dropping entries below
// it.
inline double simplex_level(double *d, Index size, double radius) {
  double beta = -radius;
  for (Index m = 0; m < size; ++m) beta += d[m];
  beta /= static_cast<double>(size);
  for (;;) {
    Index kept = 0;
    double sum = -radius;
    for (Index m = 0; m < size; ++m)
      if (d[m] > beta) {
        sum += d[m];
        d[kept++] = d[m];
      }
    if (kept == size || kept == 0) return beta;
    size = kept;
    beta = sum / static_cast<double>(size);
  }
}

// Writes the exact maximiser of D over the duals of one row to `next`.
inline void multiclass_step(const double *score, const double *a, Index y, double c,
                            double q, Index classes, double *d, double *next) {
  if (c == 0.0) {
    std::fill(next, next + classes, 0.0);
    return;
  }
  if (q == 0.0) {  // D is linear in a: put all of c against any other class
    std::fill(next, next + classes, 0.0);
    next[y] = c;
    next[y == 0 ? 1 : 0] = -c;
    return;
  }
  for (Index m = 0; m < classes; ++m)
    d[m] = score[m] - q * a[m] + (m == y ? q * c : 1.0);
  for (Index m = 0; m < classes; ++m) next[m] = d[m];
  const double beta = simplex_level(d, classes, q * c);
  double others = 0;
  for (Index m = 0; m < classes; ++m)
    if (m != y) {
      next[m] = std::min(0.0, (beta - next[m]) / q);
      others += next[m];
    }
  next[y] = std::min(c, -others);
}

// One epoch over the active rows. `scratch` has 3 strides of entries, all 0.
template <class Rows>
MulticlassPass crammer_singer_epoch(const Rows &rows, const MulticlassData &data,
                                    const MulticlassState &state, Order *order,
                                    double *scratch, Random &random, Poll &poll) {
  MulticlassPass pass;
  const Index classes = data.classes;
  const Index stride = class_stride(classes);
  double *score = scratch, *d = scratch + stride, *next = scratch + 2 * stride;
  const Index awake = awake_rows(state.wake, rows.rows(), order);
  random.shuffle(order, awake);
  for (Index t = 0; t < awake; ++t) {
    look_ahead(rows, order, t, awake, data.cost, data.q, data.y);
    const Index i = order[t], y = data.y[i];
    const double c = data.cost[i];
    double *a = state.alpha + i * classes;
    class_scores(rows, i, state.w, stride, score);
    pass.gap += c * multiclass_loss(score, y, classes);
    for (Index m = 0; m < classes; ++m) pass.gap += a[m] * (score[m] + (m != y));
    multiclass_step(score, a, y, c, data.q[i], classes, d, next);
    Index changes = 0;
    for (Index m = 0; m < classes; ++m) {
      d[m] = next[m] - a[m];
      changes += d[m] != 0.0;
    }
    if (changes > 0) {
      pass.linear += d[y];
      std::copy(next, next + classes, a);
      add_to_classes(rows, i, d, stride, state.w);
      ++pass.updates;
      state.length[i] = 0;
    } else {
      state.length[i] = static_cast<std::uint8_t>(
          std::min(2 * state.length[i] + 1, kLongestMulticlassSleep));
      state.wake[i] = state.length[i];
    }
    ++pass.visited;
    if (poll(rows.count(i) * classes)) break;
  }
  return pass;
}

// Makes a point feasible: entries of other classes become at most 0, their sizes sum to
// at most c_i, and the entry of y_i makes the sum 0. Returns the number of changed
// rows.
inline Index multiclass_feasible(const MulticlassData &data, Index n, double *alpha) {
  Index changed = 0;
  for (Index i = 0; i < n; ++i) {
    double *a = alpha + i * data.classes;
    const Index y = data.y[i];
    const double before = a[y], c = data.cost[i];
    bool moved = false;
    double others = 0;
    for (Index m = 0; m < data.classes; ++m) {
      if (m == y) continue;
      moved |= a[m] > 0.0;
      a[m] = std::min(a[m], 0.0);
      others -= a[m];
    }
    if (others > c) {
      const double scale = c / others;
      for (Index m = 0; m < data.classes; ++m) a[m] *= scale;
      others = c;
    }
    a[y] = others;
    changed += moved || a[y] != before;
  }
  return changed;
}

// Computes w_m = sum_i a_im x_i. w must be zero on entry.
template <class Rows>
void multiclass_combine(const Rows &rows, const double *alpha, Index classes, double *w,
                        Team &threads) {
  const Index stride = class_stride(classes), size = rows.width() * stride;
  over_rows(rows, threads, w, size, [&](Index begin, Index end, double *own) {
    Vec padded(stride);
    for (Index i = begin; i < end; ++i) {
      const double *a = alpha + i * classes;
      if (std::all_of(a, a + classes, [](double x) { return x == 0.0; })) continue;
      std::copy(a, a + classes, padded.begin());
      add_to_classes(rows, i, padded.data(), stride, own);
    }
  });
}

// Returns an upper bound on ||w_m|| of every class, without the constant feature.
template <class Rows>
double longest_class(const Rows &rows, const double *w, Index stride) {
  Vec square(stride);
  for (Index j = 0; j < rows.cols(); ++j)
    for (Index m = 0; m < stride; ++m)
      square[m] += w[j * stride + m] * w[j * stride + m];
  const double most = *std::max_element(square.begin(), square.end());
  if (most == 0.0 &&
      std::all_of(w, w + rows.cols() * stride, [](double x) { return x == 0.0; }))
    return 0.0;
  const auto roundings = static_cast<double>(rows.cols() + 2);
  return std::sqrt(most * (1.0 + 2.0 * roundings * kRounding<double>)+kSmall);
}

// Sums like `evaluate` of certify.hpp, for this problem: `loss` is
// sum_i c_i max_m (w_m.x_i - w_{y_i}.x_i + e_im), `sum` is sum_i a_{i,y_i}, and `along`
// is sum_im a_im w_m.x_i. Without alpha only the loss is computed.
template <class Rows>
Values multiclass_values(const Rows &rows, const MulticlassData &data, const double *w,
                         const double *alpha, Team &threads) {
  const Index classes = data.classes, stride = class_stride(classes);
  const double constant = rows.constant();
  double last = 0;
  for (Index m = 0; constant != 0.0 && m < classes; ++m)
    last = std::max(last, std::abs(constant * w[rows.cols() * stride + m]));
  const Sizes sizes{data.q, constant * constant, longest_class(rows, w, stride), last,
                    static_cast<double>(rows.cols() + 2)};
  const double adding = static_cast<double>(rows.rows() * classes) * kRounding<double>;
  // a_{i,y_i} is a rounded sum of the others.
  const double own = (2.0 + static_cast<double>(3 * classes)) * kRounding<double>;
  const auto values = [&](Index begin, Index end, double *, PartValues &total) {
    Vec score(stride);
    for (Index i = begin; i < end; ++i) {
      class_scores(rows, i, w, stride, score.data());
      const double excess = multiclass_excess(score.data(), data.y[i], classes);
      // Entries are added one by one, and the constant feature.
      const auto roundings = static_cast<double>(rows.count(i) + 2);
      const double row = sizes.row(i), size = sizes.product(row);
      const double one = sizes.off(size, roundings);
      const double off = 2.0 * one + 4.0 * kRounding<double> * size;
      total.loss += data.cost[i] * std::max(0.0, excess);
      total.loss_error +=
          data.cost[i] * (std::max(0.0, excess + off) - std::max(0.0, excess));
      total.roundings = std::max(total.roundings, roundings);
      if (!alpha) continue;
      const double *a = alpha + i * classes;
      double among = 0, square = 0, along = 0;
      for (Index m = 0; m < classes; ++m) {
        among += std::abs(a[m]);
        square += a[m] * a[m];
        along += a[m] * score[m];
      }
      if (among == 0.0) continue;
      total.sum += a[data.y[i]];
      total.along += along;
      total.along_error += among * (one + (own + adding * adding) * size);
      total.reach += std::sqrt(square) * (row + std::abs(constant));
      total.used += 1.0;
    }
  };
  return add_up(over_rows<PartValues>(rows, threads, nullptr, 0, values), sizes);
}

}  // namespace dualgap

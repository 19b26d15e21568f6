// Cutting planes of the hinge risk: SVMperf's one-slack rule and OCAS.
//
// Problem    min 1/2 ||w||^2 + R(w),  R(w) = sum_i c_i max(0, 1 - m_i), m_i = y_i w.x_i
// Update     A set I of rows gives the plane R(w) >= b - w.a,
//              a = sum_{i in I} c_i y_i x_i,  b = sum_{i in I} c_i;
//            at w the plane of I = {i: m_i <= 1} is tight. The master problem
//              min 1/2 ||w||^2 + max_t (b_t - w.a_t)
//            is solved through its dual over the simplex,
//              max beta.b - 1/2 ||sum_t beta_t a_t||^2, beta >= 0, sum beta = 1.
//            The empty set is always a plane (a = 0, b = 0): R(w) >= 0.
//            OCAS minimises P exactly on the line from its best w to the master's w.
// Guarantee  alpha_i = c_i sum_t beta_t [i in I_t] is in the box, and D(alpha) is the
//            dual value of the master problem. It is a lower bound that never falls
//            with new planes.
// Cost       per plane one product with X, and one with X^T over the rows that differ
//            from the last set; O(n) for the line search; O(k^3) for a Newton step on
//            the k planes with beta > 0
// Source     Joachims, KDD 2006 (the one-slack rule); Franc and Sonnenburg, ICML 2008
//            and JMLR 10 (2009) (the line search and the choice of the next cut).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>

#include "../core/certify.hpp"
#include "../core/face.hpp"
#include "../core/rows.hpp"
#include "../core/shared_rows.hpp"
#include "../core/stop.hpp"

namespace dualgap {

// Whether a set contains row i. A set has one bit per row: bit i % 8 of byte i / 8.
inline bool has_row(const std::uint8_t *set, Index i) {
  return (set[i >> 3] >> (i & 7)) & 1;
}

// Most halvings of the interval of breakpoints, and breakpoints few enough to be
// sorted.
inline constexpr int kHalvings = 200;
inline constexpr Index kSorted = 32;

// Computes out_i = y_i x_i.w. Returns the number of rows done, fewer than all if told
// to stop.
template <class Rows>
Index outputs(const Rows &rows, const std::int8_t *y, const double *w, double *out,
              Team &threads, Poll &poll, const Stop &stop) {
  Vector<Index> done(threads.size(), 0);
  const auto products = [&](Index part, Index begin, Index end, Poll &own) {
    Index i = begin;
    while (i < end) {
      out[i] = y[i] * rows.dot(i, w);
      if (own(rows.count(i++))) break;
    }
    done[part] = i - begin;
  };
  polled_parts(threads, threads.size(), rows.rows(), poll, stop, products);
  return std::accumulate(done.begin(), done.end(), Index{0});
}

struct Plane {
  Index done = 0;  // rows done; if not all, the plane is not valid
  double b = 0;
};

// Changes the plane (a, b) of the set `from` to the plane of the set `to`:
//   a += sum_i c_i y_i x_i ([i in to] - [i in from]), and b likewise.
// Late in a fit successive sets differ in few rows. Every thread has its own sum, and
// the sums are added in the order of the rows.
template <class Rows>
Plane change_plane(const Rows &rows, const std::int8_t *y, const double *cost,
                   const std::uint8_t *from, const std::uint8_t *to, double *a,
                   double b, Team &threads, Poll &poll, const Stop &stop) {
  const Index parts = threads.size();
  Vector<Index> done(parts, 0);
  Vec heights(parts, 0.0);
  PartSums sums(a, rows.width(), parts);
  const auto changes = [&](Index part, Index begin, Index end, Poll &own) {
    double *sum = sums.of(part);
    Sum height;
    Index i = begin;
    while (i < end) {
      Index entries = 0;
      const int change = has_row(to, i) - has_row(from, i);
      if (change != 0 && cost[i] > 0.0) {
        rows.axpy(i, change * y[i] * cost[i], sum);
        height += change * cost[i];
        entries = rows.count(i);
      }
      ++i;
      if (own(entries)) break;
    }
    heights[part] = height.value();
    done[part] = i - begin;
  };
  polled_parts(threads, parts, rows.rows(), poll, stop, changes);
  sums.add_up();
  Sum height;
  height += b;
  for (const double more : heights) height += more;
  return {std::accumulate(done.begin(), done.end(), Index{0}), height.value()};
}

// Returns the t >= 0 that minimises P on the line from `from` to `to` (margins m_i of
// two points): a zero of the derivative
//   slope + curvature t - sum_{i: m_i(t) < 1} c_i (to_i - from_i)
// The derivative is linear between the breakpoints, where a margin becomes 1, and jumps
// upwards there. slope = w_from.(w_to - w_from), curvature = ||w_to - w_from||^2.
inline double line_search(const double *cost, const double *from, const double *to,
                          Index n, double slope, double curvature) {
  struct Breakpoint {
    double t, jump;
  };
  // A std::vector would write zeros first.
  const std::unique_ptr<Breakpoint[]> points(new Breakpoint[n]);
  Index count = 0;
  double gradient = slope;  // just after t = 0
  for (Index i = 0; i < n; ++i) {
    const double u = 1.0 - from[i], rate = to[i] - from[i], jump = cost[i] * rate;
    const double t = u / rate;
    gradient -= u > 0.0 || (u == 0.0 && jump < 0.0) ? jump : 0.0;
    points[count] = {t, std::abs(jump)};
    // No branches here and below, because the side of a margin is unpredictable.
    count += t > 0.0 && std::isfinite(t) && jump != 0.0;
  }
  if (!(gradient < 0.0)) return 0.0;
  // Bisection keeps the breakpoints next to the zero: O(n) in all. `gradient` is the
  // derivative just after `low`, which is negative; just after `high` it is not.
  constexpr double kLargest = std::numeric_limits<double>::max();
  double low = 0.0, high = kLargest;
  for (int left = kHalvings; left > 0 && count > kSorted; --left) {
    const double t =
        high < kLargest ? 0.5 * (low + high) : std::clamp(2.0 * low, 1.0, kLargest);
    double jumps = 0;
    for (Index k = 0; k < count; ++k) jumps += points[k].t <= t ? points[k].jump : 0.0;
    const double there = gradient + curvature * (t - low) + jumps;
    const bool passed = there >= 0.0;
    Index kept = 0;
    for (Index k = 0; k < count; ++k) {
      const Breakpoint point = points[k];
      points[kept] = point;
      kept += (point.t <= t) == passed;
    }
    count = kept;
    if (passed) {
      high = t;
    } else {
      low = t;
      gradient = there;
    }
  }
  std::sort(points.get(), points.get() + count,
            [](const Breakpoint &p, const Breakpoint &q) { return p.t < q.t; });
  for (Index k = 0; k < count; ++k) {
    const Breakpoint point = points[k];
    const double before = gradient + curvature * (point.t - low);
    if (before >= 0.0) break;
    low = point.t;
    gradient = before + point.jump;
    if (gradient >= 0.0) return low;
  }
  return curvature > 0.0 ? low - gradient / curvature : low;
}

// Moves `from` to from + t (to - from) and returns the loss there. Fills the set
// {i: m_i <= 1} at from + cut (to - from), the point of the next plane.
inline double move_outputs(const double *cost, double *from, const double *to, Index n,
                           double t, double cut, std::uint8_t *set) {
  Sum loss;
  for (Index begin = 0; begin < n; begin += 8) {
    double part = 0;
    unsigned byte = 0;
    for (Index i = begin; i < std::min(n, begin + 8); ++i) {
      const double at_cut = (1.0 - cut) * from[i] + cut * to[i];
      byte |= static_cast<unsigned>(at_cut <= 1.0) << (i - begin);
      from[i] = (1.0 - t) * from[i] + t * to[i];
      part += cost[i] * std::max(0.0, 1.0 - from[i]);
    }
    set[begin >> 3] = static_cast<std::uint8_t>(byte);
    loss += part;
  }
  return loss.value();
}

// Adds beta [i in I] to share_i.
inline void add_rows(const std::uint8_t *set, double beta, Index n, double *share) {
  for (Index i = 0; i < n; ++i) share[i] += has_row(set, i) ? beta : 0.0;
}

// Dual of the master problem over the simplex: max beta.b - 1/2 beta.H beta,
// H_st = a_s.a_t.
//
// A pair step moves weight from the plane with beta > 0 and the smallest gradient
// g = b - H beta to the plane with the largest gradient. Newton steps on the planes
// with beta > 0 follow; a plane whose beta reaches 0 leaves (Wolfe 1976, for the point
// of smallest norm in a polytope). Every step follows an ascent direction with the
// exact step size inside the simplex, so the value never falls.
class Master {
 public:
  Master(const double *gram, Index stride, Index size, const double *b, double *beta)
      : gram_(gram), b_(b), beta_(beta), stride_(stride), size_(size) {}

  // Solves until the gap of the master problem, max_t g_t - beta.g, is at most `tol`,
  // or rounding stops progress. Returns the gap.
  double solve(double tol, Poll &poll) {
    gradient_.assign(b_, b_ + size_);
    for (Index t = 0; t < size_; ++t)
      if (beta_[t] > 0.0) add(gradient_, -beta_[t], t);
    double gap = measure();
    // The limit is far above what this finite method needs. beta is a valid point
    // anyway.
    for (Index left = 100 * (size_ + 10); left > 0 && gap > tol; --left) {
      if (!pair_step()) break;
      while (newton_step() && !poll(size_)) {
      }
      gap = measure();
      if (poll(size_)) break;
    }
    return gap;
  }

 private:
  double at(Index s, Index t) const { return gram_[s * stride_ + t]; }
  void add(Vec &g, double step, Index t) const {
    const double *row = gram_ + t * stride_;
    for (Index s = 0; s < size_; ++s) g[s] += step * row[s];
  }
  double g(Index t) const { return gradient_[t]; }

  // Finds the pair and returns sum_t beta_t (g_best - g_t).
  double measure() {
    best_ = worst_ = -1;
    for (Index t = 0; t < size_; ++t) {
      if (best_ < 0 || g(t) > g(best_)) best_ = t;
      if (beta_[t] > 0.0 && (worst_ < 0 || g(t) < g(worst_))) worst_ = t;
    }
    double gap = 0;
    for (Index t = 0; t < size_; ++t)
      if (beta_[t] > 0.0) gap += beta_[t] * (g(best_) - g(t));
    return gap;
  }

  // Returns false if rounding leaves nothing to gain.
  bool pair_step() {
    const double gain = g(best_) - g(worst_);
    const double curvature =
        at(best_, best_) + at(worst_, worst_) - 2.0 * at(best_, worst_);
    double step = beta_[worst_];
    if (curvature > 0.0) step = std::min(step, gain / curvature);
    const double raised = beta_[best_] + step;
    if (!(gain > 0.0) || !(step > 0.0) ||
        (raised == beta_[best_] && step < beta_[worst_]))
      return false;
    beta_[best_] = raised;
    beta_[worst_] = step < beta_[worst_] ? beta_[worst_] - step : 0.0;
    add(gradient_, -step, best_);
    add(gradient_, step, worst_);
    return true;
  }

  // One step towards the optimum of the face of the planes with beta > 0. Returns true
  // if a plane has left, so that the smaller face should be tried.
  bool newton_step() {
    face_.clear();
    for (Index t = 0; t < size_; ++t)
      if (beta_[t] > 0.0) face_.push_back(t);
    if (face_.size() < 2) return false;
    // The largest beta balances the others, so that sum beta stays 1.
    const auto largest =
        std::max_element(face_.begin(), face_.end(),
                         [&](Index s, Index t) { return beta_[s] < beta_[t]; });
    std::rotate(largest, largest + 1, face_.end());
    if (!step_.solve(
            face_.size(), [&](Index s, Index t) { return at(face_[s], face_[t]); },
            [&](Index s) { return g(face_[s]); }))
      return false;

    double slope = 0, curvature = 0, length = std::numeric_limits<double>::infinity();
    Index leaves = -1;
    change_.assign(size_, 0.0);
    for (Index k = 0; k < face_.size(); ++k) {
      slope += step_[k] * (g(face_[k]) - g(face_.back()));
      add(change_, step_[k], face_[k]);
    }
    for (Index k = 0; k < face_.size(); ++k) {
      curvature += step_[k] * change_[face_[k]];
      if (!(step_[k] < 0.0) || beta_[face_[k]] >= -step_[k] * length) continue;
      length = beta_[face_[k]] / -step_[k];
      leaves = face_[k];
    }
    if (!(slope > 0.0) || !std::isfinite(curvature) || leaves < 0) return false;
    if (curvature > 0.0 && slope < length * curvature) {
      length = slope / curvature;
      leaves = -1;
    }
    for (Index k = 0; k < face_.size(); ++k)
      beta_[face_[k]] = std::max(0.0, beta_[face_[k]] + length * step_[k]);
    if (leaves >= 0) beta_[leaves] = 0.0;
    for (Index t = 0; t < size_; ++t) gradient_[t] -= length * change_[t];
    return leaves >= 0;
  }

  const double *gram_, *b_;
  double *beta_;
  Index stride_, size_, best_ = -1, worst_ = -1;
  Vec gradient_, change_;
  FaceStep step_;
  Vector<Index> face_;
};

// Sets beta_0, the weight of the empty set, to 1 minus the sum of the others. The
// others are scaled down if their sum exceeds 1.
inline void close_simplex(double *beta, Index size) {
  Sum sum;
  for (Index t = 1; t < size; ++t) sum += beta[t];
  const double others = sum.value();
  if (others > 1.0)
    for (Index t = 1; t < size; ++t) beta[t] /= others;
  if (beta[0] > 0.0) beta[0] = std::max(0.0, 1.0 - others);
}

}  // namespace dualgap

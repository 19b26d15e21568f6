// Dual coordinate ascent: SDCA and DCD.
//
// Problem    max over 0 <= a_i <= U_i of
//            D(a) = sum a_i - 1/2 ||w||^2 - 1/2 sum delta_i a_i^2,  w = sum a_i y_i x_i
// Update     for one i:  G = y_i w.x_i - 1 + delta_i a_i
//            a_i <- min(max(a_i - G/(q_i + delta_i), 0), U_i),  q_i = ||x_i||^2
//            w   <- w + (change of a_i) y_i x_i
//            For SDCA with the logistic loss, D and the update are in losses.hpp.
// Guarantee  D never falls. Linear rate (Hsieh et al. 2008, Theorem 1). In
//            expectation, gap <= eps after n + O(1/(lambda eps)) steps for the
//            hinge and (n + 1/(lambda gamma)) log(1/eps) for smooth losses
//            (Shalev-Shwartz and Zhang 2013, Theorems 1 and 2).
// Cost       one dot per visit, one axpy per change; 8 bytes of a per row
// Source     Hsieh et al. 2008; Shalev-Shwartz and Zhang 2013
//
// The sum of gap_share() over the visits mixes different iterates. It is an estimate
// of the gap that schedules the exact pass and never replaces it.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>

#include "../stop.hpp"
#include "dual.hpp"

namespace dualgap {

// Time-weighted sum of every a_i, so that an average over steps costs O(1) per step:
// sum_i grows by a_i (t - since_i) whenever a_i is about to change.
struct Average {
  Span<double> sum;    // null: no average is kept
  Span<double> since;  // step at which a_i took its present value
  double step = 0;     // steps before this call
};

// Factors of a margin and of q in Modified-SGD, which treats the `seen` of n rows as
// all rows.
struct SoFar {
  double stretch, weight;
  SoFar(double seen, double n)
      : stretch(seen > 0.0 ? n / seen : 0.0), weight(n / (seen + 1.0)) {}
};

// The rows of a pass of Modified-SGD that come before, and all of them.
struct FirstPass {
  Index before;
  double n;
};

// SDCA (Shalev-Shwartz and Zhang 2013, procedures SDCA and SDCA-Perm). The caller gives
// the order: a permutation, independent draws, or 0..n-1.
//
// With `first` it is Modified SGD (there, procedure Modified-SGD), one epoch from
// alpha = 0 that starts SDCA. Step t = 1..n maximises the dual of the first t rows,
// with lambda t instead of lambda n: with v = sum_{i<t} y_i b_i x_i in units of a_i =
// b_i, the working point is w^(t-1) = (n/(t-1)) v, and
//   a_t = argmax over a of the one-row dual with q_t n/t instead of q_t.
// The state's w holds v = sum a_i y_i x_i, the point of the full problem.
template <class Rows, class L>
DualPass sdca_epoch(const Rows &rows, const DualDataOf<L> &data, const Order *order,
                    Index m, DualState &state, Average &average, Poll &poll,
                    const FirstPass *first = nullptr) {
  DualPass pass;
  for (Index t = 0; t < m; ++t) {
    look_ahead(rows, order, t, m, state.alpha, data.cost, data.q, data.y);
    const Index i = order[t];
    const double c = data.cost[i];
    const double a = state.alpha[i];
    double margin = data.y[i] * rows.dot(i, state.w), q = data.q[i];
    if (first) {
      const SoFar so_far(static_cast<double>(first->before + t), first->n);
      margin *= so_far.stretch;
      q *= so_far.weight;
    }
    pass.gap += gap_share(data.loss, a, margin, c);
    const double next = dual_step(data.loss, a, margin, q, c);
    if (next != a) {
      if (average.sum) {
        const double now = average.step + static_cast<double>(t) + 1.0;
        average.sum[i] += a * (now - average.since[i]);
        average.since[i] = now;
      }
      state.alpha[i] = next;
      rows.axpy(i, (next - a) * data.y[i], state.w);
      ++pass.updates;
    }
    ++pass.visited;
    if (poll(rows.count(i))) break;
  }
  return pass;
}

struct Shrinking {
  double upper;  // M-bar: largest projected gradient of the previous pass, or inf
  double lower;  // m-bar: smallest, or -inf
};

struct ShrunkPass : DualPass {
  Index active = 0;
  double max_gradient = 0;  // M of this pass
  double min_gradient = 0;  // m of this pass
};

// DCD with shrinking (Hsieh et al. 2008, Algorithm 3). `order` holds the active rows,
// shuffled by the caller. Rows that leave the active set are swapped to the end.
template <class Rows>
ShrunkPass dcd_epoch(const Rows &rows, const DualData &data, Order *order, Index m,
                     DualState &state, const Shrinking &bound, Poll &poll) {
  ShrunkPass pass;
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double largest = -kInf, smallest = kInf;
  for (Index t = 0; t < m;) {
    look_ahead(rows, order, t, m, state.alpha, data.cost, data.q, data.y);
    const Index i = order[t];
    const double c = data.cost[i];
    const double a = state.alpha[i];
    const double upper = data.loss.upper(c), delta = data.loss.diagonal(c);
    const double margin = data.y[i] * rows.dot(i, state.w);
    const double gradient = margin - 1.0 + delta * a;
    pass.gap += gap_share(data.loss, a, margin, c);
    ++pass.visited;
    const bool at_zero = a == 0.0, at_upper = a == upper;
    if ((at_zero & (gradient > bound.upper)) | (at_upper & (gradient < bound.lower))) {
      std::swap(order[t], order[--m]);
    } else {
      const double least = at_upper ? 0.0 : -kInf, most = at_zero ? 0.0 : kInf;
      const double projected = std::min(std::max(gradient, least), most);
      largest = std::max(largest, projected);
      smallest = std::min(smallest, projected);
      // The box projects the step: an outward step from a bound does not move.
      const double next = dual_step(a, margin, data.q[i], upper, delta);
      if (next != a) {
        state.alpha[i] = next;
        rows.axpy(i, (next - a) * data.y[i], state.w);
        ++pass.updates;
      }
      ++t;
    }
    if (poll(rows.count(i))) break;
  }
  pass.active = m;
  pass.max_gradient = largest;
  pass.min_gradient = smallest;
  return pass;
}

}  // namespace dualgap
